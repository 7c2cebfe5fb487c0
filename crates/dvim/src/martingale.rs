//! What a unit's outcome says beyond the curve that a model expected of it.
//!
//! In the unit's own arm let `S(u) = s + (1 − s)(1 − F(u)/F(H))` be the curve expected of it (s the probability of
//! cure, F the latency of the model), G the censoring curve, M the martingale of its counting process under S. Then
//!
//! `ρ_S = −s ∫₀^Y dM(u) / {S(u) G(u)}`,
//! `ρ_m = −∫₀^Y {L(u) + (m − u) s/(1 − s)} dM(u) / {S(u) G(u)}`,  `L(u) = ∫_u^H (1 − F(t)/F(H)) dt`,
//!
//! have mean `S_true(H) − S(H)` and, to first order, `m_true − m` (and `ρ_S(t)`, up to `Y ∧ t`, likewise at any time)
//! if G is right, given the arm or the covariates: the residual
//! parts of the efficient influence functions of S(H) and of `m = E[T | T < H]` [Robins & Rotnitzky 1992; Bai, Tsiatis
//! & O'Brien 2013]. The second is the first-order change of `m = (∫₀ᴴ S − H S(H))/(1 − S(H))`: `A(u) + (m − H) S(H)`
//! over `1 − S(H)` with `A(u) = ∫_u^H S`, in which H drops out. Averages with correct intervals are made of them
//! ([`crate::audit`]).

use crate::curve::{CELLS, Grid};
use crate::nuisance::LossOfUnit;
use crate::outcome::{ALONE, Outcome};
use crate::survival::{SurvivalCurve, Watched};

/// Parts of a cell of the grid in which G counts as constant; all else is exact.
const PARTS: usize = 2;

/// The residuals of one unit in its own arm.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Residual {
    /// ρ_S at H.
    pub cure: f64,
    /// ρ_m.
    pub time: f64,
    /// ρ_S at each knot after 0.
    pub survival: [f32; CELLS],
}

impl Residual {
    /// So many times the residual.
    pub(crate) fn times(self, factor: f64) -> Residual {
        Residual::sum(&[(factor, self)])
    }

    /// A sum of residuals, each so many times.
    fn sum(of: &[(f64, Residual)]) -> Residual {
        let sum = |f: &dyn Fn(&Residual) -> f64| of.iter().map(|(w, r)| w * f(r)).sum::<f64>();
        Residual {
            cure: sum(&|r| r.cure),
            time: sum(&|r| r.time),
            survival: std::array::from_fn(|k| sum(&|r| f64::from(r.survival[k])) as f32),
        }
    }

    /// The mean of residuals.
    pub(crate) fn mean(all: &[Residual]) -> Residual {
        let n = all.len() as f64;
        let of = |f: &dyn Fn(&Residual) -> f64| all.iter().map(f).sum::<f64>() / n;
        Residual {
            cure: of(&|r| r.cure),
            time: of(&|r| r.time),
            survival: std::array::from_fn(|k| of(&|r| f64::from(r.survival[k])) as f32),
        }
    }
}

/// The censoring curve of an arm on a grid of times.
#[derive(Clone, Debug)]
pub struct Censoring {
    grid: Grid,
    /// 1/G in the middle of each part of each cell.
    inverse: [[f64; PARTS]; CELLS],
    /// No weight is larger than this.
    largest: f64,
    watched: Watched,
}

impl Censoring {
    /// From the times of an arm's units and whether each was lost before the horizon; G is never taken below
    /// `smallest`.
    pub fn new(time: &[f64], lost: &[bool], grid: Grid, smallest: f64) -> Censoring {
        Censoring::of(Watched::of_censoring(&SurvivalCurve::new(time, lost)), grid, smallest)
    }

    /// From the share of an arm's units that is watched at each time.
    pub fn of(watched: Watched, grid: Grid, smallest: f64) -> Censoring {
        let middle = |k: usize, j: usize| grid.times()[k] + grid.width(k) * (j as f64 + 0.5) / PARTS as f64;
        let inverse =
            std::array::from_fn(|k| std::array::from_fn(|j| 1.0 / watched.before(middle(k, j)).max(smallest)));
        Censoring { grid, inverse, largest: 1.0 / smallest, watched }
    }

    /// 1/G(t−).
    pub fn inverse_before(&self, t: f64) -> f64 {
        let share = self.watched.before(t);
        // Nobody is watched, and an empty sum is −0.
        if share > 0.0 { (1.0 / share).min(self.largest) } else { self.largest }
    }

