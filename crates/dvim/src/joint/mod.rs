//! Mixture cure model of both arms at once, shrunk towards what the arms have in common.
//!
//! What is estimated, for a unit with covariates `x` under each arm `z` and a horizon `H`: `P(T ≥ H | x, z)` and
//! `E[T | T < H, x, z]`, by a mixture cure model whose slopes are `θ_z = common + own_z`. Slopes are shrunk by an empirical-Bayes mixture
//! prior with a point mass at zero, one for each of twelve blocks, so that without evidence for a difference between the arms there is none
//! in the model. Squares, steps, hinges and products of covariates enter where a score test asks for them.
//!
//! [`fit`] takes a training set and nothing else, and what it gives is [`Trained`]. Derivations and the reason of every constant: docs/methods-joint.md.
//!
//! Absent on purpose: folds, groups, effects, choice of the family. They belong to the caller.

mod climb;
mod family;
mod likelihood;
mod matrix;
mod prior;
mod screen;
mod shape;
mod terms;

use std::borrow::Cow;
use std::fmt;

use rayon::prelude::*;

use climb::{Climb, Layout, Problem, Role, Sought};
pub use family::Family;
use likelihood::{Outcomes, Widths};
use matrix::{Cholesky, dot};
use prior::{Slopes, block};
pub use shape::{GammaShape, gamma_shape};
pub use terms::{Shape, Term, Terms};

use crate::arm::{Arm, ByArm};
use crate::cohort::Cohort;
pub use crate::cure::FitError;
use crate::cure::Seen;
use crate::estimand::{ByEstimand, Estimand};
use crate::numeric::expit;
use crate::split::{Trained, TrainingSet};

/// Outcomes and covariates of units of both arms, of one length, finite.
#[derive(Clone, Copy, Debug)]
pub struct TwoArms<'a> {
    /// `Y = min(T, C, H)` of each unit. A time at or above the horizon means that it was reached without event.
    pub time: &'a [f64],
    /// Whether the event was seen, at a time before the horizon.
    pub event: &'a [bool],
    /// Whether the unit was treated.
    pub treated: &'a [bool],
    /// Covariates, row-major, standardised over the cohort.
    pub covariates: &'a [f64],
    /// Number of covariates; may be zero.
    pub n_covariates: usize,
    /// The horizon `H`; `f64::INFINITY` gives the usual mixture cure model, without truncation.
    pub horizon: f64,
}

impl TwoArms<'_> {
    fn arm(&self, unit: usize) -> Arm {
        if self.treated[unit] { Arm::Treated } else { Arm::Control }
    }
}

/// What holds the slopes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Penalty {
    /// The empirical-Bayes mixture prior, learned with them.
    #[default]
    Learned,
    /// `Σ_g λ {mixing √|g| ‖φ_g‖ + (1 − mixing)/2 ‖φ_g‖²}`, in units of log-likelihood, on slopes of columns of unit standard deviation: ridge where
    /// `mixing` is 0, the (group) lasso where it is 1.
    ElasticNet {
        /// Share of the norm in the penalty.
        mixing: f64,
        /// λ of the cure and of the time part.
        strengths: ByEstimand<f64>,
    },
}

/// Family, search and every constant of the fit, each with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct JointOptions {
    /// Family of the event times.
    pub family: Family,
    /// What holds the slopes.
    pub penalty: Penalty,
    /// A number for each covariate; those of one number (the dummies of a category) are penalised together by an elastic net. Empty: each by itself.
    pub groups: Vec<usize>,
    /// Newton steps, each followed by an update of the prior. 9: 14 and 30 give the same accuracy in simulation, 7 less (docs/accuracy.md).
    pub iterations: usize,
    /// Newton steps after the last update, under its penalties: the model is then at the optimum that its certificate speaks of.
    pub final_steps: usize,
    /// Most rounds of the search for non-linear terms; zero for straight lines only.
    pub rounds: usize,
    /// Score statistic from which a term enters. 4.0: about Bonferroni's 5 % for three tests of each of 280 candidates.
    pub entry: f64,
    /// Most terms that enter a part in one round. 6: strong terms change the scores of the others.
    pub most_terms: usize,
    /// Pseudo-count of the prior's point mass at zero in linear blocks. 3; one and ten give nearly the same.
    /// Non-linear blocks have one for each candidate, and linear ones one more for each covariate that was left out: they pay for the search.
    pub zero_count: f64,
    /// Penalty of every slope until the prior is first updated. 20: about what twenty units know of a slope.
    pub first_penalty: f64,
    /// Precision of intercepts and `ln σ` around their starts. 1e-4: nothing, except where the data say nothing.
    pub free_precision: f64,
    /// Steps before the first update of the prior. 3: slopes must have left zero.
    pub first_update: usize,
    /// After this step (counted from zero) a short step ends the climb.
    pub first_stop: usize,
    /// What a short step is, in the largest parameter.
    pub step_tolerance: f64,
    /// First damping, relative to the diagonal of the information; a tenth of it after a step that succeeds, ten times after one that fails.
    pub first_damping: f64,
    /// Most tries of a step.
    pub tries: usize,
    /// Longest change of one parameter in one step. 3: far beyond any quadratic model's reach, so it only stops nonsense.
    pub longest_step: f64,
    /// With more covariates than this each part keeps so many, by score in the model without covariates. 60: dense
    /// Newton steps on six parameters a covariate stay fast. Not studied.
    pub most_covariates: usize,
    /// Nor has a part more than one covariate for so many units (cure) or events (time), by the same score. 10: with 60 covariates of 300 units
    /// the error of time is half of that without (docs/accuracy.md); 5 to 20 give nearly the same.
    pub units_for_covariate: usize,
    /// But it may always have so many.
    pub fewest_covariates: usize,
    /// With more than 30 covariates candidate terms are made of so many, by the same score. 20 give at most 370.
    pub most_curved: usize,
}

