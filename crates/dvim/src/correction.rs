//! What a model makes of match groups: it corrects them for the covariate difference that remains inside the group.
//!
//! `logit S(x) = logit S_model(x) + w (logit S_G − logit S̄_G)`, `m(x) = m_model(x) · (m_G / m̄_G)^w`,
//!
//! `odds F(t | x) ∝ odds F_model(t | x) · (odds F_G(t) / odds F̄_G(t))^w`, the factor such that the mean is m(x),
//!
//! with S_G, m_G and F_G what the group's curve gives, S̄_G, m̄_G and F̄_G the model's means over the group, and w a
//! weight. The variance on the same scales is that of the model, plus w² that of the group's curve, plus (1 − w)² what
//! the offsets vary beyond the noise of the groups, plus what smaller groups see beyond that. Derivations:
//! docs/methods/adjusted.md and docs/methods/intervals.md.

use crate::arm::{Arm, ByArm};
use crate::curve::{CELLS, Grid, Shape, odds};
use crate::effect::{Corrected, Four, all_four};
use crate::estimand::{ByEstimand, Estimand};
use crate::group::{GroupEstimate, Pool};
use crate::joint::{Certainty, Prediction, Predictor, ShareTable, Spread, Spreads};
use crate::numeric::{expit, in_wide_registers};
use crate::split::Trained;
use rayon::prelude::*;

/// The model of one fold: what it says of any unit, and how sure it is.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldModel {
    /// What it says.
    pub predictor: Trained<Predictor>,
    /// Covariance of its parameters, row-major: see [`Certainty`].
    pub covariance: Vec<f64>,
}

impl FoldModel {
    /// How sure the model is of what it says.
    pub fn certainty(&self) -> Certainty<'_> {
        Certainty::new(&self.predictor, &self.covariance)
    }

    /// How sure the model is of units with these standardised covariates (row-major): that of the cure model, and how
    /// far the learners are apart.
    pub(crate) fn spreads(&self, standardised: &[f64]) -> Vec<Spreads> {
        let mut spreads = self.certainty().spreads(standardised);
        let predictor = &self.predictor;
        if predictor.beside.share.iter().any(|s| !s.are_none()) {
            let rows = standardised.par_chunks(predictor.n_covariates);
            spreads.par_iter_mut().zip(rows).with_min_len(64).for_each(|(spreads, x)| {
                let apart = predictor.disagreement(x);
                for (estimand, arm) in all_four() {
                    spreads.of[estimand].variance[arm] += apart[arm][estimand];
                }
            });
        }
        spreads
    }

    /// What the model knows of units with these standardised covariates (row-major), before their groups are seen.
    pub(crate) fn opinions(&self, standardised: &[f64]) -> Vec<Opinion> {
        let spreads = self.spreads(standardised);
        let predicted = self.predictor.predict_all(standardised);
        predicted.into_iter().zip(spreads).map(|(predicted, spreads)| Opinion { predicted, spreads }).collect()
    }

    /// F of the model's family, ready for many units.
    pub(crate) fn shares(&self) -> ShareTable {
        ShareTable::new(self.predictor.family)
    }

    /// What the model expects of a unit of this case weight, given its prediction in the unit's own arm and a table of
    /// the model's family.
    pub(crate) fn expected(&self, table: &ShareTable, p: &Prediction, weight: f64, grid: &Grid) -> Expected {
        let uncured = 1.0 - p.cure_probability;
        let mut shares = [0.0; CELLS];
        self.predictor.event_shares_from(table, p, grid.log_times(), &mut shares);
        shares[CELLS - 1] = 1.0;
        let shares = shares.map(|share| (uncured * share) as f32);
        Expected { cured: p.cure_probability, mean_event_time: p.mean_event_time, shares, weight: weight as f32 }
    }
}

/// What a model knows of a unit before its groups are seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opinion {
    /// What it predicts under each arm.
    pub(crate) predicted: ByArm<Prediction>,
    /// How sure it is of that.
    pub(crate) spreads: Spreads,
}

