//! What the columns with a part of their own say: ids, times, events, arms, weights, clusters, entries.

use super::{Arm, Roles, TIE_TOLERANCE, ZeroTime, id_order};
use crate::error::{Problem, ProblemKind as Kind, RowList};
use crate::phrase;
use crate::phrase::Piece;
use crate::schema::{missing_values, numbers, plural, quoted, refuse_not_finite, rows_where};
use crate::setting::Setting;
use crate::table::{Column, DateText, Ids, Values, date};
use std::collections::HashMap;

/// Days since 1970-01-01; NaN where a date is missing.
pub(super) fn read_dates(column: &Column, problems: &mut Vec<Problem>) -> Option<Vec<f64>> {
    let Values::Text(t) = &column.values else {
        problems.push(
            Problem::error(
                Kind::NotADate,
                "it holds no dates",
                phrase![Setting::Start, " and ", Setting::End, " name columns of dates, written as 2019-07-31"],
                phrase!["if the column holds times as numbers, name it with ", Setting::Time],
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

/// Texts that mean censored where the event column holds causes.
const CENSORED: [&str; 5] = ["0", "false", "no", "none", "censored"];

/// Whether a row has an event of the cause of interest, and whether of another; `None` if that cannot be read.
pub(super) fn cause_of(values: &Values, row: usize, roles: &Roles) -> Option<(bool, bool)> {
    if roles.censor {
        // Any code above 0 is a reason of censoring.
        return match values {
            Values::Number(v) if v[row] >= 0.0 && v[row].fract() == 0.0 => Some((v[row] == 0.0, false)),
            Values::Text(t) => match t.get(row)?.to_ascii_lowercase().as_str() {
                "false" | "0" => Some((true, false)),
                "true" | "1" => Some((false, false)),
                _ => None,
            },
            _ => None,
        };
    }
    let Some(cause) = roles.cause.as_deref() else {
        return match values {
            Values::Number(v) if v[row] == 0.0 => Some((false, false)),
            Values::Number(v) if v[row] == 1.0 => Some((true, false)),
            Values::Text(t) => match t.get(row)?.to_ascii_lowercase().as_str() {
                "false" | "0" => Some((false, false)),
                "true" | "1" => Some((true, false)),
                _ => None,
            },
            _ => None,
        };
    };
    let is_censored = match values {
        Values::Number(v) => v[row] == 0.0,
        Values::Text(t) => CENSORED.contains(&t.get(row)?.to_ascii_lowercase().as_str()),
        Values::Id(_) => return None,
    };
    let is_code = match values {
        Values::Number(v) => v[row] > 0.0 && v[row].fract() == 0.0 && v[row].is_finite(),
        _ => true,
    };
    match () {
        () if is_censored => Some((false, false)),
        () if values.is(row, cause) => Some((true, false)),
        () => is_code.then_some((false, true)),
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

pub(super) fn read_ids(column: &Column, problems: &mut Vec<Problem>) -> Ids {
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
        if ids.are_equal(w[0] as usize, w[1] as usize) {
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
                phrase!["keep one row for each unit, or name another id column with ", Setting::Id],
            )
            .column(&column.name)
            .rows(&repeated),
        );
    }
    ids
}

pub(super) fn read_time(column: &Column, roles: &Roles, problems: &mut Vec<Problem>) -> Option<Vec<f64>> {
    let remedy = phrase![
        "give times as numbers, such as days since the start; a decimal comma must become a point; dates are named with ",
        Setting::Start,
        " and ",
        Setting::End
    ];
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
                    phrase!["compare with ", Setting::ZeroTime.to("drop")],
                )
                .column(&column.name)
                .rows(&zero),
            );
        }
    }
    let low = rows_where(values.len(), |i| values[i] <= 0.0);
    if !low.is_empty() {
        let zeros = values.iter().filter(|t| **t == 0.0).count();
        let (shift, drop) = (Setting::ZeroTime.to("shift"), Setting::ZeroTime.to("drop"));
        let (found, remedy) = if roles.dates.is_some() && zeros < low.count {
            (
                plural(low.count, "end is on or before its start", "ends are on or before their starts"),
                phrase!["correct the dates; an end on the day of its start is handled by ", drop, " or ", shift],
            )
        } else if zeros == low.count {
            (
                plural(low.count, "time is zero", "times are zero"),
                phrase![
                    shift,
                    " takes half of the smallest positive time instead; ",
                    drop,
                    " leaves these rows out, which is harmless for a censoring and not for an event"
                ],
            )
        } else {
            (
                plural(low.count, "time is zero or negative", "times are zero or negative"),
                phrase!["correct negative times; zero times are handled by ", shift, " or ", drop],
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

/// Events of the cause of interest, and of others.
pub(super) fn read_event(
    column: &Column,
    roles: &Roles,
    problems: &mut Vec<Problem>,
) -> Option<(Vec<bool>, Vec<bool>)> {
    if refuse_missing(column, "the event", problems) {
        return None;
    }
    let cause = roles.cause.as_deref();
    if roles.censor && cause.is_some() {
        problems.push(Problem::error(
            Kind::EventCoding,
            phrase![Setting::Censor, " and ", Setting::Cause, " are both given"],
            "an indicator of censoring tells no causes apart",
            phrase!["name a column of causes with ", Setting::Event, ", or leave ", Setting::Cause, " out"],
        ));
        return None;
    }
    let n = column.values.len();
    let read = |i: usize| cause_of(&column.values, i, roles);
    let bad = rows_where(n, |i| read(i).is_none());
    let found = distinct(column, 4);
    if let Some(cause) = cause.filter(|_| bad.is_empty()) {
        let (code, occurs) = (CENSORED.contains(&cause), (0..n).any(|i| column.values.is(i, cause)));
        if code || !occurs {
            let what = if code { "means censored" } else { "does not occur" };
            problems.push(
                Problem::error(
                    Kind::EventCoding,
                    format!("the cause `{cause}` {what}; the column holds {}", quoted(&found)),
                    phrase![
                        Setting::Cause,
                        " names the value of the event of interest; 0 is censored, every other value another cause"
                    ],
                    "name one of the causes",
                )
                .column(&column.name),
            );
            return None;
        }
    }
    if bad.is_empty() {
        return Some((0..n).filter_map(read).unzip());
    }
    let one_two = found.iter().all(|f| f == "1" || f == "2");
    let causes = found.iter().any(|f| f == "0") && found.iter().all(|f| f.parse::<u8>().is_ok());
    let (rule, remedy) = match cause {
        _ if roles.censor => (
            phrase!["censoring is 0 if the event was seen, else 1 or another whole number"],
            phrase!["recode the column, or name an indicator of the event with ", Setting::Event],
        ),
        Some(_) => (
            phrase![
                "where ",
                Setting::Cause,
                " is given, an event is 0 if the unit was censored, else a whole number or a word for its cause"
            ],
            phrase!["recode the column"],
        ),
        None => (
            phrase!["the event is 1 or true if it was seen, 0 or false if the unit was censored"],
            if one_two {
                phrase!["this looks like the 1/2 coding of R's survival (2 = event): subtract 1"]
            } else if causes {
                phrase![
                    "if these are causes, with 0 for censored, name the one of interest, as in ",
                    Setting::Cause.to("1"),
                    "; else recode the column as 0 and 1"
                ]
            } else {
                phrase!["recode the column as 0 and 1"]
            },
        ),
    };
    problems.push(
        Problem::error(
            Kind::EventCoding,
            format!(
                "{} not an event indicator; the column holds {}",
                plural(bad.count, "value is", "values are"),
                quoted(&found)
            ),
            rule,
            remedy,
        )
        .column(&column.name)
        .rows(&bad),
    );
    None
}

/// Share of the longest times that is looked at, and the share of events there that no censoring leaves.
const LONGEST: f64 = 0.05;
const NEARLY_ALL: f64 = 0.95;
/// Fewer rows than this tell nothing of an indicator.
const ENOUGH_ROWS: usize = 100;

/// A warning where the event looks like its opposite: its column is called after censoring, or nearly all of those who
/// were followed longest are said to have had the event, though others were censored.
pub(super) fn looks_inverted(time: Option<&[f64]>, event: Option<&[bool]>, roles: &Roles) -> Option<Problem> {
    let name = roles.event.to_ascii_lowercase();
    let is_called = !roles.censor && roles.cause.is_none() && (name == "cnsr" || name.starts_with("cens"));
    let (time, event) = (time?, event?);
    let n = time.len();
    let n_events = event.iter().filter(|e| **e).count();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_unstable_by(|&a, &b| time[b].total_cmp(&time[a]).then(a.cmp(&b)));
    let last = ((LONGEST * n as f64) as usize).max(1).min(n);
    let late = order[..last].iter().filter(|&&i| event[i]).count();
    // Where hardly anybody is censored, everybody has the event in the end.
    let looks = n >= ENOUGH_ROWS
        && late as f64 >= NEARLY_ALL * last as f64
        && (n_events as f64) < 0.5 * n as f64
        && roles.cause.is_none();
    let found = match (is_called, looks) {
        (false, false) => return None,
        (true, false) => "it is called like an indicator of censoring, and is read as one of events".to_string(),
        (_, true) => format!(
            "{late} of the {last} patients who were followed longest have the event, and {n_events} of all {n}: an indicator of censoring looks like this"
        ),
    };
    let remedy = match roles.censor {
        true => phrase!["if 1 means that the event was seen, use ", Setting::Event.to(roles.event.as_str())],
        false => phrase!["if 1 means censored, use ", Setting::Censor.to(roles.event.as_str())],
    };
    let rule = "an event is 1 if it was seen; in CDISC ADTTE, CNSR is 0 if it was seen";
    Some(Problem::warning(Kind::EventCoding, found, rule, remedy).column(&roles.event))
}

/// Case weights: positive numbers.
pub(super) fn read_weights(column: &Column, problems: &mut Vec<Problem>) -> Option<Vec<f64>> {
    let values = numbers(column, "the weights", "give one positive number for each patient", problems)?.into_owned();
    let missing = refuse_missing(column, "the weight", problems);
    let infinite = refuse_not_finite(&column.name, &values, problems);
    let low = rows_where(values.len(), |i| values[i] <= 0.0);
    if !low.is_empty() {
        problems.push(
            Problem::error(
                Kind::BadWeight,
                plural(low.count, "weight is zero or negative", "weights are zero or negative"),
                "a weight says how many of the population a patient stands for and is positive",
                "leave out patients who stand for nobody, or correct the weights",
            )
            .column(&column.name)
            .rows(&low),
        );
    }
    (!missing && !infinite && low.is_empty()).then_some(values)
}

/// Clusters: any values; units with the same value are of one cluster.
pub(super) fn read_clusters(column: &Column, problems: &mut Vec<Problem>) -> Option<Vec<u32>> {
    if refuse_missing(column, "the cluster", problems) {
        return None;
    }
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let of = |i: usize| match &column.values {
        Values::Number(v) => (v[i] + 0.0).to_string(),
        Values::Text(t) => t.get(i).unwrap_or("").to_string(),
        Values::Id(ids) => ids.text(i).into_owned(),
    };
    let found: Vec<u32> = (0..column.values.len())
        .map(|i| {
            let next = numbers.len() as u32;
            *numbers.entry(of(i)).or_insert(next)
        })
        .collect();
    if numbers.len() < 2 {
        problems.push(
            Problem::error(
                Kind::BadCluster,
                "all units are of one cluster",
                "standard errors by cluster need at least two clusters",
                phrase!["leave out ", Setting::Cluster, ", or name the right column"],
            )
            .column(&column.name),
        );
        return None;
    }
    Some(found)
}

/// Times of entry: zero or later, and before the time.
pub(super) fn read_entries(
    column: &Column,
    time: Option<&[f64]>,
    roles: &Roles,
    problems: &mut Vec<Problem>,
) -> Option<Vec<f64>> {
    let remedy = "give the time of entry in the unit of the time column; 0 for a patient watched from the start";
    let values = numbers(column, "the entry", remedy, problems)?.into_owned();
    let missing = refuse_missing(column, "the entry", problems);
    let infinite = refuse_not_finite(&column.name, &values, problems);
    let low = rows_where(values.len(), |i| values[i] < 0.0);
    if !low.is_empty() {
        problems.push(
            Problem::error(
                Kind::BadEntry,
                plural(low.count, "entry is before time 0", "entries are before time 0"),
                "entry and time are counted from one origin, at which nobody has had the event",
                "who was watched from the start enters at 0",
            )
            .column(&column.name)
            .rows(&low),
        );
    }
    let width = TIE_TOLERANCE * roles.horizon;
    let late = rows_where(values.len(), |i| time.is_some_and(|t| values[i] >= t[i] - width));
    if !late.is_empty() {
        problems.push(
            Problem::error(
                Kind::BadEntry,
                plural(
                    late.count,
                    "entry is at or after the end of follow-up",
                    "entries are at or after the end of follow-up",
                ),
                "a patient is at risk after entry and up to the time, so entry comes before the time",
                "correct the rows, or leave them out: such a patient was never at risk",
            )
            .column(&column.name)
            .rows(&late),
        );
    }
    (!missing && !infinite && low.is_empty() && late.is_empty()).then_some(values)
}

/// The first few distinct values of a column, as text.
pub(super) fn distinct(column: &Column, most: usize) -> Vec<String> {
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

pub(super) fn read_treatment(
    column: &Column,
    roles: &Roles,
    problems: &mut Vec<Problem>,
) -> Option<(Vec<Arm>, [String; 2])> {
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
                    phrase!["check that the column is the right one and that both arms are in the file"]
                } else {
                    let first = treated.unwrap_or(&labels[1]);
                    let second =
                        control.or(labels.iter().map(String::as_str).find(|l| *l != first)).unwrap_or_default();
                    phrase![
                        "name the two that you want to compare, as in ",
                        Setting::Treated.to(first),
                        " ",
                        Setting::Control.to(second),
                        "; rows of the others are left out and counted"
                    ]
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
        let either: Vec<Piece> = labels.iter().map(|l| Setting::Treated.to(l.as_str())).collect();
        let problem = match treated.or(control) {
            Some(label) => Problem::error(
                Kind::TreatedUnknown,
                format!("the label `{label}` does not occur; the column holds {}", quoted(&labels)),
                "the treated label is one of the two values of the treatment column",
                phrase!["use ", either[0].clone(), " or ", either[1].clone()],
            ),
            None => Problem::error(
                Kind::TreatedUnclear,
                format!("it is not evident which of {} means treated", quoted(&labels)),
                "1, true, yes or treated mean treated; any other label must be named",
                phrase!["add ", either[0].clone(), " or ", either[1].clone()],
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
