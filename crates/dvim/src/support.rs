//! What the cohort has seen of each covariate, and new patients held against it.
//!
//! A patient is compared with patients. Where a value lies outside everything that the cohort has seen, there is nobody
//! to compare with, and the estimate is an extrapolation: the patient is flagged, with the covariate. Where the value
//! is absurd it is a mistake, and is refused.

use crate::cohort::Cohort;
use crate::cohort::is_code_for_unknown;
use crate::error::{Problem, ProblemKind, bounded};
use crate::phrase;
use crate::schema::{Covariate, Kind, encode_new, plural, rows_where};
use crate::setting::Setting;
use crate::table::Table;

/// The flag of a patient with a value outside the cohort's range; the name of the covariate follows a colon.
pub const OFF_SUPPORT: &str = "off_support";

/// A value this many widths of the cohort's range away from it is absurd.
const ABSURD: f64 = 10.0;

/// What the cohort has seen of one number.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The covariate.
    pub name: String,
    /// Its column of numbers.
    pub column: usize,
    /// The smallest value.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Range {
    fn is_outside(&self, x: f64) -> bool {
        x < self.low || x > self.high
    }

    fn is_absurd(&self, x: f64) -> bool {
        let beyond = f64::max(self.low - x, x - self.high);
        beyond > ABSURD * (self.high - self.low)
            || is_code_for_unknown(x) && (x < 0.0 && self.low >= 0.0 || beyond >= self.high - self.low)
    }
}

/// The ranges of the numeric covariates of a cohort.
pub fn ranges(cohort: &Cohort) -> Vec<Range> {
    let p = cohort.n_covariates();
    let mut found = vec![(f64::INFINITY, f64::NEG_INFINITY); p];
    for row in cohort.all_covariates().chunks_exact(p) {
        found.iter_mut().zip(row).for_each(|(f, x)| *f = (f.0.min(*x), f.1.max(*x)));
    }
    let is_number = |c: &&Covariate| c.kind == Kind::Number;
    let range = |c: &Covariate| {
        let (low, high) = found[c.first];
        Range { name: c.name.clone(), column: c.first, low, high }
    };
    cohort.schema().iter().filter(is_number).map(range).collect()
}

/// A covariate of a new patient that lies outside what the cohort has seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Outside {
    /// The covariate.
    pub covariate: String,
    /// For a person.
    pub words: String,
}

impl Outside {
    /// Its flag in tables.
    pub fn flag(&self) -> String {
        format!("{OFF_SUPPORT}:{}", self.covariate)
    }
}

/// New patients as numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct NewUnits {
    /// Covariates, row-major.
    pub covariates: Vec<f64>,
    /// For each row, the covariates outside the cohort's range.
    pub outside: Vec<Vec<Outside>>,
}

/// Reads new patients as the cohort was read, or says every problem with them. Absurd values are refused.
pub fn read_new(cohort: &Cohort, table: &Table) -> Result<NewUnits, Vec<Problem>> {
    read_new_within(cohort, &ranges(cohort), table)
}

/// Reads new patients as the cohort was read, where it is known already what the cohort has seen.
pub fn read_new_within(cohort: &Cohort, ranges: &[Range], table: &Table) -> Result<NewUnits, Vec<Problem>> {
    let covariates = encode_new(cohort.schema(), table)?;
    let p = cohort.n_covariates();
    let n = table.n_rows();
    let mut outside: Vec<Vec<Outside>> = vec![Vec::new(); n];
    let mut problems = Vec::new();
    for range in ranges {
        let value = |i: usize| covariates[i * p + range.column];
        let absurd = rows_where(n, |i| range.is_absurd(value(i)));
        if let Some(&row) = absurd.first.first() {
            let problem = Problem::error(
                ProblemKind::FarValue,
                format!(
                    "{} absurd, such as {}; in the cohort the values lie between {} and {}",
                    plural(absurd.count, "value is", "values are"),
                    value(row - 1),
                    range.low,
                    range.high
                ),
                "a patient can only be compared with patients: there is none like this",
                phrase![
                    "correct the value; an unknown one is an empty cell, in a run that was fitted with ",
                    Setting::Missing.to("indicator")
                ],
            );
            problems.push(problem.column(&range.name).rows(&absurd));
            continue;
        }
        for (i, of_row) in outside.iter_mut().enumerate().filter(|(i, _)| range.is_outside(value(*i))) {
            let words = format!(
                "{} is {}, outside what the cohort has seen ({} to {})",
                range.name,
                value(i),
                range.low,
                range.high
            );
            of_row.push(Outside { covariate: range.name.clone(), words });
        }
    }
    if problems.is_empty() { Ok(NewUnits { covariates, outside }) } else { Err(bounded(problems)) }
}
