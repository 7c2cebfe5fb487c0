//! Are the standard errors right? Against R's survfit, against influence functions, against a weighted curve.

mod data;

use dvim::internal::cohort::Arm;
use dvim::internal::effect::Corrected;
use dvim::internal::estimand::ByEstimand;
use dvim::internal::interval;
use dvim::internal::joint::Spread;
use dvim::internal::survival::{Functional, Influence, Influences, Summary, SurvivalCurve};
use proptest::prelude::*;

/// The two arms (maintained, not maintained) of R's `aml`, in order of time.
fn aml() -> [Vec<(f64, bool)>; 2] {
    let text = data::read("aml.csv");
    let mut arms = [Vec::new(), Vec::new()];
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let arm = usize::from(cells[2].starts_with("Nonmaintained"));
        arms[arm].push((cells[0].parse().expect("a time"), cells[1].parse::<f64>().expect("an event") == 1.0));
    }
    arms.iter_mut().for_each(|a| a.sort_by(|x: &(f64, bool), y| x.0.total_cmp(&y.0)));
    arms
}

fn curve(units: &[(f64, bool)]) -> SurvivalCurve {
    let (time, event): (Vec<f64>, Vec<bool>) = units.iter().copied().unzip();
    SurvivalCurve::new(&time, &event)
}

/// R survival 3.5-3, `survfit(Surv(time, status) ~ x, leukemia)`: oracles.json, km_greenwood_aml.
#[test]
#[ignore = "needs DVIM_DATA: see tests/data/mod.rs"]
fn needs_data_greenwood_is_that_of_survfit() {
    let [maintained, not_maintained] = aml();
    type Expected<'a> = (&'a [(f64, bool)], &'a [f64], &'a [f64]);
    let expected: [Expected; 2] = [
        (
            &maintained,
            &[9.0, 13.0, 18.0, 23.0, 31.0, 34.0, 48.0],
            &[0.0866784172, 0.11629129983, 0.13966497056, 0.15263233103, 0.16419326722, 0.16266888583, 0.15349274579],
        ),
        (
            &not_maintained,
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
        for (&t, &se) in times.iter().zip(se) {
            let h = t + 0.5;
            let summary = Summary::of_sorted(units.iter().copied(), units.len(), h);
            assert!((summary.survival_se().expect("above zero") - se).abs() < 1e-8, "Greenwood at {t}");
            let influence = Influence::of_sorted(units, h);
            let sum: f64 = influence.survival.iter().map(|v| v * v).sum();
            assert!((sum.sqrt() - se).abs() < 1e-8, "influence at {t}");
        }
    }
    let summary = Summary::of_sorted(not_maintained.iter().copied(), not_maintained.len(), 100.0);
    assert_eq!((summary.survival, summary.survival_se()), (0.0, None), "survfit has no standard error at zero");
}

/// Medians with intervals by inverting the limits; survfit's log-log limits give 18 to NA and 8 to NA for the lower
/// ends.
#[test]
#[ignore = "needs DVIM_DATA: see tests/data/mod.rs"]
fn needs_data_quantiles() {
    assert_eq!(curve(&[(1.0, false), (2.0, true), (3.0, false)]).quantile(0.9), None);
    let [maintained, not_maintained] = aml();
    let (median, [low, high]) = interval::quantile(&curve(&maintained), 0.5, 0.95);
    assert_eq!((median, low), (Some(31.0), Some(18.0)));
    assert!(high.is_none_or(|h| h > 31.0));
    let (median, [low, _]) = interval::quantile(&curve(&not_maintained), 0.5, 0.95);
    assert_eq!((median, low), (Some(23.0), Some(8.0)));
}

