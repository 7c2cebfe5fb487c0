//! The two effects of each unit, and whether each is defined.
//!
//! For a unit with match groups M₁ (treated) and M₀ (control) under each metric:
//! cure effect π = Ŝ₁(H) − Ŝ₀(H) from the cure groups, time effect Δ = CMET₁ − CMET₀ from the time
//! groups. π > 0: treatment cures more. Δ > 0: treatment delays events.

use crate::arm::{Arm, ByArm};
use crate::curve::{Curves, Ends, Grid, Shape};
use crate::estimand::{ByEstimand, Estimand};
use crate::group::GroupEstimate;
use crate::interval::{self, Interval};
use crate::joint::Spread;
use crate::survival::FEW_AT_RISK;

/// A value for each estimand and arm.
pub type Four<T> = ByEstimand<ByArm<T>>;

/// Each estimand in each arm: cure in control, cure in treated, time in control, time in treated.
pub(crate) fn all_four() -> impl Iterator<Item = (Estimand, Arm)> {
    Estimand::BOTH.into_iter().flat_map(|estimand| Arm::BOTH.map(|arm| (estimand, arm)))
}

/// Values of a unit that a model corrected for the covariate difference between the unit and its groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Corrected {
    /// P(T ≥ H) in each arm.
    pub cure_probability: ByArm<f64>,
    /// E[T | T < H] in each arm.
    pub mean_event_time: ByArm<f64>,
    /// How sure `logit P(T ≥ H)` and `ln E[T | T < H]` are.
    pub spread: ByEstimand<Spread>,
    /// Covariance of `logit P(T ≥ H)` in one arm (first) and `ln E[T | T < H]` in another.
    pub cross: ByArm<ByArm<f64>>,
    /// The distribution of the event time before H in each arm.
    pub shape: ByArm<Shape>,
    /// The variance of that shape, beyond that of its mean, in terms of one event.
    pub shape_variance: ByArm<f64>,
    /// What the models alone say: P(T ≥ H) and E[T | T < H] in each arm.
    pub model: Four<f64>,
    /// How far the groups moved that: the weight of their offsets.
    pub weight: ByEstimand<f64>,
    /// Standard deviations of the two effects over the deals; `None` with one deal.
    pub split_sd: Option<ByEstimand<f64>>,
}

impl Corrected {
    /// Before anything was estimated.
    pub const NOTHING: Corrected = {
        const NO: ByArm<f64> = ByArm { control: 0.0, treated: 0.0 };
        let none = Spread { variance: NO, covariance: 0.0 };
        let flat = Shape::NOTHING;
        Corrected {
            cure_probability: NO,
            mean_event_time: NO,
            spread: ByEstimand { cure: none, time: none },
            cross: ByArm { control: NO, treated: NO },
            shape: ByArm { control: flat, treated: flat },
            shape_variance: NO,
            model: ByEstimand { cure: NO, time: NO },
            weight: ByEstimand { cure: 0.0, time: 0.0 },
            split_sd: None,
        }
    };

