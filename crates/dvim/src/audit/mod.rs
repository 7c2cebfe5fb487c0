//! What a reviewer asks of a run: average effects with intervals that hold, whether follow-up reaches the horizon,
//! whether the groups are comparable, and what it would take to overturn the conclusion.
//!
//! Every number rests on the groups that the estimates came from: one pass finds them again ([`passes`]), and what
//! is averaged, weighed or bounded is read off that pass. Nothing here changes an estimate.

pub mod average;
pub mod balance;
pub mod follow_up;
pub mod heterogeneity;
pub mod passes;
pub mod sensitivity;

use crate::analysis::Analysis;
use crate::cohort::{Arm, Cohort};
use crate::error::Error;
use average::{AverageEffect, By, Populations};
use balance::Balance;
use follow_up::FollowUp;
use heterogeneity::Heterogeneity;
use passes::Walk;
use sensitivity::{AlwaysUncured, AtHorizon, Censoring, Choice, Confounding};

/// Everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// Average effects with intervals.
    pub averages: Vec<AverageEffect>,
    /// Follow-up of all, the treated, the control.
    pub follow_up: [FollowUp; 3],
    /// Balance and overlap.
    pub balance: Balance,
    /// Effects over the horizon.
    pub horizons: Vec<AtHorizon>,
    /// Unmeasured confounding.
    pub confounding: Option<Confounding>,
    /// Informative censoring.
    pub censoring: Option<Censoring>,
    /// The always-uncured.
    pub always_uncured: Option<AlwaysUncured>,
    /// Other group sizes.
    pub group_sizes: Vec<Choice>,
    /// Other seeds: empty unless asked for ([`sensitivity::seeds`]).
    pub seeds: Vec<Choice>,
    /// Whether effects differ between patients.
    pub heterogeneity: Heterogeneity,
}

impl Audit {
    /// Audits a run, with averages by these covariates too.
    pub fn of(cohort: &Cohort, analysis: &Analysis, by: &[By]) -> Result<Audit, Error> {
        let populations = Populations::new(cohort, &analysis.units, by)?;
        Ok(Audit::of_walk(&Walk::new(cohort, analysis), &populations))
    }

    /// The same from a walk that is already prepared.
    pub fn of_walk(walk: &Walk<'_>, populations: &Populations) -> Audit {
        let (cohort, analysis) = (walk.cohort, walk.analysis);
        let averages = average::average_over(walk, populations);
        let n_treated = analysis.units.iter().filter(|&&i| cohort.arm(i as usize) == Arm::Treated).count();
        let treated_share = n_treated as f64 / analysis.units.len().max(1) as f64;
        Audit {
            follow_up: [None, Some(Arm::Treated), Some(Arm::Control)].map(|z| FollowUp::of(cohort, z)),
            balance: Balance::of(walk),
            horizons: sensitivity::horizon_curve(walk),
            confounding: sensitivity::confounding(&averages, treated_share),
            censoring: sensitivity::censoring(analysis),
            always_uncured: sensitivity::always_uncured(walk),
            group_sizes: sensitivity::group_sizes(walk),
            seeds: Vec::new(),
            heterogeneity: Heterogeneity::of_walk(walk),
            averages,
        }
    }
}
