//! Power over patients and the end of the study, and what more of either buys.
//!
//! The power of a cell is that of a normal law with the mean and the standard deviation of the statistic over
//! `TRIALS` trials, the same ones in every cell as far as they go; an estimator's statistic is what the nearest
//! size's regression expects of the cheap ones, with the variance of its residuals (`controlled.rs`).

use super::analysis::{by_truth, crude, followed};
use super::asked::{Design, Method};
use super::controlled::{Cheap, Controlled};
use super::power::Share;
use super::trial::Trial;
use super::world::{OfPatient, World, normal_cdf};
use dvim::internal::error::Error;
use dvim::internal::interval::two_sided;
use dvim::internal::watch::Watch;
use rayon::prelude::*;
use serde::Serialize;

/// Trials of a cell.
const TRIALS: usize = 300;
/// Trials that gains are told from.
const FOR_GAINS: usize = 1_000;
/// Ends of the study that are looked at.
const ENDS: usize = 6;

/// Power over patients and the end of the study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Surface {
    /// Ends of the study, ascending.
    pub ends: Vec<f64>,
    /// Patients, ascending.
    pub sizes: Vec<usize>,
    /// Power for π and for Δ: for each end, of each size.
    pub power: [Vec<Vec<f64>>; 2],
    /// Monte Carlo standard error of a cell, the largest there is.
    pub mc_se: f64,
}

/// What more follow-up and more patients buy, at one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gains {
    /// The size: of those asked for the one nearest to the power that is wanted.
    pub n: usize,
    /// Gain in power for π and Δ with later end of the study.
    pub time: [Share; 2],
    /// Gain in power for π and Δ with more patients.
    pub patients: [Share; 2],
}

type Control<'a> = &'a dyn Fn(usize) -> Option<&'a Controlled>;

/// Statistics of the analysis in trials of one size and end: expected ones, and the variance around them.
fn statistics(
    design: &Design,
    run: Option<&[OfPatient]>,
    (n, end, trials): (usize, f64, usize),
    control: Control<'_>,
) -> (Vec<[f64; 3]>, [f64; 3]) {
    let design = Design { study_end: end, ..design.clone() };
    let world = World::new(&design, run, true);
    let follow = followed(&world);
    let one = |r: usize| -> Cheap {
        let trial = Trial::draw(&world, n, r);
        match design.analysis {
            Method::Crude => [[0.0; 3], crude(&trial).statistics()],
            _ => [by_truth(&trial, &world, &follow).statistics(), crude(&trial).statistics()],
        }
    };
    let cheap: Vec<Cheap> = (0..trials).into_par_iter().map(one).collect();
    match control(n) {
        None => (cheap.iter().map(|c| c[1]).collect(), [0.0; 3]),
        Some(control) => {
            (cheap.iter().map(|c| control.expected(c)).collect(), std::array::from_fn(|k| control.variance(k)))
        }
    }
}

/// Power of a normal statistic, and the slope of that in its mean.
fn of_normal(mean: f64, sd: f64, z: f64) -> f64 {
    normal_cdf((mean - z) / sd) + normal_cdf((-mean - z) / sd)
}

impl Surface {
    /// Draws the surface; `None` where a later end follows nobody longer up to H.
    pub(super) fn of(
        design: &Design,
        run: Option<&[OfPatient]>,
        control: Control<'_>,
        watch: &dyn Watch,
    ) -> Result<Option<Surface>, Error> {
        let first = design.horizon.max(design.accrual);
        let last = design.accrual + design.horizon;
        if last - first < 1e-6 * design.horizon || design.sizes.len() < 2 {
            return Ok(None);
        }
        let z = two_sided(1.0 - design.alpha);
        let ends: Vec<f64> = (0..ENDS).map(|i| first + (last - first) * i as f64 / (ENDS - 1) as f64).collect();
        let mut power = [Vec::new(), Vec::new()];
        let mut mc_se = 0f64;
        for (i, &end) in ends.iter().enumerate() {
            watch.step("surface", i, ENDS)?;
            let mut of_end = [Vec::new(), Vec::new()];
            for &n in &design.sizes {
                let (found, variance) = statistics(design, run, (n, end, TRIALS), control);
                for (k, of_end) in of_end.iter_mut().enumerate() {
                    let mean = found.iter().map(|t| t[k]).sum::<f64>() / found.len() as f64;
                    let spread =
                        found.iter().map(|t| (t[k] - mean) * (t[k] - mean)).sum::<f64>() / (found.len() - 1) as f64;
                    let sd = (spread + variance[k]).sqrt().max(1e-9);
                    of_end.push(of_normal(mean, sd, z));
                    // The slope of the normal law at its steepest, 0.4 by standard deviation.
                    mc_se = mc_se.max(0.4 / (TRIALS as f64).sqrt());
                }
            }
            power.iter_mut().zip(of_end).for_each(|(p, of)| p.push(of));
        }
        watch.step("surface", ENDS, ENDS)?;
        Ok(Some(Surface { ends, sizes: design.sizes.clone(), power, mc_se }))
    }

    /// Patients that reach a power at each end, by straight lines over √n; only ends at which the sizes cross it.
    pub fn contour(&self, k: usize, wanted: f64) -> Vec<(f64, f64)> {
        let root: Vec<f64> = self.sizes.iter().map(|n| (*n as f64).sqrt()).collect();
        let cross = |power: &Vec<f64>| {
            let i = (1..power.len()).find(|&i| power[i - 1] < wanted && power[i] >= wanted)?;
            let share = (wanted - power[i - 1]) / (power[i] - power[i - 1]);
            let at = root[i - 1] + share * (root[i] - root[i - 1]);
            Some(at * at)
        };
        self.ends.iter().zip(&self.power[k]).filter_map(|(end, power)| Some((*end, cross(power)?))).collect()
    }
}

impl Gains {
    pub(super) fn of(
        design: &Design,
        run: Option<&[OfPatient]>,
        n: usize,
        control: Control<'_>,
        watch: &dyn Watch,
    ) -> Result<Gains, Error> {
        watch.step("gains", 0, 3)?;
        let z = two_sided(1.0 - design.alpha);
        let shares = |n: usize, end: f64| {
            let (found, variance) = statistics(design, run, (n, end, FOR_GAINS), control);
            let share = |t: f64, v: f64| match v > 0.0 {
                true => of_normal(t, v.sqrt(), z),
                false => f64::from(u8::from(t.abs() > z)),
            };
            [0, 1].map(|k| found.iter().map(|t| share(t[k], variance[k])).collect::<Vec<f64>>())
        };
        let now = shares(n, design.study_end);
        let later = shares(n, design.study_end + design.more_time);
        let larger = shares(n + design.more_patients, design.study_end);
        let gain = |more: &[Vec<f64>; 2], k: usize| {
            let each: Vec<f64> = more[k].iter().zip(&now[k]).map(|(a, b)| a - b).collect();
            Share::mean(&each).expect("many trials")
        };
        Ok(Gains { n, time: [gain(&later, 0), gain(&later, 1)], patients: [gain(&larger, 0), gain(&larger, 1)] })
    }
}
