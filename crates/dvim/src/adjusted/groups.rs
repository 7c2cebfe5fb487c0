//! Groups of the adjusted estimator: who is in them, how far they are from what the model expects, and what is made of that.

use super::{CURE, Choice, CrossFit, FoldModel, TIME};
use crate::cohort::{Arm, Cohort};
use crate::constraint::{Queries, Rules, Searched, Unserved};
use crate::effect::{ArmEstimate, Corrected, Effect, GroupEstimate, Pool, Spread};
use crate::joint::Prediction;
use crate::metric::{Metric, Scaling};
use crate::numeric::expit;
use rayon::prelude::*;

/// What groups are drawn from: the cohort, its standardised covariates, and who may be in a group.
pub(super) struct Place<'a> {
    pub(super) cohort: &'a Cohort,
    /// Standardised covariates, row-major.
    pub(super) x: Vec<f64>,
    pub(super) scaling: Scaling,
    pub(super) pools: [Pool; 2],
    pub(super) rules: Option<Rules>,
    /// A unit with fewer candidates in an arm is not served.
    pub(super) fewest: usize,
}

impl<'a> Place<'a> {
    pub(super) fn new(cohort: &'a Cohort, scaling: &Scaling, rules: Option<Rules>, fewest: usize) -> Place<'a> {
        let pools = Arm::BOTH.map(|z| Pool::new(cohort, cohort.units_of(z)));
        let x = scaling.apply(cohort.all_covariates());
        Place { cohort, x, scaling: scaling.clone(), pools, rules, fewest }
    }

    pub(super) fn p(&self) -> usize {
        self.cohort.n_covariates()
    }

    /// The standardised covariates of a unit.
    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.x[i * self.p()..(i + 1) * self.p()]
    }

    /// What a fold's model says of every unit of both pools, each in its own arm.
    pub(super) fn expected_by(&self, model: &FoldModel) -> [Vec<Expected>; 2] {
        [0, 1].map(|z| {
            let rows = self.pools[z].units.par_iter().map(|&i| self.row(i as usize));
            model.predictor.predict_arm(Arm::BOTH[z], rows).into_iter().map(Expected::of).collect()
        })
    }
}

/// What a model says of a unit of the pool in its own arm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) cured: f64,
    pub(super) mean_event_time: f64,
}

impl Expected {
    pub(super) fn of(p: Prediction) -> Expected {
        Expected { cured: p.cure_probability, mean_event_time: p.mean_event_time }
    }
}

/// What a group says, and what the model says of its members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offset {
    pub(super) group: GroupEstimate,
    /// `logit S̃_G − logit S̄_G` or `ln(m_G / m̄_G)`; 0 where the group has no event.
    pub(super) offset: f64,
    /// Variance of the offset that the group's curve brings.
    pub(super) variance: f64,
}

/// Variance of `logit S̃_G` given who the members are: `within/(n′ S̃ (1 − S̃))` with n′ the group's effective size, `G/(1 − S)²` with
/// Greenwood's sum G where that is defined. That is the variance of members drawn at random, of which only the share
/// `within = mean p_i (1 − p_i) / {p̄ (1 − p̄)}` is left when their probabilities of cure p_i are as the model says: the rest is how the members
/// differ, which the offset does not carry, because it compares them with the same p_i.
fn cure_variance(group: &GroupEstimate, smoothed: f64, within: f64) -> f64 {
    within / (group.curve.effective_size() * smoothed * (1.0 - smoothed))
}

/// Variance of `ln m_G`; below two events that of an exponential time.
fn time_variance(group: &GroupEstimate) -> f64 {
    match (group.curve.mean_event_time(), group.curve.mean_event_time_se()) {
        (Some(m), Some(se)) if m > 0.0 => (se / m) * (se / m),
        _ => 1.0,
    }
}

pub(super) fn logit(p: f64) -> f64 {
    p.ln() - (-p).ln_1p()
}

