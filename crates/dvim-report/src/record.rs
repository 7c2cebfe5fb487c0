//! Engine values as versioned records for JSON: what `summary.json` and a saved run hold.
//! Records go both ways, so that a run can be reopened. Field names are part of the schema.

use crate::audit::AuditRecord;
use crate::cross_fit::CrossFitRecord;
use crate::findings::{BaselineRecord, IndividualRecord, VerdictRecord};
use crate::names::Names;
use crate::spell::CommandLine;
use dvim::internal::analysis::Analysis;
use dvim::internal::audit::Audit;
use dvim::internal::audit::average::AverageEffect;
use dvim::internal::audit::baseline::baseline;
use dvim::internal::audit::individual::Individual;
use dvim::internal::audit::verdict::Verdict;
use dvim::internal::cohort::{Arm, Cohort, Flow, Labels, Roles, ZeroTime};
use dvim::internal::constraint::{Caliper, Constraints, Unserved};
use dvim::internal::cure::{self, Certificate, CureModel, Part, Penalty, StopReason};
use dvim::internal::curve::Grid;
use dvim::internal::error::{Problem, Severity};
use dvim::internal::estimand::Estimand;
use dvim::internal::fold::Fit;
use dvim::internal::interval::two_sided;
use dvim::internal::joint::Family;
use dvim::internal::metric::{Metric, MetricChoice, Metrics, Scale, Scaling};
use dvim::internal::options::AdjustedOptions;
use dvim::internal::options::{Estimator, Learners, Options};
use dvim::internal::phrase::Face;
use dvim::internal::schema::{Covariate, Kind, Missing};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema of `summary.json`. A change that an older reader would misread raises the number.
pub const SUMMARY_SCHEMA: &str = "dvim.summary/1";

/// The version of this software.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is not so is not written.
fn is_not(is: &bool) -> bool {
    !is
}

/// What is not there is not written.
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Two values, one for each arm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByArm<T> {
    /// Treated.
    pub treated: T,
    /// Control.
    pub control: T,
}

impl<T> ByArm<T> {
    /// Calls `f` for each arm.
    pub fn map(f: impl Fn(Arm) -> T) -> ByArm<T> {
        ByArm { treated: f(Arm::Treated), control: f(Arm::Control) }
    }
}

/// The file that was analysed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputRecord {
    /// Its name, without its folder.
    pub file: String,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// Its size.
    pub n_bytes: u64,
    /// Its rows.
    pub n_rows: usize,
}

/// Which column played which part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RolesRecord {
    /// Time; where dates were given, both columns.
    pub time: String,
    /// Event.
    pub event: String,
    /// Treatment.
    pub treatment: String,
    /// Id, or `null` where row numbers served.
    pub id: Option<String>,
    /// Covariates: columns of the table.
    pub covariates: Vec<String>,
    /// What the arms are called in the table.
    pub labels: ByArm<String>,
    /// What was asked for beyond that, so that the run can be repeated.
    #[serde(default, with = "AskedRecord")]
    pub asked: Roles,
}

/// Which parts the user gave the columns: the record of [`Roles`] without what [`RolesRecord`] has beside it.
///
/// The compiler checks that it lists every field of [`Roles`]. A test checks that each field is a [`Setting`].
///
/// [`Setting`]: dvim::internal::setting::Setting
#[derive(Serialize, Deserialize)]
#[serde(remote = "Roles")]
pub struct AskedRecord {
    #[serde(skip)]
    time: String,
    #[serde(skip)]
    event: String,
    #[serde(skip)]
    treatment: String,
    #[serde(skip)]
    horizon: f64,
    dates: Option<[String; 2]>,
    id: Option<String>,
    covariates: Option<Vec<String>>,
    treated: Option<String>,
    control: Option<String>,
    numeric: Vec<String>,
    categorical: Vec<String>,
    drop: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    allow: Vec<String>,
    filters: Vec<(String, String)>,
    #[serde(with = "MissingRecord")]
    missing: Missing,
    #[serde(with = "ZeroTimeRecord")]
    zero_time: ZeroTime,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weights: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(default, skip_serializing_if = "is_not")]
    censor: bool,
    #[serde(default, skip_serializing_if = "Labels::is_empty", with = "crate::labels")]
    labels: Labels,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Missing", rename_all = "kebab-case")]
enum MissingRecord {
    Refuse,
    Drop,
    Indicator,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ZeroTime", rename_all = "kebab-case")]
enum ZeroTimeRecord {
    Refuse,
    Drop,
    Shift,
}

impl RolesRecord {
    /// The parts of the columns of a simulated cohort.
    pub fn simulated(cohort: &Cohort) -> RolesRecord {
        let [time, event, treatment] = ["time", "event", "treatment"].map(String::from);
        RolesRecord::of(&Roles { time, event, treatment, ..Roles::default() }, Some("id"), cohort)
    }

    /// What the roles meant for this cohort, whose ids come from the column `id`.
    pub fn of(roles: &Roles, id: Option<&str>, cohort: &Cohort) -> RolesRecord {
        let is_column = |c: &&Covariate| c.kind != Kind::Missing;
        RolesRecord {
            time: roles.time_name(),
            event: roles.event.clone(),
            treatment: roles.treatment.clone(),
            id: id.map(str::to_string),
            covariates: cohort.schema().iter().filter(is_column).map(|c| c.name.clone()).collect(),
            labels: ByArm::map(|z| cohort.label(z).to_string()),
            asked: Roles {
                time: String::new(),
                event: String::new(),
                treatment: String::new(),
                horizon: 0.0,
                ..roles.clone()
            },
        }
    }

