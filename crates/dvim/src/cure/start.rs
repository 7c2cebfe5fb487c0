//! Where to start: deterministic points that differ in what they take late censored units for.

use std::cell::OnceCell;

use nalgebra::{Cholesky, DMatrix, DVector};

use super::likelihood::{Seen, cross_product};
use super::optimize::{Limits, maximize};
use super::prepare::{Prepared, events_only};
use super::{FitOptions, Penalised, Ridges};

/// Starting points. The first nearly always leads to the maximum, so the others are made only when asked for.
pub(super) struct Starts {
    first: Vec<f64>,
    others: OnceCell<[Vec<f64>; 3]>,
    /// Logit of the Kaplan–Meier curve at its end, kept away from zero and one by half a unit.
    pub(super) cure_logit: f64,
}

impl Starts {
    pub(super) fn new(arm: &Prepared) -> Starts {
        let (n, d) = (arm.n_units(), arm.width());
        let curve = kaplan_meier(arm);
        let end = curve.iter().copied().fold(1.0, f64::min);
        let half = 0.5 / (n as f64 + 1.0);
        let share = end.clamp(half, 1.0 - half);
        let cure_logit = libm::log(share / (1.0 - share));

        // Least squares: log times of the events; and the probability of being cured, 0 after an event, 1 at the
        // horizon, S(end)/S(y) for a unit lost at y.
        let (rows, target) = events_only(&arm.design, &arm.u, &arm.seen, d);
        let latency = least_squares(&rows, &target, d);
        let residual = |i: usize| target[i] - (0..d).map(|j| rows[i * d + j] * latency[j]).sum::<f64>();
        let variance = (0..target.len()).map(|i| residual(i).powi(2)).sum::<f64>() / target.len() as f64;
        let log_sigma = 0.5 * libm::log(variance.max(0.01));
        let cured: Vec<f64> = (0..n)
            .map(|i| match arm.seen[i] {
                Seen::Event => 0.0,
                Seen::Horizon => 1.0,
                Seen::Censored => (end / curve[i]).clamp(0.0, 1.0),
            })
            .collect();
        let mut cure = least_squares(&arm.design, &cured, d);
        // A linear probability has slope p(1-p) on the logit scale; slopes that leave it are cut back.
        let spread = (share * (1.0 - share)).max(0.05);
        let reach = arm
            .design
            .chunks_exact(d)
            .map(|z| (1..d).map(|j| z[j] * cure[j] / spread).sum::<f64>().abs())
            .fold(0.0, f64::max);
        let factor = if reach > 4.0 { 4.0 / reach } else { 1.0 };
        cure.iter_mut().for_each(|b| *b *= factor / spread);
        cure[0] = cure_logit.clamp(-3.0, 3.0);
        let first = [&cure[..], &latency[..], &[log_sigma]].concat();
        Starts { first, others: OnceCell::new(), cure_logit }
    }

    /// How many there are.
    pub(super) const COUNT: usize = 4;

    /// Start `i`, the most promising first.
    pub(super) fn point(&self, i: usize, arm: &Prepared, options: &FitOptions) -> &[f64] {
        match i {
            0 => &self.first,
            _ => &self.others.get_or_init(|| self.make_others(arm, options))[i - 1],
        }
    }

    fn make_others(&self, arm: &Prepared, options: &FitOptions) -> [Vec<f64>; 3] {
        let (n, d) = (arm.n_units(), arm.width());
        let cure_logit = self.cure_logit;
        // No covariates at all: the best of a few climbs in three parameters, where the remedy guarantees a maximum.
        let ones = vec![1.0; n];
        let likelihood = arm.likelihood(&ones, 1);
        let ridges = Ridges::of(options, arm, Some(options.remedy_strength), cure_logit);
        let objective = Penalised { likelihood: &likelihood, ridges: &ridges };
        let limits = Limits {
            decrement: options.gradient_tolerance,
            iterations: options.iteration_limit,
            step: options.longest_step,
            curvature: options.smallest_information,
            bounds: vec![(-1e3, 1e3); 3],
        };
        let common = [(cure_logit, 0.0, 0.0), (cure_logit - 2.0, 1.0, 0.5), (cure_logit + 1.0, -0.5, -0.5)]
            .map(|(a, m, t)| maximize(&objective, &[a.clamp(-6.0, 6.0), m, t], &limits))
            .into_iter()
            .filter(|ascent| ascent.at.value.is_finite())
            .max_by(|x, y| x.at.value.total_cmp(&y.at.value))
            .map_or(vec![cure_logit, 0.0, 0.0], |ascent| ascent.theta);
        let mut second = vec![0.0; 2 * d + 1];
        (second[0], second[d], second[2 * d]) = (common[0], common[1], common[2]);

        // Of those lost, all would have stayed event-free; or most would have had a late event.
        let half = 0.5 / (n as f64 + 1.0);
        let censored = 1.0 - arm.n_events as f64 / n as f64;
        let mut third = self.first.clone();
        third[0] = libm::log((censored + half) / (1.0 - censored + half));
        let mut fourth = self.first.clone();
        for (j, shift) in [(0, -2.0), (d, 1.0), (2 * d, 0.5)] {
            fourth[j] += shift;
        }
        [second, third, fourth]
    }
}

/// The Kaplan–Meier curve at each unit's time (after the events of that time).
fn kaplan_meier(arm: &Prepared) -> Vec<f64> {
    let n = arm.n_units();
    let time = |i: usize| if arm.seen[i] == Seen::Horizon { f64::INFINITY } else { arm.u[i] };
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| time(i).total_cmp(&time(j)));
    let mut curve = vec![1.0; n];
    let mut survival = 1.0;
    let mut start = 0;
    while start < n {
        let end = start + order[start..].iter().take_while(|&&i| time(i) == time(order[start])).count();
        let events = order[start..end].iter().filter(|&&i| arm.seen[i] == Seen::Event).count();
        survival *= 1.0 - events as f64 / (n - start) as f64;
        order[start..end].iter().for_each(|&i| curve[i] = survival);
        start = end;
    }
    curve
}

/// Least squares with one unit's worth of ridge on all but the intercept, so that it always has an answer.
fn least_squares(rows: &[f64], target: &[f64], d: usize) -> Vec<f64> {
    let n = target.len();
    let mut gram = vec![0.0; d * d];
    cross_product(rows, rows, n, d, &mut gram, false);
    (1..d).for_each(|j| gram[j * d + j] += 1.0);
    let mut right = DVector::zeros(d);
    for (z, y) in rows.chunks_exact(d).zip(target) {
        (0..d).for_each(|j| right[j] += z[j] * y);
    }
    match Cholesky::new(DMatrix::from_row_slice(d, d, &gram)) {
        Some(cholesky) => cholesky.solve(&right).as_slice().to_vec(),
        None => vec![0.0; d],
    }
}
