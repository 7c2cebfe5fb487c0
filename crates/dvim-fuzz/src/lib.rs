//! What the fuzzers call: each function takes any bytes and must come back, whatever they are. A panic, a hang or absurd
//! memory is a finding. `fuzz/` has a target for each; `tests/corpus.rs` replays what they found, without a fuzzer.

pub mod campaign;

use dvim::internal::analysis::{self, Analysis};
use dvim::internal::audit::Audit;
use dvim::internal::cohort::{Cohort, Flow, Roles};
use dvim::internal::ground::Ground;
use dvim::internal::options::Options;
use dvim::internal::overview::Overview;
use dvim::internal::phrase::Fields;
use dvim::internal::schema::Missing;
use dvim::internal::simulate::{Scenario, simulate};
use dvim::internal::table::{Ids, Table};
use dvim::internal::watch::Unwatched;
use dvim_explore::Explorer;
use dvim_io::read::{ReadOptions, Sizes, read_in_blocks, read_table};
use dvim_io::run::{EffectsFormat, Origin, open_run, read_summary, write_effect_table, write_run};
use dvim_report::record::{InputRecord, RolesRecord, Source, Summary};
use dvim_report::report::{Page, run_page};
use dvim_report::spell::CommandLine;
use dvim_report::tables::effect_table;
use dvim_report::terminal::{Terminal, words};
use dvim_report::text;
use sha2::{Digest, Sha256};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A target: any bytes in, nothing out.
pub type Target = fn(&[u8]);

/// Every target by its name.
pub const TARGETS: &[(&str, Target)] = &[
    ("delimited", delimited),
    ("door", door),
    ("store", store),
    ("summary", summary),
    ("labels", labels),
    ("http", http),
    #[cfg(feature = "columnar")]
    ("columnar", columnar),
];

thread_local! {
    static SCRATCH: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
}

/// Files of this thread with these contents, in a folder in memory where there is one.
fn files<const N: usize>(contents: [(&str, &[u8]); N]) -> PathBuf {
    let folder = SCRATCH.with(|scratch| {
        let made = scratch.get_or_init(|| {
            tempfile::Builder::new().tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
        });
        made.path().to_path_buf()
    });
    for (name, bytes) in contents {
        fs::write(folder.join(name), bytes).expect("a file");
    }
    folder
}

/// A delimited file, plain or compressed. Read in whatever blocks, it gives the same table or the same refusal.
pub fn delimited(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else { return };
    let path = files([("table.csv", rest)]).join("table.csv");
    let options = ReadOptions { default_id: Some("id".into()), threads: 1, ..ReadOptions::default() };
    let whole = read_table(&path, &options);
    let parts = read_in_blocks(&path, &options, &Sizes { block: 1 + usize::from(first), ..Sizes::default() });
    if let Err(error) = &whole {
        assert!(error.to_string().len() < 20_000, "a message of bounded length");
    }
    // Not a number is not equal to itself; its print-out is.
    assert_eq!(format!("{whole:?}"), format!("{parts:?}"));
}

/// A table at the door: columns by their place, labels and rules by the first bytes.
pub fn door(data: &[u8]) {
    let Some((&[a, b], rest)) = data.split_first_chunk::<2>() else { return };
    let path = files([("table.csv", rest)]).join("table.csv");
    let options = ReadOptions { default_id: Some("id".into()), threads: 1, ..ReadOptions::default() };
    let Ok(read) = read_table(&path, &options) else { return };
    if read.table.n_rows() > 400 || read.table.columns().len() > 40 {
        return;
    }
    look(&read.table, &roles(&read.names, a, b));
}

fn roles(names: &[String], a: u8, b: u8) -> Roles {
    let name = |i: usize| names.get(i).cloned().unwrap_or_else(|| "absent".into());
    let has = |bit: u8| b & (1 << bit) != 0;
    Roles {
        time: name(0),
        event: name(1),
        treatment: name(2),
        horizon: f64::from(a),
        dates: has(0).then(|| [name(0), name(3)]),
        treated: has(1).then(|| "1".into()),
        control: has(2).then(|| "0".into()),
        missing: if has(3) { Missing::Indicator } else { Missing::Drop },
        weights: has(4).then(|| name(3)),
        cluster: has(5).then(|| name(4)),
        entry: has(6).then(|| name(3)),
        cause: has(7).then(|| "1".into()),
        ..Roles::default()
    }
}