    /// The roles that it records.
    pub fn roles(&self, horizon: f64) -> Roles {
        let (event, treatment) = (self.event.clone(), self.treatment.clone());
        let time = if self.asked.dates.is_some() { String::new() } else { self.time.clone() };
        Roles { time, event, treatment, horizon, ..self.asked.clone() }
    }
}

/// From the rows of a table to units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// Rows of the table.
    pub n_rows: usize,
    /// Rows left out, in the order of the rules.
    pub steps: Vec<FlowStepRecord>,
    /// Rows that are left: units.
    pub n_units: usize,
}

/// Rows that one rule left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowStepRecord {
    /// The rule.
    pub reason: String,
    /// Rows.
    pub n_dropped: usize,
}

impl From<&Flow> for FlowRecord {
    fn from(f: &Flow) -> FlowRecord {
        let step =
            |s: &dvim::internal::cohort::FlowStep| FlowStepRecord { reason: s.reason.clone(), n_dropped: s.n_dropped };
        FlowRecord { n_rows: f.n_rows, steps: f.steps.iter().map(step).collect(), n_units: f.n_kept() }
    }
}

/// How a covariate became columns of numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CovariateRecord {
    /// The column of the table.
    pub name: String,
    /// `number`, `indicator`, `category` or `missing`.
    pub kind: String,
    /// Its levels: of an indicator, that coded 0 and that coded 1.
    pub levels: Vec<String>,
    /// What stands for a missing value: a number or the position of a level.
    pub fill: Option<f64>,
}

impl From<&Covariate> for CovariateRecord {
    fn from(c: &Covariate) -> CovariateRecord {
        let (kind, levels) = match &c.kind {
            Kind::Number => ("number", vec![]),
            Kind::Indicator { zero, one } => ("indicator", vec![zero.clone(), one.clone()]),
            Kind::Category { levels } => ("category", levels.clone()),
            Kind::Missing => ("missing", vec![]),
        };
        CovariateRecord { name: c.name.clone(), kind: kind.into(), levels, fill: c.fill }
    }
}

impl CovariateRecord {
    /// The covariates that these record, which must take `n_columns` columns of numbers.
    pub fn schema(records: &[CovariateRecord], n_columns: usize) -> Result<Vec<Covariate>, String> {
        let mut out: Vec<Covariate> = Vec::new();
        for r in records {
            let kind = match (r.kind.as_str(), r.levels.as_slice()) {
                ("number", []) => Kind::Number,
                ("indicator", [zero, one]) => Kind::Indicator { zero: zero.clone(), one: one.clone() },
                ("category", levels) if levels.len() > 2 => Kind::Category { levels: levels.to_vec() },
                ("missing", []) => Kind::Missing,
                (kind, levels) => {
                    return Err(format!(
                        "covariate `{}` is of the unknown kind `{kind}` with {} levels",
                        r.name,
                        levels.len()
                    ));
                }
            };
            let first = out.last().map_or(0, |c| c.columns().end);
            out.push(Covariate { name: r.name.clone(), kind, first, fill: r.fill });
        }
        let found = out.last().map_or(0, |c| c.columns().end);
        if found != n_columns {
            return Err(format!("its covariates take {found} columns, it has {n_columns}"));
        }
        Ok(out)
    }
}

/// How it was analysed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OptionsRecord {
    /// K.
    pub group_size: usize,
    /// Share of each arm that trained.
    pub train_fraction: f64,
    /// `separate` or `combined`.
    pub metric: String,
    /// `standard` or `none`.
    pub scale: String,
    /// Seed of the split.
    pub seed: u64,
    /// Confidence level of the intervals.
    #[serde(default = "usual_confidence")]
    pub confidence: f64,
    /// Covariates that groups agree on.
    #[serde(default)]
    pub exact: Vec<String>,
    /// Calipers.
    #[serde(default)]
    pub calipers: Vec<CaliperRecord>,
    /// Whether a unit is kept out of its own group.
    #[serde(default)]
    pub exclude_self: bool,
    /// `paper` or `adjusted`.
    pub estimator: String,
    /// How the adjusted estimator was asked to work; `null` under the paper's.
    pub adjusted: Option<AdjustedOptionsRecord>,
}

/// The level of runs that were written before it could be chosen.
fn usual_confidence() -> f64 {
    Options::default().confidence
}

/// What was asked of the adjusted estimator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdjustedOptionsRecord {
    /// Honest splits in all; `null` means as many as folds.
    pub splits: Option<usize>,
    /// Splits that share one deal at most; not there in the first runs, whose splits were folds.
    #[serde(default)]
    pub folds: Option<usize>,
    /// The number of splits of each deal; not there in runs from before splits were counted in all, whose `splits`
    /// were deals.
    #[serde(default)]
    pub deals: Vec<usize>,
    /// The latency family; `null` means chosen from the data.
    pub latency: Option<String>,
    /// K; `null` means chosen from the data.
    pub group_size: Option<usize>,
    /// Share of the norm in the elastic net that holds the slopes (0 is ridge); not there where the prior is learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic_net: Option<f64>,
    /// What curves are learned by; not there in runs from before there was a choice, which had the cure model alone.
    #[serde(default = "cure_alone")]
    pub learners: String,
}

fn cure_alone() -> String {
    Learners::Cure.name().into()
}

pub(crate) fn family(name: &str) -> Result<Family, String> {
    Family::named(name).ok_or_else(|| {
        format!("unknown latency family `{name}`; there are log-normal, weibull, log-logistic and generalised-gamma")
    })
}

impl AdjustedOptionsRecord {
    /// The options it records.
    pub fn options(&self) -> Result<AdjustedOptions, String> {
        let (splits, folds) = match (self.deals.is_empty(), self.splits, self.folds) {
            (true, Some(deals), Some(folds)) => (Some(deals.saturating_mul(folds)), folds),
            (true, Some(folds), None) => (Some(folds), folds),
            (_, splits, folds) => AdjustedOptions::splits_and_folds(splits, folds),
        };
        Ok(AdjustedOptions {
            splits,
            folds,
            family: self.latency.as_deref().map(family).transpose()?,
            group_size: self.group_size,
            elastic_net: self.elastic_net,
            learners: Learners::named(&self.learners)
                .ok_or_else(|| format!("unknown learners `{}`; there are all, cure and hazards", self.learners))?,
            ..AdjustedOptions::default()
        })
    }
}

