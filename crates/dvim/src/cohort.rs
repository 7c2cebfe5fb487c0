//! The cohort: units with a time, an event, an arm and covariates, and the horizon.
//!
//! This is the only door. Everything that can be wrong with a table is found here, all at once;
//! once a [`Cohort`] exists nothing downstream validates. Three policies are applied here and
//! nowhere else (docs/methods.md, "The door"):
//!
//! - **Order.** Units are sorted by id, so that no later result depends on the order of rows.
//! - **Horizon.** A time at or beyond H becomes (H, no event): the unit reached the horizon.
//! - **Ties.** Times that differ by no more than [`TIE_TOLERANCE`]·H are one time.

use crate::error::{Error, Problem, ProblemKind as Kind, RowList, Severity, nearest_names};
use crate::table::{Column, Ids, Table, Values};

/// Two times closer than this share of the horizon are the same time. Round-off from a change of
/// unit (days to years) is near 1e-16 and from differences of decimal dates near 1e-13; recorded
/// times are never closer than about 1e-6. The rule is relative to H so that results do not depend
/// on the unit of time. After `aeqSurv` of R's survival, which uses 1.5e-8.
pub const TIE_TOLERANCE: f64 = 1e-10;

/// Covariates and times beyond this magnitude are refused: squared distances would overflow.
pub const LARGEST_VALUE: f64 = 1e100;

/// Fewer units than this at risk at the horizon in an arm is worth a warning.
const FEW_AT_HORIZON: usize = 10;

/// The two arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arm {
    /// Not treated.
    Control,
    /// Treated.
    Treated,
}

impl Arm {
    /// Both, control first: the order in which per-arm arrays are kept.
    pub const BOTH: [Arm; 2] = [Arm::Control, Arm::Treated];

    /// Position in per-arm arrays.
    pub fn index(self) -> usize {
        self as usize
    }

    /// "control" or "treated".
    pub fn name(self) -> &'static str {
        match self {
            Arm::Control => "control",
            Arm::Treated => "treated",
        }
    }
}

/// Which column plays which part.
#[derive(Clone, Debug, PartialEq)]
pub struct Roles {
    /// Time to event or censoring.
    pub time: String,
    /// Whether the event was seen.
    pub event: String,
    /// The arm.
    pub treatment: String,
    /// H. It defines the estimand, so it has no default.
    pub horizon: f64,
    /// Unit ids. Default: the column named `id` if there is one, else the row number.
    pub id: Option<String>,
    /// Covariates. Default: all other columns.
    pub covariates: Option<Vec<String>>,
    /// Which value of the treatment column means treated. Default: 1, true, yes or treated.
    pub treated: Option<String>,
}

impl Roles {
    /// The id column that will be used for a table with these column names.
    pub fn id_column<'a>(&'a self, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        match &self.id {
            Some(id) => Some(id),
            None => {
                let taken = |n: &str| n == self.time || n == self.event || n == self.treatment;
                let named = |n: &str| self.covariates.as_ref().is_some_and(|c| c.iter().any(|c| c == n));
                names.filter(|n| n.eq_ignore_ascii_case("id")).find(|n| !taken(n) && !named(n))
            }
        }
    }
}

/// Validated units in the order of their ids.
#[derive(Clone, Debug, PartialEq)]
pub struct Cohort {
    pub(crate) ids: Ids,
    pub(crate) time: Vec<f64>,
    pub(crate) event: Vec<bool>,
    pub(crate) arm: Vec<Arm>,
    pub(crate) covariates: Vec<f64>,
    pub(crate) names: Vec<String>,
    pub(crate) horizon: f64,
    pub(crate) recorded_time: Vec<f64>,
    pub(crate) recorded_event: Vec<bool>,
    pub(crate) labels: [String; 2],
}

/// The parts of a cohort, for a caller that has arrays rather than a table: a simulation, or a
/// saved run. They are taken as valid (finite covariates, positive times, distinct ids).
#[derive(Clone, Debug)]
pub struct Units {
    /// Unit ids.
    pub ids: Ids,
    /// Recorded times.
    pub time: Vec<f64>,
    /// Recorded events.
    pub event: Vec<bool>,
    /// Arms.
    pub arm: Vec<Arm>,
    /// Covariates, row-major.
    pub covariates: Vec<f64>,
    /// Names of the covariates.
    pub names: Vec<String>,
    /// Labels of control and treated.
    pub labels: [String; 2],
}

