//! Does the audit see what it should? Injected faults must be caught; identities must hold.

use dvim::internal::analysis::{self, Analysis, average};
use dvim::internal::audit::Audit;
use dvim::internal::audit::average::{By, average_effects};
use dvim::internal::audit::balance::{Balance, CovariateBalance};
use dvim::internal::audit::follow_up::{FollowUp, Verdict};
use dvim::internal::audit::passes::{Gather, Group, Walk};
use dvim::internal::audit::sensitivity;
use dvim::internal::audit::verdict;
use dvim::internal::cohort::{Arm, Cohort};
use dvim::internal::constraint::Constraints;
use dvim::internal::estimand::Estimand;
use dvim::internal::options::{AdjustedOptions, Estimator, Options};
use dvim::internal::simulate::{Scenario, Simulated, simulate};
use dvim::internal::survival::Summary;
use dvim::internal::watch::Unwatched;

fn world(n: usize) -> (Simulated, Analysis) {
    let world = simulate(Scenario::BothOverlap, n, false, 3);
    let found = analysis::run(&world.cohort, &Options::paper(), &Unwatched).expect("a run");
    (world, found)
}

#[test]
fn averages_are_means_of_the_effects_and_populations_add_up() {
    let (world, found) = world(2000);
    let by = [By::parse("x1"), By::parse("x15:4")];
    let averages = average_effects(&world.cohort, &found, &by).expect("these covariates exist");
    let of = |estimand: &str, population: &str| {
        averages.iter().find(|a| a.estimand == estimand && a.population == population).expect("it is listed")
    };
    let mean = average(found.effects.iter().map(|e| Some(e.cure())));
    assert!((of("cure_effect", "all").estimate.unwrap() - mean.mean.unwrap()).abs() < 1e-12);
    assert!((of("cure_effect", "all").sd.unwrap() - mean.sd.unwrap()).abs() < 1e-12);
    let time = average(found.effects.iter().map(|e| e.time()));
    assert!((of("time_effect", "all").estimate.unwrap() - time.mean.unwrap()).abs() < 1e-9);
    for (parts, what) in [(vec!["treated", "control"], "arms"), (vec!["x1 = 0", "x1 = 1"], "x1")] {
        let parts: Vec<_> = parts.iter().map(|p| of("cure_effect", p)).collect();
        let n: usize = parts.iter().map(|p| p.n_units).sum();
        assert_eq!(n, found.units.len(), "{what}");
        let sum: f64 = parts.iter().map(|p| p.estimate.unwrap() * p.n_units as f64).sum();
        assert!((sum / n as f64 - mean.mean.unwrap()).abs() < 1e-12, "{what}");
        assert!(parts.iter().all(|p| p.se.unwrap() > of("cure_effect", "all").se.unwrap()), "fewer patients, wider");
    }
    let quarters = averages.iter().filter(|a| a.estimand == "cure_effect" && a.population.starts_with("x15 ")).count();
    assert_eq!(quarters, 4);
    let (p1, p0) = (of("cure_treated", "all").estimate.unwrap(), of("cure_control", "all").estimate.unwrap());
    assert!((of("cure_ratio", "all").estimate.unwrap() - p1 / p0).abs() < 1e-12);
    let needed = of("number_needed_to_treat", "all");
    assert!((needed.estimate.unwrap() * (p1 - p0) - 1.0).abs() < 1e-12);
    for a in &averages {
        if let (Some(v), Some(low), Some(high)) = (a.estimate, a.low, a.high) {
            assert!(low <= v && v <= high, "{a:?}");
        }
    }
    assert!(average_effects(&world.cohort, &found, &[By::parse("x15")]).is_err(), "too many values without bins");
    assert!(average_effects(&world.cohort, &found, &[By::parse("xq")]).is_err(), "no such covariate");
}

