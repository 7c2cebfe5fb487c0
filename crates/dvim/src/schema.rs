//! How each covariate of a table becomes numbers.
//!
//! A number stays one number. Two levels (yes and no, m and f) become one indicator. A category of
//! k > 2 levels becomes k indicators, one for each level and none left out as a reference; they are
//! one covariate all the same: one weight, one distance between any two different levels
//! (docs/methods/table.md, "Categories"). A value that was missing and filled in leaves a mark of its own.

use crate::error::{NAMES_SHOWN, Problem, ProblemKind, RowList, bounded, nearest_names, some_of};
use crate::phrase;
use crate::phrase::Phrase;
use crate::setting::Setting;
use crate::table::{Column, Table, Values, date};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// Text with more levels than this is refused unless it is declared categorical: it is a name, a
/// comment or an identifier more often than a category.
pub const MOST_LEVELS: usize = 30;

/// A declared category with more levels than this is refused: each level is an axis of match space.
pub const MOST_DECLARED_LEVELS: usize = 200;

/// Text most of whose levels are numbers is refused unless it is declared, where more than this
/// many levels are numbers: one misspelt value should not turn an age into a category.
const NUMBERS_IN_A_CATEGORY: usize = 10;

/// Words that mean that something is there; of two levels, such a one is coded 1.
const PRESENT: [&str; 9] = ["yes", "y", "true", "t", "1", "present", "positive", "pos", "+"];

/// Covariates beyond this magnitude are refused: squared distances would overflow.
pub const LARGEST_VALUE: f64 = 1e100;

/// What a covariate is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A number.
    Number,
    /// Two levels: one indicator.
    Indicator {
        /// The level coded 0.
        zero: String,
        /// The level coded 1.
        one: String,
    },
    /// More levels: one indicator for each, in this order (numbers by value, texts by bytes).
    Category {
        /// The levels.
        levels: Vec<String>,
    },
    /// Whether the value of this column was missing and was filled in.
    Missing,
}

/// A covariate: a column of the table and the columns of numbers that it became.
#[derive(Clone, Debug, PartialEq)]
pub struct Covariate {
    /// The column of the table.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Its first column of numbers.
    pub first: usize,
    /// What stands for a missing value: a number, or the position of a level. `None` refuses missing values.
    pub fill: Option<f64>,
}

impl Covariate {
    /// A number in column `first`.
    pub fn number(name: &str, first: usize) -> Covariate {
        Covariate { name: name.to_string(), kind: Kind::Number, first, fill: None }
    }

    /// Its columns of numbers.
    pub fn columns(&self) -> Range<usize> {
        let width = match &self.kind {
            Kind::Category { levels } => levels.len(),
            _ => 1,
        };
        self.first..self.first + width
    }

    /// What it is called where covariates are listed.
    pub fn label(&self) -> String {
        match self.kind {
            Kind::Missing => format!("{} missing", self.name),
            _ => self.name.clone(),
        }
    }

    /// The level that column `j` of its columns stands for; empty for a number.
    pub fn level(&self, j: usize) -> &str {
        match &self.kind {
            Kind::Number => "",
            Kind::Indicator { one, .. } => one,
            Kind::Category { levels } => &levels[j],
            Kind::Missing => "(missing)",
        }
    }

    /// What each of its columns is called.
    pub fn column_names(&self) -> Vec<String> {
        match &self.kind {
            Kind::Number | Kind::Missing => vec![self.label()],
            Kind::Indicator { one, .. } => vec![format!("{}={one}", self.name)],
            Kind::Category { levels } => levels.iter().map(|l| format!("{}={l}", self.name)).collect(),
        }
    }

    /// Whether it is a category of more than two levels.
    pub fn is_category(&self) -> bool {
        matches!(self.kind, Kind::Category { .. })
    }

