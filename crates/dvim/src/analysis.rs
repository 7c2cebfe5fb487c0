//! From a cohort to two effects: the one place that puts the stages together.

use crate::adjusted::{self, AdjustedOptions, CrossFit, Fold, Newcomers};
use crate::cohort::{Arm, Cohort};
use crate::constraint::{Constraints, Queries, Rules, Searched, Unserved};
use crate::cure::{self, CureModel};
use crate::design;
use crate::effect::{ArmEstimate, Corrected, Effect, Flag, GroupEstimate, Groups, Matcher, Pool};
use crate::error::{Error, Problem, ProblemKind, Severity};
use crate::matching::{Hints, Points};
use crate::metric::{Metric, MetricChoice, Metrics, Scale, Scaling};
use crate::outcome::Further;
use crate::phrase;
use crate::phrase::{Action, Phrase};
use crate::setting::Setting;
use crate::split::{Split, training_size};
use crate::survival::SurvivalCurve;
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

/// How effects are estimated from match groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Estimator {
    /// The paper's Algorithm 1.
    #[default]
    Paper,
    /// Groups corrected by a cross-fitted model; every unit is estimated.
    Adjusted(AdjustedOptions),
}

impl Estimator {
    /// The word used in flags and files.
    pub fn name(&self) -> &'static str {
        match self {
            Estimator::Paper => "paper",
            Estimator::Adjusted(_) => "adjusted",
        }
    }
}

/// How to analyse. The horizon is not here: it belongs to the cohort.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// K: units of each arm in each match group.
    pub group_size: usize,
    /// Share of each arm that trains the cure models.
    pub train_fraction: f64,
    /// One metric for each estimand, or one for both.
    pub metric: MetricChoice,
    /// How covariates are scaled.
    pub scale: Scale,
    /// Decides the split, with the ids.
    pub seed: u64,
    /// Confidence level of every interval.
    pub confidence: f64,
    /// How the cure models are fitted.
    pub fit: cure::FitOptions,
    /// How effects are estimated.
    pub estimator: Estimator,
    /// Who may be in a group.
    pub constraints: Constraints,
}

impl Default for Options {
    /// The paper's choices, on standardised covariates.
    fn default() -> Options {
        Options {
            group_size: 50,
            train_fraction: 0.35,
            metric: MetricChoice::Separate,
            scale: Scale::Standard,
            seed: 1,
            confidence: 0.95,
            fit: cure::FitOptions::default(),
            estimator: Estimator::Paper,
            constraints: Constraints::default(),
        }
    }
}

impl Options {
    /// What these options ask of groups; `None` where they ask nothing. The adjusted estimator keeps a unit out of its own group anyway.
    fn rules(&self, cohort: &Cohort) -> Result<Option<Rules>, Error> {
        let constraints = match &self.estimator {
            Estimator::Paper => self.constraints.clone(),
            Estimator::Adjusted(_) => Constraints { exclude_self: false, ..self.constraints.clone() },
        };
        if constraints.is_empty() {
            return Ok(None);
        }
        let rules = Rules::new(&constraints, cohort).map_err(Error::Refused)?;
        Ok(Some(if self.estimator == Estimator::Paper { rules } else { rules.without_self() }))
    }

    /// What is wrong with these options for arms of these sizes (control, treated).
    pub fn problems(&self, arm_sizes: [usize; 2]) -> Vec<Problem> {
        let mut out = Vec::new();
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            out.push(Problem::error(
                ProblemKind::BadOption,
                format!("the confidence level is {}", self.confidence),
                "the confidence level lies strictly between 0 and 1",
                phrase!["use ", Setting::Confidence.to(0.95)],
            ));
        }
        if let Estimator::Adjusted(adjusted) = &self.estimator {
            out.extend(adjusted.problems(arm_sizes));
            return out;
        }
        if !(self.train_fraction > 0.0 && self.train_fraction < 1.0) {
            out.push(Problem::error(
                ProblemKind::BadOption,
                format!("the train fraction is {}", self.train_fraction),
                "the train fraction lies strictly between 0 and 1",
                phrase!["use ", Setting::TrainFraction.to(0.35), ", the paper's choice"],
            ));
            return out;
        }
        if self.group_size == 0 {
            out.push(Problem::error(
                ProblemKind::BadOption,
                "the group size is 0",
                "a match group has at least one unit",
                phrase!["use ", Setting::GroupSize.to(50), ", or 35 for a cohort of a thousand"],
            ));
        }
        for arm in Arm::BOTH {
            let n = arm_sizes[arm.index()];
            let left = n - training_size(n, self.train_fraction);
            if left < self.group_size {
                out.push(Problem::error(
                    ProblemKind::ArmTooSmall,
                    format!(
                        "the {} arm has {n} units, of which {left} are left for matching, fewer than the group size {}",
                        arm.name(),
                        self.group_size
                    ),
                    "each match group takes its units from the estimation set of one arm",
                    match left {
                        0..5 => "an arm this small cannot be matched: bring more patients, or lower the train fraction"
                            .into(),
                        5..50 => format!("use a group size of at most {left}, and expect distant matches"),
                        _ => format!(
                            "use a group size of at most {left} (a tenth of that, {}, leaves room for close matches)",
                            left / 10
                        ),
                    },
                ));
            } else if left < 2 * self.group_size {
                out.push(Problem::warning(
                    ProblemKind::ArmTooSmall,
                    format!(
                        "the group size {} is more than half of the {left} units left for matching in the {} arm",
                        self.group_size,
                        arm.name()
                    ),
                    "groups that take most of an arm are alike for every unit: heterogeneity cannot show",
                    format!("consider a group size near {}", (left / 10).max(5)),
                ));
            }
        }
        out
    }
}

