//! No group ever violates a constraint; a unit that cannot be served is said to be so; and what is found
//! is what a plain scan over the admissible units finds.

use dvim::internal::analysis;
use dvim::internal::cohort::{Arm, Cohort, Units};
use dvim::internal::constraint::{Caliper, Constraints};
use dvim::internal::error::{Error, ProblemKind};
use dvim::internal::fold::Fit;
use dvim::internal::matching::{Points, scan};
use dvim::internal::options::Options;
use dvim::internal::phrase::Fields;
use dvim::internal::schema::{Covariate, Kind};
use dvim::internal::simulate::{Scenario, simulate};
use dvim::internal::watch::Unwatched;
use proptest::prelude::*;

/// A cohort with a category of three levels, an indicator, a coarse number and two of the simulated covariates.
fn cohort(n: usize, seed: u64) -> Cohort {
    let w = simulate(Scenario::BothIndependent, n, false, seed);
    let Units { ids, time, event, arm, .. } = w.cohort.to_units();
    let mut covariates = Vec::new();
    for i in 0..n {
        let x = w.cohort.covariates(i);
        let level = usize::from(x[0] > 0.0) + usize::from(x[1] > 0.7);
        covariates.extend((0..3).map(|l| f64::from(u8::from(l == level))));
        covariates.extend([f64::from(u8::from(x[2] > 0.3)), (10.0 * x[3]).round(), x[4], x[5]]);
    }
    let mut schema = vec![
        Covariate {
            name: "site".into(),
            kind: Kind::Category { levels: ["a", "b", "c"].map(String::from).to_vec() },
            first: 0,
            fill: None,
        },
        Covariate {
            name: "sex".into(),
            kind: Kind::Indicator { zero: "f".into(), one: "m".into() },
            first: 3,
            fill: None,
        },
    ];
    schema.extend(["age", "u", "v"].iter().enumerate().map(|(j, name)| Covariate::number(name, 4 + j)));
    let names = schema.iter().flat_map(Covariate::column_names).collect();
    let units = Units {
        ids,
        time,
        event,
        arm,
        covariates,
        names,
        labels: ["0".into(), "1".into()],
        extras: Default::default(),
    };
    Cohort::from_parts(units, Some(schema), w.cohort.horizon()).expect("sound parts")
}

fn constraints() -> impl Strategy<Value = Constraints> {
    let exact = prop::sample::subsequence(vec!["site".to_string(), "sex".into(), "age".into()], 0..3);
    let width = prop_oneof![(0.0..1.5f64).prop_map(|w| (w, true)), (0.0..15.0f64).prop_map(|w| (w, false))];
    let calipers = prop::collection::vec((prop::sample::select(vec!["age", "u", "v"]), width), 0..3).prop_map(|list| {
        list.into_iter().map(|(c, (width, in_sd))| Caliper { covariate: c.into(), width, in_sd }).collect()
    });
    (exact, calipers, any::<bool>()).prop_map(|(exact, calipers, exclude_self)| Constraints {
        exact,
        calipers,
        exclude_self,
    })
}

