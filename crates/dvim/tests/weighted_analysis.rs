//! Case weights, clusters, delayed entry and other causes in the cure model, the effects and the averages.

#[path = "cure_naive.rs"]
mod naive;

use dvim::internal::analysis;
use dvim::internal::audit::Audit;
use dvim::internal::cohort::{Arm, Cohort, Units};
use dvim::internal::cure::{self, ArmData, CureModel};
use dvim::internal::options::Options;
use dvim::internal::outcome::Extras;
use dvim::internal::simulate::{Scenario, Truth, simulate};
use dvim::internal::survival::SurvivalCurve;
use dvim::internal::table::Ids;
use dvim::internal::watch::Unwatched;
use naive::Random;

fn fit(arm: &naive::Arm, extras: &Extras) -> CureModel {
    let data = ArmData { extras: Some(extras), ..arm.view() };
    let model = cure::describe(&data, &cure::FitOptions::default()).expect("a model");
    assert!(model.certificate.converged && model.certificate.penalty.is_none(), "{:?}", model.certificate);
    model
}

fn arm(n: usize, seed: u64) -> naive::Arm {
    naive::simulate(n, &naive::paper_like(4), 800.0, 1.5, &mut Random(seed))
}

fn close(a: &[f64], b: &[f64], slack: f64) {
    for (k, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() < slack * (1.0 + b.abs()), "parameter {k}: {a} {b}");
    }
}

#[test]
fn whole_weights_give_the_coefficients_of_copies() {
    let one = arm(600, 3);
    let mut random = Random(5);
    let weight: Vec<f64> = (0..600).map(|_| 1.0 + random.below(3) as f64).collect();
    let mut copies = naive::Arm { time: vec![], event: vec![], covariates: vec![], ..one.clone() };
    let mut cluster = vec![];
    for (i, w) in weight.iter().enumerate() {
        for _ in 0..*w as usize {
            copies.time.push(one.time[i]);
            copies.event.push(one.event[i]);
            copies.covariates.extend_from_slice(one.row(i));
            cluster.push(i as u32);
        }
    }
    let weighted = fit(&one, &Extras { weight: Some(weight.clone()), ..Extras::default() });
    // Copies of a unit are one cluster: then the sandwich is the same too.
    let copied = fit(&copies, &Extras { cluster: Some(cluster), ..Extras::default() });
    close(&naive::parameters(&weighted), &naive::parameters(&copied), 1e-6);
    close(&weighted.covariance.clone().unwrap(), &copied.covariance.clone().unwrap(), 1e-6);
    // Weights that are all alike change nothing but the kind of the covariance.
    let plain = fit(&one, &Extras::default());
    let sevens = fit(&one, &Extras { weight: Some(vec![7.0; 600]), ..Extras::default() });
    close(&naive::parameters(&sevens), &naive::parameters(&plain), 1e-7);
    let (robust, usual) = (sevens.cure.intercept_se.unwrap(), plain.cure.intercept_se.unwrap());
    assert!((robust / usual - 1.0).abs() < 0.3, "the model is right, so both are about the same: {robust} {usual}");
}

#[test]
fn late_entry_divides_by_survival_at_entry() {
    let whole = arm(3000, 7);
    let mut random = Random(11);
    let entry: Vec<f64> = (0..3000).map(|_| if random.chance(0.6) { 150.0 * random.uniform() } else { 0.0 }).collect();
    let kept: Vec<usize> = (0..3000).filter(|&i| whole.time[i] > entry[i] + 1e-3).collect();
    assert!(kept.len() < 2700, "some must have had their event before entry: {}", kept.len());
    let late = naive::Arm {
        time: kept.iter().map(|&i| whole.time[i]).collect(),
        event: kept.iter().map(|&i| whole.event[i]).collect(),
        covariates: kept.iter().flat_map(|&i| whole.row(i).to_vec()).collect(),
        ..whole.clone()
    };
    let entry: Vec<f64> = kept.iter().map(|&i| entry[i]).collect();
    let model = fit(&late, &Extras { entry: Some(entry.clone()), ..Extras::default() });
    // Its log-likelihood, written plainly.
    let theta = naive::parameters(&model);
    let given: f64 = (0..late.n_units()).map(|i| model.survival(late.row(i), entry[i]).ln()).sum();
    let expected = naive::log_likelihood(&late, &theta) - given;
    assert!((model.log_likelihood - expected).abs() < 1e-6 * expected.abs(), "{} {expected}", model.log_likelihood);
    // Nothing near is better.
    for j in 0..theta.len() {
        for step in [-1e-3, 1e-3] {
            let mut moved = theta.clone();
            moved[j] += step;
            let mut other = model.clone();
            let p = model.n_covariates();
            match j {
                0 => other.cure_at_center += step,
                j if j <= p => other.cure.coefficients[j - 1] += step,
                j if j == p + 1 => other.latency_at_center += step,
                j if j <= 2 * p + 1 => other.latency.coefficients[j - p - 2] += step,
                _ => other.log_sigma += step,
            }
            // A slope moves the line around the centre, the intercept of `naive` around zero: move both alike.
            if (1..=p).contains(&j) {
                other.cure_at_center += step * model.center[j - 1];
            } else if (p + 2..=2 * p + 1).contains(&j) {
                other.latency_at_center += step * model.center[j - p - 2];
            }
            let given: f64 = (0..late.n_units()).map(|i| other.survival(late.row(i), entry[i]).ln()).sum();
            assert!(naive::log_likelihood(&late, &moved) - given < expected, "parameter {j} by {step}");
        }
    }
    // The truth is within reach, and farther away where entry is ignored.
    let all = fit(&whole, &Extras::default());
    let ignored = fit(&late, &Extras::default());
    let off = |m: &CureModel| (m.cure_at_center - all.cure_at_center).abs();
    assert!(off(&model) < 0.2 && off(&model) < off(&ignored), "{} {}", off(&model), off(&ignored));
}

