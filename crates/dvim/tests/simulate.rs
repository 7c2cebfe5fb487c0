//! The synthetic transplant cohort has the margins that it claims.

use dvim::cohort::Arm;
use dvim::simulate::{Scenario, is_synthetic, simulate};

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
    let cured = |z: usize| world.truth.iter().filter(|t| t.arms[z].event_time.is_infinite()).count() as f64 / n;
    let probability = |z: usize| world.truth.iter().map(|t| t.arms[z].cure_probability).sum::<f64>() / n;
    for z in [0, 1] {
        assert!((cured(z) - probability(z)).abs() < 0.01);
    }
    let mean = |z: usize| {
        let times: Vec<f64> = world.truth.iter().map(|t| t.arms[z].event_time).filter(|t| t.is_finite()).collect();
        times.iter().sum::<f64>() / times.len() as f64
    };
    assert!(mean(1) < mean(0), "treated events come sooner: whether and when differ in sign");
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
