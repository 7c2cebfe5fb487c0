//! The rules of ARCHITECTURE.md, checked over every source file. Each rule is also shown a file that breaks it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Sources by path.
type Sources = BTreeMap<PathBuf, String>;

fn read_into(folder: &Path, path: &Path, out: &mut Sources) {
    for entry in fs::read_dir(path).expect("a source folder") {
        let entry = entry.expect("a source file").path();
        if entry.is_dir() {
            read_into(folder, &entry, out);
        } else if entry.extension().is_some_and(|e| e == "rs") {
            let name = entry.strip_prefix(folder).expect("a file inside").to_path_buf();
            out.insert(name, fs::read_to_string(&entry).expect("a source file"));
        }
    }
}

/// Every source file of a crate of this workspace.
fn sources(name: &str) -> Sources {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let mut out = Sources::new();
    read_into(&folder, &folder, &mut out);
    out
}

/// One file that breaks a rule.
fn planted(path: &str, text: &str) -> Sources {
    Sources::from([(PathBuf::from(path), text.to_string())])
}

/// The code of a file: without comments, and without what is compiled for tests only.
fn code(source: &str) -> String {
    let mut out: String = source.lines().map(|l| l.split("//").next().unwrap_or("").to_string() + "\n").collect();
    while let Some(at) = out.find("#[cfg(test)]") {
        let rest = &out[at..];
        let (open, end) = (rest.find('{'), rest.find(';').unwrap_or(rest.len() - 1));
        let length = match open.filter(|o| *o < end) {
            None => end + 1,
            Some(open) => {
                let mut depth = 0;
                let closing = rest[open..].char_indices().find(|(_, c)| {
                    depth += i32::from(*c == '{') - i32::from(*c == '}');
                    depth == 0
                });
                open + closing.map_or(rest.len() - open, |(i, _)| i + 1)
            }
        };
        out.replace_range(at..at + length, "");
    }
    out
}

/// The modules of the crate that a file mentions, behind `crate::`.
fn used(code: &str) -> Vec<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let after = code.match_indices("crate::").map(|(i, _)| &code[i + "crate::".len()..]);
    let names = after.flat_map(|rest| match rest.strip_prefix('{') {
        // `use crate::{a, b::C}`.
        Some(list) => list[..list.find("};").unwrap_or(list.len())].split(',').map(|n| word(n.trim())).collect(),
        None => vec![word(rest)],
    });
    names.filter(|name| !name.is_empty()).collect()
}

/// The module that a file belongs to: the first part of its path.
fn module(path: &Path) -> String {
    let first = path.components().next().expect("a path").as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_string()
}

/// The modules of the engine in the order of `lib.rs`.
fn order() -> Vec<String> {
    let lib = &sources("dvim")[Path::new("lib.rs")];
    let names = lib.lines().filter_map(|l| l.strip_prefix("pub mod ").or_else(|| l.strip_prefix("mod ")));
    names.filter_map(|l| Some(l.strip_suffix(';')?.to_string())).collect()
}

fn upward(sources: &Sources, order: &[String]) -> Vec<String> {
    let place = |name: &str| order.iter().position(|m| m == name);
    let mut out = Vec::new();
    for (path, source) in sources.iter().filter(|(path, _)| *path != Path::new("lib.rs")) {
        let Some(own) = place(&module(path)) else {
            out.push(format!("{} belongs to no module of lib.rs", path.display()));
            continue;
        };
        let below = used(&code(source)).into_iter().filter(|name| place(name).is_some_and(|p| p > own));
        out.extend(below.map(|name| format!("{} uses `{name}`, which stands below it", path.display())));
    }
    out
}

#[test]
fn modules_use_only_those_above_them() {
    let order = order();
    assert!(order.len() > 20, "lib.rs lists the modules: {order:?}");
    assert_eq!(upward(&sources("dvim"), &order), [""; 0]);
    for text in ["use crate::analysis::run;", "fn f() { crate::audit::of() }", "use crate::{arm, analysis::run};"] {
        assert_eq!(upward(&planted("cure/mod.rs", text), &order).len(), 1, "{text}");
    }
    assert_eq!(upward(&planted("nobody.rs", ""), &order).len(), 1);
    assert_eq!(upward(&planted("cure.rs", "#[cfg(test)]\nmod tests { use crate::analysis; }"), &order), [""; 0]);
}

