//! Imputed data sets, several arms, weights and causes, from the command line.

use assert_cmd::Command;
use std::fmt::Write;
use std::fs;
use std::path::Path;

fn dvim(folder: &Path, command: &str) -> (bool, String, String) {
    let mut run = Command::cargo_bin("dvim").expect("dvim is built");
    let done = run.args(command.split_whitespace()).current_dir(folder).output().expect("dvim runs");
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (done.status.success(), text(&done.stdout), text(&done.stderr))
}

fn good(folder: &Path, command: &str) -> String {
    let (ok, out, words) = dvim(folder, command);
    assert!(ok, "dvim {command}: {words}");
    out
}

/// 240 patients in three arms, with causes, weights, hospitals and entries; `imputation` numbers a data set.
fn table(imputation: Option<usize>) -> String {
    let mut out = String::from(if imputation.is_some() { "imp," } else { "" });
    out.push_str("id,time,event,cause,arm,age,sex,weight,hospital,entry\n");
    for i in 0..240usize {
        let noise = (i * 7919 + 13) % 997;
        let age = 30 + noise % 41 + imputation.filter(|_| i % 5 == 0).map_or(0, |k| (k * 31 + i) % 7);
        let time = 5 + (noise * 3) % 130;
        let event = usize::from(!noise.is_multiple_of(3));
        let cause = if event == 1 && noise % 5 == 0 { 2 } else { event };
        if let Some(k) = imputation {
            let _ = write!(out, "{k},");
        }
        let arm = ["B", "A 1", "C"][i % 3];
        let sex = ["f", "m"][noise % 2];
        let weight = 0.5 + (noise % 4) as f64;
        let _ =
            writeln!(out, "{i},{time},{event},{cause},{arm},{age},{sex},{weight},h{},{}", i % 12, [0, 0, 2, 4][i % 4]);
    }
    out
}

const ROLES: &str = "--time time --treatment arm --horizon 100 --estimator paper -k 8 --drop weight,hospital,entry";
const PAIR: &str = "--treated C --control B --event event --drop cause";

#[test]
fn imputed_data_sets_of_one_table_or_of_several() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let parts: Vec<String> = (0..4).map(|k| table(Some(k))).collect();
    let long = parts.iter().enumerate().map(|(k, t)| if k == 0 { t.as_str() } else { t.split_once('\n').unwrap().1 });
    fs::write(folder.join("long.csv"), long.collect::<String>()).expect("a table");
    let command = format!("fit long.csv {ROLES} {PAIR} --imputation imp -o pooled");
    let words = good(folder, &command);
    assert!(words.contains("3 imputed data sets"), "{words}");
    let effects = fs::read_to_string(folder.join("pooled/effects.csv")).expect("effects");
    let header = effects.lines().next().expect("a header");
    assert!(
        header.starts_with("id,treatment,cure_effect,time_effect,") && header.ends_with("n_imputations"),
        "{header}"
    );
    assert!(effects.lines().skip(1).all(|l| l.ends_with(",3")), "every patient is in all three");
    // Each data set is a run like any other; the whole is none.
    let (id, _) = effects.lines().nth(1).unwrap().split_once(',').unwrap();
    good(folder, &format!("match pooled/imputation-2 {id}"));
    assert!(good(folder, "rerun pooled/imputation-2 long.csv").contains("identical"));
    let (ok, _, words) = dvim(folder, &format!("match pooled {id}"));
    assert!(!ok && words.contains("several runs"), "{words}");
    // The same as files.
    for (k, part) in parts.iter().enumerate().skip(1) {
        fs::write(folder.join(format!("set{k}.csv")), part).expect("a table");
    }
    let roles = ROLES.replace("--drop weight", "--drop imp,weight");
    good(folder, &format!("fit set1.csv set2.csv set3.csv {roles} {PAIR} -o files"));
    assert_eq!(effects, fs::read_to_string(folder.join("files/effects.csv")).expect("effects"));
    // Neither replaces a run, nor is replaced by one.
    let (ok, _, words) = dvim(folder, &format!("fit set1.csv {roles} {PAIR} -o files --force"));
    assert!(!ok && words.contains("not a run"), "{words}");
    let (ok, _, words) = dvim(folder, &format!("fit set1.csv set2.csv {roles} {PAIR} -o files/imputation-1 --force"));
    assert!(!ok && words.contains("several runs"), "{words}");
    good(folder, &format!("fit set1.csv set2.csv {roles} {PAIR} -o files --force"));
}

#[test]
fn every_arm_against_one_control() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("t.csv"), table(None)).expect("a table");
    let words =
        good(folder, &format!("fit t.csv {ROLES} --event event --drop cause --treated all --control B -o arms"));
    assert!(words.contains("2 arms against one control"), "{words}");
    let arms = fs::read_to_string(folder.join("arms/arms.csv")).expect("arms");
    assert_eq!(arms.lines().filter(|l| l.starts_with("cure_effect,")).count(), 2, "{arms}");
    // Each is the run that naming it gives.
    good(folder, &format!("fit t.csv {ROLES} {PAIR} -o one"));
    let same = |file: &str| fs::read(folder.join(format!("arms/c/{file}"))).expect("a file");
    assert_eq!(same("effects.csv"), fs::read(folder.join("one/effects.csv")).expect("effects"));
    assert!(folder.join("arms/a_1/run.dvim").is_file(), "an arm whose label is no file name");
    good(folder, "audit arms/a_1");
}

#[test]
fn weights_clusters_entries_and_causes_from_table_to_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("t.csv"), table(None)).expect("a table");
    let extras = "--time time --treatment arm --horizon 100 --estimator paper -k 8 --treated C --control B --event cause --cause 1 --drop event --weights weight --cluster hospital --entry entry";
    let words = good(folder, &format!("check t.csv {extras}"));
    assert!(words.contains("Aalen–Johansen") && words.contains("events of other causes"), "{words}");
    good(folder, &format!("fit t.csv {extras} -o run"));
    let summary: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.join("run/summary.json")).expect("a summary")).expect("JSON");
    assert_eq!(summary["roles"]["asked"]["cause"], "1");
    assert!(summary["counts"]["treated"]["n_competing"].as_u64().is_some_and(|n| n > 0));
    assert!(summary["average_effects"][0]["se"].as_f64().is_some_and(|s| s > 0.0));
    // Reopened, audited, repeated and predicted from, it is the same run.
    assert!(good(folder, "rerun run t.csv").contains("identical"));
    let audit = good(folder, "audit run");
    assert!(audit.contains("other causes"), "what is left out is said: {audit}");
    let effects = fs::read_to_string(folder.join("run/effects.csv")).expect("effects");
    let row: Vec<&str> = effects.lines().nth(1).expect("a patient").split(',').collect();
    good(folder, &format!("match run {}", row[0]));
    let patient = table(None).lines().nth(1 + row[0].parse::<usize>().unwrap()).unwrap().to_string();
    let header = table(None).lines().next().unwrap().to_string();
    fs::write(folder.join("new.csv"), format!("{header}\n{patient}\n")).expect("a patient");
    let predicted = good(folder, "predict run new.csv --id id");
    let again: Vec<&str> = predicted.lines().nth(1).expect("a row").split(',').collect();
    assert_eq!(row[2..8], again[2..8], "a patient of the cohort is predicted as estimated");
    // Without them the answer is another.
    good(folder, &format!("fit t.csv {ROLES} {PAIR} -o plain"));
    assert_ne!(effects, fs::read_to_string(folder.join("plain/effects.csv")).expect("effects"));
}
