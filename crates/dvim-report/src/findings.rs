//! Who was compared, how single effects are spread, and whether the data support the answer: as records.

use crate::names::Names;
use crate::record::ByArm;
use dvim::internal::audit::baseline::BaselineRow;
use dvim::internal::audit::individual::{Individual, Quadrants, Spread};
use dvim::internal::audit::verdict::{Remedy, Support, Verdict};
use dvim::internal::cohort::Arm;
use dvim::internal::estimand::Estimand;
use dvim::internal::phrase::{Face, Value, harmless};
use dvim::internal::setting::Setting;
use serde::{Deserialize, Serialize};

/// A covariate of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmBaselineRecord {
    /// Units that have the level, or the number.
    pub n_units: usize,
    /// Mean of the number, or share of the level.
    pub mean: f64,
    /// Standard deviation; of a level that of its indicator.
    pub sd: f64,
    /// 25, 50 and 75 % quantiles; `null` for a level.
    pub quartiles: Option<[f64; 3]>,
}

/// A number, or one level of a category, by arm, over all units and before matching.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineRecord {
    /// The covariate.
    pub covariate: String,
    /// The level; `null` for a number.
    pub level: Option<String>,
    /// Whether it is a number that is 0 or 1 throughout; then `n_units` counts those with a 1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_binary: bool,
    /// By arm.
    #[serde(flatten)]
    pub arms: ByArm<ArmBaselineRecord>,
    /// Standardised difference, treated less control.
    pub difference: Option<f64>,
}

impl From<&BaselineRow> for BaselineRecord {
    fn from(r: &BaselineRow) -> BaselineRecord {
        BaselineRecord {
            covariate: r.covariate.clone(),
            level: r.level.clone(),
            is_binary: r.is_binary,
            arms: ByArm::map(|z: Arm| ArmBaselineRecord {
                n_units: r.n_units[z.index()],
                mean: r.mean[z.index()],
                sd: r.sd[z.index()],
                quartiles: r.quartiles.map(|q| q[z.index()]),
            }),
            difference: r.difference,
        }
    }
}

/// The estimates of one effect over patients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpreadRecord {
    /// Units whose effect is defined.
    pub n_units: usize,
    /// Units whose effect is undefined.
    pub n_undefined: usize,
    /// 1, 5, 25, 50, 75, 95 and 99 % quantiles.
    pub quantiles: [f64; 7],
    /// Units with an interval.
    pub n_with_interval: usize,
    /// Of these, intervals wholly below zero.
    pub n_below: usize,
    /// Their share of those with an interval.
    pub share_below: Option<f64>,
    /// Intervals wholly above zero.
    pub n_above: usize,
    /// Their share.
    pub share_above: Option<f64>,
}

impl From<&Spread> for SpreadRecord {
    fn from(s: &Spread) -> SpreadRecord {
        SpreadRecord {
            n_units: s.n_units,
            n_undefined: s.n_undefined,
            quantiles: s.quantiles,
            n_with_interval: s.n_with_interval,
            n_below: s.n_below,
            share_below: s.share(s.n_below),
            n_above: s.n_above,
            share_above: s.share(s.n_above),
        }
    }
}

/// Units by the signs of their two effects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QuadrantsRecord {
    /// Cures more, delays events.
    pub more_later: usize,
    /// Cures more, hastens events.
    pub more_sooner: usize,
    /// Cures fewer, delays events.
    pub fewer_later: usize,
    /// Cures fewer, hastens events.
    pub fewer_sooner: usize,
}

impl QuadrantsRecord {
    fn of(q: Quadrants) -> QuadrantsRecord {
        let Quadrants { more_later, more_sooner, fewer_later, fewer_sooner } = q;
        QuadrantsRecord { more_later, more_sooner, fewer_later, fewer_sooner }
    }
}

/// How the effects of single patients are spread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndividualRecord {
    /// Cure effects.
    pub cure_effect: Option<SpreadRecord>,
    /// Time effects.
    pub time_effect: Option<SpreadRecord>,
    /// Units by the signs of their estimates.
    pub quadrants: QuadrantsRecord,
    /// The same of those both of whose intervals exclude zero.
    pub certain: QuadrantsRecord,
}

impl From<&Individual> for IndividualRecord {
    fn from(i: &Individual) -> IndividualRecord {
        IndividualRecord {
            cure_effect: i.cure.as_ref().map(SpreadRecord::from),
            time_effect: i.time.as_ref().map(SpreadRecord::from),
            quadrants: QuadrantsRecord::of(i.quadrants),
            certain: QuadrantsRecord::of(i.certain),
        }
    }
}

/// Something that stands against an effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReasonRecord {
    /// Stable name.
    pub code: String,
    /// Whether it concerns the cure effect.
    pub cure_effect: bool,
    /// Whether it concerns the time effect.
    pub time_effect: bool,
    /// `note`, `reservation` or `serious`.
    pub weight: String,
    /// For a person.
    pub words: String,
    /// What can be done about it.
    pub remedy: RemedyRecord,
}

