# The figures of plot() by ggplot2, as objects that can be changed further.

#' @rdname plot.dvim
#' @exportS3Method ggplot2::autoplot
autoplot.dvim <- function(object, type = "curves", id = NULL, by = NULL, population = "all", ...) {
  type <- word("type", type, figure_types)
  ink <- inks()
  plot <- switch(type,
    curves = gg_curves(object, population, ink),
    forest = gg_forest(object, by, ink),
    plane = gg_plane(object, ink),
    effects = gg_effects(object, ink),
    balance = gg_balance(object, ink),
    weights = gg_weights(object, ink),
    horizon = gg_horizon(object, ink),
    patient = gg_patient(object, id, ink)
  )
  plot + ggplot2::theme_minimal(base_size = 11) +
    ggplot2::theme(legend.position = "bottom", panel.grid.minor = ggplot2::element_blank(),
                   text = ggplot2::element_text(colour = ink[["ink"]]))
}

gg_arms <- function(names, ink) {
  colours <- ink[c("treated", "control")]
  list(
    ggplot2::scale_colour_manual(NULL, values = colours, labels = names, breaks = c("treated", "control"),
                                 aesthetics = c("colour", "fill")),
    ggplot2::scale_linetype_manual(NULL, values = c(treated = 1, control = 2), labels = names,
                                   breaks = c("treated", "control"))
  )
}

gg_survival <- function(fit, title) {
  list(ggplot2::scale_y_continuous(labels = function(x) paste(100 * x, "%")),
       ggplot2::coord_cartesian(ylim = c(0, 1), xlim = c(0, fit$horizon)),
       ggplot2::labs(x = "Time", y = "Event-free", subtitle = title))
}

gg_curves <- function(fit, population, ink) {
  found <- curves_data(fit, population)
  names <- arm_names(fit)[c("treated", "control")]
  aes <- ggplot2::aes
  if (is.null(found$adjusted)) {
    return(ggplot2::ggplot(found$seen, aes(time, survival, colour = arm, linetype = arm)) +
             ggplot2::geom_step(linewidth = 0.8) + gg_arms(names, ink) +
             gg_survival(fit, "Kaplan-Meier curves of the arms as they are"))
  }
  plot <- ggplot2::ggplot(found$adjusted, aes(time, survival, colour = arm, linetype = arm)) +
    ggplot2::geom_ribbon(aes(ymin = band_low, ymax = band_high, fill = arm), alpha = 0.12, colour = NA) +
    ggplot2::geom_ribbon(aes(ymin = low, ymax = high, fill = arm), alpha = 0.18, colour = NA) +
    ggplot2::geom_line(linewidth = 1) + gg_arms(names, ink)
  if (population != "all") return(plot + gg_survival(fit, paste("Adjusted:", population)))
  plot + ggplot2::geom_step(data = found$seen, linewidth = 0.3) +
    gg_survival(fit, "Adjusted for the covariates; thin: Kaplan-Meier as seen")
}

gg_effect_panels <- function() {
  ggplot2::facet_wrap("effect", scales = "free", labeller = ggplot2::as_labeller(effect_labels))
}

gg_effect_colours <- function(ink) {
  ggplot2::scale_colour_manual(values = c(cure_effect = ink[["cure"]], time_effect = ink[["time"]]),
                               aesthetics = c("colour", "fill"), guide = "none")
}

gg_forest <- function(fit, by, ink) {
  d <- forest_data(fit, by)
  d$effect <- d$term
  aes <- ggplot2::aes
  ggplot2::ggplot(d, aes(estimate, population, colour = effect)) +
    ggplot2::geom_vline(xintercept = 0, colour = ink[["axis"]]) +
    ggplot2::geom_segment(aes(x = conf.low, xend = conf.high, yend = population), linewidth = 0.9) +
    ggplot2::geom_point(shape = 15, size = 2.6) + gg_effect_panels() + gg_effect_colours(ink) +
    ggplot2::labs(x = NULL, y = NULL)
}

