//! More patients than one machine holds: a sample that was fitted, and executors that estimate the others.

use crate::columns;
use crate::errors;
use crate::run::{Run, roles_of};
use crate::table::PyTable;
use crate::watch;
use dvim_bind::asked;
use dvim_bind::executor::{self, Batch};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::sync::Arc;

/// The columns of effects, sums, and how many patients have no estimate.
type Made<'py> = (Option<Bound<'py, PyList>>, Option<Bound<'py, PyBytes>>, usize);

/// What other machines need to estimate more patients, and the sums over the patients of a run.
#[pyfunction]
#[pyo3(signature = (run, by, threads, progress))]
pub fn kit<'py>(
    py: Python<'py>,
    run: &Run,
    by: Vec<String>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (held, by) = (Arc::clone(&run.0), asked::by(&by));
    let (kit, tally) = watch::run(py, threads, progress, move |_| held.kit(&by))?;
    Ok((PyBytes::new(py, &kit), PyBytes::new(py, &tally)))
}

/// A run with averages over everybody who is in the sums.
#[pyfunction]
pub fn over_everybody(py: Python<'_>, run: &Run, kit: &[u8], tally: &[u8]) -> PyResult<Run> {
    let held = Arc::clone(&run.0);
    let made = watch::detached(py, move || held.over_everybody(kit, tally))?;
    made.map(|held| Run(Arc::new(held))).map_err(|e| errors::bug(&e))
}

/// The sums over all parts.
#[pyfunction]
pub fn merged<'py>(py: Python<'py>, parts: Vec<Vec<u8>>) -> PyResult<Bound<'py, PyBytes>> {
    let sum = py.detach(|| executor::merged(&parts)).map_err(|e| errors::bug(&e))?;
    Ok(PyBytes::new(py, &sum))
}

/// A kit that is kept open.
#[pyclass(frozen, module = "dvim._dvim")]
pub struct Executor(executor::Executor);

#[pymethods]
impl Executor {
    #[new]
    fn new(py: Python<'_>, kit: Vec<u8>, threads: usize) -> PyResult<Executor> {
        let opened = py.detach(|| executor::Executor::open(kit, threads));
        opened.map(Executor).map_err(|e| errors::bug(&format!("the kit cannot be opened: {e}")))
    }

    /// Estimates the patients of a table. `roles` name the columns of their outcomes, where sums are asked for.
    #[pyo3(signature = (table, id, roles, effects))]
    fn estimate<'py>(
        &self,
        py: Python<'py>,
        table: &PyTable,
        id: Option<String>,
        roles: Option<&str>,
        effects: bool,
    ) -> PyResult<Made<'py>> {
        let roles = roles.map(|roles| roles_of(py, roles)).transpose()?;
        let batch = Batch { table: table.take(py, "")?.table, id, roles, effects };
        let made = py.detach(|| self.0.estimate(batch)).map_err(|e| errors::bug(&e))?;
        let made = made.map_err(|e| errors::engine(py, e))?;
        let columns = made.effects.map(|c| columns::to_python(py, c)).transpose()?;
        Ok((columns, made.tally.map(|t| PyBytes::new(py, &t)), made.n_unserved))
    }
}
