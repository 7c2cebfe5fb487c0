//! Does it hold in general?

use dvim::internal::analysis::{self, Analysis};
use dvim::internal::cohort::{Arm, Cohort, Units};
use dvim::internal::effect::{Effect, Flag};
use dvim::internal::metric::{Metric, Scale, Scaling};
use dvim::internal::options::Options;
use dvim::internal::simulate::{Scenario, Simulated, simulate};
use dvim::internal::survival::{Summary, SurvivalCurve};
use dvim::internal::table::Ids;
use dvim::internal::watch::Unwatched;
use proptest::prelude::*;

/// Times on a coarse grid, so that ties abound; the horizon is 10.
fn sample() -> impl Strategy<Value = Vec<(f64, bool)>> {
    prop::collection::vec((1u32..=40, any::<bool>()), 1..60)
        .prop_map(|v| v.into_iter().map(|(t, e)| (f64::from(t) / 4.0, e && t < 40)).collect())
}

fn curve(units: &[(f64, bool)]) -> SurvivalCurve {
    let (time, event): (Vec<f64>, Vec<bool>) = units.iter().copied().unzip();
    SurvivalCurve::new(&time, &event)
}

/// What every group estimate must satisfy.
fn assert_sound(s: &Summary, n: usize, horizon: f64) {
    assert!((0.0..=1.0).contains(&s.survival));
    assert!(s.n_at_risk + s.n_events <= n);
    assert_eq!(s.mean_event_time().is_some(), s.n_events > 0);
    if let Some(m) = s.mean_event_time() {
        assert!(m > 0.0 && m < horizon, "a mean event time of {m}");
        let identity = horizon * s.survival + (1.0 - s.survival) * m;
        assert!((s.restricted_mean(horizon) - identity).abs() <= 1e-12 * horizon);
    } else {
        assert_eq!(s.survival, 1.0);
    }
}

proptest! {
    #[test]
    fn curves_are_survival_curves(units in sample()) {
        let c = curve(&units);
        let mut last = 1.0;
        for s in c.steps() {
            prop_assert!(s.survival <= last && s.survival >= 0.0);
            prop_assert!(s.n_events + s.n_censored <= s.n_at_risk);
            prop_assert_eq!(c.n_at_risk(s.time), units.iter().filter(|u| u.0 >= s.time).count());
            last = s.survival;
        }
        let s = c.summary(10.0);
        assert_sound(&s, units.len(), 10.0);
        prop_assert!((c.integral_to(10.0) - s.restricted_mean(10.0)).abs() <= 1e-12 * 10.0);
    }

    #[test]
    fn a_group_in_order_of_time_gives_the_same_summary(units in sample()) {
        let mut sorted = units.clone();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        prop_assert_eq!(Summary::of_sorted(sorted.into_iter(), units.len(), 10.0), curve(&units).summary(10.0));
    }

    #[test]
    fn without_censoring_it_is_counting(units in sample()) {
        let full: Vec<(f64, bool)> = units.iter().map(|&(t, _)| (t, t < 10.0)).collect();
        let s = curve(&full).summary(10.0);
        let events: Vec<f64> = full.iter().filter(|u| u.1).map(|u| u.0).collect();
        let share = 1.0 - events.len() as f64 / full.len() as f64;
        prop_assert!((s.survival - share).abs() <= 1e-12);
        if !events.is_empty() {
            let mean = events.iter().sum::<f64>() / events.len() as f64;
            prop_assert!((s.mean_event_time().unwrap() - mean).abs() <= 1e-12 * 10.0);
        }
    }

    #[test]
    fn standard_errors_do_not_depend_on_the_unit_of_time(units in sample(), c in 0.01f64..100.0) {
        let scaled: Vec<(f64, bool)> = units.iter().map(|&(t, e)| (t * c, e)).collect();
        let (a, b) = (curve(&units), curve(&scaled));
        let (rmst, cmet) = a.means_with_se(10.0);
        let (rmst_scaled, cmet_scaled) = b.means_with_se(10.0 * c);
        prop_assert!((rmst.se.unwrap() * c - rmst_scaled.se.unwrap()).abs() <= 1e-9 * c * 10.0);
        prop_assert_eq!(cmet.is_some(), cmet_scaled.is_some());
        if let (Some(m), Some(n)) = (cmet, cmet_scaled) {
            prop_assert!((m.se.unwrap() * c - n.se.unwrap()).abs() <= 1e-8 * c * 10.0);
        }
    }
}

