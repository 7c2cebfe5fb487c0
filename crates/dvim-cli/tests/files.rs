//! Files on a bad day: nothing that dvim did not write is deleted or replaced, and what it writes is whole and private.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const ROLES: &str = "--time time --event event --treatment treatment --horizon 800 --estimator paper -k 20";

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

fn mode(path: PathBuf) -> u32 {
    fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o7777
}

fn set_mode(path: PathBuf, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

#[test]
fn patients_data_are_private_and_modes_are_kept() {
    let folder = simulated(600);
    let folder = folder.path();
    good(folder, &format!("fit cohort.csv {ROLES} -o run --report page.html"));
    good(folder, "predict run cohort.csv -o predicted.csv --groups groups.csv");
    good(folder, "report run -o report.html");
    good(folder, "plot run effects -o effects.svg");
    good(folder, &format!("compare cohort.csv {ROLES} -o compare"));
    for directory in ["run", "compare"] {
        assert_eq!(mode(folder.join(directory)), 0o700, "{directory}");
        for name in names(&folder.join(directory)) {
            assert_eq!(mode(folder.join(directory).join(&name)), 0o600, "{directory}/{name}");
        }
    }
    for file in ["page.html", "predicted.csv", "groups.csv", "report.html", "effects.svg"] {
        assert_eq!(mode(folder.join(file)), 0o600, "{file}");
    }
    // What is replaced keeps its mode, narrow or wide.
    for (directory, file, other) in [(0o700, 0o600, 0o640), (0o750, 0o640, 0o600)] {
        set_mode(folder.join("run"), directory);
        set_mode(folder.join("run/effects.csv"), file);
        set_mode(folder.join("run/summary.json"), other);
        set_mode(folder.join("predicted.csv"), other);
        good(folder, &format!("fit cohort.csv {ROLES} -o run --force"));
        good(folder, "predict run cohort.csv -o predicted.csv --force");
        assert_eq!(mode(folder.join("run")), directory);
        assert_eq!(mode(folder.join("run/effects.csv")), file);
        assert_eq!(mode(folder.join("run/summary.json")), other);
        assert_eq!(mode(folder.join("predicted.csv")), other);
    }
}

#[test]
fn links_pipes_and_devices_are_no_outputs() {
    let folder = simulated(600);
    let folder = folder.path();
    good(folder, &format!("fit cohort.csv {ROLES} -o run"));
    fs::write(folder.join("victim"), "mine").expect("a file");
    fs::create_dir(folder.join("empty")).expect("a folder");
    symlink("victim", folder.join("link")).expect("a link");
    symlink("nowhere", folder.join("dangling")).expect("a link");
    symlink("empty", folder.join("folder-link")).expect("a link");
    let make = |args: &str| Command::new("mknod").args(args.split(' ')).current_dir(folder).status();
    assert!(make("pipe p").expect("mknod runs").success());
    // Only root makes devices; who is not root cannot replace those of the system either.
    let device = if make("device c 1 3").expect("mknod runs").success() { "device" } else { "/dev/null" };
    for output in ["link", "dangling", "pipe", device] {
        for force in ["", " --force"] {
            for command in [
                format!("report run -o {output}{force}"),
                format!("predict run cohort.csv -o {output}{force}"),
                format!("predict run cohort.csv -o new.csv --groups {output}{force}"),
                format!("simulate --scenario cure-only --n 50 -o {output}{force}"),
                format!("simulate --scenario cure-only --n 50 -o new.csv --truth {output}{force}"),
                format!("fit cohort.csv {ROLES} -o new --report {output}{force}"),
            ] {
                refused(folder, &command);
            }
        }
        refused(folder, &format!("audit run --uses {output}"));
    }
    for output in ["link", "dangling", "pipe", device, "folder-link", "folder-link/"] {
        refused(folder, &format!("fit cohort.csv {ROLES} -o {output} --force"));
        refused(folder, &format!("compare cohort.csv {ROLES} -o {output} --force"));
        refused(folder, &format!("demo --n 600 -o {output}"));
        refused(folder, &format!("rerun run -o {output}"));
    }
    symlink("victim", folder.join("link.svg")).expect("a link");
    assert!(refused(folder, "plot run effects -o link.svg --force").contains("is a symbolic link"));
    // A link on the way to the output is only a way.
    good(folder, "report run -o folder-link/page.html");
    assert!(folder.join("empty/page.html").is_file());
}

#[test]
fn an_input_is_never_an_output() {
    let folder = simulated(600);
    let folder = folder.path();
    good(folder, &format!("fit cohort.csv {ROLES} -o run"));
    fs::hard_link(folder.join("cohort.csv"), folder.join("hard.csv")).expect("a link");
    fs::create_dir(folder.join("other")).expect("a folder");
    symlink("../cohort.csv", folder.join("other/soft.csv")).expect("a link");
    for (input, output) in [("cohort.csv", "cohort.csv"), ("cohort.csv", "hard.csv"), ("other/soft.csv", "cohort.csv")]
    {
        for command in [
            format!("predict run {input} -o {output} --force"),
            format!("predict run {input} --groups {output} --force"),
            format!("fit {input} {ROLES} -o new --report {output} --force"),
        ] {
            assert!(refused(folder, &command).contains("is an input of this command"), "{command}");
        }
    }
    for file in ["run.dvim", "summary.json", "effects.csv"] {
        assert!(refused(folder, &format!("report run -o run/{file} --force")).contains("is an input"), "{file}");
        assert!(refused(folder, &format!("predict run cohort.csv -o run/{file} --force")).contains("is an input"));
    }
    let from_stdin = command(folder, "predict run - -o cohort.csv --force")
        .stdin(fs::File::open(folder.join("cohort.csv")).expect("a file"))
        .output()
        .expect("dvim runs");
    assert!(String::from_utf8_lossy(&from_stdin.stderr).contains("is an input of this command"));
    assert!(refused(folder, "predict run cohort.csv -o new.csv --groups new.csv").contains("name the same file"));
    assert!(refused(folder, "simulate --scenario cure-only -o new.csv --truth ./new.csv").contains("the same file"));
}

/// A command that waits for its table: a pipe that nobody has written to yet.
struct Waiting {
    child: Option<Child>,
    table: Vec<u8>,
    pipe: PathBuf,
}

/// A test that fails leaves no process behind.
impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Waiting {
    /// Starts `dvim`, or a shell that becomes it, with the table `pipe`.
    fn start(folder: &Path, mut command: Command) -> Waiting {
        let pipe = folder.join("pipe");
        let _ = fs::remove_file(&pipe);
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("dvim starts");
        Waiting { child: Some(child), table: fs::read(folder.join("cohort.csv")).expect("a table"), pipe }
    }

    /// Waits until it opens the table, and lets it read.
    fn go_on(mut self) -> Output {
        fs::write(&self.pipe, &self.table).expect("written");
        fs::remove_file(&self.pipe).expect("removed");
        self.child.take().expect("a process").wait_with_output().expect("it ends")
    }

    /// Waits until it has hidden something beside `name`.
    fn is_at_work(&mut self, name: &str) -> PathBuf {
        let folder = self.pipe.parent().expect("a folder").to_path_buf();
        let prefix = format!(".{name}.dvim-partial-");
        for _ in 0..3000 {
            let child = self.child.as_mut().expect("a process");
            assert!(child.try_wait().expect("a state").is_none(), "it ended early");
            if let Some(found) = names(&folder).into_iter().find(|n| n.starts_with(&prefix)) {
                return folder.join(found);
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("nothing was begun");
    }

    fn signal(&self, name: &str) {
        let process = self.child.as_ref().expect("a process").id().to_string();
        let done = Command::new("kill").args(["-s", name, &process]).status();
        assert!(done.expect("kill runs").success());
    }

    fn ended(mut self) -> (Option<i32>, String) {
        let done = self.child.take().expect("a process").wait_with_output().expect("it ends");
        fs::remove_file(&self.pipe).expect("removed");
        (done.status.code(), String::from_utf8(done.stderr).expect("text"))
    }
}

#[test]
fn what_appears_between_start_and_publishing_is_left_alone() {
    let folder = simulated(400);
    let folder = folder.path();
    for (words, begun) in [(format!("compare pipe {ROLES} -o out"), true), (format!("fit pipe {ROLES} -o out"), false)]
    {
        for force in ["", " --force"] {
            let mut waiting = Waiting::start(folder, command(folder, &format!("{words}{force}")));
            if begun {
                waiting.is_at_work("out");
            } else {
                // It has looked at its output before it opens the table.
                std::thread::sleep(std::time::Duration::from_millis(300));
            }
            fs::create_dir(folder.join("out")).expect("a folder");
            fs::write(folder.join("out/thesis.tex"), "years of work").expect("a file");
            let done = waiting.go_on();
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert_eq!(done.status.code(), Some(2), "{words}{force}: {said}");
            assert_eq!(fs::read_to_string(folder.join("out/thesis.tex")).expect("untouched"), "years of work");
            assert_eq!(names(folder), ["cohort.csv", "out"], "{words}{force}");
            fs::remove_dir_all(folder.join("out")).expect("removed");
        }
    }
    // A file that is put into a comparison while its successor is made.
    good(folder, &format!("compare cohort.csv {ROLES} -o out"));
    let mut waiting = Waiting::start(folder, command(folder, &format!("compare pipe {ROLES} -o out --force")));
    waiting.is_at_work("out");
    fs::write(folder.join("out/thesis.tex"), "years of work").expect("a file");
    let before = everything(&folder.join("out"));
    let done = waiting.go_on();
    assert!(String::from_utf8_lossy(&done.stderr).contains("was changed while dvim was at work"));
    assert_eq!(everything(&folder.join("out")), before);
    assert_eq!(names(folder), ["cohort.csv", "out"]);
}

#[test]
fn planted_temporary_names_are_left_alone() {
    let folder = simulated(600);
    let folder = folder.path();
    good(folder, &format!("fit cohort.csv {ROLES} -o run"));
    fs::write(folder.join("victim"), "mine").expect("a file");
    // A shell that becomes dvim knows its process number before.
    let script = format!(
        "ln -s victim .page.html.dvim-partial-$$; mkdir .new.dvim-partial-$$; echo mine > .new.dvim-partial-$$/thesis
         exec {} \"$@\"",
        env!("CARGO_BIN_EXE_dvim")
    );
    for words in ["report run -o page.html".to_string(), format!("fit cohort.csv {ROLES} -o new")] {
        let done = Command::new("sh")
            .args(["-c", &script, "sh"])
            .args(words.split_whitespace())
            .current_dir(folder)
            .output()
            .expect("a shell");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(fs::read_to_string(folder.join("victim")).expect("untouched"), "mine");
    }
    let theses = names(folder).into_iter().filter(|n| n.starts_with(".new.dvim-partial-"));
    assert_eq!(theses.filter(|n| folder.join(n).join("thesis").is_file()).count(), 2);
}

#[test]
fn a_signal_leaves_nothing_behind() {
    let folder = simulated(400);
    let folder = folder.path();
    let words = format!("compare pipe {ROLES} -o out");
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        // Where the tests themselves run under nohup, or behind a shell, some signals are ignored.
        let mut fresh = command(folder, &words);
        if cfg!(target_os = "linux") {
            fresh = Command::new("env");
            fresh.args(["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_dvim")]);
            fresh.args(words.split_whitespace()).current_dir(folder);
        }
        let mut waiting = Waiting::start(folder, fresh);
        let hidden = waiting.is_at_work("out");
        assert_eq!(mode(hidden), 0o700);
        waiting.signal(signal);
        let (found, said) = waiting.ended();
        assert_eq!(found, Some(code), "{signal}: {said}");
        assert!(said.contains("unfinished files were removed"), "{said}");
        assert_eq!(names(folder), ["cohort.csv"], "{signal}");
    }
    // Under nohup a closed terminal means nothing.
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_dvim")]);
    shell.args(words.split_whitespace()).current_dir(folder);
    let mut waiting = Waiting::start(folder, shell);
    waiting.is_at_work("out");
    waiting.signal("HUP");
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(waiting.go_on().status.success());
    assert_eq!(names(folder), ["cohort.csv", "out"]);
}

#[test]
fn what_a_crash_left_is_named_and_cleaned() {
    let folder = simulated(400);
    let folder = folder.path();
    let words = format!("compare pipe {ROLES} -o out");
    let mut waiting = Waiting::start(folder, command(folder, &words));
    let hidden = waiting.is_at_work("out");
    // While it runs it is in use, and no business of others.
    assert!(!good(folder, "simulate --scenario cure-only --n 50 -o other.csv").contains("dvim-partial"));
    let kept = String::from_utf8(dvim(folder, "clean .").stdout).expect("text");
    assert!(kept.starts_with("kept ") && kept.contains("a running dvim uses it"), "{kept}");
    waiting.signal("KILL");
    waiting.ended();
    assert!(hidden.is_dir());
    let said = good(folder, "simulate --scenario cure-only --n 50 -o other.csv --force");
    let name = hidden.file_name().expect("a name").to_str().expect("text").to_string();
    assert!(said.contains("warning: ") && said.contains(&name) && said.contains("remedy: dvim clean "), "{said}");
    // Other files, hidden or not, are not dvim's.
    let random = "0123456789abcdef";
    let others = [".out.dvim-partial-7", ".dvim-partial-notes", "x.dvim-partial-7-0123456789abcdef", ".profile"];
    for other in others {
        fs::write(folder.join(other), "mine").expect("a file");
    }
    let mine = format!(".mine.dvim-partial-7-{random}");
    fs::create_dir(folder.join(&mine)).expect("a folder");
    fs::write(folder.join(&mine).join("effects.csv"), "half").expect("a file");
    fs::write(folder.join(&mine).join("thesis.tex"), "years of work").expect("a file");
    symlink("cohort.csv", folder.join(format!(".link.dvim-partial-7-{random}"))).expect("a link");
    fs::write(folder.join(format!(".page.html.dvim-partial-7-{random}")), "half").expect("a file");
    // A comparison that was killed while it wrote its list. Before, `clean` left it, for the list is on no list.
    let listing = format!(".compared.dvim-partial-7-{random}");
    fs::create_dir(folder.join(&listing)).expect("a folder");
    fs::write(folder.join(&listing).join("effects.csv"), "id").expect("a file");
    fs::write(folder.join(&listing).join("manifest.json"), "{\n  \"made").expect("a file");
    // A run that was moved away, as where names cannot be exchanged in one step.
    good(folder, &format!("fit cohort.csv {ROLES} -o run"));
    let run = everything(&folder.join("run")).into_values().collect::<Vec<_>>();
    fs::rename(folder.join("run"), folder.join(format!(".run.dvim-old-7-{random}"))).expect("moved");
    let done = String::from_utf8(dvim(folder, "clean .").stdout).expect("text");
    assert!(done.contains(&format!("removed ./{name}\n")), "{done}");
    assert!(done.contains(&format!("removed ./.page.html.dvim-partial-7-{random}\n")), "{done}");
    assert!(done.contains(&format!("removed ./{listing}\n")), "{done}");
    assert!(done.contains(&format!("kept ./{mine}: ")) && done.contains("`thesis.tex`"), "{done}");
    assert!(done.contains(&format!("put back ./.run.dvim-old-7-{random} as ./run\n")), "{done}");
    assert_eq!(everything(&folder.join("run")).into_values().collect::<Vec<_>>(), run);
    assert!(!hidden.exists() && folder.join(&mine).join("thesis.tex").is_file());
    assert!(others.iter().all(|o| folder.join(o).is_file()));
    assert!(folder.join(format!(".link.dvim-partial-7-{random}")).is_symlink());
    // A whole run that waits for its removal is removed; one that somebody edited is not.
    for edited in [false, true] {
        let old = folder.join(format!(".run.dvim-partial-8-{random}"));
        Command::new("cp").arg("-r").args([folder.join("run"), old.clone()]).status().expect("copied");
        if edited {
            fs::write(old.join("effects.csv"), "mine").expect("edited");
        }
        dvim(folder, "clean .");
        assert_eq!(old.exists(), edited);
    }
    assert!(refused(folder, "clean nowhere").contains("is not a directory"));
}

/// Runs a command that must end soon.
fn soon(folder: &Path, words: &str) -> (Option<i32>, String) {
    let mut child = command(folder, words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("dvim starts");
    for _ in 0..2000 {
        if child.try_wait().expect("a state").is_some() {
            let done = child.wait_with_output().expect("it ends");
            return (done.status.code(), String::from_utf8(done.stderr).expect("text"));
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child.kill().expect("killed");
    let _ = child.wait();
    panic!("dvim {words} hangs");
}

#[test]
fn a_run_from_a_stranger_reads_nothing_else() {
    let folder = simulated(400);
    let folder = folder.path();
    good(folder, &format!("fit cohort.csv {ROLES} -o run"));
    fs::write(folder.join("secret"), "mine").expect("a file");
    let run = folder.join("run");
    let summary = fs::read_to_string(run.join("summary.json")).expect("a file");
    let openers = ["match run 17", "audit run", "report run -o page.html", "predict run cohort.csv"];
    let absolute = folder.join("secret").display().to_string();
    for name in ["/dev/zero", "../secret", &absolute, "..", ".", "", "a/../../secret", "./effects.csv", "a\\\\b"] {
        let hostile = summary.replacen("\"weights.csv\": ", &format!("\"{name}\": "), 1);
        assert_ne!(hostile, summary);
        fs::write(run.join("summary.json"), hostile).expect("written");
        for opener in openers {
            let (code, said) = soon(folder, opener);
            assert_eq!(code, Some(2), "{name}: {said}");
            assert!(said.contains("which is no file of the run"), "{name}: {said}");
        }
    }
    // The table that a summary names.
    for name in ["/dev/zero", "../secret", &absolute] {
        let hostile = summary.replacen("\"file\": \"cohort.csv\"", &format!("\"file\": \"{name}\""), 1);
        assert_ne!(hostile, summary);
        fs::write(run.join("summary.json"), hostile).expect("written");
        let (code, said) = soon(folder, "rerun run");
        assert!(code == Some(2) && said.contains("no plain name"), "{name}: {said}");
    }
    fs::write(run.join("summary.json"), &summary).expect("restored");
    // Files that are none: a pipe, a link to an endless device, to a secret, or something of absurd size.
    for file in ["weights.csv", "run.dvim", "summary.json"] {
        let whole = fs::read(run.join(file)).expect("a file");
        let replace = |make: &dyn Fn(&Path)| {
            fs::remove_file(run.join(file)).expect("removed");
            make(&run.join(file));
            for opener in openers {
                let (code, said) = soon(folder, opener);
                assert_eq!(code, Some(2), "{file}, {opener}: {said}");
            }
        };
        replace(&|p| assert!(Command::new("mkfifo").arg(p).status().expect("mkfifo runs").success()));
        replace(&|p| symlink("/dev/zero", p).expect("a link"));
        replace(&|p| symlink("../secret", p).expect("a link"));
        replace(&|p| fs::File::create(p).and_then(|f| f.set_len(4 << 40)).expect("a sparse file"));
        fs::remove_file(run.join(file)).expect("removed");
        fs::write(run.join(file), whole).expect("restored");
    }
    assert_eq!(soon(folder, "match run 17").0, Some(0));
    let (code, said) = soon(folder, "rerun /dev/zero");
    assert!(code == Some(2) && said.contains("not a regular file"), "{said}");
}

#[test]
fn a_study_writes_again_only_what_it_wrote() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let study = "study weights --reps 1 --n 1000 -o study";
    // Results of another program.
    for text in ["{\"accuracy\": 0.9}", "{\"accuracy\": 0.9}\n", "{"] {
        fs::create_dir(folder.join("study")).expect("a folder");
        fs::write(folder.join("study/results.jsonl"), text).expect("a file");
        fs::write(folder.join("study/weights.csv"), "mine").expect("a file");
        refused(folder, study);
        fs::remove_dir_all(folder.join("study")).expect("removed");
    }
    good(folder, study);
    good(folder, study);
    let page = folder.join("study/study.html");
    let before = fs::read_to_string(&page).expect("a page");
    fs::write(&page, format!("{before}<p>my notes</p>")).expect("edited");
    assert!(refused(folder, study).contains("`study.html`"));
    fs::write(&page, &before).expect("restored");
    fs::write(folder.join("study/main.csv"), "mine").expect("a file");
    fs::write(folder.join("study/notes.txt"), "mine").expect("a file");
    assert!(refused(folder, study).contains("`main.csv`"));
    fs::remove_file(folder.join("study/main.csv")).expect("removed");
    good(folder, study);
    assert_eq!(fs::read_to_string(folder.join("study/notes.txt")).expect("untouched"), "mine");
    // After a crash between two files either digest is right.
    let manifest = fs::read_to_string(folder.join("study/manifest.json")).expect("a manifest");
    let pending = manifest.replacen("\"files\"", "\"files\": {},\n  \"pending\"", 1);
    fs::write(folder.join("study/manifest.json"), pending).expect("written");
    good(folder, study);
    assert_eq!(fs::read_to_string(folder.join("study/manifest.json")).expect("a manifest"), manifest);
}

#[test]
fn an_error_of_the_system_names_its_file() {
    let folder = simulated(600);
    let folder = folder.path();
    good(folder, &format!("fit cohort.csv {ROLES} -o run"));
    // Files of at most 4 kB.
    let limited = |words: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_dvim")]);
        shell.args(words.split_whitespace()).current_dir(folder).stdin(Stdio::null()).output().expect("a shell")
    };
    let before = everything(folder);
    for (words, file) in [
        (format!("fit cohort.csv {ROLES} -o new"), "new/"),
        (format!("fit cohort.csv {ROLES} -o run --force"), "run/"),
        (format!("compare cohort.csv {ROLES} -o new"), "new/effects.csv"),
        ("demo --n 600 -o new".into(), "new/cohort.csv"),
        ("report run -o page.html".into(), "page.html"),
        ("predict run cohort.csv -o new.csv".into(), "new.csv"),
        ("simulate --scenario cure-only --n 600 -o new.csv".into(), "new.csv"),
        ("rerun run -o new".into(), "new/"),
    ] {
        let done = limited(&words);
        let said = String::from_utf8(done.stderr).expect("text");
        assert_eq!(done.status.code(), Some(1), "{words}: {said}");
        assert!(
            said.contains(&format!("error: `{file}")) && said.contains("` could not be written: "),
            "{words}: {said}"
        );
        assert_eq!(everything(folder), before, "{words}");
    }
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let done = command(folder, "predict run cohort.csv").stdout(full).output().expect("dvim runs");
    let said = String::from_utf8(done.stderr).expect("text");
    assert!(done.status.code() == Some(1) && said.contains("`standard output` could not be written: "), "{said}");
    let said = dvim(folder, "report run -o nowhere/page.html");
    assert_eq!(said.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&said.stderr).contains("`nowhere` is not a folder that exists"));
}

/// Nothing but the module that knows these rules makes, renames or removes files.
#[test]
fn files_are_made_and_removed_in_one_place() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates");
    let words = ["fs::write", "fs::remove", "fs::rename", "fs::create", "fs::copy", "fs::hard_link", "File::create"];
    let mut n_allowed = 0;
    for (path, (_, bytes)) in everything_named(crates, "rs") {
        let name = path.strip_prefix(crates).expect("a crate").to_str().expect("text").to_string();
        // What the fuzzers write is damage on purpose, and no user runs it.
        if !name.contains("/src/") || name.starts_with("dvim-fuzz/") {
            continue;
        }
        let source = String::from_utf8(bytes).expect("text");
        let source = source.split("#[cfg(test)]").next().expect("a part");
        let is_home = name.starts_with("dvim-io/src/atomic") || name == "dvim-io/src/journal.rs";
        for word in words.iter().chain(&["OpenOptions::new", "DirBuilder::new"]).filter(|w| source.contains(**w)) {
            // To read with flags needs the same type.
            let is_reader = name == "dvim-io/src/regular.rs" && *word == "OpenOptions::new";
            assert!(is_home || is_reader, "{name} has {word}; `dvim_io::atomic` does that with care");
            n_allowed += 1;
        }
    }
    assert!(n_allowed > 5, "the words are those that the module uses");
}

/// The files under a folder whose names end in `.ending`.
fn everything_named(folder: &Path, ending: &str) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut all = everything(folder);
    all.retain(|path, _| path.extension().is_some_and(|e| e == ending));
    all
}
