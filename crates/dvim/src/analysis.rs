//! From a cohort to two effects: the one place that puts the stages together.

use crate::arm::{Arm, ByArm};
use crate::cohort::Cohort;
use crate::constraint::Unserved;
use crate::crossfit::{self, CrossFitted};
use crate::cure::{self, ArmModels, CureModel};
use crate::effect::{Corrected, Effect, Flag, Four};
use crate::error::{Error, Problem, ProblemKind};
use crate::estimand::{ByEstimand, Estimand};
use crate::fold::{Deal, Description, Fit, Fold, NO_FOLD};
use crate::ground::{Asked, Estimated, Everyone, Ground};
use crate::group::{GroupEstimate, Groups};
use crate::metric::{Metric, Metrics, Scale, Scaling};
use crate::newcomers::Newcomers;
use crate::options::{AdjustedOptions, Estimator, Options};
use crate::phrase;
use crate::setting::Setting;
use crate::split::{Split, Trained};
use crate::watch::Watch;
use rayon::prelude::*;
use std::ops::Range;

/// An average over estimation units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    /// The mean; `None` where no unit is defined.
    pub mean: Option<f64>,
    /// Standard deviation between units: how much the estimates vary, not a standard error.
    pub sd: Option<f64>,
    /// Units that it rests on.
    pub n_units: usize,
    /// Units left out because their effect is undefined.
    pub n_undefined: usize,
}

/// The mean of the values that are there.
pub fn average(values: impl Iterator<Item = Option<f64>>) -> Average {
    let (mut there, mut n_undefined) = (Vec::new(), 0);
    for v in values {
        match v {
            Some(v) => there.push(v),
            None => n_undefined += 1,
        }
    }
    let n = there.len() as f64;
    let mean = (!there.is_empty()).then(|| there.iter().sum::<f64>() / n);
    let sd = mean
        .filter(|_| there.len() > 1)
        .map(|m| (there.iter().map(|v| (v - m) * (v - m)).sum::<f64>() / (n - 1.0)).sqrt());
    Average { mean, sd, n_units: there.len(), n_undefined }
}

/// The same with weights.
pub fn weighted_average(values: impl Iterator<Item = (Option<f64>, f64)>) -> Average {
    let (mut there, mut n_undefined) = (Vec::new(), 0);
    for (v, w) in values {
        match v {
            Some(v) => there.push((v, w)),
            None => n_undefined += 1,
        }
    }
    let (n, total) = (there.len() as f64, there.iter().map(|v| v.1).sum::<f64>());
    let mean = (!there.is_empty()).then(|| there.iter().map(|(v, w)| w * v).sum::<f64>() / total);
    let spread = |m: f64| there.iter().map(|(v, w)| w * (v - m) * (v - m)).sum::<f64>() / total;
    let sd = mean.filter(|_| there.len() > 1).map(|m| (spread(m) * n / (n - 1.0)).sqrt());
    Average { mean, sd, n_units: there.len(), n_undefined }
}

fn nobody_served(fewest: usize) -> Problem {
    Problem::error(
        ProblemKind::BadConstraint,
        format!("no patient has {fewest} candidates in both arms under the constraints"),
        "a constraint is never relaxed",
        phrase!["use a smaller ", Setting::GroupSize, ", wider calipers, or fewer exact covariates"],
    )
}

/// Everything that one run found.
///
/// ```
/// use dvim::{Options, Scenario, Unwatched, run, simulate};
///
/// let world = simulate(Scenario::BothOverlap, 1_000, false, 1);
/// let found = run(&world.cohort, &Options::default(), &Unwatched)?;
/// assert_eq!(found.units.len(), found.effects.len());
/// let average = found.average_cure_effect(&world.cohort, None);
/// assert!(average.mean.is_some_and(|m| m > 0.0), "this treatment cures more");
/// # Ok::<(), dvim::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// What was learned.
    pub fit: Fit,
    /// Positions in the cohort of the estimated units, ascending.
    pub units: Vec<u32>,
    /// Their effects.
    pub effects: Vec<Effect>,
    /// Units that the constraints left without a group, ascending: they have no effect.
    pub unserved: Vec<(u32, Unserved)>,
    /// The groups of the estimated units, where they were kept for an audit: see [`run_for_audit`].
    pub groups: Option<Box<Four<Groups>>>,
}

/// What the groups of a run gave, as it was saved.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Of each estimated unit that has its groups, in order.
    pub groups: Vec<Four<GroupEstimate>>,
    /// The units that have none, ascending.
    pub unserved: Vec<(u32, Unserved)>,
}

/// Members of groups that are kept for an audit, at most: 4 bytes each. Beyond that the audit searches again.
const KEPT: usize = 750_000_000;

