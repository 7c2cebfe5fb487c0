//! How sure a fitted joint model is of what it says.

use super::Predictor;
use super::likelihood::Widths;
use super::matrix::{dot, product};
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

/// Rows of a design that are multiplied at once.
const CHUNK: usize = 256;

/// Variances in both arms and their covariance, of cure and of time; then cure with time.
const PAIRS: [((Estimand, Arm), (Estimand, Arm)); 10] = {
    use Arm::{Control, Treated};
    use Estimand::{Cure, Time};
    [
        ((Cure, Control), (Cure, Control)),
        ((Cure, Treated), (Cure, Treated)),
        ((Cure, Control), (Cure, Treated)),
        ((Time, Control), (Time, Control)),
        ((Time, Treated), (Time, Treated)),
        ((Time, Control), (Time, Treated)),
        ((Cure, Control), (Time, Control)),
        ((Cure, Control), (Time, Treated)),
        ((Cure, Treated), (Time, Control)),
        ((Cure, Treated), (Time, Treated)),
    ]
};

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
        let forms = self.forms();
        covariates.par_chunks(CHUNK * model.n_covariates).flat_map_iter(|rows| self.spreads_of(rows, &forms)).collect()
    }

    /// The blocks of the covariance that belong to a pair of (part, arm), side by side: what a row of the design is
    /// multiplied with. The line of a scale stands below those of its part's columns.
    fn forms(&self) -> Vec<f64> {
        let model = self.predictor;
        let Widths { all, cure, time } = model.widths();
        let size = model.n_parameters();
        let first = ByEstimand { cure: 0, time: cure };
        // From the place of a column of the design (the last: the scale) to that of a parameter.
        let place = |part: Estimand, arm: Arm, column: usize| {
            match part {
                Estimand::Cure => (column < cure).then_some(column),
                Estimand::Time if column == all => Some(time),
                Estimand::Time => column.checked_sub(all - time),
            }
            .map(|k| arm.index() * size + first[part] + k)
        };
        let width = PAIRS.len() * (all + 1);
        let mut out = vec![0.0; (all + 1) * width];
        for (pair, ((part, a), (other, b))) in PAIRS.into_iter().enumerate() {
            for (i, j) in (0..=all).flat_map(|i| (0..=all).map(move |j| (i, j))) {
                if let (Some(from), Some(at)) = (place(part, a, i), place(other, b, j)) {
                    out[i * width + pair * (all + 1) + j] = self.covariance[from * 2 * size + at];
                }
            }
        }
        out
    }

    /// [`Certainty::spreads`] of a few rows: one matrix product instead of ten forms of each row.
    fn spreads_of(&self, covariates: &[f64], forms: &[f64]) -> Vec<Spreads> {
        let model = self.predictor;
        let all = model.widths().all;
        let (n, columns, width) = (covariates.len() / model.n_covariates, all + 1, PAIRS.len() * (all + 1));
        let mut design = Vec::with_capacity(n * columns);
        for x in covariates.chunks_exact(model.n_covariates) {
            design.extend(model.columns.iter().map(|column| column.value(x)));
            design.push(1.0);
        }
        // Row of the design times block, without the scale.
        let mut of_columns = vec![0.0; n * width];
        product((n, all, width), 1.0, &design, (columns, 1), forms, (width, 1), &mut of_columns, width);
        let line_of_scale = &forms[all * width..];
        let u_horizon = libm::log(model.horizon);
        let out = design.chunks_exact(columns).zip(of_columns.chunks_exact(width)).map(|(row, lines)| {
            let slopes = ByArm::of(|arm| {
                let p = model.predict_row(&row[..all], arm);
                model.family.log_mean_slopes(u_horizon, p.location, p.log_sigma)
            });
            // What columns and the scale are multiplied by in the gradient of a part.
            let factors = |(part, arm): (Estimand, Arm)| match part {
                Estimand::Cure => [1.0, 0.0],
                Estimand::Time => slopes[arm],
            };
            let form = |pair: usize| {
                let block = pair * columns..(pair + 1) * columns;
                let ([a, a_scale], [b, b_scale]) = (factors(PAIRS[pair].0), factors(PAIRS[pair].1));
                let (of_columns, of_scale) = (&lines[block.clone()], &line_of_scale[block]);
                let inner = |line: &[f64]| b * dot(&row[..all], &line[..all]) + b_scale * line[all];
                a * inner(of_columns) + if a_scale == 0.0 { 0.0 } else { a_scale * inner(of_scale) }
            };
            let spread = |from: usize| Spread {
                variance: ByArm { control: form(from).max(0.0), treated: form(from + 1).max(0.0) },
                covariance: form(from + 2),
            };
            Spreads {
                of: ByEstimand { cure: spread(0), time: spread(3) },
                cross: ByArm {
                    control: ByArm { control: form(6), treated: form(7) },
                    treated: ByArm { control: form(8), treated: form(9) },
                },
            }
        });
        out.collect()
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