/// The shares of events before H that a model sees come by each knot after 0.
fn event_shares(predictor: &Predictor, p: &Prediction, grid: &Grid) -> [f64; CELLS] {
    let mut shares = [0.0; CELLS];
    predictor.event_shares(p, grid.log_times(), &mut shares);
    shares[CELLS - 1] = 1.0;
    shares
}

/// What turns groups into corrected values: a model, and how far the groups may move it.
#[derive(Clone, Debug, PartialEq)]
pub struct Corrector {
    /// Weight of the groups' offset from the model.
    pub weight: ByEstimand<f64>,
    /// What the correction leaves in: `(1 − w)²` of what the offsets of the groups vary beyond their noise, and what
    /// the offsets of the smallest groups vary beyond that, which large groups do not see.
    pub leftover: Four<f64>,
    /// The model, which saw none of the units that it corrects.
    pub model: FoldModel,
}

/// What a model expects of a unit of the pool in its own arm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) cured: f64,
    pub(crate) mean_event_time: f64,
    /// Probability of an event by each knot after 0.
    pub(crate) shares: [f32; CELLS],
    /// How much the unit counts in the curve of a group.
    pub(crate) weight: f32,
}

impl Expected {
    /// The weight, and the weight times `p`, `p (1 − p)` and `(1 − p) m`.
    fn ends(&self) -> [f64; 4] {
        let (weight, p) = (f64::from(self.weight), self.cured);
        [weight, weight * p, weight * (p * (1.0 - p)), weight * ((1.0 - p) * self.mean_event_time)]
    }

    /// The shares, each times the weight.
    fn weighed(&self) -> [f32; CELLS] {
        self.shares.map(|share| self.weight * share)
    }

    /// The mean of what several models expect.
    pub(crate) fn mean(all: impl Iterator<Item = Expected>) -> Expected {
        let mut sum = Expected { cured: 0.0, mean_event_time: 0.0, shares: [0.0; CELLS], weight: 1.0 };
        let mut n = 0.0;
        for e in all {
            n += 1.0;
            sum.cured += e.cured;
            sum.mean_event_time += e.mean_event_time;
            sum.shares.iter_mut().zip(e.shares).for_each(|(a, b)| *a += b);
            sum.weight = e.weight;
        }
        Expected {
            cured: sum.cured / n,
            mean_event_time: sum.mean_event_time / n,
            shares: sum.shares.map(|x| x / n as f32),
            weight: sum.weight,
        }
    }
}

/// What is expected of units as sums over groups need it: each times the unit's weight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weighed {
    /// The weight, and the weight times `p`, `p (1 − p)` and `(1 − p) m`.
    ends: Vec<[f64; 4]>,
    shares: Vec<[f32; CELLS]>,
}

impl Weighed {
    /// Of some units.
    pub(crate) fn new(units: &[Expected]) -> Weighed {
        Weighed {
            ends: units.iter().map(Expected::ends).collect(),
            shares: units.iter().map(Expected::weighed).collect(),
        }
    }

    /// Of the units of a pool, in the pool's order of time, in which sums over groups go.
    pub(crate) fn by_time(pool: &Pool, units: &[Expected]) -> Weighed {
        let mut out = Weighed { ends: vec![[0.0; 4]; units.len()], shares: vec![[0.0; CELLS]; units.len()] };
        for (e, m) in units.iter().zip(0..) {
            let rank = pool.rank(m) as usize;
            (out.ends[rank], out.shares[rank]) = (e.ends(), e.weighed());
        }
        out
    }
}

in_wide_registers!(fn sum_of_ends = sum_ends(all: &[[f64; 4]], members: &[u32], counts: &[f64]) -> [f64; 4]);
in_wide_registers!(
    fn sum_of_shares = sum_shares(all: &[[f32; CELLS]], members: &[u32], counts: &[f64]) -> [f32; CELLS]
);

#[inline(always)]
fn sum_ends(all: &[[f64; 4]], members: &[u32], counts: &[f64]) -> [f64; 4] {
    let mut sum = [0.0; 4];
    if counts.is_empty() {
        members.iter().for_each(|&m| sum.iter_mut().zip(&all[m as usize]).for_each(|(sum, x)| *sum += x));
    } else {
        for (&m, count) in members.iter().zip(counts) {
            sum.iter_mut().zip(&all[m as usize]).for_each(|(sum, x)| *sum += count * x);
        }
    }
    sum
}

