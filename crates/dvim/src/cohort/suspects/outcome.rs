//! Covariates that were made from the outcome.

use super::{Finding, Kind, Looked, Seen};
use crate::cohort::Arm;

/// Rank correlation with the times of events from which on a covariate is the time in other words. Measured covariates
/// explain far less of when an event comes.
const SAME_ORDER: f64 = 0.85;
/// The same where only a look can decide.
const SIMILAR_ORDER: f64 = 0.7;
/// Fisher's z of a correlation below which it may be chance, over many columns.
const NOT_CHANCE: f64 = 6.0;
/// Area under the ROC curve from which on a covariate tells who had the event.
const SEPARATES: f64 = 0.95;
/// The same where only a look can decide.
const NEARLY_SEPARATES: f64 = 0.9;
/// Fewer on either side of a comparison prove nothing.
const FEWEST: usize = 5;
/// Fewer events prove nothing of times.
const FEWEST_EVENTS: usize = 10;
/// Share of rows that must equal the time, beyond chance.
const EQUAL: f64 = 0.05;
/// How many times as often as by chance.
const BEYOND_CHANCE: f64 = 4.0;
/// Share of rows that may break "never below the time".
const EXCEPTIONS: f64 = 0.005;
/// Rows that would break it by chance, at least.
const BROKEN_BY_CHANCE: f64 = 15.0;
/// And as a share.
const CHANCE_TO_BREAK: f64 = 0.1;
/// Share of the variance of event times that two columns explain together.
const EXPLAINED: f64 = 0.9;
/// Events from which on pairs are looked at, and columns up to which.
const EVENTS_FOR_PAIRS: usize = 30;
const COLUMNS_FOR_PAIRS: usize = 200;
/// Patients expected in an empty cell of two levels and the event, in all and in each arm.
const EXPECTED_IN_EMPTY: [f64; 2] = [12.0, 4.0];

/// Units of time in each other: the same, days, weeks, months, years.
const UNITS: [f64; 6] = [1.0, 7.0, 12.0, 30.4375, 52.1775, 365.25];

pub(super) fn of_column(x: &Looked<'_>, seen: &Seen) -> Option<Finding> {
    let plain = |words: String| Finding::plain(Kind::LeakedOutcome, words);
    if x.is_measure() {
        if let Some(words) = equals_time(x, seen).or_else(|| bounds_time(x, seen)) {
            return Some(plain(words));
        }
    }
    let order = order_of_times(x, seen);
    if let Some(rho) = order.filter(|r| *r >= SAME_ORDER) {
        return Some(plain(format!(
            "it puts patients in the order of their event times (rank correlation {rho:.2} among those with the event)"
        )));
    }
    let separated = separation(x, seen);
    if let Some((auc, what)) = separated.filter(|(auc, _)| *auc >= SEPARATES) {
        return Some(plain(format!("it tells {what} in both arms (area under the ROC curve {auc:.3})")));
    }
    if let Some(words) = empty_cell(x, seen) {
        return Some(plain(words));
    }
    if let Some(rho) = order {
        return Some(Finding::look(
            Kind::LeakedOutcome,
            format!("it follows the event times closely (rank correlation {rho:.2} among those with the event)"),
        ));
    }
    separated.map(|(auc, what)| {
        Finding::look(
            Kind::LeakedOutcome,
            format!("it nearly tells {what} in both arms (area under the ROC curve {auc:.3})"),
        )
    })
}

/// The smallest distance between two different values: how finely they were recorded.
fn grain(values: &[f64]) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.windows(2).map(|w| w[1] - w[0]).filter(|d| *d > 0.0).fold(f64::INFINITY, f64::min)
}

