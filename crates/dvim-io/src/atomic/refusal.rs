//! Errors of files: each names the path and what was being done.

use dvim::internal::phrase::{Face, Phrase};
use dvim_report::spell::CommandLine;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why dvim does not write to a place, as the inner error of an [`io::Error`]. Nothing was changed.
#[derive(Debug)]
pub struct Refusal {
    /// What was found there.
    pub found: Phrase,
    /// The rule that keeps dvim from writing.
    pub rule: Phrase,
    /// What the user can do.
    pub remedy: Phrase,
}

impl Refusal {
    fn spelled(&self, face: &dyn Face) -> String {
        let [found, rule, remedy] = [&self.found, &self.rule, &self.remedy].map(|p| p.spelled(face));
        format!("{found}\n  rule:   {rule}\n  remedy: {remedy}")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelled(&CommandLine))
    }
}

impl Error for Refusal {}

/// A failure of the system, with the path and the action.
#[derive(Debug)]
struct Named {
    path: PathBuf,
    /// A past participle, such as `written`.
    action: &'static str,
    source: io::Error,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` could not be {}: {}", self.path.display(), self.action, self.source)
    }
}

impl Error for Named {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

/// A refusal to write.
pub fn refuse(found: impl Into<Phrase>, rule: impl Into<Phrase>, remedy: impl Into<Phrase>) -> io::Error {
    refuse_as(io::ErrorKind::AlreadyExists, found, rule, remedy)
}

/// A refusal to write, with the kind of its error.
pub fn refuse_as(
    kind: io::ErrorKind,
    found: impl Into<Phrase>,
    rule: impl Into<Phrase>,
    remedy: impl Into<Phrase>,
) -> io::Error {
    io::Error::new(kind, Refusal { found: found.into(), rule: rule.into(), remedy: remedy.into() })
}

/// What an error of a file says, in the words of a face.
pub fn spelled(error: &io::Error, face: &dyn Face) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Refusal>()) {
        Some(refusal) => refusal.spelled(face),
        None => error.to_string(),
    }
}

/// Adds a path and an action (a past participle, such as `written`) to an error that names none yet.
pub fn named<'a>(path: &'a Path, action: &'static str) -> impl Fn(io::Error) -> io::Error + 'a {
    move |source| {
        let is_named = source.get_ref().is_some_and(|e| e.is::<Refusal>() || e.is::<Named>());
        if is_named {
            return source;
        }
        io::Error::new(source.kind(), Named { path: path.to_path_buf(), action, source })
    }
}

/// Some names of a list, for a message of bounded length.
pub fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|n| format!("`{n}`")).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