    /// The value of a unit with these numbers, as a person would write it; `None` for a number.
    pub fn level_of(&self, x: &[f64]) -> Option<&str> {
        match &self.kind {
            Kind::Number => None,
            Kind::Indicator { zero, one } => Some(if x[self.first] == 1.0 { one } else { zero }),
            Kind::Category { levels } => {
                let at = x[self.columns()].iter().position(|v| *v == 1.0)?;
                Some(&levels[at])
            }
            Kind::Missing => Some(if x[self.first] == 1.0 { "yes" } else { "no" }),
        }
    }

    /// The value, or position of a level, that text writes; `None` if it is none.
    fn position(&self, text: &str) -> Option<f64> {
        match &self.kind {
            Kind::Number => text.parse().ok(),
            Kind::Indicator { zero, one } => [zero, one].iter().position(|l| same_level(l, text)).map(|i| i as f64),
            Kind::Category { levels } => levels.iter().position(|l| same_level(l, text)).map(|i| i as f64),
            Kind::Missing => None,
        }
    }

    /// Writes a value, or the position of a level, into its columns of a row.
    fn write(&self, value: f64, row: &mut [f64]) {
        match self.kind {
            Kind::Category { .. } => row[self.first + value as usize] = 1.0,
            _ => row[self.first] = value,
        }
    }
}

/// Whether two texts are one level: the same text, or the same number.
fn same_level(level: &str, text: &str) -> bool {
    level == text || matches!((level.parse::<f64>(), text.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
}

/// What the user said of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declared {
    Nothing,
    Numeric,
    Categorical,
}

/// What to do about missing covariates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// Refuse the table.
    #[default]
    Refuse,
    /// Leave out rows with a missing value in a column that is used.
    Drop,
    /// Fill in the median or the most frequent level, and add an indicator of having done so.
    Indicator,
}

impl Missing {
    /// Every choice, the usual one first.
    pub const ALL: [Missing; 3] = [Missing::Refuse, Missing::Drop, Missing::Indicator];

    /// The word used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Missing::Refuse => "refuse",
            Missing::Drop => "drop",
            Missing::Indicator => "indicator",
        }
    }
}

/// One column as numbers: values, or positions of levels; NaN where it is missing.
pub(crate) struct Reading<'a> {
    pub(crate) kind: Kind,
    pub(crate) values: Cow<'a, [f64]>,
}

/// Covariates as numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Encoded {
    pub(crate) schema: Vec<Covariate>,
    /// Row-major.
    pub(crate) values: Vec<f64>,
}

impl Encoded {
    /// Number of columns.
    pub(crate) fn width(&self) -> usize {
        self.schema.last().map_or(0, |c| c.columns().end)
    }
}

pub(crate) fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

pub(crate) fn quoted(values: &[String]) -> String {
    values.iter().map(|v| format!("`{v}`")).collect::<Vec<_>>().join(", ")
}

pub(crate) fn rows_where(n: usize, bad: impl Fn(usize) -> bool) -> RowList {
    let mut list = RowList::default();
    (0..n).filter(|&i| bad(i)).for_each(|i| list.push(i));
    list
}

/// Numbers, or a refusal that shows the texts that are not.
pub(crate) fn numbers<'a>(
    column: &'a Column,
    role: impl Into<Phrase>,
    remedy: impl Into<Phrase>,
    problems: &mut Vec<Problem>,
) -> Option<Cow<'a, [f64]>> {
    match &column.values {
        Values::Number(v) => Some(Cow::Borrowed(v)),
        Values::Text(t) => {
            let parsed: Vec<Option<f64>> = t.levels.iter().map(|s| s.parse::<f64>().ok()).collect();
            let is_text = |i: usize| parsed.get(t.codes[i] as usize).is_some_and(Option::is_none);
            let rows = rows_where(t.codes.len(), is_text);
            if rows.is_empty() {
                let value = |c: &u32| parsed.get(*c as usize).copied().flatten().unwrap_or(f64::NAN);
                return Some(t.codes.iter().map(value).collect());
            }
            let mut levels: Vec<String> = t.levels.iter().filter(|s| s.parse::<f64>().is_err()).cloned().collect();
            levels.truncate(4);
            problems.push(
                Problem::error(
                    ProblemKind::NotNumeric,
                    format!(
                        "{}, such as {}",
                        plural(rows.count, "value is not a number", "values are not numbers"),
                        quoted(&levels)
                    ),
                    role.into().and(" must be numeric"),
                    remedy,
                )
                .column(&column.name)
                .rows(&rows),
            );
            None
        }
        Values::Id(_) => {
            problems.push(holds_ids(&column.name));
            None
        }
    }
}