/// Where a long run stands, and whether it should stop. Every face brings its own.
pub trait Watch: Sync {
    /// `done` of `total` steps of a stage are done.
    fn progress(&self, _stage: &'static str, _done: usize, _total: usize) {}

    /// Whether to give up.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Watches nothing.
pub struct Unwatched;

impl Watch for Unwatched {}

/// What was learned: models, metrics, and which units groups are drawn from. Together with the
/// cohort it answers for any unit, so it can be saved, and estimation is a pure function of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// How it was made.
    pub options: Options,
    /// Which units trained.
    pub is_training: Vec<bool>,
    /// The cure models on scaled covariates, control first.
    pub models: [CureModel; 2],
    /// The metric of each estimand. Under the adjusted estimator: the mean over folds and arms.
    pub metrics: Metrics,
    /// What the adjusted estimator learned; `None` under the paper's.
    pub cross_fit: Option<CrossFit>,
}

impl Fit {
    /// Splits, fits the two models and learns the metrics.
    pub fn learn(cohort: &Cohort, options: &Options, watch: &dyn Watch) -> Result<Fit, Error> {
        let sizes = Arm::BOTH.map(|z| cohort.units_of(z).len());
        let problems = options.problems(sizes);
        if problems.iter().any(|p| p.severity == Severity::Error) {
            return Err(Error::Refused(problems));
        }
        Rules::new(&options.constraints, cohort).map_err(Error::Refused)?;
        let (split, scaling) = rayon::join(
            || Split::honest(cohort, options.train_fraction, options.seed),
            || Scaling::of(cohort, options.scale),
        );
        let models = fit_models(cohort, &split, &scaling, &options.fit, None, watch)?;
        let metrics = Metrics::learn_for(cohort, &models, &scaling, options.metric);
        Ok(Fit {
            options: options.clone(),
            is_training: split.is_training().to_vec(),
            models,
            metrics,
            cross_fit: None,
        })
    }

    /// Levels of categories that the training set of an arm, or its estimation set, does not have.
    pub fn level_problems(&self, cohort: &Cohort) -> Vec<Problem> {
        let mut out = Vec::new();
        if self.cross_fit.is_some() {
            return out;
        }
        for c in cohort.schema().iter().filter(|c| c.is_category()) {
            for arm in Arm::BOTH {
                let absent = |training: bool| -> Vec<String> {
                    let has = |j: usize| {
                        let mut units =
                            (0..cohort.n_units()).filter(|&i| cohort.arm(i) == arm && self.is_training[i] == training);
                        units.any(|i| cohort.covariates(i)[j] == 1.0)
                    };
                    c.columns().filter(|&j| !has(j)).map(|j| format!("`{}`", c.level(j - c.first))).collect()
                };
                let (training, estimation) = (absent(true), absent(false));
                if !training.is_empty() {
                    out.push(
                        Problem::warning(
                            ProblemKind::LevelInOneArm,
                            format!(
                                "the training set of the {} arm has no unit of {}",
                                arm.name(),
                                training.join(", ")
                            ),
                            "a level that a model has not seen is given the mean of the levels that it has seen",
                            phrase!["merge rare levels, or train on a larger share with ", Setting::TrainFraction],
                        )
                        .column(&c.name),
                    );
                }
                if !estimation.is_empty() {
                    out.push(
                        Problem::warning(
                            ProblemKind::LevelInOneArm,
                            format!(
                                "the estimation set of the {} arm has no unit of {}",
                                arm.name(),
                                estimation.join(", ")
                            ),
                            "patients of that level are matched with patients of other levels in this arm",
                            "merge rare levels, or match exactly on the covariate to have such patients flagged",
                        )
                        .column(&c.name),
                    );
                }
            }
        }
        out
    }

    /// The units of an arm that groups are drawn from: its estimation set.
    pub fn pool(&self, cohort: &Cohort, arm: Arm) -> Pool {
        let split = Split::restored(cohort, self.is_training.clone());
        Pool::new(cohort, split.estimation().units_of(arm))
    }

    /// The pools of both arms, control first.
    pub fn pools(&self, cohort: &Cohort) -> [Pool; 2] {
        rayon::join(|| self.pool(cohort, Arm::Control), || self.pool(cohort, Arm::Treated)).into()
    }

    /// Positions of the units that are estimated.
    pub fn estimation_units(&self) -> Vec<u32> {
        (0..self.is_training.len() as u32).filter(|&i| !self.is_training[i as usize]).collect()
    }

