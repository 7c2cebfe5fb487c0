//! A hostile day in numbers, for docs/torture.md: random cohorts, malformed tables, damaged runs, hostile requests.
//!
//! Wrong is a panic, a value outside its bounds, an interval without width, a refusal without rule or remedy, damage that
//! nobody noticed, a request that passed without the token. `examples/campaign.rs` is the command; the tests run a few of
//! each.

use crate::mended;
use dvim::internal::analysis;
use dvim::internal::audit::Audit;
use dvim::internal::cohort::{Flow, Roles};
use dvim::internal::error::Error;
use dvim::internal::ground::Ground;
use dvim::internal::options::{AdjustedOptions, Estimator, Options};
use dvim::internal::phrase::Fields;
use dvim::internal::schema::Missing;
use dvim::internal::simulate::{Scenario, simulate};
use dvim::internal::watch::Unwatched;
use dvim_explore::{Explorer, Server};
use dvim_io::read::{ReadOptions, ReadTable, read_table};
use dvim_io::run::{EffectsFormat, Origin, open_run, write_effect_table, write_run};
use dvim_io::tasks::{Analysed, Asked, Input};
use dvim_report::record::{AverageRecord, InputRecord, RolesRecord, Source, Summary};
use dvim_report::spell::CommandLine;
use dvim_report::tables::effect_table;
use dvim_report::terminal::Terminal;
use dvim_report::text;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// SplitMix64: the same draws everywhere.
struct Draw(u64);

impl Draw {
    fn new(seed: u64) -> Draw {
        Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66_D1CE_4E5B)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

/// What went wrong, with the seed that shows it.
#[derive(Default)]
struct Tally {
    counts: Mutex<BTreeMap<&'static str, usize>>,
    wrong: Mutex<Vec<String>>,
}

impl Tally {
    fn count(&self, what: &'static str) {
        *self.counts.lock().expect("no panic while counting").entry(what).or_default() += 1;
    }

    fn wrong(&self, what: String) {
        self.wrong.lock().expect("no panic while counting").push(what);
    }

    fn end(self, what: &str, n: usize) -> Outcome {
        let counts = self.counts.into_inner().expect("done");
        let wrong = self.wrong.into_inner().expect("done");
        let parts: Vec<String> = counts.iter().map(|(what, n)| format!("{} {what}", text::grouped(*n))).collect();
        let row = format!("| {what} | {} | {} | {} |", text::grouped(n), parts.join(", "), wrong.len());
        Outcome { row, wrong }
    }
}

/// What came of a campaign.
#[derive(Debug)]
pub struct Outcome {
    /// A row of the table of docs/torture.md: what, how many, what came of them, how many are wrong.
    pub row: String,
    /// What is wrong, with the seed that shows it.
    pub wrong: Vec<String>,
}

/// The campaign of this name over `n` seeds from `first` on; `None` where there is none.
pub fn run(name: &str, n: usize, first: u64) -> Option<Outcome> {
    match name {
        "cohorts" => Some(cohorts(n, first)),
        "tables" => Some(tables(n, first)),
        "runs" => Some(runs(n, first)),
        "requests" => Some(requests(n, first)),
        _ => None,
    }
}

/// How many cases go on at a time: `CAMPAIGN_THREADS`, or as many as there are cores.
fn threads() -> usize {
    let asked = std::env::var("CAMPAIGN_THREADS").ok().and_then(|n| n.parse().ok());
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Runs `of` for these seeds on these threads; a panic is counted as wrong.
fn each(n: usize, first: u64, tally: &Tally, of: impl Fn(u64) + Sync) {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    std::panic::set_hook(Box::new(|_| {}));
    let next = AtomicU64::new(first);
    let threads = threads();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Relaxed);
                    if seed >= first + n as u64 {
                        return;
                    }
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| of(seed))) {
                        let words = panic.downcast_ref::<String>().map(String::as_str);
                        let words = words.or(panic.downcast_ref::<&str>().copied()).unwrap_or("?");
                        tally.wrong(format!("seed {seed}: panic: {words}"));
                    }
                }
            });
        }
    });
    let _ = std::panic::take_hook();
}