impl Cohort {
    /// The cohort of a table with what is worth a warning, or every problem found.
    pub fn from_table(table: &Table, roles: &Roles) -> Result<(Cohort, Vec<Problem>), Error> {
        let found = examine(table, roles);
        match found.units {
            Some(units) if !found.problems.iter().any(|p| p.severity == Severity::Error) => {
                Ok((Cohort::from_units(units, roles.horizon), found.problems))
            }
            _ => Err(Error::Refused(found.problems)),
        }
    }

    /// A cohort from valid arrays: sorts by id, applies the horizon and merges tied times.
    pub fn from_units(units: Units, horizon: f64) -> Cohort {
        let n = units.time.len();
        let p = units.names.len();
        let order = id_order(&units.ids);
        let in_order = order.windows(2).all(|w| w[0] < w[1]);
        let Units { ids, time, event, arm, covariates, names, labels } = if in_order {
            units
        } else {
            let pick = |i: &u32| *i as usize;
            let mut covariates = Vec::with_capacity(n * p);
            for i in order.iter().map(pick) {
                covariates.extend_from_slice(&units.covariates[i * p..(i + 1) * p]);
            }
            Units {
                ids: reorder_ids(&units.ids, &order),
                time: order.iter().map(pick).map(|i| units.time[i]).collect(),
                event: order.iter().map(pick).map(|i| units.event[i]).collect(),
                arm: order.iter().map(pick).map(|i| units.arm[i]).collect(),
                covariates,
                names: units.names,
                labels: units.labels,
            }
        };
        let (capped_time, capped_event) = apply_horizon(&time, &event, horizon);
        Cohort {
            ids,
            time: capped_time,
            event: capped_event,
            arm,
            covariates,
            names,
            horizon,
            recorded_time: time,
            recorded_event: event,
            labels,
        }
    }

    /// Number of units.
    pub fn n_units(&self) -> usize {
        self.time.len()
    }

    /// Number of covariates.
    pub fn n_covariates(&self) -> usize {
        self.names.len()
    }

    /// H.
    pub fn horizon(&self) -> f64 {
        self.horizon
    }

    /// Unit ids, ascending.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// Names of the covariates.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The covariates of unit `i`.
    pub fn covariates(&self, i: usize) -> &[f64] {
        let p = self.names.len();
        &self.covariates[i * p..(i + 1) * p]
    }

    /// All covariates, row-major.
    pub fn all_covariates(&self) -> &[f64] {
        &self.covariates
    }

    /// The arm of unit `i`.
    pub fn arm(&self, i: usize) -> Arm {
        self.arm[i]
    }

    /// Time of unit `i` after the horizon was applied.
    pub fn time(&self, i: usize) -> f64 {
        self.time[i]
    }

    /// Whether unit `i` had its event before the horizon.
    pub fn event(&self, i: usize) -> bool {
        self.event[i]
    }

    /// Time and event of unit `i` as recorded, before the horizon was applied.
    pub fn recorded(&self, i: usize) -> (f64, bool) {
        (self.recorded_time[i], self.recorded_event[i])
    }

    /// How the table calls an arm.
    pub fn label(&self, arm: Arm) -> &str {
        &self.labels[arm.index()]
    }

    /// Positions of the units of an arm, ascending.
    pub fn units_of(&self, arm: Arm) -> Vec<u32> {
        (0..self.n_units() as u32).filter(|&i| self.arm[i as usize] == arm).collect()
    }

    /// The position of the unit with that id.
    fn position(&self, id: &str) -> Option<usize> {
        let n = self.n_units();
        match &self.ids {
            Ids::Rows(_) => {
                id.parse::<usize>().ok().filter(|i| (1..=n).contains(i) && i.to_string() == id).map(|i| i - 1)
            }
            Ids::Integers(v) => id.parse::<i64>().ok().and_then(|x| v.binary_search(&x).ok()),
            Ids::Texts { .. } => {
                let (mut low, mut high) = (0, n);
                while low < high {
                    let middle = (low + high) / 2;
                    if self.ids.text(middle).as_ref() < id { low = middle + 1 } else { high = middle }
                }
                (low < n && self.ids.text(low) == id).then_some(low)
            }
        }
    }

