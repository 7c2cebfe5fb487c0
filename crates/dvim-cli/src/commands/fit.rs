//! `dvim fit`: both effects of each patient.

use super::report::write_page;
use super::{file_name, read_cohort_table, use_threads};
use crate::args::{EstimatorArg, FitArgs, GroupSize};
use crate::progress::Progress;
use crate::{Failure, print, say};
use dvim::analysis::{self, Analysis, Options};
use dvim::audit::Audit;
use dvim::audit::average::By;
use dvim::cohort::{Admitted, Arm, Cohort, Flow, Roles};
use dvim::error::Problem;
use dvim_io::atomic::may_write;
use dvim_io::memory::{available, forecast_shape};
use dvim_io::read::ReadTable;
use dvim_io::run::{EffectsFormat, Origin, begin_run, write_run};
use dvim_report::record::{InputRecord, RolesRecord};
use dvim_report::text;
use std::path::Path;

/// What is wanted besides the effects.
pub struct Asked {
    /// Average effects by these covariates too.
    pub by: Vec<By>,
    /// The audit.
    pub audit: bool,
}

/// A table that was analysed.
pub struct Analysed {
    pub cohort: Cohort,
    pub found: Analysis,
    pub audit: Audit,
    flow: Flow,
    warnings: Vec<Problem>,
    input: InputRecord,
    roles: RolesRecord,
}

impl Analysed {
    /// Analyses a table that was read from a file.
    pub fn new(
        file: &Path,
        read: ReadTable,
        roles: &Roles,
        options: &Options,
        asked: &Asked,
        progress: &Progress,
    ) -> Result<Analysed, Failure> {
        let id = roles.id_column(read.table.columns().iter().map(|c| c.name.as_str())).map(str::to_string);
        let Admitted { cohort, mut warnings, flow } = Cohort::admit(&read.table, roles)?;
        let n_rows = read.table.n_rows();
        drop(read.table);
        warnings.extend(options.problems(Arm::BOTH.map(|z| cohort.units_of(z).len())));
        let run = if asked.audit { analysis::run_for_audit } else { analysis::run };
        let mut found = run(&cohort, options, progress)?;
        warnings.extend(found.fit.level_problems(&cohort));
        let audit = if asked.audit { Audit::of } else { Audit::not_asked }(&cohort, &found, &asked.by)?;
        found.groups = None;
        let input = InputRecord { file: file_name(file), sha256: read.sha256, n_bytes: read.n_bytes, n_rows };
        let roles = RolesRecord::of(roles, id.as_deref(), &cohort);
        Ok(Analysed { cohort, found, audit, flow, warnings, input, roles })
    }

    /// Where it came from, for its run.
    pub fn origin(&self, format: EffectsFormat) -> Origin<'_> {
        Origin {
            input: self.input.clone(),
            roles: self.roles.clone(),
            flow: &self.flow,
            warnings: &self.warnings,
            format,
        }
    }
}

pub fn run(args: &FitArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let progress = Progress::new();
    // A directory that may not be written is said at once, not after the work.
    drop(begin_run(&args.output, args.force)?);
    // A report may go into the run itself, which does not exist yet.
    if let Some(file) = args.report.as_ref().filter(|f| f.parent() != Some(&args.output)) {
        may_write(file, args.force)?;
    }
    let roles = args.roles.roles();
    if args.method.group_size == Some(GroupSize::Auto) && args.method.estimator == EstimatorArg::Paper {
        return Err(Failure::Input(
            "error: --group-size auto with --estimator paper\n  rule:   the paper's estimator takes K as given\n  remedy: give a number, or add --estimator adjusted".into(),
        ));
    }
    refuse_too_large(args)?;
    let read = read_cohort_table(&args.table, &roles, args.threads.threads, &progress)?;
    let asked = Asked { by: args.by.by(), audit: !args.no_audit };
    let done = Analysed::new(&args.table, read, &roles, &args.method.options(), &asked, &progress)?;
    let origin = done.origin(args.format.format());
    let summary = write_run(&args.output, args.force, &done.cohort, &done.found, &done.audit, origin)?;
    if let Some(file) = &args.report {
        write_page(file, args.force, &args.page, &done.cohort, &done.found, &summary)?;
    }
    for w in &done.warnings {
        say(&w.to_string());
    }
    print(&text::summary(&summary, &done.found, &done.cohort))?;
    say(&format!("written to {} in {:.2} s", args.output.display(), progress.seconds()));
    Ok(())
}

/// Says at once that a run cannot fit into memory, and what would.
fn refuse_too_large(args: &FitArgs) -> Result<(), Failure> {
    let (Some(shape), Some(available)) = (forecast_shape(&args.table), available()) else { return Ok(()) };
    let p = args.roles.covariates.as_ref().map_or(shape.n_columns, Vec::len);
    let options = args.method.options();
    let needed = |n: usize| analysis::memory_needed(n, p.max(1), &options, !args.no_audit);
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
