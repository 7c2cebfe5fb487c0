//! The honest split: some units train the models, the others are estimated.
//!
//! The two sets are different types. A [`TrainingSet`] is made by a split or as the complement of a fold, and in no
//! other way. [`Trained`] marks a model that was fitted to a training set. Metrics and corrections take such models
//! only, so that the outcome of a unit cannot reach its own estimate through a model.
//!
//! A unit's place is decided by its id and the seed alone: in each arm the units with the smallest
//! SipHash-2-4 of their id, keyed with the seed, form the training set. The order of rows plays no
//! part, and adding or dropping a unit moves at most a few others.

use crate::arm::ByArm;
use crate::cohort::{Arm, Cohort};
use crate::outcome::Extras;
use rayon::prelude::*;
use siphasher::sip::SipHasher24;
use std::hash::Hasher;

/// Which units train and which are estimated.
#[derive(Clone, Debug, PartialEq)]
pub struct Split<'a> {
    cohort: &'a Cohort,
    is_training: Vec<bool>,
}

/// Units whose outcomes may be learned from.
#[derive(Clone, Debug)]
pub struct TrainingSet<'a> {
    cohort: &'a Cohort,
    units: Vec<u32>,
}

/// A model that was fitted to a training set, and to nothing else. The functions `fit` of the two
/// kinds of cure model make it.
///
/// A metric can be learned from such models, and not from models that describe everybody:
///
/// ```
/// # use dvim::internal::{arm::ByArm, cure, metric::{MetricChoice, Metrics, Scale, Scaling}, simulate::{Scenario,
/// simulate}, split::Split};
/// # let world = simulate(Scenario::BothOverlap, 500, false, 1);
/// # let (cohort, options) = (&world.cohort, cure::FitOptions::default());
/// # let scaling = Scaling::of(cohort, Scale::Standard);
/// let training = Split::honest(cohort, 0.35, 1).training();
/// let models = ByArm::of(|arm| cure::fit(&training, arm, &scaling, &options).unwrap());
/// Metrics::learn(&models, &scaling, MetricChoice::Separate);
/// ```
///
/// ```compile_fail,E0308
/// # use dvim::internal::{arm::ByArm, cure, metric::{MetricChoice, Metrics, Scale, Scaling}, simulate::{Scenario,
/// simulate}, split::Split};
/// # let world = simulate(Scenario::BothOverlap, 500, false, 1);
/// # let (cohort, options) = (&world.cohort, cure::FitOptions::default());
/// # let scaling = Scaling::of(cohort, Scale::Standard);
/// let models = ByArm::of(|arm| cure::describe_arm(cohort, arm, &scaling, &options, None).unwrap());
/// Metrics::learn(&models, &scaling, MetricChoice::Separate);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Trained<M>(M);

impl<M> Trained<M> {
    /// Vouches for a model that was fitted to this training set.
    pub(crate) fn on(_: &TrainingSet<'_>, model: M) -> Trained<M> {
        Trained(model)
    }

    /// Vouches for a model of a saved run, which trained when the run was made.
    pub fn restored(model: M) -> Trained<M> {
        Trained(model)
    }

    /// Gives up the mark.
    pub fn into_inner(self) -> M {
        self.0
    }

    /// Turns the model into a part of it, which trained on the same units.
    pub fn map<N>(self, part: impl FnOnce(M) -> N) -> Trained<N> {
        Trained(part(self.0))
    }
}

impl<M> std::ops::Deref for Trained<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.0
    }
}

/// Units to be estimated, and to be matched with.
#[derive(Clone, Copy, Debug)]
pub struct EstimationSet<'a>(&'a Split<'a>);

/// Outcomes and covariates of units of one arm.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmOutcomes {
    /// Times, horizon applied.
    pub time: Vec<f64>,
    /// Events before the horizon.
    pub event: Vec<bool>,
    /// Covariates, row-major, as recorded.
    pub covariates: Vec<f64>,
    /// Weights, entries, clusters and other causes.
    pub extras: Extras,
}

