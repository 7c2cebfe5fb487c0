//! Patients asked for anew under the adjusted estimator: of the cohort as the run did it, new ones by all models
//! together; and constraints.

use dvim::internal::analysis::{self, Analysis};
use dvim::internal::cohort::{Arm, Cohort, Units};
use dvim::internal::constraint::{Caliper, Constraints};
use dvim::internal::correction::Corrector;
use dvim::internal::estimand::Estimand;
use dvim::internal::ground::Ground;
use dvim::internal::inspect::Search;
use dvim::internal::newcomers::Newcomers;
use dvim::internal::options::AdjustedOptions;
use dvim::internal::options::{Estimator, Options};
use dvim::internal::simulate::{Scenario, Simulated, simulate};
use dvim::internal::support::{Range, ranges, read_new};
use dvim::internal::table::{Column, Ids, Table, Values};
use dvim::internal::watch::Unwatched;

fn options(folds: usize, constraints: Constraints) -> Options {
    let adjusted = AdjustedOptions { splits: Some(folds), ..AdjustedOptions::default() };
    Options { estimator: Estimator::Adjusted(adjusted), constraints, ..Options::default() }
}

fn run(cohort: &Cohort, options: &Options) -> Analysis {
    analysis::run(cohort, options, &Unwatched).expect("a run")
}

fn logit(p: f64) -> f64 {
    (p / (1.0 - p)).ln()
}

/// A patient of the cohort gets the numbers of the run to the last bit: from the kept models, without its own outcome.
#[test]
fn a_patient_of_the_cohort_is_estimated_as_in_the_run() {
    let world = simulate(Scenario::BothOverlap, 500, false, 7);
    let cohort = &world.cohort;
    let found = run(cohort, &options(3, Constraints::default()));
    let own: Vec<Option<u32>> = (0..500).map(Some).collect();
    let again =
        found.fit.estimate_under_constraints(cohort, cohort.all_covariates(), &own, &Unwatched).expect("effects");
    for (i, effect) in again.iter().enumerate() {
        assert_eq!(effect.as_ref(), Ok(&found.effects[i]), "unit {i}");
    }
}

/// The definition, worked out by hand: mean logit and mean log time of all models, shifted by the weighted offset of
/// the groups from what models that did not see the members expect of them.
#[test]
fn a_new_patient_is_estimated_by_all_models_together() {
    let world = simulate(Scenario::BothOverlap, 600, false, 3);
    let cohort = &world.cohort;
    let found = run(cohort, &options(3, Constraints::default()));
    let fit = &found.fit;
    let ground = Ground::of_fit(fit, cohort).expect("constraints that fit");
    let search = Search::new(&found.fit, &ground);
    let other = simulate(Scenario::BothOverlap, 40, false, 11).cohort;
    let rows = other.all_covariates();
    let batch = fit.estimate(cohort, rows, &Unwatched).expect("effects");
    let newcomers = Newcomers::new(fit, cohort).expect("constraints that fit");
    let first = fit.first();
    let correctors: Vec<&Corrector> = fit.folds().filter_map(|f| f.corrector.as_ref()).collect();
    let weight = |e: Estimand| correctors.iter().map(|c| c.weight[e]).sum::<f64>() / 3.0;
    for (q, effect) in batch.iter().enumerate() {
        let x = other.covariates(q);
        let groups = search.groups(x, None, None);
        let corrected = groups.correct(x, None, &newcomers, fit.options.fewest(), cohort.horizon()).expect("corrected");
        assert_eq!(
            groups.effect(cohort.horizon(), Some(corrected)).as_ref(),
            Some(effect),
            "one at a time is the batch"
        );
        let scaled = fit.description.metrics.cure.scaling.apply(x);
        for arm in Arm::BOTH {
            let of_models: Vec<_> = correctors.iter().map(|c| c.model.predictor.predict(&scaled)[arm]).collect();
            let mean = |f: &dyn Fn(usize) -> f64| (0..3).map(f).sum::<f64>() / 3.0;
            let expected = |i: u32| {
                let i = i as usize;
                let model = &correctors[first.fold_of[i] as usize].model.predictor;
                model.expect(arm, &fit.description.metrics.cure.scaling.apply(cohort.covariates(i)))
            };
            let members = &groups.cure[arm].units;
            let k = members.len() as f64;
            let model = members.iter().map(|&i| expected(i).cure_probability).sum::<f64>() / k;
            let share = (k * effect.groups.cure[arm].curve.survival + 0.5 * model) / (k + 0.5);
            let w = weight(Estimand::Cure);
            let value = mean(&|m| of_models[m].cure_logit) + w * (logit(share) - logit(model));
            assert!((logit(effect.cure_probability(arm)) - value).abs() < 1e-10);
            let members: Vec<_> = groups.time[arm].units.iter().map(|&i| expected(i)).collect();
            let uncured: f64 = members.iter().map(|p| 1.0 - p.cure_probability).sum();
            let time: f64 = members.iter().map(|p| (1.0 - p.cure_probability) * p.mean_event_time).sum();
            let of_group = effect.groups.time[arm].curve.mean_event_time().expect("events");
            let value = mean(&|m| of_models[m].mean_event_time.ln())
                + weight(Estimand::Time) * (of_group / (time / uncured)).ln();
            assert!((effect.mean_event_time(arm).expect("a time").ln() - value).abs() < 1e-10);
        }
        assert!(effect.cure_interval(0.95).width() > 0.0);
    }
}