/// When every group is a whole arm, the average is the difference of the arms' curves, and so is its standard error,
/// but for the factor m/(m − 1) of each arm's variance.
#[test]
fn groups_of_everybody_give_greenwood() {
    let world = simulate(Scenario::CureOnly, 600, false, 8);
    let cohort = &world.cohort;
    // Both pools must have the same size for one K to take all of both: drop units until they do.
    let mut units = cohort.to_units();
    let sizes = Arm::BOTH.map(|z| cohort.units_of(z).len());
    let (larger, by) =
        if sizes[0] > sizes[1] { (Arm::Control, sizes[0] - sizes[1]) } else { (Arm::Treated, sizes[1] - sizes[0]) };
    let mut dropped = 0;
    let keep: Vec<usize> = (0..units.time.len())
        .filter(|&i| {
            let drop = units.arm[i] == larger && dropped < by;
            dropped += usize::from(drop);
            !drop
        })
        .collect();
    let p = units.names.len();
    units.covariates = keep.iter().flat_map(|&i| units.covariates[i * p..(i + 1) * p].to_vec()).collect();
    units.time = keep.iter().map(|&i| units.time[i]).collect();
    units.event = keep.iter().map(|&i| units.event[i]).collect();
    units.arm = keep.iter().map(|&i| units.arm[i]).collect();
    units.ids = dvim::internal::table::Ids::Rows(keep.len());
    let cohort = Cohort::from_parts(units, None, 800.0).expect("sound parts");
    let arm = cohort.units_of(Arm::Treated).len();
    let k = arm - (arm as f64 * 0.35).round() as usize;
    let found = analysis::run(&cohort, &Options { group_size: k, ..Options::paper() }, &Unwatched).expect("a run");
    let averages = average_effects(&cohort, &found, &[]).expect("no subgroup");
    let one = &found.effects[0];
    let variance = |se: Option<f64>, m: usize| se.unwrap().powi(2) * m as f64 / (m as f64 - 1.0);
    let cure: f64 = one.groups.cure.iter().map(|g| variance(g.curve.survival_se(), k)).sum();
    let of_time = one.groups.time.iter();
    let time: f64 = of_time.map(|g| variance(g.curve.mean_event_time_se(), g.curve.n_events)).sum();
    for (estimand, variance) in [("cure_effect", cure), ("time_effect", time)] {
        let a = averages.iter().find(|a| a.estimand == estimand && a.population == "all").expect("it is listed");
        assert!((a.se.unwrap() / variance.sqrt() - 1.0).abs() < 1e-9, "{estimand}: {:?} {variance}", a.se);
    }
}

/// Cut follow-up short and the audit must say so.
#[test]
fn short_follow_up_is_caught() {
    let world = simulate(Scenario::CureOnly, 4000, false, 5);
    let of = |units: dvim::internal::cohort::Units, horizon: f64, arm: Option<Arm>| -> FollowUp {
        let all = FollowUp::of_all(&Cohort::from_parts(units, None, horizon).expect("sound parts"));
        all.into_iter().find(|f| f.arm == arm).expect("all, treated and control")
    };
    let verdict = |units, horizon, arm| of(units, horizon, arm).verdict;
    let control = Some(Arm::Control);
    assert_eq!(verdict(world.cohort.to_units(), 800.0, control), Verdict::Sufficient, "as it is");
    let cut = |end: f64| {
        let mut units = world.cohort.to_units();
        for i in 0..units.time.len() {
            if units.time[i] > end {
                (units.time[i], units.event[i]) = (end, false);
            }
        }
        units
    };
    // The door refuses a cohort of which nobody reaches the horizon; the audit would say so too.
    assert!(Cohort::from_parts(cut(500.0), None, 800.0).is_err(), "everybody is lost at 500");
    let lost: Vec<(f64, bool)> = cut(500.0).time.iter().zip(cut(500.0).event).map(|(t, e)| (*t, e)).collect();
    assert_eq!(FollowUp::of_outcomes(None, &lost, &lost, 800.0).verdict, Verdict::NotReached);
    assert_eq!(verdict(cut(40.0), 40.0, control), Verdict::StillFalling, "a horizon in the thick of the events");
    assert_eq!(verdict(cut(40.0), 40.0, None), Verdict::StillFalling);
    let mut few = cut(500.0);
    (0..3).for_each(|i| (few.time[i], few.event[i]) = (900.0, false));
    assert_eq!(verdict(few, 800.0, None), Verdict::FewAtHorizon);
    let short = of(cut(40.0), 40.0, control);
    let gone = short.extrapolation.expect("the curve flattens");
    assert!(gone.p < 0.05 && gone.further > 0.05, "the tail goes on, and the extrapolation sees it: {gone:?}");
}

