# In a knitted document a fit is the card that notebooks show, where HTML can be read, else what is printed.
#' @exportS3Method knitr::knit_print
knit_print.dvim <- function(x, ...) {
  if (isTRUE(knitr::is_html_output())) return(knitr::asis_output(paste0("\n", x$card, "\n")))
  knitr::asis_output(paste0("\n```\n", sub("\n*$", "\n", x$text), "```\n"))
}

#' @exportS3Method knitr::knit_print
knit_print.dvim_several <- knit_print.dvim
