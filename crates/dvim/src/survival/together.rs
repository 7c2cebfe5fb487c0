//! Curves of several groups side by side. Each is what [`Summary::of_sorted`] gives, bit for bit: the same operations
//! in the same order. Alone, a curve mostly waits: for a unit's outcome, for a division before the next can begin, for
//! a guess whether a unit has an event. Here several curves take a step at once, and nothing is guessed: where nothing
//! happens a product with 1 or a sum with 0 changes nothing.

use super::{Step, Summary, greenwood_term};
use crate::numeric::in_wide_registers;

const LANES: usize = Together::LANES;
type Each = [f64; LANES];

/// Groups of one size at one horizon.
pub struct Together {
    n: usize,
    horizon: f64,
    /// By the number r at risk: the share that one event leaves, and its term of Greenwood's sum (0 where it leaves
    /// nobody).
    one: Vec<(f64, f64)>,
}

/// Outcomes in order of time: times, with a minus sign where there is an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Signed(Vec<f64>);

impl Signed {
    /// Of times, none of them negative, and events.
    pub fn of(sorted: &[(f64, bool)]) -> Signed {
        Signed(sorted.iter().map(|&(time, event)| if event { -time } else { time }).collect())
    }

    #[inline(always)]
    fn of_each(&self, ranks: &[&[u32]; LANES], i: usize) -> Each {
        let mut each = [0.0; LANES];
        for lane in 0..LANES {
            each[lane] = self.0[ranks[lane][i] as usize];
        }
        each
    }
}

/// The curves so far.
#[derive(Default)]
struct Curves {
    survival: Each,
    event_area: Each,
    /// The area up to the last time, and that time.
    area: Each,
    from: Each,
    /// Numbers of events, and of units before the horizon.
    events: Each,
    passed: Each,
    /// West's (1979) sums, as in `Running::pass`: of Greenwood's terms, the mean of the areas under them and their
    /// spread.
    sum: Each,
    mean: Each,
    spread: Each,
}

impl Together {
    /// Curves that go side by side.
    pub const LANES: usize = 8;

    /// For groups of `n` units at horizon H.
    pub fn new(n: usize, horizon: f64) -> Together {
        Together { n, horizon, one: (0..=n).map(|r| share_and_term(1, r)).collect() }
    }

    /// The summaries of groups, given by the places of their units in the order of time, ascending; each has `n`.
    pub fn summaries(&self, outcomes: &Signed, groups: [&[u32]; LANES]) -> [Summary; LANES] {
        let groups = groups.map(|ranks| &ranks[..self.n]);
        let curves = pass(self, outcomes, &groups);
        std::array::from_fn(|lane| {
            let mut summary = Summary::nothing_seen(self.n - curves.passed[lane] as usize);
            summary.survival = curves.survival[lane];
            summary.event_free = curves.survival[lane];
            summary.event_area = curves.event_area[lane];
            summary.n_events = curves.events[lane] as usize;
            summary.greenwood = curves.sum[lane];
            summary.area_mean = curves.mean[lane];
            summary.area_spread = curves.spread[lane];
            summary
        })
    }
}

in_wide_registers!(fn pass = pass_plainly(of: &Together, outcomes: &Signed, groups: &[&[u32]; LANES]) -> Curves);

#[inline(always)]
fn pass_plainly(of: &Together, outcomes: &Signed, groups: &[&[u32]; LANES]) -> Curves {
    let mut curves = Curves { survival: [1.0; LANES], ..Curves::default() };
    let mut ahead = if of.n > 0 { outcomes.of_each(groups, 0) } else { [f64::INFINITY; LANES] };
    // Units before this one at its time, and events among them.
    let mut tied = [(0, 0); LANES];
    let mut any_tied = false;
    for i in 0..of.n {
        let now = ahead;
        ahead = if i + 1 < of.n { outcomes.of_each(groups, i + 1) } else { [f64::INFINITY; LANES] };
        let (mut any_live, mut ties) = (false, false);
        for lane in 0..LANES {
            let is_live = now[lane].abs() < of.horizon;
            any_live |= is_live;
            ties |= is_live & (now[lane].abs() == ahead[lane].abs());
        }
        if !any_live {
            break;
        }
        if !ties && !any_tied {
            let left = of.n - i;
            curves.step(&now, of.horizon, of.one[left], left);
            continue;
        }
        any_tied = false;
        for lane in 0..LANES {
            let time = now[lane].abs();
            if time < of.horizon {
                let (n_here, n_events) = &mut tied[lane];
                *n_here += 1;
                *n_events += usize::from(now[lane].is_sign_negative());
                if time == ahead[lane].abs() {
                    any_tied = true;
                } else {
                    curves.step_of_one(lane, time, *n_events, of.n - (i + 1 - *n_here), *n_here);
                    tied[lane] = (0, 0);
                }
            }
        }
    }
    curves
}

