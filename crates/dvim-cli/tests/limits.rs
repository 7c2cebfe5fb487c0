//! What a hostile day may ask: too many threads, too little memory, names that command a terminal or a spreadsheet,
//! files that are cut off. Refused or made harmless, and said in few words.
#![cfg(unix)]

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn dvim(folder: &Path, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dvim"));
    command.args(words.split_whitespace()).current_dir(folder).stdin(Stdio::null()).output().expect("dvim runs")
}

fn good(folder: &Path, words: &str) -> Output {
    let done = dvim(folder, words);
    assert!(done.status.success(), "dvim {words}: {}", String::from_utf8_lossy(&done.stderr));
    done
}

/// The command is refused with a rule and a remedy.
fn refused(folder: &Path, words: &str) -> String {
    let done = dvim(folder, words);
    let said = String::from_utf8(done.stderr).expect("text");
    assert_eq!(done.status.code(), Some(2), "dvim {words} must be refused: {said}");
    for part in ["error: ", "\n  rule:   ", "\n  remedy: "] {
        assert!(said.contains(part), "dvim {words}: {said}");
    }
    said
}

const ROLES: &str = "--time time --event event --treatment treatment --horizon 800 --estimator paper -k 20";

fn simulated(n: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    good(folder.path(), &format!("simulate --scenario both-overlap --n {n} --seed 4 -o cohort.csv"));
    folder
}

/// Before, 5,000 threads were started, and the machine went down.
#[test]
fn threads_are_bounded() {
    let folder = simulated(300);
    let folder = folder.path();
    for command in ["check cohort.csv", "fit cohort.csv -o run"] {
        let said = refused(folder, &format!("{command} {ROLES} --threads 100000"));
        assert!(said.contains("--threads is 100,000") && said.contains("at most"), "{said}");
    }
    assert!(!folder.join("run").exists());
    good(folder, &format!("fit cohort.csv {ROLES} --threads 64 -o run"));
}

/// A table whose ids, names and levels are `nasty`, of one letter each so that they stay apart.
fn nasty_table(nasty: &str) -> String {
    let quoted = |text: String| format!("\"{}\"", text.replace('"', "\"\""));
    let mut out = format!("id,time,event,arm,{},{}\n", quoted(format!("{nasty}x")), quoted(format!("{nasty}level")));
    for i in 0..240 {
        let time = 1.0 + f64::from((i * 37) % 97);
        let arm = if i % 2 == 0 { format!("{nasty}new") } else { "old".into() };
        let level = if i % 3 == 0 { format!("{nasty}high") } else { "low".into() };
        let x = f64::from((i * 53) % 101) / 7.0;
        let event = u8::from((i * 29) % 11 < 7);
        let row = [quoted(format!("{nasty}{i}")), time.to_string(), event.to_string(), quoted(arm), x.to_string()];
        let _ = writeln!(out, "{},{}", row.join(","), quoted(level));
    }
    out
}

/// Escapes, bells, C1 controls and turns of direction in ids, names and levels never reach the terminal.
#[test]
fn names_and_ids_cannot_command_a_terminal() {
    for nasty in ["\u{1b}[2J\u{1b}]0;owned\u{7}", "\u{9b}31m\u{202e}", "\u{8}\u{8}\u{7f}"] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        fs::write(folder.join("t.csv"), nasty_table(nasty)).expect("a table");
        let roles = ["--time", "time", "--event", "event", "--treatment", "arm", "--horizon", "80", "--control", "old"];
        let id = format!("{nasty}17");
        let (bins, level) = (format!("{nasty}x:4"), format!("{nasty}level"));
        let commands: [(i32, Vec<&str>); 12] = [
            (0, [&["check", "t.csv"], &roles[..]].concat()),
            (0, [&["fit", "t.csv", "-o", "run"], &roles[..]].concat()),
            (0, [&["fit", "t.csv", "-o", "exact", "--exact", &level, "--by", &bins], &roles[..]].concat()),
            (0, [&["fit", "t.csv", "-o", "paper", "--estimator", "paper", "-k", "20"], &roles[..]].concat()),
            (0, vec!["match", "run", &id]),
            (2, vec!["match", "run", "nobody"]),
            (0, vec!["audit", "run", "--by", &level]),
            (2, vec!["audit", "run", "--by", "nothing"]),
            (0, vec!["curves", "run", "--patients", &id, "-o", "curves.csv"]),
            (0, [&["compare", "t.csv", "-o", "compared", "-k", "20"], &roles[..]].concat()),
            (2, [&["fit", "t.csv", "-o", "no", "--exact", "absent"], &roles[..]].concat()),
            (2, [&["fit", "t.csv", "-o", "no", "--id", &level], &roles[..]].concat()),
        ];
        for (code, words) in commands {
            let done = Command::new(env!("CARGO_BIN_EXE_dvim"))
                .args(&words)
                .current_dir(folder)
                .stdin(Stdio::null())
                .output()
                .expect("dvim runs");
            for text in [&done.stdout, &done.stderr] {
                let text = String::from_utf8(text.clone()).expect("text");
                let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
                assert!(!text.contains(bad), "{words:?} prints {:?}", text.lines().find(|l| l.contains(bad)));
            }
            assert_eq!(done.status.code(), Some(code), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        }
    }
}

