//! What was learned: a list of folds.
//!
//! A [`Fold`] says how some units are matched: under which metric, in groups of which size, and by which corrector,
//! where there is one. The paper's Algorithm 1 is one fold without a corrector. The adjusted estimator has several
//! folds with correctors: each was learned from the units outside it and estimates the units inside. Folds that divide
//! the cohort once are a [`Deal`]; more splits than one deal holds are dealt anew, and estimates are means over the
//! deals.

use crate::arm::{Arm, ByArm};
use crate::cohort::Cohort;
use crate::correction::Corrector;
use crate::cure::{ArmModels, CureModel};
use crate::effect::Four;
use crate::error::{Problem, ProblemKind};
use crate::estimand::{ByEstimand, Estimand};
use crate::joint::Family;
use crate::martingale::Residual;
use crate::metric::Metric;
use crate::options::Options;
use crate::phrase;
use crate::setting::Setting;
use crate::split::Trained;
use std::borrow::Cow;

/// How some units are matched.
#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    /// The metric of each estimand in each arm.
    pub metrics: Four<Metric>,
    /// K of each estimand.
    pub group_size: ByEstimand<usize>,
    /// What corrects the groups, where they are corrected.
    pub corrector: Option<Corrector>,
    /// What the certificate of its model flags, in words; empty for an ordinary fit.
    pub warnings: Vec<String>,
}

/// The number of a fold that stands for none: the unit trains, and is not estimated.
pub const NO_FOLD: u8 = u8::MAX;

/// Folds that divide the cohort once.
#[derive(Clone, Debug, PartialEq)]
pub struct Deal {
    /// The fold that estimates each unit, or [`NO_FOLD`].
    pub fold_of: Vec<u8>,
    /// The folds.
    pub folds: Vec<Fold>,
    /// What this deal made of each unit; empty where there is one deal. Not a number where a unit has no groups.
    pub values: Vec<DealValues>,
}

impl Deal {
    /// The units that a fold estimates, ascending.
    pub fn units_of(&self, fold: usize) -> Vec<u32> {
        (0..self.fold_of.len() as u32).filter(|&i| self.fold_of[i as usize] as usize == fold).collect()
    }
}

/// What one deal made of a unit, by its fold that left the unit out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DealValues {
    /// P(T ≥ H) in each arm.
    pub cure_probability: ByArm<f64>,
    /// E[T | T < H] in each arm.
    pub mean_event_time: ByArm<f64>,
    /// What the unit's outcome says beyond that, in its own arm.
    pub residual: Residual,
}

impl DealValues {
    /// The effect that the deal found, treated minus control.
    pub fn effect(&self, estimand: Estimand) -> f64 {
        let value = match estimand {
            Estimand::Cure => &self.cure_probability,
            Estimand::Time => &self.mean_event_time,
        };
        value.treated - value.control
    }
}

/// What was learned. Together with the cohort it answers for any unit, so that it can be saved, and estimation is a
/// pure function of it.
///
/// ```
/// use dvim::{Options, Scenario, Unwatched, run, simulate};
///
/// let world = simulate(Scenario::BothOverlap, 1_000, false, 1);
/// let found = run(&world.cohort, &Options::paper(), &Unwatched)?;
/// assert_eq!(found.fit.deals.len(), 1, "the paper's estimator is one fold without a corrector");
/// let groups = found.fit.match_groups(&world.cohort, found.units[0] as usize);
/// assert_eq!(groups.cure.treated.units.len(), 50);
/// # Ok::<(), dvim::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// How it was made.
    pub options: Options,
    /// Units that only train: they are neither estimated nor in a group.
    pub is_training: Vec<bool>,
    /// The deals, at least one. Groups that are shown are those of the first.
    pub deals: Vec<Deal>,
    /// What each unit's outcome says beyond its corrected curve in its own arm, a mean over deals; empty without a
    /// corrector.
    pub residuals: Vec<Residual>,
    /// What is told of the learning. No estimate uses it.
    pub description: Description,
}

/// What is told of the learning. No estimate uses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The cure models of the arms.
    pub models: ArmModels,
    /// The metric of each estimand: the mean over folds and arms.
    pub metrics: ByEstimand<Metric>,
    /// What cross-fitting chose, and how; `None` after one honest split.
    pub cross_fit: Option<CrossFit>,
}

/// What cross-fitting chose, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossFit {
    /// The latency family.
    pub family: Family,
    /// Mean out-of-fold log-likelihood of each family that was compared.
    pub families: Vec<(Family, f64)>,
    /// Chosen strengths of an elastic net.
    pub strengths: Option<ByEstimand<f64>>,
    /// The path of K and w in the first deal, over all folds together.
    pub path: Vec<PathPoint>,
    /// The averages of each split, deal after deal.
    pub averages: Vec<SplitAverage>,
}

/// A group size and a weight that were tried.
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
    /// What they were chosen for.
    pub estimand: Estimand,
    /// The candidate.
    pub choice: Choice,
    /// Mean loss minus that of the reference candidate (largest K, smallest w).
    pub loss: f64,
    /// Standard error of that difference.
    pub se: f64,
}

/// The average effects over the units that one split left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitAverage {
    /// Number of its deal, from 0.
    pub deal: usize,
    /// Units that it left out and estimated.
    pub n_units: usize,
    /// Means of their effects; not a number where there is no unit.
    pub mean: ByEstimand<f64>,
    /// Standard deviations of these effects; not a number below two units.
    pub sd: ByEstimand<f64>,
}

