//! The R face: conversion, and nothing else. The engine (`dvim`), the records (`dvim-report`) and the tasks (`dvim-io`)
//! that the command line and Python call are called here. What users see is `r/R`; these functions are private to it.
//!
//! Long work is a job: a function here starts it on threads of its own, and R waits for it in its own code
//! (`r/R/await.R`). So Ctrl-C, progress and conditions are R's, and no jump of R ever crosses Rust.

// R calls these functions with positional arguments.
#![allow(clippy::too_many_arguments)]

mod answer;
mod handle;
mod table;
mod value;

use answer::{records, to_r_result, Answer, Failure};
use dvim::internal::cohort::Roles;
use dvim::internal::ground::Ground;
use dvim::internal::options::Options;
use dvim::internal::overview::Overview;
use dvim::internal::setting::Setting;
use dvim::internal::simulate::{self, Scenario};
use dvim_bind::asked;
use dvim_bind::columns::{of_csv, results};
use dvim_bind::held::Held;
use dvim_bind::several::Several;
use dvim_bind::work::{pool, Waited};
use dvim_explore::{Explorer, Server};
use dvim_io::atomic::{Access, NewFile};
use dvim_io::batch::{self, is_batch, open_batch};
use dvim_io::tasks::{self, Analysed, Compared, CurvesAsked, Input};
use dvim_report::figures::{Kind, Look};
use dvim_report::record::OverviewRecord;
use dvim_report::report::Page;
use dvim_report::spell::{SettingRecord, R as Face};
use dvim_report::tables::{self, ColumnKind};
use dvim_report::text;
use handle::{start, Handle, Serving};
use savvy::{savvy, savvy_err, ListSexp, OwnedLogicalSexp, Sexp};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::time::Duration;

/// Ends at once, with a failure.
fn refuse(failure: Failure) -> savvy::Result<Sexp> {
    start(Some(1), |_| Err(failure))
}

/// A value, or a failure that R hears of at once.
macro_rules! or_refuse {
    ($found:expr) => {
        match $found {
            Ok(found) => found,
            Err(failure) => return refuse(failure),
        }
    };
}

/// The table of a data frame; `kind` says what it was.
fn input_of(columns: &ListSexp, id: Option<&str>, kind: &str) -> savvy::Result<Result<Input, Failure>> {
    Ok(match table::table(columns, id)? {
        Ok(table) => Ok(Input::of_memory(kind, table)),
        Err(why) => Err(Failure::input(format!(
            "error: {why}\n  rule:   a table has columns of different names and of equal length\n  remedy: rename the column, or give it one value for each row"
        ))),
    })
}

fn json_of(record: Sexp) -> savvy::Result<String> {
    Ok(value::from_r(record)?.to_string())
}

/// Roles and options, as R asks for them.
fn asked_of(roles: Sexp, options: Sexp) -> savvy::Result<Result<(Roles, Options), Failure>> {
    let (roles, options) = (json_of(roles)?, json_of(options)?);
    let both = asked::roles(&roles).and_then(|r| Ok((r, asked::options(&options)?)));
    Ok(both.map_err(Failure::option))
}

/// A run with everything that R keeps of it.
fn answer_of(held: Held) -> Answer {
    let held = Arc::new(held);
    Answer::List(vec![
        ("effects", Answer::Columns(held.effects())),
        ("weights", Answer::Columns(held.weights())),
        ("summary", Answer::record(held.summary())),
        ("warnings", Answer::record(&held.warnings(&Face))),
        ("verdict", Answer::record(&held.verdict(&Face))),
        ("changed", Answer::record(&held.changed())),
        ("text", Answer::Text(held.text(&Face))),
        ("card", Answer::Text(held.card(&Face))),
        ("run", Answer::Handle(Handle::Run(held))),
    ])
}

