//! Figures of a run: each kind is drawn, and what cannot be drawn is said.

use assert_cmd::Command;
use std::fs;
use std::path::Path;

fn dvim(folder: &Path, args: &[&str]) -> (i32, String) {
    let out = Command::cargo_bin("dvim").unwrap().current_dir(folder).args(args).output().unwrap();
    (out.status.code().unwrap(), String::from_utf8(out.stderr).unwrap())
}

fn run(folder: &Path) {
    dvim(folder, &["simulate", "--scenario", "both-overlap", "--n", "800", "--seed", "4", "-o", "cohort.csv"]);
    let columns = ["--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", "800"];
    let mut args = vec!["fit", "cohort.csv", "--estimator", "paper", "-k", "20", "--by", "x3", "-o", "run"];
    args.extend(columns);
    assert_eq!(dvim(folder, &args).0, 0);
}

#[test]
fn each_kind_is_a_figure_with_words() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path());
    let effects = fs::read_to_string(folder.path().join("run/effects.csv")).unwrap();
    let patient = format!("patient:{}", effects.lines().nth(1).unwrap().split(',').next().unwrap());
    let kinds = ["effects", "curves", "plane", "balance", "weights", "averages", "horizon", "follow-up", &patient];
    for (i, kind) in kinds.iter().enumerate() {
        let file = format!("{i}.svg");
        let (code, said) =
            dvim(folder.path(), &["plot", "run", kind, "-o", &file, "--width", "85", "--time-unit", "days"]);
        assert_eq!(code, 0, "{kind}: {said}");
        let svg = fs::read_to_string(folder.path().join(&file)).unwrap();
        assert!(svg.starts_with("<svg xmlns"), "{kind}");
        assert!(svg.contains("width=\"321"), "85 mm are 321 pixels: {kind}");
        assert!(!svg.contains("<desc></desc>") && !svg.contains("NaN"), "{kind}");
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count(), "{kind}");
    }
    // The same bytes again.
    dvim(folder.path(), &["plot", "run", "plane", "-o", "again.svg", "--width", "85", "--time-unit", "days"]);
    assert_eq!(fs::read(folder.path().join("2.svg")).unwrap(), fs::read(folder.path().join("again.svg")).unwrap());
}

#[test]
fn what_cannot_be_drawn_is_said() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path());
    let refused = |args: &[&str], words: &str| {
        let mut all = vec!["plot", "run"];
        all.extend(args);
        let (code, said) = dvim(folder.path(), &all);
        assert_eq!(code, 2, "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    };
    refused(&["pie", "-o", "x.svg"], "the figures are curves, effects");
    refused(&["curves", "-o", "x.gif"], "the ending of the file decides");
    refused(&["curves", "-o", "x.svg", "--width", "5"], "74 to 600 mm");
    refused(&["patient:nobody", "-o", "x.svg"], "nobody");
    refused(&["curves", "-o", "cohort.csv/x.svg"], "not a folder");
    if cfg!(not(feature = "print")) {
        refused(&["curves", "-o", "x.pdf"], "built without");
        refused(&["curves", "-o", "x.png"], "built without");
    }
    assert!(!folder.path().join("x.svg").exists() && !folder.path().join("x.pdf").exists());
}

#[cfg(feature = "print")]
#[test]
fn figures_for_print() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path());
    for kind in ["effects", "plane", "averages"] {
        assert_eq!(dvim(folder.path(), &["plot", "run", kind, "-o", "x.pdf", "--force"]).0, 0);
        let pdf = fs::read(folder.path().join("x.pdf")).unwrap();
        assert!(pdf.starts_with(b"%PDF"));
        assert!(String::from_utf8_lossy(&pdf).contains("DejaVu"), "the font is embedded");
        assert_eq!(dvim(folder.path(), &["plot", "run", kind, "-o", "x.png", "--dpi", "96", "--force"]).0, 0);
        let png = fs::read(folder.path().join("x.png")).unwrap();
        // Width in the header: 180 mm at 96 dots in an inch.
        assert_eq!(u32::from_be_bytes(png[16..20].try_into().unwrap()), 680);
    }
}