gg_plane <- function(fit, ink) {
  found <- plane_data(fit)
  aes <- ggplot2::aes
  a <- found$average
  average <- data.frame(cure = a$cure[[1]], cure_low = a$cure[[2]], cure_high = a$cure[[3]], time = a$time[[1]],
                        time_low = a$time[[2]], time_high = a$time[[3]])
  ggplot2::ggplot(found$patients, aes(cure, time)) +
    ggplot2::geom_hline(yintercept = 0, colour = ink[["axis"]]) + ggplot2::geom_vline(xintercept = 0, colour = ink[["axis"]]) +
    ggplot2::geom_point(colour = ink[["treated"]], alpha = min(0.6, 600 / nrow(found$patients) + 0.08), size = 0.9) +
    ggplot2::geom_segment(data = average, aes(x = cure_low, xend = cure_high, yend = time), colour = ink[["control"]], linewidth = 0.9) +
    ggplot2::geom_segment(data = average, aes(y = time_low, yend = time_high, xend = cure), colour = ink[["control"]], linewidth = 0.9) +
    ggplot2::geom_point(data = average, shape = 21, fill = ink[["control"]], colour = "white", size = 3.2) +
    ggplot2::labs(x = effect_labels[["cure_effect"]], y = effect_labels[["time_effect"]],
                  subtitle = "Each patient; large: the average with its intervals")
}

gg_effects <- function(fit, ink) {
  aes <- ggplot2::aes
  d <- effects_data(fit)
  ggplot2::ggplot(d, aes(rank, estimate, colour = effect)) +
    ggplot2::geom_linerange(aes(ymin = low, ymax = high), alpha = min(0.5, 120 / nrow(d) + 0.03), linewidth = 0.3, na.rm = TRUE) +
    ggplot2::geom_hline(yintercept = 0, colour = ink[["axis"]]) +
    ggplot2::geom_point(size = 0.4) + gg_effect_panels() + gg_effect_colours(ink) +
    ggplot2::labs(x = "Patients in order (%)", y = NULL)
}

gg_balance <- function(fit, ink) {
  d <- balance_data(fit)
  states <- levels(d$state)
  two <- length(states) == 2
  aes <- ggplot2::aes
  ggplot2::ggplot(d, aes(difference, covariate, colour = state, shape = state)) +
    ggplot2::geom_vline(xintercept = 0.1, colour = ink[["axis"]], linetype = 2) +
    ggplot2::geom_point(size = 2.4, stroke = 1) +
    ggplot2::scale_colour_manual(NULL, values = unname(if (two) ink[c("grey", "treated")] else ink[c("grey", "cure", "time")])) +
    ggplot2::scale_shape_manual(NULL, values = if (two) c(4, 18) else c(4, 16, 18)) +
    ggplot2::expand_limits(x = 0) +
    ggplot2::labs(x = "Absolute standardised difference between the arms", y = NULL)
}

gg_weights <- function(fit, ink) {
  aes <- ggplot2::aes
  ggplot2::ggplot(weights_data(fit), aes(weight, covariate, fill = metric)) +
    ggplot2::geom_col(position = ggplot2::position_dodge2(reverse = TRUE), width = 0.75) +
    ggplot2::scale_fill_manual(NULL, values = c("for cure" = ink[["cure"]], "for time" = ink[["time"]])) +
    ggplot2::labs(x = "Weight in the metric", y = NULL)
}

gg_horizon <- function(fit, ink) {
  aes <- ggplot2::aes
  ggplot2::ggplot(horizon_data(fit), aes(horizon, estimate, colour = effect)) +
    ggplot2::geom_ribbon(aes(ymin = low, ymax = high, fill = effect), alpha = 0.15, colour = NA) +
    ggplot2::geom_hline(yintercept = 0, colour = ink[["axis"]]) +
    ggplot2::geom_line() + ggplot2::geom_point(size = 1) + gg_effect_panels() + gg_effect_colours(ink) +
    ggplot2::labs(x = "Horizon", y = NULL)
}

gg_patient <- function(fit, id, ink) {
  aes <- ggplot2::aes
  d <- patient_data(fit, id)
  plot <- ggplot2::ggplot(d, aes(time, survival, colour = arm, linetype = arm))
  if (!is.null(d$low)) {
    plot <- plot + ggplot2::geom_ribbon(aes(ymin = low, ymax = high, fill = arm), alpha = 0.15, colour = NA)
  }
  plot + ggplot2::geom_line(linewidth = 1) + gg_arms(arm_names(fit)[c("treated", "control")], ink) +
    gg_survival(fit, paste("Patient", id))
}

# Columns of the figures' data, which ggplot2 finds by their names.
utils::globalVariables(c("arm", "band_high", "band_low", "conf.high", "conf.low", "covariate", "cure", "cure_high", "cure_low",
                         "difference", "effect", "estimate", "high", "horizon", "low", "metric", "population", "state",
                         "survival", "time", "time_high", "time_low", "weight"))