/// Several runs with everything that R keeps of them.
fn answer_of_several(found: Several) -> Answer {
    let warning = |(set, w): (&str, _)| {
        let mut record = serde_json::to_value(&records(std::slice::from_ref(w))[0]).expect("a record");
        record["found"] = format!("in `{set}`: {}", record["found"].as_str().unwrap_or("")).into();
        record
    };
    let warnings: Vec<_> = found.warnings().into_iter().map(warning).collect();
    let found = Arc::new(found);
    let is_of_arms = found.record().is_of_arms();
    Answer::List(vec![
        ("averages", Answer::Columns(found.averages())),
        ("effects", if is_of_arms { Answer::Nothing } else { Answer::Columns(found.effects()) }),
        ("summary", Answer::record(found.record())),
        ("warnings", Answer::record(&warnings)),
        ("notes", Answer::record(&found.notes())),
        ("text", Answer::Text(found.record().text())),
        ("card", Answer::Text(dvim_report::card::batch_card(found.record()))),
        ("several", Answer::Handle(Handle::Several(found))),
    ])
}

/// Waits for a job, at most so many seconds. NULL while it goes on; then a list of `value` or `failure`.
///
/// @noRd
#[savvy]
fn native_wait(job: Sexp, seconds: f64) -> savvy::Result<Sexp> {
    match handle::job(&job)?.wait(Duration::from_secs_f64(seconds)) {
        Waited::NotYet => handle::nothing(),
        Waited::Done(Ok(outcome)) => to_r_result(outcome),
        Waited::Done(Err(error)) => to_r_result(Err(Failure::engine(&error))),
        Waited::Broken(words) => to_r_result(Err(Failure::bug(&words))),
    }
}

/// What a job is at: a stage, the steps done and their number; NULL before it says so.
///
/// @noRd
#[savvy]
fn native_stage(job: Sexp) -> savvy::Result<Sexp> {
    match handle::job(&job)?.stage() {
        None => handle::nothing(),
        Some((stage, done, total)) => value::to_r(&serde_json::json!({ "stage": stage, "done": done, "total": total })),
    }
}

/// Asks a job to end, and waits for that for a moment.
///
/// @noRd
#[savvy]
fn native_cancel(job: Sexp) -> savvy::Result<()> {
    handle::job(&job)?.cancel();
    Ok(())
}

/// Whether a pointer has lost what it pointed to.
///
/// @noRd
#[savvy]
fn native_is_gone(pointer: Sexp) -> savvy::Result<Sexp> {
    OwnedLogicalSexp::try_from_scalar(handle::is_gone(&pointer))?.into()
}

/// The list of settings.
///
/// @noRd
#[savvy]
fn native_settings() -> savvy::Result<Sexp> {
    Answer::record(&SettingRecord::all()).into_r()
}

/// The options of the engine; with the adjusted estimator, its own among them.
///
/// @noRd
#[savvy]
fn native_default_options(adjusted: bool) -> savvy::Result<Sexp> {
    Answer::record(&asked::default_options(adjusted)).into_r()
}

/// The column of ids of a table with these names, if there is one.
///
/// @noRd
#[savvy]
fn native_id_column(names: Sexp, roles: Sexp) -> savvy::Result<Sexp> {
    let names = value::texts(names)?;
    let roles = asked::roles(&json_of(roles)?).map_err(|e| savvy_err!("{e}"))?;
    let found = roles.id_column(names.iter().map(String::as_str)).map(str::to_string);
    found.map_or(Answer::Nothing, Answer::Text).into_r()
}

/// Refuses settings that were given, by their names, and that the estimator would not look at.
///
/// @noRd
#[savvy]
fn native_refuse_idle(options: Sexp, given: Sexp) -> savvy::Result<Sexp> {
    let options = asked::options(&json_of(options)?).map_err(Failure::option);
    let given = value::texts(given)?;
    let settings = || given.iter().filter_map(|name| Setting::named(name));
    let checked = options.and_then(|o| {
        tasks::refuse_idle(&o.estimator, settings()).map_err(|e| Failure::engine(&e)).map(|()| Answer::Nothing)
    });
    to_r_result(checked)
}

/// Fits a table.
///
/// @noRd
#[savvy]
fn native_fit(
    columns: ListSexp,
    id: Sexp,
    kind: &str,
    roles: Sexp,
    options: Sexp,
    by: Sexp,
    audit: bool,
    threads: Sexp,
) -> savvy::Result<Sexp> {
    let (id, threads) = (value::text(id)?, value::count(threads)?);
    let (roles, options) = or_refuse!(asked_of(roles, options)?);
    let input = or_refuse!(input_of(&columns, id.as_deref(), kind)?);
    let asked = tasks::Asked { by: asked::by(&value::texts(by)?), audit };
    start(threads, move |watch| {
        let done = Analysed::new(input, &roles, &options, &asked, watch).map_err(|e| Failure::engine(&e))?;
        Ok(answer_of(Held::fitted(Arc::new(done))))
    })
}

