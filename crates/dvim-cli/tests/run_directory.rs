//! Runs as artefacts: complete or absent, whole or refused, repeatable to the last bit, open to new patients.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn dvim(folder: &Path, command: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dvim"))
        .args(command.split_whitespace())
        .current_dir(folder)
        .output()
        .expect("dvim runs")
}

fn good(folder: &Path, command: &str) -> String {
    let done = dvim(folder, command);
    assert!(done.status.success(), "dvim {command}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text")
}

fn refused(folder: &Path, command: &str) -> String {
    let done = dvim(folder, command);
    assert_eq!(done.status.code(), Some(2), "dvim {command} must be refused");
    String::from_utf8(done.stderr).expect("text")
}

const ROLES: &str = "--time time --event event --treatment treatment --horizon 800 --estimator paper -k 20";

fn simulated(n: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    good(folder.path(), &format!("simulate --scenario both-overlap --n {n} --seed 4 -o cohort.csv"));
    folder
}

/// Whatever the moment, a killed fit leaves nothing that a later command takes for a complete run.
#[test]
fn a_killed_fit_leaves_no_run() {
    let folder = simulated(3_000);
    let folder = folder.path();
    let command = format!("fit cohort.csv {ROLES} -o run --force");
    let started = Instant::now();
    good(folder, &command);
    let whole = started.elapsed();
    fs::remove_dir_all(folder.join("run")).expect("removed");
    let (mut killed, mut complete) = (0, 0);
    for i in 0..40u32 {
        // Every second time there is an old run to be replaced.
        let had_run = folder.join("run").exists();
        if had_run && i % 2 == 0 {
            fs::remove_dir_all(folder.join("run")).expect("removed");
        }
        let mut child = Command::new(env!("CARGO_BIN_EXE_dvim"))
            .args(command.split_whitespace())
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("dvim starts");
        std::thread::sleep(whole.mul_f64(f64::from((i * 37) % 40) / 36.0));
        killed += u32::from(child.try_wait().expect("a state").is_none());
        let _ = child.kill();
        let _ = child.wait();
        if folder.join("run").exists() {
            complete += 1;
            let shown = dvim(folder, "match run 17");
            assert!(shown.status.success(), "a run that is there is whole: {}", String::from_utf8_lossy(&shown.stderr));
            assert!(shown.stderr.is_empty(), "and unchanged: {}", String::from_utf8_lossy(&shown.stderr));
        } else {
            assert!(refused(folder, "match run 17").contains("does not exist"));
        }
        // What a killed process leaves is hidden and, by its name, no run.
        for entry in fs::read_dir(folder).expect("the folder") {
            let name = entry.expect("an entry").file_name().into_string().expect("a name");
            assert!(["cohort.csv", "run"].contains(&name.as_str()) || name.starts_with(".run.dvim-partial-"), "{name}");
        }
    }
    assert!(killed > 5, "{killed} of 40 were killed at work; {complete} left a run");
}

#[test]
fn edited_and_truncated_files_are_found() {
    let folder = simulated(600);
    let folder = folder.path();
    good(folder, &format!("fit cohort.csv {ROLES} -o run"));
    let run = folder.join("run");
    let warning = |file: &str| {
        let done = dvim(folder, "match run 17");
        let words = String::from_utf8(done.stderr).expect("text");
        assert!(done.status.success() && words.contains(&format!("`{file}`")), "{file}: {words}");
    };
    for file in ["effects.csv", "weights.csv"] {
        let before = fs::read_to_string(run.join(file)).expect("a file");
        fs::write(run.join(file), before.replacen("0.", "0.1", 1)).expect("edited");
        warning(file);
        fs::remove_file(run.join(file)).expect("removed");
        warning(file);
        fs::write(run.join(file), &before).expect("restored");
    }
    assert!(dvim(folder, "match run 17").stderr.is_empty());
    let store = fs::read(run.join("run.dvim")).expect("a file");
    fs::write(run.join("run.dvim"), &store[..store.len() / 2]).expect("cut");
    assert!(refused(folder, "match run 17").contains("checksum"));
    let mut flipped = store.clone();
    let middle = store.len() / 2;
    flipped[middle] ^= 4;
    fs::write(run.join("run.dvim"), &flipped).expect("flipped");
    assert!(refused(folder, "match run 17").contains("checksum"));
    fs::write(run.join("run.dvim"), &store).expect("restored");
    let summary = fs::read_to_string(run.join("summary.json")).expect("a file");
    for (from, to, word) in [
        ("\"horizon\": 800.0", "\"horizon\": 700.0", "changed"),
        ("\"seed\": 1", "\"seed\": 2", "changed"),
        ("\"estimate\": ", "\"estimate\": 1", "changed"),
        ("\"support\": \"", "\"support\": \"un", "changed"),
        ("\"seal\": \"", "\"seal\": \"0", "changed"),
        ("dvim.summary/1", "dvim.summary/99", "schema"),
        ("\"files\"", "\"fils\"", "damaged"),
    ] {
        assert!(summary.contains(from), "{from}");
        fs::write(run.join("summary.json"), summary.replacen(from, to, 1)).expect("edited");
        let words = refused(folder, "match run 17");
        assert!(words.contains(word), "{from}: {words}");
    }
    // The store of another run.
    fs::write(run.join("summary.json"), &summary).expect("restored");
    good(folder, &format!("fit cohort.csv {ROLES} --seed 2 -o other"));
    fs::copy(folder.join("other/run.dvim"), run.join("run.dvim")).expect("copied");
    assert!(refused(folder, "match run 17").contains("not of one run"));
}