/// Share of rows in which `holds` is true of the column's value and the time; and the same, on average, where times
/// are those of other rows.
fn share(x: &[f64], time: &[f64], holds: impl Fn(f64, f64) -> bool) -> (f64, f64, usize) {
    let rows: Vec<usize> = (0..x.len()).filter(|&i| x[i].is_finite()).collect();
    let n = rows.len();
    if n == 0 {
        return (0.0, 0.0, 0);
    }
    let of = |shift: usize| {
        let true_of = |k: &usize| holds(x[rows[*k]], time[rows[(*k + shift) % n]]);
        (0..n).filter(true_of).count() as f64 / n as f64
    };
    const SHIFTS: usize = 7;
    let chance = (1..=SHIFTS).map(|s| of((s * n / (SHIFTS + 1)).max(1))).sum::<f64>() / SHIFTS as f64;
    (of(0), chance, n)
}

/// Every unit of the column in the unit of the time.
fn units() -> impl Iterator<Item = f64> {
    UNITS.into_iter().chain(UNITS.into_iter().skip(1).map(|u| 1.0 / u))
}

fn in_unit(unit: f64) -> &'static str {
    if unit == 1.0 { "" } else { ", in another unit of time" }
}

/// Equal to the time in more rows than chance allows: the time itself, or another outcome that ended with it.
fn equals_time(x: &Looked<'_>, seen: &Seen) -> Option<String> {
    let (fine_x, fine_t) = (grain(&x.values), grain(&seen.time));
    let each = units().filter_map(|unit| {
        // Half of the coarser grain, and rounding of the unit itself.
        let tolerance = 0.501 * fine_x.max(unit * fine_t);
        let holds =
            |x: f64, t: f64| (x - unit * t).abs() <= tolerance.max(2e-3 * (unit * t).abs() * f64::from(unit != 1.0));
        let (found, chance, n) = share(&x.values, &seen.time, holds);
        let is_beyond = found - chance >= EQUAL && found >= BEYOND_CHANCE * chance + 10.0 / n.max(1) as f64;
        is_beyond.then_some((found, chance, unit))
    });
    let (found, chance, unit) = each.reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    Some(format!(
        "it equals the time in {:.0} % of rows{}, by chance {:.1} %",
        100.0 * found,
        in_unit(unit),
        100.0 * chance
    ))
}

/// Never below, or never above, the time.
fn bounds_time(x: &Looked<'_>, seen: &Seen) -> Option<String> {
    units().find_map(|unit| {
        let tolerance = 1e-9 * (unit * seen.horizon).abs();
        let below = share(&x.values, &seen.time, |x, t| x >= unit * t - tolerance);
        let above = share(&x.values, &seen.time, |x, t| x <= unit * t + tolerance);
        [("below", below), ("above", above)].into_iter().find_map(|(word, (found, chance, n))| {
            let broken = 1.0 - chance;
            let is_plain =
                found >= 1.0 - EXCEPTIONS && broken >= CHANCE_TO_BREAK && broken * n as f64 >= BROKEN_BY_CHANCE;
            is_plain.then(|| {
                format!(
                    "it is {} {word} the time{}, by chance it would be in {:.0} % of rows",
                    if found == 1.0 { "never" } else { "hardly ever" },
                    in_unit(unit),
                    100.0 * broken
                )
            })
        })
    })
}

/// Ranks, ties sharing their mean.
pub(super) fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut out = vec![0.0; values.len()];
    let mut at = 0;
    for same in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = at as f64 + 0.5 * (same.len() - 1) as f64;
        same.iter().for_each(|&i| out[i] = rank);
        at += same.len();
    }
    out
}

pub(super) fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let n = a.len() as f64;
    let (ma, mb) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        ab += (x - ma) * (y - mb);
        aa += (x - ma) * (x - ma);
        bb += (y - mb) * (y - mb);
    }
    (aa > 0.0 && bb > 0.0).then(|| ab / (aa * bb).sqrt())
}

/// Fisher's z of a correlation of n pairs.
fn fisher(rho: f64, n: usize) -> f64 {
    libm::atanh(rho.abs().min(1.0 - 1e-12)) * (n as f64 - 3.0).max(0.0).sqrt()
}

