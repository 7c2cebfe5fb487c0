//! `dvim match`: the match groups of one patient.

use super::open_run;
use crate::args::MatchArgs;
use crate::{Failure, print};
use dvim::cohort::Arm;
use dvim_report::{record::MatchRecord, text};

pub fn run(args: &MatchArgs) -> Result<(), Failure> {
    let run = open_run(&args.run)?;
    let unit = run.cohort.unit(&args.id)?;
    let groups = run.fit.match_groups(&run.cohort, unit);
    let k = run.fit.options.group_size;
    // The adjusted estimator chose sizes of its own, and serves everybody.
    let too_small = |z: &Arm| run.fit.cross_fit.is_none() && groups.cure[z.index()].units.len() < k;
    if let Some(arm) = Arm::BOTH.into_iter().find(too_small) {
        return Err(Failure::Input(format!(
            "error: patient `{}` has no match group: {} patients of the {} arm satisfy the constraints, fewer than the group size {k}\n  rule:   a constraint is never relaxed\n  remedy: fit again with a smaller --group-size, wider calipers, or fewer exact covariates",
            args.id,
            groups.cure[arm.index()].units.len(),
            arm.name()
        )));
    }
    if args.json {
        let record = MatchRecord::of(&run.cohort, &run.fit, unit, &groups, run.corrected.get(unit));
        let json = serde_json::to_string_pretty(&record).map_err(|e| Failure::Other(format!("error: {e}")))?;
        print(&(json + "\n"))
    } else {
        print(&text::match_groups(&run.cohort, &run.fit, unit, &groups, run.corrected.get(unit), args.all))
    }
}
