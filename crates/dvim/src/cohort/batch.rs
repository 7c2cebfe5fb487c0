//! Outcomes of a part of the patients, read as those of the cohort were.
//!
//! A part need not have both arms, nor an event: what a table as a whole has to have is looked at once, over all parts.

use super::read::{cause_of, read_time, read_weights};
use super::{Arm, Roles, TIE_TOLERANCE};
use crate::error::{Error, Problem, ProblemKind, Severity};
use crate::outcome::Outcome;
use crate::phrase;
use crate::schema::{missing_values, rows_where};
use crate::setting::Setting;
use crate::table::{Column, Table};

/// What was seen of a patient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// The arm.
    pub arm: Arm,
    /// The outcome, at the horizon.
    pub outcome: Outcome,
}

/// The arms and outcomes of the rows of a table. `labels` are those of control and treated.
pub fn outcomes_of(table: &Table, roles: &Roles, labels: &[String; 2], horizon: f64) -> Result<Vec<Seen>, Error> {
    let mut problems = Vec::new();
    let parts = [("time", &roles.time), ("event", &roles.event), ("treatment", &roles.treatment)];
    let parts = parts.into_iter().chain(roles.weights.iter().map(|name| ("weights", name)));
    let mut columns: Vec<&Column> = Vec::new();
    for (part, name) in parts {
        match table.column(name) {
            Some(column) => columns.push(column),
            None => problems.push(
                Problem::error(
                    ProblemKind::NoSuchColumn,
                    format!("there is no such column (asked for as {part})"),
                    "every part of the patients has the columns of the whole",
                    "give all parts the same columns",
                )
                .column(name),
            ),
        }
    }
    let refused = |problems| Err(Error::Refused(problems));
    if !problems.is_empty() {
        return refused(problems);
    }
    let n = table.n_rows();
    for (column, what) in columns.iter().zip(["the time", "the event", "the treatment", "the weight"]) {
        let gaps = rows_where(n, |i| column.values.is_missing(i));
        if !gaps.is_empty() {
            problems.push(missing_values(&column.name, what, &gaps, false));
        }
    }
    if !problems.is_empty() {
        return refused(problems);
    }
    let time = read_time(columns[0], roles, &mut problems);
    let weight = columns.get(3).map(|column| read_weights(column, &mut problems));
    let events: Vec<Option<(bool, bool)>> = (0..n).map(|i| cause_of(&columns[1].values, i, roles)).collect();
    let unread = rows_where(n, |i| events[i].is_none());
    if !unread.is_empty() {
        problems.push(
            Problem::error(
                ProblemKind::EventCoding,
                format!("{} values are not an event indicator", unread.count),
                "the event is 1 or true if it was seen, 0 or false if the unit was censored",
                "recode the column as 0 and 1",
            )
            .column(&columns[1].name)
            .rows(&unread),
        );
    }
    let is = |i: usize, arm: Arm| columns[2].values.is(i, &labels[arm.index()]);
    let others = rows_where(n, |i| !Arm::BOTH.iter().any(|arm| is(i, *arm)));
    if !others.is_empty() {
        problems.push(
            Problem::error(
                ProblemKind::TreatmentValues,
                format!("{} values are neither `{}` nor `{}`", others.count, labels[1], labels[0]),
                "the treatment has exactly two values, treated and control",
                phrase!["name the two with ", Setting::Treated, " and ", Setting::Control],
            )
            .column(&columns[2].name)
            .rows(&others),
        );
    }
    let (Some(time), false) = (time, problems.iter().any(|p| p.severity == Severity::Error)) else {
        return refused(problems);
    };
    let weight = weight.flatten();
    let seen = |i: usize| {
        let (event, competing) = events[i].unwrap_or_default();
        let reaches = time[i] >= horizon - TIE_TOLERANCE * horizon;
        let mut outcome = Outcome::plain(if reaches { horizon } else { time[i] }, event && !reaches);
        outcome.competing = competing && !reaches;
        outcome.weight = weight.as_ref().map_or(1.0, |w| w[i]);
        Seen { arm: if is(i, Arm::Treated) { Arm::Treated } else { Arm::Control }, outcome }
    };
    Ok((0..n).map(seen).collect())
}
