//! Does censoring depend on the covariates?
//!
//! Averages of match groups take it that whether a patient of an arm is censored says nothing of the outcome; those of
//! the adjusted estimator, that covariates explain it (`nuisance`). How strongly it goes with covariates says how much
//! rests on that. The score test of a Cox model of censoring before H within
//! arms, at no effect: with x̄(t) and V(t) the mean and the covariance of the covariates of those at risk at t,
//!
//! `U = Σ {xᵢ − x̄(tᵢ)}`, `V = Σ V(tᵢ)` over the censored, `χ² = U′V⁻U` on r degrees of freedom, r the rank of V.
//!
//! `√{(χ² − r)/N}` with N censored is the standard deviation of the log hazard of censoring between patients, less
//! what chance brings: a strength that does not grow with the cohort.

use crate::cohort::{Arm, Cohort};
use crate::distribution::f_upper_tail;
use crate::metric::{Scale, Scaling};
use nalgebra::{DMatrix, DVector, SymmetricEigen};

/// Patients that are looked at, at most.
const MOST_UNITS: usize = 5_000;
/// Columns that are looked at, at most.
const MOST_COLUMNS: usize = 60;
/// Fewer censored tell nothing.
const FEWEST: usize = 20;

/// How censoring before H goes with the covariates.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependence {
    /// Censored before H.
    pub n_censored: usize,
    /// Their share.
    pub share: f64,
    /// χ².
    pub statistic: f64,
    /// Its degrees of freedom.
    pub free: usize,
    /// Chance of so much or more where censoring depends on the arm alone.
    pub p: f64,
    /// Standard deviation of the log hazard of censoring between patients, less what chance brings.
    pub strength: f64,
    /// The covariate that matters most for it.
    pub most: String,
}

impl Dependence {
    /// Of the patients of a cohort; `None` where hardly anybody is censored or patients enter late.
    pub fn of(cohort: &Cohort) -> Option<Dependence> {
        if cohort.extras().entry.is_some() {
            return None;
        }
        let n = cohort.n_units();
        let units: Vec<usize> = (0..n).step_by(n.div_ceil(MOST_UNITS).max(1)).collect();
        let p = cohort.n_covariates().min(MOST_COLUMNS);
        let scaling = Scaling::of(cohort, Scale::Standard);
        let (mut u, mut v, mut count) = (DVector::zeros(p), DMatrix::zeros(p, p), 0);
        for arm in Arm::BOTH {
            let mut of_arm: Vec<(f64, bool, DVector<f64>)> = units
                .iter()
                .filter(|&&i| cohort.arm(i) == arm)
                .map(|&i| {
                    let o = cohort.outcome(i);
                    let lost = !o.event && !o.competing && o.time < cohort.horizon();
                    (o.time, lost, DVector::from_column_slice(&scaling.apply(cohort.covariates(i))[..p]))
                })
                .collect();
            // From the last to the first: who is at risk grows.
            of_arm.sort_by(|a, b| b.0.total_cmp(&a.0));
            let (mut at_risk, mut sum, mut square) = (0.0, DVector::zeros(p), DMatrix::zeros(p, p));
            for same in of_arm.chunk_by(|a, b| a.0 == b.0) {
                for (_, _, x) in same {
                    at_risk += 1.0;
                    sum += x;
                    square.ger(1.0, x, x, 1.0);
                }
                let lost = same.iter().filter(|s| s.1).count();
                if lost > 0 {
                    let mean = &sum / at_risk;
                    let spread = &square / at_risk - &mean * mean.transpose();
                    same.iter().filter(|s| s.1).for_each(|s| u += &s.2 - &mean);
                    v += spread * lost as f64;
                    count += lost;
                }
            }
        }
        if count < FEWEST {
            return None;
        }
        let eigen = SymmetricEigen::new(v);
        let largest = eigen.eigenvalues.max();
        let kept: Vec<usize> = (0..p).filter(|&k| eigen.eigenvalues[k] > 1e-9 * largest.max(1e-12)).collect();
        let mut slopes = DVector::zeros(p);
        let mut statistic = 0.0;
        for &k in &kept {
            let along = eigen.eigenvectors.column(k);
            let score = along.dot(&u);
            statistic += score * score / eigen.eigenvalues[k];
            slopes += along * (score / eigen.eigenvalues[k]);
        }
        let free = kept.len();
        if free == 0 {
            return None;
        }
        let most = (0..p).max_by(|&a, &b| slopes[a].abs().total_cmp(&slopes[b].abs())).unwrap_or(0);
        Some(Dependence {
            n_censored: count,
            share: count as f64 / units.len() as f64,
            statistic,
            free,
            p: f_upper_tail(statistic / free as f64, free, 1_000_000),
            strength: ((statistic - free as f64).max(0.0) / count as f64).sqrt(),
            most: cohort.names()[most].clone(),
        })
    }
}
