//! Which column is likely to be which. The page fills its form with it; the user decides.

use dvim::internal::table::{Column, Table, Values};
use serde::Serialize;

/// Distinct values of a column that the page shows, at most.
const MOST_LEVELS: usize = 12;

/// A column, as the page lists it.
#[derive(Debug, Serialize)]
pub struct ColumnAnswer {
    name: String,
    /// `number`, `text` or `id`.
    kind: &'static str,
    n_missing: usize,
    /// Smallest and largest number.
    range: Option<[f64; 2]>,
    /// The distinct values, where they are few.
    levels: Option<Vec<String>>,
}

/// What the form begins with.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Guess {
    time: Option<String>,
    event: Option<String>,
    treatment: Option<String>,
    id: Option<String>,
    horizon: Option<f64>,
}

/// Every column of a table.
pub fn columns(table: &Table) -> Vec<ColumnAnswer> {
    table.columns().iter().map(column).collect()
}

fn column(c: &Column) -> ColumnAnswer {
    let (kind, n_missing, range) = match &c.values {
        Values::Number(v) => {
            let there = || v.iter().copied().filter(|x| !x.is_nan());
            let (low, high) = (there().fold(f64::INFINITY, f64::min), there().fold(f64::NEG_INFINITY, f64::max));
            ("number", v.iter().filter(|x| x.is_nan()).count(), (low <= high).then_some([low, high]))
        }
        Values::Text(t) => ("text", (0..t.codes.len()).filter(|&i| t.get(i).is_none()).count(), None),
        Values::Id(_) => ("id", 0, None),
    };
    ColumnAnswer { name: c.name.clone(), kind, n_missing, range, levels: levels(c) }
}

/// The distinct values of a column; `None` where there are more than the page shows.
fn levels(c: &Column) -> Option<Vec<String>> {
    match &c.values {
        Values::Number(v) => {
            let mut found: Vec<f64> = Vec::new();
            for x in v.iter().copied().filter(|x| !x.is_nan()) {
                if !found.contains(&x) {
                    found.push(x);
                }
                if found.len() > MOST_LEVELS {
                    return None;
                }
            }
            found.sort_by(f64::total_cmp);
            Some(found.iter().map(f64::to_string).collect())
        }
        Values::Text(t) => (t.levels.len() <= MOST_LEVELS).then(|| t.levels.clone()),
        Values::Id(_) => None,
    }
}

/// Words that columns of each part are called by, the surest first.
const TIME: [&str; 9] = ["time", "days", "months", "years", "futime", "followup", "duration", "survival", "tte"];
const EVENT: [&str; 9] = ["event", "status", "fustat", "death", "died", "dead", "relapse", "recurrence", "cens"];
const TREATMENT: [&str; 9] = ["treatment", "treated", "treat", "trt", "arm", "rx", "therapy", "group", "z"];

/// The likely parts of the columns. A column has to fit its part by its values too.
pub fn guess(table: &Table) -> Guess {
    let all = table.columns();
    let few = |c: &Column, most: usize| levels(c).is_some_and(|l| (2..=most).contains(&l.len()));
    let time = pick(all, &TIME, |c| matches!(c.values, Values::Number(_)) && !few(c, 4));
    let event = pick(all, &EVENT, |c| few(c, 4));
    let treatment = pick(all, &TREATMENT, |c| few(c, 4) && event != Some(c));
    let id = all.iter().find(|c| matches!(c.values, Values::Id(_)));
    let name = |c: Option<&Column>| c.map(|c| c.name.clone());
    let horizon = time.and_then(horizon);
    Guess { time: name(time), event: name(event), treatment: name(treatment), id: name(id), horizon }
}

/// The first column that fits and is called by one of these words; the surest word decides.
fn pick<'a>(all: &'a [Column], words: &[&str], fits: impl Fn(&Column) -> bool) -> Option<&'a Column> {
    let called = |c: &Column| c.name.to_lowercase();
    let named =
        |is: &dyn Fn(&str, &str) -> bool| words.iter().find_map(|w| all.iter().find(|c| is(&called(c), w) && fits(c)));
    let parts = |name: &str, w: &str| name.split(|c: char| !c.is_alphanumeric()).any(|part| part == w);
    named(&|name, w| name == w).or_else(|| named(&parts)).or_else(|| named(&|name, w| w.len() > 3 && name.contains(w)))
}

/// A time that one patient in five is followed beyond, in two digits.
fn horizon(time: &Column) -> Option<f64> {
    let Values::Number(v) = &time.values else { return None };
    let mut sorted: Vec<f64> = v.iter().copied().filter(|x| x.is_finite() && *x > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    let at = *sorted.get(sorted.len() * 4 / 5)?;
    // Through its decimal digits: 0.1 + 0.2 is no horizon to show.
    format!("{at:.1e}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(columns: &[(&str, &[f64])]) -> Table {
        let column =
            |(name, v): &(&str, &[f64])| Column { name: (*name).into(), values: Values::Number(v.to_vec().into()) };
        Table::new(columns.iter().map(column).collect()).unwrap()
    }

    #[test]
    fn parts_are_guessed_by_name_and_values() {
        let times: Vec<f64> = (1..=100).map(f64::from).collect();
        let half: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        let t = table(&[("age", &times), ("os_time", &times), ("os_event", &half), ("arm", &half), ("group", &half)]);
        let g = guess(&t);
        assert_eq!(
            [&g.time, &g.event, &g.treatment].map(|n| n.as_deref()),
            [Some("os_time"), Some("os_event"), Some("arm")]
        );
        assert_eq!(g.horizon, Some(81.0));
        assert_eq!(guess(&table(&[("treatment", &times)])), Guess::default());
    }

    #[test]
    fn columns_tell_their_values() {
        let c = &columns(&table(&[("x", &[2.0, f64::NAN, 1.0])]))[0];
        assert_eq!((c.n_missing, c.range, c.levels.clone()), (1, Some([1.0, 2.0]), Some(vec!["1".into(), "2".into()])));
    }
}