impl<'a> Split<'a> {
    /// Splits each arm by the hashes of its ids. `train_fraction` is strictly between 0 and 1; each
    /// set keeps at least one unit of each arm that has two.
    pub fn honest(cohort: &'a Cohort, train_fraction: f64, seed: u64) -> Split<'a> {
        let of_arm = |arm: Arm| {
            let units = cohort.units_of(arm).into_par_iter().with_min_len(1024);
            let mut keyed: Vec<(u64, u32)> =
                units.map(|i| (hash_id(seed, &cohort.ids().text(i as usize)), i)).collect();
            let n_train = training_size(keyed.len(), train_fraction);
            if n_train < keyed.len() {
                keyed.select_nth_unstable(n_train);
            }
            keyed.truncate(n_train);
            keyed
        };
        let (control, treated) = rayon::join(|| of_arm(Arm::Control), || of_arm(Arm::Treated));
        let mut is_training = vec![false; cohort.n_units()];
        control.iter().chain(&treated).for_each(|(_, i)| is_training[*i as usize] = true);
        Split { cohort, is_training }
    }

    /// A split that was made before, for a saved run.
    pub fn restored(cohort: &'a Cohort, is_training: Vec<bool>) -> Split<'a> {
        assert_eq!(is_training.len(), cohort.n_units(), "one mark for each unit");
        Split { cohort, is_training }
    }

    /// Whether each unit trains.
    pub fn is_training(&self) -> &[bool] {
        &self.is_training
    }

    /// The units that train.
    pub fn training(&self) -> TrainingSet<'a> {
        TrainingSet { cohort: self.cohort, units: self.units(None, true) }
    }

    /// The units that are estimated.
    pub fn estimation(&'a self) -> EstimationSet<'a> {
        EstimationSet(self)
    }

    fn units(&self, arm: Option<Arm>, training: bool) -> Vec<u32> {
        (0..self.cohort.n_units())
            .filter(|&i| self.is_training[i] == training && arm.is_none_or(|z| self.cohort.arm(i) == z))
            .map(|i| i as u32)
            .collect()
    }
}

/// Number of training units among `n` of an arm.
pub(crate) fn training_size(n: usize, train_fraction: f64) -> usize {
    let wanted = (n as f64 * train_fraction).round() as usize;
    if n < 2 { n } else { wanted.clamp(1, n - 1) }
}

/// SipHash-2-4 of an id, keyed with the seed.
pub(crate) fn hash_id(seed: u64, id: &str) -> u64 {
    let mut hasher = SipHasher24::new_with_keys(seed, 0x6476_696d_7370_6c69); // "dvimspli"
    hasher.write(id.as_bytes());
    hasher.finish()
}

/// Those of some units that have the smallest hashes, in order: a sample that does not depend on the order of rows.
pub(crate) fn hashed_sample(cohort: &Cohort, units: Vec<u32>, key: u64, most: usize) -> Vec<u32> {
    if units.len() <= most {
        return units;
    }
    let keyed = units.into_par_iter().with_min_len(1024).map(|i| (hash_id(key, &cohort.ids().text(i as usize)), i));
    let mut keyed: Vec<(u64, u32)> = keyed.collect();
    keyed.select_nth_unstable(most);
    keyed.truncate(most);
    let mut units: Vec<u32> = keyed.into_iter().map(|(_, i)| i).collect();
    units.sort_unstable();
    units
}

/// The fold of each unit: in each arm the ranks of the hashes of ids are dealt out in turn. A cluster is dealt as one.
pub fn deal_folds(cohort: &Cohort, folds: usize, seed: u64) -> Vec<u8> {
    let mut out = vec![0; cohort.n_units()];
    if let Some(clusters) = &cohort.extras().cluster {
        return deal_clusters(cohort, clusters, folds, seed);
    }
    for arm in Arm::BOTH {
        let mut keyed: Vec<(u64, u32)> =
            cohort.units_of(arm).into_iter().map(|i| (hash_id(seed, &cohort.ids().text(i as usize)), i)).collect();
        keyed.sort_unstable();
        keyed.iter().enumerate().for_each(|(rank, (_, i))| out[*i as usize] = (rank % folds) as u8);
    }
    out
}

/// Deals whole clusters: the largest first, each to the fold that has the smallest share of the arms so far. Clusters
/// of one size go by the hash of the first id of each.
fn deal_clusters(cohort: &Cohort, clusters: &[u32], folds: usize, seed: u64) -> Vec<u8> {
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); clusters.iter().max().map_or(0, |c| *c as usize + 1)];
    clusters.iter().zip(0..).for_each(|(&c, i)| members[c as usize].push(i));
    members.retain(|of| !of.is_empty());
    let mut order: Vec<(usize, u64, Vec<u32>)> =
        members.into_iter().map(|of| (of.len(), hash_id(seed, &cohort.ids().text(of[0] as usize)), of)).collect();
    order.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    let sizes = ByArm::of(|arm| cohort.units_of(arm).len() as f64);
    let mut held = vec![0.0; folds];
    let mut out = vec![0; cohort.n_units()];
    for (_, _, of) in order {
        let fold = (0..folds).min_by(|&a, &b| f64::total_cmp(&held[a], &held[b]).then(a.cmp(&b))).unwrap_or(0);
        for i in of {
            held[fold] += 1.0 / sizes[cohort.arm(i as usize)];
            out[i as usize] = fold as u8;
        }
    }
    out
}