impl Default for JointOptions {
    fn default() -> JointOptions {
        JointOptions {
            family: Family::LogNormal,
            penalty: Penalty::Learned,
            groups: Vec::new(),
            iterations: 9,
            final_steps: 2,
            rounds: 3,
            entry: 4.0,
            most_terms: 6,
            zero_count: 3.0,
            first_penalty: 20.0,
            free_precision: 1e-4,
            first_update: 3,
            first_stop: 10,
            step_tolerance: 1e-5,
            first_damping: 1e-3,
            tries: 8,
            longest_step: 3.0,
            most_covariates: 60,
            units_for_covariate: 10,
            fewest_covariates: 10,
            most_curved: 20,
        }
    }
}

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

/// A non-linear term of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// The part of the model that it entered.
    pub part: Estimand,
    /// What it is.
    pub shape: Shape,
    /// The round in which it entered, from one.
    pub round: usize,
    /// Its score statistic then.
    pub statistic: f64,
    /// Its coefficient in each arm, for a column of unit standard deviation.
    pub coefficients: ByArm<f64>,
}

impl fmt::Display for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shape.label(&|j| format!("x{}", j + 1), &|_, x| x))
    }
}

/// How much of the slopes the prior keeps, for one part; linear blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shrinkage {
    /// Mean share that is kept of the slopes' deviations from the common ones, over both arms: near zero where
    /// the data show no heterogeneity of the effect.
    pub own_kept: f64,
    /// Mean share that is kept of the common slopes.
    pub common_kept: f64,
    /// Prior probability that a slope's deviation is zero, in each arm.
    pub own_zero: ByArm<f64>,
    /// Prior probability that a common slope is zero.
    pub common_zero: f64,
}

/// Something about the fit that its reader must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flag {
    /// No unit of the arm had an event: its event times are those of the other arm.
    NoEvent {
        /// The arm.
        arm: Arm,
    },
    /// Every unit of the arm had its event before the horizon: its probability of cure is only known to be small.
    NoneCured {
        /// The arm.
        arm: Arm,
    },
    /// No unit of the arm was followed event-free to a finite horizon: cure is told from late events by the family's shape alone.
    NoneReachedHorizon {
        /// The arm.
        arm: Arm,
    },
    /// Events at time zero or below were moved to half the smallest positive event time.
    EventAtZero {
        /// How many.
        n_units: usize,
    },
    /// There were too many covariates for one fit; so many were left out of a part, by score.
    CovariatesLeftOut {
        /// How many, in the part that lost more.
        n_covariates: usize,
    },
    /// The information matrix is not positive definite where the climb ended.
    NotPositiveDefinite,
    /// The climb ended more than a tenth of a standard error from its optimum.
    NotConverged,
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Flag::NoEvent { arm } => {
                write!(f, "no {} unit had an event, so the event times of that arm are the other arm's", arm.name())
            }
            Flag::NoneCured { arm } => write!(
                f,
                "every {} unit had the event before the horizon, so its probability of cure is only known to be small",
                arm.name()
            ),
            Flag::NoneReachedHorizon { arm } => write!(
                f,
                "no {} unit was followed event-free to the horizon, so cure is told from late events by the shape of the event times alone",
                arm.name()
            ),
            Flag::EventAtZero { n_units } => {
                write!(f, "{n_units} events at time zero or below were moved to half the smallest positive event time")
            }
            Flag::CovariatesLeftOut { n_covariates } => {
                write!(f, "{n_covariates} covariates of small score were left out of a part of the model")
            }
            Flag::NotPositiveDefinite => f.write_str("the information matrix is not positive definite"),
            Flag::NotConverged => f.write_str("the fit ended more than a tenth of a standard error from its optimum"),
        }
    }
}

