//! `dvim demo`: a cohort with known effects, analysed, with something to look at.

use super::use_threads;
use crate::args::DemoArgs;
use crate::progress::Progress;
use crate::{Failure, print, say};
use dvim::internal::analysis::{self, average};
use dvim::internal::audit::Audit;
use dvim::internal::cohort::Flow;
use dvim::internal::options::Options;
use dvim::internal::simulate::{Scenario, try_simulate};
use dvim_io::manifest;
use dvim_io::run::{EffectsFormat, Origin, write_files};
use dvim_report::record::{InputRecord, RolesRecord};
use dvim_report::report::{Page, run_page};
use dvim_report::spell::CommandLine;
use dvim_report::{tables, text};
use std::fmt::Write;

const SCENARIO: Scenario = Scenario::BothOverlap;
/// The command, for the manifest of what it writes.
const DEMO: &str = "demo";

pub fn run(args: &DemoArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let progress = Progress::new();
    // A demo may be run again and again; anything else in its place is left alone.
    let directory = manifest::begin(&args.output, true, DEMO, &[])?;
    let world = try_simulate(SCENARIO, args.n, false, args.seed)?;
    let cohort = &world.cohort;
    let options = Options::default();
    let found = analysis::run_for_audit(cohort, &options, &progress)?;

    let sha256 = directory.write("cohort.csv", |out| tables::write_cohort(out, &cohort.as_recorded()))?;
    directory.write("truth.csv", |out| tables::write_truth(out, cohort.ids(), &world.truth))?;
    let n_bytes = directory.size("cohort.csv")?;
    let input = InputRecord { file: "cohort.csv".into(), sha256, n_bytes, n_rows: args.n };
    let audit = Audit::of(cohort, &found, &[])?;
    let flow = Flow { n_rows: args.n, steps: Vec::new() };
    let origin =
        Origin { input, roles: RolesRecord::simulated(cohort), flow: &flow, warnings: &[], format: EffectsFormat::Csv };
    let summary = write_files(&directory, cohort, &found, &audit, origin)?;
    let about = format!(
        "A simulated cohort of {} patients (scenario {} of the paper, seed {}), in which every patient's true effects are known. Times run to a horizon of {}.",
        text::grouped(args.n),
        SCENARIO.name(),
        args.seed,
        text::short(cohort.horizon())
    );
    let page = Page { about: Some(about.clone()), ..Page::default() };
    let page = run_page(&page, cohort, &found, &summary);
    directory.write("report.html", |out| std::io::Write::write_all(out, page.as_bytes()))?;
    manifest::publish(directory, DEMO)?;

    let mut words = format!("{about}\n\n{}", text::summary(&summary, &found, cohort, super::terminal(), &CommandLine));
    let truth = |i: &u32| &world.truth[*i as usize];
    let cure = average(found.units.iter().map(|i| Some(truth(i).cure_effect())));
    let time = average(found.units.iter().map(|i| Some(truth(i).time_effect())));
    let cure_error =
        average(found.units.iter().zip(&found.effects).map(|(i, e)| Some((e.cure() - truth(i).cure_effect()).abs())));
    let time_error = average(
        found.units.iter().zip(&found.effects).map(|(i, e)| e.time().map(|t| (t - truth(i).time_effect()).abs())),
    );
    let show = |v: Option<f64>, scale: f64| v.map_or("undefined".into(), |v| text::signed(scale * v));
    let plain = |v: Option<f64>, scale: f64| v.map_or("undefined".into(), |v| text::short(scale * v));
    words.push_str("\nHere the truth is known\n");
    let _ = writeln!(
        words,
        "  average cure effect {} points, average time effect {}",
        show(cure.mean, 100.0),
        show(time.mean, 1.0)
    );
    let _ = writeln!(
        words,
        "  mean error of a patient's estimate: {} points and {}; the true effects vary by {} and {} (standard deviations)",
        plain(cure_error.mean, 100.0),
        plain(time_error.mean, 1.0),
        plain(cure.sd, 100.0),
        plain(time.sd, 1.0)
    );
    let place = args.output.display();
    let example = found.units.first().map_or(String::new(), |&i| cohort.ids().text(i as usize).into_owned());
    let _ = write!(
        words,
        "\nWhere to look\n  {place}/report.html    open it in a browser: curves, effects, weights, one patient's matches\n  {place}/effects.csv    both effects of each patient\n  dvim match {place} {example}    the patients who are most like patient {example}, and what they change\n"
    );
    print(&words)?;
    say(&format!("done in {:.2} s", progress.seconds()));
    Ok(())
}
