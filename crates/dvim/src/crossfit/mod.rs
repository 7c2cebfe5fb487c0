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
//! Derivations and evidence: docs/methods.md, "The adjusted estimator", and docs/accuracy.md.

mod setting;
mod tune;

pub(crate) use setting::Standardised;
pub use setting::deal_folds;
pub(crate) use tune::KEPT_COORDINATES;

use crate::arm::{Arm, ByArm};
use crate::constraint::Unserved;
use crate::correction::{Corrector, Expected, FoldModel, Offset, Opinion, add_leftover, by_time, correct, pooled};
use crate::curve::CELLS;
use crate::effect::{Corrected, Effect, Four, all_four};
use crate::error::Error;
use crate::estimand::{ByEstimand, Estimand};
use crate::fold::{Choice, CrossFit, Deal, DealValues, Fold, PathPoint, SplitAverage};
use crate::ground::{Block, Ground, Placed, Ready};
use crate::joint::{Family, JointOptions, Penalty, Prediction, Terms};
use crate::martingale::{Entries, Residual};
use crate::metric::{Metric, Scaling};
use crate::options::AdjustedOptions;
use crate::search::{Found, Queries};
use crate::split::TrainingSet;
use crate::watch::Watch;
use rayon::prelude::*;
use setting::{Setting, seed_of_deal};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tune::Tuned;

/// What was made of each unit of a cohort, or why nothing was.
pub(crate) type Estimates = Vec<Result<Effect, Unserved>>;

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
    let mut setting = Setting::new(ground, scaling, options, seed);
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

    let first = deal(&setting, &terms, &joint_options, watch)?;
    let (mut deals, path, mut effects, mut residuals) = (vec![first.deal], first.path, first.effects, first.residuals);
    let mut averages = split_averages(&setting, 0, &effects);
    let sizes = options.deals();
    if sizes.len() > 1 {
        let corrected = |effects: &Estimates| -> Vec<Option<Corrected>> {
            effects.iter().map(|e| e.as_ref().ok().and_then(|e| e.corrected)).collect()
        };
        deals[0].values = deal_values(&effects, &residuals);
        let mut of_deals = vec![corrected(&effects)];
        let mut of_residuals: Vec<Vec<Residual>> = Vec::new();
        for (d, &folds) in sizes.iter().enumerate().skip(1) {
            setting.deal(folds, seed_of_deal(seed, d));
            let again = deal(&setting, &terms, &joint_options, watch)?;
            of_deals.push(corrected(&again.effects));
            averages.extend(split_averages(&setting, d, &again.effects));
            deals.push(Deal { values: deal_values(&again.effects, &again.residuals), ..again.deal });
            of_residuals.push(again.residuals);
        }
        for (i, residual) in residuals.iter_mut().enumerate() {
            let all: Vec<Residual> = std::iter::once(*residual).chain(of_residuals.iter().map(|r| r[i])).collect();
            *residual = Residual::mean(&all);
        }
        for (i, effect) in effects.iter_mut().enumerate() {
            if let Ok(e) = effect {
                // Which units have groups does not depend on the deal.
                let all: Vec<Corrected> = of_deals.iter().filter_map(|s| s[i]).collect();
                e.corrected = Some(pooled(&all, &setting.ground.grid));
            }
        }
    }
    let told = CrossFit { family, families, strengths, path, averages };
    Ok(CrossFitted { deals, residuals, told, effects })
}

fn deal_values(effects: &Estimates, residuals: &[Residual]) -> Vec<DealValues> {
    let of = |(effect, residual): (&Result<Effect, Unserved>, &Residual)| {
        let corrected = effect.as_ref().ok().and_then(|e| e.corrected);
        let nothing = ByArm::of(|_| f64::NAN);
        DealValues {
            cure_probability: corrected.map_or(nothing, |c| c.cure_probability),
            mean_event_time: corrected.map_or(nothing, |c| c.mean_event_time),
            // What is told of deals is told of the two effects.
            residual: Residual { survival: Residual::default().survival, ..*residual },
        }
    };
    effects.iter().zip(residuals).map(of).collect()
}

/// The averages of each split of a deal.
fn split_averages(setting: &Setting<'_>, deal: usize, effects: &Estimates) -> Vec<SplitAverage> {
    let of = |fold: usize| {
        let there: Vec<(&Effect, f64)> = (effects.iter().zip(&setting.fold_of).enumerate())
            .filter(|(_, (_, f))| **f as usize == fold)
            .filter_map(|(i, (e, _))| Some((e.as_ref().ok()?, setting.cohort.weight(i))))
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
    of_pool: Vec<ByArm<Vec<Expected>>>,
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
            ByArm::of(|arm| by_time(&setting.ground.pools[arm], &expected[arm]))
        };
        Predictions { of_unit, of_pool: learned.par_iter().map(of_pool).collect() }
    }
}

