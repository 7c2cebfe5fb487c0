//! Would richer models change the answer?
//!
//! The averages of a corrected run are right if either the curves or the propensities are. Both could miss the same
//! curvature: patients treated inside a ring of two covariates, whose outcome depends on that ring, look comparable to
//! anything that is linear. So both are made richer by squares and products of the covariates, each learned from one
//! half of the patients and used on the other, and the average is taken again:
//!
//! `θ′ = mean { v₁ + δ₁ − v₀ − δ₀ + (ρ − δ_Z)(Z/e′ − (1 − Z)/(1 − e′)) }`
//!
//! with v the corrected values, ρ the residual, δ_z a ridge regression of the residuals of arm z on the squares and
//! products, e′ a logistic regression of treatment on them and on the logit of the propensity in use. Where nothing was
//! missed, θ′ differs from θ by noise, which the spread of the patients' terms shows.

use super::one_step::Scores;
use crate::analysis::Analysis;
use crate::arm::{Arm, ByArm};
use crate::cohort::Cohort;
use crate::compare::{self, logistic};
use crate::estimand::{ByEstimand, Estimand};
use crate::metric::{Scale, Scaling};
use nalgebra::{DMatrix, DVector};

/// Patients that are looked at, at most.
const MOST_UNITS: usize = 4_000;
/// Fewer tell nothing.
const FEWEST_UNITS: usize = 200;
/// Covariates whose squares and products are taken, at most.
const MOST_COVARIATES: usize = 10;
/// Patients for each square or product, at least.
const UNITS_PER_TERM: usize = 20;
/// Propensities are kept so far from 0 and 1.
const SMALLEST_PROPENSITY: f64 = 0.02;

/// An average by richer models.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    /// The average as it is reported, of the patients that were looked at.
    pub estimate: f64,
    /// The average by the richer models.
    pub richer: f64,
    /// Standard error of their difference.
    pub se: f64,
    /// Standard error of the reported average, in a cohort of the size that was looked at.
    pub own_se: f64,
}

impl Moved {
    /// The difference in standard errors of the average.
    pub fn shift(&self) -> f64 {
        if self.own_se > 0.0 { (self.richer - self.estimate) / self.own_se } else { 0.0 }
    }

    /// The difference in its own standard errors: how surely it is more than noise.
    pub fn z(&self) -> f64 {
        if self.se > 0.0 { (self.richer - self.estimate) / self.se } else { 0.0 }
    }
}

/// Both averages by richer models.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// Of each effect.
    pub moved: ByEstimand<Moved>,
    /// The covariates whose squares and products were taken.
    pub covariates: Vec<String>,
    /// The one whose square or product goes most with treatment or residuals.
    pub most: String,
}

