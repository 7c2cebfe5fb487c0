//! How much an average can know at most, from the units whose outcomes it rests on.
//!
//! The variance of an average is seen in how outcomes vary. Where events are few or tied, nobody or everybody has one,
//! or all units are of one cluster, they vary little by chance or not at all, and the variance says that everything is
//! known. So a standard error is never below what so many units can know: of a share as Wilson's interval has it
//! where nothing varies, of a mean event time as [`crate::survival::Summary::least_spread`] has it.

use crate::arm::ByArm;
use crate::cohort::{Arm, Cohort};
use crate::curve::split_rmst;
use crate::estimand::Estimand;
use crate::interval::least_share_se;
use crate::outcome::Outcome;
use crate::survival::least_spread;

/// What is known of the units of one arm.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Known {
    /// Units, or clusters, of whom it is known whether they had the event by H: as many as they are worth.
    units: f64,
    /// Those who had it.
    events: f64,
}

impl Known {
    /// Of these units of a cohort.
    pub(super) fn of(cohort: &Cohort, units: impl Iterator<Item = usize>) -> Known {
        let (mut known, mut events) = (Vec::new(), Vec::new());
        for i in units {
            let outcome = cohort.outcome(i);
            let one = (outcome.cluster, i, outcome.weight);
            let (is_known, had_event) = what_is_known(&outcome, cohort.horizon());
            known.extend(is_known.then_some(one));
            events.extend(had_event.then_some(one));
        }
        let clustered = cohort.extras().cluster.is_some();
        Known { units: worth(known, clustered), events: worth(events, clustered) }
    }

    /// From how much those are worth of whom the outcome is known, and those who had the event.
    pub(super) fn of_worth(units: f64, events: f64) -> Known {
        Known { units, events }
    }

    /// Of each arm of these units.
    pub(super) fn of_arms(cohort: &Cohort, units: &[usize]) -> ByArm<Known> {
        ByArm::of(|z: Arm| Known::of(cohort, units.iter().copied().filter(|&i| cohort.arm(i) == z)))
    }

    /// The least standard error of a share.
    pub(super) fn least_share(&self, quantile: f64) -> f64 {
        least_share_se(self.units, quantile)
    }

    /// The least standard error of a mean event time; `None` where nothing shows how event times vary.
    fn least_mean(&self, mean: f64, horizon: f64) -> Option<f64> {
        Some(least_spread(self.events)? * (mean * (horizon - mean) / horizon).max(0.0))
    }

    /// The least standard error of an arm's value.
    pub(super) fn least(&self, side: Estimand, value: f64, horizon: f64, quantile: f64) -> Option<f64> {
        match side {
            Estimand::Cure => Some(self.least_share(quantile)),
            Estimand::Time => self.least_mean(value, horizon),
        }
    }
}

/// Whether it is known of a unit if it had the event by H, and whether it had it.
pub(super) fn what_is_known(outcome: &Outcome, horizon: f64) -> (bool, bool) {
    let is_known = outcome.event || outcome.competing || outcome.time >= horizon;
    (is_known, outcome.event && outcome.time < horizon)
}

/// The effective number of units, or of clusters, `(Σw)²/Σw²`.
fn worth(mut all: Vec<(u32, usize, f64)>, clustered: bool) -> f64 {
    all.sort_unstable_by_key(|(cluster, i, _)| (*cluster, *i));
    let (mut sum, mut square) = (0.0, 0.0);
    for same in all.chunk_by(|a, b| clustered && a.0 == b.0) {
        let w: f64 = same.iter().map(|(.., w)| w).sum();
        (sum, square) = (sum + w, square + w * w);
    }
    if square > 0.0 { sum * sum / square } else { 0.0 }
}

/// The least standard errors of RMST in each arm, and of the two parts of its difference; `None` where nothing shows
/// how event times vary.
pub(super) fn least_of_rmst(
    known: &ByArm<Known>,
    cured: ByArm<f64>,
    mean: ByArm<f64>,
    horizon: f64,
    quantile: f64,
) -> (ByArm<f64>, [Option<f64>; 2]) {
    let of_share = ByArm::of(|z| known[z].least_share(quantile));
    let of_mean = ByArm::of(|z| known[z].least_mean(mean[z], horizon));
    let arms = ByArm::of(|z| {
        let by_mean = of_mean[z].unwrap_or(0.0) * (1.0 - cured[z]);
        f64::max((horizon - mean[z]) * of_share[z], by_mean)
    });
    let split = split_rmst(cured, mean, horizon);
    let part = |slopes: [f64; 4]| {
        let (c, t) = (of_mean.control?, of_mean.treated?);
        let each = [of_share.control, of_share.treated, c, t];
        Some(slopes.iter().zip(each).map(|(s, e)| (s * e).powi(2)).sum::<f64>().sqrt())
    };
    (arms, [part(split.from_cure.1), part(split.from_time.1)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20 of whom all had the event at one time: Wilson's end at 95 % is 3.84/(20 + 3.84); √(20 · 19) = 19.49.
    #[test]
    fn by_hand() {
        let known = Known { units: 20.0, events: 20.0 };
        let z = 1.959_963_984_540_054;
        assert!((z * known.least_share(z) - 0.161_1).abs() < 1e-4);
        assert!((known.least_mean(5.0, 10.0).expect("two events") - 2.5 * 1.1547 / 19.4936).abs() < 1e-5);
        assert_eq!(Known { units: 9.0, events: 1.0 }.least_mean(5.0, 10.0), None);
        assert_eq!(worth(vec![(3, 0, 1.0), (3, 1, 1.0), (4, 2, 2.0)], true), 2.0);
        assert_eq!(worth(vec![(3, 0, 1.0), (3, 1, 1.0), (4, 2, 1.0)], false), 3.0);
    }
}
