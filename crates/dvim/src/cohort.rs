//! The cohort: units with a time, an event, an arm and covariates, and the horizon.
//!
//! This is the only door, for tables ([`Cohort::admit`]) and for arrays ([`Cohort::from_parts`]). Everything that can
//! be wrong is found here, all at once; once a [`Cohort`] exists nothing downstream validates. Three policies are
//! applied here and nowhere else (docs/methods/table.md):
//!
//! - **Order.** Units are sorted by id, so that no later result depends on the order of rows.
//! - **Horizon.** A time at or beyond H becomes (H, no event): the unit reached the horizon.
//! - **Ties.** Times that differ by no more than [`TIE_TOLERANCE`]·H are one time.

mod admit;
mod batch;
mod labels;
mod parts;
mod read;
mod suspects;

pub use crate::arm::Arm;
use crate::error::{Error, Problem, Severity};
use crate::outcome::{Extras, Outcome};
use crate::schema::{Covariate, Declared, Missing};
use crate::table::{Column, Ids, Table};
use rayon::prelude::*;

pub(crate) use admit::examine;
pub use batch::{Seen, outcomes_of};
pub use labels::{CovariateLabel, Labels};
pub(crate) use suspects::is_code_for_unknown;
pub use suspects::{DUPLICATES, Leak, leaks};

pub use crate::schema::LARGEST_VALUE;

/// Two times closer than this share of the horizon are the same time. Round-off from a change of
/// unit (days to years) is near 1e-16 and from differences of decimal dates near 1e-13; recorded
/// times are never closer than about 1e-6. The rule is relative to H so that results do not depend
/// on the unit of time. After `aeqSurv` of R's survival, which uses 1.5e-8.
pub const TIE_TOLERANCE: f64 = 1e-10;

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
    /// Every choice, the usual one first.
    pub const ALL: [ZeroTime; 3] = [ZeroTime::Refuse, ZeroTime::Drop, ZeroTime::Shift];

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
///
/// ```
/// use dvim::Roles;
///
/// let roles = Roles {
///     time: "days".into(),
///     event: "relapse".into(),
///     treatment: "arm".into(),
///     horizon: 1825.0,
///     ..Roles::default()
/// };
/// assert!(roles.covariates.is_none(), "every other column is a covariate");
/// ```
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
    /// Columns that are covariates although they look like an outcome, an identifier or a mistake, and
    /// [`DUPLICATES`] where rows may repeat each other.
    pub allow: Vec<String>,
    /// Keep only rows in which each of these columns has this value.
    pub filters: Vec<(String, String)>,
    /// What to do about missing values.
    pub missing: Missing,
    /// What to do about times of zero.
    pub zero_time: ZeroTime,
    /// Case weights.
    pub weights: Option<String>,
    /// Clusters, for the standard errors.
    pub cluster: Option<String>,
    /// Time from which a unit is watched; a date where `dates` is given.
    pub entry: Option<String>,
    /// The cause of interest, where the event column holds causes: 0 is censored, any other value an event of another
    /// cause.
    pub cause: Option<String>,
    /// Whether the event column says who was censored instead: 0 is an event, as in `CNSR` of CDISC ADTTE.
    pub censor: bool,
    /// What the arms, the time, the event and the covariates are called. Changes no number.
    pub labels: Labels,
}