/// Whether to believe the fit, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// Newton steps of the last climb.
    pub iterations: usize,
    /// `√(g' A⁻¹ g)`, gradient and information of the penalised objective: the distance to its optimum in standard errors.
    /// Infinite where `A` is not positive definite.
    pub gradient_norm: f64,
    /// Whether `A` is positive definite.
    pub positive_definite: bool,
    /// Objective before and after each step of the last climb, under the penalties of that step.
    pub path: Vec<[f64; 2]>,
    /// What the reader must know. Empty for an ordinary fit.
    pub flags: Vec<Flag>,
}

impl Certificate {
    /// Positive definite, and at most a tenth of a standard error from the optimum.
    pub fn converged(&self) -> bool {
        self.positive_definite && self.gradient_norm <= CONVERGED
    }
}

/// Distance to the optimum, in standard errors and over all parameters together, of a fit that is called converged.
const CONVERGED: f64 = 0.1;

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
    fn value(&self, x: &[f64]) -> f64 {
        match self {
            Column::Intercept => 1.0,
            Column::Linear(j) => x[*j],
            Column::Term(term) => term.value(x),
        }
    }

    fn role(&self) -> Role {
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
}

/// A fitted model of both arms. What it says of a unit is its [`Predictor`]'s business.
#[derive(Clone, Debug, PartialEq)]
pub struct JointModel {
    /// What it says of a unit.
    pub predictor: Predictor,
    /// For each part, arm and covariate: sum of the squared coefficients of all terms (columns of unit standard deviation)
    /// that involve the covariate.
    pub importance: ByEstimand<ByArm<Vec<f64>>>,
    /// Non-linear terms, in the order in which they entered.
    pub terms: Vec<Admitted>,
    /// Candidates among which they were found.
    pub n_candidates: usize,
    /// Shrinkage of the cure part and of the time part.
    pub shrinkage: ByEstimand<Shrinkage>,
    /// Log-likelihood of the training units, without penalty: the sum of [`Predictor::log_likelihood`].
    pub log_likelihood: f64,
    /// Whether to believe all this.
    pub certificate: Certificate,
    layout: Layout,
    information: Vec<f64>,
    prior: prior::Prior,
}

impl std::ops::Deref for JointModel {
    type Target = Predictor;

    fn deref(&self) -> &Predictor {
        &self.predictor
    }
}

impl Predictor {
    fn widths(&self) -> Widths {
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

    /// For every row of row-major covariates (none where there are no covariates: ask [`Predictor::predict`] once); the same bits as [`Predictor::predict`], on any number of threads.
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

    /// Under one arm, for every row; the same bits as [`Predictor::predict`].
    ///
    /// # Panics
    /// If the rows are not complete.
    pub fn predict_arm<'a>(&self, arm: Arm, rows: impl IndexedParallelIterator<Item = &'a [f64]>) -> Vec<Prediction> {
        let room = || Vec::with_capacity(self.columns.len());
        rows.with_min_len(256)
            .map_init(room, |row, x| {
                assert_eq!(x.len(), self.n_covariates, "complete rows");
                row.clear();
                row.extend(self.columns.iter().map(|column| column.value(x)));
                self.predict_row(row, arm)
            })
            .collect()
    }

    fn predict_with(&self, x: &[f64], row: &mut Vec<f64>) -> ByArm<Prediction> {
        row.clear();
        row.extend(self.columns.iter().map(|column| column.value(x)));
        ByArm::of(|arm| self.predict_row(row, arm))
    }