/// Straight from the definition, with no code of the package's own.
fn admissible(cohort: &Cohort, c: &Constraints, i: usize, j: usize) -> bool {
    let (x, y) = (cohort.covariates(i), cohort.covariates(j));
    let of = |name: &str| cohort.schema().iter().find(|s| s.name == name).unwrap().columns();
    let sd = |j: usize| {
        let v: Vec<f64> = (0..cohort.n_units()).map(|i| cohort.covariates(i)[j]).collect();
        let mean = v.iter().sum::<f64>() / v.len() as f64;
        (v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (v.len() - 1) as f64).sqrt()
    };
    c.exact.iter().all(|name| x[of(name)] == y[of(name)])
        && c.calipers.iter().all(|k| {
            let j = of(&k.covariate).start;
            (x[j] - y[j]).abs() <= k.width * if k.in_sd { sd(j) } else { 1.0 }
        })
        && !(c.exclude_self && i == j)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn no_group_violates_a_constraint(constraints in constraints(), k in 1usize..12, seed in 0u64..50) {
        let cohort = cohort(240, seed);
        let options = Options { group_size: k, constraints: constraints.clone(), ..Options::paper() };
        let found = match analysis::run(&cohort, &options, &Unwatched) {
            Ok(found) => found,
            Err(Error::Refused(p)) => {
                // Only where nobody at all can be served.
                prop_assert_eq!(p[0].kind, ProblemKind::BadConstraint);
                return Ok(());
            }
            Err(e) => return Err(TestCaseError::fail(e.to_string())),
        };
        let fit = &found.fit;
        let pools = Arm::BOTH.map(|z| fit.units_in_pool(&cohort, z));
        prop_assert_eq!(found.units.len() + found.unserved.len(), fit.estimation_units().len());
        for unit in fit.estimation_units() {
            let i = unit as usize;
            let groups = fit.match_groups(&cohort, i);
            let candidates = [0, 1].map(|z: usize| -> Vec<u32> {
                pools[z].iter().copied().filter(|&j| admissible(&cohort, &constraints, i, j as usize)).collect()
            });
            let served = candidates.iter().all(|c| c.len() >= k);
            match found.unserved.iter().find(|(u, _)| *u == unit) {
                Some((_, why)) => {
                    prop_assert!(!served);
                    for (said, there) in why.candidates.iter().zip(&candidates) {
                        prop_assert_eq!(said.min(&k), &there.len().min(k));
                    }
                }
                None => prop_assert!(served),
            }
            for (metric, pair) in [(&fit.description.metrics.cure, &groups.cure), (&fit.description.metrics.time, &groups.time)] {
                for (candidates, group) in candidates.iter().zip(pair) {
                    let members: Vec<f64> = candidates.iter().flat_map(|&j| cohort.covariates(j as usize)).copied().collect();
                    let reference = if members.is_empty() { Points { dim: 1, coords: vec![] } } else { metric.place(&members) };
                    let size = k.min(candidates.len());
                    // Whoever is as far as the last shares its place.
                    let all = scan(&reference, &metric.place(cohort.covariates(i)), candidates.len());
                    let last = size.checked_sub(1).map_or(-1.0, |l| all.squared_distance[l]);
                    let near = all.index.iter().zip(&all.squared_distance).filter(|(_, d)| **d <= last * (1.0 + 1e-12));
                    let expected: Vec<u32> = near.map(|(&m, _)| candidates[m as usize]).collect();
                    prop_assert_eq!(&group.units, &expected);
                    prop_assert!(group.units.iter().all(|&j| admissible(&cohort, &constraints, i, j as usize)));
                }
            }
        }
    }
}

/// Constraints that ask nothing give the same bits as no constraint.
#[test]
fn a_constraint_that_binds_nobody_changes_nothing() {
    let cohort = cohort(400, 3);
    let free = analysis::run(&cohort, &Options { group_size: 15, ..Options::paper() }, &Unwatched).unwrap();
    let wide = Caliper { covariate: "u".into(), width: 1e9, in_sd: true };
    let constraints = Constraints { calipers: vec![wide], ..Constraints::default() };
    let bound =
        analysis::run(&cohort, &Options { group_size: 15, constraints, ..Options::paper() }, &Unwatched).unwrap();
    assert_eq!(free.effects, bound.effects);
    assert!(bound.unserved.is_empty());
}

#[test]
fn constraints_that_cannot_be_used_are_refused() {
    let cohort = cohort(200, 1);
    let refused = |constraints: Constraints| {
        let options = Options { group_size: 5, constraints, ..Options::paper() };
        let Err(Error::Refused(p)) = Fit::learn(&cohort, &options, &Unwatched) else { panic!("refused") };
        p.iter().map(|p| p.found.spelled(&Fields)).collect::<Vec<_>>().join("; ")
    };
    let caliper = |name: &str, width: f64| Constraints {
        calipers: vec![Caliper { covariate: name.into(), width, in_sd: false }],
        ..Constraints::default()
    };
    assert!(refused(Constraints { exact: vec!["sit".into()], ..Constraints::default() }).contains("no covariate"));
    assert!(refused(caliper("site", 1.0)).contains("category"));
    assert!(refused(caliper("age", -1.0)).contains("-1"));
    assert!(refused(caliper("age", f64::NAN)).contains("NaN"));
}