/// S_G drawn by half a unit towards the model, so that 0 and 1 have a logit.
fn smoothed(survival: f64, mean_model: f64, k: usize) -> f64 {
    let k = k as f64;
    ((k * survival + 0.5 * mean_model) / (k + 0.5)).clamp(1e-4, 1.0 - 1e-4)
}

/// How far a group is from what the model expects of its members.
pub(super) fn offset(part: usize, group: GroupEstimate, members: impl ExactSizeIterator<Item = Expected>) -> Offset {
    let n = members.len();
    let (mut cured, mut chance, mut uncured, mut time) = (0.0, 0.0, 0.0, 0.0);
    for p in members {
        cured += p.cured;
        chance += p.cured * (1.0 - p.cured);
        uncured += 1.0 - p.cured;
        time += (1.0 - p.cured) * p.mean_event_time;
    }
    if part == CURE {
        let model = cured / n as f64;
        let share = smoothed(group.curve.survival, model, n);
        let offset = logit(share) - logit(model.clamp(1e-4, 1.0 - 1e-4));
        let drawn = cured * (1.0 - model);
        let within = if drawn > 0.0 { chance / drawn } else { 1.0 };
        return Offset { group, offset, variance: cure_variance(&group, share, within) };
    }
    let offset = match group.curve.mean_event_time() {
        Some(mean) if uncured > 0.0 && time > 0.0 => (mean * uncured / time).ln(),
        _ => 0.0,
    };
    Offset { group, offset, variance: time_variance(&group) }
}

/// Groups of one arm under one metric of one fold.
pub(super) struct GroupSearch<'a> {
    searched: Searched<'a>,
    pool: &'a Pool,
    metric: &'a Metric,
    part: usize,
    fewest: usize,
    /// What is expected of each unit of the pool, in the order of time.
    expected: Vec<Expected>,
}

impl<'a> GroupSearch<'a> {
    pub(super) fn new(
        place: &'a Place<'a>,
        metric: &'a Metric,
        part: usize,
        z: usize,
        expected: &'a [Vec<Expected>; 2],
    ) -> GroupSearch<'a> {
        let pool = &place.pools[z];
        let searched = Searched::new(pool, place.cohort, metric, place.rules.as_ref());
        let mut by_time = expected[z].clone();
        expected[z].iter().zip(0..).for_each(|(e, m)| by_time[pool.rank(m) as usize] = *e);
        GroupSearch { searched, pool, metric, part, fewest: place.fewest, expected: by_time }
    }

    /// Of a group with members in these places of the order of time, in which sums go.
    fn of_group(&self, group: GroupEstimate, ranks: &[u32]) -> Offset {
        offset(self.part, group, ranks.iter().map(|&r| self.expected[r as usize]))
    }

    /// The group of each unit with K members; the unit itself is not in it. The number of candidates where they are too few.
    /// `hints` are squared distances near which the farthest member may be.
    pub(super) fn offsets(&self, queries: &Queries<'_>, k: usize, hints: Option<&[f64]>) -> Vec<Result<Offset, usize>> {
        let placed = self.metric.place(queries.covariates);
        self.searched
            .map_other_groups(queries, &placed, k, self.fewest, hints, |group, ranks| self.of_group(group, ranks))
    }

    /// The same at each of several sizes.
    pub(super) fn offsets_at(&self, queries: &Queries<'_>, sizes: &[usize]) -> Vec<Result<Vec<Offset>, usize>> {
        let placed = self.metric.place(queries.covariates);
        let largest = sizes.iter().copied().max().expect("at least one group size");
        self.searched.map_others(queries, &placed, largest, self.fewest, |ranks, members, squared| {
            let of_size = |&k: &usize| {
                let k = k.min(members.len());
                let group = self.pool.estimate(&members[..k], &squared[..k], ranks);
                self.of_group(group, ranks)
            };
            sizes.iter().map(of_size).collect()
        })
    }
}

/// The corrected probability of cure.
pub(super) fn corrected_cure(p: &Prediction, offset: f64, weight: f64) -> f64 {
    expit(p.cure_logit + weight * offset)
}

