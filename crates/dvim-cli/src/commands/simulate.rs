//! `dvim simulate`: a cohort with known effects.

use super::use_threads;
use crate::args::SimulateArgs;
use crate::{Failure, say};
use dvim::simulate::{Scenario, simulate};
use dvim_io::atomic::write_file;
use dvim_report::tables::{write_cohort, write_truth};
use std::io::{BufWriter, Write};

pub fn run(args: &SimulateArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let n = args.n.unwrap_or(args.scenario.usual_size());
    if args.confounded && !args.scenario.can_be_confounded() {
        let text = format!(
            "error: scenario {} has no --confounded\n  rule:   only the paper's four scenarios have a confounded form\n  remedy: leave out --confounded",
            args.scenario.name()
        );
        return Err(Failure::Input(text));
    }
    if n == 0 {
        return Err(Failure::Input("error: --n is 0\n  rule:   a cohort has patients\n  remedy: use --n 2000".into()));
    }
    for file in [&args.output, &args.truth].into_iter().flatten() {
        if file.exists() && !args.force {
            let text = format!(
                "error: `{}` exists already\n  rule:   nothing is overwritten unasked\n  remedy: choose another name or add --force",
                file.display()
            );
            return Err(Failure::Input(text));
        }
    }
    let world = simulate(args.scenario, n, args.confounded, args.seed);
    if let Some(file) = &args.truth {
        write_file(file, args.force, |mut out| write_truth(&mut out, &world))?;
    }
    match &args.output {
        Some(file) => {
            write_file(file, args.force, |mut out| write_cohort(&mut out, &world.cohort))?;
            let kind = if args.confounded { ", confounded" } else { "" };
            say(&format!(
                "{}: {} patients of scenario {}{kind}, horizon {}, seed {}",
                file.display(),
                n,
                args.scenario.name(),
                args.scenario.horizon(),
                args.seed
            ));
            if args.scenario == Scenario::Transplant {
                say(dvim_report::comparison::SYNTHETIC_NOTE);
            }
        }
        None => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            write_cohort(&mut out, &world.cohort)?;
            out.flush()?;
        }
    }
    Ok(())
}