/// The halves that are judged apart: arms, or where an arm is too small, every other row.
fn halves(seen: &Seen, enough: impl Fn(&[usize]) -> bool) -> Option<[Vec<usize>; 2]> {
    let n = seen.time.len();
    let arms = Arm::BOTH.map(|z| -> Vec<usize> { (0..n).filter(|&i| seen.arm[i] == z).collect() });
    let turns = [0, 1].map(|k| -> Vec<usize> { (k..n).step_by(2).collect() });
    [arms, turns].into_iter().find(|h| h.iter().all(|half| enough(half)))
}

/// What stands for the value of a row: the number, or for codes the mean of `of` among rows of the other half that have
/// the same code, so that nothing is judged by what made it.
fn scores(x: &Looked<'_>, half: &[usize], other: &[usize], of: impl Fn(usize) -> Option<f64>) -> Vec<f64> {
    if !x.is_coded {
        return half.iter().map(|&i| x.values[i]).collect();
    }
    let mut sums: Vec<(f64, f64, f64)> = Vec::new();
    let (mut all, mut count) = (0.0, 0.0);
    // A gap is a code too.
    let same = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
    for &i in other {
        let Some(y) = of(i) else { continue };
        (all, count) = (all + y, count + 1.0);
        match sums.iter_mut().find(|s| same(s.0, x.values[i])) {
            Some(s) => (s.1, s.2) = (s.1 + y, s.2 + 1.0),
            None => sums.push((x.values[i], y, 1.0)),
        }
    }
    let mean = if count > 0.0 { all / count } else { 0.0 };
    let of_code = |v: f64| sums.iter().find(|s| same(s.0, v)).map_or(mean, |s| s.1 / s.2);
    half.iter().map(|&i| of_code(x.values[i])).collect()
}

/// Rank correlation with the times of events, where it is beyond what covariates have.
fn order_of_times(x: &Looked<'_>, seen: &Seen) -> Option<f64> {
    let with = |rows: &[usize], flag: &[bool]| -> Vec<usize> {
        rows.iter().copied().filter(|&i| flag[i] && (x.is_coded || x.values[i].is_finite())).collect()
    };
    [&seen.event, &seen.any].into_iter().find_map(|flag| {
        let halves = halves(seen, |half| with(half, flag).len() >= FEWEST_EVENTS)?;
        let [a, b] = halves.each_ref().map(|h| with(h, flag));
        let mut found = Vec::new();
        for (half, other) in [(&a, &b), (&b, &a)] {
            let scores = scores(x, half, other, |i| Some(seen.time[i]));
            let kept: Vec<usize> = (0..half.len()).filter(|&k| scores[k].is_finite()).collect();
            let x: Vec<f64> = kept.iter().map(|&k| scores[k]).collect();
            let t: Vec<f64> = kept.iter().map(|&k| seen.time[half[k]]).collect();
            let rho = if x.iter().all(|v| *v == x[0]) { 0.0 } else { tied_correlation(&x, &t) };
            found.push((rho, x.len()));
        }
        let n = found[0].1 + found[1].1;
        let weighted = (found[0].0 * found[0].1 as f64 + found[1].0 * found[1].1 as f64) / n as f64;
        let agree = found[0].0 * found[1].0 > 0.0 && found.iter().all(|f| f.0.abs() >= SIMILAR_ORDER - 0.1);
        (agree && weighted.abs() >= SIMILAR_ORDER && fisher(weighted, n) >= NOT_CHANCE).then_some(weighted.abs())
    })
}