/// Refuses values that are infinite or huge; says whether there were any.
pub(crate) fn refuse_not_finite(name: &str, values: &[f64], problems: &mut Vec<Problem>) -> bool {
    let rows = rows_where(values.len(), |i| values[i].abs() > LARGEST_VALUE);
    if !rows.is_empty() {
        problems.push(
            Problem::error(
                ProblemKind::NotFinite,
                plural(rows.count, "value is infinite or beyond 1e100", "values are infinite or beyond 1e100"),
                "values must be finite, and small enough that their squares do not overflow",
                "correct the values, or give the column in a larger unit",
            )
            .column(name)
            .rows(&rows),
        );
    }
    !rows.is_empty()
}

/// Reads a covariate.
pub(crate) fn read<'a>(column: &'a Column, declared: Declared, problems: &mut Vec<Problem>) -> Option<Reading<'a>> {
    match (&column.values, declared) {
        (Values::Number(v), Declared::Nothing | Declared::Numeric) => {
            let bad = refuse_not_finite(&column.name, v, problems);
            (!bad).then_some(Reading { kind: Kind::Number, values: Cow::Borrowed(v) })
        }
        (Values::Number(v), Declared::Categorical) => {
            if refuse_not_finite(&column.name, v, problems) {
                return None;
            }
            let mut levels: Vec<f64> = v.iter().copied().filter(|x| !x.is_nan()).collect();
            levels.sort_by(f64::total_cmp);
            levels.dedup();
            let texts: Vec<String> = levels.iter().map(f64::to_string).collect();
            let position = |x: &f64| levels.iter().position(|l| l == x).map_or(f64::NAN, |i| i as f64);
            let values = if texts.len() > MOST_DECLARED_LEVELS { Vec::new() } else { v.iter().map(position).collect() };
            of_levels(column, declared, texts, values, problems)
        }
        (Values::Text(_), Declared::Numeric) => {
            let remedy = phrase![
                "correct the values, or declare the column with ",
                Setting::Categorical,
                ", or leave it out with ",
                Setting::Drop
            ];
            let values = numbers(column, phrase!["a column declared ", Setting::Numeric], remedy, problems)?;
            let bad = refuse_not_finite(&column.name, &values, problems);
            (!bad).then_some(Reading { kind: Kind::Number, values })
        }
        (Values::Text(t), _) => {
            if refuse_dates(column, problems) {
                return None;
            }
            let n_numbers = t.levels.iter().filter(|l| l.parse::<f64>().is_ok()).count();
            if declared == Declared::Nothing && n_numbers > NUMBERS_IN_A_CATEGORY && 2 * n_numbers > t.levels.len() {
                let remedy = phrase![
                    "correct these values (a decimal comma must become a point, an unknown value an empty cell), or declare the column with ",
                    Setting::Categorical,
                    ", or leave it out with ",
                    Setting::Drop
                ];
                // Only numbers may be left: rows with other texts can have been left out, and a program can hand over
                // numbers as texts.
                let values = numbers(column, "a covariate most of whose values are numbers", remedy, problems)?;
                let bad = refuse_not_finite(&column.name, &values, problems);
                return (!bad).then_some(Reading { kind: Kind::Number, values });
            }
            let mut order: Vec<usize> = (0..t.levels.len()).collect();
            let number = |i: usize| t.levels[i].parse::<f64>().ok();
            let all_numbers = order.iter().all(|&i| number(i).is_some());
            order.sort_by(|&a, &b| {
                let by_value = number(a).unwrap_or(0.0).total_cmp(&number(b).unwrap_or(0.0));
                let by_text = t.levels[a].cmp(&t.levels[b]);
                if all_numbers { by_value.then(by_text) } else { by_text }
            });
            let mut rank = vec![f64::NAN; order.len()];
            order.iter().enumerate().for_each(|(r, &i)| rank[i] = r as f64);
            let levels = order.iter().map(|&i| t.levels[i].clone()).collect();
            let values = t.codes.iter().map(|&c| rank.get(c as usize).copied().unwrap_or(f64::NAN)).collect();
            of_levels(column, declared, levels, values, problems)
        }
        (Values::Id(_), _) => {
            problems.push(holds_ids(&column.name));
            None
        }
    }
}

