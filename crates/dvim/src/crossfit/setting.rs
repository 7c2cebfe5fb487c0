//! What every fold of a deal shares, and how a model is learned from units outside a fold.

use super::stack::shares_to_try;
use crate::arm::{Arm, ByArm};
use crate::beside::Shares;
use crate::cohort::Cohort;
use crate::correction::{Expected, FoldModel};
use crate::effect::Four;
use crate::error::Error;
use crate::estimand::{ByEstimand, Estimand};
use crate::ground::Ground;
use crate::joint::{self, Family, GammaShape, JointModel, JointOptions, Penalty, Pieces, Terms};
use crate::martingale::Censoring;
use crate::metric::{Metric, Scaling};
use crate::nuisance::Loss;
use crate::options::{AdjustedOptions, FIRST_STRENGTH, STRENGTHS};
use crate::split::{Trained, TrainingSet, deal_folds, hash_id, hashed_sample};
use crate::survival::Watched;
use rayon::prelude::*;

/// The seed of a deal; the first has the run's own.
pub(super) fn seed_of_deal(seed: u64, deal: usize) -> u64 {
    if deal == 0 { seed } else { hash_id(seed, &format!("split {}", deal + 1)) }
}

/// Folds that a deal of so many can have: no more than clusters.
fn at_most_clusters(cohort: &Cohort, folds: usize) -> usize {
    let clusters = cohort.extras().cluster.as_ref().and_then(|c| c.iter().max()).map(|c| *c as usize + 1);
    clusters.map_or(folds, |n| folds.min(n))
}

fn not_fitted(error: joint::FitError) -> Error {
    Error::Model { arm: "joint", reason: error.to_string() }
}

/// The standardised covariates of a cohort, row-major.
pub(crate) struct Standardised {
    p: usize,
    pub(crate) values: Vec<f64>,
}

impl Standardised {
    /// Scales all covariates of a cohort.
    pub(crate) fn new(cohort: &Cohort, scaling: &Scaling) -> Standardised {
        Standardised { p: cohort.n_covariates(), values: scaling.apply(cohort.all_covariates()) }
    }

    /// The covariates of one unit.
    pub(crate) fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.p..(i + 1) * self.p]
    }

    /// The covariates of some units, row-major.
    pub(crate) fn rows(&self, units: &[u32]) -> Vec<f64> {
        units.iter().flat_map(|&i| self.row(i as usize)).copied().collect()
    }

    /// What a model expects of every unit of both pools, each in its own arm.
    pub(crate) fn expected(&self, ground: &Ground<'_>, model: &FoldModel) -> ByArm<Vec<Expected>> {
        let table = model.shares();
        ByArm::of(|arm| {
            let units = &ground.pools[arm].units;
            let predicted = model.predictor.expect_arm(arm, units.par_iter().map(|&i| self.row(i as usize)));
            let weigh = |i: &u32| ground.cohort.weight(*i as usize);
            let all = predicted.par_iter().zip(units).with_min_len(256);
            all.map(|(p, i)| model.expected(&table, p, weigh(i), &ground.grid)).collect()
        })
    }
}

/// The cohort with what every fold of a deal shares.
pub(super) struct Setting<'a> {
    pub(super) ground: Ground<'a>,
    pub(super) cohort: &'a Cohort,
    pub(super) x: Standardised,
    scaling: &'a Scaling,
    pub(super) options: &'a AdjustedOptions,
    pub(super) seed: u64,
    /// Folds of this deal.
    pub(super) folds: usize,
    pub(super) fold_of: Vec<u8>,
    /// The units that models learn from, ascending: those of them that are outside of a fold.
    pub(super) learned_from: Vec<u32>,
    /// The censoring curve of each arm, and that of an arm of which nobody is lost.
    pub(super) censoring: ByArm<Censoring>,
    pub(super) everybody: Censoring,
    /// Who is lost, given covariates.
    pub(super) loss: Option<Loss>,
    /// Outcomes that are more than a time and an event.
    pub(super) pieces: Option<Pieces>,
    /// The shares that are tried of what stands beside a cure model; the first is the usual.
    pub(super) shares: Vec<Shares>,
}

