//! How to analyse a cohort. Every constant that a user cannot set stands here too, with its reason.

use crate::arm::Arm;
use crate::cohort::Cohort;
use crate::constraint::{Constraints, Rules};
use crate::cure;
use crate::error::{Error, Problem, ProblemKind, Severity};
use crate::joint::Family;
use crate::metric::{MetricChoice, Scale};
use crate::outcome::Extras;
use crate::phrase;
use crate::phrase::Phrase;
use crate::setting::Setting;
use crate::split::training_size;

/// How effects are estimated from match groups.
///
/// ```
/// use dvim::{Estimator, Options};
///
/// assert_eq!(Options::default().estimator, Estimator::Adjusted(Default::default()));
/// assert_eq!(Options::paper().estimator, Estimator::Paper);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)]
pub enum Estimator {
    /// The paper's Algorithm 1: the groups alone.
    Paper,
    /// A cross-fitted model, corrected by the groups; every unit is estimated.
    Adjusted(AdjustedOptions),
}

impl Estimator {
    /// The same with one deal of splits, for what is repeated many times: more deals narrow what the seed decides,
    /// which is a twentieth of an average's standard error, at many times the cost.
    pub fn with_one_deal(&self) -> Estimator {
        match self {
            Estimator::Adjusted(options) => {
                Estimator::Adjusted(AdjustedOptions { splits: Some(options.folds), ..options.clone() })
            }
            paper => paper.clone(),
        }
    }

    /// The word used in flags and files.
    pub fn name(&self) -> &'static str {
        match self {
            Estimator::Paper => "paper",
            Estimator::Adjusted(_) => "adjusted",
        }
    }
}

/// The problem that a part of dvim cannot take weights, clusters, delayed entry or other causes, where there are any.
pub fn not_supported(extras: &Extras, who: &str, remedy: impl Into<Phrase>) -> Option<Problem> {
    let names = extras.names();
    (!names.is_empty()).then(|| {
        Problem::error(
            ProblemKind::NotSupported,
            Phrase::listed(&names).and(if names.len() == 1 { " is" } else { " are" }).and(format!(" given with {who}")),
            "the paper's comparators take no case weights, clusters, delayed entry and other causes",
            remedy,
        )
    })
}

/// How to analyse. The horizon is not here: it belongs to the cohort.
///
/// ```
/// use dvim::Options;
///
/// let options = Options { seed: 7, ..Options::default() };
/// assert_eq!(options.confidence, 0.95);
/// let of_the_paper = Options { group_size: 35, ..Options::paper() };
/// assert_eq!(of_the_paper.train_fraction, 0.35, "the paper's choice");
/// ```
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
    /// The adjusted estimator, with everything chosen from the data.
    fn default() -> Options {
        Options { estimator: Estimator::Adjusted(AdjustedOptions::default()), ..Options::paper() }
    }
}

/// What an estimator asks of groups.
struct OfGroups {
    /// Whether a unit is kept out of its own group whatever the constraints say.
    without_self: bool,
    /// Candidates in each arm below which a unit has no effect.
    fewest: usize,
    /// Units of an arm that groups are drawn from, at most.
    pool_units: usize,
    /// Units whose groups an audit looks through, at most.
    audited_units: usize,
    /// The share still watched is never taken to be smaller.
    smallest_censoring_survival: f64,
}

