//! The empirical-Bayes prior of the slopes: how much of each estimate is kept. Knows no likelihood.
//!
//! Slopes of a block are exchangeable draws from `Σ_k π_k N(0, τ_k²)`, `τ₀ = 0`. From the normal approximation of the
//! posterior under the present precisions `α` the *cavity* of slope `j` (what the data alone say of it) is `N(t_j,
//! s_j²)`; expectation and maximisation over the block give `π`, and the posterior mean under the mixture is `f_j t_j`.
//! A ridge of precision `α_j = (1/f_j - 1)/s_j²` shrinks the cavity by the same factor, which is what the next Newton
//! step uses.

use crate::arm::Arm;
use crate::estimand::Estimand;

/// Spreads of the mixture. From nothing to 0.8 per standard deviation of a covariate, doubling: an odds ratio of
/// `e^0.8` for one standard deviation is the strongest effect that is common in practice; larger ones are still found,
/// with more shrinkage.
pub(super) const SPREADS: [f64; 7] = [0.0, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8];
/// Blocks: {cure, time} × {own 0, own 1, common} × {linear, non-linear}.
pub(super) const BLOCKS: usize = 12;
/// Whose slopes a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slopes {
    /// Deviations of one arm.
    Own(Arm),
    /// Common to the arms.
    Common,
}
/// Number of a block of a part; non-linear ones come after all linear ones.
pub(super) fn block(part: Estimand, slopes: Slopes, linear: bool) -> usize {
    let of = match slopes {
        Slopes::Own(arm) => arm.index(),
        Slopes::Common => 2,
    };
    part.index() * 3 + of + if linear { 0 } else { BLOCKS / 2 }
}
/// The part of the model that a block belongs to.
pub(super) fn part_of(block: usize) -> Estimand {
    Estimand::BOTH[block % (BLOCKS / 2) / 3]
}
/// Smallest cavity precision: below it the data say nothing of a slope.
const SMALLEST_CAVITY: f64 = 1e-3;
/// Range of penalties.
pub(super) const PENALTIES: (f64, f64) = (1e-3, 1e7);
/// Sweeps of expectation and maximisation in one update; the next update goes on from their end.
const SWEEPS: usize = 5;
/// Pseudo-count of every component: none dies for good.
const PSEUDO_COUNT: f64 = 1e-3;

/// Weights of the mixtures and, for each parameter, what the last update said.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Prior {
    pub(super) weights: [[f64; SPREADS.len()]; BLOCKS],
    /// Pseudo-counts of the point mass at zero, by block.
    pub(super) zero_counts: [f64; BLOCKS],
    /// Kept share `f_j` of each parameter's cavity mean; one for free parameters.
    pub(super) kept: Vec<f64>,
    /// Cavity variance `s_j²`.
    pub(super) cavity: Vec<f64>,
    /// Posterior variance under the mixture, as a precision to add to the information.
    pub(super) certainty: Vec<f64>,
    /// By how much the variance of each score is above the information, at least one; empty where they are one.
    pub(super) effects: Vec<f64>,
}

impl Prior {
    /// Before any update: nothing is known of the cavities.
    pub(super) fn new(n: usize, zero_counts: [f64; BLOCKS], penalties: &[f64]) -> Prior {
        Prior {
            weights: [[1.0 / SPREADS.len() as f64; SPREADS.len()]; BLOCKS],
            zero_counts,
            kept: vec![1.0; n],
            cavity: vec![1.0 / SMALLEST_CAVITY; n],
            certainty: penalties.to_vec(),
            effects: Vec::new(),
        }
    }

    /// What given penalties keep of each slope, for the diagonal of the posterior covariance under them.
    pub(super) fn hold(&mut self, blocks: &[Option<usize>], covariance: &[f64], penalties: &[f64]) {
        for j in 0..penalties.len() {
            self.certainty[j] = penalties[j];
            if blocks[j].is_some() {
                self.cavity[j] = self.effect(j) / (1.0 / covariance[j] - penalties[j]).max(SMALLEST_CAVITY);
                self.kept[j] = 1.0 / (1.0 + penalties[j] * self.cavity[j] / self.effect(j));
            }
        }
    }

