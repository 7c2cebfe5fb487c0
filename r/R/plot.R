#' Figures of a fit
#'
#' `plot()` draws with R's own graphics, `autoplot()` with ggplot2. `dvim_figure()` gives the figure of the report as SVG.
#'
#' @param x,object A fit.
#' @param type What to draw: `"curves"` of both arms, adjusted for the covariates, with the Kaplan-Meier curves thin beside
#'   them; a `"forest"` of average effects; the `"plane"` of each patient's two effects; `"effects"` of patients in order,
#'   with intervals; `"balance"` of the arms; `"weights"` of covariates in the two metrics; average effects at other
#'   horizons (`"horizon"`); one `"patient"`.
#' @param id The patient, for `"patient"`.
#' @param by Subgroups, for `"forest"`, as in [averages()].
#' @param population The population, for `"curves"`.
#' @param kind For `dvim_figure()`: a kind of `dvim plot`, such as `"plane"`, or `"patient:17"`.
#' @param file Where to write the SVG; `NULL` gives its text.
#' @param width Width in pixels; letters keep their size.
#' @param time_unit The unit of time in words.
#' @param force Replace a file that is there.
#' @param ... Not used.
#' @return `x`, invisibly; a ggplot; the file, or the text of the figure.
#' @examples
#' cohort <- dvim_simulate("both-overlap", n = 400, seed = 1)
#' fit <- dvim(Surv(time, event) ~ x1 + x2 + x11, data = cohort, treatment = treatment, horizon = 800)
#' plot(fit)
#' plot(fit, "plane")
#' @export
plot.dvim <- function(x, type = "curves", id = NULL, by = NULL, population = "all", ...) {
  type <- word("type", type, figure_types)
  ink <- inks()
  old <- graphics::par(las = 1, mar = c(4.2, 4.4, 2.2, 1), mgp = c(2.8, 0.7, 0), tcl = -0.3, col.axis = ink[["muted"]],
                       fg = ink[["axis"]], col.lab = ink[["ink"]], bty = "l")
  on.exit(graphics::par(old))
  switch(type,
    curves = plot_curves(x, population, ink),
    forest = plot_pairs(forest_data(x, by), ink, plot_forest),
    plane = plot_plane(x, ink),
    effects = plot_pairs(effects_data(x), ink, plot_effects),
    balance = plot_balance(x, ink),
    weights = plot_weights(x, ink),
    horizon = plot_pairs(horizon_data(x), ink, plot_horizon),
    patient = plot_patient(x, id, ink)
  )
  invisible(x)
}

# A colour that lets the grid through.
faint <- function(colour, alpha) grDevices::adjustcolor(colour, alpha.f = alpha)

# A band; as steps where the curve has them.
band <- function(time, low, high, colour, alpha, steps = FALSE) {
  if (steps && length(time) > 1) {
    n <- length(time)
    time <- c(time[[1]], rep(time[-1], each = 2))
    low <- c(rep(low[-n], each = 2), low[[n]])
    high <- c(rep(high[-n], each = 2), high[[n]])
  }
  graphics::polygon(c(time, rev(time)), c(low, rev(high)), col = faint(colour, alpha), border = NA)
}

# An empty panel with a grid.
panel <- function(xlim, ylim, xlab, ylab, ink, ...) {
  graphics::plot(NA, xlim = xlim, ylim = ylim, xlab = xlab, ylab = ylab, xaxs = "i", ...)
  graphics::grid(col = ink[["grid"]], lty = 1)
}

