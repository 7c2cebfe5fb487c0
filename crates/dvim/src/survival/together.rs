//! Curves of several groups side by side. Each is what [`Summary::of_sorted`] gives, bit for bit: the same operations in
//! the same order. Alone, a curve mostly waits, for a division before the next can begin and for a guess whether a unit has an
//! event; here the divisions of several curves run at once, and nothing is guessed: where nothing happens a product with
//! 1 or a sum with 0 changes nothing.

use super::{Step, Summary, greenwood_term};

const LANES: usize = Together::LANES;

/// Room for the curves of one group of curves after the other.
#[derive(Default)]
pub struct Together {
    n: usize,
    horizon: f64,
    /// By r for no event and for one among r at risk: the share that is left, and the term of Greenwood's sum.
    up_to_one: Vec<[(f64, f64); 2]>,
    /// At each event of each curve that leaves somebody at risk: the term of Greenwood's sum, and the area before the event.
    terms: [Vec<(f64, f64)>; LANES],
    summaries: [Option<Summary>; LANES],
    n_terms: [usize; LANES],
    len: usize,
}

impl Together {
    /// Curves that go side by side.
    pub const LANES: usize = 4;

    /// For groups of `n` units at horizon H.
    pub fn new(n: usize, horizon: f64) -> Together {
        let of = |r: usize| {
            let step = Step { time: 0.0, n_at_risk: r, n_events: 1, n_competing: 0, n_censored: 0, survival: f64::NAN };
            let one = (r.saturating_sub(1) as f64 / r as f64, if r > 1 { greenwood_term(&step) } else { 0.0 });
            [(1.0, 0.0), one]
        };
        Together {
            n,
            horizon,
            up_to_one: (0..=n).map(of).collect(),
            terms: std::array::from_fn(|_| vec![(0.0, 0.0); n + 1]),
            ..Together::default()
        }
    }

    /// Takes a group of `n` units in order of time. Whether there is room for another.
    pub fn add(&mut self, sorted: impl Iterator<Item = (f64, bool)>) -> bool {
        let lane = self.len;
        let mut summary = Summary::nothing_seen(self.n);
        let (mut area, mut from, mut n_terms) = (0.0, 0.0, 0);
        let mut left = self.n;
        let terms = &mut self.terms[lane][..=self.n];
        let mut sorted = sorted.take(self.n);
        let mut ahead = sorted.next();
        while let Some((time, event)) = ahead.filter(|(t, _)| *t < self.horizon) {
            let (mut n_events, mut n_here) = (usize::from(event), 1);
            ahead = sorted.next();
            while let Some((_, e)) = ahead.filter(|(t, _)| *t == time) {
                n_events += usize::from(e);
                n_here += 1;
                ahead = sorted.next();
            }
            area += summary.survival * (time - from);
            from = time;
            let (share, term) = if n_events <= 1 {
                self.up_to_one[left][n_events]
            } else {
                let step = Step { time, n_at_risk: left, n_events, n_competing: 0, n_censored: 0, survival: 0.0 };
                ((left - n_events) as f64 / left as f64, if left > n_events { greenwood_term(&step) } else { 0.0 })
            };
            terms[n_terms] = (term, area);
            n_terms += usize::from(n_events > 0 && left > n_events);
            let survival = summary.survival * share;
            summary.event_area += time * (summary.survival - survival);
            summary.survival = survival;
            summary.n_events += n_events;
            left -= n_here;
        }
        summary.event_free = summary.survival;
        summary.n_at_risk = left;
        self.summaries[lane] = Some(summary);
        self.n_terms[lane] = n_terms;
        self.len += 1;
        self.len < LANES
    }

    /// The summaries of what was added, in its order; then it is empty.
    pub fn finish(&mut self) -> impl Iterator<Item = Summary> {
        let most = self.n_terms[..self.len].iter().copied().max().unwrap_or(0);
        for lane in 0..LANES {
            let from = if lane < self.len { self.n_terms[lane] } else { 0 };
            self.terms[lane][from..most.max(from)].fill((0.0, 0.0));
        }
        let (mut sums, mut means, mut spreads) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        let [a, b, c, d] = self.terms.each_ref().map(|terms| &terms[..most]);
        for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
            for (lane, &(g, area)) in [a, b, c, d].into_iter().enumerate() {
                // West's (1979) update, as in `Running::pass`. A term of 0 changes nothing unless all were.
                let (sum, off) = (sums[lane] + g, area - means[lane]);
                means[lane] += off * g / sum;
                spreads[lane] += sums[lane] * g / sum * off * off;
                sums[lane] = sum;
            }
        }
        let (n, n_terms) = (std::mem::take(&mut self.len), self.n_terms);
        let mut summaries = std::mem::take(&mut self.summaries);
        (0..n).filter_map(move |lane| {
            let mut summary = summaries[lane].take()?;
            if n_terms[lane] > 0 {
                (summary.greenwood, summary.area_mean, summary.area_spread) = (sums[lane], means[lane], spreads[lane]);
            }
            Some(summary)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Side by side they are what each is alone, in every bit: ties, times at and beyond the horizon, curves that end at 0.
        #[test]
        fn curves_side_by_side(
            n in 0_usize..70,
            groups in prop::collection::vec(
                prop::collection::vec((prop_oneof![0.1_f64..12.0, (1_u8..12).prop_map(f64::from)], any::<bool>()), 70), 1..9),
            events in prop_oneof![Just(None), Just(Some(true)), Just(Some(false))],
        ) {
            let horizon = 10.0;
            let mut together = Together::new(n, horizon);
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            for group in &groups {
                let mut sorted: Vec<(f64, bool)> =
                    group[..n].iter().map(|&(t, e)| (t.min(horizon), events.unwrap_or(e) && t < horizon)).collect();
                sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
                expected.push(Summary::of_sorted(sorted.iter().copied(), n, horizon));
                if !together.add(sorted.into_iter()) {
                    found.extend(together.finish());
                }
            }
            found.extend(together.finish());
            let bits = |s: &Summary| [s.survival, s.event_area, s.greenwood, s.area_mean, s.area_spread, s.event_free].map(f64::to_bits);
            prop_assert_eq!(found.iter().map(bits).collect::<Vec<_>>(), expected.iter().map(bits).collect::<Vec<_>>());
            prop_assert_eq!(found, expected);
        }
    }
}
