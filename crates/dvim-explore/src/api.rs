//! What can be asked over HTTP, and what is answered. Nothing here touches a file: an address names a route, never a
//! path.

use crate::explorer::Explorer;
use crate::http::{Request, Response, decode};
use crate::patient::{self, Question, Who};
use dvim::internal::cohort::{Arm, Cohort};
use dvim::internal::estimand::Estimand;
use dvim::internal::schema::Kind;
use dvim::internal::support::{NewUnits, read_new};
use dvim::internal::table::{Column, Table, TextValues, Values};
use dvim_report::comparison::SYNTHETIC_NOTE;
use dvim_report::findings::VerdictRecord;
use dvim_report::learning;
use dvim_report::plot;
use dvim_report::record::{AverageRecord, ByArm, CountsRecord, CovariateRecord, VERSION};
use dvim_report::report::{Page, run_page};
use dvim_report::spell::CommandLine;
use dvim_report::text::{self, grouped, short, worries};
use serde::Serialize;
use serde_json::{Map, Value};

const INDEX: &str = include_str!("../assets/index.html");
const SCRIPT: &str = include_str!("../assets/app.js");
const STYLE: &str = include_str!("../assets/style.css");
const ICON: &str = include_str!("../assets/icon.svg");

const PAGE: &str = "text/html; charset=utf-8";

/// Rows of a table that can be asked for at once.
const MOST_ROWS: usize = 200;
/// Patients that the plane draws, at most.
const MOST_POINTS: usize = 5_000;

/// A request for something, taken apart.
struct Asked<'a> {
    segments: Vec<String>,
    query: Vec<(String, String)>,
    request: &'a Request,
}

type Answer = Result<Response, Response>;

fn refuse(status: u16, message: impl AsRef<str>) -> Response {
    Response::refuse(status, message.as_ref())
}

/// The parameters of a request.
pub fn parameters(request: &Request) -> Result<Vec<(String, String)>, Response> {
    let mut out: Vec<(String, String)> = Vec::new();
    for part in request.query.split('&').filter(|p| !p.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let (Some(name), Some(value)) = (decode(name, true), decode(value, true)) else {
            return Err(refuse(400, "a parameter of the address is not well-formed text"));
        };
        if out.iter().any(|(n, _)| *n == name) {
            return Err(refuse(400, format!("the parameter `{name}` is given twice")));
        }
        out.push((name, value));
    }
    Ok(out)
}

/// Answers a request that was let in.
pub fn answer(explorer: &Explorer<'_>, request: &Request, query: Vec<(String, String)>) -> Response {
    let segments: Option<Vec<String>> = request.path[1..].split('/').map(|s| decode(s, false)).collect();
    let Some(segments) = segments else {
        return refuse(400, "the address is not well-formed text");
    };
    route(explorer, &Asked { segments, query, request }).unwrap_or_else(|refusal| refusal)
}

fn route(explorer: &Explorer<'_>, asked: &Asked<'_>) -> Answer {
    let segments: Vec<&str> = asked.segments.iter().map(String::as_str).collect();
    let method = asked.request.method.as_str();
    let only = |allowed: &'static str| match (method, allowed) {
        ("GET" | "HEAD", "GET") | ("POST", "POST") => Ok(()),
        _ => Err(refuse(405, format!("{method} is not possible here, {allowed} is")).with("Allow", allowed)),
    };
    let file = |content_type: &'static str, text: String| {
        only("GET")?;
        Ok(Response::of(200, content_type, text))
    };
    match segments.as_slice() {
        [""] => file(PAGE, INDEX.into()),
        ["app.js"] => file("text/javascript; charset=utf-8", SCRIPT.into()),
        ["style.css"] => {
            file("text/css; charset=utf-8", format!("{}{}{STYLE}", plot::style_sheet(), plot::theme_rules()))
        }
        ["report"] => {
            only("GET")?;
            asked.knows(&[])?;
            let Explorer { cohort, analysis, summary, .. } = explorer;
            let page = Page { time_unit: explorer.time_unit.clone(), ..Page::default() };
            Ok(Response::of(200, PAGE, run_page(&page, cohort, analysis, summary)))
        }
        ["icon.svg"] => file("image/svg+xml", ICON.into()),
        ["api", "run"] => {
            only("GET")?;
            asked.knows(&[])?;
            Ok(Response::json(200, &RunAnswer::of(explorer)))
        }
        ["api", "patients"] => {
            only("GET")?;
            patients(explorer, asked)
        }
        ["api", "plane"] => {
            only("GET")?;
            plane(explorer, asked)
        }
        ["api", "patient", id] => {
            only("GET")?;
            asked.knows(&["k", "h", "w", "group"])?;
            let unit = explorer.cohort.unit(id).map_err(|e| refuse(404, e.to_string()))?;
            let question = question(explorer, |name| asked.get(name).map(str::to_string))?;
            Ok(Response::json(200, &patient::answer(explorer, &Who::Unit(unit), &question)))
        }
        ["api", "new"] => {
            only("POST")?;
            new_patient(explorer, asked)
        }
        _ => Err(refuse(404, "there is nothing at this address")),
    }
}