#[test]
fn a_rerun_is_identical_or_says_what_is_not() {
    let folder = simulated(800);
    let folder = folder.path();
    let table = fs::read_to_string(folder.join("cohort.csv")).expect("a table");
    // A cohort as it really is: a category, a gap, a filter, three arms.
    let mut rows: Vec<String> = Vec::new();
    for (i, line) in table.lines().enumerate() {
        let mut cells: Vec<String> = line.split(',').map(String::from).collect();
        if i == 0 {
            rows.push(format!("{},site,visit", cells.join(",")));
            continue;
        }
        if i % 9 == 0 {
            cells[3] = "other".into();
        }
        if i % 11 == 0 {
            cells[5] = "NA".into();
        }
        rows.push(format!("{},{},{}", cells.join(","), ["north", "south", "west", ""][i % 4], i % 5));
    }
    fs::write(folder.join("real.csv"), rows.join("\n") + "\n").expect("a table");
    let flags = "--estimator paper --treated 1 --control 0 --missing indicator --where visit=2 --exclude-self --caliper x1=3sd -k 5 --drop x7";
    good(folder, &format!("fit real.csv --time time --event event --treatment treatment --horizon 800 {flags} -o run"));
    assert!(good(folder, "rerun run/summary.json").starts_with("identical"));
    assert!(good(folder, "rerun run real.csv --threads 1").starts_with("identical"));
    let summary = fs::read_to_string(folder.join("run/summary.json")).expect("a file");
    fs::write(folder.join("run/summary.json"), summary.replacen("\"seed\": 1", "\"seed\": 2", 1)).expect("edited");
    let done = dvim(folder, "rerun run -o again");
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stdout).starts_with("not identical: effects.csv"));
    assert!(folder.join("again/summary.json").is_file());
    // A demo holds its own table.
    good(folder, "demo --n 600 -o demo");
    assert!(good(folder, "rerun demo/summary.json").starts_with("identical"));
}

