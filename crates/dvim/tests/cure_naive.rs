//! The likelihood of the mixture cure model written a second time, plainly, and the data to try it on.
//! Shared by the other cure tests; shares no code with the engine.
#![allow(dead_code, missing_docs, reason = "a test helper, of which each test file uses a part")]

use dvim::internal::cure::{ArmData, CureModel};

/// Owned data of one arm.
#[derive(Clone, Debug)]
pub struct Arm {
    pub time: Vec<f64>,
    pub event: Vec<bool>,
    pub covariates: Vec<f64>,
    pub n_covariates: usize,
    pub horizon: f64,
}

impl Arm {
    pub fn view(&self) -> ArmData<'_> {
        ArmData {
            time: &self.time,
            event: &self.event,
            covariates: &self.covariates,
            n_covariates: self.n_covariates,
            horizon: self.horizon,
            extras: None,
        }
    }

    pub fn row(&self, i: usize) -> &[f64] {
        &self.covariates[i * self.n_covariates..(i + 1) * self.n_covariates]
    }

    pub fn n_units(&self) -> usize {
        self.time.len()
    }
}

/// `log Φ(x)` by its asymptotic series far down, by erfc elsewhere.
pub fn log_cdf(x: f64) -> f64 {
    if x == f64::INFINITY {
        return 0.0;
    }
    if x < -30.0 {
        let y = 1.0 / (x * x);
        let series = 1.0 - y * (1.0 - 3.0 * y * (1.0 - 5.0 * y * (1.0 - 7.0 * y * (1.0 - 9.0 * y * (1.0 - 11.0 * y)))));
        return -0.5 * x * x - (-x).ln() - 0.5 * (2.0 * std::f64::consts::PI).ln() + series.ln();
    }
    if x > 5.0 {
        return (-0.5 * libm::erfc(x / std::f64::consts::SQRT_2)).ln_1p();
    }
    (0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)).ln()
}

/// Parameters in the order of `CureModel::covariance`.
pub fn parameters(model: &CureModel) -> Vec<f64> {
    let mut all = vec![model.cure.intercept];
    all.extend(&model.cure.coefficients);
    all.push(model.latency.intercept);
    all.extend(&model.latency.coefficients);
    all.push(model.log_sigma);
    all
}

/// The paper's log-likelihood at `theta`, in the caller's units.
pub fn log_likelihood(arm: &Arm, theta: &[f64]) -> f64 {
    let p = arm.n_covariates;
    let log_sigma = theta[2 * p + 2];
    let s = log_sigma.exp();
    let linear =
        |from: usize, x: &[f64]| theta[from] + x.iter().zip(&theta[from + 1..]).map(|(x, b)| x * b).sum::<f64>();
    let log_horizon = arm.horizon.ln();
    (0..arm.n_units())
        .map(|i| {
            let (y, x) = (arm.time[i], arm.row(i));
            let a = linear(0, x);
            let log_cured = if a > 0.0 { -(-a).exp().ln_1p() } else { a - a.exp().ln_1p() };
            let log_uncured = log_cured - a;
            if y >= arm.horizon {
                return log_cured;
            }
            let m = linear(p + 1, x);
            let (z, h) = ((y.ln() - m) / s, (log_horizon - m) / s);
            if arm.event[i] {
                let constant = 0.5 * (2.0 * std::f64::consts::PI).ln();
                return log_uncured - constant - 0.5 * z * z - log_sigma - y.ln() - log_cdf(h);
            }
            if y <= 0.0 {
                return 0.0;
            }
            // 1 - Φ(z)/Φ(h), on the side where the difference keeps its digits.
            let late = if z > 0.0 {
                (log_cdf(-z).exp() - if h == f64::INFINITY { 0.0 } else { log_cdf(-h).exp() }) / log_cdf(h).exp()
            } else {
                -(log_cdf(z) - log_cdf(h)).exp_m1()
            };
            (log_cured.exp() + log_uncured.exp() * late).ln()
        })
        .sum()
}

/// SplitMix64 (Steele, Lea and Flood 2014): enough for test data, the same everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }
}

/// True parameters of simulated data.
#[derive(Clone, Debug)]
pub struct Truth {
    pub cure: Vec<f64>,
    pub latency: Vec<f64>,
    pub sigma: f64,
}

/// Data from the model itself: half of the covariates binary, half normal; log-normal times redrawn until they are
/// below the horizon; censoring uniform on `[0, censoring · H]`.
pub fn simulate(n: usize, truth: &Truth, horizon: f64, censoring: f64, random: &mut Random) -> Arm {
    let p = truth.cure.len() - 1;
    let mut arm = Arm { time: vec![], event: vec![], covariates: vec![], n_covariates: p, horizon };
    for _ in 0..n {
        let x: Vec<f64> =
            (0..p).map(|j| if j < p / 2 { f64::from(random.chance(0.5)) } else { random.normal() }).collect();
        let linear = |b: &[f64]| b[0] + x.iter().zip(&b[1..]).map(|(x, b)| x * b).sum::<f64>();
        let cured = random.chance(1.0 / (1.0 + (-linear(&truth.cure)).exp()));
        let mut t = f64::INFINITY;
        if !cured {
            // Where the horizon is too far in the tail for redrawing, the time is close to it.
            t = (0..1000)
                .map(|_| (linear(&truth.latency) + truth.sigma * random.normal()).exp())
                .find(|&t| t < horizon)
                .unwrap_or_else(|| horizon * (1.0 - 0.1 * random.uniform()));
        }
        let lost = random.uniform() * censoring * horizon;
        let y = t.min(lost).min(horizon);
        arm.time.push(y);
        arm.event.push(t < lost.min(horizon));
        arm.covariates.extend(x);
    }
    arm
}

/// The arm of treated units of the paper's scenario "both, overlap"-like sizes: 20 covariates, H = 800.
pub fn paper_like(p: usize) -> Truth {
    let mut cure = vec![0.0; p + 1];
    let mut latency = vec![0.0; p + 1];
    for j in 0..p.min(6) {
        cure[1 + j * p / 6] = [0.8, -0.6, 0.5, -1.0, 0.4, 0.7][j];
        latency[1 + j * p / 6] = [-0.4, 0.5, 0.3, 0.2, -0.5, 0.4][j];
    }
    latency[0] = 4.5;
    Truth { cure, latency, sigma: 1.0 }
}

#[test]
fn naive_log_cdf_is_right() {
    // mpmath 1.3, 60 digits (see numeric.rs).
    for (x, expected) in [
        (-100.0, -5005.524208694205),
        (-40.0, -804.6084420137538),
        (-10.0, -53.23128515051247),
        (8.5, -9.479534822203318e-18),
    ] {
        assert!((log_cdf(x) - expected).abs() <= 1e-11 * f64::abs(expected), "{x}");
    }
}