fn look(table: &Table, roles: &Roles) {
    let options = Options { group_size: 5, ..Options::paper() };
    let overview = Overview::of(table, roles, &options);
    assert!(text::overview(&overview).len() < 200_000, "few words");
    match Cohort::admit(table, roles) {
        Ok(admitted) => assert!(admitted.cohort.n_units() > 0, "a cohort has units"),
        Err(error) => assert!(error.spelled(&Fields).contains("error: "), "a refusal says why"),
    }
}

/// A run that is in order.
struct Good {
    cohort: Cohort,
    found: Analysis,
    record: Summary,
    summary: Vec<u8>,
    store: Vec<u8>,
}

fn good() -> &'static Good {
    static GOOD: OnceLock<Good> = OnceLock::new();
    GOOD.get_or_init(|| {
        let cohort = simulate(Scenario::BothOverlap, 80, false, 3).cohort;
        let options = Options { group_size: 5, ..Options::paper() };
        let found = analysis::run(&cohort, &options, &Unwatched).expect("a run");
        let audit = Audit::of(&cohort, &found, &[]).expect("an audit");
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("run");
        let origin = Origin {
            input: InputRecord { file: "t.csv".into(), sha256: String::new(), n_bytes: 1, n_rows: 80 },
            roles: RolesRecord::simulated(&cohort),
            flow: &Flow { n_rows: 80, steps: Vec::new() },
            warnings: &[],
            format: EffectsFormat::Csv,
        };
        let record = write_run(&target, false, &cohort, &found, &audit, origin).expect("written");
        let read = |name: &str| fs::read(target.join(name)).expect("a file");
        let (summary, store) = (read("summary.json"), read("run.dvim"));
        Good { cohort, found, record, summary, store }
    })
}

