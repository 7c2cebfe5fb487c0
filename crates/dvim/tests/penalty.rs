//! Ridge and elastic net of the two-arm model.

use dvim::internal::analysis;
use dvim::internal::arm::Arm;
use dvim::internal::cure::{self, ArmData, FitOptions};
use dvim::internal::estimand::{ByEstimand, Estimand};
use dvim::internal::joint::{JointModel, JointOptions, Penalty, Terms, TwoArms, describe};
use dvim::internal::options::{AdjustedOptions, STRENGTHS};
use dvim::internal::options::{Estimator, Options};
use dvim::internal::simulate::{Scenario, simulate};
use dvim::internal::watch::Unwatched;

const HORIZON: f64 = 800.0;

struct Data {
    time: Vec<f64>,
    event: Vec<bool>,
    treated: Vec<bool>,
    x: Vec<f64>,
    p: usize,
}

impl Data {
    /// The treated of a scenario with standardised covariates, taken as both arms where `twice`.
    fn new(n: usize, seed: u64, twice: bool) -> Data {
        let cohort = simulate(Scenario::BothOverlap, n, false, seed).cohort;
        let units: Vec<usize> = (0..n).filter(|&i| !twice || cohort.arm(i) == Arm::Treated).collect();
        let p = cohort.n_covariates();
        let mut x: Vec<f64> = units.iter().flat_map(|&i| cohort.covariates(i)).copied().collect();
        let m = units.len() as f64;
        for j in 0..p {
            let mean = x.iter().skip(j).step_by(p).sum::<f64>() / m;
            let sd = (x.iter().skip(j).step_by(p).map(|v| (v - mean).powi(2)).sum::<f64>() / m).sqrt();
            x.iter_mut().skip(j).step_by(p).for_each(|v| *v = (*v - mean) / sd);
        }
        let mut time: Vec<f64> = units.iter().map(|&i| cohort.time(i)).collect();
        let mut event: Vec<bool> = units.iter().map(|&i| cohort.event(i)).collect();
        let mut treated: Vec<bool> = units.iter().map(|&i| cohort.arm(i) == Arm::Treated).collect();
        if twice {
            treated.fill(false);
            treated.extend(vec![true; units.len()]);
            time.extend(time.clone());
            event.extend(event.clone());
            x.extend(x.clone());
        }
        Data { time, event, treated, x, p }
    }

    fn fit(&self, options: &JointOptions) -> JointModel {
        let data = TwoArms {
            time: &self.time,
            event: &self.event,
            treated: &self.treated,
            covariates: &self.x,
            n_covariates: self.p,
            horizon: HORIZON,
        };
        describe(&data, &Terms::new(&self.x, self.p), options).expect("a fit")
    }
}

fn net(mixing: f64, [cure, time]: [f64; 2]) -> JointOptions {
    let strengths = ByEstimand { cure, time };
    JointOptions { penalty: Penalty::ElasticNet { mixing, strengths }, rounds: 0, ..JointOptions::default() }
}

/// Two arms of the same units: own slopes o and common ones c = 2o cost λ/2 (2o² + c²) = λ/3 θ², shared by two arms. So
/// each arm is the cure model of one arm with a third of the ridge, whose optimiser is another.
#[test]
fn ridge_is_that_of_the_cure_model_of_one_arm() {
    let data = Data::new(600, 5, true);
    let n = data.time.len() / 2;
    let (cure, time) = (30.0, 12.0);
    let joint = data.fit(&net(0.0, [cure, time]));
    assert!(joint.certificate.converged(), "{:?}", joint.certificate);
    let arm = ArmData {
        time: &data.time[..n],
        event: &data.event[..n],
        covariates: &data.x[..n * data.p],
        n_covariates: data.p,
        horizon: HORIZON,
        extras: None,
    };
    let options = FitOptions { cure_ridge: cure / 3.0, latency_ridge: time / 3.0, ..FitOptions::default() };
    let single = cure::describe(&arm, &options).expect("a fit");
    for arm in Arm::BOTH {
        for (part, expected) in [(Estimand::Cure, &single.cure), (Estimand::Time, &single.latency)] {
            let (_, slopes) = joint.line(part, arm);
            for (found, expected) in slopes.iter().zip(&expected.coefficients) {
                assert!((found - expected).abs() < 2e-3, "{part:?} {arm:?}: {found} {expected}");
            }
        }
    }
}

