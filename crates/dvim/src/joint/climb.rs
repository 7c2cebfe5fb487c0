//! The penalised two-arm fit for a given set of columns: Newton steps and updates of the prior, in turn.

use super::family::Family;
use super::likelihood::{Evaluation, Outcomes, Widths, evaluate};
use super::matrix::Cholesky;
use super::prior::{BLOCKS, Prior, block};
use super::{JointOptions, Part};

/// A column's role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Intercept,
    Linear,
    NonLinear,
}

/// Both arms' outcomes and designs, and how parameters are laid out.
///
/// Arm parameters `θ_z` are `(cure columns, time columns, ln σ)`. They are made of `φ = (own₀, own₁, common)`: `θ_z = own_z + common`
/// on slopes, `θ_z = own_z` on intercepts and `ln σ`.
pub(super) struct Problem<'a> {
    pub(super) family: Family,
    pub(super) u_horizon: f64,
    pub(super) outcomes: &'a [Outcomes; 2],
    pub(super) designs: [Vec<f64>; 2],
    pub(super) layout: Layout,
}

/// Positions of the parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    pub(super) widths: Widths,
    /// For each arm parameter that is a slope: its position in the common block.
    pub(super) common: Vec<Option<usize>>,
    /// Block of each `φ`, `None` where it is free.
    pub(super) blocks: Vec<Option<usize>>,
}

impl Layout {
    /// `roles` of the columns of the design, in its order.
    pub(super) fn new(widths: Widths, roles: &[Role]) -> Layout {
        let size = widths.parameters();
        let of = |k: usize| {
            if k < widths.cure {
                Some((Part::Cure, roles[k]))
            } else if k < size - 1 {
                Some((Part::Time, roles[widths.all - widths.time + k - widths.cure]))
            } else {
                None
            }
        };
        let is_slope = |k: usize| of(k).filter(|&(_, role)| role != Role::Intercept);
        let mut common = Vec::with_capacity(size);
        let mut n_common = 0;
        let mut blocks = vec![None; 2 * size];
        let mut common_blocks = Vec::new();
        for k in 0..size {
            let Some((part, role)) = is_slope(k) else {
                common.push(None);
                continue;
            };
            common.push(Some(n_common));
            n_common += 1;
            let of_arm = |z: usize| Some(block(part.index(), z, role == Role::Linear));
            blocks[k] = of_arm(0);
            blocks[size + k] = of_arm(1);
            common_blocks.push(of_arm(2));
        }
        blocks.extend(common_blocks);
        Layout { widths, common, blocks }
    }

    /// Parameters of an arm.
    pub(super) fn size(&self) -> usize {
        self.widths.parameters()
    }

    /// All of `φ`.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// `θ_z`.
    pub(super) fn arm(&self, phi: &[f64], z: usize) -> Vec<f64> {
        let size = self.size();
        (0..size).map(|k| phi[z * size + k] + self.common[k].map_or(0.0, |c| phi[2 * size + c])).collect()
    }

    /// `T'(g₀, g₁)`.
    fn gradient(&self, at: &[Evaluation; 2]) -> Vec<f64> {
        let size = self.size();
        let mut out = vec![0.0; self.len()];
        for (z, at) in at.iter().enumerate() {
            for k in 0..size {
                out[z * size + k] = at.gradient[k];
                if let Some(c) = self.common[k] {
                    out[2 * size + c] += at.gradient[k];
                }
            }
        }
        out
    }

    /// `T' diag(J₀, J₁) T`, row-major.
    fn information(&self, at: &[Evaluation; 2]) -> Vec<f64> {
        let (size, n) = (self.size(), self.len());
        let mut out = vec![0.0; n * n];
        for (z, at) in at.iter().enumerate() {
            for k in 0..size {
                let row = &at.information[k * size..(k + 1) * size];
                let own = z * size + k;
                out[own * n + z * size..own * n + (z + 1) * size].copy_from_slice(row);
                for (l, &value) in row.iter().enumerate() {
                    let Some(c) = self.common[l] else { continue };
                    out[own * n + 2 * size + c] = value;
                    out[(2 * size + c) * n + own] = value;
                    if let Some(d) = self.common[k] {
                        out[(2 * size + d) * n + 2 * size + c] += value;
                    }
                }
            }
        }
        out
    }
}

/// Where a climb ended.
pub(super) struct Climb {
    pub(super) phi: Vec<f64>,
    /// Information of the likelihood in `φ`, row-major.
    pub(super) information: Vec<f64>,
    pub(super) prior: Prior,
    pub(super) log_likelihood: f64,
    pub(super) iterations: usize,
    /// Objective before and after each step, under the penalties of that step.
    pub(super) path: Vec<[f64; 2]>,
    /// `√(g' A⁻¹ g)`, infinite where `A` is not positive definite.
    pub(super) gradient_norm: f64,
}

