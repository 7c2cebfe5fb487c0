#' Does treatment change whether the event happens, and when?
#'
#' Estimates, for each patient, the *cure effect* (how much treatment changes the probability of being event-free at the
#' horizon) and the *time effect* (how much it changes the mean event time of those who have the event before it), by
#' double variable importance matching.
#'
#' @param formula The outcome and the covariates: `Surv(time, status) ~ age + sex`. With delayed entry
#'   `Surv(entry, time, status)`; with competing events a factor whose first level is censoring,
#'   `Surv(time, cause)`, and `cause`. A dot means every other column of `data`. `strata(x)` makes `x` a covariate that
#'   match groups agree on exactly, `cluster(x)` gives clusters. Factors, logicals and text are categories; functions such
#'   as `log(x)` are allowed, interactions are not, because the models find those with treatment by themselves.
#' @param data A data frame, tibble or data.table with one row for each patient; a list of them, or a `mids` object of
#'   package mice, holds imputed data sets, which are analysed one by one and pooled by Rubin's rules.
#' @param treatment The column of the arms, as in `treatment = rx`; also a text or a formula with one side. Of a factor with
#'   two levels the first is control, as everywhere in R. A factor with more levels is compared level by level with its
#'   first, unless `treated` and `control` choose two.
#' @param horizon The horizon H, in the unit of the times. It defines what is estimated, so it has no default.
#' @param id The column that names patients. By default the column `id` if there is one, else row names that are not
#'   plain numbers, else row numbers. Together with `seed`, ids decide who trains and who is estimated.
#' @param treated,control Which values of the treatment mean treated and control; with both, rows of any other arm are left
#'   out and counted. `treated = "all"` compares every arm with `control`.
#' @param weights,cluster Columns: case weights; clusters, by which standard errors are then.
#' @param cause Which of several causes is of interest.
#' @param numeric,categorical Covariates that are numbers, or categories, whatever they look like.
#' @param allow Covariates to take although they look like an outcome, an identifier, a code for unknown values or a mistake;
#'   `"duplicates"` where rows may repeat each other.
#' @param labels What the arms, the time, the event and the covariates are called: `list(time_unit = "days", treated =
#'   "chemotherapy", event = "relapse", covariates = list(age = "Age [years]"))`. Kept in the run; changes no number.
#' @param imputation The data hold imputed data sets one below the other: the name of the column that numbers them, such
#'   as `".imp"`.
#' @param subset Which rows to use, as in [stats::lm()].
#' @param where Keep only rows in which each of these columns has this value: `list(etype = 1)`. Unlike `subset`, rows left
#'   out are counted in the record of the run.
#' @param missing Rows with missing values: `"refuse"`, `"drop"`, or `"indicator"` (fill in, and match on having done so).
#' @param na.action For the habit of it: `na.omit` means `missing = "drop"`, `na.fail` means `missing = "refuse"`.
#' @param zero_time Times of zero: `"refuse"`, `"drop"` or `"shift"` (half of the smallest positive time).
#' @param estimator `"adjusted"`: a model learned from other patients (cross-fitted), corrected by the patients most like
#'   this one; every patient is estimated. `"paper"`: the paper's Algorithm 1, in which some patients train and, for each
#'   of the others, the `group_size` most similar patients of each arm give both effects alone.
#' @param group_size K: patients of each arm in each match group. Chosen from the data (`"auto"`), or 50 with
#'   `estimator = "paper"`.
#' @param splits,folds,latency,learners,penalty Of the adjusted estimator: honest splits in all (by default the cross-fit is
#'   repeated ten times up to 2,000 patients, less often for more, once from 15,000); folds of one cross-fit (10); the
#'   distribution of the event times, `"auto"`, `"log-normal"`, `"weibull"`, `"log-logistic"` or `"generalised-gamma"`; what
#'   curves are learned by, `"all"` (a cure model, and proportional and boosted hazards as far as they predict better),
#'   `"cure"`, `"hazards"` or `"boosted"` alone; what holds the slopes of its models, `"prior"`, `"ridge"`, `"elastic-net"` or
#'   the share of the norm in an elastic net.
#' @param train_fraction,metric,scale Of the paper's estimator: share of each arm that trains; `"separate"` or
#'   `"combined"`; `"standard"` or `"none"`.
#' @param seed Seed of the honest splits. The same seed gives the same bits, on any number of threads.
#' @param exact,caliper,exclude_self Covariates that groups must agree on; largest differences, `c(age = 5)` or
#'   `c(age = "0.2sd")`; keep a patient out of the patient's own group, which the adjusted estimator always does.
#' @param confidence Level of every interval.
#' @param by Average effects by subgroup too: `~ sex`, `c("sex", "age:4")` or `list(age = 4)` (bins of equal size).
#' @param audit `FALSE` gives the effects alone, sooner: no standard errors of averages, no balance, no verdict.
#' @param threads Threads to use, all cores by default; see also `options(dvim.threads = )`. The result is the same with any
#'   number.
#' @param progress `FALSE` shows nothing; a function is called with the stage, the steps done and their number. By default
#'   a line in the console of an interactive session, once the call has taken more than a second.
#'
#' @return An object of class `dvim`. Print it for the answer, the verdict and what to do about it. Its parts:
#'   `effects`, both effects of each patient (the columns of `effects.csv`); `weights`, the weight of each covariate in each
#'   metric; `record`, everything about the run (`summary.json`) as a list; `call`, `formula`, `terms`, `horizon`.
#'   With imputed data sets a `dvim_pooled`, with several arms a `dvim_arms`: lists of fits, with averages of their own.
#'
#' @section Errors: Bad input raises a condition of class `dvim_refused` whose `problems` is a data frame with the column,
#'   the rows, the rule and the remedy of everything that is wrong. All conditions are of class `dvim_error`. What is worth
#'   knowing comes as warnings of class `dvim_warning`.
#'
#' @seealso [averages()], [matches()], [curves()], [predict.dvim()], [plot.dvim()], [dvim_report()], [dvim_save()],
#'   [dvim_check()].
#' @examples
#' cohort <- dvim_simulate("both-overlap", n = 400, seed = 1)
#' fit <- dvim(Surv(time, event) ~ x1 + x2 + x11, data = cohort, treatment = treatment, horizon = 800)
#' fit
#' coef(fit)
#' head(fit$effects[, 1:4])
#' @export
dvim <- function(formula, data = NULL, treatment, horizon, id = NULL, treated = NULL, control = NULL, weights = NULL,
                 cluster = NULL, cause = NULL, numeric = NULL, categorical = NULL, allow = NULL, labels = NULL,
                 imputation = NULL, subset = NULL, where = NULL, missing = "refuse", na.action = NULL, zero_time = "refuse", estimator = "adjusted",
                 group_size = NULL, splits = NULL, folds = NULL, latency = "auto", learners = "all",
                 penalty = "prior", train_fraction = 0.35, metric = "separate", scale = "standard", seed = 1, exact = NULL,
                 caliper = NULL, exclude_self = FALSE, confidence = 0.95, by = NULL, audit = TRUE, threads = NULL, progress = NULL) {
  call <- match.call()
  env <- parent.frame()
  given <- given_of(environment())
  several <- imputed_frames(data)
  frames <- lapply(if (is.null(several)) list(data) else several,
                   function(d) frame_of(formula, d, call, env, given))
  frame <- frames[[1]]
  asked <- asked_of(frame, given)
  threads <- threads_of(threads)
  audit <- isTRUE(audit)
  by <- bins(by)
  if (!native_asks_for_several(as.numeric(length(frames)), imputation, asked$roles)) {
    found <- await(native_fit(frame$columns, frame$id$name, frame$kind, asked$roles, asked$options, by, audit, threads),
                   progress)
    warn(found$warnings)
    warn_verdict(found$verdict)
    return(new_dvim(found, call, formula, frame))
  }
  names <- if (is.null(several)) frame$kind else sprintf("data set %d", seq_along(frames))
  found <- await(native_fit_several(lapply(frames, `[[`, "columns"), frame$id$name, frame$kind, names, imputation,
                                    asked$roles, asked$options, by, audit, threads), progress)
  warn(found$warnings)
  for (note in unlist(found$notes)) {
    warn(list(list(code = "note", severity = "warning", column = NULL, count = 0, rows = list(), found = note,
                   rule = "what was not asked for is said", remedy = "nothing needs to be done")))
  }
  new_several(found, call, formula, if (is.null(imputation)) frames else NULL)
}

