//! `dvim study` and `dvim compare` as a user meets them.

use assert_cmd::Command;
use std::fs;
use std::path::Path;

fn dvim(args: &[&str]) -> assert_cmd::assert::Assert {
    Command::cargo_bin("dvim").expect("the binary").args(args).assert()
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn a_study_is_written_resumed_and_guarded() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("study");
    let place = out.to_str().expect("a plain path");
    let study = |part: &str, reps: &str| dvim(&["study", part, "--n", "1000", "--reps", reps, "-o", place]).success();
    let first = study("main", "1");
    let said = words(&first.get_output().stderr);
    assert!(said.contains("4 data sets in"), "{said}");
    let csv = read(&out, "main.csv");
    let columns = "method,scenario,reps,cure_mae,cure_sd,time_mae,time_sd,paper_cure_mae,paper_time_mae\n";
    assert!(csv.starts_with(columns), "{csv}");
    assert_eq!(csv.lines().count(), 1 + 13 * 4);
    assert!(words(&first.get_output().stdout).contains("paper (ratio)"));
    for name in ["main.md", "concept.svg", "boxes.svg", "study.html"] {
        assert!(!read(&out, name).is_empty());
    }

    // The same again costs nothing; k100 and the decomposition rest on the same data sets.
    for part in ["main", "k100", "decomposition"] {
        let said = words(&study(part, "1").get_output().stderr);
        assert!(said.contains("0 data sets in"), "{part}: {said}");
    }
    assert_eq!(read(&out, "main.csv"), csv);
    assert!(read(&out, "k100.csv").starts_with(columns));
    assert!(read(&out, "decomposition.csv").contains("irreducible"));

    // A line that was cut off is done again, with the same result.
    let journal = read(&out, "results.jsonl");
    fs::write(out.join("results.jsonl"), &journal[..journal.len() - 40]).expect("a writable file");
    let said = words(&study("main", "1").get_output().stderr);
    assert!(said.contains("1 data sets in"), "{said}");
    assert_eq!(read(&out, "main.csv"), csv);

    // Other settings are refused, with a remedy, and nothing is touched.
    let refused = dvim(&["study", "main", "--n", "1000", "--seed", "9", "--reps", "1", "-o", place]).code(2);
    let said = words(&refused.get_output().stderr);
    assert!(said.contains("rule:") && said.contains("--seed"), "{said}");
    assert_eq!(read(&out, "main.csv"), csv);

    // A directory that is something else is left alone.
    let other = folder.path().join("other");
    fs::create_dir(&other).expect("a folder");
    fs::write(other.join("thesis.txt"), "mine").expect("a file");
    let refused = dvim(&["study", "main", "--n", "1000", "--reps", "1", "-o", other.to_str().expect("a path")]).code(2);
    assert!(words(&refused.get_output().stderr).contains("is not a study"));
    dvim(&["study", "main", "--n", "200", "-o", place]).code(2);
    dvim(&["study", "main", "--reps", "0", "-o", place]).code(2);
}

#[test]
fn every_method_is_compared_on_a_synthetic_cohort() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a plain path").to_string();
    let (cohort, truth, out) = (path("cohort.csv"), path("truth.csv"), path("compare"));
    let said = dvim(&["simulate", "--scenario", "transplant", "-o", &cohort, "--truth", &truth]).success();
    assert!(words(&said.get_output().stderr).contains("synthetic"));
    let refused = dvim(&["simulate", "--scenario", "transplant", "--confounded", "-o", &path("x.csv")]).code(2);
    assert!(words(&refused.get_output().stderr).contains("remedy:"));

    let roles = ["--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", "3650", "-k", "35"];
    let compare = |more: &[&str]| dvim(&[&["compare", &cohort], &roles[..], &["-o", &out], more].concat());
    let found = compare(&[]).success();
    assert!(words(&found.get_output().stdout).contains("These patients are synthetic"));
    let folder = Path::new(&out);
    let page = read(folder, "report.html");
    assert!(page.contains("These patients are synthetic") && page.contains("synthetic cohort"));
    let effects = read(folder, "effects.csv");
    assert!(effects.starts_with("id,treatment,method,cure_effect,time_effect\nsynthetic-"));
    let of_method = |name: &str| effects.lines().filter(|l| l.split(',').nth(2) == Some(name)).count();
    for name in ["mcm-knn", "euclidean-knn", "optimal-full-matching", "cox", "cure-model"] {
        assert_eq!(of_method(name), 752, "{name}");
    }
    assert_eq!(read(folder, "summary.csv").lines().count(), 10);
    assert_eq!(read(folder, "correlations.csv").lines().count(), 1 + 2 * 81);
    for figure in ["cure-violins.svg", "time-violins.svg", "cure-correlations.svg", "time-correlations.svg"] {
        assert!(read(folder, figure).starts_with("<svg"));
    }

    // Nothing is overwritten unasked; with --force the same comes out, on one thread too.
    compare(&[]).code(2);
    compare(&["--force", "--threads", "1"]).success();
    assert_eq!(read(folder, "effects.csv"), effects);
    let refused = compare(&["--force", "-k", "5000"]).code(2);
    assert!(!words(&refused.get_output().stderr).is_empty());
    assert_eq!(read(folder, "effects.csv"), effects);
}
