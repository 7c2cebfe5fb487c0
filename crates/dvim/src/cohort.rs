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
use crate::schema::{
    Covariate, Declared, Encoded, Missing, encode, missing_values, numbers, plural, quoted, refuse_not_finite,
    rows_where,
};
use crate::table::{Column, DateText, Ids, Table, Values, date};
use std::borrow::Cow;

pub use crate::schema::LARGEST_VALUE;

/// Two times closer than this share of the horizon are the same time. Round-off from a change of
/// unit (days to years) is near 1e-16 and from differences of decimal dates near 1e-13; recorded
/// times are never closer than about 1e-6. The rule is relative to H so that results do not depend
/// on the unit of time. After `aeqSurv` of R's survival, which uses 1.5e-8.
pub const TIE_TOLERANCE: f64 = 1e-10;

/// Fewer units than this at risk at the horizon in an arm is worth a warning.
const FEW_AT_HORIZON: usize = 10;

/// Events of an arm from which on ties are worth a word, and how many of them share a time.
const MANY_EVENTS: usize = 20;
const TIES_PER_TIME: usize = 4;

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

/// What to do about times of zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZeroTime {
    /// Refuse the table.
    #[default]
    Refuse,
    /// Leave out the rows.
    Drop,
    /// Take half of the smallest positive time instead.
    Shift,
}

impl ZeroTime {
    /// The word used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            ZeroTime::Refuse => "refuse",
            ZeroTime::Drop => "drop",
            ZeroTime::Shift => "shift",
        }
    }
}

/// Which column plays which part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roles {
    /// Time to event or censoring. Without meaning where `dates` is given.
    pub time: String,
    /// Dates of the start and the end of follow-up, instead of a time: the time is their difference in days.
    pub dates: Option<[String; 2]>,
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
    /// Which value means control. Where both are given, rows with any other value are left out.
    pub control: Option<String>,
    /// Columns that are numbers whatever they look like.
    pub numeric: Vec<String>,
    /// Columns that are categories whatever they look like.
    pub categorical: Vec<String>,
    /// Columns to ignore.
    pub drop: Vec<String>,
    /// Keep only rows in which each of these columns has this value.
    pub filters: Vec<(String, String)>,
    /// What to do about missing values.
    pub missing: Missing,
    /// What to do about times of zero.
    pub zero_time: ZeroTime,
}

impl Roles {
    /// The id column that will be used for a table with these column names.
    pub fn id_column<'a>(&'a self, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        match &self.id {
            Some(id) => Some(id),
            None => {
                let taken = |n: &str| {
                    n == self.time || n == self.event || n == self.treatment || self.drop.iter().any(|d| d == n)
                };
                let named = |n: &str| self.covariates.as_ref().is_some_and(|c| c.iter().any(|c| c == n));
                names.filter(|n| n.eq_ignore_ascii_case("id")).find(|n| !taken(n) && !named(n))
            }
        }
    }

    /// The name of the time: its column, or both columns of dates.
    pub fn time_name(&self) -> String {
        match &self.dates {
            Some([start, end]) => format!("{end} - {start}"),
            None => self.time.clone(),
        }
    }

    /// Columns with a part of their own, with what it is called.
    fn parts<'a>(&'a self, id: Option<&'a str>) -> Vec<(&'static str, &'a str)> {
        let mut out = match &self.dates {
            Some([start, end]) => vec![("start", start.as_str()), ("end", end.as_str())],
            None => vec![("time", self.time.as_str())],
        };
        out.extend([("event", self.event.as_str()), ("treatment", self.treatment.as_str())]);
        out.extend(id.map(|id| ("id", id)));
        out
    }

    /// What a column is for: time, start, end, event, treatment, id, filter, dropped, covariate or unused.
    pub fn role_of(&self, name: &str, id: Option<&str>) -> &'static str {
        if let Some((part, _)) = self.parts(id).into_iter().find(|(_, n)| *n == name) {
            return part;
        }
        match &self.covariates {
            _ if self.drop.iter().any(|d| d == name) => "dropped",
            Some(list) if list.iter().any(|c| c == name) => "covariate",
            _ if self.filters.iter().any(|(f, _)| f == name) => "filter",
            Some(_) => "unused",
            None => "covariate",
        }
    }

    fn declared(&self, name: &str) -> Declared {
        let among = |list: &[String]| list.iter().any(|n| n == name);
        match () {
            () if among(&self.categorical) => Declared::Categorical,
            () if among(&self.numeric) => Declared::Numeric,
            () => Declared::Nothing,
        }
    }
}

