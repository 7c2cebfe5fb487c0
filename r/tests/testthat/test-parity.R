# R and the command give the same bits, over the options of both.

simulated <- c("--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", "800")
all_x <- paste0("x", 1:20)
every <- reformulate(all_x, response = quote(Surv(time, event)))
flags <- function(...) c(simulated, "--covariates", paste(all_x, collapse = ","), ...)

expect_parity <- function(data, fit, ...) {
  place <- tempfile("parity-")
  dir.create(place)
  table <- write_csv(data, file.path(place, "cohort.csv"))
  command("fit", table, ..., "-o", file.path(place, "command"))
  dvim_save(fit(), file.path(place, "r"))
  expect_same_run(file.path(place, "r"), file.path(place, "command"))
}

test_that("the paper's estimator", {
  d <- small()
  expect_parity(d, function() dvim(every, d, treatment, 800, estimator = "paper"), flags("--estimator", "paper"))
})

test_that("size, seed and share", {
  d <- small()
  fit <- function() {
    dvim(every, d, treatment, 500, estimator = "paper", group_size = 35, seed = 7, train_fraction = 0.5)
  }
  expect_parity(d, fit, sub("^800$", "500", flags("--estimator", "paper", "-k", "35", "--seed", "7", "--train-fraction", "0.5")))
})

test_that("raw covariates and a combined metric", {
  d <- small()
  fit <- function() dvim(every, d, treatment, 800, estimator = "paper", metric = "combined", scale = "none", confidence = 0.8)
  expect_parity(d, fit, flags("--estimator", "paper", "--metric", "combined", "--scale", "none", "--confidence", "0.8"))
})

test_that("constraints, as arguments and as strata()", {
  d <- small()
  fit <- function() {
    dvim(every, d, treatment, 800, estimator = "paper", group_size = 5, exact = "x2",
         caliper = c(x11 = "1.5sd", x12 = 3), exclude_self = TRUE)
  }
  asked <- flags("--estimator", "paper", "-k", "5", "--exact", "x2", "--caliper", "x11=1.5sd", "--caliper", "x12=3",
                 "--exclude-self")
  expect_parity(d, fit, asked)
  a <- dvim(Surv(time, event) ~ x1 + strata(x2), d, treatment, 800, estimator = "paper", group_size = 5)
  b <- dvim(Surv(time, event) ~ x1 + x2, d, treatment, 800, estimator = "paper", group_size = 5, exact = ~ x2)
  expect_identical(a$effects, b$effects)
})

test_that("weights, clusters and delayed entry", {
  d <- further()
  f <- update(every, Surv(late, time, event) ~ .)
  fit <- function() dvim(f, d, treatment, 800, estimator = "paper", group_size = 20, weights = w, cluster = site)
  asked <- flags("--estimator", "paper", "-k", "20", "--weights", "w", "--cluster", "site", "--entry", "late")
  expect_parity(d, fit, asked)
  with_cluster <- update(f, . ~ . + cluster(site))
  same <- dvim(with_cluster, d, treatment, 800, estimator = "paper", group_size = 20, weights = w)
  expect_identical(same$effects, fit()$effects)
})

test_that("one of several causes", {
  d <- further()
  fit <- function() {
    dvim(update(every, Surv(time, why) ~ .), transform(d, why = factor(why)), treatment, 800, estimator = "paper",
         group_size = 20, cause = 1)
  }
  expect_parity(d, fit, sub("^event$", "why", flags("--estimator", "paper", "-k", "20", "--cause", "1")))
})

test_that("without an audit", {
  d <- small()
  expect_parity(d, function() dvim(every, d, treatment, 800, estimator = "paper", audit = FALSE),
                flags("--estimator", "paper", "--no-audit"))
})

test_that("the adjusted estimator, with all that it takes", {
  d <- small()
  fit <- function() dvim(every, d, treatment, 800, folds = 3, latency = "weibull", group_size = 30, penalty = 0.3, splits = 3)
  asked <- flags("--folds", "3", "--latency", "weibull", "-k", "30", "--penalty", "elastic-net:0.3", "--splits", "3")
  expect_parity(d, fit, asked)
})