    /// The position of the unit with that id, or why there is none.
    pub fn unit(&self, id: &str) -> Result<usize, Error> {
        self.position(id).ok_or_else(|| {
            let n = self.n_units();
            let few: Vec<String> = (0..n.min(3)).map(|i| self.ids.text(i).into_owned()).collect();
            let reason = format!("the cohort has {n} units, with ids such as {}", few.join(", "));
            Error::NoSuchUnit { id: id.to_string(), reason }
        })
    }

    /// The arrays of this cohort, as recorded: what a saved run keeps.
    pub fn to_units(&self) -> Units {
        Units {
            ids: self.ids.clone(),
            time: self.recorded_time.clone(),
            event: self.recorded_event.clone(),
            arm: self.arm.clone(),
            covariates: self.covariates.clone(),
            names: self.names.clone(),
            labels: self.labels.clone(),
        }
    }
}

/// Positions of the ids in ascending order: integers by value, text by bytes.
fn id_order(ids: &Ids) -> Vec<u32> {
    let mut order: Vec<u32> = (0..ids.len() as u32).collect();
    match ids {
        Ids::Rows(_) => {}
        Ids::Integers(v) => order.sort_by_key(|&i| v[i as usize]),
        Ids::Texts { .. } => order.sort_by(|&a, &b| ids.text(a as usize).cmp(&ids.text(b as usize))),
    }
    order
}

fn reorder_ids(ids: &Ids, order: &[u32]) -> Ids {
    match ids {
        Ids::Rows(n) => Ids::Rows(*n),
        Ids::Integers(v) => Ids::Integers(order.iter().map(|&i| v[i as usize]).collect()),
        Ids::Texts { .. } => Ids::from_texts(order.iter().map(|&i| ids.text(i as usize))),
    }
}

/// Y = min(T, C, H), δ = event before H, with tied times merged into the smallest of them.
pub(crate) fn apply_horizon(time: &[f64], event: &[bool], horizon: f64) -> (Vec<f64>, Vec<bool>) {
    let tolerance = if horizon.is_finite() { TIE_TOLERANCE * horizon } else { 0.0 };
    let reaches = |t: f64| t >= horizon - tolerance;
    let mut order: Vec<u32> = (0..time.len() as u32).filter(|&i| !reaches(time[i as usize])).collect();
    order.sort_by(|&a, &b| time[a as usize].total_cmp(&time[b as usize]));
    let mut capped = vec![horizon; time.len()];
    let mut first = f64::NEG_INFINITY;
    for i in order {
        let t = time[i as usize];
        if t - first > tolerance {
            first = t;
        }
        capped[i as usize] = first;
    }
    let events = time.iter().zip(event).map(|(&t, &e)| e && !reaches(t)).collect();
    (capped, events)
}

/// Outcomes and arms in the order of the rows: what can be said of a table whose covariates are
/// not yet in order.
#[derive(Clone, Debug)]
pub(crate) struct Outcomes {
    pub(crate) time: Vec<f64>,
    pub(crate) event: Vec<bool>,
    pub(crate) arm: Vec<Arm>,
    pub(crate) labels: [String; 2],
}

/// What was read from a table. Parts are there if they could be read, even where a rule on the
/// whole is broken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Examined {
    pub(crate) outcomes: Option<Outcomes>,
    pub(crate) units: Option<Units>,
    pub(crate) problems: Vec<Problem>,
}

