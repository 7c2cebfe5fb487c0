//! Whatever a table holds and whatever is asked of it, the door admits or refuses; it never panics, and what it admits
//! can be looked at, analysed and placed again.

use dvim::internal::analysis;
use dvim::internal::cohort::{Cohort, Roles, ZeroTime};
use dvim::internal::constraint::{Caliper, Constraints};
use dvim::internal::error::{Error, Severity};
use dvim::internal::options::Options;
use dvim::internal::overview::Overview;
use dvim::internal::schema::{Missing, encode_new};
use dvim::internal::table::{Column, Table, TextValues, Values};
use dvim::internal::watch::Unwatched;
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const NAMES: [&str; 8] = ["time", "event", "arm", "id", "a", "b", "from", "to"];

/// A cell: mostly what belongs there, sometimes anything.
fn cell(column: usize, odd_ones: u32) -> BoxedStrategy<String> {
    let usual = match column {
        0 => (1..60i32).prop_map(|t| t.to_string()).boxed(),
        1 | 2 => (0..2u8).prop_map(|e| e.to_string()).boxed(),
        3 => (0..1_000_000_000i32).prop_map(|i| i.to_string()).boxed(),
        4 => (-50..50i32).prop_map(|x| (f64::from(x) / 7.0).to_string()).boxed(),
        5 => prop::sample::select(vec!["I", "II", "III", "iv"]).prop_map(String::from).boxed(),
        6 => Just("2020-01-01".to_string()).boxed(),
        _ => (1..29u8).prop_map(|d| format!("2020-02-{d:02}")).boxed(),
    };
    let odd = prop::sample::select(vec![
        "",
        "",
        "0",
        "-1",
        "inf",
        "1e300",
        "yes",
        "No",
        "01/02/2020",
        "2020-02-31",
        "é",
        "nan?",
        "1",
        "0.0",
    ]);
    prop_oneof![2_000 => usual, odd_ones => odd.prop_map(String::from)].boxed()
}

/// A column as a reader would give it: numbers if every value is one.
fn column(name: &str, cells: &[String], text: bool) -> Column {
    let numbers: Vec<Option<f64>> =
        cells.iter().map(|c| if c.is_empty() { Some(f64::NAN) } else { c.parse().ok() }).collect();
    let values = match numbers.into_iter().collect::<Option<Vec<f64>>>() {
        Some(v) if !text => Values::Number(v.into()),
        _ => {
            let mut t = TextValues::default();
            for c in cells {
                let code = match t.levels.iter().position(|l| l == c) {
                    _ if c.is_empty() => TextValues::MISSING,
                    Some(code) => code as u32,
                    None => {
                        t.levels.push(c.clone());
                        t.levels.len() as u32 - 1
                    }
                };
                t.codes.push(code);
            }
            Values::Text(t)
        }
    };
    Column { name: name.into(), values }
}

fn table() -> impl Strategy<Value = Table> {
    let odd_ones = prop_oneof![3 => Just(1u32), 1 => Just(60)];
    let n = prop_oneof![1 => 0usize..20, 4 => 40usize..60];
    (n, any::<[bool; 8]>(), odd_ones).prop_flat_map(|(n, text, odd_ones)| {
        let columns: Vec<_> = (0..8).map(|j| prop::collection::vec(cell(j, odd_ones), n)).collect();
        columns.prop_map(move |columns| {
            let columns = columns.iter().enumerate().map(|(j, c)| column(NAMES[j], c, text[j] && j == 5)).collect();
            Table::new(columns).expect("a table")
        })
    })
}

fn names(most: usize) -> impl Strategy<Value = Vec<String>> {
    let name = prop::sample::select(vec!["a", "b", "a", "b", "from", "time", "nowhere"]).prop_map(String::from);
    prop::collection::vec(name, 0..=most)
}

