//! Average effects where units differ in weight, are clustered, enter late, or can have other events.
//!
//! As in [`super::average`], with case weights ωᵢ: `θ_z = Σ ωᵢ e_z(i)/Σ ωᵢ`. A member of a group has the influence of
//! its weighted curve, and contributions are summed by cluster before they are squared. A cluster may have units in
//! both arms, so that the two means then have a covariance. The true values vary between units: without clusters that
//! adds `Σ ωᵢ² (eᵢ − θ)²/(Σ ωᵢ)²` less the part that is noise, with clusters the squares of the sums over clusters,
//! from which only the units' own noise is taken.

use super::average::{AverageEffect, Expected, Means, Populations, Predicted, describe};
use super::passes::{Gather, Group, Walk};
use crate::cohort::{Arm, Cohort};
use crate::cure::CureModel;
use crate::effect::Effect;
use crate::estimand::Estimand;
use crate::joint::Spread;
use crate::outcome::ALONE;

/// What is gathered for one arm and side, by population and unit of the pool.
struct Sums<'a> {
    walk: &'a Walk<'a>,
    populations: &'a Populations,
    side: Estimand,
    model: &'a CureModel,
    /// Σω of each population.
    totals: Vec<f64>,
    /// Of the pool in order of time: position in the cohort, what the model expects, and the weight in a group.
    pool: Vec<(u32, Predicted, f64)>,
    /// Contributions to the mean, and shares in what the models expect of the groups.
    used: Vec<Vec<f64>>,
    shares: Vec<Vec<f64>>,
    expected: Vec<Expected>,
}

impl<'a> Sums<'a> {
    fn new(walk: &'a Walk<'a>, populations: &'a Populations, arm: Arm, side: Estimand) -> Sums<'a> {
        let (cohort, model) = (walk.cohort, &walk.models()[arm]);
        let pool = &walk.pools()[arm];
        let mut by_rank = vec![0; pool.len()];
        pool.units.iter().zip(0..).for_each(|(&i, m)| by_rank[pool.rank(m) as usize] = i);
        let expect = |i: u32| {
            let predicted = Predicted::of(model, &scaled(walk, i), side);
            let weight = predicted.weight * cohort.weight(i as usize);
            (i, predicted, weight)
        };
        let n = populations.names.len();
        let mut totals = vec![0.0; n];
        for (q, of) in populations.each().enumerate().filter(|(q, _)| is_defined(walk, *q, side)) {
            of.iter().for_each(|&p| totals[p as usize] += cohort.weight(walk.analysis.units[q] as usize));
        }
        Sums {
            walk,
            populations,
            side,
            model,
            totals,
            pool: by_rank.into_iter().map(expect).collect(),
            used: vec![vec![0.0; pool.len()]; n],
            shares: vec![vec![0.0; pool.len()]; n],
            expected: vec![Expected::new(cohort.n_covariates()); n],
        }
    }

    /// What the models expect of the groups of a population, less what they expect of its units.
    fn expected(&self, p: usize) -> Expected {
        let mut out = self.expected[p].clone();
        for ((i, predicted, _), &share) in self.pool.iter().zip(&self.shares[p]).filter(|(_, s)| **s > 0.0) {
            out.add(share, predicted, &scaled(self.walk, *i));
        }
        out
    }

    /// Contributions to the mean of a population, summed by cluster.
    fn by_cluster(&self, p: usize) -> Vec<(u32, f64)> {
        by_cluster(self.walk.cohort, self.pool.iter().zip(&self.used[p]).map(|((i, ..), v)| (*i, *v)))
    }
}

impl Gather for Sums<'_> {
    fn add(&mut self, group: &Group<'_>) {
        if !is_defined(self.walk, group.unit, self.side) {
            return;
        }
        let unit = self.walk.analysis.units[group.unit];
        let x = scaled(self.walk, unit);
        let own = Predicted::of(self.model, &x, self.side);
        let weigh = |(r, count): (u32, f64)| (r, count * self.pool[r as usize].2);
        let total: f64 = group.members().map(|member| weigh(member).1).sum();
        for &p in self.populations.of(group.unit) {
            let p = p as usize;
            let w = self.walk.cohort.weight(unit as usize) / self.totals[p];
            for (&r, v) in group.ranks.iter().zip(group.influence) {
                self.used[p][r as usize] += w * v;
            }
            if total > 0.0 {
                group.members().map(weigh).for_each(|(r, weight)| self.shares[p][r as usize] += w * weight / total);
            }
            self.expected[p].add(-w, &own, &x);
        }
    }
}

fn scaled(walk: &Walk<'_>, i: u32) -> Vec<f64> {
    walk.analysis.fit.description.metrics.cure.scaling.apply(walk.cohort.covariates(i as usize))
}

fn is_defined(walk: &Walk<'_>, q: usize, side: Estimand) -> bool {
    side == Estimand::Cure || walk.analysis.effects[q].time().is_some()
}

