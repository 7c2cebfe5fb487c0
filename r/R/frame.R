# From a formula and a data frame to the columns that the engine takes, each with its name and its part.

# A column as the engine takes it: numbers, text, logicals, or a factor. Dates and times of day are text.
plain_column <- function(values, name) {
  if (inherits(values, "Date")) return(format(values, "%Y-%m-%d"))
  if (inherits(values, "POSIXt")) {
    whole <- all(format(values, "%H:%M:%S") == "00:00:00", na.rm = TRUE)
    return(format(values, if (whole) "%Y-%m-%d" else "%Y-%m-%dT%H:%M:%S"))
  }
  if (inherits(values, "difftime")) {
    refuse(sprintf("column `%s` holds durations in %s", name, units(values)),
           "a covariate is a number whose unit is known to its reader",
           sprintf('convert it: as.numeric(%s, units = "days")', name))
  }
  if (is.factor(values)) return(factor(values, levels = levels(values), ordered = FALSE))
  # Labels of haven are about numbers, not levels.
  if (inherits(values, "haven_labelled")) values <- unclass(values)
  if (inherits(values, "integer64")) return(as.character(values))
  if (is.logical(values) || is.character(values)) return(as.vector(values))
  if (is.numeric(values)) return(as.vector(values))
  refuse(sprintf("column `%s` is of class %s", name, class(values)[[1]]),
         "columns are numbers, logicals, text, factors or dates", "convert it, or leave it out of the formula")
}

# A column, or the columns of a matrix such as splines::ns() makes.
plain_columns <- function(values, name) {
  if (!is.matrix(values)) return(stats::setNames(list(plain_column(values, name)), name))
  parts <- if (is.null(colnames(values))) seq_len(ncol(values)) else colnames(values)
  names <- if (ncol(values) == 1) name else paste(name, parts, sep = ".")
  stats::setNames(lapply(seq_len(ncol(values)), function(j) plain_column(values[, j], names[[j]])), names)
}

# The name of what was written: that of a variable, else the name of its part.
name_of <- function(expression, part) if (is.symbol(expression)) as.character(expression) else part

# What an argument was that a function handed on by its dots, and where it was written.
through_dots <- function(expression, env) {
  while (is.symbol(expression) && grepl("^\\.\\.[0-9]+$", as.character(expression))) {
    at <- as.integer(sub("..", "", as.character(expression), fixed = TRUE))
    expression <- eval(quote(substitute(list(...))), env)[[at + 1]]
    own <- which(vapply(sys.frames(), identical, NA, env))
    if (!length(own)) break
    env <- sys.frame(sys.parents()[[own[[1]]]])
  }
  list(expression = expression, env = env)
}

# An argument that names a column: a variable of the data, an expression, a formula with one side, or a text.
argument_column <- function(expression, part, data, env) {
  written <- through_dots(expression, env)
  expression <- written$expression
  env <- written$env
  if (is.null(expression)) return(NULL)
  if (is.call(expression) && identical(expression[[1]], quote(`~`)) && length(expression) == 2) {
    expression <- expression[[2]]
  }
  values <- eval(expression, data, env)
  if (is.null(values)) return(NULL)
  if (inherits(values, "formula")) return(argument_column(values, part, data, env))
  if (is.character(values) && length(values) == 1 && values %in% names(data)) {
    return(list(name = values, values = data[[values]]))
  }
  list(name = name_of(expression, part), values = values)
}

# The outcome of Surv(): columns for time, event and, with delayed entry, entry.
outcome_columns <- function(response, call) {
  if (!inherits(response, "Surv")) {
    refuse(sprintf("the left side of the formula is %s", deparse1(call)), "the outcome is a Surv() of package survival",
           "write Surv(time, status) ~ age + sex", code = "bad_formula")
  }
  type <- attr(response, "type")
  if (!type %in% c("right", "counting", "mright", "mcounting")) {
    refuse(sprintf("the outcome is censored as `%s`", type),
           "follow-up ends at the event or at right censoring, and may begin late",
           "use Surv(time, status) or Surv(entry, time, status)", code = "bad_formula")
  }
  late <- type %in% c("counting", "mcounting")
  parts <- unclass(response)
  written <- as.list(call)[-1]
  if (!is.call(call) || !identical(sub("^survival::", "", deparse1(call[[1]])), "Surv")) written <- list()
  names <- names(written)
  given <- function(i, argument) {
    at <- if (!is.null(names) && argument %in% names) match(argument, names) else i
    if (at <= length(written)) name_of(written[[at]], argument) else argument
  }
  status <- parts[, "status"]
  states <- attr(response, "states")
  if (!is.null(states)) {
    # Causes are numbers where their names are; else text, with 0 for censored.
    numeric <- suppressWarnings(as.numeric(states))
    status <- if (anyNA(numeric)) c("0", states)[status + 1] else c(0, numeric)[status + 1]
  }
  if (late) {
    columns <- list(parts[, "start"], parts[, "stop"], status)
    names(columns) <- c(given(1, "entry"), given(2, "time"), given(3, "event"))
    roles <- list(entry = names(columns)[[1]], time = names(columns)[[2]], event = names(columns)[[3]])
  } else {
    columns <- list(parts[, "time"], status)
    names(columns) <- c(given(1, "time"), given(2, "event"))
    roles <- list(time = names(columns)[[1]], event = names(columns)[[2]])
  }
  list(columns = lapply(columns, unname), roles = roles, states = states)
}