/// A setting with a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettingRecord {
    /// Its name, in small letters and hyphens.
    pub setting: String,
    /// Its value: a number or a text.
    pub value: serde_json::Value,
}

/// What can be done about a reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemedyRecord {
    /// For a person, without the names of settings.
    pub words: String,
    /// Settings with which a fit would do it.
    pub settings: Vec<SettingRecord>,
}

impl From<&Remedy> for RemedyRecord {
    fn from(r: &Remedy) -> RemedyRecord {
        let value = |v: &Value| match v {
            Value::Number(x) => serde_json::Value::from(*x),
            other => serde_json::Value::from(other.to_string()),
        };
        let setting = |(s, v): &(Setting, Value)| SettingRecord { setting: s.name().into(), value: value(v) };
        RemedyRecord { words: r.words.clone(), settings: r.settings.iter().map(setting).collect() }
    }
}

impl RemedyRecord {
    /// The remedy in the words of a face: `match exactly on year (--exact year)`.
    pub fn spelled(&self, face: &dyn Face) -> String {
        let value = |v: &serde_json::Value| match v {
            serde_json::Value::Number(x) => Value::Number(x.as_f64().unwrap_or(f64::NAN)),
            other => Value::Text(other.as_str().map_or_else(|| other.to_string(), str::to_string)),
        };
        let spell = |s: &SettingRecord| Some(face.setting(Setting::named(&s.setting)?, Some(&value(&s.value))));
        let settings: Vec<String> = self.settings.iter().filter_map(spell).collect();
        let words = harmless(&self.words).into_owned();
        if settings.is_empty() { words } else { format!("{words} ({})", harmless(&settings.join(", "))) }
    }
}

impl ReasonRecord {
    /// The reason and its remedy in the words of a face, as every page and message says them.
    pub fn spelled(&self, face: &dyn Face) -> String {
        let about = match (self.cure_effect, self.time_effect) {
            (true, false) => "Whether",
            (false, true) => "When",
            _ => "Both",
        };
        let weight = if self.weight == "reservation" { String::new() } else { format!(" ({})", self.weight) };
        format!("{about}{weight}: {}. What to do: {}.", harmless(&self.words), self.remedy.spelled(face))
    }
}

/// Whether the data support one effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SupportRecord {
    /// `supported`, `reserved`, `not_settled`, `not_reliable`, `no_interval` or `undefined`.
    pub support: String,
    /// For a person.
    pub words: String,
    /// How often this word was wrong in the study of verdicts; `null` where the study says nothing of it.
    #[serde(default)]
    pub rate: Option<String>,
}

impl SupportRecord {
    /// The words, and how often they were wrong.
    pub fn spelled(&self) -> String {
        self.rate.as_ref().map_or_else(|| self.words.clone(), |rate| format!("{} {rate}", self.words))
    }
}

/// Whether the data support the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerdictRecord {
    /// On the average cure effect.
    pub cure_effect: SupportRecord,
    /// On the average time effect.
    pub time_effect: SupportRecord,
    /// What stands against them.
    pub reasons: Vec<ReasonRecord>,
}

impl From<&Verdict> for VerdictRecord {
    fn from(v: &Verdict) -> VerdictRecord {
        let support = |side: Estimand| {
            let found = v.support[side];
            SupportRecord { support: found.name().into(), words: found.words(side), rate: v.worth[side].clone() }
        };
        VerdictRecord {
            cure_effect: support(Estimand::Cure),
            time_effect: support(Estimand::Time),
            reasons: v
                .reasons
                .iter()
                .map(|r| ReasonRecord {
                    code: r.code.into(),
                    cure_effect: r.sides.cure,
                    time_effect: r.sides.time,
                    weight: r.weight.name().into(),
                    words: r.words.clone(),
                    remedy: (&r.remedy).into(),
                })
                .collect(),
        }
    }
}

impl VerdictRecord {
    /// The verdict on both effects, and every reason with its remedy, in the words of a face. The terminal, the report,
    /// the explorer, the notebook's card and Python's warnings show these lines.
    pub fn lines(&self, face: &dyn Face) -> ([String; 2], Vec<String>) {
        let said = [&self.cure_effect, &self.time_effect].map(SupportRecord::spelled);
        (said, self.reasons.iter().map(|r| r.spelled(face)).collect())
    }

    /// The same with the arms by their names.
    pub(crate) fn named(mut self, names: &Names) -> VerdictRecord {
        self.reasons.iter_mut().for_each(|r| r.words = names.spoken(&r.words));
        self
    }

    /// Whether an effect is called not reliable, or has reservations.
    pub fn is_doubtful(&self) -> bool {
        let doubtful = [Support::NotReliable, Support::Reserved].map(Support::name);
        [&self.cure_effect, &self.time_effect].iter().any(|s| doubtful.contains(&s.support.as_str()))
    }
}
