//! How much of what stands beside the cure models of a deal is used: see [`crate::beside`].
//!
//! Proportional hazards and boosted hazards are learned from the training set of each fold. Their shares in a fold are
//! decided by units of the other folds, each predicted by the models that left it out. Shares have to predict outcomes
//! better by more than some of their noise, and effects no worse: a learner that is good at outcomes may make up
//! effects. So the cure model stands alone where nothing is gained.
//!
//! Where it takes more than a linear model to say who is treated, the models of the outcome may have missed the same
//! shape. The level of each arm is then set once more, by the units of the other folds, each of which counts by the
//! inverse of its propensity: the average over all patients, and not over those who happened to be in the arm, is met.

use super::periods::Periods;
use super::setting::Setting;
use crate::arm::{Arm, ByArm};
use crate::beside::{Beside, Hazard, Shares, half};
use crate::boosted::Boosted;
use crate::correction::FoldModel;
use crate::curve::Grid;
use crate::estimand::{ByEstimand, Estimand};
use crate::joint::{Prediction, Predictor};
use crate::nuisance::{Baseline, Propensity, Rows};
use crate::numeric::{expit, log1pexp};
use crate::options::Learners;
use crate::split::TrainingSet;
use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;

/// Shares are tried in these parts.
const PARTS: usize = 4;
/// The level of an arm moves at most so far.
const FURTHEST: f64 = 2.0;
/// Shares must predict outcomes better by this many standard errors.
const CAUTION: f64 = 0.3;
/// Shares may lose so many standard errors in effects: that loss is noisy, and says no to what is plainly wrong.
const MOST_OF_EFFECT: f64 = 1.0;
/// Propensities are bounded away from 0 and 1 by this, and the chance of an event from 0 by twice of it.
const BOUND: f64 = 0.05;
/// Rounds of the fit of proportional hazards.
const STEPS: usize = 10;

