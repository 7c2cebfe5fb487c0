//! Long work beside the interpreter: on threads of its own, with the lock released, open to Ctrl-C and to questions.

use crate::errors;
use dvim::internal::error::Error;
use dvim::internal::watch::Watch;
use dvim_bind::work::{Job, Waited, pool};
use pyo3::prelude::*;
use std::time::Duration;

/// Time between two looks at the keyboard, and after which progress is shown again.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs `work` without the interpreter lock, on threads of its own as [`run`] does.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let pool = pool(None).map_err(|e| errors::bug(&e))?;
    Ok(py.detach(|| pool.install(work)))
}

/// Runs `work` on `threads` threads of its own (all cores by default) while Python goes on listening. `progress` is
/// called with the stage, the steps done and their number.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&dyn Watch) -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let threads = dvim_io::threads::checked(threads).map_err(|e| errors::engine(py, e))?;
    let job = Job::start(Some(threads), work).map_err(|e| errors::bug(&e))?;
    let mut shown = None;
    loop {
        match py.detach(|| job.wait(PAUSE)) {
            Waited::Done(found) => return found.map_err(|e| errors::engine(py, e)),
            Waited::Broken(words) => return Err(errors::bug(&words)),
            Waited::NotYet => {}
        }
        let now = job.stage();
        let heard = py.check_signals().and_then(|()| match (progress, now) {
            (Some(progress), Some(now)) if shown != Some(now) => {
                shown = Some(now);
                progress.call1(now).map(|_| ())
            }
            _ => Ok(()),
        });
        if let Err(stop) = heard {
            py.detach(|| job.cancel());
            return Err(stop);
        }
    }
}