    /// From the columns of the design.
    fn predict_row(&self, row: &[f64], arm: Arm) -> Prediction {
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

    /// The same prediction with the location moved until `E[T | T < H]` is `mean`, which lies between zero and the horizon.
    ///
    /// The mean grows with the location, and its logarithm less than that, so the first step `ln(mean/m)` stops short: steps are doubled until the mean is passed, and the
    /// location is then found by regula falsi (Illinois). A family may not reach it, since truncated means have a limit below the horizon where events crowd towards it: the
    /// location then moves by some thirty times the spread of the log event time, and the mean is the one there.
    pub fn with_mean(&self, prediction: &Prediction, mean: f64) -> Prediction {
        let u_horizon = libm::log(self.horizon);
        let of = |location: f64| self.family.mean(u_horizon, location, prediction.log_sigma);
        let miss = |location: f64| libm::log(of(location) / mean);
        let (mut a, mut at_a) = (prediction.location, libm::log(prediction.mean_event_time / mean));
        if at_a == 0.0 || !at_a.is_finite() {
            return *prediction;
        }
        let farthest = 30.0 * libm::exp(prediction.log_sigma);
        let mut step = -at_a;
        let (mut b, mut at_b) = (a + step, miss(a + step));
        while at_a * at_b > 0.0 && (b - prediction.location).abs() < farthest {
            step *= 2.0;
            (a, at_a) = (b, at_b);
            b += step;
            at_b = miss(b);
        }
        for _ in 0..100 {
            if at_a * at_b >= 0.0 || at_b.abs() < 1e-12 {
                break;
            }
            let c = b - at_b * (b - a) / (at_b - at_a);
            let at_c = miss(c);
            if at_c * at_b < 0.0 {
                (a, at_a) = (b, at_b);
            } else {
                at_a *= 0.5;
            }
            (b, at_b) = (c, at_c);
        }
        if at_b.is_finite() { Prediction { location: b, mean_event_time: of(b), ..*prediction } } else { *prediction }
    }

    /// [`Predictor::event_share`] at many times, given by their logarithms and up to the horizon; good for sums.
    pub fn event_shares(&self, prediction: &Prediction, log_times: &[f64], out: &mut [f64]) {
        let Prediction { location, log_sigma, .. } = *prediction;
        self.family.event_shares(libm::log(self.horizon), log_times, location, log_sigma, out);
    }

    fn log_time(&self, time: f64) -> f64 {
        if time > 0.0 { libm::log(time) } else { self.u_zero }
    }
}

impl JointModel {
    /// Covariance of the arms' parameters when no slope is held more certain than `kappa` allows: see [`Certainty`].
    /// One factorisation of the information matrix: make it once for many units.
    pub fn certainty(&self, kappa: Option<f64>) -> Certainty<'_> {
        let (n, size) = (self.layout.len(), self.layout.size());
        let mut a = self.information.clone();
        for j in 0..n {
            let of_mixture = self.prior.certainty[j];
            let added = match (kappa, self.layout.blocks[j]) {
                (Some(kappa), Some(_)) => of_mixture.min(kappa / self.prior.cavity[j]),
                _ => of_mixture,
            };
            a[j * n + j] += added;
        }
        let inverse = match Cholesky::new(a.clone(), n) {
            Some(cholesky) => cholesky.inverse(),
            None => inverse_with_floor(a, n),
        };
        // T A⁻¹ T'.
        let at = |z: usize, k: usize, y: usize, l: usize| {
            let mut sum = inverse[(z * size + k) * n + y * size + l];
            let (c, d) = (self.layout.common[k], self.layout.common[l]);
            if let Some(d) = d {
                sum += inverse[(z * size + k) * n + 2 * size + d];
            }
            if let Some(c) = c {
                sum += inverse[(2 * size + c) * n + y * size + l];
                if let Some(d) = d {
                    sum += inverse[(2 * size + c) * n + 2 * size + d];
                }
            }
            sum
        };
        let both = 2 * size;
        let covariance: Vec<f64> =
            (0..both * both).map(|e| at(e / both / size, e / both % size, e % both / size, e % both % size)).collect();
        Certainty { predictor: &self.predictor, covariance: covariance.into() }
    }

    /// [`Certainty::at`] for one unit.
    pub fn covariance(&self, x: &[f64], kappa: Option<f64>) -> [[f64; 6]; 6] {
        self.certainty(kappa).at(x)
    }
}

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

