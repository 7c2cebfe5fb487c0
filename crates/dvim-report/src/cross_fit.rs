//! What the adjusted estimator learned, as records: for `summary.json`, and its models for a saved run.

use crate::record::{ByArm, family};
use crate::trees::BoostedRecord;
use dvim::internal::arm::ByArm as EngineByArm;
use dvim::internal::beside::{Beside, Hazard, Shares};
use dvim::internal::correction::{Corrector, FoldModel};
use dvim::internal::curve::{CELLS, Grid};
use dvim::internal::effect::Four;
use dvim::internal::estimand::{ByEstimand, Estimand};
use dvim::internal::fold::{Choice, CrossFit, Deal, DealValues, Fit, Fold, PathPoint, SplitAverage};
use dvim::internal::joint::{Column, Predictor, Shape, Term};
use dvim::internal::metric::{Metric, Scaling};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A group size with its weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChoiceRecord {
    /// K.
    pub group_size: usize,
    /// Weight of the group's offset from the model.
    pub weight: f64,
}

/// One point of the path over which K and w were chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathRecord {
    /// `cure_effect` or `time_effect`.
    pub estimand: String,
    /// K.
    pub group_size: usize,
    /// w.
    pub weight: f64,
    /// Mean loss minus that of the first candidate.
    pub loss: f64,
    /// Its standard error.
    pub se: f64,
}

/// One fold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoldRecord {
    /// Chosen for cure.
    pub cure: ChoiceRecord,
    /// Chosen for time.
    pub time: ChoiceRecord,
    /// Weights of the metrics: cure and time, each for control and treated.
    pub weights: [[Vec<f64>; 2]; 2],
    /// What is worth knowing of its model; empty for an ordinary fit.
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl FoldRecord {
    fn of(fold: &Fold, corrector: &Corrector) -> FoldRecord {
        let choice = |estimand: Estimand| ChoiceRecord {
            group_size: fold.group_size[estimand],
            weight: corrector.weight[estimand],
        };
        FoldRecord {
            cure: choice(Estimand::Cure),
            time: choice(Estimand::Time),
            weights: fold
                .metrics
                .each_ref()
                .map(|of| of.each_ref().map(|m| m.weights.clone()).into_array())
                .into_array(),
            warnings: fold.warnings.clone(),
        }
    }

    fn fold(&self, scaling: &Scaling, leftover: Four<f64>, model: FoldModel) -> Fold {
        let metric = |weights: Vec<f64>| Metric { weights, scaling: scaling.clone() };
        let metrics = ByEstimand::from(self.weights.clone()).map(|of| EngineByArm::from(of).map(metric));
        let weight = ByEstimand { cure: self.cure.weight, time: self.time.weight };
        Fold {
            metrics,
            group_size: ByEstimand { cure: self.cure.group_size, time: self.time.group_size },
            corrector: Some(Corrector { weight, leftover, model }),
            warnings: self.warnings.clone(),
        }
    }
}

/// A deal beyond the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DealRecord {
    /// The folds.
    pub folds: Vec<FoldRecord>,
    /// As of the first.
    pub leftover_variance: LeftoverRecord,
}

/// What the adjusted estimator learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrossFitRecord {
    /// The latency family.
    pub latency: String,
    /// Mean out-of-fold log-likelihood of the families that were compared.
    pub latencies: BTreeMap<String, f64>,
    /// Chosen strengths of an elastic net for cure and time; not there under the learned prior.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strengths: Option<[f64; 2]>,
    /// The folds of the first deal, each left out by one split.
    pub folds: Vec<FoldRecord>,
    /// The path of K and w in the first deal.
    pub path: Vec<PathRecord>,
    /// What the groups' offsets from the model vary beyond their noise, on the scale of the correction.
    #[serde(default)]
    pub leftover_variance: LeftoverRecord,
    /// Further deals.
    #[serde(default, skip_serializing_if = "Vec::is_empty", alias = "further_splits")]
    pub further_deals: Vec<DealRecord>,
    /// Medians over patients of the standard deviations of the cure effect and the time effect over the splits that
    /// left a patient out; not there with one deal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split_sd: Option<[f64; 2]>,
    /// The average effects of each split over the patients that it left out; not there in runs of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub split_averages: Vec<SplitAverageRecord>,
    /// How these averages vary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split_averages_sd: Option<SplitSpreadRecord>,
}