/// A table as a registry could have it on a bad day: ties, few events, heavy censoring, categories with rare levels,
/// constant and copied columns, gaps, extreme values, weights, clusters, late entry, other causes.
fn random_table(draw: &mut Draw) -> (String, Roles) {
    let n = draw.of(&[20, 30, 40, 60, 80, 100, 150, 220]);
    let (p, horizon) = (1 + draw.below(5), draw.of(&[1.0, 5.0, 60.0, 365.0, 1e-3, 1e6]));
    let (treated, event, censored) = (0.1 + 0.8 * draw.unit(), draw.unit(), draw.of(&[0.0, 0.05, 0.3, 0.8]));
    let grain = draw.of(&[0.0, 0.0, 0.02, 0.1, 0.5]);
    let scale = draw.of(&[1.0, 1.0, 1e-6, 1e9]);
    let (gaps, cause) = (draw.chance(0.2), draw.chance(0.15));
    let (weights, cluster, entry) = (draw.chance(0.15), draw.chance(0.15), draw.chance(0.15));
    let kinds: Vec<usize> = (0..p).map(|_| draw.below(7)).collect();
    let mut out = String::from("id,time,event,arm");
    (0..p).for_each(|j| out += &format!(",x{j}"));
    [(weights, ",w"), (cluster, ",c"), (entry, ",from")].iter().filter(|(is, _)| *is).for_each(|(_, n)| out += n);
    for i in 0..n {
        let arm = draw.chance(treated);
        let x: Vec<f64> = (0..p).map(|_| draw.normal()).collect();
        let push = 0.5 * x[0] + if arm { draw.of(&[0.0, 0.5, -0.5]) } else { 0.0 };
        let happens = draw.unit() < 1.0 / (1.0 + (-(push + 4.0 * event - 2.0)).exp());
        let mut time = if happens { horizon * draw.unit() * 1.2 } else { horizon * (1.0 + draw.unit()) };
        let mut seen = happens;
        if draw.chance(censored) {
            (time, seen) = (time * draw.unit(), false);
        }
        if grain > 0.0 {
            time = (time / (grain * horizon)).ceil().max(1.0) * grain * horizon;
        }
        time = time.max(horizon * 1e-9);
        let event = match (seen, cause && draw.chance(0.3)) {
            (true, _) => "1",
            (false, true) => "2",
            (false, false) => "0",
        };
        let _ = write!(out, "\n{i},{time},{event},{}", u8::from(arm));
        for (j, x) in x.iter().enumerate() {
            let value = match kinds[j] {
                0 => (scale * x).to_string(),
                1 => u8::from(*x > 0.5).to_string(),
                2 => ["I", "II", "III", "IV"][((x.abs() * 1.5) as usize).min(3)].to_string(),
                3 => x.round().to_string(),
                4 => "7".to_string(),
                5 => (scale * (1.5 * x).exp()).to_string(),
                _ => {
                    if draw.chance(0.02) {
                        "rare".into()
                    } else {
                        "usual".to_string()
                    }
                }
            };
            let is_gap = gaps && draw.chance(0.05);
            let _ = write!(out, ",{}", if is_gap { "" } else { &value });
        }
        if weights {
            let _ = write!(out, ",{}", 0.2 + 3.0 * draw.unit());
        }
        if cluster {
            let _ = write!(out, ",{}", draw.below(12));
        }
        if entry {
            let _ = write!(out, ",{}", if draw.chance(0.4) { 0.9 * time * draw.unit() } else { 0.0 });
        }
    }
    out.push('\n');
    let name = |is: bool, name: &str| is.then(|| name.to_string());
    // Constant columns are refused: most of the time they are left out, as their remedy says.
    let constant = (0..p).filter(|j| kinds[*j] == 4).map(|j| format!("x{j}"));
    let drop = if draw.chance(0.9) { constant.collect() } else { Vec::new() };
    let roles = Roles {
        time: "time".into(),
        event: "event".into(),
        treatment: "arm".into(),
        horizon,
        drop,
        missing: if gaps { draw.of(&[Missing::Drop, Missing::Indicator]) } else { Missing::Refuse },
        weights: name(weights, "w"),
        cluster: name(cluster, "c"),
        entry: name(entry, "from"),
        cause: name(cause, "1"),
        ..Roles::default()
    };
    (out, roles)
}

fn read(path: &Path) -> Result<ReadTable, dvim_io::read::ReadError> {
    read_table(path, &ReadOptions { default_id: Some("id".into()), threads: 1, ..ReadOptions::default() })
}

