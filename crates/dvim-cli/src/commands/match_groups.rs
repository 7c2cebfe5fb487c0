//! `dvim match`: the match groups of one patient.

use super::open_run;
use crate::args::MatchArgs;
use crate::{Failure, print, print_data};
use dvim_io::tasks::groups_of;
use dvim_report::{names::Names, record::MatchRecord, text};

pub fn run(args: &MatchArgs) -> Result<(), Failure> {
    let run = open_run(&args.run)?;
    let (unit, groups) = groups_of(&run.cohort, &run.fit, &args.id)?;
    if args.json {
        let record = MatchRecord::of(&run.cohort, &run.fit, unit, &groups, run.corrected.get(unit));
        let json = serde_json::to_string_pretty(&record).map_err(|e| Failure::Other(format!("error: {e}")))?;
        print_data((json + "\n").as_bytes())
    } else {
        let names = Names::of(&run.summary, None);
        print(&text::match_groups(&run.cohort, &run.fit, &names, unit, &groups, run.corrected.get(unit), args.all))
    }
}
