//! The adjusted estimator: match groups corrected by what a cross-fitted cure model knows.
//!
//! 1. *Splits.* Units are dealt into folds by the hash of their ids; each fold is left out by one honest split, whose
//!    training units are the others. A unit is estimated with the model of the split that left it out: its own
//!    outcome trains no coefficient, metric, group or correction that is used for it. More splits than one deal
//!    holds are dealt anew, and an estimate is the mean over the deals.
//! 2. *Model.* A two-arm mixture cure model ([`crate::joint`]) on the other folds: slopes that are
//!    common to the arms plus slopes of each arm, shrunk by an empirical-Bayes prior.
//! 3. *Groups.* The K nearest units of each arm under a metric from that model, the unit itself left
//!    out; Kaplan–Meier in the group gives S_G(H) and CMET m_G.
//! 4. *Correction* for the covariate difference that remains inside the group, on a natural scale:
//!    `logit S(x) = logit S_model(x) + w (logit S_G − logit S̄_G)`,
//!    `m(x) = m_model(x) · (m_G / m̄_G)^w`, S̄_G and m̄_G being the model's means over the group.
//! 5. *K and w* by a cross-validated, censoring-weighted loss of the corrected curve in its own arm,
//!    for each estimand and fold, from units of the other folds.
//!
//! 6. *Variance* on the same scales: the model's, by the delta method; plus w² that of the group's curve; plus (1 − w)² what the
//!    offsets vary beyond the noise of the groups, which the correction leaves in.
//!
//! Derivations and evidence: docs/methods.md, "The adjusted estimator", and docs/accuracy.md.

mod groups;
mod newcomers;

pub use groups::{each_group, regroup};
pub use newcomers::Newcomers;

use crate::cohort::{Arm, Cohort};
use crate::constraint::{Queries, Rules, Unserved};
use crate::effect::{Corrected, Effect};
use crate::error::{Error, Problem, ProblemKind};
use crate::estimand::Estimand;
use crate::joint::{
    self, Certainty, Family, GammaShape, JointModel, JointOptions, Penalty, Prediction, Predictor, Terms, TwoArms,
};
use crate::martingale::{Censoring, Residual};
use crate::metric::{Metric, Scaling};
use crate::numeric::{expit, log1pexp};
use crate::phrase;
use crate::phrase::Phrase;
use crate::setting;
use crate::split::hash_id;
use groups::{
    Expected, Four, GroupSearch, Offset, Place, add_leftover, all_four, arms, correct, corrected_cure, corrected_time,
    pooled, queries_of, units_of_fold,
};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Strengths of an elastic net that are tried, in units of log-likelihood for a slope of a column of unit standard deviation.
pub const STRENGTHS: [f64; 7] = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0];
/// Strength of the time part while that of the cure part is chosen.
const FIRST_STRENGTH: f64 = 30.0;

/// How the adjusted estimator works. All other constants stand here, with their reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct AdjustedOptions {
    /// Honest splits in all. Ten train on 90 % of the units; five cost 8 % in accuracy, more of one deal gain little.
    pub splits: usize,
    /// Splits that share one deal at most: each unit is left out by one split of a deal.
    pub folds: usize,
    /// The latency family; `None` chooses by out-of-fold likelihood. The shape of a generalised gamma of shape 0 is learned.
    pub family: Option<Family>,
    /// What holds the slopes of the models: `None` the prior that is learned with them; else an elastic net with this share of the norm (0 is
    /// ridge), its strengths for cure and time chosen by out-of-fold likelihood.
    pub elastic_net: Option<f64>,
    /// K for both estimands; `None` chooses from the data.
    pub group_size: Option<usize>,
    /// The largest K that is tried, besides half of the smaller arm. A thousand lowers the error at n = 20,000 by
    /// another 15 %, far below what is needed, at three times the time and with groups that nobody can look through.
    pub largest_group: usize,
    /// The smallest K that is tried: with fewer a curve at H rests on a handful.
    pub smallest_group: usize,
    /// Weights of the group's offset that are tried; never 0, so that every estimate rests on its group.
    pub weights: [f64; 4],
    /// Beyond this many units a smaller weight is tried too: a model learns from all units, so its error falls as 1/√n, while groups stay as they
    /// are; without it their noise is most of the error of 20,000 units whose model is right.
    pub units_for_weight: f64,
    /// A candidate (K, w) must beat the reference by this many standard errors of the loss difference.
    pub caution: f64,
    /// Units on which K and w are chosen, at most; a fixed sample by hash of id.
    pub tuning_units: usize,
    /// Units on which latency families are compared, at most (a fixed sample by hash of id); the shape of the
    /// event times shows in a few thousand.
    pub family_units: usize,
    /// Units on which the shape of the generalised gamma family is learned, at most (a fixed sample by hash of id).
    pub shape_units: usize,
    /// Log-likelihood that the generalised gamma family must have above its special cases on that sample to be compared: 2, about
    /// the 5 % test of its shape.
    pub gain_for_shape: f64,
    /// Share of the other arm's importance in an arm's metric.
    pub borrowed: f64,
    /// Every covariate keeps this share of the largest weight; of more than 1/this covariates, all together the largest weight.
    pub floor: f64,
    /// Smallest censoring survival that a loss is divided by.
    pub smallest_censoring_survival: f64,
    /// For intervals: no slope is held more than κ times more certain than its data alone make it, because weak effects that the
    /// prior did not find are there all the same. κ = 4 up to this many units and grows with n beyond, because fewer are missed.
    /// Chosen on cohorts other than those that docs/methods.md reports coverage on.
    pub units_for_certainty: f64,
}

impl Default for AdjustedOptions {
    fn default() -> AdjustedOptions {
        AdjustedOptions {
            splits: 10,
            folds: 10,
            family: None,
            elastic_net: None,
            group_size: None,
            largest_group: 250,
            smallest_group: 25,
            weights: [0.25, 0.5, 0.75, 1.0],
            units_for_weight: 3000.0,
            caution: 2.0,
            tuning_units: 4000,
            family_units: 6000,
            shape_units: 2000,
            gain_for_shape: 2.0,
            borrowed: 0.5,
            floor: 0.02,
            smallest_censoring_survival: 0.05,
            units_for_certainty: 2000.0,
        }
    }
}