test_that("learners, and a column that looks like an identifier", {
  d <- small()
  d$number <- seq_len(nrow(d))
  fit <- function(...) dvim(Surv(time, event) ~ x1 + x2 + number, d, treatment, 800, folds = 3, learners = "cure", ...)
  expect_error(fit(), 'allow = "number"', class = "dvim_refused")
  expect_parity(d, function() fit(allow = "number"), simulated, "--covariates", "x1,x2,number", "--folds", "3", "--learners",
                "cure", "--allow", "number")
})

test_that("the defaults", {
  d <- small(400)
  fit <- function() dvim(Surv(time, event) ~ x1 + x2 + x11, d, treatment, 800)
  expect_parity(d, fit, simulated, "--covariates", "x1,x2,x11")
})

test_that("a group size that is chosen, and subgroups", {
  d <- small()
  fit <- function() {
    dvim(Surv(time, event) ~ x1 + x2 + x11, d, treatment, 800, group_size = "auto", folds = 3, splits = 5,
         by = c("x2", "x11:3"))
  }
  expect_parity(d, fit, simulated, "--group-size", "auto", "--folds", "3", "--splits", "5", "--covariates", "x1,x2,x11",
                "--by", "x2", "--by", "x11:3")
})

untidy_flags <- c("--time", "time", "--event", "event", "--treatment", "arm", "--horizon", "800", "--id", "patient",
                  "--treated", "Lev+5FU", "--control", "Lev", "--where", "etype=1", "--zero-time", "shift", "--estimator",
                  "paper", "-k", "15", "--covariates", "x1,x2,x11,sex,grade", "--categorical", "grade")
untidy_fit <- function(d, ...) {
  given <- list(Surv(time, event) ~ x1 + x2 + x11 + sex + grade, quote(d), quote(arm), 800, id = quote(patient),
                treated = "Lev+5FU", control = "Lev", where = list(etype = 1), zero_time = "shift", estimator = "paper",
                group_size = 15, categorical = "grade")
  given[...names()] <- list(...)
  d$grade <- factor(d$grade)
  suppressWarnings(eval(as.call(c(quote(dvim), given))))
}

test_that("an untidy table: arms, filters, gaps, categories", {
  d <- untidy()
  expect_parity(d, function() untidy_fit(d, missing = "indicator"), untidy_flags, "--missing", "indicator")
  expect_parity(d, function() untidy_fit(d, missing = "drop"), untidy_flags, "--missing", "drop")
})

test_that("every arm against one control", {
  d <- untidy()
  d <- d[d$etype == 1 & !is.na(d$x11) & d$time > 0, ]
  rownames(d) <- NULL
  fit <- function() {
    dvim(Surv(time, event) ~ x1 + x2 + x11, d, arm, 800, id = patient, treated = "all", control = "Obs",
         estimator = "paper", group_size = 15)
  }
  asked <- c("--time", "time", "--event", "event", "--treatment", "arm", "--horizon", "800", "--id", "patient", "--treated",
             "all", "--control", "Obs", "--estimator", "paper", "-k", "15", "--covariates", "x1,x2,x11")
  expect_parity(d, fit, asked)
  # A factor says the same: its first level is the reference.
  of_factor <- dvim(Surv(time, event) ~ x1 + x2 + x11, transform(d, arm = factor(arm, c("Obs", "Lev", "Lev+5FU"))), arm, 800,
                    id = patient, estimator = "paper", group_size = 15)
  expect_s3_class(of_factor, "dvim_arms")
  expect_identical(averages(of_factor), averages(fit()))
  expect_identical(of_factor[["Lev"]]$effects, fit()[["Lev"]]$effects)
})

test_that("imputed data sets are pooled", {
  d <- small(400)
  long <- do.call(rbind, lapply(1:3, function(m) {
    gap <- seq_len(nrow(d)) %% 7 == 0
    transform(d, x11 = x11 + ifelse(gap, m / 10, 0), m = m)
  }))
  rownames(long) <- NULL
  fit <- function() {
    dvim(Surv(time, event) ~ x1 + x2 + x11, long, treatment, 800, imputation = "m", estimator = "paper", group_size = 20)
  }
  expect_parity(long, fit, simulated, "--covariates", "x1,x2,x11", "--imputation", "m", "--estimator", "paper", "-k", "20")
  sets <- lapply(1:3, function(m) long[long$m == m, setdiff(names(long), "m")])
  listed <- dvim(Surv(time, event) ~ x1 + x2 + x11, sets, treatment, 800, estimator = "paper", group_size = 20)
  expect_s3_class(listed, "dvim_pooled")
  expect_identical(averages(listed), averages(fit()))
})