/// Fits proportional hazards on the columns of a cure model: slopes that are common to the arms and slopes of their
/// difference, each kind with a Cauchy prior whose scale is learned with them, by expectation and maximisation.
fn fit_hazard(training: &TrainingSet<'_>, rows: &Rows<'_>, predictor: &Predictor, grid: &Grid) -> Hazard {
    let cohort = training.cohort();
    let units = training.units();
    let columns: Vec<Vec<f64>> = units.iter().map(|&i| predictor.design(rows.row(i as usize))).collect();
    let k = predictor.columns.len();
    // Intercepts of the arms, common slopes, slopes of the difference. The design's intercept has slope 0.
    let width = 2 + 2 * k;
    let intercepts: Vec<bool> = predictor.columns.iter().map(|c| *c == crate::joint::Column::Intercept).collect();
    let mut b = vec![0.0; width];
    let mut precision = vec![1e-6; width];
    for j in 0..k {
        precision[2 + j] = if intercepts[j] { 1e9 } else { 10.0 };
        precision[2 + k + j] = if intercepts[j] { 1e9 } else { 50.0 };
    }
    let mut scale = [0.1, 0.02];
    let score = |b: &[f64], row: &[f64], arm: Arm| {
        let slopes: f64 = row.iter().enumerate().map(|(j, x)| (b[2 + j] + half(arm) * b[2 + k + j]) * x).sum();
        slopes
    };
    let baselines = |b: &[f64]| {
        ByArm::of(|arm| {
            let of_arm = units.iter().zip(&columns).filter(|(i, _)| cohort.arm(**i as usize) == arm);
            Baseline::of(
                grid,
                of_arm.map(|(&i, row)| {
                    let i = i as usize;
                    (cohort.time(i), cohort.event(i), 1.0, libm::exp(score(b, row, arm).clamp(-8.0, 8.0)))
                }),
            )
        })
    };
    let mut full = vec![0.0; width];
    for _ in 0..STEPS {
        let base = baselines(&b);
        (b[0], b[1]) = (0.0, 0.0);
        let mut gradient = vec![0.0; width];
        let mut information = vec![0.0; width * width];
        for (&i, row) in units.iter().zip(&columns) {
            let i = i as usize;
            let arm = cohort.arm(i);
            let expected = base[arm].until(grid, cohort.time(i)) * libm::exp(score(&b, row, arm).clamp(-8.0, 8.0));
            let g = f64::from(u8::from(cohort.event(i))) - expected;
            full[..2].fill(0.0);
            full[arm.index()] = 1.0;
            for (j, x) in row.iter().enumerate() {
                full[2 + j] = *x;
                full[2 + k + j] = half(arm) * x;
            }
            for j in 0..width {
                gradient[j] += g * full[j];
                let hx = expected * full[j];
                information[j * width..j * width + j + 1].iter_mut().zip(&full).for_each(|(a, x)| *a += hx * x);
            }
        }
        (0..width).for_each(|j| gradient[j] -= precision[j] * b[j]);
        let a = DMatrix::from_fn(width, width, |i, j| {
            information[i.max(j) * width + i.min(j)] + if i == j { precision[i] } else { 0.0 }
        });
        let Some(factor) = a.cholesky() else { break };
        let step = factor.solve(&DVector::from_vec(gradient));
        let largest = step.iter().map(|s| s.abs()).fold(0.0, f64::max);
        let shorter = f64::min(1.0, 1.0 / largest.max(1e-300));
        b.iter_mut().zip(step.iter()).for_each(|(b, s)| *b += shorter * s);
        let variance = factor.inverse();
        for (kind, scale) in scale.iter_mut().enumerate() {
            let of = |j: usize| 2 + kind * k + j;
            let square = |j: usize| b[of(j)] * b[of(j)] + variance[(of(j), of(j))];
            let free: Vec<usize> = (0..k).filter(|&j| !intercepts[j]).collect();
            let weight = |j: usize| 2.0 / (1.0 + square(j) / *scale);
            let next = free.iter().map(|&j| weight(j) * square(j)).sum::<f64>() / free.len().max(1) as f64;
            let next = next.clamp(1e-4, 4.0);
            free.iter().for_each(|&j| precision[of(j)] = 2.0 / (1.0 + square(j) / next) / next);
            *scale = next;
        }
    }
    let base = baselines(&b);
    Hazard {
        slopes: ByArm::of(|arm| (0..k).map(|j| b[2 + j] + half(arm) * b[2 + k + j]).collect()),
        summed: ByArm::of(|arm| std::array::from_fn(|c| base[arm].until(grid, grid.times()[c + 1]).max(1e-12))),
        grid: *grid,
    }
}

/// What each of the shares that are tried loses in a unit against the cure model alone.
#[derive(Clone, Debug, Default)]
struct Losses {
    /// In what is said of its outcome.
    outcome: Vec<f64>,
    /// In what is said of its effect.
    effect: Vec<f64>,
}

/// Mean and standard error.
fn mean_and_se(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (n, sum, square) = values.fold((0.0, 0.0, 0.0), |(n, s, q), v| (n + 1.0, s + v, q + v * v));
    let mean = sum / f64::max(n, 1.0);
    let variance = (square / f64::max(n, 1.0) - mean * mean).max(0.0) / f64::max(n - 1.0, 1.0);
    (mean, variance.sqrt())
}

/// The candidate whose mean loss of outcomes, and [`CAUTION`] standard errors, are least below those of the first,
/// among those that lose nothing in effects beyond [`MOST_OF_EFFECT`] standard errors; from the units of other folds.
fn choose(folds: &[u8], leave: usize, losses: &[ByEstimand<Losses>], estimand: Estimand) -> usize {
    let n_candidates = losses.first().map_or(0, |l| l[estimand].outcome.len());
    let outside = || losses.iter().zip(folds).filter(|(_, f)| **f as usize != leave).map(|(l, _)| &l[estimand]);
    let mut best = (0, 0.0);
    for c in 1..n_candidates {
        let (mean, se) = mean_and_se(outside().map(|l| l.outcome[c]));
        let (of_effect, se_of_effect) = mean_and_se(outside().map(|l| l.effect[c]));
        let score = mean + CAUTION * se;
        if score < best.1 && of_effect <= MOST_OF_EFFECT * se_of_effect {
            best = (c, score);
        }
    }
    best.0
}

