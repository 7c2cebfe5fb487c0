//! Does the joint model find what is there, and nothing where there is nothing?

mod data;

use dvim::internal::arm::{Arm, ByArm};
use dvim::internal::estimand::{ByEstimand, Estimand};
use dvim::internal::joint::{Family, Flag, JointModel, JointOptions, Shape, Spread, Terms, TwoArms, describe};
use dvim::internal::simulate::{Scenario, Simulated, simulate};

/// Units with covariates standardised over all of them.
#[derive(Clone)]
struct Units {
    time: Vec<f64>,
    event: Vec<bool>,
    treated: Vec<bool>,
    covariates: Vec<f64>,
    p: usize,
    horizon: f64,
}

impl Units {
    fn of(world: &Simulated) -> Units {
        let cohort = &world.cohort;
        let (n, p) = (cohort.n_units(), cohort.n_covariates());
        let mut units = Units {
            time: (0..n).map(|i| cohort.time(i)).collect(),
            event: (0..n).map(|i| cohort.event(i)).collect(),
            treated: (0..n).map(|i| cohort.arm(i) == Arm::Treated).collect(),
            covariates: cohort.all_covariates().to_vec(),
            p,
            horizon: cohort.horizon(),
        };
        units.standardise();
        units
    }

    fn standardise(&mut self) {
        let (n, p) = (self.time.len(), self.p);
        for j in 0..p {
            let mean = (0..n).map(|i| self.covariates[i * p + j]).sum::<f64>() / n as f64;
            let variance = (0..n).map(|i| (self.covariates[i * p + j] - mean).powi(2)).sum::<f64>() / n as f64;
            let sd = if variance > 0.0 { variance.sqrt() } else { 1.0 };
            (0..n).for_each(|i| self.covariates[i * p + j] = (self.covariates[i * p + j] - mean) / sd);
        }
    }

    fn x(&self, i: usize) -> &[f64] {
        &self.covariates[i * self.p..(i + 1) * self.p]
    }

    fn arm(&self, i: usize) -> Arm {
        Arm::BOTH[usize::from(self.treated[i])]
    }

    fn data(&self) -> TwoArms<'_> {
        TwoArms {
            time: &self.time,
            event: &self.event,
            treated: &self.treated,
            covariates: &self.covariates,
            n_covariates: self.p,
            horizon: self.horizon,
        }
    }

    fn fit(&self, options: &JointOptions) -> JointModel {
        describe(&self.data(), &Terms::new(&self.covariates, self.p), options).expect("something to fit")
    }
}

/// Mean absolute errors of both effects of the model, in its own training units.
fn errors(world: &Simulated, units: &Units, model: &JointModel) -> (f64, f64) {
    let predictions = model.predict_all(&units.covariates);
    let n = predictions.len() as f64;
    let (mut cure, mut time) = (0.0, 0.0);
    for (ByArm { control, treated }, truth) in predictions.iter().zip(&world.truth) {
        cure += (treated.cure_probability - control.cure_probability - truth.cure_effect()).abs();
        time += (treated.mean_event_time - control.mean_event_time - truth.time_effect()).abs();
    }
    (100.0 * cure / n, time / n)
}

/// DESIGN's cross-fitted model alone has 4.6, 1.9, 4.7, 5.6 points and 7.4, 19, 15, 16 days at n = 2,000 (means of 16
/// data sets); one data set is held to twice that.
#[test]
fn the_papers_scenarios_are_recovered() {
    let bounds = [(9.2, 15.0), (3.8, 38.0), (9.4, 30.0), (11.2, 32.0)];
    for (scenario, (cure_bound, time_bound)) in
        [Scenario::CureOnly, Scenario::TimeOnly, Scenario::BothIndependent, Scenario::BothOverlap]
            .into_iter()
            .zip(bounds)
    {
        let world = simulate(scenario, 2_000, false, 1);
        let units = Units::of(&world);
        let model = units.fit(&JointOptions::default());
        let (cure, time) = errors(&world, &units, &model);
        eprintln!(
            "{}: {cure:.2} / {time:.2}, {} terms, {:?}",
            scenario.name(),
            model.terms.len(),
            model.certificate.flags
        );
        assert!(cure < cure_bound && time < time_bound, "{}: {cure} {time}", scenario.name());
        assert!(model.certificate.converged());
    }
}

