//! Confounding that no linear model sees: the levels of the arms are set by inverse propensities.

use dvim::internal::analysis;
use dvim::internal::cohort::{Arm, Cohort, Units};
use dvim::internal::options::{AdjustedOptions, Estimator, Learners, Options};
use dvim::internal::outcome::Extras;
use dvim::internal::table::Ids;
use dvim::internal::watch::Unwatched;

struct Draws(u64);

impl Draws {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
}

/// Patients inside a ring are treated more often and are event-free more often. Treatment does nothing.
fn ring(n: usize, seed: u64, confounded: bool) -> Cohort {
    let mut d = Draws(seed);
    for _ in 0..20 {
        d.uniform();
    }
    let (mut time, mut event, mut arm, mut covariates) = (vec![], vec![], vec![], vec![]);
    for _ in 0..n {
        let x: Vec<f64> = (0..4).map(|_| 2.0 * d.uniform() - 1.0).collect();
        let distance = (x[0] * x[0] + x[1] * x[1]).sqrt();
        let inside = (0.4..0.85).contains(&distance);
        let treated = match (confounded, inside) {
            (false, _) => 0.5,
            (true, true) => 0.85,
            (true, false) => 0.15,
        };
        arm.push(if d.uniform() < treated { Arm::Treated } else { Arm::Control });
        let has_event = d.uniform() > if inside { 0.75 } else { 0.25 };
        time.push(if has_event { 10.0 * d.uniform() } else { 10.0 });
        event.push(has_event);
        covariates.extend(x);
    }
    let units = Units {
        ids: Ids::Integers((1..=n as i64).collect()),
        names: (0..4).map(|j| format!("x{j}")).collect(),
        labels: ["0".into(), "1".into()],
        time,
        event,
        arm,
        covariates,
        extras: Extras::default(),
    };
    Cohort::from_parts(units, None, 10.0).expect("sound parts")
}

fn mean_effect(cohort: &Cohort, learners: Learners) -> f64 {
    let adjusted = AdjustedOptions { learners, splits: Some(5), folds: 5, ..AdjustedOptions::default() };
    let options = Options { estimator: Estimator::Adjusted(adjusted), ..Options::default() };
    let found = analysis::run(cohort, &options, &Unwatched).expect("a sound cohort");
    found.effects.iter().map(|e| e.cure()).sum::<f64>() / found.effects.len() as f64
}

#[test]
fn patients_inside_a_ring_are_not_taken_for_an_effect() {
    let cohort = ring(3000, 7, true);
    let (with, without) = (mean_effect(&cohort, Learners::All), mean_effect(&cohort, Learners::Cure));
    assert!(without > 0.08, "the cure model alone takes the ring for an effect: {without}");
    assert!(with.abs() < 0.8 * without, "{with} against {without}");
}

#[test]
fn a_trial_has_no_levels() {
    let cohort = ring(1500, 8, false);
    let adjusted = AdjustedOptions { splits: Some(5), folds: 5, ..AdjustedOptions::default() };
    let options = Options { estimator: Estimator::Adjusted(adjusted), ..Options::default() };
    let found = analysis::run(&cohort, &options, &Unwatched).expect("a sound cohort");
    let correctors = found.fit.folds().filter_map(|f| f.corrector.as_ref());
    let levels: Vec<_> = correctors.map(|c| c.model.predictor.beside.level).collect();
    assert!(!levels.is_empty() && levels.iter().all(|l| *l == Default::default()), "{levels:?}");
}

/// Whether a patient is inside a ring is no line of the covariates: trees see it, and have a say in the cure part of
/// every fold. Its effect on the time is none, and theirs is little there.
#[test]
fn boosted_hazards_have_a_share_where_nothing_is_a_line() {
    let cohort = ring(2000, 9, false);
    let adjusted = AdjustedOptions { splits: Some(5), folds: 5, ..AdjustedOptions::default() };
    let options = Options { estimator: Estimator::Adjusted(adjusted), ..Options::default() };
    let found = analysis::run(&cohort, &options, &Unwatched).expect("a sound cohort");
    let correctors = found.fit.folds().filter_map(|f| f.corrector.as_ref());
    let shares: Vec<_> = correctors.map(|c| c.model.predictor.beside.share).collect();
    assert!(shares.len() == 5 && shares.iter().all(|s| s.cure.boosted >= 0.25), "{shares:?}");
}
