//! A cumulative hazard as a step function, and what it implies for units whose hazard is a multiple of it.

use super::score::survival;

/// A right-continuous step function Λ(t): 0 before the first time, `cumulative[k]` from `times[k]` on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CumulativeHazard {
    /// Distinct event times, ascending.
    pub times: Vec<f64>,
    /// Λ from that time on, ascending.
    pub cumulative: Vec<f64>,
}

/// Largest error of [`CumulativeHazard::mean_event_times`] by interpolation, as a share of the last event time.
pub const INTERPOLATION_ERROR: f64 = 1e-12;

impl CumulativeHazard {
    /// Λ(t), jumps at `t` included.
    pub fn at(&self, t: f64) -> f64 {
        match self.times.partition_point(|&s| s <= t) {
            0 => 0.0,
            k => self.cumulative[k - 1],
        }
    }

    /// `S(t) = exp(−Λ(t) exp(log_risk))`.
    pub fn survival(&self, t: f64, log_risk: f64) -> f64 {
        survival(self.at(t), log_risk)
    }

    /// `E(T | T ≤ H)` of a unit with `S(t) = exp(−Λ(t) r)`, r = exp(log_risk); `None` without an event by H.
    ///
    /// S is a step function, so `(∫₀ᴴ S − H S(H)) / (1 − S(H))` is exactly `Σ t_k p_k / Σ p_k` over event times up to
    /// H, with `p_k = S(t_{k−1}) − S(t_k) = S(t_{k−1}) · (1 − exp(−r ΔΛ_k))`. All terms are positive and the
    /// difference is taken by `expm1`, so nothing cancels: as r → 0 the value tends to `Σ t_k ΔΛ_k / Λ(H)`, as r →
    /// ∞ to the first time.
    pub fn mean_event_time(&self, horizon: f64, log_risk: f64) -> Option<f64> {
        let steps = self.times.partition_point(|&t| t <= horizon);
        if steps == 0 { None } else { Some(self.mean_over(steps, log_risk)) }
    }

    fn mean_over(&self, steps: usize, log_risk: f64) -> f64 {
        let risk = libm::exp(log_risk.clamp(-600.0, 600.0));
        let (mut surviving, mut before, mut weight, mut sum) = (1.0_f64, 0.0, 0.0, 0.0);
        // Times from the first one, so that a late origin (calendar days) costs no digits.
        let origin = self.times[0];
        for (&t, &level) in self.times[..steps].iter().zip(&self.cumulative) {
            let change = libm::expm1(-risk * (level - before));
            let p = -surviving * change;
            weight += p;
            sum += p * (t - origin);
            surviving *= 1.0 + change;
            before = level;
            // What is left cannot move the mean by a unit in its last place.
            if surviving < 1e-40 {
                break;
            }
        }
        if weight > 0.0 { origin + sum / weight } else { origin }
    }

    /// [`Self::mean_event_time`] for many units at once; `None` without an event by H.
    ///
    /// The value depends on a unit only through u = log_risk, and is analytic there: for z = exp(u) with |arg z| ≤ θ <
    /// π/2, `|1 − exp(−zΔ)| ≤ sec θ · (1 − exp(−Δ Re z))`, hence `|numerator| ≤ sec θ · t_m · (1 − exp(−Λ Re z))`,
    /// and `|1 − exp(−zΛ)| ≥ 1 − exp(−Λ Re z)`: the mean is bounded by `t_m sec θ` in the strip |Im u| ≤ θ.
    /// Interpolation in N + 1 Chebyshev points on `[a − L, a + L]` therefore errs by at most `4 t_m sec θ ρ⁻ᴺ / (ρ
    /// − 1)` with `L (ρ − 1/ρ) / 2 = θ` (Trefethen, *Approximation Theory and Approximation Practice*, theorem
    /// 8.2). N is chosen before any evaluation so that this is below [`INTERPOLATION_ERROR`] · t_m; where that
    /// needs as many points as half the units, each unit is computed directly. (Times are measured from the first
    /// one.) Derivation: `docs/methods-compare.md`, cox-interpolation.
    pub fn mean_event_times(&self, horizon: f64, log_risks: &[f64]) -> Option<Vec<f64>> {
        let steps = self.times.partition_point(|&t| t <= horizon);
        if steps == 0 {
            return None;
        }
        let clamped = |u: f64| u.clamp(-600.0, 600.0);
        let low = log_risks.iter().fold(f64::INFINITY, |a, &u| a.min(clamped(u)));
        let high = log_risks.iter().fold(f64::NEG_INFINITY, |a, &u| a.max(clamped(u)));
        let half = 0.5 * (high - low);
        let nodes = chebyshev_nodes(half);
        if half <= 0.0 || log_risks.is_empty() || nodes >= log_risks.len() / 2 {
            return Some(log_risks.iter().map(|&u| self.mean_over(steps, u)).collect());
        }
        let middle = 0.5 * (high + low);
        // cos(π m / 2n) for m in 0..4n gives every angle below without further calls.
        let cosines: Vec<f64> =
            (0..4 * nodes).map(|m| libm::cos(std::f64::consts::PI * m as f64 / (2 * nodes) as f64)).collect();
        let values: Vec<f64> = (0..nodes).map(|k| self.mean_over(steps, middle + half * cosines[2 * k + 1])).collect();
        let coefficients: Vec<f64> = (0..nodes)
            .map(|j| {
                let sum: f64 = values.iter().enumerate().map(|(k, f)| f * cosines[j * (2 * k + 1) % (4 * nodes)]).sum();
                sum * if j == 0 { 1.0 } else { 2.0 } / nodes as f64
            })
            .collect();
        let (first, last) = (self.times[0], self.times[steps - 1]);
        let mut means = Vec::with_capacity(log_risks.len());
        for chunk in log_risks.chunks(LANES) {
            let mut x = [0.0; LANES];
            for (x, &u) in x.iter_mut().zip(chunk) {
                *x = (clamped(u) - middle) / half;
            }
            let sums = clenshaw(&coefficients, x);
            means.extend(sums[..chunk.len()].iter().map(|m| m.clamp(first, last)));
        }
        Some(means)
    }
}

