//! The adjusted estimator: match groups corrected by what a cross-fitted cure model knows.
//!
//! 1. *Folds.* Every unit is in one fold, by the hash of its id. A unit is estimated with the model of
//!    the fold that left it out: its own outcome trains no coefficient, metric, group or correction
//!    that is used for it.
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

use crate::cohort::{Arm, Cohort};
use crate::effect::{ArmEstimate, Corrected, Effect, GroupEstimate, Matcher, Pool, Scratch, Spread};
use crate::error::{Error, Problem, ProblemKind};
use crate::joint::{self, Family, JointModel, JointOptions, Part, Prediction, Terms, TwoArms};
use crate::martingale::{Censoring, Residual};
use crate::metric::{Metric, Scaling};
use crate::numeric::{expit, log1pexp};
use crate::split::hash_id;
use rayon::prelude::*;

/// How the adjusted estimator works. All constants stand here, with their reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct AdjustedOptions {
    /// Number of folds. Ten train on 90 % of the units; five cost 8 % in accuracy, more gain little.
    pub folds: usize,
    /// The latency family; `None` chooses by out-of-fold likelihood.
    pub family: Option<Family>,
    /// K for both estimands; `None` chooses from the data.
    pub group_size: Option<usize>,
    /// The largest K that is tried, besides half of the smaller arm. A thousand lowers the error at n = 20,000 by
    /// another 15 %, far below what is needed, at three times the time and with groups that nobody can look through.
    pub largest_group: usize,
    /// The smallest K that is tried: with fewer a curve at H rests on a handful.
    pub smallest_group: usize,
    /// Weights of the group's offset that are tried; never 0, so that every estimate rests on its group.
    pub weights: [f64; 4],
    /// A candidate (K, w) must beat the reference by this many standard errors of the loss difference.
    pub caution: f64,
    /// Units on which K and w are chosen, at most; a fixed sample by hash of id.
    pub tuning_units: usize,
    /// Units on which latency families are compared, at most (a fixed sample by hash of id); the shape of the
    /// event times shows in a few thousand.
    pub family_units: usize,
    /// Share of the other arm's importance in an arm's metric.
    pub borrowed: f64,
    /// Every covariate keeps this share of the largest weight.
    pub floor: f64,
    /// Smallest censoring survival that a loss is divided by.
    pub smallest_censoring_survival: f64,
    /// For intervals: no slope is held more than κ = √(n/this) times more certain than its data alone make it. Weak effects
    /// that the prior did not find are there all the same; with more units fewer of them are missed. 125 (κ = 4 at n = 2,000) was
    /// chosen on cohorts other than those that docs/methods.md reports coverage on.
    pub units_for_certainty: f64,
}

impl Default for AdjustedOptions {
    fn default() -> AdjustedOptions {
        AdjustedOptions {
            folds: 10,
            family: None,
            group_size: None,
            largest_group: 250,
            smallest_group: 25,
            weights: [0.25, 0.5, 0.75, 1.0],
            caution: 2.0,
            tuning_units: 4000,
            family_units: 6000,
            borrowed: 0.5,
            floor: 0.02,
            smallest_censoring_survival: 0.05,
            units_for_certainty: 125.0,
        }
    }
}

