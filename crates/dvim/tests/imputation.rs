//! Rubin's rules and Holm's adjustment against R, and imputed data sets pooled.

use dvim::internal::analysis;
use dvim::internal::audit::Audit;
use dvim::internal::cohort::{Arm, Cohort, Units};
use dvim::internal::contrasts::{compare_arms, holm};
use dvim::internal::error::Error;
use dvim::internal::imputation::{Analysed, pool_imputations, rubin, same_patients};
use dvim::internal::options::Options;
use dvim::internal::phrase::Fields;
use dvim::internal::simulate::{Scenario, simulate};
use dvim::internal::table::Ids;
use dvim::internal::watch::Unwatched;

/// R 4.2.2, mice 3.15.0: pool.scalar(Q, U, n = n, k = 2), whose complete-data degrees of freedom are n - 2.
#[test]
fn rubin_is_that_of_mice() {
    let q = [0.112, 0.131, 0.098, 0.140, 0.121];
    let se = [0.021, 0.019, 0.024, 0.02, 0.022];
    let values: Vec<(f64, Option<f64>)> = q.into_iter().zip(se.map(Some)).collect();
    for (n, df, missing) in [
        (100.0, 16.4418766298085, 0.475061717221307),
        (12.0, 4.08156664350874, 0.580123568126381),
        (1e6, 23.2391953979888, 0.459468628315632),
    ] {
        let found = rubin(&values, n - 2.0, 0.95);
        for (found, expected) in [
            (found.estimate, 0.1204),
            (found.se.unwrap(), 0.0278057548000409),
            (found.df.unwrap(), df),
            (found.missing_information.unwrap(), missing),
        ] {
            assert!((found / expected - 1.0).abs() < 1e-12, "{n}: {found} {expected}");
        }
    }
    // Nothing missing: Student's interval of one analysis.
    let same = rubin(&[(0.5, Some(0.1)); 4], 1e9, 0.95);
    assert_eq!((same.estimate, same.missing_information), (0.5, Some(0.0)));
    assert!((same.se.unwrap() - 0.1).abs() < 1e-15);
    assert!((same.low.unwrap() - (0.5 - 0.1 * 1.959963984540054)).abs() < 1e-8);
    assert_eq!(rubin(&[(0.5, Some(0.1)), (0.6, None)], 10.0, 0.95).se, None);
}

/// R 4.2.2: p.adjust(c(0.01, 0.04, 0.03, 0.005, 0.6), "holm").
#[test]
fn holm_is_that_of_r() {
    let found = holm(&[Some(0.01), Some(0.04), None, Some(0.03), Some(0.005), Some(0.6)]);
    for (found, expected) in found.iter().zip([Some(0.04), Some(0.09), None, Some(0.09), Some(0.025), Some(0.6)]) {
        assert_eq!(found.is_some(), expected.is_some());
        assert!(found.zip(expected).is_none_or(|(a, b): (f64, f64)| (a - b).abs() < 1e-15), "{found:?} {expected:?}");
    }
}

/// Imputed data sets of one simulated cohort: one covariate in ten is drawn anew around its value.
fn imputed(m: usize) -> Vec<Cohort> {
    let world = simulate(Scenario::BothOverlap, 1_200, false, 3);
    (0..m)
        .map(|k| {
            let mut units = world.cohort.to_units();
            for (i, x) in units.covariates.iter_mut().enumerate().filter(|(i, _)| i % 10 == 0) {
                *x += 0.3 * (((i * 7919 + k * 104_729) % 1_000) as f64 / 500.0 - 1.0);
            }
            Cohort::from_parts(units, None, world.cohort.horizon()).expect("sound parts")
        })
        .collect()
}

