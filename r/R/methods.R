# The habits of R: print, summary, coef, confint, vcov, formula, as.data.frame, and those of broom.

#' @export
print.dvim <- function(x, ...) {
  cat(sub("\n*$", "\n", x$text))
  invisible(x)
}

#' Whether a fit can be relied on
#'
#' `summary()` of a fit has the average effects with intervals and everything that a reviewer asks: the verdict, follow-up,
#' balance, heterogeneity and sensitivity, in words when it is printed and as data in its parts.
#'
#' @param object A fit.
#' @param by Average effects by subgroup too, as in [averages()].
#' @param seeds Repeat the whole analysis with so many other seeds.
#' @param threads,progress As in [dvim()].
#' @param ... Not used.
#' @return An object of class `summary.dvim`: `averages`, a data frame; `audit` and `verdict`, records as lists; `text`, what
#'   is printed.
#' @export
summary.dvim <- function(object, by = NULL, seeds = 0, threads = NULL, progress = NULL, ...) {
  found <- await(native_audit(run_of(object), bins(by), whole("seeds", seeds), threads_of(threads)), progress)
  structure(class = "summary.dvim", list(
    call = object$call, averages = averages_frame(found$averages), audit = found$audit, verdict = object$record$verdict,
    text = found$text
  ))
}

#' @export
print.summary.dvim <- function(x, ...) {
  if (!is.null(x$call)) cat("Call:\n", paste(deparse(x$call), collapse = "\n"), "\n\n", sep = "")
  cat(sub("\n*$", "\n", x$text))
  invisible(x)
}

# Average effects as R names their parts.
averages_frame <- function(records) {
  found <- records_frame(records, c("population", "estimand", "estimate", "se", "low", "high", "n_units", "n_undefined"))
  names(found) <- c("population", "term", "estimate", "std.error", "conf.low", "conf.high", "n", "n.undefined")
  found
}

# The two effects that a fit is about.
both_effects <- c("cure_effect", "time_effect")

# Averages of a population, by name.
average_of <- function(fit, population = "all", terms = both_effects) {
  found <- averages_frame(fit$record$average_effects)
  if (!population %in% found$population) {
    refuse(sprintf("there is no population `%s`", population), "averages are over populations of the fit",
           sprintf("use %s", paste(unique(found$population), collapse = ", ")))
  }
  found <- found[found$population == population, ]
  found <- found[match(terms, found$term), ]
  rownames(found) <- terms
  found
}

#' Average effects, their intervals and their variances
#'
#' `coef()` has the two average effects, `confint()` their intervals, `vcov()` their variances. The covariance of the two is
#' not estimated, so it is `NA`.
#'
#' @param object A fit.
#' @param population `"all"`, `"treated"` or `"control"`, or a subgroup of the fit.
#' @param parm Which effects: `"cure_effect"`, `"time_effect"`, or both.
#' @param level The confidence level. It is that of the fit: another one needs `update(fit, confidence = )`.
#' @param ... Not used.
#' @return A named vector; a matrix with a row for each effect; a matrix.
#' @export
coef.dvim <- function(object, population = "all", ...) {
  found <- average_of(object, population)
  stats::setNames(found$estimate, rownames(found))
}

#' @rdname coef.dvim
#' @export
confint.dvim <- function(object, parm = c("cure_effect", "time_effect"), level = object$record$options$confidence,
                         population = "all", ...) {
  own <- object$record$options$confidence
  if (!isTRUE(all.equal(level, own))) {
    refuse(sprintf("level is %s", format(level)), sprintf("the intervals of this fit are of level %s", format(own)),
           sprintf("use update(fit, confidence = %s)", format(level)))
  }
  if (is.numeric(parm)) parm <- both_effects[parm]
  found <- average_of(object, population, parm)
  ends <- sprintf("%s %%", format(100 * c((1 - own) / 2, 1 - (1 - own) / 2), trim = TRUE))
  matrix(c(found$conf.low, found$conf.high), ncol = 2, dimnames = list(parm, ends))
}

#' @rdname coef.dvim
#' @export
vcov.dvim <- function(object, population = "all", ...) {
  found <- average_of(object, population)
  out <- matrix(NA_real_, 2, 2, dimnames = list(both_effects, both_effects))
  diag(out) <- found$std.error^2
  out
}

