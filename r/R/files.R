#' Save and open runs
#'
#' A run is a directory that the command line, Python and R write and open alike: `effects.csv`, `weights.csv`,
#' `summary.json` and `run.dvim`. It appears whole or not at all.
#'
#' @param fit A fit, several fits, or a comparison.
#' @param path The directory.
#' @param force Replace a run that is there, and nothing but a run.
#' @param format The format of the effects: `"csv"` or `"json"`.
#' @param threads,progress As in [dvim()].
#' @return `dvim_save()` gives the path, invisibly; `dvim_open()` the fit, or several.
#' @examples
#' cohort <- dvim_simulate("both-overlap", n = 400, seed = 1)
#' fit <- dvim(Surv(time, event) ~ x1 + x2 + x11, data = cohort, treatment = treatment, horizon = 800)
#' run <- dvim_save(fit, tempfile("run"))
#' list.files(run)
#' identical(dvim_open(run)$effects, fit$effects)
#' @export
dvim_save <- function(fit, path, force = FALSE, format = "csv") {
  pointer <- if (inherits(fit, "dvim_several")) run_of(fit, "several")
             else if (inherits(fit, "dvim_comparison")) run_of(fit, "comparison")
             else run_of(fit)
  await(native_save(pointer, path.expand(path), isTRUE(force), format, threads_of()))
  invisible(path)
}

#' @rdname dvim_save
#' @export
dvim_open <- function(path, threads = NULL, progress = NULL) {
  found <- await(native_open(path.expand(path), threads_of(threads)), progress)
  if (!is.null(found$several)) return(new_several(found))
  changed <- unlist(found$changed)
  if (length(changed)) {
    warn(list(list(code = "changed_files", severity = "warning", column = NULL, count = length(changed), rows = list(),
                   found = sprintf("in `%s` %s", path, paste(changed, collapse = ", ")),
                   rule = "the files of a run are written once, with their hashes in summary.json",
                   remedy = "what is shown here comes from run.dvim, which is intact; save the run elsewhere to have whole files")))
  }
  new_dvim(found)
}

#' A page that explains a fit
#'
#' One HTML file that opens by double-click, can be printed, and loads nothing.
#'
#' @param fit A fit.
#' @param file Where to write it.
#' @param title,about The title, and what stands under it.
#' @param time_unit The unit of time in words, such as `"days"`.
#' @param force Replace a file that is there.
#' @param open Whether to open it in a browser.
#' @return The file, invisibly.
#' @export
dvim_report <- function(fit, file = tempfile("dvim-report-", fileext = ".html"), title = NULL, about = NULL,
                        time_unit = NULL, force = FALSE, open = interactive()) {
  await(native_report(run_of(fit), path.expand(file), isTRUE(force), title, about, time_unit, threads_of()))
  if (isTRUE(open)) utils::browseURL(file)
  invisible(file)
}

#' Explore a fit in the browser
#'
#' Every patient with the similar patients beside the numbers, on this machine alone: the server binds the loopback address,
#' and its pages load nothing from elsewhere.
#'
#' @param fit A fit.
#' @param port The port; any that is free by default.
#' @param time_unit The unit of time in words.
#' @param open Whether to open a browser.
#' @param block Whether to wait, until Ctrl-C ends it. Without, `close()` ends the server that is given back.
#' @param threads As in [dvim()].
#' @return The server, invisibly: its `address` opens the page.
#' @export
dvim_explore <- function(fit, port = NULL, time_unit = NULL, open = interactive(), block = interactive(), threads = NULL) {
  found <- await(native_explore(run_of(fit), port, time_unit, threads_of(threads)))
  server <- structure(class = "dvim_server", list(address = found$address, server = found$server))
  if (isTRUE(open)) utils::browseURL(found$once)
  if (!isTRUE(block)) return(invisible(server))
  message("Open ", found$address, " in a browser on this machine; Ctrl-C ends it.")
  on.exit(close(server))
  repeat Sys.sleep(0.2)
}

#' @export
close.dvim_server <- function(con, ...) {
  native_stop(con$server)
  invisible()
}

#' @export
print.dvim_server <- function(x, ...) {
  cat("A fit is served at ", x$address, "\nclose() ends it.\n", sep = "")
  invisible(x)
}