    /// The residuals of a unit of which more is known than a time and an event. They are linear in what is seen of it:
    /// a unit that entered late is followed from then on only; one that had an event of another cause at C stays at
    /// risk until the horizon with the share of those who are still watched [Fine & Gray 1999], which in what is
    /// divided by that share is the weight that it had at C. Of `everybody` nobody is lost.
    pub(crate) fn residual_of(
        &self,
        everybody: &Censoring,
        loss: Option<LossOfUnit<'_>>,
        cured: f64,
        shares: &[f64; CELLS + 1],
        outcome: &Outcome,
    ) -> Residual {
        let at = |of: &Censoring, time: f64, event: bool| of.residual(cured, shares, time, event);
        let seen = self.residual_under(loss, cured, shares, outcome.time, outcome.event);
        if outcome.entry <= 0.0 && !outcome.competing {
            return seen;
        }
        let mut parts = vec![(1.0, seen)];
        if outcome.entry > 0.0 {
            parts.push((-1.0, at(self, outcome.entry, false)));
        }
        if outcome.competing {
            let weight = self.inverse_before(outcome.time);
            parts.push((weight, at(everybody, self.grid.horizon(), false)));
            parts.push((-weight, at(everybody, outcome.time, false)));
        }
        Residual::sum(&parts)
    }

    /// The residuals of a unit with this outcome under a curve: `cured` is its probability of being event-free at H,
    /// and `shares` are the shares of its events before H that come by each knot, from 0 to 1.
    pub fn residual(&self, cured: f64, shares: &[f64; CELLS + 1], time: f64, event: bool) -> Residual {
        self.residual_under(None, cured, shares, time, event)
    }

    /// [`Censoring::residual`] of a unit that is lost as its covariates say, where they matter.
    fn residual_under(
        &self,
        loss: Option<LossOfUnit<'_>>,
        cured: f64,
        shares: &[f64; CELLS + 1],
        time: f64,
        event: bool,
    ) -> Residual {
        let (grid, s) = (&self.grid, cured.clamp(SMALLEST, 1.0 - SMALLEST));
        let beyond = |share: f64| 1.0 - share;
        // L at the knots, from the right.
        let mut area = [0.0; CELLS + 1];
        for k in (0..CELLS).rev() {
            area[k] = area[k + 1] + 0.5 * (beyond(shares[k]) + beyond(shares[k + 1])) * grid.width(k);
        }
        let (odds, m) = (s / (1.0 - s), area[0]);
        let survival = |share: f64| s + (1.0 - s) * beyond(share);
        // Two integrands: 1 (times S at the end), and that of ρ_m.
        let (mut plain, mut mean) = (0.0, 0.0);
        let mut of_knots = [0.0; CELLS];
        // An event at time zero comes just after it.
        let time = time.clamp(1e-9 * grid.times()[1], grid.horizon());
        for k in 0..CELLS {
            let (from, to, width) = (grid.times()[k], grid.times()[k + 1], grid.width(k));
            if time > from {
                let slope = (shares[k + 1] - shares[k]) / width;
                let share = |u: f64| shares[k] + slope * (u - from);
                // L(u) = L(to) + ∫_u^to (1 − F), exactly.
                let left = |u: f64| area[k + 1] + (to - u) * (1.0 - 0.5 * (share(u) + shares[k + 1]));
                let factor = |u: f64| left(u) + (m - u) * odds;
                let (mut start, mut at_start, mut from_start) = (from, survival(shares[k]), factor(from));
                for (j, of_arm) in self.inverse[k].iter().enumerate() {
                    let middle = || from + width * (j as f64 + 0.5) / PARTS as f64;
                    let inverse = loss.map_or(*of_arm, |l| l.inverse(middle()).min(self.largest));
                    // The last part ends at Y.
                    let end = (from + width * (j as f64 + 1.0) / PARTS as f64).min(time);
                    if end <= start {
                        break;
                    }
                    let (at_end, from_end) = (survival(share(end)), factor(end));
                    // ∫ dΛ/S = ∫ d(1/S), and by parts ∫ g d(1/S) with g' = −S/(1 − s).
                    plain += (1.0 / at_end - 1.0 / at_start) * inverse;
                    mean += (from_end / at_end - from_start / at_start + (end - start) / (1.0 - s)) * inverse;
                    (start, at_start, from_start) = (end, at_end, from_end);
                }
                if event && time <= to {
                    let watched = loss.map_or_else(|| self.inverse_before(time), |l| l.inverse(time).min(self.largest));
                    let weight = watched / survival(share(time));
                    plain -= weight;
                    mean -= weight * factor(time);
                }
            }
            of_knots[k] = survival(shares[k + 1]) * plain;
        }
        Residual { cure: s * plain, time: mean, survival: of_knots.map(|x| x as f32) }
    }
}

