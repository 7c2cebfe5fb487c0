# What R users expect of a fit.

fit_of <- local({
  made <- NULL
  function() {
    if (is.null(made)) {
      made <<- dvim(Surv(time, event) ~ x1 + x2 + x11 + x12, small(), treatment, 800, folds = 3, splits = 3)
    }
    made
  }
})

test_that("print says the answer and the verdict, summary the audit", {
  expect_output(print(fit_of()), "event-free")
  s <- summary(fit_of())
  expect_s3_class(s, "summary.dvim")
  expect_output(print(s), "Call:")
  expect_true(all(c("averages", "audit", "verdict") %in% names(s)))
})

test_that("coef, confint and vcov are the averages of the record", {
  fit <- fit_of()
  found <- averages(fit)
  found <- found[found$population == "all", ]
  expect_identical(unname(coef(fit)), found$estimate[match(c("cure_effect", "time_effect"), found$term)])
  ends <- confint(fit)
  expect_identical(dimnames(ends), list(c("cure_effect", "time_effect"), c("2.5 %", "97.5 %")))
  expect_true(all(ends[, 1] < coef(fit) & coef(fit) < ends[, 2]))
  expect_identical(confint(fit, 2)[, 1], ends[2, 1])
  expect_error(confint(fit, level = 0.9), "update\\(fit, confidence = 0.9\\)", class = "dvim_refused")
  expect_equal(unname(sqrt(diag(vcov(fit)))), found$std.error[match(c("cure_effect", "time_effect"), found$term)])
  expect_true(is.na(vcov(fit)[1, 2]))
  expect_error(coef(fit, population = "nobody"), class = "dvim_refused")
})

test_that("tidy, glance and augment", {
  fit <- fit_of()
  t <- tidy(fit)
  expect_identical(t$term, c("cure_effect", "time_effect"))
  expect_true(all(c("estimate", "std.error", "conf.low", "conf.high") %in% names(t)))
  expect_gt(nrow(tidy(fit, by = ~ x2)), 2)
  g <- glance(fit)
  expect_identical(nrow(g), 1L)
  expect_equal(g$nobs, 600)
  d <- small()
  a <- augment(fit)
  expect_identical(nrow(a), nrow(d))
  at <- match(a$id, fit$effects$id)
  expect_identical(a$.cure_effect, fit$effects$cure_effect[at])
  # Also where the rows are in another order.
  turned <- d[rev(seq_len(nrow(d))), ]
  again <- dvim(Surv(time, event) ~ x1 + x2 + x11 + x12, turned, treatment, 800, folds = 3, splits = 3)
  expect_identical(again$effects, fit$effects)
  expect_identical(augment(again)$.cure_effect, rev(a$.cure_effect))
  expect_error(augment(fit, d[1:10, ]), class = "dvim_refused")
})

test_that("averages by subgroup, in every way to ask", {
  fit <- fit_of()
  a <- averages(fit, by = ~ x2)
  expect_identical(a, averages(fit, by = "x2"))
  expect_identical(averages(fit, by = "x11:4"), averages(fit, by = list(x11 = 4)))
  expect_error(averages(fit, by = ~ nothing), "by", class = "dvim_refused")
})

test_that("matches, their members and their record", {
  fit <- fit_of()
  m <- matches(fit, 17)
  d <- as.data.frame(m)
  expect_setequal(unique(d$matched_for), c("cure", "time"))
  expect_setequal(unique(d$arm), c("treated", "control"))
  expect_true(all(tapply(d$distance, paste(d$matched_for, d$arm), function(x) !is.unsorted(x))))
  expect_false(17 %in% d$id)
  expect_output(print(m), "17")
  expect_error(matches(fit, 99999), class = "dvim_no_such_unit")
  gone <- tryCatch(matches(fit, "nobody"), dvim_no_such_unit = function(e) e)
  expect_identical(gone$id, "nobody")
})

test_that("predict takes new patients in their order", {
  fit <- fit_of()
  new <- dvim_simulate("both-overlap", n = 30, seed = 8)
  p <- predict(fit, new)
  expect_identical(p$id, new$id)
  expect_identical(predict(fit, new[30:1, ])$cure_effect, rev(p$cure_effect))
  expect_identical(predict(fit), fit$effects)
  expect_error(predict(fit, new[c("x1", "x2")]), "x11", class = "dvim_refused")
  expect_warning(far <- predict(fit, new, max_distance = 0), class = "dvim_warning")
  expect_true(all(is.na(far$cure_effect)))
  members <- predict(fit, new, groups = TRUE)
  expect_true(all(c("id", "member", "distance") %in% names(members)))
})

test_that("balance and the weights behind it", {
  fit <- dvim(Surv(time, event) ~ x1 + x2 + x11, small(), treatment, 800, estimator = "paper", group_size = 20)
  b <- balance(fit)
  expect_identical(b$covariate, c("x1", "x2", "x11"))
  w <- matching_weights(fit, "cure")
  d <- small()
  expect_length(w, nrow(d))
  # The weights give the balance that the engine reports.
  t <- d$treatment == 1
  estimated <- d$id %in% fit$effects$id
  for (metric in c("cure", "time")) {
    w <- matching_weights(fit, metric)
    for (x in b$covariate) {
      apart <- weighted.mean(d[[x]][t], w[t]) - weighted.mean(d[[x]][!t], w[!t])
      spread <- sqrt((var(d[[x]][t & estimated]) + var(d[[x]][!t & estimated])) / 2)
      expect_equal(apart / spread, b[[paste0("difference_", metric)]][b$covariate == x], tolerance = 1e-9)
    }
  }
})