fn roles() -> impl Strategy<Value = Roles> {
    let label = || prop::option::weighted(0.2, prop::sample::select(vec!["0", "1", "2", "yes"]).prop_map(String::from));
    let extras = || prop::option::weighted(0.4, prop::sample::select(vec!["a", "b", "from"]).prop_map(String::from));
    let filter = prop::collection::vec((names(1), "[0-3]|I|II"), 0..2);
    (
        prop::bool::weighted(0.3),
        prop_oneof![8 => 20.0..60.0f64, 1 => Just(0.0), 1 => Just(f64::INFINITY)],
        prop::option::weighted(0.1, names(3)),
        (label(), label()),
        (prop_oneof![3 => Just(vec![]), 1 => names(2)], prop_oneof![3 => Just(vec![]), 1 => names(2)]),
        prop_oneof![4 => Just(vec!["from".to_string(), "to".into()]), 1 => names(3)],
        prop_oneof![4 => Just(vec![]), 1 => filter],
        prop::sample::select(vec![Missing::Refuse, Missing::Drop, Missing::Indicator]),
        prop::sample::select(vec![ZeroTime::Refuse, ZeroTime::Drop, ZeroTime::Shift]),
        // Most tables have none of these, so that enough are admitted.
        prop_oneof![
            4 => Just((None, None, None, None)),
            1 => (extras(), extras(), extras(), prop::option::weighted(0.4, "[0-2]")),
        ],
    )
        .prop_map(
            |(
                dated,
                horizon,
                covariates,
                (treated, control),
                (numeric, categorical),
                drop,
                filters,
                missing,
                zero_time,
                (weights, cluster, entry, cause),
            )| {
                let filters = filters.into_iter().filter_map(|(n, v)| n.first().map(|n| (n.clone(), v))).collect();
                let drop = if dated { vec!["time".to_string()] } else { drop };
                Roles {
                    time: "time".into(),
                    event: "event".into(),
                    treatment: "arm".into(),
                    dates: dated.then(|| ["from".to_string(), "to".into()]),
                    horizon: if dated { horizon / 3.0 } else { horizon },
                    id: None,
                    covariates,
                    treated,
                    control,
                    numeric,
                    categorical,
                    drop,
                    allow: vec![],
                    filters,
                    missing,
                    zero_time,
                    weights,
                    cluster,
                    entry,
                    cause,
                    ..Roles::default()
                }
            },
        )
}

#[test]
fn the_door_admits_or_refuses() {
    let exact = prop_oneof![3 => Just(vec![]), 1 => names(1)];
    let width = prop::option::weighted(0.3, -0.2..3.0f64);
    let config = ProptestConfig { cases: 1200, max_shrink_iters: 200, ..ProptestConfig::default() };
    let (admitted, analysed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let outcome = runner.run(&(table(), roles(), exact, width), |(table, roles, exact, width)| {
        let calipers = width.into_iter().map(|width| Caliper { covariate: "a".into(), width, in_sd: true }).collect();
        let constraints = Constraints { exact, calipers, exclude_self: true };
        let options = Options { group_size: 2, constraints, ..Options::paper() };
        let overview = Overview::of(&table, &roles, &options);
        for p in &overview.problems {
            prop_assert!(!p.found.is_empty() && !p.rule.is_empty() && !p.remedy.is_empty());
            prop_assert!(p.rows.iter().all(|r| (1..=table.n_rows()).contains(r)), "{p:?}");
        }
        let found = match Cohort::admit(&table, &roles) {
            Ok(found) => found,
            Err(Error::Refused(problems)) => {
                prop_assert!(problems.iter().any(|p| p.severity == Severity::Error), "refused without a word");
                return Ok(());
            }
            Err(other) => return Err(TestCaseError::fail(format!("{other:?}"))),
        };
        admitted.fetch_add(1, Relaxed);
        let cohort = &found.cohort;
        prop_assert_eq!(found.flow.n_kept(), cohort.n_units());
        prop_assert!(cohort.all_covariates().iter().all(|x| x.is_finite()));
        if roles.missing == Missing::Indicator && found.flow.n_kept() == table.n_rows() {
            prop_assert_eq!(encode_new(cohort.schema(), &table).map(|x| x.len()), Ok(cohort.all_covariates().len()));
        }
        if let Ok(found) = analysis::run(cohort, &options, &Unwatched) {
            analysed.fetch_add(1, Relaxed);
            prop_assert!(found.fit.description.metrics.cure.weights.iter().all(|w| w.is_finite() && *w >= 0.0));
            found.fit.level_problems(cohort);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|e| panic!("{e}"));
    let (admitted, analysed) = (admitted.into_inner(), analysed.into_inner());
    assert!(
        admitted >= 80 && analysed >= 40,
        "{admitted} of 1200 tables were admitted, {analysed} analysed: too few to tell"
    );
}
