//! What Python can ask for.

use crate::columns::{self, Out};
use crate::errors::{self, json};
use crate::table::PyTable;
use crate::watch;
use dvim::internal::analysis::Analysis;
use dvim::internal::audit::average::By;
use dvim::internal::audit::{Audit, sensitivity};
use dvim::internal::cohort::{Cohort, Roles};
use dvim::internal::compare::cox::Ties;
use dvim::internal::cure::{self, ArmData, FitOptions};
use dvim::internal::effect::Corrected;
use dvim::internal::error::Error;
use dvim::internal::options::{Estimator, Options};
use dvim::internal::overview::Overview;
use dvim::internal::setting::Setting;
use dvim::internal::simulate::Scenario;
use dvim::internal::survival::SurvivalCurve;
use dvim::internal::watch::Watch;
use dvim_io::atomic::{Access, Folder, NewFile};
use dvim_io::regular::open_regular;
use dvim_io::run::{EffectsFormat, files_of};
use dvim_io::tasks::{self, Analysed, Compared, Predicted};
use dvim_report::audit::{AuditRecord, words, write_uses};
use dvim_report::card::card;
use dvim_report::names::Names;
use dvim_report::record::{
    AskedRecord, AverageRecord, MatchRecord, ModelRecord, OptionsRecord, OverviewRecord, Summary,
};
use dvim_report::report::{Page, run_page};
use dvim_report::spell::SettingRecord;
use dvim_report::tables::{self, ColumnKind};
use dvim_report::terminal::Terminal;
use dvim_report::text;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyList;
use serde::Deserialize;
use std::ffi::{CString, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The parts of the columns, as Python asks for them.
#[derive(Deserialize)]
struct Asked {
    time: String,
    event: String,
    treatment: String,
    horizon: f64,
    #[serde(flatten, with = "AskedRecord")]
    asked: Roles,
}

fn bad(py: Python<'_>, what: impl ToString) -> PyErr {
    let words = format!(
        "error: {}\n  rule:   such an option is one of a few words\n  remedy: help(dvim.fit) lists them",
        what.to_string()
    );
    errors::input(py, words)
}

pub fn roles_of(py: Python<'_>, asked: &str) -> PyResult<Roles> {
    let Asked { time, event, treatment, horizon, asked } = serde_json::from_str(asked).map_err(|e| bad(py, e))?;
    Ok(Roles { time, event, treatment, horizon, ..asked })
}

pub fn options_of(py: Python<'_>, options: &str) -> PyResult<Options> {
    let record: OptionsRecord = serde_json::from_str(options).map_err(|e| bad(py, e))?;
    record.options().map_err(|e| bad(py, e))
}

/// Subgroups, as Python names them.
pub fn by_of(by: &[String]) -> Vec<By> {
    by.iter().map(|b| By::parse(b)).collect()
}

/// The format of effects.
pub fn format_of(py: Python<'_>, format: &str) -> PyResult<EffectsFormat> {
    EffectsFormat::ALL
        .into_iter()
        .find(|f| f.name() == format)
        .ok_or_else(|| bad(py, format!("the format `{format}` is not known; use csv or json")))
}

/// The options of the engine, as JSON; with the adjusted estimator, its own among them.
#[pyfunction]
pub fn default_options(adjusted: bool) -> String {
    let estimator = if adjusted { Estimator::Adjusted(Default::default()) } else { Estimator::Paper };
    json(&OptionsRecord::from(&Options { estimator, ..Options::default() }))
}

/// The list of settings, as JSON.
#[pyfunction]
pub fn settings() -> String {
    json(&SettingRecord::all())
}

/// Refuses settings that were given, by their names, and that the estimator would not look at.
#[pyfunction]
pub fn refuse_idle(py: Python<'_>, options: &str, given: Vec<String>) -> PyResult<()> {
    let estimator = options_of(py, options)?.estimator;
    tasks::refuse_idle(&estimator, given.iter().filter_map(|name| Setting::named(name)))
        .map_err(|e| errors::engine(py, e))
}

/// The column of ids of a table with these names.
#[pyfunction]
pub fn id_column(py: Python<'_>, names: Vec<String>, roles: &str) -> PyResult<Option<String>> {
    let roles = roles_of(py, roles)?;
    Ok(roles.id_column(names.iter().map(String::as_str)).map(str::to_string))
}

/// A run: fitted here, or opened.
pub enum Content {
    Fitted { done: Arc<Analysed>, summary: Box<Summary> },
    Opened { run: Box<dvim_io::run::Run>, found: Box<Analysis>, path: PathBuf },
}

impl Content {
    pub fn fitted(done: Arc<Analysed>) -> Content {
        let summary = Box::new(done.summary());
        Content::Fitted { done, summary }
    }

    fn cohort(&self) -> &Cohort {
        match self {
            Content::Fitted { done, .. } => &done.cohort,
            Content::Opened { run, .. } => &run.cohort,
        }
    }

    fn found(&self) -> &Analysis {
        match self {
            Content::Fitted { done, .. } => &done.found,
            Content::Opened { found, .. } => found,
        }
    }

    pub fn summary(&self) -> &Summary {
        match self {
            Content::Fitted { summary, .. } => summary,
            Content::Opened { run, .. } => &run.summary,
        }
    }

    fn corrected(&self, unit: usize) -> Option<&Corrected> {
        let found = self.found();
        let i = found.units.binary_search(&(unit as u32)).ok()?;
        found.effects[i].corrected.as_ref()
    }
}

/// Effects of new patients, the members of their groups, and how many have no estimate: too far, not served.
type Forecast<'py> = (Bound<'py, PyList>, Option<Bound<'py, PyList>>, usize, usize, (usize, Vec<String>));

/// What a fit found.
#[pyclass(frozen, module = "dvim._dvim")]
pub struct Run(pub Arc<Content>);

/// Fits a table.
#[pyfunction]
#[pyo3(signature = (table, kind, roles, options, by, audit, threads, progress))]
#[allow(clippy::too_many_arguments, reason = "called from one place in Python, by position")]
pub fn fit(
    py: Python<'_>,
    table: &PyTable,
    kind: &str,
    roles: &str,
    options: &str,
    by: Vec<String>,
    audit: bool,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Run> {
    let (roles, options) = (roles_of(py, roles)?, options_of(py, options)?);
    let input = table.take(py, kind)?;
    let asked = tasks::Asked { by: by_of(&by), audit };
    let work = move |watch: &dyn Watch| {
        Analysed::new(input, &roles, &options, &asked, watch).map(|done| Content::fitted(Arc::new(done)))
    };
    Ok(Run(Arc::new(watch::run(py, threads, progress, work)?)))
}

/// Opens a run that was saved.
#[pyfunction]
#[pyo3(signature = (path, threads, progress))]
pub fn open_run(
    py: Python<'_>,
    path: PathBuf,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Run> {
    open_content(py, path, threads, progress).map(Run)
}

pub fn open_content(
    py: Python<'_>,
    path: PathBuf,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Arc<Content>> {
    let run = watch::detached(py, || dvim_io::run::open_run(&path))?.map_err(|e| errors::open(py, e))?;
    let run = Box::new(run);
    let work = move |watch: &dyn Watch| {
        let found = Analysis::reopened(run.fit.clone(), &run.corrected, run.stored.clone(), &run.cohort, watch)?;
        Ok((run, Box::new(found)))
    };
    let (run, found) = watch::run(py, threads, progress, work)?;
    Ok(Arc::new(Content::Opened { run, found, path }))
}

#[pymethods]
impl Run {
    /// The columns of `effects.csv`.
    fn effects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let this = &self.0;
        let found = watch::detached(py, || columns::of_effects(&tables::effect_table(this.cohort(), this.found())))?;
        columns::to_python(py, found)
    }

    /// The columns of `weights.csv`.
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let (cohort, found) = (self.0.cohort(), self.0.found());
        columns::to_python(py, columns::of_rows(&tables::WEIGHT_COLUMNS, tables::weight_rows(cohort, found)))
    }

    /// What is worth knowing of the input, as JSON. A run that was opened says it in the words of its file.
    fn warnings(&self) -> String {
        match self.0.as_ref() {
            Content::Fitted { done, .. } => errors::problems_json(&done.warnings),
            Content::Opened { run, .. } => json(&run.summary.warnings),
        }
    }

    /// The verdict on both effects, and every reason with its remedy, in Python's words; whether there is a doubt.
    fn verdict(&self) -> Option<([String; 2], Vec<String>, bool)> {
        let verdict = self.0.summary().verdict.as_ref()?;
        let (said, reasons) = verdict.lines(&dvim_report::spell::Python);
        Some((said, reasons, verdict.is_doubtful()))
    }

    /// `summary.json`.
    fn summary(&self) -> String {
        json(self.0.summary())
    }

    /// Files of an opened run that were changed since it was written.
    fn changed(&self) -> Vec<String> {
        match &*self.0 {
            Content::Fitted { .. } => Vec::new(),
            Content::Opened { run, .. } => run.changed.clone(),
        }
    }

    /// What `dvim fit` says at its end.
    fn text(&self) -> String {
        text::summary(self.0.summary(), self.0.found(), self.0.cohort(), Terminal::default())
    }

    /// A fragment of HTML with what was found.
    fn card(&self) -> String {
        card(self.0.cohort(), self.0.found(), self.0.summary())
    }

    /// Writes the page of the run.
    #[pyo3(signature = (path, force, title, about, time_unit))]
    fn write_page(
        &self,
        py: Python<'_>,
        path: PathBuf,
        force: bool,
        title: Option<String>,
        about: Option<String>,
        time_unit: Option<String>,
    ) -> PyResult<()> {
        let this = &self.0;
        let page = Page { title, about, time_unit };
        let own = match &**this {
            Content::Fitted { .. } => Vec::new(),
            Content::Opened { path, .. } => files_of(path),
        };
        let own: Vec<&Path> = own.iter().map(PathBuf::as_path).collect();
        let written = watch::detached(py, || {
            let file = NewFile::plan(&path, force, Access::Owner, &own)?;
            let html = run_page(&page, this.cohort(), this.found(), this.summary());
            file.write(|out| out.write_all(html.as_bytes()))
        })?;
        written.map_err(|e| errors::io(py, e))
    }

    /// The audit as JSON, the averages as JSON, and both in words.
    #[pyo3(signature = (by, seeds, threads, progress))]
    fn audit(
        &self,
        py: Python<'_>,
        by: Vec<String>,
        seeds: usize,
        threads: Option<usize>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(String, String, String)> {
        let this = Arc::clone(&self.0);
        let by = by_of(&by);
        watch::run(py, threads, progress, move |watch| {
            let (cohort, found) = (this.cohort(), this.found());
            let mut audit = Audit::of(cohort, found, &by)?;
            if seeds > 0 {
                audit.seeds = sensitivity::seeds(cohort, found, seeds, watch)?;
            }
            let record = AuditRecord::of(cohort, &audit);
            let averages: Vec<AverageRecord> = audit.averages.iter().map(AverageRecord::from).collect();
            let flags: Vec<(String, usize)> = found.flag_counts().into_iter().map(|(f, n)| (f.meaning(), n)).collect();
            let words = words(&averages, &record, &flags, found.units.len());
            Ok((json(&record), json(&averages), words))
        })
    }

    /// How often each unit is used; `None` where uses are not counted.
    #[pyo3(signature = (threads, progress))]
    fn uses<'py>(
        &self,
        py: Python<'py>,
        threads: Option<usize>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let this = Arc::clone(&self.0);
        let found = watch::run(py, threads, progress, move |_| {
            let audit = Audit::of(this.cohort(), this.found(), &[])?;
            let kinds = columns::results(&["id", "treatment"], &[]);
            let columns = |b| columns::of_csv(&kinds, |out| write_uses(out, this.cohort(), b));
            Ok(audit.balance.as_ref().map(columns))
        })?;
        found.map(|c| columns::to_python(py, c)).transpose()
    }

    /// The groups of one patient: as JSON and in words.
    fn match_groups(&self, py: Python<'_>, id: &str, all: bool) -> PyResult<(String, String)> {
        let this = &self.0;
        let (cohort, fit) = (this.cohort(), &this.found().fit);
        let (unit, groups) =
            watch::detached(py, || tasks::groups_of(cohort, fit, id))?.map_err(|e| errors::engine(py, e))?;
        let corrected = this.corrected(unit);
        let record = MatchRecord::of(cohort, fit, unit, &groups, corrected);
        let names = Names::of(this.summary(), None);
        Ok((json(&record), text::match_groups(cohort, fit, &names, unit, &groups, corrected, all)))
    }

    /// The Kaplan–Meier curve of each arm, as JSON by arm: steps with intervals.
    fn curves<'py>(&self, py: Python<'py>, confidence: f64) -> PyResult<Bound<'py, PyList>> {
        let cohort = self.0.cohort();
        let mut out = Vec::new();
        let mut arms = Vec::new();
        for z in text::READING_ORDER {
            let units = cohort.units_of(z);
            let curve = SurvivalCurve::of_outcomes(cohort.outcomes(&units));
            arms.extend(curve.steps().iter().map(|_| Some(z.name().to_string())));
            out.push(curve);
        }
        let mut columns = vec![("arm".to_string(), Out::Text(arms))];
        columns.extend(step_columns(&out, confidence));
        columns::to_python(py, columns)
    }

    /// The table of `dvim curves`: standardised, or of these patients.
    #[pyo3(signature = (patients, at, by))]
    fn curve_table<'py>(
        &self,
        py: Python<'py>,
        patients: Option<Vec<String>>,
        at: Option<Vec<f64>>,
        by: Vec<String>,
    ) -> PyResult<Bound<'py, PyList>> {
        let this = Arc::clone(&self.0);
        let asked = tasks::CurvesAsked { patients, at, by: by_of(&by) };
        let (found, left_out) = watch::run(py, None, None, move |_| {
            let kept = this.summary().audit.as_ref().map_or(&[][..], |a| &a.curves[..]);
            let (cohort, found) = (this.cohort(), this.found());
            let audit = |by: &[By]| Audit::of(cohort, found, by);
            let mut table = Vec::new();
            let left_out = asked.write(&mut table, cohort, &found.fit, |i| this.corrected(i), kept, audit)?;
            let kinds = columns::results(&["population", "id", "arm"], &[]);
            let columns = columns::of_csv(kinds, |out| {
                out.extend_from_slice(&table);
                Ok(())
            });
            Ok((columns, left_out))
        })?;
        if let Some(words) = left_out {
            let words = CString::new(words.replace('\0', "")).expect("no zero byte");
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &words, 2)?;
        }
        columns::to_python(py, found)
    }

    /// How new patients must be read: the id column to look for, and the columns that are text.
    #[pyo3(signature = (id))]
    fn reading_new(&self, id: Option<&str>) -> (Option<String>, Vec<String>) {
        let options = tasks::read_options_new(self.0.cohort(), &self.0.summary().roles, id);
        (options.default_id, options.text)
    }

    /// Effects of new patients, who is in their groups where that is asked for, and two counts of those without an
    /// estimate.
    #[pyo3(signature = (table, id, max_distance, groups, threads, progress))]
    #[allow(clippy::too_many_arguments, reason = "called from one place in Python, by position")]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        table: &PyTable,
        id: Option<String>,
        max_distance: Option<f64>,
        groups: bool,
        threads: Option<usize>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Forecast<'py>> {
        let this = Arc::clone(&self.0);
        let input = table.take(py, "")?;
        let (effects, members, far, unserved, outside) = watch::run(py, threads, progress, move |watch| {
            let (cohort, fit) = (this.cohort(), &this.found().fit);
            let found = Predicted::new(cohort, fit, &input.table, id.as_deref(), max_distance, watch)?;
            let members = groups.then(|| {
                let kinds = columns::results(&["id", "matched_for", "arm", "member"], &["rank", "event"]);
                columns::of_csv(kinds, |out| found.write_members(out, cohort, fit))
            });
            let effects = columns::of_effects(&found.table(cohort, fit));
            Ok((effects, members, found.n_far(), found.n_unserved(), found.off_support()))
        })?;
        let members = members.map(|m| columns::to_python(py, m)).transpose()?;
        Ok((columns::to_python(py, effects)?, members, far, unserved, outside))
    }

    /// Writes the run into a directory.
    fn save(&self, py: Python<'_>, path: PathBuf, force: bool, format: &str) -> PyResult<()> {
        let format = format_of(py, format)?;
        let this = &self.0;
        let written = watch::detached(py, || match &**this {
            Content::Fitted { done, .. } => {
                let origin = done.origin(format);
                dvim_io::run::write_run(&path, force, &done.cohort, &done.found, &done.audit, origin).map(|_| ())
            }
            Content::Opened { run, path: from, .. } => copy_run(from, &path, force, &run.summary),
        })?;
        written.map_err(|e| errors::io(py, e))
    }
}

