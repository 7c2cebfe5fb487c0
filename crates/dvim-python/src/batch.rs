//! Several runs at once: imputed data sets that are pooled, or every arm against one control.

use crate::columns;
use crate::errors::{self, problem_record};
use crate::run::{Run, format_of, open_held, options_of, roles_of};
use crate::table::PyTable;
use crate::watch;
use dvim::internal::watch::Watch;
use dvim_bind::{asked, json, several};
use dvim_io::batch::{self, is_batch, open_batch};
use dvim_io::tasks;
use dvim_report::card::batch_card;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::path::PathBuf;
use std::sync::Arc;

/// Several runs, and what they say together.
#[pyclass(frozen, module = "dvim._dvim")]
pub struct Several(several::Several);

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
    let asked = tasks::Asked { by: asked::by(&by), audit };
    let work = move |watch: &dyn Watch| {
        let found = batch::Several::new(tables, &names, imputation.as_deref(), &roles, &options, &asked, watch)?;
        Ok(several::Several::fitted(found))
    };
    Ok(Several(watch::run(py, threads, progress, work)?))
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
        runs.push(open_held(py, path.join(&member.folder), threads, progress)?);
    }
    Ok(Some(Several(several::Several::opened(record, effects, path, runs))))
}

#[pymethods]
impl Several {
    /// `summary.json`.
    fn record(&self) -> String {
        json(self.0.record())
    }

    /// What `dvim fit` says at its end.
    fn text(&self) -> String {
        self.0.record().text()
    }

    /// A fragment of HTML with what was found.
    fn card(&self) -> String {
        batch_card(self.0.record())
    }

    /// One of the runs.
    fn run(&self, i: usize) -> Run {
        Run(Arc::clone(&self.0.runs[i]))
    }

    /// The columns of the pooled `effects.csv`.
    fn effects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        columns::to_python(py, self.0.effects())
    }

    /// The columns of `averages.csv` or `arms.csv`.
    fn averages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        columns::to_python(py, self.0.averages())
    }

    /// What is worth knowing of the input, as JSON, each with its data set; and what was done that was not asked for.
    fn warnings(&self) -> (Vec<(String, String)>, Vec<String>) {
        let one = |(set, w): (&str, _)| (set.to_string(), json(&problem_record(w)));
        (self.0.warnings().into_iter().map(one).collect(), self.0.notes().to_vec())
    }

    /// Writes all of it into a directory.
    fn save(&self, py: Python<'_>, path: PathBuf, force: bool, format: &str) -> PyResult<()> {
        let format = format_of(py, format)?;
        watch::detached(py, || self.0.save(&path, force, format))?.map_err(|e| errors::io(py, e))
    }
}