#[test]
fn new_patients_get_what_the_cohort_would_give_them() {
    let folder = simulated(1_500);
    let folder = folder.path();
    good(folder, &format!("fit cohort.csv {ROLES} -o run"));
    // The cohort's own estimated patients, as if they were new, get their own effects again.
    let effects = fs::read_to_string(folder.join("run/effects.csv")).expect("a file");
    let estimated: Vec<&str> = effects.lines().skip(1).map(|l| l.split(',').next().unwrap_or("")).collect();
    let table = fs::read_to_string(folder.join("cohort.csv")).expect("a file");
    let is_estimated = |l: &&str| estimated.contains(&l.split(',').next().unwrap_or(""));
    let rows: Vec<&str> = table.lines().skip(1).filter(is_estimated).collect();
    let header = table.lines().next().unwrap_or("");
    fs::write(folder.join("new.csv"), format!("{header}\n{}\n", rows.join("\n"))).expect("a table");
    let predicted = good(folder, "predict run new.csv");
    let strip = |text: &str| -> Vec<String> {
        let without_arm = |l: &str| {
            l.split(',').enumerate().filter(|(j, _)| *j != 1).map(|(_, c)| c.to_string()).collect::<Vec<_>>().join(",")
        };
        let mut lines: Vec<String> = text.lines().map(without_arm).collect();
        lines.sort();
        lines
    };
    assert_eq!(strip(&predicted), strip(&effects));
    // One patient, and who is behind the numbers.
    fs::write(folder.join("one.csv"), format!("{header}\n{}\n", rows[0])).expect("a table");
    let one = good(folder, "predict run one.csv --format json --groups groups.csv");
    assert!(one.starts_with("[\n{\"id\":") && one.contains("\"cure_effect\":"), "{one}");
    let groups = fs::read_to_string(folder.join("groups.csv")).expect("a file");
    assert_eq!(groups.lines().count(), 1 + 4 * 20);
    // Beyond the support there is no estimate, and the reason is there.
    let far = good(folder, "predict run one.csv --max-distance 0");
    assert!(far.contains(",,,,,,,,,,,,,beyond_max_distance"), "{far}");
    // From a pipe.
    let mut child = Command::new(env!("CARGO_BIN_EXE_dvim"))
        .args(["predict", "run", "-"])
        .current_dir(folder)
        .stdin(fs::File::open(folder.join("one.csv")).expect("a file"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("dvim starts");
    assert!(child.wait().expect("a state").success());
    let started = Instant::now();
    good(folder, "predict run one.csv");
    assert!(started.elapsed() < Duration::from_secs(2), "one patient took {:?}", started.elapsed());
}

#[test]
fn effects_come_in_the_format_that_is_asked_for() {
    let folder = simulated(500);
    let folder = folder.path();
    good(folder, &format!("fit cohort.csv {ROLES} -o csv"));
    good(folder, &format!("fit cohort.csv {ROLES} -o json --format json"));
    assert!(!folder.join("json/effects.csv").exists());
    let text = fs::read_to_string(folder.join("json/effects.json")).expect("a file");
    let rows: Vec<serde_json::Value> = serde_json::from_str(&text).expect("JSON");
    let csv = fs::read_to_string(folder.join("csv/effects.csv")).expect("a file");
    let names: Vec<&str> = csv.lines().next().unwrap_or("").split(',').collect();
    for (row, line) in rows.iter().zip(csv.lines().skip(1)) {
        for (name, cell) in names.iter().zip(line.split(',')) {
            let found = match &row[*name] {
                serde_json::Value::Null => String::new(),
                serde_json::Value::String(s) => s.clone(),
                v => v.to_string().trim_end_matches(".0").to_string(),
            };
            let same = found == cell || found.parse::<f64>().ok() == cell.parse::<f64>().ok();
            assert!(same, "{name}: {found} is not {cell}");
        }
    }
    assert!(good(folder, "rerun json cohort.csv").starts_with("identical"));
    let done = dvim(folder, &format!("fit cohort.csv {ROLES} -o parquet --format parquet"));
    if cfg!(feature = "parquet") {
        assert!(done.status.success());
        assert!(folder.join("parquet/effects.parquet").is_file());
    } else {
        assert_eq!(done.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&done.stderr).contains("built without Parquet"));
        assert!(!folder.join("parquet").exists());
    }
}

/// Effects alone, and the audit later: the same in the end.
#[test]
fn the_audit_can_wait() {
    let folder = simulated(2_000);
    let folder = folder.path();
    good(folder, &format!("fit cohort.csv {ROLES} -o whole"));
    let said = good(folder, &format!("fit cohort.csv {ROLES} -o effects --no-audit"));
    assert!(said.contains("the audit was not asked for"), "{said}");
    let read = |run: &str, file: &str| fs::read(folder.join(run).join(file)).expect("it is there");
    for file in ["effects.csv", "weights.csv", "run.dvim"] {
        assert_eq!(read("whole", file), read("effects", file), "{file}");
    }
    let summary: serde_json::Value = serde_json::from_slice(&read("effects", "summary.json")).expect("JSON");
    assert_eq!(summary["audit"]["asked"], false);
    assert_eq!(summary["audit"]["balance"], serde_json::Value::Null);
    assert_eq!(good(folder, "audit whole --json"), good(folder, "audit effects --json"));
    assert!(good(folder, "rerun effects").starts_with("identical"));
}

/// What is forecast before a run starts is what it takes, not less and not much more.
#[test]
#[cfg(target_os = "linux")]
fn the_forecast_of_memory_holds() {
    use dvim::internal::memory::memory_needed;
    use dvim::internal::options::{AdjustedOptions, Estimator, Options};
    let adjusted = AdjustedOptions { splits: Some(5), folds: 5, group_size: Some(20), ..AdjustedOptions::default() };
    let adjusted = Options { estimator: Estimator::Adjusted(adjusted), ..Options::default() };
    let paper = Options { group_size: 20, ..Options::paper() };
    let folders = [40_000, 10_000].map(|n| (n, simulated(n)));
    for ((n, folder), flags, options, audited) in [
        (&folders[0], "", &paper, true),
        (&folders[0], "--no-audit", &paper, false),
        (&folders[1], "--folds 5 --latency log-normal", &adjusted, true),
    ] {
        let roles = ROLES.replace("paper", options.estimator.name());
        let mut child = Command::new(env!("CARGO_BIN_EXE_dvim"))
            .args(format!("fit cohort.csv {roles} -o run --force --threads 2 {flags}").split_whitespace())
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("dvim starts");
        // The peak so far, as often as the kernel tells it: the last is the peak of all.
        let mut peak = 0;
        while child.try_wait().expect("it can be waited for").is_none() {
            let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
            peak = line.and_then(|l| l.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0).max(peak);
            std::thread::sleep(Duration::from_millis(2));
        }
        let forecast = memory_needed(*n, 20, options, audited, 2) / 1024;
        let most = if options.estimator == Estimator::Paper { 3 * peak } else { 3 * peak / 2 };
        let what = format!("{flags}: {forecast} kB forecast, {peak} kB taken");
        assert!(peak > 0 && peak <= forecast && forecast < most, "{what}");
    }
}