/// Files of some folders that mention a module beyond those allowed.
fn beyond(sources: &Sources, folder: &str, allowed: &[&str]) -> Vec<String> {
    let there = sources.iter().filter(|(path, _)| module(path) == folder);
    let names = there.flat_map(|(path, source)| used(&code(source)).into_iter().map(move |n| (path, n)));
    let outside = names.filter(|(_, n)| !allowed.contains(&n.as_str()));
    outside.map(|(path, name)| format!("{} uses `{name}`", path.display())).collect()
}

/// Matching sees points: no time, no event, no cohort can reach it.
#[test]
fn matching_sees_no_outcome() {
    let allowed = ["matching", "numeric", "processor"];
    assert_eq!(beyond(&sources("dvim"), "matching", &allowed), [""; 0]);
    assert_eq!(beyond(&planted("matching/tree.rs", "use crate::outcome::Outcome;"), "matching", &allowed).len(), 1);
}

/// Lines of code that hold one of these words.
fn holding(sources: &Sources, words: &[&str]) -> Vec<String> {
    let lines = sources.iter().flat_map(|(path, source)| {
        let lines: Vec<String> = code(source).lines().map(str::to_string).collect();
        lines.into_iter().map(move |l| (path, l))
    });
    let found = lines.filter(|(_, line)| words.iter().any(|w| line.contains(w)));
    found.map(|(path, line)| format!("{}: {}", path.display(), line.trim())).collect()
}

#[test]
fn the_engine_does_no_input_or_output() {
    let words =
        ["std::fs", "std::io", "std::env", "std::time", "std::net", "std::process", "print!", "println!", "dbg!"];
    assert_eq!(holding(&sources("dvim"), &words), [""; 0]);
    let text = "#[cfg(test)]\nuse std::fs;\nfn f() {}\n#[cfg(test)]\nmod tests { fn g() { std::fs::read() } }\n";
    assert_eq!(holding(&planted("a.rs", text), &words), [""; 0]);
    assert_eq!(holding(&planted("a.rs", &format!("{text}use std::fs;")), &words).len(), 1, "after the tests, too");
}

/// Logarithms and exponentials come from `libm` and `numeric`: those of the system round differently on another system,
/// and on a processor without fused multiplication.
#[test]
fn the_engine_takes_no_mathematics_from_the_system() {
    let names = [
        "ln", "ln_1p", "exp", "exp2", "exp_m1", "log", "log2", "log10", "hypot", "powf", "cbrt", "sin", "cos", "tan",
        "sinh", "cosh", "tanh", "asin", "acos", "atan", "atan2", "sin_cos",
    ];
    let of_numbers = |sources: &Sources| -> Vec<String> {
        // Rubin's rules have an `exp` of their own, which rests on `libm`.
        let found = holding(sources, &names.map(|n| format!(".{n}(")).each_ref().map(String::as_str));
        let found = found.into_iter().filter(|l| !l.contains("rubin(&logs, df, confidence).exp()"));
        found.chain(holding(sources, &names.map(|n| format!("f64::{n}")).each_ref().map(String::as_str))).collect()
    };
    assert_eq!(of_numbers(&sources("dvim")), [""; 0]);
    assert_eq!(of_numbers(&planted("a.rs", "let y = x.ln();\nlet z = libm::log(x);\nx.map(f64::exp);")).len(), 2);
}

/// The estimand and the arm have types. A pair of pairs, or a flag for the estimand, would have neither.
#[test]
fn estimands_and_arms_have_types() {
    let words = ["; 2]; 2]", "is_time: bool", "const CURE: usize", "const TIME: usize"];
    assert_eq!(holding(&sources("dvim"), &words), [""; 0]);
    assert_eq!(holding(&planted("a.rs", "pub groups: [[Groups; 2]; 2],"), &words).len(), 1);
}