/// The model alone, ten folds, family by out-of-fold likelihood: `cargo test -p dvim --test joint_fit cross --
/// --ignored --nocapture`. The prototype with five folds has 4.2 points and 14.4 days over the four scenarios (16 data
/// sets each), with ten about a tenth less.
#[test]
#[ignore = "a minute"]
fn cross_fitted_errors() {
    let (mut cure_sum, mut time_sum) = (0.0, 0.0);
    for scenario in [Scenario::CureOnly, Scenario::TimeOnly, Scenario::BothIndependent, Scenario::BothOverlap] {
        let (mut cure, mut time) = (0.0, 0.0);
        for seed in 0..8 {
            let world = simulate(scenario, 2_000, false, 100 + seed);
            let units = Units::of(&world);
            let terms = Terms::new(&units.covariates, units.p);
            let part = |fold: usize| {
                let rows: Vec<usize> = (0..2_000).filter(|i| i % 10 != fold).collect();
                Units {
                    time: rows.iter().map(|&i| units.time[i]).collect(),
                    event: rows.iter().map(|&i| units.event[i]).collect(),
                    treated: rows.iter().map(|&i| units.treated[i]).collect(),
                    covariates: rows.iter().flat_map(|&i| units.x(i).to_vec()).collect(),
                    ..units.clone()
                }
            };
            let folds: Vec<Units> = (0..10).map(part).collect();
            let score = |family: Family| -> f64 {
                let options = JointOptions { family, rounds: 0, ..JointOptions::default() };
                let models: Vec<_> = folds.iter().map(|f| describe(&f.data(), &terms, &options).unwrap()).collect();
                (0..2_000)
                    .map(|i| {
                        let prediction = models[i % 10].predict(units.x(i))[units.arm(i)];
                        models[i % 10].log_likelihood(&prediction, units.time[i], units.event[i])
                    })
                    .sum()
            };
            let family = Family::ALL.into_iter().max_by(|a, b| score(*a).total_cmp(&score(*b))).unwrap();
            let options = JointOptions { family, ..JointOptions::default() };
            let models: Vec<_> = folds.iter().map(|f| describe(&f.data(), &terms, &options).unwrap()).collect();
            for (i, truth) in world.truth.iter().enumerate() {
                let ByArm { control, treated } = models[i % 10].predict(units.x(i));
                cure += (treated.cure_probability - control.cure_probability - truth.cure_effect()).abs() / 160.0;
                time += (treated.mean_event_time - control.mean_event_time - truth.time_effect()).abs() / 16_000.0;
            }
            let distance = models.iter().map(|m| m.certificate.gradient_norm).fold(0.0, f64::max);
            eprintln!("  {} {seed}: {family}, {distance:.2}", scenario.name());
        }
        eprintln!("{}: {cure:.2} / {time:.2}", scenario.name());
        cure_sum += cure / 4.0;
        time_sum += time / 4.0;
    }
    eprintln!("mean: {cure_sum:.2} / {time_sum:.2}");
    assert!(cure_sum < 4.6 && time_sum < 16.0);
}

#[test]
fn every_step_increases_its_objective() {
    let units = Units::of(&simulate(Scenario::BothOverlap, 1_500, false, 2));
    for family in Family::ALL {
        let model = units.fit(&JointOptions { family, ..JointOptions::default() });
        assert!(!model.certificate.path.is_empty());
        for [before, after] in &model.certificate.path {
            assert!(after - before >= -1e-12 * before.abs(), "{family}: {before} to {after}");
        }
    }
}

#[test]
fn swapping_the_arms_swaps_the_model() {
    let mut units = Units::of(&simulate(Scenario::BothIndependent, 1_200, false, 3));
    let model = units.fit(&JointOptions::default());
    units.treated.iter_mut().for_each(|z| *z = !*z);
    let swapped = units.fit(&JointOptions::default());
    for i in 0..50 {
        let (found, expected) = (model.predict(units.x(i)), swapped.predict(units.x(i)));
        for z in Arm::BOTH {
            assert!((found[z].cure_logit - expected[z.other()].cure_logit).abs() < 1e-8);
            assert!((found[z].mean_event_time / expected[z.other()].mean_event_time - 1.0).abs() < 1e-8);
        }
        let (v, w) = (model.covariance(units.x(i), Some(8.0)), swapped.covariance(units.x(i), Some(8.0)));
        for (a, row) in v.iter().enumerate() {
            for (b, value) in row.iter().enumerate() {
                assert!((value - w[(a + 3) % 6][(b + 3) % 6]).abs() < 1e-8);
            }
        }
    }
}