/// Rank correlation; of a code, as strong as its ties allow: its levels cannot say more.
fn tied_correlation(x: &[f64], t: &[f64]) -> f64 {
    let (rx, rt) = (ranks(x), ranks(t));
    let Some(rho) = correlation(&rx, &rt) else { return 0.0 };
    // The largest that a column with these ties can have: times in the same order, cut at the same places.
    let (mut sx, mut st) = (rx.clone(), rt.clone());
    sx.sort_unstable_by(f64::total_cmp);
    st.sort_unstable_by(f64::total_cmp);
    let most = correlation(&sx, &st).unwrap_or(1.0);
    let smallest_level = sx.chunk_by(|a, b| a == b).map(<[f64]>::len).max().unwrap_or(0);
    // One level that nearly everybody has says nothing.
    if smallest_level as f64 > 0.9 * x.len() as f64 { 0.0 } else { (rho / most.max(1e-9)).clamp(-1.0, 1.0) }
}

/// P(score of one with > score of one without), ties counting half.
fn roc(with: &[f64], without: &[f64]) -> f64 {
    let all: Vec<f64> = with.iter().chain(without).copied().collect();
    let sum: f64 = ranks(&all)[..with.len()].iter().sum();
    let (m, k) = (with.len() as f64, without.len() as f64);
    (sum - 0.5 * m * (m - 1.0)) / (m * k)
}