/// Everything that a table says under these roles, and every problem with it.
pub(crate) fn examine(table: &Table, roles: &Roles) -> Examined {
    let mut problems = Vec::new();
    let names = || table.columns().iter().map(|c| c.name.as_str());
    let mut wanted: Vec<(&str, &str)> =
        vec![("time", &roles.time), ("event", &roles.event), ("treatment", &roles.treatment)];
    let id = roles.id_column(names());
    if let Some(id) = id {
        wanted.push(("id", id));
    }
    for c in roles.covariates.iter().flatten() {
        wanted.push(("covariate", c));
    }
    for (i, (role, name)) in wanted.iter().enumerate() {
        if table.column(name).is_none() {
            let near = nearest_names(name, names());
            let all: Vec<&str> = names().take(12).collect();
            let more = if table.columns().len() > 12 { ", …" } else { "" };
            let remedy = if near.is_empty() {
                format!("the table has: {}{more}", all.join(", "))
            } else {
                format!("did you mean `{}`? The table has: {}{more}", near.join("` or `"), all.join(", "))
            };
            problems.push(
                Problem::error(
                    Kind::NoSuchColumn,
                    format!("there is no such column (asked for as {role})"),
                    "each named column must be in the table, spelt as in its header",
                    remedy,
                )
                .column(name),
            );
        }
        if let Some((other, _)) = wanted[..i].iter().find(|(_, n)| n == name) {
            problems.push(
                Problem::error(
                    Kind::ColumnUsedTwice,
                    format!("it is asked for as {other} and as {role}"),
                    "a column has one part: time, event, treatment, id or covariate",
                    "name each column once",
                )
                .column(name),
            );
        }
    }
    if !(roles.horizon > 0.0 && roles.horizon <= LARGEST_VALUE) {
        problems.push(Problem::error(
            Kind::BadHorizon,
            format!("the horizon is {}", roles.horizon),
            "the horizon is a positive, finite time: it defines who counts as cured",
            "give it in the unit of the time column, for example 1825 for five years in days",
        ));
    }
    if table.n_rows() == 0 {
        problems.push(Problem::error(
            Kind::NoRows,
            "the table has no rows",
            "a cohort needs units in both arms",
            "check that the file holds data below its header",
        ));
    }
    if !problems.is_empty() {
        return Examined { problems, ..Examined::default() };
    }
    let column = |name: &str| table.column(name).expect("its presence was checked above");

    let ids = match id {
        None => Ids::Rows(table.n_rows()),
        Some(name) => read_ids(column(name), &mut problems),
    };
    let time = read_time(column(&roles.time), &mut problems);
    let event = read_event(column(&roles.event), &mut problems);
    let arms = read_treatment(column(&roles.treatment), roles.treated.as_deref(), &mut problems);

    let covariate_columns: Vec<&Column> = match &roles.covariates {
        Some(list) => list.iter().map(|c| column(c)).collect(),
        None => table.columns().iter().filter(|c| !wanted.iter().any(|(_, w)| *w == c.name)).collect(),
    };
    if covariate_columns.is_empty() {
        problems.push(Problem::error(
            Kind::NoCovariates,
            "no covariate is left",
            "matching needs at least one covariate",
            "add covariate columns, or name them with --covariates",
        ));
    }
    let columns: Vec<Option<&[f64]>> = covariate_columns.iter().map(|c| read_covariate(c, &mut problems)).collect();

    let (Some(time), Some(event), Some((arm, labels))) = (time, event, arms) else {
        return Examined { problems, ..Examined::default() };
    };
    let outcomes = Outcomes { time, event, arm, labels };
    examine_arms(&outcomes, roles, &mut problems);
    let units = columns.into_iter().collect::<Option<Vec<&[f64]>>>().map(|columns| {
        let p = columns.len();
        let mut covariates = vec![0.0; table.n_rows() * p];
        for (j, values) in columns.iter().enumerate() {
            for (i, v) in values.iter().enumerate() {
                covariates[i * p + j] = *v;
            }
        }
        let names = covariate_columns.iter().map(|c| c.name.clone()).collect();
        let Outcomes { time, event, arm, labels } = outcomes.clone();
        Units { ids, time, event, arm, covariates, names, labels }
    });
    Examined { outcomes: Some(outcomes), units, problems }
}

fn rows_where(n: usize, bad: impl Fn(usize) -> bool) -> RowList {
    let mut list = RowList::default();
    (0..n).filter(|&i| bad(i)).for_each(|i| list.push(i));
    list
}

fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Refuses missing values; says whether there were any.
fn refuse_missing(column: &Column, role: &str, problems: &mut Vec<Problem>) -> bool {
    let missing = match &column.values {
        Values::Number(v) => rows_where(v.len(), |i| v[i].is_nan()),
        Values::Text(t) => rows_where(t.codes.len(), |i| t.get(i).is_none()),
        Values::Id(ids) => rows_where(ids.len(), |i| ids.text(i).is_empty()),
    };
    if !missing.is_empty() {
        problems.push(
            Problem::error(
                Kind::MissingValues,
                plural(missing.count, "missing value", "missing values"),
                &format!("{role} must be known for every unit"),
                "drop these rows or impute them before the analysis, or leave the column out with --covariates",
            )
            .column(&column.name)
            .rows(&missing),
        );
    }
    !missing.is_empty()
}

