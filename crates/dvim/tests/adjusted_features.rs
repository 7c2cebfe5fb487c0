//! Case weights, clusters, delayed entry and other causes under the adjusted estimator.

use dvim::internal::analysis::{self, Analysis};
use dvim::internal::audit::Audit;
use dvim::internal::cohort::{Arm, Cohort, Units};
use dvim::internal::crossfit::deal_folds;
use dvim::internal::fold::Fit;
use dvim::internal::options::{AdjustedOptions, Estimator, Options};
use dvim::internal::outcome::Extras;
use dvim::internal::simulate::{Scenario, simulate};
use dvim::internal::watch::Unwatched;

fn options() -> Options {
    Options { estimator: Estimator::Adjusted(AdjustedOptions::default()), ..Options::default() }
}

fn analyse(cohort: &Cohort) -> Analysis {
    analysis::run(cohort, &options(), &Unwatched).expect("an analysis")
}

/// A simulated cohort with something changed before it goes through the door.
fn edited(n: usize, edit: impl Fn(&mut Units)) -> Cohort {
    let world = simulate(Scenario::BothOverlap, n, true, 11);
    let mut units = world.cohort.to_units();
    edit(&mut units);
    Cohort::from_parts(units, None, world.cohort.horizon()).expect("a cohort")
}

fn all_features(n: usize) -> Extras {
    Extras {
        weight: Some((0..n).map(|i| 0.5 + (i % 4) as f64).collect()),
        entry: None,
        cluster: Some((0..n as u32).map(|i| (i * 7) % 30).collect()),
        competing: None,
    }
}

fn with_everything(units: &mut Units) {
    let n = units.time.len();
    units.extras = all_features(n);
    units.extras.entry =
        Some(units.time.iter().enumerate().map(|(i, t)| if i % 3 == 0 { 0.2 * t } else { 0.0 }).collect());
    let other: Vec<bool> = (0..n).map(|i| units.event[i] && i % 5 == 0).collect();
    units.event.iter_mut().zip(&other).for_each(|(e, o)| *e &= !o);
    units.extras.competing = Some(other);
}

/// Weights that are all 3, clusters of one, entries at 0 and a cause that nobody has: the cohort without, to the last
/// bit.
#[test]
fn what_says_nothing_changes_nothing() {
    let plain = analyse(&edited(400, |_| ()));
    let same = analyse(&edited(400, |units| {
        units.extras = Extras {
            weight: Some(vec![3.0; 400]),
            entry: Some(vec![0.0; 400]),
            cluster: Some((0..400).collect()),
            competing: Some(vec![false; 400]),
        }
    }));
    assert_eq!(plain.effects, same.effects);
    assert_eq!(plain.fit.residuals, same.fit.residuals);
}

/// The unit of weights does not matter.
#[test]
fn only_ratios_of_weights_matter() {
    let by = |c: f64| {
        edited(400, |units| units.extras.weight = Some((0..400).map(|i| c * (1.0 + (i % 3) as f64)).collect()))
    };
    let (one, other) = (by(1.0), by(8.0));
    let (a, b) = (analyse(&one), analyse(&other));
    for (a, b) in a.effects.iter().zip(&b.effects) {
        assert!((a.cure() - b.cure()).abs() < 1e-9, "{} {}", a.cure(), b.cure());
    }
    let average = |cohort: &Cohort, found: &Analysis| {
        let audit = Audit::of(cohort, found, &[]).expect("an audit");
        let of =
            |a: &&dvim::internal::audit::average::AverageEffect| a.estimand == "cure_effect" && a.population == "all";
        audit.averages.iter().find(of).map(|a| (a.estimate.unwrap(), a.se.unwrap())).unwrap()
    };
    let (x, y) = (average(&one, &a), average(&other, &b));
    assert!((x.0 - y.0).abs() < 1e-9 && (x.1 - y.1).abs() < 1e-9, "{x:?} {y:?}");
}

/// Nobody is estimated by a model or by a group that saw his cluster.
#[test]
fn clusters_are_left_out_whole() {
    let cohort = edited(600, |units| units.extras = Extras { weight: None, ..all_features(600) });
    let clusters = cohort.extras().cluster.clone().expect("clusters");
    let folds = deal_folds(&cohort, 10, 1);
    for (a, c) in clusters.iter().enumerate() {
        let same = (0..600).filter(|&b| clusters[b] == *c);
        same.for_each(|b| assert_eq!(folds[a], folds[b]));
    }
    for fold in 0..10 {
        let size = folds.iter().filter(|f| **f == fold).count();
        assert!((40..=80).contains(&size), "{size}");
    }
    let found = analyse(&cohort);
    for unit in [0, 17, 333] {
        let groups = found.fit.match_groups(&cohort, unit);
        for group in groups.into_iter().flatten() {
            assert!(group.units.iter().all(|&i| clusters[i as usize] != clusters[unit]));
        }
    }
    // An outcome of his cluster changes nothing of his estimate but through scalars that everybody shares.
    let before = &found.fit;
    let again: &Fit = &analyse(&cohort).fit;
    assert_eq!(before, again);
}

#[test]
fn few_clusters_are_fewer_folds_and_very_few_are_refused() {
    let of = |n: u32| edited(400, |units| units.extras.cluster = Some((0..400).map(|i| i % n).collect()));
    assert_eq!(analyse(&of(7)).fit.first().folds.len(), 7);
    let refused = analysis::run(&of(3), &options(), &Unwatched).expect_err("three clusters");
    assert!(refused.to_string().contains("clusters"), "{refused}");
}

/// All of them at once: finite, in any order of the rows, and every patient of the cohort found again.
#[test]
fn everything_at_once() {
    let cohort = edited(500, with_everything);
    let found = analyse(&cohort);
    for e in &found.effects {
        assert!(e.cure().is_finite() && e.time().is_some_and(f64::is_finite));
    }
    let reversed = edited(500, |units| {
        with_everything(units);
        let back: Vec<u32> = (0..500).rev().collect();
        let ids: Vec<i64> = (1..=500).rev().collect();
        *units = Units {
            ids: dvim::internal::table::Ids::Integers(ids),
            time: units.time.iter().rev().copied().collect(),
            event: units.event.iter().rev().copied().collect(),
            arm: units.arm.iter().rev().copied().collect(),
            covariates: units.covariates.chunks_exact(20).rev().flatten().copied().collect(),
            names: units.names.clone(),
            labels: units.labels.clone(),
            extras: units.extras.select(&back),
        };
    });
    assert_eq!(found.effects, analyse(&reversed).effects);
    let own: Vec<Option<u32>> = (0..500).map(Some).collect();
    let again =
        found.fit.estimate_under_constraints(&cohort, cohort.all_covariates(), &own, &Unwatched).expect("again");
    for (a, b) in found.effects.iter().zip(again) {
        assert_eq!(a, &b.expect("served"));
    }
    let audit = Audit::of(&cohort, &found, &[]).expect("an audit");
    for a in audit.averages.iter().filter(|a| a.population == "all" && !a.estimand.starts_with("median")) {
        assert!(a.estimate.is_some_and(f64::is_finite) && a.se.is_some_and(|se| se > 0.0 && se.is_finite()), "{a:?}");
    }
    assert!(audit.heterogeneity.cure.is_some());
    assert!(cohort.units_of(Arm::Treated).len() > 100);
}