/// New patients of the same world are estimated about as well as those of the cohort.
#[test]
fn new_patients_are_estimated_as_well_as_those_of_the_cohort() {
    let (mut old, mut new) = ([0.0; 2], [0.0; 2]);
    for seed in [1, 2] {
        let world = simulate(Scenario::BothOverlap, 1000, false, seed);
        let found = run(&world.cohort, &options(10, Constraints::default()));
        let fresh = simulate(Scenario::BothOverlap, 1000, false, 100 + seed);
        let predicted = found.fit.estimate(&world.cohort, fresh.cohort.all_covariates(), &Unwatched).expect("effects");
        let add = |sum: &mut [f64; 2], effects: &[dvim::internal::effect::Effect], world: &Simulated| {
            for (e, t) in effects.iter().zip(&world.truth) {
                sum[0] += (e.cure() - t.cure_effect()).abs();
                sum[1] += (e.time().expect("a time") - t.time_effect()).abs();
            }
        };
        add(&mut old, &found.effects, &world);
        add(&mut new, &predicted, &fresh);
    }
    for e in 0..2 {
        assert!(new[e] < 1.15 * old[e], "cohort {old:?}, new {new:?}");
    }
}

fn constraints(cohort: &Cohort) -> Constraints {
    let caliper = Caliper { covariate: cohort.names()[14].clone(), width: 0.4, in_sd: true };
    Constraints { exact: vec![cohort.names()[1].clone()], calipers: vec![caliper], exclude_self: false }
}

