//! The generalised gamma family in the two-arm model and in the adjusted estimator.

use dvim::internal::analysis;
use dvim::internal::cohort::{Arm, Cohort, Units};
use dvim::internal::joint::{Family, JointOptions, Terms, TwoArms, describe, gamma_shape};
use dvim::internal::options::AdjustedOptions;
use dvim::internal::options::{Estimator, Options};
use dvim::internal::outcome::Extras;
use dvim::internal::table::Ids;
use dvim::internal::watch::Unwatched;

const HORIZON: f64 = 400.0;

/// Uniform numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 + 1e-17
    }
}

/// Times `exp(μ + σ ln(G/a)/Q)`, Q = ±1/√a, G the sum of `a` exponential variables; some cured, some lost. Covariates
/// are uniform with variance one.
fn world(n: usize, a: usize, sign: f64, seed: u64) -> Units {
    let mut r = Random(seed);
    let q = sign / (a as f64).sqrt();
    let (mut time, mut event, mut arm, mut covariates) = (vec![], vec![], vec![], vec![]);
    for i in 0..n {
        let x: Vec<f64> = (0..3).map(|_| 12f64.sqrt() * (r.next() - 0.5)).collect();
        let treated = i % 2 == 0;
        let cured = r.next() < 1.0 / (1.0 + (-(-0.6 + 0.5 * x[0] + if treated { 0.4 } else { 0.0 })).exp());
        let mu = 4.2 + 0.4 * x[1] + if treated { 0.3 } else { 0.0 };
        let t = loop {
            let g: f64 = (0..a).map(|_| -r.next().ln()).sum();
            let t = (mu + 0.7 * (g / a as f64).ln() / q).exp();
            if t < HORIZON {
                break t;
            }
        };
        let t = if cured { HORIZON } else { t };
        let censored = HORIZON * 1.6 * r.next();
        time.push(t.min(censored).min(HORIZON));
        event.push(t <= censored && t < HORIZON);
        arm.push(if treated { Arm::Treated } else { Arm::Control });
        covariates.extend(x);
    }
    let names = (1..=3).map(|j| format!("x{j}")).collect();
    let labels = ["no".to_string(), "yes".to_string()];
    Units { ids: Ids::Rows(n), time, event, arm, covariates, names, labels, extras: Extras::default() }
}

fn with<T>(units: &Units, f: impl Fn(&TwoArms<'_>) -> T) -> T {
    let treated: Vec<bool> = units.arm.iter().map(|z| *z == Arm::Treated).collect();
    f(&TwoArms {
        time: &units.time,
        event: &units.event,
        treated: &treated,
        covariates: &units.covariates,
        n_covariates: 3,
        horizon: HORIZON,
    })
}

#[test]
fn shapes_are_found_and_models_recovered() {
    for (a, sign, tolerance) in [(4, 1.0, 20), (1, -1.0, 30)] {
        let units = world(4000, a, sign, 7);
        let truth = (100.0 * sign / (a as f64).sqrt()) as i16;
        let cohort = Cohort::from_parts(units.clone(), None, HORIZON).expect("sound parts");
        let everybody: Vec<u32> = (0..4000).collect();
        let found =
            gamma_shape(&cohort, &everybody, cohort.all_covariates(), None, &JointOptions::default()).expect("a shape");
        assert!((found.hundredths - truth).abs() <= tolerance && found.gain > 2.0, "{truth}: {found:?}");
        let of = |family: Family| {
            let options = JointOptions { family, rounds: 0, ..JointOptions::default() };
            with(&units, |d| describe(d, &Terms::new(d.covariates, 3), &options)).expect("a fit")
        };
        let model = of(Family::GeneralisedGamma(truth));
        assert!(model.certificate.converged(), "{:?}", model.certificate);
        let (intercept, slopes) = model.line(dvim::internal::estimand::Estimand::Time, Arm::Control);
        assert!((intercept - 4.2).abs() < 0.12 && (slopes[1] - 0.4).abs() < 0.08, "{intercept} {slopes:?}");
        let p = model.predict(&[0.0; 3]).control;
        assert!((p.log_sigma.exp() - 0.7).abs() < 0.08, "{}", p.log_sigma.exp());
        assert!(model.log_likelihood > of(Family::LogNormal).log_likelihood + 4.0);
        assert!((of(Family::GeneralisedGamma(100)).log_likelihood - of(Family::Weibull).log_likelihood).abs() < 1e-5);
        assert_eq!(of(Family::GeneralisedGamma(0)).log_likelihood, of(Family::LogNormal).log_likelihood);
    }
}

#[test]
fn the_adjusted_estimator_takes_it_where_it_is_better_or_named() {
    let cohort = Cohort::from_parts(world(1500, 1, -1.0, 3), None, HORIZON).expect("sound parts");
    let family = |family: Option<Family>| {
        let adjusted = AdjustedOptions { splits: Some(3), family, ..AdjustedOptions::default() };
        let options = Options { estimator: Estimator::Adjusted(adjusted), ..Options::default() };
        let found = analysis::run(&cohort, &options, &Unwatched).expect("a run");
        assert!(found.effects.iter().all(|e| e.cure().is_finite() && e.time().is_some_and(f64::is_finite)));
        found.fit.description.cross_fit.expect("adjusted").family
    };
    assert!(matches!(family(None), Family::GeneralisedGamma(q) if q < -40));
    assert!(matches!(family(Some(Family::GeneralisedGamma(0))), Family::GeneralisedGamma(q) if q < -40));
    assert_eq!(family(Some(Family::GeneralisedGamma(-70))), Family::GeneralisedGamma(-70));
}
