//! Outcomes that are more than a time and an event, as pieces of a likelihood.
//!
//! A unit's log-likelihood is a weighted sum over pieces, each of them a time with or without an event:
//!
//! - its own outcome, with its case weight w;
//! - delayed entry at e: less `w ln S(e)`, so that a piece without event at e has the weight −w;
//! - an event of another cause at C: the unit never has the event, and for how long it would have been watched is not
//!   known. As in Fine & Gray (1999) it stays at risk with the share `a(t) = A(t)/A(C)` of those who are watched: `w ln
//!   S(C) − w ∫_C^H a dΛ`. With a constant between knots that is a sum of pieces without event: `1 − a₁` at C, `aₖ −
//!   aₖ₊₁` at each knot and the last share at H. Without censoring all of it is at H. Geskus (2011) has the same
//!   weights for delayed entry.
//!
//! Case weights are scaled to `Σ w² = Σ w`: the sum is then the effective number of units [Kish 1965], so that the
//! prior sees as much information as there is.

use crate::arm::{Arm, ByArm};
use crate::cohort::Cohort;
use crate::survival::Watched;

/// Knots between which the share of the watched is taken to be constant: so many quantiles of the event times.
const KNOTS: usize = 8;
/// No unit is followed beyond another cause with more than this weight.
const LARGEST: f64 = 20.0;
/// Pieces below this weight are left out.
const SMALLEST: f64 = 1e-9;

/// A part of what is known of a unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Its time.
    pub time: f64,
    /// Whether it is that of the event.
    pub event: bool,
    /// How much it counts; negative at entry.
    pub weight: f64,
}

/// The pieces of every unit of a cohort.
#[derive(Clone, Debug, PartialEq)]
pub struct Pieces {
    all: Vec<Piece>,
    /// Where those of each unit begin, and their end.
    start: Vec<u32>,
    weight: Vec<f64>,
    /// The number of what each unit is independent with, where the information does not speak of variances alone:
    /// its cluster, or itself.
    of_cluster: Option<Vec<u32>>,
}

impl Pieces {
    /// The pieces of a cohort, whose arms are watched so; `None` where every unit is a time and an event.
    pub fn of(cohort: &Cohort, watched: &ByArm<Watched>) -> Option<Pieces> {
        let extras = cohort.extras();
        if extras.is_empty() {
            return None;
        }
        let n = cohort.n_units();
        let (sum, square) = (0..n).map(|i| cohort.weight(i)).fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
        let weight: Vec<f64> = (0..n).map(|i| cohort.weight(i) * sum / square).collect();
        let knots = ByArm::of(|arm| knots(cohort, arm));
        let (mut all, mut start) = (Vec::with_capacity(n), Vec::with_capacity(n + 1));
        for (i, &w) in weight.iter().enumerate() {
            start.push(all.len() as u32);
            let u = cohort.outcome(i);
            if u.competing {
                let arm = cohort.arm(i);
                let shares = beyond(u.time, &knots[arm], &watched[arm]);
                all.extend(shares.into_iter().map(|(time, share)| Piece { time, event: false, weight: w * share }));
            } else {
                all.push(Piece { time: u.time, event: u.event, weight: w });
            }
            if u.entry > 0.0 {
                all.push(Piece { time: u.entry, event: false, weight: -w });
            }
        }
        start.push(all.len() as u32);
        let one_by_one = extras.weight.is_some() || extras.competing.is_some();
        let itself = one_by_one.then(|| (0..n as u32).collect());
        Some(Pieces { all, start, weight, of_cluster: extras.cluster.clone().or(itself) })
    }

    /// The pieces of a unit.
    pub fn of_unit(&self, unit: usize) -> &[Piece] {
        &self.all[self.start[unit] as usize..self.start[unit + 1] as usize]
    }

    /// The weight of a unit.
    pub fn weight(&self, unit: usize) -> f64 {
        self.weight[unit]
    }

    /// What a unit is independent with.
    pub(super) fn cluster(&self, unit: usize) -> Option<u32> {
        Some(self.of_cluster.as_ref()?[unit])
    }
}

/// Quantiles of the event times of an arm, and the horizon.
fn knots(cohort: &Cohort, arm: Arm) -> Vec<f64> {
    let units = cohort.units_of(arm);
    let mut times: Vec<f64> =
        units.iter().map(|&i| i as usize).filter(|&i| cohort.event(i)).map(|i| cohort.time(i)).collect();
    times.sort_by(f64::total_cmp);
    let mut out: Vec<f64> = (1..=KNOTS).filter_map(|k| times.get(k * times.len() / (KNOTS + 1)).copied()).collect();
    out.push(cohort.horizon());
    out.dedup();
    out
}

/// Times without event and their shares of a unit that had an event of another cause at `time`. The last knot is the
/// horizon.
fn beyond(time: f64, knots: &[f64], watched: &Watched) -> Vec<(f64, f64)> {
    let now = watched.before(time).max(1.0 / LARGEST);
    let (mut out, mut from, mut share) = (Vec::new(), time, 1.0);
    for &to in knots.iter().filter(|k| **k > time) {
        let next = (watched.before(0.5 * (from + to)) / now).min(LARGEST);
        out.push((from, share - next));
        (from, share) = (to, next);
    }
    out.push((from, share));
    out.retain(|(_, share)| share.abs() > SMALLEST);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Watched by all until 4, by half until 8, by a quarter afterwards; knots at 5 and 10 and the horizon 12.
    #[test]
    fn another_cause_is_followed_as_long_as_it_would_have_been_watched() {
        let watched = Watched::of_steps(vec![(0.0, 1.0), (4.0, 0.5), (8.0, 0.25)]);
        let found: Vec<(f64, f64)> = beyond(1.0, &[5.0, 10.0, 12.0], &watched);
        // (1, 5] has its middle at 3: all; (5, 10] at 7.5: half; (10, 12] at 11: a quarter.
        assert_eq!(found, [(5.0, 0.5), (10.0, 0.25), (12.0, 0.25)]);
        let all: f64 = found.iter().map(|f| f.1).sum();
        assert!((all - 1.0).abs() < 1e-12);
        // Of a unit that left when half were watched.
        let found: Vec<(f64, f64)> = beyond(6.0, &[5.0, 10.0, 12.0], &watched);
        assert_eq!(found, [(10.0, 0.5), (12.0, 0.5)], "(6, 10] has its middle at 8, where half are watched");
        // Nobody is lost: cured, and nothing else.
        let everybody = Watched::of_steps(vec![(0.0, 1.0)]);
        assert_eq!(beyond(6.0, &[5.0, 10.0, 12.0], &everybody), [(12.0, 1.0)]);
    }
}