/// How the average effects of splits vary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitSpread {
    /// Their standard deviations over splits.
    pub sd: ByEstimand<f64>,
    /// What these would be by chance, because each split left out other units: were one model behind all of them,
    /// and with σ² the variance of the effects inside the splits, `Σ σ²/n (1 − 1/F) / (R − 1)` is the mean of
    /// sd² over all deals of R splits, n being the units of a split and F the splits of its deal; σ²/n for one even
    /// deal.
    pub by_chance: ByEstimand<f64>,
}

impl CrossFit {
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
        let sd = |estimand: Estimand| {
            let mean = sum(&|a| a.mean[estimand]) / n;
            (sum(&|a| (a.mean[estimand] - mean) * (a.mean[estimand] - mean)) / (n - 1.0)).sqrt()
        };
        let by_chance = |estimand: Estimand| {
            let inside = sum(&|a| free(a) * a.sd[estimand] * a.sd[estimand]) / sum(&free);
            (inside * share).sqrt()
        };
        Some(SplitSpread { sd: ByEstimand::of(sd), by_chance: ByEstimand::of(by_chance) })
    }
}

impl Fit {
    /// The first deal: groups that are shown are its groups.
    pub fn first(&self) -> &Deal {
        &self.deals[0]
    }

    /// All folds of all deals: one for each split.
    pub fn folds(&self) -> impl Iterator<Item = &Fold> {
        self.deals.iter().flat_map(|d| &d.folds)
    }

    /// The fold that a unit of the cohort is matched by: in the first deal, the one that estimates it. A unit that only
    /// trained is matched as a new patient would be, and so `None`.
    pub fn fold_number(&self, unit: Option<u32>) -> Option<usize> {
        let number = self.first().fold_of[unit? as usize];
        (number != NO_FOLD).then_some(number as usize)
    }

    /// The fold that a unit of the cohort (by its position) or a new patient is matched by.
    pub fn fold_of(&self, unit: Option<u32>) -> Cow<'_, Fold> {
        match self.fold_number(unit) {
            Some(number) => Cow::Borrowed(&self.first().folds[number]),
            None => self.fold_for_newcomers(),
        }
    }

    /// What new patients are matched by: the one fold that there is; else mean metrics over the folds of all deals, the
    /// lower median K, the mean weight, and the model of the first fold, which a corrector for new patients
    /// replaces by all models.
    pub fn fold_for_newcomers(&self) -> Cow<'_, Fold> {
        let all: Vec<&Fold> = self.folds().collect();
        if let [only] = all[..] {
            return Cow::Borrowed(only);
        }
        let n = all.len() as f64;
        let mean = |f: &dyn Fn(&Fold) -> f64| all.iter().map(|fold| f(fold)).sum::<f64>() / n;
        let metric = |estimand: Estimand, arm: Arm| {
            let first = &all[0].metrics[estimand][arm];
            let weight = |j: usize| mean(&|fold| fold.metrics[estimand][arm].weights[j]);
            Metric { weights: (0..first.weights.len()).map(weight).collect(), scaling: first.scaling.clone() }
        };
        let group_size = |estimand: Estimand| {
            let mut sizes: Vec<usize> = all.iter().map(|f| f.group_size[estimand]).collect();
            sizes.sort_unstable();
            sizes[(sizes.len() - 1) / 2]
        };
        Cow::Owned(Fold {
            metrics: ByEstimand::of(|estimand| ByArm::of(|arm| metric(estimand, arm))),
            group_size: ByEstimand::of(group_size),
            corrector: None,
            warnings: Vec::new(),
        })
    }

    /// Whether groups are corrected.
    pub fn is_corrected(&self) -> bool {
        self.folds().any(|f| f.corrector.is_some())
    }

    /// The positions in the cohort of `n` patients who are estimated again, where that makes a difference: without a
    /// corrector a patient of the cohort is estimated as a new one with the same covariates would be.
    pub fn recognised(&self, n: usize, positions: impl FnOnce() -> Vec<Option<u32>>) -> Vec<Option<u32>> {
        if self.is_corrected() { positions() } else { vec![None; n] }
    }

    /// The units of an arm that groups are drawn from, ascending.
    pub fn units_in_pool(&self, cohort: &Cohort, arm: Arm) -> Vec<u32> {
        cohort.units_of(arm).into_iter().filter(|&i| !self.is_training[i as usize]).collect()
    }

    /// Positions of the units that are estimated.
    pub fn estimation_units(&self) -> Vec<u32> {
        (0..self.is_training.len() as u32).filter(|&i| !self.is_training[i as usize]).collect()
    }

    /// The models that trained on some units and are asked about others; `None` where the models only describe the
    /// cohort.
    pub fn trained_models(&self) -> Option<&ByArm<Trained<CureModel>>> {
        self.description.models.trained()
    }

    /// Medians over the estimated units of the standard deviations of the two effects over the deals; `None` with one
    /// deal.
    pub fn typical_split_sd(&self) -> Option<ByEstimand<f64>> {
        let n = self.deals.len() as f64;
        let median = |estimand: Estimand| {
            let of = |i: usize| {
                let of_deals = || self.deals.iter().map(|d| d.values[i].effect(estimand));
                let mean = of_deals().sum::<f64>() / n;
                (of_deals().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0)).sqrt()
            };
            let mut all: Vec<f64> = (0..self.first().values.len()).map(of).filter(|sd| sd.is_finite()).collect();
            all.sort_by(f64::total_cmp);
            all.get(all.len() / 2).copied()
        };
        Some(ByEstimand { cure: median(Estimand::Cure)?, time: median(Estimand::Time)? })
    }

    /// Levels of categories that the training set of an arm, or its estimation set, does not have.
    pub fn level_problems(&self, cohort: &Cohort) -> Vec<Problem> {
        let mut out = Vec::new();
        // Where nobody only trains, every fold sees nearly the whole cohort.
        if !self.is_training.contains(&true) {
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
}