/// The refusal of a column that was read as ids and is asked for as something else.
fn holds_ids(name: &str) -> Problem {
    Problem::error(
        ProblemKind::ColumnUsedTwice,
        "its values were read as ids",
        "a column has one part: an id is not a time, an event, a treatment, an entry, a weight or a covariate",
        phrase!["name another column, or say with ", Setting::Id, " which one holds the ids"],
    )
    .column(name)
}

/// A covariate of these levels; `values` are positions in `levels`.
fn of_levels(
    column: &Column,
    declared: Declared,
    mut levels: Vec<String>,
    mut values: Vec<f64>,
    problems: &mut Vec<Problem>,
) -> Option<Reading<'static>> {
    let most = if declared == Declared::Categorical { MOST_DECLARED_LEVELS } else { MOST_LEVELS };
    if levels.len() > most {
        let some: Vec<String> = levels.iter().take(3).cloned().collect();
        let n_rows = column.values.len();
        let remedy = if declared == Declared::Categorical {
            phrase!["merge rare levels, or leave the column out with ", Setting::Drop]
        } else {
            phrase![
                "if it identifies the units, name it with ",
                Setting::Id,
                "; if it is free text, leave it out with ",
                Setting::Drop,
                format!("; if it is a category of up to {MOST_DECLARED_LEVELS} levels, declare it with "),
                Setting::Categorical
            ]
        };
        problems.push(
            Problem::error(
                ProblemKind::TooManyLevels,
                format!(
                    "{} different texts in {}, such as {}",
                    levels.len(),
                    plural(n_rows, "row", "rows"),
                    quoted(&some)
                ),
                format!(
                    "a category has at most {most} levels{}",
                    if declared == Declared::Categorical { "" } else { " unless it is declared" }
                ),
                remedy,
            )
            .column(&column.name),
        );
        return None;
    }
    warn_similar(column, &levels, problems);
    let kind = match levels.len() {
        0 | 1 => Kind::Category { levels },
        2 => {
            let present = |l: &str| PRESENT.contains(&l.to_ascii_lowercase().as_str());
            if present(&levels[0]) && !present(&levels[1]) {
                levels.swap(0, 1);
                values.iter_mut().for_each(|v| *v = 1.0 - *v);
            }
            let one = levels.pop().unwrap_or_default();
            let zero = levels.pop().unwrap_or_default();
            Kind::Indicator { zero, one }
        }
        _ => Kind::Category { levels },
    };
    Some(Reading { kind, values: values.into() })
}

/// Warns of levels that differ only in case or spaces: a misspelling more often than two levels.
fn warn_similar(column: &Column, levels: &[String], problems: &mut Vec<Problem>) {
    let fold = |s: &str| s.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect::<String>();
    let mut folded: Vec<(String, &String)> = levels.iter().map(|l| (fold(l), l)).collect();
    folded.sort();
    if let Some(w) = folded.windows(2).find(|w| w[0].0 == w[1].0) {
        problems.push(
            Problem::warning(
                ProblemKind::SimilarLevels,
                format!("the levels `{}` and `{}` differ only in case or spaces", w[0].1, w[1].1),
                "levels are compared as they are written, so these are two",
                "if they are one, spell them alike",
            )
            .column(&column.name),
        );
    }
}

