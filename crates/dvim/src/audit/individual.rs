//! How the effects of single patients are spread, and of how many the data say more than chance would.
//!
//! The interval of one patient's effect is that of the groups behind it. Where there is no effect at all, a share of
//! about one less the confidence level of the intervals excludes zero all the same; counts are to be read against that.

use crate::analysis::Analysis;
use crate::effect::Effect;
use crate::interval::{Interval, two_sided};
use rayon::prelude::*;

/// The shares at which [`Spread::quantiles`] are taken.
pub const QUANTILES: [f64; 7] = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99];

/// The estimates of one effect over patients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Units whose effect is defined.
    pub n_units: usize,
    /// Units whose effect is undefined.
    pub n_undefined: usize,
    /// Quantiles at [`QUANTILES`], by position.
    pub quantiles: [f64; 7],
    /// Units with an interval.
    pub n_with_interval: usize,
    /// Of these, intervals wholly below zero.
    pub n_below: usize,
    /// Of these, intervals wholly above zero.
    pub n_above: usize,
}

impl Spread {
    /// A count as a share of the units with an interval; `None` where there is none.
    pub fn share(&self, count: usize) -> Option<f64> {
        (self.n_with_interval > 0).then(|| count as f64 / self.n_with_interval as f64)
    }
}

/// Both effects together.
#[derive(Clone, Debug, PartialEq)]
pub struct Individual {
    /// Cure; `None` where no unit is defined.
    pub cure: Option<Spread>,
    /// Time.
    pub time: Option<Spread>,
    /// Units by the signs of their two effects.
    pub quadrants: Quadrants,
    /// Units both of whose intervals exclude zero, by the signs of their two effects.
    pub certain: Quadrants,
}

/// Units by the signs of their two effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quadrants {
    /// Treatment cures more and delays events.
    pub more_later: usize,
    /// Treatment cures more and hastens events.
    pub more_sooner: usize,
    /// Treatment cures fewer and delays events.
    pub fewer_later: usize,
    /// Treatment cures fewer and hastens events.
    pub fewer_sooner: usize,
}

impl Quadrants {
    fn of(&mut self, cure: f64, time: f64) -> &mut usize {
        match (cure > 0.0, time > 0.0) {
            (true, true) => &mut self.more_later,
            (true, false) => &mut self.more_sooner,
            (false, true) => &mut self.fewer_later,
            (false, false) => &mut self.fewer_sooner,
        }
    }
}

impl Individual {
    /// Of the estimated units of a run.
    pub fn of(analysis: &Analysis, horizon: f64) -> Individual {
        let quantile = two_sided(analysis.fit.options.confidence);
        let found: Vec<[(Option<f64>, Option<Interval>); 2]> = analysis
            .effects
            .par_iter()
            .with_min_len(1024)
            .map(|e| {
                let of = e.intervals_at(horizon, quantile);
                [(Some(e.cure()), Some(of.cure)), (e.time(), of.time)]
            })
            .collect();
        let (mut quadrants, mut certain) = (Quadrants::default(), Quadrants::default());
        for [(cure, of_cure), (time, of_time)] in &found {
            if let (Some(cure), Some(time)) = (cure, time) {
                *quadrants.of(*cure, *time) += 1;
                let sure = |i: &Option<Interval>| i.is_some_and(|i| !i.covers(0.0));
                *certain.of(*cure, *time) += usize::from(sure(of_cure) && sure(of_time));
            }
        }
        let spread = |side: usize| spread(found.iter().map(|f| f[side]));
        let (cure, time) = rayon::join(|| spread(0), || spread(1));
        Individual { cure, time, quadrants, certain }
    }
}

fn spread(of: impl Iterator<Item = (Option<f64>, Option<Interval>)>) -> Option<Spread> {
    let (mut values, mut n_undefined, mut n_with_interval, mut n_below, mut n_above) = (Vec::new(), 0, 0, 0, 0);
    for (value, interval) in of {
        let Some(value) = value else {
            n_undefined += 1;
            continue;
        };
        values.push(value);
        if let Some(i) = interval {
            n_with_interval += 1;
            n_below += usize::from(i.high < 0.0);
            n_above += usize::from(i.low > 0.0);
        }
    }
    (!values.is_empty()).then(|| Spread {
        n_units: values.len(),
        n_undefined,
        quantiles: super::balance::quantiles(&values, QUANTILES),
        n_with_interval,
        n_below,
        n_above,
    })
}

/// Three patients to look at in full: those at the 10, 50 and 90 % quantiles of the cure effect, among units without a
/// flag (or among all, where each has one). Positions in [`Analysis::units`], fewer where units are fewer.
pub fn examples(analysis: &Analysis) -> Vec<usize> {
    let mut order: Vec<usize> = (0..analysis.effects.len()).collect();
    if order.iter().any(|&q| is_plain(&analysis.effects[q])) {
        order.retain(|&q| is_plain(&analysis.effects[q]));
    }
    let cure = |q: usize| analysis.effects[q].cure();
    order.sort_by(|&a, &b| cure(a).total_cmp(&cure(b)).then(a.cmp(&b)));
    let last = order.len().saturating_sub(1) as f64;
    let mut out: Vec<usize> =
        [0.1, 0.5, 0.9].iter().filter_map(|p| order.get((last * p).round() as usize).copied()).collect();
    out.dedup();
    out
}

fn is_plain(effect: &Effect) -> bool {
    effect.flags().next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_counted_on_their_side() {
        let at = |low: f64, high: f64| Some(Interval { se: None, low, high });
        let found = spread(
            [
                (Some(1.0), at(0.5, 2.0)),
                (Some(-1.0), at(-2.0, -0.5)),
                (Some(0.1), at(-1.0, 1.0)),
                (None, None),
                (Some(3.0), None),
            ]
            .into_iter(),
        )
        .unwrap();
        assert_eq!((found.n_units, found.n_undefined, found.n_with_interval), (4, 1, 3));
        assert_eq!((found.n_below, found.n_above), (1, 1));
        assert_eq!(found.quantiles[0], -1.0);
        assert_eq!(found.quantiles[6], 3.0);
    }
}
