//! Theorem 1 as an experiment: both errors fall towards zero as n and K grow with K = o(n).
//!
//! K = 50 · (n / 20,000)^⅔, so that K → ∞ and K/n → 0, and beside it K = 50 whatever n, which is not consistent: more
//! units make the group tighter, but its noise stays. Errors are taken over the first 2,000 estimation units of a data
//! set (units are drawn independently, so these are as good as any), which keeps a data set of 128,000 cheap.

use crate::dataset::options;
use crate::record::{Cell, Experiment, Job, Record, Settings};
use dvim::internal::compare::method::{Field, Space, Spaces};
use dvim::internal::error::Error;
use dvim::internal::fold::Fit;
use dvim::internal::options::Options;
use dvim::internal::simulate::{Scenario, try_simulate};
use dvim::internal::watch::Unwatched;

/// Sizes of the data sets.
pub const SIZES: [usize; 7] = [2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000];
/// Repetitions that are enough for this figure.
pub const MOST_REPS: usize = 20;
/// Name of the cells whose K grows.
pub const GROWING: &str = "growing";
/// Name of the cells whose K stays.
pub const FIXED: &str = "fixed";
const FIXED_K: usize = 50;
const QUERIES: usize = 2_000;

/// K at n.
pub fn group_size(n_units: usize) -> usize {
    (FIXED_K as f64 * (n_units as f64 / 20_000.0).powf(2.0 / 3.0)).round() as usize
}

/// The jobs of this experiment.
pub fn jobs(reps: usize) -> Vec<Job> {
    let mut out = Vec::new();
    for rep in 0..reps.min(MOST_REPS) {
        for n in SIZES {
            out.extend(Scenario::PAPER.map(|s| Job::new(Experiment::Consistency, s, n, rep)));
        }
    }
    out
}

/// The record of one of them.
pub fn record(settings: &Settings, job: &Job) -> Result<Record, Error> {
    let seed = job.seed(settings);
    let world = try_simulate(job.scenario(), job.n_units, false, seed)?;
    let fit = Fit::learn(&world.cohort, &Options { group_size: 1, ..options(seed) }, &Unwatched)?;
    let mut field = Field::new(&world.cohort, &fit);
    field.units.truncate(QUERIES);
    field.covariates.truncate(QUERIES * world.cohort.n_covariates());
    let growing = group_size(job.n_units);
    let sizes = [growing.min(FIXED_K), growing.max(FIXED_K)];
    let spaces = Spaces::Each {
        cure: Space::Metric(fit.description.metrics.cure.clone()),
        time: Space::Metric(fit.description.metrics.time.clone()),
    };
    let found = field.match_in(&spaces, sizes);
    let truth = |q: usize| world.truth[field.units[q] as usize];
    let cells = [(GROWING, growing), (FIXED, FIXED_K)].map(|(name, k)| {
        let effects = &found[usize::from(k != sizes[0])];
        let cure = effects.cure.iter().enumerate().map(|(q, c)| c - truth(q).cure_effect());
        let time = effects.time.iter().enumerate().map(|(q, t)| Some((*t)? - truth(q).time_effect()));
        Cell::of(name, k, cure, time)
    });
    Ok(Record { key: job.key(), cells: cells.to_vec(), intervals: None, verdicts: None })
}