impl Analysis {
    /// Finds the groups of the estimated units of a fit: of a new one, or of one that was saved. `corrected` holds the
    /// corrected values of each unit of the cohort; it is empty where groups are not corrected.
    pub fn from_fit(fit: Fit, corrected: &[Corrected], cohort: &Cohort, watch: &dyn Watch) -> Result<Analysis, Error> {
        Analysis::of_fit(fit, corrected, cohort, watch, false)
    }

    /// Does what [`Analysis::from_fit`] does, and keeps the groups for an audit.
    pub fn from_fit_for_audit(
        fit: Fit,
        corrected: &[Corrected],
        cohort: &Cohort,
        watch: &dyn Watch,
    ) -> Result<Analysis, Error> {
        Analysis::of_fit(fit, corrected, cohort, watch, true)
    }

    /// A run as it was saved with what its groups gave. Without that, of runs from before it was stored, the groups are
    /// found again.
    pub fn reopened(
        fit: Fit,
        corrected: &[Corrected],
        stored: Option<Stored>,
        cohort: &Cohort,
        watch: &dyn Watch,
    ) -> Result<Analysis, Error> {
        let Some(Stored { groups, unserved }) = stored else {
            return Analysis::from_fit(fit, corrected, cohort, watch);
        };
        let mut without = unserved.iter().map(|(i, _)| *i).peekable();
        let units: Vec<u32> = fit.estimation_units().into_iter().filter(|i| without.next_if_eq(i).is_none()).collect();
        assert_eq!(units.len(), groups.len(), "whoever reads a run checks it");
        let of = |(groups, &i): (Four<GroupEstimate>, &u32)| Effect {
            groups,
            corrected: corrected.get(i as usize).copied(),
        };
        let effects = groups.into_par_iter().zip(&units).with_min_len(4096).map(of).collect();
        Analysis { fit, units, effects, unserved, groups: None }.checked()
    }

    fn of_fit(
        fit: Fit,
        corrected: &[Corrected],
        cohort: &Cohort,
        watch: &dyn Watch,
        audited: bool,
    ) -> Result<Analysis, Error> {
        let ground = Ground::of_fit(&fit, cohort)?;
        let deal = fit.first();
        // Folds that are many have large groups, which an audit finds again.
        let keep = |fold: &Fold| {
            let members = 2 * (fold.group_size.cure + fold.group_size.time);
            audited && deal.folds.len() == 1 && members * deal.fold_of.len() <= KEPT
        };
        let (mut effects, mut unserved) = (Vec::new(), Vec::new());
        for (number, fold) in deal.folds.iter().enumerate() {
            let units = deal.units_of(number);
            let own: Vec<Option<u32>> = units.iter().copied().map(Some).collect();
            let placed = Everyone::new(&ground, fold, &units);
            let rows = |of: Range<usize>| cohort.rows_of(&units[of]);
            let asked = Asked { own: &own, rows: &rows, placed: placed.as_ref(), keep: keep(fold) };
            let finish = |of: Range<usize>, _: &[f64], effects: &mut [Effect], _: &Four<Vec<()>>| {
                let units = units[of].iter().zip(effects);
                units.for_each(|(&i, effect)| effect.corrected = corrected.get(i as usize).copied());
            };
            let found = ground.estimate(fold, &asked, watch, |_, _, _| (), finish)?;
            let Estimated { effects: of_fold, unserved: without, groups } = found;
            unserved.extend(without.iter().map(|(q, why)| (units[*q], *why)));
            let served = served(&units, &without);
            if deal.folds.len() == 1 {
                let groups = groups.map(Box::new);
                return Analysis { units: served, effects: of_fold, unserved, groups, fit }.checked();
            }
            effects.extend(served.into_iter().zip(of_fold));
        }
        effects.sort_by_key(|(i, _)| *i);
        unserved.sort_by_key(|(i, _)| *i);
        let (units, effects) = effects.into_iter().unzip();
        Analysis { fit, units, effects, unserved, groups: None }.checked()
    }

    /// Takes what cross-fitting made of every unit.
    fn of_cross_fit(fit: Fit, found: crossfit::Estimates) -> Result<Analysis, Error> {
        let crossfit::Estimates { mut effects, unserved } = found;
        let mut without = unserved.iter().map(|(i, _)| *i).peekable();
        let units: Vec<u32> = (0..effects.len() as u32).filter(|i| without.next_if_eq(i).is_none()).collect();
        if !unserved.is_empty() {
            let (mut served, mut at) = (units.iter().peekable(), 0..);
            effects.retain(|_| served.next_if_eq(&&at.next().expect("counted up")).is_some());
        }
        Analysis { fit, units, effects, unserved, groups: None }.checked()
    }

    fn checked(self) -> Result<Analysis, Error> {
        if self.units.is_empty() {
            return Err(Error::Refused(vec![nobody_served(self.fit.options.fewest())]));
        }
        Ok(self)
    }