    /// The curves of both arms, with their uncertainty.
    pub fn curves<'g>(&self, grid: &'g Grid) -> Curves<'g> {
        Curves::new(grid, self.ends(grid.horizon()), &self.shape, self.shape_variance)
    }

    /// The values had an earlier horizon been chosen, read off the same curves. What the models alone say and the
    /// spread over deals stay those of the cohort's own horizon. `None` where no event comes before h.
    pub fn until(&self, grid: &Grid, h: f64) -> Option<Corrected> {
        if h >= grid.horizon() {
            return Some(*self);
        }
        let ends = self.curves(grid).until(h)?;
        let (p, m) = (ends.cured, ends.mean_event_time);
        // From the scales of the curve to those of the correction.
        let of = |v: f64| v.max(1e-12);
        let slope =
            [of(p.control * (1.0 - p.control)), of(p.treated * (1.0 - p.treated)), of(m.control), of(m.treated)];
        let c = |i: usize, j: usize| ends.covariance[i][j] / (slope[i] * slope[j]);
        let spread = |i: usize| Spread {
            variance: ByArm { control: c(i, i).max(0.0), treated: c(i + 1, i + 1).max(0.0) },
            covariance: c(i, i + 1),
        };
        Some(Corrected {
            cure_probability: p,
            mean_event_time: m,
            spread: ByEstimand { cure: spread(0), time: spread(2) },
            cross: ByArm::of(|a| ByArm::of(|b| c(a.index(), 2 + b.index()))),
            ..*self
        })
    }

    /// What the curves come to at the horizon.
    pub fn ends(&self, horizon: f64) -> Ends {
        let (p, m) = (&self.cure_probability, &self.mean_event_time);
        // From the scales of the correction to those of the curve.
        let slope = [p.control * (1.0 - p.control), p.treated * (1.0 - p.treated), m.control, m.treated];
        let (c, t) = (&self.spread.cure, &self.spread.time);
        let x = &self.cross;
        let plain = [
            [c.variance.control, c.covariance, x.control.control, x.control.treated],
            [c.covariance, c.variance.treated, x.treated.control, x.treated.treated],
            [x.control.control, x.treated.control, t.variance.control, t.covariance],
            [x.control.treated, x.treated.treated, t.covariance, t.variance.treated],
        ];
        let covariance = std::array::from_fn(|i| std::array::from_fn(|j| slope[i] * slope[j] * plain[i][j]));
        Ends { horizon, cured: *p, mean_event_time: *m, covariance }
    }

    /// The interval of an arm's P(T ≥ H).
    pub fn cure_probability_interval(&self, arm: Arm, confidence: f64) -> Interval {
        self.cure_probability_at(arm, interval::two_sided(confidence))
    }

    fn cure_probability_at(&self, arm: Arm, z: f64) -> Interval {
        let s = self.cure_probability[arm];
        interval::bounded_at(s, s * (1.0 - s) * self.spread.cure.variance[arm].sqrt(), 1.0, z)
    }

    /// The interval of an arm's E[T | T < H].
    pub fn mean_event_time_interval(&self, arm: Arm, horizon: f64, confidence: f64) -> Interval {
        self.mean_event_time_at(arm, horizon, interval::two_sided(confidence))
    }

    fn mean_event_time_at(&self, arm: Arm, horizon: f64, z: f64) -> Interval {
        let m = self.mean_event_time[arm];
        interval::bounded_at(m, m * self.spread.time.variance[arm].sqrt(), horizon, z)
    }

    /// The interval of the cure effect.
    pub fn cure_interval(&self, confidence: f64) -> Interval {
        let of = ByArm::of(|z| self.cure_probability_interval(z, confidence));
        let s = &self.cure_probability;
        interval::difference(s.treated, &of.treated, s.control, &of.control, self.spread.cure.correlation())
    }

    /// The interval of the time effect.
    pub fn time_interval(&self, horizon: f64, confidence: f64) -> Interval {
        let of = ByArm::of(|z| self.mean_event_time_interval(z, horizon, confidence));
        let m = &self.mean_event_time;
        interval::difference(m.treated, &of.treated, m.control, &of.control, self.spread.time.correlation())
    }
}

/// The intervals of one unit's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Intervals {
    /// Of π̂.
    pub cure: Interval,
    /// Of Δ̂.
    pub time: Option<Interval>,
    /// Of P(T ≥ H) in each arm.
    pub cure_probability: ByArm<Interval>,
    /// Of E[T | T < H] in each arm.
    pub mean_event_time: ByArm<Option<Interval>>,
}

/// The two effects of one unit, and the groups that they come from.
///
/// ```
/// use dvim::{Options, Scenario, Unwatched, run, simulate};
///
/// let world = simulate(Scenario::BothOverlap, 1_000, false, 1);
/// let found = run(&world.cohort, &Options::default(), &Unwatched)?;
/// let effect = &found.effects[0];
/// let interval = effect.cure_interval(0.95);
/// assert!(interval.low <= effect.cure() && effect.cure() <= interval.high);
/// # Ok::<(), dvim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// What the groups of each estimand gave in each arm.
    pub groups: Four<GroupEstimate>,
    /// The values after the correction; `None` where the fold that estimated the unit has no corrector.
    pub corrected: Option<Corrected>,
}

impl Effect {
    /// Before anything was estimated.
    pub const NOTHING: Effect = {
        let nothing = ByArm { control: GroupEstimate::NOTHING, treated: GroupEstimate::NOTHING };
        Effect { groups: ByEstimand { cure: nothing, time: nothing }, corrected: None }
    };
}

