//! From a table to units: which rows are left out, and every rule that is broken.

use super::read::{
    cause_of, distinct, looks_inverted, read_clusters, read_dates, read_entries, read_event, read_ids, read_time,
    read_treatment, read_weights,
};
use super::suspects::{DUPLICATES, suspects};
use super::{Arm, Flow, FlowStep, LARGEST_VALUE, Roles, TIE_TOLERANCE, Units, ZeroTime, at_horizon};
use crate::error::{NAMES_SHOWN, Problem, ProblemKind as Kind, bounded, nearest_names, some_of};
use crate::outcome::Extras;
use crate::phrase;
use crate::schema::{Covariate, Declared, Encoded, Missing, encode, plural, quoted};
use crate::setting::Setting;
use crate::table::{Column, Ids, Table, Values};
use rayon::prelude::*;
use std::borrow::Cow;

/// Fewer units than this at risk at the horizon in an arm is worth a warning.
const FEW_AT_HORIZON: usize = 10;

/// Events of an arm from which on ties are worth a word, and how many of them share a time.
const MANY_EVENTS: usize = 20;
const TIES_PER_TIME: usize = 4;

/// Weights are worth a word where the effective size is below this share of the units.
const UNEQUAL_WEIGHTS: f64 = 0.5;
/// Fewer at risk than this share of an arm at an event, while others have yet to enter, is worth a warning.
const EARLY_SHARE: f64 = 0.1;

/// Outcomes and arms in the order of the rows: what can be said of a table whose covariates are
/// not yet in order.
#[derive(Clone, Debug)]
pub(crate) struct Outcomes {
    pub(crate) time: Vec<f64>,
    pub(crate) event: Vec<bool>,
    pub(crate) arm: Vec<Arm>,
    pub(crate) labels: [String; 2],
    pub(crate) extras: Extras,
}

/// What was read from a table. Parts are there if they could be read, even where a rule on the
/// whole is broken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Examined {
    pub(crate) outcomes: Option<Outcomes>,
    pub(crate) units: Option<(Units, Vec<Covariate>)>,
    /// Times and events at the horizon.
    pub(crate) capped: Option<(Vec<f64>, Vec<bool>)>,
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
        Examined { problems: bounded(self.problems), flow: self.flow, ..Examined::default() }
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
        return Examined { problems: bounded(problems), flow, ..Examined::default() };
    }
    let mut kept =
        Kept { table: Cow::Borrowed(table), origin: (0..table.n_rows()).collect(), flow, problems, settled: 0 };
    if !keep_rows(&mut kept, roles) {
        return kept.failed();
    }

    let table: &Table = &kept.table;
    let column = |name: &str| table.column(name).expect("its presence was checked at the door");
    // What can be read at the same time; problems stay in the order of the questions.
    let read_ids = || {
        let mut problems = Vec::new();
        let ids = match id {
            None if kept.flow.n_kept() < kept.flow.n_rows => {
                Ids::Integers(kept.origin.iter().map(|&i| i as i64 + 1).collect())
            }
            None => Ids::Rows(table.n_rows()),
            Some(name) => read_ids(column(name), &mut problems),
        };
        (ids, problems)
    };
    let ((ids, of_ids), (outcomes, of_outcomes)) = rayon::join(read_ids, || read_outcomes(table, roles));
    let mut problems = of_ids;
    problems.extend(of_outcomes);
    let made = [Some(roles.time_name()), roles.entry_name()];
    let is_covariate =
        |c: &&Column| roles.role_of(&c.name, id) == "covariate" && !made.iter().flatten().any(|made| *made == c.name);
    let columns: Vec<&Column> = match &roles.covariates {
        Some(list) => list.iter().map(|c| column(c)).collect(),
        None => table.columns().iter().filter(is_covariate).collect(),
    };
    if columns.is_empty() {
        problems.push(no_covariates());
    }
    let ((encoded, of_covariates), of_arms) = rayon::join(
        || read_covariates(&columns, roles, table.n_rows()),
        || outcomes.as_ref().map(|outcomes| examine_arms(outcomes, roles)),
    );
    problems.extend(of_covariates);
    let mut capped = None;
    if let Some((at_horizon, of_arms)) = of_arms {
        problems.extend(of_arms);
        capped = Some(at_horizon);
    }
    let Some(outcomes) = outcomes else {
        kept.problems.extend(problems);
        return kept.failed();
    };
    problems.extend(suspects(&columns, &outcomes, &ids, roles));
    let units = encoded.map(|Encoded { schema, values }| {
        examine_levels(&schema, &values, &outcomes, &mut problems);
        let names = schema.iter().flat_map(Covariate::column_names).collect();
        let Outcomes { time, event, arm, labels, extras } = outcomes.clone();
        (Units { ids, time, event, arm, covariates: values, names, labels, extras }, schema)
    });
    kept.problems.extend(problems);
    kept.settle();
    Examined { outcomes: Some(outcomes), units, capped, problems: bounded(kept.problems), flow: kept.flow }
}