/// How many rows were left out, and why, on the way from a table to a cohort.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    /// Rows of the table.
    pub n_rows: usize,
    /// Rows left out, in the order in which the rules were applied.
    pub steps: Vec<FlowStep>,
}

/// Rows that one rule left out.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowStep {
    /// The rule.
    pub reason: String,
    /// Rows left out by it.
    pub n_dropped: usize,
}

impl Flow {
    /// Rows that are left.
    pub fn n_kept(&self) -> usize {
        self.n_rows - self.steps.iter().map(|s| s.n_dropped).sum::<usize>()
    }
}

/// A cohort, and how it came from its table.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// The cohort.
    pub cohort: Cohort,
    /// What is worth knowing of the table.
    pub warnings: Vec<Problem>,
    /// Rows that were left out.
    pub flow: Flow,
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
    pub(crate) schema: Vec<Covariate>,
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
        Cohort::admit(table, roles).map(|a| (a.cohort, a.warnings))
    }

    /// The cohort of a table with all that is known of how it came about, or every problem found.
    pub fn admit(table: &Table, roles: &Roles) -> Result<Admitted, Error> {
        let found = examine(table, roles);
        match found.units {
            Some((units, schema)) if !found.problems.iter().any(|p| p.severity == Severity::Error) => {
                let cohort = Cohort::from_units(units, roles.horizon).with_schema(schema);
                Ok(Admitted { cohort, warnings: found.problems, flow: found.flow })
            }
            _ => Err(Error::Refused(found.problems)),
        }
    }

    /// The same cohort, whose columns of numbers are these covariates. Their columns must be those of the cohort.
    pub fn with_schema(mut self, schema: Vec<Covariate>) -> Cohort {
        let mut next = 0;
        for c in &schema {
            assert_eq!(c.first, next, "the columns of `{}` follow those before it", c.name);
            next = c.columns().end;
        }
        assert_eq!(next, self.names.len(), "the covariates cover all columns");
        self.schema = schema;
        self
    }

    /// A cohort from valid arrays: sorts by id, applies the horizon and merges tied times.
    pub fn from_units(units: Units, horizon: f64) -> Cohort {
        let p = units.names.len();
        let order = id_order(&units.ids);
        let in_order = order.windows(2).all(|w| w[0] < w[1]);
        let Units { ids, time, event, arm, covariates, names, labels } = if in_order {
            units
        } else {
            let pick = |i: &u32| *i as usize;
            let mut covariates = units.covariates;
            reorder_rows(&mut covariates, p, &order);
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
        // Ids 1, 2, 3, … are row numbers, wherever they were written.
        let ids = match ids {
            Ids::Integers(v) if v.iter().enumerate().all(|(i, &id)| id == i as i64 + 1) => Ids::Rows(v.len()),
            ids => ids,
        };
        let (capped_time, capped_event) = apply_horizon(&time, &event, horizon);
        let schema = names.iter().enumerate().map(|(j, name)| Covariate::number(name, j)).collect();
        Cohort {
            schema,
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

    /// Number of columns of numbers: one for each numeric covariate and for each level of a category.
    pub fn n_covariates(&self) -> usize {
        self.names.len()
    }

    /// The covariates, and which columns of numbers each became.
    pub fn schema(&self) -> &[Covariate] {
        &self.schema
    }

    /// H.
    pub fn horizon(&self) -> f64 {
        self.horizon
    }

    /// Unit ids, ascending.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// Names of the columns of numbers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The covariates of unit `i`, as numbers.
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

/// Puts row `order[k]` in place k, for each k, without a second copy: along the cycles of the order.
fn reorder_rows(values: &mut [f64], width: usize, order: &[u32]) {
    let mut placed = vec![false; order.len()];
    let mut held = vec![0.0; width];
    for start in 0..order.len() {
        if placed[start] {
            continue;
        }
        held.copy_from_slice(&values[start * width..(start + 1) * width]);
        let mut at = start;
        loop {
            placed[at] = true;
            let from = order[at] as usize;
            if from == start {
                values[at * width..(at + 1) * width].copy_from_slice(&held);
                break;
            }
            values.copy_within(from * width..(from + 1) * width, at * width);
            at = from;
        }
    }
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
    pub(crate) units: Option<(Units, Vec<Covariate>)>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) flow: Flow,
}

/// The rows that are still there, while rules leave some out. Problems name rows of the file.
struct Kept<'a> {
    table: Cow<'a, Table>,
    /// The row of the file, from 0, of each row of the table.
    origin: Vec<usize>,
    flow: Flow,
    problems: Vec<Problem>,
    /// Problems whose rows are rows of the file already.
    settled: usize,
}

impl Kept<'_> {
    /// Turns rows of the table into rows of the file.
    fn settle(&mut self) {
        for p in &mut self.problems[self.settled..] {
            p.rows.iter_mut().for_each(|r| *r = self.origin[*r - 1] + 1);
        }
        self.settled = self.problems.len();
    }

    /// Leaves out rows, for a reason.
    fn leave_out(&mut self, reason: impl Into<String>, out: impl Fn(&Table, usize) -> bool) -> usize {
        let rows: Vec<usize> = (0..self.table.n_rows()).filter(|&i| !out(&self.table, i)).collect();
        let n_dropped = self.table.n_rows() - rows.len();
        self.flow.steps.push(FlowStep { reason: reason.into(), n_dropped });
        if n_dropped > 0 {
            self.settle();
            self.table = Cow::Owned(self.table.select(&rows));
            self.origin = rows.iter().map(|&i| self.origin[i]).collect();
        }
        n_dropped
    }

    fn column(&self, name: &str) -> &Column {
        self.table.column(name).expect("its presence was checked at the door")
    }

    fn failed(mut self) -> Examined {
        self.settle();
        Examined { problems: self.problems, flow: self.flow, ..Examined::default() }
    }
}

