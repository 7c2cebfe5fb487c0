//! Logistic regression: do others agree, does it hold in general, does it say when it cannot.

use dvim::internal::compare::logistic::{self, LogisticFit};
use dvim::internal::compare::{FitOptions, InvalidInput, StopReason};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

const UNITS: &str = include_str!("../../../fixtures/python/compare_units.csv");
const REFERENCE: &str = include_str!("../../../fixtures/python/compare_reference.txt");

fn reference(name: &str) -> Vec<f64> {
    let line = REFERENCE.lines().find(|l| l.split(' ').next() == Some(name)).expect(name);
    line.split(' ').skip(1).map(|v| v.parse().unwrap()).collect()
}

/// Covariates and treatment of the synthetic units.
fn fixture() -> (Vec<f64>, Vec<bool>) {
    let rows: Vec<Vec<f64>> =
        UNITS.lines().skip(1).map(|l| l.split(',').map(|c| c.parse().unwrap()).collect()).collect();
    (rows.iter().flat_map(|r| r[..4].to_vec()).collect(), rows.iter().map(|r| r[4] == 1.0).collect())
}

fn fit(x: &[f64], p: usize, y: &[bool]) -> LogisticFit {
    logistic::fit(x, p, y, &FitOptions::default()).unwrap()
}

#[track_caller]
fn close(found: &[f64], expected: &[f64], relative: f64) {
    assert_eq!(found.len(), expected.len());
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() <= relative * e.abs().max(1e-3), "found {found:?}, expected {expected:?}");
    }
}

#[test]
fn as_in_statsmodels() {
    let (x, y) = fixture();
    let fit = fit(&x, 4, &y);
    let mut all = vec![fit.intercept];
    all.extend(&fit.coefficients);
    close(&all, &reference("logistic_coefficients"), 1e-9);
    close(&fit.standard_errors, &reference("logistic_standard_errors"), 1e-9);
    close(&fit.covariance, &reference("logistic_covariance"), 1e-8);
    close(&[fit.certificate.log_likelihood], &reference("logistic_log_likelihood"), 1e-12);
    // statsmodels finds this one by an optimiser that stops early; ours is the closed form, checked below.
    close(&[fit.null_log_likelihood], &reference("logistic_null_log_likelihood"), 1e-9);
    let share = y.iter().filter(|&&z| z).count() as f64 / y.len() as f64;
    let entropy = share * share.ln() + (1.0 - share) * (1.0 - share).ln();
    close(&[fit.null_log_likelihood], &[y.len() as f64 * entropy], 1e-13);
    assert!(fit.certificate.converged);
}

/// The score equations: fitted probabilities sum to the number treated, overall and along every covariate.
#[test]
fn fitted_probabilities_balance_the_covariates() {
    let (x, y) = fixture();
    let fitted = fit(&x, 4, &y).score().evaluate_all(&x);
    for j in 0..4 {
        let along = |w: &dyn Fn(usize) -> f64| (0..y.len()).map(|i| w(i) * x[i * 4 + j]).sum::<f64>();
        close(&[along(&|i| fitted[i])], &[along(&|i| f64::from(u8::from(y[i])))], 1e-11);
    }
    close(&[fitted.iter().sum()], &[y.iter().filter(|&&z| z).count() as f64], 1e-12);
}

#[test]
fn units_and_row_order_and_labels_do_not_matter() {
    let (x, y) = fixture();
    let plain = fit(&x, 4, &y);
    let (by, from) = ([1e6, 1e-5, 3.0, -2.0], [1e9, 0.5, -7.0, 0.0]);
    let other: Vec<f64> = x.iter().enumerate().map(|(k, v)| v * by[k % 4] + from[k % 4]).collect();
    close(&fit(&other, 4, &y).score().evaluate_all(&other), &plain.score().evaluate_all(&x), 1e-7);
    let turned: Vec<f64> = x.chunks(4).rev().flatten().copied().collect();
    let labels: Vec<bool> = y.iter().rev().copied().collect();
    close(&fit(&turned, 4, &labels).coefficients, &plain.coefficients, 1e-10);
    let opposite: Vec<bool> = y.iter().map(|z| !z).collect();
    let minus: Vec<f64> = plain.coefficients.iter().map(|b| -b).collect();
    close(&fit(&x, 4, &opposite).coefficients, &minus, 1e-10);
}

