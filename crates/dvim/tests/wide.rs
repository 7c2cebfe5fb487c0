//! More covariates than units.

use dvim::internal::analysis::{self, Analysis};
use dvim::internal::cure::{Flag, StopReason};
use dvim::internal::metric::Scale;
use dvim::internal::options::AdjustedOptions;
use dvim::internal::options::{Estimator, Options};
use dvim::internal::simulate::{Scenario, Simulated, simulate};
use dvim::internal::watch::Unwatched;

fn errors(world: &Simulated, found: &Analysis) -> [f64; 2] {
    let n = found.units.len() as f64;
    let of = |f: &dyn Fn(usize, usize) -> f64| {
        found.units.iter().enumerate().map(|(q, &i)| f(q, i as usize).abs()).sum::<f64>() / n
    };
    [
        of(&|q, i| found.effects[q].cure() - world.truth[i].cure_effect()),
        of(&|q, i| found.effects[q].time().unwrap_or(0.0) - world.truth[i].time_effect()),
    ]
}

/// Both estimators answer, say what they left out or penalised, and the adjusted one finds what matters and is nearer
/// the truth.
#[test]
fn more_covariates_than_units() {
    let world = simulate(Scenario::BothOverlap, 600, false, 5).widened(700, 7);
    let cohort = &world.cohort;
    let paper = Options { scale: Scale::Standard, ..Options::paper() };
    let by_paper = analysis::run(cohort, &paper, &Unwatched).unwrap();
    for model in by_paper.fit.description.models.each_ref() {
        let certificate = &model.certificate;
        assert!(certificate.converged && certificate.stop_reason == StopReason::PenalisedMaximum);
        let n_units = model.n_units;
        assert!(certificate.flags.contains(&Flag::MoreCovariatesThanUnits { n_covariates: 700, n_units }));
        assert!(model.covariance.is_none() && model.cure.standard_errors.is_none());
    }
    let options = Options { estimator: Estimator::Adjusted(AdjustedOptions::default()), ..Options::default() };
    let adjusted = analysis::run(cohort, &options, &Unwatched).unwrap();
    assert_eq!(adjusted.units.len(), 600);
    for model in adjusted.fit.description.models.each_ref() {
        let left_out = model.certificate.flags.iter().find_map(|f| match f {
            Flag::CovariatesLeftOut { n_covariates } => Some(*n_covariates),
            _ => None,
        });
        let kept = model.cure.coefficients.iter().filter(|b| **b != 0.0).count();
        assert_eq!(left_out, Some(700 - kept));
        assert!(kept > 0 && 10 * kept <= model.n_events, "{kept} of {} events", model.n_events);
        assert!(model.covariance.is_none() && model.cure.standard_errors.is_some());
    }
    // Heterogeneity of cure is in x18 and x20, of time in x2, x15, x17 and x18.
    let weights = &adjusted.fit.description.metrics.cure.weights;
    let mut order: Vec<usize> = (0..700).collect();
    order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
    assert!(order[..2].contains(&17) && order[..2].contains(&19), "{:?}", &order[..6]);
    let (a, b) = (errors(&world, &adjusted), errors(&world, &by_paper));
    assert!(a[0] < b[0] && a[1] < b[1], "adjusted {a:?}, paper {b:?}");
}
