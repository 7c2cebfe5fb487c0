//! A design as a file: TOML whose keys are the names of the options.

use super::asked::{Asked, Design};
use std::fmt::Write;

/// Reads what a file gave, as values by name: names may have hyphens or underscores.
pub fn of_values(values: serde_json::Value) -> Result<Asked, String> {
    let serde_json::Value::Object(values) = values else { return Err("it has no names".into()) };
    let named = values.into_iter().map(|(name, value)| (name.replace('-', "_"), value)).collect();
    serde_json::from_value(serde_json::Value::Object(named)).map_err(|e| e.to_string())
}

impl Design {
    /// The design as what would be asked for to get it, with nothing left to defaults.
    pub fn asked(&self) -> Asked {
        let end = |shape: &Vec<f64>| {
            let mut left = 1.0;
            let step = self.horizon / shape.len() as f64;
            let mut points = vec![[0.0, 1.0]];
            for (k, share) in shape.iter().enumerate() {
                left -= (1.0 - self.event_free) * share;
                points.push([step * (k + 1) as f64, if k + 1 == shape.len() { self.event_free } else { left }]);
            }
            points
        };
        Asked {
            horizon: Some(self.horizon),
            event_free: Some(self.event_free),
            mean_time: Some(self.mean_time),
            curve: self.shape.as_ref().map(end),
            from_run: self.from_run.clone(),
            cure_effect: Some(self.cure_effect),
            time_effect: Some(self.time_effect),
            cure_effect_sd: Some(self.cure_effect_sd),
            time_effect_sd: Some(self.time_effect_sd),
            accrual: Some(self.accrual),
            study_end: Some(self.study_end),
            dropout: Some(self.dropout),
            treated_share: Some(self.treated_share),
            n_covariates: Some(self.n_covariates),
            prognosis_whether: Some(self.prognosis_whether),
            prognosis_when: Some(self.prognosis_when),
            confounding: Some(self.confounding),
            selection: Some(self.selection),
            cluster_size: Some(self.cluster_size),
            cluster_correlation: Some(self.cluster_correlation),
            randomise: Some(if self.by_cluster { "clusters" } else { "patients" }.into()),
            analysis: Some(self.analysis.name().into()),
            sizes: Some(self.sizes.clone()),
            alpha: Some(self.alpha),
            multiplicity: Some(self.multiplicity.name().into()),
            power: Some(self.power),
            precision: Some(self.precision),
            most_trials: Some(self.most_trials),
            more_time: Some(self.more_time),
            more_patients: Some(self.more_patients),
            seed: Some(self.seed),
        }
    }

    /// The design as a file that gives it again.
    pub fn to_toml(&self) -> String {
        let mut out = String::from("# A design for `dvim design --settings FILE`, every default filled in.\n");
        let values = serde_json::to_value(self.asked()).expect("numbers and words");
        for (name, value) in values.as_object().expect("names").iter().filter(|(_, v)| !v.is_null()) {
            // Numbers, words in quotes and lists are written alike in JSON and in TOML.
            writeln!(out, "{} = {value}", name.replace('_', "-")).expect("a string takes it");
        }
        out
    }
}