pub(super) fn no_covariates() -> Problem {
    Problem::error(
        Kind::NoCovariates,
        "no covariate is left",
        "matching needs at least one covariate",
        phrase!["add covariate columns, or name them with ", Setting::Covariates],
    )
}

/// Everything of the units but ids and covariates, where all of it can be read.
pub(super) fn read_outcomes(table: &Table, roles: &Roles) -> (Option<Outcomes>, Vec<Problem>) {
    let mut found = Vec::new();
    let problems = &mut found;
    let column = |name: &str| table.column(name).expect("its presence was checked at the door");
    let time = read_time(column(&roles.time_name()), roles, problems);
    let event = read_event(column(&roles.event), roles, problems);
    let weight = roles.weights.as_ref().map(|name| read_weights(column(name), problems));
    let cluster = roles.cluster.as_ref().map(|name| read_clusters(column(name), problems));
    let entry = roles.entry_name().map(|name| read_entries(column(&name), time.as_deref(), roles, problems));
    let arms = read_treatment(column(&roles.treatment), roles, problems);
    problems.extend(looks_inverted(time.as_deref(), event.as_ref().map(|e| &e.0[..]), roles));
    let outcomes = (|| {
        let (time, (event, competing), (arm, labels)) = (time?, event?, arms?);
        // What was asked for and could not be read is a problem already.
        let (weight, cluster, entry) = (settled(weight)?, settled(cluster)?, settled(entry)?);
        let extras = Extras { weight, entry, cluster, competing: roles.cause.is_some().then_some(competing) };
        Some(Outcomes { time, event, arm, labels, extras })
    })();
    (outcomes, found)
}

/// The covariates as numbers, and what is wrong with them.
fn read_covariates(columns: &[&Column], roles: &Roles, n_rows: usize) -> (Option<Encoded>, Vec<Problem>) {
    let mut problems = Vec::new();
    let declared: Vec<(&Column, Declared)> = columns.iter().map(|c| (*c, roles.declared(&c.name))).collect();
    let encoded = encode(&declared, roles.missing, n_rows, &mut problems);
    (encoded, problems)
}

/// A column that was not asked for, or one that was read; `None` for one that could not be.
fn settled<T>(column: Option<Option<T>>) -> Option<Option<T>> {
    match column {
        None => Some(None),
        Some(None) => None,
        Some(found) => Some(found),
    }
}

