//! Do the intervals hold, and have the tests their size? Both estimators on the same data, in the paper's scenarios and
//! where there is no or one constant effect; the worlds where the model is wrong get a tenth of the data sets.
//!
//! - *averages*: the share of data sets whose 95 % interval holds the population's average (over everybody, over the
//!   treated), and its mean width; the truth is the average over a draw of 400,000 units;
//! - *units*: the mean over units of the share whose interval holds their own effect;
//! - *heterogeneity*: the share of data sets in which the test says that effects vary. Where they do not that is its
//!   size, elsewhere its power.

use crate::accuracy::group_size;
use crate::curves;
use crate::record::{Experiment, Held, Intervals, Job, Record, Settings, Tested, UnitsHeld};
use crate::table::{Records, markdown_table, write_to};
use dvim::internal::analysis::{self, Analysis};
use dvim::internal::audit::average::average_effects;
use dvim::internal::audit::heterogeneity::Heterogeneity;
use dvim::internal::cohort::Arm;
use dvim::internal::error::Error;
use dvim::internal::options::AdjustedOptions;
use dvim::internal::options::{Estimator, Options};
use dvim::internal::simulate::{Scenario, Simulated, Truth, simulate, try_simulate};
use dvim::internal::watch::Unwatched;
use dvim_report::tables::header;
use dvim_report::text::{Grid, grouped};

/// The estimators.
pub const ESTIMATORS: [&str; 2] = ["paper", "adjusted"];
/// Averages whose intervals are looked at.
const AVERAGES: [&str; 4] = ["cure_effect", "time_effect", "cure_effect_corrected", "time_effect_corrected"];
/// Populations of the averages.
const POPULATIONS: [&str; 2] = ["all", "treated"];
/// Tests of heterogeneity.
const TESTS: [&str; 2] = ["cure varies", "time varies"];
const CONFIDENCE: f64 = 0.95;
/// Units and seed of the draw that the truth is taken from.
const POPULATION: (usize, u64) = (400_000, 987_654_321);

/// The scenarios that get all data sets, then those that get a tenth.
fn scenarios() -> (Vec<Scenario>, Vec<Scenario>) {
    let (wrong, right) = Scenario::WORLDS.split_at(Scenario::MISSPECIFIED);
    (Scenario::PAPER.iter().chain(right).copied().collect(), wrong.to_vec())
}

/// The jobs.
pub fn jobs(settings: &Settings, reps: usize) -> Vec<Job> {
    let (often, seldom) = scenarios();
    let job = |s: Scenario, rep| Job::new(Experiment::Coverage, s, settings.n_units, rep);
    let of = |all: Vec<Scenario>, reps: usize| {
        (0..reps).flat_map(move |rep| all.clone().into_iter().map(move |s| job(s, rep)))
    };
    of(often, reps).chain(of(seldom, reps / 10)).collect()
}

/// Does one job.
pub fn record(settings: &Settings, job: &Job) -> Result<Record, Error> {
    let seed = job.seed(settings);
    let world = try_simulate(job.scenario(), job.n_units, false, seed)?;
    let paper = Options { group_size: group_size(job.n_units), seed, ..Options::paper() };
    let adjusted = Options { estimator: Estimator::Adjusted(AdjustedOptions::default()), seed, ..Options::default() };
    let mut out = Intervals::default();
    for (name, options) in ESTIMATORS.into_iter().zip([paper, adjusted]) {
        let found = analysis::run(&world.cohort, &Options { confidence: CONFIDENCE, ..options }, &Unwatched)?;
        look(name, job.scenario(), &world, &found, &mut out)?;
    }
    Ok(Record { key: job.key(), cells: Vec::new(), intervals: Some(out), verdicts: None })
}

fn look(name: &str, scenario: Scenario, world: &Simulated, found: &Analysis, out: &mut Intervals) -> Result<(), Error> {
    let averages = average_effects(&world.cohort, found, &[])?;
    curves::look(scenario, world, found, &averages, out)?;
    for a in averages.iter().filter(|a| AVERAGES.contains(&a.estimand) && POPULATIONS.contains(&a.population.as_str()))
    {
        if let (Some(estimate), Some(se), Some(low), Some(high)) = (a.estimate, a.se, a.low, a.high) {
            let (estimator, estimand, population) = (name.into(), a.estimand.into(), a.population.clone());
            out.averages.push(Held { estimator, estimand, population, estimate, se, low, high });
        }
    }
    let truth = |u: usize| &world.truth[found.units[u] as usize];
    let horizon = world.cohort.horizon();
    let n = found.units.len();
    let cure: Vec<(bool, f64)> = (0..n)
        .map(|u| {
            let i = found.effects[u].cure_interval(CONFIDENCE);
            (i.covers(truth(u).cure_effect()), i.width())
        })
        .collect();
    let time: Vec<(bool, f64)> = (0..n)
        .filter_map(|u| {
            let i = found.effects[u].time_interval(horizon, CONFIDENCE)?;
            Some((i.covers(truth(u).time_effect()), i.width()))
        })
        .collect();
    for (estimand, all) in [("cure_effect", cure), ("time_effect", time)] {
        let count = all.len().max(1) as f64;
        out.units.push(UnitsHeld {
            estimator: name.into(),
            estimand: estimand.into(),
            share: all.iter().filter(|(held, _)| *held).count() as f64 / count,
            width: all.iter().map(|(_, w)| w).sum::<f64>() / count,
        });
    }
    let h = Heterogeneity::of_run(&world.cohort, found);
    for (test, varies) in TESTS.into_iter().zip([h.cure, h.time]) {
        // Nothing to say is no rejection.
        let p = varies.and_then(|v| v.p()).unwrap_or(1.0);
        out.tests.push(Tested { estimator: name.into(), test: test.into(), p });
    }
    Ok(())
}