#[test]
fn separation_is_said_and_penalised() {
    let x: Vec<f64> = (0..20).map(f64::from).collect();
    let complete: Vec<bool> = (0..20).map(|i| i >= 12).collect();
    let fitted = fit(&x, 1, &complete);
    assert_eq!(fitted.certificate.stop_reason, StopReason::Separation);
    assert!(!fitted.certificate.converged && fitted.certificate.ridge == 0.16);
    assert!(fitted.coefficients[0] > 0.0 && fitted.coefficients[0] < 10.0);
    // Quasi-separation: x = 1 has treated units only, x = 0 has both.
    let x: Vec<f64> = (0..20).map(|i| f64::from(u8::from(i < 5))).collect();
    let quasi: Vec<bool> = (0..20).map(|i| i < 5 || i % 2 == 0).collect();
    assert_eq!(fit(&x, 1, &quasi).certificate.stop_reason, StopReason::Separation);
}

#[test]
fn one_outcome_is_a_result_with_a_reason() {
    let fitted = fit(&[1.0, 2.0, 3.0], 1, &[true; 3]);
    assert_eq!(fitted.certificate.stop_reason, StopReason::NoInformation);
    assert_eq!(fitted.coefficients, [0.0]);
    assert!((fitted.intercept - 7.0_f64.ln()).abs() < 1e-15);
    assert_eq!(logistic::fit(&[], 1, &[], &FitOptions::default()), Err(InvalidInput::Empty));
}

fn cases(cases: u32) -> ProptestConfig {
    let failure_persistence = Some(Box::new(FileFailurePersistence::WithSource("regressions")) as _);
    ProptestConfig { cases, failure_persistence, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn any_finite_input_gives_a_sound_result(
        rows in prop::collection::vec((prop::collection::vec(-3_i32..4, 3), any::<bool>()), 1..25),
        scale in prop::sample::select(vec![1e-6, 1.0, 1e6]),
    ) {
        let x: Vec<f64> = rows.iter().flat_map(|r| r.0.iter().map(|&v| f64::from(v) * scale)).collect();
        let y: Vec<bool> = rows.iter().map(|r| r.1).collect();
        let fitted = fit(&x, 3, &y);
        prop_assert!(fitted.score().evaluate_all(&x).iter().all(|p| (0.0..=1.0).contains(p)));
        prop_assert!(fitted.certificate.log_likelihood <= 0.0);
        prop_assert!(
            !matches!(fitted.certificate.stop_reason, StopReason::MaxIterations | StopReason::NoProgress),
            "{:?}", fitted.certificate
        );
    }

    /// With one covariate separation can be read off: the outcomes do not overlap, but for one shared value.
    #[test]
    fn separation_is_said_exactly_when_there_is_one(rows in prop::collection::vec((-3_i32..4, any::<bool>()), 2..14)) {
        let side = |y: bool| rows.iter().filter(move |r| r.1 == y).map(|r| r.0);
        let (Some(low0), Some(high0)) = (side(false).min(), side(false).max()) else { return Ok(()) };
        let (Some(low1), Some(high1)) = (side(true).min(), side(true).max()) else { return Ok(()) };
        let constant = low0.min(low1) == high0.max(high1);
        let separated = !constant && (high0 <= low1 || high1 <= low0);
        let x: Vec<f64> = rows.iter().map(|r| f64::from(r.0)).collect();
        let y: Vec<bool> = rows.iter().map(|r| r.1).collect();
        let expected = if separated { StopReason::Separation } else { StopReason::Converged };
        prop_assert_eq!(fit(&x, 1, &y).certificate.stop_reason, expected);
    }
}