impl Form {
    /// Asks richer models; `None` where there are too few patients for them.
    pub(super) fn of(cohort: &Cohort, analysis: &Analysis, scores: &Scores<'_>) -> Option<Form> {
        let n_all = scores.n_units();
        let step = n_all.div_ceil(MOST_UNITS);
        let units: Vec<usize> = (0..n_all).step_by(step.max(1)).collect();
        let n = units.len();
        if n < FEWEST_UNITS {
            return None;
        }
        let chosen = chosen(cohort, analysis);
        let scaling = Scaling::of(cohort, Scale::Standard);
        let place = |i: usize| analysis.units[i] as usize;
        let rows: Vec<Vec<f64>> = units.iter().map(|&i| scaling.apply(cohort.covariates(place(i)))).collect();
        let (terms, names) = terms(&rows, &chosen, n / UNITS_PER_TERM);
        if terms.is_empty() {
            return None;
        }
        let k = terms.len();
        let fold_of = &analysis.fit.first().fold_of;
        let half: Vec<bool> = units.iter().map(|&i| fold_of[place(i)] % 2 == 0).collect();
        let treated: Vec<bool> = units.iter().map(|&i| scores.arm(i) == Arm::Treated).collect();
        let e: Vec<f64> = units.iter().map(|&i| scores.propensity_of(Arm::Treated, i)).collect();
        let weight: Vec<f64> = units.iter().map(|&i| scores.case_weight(i)).collect();
        let residual = |side: Estimand, q: usize| {
            let r = scores.residual(units[q]);
            if side == Estimand::Cure { r.cure } else { r.time }
        };
        let mut richer = e.clone();
        let mut added: ByEstimand<ByArm<Vec<f64>>> = ByEstimand::of(|_| ByArm::of(|_| vec![0.0; n]));
        let mut strongest = vec![0.0f64; k];
        for side_of_half in [true, false] {
            let learn: Vec<usize> = (0..n).filter(|&q| half[q] == side_of_half).collect();
            let apply: Vec<usize> = (0..n).filter(|&q| half[q] != side_of_half).collect();
            if learn.len() < FEWEST_UNITS / 2 || apply.is_empty() {
                return None;
            }
            let design = |q: usize| -> Vec<f64> {
                std::iter::once((e[q] / (1.0 - e[q])).ln()).chain(terms.iter().map(|t| t[q])).collect()
            };
            let x: Vec<f64> = learn.iter().flat_map(|&q| design(q)).collect();
            let z: Vec<bool> = learn.iter().map(|&q| treated[q]).collect();
            let options = compare::FitOptions { ridge: k as f64, ..compare::FitOptions::default() };
            if let Ok(fit) = logistic::fit_weighted(&x, k + 1, &z, None, &options) {
                let score = fit.score();
                for &q in &apply {
                    richer[q] = score.evaluate(&design(q)).clamp(SMALLEST_PROPENSITY, 1.0 - SMALLEST_PROPENSITY);
                }
            }
            for (j, t) in terms.iter().enumerate() {
                let sum: f64 = learn.iter().map(|&q| t[q] * (f64::from(u8::from(treated[q])) - e[q])).sum();
                let square: f64 = learn.iter().map(|&q| t[q] * t[q] * e[q] * (1.0 - e[q])).sum();
                strongest[j] = strongest[j].max(sum.abs() / square.sqrt().max(1e-12));
            }
            for side in Estimand::BOTH {
                for arm in Arm::BOTH {
                    let own: Vec<usize> =
                        learn.iter().copied().filter(|&q| treated[q] == (arm == Arm::Treated)).collect();
                    let Some(slopes) = ridge(&terms, &own, |q| residual(side, q)) else { continue };
                    for &q in &apply {
                        added[side][arm][q] = slopes[0] + (0..k).map(|j| slopes[j + 1] * terms[j][q]).sum::<f64>();
                    }
                }
            }
        }
        let moved = ByEstimand::of(|side| {
            let mut own = Vec::with_capacity(n);
            let mut other = Vec::with_capacity(n);
            for (q, &i) in units.iter().enumerate() {
                let effect = match side {
                    Estimand::Cure => analysis.effects[i].cure(),
                    Estimand::Time => analysis.effects[i].time().unwrap_or(f64::NAN),
                };
                let (sign, arm) = if treated[q] { (1.0, Arm::Treated) } else { (-1.0, Arm::Control) };
                let chance = |e: f64| if treated[q] { e } else { 1.0 - e };
                let (rho, more) = (residual(side, q), &added[side]);
                own.push(effect + sign * rho / chance(e[q]));
                other
                    .push(effect + more.treated[q] - more.control[q] + sign * (rho - more[arm][q]) / chance(richer[q]));
            }
            let total: f64 = weight.iter().sum();
            let mean = |v: &[f64]| v.iter().zip(&weight).map(|(v, w)| v * w).sum::<f64>() / total;
            let se = |v: &[f64]| {
                let m = mean(v);
                v.iter().zip(&weight).map(|(v, w)| (w * (v - m)).powi(2)).sum::<f64>().sqrt() / total
            };
            let difference: Vec<f64> = own.iter().zip(&other).map(|(a, b)| b - a).collect();
            Moved { estimate: mean(&own), richer: mean(&other), se: se(&difference), own_se: se(&own) }
        });
        if moved.iter().any(|m| !m.richer.is_finite() || !m.se.is_finite()) {
            return None;
        }
        let most = (0..k).max_by(|&a, &b| strongest[a].total_cmp(&strongest[b])).unwrap_or(0);
        let covariates = chosen.iter().map(|&j| cohort.names()[j].clone()).collect();
        let [a, b] = names[most].map(|j| cohort.names()[j].as_str());
        let most = if a == b { format!("the square of {a}") } else { format!("the product of {a} and {b}") };
        Some(Form { moved, covariates, most })
    }
}

