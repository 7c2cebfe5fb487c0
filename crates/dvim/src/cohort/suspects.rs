//! Columns that should not be covariates, and the evidence: made from the outcome, identifiers, codes that stand for a
//! gap, absurd values, names of things that are measured after treatment; and rows that occur again.
//!
//! A covariate is known when treatment begins. One that was made from the outcome gives a confident and wrong answer,
//! which nothing downstream can notice. Each rule has plain evidence, such as "equal to the time in 62 % of rows, by
//! chance 0.3 %". Where the evidence is plain the table is refused, and a user who knows better allows the column.
//! Where a look decides, as with a name alone, it is a warning. `tests/leaks.rs` measures both kinds of error.

mod column;
mod names;
mod outcome;
mod rows;

pub(crate) use column::is_code_for_unknown;

use super::admit::Outcomes;
use super::{Arm, Cohort, Roles, id_order};
use crate::error::{Problem, ProblemKind as Kind, Severity};
use crate::phrase;
use crate::phrase::Phrase;
use crate::schema::{self, Covariate};
use crate::setting::Setting;
use crate::table::{Column, Ids, Values};
use rayon::prelude::*;

/// What [`Setting::Allow`] calls rows that occur again.
pub const DUPLICATES: &str = "duplicates";

/// Rows that are looked at, at most: every m-th by id.
const MOST_ROWS: usize = 20_000;
/// Fewer rows than this prove nothing.
const FEWEST_ROWS: usize = 20;

/// What is known of the outcome of the rows that are looked at.
struct Seen {
    time: Vec<f64>,
    /// An event of the cause of interest, as recorded.
    event: Vec<bool>,
    /// An event of any cause.
    any: Vec<bool>,
    arm: Vec<Arm>,
    horizon: f64,
}

/// The rows that are looked at, of these in the order of their ids.
fn looked_at(in_order: Vec<u32>) -> Vec<usize> {
    let step = in_order.len().div_ceil(MOST_ROWS).max(1);
    in_order.into_iter().step_by(step).map(|i| i as usize).collect()
}

/// A covariate in the rows that are looked at: numbers, or positions of levels; NaN where it is missing.
struct Looked<'a> {
    name: &'a str,
    values: Vec<f64>,
    /// Whether its values are levels, or so few numbers that they may be codes.
    is_coded: bool,
    /// Whether it is a number as recorded.
    is_number: bool,
}

/// Different numbers up to which a column may hold codes.
const MOST_CODES: usize = 12;