/// Something a reader should know of a unit's estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// Nobody of the cure group is at risk at H: Ŝ(H) is the last value of its curve, carried forward.
    CureCarriedForward(Arm),
    /// The same of the time group: its CMET rests on a carried-forward Ŝ(H).
    TimeCarriedForward(Arm),
    /// The time group has no event before H: its CMET, and with it the time effect, is undefined.
    NoEvent(Arm),
    /// With delayed entry an event of a group met few at risk.
    FewAtRisk(Arm),
    /// One event, or events of one cluster, in the time group: nothing shows how its event times vary.
    NoTimeInterval(Arm),
}

impl Flag {
    /// All flags, in the order in which they are written.
    pub const ALL: [Flag; 10] = [
        Flag::CureCarriedForward(Arm::Treated),
        Flag::CureCarriedForward(Arm::Control),
        Flag::TimeCarriedForward(Arm::Treated),
        Flag::TimeCarriedForward(Arm::Control),
        Flag::NoEvent(Arm::Treated),
        Flag::NoEvent(Arm::Control),
        Flag::FewAtRisk(Arm::Treated),
        Flag::FewAtRisk(Arm::Control),
        Flag::NoTimeInterval(Arm::Treated),
        Flag::NoTimeInterval(Arm::Control),
    ];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Flag::CureCarriedForward(Arm::Treated) => "cure_carried_forward_treated",
            Flag::CureCarriedForward(Arm::Control) => "cure_carried_forward_control",
            Flag::TimeCarriedForward(Arm::Treated) => "time_carried_forward_treated",
            Flag::TimeCarriedForward(Arm::Control) => "time_carried_forward_control",
            Flag::NoEvent(Arm::Treated) => "no_event_treated",
            Flag::NoEvent(Arm::Control) => "no_event_control",
            Flag::FewAtRisk(Arm::Treated) => "few_at_risk_treated",
            Flag::FewAtRisk(Arm::Control) => "few_at_risk_control",
            Flag::NoTimeInterval(Arm::Treated) => "no_time_interval_treated",
            Flag::NoTimeInterval(Arm::Control) => "no_time_interval_control",
        }
    }

    /// What it means, for a person.
    pub fn meaning(self) -> String {
        match self {
            Flag::CureCarriedForward(z) => {
                format!(
                    "no matched patient of the {} arm was followed to the horizon; the last value of the curve is used",
                    z.name()
                )
            }
            Flag::TimeCarriedForward(z) => {
                format!(
                    "no patient of the {} arm who was matched for time was followed to the horizon; the mean event time rests on the last value of the curve",
                    z.name()
                )
            }
            Flag::NoEvent(z) => {
                format!(
                    "no matched patient of the {} arm has an event before the horizon: there is no time effect",
                    z.name()
                )
            }
            Flag::FewAtRisk(z) => format!(
                "an event among the matched patients of the {} arm met fewer than {FEW_AT_RISK} at risk while others had yet to enter: the curve rests on few",
                z.name()
            ),
            Flag::NoTimeInterval(z) => format!(
                "the matched patients of the {} arm have one event, or events of one cluster: the time effect has no interval",
                z.name()
            ),
        }
    }
}

impl Effect {
    /// The estimated effect, where it is defined: π̂ is defined for every unit.
    pub fn of(&self, estimand: Estimand) -> Option<f64> {
        match estimand {
            Estimand::Cure => Some(self.cure()),
            Estimand::Time => self.time(),
        }
    }

    /// The estimated value of one arm, where it is defined.
    pub fn value(&self, estimand: Estimand, arm: Arm) -> Option<f64> {
        match estimand {
            Estimand::Cure => Some(self.cure_probability(arm)),
            Estimand::Time => self.mean_event_time(arm),
        }
    }

    /// P(T ≥ H) in an arm: corrected where it was, else Ŝ(H) of its cure group.
    pub fn cure_probability(&self, arm: Arm) -> f64 {
        match &self.corrected {
            Some(c) => c.cure_probability[arm],
            None => self.groups.cure[arm].curve.survival,
        }
    }

    /// CMET of an arm: corrected where it was, else that of its time group.
    pub fn mean_event_time(&self, arm: Arm) -> Option<f64> {
        match &self.corrected {
            Some(c) => Some(c.mean_event_time[arm]),
            None => self.groups.time[arm].curve.mean_event_time(),
        }
    }

