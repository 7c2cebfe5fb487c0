//! A cohort from arrays: a simulation, or a run that is reopened. The rules are those that a table must satisfy.

use super::admit::{Outcomes, examine_arms, examine_roles, no_covariates, read_outcomes};
use super::read::{read_entries, read_ids};
use super::{Arm, Cohort, LARGEST_VALUE, Roles, Units};
use crate::error::{Error, Problem, Severity};
use crate::schema::{
    Covariate, Kind, constant_covariate, missing_values, refuse_not_finite, rows_where, unknown_level,
};
use crate::table::{Column, Table, TextValues, Values};

impl Cohort {
    /// The cohort of these arrays, or every problem found. `schema` says which columns of numbers each covariate
    /// became; without it every column is a covariate of its own.
    ///
    /// # Panics
    /// If the arrays are not of one length, or the schema does not cover the columns.
    pub fn from_parts(units: Units, schema: Option<Vec<Covariate>>, horizon: f64) -> Result<Cohort, Error> {
        let n = units.ids.len();
        let lengths = [units.time.len(), units.event.len(), units.arm.len()];
        assert!(lengths == [n; 3] && units.covariates.len() == n * units.names.len(), "arrays of one length");
        let numbers = || units.names.iter().enumerate().map(|(j, name)| Covariate::number(name, j)).collect();
        let schema = schema.unwrap_or_else(numbers);
        let mut problems = Vec::new();
        read_ids(&column("id", Values::Id(units.ids.clone())), &mut problems);
        let outcomes = examine_outcomes(&units, horizon, &mut problems);
        examine_covariates(&units, &schema, &mut problems);
        match outcomes {
            Some((outcomes, capped)) if !problems.iter().any(|p| p.severity == Severity::Error) => {
                let Outcomes { time, event, arm, labels, extras } = outcomes;
                let units = Units { time, event, arm, labels, extras, ..units };
                Ok(Cohort::of_units(units, Some(capped), horizon).with_schema(schema))
            }
            _ => Err(Error::Refused(problems)),
        }
    }
}

fn column(name: &str, values: Values) -> Column {
    Column { name: name.into(), values }
}

/// Reads the outcomes as if they stood in a table. Gives them with times and events at the horizon.
#[allow(clippy::type_complexity, reason = "what the door gives, in one place")]
fn examine_outcomes(
    units: &Units,
    horizon: f64,
    problems: &mut Vec<Problem>,
) -> Option<(Outcomes, (Vec<f64>, Vec<bool>))> {
    let extras = &units.extras;
    let competing = |i: usize| extras.competing.as_ref().is_some_and(|c| c[i]);
    let event = |i: usize| if competing(i) { 2.0 } else { f64::from(u8::from(units.event[i])) };
    let arms =
        TextValues { levels: units.labels.to_vec(), codes: units.arm.iter().map(|arm| arm.index() as u32).collect() };
    let n = units.time.len();
    let mut columns = vec![
        column("time", Values::Number(units.time.clone().into())),
        column("event", Values::Number((0..n).map(event).collect::<Vec<f64>>().into())),
        column("treatment", Values::Text(arms)),
    ];
    let numbers = |c: &Vec<u32>| c.iter().map(|&c| f64::from(c)).collect();
    let further_columns = [
        ("weights", extras.weight.clone()),
        ("cluster", extras.cluster.as_ref().map(numbers)),
        ("entry", extras.entry.clone()),
    ];
    let there =
        further_columns.into_iter().filter_map(|(name, values)| Some(column(name, Values::Number(values?.into()))));
    columns.extend(there);
    let has = |name: &str| columns.iter().any(|c| c.name == name).then(|| name.to_string());
    let roles = Roles {
        time: "time".into(),
        event: "event".into(),
        treatment: "treatment".into(),
        horizon,
        treated: Some(units.labels[Arm::Treated.index()].clone()),
        weights: has("weights"),
        cluster: has("cluster"),
        entry: has("entry"),
        cause: extras.competing.as_ref().map(|_| "1".to_string()),
        ..Roles::default()
    };
    let table = Table::new(columns).expect("columns of one length");
    examine_roles(&table, &roles, None, problems);
    if !problems.is_empty() {
        return None;
    }
    if let Some(entry) = table.column("entry") {
        // Whoever enters at the horizon is never at risk. A table leaves such rows out before they are read.
        read_entries(entry, Some(&vec![horizon; n]), &roles, problems);
    }
    let (outcomes, found) = read_outcomes(&table, &roles);
    problems.extend(found);
    let outcomes = outcomes?;
    let (capped, found) = examine_arms(&outcomes, &roles);
    problems.extend(found);
    Some((outcomes, capped))
}

/// Rules on covariates: finite, not constant, and one level of each category.
fn examine_covariates(units: &Units, schema: &[Covariate], problems: &mut Vec<Problem>) {
    let p = units.names.len();
    if p == 0 {
        problems.push(no_covariates());
        return;
    }
    let rows = || units.covariates.chunks_exact(p);
    let n = units.time.len();
    // One pass over all rows; columns are looked at one by one only where something is wrong.
    let is_sound = units.covariates.iter().all(|x| x.abs() <= LARGEST_VALUE);
    let mut varies = vec![false; p];
    if let Some(first) = rows().next() {
        for x in rows() {
            varies.iter_mut().zip(first.iter().zip(x)).for_each(|(v, (a, b))| *v |= a != b);
        }
    }
    for c in schema {
        if !is_sound {
            for j in c.columns() {
                let values: Vec<f64> = rows().map(|x| x[j]).collect();
                refuse_not_finite(&c.name, &values, problems);
                let gaps = rows_where(n, |i| values[i].is_nan());
                if !gaps.is_empty() {
                    problems.push(missing_values(&c.name, "a covariate", &gaps, gaps.count == n));
                }
            }
        }
        if n > 0 && !c.columns().any(|j| varies[j]) {
            problems.push(constant_covariate(&c.name, &units.covariates[c.first].to_string()));
        }
        let levels = match &c.kind {
            Kind::Number => continue,
            Kind::Category { levels } => levels.clone(),
            Kind::Indicator { zero, one } => vec![zero.clone(), one.clone()],
            Kind::Missing => vec!["no".into(), "yes".into()],
        };
        let is_level = |x: &[f64]| {
            let marks = &x[c.columns()];
            let all = marks.iter().all(|v| *v == 0.0 || *v == 1.0);
            all && (!c.is_category() || marks.iter().sum::<f64>() == 1.0)
        };
        let bad = rows_where(n, |i| !is_level(&units.covariates[i * p..(i + 1) * p]));
        if !bad.is_empty() {
            let marks = &units.covariates[(bad.first[0] - 1) * p..][c.columns()];
            let example = marks.iter().map(f64::to_string).collect::<Vec<_>>().join(" ");
            problems.push(unknown_level(&bad, &[example], &levels).column(&c.name));
        }
    }
}
