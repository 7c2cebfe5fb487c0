//! Who was compared, how single effects are spread, and whether the data support the answer: as records.

use crate::record::ByArm;
use dvim::internal::audit::baseline::BaselineRow;
use dvim::internal::audit::individual::{Individual, Quadrants, Spread};
use dvim::internal::audit::verdict::Verdict;
use dvim::internal::cohort::Arm;
use dvim::internal::estimand::Estimand;
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
    /// Whether it makes the number unreliable.
    pub serious: bool,
    /// For a person.
    pub words: String,
}

/// Whether the data support one effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SupportRecord {
    /// `supported`, `reserved`, `not_settled`, `not_reliable`, `no_interval` or `undefined`.
    pub support: String,
    /// For a person.
    pub words: String,
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
            let found = v.support[side as usize];
            SupportRecord { support: found.name().into(), words: found.words(side) }
        };
        VerdictRecord {
            cure_effect: support(Estimand::Cure),
            time_effect: support(Estimand::Time),
            reasons: v
                .reasons
                .iter()
                .map(|r| ReasonRecord {
                    code: r.code.into(),
                    cure_effect: r.sides[0],
                    time_effect: r.sides[1],
                    serious: r.serious,
                    words: r.words.clone(),
                })
                .collect(),
        }
    }
}
