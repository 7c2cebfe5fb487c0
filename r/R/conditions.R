# Failures and warnings as conditions that carry the problems as data. Their words come from the engine, which spells
# arguments as R writes them.

# What is wrong with the input, one row for each rule that it breaks.
problems_frame <- function(records) {
  field <- function(name, none) {
    vapply(records, function(r) if (is.null(r[[name]])) none else as(r[[name]], class(none)), none)
  }
  out <- data.frame(
    code = field("code", ""), severity = field("severity", ""), column = field("column", NA_character_),
    count = field("count", 0), found = field("found", ""), rule = field("rule", ""), remedy = field("remedy", "")
  )
  out$rows <- I(lapply(records, function(r) as.integer(unlist(r$rows))))
  out
}

# One problem in words, as errors and warnings print it.
problem_words <- function(record) {
  rows <- as.integer(unlist(record$rows))
  where <- if (length(rows)) {
    sprintf(" (row%s %s%s)", if (record$count == 1) "" else "s", paste(rows, collapse = ", "),
            if (record$count > length(rows)) ", ..." else "")
  } else ""
  column <- if (is.null(record$column)) "" else sprintf("column `%s`: ", record$column)
  sprintf("%s%s%s\n  rule:   %s\n  remedy: %s", column, record$found, where, record$rule, record$remedy)
}

# The condition of a failure: a class of its own, and `dvim_error`.
condition_of <- function(failure) {
  more <- failure$more
  if (failure$class == "refused") more$problems <- problems_frame(more$problems)
  structure(
    class = c(paste0("dvim_", failure$class), "dvim_error", "error", "condition"),
    c(list(message = failure$words, call = NULL), more)
  )
}

# Refuses what was asked for before the engine sees it: what was found, the rule, the remedy.
refuse <- function(found, rule, remedy, code = "bad_option") {
  record <- list(code = code, severity = "error", column = NULL, count = 0, rows = list(), found = found, rule = rule,
                 remedy = remedy)
  stop(condition_of(list(class = "refused", words = problem_words(record), more = list(problems = list(record)))))
}

# Warns of what is worth knowing, one condition of class `dvim_warning` for each problem.
warn <- function(records) {
  for (record in records) {
    if (identical(record$severity, "warning")) {
      warning(structure(
        class = c("dvim_warning", "warning", "condition"),
        list(message = problem_words(record), call = NULL, problem = problems_frame(list(record)))
      ))
    }
  }
}

# Warns where an effect has reservations or should not be relied on, in the words that every page has.
warn_verdict <- function(verdict) {
  if (is.null(verdict) || !isTRUE(verdict[[3]])) return()
  warn(list(list(code = "verdict", severity = "warning", column = NULL, count = 0, rows = list(),
                 found = paste(unlist(verdict[[1]]), collapse = " "),
                 rule = "an average can be relied on where every check holds",
                 remedy = paste(unlist(verdict[[2]]), collapse = " "))))
}

# The value of a finished job, or its condition.
value_of <- function(outcome) {
  if (is.null(outcome$failure)) return(outcome$value)
  stop(condition_of(outcome$failure))
}
