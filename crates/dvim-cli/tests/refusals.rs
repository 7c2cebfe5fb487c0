//! What dvim says to bad input: the exact words, for each way to go wrong. The words are in `refusals.txt` and
//! `warnings.txt`; `DVIM_BLESS=1 cargo test -p dvim-cli --test refusals` writes them anew, for a person to read in the
//! diff.

use dvim::internal::error::ProblemKind;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/refusals.txt");
const WARNINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/warnings.txt");
const ROLES: &str = "--time time --event event --treatment arm --horizon 100 -k 3";

/// A table that is in order: 40 patients, a number, two levels, a category.
struct Cells(Vec<Vec<String>>);

impl Cells {
    fn good() -> Cells {
        let mut rows = vec![["id", "time", "event", "arm", "age", "sex", "grade"].map(String::from).to_vec()];
        for i in 0..40u32 {
            // A stride of its own for each column, so that none follows another.
            let noise = |stride: u32| (i * stride + 13) % 97;
            rows.push(vec![
                format!("{}", 100 + i),
                format!("{}", 5 + (noise(7919) * 3) % 130),
                format!("{}", u32::from(noise(6133) % 3 != 0)),
                format!("{}", i % 2),
                format!("{}", 30 + noise(3571) % 41),
                ["f", "m"][(noise(2741) % 2) as usize].into(),
                ["I", "II", "III"][(noise(1699) % 3) as usize].into(),
            ]);
        }
        Cells(rows)
    }

    fn column(&self, name: &str) -> usize {
        self.0[0].iter().position(|c| c == name).expect("a column")
    }

    /// The same with the value of a row (from 1) of a column replaced.
    fn set(mut self, row: usize, name: &str, value: &str) -> Cells {
        let j = self.column(name);
        self.0[row][j] = value.into();
        self
    }

    /// The same with a whole column replaced, or added.
    fn put(mut self, name: &str, value: impl Fn(usize) -> String) -> Cells {
        let j = self.0[0].iter().position(|c| c == name).unwrap_or_else(|| {
            self.0[0].push(name.into());
            self.0[1..].iter_mut().for_each(|r| r.push(String::new()));
            self.0[0].len() - 1
        });
        (1..self.0.len()).for_each(|i| self.0[i][j] = value(i));
        self
    }

    fn text(&self) -> String {
        self.0.iter().map(|r| r.join(",") + "\n").collect()
    }
}

