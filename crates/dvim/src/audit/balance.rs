//! Are the arms comparable? Balance of the covariates before and after matching under each metric, and, where averages
//! are corrected, under the weights that they use; how often each patient is used, and who has no comparable patient in
//! the other arm.
//!
//! A unit j of the pool of arm z has the weight `w_j`, the sum over the groups of the estimated units of its share in
//! the group. With these weights the two pools stand for the same units, so their covariates should agree with each
//! other: a covariate that is matched exactly agrees exactly. Where all groups have K places the weights are 1/K of the
//! number of groups that the unit is in. Sums over groups
//! are sums over units with weights, so everything here is O(nK) to count and O(n p log n) to compare, whatever the
//! number of groups.
//!
//! - standardised difference `(x̄₁ − x̄₀)/√((s₁² + s₀²)/2)`, the s being those before matching, so that one scale serves
//!   both;
//! - variance ratio `s₁²/s₀²`, weighted variances `Σ w (x − x̄)²/(Σ w − Σ w²/Σ w)` [as cobalt];
//! - KS, the largest distance of the two weighted distribution functions;
//! - effective sample size `(Σ w)²/Σ w²` [Kish 1965].

use super::passes::{Gather, Group, Walk, part};
use crate::cohort::{Arm, Cohort};
use crate::compare::{self, logistic};
use crate::effect::Four;
use crate::estimand::Estimand;
use rayon::prelude::*;

/// Agreement of one covariate between treated and control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Standardised difference, treated less control.
    pub difference: f64,
    /// Variance of the treated over that of the controls; `None` where the latter is 0.
    pub variance_ratio: Option<f64>,
    /// Kolmogorov–Smirnov distance.
    pub ks: f64,
}

/// One covariate.
#[derive(Clone, Debug, PartialEq)]
pub struct CovariateBalance {
    /// Its name.
    pub covariate: String,
    /// Among the estimation units as they are.
    pub before: Agreement,
    /// In the groups matched for cure.
    pub cure: Agreement,
    /// In the groups matched for time.
    pub time: Agreement,
    /// Weighted as the averages weigh what patients' outcomes add; `None` where averages are those of the groups.
    pub average: Option<Agreement>,
}

/// How the units of one pool are used under one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Uses {
    /// The arm.
    pub arm: Arm,
    /// The metric.
    pub side: Estimand,
    /// For each unit of the pool, in order: its weight. Of groups of one size, the number of groups that it is in,
    /// less where it shares a place; smaller groups count more, so that each group counts as much as the largest.
    pub counts: Vec<f64>,
    /// Positions in the cohort of the units of the pool.
    pub units: Vec<u32>,
    /// Effective sample size.
    pub effective_size: f64,
    /// Units that are in no group.
    pub n_unused: usize,
    /// The most that a unit counts.
    pub most: f64,
}

/// Where treated and control overlap in the propensity score.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlap {
    /// 1, 25, 50, 75 and 99 % quantiles of P(treated | x), control first.
    pub quantiles: [[f64; 5]; 2],
    /// Share of all units with a score below 0.05 or above 0.95.
    pub extreme_share: f64,
    /// Share of the units of each arm outside the range of the other, control first.
    pub outside_share: [f64; 2],
    /// Whether the logistic fit converged.
    pub converged: bool,
}

/// All of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Balance {
    /// Each covariate.
    pub covariates: Vec<CovariateBalance>,
    /// Control cure, control time, treated cure, treated time.
    pub uses: Vec<Uses>,
    /// 50, 90 and 99 % quantiles of the group diameters, in the order of `uses`.
    pub diameters: [[f64; 3]; 4],
    /// 50, 90 and 99 % quantiles of the distance to the nearest unit of the other arm; cure metric, time metric.
    pub nearest_other: [[f64; 3]; 2],
    /// Units whose groups were looked through: all that are estimated, or a sample of them.
    pub n_units: usize,
    /// The distance from which a unit counts as having no comparable patient; cure metric, time metric.
    pub limit: [Option<f64>; 2],
    /// Positions in the cohort of the units beyond that limit under either metric, with both ratios distance/limit.
    pub alone: Vec<(u32, [f64; 2])>,
    /// Propensity overlap; `None` where the model cannot be fitted.
    pub overlap: Option<Overlap>,
}

