//! Oracles: estimates that only a simulation can make, because they use what an analyst cannot see.
//!
//! All match on the *true* weights, `(|β₁| + |β₀|)/2` for cure and `(|λ₁| + |λ₀|)/2` for time, on covariates as
//! recorded.
//!
//! - **Full oracle**: both potential outcomes of every estimation unit are seen, uncensored. A cure group is the K
//!   nearest of all estimation units, whatever their arm; Ŝ_z(H) is the share of it that is cured under z. A time group
//!   of arm z is the K nearest of the units that are uncured under z; CMET_z is their mean event time.
//! - **Partial oracle**: the pools and observed outcomes of every other method, in groups made with the true weights.
//! - **Partial oracle, uncensored**: the very groups of the partial oracle, each member's outcome under its own arm
//!   seen to the end. What separates it from the partial oracle is censoring and nothing else.

use dvim::internal::arm::{Arm, ByArm};
use dvim::internal::cohort::Cohort;
use dvim::internal::compare::method::{Field, Method, MethodEffects};
use dvim::internal::matching::{Index, Points};
use dvim::internal::metric::{Metric, Scaling};
use dvim::internal::simulate::{Scenario, Simulated};

/// Metrics with the true weights: for cure, for time.
pub fn true_metrics(scenario: Scenario) -> [Metric; 2] {
    let [control, treated] = Arm::BOTH.map(|z| scenario.coefficients(z).expect("the paper's scenarios are linear"));
    let metric = |a: &[f64], b: &[f64]| raw_metric(a.iter().zip(b).map(|(a, b)| 0.5 * (a.abs() + b.abs())).collect());
    [metric(&control.0, &treated.0), metric(&control.1, &treated.1)]
}

/// A metric on covariates as recorded.
pub fn raw_metric(weights: Vec<f64>) -> Metric {
    let p = weights.len();
    Metric { weights, scaling: Scaling { center: vec![0.0; p], scale: vec![1.0; p] } }
}

/// Places units, without the axes of weight zero.
fn place(metric: &Metric, covariates: &[f64]) -> Points {
    let all = metric.place(covariates);
    let used: Vec<usize> = (0..all.dim).filter(|&j| metric.weights[j] > 0.0).collect();
    let coords = (0..all.len()).flat_map(|i| used.iter().map(move |&j| (i, j))).map(|(i, j)| all.point(i)[j]).collect();
    Points { dim: used.len(), coords }
}

/// The effects of each oracle at each group size.
pub fn estimate<const N: usize>(
    scenario: Scenario,
    world: &Simulated,
    field: &Field<'_>,
    sizes: [usize; N],
) -> Vec<(Method, Vec<MethodEffects>)> {
    let metrics = true_metrics(scenario);
    let (uncensored, partial) = own_arm(world, field, &metrics, sizes);
    vec![
        (Method::Oracle, full(world, field, &metrics, sizes)),
        (Method::UncensoredOracle, uncensored),
        (Method::PartialOracle, partial),
    ]
}

fn full<const N: usize>(
    world: &Simulated,
    field: &Field<'_>,
    metrics: &[Metric; 2],
    sizes: [usize; N],
) -> Vec<MethodEffects> {
    let truth: Vec<_> = field.units.iter().map(|&i| world.truth[i as usize]).collect();
    let most = sizes[N - 1];
    let points = place(&metrics[0], &field.covariates);
    let cure: Vec<[f64; N]> = Index::build(&points).nearest_map(
        &points,
        most,
        || (),
        |(), _, members, _| {
            sizes.map(|k| {
                let cured = |arm: Arm| {
                    members[..k].iter().filter(|&&m| truth[m as usize].arms[arm].event_time.is_infinite()).count()
                };
                (cured(Arm::Treated) as f64 - cured(Arm::Control) as f64) / k as f64
            })
        },
    );
    let points = place(&metrics[1], &field.covariates);
    let means = ByArm::of(|arm| {
        let uncured: Vec<usize> = (0..truth.len()).filter(|&q| truth[q].arms[arm].event_time.is_finite()).collect();
        let coords = uncured.iter().flat_map(|&q| points.point(q)).copied().collect();
        let index = Index::build(&Points { dim: points.dim, coords });
        index.nearest_map(
            &points,
            most,
            || (),
            |(), _, members, _| {
                sizes.map(|k| {
                    let times = members[..k].iter().map(|&m| truth[uncured[m as usize]].arms[arm].event_time);
                    times.sum::<f64>() / k as f64
                })
            },
        )
    });
    (0..N)
        .map(|k| MethodEffects {
            cure: cure.iter().map(|c| c[k]).collect(),
            time: means.treated.iter().zip(&means.control).map(|(t, c)| Some(t[k] - c[k])).collect(),
        })
        .collect()
}

/// What a group says: Ŝ(H) and CMET.
type Group = (f64, Option<f64>);

/// The two oracles that share groups: uncensored, observed.
fn own_arm<const N: usize>(
    world: &Simulated,
    field: &Field<'_>,
    metrics: &[Metric; 2],
    sizes: [usize; N],
) -> (Vec<MethodEffects>, Vec<MethodEffects>) {
    let found = metrics.each_ref().map(|metric| {
        let queries = place(metric, &field.covariates);
        Arm::BOTH.map(|arm| {
            let pool = &field.pools[arm];
            let index = Index::build(&place(metric, &covariates(field.cohort, &pool.units)));
            let event_time = |m: u32| world.truth[pool.units[m as usize] as usize].arms[arm].event_time;
            index.nearest_map(&queries, sizes[N - 1], Vec::new, |scratch, _, members, _| {
                sizes.map(|k| {
                    let members = &members[..k];
                    let (mut uncured, mut total) = (0.0, 0.0);
                    for t in members.iter().map(|&m| event_time(m)).filter(|t| t.is_finite()) {
                        uncured += 1.0;
                        total += t;
                    }
                    let uncensored: Group = (1.0 - uncured / k as f64, (uncured > 0.0).then(|| total / uncured));
                    let seen = pool.summary(members, scratch);
                    [uncensored, (seen.survival, seen.mean_event_time())]
                })
            })
        })
    });
    let effects = |which: usize| -> Vec<MethodEffects> {
        let [cure, time] = &found;
        (0..N)
            .map(|k| MethodEffects {
                cure: cure[1].iter().zip(&cure[0]).map(|(t, c)| t[k][which].0 - c[k][which].0).collect(),
                time: time[1].iter().zip(&time[0]).map(|(t, c)| Some(t[k][which].1? - c[k][which].1?)).collect(),
            })
            .collect()
    };
    (effects(0), effects(1))
}

fn covariates(cohort: &Cohort, units: &[u32]) -> Vec<f64> {
    units.iter().flat_map(|&i| cohort.covariates(i as usize)).copied().collect()
}