#[inline(always)]
fn sum_shares(all: &[[f32; CELLS]], members: &[u32], counts: &[f64]) -> [f32; CELLS] {
    let mut sum = [0.0; CELLS];
    if counts.is_empty() {
        members.iter().for_each(|&m| sum.iter_mut().zip(&all[m as usize]).for_each(|(sum, x)| *sum += x));
    } else {
        for (&m, count) in members.iter().zip(counts) {
            let count = *count as f32;
            sum.iter_mut().zip(&all[m as usize]).for_each(|(sum, x)| *sum += count * x);
        }
    }
    sum
}

/// How far a group is from what the model expects of its members.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offset {
    /// `logit S̃_G − logit S̄_G` or `ln(m_G / m̄_G)`; 0 where the group has no event.
    pub(crate) value: f64,
    /// The variance that the group's curve brings.
    pub(crate) variance: f64,
    /// For time: `ln(odds F̃_G / odds F̄_G)` at each inner knot, and one over the events that F_G rests on.
    pub(crate) shape: [f32; CELLS - 1],
    pub(crate) shape_variance: f32,
}

impl Offset {
    /// The offset of a group from what is expected of its members, who come in the pool's order of time with what they
    /// count, where not each counts once. `seen` are the shares of the group's events that come by each knot, which
    /// time needs.
    pub(crate) fn of(
        estimand: Estimand,
        group: &GroupEstimate,
        expected: &Weighed,
        (members, counts): (&[u32], &[f64]),
        seen: impl FnOnce() -> Option<[f64; CELLS]>,
    ) -> Offset {
        let [all, cured, chance, time] = sum_of_ends(&expected.ends, members, counts);
        match estimand {
            Estimand::Cure => {
                let model = cured / all;
                // As many as they are worth: fewer where they do not count alike.
                let share = smoothed(group.curve.survival, model, members.len() as f64 * group.curve.worth);
                let value = logit(share) - logit(model.clamp(1e-4, 1.0 - 1e-4));
                let drawn = cured * (1.0 - model);
                let within = if drawn > 0.0 { chance / drawn } else { 1.0 };
                Offset { value, variance: cure_variance(group, share, within), ..Offset::default() }
            }
            Estimand::Time => {
                let uncured = all - cured;
                let value = match group.curve.mean_event_time() {
                    Some(mean) if uncured > 0.0 && time > 0.0 => libm::log(mean * uncured / time),
                    _ => 0.0,
                };
                let mut out = Offset { value, variance: time_variance(group), ..Offset::default() };
                let both = seen().map(|seen| (seen, sum_of_shares(&expected.shares, members, counts)));
                if let Some((seen, shares)) = both.filter(|(_, shares)| shares[CELLS - 1] > 0.0) {
                    let all = f64::from(shares[CELLS - 1]);
                    let events = (group.curve.effective_size() * (1.0 - group.curve.survival)).max(1.0);
                    for (k, offset) in out.shape.iter_mut().enumerate() {
                        let model = f64::from(shares[k]) / all;
                        // Drawn by half an event towards the model.
                        let share = (events * seen[k] + 0.5 * model) / (events + 0.5);
                        *offset = libm::log(odds(share) / odds(model)) as f32;
                    }
                    out.shape_variance = (1.0 / events) as f32;
                }
                out
            }
        }
    }
}

/// Variance of `logit S̃_G` given who the members are: `within/(n′ S̃ (1 − S̃))` with n′ the group's effective size.
///
/// Where Greenwood's sum G is defined, `1/(n′ S̃ (1 − S̃))` is `G/(1 − S)²`: the variance of members drawn at random.
/// Only the share `within = mean p_i (1 − p_i) / {p̄ (1 − p̄)}` of it is left when the members' probabilities of cure
/// p_i are as the model says. The rest is how the members differ, which the offset does not carry: it compares them
/// with the same p_i.
fn cure_variance(group: &GroupEstimate, smoothed: f64, within: f64) -> f64 {
    within / (group.curve.effective_size() * smoothed * (1.0 - smoothed))
}