/// A spreadsheet takes no cell of ours for a formula, and everything else stays as it was.
#[test]
fn spreadsheets_get_no_formula() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let table = nasty_table("=cmd|' /C calc'!A");
    // Numbers and single signs are left alone.
    let table = table.replace("\"=cmd|' /C calc'!A18\"", "-18").replace("\"=cmd|' /C calc'!A20\"", "+");
    fs::write(folder.join("t.csv"), table).expect("a table");
    let roles = "--time time --event event --treatment arm --horizon 80 --control old";
    good(folder, &format!("fit t.csv -o run {roles}"));
    good(folder, "predict run t.csv -o new.csv --groups groups.csv");
    good(folder, "curves run --patients all -o curves.csv");
    for file in ["run/effects.csv", "run/weights.csv", "new.csv", "groups.csv", "curves.csv"] {
        let text = fs::read_to_string(folder.join(file)).expect("a file");
        assert!(text.contains("\"'=cmd|' /C calc'!A"), "{file}");
        for line in text.lines() {
            let mut cells = line.split(',').map(|c| c.trim_matches('"'));
            let bad = cells.find(|c| c.starts_with(['=', '+', '-', '@']) && c.len() > 1 && c.parse::<f64>().is_err());
            assert_eq!(bad, None, "{file}: {line}");
        }
    }
    let effects = fs::read_to_string(folder.join("run/effects.csv")).expect("a file");
    assert!(effects.contains("\n-18,") && effects.contains("\n+,"));
}

/// Before, the last value of a file that was cut off was read as if it were whole, without a word.
#[test]
fn a_file_that_may_be_cut_off_is_said() {
    let folder = simulated(300);
    let folder = folder.path();
    let whole = fs::read_to_string(folder.join("cohort.csv")).expect("a table");
    fs::write(folder.join("cut.csv"), &whole[..whole.len() - 3]).expect("a table");
    fs::write(folder.join("windows.csv"), whole.replace('\n', "\r\n")).expect("a table");
    let words = "warning: the last line of the file has no line end (row 300)";
    for command in ["check", "fit -o run", "compare -o compared"] {
        let done = good(folder, &format!("{command} cut.csv {ROLES}"));
        let said = String::from_utf8(done.stderr).expect("text");
        assert_eq!(said.matches(words).count(), 1, "{command}: {said}");
    }
    assert!(fs::read_to_string(folder.join("run/summary.json")).expect("a file").contains("no_line_end"));
    let said = good(folder, "predict run cut.csv -o new.csv").stderr;
    assert!(String::from_utf8(said).expect("text").contains(words));
    for file in ["cohort.csv", "windows.csv"] {
        let said = good(folder, &format!("check {file} {ROLES}")).stderr;
        assert!(!String::from_utf8(said).expect("text").contains("line end"), "{file}");
    }
}

/// Before, 100,000 constant columns printed 14.7 MB, and a name of a megabyte was printed whole, several times.
#[test]
fn messages_are_short() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut constant = String::from("time,event,arm,x");
    (0..100_000).for_each(|i| constant += &format!(",c{i}"));
    for i in 0..60 {
        constant += &format!("\n{},{},{},{}", 1 + (i * 37) % 97, u8::from(i % 3 > 0), i % 2, (i * 53) % 101);
        constant += &",1".repeat(100_000);
    }
    fs::write(folder.join("constant.csv"), constant + "\n").expect("a table");
    let name = "n".repeat(1 << 20);
    let mut long = format!("time,event,arm,x,{name}a,{name}b,{name}c\n");
    for i in 0..240 {
        let (time, event) = (1 + (i * 37) % 97, u8::from(i % 3 > 0));
        long += &format!("{time},{event},{},{},1,{},NA\n", i % 2, (i * 53) % 101, "v".repeat(1 + i % 5) + &name[..i]);
    }
    fs::write(folder.join("long.csv"), long).expect("a table");
    let roles = "--time time --event event --treatment arm --horizon 80";
    for command in [
        format!("check constant.csv {roles}"),
        format!("fit constant.csv {roles} -o run"),
        format!("check long.csv {roles}"),
        format!("fit long.csv {roles} -o run"),
        format!("fit long.csv {roles} --exact {name}A -o run").replace(&name, &name[..100_000]),
    ] {
        let done = dvim(folder, &command);
        let said = done.stdout.len() + done.stderr.len();
        let begin: String = command.chars().take(60).collect();
        assert!(done.status.code() == Some(2), "dvim {begin}: {:?}", done.status);
        assert!(said < 60_000, "dvim {begin} prints {said} bytes");
    }
}

