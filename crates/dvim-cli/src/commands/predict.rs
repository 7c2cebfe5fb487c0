//! `dvim predict`: both effects of patients who were not in the cohort.

use super::{open_run, use_threads};
use crate::args::PredictArgs;
use crate::progress::Progress;
use crate::{Failure, say};
use dvim_io::atomic::write_file;
use dvim_io::read::{ReadOptions, read_table};
use dvim_io::run::write_effect_table;
use dvim_io::tasks::{Predicted, read_options_new};
use std::io::Write;

pub fn run(args: &PredictArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let progress = Progress::new();
    let run = open_run(&args.run)?;
    let (cohort, fit) = (&run.cohort, &run.fit);
    let options = ReadOptions {
        threads: args.threads.threads.unwrap_or(0),
        ..read_options_new(cohort, &run.summary.roles, args.id.as_deref())
    };
    let table = read_table(&args.table, &options)?.table;
    let found = Predicted::new(cohort, fit, &table, args.id.as_deref(), args.max_distance, &progress)?;
    let mut bytes = Vec::new();
    write_effect_table(&mut bytes, &found.table(cohort, fit), args.format.format())?;
    if let Some(file) = &args.groups {
        write_file(file, args.force, |mut out| found.write_members(&mut out, cohort, fit))?;
    }
    match &args.output {
        Some(file) => write_file(file, args.force, |out| out.write_all(&bytes))?,
        None => {
            let mut out = std::io::stdout().lock();
            out.write_all(&bytes)?;
            out.flush()?;
        }
    }
    let (n, far, unserved) = (found.n(), found.n_far(), found.n_unserved());
    if let (Some(d), true) = (args.max_distance, far > 0) {
        say(&format!("{far} of {n} patients have no estimate: a group reaches beyond --max-distance {d}"));
    }
    if unserved > 0 {
        say(&format!(
            "{unserved} of {n} patients have no estimate: too few candidates satisfy the constraints of the run"
        ));
    }
    say(&format!("{n} patients in {:.3} s", progress.seconds()));
    Ok(())
}