/// Variance of `ln m_G`, never below what so few or so tied events can know; below two events that of an exponential
/// time.
fn time_variance(group: &GroupEstimate) -> f64 {
    match (group.curve.mean_event_time(), group.curve.mean_event_time_se(), group.curve.least_spread()) {
        (Some(m), Some(se), Some(least)) if m > 0.0 => (se / m).max(least.min(1.0)).powi(2),
        _ => 1.0,
    }
}

fn logit(p: f64) -> f64 {
    libm::log(p) - libm::log1p(-p)
}

/// S_G drawn by half a unit towards the model, so that 0 and 1 have a logit.
fn smoothed(survival: f64, mean_model: f64, k: f64) -> f64 {
    ((k * survival + 0.5 * mean_model) / (k + 0.5)).clamp(1e-4, 1.0 - 1e-4)
}

/// The corrected probability of cure.
pub(crate) fn corrected_cure(p: &Prediction, offset: f64, weight: f64) -> f64 {
    expit(p.cure_logit + weight * offset)
}

/// The corrected mean event time; never at or beyond the horizon.
pub(crate) fn corrected_time(p: &Prediction, offset: f64, weight: f64, horizon: f64) -> f64 {
    (p.mean_event_time * libm::exp(weight * offset)).min(horizon.next_down())
}

/// The corrected distribution of the event time before H, with this mean.
pub(crate) fn corrected_shape(
    predictor: &Predictor,
    p: &Prediction,
    offset: &Offset,
    weight: f64,
    mean: f64,
    grid: &Grid,
) -> Shape {
    let model = event_shares(predictor, p, grid);
    let by = |k: usize| odds(model[k]) * libm::exp(weight * f64::from(offset.shape[k]));
    Shape::with_mean(&std::array::from_fn(by), mean, grid)
}

/// What a model and the four groups make of a unit, but for the variance that the correction leaves in. `predictor` is
/// the model, or one of those whose mean the opinion is.
pub(crate) fn correct(
    predictor: &Predictor,
    opinion: &Opinion,
    offsets: &Four<Offset>,
    weight: &ByEstimand<f64>,
    grid: &Grid,
) -> Corrected {
    let p = &opinion.predicted;
    let mean = ByArm::of(|z| corrected_time(&p[z], offsets.time[z].value, weight.time, grid.horizon()));
    let shape = |z: Arm| corrected_shape(predictor, &p[z], &offsets.time[z], weight.time, mean[z], grid);
    Corrected {
        cure_probability: ByArm::of(|z| corrected_cure(&p[z], offsets.cure[z].value, weight.cure)),
        mean_event_time: mean,
        spread: ByEstimand::of(|estimand| {
            let (model, w) = (&opinion.spreads.of[estimand], weight[estimand]);
            let variance = ByArm::of(|z| model.variance[z] + w * w * offsets[estimand][z].variance);
            Spread { variance, covariance: model.covariance }
        }),
        cross: opinion.spreads.cross,
        shape: ByArm::of(shape),
        shape_variance: offsets.time.map(|o| weight.time * weight.time * f64::from(o.shape_variance)),
        model: ByEstimand {
            cure: p.each_ref().map(|p| p.cure_probability),
            time: p.each_ref().map(|p| p.mean_event_time),
        },
        weight: *weight,
        split_sd: None,
    }
}

/// Adds what the correction leaves in.
pub(crate) fn add_leftover(corrected: &mut Corrected, leftover: &Four<f64>) {
    for (estimand, arm) in all_four() {
        corrected.spread[estimand].variance[arm] += leftover[estimand][arm];
    }
}

