//! How much memory a run needs.

use crate::effect::Effect;
use crate::options::Options;

/// Members of groups that are kept for an audit, at most: 4 bytes each.
const KEPT: usize = 750_000_000;

/// Bytes that a run needs at its peak, the table that it is read from included: columns of the
/// table and the cohort's rows while both exist, then the cohort, the packed arms under both
/// metrics, the effects and, with an audit, the groups and the sums over them.
pub fn memory_needed(n_units: usize, n_covariates: usize, options: &Options, audited: bool) -> u64 {
    let (n, p) = (n_units as f64, n_covariates as f64);
    let estimated = n * (1.0 - options.train_fraction);
    let reading = n * 8.0 * (2.0 * p + 8.0);
    let cohort = n * 8.0 * (p + 5.0);
    // Both pools, their points as packed under both metrics, and what packing one of four holds on the way.
    let packed = estimated * (40.0 + 2.0 * 24.0 * p + 10.0 * p);
    let effects = estimated * std::mem::size_of::<Effect>() as f64;
    let members = 4.0 * estimated * options.group_size as f64;
    let groups = if audited && members <= KEPT as f64 { 4.0 * members + 32.0 * estimated } else { 0.0 };
    let sums = if audited { estimated * SUMS_BYTES } else { 0.0 };
    let held = cohort + effects + groups + f64::max(packed, sums);
    (96e6 + f64::max(reading, held)) as u64
}

/// Bytes that the sums of an audit take for each estimated unit: predictions, influences, shares and counts under both metrics.
const SUMS_BYTES: f64 = 600.0;