/// Fits several tables, the parts of a table that a column numbers, or every arm of it.
///
/// @noRd
#[savvy]
fn native_fit_several(
    frames: ListSexp,
    id: Sexp,
    kind: &str,
    names: Sexp,
    imputation: Sexp,
    roles: Sexp,
    options: Sexp,
    by: Sexp,
    audit: bool,
    threads: Sexp,
) -> savvy::Result<Sexp> {
    let (id, threads) = (value::text(id)?, value::count(threads)?);
    let (roles, options) = or_refuse!(asked_of(roles, options)?);
    let mut inputs = Vec::new();
    for frame in frames.values_iter() {
        inputs.push(or_refuse!(input_of(&ListSexp::try_from(frame)?, id.as_deref(), kind)?));
    }
    let (names, imputation) = (value::texts(names)?, value::text(imputation)?);
    let asked = tasks::Asked { by: asked::by(&value::texts(by)?), audit };
    start(threads, move |watch| {
        let found = batch::Several::new(inputs, &names, imputation.as_deref(), &roles, &options, &asked, watch);
        Ok(answer_of_several(Several::fitted(found.map_err(|e| Failure::engine(&e))?)))
    })
}

/// Whether these tables and roles ask for several fits.
///
/// @noRd
#[savvy]
fn native_asks_for_several(n_tables: f64, imputation: Sexp, roles: Sexp) -> savvy::Result<Sexp> {
    let roles = asked::roles(&json_of(roles)?).map_err(|e| savvy_err!("{e}"))?;
    let several = is_batch(n_tables as usize, value::text(imputation)?.as_deref(), &roles);
    OwnedLogicalSexp::try_from_scalar(several)?.into()
}

/// Opens a run, or several, that were saved.
///
/// @noRd
#[savvy]
fn native_open(path: &str, threads: Sexp) -> savvy::Result<Sexp> {
    let path = PathBuf::from(path);
    start(value::count(threads)?, move |watch| {
        let open = |path: PathBuf| {
            let run = Held::read(&path).map_err(|e| Failure::open(&e))?;
            Held::opened(run, path, watch).map_err(|e| Failure::engine(&e))
        };
        match open_batch(&path).map_err(|e| Failure::open(&e))? {
            None => Ok(answer_of(open(path)?)),
            Some((record, effects)) => {
                let folders = record.runs.iter().map(|member| open(path.join(&member.folder)).map(Arc::new));
                let runs = folders.collect::<Result<Vec<_>, _>>()?;
                Ok(answer_of_several(Several::opened(record, effects, path, runs)))
            }
        }
    })
}

/// One of several runs.
///
/// @noRd
#[savvy]
fn native_run_of(several: Sexp, i: f64, threads: Sexp) -> savvy::Result<Sexp> {
    let several = Arc::clone(handle::several(&several)?);
    start(value::count(threads)?, move |_| {
        let held = &several.runs[i as usize];
        Ok(Answer::List(vec![
            ("effects", Answer::Columns(held.effects())),
            ("weights", Answer::Columns(held.weights())),
            ("summary", Answer::record(held.summary())),
            ("text", Answer::Text(held.text(&Face))),
            ("card", Answer::Text(held.card(&Face))),
            ("run", Answer::Handle(Handle::Run(Arc::clone(held)))),
        ]))
    })
}

/// Writes a run, several runs or a comparison into a directory.
///
/// @noRd
#[savvy]
fn native_save(pointer: Sexp, path: &str, force: bool, format: &str, threads: Sexp) -> savvy::Result<Sexp> {
    let (path, threads) = (PathBuf::from(path), value::count(threads)?);
    let format = or_refuse!(asked::format(format).map_err(Failure::option));
    let done = |written: std::io::Result<()>| written.map(|()| Answer::Nothing).map_err(|e| Failure::io(&e));
    if let Ok(held) = handle::run(&pointer) {
        let held = Arc::clone(held);
        return start(threads, move |_| done(held.save(&path, force, format)));
    }
    if let Ok(several) = handle::several(&pointer) {
        let several = Arc::clone(several);
        return start(threads, move |_| done(several.save(&path, force, format)));
    }
    let compared = Arc::clone(handle::comparison(&pointer)?);
    start(threads, move |_| {
        done(tasks::begin_comparison(&path, force, &[]).and_then(|directory| compared.write(directory)))
    })
}

