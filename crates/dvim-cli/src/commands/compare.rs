//! `dvim compare`: every method on one cohort.

use super::{file_name, read_cohort_table, use_threads};
use crate::args::{CompareArgs, TiesArg};
use crate::progress::Progress;
use crate::{Failure, print, say};
use dvim::analysis::{Estimator, Options, Watch};
use dvim::cohort::{Arm, Cohort};
use dvim::compare::cox::Ties;
use dvim::compare::method::{Field, Learned, Method};
use dvim_io::atomic::Directory;
use dvim_report::comparison::Comparison;
use std::io::Write;

pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let progress = Progress::new();
    // Said at once, not after the work. With --force a comparison is replaced, and nothing else.
    let directory = Directory::begin(&args.output, |existing| {
        Ok(args.force && ["correlations.csv", "report.html"].iter().all(|f| existing.join(f).is_file()))
    })?;
    let roles = args.roles.roles();
    let options = Options { estimator: Estimator::Paper, ..args.method.options() };
    let read = read_cohort_table(&args.table, &roles, args.threads.threads, &progress)?;
    let (cohort, mut warnings) = Cohort::from_table(&read.table, &roles)?;
    drop(read.table);
    warnings.extend(options.problems(Arm::BOTH.map(|z| cohort.units_of(z).len())));
    let ties = match args.ties {
        TiesArg::Breslow => Ties::Breslow,
        TiesArg::Efron => Ties::Efron,
    };
    let learned = Learned::learn(&cohort, &options, ties, &progress)?;
    let field = Field::new(&cohort, &learned.fit);
    let mut effects = Vec::new();
    for (done, method) in Method::FOR_COHORTS.into_iter().enumerate() {
        progress.progress("estimating", done, Method::FOR_COHORTS.len());
        if let Some([found]) = learned.estimate(&field, method, [options.group_size]) {
            effects.push((method, found));
        }
    }
    progress.progress("estimating", effects.len(), effects.len());
    let source = file_name(&args.table);
    let comparison = Comparison {
        cohort: &cohort,
        learned: &learned,
        units: &field.units,
        group_size: options.group_size,
        effects: &effects,
        source: &source,
    };
    directory.write("effects.csv", |out| comparison.write_effects(out))?;
    directory.write("summary.csv", |out| comparison.write_summary(out))?;
    directory.write("correlations.csv", |out| comparison.write_correlations(out))?;
    for (name, svg) in [
        ("cure-violins.svg", comparison.violins(false)),
        ("time-violins.svg", comparison.violins(true)),
        ("cure-correlations.svg", comparison.correlation_figure(false)),
        ("time-correlations.svg", comparison.correlation_figure(true)),
        ("report.html", comparison.page()),
    ] {
        directory.write(name, |out| out.write_all(svg.as_bytes()))?;
    }
    directory.publish()?;
    warnings.iter().for_each(|w| say(&w.to_string()));
    print(&comparison.text())?;
    say(&format!("written to {} in {:.2} s", args.output.display(), progress.seconds()));
    Ok(())
}
