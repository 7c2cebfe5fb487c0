//! `dvim rehearse`: how far off an analysis is in cohorts like this one.

use super::{open_run, paths, refuse_same, use_threads};
use crate::args::RehearseArgs;
use crate::progress::Progress;
use crate::{Failure, print, say};
use dvim::internal::analysis::Analysis;
use dvim::internal::rehearsal::Rehearsal;
use dvim_io::atomic::{Access, NewFile};
use dvim_report::rehearsal::{csv, figure, records, sentences, words};
use dvim_report::report::Page;

/// Width of the figure in pixels.
const WIDTH: f64 = 680.0;

pub fn run(args: &RehearseArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let own = dvim_io::run::files_of(&args.run);
    let plan = |file| NewFile::plan(file, args.force, Access::Owner, &paths(&own));
    let table = args.output.as_deref().map(plan).transpose()?;
    let picture = args.figure.as_deref().map(plan).transpose()?;
    refuse_same([&table, &picture], ["--output", "--figure"])?;
    let progress = Progress::new();
    let run = open_run(&args.run)?;
    let cohort = &run.cohort;
    let page = Page { time_unit: args.time_unit.clone(), ..Page::default() };
    let unit = page.names(&run.summary).unit;
    let analysis = Analysis::reopened(run.fit, &run.corrected, run.stored, cohort, &progress)?;
    let found = Rehearsal::of(cohort, &analysis, args.repeats as usize, &progress)?;
    for (file, name, bytes) in
        [(table, &args.output, csv(&found)), (picture, &args.figure, figure(&found, WIDTH, &unit).into_bytes())]
    {
        if let (Some(file), Some(name)) = (file, name) {
            file.write(|out| out.write_all(&bytes))?;
            say(&format!("written to {}", name.display()));
        }
    }
    if args.json {
        let json = serde_json::json!({ "rehearsal": records(&found), "words": sentences(&found) });
        let text = serde_json::to_string_pretty(&json).map_err(|e| Failure::Other(format!("error: {e}")))?;
        return print(&(text + "\n"));
    }
    print(&words(&found))
}
