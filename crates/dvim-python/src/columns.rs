//! Tables on their way to Python: columns as bytes of an array, or as lists of text.

use dvim_bind::columns::{Columns, Out};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList, PyTuple};

fn bytes<'py, T>(py: Python<'py>, values: &[T], one: impl Fn(&T) -> [u8; 8]) -> PyResult<Bound<'py, PyByteArray>> {
    PyByteArray::new_with(py, 8 * values.len(), |out| {
        out.chunks_exact_mut(8).zip(values).for_each(|(out, v)| out.copy_from_slice(&one(v)));
        Ok(())
    })
}

/// For Python: tuples of name, kind, values and, where some are missing, marks.
pub fn to_python(py: Python<'_>, columns: Columns) -> PyResult<Bound<'_, PyList>> {
    let out = PyList::empty(py);
    for (name, column) in columns {
        let tuple = match column {
            Out::Number(v) => (name, "f8", bytes(py, &v, |x| x.to_ne_bytes())?, py.None()).into_pyobject(py)?,
            Out::Count(v, gaps) => {
                let marks: Py<PyAny> = if gaps.contains(&true) {
                    let marks: Vec<u8> = gaps.into_iter().map(u8::from).collect();
                    PyByteArray::new(py, &marks).into_any().unbind()
                } else {
                    py.None()
                };
                (name, "i8", bytes(py, &v, |x| x.to_ne_bytes())?, marks).into_pyobject(py)?
            }
            Out::Text(v) => (name, "text", PyList::new(py, v)?, py.None()).into_pyobject(py)?,
        };
        out.append(tuple.cast_into::<PyTuple>()?)?;
    }
    Ok(out)
}
