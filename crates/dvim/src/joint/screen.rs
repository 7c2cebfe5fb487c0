//! Score tests: which columns outside the model would improve it.

use super::climb::{Climb, Problem, Sought};
use super::likelihood::{Widths, unit_gradients};
use super::terms::Terms;
use super::{Chosen, Column, Search};
use crate::arm::{Arm, ByArm};
use crate::estimand::{ByEstimand, Estimand};

/// Rows of a block.
const CHUNK: usize = 128;

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
    fn gradients(&self, problem: &Problem<'_>, climb: &Climb, arm: Arm) -> Vec<ByEstimand<f64>> {
        let theta = problem.layout.arm(&climb.phi, arm);
        let widths = problem.layout.widths;
        unit_gradients(problem.family, self.u_horizon, &self.outcomes[arm], &problem.designs[arm], widths, &theta)
    }

    /// Adds up the scores of the columns that `values` gives for some rows of an arm. Rows of one cluster are one
    /// score.
    fn add_scores(
        &self,
        problem: &Problem<'_>,
        climb: &Climb,
        sums: &mut Sums,
        mut values: impl FnMut(&[usize]) -> Vec<f64>,
    ) {
        let n = sums.u.cure.control.len();
        let gradients = ByArm::of(|arm| self.gradients(problem, climb, arm));
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
        climb: &Climb,
        terms: &Terms,
        chosen: &[Chosen],
        round: usize,
    ) -> Vec<Chosen> {
        let n = terms.len();
        let mut sums = Sums::new(n);
        let (mut line, mut values) = (Vec::new(), Vec::new());
        let is_plain = self.outcomes.iter().all(|of| of.weights.is_empty());
        if !is_plain {
            self.add_scores(problem, climb, &mut sums, |units| {
                terms.evaluate(units.iter().map(|&i| self.row(i)), &mut line, &mut values);
                values.clone()
            });
        }
        for arm in Arm::BOTH.into_iter().filter(|_| is_plain) {
            let gradients = self.gradients(problem, climb, arm);
            for (rows, gradients) in self.outcomes[arm].rows.chunks(CHUNK).zip(gradients.chunks(CHUNK)) {
                terms.evaluate(rows.iter().map(|&i| self.row(i)), &mut line, &mut values);
                for (row, &gradient) in values.chunks_exact(n).zip(gradients) {
                    sums.add(arm, gradient, row);
                }
            }
        }
        let mut entering = Vec::new();
        for part in Estimand::BOTH {
            let mut order: Vec<(f64, usize)> = (0..n)
                .map(|c| (sums.statistic(part, c), c))
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

    /// Statistics of the covariates themselves, for cure and time, in the model that has none.
    pub(super) fn scores_without_covariates(&self, covariates: &[usize]) -> Vec<ByEstimand<f64>> {
        let columns = [Column::Intercept];
        let problem = self.problem(&columns, Widths { all: 1, cure: 1, time: 1 });
        let climb = problem.climb(self.phi(&problem.layout, &columns), &Sought::default(), self.options);
        let mut sums = Sums::new(covariates.len());
        let mut row = Vec::new();
        let is_plain = self.outcomes.iter().all(|of| of.weights.is_empty());
        if !is_plain {
            self.add_scores(&problem, &climb, &mut sums, |units| {
                units.iter().flat_map(|&i| covariates.iter().map(move |&j| self.row(i)[j])).collect()
            });
        }
        for arm in Arm::BOTH.into_iter().filter(|_| is_plain) {
            for (&i, gradient) in self.outcomes[arm].rows.iter().zip(self.gradients(&problem, &climb, arm)) {
                row.clear();
                row.extend(covariates.iter().map(|&j| self.row(i)[j]));
                sums.add(arm, gradient, &row);
            }
        }
        (0..covariates.len()).map(|c| ByEstimand::of(|part| sums.statistic(part, c))).collect()
    }
}
