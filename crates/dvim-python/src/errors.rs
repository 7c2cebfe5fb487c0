//! Failures as exceptions of `dvim._errors`, in the words of Python.

use dvim::internal::error::{Error, Problem};
use dvim_bind::json;
use dvim_io::atomic::spelled;
use dvim_io::read::ReadError;
use dvim_io::run::OpenError;
use dvim_report::record::ProblemRecord;
pub use dvim_report::spell::Python as Face;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

fn make<'py>(py: Python<'py>, class: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    let raised = py.import("dvim._errors").and_then(|m| m.getattr(class)).and_then(|c| c.call1(arguments));
    match raised {
        Ok(value) => PyErr::from_value(value),
        Err(e) => e,
    }
}

/// The exception of an engine error.
pub fn engine(py: Python<'_>, error: Error) -> PyErr {
    let words = error.spelled(&Face);
    match error.cause() {
        Error::Refused(problems) => make(py, "Refused", (words, problems_json(problems))),
        Error::Model { arm, .. } => make(py, "ModelError", (words, *arm)),
        Error::NoSuchUnit { id, .. } => make(py, "NoSuchUnit", (words, id.as_str())),
        Error::Cancelled => pyo3::exceptions::PyKeyboardInterrupt::new_err(words),
        _ => make(py, "Error", (words,)),
    }
}

/// The exception of input that no engine saw.
pub fn input(py: Python<'_>, words: String) -> PyErr {
    make(py, "Refused", (words, "[]"))
}

/// The exception of a file that is no table.
pub fn read(py: Python<'_>, error: ReadError) -> PyErr {
    input(py, error.spelled(&Face))
}

/// The exception of a run that cannot be opened.
pub fn open(py: Python<'_>, error: OpenError) -> PyErr {
    make(py, "OpenError", (error.spelled(&Face),))
}

/// The exception of a file.
pub fn io(py: Python<'_>, error: std::io::Error) -> PyErr {
    match error.kind() {
        std::io::ErrorKind::AlreadyExists => make(py, "Exists", (format!("error: {}", spelled(&error, &Face)),)),
        std::io::ErrorKind::Unsupported => input(py, format!("error: {}", spelled(&error, &Face))),
        _ => error.into(),
    }
}

/// The exception of what should not have happened.
pub fn bug(words: &str) -> PyErr {
    PyRuntimeError::new_err(format!(
        "error: dvim met a case that it should have caught: {words}\n  remedy: nothing was written; please report this line, with the call"
    ))
}

/// A problem in the words of Python.
pub fn problem_record(problem: &Problem) -> ProblemRecord {
    ProblemRecord::of(problem, &Face)
}

/// Problems as JSON.
pub fn problems_json(problems: &[Problem]) -> String {
    json(&problems.iter().map(problem_record).collect::<Vec<_>>())
}