/// The mean over deals. Its variances are the mean of those of the deals, which speak of the data, and what is left of
/// the variance between deals in a mean of so many.
pub(crate) fn pooled(of_deals: &[Corrected], grid: &Grid) -> Corrected {
    if let [only] = of_deals {
        return *only;
    }
    let n = of_deals.len() as f64;
    let mean = |f: &dyn Fn(&Corrected) -> f64| of_deals.iter().map(f).sum::<f64>() / n;
    let covariance = |f: &dyn Fn(&Corrected) -> f64, g: &dyn Fn(&Corrected) -> f64| {
        let (a, b) = (mean(f), mean(g));
        of_deals.iter().map(|c| (f(c) - a) * (g(c) - b)).sum::<f64>() / (n - 1.0)
    };
    let value = |estimand: Estimand, c: &Corrected| match estimand {
        Estimand::Cure => c.cure_probability.map(|s| logit(s.clamp(1e-12, 1.0 - 1e-12))),
        Estimand::Time => c.mean_event_time.map(libm::log),
    };
    let spread = |estimand: Estimand| Spread {
        variance: ByArm::of(|z| {
            let value = |c: &Corrected| value(estimand, c)[z];
            mean(&|c| c.spread[estimand].variance[z]) + covariance(&value, &value) / n
        }),
        covariance: mean(&|c| c.spread[estimand].covariance)
            + covariance(&|c| value(estimand, c).control, &|c| value(estimand, c).treated) / n,
    };
    let mean_event_time = ByArm::of(|z| mean(&|c| c.mean_event_time[z]));
    let shape = |z: Arm| {
        let each = of_deals.iter().map(move |c| (&c.shape[z], 1.0 - c.cure_probability[z]));
        Shape::with_mean(&Shape::mean_odds(each), mean_event_time[z], grid)
    };
    let cross = |a: Arm, b: Arm| {
        let between = covariance(&|c| value(Estimand::Cure, c)[a], &|c| value(Estimand::Time, c)[b]);
        mean(&|c| c.cross[a][b]) + between / n
    };
    let cure_effect = |c: &Corrected| c.cure_probability.treated - c.cure_probability.control;
    let time_effect = |c: &Corrected| c.mean_event_time.treated - c.mean_event_time.control;
    Corrected {
        cure_probability: ByArm::of(|z| mean(&|c| c.cure_probability[z])),
        mean_event_time,
        spread: ByEstimand::of(spread),
        cross: ByArm::of(|a| ByArm::of(|b| cross(a, b))),
        shape: ByArm::of(shape),
        shape_variance: ByArm::of(|z| mean(&|c| c.shape_variance[z])),
        model: ByEstimand::of(|estimand| ByArm::of(|z| mean(&|c| c.model[estimand][z]))),
        weight: ByEstimand::of(|estimand| mean(&|c| c.weight[estimand])),
        split_sd: Some(ByEstimand {
            cure: covariance(&cure_effect, &cure_effect).sqrt(),
            time: covariance(&time_effect, &time_effect).sqrt(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset_of(estimand: Estimand, group: &GroupEstimate, members: &[Expected]) -> Offset {
        let places: Vec<u32> = (0..members.len() as u32).collect();
        Offset::of(estimand, group, &Weighed::new(members), (&places, &[]), || None)
    }

    /// Two deals, worked by hand.
    #[test]
    fn means_over_deals() {
        let spread = |v: f64| Spread { variance: ByArm { control: v, treated: 2.0 * v }, covariance: 0.5 * v };
        let of = |s: [f64; 2], m: [f64; 2], v: f64| Corrected {
            cure_probability: s.into(),
            mean_event_time: m.into(),
            spread: ByEstimand { cure: spread(v), time: spread(3.0 * v) },
            ..Corrected::NOTHING
        };
        let grid = Grid::new(800.0);
        let pooled = |of_deals: &[Corrected]| pooled(of_deals, &grid);
        let (a, b) = (of([0.5, 0.6], [100.0, 150.0], 0.1), of([0.5, 0.8], [100.0, 250.0], 0.3));
        assert_eq!(pooled(&[a]), a, "one deal is what it was");
        let c = pooled(&[a, b]);
        let close = |x: f64, y: f64| assert!((x - y).abs() < 1e-12, "{x} {y}");
        close(c.cure_probability.control, 0.5);
        close(c.cure_probability.treated, 0.7);
        close(c.mean_event_time.treated, 200.0);
        // Effects .1 and .3, 50 and 150: standard deviations .2/√2 and 100/√2.
        let sd = c.split_sd.expect("two splits");
        close(sd.cure, 0.2 / 2f64.sqrt());
        close(sd.time, 100.0 / 2f64.sqrt());
        // Mean variance .2 and nothing between; .4 and half the variance of the two logits.
        close(c.spread.cure.variance.control, 0.2);
        let apart = (1.5f64).ln() - (4.0f64).ln();
        close(c.spread.cure.variance.treated, 0.4 + 0.5 * apart * apart / 2.0);
        close(c.spread.cure.covariance, 0.1);
        let apart = (150.0f64 / 250.0).ln();
        close(c.spread.time.variance.treated, 1.2 + 0.5 * apart * apart / 2.0);
    }

    /// A member of weight two is expected twice.
    #[test]
    fn members_count_as_much_as_they_weigh() {
        let of = |cured: f64, mean_event_time: f64, weight: f32| {
            let mut shares = [0.0; CELLS];
            (0..CELLS).for_each(|k| shares[k] = (1.0 - cured as f32) * (k + 1) as f32 / CELLS as f32);
            Expected { cured, mean_event_time, shares, weight }
        };
        let outcome = |time: f64, event: bool, weight: f64| crate::outcome::Outcome {
            weight,
            ..crate::outcome::Outcome::plain(time, event)
        };
        let group = |all: Vec<crate::outcome::Outcome>| {
            let curve = crate::survival::SurvivalCurve::of_outcomes(all).summary(55.0);
            // As many as they stand for: what smoothing sees of them is then the same.
            GroupEstimate { curve: crate::survival::Summary { worth: 1.0, ..curve }, diameter: 1.0 }
        };
        let once = group(vec![outcome(10.0, true, 2.0), outcome(20.0, false, 1.0), outcome(60.0, false, 1.0)]);
        let once = GroupEstimate {
            curve: crate::survival::Summary { worth: 4.0 / 3.0, ..once.curve },
            diameter: once.diameter,
        };
        let twice = group([10.0, 10.0, 20.0, 60.0].map(|t| outcome(t, t < 15.0, 1.0)).to_vec());
        let weighted = [of(0.2, 20.0, 2.0), of(0.5, 30.0, 1.0), of(0.9, 40.0, 1.0)];
        let copied = [of(0.2, 20.0, 1.0), of(0.2, 20.0, 1.0), of(0.5, 30.0, 1.0), of(0.9, 40.0, 1.0)];
        for estimand in Estimand::BOTH {
            let a = offset_of(estimand, &once, &weighted).value;
            let b = offset_of(estimand, &twice, &copied).value;
            assert!((a - b).abs() < 1e-9, "{a} {b}");
        }
    }

    /// Ten without censoring, five cured: n′ = 10. Members who are all alike vary by .25 each; five of .1 and five of
    /// .9 by .09 each.
    #[test]
    fn a_group_varies_less_than_a_random_draw() {
        let time: Vec<f64> = (1..=10).map(|t| 10.0 * f64::from(t)).collect();
        let event: Vec<bool> = (0..10).map(|i| i < 5).collect();
        let curve = crate::survival::SurvivalCurve::new(&time, &event).summary(55.0);
        let variance = |cured: [f64; 2]| {
            let group = GroupEstimate { curve, diameter: 1.0 };
            let of =
                |i: usize| Expected { cured: cured[i % 2], mean_event_time: 30.0, shares: [0.0; CELLS], weight: 1.0 };
            let members: Vec<Expected> = (0..10).map(of).collect();
            offset_of(Estimand::Cure, &group, &members).variance
        };
        let close = |x: f64, y: f64| assert!((x - y).abs() < 1e-12, "{x} {y}");
        close(variance([0.5, 0.5]), 1.0 / (10.0 * 0.25));
        close(variance([0.1, 0.9]), 0.36 / (10.0 * 0.25));
        close(variance([0.0, 0.0]), variance([0.5, 0.5]) * (0.25 / (5.0 / 10.5 * (5.5 / 10.5))));
    }
}
