//! How sure a fitted joint model is of what it says.

use super::Predictor;
use super::likelihood::Widths;
use super::matrix::dot;
use crate::arm::{Arm, ByArm};
use crate::estimand::{ByEstimand, Estimand};
use rayon::prelude::*;
use std::borrow::Cow;

/// How far from the truth a model may be for one unit, on the scale of one estimand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Variance under each arm.
    pub variance: ByArm<f64>,
    /// Covariance of the two arms.
    pub covariance: f64,
}

impl Spread {
    /// The correlation of the arms, in [−1, 1].
    pub fn correlation(&self) -> f64 {
        let rho = self.covariance / f64::sqrt(self.variance.control * self.variance.treated);
        if rho.is_finite() { rho.clamp(-1.0, 1.0) } else { 0.0 }
    }
}

/// How far from the truth a model may be for one unit, in both estimands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spreads {
    /// Of the cure logit, and of the log of the mean event time.
    pub of: ByEstimand<Spread>,
    /// Covariance of the cure logit in one arm (first) and the log of the mean event time in another.
    pub cross: ByArm<ByArm<f64>>,
}

/// How sure the model is: the covariance of all parameters of both arms, `T (J + diag a)⁻¹ T'`.
///
/// `J` is the information of the likelihood and `a_j = min{max(1/v_j - 1/s_j², 10⁻³), κ/s_j²}`, with `v_j` a slope's
/// posterior variance under the mixture prior and `s_j²` what the data alone give it: the mixture's certainty, but no
/// slope is held more certain than `κ` times what its data say, because weak effects that were not found are there all
/// the same. `κ = None`: no such limit. Where the matrix is not positive definite its eigenvalues are raised to one.
#[derive(Clone, Debug)]
pub struct Certainty<'a> {
    pub(super) predictor: &'a Predictor,
    pub(super) covariance: Cow<'a, [f64]>,
}

impl<'a> Certainty<'a> {
    /// From the covariance of a model's parameters, row-major, that was kept: see [`Certainty::covariance`].
    ///
    /// # Panics
    /// If it is not of the model's size.
    pub fn new(predictor: &'a Predictor, covariance: &'a [f64]) -> Certainty<'a> {
        let both = 2 * predictor.n_parameters();
        assert_eq!(covariance.len(), both * both, "one row and one column for each parameter");
        Certainty { predictor, covariance: covariance.into() }
    }

    /// The covariance of the parameters of both arms, row-major.
    pub fn covariance(self) -> Vec<f64> {
        self.covariance.into_owned()
    }

    /// For each row of row-major covariates the covariance of the cure logit and the log of the mean event time in both
    /// arms, by the delta method. On all threads; the same bits on any number.
    ///
    /// # Panics
    /// If the rows are not complete.
    pub fn spreads(&self, covariates: &[f64]) -> Vec<Spreads> {
        let model = self.predictor;
        if model.n_covariates == 0 {
            return Vec::new();
        }
        assert_eq!(covariates.len() % model.n_covariates, 0, "complete rows");
        let room = || (Vec::with_capacity(model.columns.len()), ByEstimand::default());
        covariates
            .par_chunks(model.n_covariates)
            .with_min_len(256)
            .map_init(room, |(row, gradients), x| self.spreads_with(x, row, gradients))
            .collect()
    }

    fn spreads_with(&self, x: &[f64], row: &mut Vec<f64>, gradients: &mut ByEstimand<ByArm<Vec<f64>>>) -> Spreads {
        let model = self.predictor;
        let Widths { all, cure, time } = model.widths();
        let size = model.n_parameters();
        let predicted = model.predict_with(x, row);
        // The gradient in an arm's parameters is zero outside of the part's, which stand together.
        let first = ByEstimand { cure: 0, time: cure };
        for (arm, p) in Arm::BOTH.into_iter().zip(predicted) {
            let gradient = &mut gradients.cure[arm];
            gradient.clear();
            gradient.extend_from_slice(&row[..cure]);
            let gradient = &mut gradients.time[arm];
            gradient.clear();
            let u_horizon = libm::log(model.horizon);
            let [location, log_sigma] = model.family.log_mean_slopes(u_horizon, p.location, p.log_sigma);
            gradient.extend(row[all - time..].iter().map(|x| location * x));
            gradient.push(log_sigma);
        }
        let form = |(part, a): (Estimand, Arm), (other, b): (Estimand, Arm)| -> f64 {
            let (left, right) = (&gradients[part][a], &gradients[other][b]);
            let (from, at) = (a.index() * size + first[part], b.index() * size + first[other]);
            let line = |k: usize| &self.covariance[(from + k) * 2 * size + at..][..right.len()];
            left.iter().enumerate().map(|(k, g)| g * dot(right, line(k))).sum()
        };
        let spread = |part: Estimand| Spread {
            variance: ByArm::of(|arm| form((part, arm), (part, arm)).max(0.0)),
            covariance: form((part, Arm::Control), (part, Arm::Treated)),
        };
        Spreads {
            of: ByEstimand::of(spread),
            cross: ByArm::of(|a| ByArm::of(|b| form((Estimand::Cure, a), (Estimand::Time, b)))),
        }
    }

    /// Covariance of `(cure logit, location, ln σ)` under control, then under treatment.
    ///
    /// # Panics
    /// If `x` does not hold one number for each covariate.
    pub fn at(&self, x: &[f64]) -> [[f64; 6]; 6] {
        let model = self.predictor;
        assert_eq!(x.len(), model.n_covariates, "one number for each covariate");
        let row: Vec<f64> = model.columns.iter().map(|column| column.value(x)).collect();
        let Widths { all, cure, time } = model.widths();
        let size = model.n_parameters();
        let both = 2 * size;
        // Where each of the six reads the arm parameters, and with which weights.
        let one = [1.0];
        let views: [(usize, &[f64]); 6] = std::array::from_fn(|k| match k % 3 {
            0 => (k / 3 * size, &row[..cure]),
            1 => (k / 3 * size + cure, &row[all - time..]),
            _ => (k / 3 * size + size - 1, &one[..]),
        });
        let mut out = [[0.0; 6]; 6];
        for (i, (from, weights)) in views.iter().enumerate() {
            for (j, (at, other)) in views.iter().enumerate().take(i + 1) {
                let sum: f64 = weights
                    .iter()
                    .enumerate()
                    .map(|(k, w)| w * dot(other, &self.covariance[(from + k) * both + at..][..other.len()]))
                    .sum();
                // Where a direction is nearly certain beside others that are not, rounding may make its variance
                // negative.
                let sum = if i == j { sum.max(0.0) } else { sum };
                out[i][j] = sum;
                out[j][i] = sum;
            }
        }
        out
    }
}

/// Inverse of a symmetric matrix whose eigenvalues are raised to at least one.
pub(super) fn inverse_with_floor(a: Vec<f64>, n: usize) -> Vec<f64> {
    let a = nalgebra::DMatrix::from_vec(n, n, a);
    let a = a.map(|x| if x.is_finite() { x } else { 0.0 });
    let eigen = nalgebra::SymmetricEigen::new(a);
    let scaled = nalgebra::DMatrix::from_fn(n, n, |i, k| eigen.eigenvectors[(i, k)] / eigen.eigenvalues[k].max(1.0));
    (scaled * eigen.eigenvectors.transpose()).as_slice().to_vec()
}
