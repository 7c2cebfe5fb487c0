//! Does the joint fit ever panic, or return a number that is none? Random data sets, ordinary and hostile.

#[path = "cure_naive.rs"]
mod naive;

use dvim::internal::joint::{Family, FitError, JointOptions, Terms, TwoArms, describe};
use naive::Random;

struct Units {
    time: Vec<f64>,
    event: Vec<bool>,
    treated: Vec<bool>,
    covariates: Vec<f64>,
    p: usize,
    horizon: f64,
}

/// A data set drawn from many kinds of trouble; `seed` says which, and all of it.
fn hostile(seed: u64) -> Units {
    let mut r = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(99));
    let n = (20.0 * 40f64.powf(r.uniform())) as usize;
    let most = if r.chance(0.1) { 80 } else { 12 };
    let p = if r.chance(0.1) { 0 } else { r.below(most) };
    let horizon = [f64::INFINITY, 1.0, 800.0, 1e-3, 1e9][r.below(5)];
    let unit = if horizon.is_finite() { horizon } else { 1.0 };
    let effect = [0.0, 0.3, 1.0, 3.0][r.below(4)];
    let slopes: Vec<[f64; 4]> = (0..p).map(|_| [0; 4].map(|_| effect * r.normal() / (p as f64).sqrt())).collect();
    let cure_0 = [-20.0, -3.0, -1.0, 0.0, 1.0, 3.0, 20.0][r.below(7)];
    let latency_0 = [-6.0, -2.0, -1.0, 0.0, 2.0][r.below(5)];
    let sigma = [0.01, 0.5, 1.0, 2.0][r.below(4)];
    let censoring = [0.01, 0.2, 1.0, 1.5, 1e9][r.below(5)];
    let share = [0.05, 0.5, 0.5, 0.95][r.below(4)];
    let binary = r.uniform();
    let rare = if r.chance(0.3) { 0.02 } else { 0.5 };
    let mut units = Units { time: vec![], event: vec![], treated: vec![], covariates: vec![], p, horizon };
    for _ in 0..n {
        let x: Vec<f64> = (0..p)
            .map(|j| if (j as f64) < binary * p as f64 { f64::from(r.chance(rare)) } else { r.normal() })
            .collect();
        let z = r.chance(share);
        let linear = |k: usize| x.iter().zip(&slopes).map(|(x, b)| x * b[k + 2 * usize::from(z)]).sum::<f64>();
        let cured = r.chance(1.0 / (1.0 + (-cure_0 - linear(0)).exp()));
        let location = latency_0 + linear(1);
        let mut t = f64::INFINITY;
        if !cured {
            t = unit * (0..20).map(|_| (location + sigma * r.normal()).exp()).find(|t| *t < 1.0).unwrap_or(0.999);
        }
        let lost = r.uniform() * censoring * unit;
        units.time.push(t.min(lost).min(horizon));
        units.event.push(t < lost.min(horizon));
        units.treated.push(z);
        units.covariates.extend(x);
    }
    let standardise = |units: &mut Units| {
        for j in 0..p {
            let mean = (0..n).map(|i| units.covariates[i * p + j]).sum::<f64>() / n as f64;
            let sd = ((0..n).map(|i| (units.covariates[i * p + j] - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
            (0..n).for_each(|i| {
                units.covariates[i * p + j] = (units.covariates[i * p + j] - mean) / if sd > 0.0 { sd } else { 1.0 };
            });
        }
    };
    standardise(&mut units);
    for _ in 0..r.below(4) {
        let j = if p > 0 { r.below(p) } else { 0 };
        let bit = |b: bool| f64::from(u8::from(b));
        match r.below(13) {
            0 => units.time.iter_mut().for_each(|y| *y = ((*y / unit * 10.0).ceil() / 10.0 * unit).min(horizon)),
            1 if p > 1 => (0..n).for_each(|i| units.covariates[i * p + j] = -units.covariates[i * p + (j + 1) % p]),
            2 if p > 0 => (0..n).for_each(|i| units.covariates[i * p + j] = 0.0),
            3 if p > 0 => (0..n).for_each(|i| units.covariates[i * p + j] = bit(units.event[i])),
            4 if p > 0 => (0..n).for_each(|i| units.covariates[i * p + j] = units.time[i].max(1e-300).ln()),
            5 if p > 0 => (0..n).for_each(|i| units.covariates[i * p + j] = bit(units.treated[i])),
            6 if p > 0 => units.covariates[r.below(n) * p + j] = 1e6,
            7 => {
                let i = r.below(n);
                units.time[i] = 0.0;
                units.event[i] = r.chance(0.5);
            }
            8 => (0..n).for_each(|i| units.event[i] &= !units.treated[i]),
            9 => (0..n).for_each(|i| {
                units.event[i] = true;
                units.time[i] = units.time[i].min(0.999 * unit);
            }),
            10 => units.event.iter_mut().skip(3).for_each(|e| *e = false),
            11 => units.time.iter_mut().for_each(|y| *y = y.min(0.5 * unit)),
            12 => (0..n)
                .filter(|&i| units.event[i])
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|i| units.time[i] = 0.3 * unit),
            _ => {}
        }
    }
    units
}

/// What every fit must satisfy.
fn check(seed: u64) -> Result<bool, String> {
    let units = hostile(seed);
    let (n, p) = (units.time.len(), units.p);
    let data = TwoArms {
        time: &units.time,
        event: &units.event,
        treated: &units.treated,
        covariates: &units.covariates,
        n_covariates: p,
        horizon: units.horizon,
    };
    let terms = Terms::new(&units.covariates, p);
    let family = Family::ALL[(seed % 3) as usize];
    let model = match describe(&data, &terms, &JointOptions { family, ..JointOptions::default() }) {
        Ok(model) => model,
        Err(FitError::NoEvent { .. } | FitError::NoUnits) => return Ok(false),
        Err(other) => return Err(format!("{seed}: {other}")),
    };
    let fail =
        |what: String| Err(format!("seed {seed}, n {n}, p {p}, {family}: {what}; {:?}", model.certificate.flags));
    let mut total = 0.0;
    for i in 0..n {
        let x = &units.covariates[i * p..(i + 1) * p];
        let far: Vec<f64> = x.iter().map(|x| 30.0 * x).collect();
        for (row, own) in [(x, true), (&far, false)] {
            let prediction = model.predict(row);
            for one in prediction {
                let finite = [one.cure_logit, one.location, one.log_sigma].iter().all(|x| x.is_finite());
                let share = model.event_share(&one, units.time[i]);
                // Without horizon the mean of a wide distribution may be infinite.
                let mean = one.mean_event_time >= 0.0 && one.mean_event_time <= units.horizon;
                if !(finite && mean && (0.0..=1.0).contains(&one.cure_probability) && (0.0..=1.0).contains(&share)) {
                    return fail(format!("{one:?}, share {share}"));
                }
            }
            if own {
                let own = if units.treated[i] { prediction.treated } else { prediction.control };
                total += model.log_likelihood(&own, units.time[i], units.event[i]);
            }
        }
    }
    let off = (total - model.log_likelihood).abs();
    if off.is_nan() || off > 1e-6 * (1.0 + total.abs()) {
        return fail(format!("log-likelihood {} against a sum of {total}", model.log_likelihood));
    }
    for [before, after] in &model.certificate.path {
        let gain = after - before;
        if gain.is_nan() || gain < -1e-12 * (1.0 + before.abs()) {
            return fail(format!("objective from {before} to {after}"));
        }
    }
    for kappa in [None, Some(8.0)] {
        let v = model.covariance(&units.covariates[..p], kappa);
        if !(0..6).all(|k| v[k][k] >= 0.0 && v[k].iter().all(|x| x.is_finite())) {
            return fail(format!("{v:?}"));
        }
    }
    if !model.importance.iter().flatten().flatten().all(|x| x.is_finite() && *x >= 0.0) {
        return fail("importance".into());
    }
    if std::env::var("DVIM_FLAGS").is_ok() {
        eprintln!("flags {seed} {n} {p} {:.2e} {:?}", model.certificate.gradient_norm, model.certificate.flags);
    }
    Ok(model.certificate.flags.is_empty())
}

fn run(seeds: std::ops::Range<u64>) {
    let n = seeds.end - seeds.start;
    let results: Vec<Result<bool, String>> = seeds.map(check).collect();
    let failures: Vec<&String> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    let plain = results.iter().filter(|r| **r == Ok(true)).count();
    eprintln!("{n} data sets: {plain} without flag, {} failures", failures.len());
    assert!(failures.is_empty(), "{}", failures.iter().take(10).map(|f| f.to_string()).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_hundred_random_data_sets() {
    run(0..100);
}

/// `cargo test -p dvim --test joint_robustness -- --ignored --nocapture`
#[test]
#[ignore = "minutes"]
fn two_thousand_random_data_sets() {
    run(0..2_000);
}
