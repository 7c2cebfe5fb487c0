//! Cross-fitting: folds with correctors, each learned from the units outside it.
//!
//! 1. *Splits.* Units are dealt into folds by the hash of their ids; each fold is left out by one honest split, whose
//!    training units are the others. A unit is estimated with the model of the split that left it out: its own outcome
//!    trains no coefficient, metric, group or correction that is used for it. More splits than one deal holds are dealt
//!    anew, and an estimate is the mean over the deals.
//! 2. *Model.* A two-arm mixture cure model ([`crate::joint`]) on the other folds: slopes that are common to the arms
//!    plus slopes of each arm, shrunk by an empirical-Bayes prior.
//! 3. *Groups.* The K nearest units of each arm under a metric from that model, the unit itself left out; Kaplan–Meier
//!    in the group gives S_G(H) and CMET m_G.
//! 4. *Correction* of what the groups give by what the model knows ([`crate::correction`]).
//! 5. *K and w* by a cross-validated, censoring-weighted loss of the corrected curve in its own arm, for each estimand
//!    and fold, from units of the other folds.
//!
//! Derivations and evidence: docs/methods/adjusted.md and docs/accuracy.md.

mod periods;
mod setting;
mod stack;
mod tune;

pub use crate::split::deal_folds;
pub(crate) use setting::Standardised;
pub(crate) use tune::KEPT_COORDINATES;

use crate::arm::{Arm, ByArm};
use crate::beside::Beside;
use crate::constraint::Unserved;
use crate::correction::{Corrector, FoldModel, Offset, Opinion, Weighed, add_leftover, correct, pooled};
use crate::curve::CELLS;
use crate::effect::{Corrected, Effect, Four, all_four};
use crate::error::Error;
use crate::estimand::{ByEstimand, Estimand};
use crate::fold::{Choice, CrossFit, Deal, DealValues, Fold, PathPoint, SplitAverage};
use crate::ground::{Block, Ground, Placed, Ready};
use crate::joint::{Family, JointOptions, Penalty, Prediction, Terms};
use crate::martingale::{Entries, Residual};
use crate::metric::{Metric, Scaling};
use crate::nuisance::{Loss, Propensity, Rows};
use crate::options::{AdjustedOptions, Learners};
use crate::search::{Found, Queries};
use crate::split::TrainingSet;
use crate::watch::Watch;
use rayon::prelude::*;
use setting::{Setting, seed_of_deal};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tune::Tuned;

/// What was made of each unit of a cohort.
pub(crate) struct Estimates {
    /// Of each unit; [`Effect::NOTHING`] of those that have no groups.
    pub(crate) effects: Vec<Effect>,
    /// These, ascending, and why.
    pub(crate) unserved: Vec<(u32, Unserved)>,
}

/// Everything that cross-fitting learned, and what it made of every unit.
pub(crate) struct CrossFitted {
    pub(crate) deals: Vec<Deal>,
    pub(crate) residuals: Vec<Residual>,
    pub(crate) told: CrossFit,
    pub(crate) effects: Estimates,
}

/// What a model says that was learned from the units outside a fold.
struct Learned {
    model: FoldModel,
    metrics: Four<Metric>,
    /// What its certificate flags, in words.
    warnings: Vec<String>,
}

