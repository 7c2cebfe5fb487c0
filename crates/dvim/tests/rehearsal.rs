//! Rehearsals: known truth, the same bits, and what cannot be rehearsed.

use dvim::internal::estimand::Estimand;
use dvim::internal::rehearsal::{Rehearsal, World};
use dvim::{Estimator, Options, Scenario, Unwatched, run, simulate};

#[test]
fn a_rehearsal_knows_the_truth_and_its_bits() {
    let world = simulate(Scenario::BothOverlap, 400, false, 3);
    let cohort = &world.cohort;
    let found = run(cohort, &Options::default(), &Unwatched).expect("a sound cohort");
    let once = Rehearsal::of(cohort, &found, 6, &Unwatched).expect("rehearsed");
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let again = one_thread.install(|| Rehearsal::of(cohort, &found, 6, &Unwatched)).expect("rehearsed");
    assert_eq!(once, again, "the same bits on any number of threads");
    assert_eq!(once.each.iter().filter(|r| r.world == World::Learned).count(), 3);
    // In the world that was learned the truth is the mean of the patients' own effects.
    let mean = found.effects.iter().map(|e| e.cure()).sum::<f64>() / found.effects.len() as f64;
    for r in &once.each {
        let cure = r.effects.cure.expect("an average");
        assert!((cure.truth - mean).abs() < if r.world == World::Learned { 1e-12 } else { 0.2 });
        assert!((0.0..=1.0).contains(&cure.held) && cure.low < cure.high && cure.error > 0.0);
    }
    // Estimates are near the truth, and not equal to what the run said.
    for side in Estimand::BOTH {
        let over = once.over(side, None).expect("averages");
        assert_eq!(over.n, 6);
        assert!(over.rmse > 0.0 && over.patients_held > 0.6, "{over:?}");
    }
    assert!(once.over(Estimand::Cure, None).expect("averages").rmse < 0.2);
}

#[test]
fn the_paper_s_estimator_is_not_rehearsed() {
    let world = simulate(Scenario::BothOverlap, 400, false, 3);
    let options = Options { estimator: Estimator::Paper, ..Options::default() };
    let found = run(&world.cohort, &options, &Unwatched).expect("a sound cohort");
    let refused = Rehearsal::of(&world.cohort, &found, 2, &Unwatched).expect_err("there are no curves to draw from");
    assert!(refused.to_string().contains("adjusted"), "{refused}");
}
