//! `dvim predict`: both effects of patients who were not in the cohort.

use super::{open_run, paths, refuse_same, use_threads};
use crate::args::PredictArgs;
use crate::progress::Progress;
use crate::{Failure, print_data, say};
use dvim_io::atomic::{Access, NewFile};
use dvim_io::read::{ReadOptions, read_table};
use dvim_io::run::write_effect_table;
use dvim_io::tasks::{Predicted, no_line_end, read_options_new};
use dvim_report::spell::CommandLine;
use std::path::PathBuf;

pub fn run(args: &PredictArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let progress = Progress::new();
    // A file that may not be written is said at once, not after the work.
    let mut inputs = dvim_io::run::files_of(&args.run);
    inputs.push(args.table.clone());
    let plan = |file: &Option<PathBuf>| {
        file.as_ref().map(|f| NewFile::plan(f, args.force, Access::Owner, &paths(&inputs))).transpose()
    };
    let (output, groups) = (plan(&args.output)?, plan(&args.groups)?);
    refuse_same([&output, &groups], ["--output", "--groups"])?;
    let run = open_run(&args.run)?;
    let (cohort, fit) = (&run.cohort, &run.fit);
    let options = ReadOptions {
        threads: args.threads.threads.unwrap_or(0),
        ..read_options_new(cohort, &run.summary.roles, args.id.as_deref())
    };
    let read = read_table(&args.table, &options)?;
    if read.without_line_end {
        say(&no_line_end(read.table.n_rows()).spelled(&CommandLine));
    }
    let table = read.table;
    let found = Predicted::new(cohort, fit, &table, args.id.as_deref(), args.max_distance, &progress)?;
    let mut bytes = Vec::new();
    write_effect_table(&mut bytes, &found.table(cohort, fit), args.format)?;
    if let Some(file) = groups {
        file.write(|mut out| found.write_members(&mut out, cohort, fit))?;
    }
    match output {
        Some(file) => file.write(|out| out.write_all(&bytes))?,
        None => print_data(&bytes)?,
    }
    let (n, far, unserved) = (found.n(), found.n_far(), found.n_unserved());
    if let (Some(d), true) = (args.max_distance, far > 0) {
        say(&format!("{far} of {n} patients have no estimate: a group reaches beyond --max-distance {d}"));
    }
    let (outside, columns) = found.off_support();
    if outside > 0 {
        say(&format!(
            "{outside} of {n} patients have a value outside what the cohort has seen (flag off_support), in: {}",
            columns.join(", ")
        ));
    }
    if unserved > 0 {
        say(&format!(
            "{unserved} of {n} patients have no estimate: too few candidates satisfy the constraints of the run"
        ));
    }
    say(&format!("{n} patients in {:.3} s", progress.seconds()));
    Ok(())
}