impl<'a> TrainingSet<'a> {
    /// The units outside of one fold: those for which `fold_of` says another number.
    ///
    /// # Panics
    /// If there is not one fold for each unit.
    pub fn outside(cohort: &'a Cohort, fold_of: &[u8], fold: u8) -> TrainingSet<'a> {
        assert_eq!(fold_of.len(), cohort.n_units(), "one fold for each unit");
        let units = (0..cohort.n_units() as u32).filter(|&i| fold_of[i as usize] != fold).collect();
        TrainingSet { cohort, units }
    }

    /// The units of a sample that are outside of one fold, in the order of the sample.
    pub fn sampled_outside(cohort: &'a Cohort, sample: &[u32], fold_of: &[u8], fold: u8) -> TrainingSet<'a> {
        let units = sample.iter().copied().filter(|&i| fold_of[i as usize] != fold).collect();
        TrainingSet { cohort, units }
    }

    /// Outcomes and covariates of one arm.
    pub fn arm(&self, arm: Arm) -> ArmOutcomes {
        let of_arm = |i: &u32| self.cohort.arm(*i as usize) == arm;
        ArmOutcomes::of(self.cohort, self.units.iter().copied().filter(of_arm).collect())
    }

    /// Positions of the units in the cohort.
    pub fn units(&self) -> &[u32] {
        &self.units
    }

    /// The cohort it is part of: for covariates, arms and names.
    pub fn cohort(&self) -> &'a Cohort {
        self.cohort
    }
}

impl ArmOutcomes {
    /// Outcomes and covariates of these units, which are of one arm.
    pub(crate) fn of(cohort: &Cohort, units: Vec<u32>) -> ArmOutcomes {
        let extras = cohort.extras().select(&units);
        let n = units.len();
        let covariates = Vec::with_capacity(n * cohort.n_covariates());
        let (time, event) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let mut out = ArmOutcomes { time, event, covariates, extras };
        for i in units.into_iter().map(|i| i as usize) {
            out.time.push(cohort.time(i));
            out.event.push(cohort.event(i));
            out.covariates.extend_from_slice(cohort.covariates(i));
        }
        out
    }
}

impl EstimationSet<'_> {
    /// Positions in the cohort of the units to be estimated, ascending.
    pub fn units(&self) -> Vec<u32> {
        self.0.units(None, false)
    }

    /// Positions in the cohort of the units of one arm, ascending.
    pub fn units_of(&self, arm: Arm) -> Vec<u32> {
        self.0.units(Some(arm), false)
    }

    /// The cohort it is part of.
    pub fn cohort(&self) -> &Cohort {
        self.0.cohort
    }
}
