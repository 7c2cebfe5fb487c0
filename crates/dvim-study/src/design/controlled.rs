//! Power of an estimator from few fits and many cheap trials: control variates.
//!
//! Of M trials the statistics of the crude analysis and of the analysis by the truth are known; in the first B of them
//! the estimator was fitted too. Its statistics are regressed on the cheap ones, `T = a + b·C + e`, and power is the
//! share of pairs (trial i, residual j) in which `a + b·Cᵢ + eⱼ` is beyond the quantile. So the law of C comes from M
//! trials, and that of what a fit adds from B. It assumes that e does not depend on C; it does not assume that e is
//! normal. The Monte Carlo error adds the spread over trials to a jackknife over groups of fits.

use super::power::Share;

/// Groups that the jackknife leaves out.
const GROUPS: usize = 20;
/// Residuals that are paired with each trial, at most.
const RESIDUALS: usize = 200;
/// What a statistic is regressed on: 1, the truth's, the crude one's.
const REGRESSORS: usize = 3;

/// Statistics of one trial: by the truth and crude, of each effect.
pub(super) type Cheap = [[f64; 3]; 2];

/// A regression of the statistics of an estimator on those that are cheap.
#[derive(Clone, Debug)]
pub(super) struct Controlled {
    coefficients: [[f64; REGRESSORS]; 3],
    /// Of each fit the residuals of the three statistics.
    residuals: Vec<[f64; 3]>,
}

fn row(cheap: &Cheap, k: usize) -> [f64; REGRESSORS] {
    [1.0, cheap[0][k], cheap[1][k]]
}

/// Solves a small symmetric system; regressors that repeat others get zero.
fn solve(mut a: [[f64; REGRESSORS]; REGRESSORS], mut b: [f64; REGRESSORS]) -> [f64; REGRESSORS] {
    for j in 0..REGRESSORS {
        let scale = a[j][j];
        if scale <= 1e-9 {
            a[j] = [0.0; REGRESSORS];
            (0..REGRESSORS).for_each(|i| a[i][j] = 0.0);
            (a[j][j], b[j]) = (1.0, 0.0);
            continue;
        }
        for i in 0..REGRESSORS {
            if i != j {
                let by = a[i][j] / scale;
                (0..REGRESSORS).for_each(|k| a[i][k] -= by * a[j][k]);
                b[i] -= by * b[j];
            }
        }
    }
    std::array::from_fn(|j| b[j] / a[j][j])
}

impl Controlled {
    /// From fits: cheap statistics and those of the estimator. At least ten.
    pub(super) fn of(fits: &[(Cheap, [f64; 3])]) -> Controlled {
        let coefficients = std::array::from_fn(|k| {
            let (mut a, mut b) = ([[0.0; REGRESSORS]; REGRESSORS], [0.0; REGRESSORS]);
            for (cheap, t) in fits {
                let x = row(cheap, k);
                for i in 0..REGRESSORS {
                    b[i] += x[i] * t[k];
                    (0..REGRESSORS).for_each(|j| a[i][j] += x[i] * x[j]);
                }
            }
            // A trace of ridge: the two cheap statistics are nearly one where covariates tell nothing.
            let ridge = 1e-3 * fits.len() as f64;
            (a[1][1], a[2][2]) = (a[1][1] + ridge, a[2][2] + ridge);
            b[1] += ridge;
            solve(a, b)
        });
        let mut found = Controlled { coefficients, residuals: Vec::new() };
        let lost = (fits.len() as f64 / (fits.len() as f64 - REGRESSORS as f64).max(1.0)).sqrt();
        let residual = |(cheap, t): &(Cheap, [f64; 3])| {
            let expected = found.expected(cheap);
            std::array::from_fn(|k| lost * (t[k] - expected[k]))
        };
        let residuals = fits.iter().map(residual).collect();
        found.residuals = residuals;
        found
    }

    /// What the estimator's statistics are expected to be.
    pub(super) fn expected(&self, cheap: &Cheap) -> [f64; 3] {
        std::array::from_fn(|k| row(cheap, k).iter().zip(&self.coefficients[k]).map(|(x, b)| x * b).sum())
    }

    /// Variance of a residual.
    pub(super) fn variance(&self, k: usize) -> f64 {
        self.residuals.iter().map(|e| e[k] * e[k]).sum::<f64>() / self.residuals.len() as f64
    }

    /// For each trial the share of residuals with which a rule is passed.
    fn shares(&self, cheap: &[Cheap], rule: &dyn Fn([f64; 3]) -> bool) -> Vec<f64> {
        let by = self.residuals.len().div_ceil(RESIDUALS);
        let residuals: Vec<&[f64; 3]> = self.residuals.iter().step_by(by).collect();
        let share = |c: &Cheap| {
            let t = self.expected(c);
            let passed = residuals.iter().filter(|e| rule(std::array::from_fn(|k| t[k] + e[k]))).count();
            passed as f64 / residuals.len() as f64
        };
        cheap.iter().map(share).collect()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The share of trials in which a rule of the three statistics is passed, with its Monte Carlo standard error. The
/// first `fits.len()` of the trials were fitted.
pub(super) fn power(cheap: &[Cheap], fits: &[(Cheap, [f64; 3])], rule: &dyn Fn([f64; 3]) -> bool) -> Share {
    let shares = Controlled::of(fits).shares(cheap, rule);
    let value = mean(&shares);
    let m = cheap.len() as f64;
    let between = shares.iter().map(|s| (s - value) * (s - value)).sum::<f64>() / (m - 1.0) / m;
    // The jackknife goes over some of the trials: it tells how far fits move the share, not the share.
    let some: Vec<Cheap> = cheap.iter().step_by((cheap.len() / 500).max(1)).copied().collect();
    let groups = GROUPS.min(fits.len() / 2);
    let without = |g: usize| {
        let kept: Vec<_> = fits.iter().enumerate().filter(|(i, _)| i % groups != g).map(|(_, f)| *f).collect();
        mean(&Controlled::of(&kept).shares(&some, rule))
    };
    let each: Vec<f64> = (0..groups).map(without).collect();
    let centre = mean(&each);
    let g = groups as f64;
    let by_fits = (g - 1.0) / g * each.iter().map(|v| (v - centre) * (v - centre)).sum::<f64>();
    // A share of 0 or 1 is not known for sure either: no less than that of as many trials with two more of each kind.
    let p = (m * value + 2.0) / (m + 4.0);
    let least = p * (1.0 - p) / m;
    Share { value, mc_se: (between + by_fits).max(least).sqrt() }
}
