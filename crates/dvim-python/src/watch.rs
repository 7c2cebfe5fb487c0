//! Long work beside the interpreter: on threads of its own, with the lock released, open to Ctrl-C and to questions.

use crate::errors;
use dvim::internal::error::Error;
use dvim::internal::watch::Watch;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time between two looks at the keyboard, and after which progress is shown again.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a cancelled run is waited for; then it is left to end by itself.
const GRACE: Duration = Duration::from_millis(700);

#[derive(Default)]
struct Watched {
    cancelled: AtomicBool,
    stage: Mutex<Option<(&'static str, usize, usize)>>,
}

impl Watch for Watched {
    fn progress(&self, stage: &'static str, done: usize, total: usize) {
        if let Ok(mut now) = self.stage.lock() {
            *now = Some((stage, done, total));
        }
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }
}

/// Runs `work` without the interpreter lock, on threads of its own as [`run`] does: the engine's shared threads are not
/// there in a forked child, which would wait for them forever.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let pool = rayon::ThreadPoolBuilder::new().build().map_err(|e| errors::bug(&e.to_string()))?;
    Ok(py.detach(|| pool.install(work)))
}

/// Runs `work` on `threads` threads of its own (all cores by default) while Python goes on listening. `progress` is
/// called with the stage, the steps done and their number. A pool is made for each call: it survives a fork of the
/// process.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&dyn Watch) -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(dvim_io::threads::checked(threads).map_err(|e| errors::engine(py, e))?)
        .build()
        .map_err(|e| errors::bug(&e.to_string()))?;
    let watched = Arc::new(Watched::default());
    let seen = Arc::clone(&watched);
    let (done, result) = channel();
    let thread = std::thread::spawn(move || {
        let found = pool.install(|| work(&*seen));
        let _ = done.send(found);
    });
    // A channel's end may be used by one thread at a time: it is moved in and out of the unlocked parts.
    let result = Mutex::new(result);
    let wait = |pause: Duration| py.detach(|| result.lock().expect("one thread waits").recv_timeout(pause));
    let mut shown = None;
    let outcome = loop {
        match wait(PAUSE) {
            Ok(found) => break found,
            Err(RecvTimeoutError::Disconnected) => {
                let words = match thread.join() {
                    Err(panic) => panic
                        .downcast_ref::<String>()
                        .cloned()
                        .or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()))
                        .unwrap_or_else(|| "unknown".into()),
                    Ok(()) => "a thread ended without a result".into(),
                };
                return Err(errors::bug(&words));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = watched.stage.lock().ok().and_then(|s| *s);
        let heard = py.check_signals().and_then(|()| match (progress, now) {
            (Some(progress), Some(now)) if shown != Some(now) => {
                shown = Some(now);
                progress.call1(now).map(|_| ())
            }
            _ => Ok(()),
        });
        if let Err(stop) = heard {
            watched.cancelled.store(true, Relaxed);
            let asked = Instant::now();
            while asked.elapsed() < GRACE && matches!(wait(PAUSE), Err(RecvTimeoutError::Timeout)) {}
            return Err(stop);
        }
    };
    outcome.map_err(|e| errors::engine(py, e))
}