#' @export
formula.dvim <- function(x, ...) x$formula

#' @export
nobs.dvim <- function(object, ...) nrow(object$effects)

#' Both effects of each patient
#'
#' @param x A fit.
#' @param row.names,optional,... As in [base::as.data.frame()].
#' @return A data frame with the columns of `effects.csv`, one row for each estimated patient.
#' @export
as.data.frame.dvim <- function(x, row.names = NULL, optional = FALSE, ...) {
  out <- x$effects
  if (!is.null(row.names)) rownames(out) <- row.names
  out
}

#' Average effects by subgroup
#'
#' @param fit A fit.
#' @param by Subgroups: `~ sex + grade`, `c("sex", "age:4")`, or `list(age = 4)` for four bins of equal size.
#' @param threads,progress As in [dvim()].
#' @return A data frame with a row for each estimand (`term`) and population: `estimate`, `std.error`, `conf.low`,
#'   `conf.high`, the patients it rests on (`n`) and those whose effect is undefined (`n.undefined`).
#' @examples
#' cohort <- dvim_simulate("both-overlap", n = 400, seed = 1)
#' fit <- dvim(Surv(time, event) ~ x1 + x2 + x11, data = cohort, treatment = treatment, horizon = 800)
#' averages(fit, by = ~ x2)
#' @export
averages <- function(fit, by = NULL, threads = NULL, progress = NULL) UseMethod("averages")

#' @export
averages.dvim <- function(fit, by = NULL, threads = NULL, progress = NULL) {
  if (is.null(by)) return(averages_frame(fit$record$average_effects))
  found <- await(native_audit(run_of(fit), bins(by), 0, threads_of(threads)), progress)
  averages_frame(found$averages)
}

#' How alike the arms are
#'
#' Before matching, in the groups matched for cure and for time and, under the adjusted estimator, weighted as its averages
#' weigh patients (`average`).
#'
#' @param fit A fit.
#' @return A data frame with a row for each covariate: standardised differences, variance ratios and Kolmogorov-Smirnov
#'   distances.
#' @export
balance <- function(fit) {
  found <- audit_of(fit)$balance
  if (is.null(found)) {
    refuse("this run has no balance", "balance is part of the audit, and of cohorts without case weights",
           "fit with audit = TRUE and without `weights`")
  }
  what <- c("difference", "variance_ratio", "ks")
  rows <- lapply(found$covariates, function(covariate) {
    when <- intersect(c("before", "cure", "time", "average"), names(covariate))
    parts <- lapply(when, function(w) stats::setNames(covariate[[w]][what], paste(what, w, sep = "_")))
    c(list(covariate = covariate$covariate), unlist(parts, recursive = FALSE))
  })
  records_frame(rows)
}

# The audit of a fit: as it was made, or made now.
audit_of <- function(fit) {
  found <- fit$record$audit
  if (is.null(found) || identical(found$asked, FALSE)) found <- await(native_audit(run_of(fit), NULL, 0, threads_of()))$audit
  found
}

#' The weights that balance rests on
#'
#' How often each patient is in the groups of others, for packages that assess balance: with cobalt,
#' `bal.tab(treatment ~ age + sex, data, weights = matching_weights(fit, "cure"))`.
#'
#' @param fit A fit.
#' @param metric `"cure"` or `"time"`; `NULL` gives a data frame with both.
#' @return A vector with a weight for each row of the data of the fit (0 where a patient is in no group), or, with
#'   `metric = NULL`, the data frame that `dvim audit --uses` writes.
#' @export
matching_weights <- function(fit, metric = "cure") {
  found <- await(native_uses(run_of(fit), threads_of()))
  if (is.null(found)) balance(fit)
  found <- as_frame(found)
  if (is.null(metric)) return(found)
  column <- grep(paste0("^", word("metric", metric, c("cure", "time"))), names(found), value = TRUE)[[1]]
  if (is.null(fit$ids)) return(stats::setNames(found[[column]], found$id))
  out <- found[[column]][match(fit$ids, as.character(found$id))]
  ifelse(is.na(out), 0, out)
}

