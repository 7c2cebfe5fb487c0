//! How much memory a run needs, before it starts.

use crate::crossfit::{KEPT_COORDINATES, UNITS_AT_ONCE};
use crate::effect::Effect;
use crate::options::{AdjustedOptions, Estimator, Options};

/// Members of groups that are kept for an audit, at most: 4 bytes each.
const KEPT: usize = 750_000_000;

/// Units whose groups an audit of the adjusted estimator holds at a time.
const AUDITED: f64 = 65_536.0;

/// Bytes that a run on so many threads needs at its peak, the table that it is read from included.
pub fn memory_needed(n_units: usize, n_covariates: usize, options: &Options, audited: bool, threads: usize) -> u64 {
    let (n, p) = (n_units as f64, n_covariates as f64);
    match &options.estimator {
        Estimator::Paper => of_paper(n, p, options, audited),
        Estimator::Adjusted(adjusted) => of_adjusted(n, p, adjusted, !options.constraints.is_empty(), audited, threads),
    }
}

/// Columns of the table and the cohort's rows while both exist, then the cohort, the packed arms under both metrics,
/// the effects and, with an audit, the groups and the sums over them.
fn of_paper(n: f64, p: f64, options: &Options, audited: bool) -> u64 {
    let estimated = n * (1.0 - options.train_fraction);
    let reading = n * 8.0 * (2.0 * p + 8.0);
    let cohort = n * 8.0 * (p + 5.0);
    // Both pools, their points as packed under both metrics, and what packing one of four holds on the way.
    let packed = estimated * (40.0 + 2.0 * 24.0 * p + 10.0 * p);
    let effects = estimated * size_of::<Effect>() as f64;
    let members = 4.0 * estimated * options.group_size as f64;
    let groups = if audited && members <= KEPT as f64 { 4.0 * members + 32.0 * estimated } else { 0.0 };
    let sums = if audited { estimated * SUMS_BYTES } else { 0.0 };
    let held = cohort + effects + groups + f64::max(packed, sums);
    (96e6 + f64::max(reading, held)) as u64
}

/// Bytes that the sums of an audit take for each estimated unit: predictions, influences, shares and counts under both
/// metrics.
const SUMS_BYTES: f64 = 600.0;

/// What every stage holds, and the largest of three: the folds that are fitted at once, one on each thread; the indices
/// of all folds, where they are few enough to be kept from the choice of K to the matching; the audit.
///
/// The numbers are bytes for each unit. They were fitted to the peaks of 37 runs with n = 5,000 to 100,000, before
/// patients had curves, and raised for these by the peaks of the ten runs of the test.
fn of_adjusted(n: f64, p: f64, options: &AdjustedOptions, pool_is_whole: bool, audited: bool, threads: usize) -> u64 {
    let deals = options.for_units(n as usize).deals();
    let folds = deals.iter().copied().max().unwrap_or(1) as f64;
    let at_once = folds.min(threads as f64);
    let k = options.group_size.unwrap_or(options.largest_group) as f64;
    let pooled = if pool_is_whole { n } else { n.min(2.0 * options.pool_units() as f64) };
    let learned = n.min(2.0 * options.learning_units as f64);
    // Covariates as recorded and scaled, outcomes, pools.
    let cohort = 8.0 * (2.0 * p + 5.0) + 50.0;
    // Predictions; effects, twice while they are put in order where all folds are matched at once; what each deal adds.
    let effects = if n as usize > UNITS_AT_ONCE { 1300.0 } else { 2200.0 };
    let units = 200.0 + effects + 1500.0 * (deals.len() - 1) as f64;
    // What each fold's model says of each unit of the pools.
    let expected = pooled * 128.0 * folds;
    let fits = learned * (at_once * (500.0 + 18.0 * p) + 60.0);
    // One arm of one fold under one metric, for each unit of the arm.
    let index = 90.0 + 10.0 * p;
    let is_kept = 2.0 * folds * pooled * p <= KEPT_COORDINATES as f64;
    let indices = pooled * (if is_kept { 2.3 * folds * index } else { 0.0 } + at_once * index);
    let held_by_audit = 100.0 + 2.0 * k + at_once * (120.0 + 2.0 * k + 20.0 * p);
    let audit = if audited { held_by_audit * f64::min(n, AUDITED) } else { 0.0 };
    (1.05 * (21e6 + n * (cohort + units) + expected + fits.max(indices).max(audit))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGABYTE: u64 = 1 << 20;

    fn forecast(n: usize, p: usize, adjusted: AdjustedOptions, audited: bool, threads: usize) -> u64 {
        let options = Options { estimator: Estimator::Adjusted(adjusted), ..Options::default() };
        memory_needed(n, p, &options, audited, threads) / MEGABYTE
    }

    /// Peaks of resident memory, in MB (getrusage): at most 1.5 times each is forecast.
    #[test]
    fn peaks_of_the_adjusted_estimator_are_forecast() {
        let folds = |folds: usize| AdjustedOptions { splits: Some(folds), folds, ..AdjustedOptions::default() };
        let splits =
            |splits: usize, folds: usize| AdjustedOptions { splits: Some(splits), folds, ..AdjustedOptions::default() };
        for (n, p, options, audited, threads, peak) in [
            (20_000, 20, folds(10), true, 2, 218),
            (20_000, 20, folds(10), true, 1, 213),
            (20_000, 20, folds(10), false, 2, 217),
            (20_000, 20, folds(5), true, 2, 159),
            (20_000, 20, splits(20, 10), true, 2, 231),
            (20_000, 20, folds(20), true, 1, 113),
            (20_000, 5, folds(10), true, 2, 134),
            (5_000, 20, folds(50), true, 2, 200),
            (5_000, 3, folds(10), true, 2, 48),
            (5_000, 20, splits(40, 10), true, 2, 92),
        ] {
            let found = forecast(n, p, options.clone(), audited, threads);
            let what =
                format!("n = {n}, p = {p}, {} of {} splits, {threads} threads", options.folds, options.n_splits());
            assert!(peak <= found && 2 * found <= 3 * peak, "{what}: {found} MB forecast, {peak} MB taken");
        }
    }

    #[test]
    fn the_estimator_counts() {
        let paper = memory_needed(100_000, 20, &Options { group_size: 20, ..Options::paper() }, true, 2) / MEGABYTE;
        let few =
            forecast(100_000, 20, AdjustedOptions { splits: Some(2), folds: 2, ..AdjustedOptions::default() }, true, 2);
        let many = forecast(100_000, 20, AdjustedOptions { group_size: Some(2_000), ..Default::default() }, true, 2);
        assert!(few != paper && few < many, "{paper}, {few}, {many}");
    }
}