/// The largest difference allowed in one covariate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaliperRecord {
    /// The covariate.
    pub covariate: String,
    /// The largest difference.
    pub width: f64,
    /// Whether it is in standard deviations.
    pub in_sd: bool,
}

impl From<&Options> for OptionsRecord {
    fn from(o: &Options) -> OptionsRecord {
        OptionsRecord {
            estimator: o.estimator.name().into(),
            adjusted: match &o.estimator {
                Estimator::Paper => None,
                Estimator::Adjusted(a) => Some(AdjustedOptionsRecord {
                    splits: a.splits,
                    folds: Some(a.folds),
                    deals: a.deals(),
                    latency: a.family.map(|f| f.name().into()),
                    group_size: a.group_size,
                    elastic_net: a.elastic_net,
                    learners: a.learners.name().into(),
                }),
            },
            group_size: o.group_size,
            train_fraction: o.train_fraction,
            metric: o.metric.name().into(),
            scale: o.scale.name().into(),
            seed: o.seed,
            confidence: o.confidence,
            exact: o.constraints.exact.clone(),
            calipers: o.constraints.calipers.iter().map(CaliperRecord::from).collect(),
            exclude_self: o.constraints.exclude_self,
        }
    }
}

impl From<&Caliper> for CaliperRecord {
    fn from(c: &Caliper) -> CaliperRecord {
        CaliperRecord { covariate: c.covariate.clone(), width: c.width, in_sd: c.in_sd }
    }
}

impl OptionsRecord {
    /// The options it records, or what it says that is not known here.
    pub fn options(&self) -> Result<Options, String> {
        let metric = MetricChoice::ALL.into_iter().find(|m| m.name() == self.metric);
        let scale = Scale::ALL.into_iter().find(|s| s.name() == self.scale);
        Ok(Options {
            group_size: self.group_size,
            train_fraction: self.train_fraction,
            metric: metric
                .ok_or_else(|| format!("unknown metric `{}`; there are separate and combined", self.metric))?,
            scale: scale.ok_or_else(|| format!("unknown scale `{}`; there are standard and none", self.scale))?,
            seed: self.seed,
            confidence: self.confidence,
            estimator: match &self.adjusted {
                None => Estimator::Paper,
                Some(a) => Estimator::Adjusted(a.options()?),
            },
            constraints: Constraints {
                exact: self.exact.clone(),
                calipers: self
                    .calipers
                    .iter()
                    .map(|c| Caliper { covariate: c.covariate.clone(), width: c.width, in_sd: c.in_sd })
                    .collect(),
                exclude_self: self.exclude_self,
            },
            ..Options::default()
        })
    }
}

/// Units of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountsRecord {
    /// All units.
    pub n_units: usize,
    /// Units that trained.
    pub n_training: usize,
    /// Units that were estimated and matched with.
    pub n_estimation: usize,
    /// Events before the horizon.
    pub n_events: usize,
    /// Events of other causes before the horizon; absent where there is one cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_competing: Option<usize>,
    /// Censored before the horizon.
    pub n_censored: usize,
    /// At risk at the horizon.
    pub n_at_risk: usize,
    /// Effective number of units under the case weights, `(Σw)²/Σw²`; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_size: Option<f64>,
    /// Number of clusters; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_clusters: Option<usize>,
    /// Units that enter after time 0; absent where all are watched from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_late: Option<usize>,
}

impl CountsRecord {
    fn of(cohort: &Cohort, fit: &Fit, arm: Arm) -> CountsRecord {
        let units = cohort.units_of(arm);
        let count = |f: &dyn Fn(usize) -> bool| units.iter().filter(|&&i| f(i as usize)).count();
        let n_training = count(&|i| fit.is_training[i]);
        let n_events = count(&|i| cohort.event(i));
        let n_at_risk = count(&|i| cohort.time(i) >= cohort.horizon());
        let extras = cohort.extras();
        let n_competing = extras.competing.as_ref().map(|c| count(&|i| c[i]));
        let clusters = extras.cluster.as_ref().map(|c| {
            let mut there: Vec<u32> = units.iter().map(|&i| c[i as usize]).collect();
            there.sort_unstable();
            there.dedup();
            there.len()
        });
        CountsRecord {
            n_units: units.len(),
            n_training,
            n_estimation: units.len() - n_training,
            n_events,
            n_competing,
            n_censored: units.len() - n_events - n_competing.unwrap_or(0) - n_at_risk,
            n_at_risk,
            effective_size: extras.weight.as_ref().map(|_| cohort.effective_size(arm)),
            n_clusters: clusters,
            n_late: extras.entry.as_ref().map(|e| count(&|i| e[i] > 0.0)),
        }
    }
}

/// An average effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AverageRecord {
    /// `cure_effect`, `time_effect`, with `_corrected` less the expected matching bias; an arm's value, `cure_ratio`,
    /// `number_needed_to_treat`.
    pub estimand: String,
    /// `all`, `treated`, `control` or a subgroup.
    pub population: String,
    /// The mean; `null` where no unit's effect is defined.
    pub estimate: Option<f64>,
    /// Its standard error, by unit.
    #[serde(default)]
    pub se: Option<f64>,
    /// Lower end of the interval.
    #[serde(default)]
    pub low: Option<f64>,
    /// Upper end of the interval.
    #[serde(default)]
    pub high: Option<f64>,
    /// Matching bias that the cure models expect; part of the estimate.
    #[serde(default)]
    pub bias: Option<f64>,
    /// Spread between units; not a standard error.
    pub sd: Option<f64>,
    /// Units that it rests on.
    pub n_units: usize,
    /// Units whose effect is undefined.
    pub n_undefined: usize,
    /// Standard deviation over deals; not there with one deal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split_sd: Option<f64>,
}

