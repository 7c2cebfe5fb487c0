#' The patients behind a number
#'
#' The patients most like one patient, nearest first, under each of the two metrics. They correct the estimate of the model;
#' with `estimator = "paper"` they give it alone.
#'
#' @param fit A fit.
#' @param id The patient.
#' @param ... Not used.
#' @return An object of class `dvim_matches`. Print it to read about the patient; `as.data.frame()` has the members of all
#'   groups, with `matched_for` (`"cure"` or `"time"`), `arm`, `rank`, distance, outcome, covariates and the share of each
#'   covariate in the squared distance (`share_`); `record` is everything as a list. `plot()` draws the patient's curves.
#' @examples
#' cohort <- dvim_simulate("both-overlap", n = 400, seed = 1)
#' fit <- dvim(Surv(time, event) ~ x1 + x2 + x11, data = cohort, treatment = treatment, horizon = 800)
#' m <- matches(fit, 17)
#' head(as.data.frame(m)[, 1:7])
#' @export
matches <- function(fit, id, ...) UseMethod("matches")

#' @export
matches.dvim <- function(fit, id, ...) {
  if (length(id) != 1 || is.na(id)) {
    refuse(sprintf("id is %s", deparse1(id)), "the groups of one patient are shown at a time", "give one id")
  }
  found <- await(native_matches(run_of(fit), label(id), TRUE, threads_of()))
  structure(class = "dvim_matches", list(id = id, record = found$record, text = found$text, fit = fit))
}

#' @export
print.dvim_matches <- function(x, ...) {
  cat(sub("\n*$", "\n", x$text))
  invisible(x)
}

#' @export
as.data.frame.dvim_matches <- function(x, row.names = NULL, optional = FALSE, ...) {
  group <- function(for_what, field, arm) {
    members <- x$record[[field]][[arm]]$members
    lapply(seq_along(members), function(rank) {
      m <- members[[rank]]
      shares <- m$shares
      names(shares) <- paste0("share_", names(shares), recycle0 = TRUE)
      c(list(matched_for = for_what, arm = arm, rank = rank), m[c("id", "distance", "time", "event", "counts")],
        m$covariates, shares)
    })
  }
  rows <- c(group("cure", "cure", "treated"), group("cure", "cure", "control"),
            group("time", "time_groups", "treated"), group("time", "time_groups", "control"))
  out <- records_frame(rows)
  out$id <- plain_texts(out$id)
  out
}

#' Curves
#'
#' `curves()` has survival had all patients of a population been in one arm, adjusted for the covariates, and the difference
#' of the arms, with limits at each time and limits of the whole curve. With `patients`, survival of each of them in either
#' arm. `survfit()` gives the curves of the arms as an object that `plot()` of package survival, `survminer::ggsurvplot()`
#' and `ggsurvfit::ggsurvfit()` draw.
#'
#' @param fit A fit.
#' @param patients Ids, or `"all"`.
#' @param at Times from 0 to the horizon; without them those at which curves are held.
#' @param by Subgroups, as in [averages()].
#' @param formula A fit, too: the name is that of the generic.
#' @param adjusted `FALSE` gives the Kaplan-Meier curves of the arms as they are.
#' @param ... Not used.
#' @return A data frame of class `dvim_curves`; an object of class `survfit`.
#' @export
curves <- function(fit, patients = NULL, at = NULL, by = NULL, ...) UseMethod("curves")

#' @export
curves.dvim <- function(fit, patients = NULL, at = NULL, by = NULL, ...) {
  if (!is.null(patients)) patients <- vapply(patients, label, "", USE.NAMES = FALSE)
  found <- await(native_curves(run_of(fit), patients, if (!is.null(at)) as.numeric(at), bins(by), threads_of()))
  if (!is.null(found$left_out)) {
    warn(list(list(code = "no_curve", severity = "warning", column = NULL, count = 0, rows = list(), found = found$left_out,
                   rule = "a patient with an estimate has curves", remedy = "fit$effects has a flag that says why")))
  }
  out <- as_frame(found$curves)
  class(out) <- c("dvim_curves", "data.frame")
  attr(out, "horizon") <- fit$horizon
  out
}

# The Kaplan-Meier curves of the arms, as they are.
arm_curves <- function(fit) {
  as_frame(await(native_arm_curves(run_of(fit), fit$record$options$confidence, threads_of())))
}

# The labels of the arms, control first.
arm_labels <- function(fit) {
  labels <- fit$record$roles$labels
  c(control = label(labels$control), treated = label(labels$treated))
}

#' @rdname curves
#' @importFrom survival survfit
#' @export
survfit.dvim <- function(formula, adjusted = TRUE, ...) {
  fit <- formula
  raw <- arm_curves(fit)
  labels <- arm_labels(fit)
  one <- function(arm) {
    r <- raw[raw$arm == arm, ]
    if (!adjusted) {
      # Before the first event the object of survival has a standard error of 0.
      r$se[is.na(r$se) & r$survival == 1] <- 0
      return(data.frame(time = r$time, n.risk = r$n_at_risk, n.event = r$n_events, n.censor = r$n_censored,
                        surv = r$survival, lower = r$low, upper = r$high, se = r$se))
    }
    s <- curves(fit)
    s <- s[s$population == "all" & s$arm == arm & s$time > 0, ]
    # Numbers at risk are those of the arm as it is.
    at <- findInterval(s$time, r$time, left.open = TRUE) + 1
    before <- findInterval(s$time, r$time)
    count <- function(x) diff(c(0, c(0, cumsum(x))[before + 1]))
    data.frame(time = s$time, n.risk = c(r$n_at_risk, 0)[at], n.event = count(r$n_events),
               n.censor = count(r$n_censored), surv = s$survival, lower = s$low, upper = s$high, se = s$se)
  }
  parts <- lapply(names(labels), one)
  all <- do.call(rbind, parts)
  strata <- stats::setNames(vapply(parts, nrow, 1L), paste0("arm=", labels))
  counts <- fit$record$counts
  structure(class = "survfit", list(
    n = c(counts$control$n_units, counts$treated$n_units), time = all$time, n.risk = all$n.risk, n.event = all$n.event,
    n.censor = all$n.censor, surv = all$surv, std.err = all$se / all$surv, lower = all$lower, upper = all$upper,
    strata = strata, type = "right", logse = TRUE, conf.int = fit$record$options$confidence, conf.type = "plain",
    call = fit$call
  ))
}