/// Copies the files of a run that was opened.
fn copy_run(from: &Path, to: &Path, force: bool, summary: &Summary) -> std::io::Result<()> {
    let directory = dvim_io::run::begin_run(to, force, &[], None)?;
    copy_files(from, &directory, summary.files.keys().map(String::as_str))?;
    directory.publish()
}

/// Copies these files, and the summary beside them.
pub fn copy_files<'a>(from: &Path, to: &Folder, names: impl Iterator<Item = &'a str>) -> std::io::Result<()> {
    for name in names.chain(["summary.json"]) {
        let (mut file, _) = open_regular(&from.join(name), u64::MAX)?;
        to.write(name, |out| std::io::copy(&mut file, out).map(|_| ()))?;
    }
    Ok(())
}

fn step_columns(curves: &[SurvivalCurve], confidence: f64) -> columns::Columns {
    let steps = || curves.iter().flat_map(|c| c.steps().iter().map(move |s| (c, s)));
    let count = |f: &dyn Fn(&dvim::internal::survival::Step) -> usize| {
        let values: Vec<i64> = steps().map(|(_, s)| f(s) as i64).collect();
        let gaps = vec![false; values.len()];
        Out::Count(values, gaps)
    };
    // The interval at a step is that of a horizon just after it.
    let intervals: Vec<_> =
        steps().map(|(c, s)| dvim::internal::interval::share(&c.summary(s.time.next_up()), confidence)).collect();
    vec![
        ("time".into(), Out::Number(steps().map(|(_, s)| s.time).collect())),
        ("n_at_risk".into(), count(&|s| s.n_at_risk)),
        ("n_events".into(), count(&|s| s.n_events)),
        ("n_censored".into(), count(&|s| s.n_censored)),
        ("survival".into(), Out::Number(steps().map(|(_, s)| s.survival).collect())),
        ("se".into(), Out::Number(intervals.iter().map(|i| i.se.unwrap_or(f64::NAN)).collect())),
        ("low".into(), Out::Number(intervals.iter().map(|i| i.low).collect())),
        ("high".into(), Out::Number(intervals.iter().map(|i| i.high).collect())),
    ]
}