/// Numbers, or a refusal that shows the texts that are not.
fn numbers<'a>(column: &'a Column, role: &str, remedy: &str, problems: &mut Vec<Problem>) -> Option<&'a [f64]> {
    match &column.values {
        Values::Number(v) => Some(v),
        Values::Text(t) => {
            let is_text = |i: usize| t.get(i).is_some_and(|s| s.parse::<f64>().is_err());
            let rows = rows_where(t.codes.len(), is_text);
            let mut levels: Vec<&str> =
                t.levels.iter().filter(|s| s.parse::<f64>().is_err()).map(String::as_str).collect();
            levels.truncate(4);
            problems.push(
                Problem::error(
                    Kind::NotNumeric,
                    format!(
                        "{} not numbers, such as `{}`",
                        plural(rows.count, "value is", "values are"),
                        levels.join("`, `")
                    ),
                    &format!("{role} must be numeric"),
                    remedy,
                )
                .column(&column.name)
                .rows(&rows),
            );
            None
        }
        Values::Id(_) => None,
    }
}

fn refuse_not_finite(column: &Column, values: &[f64], problems: &mut Vec<Problem>) -> bool {
    let rows = rows_where(values.len(), |i| values[i].abs() > LARGEST_VALUE);
    if !rows.is_empty() {
        problems.push(
            Problem::error(
                Kind::NotFinite,
                plural(rows.count, "value is infinite or beyond 1e100", "values are infinite or beyond 1e100"),
                "values must be finite, and small enough that their squares do not overflow",
                "correct the values, or give the column in a larger unit",
            )
            .column(&column.name)
            .rows(&rows),
        );
    }
    !rows.is_empty()
}

fn read_ids(column: &Column, problems: &mut Vec<Problem>) -> Ids {
    let ids = match &column.values {
        Values::Id(ids) => ids.clone(),
        Values::Number(v)
            if v.iter().all(|x| x.is_nan() || (x.fract() == 0.0 && x.abs() < 9e15))
                && !v.iter().any(|x| x.is_nan()) =>
        {
            Ids::Integers(v.iter().map(|&x| x as i64).collect())
        }
        Values::Number(v) => Ids::from_texts(v.iter().map(|x| if x.is_nan() { String::new() } else { x.to_string() })),
        Values::Text(t) => Ids::from_texts((0..t.codes.len()).map(|i| t.get(i).unwrap_or(""))),
    };
    if refuse_missing(&Column { name: column.name.clone(), values: Values::Id(ids.clone()) }, "the id", problems) {
        return ids;
    }
    let order = id_order(&ids);
    let mut repeated = RowList::default();
    let mut example = None;
    for w in order.windows(2) {
        if ids.text(w[0] as usize) == ids.text(w[1] as usize) {
            repeated.count += 1;
            repeated.first.push(w[0].max(w[1]) as usize + 1);
            example.get_or_insert_with(|| ids.text(w[0] as usize).into_owned());
        }
    }
    if let Some(example) = example {
        repeated.first.sort_unstable();
        repeated.first.dedup();
        repeated.first.truncate(5);
        problems.push(
            Problem::error(
                Kind::DuplicateIds,
                format!("{}, such as `{example}`", plural(repeated.count, "id occurs again", "ids occur again")),
                "each id names one unit; splits and ties go by id",
                "keep one row for each unit, or name another id column with --id",
            )
            .column(&column.name)
            .rows(&repeated),
        );
    }
    ids
}

fn read_time(column: &Column, problems: &mut Vec<Problem>) -> Option<Vec<f64>> {
    let remedy = "give times as numbers, such as days since the start; a decimal comma must become a point";
    let values = numbers(column, "the time", remedy, problems)?;
    let missing = refuse_missing(column, "the time", problems);
    let infinite = refuse_not_finite(column, values, problems);
    let low = rows_where(values.len(), |i| values[i] <= 0.0);
    if !low.is_empty() {
        problems.push(
            Problem::error(
                Kind::TimeNotPositive,
                plural(low.count, "time is zero or negative", "times are zero or negative"),
                "a time is counted from the start of follow-up and must be positive",
                "correct the dates; an event on day 0 may be recorded as half a day, a censoring on day 0 carries no information and can be dropped",
            )
            .column(&column.name)
            .rows(&low),
        );
    }
    (!missing && !infinite && low.is_empty()).then(|| values.to_vec())
}