impl<'a> Looked<'a> {
    fn of(name: &'a str, values: Vec<f64>, is_number: bool) -> Looked<'a> {
        let mut seen: Vec<f64> = Vec::new();
        for &x in values.iter().filter(|x| x.is_finite()) {
            if !seen.contains(&x) {
                seen.push(x);
            }
            if seen.len() > MOST_CODES {
                break;
            }
        }
        let is_coded = !is_number || seen.len() <= MOST_CODES;
        Looked { name, values, is_coded, is_number }
    }

    fn new(column: &'a Column, rows: &[usize]) -> Option<Looked<'a>> {
        let (values, is_number): (Vec<f64>, bool) = match &column.values {
            Values::Number(v) => (rows.iter().map(|&i| v[i]).collect(), true),
            Values::Text(t) => {
                let number = |text: &str| text.parse::<f64>().ok();
                let all_numbers = t.levels.iter().all(|l| number(l).is_some());
                let of = |i: &usize| match t.get(*i) {
                    Some(text) if all_numbers => number(text).unwrap_or(f64::NAN),
                    Some(_) => f64::from(t.codes[*i]),
                    None => f64::NAN,
                };
                (rows.iter().map(of).collect(), all_numbers)
            }
            Values::Id(_) => return None,
        };
        Some(Looked::of(&column.name, values, is_number))
    }

    /// Whether it is a number with many values, such as a time.
    fn is_measure(&self) -> bool {
        self.is_number && !self.is_coded
    }
}

/// What speaks against a column.
struct Finding {
    kind: Kind,
    found: Phrase,
    /// Whether the evidence is plain; otherwise a look decides.
    plain: bool,
}

impl Finding {
    fn plain(kind: Kind, found: impl Into<Phrase>) -> Finding {
        Finding { kind, found: found.into(), plain: true }
    }

    fn look(kind: Kind, found: impl Into<Phrase>) -> Finding {
        Finding { kind, found: found.into(), plain: false }
    }

    fn problem(self, name: &str, roles: &Roles) -> Problem {
        let allowed = roles.allow.iter().any(|a| a == name);
        let (rule, instead): (&str, Phrase) = match self.kind {
            Kind::LooksLikeId => (
                "an identifier tells nothing of a patient and must not be matched on",
                phrase!["name it with ", Setting::Id, " or leave it out with ", Setting::Drop.to(name)],
            ),
            Kind::Sentinel => (
                "a code for an unknown value is taken as a number, and moves models and matches",
                phrase!["make these cells empty and choose ", Setting::Missing],
            ),
            Kind::FarValue => (
                "one absurd value decides the scale of its column, so that all others look alike",
                phrase!["correct the values, or leave the column out with ", Setting::Drop.to(name)],
            ),
            _ => (
                "a covariate is known when treatment begins; one that is made from the outcome gives a confident, wrong answer",
                phrase!["leave it out with ", Setting::Drop.to(name)],
            ),
        };
        let remedy = match (allowed, self.plain) {
            (true, _) => phrase!["it was allowed by ", Setting::Allow.to(name)],
            (false, true) => instead.and("; if it is right as it is, ").and(Setting::Allow.to(name)),
            (false, false) => phrase!["if it is one, "].followed_by(instead),
        };
        let problem = match self.plain && !allowed {
            true => Problem::error(self.kind, self.found, rule, remedy),
            false => Problem::warning(self.kind, self.found, rule, remedy),
        };
        problem.column(name)
    }
}

/// Everything that speaks against the covariates and the rows of a table.
pub(super) fn suspects(columns: &[&Column], outcomes: &Outcomes, ids: &Ids, roles: &Roles) -> Vec<Problem> {
    let n = outcomes.time.len();
    if n < FEWEST_ROWS {
        return Vec::new();
    }
    let rows = looked_at(id_order(ids));
    let other = |i: usize| outcomes.extras.competing.as_ref().is_some_and(|c| c[i]);
    let seen = Seen {
        time: rows.iter().map(|&i| outcomes.time[i]).collect(),
        event: rows.iter().map(|&i| outcomes.event[i]).collect(),
        any: rows.iter().map(|&i| outcomes.event[i] || other(i)).collect(),
        arm: rows.iter().map(|&i| outcomes.arm[i]).collect(),
        horizon: roles.horizon,
    };
    let columns: Vec<&Column> = columns.iter().copied().filter(|c| !matches!(c.values, Values::Id(_))).collect();
    let looked: Vec<Looked<'_>> = columns.par_iter().filter_map(|c| Looked::new(c, &rows)).collect();
    let mut found: Vec<Option<Finding>> = looked
        .par_iter()
        .zip(&columns)
        .map(|(looked, column)| {
            let known_number = roles.numeric.iter().any(|n| n == looked.name);
            outcome::of_column(looked, &seen)
                .or_else(|| column::identifier(column, n, known_number))
                .or_else(|| column::sentinel(column))
                .or_else(|| column::far(column))
                .or_else(|| names::of_column(looked, &seen))
        })
        .collect();
    outcome::of_pairs(&looked, &seen, &mut found);
    let each = looked.iter().zip(found).filter_map(|(c, f)| Some(f?.problem(c.name, roles)));
    let mut problems: Vec<Problem> = each.collect();
    problems.sort_by_key(|p| p.severity != Severity::Error);
    problems.extend(rows::duplicates(&columns, outcomes, roles));
    problems
}

/// A covariate of a cohort that is the outcome in other words.
#[derive(Clone, Debug, PartialEq)]
pub struct Leak {
    /// The covariate.
    pub covariate: String,
    /// What shows it.
    pub evidence: Phrase,
}

/// The covariates of a cohort that are the outcome in other words: those that were allowed, and those of a cohort that
/// came from arrays and never stood in a table.
pub fn leaks(cohort: &Cohort) -> Vec<Leak> {
    let n = cohort.n_units();
    if n < FEWEST_ROWS {
        return Vec::new();
    }
    let rows = looked_at((0..n as u32).collect());
    let recorded: Vec<(f64, bool)> = rows.iter().map(|&i| cohort.recorded(i)).collect();
    let seen = Seen {
        time: recorded.iter().map(|r| r.0).collect(),
        event: recorded.iter().map(|r| r.1).collect(),
        any: rows.iter().zip(&recorded).map(|(&i, r)| r.1 || cohort.outcome(i).competing).collect(),
        arm: rows.iter().map(|&i| cohort.arm(i)).collect(),
        horizon: cohort.horizon(),
    };
    let looked = |c: &Covariate| {
        let number = |i: &usize| match &c.kind {
            schema::Kind::Category { .. } => {
                cohort.covariates(*i)[c.columns()].iter().position(|v| *v == 1.0).map_or(f64::NAN, |l| l as f64)
            }
            _ => cohort.covariates(*i)[c.first],
        };
        let is_number = matches!(c.kind, schema::Kind::Number);
        (c.label(), rows.iter().map(number).collect::<Vec<f64>>(), is_number)
    };
    let columns: Vec<(String, Vec<f64>, bool)> = cohort.schema().par_iter().map(looked).collect();
    let looked: Vec<Looked<'_>> =
        columns.iter().map(|(name, values, is_number)| Looked::of(name, values.clone(), *is_number)).collect();
    let mut found: Vec<Option<Finding>> = looked.par_iter().map(|c| outcome::of_column(c, &seen)).collect();
    outcome::of_pairs(&looked, &seen, &mut found);
    let plain = looked.iter().zip(found).filter_map(|(c, f)| f.filter(|f| f.plain).map(|f| (c.name, f)));
    plain.map(|(name, f)| Leak { covariate: name.to_string(), evidence: f.found }).collect()
}
