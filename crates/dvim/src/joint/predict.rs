//! What a fitted joint model says of any unit.

use super::climb::Role;
use super::likelihood::Widths;
use super::matrix::dot;
use super::{Family, ShareTable, Term};
use crate::arm::{Arm, ByArm};
use crate::beside::Beside;
use crate::cure::Seen;
use crate::estimand::{ByEstimand, Estimand};
use crate::numeric::expit;
use rayon::prelude::*;

/// What the model says of a unit under one arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Logit of the probability of cure.
    pub cure_logit: f64,
    /// `P(T ≥ H | x)`.
    pub cure_probability: f64,
    /// `E[T | T < H, x]`.
    pub mean_event_time: f64,
    /// Location of the log event time.
    pub location: f64,
    /// `ln σ`.
    pub log_sigma: f64,
}

/// A column of the design.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// One.
    Intercept,
    /// A covariate, by its position.
    Linear(usize),
    /// A curve or a product.
    Term(Term),
}

impl Column {
    pub(super) fn value(&self, x: &[f64]) -> f64 {
        match self {
            Column::Intercept => 1.0,
            Column::Linear(j) => x[*j],
            Column::Term(term) => term.value(x),
        }
    }

    pub(super) fn role(&self) -> Role {
        match self {
            Column::Intercept => Role::Intercept,
            Column::Linear(_) => Role::Linear,
            Column::Term(_) => Role::NonLinear,
        }
    }
}

/// All that a model needs to speak of a unit: what a saved run keeps of it, with the covariance of its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictor {
    /// Family of the event times.
    pub family: Family,
    /// Number of covariates.
    pub n_covariates: usize,
    /// Horizon of the model.
    pub horizon: f64,
    /// Columns in the order `[cure only | both | time only]`.
    pub columns: Vec<Column>,
    /// The first so many columns are the cure part's, the last so many the time part's.
    pub n_columns: ByEstimand<usize>,
    /// Parameters of the arms: cure, time, `ln σ`.
    pub theta: ByArm<Vec<f64>>,
    /// Log of half the smallest positive event time: where events at time zero are put.
    pub u_zero: f64,
    /// What stands beside it.
    pub beside: Beside,
}

impl Predictor {
    pub(super) fn widths(&self) -> Widths {
        let ByEstimand { cure, time } = self.n_columns;
        Widths { all: self.columns.len(), cure, time }
    }

    /// Parameters of an arm.
    pub fn n_parameters(&self) -> usize {
        self.widths().parameters()
    }

    /// Non-linear terms, each counted once however many parts it is in.
    pub fn n_terms(&self) -> usize {
        self.columns.iter().filter(|c| matches!(c, Column::Term(_))).count()
    }

    /// Whether its parts are of one size and its numbers numbers: one that was read from a file may not be.
    pub fn is_sound(&self) -> bool {
        let ByEstimand { cure, time } = self.n_columns;
        let all = self.columns.len();
        let inside = |j: usize| j < self.n_covariates;
        let column = |c: &Column| match c {
            Column::Intercept => true,
            Column::Linear(j) => inside(*j),
            Column::Term(term) => term.is_sound(self.n_covariates),
        };
        cure <= all
            && time <= all
            && self.columns.iter().all(column)
            && self.theta.iter().all(|t| t.len() == self.n_parameters() && t.iter().all(|x| x.is_finite()))
            && self.beside.is_sound(all, self.n_covariates)
            && self.u_zero.is_finite()
            && self.horizon > 0.0
    }

    /// What the model says of a unit under each arm.
    ///
    /// # Panics
    /// If `x` does not hold one number for each covariate.
    pub fn predict(&self, x: &[f64]) -> ByArm<Prediction> {
        assert_eq!(x.len(), self.n_covariates, "one number for each covariate");
        let mut row = Vec::with_capacity(self.columns.len());
        self.predict_with(x, &mut row)
    }

    /// For every row of row-major covariates (none where there are no covariates: ask [`Predictor::predict`] once); the
    /// same bits as [`Predictor::predict`], on any number of threads.
    ///
    /// # Panics
    /// If the rows are not complete.
    pub fn predict_all(&self, covariates: &[f64]) -> Vec<ByArm<Prediction>> {
        if self.n_covariates == 0 {
            return Vec::new();
        }
        assert_eq!(covariates.len() % self.n_covariates, 0, "complete rows");
        covariates
            .par_chunks(self.n_covariates)
            .with_min_len(256)
            .map_init(|| Vec::with_capacity(self.columns.len()), |row, x| self.predict_with(x, row))
            .collect()
    }