#[test]
fn constraints_are_kept_and_who_cannot_be_served_is_said() {
    let world = simulate(Scenario::BothOverlap, 700, false, 5);
    let cohort = &world.cohort;
    let asked = options(3, constraints(cohort));
    let found = run(cohort, &asked);
    assert!(!found.unserved.is_empty() && found.units.len() > 300, "{} served", found.units.len());
    assert_eq!(found.units.len() + found.unserved.len(), 700);
    let sd = {
        let column: Vec<f64> = (0..700).map(|i| cohort.covariates(i)[14]).collect();
        let mean = column.iter().sum::<f64>() / 700.0;
        (column.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 699.0).sqrt()
    };
    let ground = Ground::of_fit(&found.fit, cohort).expect("constraints that fit");
    let search = Search::new(&found.fit, &ground);
    let mut smaller = 0;
    for (&i, effect) in found.units.iter().zip(&found.effects) {
        let x = cohort.covariates(i as usize);
        let groups = search.groups(x, Some(i), None);
        for g in groups.cure.iter().chain(&groups.time) {
            assert!(g.units.len() >= 25 && !g.units.contains(&i));
            for &m in &g.units {
                let y = cohort.covariates(m as usize);
                assert!(x[1] == y[1] && (x[14] - y[14]).abs() <= 0.4 * sd * (1.0 + 1e-12));
            }
        }
        smaller += usize::from(groups.cure.control.units.len() < found.fit.fold_of(Some(i)).group_size.cure);
        assert_eq!(groups.effect(cohort.horizon(), effect.corrected).as_ref(), Some(effect), "shown is used");
    }
    assert!(smaller > 0, "some have fewer candidates than K and are served all the same");
    for (i, why) in &found.unserved {
        let x = cohort.covariates(*i as usize);
        for arm in Arm::BOTH {
            let candidates = (0..700u32).filter(|&m| {
                let y = cohort.covariates(m as usize);
                m != *i && cohort.arm(m as usize) == arm && x[1] == y[1] && (x[14] - y[14]).abs() <= 0.4 * sd
            });
            let n = candidates.count();
            assert_eq!(why.candidates[arm], n.min(25), "unit {i}");
        }
    }
    // Saved and reopened, asked for again, and audited.
    let mut corrected = vec![None; 700];
    found.units.iter().zip(&found.effects).for_each(|(&i, e)| corrected[i as usize] = e.corrected);
    let some = found.effects[0].corrected.expect("corrected");
    let corrected: Vec<_> = corrected.into_iter().map(|c| c.unwrap_or(some)).collect();
    let again = Analysis::from_fit(found.fit.clone(), &corrected, cohort, &Unwatched).expect("reopened");
    assert_eq!((&again.units, &again.effects, &again.unserved), (&found.units, &found.effects, &found.unserved));
    let own: Vec<Option<u32>> = (0..700).map(Some).collect();
    let anew = found.fit.estimate_under_constraints(cohort, cohort.all_covariates(), &own, &Unwatched).expect("anew");
    for (q, &i) in found.units.iter().enumerate() {
        assert_eq!(anew[i as usize].as_ref(), Ok(&found.effects[q]));
    }
    found.unserved.iter().for_each(|(i, why)| assert_eq!(anew[*i as usize].as_ref(), Err(why)));
    let audit = dvim::internal::audit::Audit::of(cohort, &found, &[]).expect("an audit");
    let all = audit.averages.iter().find(|a| a.estimand == "cure_effect" && a.population == "all").expect("an average");
    assert_eq!(all.n_units, found.units.len());
    assert!(audit.censoring.is_none() && all.se.is_some_and(|se| se > 0.0 && se < 0.2));
}

/// Under constraints too: the same on any threads and in any order, and no outcome reaches its own estimate.
#[test]
fn constrained_runs_are_honest_and_do_not_depend_on_threads_or_order() {
    let world = simulate(Scenario::BothOverlap, 600, false, 9);
    let mut asked = options(3, constraints(&world.cohort));
    if let Estimator::Adjusted(a) = &mut asked.estimator {
        (a.family, a.group_size, a.weights) = (Some(dvim::internal::joint::Family::LogNormal), Some(30), [1.0; 4]);
        // Shares of the learners may look at all units, as K and w may.
        a.learners = dvim::internal::options::Learners::Boosted;
    }
    let with = |n: usize, cohort: &Cohort| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().expect("a pool");
        pool.install(|| run(cohort, &asked))
    };
    let changed = |change: &dyn Fn(&mut Units)| {
        let mut units = world.cohort.to_units();
        change(&mut units);
        Cohort::from_parts(units, None, world.cohort.horizon()).expect("sound parts")
    };
    let one = with(1, &world.cohort);
    assert_eq!(one, with(2, &world.cohort));
    let reversed = changed(&|u| {
        u.ids = Ids::Integers((1..=600).rev().collect());
        u.time.reverse();
        u.event.reverse();
        u.arm.reverse();
        u.covariates = u.covariates.chunks_exact(20).rev().flatten().copied().collect();
    });
    let backwards = with(2, &reversed);
    assert_eq!((&one.effects, &one.units), (&backwards.effects, &backwards.units));
    let unit = one.units[17] as usize;
    let other = with(
        2,
        &changed(&|u| {
            u.time[unit] = 0.5 * u.time[unit] + 1.0;
            u.event[unit] = !u.event[unit];
        }),
    );
    assert_eq!(one.effects[17], other.effects[17]);
    assert_ne!(one.effects, other.effects);
}