/// How sure the model is: the covariance of all parameters of both arms, `T (J + diag a)⁻¹ T'`.
///
/// `J` is the information of the likelihood and `a_j = min{max(1/v_j - 1/s_j², 10⁻³), κ/s_j²}`, with `v_j` a slope's posterior variance under
/// the mixture prior and `s_j²` what the data alone give it: the mixture's certainty, but no slope is held more certain than `κ`
/// times what its data say, because weak effects that were not found are there all the same. `κ = None`: no such limit.
/// Where the matrix is not positive definite its eigenvalues are raised to one.
#[derive(Clone, Debug)]
pub struct Certainty<'a> {
    predictor: &'a Predictor,
    covariance: Cow<'a, [f64]>,
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

    /// For each row of row-major covariates the covariance (control, treated, between them) of what `part` is reported on: the
    /// cure logit, or the log of the mean event time, by the delta method. On all threads; the same bits on any number.
    ///
    /// # Panics
    /// If the rows are not complete.
    pub fn spreads(&self, part: Estimand, covariates: &[f64]) -> Vec<Spread> {
        let model = self.predictor;
        if model.n_covariates == 0 {
            return Vec::new();
        }
        assert_eq!(covariates.len() % model.n_covariates, 0, "complete rows");
        let room = || (Vec::with_capacity(model.columns.len()), ByArm::default());
        covariates
            .par_chunks(model.n_covariates)
            .with_min_len(256)
            .map_init(room, |(row, gradients), x| self.spread_with(part, x, row, gradients))
            .collect()
    }

    fn spread_with(&self, part: Estimand, x: &[f64], row: &mut Vec<f64>, gradients: &mut ByArm<Vec<f64>>) -> Spread {
        let model = self.predictor;
        let Widths { all, cure, time } = model.widths();
        let size = model.n_parameters();
        let predicted = model.predict_with(x, row);
        // The gradient in an arm's parameters is zero outside of the part's, which stand together.
        let first = match part {
            Estimand::Cure => 0,
            Estimand::Time => cure,
        };
        for (gradient, p) in gradients.each_mut().into_iter().zip(predicted) {
            gradient.clear();
            match part {
                Estimand::Cure => gradient.extend_from_slice(&row[..cure]),
                Estimand::Time => {
                    let u_horizon = libm::log(model.horizon);
                    let [location, log_sigma] = model.family.log_mean_slopes(u_horizon, p.location, p.log_sigma);
                    gradient.extend(row[all - time..].iter().map(|x| location * x));
                    gradient.push(log_sigma);
                }
            }
        }
        let form = |a: Arm, b: Arm| -> f64 {
            let (left, right) = (&gradients[a], &gradients[b]);
            let (z, y) = (a.index(), b.index());
            let line =
                |k: usize| &self.covariance[(z * size + first + k) * 2 * size + y * size + first..][..right.len()];
            left.iter().enumerate().map(|(k, g)| g * dot(right, line(k))).sum()
        };
        Spread { variance: ByArm::of(|arm| form(arm, arm).max(0.0)), covariance: form(Arm::Control, Arm::Treated) }
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
                // Where a direction is nearly certain beside others that are not, rounding may make its variance negative.
                let sum = if i == j { sum.max(0.0) } else { sum };
                out[i][j] = sum;
                out[j][i] = sum;
            }
        }
        out
    }
}

/// Inverse of a symmetric matrix whose eigenvalues are raised to at least one.
fn inverse_with_floor(a: Vec<f64>, n: usize) -> Vec<f64> {
    let a = nalgebra::DMatrix::from_vec(n, n, a);
    let a = a.map(|x| if x.is_finite() { x } else { 0.0 });
    let eigen = nalgebra::SymmetricEigen::new(a);
    let scaled = nalgebra::DMatrix::from_fn(n, n, |i, k| eigen.eigenvectors[(i, k)] / eigen.eigenvalues[k].max(1.0));
    (scaled * eigen.eigenvectors.transpose()).as_slice().to_vec()
}

fn see(time: f64, event: bool, horizon: f64) -> Seen {
    match (time >= horizon, event) {
        (true, _) => Seen::Horizon,
        (false, true) => Seen::Event,
        (false, false) => Seen::Censored,
    }
}

/// Fits the model to a training set. `standardised` are the covariates of the whole cohort, row-major.
///
/// # Errors
/// Only where there is nothing to fit: see [`FitError`]. One arm without events is fitted and flagged.
pub fn fit(
    training: &TrainingSet<'_>,
    standardised: &[f64],
    terms: &Terms,
    options: &JointOptions,
) -> Result<Trained<JointModel>, FitError> {
    let units = Gathered::of(training.cohort(), training.units(), standardised);
    Ok(Trained::on(training, describe(&units.view(), terms, options)?))
}

/// Rows of a cohort, gathered for a model.
struct Gathered {
    time: Vec<f64>,
    event: Vec<bool>,
    treated: Vec<bool>,
    covariates: Vec<f64>,
    n_covariates: usize,
    horizon: f64,
}

impl Gathered {
    fn of(cohort: &Cohort, units: &[u32], standardised: &[f64]) -> Gathered {
        let p = cohort.n_covariates();
        let units = || units.iter().map(|&i| i as usize);
        Gathered {
            time: units().map(|i| cohort.time(i)).collect(),
            event: units().map(|i| cohort.event(i)).collect(),
            treated: units().map(|i| cohort.arm(i) == Arm::Treated).collect(),
            covariates: units().flat_map(|i| &standardised[i * p..(i + 1) * p]).copied().collect(),
            n_covariates: p,
            horizon: cohort.horizon(),
        }
    }

    fn view(&self) -> TwoArms<'_> {
        TwoArms {
            time: &self.time,
            event: &self.event,
            treated: &self.treated,
            covariates: &self.covariates,
            n_covariates: self.n_covariates,
            horizon: self.horizon,
        }
    }
}

