//! Records to the paper's tables: CSV, Markdown, text, beside the paper's own figures.

use crate::paper::{Published, Table};
use crate::record::{Cell, Job, Record, Settings};
use crate::runner::table_jobs;
use dvim::internal::compare::method::Method;
use dvim::internal::simulate::Scenario;
use dvim_report::tables::{Row, header};
use dvim_report::text::Grid;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Records by key.
pub type Records = BTreeMap<String, Record>;

/// A mean over data sets with its standard deviation over data sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// Standard deviation; `None` of one data set.
    pub sd: Option<f64>,
    /// Data sets.
    pub n: usize,
}

impl Spread {
    /// Of these values, in their order; `None` of none.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let n = values.len() as f64;
        let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / n)?;
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        Some(Spread { mean, sd: (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt()), n: values.len() })
    }

    /// Standard error of the mean.
    pub fn se(&self) -> Option<f64> {
        self.sd.map(|sd| sd / (self.n as f64).sqrt())
    }

    /// "8.0 ± 0.3".
    pub fn words(&self, decimals: usize) -> String {
        match self.sd {
            Some(sd) => format!("{:.decimals$} ± {sd:.decimals$}", self.mean),
            None => format!("{:.decimals$}", self.mean),
        }
    }
}

/// The values of one figure of the cells of a name over these jobs, in their order.
pub fn values(
    records: &Records,
    jobs: &[Job],
    name: &str,
    group_size: usize,
    figure: impl Fn(&Cell) -> Option<f64>,
) -> Vec<f64> {
    jobs.iter().filter_map(|job| records.get(&job.key())?.cell(name, group_size)).filter_map(figure).collect()
}

/// One row and column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The method.
    pub method: Method,
    /// The scenario.
    pub scenario: Scenario,
    /// Data sets that it rests on.
    pub reps: usize,
    /// Mean absolute error of the cure effect, times 100.
    pub cure: Spread,
    /// Mean absolute error of the time effect; `None` where it is defined nowhere.
    pub time: Option<Spread>,
    /// Mean share of units whose time effect is undefined.
    pub time_undefined: f64,
    /// What the paper has.
    pub published: Option<Published>,
}

impl Entry {
    /// Ours over the paper's: cure, time.
    pub fn ratios(&self) -> [Option<f64>; 2] {
        [
            self.published.map(|p| self.cure.mean / p.cure_mae),
            self.published.and_then(|p| Some(self.time?.mean / p.time_mae)),
        ]
    }
}

/// All entries of a table that there are records for, by method and then scenario.
pub fn entries(settings: &Settings, records: &Records, table: Table, reps: usize) -> Vec<Entry> {
    let all = table_jobs(settings, table, reps);
    let k = table.group_size();
    let mut out = Vec::new();
    for method in Method::ALL {
        for scenario in Scenario::PAPER {
            let jobs: Vec<Job> = all.iter().filter(|j| j.scenario() == scenario).copied().collect();
            let spread =
                |figure: &dyn Fn(&Cell) -> Option<f64>| Spread::of(&values(records, &jobs, method.name(), k, figure));
            let Some(cure) = spread(&|c| Some(100.0 * c.cure_mae)) else { continue };
            out.push(Entry {
                method,
                scenario,
                reps: cure.n,
                cure,
                time: spread(&|c| c.time_mae),
                time_undefined: spread(&|c| Some(c.time_undefined)).map_or(0.0, |s| s.mean),
                published: table.published(method, scenario),
            });
        }
    }
    out
}

/// The columns of the table files.
pub const COLUMNS: [&str; 9] =
    ["method", "scenario", "reps", "cure_mae", "cure_sd", "time_mae", "time_sd", "paper_cure_mae", "paper_time_mae"];

/// The table as CSV, a row for each method and scenario.
pub fn csv(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut row = header(&COLUMNS);
    for e in entries {
        row.text(e.method.name()).text(e.scenario.name()).count(e.reps);
        row.number(e.cure.mean).maybe(e.cure.sd).maybe(e.time.map(|t| t.mean)).maybe(e.time.and_then(|t| t.sd));
        row.maybe(e.published.map(|p| p.cure_mae)).maybe(e.published.map(|p| p.time_mae)).end();
    }
    write_to(&mut row, &mut out);
    out
}

/// Writing to memory does not fail.
pub(crate) fn write_to(row: &mut Row, out: &mut Vec<u8>) {
    row.write_to(out).expect("memory can be written");
}

/// The two estimands, as a table shows them.
pub const ESTIMANDS: [(&str, usize); 2] = [("Cure effect, error × 100", 1), ("Time effect, error", 1)];

/// One estimand as rows of words: for each scenario ours ± SD, and the paper's with the ratio.
pub fn grid(entries: &[Entry], estimand: usize) -> (Vec<String>, Vec<Vec<String>>) {
    let mut columns = vec!["Method".to_string()];
    for s in Scenario::PAPER {
        columns.push(s.label().to_string());
        columns.push("paper (ratio)".to_string());
    }
    let mut rows = Vec::new();
    for method in Method::ALL {
        let of_method: Vec<&Entry> = entries.iter().filter(|e| e.method == method).collect();
        if of_method.is_empty() {
            continue;
        }
        let mut row = vec![method.label().to_string()];
        for scenario in Scenario::PAPER {
            let entry = of_method.iter().find(|e| e.scenario == scenario);
            let ours = entry.and_then(|e| if estimand == 0 { Some(e.cure) } else { e.time });
            let paper = entry.and_then(|e| e.published).map(|p| if estimand == 0 { p.cure_mae } else { p.time_mae });
            let ratio = entry.and_then(|e| e.ratios()[estimand]);
            row.push(ours.map_or("–".into(), |s| s.words(ESTIMANDS[estimand].1)));
            row.push(paper.zip(ratio).map_or("–".into(), |(p, r)| format!("{p:.1} ({r:.2})")));
        }
        rows.push(row);
    }
    (columns, rows)
}