impl Asked<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Refuses parameters that mean nothing here.
    fn knows(&self, names: &[&str]) -> Result<(), Response> {
        match self.query.iter().find(|(n, _)| n != "token" && !names.contains(&n.as_str())) {
            Some((unknown, _)) => Err(refuse(400, format!("there is no parameter `{unknown}` here"))),
            None => Ok(()),
        }
    }

    fn count(&self, name: &str, usual: usize) -> Result<usize, Response> {
        self.get(name).map_or(Ok(usual), |v| {
            v.parse().map_err(|_| refuse(400, format!("`{name}` is `{v}`, which is not a whole number")))
        })
    }
}

/// Group size, horizon, width and group of a question.
fn question(explorer: &Explorer<'_>, get: impl Fn(&str) -> Option<String>) -> Result<Question, Response> {
    let (low, high) = explorer.group_sizes();
    let group_size = match get("k") {
        None => None,
        Some(text) => Some(text.parse().ok().filter(|k| (low..=high).contains(k)).ok_or_else(|| {
            refuse(422, format!("the group size is `{text}`; it must be a whole number from {low} to {high}, which is what the smaller arm and the page allow"))
        })?),
    };
    let most = explorer.cohort.horizon();
    let horizon = match get("h") {
        None => None,
        Some(text) => Some(text.parse().ok().filter(|h: &f64| *h > 0.0 && *h <= most).ok_or_else(|| {
            refuse(422, format!("the horizon is `{text}`; it must be more than 0 and at most {most}, that of the run: what happened later is not in it. For a later horizon run `dvim fit` with it"))
        })?),
    };
    let width = match get("w") {
        None => None,
        Some(text) => Some(
            text.parse()
                .ok()
                .filter(|w: &f64| (280.0..=2400.0).contains(w))
                .ok_or_else(|| refuse(422, format!("the width is `{text}`; it must be from 280 to 2400")))?,
        ),
    };
    let members = match get("group") {
        None => None,
        Some(text) => Some(match text.as_str() {
            "cure-treated" => (Estimand::Cure, Arm::Treated),
            "cure-control" => (Estimand::Cure, Arm::Control),
            "time-treated" => (Estimand::Time, Arm::Treated),
            "time-control" => (Estimand::Time, Arm::Control),
            _ => {
                return Err(refuse(
                    422,
                    format!("there is no group `{text}`: use cure-treated, cure-control, time-treated or time-control"),
                ));
            }
        }),
    };
    Ok(Question { group_size, horizon, width, members })
}

#[derive(Serialize)]
struct CovariateAnswer {
    #[serde(flatten)]
    record: CovariateRecord,
    label: String,
    /// Smallest, middle and largest value of a number in the cohort.
    range: Option<[f64; 3]>,
    /// Whether it is a number that is 0 or 1 for everybody.
    binary: bool,
    cure_weight: f64,
    time_weight: f64,
}