/// A name, what to type after `dvim` (`T` is the table), and the bytes of the table.
type Case = (&'static str, String, Vec<u8>);

fn cases() -> Vec<Case> {
    let mut out: Vec<Case> = Vec::new();
    let good = Cells::good;
    let mut check = |name: &'static str, extra: &str, cells: Cells| {
        // What is given replaces what is usual.
        let given = |flag: &str| extra.split([' ', '=']).any(|w| w == flag);
        let usual = ["--time time", "--event event", "--treatment arm", "--horizon 100", "-k 3"];
        let usual: Vec<&str> = usual.into_iter().filter(|u| !u.split(' ').take(1).any(given)).collect();
        let command = format!("check T {} {extra}", usual.join(" "));
        out.push((name, command.trim_end().to_string(), cells.text().into_bytes()));
    };
    // Roles.
    check("a column that is not there", "--id patient", good());
    check("a time column that is misspelt", "", {
        let mut c = good();
        c.0[0][1] = "tiem".into();
        c
    });
    check("one column for two parts", "--id time", good());
    check("a covariate that is the event", "--covariates age,event", good());
    check("a covariate that is not there", "--covariates age,gradee", good());
    check("a dropped column that is not there", "--drop sexx", good());
    check("a dropped covariate", "--covariates age,sex --drop sex", good());
    check("a categorical column that is not there", "--categorical stage", good());
    check("a numeric time", "--numeric time", good());
    check("numeric and categorical", "--numeric age --categorical age", good());
    check("categorical and dropped", "--categorical grade --drop grade", good());
    check("no covariate is left", "--drop age,sex,grade", good());
    check("a horizon of zero", "--horizon 0", good());
    check("a negative horizon", "--horizon=-5", good());
    check("an infinite horizon", "--horizon inf", good());
    let censored_last = good().set(5, "time", "300").set(5, "event", "0").set(6, "time", "310").set(6, "event", "0");
    check("a horizon beyond follow-up", "--horizon 5000", censored_last);
    // Times.
    check("a time of zero", "", good().set(3, "time", "0"));
    check("a negative time", "", good().set(3, "time", "-4").set(7, "time", "0"));
    check("negative times are not shifted", "--zero-time shift", good().set(3, "time", "-4"));
    check("a missing time", "", good().set(3, "time", ""));
    check("a time that is text", "", good().set(3, "time", "12d").set(4, "time", "unknown"));
    check("an infinite time", "", good().set(3, "time", "inf"));
    let dated = || {
        good().put("from", |_| "2020-01-01".into()).put("to", |i| format!("2020-{:02}-{:02}", 2 + i % 3, 1 + i % 28))
    };
    let dates = |name: &'static str, cells: Cells, out: &mut Vec<Case>| {
        let flags = "--event event --treatment arm --horizon 40 -k 3 --start from --end to --drop time";
        out.push((name, format!("check T {flags}"), cells.text().into_bytes()));
    };
    // Events.
    check("events coded 1 and 2", "", good().put("event", |i| (1 + i % 2).to_string()));
    check("events as words", "", good().put("event", |i| ["dead", "alive"][i % 2].into()));
    check("a missing event", "", good().set(9, "event", "NA"));
    check("no event in an arm", "", good().put("event", |i| u8::from(i % 2 == 0).to_string()));
    // Arms.
    check("one arm", "", good().put("arm", |_| "1".into()));
    check("three arms", "", good().put("arm", |i| ["A", "B", "C"][i % 3].into()));
    check("three arms, one named", "--treated A", good().put("arm", |i| ["A", "B", "C"][i % 3].into()));
    check("an arm that is not there", "--treated A --control D", good().put("arm", |i| ["A", "B", "C"][i % 3].into()));
    check("one label for both arms", "--treated A --control A", good().put("arm", |i| ["A", "B"][i % 2].into()));
    check("labels that say nothing", "", good().put("arm", |i| ["Lev+5FU", "Obs"][i % 2].into()));
    check("a treated label that is not there", "--treated 2", good());
    check("a missing treatment", "", good().set(5, "arm", ""));
    // Ids.
    check("an id twice", "", good().set(2, "id", "100").set(5, "id", "107"));
    check("a missing id", "", good().set(2, "id", ""));
    // Covariates.
    check("missing covariates", "", good().set(2, "age", "NA").set(9, "age", "").set(9, "grade", "."));
    check("a covariate without any value", "--missing indicator", good().put("age", |_| String::new()));
    check("a constant covariate", "", good().put("age", |_| "61".into()));
    check("a category with one level", "", good().put("grade", |_| "II".into()));
    check("an infinite covariate", "", good().set(4, "age", "inf"));
    check("a huge covariate", "", good().set(4, "age", "1e200"));
    check(
        "a number with typos",
        "",
        good().put("age", |i| format!("{}", 30 + i)).set(4, "age", "6l").set(6, "age", "unknown"),
    );
    check("text declared numeric", "--numeric grade", good());
    check("free text", "", good().put("grade", |i| format!("note {i}")));
    check("dates as a covariate", "", good().put("grade", |i| format!("2020-01-{:02}", 1 + i % 28)));
    // Columns that do not belong there.
    let time_of = |i: usize| Cells::good().0[i][1].parse::<u32>().expect("a time");
    check("the time as a covariate", "", good().put("days", |i| time_of(i).to_string()));
    check("the event as a covariate", "", good().put("seen", |i| Cells::good().0[i][2].clone()));
    check("an identifier among the covariates", "", good().put("number", |i| (500 + i).to_string()));
    check("a code for unknown values", "", good().set(4, "age", "999").set(9, "age", "999"));
    check("an absurd value", "", good().set(4, "age", "1e23"));
    check("every row twice", "", {
        let mut c = good();
        let again: Vec<Vec<String>> = c.0[1..].iter().map(|r| [&["9".to_string() + &r[0]], &r[1..]].concat()).collect();
        c.0.extend(again);
        c
    });
    check("an allowed column that is not there", "--allow agee", good());
    check("an impossible caliper", "--caliper age=-1", good());
    check("a caliper on a category", "--caliper grade=1", good());
    check("a caliper on no covariate", "--caliper weight=1", good());
    check("exact on no covariate", "--exact sexx", good());
    check("a filter that keeps nothing", "--where grade=IV", good());
    check("a filter on no column", "--where stage=1", good());
    check(
        "all rows have a gap",
        "--missing drop",
        good()
            .put("age", |i| if i % 2 == 0 { String::new() } else { i.to_string() })
            .put("grade", |i| if i % 2 == 1 { String::new() } else { "I".into() }),
    );
    // Weights, clusters, delayed entry, causes.
    let weighted = || good().put("w", |i| format!("{}", 0.5 + (i % 4) as f64));
    check("a weight column that is not there", "--weights wt", weighted());
    check("a weight of zero", "--weights w", weighted().set(3, "w", "0").set(5, "w", "-2"));
    check("a missing weight", "--weights w", weighted().set(3, "w", ""));
    check("weights that are words", "--weights grade", good());
    check("weights for two parts", "--weights w --covariates age,w", weighted());
    check("one cluster", "--cluster c", good().put("c", |_| "north".into()));
    check("a missing cluster", "--cluster c", good().put("c", |i| (i % 5).to_string()).set(4, "c", ""));
    let late = || good().put("from", |i| ["0", "2", "4"][i % 3].into());
    check(
        "an entry after the end",
        "--entry from",
        late().set(2, "from", "500").put("time", |i| (20 + i).to_string()).set(2, "time", "90").set(2, "from", "90"),
    );
    check("an entry before the origin", "--entry from", late().set(2, "from", "-1"));
    check("a missing entry", "--entry from", late().set(2, "from", ""));
    let causes = || good().put("event", |i| (i % 3).to_string());
    check("causes without a cause", "", causes());
    check("a cause that does not occur", "--cause 7", causes());
    check("the cause of censoring", "--cause 0", causes());
    check("a cause that is no code", "--cause 1", causes().set(4, "event", "-1"));
    check("an arm without the cause", "--cause 2", good().put("event", |i| if i % 2 == 0 { "1" } else { "2" }.into()));
    let three = || good().put("c", |i| (i % 3).to_string());
    check("clusters too few for the adjusted estimator", "--cluster c --estimator adjusted", three());
    // Options.
    check("a group size of zero", "--estimator paper -k 0", good());
    check("a group larger than an arm", "--estimator paper -k 30", good());
    check("a train fraction of one", "--estimator paper --train-fraction 1", good());
    check("one split", "--estimator adjusted --splits 1", good());
    check("too many splits", "--estimator adjusted --splits 501", good());
    check("odd splits of two folds", "--estimator adjusted --splits 5 --folds 2", good());
    check("one fold", "--estimator adjusted --folds 1 --splits 10", good());
    check(
        "splits with the paper's estimator",
        "--estimator paper --splits 3 --penalty ridge --latency weibull --folds 4",
        good(),
    );
    check(
        "a training share with the adjusted estimator",
        "--estimator adjusted --train-fraction 0.5 --scale none --metric combined",
        good(),
    );
    check(
        "several problems at once",
        "",
        good().set(4, "age", "inf").set(6, "time", "0").set(8, "event", "7").set(10, "time", "-1"),
    );

    dates("dates that may be day or month first", dated().set(2, "to", "03/04/2020"), &mut out);
    dates("a day that does not exist", dated().set(2, "to", "2020-02-30"), &mut out);
    dates("a date that is none", dated().set(2, "to", "soon"), &mut out);
    dates("numbers where dates are asked for", dated().put("to", |i| i.to_string()), &mut out);
    dates("an end before its start", dated().set(2, "to", "2019-12-31"), &mut out);
    dates("a missing date", dated().set(2, "to", ""), &mut out);
    let plain = |name: &'static str, command: &str, bytes: &[u8]| -> Case {
        (name, command.replace("ROLES", ROLES), bytes.to_vec())
    };
    let text = good().text();
    out.extend([
        plain("no such file", "check nowhere.csv ROLES", b""),
        plain("an empty file", "check T ROLES", b""),
        plain("a header alone", "check T ROLES", b"id,time,event,arm,age\n"),
        plain("a row that is too short", "check T ROLES", b"id,time,event,arm,age\n1,5,1,0\n2,6,0,1,50\n"),
        plain("a row that is too long", "check T ROLES", b"id,time,event,arm,age\n1,5,1,0,50\n2,6,0,1,50,5\n"),
        plain("two columns of one name", "check T ROLES", b"id,time,event,arm,arm\n1,5,1,0,50\n"),
        plain("not UTF-8", "check T ROLES", b"id,time,event,arm,age\n1,5,1,0,\xff\n"),
        plain("a quote that never closes", "check T ROLES", b"id,time,event,arm,age\n1,5,1,0,\"50\n2,5,1,1,4\n"),
        plain("gzip that is cut off", "check T ROLES", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b"),
        plain("no header", "check T ROLES", b"1,2,3,4\n5,6,7,8\n"),
        plain("no time and no dates", "check T --event event --treatment arm --horizon 100", text.as_bytes()),
        plain(
            "a start without an end",
            "check T --start time --event event --treatment arm --horizon 100",
            text.as_bytes(),
        ),
        plain("a filter without a value", "check T ROLES --where grade", text.as_bytes()),
        plain("a caliper without a width", "check T ROLES --caliper age", text.as_bytes()),
        plain("an unknown rule for missing values", "check T ROLES --missing guess", text.as_bytes()),
        plain("zero threads", "check T ROLES --threads 0", text.as_bytes()),
        plain(
            "constraints that nobody satisfies",
            "fit T ROLES --estimator paper --exact age --exclude-self -o new",
            text.as_bytes(),
        ),
        plain(
            "a group size to choose",
            "fit T --time time --event event --treatment arm --horizon 100 --estimator paper -k auto -o new",
            text.as_bytes(),
        ),
        plain("an output that exists", "fit T ROLES -o run", text.as_bytes()),
        plain("a comparison with clusters", "compare T ROLES --cluster grade -o new", text.as_bytes()),
        plain("one imputed data set", "fit T ROLES --imputation sex --where sex=f -o new", text.as_bytes()),
        plain("an imputation column that is not there", "fit T ROLES --imputation imp -o new", text.as_bytes()),
        plain("imputed data sets of other patients", "fit T ROLES --imputation grade --id id -o new", text.as_bytes()),
        plain("all arms without a control", "fit T ROLES --treated all -o new", text.as_bytes()),
        plain("all arms and a control that is none", "fit T ROLES --treated all --control 7 -o new", text.as_bytes()),
        plain("an output that is no run", "fit T ROLES -o other --force", text.as_bytes()),
        plain("a run that is not there", "match nowhere 1", b""),
        plain("a directory that is no run", "match other 1", b""),
        plain("a patient who is not there", "match run 999", b""),
        plain("new patients without a covariate", "predict run T", b"id,age,sx\n1,50,f\n"),
        plain("new patients of an unknown level", "predict run T", b"id,age,sex,grade\n1,50,f,II\n2,50,x,IV\n"),
        plain("new patients with gaps", "predict run T", b"id,age,sex,grade\n1,,f,II\n2,50,,II\n"),
        plain("new patients with text for a number", "predict run T", b"id,age,sex,grade\n1,old,f,II\n"),
        plain("new patients who are absurd", "predict run T", b"id,age,sex,grade\n1,-9999,f,II\n2,50,f,II\n"),
        plain("new patients without an id", "predict run T", b"id,age,sex,grade\n1,50,f,II\n,52,f,II\n"),
        plain("new patients with an id twice", "predict run T", b"id,age,sex,grade\n1,50,f,II\n1,51,f,II\n"),
        plain("a negative distance", "predict run T --max-distance=-1", b"id,age,sex,grade\n1,50,f,II\n"),
        plain("a rerun on another table", "rerun run T", b"id,time,event,arm,age\n1,5,1,0,50\n"),
        plain("a rerun without its table", "rerun run", b""),
        plain("a simulation of nobody", "simulate --scenario cure-only --n 0", b""),
        plain("a scenario that is not there", "simulate --scenario cured", b""),
    ]);
    out
}

