//! Score tests: which columns outside the model would improve it.

use super::climb::{Problem, Sought};
use super::likelihood::{Widths, unit_gradients};
use super::matrix::product;
use super::terms::{Shape, Terms};
use super::{Chosen, Column, Search};
use crate::arm::{Arm, ByArm};
use crate::estimand::{ByEstimand, Estimand};
use crate::numeric::in_wide_registers;

/// Rows of a block.
const CHUNK: usize = 128;
/// From so many rows on, candidates that are far from entering are left out by an estimate of their statistic.
const MANY_ROWS: usize = 8192;
/// One row in so many tells of the variance of a score in that estimate.
const SAMPLED: usize = 8;
/// The share of the statistic for entry that an estimate must have. 0.7: a variance that is taken from a thousand rows
/// or more is not twice what it is.
const ROUGHLY: f64 = 0.7;

/// `Σ g c` and `Σ g² c²` of every column, for each part and arm.
struct Sums {
    u: ByEstimand<ByArm<Vec<f64>>>,
    v: ByEstimand<ByArm<Vec<f64>>>,
    /// `Σ` of the products of the arms' scores over clusters, which may have units in both; empty without clusters.
    both: ByEstimand<Vec<f64>>,
}

impl Sums {
    fn new(n: usize) -> Sums {
        let zeros = || ByEstimand::of(|_| ByArm::of(|_| vec![0.0; n]));
        Sums { u: zeros(), v: zeros(), both: ByEstimand::default() }
    }

    /// Adds the scores of a cluster, which were summed in `of`.
    fn add_cluster(&mut self, of: &Sums) {
        for part in Estimand::BOTH {
            let both = &mut self.both[part];
            both.resize(of.u[part].control.len(), 0.0);
            let arms = of.u[part].control.iter().zip(&of.u[part].treated);
            both.iter_mut().zip(arms).for_each(|(both, (c, t))| *both += c * t);
            for arm in Arm::BOTH {
                let (u, v) = (&mut self.u[part][arm], &mut self.v[part][arm]);
                for ((u, v), score) in u.iter_mut().zip(v).zip(&of.u[part][arm]) {
                    *u += score;
                    *v += score * score;
                }
            }
        }
    }

    fn add(&mut self, arm: Arm, gradient: ByEstimand<f64>, row: &[f64]) {
        for part in Estimand::BOTH {
            let g = gradient[part];
            if g == 0.0 {
                continue;
            }
            let (u, v) = (&mut self.u[part][arm], &mut self.v[part][arm]);
            for ((u, v), c) in u.iter_mut().zip(v).zip(row) {
                let score = g * c;
                *u += score;
                *v += score * score;
            }
        }
    }

    /// `max(|U₀|/√V₀, |U₁|/√V₁, |U₀+U₁|/√(V₀+V₁))`; zero where nothing varies.
    fn statistic(&self, part: Estimand, c: usize) -> f64 {
        let ratio = |u: f64, v: f64| if v > 0.0 { u.abs() / libm::sqrt(v) } else { 0.0 };
        let (u, v) = (self.u[part].each_ref().map(|u| u[c]), self.v[part].each_ref().map(|v| v[c]));
        let shared = self.both[part].get(c).map_or(0.0, |both| 2.0 * both);
        let both = ratio(u.control + u.treated, v.control + v.treated + shared);
        ratio(u.control, v.control).max(ratio(u.treated, v.treated)).max(both)
    }
}

