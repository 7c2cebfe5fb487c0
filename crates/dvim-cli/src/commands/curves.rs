//! `dvim curves`: survival curves of a run as a table, of the arms or of patients.

use super::{open_run, paths, use_threads};
use crate::args::CurvesArgs;
use crate::progress::Progress;
use crate::{Failure, print_data, say};
use dvim::internal::analysis::Analysis;
use dvim::internal::audit::Audit;
use dvim_io::atomic::{Access, NewFile};
use dvim_io::tasks::CurvesAsked;

pub fn run(args: &CurvesArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let own = dvim_io::run::files_of(&args.run);
    let plan = |file| NewFile::plan(file, args.force, Access::Owner, &paths(&own));
    let file = args.output.as_deref().map(plan).transpose()?;
    let progress = Progress::new();
    let run = open_run(&args.run)?;
    let asked = CurvesAsked { patients: args.patients.clone(), at: args.at.clone(), by: args.by.by() };
    let kept = run.summary.audit.as_ref().map_or(&[][..], |a| &a.curves[..]);
    let cohort = &run.cohort;
    let audit = |by: &[_]| {
        let analysis = Analysis::from_fit_for_audit(run.fit.clone(), &run.corrected, cohort, &progress)?;
        Audit::of(cohort, &analysis, by)
    };
    let mut table = Vec::new();
    let left_out = asked.write(&mut table, cohort, &run.fit, |i| run.corrected.get(i), kept, audit)?;
    left_out.iter().for_each(|words| say(words));
    match (file, &args.output) {
        (Some(file), Some(name)) => {
            file.write(|out| out.write_all(&table))?;
            say(&format!("written to {}", name.display()));
            Ok(())
        }
        _ => print_data(&table),
    }
}