/// Where a small p-value misleads: one patient censored very late makes Maller and Zhou's α small, although the curve
/// still falls; a window in which nobody is watched has no events, and that proves nothing.
#[test]
fn where_a_small_p_value_misleads() {
    let falling: Vec<(f64, bool)> = (1..=200).map(|i| (f64::from(i) / 2.0, i % 2 == 0)).collect();
    let of = |units: &[(f64, bool)], h: f64| {
        let capped: Vec<(f64, bool)> = units.iter().map(|&(t, e)| if t < h { (t, e) } else { (h, false) }).collect();
        FollowUp::of_outcomes(None, units, &capped, h)
    };
    let plain = of(&falling, 99.0);
    assert!(plain.maller_zhou.expect("events").alpha > 0.5 && plain.p_practical > 0.5);
    let mut one_late = falling.clone();
    one_late.push((150.0, false));
    let misled = of(&one_late, 99.0);
    assert!(misled.maller_zhou.expect("events").alpha < 0.001, "by one patient");
    assert!(misled.p_practical > 0.5 && misled.verdict != Verdict::Sufficient);
    let unwatched: Vec<(f64, bool)> = (1..=100).map(|i| (f64::from(i) / 2.0, i % 2 == 1)).collect();
    let empty = of(&unwatched, 100.0);
    assert_eq!((empty.n_window_events, empty.p_practical, empty.verdict), (0, 1.0, Verdict::NotReached));
}

#[test]
fn balance_adds_up() {
    let (world, found) = world(1500);
    let balance = Balance::of(&Walk::new(&world.cohort, &found));
    let k = found.fit.options.group_size as f64;
    for uses in &balance.uses {
        assert_eq!(uses.counts.iter().sum::<f64>(), k * found.units.len() as f64, "each group has K members");
        assert!(uses.effective_size > k && uses.effective_size <= uses.counts.len() as f64);
        assert_eq!(uses.counts.iter().copied().fold(0.0, f64::max), uses.most);
    }
    // x20 decides on treatment and on cure: matching for cure must bring the arms nearer (K = 50 of 480 cannot do it
    // all: the audit shows that).
    let x20 = &balance.covariates[19];
    assert!(x20.before.difference > 0.2 && x20.cure.difference.abs() < 0.75 * x20.before.difference, "{x20:?}");
    assert!(balance.covariates.iter().all(|c| (0.0..=1.0).contains(&c.cure.ks)));
    assert!((balance.alone.len() as f64) < 0.02 * found.units.len() as f64, "here the arms overlap");
    let overlap = balance.overlap.expect("a propensity model");
    assert!(overlap.converged && overlap.extreme_share < 0.05);
}

/// Patients of one arm far away from the other are named.
#[test]
fn units_without_comparable_patients_are_named() {
    let mut units = simulate(Scenario::BothOverlap, 1500, false, 3).cohort.to_units();
    let p = units.names.len();
    let lonely: Vec<usize> = (0..1500).filter(|&i| units.arm[i] == Arm::Treated).take(20).collect();
    for &i in &lonely {
        (16..20).for_each(|j| units.covariates[i * p + j] += 30.0);
    }
    let cohort = Cohort::from_parts(units, None, 800.0).expect("sound parts");
    let found = analysis::run(&cohort, &Options::paper(), &Unwatched).expect("a run");
    let named: Vec<u32> = Balance::of(&Walk::new(&cohort, &found)).alone.iter().map(|a| a.0).collect();
    let expected = lonely.iter().map(|&i| i as u32).filter(|i| found.units.contains(i));
    for i in expected {
        assert!(named.contains(&i), "unit {i} has nobody near");
    }
    assert!(named.len() < 60, "{}", named.len());
}

