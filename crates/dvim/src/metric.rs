//! Metrics: maps from covariates to match space, where distance is plain Euclidean distance.
//! A metric does not know which estimand will use it.

use crate::arm::ByArm;
use crate::cohort::Cohort;
use crate::cure::CureModel;
use crate::estimand::ByEstimand;
use crate::matching::Points;
use crate::numeric::in_wide_registers;
pub use crate::scaling::{Scale, Scaling};
use crate::schema::Covariate;
use crate::split::Trained;

/// Rows that are placed at a time.
const ROWS: usize = 64;

in_wide_registers!(fn place = place_plainly(rows: &mut [f64], center: &[f64], scale: &[f64], stretch: &[f64]));

/// From covariates to coordinates, in their place.
#[inline(always)]
fn place_plainly(rows: &mut [f64], center: &[f64], scale: &[f64], stretch: &[f64]) {
    let p = center.len();
    let (scale, stretch) = (&scale[..p], &stretch[..p]);
    for row in rows.chunks_exact_mut(p.max(1)) {
        for j in 0..p {
            row[j] = (row[j] - center[j]) / scale[j] * stretch[j];
        }
    }
}

/// A diagonal metric on scaled covariates: `d(x, y)² = Σ_j w_j (z_j(x) − z_j(y))²`.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The weights, inside the quadratic form.
    pub weights: Vec<f64>,
    /// The scaling of the covariates.
    pub scaling: Scaling,
}

impl Metric {
    /// Places units in match space: coordinate j is `√w_j · (x_j − center_j) / scale_j`.
    pub fn place(&self, covariates: &[f64]) -> Points {
        self.place_rows(covariates.chunks_exact(self.weights.len().max(1)))
    }

    /// The same of units that do not stand in a row.
    pub fn place_rows<'a>(&self, rows: impl ExactSizeIterator<Item = &'a [f64]>) -> Points {
        let Scaling { center, scale } = &self.scaling;
        let stretch: Vec<f64> = self.weights.iter().map(|w| w.sqrt()).collect();
        let mut coords = Vec::with_capacity(rows.len() * stretch.len());
        let mut some = Vec::with_capacity(ROWS * stretch.len());
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            some.clear();
            rows.by_ref().take(ROWS).for_each(|row| some.extend_from_slice(row));
            place(&mut some, center, scale, &stretch);
            coords.extend_from_slice(&some);
        }
        Points { dim: self.weights.len(), coords }
    }

    /// The share of each covariate in the squared distance of two units; zeros if they coincide.
    pub fn shares(&self, x: &[f64], y: &[f64]) -> Vec<f64> {
        let (a, b) = (self.place(x), self.place(y));
        let terms: Vec<f64> = a.coords.iter().zip(&b.coords).map(|(u, v)| (u - v) * (u - v)).collect();
        let total: f64 = terms.iter().sum();
        terms.iter().map(|t| if total > 0.0 { t / total } else { 0.0 }).collect()
    }
}

/// One metric for both estimands, or one for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricChoice {
    /// Cure weights for the cure effect, time weights for the time effect.
    #[default]
    Separate,
    /// The mean of the two weight vectors for both.
    Combined,
}

impl MetricChoice {
    /// Every choice, the usual one first.
    pub const ALL: [MetricChoice; 2] = [MetricChoice::Separate, MetricChoice::Combined];

    /// The word used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            MetricChoice::Separate => "separate",
            MetricChoice::Combined => "combined",
        }
    }
}

/// The metric of each estimand.
pub type Metrics = ByEstimand<Metric>;

impl Metrics {
    /// The paper's metrics: absolute coefficients averaged over the arms,
    /// `w = (|β₁| + |β₀|) / 2` for cure and `(|λ₁| + |λ₀|) / 2` for time. Combined: their mean.
    /// The models were fitted on covariates scaled by `scaling`.
    pub fn learn(models: &ByArm<Trained<CureModel>>, scaling: &Scaling, choice: MetricChoice) -> Metrics {
        Metrics::of_importance(models, scaling, choice, |coefficients| coefficients.iter().map(|b| b.abs()).collect())
    }

    /// As [`Metrics::learn`], for a cohort with categories: the columns of a category share one weight, by
    /// `importance`.
    pub fn learn_for(
        cohort: &Cohort,
        models: &ByArm<Trained<CureModel>>,
        scaling: &Scaling,
        choice: MetricChoice,
    ) -> Metrics {
        let shares = shares(cohort);
        Metrics::of_importance(models, scaling, choice, |coefficients| {
            importance(cohort.schema(), &shares, &scaling.scale, coefficients)
        })
    }

    fn of_importance(
        models: &ByArm<Trained<CureModel>>,
        scaling: &Scaling,
        choice: MetricChoice,
        importance: impl Fn(&[f64]) -> Vec<f64>,
    ) -> Metrics {
        let mean_abs =
            |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| 0.5 * (a.abs() + b.abs())).collect() };
        let mean = |a: &[f64], b: &[f64]| mean_abs(&importance(a), &importance(b));
        let cure = mean(&models.control.cure.coefficients, &models.treated.cure.coefficients);
        let time = mean(&models.control.latency.coefficients, &models.treated.latency.coefficients);
        let (cure, time) = match choice {
            MetricChoice::Separate => (cure, time),
            MetricChoice::Combined => {
                let both = mean_abs(&cure, &time);
                (both.clone(), both)
            }
        };
        Metrics {
            cure: Metric { weights: cure, scaling: scaling.clone() },
            time: Metric { weights: time, scaling: scaling.clone() },
        }
    }
}

/// The mean of each column over the cohort: of an indicator, the share of its level.
fn shares(cohort: &Cohort) -> Vec<f64> {
    let mut out = vec![0.0; cohort.n_covariates()];
    for i in 0..cohort.n_units() {
        out.iter_mut().zip(cohort.covariates(i)).for_each(|(s, x)| *s += x);
    }
    out.iter_mut().for_each(|s| *s /= cohort.n_units() as f64);
    out
}

/// How much each column matters in a linear predictor: |b| for a number. For a category with coefficients b of its
/// levels (those of the scaled columns divided by their scale √2·s) and shares p in the cohort, one number for all of
/// its columns:
///
/// `s · √( Σ_{l<m} p_l p_m (b_l − b_m)² / Σ_{l<m} p_l p_m )`,
///
/// the root mean square difference between two patients of different levels. With two levels this is |b₁ − b₀|·s: what
/// one standardised indicator would have. Only differences enter, so no reference level and no order of levels matters.
fn importance(schema: &[Covariate], shares: &[f64], scale: &[f64], coefficients: &[f64]) -> Vec<f64> {
    let mut out: Vec<f64> = coefficients.iter().map(|b| b.abs()).collect();
    for c in schema.iter().filter(|c| c.is_category()) {
        let (mut sum, mut pairs) = (0.0, 0.0);
        for l in c.columns() {
            for m in l + 1..c.columns().end {
                let p = shares[l] * shares[m];
                sum += p * (coefficients[l] / scale[l] - coefficients[m] / scale[m]).powi(2);
                pairs += p;
            }
        }
        let s = scale[c.first] / std::f64::consts::SQRT_2;
        out[c.columns()].fill(s * (sum / pairs).sqrt());
    }
    out
}