/// Whatever little memory there is, the command refuses, or says that it ran out; it never dies of a signal.
#[test]
#[cfg(target_os = "linux")]
fn little_address_space_is_said() {
    let folder = simulated(700);
    let folder = folder.path();
    let fit = format!("fit cohort.csv {ROLES} --threads 2 -o run --force");
    let adjusted =
        "fit cohort.csv --time time --event event --treatment treatment --horizon 800 --threads 2 -o run --force";
    let (mut refused, mut done) = (0, 0);
    for kilobytes in [20, 30, 40, 60, 100, 200, 400, 4_000].map(|m| 1_000 * m) {
        // Where not even the program can be laid out, the system ends it before its first line.
        let version = format!("ulimit -c 0; ulimit -v {kilobytes}; exec \"$0\" --version");
        let started = Command::new("sh").args(["-c", &version, env!("CARGO_BIN_EXE_dvim")]).output().expect("a shell");
        if !started.status.success() {
            assert!(kilobytes <= 40_000, "dvim --version needs more than {kilobytes} kB");
            continue;
        }
        for command in [&fit, adjusted] {
            let shell = format!("ulimit -c 0; ulimit -v {kilobytes}; exec \"$0\" {command}");
            let out = Command::new("sh")
                .args(["-c", &shell, env!("CARGO_BIN_EXE_dvim")])
                .current_dir(folder)
                .output()
                .expect("a shell");
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            match out.status.code() {
                Some(0) => done += 1,
                Some(1 | 2) => {
                    assert!(said.contains("error: ") || said.contains("cannot"), "{kilobytes} kB: {said}");
                    refused += 1;
                }
                code => panic!("{kilobytes} kB: {code:?} {:?}: {said}", out.status),
            }
        }
    }
    assert!(refused > 0 && done > 0, "{refused} refused, {done} done");
}

/// A table that no look at its first bytes can judge is judged when it has been read.
#[test]
#[cfg(target_os = "linux")]
fn too_little_memory_is_said_before_the_work() {
    let folder = simulated(60_000);
    let folder = folder.path();
    let fit = "fit - --time time --event event --treatment treatment --horizon 800 --threads 2 -o run";
    let shell = format!("ulimit -v 400000; exec \"$0\" {fit} < cohort.csv");
    let done = Command::new("sh")
        .args(["-c", &shell, env!("CARGO_BIN_EXE_dvim")])
        .current_dir(folder)
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("about 60,000 rows") && said.contains("rows would fit"), "{said}");
    assert!(!folder.join("run").exists());
}

/// Last bits may differ between processors: to nine digits the run is the same, and beyond that it is not.
#[test]
fn a_rerun_compares_to_the_precision_that_is_promised() {
    let folder = simulated(600);
    let folder = folder.path();
    good(folder, &format!("fit cohort.csv {ROLES} -o run"));
    let stdout = |code: i32| {
        let done = dvim(folder, "rerun run");
        assert_eq!(done.status.code(), Some(code), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).expect("text")
    };
    assert!(stdout(0).starts_with("identical: "));
    let path = folder.join("run/effects.csv");
    let original = fs::read_to_string(&path).expect("a file");
    let line = original.lines().nth(5).expect("a row");
    let value: f64 = line.split(',').nth(2).expect("a cell").parse().expect("a number");
    let mut digest = sha256(&path);
    for (change, code, words) in
        [(3e-14, 0, "the same to nine digits, not to the last bit"), (1e-6, 1, "not identical: effects.csv")]
    {
        let changed = line.replacen(&format!(",{value},"), &format!(",{},", value + change), 1);
        assert_ne!(changed, line);
        fs::write(&path, original.replacen(line, &changed, 1)).expect("edited");
        // The summary of a run that another processor made lists what that one wrote.
        let new = sha256(&path);
        let summary = fs::read_to_string(folder.join("run/summary.json")).expect("a file");
        fs::write(folder.join("run/summary.json"), summary.replace(&digest, &new)).expect("edited");
        digest = new;
        let said = stdout(code);
        assert!(said.starts_with(words), "{change}: {said}");
    }
}

fn sha256(path: &Path) -> String {
    let done = Command::new("sha256sum").arg(path).output().expect("sha256sum");
    String::from_utf8_lossy(&done.stdout)[..64].to_string()
}
