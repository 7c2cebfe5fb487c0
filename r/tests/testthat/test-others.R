# Numbers of packages that nobody here wrote, on the same data.

test_that("the arms' curves are survival's, to rounding", {
  d <- further()
  fit <- dvim(Surv(time, event) ~ x1 + x2, d, treatment, 800, estimator = "paper", group_size = 20)
  mine <- dvim:::arm_curves(fit)
  inside <- transform(d, event = ifelse(time >= 800, 0, event), time = pmin(time, 800))
  seen <- logical()
  for (arm in c("control", "treated")) {
    theirs <- survival::survfit(Surv(time, event) ~ 1, inside[inside$treatment == (arm == "treated"), ])
    ours <- mine[mine$arm == arm, ]
    expect_equal(ours$time, theirs$time)
    expect_equal(ours$survival, theirs$surv, tolerance = 1e-12)
    expect_equal(ours$n_at_risk, theirs$n.risk)
    # Before the first event survival has a standard error of 0; dvim has none, because one sample shows no spread there.
    early <- theirs$surv == 1
    seen <- c(seen, early)
    expect_true(all(is.na(ours$se[early])))
    expect_equal(ours$se[!early], (theirs$std.err * theirs$surv)[!early], tolerance = 1e-8)
    # What survival's own functions draw has survival's convention.
    drawn <- survfit(fit, adjusted = FALSE)
    at <- rep(c("control", "treated"), drawn$strata) == arm
    expect_equal(drawn$std.err[at], theirs$std.err, tolerance = 1e-8)
  }
  expect_true(any(seen))
})

test_that("with one group of everybody, both effects are survival's", {
  # All patients in one group: event-free at H and the mean event time of the arms, as survival has them.
  d <- small(400)
  fit <- dvim(Surv(time, event) ~ x1, d, treatment, 800, estimator = "paper", group_size = 60)
  g <- matches(fit, fit$effects$id[[1]])
  members <- as.data.frame(g)
  for (arm in c("control", "treated")) {
    of <- members[members$matched_for == "time" & members$arm == arm, ]
    km <- survival::survfit(Surv(pmin(of$time, 800), of$event & of$time < 800) ~ 1)
    s <- summary(km, times = 800, extend = TRUE)$surv
    rmst <- summary(km, rmean = 800)$table[["rmean"]]
    # RMST is the mean event time of those with an event and H for the others.
    expect_equal((rmst - 800 * s) / (1 - s), g$record$time_groups[[arm]]$mean_event_time, tolerance = 1e-9)
  }
})

test_that("crude differences of the arms are MatchIt's", {
  skip_if_not_installed("MatchIt")
  d <- small()
  fit <- dvim(Surv(time, event) ~ x1 + x11 + x12, d, treatment, 800, estimator = "paper", group_size = 20)
  # Balance is that of the patients who are estimated; the others train.
  of <- d[d$id %in% fit$effects$id, ]
  expect_lt(nrow(of), nrow(d))
  none <- MatchIt::matchit(treatment ~ x1 + x11 + x12, of, method = NULL, distance = "glm", estimand = "ATE")
  theirs <- summary(none)$sum.all[c("x11", "x12"), "Std. Mean Diff."]
  b <- balance(fit)
  expect_equal(b$difference_before[match(c("x11", "x12"), b$covariate)], unname(theirs), tolerance = 1e-6)
})

test_that("match groups are MatchIt's nearest neighbours under the learned distance", {
  skip_if_not_installed("MatchIt")
  d <- small(300)
  fit <- dvim(Surv(time, event) ~ x11 + x12 + x13, d, treatment, 800, estimator = "paper", group_size = 5,
              exclude_self = TRUE, scale = "none")
  w <- fit$weights
  x <- as.matrix(d[match(fit$effects$id, d$id), w$covariate])
  stretched <- sweep(x, 2, sqrt(w$cure_weight), "*")
  rownames(stretched) <- fit$effects$id
  of <- d[match(fit$effects$id, d$id), ]
  rownames(of) <- of$id
  t <- of$treatment == 1
  distance <- as.matrix(dist(stretched))[t, !t]
  m <- MatchIt::matchit(treatment ~ x11 + x12 + x13, of, distance = distance, replace = TRUE, ratio = 5, estimand = "ATT")
  for (id in head(rownames(m$match.matrix), 10)) {
    mine <- as.data.frame(matches(fit, id))
    mine <- mine[mine$matched_for == "cure" & mine$arm == "control", ]
    expect_setequal(as.character(mine$id), unname(m$match.matrix[id, ]))
  }
})

