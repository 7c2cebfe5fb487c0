//! `dvim check`: what was understood, and everything that is wrong.

use super::{read_cohort_table, roles_of, use_threads};
use crate::args::{CheckArgs, NameArgs};
use crate::progress::Progress;
use crate::{Failure, print, print_data};
use dvim::internal::error::{Error, Severity};
use dvim::internal::overview::Overview;
use dvim_report::spell::CommandLine;
use dvim_report::{record::OverviewRecord, text};

pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let roles = roles_of(&args.roles, &NameArgs::default())?;
    let input = read_cohort_table(&args.table, &roles, args.threads.threads, &Progress::new())?;
    let mut overview = Overview::of(&input.table, &roles, &args.method.options()?);
    overview.problems.extend(input.warnings);
    if args.json {
        let record = OverviewRecord::of(&overview, input.record.file, input.record.sha256);
        let json = serde_json::to_string_pretty(&record).map_err(|e| Failure::Other(format!("error: {e}")))?;
        print_data((json + "\n").as_bytes())?;
    } else {
        print(&text::overview(&overview))?;
    }
    let refused = overview.problems.iter().any(|p| p.severity == Severity::Error);
    let words = Error::Refused(overview.problems).spelled(&CommandLine);
    if refused {
        return Err(Failure::Input(words));
    }
    if !words.is_empty() {
        crate::say(&words);
    }
    Ok(())
}