const N: usize = 1200;

fn world() -> Simulated {
    simulate(Scenario::BothOverlap, N, true, 7)
}

fn options(scale: Scale) -> Options {
    Options { group_size: 20, scale, ..Options::paper() }
}

fn analyse(cohort: &Cohort, scale: Scale) -> Analysis {
    analysis::run(cohort, &options(scale), &Unwatched).expect("a sound cohort")
}

fn changed(change: impl Fn(&mut Units), horizon: f64) -> Cohort {
    let mut units = world().cohort.to_units();
    change(&mut units);
    Cohort::from_parts(units, None, horizon).expect("sound parts")
}

fn assert_close(a: &[Effect], b: &[Effect], cure: f64, time: f64) {
    assert_eq!(a.len(), b.len());
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((cure * a.cure() - b.cure()).abs() < 1e-9, "cure effect of unit {i}: {} and {}", a.cure(), b.cure());
        match (a.time(), b.time()) {
            (Some(a), Some(b)) => {
                assert!((time * a - b).abs() < 1e-7 * time.abs(), "time effect of unit {i}: {a} and {b}")
            }
            (a, b) => assert_eq!(a, b),
        }
    }
}

#[test]
fn every_estimate_is_sound() {
    let w = world();
    for e in &analyse(&w.cohort, Scale::Standard).effects {
        for group in e.groups.iter().flatten() {
            assert_sound(&group.curve, 20, w.cohort.horizon());
            assert!(group.diameter >= 0.0 && group.diameter.is_finite());
        }
        assert_eq!(e.time().is_none(), e.has(Flag::NoEvent(Arm::Treated)) || e.has(Flag::NoEvent(Arm::Control)));
    }
}

#[test]
fn the_unit_of_time_does_not_matter() {
    let days = analyse(&world().cohort, Scale::Standard);
    let years = analyse(&changed(|u| u.time.iter_mut().for_each(|t| *t /= 365.25), 800.0 / 365.25), Scale::Standard);
    assert_close(&days.effects, &years.effects, 1.0, 1.0 / 365.25);
}

#[test]
fn the_unit_of_a_covariate_does_not_matter() {
    let one = analyse(&world().cohort, Scale::Standard);
    let other = changed(
        |u| {
            for row in u.covariates.chunks_exact_mut(20) {
                row[16] = 3.0 + 2.54 * row[16];
                row[2] *= -1000.0;
            }
        },
        800.0,
    );
    assert_close(&one.effects, &analyse(&other, Scale::Standard).effects, 1.0, 1.0);
    let raw = analyse(&other, Scale::None);
    assert!(
        raw.effects != analyse(&world().cohort, Scale::None).effects,
        "on raw covariates it does, and the test can tell"
    );
}

#[test]
fn swapping_the_arms_flips_the_signs() {
    let one = analyse(&world().cohort, Scale::Standard);
    let swap = |u: &mut Units| {
        u.arm.iter_mut().for_each(|z| *z = if *z == Arm::Treated { Arm::Control } else { Arm::Treated })
    };
    let other = analyse(&changed(swap, 800.0), Scale::Standard);
    assert_eq!(one.units, other.units, "the split goes by id and arm size alone");
    for (a, b) in one.effects.iter().zip(&other.effects) {
        assert_eq!(a.cure(), -b.cure());
        assert_eq!(a.time(), b.time().map(|t| -t));
    }
}

#[test]
fn the_order_of_rows_does_not_matter() {
    let reverse = |u: &mut Units| {
        u.ids = Ids::Integers((1..=N as i64).rev().collect());
        u.time.reverse();
        u.event.reverse();
        u.arm.reverse();
        u.covariates = u.covariates.chunks_exact(20).rev().flatten().copied().collect();
    };
    let numbered = changed(|u| u.ids = Ids::Integers((1..=N as i64).collect()), 800.0);
    let reversed = changed(reverse, 800.0);
    assert_eq!(numbered, reversed);
    assert_eq!(analyse(&numbered, Scale::Standard).effects, analyse(&world().cohort, Scale::Standard).effects);
}