/// How an arm whose units enter late is watched.
///
/// A unit with covariates x was seen at all with probability `β(x) = P(T > E | x)`, E its entry, and at u it is at risk
/// with probability `S(u | x) A(u)/β(x)`, where `A(u) = P(E < u ≤ C)`, if entry and censoring depend on the arm alone.
/// So `A(u)/β(x)` stands in the place of G(u). Entries are those of the arm, each as often as `1/S(E | x)`, since so
/// many were not seen; `A(u)` is the weight at risk over `Σ S(u | x)/β(x)`. With other causes S is event-free survival
/// of any cause, by the ratio of the arm's curves.
#[derive(Clone, Debug)]
pub struct Entries {
    /// A in the place of G.
    pub censoring: Censoring,
    /// Shares of the entries at the knots, times that ratio.
    shares: [f64; CELLS + 1],
}

impl Entries {
    /// From the outcomes of an arm's units, and for each the probability of being without the event at every knot.
    pub fn of(units: &[(Outcome, [f64; CELLS + 1])], grid: &Grid, smallest: f64) -> Entries {
        let curve = |any: bool| {
            let of = |u: &Outcome| match any {
                true => Outcome { event: u.event || u.competing, competing: false, cluster: ALONE, ..*u },
                false => Outcome { cluster: ALONE, ..*u },
            };
            SurvivalCurve::of_outcomes(units.iter().map(|(u, _)| of(u)).collect())
        };
        let ratio = if units.iter().any(|(u, _)| u.competing) {
            let (any, own) = (curve(true), curve(false));
            grid.times().map(|t| (any.before(t) / own.before(t).max(SMALLEST)).clamp(SMALLEST, 1.0))
        } else {
            [1.0; CELLS + 1]
        };
        let free: Vec<[f64; CELLS + 1]> =
            units.iter().map(|(_, s)| std::array::from_fn(|k| (s[k] * ratio[k]).max(SMALLEST))).collect();
        let mut shares = [0.0; CELLS + 1];
        for ((u, _), free) in units.iter().zip(&free) {
            let mass = u.weight / grid.interpolate(free, u.entry).max(smallest);
            let (cell, into) = grid.place(u.entry);
            shares[cell] += (1.0 - into) * mass;
            shares[cell + 1] += into * mass;
        }
        let all: f64 = shares.iter().sum();
        let shares: [f64; CELLS + 1] = std::array::from_fn(|k| shares[k] / all * ratio[k]);
        let seen: Vec<f64> = units.iter().map(|(_, s)| chance(&shares, s)).collect();
        let mut steps = Vec::with_capacity(PARTS * CELLS);
        for (k, j) in (0..CELLS).flat_map(|k| (0..PARTS).map(move |j| (k, j))) {
            let at = |part: f64| grid.times()[k] + grid.width(k) * part / PARTS as f64;
            let middle = at(j as f64 + 0.5);
            let is_at_risk = |u: &Outcome| u.entry < middle && middle <= u.time;
            let at_risk: f64 = units.iter().filter(|(u, _)| is_at_risk(u)).map(|(u, _)| u.weight).sum();
            let free = units.iter().zip(&free).zip(&seen);
            let expected: f64 = free.map(|((u, f), seen)| u.0.weight * grid.interpolate(f, middle) / seen).sum();
            steps.push((at(j as f64), at_risk / expected.max(f64::MIN_POSITIVE)));
        }
        Entries { censoring: Censoring::of(Watched::of_steps(steps), *grid, smallest), shares }
    }

    /// β of a unit with these probabilities of being without the event at the knots.
    pub fn chance(&self, without_event: &[f64; CELLS + 1]) -> f64 {
        chance(&self.shares, without_event)
    }
}

fn chance(shares: &[f64; CELLS + 1], without_event: &[f64; CELLS + 1]) -> f64 {
    shares.iter().zip(without_event).map(|(a, b)| a * b).sum::<f64>().max(SMALLEST)
}