/// Refuses a column of dates; says whether it is one.
fn refuse_dates(column: &Column, problems: &mut Vec<Problem>) -> bool {
    let Values::Text(t) = &column.values else { return false };
    let n_dates = t.levels.iter().filter(|l| date(l).is_some()).count();
    let are_dates = n_dates > 0 && 2 * n_dates > t.levels.len();
    if are_dates {
        problems.push(
            Problem::error(
                ProblemKind::DateCovariate,
                format!("it holds dates, such as `{}`", t.levels[0]),
                "a date is not a covariate: patients are alike in age or calendar year, not in a text",
                phrase![
                    "turn it into a number (age, year of diagnosis), or leave it out with ",
                    Setting::Drop,
                    "; a start and an end of follow-up are named with ",
                    Setting::Start,
                    " and ",
                    Setting::End
                ],
            )
            .column(&column.name),
        );
    }
    are_dates
}

/// Reads these columns as covariates. All problems are reported; the covariates are there if all could be read.
pub(crate) fn encode(
    columns: &[(&Column, Declared)],
    missing: Missing,
    n_rows: usize,
    problems: &mut Vec<Problem>,
) -> Option<Encoded> {
    let mut readings = Vec::new();
    let mut complete = true;
    for (column, declared) in columns {
        let Some(mut reading) = read(column, *declared, problems) else {
            complete = false;
            continue;
        };
        let gaps = rows_where(n_rows, |i| reading.values[i].is_nan());
        if gaps.count == n_rows || (gaps.count > 0 && missing != Missing::Indicator) {
            problems.push(missing_values(&column.name, "a covariate", &gaps, gaps.count == n_rows));
            complete = false;
            continue;
        }
        let first_known = reading.values.iter().copied().find(|v| !v.is_nan()).unwrap_or(0.0);
        if reading.values.iter().all(|&v| v.is_nan() || v == first_known) {
            let shown = match &reading.kind {
                Kind::Category { levels } => levels.first().cloned().unwrap_or_default(),
                _ => first_known.to_string(),
            };
            problems.push(constant_covariate(&column.name, &shown));
            complete = false;
            continue;
        }
        let mut filled = None;
        if gaps.count > 0 {
            let fill = typical(&reading);
            let marks: Vec<f64> = reading.values.iter().map(|v| f64::from(u8::from(v.is_nan()))).collect();
            reading.values.to_mut().iter_mut().filter(|v| v.is_nan()).for_each(|v| *v = fill);
            filled = Some((fill, marks));
            problems.push(
                Problem::warning(
                    ProblemKind::FilledValues,
                    format!(
                        "{} filled in with {}",
                        plural(gaps.count, "missing value was", "missing values were"),
                        match &reading.kind {
                            Kind::Number | Kind::Missing => format!("the median, {fill}"),
                            Kind::Indicator { zero, one } =>
                                format!("the more frequent level, `{}`", if fill == 1.0 { one } else { zero }),
                            Kind::Category { levels } =>
                                format!("the most frequent level, `{}`", levels[fill as usize]),
                        }
                    ),
                    "an indicator of the gap takes part in the models and in both metrics",
                    phrase![
                        "compare with ",
                        Setting::Missing.to("drop"),
                        "; neither is right where values are missing for reasons that matter to the outcome"
                    ],
                )
                .column(&column.name)
                .rows(&gaps),
            );
        }
        readings.push((column.name.as_str(), reading, filled));
    }
    if !complete {
        return None;
    }
    let mut out = Encoded::default();
    let mut parts = Vec::new();
    for (name, reading, filled) in readings {
        let fill = filled.as_ref().map(|f| f.0);
        let covariate = Covariate { name: name.to_string(), kind: reading.kind, first: out.width(), fill };
        out.schema.push(covariate);
        parts.push(reading.values);
        if let Some((_, marks)) = filled {
            let covariate = Covariate { name: name.to_string(), kind: Kind::Missing, first: out.width(), fill: None };
            out.schema.push(covariate);
            parts.push(marks.into());
        }
    }
    let width = out.width();
    out.values = vec![0.0; n_rows * width];
    let Encoded { schema, values } = &mut out;
    values.par_chunks_exact_mut(width.max(1)).with_min_len(1024).enumerate().for_each(|(i, row)| {
        for (covariate, values) in schema.iter().zip(&parts) {
            covariate.write(values[i], row);
        }
    });
    Some(out)
}