/// By hand: S = ½ in both arms with variance 0.16 of the logit has se ½ · ½ · 0.4 = 0.1, and ends expit(±1.96 · 0.4). A
/// mean of 200 below 800 with variance 0.01 of the log has se 20. With the correlation ρ of the arms the difference has
/// se 0.1 √(2 − 2ρ).
#[test]
fn corrected_values_by_hand() {
    let spread = |v: f64, rho: f64| Spread { variance: [v, v].into(), covariance: rho * v };
    let of = |rho: f64| Corrected {
        cure_probability: [0.5, 0.5].into(),
        mean_event_time: [200.0, 200.0].into(),
        spread: ByEstimand { cure: spread(0.16, rho), time: spread(0.01, rho) },
        ..Corrected::NOTHING
    };
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    let z = interval::two_sided(0.95);
    let cure = of(0.0).cure_probability_interval(Arm::Treated, 0.95);
    close(cure.se.unwrap(), 0.1);
    close(cure.high, 1.0 / (1.0 + (-0.4 * z).exp()));
    close(cure.low, 1.0 - cure.high);
    let time = of(0.0).mean_event_time_interval(Arm::Control, 800.0, 0.95);
    close(time.se.unwrap(), 20.0);
    // logit(200/800) = −ln 3; on its scale the se is 20 · 800/(200 · 600).
    close(time.high, 800.0 / (1.0 + (3f64.ln() - z * 20.0 * 800.0 / (200.0 * 600.0)).exp()));
    for rho in [0.0, 0.5, -0.5, 1.0] {
        let (cure, time) = (of(rho).cure_interval(0.95), of(rho).time_interval(800.0, 0.95));
        close(cure.se.unwrap(), 0.1 * (2.0 - 2.0 * rho).sqrt());
        close(time.se.unwrap(), 20.0 * (2.0 - 2.0 * rho).sqrt());
        close(cure.low, -cure.high);
        assert!(cure.covers(0.0) && time.covers(0.0));
    }
    let (apart, alike) = (of(0.0).cure_interval(0.95), of(0.8).cure_interval(0.95));
    assert!(alike.width() < apart.width(), "what the arms share does not count");
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

    /// The two ways that are faster, one functional alone and many horizons at once, say the same.
    #[test]
    fn faster_influences_are_the_same(units in ties(), step in 0.2f64..1.0, scale in 0.5f64..2.0) {
        let horizons: Vec<f64> = (1..=14).map(|h| step * f64::from(h)).collect();
        let mut many = Influences::default();
        many.fill(&units, &horizons);
        for (h, &horizon) in horizons.iter().enumerate() {
            let mut all = Influence::default();
            let summary = all.fill(&units, horizon);
            prop_assert_eq!(&many.summaries[h], &summary);
            let mut one = Vec::new();
            for (of, expected) in
                [(Functional::Survival, &all.survival), (Functional::MeanEventTime, &all.mean_event_time)]
            {
                Influence::fill_one(&mut one, &units, horizon, &summary, of, scale);
                let scaled: Vec<f64> = expected.iter().map(|v| scale * v).collect();
                prop_assert_eq!(&one, &scaled);
            }
            let (n, rest) = many.left[h];
            for j in 0..units.len() {
                let [phi, psi] = if j < n { many.own[j] } else { rest };
                prop_assert!((summary.survival * phi - all.survival[j]).abs() < 1e-12);
                if let Some(m) = summary.mean_event_time() {
                    let found = (m * phi - psi) / (1.0 - summary.survival);
                    prop_assert!((found - all.mean_event_time[j]).abs() < 1e-9, "{found} {}", all.mean_event_time[j]);
                }
            }
        }
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

    /// Whatever the variances, a corrected value has an interval inside its bounds that holds it.
    #[test]
    fn corrected_values_respect_their_bounds(
        s in prop::array::uniform2(0.0f64..=1.0),
        m in prop::array::uniform2(0.0f64..800.0),
        v in prop::array::uniform2(0.0f64..50.0),
        rho in -1.0f64..=1.0,
    ) {
        let spread = Spread { variance: v.into(), covariance: rho * (v[0] * v[1]).sqrt() };
        let c = Corrected {
            cure_probability: s.into(),
            mean_event_time: m.into(),
            spread: ByEstimand { cure: spread, time: spread },
            ..Corrected::NOTHING
        };
        for arm in Arm::BOTH {
            let i = c.cure_probability_interval(arm, 0.95);
            prop_assert!(0.0 <= i.low && i.high <= 1.0 && i.covers(s[arm.index()]), "{i:?}");
            let i = c.mean_event_time_interval(arm, 800.0, 0.95);
            prop_assert!(0.0 <= i.low && i.high <= 800.0 && i.covers(m[arm.index()]), "{i:?}");
        }
        let i = c.cure_interval(0.95);
        prop_assert!(-1.0 <= i.low && i.high <= 1.0 && i.covers(s[1] - s[0]) && i.se.is_some(), "{i:?}");
        let i = c.time_interval(800.0, 0.95);
        prop_assert!(-800.0 <= i.low && i.high <= 800.0 && i.covers(m[1] - m[0]), "{i:?}");
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
        let d = interval::difference(a.survival, &ia, b.survival, &ib, 0.0);
        prop_assert!(-1.0 <= d.low && d.high <= 1.0 && d.covers(a.survival - b.survival));
    }
}
