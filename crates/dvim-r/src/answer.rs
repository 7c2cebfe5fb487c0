//! What a job comes to: something for R, or a failure that R makes a condition of.

use crate::handle::Handle;
use crate::value::{columns_to_r, put, to_r};
use dvim::internal::error::{Error, Problem};
use dvim_bind::columns::Columns;
use dvim_io::atomic::spelled;
use dvim_io::run::OpenError;
use dvim_report::record::ProblemRecord;
use dvim_report::spell::R as Face;
use savvy::{IntoExtPtrSexp, NullSexp, OwnedListSexp, OwnedStringSexp, Sexp};
use serde_json::{json, Value};

/// Something for R, made on another thread: nothing of R is touched before it is turned into R's values.
pub enum Answer {
    Nothing,
    Text(String),
    Record(Value),
    Columns(Columns),
    Handle(Handle),
    List(Vec<(&'static str, Answer)>),
}

impl Answer {
    pub fn record(record: &impl serde::Serialize) -> Answer {
        Answer::Record(serde_json::to_value(record).expect("records are made of numbers, texts and lists"))
    }

    pub fn into_r(self) -> savvy::Result<Sexp> {
        match self {
            Answer::Nothing => NullSexp.into(),
            Answer::Text(text) => OwnedStringSexp::try_from_scalar(text)?.into(),
            Answer::Record(value) => to_r(&value),
            Answer::Columns(columns) => columns_to_r(&columns),
            Answer::Handle(handle) => Ok(handle.into_external_pointer()),
            Answer::List(parts) => {
                let mut out = OwnedListSexp::new(parts.len(), true)?;
                for (i, (name, part)) in parts.into_iter().enumerate() {
                    put(&mut out, i, name, part.into_r()?)?;
                }
                out.into()
            }
        }
    }
}

/// Why there is no answer: the class of R's condition, its words, and what it carries.
pub struct Failure {
    class: &'static str,
    words: String,
    more: Value,
}

impl Failure {
    fn new(class: &'static str, words: String, more: Value) -> Failure {
        Failure { class, words, more }
    }

    /// Input that no engine saw.
    pub fn input(words: String) -> Failure {
        Failure::new("refused", words, json!({ "problems": [] }))
    }

    /// An option that is not understood.
    pub fn option(what: String) -> Failure {
        Failure::input(format!(
            "error: {what}\n  rule:   such an option is one of a few words\n  remedy: ?dvim lists them"
        ))
    }

    pub fn engine(error: &Error) -> Failure {
        let words = error.spelled(&Face);
        match error.cause() {
            Error::Refused(problems) => Failure::new("refused", words, json!({ "problems": records(problems) })),
            Error::Model { arm, .. } => Failure::new("model", words, json!({ "arm": arm })),
            Error::NoSuchUnit { id, .. } => Failure::new("no_such_unit", words, json!({ "id": id })),
            Error::Cancelled => Failure::new("cancelled", words, json!({})),
            _ => Failure::new("failed", words, json!({})),
        }
    }

    pub fn open(error: &OpenError) -> Failure {
        Failure::new("open", error.spelled(&Face), json!({}))
    }

    pub fn io(error: &std::io::Error) -> Failure {
        let words = format!("error: {}", spelled(error, &Face));
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => Failure::new("exists", words, json!({})),
            std::io::ErrorKind::Unsupported => Failure::input(words),
            _ => Failure::new("io", words, json!({})),
        }
    }

    pub fn bug(words: &str) -> Failure {
        let words = format!(
            "error: dvim met a case that it should have caught: {words}\n  remedy: nothing was written; please report this line, with the call"
        );
        Failure::new("bug", words, json!({}))
    }

    fn into_r(self) -> savvy::Result<Sexp> {
        let words = self.words.strip_prefix("error: ").unwrap_or(&self.words).replace("\nerror: ", "\n");
        to_r(&json!({ "class": self.class, "words": words, "more": self.more }))
    }
}

/// Problems in the words of R.
pub fn records(problems: &[Problem]) -> Vec<ProblemRecord> {
    problems.iter().map(|p| ProblemRecord::of(p, &Face)).collect()
}

/// A list for R: `value`, or `failure`.
pub fn to_r_result(outcome: Result<Answer, Failure>) -> savvy::Result<Sexp> {
    let mut out = OwnedListSexp::new(1, true)?;
    match outcome {
        Ok(answer) => put(&mut out, 0, "value", answer.into_r()?)?,
        Err(failure) => put(&mut out, 0, "failure", failure.into_r()?)?,
    }
    out.into()
}
