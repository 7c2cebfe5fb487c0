//! Does the fit ever panic, loop or lie? Random data sets, ordinary and hostile, each answer checked by a
//! likelihood that shares no code with the engine.

#[path = "cure_naive.rs"]
mod naive;

use std::time::{Duration, Instant};

use dvim::internal::cure::{CureModel, FitOptions, Flag, StopReason, describe};
use naive::{Arm, Random, log_likelihood, parameters};

/// A data set drawn from many kinds of trouble; `seed` says which, and all of it.
fn hostile(seed: u64) -> Arm {
    let mut r = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let n = (30.0 * 100f64.powf(r.uniform())) as usize;
    let p = if r.chance(0.15) { 0 } else { r.below(31) };
    let horizon = if r.chance(0.15) { f64::INFINITY } else { 1.0 };
    let effect = [0.0, 0.3, 1.0, 3.0][r.below(4)];
    let strength = effect / (p as f64).sqrt().max(1.0);
    let cure: Vec<f64> = (0..p).map(|_| strength * r.normal()).collect();
    let latency: Vec<f64> = (0..p).map(|_| strength * r.normal()).collect();
    let cure_0 = [-20.0, -3.0, -1.0, 0.0, 1.0, 3.0][r.below(6)];
    let latency_0 = [-4.0, -2.0, -1.0, 0.0, 2.0][r.below(5)];
    let sigma = [0.05, 0.5, 1.0, 2.0][r.below(4)];
    let censoring = [0.2, 1.0, 1.5, 5.0, 1e9][r.below(5)];
    let family = r.below(5);
    let binary = r.uniform();
    let rare = if r.chance(0.3) { 0.02 } else { 0.5 };
    let mut arm = Arm { time: vec![], event: vec![], covariates: vec![], n_covariates: p, horizon };
    for _ in 0..n {
        let x: Vec<f64> = (0..p)
            .map(|j| if (j as f64) < binary * p as f64 { f64::from(r.chance(rare)) } else { r.normal() })
            .collect();
        let linear = |b: &[f64]| x.iter().zip(b).map(|(x, b)| x * b).sum::<f64>();
        let cured = r.chance(1.0 / (1.0 + (-cure_0 - linear(&cure)).exp()));
        let location = latency_0 + linear(&latency);
        let draw = |r: &mut Random| match family {
            0..=2 => (location + sigma * r.normal()).exp(),
            3 => r.uniform(),                                 // uniform up to the horizon
            _ => (location + (-r.uniform().ln()).ln()).exp(), // exponential
        };
        let mut t = f64::INFINITY;
        if !cured {
            t = (0..50).map(|_| draw(&mut r)).find(|t| *t < horizon).unwrap_or(0.999);
        }
        let lost = r.uniform() * censoring;
        arm.time.push(t.min(lost).min(horizon).max(1e-300));
        arm.event.push(t < lost.min(horizon));
        arm.covariates.extend(x);
    }
    // Trouble, up to three kinds at once.
    for _ in 0..r.below(4) {
        let j = if p > 0 { r.below(p) } else { 0 };
        match r.below(14) {
            0 => arm.time.iter_mut().filter(|y| **y < horizon).for_each(|y| *y = (*y * 10.0).ceil() / 10.0 - 0.05), /* ties */
            1 if p > 1 => {
                (0..n).for_each(|i| arm.covariates[i * p + j] = -2.0 * arm.covariates[i * p + (j + 1) % p] + 1.0)
            }
            2 if p > 0 => (0..n).for_each(|i| arm.covariates[i * p + j] = 7.5),
            3 if p > 0 => (0..n).for_each(|i| arm.covariates[i * p + j] = if arm.event[i] { 1.0 } else { 0.0 }), /* separation */
            4 if p > 0 => (0..n).for_each(|i| arm.covariates[i * p + j] = arm.time[i].min(1e6)), // the outcome itself
            5 if p > 0 => (0..n).for_each(|i| arm.covariates[i * p + j] *= 1e12),
            6 if p > 0 => (0..n).for_each(|i| arm.covariates[i * p + j] = 1e-9 * arm.covariates[i * p + j] + 1e-5),
            7 if p > 0 => arm.covariates[r.below(n) * p + j] = 1e6, // one outlier
            8 => {
                // an outlying time
                let i = r.below(n);
                arm.time[i] = 1e-12;
                arm.event[i] = true;
            }
            9 => arm.event.iter_mut().zip(&arm.time).for_each(|(e, y)| *e = *y < horizon), // nobody lost
            10 => (0..n).for_each(|i| {
                // nobody reaches the horizon
                if arm.time[i] >= horizon {
                    arm.time[i] = 0.9 + 0.0999 * r.uniform();
                    arm.event[i] = false;
                }
            }),
            11 => {
                // hardly any event
                let keep = 1 + r.below(4);
                let mut seen = 0;
                for e in &mut arm.event {
                    seen += usize::from(*e);
                    *e &= seen <= keep;
                }
            }
            12 => {
                let i = r.below(n);
                arm.time[i] = 0.0; // lost or dead at once
            }
            13 if p > 1 => (0..n).for_each(|i| {
                arm.covariates[i * p + j] = arm.covariates[i * p + (j + 1) % p] + 1e-4 * arm.covariates[i * p + j]; // nearly collinear
            }),
            _ => {}
        }
    }
    // The unit of time.
    let unit = [1.0, 1.0, 365.25, 1e-6, 1e9][r.below(5)];
    arm.time.iter_mut().for_each(|y| *y *= unit);
    arm.horizon *= unit;
    arm
}