    /// The average cure effect over the estimated units of an arm, or of both.
    pub fn average_cure_effect(&self, cohort: &Cohort, arm: Option<Arm>) -> Average {
        average(self.of(cohort, arm).map(|e| Some(e.cure())))
    }

    /// The average time effect over the estimated units of an arm, or of both.
    pub fn average_time_effect(&self, cohort: &Cohort, arm: Option<Arm>) -> Average {
        average(self.of(cohort, arm).map(Effect::time))
    }

    fn of<'a>(&'a self, cohort: &'a Cohort, arm: Option<Arm>) -> impl Iterator<Item = &'a Effect> {
        let of_arm = move |i: u32| arm.is_none_or(|z| cohort.arm(i as usize) == z);
        self.units.iter().zip(&self.effects).filter(move |(i, _)| of_arm(**i)).map(|(_, e)| e)
    }

    /// How many units carry each flag.
    pub fn flag_counts(&self) -> [(Flag, usize); 8] {
        type Counts = [usize; Flag::ALL.len()];
        let add = |mut counts: Counts, effect: &Effect| {
            Flag::ALL.iter().zip(&mut counts).for_each(|(f, n)| *n += usize::from(effect.has(*f)));
            counts
        };
        let both = |a: Counts, b: Counts| std::array::from_fn(|i| a[i] + b[i]);
        let none = || [0; Flag::ALL.len()];
        let counts: Counts = self.effects.par_iter().with_min_len(2048).fold(none, add).reduce(none, both);
        std::array::from_fn(|i| (Flag::ALL[i], counts[i]))
    }
}

/// The units that have their groups; both lists ascend.
fn served(units: &[u32], unserved: &[(usize, Unserved)]) -> Vec<u32> {
    let mut without = unserved.iter().map(|(q, _)| *q).peekable();
    (0..units.len()).filter(|q| without.next_if_eq(q).is_none()).map(|q| units[q]).collect()
}

impl Fit {
    /// Learns one fold by an honest split: fits the two models and learns the metrics.
    pub fn learn(cohort: &Cohort, options: &Options, watch: &dyn Watch) -> Result<Fit, Error> {
        options.check(cohort)?;
        let (split, scaling) = rayon::join(
            || Split::honest(cohort, options.train_fraction, options.seed),
            || Scaling::of(cohort, options.scale),
        );
        let training = split.training();
        let models = fit_models(watch, |arm| cure::fit(&training, arm, &scaling, &options.fit))?;
        let metrics = Metrics::learn_for(cohort, &models, &scaling, options.metric);
        let is_training = split.is_training().to_vec();
        Ok(Fit::of_one_fold(options.clone(), is_training, models, metrics))
    }

    /// A fit of one fold without a corrector: both arms are matched under one metric for each estimand.
    pub fn of_one_fold(
        options: Options,
        is_training: Vec<bool>,
        models: ByArm<Trained<CureModel>>,
        metrics: ByEstimand<Metric>,
    ) -> Fit {
        let fold = Fold {
            metrics: metrics.each_ref().map(|metric| ByArm::of(|_| metric.clone())),
            group_size: ByEstimand::of(|_| options.group_size),
            corrector: None,
            warnings: Vec::new(),
        };
        let fold_of = is_training.iter().map(|trains| if *trains { NO_FOLD } else { 0 }).collect();
        let deals = vec![Deal { fold_of, folds: vec![fold], values: Vec::new() }];
        let description = Description { models: ArmModels::Trained(models), metrics, cross_fit: None };
        Fit { options, is_training, deals, residuals: Vec::new(), description }
    }

    /// Estimates units with these covariates (row-major, as recorded) against the cohort, without the constraints of
    /// the options. A pure function of its arguments: shards of units can be estimated anywhere, in any order.
    pub fn estimate(&self, cohort: &Cohort, covariates: &[f64], watch: &dyn Watch) -> Result<Vec<Effect>, Error> {
        let own = vec![None; covariates.len() / cohort.n_covariates()];
        let found = Newcomers::unconstrained(self, cohort)?.estimate(covariates, &own, watch)?;
        Ok(found.into_iter().map(|e| e.expect("without constraints each unit is served")).collect())
    }

    /// Estimates units under the constraints of the options. `own` is the position in the cohort of each unit that is
    /// in it. A unit without enough candidates has no effect.
    pub fn estimate_under_constraints(
        &self,
        cohort: &Cohort,
        covariates: &[f64],
        own: &[Option<u32>],
        watch: &dyn Watch,
    ) -> Result<Vec<Result<Effect, Unserved>>, Error> {
        Newcomers::new(self, cohort)?.estimate(covariates, own, watch)
    }
}