impl AdjustedOptions {
    /// Splits and folds where some are not said: as many splits as folds, one deal.
    pub fn splits_and_folds(splits: Option<usize>, folds: Option<usize>) -> (usize, usize) {
        let usual = AdjustedOptions::default();
        (splits.or(folds).unwrap_or(usual.splits), folds.unwrap_or(usual.folds))
    }

    fn n_deals(&self) -> usize {
        self.splits.div_ceil(self.folds.max(1)).max(1)
    }

    /// The number of splits of each deal: as few deals as there can be, as even as they can be, larger ones first.
    pub fn deals(&self) -> Vec<usize> {
        let n = self.n_deals();
        (0..n).map(|d| self.splits / n + usize::from(d < self.splits % n)).collect()
    }

    /// The weights that are tried on `n` units, ascending.
    fn weights_for(&self, n: usize) -> Vec<f64> {
        let least = self.weights[0] * f64::sqrt(self.units_for_weight / n as f64);
        let smaller = (least < self.weights[0]).then_some(least);
        smaller.into_iter().chain(self.weights).collect()
    }

    /// A unit to which constraints leave fewer candidates in an arm is not served: K where it was given, else the smallest that is tried.
    pub fn fewest(&self) -> usize {
        self.group_size.unwrap_or(self.smallest_group)
    }

    /// What is wrong with these options for arms of these sizes (control, treated).
    pub fn problems(&self, arm_sizes: [usize; 2]) -> Vec<Problem> {
        let mut out = Vec::new();
        if !(2..=50).contains(&self.folds) {
            out.push(Problem::error(
                ProblemKind::BadOption,
                format!("the number of folds is {}", self.folds),
                "a deal has 2 to 50 folds, each left out by one split",
                phrase!["use ", setting::Setting::Folds.to(10)],
            ));
        }
        let split_problem = |rule: &'static str, remedy: Phrase| {
            Problem::error(ProblemKind::BadOption, format!("the number of splits is {}", self.splits), rule, remedy)
        };
        if self.splits == 1 {
            let rule = "with one split the patients who train have no estimate, so there are 2 to 500";
            out.push(split_problem(rule, phrase!["use ", setting::Setting::Splits.to(10)]));
        } else if !(2..=500).contains(&self.splits) {
            let rule = "every patient is left out by some split, so there are 2 to 500";
            out.push(split_problem(rule, phrase!["use ", setting::Setting::Splits.to(10)]));
        } else if self.folds == 2 && self.splits % 2 == 1 {
            let rule = "of two folds a deal holds two splits, so that their number is even";
            out.push(split_problem(
                rule,
                phrase!["use ", setting::Setting::Splits.to(self.splits + 1), ", or more ", setting::Setting::Folds],
            ));
        }
        if let Some(mixing) = self.elastic_net.filter(|m| !(0.0..=1.0).contains(m)) {
            out.push(Problem::error(
                ProblemKind::BadOption,
                format!("the share of the norm in the elastic net is {mixing}"),
                "it lies between 0 (ridge) and 1 (lasso)",
                phrase!["use ", setting::Setting::Penalty.to("elastic-net:0.5")],
            ));
        }
        for arm in Arm::BOTH {
            let n = arm_sizes[arm.index()];
            let needed = self
                .group_size
                .map_or(2 * self.smallest_group, |k| k + 1)
                .max(2 * self.splits.div_ceil(self.n_deals()));
            if n < needed {
                out.push(Problem::error(
                    ProblemKind::ArmTooSmall,
                    format!("the {} arm has {n} units", arm.name()),
                    "each arm needs at least two units for each fold, and more than a group",
                    phrase![
                        format!("the adjusted estimator needs {needed} units in each arm here; use fewer "),
                        setting::Setting::Splits,
                        " or a smaller ",
                        setting::Setting::GroupSize
                    ],
                ));
            }
        }
        out
    }
}

/// The two estimands, as positions in pairs.
const CURE: usize = 0;
const TIME: usize = 1;

/// The chosen group size and weight of one estimand in one fold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// K.
    pub group_size: usize,
    /// w.
    pub weight: f64,
}

/// One point of the path over which K and w were chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathPoint {
    /// `false` for cure, `true` for time.
    pub is_time: bool,
    /// The candidate.
    pub choice: Choice,
    /// Mean loss minus that of the reference candidate (largest K, smallest w).
    pub loss: f64,
    /// Standard error of that difference.
    pub se: f64,
}

/// What one fold learned from the other folds, as far as its groups need it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    /// The metric of each estimand (cure, time) in each arm (control, treated).
    pub metrics: [[Metric; 2]; 2],
    /// Group size and weight for cure and time.
    pub choices: [Choice; 2],
    /// What its model's certificate flags, in words; empty for an ordinary fit.
    pub warnings: Vec<String>,
}

/// The model of one fold: what it says of any unit, and how sure it is.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldModel {
    /// What it says.
    pub predictor: Predictor,
    /// Covariance of its parameters, row-major: see [`Certainty`].
    pub covariance: Vec<f64>,
}

impl FoldModel {
    fn certainty(&self) -> Certainty<'_> {
        Certainty::new(&self.predictor, &self.covariance)
    }
}

/// What one deal made of a unit, by its split that left the unit out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DealValues {
    /// P(T ≥ H), control first.
    pub cure_probability: [f64; 2],
    /// E[T | T < H], control first.
    pub mean_event_time: [f64; 2],
    /// What the unit's outcome says beyond that, in its own arm.
    pub residual: Residual,
}

/// The average effects over the units that one split left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitAverage {
    /// Number of its deal, from 0.
    pub deal: usize,
    /// Units that it left out and estimated.
    pub n_units: usize,
    /// Means of their cure and time effects; not a number where there is no unit.
    pub mean: [f64; 2],
    /// Standard deviations of these effects; not a number below two units.
    pub sd: [f64; 2],
}

