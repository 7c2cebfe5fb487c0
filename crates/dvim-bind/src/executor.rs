//! A kit that is kept open: patients come batch by batch, and what is estimated of them goes back.

use crate::columns::{Columns, of_effects};
use crate::work::{pool, words_of};
use dvim::internal::audit::everybody::Tally;
use dvim::internal::cohort::Roles;
use dvim::internal::error::Error;
use dvim::internal::newcomers::Newcomers;
use dvim::internal::table::Table;
use dvim::internal::watch::Unwatched;
use dvim_io::kit::Kit;
use dvim_io::tasks::Predicted;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A batch of patients.
pub struct Batch {
    /// Their rows.
    pub table: Table,
    /// The column of ids.
    pub id: Option<String>,
    /// What columns hold the outcomes, where sums for averages are asked for.
    pub roles: Option<Roles>,
    /// Whether the effects are asked for.
    pub effects: bool,
}

/// What was made of a batch.
#[derive(Default)]
pub struct Made {
    /// The columns of their effects.
    pub effects: Option<Columns>,
    /// Sums over those who are not of the sample.
    pub tally: Option<Vec<u8>>,
    /// How many patients have no estimate, because too few candidates satisfy the constraints of the run.
    pub n_unserved: usize,
}

type Reply = Result<Made, Error>;
/// A batch, and where the answer goes.
type Question = (Batch, Sender<Reply>);

/// A thread that holds an open kit, with all that batches share, until the executor is dropped.
pub struct Executor {
    asked: Mutex<Option<Sender<Question>>>,
    thread: Mutex<Option<JoinHandle<Result<(), String>>>>,
}

impl Executor {
    /// Opens a kit; batches are estimated by so many threads.
    pub fn open(bytes: Vec<u8>, threads: usize) -> Result<Executor, String> {
        let pool = pool(Some(threads))?;
        let (asked, batches) = channel();
        let (ready, is_ready) = channel();
        let work = move || {
            let kit = Kit::open(&bytes)?;
            drop(bytes);
            pool.install(move || serve(&kit, batches, &ready))
        };
        let thread = std::thread::Builder::new().spawn(work).map_err(|e| e.to_string())?;
        if is_ready.recv().is_err() {
            return Err(ended(thread));
        }
        Ok(Executor { asked: Mutex::new(Some(asked)), thread: Mutex::new(Some(thread)) })
    }

    /// Estimates a batch. Fails with an error of the engine, or with the words of a bug.
    pub fn estimate(&self, batch: Batch) -> Result<Reply, String> {
        let (reply, answer) = channel();
        let asked = self.asked.lock().map_err(|_| "two threads asked at once")?;
        let is_asked = asked.as_ref().is_some_and(|asked| asked.send((batch, reply)).is_ok());
        drop(asked);
        match answer.recv() {
            Ok(made) if is_asked => Ok(made),
            _ => Err(self.thread.lock().ok().and_then(|mut t| t.take()).map_or("it ended before".into(), ended)),
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // Without anybody to ask, the thread ends.
        if let Ok(mut asked) = self.asked.lock() {
            asked.take();
        }
        if let Some(thread) = self.thread.lock().ok().and_then(|mut t| t.take()) {
            let _ = thread.join();
        }
    }
}

/// Why a thread ended.
fn ended(thread: JoinHandle<Result<(), String>>) -> String {
    match thread.join() {
        Ok(Ok(())) => "it ended before".into(),
        Ok(Err(why)) => why,
        Err(panic) => words_of(&*panic),
    }
}

fn serve(kit: &Kit, batches: Receiver<Question>, ready: &Sender<()>) -> Result<(), String> {
    let newcomers = Newcomers::new(kit.fit(), kit.cohort()).map_err(|e| e.to_string())?;
    let prepared = newcomers.prepared();
    let _ = ready.send(());
    for (batch, reply) in batches {
        let Batch { table, id, roles, effects } = batch;
        let found = Predicted::of_part(kit, (&newcomers, &prepared), &table, id.as_deref(), roles.as_ref(), &Unwatched);
        let made = found.map(|(found, tally)| Made {
            effects: effects.then(|| of_effects(&found.table(kit.cohort(), kit.fit()))),
            tally: tally.as_ref().map(Tally::to_bytes),
            n_unserved: found.n_unserved(),
        });
        // Whoever asked may be gone.
        let _ = reply.send(made);
    }
    Ok(())
}

/// The sums over all parts.
pub fn merged(parts: &[Vec<u8>]) -> Result<Vec<u8>, String> {
    let mut all = parts.iter().map(|part| Tally::from_bytes(part));
    let mut sum = all.next().ok_or("there is no part")??;
    for part in all {
        sum.merge(&part?)?;
    }
    Ok(sum.to_bytes())
}
