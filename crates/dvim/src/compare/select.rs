//! Feature selection for matching: the covariates that either arm's Cox model finds.

use super::cox::CoxFit;
use crate::arm::ByArm;

/// Covariates kept for matching.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// Covariates with a p-value below the level in at least one arm, ascending. May be empty: the caller decides what
    /// then.
    pub selected: Vec<usize>,
    /// Two-sided Wald p-value of each covariate in each arm; NaN for an aliased one, which that arm does not select.
    pub p_values: ByArm<Vec<f64>>,
}

impl Selection {
    /// Keeps the covariates whose Wald p-value is below `level` in the Cox model of either arm. The paper says
    /// "outcome-based"; of the readings tried (docs/study.md, section 4) this is the closest over its three tables:
    /// `level = 0.05`, then equal weights.
    pub fn of(arms: &ByArm<CoxFit>, level: f64) -> Selection {
        let p_values = arms.each_ref().map(CoxFit::p_values);
        let found = |j: usize| p_values.iter().any(|arm| arm[j] < level);
        Selection { selected: (0..p_values.control.len()).filter(|&j| found(j)).collect(), p_values }
    }
}