impl Roles {
    /// The id column that will be used for a table with these column names.
    pub fn id_column<'a>(&'a self, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        match &self.id {
            Some(id) => Some(id),
            None => {
                let taken = |n: &str| {
                    let extras = [&self.weights, &self.cluster, &self.entry];
                    [&self.time, &self.event, &self.treatment].into_iter().chain(&self.drop).any(|d| d == n)
                        || extras.into_iter().flatten().any(|d| d == n)
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

    /// The name of the time of entry: its column, or the difference of two dates.
    pub(crate) fn entry_name(&self) -> Option<String> {
        let entry = self.entry.as_ref()?;
        Some(match &self.dates {
            Some([start, _]) => format!("{entry} - {start}"),
            None => entry.clone(),
        })
    }

    /// Columns with a part of their own, with what it is called.
    fn parts<'a>(&'a self, id: Option<&'a str>) -> Vec<(&'static str, &'a str)> {
        let mut out = match &self.dates {
            Some([start, end]) => vec![("start", start.as_str()), ("end", end.as_str())],
            None => vec![("time", self.time.as_str())],
        };
        out.extend([("event", self.event.as_str()), ("treatment", self.treatment.as_str())]);
        let extras = [("weights", &self.weights), ("cluster", &self.cluster), ("entry", &self.entry)];
        out.extend(extras.into_iter().filter_map(|(part, name)| Some((part, name.as_deref()?))));
        out.extend(id.map(|id| ("id", id)));
        out
    }

    /// What a column is for: time, start, end, event, treatment, weights, cluster, entry, id, filter, dropped,
    /// covariate or unused.
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
///
/// ```
/// use dvim::{Cohort, Column, Roles, Table, Values};
///
/// let n = 40;
/// let numbers = |f: &dyn Fn(usize) -> f64| Values::Number((0..n).map(f).collect::<Vec<f64>>().into());
/// let column = |name: &str, values: Values| Column { name: name.into(), values };
/// let table = Table::new(vec![
///     column("days", numbers(&|i| 10.0 + (i * 37 % 400) as f64)),
///     column("relapse", numbers(&|i| (i % 3 == 0) as u8 as f64)),
///     column("arm", numbers(&|i| (i % 2) as f64)),
///     column("age", numbers(&|i| 40.0 + (i * 7 % 23) as f64)),
/// ])
/// .expect("columns of one length");
/// let roles = Roles {
///     time: "days".into(),
///     event: "relapse".into(),
///     treatment: "arm".into(),
///     horizon: 300.0,
///     ..Roles::default()
/// };
/// let (cohort, _warnings) = Cohort::from_table(&table, &roles)?;
/// assert_eq!((cohort.n_units(), cohort.n_covariates()), (40, 1));
/// # Ok::<(), dvim::Error>(())
/// ```
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
    /// As recorded, and after the horizon was applied.
    recorded_further: Extras,
    extras: Extras,
}

/// The parts of a cohort, for a caller that has arrays rather than a table: a simulation, or a saved run. They become a
/// cohort by [`Cohort::from_parts`].
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
    /// Weights, entries, clusters and other causes.
    pub extras: Extras,
}

/// The parts of a cohort where somebody else holds them.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// Unit ids.
    pub ids: &'a Ids,
    /// Recorded times.
    pub time: &'a [f64],
    /// Recorded events.
    pub event: &'a [bool],
    /// Arms.
    pub arm: &'a [Arm],
    /// Covariates, row-major.
    pub covariates: &'a [f64],
    /// Names of the covariates.
    pub names: &'a [String],
    /// Labels of control and treated.
    pub labels: &'a [String; 2],
    /// Weights, entries, clusters and other causes.
    pub extras: &'a Extras,
}