/// Learns the folds and estimates every unit of a cohort. `scaling` standardises; the seed deals the folds.
pub(crate) fn learn(
    ground: Ground<'_>,
    scaling: &Scaling,
    options: &AdjustedOptions,
    seed: u64,
    watch: &dyn Watch,
) -> Result<CrossFitted, Error> {
    let setting = Setting::new(ground, scaling, options, seed);
    // The covariates outlive the deals, which change the setting.
    let x = setting.x.values.clone();
    let mut setting = setting;
    let rows = Rows::new(&x, setting.cohort.n_covariates());
    watch.step("who is treated, who is lost", 0, 1)?;
    // Of units that enter late or may have another event, the arm's own censoring is used.
    let is_plain = setting.cohort.extras().entry.is_none() && setting.cohort.extras().competing.is_none();
    setting.loss = is_plain.then(|| Loss::of(setting.cohort, &rows, &setting.ground.grid));
    let beside = setting.pieces.is_none() && options.learners != Learners::Cure && setting.cohort.n_covariates() > 0;
    let treatment = beside.then(|| Propensity::of(setting.cohort, &rows)).filter(|p| p.is_flexible);
    let beside = beside.then_some((&rows, treatment.as_ref()));
    let terms = Terms::new(&setting.x.values, setting.cohort.n_covariates());
    watch.step("choosing the latency", 0, 1)?;
    let families = match options.family {
        Some(_) => Vec::new(),
        None => setting.compare_families(&terms)?,
    };
    let best = families.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(family, _)| family);
    let family = match options.family {
        Some(Family::GeneralisedGamma(0)) => Family::GeneralisedGamma(setting.gamma_shape()?.hundredths),
        named => named.or(best).unwrap_or(Family::LogNormal),
    };
    let strengths = match options.elastic_net {
        Some(mixing) => Some(setting.choose_strengths(&terms, family, mixing)?),
        None => None,
    };
    let penalty = options.elastic_net.zip(strengths);
    let penalty = penalty.map_or(Penalty::Learned, |(mixing, strengths)| Penalty::ElasticNet { mixing, strengths });
    let joint_options = JointOptions { family, penalty, groups: setting.covariate_groups(), ..JointOptions::default() };

    let first = deal(&setting, &terms, &joint_options, beside, watch)?;
    let (mut deals, path, mut effects, mut residuals) = (vec![first.deal], first.path, first.effects, first.residuals);
    let mut averages = split_averages(&setting, 0, &effects);
    let sizes = options.deals();
    if sizes.len() > 1 {
        let corrected =
            |effects: &Estimates| -> Vec<Option<Corrected>> { effects.effects.iter().map(|e| e.corrected).collect() };
        deals[0].values = deal_values(&effects, &residuals);
        let of_folds = deals[0].folds.iter().filter_map(|f| f.corrector.as_ref());
        let of_folds: Vec<&Beside> = of_folds.map(|c| &c.model.predictor.beside).collect();
        stack::without_the_useless(&mut setting.shares, &of_folds);
        let mut of_deals = vec![corrected(&effects)];
        let mut of_residuals: Vec<Vec<Residual>> = Vec::new();
        for (d, &folds) in sizes.iter().enumerate().skip(1) {
            setting.deal(folds, seed_of_deal(seed, d));
            let again = deal(&setting, &terms, &joint_options, beside, watch)?;
            of_deals.push(corrected(&again.effects));
            averages.extend(split_averages(&setting, d, &again.effects));
            deals.push(Deal { values: deal_values(&again.effects, &again.residuals), ..again.deal });
            of_residuals.push(again.residuals);
        }
        for (i, residual) in residuals.iter_mut().enumerate() {
            let all: Vec<Residual> = std::iter::once(*residual).chain(of_residuals.iter().map(|r| r[i])).collect();
            *residual = Residual::mean(&all);
        }
        for (i, effect) in effects.effects.iter_mut().enumerate().filter(|(_, e)| e.corrected.is_some()) {
            // Which units have groups does not depend on the deal.
            let all: Vec<Corrected> = of_deals.iter().filter_map(|s| s[i]).collect();
            effect.corrected = Some(pooled(&all, &setting.ground.grid));
        }
    }
    let told = CrossFit { family, families, strengths, path, averages };
    Ok(CrossFitted { deals, residuals, told, effects })
}

fn deal_values(effects: &Estimates, residuals: &[Residual]) -> Vec<DealValues> {
    let of = |(effect, residual): (&Effect, &Residual)| {
        let corrected = effect.corrected;
        let nothing = ByArm::of(|_| f64::NAN);
        DealValues {
            cure_probability: corrected.map_or(nothing, |c| c.cure_probability),
            mean_event_time: corrected.map_or(nothing, |c| c.mean_event_time),
            // What is told of deals is told of the two effects.
            residual: Residual { survival: Residual::default().survival, ..*residual },
        }
    };
    effects.effects.iter().zip(residuals).map(of).collect()
}

