//! What is asked for, as a face writes it in JSON.

use dvim::internal::audit::average::By;
use dvim::internal::cohort::Roles;
use dvim::internal::compare::cox::Ties;
use dvim::internal::options::{Estimator, Options};
use dvim_io::run::EffectsFormat;
use dvim_report::record::{AskedRecord, OptionsRecord};
use serde::Deserialize;

/// The parts of the columns.
#[derive(Deserialize)]
struct Asked {
    time: String,
    event: String,
    treatment: String,
    horizon: f64,
    #[serde(flatten, with = "AskedRecord")]
    asked: Roles,
}

/// Which column plays which part. Fails with what was not understood.
pub fn roles(asked: &str) -> Result<Roles, String> {
    let Asked { time, event, treatment, horizon, asked } = serde_json::from_str(asked).map_err(|e| e.to_string())?;
    Ok(Roles { time, event, treatment, horizon, ..asked })
}

/// How to analyse. Fails with what was not understood.
pub fn options(options: &str) -> Result<Options, String> {
    let record: OptionsRecord = serde_json::from_str(options).map_err(|e| e.to_string())?;
    record.options().map_err(|e| e.to_string())
}

/// The options of the engine; with the adjusted estimator, its own among them.
pub fn default_options(adjusted: bool) -> OptionsRecord {
    let estimator = if adjusted { Estimator::Adjusted(Default::default()) } else { Estimator::Paper };
    OptionsRecord::from(&Options { estimator, ..Options::default() })
}

/// Subgroups: `sex`, or `age:4` for four bins of equal size.
pub fn by(by: &[String]) -> Vec<By> {
    by.iter().map(|b| By::parse(b)).collect()
}

/// The format of effects.
pub fn format(format: &str) -> Result<EffectsFormat, String> {
    let known = EffectsFormat::ALL.into_iter().find(|f| f.name() == format);
    known.ok_or_else(|| format!("the format `{format}` is not known; use csv or json"))
}

/// How Cox models share tied event times.
pub fn ties(ties: &str) -> Result<Ties, String> {
    let known = Ties::ALL.into_iter().find(|t| t.name() == ties);
    known.ok_or_else(|| format!("ties are handled by breslow or efron, not by `{ties}`"))
}