fn read_event(column: &Column, problems: &mut Vec<Problem>) -> Option<Vec<bool>> {
    if refuse_missing(column, "the event", problems) {
        return None;
    }
    let n = column.values.len();
    let read = |i: usize| -> Option<bool> {
        match &column.values {
            Values::Number(v) if v[i] == 0.0 => Some(false),
            Values::Number(v) if v[i] == 1.0 => Some(true),
            Values::Text(t) => match t.get(i)?.to_ascii_lowercase().as_str() {
                "false" | "0" => Some(false),
                "true" | "1" => Some(true),
                _ => None,
            },
            _ => None,
        }
    };
    let bad = rows_where(n, |i| read(i).is_none());
    if bad.is_empty() {
        return (0..n).map(read).collect();
    }
    let found = distinct(column, 4);
    let one_two = found.iter().all(|f| f == "1" || f == "2");
    problems.push(
        Problem::error(
            Kind::EventCoding,
            format!(
                "{} not an event indicator; the column holds {}",
                plural(bad.count, "value is", "values are"),
                quoted(&found)
            ),
            "the event is 1 or true if it was seen, 0 or false if the unit was censored",
            if one_two {
                "this looks like the 1/2 coding of R's survival (2 = event): subtract 1"
            } else {
                "recode the column as 0 and 1"
            },
        )
        .column(&column.name)
        .rows(&bad),
    );
    None
}

/// The first few distinct values of a column, as text.
fn distinct(column: &Column, most: usize) -> Vec<String> {
    match &column.values {
        Values::Text(t) => t.levels.iter().take(most).cloned().collect(),
        Values::Number(v) => {
            let mut seen: Vec<f64> = Vec::new();
            for &x in v.iter().filter(|x| !x.is_nan()) {
                if !seen.contains(&x) {
                    seen.push(x);
                    if seen.len() == most {
                        break;
                    }
                }
            }
            seen.sort_by(f64::total_cmp);
            seen.iter().map(f64::to_string).collect()
        }
        Values::Id(ids) => (0..ids.len().min(most)).map(|i| ids.text(i).into_owned()).collect(),
    }
}

fn quoted(values: &[String]) -> String {
    values.iter().map(|v| format!("`{v}`")).collect::<Vec<_>>().join(", ")
}

/// Labels that mean treated without being told.
const TREATED_LABELS: [&str; 4] = ["1", "true", "yes", "treated"];

fn read_treatment(
    column: &Column,
    treated: Option<&str>,
    problems: &mut Vec<Problem>,
) -> Option<(Vec<Arm>, [String; 2])> {
    if refuse_missing(column, "the treatment", problems) {
        return None;
    }
    let labels = distinct(column, 6);
    if labels.len() != 2 {
        let more = if labels.len() == 6 { " and perhaps more" } else { "" };
        problems.push(
            Problem::error(
                Kind::TreatmentValues,
                format!("it holds {} distinct values: {}{more}", labels.len(), quoted(&labels)),
                "the treatment has exactly two values, treated and control",
                if labels.len() < 2 {
                    "check that the column is the right one and that both arms are in the file"
                } else {
                    "keep the two arms that you want to compare"
                },
            )
            .column(&column.name),
        );
        return None;
    }
    let of_treated = match treated {
        Some(label) => labels.iter().position(|l| l == label),
        None => {
            let evident: Vec<usize> =
                (0..2).filter(|&i| TREATED_LABELS.contains(&labels[i].to_ascii_lowercase().as_str())).collect();
            (evident.len() == 1).then(|| evident[0])
        }
    };
    let Some(of_treated) = of_treated else {
        let problem = match treated {
            Some(label) => Problem::error(
                Kind::TreatedUnknown,
                format!("the label `{label}` does not occur; the column holds {}", quoted(&labels)),
                "the treated label is one of the two values of the treatment column",
                format!("use --treated {} or --treated {}", labels[0], labels[1]),
            ),
            None => Problem::error(
                Kind::TreatedUnclear,
                format!("it is not evident which of {} means treated", quoted(&labels)),
                "1, true, yes or treated mean treated; any other label must be named",
                format!("add --treated {} or --treated {}", labels[0], labels[1]),
            ),
        };
        problems.push(problem.column(&column.name));
        return None;
    };
    let n = column.values.len();
    let treated_value: f64 = labels[of_treated].parse().unwrap_or(f64::NAN);
    let is_treated = |i: usize| match &column.values {
        Values::Number(v) => v[i] == treated_value,
        Values::Text(t) => t.get(i) == Some(labels[of_treated].as_str()),
        Values::Id(ids) => ids.text(i) == labels[of_treated].as_str(),
    };
    let arm = (0..n).map(|i| if is_treated(i) { Arm::Treated } else { Arm::Control }).collect();
    Some((arm, [labels[1 - of_treated].clone(), labels[of_treated].clone()]))
}