impl AdjustedOptions {
    /// What is wrong with these options for arms of these sizes (control, treated).
    pub fn problems(&self, arm_sizes: [usize; 2]) -> Vec<Problem> {
        let mut out = Vec::new();
        if !(2..=50).contains(&self.folds) {
            out.push(Problem::error(
                ProblemKind::BadOption,
                format!("the number of splits is {}", self.folds),
                "a unit is estimated by models that did not see it, so there are 2 to 50 splits",
                "use --splits 10",
            ));
        }
        for arm in Arm::BOTH {
            let n = arm_sizes[arm.index()];
            let needed = self.group_size.map_or(2 * self.smallest_group, |k| k + 1).max(2 * self.folds);
            if n < needed {
                out.push(Problem::error(
                    ProblemKind::ArmTooSmall,
                    format!("the {} arm has {n} units", arm.name()),
                    "each arm needs at least two units for each split, and more than a group",
                    format!("the adjusted estimator needs {needed} units in each arm here; use fewer --splits or a smaller --group-size"),
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

/// Everything that the adjusted estimator learned.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossFit {
    /// The fold of each unit.
    pub fold_of: Vec<u8>,
    /// The folds.
    pub folds: Vec<Fold>,
    /// The model of each fold; empty in a run that was reopened.
    pub models: Vec<JointModel>,
    /// The latency family.
    pub family: Family,
    /// Mean out-of-fold log-likelihood of each family that was compared.
    pub families: Vec<(Family, f64)>,
    /// The path of K and w, over all folds together.
    pub path: Vec<PathPoint>,
    /// What each unit's outcome says beyond its corrected curve in its own arm.
    pub residuals: Vec<Residual>,
    /// What the offsets of the groups vary beyond their noise, on the scale of the correction: cure and time, each in control and
    /// treated.
    pub leftover: [[f64; 2]; 2],
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
    cohort: &'a Cohort,
    options: &'a AdjustedOptions,
    seed: u64,
    fold_of: Vec<u8>,
    /// Standardised covariates, row-major.
    x: Vec<f64>,
    scaling: Scaling,
    pools: [Pool; 2],
    /// The censoring curve of each arm.
    censoring: [Censoring; 2],
}

impl<'a> Setting<'a> {
    fn new(cohort: &'a Cohort, scaling: &Scaling, options: &'a AdjustedOptions, seed: u64) -> Setting<'a> {
        let pools = Arm::BOTH.map(|z| Pool::new(cohort, cohort.units_of(z)));
        let censoring = pools.each_ref().map(|pool| {
            let units: Vec<usize> = pool.units.iter().map(|&i| i as usize).collect();
            let time: Vec<f64> = units.iter().map(|&i| cohort.time(i)).collect();
            // Reaching H is not censoring: nobody is lost there.
            let lost: Vec<bool> =
                units.iter().map(|&i| !cohort.event(i) && cohort.time(i) < cohort.horizon()).collect();
            Censoring::new(&time, &lost, cohort.horizon(), options.smallest_censoring_survival)
        });
        Setting {
            cohort,
            options,
            seed,
            fold_of: deal_folds(cohort, options.folds, seed),
            x: scaling.apply(cohort.all_covariates()),
            scaling: scaling.clone(),
            pools,
            censoring,
        }
    }

    fn p(&self) -> usize {
        self.cohort.n_covariates()
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.x[i * self.p()..(i + 1) * self.p()]
    }

    /// Fits the two-arm model on these units.
    fn fit(&self, units: &[u32], terms: &Terms, options: &JointOptions) -> Result<JointModel, Error> {
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
        joint::fit(&data, terms, options).map_err(|e| Error::Model { arm: "joint", reason: e.to_string() })
    }

    /// Mean out-of-fold log-likelihood of each family under linear terms, on a sample of units.
    fn compare_families(&self, terms: &Terms) -> Result<Vec<(Family, f64)>, Error> {
        let sample = hashed_sample(self.cohort, self.seed ^ 0x6661_6d69, self.options.family_units);
        let folds = (2 * self.options.family_units / sample.len().max(1)).clamp(2, self.options.folds);
        let jobs: Vec<(Family, usize)> =
            Family::ALL.into_iter().flat_map(|f| (0..folds).map(move |k| (f, k))).collect();
        let sums: Vec<(f64, usize)> = jobs
            .par_iter()
            .map(|&(family, fold)| {
                let options = JointOptions { family, rounds: 0, ..JointOptions::default() };
                let (held_out, training): (Vec<u32>, Vec<u32>) =
                    sample.iter().copied().partition(|&i| self.fold_of[i as usize] as usize == fold);
                let model = self.fit(&training, terms, &options)?;
                let value = |&i: &u32| {
                    let (i, z) = (i as usize, self.cohort.arm(i as usize).index());
                    model.log_likelihood(z, &model.predict(self.row(i))[z], self.cohort.time(i), self.cohort.event(i))
                };
                Ok((held_out.iter().map(value).sum(), held_out.len()))
            })
            .collect::<Result<_, Error>>()?;
        Ok(Family::ALL
            .into_iter()
            .map(|family| {
                let of_family = jobs.iter().zip(&sums).filter(|((f, _), _)| *f == family);
                let (sum, count) = of_family.fold((0.0, 0), |(s, c), (_, (v, k))| (s + v, c + k));
                (family, sum / f64::max(count as f64, 1.0))
            })
            .collect())
    }

    /// The metric of each estimand in each arm: own importance, some of the other arm's, and a floor.
    fn metrics(&self, model: &JointModel) -> [[Metric; 2]; 2] {
        [CURE, TIME].map(|part| {
            [0, 1].map(|z| {
                let (own, other) = (&model.importance[part][z], &model.importance[part][1 - z]);
                let mut raw: Vec<f64> = own.iter().zip(other).map(|(a, b)| a + self.options.borrowed * b).collect();
                // A category has one weight, that of all its levels together: a difference of level is then one distance.
                for c in self.cohort.schema().iter().filter(|c| c.is_category()) {
                    let sum: f64 = raw[c.columns()].iter().sum();
                    raw[c.columns()].fill(sum);
                }
                let largest = raw.iter().copied().fold(1e-6, f64::max);
                let weights = raw.iter().map(|w| w + self.options.floor * largest).collect();
                Metric { weights, scaling: self.scaling.clone() }
            })
        })
    }

    /// The group sizes that are tried, largest first.
    fn group_sizes(&self) -> Vec<usize> {
        // The unit itself is never in its group, so the smaller arm may have one unit less to offer.
        let smaller = self.pools[0].len().min(self.pools[1].len());
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

/// What a group says, and what the model says of its members.
#[derive(Clone, Copy, Debug)]
struct Offset {
    group: GroupEstimate,
    /// `logit S̃_G − logit S̄_G` or `ln(m_G / m̄_G)`; 0 where the group has no event.
    offset: f64,
    /// Variance of the offset that the group's curve brings.
    variance: f64,
}

/// Variance of `logit S̃_G`, `1/(n′ S̃ (1 − S̃))` with n′ the group's effective size: `G/(1 − S)²` with Greenwood's sum G where that is
/// defined.
fn cure_variance(group: &GroupEstimate, smoothed: f64) -> f64 {
    1.0 / (group.curve.effective_size() * smoothed * (1.0 - smoothed))
}

/// Variance of `ln m_G`; below two events that of an exponential time.
fn time_variance(group: &GroupEstimate) -> f64 {
    match (group.curve.mean_event_time(), group.curve.mean_event_time_se()) {
        (Some(m), Some(se)) if m > 0.0 => (se / m) * (se / m),
        _ => 1.0,
    }
}

fn logit(p: f64) -> f64 {
    p.ln() - (-p).ln_1p()
}

/// S_G drawn by half a unit towards the model, so that 0 and 1 have a logit.
fn smoothed(survival: f64, mean_model: f64, k: usize) -> f64 {
    let k = k as f64;
    ((k * survival + 0.5 * mean_model) / (k + 0.5)).clamp(1e-4, 1.0 - 1e-4)
}

/// Groups of one arm under one metric of one fold.
struct GroupSearch<'a> {
    matcher: Matcher<'a>,
    pool: &'a Pool,
    metric: &'a Metric,
    part: usize,
    /// The fold's model at each unit of the pool.
    model: &'a [Expected],
}

/// What a model says of a unit of the pool in its own arm.
#[derive(Clone, Copy, Debug)]
struct Expected {
    cured: f64,
    mean_event_time: f64,
}

/// What the models say: of each unit that of the fold which left it out, and of each pool that of every fold.
struct Predictions {
    of_unit: Vec<[Prediction; 2]>,
    of_pool: Vec<[Vec<Expected>; 2]>,
}

impl Predictions {
    fn new(setting: &Setting, models: &[JointModel]) -> Predictions {
        let n = setting.cohort.n_units();
        let of_unit = (0..n)
            .into_par_iter()
            .with_min_len(256)
            .map(|i| models[setting.fold_of[i] as usize].predict(setting.row(i)))
            .collect();
        let expected = |p: Prediction| Expected { cured: p.cure_probability, mean_event_time: p.mean_event_time };
        let of_pool = models
            .iter()
            .map(|model| {
                [0, 1].map(|z| {
                    let rows = setting.pools[z].units.par_iter().map(|&i| setting.row(i as usize));
                    model.predict_arm(z, rows).into_iter().map(expected).collect()
                })
            })
            .collect();
        Predictions { of_unit, of_pool }
    }
}

impl<'a> GroupSearch<'a> {
    fn new(
        setting: &'a Setting,
        metric: &'a Metric,
        part: usize,
        z: usize,
        of_pool: &'a [Vec<Expected>; 2],
    ) -> GroupSearch<'a> {
        let pool = &setting.pools[z];
        GroupSearch { matcher: Matcher::new(pool, setting.cohort, metric), pool, metric, part, model: &of_pool[z] }
    }

    /// The groups of each unit at each size; the unit itself is in none of them.
    fn offsets(&self, cohort: &Cohort, units: &[u32], sizes: &[usize]) -> Vec<Vec<Offset>> {
        let covariates: Vec<f64> = units.iter().flat_map(|&i| cohort.covariates(i as usize)).copied().collect();
        let queries = self.metric.place(&covariates);
        let largest = sizes.iter().copied().max().expect("at least one group size");
        let asked = (largest + 1).min(self.pool.len());
        self.matcher.map(&queries, asked, |scratch, query, members, squared| {
            let own = self.pool.units.binary_search(&units[query]).ok();
            scratch.members.clear();
            scratch.distances.clear();
            for (&m, &d) in members.iter().zip(squared).filter(|(m, _)| Some(**m as usize) != own) {
                scratch.members.push(m);
                scratch.distances.push(d);
            }
            sizes
                .iter()
                .map(|&k| {
                    let k = k.min(scratch.members.len());
                    let group = GroupEstimate {
                        curve: self.pool.summary(&scratch.members[..k], &mut scratch.ranks),
                        diameter: scratch.distances[k - 1].sqrt(),
                    };
                    self.offset(group, &scratch.members[..k])
                })
                .collect()
        })
    }

    fn offset(&self, group: GroupEstimate, members: &[u32]) -> Offset {
        let (mut cured, mut uncured, mut time) = (0.0, 0.0, 0.0);
        for &m in members {
            let p = &self.model[m as usize];
            cured += p.cured;
            uncured += 1.0 - p.cured;
            time += (1.0 - p.cured) * p.mean_event_time;
        }
        if self.part == CURE {
            let model = cured / members.len() as f64;
            let share = smoothed(group.curve.survival, model, members.len());
            let offset = logit(share) - logit(model.clamp(1e-4, 1.0 - 1e-4));
            return Offset { group, offset, variance: cure_variance(&group, share) };
        }
        let offset = match group.curve.mean_event_time() {
            Some(mean) if uncured > 0.0 && time > 0.0 => (mean * uncured / time).ln(),
            _ => 0.0,
        };
        Offset { group, offset, variance: time_variance(&group) }
    }
}

/// The corrected probability of cure.
fn corrected_cure(p: &Prediction, offset: f64, weight: f64) -> f64 {
    expit(p.cure_logit + weight * offset)
}

/// The corrected mean event time; never at or beyond the horizon.
fn corrected_time(p: &Prediction, offset: f64, weight: f64, horizon: f64) -> f64 {
    (p.mean_event_time * (weight * offset).exp()).min(horizon.next_down())
}

/// Own-arm loss of a corrected value against what was seen of the unit.
///
/// Cure: minus the log-likelihood of the cure part, the latency being the model's:
/// `−ln(1 − S)` for an event, else `−ln(S + (1 − S)(1 − F(y)/F(H)))`.
/// Time: the gamma deviance `y/m − 1 − ln(y/m)` of an event, weighted by 1/G(y−); it is proper for the
/// mean. A unit without event says nothing.
fn loss(setting: &Setting, model: &JointModel, i: usize, p: &Prediction, part: usize, offset: f64, weight: f64) -> f64 {
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

/// Estimates every unit of a cohort. `scaling` standardises; the seed deals the folds.
pub fn estimate(
    cohort: &Cohort,
    scaling: &Scaling,
    options: &AdjustedOptions,
    seed: u64,
    progress: &(dyn Fn(&'static str, usize, usize) -> Result<(), Error> + Sync),
) -> Result<(CrossFit, Vec<Effect>), Error> {
    let setting = Setting::new(cohort, scaling, options, seed);
    let terms = Terms::new(&setting.x, setting.p());
    progress("choosing the latency", 0, 1)?;
    let families = match options.family {
        Some(_) => Vec::new(),
        None => setting.compare_families(&terms)?,
    };
    let best = families.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(family, _)| family);
    let family = options.family.or(best).unwrap_or(Family::LogNormal);

    progress("fitting the folds", 0, options.folds)?;
    let joint_options = JointOptions { family, ..JointOptions::default() };
    let models: Vec<JointModel> = (0..options.folds)
        .into_par_iter()
        .map(|fold| {
            let training: Vec<u32> =
                (0..cohort.n_units() as u32).filter(|&i| setting.fold_of[i as usize] as usize != fold).collect();
            setting.fit(&training, &terms, &joint_options)
        })
        .collect::<Result<_, _>>()?;
    let metrics: Vec<[[Metric; 2]; 2]> = models.iter().map(|m| setting.metrics(m)).collect();
    let predictions = Predictions::new(&setting, &models);

    let sizes = setting.group_sizes();
    let (choices, path) = choose(&setting, &models, &metrics, &predictions, &sizes, progress)?;

    let mut effects: Vec<Option<Effect>> = vec![None; cohort.n_units()];
    let mut residuals = vec![Residual::default(); cohort.n_units()];
    let mut leftover = [[0.0; 2]; 2];
    let kappa = (cohort.n_units() as f64 / options.units_for_certainty).sqrt();
    for fold in 0..models.len() {
        progress("matching", fold, options.folds)?;
        let units = units_of_fold(&setting.fold_of, fold);
        let found = [CURE, TIME].map(|part| {
            [0, 1].map(|z| {
                let search = GroupSearch::new(&setting, &metrics[fold][part][z], part, z, &predictions.of_pool[fold]);
                search.offsets(cohort, &units, &[choices[fold][part].group_size])
            })
        });
        for part in [CURE, TIME] {
            for z in [0, 1] {
                leftover[part][z] +=
                    found[part][z].iter().map(|o| o[0].offset * o[0].offset - o[0].variance).sum::<f64>();
            }
        }
        let rows: Vec<f64> = units.iter().flat_map(|&i| setting.row(i as usize)).copied().collect();
        let certainty = models[fold].certainty(Some(kappa));
        let of_model = [Part::Cure, Part::Time].map(|part| certainty.spreads(part, &rows));
        let of_units: Vec<Residual> = units
            .par_iter()
            .enumerate()
            .with_min_len(64)
            .map(|(q, &i)| {
                let (i, z) = (i as usize, cohort.arm(i as usize).index());
                let p = &predictions.of_unit[i][z];
                let cured = corrected_cure(p, found[CURE][z][q][0].offset, choices[fold][CURE].weight);
                setting.censoring[z].residual(&models[fold], p, cured, cohort.time(i), cohort.event(i))
            })
            .collect();
        for (q, &i) in units.iter().enumerate() {
            residuals[i as usize] = of_units[q];
            let p = &predictions.of_unit[i as usize];
            let [cure, time] = choices[fold];
            let spread = |part: usize| {
                let (model, covariance) = of_model[part][q];
                let w = choices[fold][part].weight;
                Spread { variance: [0, 1].map(|z| model[z] + w * w * found[part][z][q][0].variance), covariance }
            };
            let corrected = Corrected {
                cure_probability: [0, 1].map(|z| corrected_cure(&p[z], found[CURE][z][q][0].offset, cure.weight)),
                mean_event_time: [0, 1]
                    .map(|z| corrected_time(&p[z], found[TIME][z][q][0].offset, time.weight, cohort.horizon())),
                cure_spread: spread(CURE),
                time_spread: spread(TIME),
            };
            let arms =
                [0, 1].map(|z| ArmEstimate { cure: found[CURE][z][q][0].group, time: found[TIME][z][q][0].group });
            effects[i as usize] = Some(Effect { arms, corrected: Some(corrected) });
        }
    }
    leftover.iter_mut().flatten().for_each(|sum| *sum = (*sum / cohort.n_units() as f64).max(0.0));
    // What the correction leaves in: (1 − w)² of the leftover variance.
    for (effect, &fold) in effects.iter_mut().zip(&setting.fold_of) {
        if let Some(c) = effect.as_mut().and_then(|e| e.corrected.as_mut()) {
            for (part, spread) in [&mut c.cure_spread, &mut c.time_spread].into_iter().enumerate() {
                let left = 1.0 - choices[fold as usize][part].weight;
                (0..2).for_each(|z| spread.variance[z] += left * left * leftover[part][z]);
            }
        }
    }
    progress("matching", options.folds, options.folds)?;
    let folds = (metrics.into_iter().zip(&choices).zip(&models))
        .map(|((metrics, choices), model)| {
            let warnings = model.certificate.flags.iter().map(ToString::to_string).collect();
            Fold { metrics, choices: *choices, warnings }
        })
        .collect();
    let effects = effects.into_iter().map(|e| e.expect("every unit is in a fold")).collect();
    Ok((CrossFit { fold_of: setting.fold_of, folds, models, family, families, path, residuals, leftover }, effects))
}

/// Applies `f(scratch, members, squared distances)` to the group of each of these units of a fold, on all threads; the unit
/// itself is in none of its groups.
fn map_groups<T: Send>(
    cohort: &Cohort,
    pool: &Pool,
    metric: &Metric,
    units: &[u32],
    k: usize,
    f: impl Fn(&mut Vec<u32>, &[u32], &[f64]) -> T + Sync + Send,
) -> Vec<T> {
    let rows: Vec<f64> = units.iter().flat_map(|&i| cohort.covariates(i as usize)).copied().collect();
    let matcher = Matcher::new(pool, cohort, metric);
    matcher.map(&metric.place(&rows), (k + 1).min(pool.len()), |scratch, query, members, squared| {
        let Scratch { members: kept, distances, ranks } = scratch;
        kept.clear();
        distances.clear();
        let others = members.iter().zip(squared).filter(|(m, _)| pool.units[**m as usize] != units[query]);
        for (&m, &d) in others.take(k) {
            kept.push(m);
            distances.push(d);
        }
        f(ranks, kept, distances)
    })
}

/// The units of a fold.
fn units_of_fold(fold_of: &[u8], fold: usize) -> Vec<u32> {
    (0..fold_of.len() as u32).filter(|&i| fold_of[i as usize] as usize == fold).collect()
}

/// Units whose groups are held at a time: 65 MB of members at K = 250.
const BLOCK: usize = 65_536;

/// Visits the groups of all units in one arm under one estimand's metrics (0 cure, 1 time), in the order of the units: the position of the unit, the
/// places in the order of time of its members, ascending, and the distance to the nearest of them.
pub fn each_group(
    cohort: &Cohort,
    cross_fit: &CrossFit,
    pool: &Pool,
    part: usize,
    arm: Arm,
    mut visit: impl FnMut(usize, &[u32], f64),
) {
    let all: Vec<u32> = (0..cohort.n_units() as u32).collect();
    for block in all.chunks(BLOCK) {
        let mut groups: Vec<Option<(Vec<u32>, f64)>> = vec![None; block.len()];
        for (number, fold) in cross_fit.folds.iter().enumerate() {
            let units: Vec<u32> =
                block.iter().copied().filter(|&i| cross_fit.fold_of[i as usize] as usize == number).collect();
            let (metric, k) = (&fold.metrics[part][arm.index()], fold.choices[part].group_size);
            let found = map_groups(cohort, pool, metric, &units, k, |ranks, members, squared| {
                pool.order(members, ranks);
                (ranks.clone(), squared.first().map_or(f64::INFINITY, |d| d.sqrt()))
            });
            units.iter().zip(found).for_each(|(&i, group)| groups[(i - block[0]) as usize] = Some(group));
        }
        for (&i, group) in block.iter().zip(&groups) {
            let (ranks, nearest) = group.as_ref().expect("every unit is in a fold");
            visit(i as usize, ranks, *nearest);
        }
    }
}

/// The effects of a run that was saved: its groups are found again, their correction was kept.
pub fn regroup(cohort: &Cohort, cross_fit: &CrossFit, corrected: &[Corrected]) -> Vec<Effect> {
    let pools = Arm::BOTH.map(|z| Pool::new(cohort, cohort.units_of(z)));
    let mut effects: Vec<Option<Effect>> = vec![None; cohort.n_units()];
    for (number, fold) in cross_fit.folds.iter().enumerate() {
        let units = units_of_fold(&cross_fit.fold_of, number);
        let found = [CURE, TIME].map(|part| {
            [0, 1].map(|z| {
                let (pool, metric, k) = (&pools[z], &fold.metrics[part][z], fold.choices[part].group_size);
                map_groups(cohort, pool, metric, &units, k, |ranks, members, squared| GroupEstimate {
                    curve: pool.summary(members, ranks),
                    diameter: squared.last().copied().unwrap_or(0.0).sqrt(),
                })
            })
        });
        for (q, &i) in units.iter().enumerate() {
            let arms = [0, 1].map(|z| ArmEstimate { cure: found[CURE][z][q], time: found[TIME][z][q] });
            effects[i as usize] = Some(Effect { arms, corrected: Some(corrected[i as usize]) });
        }
    }
    effects.into_iter().map(|e| e.expect("every unit is in a fold")).collect()
}

/// K and w of each estimand in each fold, from units of the other folds; and the path over all.
fn choose(
    setting: &Setting,
    models: &[JointModel],
    metrics: &[[[Metric; 2]; 2]],
    predictions: &Predictions,
    sizes: &[usize],
    progress: &(dyn Fn(&'static str, usize, usize) -> Result<(), Error> + Sync),
) -> Result<(Vec<[Choice; 2]>, Vec<PathPoint>), Error> {
    let options = setting.options;
    let candidates: Vec<Choice> =
        sizes.iter().flat_map(|&k| options.weights.map(|weight| Choice { group_size: k, weight })).collect();
    let sample = hashed_sample(setting.cohort, setting.seed ^ 0x7475_6e65, options.tuning_units);
    // differences[part][unit of the sample][candidate], against the first candidate.
    let mut differences: [Vec<Vec<f64>>; 2] = [vec![Vec::new(); sample.len()], vec![Vec::new(); sample.len()]];
    for fold in 0..models.len() {
        progress("choosing the group size", fold, models.len())?;
        for part in [CURE, TIME] {
            for z in [0, 1] {
                let of_fold: Vec<usize> = (0..sample.len())
                    .filter(|&s| {
                        let i = sample[s] as usize;
                        setting.fold_of[i] as usize == fold && setting.cohort.arm(i).index() == z
                    })
                    .collect();
                if of_fold.is_empty() {
                    continue;
                }
                let units: Vec<u32> = of_fold.iter().map(|&s| sample[s]).collect();
                let search = GroupSearch::new(setting, &metrics[fold][part][z], part, z, &predictions.of_pool[fold]);
                let offsets = search.offsets(setting.cohort, &units, sizes);
                for (q, &s) in of_fold.iter().enumerate() {
                    let i = sample[s] as usize;
                    let p = &predictions.of_unit[i][z];
                    let losses: Vec<f64> = sizes
                        .iter()
                        .enumerate()
                        .flat_map(|(k, _)| options.weights.map(|w| (k, w)))
                        .map(|(k, w)| loss(setting, &models[fold], i, p, part, offsets[q][k].offset, w))
                        .collect();
                    differences[part][s] = losses.iter().map(|l| l - losses[0]).collect();
                }
            }
        }
    }
    let fold_of_sample: Vec<usize> = sample.iter().map(|&i| setting.fold_of[i as usize] as usize).collect();
    let scored = |part: usize, c: usize, leave: Option<usize>| {
        let kept = (0..sample.len()).filter(|&s| leave != Some(fold_of_sample[s]));
        let values: Vec<f64> = kept.map(|s| differences[part][s][c]).collect();
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
    Ok((choices, path))
}