/// Groups of other sizes are corrected by the models that left the patient out; at the run's own size that is the run's
/// estimate, to the last bit.
#[test]
fn a_patient_of_the_cohort_is_corrected_at_any_group_size() {
    let world = simulate(Scenario::BothOverlap, 600, false, 3);
    let cohort = &world.cohort;
    let found = run(cohort, &options(3, Constraints::default()));
    let (fit, horizon) = (&found.fit, cohort.horizon());
    let first = fit.first();
    let newcomers = Newcomers::new(fit, cohort).expect("constraints that fit");
    let ground = Ground::of_fit(fit, cohort).expect("constraints that fit");
    let search = Search::new(&found.fit, &ground);
    for i in (0..600).step_by(37) {
        let x = cohort.covariates(i);
        let own = search.groups(x, Some(i as u32), None);
        let corrected = own.correct(x, Some(i as u32), &newcomers, fit.options.fewest(), horizon);
        assert_eq!(corrected, found.effects[i].corrected, "unit {i}");
        let groups = search.groups(x, Some(i as u32), Some(40));
        let corrected = groups.correct(x, Some(i as u32), &newcomers, 40, horizon).expect("served");
        let corrector = first.folds[first.fold_of[i] as usize].corrector.as_ref().expect("adjusted");
        let predict = |i: usize| {
            corrector.model.predictor.predict(&fit.description.metrics.cure.scaling.apply(cohort.covariates(i)))
        };
        for z in Arm::BOTH {
            let members = &groups.cure[z].units;
            assert_eq!(members.len(), 40);
            let scaled = |m: u32| fit.description.metrics.cure.scaling.apply(cohort.covariates(m as usize));
            let expect = |m: u32| corrector.model.predictor.expect(z, &scaled(m)).cure_probability;
            let expected = members.iter().map(|&m| expect(m)).sum::<f64>() / 40.0;
            let share = (40.0 * groups.cure[z].curve.summary(horizon).survival + 0.5 * expected) / 40.5;
            let value = predict(i)[z].cure_logit + corrector.weight.cure * (logit(share) - logit(expected));
            assert!((logit(corrected.cure_probability[z]) - value).abs() < 1e-10, "unit {i}");
        }
    }
}

#[test]
fn values_are_held_against_the_cohort() {
    let cohort = simulate(Scenario::BothOverlap, 200, false, 1).cohort;
    let seen = ranges(&cohort);
    let table = |j: usize, value: f64| {
        let column = |r: &Range| {
            let x = if r.column == j { value } else { r.low };
            Column { name: r.name.clone(), values: Values::Number(vec![x].into()) }
        };
        Table::new(seen.iter().map(column).collect()).expect("columns of one length")
    };
    let last = seen.last().expect("there are covariates");
    let (j, width) = (last.column, last.high - last.low);
    assert_eq!(read_new(&cohort, &table(j, last.high)).expect("on the border").outside, [vec![]]);
    let beyond = read_new(&cohort, &table(j, last.high + 0.5 * width)).expect("outside");
    assert_eq!(beyond.outside[0][0].flag(), format!("off_support:{}", last.name));
    for absurd in [last.high + 11.0 * width, -9999.0, 1e23] {
        let problems = read_new(&cohort, &table(j, absurd)).expect_err("absurd");
        assert_eq!((problems[0].kind.code(), problems[0].column.as_ref()), ("far_value", Some(&last.name)));
    }
}