impl From<&AverageEffect> for AverageRecord {
    fn from(a: &AverageEffect) -> AverageRecord {
        AverageRecord {
            estimand: a.estimand.into(),
            population: a.population.clone(),
            estimate: a.estimate,
            se: a.se,
            low: a.low,
            high: a.high,
            bias: a.bias,
            sd: a.sd,
            n_units: a.n_units,
            n_undefined: a.n_undefined,
            split_sd: a.split_sd,
        }
    }
}

/// How often a flag was raised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlagRecord {
    /// Units that carry it.
    pub n_units: usize,
    /// Their share.
    pub share: f64,
    /// What it means.
    pub meaning: String,
}

/// Something found wrong or worth knowing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProblemRecord {
    /// Stable name.
    pub code: String,
    /// `error` or `warning`.
    pub severity: String,
    /// The column, where there is one.
    pub column: Option<String>,
    /// Units concerned.
    pub count: usize,
    /// The first rows concerned, from 1 below the header.
    pub rows: Vec<usize>,
    /// What was found.
    pub found: String,
    /// The rule.
    pub rule: String,
    /// What to do.
    pub remedy: String,
}

impl ProblemRecord {
    /// The record of a problem in the words of a face.
    pub fn of(p: &Problem, face: &dyn Face) -> ProblemRecord {
        ProblemRecord {
            code: p.kind.code().into(),
            severity: match p.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            }
            .into(),
            column: p.column.clone(),
            count: p.count,
            rows: p.rows.clone(),
            found: p.found.spelled(face),
            rule: p.rule.spelled(face),
            remedy: p.remedy.spelled(face),
        }
    }
}

/// `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`SUMMARY_SCHEMA`].
    pub schema: String,
    /// The version of dvim that wrote it.
    pub version: String,
    /// The file that was analysed.
    pub input: InputRecord,
    /// Its columns' parts.
    pub roles: RolesRecord,
    /// From rows to units.
    #[serde(default)]
    pub flow: FlowRecord,
    /// How each covariate was read.
    #[serde(default)]
    pub covariates: Vec<CovariateRecord>,
    /// H.
    pub horizon: f64,
    /// How it was analysed.
    pub options: OptionsRecord,
    /// Units.
    pub counts: ByArm<CountsRecord>,
    /// The cure models, on covariates scaled as `weights.csv` says.
    pub models: ByArm<ModelRecord>,
    /// What the adjusted estimator learned; `null` under the paper's.
    pub adjusted: Option<CrossFitRecord>,
    /// Average effects.
    pub average_effects: Vec<AverageRecord>,
    /// Whether the data support them; `null` where there was no audit.
    #[serde(default)]
    pub verdict: Option<VerdictRecord>,
    /// The covariates by arm, before matching.
    #[serde(default)]
    pub baseline: Vec<BaselineRecord>,
    /// How the effects of single patients are spread.
    #[serde(default)]
    pub individual: Option<IndividualRecord>,
    /// How often each flag of `effects.csv` was raised.
    pub flags: BTreeMap<String, FlagRecord>,
    /// What a reviewer asks: follow-up, balance, heterogeneity, sensitivity.
    #[serde(default)]
    pub audit: Option<AuditRecord>,
    /// What is worth knowing of the input.
    pub warnings: Vec<ProblemRecord>,
    /// SHA-256 of the other files of the run.
    pub files: BTreeMap<String, String>,
}

/// Where a cohort came from.
pub struct Source<'a> {
    /// The file.
    pub input: InputRecord,
    /// Its columns' parts.
    pub roles: RolesRecord,
    /// Rows that were left out.
    pub flow: &'a Flow,
    /// What is worth knowing of it.
    pub warnings: &'a [Problem],
}

impl Summary {
    /// The summary of a run.
    pub fn of(
        cohort: &Cohort,
        analysis: &Analysis,
        audit: &Audit,
        source: Source<'_>,
        files: BTreeMap<String, String>,
    ) -> Summary {
        let Source { input, roles, flow, warnings } = source;
        let n = analysis.effects.len() + analysis.unserved.len();
        let flag = |n_units: usize, meaning: String| FlagRecord {
            n_units,
            share: if n > 0 { n_units as f64 / n as f64 } else { 0.0 },
            meaning,
        };
        let late = cohort.extras().entry.is_some();
        let said = |f: &dvim::internal::effect::Flag| late || !matches!(f, dvim::internal::effect::Flag::FewAtRisk(_));
        let of_effects = analysis
            .flag_counts()
            .into_iter()
            .filter(|(f, _)| said(f))
            .map(|(f, n_units)| (f.name().to_string(), flag(n_units, f.meaning())));
        let constrained = !analysis.fit.options.constraints.is_empty();
        let unserved = Arm::BOTH.into_iter().filter(|_| constrained).map(|z| {
            let n_units = analysis.unserved.iter().filter(|(_, u)| u.arms().any(|a| a == z)).count();
            let meaning = format!(
                "fewer than {} patients of the {} arm satisfy the constraints: there is no estimate",
                analysis.fit.options.group_size,
                z.name()
            );
            (Unserved::flag(z).to_string(), flag(n_units, meaning))
        });
        let flags = of_effects.chain(unserved);
        let (baseline, individual) = rayon::join(|| baseline(cohort), || Individual::of(analysis, cohort.horizon()));
        let made = Summary {
            schema: SUMMARY_SCHEMA.into(),
            version: VERSION.into(),
            input,
            roles,
            flow: flow.into(),
            covariates: cohort.schema().iter().map(CovariateRecord::from).collect(),
            horizon: cohort.horizon(),
            options: (&analysis.fit.options).into(),
            counts: ByArm::map(|z| CountsRecord::of(cohort, &analysis.fit, z)),
            models: ByArm::map(|z| ModelRecord::from(&analysis.fit.description.models[z])),
            adjusted: CrossFitRecord::of(&analysis.fit),
            average_effects: audit.averages.iter().map(AverageRecord::from).collect(),
            verdict: Some((&Verdict::of(cohort, analysis, audit)).into()),
            baseline: baseline.iter().map(BaselineRecord::from).collect(),
            individual: Some((&individual).into()),
            flags: flags.collect(),
            audit: Some(AuditRecord::of(cohort, audit)),
            warnings: warnings.iter().map(|w| ProblemRecord::of(w, &CommandLine)).collect(),
            files,
        };
        let names = Names::of(&made, None);
        let flag = |(name, f): (String, FlagRecord)| (name, FlagRecord { meaning: names.spoken(&f.meaning), ..f });
        Summary {
            verdict: made.verdict.map(|v| v.named(&names)),
            audit: made.audit.map(|a| a.named(&names)),
            flags: made.flags.into_iter().map(flag).collect(),
            ..made
        }
    }