impl Search<'_> {
    fn gradients(&self, problem: &Problem<'_>, phi: &[f64], arm: Arm) -> Vec<ByEstimand<f64>> {
        let theta = problem.layout.arm(phi, arm);
        let widths = problem.layout.widths;
        unit_gradients(problem.family, self.u_horizon, &self.outcomes[arm], &problem.designs[arm], widths, &theta)
    }

    /// Adds up the scores of the columns that `values` gives for some rows of an arm. Rows of one cluster are one
    /// score.
    fn add_scores(
        &self,
        problem: &Problem<'_>,
        phi: &[f64],
        sums: &mut Sums,
        mut values: impl FnMut(&[usize]) -> Vec<f64>,
    ) {
        let n = sums.u.cure.control.len();
        let gradients = ByArm::of(|arm| self.gradients(problem, phi, arm));
        // What scores are summed over before they are squared: the cluster, or the unit with its pieces.
        let mut order: Vec<(u32, Arm, usize)> = Arm::BOTH
            .into_iter()
            .flat_map(|arm| {
                let of = &self.outcomes[arm];
                let cluster = |row: usize| of.clusters.get(row).copied().unwrap_or(of.rows[row] as u32);
                (0..of.rows.len()).map(move |row| (cluster(row), arm, row))
            })
            .collect();
        order.sort_by_key(|&(cluster, arm, row)| (cluster, arm.index(), row));
        for of in order.chunk_by(|a, b| a.0 == b.0) {
            let mut one = Sums::new(n);
            for rows in of.chunks(CHUNK) {
                let units: Vec<usize> = rows.iter().map(|&(_, arm, row)| self.outcomes[arm].rows[row]).collect();
                for (&(_, arm, row), values) in rows.iter().zip(values(&units).chunks_exact(n)) {
                    one.add(arm, gradients[arm][row], values);
                }
            }
            sums.add_cluster(&one);
        }
    }

    /// Candidates that enter: for each part at most `most_terms`, the largest statistics first, one for each set of
    /// covariates.
    pub(super) fn screen(
        &self,
        problem: &Problem<'_>,
        phi: &[f64],
        terms: &Terms,
        chosen: &[Chosen],
        round: usize,
    ) -> Vec<Chosen> {
        let is_plain = self.outcomes.iter().all(|of| of.weights.is_empty());
        let is_large = is_plain && self.outcomes.iter().map(|of| of.rows.len()).sum::<usize>() >= MANY_ROWS;
        let gradients = ByArm::of(|arm| if is_plain { self.gradients(problem, phi, arm) } else { Vec::new() });
        // Candidates by their numbers, and those that are looked at closely.
        let near: Vec<usize> =
            if is_large { self.near_entry(&gradients, terms) } else { (0..terms.len()).collect::<Vec<_>>() };
        let some;
        let looked_at = if is_large {
            some = terms.some(&near);
            &some
        } else {
            terms
        };
        let n = near.len();
        let mut sums = Sums::new(n);
        let (mut line, mut values) = (Vec::new(), Vec::new());
        if !is_plain {
            self.add_scores(problem, phi, &mut sums, |units| {
                terms.evaluate(units.iter().map(|&i| self.row(i)), &mut line, &mut values);
                values.clone()
            });
        }
        for arm in Arm::BOTH.into_iter().filter(|_| is_plain && n > 0) {
            for (rows, gradients) in self.outcomes[arm].rows.chunks(CHUNK).zip(gradients[arm].chunks(CHUNK)) {
                looked_at.evaluate(rows.iter().map(|&i| self.row(i)), &mut line, &mut values);
                for (row, &gradient) in values.chunks_exact(n).zip(gradients) {
                    sums.add(arm, gradient, row);
                }
            }
        }
        let mut entering = Vec::new();
        for part in Estimand::BOTH {
            let mut order: Vec<(f64, usize)> = (0..n)
                .map(|c| (sums.statistic(part, c), near[c]))
                .filter(|&(statistic, _)| statistic >= self.options.entry)
                .collect();
            order.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
            let mut used = Vec::new();
            for (statistic, candidate) in order {
                if used.len() == self.options.most_terms {
                    break;
                }
                let members = terms.get(candidate).shape.members();
                let inside = chosen.iter().any(|c| c.part == part && c.candidate == candidate);
                if inside || used.contains(&members) {
                    continue;
                }
                used.push(members);
                entering.push(Chosen { part, candidate, round, statistic });
            }
        }
        entering
    }

    /// Candidates whose statistic may be large enough to enter, ascending. Scores are summed over all rows, from sums
    /// that need no candidate's value: those of products of covariates are one matrix. Variances come from some of the
    /// rows.
    fn near_entry(&self, gradients: &ByArm<Vec<ByEstimand<f64>>>, terms: &Terms) -> Vec<usize> {
        let (n, active) = (terms.len(), terms.active());
        let p = active.len();
        let mut place = vec![0; self.data.n_covariates];
        active.iter().enumerate().for_each(|(at, &j)| place[j] = at);
        let mut sums = Sums::new(n);
        let (mut line, mut values) = (Vec::new(), Vec::new());
        let singles: Vec<usize> = (0..n).filter(|&k| is_single(&terms.get(k).shape)).collect();
        for arm in Arm::BOTH {
            let rows = &self.outcomes[arm].rows;
            // Σ g x, Σ g x x' of clipped covariates, and Σ g c of steps and hinges.
            let mut lines = ByEstimand::of(|_| vec![0.0; p + 1]);
            let mut squares = ByEstimand::of(|_| vec![0.0; p * p]);
            let mut of_singles = ByEstimand::of(|_| vec![0.0; singles.len()]);
            let (mut plain, mut clipped, mut weighed) =
                (vec![0.0; p * CHUNK], vec![0.0; p * CHUNK], vec![0.0; p * CHUNK]);
            for (rows, gradients) in rows.chunks(CHUNK).zip(gradients[arm].chunks(CHUNK)) {
                let m = rows.len();
                for (r, &i) in rows.iter().enumerate() {
                    let x = self.row(i);
                    for (at, &j) in active.iter().enumerate() {
                        plain[at * CHUNK + r] = x[j];
                        clipped[at * CHUNK + r] = terms.clipped(j, x[j]);
                    }
                }
                let g = ByEstimand::of(|part| gradients.iter().map(|g| g[part]).collect::<Vec<f64>>());
                for part in Estimand::BOTH {
                    let g = &g[part];
                    lines[part][p] += g.iter().sum::<f64>();
                    for j in 0..p {
                        let column = j * CHUNK..j * CHUNK + m;
                        lines[part][j] += dot(g, &plain[column.clone()]);
                        let of = weighed[column.clone()].iter_mut().zip(&clipped[column]);
                        of.zip(g).for_each(|((w, x), g)| *w = g * x);
                    }
                    product((p, m, p), 1.0, &weighed, (CHUNK, 1), &clipped, (1, CHUNK), &mut squares[part], p);
                }
                for (at, &k) in singles.iter().enumerate() {
                    let column = |j: usize| place[j] * CHUNK..place[j] * CHUNK + m;
                    let score = match terms.get(k).shape {
                        Shape::Step { covariate, cut } => sum_above(&plain[column(covariate)], cut, &g.cure, &g.time),
                        Shape::Hinge { covariate, knot } => {
                            sum_beyond(&clipped[column(covariate)], knot, &g.cure, &g.time)
                        }
                        _ => [0.0; 2],
                    };
                    of_singles.cure[at] += score[0];
                    of_singles.time[at] += score[1];
                }
                let some = || (0..m).step_by(SAMPLED);
                terms.evaluate(some().map(|r| self.row(rows[r])), &mut line, &mut values);
                for (row, r) in values.chunks_exact(n).zip(some()) {
                    sums.add(arm, gradients[r], row);
                }
            }
            let sampled = rows.chunks(CHUNK).map(|rows| rows.len().div_ceil(SAMPLED)).sum::<usize>();
            let scale = rows.len() as f64 / f64::max(sampled as f64, 1.0);
            for part in Estimand::BOTH {
                sums.v[part][arm].iter_mut().for_each(|v| *v *= scale);
                let mut of_singles = of_singles[part].iter();
                for k in 0..n {
                    let term = terms.get(k);
                    let raw = match term.shape {
                        Shape::Square { covariate } => squares[part][place[covariate] * (p + 1)],
                        Shape::Product { first, second } => squares[part][place[first] * p + place[second]],
                        Shape::Step { .. } | Shape::Hinge { .. } => of_singles.next().copied().unwrap_or(0.0),
                    };
                    let line: f64 = term.line.iter().map(|&(j, b)| b * lines[part][place[j]]).sum();
                    sums.u[part][arm][k] = term.gain * raw - term.base * lines[part][p] - line;
                }
            }
        }
        let enough = ROUGHLY * self.options.entry;
        let is_near = |k: usize| Estimand::BOTH.iter().any(|&part| sums.statistic(part, k) >= enough);
        (0..n).filter(|&k| is_near(k)).collect()
    }

    /// Statistics of the covariates themselves, for cure and time, in the model that has none.
    pub(super) fn scores_without_covariates(&self, covariates: &[usize]) -> Vec<ByEstimand<f64>> {
        let columns = [Column::Intercept];
        let problem = self.problem(&columns, Widths { all: 1, cure: 1, time: 1 });
        let climb = problem.climb(self.phi(&problem.layout, &columns), &Sought::default(), self.options);
        let mut sums = Sums::new(covariates.len());
        let mut row = Vec::new();
        let is_plain = self.outcomes.iter().all(|of| of.weights.is_empty());
        if !is_plain {
            self.add_scores(&problem, &climb.phi, &mut sums, |units| {
                units.iter().flat_map(|&i| covariates.iter().map(move |&j| self.row(i)[j])).collect()
            });
        }
        for arm in Arm::BOTH.into_iter().filter(|_| is_plain) {
            for (&i, gradient) in self.outcomes[arm].rows.iter().zip(self.gradients(&problem, &climb.phi, arm)) {
                row.clear();
                row.extend(covariates.iter().map(|&j| self.row(i)[j]));
                sums.add(arm, gradient, &row);
            }
        }
        (0..covariates.len()).map(|c| ByEstimand::of(|part| sums.statistic(part, c))).collect()
    }
}