/// A cohort made from a simulated one, and the truth of its units.
fn cohort(extras: impl Fn(usize, f64, bool, &mut Random) -> Option<(bool, [f64; 2], bool)>) -> (Cohort, Vec<Truth>) {
    let world = simulate(Scenario::BothOverlap, 9_000, false, 4);
    let Units { time, event, arm, covariates, names, labels, .. } = world.cohort.to_units();
    let (p, horizon) = (names.len(), world.cohort.horizon());
    let mut random = Random(17);
    let mut units = Units {
        ids: Ids::Rows(0),
        time: vec![],
        event: vec![],
        arm: vec![],
        covariates: vec![],
        names,
        labels,
        extras: Extras::default(),
    };
    let (mut weight, mut entry, mut competing, mut truth) = (vec![], vec![], vec![], vec![]);
    for i in 0..time.len() {
        let Some((own, [w, e], other)) = extras(i, time[i], event[i], &mut random) else { continue };
        units.time.push(time[i]);
        units.event.push(own);
        units.arm.push(arm[i]);
        units.covariates.extend_from_slice(&covariates[i * p..(i + 1) * p]);
        weight.push(w);
        entry.push(e);
        competing.push(other);
        truth.push(world.truth[i]);
    }
    units.ids = Ids::Rows(units.time.len());
    units.extras = Extras {
        weight: weight.iter().any(|w| *w != 1.0).then_some(weight),
        entry: entry.iter().any(|e| *e != 0.0).then_some(entry),
        cluster: None,
        competing: competing.contains(&true).then_some(competing),
    };
    (Cohort::from_parts(units, None, horizon).expect("sound parts"), truth)
}

/// Average effects, as estimated, with their standard errors, and as they are.
fn averages(cohort: &Cohort, truth: &[Truth]) -> [[f64; 3]; 2] {
    let found = analysis::run(cohort, &Options::paper(), &Unwatched).expect("a run");
    let audit = Audit::of(cohort, &found, &[]).expect("an audit");
    let total: f64 = found.units.iter().map(|&i| cohort.weight(i as usize)).sum();
    let mean = |f: fn(&Truth) -> f64| {
        found.units.iter().map(|&i| cohort.weight(i as usize) * f(&truth[i as usize])).sum::<f64>() / total
    };
    [("cure_effect", mean(Truth::cure_effect)), ("time_effect", mean(Truth::time_effect))].map(|(name, truth)| {
        let a = audit.averages.iter().find(|a| a.estimand == name && a.population == "all").expect("an average");
        [a.estimate.unwrap(), a.se.unwrap(), truth]
    })
}

/// The same cohort as if nothing were known beyond time and event.
fn forgetful(cohort: &Cohort) -> Cohort {
    Cohort::from_parts(Units { extras: Extras::default(), ..cohort.to_units() }, None, cohort.horizon())
        .expect("sound parts")
}

#[test]
fn delayed_entry_is_corrected_for() {
    // Treated patients come later: whoever would have had an early event is not there.
    let world = simulate(Scenario::BothOverlap, 9_000, false, 4);
    let (cohort, truth) = cohort(|i, time, event, random| {
        let late = if world.cohort.arm(i) == Arm::Treated { 0.7 } else { 0.1 };
        let entry = if random.chance(late) { 0.5 * world.cohort.horizon() * random.uniform() } else { 0.0 };
        (time > entry + 1e-3).then_some((event, [1.0, entry], false))
    });
    // Beside what the same estimator makes of the whole cohort, whose matching bias it shares.
    let whole = averages(&world.cohort, &world.truth);
    let (with, without) = (averages(&cohort, &truth), averages(&forgetful(&cohort), &truth));
    for k in 0..2 {
        let error = |of: &[[f64; 3]; 2]| (of[k][0] - of[k][2]) - (whole[k][0] - whole[k][2]);
        assert!(error(&with).abs() < 2.0 * with[k][1], "{with:?} {whole:?}");
        assert!(error(&without).abs() > 2.0 * error(&with).abs(), "{without:?} {with:?} {whole:?}");
    }
}