/// The worse of both arms' areas under the ROC curve, and what is told, where it is beyond what covariates have.
fn separation(x: &Looked<'_>, seen: &Seen) -> Option<(f64, &'static str)> {
    let n = seen.time.len();
    let recorded = |i: usize| Some(seen.event[i]);
    let before = |i: usize| match () {
        () if seen.event[i] && seen.time[i] < seen.horizon => Some(true),
        () if seen.time[i] >= seen.horizon => Some(false),
        () => None,
    };
    let any = |i: usize| Some(seen.any[i]);
    type Told<'a> = (&'a dyn Fn(usize) -> Option<bool>, &'static str);
    let told: [Told<'_>; 3] = [
        (&recorded, "who had the event"),
        (&before, "who had the event before the horizon"),
        (&any, "who had an event of any cause"),
    ];
    let is_known = |i: usize| x.is_coded || x.values[i].is_finite();
    let mut best: Option<(f64, &'static str)> = None;
    for (of, what) in told {
        let counts = |half: &[usize], side: bool| half.iter().filter(|&&i| of(i) == Some(side) && is_known(i)).count();
        let enough = |half: &[usize]| counts(half, true) >= FEWEST && counts(half, false) >= FEWEST;
        let Some([a, b]) = halves(seen, enough) else { continue };
        let areas = [(&a, &b), (&b, &a)].map(|(half, other)| {
            let scores = scores(x, half, other, |i| of(i).map(|w| f64::from(u8::from(w))));
            let side = |side: bool| -> Vec<f64> {
                let chosen = half.iter().zip(&scores).filter(|(i, s)| of(**i) == Some(side) && s.is_finite());
                chosen.map(|(_, s)| *s).collect()
            };
            roc(&side(true), &side(false))
        });
        let area = match areas {
            [a, b] if a > 0.5 && b > 0.5 => a.min(b),
            [a, b] if a < 0.5 && b < 0.5 && !x.is_coded => 1.0 - a.max(b),
            _ => continue,
        };
        // A gap that tells it: of a number with many values, whether it is there.
        best = best.max_by_area((area, what));
    }
    let gaps = x.values.iter().filter(|v| v.is_nan()).count();
    if !x.is_coded && gaps > 0 && gaps < n {
        let marks = x.values.iter().map(|v| f64::from(u8::from(v.is_nan()))).collect();
        let marked = Looked { name: x.name, values: marks, is_coded: true, is_number: true };
        if let Some((area, what)) = separation(&marked, seen) {
            best = best.max_by_area((area, what));
        }
    }
    best.filter(|(area, _)| *area >= NEARLY_SEPARATES)
}

trait Larger {
    fn max_by_area(self, other: (f64, &'static str)) -> Self;
}

impl Larger for Option<(f64, &'static str)> {
    fn max_by_area(self, other: (f64, &'static str)) -> Self {
        Some(self.filter(|s| s.0 >= other.0).unwrap_or(other))
    }
}

/// Of two levels, one that nobody with the event has, or nobody without it, though many would by chance.
fn empty_cell(x: &Looked<'_>, seen: &Seen) -> Option<String> {
    let mut levels: Vec<f64> = Vec::new();
    for &v in x.values.iter().filter(|v| v.is_finite()) {
        if !levels.contains(&v) {
            levels.push(v);
        }
        if levels.len() > 2 {
            return None;
        }
    }
    let &[a, b] = &levels[..] else { return None };
    [&seen.event, &seen.any].into_iter().find_map(|flag| {
        [a, b].into_iter().flat_map(|level| [(level, true), (level, false)]).find_map(|(level, side)| {
            let mut expected = [0.0; 2];
            for (z, e) in Arm::BOTH.into_iter().zip(&mut expected) {
                let rows = || (0..x.values.len()).filter(|&i| seen.arm[i] == z && x.values[i].is_finite());
                let (n, in_level) = (rows().count() as f64, rows().filter(|&i| x.values[i] == level).count() as f64);
                let sided = rows().filter(|&i| flag[i] == side).count() as f64;
                if rows().any(|i| x.values[i] == level && flag[i] == side) || n == 0.0 {
                    return None;
                }
                *e = in_level * sided / n;
            }
            let [all, each] = EXPECTED_IN_EMPTY;
            (expected[0] + expected[1] >= all && expected.iter().all(|e| *e >= each)).then(|| {
                format!(
                    "of two levels, one has nobody {} the event, where {:.0} would be expected",
                    if side { "with" } else { "without" },
                    expected[0] + expected[1]
                )
            })
        })
    })
}

/// Pairs of columns that together are the time, such as an age at death and an age at diagnosis.
pub(super) fn of_pairs(looked: &[Looked<'_>], seen: &Seen, found: &mut [Option<Finding>]) {
    let is_free = |j: usize| looked[j].is_measure() && found[j].as_ref().is_none_or(|f| !f.plain);
    let of: Vec<usize> = (0..looked.len()).filter(|&j| is_free(j)).take(COLUMNS_FOR_PAIRS).collect();
    let complete = |i: usize| seen.event[i] && of.iter().all(|&j| looked[j].values[i].is_finite());
    let rows: Vec<usize> = (0..seen.time.len()).filter(|&i| complete(i)).collect();
    if rows.len() < EVENTS_FOR_PAIRS {
        return;
    }
    let take = |v: &[f64]| -> Vec<f64> { rows.iter().map(|&i| v[i]).collect() };
    let (time, columns) = (take(&seen.time), of.iter().map(|&j| take(&looked[j].values)).collect::<Vec<_>>());
    let with_time: Vec<f64> = columns.iter().map(|c| correlation(c, &time).unwrap_or(0.0)).collect();
    for a in 0..of.len() {
        for b in a + 1..of.len() {
            let between = correlation(&columns[a], &columns[b]).unwrap_or(0.0);
            let left = 1.0 - between * between;
            if left < 1e-9 {
                continue;
            }
            let (ra, rb) = (with_time[a], with_time[b]);
            let explained = (ra * ra + rb * rb - 2.0 * ra * rb * between) / left;
            let alone = ra.abs().max(rb.abs());
            if explained >= EXPLAINED && explained - alone * alone >= 0.1 {
                let (late, early) = if ra.abs() >= rb.abs() { (of[a], of[b]) } else { (of[b], of[a]) };
                let words = format!(
                    "with `{}` it gives the time: both together explain {:.0} % of the variance of event times",
                    looked[early].name,
                    100.0 * explained.min(1.0)
                );
                found[late] = Some(Finding::plain(Kind::LeakedOutcome, words));
            }
        }
    }
}