/// Loss of a unit in its own arm: see `tune`. The cure part by the likelihood of being event-free, the time part by the
/// deviance of a gamma law.
fn loss(setting: &Setting<'_>, predictor: &Predictor, p: &Prediction, estimand: Estimand, i: usize, value: f64) -> f64 {
    let (time, event) = (setting.cohort.time(i), setting.cohort.event(i));
    match estimand {
        Estimand::Cure if event => log1pexp(value),
        Estimand::Cure => {
            let s = expit(value);
            -libm::log((s + (1.0 - s) * (1.0 - predictor.event_share(p, time))).max(1e-300))
        }
        Estimand::Time if event => {
            let ratio = time.max(1e-9 * setting.cohort.horizon()) / libm::exp(value);
            (ratio - 1.0 - libm::log(ratio)) * setting.censoring[setting.cohort.arm(i)].inverse_before(time)
        }
        Estimand::Time => 0.0,
    }
}

/// The shares that are tried; the first is the usual.
pub(super) fn shares_to_try(learners: Learners) -> Vec<Shares> {
    let all = |hazards: usize, boosted: usize| {
        let share = |parts: usize| parts as f64 / PARTS as f64;
        Shares { hazards: share(hazards), boosted: share(boosted) }
    };
    match learners {
        Learners::All => (0..=PARTS).flat_map(|h| (0..=PARTS - h).map(move |b| all(h, b))).collect(),
        Learners::Cure => vec![Shares::default()],
        Learners::Hazards => vec![all(PARTS, 0)],
        Learners::Boosted => vec![all(0, PARTS)],
    }
}

/// Leaves out of what is tried the learners that have no share in any fold of a deal: one that was useless there costs
/// no more time in the deals that follow.
pub(super) fn without_the_useless(tried: &mut Vec<Shares>, of_folds: &[&Beside]) {
    let used = |of: fn(&Shares) -> f64| of_folds.iter().any(|b| b.share.iter().any(|s| of(s) > 0.0));
    let (hazards, boosted) = (used(|s| s.hazards), used(|s| s.boosted));
    tried.retain(|s| (hazards || s.hazards == 0.0) && (boosted || s.boosted == 0.0));
}

/// What all shares lose in a unit. `said` are the values of the cure model, of proportional hazards and of boosted
/// hazards in each arm, `treated` its propensity.
///
/// The loss of an effect: where `τ` is what the cure model says and `r` what the outcome says beyond it in the unit's
/// own arm, `(τ_c − τ)² − 2 (τ_c − τ) (Z − e)/(e (1 − e)) r` has the mean of what the squared error of `τ_c` is above
/// that of `τ`.
fn of_unit(
    setting: &Setting<'_>,
    predictor: &Predictor,
    own: &ByArm<Prediction>,
    said: &ByArm<[ByEstimand<f64>; 3]>,
    candidates: &[Shares],
    treated: f64,
    i: usize,
) -> ByEstimand<Losses> {
    let (cohort, e) = (setting.cohort, treated.clamp(BOUND, 1.0 - BOUND));
    let (arm, time, event) = (cohort.arm(i), cohort.time(i), cohort.event(i));
    let p = &own[arm];
    let sign = if arm == Arm::Treated { 1.0 / e } else { -1.0 / (1.0 - e) };
    ByEstimand::of(|estimand| {
        let mixed = |arm: Arm, c: &Shares| {
            let [own, hazards, boosted] = said[arm].map(|v| v[estimand]);
            own + c.hazards * (hazards - own) + c.boosted * (boosted - own)
        };
        let scale = |value: f64| match estimand {
            Estimand::Cure => expit(value),
            Estimand::Time => libm::exp(value),
        };
        let effect = |c: &Shares| scale(mixed(Arm::Treated, c)) - scale(mixed(Arm::Control, c));
        // What the outcome says beyond the cure model. Who is lost is as the model says.
        let beyond = match estimand {
            Estimand::Cure if event => -p.cure_probability,
            Estimand::Cure => {
                let s = p.cure_probability;
                s / (s + (1.0 - s) * (1.0 - predictor.event_share(p, time))).max(1e-300) - s
            }
            Estimand::Time if event => {
                let watched = setting.censoring[arm].inverse_before(time);
                watched * (time - p.mean_event_time) / (1.0 - p.cure_probability).max(2.0 * BOUND)
            }
            Estimand::Time => 0.0,
        };
        let none = Shares::default();
        let (usual, of_usual) = (effect(&none), loss(setting, predictor, p, estimand, i, mixed(arm, &none)));
        let outcome = |c: &Shares| loss(setting, predictor, p, estimand, i, mixed(arm, c)) - of_usual;
        let of_effect = |c: &Shares| {
            let moved = effect(c) - usual;
            moved * moved - 2.0 * moved * sign * beyond
        };
        Losses { outcome: candidates.iter().map(outcome).collect(), effect: candidates.iter().map(of_effect).collect() }
    })
}