/// What the engine says it does to events at time zero.
fn moved(arm: &Arm) -> Arm {
    let events = || (0..arm.n_units()).filter(|&i| arm.event[i] && arm.time[i] < arm.horizon);
    let smallest = events().map(|i| arm.time[i]).filter(|y| *y > 0.0).fold(f64::INFINITY, f64::min);
    let mut arm = arm.clone();
    for i in 0..arm.n_units() {
        if arm.event[i] && arm.time[i] <= 0.0 {
            arm.time[i] = smallest / 2.0;
        }
    }
    arm
}

#[derive(Default, Debug)]
struct Tally {
    maxima: usize,
    remedied: usize,
    uncertified: usize,
    errors: usize,
    slowest: Duration,
    slowest_seed: u64,
    total: Duration,
    flags: std::collections::BTreeMap<String, usize>,
    strengths: std::collections::BTreeMap<String, usize>,
}

/// Everything that must hold of any answer; an error says what does not.
fn check(arm: &Arm, model: &CureModel, random: &mut Random) -> Result<(), String> {
    let c = &model.certificate;
    let finite = parameters(model).iter().all(|b| b.is_finite()) && model.log_likelihood.is_finite();
    if !finite {
        return Err("a parameter is not finite".into());
    }
    if c.converged != matches!(c.stop_reason, StopReason::Maximum | StopReason::PenalisedMaximum) {
        return Err("converged and stop reason disagree".into());
    }
    if c.converged && !(c.gradient_norm <= 1e-7 && c.smallest_eigenvalue >= 1e-4) {
        return Err("converged without a certificate".into());
    }
    let remedied = c.penalty.is_some_and(|p| p.remedy.is_some());
    if (remedied || !c.converged) && c.flags.is_empty() {
        return Err("no reason is given".into());
    }
    for i in 0..arm.n_units().min(5) {
        let x = arm.row(i);
        let (p, mean) = (model.cure_probability(x), model.mean_event_time(x));
        let s = model.survival(x, arm.time[i]);
        if !((0.0..=1.0).contains(&p)
            && (0.0..=1.0 + 1e-12).contains(&s)
            && mean >= 0.0
            && mean <= arm.horizon * (1.0 + 1e-9))
        {
            return Err(format!("prediction out of range: {p} {s} {mean}"));
        }
    }
    if remedied || !c.converged {
        return Ok(());
    }
    // An unpenalised answer must be a maximum of the likelihood, by another likelihood.
    let arm = &moved(arm);
    let theta = parameters(model);
    let m = theta.len();
    let here = log_likelihood(arm, &theta);
    // Rounding of the naive value, which sums x'b in the caller's units, far from their centre.
    let noise = 1e-10 * (1.0 + here.abs()) + 1e-7;
    if (here - model.log_likelihood).abs() > noise {
        return Err(format!("log-likelihood {} is {here}", model.log_likelihood));
    }
    let covariance = model.covariance.as_ref().ok_or("no covariance")?;
    let matrix = nalgebra::DMatrix::from_row_slice(m, m, covariance);
    // Held parameters have variance zero.
    let free: Vec<usize> = (0..m).filter(|&k| covariance[k * m + k] > 0.0).collect();
    let sd: Vec<f64> = free.iter().map(|&k| covariance[k * m + k].sqrt()).collect();
    let correlation =
        nalgebra::DMatrix::from_fn(free.len(), free.len(), |i, j| matrix[(free[i], free[j])] / sd[i] / sd[j]);
    let eigen = nalgebra::SymmetricEigen::new(correlation);
    let step = |z: &nalgebra::DVector<f64>| {
        // A draw from N(0, covariance) for standard normal z.
        let scaled = nalgebra::DVector::from_fn(free.len(), |k, _| z[k] * eigen.eigenvalues[k].max(0.0).sqrt());
        &eigen.eigenvectors * scaled
    };
    let moved_value = |direction: &nalgebra::DVector<f64>, radius: f64| {
        let mut other = theta.clone();
        free.iter().enumerate().for_each(|(i, &k)| other[k] += radius * sd[i] * direction[i]);
        log_likelihood(arm, &other)
    };
    // Slope along each axis of the information, in standard errors: central differences with two steps, extrapolated,
    // because where a standard error is large the likelihood is far from quadratic within a hundredth of it.
    for k in 0..free.len() {
        let direction = step(&nalgebra::DVector::from_fn(free.len(), |i, _| f64::from(i == k)));
        let pair = |h: f64| (moved_value(&direction, h), moved_value(&direction, -h));
        let slope = |h: f64| (pair(h).0 - pair(h).1) / (2.0 * h);
        let h = 1e-3;
        let extrapolated = (4.0 * slope(h) - slope(2.0 * h)) / 3.0;
        // The fifth derivative enters with h⁴; rounding with noise/h.
        if extrapolated.is_nan() || extrapolated.abs() > 1e-3 + noise / h {
            return Err(format!(
                "slope {extrapolated:e} along axis {k}; {:e} {:e} {:e}",
                slope(1e-2),
                slope(h),
                slope(1e-4)
            ));
        }
        let drop = here - 0.5 * (pair(h).0 + pair(h).1);
        if drop.is_nan() || drop < -noise {
            return Err(format!("curvature {drop:e} along axis {k}"));
        }
    }
    for radius in [1e-3, 1e-2, 0.1] {
        for _ in 0..6 {
            let z = nalgebra::DVector::from_fn(free.len(), |_, _| random.normal());
            let gain = moved_value(&step(&z), radius) - here;
            if gain > noise {
                return Err(format!("a nearby point is better by {gain:e} (radius {radius})"));
            }
        }
    }
    Ok(())
}

