//! What a face is told of a long run: never more than all of it.

use dvim::internal::analysis;
use dvim::internal::options::{AdjustedOptions, Estimator, Options};
use dvim::internal::simulate::{Scenario, simulate};
use dvim::internal::watch::{Unwatched, Watch};
use std::sync::Mutex;

/// Everything that was told: stage, done, total.
#[derive(Default)]
struct Told(Mutex<Vec<(&'static str, usize, usize)>>);

impl Watch for Told {
    fn progress(&self, stage: &'static str, done: usize, total: usize) {
        self.0.lock().expect("no panic").push((stage, done, total));
    }
}

/// New patients beyond one block (65,536): the total is theirs, not that of the block.
#[test]
fn progress_over_many_new_patients_ends_at_all_of_them() {
    let cohort = simulate(Scenario::CureOnly, 200, false, 1).cohort;
    let adjusted = AdjustedOptions { splits: Some(2), folds: 2, group_size: Some(10), ..AdjustedOptions::default() };
    let n = 70_000;
    let rows: Vec<f64> = cohort.all_covariates().iter().copied().cycle().take(n * cohort.n_covariates()).collect();
    for estimator in [Estimator::Paper, Estimator::Adjusted(adjusted)] {
        let options = Options { group_size: 10, estimator: estimator.clone(), ..Options::default() };
        let fit = analysis::run(&cohort, &options, &Unwatched).expect("a run").fit;
        let told = Told::default();
        let found = fit.estimate_under_constraints(&cohort, &rows, &vec![None; n], &told).expect("effects");
        assert_eq!(found.len(), n);
        let told = told.0.into_inner().expect("no panic");
        let matching: Vec<(usize, usize)> =
            told.iter().filter(|(stage, ..)| *stage == "matching").map(|&(_, done, total)| (done, total)).collect();
        assert!(matching.len() >= 3, "{estimator:?}: two blocks and an end, not {matching:?}");
        assert!(matching.iter().all(|&(done, total)| done <= total && total == n), "{estimator:?}: {matching:?}");
        assert!(matching.windows(2).all(|w| w[0].0 < w[1].0), "{estimator:?}: {matching:?}");
        assert_eq!(matching.last(), Some(&(n, n)), "{estimator:?}");
    }
}