/// How near a method is to the paper over the cells that both have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// The method.
    pub method: Method,
    /// Mean ratio of the cure errors, ours over the paper's.
    pub cure: f64,
    /// Mean ratio of the time errors.
    pub time: f64,
    /// Mean over all cells of how far the ratio is from 1.
    pub deviation: f64,
    /// Cells.
    pub n_cells: usize,
}

/// The agreement of each method that the paper has.
pub fn agreements(entries: &[Entry]) -> Vec<Agreement> {
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    Method::ALL
        .into_iter()
        .filter_map(|method| {
            let of_method = || entries.iter().filter(move |e| e.method == method);
            let [cure, time] = [0, 1].map(|i| of_method().filter_map(|e| e.ratios()[i]).collect::<Vec<f64>>());
            let all: Vec<f64> = cure.iter().chain(&time).map(|r| (r - 1.0).abs()).collect();
            let some = !cure.is_empty() && !time.is_empty();
            some.then(|| Agreement {
                method,
                cure: mean(&cure),
                time: mean(&time),
                deviation: mean(&all),
                n_cells: all.len(),
            })
        })
        .collect()
}

/// What a reader of a table should know.
pub fn remarks(settings: &Settings, entries: &[Entry]) -> Vec<String> {
    let reps = entries.iter().map(|e| e.reps);
    let (least, most) = (reps.clone().min().unwrap_or(0), reps.max().unwrap_or(0));
    let reps = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    let mut out = vec![format!(
        "Mean over {reps} data sets of {} units (seed {}) of the mean absolute error over the estimation set, ± its standard deviation over data sets; the paper has 300 data sets of 20,000.",
        dvim_report::text::grouped(settings.n_units),
        settings.seed
    )];
    if settings.n_units != 20_000 {
        out.push("The paper's figures are for 20,000 units: with another number they are no yardstick.".into());
    }
    let mut undefined = Vec::new();
    for method in Method::ALL {
        let shares: Vec<f64> = entries.iter().filter(|e| e.method == method).map(|e| e.time_undefined).collect();
        let largest = shares.iter().copied().fold(0.0, f64::max);
        if largest > 0.0 {
            let share =
                if largest < 0.0005 { "under 0.05 %".into() } else { format!("up to {:.1} %", 100.0 * largest) };
            undefined.push(format!("{} {share} of units", method.label()));
        }
    }
    if !undefined.is_empty() {
        out.push(format!(
            "A time effect is undefined where a group has no event; such units are left out of the time error: {}.",
            undefined.join(", ")
        ));
    }
    out
}

/// The table as Markdown.
pub fn markdown(settings: &Settings, table: Table, entries: &[Entry]) -> String {
    let mut out = format!("# {}\n\n", table.title());
    for remark in remarks(settings, entries) {
        let _ = writeln!(out, "{remark}\n");
    }
    for (i, (name, _)) in ESTIMANDS.iter().enumerate() {
        let (columns, rows) = grid(entries, i);
        let _ = writeln!(out, "## {name}\n\n{}", markdown_table(&columns, &rows));
    }
    let _ = writeln!(out, "## Ours over the paper's, mean over the scenarios\n");
    let rows: Vec<Vec<String>> = agreements(entries).iter().map(agreement_row).collect();
    out + &markdown_table(&AGREEMENT.map(String::from), &rows)
}

/// Heads of the table of agreements.
pub const AGREEMENT: [&str; 4] = ["Method", "cure", "time", "mean distance from 1"];

/// A row of the table of agreements.
pub fn agreement_row(a: &Agreement) -> Vec<String> {
    vec![
        a.method.label().into(),
        format!("{:.3}", a.cure),
        format!("{:.3}", a.time),
        format!("{:.1} %", 100.0 * a.deviation),
    ]
}

/// Rows as a Markdown table, numbers to the right.
pub fn markdown_table(columns: &[String], rows: &[Vec<String>]) -> String {
    let mut out = format!("| {} |\n| --- |{}\n", columns.join(" | "), " ---: |".repeat(columns.len() - 1));
    for row in rows {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    out
}

/// The table as text for a terminal.
pub fn text(settings: &Settings, table: Table, entries: &[Entry]) -> String {
    let mut out = format!("{}\n", table.title());
    for (i, (name, _)) in ESTIMANDS.iter().enumerate() {
        let (columns, rows) = grid(entries, i);
        let heads: Vec<&str> = columns.iter().map(String::as_str).collect();
        let mut shown = Grid::new(1, &heads);
        rows.into_iter().for_each(|r| shown.row(r));
        let _ = write!(out, "\n{name}\n{}", shown.render());
    }
    let mut shown = Grid::new(1, &AGREEMENT);
    agreements(entries).iter().for_each(|a| shown.row(agreement_row(a)));
    let _ = write!(out, "\nOurs over the paper's, mean over the scenarios\n{}", shown.render());
    for remark in remarks(settings, entries) {
        let _ = writeln!(out, "\n{remark}");
    }
    out
}
