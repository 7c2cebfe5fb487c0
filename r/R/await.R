# Waiting for the engine, which works on threads of its own: R goes on listening for Ctrl-C and shows progress.

# Seconds between two looks at the keyboard, and before progress is shown.
pause <- 0.05
patience <- 1

# Waits for a job and gives its value. An interrupt, or any other exit, stops the job.
await <- function(job, progress = NULL) {
  # What starts the job may refuse; it must not be asked again on the way out.
  force(job)
  finished <- FALSE
  line <- progress_line(progress)
  on.exit({
    line$clear()
    if (!finished) native_cancel(job)
  })
  repeat {
    outcome <- native_wait(job, pause)
    if (!is.null(outcome)) break
    # Gives R the chance to see an interrupt, and its windows to be drawn.
    Sys.sleep(0)
    stage <- native_stage(job)
    if (!is.null(stage)) line$show(stage$stage, stage$done, stage$total)
  }
  finished <- TRUE
  value_of(outcome)
}

# What shows progress: a line in the console that is written over itself, a function of the user's, or nothing.
progress_line <- function(progress) {
  if (is.function(progress)) {
    return(list(show = function(stage, done, total) progress(stage, done, total), clear = function() NULL))
  }
  if (is.null(progress)) progress <- interactive()
  started <- proc.time()[["elapsed"]]
  width <- 0
  show <- function(stage, done, total) {
    seconds <- proc.time()[["elapsed"]] - started
    if (!isTRUE(progress) || seconds < patience) return()
    share <- if (total > 0) min(done / total, 1) else 0
    bar <- paste(c(rep("=", round(30 * share)), rep(" ", 30 - round(30 * share))), collapse = "")
    text <- sprintf("%-26s |%s| %3.0f %%  %.0f s", stage, bar, 100 * share, seconds)
    cat("\r", formatC(text, width = -width), sep = "", file = stderr())
    width <<- nchar(text)
  }
  clear <- function() if (width > 0) cat("\r", strrep(" ", width), "\r", sep = "", file = stderr())
  list(show = show, clear = clear)
}

# Threads to use: those asked for, the option `dvim.threads`, at most two where a check of CRAN says so, else all cores.
threads_of <- function(threads = NULL) {
  if (is.null(threads)) threads <- getOption("dvim.threads")
  if (is.null(threads)) {
    limits <- suppressWarnings(as.numeric(Sys.getenv("OMP_THREAD_LIMIT", NA)))
    checked <- tolower(Sys.getenv("_R_CHECK_LIMIT_CORES_", ""))
    if (!checked %in% c("", "false")) limits <- c(limits, 2)
    limits <- limits[!is.na(limits) & limits >= 1]
    return(if (length(limits)) min(limits) else NULL)
  }
  if (!is.numeric(threads) || length(threads) != 1 || is.na(threads) || threads < 1) {
    refuse(sprintf("threads is %s", deparse1(threads)), "threads is a whole number of at least 1",
           "leave it out to use all cores")
  }
  as.numeric(threads)
}
