# Threads, interrupts, progress: the engine works beside R.

test_that("any number of threads and any order of rows give the same bits", {
  d <- small()
  fit <- function(data, threads) {
    dvim(Surv(time, event) ~ x1 + x2 + x11, data, treatment, 800, folds = 3, splits = 3, threads = threads)
  }
  one <- fit(d, 1)
  two <- fit(d[sample(nrow(d)), ], 2)
  expect_identical(one$effects, two$effects)
  expect_identical(averages(one), averages(two))
})

test_that("checks of CRAN get two threads, options are heard", {
  Sys.setenv("_R_CHECK_LIMIT_CORES_" = "TRUE")
  on.exit(Sys.unsetenv("_R_CHECK_LIMIT_CORES_"))
  expect_identical(dvim:::threads_of(NULL), 2)
  old <- options(dvim.threads = 3)
  expect_identical(dvim:::threads_of(NULL), 3)
  options(old)
})

test_that("progress goes to a function", {
  seen <- character()
  dvim(Surv(time, event) ~ x1 + x2 + x11, dvim_simulate("both-overlap", 3000), treatment, 800,
       progress = function(stage, done, total) seen <<- c(seen, stage))
  expect_gt(length(seen), 0)
})

test_that("an interrupt ends the work soon, and R goes on", {
  skip_on_os("windows")
  d <- dvim_simulate("both-overlap", n = 20000, seed = 1)
  me <- Sys.getpid()
  system(sprintf("(sleep 1; kill -INT %d) &", me))
  started <- proc.time()[["elapsed"]]
  outcome <- tryCatch(dvim(Surv(time, event) ~ ., d, treatment, 800, splits = 100), interrupt = function(i) "interrupted")
  seconds <- proc.time()[["elapsed"]] - started
  expect_identical(outcome, "interrupted")
  # Asked for after one second, answered within the grace of a cancelled job.
  expect_lt(seconds, 1 + 5)
  expect_s3_class(dvim(Surv(time, event) ~ x1, small(300), treatment, 800, estimator = "paper", group_size = 10), "dvim")
})

test_that("forked children can fit", {
  skip_on_os("windows")
  d <- small(300)
  one <- function(seed) dvim(Surv(time, event) ~ x1, d, treatment, 800, estimator = "paper", group_size = 10, seed = seed)
  here <- coef(one(1))
  there <- parallel::mclapply(1:2, function(s) coef(one(s)), mc.cores = 2)
  expect_identical(there[[1]], here)
})