/// Everything that a table says under these roles, and every problem with it.
pub(crate) fn examine(table: &Table, roles: &Roles) -> Examined {
    let mut problems = Vec::new();
    let names = || table.columns().iter().map(|c| c.name.as_str());
    let id = roles.id_column(names());
    examine_roles(table, roles, id, &mut problems);
    let flow = Flow { n_rows: table.n_rows(), steps: Vec::new() };
    if !problems.is_empty() {
        return Examined { problems, flow, ..Examined::default() };
    }
    let mut kept =
        Kept { table: Cow::Borrowed(table), origin: (0..table.n_rows()).collect(), flow, problems, settled: 0 };
    if !keep_rows(&mut kept, roles) {
        return kept.failed();
    }

    let ids = match id {
        None if kept.flow.n_kept() < table.n_rows() => {
            Ids::Integers(kept.origin.iter().map(|&i| i as i64 + 1).collect())
        }
        None => Ids::Rows(table.n_rows()),
        Some(name) => {
            let Kept { table, problems, .. } = &mut kept;
            read_ids(table.column(name).expect("its presence was checked at the door"), problems)
        }
    };
    let Kept { table, problems, .. } = &mut kept;
    let column = |name: &str| table.column(name).expect("its presence was checked at the door");
    let time = read_time(column(&roles.time_name()), roles, problems);
    let event = read_event(column(&roles.event), problems);
    let arms = read_treatment(column(&roles.treatment), roles, problems);
    let is_covariate = |c: &&Column| roles.role_of(&c.name, id) == "covariate" && c.name != roles.time_name();
    let columns: Vec<&Column> = match &roles.covariates {
        Some(list) => list.iter().map(|c| column(c)).collect(),
        None => table.columns().iter().filter(is_covariate).collect(),
    };
    if columns.is_empty() {
        problems.push(Problem::error(
            Kind::NoCovariates,
            "no covariate is left",
            "matching needs at least one covariate",
            "add covariate columns, or name them with --covariates",
        ));
    }
    let declared: Vec<(&Column, Declared)> = columns.iter().map(|c| (*c, roles.declared(&c.name))).collect();
    let encoded = encode(&declared, roles.missing, table.n_rows(), problems);
    for c in &columns {
        if let Values::Number(v) = &c.values
            && roles.declared(&c.name) == Declared::Nothing
            && looks_like_id(v)
        {
            problems.push(
                Problem::warning(
                    Kind::LooksLikeId,
                    "its values are distinct consecutive whole numbers, as in an identifier",
                    "an identifier tells nothing of a patient and must not be matched on",
                    "if it is one, name it with --id or leave it out with --drop; if it is not, --numeric says so",
                )
                .column(&c.name),
            );
        }
    }

    let (Some(time), Some(event), Some((arm, labels))) = (time, event, arms) else {
        return kept.failed();
    };
    let outcomes = Outcomes { time, event, arm, labels };
    examine_arms(&outcomes, roles, problems);
    let units = encoded.map(|Encoded { schema, values }| {
        examine_levels(&schema, &values, &outcomes, problems);
        let names = schema.iter().flat_map(Covariate::column_names).collect();
        let Outcomes { time, event, arm, labels } = outcomes.clone();
        (Units { ids, time, event, arm, covariates: values, names, labels }, schema)
    });
    kept.settle();
    Examined { outcomes: Some(outcomes), units, problems: kept.problems, flow: kept.flow }
}