/// Puts beside each model of a deal what it gains by.
/// `treatment` says who is treated, where it takes more than a linear model.
pub(super) fn complete(
    setting: &Setting<'_>,
    rows: &Rows<'_>,
    treatment: Option<&Propensity>,
    models: Vec<FoldModel>,
) -> Vec<FoldModel> {
    let cohort = setting.cohort;
    let training =
        |fold: usize| TrainingSet::sampled_outside(cohort, &setting.learned_from, &setting.fold_of, fold as u8);
    let candidates = &setting.shares;
    let grid = &setting.ground.grid;
    let share_treated = cohort.units_of(Arm::Treated).len() as f64 / cohort.n_units() as f64;
    let ask = |of: fn(&Shares) -> f64| candidates.iter().any(|c| of(c) > 0.0);
    let hazards: Option<Vec<Hazard>> = ask(|c| c.hazards).then(|| {
        let fit = |(fold, m): (usize, &FoldModel)| fit_hazard(&training(fold), rows, &m.predictor, grid);
        models.par_iter().enumerate().map(fit).collect()
    });
    let boosted: Option<Vec<Boosted>> = ask(|c| c.boosted).then(|| {
        let periods = Periods::of(cohort, rows, &setting.learned_from, grid);
        (0..models.len()).into_par_iter().map(|fold| periods.learn(training(fold).units())).collect()
    });
    let sample = setting.sample(setting.seed ^ 0x7374_6163, setting.options.tuning_units);
    let folds: Vec<u8> = sample.iter().map(|&i| setting.fold_of[i as usize]).collect();
    let losses: Vec<ByEstimand<Losses>> = sample
        .par_iter()
        .zip(&folds)
        .map(|(&i, &fold)| {
            let (i, fold) = (i as usize, fold as usize);
            let predictor = &models[fold].predictor;
            let row = predictor.design(rows.row(i));
            let own = predictor.predict(rows.row(i));
            let said = ByArm::of(|arm| {
                let own = predictor.values(&own[arm]);
                let hazard = hazards.as_ref().map_or(own, |h| h[fold].values(&row, arm));
                let trees = boosted.as_ref().map_or(own, |b| b[fold].values(rows.row(i), arm));
                [own, hazard, trees]
            });
            let treated = treatment.map_or(share_treated, |t| t.of_unit[i]);
            of_unit(setting, predictor, &own, &said, candidates, treated, i)
        })
        .collect();
    let put = |(fold, model): (usize, FoldModel)| {
        let share = ByEstimand::of(|e| candidates[choose(&folds, fold, &losses, e)]);
        let has = |of: fn(&Shares) -> f64| share.iter().any(|s| of(s) > 0.0);
        let hazard = hazards.as_ref().filter(|_| has(|s| s.hazards)).map(|h| h[fold].clone());
        let boosted = boosted.as_ref().filter(|_| has(|s| s.boosted)).map(|b| b[fold].clone());
        let beside = Beside { hazard, boosted, share, ..Beside::default() };
        FoldModel { predictor: model.predictor.map(|p: Predictor| Predictor { beside, ..p }), ..model }
    };
    let models: Vec<FoldModel> = models.into_iter().enumerate().map(put).collect();
    let Some(treatment) = treatment else { return models };
    let told: Vec<Prediction> = (sample.par_iter().zip(&folds))
        .map(|(&i, &fold)| models[fold as usize].predictor.expect(cohort.arm(i as usize), rows.row(i as usize)))
        .collect();
    let told = Told { setting, models: &models, sample: &sample, folds: &folds, told: &told };
    let level = |fold: usize| ByEstimand::of(|e| ByArm::of(|arm| told.level(fold, e, arm, treatment)));
    let levels: Vec<_> = (0..models.len()).into_par_iter().map(level).collect();
    let put = |(model, level): (FoldModel, ByEstimand<ByArm<f64>>)| {
        let put = |p: Predictor| Predictor { beside: Beside { level, ..p.beside }, ..p };
        FoldModel { predictor: model.predictor.map(put), ..model }
    };
    models.into_iter().zip(levels).map(put).collect()
}