impl Options {
    /// The paper's Algorithm 1 with the paper's choices, on standardised covariates.
    pub fn paper() -> Options {
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

    /// Who may be in a group, in terms of a cohort's columns; `None` where every unit may. A corrected group holds
    /// nobody of the unit's own cluster: what they share would reach the unit's estimate.
    pub(crate) fn rules(&self, cohort: &Cohort) -> Result<Option<Rules>, Error> {
        let clusters = cohort.extras().cluster.as_ref().filter(|_| self.of_groups().without_self);
        let rules = Rules::new(&self.constraints, cohort).map_err(Error::Refused)?.without_own_cluster(clusters);
        Ok(Some(rules).filter(|rules| !rules.is_empty()))
    }

    /// What the estimator asks of groups.
    fn of_groups(&self) -> OfGroups {
        match &self.estimator {
            Estimator::Paper => OfGroups {
                without_self: false,
                fewest: self.group_size,
                pool_units: usize::MAX,
                audited_units: usize::MAX,
                smallest_censoring_survival: 0.0,
            },
            // A corrected group never holds the unit: its offset must be honest.
            Estimator::Adjusted(adjusted) => OfGroups {
                without_self: true,
                fewest: adjusted.fewest(),
                // Exact covariates and calipers may leave few candidates, so that all of them are needed.
                pool_units: if self.constraints.is_empty() { adjusted.pool_units() } else { usize::MAX },
                audited_units: adjusted.audited_units,
                smallest_censoring_survival: adjusted.smallest_censoring_survival,
            },
        }
    }

    /// Whether a unit is kept out of its own group.
    pub fn leaves_out_self(&self) -> bool {
        self.constraints.exclude_self || self.of_groups().without_self
    }

    /// Candidates in each arm below which a unit has no effect.
    pub fn fewest(&self) -> usize {
        self.of_groups().fewest
    }

    /// How many units of an arm groups are drawn from, at most.
    pub(crate) fn pool_units(&self) -> usize {
        self.of_groups().pool_units
    }

    /// The share of an arm still watched is never taken to be smaller than this where residuals are divided by it.
    pub(crate) fn smallest_censoring_survival(&self) -> f64 {
        self.of_groups().smallest_censoring_survival
    }

    /// Of how many units an audit looks through the groups, at most.
    pub(crate) fn audited_units(&self) -> usize {
        self.of_groups().audited_units
    }

    /// Refuses options that do not fit a cohort.
    pub(crate) fn check(&self, cohort: &Cohort) -> Result<(), Error> {
        let mut problems = self.problems(Arm::BOTH.map(|z| cohort.units_of(z).len()));
        problems.extend(self.too_few_clusters(cohort.extras(), |i| cohort.arm(i)));
        if problems.iter().any(|p| p.severity == Severity::Error) {
            return Err(Error::Refused(problems));
        }
        self.rules(cohort).map(|_| ())
    }

    /// The problem that an arm is in too few clusters to leave some of them out, where it is.
    pub fn too_few_clusters(&self, extras: &Extras, arm: impl Fn(usize) -> Arm) -> Option<Problem> {
        let clusters = extras.cluster.as_ref().filter(|_| self.of_groups().without_self)?;
        let count = |z: Arm| {
            let of = clusters.iter().enumerate().filter(|(i, _)| arm(*i) == z).map(|(_, c)| *c);
            of.collect::<std::collections::HashSet<u32>>().len()
        };
        let (z, n) = Arm::BOTH.map(|z| (z, count(z))).into_iter().min_by_key(|(_, n)| *n)?;
        (n < FEWEST_CLUSTERS).then(|| {
            Problem::error(
                ProblemKind::ArmTooSmall,
                format!("the {} arm is in {n} clusters", z.name()),
                "a split leaves out whole clusters and learns from the others, so each arm is in five clusters or more",
                phrase![
                    "use ",
                    Setting::Estimator.to("paper"),
                    ", or leave out ",
                    Setting::Cluster,
                    " and take the intervals as too narrow"
                ],
            )
        })
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

/// Clusters that each arm of an adjusted run needs: variances between fewer are not known.
const FEWEST_CLUSTERS: usize = 5;

/// Strengths of an elastic net that are tried, in units of log-likelihood for a slope of a column of unit standard
/// deviation.
pub const STRENGTHS: [f64; 7] = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0];
/// Strength of the time part while that of the cure part is chosen.
pub(crate) const FIRST_STRENGTH: f64 = 30.0;

/// What models of a patient's curve are learned from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Learners {
    /// The cure model, and beside it proportional hazards and boosted hazards as far as they predict better.
    #[default]
    All,
    /// The cure model alone.
    Cure,
    /// Proportional hazards alone.
    Hazards,
    /// Boosted hazards alone.
    Boosted,
}

impl Learners {
    /// All of them.
    pub const ALL: [Learners; 4] = [Learners::All, Learners::Cure, Learners::Hazards, Learners::Boosted];