/// Standard deviations over splits of their average cure and time effects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitSpread {
    /// Of the averages.
    pub sd: [f64; 2],
    /// What it would be by chance, the splits having left out other units: were one model behind all of them,
    /// and with σ² the variance of the effects inside the splits, `Σ σ²/n (1 − 1/F) / (R − 1)` is the mean of
    /// sd² over all deals of R splits, n being the units of a split and F the splits of its deal; σ²/n for one even deal.
    pub by_chance: [f64; 2],
}

/// The cohort dealt into folds, and what the split that left out each fold learned.
#[derive(Clone, Debug, PartialEq)]
pub struct Deal {
    /// The fold of each unit.
    pub fold_of: Vec<u8>,
    /// The folds.
    pub folds: Vec<Fold>,
    /// The model of each fold; empty in a run that was saved without them.
    pub models: Vec<FoldModel>,
    /// What the offsets of the groups vary beyond their noise, on the scale of the correction: cure and time, each in control and
    /// treated.
    pub leftover: [[f64; 2]; 2],
    /// What this deal made of each unit; empty where there is one deal. Not a number where a unit has no groups.
    pub values: Vec<DealValues>,
}

/// Everything that the adjusted estimator learned.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossFit {
    /// The deals, at least one. Groups that are shown are those of the first.
    pub deals: Vec<Deal>,
    /// The latency family.
    pub family: Family,
    /// Mean out-of-fold log-likelihood of each family that was compared.
    pub families: Vec<(Family, f64)>,
    /// Chosen strengths of an elastic net for cure and time.
    pub strengths: Option<[f64; 2]>,
    /// The path of K and w in the first deal, over all folds together.
    pub path: Vec<PathPoint>,
    /// What each unit's outcome says beyond its corrected curve in its own arm; the mean over deals.
    pub residuals: Vec<Residual>,
    /// The averages of each split, deal after deal; empty in a run that was saved without them.
    pub averages: Vec<SplitAverage>,
}

impl CrossFit {
    /// The first deal.
    pub fn first(&self) -> &Deal {
        &self.deals[0]
    }

    /// The fold of a unit in the first deal.
    pub fn fold(&self, unit: usize) -> &Fold {
        let first = self.first();
        &first.folds[first.fold_of[unit] as usize]
    }

    /// Medians over the estimated units of the standard deviations of the cure effect and the time effect over the splits that left a unit out;
    /// `None` with one deal.
    pub fn typical_split_sd(&self) -> Option<[f64; 2]> {
        let n = self.deals.len() as f64;
        let units = 0..self.first().values.len();
        let median = |effect: &dyn Fn(&DealValues) -> f64| {
            let of = |i: usize| {
                let of_deals = || self.deals.iter().map(|r| effect(&r.values[i]));
                let mean = of_deals().sum::<f64>() / n;
                (of_deals().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0)).sqrt()
            };
            let mut all: Vec<f64> = units.clone().map(of).filter(|sd| sd.is_finite()).collect();
            all.sort_by(f64::total_cmp);
            all.get(all.len() / 2).copied()
        };
        let cure = median(&|v| v.cure_probability[1] - v.cure_probability[0])?;
        Some([cure, median(&|v| v.mean_event_time[1] - v.mean_event_time[0])?])
    }

    /// How the averages of the splits vary, and would by chance; `None` below two splits with two units or more.
    pub fn split_spread(&self) -> Option<SplitSpread> {
        let there: Vec<&SplitAverage> = self.averages.iter().filter(|a| a.n_units > 1).collect();
        if there.len() < 2 {
            return None;
        }
        let n = there.len() as f64;
        let sum = |f: &dyn Fn(&SplitAverage) -> f64| there.iter().map(|a| f(a)).sum::<f64>();
        let of_deal = |a: &SplitAverage| there.iter().filter(|b| b.deal == a.deal).count() as f64;
        let share = sum(&|a| (1.0 - 1.0 / of_deal(a)) / a.n_units as f64) / (n - 1.0);
        let free = |a: &SplitAverage| a.n_units as f64 - 1.0;
        let sd = |part: usize| {
            let mean = sum(&|a| a.mean[part]) / n;
            (sum(&|a| (a.mean[part] - mean) * (a.mean[part] - mean)) / (n - 1.0)).sqrt()
        };
        let by_chance = |part: usize| {
            let inside = sum(&|a| free(a) * a.sd[part] * a.sd[part]) / sum(&free);
            (inside * share).sqrt()
        };
        Some(SplitSpread { sd: [CURE, TIME].map(sd), by_chance: [CURE, TIME].map(by_chance) })
    }

    /// All folds of all deals: one for each split.
    pub fn folds(&self) -> impl Iterator<Item = &Fold> {
        self.deals.iter().flat_map(|r| &r.folds)
    }
}

/// The seed of a deal; the first has the run's own.
fn seed_of_deal(seed: u64, deal: usize) -> u64 {
    if deal == 0 { seed } else { hash_id(seed, &format!("split {}", deal + 1)) }
}

/// The fold of each unit: in each arm the ranks of the hashes of ids are dealt out in turn.
pub fn deal_folds(cohort: &Cohort, folds: usize, seed: u64) -> Vec<u8> {
    let mut out = vec![0; cohort.n_units()];
    for arm in Arm::BOTH {
        let mut keyed: Vec<(u64, u32)> =
            cohort.units_of(arm).into_iter().map(|i| (hash_id(seed, &cohort.ids().text(i as usize)), i)).collect();
        keyed.sort_unstable();
        keyed.iter().enumerate().for_each(|(rank, (_, i))| out[*i as usize] = (rank % folds) as u8);
    }
    out
}

/// The cohort with what every fold shares.
struct Setting<'a> {
    place: Place<'a>,
    cohort: &'a Cohort,
    options: &'a AdjustedOptions,
    seed: u64,
    /// Folds of this deal.
    folds: usize,
    fold_of: Vec<u8>,
    /// The censoring curve of each arm.
    censoring: [Censoring; 2],
}

