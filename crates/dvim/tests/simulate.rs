//! The synthetic transplant cohort has the margins that it claims, and every world is what its name says.

use dvim::internal::cohort::Arm;
use dvim::internal::simulate::{Scenario, draw, is_synthetic, simulate};

#[test]
fn the_transplant_cohort_has_the_published_margins() {
    let world = simulate(Scenario::Transplant, Scenario::Transplant.usual_size(), false, 1);
    let cohort = &world.cohort;
    assert_eq!((cohort.n_units(), cohort.n_covariates(), cohort.horizon()), (1_157, 8, 3_650.0));
    assert_eq!(Arm::BOTH.map(|z| cohort.units_of(z).len()), [246, 911]);
    assert!(is_synthetic(cohort));
    let longest = (0..cohort.n_units()).map(|i| cohort.recorded(i).0).fold(0.0, f64::max);
    assert!((4_150.0..=4_193.0).contains(&longest), "{longest}");
    for i in 0..cohort.n_units() {
        let (time, event) = cohort.recorded(i);
        assert!(time >= 1.0 && time.fract() == 0.0 && (!event || time < 3_650.0));
        let x = cohort.covariates(i);
        assert!((2.0..=65.0).contains(&x[0]) && x[0].fract() == 0.0);
        assert!(x[3] <= x[1], "a male recipient of a female donor is male");
    }
}

#[test]
fn its_law_has_the_published_shares() {
    let world = simulate(Scenario::Transplant, 60_000, false, 2);
    let cohort = &world.cohort;
    for (arm, published) in [(Arm::Control, 0.252), (Arm::Treated, 0.181)] {
        let units = cohort.units_of(arm);
        let censored =
            units.iter().filter(|&&i| !cohort.event(i as usize) && cohort.time(i as usize) < 3_650.0).count();
        let share = censored as f64 / units.len() as f64;
        assert!((share - published).abs() < 0.01, "{}: {share}", arm.name());
    }
    let n = world.truth.len() as f64;
    let effect = world.truth.iter().map(|t| t.cure_effect()).sum::<f64>() / n;
    assert!((effect - 0.05).abs() < 0.006, "{effect}");
    let cured = |z: Arm| world.truth.iter().filter(|t| t.arms[z].event_time.is_infinite()).count() as f64 / n;
    let probability = |z: Arm| world.truth.iter().map(|t| t.arms[z].cure_probability).sum::<f64>() / n;
    for z in Arm::BOTH {
        assert!((cured(z) - probability(z)).abs() < 0.01);
    }
    let mean = |z: Arm| {
        let times: Vec<f64> = world.truth.iter().map(|t| t.arms[z].event_time).filter(|t| t.is_finite()).collect();
        times.iter().sum::<f64>() / times.len() as f64
    };
    assert!(mean(Arm::Treated) < mean(Arm::Control), "treated events come sooner: whether and when differ in sign");
}

#[test]
fn draws_do_not_depend_on_how_many_there_are() {
    let (few, many) = (simulate(Scenario::BothOverlap, 50, true, 9), simulate(Scenario::BothOverlap, 500, true, 9));
    for i in 0..50 {
        assert_eq!(few.cohort.covariates(i), many.cohort.covariates(i));
        assert_eq!(few.cohort.recorded(i), many.cohort.recorded(i));
        assert_eq!(few.truth[i], many.truth[i]);
    }
}

#[test]
fn the_scenarios_are_listed_once_and_in_their_order() {
    assert_eq!(Scenario::ALL[..4], Scenario::PAPER);
    assert_eq!(Scenario::ALL[4], Scenario::Transplant);
    assert_eq!(Scenario::ALL[5..], Scenario::WORLDS);
    let mut names: Vec<&str> = Scenario::ALL.iter().map(|s| s.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Scenario::ALL.len());
}

#[test]
fn every_world_is_drawn_alike_whatever_its_size() {
    for scenario in Scenario::ALL.into_iter().filter(|s| *s != Scenario::Transplant) {
        let (few, many) = (draw(scenario, 30, false, 5), draw(scenario, 90, false, 5));
        assert_eq!(few.units.covariates, many.units.covariates[..few.units.covariates.len()]);
        assert_eq!(few.units.time, many.units.time[..30]);
        assert_eq!(few.units.event, many.units.event[..30]);
        assert_eq!(few.truth, many.truth[..30]);
        assert_ne!(draw(scenario, 30, false, 6).truth, few.truth, "{}", scenario.name());
    }
}

#[test]
fn effects_that_do_not_vary_do_not() {
    for t in simulate(Scenario::NoEffect, 500, false, 1).truth {
        assert_eq!((t.cure_effect(), t.time_effect()), (0.0, 0.0));
    }
    let constant = simulate(Scenario::ConstantEffect, 500, false, 1).truth;
    for t in &constant {
        assert!((t.cure_effect() - 0.15).abs() < 1e-12);
        assert_eq!(t.time_effect(), constant[0].time_effect());
    }
    assert!(constant[0].time_effect() > 30.0);
}

/// Means over units of `f(i)`.
fn mean(n: usize, f: impl Fn(usize) -> f64) -> f64 {
    (0..n).map(f).sum::<f64>() / n as f64
}

#[test]
fn covariates_and_follow_up_are_what_their_worlds_say() {
    let n = 40_000;
    let correlated = simulate(Scenario::Correlated, n, false, 3).cohort;
    let product = |j: usize, k: usize| mean(n, |i| correlated.covariates(i)[j] * correlated.covariates(i)[k]);
    for (j, k, expected) in [(10, 10, 1.0), (19, 19, 1.0), (10, 11, 0.7), (18, 19, 0.7), (12, 14, 0.49), (0, 10, 0.0)] {
        assert!((product(j, k) - expected).abs() < 0.03, "{j} {k}: {}", product(j, k));
    }

    // P(|t₃| > 3.182) = 0.05; under the normal law with the same variance it would be 0.066.
    let heavy = simulate(Scenario::HeavyCovariates, n, false, 3).cohort;
    let far = |c: f64| mean(n, |i| f64::from(u8::from(heavy.covariates(i)[14].abs() > c / 3f64.sqrt())));
    assert!((far(3.182_446) - 0.05).abs() < 0.005 && (far(5.840_909) - 0.01).abs() < 0.0025);

    // Who is treated depends on x17 much more where overlap is weak.
    let difference = |scenario: Scenario| {
        let cohort = simulate(scenario, n, false, 3).cohort;
        let of = |arm: Arm| {
            let units = cohort.units_of(arm);
            units.iter().map(|&i| cohort.covariates(i as usize)[16]).sum::<f64>() / units.len() as f64
        };
        of(Arm::Treated) - of(Arm::Control)
    };
    assert!(difference(Scenario::WeakOverlap) > 0.7 && difference(Scenario::Interactions).abs() < 0.05);

    // Patients with a high x18 are lost early, and those with a low one late.
    let lost = |scenario: Scenario, sign: f64| {
        let cohort = simulate(scenario, n, false, 3).cohort;
        let units: Vec<usize> = (0..n).filter(|&i| sign * cohort.covariates(i)[17] > 0.5).collect();
        let early = units.iter().filter(|&&i| !cohort.event(i) && cohort.time(i) < 200.0).count();
        early as f64 / units.len() as f64
    };
    let excess = |scenario: Scenario| lost(scenario, 1.0) - lost(scenario, -1.0);
    assert!(excess(Scenario::DependentCensoring) > excess(Scenario::Curvature) + 0.05);
}