#[test]
fn sensitivity_identities() {
    let (world, found) = world(2000);
    let averages = average_effects(&world.cohort, &found, &[]).expect("no subgroup");
    let cure = averages.iter().find(|a| a.estimand == "cure_effect").unwrap().estimate.unwrap();
    let c = sensitivity::confounding(&averages, 0.5).expect("a ratio");
    assert_eq!(c.bounds[0].0, 1.0);
    assert!((c.bounds[0].1 - cure).abs() < 1e-12 && (c.bounds[0].2 - cure).abs() < 1e-12, "no confounder, no change");
    assert!(c.bounds.windows(2).all(|w| w[1].1 <= w[0].1 && w[1].2 >= w[0].2), "stronger, wider");
    assert!(c.e_value >= c.e_value_interval && c.e_value_interval >= 1.0);
    // Ding and VanderWeele's own numbers: RR 3.9 has the E-value 7.26 (VanderWeele & Ding 2017, table 2).
    assert!((sensitivity::e_value(3.9) - 7.26).abs() < 0.005 && sensitivity::e_value(1.0) == 1.0);
    assert!((sensitivity::e_value(0.5) - sensitivity::e_value(2.0)).abs() < 1e-12);

    let s = sensitivity::censoring(&Walk::new(&world.cohort, &found)).expect("units");
    assert!((s.estimated - cure).abs() < 1e-12);
    let inside = [s.all_events, s.estimated, s.all_cured];
    assert!(inside.iter().all(|v| s.least <= *v && *v <= s.most), "{s:?}");

    let curve = sensitivity::horizon_curve(&Walk::new(&world.cohort, &found));
    let last = curve.last().expect("a grid");
    let all = |estimand: &str| averages.iter().find(|a| a.estimand == estimand && a.population == "all").unwrap();
    assert_eq!(last.horizon, 800.0);
    for (found, estimand) in [(last.cure, "cure_effect"), (last.time, "time_effect")] {
        let [v, low, high] = found.expect("defined at H");
        let a = all(estimand);
        assert!((v - a.estimate.unwrap()).abs() < 1e-9 * (1.0 + v.abs()));
        assert!((high - low - (a.high.unwrap() - a.low.unwrap())).abs() < 1e-6 * (1.0 + v.abs()), "{estimand}");
    }
}

/// With known strata: the truth of the always-uncured lies inside its bounds.
#[test]
fn bounds_hold_the_always_uncured() {
    let world = simulate(Scenario::CureOnly, 6000, false, 2);
    let found = analysis::run(&world.cohort, &Options::paper(), &Unwatched).expect("a run");
    let bounds = sensitivity::always_uncured(&Walk::new(&world.cohort, &found)).expect("events in both arms");
    // The simulation draws the two arms' cure independently given covariates, so monotonicity does not hold exactly in
    // it; the stratum uncured under both is known all the same.
    let both: Vec<f64> = world
        .truth
        .iter()
        .filter(|t| t.arms.iter().all(|a| a.event_time.is_finite()))
        .map(|t| t.arms.treated.event_time - t.arms.control.event_time)
        .collect();
    let truth = both.iter().sum::<f64>() / both.len() as f64;
    assert!(bounds.low <= truth && truth <= bounds.high, "{truth} in {bounds:?}");
    assert!(bounds.low <= bounds.unrestricted && bounds.unrestricted <= bounds.high);
    assert!(bounds.treatment_cures);
}

