//! What stands beside the cure model of a fold: proportional hazards, boosted hazards, and levels of the arms.
//!
//! The cure model gives each patient and arm the logit of being event-free at H and the location of the event time.
//! Proportional hazards give the same two numbers from one set of slopes: where one set is enough, it is surer than
//! two. Boosted hazards give them from small trees: where nothing is a straight line, they are nearer. The share of
//! each in each number is chosen by how well units are predicted that no model saw. Where nothing is gained the shares
//! are 0, and the cure model stands alone, to the last bit.
//!
//! Where treatment goes with covariates in a way that no linear model sees, the levels of the arms are set once more by
//! inverse propensities.

use crate::arm::{Arm, ByArm};
use crate::boosted::Boosted;
use crate::curve::{CELLS, Grid};
use crate::estimand::ByEstimand;

/// What stands beside a cure model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Beside {
    /// The model of proportional hazards; `None` where it has no share.
    pub hazard: Option<Hazard>,
    /// Boosted hazards; `None` where they have no share.
    pub boosted: Option<Boosted>,
    /// The shares of both in the cure logit, and in the log of the mean event time.
    pub share: ByEstimand<Shares>,
    /// What is added in each arm so that the outcomes of the arm's units are met on average over all patients, and not
    /// over those who happened to be in the arm; 0 where a linear model says who is treated.
    pub level: ByEstimand<ByArm<f64>>,
}

/// The shares of the learners beside a cure model, which has the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// Of proportional hazards.
    pub hazards: f64,
    /// Of boosted hazards.
    pub boosted: f64,
}

impl Shares {
    /// That of the cure model.
    pub fn cure_model(&self) -> f64 {
        1.0 - self.hazards - self.boosted
    }

    /// Whether the cure model has everything.
    pub fn are_none(&self) -> bool {
        *self == Shares::default()
    }

    fn are_sound(&self) -> bool {
        self.hazards >= 0.0 && self.boosted >= 0.0 && self.cure_model() >= 0.0
    }
}

/// A half in the treated arm, minus a half in the control arm.
pub(crate) fn half(arm: Arm) -> f64 {
    match arm {
        Arm::Treated => 0.5,
        Arm::Control => -0.5,
    }
}

/// A model of proportional hazards, with a baseline of each arm that is constant between the knots of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Hazard {
    /// A slope for each column of the cure model's design.
    pub slopes: ByArm<Vec<f64>>,
    /// The baseline, summed up to each knot after 0.
    pub summed: ByArm<[f64; CELLS]>,
    /// The knots.
    pub grid: Grid,
}

impl Hazard {
    /// The logit of S(H) and the log of E[T | T < H] in an arm, for a row of the design.
    pub(crate) fn values(&self, row: &[f64], arm: Arm) -> ByEstimand<f64> {
        let score: f64 = self.slopes[arm].iter().zip(row).map(|(b, x)| b * x).sum();
        let (ratio, summed) = (libm::exp(score.clamp(-20.0, 20.0)), &self.summed[arm]);
        let last = ratio * summed[CELLS - 1];
        // logit e^−Λ = −ln(e^Λ − 1).
        let logit = -libm::log(libm::expm1(last.clamp(1e-9, 30.0)));
        let survival = |k: usize| if k == 0 { 1.0 } else { libm::exp(-ratio * summed[k - 1]) };
        let end = survival(CELLS);
        let (mut area, mut before) = (0.0, 1.0);
        for k in 0..CELLS {
            let after = survival(k + 1);
            area += 0.5 * (before - end + after - end) * self.grid.width(k);
            before = after;
        }
        let mean = area / (1.0 - end).max(1e-9);
        ByEstimand { cure: logit, time: libm::log(mean.max(1e-6 * self.grid.horizon())) }
    }
}

impl Beside {
    /// Whether the cure model stands alone.
    pub fn is_alone(&self) -> bool {
        self.share == ByEstimand::default() && self.level == ByEstimand::default()
    }

    /// Whether its parts fit a model with so many columns, of so many covariates: one that was read from a file may
    /// not.
    pub fn is_sound(&self, n_columns: usize, n_covariates: usize) -> bool {
        let hazard = self.hazard.as_ref().is_none_or(|h| {
            h.slopes.iter().all(|b| b.len() == n_columns && b.iter().all(|x| x.is_finite()))
                && h.summed.iter().all(|s| s.iter().all(|x| x.is_finite() && *x >= 0.0))
        });
        let needs = |of: fn(&Shares) -> f64| self.share.iter().any(|s| of(s) > 0.0);
        let there =
            (!needs(|s| s.hazards) || self.hazard.is_some()) && (!needs(|s| s.boosted) || self.boosted.is_some());
        let boosted = self.boosted.as_ref().is_none_or(|b| b.is_sound(n_covariates));
        let level = self.level.iter().all(|of_arms| of_arms.iter().all(|x| x.is_finite()));
        let shares = self.share.iter().all(Shares::are_sound) && there;
        shares && level && hazard && boosted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A constant hazard of 0.1 over 10: S(H) = e⁻¹, and the mean of an exponential time truncated there.
    #[test]
    fn a_constant_hazard_by_hand() {
        let grid = Grid::new(10.0);
        let summed = std::array::from_fn(|k| 0.1 * grid.times()[k + 1]);
        let hazard = Hazard { slopes: ByArm::of(|_| vec![0.0, 0.5]), summed: ByArm::of(|_| summed), grid };
        let found = hazard.values(&[1.0, 0.0], Arm::Treated);
        let s = libm::exp(-1.0);
        assert!((found.cure - libm::log(s / (1.0 - s))).abs() < 1e-9);
        // E[T | T < H] = 10 − 10 e⁻¹/(1 − e⁻¹).
        let mean = 10.0 - 10.0 * s / (1.0 - s);
        assert!((libm::exp(found.time) - mean).abs() < 0.01 * mean, "{} {mean}", libm::exp(found.time));
        // A larger hazard: fewer are event-free, and events come sooner.
        let larger = hazard.values(&[1.0, 1.0], Arm::Treated);
        assert!(larger.cure < found.cure && larger.time < found.time);
        let share = ByEstimand { cure: Shares { hazards: 0.5, boosted: 0.0 }, time: Shares::default() };
        let beside = Beside { hazard: Some(hazard), share, ..Beside::default() };
        assert!(!beside.is_alone() && beside.is_sound(2, 1) && !beside.is_sound(3, 1));
        assert!(Beside::default().is_alone() && !Beside { hazard: None, ..beside.clone() }.is_sound(2, 1));
        let more = ByEstimand { cure: Shares { hazards: 0.5, boosted: 0.75 }, time: Shares::default() };
        assert!(!Beside { share: more, ..beside }.is_sound(2, 1));
    }
}
