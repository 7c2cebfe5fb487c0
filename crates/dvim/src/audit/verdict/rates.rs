//! How often each word was wrong, in the worlds of `dvim study verdict`.

use super::Support;
use crate::estimand::{ByEstimand, Estimand};

/// Analyses of the study that had a word, and how many of their intervals missed the true average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The word.
    pub support: Support,
    /// Analyses.
    pub n: usize,
    /// Intervals that missed.
    pub missed: usize,
}

const fn rate(support: Support, n: usize, missed: usize) -> Rate {
    Rate { support, n, missed }
}

/// Confidence level of its intervals.
pub const CONFIDENCE: f64 = 0.95;

/// Worlds of the study without an unmeasured confounder.
pub const WORLDS: usize = 54;

/// Over all worlds without an unmeasured confounder. A test compares them with `docs/study/verdict.csv`.
pub const RATES: ByEstimand<[Rate; 4]> = ByEstimand {
    cure: [
        rate(Support::Supported, 182, 14),
        rate(Support::Reserved, 28, 2),
        rate(Support::NotSettled, 46, 2),
        rate(Support::NotReliable, 68, 40),
    ],
    time: [
        rate(Support::Supported, 183, 6),
        rate(Support::Reserved, 14, 1),
        rate(Support::NotSettled, 66, 8),
        rate(Support::NotReliable, 61, 27),
    ],
};

/// What a word was worth, in a sentence; `None` where the study says nothing of it.
pub fn line(support: Support, side: Estimand) -> Option<String> {
    let rate = RATES[side].iter().find(|r| r.support == support && r.n > 0)?;
    let share = 100.0 * rate.missed as f64 / rate.n as f64;
    Some(format!(
        "In {WORLDS} simulated worlds {share:.0} % of the 95 % intervals under this word missed the truth ({} of {}).",
        rate.missed, rate.n
    ))
}