/// The summary and the body of the store of a run that is in order: where the fuzzers begin.
pub fn seeds() -> (Vec<u8>, Vec<u8>) {
    let good = good();
    (good.summary.clone(), good.store[..good.store.len() - 32].to_vec())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The body of a store, under a checksum that fits: without it, what is behind would never be reached.
pub fn store(data: &[u8]) {
    let good = good();
    let mut store = data.to_vec();
    store.extend_from_slice(&Sha256::digest(data));
    let (old, new) = (hex(&Sha256::digest(&good.store)), hex(&Sha256::digest(&store)));
    let summary = mended(&String::from_utf8_lossy(&good.summary).replace(&old, &new));
    let folder = files([("summary.json", summary.as_bytes()), ("run.dvim", &store)]);
    let Ok(run) = open_run(&folder) else { return };
    let n = run.cohort.n_units();
    let _ = run.fit.match_groups(&run.cohort, n - 1);
    let _ = Analysis::reopened(run.fit, &run.corrected, run.stored, &run.cohort, &Unwatched);
}

/// A summary whose last field, the digest of all before it, fits again. A text without that field is left as it is.
pub fn mended(summary: &str) -> String {
    const SEAL: &str = ",\n  \"seal\": \"";
    match summary.rsplit_once(SEAL) {
        Some((body, _)) => format!("{body}{SEAL}{}\"\n}}\n", hex(&Sha256::digest(body))),
        None => summary.into(),
    }
}

/// A summary beside the store that it may fit, as it is and with its digest mended: whatever opens is shown too.
pub fn summary(data: &[u8]) {
    show_summary(data);
    show_summary(mended(&String::from_utf8_lossy(data)).as_bytes());
}

fn show_summary(data: &[u8]) {
    let good = good();
    let folder = files([("summary.json", data), ("run.dvim", &good.store)]);
    let Ok(summary) = read_summary(&folder) else { return };
    let _ = (summary.options.options(), summary.roles.roles(summary.horizon));
    let Ok(run) = open_run(&folder) else { return };
    let _ = text::summary(&run.summary, &good.found, &run.cohort, Terminal { plots: true, colour: true }, &CommandLine);
    let _ = run_page(&Page::default(), &run.cohort, &good.found, &run.summary);
}

/// Marks around a hostile name, by which it is found again in what is shown.
const MARKS: [&str; 2] = ["Qz7", "7zQ"];

/// Lines of a text that are the labels of both arms, the name of a covariate and an id: they reach terminals, pages and
/// spreadsheets, and command none.
pub fn labels(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if text.len() > 4_000 {
        return;
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let line = |i: usize| lines.get(i).copied().unwrap_or("=1+1");
    let name = |i: usize| format!("{}{}{}", MARKS[0], line(i), MARKS[1]);
    let mut units = good().cohort.to_units();
    units.labels = [name(0), name(1) + "2"];
    units.names[0] = name(2);
    let id = line(3);
    let n = units.time.len();
    units.ids = Ids::from_texts((0..n).map(|i| if i == 0 { format!("{id}!") } else { format!("{i}") }));
    let Ok(cohort) = Cohort::from_parts(units, None, good().cohort.horizon()) else { return };
    let options = Options { group_size: 5, ..Options::paper() };
    let Ok(found) = analysis::run(&cohort, &options, &Unwatched) else { return };
    let audit = Audit::of(&cohort, &found, &[]).expect("an audit");
    let input = InputRecord { file: name(4), sha256: String::new(), n_bytes: 1, n_rows: n };
    let flow = Flow { n_rows: n, ..Flow::default() };
    let source = Source { input, roles: RolesRecord::simulated(&cohort), flow: &flow, warnings: &[] };
    let record = Summary::of(&cohort, &found, &audit, source, BTreeMap::new());
    let said = text::summary(&record, &found, &cohort, Terminal { plots: true, colour: false }, &CommandLine);
    let said = words(&said);
    assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "a name commands the terminal");
    let page = run_page(&Page::default(), &cohort, &found, &record);
    for (at, _) in page.match_indices(MARKS[0]) {
        // A long name is cut, with an ellipsis in place of its end.
        let end = [MARKS[1], "…"].iter().filter_map(|mark| page[at..].find(mark)).min();
        let inside = &page[at..end.map_or(at + MARKS[0].len(), |end| at + end)];
        assert!(!inside.contains(['<', '>', '"']), "a name is markup: {inside:?}");
    }
    let mut csv = Vec::new();
    write_effect_table(&mut csv, &effect_table(&cohort, &found), EffectsFormat::Csv).expect("memory");
    let csv = String::from_utf8(csv).expect("text");
    let cell = csv.lines().nth(1).expect("a row").trim_start_matches('"');
    let is_number = cell.split(',').next().is_some_and(|c| c.parse::<f64>().is_ok());
    assert!(is_number || !cell.starts_with(['=', '+', '-', '@', '\t']), "a spreadsheet computes {cell:?}");
}

/// Bytes of a connection to the explorer, as from somebody who knows the token.
pub fn http(data: &[u8]) {
    static EXPLORED: OnceLock<Explorer<'static>> = OnceLock::new();
    let explorer = EXPLORED.get_or_init(|| {
        let good = good();
        let ground = Box::leak(Box::new(Ground::of_fit(&good.found.fit, &good.cohort).expect("groups")));
        Explorer::new(&good.cohort, &good.found, &good.record, ground)
    });
    if let Some(status) = dvim_explore::answer_to(explorer, data) {
        assert_ne!(status, 500, "no request is an error of ours");
    }
}

/// A Parquet or Arrow file, by its first bytes.
#[cfg(feature = "columnar")]
pub fn columnar(data: &[u8]) {
    let path = files([("table.bin", data)]).join("table.bin");
    let _ = read_table(&path, &ReadOptions { threads: 1, ..ReadOptions::default() });
}
