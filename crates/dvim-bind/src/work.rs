//! Long work beside an interpreter: on threads of its own, open to questions about its progress and to being stopped.

use dvim::internal::error::Error;
use dvim::internal::watch::Watch;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a stopped job is waited for; then it is left to end by itself.
const GRACE: Duration = Duration::from_millis(700);

/// Time between two looks at a stopped job.
const PAUSE: Duration = Duration::from_millis(20);

/// A stage, the steps done and their number.
pub type Stage = (&'static str, usize, usize);

#[derive(Default)]
struct Watched {
    cancelled: AtomicBool,
    stage: Mutex<Option<Stage>>,
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

/// Threads for one call: `None` is all cores. A pool is made for each call, because a forked child of the process has
/// none of its parent's threads and would wait for them forever. Fails with the words of a bug.
pub fn pool(threads: Option<usize>) -> Result<rayon::ThreadPool, String> {
    rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build().map_err(|e| e.to_string())
}

/// What became of a job.
pub enum Waited<T> {
    /// It goes on.
    NotYet,
    /// It ended.
    Done(Result<T, Error>),
    /// It panicked, with these words.
    Broken(String),
}

/// Work that was started.
pub struct Job<T> {
    watched: Arc<Watched>,
    // The end of a channel belongs to one thread at a time.
    result: Mutex<Receiver<Result<T, Error>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<T: Send + 'static> Job<T> {
    /// Starts `work` on `threads` threads of its own, all cores by default.
    pub fn start(
        threads: Option<usize>,
        work: impl FnOnce(&dyn Watch) -> Result<T, Error> + Send + 'static,
    ) -> Result<Job<T>, String> {
        let pool = pool(threads)?;
        let watched = Arc::new(Watched::default());
        let seen = Arc::clone(&watched);
        let (done, result) = channel();
        let thread = std::thread::Builder::new()
            .spawn(move || {
                let found = pool.install(|| work(&*seen));
                let _ = done.send(found);
            })
            .map_err(|e| e.to_string())?;
        Ok(Job { watched, result: Mutex::new(result), thread: Mutex::new(Some(thread)) })
    }

    /// Waits for it, at most so long. What it found is given once.
    pub fn wait(&self, pause: Duration) -> Waited<T> {
        let received = match self.result.lock() {
            Ok(result) => result.recv_timeout(pause),
            Err(_) => return Waited::Broken("two threads waited for one job".into()),
        };
        match received {
            Ok(found) => Waited::Done(found),
            Err(RecvTimeoutError::Timeout) => Waited::NotYet,
            Err(RecvTimeoutError::Disconnected) => {
                let thread = self.thread.lock().ok().and_then(|mut t| t.take());
                let panic = thread.and_then(|t| t.join().err());
                Waited::Broken(panic.map_or("a thread ended without a result".into(), |p| words_of(&*p)))
            }
        }
    }

    /// What it is at.
    pub fn stage(&self) -> Option<Stage> {
        self.watched.stage.lock().ok().and_then(|s| *s)
    }

    /// Asks it to end, and waits for that for a moment.
    pub fn cancel(&self) {
        self.watched.cancelled.store(true, Relaxed);
        let asked = Instant::now();
        while asked.elapsed() < GRACE && matches!(self.wait(PAUSE), Waited::NotYet) {}
    }
}

/// What a panic said.
pub fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_else(|| "unknown".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_for<T: Send + 'static>(job: &Job<T>) -> Waited<T> {
        job.wait(Duration::from_secs(20))
    }

    #[test]
    fn a_job_gives_its_result_once_and_says_where_it_is() {
        let job = Job::start(Some(2), |watch| {
            watch.progress("counting", 2, 3);
            Ok(rayon::current_num_threads())
        })
        .unwrap();
        assert!(matches!(wait_for(&job), Waited::Done(Ok(2))));
        assert_eq!(job.stage(), Some(("counting", 2, 3)));
    }

    #[test]
    fn a_cancelled_job_ends() {
        let job = Job::start(Some(1), |watch| {
            while !watch.cancelled() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err::<(), _>(Error::Cancelled)
        })
        .unwrap();
        assert!(matches!(job.wait(Duration::from_millis(5)), Waited::NotYet));
        job.cancel();
        // What it found was taken while it was waited for.
        assert!(matches!(wait_for(&job), Waited::Broken(_)));
    }

    #[test]
    fn a_panic_is_told_not_passed_on() {
        let job = Job::start(Some(1), |_| -> Result<(), Error> { panic!("number {}", 7) }).unwrap();
        assert!(matches!(wait_for(&job), Waited::Broken(words) if words == "number 7"));
    }
}