/// The averages of each split of a deal.
fn split_averages(setting: &Setting<'_>, deal: usize, effects: &Estimates) -> Vec<SplitAverage> {
    let of = |fold: usize| {
        let there: Vec<(&Effect, f64)> = (effects.effects.iter().zip(&setting.fold_of).enumerate())
            .filter(|(_, (e, f))| **f as usize == fold && e.corrected.is_some())
            .map(|(i, (e, _))| (e, setting.cohort.weight(i)))
            .collect();
        let value = |e: &Effect, estimand: Estimand| e.of(estimand).unwrap_or(f64::NAN);
        let n = there.len() as f64;
        let total: f64 = there.iter().map(|(_, w)| w).sum();
        let mean = ByEstimand::of(|estimand| there.iter().map(|(e, w)| w * value(e, estimand)).sum::<f64>() / total);
        let sd = ByEstimand::of(|estimand| {
            let off = |e: &Effect| value(e, estimand) - mean[estimand];
            let square = there.iter().map(|(e, w)| w * (off(e) * off(e))).sum::<f64>() * (n / total);
            (square / (n - 1.0).max(0.0)).sqrt()
        });
        SplitAverage { deal, n_units: there.len(), mean, sd }
    };
    (0..setting.folds).map(of).collect()
}

/// What the models say: of each unit that of the fold which left it out, and of each pool, in its order of time, that
/// of every fold.
struct Predictions {
    of_unit: Vec<ByArm<Prediction>>,
    of_pool: Vec<ByArm<Weighed>>,
}

impl Predictions {
    fn new(setting: &Setting<'_>, learned: &[Learned]) -> Predictions {
        let of_unit = (0..setting.cohort.n_units())
            .into_par_iter()
            .with_min_len(256)
            .map(|i| learned[setting.fold_of[i] as usize].model.predictor.predict(setting.x.row(i)))
            .collect();
        let of_pool = |learned: &Learned| {
            let expected = setting.x.expected(&setting.ground, &learned.model);
            ByArm::of(|arm| Weighed::by_time(&setting.ground.pools[arm], &expected[arm]))
        };
        Predictions { of_unit, of_pool: learned.par_iter().map(of_pool).collect() }
    }
}

/// How the arms are watched where units enter late, by what the models that left each unit out say of it.
fn entries(setting: &Setting<'_>, learned: &[Learned], predictions: &Predictions) -> Option<ByArm<Entries>> {
    let (cohort, grid) = (setting.cohort, &setting.ground.grid);
    cohort.extras().entry.as_ref()?;
    let table = learned[0].model.shares();
    Some(ByArm::of(|arm| {
        let of = |&i: &u32| {
            let i = i as usize;
            let model = &learned[setting.fold_of[i] as usize].model;
            let expected = model.expected(&table, &predictions.of_unit[i][arm], 1.0, grid);
            let mut without_event = [1.0; CELLS + 1];
            without_event[1..].iter_mut().zip(expected.shares).for_each(|(s, share)| *s = 1.0 - f64::from(share));
            (cohort.outcome(i), without_event)
        };
        let units: Vec<_> = cohort.units_of(arm).par_iter().with_min_len(256).map(of).collect();
        Entries::of(&units, grid, setting.options.smallest_censoring_survival)
    }))
}

/// Units of a cohort beyond which its folds are matched one after the other.
pub(crate) const UNITS_AT_ONCE: usize = 100_000;

/// What one deal gives.
struct Once {
    deal: Deal,
    path: Vec<PathPoint>,
    effects: Estimates,
    residuals: Vec<Residual>,
}