#' @importFrom generics tidy
#' @export
generics::tidy

#' @importFrom generics glance
#' @export
generics::glance

#' @importFrom generics augment
#' @export
generics::augment

#' A fit as data frames
#'
#' `tidy()` has a row for each average effect, `glance()` one row for the fit, `augment()` the data with both effects of each
#' patient beside them, in columns that begin with a dot.
#'
#' @param x A fit.
#' @param population,by Populations to keep, all if `NULL`; subgroups, as in [averages()].
#' @param conf.int Whether to add the interval.
#' @param data The data of the fit.
#' @param ... Not used.
#' @return A data frame; a tibble where package tibble is there.
#' @name tidiers
NULL

tibble_of <- function(frame) {
  if (requireNamespace("tibble", quietly = TRUE)) tibble::as_tibble(frame) else frame
}

#' @rdname tidiers
#' @export
tidy.dvim <- function(x, conf.int = TRUE, population = "all", by = NULL, ...) {
  found <- averages(x, by)
  own <- unlist(lapply(x$record$average_effects, function(a) a$population))
  if (!is.null(population)) found <- found[found$population %in% population | !found$population %in% own, ]
  found <- found[found$term %in% both_effects, ]
  keep <- c("term", "population", "estimate", "std.error", if (conf.int) c("conf.low", "conf.high"), "n")
  rownames(found) <- NULL
  tibble_of(found[keep])
}

# How far the data support an effect: "well", or less.
verdict_of <- function(record, effect) {
  found <- record$verdict[[effect]]$support
  if (is.null(found)) NA_character_ else found
}

#' @rdname tidiers
#' @export
glance.dvim <- function(x, ...) {
  record <- x$record
  counts <- record$counts
  both <- function(name) counts$treated[[name]] + counts$control[[name]]
  size <- if (record$options$estimator == "adjusted") record$adjusted$group_size else record$options$group_size
  size <- unlist(size)
  tibble_of(data.frame(
    estimator = record$options$estimator, horizon = record$horizon, nobs = both("n_units"),
    n.treated = counts$treated$n_units, n.control = counts$control$n_units, n.events = both("n_events"),
    n.estimated = nrow(x$effects), group.size = if (length(size)) size[[1]] else NA_real_,
    cure.verdict = verdict_of(record, "cure_effect"), time.verdict = verdict_of(record, "time_effect"),
    seed = record$options$seed, conf.level = record$options$confidence, version = record$version
  ))
}

#' @rdname tidiers
#' @export
augment.dvim <- function(x, data = x$data, ...) {
  if (is.null(data) || is.null(x$ids)) {
    refuse("this fit has no data", "effects are put beside the data of the fit", "pass `data`, or merge with fit$effects by id")
  }
  if (nrow(data) != length(x$ids)) {
    refuse(sprintf("the data have %d rows, and the fit has %d", nrow(data), length(x$ids)),
           "effects are put beside the data of the fit", "use predict() for new patients")
  }
  found <- x$effects[match(x$ids, as.character(x$effects$id)), setdiff(names(x$effects), c("id", "treatment"))]
  names(found) <- paste0(".", names(found))
  rownames(found) <- NULL
  tibble_of(cbind(as.data.frame(data), found))
}