/// Rules on what was asked for: columns that exist, each with one part, and a horizon.
fn examine_roles(table: &Table, roles: &Roles, id: Option<&str>, problems: &mut Vec<Problem>) {
    let names = || table.columns().iter().map(|c| c.name.as_str());
    let mut wanted = roles.parts(id);
    wanted.extend(roles.covariates.iter().flatten().map(|c| ("covariate", c.as_str())));
    let mut absent = |role: &str, name: &str| {
        if table.column(name).is_some() {
            return;
        }
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
    };
    wanted.iter().for_each(|(role, name)| absent(role, name));
    roles.filters.iter().for_each(|(name, _)| absent("filter", name));
    for (role, list) in [("numeric", &roles.numeric), ("categorical", &roles.categorical), ("dropped", &roles.drop)] {
        list.iter().for_each(|name| absent(role, name));
    }
    wanted.extend(roles.drop.iter().map(|d| ("dropped", d.as_str())));
    for (i, (role, name)) in wanted.iter().enumerate() {
        if let Some((other, _)) = wanted[..i].iter().find(|(_, n)| n == name) {
            problems.push(
                Problem::error(
                    Kind::ColumnUsedTwice,
                    format!("it is asked for as {other} and as {role}"),
                    "a column has one part: time, event, treatment, id, covariate or dropped",
                    "name each column once",
                )
                .column(name),
            );
        }
    }
    for (flag, list, others) in
        [("--numeric", &roles.numeric, &roles.categorical), ("--categorical", &roles.categorical, &roles.drop)]
    {
        for name in list.iter().filter(|n| table.column(n).is_some()) {
            let role = roles.role_of(name, id);
            let found = if others.contains(name) && role != "dropped" {
                "it is declared --numeric and --categorical".to_string()
            } else if role != "covariate" {
                format!("it is declared {flag}, but its part is: {role}")
            } else {
                continue;
            };
            problems.push(
                Problem::error(
                    Kind::NotACovariate,
                    found,
                    "--numeric and --categorical say how one covariate is read",
                    "name it once, and only if it is a covariate",
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
}

/// Applies, in this order, filters, the choice of arms, dates, zero times and missing values.
/// Says whether there is anything to go on with.
fn keep_rows(kept: &mut Kept<'_>, roles: &Roles) -> bool {
    for (name, value) in &roles.filters {
        let held = distinct(kept.column(name), 6);
        kept.leave_out(format!("{name} is not {value}"), |t, i| {
            !t.column(name).expect("its presence was checked at the door").values.is(i, value)
        });
        if kept.table.n_rows() == 0 {
            kept.problems.push(
                Problem::error(
                    Kind::NothingKept,
                    format!("no row has the value `{value}`"),
                    "a filter keeps the rows in which the column has the value",
                    format!("the column holds {}", quoted(&held)),
                )
                .column(name),
            );
            return false;
        }
    }
    if let (Some(treated), Some(control)) = (&roles.treated, &roles.control) {
        let column = kept.column(&roles.treatment);
        let there = |label: &str| (0..column.values.len()).any(|i| column.values.is(i, label));
        let mut bad = Vec::new();
        for (flag, label) in [("--treated", treated), ("--control", control)] {
            if !there(label) {
                bad.push(
                    Problem::error(
                        Kind::TreatedUnknown,
                        format!(
                            "the label `{label}` of {flag} does not occur; the column holds {}",
                            quoted(&distinct(column, 6))
                        ),
                        "each label is a value of the treatment column",
                        "spell it as in the table",
                    )
                    .column(&roles.treatment),
                );
            }
        }
        if treated == control {
            bad.push(
                Problem::error(
                    Kind::TreatedUnknown,
                    format!("`{treated}` is both treated and control"),
                    "two arms are compared",
                    "name two different values",
                )
                .column(&roles.treatment),
            );
        }
        if !bad.is_empty() {
            kept.problems.extend(bad);
            return false;
        }
        kept.leave_out("in another arm", |t, i| {
            let values = &t.column(&roles.treatment).expect("its presence was checked at the door").values;
            !values.is_missing(i) && !values.is(i, treated) && !values.is(i, control)
        });
    }
    if let Some([start, end]) = &roles.dates {
        let days = [start, end]
            .map(|name| read_dates(kept.table.column(name).expect("its presence was checked"), &mut kept.problems));
        let [Some(from), Some(to)] = days else { return false };
        let values = Values::Number(from.iter().zip(&to).map(|(a, b)| b - a).collect());
        let dated = kept.table.clone().into_owned().with(Column { name: roles.time_name(), values });
        kept.table = Cow::Owned(dated);
    }
    if roles.zero_time == ZeroTime::Drop {
        let name = roles.time_name();
        let n_events = {
            let (time, event) = (&kept.column(&name).values, &kept.column(&roles.event).values);
            (0..kept.table.n_rows()).filter(|&i| time.is(i, "0") && event_of(event, i) == Some(true)).count()
        };
        let dropped = kept.leave_out("time is zero", |t, i| t.column(&name).is_some_and(|c| c.values.is(i, "0")));
        if n_events > 0 {
            kept.problems.push(
                Problem::warning(
                    Kind::RowsDropped,
                    format!(
                        "{} with a time of zero left out, {n_events} of them with an event",
                        plural(dropped, "row was", "rows were")
                    ),
                    "leaving out early events makes an arm look better than it is",
                    "consider --zero-time shift",
                )
                .column(&name),
            );
            kept.settled = kept.problems.len();
        }
    }
    if roles.missing == Missing::Drop {
        drop_missing(kept, roles);
    }
    if kept.table.n_rows() == 0 {
        kept.problems.push(Problem::error(
            Kind::NothingKept,
            "no row is left",
            "a cohort needs units in both arms",
            "drop columns that are mostly missing with --drop, or use --missing indicator",
        ));
        return false;
    }
    true
}

/// Leaves out rows with a missing value in a column that is used, and says whether they differ.
fn drop_missing(kept: &mut Kept<'_>, roles: &Roles) {
    let id = roles.id_column(kept.table.columns().iter().map(|c| c.name.as_str())).map(str::to_string);
    let is_used = |name: &str| {
        let role = if name == roles.time_name() { "time" } else { roles.role_of(name, id.as_deref()) };
        matches!(role, "time" | "event" | "treatment" | "id" | "covariate")
    };
    let used: Vec<String> = kept.table.columns().iter().map(|c| c.name.clone()).filter(|n| is_used(n)).collect();
    let n = kept.table.n_rows();
    let mut out = vec![false; n];
    let mut counts = Vec::new();
    for name in &used {
        let values = &kept.column(name).values;
        let gaps = (0..n).filter(|&i| values.is_missing(i)).inspect(|&i| out[i] = true).count();
        if gaps > 0 {
            counts.push(format!("{name} {gaps}"));
        }
    }
    let n_out = out.iter().filter(|o| **o).count();
    if n_out == 0 {
        kept.flow.steps.push(FlowStep { reason: "a value is missing".into(), n_dropped: 0 });
        return;
    }
    let mut found =
        format!("{} left out because of missing values ({})", plural(n_out, "row was", "rows were"), counts.join(", "));
    if n_out < n {
        let (time, event, arm) = (
            &kept.column(&roles.time_name()).values,
            &kept.column(&roles.event).values,
            &kept.column(&roles.treatment).values,
        );
        let is_event = |i: usize| event_of(event, i).map(|e| f64::from(u8::from(e)));
        let first = distinct(kept.column(&roles.treatment), 2);
        let label = roles.treated.clone().or_else(|| first.last().cloned()).unwrap_or_default();
        let is_treated = |i: usize| (!arm.is_missing(i)).then(|| f64::from(u8::from(arm.is(i, &label))));
        let time = |i: usize| match time {
            Values::Number(v) => Some(v[i]).filter(|t| t.is_finite()),
            _ => None,
        };
        let mut differing = Vec::new();
        let mut compare = |what: &str, value: &dyn Fn(usize) -> Option<f64>, show: &dyn Fn(f64) -> String| {
            let side =
                |left_out: bool| -> Vec<f64> { (0..n).filter(|&i| out[i] == left_out).filter_map(value).collect() };
            let (a, b) = (side(true), side(false));
            if a.is_empty() || b.is_empty() {
                return;
            }
            let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
            let variance = |v: &[f64]| v.iter().map(|x| (x - mean(v)).powi(2)).sum::<f64>() / v.len() as f64;
            let sd = ((variance(&a) + variance(&b)) / 2.0).sqrt();
            found.push_str(&format!("; {what} {} among them, {} among the others", show(mean(&a)), show(mean(&b))));
            if (mean(&a) - mean(&b)).abs() > 0.1 * sd {
                differing.push(what.to_string());
            }
        };
        let percent = |x: f64| format!("{:.1} %", 100.0 * x);
        compare("events", &is_event, &percent);
        compare(&format!("in arm `{label}`"), &is_treated, &percent);
        compare("mean time", &time, &|x| format!("{x:.1}"));
        found.push_str(&match differing.is_empty() {
            true => "; in none of these do they differ by more than 0.1 standard deviations".to_string(),
            false => format!("; they differ by more than 0.1 standard deviations in: {}", differing.join(", ")),
        });
    }
    kept.leave_out("a value is missing", |_, i| out[i]);
    kept.problems.push(Problem::warning(
        Kind::RowsDropped,
        found,
        "patients who are left out are not represented: where they differ, so may the effects",
        "compare with --missing indicator, or leave out the columns with most gaps by --drop",
    ));
    kept.settled = kept.problems.len();
}

/// Days since 1970-01-01; NaN where a date is missing.
fn read_dates(column: &Column, problems: &mut Vec<Problem>) -> Option<Vec<f64>> {
    let Values::Text(t) = &column.values else {
        problems.push(
            Problem::error(
                Kind::NotADate,
                "it holds no dates",
                "--start and --end name columns of dates, written as 2019-07-31",
                "if the column holds times as numbers, name it with --time",
            )
            .column(&column.name),
        );
        return None;
    };
    let levels: Vec<Option<DateText>> = t.levels.iter().map(|l| date(l)).collect();
    let of_row = |i: usize| levels.get(t.codes[i] as usize);
    let is_bad = |wanted: Option<DateText>| move |i: usize| of_row(i).is_some_and(|d| *d == wanted);
    let before = problems.len();
    for (kind, wanted, what, remedy) in [
        (
            Kind::AmbiguousDate,
            Some(DateText::Ambiguous),
            "may be day, month and year in any order",
            "write dates as year-month-day, 2019-07-31",
        ),
        (Kind::NotADate, Some(DateText::Impossible), "is no day of the calendar", "correct it"),
        (Kind::NotADate, None, "is not a date", "write dates as year-month-day, 2019-07-31, without a time of day"),
    ] {
        let rows = rows_where(t.codes.len(), is_bad(wanted));
        if let Some(&row) = rows.first.first() {
            let example = t.get(row - 1).unwrap_or("");
            problems.push(
                Problem::error(
                    kind,
                    format!("{}: `{example}` {what}", plural(rows.count, "value is not read", "values are not read")),
                    "dates are written as 2019-07-31, so that nobody has to guess",
                    remedy,
                )
                .column(&column.name)
                .rows(&rows),
            );
        }
    }
    (problems.len() == before).then(|| {
        (0..t.codes.len())
            .map(|i| match of_row(i) {
                Some(Some(DateText::Days(d))) => *d as f64,
                _ => f64::NAN,
            })
            .collect()
    })
}

/// Whether a row has an event; `None` if that cannot be read.
fn event_of(values: &Values, row: usize) -> Option<bool> {
    match values {
        Values::Number(v) if v[row] == 0.0 => Some(false),
        Values::Number(v) if v[row] == 1.0 => Some(true),
        Values::Text(t) => match t.get(row)?.to_ascii_lowercase().as_str() {
            "false" | "0" => Some(false),
            "true" | "1" => Some(true),
            _ => None,
        },
        _ => None,
    }
}

/// Warns of levels that only one arm has: their patients have nobody like them in the other.
fn examine_levels(schema: &[Covariate], values: &[f64], outcomes: &Outcomes, problems: &mut Vec<Problem>) {
    let width = schema.last().map_or(0, |c| c.columns().end);
    for c in schema.iter().filter(|c| c.is_category()) {
        let mut counts = vec![[0usize; 2]; c.columns().len()];
        for (row, arm) in values.chunks_exact(width).zip(&outcomes.arm) {
            if let Some(level) = row[c.columns()].iter().position(|v| *v == 1.0) {
                counts[level][arm.index()] += 1;
            }
        }
        let lonely: Vec<String> = counts
            .iter()
            .enumerate()
            .filter(|(_, n)| n[0] == 0 || n[1] == 0)
            .map(|(l, n)| {
                format!("`{}` ({} {})", c.level(l), n[0] + n[1], if n[0] > 0 { "control" } else { "treated" })
            })
            .collect();
        if !lonely.is_empty() {
            problems.push(
                Problem::warning(
                    Kind::LevelInOneArm,
                    format!(
                        "{} only in one arm: {}",
                        if lonely.len() == 1 { "a level occurs" } else { "levels occur" },
                        lonely.join(", ")
                    ),
                    "such patients are compared with patients of other levels in the other arm",
                    "merge the level with one like it, or leave these patients out",
                )
                .column(&c.name),
            );
        }
    }
}

/// Refuses missing values; says whether there were any.
fn refuse_missing(column: &Column, role: &str, problems: &mut Vec<Problem>) -> bool {
    let n = column.values.len();
    let missing = rows_where(n, |i| column.values.is_missing(i));
    if !missing.is_empty() {
        problems.push(missing_values(&column.name, role, &missing, missing.count == n));
    }
    !missing.is_empty()
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

fn read_time(column: &Column, roles: &Roles, problems: &mut Vec<Problem>) -> Option<Vec<f64>> {
    let remedy = "give times as numbers, such as days since the start; a decimal comma must become a point; dates are named with --start and --end";
    let mut values = numbers(column, "the time", remedy, problems)?.into_owned();
    let missing = refuse_missing(column, "the time", problems);
    let infinite = refuse_not_finite(&column.name, &values, problems);
    if roles.zero_time == ZeroTime::Shift && values.contains(&0.0) {
        let half = 0.5 * values.iter().copied().filter(|t| *t > 0.0).fold(f64::INFINITY, f64::min);
        let zero = rows_where(values.len(), |i| values[i] == 0.0);
        if half.is_finite() {
            values.iter_mut().filter(|t| **t == 0.0).for_each(|t| *t = half);
            problems.push(
                Problem::warning(
                    Kind::TimeNotPositive,
                    format!(
                        "{} taken as {half}, half of the smallest positive time",
                        plural(zero.count, "time of zero is", "times of zero are")
                    ),
                    "an event on day 0 happened during it",
                    "compare with --zero-time drop",
                )
                .column(&column.name)
                .rows(&zero),
            );
        }
    }
    let low = rows_where(values.len(), |i| values[i] <= 0.0);
    if !low.is_empty() {
        let zeros = values.iter().filter(|t| **t == 0.0).count();
        let (found, remedy) = if roles.dates.is_some() && zeros < low.count {
            (
                plural(low.count, "end is on or before its start", "ends are on or before their starts"),
                "correct the dates; an end on the day of its start is handled by --zero-time drop or --zero-time shift",
            )
        } else if zeros == low.count {
            (
                plural(low.count, "time is zero", "times are zero"),
                "--zero-time shift takes half of the smallest positive time instead; --zero-time drop leaves these rows out, which is harmless for a censoring and not for an event",
            )
        } else {
            (
                plural(low.count, "time is zero or negative", "times are zero or negative"),
                "correct negative times; zero times are handled by --zero-time shift or --zero-time drop",
            )
        };
        problems.push(
            Problem::error(
                Kind::TimeNotPositive,
                found,
                "a time is counted from the start of follow-up and must be positive",
                remedy,
            )
            .column(&column.name)
            .rows(&low),
        );
    }
    (!missing && !infinite && low.is_empty()).then_some(values)
}

fn read_event(column: &Column, problems: &mut Vec<Problem>) -> Option<Vec<bool>> {
    if refuse_missing(column, "the event", problems) {
        return None;
    }
    let n = column.values.len();
    let read = |i: usize| event_of(&column.values, i);
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
        Values::Text(t) => {
            let mut levels = t.levels.clone();
            levels.sort();
            levels.truncate(most);
            levels
        }
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

/// Labels that mean treated without being told.
const TREATED_LABELS: [&str; 4] = ["1", "true", "yes", "treated"];

/// A label as it must be typed.
fn shell(label: &str) -> String {
    let plain = !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || "+-_.:/%@,".contains(c));
    if plain { label.to_string() } else { format!("'{}'", label.replace('\'', "'\\''")) }
}

fn read_treatment(column: &Column, roles: &Roles, problems: &mut Vec<Problem>) -> Option<(Vec<Arm>, [String; 2])> {
    let (treated, control) = (roles.treated.as_deref(), roles.control.as_deref());
    if refuse_missing(column, "the treatment", problems) {
        return None;
    }
    let labels = distinct(column, 6);
    if labels.len() != 2 {
        let more = if labels.len() == 6 { " and perhaps more" } else { "" };
        problems.push(
            Problem::error(
                Kind::TreatmentValues,
                format!(
                    "it holds {}: {}{more}",
                    plural(labels.len(), "distinct value", "distinct values"),
                    quoted(&labels)
                ),
                "the treatment has exactly two values, treated and control",
                if labels.len() < 2 {
                    "check that the column is the right one and that both arms are in the file".to_string()
                } else {
                    let first = treated.unwrap_or(&labels[1]);
                    let second = control.or(labels.iter().map(String::as_str).find(|l| *l != first)).unwrap_or_default();
                    format!(
                        "name the two that you want to compare, as in --treated {} --control {}; rows of the others are left out and counted",
                        shell(first),
                        shell(second)
                    )
                },
            )
            .column(&column.name),
        );
        return None;
    }
    let found = |label: &str| {
        labels
            .iter()
            .position(|l| l == label || matches!((l.parse::<f64>(), label.parse::<f64>()), (Ok(a), Ok(b)) if a == b))
    };
    let of_treated = match (treated, control) {
        (Some(label), _) => found(label),
        (None, Some(label)) => found(label).map(|i| 1 - i),
        (None, None) => {
            let evident: Vec<usize> =
                (0..2).filter(|&i| TREATED_LABELS.contains(&labels[i].to_ascii_lowercase().as_str())).collect();
            (evident.len() == 1).then(|| evident[0])
        }
    };
    let Some(of_treated) = of_treated else {
        let problem = match treated.or(control) {
            Some(label) => Problem::error(
                Kind::TreatedUnknown,
                format!("the label `{label}` does not occur; the column holds {}", quoted(&labels)),
                "the treated label is one of the two values of the treatment column",
                format!("use --treated {} or --treated {}", shell(&labels[0]), shell(&labels[1])),
            ),
            None => Problem::error(
                Kind::TreatedUnclear,
                format!("it is not evident which of {} means treated", quoted(&labels)),
                "1, true, yes or treated mean treated; any other label must be named",
                format!("add --treated {} or --treated {}", shell(&labels[0]), shell(&labels[1])),
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
        let mut event_times: Vec<f64> = members().filter(|&i| before[i]).map(|i| capped[i]).collect();
        let n_events = event_times.len();
        event_times.sort_by(f64::total_cmp);
        event_times.dedup();
        if n_events >= MANY_EVENTS && event_times.len() * TIES_PER_TIME <= n_events {
            problems.push(
                Problem::warning(
                    Kind::HeavyTies,
                    format!("in {who} {n_events} events share {}", plural(event_times.len(), "time", "different times")),
                    "ties are handled exactly, but a mean event time is no finer than the unit that times were rounded to",
                    "if times in days are at hand, use them",
                )
                .column(&roles.time_name()),
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
                .column(&roles.time_name()),
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
                .column(&roles.time_name()),
            );
        }
    }
}
