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
    let html = page(&args.page, &run.cohort, &analysis, &run.summary);
    file.write(|out| out.write_all(html.as_bytes()))?;
    say(&format!("written to {} in {:.2} s", args.output.display(), progress.seconds()));
    Ok(())
}

/// The page of a run.
pub fn page(page: &PageArgs, cohort: &Cohort, analysis: &Analysis, summary: &Summary) -> String {
    let page = Page { title: page.title.clone(), time_unit: page.time_unit.clone(), ..Page::default() };
    run_page(&page, cohort, analysis, summary)
}
