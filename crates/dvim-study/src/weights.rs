//! Theorem 2 as an experiment: among weights of equal sum none gives a smaller Lipschitz bound than |β|, and the error
//! of matching rises as weights move away from it.
//!
//! The theorem bounds the Lipschitz constant of one arm's target under d_W by a constant times
//! `‖b‖_{W⁻¹} = √(Σ b_j² / w_j)`, b being that arm's coefficients of the cure or of the time part; under Σ w = c the
//! smallest is `Σ|b| / √c`, at w ∝ |b| and nowhere else (Cauchy–Schwarz). So the experiment takes one arm, the treated
//! one, whose coefficients are not all zero in any scenario, and weights of sum 1:
//!
//! - *moved*: `(1 − t)·|b|/Σ|b| + t·u`, u uniform on the simplex: a share t of the weight is put anywhere;
//! - *power*: `∝ |b|^q`; q = 1 is the theorem's, q = 0 is Euclidean distance *on the covariates that matter*.
//!
//! The *error* is that of the group's curve against the truth of the arm, with observed outcomes and K = 50. Its noise
//! does not depend on weights, so the *discrepancy* is given too: the same group's mean of the truth less the truth of
//! the unit, which is what the theorem bounds.

use crate::oracle::raw_metric;
use crate::record::{Cell, Experiment, Job, Record, Settings};
use dvim::internal::cohort::Arm;
use dvim::internal::error::Error;
use dvim::internal::group::Pool;
use dvim::internal::matching::Index;
use dvim::internal::metric::Metric;
use dvim::internal::simulate::{Scenario, try_simulate};

/// Shares of the weight that are moved.
pub const MOVED: [f64; 7] = [0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0];
/// Powers of the coefficients.
pub const POWERS: [f64; 7] = [0.0, 0.25, 0.5, 0.75, 1.5, 2.0, 3.0];
/// Repetitions that are enough for this figure.
pub const MOST_REPS: usize = 20;
/// Random weights that the bound is tried with, for each arm, part and scenario.
pub const TRIED: usize = 100_000;
const K: usize = 50;
const QUERIES: usize = 2_000;
const ARM: Arm = Arm::Treated;

/// The jobs of this experiment.
pub fn jobs(settings: &Settings, reps: usize) -> Vec<Job> {
    let job = |rep| Scenario::PAPER.map(|s| Job::new(Experiment::Weights, s, settings.n_units, rep));
    (0..reps.min(MOST_REPS)).flat_map(job).collect()
}

/// Name of the cell of a share that is moved.
pub fn moved_name(share: f64) -> String {
    format!("moved-{share}")
}

/// Name of the cell of a power.
pub fn power_name(power: f64) -> String {
    if power == 1.0 { moved_name(0.0) } else { format!("power-{power}") }
}

/// Name of the cell that has the discrepancy of another.
pub fn discrepancy_name(name: &str) -> String {
    format!("{name}-discrepancy")
}

/// `‖b‖_{W⁻¹}`, with 0/0 = 0: the part of the Lipschitz bound that depends on the weights.
pub fn bound(coefficients: &[f64], weights: &[f64]) -> f64 {
    let term = |(b, w): (&f64, &f64)| if *b == 0.0 { 0.0 } else { b * b / w };
    coefficients.iter().zip(weights).map(term).sum::<f64>().sqrt()
}

/// Non-negative weights of sum 1, uniform on the simplex: exponentials over their sum.
fn simplex(draws: &mut Stream, p: usize) -> Vec<f64> {
    let mut w: Vec<f64> = (0..p).map(|_| -draws.uniform().ln()).collect();
    let sum: f64 = w.iter().sum();
    w.iter_mut().for_each(|v| *v /= sum);
    w
}

/// SplitMix64: enough to place weights at random.
struct Stream(u64);

impl Stream {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((x ^ (x >> 31)) >> 11) as f64 + 0.5) * 2f64.powi(-53)
    }
}

/// Weights of sum 1 in proportion to `|b|^power`; zero where b is.
fn power_weights(coefficients: &[f64], power: f64) -> Vec<f64> {
    let raw: Vec<f64> = coefficients.iter().map(|b| if *b == 0.0 { 0.0 } else { b.abs().powf(power) }).collect();
    let sum: f64 = raw.iter().sum();
    raw.iter().map(|w| w / sum).collect()
}

/// How random weights did against |b|.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundTrial {
    /// The scenario.
    pub scenario: Scenario,
    /// The arm.
    pub arm: Arm,
    /// "cure" or "time".
    pub part: &'static str,
    /// Weights that were tried.
    pub n_tried: usize,
    /// Smallest ratio of their bound to that of |b|, of weights anywhere on the simplex.
    pub smallest_anywhere: f64,
    /// The same of weights that move a share of at most 5 % away from |b|.
    pub smallest_nearby: f64,
    /// Weights whose bound was smaller than that of |b|, beyond round-off.
    pub n_smaller: usize,
}

