//! From a cohort to two effects: the one place that puts the stages together.

use crate::cohort::{Arm, Cohort};
use crate::cure::{self, CureModel};
use crate::effect::{ArmEstimate, Effect, Flag, Matcher, Pool};
use crate::error::{Error, Problem, ProblemKind, Severity};
use crate::metric::{Metric, MetricChoice, Metrics, Scale, Scaling};
use crate::split::{Split, training_size};
use crate::survival::SurvivalCurve;

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
        }
    }
}

impl Options {
    /// What is wrong with these options for arms of these sizes (control, treated).
    pub fn problems(&self, arm_sizes: [usize; 2]) -> Vec<Problem> {
        let mut out = Vec::new();
        if !(self.train_fraction > 0.0 && self.train_fraction < 1.0) {
            out.push(Problem::error(
                ProblemKind::BadOption,
                format!("the train fraction is {}", self.train_fraction),
                "the train fraction lies strictly between 0 and 1",
                "use --train-fraction 0.35, the paper's choice",
            ));
            return out;
        }
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            out.push(Problem::error(
                ProblemKind::BadOption,
                format!("the confidence level is {}", self.confidence),
                "the confidence level lies strictly between 0 and 1",
                "use --confidence 0.95",
            ));
        }
        if self.group_size == 0 {
            out.push(Problem::error(
                ProblemKind::BadOption,
                "the group size is 0",
                "a match group has at least one unit",
                "use --group-size 50, or 35 for a cohort of a thousand",
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
                    format!(
                        "use a group size of at most {left} (a tenth of that, {}, leaves room for close matches)",
                        (left / 10).max(1)
                    ),
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
    /// The metric of each estimand.
    pub metrics: Metrics,
}

impl Fit {
    /// Splits, fits the two models and learns the metrics.
    pub fn learn(cohort: &Cohort, options: &Options, watch: &dyn Watch) -> Result<Fit, Error> {
        let sizes = Arm::BOTH.map(|z| cohort.units_of(z).len());
        let problems = options.problems(sizes);
        if problems.iter().any(|p| p.severity == Severity::Error) {
            return Err(Error::Refused(problems));
        }
        let split = Split::honest(cohort, options.train_fraction, options.seed);
        let scaling = Scaling::of(cohort, options.scale);
        let training = split.training();
        watch.progress("fitting the cure models", 0, 2);
        let fit_arm = |arm: Arm| -> Result<CureModel, Error> {
            let data = training.arm(arm);
            let covariates = scaling.apply(&data.covariates);
            cure::fit(
                &cure::ArmData {
                    time: &data.time,
                    event: &data.event,
                    covariates: &covariates,
                    n_covariates: cohort.n_covariates(),
                    horizon: cohort.horizon(),
                },
                &options.fit,
            )
            .map_err(|e| Error::Model { arm: arm.name(), reason: e.to_string() })
        };
        let (control, treated) = rayon::join(|| fit_arm(Arm::Control), || fit_arm(Arm::Treated));
        let models = [control?, treated?];
        watch.progress("fitting the cure models", 2, 2);
        let metrics = Metrics::learn(&models, &scaling, options.metric);
        Ok(Fit { options: options.clone(), is_training: split.is_training().to_vec(), models, metrics })
    }

    /// The units of an arm that groups are drawn from: its estimation set.
    pub fn pool(&self, cohort: &Cohort, arm: Arm) -> Pool {
        let split = Split::restored(cohort, self.is_training.clone());
        Pool::new(cohort, split.estimation().units_of(arm))
    }

    /// Positions of the units that are estimated.
    pub fn estimation_units(&self) -> Vec<u32> {
        (0..self.is_training.len() as u32).filter(|&i| !self.is_training[i as usize]).collect()
    }

    /// Estimates units with these covariates (row-major, as recorded) against the cohort.
    /// A pure function of its arguments: shards of units can be estimated anywhere, in any order.
    pub fn estimate(&self, cohort: &Cohort, covariates: &[f64], watch: &dyn Watch) -> Result<Vec<Effect>, Error> {
        let pools = Arm::BOTH.map(|z| self.pool(cohort, z));
        let metrics = [&self.metrics.cure, &self.metrics.time];
        let matchers = pools.each_ref().map(|pool| metrics.map(|m| Matcher::new(pool, cohort, m)));
        let p = cohort.n_covariates();
        let n = covariates.len() / p;
        let k = [self.options.group_size];
        let mut out = Vec::with_capacity(n);
        for block in covariates.chunks(BLOCK * p) {
            if watch.cancelled() {
                return Err(Error::Cancelled);
            }
            watch.progress("matching", out.len(), n);
            let placed = metrics.map(|m| m.place(block));
            let found = matchers.each_ref().map(|of_arm| [0, 1].map(|m| of_arm[m].estimate(&placed[m], k)));
            out.extend((0..block.len() / p).map(|q| {
                let arms = [0, 1].map(|z| ArmEstimate { cure: found[z][0][q][0], time: found[z][1][q][0] });
                Effect { arms }
            }));
        }
        watch.progress("matching", n, n);
        Ok(out)
    }

    /// The match groups of one unit of the cohort, patient by patient.
    pub fn match_groups(&self, cohort: &Cohort, unit: usize) -> UnitGroups {
        let x = cohort.covariates(unit);
        let groups = |metric: &Metric| {
            Arm::BOTH.map(|arm| {
                let pool = self.pool(cohort, arm);
                let matcher = Matcher::new(&pool, cohort, metric);
                let (members, squared) = matcher.group(&metric.place(x), self.options.group_size);
                let units: Vec<u32> = members.iter().map(|&m| pool.units[m as usize]).collect();
                let time: Vec<f64> = units.iter().map(|&i| cohort.time(i as usize)).collect();
                let event: Vec<bool> = units.iter().map(|&i| cohort.event(i as usize)).collect();
                MatchGroup {
                    shares: units.iter().map(|&i| metric.shares(x, cohort.covariates(i as usize))).collect(),
                    distance: squared.iter().map(|d| d.sqrt()).collect(),
                    curve: SurvivalCurve::new(&time, &event),
                    units,
                }
            })
        };
        UnitGroups { cure: groups(&self.metrics.cure), time: groups(&self.metrics.time) }
    }
}

/// Units estimated between two looks at the watch: large enough that the search can order them
/// well, small enough that memory stays bounded and a cancelled run stops within a second.
const BLOCK: usize = 65_536;

/// Bytes that a run needs at its peak, the table that it is read from included: columns of the
/// table and the cohort's rows while both exist, then the cohort, the packed arms under both
/// metrics and the effects. An upper estimate, checked against measurements in docs/benchmarks.md.
pub fn memory_needed(n_units: usize, n_covariates: usize, train_fraction: f64) -> u64 {
    let (n, p) = (n_units as f64, n_covariates as f64);
    let estimated = n * (1.0 - train_fraction);
    let reading = n * 8.0 * (2.0 * p + 8.0);
    let cohort = n * 8.0 * (p + 5.0);
    let packed = estimated * (2.0 * 8.0 * p + 2.0 * 16.0 * p);
    let effects = estimated * std::mem::size_of::<Effect>() as f64;
    (64e6 + f64::max(reading, cohort + packed + effects)) as u64
}

/// One match group.
#[derive(Clone, Debug, PartialEq)]
pub struct MatchGroup {
    /// Positions of its members in the cohort, nearest first.
    pub units: Vec<u32>,
    /// Their distances.
    pub distance: Vec<f64>,
    /// For each member, the share of each covariate in its squared distance.
    pub shares: Vec<Vec<f64>>,
    /// The group's curve.
    pub curve: SurvivalCurve,
}

/// The four match groups of one unit; in each pair, control first.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitGroups {
    /// Matched for cure.
    pub cure: [MatchGroup; 2],
    /// Matched for time.
    pub time: [MatchGroup; 2],
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

/// Everything that one run found.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// What was learned.
    pub fit: Fit,
    /// Positions in the cohort of the estimated units, ascending.
    pub units: Vec<u32>,
    /// Their effects.
    pub effects: Vec<Effect>,
}

impl Analysis {
    /// Estimates the estimation units of a fit: of a new one, or of one that was saved.
    pub fn from_fit(fit: Fit, cohort: &Cohort, watch: &dyn Watch) -> Result<Analysis, Error> {
        let units = fit.estimation_units();
        let covariates: Vec<f64> = units.iter().flat_map(|&i| cohort.covariates(i as usize)).copied().collect();
        let effects = fit.estimate(cohort, &covariates, watch)?;
        Ok(Analysis { fit, units, effects })
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
    pub fn flag_counts(&self) -> [(Flag, usize); 6] {
        Flag::ALL.map(|f| (f, self.effects.iter().filter(|e| e.has(f)).count()))
    }
}

/// Algorithm 1 of the paper: split, fit, learn the metrics, match, estimate.
pub fn run(cohort: &Cohort, options: &Options, watch: &dyn Watch) -> Result<Analysis, Error> {
    Analysis::from_fit(Fit::learn(cohort, options, watch)?, cohort, watch)
}