/// What `dvim check` says: as JSON, the problems in the words of Python, and all of it as a text.
#[pyfunction]
pub fn check(
    py: Python<'_>,
    table: &PyTable,
    kind: &str,
    roles: &str,
    options: &str,
) -> PyResult<(String, String, String)> {
    let (roles, options) = (roles_of(py, roles)?, options_of(py, options)?);
    let input = table.take(py, kind)?;
    let overview = watch::detached(py, || Overview::of(&input.table, &roles, &options))?;
    let words = text::overview(&overview);
    let problems = errors::problems_json(&overview.problems);
    Ok((json(&OverviewRecord::of(&overview, input.record.file, input.record.sha256)), problems, words))
}

/// The scenarios: name, label, horizon, usual size, whether it can be confounded.
#[pyfunction]
pub fn scenarios() -> Vec<(&'static str, &'static str, f64, usize, bool)> {
    Scenario::ALL
        .into_iter()
        .map(|s| (s.name(), s.label(), s.horizon(), s.usual_size(), s.can_be_confounded()))
        .collect()
}

/// A simulated cohort and its truth.
#[pyfunction]
pub fn simulate<'py>(
    py: Python<'py>,
    scenario: &str,
    n: usize,
    seed: u64,
    confounded: bool,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
    let scenario = Scenario::ALL
        .into_iter()
        .find(|s| s.name() == scenario)
        .ok_or_else(|| bad(py, format!("there is no scenario `{scenario}`")))?;
    let (cohort, truth) = watch::run(py, None, None, move |_| {
        let drawn = dvim::internal::simulate::draw(scenario, n, confounded, seed);
        // A cohort has the types that its file would be read with; the truth has numbers, also where all are whole.
        let cohort = columns::of_csv(|_| None, |out| tables::write_cohort(out, &drawn.units.as_recorded()));
        let kinds = |name: &str| (name != "id").then_some(ColumnKind::Number);
        Ok((cohort, columns::of_csv(kinds, |out| tables::write_truth(out, &drawn.units.ids, &drawn.truth))))
    })?;
    Ok((columns::to_python(py, cohort)?, columns::to_python(py, truth)?))
}

