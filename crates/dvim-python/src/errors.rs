//! Failures as exceptions of `dvim._errors`, with the message as it is.

use dvim::error::{Error, Problem};
use dvim_report::record::ProblemRecord;
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
    let words = error.to_string();
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

/// The exception of a run that cannot be opened.
pub fn open(py: Python<'_>, words: String) -> PyErr {
    make(py, "OpenError", (words,))
}

/// The exception of a file.
pub fn io(py: Python<'_>, error: std::io::Error) -> PyErr {
    match error.kind() {
        std::io::ErrorKind::AlreadyExists => make(py, "Exists", (format!("error: {error}"),)),
        std::io::ErrorKind::Unsupported => input(py, format!("error: {error}")),
        _ => error.into(),
    }
}

/// The exception of what should not have happened.
pub fn bug(words: &str) -> PyErr {
    PyRuntimeError::new_err(format!(
        "error: dvim met a case that it should have caught: {words}\n  remedy: nothing was written; please report this line, with the call"
    ))
}

/// Problems as JSON.
pub fn problems_json(problems: &[Problem]) -> String {
    let records: Vec<ProblemRecord> = problems.iter().map(ProblemRecord::from).collect();
    json(&records)
}

/// A record as JSON.
pub fn json(record: &impl serde::Serialize) -> String {
    serde_json::to_string(record).expect("records are made of numbers, texts and lists")
}
