//! The comparators of the paper: what a reader would try before matching on a cure model.
//!
//! Estimands are those of the whole crate: the effect of treatment on the probability S(H) of no
//! event before the horizon H, and on the mean event time E(T | T < H) of those who have one.
//!
//! | Comparator of the paper | Built from | Reading |
//! | --- | --- | --- |
//! | Cox model (no match) | [`cox::fit_arms`], [`cox::effects`] | one Cox model per arm on the training set, Breslow ties, own baseline |
//! | Prognostic score KNN | [`cox::CoxFit::survival_score`], [`score::mean`] | one number per unit: mean over the arms of the Cox S(H) |
//! | Feature selection KNN | [`select::Selection`] | Wald p < .05 in either arm's Cox model, equal weights on what is kept |
//! | Propensity score KNN | [`logistic::fit`], [`logistic::LogisticFit::score`] | one number per unit: fitted P(treated) on the training set |
//! | Optimal full matching | [`full::full_match`] | all units in subclasses, smallest total propensity distance, then weighted overall curves |
//! | Euclidean KNN | no model: the raw covariates are the metric | |
//!
//! [`method`] names them all, with the paper's own, and runs each on the same split.
//!
//! Everything here is a pure function of plain slices: covariates row by row (`n × p`), times,
//! event flags, treatment flags. A score is data ([`score::LinearScore`]), so a
//! comparator that matches hands a number per unit to the same matching as every other metric.
//!
//! A fit never hides how it ended: each result carries a [`Certificate`]. Where the likelihood has no
//! maximum (separation) the fit says so and returns a penalised estimate instead; where a covariate
//! repeats others it is set aside and named (`aliased`). Derivations: `docs/methods-compare.md`.
//!
//! Times are tied when they are equal as numbers; merging times that differ by round-off is
//! the business of whoever made the cohort.

pub mod cox;
mod design;
pub mod full;
pub mod hazard;
pub mod logistic;
pub mod method;
mod newton;
pub mod score;
pub mod select;

use std::fmt;

/// Units with their outcomes, as plain slices.
#[derive(Clone, Copy, Debug)]
pub struct Units<'a> {
    /// Covariates row by row: entry `i * n_covariates + j` is covariate `j` of unit `i`.
    pub covariates: &'a [f64],
    /// Number of covariates p.
    pub n_covariates: usize,
    /// Time of event or censoring.
    pub time: &'a [f64],
    /// True where the time is that of an event.
    pub event: &'a [bool],
}

impl Units<'_> {
    fn check(&self) -> Result<(), InvalidInput> {
        let n = self.time.len();
        check_length("event", n, self.event.len())?;
        check_length("covariates", n * self.n_covariates, self.covariates.len())?;
        check_finite("time", self.time, 1)?;
        check_finite("covariates", self.covariates, self.n_covariates)?;
        if n == 0 { Err(InvalidInput::Empty) } else { Ok(()) }
    }
}

/// Every tolerance of the fits in this module, with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct FitOptions {
    /// Newton steps before giving up. A well-posed fit takes 4 to 8; separation shows within 30.
    pub max_iterations: usize,
    /// Stop when the squared Newton decrement `g' I⁻¹ g` is at most this. Its root is the distance to the
    /// optimum in standard errors, so the number means the same for any sample size and any units; the last
    /// step is still taken, which squares what remains.
    pub tolerance: f64,
    /// Halvings of one step before it is called no progress.
    pub max_halvings: usize,
    /// Ridge: `½ · ridge · Σ b²` is subtracted from the log-likelihood, `b` on covariates scaled to
    /// standard deviation 1; intercepts are free. 0 is maximum likelihood.
    pub ridge: f64,
    /// The ridge used when the likelihood has no maximum: 0.16 = 1 / 2.5², a normal prior of standard deviation 2.5
    /// on the scaled coefficients, as weak as the default prior of Gelman et al. (2008).
    pub separation_ridge: f64,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self { max_iterations: 60, tolerance: 1e-12, max_halvings: 40, ridge: 0.0, separation_ridge: 0.16 }
    }
}

/// Why a fit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The Newton decrement fell below the tolerance: a maximum.
    Converged,
    /// The likelihood rises for ever in some direction: no finite maximum. The estimate is penalised.
    Separation,
    /// No event (Cox) or one outcome only (logistic): the slopes cannot be estimated and are 0.
    NoInformation,
    /// The iterations ran out.
    MaxIterations,
    /// No step along an ascent direction raised the objective.
    NoProgress,
}

/// How a fit ended, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The maximum of the asked-for objective was found. False for a separated fit, whose estimate is
    /// that of a penalised objective nobody asked for.
    pub converged: bool,
    /// Why the iterations ended.
    pub stop_reason: StopReason,
    /// Newton steps taken, those of a penalised second fit included.
    pub iterations: usize,
    /// Log-likelihood at the estimate, without any penalty.
    pub log_likelihood: f64,
    /// `g' I⁻¹ g` before the last step: squared distance to the optimum in standard errors.
    pub decrement: f64,
    /// The ridge of the objective that was maximised; 0 is maximum likelihood.
    pub ridge: f64,
}

/// Input that no fit can start from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidInput {
    /// A slice does not have one entry per unit (per unit and covariate).
    Length {
        /// Which slice.
        what: &'static str,
        /// Entries it should have.
        expected: usize,
        /// Entries it has.
        found: usize,
    },
    /// NaN or infinite.
    NotFinite {
        /// Which slice.
        what: &'static str,
        /// The row.
        row: usize,
    },
    /// No unit at all.
    Empty,
    /// Everybody is in the same arm, and the method needs both.
    OneArm,
}

impl fmt::Display for InvalidInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { what, expected, found } => write!(f, "{what}: expected {expected} entries, found {found}"),
            Self::NotFinite { what, row } => write!(f, "{what}: row {row} is not a finite number"),
            Self::Empty => write!(f, "there are no units"),
            Self::OneArm => write!(f, "all units are in the same arm; both are needed"),
        }
    }
}

impl std::error::Error for InvalidInput {}

fn check_length(what: &'static str, expected: usize, found: usize) -> Result<(), InvalidInput> {
    if expected == found { Ok(()) } else { Err(InvalidInput::Length { what, expected, found }) }
}

fn check_finite(what: &'static str, values: &[f64], per_row: usize) -> Result<(), InvalidInput> {
    match values.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(at) => Err(InvalidInput::NotFinite { what, row: at / per_row.max(1) }),
    }
}