# The calls of strata() and cluster() among the terms of a formula, and the terms without them.
special_terms <- function(terms) {
  variables <- as.list(attr(terms, "variables"))[-1]
  specials <- attr(terms, "specials")
  calls <- function(which) lapply(specials[[which]], function(i) as.list(variables[[i]])[-1])
  labels <- attr(terms, "term.labels")
  special <- vapply(variables[unlist(specials)], deparse1, "")
  list(strata = unlist(calls("strata"), recursive = FALSE), cluster = unlist(calls("cluster"), recursive = FALSE),
       labels = setdiff(labels, special))
}

# Everything that a call of dvim() says of its data: the columns, their parts, and what later calls need to know.
frame_of <- function(formula, data, call, env, given) {
  if (!inherits(formula, "formula") || length(formula) != 3) {
    refuse(sprintf("the formula is %s", deparse1(formula)), "a formula has the outcome left and covariates right of ~",
           "write Surv(time, status) ~ age + sex", code = "bad_formula")
  }
  if (!is.null(data) && !is.data.frame(data)) data <- as.data.frame(data)
  kind <- if (is.null(data)) "variables" else class(data)[[1]]
  if (inherits(data, "data.table")) data <- as.data.frame(data)
  if (!is.null(call$subset)) {
    written <- through_dots(call$subset, env)
    keep <- eval(written$expression, data, written$env)
    data <- data[if (is.logical(keep)) which(keep) else keep, , drop = FALSE]
  }
  written <- as.list(call)
  argument <- function(part) argument_column(written[[part]], part, data, env)
  treatment <- argument("treatment")
  if (is.null(treatment)) {
    refuse("no treatment was given", "the treatment is a column of the data", "add treatment = name_of_the_column")
  }
  weights <- argument("weights")
  cluster <- argument("cluster")
  id <- argument("id")
  # A dot means every other column.
  own <- c(treatment$name, weights$name, cluster$name, id$name, names(given$where), given$imputation)
  rest <- if (is.null(data)) NULL else data[setdiff(names(data), own)]
  environment(formula) <- formula_environment(environment(formula))
  terms <- stats::terms(formula, specials = c("strata", "cluster"), data = rest)
  if (!is.null(attr(terms, "offset"))) {
    refuse("the formula has an offset", "effects are estimated from covariates", "leave offset() out of the formula",
           code = "bad_formula")
  }
  crossed <- attr(terms, "term.labels")[attr(terms, "order") > 1]
  if (length(crossed)) {
    refuse(sprintf("the formula has %s", paste(crossed, collapse = ", ")),
           "patients are matched on covariates; the models find interactions with treatment by themselves",
           "write + between covariates", code = "bad_formula")
  }
  special <- special_terms(terms)
  if (length(special$cluster)) {
    if (!is.null(cluster)) {
      refuse("clusters were given twice", "patients are in one cluster", "leave `cluster` or cluster() out")
    }
    cluster <- argument_column(special$cluster[[1]], "cluster", data, env)
  }
  # The default column of ids, or row names that somebody gave.
  # A column that only the dot means may be that of the ids; one that is written is a covariate.
  written <- intersect(special$labels, all.vars(formula[[3]]))
  base <- list(time = "time", event = "event", treatment = treatment$name, covariates = written)
  if (is.null(id) && !is.null(data)) {
    usual <- native_id_column(names(data), roles_record(base, given))
    if (!is.null(usual)) {
      id <- list(name = usual, values = data[[usual]], is_usual = TRUE)
      special$labels <- setdiff(special$labels, usual)
    } else if (.row_names_info(data) > 0) {
      id <- list(name = "row.names", values = attr(data, "row.names"))
    }
  }
  strata <- lapply(special$strata, function(s) argument_column(s, deparse1(s), data, env))
  names(strata) <- vapply(strata, function(s) s$name, "")
  if (!length(c(special$labels, names(strata)))) {
    refuse("the formula names no covariate", "patients are matched on covariates", "write Surv(time, status) ~ age + sex",
           code = "bad_formula")
  }
  # A label has lost the brackets that it was written in.
  inside <- if (length(special$labels)) sprintf("(%s)", special$labels) else "1"
  covariates <- stats::reformulate(inside, env = environment(formula))
  frame <- stats::model.frame(covariates, data, na.action = stats::na.pass, drop.unused.levels = FALSE)
  response <- eval(formula[[2]], data, environment(formula))
  outcome <- outcome_columns(response, formula[[2]])
  x <- c(unlist(unname(Map(plain_columns, as.list(frame), names(frame))), recursive = FALSE),
         lapply(strata[setdiff(names(strata), names(frame))], function(s) plain_column(s$values, s$name)))
  parts <- Filter(Negate(is.null), list(treatment, weights, cluster))
  columns <- c(outcome$columns, x)
  for (part in parts) columns[[part$name]] <- plain_column(part$values, part$name)
  if (!is.null(id)) columns[[id$name]] <- plain_column(id$values, id$name)
  for (column in c(names(given$where), given$imputation)) {
    if (is.null(columns[[column]])) {
      if (!column %in% names(data)) {
        refuse(sprintf("column `%s` is not in the data", column), "a column is named as the data name it",
               "see names(data)", code = "no_such_column")
      }
      columns[[column]] <- plain_column(data[[column]], column)
    }
  }
  n <- lengths(columns)
  if (any(n != n[[1]])) {
    wrong <- names(n)[n != n[[1]]][[1]]
    refuse(sprintf("`%s` has %d values, and `%s` has %d", wrong, n[[wrong]], names(n)[[1]], n[[1]]),
           "every column has one value for each patient", "take all of them from one data frame")
  }
  roles <- c(outcome$roles, list(
    treatment = treatment$name, covariates = names(x), weights = weights$name, cluster = cluster$name,
    id = if (!isTRUE(id$is_usual)) id$name,
    categorical = unlist(columns_named(given$categorical))
  ))
  list(columns = columns, roles = roles, kind = kind, strata = names(strata), id = id, data = data,
       treatment = treatment$values, terms = stats::terms(frame), xlevels = stats::.getXlevels(stats::terms(frame), frame))
}