#[derive(Serialize)]
struct RunAnswer {
    version: &'static str,
    file: String,
    estimator: String,
    /// What to know of patients who do not exist.
    synthetic: Option<&'static str>,
    n_units: usize,
    n_estimated: usize,
    n_unserved: usize,
    n_trained: usize,
    horizon: f64,
    time_column: String,
    time_unit: Option<String>,
    confidence: f64,
    group_size: usize,
    /// Smallest and largest group that can be asked for.
    group_sizes: [usize; 2],
    labels: ByArm<String>,
    counts: ByArm<CountsRecord>,
    averages: Vec<AverageRecord>,
    question: String,
    /// What patients without the event are at the horizon.
    state: String,
    sentence: String,
    how: String,
    audited: bool,
    verdict: Option<VerdictRecord>,
    /// The verdict on both effects, and every reason with its remedy, in words.
    verdict_lines: Option<([String; 2], Vec<String>)>,
    follow_up: Vec<[String; 3]>,
    worries: Vec<String>,
    covariates: Vec<CovariateAnswer>,
}

impl RunAnswer {
    fn of(explorer: &Explorer<'_>) -> RunAnswer {
        let Explorer { cohort, analysis, summary, .. } = explorer;
        let fit = &analysis.fit;
        let names = explorer.names();
        let (low, high) = explorer.group_sizes();
        let n_unserved = analysis.unserved.len();
        let n_estimated = analysis.units.len() + n_unserved;
        RunAnswer {
            version: VERSION,
            file: summary.input.file.clone(),
            estimator: fit.options.estimator.name().into(),
            synthetic: dvim::internal::simulate::is_synthetic(cohort).then_some(SYNTHETIC_NOTE),
            n_units: cohort.n_units(),
            n_estimated,
            n_unserved,
            n_trained: cohort.n_units() - n_estimated,
            horizon: cohort.horizon(),
            time_column: summary.roles.time.clone(),
            time_unit: Some(names.unit.clone()).filter(|unit| !unit.is_empty()),
            confidence: fit.options.confidence,
            group_size: fit.options.group_size,
            group_sizes: [low, high],
            labels: ByArm::map(|z| names.head(z)),
            counts: summary.counts.clone(),
            averages: summary.average_effects.clone(),
            question: names.question(),
            state: names.state(),
            sentence: text::answer(summary, &names).join(" "),
            how: learning::sentence(analysis).replace('\n', " "),
            audited: summary.audit.is_some(),
            verdict: summary.verdict.clone(),
            verdict_lines: summary.verdict.as_ref().map(|v| v.lines(&CommandLine)),
            follow_up: (summary.audit.iter().flat_map(|a| &a.follow_up))
                .map(|f| [f.population.clone(), f.verdict.clone(), f.words.clone()])
                .collect(),
            worries: worries(summary, analysis, cohort),
            covariates: (cohort.schema().iter())
                .map(|c| CovariateAnswer {
                    record: c.into(),
                    label: c.label(),
                    binary: c.kind == Kind::Number && is_binary(cohort, c.first),
                    range: (c.kind == Kind::Number).then(|| range(cohort, c.first)),
                    cure_weight: fit.description.metrics.cure.weights[c.first],
                    time_weight: fit.description.metrics.time.weights[c.first],
                })
                .collect(),
        }
    }
}

fn is_binary(cohort: &Cohort, column: usize) -> bool {
    (0..cohort.n_units()).all(|i| matches!(cohort.covariates(i)[column], 0.0 | 1.0))
}

fn range(cohort: &Cohort, column: usize) -> [f64; 3] {
    let mut values: Vec<f64> = (0..cohort.n_units()).map(|i| cohort.covariates(i)[column]).collect();
    let middle = (values.len() - 1) / 2;
    let (low, middle, high) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let least = low.iter().copied().fold(*middle, f64::min);
    [least, *middle, high.iter().copied().fold(*middle, f64::max)]
}

#[derive(Serialize)]
struct RowAnswer {
    id: String,
    arm: &'static str,
    treatment: String,
    time: f64,
    event: bool,
    outcome: &'static str,
    trained: bool,
    cure: [Option<f64>; 3],
    time_effect: [Option<f64>; 3],
    flags: Vec<&'static str>,
    values: Vec<String>,
}

