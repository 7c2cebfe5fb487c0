//! Averages of the adjusted estimator: what must hold exactly, and what must hold about.

use dvim::internal::analysis::{self, Analysis};
use dvim::internal::audit::average::{AverageEffect, By, average_effects};
use dvim::internal::audit::heterogeneity::Heterogeneity;
use dvim::internal::cohort::{Arm, Cohort};
use dvim::internal::curve::Grid;
use dvim::internal::joint::Family;
use dvim::internal::martingale::Censoring;
use dvim::internal::options::AdjustedOptions;
use dvim::internal::options::{Estimator, Options};
use dvim::internal::simulate::{HORIZON, Scenario, Simulated, simulate};
use dvim::internal::watch::Unwatched;

fn adjusted(cohort: &Cohort) -> Analysis {
    let options = AdjustedOptions { splits: Some(4), family: Some(Family::LogNormal), ..AdjustedOptions::default() };
    let options = Options { estimator: Estimator::Adjusted(options), ..Options::default() };
    analysis::run(cohort, &options, &Unwatched).expect("a sound cohort")
}

/// The cohort had nobody been lost.
fn watched_to_the_end(world: &Simulated) -> Cohort {
    let mut units = world.cohort.to_units();
    for (i, truth) in world.truth.iter().enumerate() {
        let t = truth.arms[world.cohort.arm(i)].event_time;
        units.time[i] = t.min(HORIZON);
        units.event[i] = t < HORIZON;
    }
    Cohort::from_parts(units, None, HORIZON).expect("sound parts")
}

fn find<'a>(all: &'a [AverageEffect], estimand: &str, population: &str) -> &'a AverageEffect {
    all.iter().find(|a| a.estimand == estimand && a.population == population).expect("the average")
}

/// Without censoring the residual of S(H) is 1{T ≥ H} − S(H), that of the mean event time 1{T < H}(T − m)/(1 − S(H)):
/// what the full data say.
#[test]
fn residuals_without_censoring_are_those_of_the_full_data() {
    let world = simulate(Scenario::BothOverlap, 800, false, 4);
    let cohort = watched_to_the_end(&world);
    let time: Vec<f64> = (0..800).map(|i| cohort.time(i)).collect();
    let event: Vec<bool> = (0..800).map(|i| cohort.event(i)).collect();
    let grid = Grid::of(&cohort);
    let censoring = Censoring::new(&time, &vec![false; 800], grid, 0.05);
    // Events that come evenly, early and late.
    for power in [1.0, 0.4, 2.5] {
        let mut shares = grid.times().map(|t| (t / HORIZON).powf(power));
        shares[0] = 0.0;
        let beyond = |k: usize| 1.0 - 0.5 * (shares[k] + shares[k + 1]);
        let m: f64 = (0..shares.len() - 1).map(|k| beyond(k) * (grid.times()[k + 1] - grid.times()[k])).sum();
        for s in [0.05, 0.3, 0.6] {
            for i in 0..800 {
                let found = censoring.residual(s, &shares, time[i], event[i]);
                let cure = f64::from(u8::from(!event[i])) - s;
                assert!((found.cure - cure).abs() < 1e-9, "{i}: {found:?} {cure}");
                for (k, (rho, t)) in found.survival.iter().zip(&grid.times()[1..]).enumerate() {
                    let survival = s + (1.0 - s) * (1.0 - shares[k + 1]);
                    let seen = f64::from(u8::from(!(event[i] && time[i] <= *t)));
                    assert!((f64::from(*rho) - (seen - survival)).abs() < 1e-6, "{i} at {t}: {rho}");
                }
                let time = if event[i] { (time[i] - m) / (1.0 - s) } else { 0.0 };
                assert!((found.time - time).abs() < 1e-9 * HORIZON, "{i}: {found:?} {time}, mean {m}");
            }
        }
    }
}

