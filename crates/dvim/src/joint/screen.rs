//! Score tests: which columns outside the model would improve it.

use super::climb::{Climb, Problem, Sought};
use super::likelihood::{Widths, unit_gradients};
use super::terms::Terms;
use super::{Chosen, Column, Part, Search};

/// Rows of a block.
const CHUNK: usize = 128;

/// `Σ g c` and `Σ g² c²` of every column, for each part and arm.
struct Sums {
    u: [[Vec<f64>; 2]; 2],
    v: [[Vec<f64>; 2]; 2],
}

impl Sums {
    fn new(n: usize) -> Sums {
        let zeros = || [[vec![0.0; n], vec![0.0; n]], [vec![0.0; n], vec![0.0; n]]];
        Sums { u: zeros(), v: zeros() }
    }

    fn add(&mut self, z: usize, gradient: [f64; 2], row: &[f64]) {
        for (part, g) in gradient.into_iter().enumerate() {
            if g == 0.0 {
                continue;
            }
            let (u, v) = (&mut self.u[part][z], &mut self.v[part][z]);
            for ((u, v), c) in u.iter_mut().zip(v).zip(row) {
                let score = g * c;
                *u += score;
                *v += score * score;
            }
        }
    }

    /// `max(|U₀|/√V₀, |U₁|/√V₁, |U₀+U₁|/√(V₀+V₁))`; zero where nothing varies.
    fn statistic(&self, part: usize, c: usize) -> f64 {
        let (u, v) = (&self.u[part], &self.v[part]);
        let ratio = |u: f64, v: f64| if v > 0.0 { u.abs() / libm::sqrt(v) } else { 0.0 };
        let (u, v) = ([u[0][c], u[1][c]], [v[0][c], v[1][c]]);
        ratio(u[0], v[0]).max(ratio(u[1], v[1])).max(ratio(u[0] + u[1], v[0] + v[1]))
    }
}

impl Search<'_> {
    fn gradients(&self, problem: &Problem<'_>, climb: &Climb, z: usize) -> Vec<[f64; 2]> {
        let theta = problem.layout.arm(&climb.phi, z);
        let widths = problem.layout.widths;
        unit_gradients(problem.family, self.u_horizon, &self.outcomes[z], &problem.designs[z], widths, &theta)
    }

    /// Candidates that enter: for each part at most `most_terms`, the largest statistics first, one for each set of covariates.
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
        for (z, arm) in self.outcomes.iter().enumerate() {
            let gradients = self.gradients(problem, climb, z);
            for (rows, gradients) in arm.rows.chunks(CHUNK).zip(gradients.chunks(CHUNK)) {
                terms.evaluate(rows.iter().map(|&i| self.row(i)), &mut line, &mut values);
                for (row, &gradient) in values.chunks_exact(n).zip(gradients) {
                    sums.add(z, gradient, row);
                }
            }
        }
        let mut entering = Vec::new();
        for part in [Part::Cure, Part::Time] {
            let mut order: Vec<(f64, usize)> = (0..n)
                .map(|c| (sums.statistic(part.index(), c), c))
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
    pub(super) fn scores_without_covariates(&self, covariates: &[usize]) -> Vec<[f64; 2]> {
        let columns = [Column::Intercept];
        let problem = self.problem(&columns, Widths { all: 1, cure: 1, time: 1 });
        let climb = problem.climb(self.phi(&problem.layout, &columns), &Sought::default(), self.options);
        let mut sums = Sums::new(covariates.len());
        let mut row = Vec::new();
        for (z, arm) in self.outcomes.iter().enumerate() {
            for (&i, gradient) in arm.rows.iter().zip(self.gradients(&problem, &climb, z)) {
                row.clear();
                row.extend(covariates.iter().map(|&j| self.row(i)[j]));
                sums.add(z, gradient, &row);
            }
        }
        (0..covariates.len()).map(|c| [sums.statistic(0, c), sums.statistic(1, c)]).collect()
    }
}
