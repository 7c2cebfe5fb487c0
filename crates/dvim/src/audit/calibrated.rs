//! How much the outcome of each unit counts in averages, so that what the models missed is balanced.
//!
//! A one-step average ([`super::one_step`]) is off by the product of what the curves miss and what the propensities
//! miss: patients who were treated inside a ring of two covariates, whose outcome depends on that ring, look comparable
//! to anything that is linear. So boosted trees look once more at the residuals of each arm (`nuisance`): m_z(x) is
//! what covariates, and the propensity, still explain of them in patients whom the trees did not see. The inverse
//! propensities g are then moved as little as balances it: in each arm
//!
//! `Σ g′(i) m_z(i) over the arm = Σ m_z(i) over everybody`, and the same for 1 in the place of m_z,
//!
//! with `g′ = g (1 + λ'm)` [calibration: Deville & Särndal 1992]. What trees see of the missed part then leaves the
//! average, whatever the propensities are; the rest is weighed as before. Where the trees explain nothing of the
//! residuals of an arm its weights stay as they were. Variances count the whole residuals, so they are rather too large
//! where something was missed.

use crate::arm::{Arm, ByArm};
use crate::cohort::Cohort;
use crate::estimand::{ByEstimand, Estimand};
use crate::nuisance::{Left, Rows, Scored, left_in};
use nalgebra::{DMatrix, DVector};

/// Constraints of an arm, at most: 1, and what is left of each outcome.
const MOST: usize = 3;

/// How the weights of one arm were moved.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Moves {
    /// What each fold of each outcome's trees learned, where they explained something; the covariates are followed by
    /// the logit of the propensity.
    pub(super) left: Vec<Vec<Scored>>,
    /// λ.
    pub(super) slopes: Vec<f64>,
}

impl Moves {
    /// The moved probability of the arm for a patient whom no fold saw, from the one before; `x` is followed by the
    /// logit of P(treated).
    pub(super) fn of_newcomer(&self, x: &[f64], own: f64, smallest: f64) -> f64 {
        let Some((first, rest)) = self.slopes.split_first() else { return own };
        let m = self.left.iter().map(|folds| Scored::mean(folds, x));
        let by = 1.0 + first + rest.iter().zip(m).map(|(slope, m)| slope * m).sum::<f64>();
        (own / by.max(smallest)).clamp(smallest, 1.0 - smallest)
    }
}

/// Propensities that were moved.
pub(super) struct Calibrated {
    /// P(treated) of each unit, as averages use it.
    pub(super) propensity: Vec<f64>,
    /// In which arms and outcomes something was left.
    pub(super) used: ByArm<ByEstimand<bool>>,
    /// How.
    pub(super) moves: ByArm<Moves>,
}

/// The propensities, moved in each arm by what is left in its residuals.
pub(super) fn calibrated(
    cohort: &Cohort,
    x: &[f64],
    propensity: &[f64],
    smallest: f64,
    residual: impl Fn(Estimand, usize) -> f64 + Sync,
) -> Calibrated {
    let (n, p) = (cohort.n_units(), cohort.n_covariates());
    // The propensity joins the covariates: where treatment follows a shape, the outcome may follow the same.
    let logit = |i: usize| libm::log(propensity[i] / (1.0 - propensity[i]));
    let wide: Vec<f64> = (0..n).flat_map(|i| x[i * p..(i + 1) * p].iter().copied().chain([logit(i)])).collect();
    let rows = Rows::new(&wide, p + 1);
    let mut out = propensity.to_vec();
    let mut used = ByArm::of(|_| ByEstimand::of(|_| false));
    let mut moves = ByArm::of(|_| Moves::default());
    for arm in Arm::BOTH {
        let left = Estimand::BOTH.map(|side| left_in(cohort, &rows, arm, |i| residual(side, i)));
        Estimand::BOTH.into_iter().zip(&left).for_each(|(side, left)| used[arm][side] = left.is_some());
        let left: Vec<Left> = left.into_iter().flatten().collect();
        if left.is_empty() {
            continue;
        }
        let of = |i: usize| {
            DVector::from_iterator(left.len() + 1, [1.0].into_iter().chain(left.iter().map(|m| m.of_unit[i])))
        };
        let own = |i: usize| if arm == Arm::Treated { propensity[i] } else { 1.0 - propensity[i] };
        let Some(slopes) = slopes(cohort, arm, own, of) else { continue };
        for &i in cohort.units_of(arm).iter() {
            let i = i as usize;
            let moved = (own(i) / (1.0 + slopes.dot(&of(i))).max(smallest)).clamp(smallest, 1.0 - smallest);
            out[i] = if arm == Arm::Treated { moved } else { 1.0 - moved };
        }
        moves[arm] =
            Moves { slopes: slopes.iter().copied().collect(), left: left.into_iter().map(|left| left.folds).collect() };
    }
    Calibrated { propensity: out, used, moves }
}

/// λ: `Σ_arm ω g m m' λ = Σ ω m − Σ_arm ω g m`. `None` where constraints repeat each other.
fn slopes(
    cohort: &Cohort,
    arm: Arm,
    own: impl Fn(usize) -> f64,
    of: impl Fn(usize) -> DVector<f64>,
) -> Option<DVector<f64>> {
    let k = of(0).len();
    debug_assert!(k <= MOST);
    let (mut square, mut missing) = (DMatrix::zeros(k, k), DVector::zeros(k));
    for i in 0..cohort.n_units() {
        let (m, weight) = (of(i), cohort.weight(i));
        missing.axpy(weight, &m, 1.0);
        if cohort.arm(i) == arm {
            let g = weight / own(i);
            missing.axpy(-g, &m, 1.0);
            square.ger(g, &m, &m, 1.0);
        }
    }
    // On the scale of each: what is left may be small.
    let scale = DVector::from_fn(k, |j, _| square[(j, j)].max(f64::MIN_POSITIVE).sqrt());
    let scaled =
        DMatrix::from_fn(k, k, |i, j| square[(i, j)] / (scale[i] * scale[j]) + if i == j { 1e-9 } else { 0.0 });
    let solved = scaled.cholesky()?.solve(&missing.component_div(&scale));
    Some(solved.component_div(&scale))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cohort::Units;
    use crate::outcome::Extras;
    use crate::table::Ids;

    /// Three treated of four, propensity a half, one function m = (1, 0, 0; 1). Worked by hand: the treated stand for
    /// Σ g = 6 where 4 are meant and Σ g m = 2 where 2 are: `[[6, 2], [2, 2]] λ = [4 − 6, 2 − 2]`, λ = (−½, ½), so the
    /// one with m = 1 keeps its weight 2 and the others count once.
    #[test]
    fn weights_by_hand() {
        let units = Units {
            ids: Ids::Rows(4),
            time: vec![1.0, 2.0, 3.0, 4.0],
            event: vec![true; 4],
            arm: vec![Arm::Treated, Arm::Treated, Arm::Treated, Arm::Control],
            covariates: vec![0.0, 1.0, 2.0, 3.0],
            names: vec!["x".into()],
            labels: ["0".into(), "1".into()],
            extras: Extras::default(),
        };
        let cohort = Cohort::from_parts(units, None, 5.0).expect("sound parts");
        let m = [1.0, 0.0, 0.0, 1.0];
        let found = slopes(&cohort, Arm::Treated, |_| 0.5, |i| DVector::from_vec(vec![1.0, m[i]])).expect("solved");
        assert!((found[0] + 0.5).abs() < 1e-6 && (found[1] - 0.5).abs() < 1e-6, "{found}");
    }
}
