//! `dvim fit`: both effects of each patient.

use super::{file_name, read_cohort_table, use_threads};
use crate::args::FitArgs;
use crate::progress::Progress;
use crate::{Failure, print, say};
use dvim::analysis;
use dvim::audit::Audit;
use dvim::cohort::{Arm, Cohort};
use dvim_io::memory::{available, forecast_shape};
use dvim_io::run::{begin_run, write_run};
use dvim_report::record::{ByArm, InputRecord, RolesRecord};
use dvim_report::text;

pub fn run(args: &FitArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let progress = Progress::new();
    // A directory that may not be written is said at once, not after the work.
    drop(begin_run(&args.output, args.force)?);
    let roles = args.roles.roles();
    let options = args.method.options();
    refuse_too_large(args)?;
    let read = read_cohort_table(&args.table, &roles, args.threads.threads, &progress)?;
    let id = roles.id_column(read.table.columns().iter().map(|c| c.name.as_str())).map(str::to_string);
    let (cohort, mut warnings) = Cohort::from_table(&read.table, &roles)?;
    let n_rows = read.table.n_rows();
    drop(read.table);
    warnings.extend(options.problems(Arm::BOTH.map(|z| cohort.units_of(z).len())));
    let found = analysis::run(&cohort, &options, &progress)?;
    let audit = Audit::of(&cohort, &found, &args.by.by())?;
    let input = InputRecord { file: file_name(&args.table), sha256: read.sha256, n_bytes: read.n_bytes, n_rows };
    let roles = RolesRecord {
        time: roles.time,
        event: roles.event,
        treatment: roles.treatment,
        id,
        covariates: cohort.names().to_vec(),
        labels: ByArm::map(|z| cohort.label(z).to_string()),
    };
    let summary = write_run(&args.output, args.force, &cohort, &found, &audit, input, roles, &warnings)?;
    for w in &warnings {
        say(&w.to_string());
    }
    print(&text::summary(&summary, &found, &cohort))?;
    say(&format!("written to {} in {:.2} s", args.output.display(), progress.seconds()));
    Ok(())
}

/// Says at once that a run cannot fit into memory, and what would.
fn refuse_too_large(args: &FitArgs) -> Result<(), Failure> {
    let (Some(shape), Some(available)) = (forecast_shape(&args.table), available()) else { return Ok(()) };
    let p = args.roles.covariates.as_ref().map_or(shape.n_columns, Vec::len);
    let needed = |n: usize| analysis::memory_needed(n, p.max(1), args.method.train_fraction);
    if needed(shape.n_rows) <= available {
        return Ok(());
    }
    let fits = (shape.n_rows as f64 * available as f64 / needed(shape.n_rows) as f64) as usize;
    let giga = |bytes: u64| bytes as f64 / 1e9;
    Err(Failure::Input(format!(
        "error: `{}` has about {} rows and {} columns; the run would need {:.1} GB of memory, and {:.1} GB are free\n  rule:   the cohort is held in memory\n  remedy: about {} rows would fit; take fewer covariates with --covariates, a random part of the rows, or a larger machine",
        args.table.display(),
        text::grouped(shape.n_rows),
        shape.n_columns,
        giga(needed(shape.n_rows)),
        giga(available),
        text::grouped(fits)
    )))
}