/// Points that bound the error by [`INTERPOLATION_ERROR`] on an interval of this half length, over the best of
/// a few strips; `usize::MAX` where no number of points would be sensible.
fn chebyshev_nodes(half: f64) -> usize {
    if half <= 0.0 {
        return 1;
    }
    let mut best = usize::MAX;
    for theta in [1.2, 1.3, 1.4, 1.45, 1.5] {
        let slope = theta / half;
        let rho_less_1 = slope + slope * slope / (1.0 + (1.0 + slope * slope).sqrt());
        let log_rho = libm::log1p(rho_less_1);
        let degree = libm::log(4.0 / (libm::cos(theta) * INTERPOLATION_ERROR * rho_less_1)) / log_rho;
        if degree.is_finite() && degree < 1e6 {
            best = best.min(degree.max(1.0).ceil() as usize + 1);
        }
    }
    best
}

const LANES: usize = 8;

/// `Σ c_j T_j(x)` by Clenshaw's recurrence, for several x side by side.
fn clenshaw(coefficients: &[f64], x: [f64; LANES]) -> [f64; LANES] {
    let (mut next, mut after) = ([0.0; LANES], [0.0; LANES]);
    for &c in coefficients[1..].iter().rev() {
        for l in 0..LANES {
            let now = c + 2.0 * x[l] * next[l] - after[l];
            after[l] = next[l];
            next[l] = now;
        }
    }
    let mut sums = [0.0; LANES];
    for l in 0..LANES {
        sums[l] = coefficients[0] + x[l] * next[l] - after[l];
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolation_keeps_its_bound() {
        // Uneven jumps over five orders of magnitude, and units from nearly immune to certain to fail.
        let times: Vec<f64> = (1..=400).map(|k| (k as f64).powf(1.3)).collect();
        let mut level = 0.0;
        let cumulative: Vec<f64> = (1..=400)
            .map(|k| {
                level += 1e-5 * (1.0 + (k % 7) as f64) * if k % 50 == 0 { 1e3 } else { 1.0 };
                level
            })
            .collect();
        let hazard = CumulativeHazard { times, cumulative };
        for spread in [0.01, 1.0, 5.0, 12.0] {
            let log_risks: Vec<f64> = (0..3001).map(|i| spread * (i as f64 / 1500.0 - 1.0) + 1.0).collect();
            assert!(chebyshev_nodes(spread) < log_risks.len() / 2, "interpolates");
            let fast = hazard.mean_event_times(2000.0, &log_risks).unwrap();
            for (&u, f) in log_risks.iter().zip(&fast) {
                let exact = hazard.mean_event_time(2000.0, u).unwrap();
                assert!((f - exact).abs() <= 3e-12 * 2000.0, "{spread} {u} {f} {exact}");
            }
        }
    }

    #[test]
    fn limits_and_absence() {
        let hazard = CumulativeHazard { times: vec![2.0, 5.0], cumulative: vec![0.1, 0.4] };
        assert_eq!(hazard.mean_event_time(1.0, 0.0), None);
        assert_eq!(hazard.mean_event_times(1.0, &[0.0]), None);
        let nearly_immune = hazard.mean_event_time(10.0, -500.0).unwrap();
        assert!((nearly_immune - (2.0 * 0.1 + 5.0 * 0.3) / 0.4).abs() < 1e-12);
        assert!((hazard.mean_event_time(10.0, 500.0).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!((hazard.at(1.9), hazard.at(2.0), hazard.at(9.0)), (0.0, 0.1, 0.4));
        // Jumps after the horizon count for nothing.
        assert!((hazard.mean_event_time(4.0, 0.3).unwrap() - 2.0).abs() < 1e-15);
    }
}