/// What `d` events among `r` at risk leave, and their term of Greenwood's sum.
fn share_and_term(d: usize, r: usize) -> (f64, f64) {
    let step = Step { time: 0.0, n_at_risk: r, n_events: d, n_competing: 0, n_censored: 0, survival: f64::NAN };
    (r.saturating_sub(d) as f64 / r as f64, if r > d { greenwood_term(&step) } else { 0.0 })
}

impl Curves {
    /// Each passes one unit, with `left` at risk, whose time nobody else has.
    #[inline(always)]
    fn step(&mut self, now: &Each, horizon: f64, (share, term): (f64, f64), left: usize) {
        let term = if left > 1 { term } else { 0.0 };
        for (lane, now) in now.iter().enumerate() {
            let time = now.abs();
            let is_live = time < horizon;
            let is_event = is_live & now.is_sign_negative();
            let area = self.area[lane] + self.survival[lane] * (time - self.from[lane]);
            let survival = self.survival[lane] * if is_event { share } else { 1.0 };
            self.event_area[lane] += time * (self.survival[lane] - survival);
            self.survival[lane] = survival;
            self.area[lane] = if is_live { area } else { self.area[lane] };
            self.from[lane] = if is_live { time } else { self.from[lane] };
            self.passed[lane] += if is_live { 1.0 } else { 0.0 };
            self.events[lane] += if is_event { 1.0 } else { 0.0 };
            let (sum, off) = (self.sum[lane] + term, area - self.mean[lane]);
            let mean = self.mean[lane] + off * term / sum;
            let spread = self.spread[lane] + self.sum[lane] * term / sum * off * off;
            let counts = is_event & (term > 0.0);
            self.mean[lane] = if counts { mean } else { self.mean[lane] };
            self.spread[lane] = if counts { spread } else { self.spread[lane] };
            self.sum[lane] = if counts { sum } else { self.sum[lane] };
        }
    }

    /// One of them passes `n_here` units of one time before the horizon.
    fn step_of_one(&mut self, lane: usize, time: f64, n_events: usize, left: usize, n_here: usize) {
        self.area[lane] += self.survival[lane] * (time - self.from[lane]);
        self.from[lane] = time;
        self.passed[lane] += n_here as f64;
        self.events[lane] += n_events as f64;
        if n_events == 0 {
            return;
        }
        let (share, term) = share_and_term(n_events, left);
        let survival = self.survival[lane] * share;
        self.event_area[lane] += time * (self.survival[lane] - survival);
        self.survival[lane] = survival;
        if left > n_events {
            let (sum, off) = (self.sum[lane] + term, self.area[lane] - self.mean[lane]);
            self.mean[lane] += off * term / sum;
            self.spread[lane] += self.sum[lane] * term / sum * off * off;
            self.sum[lane] = sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Side by side they are what each is alone, in every bit: ties, times at and beyond the horizon, curves that
        /// end at 0.
        #[test]
        fn curves_side_by_side(
            n in 0_usize..70,
            groups in prop::collection::vec(
                prop::collection::vec((prop_oneof![8 => 0.1_f64..12.0, 1 => (0_u8..12).prop_map(f64::from)], any::<bool>()), 70), 1..20),
            // Hardly any ties, or hardly a time without.
            is_coarse: bool,
            events in prop_oneof![Just(None), Just(Some(true)), Just(Some(false))],
        ) {
            let horizon = 10.0;
            let together = Together::new(n, horizon);
            // All outcomes in one order of time, and each group by its places in it.
            let mut all: Vec<((f64, bool), usize)> = groups.iter().enumerate().flat_map(|(g, group)| {
                let time = |t: f64| if is_coarse { t.round().min(horizon) } else { t.min(horizon) };
                group[..n].iter().map(move |&(t, e)| ((time(t), events.unwrap_or(e) && time(t) < horizon), g))
            }).collect();
            all.sort_by(|a, b| a.0.0.total_cmp(&b.0.0));
            let sorted: Vec<(f64, bool)> = all.iter().map(|x| x.0).collect();
            let ranks: Vec<Vec<u32>> = (0..groups.len())
                .map(|g| (0..all.len() as u32).filter(|&r| all[r as usize].1 == g).collect()).collect();
            let expected: Vec<Summary> = ranks.iter()
                .map(|r| Summary::of_sorted(r.iter().map(|&r| sorted[r as usize]), n, horizon)).collect();
            let signed = Signed::of(&sorted);
            let found: Vec<Summary> = ranks.chunks(LANES).flat_map(|some| {
                let found = together.summaries(&signed, std::array::from_fn(|lane| &some[lane.min(some.len() - 1)][..]));
                found.into_iter().take(some.len())
            }).collect();
            let bits = |s: &Summary| [s.survival, s.event_area, s.greenwood, s.area_mean, s.area_spread, s.event_free].map(f64::to_bits);
            prop_assert_eq!(found.iter().map(bits).collect::<Vec<_>>(), expected.iter().map(bits).collect::<Vec<_>>());
            prop_assert_eq!(found, expected);
        }
    }
}
