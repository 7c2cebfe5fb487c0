//! The penalised two-arm fit for a given set of columns: Newton steps and updates of the prior, in turn.

use super::family::Family;
use super::likelihood::{Evaluation, Outcomes, Widths, evaluate, row_terms};
use super::matrix::Cholesky;
use super::prior::{BLOCKS, PENALTIES, Prior, Slopes, block, part_of};
use super::{JointOptions, Penalty};
use crate::arm::{Arm, ByArm};
use crate::estimand::{ByEstimand, Estimand};

/// A column's role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Intercept,
    Linear,
    NonLinear,
}

/// Both arms' outcomes and designs, and how parameters are laid out.
///
/// Arm parameters `θ_z` are `(cure columns, time columns, ln σ)`. They are made of `φ = (own₀, own₁, common)`: `θ_z =
/// own_z + common` on slopes, `θ_z = own_z` on intercepts and `ln σ`.
pub(super) struct Problem<'a> {
    pub(super) family: Family,
    pub(super) u_horizon: f64,
    pub(super) outcomes: &'a ByArm<Outcomes>,
    pub(super) designs: ByArm<Vec<f64>>,
    pub(super) layout: Layout,
    /// Slopes that an elastic net penalises together.
    pub(super) groups: Vec<Vec<usize>>,
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
                Some((Estimand::Cure, roles[k]))
            } else if k < size - 1 {
                Some((Estimand::Time, roles[widths.all - widths.time + k - widths.cure]))
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
            let of = |slopes: Slopes| Some(block(part, slopes, role == Role::Linear));
            Arm::BOTH.into_iter().for_each(|arm| blocks[arm.index() * size + k] = of(Slopes::Own(arm)));
            common_blocks.push(of(Slopes::Common));
        }
        blocks.extend(common_blocks);
        Layout { widths, common, blocks }
    }

    /// Positions in `φ` of the slopes of one block whose columns have the same number, for each block and number.
    pub(super) fn groups(&self, of_column: &[usize]) -> Vec<Vec<usize>> {
        let (size, Widths { all, cure, time }) = (self.size(), self.widths);
        let mut out: std::collections::BTreeMap<(usize, usize), Vec<usize>> = Default::default();
        for k in 0..size - 1 {
            let column = if k < cure { k } else { all - time + k - cure };
            let common = self.common[k].map(|c| 2 * size + c);
            for j in [Some(k), Some(size + k), common].into_iter().flatten() {
                if let Some(block) = self.blocks[j] {
                    out.entry((block, of_column[column])).or_default().push(j);
                }
            }
        }
        out.into_values().collect()
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
    pub(super) fn arm(&self, phi: &[f64], arm: Arm) -> Vec<f64> {
        let (size, z) = (self.size(), arm.index());
        (0..size).map(|k| phi[z * size + k] + self.common[k].map_or(0.0, |c| phi[2 * size + c])).collect()
    }

    /// `T'(g₀, g₁)`.
    fn gradient(&self, at: &ByArm<Evaluation>) -> Vec<f64> {
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
    fn information(&self, at: &ByArm<Evaluation>) -> Vec<f64> {
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

/// What the slopes of a model were found among.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sought {
    /// Covariates that were left out of the cure and of the time part.
    pub(super) covariates: ByEstimand<usize>,
    /// Candidate terms.
    pub(super) terms: usize,
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
        let at = ByArm::of(|arm| {
            let theta = self.layout.arm(&phi, arm);
            let widths = self.layout.widths;
            evaluate(self.family, self.u_horizon, &self.outcomes[arm], &self.designs[arm], widths, &theta)
        });
        Point {
            value: at.control.value + at.treated.value,
            gradient: self.layout.gradient(&at),
            information: self.layout.information(&at),
            phi,
        }
    }

    /// Climbs from `start`, to which the free parameters are (very weakly) held. The slopes of the model were found
    /// among others that are not in it, `sought`, which count as zeros.
    pub(super) fn climb(&self, start: Vec<f64>, sought: &Sought, options: &JointOptions) -> Climb {
        let mut ascent = self.begin(start, sought, options);
        ascent.finish(self, options);
        ascent.end(self)
    }

    /// The first part of a climb, after which it is clear what lies ahead: with few units, or under given penalties,
    /// the prior has settled; with many it is near enough to where it settles to look for further terms.
    pub(super) fn begin(&self, start: Vec<f64>, sought: &Sought, options: &JointOptions) -> Ascent {
        let n = self.layout.len();
        let blocks = &self.layout.blocks;
        let center: Vec<f64> = (0..n).map(|j| if blocks[j].is_none() { start[j] } else { 0.0 }).collect();
        let penalties: Vec<f64> =
            blocks.iter().map(|b| if b.is_none() { options.free_precision } else { options.first_penalty }).collect();
        let zero_counts: [f64; BLOCKS] = std::array::from_fn(|b| match b.checked_sub(BLOCKS / 2) {
            None => options.zero_count + sought.covariates[part_of(b)] as f64,
            Some(_) => sought.terms as f64,
        });
        let prior = Prior::new(n, zero_counts, &penalties);
        let (damping, iterations) = (options.first_damping, 0);
        let thinned = (options.penalty == Penalty::Learned).then(|| self.thinned(options)).flatten();
        let Some(thinned) = thinned else {
            let (here, path) = (self.at(start), Vec::new());
            let mut ascent = Ascent { center, here, damping, path, prior, penalties, iterations, is_rough: false };
            ascent.alternate(self, options);
            return ascent;
        };
        let some = thinned.problem(self);
        let (here, path) = (some.at(start), Vec::new());
        let mut ascent = Ascent { center, here, damping, path, prior, penalties, iterations, is_rough: true };
        for _ in 0..=options.first_update {
            ascent.iterations += 1;
            ascent.step(&some, options);
        }
        ascent.here = self.at(ascent.here.phi);
        ascent.path.clear();
        for _ in 1..options.renewals {
            ascent.iterations += 1;
            ascent.settle(self, options);
        }
        ascent
    }

    /// Some of the units, by a hash of their places: all pieces of a unit or none. `None` where they are few already,
    /// or an arm of the sample has no event or nobody without one.
    fn thinned(&self, options: &JointOptions) -> Option<Thinned> {
        let n: usize = self.outcomes.iter().map(|of| of.u.len()).sum();
        if n < 2 * options.thinned_units {
            return None;
        }
        let limit = (options.thinned_units as f64 / n as f64 * 2f64.powi(32)) as u64;
        let is_taken = |row: usize| (row as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 < limit;
        let all = self.layout.widths.all;
        let mut out = Thinned::default();
        for arm in Arm::BOTH {
            let (from, to) = (&self.outcomes[arm], &mut out.outcomes[arm]);
            for i in (0..from.u.len()).filter(|&i| is_taken(from.rows[i])) {
                to.rows.push(from.rows[i]);
                to.u.push(from.u[i]);
                to.weights.extend(from.weights.get(i));
                to.n_events += usize::from(i < from.n_events);
                to.n_censored += usize::from((from.n_events..from.n_events + from.n_censored).contains(&i));
                out.designs[arm].extend_from_slice(&self.designs[arm][i * all..(i + 1) * all]);
            }
            if to.n_events == 0 || to.n_events == to.u.len() {
                return None;
            }
        }
        Some(out)
    }

    /// By how much the variance of the score of each parameter, summed by cluster, is above its information; never
    /// below one. Empty where units are independent and count once: then they are the same.
    fn design_effects(&self, at: &Point) -> Vec<f64> {
        if self.outcomes.iter().all(|of| of.clusters.is_empty()) {
            return Vec::new();
        }
        let (size, n) = (self.layout.size(), self.layout.len());
        let Widths { all, cure, time } = self.layout.widths;
        let terms = ByArm::of(|arm| {
            let (theta, outcomes) = (self.layout.arm(&at.phi, arm), &self.outcomes[arm]);
            let terms =
                row_terms(self.family, self.u_horizon, outcomes, &self.designs[arm], self.layout.widths, &theta);
            terms.collect::<Vec<_>>()
        });
        let mut order: Vec<(u32, Arm, usize)> = Arm::BOTH
            .into_iter()
            .flat_map(|arm| self.outcomes[arm].clusters.iter().enumerate().map(move |(row, &c)| (c, arm, row)))
            .collect();
        order.sort_by_key(|&(cluster, arm, row)| (cluster, arm.index(), row));
        let (mut sum, mut square, mut clusters) = (vec![0.0; n], vec![0.0; n], 0.0);
        let mut score = vec![0.0; n];
        for of in order.chunk_by(|a, b| a.0 == b.0) {
            clusters += 1.0;
            score.fill(0.0);
            for &(_, arm, row) in of {
                let (unit, z) = (&terms[arm][row], &self.designs[arm][row * all..(row + 1) * all]);
                let mut add = |k: usize, value: f64| {
                    score[arm.index() * size + k] += value;
                    if let Some(c) = self.layout.common[k] {
                        score[2 * size + c] += value;
                    }
                };
                z[..cure].iter().enumerate().for_each(|(k, x)| add(k, unit.a * x));
                z[all - time..].iter().enumerate().for_each(|(k, x)| add(cure + k, unit.m * x));
                add(size - 1, unit.t);
            }
            for ((sum, square), s) in sum.iter_mut().zip(&mut square).zip(&score) {
                *sum += s;
                *square += s * s;
            }
        }
        let of = |j: usize| {
            let variance = (square[j] - sum[j] * sum[j] / clusters) * clusters / f64::max(clusters - 1.0, 1.0);
            let effect = variance / at.information[j * n + j];
            if effect.is_finite() { effect.clamp(1.0, LARGEST_EFFECT) } else { 1.0 }
        };
        (0..n).map(of).collect()
    }

    /// The ridge that touches the elastic net at `phi` from above: `λ {mixing √|g|/‖φ_g‖ + 1 − mixing}` (Hunter and Li
    /// 2005). What has come near zero stays there.
    fn reweigh(&self, mixing: f64, strengths: ByEstimand<f64>, phi: &[f64], penalties: &mut [f64]) {
        for group in &self.groups {
            let norm = libm::sqrt(group.iter().map(|&j| phi[j] * phi[j]).sum::<f64>()).max(SMALLEST_NORM);
            for &j in group {
                let part = self.layout.blocks[j].map_or(Estimand::Cure, part_of);
                let pull = mixing * libm::sqrt(group.len() as f64) / norm + 1.0 - mixing;
                penalties[j] = (strengths[part] * pull).max(PENALTIES.0);
            }
        }
    }
}

/// Some of the units of a problem.
#[derive(Default)]
struct Thinned {
    outcomes: ByArm<Outcomes>,
    designs: ByArm<Vec<f64>>,
}

impl Thinned {
    /// The same problem of these units.
    fn problem(&self, of: &Problem<'_>) -> Problem<'_> {
        Problem {
            family: of.family,
            u_horizon: of.u_horizon,
            outcomes: &self.outcomes,
            designs: self.designs.clone(),
            layout: of.layout.clone(),
            groups: Vec::new(),
        }
    }
}

/// No variance is taken to be more than this above what the information says.
const LARGEST_EFFECT: f64 = 100.0;
/// Newton steps under an elastic net, whose ridges follow the slopes.
const REWEIGHTED_STEPS: usize = 60;
/// A group of slopes below this is zero.
const SMALLEST_NORM: f64 = 1e-5;

/// A point on its way up.
pub(super) struct Ascent {
    /// What each parameter is held to.
    center: Vec<f64>,
    here: Point,
    damping: f64,
    path: Vec<[f64; 2]>,
    prior: Prior,
    penalties: Vec<f64>,
    iterations: usize,
    /// Whether the prior has still to settle.
    pub(super) is_rough: bool,
}

impl Ascent {
    pub(super) fn phi(&self) -> &[f64] {
        &self.here.phi
    }

    /// The rest of a climb: the prior settles, and the point comes to rest under its penalties.
    pub(super) fn finish(&mut self, problem: &Problem<'_>, options: &JointOptions) {
        // A step after a short one is its square: where units are many it would cost more than it brings.
        let short = if self.is_rough { options.step_tolerance.sqrt() } else { options.step_tolerance };
        if self.is_rough {
            self.iterations += 1;
            self.settle(problem, options);
        }
        for _ in 0..options.final_steps {
            self.iterations += 1;
            if self.step(problem, options).0 < short {
                break;
            }
        }
        self.is_rough = false;
        self.prior.effects = problem.design_effects(&self.here);
        if options.penalty != Penalty::Learned {
            let (n, penalties) = (self.penalties.len(), &self.penalties);
            let information = &self.here.information;
            if let Some(cholesky) = Cholesky::new(with_diagonal(information, n, |j| penalties[j] + 1e-8), n) {
                self.prior.hold(&problem.layout.blocks, &cholesky.inverse_diagonal(), penalties);
            }
        }
    }

    /// Where it ended.
    pub(super) fn end(self, problem: &Problem<'_>) -> Climb {
        let n = problem.layout.len();
        let gradient = self.gradient();
        let Ascent { here, path, prior, penalties, iterations, .. } = self;
        let gradient_norm = Cholesky::new(with_diagonal(&here.information, n, |j| penalties[j]), n)
            .map(|c| c.solve(&gradient).iter().zip(&gradient).map(|(x, g)| x * g).sum::<f64>())
            .filter(|square| *square >= 0.0)
            .map_or(f64::INFINITY, libm::sqrt);
        let Point { phi, value, information, .. } = here;
        Climb { phi, information, prior, log_likelihood: value, iterations, path, gradient_norm }
    }

    /// Newton steps and updates of the prior in turn.
    fn alternate(&mut self, problem: &Problem<'_>, options: &JointOptions) {
        let (n, blocks) = (problem.layout.len(), &problem.layout.blocks);
        let most = match options.penalty {
            Penalty::Learned => options.iterations,
            Penalty::ElasticNet { .. } => REWEIGHTED_STEPS.max(options.iterations),
        };
        for iteration in 0..most {
            self.iterations += 1;
            let (longest, information) = self.step(problem, options);
            if let Penalty::ElasticNet { mixing, strengths } = options.penalty {
                problem.reweigh(mixing, strengths, &self.here.phi, &mut self.penalties);
            } else if iteration >= options.first_update {
                // The update uses the information of the point that the step left, as the step did.
                let information = information.as_ref().unwrap_or(&self.here.information);
                let penalties = &mut self.penalties;
                let cholesky = Cholesky::new(with_diagonal(information, n, |j| penalties[j] + 1e-8), n);
                if let Some(cholesky) = cholesky {
                    self.prior.effects = problem.design_effects(&self.here);
                    self.prior.update(blocks, &self.here.phi, &cholesky.inverse_diagonal(), penalties);
                }
            }
            if iteration > options.first_stop && longest < options.step_tolerance {
                break;
            }
        }
    }

    fn gradient(&self) -> Vec<f64> {
        let (Point { phi, gradient, .. }, penalties) = (&self.here, &self.penalties);
        (0..phi.len()).map(|j| gradient[j] - penalties[j] * (phi[j] - self.center[j])).collect()
    }

    fn objective(&self, point: &Point) -> f64 {
        let square = |j: usize| (point.phi[j] - self.center[j]) * (point.phi[j] - self.center[j]);
        point.value - (0..self.penalties.len()).map(|j| 0.5 * self.penalties[j] * square(j)).sum::<f64>()
    }

    /// The top of the parabola that touches the likelihood here, under the present penalties.
    fn peak(&self) -> Option<(Vec<f64>, Cholesky)> {
        let (n, penalties) = (self.penalties.len(), &self.penalties);
        let cholesky = Cholesky::new(with_diagonal(&self.here.information, n, |j| penalties[j] + 1e-8), n)?;
        let step = cholesky.solve(&self.gradient());
        Some((self.here.phi.iter().zip(&step).map(|(x, s)| x + s).collect(), cholesky))
    }

    /// Settles slopes and prior together under the parabola that touches the likelihood here, which needs no sum over
    /// units, and goes there. Where that is no ascent it is one damped step under the new penalties.
    fn settle(&mut self, problem: &Problem<'_>, options: &JointOptions) {
        let blocks = &problem.layout.blocks;
        self.prior.effects = problem.design_effects(&self.here);
        let mut there: Option<Vec<f64>> = None;
        for _ in 0..options.iterations {
            let Some((phi, cholesky)) = self.peak() else { break };
            self.prior.update(blocks, &phi, &cholesky.inverse_diagonal(), &mut self.penalties);
            let moved = there.map_or(f64::INFINITY, |last| largest_difference(&last, &phi));
            there = Some(phi);
            if moved < options.step_tolerance {
                break;
            }
        }
        if let Some((phi, _)) = self.peak() {
            if largest_difference(&phi, &self.here.phi) <= options.longest_step {
                let (objective, trial) = (self.objective(&self.here), problem.at(phi));
                if self.takes(trial, objective).is_some() {
                    return;
                }
            }
        }
        self.step(problem, options);
    }

    /// Goes to a point that is no worse than the present one, whose objective is given. Returns the one that was left.
    fn takes(&mut self, trial: Point, objective: f64) -> Option<Point> {
        let value = self.objective(&trial);
        if !(value.is_finite() && value >= objective - VALUE_ROUNDING * (1.0 + objective.abs())) {
            return None;
        }
        self.path.push([objective, value]);
        self.damping = (0.1 * self.damping).max(1e-9);
        Some(std::mem::replace(&mut self.here, trial))
    }

    /// One damped Newton step. Returns its largest change and the information of the point that it left, `None` if no
    /// try was better than staying.
    fn step(&mut self, problem: &Problem<'_>, options: &JointOptions) -> (f64, Option<Vec<f64>>) {
        let n = self.penalties.len();
        let objective = self.objective(&self.here);
        let gradient = self.gradient();
        for _ in 0..options.tries {
            let (information, penalties) = (&self.here.information, &self.penalties);
            let damped = with_diagonal(information, n, |j| {
                penalties[j] + self.damping * (information[j * n + j] + penalties[j]).max(1e-3)
            });
            if let Some(cholesky) = Cholesky::new(damped, n) {
                let mut step = cholesky.solve(&gradient);
                let mut longest = step.iter().fold(0.0, |m: f64, s| m.max(s.abs()));
                if longest > options.longest_step {
                    step.iter_mut().for_each(|s| *s *= options.longest_step / longest);
                    longest = options.longest_step;
                }
                let trial = problem.at(self.here.phi.iter().zip(&step).map(|(x, s)| x + s).collect());
                if let Some(left) = self.takes(trial, objective) {
                    return (longest, Some(left.information));
                }
            }
            self.damping = (10.0 * self.damping).min(1e4);
        }
        (0.0, None)
    }
}

fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |m: f64, (x, y)| m.max((x - y).abs()))
}

/// A row-major matrix with something added to its diagonal.
fn with_diagonal(matrix: &[f64], n: usize, added: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut out = matrix.to_vec();
    (0..n).for_each(|j| out[j * n + j] += added(j));
    out
}

/// Relative rounding error of a value: a sum of thousands of terms.
const VALUE_ROUNDING: f64 = 1e-13;