    /// Estimates units with these covariates (row-major, as recorded) against the cohort.
    /// A pure function of its arguments: shards of units can be estimated anywhere, in any order.
    pub fn estimate(&self, cohort: &Cohort, covariates: &[f64], watch: &dyn Watch) -> Result<Vec<Effect>, Error> {
        let p = cohort.n_covariates();
        let own = vec![None; covariates.len() / p];
        if self.cross_fit.is_some() {
            let found = self.newcomers_under(cohort, None)?.estimate(covariates, &own);
            return Ok(found.into_iter().map(|e| e.expect("without constraints each unit is served")).collect());
        }
        let rows = |of: Range<usize>| covariates[of.start * p..of.end * p].to_vec();
        let pools = self.pools(cohort);
        let found = self.estimate_blocks(&self.searches(cohort, &pools, None, None), &own, &rows, None, None, watch)?;
        assert!(found.unserved.is_empty(), "without constraints each unit is served");
        Ok(found.effects)
    }

    /// As [`Fit::estimate`], under the constraints of the options. `own` is the position in the cohort of each unit
    /// that is in it. A unit without enough candidates is not served.
    pub fn estimate_under_constraints(
        &self,
        cohort: &Cohort,
        covariates: &[f64],
        own: &[Option<u32>],
        watch: &dyn Watch,
    ) -> Result<Vec<Result<Effect, Unserved>>, Error> {
        let p = cohort.n_covariates();
        let rules = self.rules(cohort)?;
        if self.cross_fit.is_some() {
            let newcomers = self.newcomers_under(cohort, rules)?;
            let mut out = Vec::with_capacity(own.len());
            for (rows, own) in covariates.chunks(BLOCK * p).zip(own.chunks(BLOCK)) {
                if watch.cancelled() {
                    return Err(Error::Cancelled);
                }
                watch.progress("matching", out.len(), own.len());
                out.extend(newcomers.estimate(rows, own));
            }
            return Ok(out);
        }
        let pools = self.pools(cohort);
        let rows = |of: Range<usize>| covariates[of.start * p..of.end * p].to_vec();
        let searches = self.searches(cohort, &pools, rules.as_ref(), None);
        let found = self.estimate_blocks(&searches, own, &rows, None, None, watch)?;
        let (mut effects, mut unserved) = (found.effects.into_iter(), found.unserved.into_iter().peekable());
        let of = |q: usize| match unserved.next_if(|(at, _)| *at == q) {
            Some((_, why)) => Err(why),
            None => Ok(effects.next().expect("who is not unserved has an effect")),
        };
        Ok((0..own.len()).map(of).collect())
    }

    /// What the options ask of groups; `None` where they ask nothing.
    pub(crate) fn rules(&self, cohort: &Cohort) -> Result<Option<Rules>, Error> {
        self.options.rules(cohort)
    }

    /// Candidates in each arm below which a unit has no effect.
    pub fn fewest(&self) -> usize {
        match &self.options.estimator {
            Estimator::Paper => self.options.group_size,
            Estimator::Adjusted(a) => a.fewest(),
        }
    }

    /// What estimates patients anew under the adjusted estimator; refused under the paper's, and in a run that was saved without its models.
    pub fn newcomers<'a>(&'a self, cohort: &'a Cohort) -> Result<Newcomers<'a>, Error> {
        self.newcomers_under(cohort, self.rules(cohort)?)
    }

    fn newcomers_under<'a>(&'a self, cohort: &'a Cohort, rules: Option<Rules>) -> Result<Newcomers<'a>, Error> {
        let scaling = &self.metrics.cure.scaling;
        let found = match (&self.cross_fit, &self.options.estimator) {
            (Some(c), Estimator::Adjusted(options)) => Newcomers::new(cohort, c, scaling, rules, options),
            _ => None,
        };
        found.ok_or_else(|| Error::Refused(vec![no_models()]))
    }

