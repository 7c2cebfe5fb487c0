//! Runs jobs on all threads.

use crate::paper::Table;
use crate::record::{Experiment, Job, Record, Settings};
use crate::{accuracy, consistency, coverage, dataset, verdict, weights};
use dvim::internal::error::Error;
use dvim::internal::simulate::Scenario;
use dvim::internal::watch::Watch;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Smallest data set that every method can be run on at K = 100, whichever scenario assigns treatment.
pub const FEWEST_UNITS: usize = 1_000;

/// The jobs of a table.
pub fn table_jobs(settings: &Settings, table: Table, reps: usize) -> Vec<Job> {
    let experiment = if table.confounded() { Experiment::Confounded } else { Experiment::Base };
    let job = |rep| Scenario::PAPER.map(|s| Job::new(experiment, s, settings.n_units, rep));
    (0..reps).flat_map(job).collect()
}

/// Does one job.
pub fn run_job(settings: &Settings, job: &Job) -> Result<Record, Error> {
    match job.experiment {
        Experiment::Base | Experiment::Confounded => dataset::record(settings, job),
        Experiment::Consistency => consistency::record(settings, job),
        Experiment::Weights => weights::record(settings, job),
        Experiment::Accuracy => accuracy::record(settings, job),
        Experiment::Coverage => coverage::record(settings, job),
        Experiment::Verdict => verdict::record(settings, job),
    }
}

/// Why a study ended early.
#[derive(Debug)]
pub enum Stopped<E> {
    /// A data set could not be estimated.
    Job(String, Error),
    /// A record could not be kept.
    Keep(E),
    /// The watch said so.
    Cancelled,
}

/// Does the jobs that are not done yet, in their order, one on each thread. `keep` is given each record when it is
/// made, one at a time. Returns all records, old and new, by key.
pub fn run<E: Send>(
    settings: &Settings,
    mut jobs: Vec<Job>,
    mut done: BTreeMap<String, Record>,
    keep: impl FnMut(&Record) -> Result<(), E> + Send,
    watch: &dyn Watch,
) -> Result<BTreeMap<String, Record>, Stopped<E>> {
    jobs.sort_unstable();
    jobs.dedup();
    jobs.retain(|job| !done.contains_key(&job.key()));
    let next = AtomicUsize::new(0);
    let shared = Mutex::new((keep, Vec::<Record>::new(), None::<Stopped<E>>));
    watch.progress(STAGE, 0, jobs.len());
    let worker = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let made = if watch.cancelled() {
                Err(Stopped::Cancelled)
            } else {
                run_job(settings, job).map_err(|e| Stopped::Job(job.key(), e))
            };
            let mut guard = shared.lock().expect("no worker panicked");
            let (keep, new, stopped) = &mut *guard;
            if stopped.is_some() {
                return;
            }
            let kept = made.and_then(|record| keep(&record).map(|()| record).map_err(Stopped::Keep));
            match kept {
                Ok(record) => new.push(record),
                Err(why) => {
                    *stopped = Some(why);
                    return;
                }
            }
            watch.progress(STAGE, new.len(), jobs.len());
        }
    };
    rayon::scope(|scope| (0..rayon::current_num_threads()).for_each(|_| scope.spawn(|_| worker())));
    let (_, new, stopped) = shared.into_inner().expect("no worker panicked");
    match stopped {
        Some(why) => Err(why),
        None => {
            done.extend(new.into_iter().map(|r| (r.key.clone(), r)));
            Ok(done)
        }
    }
}

const STAGE: &str = "data sets";