fn is_single(shape: &Shape) -> bool {
    matches!(shape, Shape::Step { .. } | Shape::Hinge { .. })
}

in_wide_registers!(fn dot = dot_product(x: &[f64], y: &[f64]) -> f64);
in_wide_registers!(fn sum_above = above(x: &[f64], cut: f64, g: &[f64], h: &[f64]) -> [f64; 2]);
in_wide_registers!(fn sum_beyond = beyond(x: &[f64], knot: f64, g: &[f64], h: &[f64]) -> [f64; 2]);

#[inline(always)]
fn dot_product(x: &[f64], y: &[f64]) -> f64 {
    two_sums(x, |x| x, y, y)[0]
}

/// `Σ g` and `Σ h` where x is above the cut.
#[inline(always)]
fn above(x: &[f64], cut: f64, g: &[f64], h: &[f64]) -> [f64; 2] {
    two_sums(x, |x| f64::from(u8::from(x > cut)), g, h)
}

/// `Σ g (x − knot)₊` and the same with h.
#[inline(always)]
fn beyond(x: &[f64], knot: f64, g: &[f64], h: &[f64]) -> [f64; 2] {
    two_sums(x, |x| (x - knot).max(0.0), g, h)
}

/// `Σ g f(x)` and `Σ h f(x)`, in four sums each, as vector registers hold them.
#[inline(always)]
fn two_sums(x: &[f64], f: impl Fn(f64) -> f64, g: &[f64], h: &[f64]) -> [f64; 2] {
    let (mut a, mut b) = ([0.0; 4], [0.0; 4]);
    let whole = x.len() / 4 * 4;
    for ((x, g), h) in x.chunks_exact(4).zip(g.chunks_exact(4)).zip(h.chunks_exact(4)) {
        for k in 0..4 {
            let value = f(x[k]);
            a[k] += g[k] * value;
            b[k] += h[k] * value;
        }
    }
    for k in whole..x.len() {
        a[k - whole] += g[k] * f(x[k]);
        b[k - whole] += h[k] * f(x[k]);
    }
    [a, b].map(|s| (s[0] + s[1]) + (s[2] + s[3]))
}
