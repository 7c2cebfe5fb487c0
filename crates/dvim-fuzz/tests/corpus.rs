//! What the fuzzers found worth keeping, replayed without them: one test for each target.

use std::fs;
use std::path::Path;

fn replay(name: &str) {
    let (_, target) = dvim_fuzz::TARGETS.iter().find(|(n, _)| *n == name).expect("a target of that name");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut n = 0;
    for file in fs::read_dir(&corpus).unwrap_or_else(|e| panic!("{}: {e}", corpus.display())) {
        let path = file.expect("a file").path();
        let bytes = fs::read(&path).expect("a file");
        if std::panic::catch_unwind(|| target(&bytes)).is_err() {
            panic!("{} fails", path.display());
        }
        n += 1;
    }
    assert!(n > 0, "{} is empty", corpus.display());
}

#[test]
fn delimited() {
    replay("delimited");
}

#[test]
fn door() {
    replay("door");
}

#[test]
fn store() {
    replay("store");
    // A body whose checksum is mended is read: what is in order opens.
    dvim_fuzz::store(&dvim_fuzz::seeds().1);
}

#[test]
fn summary() {
    replay("summary");
    dvim_fuzz::summary(&dvim_fuzz::seeds().0);
}

#[test]
fn labels() {
    replay("labels");
}

#[test]
fn http() {
    replay("http");
}

#[cfg(feature = "columnar")]
#[test]
fn columnar() {
    replay("columnar");
}