/// The average effects over the patients that one split left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitAverageRecord {
    /// Number of its deal, from 1.
    pub deal: usize,
    /// Patients that it left out and estimated.
    pub n_units: usize,
    /// Mean of their cure effects; `null` without patients, as below.
    pub cure_effect: Option<f64>,
    /// Mean of their time effects.
    pub time_effect: Option<f64>,
    /// Standard deviation of their cure effects; `null` below two patients.
    pub cure_effect_sd: Option<f64>,
    /// Standard deviation of their time effects.
    pub time_effect_sd: Option<f64>,
}

impl From<&SplitAverage> for SplitAverageRecord {
    fn from(a: &SplitAverage) -> SplitAverageRecord {
        let [mean, sd] = [a.mean, a.sd].map(|v| v.map(|x| Some(x).filter(|x| x.is_finite())));
        SplitAverageRecord {
            deal: a.deal + 1,
            n_units: a.n_units,
            cure_effect: mean.cure,
            time_effect: mean.time,
            cure_effect_sd: sd.cure,
            time_effect_sd: sd.time,
        }
    }
}

impl SplitAverageRecord {
    fn average(&self) -> SplitAverage {
        let number = |v: Option<f64>| v.unwrap_or(f64::NAN);
        SplitAverage {
            deal: self.deal.saturating_sub(1),
            n_units: self.n_units,
            mean: ByEstimand { cure: self.cure_effect, time: self.time_effect }.map(number),
            sd: ByEstimand { cure: self.cure_effect_sd, time: self.time_effect_sd }.map(number),
        }
    }
}

/// Standard deviations over splits of their average effects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitSpreadRecord {
    /// Of the cure effect.
    pub cure_effect: f64,
    /// Of the time effect.
    pub time_effect: f64,
    /// What it would be for the cure effect by chance, because each split left out other patients.
    pub cure_effect_by_chance: f64,
    /// The same for the time effect.
    pub time_effect_by_chance: f64,
}

/// Variance of the logit of cure and of the log mean event time that neither model nor noise explains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeftoverRecord {
    /// Of the logit of cure.
    pub cure: ByArm<f64>,
    /// Of the log mean event time.
    pub time: ByArm<f64>,
}

impl LeftoverRecord {
    /// All folds of a deal have one leftover variance.
    fn of(deal: &Deal) -> LeftoverRecord {
        let leftover = deal.folds.iter().find_map(|f| Some(f.corrector.as_ref()?.leftover)).unwrap_or_default();
        let pair = |estimand: Estimand| ByArm::map(|z| leftover[estimand][z]);
        LeftoverRecord { cure: pair(Estimand::Cure), time: pair(Estimand::Time) }
    }

    fn leftover(&self) -> Four<f64> {
        let pair = |v: &ByArm<f64>| EngineByArm { control: v.control, treated: v.treated };
        ByEstimand { cure: pair(&self.cure), time: pair(&self.time) }
    }
}

impl CrossFitRecord {
    /// Records what cross-fitting learned; `None` after one honest split.
    pub fn of(fit: &Fit) -> Option<CrossFitRecord> {
        let told = fit.description.cross_fit.as_ref()?;
        let folds = |deal: &Deal| {
            let record = |f: &Fold| Some(FoldRecord::of(f, f.corrector.as_ref()?));
            deal.folds.iter().filter_map(record).collect()
        };
        let further = |d: &Deal| DealRecord { folds: folds(d), leftover_variance: LeftoverRecord::of(d) };
        let path = |p: &PathPoint| PathRecord {
            estimand: format!("{}_effect", p.estimand.name()),
            group_size: p.choice.group_size,
            weight: p.choice.weight,
            loss: p.loss,
            se: p.se,
        };
        Some(CrossFitRecord {
            latency: told.family.name().into(),
            latencies: told.families.iter().map(|(f, v)| (f.name().to_string(), *v)).collect(),
            strengths: told.strengths.map(ByEstimand::into_array),
            folds: folds(fit.first()),
            path: told.path.iter().map(path).collect(),
            leftover_variance: LeftoverRecord::of(fit.first()),
            further_deals: fit.deals[1..].iter().map(further).collect(),
            split_sd: fit.typical_split_sd().map(ByEstimand::into_array),
            split_averages: told.averages.iter().map(SplitAverageRecord::from).collect(),
            split_averages_sd: told.split_spread().map(|s| SplitSpreadRecord {
                cure_effect: s.sd.cure,
                time_effect: s.sd.time,
                cure_effect_by_chance: s.by_chance.cure,
                time_effect_by_chance: s.by_chance.time,
            }),
        })
    }