    /// What is expected of members of groups in one arm, before the levels of the arms are set: a level moves a patient
    /// and not what the patient's group says beyond the model.
    ///
    /// # Panics
    /// If the rows are not complete.
    pub fn expect_arm<'a>(&self, arm: Arm, rows: impl IndexedParallelIterator<Item = &'a [f64]>) -> Vec<Prediction> {
        let room = || Vec::with_capacity(self.columns.len());
        rows.with_min_len(256)
            .map_init(room, |row, x| {
                assert_eq!(x.len(), self.n_covariates, "complete rows");
                row.clear();
                row.extend(self.columns.iter().map(|column| column.value(x)));
                self.complete(x, row, arm, false)
            })
            .collect()
    }

    /// What is expected of one member of a group: see [`Predictor::expect_arm`].
    pub fn expect(&self, arm: Arm, x: &[f64]) -> Prediction {
        self.complete(x, &self.design(x), arm, false)
    }

    pub(super) fn predict_with(&self, x: &[f64], row: &mut Vec<f64>) -> ByArm<Prediction> {
        row.clear();
        row.extend(self.columns.iter().map(|column| column.value(x)));
        ByArm::of(|arm| self.complete(x, row, arm, true))
    }

    /// The columns of the design for a row of covariates.
    pub(crate) fn design(&self, x: &[f64]) -> Vec<f64> {
        self.columns.iter().map(|column| column.value(x)).collect()
    }

    /// What the cure model and all that stands beside it say.
    fn complete(&self, x: &[f64], row: &[f64], arm: Arm, levels: bool) -> Prediction {
        let own = self.predict_row(row, arm);
        if self.beside.is_alone() {
            return own;
        }
        let level = if levels { self.beside.level } else { ByEstimand::default() };
        let value = self.with_others(x, row, arm, &own);
        let value = ByEstimand::of(|e| value[e] + level[e][arm]);
        let moved = !self.beside.share.time.are_none() || level.time[arm] != 0.0;
        let location = if moved { self.located(&own, value.time) } else { own.location };
        let mean_event_time = self.family.mean(libm::log(self.horizon), location, own.log_sigma);
        let cure_probability = expit(value.cure);
        Prediction { cure_logit: value.cure, cure_probability, mean_event_time, location, ..own }
    }

    /// The cure logit and the log of the mean event time, with the shares of the other learners.
    fn with_others(&self, x: &[f64], row: &[f64], arm: Arm, own: &Prediction) -> ByEstimand<f64> {
        let Beside { hazard, boosted, share, .. } = &self.beside;
        let own = self.values(own);
        let of_hazards = hazard.as_ref().map_or(own, |h| h.values(row, arm));
        let of_trees = boosted.as_ref().map_or(own, |b| b.values(x, arm));
        ByEstimand::of(|e| {
            own[e] + share[e].hazards * (of_hazards[e] - own[e]) + share[e].boosted * (of_trees[e] - own[e])
        })
    }

    /// The variance of what the learners say around their mean, each by its share, in both arms: of the cure logit and
    /// of the log of the mean event time.
    pub(crate) fn disagreement(&self, x: &[f64]) -> ByArm<ByEstimand<f64>> {
        let row = self.design(x);
        ByArm::of(|arm| {
            let own = self.values(&self.predict_row(&row, arm));
            let Beside { hazard, boosted, share, .. } = &self.beside;
            let of_hazards = hazard.as_ref().map_or(own, |h| h.values(&row, arm));
            let of_trees = boosted.as_ref().map_or(own, |b| b.values(x, arm));
            ByEstimand::of(|e| {
                let all = [(share[e].cure_model(), own), (share[e].hazards, of_hazards), (share[e].boosted, of_trees)];
                let mean: f64 = all.iter().map(|(s, v)| s * v[e]).sum();
                all.iter().map(|(s, v)| s * (v[e] - mean).powi(2)).sum()
            })
        })
    }

    /// The cure logit and the log of the mean event time.
    pub(crate) fn values(&self, p: &Prediction) -> ByEstimand<f64> {
        ByEstimand { cure: p.cure_logit, time: libm::log(p.mean_event_time.max(1e-9 * self.horizon)) }
    }

    /// The location at which the log of the mean event time is this; as near as locations come to it.
    fn located(&self, from: &Prediction, log_mean: f64) -> f64 {
        let (u_horizon, mut location) = (libm::log(self.horizon), from.location);
        let at =
            |location: f64| libm::log(self.family.mean(u_horizon, location, from.log_sigma).max(f64::MIN_POSITIVE));
        for _ in 0..8 {
            let now = at(location);
            let slope = (at(location + 1e-4) - now) / 1e-4;
            if slope.is_nan() || slope <= 1e-3 {
                break;
            }
            let step = ((log_mean - now) / slope).clamp(-1.0, 1.0);
            location += step;
            if step.abs() < 1e-6 {
                break;
            }
        }
        location
    }

    /// From the columns of the design.
    pub(super) fn predict_row(&self, row: &[f64], arm: Arm) -> Prediction {
        let Widths { all, cure, time } = self.widths();
        let theta = &self.theta[arm];
        let cure_logit = dot(&row[..cure], &theta[..cure]);
        let location = dot(&row[all - time..], &theta[cure..cure + time]);
        let log_sigma = theta[cure + time];
        Prediction {
            cure_logit,
            cure_probability: expit(cure_logit),
            mean_event_time: self.family.mean(libm::log(self.horizon), location, log_sigma),
            location,
            log_sigma,
        }
    }

    /// Intercept and slope of every covariate in one part and arm, the terms apart. A covariate that is not in the part
    /// has slope zero.
    pub fn line(&self, part: Estimand, arm: Arm) -> (f64, Vec<f64>) {
        let Widths { all, cure, time } = self.widths();
        let theta = &self.theta[arm];
        let (columns, coefficients) = match part {
            Estimand::Cure => (&self.columns[..cure], &theta[..cure]),
            Estimand::Time => (&self.columns[all - time..], &theta[cure..cure + time]),
        };
        let (mut intercept, mut slopes) = (0.0, vec![0.0; self.n_covariates]);
        for (column, &b) in columns.iter().zip(coefficients) {
            match column {
                Column::Intercept => intercept = b,
                Column::Linear(j) => slopes[*j] = b,
                Column::Term(_) => {}
            }
        }
        (intercept, slopes)
    }

    /// Log-likelihood of a unit, given its prediction under the arm in which it was seen: the score by which families
    /// are compared out of fold.
    pub fn log_likelihood(&self, prediction: &Prediction, time: f64, event: bool) -> f64 {
        let seen = see(time, event, self.horizon);
        let u = self.log_time(time);
        let Prediction { cure_logit, location, log_sigma, .. } = *prediction;
        let u = if seen == Seen::Censored && time <= 0.0 { f64::NEG_INFINITY } else { u };
        let u_horizon = libm::log(self.horizon);
        // For events, the density of the time itself and not of its logarithm, so that values are those of any package.
        let jacobian = if seen == Seen::Event { u } else { 0.0 };
        self.family.unit(u_horizon, seen, u, cure_logit, location, log_sigma).value - jacobian
    }

    /// Share of the uncured whose event comes by `time`: `F(t)/F(H)`, in `[0, 1]`.
    pub fn event_share(&self, prediction: &Prediction, time: f64) -> f64 {
        if time <= 0.0 {
            return 0.0;
        }
        let u_horizon = libm::log(self.horizon);
        self.family.event_share(u_horizon, libm::log(time), prediction.location, prediction.log_sigma)
    }

    /// [`Predictor::event_share`] at many times, given by their logarithms and up to the horizon; good for sums.
    pub fn event_shares(&self, prediction: &Prediction, log_times: &[f64], out: &mut [f64]) {
        let Prediction { location, log_sigma, .. } = *prediction;
        self.family.event_shares(libm::log(self.horizon), log_times, location, log_sigma, out);
    }

    /// [`Predictor::event_shares`] from a table of the model's family, to 2e-6.
    pub fn event_shares_from(&self, table: &ShareTable, prediction: &Prediction, log_times: &[f64], out: &mut [f64]) {
        let Prediction { location, log_sigma, .. } = *prediction;
        table.event_shares(libm::log(self.horizon), log_times, location, log_sigma, out);
    }

    pub(super) fn log_time(&self, time: f64) -> f64 {
        if time > 0.0 { libm::log(time) } else { self.u_zero }
    }
}

pub(super) fn see(time: f64, event: bool, horizon: f64) -> Seen {
    match (time >= horizon, event) {
        (true, _) => Seen::Horizon,
        (false, true) => Seen::Event,
        (false, false) => Seen::Censored,
    }
}
