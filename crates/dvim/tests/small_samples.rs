//! Few events, tied events, nobody or everybody with an event: is every number still an honest one?
//!
//! Random tiny cohorts go through both estimators with their audit. Whatever is not refused holds: no interval of width
//! zero, nothing infinite or undefined, every value inside its bounds and its interval, and a patient without an
//! interval has a flag that says why.

use dvim::internal::analysis::{self, Analysis};
use dvim::internal::audit::Audit;
use dvim::internal::audit::average::{AverageEffect, By};
use dvim::internal::cohort::{Arm, Cohort, Units};
use dvim::internal::curve::Grid;
use dvim::internal::effect::{Effect, Flag};
use dvim::internal::interval::{Interval, two_sided};
use dvim::internal::options::{AdjustedOptions, Estimator, Options};
use dvim::internal::outcome::Extras;
use dvim::internal::table::Ids;
use dvim::internal::watch::Unwatched;
use proptest::prelude::*;

const H: f64 = 36.0;

/// How event times come about.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Events {
    /// At any time.
    Anywhere,
    /// At so many different times.
    At(u32),
    /// Whole months.
    Months,
    /// So many in the treated arm.
    Few(usize),
}

#[derive(Clone, Copy, Debug)]
struct World {
    n: usize,
    seed: u64,
    events: Events,
    /// Share with an event.
    share: f64,
    /// Whether somebody is lost before H.
    censored: bool,
    weights: bool,
    clusters: Option<u32>,
    entry: bool,
    causes: bool,
}

fn world() -> impl Strategy<Value = World> {
    let events = prop_oneof![
        Just(Events::Anywhere),
        (1u32..4).prop_map(Events::At),
        Just(Events::Months),
        (1usize..4).prop_map(Events::Few),
    ];
    let features = (any::<bool>(), prop::option::of(2u32..20), any::<bool>(), any::<bool>());
    let share = prop_oneof![Just(1.0), Just(0.05), 0.1f64..0.9];
    (54usize..120, any::<u64>(), events, share, any::<bool>(), features).prop_map(
        |(n, seed, events, share, censored, (weights, clusters, entry, causes))| {
            // Mostly one feature at a time, so that what breaks is found.
            let keep = |k: u64| seed % 7 == k || seed % 7 == 6;
            World {
                n,
                seed,
                events,
                share,
                censored,
                weights: weights && keep(0),
                clusters: clusters.filter(|_| keep(1)),
                entry: entry && keep(2),
                causes: causes && keep(3),
            }
        },
    )
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 * 2f64.powi(-53)
    }
}

/// `None` where the door refuses it.
fn cohort(w: &World) -> Option<Cohort> {
    let mut random = Random(w.seed);
    let mut units = Units {
        ids: Ids::Rows(w.n),
        arm: (0..w.n).map(|i| if i % 2 == 0 { Arm::Treated } else { Arm::Control }).collect(),
        time: vec![],
        event: vec![],
        covariates: vec![],
        names: vec!["x1".into(), "x2".into()],
        labels: ["0".into(), "1".into()],
        extras: Extras::default(),
    };
    let (mut entry, mut competing) = (vec![], vec![]);
    let mut treated_events = 0;
    for i in 0..w.n {
        let lost = if w.censored { H * (0.3 + 1.7 * random.next()) } else { 2.0 * H };
        let at = random.next();
        let when = match w.events {
            Events::At(k) => H * f64::from((at * f64::from(k)) as u32 + 1) / f64::from(k + 1),
            Events::Months => (H * at).ceil().min(H - 1.0),
            _ => H * (0.02 + 0.95 * at),
        };
        let mut has = random.next() < w.share && when < lost;
        if let (Events::Few(most), Arm::Treated) = (w.events, units.arm[i]) {
            has = treated_events < most;
            treated_events += usize::from(has);
        }
        let other = !has && random.next() < 0.2;
        units.time.push(if has { when } else { lost });
        units.event.push(has);
        competing.push(other);
        entry.push(0.5 * random.next() * units.time[i].min(0.3 * H));
        units.covariates.extend([random.next(), f64::from(u8::from(random.next() < 0.5))]);
    }
    units.extras.weight = w.weights.then(|| (0..w.n).map(|_| 0.5 + 2.0 * random.next()).collect());
    units.extras.cluster = w.clusters.map(|c| (0..w.n).map(|_| (random.next() * f64::from(c)) as u32).collect());
    units.extras.entry = w.entry.then_some(entry);
    units.extras.competing = w.causes.then_some(competing);
    Cohort::from_parts(units, None, H).ok()
}

fn paper() -> Options {
    Options { group_size: 6, ..Options::paper() }
}

fn adjusted() -> Options {
    let of = AdjustedOptions { smallest_group: 8, ..AdjustedOptions::default() };
    Options { estimator: Estimator::Adjusted(of), ..Options::default() }
}

