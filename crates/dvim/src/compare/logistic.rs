//! Logistic regression: `logit P(y = 1 | x) = intercept + x'b`. With treatment as outcome, the propensity model.

use nalgebra::DMatrix;

use super::design::{Design, Gram};
use super::newton::{self, Objective};
use super::score::{LinearScore, Link};
use super::{Certificate, FitOptions, InvalidInput, StopReason, check_finite, check_length};
use crate::numeric::expit;

/// A fitted logistic regression.
#[derive(Clone, Debug, PartialEq)]
pub struct LogisticFit {
    /// Log odds at covariates 0.
    pub intercept: f64,
    /// Log odds ratio per unit of each covariate; 0 for aliased ones.
    pub coefficients: Vec<f64>,
    /// Standard errors: of the intercept, then of each coefficient; NaN for aliased covariates.
    pub standard_errors: Vec<f64>,
    /// Inverse information of intercept and coefficients, row by row, (p + 1) × (p + 1); 0 for aliased covariates.
    pub covariance: Vec<f64>,
    /// Covariates that are constant or repeat earlier ones. Not estimated.
    pub aliased: Vec<usize>,
    /// Log-likelihood with all coefficients 0 and the best intercept.
    pub null_log_likelihood: f64,
    /// How the fit ended.
    pub certificate: Certificate,
}

impl LogisticFit {
    /// P(y = 1 | x) as a score: the propensity score where the outcome is treatment.
    pub fn score(&self) -> LinearScore {
        LinearScore { intercept: self.intercept, coefficients: self.coefficients.clone(), link: Link::Logistic }
    }
}

/// Fits the model by Newton's method (which is iteratively reweighted least squares) on covariates centred and scaled.
///
/// Log-likelihood `Σ y η − log(1 + e^η)`, gradient `Σ (y − μ) x`, information `Σ μ (1 − μ) x x'`, with `μ = expit(η)`.
/// Where one outcome is absent the slopes are 0 and the intercept is `log((n₁ + ½) / (n₀ + ½))`.
pub fn fit(
    covariates: &[f64],
    n_covariates: usize,
    outcome: &[bool],
    options: &FitOptions,
) -> Result<LogisticFit, InvalidInput> {
    fit_weighted(covariates, n_covariates, outcome, None, options)
}

/// The same where each row counts with a weight; standard errors are then those of so many rows.
pub(crate) fn fit_weighted(
    covariates: &[f64],
    n_covariates: usize,
    outcome: &[bool],
    weights: Option<&[f64]>,
    options: &FitOptions,
) -> Result<LogisticFit, InvalidInput> {
    let (n, p) = (outcome.len(), n_covariates);
    check_length("covariates", n * p, covariates.len())?;
    check_finite("covariates", covariates, p)?;
    if n == 0 {
        return Err(InvalidInput::Empty);
    }
    let all: Vec<usize> = (0..n).collect();
    let design = Design::new(covariates, p, &all);
    let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
    let total: f64 = (0..n).map(weight).sum();
    let positive: f64 = (0..n).filter(|&i| outcome[i]).map(weight).sum();
    let negative = total - positive;
    if positive == 0.0 || negative == 0.0 {
        return Ok(one_outcome(&design, p, positive, negative, options));
    }
    let start_intercept = libm::log(positive / negative);
    let null_log_likelihood = positive * libm::log(positive / total) + negative * libm::log(negative / total);

    let width = design.active.len() + 1;
    let mut likelihood = Bernoulli { rows: &design.rows, width, outcome, weights, gram: Gram::new(width) };
    let mut start = vec![0.0; width];
    start[0] = start_intercept;
    let penalty = |ridge: f64| {
        let mut all = vec![ridge; width];
        all[0] = 0.0;
        all
    };
    let mut ridge = options.ridge;
    let mut optimum = newton::maximise(&mut likelihood, start.clone(), &penalty(ridge), options);
    let mut stop_reason = optimum.stop_reason;
    if stop_reason == StopReason::Separation {
        ridge = options.separation_ridge;
        let before = optimum.iterations;
        optimum = newton::maximise(&mut likelihood, start, &penalty(ridge), options);
        optimum.iterations += before;
        if optimum.stop_reason != StopReason::Converged {
            stop_reason = optimum.stop_reason;
        }
    }

    // Back to the covariates' own units: (intercept, b) = J (a, β), with b = β / scale and intercept = a − Σ b centre.
    let mut jacobian = DMatrix::zeros(p + 1, width);
    jacobian[(0, 0)] = 1.0;
    for (a, &j) in design.active.iter().enumerate() {
        jacobian[(j + 1, a + 1)] = 1.0 / design.scale[j];
        jacobian[(0, a + 1)] = -design.centre[j] / design.scale[j];
    }
    let estimate = &jacobian * nalgebra::DVector::from_column_slice(&optimum.at);
    let covariance = &jacobian * &optimum.covariance * jacobian.transpose();
    let mut standard_errors: Vec<f64> = (0..=p).map(|j| covariance[(j, j)].sqrt()).collect();
    for &j in &design.aliased {
        standard_errors[j + 1] = f64::NAN;
    }
    Ok(LogisticFit {
        intercept: estimate[0],
        coefficients: estimate.as_slice()[1..].to_vec(),
        standard_errors,
        // Symmetric, so the order of storage does not matter.
        covariance: covariance.as_slice().to_vec(),
        aliased: design.aliased,
        null_log_likelihood,
        certificate: Certificate {
            converged: stop_reason == StopReason::Converged,
            stop_reason,
            iterations: optimum.iterations,
            log_likelihood: optimum.value,
            decrement: optimum.decrement,
            ridge,
        },
    })
}

