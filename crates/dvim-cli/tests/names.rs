//! What things are called, from labels to the last page: kept in the run, used by every later command. The sentences of
//! a fit are in `sentences.txt`, with their numbers filled in; `DVIM_BLESS=1 cargo test -p dvim-cli --test names` writes
//! them anew, for a person to read aloud.

use assert_cmd::Command;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const SENTENCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sentences.txt");

fn dvim(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let out = Command::cargo_bin("dvim").unwrap().current_dir(folder).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap_or(-1), text(out.stdout), text(out.stderr))
}

fn done(folder: &Path, args: &[&str]) -> String {
    let (code, stdout, stderr) = dvim(folder, args);
    assert_eq!(code, 0, "dvim {args:?}: {stderr}");
    stdout
}

const ROLES: [&str; 6] = ["--time", "time", "--treatment", "arm", "--horizon", "730"];

/// A cohort with a category, an indicator, a year and causes: 0 censored, 1 relapse, 2 death.
fn cohort(folder: &Path) {
    let mut out = String::from("id,time,event,cause,CNSR,arm,age,sex,grade,year,nodes\n");
    for i in 0..400u32 {
        // A draw for each column: splitmix64.
        let noise = |column: u32| {
            let mut z = ((u64::from(i) << 32) | u64::from(column)).wrapping_add(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) % 9973) as u32
        };
        let (arm, time) = (u32::from(noise(2741) % 2 == 0), 20 + noise(7919) % 1100);
        let late = time > 700;
        let cause = if late || noise(6133) % 4 == 0 { 0 } else { 1 + u32::from(noise(1543) % 4 == 0) };
        let event = u32::from(cause > 0);
        let grade = ["high", "low", "medium"][(noise(1699) % 3) as usize];
        let (sex, age, year) = (["f", "m"][(noise(887) % 2) as usize], 30 + noise(3571) % 41, 1985 + noise(311) % 12);
        let nodes = [1, 1, 1, 2, 4, 9][(noise(409) % 6) as usize];
        let line = format!("{i},{time},{event},{cause},{},{arm},{age},{sex},{grade},{year},{nodes}", 1 - event);
        let _ = writeln!(out, "{line}");
    }
    fs::write(folder.join("cohort.csv"), out).unwrap();
    fs::write(
        folder.join("labels.toml"),
        "time_unit = \"days\"\ntreated = \"chemotherapy + radiation\"\ncontrol = \"radiation alone\"\n\
         event = \"relapse\"\npopulation = \"Adults with early cancer\"\n[covariates]\nage = \"Age [years]\"\n\
         [covariates.grade]\nlabel = \"Tumour grade\"\nlevels = [\"low\", [\"medium\", \"middle\"], \"high\"]\n",
    )
    .unwrap();
}

fn fit(folder: &Path, run: &str, flags: &[&str]) -> String {
    let mut args = vec!["fit", "cohort.csv", "-o", run];
    args.extend(ROLES);
    args.extend(flags);
    done(folder, &args)
}

const PLAIN: [&str; 4] = ["--event", "event", "--drop", "cause,CNSR"];
const CAUSES: [&str; 6] = ["--event", "cause", "--cause", "1", "--drop", "event,CNSR"];

