//! Rows that occur again under other ids.

use super::{DUPLICATES, Kind};
use crate::cohort::Roles;
use crate::cohort::admit::Outcomes;
use crate::error::{Problem, RowList};
use crate::phrase;
use crate::schema::plural;
use crate::setting::Setting;
use crate::table::{Column, Values};
use rayon::prelude::*;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Share of rows from which on repetition is plain.
const MANY: f64 = 0.02;
/// How many times as often as by chance.
const BEYOND_CHANCE: f64 = 10.0;
/// Fewer repeated rows prove nothing.
const FEWEST: usize = 5;

/// Rows that agree in time, event, arm and every covariate, beyond what coarse data have by chance.
///
/// Two patients with the same covariates, arm and event have the same time with the chance that any two with that event
/// have. So repetition by chance is told from repetition by mistake even where covariates have few patterns.
pub(super) fn duplicates(columns: &[&Column], outcomes: &Outcomes, roles: &Roles) -> Option<Problem> {
    let n = outcomes.time.len();
    let key = |i: usize| {
        let mut hash = DefaultHasher::new();
        for c in columns {
            match &c.values {
                Values::Number(v) => (v[i] + 0.0).to_bits().hash(&mut hash),
                Values::Text(t) => t.codes[i].hash(&mut hash),
                Values::Id(ids) => ids.text(i).hash(&mut hash),
            }
        }
        (outcomes.arm[i].index(), outcomes.event[i]).hash(&mut hash);
        hash.finish()
    };
    let mut keyed: Vec<(u64, u32)> = (0..n).into_par_iter().map(|i| (key(i), i as u32)).collect();
    keyed.par_sort_unstable();
    // Chance that two units with the same event have the same time.
    let same_time = [false, true].map(|event| {
        let mut counts: HashMap<u64, usize> = HashMap::new();
        let of_event = || (0..n).filter(|&i| outcomes.event[i] == event);
        of_event().for_each(|i| *counts.entry(outcomes.time[i].to_bits()).or_default() += 1);
        let (all, squares) = (of_event().count() as f64, counts.values().map(|&c| (c * (c - 1)) as f64).sum::<f64>());
        if all > 1.0 { squares / (all * (all - 1.0)) } else { 0.0 }
    });
    let (mut repeated, mut pairs, mut by_chance) = (Vec::new(), 0.0, 0.0);
    for alike in keyed.chunk_by(|a, b| a.0 == b.0).filter(|rows| rows.len() > 1) {
        let mut rows: Vec<u32> = alike.iter().map(|k| k.1).collect();
        let size = rows.len() as f64;
        by_chance += 0.5 * size * (size - 1.0) * same_time[usize::from(outcomes.event[rows[0] as usize])];
        rows.sort_unstable_by(|&a, &b| outcomes.time[a as usize].total_cmp(&outcomes.time[b as usize]).then(a.cmp(&b)));
        for same in rows.chunk_by(|&a, &b| outcomes.time[a as usize] == outcomes.time[b as usize]) {
            pairs += 0.5 * (same.len() * (same.len() - 1)) as f64;
            repeated.extend_from_slice(&same[1..]);
        }
    }
    if repeated.len() < FEWEST || pairs < BEYOND_CHANCE * by_chance {
        return None;
    }
    repeated.sort_unstable();
    let mut rows = RowList::default();
    repeated.iter().for_each(|&i| rows.push(i as usize));
    let found = format!(
        "{} in time, event, arm and every covariate; by chance {by_chance:.1} pairs would",
        plural(repeated.len(), "row repeats another", "rows repeat another")
    );
    let rule = "each patient counts once; a patient who is there twice makes every interval too narrow";
    let allowed = roles.allow.iter().any(|a| a == DUPLICATES);
    let plain = repeated.len() as f64 >= MANY * n as f64;
    // Whoever names clusters has said that rows belong together.
    let problem = if plain && !allowed && roles.cluster.is_none() {
        let remedy =
            phrase!["keep one row for each patient; if these are different patients, ", Setting::Allow.to(DUPLICATES)];
        Problem::error(Kind::DuplicateRows, found, rule, remedy)
    } else {
        let remedy = match allowed {
            true => phrase!["they were allowed by ", Setting::Allow.to(DUPLICATES)],
            false => phrase!["look at these rows; if they are of the same patients, keep one of each"],
        };
        Problem::warning(Kind::DuplicateRows, found, rule, remedy)
    };
    Some(problem.rows(&rows))
}
