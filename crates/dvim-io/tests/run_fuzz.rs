//! A run directory that was damaged in any way is refused or opened; it never panics, hangs or asks for absurd memory.
//! Damage that a checksum would catch is also tried with the checksum mended, so that the parser behind it is reached.

use dvim::internal::analysis::{self, Analysis};
use dvim::internal::audit::Audit;
use dvim::internal::cohort::{Cohort, Flow, Units};
use dvim::internal::constraint::Constraints;
use dvim::internal::options::{AdjustedOptions, Estimator, Options};
use dvim::internal::schema::Covariate;
use dvim::internal::schema::Kind;
use dvim::internal::simulate::{Scenario, simulate};
use dvim::internal::watch::Unwatched;
use dvim_io::blocks::sealed;
use dvim_io::run::{EffectsFormat, Origin, Run, open_part, open_run, open_summary, write_run};
use dvim_report::record::{InputRecord, RolesRecord};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// A small cohort with text ids and a category.
fn cohort() -> Cohort {
    let w = simulate(Scenario::CureOnly, 120, false, 2);
    let Units { time, event, arm, .. } = w.cohort.to_units();
    let mut covariates = Vec::new();
    for i in 0..120 {
        let x = w.cohort.covariates(i);
        let level = usize::from(x[0] > 0.0) + usize::from(x[1] > 0.5);
        covariates.extend((0..3).map(|l| f64::from(u8::from(l == level))));
        covariates.push(x[2]);
    }
    let levels = ["a", "b", "ç"].map(String::from).to_vec();
    let schema = vec![
        Covariate { name: "site".into(), kind: Kind::Category { levels }, first: 0, fill: None },
        Covariate::number("age", 3),
    ];
    let names = schema.iter().flat_map(Covariate::column_names).collect();
    let ids = dvim::internal::table::Ids::from_texts((0..120).map(|i| format!("pä{i}")));
    let units = Units {
        ids,
        time,
        event,
        arm,
        covariates,
        names,
        labels: ["0".into(), "1".into()],
        extras: Default::default(),
    };
    Cohort::from_parts(units, Some(schema), w.cohort.horizon()).expect("sound parts")
}

/// A run that was written to a folder, and opened again.
fn written(cohort: &Cohort, found: &Analysis, audit: &Audit) -> (tempfile::TempDir, Run) {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("run");
    let origin = Origin {
        input: InputRecord { file: "t.csv".into(), sha256: String::new(), n_bytes: 1, n_rows: 120 },
        roles: RolesRecord::simulated(cohort),
        flow: &Flow { n_rows: 120, steps: Vec::new() },
        warnings: &[],
        format: EffectsFormat::Csv,
    };
    write_run(&target, false, cohort, found, audit, origin).expect("written");
    let run = open_run(&target).expect("a run that is in order opens");
    (folder, run)
}

/// What is reopened is what was found, to the bit, without finding groups again: under both estimators, with shared
/// places, and with patients whom constraints leave without groups. Without what was stored groups are found again, and
/// are the same.
#[test]
fn what_was_estimated_is_stored() {
    let cohort = cohort();
    let exact = Constraints { exact: vec!["site".into()], ..Constraints::default() };
    let few = AdjustedOptions { splits: Some(4), folds: 2, group_size: Some(12), ..AdjustedOptions::default() };
    let adjusted = Estimator::Adjusted(few);
    for options in [
        Options { group_size: 12, constraints: exact.clone(), ..Options::paper() },
        Options { estimator: adjusted.clone(), ..Options::default() },
        Options { estimator: adjusted, constraints: exact, ..Options::default() },
    ] {
        let found = analysis::run(&cohort, &options, &Unwatched).expect("a run");
        let audit = Audit::not_asked(&cohort, &found, &[]).expect("an audit");
        let (folder, run) = written(&cohort, &found, &audit);
        // A part of it says the same of single patients.
        let part = open_part(&folder.path().join("run")).expect("a part of it opens");
        assert_eq!((&part.cohort, part.fit.options.clone()), (&run.cohort, run.fit.options.clone()));
        for (unit, effect) in found.units.iter().zip(&found.effects) {
            assert_eq!(part.corrected(*unit as usize).expect("read"), effect.corrected);
            assert_eq!(part.fit.fold_number(Some(*unit)), run.fit.fold_number(Some(*unit)));
        }
        let told = open_summary(&folder.path().join("run")).expect("its summary opens");
        assert_eq!((told.n_estimated, &told.summary), (found.units.len(), &run.summary));
        for stored in [run.stored.clone(), None] {
            let again = Analysis::reopened(run.fit.clone(), &run.corrected, stored, &run.cohort, &Unwatched);
            let again = again.expect("reopened");
            assert_eq!((&again.units, &again.unserved), (&found.units, &found.unserved));
            assert_eq!(again.effects, found.effects);
        }
    }
}

/// The files of a run that is in order.
fn files() -> &'static (Vec<u8>, Vec<u8>) {
    static FILES: OnceLock<(Vec<u8>, Vec<u8>)> = OnceLock::new();
    FILES.get_or_init(|| {
        let cohort = cohort();
        let found = analysis::run(&cohort, &Options { group_size: 5, ..Options::paper() }, &Unwatched).expect("a run");
        let audit = Audit::of(&cohort, &found, &[]).expect("an audit");
        let (folder, run) = written(&cohort, &found, &audit);
        assert_eq!(run.cohort, cohort);
        assert_eq!(run.fit, found.fit);
        assert!(run.changed.is_empty(), "{:?}", run.changed);
        let again = Analysis::reopened(run.fit, &run.corrected, run.stored, &run.cohort, &Unwatched).expect("reopened");
        assert_eq!(again, found);
        let read = |name: &str| fs::read(folder.path().join("run").join(name)).expect("a file");
        (read("summary.json"), read("run.dvim"))
    })
}

