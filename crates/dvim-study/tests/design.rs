//! Power of a design against closed forms.

use dvim::internal::arm::Arm;
use dvim::internal::interval::two_sided;
use dvim::internal::watch::Unwatched;
use dvim_study::design::world::World;
use dvim_study::design::{Asked, Design, Forgetful, Power, Share};

fn asked() -> Asked {
    Asked {
        horizon: Some(5.0),
        event_free: Some(0.4),
        mean_time: Some(1.5),
        cure_effect: Some(0.15),
        time_effect: Some(0.3),
        study_end: Some(5.0),
        sizes: Some(vec![200]),
        ..Asked::default()
    }
}

fn design() -> Design {
    asked().resolve(None).expect("a design")
}

fn power(d: &Design) -> Power {
    Power::of(d, None, &mut Forgetful, &Unwatched).expect("trials")
}

fn near(found: Share, exact: f64, what: &str) {
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
        let found = &power(&d).rows[0];
        let z = two_sided(0.95);
        let arms = |effect: f64| [(treated, event_free + effect), (n - treated, event_free)];
        near(found.power[0].expect("power"), exact_power(arms(cure_effect), z), &format!("power at {d:?}"));
        near(found.type_one[0].expect("an error"), exact_power(arms(0.0), z), &format!("type I error at {d:?}"));
    }
}

#[test]
fn with_censoring_the_width_is_that_of_greenwood() {
    // Var Ŝ(H) = S(H)² ∫ dF / (S² G) / n, G the chance of not being censored: here entries are even over 3 and the
    // study ends at 6, so that follow-up is at least 3 and at most 6, and dropout is exponential.
    let d = Design { accrual: 3.0, study_end: 6.0, dropout: 0.2, sizes: vec![1_000], ..design() };
    let found = &power(&d).rows[0];
    let world = World::new(&d, None, true);
    let survival = |arm, t: f64| {
        let (cured, mean) = world.average(arm);
        1.0 - (1.0 - cured) * world.with_mean(mean).share(t)
    };
    let variance = |arm: Arm| {
        let (steps, h) = (20_000, d.horizon);
        let followed = |t: f64| ((6.0 - t) / 3.0).min(1.0) * (1.0 - d.dropout).powf(t / h);
        let sum: f64 = (0..steps)
            .map(|i| {
                let [from, to] = [i, i + 1].map(|i| survival(arm, h * i as f64 / steps as f64));
                (from - to) / (from * to * followed(h * (i as f64 + 0.5) / steps as f64))
            })
            .sum();
        survival(arm, h).powi(2) * sum / 500.0
    };
    let exact = variance(Arm::Control) + variance(Arm::Treated);
    let width = found.width[0].expect("a width").value;
    let expected = 2.0 * two_sided(0.95) * exact.sqrt();
    // Greenwood's estimate is consistent, not unbiased: at n = 1,000 it is within half a per cent.
    assert!((width / expected - 1.0).abs() < 0.005, "{width}, closed form {expected}");
    // Power of the t-year difference, by the normal law with that variance; the statistic is normal to a point of power.
    let small = Design { cure_effect: 0.08, ..d.clone() };
    let z = two_sided(0.95);
    let by_formula = 0.5 * libm::erfc((z - 0.08 / exact.sqrt()) * std::f64::consts::FRAC_1_SQRT_2);
    let drawn = power(&small).rows[0].power[0].expect("power");
    assert!((drawn.value - by_formula).abs() < 4.0 * drawn.mc_se + 0.01, "{drawn:?}, closed form {by_formula}");
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| power(&Design { dropout: 0.1, ..design() }))
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn what_cannot_be_is_refused_by_its_option() {
    let refused = |a: Asked| a.resolve(None).expect_err("refused").option;
    assert!(asked().resolve(None).is_ok());
    assert_eq!(refused(Asked { horizon: None, ..asked() }), "horizon");
    assert_eq!(refused(Asked { event_free: None, ..asked() }), "event-free");
    assert_eq!(refused(Asked { event_free: Some(1.2), ..asked() }), "event-free");
    assert_eq!(refused(Asked { cure_effect: Some(0.7), ..asked() }), "cure-effect");
    assert_eq!(refused(Asked { cure_effect_sd: Some(0.3), ..asked() }), "cure-effect-sd");
    assert_eq!(refused(Asked { mean_time: Some(6.0), ..asked() }), "mean-time");
    assert_eq!(refused(Asked { time_effect: Some(-1.5), ..asked() }), "time-effect");
    assert_eq!(refused(Asked { accrual: Some(7.0), study_end: Some(6.0), ..asked() }), "study-end");
    assert_eq!(refused(Asked { study_end: Some(4.0), ..asked() }), "study-end");
    assert_eq!(refused(Asked { dropout: Some(1.0), ..asked() }), "dropout");
    assert_eq!(refused(Asked { treated_share: Some(0.0), ..asked() }), "treated-share");
    assert_eq!(refused(Asked { confounding: Some(0.5), ..asked() }), "confounding");
    assert_eq!(refused(Asked { cluster_size: Some(100), ..asked() }), "cluster-size");
    assert_eq!(refused(Asked { cluster_correlation: Some(0.1), ..asked() }), "cluster-correlation");
    assert_eq!(refused(Asked { multiplicity: Some("sidak".into()), ..asked() }), "multiplicity");
    assert_eq!(refused(Asked { sizes: Some(vec![]), ..asked() }), "sizes");
    assert_eq!(refused(Asked { alpha: Some(f64::NAN), ..asked() }), "alpha");
    assert_eq!(refused(Asked { power: Some(0.3), ..asked() }), "power");
    assert_eq!(refused(Asked { curve: Some(vec![[0.0, 1.0], [3.0, 0.5]]), ..asked() }), "curve");
    assert_eq!(refused(Asked { curve: Some(vec![[1.0, 0.5], [3.0, 0.6], [6.0, 0.4]]), ..asked() }), "curve");
}