/// Without censoring the one-step average of an arm over its own units is the share that was seen in it.
#[test]
fn an_arm_over_its_own_units_is_what_was_seen() {
    let world = simulate(Scenario::CureOnly, 700, true, 6);
    let cohort = watched_to_the_end(&world);
    let averages = average_effects(&cohort, &adjusted(&cohort), &[]).expect("averages");
    for (arm, estimand, population) in
        [(Arm::Treated, "cure_treated", "treated"), (Arm::Control, "cure_control", "control")]
    {
        let units = cohort.units_of(arm);
        let seen = units.iter().filter(|&&i| !cohort.event(i as usize)).count() as f64 / units.len() as f64;
        let found = find(&averages, estimand, population);
        assert!((found.estimate.unwrap() - seen).abs() < 1e-3, "{estimand}: {found:?}, seen {seen}");
        // A share of independent units.
        let se = (seen * (1.0 - seen) / units.len() as f64).sqrt();
        assert!((found.se.unwrap() / se - 1.0).abs() < 0.02, "{estimand}: {found:?}, {se}");
    }
}

/// Subgroups add up to the whole, the ratio is that of the arms, and the truth lies within four standard errors.
#[test]
fn averages_fit_together() {
    let world = simulate(Scenario::BothIndependent, 1500, true, 9);
    let found = adjusted(&world.cohort);
    let averages = average_effects(&world.cohort, &found, &[By::parse("x1")]).expect("averages");
    for estimand in ["cure_effect", "time_effect", "cure_control"] {
        let whole = find(&averages, estimand, "all");
        let parts = ["x1 = 0", "x1 = 1"].map(|p| find(&averages, estimand, p));
        let sum: f64 = parts.iter().map(|p| p.n_units as f64 * p.estimate.unwrap()).sum();
        assert!((sum / 1500.0 - whole.estimate.unwrap()).abs() < 1e-9, "{estimand}");
        assert!(parts.iter().all(|p| p.se > whole.se && p.low < p.estimate && p.estimate < p.high), "{parts:?}");
    }
    let of = |e: &str| find(&averages, e, "all").estimate.unwrap();
    assert!((of("cure_ratio") - of("cure_treated") / of("cure_control")).abs() < 1e-12);
    assert!((of("number_needed_to_treat") * of("cure_effect") - 1.0).abs() < 1e-12);
    assert!(averages.iter().all(|a| a.bias.is_none() && !a.estimand.ends_with("_corrected")));
    for (population, arm) in [("all", None), ("treated", Some(Arm::Treated)), ("control", Some(Arm::Control))] {
        let members: Vec<usize> = (0..1500).filter(|&i| arm.is_none_or(|z| world.cohort.arm(i) == z)).collect();
        let mean = |f: &dyn Fn(usize) -> f64| members.iter().map(|&i| f(i)).sum::<f64>() / members.len() as f64;
        let cure = mean(&|i| world.truth[i].cure_effect());
        let time = mean(&|i| world.truth[i].time_effect());
        for (estimand, truth) in [("cure_effect", cure), ("time_effect", time)] {
            let a = find(&averages, estimand, population);
            assert!((a.estimate.unwrap() - truth).abs() < 4.0 * a.se.unwrap(), "{population}: {a:?}, truth {truth}");
        }
    }
}

/// Strong heterogeneity is seen; where the effect is the same for all the test does not reject in this cohort.
#[test]
fn heterogeneity_is_seen_where_it_is() {
    let seen = |scenario: Scenario, seed: u64| {
        let world = simulate(scenario, 1500, false, seed);
        let found = adjusted(&world.cohort);
        Heterogeneity::of_run(&world.cohort, &found)
    };
    let both = seen(Scenario::BothIndependent, 5);
    for varies in [both.cure.expect("cure"), both.time.expect("time")] {
        assert!(
            varies.p().is_some_and(|p| p < 0.01)
                && varies.autoc.estimate > 3.0 * varies.autoc.se
                && varies.slope.estimate > 0.4,
            "{varies:?}"
        );
        let fifths: Vec<f64> = varies.fifths.iter().map(|f| f.estimate).collect();
        assert!(fifths[4] > fifths[0] && varies.fifths.iter().map(|f| f.n_units).sum::<usize>() == 1500, "{fifths:?}");
        assert!(varies.ranking[0].1 > 0.0 && varies.ranking[9].1.abs() < 1e-9);
    }
    let none = seen(Scenario::NoEffect, 5).cure.expect("something is estimated");
    assert!(none.p().is_some_and(|p| p > 0.01) && none.slope.p.is_none(), "{none:?}");
}