    /// The average of an estimand over a population.
    pub fn average(&self, estimand: &str, population: &str) -> Option<&AverageRecord> {
        self.average_effects.iter().find(|a| a.estimand == estimand && a.population == population)
    }
}

/// The metrics, as saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricsRecord {
    /// Centre of each covariate.
    pub center: Vec<f64>,
    /// Scale of each covariate.
    pub scale: Vec<f64>,
    /// Cure weights.
    pub cure_weights: Vec<f64>,
    /// Time weights.
    pub time_weights: Vec<f64>,
}

impl From<&Metrics> for MetricsRecord {
    fn from(m: &Metrics) -> MetricsRecord {
        MetricsRecord {
            center: m.cure.scaling.center.clone(),
            scale: m.cure.scaling.scale.clone(),
            cure_weights: m.cure.weights.clone(),
            time_weights: m.time.weights.clone(),
        }
    }
}

impl MetricsRecord {
    /// The metrics it records.
    pub fn metrics(&self) -> Metrics {
        let scaling = Scaling { center: self.center.clone(), scale: self.scale.clone() };
        Metrics {
            cure: Metric { weights: self.cure_weights.clone(), scaling: scaling.clone() },
            time: Metric { weights: self.time_weights.clone(), scaling },
        }
    }
}

/// One part of a cure model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartRecord {
    /// Intercept.
    pub intercept: f64,
    /// Its standard error.
    pub intercept_se: Option<f64>,
    /// Coefficients, in the order of the covariates.
    pub coefficients: Vec<f64>,
    /// Their standard errors.
    pub standard_errors: Option<Vec<f64>>,
}

impl From<&Part> for PartRecord {
    fn from(p: &Part) -> PartRecord {
        PartRecord {
            intercept: p.intercept,
            intercept_se: p.intercept_se,
            coefficients: p.coefficients.clone(),
            standard_errors: p.standard_errors.clone(),
        }
    }
}

impl PartRecord {
    fn part(self) -> Part {
        Part {
            intercept: self.intercept,
            coefficients: self.coefficients,
            intercept_se: self.intercept_se,
            standard_errors: self.standard_errors,
        }
    }
}

/// The penalty of a penalised fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PenaltyRecord {
    /// Ridge on the cure coefficients.
    pub cure_ridge: f64,
    /// Ridge on the latency coefficients.
    pub latency_ridge: f64,
    /// Strength of the remedy that made the fit finite; `null` where the penalty was asked for.
    pub remedy: Option<f64>,
    /// The penalised log-likelihood.
    pub objective: f64,
}

/// What the reader of a fit must know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelFlagRecord {
    /// Stable name.
    pub code: String,
    /// In words.
    pub meaning: String,
    /// Its numbers: a column, or counts.
    pub numbers: Vec<usize>,
}

impl From<&cure::Flag> for ModelFlagRecord {
    fn from(flag: &cure::Flag) -> ModelFlagRecord {
        use cure::Flag;
        let (code, numbers) = match *flag {
            Flag::NoneCured => ("none_cured", vec![]),
            Flag::NoneReachedHorizon => ("none_reached_horizon", vec![]),
            Flag::CureShareDiverges => ("cure_share_diverges", vec![]),
            Flag::Separation => ("separation", vec![]),
            Flag::LatencyDiverges => ("latency_diverges", vec![]),
            Flag::TimesPredicted => ("times_predicted", vec![]),
            Flag::FewEvents { n_events, n_parameters } => ("few_events", vec![n_events, n_parameters]),
            Flag::MoreCovariatesThanUnits { n_covariates, n_units } => {
                ("more_covariates_than_units", vec![n_covariates, n_units])
            }
            Flag::CovariatesLeftOut { n_covariates } => ("covariates_left_out", vec![n_covariates]),
            Flag::ConstantCovariate { column } => ("constant_covariate", vec![column]),
            Flag::CollinearCovariate { column } => ("collinear_covariate", vec![column]),
            Flag::HigherAtInfinity => ("higher_at_infinity", vec![]),
            Flag::SeveralMaxima => ("several_maxima", vec![]),
            Flag::EventAtZero { n_units } => ("event_at_zero", vec![n_units]),
            _ => ("not_certified", vec![]),
        };
        ModelFlagRecord { code: code.into(), meaning: flag.to_string(), numbers }
    }
}

