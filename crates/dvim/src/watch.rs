//! How a face follows a long run.

use crate::error::Error;

/// Where a long run stands, and whether it should stop. Every face brings its own.
///
/// ```
/// use dvim::{Options, Scenario, Watch, run, simulate};
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// #[derive(Default)]
/// struct Steps(AtomicUsize);
///
/// impl Watch for Steps {
///     fn progress(&self, _stage: &'static str, _done: usize, _total: usize) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// let (steps, world) = (Steps::default(), simulate(Scenario::TimeOnly, 500, false, 1));
/// run(&world.cohort, &Options::default(), &steps)?;
/// assert!(steps.0.into_inner() > 0);
/// # Ok::<(), dvim::Error>(())
/// ```
pub trait Watch: Sync {
    /// `done` of `total` steps of a stage are done.
    fn progress(&self, _stage: &'static str, _done: usize, _total: usize) {}

    /// Whether to give up.
    fn cancelled(&self) -> bool {
        false
    }

    /// Reports progress, and stops a run that was given up.
    fn step(&self, stage: &'static str, done: usize, total: usize) -> Result<(), Error> {
        self.progress(stage, done, total);
        if self.cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// Watches nothing.
pub struct Unwatched;

impl Watch for Unwatched {}
