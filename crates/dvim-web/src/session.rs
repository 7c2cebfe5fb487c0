//! A table and what was found in it, for one page.

use crate::guess::{self, ColumnAnswer, Guess};
use dvim::internal::cohort::Roles;
use dvim::internal::error::{Error, Severity};
use dvim::internal::ground::Ground;
use dvim::internal::options::{Estimator, Options};
use dvim::internal::overview::Overview;
use dvim::internal::simulate::{Scenario, draw};
use dvim::internal::watch::Watch;
use dvim_bind::asked;
use dvim_explore::Explorer;
use dvim_io::read::{ReadError, read_bytes};
use dvim_io::tasks::{Analysed, Asked, Input, read_options};
use dvim_report::record::Summary;
use dvim_report::report::{Page, run_page};
use dvim_report::spell::CommandLine;
use dvim_report::tables::{write_cohort, write_effects, write_weights};
use dvim_report::text;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Why there is no answer, in the words of the command.
#[derive(Debug, PartialEq)]
pub struct Refusal(pub String);

impl From<Error> for Refusal {
    fn from(e: Error) -> Refusal {
        Refusal(e.spelled(&CommandLine))
    }
}

impl From<ReadError> for Refusal {
    fn from(e: ReadError) -> Refusal {
        Refusal(e.spelled(&CommandLine))
    }
}

/// A file that was dropped on the page.
struct Dropped {
    name: String,
    bytes: Arc<[u8]>,
}

/// An analysis with its explorer. It lives as long as its worker: a page starts another one for another analysis.
struct Done {
    analysed: &'static Analysed,
    summary: &'static Summary,
    explorer: Explorer<'static>,
}

/// What a worker holds.
#[derive(Default)]
pub struct Session {
    file: Option<Dropped>,
    done: Option<Done>,
}

#[derive(Serialize)]
struct Opened {
    name: String,
    n_rows: usize,
    n_bytes: u64,
    columns: Vec<ColumnAnswer>,
    guess: Guess,
}

#[derive(Serialize)]
struct Checked {
    refused: bool,
    /// What was understood.
    overview: String,
    /// Everything that is wrong or worth knowing.
    problems: String,
}

#[derive(Serialize)]
struct Fitted {
    /// What the command prints at its end.
    text: String,
    /// What is worth knowing of the input.
    warnings: Vec<String>,
}

/// What the page asks for.
#[derive(Deserialize)]
struct Question {
    roles: serde_json::Value,
    adjusted: bool,
}

impl Question {
    fn read(json: &str) -> Result<(Roles, Options), Refusal> {
        let wrong = |e: String| Refusal(format!("error: the form was not understood: {e}"));
        let Question { roles, adjusted } = serde_json::from_str(json).map_err(|e| wrong(e.to_string()))?;
        let roles = asked::roles(&roles.to_string()).map_err(wrong)?;
        let estimator = if adjusted { Estimator::Adjusted(Default::default()) } else { Estimator::Paper };
        Ok((roles, Options { estimator, ..Options::default() }))
    }
}

impl Session {
    /// Takes a file, and tells its columns.
    pub fn open(&mut self, name: &str, bytes: Vec<u8>) -> Result<String, Refusal> {
        self.done = None;
        let bytes: Arc<[u8]> = bytes.into();
        let read = read_bytes(name, Arc::clone(&bytes), &read_options(&Roles::default()))?;
        self.file = Some(Dropped { name: name.into(), bytes });
        Ok(dvim_bind::json(&Opened {
            name: name.into(),
            n_rows: read.table.n_rows(),
            n_bytes: read.n_bytes,
            columns: guess::columns(&read.table),
            guess: guess::guess(&read.table),
        }))
    }

    /// The synthetic cohort of `dvim simulate --scenario transplant`.
    pub fn demo() -> Vec<u8> {
        let drawn = draw(Scenario::Transplant, Scenario::Transplant.usual_size(), false, 1);
        let mut out = Vec::new();
        write_cohort(&mut out, &drawn.units.as_recorded()).expect("memory takes it");
        out
    }

    fn input(&self, roles: &Roles) -> Result<Input, Refusal> {
        let Some(Dropped { name, bytes }) = &self.file else { return Err(Refusal("error: there is no table".into())) };
        Ok(Input::of_file(name.as_ref(), read_bytes(name, Arc::clone(bytes), &read_options(roles))?))
    }

    /// What `dvim check` says.
    pub fn check(&self, question: &str) -> Result<String, Refusal> {
        let (roles, options) = Question::read(question)?;
        let input = self.input(&roles)?;
        let mut overview = Overview::of(&input.table, &roles, &options);
        overview.problems.extend(input.warnings);
        Ok(dvim_bind::json(&Checked {
            refused: overview.problems.iter().any(|p| p.severity == Severity::Error),
            overview: text::overview(&overview),
            problems: Error::Refused(overview.problems).spelled(&CommandLine),
        }))
    }