impl<'a> Setting<'a> {
    fn new(
        cohort: &'a Cohort,
        scaling: &Scaling,
        rules: Option<Rules>,
        options: &'a AdjustedOptions,
        seed: u64,
    ) -> Setting<'a> {
        let place = Place::new(cohort, scaling, rules, options.fewest());
        let censoring = place.pools.each_ref().map(|pool| {
            let units: Vec<usize> = pool.units.iter().map(|&i| i as usize).collect();
            let time: Vec<f64> = units.iter().map(|&i| cohort.time(i)).collect();
            // Reaching H is not censoring: nobody is lost there.
            let lost: Vec<bool> =
                units.iter().map(|&i| !cohort.event(i) && cohort.time(i) < cohort.horizon()).collect();
            Censoring::new(&time, &lost, cohort.horizon(), options.smallest_censoring_survival)
        });
        let folds = options.deals()[0];
        Setting { place, cohort, options, seed, folds, fold_of: deal_folds(cohort, folds, seed), censoring }
    }

    /// Deals anew.
    fn deal(&mut self, folds: usize, seed: u64) {
        (self.seed, self.folds) = (seed, folds);
        self.fold_of = deal_folds(self.cohort, folds, seed);
    }

    fn p(&self) -> usize {
        self.place.p()
    }

    fn row(&self, i: usize) -> &[f64] {
        self.place.row(i)
    }

    /// Fits the two-arm model on these units.
    fn fit(&self, units: &[u32], terms: &Terms, options: &JointOptions) -> Result<JointModel, Error> {
        self.with_data(units, |data| joint::fit(data, terms, options))
    }

    /// Hands these units to a model.
    fn with_data<T>(
        &self,
        units: &[u32],
        f: impl FnOnce(&TwoArms<'_>) -> Result<T, joint::FitError>,
    ) -> Result<T, Error> {
        let units: Vec<usize> = units.iter().map(|&i| i as usize).collect();
        let time: Vec<f64> = units.iter().map(|&i| self.cohort.time(i)).collect();
        let event: Vec<bool> = units.iter().map(|&i| self.cohort.event(i)).collect();
        let treated: Vec<bool> = units.iter().map(|&i| self.cohort.arm(i) == Arm::Treated).collect();
        let covariates: Vec<f64> = units.iter().flat_map(|&i| self.row(i)).copied().collect();
        let data = TwoArms {
            time: &time,
            event: &event,
            treated: &treated,
            covariates: &covariates,
            n_covariates: self.p(),
            horizon: self.cohort.horizon(),
        };
        f(&data).map_err(|e| Error::Model { arm: "joint", reason: e.to_string() })
    }

    /// The shape that the generalised gamma family would have, on a sample of units.
    fn gamma_shape(&self) -> Result<GammaShape, Error> {
        let sample = hashed_sample(self.cohort, self.seed ^ 0x7368_6170, self.options.shape_units);
        self.with_data(&sample, |data| joint::gamma_shape(data, &JointOptions::default()))
    }

    /// Covariates whose slopes are penalised together: the levels of a category.
    fn covariate_groups(&self) -> Vec<usize> {
        let of = |(g, c): (usize, &crate::schema::Covariate)| c.columns().map(move |_| g);
        self.cohort.schema().iter().enumerate().flat_map(of).collect()
    }

    /// Sum of the out-of-fold log-likelihoods of a sample of units under each of these options, with linear terms.
    fn out_of_fold(&self, terms: &Terms, candidates: &[JointOptions]) -> Result<(Vec<f64>, usize), Error> {
        let sample = hashed_sample(self.cohort, self.seed ^ 0x6661_6d69, self.options.family_units);
        let folds = (2 * self.options.family_units / sample.len().max(1)).clamp(2, self.folds);
        let jobs: Vec<(usize, usize)> = (0..candidates.len()).flat_map(|c| (0..folds).map(move |k| (c, k))).collect();
        let sums: Vec<(f64, usize)> = jobs
            .par_iter()
            .map(|&(candidate, fold)| {
                let (held_out, training): (Vec<u32>, Vec<u32>) =
                    sample.iter().copied().partition(|&i| self.fold_of[i as usize] as usize == fold);
                let model = self.fit(&training, terms, &candidates[candidate])?;
                let value = |&i: &u32| {
                    let (i, z) = (i as usize, self.cohort.arm(i as usize).index());
                    model.log_likelihood(
                        &model.predict(self.row(i))[Arm::BOTH[z]],
                        self.cohort.time(i),
                        self.cohort.event(i),
                    )
                };
                Ok((held_out.iter().map(value).sum(), held_out.len()))
            })
            .collect::<Result<_, Error>>()?;
        let of = |candidate: usize| jobs.iter().zip(&sums).filter(move |((c, _), _)| *c == candidate).map(|(_, s)| s);
        let values = (0..candidates.len()).map(|c| of(c).map(|s| s.0).sum()).collect();
        Ok((values, of(0).map(|s| s.1).sum()))
    }

    /// Strengths of an elastic net for cure and time, each the best of the other's best.
    fn choose_strengths(&self, terms: &Terms, family: Family, mixing: f64) -> Result<[f64; 2], Error> {
        let mut strengths = [FIRST_STRENGTH; 2];
        for part in [CURE, TIME] {
            let at = |strength: f64| {
                let mut strengths = strengths;
                strengths[part] = strength;
                let penalty = Penalty::ElasticNet { mixing, strengths: strengths.into() };
                JointOptions { family, penalty, groups: self.covariate_groups(), rounds: 0, ..JointOptions::default() }
            };
            let (values, _) = self.out_of_fold(terms, &STRENGTHS.map(at))?;
            let best = (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b]).then(b.cmp(&a)));
            strengths[part] = STRENGTHS[best.unwrap_or(0)];
        }
        Ok(strengths)
    }

    /// Mean out-of-fold log-likelihood of each family under linear terms, on a sample of units.
    fn compare_families(&self, terms: &Terms) -> Result<Vec<(Family, f64)>, Error> {
        let compare = |families: &[Family]| -> Result<Vec<(Family, f64)>, Error> {
            let options = |&family: &Family| JointOptions { family, rounds: 0, ..JointOptions::default() };
            let (sums, count) = self.out_of_fold(terms, &families.iter().map(options).collect::<Vec<_>>())?;
            let mean = |(&family, sum): (&Family, f64)| (family, sum / f64::max(count as f64, 1.0));
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

    /// The metric of each estimand in each arm: own importance, some of the other arm's, and a floor.
    fn metrics(&self, model: &JointModel) -> [[Metric; 2]; 2] {
        [CURE, TIME].map(|part| {
            [0, 1].map(|z| {
                let (own, other) = {
                    let importance = &model.importance[Estimand::BOTH[part]];
                    (&importance[Arm::BOTH[z]], &importance[Arm::BOTH[z].other()])
                };
                let mut raw: Vec<f64> = own.iter().zip(other).map(|(a, b)| a + self.options.borrowed * b).collect();
                // A category has one weight, that of all its levels together: a difference of level is then one distance.
                for c in self.cohort.schema().iter().filter(|c| c.is_category()) {
                    let sum: f64 = raw[c.columns()].iter().sum();
                    raw[c.columns()].fill(sum);
                }
                let largest = raw.iter().copied().fold(1e-6, f64::max);
                let floor = self.options.floor.min(1.0 / raw.len() as f64);
                let weights = raw.iter().map(|w| w + floor * largest).collect();
                Metric { weights, scaling: self.place.scaling.clone() }
            })
        })
    }

    /// The group sizes that are tried, largest first.
    fn group_sizes(&self) -> Vec<usize> {
        // The unit itself is never in its group, so the smaller arm may have one unit less to offer.
        let smaller = self.place.pools[0].len().min(self.place.pools[1].len());
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

/// What the models say: of each unit that of the fold which left it out, and of each pool that of every fold.
struct Predictions {
    of_unit: Vec<[Prediction; 2]>,
    of_pool: Vec<[Vec<Expected>; 2]>,
}

impl Predictions {
    fn new(setting: &Setting, models: &[FoldModel]) -> Predictions {
        let n = setting.cohort.n_units();
        let of_unit = (0..n)
            .into_par_iter()
            .with_min_len(256)
            .map(|i| models[setting.fold_of[i] as usize].predictor.predict(setting.row(i)).into_array())
            .collect();
        Predictions { of_unit, of_pool: models.par_iter().map(|m| setting.place.expected_by(m)).collect() }
    }
}

/// Own-arm loss of a corrected value against what was seen of the unit.
///
/// Cure: minus the log-likelihood of the cure part, the latency being the model's:
/// `−ln(1 − S)` for an event, else `−ln(S + (1 − S)(1 − F(y)/F(H)))`.
/// Time: the gamma deviance `y/m − 1 − ln(y/m)` of an event, weighted by 1/G(y−); it is proper for the
/// mean. A unit without event says nothing.
fn loss(setting: &Setting, model: &Predictor, i: usize, p: &Prediction, part: usize, offset: f64, weight: f64) -> f64 {
    let (time, event) = (setting.cohort.time(i), setting.cohort.event(i));
    if part == CURE {
        let eta = p.cure_logit + weight * offset;
        if event {
            return log1pexp(eta);
        }
        let s = expit(eta);
        return -(s + (1.0 - s) * (1.0 - model.event_share(p, time))).max(1e-300).ln();
    }
    if !event {
        return 0.0;
    }
    let ratio = time / corrected_time(p, offset, weight, setting.cohort.horizon());
    (ratio - 1.0 - ratio.ln()) * setting.censoring[setting.cohort.arm(i).index()].inverse_before(time)
}

/// The units with the smallest hashes, in order: a sample that does not depend on the order of rows.
fn hashed_sample(cohort: &Cohort, key: u64, most: usize) -> Vec<u32> {
    let mut keyed: Vec<(u64, u32)> =
        (0..cohort.n_units() as u32).map(|i| (hash_id(key, &cohort.ids().text(i as usize)), i)).collect();
    keyed.sort_unstable();
    keyed.truncate(most);
    let mut units: Vec<u32> = keyed.into_iter().map(|(_, i)| i).collect();
    units.sort_unstable();
    units
}

/// Mean and standard error of a loss difference.
fn mean_and_se(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let (n, sum) = values.clone().fold((0.0, 0.0), |(n, s), v| (n + 1.0, s + v));
    let mean = sum / f64::max(n, 1.0);
    let ss: f64 = values.map(|v| (v - mean) * (v - mean)).sum();
    (mean, (ss / f64::max(n - 1.0, 1.0) / f64::max(n, 1.0)).sqrt())
}

/// Says where a long run stands; an error stops it.
pub type Progress<'a> = &'a (dyn Fn(&'static str, usize, usize) -> Result<(), Error> + Sync);

/// What was made of each unit of a cohort, or why nothing was.
pub type Estimates = Vec<Result<Effect, Unserved>>;

/// Estimates every unit of a cohort. `scaling` standardises; `rules` say who may be in a group; the seed deals the folds.
pub fn estimate(
    cohort: &Cohort,
    scaling: &Scaling,
    rules: Option<Rules>,
    options: &AdjustedOptions,
    seed: u64,
    progress: Progress<'_>,
) -> Result<(CrossFit, Estimates), Error> {
    let mut setting = Setting::new(cohort, scaling, rules, options, seed);
    let terms = Terms::new(&setting.place.x, setting.p());
    progress("choosing the latency", 0, 1)?;
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
    let penalty = penalty
        .map_or(Penalty::Learned, |(mixing, strengths)| Penalty::ElasticNet { mixing, strengths: strengths.into() });
    let joint_options = JointOptions { family, penalty, groups: setting.covariate_groups(), ..JointOptions::default() };
    let first = estimate_once(&setting, &terms, &joint_options, progress)?;
    let (mut deals, path, mut effects, mut residuals) = (vec![first.deal], first.path, first.effects, first.residuals);
    let mut averages = split_averages(&setting, 0, &effects);
    let sizes = options.deals();
    if sizes.len() > 1 {
        let corrected = |effects: &Estimates| -> Vec<Option<Corrected>> {
            effects.iter().map(|e| e.as_ref().ok().and_then(|e| e.corrected)).collect()
        };
        deals[0].values = deal_values(&effects, &residuals);
        let mut of_deals = vec![corrected(&effects)];
        for (d, &folds) in sizes.iter().enumerate().skip(1) {
            setting.deal(folds, seed_of_deal(seed, d));
            let again = estimate_once(&setting, &terms, &joint_options, progress)?;
            of_deals.push(corrected(&again.effects));
            averages.extend(split_averages(&setting, d, &again.effects));
            deals.push(Deal { values: deal_values(&again.effects, &again.residuals), ..again.deal });
            for (sum, r) in residuals.iter_mut().zip(&again.residuals) {
                *sum = Residual { cure: sum.cure + r.cure, time: sum.time + r.time };
            }
        }
        let n = sizes.len() as f64;
        residuals.iter_mut().for_each(|r| *r = Residual { cure: r.cure / n, time: r.time / n });
        for (i, effect) in effects.iter_mut().enumerate() {
            if let Ok(e) = effect {
                // Who has groups does not depend on the deal.
                let all: Vec<Corrected> = of_deals.iter().filter_map(|s| s[i]).collect();
                e.corrected = Some(pooled(&all));
            }
        }
    }
    Ok((CrossFit { deals, family, families, strengths, path, residuals, averages }, effects))
}

fn deal_values(effects: &Estimates, residuals: &[Residual]) -> Vec<DealValues> {
    let of = |(effect, residual): (&Result<Effect, Unserved>, &Residual)| {
        let corrected = effect.as_ref().ok().and_then(|e| e.corrected);
        DealValues {
            cure_probability: corrected.map_or([f64::NAN; 2], |c| c.cure_probability),
            mean_event_time: corrected.map_or([f64::NAN; 2], |c| c.mean_event_time),
            residual: *residual,
        }
    };
    effects.iter().zip(residuals).map(of).collect()
}

/// The averages of each split of a deal.
fn split_averages(setting: &Setting, deal: usize, effects: &Estimates) -> Vec<SplitAverage> {
    let of = |fold: usize| {
        let there: Vec<&Effect> = (effects.iter().zip(&setting.fold_of))
            .filter(|(_, f)| **f as usize == fold)
            .filter_map(|(e, _)| e.as_ref().ok())
            .collect();
        let n = there.len() as f64;
        let value = |e: &Effect, part: usize| if part == CURE { e.cure() } else { e.time().unwrap_or(f64::NAN) };
        let mean = [CURE, TIME].map(|part| there.iter().map(|e| value(e, part)).sum::<f64>() / n);
        let sd = [CURE, TIME].map(|part| {
            let off = |e: &&Effect| value(e, part) - mean[part];
            (there.iter().map(|e| off(e) * off(e)).sum::<f64>() / (n - 1.0).max(0.0)).sqrt()
        });
        SplitAverage { deal, n_units: there.len(), mean, sd }
    };
    (0..setting.folds).map(of).collect()
}

/// What one deal gives.
struct Once {
    deal: Deal,
    path: Vec<PathPoint>,
    effects: Estimates,
    residuals: Vec<Residual>,
}

/// The splits of one deal: each leaves out a fold of the setting.
fn estimate_once(
    setting: &Setting,
    terms: &Terms,
    joint_options: &JointOptions,
    progress: Progress<'_>,
) -> Result<Once, Error> {
    let (cohort, options) = (setting.cohort, setting.options);
    progress("fitting the folds", 0, setting.folds)?;
    let kappa = 4.0 * f64::max(1.0, cohort.n_units() as f64 / options.units_for_certainty);
    let fits: Vec<(FoldModel, [[Metric; 2]; 2], Vec<String>)> = (0..setting.folds)
        .into_par_iter()
        .map(|fold| {
            let training: Vec<u32> =
                (0..cohort.n_units() as u32).filter(|&i| setting.fold_of[i as usize] as usize != fold).collect();
            let model = setting.fit(&training, terms, joint_options)?;
            let metrics = setting.metrics(&model);
            let warnings = model.certificate.flags.iter().map(ToString::to_string).collect();
            let covariance = model.certainty(Some(kappa)).covariance();
            Ok((FoldModel { predictor: model.predictor, covariance }, metrics, warnings))
        })
        .collect::<Result<_, Error>>()?;
    let (mut models, mut metrics, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for (model, of_model, flags) in fits {
        models.push(model);
        metrics.push(of_model);
        warnings.push(flags);
    }
    let predictions = Predictions::new(setting, &models);

    let sizes = setting.group_sizes();
    let Tuned { choices, path, known, searches } = choose(setting, &models, &metrics, &predictions, &sizes, progress)?;

    let done = AtomicUsize::new(0);
    let matched: Vec<Matched> = (0..setting.folds)
        .into_par_iter()
        .map(|fold| {
            progress("matching", done.load(Relaxed), setting.folds)?;
            let learned = Learned { model: &models[fold], metrics: &metrics[fold], choices: &choices[fold] };
            let matched = match_fold(setting, fold, &learned, &predictions, &sizes, &known, &searches);
            done.fetch_add(1, Relaxed);
            Ok(matched)
        })
        .collect::<Result<_, Error>>()?;
    let mut effects: Vec<Option<Result<Effect, Unserved>>> = vec![None; cohort.n_units()];
    let mut residuals = vec![Residual::default(); cohort.n_units()];
    let (mut leftover, mut served) = ([[0.0; 2]; 2], 0);
    for fold in matched {
        (0..2).for_each(|part| (0..2).for_each(|z| leftover[part][z] += fold.leftover[part][z]));
        served += fold.effects.iter().flatten().count();
        for ((&i, effect), residual) in fold.units.iter().zip(fold.effects).zip(fold.residuals) {
            effects[i as usize] = Some(effect);
            residuals[i as usize] = residual;
        }
    }
    leftover.iter_mut().flatten().for_each(|sum| *sum = (*sum / f64::max(served as f64, 1.0)).max(0.0));
    let mut effects: Estimates = effects.into_iter().map(|e| e.expect("every unit is in a fold")).collect();
    for (effect, &fold) in effects.iter_mut().zip(&setting.fold_of) {
        if let Some(c) = effect.as_mut().ok().and_then(|e| e.corrected.as_mut()) {
            add_leftover(c, &choices[fold as usize], &leftover);
        }
    }
    progress("matching", setting.folds, setting.folds)?;
    let folds = (metrics.into_iter().zip(choices).zip(warnings))
        .map(|((metrics, choices), warnings)| Fold { metrics, choices, warnings })
        .collect();
    let deal = Deal { fold_of: setting.fold_of.clone(), folds, models, leftover, values: Vec::new() };
    Ok(Once { deal, path, effects, residuals })
}

/// What a fold learned.
struct Learned<'a> {
    model: &'a FoldModel,
    metrics: &'a [[Metric; 2]; 2],
    choices: &'a [Choice; 2],
}

/// What was made of the units of a fold.
struct Matched {
    units: Vec<u32>,
    effects: Estimates,
    residuals: Vec<Residual>,
    /// Sums of what the squared offsets are beyond their variances.
    leftover: [[f64; 2]; 2],
}

/// Finds the groups of a fold's units and corrects what they say. `known` has those that are known already, at each of the sizes, and `searches`
/// what is ready to be searched, by fold, estimand and arm.
fn match_fold(
    setting: &Setting,
    fold: usize,
    learned: &Learned<'_>,
    predictions: &Predictions,
    sizes: &[usize],
    known: &Known,
    searches: &[Option<GroupSearch<'_>>],
) -> Matched {
    let (cohort, options) = (setting.cohort, setting.options);
    let Learned { model, metrics, choices } = *learned;
    let units = units_of_fold(&setting.fold_of, fold);
    let found = [CURE, TIME].map(|part| {
        let k = choices[part].group_size;
        let size = sizes.iter().position(|&s| s == k);
        // How far the group of a unit reaches in one arm is a guess for the other, whose metric is much the same.
        let mut reach: Option<Vec<f64>> = None;
        let total = |z: usize| metrics[part][z].weights.iter().sum::<f64>();
        let scale = total(1) / total(0);
        [0, 1].map(|z| {
            let made;
            let search = match &searches[4 * fold + 2 * part + z] {
                Some(search) => search,
                None => {
                    made = GroupSearch::new(&setting.place, &metrics[part][z], part, z, &predictions.of_pool[fold]);
                    &made
                }
            };
            let known = |&i: &u32| match size {
                Some(size) if cohort.arm(i as usize).index() == z => known[part][i as usize].get(size).copied(),
                _ => None,
            };
            let is_sought: Vec<bool> = units.iter().map(|i| known(i).is_none()).collect();
            let sought: Vec<u32> = units.iter().zip(&is_sought).filter(|(_, is)| **is).map(|(i, _)| *i).collect();
            let hints: Option<Vec<f64>> = reach.take().map(|reach| {
                reach.into_iter().zip(&is_sought).filter(|(_, is)| **is).map(|(d, _)| d * scale).collect()
            });
            let (rows, own) = queries_of(cohort, &sought);
            let mut found = search.offsets(&Queries { covariates: &rows, own: &own }, k, hints.as_deref()).into_iter();
            let each = |i: &u32| known(i).map_or_else(|| found.next().expect("each that was sought"), Ok);
            let found: Vec<Result<Offset, usize>> = units.iter().map(each).collect();
            let squared = |o: &Result<Offset, usize>| o.as_ref().map_or(0.0, |o| o.group.diameter * o.group.diameter);
            reach = Some(found.iter().map(squared).collect());
            found
        })
    });
    let found = all_four(found, options.fewest());
    let leftover = [CURE, TIME].map(|part| {
        [0, 1].map(|z| {
            let there = found.iter().flatten().map(|four| &four[part][z]);
            there.map(|o| o.offset * o.offset - o.variance).sum::<f64>()
        })
    });
    let scaled: Vec<f64> = units.iter().flat_map(|&i| setting.row(i as usize)).copied().collect();
    let certainty = model.certainty();
    let of_model = Estimand::BOTH.map(|part| certainty.spreads(part, &scaled));
    let residual = |(&i, four): (&u32, &Result<Four, Unserved>)| {
        let Ok(four) = four else { return Residual::default() };
        let (i, z) = (i as usize, cohort.arm(i as usize).index());
        let p = &predictions.of_unit[i][z];
        let cured = corrected_cure(p, four[CURE][z].offset, choices[CURE].weight);
        // The residual is that of the corrected curve, so its latency has the corrected mean.
        let mean = corrected_time(p, four[TIME][z].offset, choices[TIME].weight, cohort.horizon());
        let p = model.predictor.with_mean(p, mean);
        setting.censoring[z].residual(&model.predictor, &p, cured, cohort.time(i), cohort.event(i))
    };
    let residuals = units.par_iter().zip(&found).with_min_len(64).map(residual).collect();
    let effect = |(q, (&i, four)): (usize, (&u32, Result<Four, Unserved>))| {
        four.map(|four| {
            let of_model = [CURE, TIME].map(|part| of_model[part][q]).map(|s| (s.variance.into_array(), s.covariance));
            let corrected = correct(&predictions.of_unit[i as usize], &four, choices, of_model, cohort.horizon());
            Effect { arms: arms(&four), corrected: Some(corrected) }
        })
    };
    let effects = units.iter().zip(found).enumerate().map(effect).collect();
    Matched { units, effects, residuals, leftover }
}

/// Of each estimand and unit the groups in its own arm at each of the sizes; none where they were not asked for.
type Known = [Vec<Vec<Offset>>; 2];

/// K and w of each estimand in each fold, the path over all, and the groups that were found on the way.
struct Tuned<'a> {
    choices: Vec<[Choice; 2]>,
    path: Vec<PathPoint>,
    known: Known,
    /// Of each fold, estimand and arm, where they are few enough to be kept.
    searches: Vec<Option<GroupSearch<'a>>>,
}

/// Coordinates of all folds' indices up to which they are kept from the choice of K for the groups: some 100 MB.
const KEPT_COORDINATES: usize = 10_000_000;

/// K and w of each estimand in each fold, from units of the other folds.
fn choose<'a>(
    setting: &'a Setting,
    models: &[FoldModel],
    metrics: &'a [[[Metric; 2]; 2]],
    predictions: &'a Predictions,
    sizes: &[usize],
    progress: Progress<'_>,
) -> Result<Tuned<'a>, Error> {
    let options = setting.options;
    let weights = options.weights_for(setting.cohort.n_units());
    let kept = 2 * models.len() * setting.cohort.all_covariates().len() <= KEPT_COORDINATES;
    let candidates: Vec<Choice> =
        sizes.iter().flat_map(|&k| weights.iter().map(move |&weight| Choice { group_size: k, weight })).collect();
    let sample = hashed_sample(setting.cohort, setting.seed ^ 0x7475_6e65, options.tuning_units);
    let jobs: Vec<(usize, usize, usize)> = (0..models.len())
        .flat_map(|fold| [CURE, TIME].into_iter().flat_map(move |part| [0, 1].map(|z| (fold, part, z))))
        .collect();
    let done = AtomicUsize::new(0);
    // Of units of the sample: the groups at each size, and losses against that of the first candidate.
    type Scored<'a> = (Option<GroupSearch<'a>>, Vec<(usize, Vec<Offset>, Vec<f64>)>);
    let scored: Vec<Scored<'a>> = jobs
        .par_iter()
        .map(|&(fold, part, z)| {
            progress("choosing the group size", done.load(Relaxed) / 4, models.len())?;
            let is_here = |i: usize| setting.fold_of[i] as usize == fold && setting.cohort.arm(i).index() == z;
            let of_fold: Vec<usize> = (0..sample.len()).filter(|&s| is_here(sample[s] as usize)).collect();
            if of_fold.is_empty() {
                return Ok((None, Vec::new()));
            }
            let units: Vec<u32> = of_fold.iter().map(|&s| sample[s]).collect();
            let (metric, expected) = (&metrics[fold][part][z], &predictions.of_pool[fold]);
            let search = GroupSearch::new(&setting.place, metric, part, z, expected);
            let (rows, own) = queries_of(setting.cohort, &units);
            let offsets = search.offsets_at(&Queries { covariates: &rows, own: &own }, sizes);
            done.fetch_add(1, Relaxed);
            // Nothing is learned from a unit that constraints leave without a group.
            let there = of_fold.iter().zip(offsets).filter_map(|(&s, offsets)| Some((s, offsets.ok()?)));
            let scored = there.map(|(s, offsets)| {
                let i = sample[s] as usize;
                let p = &predictions.of_unit[i][z];
                let of_size = |o: &Offset| weights.iter().map(|&w| (o.offset, w)).collect::<Vec<_>>();
                let all = offsets.iter().flat_map(of_size);
                let losses: Vec<f64> =
                    all.map(|(offset, w)| loss(setting, &models[fold].predictor, i, p, part, offset, w)).collect();
                let differences = losses.iter().map(|l| l - losses[0]).collect();
                (s, offsets, differences)
            });
            let scored = scored.collect();
            Ok((kept.then_some(search), scored))
        })
        .collect::<Result<_, Error>>()?;
    // differences[part][unit of the sample][candidate].
    let mut differences: [Vec<Vec<f64>>; 2] = [vec![Vec::new(); sample.len()], vec![Vec::new(); sample.len()]];
    let mut known: Known = [(); 2].map(|()| vec![Vec::new(); setting.cohort.n_units()]);
    let mut searches = Vec::with_capacity(jobs.len());
    for (&(_, part, _), (search, scored)) in jobs.iter().zip(scored) {
        searches.push(search);
        for (s, offsets, of_candidates) in scored {
            known[part][sample[s] as usize] = offsets;
            differences[part][s] = of_candidates;
        }
    }
    let fold_of_sample: Vec<usize> = sample.iter().map(|&i| setting.fold_of[i as usize] as usize).collect();
    let scored = |part: usize, c: usize, leave: Option<usize>| {
        let kept = (0..sample.len()).filter(|&s| leave != Some(fold_of_sample[s]));
        let values: Vec<f64> = kept.filter_map(|s| differences[part][s].get(c).copied()).collect();
        mean_and_se(values.iter().copied())
    };
    let choices = (0..models.len())
        .map(|fold| {
            [CURE, TIME].map(|part| {
                let score = |c: usize| {
                    let (mean, se) = scored(part, c, Some(fold));
                    mean + options.caution * se
                };
                let scores: Vec<f64> = (0..candidates.len()).map(score).collect();
                // The first of equals: the largest group and the smallest weight.
                let best = (0..scores.len()).min_by(|&a, &b| scores[a].total_cmp(&scores[b]).then(a.cmp(&b)));
                candidates[best.unwrap_or(0)]
            })
        })
        .collect();
    let path = [CURE, TIME]
        .into_iter()
        .flat_map(|part| (0..candidates.len()).map(move |c| (part, c)))
        .map(|(part, c)| {
            let (loss, se) = scored(part, c, None);
            PathPoint { is_time: part == TIME, choice: candidates[c], loss, se }
        })
        .collect();
    Ok(Tuned { choices, path, known, searches })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_weight_falls_with_the_root_of_the_units() {
        let options = AdjustedOptions::default();
        assert_eq!(options.weights_for(2_000), [0.25, 0.5, 0.75, 1.0]);
        assert_eq!(options.weights_for(3_000), [0.25, 0.5, 0.75, 1.0]);
        assert_eq!(options.weights_for(12_000), [0.125, 0.25, 0.5, 0.75, 1.0]);
    }
}