pub(crate) fn constant_covariate(name: &str, shown: &str) -> Problem {
    Problem::error(
        ProblemKind::ConstantCovariate,
        format!("every value is {shown}"),
        "a covariate must vary: a constant tells nobody apart",
        phrase!["leave the column out with ", Setting::Drop],
    )
    .column(name)
}

/// The median of a number (the lower of two), the most frequent level of a category (the first of ties).
fn typical(reading: &Reading<'_>) -> f64 {
    let mut known: Vec<f64> = reading.values.iter().copied().filter(|v| !v.is_nan()).collect();
    known.sort_by(f64::total_cmp);
    match reading.kind {
        Kind::Number | Kind::Missing => known[(known.len() - 1) / 2],
        _ => {
            let (mut best, mut most) = (known[0], 0);
            for group in known.chunk_by(|a, b| a == b) {
                if group.len() > most {
                    (best, most) = (group[0], group.len());
                }
            }
            best
        }
    }
}

/// The refusal of missing values.
pub(crate) fn missing_values(name: &str, role: &str, gaps: &RowList, all: bool) -> Problem {
    let remedy = if all {
        phrase!["leave the column out with ", Setting::Drop]
    } else if role == "a covariate" {
        phrase![
            "drop these rows with ",
            Setting::Missing.to("drop"),
            ", or fill them in with ",
            Setting::Missing.to("indicator"),
            ", or impute them before the analysis, or leave the column out with ",
            Setting::Drop
        ]
    } else {
        phrase!["drop these rows with ", Setting::Missing.to("drop"), ", or complete them"]
    };
    let found = plural(gaps.count, "missing value", "missing values");
    let found = if all { format!("all {found}") } else { found };
    Problem::error(ProblemKind::MissingValues, found, format!("{role} must be known for every unit"), remedy)
        .column(name)
        .rows(gaps)
}