    /// The word used in options.
    pub fn name(self) -> &'static str {
        match self {
            Learners::All => "all",
            Learners::Cure => "cure",
            Learners::Hazards => "hazards",
            Learners::Boosted => "boosted",
        }
    }

    /// The learners of this name.
    pub fn named(name: &str) -> Option<Learners> {
        Learners::ALL.into_iter().find(|l| l.name() == name)
    }
}

/// How the adjusted estimator works. All other constants stand here, with their reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct AdjustedOptions {
    /// Honest splits in all; `None`: as many deals of `folds` splits as the cohort needs, see
    /// [`AdjustedOptions::for_units`]. Ten train on 90 % of the units; five cost 8 % in accuracy, more of one deal
    /// gain little.
    pub splits: Option<usize>,
    /// Splits that share one deal at most: each unit is left out by one split of a deal.
    pub folds: usize,
    /// Units that all deals estimate together, about, where their number is not said.
    pub units_of_deals: usize,
    /// Deals at most, where their number is not said. Ten bring what a patient's estimate moves between seeds at 2,000
    /// patients from a quarter of its standard error below a tenth.
    pub most_deals: usize,
    /// The latency family; `None` chooses by out-of-fold likelihood. The shape of a generalised gamma of shape 0 is
    /// learned.
    pub family: Option<Family>,
    /// What holds the slopes of the models: `None` the prior that is learned with them; else an elastic net with this
    /// share of the norm (0 is ridge), its strengths for cure and time chosen by out-of-fold likelihood.
    pub elastic_net: Option<f64>,
    /// What stands beside the cure model.
    pub learners: Learners,
    /// K for both estimands; `None` chooses from the data.
    pub group_size: Option<usize>,
    /// The largest K that is tried, besides half of the smaller arm. A thousand lowers the error at n = 20,000 by
    /// another 15 %, far below what is needed, at three times the time and with groups that nobody can look through.
    pub largest_group: usize,
    /// The smallest K that is tried: with fewer a curve at H rests on a handful.
    pub smallest_group: usize,
    /// Weights of the group's offset that are tried; never 0, so that every estimate rests on its group.
    pub weights: [f64; 4],
    /// Beyond this many units a smaller weight is tried too: a model learns from all units, so its error falls as
    /// 1/√n, while groups stay as they are; without it their noise is most of the error of 20,000 units whose
    /// model is right.
    pub units_for_weight: f64,
    /// A candidate (K, w) must beat the reference by this many standard errors of the loss difference.
    pub caution: f64,
    /// Units of an arm that models learn from, at most; a fixed sample by hash of id, of which each fold leaves its own
    /// out. Everybody is estimated. The error that it costs is measured in docs/accuracy.md, "Large cohorts".
    pub learning_units: usize,
    /// Units of an arm that groups are drawn from, at most, where no constraint asks for more; a fixed sample by hash
    /// of id. The error that it costs is measured there too.
    pub pool_units: usize,
    /// Units whose groups an audit looks through, at most; a fixed sample by hash of id. Shares of so many are known to
    /// half a point; averages and their intervals rest on everybody.
    pub audited_units: usize,
    /// Units on which K and w are chosen, at most; a fixed sample by hash of id.
    pub tuning_units: usize,
    /// Units on which latency families are compared, at most (a fixed sample by hash of id); the shape of the
    /// event times shows in a few thousand.
    pub family_units: usize,
    /// Units on which the shape of the generalised gamma family is learned, at most (a fixed sample by hash of id).
    pub shape_units: usize,
    /// Log-likelihood that the generalised gamma family must have above its special cases on that sample to be
    /// compared: 2, about the 5 % test of its shape.
    pub gain_for_shape: f64,
    /// Share of the other arm's importance in an arm's metric.
    pub borrowed: f64,
    /// Every covariate keeps this share of the largest weight; of more than 1/this covariates, all together the
    /// largest weight.
    pub floor: f64,
    /// Smallest censoring survival that a loss is divided by.
    pub smallest_censoring_survival: f64,
    /// For intervals: no slope is held more than κ times more certain than its data alone make it, because weak
    /// effects that the prior did not find are there all the same. κ = 4 up to this many units and grows with n
    /// beyond, because fewer are missed. Chosen on cohorts other than those that docs/coverage.md reports coverage
    /// on.
    pub units_for_certainty: f64,
}