/// Fits the model to arrays. Nobody vouches for where they come from, so the model describes them and is not [`Trained`].
///
/// Never returns a number that is not finite: where the data say nothing the answer is a flagged fit that its penalties decide.
///
/// # Errors
/// Only where there is nothing to fit: see [`FitError`]. One arm without events is fitted and flagged.
///
/// # Panics
/// If the arrays are not of one length.
pub fn describe(data: &TwoArms<'_>, terms: &Terms, options: &JointOptions) -> Result<JointModel, FitError> {
    let Training { outcomes, start, u_zero, mut flags } = Training::of(data)?;
    let search = Search { data, outcomes: &outcomes, start, options, u_horizon: libm::log(data.horizon) };
    let p = data.n_covariates;

    // The columns of straight lines, and where there are many covariates, which of them.
    let varying: Vec<usize> = (0..p).filter(|&j| varies(data.covariates, p, j)).collect();
    // A part has as many covariates as its units can speak of: all tell of cure, those with an event of time.
    let most = ByEstimand::of(|part| {
        let speak: usize = match part {
            Estimand::Cure => outcomes.iter().map(|o| o.u.len()).sum(),
            Estimand::Time => outcomes.iter().map(|o| o.n_events).sum(),
        };
        let fewest = options.fewest_covariates.min(options.most_covariates);
        (speak / options.units_for_covariate.max(1)).clamp(fewest, options.most_covariates)
    });
    let many = varying.len() > most.cure.min(most.time) || p > terms::ALL_PAIRS;
    let scores = if many { search.scores_without_covariates(&varying) } else { Vec::new() };
    let best = |part: Option<Estimand>, n: usize| -> Vec<usize> {
        let of = |k: usize| part.map_or(scores[k].cure.max(scores[k].time), |part| scores[k][part]);
        let mut order: Vec<usize> = (0..varying.len()).collect();
        order.sort_by(|&i, &j| of(j).total_cmp(&of(i)).then(i.cmp(&j)));
        order.truncate(n);
        order.sort_unstable();
        order.into_iter().map(|k| varying[k]).collect()
    };
    let linear = ByEstimand::of(|part| match most[part] {
        most if varying.len() > most => best(Some(part), most),
        _ => varying.clone(),
    });
    let left_out = linear.each_ref().map(|kept| varying.len() - kept.len());
    let n_covariates = left_out.cure.max(left_out.time);
    if n_covariates > 0 {
        flags.push(Flag::CovariatesLeftOut { n_covariates });
    }
    let own;
    let terms = if p > terms::ALL_PAIRS && options.rounds > 0 {
        own = Terms::of(data.covariates, p, best(None, options.most_curved));
        &own
    } else {
        terms
    };

    let sought = Sought { covariates: left_out, terms: terms.len() };
    let mut chosen: Vec<Chosen> = Vec::new();
    let mut round = 0;
    let (columns, problem, climb) = loop {
        let (columns, widths) = arrange(&linear, &chosen, terms);
        let problem = search.problem(&columns, widths);
        let climb = problem.climb(search.phi(&problem.layout, &columns), &sought, options);
        if round == options.rounds || terms.is_empty() {
            break (columns, problem, climb);
        }
        round += 1;
        let entering = search.screen(&problem, &climb, terms, &chosen, round);
        if entering.is_empty() {
            break (columns, problem, climb);
        }
        chosen.extend(entering);
    };
    Ok(report(data, columns, problem, climb, chosen, terms, u_zero, flags))
}

/// A candidate that entered.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    part: Estimand,
    candidate: usize,
    round: usize,
    statistic: f64,
}

/// Outcomes of the arms, where to start, and what can be said before any computation.
struct Training {
    outcomes: ByArm<Outcomes>,
    /// Cure logit, location, `ln σ` of each arm.
    start: ByArm<[f64; 3]>,
    u_zero: f64,
    flags: Vec<Flag>,
}

