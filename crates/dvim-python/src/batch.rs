//! Several runs at once: imputed data sets that are pooled, or every arm against one control.

use crate::columns;
use crate::errors::{self, json, problem_record};
use crate::run::{Run, by_of, copy_files, format_of, options_of, roles_of};
use crate::table::PyTable;
use crate::watch;
use dvim::internal::watch::Watch;
use dvim_io::batch::{self, begin_batch, is_batch, open_batch};
use dvim_io::tasks;
use dvim_report::batch::BatchRecord;
use dvim_report::card::batch_card;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::path::PathBuf;
use std::sync::Arc;

enum Content {
    Fitted(batch::Several),
    Opened { record: BatchRecord, effects: Vec<u8>, path: PathBuf },
}

/// Several runs, and what they say together.
#[pyclass(frozen, module = "dvim._dvim")]
pub struct Several {
    content: Content,
    runs: Vec<Arc<crate::run::Content>>,
}

/// Fits several tables, the parts of a table that a column numbers, or every arm of it.
#[pyfunction]
#[pyo3(signature = (tables, kinds, names, imputation, roles, options, by, audit, threads, progress))]
#[allow(clippy::too_many_arguments, reason = "called from one place in Python, by position")]
pub fn fit_several(
    py: Python<'_>,
    tables: Vec<Bound<'_, PyTable>>,
    kinds: Vec<String>,
    names: Vec<String>,
    imputation: Option<String>,
    roles: &str,
    options: &str,
    by: Vec<String>,
    audit: bool,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Several> {
    let (roles, options) = (roles_of(py, roles)?, options_of(py, options)?);
    let tables = tables.iter().zip(&kinds).map(|(t, kind)| t.get().take(py, kind)).collect::<PyResult<Vec<_>>>()?;
    let asked = tasks::Asked { by: by_of(&by), audit };
    let work = move |watch: &dyn Watch| {
        batch::Several::new(tables, &names, imputation.as_deref(), &roles, &options, &asked, watch)
    };
    let work = move |watch: &dyn Watch| {
        let found = work(watch)?;
        let runs = found.runs.iter().map(|done| Arc::new(crate::run::Content::fitted(Arc::clone(done)))).collect();
        Ok((found, runs))
    };
    let (found, runs) = watch::run(py, threads, progress, work)?;
    Ok(Several { content: Content::Fitted(found), runs })
}

/// Whether these tables and roles ask for several fits.
#[pyfunction]
#[pyo3(signature = (n_tables, imputation, roles))]
pub fn asks_for_several(py: Python<'_>, n_tables: usize, imputation: Option<&str>, roles: &str) -> PyResult<bool> {
    Ok(is_batch(n_tables, imputation, &roles_of(py, roles)?))
}

/// Opens several runs that were saved; `None` where the directory holds one run, or none.
#[pyfunction]
#[pyo3(signature = (path, threads, progress))]
pub fn open_all(
    py: Python<'_>,
    path: PathBuf,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Several>> {
    let opened = watch::detached(py, || open_batch(&path))?.map_err(|e| errors::open(py, e))?;
    let Some((record, effects)) = opened else { return Ok(None) };
    let mut runs = Vec::new();
    for member in &record.runs {
        runs.push(crate::run::open_content(py, path.join(&member.folder), threads, progress)?);
    }
    Ok(Some(Several { content: Content::Opened { record, effects, path }, runs }))
}

#[pymethods]
impl Several {
    /// `summary.json`.
    fn record(&self) -> String {
        json(self.summary())
    }

    /// What `dvim fit` says at its end.
    fn text(&self) -> String {
        self.summary().text()
    }

    /// A fragment of HTML with what was found.
    fn card(&self) -> String {
        batch_card(self.summary())
    }

    /// One of the runs.
    fn run(&self, i: usize) -> Run {
        Run(Arc::clone(&self.runs[i]))
    }

    /// The columns of the pooled `effects.csv`.
    fn effects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let kinds = columns::results(&["id", "treatment", "flags"], &["n_imputations"]);
        let columns = columns::of_csv(kinds, |out| match &self.content {
            Content::Fitted(found) => found.write_effects(out),
            Content::Opened { effects, .. } => {
                out.extend_from_slice(effects);
                Ok(())
            }
        });
        columns::to_python(py, columns)
    }

    /// The columns of `averages.csv` or `arms.csv`.
    fn averages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let record = self.summary();
        let kinds = columns::results(&["estimand", "population", "arm"], &["n_units"]);
        let columns = columns::of_csv(kinds, |out| match record.is_of_arms() {
            true => record.write_contrasts(out),
            false => record.write_averages(out),
        });
        columns::to_python(py, columns)
    }

    /// What is worth knowing of the input, as JSON, each with its data set; and what was done that was not asked for.
    fn warnings(&self) -> (Vec<(String, String)>, Vec<String>) {
        match &self.content {
            Content::Fitted(found) => {
                let one = |(set, w): (&str, _)| (set.to_string(), json(&problem_record(w)));
                (found.warnings().into_iter().map(one).collect(), found.notes.clone())
            }
            Content::Opened { .. } => Default::default(),
        }
    }

    /// Writes all of it into a directory.
    fn save(&self, py: Python<'_>, path: PathBuf, force: bool, format: &str) -> PyResult<()> {
        let format = format_of(py, format)?;
        let written = watch::detached(py, || match &self.content {
            Content::Fitted(found) => found.write(&path, force, format, &[]),
            Content::Opened { record, path: from, .. } => {
                let directory = begin_batch(&path, force, &[])?;
                let own = record.files.keys().filter(|name| !name.contains('/')).map(String::as_str);
                copy_files(from, &directory, own)?;
                for (member, run) in record.runs.iter().zip(&self.runs) {
                    let folder = directory.folder(&member.folder)?;
                    copy_files(&from.join(&member.folder), &folder, run.summary().files.keys().map(String::as_str))?;
                }
                directory.publish()
            }
        })?;
        written.map_err(|e| errors::io(py, e))
    }
}

impl Several {
    fn summary(&self) -> &BatchRecord {
        match &self.content {
            Content::Fitted(found) => &found.record,
            Content::Opened { record, .. } => record,
        }
    }
}