impl Default for AdjustedOptions {
    fn default() -> AdjustedOptions {
        AdjustedOptions {
            splits: None,
            folds: 10,
            units_of_deals: 20_000,
            most_deals: 10,
            family: None,
            elastic_net: None,
            learners: Learners::All,
            group_size: None,
            largest_group: 250,
            smallest_group: 25,
            weights: [0.25, 0.5, 0.75, 1.0],
            units_for_weight: 3000.0,
            caution: 2.0,
            learning_units: 100_000,
            pool_units: 25_000,
            audited_units: 50_000,
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
    /// Splits and folds where some are not said: as many splits as folds where those are said, one deal.
    pub fn splits_and_folds(splits: Option<usize>, folds: Option<usize>) -> (Option<usize>, usize) {
        (splits.or(folds), folds.unwrap_or(AdjustedOptions::default().folds))
    }

    /// The same with a number of splits for `n` units, where none was said: small cohorts are dealt several times, so
    /// that the answer hardly depends on the seed.
    pub fn for_units(&self, n: usize) -> AdjustedOptions {
        let deals = ((self.units_of_deals + n / 2) / n.max(1)).clamp(1, self.most_deals);
        AdjustedOptions { splits: Some(self.splits.unwrap_or(deals * self.folds)), ..self.clone() }
    }

    /// Honest splits in all: one deal where nothing was said.
    pub fn n_splits(&self) -> usize {
        self.splits.unwrap_or(self.folds)
    }

    /// Splits of the largest deal.
    fn splits_of_a_deal(&self) -> usize {
        self.n_splits().div_ceil(self.n_deals())
    }

    pub(crate) fn n_deals(&self) -> usize {
        self.n_splits().div_ceil(self.folds.max(1)).max(1)
    }

    /// The number of splits of each deal: as few deals as there can be, as even as they can be, larger ones first.
    pub fn deals(&self) -> Vec<usize> {
        let n = self.n_deals();
        (0..n).map(|d| self.n_splits() / n + usize::from(d < self.n_splits() % n)).collect()
    }

    /// The weights that are tried on `n` units, ascending.
    pub(crate) fn weights_for(&self, n: usize) -> Vec<f64> {
        let least = self.weights[0] * f64::sqrt(self.units_for_weight / n as f64);
        let smaller = (least < self.weights[0]).then_some(least);
        smaller.into_iter().chain(self.weights).collect()
    }

    /// A unit to which constraints leave fewer candidates in an arm is not served: K where it was given, else the
    /// smallest that is tried.
    pub fn fewest(&self) -> usize {
        self.group_size.unwrap_or(self.smallest_group)
    }

    /// Units of an arm that groups are drawn from, at most; ten times as many as a group has, where its size was said.
    pub(crate) fn pool_units(&self) -> usize {
        self.pool_units.max(10 * self.group_size.unwrap_or(0))
    }

    /// What is wrong with these options for arms of these sizes (control, treated).
    pub fn problems(&self, arm_sizes: [usize; 2]) -> Vec<Problem> {
        let mut out = Vec::new();
        if !(2..=50).contains(&self.folds) {
            out.push(Problem::error(
                ProblemKind::BadOption,
                format!("the number of folds is {}", self.folds),
                "a deal has 2 to 50 folds, each left out by one split",
                phrase!["use ", Setting::Folds.to(10)],
            ));
        }
        let split_problem = |rule: &'static str, remedy: Phrase| {
            Problem::error(ProblemKind::BadOption, format!("the number of splits is {}", self.n_splits()), rule, remedy)
        };
        if self.n_splits() == 1 {
            let rule = "with one split the patients who train have no estimate, so there are 2 to 500";
            out.push(split_problem(rule, phrase!["use ", Setting::Splits.to(10)]));
        } else if !(2..=500).contains(&self.n_splits()) {
            let rule = "every patient is left out by some split, so there are 2 to 500";
            out.push(split_problem(rule, phrase!["use ", Setting::Splits.to(10)]));
        } else if self.folds == 2 && self.n_splits() % 2 == 1 {
            let rule = "of two folds a deal holds two splits, so that their number is even";
            out.push(split_problem(
                rule,
                phrase!["use ", Setting::Splits.to(self.n_splits() + 1), ", or more ", Setting::Folds],
            ));
        }
        if let Some(mixing) = self.elastic_net.filter(|m| !(0.0..=1.0).contains(m)) {
            out.push(Problem::error(
                ProblemKind::BadOption,
                format!("the share of the norm in the elastic net is {mixing}"),
                "it lies between 0 (ridge) and 1 (lasso)",
                phrase!["use ", Setting::Penalty.to("elastic-net:0.5")],
            ));
        }
        if self.group_size == Some(0) {
            out.push(Problem::error(
                ProblemKind::BadOption,
                "the group size is 0",
                "a match group has at least one unit",
                phrase!["use ", Setting::GroupSize.to("auto"), ", which chooses it from the data"],
            ));
        }
        let needed = (self.fewest() + 1).max(2 * self.splits_of_a_deal());
        for arm in Arm::BOTH.into_iter().filter(|arm| arm_sizes[arm.index()] < needed) {
            out.push(Problem::error(
                ProblemKind::ArmTooSmall,
                format!(
                    "the {} arm has {} units, fewer than the {needed} that are needed here",
                    arm.name(),
                    arm_sizes[arm.index()]
                ),
                "each arm needs two units for each fold, and more units than a group has to have",
                self.remedy_for_arms_of(arm_sizes[0].min(arm_sizes[1])),
            ));
        }
        out
    }

    /// Settings that serve arms of which the smaller has so many units.
    fn remedy_for_arms_of(&self, smaller: usize) -> Phrase {
        let half = smaller / 2;
        if half < 4 {
            return "an arm this small cannot be analysed: bring more patients".into();
        }
        let group_size = (self.fewest() >= smaller).then(|| Setting::GroupSize.to(half));
        let folds = (2 * self.splits_of_a_deal() > smaller).then(|| Setting::Folds.to(half));
        let between = if group_size.is_some() && folds.is_some() { " and " } else { "" };
        let settings = group_size.map_or(Phrase::from("use "), |k| phrase!["use ", k]).and(between);
        folds.map_or(settings.clone(), |f| settings.and(f)).and(", and expect little of single patients")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phrase::{Piece, Value};

    #[test]
    fn the_remedy_for_a_small_arm_is_one() {
        for smaller in 8..26 {
            let options = AdjustedOptions::default();
            let remedy = &options.problems([smaller, 100])[0].remedy;
            let said = |setting: Setting| {
                remedy.pieces().iter().find_map(|piece| match piece {
                    Piece::Setting(s, Some(Value::Number(x))) if *s == setting => Some(*x as usize),
                    _ => None,
                })
            };
            let (splits, folds) = AdjustedOptions::splits_and_folds(None, said(Setting::Folds));
            let better = AdjustedOptions { group_size: said(Setting::GroupSize), splits, folds, ..options };
            assert!(better.group_size.is_some() && better.problems([smaller, 100]).is_empty(), "{remedy:?}");
            let given = AdjustedOptions { group_size: Some(3), ..AdjustedOptions::default() };
            let problems = given.problems([smaller, 100]);
            assert_eq!(problems.is_empty(), smaller >= 20);
            assert!(problems.iter().all(|p| !p.remedy.names(Setting::GroupSize) && p.remedy.names(Setting::Folds)));
        }
        assert!(AdjustedOptions::default().problems([26, 26]).is_empty());
    }

    #[test]
    fn the_smallest_weight_falls_with_the_root_of_the_units() {
        let options = AdjustedOptions::default();
        assert_eq!(options.weights_for(2_000), [0.25, 0.5, 0.75, 1.0]);
        assert_eq!(options.weights_for(3_000), [0.25, 0.5, 0.75, 1.0]);
        assert_eq!(options.weights_for(12_000), [0.125, 0.25, 0.5, 0.75, 1.0]);
    }
}