/// Encodes the covariates of new units as those of the cohort were: same columns, same levels, same
/// fillings. Columns that the schema does not name are ignored.
pub fn encode_new(schema: &[Covariate], table: &Table) -> Result<Vec<f64>, Vec<Problem>> {
    let mut problems = Vec::new();
    let width = schema.last().map_or(0, |c| c.columns().end);
    let n = table.n_rows();
    let mut out = vec![0.0; n * width];
    let mut absent = Vec::new();
    for covariate in schema {
        let Some(column) = table.column(&covariate.name) else {
            if covariate.kind == Kind::Missing {
                continue;
            }
            absent.push(covariate.name.as_str());
            continue;
        };
        let gaps = rows_where(n, |i| column.values.is_missing(i));
        if covariate.kind == Kind::Missing {
            (0..n).for_each(|i| {
                covariate.write(f64::from(u8::from(column.values.is_missing(i))), &mut out[i * width..(i + 1) * width])
            });
            continue;
        }
        if !gaps.is_empty() && covariate.fill.is_none() {
            problems.push(
                Problem::error(
                    ProblemKind::MissingValues,
                    plural(gaps.count, "missing value", "missing values"),
                    "the run was fitted without missing values in this covariate, so it cannot place a patient who lacks it",
                    phrase![
                        "complete the value, or fit again with ",
                        Setting::Missing.to("indicator"),
                        " on a table that has such gaps"
                    ],
                )
                .column(&column.name)
                .rows(&gaps),
            );
            continue;
        }
        let value = |i: usize| -> Option<f64> {
            if column.values.is_missing(i) {
                return covariate.fill;
            }
            match (&column.values, &covariate.kind) {
                (Values::Number(v), Kind::Number) => Some(v[i]),
                (Values::Number(v), _) => covariate.position(&v[i].to_string()),
                (Values::Text(t), _) => covariate.position(t.get(i)?),
                (Values::Id(ids), _) => covariate.position(&ids.text(i)),
            }
        };
        let bad = rows_where(n, |i| value(i).is_none());
        if !bad.is_empty() {
            let example: Vec<String> =
                bad.first.iter().take(1).map(|&row| value_text(&column.values, row - 1)).collect();
            let problem = match &covariate.kind {
                Kind::Number => Problem::error(
                    ProblemKind::NotNumeric,
                    format!(
                        "{}, such as {}",
                        plural(bad.count, "value is not a number", "values are not numbers"),
                        quoted(&example)
                    ),
                    "the run was fitted with numbers in this column",
                    "correct the values",
                ),
                Kind::Indicator { zero, one } => unknown_level(&bad, &example, &[zero.clone(), one.clone()]),
                Kind::Category { levels } => unknown_level(&bad, &example, levels),
                Kind::Missing => continue,
            };
            problems.push(problem.column(&column.name).rows(&bad));
            continue;
        }
        let values: Vec<f64> = (0..n).filter_map(value).collect();
        if covariate.kind == Kind::Number && refuse_not_finite(&column.name, &values, &mut problems) {
            continue;
        }
        (0..n).for_each(|i| covariate.write(values[i], &mut out[i * width..(i + 1) * width]));
    }
    let absent = refuse_absent(&absent, table);
    if problems.is_empty() && absent.is_none() {
        Ok(out)
    } else {
        Err(bounded(absent.into_iter().chain(problems).collect()))
    }
}

/// The refusal of covariates that a table of new units does not have: one, whatever their number.
fn refuse_absent(absent: &[&str], table: &Table) -> Option<Problem> {
    let near = |name: &str| nearest_names(name, table.columns().iter().map(|c| c.name.as_str())).join("` or `");
    let rule = "new patients need every covariate that the run was fitted with";
    let kind = ProblemKind::NoSuchColumn;
    match absent {
        [] => None,
        [name] => {
            let remedy = match near(name).as_str() {
                "" => "add the column".to_string(),
                near => format!("did you mean `{near}`?"),
            };
            Some(Problem::error(kind, "there is no such column", rule, remedy).column(name))
        }
        several => {
            let found = format!("{} columns are not there: {}", several.len(), some_of(several.iter().copied()));
            let pairs = several.iter().take(NAMES_SHOWN).map(|name| (name, near(name)));
            let meant: Vec<String> = pairs
                .filter(|(_, near)| !near.is_empty())
                .map(|(name, near)| format!("`{near}` for `{name}`"))
                .collect();
            let remedy = match meant.as_slice() {
                [] => "add the columns".to_string(),
                _ => format!("add the columns; did you mean {}?", meant.join(", ")),
            };
            Some(Problem { count: several.len(), ..Problem::error(kind, found, rule, remedy) })
        }
    }
}

pub(crate) fn unknown_level(bad: &RowList, example: &[String], levels: &[String]) -> Problem {
    let mut shown: Vec<String> = levels.iter().take(8).cloned().collect();
    let more = if levels.len() > shown.len() { ", …" } else { "" };
    shown.truncate(8);
    Problem::error(
        ProblemKind::UnknownLevel,
        format!(
            "{} a level that the cohort does not have, such as {}",
            plural(bad.count, "value is", "values are"),
            quoted(example)
        ),
        "a patient can only be compared with patients: there is none of this level",
        format!("use one of {}{more}, or fit again on a cohort that has the level", quoted(&shown)),
    )
}

fn value_text(values: &Values, row: usize) -> String {
    match values {
        Values::Number(v) => v[row].to_string(),
        Values::Text(t) => t.get(row).unwrap_or("").to_string(),
        Values::Id(ids) => ids.text(row).into_owned(),
    }
}
