#' Cohorts with known effects
#'
#' Draws one of the paper's cohorts, or of further worlds.
#'
#' @param scenario One of `dvim_scenarios()$scenario`.
#' @param n How many patients; the usual size of the scenario by default.
#' @param seed The seed.
#' @param confounded Let covariates that matter for the outcome decide on treatment too (the paper's four scenarios).
#' @param truth Give the true effects too.
#' @return A data frame with columns `id`, `time`, `event`, `treatment` and covariates; with `truth`, a list of `cohort` and
#'   `truth`. `dvim_scenarios()` gives a data frame of the scenarios.
#' @examples
#' str(dvim_simulate("cure-only", n = 100)[, 1:6])
#' dvim_scenarios()[, c("scenario", "horizon")]
#' @export
dvim_simulate <- function(scenario = "both-overlap", n = NULL, seed = 1, confounded = FALSE, truth = FALSE) {
  worlds <- dvim_scenarios()
  at <- match(scenario, worlds$scenario)
  if (is.na(at)) {
    refuse(sprintf("there is no scenario `%s`", scenario), "a scenario is one of a list",
           sprintf("use %s", paste(worlds$scenario, collapse = ", ")))
  }
  if (confounded && !worlds$can_be_confounded[[at]]) {
    refuse(sprintf("scenario %s has no confounded form", scenario), "only the paper's four scenarios have one",
           "leave out confounded = TRUE")
  }
  n <- whole("n", if (is.null(n)) worlds$n[[at]] else n)
  if (n < 1) refuse("n is 0", "a cohort has patients", "use n = 2000")
  found <- await(native_simulate(scenario, n, whole("seed", seed), isTRUE(confounded), threads_of()))
  if (isTRUE(truth)) lapply(found, as_frame) else as_frame(found$cohort)
}

#' @rdname dvim_simulate
#' @export
dvim_scenarios <- function() records_frame(native_scenarios())

# The frame and what is asked of it, of a call that takes the arguments of dvim().
prepared <- function(call, env, without = character()) {
  arguments <- as.list(call)[-1]
  wrong <- setdiff(setdiff(names(arguments), ""), setdiff(names(formals(dvim)), without))
  if (length(wrong)) stop(sprintf("unused argument: %s", wrong[[1]]), call. = FALSE)
  call[[1]] <- quote(dvim)
  call <- match.call(dvim, call)
  unquoted <- c("treatment", "weights", "cluster", "id", "subset")
  given <- lapply(formals(dvim), function(f) if (identical(f, quote(expr = ))) NULL else eval(f))
  for (name in setdiff(names(as.list(call)[-1]), unquoted)) given[name] <- list(eval(call[[name]], env))
  if (is.null(given$horizon)) {
    refuse("no horizon was given", "the horizon defines what is estimated, so it has no default",
           "add horizon = , in the unit of the times")
  }
  if (!is.null(given$na.action)) given$missing <- missing_of(given$na.action)
  frame <- frame_of(given$formula, given$data, call, env, given)
  list(frame = frame, given = given)
}

#' How a table is understood
#'
#' Everything that is wrong with it, with the remedy, and how each column is read; fits nothing.
#'
#' @param ... The arguments of [dvim()].
#' @return An object of class `dvim_check`: `refused`, whether [dvim()] would refuse it; `problems`, a data frame; `columns`,
#'   one row for each column; `record`, everything as a list.
#' @examples
#' cohort <- dvim_simulate("both-overlap", n = 200)
#' dvim_check(Surv(time, event) ~ x1 + x2, data = cohort, treatment = treatment, horizon = 800)
#' @export
dvim_check <- function(...) {
  made <- prepared(match.call(expand.dots = TRUE), parent.frame())
  asked <- asked_of(made$frame, made$given)
  found <- await(native_check(made$frame$columns, made$frame$id$name, made$frame$kind, asked$roles, asked$options,
                              threads_of(made$given$threads)))
  structure(class = "dvim_check", list(
    refused = found$record$refused, problems = problems_frame(found$problems),
    columns = records_frame(found$record$columns, c("name", "role", "kind", "n_missing", "min", "mean", "max", "n_levels")),
    record = found$record, text = found$text, words = vapply(found$problems, function(p) {
      paste0(p$severity, ": ", problem_words(p))
    }, "")
  ))
}

#' @export
print.dvim_check <- function(x, ...) {
  cat(sub("\n*$", "\n", x$text), paste0(x$words, "\n", recycle0 = TRUE), sep = "")
  invisible(x)
}

#' Every method of the paper on one cohort
#'
#' @param ... The arguments of [dvim()] that all methods share.
#' @param ties How Cox models share tied event times: `"breslow"`, as the paper does, or `"efron"`.
#' @return An object of class `dvim_comparison`: data frames `effects`, `summary` and `correlations`. [dvim_save()] writes it.
#' @export
dvim_compare <- function(..., ties = "breslow") {
  call <- match.call(expand.dots = TRUE)
  call$ties <- NULL
  made <- prepared(call, parent.frame(),
                   c("imputation", "estimator", "splits", "folds", "latency", "learners", "penalty", "by", "audit"))
  made$given$estimator <- "paper"
  asked <- asked_of(made$frame, made$given)
  ties <- word("ties", ties, unlist(settings()$ties$words))
  found <- await(native_compare(made$frame$columns, made$frame$id$name, made$frame$kind, asked$roles, asked$options, ties,
                                threads_of(made$given$threads)), made$given$progress)
  warn(found$warnings)
  structure(class = "dvim_comparison", list(
    effects = as_frame(found$effects), summary = as_frame(found$summary), correlations = as_frame(found$correlations),
    text = found$text, comparison = found$comparison
  ))
}

#' @export
print.dvim_comparison <- function(x, ...) {
  cat(sub("\n*$", "\n", x$text))
  invisible(x)
}

#' @export
as.data.frame.dvim_comparison <- function(x, row.names = NULL, optional = FALSE, ...) x$effects