/// An effect with the ends of its interval, as `effects.csv` has them.
fn with_ends(value: Option<f64>, interval: Option<dvim::internal::interval::Interval>) -> [Option<f64>; 3] {
    [value, interval.map(|i| i.low), interval.map(|i| i.high)]
}

impl RowAnswer {
    fn of(explorer: &Explorer<'_>, unit: usize) -> RowAnswer {
        let cohort = explorer.cohort;
        let effect = explorer.effect(unit);
        let confidence = explorer.analysis.fit.options.confidence;
        RowAnswer {
            id: cohort.ids().text(unit).into_owned(),
            arm: cohort.arm(unit).name(),
            treatment: explorer.names().head(cohort.arm(unit)),
            time: cohort.time(unit),
            event: cohort.event(unit),
            outcome: patient::outcome(cohort, unit, cohort.horizon()).0,
            trained: explorer.place(unit) == crate::explorer::Place::Trained,
            cure: with_ends(effect.map(|e| e.cure()), effect.map(|e| e.cure_interval(confidence))),
            time_effect: with_ends(
                effect.and_then(|e| e.time()),
                effect.and_then(|e| e.time_interval(cohort.horizon(), confidence)),
            ),
            flags: explorer.flags(unit),
            values: explorer.values(cohort.covariates(unit)),
        }
    }
}

/// The units that a request selects by `q` and `show`.
fn selected(explorer: &Explorer<'_>, asked: &Asked<'_>, sort: &str, descending: bool) -> Result<Vec<u32>, Response> {
    let filter = explorer.filter(asked.get("show").unwrap_or("estimated"), asked.get("q").unwrap_or(""));
    let filter = filter.map_err(|e| refuse(422, e))?;
    let column = explorer.column(sort).ok_or_else(|| refuse(422, format!("there is no column `{sort}` to sort by")))?;
    Ok(explorer.select(&filter, column, descending))
}

fn patients(explorer: &Explorer<'_>, asked: &Asked<'_>) -> Answer {
    asked.knows(&["q", "show", "sort", "desc", "offset", "limit"])?;
    let (offset, limit) = (asked.count("offset", 0)?, asked.count("limit", 50)?);
    if !(1..=MOST_ROWS).contains(&limit) {
        return Err(refuse(422, format!("`limit` is {limit}; it must be from 1 to {MOST_ROWS}")));
    }
    let descending = match asked.get("desc").unwrap_or("0") {
        "0" => false,
        "1" => true,
        other => return Err(refuse(422, format!("`desc` is `{other}`; it must be 0 or 1"))),
    };
    let units = selected(explorer, asked, asked.get("sort").unwrap_or("id"), descending)?;
    let rows: Vec<RowAnswer> =
        units.iter().skip(offset).take(limit).map(|&i| RowAnswer::of(explorer, i as usize)).collect();
    Ok(Response::json(200, &serde_json::json!({ "n": units.len(), "offset": offset, "rows": rows })))
}

#[derive(Serialize)]
struct PlaneAnswer {
    /// Patients who were selected and have both effects.
    n: usize,
    /// Patients who were selected and have not.
    n_undefined: usize,
    /// Id, cure effect, time effect, whether treated.
    points: Vec<(String, f64, f64, bool)>,
}

fn plane(explorer: &Explorer<'_>, asked: &Asked<'_>) -> Answer {
    asked.knows(&["q", "show"])?;
    let units = selected(explorer, asked, "id", false)?;
    let both = |i: u32| {
        let e = explorer.effect(i as usize)?;
        Some((i as usize, e.cure(), e.time()?))
    };
    let defined: Vec<(usize, f64, f64)> = units.iter().filter_map(|&i| both(i)).collect();
    let shown = defined.len().min(MOST_POINTS);
    // Evenly over the patients in the order of their ids: the same ones every time.
    let points = (0..shown).map(|j| defined[j * defined.len() / shown]).map(|(i, cure, time)| {
        (explorer.cohort.ids().text(i).into_owned(), cure, time, explorer.cohort.arm(i) == Arm::Treated)
    });
    let answer = PlaneAnswer { n: defined.len(), n_undefined: units.len() - defined.len(), points: points.collect() };
    Ok(Response::json(200, &answer))
}