#[test]
fn sentences_are_these() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    cohort(folder);
    let mut found = String::new();
    let cases: [(&str, Vec<&str>); 4] = [
        ("nothing is named", PLAIN.to_vec()),
        ("labels", [&PLAIN[..], &["--labels", "labels.toml"]].concat()),
        ("events compete", [&CAUSES[..], &["--labels", "labels.toml"]].concat()),
        ("cure is meant", [&PLAIN[..], &["--labels", "labels.toml", "--cure-word", "cured"]].concat()),
    ];
    for (k, (what, flags)) in cases.iter().enumerate() {
        let run = format!("run{k}");
        let text = fit(folder, &run, flags);
        // The sentences, not the tables: lines that end like one.
        let sentences: Vec<&str> =
            text.lines().map(str::trim).filter(|l| l.ends_with('.') || l.contains(": ")).collect();
        let _ = writeln!(found, "## {what}\n\n{}\n", sentences.join("\n"));
        let shown = done(folder, &["match", &run, "17"]);
        let _ = writeln!(found, "{}\n", shown.lines().take(3).collect::<Vec<_>>().join("\n"));
    }
    // What a new user did not understand stays away.
    for riddle in
        ["treatment cures", "one-step", "by chance 0", "dealt anew", "one in twenty of the uncured", "over deals"]
    {
        assert!(!found.contains(riddle), "{riddle}");
    }
    if std::env::var_os("DVIM_BLESS").is_some() {
        fs::write(SENTENCES, &found).unwrap();
    }
    let golden = fs::read_to_string(SENTENCES).unwrap();
    assert!(golden == found, "the sentences changed; read them with DVIM_BLESS=1\n{found}");
}

#[test]
fn names_are_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    cohort(folder);
    let flags = [&PLAIN[..], &["--labels", "labels.toml", "--control-name", "radiation", "--by", "grade"]].concat();
    let said = fit(folder, "run", &flags);
    let question = "Free of relapse at 2 years: chemotherapy + radiation against radiation";
    assert!(said.starts_with(question), "a flag counts more than the file: {said}");
    fs::remove_file(folder.join("labels.toml")).unwrap();
    fs::remove_file(folder.join("cohort.csv")).unwrap();
    done(folder, &["report", "run", "-o", "report.html"]);
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    for words in
        [&format!("<h1>{question}</h1>"), "Tumour grade", "Age, years", "Adults with early cancer", "interaction: p"]
    {
        assert!(page.contains(words), "{words}");
    }
    let at = |word: &str| page.find(&format!("\u{2003}{word}<")).unwrap_or_else(|| panic!("no row {word}"));
    assert!(at("low") < at("middle") && at("middle") < at("high"), "levels in the order of the labels");
    done(folder, &["plot", "run", "curves", "-o", "curves.svg"]);
    let figure = fs::read_to_string(folder.join("curves.svg")).unwrap();
    assert!(figure.contains("Chemotherapy + radiation") && figure.contains("days"), "{figure}");
    let matched = done(folder, &["match", "run", "17"]);
    assert!(matched.contains("chemotherapy + radiation") && matched.contains("Age, years"), "{matched}");
    assert!(matched.lines().count() <= 45, "a screenful: {} lines", matched.lines().count());
    assert!(done(folder, &["match", "run", "17", "--all"]).lines().count() > 100);
    let audit = done(folder, &["audit", "run", "--by", "sex"]);
    assert!(audit.contains("the chemotherapy + radiation arm") && audit.contains("interaction with sex"), "{audit}");
}

#[test]
fn labels_change_no_number() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    cohort(folder);
    fit(folder, "plain", &PLAIN);
    fit(folder, "named", &[&PLAIN[..], &["--labels", "labels.toml"]].concat());
    for file in ["effects.csv", "weights.csv", "run.dvim"] {
        assert_eq!(
            fs::read(folder.join("plain").join(file)).unwrap(),
            fs::read(folder.join("named").join(file)).unwrap()
        );
    }
    let (code, stdout, _) = dvim(folder, &["rerun", "named", "cohort.csv"]);
    assert!(code == 0 && stdout.starts_with("identical"), "{stdout}");
}

#[test]
fn wrong_labels_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    cohort(folder);
    fs::write(folder.join("bad.toml"), "treatd = \"x\"\n").unwrap();
    let with = |file: &'static str| {
        let mut args = vec!["fit", "cohort.csv", "-o", "run", "--labels", file];
        args.extend(ROLES.iter().chain(&PLAIN));
        dvim(folder, &args)
    };
    let (code, _, stderr) = with("bad.toml");
    assert!(code == 2 && stderr.contains("treatd") && stderr.contains("remedy"), "{stderr}");
    let (code, _, stderr) = with("nowhere.toml");
    assert!(code == 2 && stderr.contains("nowhere.toml"), "{stderr}");
    assert!(!folder.join("run").exists());
}