/// The corrected mean event time; never at or beyond the horizon.
pub(super) fn corrected_time(p: &Prediction, offset: f64, weight: f64, horizon: f64) -> f64 {
    (p.mean_event_time * (weight * offset).exp()).min(horizon.next_down())
}

/// The groups of one unit: for cure and time, each in control and treated.
pub(super) type Four = [[Offset; 2]; 2];

/// Variances of both arms and their covariance that a model gives a unit, for cure and time.
pub(super) type OfModel = [([f64; 2], f64); 2];

/// Both arms of a unit, of the groups alone.
pub(super) fn arms(four: &Four) -> [ArmEstimate; 2] {
    [0, 1].map(|z| ArmEstimate { cure: four[CURE][z].group, time: four[TIME][z].group })
}

/// What a model and the groups make of a unit, without what the correction leaves in.
pub(super) fn correct(
    p: &[Prediction; 2],
    four: &Four,
    choices: &[Choice; 2],
    of_model: OfModel,
    horizon: f64,
) -> Corrected {
    let [cure, time] = choices;
    let spread = |part: usize| {
        let (model, covariance) = of_model[part];
        let w = choices[part].weight;
        Spread { variance: [0, 1].map(|z| model[z] + w * w * four[part][z].variance), covariance }
    };
    Corrected {
        cure_probability: [0, 1].map(|z| corrected_cure(&p[z], four[CURE][z].offset, cure.weight)),
        mean_event_time: [0, 1].map(|z| corrected_time(&p[z], four[TIME][z].offset, time.weight, horizon)),
        cure_spread: spread(CURE),
        time_spread: spread(TIME),
        split_sd: None,
    }
}

/// Adds what the correction leaves in: (1 − w)² of the leftover variance.
pub(super) fn add_leftover(c: &mut Corrected, choices: &[Choice; 2], leftover: &[[f64; 2]; 2]) {
    for (part, spread) in [&mut c.cure_spread, &mut c.time_spread].into_iter().enumerate() {
        let left = 1.0 - choices[part].weight;
        (0..2).for_each(|z| spread.variance[z] += left * left * leftover[part][z]);
    }
}

/// Mean over deals. Variances are the mean of those of the deals, which speak of the data, and what is left of the
/// variance between deals in a mean of so many.
pub(super) fn pooled(of_deals: &[Corrected]) -> Corrected {
    if let [only] = of_deals {
        return *only;
    }
    let n = of_deals.len() as f64;
    let mean = |f: &dyn Fn(&Corrected) -> f64| of_deals.iter().map(f).sum::<f64>() / n;
    let covariance = |f: &dyn Fn(&Corrected) -> f64, g: &dyn Fn(&Corrected) -> f64| {
        let (a, b) = (mean(f), mean(g));
        of_deals.iter().map(|c| (f(c) - a) * (g(c) - b)).sum::<f64>() / (n - 1.0)
    };
    let spread = |of: &dyn Fn(&Corrected) -> Spread, value: &dyn Fn(&Corrected, usize) -> f64| Spread {
        variance: [0, 1].map(|z| {
            let value = |c: &Corrected| value(c, z);
            mean(&|c| of(c).variance[z]) + covariance(&value, &value) / n
        }),
        covariance: mean(&|c| of(c).covariance) + covariance(&|c| value(c, 0), &|c| value(c, 1)) / n,
    };
    let cure_effect = |c: &Corrected| c.cure_probability[1] - c.cure_probability[0];
    let time_effect = |c: &Corrected| c.mean_event_time[1] - c.mean_event_time[0];
    Corrected {
        cure_probability: [0, 1].map(|z| mean(&|c| c.cure_probability[z])),
        mean_event_time: [0, 1].map(|z| mean(&|c| c.mean_event_time[z])),
        cure_spread: spread(&|c| c.cure_spread, &|c, z| logit(c.cure_probability[z].clamp(1e-12, 1.0 - 1e-12))),
        time_spread: spread(&|c| c.time_spread, &|c, z| c.mean_event_time[z].ln()),
        split_sd: Some([covariance(&cure_effect, &cure_effect).sqrt(), covariance(&time_effect, &time_effect).sqrt()]),
    }
}

