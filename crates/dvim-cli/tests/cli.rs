//! The command line as a person meets it: what it prints, what it writes, how it refuses.

use assert_cmd::Command;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct Desk {
    folder: TempDir,
}

const COLUMNS: [&str; 8] = ["--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", "800"];
/// The same columns, for the paper's estimator.
const PAPER: [&str; 10] =
    ["--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", "800", "--estimator", "paper"];

impl Desk {
    fn new() -> Desk {
        Desk { folder: TempDir::new().expect("a temporary folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &Desk {
        fs::write(self.path(name), text).expect("a file");
        self
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file")
    }

    fn dvim(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dvim"));
        command.current_dir(self.folder.path()).args(args);
        command
    }

    /// Runs, asserts the exit code, and gives stdout and stderr.
    fn run(&self, args: &[&str], code: i32) -> (String, String) {
        let out = self.dvim(args).output().expect("dvim runs");
        let text = |b: Vec<u8>| String::from_utf8(b).expect("UTF-8");
        let (stdout, stderr) = (text(out.stdout), text(out.stderr));
        assert_eq!(out.status.code(), Some(code), "dvim {args:?}\n{stdout}\n{stderr}");
        (stdout, stderr)
    }

    fn cohort(&self, n: usize) -> &Desk {
        self.run(
            &[
                "simulate",
                "--scenario",
                "both-overlap",
                "--n",
                &n.to_string(),
                "--seed",
                "4",
                "-o",
                "cohort.csv",
                "--truth",
                "truth.csv",
            ],
            0,
        );
        self
    }

    fn fit(&self, table: &str, run: &str, more: &[&str]) -> (String, String) {
        self.run(&[&["fit", table, "-k", "20", "-o", run], &PAPER[..], more].concat(), 0)
    }

    /// What is in the folder: a refusal must leave nothing behind.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder");
        let mut names: Vec<String> =
            entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn shuffle_rows(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let rows = &mut lines[1..];
    // A fixed permutation: multiply by a number that is prime to the length.
    let n = rows.len();
    let old = rows.to_vec();
    for (i, row) in old.into_iter().enumerate() {
        rows[(i * 7919 + 13) % n] = row;
    }
    lines.join("\n") + "\n"
}

#[test]
fn simulate_writes_a_cohort_and_its_truth() {
    let desk = Desk::new();
    desk.cohort(50);
    let (cohort, truth) = (desk.read("cohort.csv"), desk.read("truth.csv"));
    let x: Vec<String> = (1..=20).map(|j| format!("x{j}")).collect();
    assert_eq!(cohort.lines().next(), Some(format!("id,time,event,treatment,{}", x.join(",")).as_str()));
    let columns =
        "id,cure_effect,time_effect,cure_treated,cure_control,mean_event_time_treated,mean_event_time_control";
    assert_eq!(truth.lines().next(), Some(columns));
    assert_eq!((cohort.lines().count(), truth.lines().count()), (51, 51));
    let (stdout, _) = desk.run(&["simulate", "--scenario", "both-overlap", "--n", "50", "--seed", "4"], 0);
    assert_eq!(stdout, cohort, "without -o the same goes to stdout");
    desk.run(&["simulate", "--scenario", "both-overlap", "--n", "50", "-o", "cohort.csv"], 2);
    assert_eq!(desk.read("cohort.csv"), cohort, "nothing is overwritten unasked");
    desk.run(&["simulate", "--scenario", "both-overlap", "--n", "9", "--confounded", "-o", "cohort.csv", "--force"], 0);
    assert_eq!(desk.read("cohort.csv").lines().count(), 10);
    let (_, stderr) = desk.run(&["simulate", "--scenario", "both"], 2);
    assert!(stderr.contains("cure-only, time-only, both-independent, both-overlap"), "{stderr}");
}

#[test]
fn the_same_bytes_on_any_threads_and_in_any_order() {
    let desk = Desk::new();
    desk.cohort(1500);
    let shuffled = shuffle_rows(&desk.read("cohort.csv"));
    desk.write("shuffled.csv", shuffled);
    desk.fit("cohort.csv", "one", &["--threads", "1"]);
    desk.fit("cohort.csv", "two", &["--threads", "2"]);
    desk.fit("shuffled.csv", "three", &["--threads", "2"]);
    for file in ["effects.csv", "weights.csv", "run.dvim", "summary.json"] {
        let of = |run: &str| fs::read(desk.path(run).join(file)).expect("a file of the run");
        assert!(of("one") == of("two"), "{file} differs between 1 and 2 threads");
        if file != "summary.json" {
            assert!(of("one") == of("three"), "{file} differs after shuffling the rows");
        }
    }
    let without_input = |run: &str| {
        let mut json: serde_json::Value =
            serde_json::from_str(&desk.read(&format!("{run}/summary.json"))).expect("JSON");
        json["input"].take();
        json["seal"].take();
        json
    };
    assert_eq!(without_input("one"), without_input("three"));
}

#[test]
fn fit_writes_what_it_promises() {
    let desk = Desk::new();
    desk.cohort(1200);
    let (stdout, stderr) = desk.fit("cohort.csv", "run", &[]);
    assert!(stdout.contains("of 100 patients are event-free at time 800 than with control"), "{stdout}");
    assert!(stderr.contains("written to run"), "{stderr}");
    let header = "id,treatment,cure_effect,time_effect,cure_treated,cure_control,mean_event_time_treated,mean_event_time_control,\
        cure_at_risk_treated,cure_at_risk_control,cure_diameter_treated,cure_diameter_control,time_diameter_treated,time_diameter_control,flags";
    let effects = desk.read("run/effects.csv");
    let found = effects.lines().next().expect("a header");
    assert!(
        found.starts_with(&format!("{header},cure_effect_se,cure_effect_low,cure_effect_high,time_effect_se,")),
        "{found}"
    );
    assert!(
        found.contains(",mean_event_time_control_low,mean_event_time_control_high,rmst_effect,rmst_effect_se,"),
        "{found}"
    );
    assert!(found.contains(",rmst_control_se,rmst_control_low,rmst_control_high"), "{found}");
    assert!(desk.read("run/weights.csv").starts_with("covariate,level,fill,cure_weight,time_weight,center,scale,"));
    let json: serde_json::Value = serde_json::from_str(&desk.read("run/summary.json")).expect("JSON");
    assert_eq!(json["schema"], "dvim.summary/1");
    assert_eq!(json["horizon"], 800.0);
    assert_eq!(json["input"]["file"], "cohort.csv");
    let n = json["counts"]["treated"]["n_estimation"].as_u64().expect("a count")
        + json["counts"]["control"]["n_estimation"].as_u64().expect("a count");
    assert_eq!(effects.lines().count() as u64, n + 1);
    for arm in ["treated", "control"] {
        let certificate = &json["models"][arm]["certificate"];
        assert_eq!(certificate["converged"], true);
        assert!(certificate["gradient_norm"].as_f64().expect("a number") < 1e-6);
        assert!(certificate["smallest_eigenvalue"].as_f64().expect("a number") > 0.0);
    }
    let mean: f64 = {
        let values: Vec<f64> = effects.lines().skip(1).map(|l| l.split(',').nth(2).unwrap().parse().unwrap()).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let average = &json["average_effects"][0];
    assert_eq!((average["estimand"].as_str(), average["population"].as_str()), (Some("cure_effect"), Some("all")));
    assert!((average["estimate"].as_f64().expect("a number") - mean).abs() < 1e-12);

    // A run is not overwritten unasked, and --force replaces a run, never something else.
    let (_, stderr) = desk.run(&[&["fit", "cohort.csv", "-k", "20", "-o", "run"], &PAPER[..]].concat(), 2);
    assert!(stderr.contains("--force"), "{stderr}");
    desk.fit("cohort.csv", "run", &["--force", "--seed", "9"]);
    assert_ne!(desk.read("run/effects.csv"), effects);
    fs::create_dir(desk.path("mine")).expect("a folder");
    desk.write("mine/thesis.txt", "precious");
    desk.run(&[&["fit", "cohort.csv", "-k", "20", "-o", "mine", "--force"], &PAPER[..]].concat(), 2);
    assert_eq!(desk.read("mine/thesis.txt"), "precious");
    assert!(!desk.names().iter().any(|n| n.contains("partial")), "{:?}", desk.names());
}

#[test]
fn audit_says_whether_a_run_can_be_relied_on() {
    let desk = Desk::new();
    desk.cohort(1200).fit("cohort.csv", "run", &["--by", "x1", "--confidence", "0.9"]);
    let summary: serde_json::Value = serde_json::from_str(&desk.read("run/summary.json")).expect("JSON");
    let (stdout, _) = desk.run(&["audit", "run", "--by", "x1", "--json", "--uses", "uses.csv", "--seeds", "1"], 0);
    let audit: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(audit["average_effects"], summary["average_effects"], "an audit finds what the fit found");
    assert_eq!(audit["audit"]["balance"], summary["audit"]["balance"]);
    assert_eq!((audit["confidence"].as_f64(), audit["schema"].as_str()), (Some(0.9), Some("dvim.audit/1")));
    assert_eq!(audit["audit"]["seeds"].as_array().map(Vec::len), Some(2), "the run's own seed and another");
    let averages = audit["average_effects"].as_array().expect("a list");
    for (estimand, population) in [("cure_effect", "all"), ("time_effect", "control"), ("cure_ratio", "x1 = 1")] {
        let a =
            averages.iter().find(|a| a["estimand"] == estimand && a["population"] == population).expect("it is listed");
        let [low, v, high] = ["low", "estimate", "high"].map(|k| a[k].as_f64().expect("a number"));
        assert!(low < v && v < high && a["se"].as_f64().expect("a number") > 0.0, "{a}");
    }
    let uses = desk.read("uses.csv");
    assert_eq!(uses.lines().next(), Some("id,treatment,cure_uses,time_uses"));
    let total: usize = uses.lines().skip(1).map(|l| l.split(',').nth(2).unwrap().parse::<usize>().unwrap()).sum();
    assert_eq!(total, 2 * 20 * (uses.lines().count() - 1), "each estimated patient has two groups of 20");
    let (stdout, _) = desk.run(&["audit", "run", "--by", "x15:3"], 0);
    for words in [
        "Follow-up",
        "Balance",
        "E-values",
        "loss to follow-up that is not by chance",
        "By subgroup",
        "with either treatment",
    ] {
        assert!(stdout.contains(words), "{words}: {stdout}");
    }
    let (_, stderr) = desk.run(&["audit", "run", "--by", "x99"], 2);
    assert!(stderr.contains("no such covariate"), "{stderr}");
    let (_, stderr) = desk.run(&["audit", "run", "--by", "x15"], 2);
    assert!(stderr.contains("x15:4"), "{stderr}");
}

#[test]
fn match_shows_the_patients_behind_a_number() {
    let desk = Desk::new();
    desk.cohort(1200).fit("cohort.csv", "run", &[]);
    fs::remove_file(desk.path("cohort.csv")).expect("the cohort"); // a run stands alone
    let effects = desk.read("run/effects.csv");
    for line in effects.lines().skip(1).step_by(211) {
        let cells: Vec<&str> = line.split(',').collect();
        let (stdout, _) = desk.run(&["match", "run", cells[0], "--json"], 0);
        let json: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
        assert_eq!(json["cure_effect"].as_f64(), cells[2].parse().ok());
        assert_eq!(json["time_effect"].as_f64(), cells[3].parse().ok());
        let members = json["cure"]["treated"]["members"].as_array().expect("members");
        assert_eq!(members.len(), 20);
        let distances: Vec<f64> = members.iter().map(|m| m["distance"].as_f64().expect("a distance")).collect();
        assert!(distances.is_sorted());
        assert_eq!(distances.last().copied(), cells[10].parse().ok());
        assert!(!json["time_groups"]["control"]["curve"].as_array().expect("a curve").is_empty());
    }
    let id = effects.lines().nth(1).and_then(|l| l.split(',').next()).expect("an id");
    let (stdout, _) = desk.run(&["match", "run", id], 0);
    assert!(stdout.contains("Most similar for whether") && stdout.contains("Most similar for when"), "{stdout}");
    let (_, stderr) = desk.run(&["match", "run", "nobody"], 2);
    assert!(stderr.contains("no unit `nobody`"), "{stderr}");
    let (_, stderr) = desk.run(&["match", "elsewhere", "1"], 2);
    assert!(stderr.contains("does not exist"), "{stderr}");
}

#[test]
fn a_damaged_run_is_refused() {
    let desk = Desk::new();
    desk.cohort(400).fit("cohort.csv", "run", &[]);
    let store = fs::read(desk.path("run/run.dvim")).expect("the store");
    let refuse = |bytes: &[u8], what: &str| {
        fs::write(desk.path("run/run.dvim"), bytes).expect("a file");
        let (_, stderr) = desk.run(&["match", "run", "1"], 2);
        assert!(stderr.contains("run.dvim is damaged") && stderr.contains("run `dvim fit` again"), "{what}: {stderr}");
    };
    refuse(&store[..store.len() - 7], "cut short");
    refuse(b"", "empty");
    let mut flipped = store.clone();
    flipped[store.len() / 2] ^= 1;
    refuse(&flipped, "one bit changed");
    let mut newer = store.clone();
    newer[7] = 99;
    refuse(&newer, "another layout");
    fs::write(desk.path("run/run.dvim"), &store).expect("a file");
    let summary = desk.read("run/summary.json");
    desk.write("run/summary.json", summary.replace("dvim.summary/1", "dvim.summary/7"));
    let (_, stderr) = desk.run(&["match", "run", "1"], 2);
    assert!(stderr.contains("dvim.summary/7") && stderr.contains("dvim.summary/1"), "{stderr}");
    desk.write("run/summary.json", &summary[..100]);
    desk.run(&["match", "run", "1"], 2);
}

#[test]
fn the_demo_ends_with_something_to_look_at() {
    let desk = Desk::new();
    let (stdout, _) = desk.run(&["demo", "--n", "1500"], 0);
    assert!(stdout.contains("dvim-demo/report.html"), "{stdout}");
    let page = desk.read("dvim-demo/report.html");
    assert!(page.contains("</html>") && page.contains("<svg"));
    for remote in ["http://", "https://", "<script", "@import"] {
        let found = page.replace("http://www.w3.org/", "");
        assert!(!found.contains(remote), "the page mentions {remote}");
    }
    let hint = stdout.lines().find(|l| l.contains("dvim match")).expect("a hint");
    let words: Vec<&str> = hint.split_whitespace().collect();
    let (shown, _) = desk.run(&["match", words[2], words[3]], 0);
    assert!(!shown.contains("trained the cure models"), "the hint names an estimated patient");
    desk.run(&["demo", "--n", "1500"], 0);
}

#[test]
fn help_teaches_and_completions_complete() {
    let desk = Desk::new();
    for command in ["demo", "simulate", "check", "fit", "match"] {
        let (stdout, _) = desk.run(&[command, "--help"], 0);
        assert!(stdout.contains("Example"), "{command}: {stdout}");
    }
    let (stdout, _) = desk.run(&["completions", "bash"], 0);
    assert!(stdout.contains("--horizon"));
    let (_, stderr) = desk.run(&["fit", "cohort.csv", "--time", "t", "--event", "e", "--treatment", "z"], 2);
    assert!(stderr.contains("--horizon"), "the horizon has no default: {stderr}");
}

/// A cohort of 40 units that is fine, to be spoilt one way at a time.
fn sound() -> Vec<Vec<String>> {
    let mut rows = vec![["id", "time", "event", "treatment", "age", "marker"].map(String::from).to_vec()];
    for i in 0..40u32 {
        let time = if i % 5 == 0 { 900 } else { 10 + i * 17 % 700 };
        let cells = [i + 1, time, u32::from(i % 3 != 0), i % 2, 40 + i * 7 % 31, i * 11 % 13];
        rows.push(cells.iter().map(u32::to_string).collect());
    }
    rows
}

fn csv(rows: &[Vec<String>]) -> String {
    rows.iter().map(|r| r.join(",") + "\n").collect()
}

/// Spoils column `j` with `value` in the given rows (1 is the first below the header).
fn spoilt(j: usize, rows: &[usize], value: &str) -> String {
    let mut table = sound();
    rows.iter().for_each(|&r| table[r][j] = value.into());
    csv(&table)
}

/// `check` and `fit` both refuse with exit code 2, say these words, and leave nothing behind.
fn refused(table: impl AsRef<[u8]>, more: &[&str], words: &[&str]) {
    let desk = Desk::new();
    desk.write("table.csv", table);
    let columns = if more.contains(&"--time") { &[][..] } else { &PAPER[..] };
    for command in ["check", "fit"] {
        let (_, stderr) = desk.run(&[&[command, "table.csv", "-k", "5"], columns, more].concat(), 2);
        for word in words {
            assert!(stderr.contains(word), "{command} does not say {word:?}:\n{stderr}");
        }
        assert!(!stderr.contains("panic"), "{stderr}");
        assert_eq!(desk.names(), ["table.csv"], "{command} left something behind");
    }
}

#[test]
fn a_sound_table_passes() {
    let desk = Desk::new();
    desk.write("table.csv", csv(&sound()));
    let (stdout, stderr) = desk.run(&[&["check", "table.csv", "-k", "5"], &PAPER[..]].concat(), 0);
    assert!(stdout.contains("40 rows, 6 columns"), "{stdout}");
    assert!(
        stderr.contains("warning") && !stderr.contains("error"),
        "few are followed to the horizon, which is worth a word: {stderr}"
    );
    desk.cohort(500);
    let (stdout, stderr) = desk.run(&[&["check", "cohort.csv", "-k", "5"], &PAPER[..]].concat(), 0);
    assert!(stdout.contains("No problem found") && stderr.is_empty(), "{stdout}{stderr}");
}

#[test]
fn missing_values() {
    refused(spoilt(4, &[3, 7], ""), &[], &["column `age`: 2 missing values (rows 3, 7)", "remedy"]);
    refused(spoilt(1, &[9], "NA"), &[], &["column `time`: 1 missing value (row 9)"]);
    refused(spoilt(2, &[1], "NaN"), &[], &["column `event`: 1 missing value (row 1)"]);
    refused(spoilt(3, &[2], ""), &[], &["column `treatment`: 1 missing value (row 2)"]);
    refused(spoilt(0, &[40], ""), &[], &["column `id`: 1 missing value (row 40)"]);
}

#[test]
fn values_that_do_not_fit() {
    refused(spoilt(4, &[5], "old"), &[], &["column `age`", "`old`", "(row 5)", "numeric"]);
    refused(spoilt(2, &[6, 8], "2"), &[], &["column `event`", "2 values are not an event indicator", "(rows 6, 8)"]);
    refused(
        csv(&sound()).replace(",event,", ",e,"),
        &["--time", "time", "--event", "marker", "--treatment", "treatment", "--horizon", "800"],
        &["column `marker`", "recode the column as 0 and 1"],
    );
    refused(spoilt(1, &[2], "0"), &[], &["column `time`: 1 time is zero (row 2)"]);
    refused(spoilt(1, &[2, 4], "-3"), &[], &["2 times are zero or negative (rows 2, 4)"]);
    refused(spoilt(1, &[2], "inf"), &[], &["column `time`: 1 value is infinite or beyond 1e100 (row 2)"]);
    refused(spoilt(4, &[2], "-Inf"), &[], &["column `age`: 1 value is infinite or beyond 1e100 (row 2)"]);
    refused(spoilt(4, &[2], "1e308"), &[], &["column `age`: 1 value is infinite or beyond 1e100 (row 2)"]);
    refused(
        spoilt(4, &(1..=40).collect::<Vec<_>>(), "50"),
        &[],
        &["column `age`: every value is 50", "a covariate must vary"],
    );
    refused(spoilt(0, &[2, 3], "1"), &[], &["column `id`: 2 ids occur again, such as `1` (rows 2, 3)"]);
}

#[test]
fn treatments_that_do_not_fit() {
    refused(spoilt(3, &[2], "2"), &[], &["column `treatment`: it holds 3 distinct values: `0`, `1`, `2`"]);
    refused(spoilt(3, &(1..=40).collect::<Vec<_>>(), "1"), &[], &["it holds 1 distinct value: `1`"]);
    let named = csv(&sound()
        .into_iter()
        .enumerate()
        .map(|(i, mut r)| {
            if i > 0 {
                r[3] = if r[3] == "1" { "Lev+5FU" } else { "Obs" }.into();
            }
            r
        })
        .collect::<Vec<_>>());
    refused(&named, &[], &["not evident which of", "add --treated"]);
    refused(&named, &["--treated", "lev"], &["the label `lev` does not occur", "`Lev+5FU`"]);
    let desk = Desk::new();
    desk.write("table.csv", named);
    let (stdout, _) = desk.run(&[&["check", "table.csv", "-k", "5", "--treated", "Lev+5FU"], &PAPER[..]].concat(), 0);
    assert!(stdout.contains("Lev+5FU"), "{stdout}");
}

#[test]
fn arms_and_horizons_that_do_not_fit() {
    let desk = Desk::new();
    desk.write("table.csv", csv(&sound()));
    let (_, stderr) = desk.run(&[&["fit", "table.csv", "-k", "14"], &PAPER[..]].concat(), 2);
    assert!(
        stderr.contains("13 are left for matching, fewer than the group size 14") && stderr.contains("at most 13"),
        "{stderr}"
    );
    let no_event = csv(&sound()
        .into_iter()
        .enumerate()
        .map(|(i, mut r)| {
            if i > 0 && r[3] == "1" {
                r[2] = "0".into();
            }
            r
        })
        .collect::<Vec<_>>());
    refused(no_event, &[], &["the treated arm (`1`) has no event before the horizon 800"]);
    refused(
        csv(&sound()),
        &["--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", "5000"],
        &["nobody is followed to the horizon 5000; follow-up ends at 900", "at most 900"],
    );
    refused(
        csv(&sound()),
        &["--time", "time", "--event", "event", "--treatment", "treatment", "--horizon=-1"],
        &["the horizon is -1"],
    );
    refused(csv(&sound()), &["--train-fraction", "1.5"], &["the train fraction is 1.5"]);
}

#[test]
fn columns_that_are_not_there() {
    let swap = |flag: &str, name: &str| {
        let mut columns: Vec<String> = COLUMNS.iter().map(|c| c.to_string()).collect();
        let at = columns.iter().position(|c| c == flag).expect("a flag") + 1;
        columns[at] = name.into();
        columns
    };
    let columns = swap("--time", "tme");
    refused(
        csv(&sound()),
        &columns.iter().map(String::as_str).collect::<Vec<_>>(),
        &["column `tme`: there is no such column (asked for as time)", "did you mean `time`?"],
    );
    refused(csv(&sound()), &["--covariates", "age,Marker"], &["column `Marker`", "did you mean `marker`?"]);
    refused(csv(&sound()), &["--covariates", "age,time"], &["column `time`: it is asked for as time and as covariate"]);
    let columns = swap("--event", "time");
    refused(
        csv(&sound()),
        &columns.iter().map(String::as_str).collect::<Vec<_>>(),
        &["it is asked for as time and as event"],
    );
}

#[test]
fn every_problem_is_said_at_once() {
    let mut table = sound();
    table[1][1] = "-5".into();
    table[2][2] = "maybe".into();
    table[3][4] = "".into();
    table[4][5] = "high".into();
    table[5][0] = "1".into();
    refused(csv(&table), &[], &["column `time`", "column `event`", "column `age`", "column `marker`", "column `id`"]);
}

#[test]
fn files_that_are_not_tables() {
    refused("", &[], &["empty"]);
    refused("id,time,event,treatment,age\n", &[], &["header"]);
    refused("id,time,event,treatment,age\n1,2,1,0,5\n2,3,1,1\n", &[], &["row 2"]);
    refused("id,time,event,treatment,age,age\n1,2,1,0,5,5\n", &[], &["age"]);
    let desk = Desk::new();
    let (_, stderr) = desk.run(&[&["check", "nowhere.csv"], &PAPER[..]].concat(), 2);
    assert!(stderr.contains("nowhere.csv"), "{stderr}");
}

#[test]
fn dialects_of_csv_are_read_alike() {
    let desk = Desk::new();
    let plain = csv(&sound());
    desk.write("plain.csv", &plain)
        .write("bom.csv", format!("\u{feff}{plain}"))
        .write("crlf.csv", plain.replace('\n', "\r\n"));
    desk.write("quoted.csv", plain.replace(",marker", ",\"mar\nker\""));
    desk.write("tab.tsv", plain.replace(',', "\t"));
    let fit = |table: &str, run: &str| {
        desk.run(&[&["fit", table, "-k", "5", "-o", run], &PAPER[..]].concat(), 0);
        desk.read(&format!("{run}/effects.csv"))
    };
    let one = fit("plain.csv", "a");
    assert_eq!(one, fit("bom.csv", "b"));
    assert_eq!(one, fit("crlf.csv", "c"));
    assert_eq!(one, fit("quoted.csv", "d"));
    assert_eq!(one, fit("tab.tsv", "e"));
    assert!(desk.read("d/weights.csv").contains("\"mar\nker\""));
}

#[test]
fn ten_thousand_columns() {
    let desk = Desk::new();
    let mut text = String::from("time,event,treatment");
    (0..10_000).for_each(|j| text += &format!(",v{j}"));
    for row in sound().iter().skip(1) {
        text += &format!("\n{},{},{}", row[1], row[2], row[3]);
        (0..10_000).for_each(|j| text += if (j + row[0].len()) % 2 == 0 { ",1" } else { ",0.5" });
    }
    desk.write("wide.csv", text);
    let (stdout, _) =
        desk.run(&[&["check", "wide.csv", "-k", "5", "--covariates", "v1,v9999"], &PAPER[..]].concat(), 0);
    assert!(stdout.contains("10003 columns"), "{}", &stdout[..200]);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let desk = Desk::new();
    desk.cohort(300);
    let command = format!("{} simulate --scenario time-only --n 200000 | head -n 1", env!("CARGO_BIN_EXE_dvim"));
    let out = std::process::Command::new("sh")
        .arg("-c")
        .arg(command)
        .current_dir(Path::new(desk.folder.path()))
        .output()
        .expect("sh");
    assert!(out.status.success());
    assert!(out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// The cells of a table by the name of the column.
fn column(table: &str, name: &str) -> Vec<String> {
    let mut lines = table.lines();
    let place = lines.next().and_then(|h| h.split(',').position(|c| c == name)).expect("the column");
    lines.map(|l| l.split(',').nth(place).expect("a cell").to_string()).collect()
}

#[test]
fn the_adjusted_estimator_says_how_sure_it_is() {
    let desk = Desk::new();
    desk.cohort(240);
    desk.run(&[&["fit", "cohort.csv", "--estimator", "adjusted", "-o", "run"], &COLUMNS[..]].concat(), 0);
    let effects = desk.read("run/effects.csv");
    let number = |name: &str, i: usize| column(&effects, name)[i].parse::<f64>().expect("a number");
    for value in ["cure_effect", "time_effect", "cure_treated", "mean_event_time_control"] {
        for i in 0..240 {
            let [v, low, high, se] = ["", "_low", "_high", "_se"].map(|end| number(&format!("{value}{end}"), i));
            assert!(low < v && v < high && se > 0.0, "{value} of row {i}: {low} {v} {high} {se}");
        }
    }
    let (json, _) = desk.run(&["match", "run", "17", "--json"], 0);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let row = column(&effects, "id").iter().position(|id| id == "17").expect("patient 17");
    assert_eq!(json["cure_effect_interval"]["low"].as_f64(), Some(number("cure_effect_low", row)));
    assert_eq!(json["time_effect_interval"]["se"].as_f64(), Some(number("time_effect_se", row)));
    let (text, _) = desk.run(&["match", "run", "17"], 0);
    assert!(text.contains("The model alone:") && text.contains("95 % CI"), "{text}");
}

/// An adjusted run is predicted from, repeated and constrained like any other; its patients get their own numbers
/// again.
#[test]
fn adjusted_runs_are_predicted_from() {
    let desk = Desk::new();
    desk.cohort(300);
    let asked = ["fit", "cohort.csv", "--estimator", "adjusted", "--folds", "3", "--splits", "6", "-o", "run"];
    let (text, _) = desk.run(&[&asked, &COLUMNS[..]].concat(), 0);
    assert!(text.contains("the 2 of 6 splits that left it out"), "{text}");
    let effects = desk.read("run/effects.csv");
    let spread = column(&effects, "cure_effect_split_sd");
    assert!(spread.iter().all(|v| v.parse::<f64>().is_ok_and(|v| v > 0.0)));
    let same = |a: &str, b: &str, name: &str| assert_eq!(column(a, name), column(b, name), "{name}");
    // Known by id and covariates: what the run says of them.
    let (again, _) = desk.run(&["predict", "run", "cohort.csv", "--groups", "groups.csv"], 0);
    for name in effects.lines().next().expect("a header").split(',').filter(|n| *n != "treatment") {
        same(&again, &effects, name);
    }
    // Under other names they are new: all models speak, and the patient may be in the group.
    let renamed: Vec<String> = desk
        .read("cohort.csv")
        .lines()
        .enumerate()
        .map(|(i, l)| if i == 0 { l.to_string() } else { format!("new{l}") })
        .collect();
    desk.write("new.csv", renamed.join("\n"));
    let (new, _) = desk.run(&["predict", "run", "new.csv"], 0);
    let numbers =
        |t: &str| -> Vec<f64> { column(t, "cure_effect").iter().map(|v| v.parse().expect("a number")).collect() };
    let (new, old) = (numbers(&new), numbers(&effects));
    let apart = new.iter().zip(&old).map(|(a, b)| (a - b).abs()).sum::<f64>() / 300.0;
    assert!(apart > 1e-6 && apart < 0.15, "near, not the same: {apart}");
    desk.run(&["rerun", "run", "cohort.csv"], 0);
    desk.run(&["audit", "run"], 0);
    // Constraints.
    let asked = ["fit", "cohort.csv", "--estimator", "adjusted", "--folds", "3", "--exact", "x1,x2", "-o", "exact"];
    let (text, _) = desk.run(&[&asked, &COLUMNS[..]].concat(), 0);
    let effects = desk.read("exact/effects.csv");
    let flags = column(&effects, "flags");
    let unserved = flags.iter().filter(|f| f.contains("too_few_candidates")).count();
    assert!(unserved == 0 || text.contains("fewer than 25 candidates"), "{text}");
    let (again, _) = desk.run(&["predict", "exact", "cohort.csv"], 0);
    same(&again, &effects, "cure_effect");
    same(&again, &effects, "flags");
}
