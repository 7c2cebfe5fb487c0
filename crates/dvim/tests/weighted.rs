//! Case weights, clusters, delayed entry and competing events, against R's survival and by rule.

use dvim::internal::interval;
use dvim::internal::outcome::{ALONE, Outcome};
use dvim::internal::survival::{Influence, Summary, SurvivalCurve};
use proptest::prelude::*;

/// tests/data/further.csv: id, time, entry, cause, weight, cluster.
fn units() -> Vec<[f64; 6]> {
    let rows = include_str!("data/further.csv").lines().skip(1);
    rows.map(|l| {
        let v: Vec<f64> = l.split(',').map(|x| x.parse().unwrap()).collect();
        v.try_into().unwrap()
    })
    .collect()
}

fn outcome(u: &[f64; 6], case: &str) -> Outcome {
    let has = |part: &str| case.split('+').any(|p| p == part);
    Outcome {
        time: u[1],
        event: u[3] == 1.0,
        competing: has("cause") && u[3] == 2.0,
        weight: if has("weight") { u[4] } else { 1.0 },
        entry: if has("entry") { u[2] } else { 0.0 },
        cluster: if has("cluster") { u[5] as u32 } else { ALONE },
    }
}

#[test]
fn curves_equal_those_of_r() {
    let units = units();
    let mut n = 0;
    for line in include_str!("data/further_reference.csv").lines().skip(1) {
        let words: Vec<&str> = line.split(',').map(str::trim).collect();
        let case = words[0];
        let expected: Vec<f64> = words[1..].iter().map(|x| x.parse().unwrap()).collect();
        let horizon = expected[0];
        let curve = SurvivalCurve::of_outcomes(units.iter().map(|u| outcome(u, case)).collect());
        let summary = curve.summary(horizon);
        let found = [
            summary.survival,
            summary.survival_se().unwrap(),
            summary.restricted_mean(horizon),
            summary.restricted_mean_se(horizon),
            summary.mean_event_time().unwrap(),
            summary.mean_event_time_se().unwrap(),
        ];
        for (k, (found, expected)) in found.iter().zip(&expected[1..7]).enumerate() {
            assert!(
                (found - expected).abs() < 1e-12 * expected.abs().max(1.0),
                "{case}, value {k}: {found} {expected}"
            );
        }
        assert_eq!(curve.survival_with_se(horizon).value, summary.survival, "no time of these is the horizon");
        n += 1;
    }
    assert_eq!(n, 16, "every combination");
}

fn sample() -> impl Strategy<Value = Vec<(f64, bool)>> {
    proptest::collection::vec(((1..40u8).prop_map(|t| f64::from(t) / 2.0), any::<bool>()), 1..40)
}

proptest! {
    #[test]
    fn one_cause_is_kaplan_meier_to_the_last_bit(units in sample(), horizon in 1.0..21.0f64) {
        let mut sorted: Vec<Outcome> = units.iter().map(|u| Outcome::plain(u.0, u.1)).collect();
        sorted.sort_by(|a, b| a.time.total_cmp(&b.time));
        let (time, event): (Vec<f64>, Vec<bool>) = units.iter().copied().unzip();
        let curve = SurvivalCurve::new(&time, &event);
        let (plain, general) = (curve.summary(horizon), Summary::of_outcomes(&sorted, horizon));
        prop_assert_eq!(plain.survival.to_bits(), general.survival.to_bits());
        prop_assert_eq!(plain.event_area.to_bits(), general.event_area.to_bits());
        prop_assert_eq!((plain.n_events, plain.n_at_risk), (general.n_events, general.n_at_risk));
        // Variances: the root of a rounding error is larger than it.
        let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a * a - b * b).abs() < 1e-11 * (1.0 + a * a),
            (a, b) => a == b,
        };
        // One unit is one cluster, whose variance nobody knows.
        if units.len() > 1 {
            prop_assert!(close(plain.survival_se(), general.survival_se()));
            prop_assert!(close(plain.mean_event_time_se(), general.mean_event_time_se()));
        }
        // A cluster for each unit is no cluster, and yet not the plain way.
        let general = sorted.iter().zip(0..).map(|(u, cluster)| Outcome { cluster, ..*u }).collect();
        let general = SurvivalCurve::of_outcomes(general);
        prop_assert_eq!(curve.steps(), general.steps());
    }

    #[test]
    fn influences_are_derivatives_in_the_weights(
        units in proptest::collection::vec((1..30u8, 0..3u8, 1..20u8, 0..10u8, 0..5u32), 3..25), horizon in 4.0..31.0f64,
    ) {
        let mut sorted: Vec<Outcome> = units
            .iter()
            .map(|u| Outcome {
                time: f64::from(u.0) + f64::from(u.3),
                event: u.1 == 1,
                competing: u.1 == 2,
                weight: f64::from(u.2) / 7.0,
                entry: f64::from(u.3),
                cluster: u.4,
            })
            .collect();
        sorted.sort_by(|a, b| a.time.total_cmp(&b.time));
        let mut influence = Influence::default();
        let here = influence.fill_outcomes(&sorted, horizon);
        // Where the last at risk all have an event the curve has a corner.
        prop_assume!(here.event_free > 1e-6);
        for j in 0..sorted.len() {
            let h = 1e-5;
            let at = |by: f64| {
                let mut moved = sorted.clone();
                moved[j].weight += by;
                Summary::of_outcomes(&moved, horizon)
            };
            let (up, down) = (at(h), at(-h));
            let slope = (up.survival - down.survival) / (2.0 * h);
            prop_assert!((slope * sorted[j].weight - influence.survival[j]).abs() < 1e-6);
            let slope = (up.restricted_mean(horizon) - down.restricted_mean(horizon)) / (2.0 * h);
            prop_assert!((slope * sorted[j].weight - influence.restricted_mean[j]).abs() < 1e-4);
            if let (Some(a), Some(b)) = (up.mean_event_time(), down.mean_event_time()) {
                let slope = (a - b) / (2.0 * h);
                let found = influence.mean_event_time[j];
                prop_assert!((slope * sorted[j].weight - found).abs() < 1e-4 * (1.0 + found.abs()) / (1.0 - here.survival));
            }
        }
    }
}

