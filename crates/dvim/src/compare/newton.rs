//! Newton's method for a concave objective, with step halving and a check for directions in
//! which the objective rises for ever. Knows no survival words.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

use super::{FitOptions, StopReason};

/// No scaled coefficient moves further in one step. Near separation the information is almost nil and a full Newton
/// step can land where all weights underflow; elsewhere the limit is not reached (five log hazard ratios per standard
/// deviation).
const LONGEST_STEP: f64 = 5.0;
/// A fit that cannot finish with a scaled coefficient beyond this is taken for separation.
const FAR: f64 = 20.0;

/// A concave, twice differentiable log-likelihood.
pub(super) trait Objective {
    /// Value at `at`; fills the gradient and the information (minus the Hessian), which come zeroed.
    /// A value that is not finite rejects the point.
    fn evaluate(&mut self, at: &[f64], gradient: &mut [f64], information: &mut DMatrix<f64>) -> f64;

    /// Whether the log-likelihood never falls along `direction` and somewhere rises: then it has no maximum.
    fn recedes(&self, direction: &[f64]) -> bool;
}

/// Where the iterations ended.
pub(super) struct Optimum {
    pub at: Vec<f64>,
    /// Log-likelihood without penalty.
    pub value: f64,
    /// Inverse of the penalised information, or NaN where it cannot be inverted.
    pub covariance: DMatrix<f64>,
    pub stop_reason: StopReason,
    pub iterations: usize,
    pub decrement: f64,
}

/// Maximises `objective(b) − ½ Σ ridge_j b_j²`.
///
/// The decrement `g' I⁻¹ g` decides convergence. Under separation it also goes to zero while the step does
/// not, so a small decrement with a large step is separation, and from the fourth step on the estimate and the
/// step are tested as directions of recession, which proves it sooner (`docs/methods-compare.md`, separation).
pub(super) fn maximise(
    objective: &mut impl Objective,
    start: Vec<f64>,
    ridge: &[f64],
    options: &FitOptions,
) -> Optimum {
    let size = start.len();
    let penalised = ridge.iter().any(|&r| r > 0.0);
    let mut point = Point::new(objective, start, ridge);
    let mut iterations = 0;
    let (stop_reason, decrement) = loop {
        let step = solve(&point.information, &point.gradient);
        let decrement = step.dot(&point.gradient).max(0.0);
        let longest = step.amax();
        if decrement <= options.tolerance {
            if !penalised && longest > 1e-3 {
                break (StopReason::Separation, decrement);
            }
            let last = Point::new(objective, point.moved(&step, 1.0), ridge);
            if last.value.is_finite() {
                point = last;
                iterations += usize::from(size > 0);
            } else {
                point = Point::new(objective, point.at, ridge);
            }
            break (StopReason::Converged, decrement);
        }
        if !penalised && iterations >= 4 && (objective.recedes(&point.at) || objective.recedes(step.as_slice())) {
            break (StopReason::Separation, decrement);
        }
        if iterations >= options.max_iterations {
            break (StopReason::MaxIterations, decrement);
        }
        // Round-off in a sum of n terms may hide a true gain: allow that much of a fall.
        let slack = 1e-12 * (1.0 + point.value.abs());
        let mut length = (LONGEST_STEP / longest).min(1.0);
        let mut accepted = None;
        for _ in 0..=options.max_halvings {
            let trial = Point::new(objective, point.moved(&step, length), ridge);
            if trial.value.is_finite() && trial.value >= point.value - slack {
                accepted = Some(trial);
                break;
            }
            length *= 0.5;
        }
        match accepted {
            Some(trial) => point = trial,
            None => {
                // The objective keeps what it computed last: bring it back to the point that is returned.
                point = Point::new(objective, point.at, ridge);
                break (StopReason::NoProgress, decrement);
            }
        }
        iterations += 1;
    };
    let unfinished = matches!(stop_reason, StopReason::MaxIterations | StopReason::NoProgress);
    let far = point.at.iter().any(|b| b.abs() > FAR);
    let stop_reason = if unfinished && far && !penalised { StopReason::Separation } else { stop_reason };
    let covariance = match Cholesky::new(point.information.clone()) {
        Some(factor) => factor.inverse(),
        None => DMatrix::from_element(size, size, f64::NAN),
    };
    let value = point.value + penalty(&point.at, ridge);
    Optimum { at: point.at, value, covariance, stop_reason, iterations, decrement }
}

fn penalty(at: &[f64], ridge: &[f64]) -> f64 {
    at.iter().zip(ridge).map(|(b, r)| 0.5 * r * b * b).sum()
}

struct Point {
    at: Vec<f64>,
    value: f64,
    gradient: DVector<f64>,
    information: DMatrix<f64>,
}

impl Point {
    fn new(objective: &mut impl Objective, at: Vec<f64>, ridge: &[f64]) -> Self {
        let size = at.len();
        let mut gradient = DVector::zeros(size);
        let mut information = DMatrix::zeros(size, size);
        let value = objective.evaluate(&at, gradient.as_mut_slice(), &mut information) - penalty(&at, ridge);
        for j in 0..size {
            gradient[j] -= ridge[j] * at[j];
            information[(j, j)] += ridge[j];
        }
        Self { at, value, gradient, information }
    }

    fn moved(&self, step: &DVector<f64>, length: f64) -> Vec<f64> {
        self.at.iter().zip(step.iter()).map(|(b, s)| b + length * s).collect()
    }
}

/// `information⁻¹ gradient`; where round-off has made the information indefinite, a growing multiple of
/// its largest diagonal entry is added until it is not.
fn solve(information: &DMatrix<f64>, gradient: &DVector<f64>) -> DVector<f64> {
    if gradient.is_empty() {
        return gradient.clone();
    }
    let largest = information.diagonal().amax().max(f64::MIN_POSITIVE);
    let mut shift = 0.0;
    for _ in 0..24 {
        let mut shifted = information.clone();
        for j in 0..gradient.len() {
            shifted[(j, j)] += shift;
        }
        if let Some(factor) = Cholesky::<f64, Dyn>::new(shifted) {
            let step = factor.solve(gradient);
            if step.iter().all(|s| s.is_finite()) {
                return step;
            }
        }
        shift = if shift == 0.0 { 1e-12 * largest } else { 10.0 * shift };
    }
    DVector::zeros(gradient.len())
}