#[test]
fn row_order_changes_nothing_but_rounding() {
    let units = Units::of(&simulate(Scenario::BothOverlap, 1_200, false, 4));
    let order: Vec<usize> = (0..1_200).map(|i| (i * 7_919 + 13) % 1_200).collect();
    let mut shuffled = units.clone();
    shuffled.time = order.iter().map(|&i| units.time[i]).collect();
    shuffled.event = order.iter().map(|&i| units.event[i]).collect();
    shuffled.treated = order.iter().map(|&i| units.treated[i]).collect();
    shuffled.covariates = order.iter().flat_map(|&i| units.x(i).to_vec()).collect();
    let (one, two) = (units.fit(&JointOptions::default()), shuffled.fit(&JointOptions::default()));
    for i in 0..50 {
        let (a, b) = (one.predict(units.x(i)), two.predict(units.x(i)));
        for z in Arm::BOTH {
            assert!((a[z].cure_logit - b[z].cure_logit).abs() < 1e-8 && (a[z].location - b[z].location).abs() < 1e-8);
        }
    }
}

#[test]
fn units_of_time_do_not_matter() {
    let days = Units::of(&simulate(Scenario::BothOverlap, 1_200, false, 5));
    let mut years = days.clone();
    years.time.iter_mut().for_each(|y| *y /= 365.25);
    years.horizon /= 365.25;
    for family in Family::ALL {
        let options = JointOptions { family, ..JointOptions::default() };
        let (one, two) = (days.fit(&options), years.fit(&options));
        for i in 0..50 {
            let (a, b) = (one.predict(days.x(i)), two.predict(days.x(i)));
            for z in Arm::BOTH {
                assert!((a[z].cure_logit - b[z].cure_logit).abs() < 1e-7);
                assert!((a[z].mean_event_time / (365.25 * b[z].mean_event_time) - 1.0).abs() < 1e-7);
            }
        }
    }
}

/// Treatment by coin, the same outcome in both arms: own slopes vanish and so does the spread of the effects.
#[test]
fn without_effect_own_slopes_vanish() {
    let mut units = Units::of(&simulate(Scenario::BothOverlap, 4_000, false, 6));
    // The control arm alone, split by a rule that no covariate knows.
    let control: Vec<usize> = (0..4_000).filter(|&i| !units.treated[i]).collect();
    units = Units {
        time: control.iter().map(|&i| units.time[i]).collect(),
        event: control.iter().map(|&i| units.event[i]).collect(),
        treated: control.iter().enumerate().map(|(k, _)| k % 2 == 0).collect(),
        covariates: control.iter().flat_map(|&i| units.x(i).to_vec()).collect(),
        ..units
    };
    units.standardise();
    let model = units.fit(&JointOptions::default());
    let effects: Vec<f64> = model
        .predict_all(&units.covariates)
        .iter()
        .map(|ByArm { control: c, treated: t }| t.cure_probability - c.cure_probability)
        .collect();
    let mean = effects.iter().sum::<f64>() / effects.len() as f64;
    let spread = (effects.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / effects.len() as f64).sqrt();
    eprintln!("spread of the effects {spread:.4}, kept {:.4}", model.shrinkage.cure.own_kept);
    assert!(spread < 0.03, "{spread}");
    assert!(model.shrinkage.cure.own_kept < 0.1, "{:?}", model.shrinkage);
}

