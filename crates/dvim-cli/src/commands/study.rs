//! `dvim study`: the paper's simulation study.

use super::use_threads;
use crate::args::{StudyArgs, StudyPart};
use crate::progress::Lines;
use crate::{Failure, print, say};
use dvim_io::atomic::named;
use dvim_io::journal::{Journal, JournalError};
use dvim_io::manifest::Growing;
use dvim_report::spell::CommandLine;
use dvim_study::page::{self, Contents};
use dvim_study::paper::Table;
use dvim_study::record::{Record, Settings};
use dvim_study::runner::{self, FEWEST_UNITS, Stopped};
use dvim_study::table::Records;
use dvim_study::{accuracy, consistency, coverage, curves, dataset, decomposition, table, verdict, weights};
use std::fs;
use std::path::Path;

/// What data sets are kept in.
const JOURNAL: &str = "results.jsonl";

/// The files that it writes, figures apart.
const NAMES: [&str; 20] = [
    "main.csv",
    "main.md",
    "k100.csv",
    "k100.md",
    "confounded.csv",
    "confounded.md",
    "decomposition.csv",
    "decomposition.md",
    "consistency.csv",
    "weights.csv",
    "weights-bound.csv",
    "accuracy.csv",
    "accuracy.md",
    "coverage.csv",
    "coverage.md",
    "coverage_curves.csv",
    "coverage_curves.md",
    "verdict.csv",
    "verdict.md",
    "study.html",
];

pub fn run(args: &StudyArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    refuse_bad(args)?;
    let settings = Settings::new(args.seed, args.n);
    let (directory, mut journal, records) = open(&args.output, &settings)?;
    let wants = |part: StudyPart| args.part == part || (args.part == StudyPart::All && !part.is_beyond_the_paper());
    let mut jobs = Vec::new();
    let tables =
        [(StudyPart::Main, Table::Main), (StudyPart::K100, Table::K100), (StudyPart::Confounded, Table::Confounded)];
    let tables: Vec<Table> = tables.into_iter().filter(|(part, _)| wants(*part)).map(|(_, table)| table).collect();
    tables.iter().for_each(|t| jobs.extend(runner::table_jobs(&settings, *t, args.reps)));
    if wants(StudyPart::Decomposition) {
        jobs.extend(runner::table_jobs(&settings, Table::Main, args.reps));
    }
    if wants(StudyPart::Consistency) {
        jobs.extend(consistency::jobs(args.reps));
    }
    if wants(StudyPart::Weights) {
        jobs.extend(weights::jobs(&settings, args.reps));
    }
    if wants(StudyPart::Accuracy) {
        jobs.extend(accuracy::jobs(&settings, args.reps));
    }
    if wants(StudyPart::Coverage) {
        jobs.extend(coverage::jobs(&settings, args.reps));
    }
    if wants(StudyPart::Verdict) {
        jobs.extend(verdict::jobs(&settings, args.reps));
    }
    let lines = Lines::new();
    let n_before = records.len();
    let records =
        runner::run(&settings, jobs, records, |record| journal.append(&record.to_line()), &lines).map_err(stopped)?;
    let (n_new, seconds) = (records.len() - n_before, lines.seconds());

    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let mut add = |name: &str, bytes: &[u8]| files.push((name.to_string(), bytes.to_vec()));
    let mut shown = String::new();
    let contents = contents(args, &settings, &records, &tables)?;
    for (table, entries) in &contents.tables {
        if tables.contains(table) {
            add(&format!("{}.csv", table.name()), &table::csv(entries));
            add(&format!("{}.md", table.name()), table::markdown(&settings, *table, entries).as_bytes());
            shown += &format!("{}\n", table::text(&settings, *table, entries));
        }
    }
    if wants(StudyPart::Decomposition) {
        add("decomposition.csv", &decomposition::csv(&contents.decomposition));
        add("decomposition.md", decomposition::markdown(&contents.decomposition).as_bytes());
        shown += &format!("{}\n", decomposition::text(&contents.decomposition));
    }
    if wants(StudyPart::Consistency) {
        add("consistency.csv", &page::consistency_csv(&contents.consistency));
        shown += &page::consistency_text(&contents.consistency);
    }
    if wants(StudyPart::Weights) {
        add("weights.csv", &page::weights_csv(&contents.weights));
        add("weights-bound.csv", &page::bounds_csv(&contents.bounds));
        shown += &page::weights_text(&contents.bounds, &contents.weights);
    }
    if wants(StudyPart::Accuracy) {
        let rows = accuracy::rows(&settings, &records, args.reps);
        add("accuracy.csv", &accuracy::csv(&settings, &rows));
        add("accuracy.md", accuracy::markdown(&settings, &rows).as_bytes());
        shown += &accuracy::text(&settings, &rows);
    }
    if wants(StudyPart::Coverage) {
        let rows = coverage::rows(&settings, &records, args.reps);
        add("coverage.csv", &coverage::csv(&settings, &rows));
        add("coverage.md", coverage::markdown(&settings, &rows).as_bytes());
        shown += &coverage::text(&settings, &rows);
        let rows = curves::rows(&settings, &records, args.reps);
        add("coverage_curves.csv", &curves::csv(&settings, &rows));
        add("coverage_curves.md", curves::markdown(&settings, &rows).as_bytes());
        shown += "\n";
        shown += &curves::text(&settings, &rows);
    }
    if wants(StudyPart::Verdict) {
        let rows = verdict::rows(&settings, &records, args.reps);
        add("verdict.csv", &verdict::csv(&rows));
        add("verdict.md", verdict::markdown(&settings, &rows).as_bytes());
        shown += &verdict::text(&settings, &rows);
    }
    for figure in contents.figures() {
        add(&format!("{}.svg", figure.name), figure.svg.as_bytes());
    }
    add("study.html", page::study_page(&settings, &contents).as_bytes());
    directory.write(&files)?;
    print(&shown)?;
    let old = if n_before > 0 { format!(", {n_before} were there") } else { String::new() };
    say(&format!("{n_new} data sets in {seconds:.1} s{old}; written to {}", args.output.display()));
    Ok(())
}

