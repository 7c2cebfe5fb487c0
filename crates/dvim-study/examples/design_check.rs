//! Power that `dvim design` predicts beside the share of findings in trials of another seed: `make design-check`.
//!
//! Prints a line for each of twelve designs and fails where the two differ by more than four Monte Carlo standard errors.
#![allow(clippy::print_stdout, reason = "what it is for")]

use dvim::internal::interval::two_sided;
use dvim::internal::watch::Unwatched;
use dvim_study::design::analysis::by_estimator;
use dvim_study::design::trial::Trial;
use dvim_study::design::world::World;
use dvim_study::design::{Asked, Forgetful, Method, Power, Share};
use rayon::prelude::*;

/// Trials of the other seed: crude ones, and fits.
const CRUDE: usize = 2_000;
const FITS: usize = 150;

fn designs() -> Vec<(&'static str, Asked)> {
    let base = || Asked {
        horizon: Some(5.0),
        event_free: Some(0.4),
        mean_time: Some(1.5),
        cure_effect: Some(0.15),
        time_effect: Some(0.3),
        accrual: Some(2.0),
        study_end: Some(6.5),
        dropout: Some(0.1),
        sizes: Some(vec![240]),
        most_trials: Some(60),
        ..Asked::default()
    };
    let prognosis = || Asked { prognosis_whether: Some(1.0), prognosis_when: Some(0.5), ..base() };
    let by = |a: Asked, method: &str| Asked { analysis: Some(method.into()), ..a };
    let curve = vec![[0.0, 1.0], [0.5, 0.8], [1.0, 0.65], [2.0, 0.5], [5.0, 0.4]];
    vec![
        ("crude", base()),
        ("crude, two to one", Asked { treated_share: Some(0.67), ..base() }),
        ("crude, a curve read off", Asked { curve: Some(curve), event_free: None, mean_time: None, ..base() }),
        ("crude, whole clusters", Asked { cluster_size: Some(8), cluster_correlation: Some(0.1), ..base() }),
        ("crude, confounded", Asked { confounding: Some(0.5), ..prognosis() }),
        ("paper, prognosis", by(prognosis(), "paper")),
        ("paper, 400 patients", by(Asked { sizes: Some(vec![400]), ..prognosis() }, "paper")),
        ("adjusted, prognosis", by(prognosis(), "adjusted")),
        ("adjusted, noise too", by(Asked { n_covariates: Some(8), ..prognosis() }, "adjusted")),
        ("adjusted, effects vary", by(Asked { cure_effect_sd: Some(0.08), ..prognosis() }, "adjusted")),
        ("adjusted, confounded", by(Asked { confounding: Some(0.7), selection: Some(0.5), ..prognosis() }, "adjusted")),
        ("adjusted, small effect", by(Asked { cure_effect: Some(0.08), ..prognosis() }, "adjusted")),
    ]
}

fn realised(a: &Asked) -> [Share; 2] {
    let d = Asked { seed: Some(4_711), ..a.clone() }.resolve(None).expect("a design");
    let (world, z) = (World::new(&d, None, true), two_sided(1.0 - d.alpha));
    let trials = if d.analysis == Method::Crude { CRUDE } else { FITS };
    let one = |r: usize| {
        let trial = Trial::draw(&world, d.sizes[0], r);
        let found = by_estimator(&trial, &world.names(), d.analysis, r as u64 + 1).expect("a fit");
        found.statistics().map(|t| t.abs() > z)
    };
    let found: Vec<[bool; 3]> = (0..trials).into_par_iter().map(one).collect();
    [0, 1].map(|k| Share::of(found.iter().filter(|f| f[k]).count(), trials))
}

fn main() {
    let mut off = 0;
    println!("| design | fits | whether: predicted | realised | when: predicted | realised | largest difference, SE |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for (name, asked) in designs() {
        let design = asked.resolve(None).expect("a design");
        let row = Power::of(&design, None, &mut Forgetful, &Unwatched).expect("trials").rows.remove(0);
        let realised = realised(&asked);
        let words = |s: Share| format!("{:.1} ({:.1})", 100.0 * s.value, 100.0 * s.mc_se);
        let predicted = [0, 1].map(|k| row.power[k].expect("power"));
        let largest = [0, 1]
            .map(|k| (predicted[k].value - realised[k].value).abs() / predicted[k].mc_se.hypot(realised[k].mc_se))
            .into_iter()
            .fold(0.0, f64::max);
        off += usize::from(largest > 4.0);
        let [a, b, c, d] = [predicted[0], realised[0], predicted[1], realised[1]].map(words);
        println!("| {name} | {} | {a} | {b} | {c} | {d} | {largest:.1} |", row.fits);
    }
    assert_eq!(off, 0, "designs in which power predicted and power realised differ");
}