    /// New penalties from the point `phi`, the diagonal of the posterior covariance and the present penalties.
    /// `blocks[j]` is the block of parameter `j`, `None` where it is free.
    pub(super) fn update(&mut self, blocks: &[Option<usize>], phi: &[f64], covariance: &[f64], penalties: &mut [f64]) {
        for b in 0..BLOCKS {
            let members: Vec<usize> = (0..phi.len()).filter(|&j| blocks[j] == Some(b)).collect();
            if !members.is_empty() {
                self.update_block(b, &members, phi, covariance, penalties);
            }
        }
        for j in (0..phi.len()).filter(|&j| blocks[j].is_none()) {
            self.certainty[j] = penalties[j];
        }
    }

    /// By how much the variance of a parameter is above what the information says.
    pub(super) fn effect(&self, j: usize) -> f64 {
        self.effects.get(j).copied().unwrap_or(1.0)
    }

    fn update_block(&mut self, b: usize, members: &[usize], phi: &[f64], covariance: &[f64], penalties: &mut [f64]) {
        // Cavities and, for each slope, the log density of its mean under every component.
        let mut means = Vec::with_capacity(members.len());
        let mut logs = Vec::with_capacity(members.len());
        for &j in members {
            let s2 = 1.0 / (1.0 / covariance[j] - penalties[j]).max(SMALLEST_CAVITY);
            let t = phi[j] / covariance[j] * s2;
            let s2 = s2 * self.effect(j);
            self.cavity[j] = s2;
            means.push(t);
            logs.push(SPREADS.map(|tau| {
                let variance = s2 + tau * tau;
                -0.5 * libm::log(variance) - 0.5 * t * t / variance
            }));
        }
        let pi = &mut self.weights[b];
        let mut shares = vec![[0.0; SPREADS.len()]; members.len()];
        for _ in 0..SWEEPS {
            let log_pi = pi.map(libm::log);
            let mut counts = [PSEUDO_COUNT; SPREADS.len()];
            counts[0] += self.zero_counts[b];
            for (share, log) in shares.iter_mut().zip(&logs) {
                let top = (0..SPREADS.len()).map(|k| log[k] + log_pi[k]).fold(f64::NEG_INFINITY, f64::max);
                for k in 0..SPREADS.len() {
                    share[k] = libm::exp(log[k] + log_pi[k] - top);
                }
                let total: f64 = share.iter().sum();
                share.iter_mut().for_each(|w| *w /= total);
                counts.iter_mut().zip(&*share).for_each(|(count, w)| *count += w);
            }
            let total: f64 = counts.iter().sum();
            *pi = counts.map(|count| count / total);
        }
        for ((&j, share), &t) in members.iter().zip(&shares).zip(&means) {
            let s2 = self.cavity[j];
            let (mut kept, mut second) = (0.0, 0.0);
            for (&w, tau) in share.iter().zip(SPREADS) {
                let h = tau * tau / (s2 + tau * tau);
                kept += w * h;
                second += w * (h * s2 + h * t * (h * t));
            }
            let kept = kept.clamp(1e-6, 1.0 - 1e-9);
            let variance = (second - kept * t * (kept * t)).max(1e-12);
            // The ridge that keeps so much under the likelihood as it is.
            let new = ((1.0 / kept - 1.0) / (s2 / self.effect(j))).clamp(PENALTIES.0, PENALTIES.1);
            // Half of the way on the log scale: penalties and slopes settle together.
            penalties[j] = libm::sqrt(penalties[j] * new);
            self.kept[j] = kept;
            self.certainty[j] = (1.0 / variance - 1.0 / s2).max(1e-3);
        }
    }
}
