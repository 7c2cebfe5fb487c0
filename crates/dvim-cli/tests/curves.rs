//! Curves and what is read off them agree: `dvim curves`, `effects.csv`, the averages, and `dvim match`.

use assert_cmd::Command;
use std::collections::BTreeMap;
use std::fs;
use tempfile::TempDir;

const HORIZON: f64 = 800.0;

struct Desk(TempDir);

impl Desk {
    /// A simulated cohort, fitted.
    fn fitted(n: usize, more: &str) -> Desk {
        let desk = Desk(TempDir::new().expect("a temporary folder"));
        desk.run(&format!("simulate --scenario both-overlap --n {n} --seed 4 -o cohort.csv"), 0);
        desk.fit(more);
        desk
    }

    fn fit(&self, more: &str) {
        let columns = "--time time --event event --treatment treatment --horizon 800";
        self.run(&format!("fit cohort.csv {columns} {more} -o run --force"), 0);
    }

    /// What it prints, and says.
    fn run(&self, line: &str, code: i32) -> (String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dvim"));
        let out = command.current_dir(self.0.path()).args(line.split_whitespace()).output().expect("dvim runs");
        let text = |b: Vec<u8>| String::from_utf8(b).expect("UTF-8");
        let (stdout, stderr) = (text(out.stdout), text(out.stderr));
        assert_eq!(out.status.code(), Some(code), "dvim {line}\n{stdout}\n{stderr}");
        (stdout, stderr)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).expect("a file")
    }

    /// The rows of effects.csv by id.
    fn effects(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        rows(&self.read("run/effects.csv")).into_iter().map(|r| (r["id"].clone(), r)).collect()
    }
}

fn rows(csv: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = csv.lines().map(|l| l.split(',').map(String::from).collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    lines.map(|values| header.iter().cloned().zip(values).collect()).collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column}: {:?}", row[column]))
}

/// Times and values, by the column of names and the arm.
fn curves(csv: &str, by: &str) -> BTreeMap<(String, String), Vec<(f64, f64)>> {
    let mut out: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for r in rows(csv) {
        out.entry((r[by].clone(), r["arm"].clone())).or_default().push((number(&r, "time"), number(&r, "survival")));
    }
    out
}

fn area(curve: &[(f64, f64)]) -> f64 {
    curve.windows(2).map(|w| 0.5 * (w[0].1 + w[1].1) * (w[1].0 - w[0].0)).sum()
}

fn median(curve: &[(f64, f64)]) -> Option<f64> {
    let after = curve.iter().position(|p| p.1 <= 0.5)?;
    let ((t0, s0), (t1, s1)) = (curve[after - 1], curve[after]);
    Some(t0 + (s0 - 0.5) / (s0 - s1) * (t1 - t0))
}

/// At H the survival is the cure probability, the area is the RMST, the split adds up. Shares of events are held to
/// single precision: areas agree to 1e-7 of H.
fn check_patients(desk: &Desk, medians: bool) -> usize {
    let effects = desk.effects();
    let (table, _) = desk.run("curves run --patients all", 0);
    let mut n_medians = 0;
    for ((id, arm), curve) in curves(&table, "id").iter().filter(|((_, arm), _)| arm != "difference") {
        let effect = &effects[id];
        let last = curve.last().expect("a curve");
        assert_eq!((curve[0], last.0), ((0.0, 1.0), HORIZON));
        assert!((last.1 - number(effect, &format!("cure_{arm}"))).abs() < 1e-12, "{id} {arm}");
        assert!(curve.windows(2).all(|w| w[1].1 <= w[0].1 + 1e-12), "{id} {arm} rises");
        assert!((area(curve) - number(effect, &format!("rmst_{arm}"))).abs() < 1e-7 * HORIZON, "{id} {arm}");
        if medians {
            let stated = &effect[&format!("median_{arm}")];
            match median(curve) {
                None => assert_eq!(stated, "", "{id} {arm}"),
                Some(t) => {
                    assert!((t - stated.parse::<f64>().expect("a median")).abs() < 1e-9 * HORIZON, "{id} {arm}");
                    n_medians += 1;
                }
            }
        }
    }
    for (id, e) in effects.iter().filter(|(_, e)| !e["rmst_effect"].is_empty()) {
        let parts = number(e, "rmst_from_cure") + number(e, "rmst_from_time");
        assert!((parts - number(e, "rmst_effect")).abs() < 1e-9, "{id}");
        let arms = number(e, "rmst_treated") - number(e, "rmst_control");
        assert!((arms - number(e, "rmst_effect")).abs() < 1e-9, "{id}");
    }
    n_medians
}