/// Steps, squares and products that are there are found, and are what predictions are made of.
#[test]
fn curves_and_products_are_found() {
    let mut units = Units::of(&simulate(Scenario::BothOverlap, 3_000, false, 7));
    // Outcomes by a rule of our own: cure by the square of the 11th and the product of the 12th and 13th, times by a
    // step in the 14th.
    let mut state = 1u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    for i in 0..3_000 {
        let x = units.x(i);
        let z = f64::from(u8::from(units.treated[i]));
        let logit = -0.5 + 0.8 * (x[10] * x[10] - 1.0) + 0.7 * z * x[11] * x[12];
        let location = 4.0 + 0.9 * f64::from(u8::from(x[13] > 0.0));
        let cured = uniform() < 1.0 / (1.0 + (-logit).exp());
        let normal = (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        let time = (location + 0.7 * normal).exp();
        let lost = 1_200.0 * uniform();
        let event = !cured && time < lost && time < units.horizon;
        units.time[i] = if event { time } else { lost.min(units.horizon) };
        units.event[i] = event;
    }
    let model = units.fit(&JointOptions::default());
    let names: Vec<String> = model.terms.iter().map(|t| format!("{:?} {t} {:.2}", t.part, t.statistic)).collect();
    eprintln!("{names:?}");
    let has =
        |part: Estimand, shape: &dyn Fn(&Shape) -> bool| model.terms.iter().any(|t| t.part == part && shape(&t.shape));
    assert!(has(Estimand::Cure, &|s| s.covariates() == [10]), "{names:?}");
    assert!(has(Estimand::Cure, &|s| *s == Shape::Product { first: 11, second: 12 }), "{names:?}");
    assert!(has(Estimand::Time, &|s| matches!(s, Shape::Step { covariate: 13, .. })), "{names:?}");
    assert!(model.terms.len() <= 8, "{names:?}");
    let ByEstimand { cure, time } = &model.importance;
    assert!(cure.treated[11] > 0.2 && cure.control[11] < 0.05 && time.control[13] > 0.05);
}

#[test]
fn predictions_are_made_of_lines_and_terms() {
    let units = Units::of(&simulate(Scenario::BothOverlap, 1_000, false, 10));
    let model = units.fit(&JointOptions { rounds: 0, ..JointOptions::default() });
    let all = model.predict_all(&units.covariates);
    for (i, both) in all.iter().enumerate() {
        assert_eq!(*both, model.predict(units.x(i)), "the same bits, all at once or one by one");
        for arm in Arm::BOTH {
            let one = both[arm];
            for (part, found) in [(Estimand::Cure, one.cure_logit), (Estimand::Time, one.location)] {
                let (intercept, slopes) = model.line(part, arm);
                let sum: f64 = slopes.iter().zip(units.x(i)).map(|(b, x)| b * x).sum();
                assert!((intercept + sum - found).abs() < 1e-12);
            }
        }
    }
    let (_, slopes) = model.line(Estimand::Time, Arm::Treated);
    assert!(slopes.iter().zip(&model.importance.time.treated).all(|(b, imp)| (b * b - imp).abs() < 1e-15));
}

/// The spreads that intervals are made of are those of the full covariance by the delta method; without horizon the log
/// of a log-normal mean is `location + σ²/2`.
#[test]
fn spreads_are_the_delta_method() {
    let mut units = Units::of(&simulate(Scenario::BothOverlap, 900, false, 5));
    units.horizon = f64::INFINITY;
    let model = units.fit(&JointOptions::default());
    let kappa = Some(3.0);
    let certainty = model.certainty(kappa);
    let rows = &units.covariates[..30 * units.p];
    let spreads = certainty.spreads(rows);
    for (i, found) in spreads.iter().enumerate() {
        let v = model.covariance(units.x(i), kappa);
        let slopes = model.predict(units.x(i)).into_array().map(|p| [0.0, 1.0, (2.0 * p.log_sigma).exp()]);
        let form = |z: usize, y: usize| -> f64 {
            let pairs = (0..3).flat_map(|a| (0..3).map(move |b| (a, b)));
            pairs.map(|(a, b)| slopes[z][a] * slopes[y][b] * v[3 * z + a][3 * y + b]).sum()
        };
        let close = |a: f64, b: f64| (a - b).abs() < 1e-6 * (1e-3 + b.abs());
        let three = |s: &Spread| [s.variance.control, s.variance.treated, s.covariance];
        for (found, expected) in three(&found.of.cure).into_iter().zip([v[0][0], v[3][3], v[0][3]]) {
            assert!(close(found, expected), "{i}: {found} {expected}");
        }
        for (found, expected) in three(&found.of.time).into_iter().zip([form(0, 0), form(1, 1), form(0, 1)]) {
            assert!(close(found, expected), "{i}: {found} {expected}");
        }
        for (z, y) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let expected: f64 = (0..3).map(|b| slopes[y][b] * v[3 * z][3 * y + b]).sum();
            let found = found.cross.into_array()[z].into_array()[y];
            assert!(close(found, expected), "{i}: {found} {expected}");
        }
    }
}

