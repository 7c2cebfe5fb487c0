//! The engine flows one way: a module may use those above it in lib.rs and none below.

use std::fs;
use std::path::Path;

fn sources(path: &Path) -> Vec<String> {
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("a source folder");
        entries.flat_map(|e| sources(&e.expect("a source file").path())).collect()
    } else {
        vec![fs::read_to_string(path).expect("a source file")]
    }
}

#[test]
fn modules_use_only_those_above_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(src.join("lib.rs")).expect("lib.rs");
    let order: Vec<&str> = lib
        .lines()
        .filter_map(|l| l.strip_prefix("pub mod ").or_else(|| l.strip_prefix("mod ")))
        .map(|l| l.trim_end_matches(';'))
        .collect();
    assert!(order.len() > 8, "lib.rs lists the modules: {order:?}");
    for (i, module) in order.iter().enumerate() {
        let file = src.join(format!("{module}.rs"));
        let path = if file.exists() { file } else { src.join(module) };
        for source in sources(&path) {
            for below in &order[i + 1..] {
                let used =
                    source.contains(&format!("crate::{below}::")) || source.contains(&format!("crate::{below};"));
                assert!(!used, "`{module}` uses `{below}`, which stands below it");
            }
        }
    }
}

#[test]
fn matching_sees_no_outcome() {
    let matching = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/matching");
    for source in sources(&matching) {
        for word in ["crate::cohort", "crate::survival", "crate::cure", "event:"] {
            assert!(!source.contains(word), "matching mentions `{word}`");
        }
    }
}

#[test]
fn the_engine_does_no_input_or_output() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for source in sources(&src) {
        for word in ["std::fs", "std::io", "std::env", "std::time", "println!", "eprintln!"] {
            let outside_tests = source.split("#[cfg(test)]").next().unwrap_or("");
            assert!(!outside_tests.contains(word), "the engine mentions `{word}`");
        }
    }
}

#[test]
fn the_engine_knows_no_flag() {
    let flag = |text: &str| {
        let mut after = text.match_indices("--").map(|(i, _)| &text[i + 2..]);
        after.any(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
    };
    assert!(flag("use --group-size 50") && !flag("a -- b, 1--2, ---"));
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for folder in ["dvim/src", "dvim-io/src"] {
        for source in sources(&crates.join(folder)) {
            let found = source.lines().find(|l| flag(l));
            assert!(found.is_none(), "{folder} spells a flag; name a `Setting` instead: {found:?}");
        }
    }
}
