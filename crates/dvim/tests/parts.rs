//! A cohort from arrays passes the same door as a table.

use dvim::internal::cohort::{Cohort, Units};
use dvim::internal::error::{Error, ProblemKind as Kind, Severity};
use dvim::internal::schema::{self, Covariate};
use dvim::internal::simulate::{Scenario, simulate};
use dvim::internal::table::Ids;

const HORIZON: f64 = 800.0;

fn sound() -> Units {
    simulate(Scenario::BothOverlap, 200, false, 4).cohort.to_units()
}

fn kinds(units: Units, schema: Option<Vec<Covariate>>, horizon: f64) -> Vec<Kind> {
    match Cohort::from_parts(units, schema, horizon) {
        Ok(_) => Vec::new(),
        Err(Error::Refused(problems)) => {
            problems.iter().filter(|p| p.severity == Severity::Error).map(|p| p.kind).collect()
        }
        Err(other) => panic!("{other:?}"),
    }
}

fn kinds_after(change: impl Fn(&mut Units)) -> Vec<Kind> {
    let mut units = sound();
    change(&mut units);
    kinds(units, None, HORIZON)
}

#[test]
fn a_cohort_is_made_of_its_own_parts() {
    let cohort = simulate(Scenario::BothOverlap, 200, false, 4).cohort;
    assert_eq!(Cohort::from_parts(cohort.to_units(), None, HORIZON).as_ref(), Ok(&cohort));
}

#[test]
fn what_a_table_may_not_hold_arrays_may_not_hold() {
    assert_eq!(kinds_after(|u| u.time[3] = 0.0), [Kind::TimeNotPositive]);
    assert_eq!(kinds_after(|u| u.time[3] = f64::NAN), [Kind::MissingValues]);
    assert_eq!(kinds_after(|u| u.time[3] = f64::INFINITY), [Kind::NotFinite]);
    assert_eq!(kinds_after(|u| u.event.fill(false)), [Kind::NoEvent; 2]);
    assert_eq!(kinds_after(|u| u.covariates[7] = f64::NAN), [Kind::MissingValues]);
    assert_eq!(kinds_after(|u| u.covariates[7] = 1e101), [Kind::NotFinite]);
    assert_eq!(kinds_after(|u| u.covariates.iter_mut().step_by(20).for_each(|x| *x = 1.0)), [Kind::ConstantCovariate]);
    assert_eq!(kinds_after(|u| u.ids = Ids::Integers((0..200).map(|i| i / 2).collect())), [Kind::DuplicateIds]);
    assert_eq!(kinds_after(|u| u.extras.weight = Some(vec![-1.0; 200])), [Kind::BadWeight]);
    assert_eq!(kinds_after(|u| u.extras.cluster = Some(vec![7; 200])), [Kind::BadCluster]);
    assert_eq!(kinds_after(|u| u.extras.entry = Some(u.time.clone())).last(), Some(&Kind::BadEntry));
    assert_eq!(kinds(sound(), None, f64::INFINITY), [Kind::BadHorizon]);
    assert_eq!(kinds(sound(), None, 1e6), [Kind::NobodyAtHorizon; 2]);
}

#[test]
fn a_unit_has_one_level_of_a_category() {
    let mut units = sound();
    units.covariates = (0..200).flat_map(|i| if i % 3 == 0 { [1.0, 0.0] } else { [0.0, 1.0] }).collect();
    units.names = vec!["a".into(), "b".into()];
    let kind = schema::Kind::Category { levels: units.names.clone() };
    let schema = || Some(vec![Covariate { name: "group".into(), kind: kind.clone(), first: 0, fill: None }]);
    assert_eq!(kinds(units.clone(), schema(), HORIZON), []);
    for pair in [[0.0, 0.0], [1.0, 1.0], [0.5, 0.5]] {
        units.covariates[..2].copy_from_slice(&pair);
        assert_eq!(kinds(units.clone(), schema(), HORIZON), [Kind::UnknownLevel], "{pair:?}");
    }
}