impl<'a> Setting<'a> {
    pub(super) fn new(
        ground: Ground<'a>,
        scaling: &'a Scaling,
        options: &'a AdjustedOptions,
        seed: u64,
    ) -> Setting<'a> {
        let cohort = ground.cohort;
        let x = Standardised::new(cohort, scaling);
        // Reaching H is not censoring: nobody is lost there.
        let watched = ByArm::of(|arm| Watched::of(&cohort.outcomes(&cohort.units_of(arm)), cohort.horizon()));
        let pieces = Pieces::of(cohort, &watched);
        let censoring = |watched: Watched| Censoring::of(watched, ground.grid, options.smallest_censoring_survival);
        let everybody = censoring(Watched::of_steps(Vec::new()));
        let censoring = watched.map(censoring);
        let folds = at_most_clusters(cohort, options.deals()[0]);
        let fold_of = deal_folds(cohort, folds, seed);
        let of_arm = |arm: Arm| hashed_sample(cohort, cohort.units_of(arm), seed ^ 0x6c65_6172, options.learning_units);
        let mut learned_from = Arm::BOTH.map(of_arm).concat();
        learned_from.sort_unstable();
        Setting {
            ground,
            cohort,
            x,
            scaling,
            options,
            seed,
            folds,
            fold_of,
            learned_from,
            censoring,
            everybody,
            loss: None,
            pieces,
            shares: shares_to_try(options.learners),
        }
    }

    /// At most so many units, by the hash of their ids.
    pub(super) fn sample(&self, key: u64, most: usize) -> Vec<u32> {
        hashed_sample(self.cohort, (0..self.cohort.n_units() as u32).collect(), key, most)
    }

    /// What is known of a unit, as pieces of a likelihood.
    pub(super) fn known(&self, i: usize, visit: impl Fn(f64, bool) -> f64) -> f64 {
        match &self.pieces {
            None => visit(self.cohort.time(i), self.cohort.event(i)),
            Some(pieces) => pieces.of_unit(i).iter().map(|p| p.weight * visit(p.time, p.event)).sum(),
        }
    }

    /// The number of units that count as much as those that models learn from.
    pub(super) fn effective_size(&self) -> f64 {
        self.learned_from.iter().map(|&i| self.weight(i as usize)).sum()
    }

    /// How much a unit counts: one on average, or less where weights differ.
    pub(super) fn weight(&self, i: usize) -> f64 {
        self.pieces.as_ref().map_or(1.0, |pieces| pieces.weight(i))
    }

    /// Deals anew.
    pub(super) fn deal(&mut self, folds: usize, seed: u64) {
        (self.seed, self.folds) = (seed, at_most_clusters(self.cohort, folds));
        self.fold_of = deal_folds(self.cohort, self.folds, seed);
    }

    fn row(&self, i: usize) -> &[f64] {
        self.x.row(i)
    }

    /// Fits the two-arm model to a training set.
    pub(super) fn fit(
        &self,
        training: &TrainingSet<'_>,
        terms: &Terms,
        options: &JointOptions,
    ) -> Result<Trained<JointModel>, Error> {
        joint::fit(training, &self.x.values, self.pieces.as_ref(), terms, options).map_err(not_fitted)
    }

    /// The shape that the generalised gamma family would have, on a sample of units.
    pub(super) fn gamma_shape(&self) -> Result<GammaShape, Error> {
        let sample = self.sample(self.seed ^ 0x7368_6170, self.options.shape_units);
        let (x, pieces) = (&self.x.values, self.pieces.as_ref());
        joint::gamma_shape(self.cohort, &sample, x, pieces, &JointOptions::default()).map_err(not_fitted)
    }

    /// Covariates whose slopes are penalised together: the levels of a category.
    pub(super) fn covariate_groups(&self) -> Vec<usize> {
        let of = |(g, c): (usize, &crate::schema::Covariate)| c.columns().map(move |_| g);
        self.cohort.schema().iter().enumerate().flat_map(of).collect()
    }

    /// Sum of the out-of-fold log-likelihoods of a sample of units under each of these options, with linear terms.
    fn out_of_fold(&self, terms: &Terms, candidates: &[JointOptions]) -> Result<(Vec<f64>, f64), Error> {
        let sample = self.sample(self.seed ^ 0x6661_6d69, self.options.family_units);
        let folds = (2 * self.options.family_units / sample.len().max(1)).clamp(2, self.folds);
        let jobs: Vec<(usize, usize)> = (0..candidates.len()).flat_map(|c| (0..folds).map(move |k| (c, k))).collect();
        let sums: Vec<(f64, f64)> = jobs
            .par_iter()
            .map(|&(candidate, fold)| {
                let held_out: Vec<u32> =
                    sample.iter().copied().filter(|&i| self.fold_of[i as usize] as usize == fold).collect();
                let training = TrainingSet::sampled_outside(self.cohort, &sample, &self.fold_of, fold as u8);
                let model = self.fit(&training, terms, &candidates[candidate])?;
                let value = |&i: &u32| {
                    let i = i as usize;
                    let predicted = model.predict(self.row(i))[self.cohort.arm(i)];
                    self.known(i, |time, event| model.log_likelihood(&predicted, time, event))
                };
                let weight = held_out.iter().map(|&i| self.weight(i as usize)).sum();
                Ok((held_out.iter().map(value).sum(), weight))
            })
            .collect::<Result<_, Error>>()?;
        let of = |candidate: usize| jobs.iter().zip(&sums).filter(move |((c, _), _)| *c == candidate).map(|(_, s)| s);
        let values = (0..candidates.len()).map(|c| of(c).map(|s| s.0).sum()).collect();
        Ok((values, of(0).map(|s| s.1).sum()))
    }

    /// Strengths of an elastic net for cure and time, each the best of the other's best.
    pub(super) fn choose_strengths(
        &self,
        terms: &Terms,
        family: Family,
        mixing: f64,
    ) -> Result<ByEstimand<f64>, Error> {
        let mut strengths = ByEstimand::of(|_| FIRST_STRENGTH);
        for part in Estimand::BOTH {
            let at = |strength: f64| {
                let mut strengths = strengths;
                strengths[part] = strength;
                let penalty = Penalty::ElasticNet { mixing, strengths };
                JointOptions { family, penalty, groups: self.covariate_groups(), rounds: 0, ..JointOptions::default() }
            };
            let (values, _) = self.out_of_fold(terms, &STRENGTHS.map(at))?;
            let best = (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b]).then(b.cmp(&a)));
            strengths[part] = STRENGTHS[best.unwrap_or(0)];
        }
        Ok(strengths)
    }

    /// Mean out-of-fold log-likelihood of each family under linear terms, on a sample of units.
    pub(super) fn compare_families(&self, terms: &Terms) -> Result<Vec<(Family, f64)>, Error> {
        let compare = |families: &[Family]| -> Result<Vec<(Family, f64)>, Error> {
            let options = |&family: &Family| JointOptions { family, rounds: 0, ..JointOptions::default() };
            let (sums, count) = self.out_of_fold(terms, &families.iter().map(options).collect::<Vec<_>>())?;
            let mean = |(&family, sum): (&Family, f64)| (family, sum / f64::max(count, 1.0));
            Ok(families.iter().zip(sums).map(mean).collect())
        };
        let (shape, simple) = rayon::join(|| self.gamma_shape(), || compare(&Family::ALL));
        let (shape, mut all) = (shape?, simple?);
        // Where it promises nothing beyond its special cases it is not worth its fits.
        if shape.hundredths != 0 && shape.gain > self.options.gain_for_shape {
            all.extend(compare(&[Family::GeneralisedGamma(shape.hundredths)])?);
        }
        Ok(all)
    }

    /// The metric of each estimand in each arm: its own importance, some of the other arm's, and a floor.
    pub(super) fn metrics(&self, model: &JointModel) -> Four<Metric> {
        ByEstimand::of(|estimand| {
            let importance = &model.importance[estimand];
            ByArm::of(|arm| {
                let (own, other) = (&importance[arm], &importance[arm.other()]);
                let mut raw: Vec<f64> = own.iter().zip(other).map(|(a, b)| a + self.options.borrowed * b).collect();
                // A category has one weight, that of all its levels together: a difference of level is then one
                // distance.
                for c in self.cohort.schema().iter().filter(|c| c.is_category()) {
                    let sum: f64 = raw[c.columns()].iter().sum();
                    raw[c.columns()].fill(sum);
                }
                let largest = raw.iter().copied().fold(1e-6, f64::max);
                let floor = self.options.floor.min(1.0 / raw.len() as f64);
                let weights = raw.iter().map(|w| w + floor * largest).collect();
                Metric { weights, scaling: self.scaling.clone() }
            })
        })
    }

    /// The group sizes that are tried, largest first.
    pub(super) fn group_sizes(&self) -> Vec<usize> {
        // The unit itself is never in its group, so the smaller arm may have one unit less to offer.
        let smaller = self.ground.pools.control.len().min(self.ground.pools.treated.len());
        if let Some(k) = self.options.group_size {
            return vec![k.min(smaller.saturating_sub(1)).max(1)];
        }
        let mut k = (smaller / 2).min(self.options.largest_group).max(1);
        let mut out = vec![k];
        while k / 2 >= self.options.smallest_group {
            k /= 2;
            out.push(k);
        }
        out
    }
}