/// Tables that are analysed, with something worth knowing: a name, what to type, and the table.
fn warned() -> Vec<Case> {
    let good = Cells::good;
    let case = |name: &'static str, extra: &str, cells: Cells| -> Case {
        let usual = if extra.contains("--estimator") { "" } else { " --folds 5" };
        (name, format!("check T {ROLES}{usual} {extra}").trim_end().to_string(), cells.text().into_bytes())
    };
    let mut cut = case("a last line without an end", "", good());
    cut.2.pop_if(|byte| *byte == b'\n').expect("a line end");
    vec![
        cut,
        case("an identifier that is allowed", "--allow number", good().put("number", |i| (500 + i).to_string())),
        case(
            "a name of something after treatment",
            "",
            good().put("toxicity", |i| ["low", "high"][i * 31 % 7 % 2].into()),
        ),
        case("rows with gaps are dropped", "--missing drop", good().set(2, "age", "").set(9, "age", "")),
        case("gaps are filled in", "--missing indicator", good().set(2, "age", "").set(9, "grade", "")),
        case("times of zero are shifted", "--zero-time shift", good().set(3, "time", "0")),
        case("early events are dropped", "--zero-time drop", good().set(3, "time", "0").set(3, "event", "1")),
        case("two spellings of a level", "", good().set(2, "grade", "ii").set(5, "grade", "ii")),
        case("a level in one arm", "", good().set(2, "grade", "IV").set(4, "grade", "IV")),
        case(
            "few different times",
            "",
            good().put("time", |i| (10 * (1 + i % 3)).to_string()).put("event", |_| "1".into()),
        ),
        case("few at the horizon", "", good().set(3, "time", "100").set(3, "event", "0")),
        case("weights that are counts", "--weights w --estimator paper", good().put("w", |i| (1 + i % 3).to_string())),
        case(
            "few at risk at first",
            "--entry from --estimator paper",
            good().set(1, "time", "3").set(1, "event", "1").put("from", |i| if i == 1 { "0" } else { "4" }.into()),
        ),
    ]
}