#[test]
fn ids_that_sort_otherwise_change_only_the_split_and_ties() {
    let texts = changed(|u| u.ids = Ids::from_texts((1..=N).map(|i| format!("p{i}"))), 800.0);
    let order: Vec<String> = (0..4).map(|i| texts.ids().text(i).into_owned()).collect();
    assert_eq!(order, ["p1", "p10", "p100", "p1000"], "texts go by bytes");
    assert_eq!(texts.unit("p17").map(|i| texts.ids().text(i).into_owned()), Ok("p17".to_string()));
    assert!(texts.unit("p1201").is_err());
}

#[test]
fn threads_do_not_matter() {
    let w = world();
    let with = |n: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().expect("a pool");
        pool.install(|| analyse(&w.cohort, Scale::Standard))
    };
    assert_eq!(with(1), with(2));
    assert_eq!(with(1), with(5));
}

#[test]
fn shards_can_be_estimated_anywhere() {
    let w = world();
    let whole = analyse(&w.cohort, Scale::Standard);
    let mut shards = Vec::new();
    for part in whole.units.chunks(101) {
        let x: Vec<f64> = part.iter().flat_map(|&i| w.cohort.covariates(i as usize)).copied().collect();
        shards.extend(whole.fit.estimate(&w.cohort, &x, &Unwatched).expect("an estimate"));
    }
    assert_eq!(whole.effects, shards);
}

#[test]
fn groups_shown_are_groups_used() {
    let w = world();
    let found = analyse(&w.cohort, Scale::Standard);
    for i in (0..found.units.len()).step_by(97) {
        let unit = found.units[i] as usize;
        let groups = found.fit.match_groups(&w.cohort, unit);
        for arm in Arm::BOTH {
            let (cure, time) = (&groups.cure[arm], &groups.time[arm]);
            let used = &found.effects[i].groups;
            assert_eq!(cure.curve.summary(w.cohort.horizon()), used.cure[arm].curve);
            assert_eq!(time.curve.summary(w.cohort.horizon()), used.time[arm].curve);
            assert_eq!(cure.distance.last().copied(), Some(used.cure[arm].diameter));
            for (group, &member) in [cure, time].iter().flat_map(|g| g.units.iter().map(move |m| (g, m))) {
                assert_eq!(w.cohort.arm(member as usize), arm);
                assert!(!found.fit.is_training[member as usize], "a training unit is in no group");
                assert_eq!(group.units.len(), 20);
            }
            for shares in &cure.shares {
                let total: f64 = shares.iter().sum();
                assert!((total - 1.0).abs() < 1e-12 || total == 0.0);
            }
        }
        assert_eq!(groups.cure[w.cohort.arm(unit)].units[0] as usize, unit, "a unit is its own nearest");
    }
}

#[test]
fn constant_weights_match_like_euclidean_distance() {
    let w = world();
    let p = w.cohort.n_covariates();
    let raw = Scaling { center: vec![0.0; p], scale: vec![1.0; p] };
    let place =
        |weight: f64| Metric { weights: vec![weight; p], scaling: raw.clone() }.place(w.cohort.all_covariates());
    let found = |weight: f64| dvim::internal::matching::scan(&place(weight), &place(weight), 5).index;
    assert_eq!(found(1.0), found(4.0));
}

#[test]
fn the_split_is_stratified_and_moves_with_the_seed() {
    let w = world();
    let one = analyse(&w.cohort, Scale::Standard).fit.is_training;
    for arm in Arm::BOTH {
        let units = w.cohort.units_of(arm);
        let n = units.iter().filter(|&&i| one[i as usize]).count();
        assert_eq!(n, (units.len() as f64 * 0.35).round() as usize);
    }
    let other = Options { seed: 2, ..options(Scale::Standard) };
    let other = analysis::run(&w.cohort, &other, &Unwatched).expect("a sound cohort").fit.is_training;
    let moved = one.iter().zip(&other).filter(|(a, b)| a != b).count();
    assert!(moved > N / 4 && moved < N * 3 / 4, "{moved} of {N} moved");
}
