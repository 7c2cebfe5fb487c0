//! Files on a bad day: nothing that dvim did not write is deleted or replaced, and what it writes is whole and private.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const ROLES: &str = "--time time --event event --treatment treatment --horizon 800 -k 20";

fn command(folder: &Path, command: &str) -> Command {
    let mut out = Command::new(env!("CARGO_BIN_EXE_dvim"));
    out.args(command.split_whitespace()).current_dir(folder).stdin(Stdio::null());
    out
}

fn dvim(folder: &Path, words: &str) -> Output {
    command(folder, words).output().expect("dvim runs")
}

fn good(folder: &Path, words: &str) -> String {
    let done = dvim(folder, words);
    assert!(done.status.success(), "dvim {words}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stderr).expect("text")
}

/// The command is refused in the form of the house and leaves everything in the folder as it was.
fn refused(folder: &Path, words: &str) -> String {
    let before = everything(folder);
    let done = dvim(folder, words);
    let said = String::from_utf8(done.stderr).expect("text");
    assert_eq!(done.status.code(), Some(2), "dvim {words} must be refused: {said}");
    for part in ["error: ", "\n  rule:   ", "\n  remedy: "] {
        assert!(said.contains(part), "dvim {words}: {said}");
    }
    assert_eq!(everything(folder), before, "dvim {words}");
    said
}

/// Every path under a folder: its kind, mode and contents.
fn everything(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut out = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(path) = open.pop() {
        let found = fs::symlink_metadata(&path).expect("it is there");
        let bytes = match () {
            () if found.is_dir() => {
                open.extend(fs::read_dir(&path).expect("a folder").map(|e| e.expect("an entry").path()));
                Vec::new()
            }
            () if found.is_file() => fs::read(&path).expect("a file"),
            () if found.is_symlink() => fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes(),
            () => Vec::new(),
        };
        out.insert(path, (found.mode(), bytes));
    }
    out
}

fn names(folder: &Path) -> Vec<String> {
    let mut out: Vec<String> = fs::read_dir(folder)
        .expect("a folder")
        .map(|e| e.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    out.sort();
    out
}

fn simulated(n: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    good(folder.path(), &format!("simulate --scenario both-overlap --n {n} --seed 4 -o cohort.csv"));
    folder
}

#[test]
fn a_demo_replaces_nothing_but_a_demo() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let work = folder.join("work");
    fs::create_dir_all(work.join("run")).expect("a folder");
    for file in ["report.html", "truth.csv", "run/summary.json", "thesis.tex"] {
        fs::write(work.join(file), "years of work").expect("a file");
    }
    assert!(refused(&work, "demo --n 600 -o .").contains("working directory"));
    assert!(refused(folder, "demo --n 600 -o work").contains("`work` is not a directory that `dvim demo` wrote"));
    good(folder, "demo --n 600 -o demo");
    good(folder, "demo --n 600 --seed 2 -o demo");
    assert_eq!(names(folder), ["demo", "work"]);
    // A file beside its own, and one of its own that was edited, are the user's.
    fs::write(folder.join("demo/thesis.tex"), "years of work").expect("a file");
    assert!(refused(folder, "demo --n 600 -o demo").contains("`thesis.tex`"));
    fs::remove_file(folder.join("demo/thesis.tex")).expect("removed");
    let page = fs::read_to_string(folder.join("demo/report.html")).expect("a file");
    fs::write(folder.join("demo/report.html"), page + "<p>my notes</p>").expect("edited");
    assert!(refused(folder, "demo --n 600 -o demo").contains("changed after dvim wrote them: `report.html`"));
}

#[test]
fn a_fit_replaces_nothing_but_the_files_of_a_run() {
    let folder = simulated(600);
    let folder = folder.path();
    good(folder, &format!("fit cohort.csv {ROLES} -o run"));
    fs::rename(folder.join("cohort.csv"), folder.join("run/cohort.csv")).expect("moved");
    let fit = format!("fit run/cohort.csv {ROLES} -o run --force");
    assert!(refused(folder, &fit).contains("`cohort.csv`"));
    // Not a file of the run's own either, by whatever name.
    fs::rename(folder.join("run/cohort.csv"), folder.join("cohort.csv")).expect("moved");
    fs::hard_link(folder.join("run/effects.csv"), folder.join("hard.csv")).expect("a link");
    symlink("run/effects.csv", folder.join("soft.csv")).expect("a link");
    for input in ["run/effects.csv", "hard.csv", "soft.csv"] {
        let said = refused(folder, &format!("fit {input} {ROLES} -o run --force"));
        assert!(said.contains("input of this command"), "{said}");
    }
    // A folder, a hidden file, a link in place of a file, an edited file.
    fs::create_dir(folder.join("run/notes")).expect("a folder");
    let fit = format!("fit cohort.csv {ROLES} -o run --force --seed 2");
    assert!(refused(folder, &fit).contains("`notes`"));
    fs::remove_dir(folder.join("run/notes")).expect("removed");
    fs::write(folder.join("run/.notes"), "mine").expect("a file");
    assert!(refused(folder, &fit).contains("`.notes`"));
    fs::remove_file(folder.join("run/.notes")).expect("removed");
    let effects = fs::read(folder.join("run/effects.csv")).expect("a file");
    fs::remove_file(folder.join("run/effects.csv")).expect("removed");
    symlink("../hard.csv", folder.join("run/effects.csv")).expect("a link");
    assert!(refused(folder, &fit).contains("`effects.csv`"));
    fs::remove_file(folder.join("run/effects.csv")).expect("removed");
    fs::write(folder.join("run/effects.csv"), [&effects[..], b"my notes"].concat()).expect("edited");
    assert!(refused(folder, &fit).contains("changed after dvim wrote them: `effects.csv`"));
    // A run that lost a file is still a run.
    fs::remove_file(folder.join("run/effects.csv")).expect("removed");
    good(folder, &fit);
    assert_eq!(names(&folder.join("run")), ["effects.csv", "run.dvim", "summary.json", "weights.csv"]);
    assert_eq!(names(folder), ["cohort.csv", "hard.csv", "run", "soft.csv"]);
    // A report that was asked for in the run is replaced with it, and only then.
    let report = format!("{fit} --report run/report.html");
    good(folder, &report);
    good(folder, &report);
    assert!(refused(folder, &fit).contains("`report.html`"));
    assert!(refused(folder, &format!("{fit} --report run/effects.csv")).contains("a file of the run itself"));
}

#[test]
fn several_runs_replace_nothing_but_their_own() {
    let folder = simulated(600);
    let folder = folder.path();
    fs::copy(folder.join("cohort.csv"), folder.join("again.csv")).expect("copied");
    let fit = format!("fit cohort.csv again.csv {ROLES} -o runs --force");
    good(folder, &fit);
    good(folder, &fit);
    fs::write(folder.join("runs/imputation-2/notes.txt"), "mine").expect("a file");
    assert!(refused(folder, &fit).contains("`imputation-2/notes.txt`"));
    fs::remove_file(folder.join("runs/imputation-2/notes.txt")).expect("removed");
    fs::write(folder.join("runs/imputation-1/weights.csv"), "mine").expect("edited");
    assert!(refused(folder, &fit).contains("`imputation-1/weights.csv`"));
    assert_eq!(names(folder), ["again.csv", "cohort.csv", "runs"]);
}

#[test]
fn a_comparison_replaces_nothing_but_a_comparison() {
    let folder = simulated(400);
    let folder = folder.path();
    let compare = format!("compare cohort.csv {ROLES} -o compare --force");
    fs::create_dir(folder.join("compare")).expect("a folder");
    for file in ["correlations.csv", "report.html", "thesis.tex"] {
        fs::write(folder.join("compare").join(file), "years of work").expect("a file");
    }
    assert!(refused(folder, &compare).contains("is not a directory that `dvim compare` wrote"));
    fs::remove_dir_all(folder.join("compare")).expect("removed");
    good(folder, &compare);
    good(folder, &compare);
    fs::write(folder.join("compare/thesis.tex"), "years of work").expect("a file");
    assert!(refused(folder, &compare).contains("`thesis.tex`"));
    assert_eq!(names(folder), ["cohort.csv", "compare"]);
}
