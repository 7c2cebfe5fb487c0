//! Engine values as versioned records for JSON: what `summary.json` and a saved run hold.
//! Records go both ways, so that a run can be reopened. Field names are part of the schema.

use crate::audit::AuditRecord;
use dvim::analysis::{Analysis, Fit, Options};
use dvim::audit::Audit;
use dvim::audit::average::AverageEffect;
use dvim::cohort::{Arm, Cohort};
use dvim::cure::{self, Certificate, CureModel, Part, Penalty, StopReason};
use dvim::error::{Problem, Severity};
use dvim::metric::{Metric, MetricChoice, Metrics, Scale, Scaling};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema of `summary.json`. A change that an older reader would misread raises the number.
pub const SUMMARY_SCHEMA: &str = "dvim.summary/1";

/// The version of this software.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Two values, one for each arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Time.
    pub time: String,
    /// Event.
    pub event: String,
    /// Treatment.
    pub treatment: String,
    /// Id, or `null` where row numbers served.
    pub id: Option<String>,
    /// Covariates.
    pub covariates: Vec<String>,
    /// What the arms are called in the table.
    pub labels: ByArm<String>,
}

impl RolesRecord {
    /// The parts of the columns of a simulated cohort.
    pub fn simulated(cohort: &Cohort) -> RolesRecord {
        RolesRecord {
            time: "time".into(),
            event: "event".into(),
            treatment: "treatment".into(),
            id: Some("id".into()),
            covariates: cohort.names().to_vec(),
            labels: ByArm::map(|z| cohort.label(z).to_string()),
        }
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
}

/// The level of runs that were written before it could be chosen.
fn usual_confidence() -> f64 {
    Options::default().confidence
}

impl From<&Options> for OptionsRecord {
    fn from(o: &Options) -> OptionsRecord {
        OptionsRecord {
            group_size: o.group_size,
            train_fraction: o.train_fraction,
            metric: o.metric.name().into(),
            scale: o.scale.name().into(),
            seed: o.seed,
            confidence: o.confidence,
        }
    }
}

impl OptionsRecord {
    /// The options it records, or what it says that is not known here.
    pub fn options(&self) -> Result<Options, String> {
        let metric = [MetricChoice::Separate, MetricChoice::Combined].into_iter().find(|m| m.name() == self.metric);
        let scale = [Scale::Standard, Scale::None].into_iter().find(|s| s.name() == self.scale);
        Ok(Options {
            group_size: self.group_size,
            train_fraction: self.train_fraction,
            metric: metric.ok_or_else(|| format!("unknown metric `{}`", self.metric))?,
            scale: scale.ok_or_else(|| format!("unknown scale `{}`", self.scale))?,
            seed: self.seed,
            confidence: self.confidence,
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
    /// Censored before the horizon.
    pub n_censored: usize,
    /// At risk at the horizon.
    pub n_at_risk: usize,
}

impl CountsRecord {
    fn of(cohort: &Cohort, fit: &Fit, arm: Arm) -> CountsRecord {
        let units = cohort.units_of(arm);
        let count = |f: &dyn Fn(usize) -> bool| units.iter().filter(|&&i| f(i as usize)).count();
        let n_training = count(&|i| fit.is_training[i]);
        let n_events = count(&|i| cohort.event(i));
        let n_at_risk = count(&|i| cohort.time(i) >= cohort.horizon());
        CountsRecord {
            n_units: units.len(),
            n_training,
            n_estimation: units.len() - n_training,
            n_events,
            n_censored: units.len() - n_events - n_at_risk,
            n_at_risk,
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

impl From<&Problem> for ProblemRecord {
    fn from(p: &Problem) -> ProblemRecord {
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
            found: p.found.clone(),
            rule: p.rule.clone(),
            remedy: p.remedy.clone(),
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
    /// H.
    pub horizon: f64,
    /// How it was analysed.
    pub options: OptionsRecord,
    /// Units.
    pub counts: ByArm<CountsRecord>,
    /// The cure models, on covariates scaled as `weights.csv` says.
    pub models: ByArm<ModelRecord>,
    /// Average effects.
    pub average_effects: Vec<AverageRecord>,
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

impl Summary {
    /// The summary of a run.
    pub fn of(
        cohort: &Cohort,
        analysis: &Analysis,
        audit: &Audit,
        input: InputRecord,
        roles: RolesRecord,
        warnings: &[Problem],
        files: BTreeMap<String, String>,
    ) -> Summary {
        let n = analysis.effects.len();
        let flags = analysis.flag_counts().into_iter().map(|(flag, n_units)| {
            let share = if n > 0 { n_units as f64 / n as f64 } else { 0.0 };
            (flag.name().to_string(), FlagRecord { n_units, share, meaning: flag.meaning() })
        });
        Summary {
            schema: SUMMARY_SCHEMA.into(),
            version: VERSION.into(),
            input,
            roles,
            horizon: cohort.horizon(),
            options: (&analysis.fit.options).into(),
            counts: ByArm::map(|z| CountsRecord::of(cohort, &analysis.fit, z)),
            models: ByArm::map(|z| ModelRecord::from(&analysis.fit.models[z.index()])),
            average_effects: audit.averages.iter().map(AverageRecord::from).collect(),
            flags: flags.collect(),
            audit: Some(AuditRecord::of(cohort, audit)),
            warnings: warnings.iter().map(ProblemRecord::from).collect(),
            files,
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

impl From<dvim::survival::Estimate> for EstimateRecord {
    fn from(e: dvim::survival::Estimate) -> EstimateRecord {
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
}

/// One arm, as `check` sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmRecord {
    label: String,
    n_units: usize,
    n_events: usize,
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
    horizon: Option<f64>,
    columns: Vec<ColumnRecord>,
    arms: Option<ByArm<ArmRecord>>,
    problems: Vec<ProblemRecord>,
    refused: bool,
}

impl OverviewRecord {
    /// The record of an overview.
    pub fn of(o: &dvim::overview::Overview, file: String, sha256: String) -> OverviewRecord {
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
        });
        let arm = |a: &dvim::overview::ArmOverview| ArmRecord {
            label: a.label.clone(),
            n_units: a.n_units,
            n_events: a.n_events,
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
            horizon: Some(o.horizon).filter(|h| h.is_finite()),
            columns: columns.collect(),
            arms: o.arms.as_ref().map(|arms| ByArm::map(|z| arm(&arms[z.index()]))),
            problems: o.problems.iter().map(ProblemRecord::from).collect(),
            refused: o.problems.iter().any(|p| p.severity == Severity::Error),
        }
    }
}

/// A member of a match group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemberRecord {
    id: String,
    distance: f64,
    time: f64,
    event: bool,
    covariates: BTreeMap<String, f64>,
    /// Share of each covariate in the squared distance.
    shares: BTreeMap<String, f64>,
}

/// One step of a Kaplan–Meier curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepRecord {
    time: f64,
    n_at_risk: usize,
    n_events: usize,
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
    cure_effect: f64,
    time_effect: Option<f64>,
    covariates: BTreeMap<String, f64>,
    /// Groups matched for cure.
    cure: ByArm<GroupRecord>,
    /// Groups matched for time.
    time_groups: ByArm<GroupRecord>,
}

impl MatchRecord {
    /// The record of one unit's groups.
    pub fn of(cohort: &Cohort, fit: &Fit, unit: usize, groups: &dvim::analysis::UnitGroups) -> MatchRecord {
        let named =
            |values: &[f64]| cohort.names().iter().cloned().zip(values.iter().copied()).collect::<BTreeMap<_, _>>();
        let horizon = cohort.horizon();
        let group = |g: &dvim::analysis::MatchGroup| {
            let s = g.curve.summary(horizon);
            GroupRecord {
                cure_probability: s.survival,
                mean_event_time: s.mean_event_time(),
                restricted_mean: s.restricted_mean(horizon),
                n_at_risk: s.n_at_risk,
                carried_forward: s.carried_forward(),
                diameter: g.distance.last().copied().unwrap_or(0.0),
                members: (0..g.units.len())
                    .map(|m| {
                        let i = g.units[m] as usize;
                        MemberRecord {
                            id: cohort.ids().text(i).into_owned(),
                            distance: g.distance[m],
                            time: cohort.time(i),
                            event: cohort.event(i),
                            covariates: named(cohort.covariates(i)),
                            shares: named(&g.shares[m]),
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
                        n_censored: s.n_censored,
                        survival: s.survival,
                    })
                    .collect(),
            }
        };
        let cure = ByArm::map(|z| group(&groups.cure[z.index()]));
        let time_groups = ByArm::map(|z| group(&groups.time[z.index()]));
        MatchRecord {
            schema: "dvim.match/1".into(),
            version: VERSION.into(),
            id: cohort.ids().text(unit).into_owned(),
            treatment: cohort.label(cohort.arm(unit)).into(),
            trained: fit.is_training[unit],
            time: cohort.time(unit),
            event: cohort.event(unit),
            horizon,
            cure_effect: cure.treated.cure_probability - cure.control.cure_probability,
            time_effect: time_groups
                .treated
                .mean_event_time
                .zip(time_groups.control.mean_event_time)
                .map(|(t, c)| t - c),
            covariates: named(cohort.covariates(unit)),
            cure,
            time_groups,
        }
    }
}
