# The adjusted estimator beside grf's causal survival forest, on the same cohorts.
#
#     Rscript bench/grf.R [--dvim target/release/dvim] [--n 2000] [--seeds 3] [--trees 500] [--threads 2]
#
# Cohorts and their true effects come from `dvim simulate`. The forest estimates each patient out of bag, the adjusted estimator by models and
# groups that did not see the patient's outcome. Printed are mean absolute errors of the cure effect, times 100, over all
# patients of a cohort; the forest has no time effect. Needs R with grf (2.6), which nothing else here needs.

suppressPackageStartupMessages(library(grf))

given <- commandArgs(trailingOnly = TRUE)
option <- function(name, usual) {
  at <- match(paste0("--", name), given)
  if (is.na(at)) usual else given[at + 1]
}
dvim <- option("dvim", "target/release/dvim")
n <- as.integer(option("n", "2000"))
seeds <- seq_len(as.integer(option("seeds", "3")))
trees <- as.integer(option("trees", "500"))
threads <- option("threads", "2")
horizon <- 800
# The forest asks who is event-free beyond its horizon; our cohorts end at it, and who reaches it is cured.
just_before <- horizon * (1 - 1e-9)

run <- function(...) {
  status <- system2(dvim, c(...), stdout = FALSE, stderr = FALSE)
  if (status != 0) stop(paste("dvim", paste(c(...), collapse = " "), "ended with", status))
}

folder <- tempfile("grf")
dir.create(folder)
file <- function(name) file.path(folder, name)

cat(sprintf("| scenario (n = %d, %d cohorts) | grf, %d trees | dvim --estimator adjusted | grf, s | dvim, s |\n", n, length(seeds), trees))
cat("| --- | --- | --- | --- | --- |\n")
for (scenario in c("cure-only", "time-only", "both-independent", "both-overlap")) {
  errors <- seconds <- matrix(NA, length(seeds), 2)
  for (seed in seeds) {
    run("simulate", "--scenario", scenario, "--n", n, "--seed", seed, "-o", file("cohort.csv"), "--truth", file("truth.csv"), "--force")
    cohort <- read.csv(file("cohort.csv"))
    truth <- read.csv(file("truth.csv"))
    covariates <- as.matrix(cohort[, setdiff(names(cohort), c("id", "time", "event", "treatment"))])
    # Curves at no more than this many event times, which changes little: at 20,000 patients with all of them the forest does not fit into 23 GB.
    events <- sort(unique(cohort$time[cohort$event == 1 & cohort$time < horizon]))
    inside <- quantile(events, seq(0, 1, length.out = min(length(events), 500)), type = 1, names = FALSE)
    grid <- sort(unique(c(min(cohort$time), inside, horizon)))
    seconds[seed, 1] <- system.time({
      forest <- causal_survival_forest(covariates, cohort$time, cohort$treatment, cohort$event,
        target = "survival.probability", horizon = just_before, num.trees = trees, num.threads = as.integer(threads), seed = seed, failure.times = grid
      )
      theirs <- predict(forest)$predictions
    })["elapsed"]
    seconds[seed, 2] <- system.time(
      run("fit", file("cohort.csv"), "--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", horizon,
        "--estimator", "adjusted", "--no-audit", "--threads", threads, "-o", file("run"), "--force")
    )["elapsed"]
    ours <- read.csv(file("run/effects.csv"))
    stopifnot(identical(cohort$id, truth$id), identical(sort(ours$id), sort(truth$id)))
    errors[seed, 1] <- 100 * mean(abs(theirs - truth$cure_effect))
    errors[seed, 2] <- 100 * mean(abs(ours$cure_effect - truth$cure_effect[match(ours$id, truth$id)]))
  }
  told <- apply(errors, 2, function(e) sprintf("%.2f (%s)", mean(e), paste(sprintf("%.2f", e), collapse = ", ")))
  cat(sprintf("| %s | %s | %s | %.1f | %.1f |\n", scenario, told[1], told[2], mean(seconds[, 1]), mean(seconds[, 2])))
}
cat(sprintf("\nR %s.%s, grf %s, %s.\n", R.version$major, R.version$minor, packageVersion("grf"), system2(dvim, "--version", stdout = TRUE)))
