//! Did flexible models of treatment and of what is left in the residuals move the averages?
//!
//! A logistic regression of treatment sees lines. Where trees predict treatment better, or still explain residuals,
//! averages rest on them (`calibrated`). How far they moved the average says how much a line had missed; some
//! of it may be missed still.

use super::one_step::{Found, Scores};
use crate::estimand::{ByEstimand, Estimand};

/// An average with and without flexible models.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moved {
    /// The average as it is reported.
    pub estimate: f64,
    /// The average with a logistic regression of treatment alone.
    pub plain: f64,
    /// Standard error of their difference.
    pub se: f64,
}

impl Moved {
    /// How far it was moved.
    pub fn by(&self) -> f64 {
        self.estimate - self.plain
    }
}

/// Both averages with and without flexible models.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Form {
    /// What the models found.
    pub found: Found,
    /// Of each effect.
    pub moved: ByEstimand<Moved>,
}

impl Form {
    pub(super) fn of(scores: &Scores<'_>) -> Form {
        Form { found: scores.found(), moved: ByEstimand::of(|side: Estimand| scores.moved(side)) }
    }
}