fn refuse_bad(args: &StudyArgs) -> Result<(), Failure> {
    let (group, fewest) = match args.part {
        StudyPart::Accuracy => (accuracy::group_size(args.n), accuracy::FEWEST_UNITS),
        _ => (100, FEWEST_UNITS),
    };
    let text = if args.reps == 0 {
        "error: --reps is 0\n  rule:   a table rests on data sets\n  remedy: use --reps 20; the paper has 300"
            .to_string()
    } else if args.n < fewest {
        format!(
            "error: --n is {}\n  rule:   groups of {group} units need data sets of at least {fewest}\n  remedy: leave it out for the paper's 20000",
            args.n
        )
    } else {
        return Ok(());
    };
    Err(Failure::Input(text))
}

/// Opens what was done before; a directory that is something else is left alone.
fn open(directory: &Path, settings: &Settings) -> Result<(Growing, Journal, Records), Failure> {
    let place = directory.display();
    let journal = directory.join(JOURNAL);
    let is_other = match directory.symlink_metadata() {
        Err(_) => false,
        Ok(_) if !directory.is_dir() => true,
        Ok(_) if journal.is_file() => false,
        Ok(_) => fs::read_dir(directory).map_err(named(directory, "listed"))?.next().is_some(),
    };
    if is_other {
        return Err(Failure::Input(format!(
            "error: `{place}` exists and is not a study\n  rule:   a study is written into a directory of its own\n  remedy: choose another name with -o"
        )));
    }
    // A file that may not be written is said at once, not after the work.
    let growing = Growing::open(directory, "study", &NAMES)?;
    let line = serde_json::to_string(settings).map_err(|e| Failure::Other(format!("error: {e}")))?;
    let (journal, lines) = Journal::open(&journal, &line).map_err(|e| match e {
        JournalError::OtherSettings { found, .. } => Failure::Input(format!(
            "error: `{place}` holds data sets of another study: {found}\n  rule:   data sets of one table have the same seed, size and version of dvim; asked for was {line}\n  remedy: use the same --seed and --n to go on with it, or another directory with -o"
        )),
        JournalError::InUse(_) => Failure::Input(format!(
            "error: `{place}` is in use by another process\n  rule:   one process at a time adds to a study\n  remedy: wait for it, or use another directory with -o"
        )),
        JournalError::Io(path, e) => Failure::Other(format!("error: `{}`: {e}", path.display())),
    })?;
    let mut records = Records::new();
    for (i, line) in lines.iter().enumerate() {
        let record = Record::from_line(line).ok_or_else(|| {
            Failure::Input(format!(
                "error: line {} of `{place}/{JOURNAL}` is not a record\n  rule:   each line is one data set, written whole\n  remedy: delete that line to have its data set done again",
                i + 2
            ))
        })?;
        records.insert(record.key.clone(), record);
    }
    Ok((growing, journal, records))
}

fn stopped(why: Stopped<std::io::Error>) -> Failure {
    match why {
        Stopped::Job(key, e) => Failure::Other(format!("error: data set {key}: {}", e.spelled(&CommandLine))),
        Stopped::Keep(e) => Failure::from(e),
        Stopped::Cancelled => {
            Failure::Other("error: stopped\n  remedy: the same command goes on where it stopped".into())
        }
    }
}

/// Everything that the records allow to be shown, whichever command made them.
fn contents(args: &StudyArgs, settings: &Settings, records: &Records, asked: &[Table]) -> Result<Contents, Failure> {
    let tables = Table::ALL.map(|t| (t, table::entries(settings, records, t, args.reps)));
    let tables: Vec<_> = tables.into_iter().filter(|(_, entries)| !entries.is_empty()).collect();
    let mut table_figures = vec![page::concept()];
    if asked.contains(&Table::Main) {
        let found = dataset::estimate(settings, &page::box_job(settings), [dataset::GROUP_SIZES[0]])?;
        table_figures.push(page::boxes(&found));
    }
    if settings.n_units == 20_000 {
        table_figures.extend(page::ratio_figure(&tables));
    }
    let consistency = page::consistency_lines(records, args.reps);
    let weights = page::weights_rows(settings, records, args.reps);
    Ok(Contents {
        decomposition: decomposition::decompose(settings, records, args.reps),
        consistency_figures: page::consistency_figures(&consistency),
        bounds: if weights.is_empty() { Vec::new() } else { weights::try_bounds(settings.seed) },
        weights_figures: page::weights_figures(&weights),
        table_figures,
        tables,
        consistency,
        weights,
    })
}