#[test]
fn sums_of_adjusted_curves() {
    let desk = Desk::fitted(400, "--splits 10");
    assert!(check_patients(&desk, true) > 400, "most arms of most patients have a median");

    // Standardised curves: their area is the average RMST.
    let summary: serde_json::Value = serde_json::from_str(&desk.read("run/summary.json")).expect("JSON");
    let averages = summary["average_effects"].as_array().expect("averages");
    let of = |estimand: &str, population: &str, field: &str| {
        let found = averages.iter().find(|a| a["estimand"] == estimand && a["population"] == population);
        found.unwrap_or_else(|| panic!("{estimand} of {population}"))[field].as_f64()
    };
    let (table, _) = desk.run("curves run", 0);
    let all = curves(&table, "population");
    assert_eq!(all.len(), 9, "three populations, two arms and their difference");
    for ((population, arm), curve) in all.iter().filter(|((_, arm), _)| arm != "difference") {
        let stated = |estimand: &str, field: &str| of(&format!("{estimand}_{arm}"), population, field);
        let last = curve.last().expect("a curve").1;
        assert!((last - stated("cure", "estimate").expect("a share")).abs() < 1e-12);
        let rmst = stated("rmst", "estimate").expect("a mean");
        assert!((area(curve) - rmst).abs() < 1e-9 * HORIZON, "{population} {arm}: {} {rmst}", area(curve));
        match (median(curve), stated("median", "estimate")) {
            (Some(a), Some(b)) => assert!((a - b).abs() < 1e-9 * HORIZON, "{a} {b}"),
            (a, b) => assert_eq!(a, b),
        }
    }
    for population in ["all", "treated", "control"] {
        let of = |estimand: &str| of(estimand, population, "estimate").expect("an estimate");
        assert!((of("rmst_from_cure") + of("rmst_from_time") - of("rmst_effect")).abs() < 1e-9);
        assert!((of("rmst_treated") - of("rmst_control") - of("rmst_effect")).abs() < 1e-9);
    }
}

/// Patients of the paper's estimator have the curves of their groups; the arms have none, and that is said.
#[test]
fn sums_of_the_papers_curves() {
    let desk = Desk::fitted(600, "--estimator paper --group-size 30");
    check_patients(&desk, false);
    let (_, said) = desk.run("curves run", 2);
    assert!(said.contains("no curves of the arms") && said.contains("--estimator adjusted"), "{said}");
    let id = desk.effects().into_keys().next().expect("a patient");
    let (one, _) = desk.run(&format!("curves run --patients {id} --at 200,800"), 0);
    assert_eq!(rows(&one).len(), 6);
}

/// Nobody is left out in silence.
#[test]
fn who_has_no_curve_is_named() {
    let desk = Desk::fitted(300, "--splits 10");
    // x1 and x2 are 0 or 1: exact levels of six of them leave some patients with too few of the other arm.
    desk.fit("--splits 10 --exact x1,x2,x3,x4 --group-size 8");
    let unserved: Vec<String> =
        desk.effects().into_iter().filter(|(_, e)| e["cure_effect"].is_empty()).map(|(id, _)| id).collect();
    assert!(!unserved.is_empty() && unserved.len() < 300, "{}", unserved.len());
    let (table, said) = desk.run("curves run --patients all", 0);
    assert!(said.contains(&format!("{} patients have no curve: ", unserved.len())), "{said}");
    assert_eq!(curves(&table, "id").len(), 3 * (300 - unserved.len()));
    let (table, said) = desk.run(&format!("curves run --patients {}", unserved[0]), 2);
    assert!(table.is_empty() && said.contains(&format!("1 patient has no curve: {}", unserved[0])), "{said}");
}

/// `match` says what a number is made of, and shows the curve that it comes from.
#[test]
fn match_shows_the_corrected_curve() {
    let desk = Desk::fitted(400, "--splits 10");
    let (id, effect) = desk.effects().into_iter().next().expect("a patient");
    let (text, _) = desk.run(&format!("match run {id} --all"), 0);
    let shown = "Event-free over time, for this patient";
    for words in ["The model alone: ", "patients move it to", "Their weight is", shown, "before the correction"] {
        assert!(text.contains(words), "{words}\n{}", &text[..1500.min(text.len())]);
    }
    let (json, _) = desk.run(&format!("match run {id} --json"), 0);
    let record: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    for column in
        ["cure_effect", "cure_effect_model", "cure_effect_matched", "cure_weight", "time_effect_model", "time_weight"]
    {
        let stated: f64 = number(&effect, column);
        assert!((record[column].as_f64().expect(column) - stated).abs() < 1e-9, "{column}");
    }
    let (table, _) = desk.run(&format!("curves run --patients {id}"), 0);
    for arm in ["treated", "control"] {
        let points = record["curves"][arm].as_array().expect("a curve");
        let own = &curves(&table, "id")[&(id.clone(), arm.to_string())];
        assert_eq!(points.len(), own.len());
        for (point, (t, s)) in points.iter().zip(own) {
            assert!(
                (point["time"].as_f64().unwrap() - t).abs() < 1e-9
                    && (point["survival"].as_f64().unwrap() - s).abs() < 1e-12
            );
        }
    }
    // The paper's numbers are the groups' own.
    let paper = Desk::fitted(400, "--estimator paper --group-size 30");
    let id = paper.effects().into_keys().next().expect("a patient");
    let (text, _) = paper.run(&format!("match run {id}"), 0);
    assert!(!text.contains("corrected") && !text.contains("before the correction"));
    let (json, _) = paper.run(&format!("match run {id} --json"), 0);
    let record: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(record["cure_weight"].is_null() && record["curves"].is_null());
}

/// `compare` takes no estimator: it has them all.
#[test]
fn compare_refuses_an_estimator() {
    let desk = Desk(TempDir::new().expect("a temporary folder"));
    desk.run("simulate --scenario both-overlap --n 300 --seed 4 -o cohort.csv", 0);
    let columns = "--time time --event event --treatment treatment --horizon 800";
    let (_, said) = desk.run(&format!("compare cohort.csv {columns} --estimator adjusted -o compared"), 2);
    assert!(said.contains("every method is compared") && said.contains("leave out --estimator"), "{said}");
    assert!(!desk.0.path().join("compared").exists());
}
