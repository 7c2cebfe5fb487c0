# Formulas, frames and columns of every kind, and what is refused.

base <- function(...) dvim(Surv(time, event) ~ x1 + x2 + x11, ..., horizon = 800, estimator = "paper", group_size = 20)

test_that("tibbles, data.tables and variables are data frames", {
  d <- small()
  expected <- base(d, treatment)$effects
  skip_if_not_installed("tibble")
  expect_identical(base(tibble::as_tibble(d), treatment)$effects, expected)
  skip_if_not_installed("data.table")
  expect_identical(base(data.table::as.data.table(d), treatment)$effects, expected)
  time <- d$time
  event <- d$event
  x1 <- d$x1
  x2 <- d$x2
  x11 <- d$x11
  arm <- d$treatment
  loose <- dvim(Surv(time, event) ~ x1 + x2 + x11, NULL, arm, 800, estimator = "paper", group_size = 20)
  expect_equal(loose$effects$cure_effect, expected$cure_effect)
})

test_that("a treatment is named in every way", {
  d <- small()
  expected <- base(d, treatment)$effects
  expect_identical(base(d, "treatment")$effects, expected)
  expect_identical(base(d, ~ treatment)$effects, expected)
  d$arm <- factor(ifelse(d$treatment == 1, "new", "old"), levels = c("old", "new"))
  found <- base(d, arm)
  expect_identical(found$effects$cure_effect, expected$cure_effect)
  expect_identical(found$record$roles$labels, list(control = "old", treated = "new")[names(found$record$roles$labels)])
  turned <- base(transform(d, arm = factor(arm, levels = c("new", "old"))), arm)
  expect_equal(turned$effects$cure_effect, -expected$cure_effect, tolerance = 0.5)
  expect_identical(base(d, arm, treated = "new", control = "old")$effects$cure_effect, expected$cure_effect)
})

test_that("events are what Surv() says", {
  d <- small()
  expected <- base(d, treatment)$effects
  logical <- dvim(Surv(time, event == 1) ~ x1 + x2 + x11, d, treatment, 800, estimator = "paper", group_size = 20)
  expect_identical(logical$effects, expected)
  twos <- dvim(Surv(time, event + 1) ~ x1 + x2 + x11, d, treatment, 800, estimator = "paper", group_size = 20)
  expect_identical(twos$effects, expected)
  spelled <- dvim(survival::Surv(time = time, event = event) ~ x1 + x2 + x11, d, treatment, 800, estimator = "paper",
                  group_size = 20)
  expect_identical(spelled$effects, expected)
  expect_identical(spelled$record$roles$event, "event")
  expect_error(dvim(time ~ x1, d, treatment, 800), "Surv", class = "dvim_refused")
  expect_error(dvim(Surv(time, event, type = "left") ~ x1, d, treatment, 800), "left", class = "dvim_refused")
})

test_that("causes with names are text, and one must be chosen", {
  d <- further()
  d$cause <- factor(c("none", "relapse", "death")[1 + d$why], levels = c("none", "relapse", "death"))
  named <- dvim(Surv(time, cause) ~ x1 + x2, d, treatment, 800, cause = "relapse", estimator = "paper", group_size = 20)
  numbered <- dvim(Surv(time, factor(why)) ~ x1 + x2, d, treatment, 800, cause = 1, estimator = "paper", group_size = 20)
  expect_identical(named$effects, numbered$effects)
  expect_error(dvim(Surv(time, cause) ~ x1, d, treatment, 800), "cause", class = "dvim_refused")
})

test_that("a dot is every other column", {
  d <- small()[c("id", "time", "event", "treatment", "x1", "x2", "x11")]
  dot <- dvim(Surv(time, event) ~ ., d, treatment, 800, estimator = "paper", group_size = 20)
  expect_identical(dot$effects, base(d, treatment)$effects)
  less <- dvim(Surv(time, event) ~ . - x11, d, treatment, 800, estimator = "paper", group_size = 20)
  expect_setequal(unique(less$weights$covariate), c("x1", "x2"))
})

test_that("functions of covariates, also of new patients", {
  d <- small()
  fit <- dvim(Surv(time, event) ~ x2 + I(x11^2) + splines::ns(x12, 2), d, treatment, 800, estimator = "paper", group_size = 20)
  expect_identical(unique(fit$weights$covariate), c("x2", "I(x11^2)", "splines::ns(x12, 2).1", "splines::ns(x12, 2).2"))
  estimated <- d[match(fit$effects$id, d$id), ][1:5, ]
  # The basis of new patients is that of the cohort.
  p <- predict(fit, estimated)
  expect_equal(nrow(p), 5)
  expect_error(dvim(Surv(time, event) ~ x1 * x2, d, treatment, 800), "x1:x2", class = "dvim_refused")
  expect_error(dvim(Surv(time, event) ~ x1 + offset(x2), d, treatment, 800), "offset", class = "dvim_refused")
  expect_error(dvim(Surv(time, event) ~ 1, d, treatment, 800), "covariate", class = "dvim_refused")
})