impl ModelFlagRecord {
    fn flag(&self) -> cure::Flag {
        use cure::Flag;
        match (self.code.as_str(), self.numbers.as_slice()) {
            ("none_cured", _) => Flag::NoneCured,
            ("none_reached_horizon", _) => Flag::NoneReachedHorizon,
            ("cure_share_diverges", _) => Flag::CureShareDiverges,
            ("separation", _) => Flag::Separation,
            ("latency_diverges", _) => Flag::LatencyDiverges,
            ("times_predicted", _) => Flag::TimesPredicted,
            ("few_events", &[n_events, n_parameters]) => Flag::FewEvents { n_events, n_parameters },
            ("more_covariates_than_units", &[n_covariates, n_units]) => {
                Flag::MoreCovariatesThanUnits { n_covariates, n_units }
            }
            ("covariates_left_out", &[n_covariates]) => Flag::CovariatesLeftOut { n_covariates },
            ("constant_covariate", &[column]) => Flag::ConstantCovariate { column },
            ("collinear_covariate", &[column]) => Flag::CollinearCovariate { column },
            ("higher_at_infinity", _) => Flag::HigherAtInfinity,
            ("several_maxima", _) => Flag::SeveralMaxima,
            ("event_at_zero", &[n_units]) => Flag::EventAtZero { n_units },
            _ => Flag::NotCertified,
        }
    }
}

/// Whether to believe a fit, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CertificateRecord {
    /// Whether the optimum is certified.
    pub converged: bool,
    /// Why the climb ended.
    pub stop_reason: String,
    /// Steps.
    pub iterations: usize,
    /// Evaluations of the likelihood.
    pub evaluations: usize,
    /// Distance to the optimum in standard errors; `null` where it is infinite.
    pub gradient_norm: Option<f64>,
    /// Smallest eigenvalue of the information matrix in the internal scale; `null` where it is not finite.
    pub smallest_eigenvalue: Option<f64>,
    /// The penalty; `null` for a maximum likelihood estimate.
    pub penalty: Option<PenaltyRecord>,
    /// What the reader must know; empty for an ordinary fit.
    pub flags: Vec<ModelFlagRecord>,
}

const STOP_REASONS: [StopReason; 5] = [
    StopReason::Maximum,
    StopReason::PenalisedMaximum,
    StopReason::Diverged,
    StopReason::Stalled,
    StopReason::IterationLimit,
];

impl From<&Certificate> for CertificateRecord {
    fn from(c: &Certificate) -> CertificateRecord {
        CertificateRecord {
            converged: c.converged,
            stop_reason: c.stop_reason.to_string(),
            iterations: c.iterations,
            evaluations: c.evaluations,
            gradient_norm: Some(c.gradient_norm).filter(|g| g.is_finite()),
            smallest_eigenvalue: Some(c.smallest_eigenvalue).filter(|e| e.is_finite()),
            penalty: c.penalty.as_ref().map(|p| PenaltyRecord {
                cure_ridge: p.cure_ridge,
                latency_ridge: p.latency_ridge,
                remedy: p.remedy,
                objective: p.objective,
            }),
            flags: c.flags.iter().map(ModelFlagRecord::from).collect(),
        }
    }
}

impl CertificateRecord {
    fn certificate(self) -> Result<Certificate, String> {
        let reason = STOP_REASONS.into_iter().find(|r| r.to_string() == self.stop_reason);
        Ok(Certificate {
            converged: self.converged,
            stop_reason: reason.ok_or_else(|| format!("unknown stop reason `{}`", self.stop_reason))?,
            iterations: self.iterations,
            evaluations: self.evaluations,
            gradient_norm: self.gradient_norm.unwrap_or(f64::INFINITY),
            smallest_eigenvalue: self.smallest_eigenvalue.unwrap_or(f64::NEG_INFINITY),
            penalty: self.penalty.map(|p| Penalty {
                cure_ridge: p.cure_ridge,
                latency_ridge: p.latency_ridge,
                remedy: p.remedy,
                objective: p.objective,
            }),
            flags: self.flags.iter().map(ModelFlagRecord::flag).collect(),
        })
    }
}

/// A cure model. Its covariance is kept in `run.dvim`, not here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelRecord {
    /// Logit of P(cure).
    pub cure: PartRecord,
    /// Location of the log event time of the uncured.
    pub latency: PartRecord,
    /// ln σ.
    pub log_sigma: f64,
    /// Its standard error.
    pub log_sigma_se: Option<f64>,
    /// Log-likelihood, without any penalty.
    pub log_likelihood: f64,
    /// Units of the training set.
    pub n_units: usize,
    /// Events among them.
    pub n_events: usize,
    /// Censored before the horizon.
    pub n_censored: usize,
    /// Event-free at the horizon.
    pub n_reached_horizon: usize,
    /// Whether to believe it.
    pub certificate: CertificateRecord,
    /// Means of the covariates in the training set, from which predictions start.
    pub center: Vec<f64>,
    /// Logit of cure there.
    pub cure_at_center: f64,
    /// Location of the latency there.
    pub latency_at_center: f64,
}

impl From<&CureModel> for ModelRecord {
    fn from(m: &CureModel) -> ModelRecord {
        ModelRecord {
            cure: (&m.cure).into(),
            latency: (&m.latency).into(),
            log_sigma: m.log_sigma,
            log_sigma_se: m.log_sigma_se,
            log_likelihood: m.log_likelihood,
            n_units: m.n_units,
            n_events: m.n_events,
            n_censored: m.n_censored,
            n_reached_horizon: m.n_reached_horizon,
            certificate: (&m.certificate).into(),
            center: m.center.clone(),
            cure_at_center: m.cure_at_center,
            latency_at_center: m.latency_at_center,
        }
    }
}

