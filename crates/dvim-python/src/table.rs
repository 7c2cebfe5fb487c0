//! A data frame as a table of the engine: numbers without loss, text by level, ids without loss.
//!
//! Arrow's buffers never change once they are handed out, so their doubles stay where they are. NumPy's arrays may be
//! written to at any time, by any thread, also through views that are themselves read-only: their values are copied
//! while Python calls, and the engine, which works on other threads without the interpreter's lock, never sees them.

use crate::arrow;
use crate::errors;
use dvim::internal::table::{Column, Ids, Numbers, Table, Values};
use dvim_bind::text::TextBuilder;
use dvim_io::read::{ReadOptions, ids_of_texts, read_table};
use dvim_io::tasks::Input;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyString};
use std::path::PathBuf;
use std::sync::Mutex;

/// Why a frame cannot be read.
pub struct Unreadable(pub String);

impl Unreadable {
    pub fn whole(why: impl Into<String>) -> Unreadable {
        Unreadable(format!(
            "error: {}\n  rule:   a table has named columns of equal length\n  remedy: pass a data frame, or an object with __arrow_c_stream__",
            why.into()
        ))
    }

    pub fn column(name: &str, found: &str) -> Unreadable {
        Unreadable(format!(
            "error: column `{name}`: its values are of the Arrow type `{found}`\n  rule:   columns are numbers, booleans, text, categories or dates\n  remedy: convert it, or select the other columns"
        ))
    }
}

enum Content {
    Columns(Vec<Column>),
    File(Input),
}

/// A table on its way to the engine.
#[pyclass(frozen, name = "Table", module = "dvim._dvim")]
pub struct PyTable(Mutex<Content>);

impl PyTable {
    fn with(&self, name: &str, values: Values) {
        if let Content::Columns(columns) = &mut *self.0.lock().unwrap_or_else(|e| e.into_inner()) {
            columns.push(Column { name: name.trim().to_string(), values });
        }
    }

    fn of_columns(py: Python<'_>, columns: Result<Vec<(String, Values)>, Unreadable>) -> PyResult<PyTable> {
        let columns = columns.map_err(|e| errors::input(py, e.0))?;
        let columns = columns.into_iter().map(|(name, values)| Column { name: name.trim().to_string(), values });
        Ok(PyTable(Mutex::new(Content::Columns(columns.collect()))))
    }

    /// The table; what was gathered is gone.
    pub fn take(&self, py: Python<'_>, kind: &str) -> PyResult<Input> {
        let mut content = self.0.lock().unwrap_or_else(|e| e.into_inner());
        match std::mem::replace(&mut *content, Content::Columns(Vec::new())) {
            Content::File(input) => Ok(input),
            Content::Columns(columns) => {
                let table = Table::new(columns).map_err(|why| {
                    errors::input(py, format!("error: {why}\n  rule:   a table has columns of different names and of equal length\n  remedy: rename the column, or give it one value for each row"))
                })?;
                Ok(py.detach(|| Input::of_memory(kind, table)))
            }
        }
    }
}

#[pymethods]
impl PyTable {
    #[new]
    fn new() -> PyTable {
        PyTable(Mutex::new(Content::Columns(Vec::new())))
    }

    /// Reads a file as the command line does.
    #[staticmethod]
    #[pyo3(signature = (path, id, default_id, text, threads))]
    pub fn read(
        py: Python<'_>,
        path: PathBuf,
        id: Option<String>,
        default_id: Option<String>,
        text: Vec<String>,
        threads: Option<usize>,
    ) -> PyResult<PyTable> {
        let options = ReadOptions { id, default_id, text, threads: threads.unwrap_or(0), ..ReadOptions::default() };
        let read = py.detach(|| read_table(&path, &options)).map_err(|e| errors::read(py, e))?;
        Ok(PyTable(Mutex::new(Content::File(Input::of_file(&path, read)))))
    }

    /// Takes the columns of an Arrow stream.
    #[staticmethod]
    #[pyo3(signature = (capsule, id))]
    fn arrow(py: Python<'_>, capsule: &Bound<'_, PyCapsule>, id: Option<String>) -> PyResult<PyTable> {
        let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
        // SAFETY: a capsule of this name holds a stream; it is consumed here and marked as released.
        let columns = unsafe { arrow::columns(stream.as_ptr().cast(), id.as_deref()) };
        PyTable::of_columns(py, columns)
    }

    /// Takes the columns of an Arrow batch.
    #[staticmethod]
    #[pyo3(signature = (schema, array, id))]
    fn arrow_batch(
        py: Python<'_>,
        schema: &Bound<'_, PyCapsule>,
        array: &Bound<'_, PyCapsule>,
        id: Option<String>,
    ) -> PyResult<PyTable> {
        let schema = schema.pointer_checked(Some(c"arrow_schema"))?;
        let array = array.pointer_checked(Some(c"arrow_array"))?;
        // SAFETY: capsules of these names hold these structures; they are consumed here and marked as released.
        let columns = unsafe { arrow::batch(schema.as_ptr().cast(), array.as_ptr().cast(), id.as_deref()) };
        PyTable::of_columns(py, columns)
    }

    /// Adds numbers: a copy of a buffer of doubles, as it is now.
    fn numbers(&self, py: Python<'_>, name: &str, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let values = PyBuffer::<f64>::get(values)?.to_vec(py)?;
        self.with(name, Values::Number(Numbers::from(values)));
        Ok(())
    }

    /// Adds text: for each row the position of its level, negative where it is missing.
    fn text(&self, py: Python<'_>, name: &str, codes: &Bound<'_, PyAny>, levels: Vec<String>) -> PyResult<()> {
        let codes = PyBuffer::<i64>::get(codes)?.to_vec(py)?;
        let rows = codes.iter().map(|&c| usize::try_from(c).ok());
        let builder = TextBuilder::of_levels(&levels, rows);
        self.with(name, Values::Text(builder.finish()));
        Ok(())
    }

    /// Adds identifiers that are whole numbers.
    fn integer_ids(&self, py: Python<'_>, name: &str, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let values = PyBuffer::<i64>::get(values)?.to_vec(py)?;
        self.with(name, Values::Id(Ids::Integers(values)));
        Ok(())
    }

    /// Adds identifiers that are text; empty where missing.
    fn text_ids(&self, name: &str, values: &Bound<'_, PyList>) -> PyResult<()> {
        let texts: Vec<Bound<'_, PyString>> = values.extract()?;
        let texts: Vec<String> = texts.iter().map(|t| Ok(t.to_cow()?.into_owned())).collect::<PyResult<_>>()?;
        self.with(name, Values::Id(ids_of_texts(texts.iter().map(String::as_str))));
        Ok(())
    }

    /// The names of its columns, in order.
    #[getter]
    fn names(&self) -> Vec<String> {
        let content = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let of = |columns: &[Column]| columns.iter().map(|c| c.name.clone()).collect();
        match &*content {
            Content::Columns(columns) => of(columns),
            Content::File(input) => of(input.table.columns()),
        }
    }
}
