//! `dvim simulate`: a cohort with known effects.

use super::use_threads;
use crate::args::SimulateArgs;
use crate::{Failure, say};
use dvim::simulate::simulate;
use dvim_io::atomic::write_file;
use dvim_report::tables::{write_cohort, write_truth};
use std::io::{BufWriter, Write};

pub fn run(args: &SimulateArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    if args.n == 0 {
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
    let world = simulate(args.scenario, args.n, args.confounded, args.seed);
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
                args.n,
                args.scenario.name(),
                args.scenario.horizon(),
                args.seed
            ));
        }
        None => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            write_cohort(&mut out, &world.cohort)?;
            out.flush()?;
        }
    }
    Ok(())
}