    /// π̂.
    pub fn cure(&self) -> f64 {
        self.cure_probability(Arm::Treated) - self.cure_probability(Arm::Control)
    }

    /// What the groups alone give.
    pub fn matched(&self, estimand: Estimand) -> Option<f64> {
        match estimand {
            Estimand::Cure => Some(self.cure_matched()),
            Estimand::Time => self.time_matched(),
        }
    }

    /// What the cure groups alone give for π.
    pub fn cure_matched(&self) -> f64 {
        self.groups.cure[Arm::Treated].curve.survival - self.groups.cure[Arm::Control].curve.survival
    }

    /// What the time groups alone give for Δ.
    pub fn time_matched(&self) -> Option<f64> {
        let mean = |arm| self.groups.time[arm].curve.mean_event_time();
        Some(mean(Arm::Treated)? - mean(Arm::Control)?)
    }

    /// Δ̂, where both arms have an event.
    pub fn time(&self) -> Option<f64> {
        Some(self.mean_event_time(Arm::Treated)? - self.mean_event_time(Arm::Control)?)
    }

    /// The interval of an arm's P(T ≥ H): from the variance of its Kaplan–Meier curve alone, or, where it was
    /// corrected, of model and group together.
    pub fn cure_probability_interval(&self, arm: Arm, confidence: f64) -> Interval {
        match &self.corrected {
            Some(c) => c.cure_probability_interval(arm, confidence),
            None => interval::share(&self.groups.cure[arm].curve, confidence),
        }
    }

    /// The interval of an arm's CMET; `None` below two events, unless it was corrected.
    pub fn mean_event_time_interval(&self, arm: Arm, horizon: f64, confidence: f64) -> Option<Interval> {
        match &self.corrected {
            Some(c) => Some(c.mean_event_time_interval(arm, horizon, confidence)),
            None => interval::mean_event_time(&self.groups.time[arm].curve, horizon, confidence),
        }
    }

    /// The interval of π̂. Two groups share no unit, so their variances add.
    pub fn cure_interval(&self, confidence: f64) -> Interval {
        if let Some(c) = &self.corrected {
            return c.cure_interval(confidence);
        }
        let of = |z| (self.cure_probability(z), self.cure_probability_interval(z, confidence));
        let ((c, of_c), (t, of_t)) = (of(Arm::Control), of(Arm::Treated));
        interval::difference(t, &of_t, c, &of_c, 0.0)
    }

    /// The interval of Δ̂; `None` where an arm has fewer than two events, unless it was corrected.
    pub fn time_interval(&self, horizon: f64, confidence: f64) -> Option<Interval> {
        if let Some(c) = &self.corrected {
            return Some(c.time_interval(horizon, confidence));
        }
        let of = |z| Some((self.mean_event_time(z)?, self.mean_event_time_interval(z, horizon, confidence)?));
        let ((c, of_c), (t, of_t)) = (of(Arm::Control)?, of(Arm::Treated)?);
        Some(interval::difference(t, &of_t, c, &of_c, 0.0))
    }

    /// What the curves come to at the horizon, with their uncertainty; `None` where a mean event time is undefined. The
    /// groups of the two estimands count as independent. In a group without an event nothing varies: its standard error
    /// is then such that `quantile` times it reaches as far as Wilson's interval.
    pub fn ends(&self, horizon: f64, quantile: f64) -> Option<Ends> {
        if let Some(c) = &self.corrected {
            return Some(c.ends(horizon));
        }
        let cured = ByArm::of(|z| self.cure_probability(z));
        let mean = [self.mean_event_time(Arm::Control)?, self.mean_event_time(Arm::Treated)?];
        let mut covariance = [[0.0; 4]; 4];
        for z in Arm::BOTH {
            let (cure, time) = (&self.groups.cure[z].curve, &self.groups.time[z].curve);
            let wilson = interval::share_at(cure, quantile);
            let se = wilson.se.unwrap_or(wilson.width() / quantile);
            covariance[z.index()][z.index()] = se * se;
            let se = interval::mean_event_time_se(time, horizon)?;
            covariance[2 + z.index()][2 + z.index()] = se * se;
        }
        Some(Ends { horizon, cured, mean_event_time: mean.into(), covariance })
    }