#[test]
fn constraints_and_the_adjusted_estimator_get_no_wrong_number() {
    let world = simulate(Scenario::BothOverlap, 600, false, 3);
    let constraints = Constraints { exclude_self: true, ..Constraints::default() };
    let options = Options { group_size: 20, constraints, ..Options::paper() };
    let found = analysis::run(&world.cohort, &options, &Unwatched).expect("a run");
    let walk = Walk::new(&world.cohort, &found);
    struct Check<'a>(&'a Walk<'a>, Arm, Estimand);
    impl Gather for Check<'_> {
        fn add(&mut self, group: &Group<'_>) {
            let (walk, pool) = (self.0, &self.0.pools()[self.1]);
            let own = walk.analysis.units[group.unit];
            let own = pool.units.iter().position(|u| *u == own).map(|m| pool.rank(m as u32));
            assert!(group.ranks.iter().all(|r| Some(*r) != own), "a unit in its own group");
            let curve = Summary::of_sorted(group.outcomes.iter().copied(), 20, walk.cohort.horizon());
            assert_eq!(curve, walk.analysis.effects[group.unit].groups[self.2][self.1].curve);
        }
    }
    walk.gather(|arm, side| Check(&walk, arm, side));
    let audit = Audit::of(&world.cohort, &found, &[]).expect("an audit");
    assert!(audit.group_sizes.is_empty() && audit.left_out.len() == 1);

    let estimator = dvim::internal::options::Estimator::Adjusted(dvim::internal::options::AdjustedOptions::default());
    let found = analysis::run(&world.cohort, &Options { estimator, ..Options::default() }, &Unwatched).expect("a run");
    let audit = Audit::of(&world.cohort, &found, &[By::parse("x1:2")]).expect("an audit");
    let needed = |a: &&dvim::internal::audit::average::AverageEffect| {
        a.estimand != "number_needed_to_treat" && !a.estimand.starts_with("median")
    };
    assert!(audit.averages.iter().filter(needed).all(|a| a.estimate.is_some() && a.se.is_some() && a.low < a.high));
    assert!(audit.confounding.is_some() && audit.heterogeneity.cure.is_some());
    // Each unit is in the groups that were used, and not in its own.
    let balance = audit.balance.as_ref().expect("balance");
    let size = |i: usize| found.fit.fold_of(Some(i as u32)).group_size.cure;
    for uses in balance.uses.iter().filter(|u| u.side == dvim::internal::estimand::Estimand::Cure) {
        let (sum, largest) = (uses.counts.iter().sum::<f64>(), (0..600).map(size).max().unwrap_or(0));
        assert!((sum - 600.0 * largest as f64).abs() < 1e-6, "every group counts as much as the largest");
    }
    let last = audit.horizons.last().expect("horizons");
    let average =
        audit.averages.iter().find(|a| a.estimand == "cure_effect").and_then(|a| a.estimate).expect("an average");
    assert!((last.cure.expect("a value")[0] - average).abs() < 1e-9, "at H the curve is the average that is reported");
    assert!((audit.curves[0].difference.estimate.last().expect("H") - average).abs() < 1e-9);
    let censoring = audit.censoring.expect("bounds");
    assert!(censoring.least <= censoring.estimated && censoring.estimated <= censoring.most);
    assert!((censoring.estimated - average).abs() < 1e-9 && audit.always_uncured.is_some());
    assert!(found.effects.iter().all(|e| e.cure_interval(0.95).se.is_some_and(|se| se > 0.0)));
    let corrected: Vec<_> = found.effects.iter().filter_map(|e| e.corrected).collect();
    let again =
        analysis::Analysis::from_fit(found.fit.clone(), &corrected, &world.cohort, &Unwatched).expect("reopened");
    assert_eq!(again, found);
}