    /// What `dvim fit` does, and what it says.
    pub fn fit(&mut self, question: &str, watch: &dyn Watch) -> Result<String, Refusal> {
        let (roles, options) = Question::read(question)?;
        let input = self.input(&roles)?;
        let asked = Asked { by: Vec::new(), audit: true };
        // The explorer borrows the run. Both end with the worker.
        let analysed: &'static Analysed = Box::leak(Box::new(Analysed::new(input, &roles, &options, &asked, watch)?));
        let summary: &'static Summary = Box::leak(Box::new(analysed.summary()));
        let ground = Box::leak(Box::new(Ground::of_fit(&analysed.found.fit, &analysed.cohort)?));
        let explorer = Explorer::new(&analysed.cohort, &analysed.found, summary, ground);
        let answer = Fitted {
            text: text::summary(summary, &analysed.found, &analysed.cohort, Default::default(), &CommandLine),
            warnings: analysed.warnings.iter().map(|w| w.spelled(&CommandLine)).collect(),
        };
        self.done = Some(Done { analysed, summary, explorer });
        Ok(dvim_bind::json(&answer))
    }

    fn done(&self) -> Result<&Done, Refusal> {
        self.done.as_ref().ok_or_else(|| Refusal("error: nothing was analysed yet".into()))
    }

    /// A file of the run: `report.html`, `effects.csv`, `weights.csv` or `summary.json`.
    pub fn file(&self, name: &str) -> Result<Vec<u8>, Refusal> {
        let Done { analysed, summary, .. } = self.done()?;
        let (cohort, found) = (&analysed.cohort, &analysed.found);
        let mut out = Vec::new();
        match name {
            "report.html" => out = run_page(&Page::default(), cohort, found, summary).into(),
            "effects.csv" => write_effects(&mut out, cohort, found).expect("memory takes it"),
            "weights.csv" => write_weights(&mut out, cohort, found).expect("memory takes it"),
            "summary.json" => out = dvim_bind::json(summary).into(),
            other => return Err(Refusal(format!("error: a run has no file `{other}`"))),
        }
        Ok(out)
    }

    /// What the explorer answers: a status, a line end, the body.
    pub fn explore(&self, method: &str, target: &str, body: &[u8]) -> Result<Vec<u8>, Refusal> {
        let (status, _, body) = dvim_explore::ask(&self.done()?.explorer, method, target, body);
        Ok([format!("{status}\n").as_bytes(), &body].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;
    impl Watch for Silent {}

    const ROLES: &str = r#"{"time": "time", "event": "event", "treatment": "treatment", "horizon": 3650, "numeric": [],
        "categorical": [], "drop": [], "filters": [], "missing": "refuse", "zero_time": "refuse"}"#;

    fn question(adjusted: bool) -> String {
        format!(r#"{{"roles": {ROLES}, "adjusted": {adjusted}}}"#)
    }

    #[test]
    fn the_demo_is_opened_checked_fitted_and_explored() {
        let mut session = Session::default();
        let opened: serde_json::Value =
            serde_json::from_str(&session.open("cohort.csv", Session::demo()).unwrap()).unwrap();
        assert_eq!(opened["n_rows"], 1157);
        assert_eq!(opened["guess"]["treatment"], "treatment");
        let checked: serde_json::Value = serde_json::from_str(&session.check(&question(false)).unwrap()).unwrap();
        assert_eq!(checked["refused"], false);
        assert!(session.file("report.html").is_err());
        session.fit(&question(false), &Silent).unwrap();
        assert!(session.file("effects.csv").unwrap().starts_with(b"id,"));
        assert!(session.file("report.html").unwrap().starts_with(b"<!DOCTYPE html>"));
        assert!(session.file("other").is_err());
        assert!(session.explore("GET", "/api/run", &[]).unwrap().starts_with(b"200\n{"));
        assert!(session.explore("GET", "/api/nothing", &[]).unwrap().starts_with(b"404\n"));
        assert!(session.explore("GET", "nothing", &[]).unwrap().starts_with(b"400\n"));
        assert!(session.explore("POST", "/api/new", b"{\"values\": {}}").unwrap().starts_with(b"422\n"));
    }

    #[test]
    fn refusals_are_those_of_the_command() {
        let mut session = Session::default();
        assert!(session.check(&question(false)).unwrap_err().0.contains("no table"));
        let refused = session.open("book.xlsx", b"PK\x03\x04rest".to_vec()).unwrap_err();
        assert!(refused.0.contains("an Excel workbook"), "{refused:?}");
        session.open("a.csv", b"time,event,treatment,x\n1,0,0,1\n-2,1,1,2\n".to_vec()).unwrap();
        let checked: serde_json::Value = serde_json::from_str(&session.check(&question(false)).unwrap()).unwrap();
        assert_eq!(checked["refused"], true);
        assert!(checked["problems"].as_str().unwrap().contains("time"));
        assert!(session.fit(&question(false), &Silent).is_err());
        assert!(session.fit("{}", &Silent).unwrap_err().0.contains("not understood"));
    }
}
