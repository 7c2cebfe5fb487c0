//! Other readings of the paper's rows, beside ours: `cargo run --release -p dvim-study --example readings -- [REPS
//! [confounded]]`.
//!
//! The paper names its comparators in a sentence each, so that several methods answer to each name. This prints the
//! error of each reading that was tried, K = 50, as a Markdown table (cure × 100 / time), for docs/study.md.

use dvim::internal::cohort::Arm;
use dvim::internal::compare::cox::{self, CoxFit, Ties};
use dvim::internal::compare::method::{Field, Learned, Method, MethodEffects};
use dvim::internal::compare::{FitOptions, Units, logistic};
use dvim::internal::matching::{Index, Points};
use dvim::internal::metric::{Scale, Scaling};
use dvim::internal::simulate::{Scenario, Simulated, simulate};
use dvim::internal::watch::Unwatched;
use dvim_study::dataset::options;
use dvim_study::oracle::{raw_metric, true_metrics};
use dvim_study::record::{Cell, Experiment, Job, Settings};
use std::io::Write;

const K: [usize; 1] = [50];

fn main() {
    let reps: usize = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(3);
    let confounded = std::env::args().nth(2).is_some_and(|a| a == "confounded");
    let settings = Settings::new(1, 20_000);
    let mut rows: Vec<(&'static str, Vec<[f64; 3]>)> = Vec::new();
    for scenario in Scenario::PAPER {
        for rep in 0..reps {
            for (i, (name, cell)) in readings(&settings, scenario, confounded, rep).into_iter().enumerate() {
                if rows.len() <= i {
                    rows.push((name, Vec::new()));
                }
                let time = cell.time_mae.unwrap_or(f64::NAN);
                rows[i].1.push([100.0 * cell.cure_mae, time, cell.time_undefined]);
            }
        }
    }
    let mut out = std::io::stdout().lock();
    let heads: Vec<&str> = Scenario::PAPER.iter().map(|s| s.label()).collect();
    writeln!(out, "| Reading | {} |\n| --- |{}", heads.join(" | "), " ---: |".repeat(4)).expect("stdout");
    for (name, cells) in rows {
        let mean = |c: &[[f64; 3]], j: usize| c.iter().map(|v| v[j]).sum::<f64>() / c.len() as f64;
        let cell = |c: &[[f64; 3]]| format!("{:.1} / {:.1}", mean(c, 0), mean(c, 1));
        let shown: Vec<String> = cells.chunks(reps).map(cell).collect();
        writeln!(out, "| {name} | {} |", shown.join(" | ")).expect("stdout");
    }
}

fn readings(settings: &Settings, scenario: Scenario, confounded: bool, rep: usize) -> Vec<(&'static str, Cell)> {
    let job = Job::new(Experiment::Base, scenario, settings.n_units, rep);
    let seed = job.seed(settings);
    let world = simulate(scenario, settings.n_units, confounded, seed);
    let learned = Learned::learn(&world.cohort, &options(seed), Ties::Breslow, &Unwatched).expect("a fit");
    let field = Field::new(&world.cohort, &learned.fit);
    let p = world.cohort.n_covariates();
    let mut out = Vec::new();
    let mut add = |name: &'static str, effects: MethodEffects| {
        let truth = |q: usize| world.truth[field.units[q] as usize];
        let cure = effects.cure.iter().enumerate().map(|(q, c)| c - truth(q).cure_effect());
        let time = effects.time.iter().enumerate().map(|(q, t)| Some((*t)? - truth(q).time_effect()));
        out.push((name, Cell::of(name, K[0], cure, time)));
    };
    let by = |place: &dyn Fn(&[f64]) -> Points| -> MethodEffects {
        let [found] = field.match_by(place, K);
        found
    };
    let ours = |method: Method| -> MethodEffects {
        let [found] = learned.estimate(&field, method, K).expect("no truth needed");
        found
    };
    let each = |dim: usize, f: &dyn Fn(&[f64]) -> Vec<f64>, x: &[f64]| Points {
        dim,
        coords: x.chunks_exact(p).flat_map(f).collect(),
    };

    // Propensity score.
    add("**Propensity score**: P(treated), fitted on the training set (ours)", ours(Method::PropensityScoreKnn));
    let logit = |x: &[f64]| vec![learned.propensity.score().linear_predictor(x)];
    add("its logit", by(&|x| each(1, &logit, x)));
    let treated: Vec<bool> = (0..world.cohort.n_units()).map(|i| world.cohort.arm(i) == Arm::Treated).collect();
    let all = logistic::fit(world.cohort.all_covariates(), p, &treated, &FitOptions::default()).expect("a fit").score();
    add("fitted on all units", by(&|x| each(1, &|x| vec![all.evaluate(x)], x)));
    let random = |x: &[f64]| {
        let mixed: f64 = x.iter().enumerate().map(|(j, v)| v * (12.9898 + 7.233 * j as f64)).sum();
        vec![(mixed.sin() * 43_758.545).fract()]
    };
    add("a random number: groups at random", by(&|x| each(1, &random, x)));

    // Prognostic score.
    add("**Prognostic score**: mean over the arms of the Cox Ŝ(H) (ours)", ours(Method::PrognosticScoreKnn));
    let horizon = world.cohort.horizon();
    let scores = learned.cox.each_ref().map(|c| c.survival_score(horizon));
    add(
        "Ŝ(H) of the control arm alone (Hansen's definition)",
        by(&|x| each(1, &|x| vec![scores.control.evaluate(x)], x)),
    );
    add("both arms' Ŝ(H), two dimensions", by(&|x| each(2, &|x| scores.iter().map(|s| s.evaluate(x)).collect(), x)));
    add(
        "both arms' linear predictors, two dimensions",
        by(&|x| each(2, &|x| scores.iter().map(|s| s.linear_predictor(x)).collect(), x)),
    );
    let mean_predictor = |x: &[f64]| vec![scores.iter().map(|s| s.linear_predictor(x)).sum()];
    add("mean of the linear predictors", by(&|x| each(1, &mean_predictor, x)));
    let training: Vec<usize> = (0..world.cohort.n_units()).filter(|&i| learned.fit.is_training[i]).collect();
    let pooled = pooled_cox(&world, &training);
    add(
        "linear predictor of a pooled Cox model",
        by(&|x| each(1, &|x| vec![x.iter().zip(&pooled.coefficients).map(|(x, b)| x * b).sum()], x)),
    );

    // Feature selection.
    add(
        "**Feature selection**: p < .05 in either arm's Cox model, equal weights (ours)",
        ours(Method::FeatureSelectionKnn),
    );
    let kept = pooled.p_values()[..p].iter().map(|p| f64::from(u8::from(*p < 0.05))).collect();
    let kept = raw_metric(kept);
    add("p < .05 in a pooled Cox model with treatment", by(&|x| kept.place(x)));

    // Combined weights, and scale.
    add("**Combined**: mean of the raw weights (ours)", ours(Method::McmKnnCombined));
    let unit = |w: &[f64]| w.iter().map(|v| v / w.iter().sum::<f64>()).collect::<Vec<f64>>();
    let (c, t) =
        (unit(&learned.fit.description.metrics.cure.weights), unit(&learned.fit.description.metrics.time.weights));
    let normalised = raw_metric(c.iter().zip(&t).map(|(a, b)| a + b).collect());
    add("weights normalised to sum 1 first", by(&|x| normalised.place(x)));
    add("**Euclidean**: covariates as recorded (ours)", ours(Method::EuclideanKnn));
    let mut standard = raw_metric(vec![1.0; p]);
    standard.scaling = Scaling::of(&world.cohort, Scale::Standard);
    add("standardised covariates", by(&|x| standard.place(x)));

    // Cox.
    add("**Cox**: per arm on the training set (ours)", ours(Method::Cox));
    let time: Vec<f64> = (0..world.cohort.n_units()).map(|i| world.cohort.time(i)).collect();
    let event: Vec<bool> = (0..world.cohort.n_units()).map(|i| world.cohort.event(i)).collect();
    let units = Units { covariates: world.cohort.all_covariates(), n_covariates: p, time: &time, event: &event };
    let fitted = cox::fit_arms(&units, &treated, Ties::Breslow, &FitOptions::default()).expect("a fit");
    let effects = cox::effects(&fitted, &field.covariates, horizon);
    let time = effects.time.expect("events in both arms").into_iter().map(Some).collect();
    add("per arm on all units", MethodEffects { cure: effects.cure, time });

    // Full oracle.
    add(
        "**Full oracle**: time groups of K uncured units (ours)",
        dvim_study::oracle::estimate(scenario, &world, &field, K).swap_remove(0).1.swap_remove(0),
    );
    add("time groups of K units, the uncured among them averaged", mixed_oracle(scenario, &world, &field, 50));
    add("the same with K = 100", mixed_oracle(scenario, &world, &field, 100));
    out
}