/// Rules on what was asked for: columns that exist, each with one part, and a horizon.
pub(super) fn examine_roles(table: &Table, roles: &Roles, id: Option<&str>, problems: &mut Vec<Problem>) {
    let mut wanted = roles.parts(id);
    wanted.extend(roles.covariates.iter().flatten().map(|c| ("covariate", c.as_str())));
    let mut asked = wanted.clone();
    asked.extend(roles.filters.iter().map(|(name, _)| ("filter", name.as_str())));
    for (role, list) in [("numeric", &roles.numeric), ("categorical", &roles.categorical), ("dropped", &roles.drop)] {
        asked.extend(list.iter().map(|name| (role, name.as_str())));
    }
    asked.extend(roles.allow.iter().filter(|a| *a != DUPLICATES).map(|name| ("allowed", name.as_str())));
    problems.extend(examine_presence(table, &asked));
    wanted.extend(roles.drop.iter().map(|d| ("dropped", d.as_str())));
    for (i, (role, name)) in wanted.iter().enumerate() {
        if let Some((other, _)) = wanted[..i].iter().find(|(_, n)| n == name) {
            problems.push(
                Problem::error(
                    Kind::ColumnUsedTwice,
                    format!("it is asked for as {other} and as {role}"),
                    "a column has one part: time, event, treatment, weights, cluster, entry, id, covariate or dropped",
                    "name each column once",
                )
                .column(name),
            );
        }
    }
    for (setting, list, others) in [
        (Setting::Numeric, &roles.numeric, &roles.categorical),
        (Setting::Categorical, &roles.categorical, &roles.drop),
    ] {
        for name in list.iter().filter(|n| table.column(n).is_some()) {
            let role = roles.role_of(name, id);
            let found = if others.contains(name) && role != "dropped" {
                phrase!["it is declared ", Setting::Numeric, " and ", Setting::Categorical]
            } else if role != "covariate" {
                phrase!["it is declared ", setting, ", but its part is: ", role]
            } else {
                continue;
            };
            problems.push(
                Problem::error(
                    Kind::NotACovariate,
                    found,
                    phrase![Setting::Numeric, " and ", Setting::Categorical, " say how one covariate is read"],
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
            "the horizon is a positive, finite time: it defines who counts as event-free",
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

/// The refusal of columns that are not in the table: one, whatever their number.
fn examine_presence(table: &Table, asked: &[(&str, &str)]) -> Option<Problem> {
    let names = || table.columns().iter().map(|c| c.name.as_str());
    let absent: Vec<&(&str, &str)> = asked.iter().filter(|(_, name)| table.column(name).is_none()).collect();
    let more = if table.columns().len() > 12 { ", …" } else { "" };
    let held = format!("he table has: {}{more}", names().take(12).collect::<Vec<_>>().join(", "));
    let near = |name: &str| nearest_names(name, names()).join("` or `");
    let rule = "each named column must be in the table, spelt as in its header";
    match absent.as_slice() {
        [] => None,
        [(role, name)] => {
            let found = format!("there is no such column (asked for as {role})");
            let remedy = match near(name).as_str() {
                "" => format!("t{held}"),
                near => format!("did you mean `{near}`? T{held}"),
            };
            Some(Problem::error(Kind::NoSuchColumn, found, rule, remedy).column(name))
        }
        several => {
            let found = format!("{} columns are not there: {}", several.len(), some_of(several.iter().map(|a| a.1)));
            let meant: Vec<String> = several
                .iter()
                .take(NAMES_SHOWN)
                .map(|a| (a.1, near(a.1)))
                .filter(|(_, near)| !near.is_empty())
                .map(|(name, near)| format!("`{near}` for `{name}`"))
                .collect();
            let remedy = match meant.as_slice() {
                [] => format!("t{held}"),
                _ => format!("did you mean {}? T{held}", meant.join(", ")),
            };
            Some(Problem { count: several.len(), ..Problem::error(Kind::NoSuchColumn, found, rule, remedy) })
        }
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
        for (setting, label) in [(Setting::Treated, treated), (Setting::Control, control)] {
            if !there(label) {
                bad.push(
                    Problem::error(
                        Kind::TreatedUnknown,
                        phrase![
                            format!("the label `{label}` of "),
                            setting,
                            format!(" does not occur; the column holds {}", quoted(&distinct(column, 6)))
                        ],
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
        let since = |days: &[f64]| Values::Number(from.iter().zip(days).map(|(a, b)| b - a).collect());
        let mut dated = kept.table.clone().into_owned().with(Column { name: roles.time_name(), values: since(&to) });
        if let Some((entry, name)) = roles.entry.as_ref().zip(roles.entry_name()) {
            let column = kept.table.column(entry).expect("its presence was checked");
            let Some(days) = read_dates(column, &mut kept.problems) else { return false };
            dated = dated.with(Column { name, values: since(&days) });
        }
        kept.table = Cow::Owned(dated);
    }
    if let Some(name) = roles.entry_name() {
        let last = roles.horizon * (1.0 - TIE_TOLERANCE);
        kept.leave_out("enters at or after the horizon", |t, i| match t.column(&name).map(|c| &c.values) {
            Some(Values::Number(v)) => v[i] >= last,
            _ => false,
        });
    }
    if roles.zero_time == ZeroTime::Drop {
        let name = roles.time_name();
        let n_events = {
            let (time, event) = (&kept.column(&name).values, &kept.column(&roles.event).values);
            let is_event = |i: usize| cause_of(event, i, roles).is_some_and(|(own, other)| own || other);
            (0..kept.table.n_rows()).filter(|&i| time.is(i, "0") && is_event(i)).count()
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
                    phrase!["consider ", Setting::ZeroTime.to("shift")],
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
            phrase![
                "drop columns that are mostly missing with ",
                Setting::Drop,
                ", or use ",
                Setting::Missing.to("indicator")
            ],
        ));
        return false;
    }
    true
}

/// Leaves out rows with a missing value in a column that is used, and says whether they differ.
fn drop_missing(kept: &mut Kept<'_>, roles: &Roles) {
    let id = roles.id_column(kept.table.columns().iter().map(|c| c.name.as_str())).map(str::to_string);
    let is_used = |name: &str| {
        let made = name == roles.time_name() || roles.entry_name().is_some_and(|e| e == name);
        let role = if made { "time" } else { roles.role_of(name, id.as_deref()) };
        matches!(role, "time" | "event" | "treatment" | "weights" | "cluster" | "entry" | "id" | "covariate")
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
        let is_event = |i: usize| cause_of(event, i, roles).map(|(own, _)| f64::from(u8::from(own)));
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
        phrase![
            "compare with ",
            Setting::Missing.to("indicator"),
            ", or leave out the columns with most gaps by ",
            Setting::Drop
        ],
    ));
    kept.settled = kept.problems.len();
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

/// Rules on each arm as a whole. Gives times and events at the horizon, and what is wrong.
pub(super) fn examine_arms(outcomes: &Outcomes, roles: &Roles) -> ((Vec<f64>, Vec<bool>), Vec<Problem>) {
    let mut problems = Vec::new();
    let Outcomes { time, event, arm, labels, extras } = outcomes;
    let (capped, before, extras) = at_horizon(time, event, extras, roles.horizon);
    examine_weights(&extras, roles, &mut problems);
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
        event_times.par_sort_unstable_by(f64::total_cmp);
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
        if let Some(entry) = &extras.entry {
            examine_entries(&who, members().map(|i| (capped[i], before[i], entry[i])).collect(), roles, &mut problems);
        }
        let last = members().map(|i| capped[i]).fold(0.0, f64::max);
        // A curve that ends in an event at its last time has reached zero: it needs nobody at H.
        let is_over = |i: usize| before[i] || extras.competing.as_ref().is_some_and(|c| c[i]);
        let reaches_zero = members().filter(|&i| capped[i] == last).all(is_over);
        if at_horizon == 0 && !reaches_zero {
            problems.push(
                Problem::error(
                    Kind::NobodyAtHorizon,
                    format!("in {who} nobody is followed to the horizon {}; follow-up ends at {last}", roles.horizon),
                    "the share that is event-free is read off at the horizon, so someone must be at risk there",
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
    ((capped, before), problems)
}

/// Warns where weights make a cohort worth much less than its units, and where they look like counts.
fn examine_weights(extras: &Extras, roles: &Roles, problems: &mut Vec<Problem>) {
    let (Some(weights), Some(name)) = (&extras.weight, &roles.weights) else { return };
    let (sum, square) = weights.iter().fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
    let size = sum * sum / square;
    if size < UNEQUAL_WEIGHTS * weights.len() as f64 {
        problems.push(
            Problem::warning(
                Kind::UnequalWeights,
                format!(
                    "the weights differ so much that the {} units are worth {size:.0} of equal weight",
                    weights.len()
                ),
                "a few heavy patients decide a weighted curve",
                "check the largest weights; trim them if a model made them",
            )
            .column(name),
        );
    }
    if weights.iter().all(|w| w.fract() == 0.0) && weights.iter().any(|w| *w > 1.0) {
        problems.push(
            Problem::warning(
                Kind::UnequalWeights,
                "all weights are whole numbers",
                "a weight says how many of the population a patient stands for; standard errors are by patient, not by weight",
                "if a row stands for that many patients who were all seen, repeat the row instead",
            )
            .column(name),
        );
    }
}

/// Warns of events at which few of an arm are at risk because the others have yet to enter.
fn examine_entries(who: &str, members: Vec<(f64, bool, f64)>, roles: &Roles, problems: &mut Vec<Problem>) {
    let mut first_events: Vec<f64> = members.iter().filter(|m| m.1).map(|m| m.0).collect();
    first_events.sort_by(f64::total_cmp);
    first_events.dedup();
    let few = (EARLY_SHARE * members.len() as f64).ceil();
    let thin = first_events.into_iter().find_map(|t| {
        let at_risk = members.iter().filter(|m| m.2 < t && t <= m.0).count();
        let to_come = members.iter().filter(|m| m.2 >= t).count();
        ((at_risk as f64) < few && to_come > 0).then_some((t, at_risk, to_come))
    });
    if let (Some((t, at_risk, to_come)), Some(name)) = (thin, &roles.entry) {
        problems.push(
            Problem::warning(
                Kind::FewAtRisk,
                format!("in {who} an event at {t} meets {at_risk} at risk, while {to_come} have yet to enter"),
                "with delayed entry the first steps of a curve rest on few patients, and a curve that falls to zero there stays at zero",
                "expect flagged patients; consider counting time from a later origin",
            )
            .column(name),
        );
    }
}