fn estimators(draw: &mut Draw) -> [(&'static str, Options); 2] {
    let folds = draw.of(&[2, 5]);
    let splits = Some(folds * draw.of(&[1, 1, 2]));
    let group_size = draw.of(&[None, None, Some(10)]);
    let adjusted = AdjustedOptions { splits, folds, group_size, ..AdjustedOptions::default() };
    let paper = Options { group_size: draw.of(&[5, 10, 20]), seed: draw.bits() % 1000, ..Options::paper() };
    let adjusted = Options { estimator: Estimator::Adjusted(adjusted), seed: draw.bits() % 1000, ..Options::default() };
    [("paper", paper), ("adjusted", adjusted)]
}

/// Random cohorts through both estimators with their audits.
fn cohorts(n: usize, first: u64) -> Outcome {
    let tally = Tally::default();
    let folder = tempfile::tempdir().expect("a folder");
    each(n, first, &tally, |seed| {
        let mut draw = Draw::new(seed);
        let (table, roles) = random_table(&mut draw);
        let path = folder.path().join(format!("{seed}.csv"));
        fs::write(&path, table).expect("a file");
        for (name, options) in estimators(&mut draw) {
            let input = Input::of_file(&path, read(&path).expect("a table that is in order"));
            let asked = Asked { by: Vec::new(), audit: true };
            match Analysed::new(input, &roles, &options, &asked, &Unwatched) {
                Ok(done) => {
                    tally.count(if name == "paper" { "estimated (paper)" } else { "estimated (adjusted)" });
                    look(&done, roles.horizon, &|w| tally.wrong(format!("seed {seed}, {name}: {w}")));
                }
                Err(error) => {
                    tally.count("refused");
                    well_said(&error, &|w| tally.wrong(format!("seed {seed}, {name}: {w}")));
                }
            }
        }
        let _ = fs::remove_file(&path);
    });
    tally.end("random cohorts, both estimators, with audit", n)
}

/// A refusal has a rule and a remedy, and is short.
fn well_said(error: &Error, wrong: &dyn Fn(String)) {
    let words = error.spelled(&Fields);
    if words.trim().is_empty() || words.len() > 60_000 {
        wrong(format!("a message of {} bytes", words.len()));
    }
    if matches!(error.cause(), Error::Refused(_)) && !(words.contains("rule:") && words.contains("remedy:")) {
        wrong(format!("no rule or remedy: {words}"));
    }
}

/// Everything that is shown of a run lies within its bounds, and no interval has no width.
fn look(done: &Analysed, horizon: f64, wrong: &dyn Fn(String)) {
    let mut bytes = Vec::new();
    let table = effect_table(&done.cohort, &done.found);
    write_effect_table(&mut bytes, &table, EffectsFormat::Csv).expect("memory");
    let text = String::from_utf8(bytes).expect("text");
    let mut lines = text.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    let place = |name: &str| header.iter().position(|h| *h == name);
    for row in lines {
        let at = |i: usize| if row[i].is_empty() { None } else { Some(row[i].parse::<f64>().unwrap_or(f64::NAN)) };
        for (i, name) in header.iter().enumerate() {
            let Some((least, most)) = bounds(name, horizon) else { continue };
            let value = at(i);
            if value.is_some_and(|v| !(least..=most).contains(&v)) {
                wrong(format!("patient {}: {name} is {}", row[0], row[i]));
            }
            let ends = place(&format!("{name}_low")).zip(place(&format!("{name}_high")));
            if let Some((low, high)) = ends.map(|(l, h)| (at(l), at(h))) {
                check_interval(&format!("patient {}: {name}", row[0]), value, low, high, (least, most), horizon, wrong);
            }
            let se = place(&format!("{name}_se")).and_then(at);
            if se.is_some_and(|se| !(se > 0.0 && se.is_finite())) {
                wrong(format!("patient {}: the standard error of {name} is {se:?}", row[0]));
            }
        }
    }
    let summary = done.summary();
    for a in &summary.average_effects {
        check_average(a, horizon, wrong);
    }
    let said = text::summary(&summary, &done.found, &done.cohort, Terminal::default(), &CommandLine);
    for word in ["NaN", "inf ", "inf)", "-0.0 ", "null"] {
        if said.contains(word) {
            wrong(format!("the summary says `{word}`"));
        }
    }
}

/// The bounds of a column of effects.csv; `None` where it has none.
fn bounds(name: &str, horizon: f64) -> Option<(f64, f64)> {
    // Sums of rounded numbers may pass a bound by their last digits.
    let h = horizon * (1.0 + 1e-12);
    match name {
        "cure_effect" | "cure_effect_model" | "cure_effect_matched" => Some((-1.0, 1.0)),
        "cure_treated" | "cure_control" | "cure_weight" | "time_weight" => Some((0.0, 1.0)),
        "mean_event_time_treated" | "mean_event_time_control" | "median_treated" | "median_control" => Some((0.0, h)),
        "rmst_treated" | "rmst_control" => Some((0.0, h)),
        "time_effect" | "time_effect_model" | "time_effect_matched" => Some((-h, h)),
        "rmst_effect" | "rmst_from_cure" | "rmst_from_time" => Some((-h, h)),
        _ => None,
    }
}

fn check_interval(
    what: &str,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    (least, most): (f64, f64),
    horizon: f64,
    wrong: &dyn Fn(String),
) {
    let slack = 1e-9 * horizon.max(1.0);
    match (value, low, high) {
        (_, None, None) => {}
        // A median has no upper end where the limit of the curve stays above a half up to the horizon.
        (Some(v), Some(l), None) if what.contains("median") => {
            if !(l >= least && l <= v + slack) {
                wrong(format!("{what}: {v} with {l} to no end"));
            }
        }
        (Some(v), Some(l), Some(h)) => {
            if !(l >= least && h <= most) {
                wrong(format!("{what}: interval {l} to {h} beyond {least} to {most}"));
            }
            if h <= l {
                wrong(format!("{what}: interval {l} to {h} without width"));
            }
            if !(l <= v + slack && v <= h + slack) {
                wrong(format!("{what}: {v} outside {l} to {h}"));
            }
        }
        _ => wrong(format!("{what}: {value:?} with {low:?} to {high:?}")),
    }
}

fn check_average(a: &AverageRecord, horizon: f64, wrong: &dyn Fn(String)) {
    let what = format!("average {} of {}", a.estimand, a.population);
    let all = [a.estimate, a.se, a.low, a.high];
    if all.iter().flatten().any(|v| !v.is_finite()) {
        wrong(format!("{what}: {all:?}"));
    }
    if let Some((least, most)) = bounds(&a.estimand, horizon) {
        if a.estimate.is_some_and(|v| !(least..=most).contains(&v)) {
            wrong(format!("{what} is {:?}", a.estimate));
        }
        check_interval(&what, a.estimate, a.low, a.high, (least, most), horizon, wrong);
    }
    if a.se.is_some_and(|se| se <= 0.0) {
        wrong(format!("{what}: standard error {:?}", a.se));
    }
}

/// Damages bytes: cuts, flips, insertions, removals, copies, words that mean something.
fn damaged(draw: &mut Draw, bytes: &[u8]) -> Vec<u8> {
    const WORDS: [&[u8]; 20] = [
        b"\"",
        b",",
        b"\n",
        b"\r",
        b"\0",
        b"NA",
        b"inf",
        b"-1",
        b"1e999",
        b"\xff",
        b"=1+1",
        b";",
        b"\xef\xbb\xbf",
        b"2020-02-31",
        b"00",
        b"0x1F",
        b"1,5",
        b"\xf0\x9f\x92\xa9",
        b"\x1b[2J",
        b"999999999999999999999",
    ];
    let mut out = bytes.to_vec();
    for _ in 0..1 + draw.below(4) {
        let at = draw.below(out.len() + 1);
        match draw.below(6) {
            0 => out.truncate(at),
            1 if at < out.len() => out[at] ^= 1 << draw.below(8),
            2 => drop(out.splice(at..at, draw.of(&WORDS).iter().copied())),
            3 => drop(out.drain(at..(at + 1 + draw.below(30)).min(out.len()))),
            4 => {
                let piece = out[at..(at + draw.below(200)).min(out.len())].to_vec();
                out.splice(at..at, piece);
            }
            _ => {
                let end = (at + draw.below(12)).min(out.len());
                out.splice(at..end, draw.of(&WORDS).iter().copied());
            }
        }
    }
    out
}

/// Malformed tables from the file to the estimates.
fn tables(n: usize, first: u64) -> Outcome {
    let tally = Tally::default();
    let folder = tempfile::tempdir().expect("a folder");
    each(n, first, &tally, |seed| {
        let mut draw = Draw::new(seed);
        let (table, roles) = random_table(&mut draw);
        let bytes = damaged(&mut draw, table.as_bytes());
        let path = folder.path().join(format!("{seed}.csv"));
        fs::write(&path, bytes).expect("a file");
        let wrong = |w: String| tally.wrong(format!("seed {seed}: {w}"));
        match read(&path) {
            Err(error) => {
                tally.count("refused by the reader");
                let words = error.to_string();
                if words.is_empty() || words.len() > 20_000 {
                    wrong(format!("a message of {} bytes", words.len()));
                }
            }
            Ok(found) => {
                let options = Options { group_size: 5, ..Options::paper() };
                let asked = Asked { by: Vec::new(), audit: false };
                match Analysed::new(Input::of_file(&path, found), &roles, &options, &asked, &Unwatched) {
                    Ok(done) => {
                        tally.count("still a table, estimated");
                        look(&done, roles.horizon, &wrong);
                    }
                    Err(error) => {
                        tally.count("refused at the door");
                        well_said(&error, &wrong);
                    }
                }
            }
        }
        let _ = fs::remove_file(&path);
    });
    tally.end("malformed tables", n)
}

/// Damaged runs: what a file of a run became, and whether anybody noticed.
fn runs(n: usize, first: u64) -> Outcome {
    let tally = Tally::default();
    let folder = tempfile::tempdir().expect("a folder");
    let cohort = simulate(Scenario::BothOverlap, 120, false, 3).cohort;
    let few = AdjustedOptions { splits: Some(4), folds: 2, group_size: Some(12), ..AdjustedOptions::default() };
    let mut good = Vec::new();
    let digest = |bytes: &[u8]| Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect::<String>();
    for (name, options) in [
        ("paper", Options { group_size: 5, ..Options::paper() }),
        ("adjusted", Options { estimator: Estimator::Adjusted(few), ..Options::default() }),
    ] {
        let found = analysis::run(&cohort, &options, &Unwatched).expect("a run");
        let audit = Audit::of(&cohort, &found, &[]).expect("an audit");
        let origin = Origin {
            input: InputRecord { file: "t.csv".into(), sha256: String::new(), n_bytes: 1, n_rows: 120 },
            roles: RolesRecord::simulated(&cohort),
            flow: &Flow { n_rows: 120, steps: Vec::new() },
            warnings: &[],
            format: EffectsFormat::Csv,
        };
        let target = folder.path().join(name);
        write_run(&target, false, &cohort, &found, &audit, origin).expect("written");
        let files = ["summary.json", "run.dvim", "effects.csv", "weights.csv"];
        good.push(files.map(|f| (f, fs::read(target.join(f)).expect("a file"))));
    }
    each(n, first, &tally, |seed| {
        let mut draw = Draw::new(seed);
        let files = &good[draw.below(2)];
        let hit = draw.below(files.len());
        let place = folder.path().join(format!("damaged-{seed}"));
        fs::create_dir(&place).expect("a folder");
        let is_gone = draw.chance(0.05);
        // Half of the damage is by somebody who mends every digest afterwards.
        let is_forged = !is_gone && draw.chance(0.5);
        let mut now: Vec<Vec<u8>> = files.iter().map(|(_, bytes)| bytes.clone()).collect();
        let before = now[hit].clone();
        while !is_gone && now[hit] == before {
            now[hit] = damaged(&mut draw, &before);
        }
        if is_forged {
            if files[hit].0 == "run.dvim" {
                let body = now[hit].len().saturating_sub(32);
                now[hit].truncate(body);
                let sum = Sha256::digest(&now[hit]);
                now[hit].extend_from_slice(&sum);
            }
            let summary = String::from_utf8_lossy(&now[0]).replace(&digest(&before), &digest(&now[hit]));
            now[0] = mended(&summary).into_bytes();
        }
        for (i, ((name, _), bytes)) in files.iter().zip(&now).enumerate() {
            if i != hit || !is_gone {
                fs::write(place.join(name), bytes).expect("a file");
            }
        }
        match (open_run(&place), files[hit].0) {
            (Err(e), _) if e.to_string().is_empty() => tally.wrong(format!("seed {seed}: silent")),
            (Err(_), _) => tally.count("refused"),
            (Ok(run), _) if is_forged => {
                // Who forges a whole run is believed; what is shown of it is shown without a panic.
                let found = analysis::Analysis::reopened(run.fit, &run.corrected, run.stored, &run.cohort, &Unwatched);
                if let Ok(found) = found {
                    let _ = text::summary(&run.summary, &found, &run.cohort, Terminal::default(), &CommandLine);
                }
                tally.count("forged and shown");
            }
            (Ok(run), name @ ("effects.csv" | "weights.csv")) if run.changed.is_empty() => {
                tally.wrong(format!("seed {seed}: {name} was changed, and nobody noticed"));
            }
            (Ok(_), "run.dvim") => tally.wrong(format!("seed {seed}: a damaged store was opened")),
            (Ok(_), "summary.json") => tally.wrong(format!("seed {seed}: an edited summary was opened")),
            (Ok(_), _) => tally.count("opened, and the changed file named"),
        }
        let _ = fs::remove_dir_all(&place);
    });
    tally.end("damaged runs", n)
}

/// Hostile requests to a server that listens, with and without the token.
fn requests(n: usize, first: u64) -> Outcome {
    let tally = Tally::default();
    let cohort = simulate(Scenario::BothOverlap, 200, false, 3).cohort;
    let found = analysis::run(&cohort, &Options { group_size: 10, ..Options::paper() }, &Unwatched).expect("a run");
    let audit = Audit::of(&cohort, &found, &[]).expect("an audit");
    let input = InputRecord { file: "t.csv".into(), sha256: String::new(), n_bytes: 1, n_rows: 200 };
    let flow = Flow { n_rows: 200, ..Flow::default() };
    let source = Source { input, roles: RolesRecord::simulated(&cohort), flow: &flow, warnings: &[] };
    let summary = Summary::of(&cohort, &found, &audit, source, BTreeMap::new());
    let ground = Ground::of_fit(&found.fit, &cohort).expect("groups");
    let explorer = Explorer::new(&cohort, &found, &summary, &ground);
    let server = Server::bind(None).expect("a port");
    let address = server.address();
    let (place, token) = address.trim_start_matches("http://").split_once("/?token=").expect("an address");
    let stop = server.stop();
    let ask = |bytes: &[u8]| -> Option<u16> {
        let mut stream = TcpStream::connect(place).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(15))).ok()?;
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        std::str::from_utf8(answer.get(9..12)?).ok()?.parse().ok()
    };
    let values: Vec<String> = cohort.names().iter().map(|n| format!("\"{n}\": 0.5")).collect();
    let body = format!("{{\"values\": {{{}}}, \"k\": 12}}", values.join(","));
    let targets = [
        "GET /",
        "GET /api/run",
        "GET /report",
        "GET /api/patients?sort=cure_effect&n=20&filter=x1%3E0",
        "HEAD /app.js",
        "GET /api/patient/7?k=8&h=500&w=300&group=time-control",
        "GET /api/plane?filter=x1%3C0.5",
        "POST /api/new",
    ];
    std::thread::scope(|scope| {
        let served = scope.spawn(|| server.serve(&explorer));
        each(n, first, &tally, |seed| {
            let mut draw = Draw::new(seed);
            let target = draw.of(&targets);
            let knows = draw.chance(0.6);
            let secret = if knows { format!("Authorization: Bearer {token}\r\n") } else { String::new() };
            let content = if target.starts_with("POST") { body.as_str() } else { "" };
            let host = if draw.chance(0.9) { place } else { "evil.example" };
            let plain = format!(
                "{target} HTTP/1.1\r\nHost: {host}\r\n{secret}Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{content}",
                content.len()
            );
            let bytes = if draw.chance(0.9) { damaged(&mut draw, plain.as_bytes()) } else { plain.into_bytes() };
            let has_token = bytes.windows(token.len()).any(|w| w == token.as_bytes());
            match ask(&bytes) {
                None => tally.count("closed without an answer"),
                Some(200) if !has_token => tally.wrong(format!("seed {seed}: answered without the token")),
                Some(200) => tally.count("answered"),
                Some(400..=499) => tally.count("refused"),
                Some(status) => tally.wrong(format!("seed {seed}: status {status}")),
            }
        });
        let still = format!(
            "GET /api/run HTTP/1.1\r\nHost: {place}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        if ask(still.as_bytes()) != Some(200) {
            tally.wrong("the server answers no more".into());
        }
        stop.stop();
        served.join().expect("a server that ends").expect("no error of the socket");
        tally.end("hostile requests", n)
    })
}
