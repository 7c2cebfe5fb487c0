//! From what was given, names of files among it, to a design that is ready.

use super::asked::{Asked, Design, OfRun};
use super::impossible::Impossible;
use super::settings_file::of_values;
use super::world::OfPatient;
use dvim::internal::arm::{Arm, ByArm};
use dvim::internal::curve::Grid;
use dvim_io::design::{Pilot, read_curve, read_settings};
use dvim_io::run::{Run, open_run};
use dvim_report::spell::CommandLine;
use serde_json::{Map, Value};
use std::path::Path;

/// A checked design, and the patients of a finished run where it reuses one.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The design.
    pub design: Design,
    /// Patients to draw from.
    pub patients: Option<Vec<OfPatient>>,
}

/// Why there is no design.
#[derive(Clone, Debug, PartialEq)]
pub enum Refused {
    /// An option cannot be: a face spells its name.
    Option(Impossible),
    /// A file cannot be read, in words.
    File(String),
}

impl From<String> for Refused {
    fn from(words: String) -> Refused {
        Refused::File(words)
    }
}

impl From<Impossible> for Refused {
    fn from(of: Impossible) -> Refused {
        Refused::Option(of)
    }
}

impl Refused {
    /// The refusal, with options spelled like this.
    pub fn spelled(&self, spell: impl Fn(&str) -> String) -> String {
        match self {
            Refused::File(words) => words.clone(),
            Refused::Option(e) => {
                format!("error: {}: {}\n  rule:   {}\n  remedy: {}", spell(e.option), e.found, e.rule, e.remedy)
            }
        }
    }
}

/// What a finished run says of its patients.
struct FromRun {
    patients: Vec<OfPatient>,
    /// The control arm's curve, averaged over patients.
    curve: Vec<[f64; 2]>,
    of: OfRun,
}

fn from_run(path: &Path) -> Result<FromRun, String> {
    let run = open_run(path).map_err(|e| e.spelled(&CommandLine))?;
    let Run { cohort, corrected, .. } = &run;
    let is_known = |i: usize| {
        let c = &corrected[i];
        Arm::BOTH.iter().all(|&z| c.cure_probability[z].is_finite() && c.mean_event_time[z].is_finite())
    };
    let known: Vec<usize> = (0..corrected.len()).filter(|&i| is_known(i)).collect();
    if known.is_empty() {
        return Err(format!(
            "error: the run `{}` has no curve of each patient\n  rule:   patients are drawn from the curves of the adjusted estimator\n  remedy: fit with --estimator adjusted",
            path.display()
        ));
    }
    let n = known.len() as f64;
    let patients: Vec<OfPatient> = known
        .iter()
        .map(|&i| OfPatient {
            x: cohort.covariates(i).to_vec(),
            cured: ByArm::of(|z| corrected[i].cure_probability[z]),
            mean: ByArm::of(|z| corrected[i].mean_event_time[z]),
        })
        .collect();
    let grid = Grid::of(cohort);
    let mut before = vec![0.0; grid.times().len()];
    for &i in &known {
        let shares = corrected[i].shape.control.shares();
        let uncured = 1.0 - corrected[i].cure_probability.control;
        before.iter_mut().zip(shares).for_each(|(b, s)| *b += uncured * s / n);
    }
    let mut curve: Vec<[f64; 2]> = grid.times().iter().zip(&before).map(|(t, b)| [*t, 1.0 - b]).collect();
    // What is summed up can rise by a last digit.
    for k in 1..curve.len() {
        curve[k][1] = curve[k][1].min(curve[k - 1][1]);
    }
    let mean = |value: &dyn Fn(&OfPatient) -> f64| patients.iter().map(value).sum::<f64>() / n;
    let of = OfRun {
        horizon: cohort.horizon(),
        event_free: mean(&|p| p.cured.control),
        mean_time: mean(&|p| p.mean.control),
        cure_effect: mean(&|p| p.cured.treated - p.cured.control),
        time_effect: mean(&|p| p.mean.treated - p.mean.control),
        n_covariates: cohort.n_covariates(),
    };
    Ok(FromRun { patients, curve, of })
}

/// Takes a name of a file out of the values.
fn file(values: &mut Map<String, Value>, name: &str) -> Option<String> {
    match values.get(name) {
        Some(Value::String(path)) => {
            let path = path.clone();
            values.remove(name);
            Some(path)
        }
        _ => None,
    }
}

/// Prepares a design from values by name, which may have hyphens or underscores. `settings`, `pilot` and `from_run` are
/// names of files, and so is `curve`, if it is not a list of points. Values go over those of the settings.
pub fn prepare(given: Map<String, Value>) -> Result<Prepared, Refused> {
    let named = |values: Map<String, Value>| -> Map<String, Value> {
        values.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.replace('-', "_"), v)).collect()
    };
    let given = named(given);
    let mut values = match given.get("settings") {
        Some(Value::String(path)) => match read_settings(Path::new(path))? {
            Value::Object(values) => named(values),
            _ => Map::new(),
        },
        _ => Map::new(),
    };
    values.extend(given);
    values.remove("settings");
    let (curve, pilot) = (file(&mut values, "curve"), file(&mut values, "pilot"));
    let run_name = values.get("from_run").and_then(Value::as_str).map(String::from);
    let mut asked: Asked = of_values(Value::Object(values)).map_err(|e| {
        format!("error: the design was not understood: {e}\n  rule:   settings have the names of the flags\n  remedy: see dvim design --help")
    })?;
    let run = run_name.as_deref().map(|name| from_run(Path::new(name))).transpose()?;
    if let Some(path) = curve {
        asked.curve = Some(read_curve(Path::new(&path))?);
    }
    if let Some(path) = pilot {
        let pilot = Pilot::read(Path::new(&path))?;
        let horizon = asked.horizon.filter(|h| *h > 0.0);
        asked.dropout = asked.dropout.or(horizon.map(|h| pilot.dropout(h).min(0.95)));
        // Nobody in a pilot need be followed to the horizon: what comes after its last patient is refused below.
        let mut points = pilot.curve;
        points.push([pilot.last, points[points.len() - 1][1]]);
        asked.curve = asked.curve.or(Some(points));
    }
    if let Some(run) = run.as_ref().filter(|_| asked.curve.is_none()) {
        if asked.horizon.is_none_or(|h| h == run.of.horizon) {
            asked.curve = Some(run.curve.clone());
        }
    }
    if let Some(run) = run.as_ref().filter(|r| asked.horizon.is_some_and(|h| h != r.of.horizon)) {
        return Err(Refused::Option(Impossible {
            option: "horizon",
            found: format!("it is {}, and that of the run is {}", asked.horizon.unwrap_or(0.0), run.of.horizon),
            rule: "the curves of a run end at its horizon",
            remedy: "leave the horizon out, or fit with this one".into(),
        }));
    }
    let design = asked.resolve(run.as_ref().map(|r| &r.of))?;
    Ok(Prepared { design, patients: run.map(|r| r.patients) })
}
