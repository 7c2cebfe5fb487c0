# What R adds to the command: the same cohort, fitted by `dvim fit` and by dvim() in R, alternating.
#
#   Rscript bench/r.R [n] [rounds]      after `cargo build --release -p dvim-cli` and `R CMD INSTALL r`
#
# The command reads a CSV and writes a run; R takes a data frame and makes its tables. User and system time of both are
# counted (the machine may be busy); reading the CSV is a part of the command's work, not of R's.
arguments <- as.numeric(commandArgs(TRUE))
n <- if (length(arguments) >= 1) arguments[[1]] else 100000
rounds <- if (length(arguments) >= 2) arguments[[2]] else 3
library(dvim)

cohort <- dvim_simulate("both-overlap", n = n, seed = 1)
file <- tempfile(fileext = ".csv")
utils::write.csv(cohort, file, row.names = FALSE, quote = FALSE)
binary <- Sys.getenv("DVIM_BINARY", "target/release/dvim")
covariates <- setdiff(names(cohort), c("id", "time", "event", "treatment"))
formula <- reformulate(covariates, response = quote(Surv(time, event)))

cpu <- function(expression) {
  before <- proc.time()
  force(expression)
  sum((proc.time() - before)[c("user.self", "sys.self", "user.child", "sys.child")])
}
command <- function(...) {
  run <- tempfile("run")
  status <- system2(binary, c("fit", file, "--time time --event event --treatment treatment --horizon 800 -o", run, ...),
                    stdout = FALSE, stderr = FALSE)
  stopifnot(status == 0)
  unlink(run, recursive = TRUE)
}
for (estimator in c("adjusted", "paper")) {
  seconds <- vapply(seq_len(rounds), function(i) {
    c(command = cpu(command("--estimator", estimator)),
      r = cpu(dvim(formula, cohort, treatment, 800, estimator = estimator)))
  }, c(command = 0, r = 0))
  cat(sprintf("%s, n = %d: command %.1f s, R %.1f s of processor time; R takes %+.1f %%\n", estimator, as.integer(n),
              median(seconds["command", ]), median(seconds["r", ]), 100 * (median(seconds["r", ] / seconds["command", ]) - 1)))
}
