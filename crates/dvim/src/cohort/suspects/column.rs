//! What a column says of itself: identifiers, codes for unknown values, absurd values.

use super::{Finding, Kind, names};
use crate::schema::plural;
use crate::table::{Column, Values};

/// Fewer rows than this prove no identifier.
const FEWEST_IDS: usize = 20;
/// Pairs of neighbours (7, 8) without a single pair of equals (7, 7): a draw from any smooth distribution has half as
/// many equals as neighbours, so none at all has a chance of e⁻¹⁰.
const NEIGHBOURS: usize = 20;
/// Digits from which on distinct whole numbers are worth a look.
const LONG: f64 = 1e5;

/// Codes that stand for "unknown", written by registries and statistical packages.
const CODES: [f64; 18] = [
    -9.0, -99.0, -999.0, -9999.0, -99999.0, -8.0, -88.0, -888.0, -7.0, -77.0, 88.0, 99.0, 888.0, 999.0, 8888.0, 9999.0,
    99999.0, 999999.0,
];
/// Whether a number is a usual code for an unknown value.
pub(crate) fn is_code_for_unknown(x: f64) -> bool {
    CODES.contains(&x)
}

/// Rows with a code, and how often its neighbours would have to occur, from which on a code inside the range is plain.
const SPIKE: usize = 5;
const SPIKE_RATIO: f64 = 5.0;
/// Values next to it that are compared with.
const NEAR: f64 = 10.0;

/// Interquartile ranges beyond the quartiles from which on a value is absurd.
const ABSURD: f64 = 1000.0;
/// And from which on a look is asked for, where it is far on the scale of logarithms too.
const ODD: f64 = 50.0;
const ODD_LOG: f64 = 6.0;

fn numbers(column: &Column) -> Option<&[f64]> {
    match &column.values {
        Values::Number(v) => Some(v),
        _ => None,
    }
}

/// Distinct whole numbers that were given out one by one.
pub(super) fn identifier(column: &Column, n: usize, known_number: bool) -> Option<Finding> {
    let v = numbers(column).filter(|v| n >= FEWEST_IDS && !known_number && v.len() == n)?;
    if v.iter().any(|x| x.is_nan() || x.fract() != 0.0) {
        return None;
    }
    let mut sorted = v.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    if sorted.windows(2).any(|w| w[0] == w[1]) {
        return None;
    }
    let (low, high) = (sorted[0], sorted[n - 1]);
    let neighbours = sorted.windows(2).filter(|w| w[1] - w[0] == 1.0).count();
    let plain = |words: &str| Some(Finding::plain(Kind::LooksLikeId, words.to_string()));
    if high - low + 1.0 == n as f64 {
        return plain("its values are distinct consecutive whole numbers, as in an identifier");
    }
    if neighbours >= NEIGHBOURS {
        return plain("its values are whole numbers, many of them neighbours and no two equal, as in an identifier");
    }
    if names::is_identifier(&column.name) {
        return plain("its values are distinct whole numbers, and its name is that of an identifier");
    }
    let in_order = v.windows(2).all(|w| w[0] < w[1]) || v.windows(2).all(|w| w[0] > w[1]);
    if in_order {
        return Some(Finding::look(
            Kind::LooksLikeId,
            "its values are distinct whole numbers in the order of the rows",
        ));
    }
    (low.abs().max(high.abs()) >= LONG && n >= 50)
        .then(|| Finding::look(Kind::LooksLikeId, "its values are distinct long whole numbers, as in an identifier"))
}

/// A value with the rows that have it.
type Counted = (f64, usize);

fn counted(v: &[f64]) -> Vec<Counted> {
    let mut sorted: Vec<f64> = v.iter().copied().filter(|x| x.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())).collect()
}

