//! Patients who are equally far share places, so that no number depends on how patients are numbered.

use dvim::internal::analysis::{self, Analysis};
use dvim::internal::arm::Arm;
use dvim::internal::audit::Audit;
use dvim::internal::cohort::Cohort;
use dvim::internal::constraint::Constraints;
use dvim::internal::effect::{Corrected, Effect};
use dvim::internal::estimand::Estimand;
use dvim::internal::fold::Fit;
use dvim::internal::options::{AdjustedOptions, Estimator, Options};
use dvim::internal::simulate::{Scenario, simulate};
use dvim::internal::table::Ids;
use dvim::internal::watch::Unwatched;

/// A cohort of 18 patterns: two covariates of three values and one of two, with times on a grid.
fn patterns(n: usize, seed: u64) -> Cohort {
    let mut units = simulate(Scenario::BothOverlap, n, false, seed).cohort.to_units();
    let p = units.names.len();
    let coarse = |x: f64, step: f64, most: f64| (x / step).round().clamp(-most, most);
    let kept = |i: usize| {
        let x = &units.covariates[i * p..(i + 1) * p];
        [coarse(x[0], 0.8, 1.0), coarse(x[16], 0.8, 1.0), f64::from(x[18] > 0.0)]
    };
    units.covariates = (0..n).flat_map(kept).collect();
    units.names = ["a", "b", "c"].map(String::from).to_vec();
    units.time.iter_mut().for_each(|t| *t = t.ceil());
    Cohort::from_parts(units, None, 800.0).expect("sound parts")
}

/// The same patients under other numbers: the unit that was at position i is now at `to[i]`.
fn renumbered(cohort: &Cohort) -> (Cohort, Vec<usize>) {
    let n = cohort.n_units();
    let to: Vec<usize> = (0..n).map(|i| (i * 7 + 3) % n).collect();
    assert!(!n.is_multiple_of(7), "a permutation");
    let mut units = cohort.to_units();
    units.ids = Ids::Integers(to.iter().map(|&i| i as i64 + 1).collect());
    (Cohort::from_parts(units, None, cohort.horizon()).expect("sound parts"), to)
}

/// What was learned, of the same patients under their other numbers.
fn moved(fit: &Fit, to: &[usize]) -> Fit {
    fn of<T: Clone>(values: &[T], to: &[usize]) -> Vec<T> {
        let mut out = values.to_vec();
        values.iter().zip(to).for_each(|(v, &i)| out[i] = v.clone());
        out
    }
    let mut fit = fit.clone();
    fit.is_training = of(&fit.is_training, to);
    if !fit.residuals.is_empty() {
        fit.residuals = of(&fit.residuals, to);
    }
    fit.deals.iter_mut().for_each(|deal| deal.fold_of = of(&deal.fold_of, to));
    fit
}

fn numbers(e: &Effect) -> Vec<f64> {
    let mut out = Vec::new();
    for of_arms in e.groups.iter() {
        for g in of_arms.iter() {
            let c = &g.curve;
            out.extend([c.survival, c.event_area, c.greenwood, c.area_mean, c.area_spread, c.worth, g.diameter]);
            out.extend([c.n_at_risk as f64, c.n_events as f64]);
        }
    }
    for arm in Arm::BOTH {
        out.extend(e.corrected.iter().flat_map(|c| [c.cure_probability[arm], c.mean_event_time[arm]]));
        out.extend(e.corrected.iter().flat_map(|c| Estimand::BOTH.map(|s| c.spread[s].variance[arm])));
    }
    out
}

fn assert_close(a: &[f64], b: &[f64], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-12 * (1.0 + x.abs()), "{what}: {x} {y}");
    }
}

fn all_options() -> Vec<Options> {
    let exact = Constraints { exact: vec!["c".into()], ..Constraints::default() };
    let adjusted = |constraints: Constraints| {
        let estimator =
            Estimator::Adjusted(AdjustedOptions { splits: Some(3), folds: 3, ..AdjustedOptions::default() });
        Options { estimator, constraints, ..Options::default() }
    };
    vec![
        Options { estimator: Estimator::Paper, ..Options::default() },
        Options { estimator: Estimator::Paper, group_size: 20, constraints: exact.clone(), ..Options::default() },
        adjusted(Constraints::default()),
        adjusted(exact),
    ]
}