/// Tries random weights on the bound of every arm, part and scenario that has a coefficient.
pub fn try_bounds(seed: u64) -> Vec<BoundTrial> {
    let mut out = Vec::new();
    for scenario in Scenario::PAPER {
        for arm in Arm::BOTH {
            let (cure, time) = scenario.coefficients(arm).expect("the paper's scenarios are linear");
            for (part, b) in [("cure", cure), ("time", time)] {
                if b.iter().all(|v| *v == 0.0) {
                    continue;
                }
                let mut draws = Stream(seed ^ (out.len() as u64) << 32);
                let best = power_weights(&b, 1.0);
                let least = bound(&b, &best);
                let mut trial = BoundTrial {
                    scenario,
                    arm,
                    part,
                    n_tried: TRIED,
                    smallest_anywhere: f64::INFINITY,
                    smallest_nearby: f64::INFINITY,
                    n_smaller: 0,
                };
                for i in 0..TRIED {
                    let u = simplex(&mut draws, b.len());
                    let share = if i % 2 == 0 { 1.0 } else { 0.05 * draws.uniform() };
                    let w: Vec<f64> = best.iter().zip(&u).map(|(a, u)| (1.0 - share) * a + share * u).collect();
                    let ratio = bound(&b, &w) / least;
                    let smallest = if i % 2 == 0 { &mut trial.smallest_anywhere } else { &mut trial.smallest_nearby };
                    *smallest = smallest.min(ratio);
                    trial.n_smaller += usize::from(ratio < 1.0 - 1e-12);
                }
                out.push(trial);
            }
        }
    }
    out
}

/// The record of one job.
pub fn record(settings: &Settings, job: &Job) -> Result<Record, Error> {
    let seed = job.seed(settings);
    let world = try_simulate(job.scenario(), job.n_units, false, seed)?;
    let cohort = &world.cohort;
    let p = cohort.n_covariates();
    let pool = Pool::new(cohort, cohort.units_of(ARM));
    let pool_covariates = pool.covariates(cohort);
    let n_queries = QUERIES.min(cohort.n_units());
    let queries = &cohort.all_covariates()[..n_queries * p];
    let truth = |i: usize| world.truth[i].arms[ARM];
    let member_truth: Vec<_> = pool.units.iter().map(|&i| truth(i as usize)).collect();
    // Of each query: (error, discrepancy) of Ŝ(H) and of CMET.
    let cure = |metric: &Metric| -> Vec<(f64, f64)> {
        Index::build(&metric.place(&pool_covariates)).nearest_map(
            &metric.place(queries),
            K,
            Vec::new,
            |scratch, q, members, _| {
                let target = truth(q).cure_probability;
                let mean = members.iter().map(|&m| member_truth[m as usize].cure_probability).sum::<f64>() / K as f64;
                (pool.summary(members, scratch).survival - target, mean - target)
            },
        )
    };
    let time = |metric: &Metric| -> Vec<(Option<f64>, f64)> {
        Index::build(&metric.place(&pool_covariates)).nearest_map(
            &metric.place(queries),
            K,
            Vec::new,
            |scratch, q, members, _| {
                let target = truth(q).mean_event_time;
                let (mut sum, mut weight) = (0.0, 0.0);
                for t in members.iter().map(|&m| &member_truth[m as usize]) {
                    sum += (1.0 - t.cure_probability) * t.mean_event_time;
                    weight += 1.0 - t.cure_probability;
                }
                (pool.summary(members, scratch).mean_event_time().map(|m| m - target), sum / weight - target)
            },
        )
    };
    let (b, l) = job.scenario().coefficients(ARM).expect("the paper's scenarios are linear");
    let mut draws = Stream(seed);
    let away = [simplex(&mut draws, p), simplex(&mut draws, p)];
    let mut cells = Vec::new();
    let mut measure = |name: &str, weights: [Vec<f64>; 2]| {
        let [for_cure, for_time] = weights.map(raw_metric);
        let (cure, time) = (cure(&for_cure), time(&for_time));
        cells.push(Cell::of(name, K, cure.iter().map(|e| e.0), time.iter().map(|e| e.0)));
        cells.push(Cell::of(&discrepancy_name(name), K, cure.iter().map(|e| e.1), time.iter().map(|e| Some(e.1))));
    };
    for share in MOVED {
        let mixed = |b: &[f64], u: &[f64]| {
            power_weights(b, 1.0).iter().zip(u).map(|(a, u)| (1.0 - share) * a + share * u).collect()
        };
        measure(&moved_name(share), [mixed(&b, &away[0]), mixed(&l, &away[1])]);
    }
    for power in POWERS {
        measure(&power_name(power), [power_weights(&b, power), power_weights(&l, power)]);
    }
    Ok(Record { key: job.key(), cells, intervals: None, verdicts: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_smallest_at_the_coefficients() {
        let b = [0.5, -0.2, 0.0, 1.0];
        let best = power_weights(&b, 1.0);
        assert!((best.iter().sum::<f64>() - 1.0).abs() < 1e-15);
        // Σ|b| / √c, here with c = 1.
        assert!((bound(&b, &best) - 1.7).abs() < 1e-14);
        assert_eq!(bound(&b, &[1.0, 0.0, 0.0, 0.0]), f64::INFINITY);
        for trial in try_bounds(7) {
            assert_eq!(trial.n_smaller, 0, "{trial:?}");
            assert!(trial.smallest_nearby >= 1.0 - 1e-12 && trial.smallest_anywhere > 1.0);
        }
    }
}