test_that("both effects of a group are survRM2's", {
  skip_if_not_installed("survRM2")
  d <- small(400)
  fit <- dvim(Surv(time, event) ~ x1, d, treatment, 800, estimator = "paper", group_size = 60)
  id <- fit$effects$id[[1]]
  g <- matches(fit, id)
  members <- as.data.frame(g)
  of <- members[members$matched_for == "time", ]
  theirs <- survRM2::rmst2(of$time, of$event, as.integer(of$arm == "treated"), tau = 800)
  for (arm in c("control", "treated")) {
    found <- theirs[[if (arm == "treated") "RMST.arm1" else "RMST.arm0"]]
    s <- utils::tail(found$fit$surv[found$fit$time <= 800], 1)
    expect_equal((found$rmst[["Est."]] - 800 * s) / (1 - s), g$record$time_groups[[arm]]$mean_event_time, tolerance = 1e-9)
  }
})

test_that("cobalt finds the balance that the engine reports, in both metrics", {
  skip_if_not_installed("cobalt")
  d <- small()
  fit <- dvim(Surv(time, event) ~ x1 + x11 + x12, d, treatment, 800, estimator = "paper", group_size = 20)
  # Balance is that of the patients who are estimated; the others train.
  estimated <- d$id %in% fit$effects$id
  of <- d[estimated, ]
  b <- balance(fit)
  for (metric in c("cure", "time")) {
    w <- matching_weights(fit, metric)
    tab <- cobalt::bal.tab(treatment ~ x1 + x11 + x12, data = of, weights = w[estimated], method = "weighting", un = TRUE,
                           s.d.denom = "pooled", binary = "raw", continuous = "std")
    theirs <- tab$Balance[b$covariate, ]
    # cobalt takes the spread of a binary covariate from its share p(1 - p), the engine from the sample as of any other.
    spread <- vapply(b$covariate, function(x) sqrt((var(of[[x]][of$treatment == 1]) + var(of[[x]][of$treatment == 0])) / 2), 0)
    unit <- ifelse(theirs$Type == "Binary", spread, 1)
    expect_equal(theirs$Diff.Un / unit, b$difference_before, tolerance = 1e-9, ignore_attr = TRUE)
    expect_equal(theirs$Diff.Adj / unit, b[[paste0("difference_", metric)]], tolerance = 1e-9, ignore_attr = TRUE)
  }
})

test_that("ggsurvfit, survminer and broom read the curves", {
  d <- small()
  fit <- dvim(Surv(time, event) ~ x1 + x2 + x11, d, treatment, 800, folds = 3, splits = 3)
  for (adjusted in c(TRUE, FALSE)) {
    s <- survfit(fit, adjusted = adjusted)
    if (requireNamespace("broom", quietly = TRUE)) {
      read <- generics::tidy(s)
      expect_equal(read$estimate, s$surv)
      expect_equal(read$conf.low, s$lower)
    }
    pdf(NULL)
    if (requireNamespace("ggsurvfit", quietly = TRUE)) {
      drawn <- ggsurvfit::ggsurvfit(s) + ggsurvfit::add_confidence_interval()
      built <- ggplot2::ggplot_build(drawn)$data[[1]]
      expect_true(all(s$surv %in% built$y))
    }
    if (requireNamespace("survminer", quietly = TRUE)) {
      drawn <- suppressWarnings(survminer::ggsurvplot(s, data = d))
      expect_true(all(s$surv %in% drawn$plot$data$surv))
    }
    dev.off()
  }
})