/// Every method on one cohort.
#[pyclass(frozen, module = "dvim._dvim")]
pub struct Comparison(Compared);

/// Estimates a table by every method.
#[pyfunction]
#[pyo3(signature = (table, kind, roles, options, ties, threads, progress))]
#[allow(clippy::too_many_arguments, reason = "called from one place in Python, by position")]
pub fn compare(
    py: Python<'_>,
    table: &PyTable,
    kind: &str,
    roles: &str,
    options: &str,
    ties: &str,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Comparison> {
    let (roles, options) = (roles_of(py, roles)?, options_of(py, options)?);
    let Some(ties) = Ties::ALL.into_iter().find(|t| t.name() == ties) else {
        return Err(bad(py, format!("ties are handled by breslow or efron, not by `{ties}`")));
    };
    let input = table.take(py, kind)?;
    let work = move |watch: &dyn Watch| Compared::new(input, &roles, &options, ties, watch);
    Ok(Comparison(watch::run(py, threads, progress, work)?))
}

#[pymethods]
impl Comparison {
    /// `effects.csv`.
    fn effects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let kinds = columns::results(&["id", "treatment", "method"], &[]);
        columns::to_python(py, columns::of_csv(kinds, |out| self.0.comparison().write_effects(out)))
    }

    /// `summary.csv`.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let kinds = columns::results(&["method"], &["n_units", "time_undefined"]);
        columns::to_python(py, columns::of_csv(kinds, |out| self.0.comparison().write_summary(out)))
    }

    /// `correlations.csv`.
    fn correlations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let kinds = columns::results(&["effect", "method", "other"], &[]);
        columns::to_python(py, columns::of_csv(kinds, |out| self.0.comparison().write_correlations(out)))
    }

    /// What `dvim compare` says.
    fn text(&self) -> String {
        self.0.comparison().text()
    }

    /// What is worth knowing of the input, as JSON.
    fn warnings(&self) -> String {
        errors::problems_json(&self.0.warnings)
    }

    /// The figures: violins of both effects.
    fn figures(&self) -> [String; 2] {
        [false, true].map(|of_time| self.0.comparison().violins(of_time))
    }

    /// Writes the files of `dvim compare`.
    fn save(&self, py: Python<'_>, path: PathBuf, force: bool) -> PyResult<()> {
        let written = watch::detached(py, || {
            let directory = tasks::begin_comparison(&path, force, &[])?;
            self.0.write(directory)
        })?;
        written.map_err(|e| errors::io(py, e))
    }
}