/// Groups that were kept and groups that are searched for again give the same audit to the last bit, also under
/// constraints; and so does any number of threads.
#[test]
fn kept_groups_change_nothing() {
    let world = simulate(Scenario::BothOverlap, 1500, false, 4);
    let constraints = Constraints { exact: vec!["x1".into()], exclude_self: true, ..Constraints::default() };
    for constraints in [Constraints::default(), constraints] {
        let options = Options { constraints, group_size: 20, ..Options::paper() };
        let kept = analysis::run_for_audit(&world.cohort, &options, &Unwatched).expect("a run");
        let plain = analysis::run(&world.cohort, &options, &Unwatched).expect("a run");
        assert!(kept.groups.is_some() && plain.groups.is_none());
        assert_eq!(kept.effects, plain.effects);
        let by = [By::parse("x15:3")];
        let audit = Audit::of(&world.cohort, &kept, &by).expect("an audit");
        assert_eq!(audit, Audit::of(&world.cohort, &plain, &by).expect("an audit"));
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            let again = pool.install(|| {
                let found = analysis::run_for_audit(&world.cohort, &options, &Unwatched).expect("a run");
                Audit::of(&world.cohort, &found, &by).expect("an audit")
            });
            assert_eq!(audit, again, "{threads} threads");
        }
    }
}

/// Without an audit the averages are the same means, and nothing that rests on groups is there.
#[test]
fn an_audit_that_was_not_asked_for() {
    let (world, found) = world(1000);
    let whole = Audit::of(&world.cohort, &found, &[]).expect("an audit");
    let short = Audit::not_asked(&world.cohort, &found, &[]).expect("averages");
    assert!(!short.asked && short.balance.is_none() && short.horizons.is_empty());
    assert_eq!(short.follow_up, whole.follow_up);
    for a in &short.averages {
        let with = whole.averages.iter().find(|b| b.estimand == a.estimand && b.population == a.population);
        let with = with.expect("it is listed");
        assert!((a.estimate.unwrap() - with.estimate.unwrap()).abs() < 1e-9 && a.se.is_none(), "{a:?} {with:?}");
    }
}

/// The verdict on a corrected average judges the weights of that average, not the groups before the correction: a
/// measured confounder whose propensity is right is balanced by them, whatever the groups are.
#[test]
fn a_corrected_average_is_judged_by_its_own_weights() {
    let world = simulate(Scenario::BothOverlap, 1_500, true, 12);
    let few = AdjustedOptions { splits: Some(3), folds: 3, ..AdjustedOptions::default() };
    let options = Options { estimator: Estimator::Adjusted(few), ..Options::default() };
    let found = analysis::run(&world.cohort, &options, &Unwatched).expect("a run");
    let audit = Audit::of(&world.cohort, &found, &[]).expect("an audit");
    let balance = audit.balance.as_ref().expect("balance");
    let worst = |of: &dyn Fn(&CovariateBalance) -> f64| balance.covariates.iter().map(of).fold(0.0, f64::max);
    let average = |c: &CovariateBalance| c.average.expect("corrected averages have weights").difference.abs();
    assert!(worst(&|c| c.before.difference.abs()) > 0.3, "this cohort is confounded");
    assert!(worst(&|c| c.cure.difference.abs()) > 0.1, "its groups are not balanced");
    assert!(worst(&average) < 0.1, "the weights of its averages are: {}", worst(&average));
    let verdict = verdict::Verdict::of(&world.cohort, &found, &audit);
    assert!(verdict.reasons.iter().all(|r| r.code != "unbalanced"), "{:?}", verdict.reasons);
    // Without overlap in a covariate the weights cannot balance it, and the verdict says so.
    let mut units = world.cohort.to_units();
    for i in 0..1_500 {
        if world.cohort.arm(i) == Arm::Treated {
            units.covariates[20 * i + 19] += 4.0;
        }
    }
    let apart = Cohort::from_parts(units, None, world.cohort.horizon()).expect("a cohort");
    let found = analysis::run(&apart, &options, &Unwatched).expect("a run");
    let verdict = verdict::Verdict::of(&apart, &found, &Audit::of(&apart, &found, &[]).expect("an audit"));
    assert!(verdict.reasons.iter().any(|r| r.code == "unbalanced"), "{:?}", verdict.reasons);
}
