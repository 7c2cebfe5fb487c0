//! Several runs that a program holds: imputed data sets that are pooled, or every arm against one control.

use crate::columns::{self, Columns};
use crate::held::{Held, copy_files};
use dvim::internal::error::Problem;
use dvim_io::batch::{self, begin_batch};
use dvim_io::run::EffectsFormat;
use dvim_report::batch::BatchRecord;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

enum Content {
    Fitted(batch::Several),
    Opened { record: BatchRecord, effects: Vec<u8>, path: PathBuf },
}

/// Several runs, and what they say together.
pub struct Several {
    content: Content,
    /// The runs.
    pub runs: Vec<Arc<Held>>,
}

impl Several {
    /// Holds what was fitted.
    pub fn fitted(found: batch::Several) -> Several {
        let runs = found.runs.iter().map(|done| Arc::new(Held::fitted(Arc::clone(done)))).collect();
        Several { content: Content::Fitted(found), runs }
    }

    /// Holds what was opened, as [`batch::open_batch`] gives it, with its runs.
    pub fn opened(record: BatchRecord, effects: Vec<u8>, path: PathBuf, runs: Vec<Arc<Held>>) -> Several {
        Several { content: Content::Opened { record, effects, path }, runs }
    }

    /// What is told of them together.
    pub fn record(&self) -> &BatchRecord {
        match &self.content {
            Content::Fitted(found) => &found.record,
            Content::Opened { record, .. } => record,
        }
    }

    /// The columns of the pooled `effects.csv`.
    pub fn effects(&self) -> Columns {
        let kinds = columns::results(&["id", "treatment", "flags"], &["n_imputations"]);
        columns::of_csv(kinds, |out| match &self.content {
            Content::Fitted(found) => found.write_effects(out),
            Content::Opened { effects, .. } => {
                out.extend_from_slice(effects);
                Ok(())
            }
        })
    }

    /// The columns of `averages.csv` or `arms.csv`.
    pub fn averages(&self) -> Columns {
        let record = self.record();
        let kinds = columns::results(&["estimand", "population", "arm"], &["n_units"]);
        columns::of_csv(kinds, |out| match record.is_of_arms() {
            true => record.write_contrasts(out),
            false => record.write_averages(out),
        })
    }

    /// What is worth knowing of the input, each with its data set.
    pub fn warnings(&self) -> Vec<(&str, &Problem)> {
        match &self.content {
            Content::Fitted(found) => found.warnings(),
            Content::Opened { .. } => Vec::new(),
        }
    }

    /// What was done that was not asked for.
    pub fn notes(&self) -> &[String] {
        match &self.content {
            Content::Fitted(found) => &found.notes,
            Content::Opened { .. } => &[],
        }
    }

    /// Writes all of it into a directory, or copies the files of what was opened.
    pub fn save(&self, path: &Path, force: bool, format: EffectsFormat) -> io::Result<()> {
        match &self.content {
            Content::Fitted(found) => found.write(path, force, format, &[]),
            Content::Opened { record, path: from, .. } => {
                let directory = begin_batch(path, force, &[])?;
                let own = record.files.keys().filter(|name| !name.contains('/')).map(String::as_str);
                copy_files(from, &directory, own)?;
                for (member, run) in record.runs.iter().zip(&self.runs) {
                    let folder = directory.folder(&member.folder)?;
                    copy_files(&from.join(&member.folder), &folder, run.summary().files.keys().map(String::as_str))?;
                }
                directory.publish()
            }
        }
    }
}
