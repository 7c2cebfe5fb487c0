//! Is it right? The cases worked by hand in docs/validation.md.

use dvim::internal::cohort::{Arm, Cohort, Units};
use dvim::internal::group::Pool;
use dvim::internal::metric::{Metric, Scaling};
use dvim::internal::search::ArmSearch;
use dvim::internal::survival::SurvivalCurve;
use dvim::internal::table::Ids;

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-14 * expected.abs().max(1.0), "{found} is not {expected}");
}

fn curve(units: &[(f64, u8)]) -> SurvivalCurve {
    let time: Vec<f64> = units.iter().map(|u| u.0).collect();
    let event: Vec<bool> = units.iter().map(|u| u.1 == 1).collect();
    SurvivalCurve::new(&time, &event)
}

/// docs/validation.md, case 1: a tied event and censoring, a lone event, a lone censoring, one at H.
#[test]
fn six_units() {
    let c = curve(&[(2.0, 1), (3.0, 1), (3.0, 0), (5.0, 1), (7.0, 0), (10.0, 0)]);
    for (t, s) in [(0.0, 1.0), (1.99, 1.0), (2.0, 5.0 / 6.0), (3.0, 2.0 / 3.0), (5.0, 4.0 / 9.0), (10.0, 4.0 / 9.0)] {
        close(c.at(t), s);
    }
    assert_eq!([0.0, 2.0, 2.1, 3.0, 5.0, 6.0, 10.0, 10.1].map(|t| c.n_at_risk(t)), [6, 6, 5, 5, 3, 2, 1, 0]);
    let s = c.summary(10.0);
    close(s.survival, 4.0 / 9.0);
    close(s.mean_event_time().unwrap(), 3.5);
    close(s.restricted_mean(10.0), 115.0 / 18.0);
    close(c.integral_to(10.0), 115.0 / 18.0);
    close(c.integral_to(4.0), 2.0 + 5.0 / 6.0 + 2.0 / 3.0);
    assert_eq!((s.n_at_risk, s.n_events, s.carried_forward()), (1, 3, false));
    close(c.survival_with_se(10.0).se.unwrap(), 2.0 / 9.0);
    let (rmst, cmet) = c.means_with_se(10.0);
    close(rmst.se.unwrap(), (151.0f64 / 72.0).sqrt());
    close(cmet.unwrap().se.unwrap(), 0.555f64.sqrt());
}

/// Case 2: the example of Kaplan and Meier (1958).
#[test]
fn kaplan_meier_1958() {
    let c = curve(&[(0.8, 1), (1.0, 0), (2.7, 0), (3.1, 1), (5.4, 1), (7.0, 0), (9.2, 1), (12.1, 0)]);
    for (t, s) in [(0.8, 0.875), (3.1, 0.7), (5.4, 0.525), (9.2, 0.2625)] {
        close(c.at(t), s);
    }
}

/// Case 3: no event. The curve stays at one and the mean event time is undefined.
#[test]
fn no_event() {
    let s = curve(&[(4.0, 0), (10.0, 0)]).summary(10.0);
    assert_eq!((s.survival, s.mean_event_time(), s.n_at_risk), (1.0, None, 1));
    assert!(!s.carried_forward());
}

/// Case 4: everybody has the event. The curve reaches zero, which is not a value carried forward.
#[test]
fn all_events() {
    let c = curve(&[(1.0, 1), (2.0, 1), (3.0, 1)]);
    let s = c.summary(10.0);
    close(s.survival, 0.0);
    close(s.mean_event_time().unwrap(), 2.0);
    assert!(!s.carried_forward());
    assert_eq!(c.survival_with_se(10.0).se, None, "the standard error at zero is undefined");
}

/// Case 5: follow-up ends before H. Ŝ(H) is carried forward, and says so.
#[test]
fn carried_forward() {
    let s = curve(&[(1.0, 1), (4.0, 0)]).summary(10.0);
    close(s.survival, 0.5);
    assert!(s.carried_forward());
    assert_eq!(s.n_at_risk, 0);
}

/// Case 6: an event at H or later is no event before H; times within round-off are one time.
#[test]
fn the_horizon_and_ties() {
    let units = Units {
        ids: Ids::Integers(vec![30, 10, 20, 40, 50, 60, 70]),
        time: vec![10.0, 0.1 + 0.2, 12.0, 0.3, 9.999, 5.0, 10.0],
        event: vec![true, true, true, true, false, true, false],
        arm: [vec![Arm::Treated; 5], vec![Arm::Control; 2]].concat(),
        covariates: vec![3.0, 1.0, 2.0, 4.0, 5.0, 6.0, 7.0],
        names: vec!["x".into()],
        labels: ["0".into(), "1".into()],
        extras: Default::default(),
    };
    let cohort = Cohort::from_parts(units, None, 10.0).expect("sound parts");
    let seen: Vec<(String, f64, bool, f64)> = (0..5)
        .map(|i| (cohort.ids().text(i).into_owned(), cohort.time(i), cohort.event(i), cohort.covariates(i)[0]))
        .collect();
    let expected = [
        ("10", 0.3, true, 1.0),
        ("20", 10.0, false, 2.0),
        ("30", 10.0, false, 3.0),
        ("40", 0.3, true, 4.0),
        ("50", 9.999, false, 5.0),
    ];
    for (found, want) in seen.iter().zip(expected) {
        assert_eq!((found.0.as_str(), found.1, found.2, found.3), want);
    }
    assert_eq!(cohort.recorded(2), (10.0, true), "what was recorded is kept");
}

/// Case 7: both effects of one unit, from eight others, by hand.
#[test]
fn two_effects_by_hand() {
    // ids 1..8; treated 1-4, control 5-8; one covariate, weight 4, so distance is 2·|x − y|.
    let x = [0.0, 1.0, 2.0, 9.0, 0.0, 1.0, 2.0, 9.0];
    let units = Units {
        ids: Ids::Integers((1..=8).collect()),
        time: vec![2.0, 4.0, 10.0, 1.0, 1.0, 3.0, 5.0, 10.0],
        event: vec![true, true, false, true, true, true, false, false],
        arm: [vec![Arm::Treated; 4], vec![Arm::Control; 4]].concat(),
        covariates: x.to_vec(),
        names: vec!["x".into()],
        labels: ["0".into(), "1".into()],
        extras: Default::default(),
    };
    let cohort = Cohort::from_parts(units, None, 10.0).expect("sound parts");
    let metric = Metric { weights: vec![4.0], scaling: Scaling { center: vec![0.0], scale: vec![1.0] } };
    let query = metric.place(&[1.0]);
    let group = |arm: Arm| {
        let pool = Pool::new(&cohort, cohort.units_of(arm));
        ArmSearch::new(&pool, &cohort, &metric, None, false).estimate(&query, [1, 3])[0]
    };
    let [one, three] = group(Arm::Treated);
    assert_eq!((one.diameter, three.diameter), (0.0, 2.0));
    close(one.curve.survival, 0.0);
    // Treated: events at 2 and 4, one reaches H: S(H) = 1/3, CMET = 3.
    close(three.curve.survival, 1.0 / 3.0);
    close(three.curve.mean_event_time().unwrap(), 3.0);
    // Control: events at 1 and 3, censored at 5: S(H) = 1/3 carried forward, CMET = 2.
    let [_, control] = group(Arm::Control);
    close(control.curve.survival, 1.0 / 3.0);
    assert!(control.curve.carried_forward());
    close(three.curve.mean_event_time().unwrap() - control.curve.mean_event_time().unwrap(), 1.0);
}