/// A Cox model of both arms, with treatment as the last covariate.
fn pooled_cox(world: &Simulated, units: &[usize]) -> CoxFit {
    let cohort = &world.cohort;
    let mut covariates = Vec::new();
    for &i in units {
        covariates.extend_from_slice(cohort.covariates(i));
        covariates.push(f64::from(u8::from(cohort.arm(i) == Arm::Treated)));
    }
    let time: Vec<f64> = units.iter().map(|&i| cohort.time(i)).collect();
    let event: Vec<bool> = units.iter().map(|&i| cohort.event(i)).collect();
    let n_covariates = cohort.n_covariates() + 1;
    let units = Units { covariates: &covariates, n_covariates, time: &time, event: &event };
    cox::fit(&units, Ties::Breslow, &FitOptions::default()).expect("a fit")
}

/// A full oracle whose time groups are the K nearest whether cured or not.
fn mixed_oracle(scenario: Scenario, world: &Simulated, field: &Field<'_>, k: usize) -> MethodEffects {
    let truth: Vec<_> = field.units.iter().map(|&i| world.truth[i as usize]).collect();
    let [for_cure, for_time] = true_metrics(scenario).map(|m| {
        let points = m.place(&field.covariates);
        Index::build(&points).nearest(&points, k)
    });
    let cured = |q: usize, z: Arm| {
        let cured = for_cure.of(q, k).0.iter().filter(|&&m| truth[m as usize].arms[z].event_time.is_infinite()).count();
        cured as f64 / k as f64
    };
    let mean = |q: usize, z: Arm| {
        let times = for_time.of(q, k).0.iter().map(|&m| truth[m as usize].arms[z].event_time).filter(|t| t.is_finite());
        let times: Vec<f64> = times.collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    };
    let queries = || 0..truth.len();
    MethodEffects {
        cure: queries().map(|q| cured(q, Arm::Treated) - cured(q, Arm::Control)).collect(),
        time: queries().map(|q| Some(mean(q, Arm::Treated)? - mean(q, Arm::Control)?)).collect(),
    }
}
