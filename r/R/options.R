# What can be asked for, as the engine's records take it: values by the kinds of the engine's list of settings.

# The engine's list of settings, by their names in R.
settings <- function() {
  all <- native_settings()
  names(all) <- vapply(all, function(s) s$argument, "")
  all
}

# A value of a column as files write it.
label <- function(value) {
  if (is.null(value)) return(NULL)
  if (is.factor(value)) value <- as.character(value)
  if (is.logical(value)) return(if (value) "true" else "false")
  if (is.numeric(value) && value == round(value)) return(sprintf("%.0f", value))
  as.character(value)
}

# Names of columns: a character vector, or a formula with one side.
columns_named <- function(value) {
  if (inherits(value, "formula")) value <- attr(stats::terms(value), "term.labels")
  as.list(as.character(value))
}

# Subgroups: ~ sex + grade, c("sex", "age:4"), or list(age = 4) for bins of equal size.
bins <- function(by) {
  if (inherits(by, "formula")) return(unlist(columns_named(by)))
  if (is.list(by) || (is.numeric(by) && !is.null(names(by)))) {
    return(sprintf("%s:%s", names(by), vapply(by, function(n) label(n), "")))
  }
  as.character(by)
}

calipers <- function(caliper) {
  named <- !is.null(names(caliper)) && all(nzchar(names(caliper)))
  if (!is.null(caliper) && !named) {
    refuse(sprintf("caliper is %s", deparse1(caliper)), "a caliper belongs to a covariate",
           'use caliper = c(age = 5), or c(age = "0.2sd") in standard deviations')
  }
  one <- function(covariate) {
    text <- trimws(as.character(caliper[[covariate]]))
    in_sd <- endsWith(text, "sd")
    width <- suppressWarnings(as.numeric(sub("sd$", "", text)))
    if (is.na(width)) {
      refuse(sprintf("the caliper of `%s` is %s", covariate, text),
             "a caliper is a width in the unit of its covariate, or in standard deviations",
             'use caliper = c(age = 5), or c(age = "0.2sd")')
    }
    list(covariate = covariate, width = width, in_sd = in_sd)
  }
  lapply(names(caliper), one)
}

whole <- function(name, value) {
  if (!is.numeric(value) || length(value) != 1 || is.na(value) || value < 0 || value != round(value)) {
    refuse(sprintf("%s is %s", name, deparse1(value)), sprintf("%s is a whole number of at least 0", name), "give one")
  }
  as.numeric(value)
}

number <- function(name, value) {
  if (inherits(value, "difftime")) value <- as.numeric(value, units = "days")
  if (!is.numeric(value) || length(value) != 1) {
    refuse(sprintf("%s is %s", name, deparse1(value)), sprintf("%s is a number", name),
           "give it in the unit of the times")
  }
  as.numeric(value)
}

word <- function(name, value, words) {
  if (!is.character(value) || length(value) != 1 || !value %in% words) {
    refuse(sprintf("%s is %s", name, deparse1(value)), sprintf("%s is one of %s", name, paste(words, collapse = ", ")),
           sprintf('use %s = "%s"', name, words[[1]]))
  }
  value
}

# An argument as the engine takes a value of its kind.
read_setting <- function(setting, value) {
  name <- setting$argument
  switch(setting$kind,
    columns = columns_named(value),
    label = label(value),
    number = number(name, value),
    count = if (!is.null(value)) whole(name, value),
    word = word(name, value, unlist(setting$words)),
    switch = isTRUE(value),
    value
  )
}

# The share of the norm in an elastic net.
share_of <- function(penalty) {
  if (is.character(penalty) && length(penalty) == 1) {
    if (penalty == "ridge") return(0)
    if (penalty == "elastic-net") return(0.5)
    penalty <- suppressWarnings(as.numeric(sub("^elastic-net:", "", penalty)))
  }
  if (!is.numeric(penalty) || length(penalty) != 1 || is.na(penalty)) {
    refuse("the penalty is not understood",
           "it is prior, ridge, elastic-net, or the share of the norm in an elastic net",
           'use penalty = "prior", or penalty = 0.5')
  }
  penalty
}

# How to analyse, of the arguments of a call.
options_record <- function(given, all = settings()) {
  of_method <- Filter(function(s) s$topic == "method" && s$argument %in% names(given), all)
  special <- c("group_size", "penalty", "caliper")
  asked <- lapply(of_method[setdiff(names(of_method), special)], function(s) read_setting(s, given[[s$argument]]))
  adjusted <- asked$estimator == "adjusted"
  size <- given$group_size
  size <- if (is.null(size) || identical(size, "auto")) NULL else whole("group_size", size)
  options <- native_default_options(adjusted)
  if (!is.null(size)) options$group_size <- size
  if (adjusted) {
    family <- if (asked$latency == "auto") NULL else asked$latency
    options$adjusted["splits"] <- list(asked$splits)
    options$adjusted["folds"] <- list(asked$folds)
    options$adjusted["latency"] <- list(family)
    options$adjusted["learners"] <- list(asked$learners)
    options$adjusted["group_size"] <- list(size)
    options$adjusted$deals <- as.list(options$adjusted$deals)
    if (!identical(given$penalty, "prior")) options$adjusted$elastic_net <- share_of(given$penalty)
  }
  for (name in intersect(names(asked), names(options))) options[name] <- list(asked[[name]])
  options$calipers <- calipers(given$caliper)
  options
}

# What things are called: a named list.
labels_record <- function(labels) {
  named <- is.list(labels) && !is.null(names(labels)) && all(nzchar(names(labels)))
  if (!named) {
    refuse(sprintf("labels is %s", deparse1(labels)), "labels are a list with names",
           'use labels = list(time_unit = "days", treated = "chemotherapy")')
  }
  labels
}

# Which column plays which part, of the arguments of a call and the columns that a formula named.
roles_record <- function(columns, given) {
  where <- given$where
  if (!is.null(where) && (is.null(names(where)) || any(!nzchar(names(where))))) {
    refuse(sprintf("where is %s", deparse1(where)), "rows are kept by the value of a column",
           "use where = list(column = value), or `subset`")
  }
  filters <- lapply(names(where), function(column) list(column, label(where[[column]])))
  all <- settings()
  asked <- list(
    time = columns$time, event = columns$event, treatment = columns$treatment,
    horizon = number("horizon", given$horizon), dates = NULL, id = columns$id, covariates = as.list(columns$covariates),
    treated = label(given$treated), control = label(given$control), numeric = columns_named(given$numeric),
    categorical = as.list(columns$categorical), drop = list(), allow = columns_named(given$allow), filters = filters,
    missing = read_setting(all$missing, given$missing), zero_time = read_setting(all$zero_time, given$zero_time),
    weights = columns$weights, cluster = columns$cluster, entry = columns$entry, cause = label(given$cause)
  )
  if (!is.null(given$labels)) asked$labels <- labels_record(given$labels)
  asked
}

# The names of arguments of the method that are not what they are without being given; of a group size, only `auto`.
unusual <- function(given, all = settings()) {
  of_method <- Filter(function(s) s$topic == "method", all)
  usual <- formals(dvim)
  differs <- function(s) {
    value <- given[[s$argument]]
    if (s$argument == "group_size") return(identical(value, "auto"))
    is.atomic(value) && length(value) == 1 && !identical(value, eval(usual[[s$argument]]))
  }
  unname(vapply(Filter(differs, of_method), function(s) s$name, ""))
}