/// Learns and estimates one deal: each of its splits leaves out a fold of the setting.
fn deal(
    setting: &Setting<'_>,
    terms: &Terms,
    joint_options: &JointOptions,
    beside: Option<(&Rows<'_>, Option<&Propensity>)>,
    watch: &dyn Watch,
) -> Result<Once, Error> {
    let (cohort, options) = (setting.cohort, setting.options);
    watch.step("fitting the folds", 0, setting.folds)?;
    let kappa = 4.0 * f64::max(1.0, setting.effective_size() / options.units_for_certainty);
    let learn = |fold: usize| {
        let training = TrainingSet::sampled_outside(cohort, &setting.learned_from, &setting.fold_of, fold as u8);
        let model = setting.fit(&training, terms, joint_options)?;
        let metrics = setting.metrics(&model);
        let warnings = model.certificate.flags.iter().map(ToString::to_string).collect();
        let covariance = model.certainty(Some(kappa)).covariance();
        Ok(Learned { model: FoldModel { predictor: model.map(|m| m.predictor), covariance }, metrics, warnings })
    };
    let mut learned: Vec<Learned> = (0..setting.folds).into_par_iter().map(learn).collect::<Result<_, Error>>()?;
    if let Some((rows, treatment)) = beside {
        watch.step("weighing the learners", 0, 1)?;
        let models = learned.iter().map(|l| l.model.clone()).collect();
        let models = stack::complete(setting, rows, treatment, models);
        learned.iter_mut().zip(models).for_each(|(l, model)| l.model = model);
    }
    let predictions = Predictions::new(setting, &learned);
    let entries = entries(setting, &learned, &predictions);
    let sizes = setting.group_sizes();
    let tuned = tune::choose(setting, &learned, &predictions, &sizes, watch)?;
    let folds: Vec<Fold> = (learned.iter().zip(&tuned.choices))
        .map(|(learned, choice)| Fold {
            metrics: learned.metrics.clone(),
            group_size: choice.map(|c| c.group_size),
            corrector: None,
            warnings: learned.warnings.clone(),
        })
        .collect();

    let done = AtomicUsize::new(0);
    let matched = |number: usize| {
        watch.step("matching", done.load(Relaxed), setting.folds)?;
        let (fold, model) = (&folds[number], &learned[number].model);
        let fold = Matching { setting, number, fold, model, entries: entries.as_ref() };
        let matched = fold.estimate(&predictions, &sizes, &tuned);
        done.fetch_add(1, Relaxed);
        Ok(matched)
    };
    let mut effects = Estimates { effects: vec![Effect::NOTHING; cohort.n_units()], unserved: Vec::new() };
    let mut residuals = vec![Residual::default(); cohort.n_units()];
    let (mut leftover, mut served): (Four<f64>, usize) = Default::default();
    // Folds that are large have work for all threads, and what they give should not wait in memory for the others.
    let at_once = if cohort.n_units() > UNITS_AT_ONCE { 1 } else { setting.folds };
    for numbers in (0..setting.folds).collect::<Vec<_>>().chunks(at_once) {
        let some: Vec<Matched> = numbers.par_iter().map(|&n| matched(n)).collect::<Result<_, Error>>()?;
        for fold in some {
            for (estimand, arm) in all_four() {
                leftover[estimand][arm] += fold.leftover[estimand][arm];
            }
            served += fold.units.len() - fold.unserved.len();
            for ((&i, effect), residual) in fold.units.iter().zip(fold.effects).zip(fold.residuals) {
                effects.effects[i as usize] = effect;
                residuals[i as usize] = residual;
            }
            for (q, why) in fold.unserved {
                let i = fold.units[q];
                effects.effects[i as usize] = Effect::NOTHING;
                effects.unserved.push((i, why));
            }
        }
    }
    effects.unserved.sort_by_key(|(i, _)| *i);
    let leftover = leftover.map(|of| of.map(|sum| (sum / f64::max(served as f64, 1.0)).max(0.0)));
    let leftover = ByEstimand::of(|estimand| {
        ByArm::of(|arm| {
            let left = |c: &ByEstimand<Choice>| (1.0 - c[estimand].weight).powi(2);
            let corrected = tuned.choices.iter().map(left).sum::<f64>() / tuned.choices.len() as f64;
            let (seen, finest) = (leftover[estimand][arm], tuned.finest[estimand][arm]);
            corrected * seen + (finest - seen).max(0.0)
        })
    });
    effects.effects.iter_mut().filter_map(|e| e.corrected.as_mut()).for_each(|c| add_leftover(c, &leftover));
    watch.step("matching", setting.folds, setting.folds)?;
    let Tuned { choices, path, .. } = tuned;
    let with_corrector = |((fold, learned), choice): ((Fold, Learned), ByEstimand<Choice>)| {
        let corrector = Corrector { weight: choice.map(|c| c.weight), leftover, model: learned.model };
        Fold { corrector: Some(corrector), ..fold }
    };
    let folds = folds.into_iter().zip(learned).zip(choices).map(with_corrector).collect();
    let deal = Deal { fold_of: setting.fold_of.clone(), folds, values: Vec::new() };
    Ok(Once { deal, path, effects, residuals })
}

/// A fold whose units are to be matched.
struct Matching<'a> {
    setting: &'a Setting<'a>,
    number: usize,
    fold: &'a Fold,
    model: &'a FoldModel,
    entries: Option<&'a ByArm<Entries>>,
}