#' Both effects of new patients
#'
#' Of patients who were not in the cohort. They need the covariates of the fit under the same names.
#'
#' @param object A fit.
#' @param newdata A data frame; without it, the effects of the cohort.
#' @param id The column that names the new patients; by default one of the name that the cohort's has.
#' @param max_distance No estimate for a patient one of whose groups reaches farther.
#' @param groups `TRUE` gives the members of the match groups of each patient, one row each.
#' @param threads,progress As in [dvim()].
#' @param ... Not used.
#' @return A data frame with the columns of `fit$effects`, in the order of `newdata`.
#' @export
predict.dvim <- function(object, newdata = NULL, id = NULL, max_distance = NULL, groups = FALSE, threads = NULL,
                         progress = NULL, ...) {
  if (is.null(newdata)) return(object$effects)
  run <- run_of(object)
  columns <- if (is.null(object$terms)) lapply_named(as.data.frame(newdata)) else frame_of_new(object, newdata)
  usual <- if (is.null(id)) native_id_of_new(run, NULL) else id
  chosen <- if (is.null(usual)) character() else names(newdata)[tolower(names(newdata)) == tolower(usual)]
  if (!is.null(id) && !length(chosen)) {
    refuse(sprintf("the new data have no column `%s`", id), "ids are a column of the new data", "see names(newdata)",
           code = "no_such_column")
  }
  chosen <- if (length(chosen)) chosen[[1]]
  if (!is.null(chosen)) columns[[chosen]] <- plain_column(newdata[[chosen]], chosen)
  found <- await(native_predict(run, columns, chosen, max_distance, isTRUE(groups), threads_of(threads)), progress)
  for (why in c("a group reaches beyond max_distance", "too few candidates satisfy the constraints of the run")) {
    n <- if (startsWith(why, "a group")) found$n_far else found$n_unserved
    if (n > 0) {
      warn(list(list(code = "no_estimate", severity = "warning", column = NULL, count = n, rows = list(),
                     found = sprintf("%d patients have no estimate: %s", as.integer(n), why),
                     rule = "nobody is given an estimate that the cohort cannot support", remedy = "see the column flags")))
    }
  }
  if (found$n_outside > 0) {
    warn(list(list(code = "off_support", severity = "warning", column = NULL, count = found$n_outside, rows = list(),
                   found = sprintf("%d patients have a value outside what the cohort has seen, in: %s",
                                   as.integer(found$n_outside), paste(found$outside, collapse = ", ")),
                   rule = "a patient can only be compared with patients; these estimates are extrapolations",
                   remedy = "see the column flags")))
  }
  if (isTRUE(groups)) return(as_frame(found$members))
  out <- as_frame(found$effects)
  out$treatment <- NULL
  if (.row_names_info(newdata) > 0) rownames(out) <- rownames(newdata)
  out
}

lapply_named <- function(data) {
  stats::setNames(lapply(names(data), function(n) plain_column(data[[n]], n)), names(data))
}

#' @export
print.dvim_several <- function(x, ...) {
  cat(sub("\n*$", "\n", x$text))
  invisible(x)
}

#' Several fits
#'
#' Imputed data sets (`dvim_pooled`) and several arms (`dvim_arms`) are lists of fits: `x[["Lev"]]` is the fit of an arm.
#' @param x,fit,object Several fits.
#' @param i Which fit, by name or number.
#' @param by,threads,progress,... Not used.
#' @return A fit; averages as a data frame.
#' @name several
NULL

#' @rdname several
#' @export
`[[.dvim_several` <- function(x, i) {
  fits <- .subset2(x, "fits")
  if (is.character(i) && !i %in% names(fits)) {
    refuse(sprintf("there is no fit `%s`", i), "a fit is named by its arm or its data set",
           sprintf("use %s", paste(names(fits), collapse = ", ")))
  }
  fits[[i]]
}

#' @export
`$.dvim_several` <- function(x, name) .subset2(x, name)

#' @rdname several
#' @export
names.dvim_several <- function(x) names(.subset2(x, "fits"))

#' @export
length.dvim_several <- function(x) length(.subset2(x, "fits"))

#' @rdname several
#' @export
averages.dvim_several <- function(fit, by = NULL, threads = NULL, progress = NULL) {
  found <- fit$averages
  new <- c(estimand = "term", se = "std.error", low = "conf.low", high = "conf.high", n_units = "n")
  hit <- names(found) %in% names(new)
  names(found)[hit] <- new[names(found)[hit]]
  found
}

#' @rdname several
#' @export
tidy.dvim_several <- function(x, ...) tibble_of(averages(x))

#' @rdname several
#' @export
coef.dvim_several <- function(object, ...) {
  found <- averages(object)
  if (is.null(found$arm)) found <- found[found$population == "all", ]
  found <- found[found$term %in% both_effects, ]
  stats::setNames(found$estimate, if (is.null(found$arm)) found$term else paste(found$arm, found$term, sep = ":"))
}

#' @export
as.data.frame.dvim_pooled <- function(x, row.names = NULL, optional = FALSE, ...) x$effects
