//! What a unit's outcome says beyond the curve that a model expected of it.
//!
//! In the unit's own arm let `S(u) = s + (1 − s)(1 − F(u)/F(H))` be the curve expected of it (s the probability of
//! cure, F the latency of the model), G the censoring curve, M the martingale of its counting process under S. Then
//!
//! `ρ_S = −s ∫₀^Y dM(u) / {S(u) G(u)}`,
//! `ρ_m = −∫₀^Y {L(u) + (m − u) s/(1 − s)} dM(u) / {S(u) G(u)}`,  `L(u) = ∫_u^H (1 − F(t)/F(H)) dt`,
//!
//! have mean `S_true(H) − S(H)` and, to first order, `m_true − m`, if censoring depends on the arm alone: the residual
//! parts of the efficient influence functions of S(H) and of `m = E[T | T < H]` [Robins & Rotnitzky 1992; Bai, Tsiatis
//! & O'Brien 2013]. The second is the first-order change of `m = (∫₀ᴴ S − H S(H))/(1 − S(H))`: `A(u) + (m − H) S(H)`
//! over `1 − S(H)` with `A(u) = ∫_u^H S`, in which H drops out. Averages with correct intervals are made of them
//! ([`crate::audit`]).

use crate::joint::{Prediction, Predictor};
use crate::survival::SurvivalCurve;

/// Cells of the grid `H (k/CELLS)²`, dense where most events are. With 36 the residual of a mean is right to a fiftieth
/// (a test).
const CELLS: usize = 36;

/// The residuals of one unit in its own arm.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Residual {
    /// ρ_S.
    pub cure: f64,
    /// ρ_m.
    pub time: f64,
}

/// The censoring curve of an arm on a grid of times.
#[derive(Clone, Debug)]
pub struct Censoring {
    horizon: f64,
    times: Vec<f64>,
    log_times: Vec<f64>,
    /// 1/G in the middle of each cell.
    inverse: Vec<f64>,
    /// No weight is larger than this.
    largest: f64,
    curve: SurvivalCurve,
}

impl Censoring {
    /// From the times of an arm's units and whether each was lost before the horizon; G is never taken below
    /// `smallest`.
    pub fn new(time: &[f64], lost: &[bool], horizon: f64, smallest: f64) -> Censoring {
        let times: Vec<f64> = (0..=CELLS).map(|k| horizon * (k as f64 / CELLS as f64).powi(2)).collect();
        let curve = SurvivalCurve::new(time, lost);
        let inverse = times.windows(2).map(|t| 1.0 / curve.before(0.5 * (t[0] + t[1])).max(smallest)).collect();
        let log_times = times.iter().map(|&t| libm::log(t)).collect();
        Censoring { horizon, times, log_times, inverse, largest: 1.0 / smallest, curve }
    }

    /// 1/G(t−).
    pub fn inverse_before(&self, t: f64) -> f64 {
        (1.0 / self.curve.before(t)).min(self.largest)
    }

    /// The residuals of a unit with this outcome, of whom a model said `p` and whose probability of cure is `cured`.
    pub fn residual(&self, model: &Predictor, p: &Prediction, cured: f64, time: f64, event: bool) -> Residual {
        let s = cured.clamp(SMALLEST, 1.0 - SMALLEST);
        let mut beyond = [0.0; CELLS + 1];
        model.event_shares(p, &self.log_times, &mut beyond);
        beyond.iter_mut().for_each(|share| *share = 1.0 - *share);
        // L at the ends of the cells, from the right.
        let mut area = [0.0; CELLS + 1];
        for k in (0..CELLS).rev() {
            area[k] = area[k + 1] + 0.5 * (beyond[k] + beyond[k + 1]) * (self.times[k + 1] - self.times[k]);
        }
        let (odds, m) = (s / (1.0 - s), p.mean_event_time);
        // L(0) is the mean, which is known exactly.
        if area[0] > 0.0 {
            let exact = m / area[0];
            area.iter_mut().for_each(|a| *a *= exact);
        }
        let survival = |beyond: f64| s + (1.0 - s) * beyond;
        // Two integrands: 1 (times s at the end), and that of ρ_m.
        let (mut plain, mut mean) = (0.0, 0.0);
        let time = time.min(self.horizon);
        for k in 0..CELLS {
            let (from, to) = (self.times[k], self.times[k + 1]);
            if time <= from {
                break;
            }
            // The last cell ends at Y.
            let (end, end_beyond) =
                if time < to { (time, 1.0 - model.event_share(p, time)) } else { (to, beyond[k + 1]) };
            let end_area = area[k + 1] + 0.5 * (end_beyond + beyond[k + 1]) * (to - end);
            // ∫ dΛ/S = ∫ −dS/S² = 1/S(end) − 1/S(start): exact in the cell, but for G and the factor.
            let step = (1.0 / survival(end_beyond) - 1.0 / survival(beyond[k])) * self.inverse[k];
            plain += step;
            mean += step * (0.5 * (area[k] + end_area) + (m - 0.5 * (from + end)) * odds);
            if event && time <= to {
                let weight = self.inverse_before(time) / survival(end_beyond);
                plain -= weight;
                mean -= weight * (end_area + (m - time) * odds);
            }
        }
        Residual { cure: s * plain, time: mean }
    }
}

/// Probabilities of cure are kept so far from 0 and 1: a weight is never above a thousand.
const SMALLEST: f64 = 1e-3;