/// Coverage and mean width of one interval over data sets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Coverage {
    /// Per cent.
    pub held: f64,
    /// Mean width.
    pub width: f64,
}

/// One scenario and estimator.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The scenario.
    pub scenario: Scenario,
    /// The estimator.
    pub estimator: &'static str,
    /// Data sets.
    pub reps: usize,
    /// Averages over everybody: cure, time. Under the paper's estimator less the expected bias.
    pub all: [Option<Coverage>; 2],
    /// Averages over the treated.
    pub treated: [Option<Coverage>; 2],
    /// Units' own intervals.
    pub units: [Option<Coverage>; 2],
    /// Per cent of data sets in which each test rejects at 5 %.
    pub rejected: [f64; 2],
}

/// The rows that there are records for.
pub fn rows(settings: &Settings, records: &Records, reps: usize) -> Vec<Row> {
    let all = jobs(settings, reps);
    let (often, seldom) = scenarios();
    let mut out = Vec::new();
    for scenario in often.into_iter().chain(seldom) {
        let of_scenario = all.iter().filter(|j| j.scenario() == scenario);
        let found: Vec<&Intervals> =
            of_scenario.filter_map(|j| records.get(&j.key())).filter_map(|r| r.intervals.as_ref()).collect();
        if found.is_empty() {
            continue;
        }
        let population = simulate(scenario, POPULATION.0, false, POPULATION.1);
        let truth = |treated: bool, f: &dyn Fn(&Truth) -> f64| {
            let members = (0..POPULATION.0).filter(|&i| !treated || population.cohort.arm(i) == Arm::Treated);
            let (sum, n) = members.fold((0.0, 0.0), |(s, n), i| (s + f(&population.truth[i]), n + 1.0));
            sum / n
        };
        for estimator in ESTIMATORS {
            let average = |estimand: usize, which: usize| {
                // The paper's estimator is judged less its expected bias, as docs/methods/averages.md recommends.
                let name = AVERAGES[if estimator == "paper" { estimand + 2 } else { estimand }];
                let goal = truth(which == 1, &|t| if estimand == 0 { t.cure_effect() } else { t.time_effect() });
                let of =
                    |h: &&Held| h.estimator == estimator && h.estimand == name && h.population == POPULATIONS[which];
                let held: Vec<&Held> = found.iter().filter_map(|i| i.averages.iter().find(|h| of(h))).collect();
                coverage(held.iter().map(|h| (f64::from(u8::from(h.low <= goal && goal <= h.high)), h.high - h.low)))
            };
            let units = |estimand: usize| {
                let of = |u: &&UnitsHeld| u.estimator == estimator && u.estimand == AVERAGES[estimand];
                coverage(found.iter().filter_map(|i| i.units.iter().find(of)).map(|u| (u.share, u.width)))
            };
            let rejected = TESTS.map(|test| {
                let of = |t: &&Tested| t.estimator == estimator && t.test == test;
                let p: Vec<f64> = found.iter().filter_map(|i| i.tests.iter().find(of)).map(|t| t.p).collect();
                100.0 * p.iter().filter(|p| **p < 0.05).count() as f64 / p.len().max(1) as f64
            });
            out.push(Row {
                scenario,
                estimator,
                reps: found.len(),
                all: [average(0, 0), average(1, 0)],
                treated: [average(0, 1), average(1, 1)],
                units: [units(0), units(1)],
                rejected,
            });
        }
    }
    out
}

pub(crate) fn coverage(found: impl Iterator<Item = (f64, f64)>) -> Option<Coverage> {
    let (n, held, width) = found.fold((0.0, 0.0, 0.0), |(n, h, w), (held, width)| (n + 1.0, h + held, w + width));
    (n > 0.0).then(|| Coverage { held: 100.0 * held / n, width: width / n })
}