impl ModelRecord {
    /// The model it records, with the covariance that was kept beside it.
    pub fn model(self, covariance: Option<Vec<f64>>, horizon: f64) -> Result<CureModel, String> {
        Ok(CureModel {
            cure: self.cure.part(),
            latency: self.latency.part(),
            log_sigma: self.log_sigma,
            log_sigma_se: self.log_sigma_se,
            covariance,
            log_likelihood: self.log_likelihood,
            horizon,
            n_units: self.n_units,
            n_events: self.n_events,
            n_censored: self.n_censored,
            n_reached_horizon: self.n_reached_horizon,
            certificate: self.certificate.certificate()?,
            center: self.center,
            cure_at_center: self.cure_at_center,
            latency_at_center: self.latency_at_center,
        })
    }
}

/// An estimate with its standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimateRecord {
    /// The estimate.
    pub estimate: f64,
    /// Its standard error; `null` where it is undefined.
    pub se: Option<f64>,
}

impl From<dvim::internal::survival::Estimate> for EstimateRecord {
    fn from(e: dvim::internal::survival::Estimate) -> EstimateRecord {
        EstimateRecord { estimate: e.value, se: e.se }
    }
}

/// One column, as `check` read it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnRecord {
    name: String,
    role: String,
    kind: String,
    n_missing: usize,
    min: Option<f64>,
    mean: Option<f64>,
    max: Option<f64>,
    n_levels: usize,
    levels: BTreeMap<String, usize>,
    /// The level coded 1, where there are two.
    one: Option<String>,
}

/// One arm, as `check` sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmRecord {
    label: String,
    n_units: usize,
    n_events: usize,
    #[serde(skip_serializing_if = "is_zero")]
    n_competing: usize,
    n_censored: usize,
    n_at_risk: usize,
    median_follow_up: Option<f64>,
    last_time: f64,
    carried_forward: bool,
    cure_probability: EstimateRecord,
    restricted_mean: EstimateRecord,
    mean_event_time: Option<EstimateRecord>,
}

/// What `check --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OverviewRecord {
    schema: String,
    version: String,
    file: String,
    sha256: String,
    n_rows: usize,
    flow: FlowRecord,
    horizon: Option<f64>,
    columns: Vec<ColumnRecord>,
    arms: Option<ByArm<ArmRecord>>,
    problems: Vec<ProblemRecord>,
    refused: bool,
}

impl OverviewRecord {
    /// The record of an overview.
    pub fn of(o: &dvim::internal::overview::Overview, file: String, sha256: String) -> OverviewRecord {
        let columns = o.columns.iter().map(|c| ColumnRecord {
            name: c.name.clone(),
            role: c.role.into(),
            kind: c.kind.into(),
            n_missing: c.n_missing,
            min: c.range.map(|r| r[0]),
            mean: c.range.map(|r| r[1]),
            max: c.range.map(|r| r[2]),
            n_levels: c.n_levels,
            levels: c.levels.iter().cloned().collect(),
            one: c.one.clone(),
        });
        let arm = |a: &dvim::internal::overview::ArmOverview| ArmRecord {
            label: a.label.clone(),
            n_units: a.n_units,
            n_events: a.n_events,
            n_competing: a.n_competing,
            n_censored: a.n_censored,
            n_at_risk: a.n_at_risk,
            median_follow_up: a.median_follow_up,
            last_time: a.last_time,
            carried_forward: a.carried_forward,
            cure_probability: a.survival.into(),
            restricted_mean: a.restricted_mean.into(),
            mean_event_time: a.mean_event_time.map(EstimateRecord::from),
        };
        OverviewRecord {
            schema: "dvim.check/1".into(),
            version: VERSION.into(),
            file,
            sha256,
            n_rows: o.n_rows,
            flow: (&o.flow).into(),
            horizon: Some(o.horizon).filter(|h| h.is_finite()),
            columns: columns.collect(),
            arms: o.arms.as_ref().map(|arms| ByArm::map(|z| arm(&arms[z.index()]))),
            problems: o.problems.iter().map(|p| ProblemRecord::of(p, &CommandLine)).collect(),
            refused: o.problems.iter().any(|p| p.severity == Severity::Error),
        }
    }
}

/// The value of a covariate: a number or a level.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ValueRecord {
    /// A number.
    Number(f64),
    /// A level.
    Level(String),
}

/// A unit's covariates, by name.
fn covariate_values(cohort: &Cohort, x: &[f64]) -> BTreeMap<String, ValueRecord> {
    let value = |c: &Covariate| match c.level_of(x) {
        Some(level) => ValueRecord::Level(level.to_string()),
        None => ValueRecord::Number(x[c.first]),
    };
    cohort.schema().iter().map(|c| (c.label(), value(c))).collect()
}

/// A member of a match group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemberRecord {
    id: String,
    distance: f64,
    /// What the member counts: 1, or less where those at the last distance share the places that are left.
    counts: f64,
    time: f64,
    event: bool,
    covariates: BTreeMap<String, ValueRecord>,
    /// Share of each covariate in the squared distance.
    shares: BTreeMap<String, f64>,
}

/// One step of a Kaplan–Meier curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepRecord {
    time: f64,
    n_at_risk: usize,
    n_events: usize,
    #[serde(skip_serializing_if = "is_zero")]
    n_competing: usize,
    n_censored: usize,
    survival: f64,
}

/// One match group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupRecord {
    cure_probability: f64,
    mean_event_time: Option<f64>,
    restricted_mean: f64,
    n_at_risk: usize,
    carried_forward: bool,
    diameter: f64,
    members: Vec<MemberRecord>,
    curve: Vec<StepRecord>,
}

/// A standard error and an interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IntervalRecord {
    se: Option<f64>,
    low: f64,
    high: f64,
    confidence: f64,
}

impl IntervalRecord {
    fn of(i: dvim::internal::interval::Interval, confidence: f64) -> IntervalRecord {
        IntervalRecord { se: i.se, low: i.low, high: i.high, confidence }
    }
}

/// A patient's survival at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointRecord {
    time: f64,
    survival: f64,
    low: f64,
    high: f64,
}