/// A unit has no comparable patient when its nearest one of the other arm is farther than this many times the distance
/// within which 95 % of units have one of their own arm. Twice, because the other arm may be smaller: with an effective
/// dimension of 2 a quarter of the units doubles the distances.
pub const FAR: f64 = 2.0;

impl Balance {
    /// The balance of a run.
    pub fn of(walk: &Walk<'_>) -> Balance {
        let seen = walk.gather(|arm, side| Counts::new(walk, arm, side));
        Balance::from_counts(walk, part(&seen, |s| s), None)
    }

    /// The same from what the walk gathered. `average` is what a unit of the cohort counts in the averages, where that
    /// is not by groups.
    pub(super) fn from_counts(
        walk: &Walk<'_>,
        found: Four<&Counts>,
        average: Option<&(dyn Fn(u32) -> f64 + Sync)>,
    ) -> Balance {
        let (cohort, analysis) = (walk.cohort, walk.analysis);
        let uses: Vec<Uses> = Arm::BOTH
            .into_iter()
            .flat_map(|z| Estimand::BOTH.map(|s| (z, s)))
            .map(|(arm, side)| {
                let pool = &walk.pools()[arm];
                let by_rank = &found[side][arm].by_rank;
                let counts: Vec<f64> = (0..pool.len() as u32).map(|m| by_rank[pool.rank(m) as usize]).collect();
                let (mut sum, mut square) = (0.0, 0.0);
                for &w in &counts {
                    sum += w;
                    square += w * w;
                }
                Uses {
                    arm,
                    side,
                    units: pool.units.clone(),
                    effective_size: if square > 0.0 { sum * sum / square } else { 0.0 },
                    n_unused: counts.iter().filter(|c| **c == 0.0).count(),
                    most: counts.iter().copied().fold(0.0, f64::max),
                    counts,
                }
            })
            .collect();
        let covariates =
            (0..cohort.n_covariates()).into_par_iter().map(|j| covariate_balance(cohort, &uses, average, j)).collect();

        let mut nearest_other = [[0.0; 3]; 2];
        let mut limit = [None; 2];
        let looked_at = walk.looked_at();
        let mut ratios = vec![[0.0; 2]; looked_at.len()];
        for side in Estimand::BOTH {
            let s = side as usize;
            let of = |q: usize, own: bool| {
                let z = cohort.arm(analysis.units[looked_at[q]] as usize);
                found[side][if own { z } else { z.other() }].nearest[q]
            };
            let all = |own: bool| -> Vec<f64> {
                (0..looked_at.len()).map(|q| of(q, own)).filter(|d| d.is_finite()).collect()
            };
            nearest_other[s] = quantiles(&all(false), [0.5, 0.9, 0.99]);
            let own = all(true);
            // With a weight vector of zeros all distances are 0, and nobody is far.
            let at = quantiles(&own, [0.95])[0] * FAR;
            limit[s] = (!own.is_empty() && at > 0.0).then_some(at);
            if let Some(at) = limit[s] {
                (0..ratios.len()).for_each(|q| ratios[q][s] = of(q, false) / at);
            }
        }
        let alone = (0..ratios.len())
            .filter(|&q| ratios[q].iter().any(|r| *r > 1.0))
            .map(|q| (analysis.units[looked_at[q]], ratios[q]))
            .collect();
        let quantiles_of = |(arm, side): (Arm, Estimand)| {
            let diameters = analysis.effects.iter().map(|e| e.groups[side][arm].diameter);
            quantiles(&diameters.collect::<Vec<f64>>(), [0.5, 0.9, 0.99])
        };
        let (c, t) = (Arm::Control, Arm::Treated);
        let diameters =
            [(c, Estimand::Cure), (c, Estimand::Time), (t, Estimand::Cure), (t, Estimand::Time)].map(quantiles_of);
        let n_units = looked_at.len();
        Balance { n_units, covariates, uses, diameters, nearest_other, limit, alone, overlap: overlap(cohort) }
    }
}

