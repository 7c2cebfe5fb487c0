//! How near the truth the product's own estimators come, in the paper's scenarios and in worlds where the cure model is
//! wrong: the paper's estimator, cure models alone and the adjusted estimator, on the same data and the same units.
//!
//! - *paper*: Algorithm 1 with K = 50 from 5,000 units on, else 35; covariates as recorded in the paper's four
//!   scenarios, as in its study, and standardised in the worlds.
//! - *model*: the two cure models of that very fit, each trained on 35 % of its arm, without matching.
//! - *own model*: the cross-fitted models of the adjusted estimator, without groups: what the correction starts from.
//! - *adjusted*: the adjusted estimator with its defaults.
//!
//! Errors are taken over the units that the paper's estimator estimates, 65 % of each arm, for all of them: the
//! adjusted estimator has an estimate for every unit, but what is compared should be compared on the same units.

use crate::record::{Cell, Experiment, Job, Record, Settings};
use crate::table::{Records, markdown_table, write_to};
use dvim::internal::analysis;
use dvim::internal::arm::ByArm;
use dvim::internal::effect::Effect;
use dvim::internal::error::Error;
use dvim::internal::metric::Scale;
use dvim::internal::options::AdjustedOptions;
use dvim::internal::options::{Estimator, Options};
use dvim::internal::simulate::{Scenario, Truth, try_simulate};
use dvim::internal::watch::Unwatched;
use dvim_report::tables::header;
use dvim_report::text::{Grid, grouped};

/// The estimators, in the order of tables, as cells of records name them.
pub const ESTIMATORS: [&str; 4] = ["paper", "model", "own model", "adjusted"];
const ADJUSTED: usize = ESTIMATORS.len() - 1;

/// The scenarios, in the order of tables.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    Scenario::PAPER.into_iter().chain(Scenario::WORLDS)
}

/// The jobs.
pub fn jobs(settings: &Settings, reps: usize) -> Vec<Job> {
    let job = |rep| scenarios().map(move |s| Job::new(Experiment::Accuracy, s, settings.n_units, rep));
    (0..reps).flat_map(job).collect()
}

/// The smallest data sets whose arms hold a group of the paper's estimator after its training set is left out.
pub const FEWEST_UNITS: usize = 150;

/// K of the paper's estimator.
pub fn group_size(n_units: usize) -> usize {
    if n_units >= 5_000 { 50 } else { 35 }
}

/// Does one job.
pub fn record(settings: &Settings, job: &Job) -> Result<Record, Error> {
    let seed = job.seed(settings);
    let world = try_simulate(job.scenario(), job.n_units, false, seed)?;
    let scale = if Scenario::PAPER.contains(&job.scenario()) { Scale::None } else { Scale::Standard };
    let k = group_size(job.n_units);
    let paper = Options { group_size: k, scale, seed, ..Options::paper() };
    let adjusted = Options { estimator: Estimator::Adjusted(AdjustedOptions::default()), seed, ..Options::default() };
    let by_paper = analysis::run(&world.cohort, &paper, &Unwatched)?;
    let by_adjusted = analysis::run(&world.cohort, &adjusted, &Unwatched)?;

    let truth: Vec<&Truth> = by_paper.units.iter().map(|&i| &world.truth[i as usize]).collect();
    let cell = |name: &str, cure: &[f64], time: &[Option<f64>]| {
        let cure = cure.iter().zip(&truth).map(|(c, t)| c - t.cure_effect());
        Cell::of(name, k, cure, time.iter().zip(&truth).map(|(d, t)| Some((*d)? - t.time_effect())))
    };
    let matched = |name: &str, effects: &[&Effect]| {
        let cure: Vec<f64> = effects.iter().map(|e| e.cure()).collect();
        cell(name, &cure, &effects.iter().map(|e| e.time()).collect::<Vec<_>>())
    };
    let alone = {
        let rows: Vec<f64> =
            by_paper.units.iter().flat_map(|&i| world.cohort.covariates(i as usize)).copied().collect();
        let scaled = by_paper.fit.description.metrics.cure.scaling.apply(&rows);
        let ByArm { control, treated } = by_paper.fit.description.models.each_ref();
        let rows = || scaled.chunks_exact(world.cohort.n_covariates());
        let cure: Vec<f64> = rows().map(|x| treated.cure_probability(x) - control.cure_probability(x)).collect();
        let time: Vec<Option<f64>> =
            rows().map(|x| Some(treated.mean_event_time(x) - control.mean_event_time(x))).collect();
        cell(ESTIMATORS[1], &cure, &time)
    };
    let own = {
        let fit = &by_adjusted.fit;
        let of = |&i: &u32| {
            let fold = fit.fold_of(Some(i));
            let model = &fold.corrector.as_ref().expect("an adjusted run").model;
            model.predictor.predict(&fit.description.metrics.cure.scaling.apply(world.cohort.covariates(i as usize)))
        };
        let said: Vec<_> = by_paper.units.iter().map(of).collect();
        let cure: Vec<f64> =
            said.iter().map(|ByArm { control: c, treated: t }| t.cure_probability - c.cure_probability).collect();
        let time: Vec<Option<f64>> =
            said.iter().map(|ByArm { control: c, treated: t }| Some(t.mean_event_time - c.mean_event_time)).collect();
        cell(ESTIMATORS[2], &cure, &time)
    };
    let mut of_unit: Vec<Option<&Effect>> = vec![None; world.truth.len()];
    by_adjusted.units.iter().zip(&by_adjusted.effects).for_each(|(&i, e)| of_unit[i as usize] = Some(e));
    let same: Vec<&Effect> = by_paper.units.iter().filter_map(|&i| of_unit[i as usize]).collect();
    debug_assert_eq!(same.len(), truth.len(), "the adjusted estimator estimates every unit");
    let cells = vec![
        matched(ESTIMATORS[0], &by_paper.effects.iter().collect::<Vec<_>>()),
        alone,
        own,
        matched(ESTIMATORS[ADJUSTED], &same),
    ];
    Ok(Record { key: job.key(), cells, intervals: None, verdicts: None })
}