/// The four groups of each unit where all four are there, else why not.
pub(super) fn all_four(mut found: [[Vec<Result<Offset, usize>>; 2]; 2], fewest: usize) -> Vec<Result<Four, Unserved>> {
    let n = found[CURE][0].len();
    let blank = || Err(0);
    (0..n)
        .map(|q| {
            let four = [CURE, TIME].map(|part| [0, 1].map(|z| std::mem::replace(&mut found[part][z][q], blank())));
            let candidates = [0, 1].map(|z| four[CURE][z].as_ref().err().copied().unwrap_or(fewest));
            let missing = Unserved { candidates, group_size: fewest };
            let [[Ok(a), Ok(b)], [Ok(c), Ok(d)]] = four else { return Err(missing) };
            Ok([[a, b], [c, d]])
        })
        .collect()
}

/// The units of a fold.
pub(super) fn units_of_fold(fold_of: &[u8], fold: usize) -> Vec<u32> {
    (0..fold_of.len() as u32).filter(|&i| fold_of[i as usize] as usize == fold).collect()
}

/// The covariates as recorded of these units, row-major, and where each is in the cohort.
pub(super) fn queries_of(cohort: &Cohort, units: &[u32]) -> (Vec<f64>, Vec<Option<u32>>) {
    let rows = units.iter().flat_map(|&i| cohort.covariates(i as usize)).copied().collect();
    (rows, units.iter().copied().map(Some).collect())
}

/// Units whose groups are held at a time: 65 MB of members at K = 250.
const BLOCK: usize = 65_536;

/// Visits the groups of the estimated units in one arm under one estimand's metrics (0 cure, 1 time), in the order of the units: the position of
/// the unit among them, the places in the order of time of its members, ascending, and the distance to the nearest of them.
pub fn each_group(
    cohort: &Cohort,
    cross_fit: &CrossFit,
    rules: Option<&Rules>,
    pool: &Pool,
    (part, arm): (usize, Arm),
    estimated: &[u32],
    mut visit: impl FnMut(usize, &[u32], f64),
) {
    let first = cross_fit.first();
    for (b, block) in estimated.chunks(BLOCK).enumerate() {
        let mut groups: Vec<Option<(Vec<u32>, f64)>> = vec![None; block.len()];
        for (number, fold) in first.folds.iter().enumerate() {
            let of_fold: Vec<usize> =
                (0..block.len()).filter(|&q| first.fold_of[block[q] as usize] as usize == number).collect();
            let units: Vec<u32> = of_fold.iter().map(|&q| block[q]).collect();
            let (metric, k) = (&fold.metrics[part][arm.index()], fold.choices[part].group_size);
            let (rows, own) = queries_of(cohort, &units);
            let searched = Searched::new(pool, cohort, metric, rules);
            let queries = Queries { covariates: &rows, own: &own };
            let found = searched.map_others(&queries, &metric.place(&rows), k, 1, |ranks, members, squared| {
                pool.order(members, ranks);
                (ranks.clone(), squared.first().map_or(f64::INFINITY, |d| d.sqrt()))
            });
            of_fold.iter().zip(found).for_each(|(&q, group)| groups[q] = group.ok());
        }
        for (q, group) in groups.iter().enumerate() {
            let (ranks, nearest) = group.as_ref().expect("an estimated unit has its groups");
            visit(b * BLOCK + q, ranks, *nearest);
        }
    }
}