test_that("prediction, groups, audit, curves and simulation are those of the command", {
  d <- small(500)
  fit <- dvim(Surv(time, event) ~ x1 + x2 + x11, d, treatment, 800, folds = 3, splits = 3)
  run <- dvim_save(fit, new_path("run"))
  new <- dvim_simulate("both-overlap", n = 40, seed = 99)
  table <- write_csv(new, tempfile(fileext = ".csv"))
  out <- tempfile(fileext = ".csv")
  command("predict", run, table, "-o", out)
  written <- utils::read.csv(out)
  found <- predict(fit, new)
  for (name in c("id", "cure_effect", "time_effect", "cure_effect_low", "time_effect_high", "cure_diameter_treated")) {
    expect_identical(as.numeric(found[[name]]), as.numeric(written[[name]]), label = name)
  }
  m <- matches(fit, 17)
  expect_identical(trimws(command("match", run, "17", "--all"), "right"), trimws(m$text, "right"))
  csv <- utils::read.csv(text = command("curves", run))
  expect_identical(csv$survival, curves(fit)$survival)
  drawn <- tempfile(fileext = ".csv")
  command("simulate", "--scenario", "cure-only", "--n", "200", "--seed", "4", "--confounded", "-o", drawn)
  expect_equal(utils::read.csv(drawn), dvim_simulate("cure-only", 200, 4, confounded = TRUE), tolerance = 0)
  compared <- dvim_save(dvim_compare(Surv(time, event) ~ x1 + x2 + x11, d, treatment, 800, group_size = 20), new_path("cmp"))
  other <- tempfile("cmp")
  command("compare", write_csv(d, tempfile(fileext = ".csv")), simulated, "--covariates", "x1,x2,x11", "-k", "20", "-o", other)
  for (file in c("effects.csv", "summary.csv", "correlations.csv", "averages.csv")) {
    expect_identical(bytes(file.path(compared, file)), bytes(file.path(other, file)), label = file)
  }
})

test_that("runs go from the command to R and back", {
  d <- small(400)
  run <- tempfile("run")
  command("fit", write_csv(d, tempfile(fileext = ".csv")), simulated, "--covariates", "x1,x2,x11", "-o", run)
  opened <- dvim_open(run)
  fit <- dvim(Surv(time, event) ~ x1 + x2 + x11, d, treatment, 800)
  expect_identical(opened$effects, fit$effects)
  expect_identical(averages(opened), averages(fit))
  expect_identical(opened$text, fit$text)
  new <- dvim_simulate("both-overlap", n = 20, seed = 5)
  expect_identical(predict(opened, new), predict(fit, new))
  copy <- dvim_save(opened, new_path("copy"))
  expect_same_run(copy, run)
  mine <- dvim_save(fit, new_path("mine"))
  expect_match(command("match", mine, "17"), "17")
})

test_that("arguments are the settings of the engine", {
  all <- dvim:::settings()
  topic <- vapply(all, function(s) s$topic, "")
  # What the formula says, and what becomes of the result.
  said <- c("time", "start", "end", "event", "censor", "entry", "covariates", "drop", "ties")
  expected <- c(setdiff(names(all)[topic != "command"], said), "by", "audit", "threads")
  own <- c("formula", "data", "subset", "na.action", "progress")
  expect_setequal(names(formals(dvim)), c(expected, own))
  for (name in expected) {
    if (name %in% c("treatment", "horizon")) next # have no default
    usual <- eval(formals(dvim)[[name]])
    default <- all[[name]]$default
    if (name == "folds") expect_null(usual) # to say ten would ask for one cross-fit
    else if (!is.null(default)) expect_identical(as.character(usual), default, label = name)
  }
})