/// One scenario of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The scenario.
    pub scenario: Scenario,
    /// Data sets.
    pub reps: usize,
    /// Mean absolute errors by [`ESTIMATORS`]: of the cure effect × 100, of the time effect.
    pub errors: [[f64; 2]; ESTIMATORS.len()],
    /// Root mean square over data sets of the spread (standard deviation) of errors within a data set, in the same
    /// order. Where the true effects do not vary this is the spread of the estimated ones.
    pub spreads: [[f64; 2]; ESTIMATORS.len()],
}

impl Row {
    /// The adjusted estimator's error over that of another: cure, time.
    pub fn ratios(&self, estimator: usize) -> [f64; 2] {
        [0, 1].map(|e| self.errors[ADJUSTED][e] / self.errors[estimator][e])
    }
}

/// The rows that there are records for.
pub fn rows(settings: &Settings, records: &Records, reps: usize) -> Vec<Row> {
    let all = jobs(settings, reps);
    let of_scenario = |scenario: Scenario| {
        let found: Vec<&Record> =
            all.iter().filter(|j| j.scenario() == scenario).filter_map(|j| records.get(&j.key())).collect();
        if found.is_empty() {
            return None;
        }
        let mean = |estimator: usize, figure: &dyn Fn(&Cell) -> Option<f64>| {
            let cells = found.iter().filter_map(|r| r.cell(ESTIMATORS[estimator], group_size(settings.n_units)));
            let values: Vec<f64> = cells.filter_map(figure).collect();
            values.iter().sum::<f64>() / values.len() as f64
        };
        let errors = [0, 1, 2, ADJUSTED].map(|m| [mean(m, &|c| Some(100.0 * c.cure_mae)), mean(m, &|c| c.time_mae)]);
        let spreads = [0, 1, 2, ADJUSTED].map(|m| {
            let cure = mean(m, &|c| Some(1e4 * (c.cure_mse - c.cure_bias * c.cure_bias)));
            let time = mean(m, &|c| Some(c.time_mse? - c.time_bias? * c.time_bias?));
            [cure, time].map(|v| v.max(0.0).sqrt())
        });
        Some(Row { scenario, reps: found.len(), errors, spreads })
    };
    scenarios().filter_map(of_scenario).collect()
}

/// The columns of `accuracy.csv`.
pub const COLUMNS: [&str; 17] = [
    "scenario",
    "n",
    "reps",
    "paper_cure",
    "paper_time",
    "model_cure",
    "model_time",
    "own_model_cure",
    "own_model_time",
    "adjusted_cure",
    "adjusted_time",
    "adjusted_over_paper_cure",
    "adjusted_over_paper_time",
    "adjusted_over_model_cure",
    "adjusted_over_model_time",
    "adjusted_over_own_model_cure",
    "adjusted_over_own_model_time",
];

