# In a knitted document a fit is the card that notebooks show, where HTML can be read, else what is printed.
#' @exportS3Method knitr::knit_print
knit_print.dvim <- function(x, ...) {
  if (isTRUE(knitr::is_html_output())) return(knitr::asis_output(paste0("\n", x$card, "\n")))
  knitr::knit_print(structure(list(text = x$text), class = "dvim_words"))
}

#' @exportS3Method knitr::knit_print
knit_print.dvim_several <- knit_print.dvim

#' @export
print.dvim_words <- function(x, ...) cat(sub("\n*$", "\n", x$text))