/// Writes the page of a run.
///
/// @noRd
#[savvy]
fn native_report(
    run: Sexp,
    path: &str,
    force: bool,
    title: Sexp,
    about: Sexp,
    time_unit: Sexp,
    threads: Sexp,
) -> savvy::Result<Sexp> {
    let threads = value::count(threads)?;
    let held = Arc::clone(handle::run(&run)?);
    let page = Page { title: value::text(title)?, about: value::text(about)?, time_unit: value::text(time_unit)? };
    let path = PathBuf::from(path);
    start(threads, move |_| held.write_page(&page, &path, force).map(|()| Answer::Nothing).map_err(|e| Failure::io(&e)))
}

/// The audit, the averages, and both in words.
///
/// @noRd
#[savvy]
fn native_audit(run: Sexp, by: Sexp, seeds: f64, threads: Sexp) -> savvy::Result<Sexp> {
    let held = Arc::clone(handle::run(&run)?);
    let by = asked::by(&value::texts(by)?);
    start(value::count(threads)?, move |watch| {
        let (record, averages, words) = held.audit(&by, seeds as usize, watch).map_err(|e| Failure::engine(&e))?;
        Ok(Answer::List(vec![
            ("audit", Answer::record(&record)),
            ("averages", Answer::record(&averages)),
            ("text", Answer::Text(words)),
        ]))
    })
}

/// How often each patient is used; NULL where uses are not counted.
///
/// @noRd
#[savvy]
fn native_uses(run: Sexp, threads: Sexp) -> savvy::Result<Sexp> {
    let held = Arc::clone(handle::run(&run)?);
    start(value::count(threads)?, move |_| {
        Ok(held.uses().map_err(|e| Failure::engine(&e))?.map_or(Answer::Nothing, Answer::Columns))
    })
}

/// The groups of one patient, and what is said of them.
///
/// @noRd
#[savvy]
fn native_matches(run: Sexp, id: &str, all: bool, threads: Sexp) -> savvy::Result<Sexp> {
    let threads = value::count(threads)?;
    let (held, id) = (Arc::clone(handle::run(&run)?), id.to_string());
    start(threads, move |_| {
        let (record, words) = held.match_groups(&id, all).map_err(|e| Failure::engine(&e))?;
        Ok(Answer::List(vec![("record", Answer::record(&record)), ("text", Answer::Text(words))]))
    })
}

/// The Kaplan-Meier curve of each arm.
///
/// @noRd
#[savvy]
fn native_arm_curves(run: Sexp, confidence: f64, threads: Sexp) -> savvy::Result<Sexp> {
    let threads = value::count(threads)?;
    let held = Arc::clone(handle::run(&run)?);
    start(threads, move |_| Ok(Answer::Columns(held.arm_curves(confidence))))
}

/// The table of `dvim curves`, standardised or of patients, and who has none.
///
/// @noRd
#[savvy]
fn native_curves(run: Sexp, patients: Sexp, at: Sexp, by: Sexp, threads: Sexp) -> savvy::Result<Sexp> {
    let threads = value::count(threads)?;
    let held = Arc::clone(handle::run(&run)?);
    let patients = if patients.is_null() { None } else { Some(value::texts(patients)?) };
    let asked = CurvesAsked { patients, at: value::numbers(at)?, by: asked::by(&value::texts(by)?) };
    start(threads, move |_| {
        let (columns, left_out) = held.curve_table(&asked).map_err(|e| Failure::engine(&e))?;
        let left_out = left_out.map_or(Answer::Nothing, Answer::Text);
        Ok(Answer::List(vec![("curves", Answer::Columns(columns)), ("left_out", left_out)]))
    })
}

/// The id column to look for in new patients.
///
/// @noRd
#[savvy]
fn native_id_of_new(run: Sexp, id: Sexp) -> savvy::Result<Sexp> {
    let (usual, _) = handle::run(&run)?.reading_new(value::text(id)?.as_deref());
    usual.map_or(Answer::Nothing, Answer::Text).into_r()
}