/// Kinds of problems whose words are tested by a case that prints no JSON, or where no command meets them.
const ELSEWHERE: [(&str, &str); 4] = [
    ("unknown_level", "new patients of an unknown level"),
    ("bad_imputation", "an imputation column that is not there"),
    // The reader refuses a table without rows before the engine sees it.
    ("no_rows", "a header alone"),
    ("not_supported", "a comparison with clusters"),
];

fn dvim(folder: &Path, command: &str) -> (Option<i32>, String, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_dvim"))
        .args(command.split_whitespace().map(|a| if a == "T" { "table.csv" } else { a }))
        .current_dir(folder)
        .output()
        .expect("dvim runs");
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (done.status.code(), text(&done.stdout), text(&done.stderr))
}

#[test]
fn every_refusal_says_what_and_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("cohort.csv"), Cells::good().text()).expect("a table");
    let (code, _, words) = dvim(folder, &format!("fit cohort.csv {ROLES} -o run"));
    assert_eq!(code, Some(0), "the good table is good: {words}");
    fs::rename(folder.join("cohort.csv"), folder.join("moved.csv")).expect("moved");
    fs::create_dir(folder.join("other")).expect("a folder");
    fs::write(folder.join("other/notes.txt"), "mine").expect("a file");
    let cases = cases();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let mut found = String::new();
    for (name, command, bytes) in &cases {
        fs::write(folder.join("table.csv"), bytes).expect("a table");
        let (code, _, words) = dvim(folder, command);
        assert_eq!(code, Some(2), "{name}: `{command}` must be refused: {words}");
        assert!(!words.contains("panicked") && !words.contains("should have caught"), "{name}: {words}");
        let _ = writeln!(
            found,
            "## {name}\n$ dvim {}\n{}",
            command.replace('T', "table.csv"),
            words.trim_end().replace(&folder.display().to_string(), "FOLDER")
        );
        found.push('\n');
    }
    assert!(!folder.join("new").exists() && !folder.join("table.csv.dvim").exists());
    assert_eq!(fs::read_to_string(folder.join("other/notes.txt")).expect("untouched"), "mine");
    compare_golden(GOLDEN, &found);
}