/// The effects of a run that was saved: its groups are found again, their correction was kept.
pub fn regroup(
    cohort: &Cohort,
    cross_fit: &CrossFit,
    rules: Option<&Rules>,
    fewest: usize,
    corrected: &[Corrected],
) -> Vec<Result<Effect, Unserved>> {
    let pools = Arm::BOTH.map(|z| Pool::new(cohort, cohort.units_of(z)));
    let first = cross_fit.first();
    let mut effects: Vec<Option<Result<Effect, Unserved>>> = vec![None; cohort.n_units()];
    for (number, fold) in first.folds.iter().enumerate() {
        let units = units_of_fold(&first.fold_of, number);
        let (rows, own) = queries_of(cohort, &units);
        let queries = Queries { covariates: &rows, own: &own };
        let found = [CURE, TIME].map(|part| {
            [0, 1].map(|z| {
                let (pool, metric, k) = (&pools[z], &fold.metrics[part][z], fold.choices[part].group_size);
                let searched = Searched::new(pool, cohort, metric, rules);
                let alone = |group: GroupEstimate, _: &[u32]| Offset { group, offset: 0.0, variance: 0.0 };
                searched.map_other_groups(&queries, &metric.place(&rows), k, fewest, None, alone)
            })
        });
        for (&i, four) in units.iter().zip(all_four(found, fewest)) {
            let effect = |four: Four| Effect { arms: arms(&four), corrected: Some(corrected[i as usize]) };
            effects[i as usize] = Some(four.map(effect));
        }
    }
    effects.into_iter().map(|e| e.expect("every unit is in a fold")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two deals, worked by hand.
    #[test]
    fn means_over_deals() {
        let spread = |v: f64| Spread { variance: [v, 2.0 * v], covariance: 0.5 * v };
        let of = |s: [f64; 2], m: [f64; 2], v: f64| Corrected {
            cure_probability: s,
            mean_event_time: m,
            cure_spread: spread(v),
            time_spread: spread(3.0 * v),
            split_sd: None,
        };
        let (a, b) = (of([0.5, 0.6], [100.0, 150.0], 0.1), of([0.5, 0.8], [100.0, 250.0], 0.3));
        assert_eq!(pooled(&[a]), a, "one deal is what it was");
        let c = pooled(&[a, b]);
        let close = |x: f64, y: f64| assert!((x - y).abs() < 1e-12, "{x} {y}");
        close(c.cure_probability[0], 0.5);
        close(c.cure_probability[1], 0.7);
        close(c.mean_event_time[1], 200.0);
        // Effects .1 and .3, 50 and 150: standard deviations .2/√2 and 100/√2.
        let [cure, time] = c.split_sd.expect("two splits");
        close(cure, 0.2 / 2f64.sqrt());
        close(time, 100.0 / 2f64.sqrt());
        // Mean variance .2 and nothing between; .4 and half the variance of the two logits.
        close(c.cure_spread.variance[0], 0.2);
        let apart = (1.5f64).ln() - (4.0f64).ln();
        close(c.cure_spread.variance[1], 0.4 + 0.5 * apart * apart / 2.0);
        close(c.cure_spread.covariance, 0.1);
        let apart = (150.0f64 / 250.0).ln();
        close(c.time_spread.variance[1], 1.2 + 0.5 * apart * apart / 2.0);
    }

    /// Ten without censoring, five cured: n′ = 10. Members who are all alike vary by .25 each; five of .1 and five of .9 by .09 each.
    #[test]
    fn a_group_varies_less_than_a_random_draw() {
        let time: Vec<f64> = (1..=10).map(|t| 10.0 * f64::from(t)).collect();
        let event: Vec<bool> = (0..10).map(|i| i < 5).collect();
        let curve = crate::survival::SurvivalCurve::new(&time, &event).summary(55.0);
        let variance = |cured: [f64; 2]| {
            let group = GroupEstimate { curve, diameter: 1.0 };
            let members: Vec<Expected> =
                (0..10).map(|i| Expected { cured: cured[i % 2], mean_event_time: 30.0 }).collect();
            offset(CURE, group, members.into_iter()).variance
        };
        let close = |x: f64, y: f64| assert!((x - y).abs() < 1e-12, "{x} {y}");
        close(variance([0.5, 0.5]), 1.0 / (10.0 * 0.25));
        close(variance([0.1, 0.9]), 0.36 / (10.0 * 0.25));
        close(variance([0.0, 0.0]), variance([0.5, 0.5]) * (0.25 / (5.0 / 10.5 * (5.5 / 10.5))));
    }
}