/// Probabilities of cure are kept so far from 0 and 1: a weight is never above a thousand.
const SMALLEST: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: &Residual, b: &Residual) {
        assert!((a.cure - b.cure).abs() < 1e-9 && (a.time - b.time).abs() < 1e-6, "{a:?} {b:?}");
    }

    /// Event times that are even on (0, 10).
    fn even() -> (Grid, [f64; CELLS + 1]) {
        let grid = Grid::new(10.0);
        let shares = grid.times().map(|t| t / 10.0);
        (grid, shares)
    }

    /// Who enters at 0 is watched from the start; who enters at Y has nothing to tell; and what is told before and
    /// after an entry is all that is told.
    #[test]
    fn residuals_go_from_entry_to_exit() {
        let (grid, shares) = even();
        let of = Censoring::new(&[3.0, 6.0, 10.0], &[true, false, false], grid, 0.05);
        let at = |entry: f64, time: f64, event: bool| {
            of.residual_of(&of, None, 0.3, &shares, &Outcome { entry, ..Outcome::plain(time, event) })
        };
        assert_eq!(at(0.0, 7.0, true), of.residual(0.3, &shares, 7.0, true));
        close(&at(7.0, 7.0, false), &Residual::default());
        let both = Residual::sum(&[(1.0, at(0.0, 4.0, false)), (1.0, at(4.0, 7.0, true))]);
        close(&both, &at(0.0, 7.0, true));
    }

    /// Where nobody is lost a unit that had another event is one that reached the horizon.
    #[test]
    fn another_cause_is_no_event_until_the_horizon() {
        let (grid, shares) = even();
        let of = Censoring::new(&[10.0], &[false], grid, 0.05);
        let other = Outcome { competing: true, ..Outcome::plain(4.0, false) };
        close(&of.residual_of(&of, None, 0.3, &shares, &other), &of.residual(0.3, &shares, 10.0, false));
    }

    /// An event after the middle of the part of a cell in which it is the last: nobody is left at risk there.
    #[test]
    fn the_last_event_has_a_finite_weight() {
        let (grid, shares) = even();
        let units: Vec<_> = (1..10)
            .map(|i| Outcome { entry: 0.1, ..Outcome::plain(f64::from(i) + 0.95, true) })
            .map(|u| (u, shares.map(|share| 1.0 - 0.999 * share)))
            .collect();
        let entries = Entries::of(&units, &grid, 0.05);
        for (u, _) in &units {
            let r = entries.censoring.residual_of(&entries.censoring, None, 0.001, &shares, u);
            assert!(r.cure.is_finite() && r.time.is_finite() && r.cure.abs() < 100.0, "{u:?} {r:?}");
        }
    }

    /// Ten thousand event times that are even on (0, 10), 30 % cured; entries even on (0, 8), so that those who had the
    /// event before are not seen. The mean of the residuals of the seen, each β/A times, is 0 under the right curve and
    /// the difference under another.
    #[test]
    fn late_entry_leaves_no_bias() {
        let (grid, shares) = even();
        let n = 10_000;
        let part = |i: usize, by: usize| ((i * by) % n) as f64 / n as f64 + 0.5 / n as f64;
        let all = (0..n).map(|i| {
            let time = if i % 10 < 3 { 20.0 } else { 10.0 * part(i, 7_919) };
            (time, 8.0 * part(i, 3_571))
        });
        let seen: Vec<Outcome> = all
            .filter(|(time, entry)| time > entry)
            .map(|(time, entry)| Outcome { entry, ..Outcome::plain(time.min(10.0), time < 10.0) })
            .collect();
        let without_event = |cured: f64| shares.map(|share| 1.0 - (1.0 - cured) * share);
        let entries = Entries::of(&seen.iter().map(|u| (*u, without_event(0.3))).collect::<Vec<_>>(), &grid, 0.01);
        // Of those who could be watched at u: entries before u.
        assert!((entries.censoring.watched.before(4.0) - 0.5).abs() < 0.05);
        // β = E S(E) = 1 − 0.7 · 0.4.
        assert!((entries.chance(&without_event(0.3)) - 0.72).abs() < 0.01);
        let mean = |cured: f64| {
            let chance = entries.chance(&without_event(0.3));
            let of = |u: &Outcome| entries.censoring.residual_of(&entries.censoring, None, cured, &shares, u).cure;
            seen.iter().map(of).sum::<f64>() * chance / seen.len() as f64
        };
        assert!(mean(0.3).abs() < 0.01, "{}", mean(0.3));
        assert!((mean(0.4) + 0.1).abs() < 0.015, "{}", mean(0.4));
        // Followed from zero, as if everybody had been seen, the residuals say that more are cured.
        let naive = |u: &Outcome| entries.censoring.residual(0.3, &shares, u.time, u.event).cure;
        assert!(seen.iter().map(naive).sum::<f64>() / seen.len() as f64 > 0.03);
    }
}