fn one_outcome(design: &Design, p: usize, positive: f64, negative: f64, options: &FitOptions) -> LogisticFit {
    let intercept = libm::log((positive + 0.5) / (negative + 0.5));
    LogisticFit {
        intercept,
        coefficients: vec![0.0; p],
        standard_errors: vec![f64::NAN; p + 1],
        covariance: vec![0.0; (p + 1) * (p + 1)],
        aliased: design.aliased.clone(),
        null_log_likelihood: 0.0,
        certificate: Certificate {
            converged: false,
            stop_reason: StopReason::NoInformation,
            iterations: 0,
            log_likelihood: -(positive + negative) * softplus(-intercept.abs()),
            decrement: 0.0,
            ridge: options.ridge,
        },
    }
}

struct Bernoulli<'a> {
    rows: &'a [f64],
    /// Standardised covariates and the intercept, which stands first.
    width: usize,
    outcome: &'a [bool],
    /// Of each row; `None` where all are one.
    weights: Option<&'a [f64]>,
    gram: Gram,
}

impl Bernoulli<'_> {
    fn fill(&self, i: usize, row: &mut [f64]) {
        let p = self.width - 1;
        row[0] = 1.0;
        row[1..].copy_from_slice(&self.rows[i * p..(i + 1) * p]);
    }
}

impl Objective for Bernoulli<'_> {
    fn evaluate(&mut self, at: &[f64], gradient: &mut [f64], information: &mut DMatrix<f64>) -> f64 {
        let mut row = vec![0.0; self.width];
        let mut value = 0.0;
        for (i, &y) in self.outcome.iter().enumerate() {
            self.fill(i, &mut row);
            let eta: f64 = at.iter().zip(&row).map(|(b, x)| b * x).sum();
            let mu = expit(eta);
            let w = self.weights.map_or(1.0, |w| w[i]);
            value -= w * softplus(if y { -eta } else { eta });
            // y − μ without cancellation: for y = 1 it is 1 − μ = expit(−η).
            let residual = w * if y { expit(-eta) } else { -mu };
            for (g, x) in gradient.iter_mut().zip(&row) {
                *g += residual * x;
            }
            self.gram.push(w * (mu * expit(-eta)), &row, 1.0, information);
        }
        self.gram.flush(1.0, information);
        value
    }

    /// The likelihood is monotone along d exactly when d never points to the wrong outcome, and somewhere to the
    /// right one (Albert and Anderson 1984).
    fn recedes(&self, direction: &[f64]) -> bool {
        let mut row = vec![0.0; self.width];
        let (mut worst, mut best) = (f64::INFINITY, f64::NEG_INFINITY);
        for (i, &y) in self.outcome.iter().enumerate() {
            self.fill(i, &mut row);
            let slope: f64 = direction.iter().zip(&row).map(|(b, x)| b * x).sum();
            let towards = if y { slope } else { -slope };
            worst = worst.min(towards);
            best = best.max(towards);
        }
        best > 0.0 && worst >= -1e-9 * best
    }
}

/// `log(1 + exp(x))` without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_match_finite_differences() {
        let rows: Vec<f64> = (0..60).map(|k| ((k * 7919 + 13) % 101) as f64 / 50.0 - 1.0).collect();
        let outcome: Vec<bool> = (0..30).map(|i| (i * 5) % 7 < 3).collect();
        let mut likelihood = Bernoulli { rows: &rows, width: 3, outcome: &outcome, weights: None, gram: Gram::new(3) };
        let mut evaluate = |at: &[f64]| {
            let (mut g, mut info) = (vec![0.0; 3], DMatrix::zeros(3, 3));
            let value = likelihood.evaluate(at, &mut g, &mut info);
            (value, g, info)
        };
        let at = [0.2, -0.6, 1.1];
        let (_, gradient, information) = evaluate(&at);
        let h = 1e-5;
        for j in 0..3 {
            let (mut up, mut down) = (at, at);
            up[j] += h;
            down[j] -= h;
            let (above, below) = (evaluate(&up), evaluate(&down));
            assert!(((above.0 - below.0) / (2.0 * h) - gradient[j]).abs() < 1e-8);
            for k in 0..3 {
                assert!((-(above.1[k] - below.1[k]) / (2.0 * h) - information[(j, k)]).abs() < 1e-8);
            }
        }
    }
}
