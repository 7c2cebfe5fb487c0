#' Double variable importance matching
#'
#' Survival analysis usually blurs two questions into one number. dvim keeps them apart, patient by patient: does treatment
#' change *whether* the event happens before a horizon, and, for those who have it, *when*? Start with [dvim()] and
#' `vignette("dvim")`.
#'
#' @references Y. Li, Q. Lanners, M. M. Engelhard (2026). Double Variable Importance Matching to Estimate Distinct Causal
#'   Effects on Event Probability and Timing. arXiv:2602.05022.
#' @importFrom methods as
#' @importFrom stats coef confint nobs predict update vcov
#' @importFrom graphics plot
#' @keywords internal
#' @useDynLib dvim, .registration = TRUE
#' @name dvim-package
NULL
