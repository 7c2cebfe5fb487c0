//! `dvim fit`: both effects of each patient.

use super::{file_name, read_cohort_table, use_threads};
use crate::args::FitArgs;
use crate::progress::Progress;
use crate::{Failure, print, say};
use dvim::analysis;
use dvim::cohort::{Admitted, Arm, Cohort};
use dvim_io::run::{Origin, begin_run, write_run};
use dvim_report::record::{InputRecord, RolesRecord};
use dvim_report::text;

pub fn run(args: &FitArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let progress = Progress::new();
    // A directory that may not be written is said at once, not after the work.
    drop(begin_run(&args.output, args.force)?);
    let roles = args.roles.roles();
    let options = args.method.options();
    let read = read_cohort_table(&args.table, &roles, args.threads.threads)?;
    let id = roles.id_column(read.table.columns().iter().map(|c| c.name.as_str())).map(str::to_string);
    let Admitted { cohort, mut warnings, flow } = Cohort::admit(&read.table, &roles)?;
    let n_rows = read.table.n_rows();
    drop(read.table);
    warnings.extend(options.problems(Arm::BOTH.map(|z| cohort.units_of(z).len())));
    let found = analysis::run(&cohort, &options, &progress)?;
    warnings.extend(found.fit.level_problems(&cohort));
    let input = InputRecord { file: file_name(&args.table), sha256: read.sha256, n_bytes: read.n_bytes, n_rows };
    let roles = RolesRecord::of(&roles, id.as_deref(), &cohort);
    let summary = write_run(&args.output, args.force, &cohort, &found, Origin { input, roles, flow: &flow, warnings: &warnings })?;
    for w in &warnings {
        say(&w.to_string());
    }
    print(&text::summary(&summary, &found, &cohort))?;
    say(&format!("written to {} in {:.2} s", args.output.display(), progress.seconds()));
    Ok(())
}