fn read_covariate<'a>(column: &'a Column, problems: &mut Vec<Problem>) -> Option<&'a [f64]> {
    let remedy = "turn categories into 0/1 columns, or leave the column out with --covariates";
    let values = numbers(column, "a covariate", remedy, problems)?;
    if refuse_missing(column, "a covariate", problems) | refuse_not_finite(column, values, problems) {
        return None;
    }
    if values.iter().all(|&v| v == values[0]) {
        problems.push(
            Problem::error(
                Kind::ConstantCovariate,
                format!("every value is {}", values[0]),
                "a covariate must vary: a constant tells nobody apart",
                "leave the column out with --covariates",
            )
            .column(&column.name),
        );
        return None;
    }
    if looks_like_id(values) {
        problems.push(
            Problem::warning(
                Kind::LooksLikeId,
                "its values are distinct consecutive whole numbers, as in an identifier",
                "an identifier tells nothing of a patient and must not be matched on",
                "if it is one, name it with --id or leave it out with --covariates",
            )
            .column(&column.name),
        );
    }
    Some(values)
}

/// Whole numbers that, sorted, go up by one.
fn looks_like_id(values: &[f64]) -> bool {
    if values.len() < 10 || values.iter().any(|v| v.fract() != 0.0) {
        return false;
    }
    let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &v| (l.min(v), h.max(v)));
    if high - low + 1.0 != values.len() as f64 {
        return false;
    }
    let mut seen = vec![false; values.len()];
    values.iter().for_each(|v| seen[(v - low) as usize] = true);
    seen.into_iter().all(|s| s)
}

/// Rules on each arm as a whole.
fn examine_arms(outcomes: &Outcomes, roles: &Roles, problems: &mut Vec<Problem>) {
    let Outcomes { time, event, arm, labels } = outcomes;
    let (capped, before) = apply_horizon(time, event, roles.horizon);
    for z in Arm::BOTH {
        let who = format!("the {} arm (`{}`)", z.name(), labels[z.index()]);
        let members = || (0..time.len()).filter(|&i| arm[i] == z);
        if !members().any(|i| before[i]) {
            problems.push(
                Problem::error(
                    Kind::NoEvent,
                    format!("{who} has no event before the horizon {}", roles.horizon),
                    "each arm needs events before the horizon: without them the mean event time has no meaning",
                    "check the event column (1 = event seen) and the unit of the horizon",
                )
                .column(&roles.event),
            );
        }
        let at_horizon = members().filter(|&i| capped[i] == roles.horizon).count();
        let last = members().map(|i| capped[i]).fold(0.0, f64::max);
        // A curve that ends in an event at its last time has reached zero: it needs nobody at H.
        let reaches_zero = members().filter(|&i| capped[i] == last).all(|i| before[i]);
        if at_horizon == 0 && !reaches_zero {
            problems.push(
                Problem::error(
                    Kind::NobodyAtHorizon,
                    format!("in {who} nobody is followed to the horizon {}; follow-up ends at {last}", roles.horizon),
                    "the cure probability is read off at the horizon, so someone must be at risk there",
                    format!("choose a horizon of at most {last}"),
                )
                .column(&roles.time),
            );
        } else if at_horizon < FEW_AT_HORIZON && !reaches_zero {
            problems.push(
                Problem::warning(
                    Kind::FewAtHorizon,
                    format!(
                        "in {who} only {} followed to the horizon {}",
                        plural(at_horizon, "unit is", "units are"),
                        roles.horizon
                    ),
                    "many match groups will have nobody at risk at the horizon, and their curve is carried forward",
                    "consider an earlier horizon",
                )
                .column(&roles.time),
            );
        }
    }
}