/// From a cohort to two effects, by the estimator of the options.
pub fn run(cohort: &Cohort, options: &Options, watch: &dyn Watch) -> Result<Analysis, Error> {
    run_with(cohort, options, watch, false)
}

/// Does what [`run`] does, and keeps the groups (4 bytes for each member), so that an audit need not search again. Up
/// to 3 GB of them; beyond that they are forgotten, and the audit takes longer to say the same.
pub fn run_for_audit(cohort: &Cohort, options: &Options, watch: &dyn Watch) -> Result<Analysis, Error> {
    run_with(cohort, options, watch, true)
}

fn run_with(cohort: &Cohort, options: &Options, watch: &dyn Watch, audited: bool) -> Result<Analysis, Error> {
    match &options.estimator {
        // Algorithm 1 of the paper: split, fit, learn the metrics, match, estimate.
        Estimator::Paper => Analysis::of_fit(Fit::learn(cohort, options, watch)?, &[], cohort, watch, audited),
        Estimator::Adjusted(adjusted) => {
            let adjusted = adjusted.for_units(cohort.n_units());
            let options = Options { estimator: Estimator::Adjusted(adjusted.clone()), ..options.clone() };
            cross_fit(cohort, &options, &adjusted, watch)
        }
    }
}

/// Learns folds with correctors and estimates every unit.
fn cross_fit(
    cohort: &Cohort,
    options: &Options,
    adjusted: &AdjustedOptions,
    watch: &dyn Watch,
) -> Result<Analysis, Error> {
    options.check(cohort)?;
    let scaling = Scaling::of(cohort, Scale::Standard);
    let is_training = vec![false; cohort.n_units()];
    let ground = Ground::new(cohort, options, &is_training)?;
    let CrossFitted { deals, residuals, told, effects } =
        crossfit::learn(ground, &scaling, adjusted, options.seed, watch)?;
    let mean_metric = |estimand: Estimand| {
        let folds = deals.iter().flat_map(|d| &d.folds);
        let all: Vec<&Metric> = folds.flat_map(|f| f.metrics[estimand].iter()).collect();
        let weights =
            (0..cohort.n_covariates()).map(|j| all.iter().map(|m| m.weights[j]).sum::<f64>() / all.len() as f64);
        Metric { weights: weights.collect(), scaling: scaling.clone() }
    };
    let metrics = ByEstimand::of(mean_metric);
    let kept = described(cohort, &metrics);
    let describe = |arm: Arm| cure::describe_arm(cohort, arm, &scaling, &options.fit, kept.as_deref());
    let models = ArmModels::Described(fit_models(watch, describe)?);
    let description = Description { models, metrics, cross_fit: Some(told) };
    Analysis::of_cross_fit(Fit { options: options.clone(), is_training, deals, residuals, description }, effects)
}

/// The cure models of both arms.
fn fit_models<M: Send>(watch: &dyn Watch, fit: impl Fn(Arm) -> Result<M, Error> + Sync) -> Result<ByArm<M>, Error> {
    watch.progress("fitting the cure models", 0, 2);
    let ByArm { control, treated } = ByArm::join(fit);
    let models = ByArm { control: control?, treated: treated? };
    watch.progress("fitting the cure models", 2, 2);
    Ok(models)
}

/// With more covariates than this the models that describe an adjusted run have only those of largest weight.
const MOST_DESCRIBED: usize = 60;

/// Events of the smaller arm for each covariate of those models: the rule of thumb for models without penalty.
const EVENTS_FOR_ONE: usize = 10;

/// Which covariates the models that describe an adjusted run have: `None` for all. Else those of largest weight in the
/// metrics, as many as the events allow.
fn described(cohort: &Cohort, metrics: &ByEstimand<Metric>) -> Option<Vec<bool>> {
    if cohort.n_covariates() <= MOST_DESCRIBED {
        return None;
    }
    let events = Arm::BOTH.map(|z| cohort.units_of(z).iter().filter(|&&i| cohort.event(i as usize)).count());
    let most = (events[0].min(events[1]) / EVENTS_FOR_ONE).clamp(1, MOST_DESCRIBED);
    let total = |m: &Metric| m.weights.iter().sum::<f64>();
    let (cure, time) = (total(&metrics.cure), total(&metrics.time));
    let weight = |j: usize| metrics.cure.weights[j] / cure + metrics.time.weights[j] / time;
    let mut order: Vec<(usize, usize)> = cohort.schema().iter().map(|c| (c.first, c.columns().len())).collect();
    order.sort_by(|a, b| weight(b.0).total_cmp(&weight(a.0)).then(a.cmp(b)));
    let (mut kept, mut columns) = (vec![false; cohort.n_covariates()], 0);
    for (first, n) in order {
        columns += n;
        kept[first] = columns == n || columns <= most;
    }
    Some(kept)
}
