//! Scores as data: one number per unit, `f(intercept + x'b)`.
//!
//! The propensity score is a [`LinearScore`] with a logistic link; the prognostic score of the paper is the
//! [`mean`] over the arms of two scores with the Cox link, Ŝ(H | x). Either is a metric of one dimension.

use crate::numeric::expit;

/// What is done to the linear predictor η.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Link {
    /// η itself.
    Identity,
    /// `1 / (1 + exp(−η))`.
    Logistic,
    /// `exp(−cumulative_hazard · exp(η))`: survival at the time whose baseline cumulative hazard this is.
    CoxSurvival {
        /// Baseline cumulative hazard at that time, not negative.
        cumulative_hazard: f64,
    },
}

/// A score that is a function of one linear predictor.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearScore {
    /// Added to every linear predictor.
    pub intercept: f64,
    /// One coefficient per covariate, in the covariate's own units.
    pub coefficients: Vec<f64>,
    /// What is done to the linear predictor.
    pub link: Link,
}

impl LinearScore {
    /// `intercept + x'b`. Covariates beyond the coefficients (or the reverse) are ignored.
    pub fn linear_predictor(&self, unit: &[f64]) -> f64 {
        self.intercept + self.coefficients.iter().zip(unit).map(|(b, x)| b * x).sum::<f64>()
    }

    /// The score of one unit.
    pub fn evaluate(&self, unit: &[f64]) -> f64 {
        let eta = self.linear_predictor(unit);
        match self.link {
            Link::Identity => eta,
            Link::Logistic => expit(eta),
            Link::CoxSurvival { cumulative_hazard } => survival(cumulative_hazard, eta),
        }
    }

    /// The score of each unit; covariates row by row, as many columns as coefficients.
    pub fn evaluate_all(&self, covariates: &[f64]) -> Vec<f64> {
        covariates.chunks_exact(self.coefficients.len().max(1)).map(|unit| self.evaluate(unit)).collect()
    }
}

/// Mean of several scores, unit by unit: with the two arms' Cox scores, the prognostic score.
/// All scores have the same number of coefficients. No score: no value.
pub fn mean(scores: &[LinearScore], covariates: &[f64]) -> Vec<f64> {
    let Some(first) = scores.first() else { return Vec::new() };
    let share = 1.0 / scores.len() as f64;
    covariates
        .chunks_exact(first.coefficients.len().max(1))
        .map(|unit| scores.iter().map(|score| share * score.evaluate(unit)).sum())
        .collect()
}

/// `exp(−hazard · exp(eta))`, 1 where the hazard is 0 whatever η.
pub(super) fn survival(hazard: f64, eta: f64) -> f64 {
    if hazard <= 0.0 { 1.0 } else { libm::exp(-libm::exp(libm::log(hazard) + eta)) }
}