/// Effects of new patients, who is in their groups where that is asked for, and how many have no estimate.
///
/// @noRd
#[savvy]
fn native_predict(
    run: Sexp,
    columns: ListSexp,
    id: Sexp,
    max_distance: Sexp,
    groups: bool,
    threads: Sexp,
) -> savvy::Result<Sexp> {
    let held = Arc::clone(handle::run(&run)?);
    let (id, max_distance) = (value::text(id)?, value::number(max_distance)?);
    let input = or_refuse!(input_of(&columns, id.as_deref(), "")?);
    start(value::count(threads)?, move |watch| {
        let found = held.predict(&input.table, id.as_deref(), max_distance, groups, watch);
        let found = found.map_err(|e| Failure::engine(&e))?;
        Ok(Answer::List(vec![
            ("effects", Answer::Columns(found.effects)),
            ("members", found.members.map_or(Answer::Nothing, Answer::Columns)),
            ("n_far", Answer::record(&found.n_far)),
            ("n_unserved", Answer::record(&found.n_unserved)),
            ("n_outside", Answer::record(&found.off_support.0)),
            ("outside", Answer::record(&found.off_support.1)),
        ]))
    })
}

/// A figure of a run as SVG: its text, or written to a file.
///
/// @noRd
#[savvy]
fn native_figure(
    run: Sexp,
    kind: &str,
    path: Sexp,
    force: bool,
    width: f64,
    time_unit: Sexp,
    threads: Sexp,
) -> savvy::Result<Sexp> {
    let threads = value::count(threads)?;
    let held = Arc::clone(handle::run(&run)?);
    let kind = or_refuse!(Kind::parse(kind).map_err(|why| Failure::input(format!("error: {why}"))));
    let (page, path) = (Page { time_unit: value::text(time_unit)?, ..Page::default() }, value::text(path)?);
    start(threads, move |_| {
        let look = Look { width, names: page.names(held.summary()) };
        let svg = held.figure(&kind, &look).map_err(|why| Failure::input(format!("error: {why}")))?;
        let Some(path) = path else { return Ok(Answer::Text(svg)) };
        let file = NewFile::plan(&PathBuf::from(path), force, Access::Owner, &[]).map_err(|e| Failure::io(&e))?;
        file.write(|out| out.write_all(svg.as_bytes())).map_err(|e| Failure::io(&e))?;
        Ok(Answer::Nothing)
    })
}

/// What `dvim check` says of a table.
///
/// @noRd
#[savvy]
fn native_check(
    columns: ListSexp,
    id: Sexp,
    kind: &str,
    roles: Sexp,
    options: Sexp,
    threads: Sexp,
) -> savvy::Result<Sexp> {
    let threads = value::count(threads)?;
    let id = value::text(id)?;
    let (roles, options) = or_refuse!(asked_of(roles, options)?);
    let input = or_refuse!(input_of(&columns, id.as_deref(), kind)?);
    start(threads, move |_| {
        let overview = Overview::of(&input.table, &roles, &options);
        let words = text::overview(&overview);
        let problems = records(&overview.problems);
        let record = OverviewRecord::of(&overview, input.record.file, input.record.sha256);
        Ok(Answer::List(vec![
            ("record", Answer::record(&record)),
            ("problems", Answer::record(&problems)),
            ("text", Answer::Text(words)),
        ]))
    })
}

/// Every method on one table.
///
/// @noRd
#[savvy]
fn native_compare(
    columns: ListSexp,
    id: Sexp,
    kind: &str,
    roles: Sexp,
    options: Sexp,
    ties: &str,
    threads: Sexp,
) -> savvy::Result<Sexp> {
    let (id, threads) = (value::text(id)?, value::count(threads)?);
    let (roles, options) = or_refuse!(asked_of(roles, options)?);
    let ties = or_refuse!(asked::ties(ties).map_err(Failure::option));
    let input = or_refuse!(input_of(&columns, id.as_deref(), kind)?);
    start(threads, move |watch| {
        let found = Compared::new(input, &roles, &options, ties, watch).map_err(|e| Failure::engine(&e))?;
        let comparison = found.comparison();
        let effects = of_csv(results(&["id", "treatment", "method"], &[]), |out| comparison.write_effects(out));
        let kinds = results(&["method"], &["n_units", "time_undefined"]);
        let summary = of_csv(kinds, |out| comparison.write_summary(out));
        let kinds = results(&["effect", "method", "other"], &[]);
        let correlations = of_csv(kinds, |out| comparison.write_correlations(out));
        let text = comparison.text();
        Ok(Answer::List(vec![
            ("effects", Answer::Columns(effects)),
            ("summary", Answer::Columns(summary)),
            ("correlations", Answer::Columns(correlations)),
            ("text", Answer::Text(text)),
            ("warnings", Answer::record(&records(&found.warnings))),
            ("comparison", Answer::Handle(Handle::Comparison(Arc::new(found)))),
        ]))
    })
}