    /// All of them at once: each group's interval is computed once.
    pub fn intervals(&self, horizon: f64, confidence: f64) -> Intervals {
        self.intervals_at(horizon, interval::two_sided(confidence))
    }

    /// The same with the normal quantile of the intervals, for those who go through many units.
    pub fn intervals_at(&self, horizon: f64, quantile: f64) -> Intervals {
        let (cure_probability, mean_event_time, correlation) = match &self.corrected {
            Some(c) => (
                ByArm::of(|z| c.cure_probability_at(z, quantile)),
                ByArm::of(|z| Some(c.mean_event_time_at(z, horizon, quantile))),
                c.spread.map(|s| s.correlation()),
            ),
            None => (
                self.groups.cure.each_ref().map(|g| interval::share_at(&g.curve, quantile)),
                self.groups.time.each_ref().map(|g| interval::mean_event_time_at(&g.curve, horizon, quantile)),
                ByEstimand::default(),
            ),
        };
        let (s, m) = (ByArm::of(|z| self.cure_probability(z)), ByArm::of(|z| self.mean_event_time(z)));
        let of = &cure_probability;
        let cure = interval::difference(s.treated, &of.treated, s.control, &of.control, correlation.cure);
        let time = match (m.control, &mean_event_time.control, m.treated, &mean_event_time.treated) {
            (Some(c), Some(of_c), Some(t), Some(of_t)) => {
                Some(interval::difference(t, of_t, c, of_c, correlation.time))
            }
            _ => None,
        };
        Intervals { cure, time, cure_probability, mean_event_time }
    }

    /// Whether a flag applies.
    pub fn has(&self, flag: Flag) -> bool {
        match flag {
            Flag::CureCarriedForward(z) => self.groups.cure[z].curve.carried_forward(),
            Flag::TimeCarriedForward(z) => self.groups.time[z].curve.carried_forward(),
            Flag::NoEvent(z) => self.groups.time[z].curve.n_events == 0,
            Flag::FewAtRisk(z) => self.groups.cure[z].curve.thin || self.groups.time[z].curve.thin,
            Flag::NoTimeInterval(z) => {
                let curve = &self.groups.time[z].curve;
                let is_known = curve.mean_event_time_se().is_some() && curve.least_spread().is_some();
                self.corrected.is_none() && curve.n_events > 0 && !is_known
            }
        }
    }

    /// The flags that apply.
    pub fn flags(&self) -> impl Iterator<Item = Flag> + '_ {
        Flag::ALL.into_iter().filter(|f| self.has(*f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survival::Summary;

    /// Intervals that are computed together equal those computed alone, bit for bit: with events, without, and
    /// corrected.
    #[test]
    fn intervals_at_once_are_those_one_by_one() {
        let curve =
            |events: usize| Summary::of_sorted((0..20).map(|i| (10.0 + f64::from(i), (i as usize) < events)), 20, 25.0);
        let group = |events: usize| GroupEstimate { curve: curve(events), diameter: 1.0 };
        let groups = |cure: [usize; 2], time: [usize; 2]| ByEstimand {
            cure: ByArm::from(cure).map(group),
            time: ByArm::from(time).map(group),
        };
        let spread = Spread { variance: ByArm { control: 0.2, treated: 0.1 }, covariance: 0.03 };
        let corrected = Corrected {
            cure_probability: ByArm { control: 0.4, treated: 0.6 },
            mean_event_time: ByArm { control: 11.0, treated: 12.5 },
            spread: ByEstimand { cure: spread, time: spread },
            ..Corrected::NOTHING
        };
        for groups in [groups([7, 4], [5, 9]), groups([0, 3], [0, 2]), groups([2, 20], [1, 20])] {
            for corrected in [None, Some(corrected)] {
                let e = Effect { groups, corrected };
                let all = e.intervals(25.0, 0.9);
                assert_eq!(all.cure, e.cure_interval(0.9));
                assert_eq!(all.time, e.time_interval(25.0, 0.9));
                for z in Arm::BOTH {
                    assert_eq!(all.cure_probability[z], e.cure_probability_interval(z, 0.9));
                    assert_eq!(all.mean_event_time[z], e.mean_event_time_interval(z, 25.0, 0.9));
                }
            }
        }
    }
}