/// The columns of `coverage.csv`.
pub const COLUMNS: [&str; 18] = [
    "scenario",
    "n",
    "estimator",
    "reps",
    "average_cure_coverage",
    "average_cure_width",
    "average_time_coverage",
    "average_time_width",
    "treated_cure_coverage",
    "treated_cure_width",
    "treated_time_coverage",
    "treated_time_width",
    "unit_cure_coverage",
    "unit_cure_width",
    "unit_time_coverage",
    "unit_time_width",
    "cure_varies_rejected",
    "time_varies_rejected",
];

/// As CSV.
pub fn csv(settings: &Settings, found: &[Row]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut row = header(&COLUMNS);
    for r in found {
        row.text(r.scenario.name()).count(settings.n_units).text(r.estimator).count(r.reps);
        for c in r.all.iter().chain(&r.treated).chain(&r.units) {
            row.maybe(c.map(|c| c.held)).maybe(c.map(|c| c.width));
        }
        r.rejected.iter().for_each(|p| {
            row.number(*p);
        });
        row.end();
    }
    write_to(&mut row, &mut out);
    out
}

/// The table as rows of words.
pub fn grid(found: &[Row]) -> (Vec<String>, Vec<Vec<String>>) {
    let columns = [
        "Scenario",
        "estimator",
        "data sets",
        "average cure",
        "average time",
        "treated cure",
        "treated time",
        "unit cure",
        "unit time",
        "cure varies",
        "time varies",
    ];
    let words = |c: Option<Coverage>, scale: f64| {
        c.map_or(String::new(), |c| {
            let decimals = usize::from(scale > 1.0);
            format!("{:.1} ({:.*})", c.held, decimals, scale * c.width)
        })
    };
    let line = |label: &str, r: &Row| {
        let mut row = vec![label.to_string(), r.estimator.to_string(), r.reps.to_string()];
        for pair in [r.all, r.treated, r.units] {
            row.extend([words(pair[0], 100.0), words(pair[1], 1.0)]);
        }
        row.extend(r.rejected.map(|p| format!("{p:.1}")));
        row
    };
    let mut rows: Vec<Vec<String>> = found.iter().map(|r| line(r.scenario.label(), r)).collect();
    let groups: [(&str, &[Scenario]); 2] = [
        ("Mean of the paper's four", &Scenario::PAPER),
        ("Mean of the worlds where the model is wrong", &Scenario::WORLDS[..Scenario::MISSPECIFIED]),
    ];
    for (label, members) in groups {
        for estimator in ESTIMATORS {
            let of: Vec<&Row> =
                found.iter().filter(|r| r.estimator == estimator && members.contains(&r.scenario)).collect();
            let Some(first) = of.first() else { continue };
            let mean = |f: &dyn Fn(&Row) -> Option<Coverage>| {
                coverage(of.iter().filter_map(|r| f(r)).map(|c| (0.01 * c.held, c.width)))
            };
            let row = Row {
                scenario: first.scenario,
                estimator,
                reps: of.iter().map(|r| r.reps).sum(),
                all: [0, 1].map(|e| mean(&|r| r.all[e])),
                treated: [0, 1].map(|e| mean(&|r| r.treated[e])),
                units: [0, 1].map(|e| mean(&|r| r.units[e])),
                rejected: [0, 1].map(|t| of.iter().map(|r| r.rejected[t]).sum::<f64>() / of.len() as f64),
            };
            rows.push(line(label, &row));
        }
    }
    (columns.map(String::from).to_vec(), rows)
}

const TITLE: &str = "Coverage of 95 % intervals, and tests of heterogeneity";

fn remark(settings: &Settings) -> String {
    format!(
        "Coverage in per cent, mean width in brackets (cure in points). Data sets of {} units, seed {}. Averages: share of data sets whose interval holds the average of the population; under the paper's estimator (K = {}, standardised covariates) less the expected matching bias. Units: mean over patients. Tests: per cent of data sets that reject at 5 %.",
        grouped(settings.n_units),
        settings.seed,
        group_size(settings.n_units)
    )
}

/// As Markdown.
pub fn markdown(settings: &Settings, found: &[Row]) -> String {
    titled_markdown(TITLE, &grid(found), &remark(settings))
}

/// As text for a terminal.
pub fn text(settings: &Settings, found: &[Row]) -> String {
    titled_text(TITLE, 2, grid(found), &remark(settings))
}

/// A table under a title, with a remark, as Markdown.
pub(crate) fn titled_markdown(title: &str, (columns, rows): &(Vec<String>, Vec<Vec<String>>), remark: &str) -> String {
    format!("# {title}\n\n{}\n{remark}\n", markdown_table(columns, rows))
}

/// The same as text for a terminal; so many columns are words.
pub(crate) fn titled_text(
    title: &str,
    words: usize,
    (columns, rows): (Vec<String>, Vec<Vec<String>>),
    remark: &str,
) -> String {
    let heads: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut shown = Grid::new(words, &heads);
    rows.into_iter().for_each(|r| shown.row(r));
    format!("{title}\n\n{}\n{remark}\n", shown.render())
}