    /// The deals and what is told of them, with what is kept of each deal.
    pub fn restore(&self, kept: Vec<KeptDeal>, scaling: &Scaling) -> Result<(Vec<Deal>, CrossFit), String> {
        let families = self.latencies.iter().map(|(n, v)| Ok((family(n)?, *v))).collect::<Result<_, String>>()?;
        let recorded = self.deals();
        if recorded.len() != kept.len() {
            return Err("its deals do not fit together".into());
        }
        let deal = |((folds, leftover), kept): ((&[FoldRecord], &LeftoverRecord), KeptDeal)| {
            let KeptDeal { fold_of, models, values } = kept;
            if fold_of.iter().any(|&f| f as usize >= folds.len()) {
                return Err("a unit is in a fold that does not exist".to_string());
            }
            if models.len() != folds.len() {
                return Err("it was written by an earlier dvim, without its models; run `dvim fit` again".to_string());
            }
            let folds = folds.iter().zip(models).map(|(f, model)| f.fold(scaling, leftover.leftover(), model));
            Ok(Deal { fold_of, folds: folds.collect(), values })
        };
        let estimand = |name: &str| Estimand::BOTH.into_iter().find(|e| name == format!("{}_effect", e.name()));
        let path = |p: &PathRecord| {
            Ok(PathPoint {
                estimand: estimand(&p.estimand).ok_or_else(|| format!("unknown estimand `{}`", p.estimand))?,
                choice: Choice { group_size: p.group_size, weight: p.weight },
                loss: p.loss,
                se: p.se,
            })
        };
        let told = CrossFit {
            family: family(&self.latency)?,
            families,
            strengths: self.strengths.map(ByEstimand::from),
            path: self.path.iter().map(path).collect::<Result<_, String>>()?,
            averages: self.split_averages.iter().map(SplitAverageRecord::average).collect(),
        };
        Ok((recorded.into_iter().zip(kept).map(deal).collect::<Result<_, String>>()?, told))
    }

    /// The folds and the leftover variance of each deal.
    fn deals(&self) -> Vec<(&[FoldRecord], &LeftoverRecord)> {
        let first = (self.folds.as_slice(), &self.leftover_variance);
        let further = self.further_deals.iter().map(|r| (r.folds.as_slice(), &r.leftover_variance));
        std::iter::once(first).chain(further).collect()
    }

    /// The number of folds of each deal.
    pub fn n_folds(&self) -> Vec<usize> {
        self.deals().iter().map(|(folds, _)| folds.len()).collect()
    }
}

/// What a saved run keeps of one deal for every unit.
pub struct KeptDeal {
    /// The fold of each unit.
    pub fold_of: Vec<u8>,
    /// The model of each fold.
    pub models: Vec<FoldModel>,
    /// What the deal made of each unit; empty where there is one deal.
    pub values: Vec<DealValues>,
}

/// A column of a fold's model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ColumnRecord {
    Intercept,
    Linear(usize),
    Term(TermRecord),
}

/// A curve or a product.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct TermRecord {
    /// `square`, `step`, `hinge` or `product`.
    shape: String,
    covariates: [usize; 2],
    /// The cut of a step, the knot of a hinge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<f64>,
    /// Clips of the covariates; `null` where there is none.
    clips: [[Option<f64>; 2]; 2],
    gain: f64,
    base: f64,
    line: Vec<(usize, f64)>,
}

impl From<&Term> for TermRecord {
    fn from(t: &Term) -> TermRecord {
        let (shape, covariates, at) = match t.shape {
            Shape::Square { covariate } => ("square", [covariate; 2], None),
            Shape::Step { covariate, cut } => ("step", [covariate; 2], Some(cut)),
            Shape::Hinge { covariate, knot } => ("hinge", [covariate; 2], Some(knot)),
            Shape::Product { first, second } => ("product", [first, second], None),
        };
        let finite = |x: f64| Some(x).filter(|x| x.is_finite());
        TermRecord {
            shape: shape.into(),
            covariates,
            at,
            clips: t.clips.map(|(low, high)| [finite(low), finite(high)]),
            gain: t.gain,
            base: t.base,
            line: t.line.clone(),
        }
    }
}

impl TermRecord {
    fn term(&self) -> Result<Term, String> {
        let [first, second] = self.covariates;
        let shape = match (self.shape.as_str(), self.at) {
            ("square", None) => Shape::Square { covariate: first },
            ("step", Some(cut)) => Shape::Step { covariate: first, cut },
            ("hinge", Some(knot)) => Shape::Hinge { covariate: first, knot },
            ("product", None) => Shape::Product { first, second },
            (other, _) => return Err(format!("unknown term `{other}`")),
        };
        let clips = self.clips.map(|[l, h]| (l.unwrap_or(f64::NEG_INFINITY), h.unwrap_or(f64::INFINITY)));
        Ok(Term { shape, clips, gain: self.gain, base: self.base, line: self.line.clone() })
    }
}

