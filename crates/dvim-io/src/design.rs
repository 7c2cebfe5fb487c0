//! Files that a planned study is told by: settings in TOML, a curve read off a figure, patients of a pilot.

use crate::read::{ReadOptions, read_table};
use dvim::internal::survival::SurvivalCurve;
use dvim::internal::table::{Table, Values};
use std::path::Path;

/// A file of settings is small; a larger one is another file.
const LARGEST: u64 = 1 << 20;

fn refusal(what: &str, path: &Path, found: &str, rule: &str, remedy: &str) -> String {
    format!("error: the {what} `{}`: {found}\n  rule:   {rule}\n  remedy: {remedy}", path.display())
}

/// Reads settings in TOML as values by name. `Err` is a refusal in words.
pub fn read_settings(path: &Path) -> Result<serde_json::Value, String> {
    let refuse = |found: &str, remedy: &str| {
        Err(refusal("settings", path, found, "settings are a file in TOML, with the names of the flags", remedy))
    };
    match std::fs::metadata(path) {
        Err(e) => return refuse(&e.to_string(), "check the name of the file"),
        Ok(m) if !m.is_file() || m.len() > LARGEST => {
            return refuse("it is no small file", "name a file in TOML, of less than a megabyte");
        }
        Ok(_) => {}
    }
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) => return refuse(&e.to_string(), "write it as UTF-8"),
    };
    match toml::from_str::<serde_json::Value>(&text) {
        Ok(values) => Ok(values),
        Err(e) => refuse(&e.to_string().trim_end().replace('\n', "\n    "), "correct it as said"),
    }
}

/// The numbers of a column.
fn numbers(what: &str, path: &Path, table: &Table, name: &str) -> Result<Option<Vec<f64>>, String> {
    let Some(column) = table.column(name) else { return Ok(None) };
    let values = match &column.values {
        Values::Number(values) => values.to_vec(),
        _ => vec![f64::NAN],
    };
    match values.iter().all(|v| v.is_finite() && *v >= 0.0) {
        true => Ok(Some(values)),
        false => {
            let found = format!("the column {name} has values that are no numbers, or negative ones");
            Err(refusal(what, path, &found, "each row has a number there, 0 or more", "correct or remove those rows"))
        }
    }
}

fn read(what: &str, path: &Path) -> Result<Table, String> {
    let read = read_table(path, &ReadOptions::default());
    read.map(|r| r.table).map_err(|e| e.spelled(&dvim_report::spell::CommandLine)).map_err(|e| {
        if e.starts_with("error") { e } else { refusal(what, path, &e, "it is a table", "use a CSV file") }
    })
}

/// Reads points `[time, share]` from a table with columns `time` and `survival`. `Err` is a refusal in words.
pub fn read_curve(path: &Path) -> Result<Vec<[f64; 2]>, String> {
    let table = read("curve", path)?;
    let [time, share] = ["time", "survival"].map(|name| numbers("curve", path, &table, name));
    match (time?, share?) {
        (Some(time), Some(share)) => Ok(time.into_iter().zip(share).map(|(t, s)| [t, s]).collect()),
        _ => Err(refusal(
            "curve",
            path,
            "a column is missing",
            "a curve has the columns time and survival",
            "name them so, shares as 0.75",
        )),
    }
}

/// What a pilot says of the control arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Pilot {
    /// Points of its Kaplan–Meier curve.
    pub curve: Vec<[f64; 2]>,
    /// Time of each patient who was lost or whose follow-up ended.
    lost: SurvivalCurve,
    /// The last time at which anybody was followed.
    pub last: f64,
}

impl Pilot {
    /// Share lost by the horizon.
    pub fn dropout(&self, horizon: f64) -> f64 {
        1.0 - self.lost.before(horizon)
    }

    /// Reads a table of patients; those who were treated are left out. `Err` is a refusal in words.
    pub fn read(path: &Path) -> Result<Pilot, String> {
        let table = read("pilot", path)?;
        let [time, event, treatment] = ["time", "event", "treatment"].map(|name| numbers("pilot", path, &table, name));
        let (Some(time), Some(event), treatment) = (time?, event?, treatment?) else {
            return Err(refusal(
                "pilot",
                path,
                "a column is missing",
                "a pilot has the columns time and event",
                "name them so, with 1 for an event",
            ));
        };
        let treated = treatment.unwrap_or_else(|| vec![0.0; time.len()]);
        let control: Vec<usize> = (0..time.len()).filter(|&i| treated[i] == 0.0).collect();
        let time: Vec<f64> = control.iter().map(|&i| time[i]).collect();
        let event: Vec<bool> = control.iter().map(|&i| event[i] != 0.0).collect();
        if control.len() < 10 || !event.contains(&true) {
            return Err(refusal(
                "pilot",
                path,
                &format!("it has {} patients without treatment", control.len()),
                "the control arm of a pilot has ten patients or more, and an event",
                "use a published curve instead",
            ));
        }
        let curve = SurvivalCurve::new(&time, &event);
        let mut points = vec![[0.0, 1.0]];
        points.extend(curve.steps().iter().map(|s| [s.time, s.survival]));
        let censored: Vec<bool> = event.iter().map(|e| !e).collect();
        let last = time.iter().copied().fold(0.0, f64::max);
        Ok(Pilot { curve: points, lost: SurvivalCurve::new(&time, &censored), last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_curves_and_pilots_are_read_or_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path
        };
        let settings = read_settings(&file("a.toml", "horizon = 5\nsizes = [200, 400]\n")).expect("settings");
        assert_eq!(settings["sizes"][1], 400);
        assert!(read_settings(&file("b.toml", "horizon = = 5")).expect_err("no TOML").contains("remedy"));
        let curve = read_curve(&file("c.csv", "time,survival\n0,1\n2,0.7\n5,0.4\n")).expect("a curve");
        assert_eq!(curve[1], [2.0, 0.7]);
        assert!(read_curve(&file("d.csv", "time,share\n0,1\n")).expect_err("no column").contains("survival"));
        let rows: String = (1..=20).map(|i| format!("{i},{},{}\n", i % 2, u8::from(i > 15))).collect();
        let pilot = Pilot::read(&file("e.csv", &format!("time,event,treatment\n{rows}"))).expect("a pilot");
        assert_eq!((pilot.last, pilot.curve.len()), (15.0, 16));
        assert!(Pilot::read(&file("f.csv", "time,event\n1,1\n")).expect_err("small").contains("1 patients"));
    }
}