/// The curve of a sample: its steps, and its values at these horizons as JSON.
#[pyfunction]
pub fn kaplan_meier<'py>(
    py: Python<'py>,
    time: &Bound<'py, PyAny>,
    event: &Bound<'py, PyAny>,
    confidence: f64,
    horizons: Vec<f64>,
) -> PyResult<(Bound<'py, PyList>, String)> {
    let time = PyBuffer::<f64>::get(time)?.to_vec(py)?;
    let event: Vec<bool> = PyBuffer::<u8>::get(event)?.to_vec(py)?.into_iter().map(|e| e != 0).collect();
    let curve = SurvivalCurve::new(&time, &event);
    let at = |h: f64| {
        let s = curve.summary(h);
        let share = dvim::internal::interval::share(&s, confidence);
        let mean = dvim::internal::interval::mean_event_time(&s, h, confidence);
        serde_json::json!({
            "horizon": h,
            "survival": s.survival,
            "survival_se": share.se,
            "survival_low": share.low,
            "survival_high": share.high,
            "mean_event_time": s.mean_event_time(),
            "mean_event_time_se": mean.and_then(|m| m.se),
            "mean_event_time_low": mean.map(|m| m.low),
            "mean_event_time_high": mean.map(|m| m.high),
            "restricted_mean": s.restricted_mean(h),
            "restricted_mean_se": s.restricted_mean_se(h),
            "n_at_risk": s.n_at_risk,
            "n_events": s.n_events,
            "carried_forward": s.carried_forward(),
        })
    };
    let (median, ends) = dvim::internal::interval::quantile(&curve, 0.5, confidence);
    let record = serde_json::json!({
        "n_units": curve.n_units(),
        "median": median,
        "median_low": ends[0],
        "median_high": ends[1],
        "at": horizons.into_iter().map(at).collect::<Vec<_>>(),
    });
    let columns = step_columns(std::slice::from_ref(&curve), confidence);
    Ok((columns::to_python(py, columns)?, json(&record)))
}