/// The model of one fold, but for the covariance of its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictorRecord {
    latency: String,
    columns: Vec<ColumnRecord>,
    n_columns: [usize; 2],
    theta: [Vec<f64>; 2],
    u_zero: f64,
    /// What stands beside it; absent where it stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    beside: Option<BesideRecord>,
}

/// What stands beside the cure model of a fold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct BesideRecord {
    /// Share of proportional hazards in the cure logit and in the log of the mean event time.
    share: [f64; 2],
    /// Share of boosted hazards in both; absent where they have none.
    #[serde(default, skip_serializing_if = "is_nothing")]
    share_boosted: [f64; 2],
    /// Boosted hazards; absent where they have no share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boosted: Option<BoostedRecord>,
    /// Slopes of the arms, and their baselines summed up to each knot; absent where they have no share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hazard: Option<HazardRecord>,
    /// What is added to the two in the control and the treated arm.
    level: [[f64; 2]; 2],
}

/// Proportional hazards of both arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct HazardRecord {
    /// A slope for each column of the cure model.
    slopes: [Vec<f64>; 2],
    /// The baselines, summed up to each knot.
    summed: [Vec<f64>; 2],
}

fn is_nothing(share: &[f64; 2]) -> bool {
    *share == [0.0; 2]
}

impl BesideRecord {
    fn of(beside: &Beside) -> Option<BesideRecord> {
        (!beside.is_alone()).then(|| BesideRecord {
            share: beside.share.map(|s| s.hazards).into_array(),
            share_boosted: beside.share.map(|s| s.boosted).into_array(),
            boosted: beside.boosted.as_ref().map(BoostedRecord::of),
            hazard: beside.hazard.as_ref().map(|h| HazardRecord {
                slopes: h.slopes.clone().into_array(),
                summed: h.summed.map(|s| s.to_vec()).into_array(),
            }),
            level: beside.level.map(EngineByArm::into_array).into_array(),
        })
    }

    fn beside(&self, horizon: f64) -> Result<Beside, String> {
        let summed = |s: &Vec<f64>| <[f64; CELLS]>::try_from(s.as_slice()).map_err(|_| "a baseline has other knots");
        let hazard = match &self.hazard {
            None => None,
            Some(HazardRecord { slopes, summed: [control, treated] }) => Some(Hazard {
                slopes: slopes.clone().into(),
                summed: EngineByArm { control: summed(control)?, treated: summed(treated)? },
                grid: Grid::new(horizon),
            }),
        };
        let level = self.level.map(EngineByArm::from);
        let boosted = self.boosted.as_ref().map(|b| b.boosted(horizon)).transpose()?;
        let share = |e: usize| Shares { hazards: self.share[e], boosted: self.share_boosted[e] };
        Ok(Beside { hazard, boosted, share: [share(0), share(1)].into(), level: level.into() })
    }
}

impl From<&Predictor> for PredictorRecord {
    fn from(p: &Predictor) -> PredictorRecord {
        let column = |c: &Column| match c {
            Column::Intercept => ColumnRecord::Intercept,
            Column::Linear(j) => ColumnRecord::Linear(*j),
            Column::Term(t) => ColumnRecord::Term(t.into()),
        };
        PredictorRecord {
            latency: p.family.name().into(),
            columns: p.columns.iter().map(column).collect(),
            n_columns: p.n_columns.into_array(),
            theta: p.theta.clone().into_array(),
            u_zero: p.u_zero,
            beside: BesideRecord::of(&p.beside),
        }
    }
}

impl PredictorRecord {
    /// The model that it records, of a cohort with these covariates and this horizon.
    pub fn predictor(&self, n_covariates: usize, horizon: f64) -> Result<Predictor, String> {
        let column = |c: &ColumnRecord| match c {
            ColumnRecord::Intercept => Ok(Column::Intercept),
            ColumnRecord::Linear(j) => Ok(Column::Linear(*j)),
            ColumnRecord::Term(t) => t.term().map(Column::Term),
        };
        let predictor = Predictor {
            family: family(&self.latency)?,
            n_covariates,
            horizon,
            columns: self.columns.iter().map(column).collect::<Result<_, String>>()?,
            n_columns: self.n_columns.into(),
            theta: self.theta.clone().into(),
            u_zero: self.u_zero,
            beside: self.beside.as_ref().map_or(Ok(Beside::default()), |b| b.beside(horizon))?,
        };
        if predictor.is_sound() { Ok(predictor) } else { Err("a model of a fold does not fit together".into()) }
    }
}