#[test]
fn sampling_is_corrected_for_by_weights() {
    // Of those without an event a quarter was kept, at random; they stand for four.
    let (cohort, truth) = cohort(|_, _, event, random| match event {
        true => Some((true, [1.0, 0.0], false)),
        false => random.chance(0.25).then_some((false, [4.0, 0.0], false)),
    });
    let (with, without) = (averages(&cohort, &truth), averages(&forgetful(&cohort), &truth));
    let [value, se, expected] = with[0];
    assert!((value - expected).abs() < 4.0 * se, "{value} {se} {expected}");
    assert!((without[0][0] - expected).abs() > 2.0 * (value - expected).abs(), "{without:?} {with:?}");
    // Who is event-free in truth, by arm: the weighted curve finds it.
    for z in Arm::BOTH {
        let units: Vec<u32> = cohort.units_of(z);
        let curve = SurvivalCurve::of_outcomes(units.iter().map(|&i| cohort.outcome(i as usize)).collect());
        let total: f64 = units.iter().map(|&i| cohort.weight(i as usize)).sum();
        let of = |i: &u32| cohort.weight(*i as usize) * truth[*i as usize].arms[z].cure_probability;
        let expected = units.iter().map(of).sum::<f64>() / total;
        let found = curve.survival_with_se(cohort.horizon());
        assert!((found.value - expected).abs() < 4.0 * found.se.unwrap(), "{found:?} {expected}");
    }
}

#[test]
fn other_causes_take_their_share() {
    // Of the events three in ten are of another cause, at random: the cure effect shrinks by as much, times stay.
    let (cohort, truth) = cohort(|_, _, event, random| {
        let other = event && random.chance(0.3);
        Some((event && !other, [1.0, 0.0], other))
    });
    let world = simulate(Scenario::BothOverlap, 9_000, false, 4);
    let [all_cure, all_time] = averages(&world.cohort, &world.truth);
    let [cure, time] = averages(&cohort, &truth);
    assert!((cure[0] - 0.7 * all_cure[0]).abs() < 2.0 * cure[1], "{cure:?} {all_cure:?}");
    assert!((time[0] - all_time[0]).abs() < 2.0 * time[1], "{time:?} {all_time:?}");
    // To take another cause for censoring is another question: as if nobody left for it.
    for z in Arm::BOTH {
        let curve = |c: &Cohort| {
            let outcomes = c.units_of(z).iter().map(|&i| c.outcome(i as usize)).collect();
            SurvivalCurve::of_outcomes(outcomes).survival_with_se(c.horizon().next_down())
        };
        let expected = 1.0 - 0.7 * (1.0 - curve(&world.cohort).value);
        let (found, ignored) = (curve(&cohort), curve(&forgetful(&cohort)));
        let se = found.se.unwrap();
        assert!((found.value - expected).abs() < 3.0 * se, "{found:?} {expected}");
        assert!((ignored.value - expected).abs() > 3.0 * se, "{ignored:?} {expected}");
    }
}

#[test]
fn a_cluster_for_each_unit_and_weights_of_one_change_no_estimate() {
    let world = simulate(Scenario::BothOverlap, 2_000, false, 9);
    let plain = averages(&world.cohort, &world.truth);
    let mut units = world.cohort.to_units();
    units.extras.cluster = Some((0..2_000).rev().collect());
    units.extras.weight = Some(vec![1.0; 2_000]);
    units.extras.entry = Some(vec![0.0; 2_000]);
    units.extras.competing = Some(vec![false; 2_000]);
    let general = Cohort::from_parts(units.clone(), None, world.cohort.horizon()).expect("sound parts");
    // Model, metrics and groups are the same; errors agree but for rounding.
    let [a, b] = [&world.cohort, &general].map(|c| analysis::run(c, &Options::paper(), &Unwatched).expect("a run"));
    assert_eq!(a.fit.description.metrics, b.fit.description.metrics);
    for (x, y) in a.effects.iter().zip(&b.effects) {
        assert_eq!((x.cure().to_bits(), x.time().map(f64::to_bits)), (y.cure().to_bits(), y.time().map(f64::to_bits)));
    }
    for (x, y) in plain.iter().zip(averages(&general, &world.truth)) {
        close(x, &y, 1e-9);
    }
    units.extras = Extras { cluster: Some((0..2_000).map(|i| i / 40).collect()), ..Extras::default() };
    let shared = averages(&Cohort::from_parts(units, None, world.cohort.horizon()).expect("sound parts"), &world.truth);
    assert!(shared[0][0] == plain[0][0] && shared[0][1] != plain[0][1], "clusters change errors alone");
}
