//! Engine values as versioned records for JSON: what `summary.json` and a saved run hold.
//! Records go both ways, so that a run can be reopened. Field names are part of the schema.

use dvim::analysis::{Analysis, Average, Fit, Options};
use dvim::cohort::{Arm, Cohort};
use dvim::cure::{Certificate, CureModel, Part};
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
}

impl From<&Options> for OptionsRecord {
    fn from(o: &Options) -> OptionsRecord {
        OptionsRecord {
            group_size: o.group_size,
            train_fraction: o.train_fraction,
            metric: o.metric.name().into(),
            scale: o.scale.name().into(),
            seed: o.seed,
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
    /// `cure_effect` or `time_effect`.
    pub estimand: String,
    /// `all`, `treated` or `control`.
    pub population: String,
    /// The mean; `null` where no unit's effect is defined.
    pub estimate: Option<f64>,
    /// Spread between units; not a standard error.
    pub sd: Option<f64>,
    /// Units that it rests on.
    pub n_units: usize,
    /// Units whose effect is undefined.
    pub n_undefined: usize,
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
        input: InputRecord,
        roles: RolesRecord,
        warnings: &[Problem],
        files: BTreeMap<String, String>,
    ) -> Summary {
        let n = analysis.effects.len();
        let record = |estimand: &str, population: &str, a: Average| AverageRecord {
            estimand: estimand.into(),
            population: population.into(),
            estimate: a.mean,
            sd: a.sd,
            n_units: a.n_units,
            n_undefined: a.n_undefined,
        };
        let populations = [("all", None), ("treated", Some(Arm::Treated)), ("control", Some(Arm::Control))];
        let average_effects = populations
            .iter()
            .map(|(name, arm)| record("cure_effect", name, analysis.average_cure_effect(cohort, *arm)))
            .chain(populations.iter().map(|(name, arm)| record("time_effect", name, analysis.average_time_effect(cohort, *arm))))
            .collect();
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
            average_effects,
            flags: flags.collect(),
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