#[test]
fn a_design_written_back_is_the_same_design() {
    let curve = Some(vec![[0.0, 1.0], [1.0, 0.7], [3.0, 0.5], [6.0, 0.4]]);
    for a in [asked(), Asked { curve, event_free: None, mean_time: None, ..asked() }] {
        let design = a.resolve(None).expect("a design");
        let again = design.asked().resolve(None).expect("the same");
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(design.event_free, again.event_free) && close(design.mean_time, again.mean_time));
        assert_eq!(Design { shape: None, ..design.clone() }, Design { shape: None, ..again.clone() });
        assert!(design.shape.iter().flatten().zip(again.shape.iter().flatten()).all(|(a, b)| close(*a, *b)));
        assert!(design.to_toml().contains("study-end = 5.0"));
    }
}

/// A trial of so many patients, and the design it is drawn from.
fn large(a: Asked) -> (Design, usize) {
    (Asked { sizes: Some(vec![40_000]), ..a }.resolve(None).expect("a design"), 40_000)
}

#[test]
fn patients_have_the_averages_and_the_spread_that_are_assumed() {
    let (d, n) = large(Asked {
        prognosis_whether: Some(1.0),
        prognosis_when: Some(0.7),
        cure_effect_sd: Some(0.05),
        time_effect_sd: Some(0.1),
        confounding: Some(0.8),
        selection: Some(0.5),
        treated_share: Some(0.3),
        n_covariates: Some(8),
        ..asked()
    });
    let world = World::new(&d, None, true);
    let mut draws = dvim::internal::simulate::Draws::new(3, 1);
    let mut x = Vec::new();
    let patients: Vec<_> = (0..n).map(|_| world.draw(&mut draws, &mut x)).collect();
    let mean = |value: &dyn Fn(usize) -> f64| (0..n).map(value).sum::<f64>() / n as f64;
    let close = |found: f64, wanted: f64, by: f64, what: &str| {
        assert!((found - wanted).abs() < by, "{what}: {found}, assumed {wanted}");
    };
    assert_eq!(x.len(), 8 * n);
    let cure = |i: usize| patients[i].cured.treated - patients[i].cured.control;
    let time = |i: usize| patients[i].mean.treated - patients[i].mean.control;
    close(mean(&|i| patients[i].cured.control), 0.4, 0.004, "share");
    close(mean(&|i| patients[i].mean.control), 1.5, 0.01, "mean time");
    close(mean(&cure), 0.15, 0.001, "cure effect");
    close(mean(&time), 0.3, 0.002, "time effect");
    close(mean(&|i| (cure(i) - 0.15).powi(2)).sqrt(), 0.05, 0.001, "its spread");
    close(mean(&|i| (time(i) - 0.3).powi(2)).sqrt(), 0.1, 0.002, "its spread");
    close(mean(&|i| patients[i].propensity), 0.3, 0.005, "treated");
    assert!(patients.iter().all(|p| p.cured.treated > 0.0 && p.cured.treated < 1.0 && p.mean.treated < 5.0));
}