/// What `match --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatchRecord {
    schema: String,
    version: String,
    id: String,
    treatment: String,
    /// Whether the unit trained the models; then it is not in `effects.csv`.
    trained: bool,
    time: f64,
    event: bool,
    horizon: f64,
    cure_effect: Option<f64>,
    time_effect: Option<f64>,
    cure_effect_interval: Option<IntervalRecord>,
    time_effect_interval: Option<IntervalRecord>,
    /// What the groups alone give.
    cure_effect_matched: Option<f64>,
    time_effect_matched: Option<f64>,
    /// What the models alone say, and the weight with which the groups move that; `null` where nothing is corrected.
    cure_effect_model: Option<f64>,
    time_effect_model: Option<f64>,
    cure_weight: Option<f64>,
    time_weight: Option<f64>,
    /// The patient's own corrected curves; the groups have theirs, which are not corrected.
    curves: Option<ByArm<Vec<PointRecord>>>,
    covariates: BTreeMap<String, ValueRecord>,
    /// Groups matched for cure.
    cure: ByArm<GroupRecord>,
    /// Groups matched for time.
    time_groups: ByArm<GroupRecord>,
}

impl MatchRecord {
    /// The record of one unit's groups.
    pub fn of(
        cohort: &Cohort,
        fit: &Fit,
        unit: usize,
        groups: &dvim::internal::inspect::UnitGroups,
        corrected: Option<&dvim::internal::effect::Corrected>,
    ) -> MatchRecord {
        let summed = |shares: &[f64]| -> BTreeMap<String, f64> {
            cohort.schema().iter().map(|c| (c.label(), shares[c.columns()].iter().sum())).collect()
        };
        let horizon = cohort.horizon();
        let group = |g: &dvim::internal::inspect::MatchGroup| {
            let s = g.curve.summary(horizon);
            GroupRecord {
                cure_probability: s.survival,
                mean_event_time: s.mean_event_time(),
                restricted_mean: s.restricted_mean(horizon),
                n_at_risk: s.n_at_risk,
                carried_forward: s.carried_forward(),
                diameter: g.diameter().unwrap_or(0.0),
                members: (0..g.units.len())
                    .map(|m| {
                        let i = g.units[m] as usize;
                        MemberRecord {
                            id: cohort.ids().text(i).into_owned(),
                            distance: g.distance[m],
                            counts: g.counts[m],
                            time: cohort.time(i),
                            event: cohort.event(i),
                            covariates: covariate_values(cohort, cohort.covariates(i)),
                            shares: summed(&g.shares[m]),
                        }
                    })
                    .collect(),
                curve: g
                    .curve
                    .steps()
                    .iter()
                    .map(|s| StepRecord {
                        time: s.time,
                        n_at_risk: s.n_at_risk,
                        n_events: s.n_events,
                        n_competing: s.n_competing,
                        n_censored: s.n_censored,
                        survival: s.survival,
                    })
                    .collect(),
            }
        };
        let cure = ByArm::map(|z| group(&groups.cure[z]));
        let time_groups = ByArm::map(|z| group(&groups.time[z]));
        let effect = groups.effect(horizon, corrected.copied());
        let confidence = fit.options.confidence;
        let interval = |i| IntervalRecord::of(i, confidence);
        let model = |side| corrected.map(|c| c.model[side].treated - c.model[side].control);
        let (grid, quantile) = (Grid::of(cohort), two_sided(confidence));
        let curves = corrected.map(|c| c.curves(&grid)).map(|curves| {
            let point = |z: Arm, &time: &f64| {
                let (survival, i) = curves.survival(z, time, quantile);
                PointRecord { time, survival, low: i.low, high: i.high }
            };
            ByArm::map(|z| grid.times().iter().map(|t| point(z, t)).collect())
        });
        MatchRecord {
            schema: "dvim.match/1".into(),
            version: VERSION.into(),
            id: cohort.ids().text(unit).into_owned(),
            treatment: cohort.label(cohort.arm(unit)).into(),
            trained: fit.is_training[unit],
            time: cohort.time(unit),
            event: cohort.event(unit),
            horizon,
            cure_effect: effect.map(|e| e.cure()),
            time_effect: effect.and_then(|e| e.time()),
            cure_effect_interval: effect.map(|e| interval(e.cure_interval(confidence))),
            time_effect_interval: effect.and_then(|e| e.time_interval(horizon, confidence)).map(interval),
            cure_effect_matched: effect.map(|e| e.cure_matched()),
            time_effect_matched: effect.and_then(|e| e.time_matched()),
            cure_effect_model: model(Estimand::Cure),
            time_effect_model: model(Estimand::Time),
            cure_weight: corrected.map(|c| c.weight.cure),
            time_weight: corrected.map(|c| c.weight.time),
            curves,
            covariates: covariate_values(cohort, cohort.covariates(unit)),
            cure,
            time_groups,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AdjustedOptionsRecord;

    /// What runs of every age asked for: splits that were folds, splits that were deals, splits in all.
    #[test]
    fn splits_of_earlier_runs_mean_what_they_meant() {
        let deals = |counts: &str| {
            let json = format!("{{{counts}, \"latency\": null, \"group_size\": null}}");
            let record: AdjustedOptionsRecord = serde_json::from_str(&json).expect("a record");
            record.options().expect("options").deals()
        };
        assert_eq!(deals(r#""splits": 20"#), [20]);
        assert_eq!(deals(r#""splits": 2, "folds": 10"#), [10, 10]);
        assert_eq!(deals(r#""splits": 1, "folds": 5"#), [5]);
        assert_eq!(deals(r#""splits": 20, "folds": 10, "deals": [10, 10]"#), [10, 10]);
        assert_eq!(deals(r#""splits": null, "folds": 5, "deals": [10]"#), [5], "as Python asks: as many as folds");
    }
}