/// A mixture cure model.
#[pyclass(frozen, module = "dvim._dvim")]
pub struct CureModel(cure::CureModel);

/// Fits a mixture cure model to units with these covariates (row-major).
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "called from one place in Python, by position")]
pub fn fit_cure(
    py: Python<'_>,
    time: &Bound<'_, PyAny>,
    event: &Bound<'_, PyAny>,
    covariates: &Bound<'_, PyAny>,
    n_covariates: usize,
    horizon: f64,
    cure_ridge: f64,
    latency_ridge: f64,
) -> PyResult<CureModel> {
    let mut time = PyBuffer::<f64>::get(time)?.to_vec(py)?;
    let mut event: Vec<bool> = PyBuffer::<u8>::get(event)?.to_vec(py)?.into_iter().map(|e| e != 0).collect();
    let covariates = PyBuffer::<f64>::get(covariates)?.to_vec(py)?;
    for (t, e) in time.iter_mut().zip(&mut event).filter(|(t, _)| **t >= horizon) {
        (*t, *e) = (horizon, false);
    }
    let options = FitOptions { cure_ridge, latency_ridge, ..FitOptions::default() };
    let work = move |_: &dyn Watch| {
        let data = ArmData { time: &time, event: &event, covariates: &covariates, n_covariates, horizon, extras: None };
        cure::describe(&data, &options).map_err(|e| Error::Model { arm: "only", reason: e.to_string() })
    };
    Ok(CureModel(watch::run(py, None, None, work)?))
}

#[pymethods]
impl CureModel {
    /// The model as JSON.
    fn record(&self) -> String {
        json(&ModelRecord::from(&self.0))
    }

    /// Cure probability, mean event time and, for each of `times`, the probability of no event by then: for each unit,
    /// a row.
    fn predict(&self, py: Python<'_>, covariates: &Bound<'_, PyAny>, times: Vec<f64>) -> PyResult<Vec<Vec<f64>>> {
        let x = PyBuffer::<f64>::get(covariates)?.to_vec(py)?;
        let p = self.0.n_covariates();
        let rows = if p == 0 { vec![&x[..0]] } else { x.chunks_exact(p).collect() };
        Ok(py.detach(|| {
            let of = |x: &[f64]| {
                let mut out = vec![self.0.cure_probability(x), self.0.mean_event_time(x)];
                out.extend(times.iter().map(|&t| self.0.survival(x, t)));
                out
            };
            rows.into_iter().map(of).collect()
        }))
    }
}

/// Runs the command line; gives the exit code.
#[pyfunction]
pub fn command(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| dvim_cli::run(args))
}

/// The style sheet of the reports, whose colours figures take.
#[pyfunction]
pub fn style_sheet() -> String {
    dvim_report::plot::style_sheet()
}
