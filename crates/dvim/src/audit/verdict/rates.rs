//! How often each word was wrong, in the worlds of `dvim study verdict`.

use super::Support;
use crate::estimand::Estimand;

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

/// Worlds of the study.
pub const WORLDS: usize = 0;

/// Cure effects, then time effects. A test compares them with `docs/study/verdict.csv`.
pub const RATES: [[Rate; 4]; 2] = [[Rate { support: Support::Supported, n: 0, missed: 0 }; 4]; 2];

/// What a word was worth, in a sentence; `None` where the study says nothing of it.
pub fn line(support: Support, side: Estimand) -> Option<String> {
    let rate = RATES[side as usize].iter().find(|r| r.support == support && r.n > 0)?;
    let share = 100.0 * rate.missed as f64 / rate.n as f64;
    Some(format!(
        "In {WORLDS} simulated worlds {share:.0} % of the 95 % intervals under this word missed the truth ({} of {}).",
        rate.missed, rate.n
    ))
}