# The values of the arguments of a call of dvim(), but for those that name columns.
given_of <- function(env) {
  unquoted <- c("data", "treatment", "weights", "cluster", "id", "subset", "threads", "progress", "audit", "formula")
  names <- setdiff(names(formals(dvim)), unquoted)
  if (eval(quote(missing(horizon)), env)) {
    refuse("no horizon was given", "the horizon defines what is estimated, so it has no default",
           "add horizon = , in the unit of the times")
  }
  given <- mget(names, envir = env)
  if (!is.null(given$na.action)) given$missing <- missing_of(given$na.action)
  given
}

# What a function of R's does with missing values, as dvim says it.
missing_of <- function(action) {
  if (is.character(action)) action <- get(action, envir = asNamespace("stats"), mode = "function")
  if (identical(action, stats::na.omit) || identical(action, stats::na.exclude)) return("drop")
  if (identical(action, stats::na.fail) || identical(action, stats::na.pass)) return("refuse")
  refuse("na.action is a function of another kind", "missing values are refused, dropped or marked",
         'use missing = "refuse", "drop" or "indicator"')
}

# Imputed data sets: a list of data frames, or what mice made. NULL for one table.
imputed_frames <- function(data) {
  if (inherits(data, "mids")) {
    complete <- getExportedValue("mice", "complete")
    return(lapply(seq_len(data$m), function(i) complete(data, i)))
  }
  if (!is.list(data) || is.data.frame(data)) return(NULL)
  if (!length(data) || !all(vapply(data, is.data.frame, NA))) {
    refuse("data is a list, and not one of data frames", "a list holds imputed data sets", "pass a data frame, or several",
           code = "bad_imputation")
  }
  unname(data)
}