/// More of the norm and more strength leave fewer slopes; each part has its own strength.
#[test]
fn an_elastic_net_sets_slopes_to_zero() {
    let data = Data::new(1500, 2, false);
    let left = |options: &JointOptions| {
        let model = data.fit(options);
        assert!(model.certificate.converged(), "{:?}", model.certificate);
        Estimand::BOTH.map(|part| {
            let (_, slopes) = model.line(part, Arm::Treated);
            slopes.iter().filter(|b| b.abs() > 1e-3).count()
        })
    };
    let [cure, time] = left(&net(0.9, [20.0, 20.0]));
    assert!((1..15).contains(&cure) && (1..15).contains(&time), "{cure} {time}");
    let [cure_alone, time_kept] = left(&net(0.9, [2000.0, 20.0]));
    assert_eq!(cure_alone, 0);
    assert!(time_kept >= time - 2);
    assert_eq!(left(&net(0.0, [20.0, 20.0])), [20, 20], "ridge keeps all");
}

/// Slopes of one group come and go together.
#[test]
fn dummies_of_a_category_are_penalised_together() {
    let data = Data::new(1200, 4, false);
    let mut groups: Vec<usize> = (0..20).collect();
    // The 15th acts on the time; two covariates that do not are put with it, and two others with each other.
    (groups[14], groups[3], groups[4]) = (100, 100, 100);
    (groups[5], groups[6]) = (101, 101);
    let options = JointOptions { groups, ..net(1.0, [25.0, 25.0]) };
    let (_, slopes) = data.fit(&options).line(Estimand::Time, Arm::Treated);
    assert!(slopes[14].abs() > 0.05 && slopes[3].abs() > 1e-4 && slopes[4].abs() > 1e-4, "{slopes:?}");
    assert_eq!(slopes[5].abs() > 1e-3, slopes[6].abs() > 1e-3, "{slopes:?}");
    let (_, apart) = data.fit(&net(1.0, [25.0, 25.0])).line(Estimand::Time, Arm::Treated);
    assert!(apart[14].abs() > 0.05 && apart[3].abs() + apart[4].abs() < 0.02, "{apart:?}");
}

#[test]
fn the_adjusted_estimator_chooses_the_strengths() {
    let world = simulate(Scenario::BothOverlap, 600, false, 3);
    let adjusted = AdjustedOptions { splits: Some(3), elastic_net: Some(0.5), ..AdjustedOptions::default() };
    let options = Options { estimator: Estimator::Adjusted(adjusted.clone()), ..Options::default() };
    let found = analysis::run(&world.cohort, &options, &Unwatched).expect("a run");
    let told = found.fit.description.cross_fit.as_ref().expect("adjusted");
    let [cure, time] = told.strengths.expect("chosen").into_array();
    assert!(STRENGTHS.contains(&cure) && STRENGTHS.contains(&time));
    let error = |found: &analysis::Analysis| {
        let of =
            |(&i, e): (&u32, &dvim::internal::effect::Effect)| (e.cure() - world.truth[i as usize].cure_effect()).abs();
        found.units.iter().zip(&found.effects).map(of).sum::<f64>() / found.units.len() as f64
    };
    let paper = Options { group_size: 30, ..Options::paper() };
    let paper = analysis::run(&world.cohort, &paper, &Unwatched).expect("a run");
    assert!(error(&found) < error(&paper), "{} {}", error(&found), error(&paper));
    let wrong = AdjustedOptions { elastic_net: Some(1.5), ..adjusted };
    let options = Options { estimator: Estimator::Adjusted(wrong), ..Options::default() };
    assert!(analysis::run(&world.cohort, &options, &Unwatched).is_err());
}
