//! The share of an arm that is watched at a time, whatever its event times: entered, and not yet lost.

use super::SurvivalCurve;
use crate::outcome::{ALONE, Outcome};

/// How likely a unit of an arm is to be watched at each time. Without delayed entry it is the censoring curve G; with
/// it, up to a factor, the weight at risk over the curve of all causes: those at risk are those who are event-free and
/// watched.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// Times, ascending, and the share after each.
    steps: Vec<(f64, f64)>,
    first: f64,
}

impl Watched {
    /// From a censoring curve.
    pub fn of_censoring(curve: &SurvivalCurve) -> Watched {
        Watched { steps: curve.steps().iter().map(|s| (s.time, s.survival)).collect(), first: 1.0 }
    }

    /// The times, ascending, and the share after each, of units that are watched from the start.
    pub(crate) fn into_steps(self) -> Vec<(f64, f64)> {
        self.steps
    }

    /// From the shares after these times, ascending, of units that are all watched from the start.
    pub(crate) fn of_lost(steps: Vec<(f64, f64)>) -> Watched {
        Watched { steps, first: 1.0 }
    }

    /// From shares that hold after each of these times, ascending.
    pub fn of_steps(steps: Vec<(f64, f64)>) -> Watched {
        let first = steps.first().map_or(1.0, |s| s.1);
        Watched { steps, first }
    }

    /// From the outcomes of an arm. An event of another cause is no censoring, nor is reaching the horizon.
    pub fn of(outcomes: &[Outcome], horizon: f64) -> Watched {
        let bare = |u: &Outcome| Outcome { cluster: ALONE, competing: false, ..*u };
        if outcomes.iter().all(|u| u.entry <= 0.0) {
            let lost = |u: &Outcome| Outcome { event: !u.event && !u.competing && u.time < horizon, ..bare(u) };
            return Watched::of_censoring(&SurvivalCurve::of_outcomes(outcomes.iter().map(lost).collect()));
        }
        let any = |u: &Outcome| Outcome { event: u.event || u.competing, ..bare(u) };
        let free = SurvivalCurve::of_outcomes(outcomes.iter().map(any).collect());
        // Weights of those with a time, or an entry, of at least t.
        let from_the_last = |mut all: Vec<(f64, f64)>| {
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut sum = 0.0;
            for (_, w) in all.iter_mut().rev() {
                sum += *w;
                *w = sum;
            }
            all
        };
        let by_time = from_the_last(outcomes.iter().map(|u| (u.time, u.weight)).collect());
        let by_entry = from_the_last(outcomes.iter().map(|u| (u.entry, u.weight)).collect());
        let since = |all: &[(f64, f64)], t: f64| all.get(all.partition_point(|u| u.0 < t)).map_or(0.0, |u| u.1);
        let total = by_time.first().map_or(1.0, |u| u.1);
        let mut steps: Vec<(f64, f64)> = Vec::new();
        let (mut before, mut share) = (0.0, None);
        for step in free.steps() {
            let survival = free.before(step.time);
            let at_risk = (since(&by_time, step.time) - since(&by_entry, step.time)).max(0.0) / total;
            // Where the curve has fallen to zero nothing is known: what was known holds.
            share = if survival > 0.0 && at_risk > 0.0 { Some(at_risk / survival) } else { share };
            steps.extend(share.map(|share| (before, share)));
            before = step.time;
        }
        Watched::of_steps(steps)
    }

    /// The share just before `t`.
    pub fn before(&self, t: f64) -> f64 {
        let passed = self.steps.partition_point(|s| s.0 < t);
        if passed == 0 { self.first } else { self.steps[passed - 1].1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six units, two lost: without entry the share is the censoring curve, and so it is by the weight at risk.
    #[test]
    fn without_entry_it_is_the_censoring_curve() {
        let of = |time: f64, event: bool, competing: bool| Outcome { competing, ..Outcome::plain(time, event) };
        let all = [
            of(1.0, true, false),
            of(2.0, false, false),
            of(3.0, false, true),
            of(4.0, false, false),
            of(5.0, true, false),
            of(9.0, false, false),
        ];
        let plain = Watched::of(&all, 9.0);
        // An entry so early that it keeps nobody out.
        let late = all.map(|u| Outcome { entry: 0.5, ..u });
        let by_risk = Watched::of(&late, 9.0);
        for (t, expected) in [(1.5, 1.0), (2.5, 0.8), (3.5, 0.8), (4.5, 0.8 * 2.0 / 3.0), (8.0, 0.8 * 2.0 / 3.0)] {
            assert!((plain.before(t) - expected).abs() < 1e-12, "{t}: {}", plain.before(t));
            assert!((by_risk.before(t) - expected).abs() < 1e-12, "{t}: {}", by_risk.before(t));
        }
    }

    /// Half of the units enter at 2: before, half are watched.
    #[test]
    fn it_rises_with_entries() {
        let of = |time: f64, entry: f64| Outcome { entry, ..Outcome::plain(time, false) };
        let watched = Watched::of(&[of(5.0, 0.0), of(5.0, 2.0), of(5.0, 0.0), of(5.0, 2.0), of(1.0, 0.0)], 5.0);
        assert!((watched.before(0.5) - 0.6).abs() < 1e-12, "three of five, one of whom is lost at 1");
        assert!((watched.before(5.0) - 0.8).abs() < 1e-12);
    }
}