impl Units {
    /// These arrays, lent.
    pub fn as_recorded(&self) -> Recorded<'_> {
        let Units { ids, time, event, arm, covariates, names, labels, extras } = self;
        Recorded { ids, time, event, arm, covariates, names, labels, extras }
    }
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
                let cohort = Cohort::of_units(units, found.capped, roles.horizon).with_schema(schema);
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

    /// A cohort from arrays that the door has seen: sorts by id, applies the horizon and merges tied times. `capped`
    /// are times and events at the horizon, where they are known already.
    pub(crate) fn of_units(units: Units, mut capped: Option<(Vec<f64>, Vec<bool>)>, horizon: f64) -> Cohort {
        let p = units.names.len();
        let order = id_order(&units.ids);
        let in_order = order.windows(2).all(|w| w[0] < w[1]);
        let Units { ids, time, event, arm, covariates, names, labels, mut extras } = if in_order {
            units
        } else {
            let pick = |i: &u32| *i as usize;
            capped = None;
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
                extras: units.extras.select(&order),
            }
        };
        number_clusters(&mut extras);
        // Ids 1, 2, 3, … are row numbers, wherever they were written.
        let ids = match ids {
            Ids::Integers(v) if v.iter().enumerate().all(|(i, &id)| id == i as i64 + 1) => Ids::Rows(v.len()),
            ids => ids,
        };
        let (capped_time, capped_event, capped_further) = match capped {
            Some((time, event)) if extras.is_empty() => (time, event, extras.clone()),
            _ => at_horizon(&time, &event, &extras, horizon),
        };
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
            recorded_further: extras,
            extras: capped_further.telling(),
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

    /// The covariates of some units, row-major.
    pub fn rows_of(&self, units: &[u32]) -> Vec<f64> {
        let mut rows = Vec::with_capacity(units.len() * self.n_covariates());
        units.iter().for_each(|&i| rows.extend_from_slice(self.covariates(i as usize)));
        rows
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

    /// All that is known of the outcome of unit `i`, after the horizon was applied.
    pub fn outcome(&self, i: usize) -> Outcome {
        self.extras.outcome(i, self.time[i], self.event[i])
    }

    /// The same of these units.
    pub fn outcomes(&self, units: &[u32]) -> Vec<Outcome> {
        units.iter().map(|&i| self.outcome(i as usize)).collect()
    }

    /// Case weights, entries, clusters and events of other causes, after the horizon was applied.
    pub fn extras(&self) -> &Extras {
        &self.extras
    }

    /// The case weight of unit `i`: 1 where there are none.
    pub fn weight(&self, i: usize) -> f64 {
        self.extras.weight.as_ref().map_or(1.0, |w| w[i])
    }

    /// Effective number of units of an arm under the case weights, `(Σw)²/Σw²` [Kish 1965]: their number where there
    /// are none.
    pub fn effective_size(&self, arm: Arm) -> f64 {
        let weights = || (0..self.n_units()).filter(|&i| self.arm[i] == arm).map(|i| self.weight(i));
        let (sum, square) = weights().fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
        if square > 0.0 { sum * sum / square } else { 0.0 }
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
    pub fn position(&self, id: &str) -> Option<usize> {
        self.ids.position(id)
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
    pub fn as_recorded(&self) -> Recorded<'_> {
        Recorded {
            ids: &self.ids,
            time: &self.recorded_time,
            event: &self.recorded_event,
            arm: &self.arm,
            covariates: &self.covariates,
            names: &self.names,
            labels: &self.labels,
            extras: &self.recorded_further,
        }
    }

    /// Copies of the arrays of this cohort, as recorded: for a cohort that differs from it in some of them.
    pub fn to_units(&self) -> Units {
        let Recorded { ids, time, event, arm, covariates, names, labels, extras } = self.as_recorded();
        Units {
            ids: ids.clone(),
            time: time.to_vec(),
            event: event.to_vec(),
            arm: arm.to_vec(),
            covariates: covariates.to_vec(),
            names: names.to_vec(),
            labels: labels.clone(),
            extras: extras.clone(),
        }
    }
}

/// The distinct values of a column, as text, in order; at most this many.
pub fn labels(table: &Table, column: &str, most: usize) -> Option<Vec<String>> {
    table.column(column).map(|c| read::distinct(c, most))
}

/// What is wrong with ids: those that are empty, and those that occur twice.
pub fn problems_of_ids(column: &str, ids: &Ids) -> Vec<Problem> {
    let mut problems = Vec::new();
    read::read_ids(&Column { name: column.into(), values: crate::table::Values::Id(ids.clone()) }, &mut problems);
    problems
}

/// The ids of the rows that the filters keep, as text: who a table is of, before any other rule. `None` where no column
/// holds ids or a filter names none.
pub fn patients(table: &Table, roles: &Roles) -> Option<Vec<String>> {
    let ids = table.column(roles.id_column(table.columns().iter().map(|c| c.name.as_str()))?)?;
    let filters: Option<Vec<_>> =
        roles.filters.iter().map(|(name, value)| Some((table.column(name)?, value))).collect();
    let filters = filters?;
    let rows: Vec<usize> =
        (0..table.n_rows()).filter(|&i| filters.iter().all(|(c, value)| c.values.is(i, value))).collect();
    let kept = Column { name: ids.name.clone(), values: ids.values.select(&rows) };
    let read = read::read_ids(&kept, &mut Vec::new());
    Some((0..read.len()).map(|i| read.text(i).into_owned()).collect())
}

/// Numbers clusters in the order in which they appear, so that sums over them do not depend on the order of rows.
fn number_clusters(extras: &mut Extras) {
    let Some(clusters) = &mut extras.cluster else { return };
    let mut numbers = std::collections::HashMap::new();
    for c in clusters {
        let next = numbers.len() as u32;
        *c = *numbers.entry(*c).or_insert(next);
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
    let mut order: Vec<(f64, u32)> = time.iter().copied().zip(0..).filter(|(t, _)| !reaches(*t)).collect();
    order.par_sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut capped = vec![horizon; time.len()];
    let mut first = f64::NEG_INFINITY;
    for (t, i) in order {
        if t - first > tolerance {
            first = t;
        }
        capped[i as usize] = first;
    }
    let events = time.iter().zip(event).map(|(&t, &e)| e && !reaches(t)).collect();
    (capped, events)
}

/// The same with what units have beyond a time and an event. Entries and times that are tied are one time, at which
/// whoever enters is not yet at risk.
pub(crate) fn at_horizon(time: &[f64], event: &[bool], extras: &Extras, horizon: f64) -> (Vec<f64>, Vec<bool>, Extras) {
    let n = time.len();
    let mut out = extras.clone();
    let (mut times, mut events) = match &extras.entry {
        None => apply_horizon(time, event, horizon),
        Some(entry) => {
            let later = entry.iter().copied().filter(|e| *e > 0.0);
            let all: Vec<f64> = time.iter().copied().chain(later).collect();
            let mut seen = event.to_vec();
            seen.resize(all.len(), false);
            let (all, seen) = apply_horizon(&all, &seen, horizon);
            let mut merged = all[n..].iter();
            let of = |e: &f64| if *e > 0.0 { merged.next().copied().unwrap_or(*e) } else { 0.0 };
            out.entry = Some(entry.iter().map(of).collect());
            (all, seen)
        }
    };
    times.truncate(n);
    events.truncate(n);
    if let Some(competing) = &mut out.competing {
        competing.iter_mut().zip(&times).for_each(|(c, t)| *c &= *t < horizon);
    }
    (times, events, out)
}