fn new_patient(explorer: &Explorer<'_>, asked: &Asked<'_>) -> Answer {
    asked.knows(&[])?;
    let content_type = asked.request.header("content-type")?.unwrap_or_default();
    if content_type.split(';').next().map(str::trim) != Some("application/json") {
        return Err(refuse(415, "the body must be JSON, with Content-Type: application/json"));
    }
    let body: Map<String, Value> = serde_json::from_slice(&asked.request.body)
        .map_err(|e| refuse(400, format!("the body is not a JSON object: {e}")))?;
    if let Some(unknown) = body.keys().find(|k| !["values", "k", "h", "w", "group"].contains(&k.as_str())) {
        return Err(refuse(400, format!("there is no field `{unknown}` here")));
    }
    let Some(Value::Object(values)) = body.get("values") else {
        return Err(refuse(400, "the field `values` is missing: an object with a value for each covariate"));
    };
    let question = question(explorer, |name| match body.get(name) {
        None | Some(Value::Null) => None,
        Some(Value::String(s)) => Some(s.clone()),
        Some(v) => Some(v.to_string()),
    })?;
    let new = encode(explorer.cohort, values)?;
    Ok(Response::json(200, &patient::answer(explorer, &Who::New(&new.covariates, &new.outside[0]), &question)))
}

/// The numbers of a new patient: a table of one row, encoded as `dvim predict` encodes tables.
fn encode(cohort: &Cohort, values: &Map<String, Value>) -> Result<NewUnits, Response> {
    let schema = cohort.schema();
    if let Some(unknown) = values.keys().find(|k| !schema.iter().any(|c| c.name == **k)) {
        return Err(refuse(422, format!("the run has no covariate `{unknown}`")));
    }
    let mut columns = Vec::new();
    for c in schema.iter().filter(|c| c.kind != Kind::Missing) {
        let text = match values.get(&c.name) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(s)) => s.trim().to_string(),
            Some(Value::Number(n)) => n.to_string(),
            Some(other) => {
                return Err(refuse(
                    422,
                    format!("the value of `{}` is `{other}`; it must be a number or a text", c.name),
                ));
            }
        };
        let is_number = c.kind == Kind::Number;
        if is_number && text.parse::<f64>().is_ok_and(f64::is_nan) {
            return Err(refuse(
                422,
                format!("the value of `{}` is not a number; leave it empty if it is missing", c.name),
            ));
        }
        let values = match text.parse::<f64>() {
            Ok(v) if is_number => Values::Number(vec![v].into()),
            _ if text.is_empty() => Values::Number(vec![f64::NAN].into()),
            _ => Values::Text(TextValues { levels: vec![text], codes: vec![0] }),
        };
        columns.push(Column { name: c.name.clone(), values });
    }
    let table = Table::new(columns).map_err(|e| refuse(422, e))?;
    read_new(cohort, &table).map_err(|problems| {
        let said: Vec<String> = problems
            .iter()
            .map(|p| {
                format!(
                    "{}: {}. {}.",
                    p.column.as_deref().unwrap_or("patient"),
                    p.found.spelled(&CommandLine),
                    capital(&p.remedy.spelled(&CommandLine))
                )
            })
            .collect();
        refuse(422, said.join(" "))
    })
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

/// The page for somebody who has no token: it says where to find the address.
pub fn locked_page(message: &str) -> String {
    plot::page::page(
        "dvim explore",
        &format!(
            "{}{}",
            plot::page::heading(1, "This page needs its token"),
            plot::page::paragraph(&format!(
                "{message}. The address stands in the terminal in which it runs, and is new at every start."
            ))
        ),
    )
}

/// What the terminal says of a run before it serves it.
pub fn greeting(explorer: &Explorer<'_>) -> String {
    format!(
        "{} patients, {} estimated, horizon {}",
        grouped(explorer.cohort.n_units()),
        grouped(explorer.analysis.units.len()),
        short(explorer.cohort.horizon())
    )
}