/// How often each unit of a pool is used, and how near the members are.
pub(super) struct Counts {
    /// By rank: the weight of a unit of the pool.
    by_rank: Vec<f64>,
    /// The most places that a group has.
    largest: f64,
    /// For each estimated unit the distance to the nearest member that is not the unit itself.
    nearest: Vec<f64>,
}

impl Counts {
    pub(super) fn new(walk: &Walk<'_>, arm: Arm, side: Estimand) -> Counts {
        let nearest = Vec::with_capacity(walk.analysis.units.len());
        let largest = walk.analysis.fit.first().folds.iter().map(|f| f.group_size[side]).max().unwrap_or(1) as f64;
        Counts { by_rank: vec![0.0; walk.pools()[arm].len()], largest, nearest }
    }
}

impl Gather for Counts {
    fn add(&mut self, group: &Group<'_>) {
        // 1 where all groups have K places, so that weights are then whole numbers.
        let scale = self.largest / group.size();
        group.members().for_each(|(r, count)| self.by_rank[r as usize] += scale * count);
        self.nearest.push(group.nearest);
    }
}

/// One covariate in both pools: values in the order of the pools, and who comes when they are in order.
struct Values {
    /// Control, treated.
    of: [Vec<f64>; 2],
    /// Arm and position in the pool, ascending by value; ties as they stand.
    order: Vec<(u8, u32)>,
}

fn covariate_balance(
    cohort: &Cohort,
    uses: &[Uses],
    average: Option<&(dyn Fn(u32) -> f64 + Sync)>,
    j: usize,
) -> CovariateBalance {
    let of = Arm::BOTH
        .map(|z| -> Vec<f64> { uses[2 * z.index()].units.iter().map(|&i| cohort.covariates(i as usize)[j]).collect() });
    let mut order: Vec<(u8, u32)> =
        (0..2).flat_map(|z| (0..of[z as usize].len() as u32).map(move |m| (z, m))).collect();
    let value = |&(z, m): &(u8, u32)| of[z as usize][m as usize];
    order.sort_by(|a, b| value(a).total_cmp(&value(b)));
    let values = Values { of, order };
    let ones = Arm::BOTH.map(|z| vec![1.0; uses[2 * z.index()].units.len()]);
    let plain = [&ones[0][..], &ones[1][..]];
    let after = |side: Estimand| Arm::BOTH.map(|z| &uses[2 * z.index() + side as usize].counts[..]);
    let spread = {
        let [c, t] = [0, 1].map(|z| moments(&values.of[z], Some(plain[z])).1);
        (0.5 * (c + t)).sqrt()
    };
    CovariateBalance {
        covariate: cohort.names()[j].clone(),
        before: agreement(&values, plain, spread),
        cure: agreement(&values, after(Estimand::Cure), spread),
        time: agreement(&values, after(Estimand::Time), spread),
        average: average.map(|weigh| {
            let weights =
                Arm::BOTH.map(|z| -> Vec<f64> { uses[2 * z.index()].units.iter().map(|&i| weigh(i)).collect() });
            agreement(&values, [&weights[0], &weights[1]], spread)
        }),
    }
}

/// Mean and variance, weighted where there are weights.
pub(super) fn moments(values: &[f64], weights: Option<&[f64]>) -> (f64, f64) {
    let n = values.len() as f64;
    let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
    let (sum, square) = weights.map_or((n, n), |w| w.iter().fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w)));
    let mean = values.iter().enumerate().map(|(i, x)| weight(i) * x).sum::<f64>() / sum;
    let spread: f64 = values.iter().enumerate().map(|(i, x)| weight(i) * (x - mean) * (x - mean)).sum();
    let free = sum - square / sum;
    (mean, if free > 0.0 { spread / free } else { 0.0 })
}