/// The columns whose squares and products are taken: those that weigh most in either metric, all where they are few.
fn chosen(cohort: &Cohort, analysis: &Analysis) -> Vec<usize> {
    let p = cohort.n_covariates();
    let metrics = &analysis.fit.description.metrics;
    let share = |weights: &[f64], j: usize| {
        let largest = weights.iter().copied().fold(0.0, f64::max);
        if largest > 0.0 { weights[j] / largest } else { 0.0 }
    };
    let worth = |j: usize| share(&metrics.cure.weights, j).max(share(&metrics.time.weights, j));
    let mut order: Vec<usize> = (0..p).collect();
    order.sort_by(|&a, &b| worth(b).total_cmp(&worth(a)).then(a.cmp(&b)));
    order.truncate(MOST_COVARIATES);
    order.sort_unstable();
    order
}

/// Squares and products of the chosen columns that vary, each with mean 0 and variance 1, and which columns they are of.
fn terms(rows: &[Vec<f64>], chosen: &[usize], most: usize) -> (Vec<Vec<f64>>, Vec<[usize; 2]>) {
    let pairs = chosen.iter().enumerate().flat_map(|(a, &i)| chosen[a..].iter().map(move |&j| [i, j]));
    // Squares first: with few patients there is room for few terms.
    let mut pairs: Vec<[usize; 2]> = pairs.collect();
    pairs.sort_by_key(|[i, j]| i != j);
    let (mut out, mut names) = (Vec::new(), Vec::new());
    for [i, j] in pairs {
        if out.len() >= most {
            break;
        }
        let mut values: Vec<f64> = rows.iter().map(|x| (x[i] * x[j]).clamp(-20.0, 20.0)).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        values.iter_mut().for_each(|v| *v -= mean);
        let sd = (values.iter().map(|v| v * v).sum::<f64>() / n).sqrt();
        // The square of a 0/1 column is the column.
        let is_linear = i == j && {
            let mut levels: Vec<f64> = rows.iter().map(|x| x[i]).collect();
            levels.sort_by(f64::total_cmp);
            levels.dedup();
            levels.len() <= 2
        };
        if sd > 1e-9 && !is_linear {
            values.iter_mut().for_each(|v| *v /= sd);
            out.push(values);
            names.push([i, j]);
        }
    }
    (out, names)
}

/// Intercept and slopes of `y` on the terms over some patients; the slopes are held by a ridge of as many patients as
/// there are terms.
fn ridge(terms: &[Vec<f64>], units: &[usize], y: impl Fn(usize) -> f64) -> Option<Vec<f64>> {
    let (n, k) = (units.len(), terms.len());
    if n < 2 * k.min(50) {
        return None;
    }
    let y = DVector::from_iterator(n, units.iter().map(|&q| y(q)));
    let mean = y.mean();
    let center: Vec<f64> = terms.iter().map(|t| units.iter().map(|&q| t[q]).sum::<f64>() / n as f64).collect();
    let x = DMatrix::from_fn(n, k, |r, j| terms[j][units[r]] - center[j]);
    let mut gram = x.transpose() * &x;
    (0..k).for_each(|j| gram[(j, j)] += k as f64);
    let slopes = gram.cholesky()?.solve(&(x.transpose() * y.add_scalar(-mean)));
    let intercept = mean - slopes.iter().zip(&center).map(|(b, c)| b * c).sum::<f64>();
    Some(std::iter::once(intercept).chain(slopes.iter().copied()).collect())
}