#[test]
fn small_and_strange_data_give_flagged_models() {
    let world = simulate(Scenario::BothOverlap, 400, false, 8);
    let units = Units::of(&world);
    let check = |units: &Units, what: &str| -> Vec<Flag> {
        let mut flags = Vec::new();
        for family in Family::ALL {
            let model = units.fit(&JointOptions { family, ..JointOptions::default() });
            for i in 0..units.time.len() {
                for prediction in model.predict(units.x(i)) {
                    let all = [prediction.cure_logit, prediction.location, prediction.log_sigma];
                    assert!(all.iter().all(|x| x.is_finite()), "{what} {family}: {prediction:?}");
                    assert!(
                        (0.0..=units.horizon).contains(&prediction.mean_event_time),
                        "{what} {family}: {prediction:?}"
                    );
                    assert!((0.0..=1.0).contains(&model.event_share(&prediction, units.time[i])), "{what}");
                    let value = model.log_likelihood(&prediction, units.time[i], units.event[i]);
                    assert!(!value.is_nan(), "{what} {family}: {value}");
                }
            }
            for kappa in [None, Some(8.0)] {
                let v = model.covariance(units.x(0), kappa);
                assert!((0..6).all(|k| v[k][k] >= 0.0 && v[k].iter().all(|x| x.is_finite())), "{what} {family}: {v:?}");
            }
            flags = model.certificate.flags;
        }
        flags
    };
    let none = Units { covariates: Vec::new(), p: 0, ..units.clone() };
    check(&none, "no covariates");
    let one = Units { covariates: (0..400).map(|i| units.x(i)[16]).collect(), p: 1, ..units.clone() };
    check(&one, "one covariate");
    let mut constant = units.clone();
    (0..400).for_each(|i| constant.covariates[i * 20 + 3] = 0.0);
    check(&constant, "a constant covariate");
    let mut twice = units.clone();
    (0..400).for_each(|i| twice.covariates[i * 20 + 3] = -twice.covariates[i * 20 + 12]);
    check(&twice, "a covariate twice");
    let mut cured = units.clone();
    for i in (0..400).filter(|&i| cured.treated[i]) {
        cured.event[i] = false;
    }
    assert!(check(&cured, "nobody treated had an event").contains(&Flag::NoEvent { arm: Arm::Treated }));
    let mut uncured = units.clone();
    for i in (0..400).filter(|&i| uncured.treated[i]) {
        uncured.event[i] = true;
        uncured.time[i] = uncured.time[i].min(799.0);
    }
    assert!(check(&uncured, "everybody treated had the event").contains(&Flag::NoneCured { arm: Arm::Treated }));
    let mut separated = units.clone();
    (0..400).for_each(|i| separated.covariates[i * 20 + 5] = if separated.event[i] { 1.0 } else { -1.0 });
    check(&separated, "separation");
    let mut predicted = units.clone();
    (0..400).for_each(|i| predicted.covariates[i * 20 + 15] = predicted.time[i].ln() - 4.0);
    check(&predicted, "the time itself");
    let mut zero = units.clone();
    zero.time[0] = 0.0;
    zero.event[0] = true;
    zero.time[1] = 0.0;
    zero.event[1] = false;
    assert!(check(&zero, "time zero").contains(&Flag::EventAtZero { n_units: 1 }));
    let tiny = Units {
        time: units.time[..30].to_vec(),
        event: units.event[..30].to_vec(),
        treated: units.treated[..30].to_vec(),
        covariates: units.covariates[..600].to_vec(),
        ..units.clone()
    };
    check(&tiny, "thirty units");
    let mut far = units.clone();
    far.covariates[7 * 20 + 11] = 1e6;
    check(&far, "one value far out");
}

