//! `dvim design`: the power of a study that is still planned.

use super::use_threads;
use crate::args::DesignArgs;
use crate::progress::Lines;
use crate::{Failure, print, print_data, say};
use dvim_study::design::{self, Design, Power};

pub fn run(args: &DesignArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let design = Design {
        horizon: args.horizon,
        event_free: args.event_free,
        mean_time: args.mean_time,
        cure_effect: args.cure_effect,
        time_effect: args.time_effect,
        accrual: args.accrual,
        study_end: args.study_end.unwrap_or(args.accrual + args.horizon),
        dropout: args.dropout,
        treated_share: args.treated_share,
        sizes: args.sizes.clone(),
        alpha: args.alpha,
        bonferroni: args.multiplicity == "bonferroni",
        power: args.power,
        seed: args.seed,
    };
    design.check().map_err(|e| {
        Failure::Input(format!("error: --{}: {}\n  rule:   {}\n  remedy: {}", e.option, e.found, e.rule, e.remedy))
    })?;
    let lines = Lines::new();
    let found = Power::of(&design, &lines)?;
    let seconds = lines.seconds();
    if args.json {
        let mut text = serde_json::to_string_pretty(&found).map_err(|e| Failure::Other(format!("error: {e}")))?;
        text.push('\n');
        print_data(text.as_bytes())?;
    } else {
        print(&design::text(&found))?;
    }
    say(&format!("{} trials in {seconds:.1} s", found.rows.iter().map(|r| r.trials).sum::<usize>()));
    Ok(())
}