test_that("figures can be drawn, by R and by ggplot2", {
  fit <- fit_of()
  pdf(NULL)
  on.exit(dev.off())
  for (type in c("curves", "forest", "plane", "effects", "balance", "weights")) expect_invisible(plot(fit, type))
  expect_invisible(plot(fit, "patient", id = 17))
  expect_invisible(plot(matches(fit, 17)))
  expect_error(plot(fit, "pie"), "one of curves", class = "dvim_refused")
  expect_error(plot(fit, "patient"), "id", class = "dvim_refused")
  expect_match(dvim_figure(fit, "plane"), "<svg")
  file <- dvim_figure(fit, "plane", tempfile(fileext = ".svg"))
  expect_error(dvim_figure(fit, "plane", file), "force = TRUE", class = "dvim_exists")
  skip_if_not_installed("ggplot2")
  for (type in c("curves", "forest", "plane", "effects", "balance", "weights")) {
    expect_s3_class(print(ggplot2::autoplot(fit, type)), "ggplot")
  }
  print(ggplot2::autoplot(fit, "patient", id = 17))
  expect_s3_class(ggplot2::autoplot(fit, "forest", by = ~ x2), "ggplot")
})

test_that("a saved session is told what to do", {
  file <- tempfile(fileext = ".rds")
  saveRDS(fit_of(), file)
  again <- readRDS(file)
  expect_identical(coef(again), coef(fit_of()))
  expect_identical(tidy(again), tidy(fit_of()))
  expect_error(matches(again, 17), "dvim_save", class = "dvim_gone")
})

test_that("save, open and report replace nothing that is not theirs", {
  fit <- fit_of()
  run <- dvim_save(fit, new_path("run"))
  expect_error(dvim_save(fit, run), "force = TRUE", class = "dvim_exists")
  dvim_save(fit, run, force = TRUE)
  opened <- dvim_open(run)
  expect_identical(opened$effects, fit$effects)
  expect_identical(predict(opened, small()[1:5, ]), predict(fit, small()[1:5, ]))
  page <- dvim_report(fit, tempfile(fileext = ".html"), title = "A title", open = FALSE)
  expect_match(paste(readLines(page, warn = FALSE), collapse = ""), "A title")
  expect_error(dvim_report(fit, page, open = FALSE), "force = TRUE", class = "dvim_exists")
  expect_error(dvim_open(tempdir()), class = "dvim_open")
  cat("x", file = file.path(run, "weights.csv"), append = TRUE)
  expect_warning(dvim_open(run), "weights.csv", class = "dvim_warning")
})

test_that("the explorer serves this machine, and ends", {
  server <- dvim_explore(fit_of(), open = FALSE, block = FALSE)
  expect_match(server$address, "^http://127\\.0\\.0\\.1:")
  page <- tryCatch(readLines(server$address, warn = FALSE), error = function(e) "")
  expect_match(paste(page, collapse = ""), "dvim")
  close(server)
})

test_that("check and compare", {
  d <- small()
  d$x11[3] <- NA
  found <- dvim_check(Surv(time, event) ~ x1 + x11, d, treatment, 800)
  expect_true(found$refused)
  expect_identical(found$problems$column[found$problems$severity == "error"], "x11")
  expect_output(print(found), 'missing = "drop"')
  expect_false(dvim_check(Surv(time, event) ~ x1 + x11, d, treatment, 800, missing = "drop")$refused)
  expect_error(dvim_check(Surv(time, event) ~ x1, d, treatment, 800, tree = 3), "tree")
})

test_that("update fits again", {
  fit <- dvim(Surv(time, event) ~ x1 + x2, small(), treatment, 800, estimator = "paper", group_size = 20)
  again <- update(fit, seed = 2)
  expect_identical(again$record$options$seed, 2)
  more <- update(fit, . ~ . + x11)
  expect_true("x11" %in% more$weights$covariate)
})

test_that("knitted documents have a card", {
  skip_if_not_installed("knitr")
  shown <- knitr::knit_print(fit_of())
  expect_match(unclass(shown), "event-free|cures")
  old <- knitr::opts_knit$get("rmarkdown.pandoc.to")
  on.exit(knitr::opts_knit$set(rmarkdown.pandoc.to = old))
  knitr::opts_knit$set(rmarkdown.pandoc.to = "html")
  expect_match(as.character(knitr::knit_print(fit_of())), "<table")
})

test_that("survfit draws like survival's", {
  fit <- fit_of()
  raw <- survfit(fit, adjusted = FALSE)
  d <- small()
  theirs <- survival::survfit(Surv(time, event) ~ treatment, d)
  for (arm in 0:1) {
    mine <- raw$time[rep(seq_along(raw$strata), raw$strata) == arm + 1]
    inside <- theirs$time[rep(seq_along(theirs$strata), theirs$strata) == arm + 1]
    expect_equal(mine, inside[inside <= max(mine)])
  }
  s <- survfit(fit)
  expect_s3_class(s, "survfit")
  pdf(NULL)
  on.exit(dev.off())
  plot(s)
  expect_output(print(s))
  skip_if_not_installed("survminer")
  d$arm <- d$treatment
  expect_s3_class(survminer::ggsurvplot(s, data = d), "ggsurvplot")
})

test_that("labels are used and kept", {
  d <- dvim_simulate("both-overlap", n = 300, seed = 3)
  labels <- list(time_unit = "days", treated = "chemotherapy", covariates = list(x1 = "Age [years]"))
  fit <- dvim(Surv(time, event) ~ x1 + x2, d, treatment, 800, labels = labels, splits = 10)
  expect_match(fit$text, "With chemotherapy", fixed = TRUE)
  expect_equal(fit$record$roles$asked$labels$treated, "chemotherapy")
  expect_error(dvim(Surv(time, event) ~ x1, d, treatment, 800, labels = "days"), class = "dvim_refused")
})