/// `CNSR` of CDISC ADTTE: 0 is an event. The same patients give the same numbers.
#[test]
fn an_indicator_of_censoring_is_an_event_turned_round() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    cohort(folder);
    fit(folder, "event", &PLAIN);
    fit(folder, "censor", &["--censor", "CNSR", "--drop", "cause,event"]);
    for file in ["effects.csv", "weights.csv", "run.dvim"] {
        assert_eq!(
            fs::read(folder.join("event").join(file)).unwrap(),
            fs::read(folder.join("censor").join(file)).unwrap()
        );
    }
    let mut args = vec!["check", "cohort.csv", "--event", "CNSR", "--drop", "cause,event"];
    args.extend(ROLES);
    let (_, _, stderr) = dvim(folder, &args);
    assert!(stderr.contains("--censor CNSR"), "an inverted indicator is noticed: {stderr}");
    let (code, stdout, _) = dvim(folder, &["rerun", "censor", "cohort.csv"]);
    assert!(code == 0 && stdout.starts_with("identical"), "{stdout}");
}

#[test]
fn bins_are_as_many_as_asked_for_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    cohort(folder);
    let json = |by: &str, run: &str| {
        fit(folder, run, &[&PLAIN[..], &["--by", by]].concat());
        let text = fs::read_to_string(folder.join(run).join("summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
        let of = |a: &&serde_json::Value| {
            a["estimand"] == "cure_effect" && a["population"].as_str().unwrap().starts_with("nodes")
        };
        summary["average_effects"].as_array().unwrap().iter().filter(of).count()
    };
    assert_eq!(json("nodes:3", "three"), 3, "half of the patients have 1 node");
    let mut args = vec!["fit", "cohort.csv", "-o", "many", "--by", "nodes:6"];
    args.extend(ROLES.iter().chain(&PLAIN));
    let (code, _, stderr) = dvim(folder, &args);
    assert!(code == 2 && stderr.contains("6 bins were asked for, and 4 can be made"), "{stderr}");
}

#[test]
fn tables_leave_the_house() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    cohort(folder);
    fit(folder, "run", &[&PLAIN[..], &["--labels", "labels.toml", "--by", "grade", "--by", "sex"]].concat());
    for kind in ["averages", "baseline", "subgroups", "balance"] {
        for ending in ["docx", "xlsx", "tex", "html", "csv"] {
            let file = format!("{kind}.{ending}");
            done(folder, &["table", "run", kind, "-o", &file]);
            let bytes = fs::read(folder.join(&file)).unwrap();
            let is_zip = bytes.starts_with(b"PK\x03\x04");
            assert_eq!(is_zip, ["docx", "xlsx"].contains(&ending), "{file}");
            let text = String::from_utf8_lossy(&bytes);
            let names_arms = text.contains("chemotherapy") || text.contains("Chemotherapy");
            assert!(names_arms || kind == "balance" || file == "subgroups.csv", "{file}");
            assert!(text.contains("Tumour grade") || kind == "averages", "{file}");
        }
    }
    let baseline = fs::read_to_string(folder.join("baseline.csv")).unwrap();
    let rows: Vec<&str> = baseline.lines().collect();
    assert!(rows[0].contains("Chemotherapy + radiation (n = "), "{baseline}");
    let at =
        |start: &str| rows.iter().position(|r| r.starts_with(start)).unwrap_or_else(|| panic!("{start}: {baseline}"));
    assert!(at("Tumour grade,low") < at("Tumour grade,middle") && at("Tumour grade,middle") < at("Tumour grade,high"));
    assert!(rows[at(",year")].contains("199") && !rows[at(",year")].contains("1,99"), "a year has no thousands");
    let (code, _, stderr) = dvim(folder, &["table", "run", "baseline", "-o", "table.pdf"]);
    assert!(code == 2 && stderr.contains(".docx"), "{stderr}");
}