# What is asked of the engine: roles and options.
asked_of <- function(frame, given) {
  given$exact <- unique(c(unlist(columns_named(given$exact)), frame$strata))
  if (is.null(given$treated) && is.null(given$control) && is.factor(frame$treatment)) {
    # The first level is the reference.
    there <- levels(droplevels(frame$treatment))
    if (length(there) == 2) given$treated <- there[[2]]
    if (length(there) > 2) given$treated <- "all"
    if (length(there) >= 2) given$control <- there[[1]]
  }
  roles <- roles_record(frame$roles, given)
  options <- options_record(given)
  value_of(native_refuse_idle(options, unusual(given)))
  list(roles = roles, options = options)
}

# A fit, of what the engine found.
new_dvim <- function(found, call = NULL, formula = NULL, frame = NULL) {
  ids <- if (is.null(frame)) NULL else id_texts(if (is.null(frame$id)) seq_along(frame$columns[[1]]) else frame$id$values)
  structure(class = "dvim", list(
    effects = as_frame(found$effects), weights = as_frame(found$weights), record = found$summary,
    horizon = found$summary$horizon, call = call, formula = formula, terms = frame$terms, strata = frame$strata,
    data = frame$data, ids = ids, text = found$text, card = found$card, run = found$run
  ))
}

# Several fits, and what they say together.
new_several <- function(found, call = NULL, formula = NULL, frames = NULL) {
  of_arms <- is.null(found$effects)
  members <- found$summary$runs
  frame <- function(i) if (is.null(frames)) NULL else frames[[if (of_arms) 1 else i]]
  fits <- lapply(seq_along(members), function(i) {
    new_dvim(await(native_run_of(found$several, i - 1, threads_of())), call, formula, frame(i))
  })
  names(fits) <- vapply(members, function(m) m$name, "")
  structure(class = c(if (of_arms) "dvim_arms" else "dvim_pooled", "dvim_several"), list(
    fits = fits, averages = as_frame(found$averages), effects = if (!of_arms) as_frame(found$effects),
    record = found$summary, call = call, formula = formula, text = found$text, card = found$card, several = found$several
  ))
}

# The engine's side of a fit. It does not outlive the session.
run_of <- function(fit, what = "run") {
  pointer <- .subset2(fit, what)
  if (native_is_gone(pointer)) {
    stop(condition_of(list(class = "gone", more = list(), words = paste0(
      "this fit came from another session, and what the engine held of it is gone\n",
      "  rule:   saveRDS() keeps effects, averages and the record; groups, curves and predictions need the run itself\n",
      "  remedy: use dvim_save() and dvim_open(), or fit again with update()"))))
  }
  pointer
}

#' @importFrom survival Surv
#' @export
survival::Surv

#' @importFrom survival survfit
#' @export
survival::survfit