/// By hand: A enters at 0, event at 2; B enters at 1, event of another cause at 3; C enters at 0, leaves at 5; D enters
/// at 3, event at 4. H = 6. At risk at 2: A, B, C; at 3: B, C (D enters at 3 and is not yet at risk); at 4: C, D.
/// Q = 1 − [1/3 + (2/3)(1/2)(1/2)] = 1/2; area = 2·1/3 + 4·1/6 = 4/3; mean 8/3.
#[test]
fn worked_by_hand() {
    let unit = |time, event, competing, entry| Outcome { competing, entry, ..Outcome::plain(time, event) };
    let units = vec![
        unit(2.0, true, false, 0.0),
        unit(3.0, false, true, 1.0),
        unit(5.0, false, false, 0.0),
        unit(4.0, true, false, 3.0),
    ];
    let curve = SurvivalCurve::of_outcomes(units);
    let at_risk: Vec<usize> = curve.steps().iter().map(|s| s.n_at_risk).collect();
    assert_eq!(at_risk, [3, 2, 2, 1]);
    let s = curve.summary(6.0);
    assert!((s.survival - 0.5).abs() < 1e-15 && (s.event_area - 4.0 / 3.0).abs() < 1e-15);
    assert!((s.mean_event_time().unwrap() - 8.0 / 3.0).abs() < 1e-14);
    assert!((s.event_free - 1.0 / 6.0).abs() < 1e-15 && s.carried_forward());
    assert!(s.thin, "two at risk at time 2 while D has yet to enter");
}

#[test]
fn one_cluster_has_no_standard_error() {
    let units = [1.0, 2.0, 3.0, 4.0].map(|t| Outcome { cluster: 7, ..Outcome::plain(t, t < 3.0) });
    let s = Summary::of_outcomes(&units, 3.5);
    assert_eq!((s.survival_se(), s.mean_event_time_se()), (None, None));
}

/// Before, such a group had a mean event time of 0/0. All who were there at first have an event of another cause, and the
/// curve of all causes is at 0; whoever enters later, with an event of the cause of interest, tells it nothing more.
#[test]
fn an_event_after_everybody_was_gone_tells_nothing() {
    let plain = Outcome::plain(1.0, false);
    let others = [1.0, 2.0].map(|time| Outcome { time, competing: true, ..plain });
    let late = Outcome { time: 4.0, event: true, entry: 3.0, ..plain };
    let curve = SurvivalCurve::of_outcomes(others.into_iter().chain([late]).collect());
    let summary = curve.summary(10.0);
    assert_eq!((summary.survival, summary.n_events, summary.mean_event_time()), (1.0, 0, None));
    let share = interval::share(&summary, 0.95);
    assert!(share.low >= 0.0 && share.low < 1.0 && share.high == 1.0, "{share:?}");
    // An event while somebody is there counts as ever.
    let early = Outcome { time: 0.5, event: true, ..plain };
    let summary = SurvivalCurve::of_outcomes(others.into_iter().chain([late, early]).collect()).summary(10.0);
    assert_eq!((summary.n_events, summary.mean_event_time()), (1, Some(0.5)));
}