#[test]
fn imputed_data_sets_are_pooled_patient_by_patient() {
    let cohorts = imputed(3);
    let options = Options { group_size: 30, ..Options::paper() };
    let found: Vec<_> = cohorts.iter().map(|c| analysis::run(c, &options, &Unwatched).expect("a run")).collect();
    let audits: Vec<_> = cohorts.iter().zip(&found).map(|(c, a)| Audit::of(c, a, &[]).expect("an audit")).collect();
    assert!(found.windows(2).all(|w| w[0].fit.is_training == w[1].fit.is_training), "one split for all");
    let set = |k: usize| Analysed { name: "set", cohort: &cohorts[k], analysis: &found[k], audit: &audits[k] };
    let pooled = pool_imputations(&[set(0), set(1), set(2)]).expect("pooled");
    assert_eq!(pooled.units.len(), found[0].units.len());
    for (q, u) in pooled.units.iter().enumerate() {
        assert_eq!(u.unit, found[0].units[q]);
        let each: Vec<f64> = found.iter().map(|a| a.effects[q].cure()).collect();
        let cure = u.values[0].expect("a cure effect");
        assert!((cure.estimate - each.iter().sum::<f64>() / 3.0).abs() < 1e-12);
        let spread = each.iter().map(|e| (e - cure.estimate).powi(2)).sum::<f64>() / 2.0;
        if let Some(se) = cure.se {
            assert!(se * se >= spread * (4.0 / 3.0) - 1e-12, "at least the spread between data sets");
        }
        let (low, high) = (cure.low.expect("an end"), cure.high.expect("an end"));
        assert!(-1.0 <= low && low <= cure.estimate && cure.estimate <= high && high <= 1.0);
    }
    let average = |name: &str| pooled.averages.iter().find(|a| a.estimand == name && a.population == "all").unwrap();
    let cure = average("cure_effect").value.expect("an average");
    let single = audits[0].averages.iter().find(|a| a.estimand == "cure_effect" && a.population == "all").unwrap();
    assert!(cure.missing_information.unwrap() > 0.0 && cure.missing_information.unwrap() < 0.9);
    assert!((cure.se.unwrap() / single.se.unwrap() - 1.0).abs() < 0.5);
    let needed = average("number_needed_to_treat").value.expect("a number");
    assert!((needed.estimate - 1.0 / cure.estimate).abs() < 1e-9);
    // The same data three times: no information is missing, and the standard error is that of one.
    let same = pool_imputations(&[set(0), set(0), set(0)]).expect("pooled");
    let one =
        same.averages.iter().find(|a| a.estimand == "cure_effect" && a.population == "all").unwrap().value.unwrap();
    assert_eq!((one.missing_information, one.estimate), (Some(0.0), single.estimate.unwrap()));
    assert!((one.se.unwrap() - single.se.unwrap()).abs() < 1e-15);
    // Arms against one control: the first is this run, the second the same again.
    let arms = compare_arms(&[("A".into(), &audits[0]), ("B".into(), &audits[0])], 0.95);
    let a = arms.iter().find(|c| c.estimand == "cure_effect").unwrap();
    assert_eq!((a.estimate, a.se), (single.estimate, single.se));
    assert!((a.p_holm.unwrap() - (2.0 * a.p.unwrap()).min(1.0)).abs() < 1e-15);
    let (narrow, wide) = (a.interval.unwrap(), a.simultaneous.unwrap());
    assert!(wide[0] < narrow[0] && narrow[1] < wide[1]);
}

#[test]
fn data_sets_of_other_patients_are_not_pooled() {
    let cohort = imputed(1).remove(0);
    let shifted = Cohort::from_parts(
        Units { ids: Ids::Integers((2..=1_201).collect()), ..cohort.to_units() },
        None,
        cohort.horizon(),
    )
    .expect("sound parts");
    let options = Options { group_size: 30, ..Options::paper() };
    let runs = [&cohort, &shifted].map(|c| analysis::run(c, &options, &Unwatched).expect("a run"));
    let audit = Audit::of(&cohort, &runs[0], &[]).expect("an audit");
    let set = |cohort, k: usize| Analysed { name: "set", cohort, analysis: &runs[k], audit: &audit };
    let Err(Error::Refused(problems)) = pool_imputations(&[set(&cohort, 0), set(&shifted, 1)]) else {
        panic!("other patients")
    };
    let words = problems[0].found.spelled(&Fields);
    assert!(words.contains("1 is in `set` alone (`1`)") && words.contains("1 is in `set` alone (`1201`)"), "{words}");
    // Neither is a data set in which one of them changed arms; nothing need be analysed to see it.
    let mut units = cohort.to_units();
    units.arm[4] = if units.arm[4] == Arm::Treated { Arm::Control } else { Arm::Treated };
    let moved = Cohort::from_parts(units, None, cohort.horizon()).expect("sound parts");
    let words = same_patients(&[("first", &cohort), ("second", &moved)]).expect_err("another arm").to_string();
    assert!(words.contains("patient `5` is in one arm in `first`"), "{words}");
    assert!(pool_imputations(&[set(&cohort, 0)]).is_err(), "one data set shows no spread");
}
