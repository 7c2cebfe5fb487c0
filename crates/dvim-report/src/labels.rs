//! Labels as a record: what a file of labels, the arguments of Python and `summary.json` hold.

use dvim::internal::cohort::{CovariateLabel, Labels};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// What the arms, the time, the event and the covariates are called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelsRecord {
    /// The unit of time in words, such as `days`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_unit: Option<String>,
    /// The horizon in words, such as `5 years`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizon: Option<String>,
    /// The treated arm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub treated: Option<String>,
    /// The control arm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// The event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// A word for patients without the event at the horizon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cure_word: Option<String>,
    /// Who the patients are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<String>,
    /// The covariates, by column.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub covariates: BTreeMap<String, CovariateRecord>,
}

/// What one covariate is called: words such as `Age [years]`, or its parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "the label of a covariate is a text, or has `label`, `unit` and `levels`")]
pub enum CovariateRecord {
    /// Its label, with its unit in brackets.
    Words(String),
    /// Label, unit and levels.
    Parts(PartsRecord),
}

/// The parts of a covariate's label.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartsRecord {
    /// Its name for readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Its levels, in the order in which they are shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelRecord>,
}

/// A level: as it is in the table, or with its name for readers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a level is a text, or a pair of texts: its value in the table and its name")]
pub enum LevelRecord {
    /// As it is in the table.
    Plain(String),
    /// The value in the table, and its name.
    Named(String, String),
}

/// Splits `Age [years]` into label and unit.
pub fn label_and_unit(words: &str) -> (String, Option<String>) {
    let words = words.trim();
    match words.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) {
        Some((label, unit)) if !label.trim().is_empty() => (label.trim().into(), Some(unit.trim().into())),
        _ => (words.into(), None),
    }
}

impl From<&Labels> for LabelsRecord {
    fn from(l: &Labels) -> LabelsRecord {
        let level = |(raw, words): &(String, String)| match raw == words {
            true => LevelRecord::Plain(raw.clone()),
            false => LevelRecord::Named(raw.clone(), words.clone()),
        };
        let covariate = |c: &CovariateLabel| PartsRecord {
            label: c.label.clone(),
            unit: c.unit.clone(),
            levels: c.levels.iter().map(level).collect(),
        };
        let of = |c: &CovariateLabel| (c.column.clone(), CovariateRecord::Parts(covariate(c)));
        LabelsRecord {
            time_unit: l.time_unit.clone(),
            horizon: l.horizon.clone(),
            treated: l.treated.clone(),
            control: l.control.clone(),
            event: l.event.clone(),
            cure_word: l.cure_word.clone(),
            population: l.population.clone(),
            covariates: l.covariates.iter().map(of).collect(),
        }
    }
}

impl LabelsRecord {
    /// The labels that it records, in the order of the columns' names.
    pub fn labels(self) -> Labels {
        let level = |l: LevelRecord| match l {
            LevelRecord::Plain(raw) => (raw.clone(), raw),
            LevelRecord::Named(raw, words) => (raw, words),
        };
        let covariate = |(column, c): (String, CovariateRecord)| match c {
            CovariateRecord::Words(words) => {
                let (label, unit) = label_and_unit(&words);
                CovariateLabel { column, label: Some(label), unit, levels: vec![] }
            }
            CovariateRecord::Parts(p) => CovariateLabel {
                column,
                label: p.label,
                unit: p.unit,
                levels: p.levels.into_iter().map(level).collect(),
            },
        };
        // An empty text says nothing.
        let said = |text: Option<String>| text.map(|t| t.trim().to_string()).filter(|t| !t.is_empty());
        Labels {
            time_unit: said(self.time_unit),
            horizon: said(self.horizon),
            treated: said(self.treated),
            control: said(self.control),
            event: said(self.event),
            cure_word: said(self.cure_word),
            population: said(self.population),
            covariates: self.covariates.into_iter().map(covariate).collect(),
        }
    }
}

pub(crate) fn serialize<S: Serializer>(labels: &Labels, to: S) -> Result<S::Ok, S::Error> {
    LabelsRecord::from(labels).serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Labels, D::Error> {
    Ok(LabelsRecord::deserialize(from)?.labels())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_go_both_ways() {
        let json = r#"{"time_unit":"days","treated":"haplo","covariates":{"age":"Age [years]",
            "stage":{"label":"Stage","levels":["I",["2","II"]]}}}"#;
        let labels = serde_json::from_str::<LabelsRecord>(json).expect("a record").labels();
        assert_eq!(labels.covariates[0].unit.as_deref(), Some("years"));
        assert_eq!(labels.covariates[1].levels, [("I".into(), "I".into()), ("2".into(), "II".into())]);
        let again = serde_json::to_string(&LabelsRecord::from(&labels)).expect("json");
        assert_eq!(serde_json::from_str::<LabelsRecord>(&again).expect("a record").labels(), labels);
        let wrong = serde_json::from_str::<LabelsRecord>(r#"{"treatd":"x"}"#).expect_err("no such label").to_string();
        assert!(wrong.contains("treatd") && wrong.contains("time_unit"), "{wrong}");
    }
}