fn run(seeds: std::ops::Range<u64>) -> (Tally, Vec<String>) {
    let mut tally = Tally::default();
    let mut failures = Vec::new();
    for seed in seeds {
        let arm = hostile(seed);
        let start = Instant::now();
        let answer = std::panic::catch_unwind(|| describe(&arm.view(), &FitOptions::default()));
        let took = start.elapsed();
        tally.total += took;
        if took > tally.slowest {
            (tally.slowest, tally.slowest_seed) = (took, seed);
        }
        let what = format!("seed {seed}, n {}, p {}, H {}", arm.n_units(), arm.n_covariates, arm.horizon);
        let model = match answer {
            Err(_) => {
                failures.push(format!("{what}: panic"));
                continue;
            }
            Ok(Err(error)) => {
                let any = (0..arm.n_units()).any(|i| arm.event[i] && arm.time[i] > 0.0 && arm.time[i] < arm.horizon);
                if any {
                    failures.push(format!("{what}: {error}"));
                }
                tally.errors += 1;
                continue;
            }
            Ok(Ok(model)) => model,
        };
        let c = &model.certificate;
        match c.penalty.and_then(|p| p.remedy) {
            _ if !c.converged => tally.uncertified += 1,
            Some(strength) => {
                tally.remedied += 1;
                *tally.strengths.entry(format!("{strength:e}")).or_default() += 1;
            }
            None => tally.maxima += 1,
        }
        for flag in &c.flags {
            let name = format!("{flag:?}");
            *tally.flags.entry(name.split(' ').next().unwrap().to_owned()).or_default() += 1;
        }
        if c.flags.contains(&Flag::NotCertified) {
            eprintln!("{what}: not certified and not diagnosed: {c:?}");
        }
        if let Err(problem) = check(&arm, &model, &mut Random(seed)) {
            failures.push(format!("{what}: {problem}; {c:?}"));
        }
    }
    (tally, failures)
}

