# The data of each figure, which plot() and autoplot() both draw.

figure_types <- c("curves", "forest", "plane", "effects", "balance", "weights", "horizon", "patient")

# The colours of the reports, from their own style sheet: one table for every figure.
inks <- function() {
  sheet <- sub("@media.*", "", native_style_sheet())
  found <- regmatches(sheet, gregexpr("--dv-[a-z-]+:#[0-9a-f]{6}", sheet))[[1]]
  parts <- strsplit(sub("^--dv-", "", found), ":", fixed = TRUE)
  stats::setNames(vapply(parts, `[[`, "", 2), vapply(parts, `[[`, "", 1))
}

# Names of the arms for a reader: "Treated" and "Control" where the labels are 1 and 0.
arm_names <- function(fit) {
  labels <- arm_labels(fit)
  plain <- all(labels %in% c("0", "1"))
  if (plain) c(control = "Control", treated = "Treated") else labels
}

# Curves of both arms to the horizon: adjusted where the fit has them, with the Kaplan-Meier curves beside them.
curves_data <- function(fit, population = "all") {
  raw <- arm_curves(fit)
  raw <- raw[raw$time <= fit$horizon, ]
  seen <- do.call(rbind, lapply(c("control", "treated"), function(arm) {
    r <- raw[raw$arm == arm, ]
    at_end <- if (nrow(r)) r$survival[[nrow(r)]] else 1
    band <- function(x, none) c(none, x, if (nrow(r)) x[[nrow(r)]] else none)
    data.frame(arm = arm, time = c(0, r$time, fit$horizon), survival = c(1, r$survival, at_end), low = band(r$low, 1),
               high = band(r$high, 1))
  }))
  adjusted <- NULL
  if (length(audit_of(fit)$curves)) {
    all <- curves(fit)
    if (!population %in% all$population) {
      refuse(sprintf("this fit has no curves of `%s`", population),
             sprintf("its populations are %s", paste(unique(all$population), collapse = ", ")),
             "use one of them, or fit with `by`")
    }
    adjusted <- all[all$population == population & all$arm %in% c("control", "treated"), ]
  }
  list(seen = seen, adjusted = adjusted, risk = raw, population = population)
}

# Both average effects by population, for a forest. Cure effects are in percentage points.
forest_data <- function(fit, by = NULL) {
  found <- averages(fit, by)
  found <- found[found$term %in% both_effects & !is.na(found$estimate), ]
  scale <- ifelse(found$term == "cure_effect", 100, 1)
  for (part in c("estimate", "conf.low", "conf.high")) found[[part]] <- scale * found[[part]]
  found$population <- factor(found$population, levels = rev(unique(found$population)))
  found
}

plane_data <- function(fit) {
  e <- fit$effects
  known <- !is.na(e$cure_effect) & !is.na(e$time_effect)
  average <- average_of(fit)
  list(patients = data.frame(id = e$id[known], cure = 100 * e$cure_effect[known], time = e$time_effect[known]),
       average = list(cure = 100 * unlist(average["cure_effect", c("estimate", "conf.low", "conf.high")]),
                      time = unlist(average["time_effect", c("estimate", "conf.low", "conf.high")])))
}

# Both effects of each patient in order, with intervals.
effects_data <- function(fit) {
  one <- function(name, scale) {
    e <- fit$effects
    column <- function(end) {
      values <- e[[paste0(name, end)]]
      if (is.null(values)) rep(NA_real_, nrow(e)) else scale * values
    }
    found <- data.frame(effect = name, estimate = column(""), low = column("_low"), high = column("_high"))
    found <- found[order(found$estimate, na.last = NA), ]
    found$rank <- 100 * (seq_len(nrow(found)) - 0.5) / nrow(found)
    found
  }
  rbind(one("cure_effect", 100), one("time_effect", 1))
}

balance_data <- function(fit) {
  found <- balance(fit)
  averaged <- "difference_average" %in% names(found)
  states <- if (averaged) c(before = "as they are", average = "weighted as in the averages")
            else c(before = "before matching", cure = "matched for cure", time = "matched for time")
  order <- found$covariate[order(abs(found$difference_before))]
  do.call(rbind, lapply(names(states), function(when) {
    data.frame(covariate = factor(found$covariate, levels = order), state = factor(states[[when]], levels = unname(states)),
               difference = abs(found[[paste0("difference_", when)]]))
  }))
}

weights_data <- function(fit) {
  w <- fit$weights
  name <- ifelse(!is.na(w$level) & w$level == "(missing)", paste(w$covariate, "missing"), w$covariate)
  w <- w[!duplicated(name), ]
  name <- name[!duplicated(name)]
  order <- name[order(pmax(w$cure_weight, w$time_weight))]
  data.frame(covariate = factor(rep(name, 2), levels = order),
             metric = factor(rep(c("for cure", "for time"), each = length(name))),
             weight = c(w$cure_weight, w$time_weight))
}

horizon_data <- function(fit) {
  found <- audit_of(fit)$horizons
  if (!length(found)) {
    refuse("this fit has no effects over the horizon", "they are part of the audit where it can make them",
           'fit with estimator = "paper"')
  }
  one <- function(name, scale) {
    rows <- Filter(function(h) length(h[[name]]) == 3, found)
    values <- vapply(rows, function(h) as.numeric(h[[name]]), numeric(3))
    data.frame(effect = name, horizon = vapply(rows, function(h) h$horizon, 0), estimate = scale * values[1, ],
               low = scale * values[2, ], high = scale * values[3, ])
  }
  rbind(one("cure_effect", 100), one("time_effect", 1))
}

# One patient's curves in either arm.
patient_data <- function(fit, id) {
  if (is.null(id)) refuse("no patient was named", "this figure is of one patient", "add id = ")
  found <- curves(fit, patients = id)
  found[found$arm %in% c("control", "treated"), ]
}

effect_labels <- c(cure_effect = "Cure effect (percentage points)", time_effect = "Time effect (in the unit of time)")