plot_curves <- function(fit, population, ink) {
  found <- curves_data(fit, population)
  names <- arm_names(fit)
  graphics::par(mar = c(7.2, 5.4, 2.6, 1))
  panel(c(0, fit$horizon), c(0, 1.02), "", "Event-free", ink, yaxs = "i")
  ends <- character()
  for (arm in c("treated", "control")) {
    s <- found$seen[found$seen$arm == arm, ]
    line <- if (arm == "treated") 1 else 2
    if (is.null(found$adjusted)) {
      band(s$time, s$low, s$high, ink[[arm]], 0.15, steps = TRUE)
      graphics::lines(s$time, s$survival, type = "s", col = ink[[arm]], lwd = 2, lty = line)
      at_end <- s$survival[[nrow(s)]]
    } else {
      a <- found$adjusted[found$adjusted$arm == arm, ]
      band(a$time, a$band_low, a$band_high, ink[[arm]], 0.12)
      band(a$time, a$low, a$high, ink[[arm]], 0.18)
      graphics::lines(a$time, a$survival, col = ink[[arm]], lwd = 2.4, lty = line)
      if (population == "all") graphics::lines(s$time, s$survival, type = "s", col = ink[[arm]], lwd = 0.7, lty = line)
      at_end <- a$survival[[nrow(a)]]
    }
    ends[[arm]] <- sprintf("%s: %.0f %% event-free at the horizon", names[[arm]], 100 * at_end)
  }
  graphics::legend("bottomleft", ends[c("treated", "control")], col = ink[c("treated", "control")], lwd = 2, lty = 1:2,
                   bty = "n", cex = 0.85)
  title <- if (is.null(found$adjusted)) "Kaplan-Meier curves of the arms as they are"
           else if (population == "all") "Adjusted for the covariates; thin: Kaplan-Meier as seen"
           else paste("Adjusted:", population)
  graphics::title(main = title, adj = 0, font.main = 1, cex.main = 0.95)
  graphics::mtext("Time", side = 1, line = 2.2)
  if (population == "all") {
    at <- graphics::axTicks(1)
    at <- at[at <= fit$horizon]
    graphics::mtext("At risk", side = 1, line = 3.4, at = graphics::par("usr")[[1]], adj = 0, cex = 0.75, col = ink[["muted"]])
    for (arm in c("treated", "control")) {
      r <- found$risk[found$risk$arm == arm, ]
      n <- c(r$n_at_risk, 0)[findInterval(at, r$time, left.open = TRUE) + 1]
      graphics::mtext(n, side = 1, line = if (arm == "treated") 4.4 else 5.4, at = at, cex = 0.75, col = ink[[arm]])
    }
  }
}

# Two panels, one for each effect.
plot_pairs <- function(data, ink, draw) {
  old <- graphics::par(mfrow = c(1, 2))
  on.exit(graphics::par(old))
  column <- if ("term" %in% names(data)) "term" else "effect"
  for (effect in both_effects) draw(data[data[[column]] == effect, ], effect, ink)
}

colour_of <- function(effect, ink) ink[[if (effect == "cure_effect") "cure" else "time"]]

plot_forest <- function(d, effect, ink) {
  d <- d[rev(seq_len(nrow(d))), ]
  place <- seq_len(nrow(d))
  names <- as.character(d$population)
  graphics::par(mar = c(4.2, 1.2 + 0.5 * max(nchar(names)), 2.2, 1))
  reach <- range(d$estimate, d$conf.low, d$conf.high, 0, na.rm = TRUE)
  graphics::plot(NA, xlim = reach, ylim = c(0.5, nrow(d) + 0.5), xlab = effect_labels[[effect]], ylab = "", yaxt = "n")
  graphics::abline(v = 0, col = ink[["axis"]])
  graphics::axis(2, place, names, tick = FALSE)
  graphics::segments(d$conf.low, place, d$conf.high, place, col = colour_of(effect, ink), lwd = 2)
  graphics::points(d$estimate, place, pch = 15, col = colour_of(effect, ink), cex = 1.2)
}

plot_plane <- function(fit, ink) {
  found <- plane_data(fit)
  p <- found$patients
  graphics::plot(NA, xlim = range(p$cure, 0), ylim = range(p$time, 0), xlab = effect_labels[["cure_effect"]],
                 ylab = effect_labels[["time_effect"]])
  graphics::grid(col = ink[["grid"]], lty = 1)
  graphics::abline(h = 0, v = 0, col = ink[["axis"]])
  graphics::points(p$cure, p$time, pch = 16, cex = 0.5, col = faint(ink[["treated"]], min(0.6, 600 / nrow(p) + 0.08)))
  a <- found$average
  graphics::segments(a$cure[[2]], a$time[[1]], a$cure[[3]], a$time[[1]], col = ink[["control"]], lwd = 2)
  graphics::segments(a$cure[[1]], a$time[[2]], a$cure[[1]], a$time[[3]], col = ink[["control"]], lwd = 2)
  graphics::points(a$cure[[1]], a$time[[1]], pch = 21, bg = ink[["control"]], col = "white", cex = 1.5)
  graphics::legend("topleft", c("patients", "average, with its interval"), pch = 16, col = ink[c("treated", "control")],
                   bty = "n", cex = 0.85)
}