# Surv(), strata() and cluster() are those of survival, also where it is not attached.
formula_environment <- function(env) {
  out <- new.env(parent = if (is.null(env)) parent.frame() else env)
  for (name in c("Surv", "strata", "cluster")) {
    if (!exists(name, envir = out, mode = "function")) assign(name, getExportedValue("survival", name), envir = out)
  }
  out
}

# The variables of an expression, without the names of packages and functions.
variables_of <- function(expression) {
  if (is.symbol(expression)) return(as.character(expression))
  if (!is.call(expression) || identical(expression[[1]], quote(`::`))) return(character())
  unique(unlist(lapply(as.list(expression)[-1], variables_of)))
}

# The covariates of new patients, by the terms of a fit.
frame_of_new <- function(fit, data) {
  if (!is.data.frame(data)) data <- as.data.frame(data)
  if (inherits(data, "data.table")) data <- as.data.frame(data)
  terms <- stats::delete.response(fit$terms)
  wanted <- setdiff(c(variables_of(attr(terms, "variables")), fit$strata), names(data))
  if (length(wanted)) {
    refuse(sprintf("the new data have no column `%s`", wanted[[1]]), "new patients have the covariates of the cohort",
           sprintf("add %s", paste(wanted, collapse = ", ")), code = "no_such_column")
  }
  frame <- stats::model.frame(terms, data, na.action = stats::na.pass, xlev = NULL)
  x <- unlist(unname(Map(plain_columns, as.list(frame), names(frame))), recursive = FALSE)
  c(x, lapply(data[setdiff(fit$strata, names(x))], function(v) plain_column(v, "")))
}

# Ids as the engine writes them.
id_texts <- function(values) {
  if (is.null(values)) return(NULL)
  if (is.numeric(values)) return(ifelse(values == round(values), sprintf("%.0f", values), as.character(values)))
  trimws(as.character(values))
}

# Texts as whole numbers, where all of them are.
plain_texts <- function(texts) {
  if (!length(texts) || anyNA(texts) || !all(grepl("^(0|-?[1-9][0-9]{0,8})$", texts))) return(texts)
  as.integer(texts)
}

# A data frame of the engine's columns; ids and arms are whole numbers where all of them are.
as_frame <- function(columns) {
  for (name in intersect(c("id", "treatment", "member"), names(columns))) columns[[name]] <- plain_texts(columns[[name]])
  structure(columns, class = "data.frame", row.names = .set_row_names(if (length(columns)) length(columns[[1]]) else 0L))
}

# A data frame of records, one row each; a value that is missing is NA.
records_frame <- function(records, fields = unique(unlist(lapply(records, names)))) {
  column <- function(name) {
    values <- lapply(records, function(r) if (is.null(r[[name]])) NA else r[[name]])
    if (any(lengths(values) != 1)) values else unlist(values)
  }
  columns <- stats::setNames(lapply(fields, column), fields)
  structure(columns, class = "data.frame", row.names = .set_row_names(length(records)))
}