fn agreement(values: &Values, weights: [&[f64]; 2], spread: f64) -> Agreement {
    let [(c, vc), (t, vt)] = [0, 1].map(|z| moments(&values.of[z], Some(weights[z])));
    Agreement {
        difference: if spread > 0.0 { (t - c) / spread } else { 0.0 },
        variance_ratio: (vc > 0.0).then(|| vt / vc),
        ks: kolmogorov_smirnov(values, weights),
    }
}

fn kolmogorov_smirnov(values: &Values, weights: [&[f64]; 2]) -> f64 {
    let totals = weights.map(|w| w.iter().sum::<f64>());
    let (mut distance, mut most) = (0.0, 0.0);
    let value = |&(z, m): &(u8, u32)| values.of[z as usize][m as usize];
    for same in values.order.chunk_by(|a, b| value(a) == value(b)) {
        let step = |&(z, m): &(u8, u32)| {
            let share = weights[z as usize][m as usize] / totals[z as usize];
            if z == 0 { -share } else { share }
        };
        distance += same.iter().map(step).sum::<f64>();
        most = f64::max(most, f64::abs(distance));
    }
    most
}

/// Quantiles by position, of values in any order; zeros where there is none.
pub(super) fn quantiles<const N: usize>(values: &[f64], at: [f64; N]) -> [f64; N] {
    let n = values.len();
    // Whole numbers in the order of `total_cmp`, and back: where the sign is set, all other bits are turned.
    let turned = |bits: i64| bits ^ ((bits >> 63) & i64::MAX);
    let mut values: Vec<i64> = values.iter().map(|v| turned(v.to_bits() as i64)).collect();
    // What a sorted list has at these places, without sorting all of it: parts before a place that is found stay before
    // it.
    let mut from = 0;
    at.map(|p| {
        if n == 0 {
            return 0.0;
        }
        let place = ((n - 1) as f64 * p).round() as usize;
        if place < from {
            // Not ascending, or the same place again.
            return f64::from_bits(turned(*values[..from].select_nth_unstable(place).1) as u64);
        }
        let found = *values[from..].select_nth_unstable(place - from).1;
        from = place;
        f64::from_bits(turned(found) as u64)
    })
}

fn overlap(cohort: &Cohort) -> Option<Overlap> {
    let treated: Vec<bool> = (0..cohort.n_units()).map(|i| cohort.arm(i) == Arm::Treated).collect();
    let options = compare::FitOptions::default();
    let fit = logistic::fit(cohort.all_covariates(), cohort.n_covariates(), &treated, &options).ok()?;
    let score = fit.score();
    let of: Vec<f64> = (0..cohort.n_units()).map(|i| score.evaluate(cohort.covariates(i))).collect();
    let by_arm = [false, true]
        .map(|z| -> Vec<f64> { of.iter().zip(&treated).filter(|(_, t)| **t == z).map(|(p, _)| *p).collect() });
    let range = by_arm.each_ref().map(|v| {
        (v.iter().copied().fold(f64::INFINITY, f64::min), v.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    });
    let share = |n: usize, of: usize| n as f64 / of.max(1) as f64;
    let outside_share = [0, 1].map(|z| {
        let (low, high) = range[1 - z];
        share(by_arm[z].iter().filter(|p| **p < low || **p > high).count(), by_arm[z].len())
    });
    Some(Overlap {
        extreme_share: share(of.iter().filter(|p| !(0.05..=0.95).contains(*p)).count(), of.len()),
        outside_share,
        quantiles: by_arm.map(|v| quantiles(&v, [0.01, 0.25, 0.5, 0.75, 0.99])),
        converged: fit.certificate.converged,
    })
}
