//! Groups that are asked for one unit at a time are those that the run was estimated from, bit by bit.

use dvim::internal::analysis::{self, Analysis};
use dvim::internal::cohort::{Arm, Cohort};
use dvim::internal::constraint::{Caliper, Constraints};
use dvim::internal::estimand::ByEstimand;
use dvim::internal::ground::Ground;
use dvim::internal::inspect::Search;
use dvim::internal::interval;
use dvim::internal::options::AdjustedOptions;
use dvim::internal::options::{Estimator, Options};
use dvim::internal::simulate::{Scenario, simulate};
use dvim::internal::survival::SurvivalCurve;
use dvim::internal::watch::Unwatched;

fn cohort(n: usize) -> Cohort {
    simulate(Scenario::BothOverlap, n, false, 7).cohort
}

fn run(cohort: &Cohort, options: Options) -> Analysis {
    analysis::run(cohort, &options, &Unwatched).expect("a run")
}

fn assert_same_as_the_run(cohort: &Cohort, found: &Analysis) {
    let ground = Ground::of_fit(&found.fit, cohort).expect("constraints that fit");
    let search = Search::new(&found.fit, &ground);
    for (&unit, effect) in found.units.iter().zip(&found.effects).step_by(11) {
        let groups = search.groups(cohort.covariates(unit as usize), Some(unit), None);
        assert_eq!(groups.effect(cohort.horizon(), effect.corrected).as_ref(), Some(effect), "unit {unit}");
    }
    for (unit, why) in found.unserved.iter().step_by(5) {
        let k = found.fit.options.group_size;
        let groups = search.groups(cohort.covariates(*unit as usize), Some(*unit), None);
        let again = groups.unserved(k).expect("not served either");
        // The run does not say what an arm has beyond K.
        assert_eq!(again.candidates.map(|c| c.min(k)), why.candidates, "unit {unit}");
    }
}

#[test]
fn one_unit_at_a_time_is_the_run() {
    let cohort = cohort(900);
    assert_same_as_the_run(&cohort, &run(&cohort, Options { group_size: 20, ..Options::paper() }));
}

#[test]
fn one_unit_at_a_time_is_the_run_under_constraints() {
    let cohort = cohort(900);
    let caliper = Caliper { covariate: cohort.names()[14].clone(), width: 0.15, in_sd: true };
    let constraints = Constraints { calipers: vec![caliper], exclude_self: true, ..Constraints::default() };
    let found = run(&cohort, Options { group_size: 30, constraints, ..Options::paper() });
    assert!(!found.unserved.is_empty() && !found.units.is_empty(), "some are served, some are not");
    assert_same_as_the_run(&cohort, &found);
}

#[test]
fn one_unit_at_a_time_is_the_adjusted_run() {
    let cohort = cohort(500);
    let adjusted = AdjustedOptions { splits: Some(3), ..AdjustedOptions::default() };
    let found = run(&cohort, Options { estimator: Estimator::Adjusted(adjusted), ..Options::default() });
    assert_same_as_the_run(&cohort, &found);
    let ground = Ground::of_fit(&found.fit, &cohort).expect("constraints that fit");
    let search = Search::new(&found.fit, &ground);
    let largest = search.largest_group();
    let groups = search.groups(cohort.covariates(3), Some(3), Some(largest));
    assert!(groups.cure.iter().chain(&groups.time).all(|g| g.units.len() == largest && !g.units.contains(&3)));
}

#[test]
fn another_size_and_horizon_are_another_run_on_the_same_metrics() {
    let cohort = cohort(900);
    let found = run(&cohort, Options { group_size: 40, ..Options::paper() });
    let ground = Ground::of_fit(&found.fit, &cohort).expect("constraints that fit");
    let search = Search::new(&found.fit, &ground);
    let earlier = 0.6 * cohort.horizon();
    // The same fit over the same people, who are followed for a shorter time.
    let shorter = Cohort::from_parts(cohort.to_units(), None, earlier).expect("sound parts");
    let mut fit = found.fit.clone();
    fit.deals[0].folds[0].group_size = ByEstimand { cure: 15, time: 15 };
    fit.options.group_size = 15;
    for unit in [0, 5, 100, 899] {
        let x = cohort.covariates(unit);
        let expected = fit.estimate(&shorter, x, &Unwatched).expect("an effect")[0];
        let groups = search.groups(x, Some(unit as u32), Some(15));
        assert_eq!(groups.effect(earlier, None), Some(expected));
    }
}

#[test]
fn the_band_is_the_interval_at_each_event() {
    let cohort = cohort(300);
    let units: Vec<usize> = cohort.units_of(Arm::Treated).iter().map(|&i| i as usize).collect();
    let time: Vec<f64> = units.iter().map(|&i| cohort.time(i)).collect();
    let event: Vec<bool> = units.iter().map(|&i| cohort.event(i)).collect();
    let curve = SurvivalCurve::new(&time, &event);
    let band = interval::band(&curve, 0.9);
    assert!(band.len() > 20);
    for (step, [low, high]) in band {
        let expected = interval::share(&curve.summary(step.time.next_up()), 0.9);
        assert!((expected.low - low).abs() < 1e-12 && (expected.high - high).abs() < 1e-12);
    }
}
