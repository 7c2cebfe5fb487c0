//! Does the method work? Its error against the truth, in the paper's own study (raw covariates,
//! n = 20,000, 35 % training, K = 50), must be what two independent prototypes measured.

use dvim::internal::analysis;
use dvim::internal::arm::Arm;
use dvim::internal::metric::Scale;
use dvim::internal::options::Options;
use dvim::internal::simulate::{Scenario, draw, simulate};
use dvim::internal::watch::Unwatched;

/// Mean absolute errors of both effects (cure × 100) for one draw of a scenario.
fn errors(scenario: Scenario, seed: u64) -> (f64, f64) {
    let world = simulate(scenario, 20_000, false, seed);
    let options = Options { scale: Scale::None, seed, ..Options::paper() };
    let found = analysis::run(&world.cohort, &options, &Unwatched).expect("a sound cohort");
    let (mut cure, mut time, mut n_time) = (0.0, 0.0, 0.0);
    for (&i, e) in found.units.iter().zip(&found.effects) {
        let truth = &world.truth[i as usize];
        cure += (e.cure() - truth.cure_effect()).abs();
        if let Some(t) = e.time() {
            time += (t - truth.time_effect()).abs();
            n_time += 1.0;
        }
    }
    (100.0 * cure / found.effects.len() as f64, time / n_time)
}

/// FINDINGS.md section 1, row "reproduced" under "MCM KNN". Over data sets the paper's SD is 2.3 to
/// 4 % of the mean for cure and 3.5 to 4.5 % for time, so the mean of three draws has one of at most
/// 2.6 %: a band of 9 % is more than three of them.
#[test]
fn the_error_is_that_of_the_papers_study() {
    let expected = [(8.0, 27.2), (7.7, 34.1), (8.2, 32.4), (8.6, 35.4)];
    for (scenario, (cure, time)) in Scenario::PAPER.into_iter().zip(expected) {
        let draws: Vec<(f64, f64)> = (1..=3).map(|seed| errors(scenario, seed)).collect();
        let mean = |f: fn(&(f64, f64)) -> f64| draws.iter().map(f).sum::<f64>() / draws.len() as f64;
        let (c, t) = (mean(|d| d.0), mean(|d| d.1));
        assert!((c / cure - 1.0).abs() < 0.09, "{}: cure error {c:.2}, expected {cure}", scenario.name());
        assert!((t / time - 1.0).abs() < 0.09, "{}: time error {t:.2}, expected {time}", scenario.name());
    }
}

/// The simulator draws what it says: shares and means over many units agree with the truth.
#[test]
fn the_draws_agree_with_their_truth() {
    for scenario in Scenario::PAPER.into_iter().chain(Scenario::WORLDS) {
        // The truth of some worlds is a mean over 400 points for each unit.
        let n = if Scenario::PAPER.contains(&scenario) { 40_000 } else { 10_000 };
        let world = simulate(scenario, n, false, 11);
        for arm in Arm::BOTH {
            let truth = world.truth.iter().map(|t| t.arms[arm]);
            let n = world.truth.len() as f64;
            let cured = truth.clone().filter(|t| t.event_time.is_infinite()).count() as f64 / n;
            let expected = truth.clone().map(|t| t.cure_probability).sum::<f64>() / n;
            assert!(
                (cured - expected).abs() < 4.0 * 0.5 / n.sqrt(),
                "{}: cured {cured}, expected {expected}",
                scenario.name()
            );
            let (mut time, mut squares, mut mean, mut n) = (0.0, 0.0, 0.0, 0.0);
            for t in truth.filter(|t| t.event_time.is_finite()) {
                assert!(t.event_time > 0.0 && t.event_time < scenario.horizon());
                time += t.event_time - t.mean_event_time;
                squares += (t.event_time - t.mean_event_time).powi(2);
                mean += t.mean_event_time;
                n += 1.0;
            }
            let sd = f64::sqrt(squares / n);
            assert!(sd < 250.0, "{}: {sd}", scenario.name());
            assert!(
                (time / n).abs() < 4.0 * sd / f64::sqrt(n),
                "{}: {} from a mean of {}",
                scenario.name(),
                time / n,
                mean / n
            );
        }
    }
}

/// Twice the same seed, and a longer cohort: the same units.
#[test]
fn a_unit_does_not_depend_on_how_many_there_are() {
    let (short, long) = (draw(Scenario::CureOnly, 50, true, 3), draw(Scenario::CureOnly, 500, true, 3));
    let p = short.units.names.len();
    assert_eq!(short.units.covariates, long.units.covariates[..50 * p]);
    assert_eq!((&short.units.time[..], &short.units.event[..]), (&long.units.time[..50], &long.units.event[..50]));
    assert_eq!(short.truth, long.truth[..50]);
}