#[test]
fn every_kind_of_problem_is_met() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut met = BTreeSet::new();
    let mut found = String::new();
    for (is_warned, (name, command, bytes)) in
        cases().into_iter().map(|c| (false, c)).chain(warned().into_iter().map(|c| (true, c)))
    {
        if !command.starts_with("check") {
            continue;
        }
        fs::write(folder.join("table.csv"), bytes).expect("a table");
        let (code, json, words) = dvim(folder, &format!("{command} --json"));
        if is_warned {
            assert_eq!(code, Some(0), "{name}: `{command}` is not refused: {words}");
            let _ = writeln!(found, "## {name}\n$ dvim {}\n{words}", command.replace('T', "table.csv"));
        }
        let Ok(record) = serde_json::from_str::<serde_json::Value>(&json) else { continue };
        let problems = record["problems"].as_array().expect("problems").iter();
        met.extend(problems.map(|p| p["code"].as_str().expect("a code").to_string()));
    }
    let cases = cases();
    for (kind, case) in ELSEWHERE {
        assert!(cases.iter().any(|c| c.0 == case), "no case `{case}`");
        assert!(met.insert(kind.to_string()), "`{kind}` is met by a check");
    }
    // What is free differs from machine to machine: tests/limits.rs.
    assert!(met.insert("too_large".into()));
    let all: BTreeSet<String> = ProblemKind::ALL.iter().map(|k| k.code().to_string()).collect();
    assert_eq!(all.difference(&met).collect::<Vec<_>>(), Vec::<&String>::new(), "kinds without a tested message");
    compare_golden(WARNINGS, &found);
}

/// Compares words with those of a file, or writes them there.
fn compare_golden(file: &str, found: &str) {
    if std::env::var_os("DVIM_BLESS").is_some() {
        fs::write(file, found).expect("written");
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    for (a, b) in found.split("## ").zip(expected.split("## ")) {
        assert_eq!(a, b, "the words have changed; DVIM_BLESS=1 accepts them");
    }
    assert_eq!(found, expected);
}