/// The scenarios that can be simulated.
///
/// @noRd
#[savvy]
fn native_scenarios() -> savvy::Result<Sexp> {
    let of = |s: Scenario| {
        serde_json::json!({
            "scenario": s.name(), "label": s.label(), "horizon": s.horizon(), "n": s.usual_size(),
            "can_be_confounded": s.can_be_confounded(),
        })
    };
    Answer::record(&Scenario::ALL.into_iter().map(of).collect::<Vec<_>>()).into_r()
}

/// A simulated cohort and its truth.
///
/// @noRd
#[savvy]
fn native_simulate(scenario: &str, n: f64, seed: f64, confounded: bool, threads: Sexp) -> savvy::Result<Sexp> {
    let threads = value::count(threads)?;
    let Some(scenario) = Scenario::ALL.into_iter().find(|s| s.name() == scenario) else {
        return refuse(Failure::option(format!("there is no scenario `{scenario}`")));
    };
    start(threads, move |_| {
        let drawn = simulate::draw(scenario, n as usize, confounded, seed as u64);
        // A cohort has the types that its file would be read with; the truth has numbers, also where all are whole.
        let cohort = of_csv(|_| None, |out| tables::write_cohort(out, &drawn.units.as_recorded()));
        let kinds = |name: &str| (name != "id").then_some(ColumnKind::Number);
        let truth = of_csv(kinds, |out| tables::write_truth(out, &drawn.units.ids, &drawn.truth));
        Ok(Answer::List(vec![("cohort", Answer::Columns(cohort)), ("truth", Answer::Columns(truth))]))
    })
}

/// Serves a run to a browser of this machine: the server, its address, and one that opens it once.
///
/// @noRd
#[savvy]
fn native_explore(run: Sexp, port: Sexp, time_unit: Sexp, threads: Sexp) -> savvy::Result<Sexp> {
    let held = Arc::clone(handle::run(&run)?);
    let (port, time_unit, threads) = (value::number(port)?, value::text(time_unit)?, value::count(threads)?);
    start(Some(1), move |_| {
        let server = Server::bind(port.map(|p| p as u16)).map_err(|e| Failure::io(&e))?;
        let (stop, address) = (server.stop(), server.address());
        let once = server.address_for_once().map_err(|e| Failure::io(&e))?;
        let pool = pool(threads).map_err(|e| Failure::bug(&e))?;
        let (ready, is_ready) = channel();
        std::thread::spawn(move || {
            pool.install(|| {
                let (cohort, found) = (held.cohort(), held.found());
                let ground = match Ground::of_fit(&found.fit, cohort) {
                    Ok(ground) => ground,
                    Err(e) => return drop(ready.send(Err(Failure::engine(&e)))),
                };
                let mut explorer = Explorer::new(cohort, found, held.summary(), &ground);
                if time_unit.is_some() {
                    explorer.time_unit = time_unit;
                }
                let _ = ready.send(Ok(()));
                let _ = server.serve(&explorer);
            });
        });
        is_ready.recv().unwrap_or_else(|e| Err(Failure::bug(&e.to_string())))?;
        Ok(Answer::List(vec![
            ("address", Answer::Text(address)),
            ("once", Answer::Text(once)),
            ("server", Answer::Handle(Handle::Server(Serving(stop)))),
        ]))
    })
}

/// Ends a server.
///
/// @noRd
#[savvy]
fn native_stop(server: Sexp) -> savvy::Result<()> {
    handle::serving(&server)?.0.stop();
    Ok(())
}

/// The style sheet of the reports, whose colours figures take.
///
/// @noRd
#[savvy]
fn native_style_sheet() -> savvy::Result<Sexp> {
    Answer::Text(dvim_report::plot::style_sheet()).into_r()
}