/// What was made of the units of a fold.
struct Matched {
    units: Vec<u32>,
    effects: Vec<Effect>,
    residuals: Vec<Residual>,
    /// Those without groups, by their places among the units.
    unserved: Vec<(usize, Unserved)>,
    /// Sums of what the squared offsets are beyond their variances.
    leftover: Four<f64>,
}

impl Matching<'_> {
    /// Finds the groups of the fold's units and corrects what they say. `tuned` has groups that are known already, at
    /// each of the sizes, and searches that are ready.
    fn estimate(&self, predictions: &Predictions, sizes: &[usize], tuned: &Tuned<'_>) -> Matched {
        let Matching { setting, number, fold, model, entries } = *self;
        let (cohort, ground) = (setting.cohort, &setting.ground);
        let weight = tuned.choices[number].map(|c| c.weight);
        let is_here = |i: &u32| setting.fold_of[*i as usize] as usize == number;
        let units: Vec<u32> = (0..cohort.n_units() as u32).filter(is_here).collect();
        let rows = cohort.rows_of(&units);
        let own: Vec<Option<u32>> = units.iter().copied().map(Some).collect();
        let block = Block {
            queries: Queries { covariates: &rows, own: &own },
            placed: fold.metrics.each_ref().map(|of_arms| Placed::new(of_arms, &rows)),
            nearest: false,
        };
        let mut effects = vec![Effect::NOTHING; units.len()];
        let expected = &predictions.of_pool[number];
        let note = |estimand: Estimand, arm: Arm, offset: &mut Offset, found: &Found<'_>| {
            let seen = || ground.pools[arm].event_shares(found.ranks, found.shares, &ground.grid);
            let members = (found.ranks, found.shares);
            *offset = Offset::of(estimand, &found.estimate, &expected[arm], members, seen);
        };
        let search = |estimand: Estimand, arm: Arm| match tuned.search(number, estimand, arm) {
            Some(search) => Ready::AtHand(search),
            None => Ready::Made(ground.search(&fold.metrics[estimand][arm], arm)),
        };
        let size = fold.group_size.map(|k| sizes.iter().position(|&s| s == k));
        let known = |estimand: Estimand, arm: Arm, q: usize| {
            let i = units[q] as usize;
            let tried = size[estimand].filter(|_| cohort.arm(i) == arm)?;
            tuned.known(estimand, i, tried)
        };
        let start = |_: Estimand, _: Arm| Offset::default();
        let filled = ground.fill(fold, &block, &mut effects, search, start, note, Some(&known));
        let offsets = &filled.noted;
        let mut is_served = vec![true; units.len()];
        filled.unserved.iter().for_each(|(q, _)| is_served[*q] = false);
        let offsets_of = |q: usize| offsets.each_ref().map(|of_arms| of_arms.each_ref().map(|all| all[q]));
        let leftover = offsets.each_ref().map(|of_arms| {
            of_arms.each_ref().map(|all| {
                let there = all.iter().zip(&is_served).filter(|(_, is)| **is);
                there.map(|(o, _)| o.value * o.value - o.variance).sum::<f64>()
            })
        });
        let spreads = model.spreads(&setting.x.rows(&units));
        let finish = |(q, effect): (usize, &mut Effect)| {
            let i = units[q] as usize;
            let opinion = Opinion { predicted: predictions.of_unit[i], spreads: spreads[q] };
            let corrected = correct(&model.predictor, &opinion, &offsets_of(q), &weight, &ground.grid);
            effect.corrected = Some(corrected);
            if !is_served[q] {
                return Residual::default();
            }
            // What the outcome says beyond the corrected curve, in the unit's own arm.
            let arm = cohort.arm(i);
            let (cured, shares) = (corrected.cure_probability[arm], corrected.shape[arm].shares());
            let (outcome, everybody) = (cohort.outcome(i), &setting.everybody);
            match entries {
                None => {
                    let loss = setting.loss.as_ref().and_then(|l| l.of_unit(i, arm));
                    setting.censoring[arm].residual_of(everybody, loss, cured, &shares, &outcome)
                }
                Some(entries) => {
                    let chance = entries[arm].chance(&shares.map(|share| 1.0 - (1.0 - cured) * share));
                    entries[arm].censoring.residual_of(everybody, None, cured, &shares, &outcome).times(chance)
                }
            }
        };
        let residuals = effects.par_iter_mut().enumerate().with_min_len(64).map(finish).collect();
        Matched { units, effects, residuals, unserved: filled.unserved, leftover }
    }
}