#[derive(Clone, Debug)]
enum Damage {
    Cut(prop::sample::Index),
    Flip(Vec<(prop::sample::Index, u8)>),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
    Replace(prop::sample::Index, Vec<u8>),
    /// A number of the text becomes another one.
    Number(prop::sample::Index, i64),
}

impl Damage {
    fn apply(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = bytes.to_vec();
        match self {
            Damage::Cut(at) => out.truncate(at.index(bytes.len() + 1)),
            Damage::Flip(flips) => flips.iter().for_each(|(at, by)| out[at.index(bytes.len())] ^= by),
            Damage::Insert(at, more) => {
                let at = at.index(bytes.len() + 1);
                out.splice(at..at, more.iter().copied());
            }
            Damage::Remove(at, n) => {
                let at = at.index(bytes.len());
                out.drain(at..(at + n).min(bytes.len()));
            }
            Damage::Replace(at, with) => {
                let at = at.index(bytes.len());
                let end = (at + with.len()).min(bytes.len());
                out.splice(at..end, with.iter().copied());
            }
            Damage::Number(which, value) => {
                let starts: Vec<usize> =
                    (1..bytes.len()).filter(|&i| bytes[i].is_ascii_digit() && !bytes[i - 1].is_ascii_digit()).collect();
                if starts.is_empty() {
                    return out;
                }
                let at = starts[which.index(starts.len())];
                let end = (at..bytes.len()).find(|&i| !bytes[i].is_ascii_digit()).unwrap_or(bytes.len());
                out.splice(at..end, value.to_string().bytes());
            }
        }
        out
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        at().prop_map(Damage::Cut),
        prop::collection::vec((at(), 1u8..=255), 1..6).prop_map(Damage::Flip),
        (at(), prop::collection::vec(any::<u8>(), 1..9)).prop_map(|(a, b)| Damage::Insert(a, b)),
        (at(), 1usize..40).prop_map(|(a, n)| Damage::Remove(a, n)),
        (at(), prop::collection::vec(any::<u8>(), 8..9)).prop_map(|(a, b)| Damage::Replace(a, b)),
        (at(), prop_oneof![Just(0i64), Just(1), Just(i64::MAX), -3i64..200]).prop_map(|(a, v)| Damage::Number(a, v)),
    ]
}

/// Opens what is there; whatever opens must also answer.
fn open(folder: &Path, summary: &[u8], store: &[u8]) {
    fs::write(folder.join("summary.json"), summary).expect("written");
    fs::write(folder.join("run.dvim"), store).expect("written");
    if let Ok(run) = open_part(folder) {
        let _ = (run.corrected(0), open_summary(folder));
        run.fit.match_groups(&run.cohort, 0);
    }
    if let Ok(run) = open_run(folder) {
        let groups = run.fit.match_groups(&run.cohort, 0);
        assert!(groups.cure.control.size() <= run.fit.options.group_size);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// What is before the digest of the only block, and the root.
fn body(store: &[u8]) -> &[u8] {
    assert!(store.len() < 1 << 20, "one block");
    &store[..store.len() - 64]
}

/// A store whose checksums are right, and a summary that names it.
fn mended(summary: &[u8], body: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (store, new) = sealed(body);
    let old = hex(&files().1[files().1.len() - 32..]);
    (String::from_utf8_lossy(summary).replace(&old, &new).into_bytes(), store)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: Some(Box::new(proptest::test_runner::FileFailurePersistence::SourceParallel("regressions"))), ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_summary(d in prop::collection::vec(damage(), 1..3)) {
        let folder = tempfile::tempdir().expect("a folder");
        let (summary, store) = files();
        let bad = d.iter().fold(summary.clone(), |bytes, d| if bytes.is_empty() { bytes } else { d.apply(&bytes) });
        open(folder.path(), &bad, store);
    }

    #[test]
    fn a_damaged_store(d in damage()) {
        let folder = tempfile::tempdir().expect("a folder");
        let (summary, store) = files();
        let bad = d.apply(store);
        prop_assume!(&bad != store);
        fs::write(folder.path().join("summary.json"), summary).expect("written");
        fs::write(folder.path().join("run.dvim"), &bad).expect("written");
        prop_assert!(open_run(folder.path()).is_err(), "damage is always found");
    }

    #[test]
    fn a_damaged_store_with_a_checksum_that_fits(d in prop::collection::vec(damage(), 1..3), in_header in any::<bool>()) {
        let folder = tempfile::tempdir().expect("a folder");
        let (summary, store) = files();
        let body = body(store);
        // Most of the store is arrays; half of the time only its beginning, which is the header, is damaged.
        let split = if in_header { 2_000.min(body.len()) } else { body.len() };
        let mut bad = d.iter().fold(body[..split].to_vec(), |bytes, d| if bytes.is_empty() { bytes } else { d.apply(&bytes) });
        bad.extend_from_slice(&body[split..]);
        if in_header && bad.len() > 16 {
            // The length of the header moves with it.
            let was = u64::from_le_bytes(body[8..16].try_into().expect("eight bytes"));
            let now = was.wrapping_add(bad.len() as u64).wrapping_sub(body.len() as u64);
            bad[8..16].copy_from_slice(&now.to_le_bytes());
        }
        let (summary, store) = mended(summary, &bad);
        open(folder.path(), &summary, &store);
    }
}