fn assert_interval(value: f64, of: &Interval, bounds: (f64, f64), what: &dyn Fn() -> String) {
    let slack = 1e-9 * (bounds.1 - bounds.0);
    assert!(value.is_finite() && of.low.is_finite() && of.high.is_finite(), "{}: {value} {of:?}", what());
    assert!(of.se.is_none_or(|se| se.is_finite() && se > 0.0), "{}: {value} {of:?}", what());
    assert!(of.width() > slack, "{} has no width: {value} {of:?}", what());
    assert!(of.low <= value + slack && value <= of.high + slack, "{}: {value} {of:?}", what());
    assert!(of.low >= bounds.0 - slack && of.high <= bounds.1 + slack, "{}: {value} {of:?}", what());
}

fn check_patient(e: &Effect, grid: &Grid, confidence: f64, who: usize) {
    let all = e.intervals(H, confidence);
    let z = two_sided(confidence);
    assert_interval(e.cure(), &all.cure, (-1.0, 1.0), &|| format!("cure effect of {who}"));
    for arm in Arm::BOTH {
        let named = |what: &str| format!("{what} of {who} in {arm:?}");
        assert_interval(e.cure_probability(arm), &all.cure_probability[arm], (0.0, 1.0), &|| named("cure"));
        match (e.mean_event_time(arm), &all.mean_event_time[arm]) {
            (Some(m), Some(of)) => assert_interval(m, of, (0.0, H), &|| named("mean event time")),
            (Some(_), None) => assert!(e.has(Flag::NoTimeInterval(arm)), "{}", named("no interval and no flag")),
            (None, _) => assert!(e.has(Flag::NoEvent(arm)), "{}", named("no mean and no flag")),
        }
    }
    assert_eq!(
        e.time().is_some() && all.time.is_none(),
        Arm::BOTH.iter().any(|z| e.has(Flag::NoTimeInterval(*z))) && e.time().is_some()
    );
    if let (Some(value), Some(of)) = (e.time(), &all.time) {
        assert_interval(value, of, (-H, H), &|| format!("time effect of {who}"));
        assert!(e.ends(H, z).is_some(), "an interval comes with its covariance");
    }
    if let Some(ends) = e.ends(H, z) {
        let split = ends.rmst_split(z);
        for (what, (value, of)) in
            [("RMST effect", split.effect), ("part of cure", split.from_cure), ("part of time", split.from_time)]
        {
            assert_interval(value, &of, (-H, H), &|| format!("{what} of {who}"));
        }
        assert!((split.from_cure.0 + split.from_time.0 - split.effect.0).abs() < 1e-9 * H);
        for arm in Arm::BOTH {
            let (value, of) = ends.rmst(arm, z);
            assert_interval(value, &of, (0.0, H), &|| format!("RMST of {who} in {arm:?}"));
        }
    }
    if let Some(c) = &e.corrected {
        let curves = c.curves(grid);
        for arm in Arm::BOTH {
            for &t in &grid.times()[1..] {
                let (value, of) = curves.survival(arm, t, z);
                assert!((-1e-9..=1.0 + 1e-9).contains(&value) && of.low.is_finite() && of.high.is_finite());
            }
            if let Some((value, se, [low, high])) = curves.median(arm, z) {
                assert!((0.0..=H).contains(&value) && se.is_none_or(|se| se.is_finite() && se <= H));
                assert!(low.is_some_and(|low| low <= value) && high.is_none_or(|high| high >= value));
                assert!(high.is_none() || high > low, "a median without width: {value} {low:?} {high:?}");
            }
        }
    }
}

fn bounds(a: &AverageEffect) -> Option<(f64, f64)> {
    match a.estimand {
        "cure_effect" | "cure_effect_corrected" => Some((-1.0, 1.0)),
        "cure_treated" | "cure_control" => Some((0.0, 1.0)),
        "time_effect" | "time_effect_corrected" | "rmst_effect" | "rmst_from_cure" | "rmst_from_time" => Some((-H, H)),
        name if name.starts_with("mean_event") || name.starts_with("rmst_") || name.starts_with("median_") => {
            Some((0.0, H))
        }
        _ => None,
    }
}