/// What models say of units that they did not see, each in its own arm.
struct Told<'a> {
    setting: &'a Setting<'a>,
    models: &'a [FoldModel],
    sample: &'a [u32],
    /// Of each unit of the sample.
    folds: &'a [u8],
    told: &'a [Prediction],
}

impl Told<'_> {
    /// The places in the sample of the units outside a fold.
    fn outside(&self, fold: usize) -> impl Iterator<Item = usize> + Clone {
        (0..self.sample.len()).filter(move |&s| self.folds[s] as usize != fold)
    }

    /// Loss of a unit when so much is added to the cure logit or to the log of the mean event time.
    fn loss(&self, s: usize, estimand: Estimand, added: f64) -> f64 {
        let (predictor, p) = (&self.models[self.folds[s] as usize].predictor, &self.told[s]);
        let value = match estimand {
            Estimand::Cure => p.cure_logit,
            Estimand::Time => libm::log(p.mean_event_time.max(1e-9 * self.setting.cohort.horizon())),
        };
        loss(self.setting, predictor, p, estimand, self.sample[s] as usize, value + added)
    }

    /// What is to be added in an arm so that its units outside a fold are met on average when each counts by the
    /// inverse of its propensity.
    fn level(&self, fold: usize, estimand: Estimand, arm: Arm, treatment: &Propensity) -> f64 {
        let there: Vec<(usize, f64)> = self
            .outside(fold)
            .filter(|&s| self.setting.cohort.arm(self.sample[s] as usize) == arm)
            .map(|s| {
                let treated = treatment.of_unit[self.sample[s] as usize].clamp(0.02, 0.98);
                (s, 1.0 / if arm == Arm::Treated { treated } else { 1.0 - treated })
            })
            .collect();
        let total = |added: f64| there.iter().map(|&(s, w)| w * self.loss(s, estimand, added)).sum::<f64>();
        // Golden section: the loss has one valley.
        let ratio = 0.5 * (5f64.sqrt() - 1.0);
        let (mut low, mut high) = (-FURTHEST, FURTHEST);
        let (mut a, mut b) = (high - ratio * (high - low), low + ratio * (high - low));
        let (mut at_a, mut at_b) = (total(a), total(b));
        for _ in 0..30 {
            if at_a <= at_b {
                (high, b, at_b) = (b, a, at_a);
                a = high - ratio * (high - low);
                at_a = total(a);
            } else {
                (low, a, at_a) = (a, b, at_b);
                b = low + ratio * (high - low);
                at_b = total(b);
            }
        }
        let found = 0.5 * (low + high);
        if found.is_finite() && !there.is_empty() { found } else { 0.0 }
    }
}