/// With the same training and estimation sets, other numbers leave every number but for the order of sums, in fits,
/// predictions and audits: to 1e-12.
#[test]
fn numbers_of_patients_do_not_matter() {
    let cohort = patterns(900, 5);
    let (other, to) = renumbered(&cohort);
    for options in all_options() {
        let found = analysis::run(&cohort, &options, &Unwatched).expect("a run");
        let fit = moved(&found.fit, &to);
        let own: Vec<Option<u32>> = found.units.iter().map(|&i| Some(i)).collect();
        let again: Vec<Option<u32>> = found.units.iter().map(|&i| Some(to[i as usize] as u32)).collect();
        let rows = cohort.rows_of(&found.units);
        let before = found.fit.estimate_under_constraints(&cohort, &rows, &own, &Unwatched).expect("estimates");
        let after = fit.estimate_under_constraints(&other, &rows, &again, &Unwatched).expect("estimates");
        for (q, (before, after)) in before.iter().zip(&after).enumerate() {
            let (before, after) = (before.as_ref().expect("served"), after.as_ref().expect("served"));
            assert_close(&numbers(before), &numbers(after), &format!("unit {q}"));
            if found.fit.deals.len() == 1 {
                assert_close(&numbers(before), &numbers(&found.effects[q]), &format!("unit {q} as in the run"));
            }
        }
        // The run as it is reopened, and its audit.
        let mut corrected: Vec<Corrected> = Vec::new();
        if found.fit.is_corrected() {
            let mut all: Vec<Option<Corrected>> = vec![None; cohort.n_units()];
            found.units.iter().zip(&found.effects).for_each(|(&i, e)| all[to[i as usize]] = e.corrected);
            let any = found.effects[0].corrected.expect("corrected");
            corrected = all.into_iter().map(|c| c.unwrap_or(any)).collect();
        }
        let reopened = Analysis::from_fit(fit, &corrected, &other, &Unwatched).expect("reopened");
        let [first, second] = [(&cohort, &found), (&other, &reopened)]
            .map(|(cohort, found)| Audit::of(cohort, found, &[]).expect("an audit").balance.expect("balance"));
        for (a, b) in first.covariates.iter().zip(&second.covariates) {
            for (a, b) in [(a.cure, b.cure), (a.time, b.time)] {
                assert!((a.difference - b.difference).abs() < 1e-9 && (a.ks - b.ks).abs() < 1e-9);
            }
        }
        for (a, b) in first.uses.iter().zip(&second.uses) {
            let of = |u: &dvim::internal::audit::balance::Uses| (u.n_unused, u.most, u.effective_size);
            assert_eq!(of(a).0, of(b).0);
            assert!((of(a).1 - of(b).1).abs() < 1e-9 && (of(a).2 - of(b).2).abs() < 1e-6 * of(a).2);
        }
    }
}

/// A patient counts as often as others of the same pattern and arm, so that nobody who is near is left out; what is
/// matched exactly is balanced exactly, whatever the sizes of the groups; and those behind one number count K together.
#[test]
fn patients_of_one_pattern_count_alike() {
    let cohort = patterns(900, 6);
    for options in all_options() {
        let found = analysis::run(&cohort, &options, &Unwatched).expect("a run");
        let balance = Audit::of(&cohort, &found, &[]).expect("an audit").balance.expect("balance");
        for uses in &balance.uses {
            // Under the adjusted estimator a patient is not in his own group, so those of other folds count otherwise.
            if found.fit.is_corrected() {
                continue;
            }
            for (m, &i) in uses.units.iter().enumerate() {
                let alike = |j: &u32| cohort.covariates(*j as usize) == cohort.covariates(i as usize);
                let first = uses.units.iter().position(alike).expect("itself");
                assert!((uses.counts[m] - uses.counts[first]).abs() < 1e-9, "{i}");
            }
        }
        if !options.constraints.exact.is_empty() {
            let c = &balance.covariates[2];
            assert!(c.cure.difference.abs() < 1e-12 && c.time.difference.abs() < 1e-12, "{c:?}");
        }
        let groups = found.fit.match_groups(&cohort, found.units[0] as usize);
        let (k, effect) = (found.fit.fold_of(Some(found.units[0])).group_size, &found.effects[0]);
        for (estimand, arm) in [(Estimand::Cure, Arm::Control), (Estimand::Time, Arm::Treated)] {
            let (group, given) = (&groups[estimand][arm], &effect.groups[estimand][arm]);
            assert!(group.size() <= k[estimand] && group.is_shared() == (group.units.len() > group.size()));
            assert!((group.curve.summary(800.0).survival - given.curve.survival).abs() < 1e-12);
            assert!((group.diameter().expect("members") - given.diameter).abs() < 1e-12);
        }
    }
}

/// Rows in any order give the same bits.
#[test]
fn rows_in_any_order_give_the_same_bits() {
    let cohort = patterns(600, 7);
    let mut units = cohort.to_units();
    let order: Vec<usize> = (0..600).map(|i| (i * 7 + 3) % 600).collect();
    let p = units.names.len();
    let before = units.clone();
    units.ids = Ids::Integers(order.iter().map(|&i| i as i64 + 1).collect());
    units.time = order.iter().map(|&i| before.time[i]).collect();
    units.event = order.iter().map(|&i| before.event[i]).collect();
    units.arm = order.iter().map(|&i| before.arm[i]).collect();
    units.covariates = order.iter().flat_map(|&i| before.covariates[i * p..(i + 1) * p].to_vec()).collect();
    let shuffled = Cohort::from_parts(units, None, 800.0).expect("sound parts");
    let mut plain = before;
    plain.ids = Ids::Integers((1..=600).collect());
    let plain = Cohort::from_parts(plain, None, 800.0).expect("sound parts");
    for options in all_options() {
        let run = |cohort: &Cohort| analysis::run(cohort, &options, &Unwatched).expect("a run").effects;
        assert_eq!(run(&plain), run(&shuffled));
    }
}
