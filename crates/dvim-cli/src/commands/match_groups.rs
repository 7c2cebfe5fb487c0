//! `dvim match`: the match groups of one patient.

use super::open_part;
use crate::args::MatchArgs;
use crate::{Failure, print};
use dvim_io::tasks::groups_of;
use dvim_report::{record::MatchRecord, text};

pub fn run(args: &MatchArgs) -> Result<(), Failure> {
    let run = open_part(&args.run)?;
    let (unit, groups) = groups_of(&run.cohort, &run.fit, &args.id)?;
    let corrected = run.corrected(unit)?;
    if args.json {
        let record = MatchRecord::of(&run.cohort, &run.fit, unit, &groups, corrected.as_ref());
        let json = serde_json::to_string_pretty(&record).map_err(|e| Failure::Other(format!("error: {e}")))?;
        print(&(json + "\n"))
    } else {
        print(&text::match_groups(&run.cohort, &run.fit, unit, &groups, corrected.as_ref(), args.all))
    }
}