/// How the arms are watched where units enter late, by what the models that left each unit out say of it.
fn entries(setting: &Setting<'_>, learned: &[Learned], predictions: &Predictions) -> Option<ByArm<Entries>> {
    let (cohort, grid) = (setting.cohort, &setting.ground.grid);
    cohort.extras().entry.as_ref()?;
    Some(ByArm::of(|arm| {
        let of = |&i: &u32| {
            let i = i as usize;
            let model = &learned[setting.fold_of[i] as usize].model;
            let expected = model.expected(&predictions.of_unit[i][arm], 1.0, grid);
            let mut without_event = [1.0; CELLS + 1];
            without_event[1..].iter_mut().zip(expected.shares).for_each(|(s, share)| *s = 1.0 - f64::from(share));
            (cohort.outcome(i), without_event)
        };
        let units: Vec<_> = setting.ground.pools[arm].units.par_iter().with_min_len(256).map(of).collect();
        Entries::of(&units, grid, setting.options.smallest_censoring_survival)
    }))
}

/// What one deal gives.
struct Once {
    deal: Deal,
    path: Vec<PathPoint>,
    effects: Estimates,
    residuals: Vec<Residual>,
}

/// Learns and estimates one deal: each of its splits leaves out a fold of the setting.
fn deal(setting: &Setting<'_>, terms: &Terms, joint_options: &JointOptions, watch: &dyn Watch) -> Result<Once, Error> {
    let (cohort, options) = (setting.cohort, setting.options);
    watch.step("fitting the folds", 0, setting.folds)?;
    let kappa = 4.0 * f64::max(1.0, setting.effective_size() / options.units_for_certainty);
    let learn = |fold: usize| {
        let training = TrainingSet::outside(cohort, &setting.fold_of, fold as u8);
        let model = setting.fit(&training, terms, joint_options)?;
        let metrics = setting.metrics(&model);
        let warnings = model.certificate.flags.iter().map(ToString::to_string).collect();
        let covariance = model.certainty(Some(kappa)).covariance();
        Ok(Learned { model: FoldModel { predictor: model.map(|m| m.predictor), covariance }, metrics, warnings })
    };
    let learned: Vec<Learned> = (0..setting.folds).into_par_iter().map(learn).collect::<Result<_, Error>>()?;
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
    let matched: Vec<Matched> = (0..setting.folds)
        .into_par_iter()
        .map(|number| {
            watch.step("matching", done.load(Relaxed), setting.folds)?;
            let (fold, model) = (&folds[number], &learned[number].model);
            let fold = Matching { setting, number, fold, model, entries: entries.as_ref() };
            let matched = fold.estimate(&predictions, &sizes, &tuned);
            done.fetch_add(1, Relaxed);
            Ok(matched)
        })
        .collect::<Result<_, Error>>()?;
    let mut effects: Vec<Option<Result<Effect, Unserved>>> = vec![None; cohort.n_units()];
    let mut residuals = vec![Residual::default(); cohort.n_units()];
    let (mut leftover, mut served): (Four<f64>, usize) = Default::default();
    for fold in matched {
        for (estimand, arm) in all_four() {
            leftover[estimand][arm] += fold.leftover[estimand][arm];
        }
        served += fold.effects.iter().flatten().count();
        for ((&i, effect), residual) in fold.units.iter().zip(fold.effects).zip(fold.residuals) {
            effects[i as usize] = Some(effect);
            residuals[i as usize] = residual;
        }
    }
    let leftover = leftover.map(|of| of.map(|sum| (sum / f64::max(served as f64, 1.0)).max(0.0)));
    let mut effects: Estimates = effects.into_iter().map(|e| e.expect("every unit is in a fold")).collect();
    for (effect, &fold) in effects.iter_mut().zip(&setting.fold_of) {
        if let Some(c) = effect.as_mut().ok().and_then(|e| e.corrected.as_mut()) {
            add_leftover(c, &tuned.choices[fold as usize].map(|c| c.weight), &leftover);
        }
    }
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
    effects: Estimates,
    residuals: Vec<Residual>,
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
            let members = found.members().map(|(r, count)| (&expected[arm][r as usize], count));
            let seen = || ground.pools[arm].event_shares(found.ranks, found.shares, &ground.grid);
            *offset = Offset::of(estimand, &found.estimate, members, seen);
        };
        let search = |estimand: Estimand, arm: Arm| match tuned.search(number, estimand, arm) {
            Some(search) => Ready::AtHand(search),
            None => Ready::Made(ground.search(&fold.metrics[estimand][arm], arm)),
        };
        let size = fold.group_size.map(|k| sizes.iter().position(|&s| s == k));
        let known = |estimand: Estimand, arm: Arm, q: usize| {
            let i = units[q] as usize;
            let tried = size[estimand].filter(|_| cohort.arm(i) == arm)?;
            tuned.known[estimand][i].get(tried).copied()
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
        let spreads = model.certainty().spreads(&setting.x.rows(&units));
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
                None => setting.censoring[arm].residual_of(everybody, cured, &shares, &outcome),
                Some(entries) => {
                    let chance = entries[arm].chance(&shares.map(|share| 1.0 - (1.0 - cured) * share));
                    entries[arm].censoring.residual_of(everybody, cured, &shares, &outcome).times(chance)
                }
            }
        };
        let residuals = effects.par_iter_mut().enumerate().with_min_len(64).map(finish).collect();
        let mut effects: Estimates = effects.into_iter().map(Ok).collect();
        filled.unserved.into_iter().for_each(|(q, why)| effects[q] = Err(why));
        Matched { units, effects, residuals, leftover }
    }
}
