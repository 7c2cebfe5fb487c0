# What tests share: small cohorts, and the command to compare with.

small <- function(n = 600, seed = 3) dvim_simulate("both-overlap", n = n, seed = seed)

# A cohort with weights, clusters, late entry and causes, as Python's tests have it.
further <- function() {
  d <- small()
  i <- seq_len(nrow(d))
  d$w <- 1 + (i %% 5) / 4
  d$site <- i %% 20
  d$late <- ifelse(i %% 3 == 0, 0.2 * d$time, 0)
  d$why <- ifelse(d$event == 1, 1 + (i %% 4 == 0), 0)
  d
}

# A table as it really is: three arms, two rows for each patient, gaps, categories, times of zero.
untidy <- function() {
  d <- small(900)
  i <- seq_len(nrow(d))
  d$arm <- c("Obs", "Lev", "Lev+5FU")[1 + ifelse(d$treatment == 1, 2, i %% 2)]
  d$grade <- 1 + i %% 3
  d$sex <- ifelse(i %% 2 == 0, "female", "male")
  d$x11[i %% 50 == 0] <- NA
  d$etype <- 1
  d$patient <- paste0("p", i)
  d$id <- NULL
  d$time[[7]] <- 0
  other <- d
  other$etype <- 2
  rbind(d, other)
}

# The command of this clone, or that which DVIM_BINARY names.
command <- function(...) {
  binary <- Sys.getenv("DVIM_BINARY")
  testthat::skip_if(!nzchar(binary), "DVIM_BINARY names no command to compare with")
  out <- suppressWarnings(system2(binary, shQuote(c(...)), stdout = TRUE, stderr = TRUE))
  status <- attr(out, "status")
  if (!is.null(status)) stop("dvim ", paste(c(...), collapse = " "), " failed:\n", paste(out, collapse = "\n"))
  paste(out, collapse = "\n")
}

# Numbers have digits that read back as the same number.
write_csv <- function(data, file) {
  digits <- function(x) if (is.double(x)) ifelse(is.na(x), NA, sprintf("%.17g", x)) else x
  utils::write.csv(lapply(data, digits), file, row.names = FALSE, na = "", quote = FALSE)
  file
}

bytes <- function(file) readBin(file, "raw", file.size(file))

# Two directories hold the same files, but for what a summary says of its input.
expect_same_run <- function(found, expected) {
  files <- sort(list.files(expected, recursive = TRUE))
  testthat::expect_identical(sort(list.files(found, recursive = TRUE)), files)
  for (file in files) {
    mine <- bytes(file.path(found, file))
    theirs <- bytes(file.path(expected, file))
    if (basename(file) == "summary.json") {
      # The digest of the summary holds where the table came from.
      strip <- function(raw) sub('"seal": ?"[0-9a-f]*"', "", sub('"input": ?\\{[^}]*\\}', "", rawToChar(raw)))
      testthat::expect_identical(strip(mine), strip(theirs), label = file)
    } else {
      testthat::expect_true(identical(mine, theirs), label = paste("the bytes of", file))
    }
  }
}

# A path that nothing is at yet.
new_path <- function(name) file.path(tempfile("dvim-test-"), name)
