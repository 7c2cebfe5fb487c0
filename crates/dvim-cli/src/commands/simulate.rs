//! `dvim simulate`: a cohort with known effects.

use super::{refuse_same, use_threads};
use crate::args::SimulateArgs;
use crate::{Failure, say};
use dvim::internal::simulate::{Scenario, draw};
use dvim_io::atomic::{Access, NewFile, named};
use dvim_report::tables::{write_cohort, write_truth};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

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
    // Simulated patients are nobody: these files are as readable as any other.
    let plan =
        |file: &Option<PathBuf>| file.as_ref().map(|f| NewFile::plan(f, args.force, Access::Usual, &[])).transpose();
    let (output, truth) = (plan(&args.output)?, plan(&args.truth)?);
    refuse_same([&output, &truth], ["--output", "--truth"])?;
    let drawn = draw(args.scenario, n, args.confounded, args.seed);
    if let Some(file) = truth {
        file.write(|mut out| write_truth(&mut out, &drawn.units.ids, &drawn.truth))?;
    }
    match (output, &args.output) {
        (Some(new), Some(file)) => {
            new.write(|mut out| write_cohort(&mut out, &drawn.units.as_recorded()))?;
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
        _ => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            let written = write_cohort(&mut out, &drawn.units.as_recorded()).and_then(|()| out.flush());
            written.map_err(named(Path::new("standard output"), "written"))?;
        }
    }
    Ok(())
}
