//! Where the error of the paper's method comes from (its contribution 6).
//!
//! With E(m) the error of method m on a data set (mean absolute, or mean squared), the identity is
//!
//! ```text
//! E(MCM KNN) =   E(oracle)                                    irreducible
//!              + E(partial oracle, uncensored) − E(oracle)    one arm seen
//!              + E(partial oracle) − E(partial, uncensored)   censoring
//!              + E(MCM KNN) − E(partial oracle)               model fitting
//! ```
//!
//! which holds on every data set because the sum telescopes. The paper has three parts; its "censoring and unknown cure
//! status" is the sum of our second and third. They are kept apart because they are different things: the second is
//! that each unit is seen in one arm only, so that a group is drawn from half as many units and time groups contain
//! cured ones; in the third the groups are the same, member by member, and only the censoring of their outcomes
//! differs.
//!
//! A difference of errors is not the error of a difference: parts of the mean *absolute* error say what each handicap
//! costs when it is added last but one, not independent shares. For the mean *squared* error the third part is close to
//! a variance, since the two estimates share groups and truth. A part may be negative: then the handicap helped.

use crate::paper::Table;
use crate::record::{Cell, Job, Settings};
use crate::runner::table_jobs;
use crate::table::{Records, Spread, markdown_table, write_to};
use dvim::internal::compare::method::Method;
use dvim::internal::simulate::Scenario;
use dvim_report::tables::header;
use dvim_report::text::Grid;

/// The parts, in the order of the identity.
pub const PARTS: [&str; 4] = ["irreducible", "one arm seen", "censoring", "model fitting"];

/// The methods whose errors are subtracted, from the least handicapped on.
const CHAIN: [Method; 4] = [Method::Oracle, Method::UncensoredOracle, Method::PartialOracle, Method::McmKnn];

/// The error of the paper's method in one scenario, in parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Decomposition {
    /// The scenario.
    pub scenario: Scenario,
    /// "cure" or "time".
    pub estimand: &'static str,
    /// "mae" or "mse". Cure errors are in percentage points.
    pub measure: &'static str,
    /// The error of the paper's method.
    pub total: Spread,
    /// The parts, in the order of [`PARTS`]: mean and standard deviation over data sets of the difference on a data
    /// set.
    pub parts: [Spread; 4],
}

type Figure = fn(&Cell) -> Option<f64>;

/// The figures that are decomposed.
const FIGURES: [(&str, &str, Figure); 4] = [
    ("cure", "mae", |c| Some(100.0 * c.cure_mae)),
    ("time", "mae", |c| c.time_mae),
    ("cure", "mse", |c| Some(1e4 * c.cure_mse)),
    ("time", "mse", |c| c.time_mse),
];

/// All decompositions that there are records for (K = 50, no confounding).
pub fn decompose(settings: &Settings, records: &Records, reps: usize) -> Vec<Decomposition> {
    let all = table_jobs(settings, Table::Main, reps);
    let mut out = Vec::new();
    for (estimand, measure, figure) in FIGURES {
        for scenario in Scenario::PAPER {
            let of_job = |job: &Job| -> Option<[f64; 4]> {
                let record = records.get(&job.key())?;
                let [a, b, c, d] = CHAIN.map(|m| record.cell(m.name(), Table::Main.group_size()).and_then(figure));
                Some([a?, b?, c?, d?])
            };
            let errors: Vec<[f64; 4]> = all.iter().filter(|j| j.scenario() == scenario).filter_map(of_job).collect();
            let part = |i: usize| {
                let differences: Vec<f64> =
                    errors.iter().map(|e| if i == 0 { e[0] } else { e[i] - e[i - 1] }).collect();
                Spread::of(&differences)
            };
            let total = Spread::of(&errors.iter().map(|e| e[3]).collect::<Vec<_>>());
            if let (Some(total), [Some(a), Some(b), Some(c), Some(d)]) = (total, [part(0), part(1), part(2), part(3)]) {
                out.push(Decomposition { scenario, estimand, measure, total, parts: [a, b, c, d] });
            }
        }
    }
    out
}

/// The columns of `decomposition.csv`.
pub const COLUMNS: [&str; 13] = [
    "estimand",
    "measure",
    "scenario",
    "reps",
    "total",
    "irreducible",
    "one_arm_seen",
    "censoring",
    "model_fitting",
    "irreducible_se",
    "one_arm_seen_se",
    "censoring_se",
    "model_fitting_se",
];

/// As CSV.
pub fn csv(found: &[Decomposition]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut row = header(&COLUMNS);
    for d in found {
        row.text(d.estimand).text(d.measure).text(d.scenario.name()).count(d.total.n).number(d.total.mean);
        d.parts.iter().for_each(|p| {
            row.number(p.mean);
        });
        d.parts.iter().for_each(|p| {
            row.maybe(p.se());
        });
        row.end();
    }
    write_to(&mut row, &mut out);
    out
}

/// One estimand and measure as rows of words: value, and its share of the total.
pub fn grid(found: &[Decomposition], estimand: &str, measure: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let mut columns = vec!["Scenario".to_string(), "error".to_string()];
    columns.extend(PARTS.map(String::from));
    let decimals = if measure == "mae" { 2 } else { 1 };
    let rows = found.iter().filter(|d| d.estimand == estimand && d.measure == measure).map(|d| {
        let mut row = vec![d.scenario.label().to_string(), format!("{:.decimals$}", d.total.mean)];
        row.extend(d.parts.iter().map(|p| {
            let sign = if p.mean < 0.0 { "−" } else { "" };
            format!("{sign}{:.decimals$} ({sign}{:.0} %)", p.mean.abs(), 100.0 * (p.mean / d.total.mean).abs())
        }));
        row
    });
    (columns, rows.collect())
}

/// What each block of the decomposition is called.
pub const BLOCKS: [(&str, &str, &str); 4] = [
    ("cure", "mae", "Cure effect, mean absolute error in points"),
    ("time", "mae", "Time effect, mean absolute error"),
    ("cure", "mse", "Cure effect, mean squared error in points²"),
    ("time", "mse", "Time effect, mean squared error"),
];

/// As Markdown.
pub fn markdown(found: &[Decomposition]) -> String {
    let mut out = String::from(
        "# Where the error comes from\n\nerror of MCM KNN = irreducible (full oracle) + one arm seen (uncensored partial oracle − full oracle) + censoring (partial oracle − uncensored partial oracle) + model fitting (MCM KNN − partial oracle), on every data set; K = 50. In brackets the share of the error.\n\n",
    );
    for (estimand, measure, title) in BLOCKS {
        let (columns, rows) = grid(found, estimand, measure);
        out += &format!("## {title}\n\n{}\n", markdown_table(&columns, &rows));
    }
    out
}

/// As text for a terminal.
pub fn text(found: &[Decomposition]) -> String {
    let mut out = String::from("Where the error of MCM KNN comes from (K = 50; in brackets the share of the error)\n");
    for (estimand, measure, title) in BLOCKS {
        let (columns, rows) = grid(found, estimand, measure);
        let heads: Vec<&str> = columns.iter().map(String::as_str).collect();
        let mut shown = Grid::new(1, &heads);
        rows.into_iter().for_each(|r| shown.row(r));
        out += &format!("\n{title}\n{}", shown.render());
    }
    out
}