/// The averages of a run over these populations.
pub(super) fn averages(walk: &Walk<'_>, populations: &Populations) -> Vec<AverageEffect> {
    let (cohort, analysis) = (walk.cohort, walk.analysis);
    let fit = &analysis.fit;
    let gathered = walk.gather(|arm, side| Sums::new(walk, populations, arm, side));
    let known = walk.known();
    let mut out = Vec::new();
    for side in Estimand::BOTH {
        for (p, name) in populations.names.iter().enumerate() {
            let members: Vec<usize> =
                (0..analysis.units.len()).filter(|&q| populations.of(q).contains(&(p as u16))).collect();
            let there: Vec<usize> = members.iter().copied().filter(|&q| is_defined(walk, q, side)).collect();
            let of = gathered[side].each_ref().into_array();
            let means = (!there.is_empty()).then(|| {
                let mut means = between(walk, side, &there);
                let sums = of.map(|sums| sums.by_cluster(p));
                let expected = of.map(|sums| sums.expected(p));
                means.pool_variance = sums.each_ref().map(|s| s.iter().map(|(_, v)| v * v).sum());
                means.pool_covariance = shared(&sums);
                means.bias =
                    Some([0, 1].map(|z| (expected[z].value, expected[z].variance(&walk.models()[Arm::BOTH[z]], side))));
                means.know(&known, side, cohort.horizon(), fit.options.confidence);
                means
            });
            let (horizon, confidence) = (cohort.horizon(), fit.options.confidence);
            describe(&mut out, side, name, members.len(), means.as_ref(), horizon, confidence);
        }
    }
    out
}

/// Sums over clusters, by their number; a unit of no cluster is one.
fn by_cluster(cohort: &Cohort, values: impl Iterator<Item = (u32, f64)>) -> Vec<(u32, f64)> {
    let clusters = cohort.extras().cluster.as_ref();
    let mut all: Vec<(u32, f64)> = values.map(|(i, v)| (clusters.map_or(ALONE, |c| c[i as usize]), v)).collect();
    if clusters.is_none() {
        return all;
    }
    all.sort_by_key(|(c, _)| *c);
    all.chunk_by(|a, b| a.0 == b.0).map(|same| (same[0].0, same.iter().map(|(_, v)| v).sum())).collect()
}

/// Σ over clusters of the products of their sums in the two arms.
fn shared([control, treated]: &[Vec<(u32, f64)>; 2]) -> f64 {
    let mut sum = 0.0;
    for (c, v) in control.iter().filter(|(c, _)| *c != ALONE) {
        if let Ok(at) = treated.binary_search_by_key(c, |(c, _)| *c) {
            sum += v * treated[at].1;
        }
    }
    sum
}

/// Means of the units' estimates, and how the means vary because units do.
fn between(walk: &Walk<'_>, side: Estimand, there: &[usize]) -> Means {
    let (cohort, analysis) = (walk.cohort, walk.analysis);
    let value = |e: &Effect, z: Arm| match side {
        Estimand::Cure => (e.groups.cure[z].curve.survival, e.groups.cure[z].curve.survival_se()),
        Estimand::Time => {
            (e.groups.time[z].curve.mean_event_time().unwrap_or(0.0), e.groups.time[z].curve.mean_event_time_se())
        }
    };
    let weights: Vec<f64> = there.iter().map(|&q| cohort.weight(analysis.units[q] as usize)).collect();
    let total: f64 = weights.iter().sum();
    let of = Arm::BOTH
        .map(|z| -> Vec<(f64, Option<f64>)> { there.iter().map(|&q| value(&analysis.effects[q], z)).collect() });
    let mean = of.each_ref().map(|v| v.iter().zip(&weights).map(|(v, w)| w * v.0).sum::<f64>() / total);
    // ωᵢ (eᵢ − θ)/Σω of each unit, summed by cluster.
    let off = [0, 1].map(|z: usize| {
        let each = there.iter().zip(&of[z]).zip(&weights);
        by_cluster(cohort, each.map(|((&q, v), w)| (analysis.units[q], w * (v.0 - mean[z]) / total)))
    });
    let m = off[0].len() as f64;
    let free = m / (m - 1.0).max(1.0);
    let product = |a: usize, b: usize| free * off[a].iter().zip(&off[b]).map(|(x, y)| x.1 * y.1).sum::<f64>();
    let noise = [0, 1].map(|z: usize| {
        of[z].iter().zip(&weights).map(|(v, w)| w * w * v.1.map_or(0.0, |s| s * s)).sum::<f64>() / (total * total)
    });
    let n = there.len();
    let difference = of[0].iter().zip(&of[1]).zip(&weights);
    let spread: f64 = difference.map(|((c, t), w)| w * (t.0 - c.0 - mean[1] + mean[0]).powi(2)).sum();
    Means {
        n,
        mean,
        pool_variance: [0.0; 2],
        pool_covariance: 0.0,
        spread: Spread {
            variance: [0, 1].map(|z| n as f64 * (product(z, z) - noise[z])).into(),
            covariance: n as f64 * product(0, 1),
        },
        difference_variance: spread / total * n as f64 / (n as f64 - 1.0).max(1.0),
        bias: None,
        deals: None,
        least: [None; 2],
    }
}