/// As CSV.
pub fn csv(settings: &Settings, found: &[Row]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut row = header(&COLUMNS);
    for r in found {
        row.text(r.scenario.name()).count(settings.n_units).count(r.reps);
        let ratios = [0, 1, 2].map(|m| r.ratios(m));
        r.errors.iter().chain(&ratios).flatten().for_each(|v| {
            row.number(*v);
        });
        row.end();
    }
    write_to(&mut row, &mut out);
    out
}

/// The table as rows of words; each cell is cure / time.
pub fn grid(found: &[Row]) -> (Vec<String>, Vec<Vec<String>>) {
    let columns = [
        "Scenario",
        "data sets",
        "paper",
        "cure model",
        "own model",
        "adjusted",
        "adjusted / paper",
        "adjusted / model",
        "adjusted / own model",
    ];
    let pair = |[cure, time]: [f64; 2]| format!("{cure:.2} / {time:.2}");
    let mut rows: Vec<Vec<String>> = Vec::new();
    for r in found {
        let mut row = vec![r.scenario.label().to_string(), r.reps.to_string()];
        row.extend(r.errors.iter().chain(&[0, 1, 2].map(|m| r.ratios(m))).map(|v| pair(*v)));
        rows.push(row);
    }
    let groups: [(&str, &[Scenario]); 2] = [
        ("Mean of the paper's four", &Scenario::PAPER),
        ("Mean of the worlds where the model is wrong", &Scenario::WORLDS[..Scenario::MISSPECIFIED]),
    ];
    for (label, members) in groups {
        let of_group: Vec<&Row> = found.iter().filter(|r| members.contains(&r.scenario)).collect();
        if of_group.is_empty() {
            continue;
        }
        let mean = |figure: &dyn Fn(&Row) -> [f64; 2]| {
            pair([0, 1].map(|e| of_group.iter().map(|r| figure(r)[e]).sum::<f64>() / of_group.len() as f64))
        };
        let mut row = vec![label.to_string(), of_group.iter().map(|r| r.reps).sum::<usize>().to_string()];
        row.extend([0, 1, 2, ADJUSTED].map(|m| mean(&|r| r.errors[m])));
        row.extend([0, 1, 2].map(|m| mean(&|r| r.ratios(m))));
        rows.push(row);
    }
    (columns.map(String::from).to_vec(), rows)
}

/// What a reader should know.
pub fn remarks(settings: &Settings, found: &[Row]) -> Vec<String> {
    let mut out = vec![format!(
        "Mean absolute errors, cure effect × 100 / time effect, over the units that the paper's estimator estimates; data sets of {} units, seed {}. Paper's estimator: K = {}, covariates as recorded in its own four scenarios and standardised elsewhere. Cure model: the paper's two, trained on 35 % of each arm, alone. Own model: the cross-fitted models of the adjusted estimator, without groups. In rows of means ratios are means of ratios.",
        grouped(settings.n_units),
        settings.seed,
        group_size(settings.n_units)
    )];
    for r in found.iter().filter(|r| matches!(r.scenario, Scenario::NoEffect | Scenario::ConstantEffect)) {
        let words: Vec<String> = ESTIMATORS
            .iter()
            .zip(r.spreads)
            .map(|(name, [cure, time])| format!("{name} {cure:.2} / {time:.2}"))
            .collect();
        out.push(format!(
            "{}: the true effect does not vary; the estimated ones have a standard deviation of {}.",
            r.scenario.label(),
            words.join(", ")
        ));
    }
    out
}

const TITLE: &str = "Accuracy of the estimators";

/// As Markdown.
pub fn markdown(settings: &Settings, found: &[Row]) -> String {
    let (columns, rows) = grid(found);
    let remarks: String = remarks(settings, found).iter().map(|r| format!("\n{r}\n")).collect();
    format!("# {TITLE}\n\n{}{remarks}", markdown_table(&columns, &rows))
}

/// As text for a terminal.
pub fn text(settings: &Settings, found: &[Row]) -> String {
    let (columns, rows) = grid(found);
    let heads: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut shown = Grid::new(1, &heads);
    rows.into_iter().for_each(|r| shown.row(r));
    let remarks: String = remarks(settings, found).iter().map(|r| format!("\n{r}\n")).collect();
    format!("{TITLE}\n\n{}{remarks}", shown.render())
}
