//! Are the standard errors right? Against R's survfit, against influence functions, against a weighted curve.

use dvim::interval;
use dvim::survival::{Influence, Summary, SurvivalCurve};
use proptest::prelude::*;

const MAINTAINED: [(f64, u8); 11] = [
    (9.0, 1),
    (13.0, 1),
    (13.0, 0),
    (18.0, 1),
    (23.0, 1),
    (28.0, 0),
    (31.0, 1),
    (34.0, 1),
    (45.0, 0),
    (48.0, 1),
    (161.0, 0),
];
const NONMAINTAINED: [(f64, u8); 12] = [
    (5.0, 1),
    (5.0, 1),
    (8.0, 1),
    (8.0, 1),
    (12.0, 1),
    (16.0, 0),
    (23.0, 1),
    (27.0, 1),
    (30.0, 1),
    (33.0, 1),
    (43.0, 1),
    (45.0, 1),
];

fn sample(units: &[(f64, u8)]) -> Vec<(f64, bool)> {
    units.iter().map(|&(t, e)| (t, e == 1)).collect()
}

fn curve(units: &[(f64, bool)]) -> SurvivalCurve {
    let (time, event): (Vec<f64>, Vec<bool>) = units.iter().copied().unzip();
    SurvivalCurve::new(&time, &event)
}

/// R survival 3.5-3, `survfit(Surv(time, status) ~ x, leukemia)`: oracles.json, km_greenwood_aml.
#[test]
fn greenwood_is_that_of_survfit() {
    /// Units, times, standard errors.
    type Case<'a> = (&'a [(f64, u8)], &'a [f64], &'a [f64]);
    let expected: [Case; 2] = [
        (
            &MAINTAINED,
            &[9.0, 13.0, 18.0, 23.0, 31.0, 34.0, 48.0],
            &[0.0866784172, 0.11629129983, 0.13966497056, 0.15263233103, 0.16419326722, 0.16266888583, 0.15349274579],
        ),
        (
            &NONMAINTAINED,
            &[5.0, 8.0, 12.0, 23.0, 27.0, 30.0, 33.0, 43.0],
            &[
                0.10758287073,
                0.13608276349,
                0.14231876064,
                0.14813006255,
                0.14698618395,
                0.13871516913,
                0.12187450538,
                0.09186636497,
            ],
        ),
    ];
    for (units, times, se) in expected {
        let units = sample(units);
        for (&t, &se) in times.iter().zip(se) {
            let h = t + 0.5;
            let summary = Summary::of_sorted(units.iter().copied(), units.len(), h);
            assert!((summary.survival_se().expect("above zero") - se).abs() < 1e-8, "Greenwood at {t}");
            let influence = Influence::of_sorted(&units, h);
            let sum: f64 = influence.survival.iter().map(|v| v * v).sum();
            assert!((sum.sqrt() - se).abs() < 1e-8, "influence at {t}");
        }
    }
    let all = sample(&NONMAINTAINED);
    let summary = Summary::of_sorted(all.iter().copied(), all.len(), 100.0);
    assert_eq!((summary.survival, summary.survival_se()), (0.0, None), "survfit has no standard error at zero");
}

/// Medians with intervals by inverting the limits; survfit's log-log limits give 18 to NA and 8 to NA for the lower ends.
#[test]
fn quantiles() {
    let (median, [low, high]) = interval::quantile(&curve(&sample(&MAINTAINED)), 0.5, 0.95);
    assert_eq!((median, low), (Some(31.0), Some(18.0)));
    assert!(high.is_none_or(|h| h > 31.0));
    let (median, [low, _]) = interval::quantile(&curve(&sample(&NONMAINTAINED)), 0.5, 0.95);
    assert_eq!((median, low), (Some(23.0), Some(8.0)));
    assert_eq!(curve(&[(1.0, false), (2.0, true), (3.0, false)]).quantile(0.9), None);
}

fn ties() -> impl Strategy<Value = Vec<(f64, bool)>> {
    prop::collection::vec((1u8..14, any::<bool>()), 2..40).prop_map(|mut v| {
        v.sort_by_key(|u| u.0);
        v.into_iter().map(|(t, e)| (f64::from(t), e)).collect()
    })
}

