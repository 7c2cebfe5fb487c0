//! `dvim report`: one page for a run.

use super::{open_run, use_threads};
use crate::args::{PageArgs, ReportArgs};
use crate::progress::Progress;
use crate::{Failure, say};
use dvim::analysis::Analysis;
use dvim::cohort::Cohort;
use dvim_io::atomic::{may_write, write_file};
use dvim_report::record::Summary;
use dvim_report::report::{Page, run_page};
use std::path::Path;

pub fn run(args: &ReportArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let progress = Progress::new();
    may_write(&args.output, args.force)?;
    let run = open_run(&args.run)?;
    let analysis = Analysis::from_fit(run.fit, &run.corrected, &run.cohort, &progress)?;
    write_page(&args.output, args.force, &args.page, &run.cohort, &analysis, &run.summary)?;
    say(&format!("written to {} in {:.2} s", args.output.display(), progress.seconds()));
    Ok(())
}

/// Writes the page of a run.
pub fn write_page(
    file: &Path,
    force: bool,
    page: &PageArgs,
    cohort: &Cohort,
    analysis: &Analysis,
    summary: &Summary,
) -> Result<(), Failure> {
    let page = Page { title: page.title.clone(), time_unit: page.time_unit.clone(), ..Page::default() };
    let html = run_page(&page, cohort, analysis, summary);
    Ok(write_file(file, force, |out| out.write_all(html.as_bytes()))?)
}
