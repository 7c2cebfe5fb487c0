//! Progress on stderr, once a command has taken more than a second.

use dvim::internal::watch::Watch;
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A bar that appears when the work turns out to be long.
pub struct Progress {
    started: Instant,
    bar: Mutex<Option<(&'static str, ProgressBar)>>,
}

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

impl Progress {
    /// Starts the clock.
    pub fn new() -> Progress {
        Progress { started: Instant::now(), bar: Mutex::new(None) }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

impl Watch for Progress {
    fn progress(&self, stage: &'static str, done: usize, total: usize) {
        let Ok(mut shown) = self.bar.lock() else { return };
        if let Some((_, bar)) = shown.take_if(|(s, _)| *s != stage) {
            bar.finish_and_clear();
        }
        if done < total && self.started.elapsed() > PATIENCE {
            let (_, bar) = shown.get_or_insert_with(|| {
                let bar = ProgressBar::new(total as u64);
                let style = ProgressStyle::with_template("{msg:26} {bar:30} {pos}/{len}  {eta} left");
                bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
                bar.set_message(stage);
                (stage, bar)
            });
            bar.set_position(done as u64);
        } else if let Some((_, bar)) = shown.take_if(|_| done >= total) {
            bar.finish_and_clear();
        }
    }
}

/// Progress of a long run: a bar with the time left on a terminal, else a line now and then.
pub struct Lines {
    started: Instant,
    bar: ProgressBar,
    said: Mutex<Instant>,
}

/// Time between two lines where stderr is not a terminal.
const PAUSE: Duration = Duration::from_secs(15);

impl Lines {
    /// Starts the clock.
    pub fn new() -> Lines {
        let bar = ProgressBar::no_length();
        let style = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len}  {elapsed} gone, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Lines { started: Instant::now(), bar, said: Mutex::new(Instant::now()) }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

impl Watch for Lines {
    fn progress(&self, stage: &'static str, done: usize, total: usize) {
        self.bar.set_length(total as u64);
        self.bar.set_message(stage);
        self.bar.set_position(done as u64);
        if done == total {
            self.bar.finish_and_clear();
            return;
        }
        let Ok(mut said) = self.said.lock() else { return };
        if self.bar.is_hidden() && done > 0 && said.elapsed() > PAUSE {
            *said = Instant::now();
            let left = self.seconds() * (total - done) as f64 / done as f64;
            crate::say(&format!("{done} of {total} {stage}, about {:.0} min left", (left / 60.0).ceil()));
        }
    }
}