plot_effects <- function(d, effect, ink) {
  colour <- colour_of(effect, ink)
  panel(c(0, 100), range(d$estimate, d$low, d$high, 0, na.rm = TRUE), "Patients in order (%)", effect_labels[[effect]], ink)
  graphics::segments(d$rank, d$low, d$rank, d$high, col = faint(colour, min(0.5, 60 / nrow(d) + 0.03)))
  graphics::abline(h = 0, col = ink[["axis"]])
  graphics::points(d$rank, d$estimate, pch = 16, cex = 0.4, col = colour)
}

plot_balance <- function(fit, ink) {
  d <- balance_data(fit)
  names <- levels(d$covariate)
  graphics::par(mar = c(4.2, 1.6 + 0.5 * max(nchar(names)), 2.2, 1))
  states <- levels(d$state)
  colours <- if (length(states) == 2) ink[c("grey", "treated")] else ink[c("grey", "cure", "time")]
  marks <- c(4, 16, 18)[if (length(states) == 2) c(1, 3) else 1:3]
  graphics::plot(NA, xlim = c(0, max(d$difference, 0.12, na.rm = TRUE)), ylim = c(0.5, length(names) + 0.5), ylab = "",
                 xlab = "Absolute standardised difference between the arms", yaxt = "n")
  graphics::abline(h = seq_along(names), col = ink[["grid"]])
  graphics::abline(v = 0.1, col = ink[["axis"]], lty = 2)
  graphics::axis(2, seq_along(names), names, tick = FALSE)
  at <- as.integer(d$state)
  graphics::points(d$difference, as.integer(d$covariate), pch = marks[at], col = colours[at], cex = 1.2, lwd = 2)
  graphics::legend("bottomright", states, pch = marks, col = colours, bty = "n", cex = 0.85)
}

plot_weights <- function(fit, ink) {
  d <- weights_data(fit)
  names <- levels(d$covariate)
  graphics::par(mar = c(4.2, 1.6 + 0.5 * max(nchar(names)), 2.2, 1))
  table <- rbind(d$weight[d$metric == "for time"][match(names, d$covariate[d$metric == "for time"])],
                 d$weight[d$metric == "for cure"][match(names, d$covariate[d$metric == "for cure"])])
  graphics::barplot(table, beside = TRUE, horiz = TRUE, names.arg = names, col = ink[c("time", "cure")], border = NA,
                    xlab = "Weight in the metric")
  graphics::legend("bottomright", c("for cure", "for time"), fill = ink[c("cure", "time")], border = NA, bty = "n", cex = 0.85)
}

plot_horizon <- function(d, effect, ink) {
  panel(range(d$horizon), range(d$low, d$high, 0, na.rm = TRUE), "Horizon", effect_labels[[effect]], ink)
  band(d$horizon, d$low, d$high, colour_of(effect, ink), 0.15)
  graphics::abline(h = 0, col = ink[["axis"]])
  graphics::lines(d$horizon, d$estimate, type = "o", pch = 16, cex = 0.6, col = colour_of(effect, ink))
}

plot_patient <- function(fit, id, ink) {
  d <- patient_data(fit, id)
  names <- arm_names(fit)
  panel(c(0, fit$horizon), c(0, 1.02), "Time", "Event-free", ink, yaxs = "i")
  ends <- character()
  for (arm in c("treated", "control")) {
    a <- d[d$arm == arm, ]
    if (!is.null(a$low)) band(a$time, a$low, a$high, ink[[arm]], 0.15)
    graphics::lines(a$time, a$survival, col = ink[[arm]], lwd = 2, lty = if (arm == "treated") 1 else 2)
    ends[[arm]] <- sprintf("%s: %.0f %% event-free at the horizon", names[[arm]], 100 * a$survival[[nrow(a)]])
  }
  graphics::legend("bottomleft", ends, col = ink[c("treated", "control")], lwd = 2, lty = 1:2, bty = "n", cex = 0.85)
  graphics::title(main = paste("Patient", id), adj = 0, font.main = 1, cex.main = 0.95)
}

#' @export
plot.dvim_matches <- function(x, ...) plot(x$fit, "patient", id = x$id)

#' @rdname plot.dvim
#' @export
dvim_figure <- function(x, kind = "plane", file = NULL, width = 680, time_unit = NULL, force = FALSE) {
  path <- if (!is.null(file)) path.expand(file)
  found <- await(native_figure(run_of(x), kind, path, isTRUE(force), number("width", width), time_unit, threads_of()))
  if (is.null(file)) found else invisible(file)
}