    /// Both arms under both metrics, ready to be searched. `placed` are units of the cohort, all of the pools among them, that are
    /// placed already.
    fn searches<'a>(
        &self,
        cohort: &Cohort,
        pools: &'a [Pool; 2],
        rules: Option<&'a Rules>,
        placed: Option<&'a Placed<'_>>,
    ) -> [[Searched<'a>; 2]; 2] {
        let rows = placed.map(|placed| pools.each_ref().map(|pool| placed.rows(&pool.units)));
        let of = |z: usize, m: usize| match (placed, &rows) {
            (Some(placed), Some(rows)) if rules.is_none() => {
                Searched::Freely(Matcher::of_rows(&pools[z], &placed.points[m], &rows[z]))
            }
            _ => Searched::new(&pools[z], cohort, [&self.metrics.cure, &self.metrics.time][m], rules),
        };
        let arm = |z| rayon::join(|| of(z, 0), || of(z, 1)).into();
        rayon::join(|| arm(0), || arm(1)).into()
    }

    /// Estimates units block by block; `rows` gives the covariates of some of them, `placed` all of them in match space where
    /// that is known. The groups of those that are served are appended to `kept`.
    fn estimate_blocks(
        &self,
        searches: &[[Searched<'_>; 2]; 2],
        own: &[Option<u32>],
        rows: &dyn Fn(Range<usize>) -> Vec<f64>,
        placed: Option<&[Points; 2]>,
        mut kept: Option<&mut AllGroups>,
        watch: &dyn Watch,
    ) -> Result<Estimated, Error> {
        let n = own.len();
        let size = if self.options.constraints.is_empty() { BLOCK } else { CONSTRAINED_BLOCK };
        let mut out = Estimated { effects: Vec::with_capacity(n), unserved: Vec::new() };
        for start in (0..n).step_by(size) {
            if watch.cancelled() {
                return Err(Error::Cancelled);
            }
            watch.progress("matching", start, n);
            let block = start..n.min(start + size);
            let own = &own[block.clone()];
            let [[Searched::Freely(a), Searched::Freely(b)], [Searched::Freely(c), Searched::Freely(d)]] = searches
            else {
                self.block_under_rules(searches, own, &rows(block.clone()), start, kept.as_deref_mut(), &mut out);
                continue;
            };
            let metrics = [&self.metrics.cure, &self.metrics.time];
            let of_block: [Cow<'_, Points>; 2] = match placed {
                Some(all) if block.len() == n => all.each_ref().map(Cow::Borrowed),
                Some(all) => all.each_ref().map(|points| Cow::Owned(points.some(block.clone()))),
                None => {
                    let rows = rows(block);
                    metrics.map(|metric| Cow::Owned(metric.place(&rows)))
                }
            };
            out.effects.par_extend(own.par_iter().with_min_len(512).map(|_| Effect::NOTHING));
            let effects = &mut out.effects[start..];
            let groups = self.block_freely([[a, b], [c, d]], own, &of_block, kept.is_some(), effects);
            if let Some(kept) = &mut kept {
                let all = kept.iter_mut().flatten().zip(groups.into_iter().flatten());
                all.for_each(|(kept, groups)| kept.append(groups));
            }
        }
        watch.progress("matching", n, n);
        Ok(out)
    }

    /// Fills in the effects of some units, given in the match spaces of cure and time; each is served. Gives their groups where `keep` asks for them.
    fn block_freely(
        &self,
        matchers: [[&Matcher<'_>; 2]; 2],
        own: &[Option<u32>],
        placed: &[Cow<'_, Points>; 2],
        keep: bool,
        effects: &mut [Effect],
    ) -> AllGroups {
        let k = self.options.group_size;
        // By metric and arm.
        let mut places: [[Vec<&mut GroupEstimate>; 2]; 2] = Default::default();
        for effect in effects {
            let [control, treated] = &mut effect.arms;
            let each = [[&mut control.cure, &mut treated.cure], [&mut control.time, &mut treated.time]];
            places.iter_mut().flatten().zip(each.into_iter().flatten()).for_each(|(all, one)| all.push(one));
        }
        // Both metrics at once: where one of them waits for its last unit the other goes on. One arm after the other: how
        // far the group of a unit reaches in one is a good guess for the other.
        let under = |m: usize, [control, treated]: &mut [Vec<&mut GroupEstimate>; 2]| {
            let placed = &placed[m];
            let (of_control, order) = matchers[0][m].estimate_into(placed, own, k, keep, None, control);
            let reach: Vec<f64> = control.iter().map(|e| e.diameter * e.diameter).collect();
            let hints = Hints { squared: &reach, order: Some(&order) };
            (of_control, matchers[1][m].estimate_into(placed, own, k, keep, Some(hints), treated).0)
        };
        let [of_cure, of_time] = &mut places;
        let (cure, time) = rayon::join(|| under(0, of_cure), || under(1, of_time));
        [[cure.0, time.0], [cure.1, time.1]]
    }

    /// Adds the effects of some units, the first of which is number `start`, under constraints: those that have too few candidates are not served.
    fn block_under_rules(
        &self,
        searches: &[[Searched<'_>; 2]; 2],
        own: &[Option<u32>],
        rows: &[f64],
        start: usize,
        kept: Option<&mut AllGroups>,
        out: &mut Estimated,
    ) {
        let k = self.options.group_size;
        let under = |m: usize, metric: &Metric| {
            let placed = metric.place(rows);
            [0, 1].map(|z: usize| searches[z][m].estimate(rows, own, &placed, k, kept.is_some()))
        };
        let ([control_cure, treated_cure], [control_time, treated_time]) =
            rayon::join(|| under(0, &self.metrics.cure), || under(1, &self.metrics.time));
        let found = [[control_cure, control_time], [treated_cure, treated_time]];
        let mut served = Vec::with_capacity(own.len());
        for q in 0..own.len() {
            // Why an arm does not serve a unit: too few candidates. What it has beyond K is of no interest.
            let few = |z: usize| found[z][0].0[q].as_ref().err().or(found[z][1].0[q].as_ref().err());
            if few(0).is_some() || few(1).is_some() {
                let candidates = [0, 1].map(|z| few(z).copied().unwrap_or(k));
                out.unserved.push((start + q, Unserved { candidates, group_size: k }));
                continue;
            }
            let group = |z: usize, side: usize| *found[z][side].0[q].as_ref().expect("served");
            let arm = |z: usize| ArmEstimate { cure: group(z, 0), time: group(z, 1) };
            out.effects.push(Effect { arms: [arm(0), arm(1)], corrected: None });
            served.push(q);
        }
        if let Some(kept) = kept {
            for (kept, (_, groups)) in kept.iter_mut().flatten().zip(found.iter().flatten()) {
                served.iter().for_each(|&q| kept.push(groups, q, k));
            }
        }
    }

    /// The match groups of one unit of the cohort, patient by patient. Under constraints a group may be smaller than K,
    /// down to empty: then the unit is not served.
    pub fn match_groups(&self, cohort: &Cohort, unit: usize) -> UnitGroups {
        self.match_groups_of(cohort, cohort.covariates(unit), Some(unit as u32))
    }

    /// The match groups of a unit with these covariates; `own` is its position where it is in the cohort. Who asks for
    /// many units asks a [`Search`].
    pub fn match_groups_of(&self, cohort: &Cohort, x: &[f64], own: Option<u32>) -> UnitGroups {
        Ground::new(self, cohort).search().groups(x, own, None)
    }
}

/// The problem that an adjusted run was saved without its models.
fn no_models() -> Problem {
    Problem::error(
        ProblemKind::BadOption,
        "the run of the adjusted estimator was saved by an earlier dvim, without its models",
        "new patients are estimated by the models of the run",
        phrase!["repeat the run with ", Action::Rerun, ", or fit the cohort again"],
    )
}

/// What groups are drawn from, and by which rules.
pub struct Ground<'a> {
    fit: &'a Fit,
    cohort: &'a Cohort,
    pools: [Pool; 2],
    rules: Option<Rules>,
    /// What new patients are matched by under the adjusted estimator.
    shared: Option<Fold>,
}

impl<'a> Ground<'a> {
    /// That of a fit.
    pub fn new(fit: &'a Fit, cohort: &'a Cohort) -> Ground<'a> {
        // Constraints that do not fit the cohort were refused before anything was learned.
        let rules = fit.rules(cohort).ok().flatten();
        let shared = fit.cross_fit.as_ref().map(CrossFit::for_newcomers);
        Ground { fit, cohort, pools: fit.pools(cohort), rules, shared }
    }

    /// A search over it, in which nothing is built yet.
    pub fn search(&self) -> Search<'_> {
        let places = 1 + self.fit.cross_fit.as_ref().map_or(0, |c| c.first().folds.len());
        Search { ground: self, matchers: (0..places).map(|_| Default::default()).collect() }
    }
}

/// Finds the groups of one unit after the other, at any group size. An arm is packed under a metric when a unit first
/// asks for it, and kept.
pub struct Search<'a> {
    ground: &'a Ground<'a>,
    /// By fold, part (cure, time) and arm; the last place holds the metrics of the fit as a whole.
    matchers: Vec<[[OnceLock<Searched<'a>>; 2]; 2]>,
}

impl Search<'_> {
    /// The largest group that every unit can be given, where constraints do not forbid it.
    pub fn largest_group(&self) -> usize {
        let smaller = self.ground.pools.iter().map(Pool::len).min().unwrap_or(0);
        // A unit is in none of its groups where it is kept out of them.
        let kept_out = self.ground.fit.cross_fit.is_some() || self.ground.fit.options.constraints.exclude_self;
        smaller.saturating_sub(usize::from(kept_out))
    }

    /// The match groups of a unit with these covariates, of the fit's own size or of another; `own` is its position
    /// where it is in the cohort. Under constraints a group may be smaller, down to empty: see [`UnitGroups::unserved`].
    pub fn groups(&self, x: &[f64], own: Option<u32>, size: Option<usize>) -> UnitGroups {
        UnitGroups {
            cure: Arm::BOTH.map(|arm| self.group(x, own, size, 0, arm)),
            time: Arm::BOTH.map(|arm| self.group(x, own, size, 1, arm)),
        }
    }

    fn group(&self, x: &[f64], own: Option<u32>, size: Option<usize>, part: usize, arm: Arm) -> MatchGroup {
        let Ground { fit, cohort, pools, rules, shared, .. } = self.ground;
        let pool = &pools[arm.index()];
        let number = fit.cross_fit.as_ref().zip(own).map(|(c, i)| c.first().fold_of[i as usize] as usize);
        let fold = fit.cross_fit.as_ref().zip(number).map(|(c, f)| &c.first().folds[f]).or(shared.as_ref());
        let metric = match fold {
            Some(fold) => &fold.metrics[part][arm.index()],
            None => [&fit.metrics.cure, &fit.metrics.time][part],
        };
        let k = size.unwrap_or(match fold {
            Some(fold) => fold.choices[part].group_size,
            None => fit.options.group_size,
        });
        let placed = metric.place(x);
        let place = &self.matchers[number.unwrap_or(self.matchers.len() - 1)][part][arm.index()];
        let searched = place.get_or_init(|| Searched::new(pool, cohort, metric, rules.as_ref()));
        let (members, squared): (Vec<u32>, Vec<f64>) = match searched {
            Searched::Freely(matcher) if fold.is_some() => {
                // The adjusted estimator keeps a unit of the cohort out of its own group.
                let (members, squared) = matcher.group(&placed, (k + 1).min(pool.len()));
                let kept = members.into_iter().zip(squared);
                kept.filter(|(m, _)| Some(pool.units[*m as usize]) != own).take(k).unzip()
            }
            Searched::Freely(matcher) => matcher.group(&placed, k.min(pool.len())),
            Searched::UnderRules(matcher) => {
                let queries = Queries { covariates: x, own: &[own] };
                let of_size = |k| matcher.groups(&queries, &placed, k).swap_remove(0);
                of_size(k).or_else(of_size).unwrap_or_default()
            }
        };
        let units: Vec<u32> = members.iter().map(|&m| pool.units[m as usize]).collect();
        MatchGroup {
            shares: units.iter().map(|&i| metric.shares(x, cohort.covariates(i as usize))).collect(),
            weights: metric.weights.clone(),
            distance: squared.iter().map(|d: &f64| d.sqrt()).collect(),
            curve: SurvivalCurve::of_outcomes(cohort.outcomes(&units)),
            units,
        }
    }
}

/// Units of a cohort in the match spaces of cure and time.
struct Placed<'a> {
    units: &'a [u32],
    points: [Points; 2],
}

impl<'a> Placed<'a> {
    fn new(cohort: &Cohort, metrics: &Metrics, units: &'a [u32]) -> Placed<'a> {
        let place = |m: &Metric| m.place_rows(units.iter().map(|&i| cohort.covariates(i as usize)));
        Placed { units, points: rayon::join(|| place(&metrics.cure), || place(&metrics.time)).into() }
    }

    /// The rows of some of them; both ascend.
    fn rows(&self, some: &[u32]) -> Vec<u32> {
        let mut row = 0;
        let of = |unit: &u32| {
            row += self.units[row..].iter().position(|u| u == unit).expect("a unit that is placed");
            row as u32
        };
        some.iter().map(of).collect()
    }
}

/// What was made of many units.
struct Estimated {
    /// The effects of those that are served, in the order of the units.
    effects: Vec<Effect>,
    /// The positions of the others, ascending, and why.
    unserved: Vec<(usize, Unserved)>,
}

/// The units that are not unserved; both ascend.
fn without(mut units: Vec<u32>, unserved: &[(u32, Unserved)]) -> Vec<u32> {
    let mut unserved = unserved.iter().map(|(i, _)| *i).peekable();
    units.retain(|&i| unserved.next_if_eq(&i).is_none());
    units
}

/// The groups of all estimated units: of the control and the treated, each under the cure and the time metric.
pub type AllGroups = [[Groups; 2]; 2];

/// The covariates of these units, row-major.
pub(crate) fn rows_of(cohort: &Cohort, units: &[u32]) -> Vec<f64> {
    let mut rows = Vec::with_capacity(units.len() * cohort.n_covariates());
    units.iter().for_each(|&i| rows.extend_from_slice(cohort.covariates(i as usize)));
    rows
}

/// The two cure models of a training set, on scaled covariates.
fn fit_models(
    cohort: &Cohort,
    split: &Split,
    scaling: &Scaling,
    options: &cure::FitOptions,
    kept: Option<&[bool]>,
    watch: &dyn Watch,
) -> Result<[CureModel; 2], Error> {
    let training = split.training();
    watch.progress("fitting the cure models", 0, 2);
    let fit_arm = |arm: Arm| design::fit_among(cohort, arm, &training.arm(arm), scaling, options, kept);
    let (control, treated) = rayon::join(|| fit_arm(Arm::Control), || fit_arm(Arm::Treated));
    let models = [control?, treated?];
    watch.progress("fitting the cure models", 2, 2);
    Ok(models)
}

/// Units estimated between two looks at the watch: large enough that the search can order them
/// well, small enough that memory stays bounded and a cancelled run stops within a second.
const BLOCK: usize = 65_536;

/// The same under constraints, which are slower.
const CONSTRAINED_BLOCK: usize = 2_048;

/// Members of groups that are kept for an audit, at most: 4 bytes each. Beyond that the audit searches again.
const KEPT: usize = 750_000_000;

/// Bytes that a run needs at its peak, the table that it is read from included: columns of the
/// table and the cohort's rows while both exist, then the cohort, the packed arms under both
/// metrics, the effects and, with an audit, the groups and the sums over them.
pub fn memory_needed(n_units: usize, n_covariates: usize, options: &Options, audited: bool) -> u64 {
    let (n, p) = (n_units as f64, n_covariates as f64);
    let estimated = n * (1.0 - options.train_fraction);
    let reading = n * 8.0 * (2.0 * p + 8.0);
    let cohort = n * 8.0 * (p + 5.0);
    // Both pools, their points as packed under both metrics, and what packing one of four holds on the way.
    let packed = estimated * (40.0 + 2.0 * 24.0 * p + 10.0 * p);
    let effects = estimated * std::mem::size_of::<Effect>() as f64;
    let members = 4.0 * estimated * options.group_size as f64;
    let groups = if audited && members <= KEPT as f64 { 4.0 * members + 32.0 * estimated } else { 0.0 };
    let sums = if audited { estimated * SUMS_BYTES } else { 0.0 };
    let held = cohort + effects + groups + f64::max(packed, sums);
    (96e6 + f64::max(reading, held)) as u64
}

/// Bytes that the sums of an audit take for each estimated unit: predictions, influences, shares and counts under both metrics.
const SUMS_BYTES: f64 = 600.0;

/// One match group.
#[derive(Clone, Debug, PartialEq)]
pub struct MatchGroup {
    /// Positions of its members in the cohort, nearest first.
    pub units: Vec<u32>,
    /// Their distances.
    pub distance: Vec<f64>,
    /// For each member, the share of each covariate in its squared distance.
    pub shares: Vec<Vec<f64>>,
    /// The weights of the metric that it was matched under.
    pub weights: Vec<f64>,
    /// The group's curve.
    pub curve: SurvivalCurve,
}

impl MatchGroup {
    /// The mean over members of the share that these columns have in the squared distance.
    pub fn mean_share(&self, columns: std::ops::Range<usize>) -> f64 {
        let n = self.shares.len().max(1) as f64;
        self.shares.iter().flat_map(|s| &s[columns.clone()]).sum::<f64>() / n
    }
}

/// The four match groups of one unit; in each pair, control first.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitGroups {
    /// Matched for cure.
    pub cure: [MatchGroup; 2],
    /// Matched for time.
    pub time: [MatchGroup; 2],
}

impl UnitGroups {
    /// Why a unit has no effect at group size `k`: constraints left fewer candidates in an arm.
    pub fn unserved(&self, k: usize) -> Option<Unserved> {
        let candidates = self.cure.each_ref().map(|g| g.units.len());
        candidates.iter().any(|&c| c < k).then_some(Unserved { candidates, group_size: k })
    }

    /// What the adjusted estimator makes of these groups at the cohort's own horizon: of a new patient, or of one of the cohort by the models of
    /// the first split that left it out. `None` where a group has fewer than `fewest`.
    pub fn correct(
        &self,
        x: &[f64],
        own: Option<usize>,
        newcomers: &Newcomers<'_>,
        fewest: usize,
        horizon: f64,
    ) -> Option<Corrected> {
        let effect = self.effect(horizon, None).filter(|_| self.unserved(fewest).is_none())?;
        let cure = Arm::BOTH.map(|z| (effect.arm(z).cure, self.cure[z.index()].units.as_slice()));
        let time = Arm::BOTH.map(|z| (effect.arm(z).time, self.time[z.index()].units.as_slice()));
        Some(newcomers.correct(x, own, [cure, time]))
    }

    /// What the groups give at a horizon, which is that of the cohort or an earlier one; `None` where a group is empty.
    /// `corrected` is what the adjusted estimator made of them at the cohort's own horizon.
    pub fn effect(&self, horizon: f64, corrected: Option<Corrected>) -> Option<Effect> {
        let of =
            |g: &MatchGroup| Some(GroupEstimate { curve: g.curve.summary(horizon), diameter: *g.distance.last()? });
        let arm = |z: usize| Some(ArmEstimate { cure: of(&self.cure[z])?, time: of(&self.time[z])? });
        Some(Effect { arms: [arm(0)?, arm(1)?], corrected })
    }
}

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
    pub groups: Option<Box<AllGroups>>,
}

impl Analysis {
    /// Estimates the estimation units of a fit: of a new one, or of one that was saved. `corrected` holds what the
    /// adjusted estimator made of each unit; it is empty under the paper's.
    pub fn from_fit(fit: Fit, corrected: &[Corrected], cohort: &Cohort, watch: &dyn Watch) -> Result<Analysis, Error> {
        Analysis::of_fit(fit, corrected, cohort, watch, false)
    }

    /// As [`Analysis::from_fit`], keeping the groups for an audit.
    pub fn from_fit_for_audit(
        fit: Fit,
        corrected: &[Corrected],
        cohort: &Cohort,
        watch: &dyn Watch,
    ) -> Result<Analysis, Error> {
        Analysis::of_fit(fit, corrected, cohort, watch, true)
    }

    fn of_fit(
        fit: Fit,
        corrected: &[Corrected],
        cohort: &Cohort,
        watch: &dyn Watch,
        audited: bool,
    ) -> Result<Analysis, Error> {
        let units = fit.estimation_units();
        if let Some(cross_fit) = &fit.cross_fit {
            let rules = fit.rules(cohort)?;
            let found = adjusted::regroup(cohort, cross_fit, rules.as_ref(), fit.fewest(), corrected);
            return Analysis::of_adjusted(fit, found);
        }
        let k = fit.options.group_size;
        let room = || Groups::with_capacity(units.len(), k);
        let mut groups: Option<Box<AllGroups>> =
            (audited && 4 * units.len() * k <= KEPT).then(|| Box::new([[room(), room()], [room(), room()]]));
        let own: Vec<Option<u32>> = units.iter().copied().map(Some).collect();
        let rows = |of: Range<usize>| rows_of(cohort, &units[of]);
        let rules = fit.rules(cohort)?;
        let placed = || rules.is_none().then(|| Placed::new(cohort, &fit.metrics, &units));
        let (pools, placed) = rayon::join(|| fit.pools(cohort), placed);
        let searches = fit.searches(cohort, &pools, rules.as_ref(), placed.as_ref());
        let points = placed.as_ref().map(|p| &p.points);
        let Estimated { effects, unserved } =
            fit.estimate_blocks(&searches, &own, &rows, points, groups.as_deref_mut(), watch)?;
        drop(searches);
        drop(placed);
        if effects.is_empty() {
            return Err(Error::Refused(vec![nobody_served(fit.options.group_size)]));
        }
        let unserved: Vec<(u32, Unserved)> = unserved.into_iter().map(|(q, why)| (units[q], why)).collect();
        let units = without(units, &unserved);
        Ok(Analysis { fit, units, effects, unserved, groups })
    }

    /// Of what the adjusted estimator made of every unit.
    fn of_adjusted(fit: Fit, found: adjusted::Estimates) -> Result<Analysis, Error> {
        let (mut units, mut effects, mut unserved) = (Vec::with_capacity(found.len()), Vec::new(), Vec::new());
        for (i, effect) in found.into_iter().enumerate() {
            match effect {
                Ok(effect) => {
                    units.push(i as u32);
                    effects.push(effect);
                }
                Err(why) => unserved.push((i as u32, why)),
            }
        }
        if units.is_empty() {
            return Err(Error::Refused(vec![nobody_served(fit.fewest())]));
        }
        Ok(Analysis { fit, units, effects, unserved, groups: None })
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

/// From a cohort to two effects, by the estimator of the options.
pub fn run(cohort: &Cohort, options: &Options, watch: &dyn Watch) -> Result<Analysis, Error> {
    run_with(cohort, options, watch, false)
}

/// The same, keeping the groups (4 bytes for each member), so that an audit need not search again. Up to 3 GB of them;
/// beyond that they are forgotten, and the audit takes longer to say the same.
pub fn run_for_audit(cohort: &Cohort, options: &Options, watch: &dyn Watch) -> Result<Analysis, Error> {
    run_with(cohort, options, watch, true)
}

fn run_with(cohort: &Cohort, options: &Options, watch: &dyn Watch, audited: bool) -> Result<Analysis, Error> {
    match &options.estimator {
        // Algorithm 1 of the paper: split, fit, learn the metrics, match, estimate.
        Estimator::Paper => Analysis::of_fit(Fit::learn(cohort, options, watch)?, &[], cohort, watch, audited),
        Estimator::Adjusted(adjusted) => run_adjusted(cohort, options, adjusted, watch),
    }
}

/// The problem that a part of dvim cannot take weights, clusters, delayed entry or other causes, where there are any.
pub fn not_supported(further: &Further, who: &str, remedy: impl Into<Phrase>) -> Option<Problem> {
    let names = further.names();
    (!names.is_empty()).then(|| {
        Problem::error(
            ProblemKind::NotSupported,
            Phrase::listed(&names).and(if names.len() == 1 { " is" } else { " are" }).and(format!(" given with {who}")),
            "case weights, clusters, delayed entry and other causes are taken by the paper's estimator only, so far",
            remedy,
        )
    })
}

/// The problem that the adjusted estimator cannot take them.
pub fn refuse_adjusted(further: &Further) -> Option<Problem> {
    not_supported(further, "the adjusted estimator", phrase!["use ", Setting::Estimator.to("paper")])
}

/// The adjusted estimator. The two cure models that are reported with it are fitted on all units for
/// description; no estimate uses them.
fn run_adjusted(
    cohort: &Cohort,
    options: &Options,
    adjusted: &AdjustedOptions,
    watch: &dyn Watch,
) -> Result<Analysis, Error> {
    let mut problems = options.problems(Arm::BOTH.map(|z| cohort.units_of(z).len()));
    problems.extend(refuse_adjusted(cohort.further()));
    if problems.iter().any(|p| p.severity == Severity::Error) {
        return Err(Error::Refused(problems));
    }
    let scaling = Scaling::of(cohort, Scale::Standard);
    let step = |stage: &'static str, done: usize, total: usize| {
        watch.progress(stage, done, total);
        if watch.cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    };
    let rules = options.rules(cohort)?;
    let (cross_fit, found) = adjusted::estimate(cohort, &scaling, rules, adjusted, options.seed, &step)?;
    let mean_metric = |part: usize| {
        let all: Vec<&Metric> = cross_fit.folds().flat_map(|f| &f.metrics[part]).collect();
        let weights =
            (0..cohort.n_covariates()).map(|j| all.iter().map(|m| m.weights[j]).sum::<f64>() / all.len() as f64);
        Metric { weights: weights.collect(), scaling: scaling.clone() }
    };
    let metrics = Metrics { cure: mean_metric(0), time: mean_metric(1) };
    let everyone = Split::restored(cohort, vec![true; cohort.n_units()]);
    let kept = described(cohort, &metrics);
    let models = fit_models(cohort, &everyone, &scaling, &options.fit, kept.as_deref(), watch)?;
    let is_training = vec![false; cohort.n_units()];
    let fit = Fit { options: options.clone(), is_training, models, metrics, cross_fit: Some(cross_fit) };
    Analysis::of_adjusted(fit, found)
}

/// With more covariates than this the models that describe an adjusted run have only those of largest weight.
const MOST_DESCRIBED: usize = 60;

/// Events of the smaller arm for each covariate of those models: the rule of thumb for models without penalty.
const EVENTS_FOR_ONE: usize = 10;

/// Which covariates the models that describe an adjusted run have: `None` for all. Else those of largest weight in the metrics, as many as the
/// events allow.
fn described(cohort: &Cohort, metrics: &Metrics) -> Option<Vec<bool>> {
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