fn check_audit(audit: &Audit) {
    for a in &audit.averages {
        let all = [a.estimate, a.se, a.low, a.high, a.sd, a.bias, a.split_sd];
        assert!(all.into_iter().flatten().all(f64::is_finite), "{a:?}");
        if let (Some(value), Some(low), Some(high)) = (a.estimate, a.low, a.high) {
            let bounds = bounds(a).unwrap_or((f64::MIN, f64::MAX));
            assert!(high - low > 1e-9 * (bounds.1 - bounds.0).min(1.0), "an interval without width: {a:?}");
            assert!(low <= value && value <= high, "{a:?}");
            assert!(bounds.0 <= low && high <= bounds.1, "{a:?}");
        }
        assert!(a.se.is_none_or(|se| se > 0.0), "{a:?}");
    }
    let of = |estimand: &str, population: &str| {
        audit.averages.iter().find(|a| a.estimand == estimand && a.population == population).and_then(|a| a.estimate)
    };
    for a in audit.averages.iter().filter(|a| a.estimand == "rmst_effect") {
        let parts = of("rmst_from_cure", &a.population).zip(of("rmst_from_time", &a.population));
        let (cure, time) = parts.expect("both parts");
        assert!((cure + time - a.estimate.expect("their sum")).abs() < 1e-9 * H, "{a:?} {cure} {time}");
    }
    for c in &audit.curves {
        for band in [&c.arms.control, &c.arms.treated, &c.difference] {
            for (j, &t) in c.times.iter().enumerate() {
                let all =
                    [band.estimate[j], band.se[j], band.low[j], band.high[j], band.band_low[j], band.band_high[j]];
                assert!(all.iter().all(|v| v.is_finite() && (-1.0..=1.0).contains(v)), "{t}: {all:?}");
                assert!(t <= 0.0 || band.high[j] > band.low[j], "at {t}: {all:?}");
                assert!(band.low[j] <= band.estimate[j] && band.estimate[j] <= band.high[j], "at {t}: {all:?}");
            }
        }
    }
    for at in &audit.horizons {
        for [value, low, high] in at.cure.into_iter().chain(at.time) {
            assert!(low <= value && value <= high && low < high, "{at:?}");
        }
    }
    if let Some(c) = &audit.confounding {
        assert!(c.e_value.is_finite() && c.e_value_interval.is_finite(), "{c:?}");
    }
}

fn check(cohort: &Cohort, options: &Options) -> Option<Analysis> {
    let found = analysis::run(cohort, options, &Unwatched).ok()?;
    let grid = Grid::of(cohort);
    for (i, r) in found.fit.residuals.iter().enumerate() {
        let finite = r.cure.is_finite() && r.time.is_finite() && r.survival.iter().all(|x| x.is_finite());
        assert!(finite, "{:?} {r:?}", cohort.outcome(i));
    }
    found.effects.iter().enumerate().for_each(|(who, e)| check_patient(e, &grid, options.confidence, who));
    let audit = Audit::of(cohort, &found, &[By::parse("x2")]).expect("an audit");
    check_audit(&audit);
    let verdict = dvim::internal::audit::verdict::Verdict::of(cohort, &found, &audit);
    assert!(verdict.reasons.iter().all(|r| !r.words.contains("inf") && !r.words.contains("NaN")), "{verdict:?}");
    Some(found)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_false_certainty(w in world()) {
        if let Some(cohort) = cohort(&w) {
            check(&cohort, &paper());
            check(&cohort, &adjusted());
        }
    }
}

/// Worlds by name, so that none is left to chance; each must get through at least one estimator.
#[test]
fn the_worlds_that_failed() {
    let plain = World {
        n: 60,
        seed: 4,
        events: Events::Anywhere,
        share: 0.4,
        censored: true,
        weights: false,
        clusters: None,
        entry: false,
        causes: false,
    };
    let all = [
        ("all events at one time", World { events: Events::At(1), ..plain }),
        ("at two", World { events: Events::At(2), ..plain }),
        ("at three, weights", World { events: Events::At(3), weights: true, ..plain }),
        ("two in an arm", World { events: Events::Few(2), n: 100, ..plain }),
        ("one in an arm", World { events: Events::Few(1), n: 100, ..plain }),
        ("months, clusters", World { events: Events::Months, clusters: Some(4), ..plain }),
        ("everybody", World { share: 1.0, censored: false, ..plain }),
        ("everybody at one time", World { share: 1.0, events: Events::At(1), censored: false, ..plain }),
        ("everybody, late entry", World { share: 1.0, entry: true, censored: false, n: 150, ..plain }),
        ("two clusters", World { clusters: Some(2), weights: true, ..plain }),
        ("causes", World { causes: true, events: Events::Few(2), n: 90, ..plain }),
    ];
    for (name, w) in all {
        let passed = cohort(&w).map(|c| [check(&c, &paper()), check(&c, &adjusted())].into_iter().flatten().count());
        assert!(passed.is_some_and(|n| n > 0), "{name} was refused");
    }
}

/// Nobody with an event is refused, in words.
#[test]
fn nobody_has_the_event() {
    let w = World {
        n: 60,
        seed: 1,
        events: Events::Anywhere,
        share: 0.0,
        censored: false,
        weights: false,
        clusters: None,
        entry: false,
        causes: false,
    };
    assert!(cohort(&w).is_none());
}