struct Point {
    phi: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    information: Vec<f64>,
}

impl Problem<'_> {
    fn at(&self, phi: Vec<f64>) -> Point {
        let arm = |z: usize| {
            let theta = self.layout.arm(&phi, z);
            let widths = self.layout.widths;
            evaluate(self.family, self.u_horizon, &self.outcomes[z], &self.designs[z], widths, &theta)
        };
        let at = [arm(0), arm(1)];
        Point {
            value: at[0].value + at[1].value,
            gradient: self.layout.gradient(&at),
            information: self.layout.information(&at),
            phi,
        }
    }

    /// Climbs from `start`, to which the free parameters are (very weakly) held.
    pub(super) fn climb(&self, start: Vec<f64>, n_candidates: usize, options: &JointOptions) -> Climb {
        let n = self.layout.len();
        let blocks = &self.layout.blocks;
        let center: Vec<f64> = (0..n).map(|j| if blocks[j].is_none() { start[j] } else { 0.0 }).collect();
        let mut penalties: Vec<f64> =
            blocks.iter().map(|b| if b.is_none() { options.free_precision } else { options.first_penalty }).collect();
        let zero_counts: [f64; BLOCKS] =
            std::array::from_fn(|b| if b < BLOCKS / 2 { options.zero_count } else { n_candidates as f64 });
        let mut prior = Prior::new(n, zero_counts, &penalties);
        let penalty = |phi: &[f64], penalties: &[f64]| -> f64 {
            (0..n).map(|j| 0.5 * penalties[j] * (phi[j] - center[j]) * (phi[j] - center[j])).sum()
        };
        let with_penalties = |information: &[f64], extra: &dyn Fn(usize) -> f64| {
            let mut a = information.to_vec();
            (0..n).for_each(|j| a[j * n + j] += extra(j));
            a
        };
        let mut here = self.at(start);
        let mut damping = options.first_damping;
        let mut path = Vec::new();
        let mut iterations = 0;
        for iteration in 0..options.iterations {
            iterations += 1;
            let objective = here.value - penalty(&here.phi, &penalties);
            let gradient: Vec<f64> =
                (0..n).map(|j| here.gradient[j] - penalties[j] * (here.phi[j] - center[j])).collect();
            let mut next = None;
            for _ in 0..options.tries {
                let damped = with_penalties(&here.information, &|j| {
                    penalties[j] + damping * (here.information[j * n + j] + penalties[j]).max(1e-3)
                });
                if let Some(cholesky) = Cholesky::new(damped, n) {
                    let mut step = cholesky.solve(&gradient);
                    let longest = step.iter().fold(0.0, |m: f64, s| m.max(s.abs()));
                    if longest > options.longest_step {
                        step.iter_mut().for_each(|s| *s *= options.longest_step / longest);
                    }
                    let trial = self.at(here.phi.iter().zip(&step).map(|(x, s)| x + s).collect());
                    let value = trial.value - penalty(&trial.phi, &penalties);
                    if value.is_finite() && value >= objective - VALUE_ROUNDING * (1.0 + objective.abs()) {
                        path.push([objective, value]);
                        damping = (0.1 * damping).max(1e-9);
                        next = Some(trial);
                        break;
                    }
                }
                damping = (10.0 * damping).min(1e4);
            }
            // The update uses the information of the point that the step left, as the step did.
            let longest = match &next {
                Some(next) => next.phi.iter().zip(&here.phi).fold(0.0, |m: f64, (x, y)| m.max((x - y).abs())),
                None => 0.0,
            };
            let information = match next {
                Some(next) => std::mem::replace(&mut here, next).information,
                None => here.information.clone(),
            };
            if iteration >= options.first_update {
                let a = with_penalties(&information, &|j| penalties[j] + 1e-8);
                if let Some(cholesky) = Cholesky::new(a, n) {
                    prior.update(blocks, &here.phi, &cholesky.inverse_diagonal(), &mut penalties);
                }
            }
            if iteration > options.first_stop && longest < options.step_tolerance {
                break;
            }
        }
        let gradient: Vec<f64> = (0..n).map(|j| here.gradient[j] - penalties[j] * (here.phi[j] - center[j])).collect();
        let gradient_norm = Cholesky::new(with_penalties(&here.information, &|j| penalties[j]), n)
            .map(|c| c.solve(&gradient).iter().zip(&gradient).map(|(x, g)| x * g).sum::<f64>())
            .filter(|square| *square >= 0.0)
            .map_or(f64::INFINITY, libm::sqrt);
        Climb {
            log_likelihood: here.value,
            phi: here.phi,
            information: here.information,
            prior,
            iterations,
            path,
            gradient_norm,
        }
    }
}

/// Relative rounding error of a value: a sum of thousands of terms.
const VALUE_ROUNDING: f64 = 1e-13;