/// Kaplan–Meier with weights, from the definitions: Ŝ(H), RMST, CMET.
fn weighted(units: &[(f64, bool)], weight: &[f64], horizon: f64) -> [f64; 3] {
    let mut times: Vec<f64> = units.iter().filter(|u| u.1 && u.0 < horizon).map(|u| u.0).collect();
    times.dedup();
    let (mut s, mut area, mut from) = (1.0, 0.0, 0.0);
    for t in times {
        let total = |f: &dyn Fn(&(f64, bool)) -> bool| -> f64 {
            units.iter().zip(weight).filter(|(u, _)| f(u)).map(|(_, w)| w).sum()
        };
        area += s * (t - from);
        s *= 1.0 - total(&|u| u.0 == t && u.1) / total(&|u| u.0 >= t);
        from = t;
    }
    area += s * (horizon - from);
    [s, area, (area - horizon * s) / (1.0 - s)]
}

proptest! {
    /// One pass over a group gives the standard errors of the curve as a value, and the influences have them as
    /// their root sum of squares, and sum to zero.
    #[test]
    fn three_ways_to_the_same_standard_errors(units in ties(), horizon in 3.5f64..13.5) {
        let n = units.len();
        let summary = Summary::of_sorted(units.iter().copied(), n, horizon);
        let capped: Vec<(f64, bool)> =
            units.iter().map(|&(t, e)| if t < horizon { (t, e) } else { (horizon, false) }).collect();
        let value = curve(&capped);
        let (rmst, cmet) = value.means_with_se(horizon);
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + b.abs());
        if let Some(se) = summary.survival_se() {
            prop_assert!(close(se, value.survival_with_se(horizon).se.unwrap()));
        }
        prop_assert!(close(summary.restricted_mean_se(horizon), rmst.se.unwrap()));
        if let Some(se) = summary.mean_event_time_se() {
            prop_assert!(close(se, cmet.unwrap().se.unwrap()));
        }
        let influence = Influence::of_sorted(&units, horizon);
        let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let sum = |v: &[f64]| v.iter().sum::<f64>();
        if let Some(se) = summary.survival_se() {
            prop_assert!(close(norm(&influence.survival), se));
        }
        prop_assert!(close(norm(&influence.restricted_mean), summary.restricted_mean_se(horizon)));
        if let Some(se) = summary.mean_event_time_se() {
            prop_assert!(close(norm(&influence.mean_event_time), se));
        }
        prop_assert!(sum(&influence.survival).abs() < 1e-9 && sum(&influence.restricted_mean).abs() < 1e-9);
        prop_assert!(sum(&influence.mean_event_time).abs() < 1e-9);
    }

    /// An influence is the derivative with respect to the weight of the unit.
    #[test]
    fn influences_are_derivatives(units in ties(), pick in any::<prop::sample::Index>(), horizon in 3.5f64..13.5) {
        let n = units.len();
        let summary = Summary::of_sorted(units.iter().copied(), n, horizon);
        prop_assume!(summary.n_events > 0 && summary.survival > 0.0);
        let j = pick.index(n);
        let influence = Influence::of_sorted(&units, horizon);
        let step = 1e-5;
        let at = |by: f64| {
            let mut w = vec![1.0; n];
            w[j] += by;
            weighted(&units, &w, horizon)
        };
        let (up, down) = (at(step), at(-step));
        let found = [influence.survival[j], influence.restricted_mean[j], influence.mean_event_time[j]];
        for f in 0..3 {
            let slope = (up[f] - down[f]) / (2.0 * step);
            prop_assert!((slope - found[f]).abs() < 1e-5 * (1.0 + slope.abs()), "{f}: {slope} {}", found[f]);
        }
    }

    /// Intervals hold their estimate, stay inside the bounds, and grow with the level.
    #[test]
    fn intervals_respect_their_bounds(a in ties(), b in ties(), horizon in 3.5f64..13.5) {
        let [a, b] = [a, b].map(|u| Summary::of_sorted(u.iter().copied(), u.len(), horizon));
        for s in [&a, &b] {
            let [narrow, wide] = [0.8, 0.95].map(|c| interval::share(s, c));
            prop_assert!(0.0 <= wide.low && wide.low <= narrow.low && narrow.low <= s.survival);
            prop_assert!(s.survival <= narrow.high && narrow.high <= wide.high && wide.high <= 1.0);
            prop_assert!(wide.width() > 0.0, "a group is never certain");
            if let Some(i) = interval::mean_event_time(s, horizon, 0.95) {
                prop_assert!(0.0 <= i.low && i.high <= horizon && i.covers(s.mean_event_time().unwrap()));
            }
        }
        let [ia, ib] = [&a, &b].map(|s| interval::share(s, 0.95));
        let d = interval::difference(a.survival, &ia, b.survival, &ib);
        prop_assert!(-1.0 <= d.low && d.high <= 1.0 && d.covers(a.survival - b.survival));
    }
}
