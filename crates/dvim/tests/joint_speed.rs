//! How long a fold takes: `cargo test --release -p dvim --test joint_speed -- --ignored --nocapture`.

use std::time::Instant;

use dvim::internal::cohort::Arm;
use dvim::internal::joint::{Family, JointOptions, Terms, TwoArms, describe};
use dvim::internal::simulate::{Scenario, simulate};

/// Seconds that this thread has run: on a busy machine the clock on the wall says little.
fn on_cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) * 1e-9
}

#[test]
#[ignore = "a measurement"]
fn one_fold_of_20000_units() {
    let world = simulate(Scenario::BothOverlap, 20_000, false, 1);
    let cohort = &world.cohort;
    let (n, p) = (cohort.n_units(), cohort.n_covariates());
    let mut covariates = cohort.all_covariates().to_vec();
    for j in 0..p {
        let mean = (0..n).map(|i| covariates[i * p + j]).sum::<f64>() / n as f64;
        let sd = ((0..n).map(|i| (covariates[i * p + j] - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        (0..n).for_each(|i| covariates[i * p + j] = (covariates[i * p + j] - mean) / sd);
    }
    let time: Vec<f64> = (0..n).map(|i| cohort.time(i)).collect();
    let event: Vec<bool> = (0..n).map(|i| cohort.event(i)).collect();
    let treated: Vec<bool> = (0..n).map(|i| cohort.arm(i) == Arm::Treated).collect();
    // A second outcome, by curves and products, for which terms enter.
    let mut state = 1u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    let (mut curved_time, mut curved_event) = (Vec::new(), Vec::new());
    for x in covariates.chunks_exact(p) {
        let logit = -0.5 + 0.6 * (x[10] * x[10] - 1.0) + 0.5 * x[11] * x[12] + 0.5 * x[0] * x[18];
        let location = 4.0 + 0.5 * f64::from(u8::from(x[13] > 0.0)) + 0.4 * x[14] * x[15];
        let normal = (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        let (cured, lost) = (uniform() < 1.0 / (1.0 + (-logit).exp()), 1_200.0 * uniform());
        let t = if cured { f64::INFINITY } else { (location + 0.7 * normal).exp() };
        curved_time.push(t.min(lost).min(cohort.horizon()));
        curved_event.push(t < lost.min(cohort.horizon()));
    }
    let k = 18_000;
    let data = TwoArms {
        time: &time[..k],
        event: &event[..k],
        treated: &treated[..k],
        covariates: &covariates[..k * p],
        n_covariates: p,
        horizon: cohort.horizon(),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        let seconds = |what: &str, f: &mut dyn FnMut()| {
            let (mut wall, mut cpu) = (f64::INFINITY, f64::INFINITY);
            for _ in 0..5 {
                let (start, before) = (Instant::now(), on_cpu());
                f();
                wall = wall.min(start.elapsed().as_secs_f64());
                cpu = cpu.min(on_cpu() - before);
            }
            eprintln!("{what}: {:.1} ms, {:.1} ms on a processor (best of 5)", 1e3 * wall, 1e3 * cpu);
        };
        let terms = Terms::new(&covariates, p);
        let curved = TwoArms { time: &curved_time[..k], event: &curved_event[..k], ..data };
        let full = JointOptions::default();
        seconds("log-normal, curved, with search", &mut || drop(describe(&curved, &terms, &full)));
        let model = describe(&curved, &terms, &full).unwrap();
        eprintln!("  terms {:?}", model.terms.iter().map(|t| format!("{t}")).collect::<Vec<_>>());
        seconds("candidate terms of the cohort", &mut || drop(Terms::new(&covariates, p)));
        for family in Family::ALL {
            let linear = JointOptions { family, rounds: 0, ..JointOptions::default() };
            seconds(&format!("{family}, straight lines"), &mut || drop(describe(&data, &terms, &linear)));
            let full = JointOptions { family, ..JointOptions::default() };
            seconds(&format!("{family}, with search"), &mut || drop(describe(&data, &terms, &full)));
            let model = describe(&data, &terms, &full).unwrap();
            eprintln!("  {} terms of {}", model.terms.len(), model.n_candidates);
            seconds("  predictions of 20,000 units", &mut || drop(model.predict_all(&covariates)));
            let certainty = model.certainty(Some(8.0));
            seconds("  certainty", &mut || drop(model.certainty(Some(8.0))));
            seconds("  covariances of 2,000 units", &mut || {
                for i in 0..2_000 {
                    assert!(certainty.at(&covariates[i * p..(i + 1) * p])[0][0] > 0.0);
                }
            });
        }
    });
}

/// 300 units, 2,000 covariates: the whole adjusted estimator under each penalty.
#[test]
#[ignore = "a measurement"]
fn two_thousand_covariates_of_300_units() {
    use dvim::internal::analysis;
    use dvim::internal::options::AdjustedOptions;
    use dvim::internal::options::{Estimator, Options};
    use dvim::internal::watch::Unwatched;
    let world = simulate(Scenario::BothOverlap, 300, false, 1).widened(2_000, 7);
    let cohort = &world.cohort;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for elastic_net in [None, Some(0.0), Some(0.5)] {
        let adjusted = AdjustedOptions { elastic_net, ..AdjustedOptions::default() };
        let options = Options { estimator: Estimator::Adjusted(adjusted), ..Options::default() };
        let (found, cpu) = pool.install(|| {
            let before = on_cpu();
            (analysis::run(cohort, &options, &Unwatched), on_cpu() - before)
        });
        let cross_fit = found.as_ref().ok().and_then(|f| f.fit.description.cross_fit.as_ref());
        let what = cross_fit.map(|c| (c.family, c.strengths));
        eprintln!(
            "p = 2,000, n = 300, elastic net {elastic_net:?}: {cpu:.2} s on a processor, {what:?} {:?}",
            found.err()
        );
    }
}
