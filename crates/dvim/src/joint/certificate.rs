//! Whether a fit of the joint model can be believed.

use crate::arm::Arm;
use std::fmt;

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
    /// No unit of the arm was followed event-free to a finite horizon: cure is told from late events by the family's
    /// shape alone.
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
    /// `√(g' A⁻¹ g)`, gradient and information of the penalised objective: the distance to its optimum in standard
    /// errors. Infinite where `A` is not positive definite.
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
pub(super) const CONVERGED: f64 = 0.1;