#[test]
fn clusters_cost_what_their_correlation_says() {
    // Without censoring: the variance of a share in whole clusters is 1 + (k − 1) ρ times that of patients, with ρ the
    // correlation of the binary outcome; here of a share of one half, whose ρ is 2 asin(r) / π.
    let whole = Asked {
        event_free: Some(0.5),
        cure_effect: Some(0.0),
        sizes: Some(vec![1_000]),
        cluster_size: Some(10),
        cluster_correlation: Some(0.2),
        ..asked()
    };
    let one = Asked { cluster_size: None, cluster_correlation: None, ..whole.clone() };
    let width = |a: &Asked| power(&a.resolve(None).expect("a design")).rows[0].width[0].expect("a width").value;
    let rho = 2.0 / std::f64::consts::PI * 0.2f64.asin();
    let wanted = (1.0 + 9.0 * rho).sqrt();
    let found = width(&whole) / width(&one);
    assert!((found / wanted - 1.0).abs() < 0.02, "{found}, closed form {wanted}");
    // Where the clusters hold both arms, what they share cancels.
    let within = width(&Asked { randomise: Some("patients".into()), ..whole }) / width(&one);
    assert!(within < 1.02 && within > 0.9, "{within}");
}

#[test]
fn the_rules_for_two_tests() {
    use dvim_study::design::Multiplicity::{Bonferroni, Fixed, Holm, None};
    let (z, half) = (1.96, 2.24);
    let cases = [
        ([2.0, 2.3], Bonferroni, [false, true]),
        ([2.0, 2.3], Holm, [true, true]),
        ([2.0, 2.1], Holm, [false, false]),
        ([1.0, 3.0], Fixed, [false, false]),
        ([2.0, 1.0], Fixed, [true, false]),
        ([2.0, 1.0], None, [true, false]),
    ];
    for (t, rule, wanted) in cases {
        assert_eq!(rule.passed(t, z, half), wanted, "{rule:?} at {t:?}");
    }
}

/// The vignette "Basic functionalities" of npsurvSS prints, for exponential times with medians 12 and 15 months, loss with
/// a median of 120, accrual over 6 and 12 more months of follow-up, one-sided at 0.025: power 0.2050328 of the difference
/// in 12-month survival with 120 patients in each arm, and 1459.218 patients for a power of 0.8.
#[test]
fn the_printed_example_of_npsurvss() {
    let (h, rates) = (12.0, [12.0, 15.0].map(|median: f64| std::f64::consts::LN_2 / median));
    let share = rates.map(|r| (-r * h).exp());
    // The mean of an exponential time given that it is before H.
    let mean = rates.map(|r| 1.0 / r - h / ((r * h).exp() - 1.0));
    let a = Asked {
        horizon: Some(h),
        event_free: Some(share[0]),
        cure_effect: Some(share[1] - share[0]),
        mean_time: Some(mean[0]),
        time_effect: Some(mean[1] - mean[0]),
        accrual: Some(6.0),
        study_end: Some(18.0),
        dropout: Some(1.0 - 0.5f64.powf(h / 120.0)),
        sizes: Some(vec![240, 1_460]),
        ..Asked::default()
    };
    let rows = power(&a.resolve(None).expect("a design")).rows;
    // Two-sided: findings on the wrong side are a thousandth. The formula is asymptotic: a point of power is left to it.
    for (row, printed) in rows.iter().zip([0.2050328, 0.8]) {
        let found = row.power[0].expect("power");
        assert!((found.value - printed).abs() < 4.0 * found.mc_se + 0.01, "{found:?}, printed {printed}");
    }
}

/// The adjusted estimator: power from few fits and control variates against the share in many trials of another seed.
#[test]
fn power_with_control_variates_is_the_share_of_fits() {
    let a = Asked {
        prognosis_whether: Some(1.0),
        prognosis_when: Some(0.5),
        analysis: Some("adjusted".into()),
        sizes: Some(vec![200]),
        precision: Some(0.02),
        most_trials: Some(80),
        ..asked()
    };
    let row = power(&a.resolve(None).expect("a design")).rows.remove(0);
    let predicted = row.power[0].expect("power");
    assert!(row.fits < row.trials && predicted.mc_se < 0.035, "{row:?}");
    let realised = realised(&Asked { seed: Some(77), ..a }, 120);
    let error = predicted.mc_se.hypot(realised.mc_se);
    assert!((predicted.value - realised.value).abs() < 4.0 * error, "{predicted:?}, realised {realised:?}");
}

/// The share of so many trials in which the estimator finds π.
fn realised(a: &Asked, trials: usize) -> Share {
    use dvim_study::design::{analysis::by_estimator, trial::Trial};
    use rayon::prelude::*;
    let d = a.resolve(None).expect("a design");
    let world = World::new(&d, None, true);
    let z = two_sided(1.0 - d.alpha);
    let found = |r: usize| {
        let trial = Trial::draw(&world, d.sizes[0], r);
        by_estimator(&trial, &world.names(), d.analysis, r as u64 + 1).expect("a fit").statistics()[0].abs() > z
    };
    Share::of((0..trials).into_par_iter().filter(|r| found(*r)).count(), trials)
}
