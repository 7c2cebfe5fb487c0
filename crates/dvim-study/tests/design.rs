//! Power of a design against closed forms.

use dvim::internal::interval::two_sided;
use dvim::internal::watch::Unwatched;
use dvim_study::design::{Design, Found, Power};

fn design() -> Design {
    Design {
        horizon: 5.0,
        event_free: 0.4,
        mean_time: 1.5,
        cure_effect: 0.15,
        time_effect: 0.3,
        accrual: 0.0,
        study_end: 5.0,
        dropout: 0.0,
        treated_share: 0.5,
        sizes: vec![200],
        alpha: 0.05,
        bonferroni: true,
        power: 0.8,
        seed: 1,
    }
}

fn near(found: Found, exact: f64, what: &str) {
    // Four Monte Carlo standard errors: one in 16,000 would be beyond them.
    assert!((found.value - exact).abs() < 4.0 * found.mc_se, "{what}: {found:?}, exact {exact}");
}

/// Binomial probabilities of 0 to n.
fn binomial(n: usize, p: f64) -> Vec<f64> {
    let mut term = (1.0 - p).powi(n as i32);
    let mut out = vec![term];
    for k in 0..n {
        term *= (n - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
        out.push(term);
    }
    out
}

/// The exact power of the test of two shares whose standard error is not pooled.
fn exact_power(arms: [(usize, f64); 2], z: f64) -> f64 {
    let [a, b] = arms.map(|(n, p)| binomial(n, p));
    let mut power = 0.0;
    for (i, pa) in a.iter().enumerate() {
        for (j, pb) in b.iter().enumerate() {
            let [x, y] = [i as f64 / arms[0].0 as f64, j as f64 / arms[1].0 as f64];
            let variance = x * (1.0 - x) / arms[0].0 as f64 + y * (1.0 - y) / arms[1].0 as f64;
            if (x - y).abs() > z * variance.sqrt() {
                power += pa * pb;
            }
        }
    }
    power
}

#[test]
fn without_censoring_power_is_the_exact_binomial() {
    let cases = [(0.4, 0.15, 0.5, 200), (0.4, 0.15, 0.5, 400), (0.2, 0.1, 0.5, 300), (0.7, -0.12, 0.5, 400)];
    let uneven = [(0.5, 0.15, 0.33, 300), (0.3, 0.08, 0.67, 800)];
    for (event_free, cure_effect, treated_share, n) in cases.into_iter().chain(uneven) {
        let d = Design { event_free, cure_effect, treated_share, sizes: vec![n], ..design() };
        let treated = (n as f64 * treated_share).round() as usize;
        let found = &Power::of(&d, &Unwatched).expect("trials").rows[0];
        let z = two_sided(0.95);
        let arms = |effect: f64| [(treated, event_free + effect), (n - treated, event_free)];
        near(found.power[0], exact_power(arms(cure_effect), z), &format!("power at {d:?}"));
        near(found.type_one[0], exact_power(arms(0.0), z), &format!("type I error at {d:?}"));
    }
}

#[test]
fn with_censoring_the_width_is_that_of_greenwood() {
    // Var Ŝ(H) = S(H)² ∫ dF / (S² G) / n, G the chance of not being censored: here entries are even over 3 and the
    // study ends at 6, so that follow-up is at least 3 and at most 6, and dropout is exponential.
    let d = Design { accrual: 3.0, study_end: 6.0, dropout: 0.2, sizes: vec![1_000], ..design() };
    let found = &Power::of(&d, &Unwatched).expect("trials").rows[0];
    let variance = |arm| {
        let (steps, h) = (20_000, d.horizon);
        let followed = |t: f64| ((6.0 - t) / 3.0).min(1.0) * (1.0 - d.dropout).powf(t / h);
        let sum: f64 = (0..steps)
            .map(|i| {
                let [from, to] = [i, i + 1].map(|i| d.survival(arm, h * i as f64 / steps as f64));
                (from - to) / (from * to * followed(h * (i as f64 + 0.5) / steps as f64))
            })
            .sum();
        d.survival(arm, h).powi(2) * sum / d.of_arm(arm, 1_000) as f64
    };
    let exact = variance(dvim::Arm::Control) + variance(dvim::Arm::Treated);
    let width = found.width[0].expect("a width").value;
    let expected = 2.0 * two_sided(0.95) * exact.sqrt();
    // Greenwood's estimate is consistent, not unbiased: at n = 1,000 it is within half a per cent.
    assert!((width / expected - 1.0).abs() < 0.005, "{width}, closed form {expected}");
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| Power::of(&Design { dropout: 0.1, ..design() }, &Unwatched).expect("trials"))
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn what_cannot_be_is_refused_by_its_option() {
    let refused = |d: Design| d.check().expect_err("refused").option;
    assert!(design().check().is_ok());
    assert_eq!(refused(Design { event_free: 1.2, ..design() }), "event-free");
    assert_eq!(refused(Design { cure_effect: 0.7, ..design() }), "cure-effect");
    assert_eq!(refused(Design { mean_time: 6.0, ..design() }), "mean-time");
    assert_eq!(refused(Design { time_effect: -1.5, ..design() }), "time-effect");
    assert_eq!(refused(Design { accrual: 7.0, study_end: 6.0, ..design() }), "study-end");
    assert_eq!(refused(Design { study_end: 4.0, ..design() }), "study-end");
    assert_eq!(refused(Design { dropout: 1.0, ..design() }), "dropout");
    assert_eq!(refused(Design { treated_share: 0.0, ..design() }), "treated-share");
    assert_eq!(refused(Design { sizes: vec![], ..design() }), "sizes");
    assert_eq!(refused(Design { alpha: f64::NAN, ..design() }), "alpha");
    assert_eq!(refused(Design { power: 0.3, ..design() }), "power");
}