impl Training {
    fn of(data: &TwoArms<'_>) -> Result<Training, FitError> {
        let n = data.time.len();
        let mut flags = Vec::new();
        let seen: Vec<Seen> = (0..n).map(|i| see(data.time[i], data.event[i], data.horizon)).collect();
        let events = || (0..n).filter(|&i| seen[i] == Seen::Event);
        let smallest = events().map(|i| data.time[i]).filter(|&y| y > 0.0).fold(f64::INFINITY, f64::min);
        if smallest == f64::INFINITY {
            return Err(FitError::NoEvent { n_units: n });
        }
        let u_zero = libm::log(smallest) - std::f64::consts::LN_2;
        let at_zero = events().filter(|&i| data.time[i] <= 0.0).count();
        let log_time = |i: usize| if data.time[i] > 0.0 { libm::log(data.time[i]) } else { u_zero };
        let mut outcomes = ByArm::<Outcomes>::default();
        for z in Arm::BOTH {
            let arm = &mut outcomes[z];
            let mut units = 0;
            for kind in [Seen::Event, Seen::Censored, Seen::Horizon] {
                for i in (0..n).filter(|&i| data.arm(i) == z && seen[i] == kind) {
                    units += 1;
                    // A unit lost at time zero says nothing.
                    if kind == Seen::Censored && data.time[i] <= 0.0 {
                        continue;
                    }
                    arm.rows.push(i);
                    arm.u.push(if kind == Seen::Horizon { 0.0 } else { log_time(i) });
                    match kind {
                        Seen::Event => arm.n_events += 1,
                        Seen::Censored => arm.n_censored += 1,
                        Seen::Horizon => {}
                    }
                }
            }
            if units == 0 {
                return Err(FitError::NoUnits);
            }
            if arm.n_events == 0 {
                flags.push(Flag::NoEvent { arm: z });
            } else if arm.n_events == arm.u.len() {
                flags.push(Flag::NoneCured { arm: z });
            } else if data.horizon.is_finite() && arm.n_events + arm.n_censored == arm.u.len() {
                flags.push(Flag::NoneReachedHorizon { arm: z });
            }
        }
        if at_zero > 0 {
            flags.push(Flag::EventAtZero { n_units: at_zero });
        }
        let moments = |u: &mut dyn Iterator<Item = f64>| {
            let u: Vec<f64> = u.collect();
            let mean = u.iter().sum::<f64>() / u.len() as f64;
            (mean, u.iter().map(|u| (u - mean) * (u - mean)).sum::<f64>() / u.len() as f64)
        };
        let pooled = moments(&mut events().map(log_time));
        let start = outcomes.each_ref().map(|arm| {
            let share = if arm.u.is_empty() { 0.5 } else { arm.n_events as f64 / arm.u.len() as f64 };
            let (mean, variance) =
                if arm.n_events == 0 { pooled } else { moments(&mut arm.u[..arm.n_events].iter().copied()) };
            let logit = libm::log((1.0 - share).clamp(0.02, 0.98) / share.clamp(0.02, 0.98));
            [logit - 0.3, mean + 0.1, 0.5 * libm::log(variance.max(0.05))]
        });
        Ok(Training { outcomes, start, u_zero, flags })
    }
}

fn varies(covariates: &[f64], p: usize, j: usize) -> bool {
    let first = covariates[j];
    covariates.iter().skip(j).step_by(p).any(|&x| x != first)
}

/// Columns in the order `[cure only | both | time only]`.
fn arrange(linear: &ByEstimand<Vec<usize>>, chosen: &[Chosen], terms: &Terms) -> (Vec<Column>, Widths) {
    let of = |part: Estimand| -> Vec<(bool, usize)> {
        let mut candidates: Vec<usize> =
            chosen.iter().filter(|chosen| chosen.part == part).map(|chosen| chosen.candidate).collect();
        candidates.sort_unstable();
        let lines = linear[part].iter().map(|&j| (false, j));
        lines.chain(candidates.into_iter().map(|c| (true, c))).collect()
    };
    let (cure, time) = (of(Estimand::Cure), of(Estimand::Time));
    let column = |&(term, k): &(bool, usize)| {
        if term { Column::Term(terms.get(k).clone()) } else { Column::Linear(k) }
    };
    let mut columns: Vec<Column> = cure.iter().filter(|c| !time.contains(c)).map(column).collect();
    columns.push(Column::Intercept);
    columns.extend(cure.iter().filter(|c| time.contains(c)).map(column));
    columns.extend(time.iter().filter(|c| !cure.contains(c)).map(column));
    let widths = Widths { all: columns.len(), cure: cure.len() + 1, time: time.len() + 1 };
    (columns, widths)
}

/// What every climb and every screening of one fit needs.
struct Search<'a> {
    data: &'a TwoArms<'a>,
    outcomes: &'a ByArm<Outcomes>,
    start: ByArm<[f64; 3]>,
    options: &'a JointOptions,
    u_horizon: f64,
}