/// More covariates than a part takes, or than have products of every pair.
#[test]
fn many_covariates_are_screened() {
    let units = Units::of(&simulate(Scenario::BothIndependent, 2_000, false, 9));
    for p in [40, 200] {
        // The scenario's 20 covariates last, after noise.
        let covariates: Vec<f64> = (0..2_000)
            .flat_map(|i| {
                let noise =
                    (0..p - 20).map(move |j| ((i * 7_919 + j * 104_729 + i * j * 31) % 1_013) as f64 / 292.4 - 1.73);
                noise.chain(units.x(i).to_vec())
            })
            .collect();
        let wide = Units { covariates, p, ..units.clone() };
        let start = std::time::Instant::now();
        let model = wide.fit(&JointOptions::default());
        let sums: Vec<f64> = (0..p).map(|j| model.importance.cure.treated[j]).collect();
        let best = (0..p).max_by(|&i, &j| sums[i].total_cmp(&sums[j])).unwrap();
        eprintln!("p = {p}: {:?}, {} candidates, strongest x{}", start.elapsed(), model.n_candidates, best + 1);
        assert!([p - 3, p - 1].contains(&best), "x18 and x20 rule cure in the treated arm, found x{}", best + 1);
        assert_eq!(p > 60, model.certificate.flags.iter().any(|f| matches!(f, Flag::CovariatesLeftOut { .. })));
    }
}

#[test]
fn what_cannot_be_fitted_is_an_error() {
    let units = Units::of(&simulate(Scenario::CureOnly, 100, false, 1));
    let terms = Terms::new(&units.covariates, units.p);
    let options = JointOptions::default();
    let none = vec![false; 100];
    assert!(describe(&TwoArms { event: &none, ..units.data() }, &terms, &options).is_err(), "no events at all");
    assert!(describe(&TwoArms { treated: &none, ..units.data() }, &terms, &options).is_err(), "an empty arm");
}

/// Without horizon, covariates and precision the model is maximum likelihood: Stata's strsmix fit of a Weibull mixture
/// cure model to gbsg, as quoted by flexsurvcure (tests/testthat/test_match_stata.R, commit eec8afa). `S(t) = exp(-λ
/// t^γ)`.
#[test]
#[ignore = "needs DVIM_DATA: see tests/data/mod.rs"]
fn needs_data_weibull_agrees_with_stata() {
    let text = data::read("gbsg.csv");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = |name: &str| header.iter().position(|h| *h == name).unwrap();
    let (time_at, event_at) = (column("rfstime"), column("status"));
    let rows: Vec<(f64, bool)> = lines.map(|r| (r[time_at].parse().unwrap(), r[event_at] == "1")).collect();
    assert_eq!(rows.len(), 686);
    // Both arms are the whole data set.
    let twice: Vec<(f64, bool)> = rows.iter().chain(&rows).copied().collect();
    let units = Units {
        time: twice.iter().map(|r| r.0).collect(),
        event: twice.iter().map(|r| r.1).collect(),
        treated: (0..twice.len()).map(|i| i >= 686).collect(),
        covariates: Vec::new(),
        p: 0,
        horizon: f64::INFINITY,
    };
    let options = JointOptions { family: Family::Weibull, free_precision: 0.0, ..JointOptions::default() };
    let model = units.fit(&options);
    let variance = model.covariance(&[], None);
    for (z, prediction) in model.predict(&[]).iter().enumerate() {
        let gamma = (-prediction.log_sigma).exp();
        let close = |found: f64, expected: f64, tolerance: f64| {
            assert!((found - expected).abs() < tolerance, "arm {z}: found {found}, Stata {expected}");
        };
        // The maximum itself, by Newton's method in extended precision on a likelihood written a second time.
        close(prediction.cure_logit, -0.473_134_70, 2e-8);
        close(variance[3 * z][3 * z].sqrt(), 0.164_142_69, 2e-8);
        close(-gamma * prediction.location, -11.105_192_22, 1e-7);
        close(-prediction.log_sigma, 0.448_163_63, 2e-8);
        close(variance[3 * z + 2][3 * z + 2].sqrt(), 0.057_640_29, 2e-8);
        // Stata stopped about 1e-5 standard errors short of it.
        close(prediction.cure_logit, -0.4731367, 3e-6);
        close(variance[3 * z][3 * z].sqrt(), 0.1641441, 3e-6);
        close(-gamma * prediction.location, -11.10519, 1e-5);
        close(-prediction.log_sigma, 0.448163, 1e-6);
        close(variance[3 * z + 2][3 * z + 2].sqrt(), 0.0576425, 3e-6);
    }
    assert!((0.5 * model.log_likelihood - -2628.235098).abs() < 1e-4, "{}", model.log_likelihood);
}