/// A code that stands for an unknown value.
pub(super) fn sentinel(column: &Column) -> Option<Finding> {
    let all = counted(numbers(column)?);
    let n: usize = all.iter().map(|c| c.1).sum();
    if all.len() < 3 || n < FEWEST_IDS {
        return None;
    }
    let ends = [(all[0], &all[1..], true), (all[all.len() - 1], &all[..all.len() - 1], false)];
    ends.into_iter().find_map(|((code, count), others, is_low)| {
        if !CODES.contains(&code) {
            return (code == -1.0 && is_low && others[0].0 >= 0.0 && others.iter().any(|o| o.0 > 1.0)).then(|| {
                let words = format!("{} -1, and no other is negative", plural(count, "value is", "values are"));
                Finding::look(Kind::Sentinel, words)
            });
        }
        let (low, high) = (others[0].0, others[others.len() - 1].0);
        let gap = if is_low { low - code } else { code - high };
        // As far from all others as these are from each other; or the only negative number.
        let is_alone = gap >= (high - low).max(1.0) && code.abs() > 9.0 || code < 0.0 && low >= 0.0;
        let step = others.windows(2).map(|w| w[1].0 - w[0].0).fold(f64::INFINITY, f64::min);
        // Rows for each value that there could be, next to the code.
        let near = |o: &&Counted| (o.0 - code).abs() < gap + NEAR * step;
        let usual = others.iter().filter(near).map(|o| o.1).sum::<usize>() as f64 / NEAR;
        let is_spike = gap > 0.0 && code.abs() > 9.0 && others.len() > 20;
        let is_spike = is_spike && count >= SPIKE && count as f64 >= SPIKE_RATIO * usual;
        (is_alone || is_spike).then(|| {
            let words = format!(
                "{} {code}, a usual code for an unknown value; the others lie between {low} and {high}",
                plural(count, "value is", "values are")
            );
            Finding::plain(Kind::Sentinel, words)
        })
    })
}

/// The quartiles; where they are equal, the 5 and 95 % points.
fn middle_of(sorted: &[f64]) -> Option<[f64; 2]> {
    let at = |p: f64| sorted[((sorted.len() - 1) as f64 * p).round() as usize];
    [[0.25, 0.75], [0.05, 0.95]].into_iter().map(|p| p.map(at)).find(|[a, b]| b > a)
}

/// Values far beyond all others.
pub(super) fn far(column: &Column) -> Option<Finding> {
    let mut sorted: Vec<f64> = numbers(column)?.iter().copied().filter(|x| x.is_finite()).collect();
    if sorted.len() < FEWEST_IDS {
        return None;
    }
    sorted.sort_unstable_by(f64::total_cmp);
    let [low, high] = middle_of(&sorted)?;
    let width = high - low;
    let beyond = |x: f64| f64::max(low - x, x - high) / width;
    let [first, last] = [sorted[0], sorted[sorted.len() - 1]];
    let worst = if beyond(first) > beyond(last) { first } else { last };
    // A number of three hundred digits says less than its power of ten.
    let shown = if worst.abs() < 1e9 { format!("{worst}") } else { format!("{worst:e}") };
    let away = beyond(worst);
    let away = if away < 1e9 { format!("{away:.0}") } else { format!("{away:.0e}") };
    let words =
        format!("a value of {shown} is {away} interquartile ranges away from the middle half ({low} to {high})");
    if beyond(worst) >= ABSURD {
        return Some(Finding::plain(Kind::FarValue, words));
    }
    let on_logs = || {
        let logs = [low, high, worst].map(libm::log);
        (logs[2] - logs[1]).max(logs[0] - logs[2]) / (logs[1] - logs[0])
    };
    let is_odd = beyond(worst) >= ODD && (low <= 0.0 || worst <= 0.0 || on_logs() >= ODD_LOG);
    // Counts with many zeros have long tails.
    let is_count = first == 0.0 && low == 0.0;
    (is_odd && !is_count).then(|| Finding::look(Kind::FarValue, words))
}