test_that("factors, text and logicals are categories, whatever the order of levels", {
  d <- small()
  d$grade <- c("low", "middle", "high")[1 + seq_len(nrow(d)) %% 3]
  fit <- function(grade) {
    d$grade <- grade
    dvim(Surv(time, event) ~ x1 + grade, d, treatment, 800, estimator = "paper", group_size = 20)$effects
  }
  text <- fit(d$grade)
  expect_identical(fit(factor(d$grade)), text)
  expect_identical(fit(factor(d$grade, levels = c("low", "middle", "high", "nobody"), ordered = TRUE)), text)
  yes <- dvim(Surv(time, event) ~ x1 + (x11 > 0), d, treatment, 800, estimator = "paper", group_size = 20)
  expect_true("x11 > 0" %in% yes$weights$covariate)
})

test_that("missing values are refused with the remedy, dropped or marked", {
  d <- small()
  d$x11[c(4, 9)] <- NA
  refused <- tryCatch(base(d, treatment), dvim_refused = function(e) e)
  expect_s3_class(refused, "dvim_error")
  expect_identical(refused$problems$column, "x11")
  expect_identical(refused$problems$rows[[1]], c(4L, 9L))
  expect_match(conditionMessage(refused), 'missing = "drop"')
  dropped <- base(d, treatment, missing = "drop")
  expect_identical(base(d, treatment, na.action = na.omit)$effects, dropped$effects)
  expect_false(4 %in% dropped$effects$id)
  marked <- base(d, treatment, missing = "indicator")
  expect_true("(missing)" %in% marked$weights$level)
})

test_that("ids: a column, row names, or row numbers", {
  d <- small()
  named <- d
  named$id <- NULL
  rownames(named) <- paste0("p", seq_len(nrow(d)))
  fit <- base(named, treatment)
  expect_true(all(startsWith(fit$effects$id, "p")))
  expect_s3_class(matches(fit, fit$effects$id[[1]]), "dvim_matches")
  expect_identical(nrow(augment(fit)), nrow(d))
  some <- d[seq(1, 599, 2), ]
  expect_true(all(base(some, treatment)$effects$id %in% some$id))
  d$id[2] <- d$id[1]
  expect_error(base(d, treatment), "id", class = "dvim_refused")
})

test_that("subset and where choose rows", {
  d <- small()
  d$half <- seq_len(nrow(d)) %% 2
  a <- base(d, treatment, subset = half == 1)
  b <- base(d, treatment, where = list(half = 1))
  expect_identical(a$effects, b$effects)
  expect_error(base(d, treatment, where = list(nothing = 1)), "nothing", class = "dvim_refused")
})

test_that("the wrong is refused in the words of R", {
  d <- small()
  expect_error(dvim(Surv(time, event) ~ x1, d, treatment), "horizon", class = "dvim_refused")
  expect_error(dvim(Surv(time, event) ~ x1, d, horizon = 800), "treatment", class = "dvim_refused")
  expect_error(base(d, treatment, missing = "omit"), 'missing = "refuse"', class = "dvim_refused")
  expect_error(base(d, treatment, seed = -1), "seed", class = "dvim_refused")
  expect_error(base(d, treatment, folds = 3), 'estimator = "adjusted"', class = "dvim_refused")
  expect_error(base(d, treatment, caliper = 3), "caliper", class = "dvim_refused")
  expect_error(base(d, treatment, caliper = c(x11 = "wide")), "caliper", class = "dvim_refused")
  expect_error(dvim(Surv(time, event) ~ x1, d, treatment, 800, estimator = "paper", group_size = 5000), class = "dvim_refused")
  expect_error(base(d, treatment, threads = 0), "threads", class = "dvim_refused")
  expect_error(base(transform(d, time = as.difftime(time, units = "days"), x1 = as.difftime(x1, units = "days")), treatment),
               "as.numeric", class = "dvim_refused")
  expect_error(base(transform(d, time = -time), treatment), "time", class = "dvim_refused")
  no_flags <- tryCatch(base(transform(d, x1 = 1), treatment), dvim_refused = conditionMessage,
                       warning = conditionMessage)
  expect_false(grepl("--", paste(no_flags, collapse = " "), fixed = TRUE))
})

test_that("several data sets must be tables", {
  expect_error(dvim(Surv(time, event) ~ x1, list(1, 2), treatment, 800), "imputed", class = "dvim_refused")
})
