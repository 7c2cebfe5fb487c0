# Reference values for case weights, clusters, delayed entry and competing events, from R's survival.
# Made with R 4.2.2 and survival 3.5-3:  Rscript further.R DIR  writes further.csv (the units) and further_reference.csv.
#
# For each case R gives the curve, its standard error and the influence of each unit on the whole curve
# (survfit(..., influence = TRUE)). The restricted mean (the area under the curve to H) and the mean event
# time (area - H * S) / (1 - S) are sums over that curve, and their influences the same sums over R's influences.
suppressMessages(library(survival))
dir <- commandArgs(TRUE)[1]
set.seed(20260205)
n <- 60
entry <- ifelse(runif(n) < 0.5, 0, round(runif(n, 0, 4), 1))
time <- entry + round(0.5 + rexp(n, 1 / 6), 1)
cause <- sample(0:2, n, TRUE, c(0.35, 0.4, 0.25))
d <- data.frame(id = 1:n, time = time, entry = entry, cause = cause,
                weight = round(runif(n, 0.2, 3), 2), cluster = sample(1:14, n, TRUE))
write.csv(d, file.path(dir, "further.csv"), row.names = FALSE, quote = FALSE)

H <- 9
# The area under a step function with these values after these times, from 0 to H.
area <- function(times, first, values) {
  at <- c(0, times[times < H], H)
  sum(diff(at) * c(first, values[times < H]))
}
out <- NULL
# Influences have one row for each cluster (or unit), its weight included.
add <- function(case, fit, curve, influence, own_se) {
  before <- sum(fit$time < H)
  s <- curve[before]
  rmst <- area(fit$time, 1, curve)
  cmet <- (rmst - H * s) / (1 - s)
  i_s <- influence[, before]
  i_r <- apply(influence, 1, function(row) area(fit$time, 0, row))
  i_m <- (i_r - H * i_s + cmet * i_s) / (1 - s)
  se <- function(i) sqrt(sum(i^2))
  # R's own standard error must be the one of its influences.
  stopifnot(is.null(own_se) || abs(se(i_s) - own_se[before]) < 1e-10)
  out <<- rbind(out, data.frame(case = case, horizon = H, survival = s, survival_se = se(i_s), rmst = rmst,
                                rmst_se = se(i_r), cmet = cmet, cmet_se = se(i_m), n_times = before))
}
cases <- expand.grid(entry = c(FALSE, TRUE), weight = c(FALSE, TRUE), cluster = c(FALSE, TRUE), cause = c(FALSE, TRUE))
for (k in seq_len(nrow(cases))) {
  o <- cases[k, ]
  start <- if (o$entry) d$entry else rep(0, n)
  w <- if (o$weight) d$weight else rep(1, n)
  cl <- if (o$cluster) d$cluster else d$id
  name <- paste(c(if (o$entry) "entry", if (o$weight) "weight", if (o$cluster) "cluster", if (o$cause) "cause"), collapse = "+")
  if (name == "") name <- "plain"
  if (o$cause) {
    state <- factor(d$cause, 0:2, c("none", "one", "two"))
    fit <- suppressWarnings(survfit(Surv(start, d$time, state) ~ 1, id = d$id, weights = w, cluster = cl, influence = TRUE))
    j <- which(fit$states == "one")
    # Here R gives a row for each unit, without its weight, and a first column for time 0.
    each <- -fit$influence.pstate[, -1, j] * w
    own <- fit$std.err[, j]
    # With id and cluster both given this version's multi-state standard error is by id, not by cluster, so with
    # clusters there is only R's influence, summed by cluster.
    if (o$cluster) own <- NULL
    add(name, fit, 1 - fit$pstate[, j], rowsum(each, cl), own)
  } else {
    fit <- survfit(Surv(start, d$time, d$cause == 1) ~ 1, id = d$id, weights = w, cluster = cl, influence = 1)
    stopifnot(!fit$logse)
    add(name, fit, fit$surv, fit$influence.surv, fit$std.err)
  }
}
write.csv(format(out, digits = 17), file.path(dir, "further_reference.csv"), row.names = FALSE, quote = FALSE)