impl<'a> Search<'a> {
    fn row(&self, i: usize) -> &'a [f64] {
        let p = self.data.n_covariates;
        &self.data.covariates[i * p..(i + 1) * p]
    }

    fn problem(&self, columns: &[Column], widths: Widths) -> Problem<'a> {
        let designs = self.outcomes.each_ref().map(|arm| {
            let rows = &arm.rows;
            let mut design = Vec::with_capacity(rows.len() * columns.len());
            for &i in rows {
                let x = self.row(i);
                design.extend(columns.iter().map(|column| column.value(x)));
            }
            design
        });
        let roles: Vec<Role> = columns.iter().map(Column::role).collect();
        let layout = Layout::new(widths, &roles);
        let (family, u_horizon, outcomes) = (self.options.family, self.u_horizon, self.outcomes);
        // Curves and products have a group each.
        let p = self.data.n_covariates;
        let group = |(k, column): (usize, &Column)| match column {
            Column::Linear(j) => self.options.groups.get(*j).copied().unwrap_or(*j),
            _ => p + self.options.groups.len() + k,
        };
        let groups = layout.groups(&columns.iter().enumerate().map(group).collect::<Vec<_>>());
        Problem { family, u_horizon, outcomes, designs, layout, groups }
    }

    /// The start as a point: intercepts and `ln σ` by arm, no slopes.
    fn phi(&self, layout: &Layout, columns: &[Column]) -> Vec<f64> {
        let mut phi = vec![0.0; layout.len()];
        let Widths { all, cure, time } = layout.widths;
        let size = layout.size();
        let intercept = columns.iter().position(|column| matches!(column, Column::Intercept)).unwrap_or(0);
        for (z, [logit, location, log_sigma]) in self.start.into_iter().enumerate() {
            phi[z * size + intercept] = logit;
            phi[z * size + cure + intercept - (all - time)] = location;
            phi[z * size + size - 1] = log_sigma;
        }
        phi
    }
}

#[allow(clippy::too_many_arguments, reason = "everything that a fit ends with")]
fn report(
    data: &TwoArms<'_>,
    columns: Vec<Column>,
    problem: Problem<'_>,
    climb: Climb,
    chosen: Vec<Chosen>,
    terms: &Terms,
    u_zero: f64,
    mut flags: Vec<Flag>,
) -> JointModel {
    let layout = problem.layout;
    let theta = ByArm::of(|arm| layout.arm(&climb.phi, arm));
    let Widths { all, cure, time } = layout.widths;
    let p = data.n_covariates;
    // Coefficients of the columns of a part, in one arm.
    let slopes = |part: Estimand, arm: Arm| -> (&[Column], &[f64]) {
        match part {
            Estimand::Cure => (&columns[..cure], &theta[arm][..cure]),
            Estimand::Time => (&columns[all - time..], &theta[arm][cure..cure + time]),
        }
    };
    let importance = ByEstimand::of(|part| {
        ByArm::of(|arm| {
            let mut sums = vec![0.0; p];
            let (columns, coefficients) = slopes(part, arm);
            for (column, b) in columns.iter().zip(coefficients) {
                match column {
                    Column::Intercept => {}
                    Column::Linear(j) => sums[*j] += b * b,
                    Column::Term(term) => term.shape.covariates().into_iter().for_each(|j| sums[j] += b * b),
                }
            }
            sums
        })
    });
    let admitted = chosen
        .iter()
        .map(|&Chosen { part, candidate, round, statistic }| {
            let shape = terms.get(candidate).shape;
            let coefficients = ByArm::of(|arm| {
                let (columns, coefficients) = slopes(part, arm);
                let at = columns.iter().position(|column| matches!(column, Column::Term(term) if term.shape == shape));
                at.map_or(0.0, |k| coefficients[k])
            });
            Admitted { part, shape, round, statistic, coefficients }
        })
        .collect();
    let shrinkage = ByEstimand::of(|part| {
        let kept = |of: &[Slopes]| {
            let of = |j: &usize| of.iter().any(|&s| layout.blocks[*j] == Some(block(part, s, true)));
            let members: Vec<usize> = (0..layout.len()).filter(of).collect();
            members.iter().map(|&j| climb.prior.kept[j]).sum::<f64>() / members.len().max(1) as f64
        };
        let zero = |of: Slopes| climb.prior.weights[block(part, of, true)][0];
        Shrinkage {
            own_kept: kept(&Arm::BOTH.map(Slopes::Own)),
            common_kept: kept(&[Slopes::Common]),
            own_zero: ByArm::of(|arm| zero(Slopes::Own(arm))),
            common_zero: zero(Slopes::Common),
        }
    });
    // From a density of log times to one of times.
    let jacobian: f64 = problem.outcomes.iter().flat_map(|arm| &arm.u[..arm.n_events]).sum();
    let positive_definite = climb.gradient_norm.is_finite();
    if !positive_definite {
        flags.push(Flag::NotPositiveDefinite);
    } else if climb.gradient_norm > CONVERGED {
        flags.push(Flag::NotConverged);
    }
    JointModel {
        importance,
        terms: admitted,
        n_candidates: terms.len(),
        shrinkage,
        log_likelihood: climb.log_likelihood - jacobian,
        certificate: Certificate {
            iterations: climb.iterations,
            gradient_norm: climb.gradient_norm,
            positive_definite,
            path: climb.path,
            flags,
        },
        predictor: Predictor {
            family: problem.family,
            n_covariates: p,
            horizon: data.horizon,
            columns,
            n_columns: ByEstimand { cure, time },
            theta,
            u_zero,
        },
        layout,
        information: climb.information,
        prior: climb.prior,
    }
}
