//! How many threads a command may start.

use dvim::internal::error::{Error, Problem, ProblemKind};
use dvim::internal::setting::Setting;
use dvim::phrase;
use dvim_report::text::grouped;

/// Threads for each core, at most: more only wait for each other, and thousands of them take a machine down.
const FOR_EACH_CORE: usize = 4;

/// So many are allowed on any machine, so that a script for a large machine runs on a small one.
const ALWAYS: usize = 64;

/// The most threads on a machine with so many cores.
fn most(cores: usize) -> usize {
    ALWAYS.max(FOR_EACH_CORE * cores)
}

/// The number of threads that was asked for, 0 for all cores, or why it cannot be had.
pub fn checked(threads: Option<usize>) -> Result<usize, Error> {
    let most = most(std::thread::available_parallelism().map_or(1, usize::from));
    let (found, rule) = match threads {
        None => return Ok(0),
        Some(0) => (phrase![Setting::Threads, " is 0"], "at least one thread is needed".to_string()),
        Some(n) if n > most => (
            phrase![Setting::Threads, format!(" is {}", grouped(n))],
            format!("at most {} on this machine: {FOR_EACH_CORE} for each core, and {ALWAYS} on any", grouped(most)),
        ),
        Some(n) => return Ok(n),
    };
    let problem = Problem::error(ProblemKind::BadOption, found, rule, "leave it out to use all cores");
    Err(Error::Refused(vec![problem]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_bounded() {
        assert_eq!((checked(None), checked(Some(1)), checked(Some(64))), (Ok(0), Ok(1), Ok(64)));
        assert!(checked(Some(0)).is_err() && checked(Some(100_000)).is_err() && checked(Some(usize::MAX)).is_err());
        assert_eq!((most(1), most(2), most(128)), (64, 64, 512));
    }
}