/// Which estimator it is is asked where options are checked and where a run begins; everything else looks at folds.
#[test]
fn few_places_ask_which_estimator_it_is() {
    let asks = |sources: &Sources| -> Vec<String> {
        let words = [
            "match &self.estimator",
            "match self.estimator",
            "match &options.estimator",
            "Estimator::Adjusted(",
            "Estimator::Paper",
        ];
        holding(sources, &words)
    };
    let branches = |found: &[String]| {
        found
            .iter()
            .filter(|l| l.contains("match ") || l.contains("if ") || l.contains("==") || l.contains("!="))
            .count()
    };
    let engine = asks(&sources("dvim"));
    assert!(branches(&engine) <= 5, "{engine:#?}");
    let allowed = ["options.rs", "analysis.rs", "memory.rs"];
    assert!(engine.iter().all(|l| allowed.iter().any(|a| l.starts_with(a))), "{engine:#?}");
    for name in ["dvim-report", "dvim-io", "dvim-explore"] {
        let found = asks(&sources(name));
        assert_eq!(branches(&found), 0, "{name}: {found:#?}");
    }
    assert_eq!(branches(&asks(&planted("a.rs", "    if options.estimator == Estimator::Paper {"))), 1);
}

#[test]
fn the_engine_knows_no_flag() {
    let flag = |text: &str| {
        let mut after = text.match_indices("--").map(|(i, _)| &text[i + 2..]);
        after.any(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
    };
    assert!(flag("use --group-size 50") && !flag("a -- b, 1--2, ---"));
    for name in ["dvim", "dvim-io"] {
        for (path, source) in sources(name) {
            let found = source.lines().find(|l| flag(l));
            assert!(found.is_none(), "{name}/{path:?} spells a flag; name a `Setting` instead: {found:?}");
        }
    }
}

/// The crates, each of which rests on those before it only.
const CRATES: [&str; 9] =
    ["dvim", "dvim-report", "dvim-io", "dvim-explore", "dvim-study", "dvim-cli", "dvim-bind", "dvim-python", "dvim-r"];

/// The engine depends on no crate that reads, writes or serialises by default, and the crates rest on each other one
/// way.
#[test]
fn dependencies_go_one_way() {
    let manifest = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("Cargo.toml");
        fs::read_to_string(path).expect("a manifest")
    };
    let rests_on = |text: &str, other: &str| {
        let section = text.split("[dependencies]").nth(1).unwrap_or("");
        let section = section.split("\n[").next().unwrap_or("");
        section.lines().any(|l| l.split(['.', ' ', '=']).next() == Some(other))
    };
    for (i, name) in CRATES.iter().enumerate() {
        for below in &CRATES[i + 1..] {
            assert!(!rests_on(&manifest(name), below), "{name} rests on {below}");
        }
    }
    assert!(!rests_on(&manifest("dvim-explore"), "dvim-io"), "the explorer has no file access");
    for other in ["serde_json", "csv", "arrow", "parquet", "clap", "pyo3", "savvy"] {
        assert!(!rests_on(&manifest("dvim"), other), "the engine rests on {other}");
    }
    assert!(rests_on("[dependencies]\nserde_json.workspace = true\n\n[dev-dependencies]\n", "serde_json"));
}
/// Comments and code fit into 120 columns, so that two files fit side by side.
#[test]
fn lines_have_at_most_120_columns() {
    let mut long = Vec::new();
    for name in CRATES {
        for (path, source) in sources(name) {
            // Rows of tables and hidden lines of examples cannot be broken.
            let is_prose = |l: &str| {
                let words = l.trim_start();
                words.starts_with("//") && !words.starts_with("//! |") && !words.starts_with("/// # ")
            };
            let width = |l: &str| l.chars().filter(|c| !('\u{300}'..'\u{370}').contains(c)).count();
            let lines = source.lines().enumerate().filter(|(_, l)| is_prose(l) && width(l) > 120);
            long.extend(lines.map(|(i, _)| format!("{name}/{}:{}", path.display(), i + 1)));
        }
    }
    assert_eq!(long, [""; 0], "{} lines", long.len());
}