#[test]
fn three_hundred_random_data_sets() {
    let (tally, failures) = run(0..300);
    eprintln!("{tally:#?}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(tally.uncertified, 0);
}

/// Minutes. `cargo test --release -p dvim --test cure_robustness -- --ignored --nocapture`
#[test]
#[ignore = "minutes"]
fn ten_thousand_random_data_sets() {
    let from = std::env::var("DVIM_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1000);
    let count = std::env::var("DVIM_COUNT").ok().and_then(|s| s.parse().ok()).unwrap_or(10_000);
    let (tally, failures) = run(from..from + count);
    eprintln!("{tally:#?}");
    eprintln!("{} failures", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(tally.uncertified, 0);
}

/// One data set, to look at: `DVIM_SEED=17 cargo test -p dvim --test cure_robustness one -- --ignored --nocapture`.
#[test]
#[ignore = "for looking"]
fn one_random_data_set() {
    let seed = std::env::var("DVIM_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    let arm = hostile(seed);
    let model = describe(&arm.view(), &FitOptions::default());
    eprintln!("{model:#?}");
    if let Ok(model) = model {
        eprintln!("{:?}", check(&arm, &model, &mut Random(seed)));
    }
}

// ---------------------------------------------------------------- fixtures/hard

fn hard_directory() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hard")
}

/// Writes data sets of this file to `fixtures/hard`; the first line says why.
#[test]
#[ignore = "writes fixtures/hard"]
fn write_hard_data() {
    for (name, seed, why) in [
        (
            "cure-skewed",
            58,
            "a cure coefficient with a standard error of 28 in the internal scale: slopes over 0.01 standard errors mislead",
        ),
        (
            "cure-runaway",
            2260,
            "the latency runs to infinity slowly: the first version ran out of iterations and could not say why",
        ),
    ] {
        let arm = hostile(seed);
        let n = arm.n_units();
        let p = arm.n_covariates;
        let names: Vec<String> = (0..p).map(|j| format!("x{j}")).collect();
        let mut text = format!(
            "# {why}\n# horizon {:?}\n{}\n",
            arm.horizon,
            [vec!["time".to_owned(), "event".to_owned()], names].concat().join(",")
        );
        for i in 0..n {
            let mut row = vec![format!("{:?}", arm.time[i]), u8::from(arm.event[i]).to_string()];
            row.extend(arm.row(i).iter().map(|x| format!("{:?}", f64::from(*x as f32))));
            text += &(row.join(",") + "\n");
        }
        std::fs::write(hard_directory().join(format!("{name}.csv")), text).unwrap();
    }
}

/// Data that once broke us still get an answer that holds.
#[test]
fn hard_data_are_answered() {
    let mut n_files = 0;
    let mut paths: Vec<_> = std::fs::read_dir(hard_directory()).unwrap().map(|f| f.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !(name.starts_with("cure-") && name.ends_with(".csv")) {
            continue;
        }
        n_files += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        let why = lines.next().unwrap();
        let horizon = lines.next().unwrap().trim_start_matches("# horizon ").parse().unwrap();
        let n_covariates = lines.next().unwrap().split(',').count() - 2;
        let mut arm = Arm { time: vec![], event: vec![], covariates: vec![], n_covariates, horizon };
        for line in lines {
            let row: Vec<f64> = line.split(',').map(|v| v.parse().unwrap()).collect();
            arm.time.push(row[0]);
            arm.event.push(row[1] == 1.0);
            arm.covariates.extend(&row[2..]);
        }
        let model = describe(&arm.view(), &FitOptions::default()).unwrap();
        let c = &model.certificate;
        eprintln!("{name} ({why}): {c:?}");
        assert!(c.converged, "{name}");
        assert!(!c.flags.contains(&Flag::NotCertified), "{name}");
        check(&arm, &model, &mut Random(1)).unwrap_or_else(|problem| panic!("{name}: {problem}; {c:?}"));
    }
    assert!(n_files >= 2, "the fixtures are missing");
}
