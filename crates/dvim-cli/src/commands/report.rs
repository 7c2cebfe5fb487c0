//! `dvim report`: one page for a run.

use super::{open_run, paths, use_threads};
use crate::args::{PageArgs, ReportArgs};
use crate::progress::Progress;
use crate::{Failure, say};
use dvim::internal::analysis::Analysis;
use dvim::internal::cohort::Cohort;
use dvim_io::atomic::{Access, NewFile};
use dvim_report::record::Summary;
use dvim_report::report::{Page, run_page};

pub fn run(args: &ReportArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let progress = Progress::new();
    let own = dvim_io::run::files_of(&args.run);
    let file = NewFile::plan(&args.output, args.force, Access::Owner, &paths(&own))?;
    let run = open_run(&args.run)?;
    let analysis = Analysis::reopened(run.fit, &run.corrected, run.stored, &run.cohort, &progress)?;
    let PageArgs { title, time_unit } = &args.page;
    let html = page(title.as_deref(), time_unit.as_deref(), &run.cohort, &analysis, &run.summary);
    file.write(|out| out.write_all(html.as_bytes()))?;
    say(&format!("written to {} in {:.2} s", args.output.display(), progress.seconds()));
    Ok(())
}

/// The page of a run.
pub fn page(
    title: Option<&str>,
    time_unit: Option<&str>,
    cohort: &Cohort,
    analysis: &Analysis,
    summary: &Summary,
) -> String {
    let owned = |words: Option<&str>| words.map(str::to_string);
    let page = Page { title: owned(title), time_unit: owned(time_unit), ..Page::default() };
    run_page(&page, cohort, analysis, summary)
}
