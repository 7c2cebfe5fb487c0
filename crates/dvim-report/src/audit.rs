//! The audit of a run as a record and as words.

use crate::names::Names;
use crate::record::AverageRecord;
use crate::tables::{Row, header};
use crate::text::{Grid, clip, decimals_between, decimals_of, fixed, grouped, percent, short, signed, signed_fixed};
use dvim::internal::audit::Audit;
use dvim::internal::audit::average::By;
use dvim::internal::audit::balance::{Agreement, Balance};
use dvim::internal::audit::follow_up::FollowUp;
use dvim::internal::audit::heterogeneity::{Tested, Varies};
use dvim::internal::audit::interaction::Interaction;
use dvim::internal::audit::sensitivity::Choice;
use dvim::internal::audit::standardised::{Band, Standardised};
use dvim::internal::cohort::{Arm, Cohort};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::io;

/// Schema of `audit --json`.
pub const AUDIT_SCHEMA: &str = "dvim.audit/1";

/// The follow-up of an arm, or of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FollowUpRecord {
    /// `all`, `treated` or `control`.
    pub population: String,
    /// Units.
    pub n_units: usize,
    /// Events before H.
    pub n_events: usize,
    /// At risk at H.
    pub n_at_risk: usize,
    /// Height of the plateau, Ŝ(H).
    pub plateau_height: f64,
    /// From the last event before H to the end of follow-up, H at most.
    pub plateau_length: f64,
    /// Last event before H.
    pub last_event: Option<f64>,
    /// Last recorded time.
    pub last_time: f64,
    /// Median follow-up by the reverse Kaplan–Meier curve; `null` where it is not reached.
    #[serde(default)]
    pub median_follow_up: Option<f64>,
    /// Events recorded at H or later.
    pub n_events_after: usize,
    /// Events in the last quarter before H.
    pub n_window_events: usize,
    /// Those expected if one in twenty of the uncured were still to come.
    pub n_window_expected: f64,
    /// Small: practically sufficient (after Yuen and Musta).
    pub p_practical: f64,
    /// Maller and Zhou's N.
    pub maller_zhou_n: Option<usize>,
    /// Maller and Zhou's q.
    pub maller_zhou_q: Option<f64>,
    /// Maller and Zhou's α; small: sufficient by their rule.
    pub maller_zhou_alpha: Option<f64>,
    /// Events expected after H if the tail goes on as it ends, as a share of all; `null` where the tail does not
    /// flatten.
    pub extrapolated_further: Option<f64>,
    /// Small: not sufficient (after Xie and others).
    pub p_extrapolated: Option<f64>,
    /// `sufficient`, `still_falling`, `few_at_horizon` or `not_reached`.
    pub verdict: String,
    /// The verdict in words, with what it rests on.
    pub words: String,
}

impl From<&FollowUp> for FollowUpRecord {
    fn from(f: &FollowUp) -> FollowUpRecord {
        FollowUpRecord {
            population: f.arm.map_or("all", Arm::name).into(),
            n_units: f.n_units,
            n_events: f.n_events,
            n_at_risk: f.n_at_risk,
            plateau_height: f.survival,
            plateau_length: f.plateau,
            last_event: f.last_event,
            last_time: f.last_time,
            median_follow_up: f.median,
            n_events_after: f.n_events_after,
            n_window_events: f.n_window_events,
            n_window_expected: f.n_window_expected,
            p_practical: f.p_practical,
            maller_zhou_n: f.maller_zhou.map(|m| m.n_events),
            maller_zhou_q: f.maller_zhou.map(|m| m.q),
            maller_zhou_alpha: f.maller_zhou.map(|m| m.alpha),
            extrapolated_further: f.extrapolation.map(|e| e.further),
            p_extrapolated: f.extrapolation.map(|e| e.p),
            verdict: f.verdict.name().into(),
            words: f.words(),
        }
    }
}

/// Agreement of a covariate between the arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgreementRecord {
    /// Standardised difference, treated less control.
    pub difference: f64,
    /// Variance ratio, treated over control.
    pub variance_ratio: Option<f64>,
    /// Kolmogorov–Smirnov distance.
    pub ks: f64,
}

impl From<Agreement> for AgreementRecord {
    fn from(a: Agreement) -> AgreementRecord {
        AgreementRecord { difference: a.difference, variance_ratio: a.variance_ratio, ks: a.ks }
    }
}

/// One covariate's balance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CovariateRecord {
    /// Its name.
    pub covariate: String,
    /// Before matching.
    pub before: AgreementRecord,
    /// In the groups matched for cure.
    pub cure: AgreementRecord,
    /// In the groups matched for time.
    pub time: AgreementRecord,
    /// Weighted as the averages weigh patients, under the adjusted estimator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average: Option<AgreementRecord>,
}

/// How a pool is used under a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsesRecord {
    /// `treated` or `control`.
    pub arm: String,
    /// `cure` or `time`.
    pub metric: String,
    /// Units of the pool.
    pub n_units: usize,
    /// Effective sample size.
    pub effective_size: f64,
    /// Units in no group.
    pub n_unused: usize,
    /// Most groups that one unit is in, those in which it shares a place by its share.
    #[serde(serialize_with = "whole_or_not")]
    pub most_uses: f64,
    /// 50, 90 and 99 % quantiles of the group diameters.
    pub diameters: [f64; 3],
}

/// Whole numbers as they always were, and others as they are.
fn whole_or_not<S: serde::Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 { to.serialize_u64(*value as u64) } else { to.serialize_f64(*value) }
}

/// Balance and overlap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BalanceRecord {
    /// Each covariate.
    pub covariates: Vec<CovariateRecord>,
    /// Each pool under each metric.
    pub uses: Vec<UsesRecord>,
    /// 50, 90 and 99 % quantiles of the distance to the nearest unit of the other arm, cure metric.
    pub nearest_other_cure: [f64; 3],
    /// The same, time metric.
    pub nearest_other_time: [f64; 3],
    /// Distance from which a unit has no comparable patient: cure metric, time metric.
    pub limit: [Option<f64>; 2],
    /// Number of units without a comparable patient in the other arm.
    pub n_without_comparable: usize,
    /// Their ids; the first hundred.
    pub without_comparable: Vec<String>,
    /// 1, 25, 50, 75, 99 % quantiles of the propensity score of the treated and of the control.
    pub propensity: Option<[[f64; 5]; 2]>,
    /// Share of units with a propensity below 0.05 or above 0.95.
    pub propensity_extreme_share: Option<f64>,
    /// Share of the treated and of the control outside the other arm's range of the score.
    pub propensity_outside_share: Option<[f64; 2]>,
}

fn turned<T: Copy>(of: [T; 2]) -> [T; 2] {
    [of[1], of[0]]
}

impl BalanceRecord {
    fn of(cohort: &Cohort, b: &Balance) -> BalanceRecord {
        let uses = b.uses.iter().zip(&b.diameters).map(|(u, d)| UsesRecord {
            arm: u.arm.name().into(),
            metric: u.side.name().into(),
            n_units: u.counts.len(),
            effective_size: u.effective_size,
            n_unused: u.n_unused,
            most_uses: u.most,
            diameters: *d,
        });
        let covariates = b.covariates.iter().map(|c| CovariateRecord {
            covariate: c.covariate.clone(),
            before: c.before.into(),
            cure: c.cure.into(),
            time: c.time.into(),
            average: c.average.map(AgreementRecord::from),
        });
        BalanceRecord {
            covariates: covariates.collect(),
            uses: uses.collect(),
            nearest_other_cure: b.nearest_other[0],
            nearest_other_time: b.nearest_other[1],
            limit: b.limit,
            n_without_comparable: b.alone.len(),
            without_comparable: b
                .alone
                .iter()
                .take(MOST_NAMED)
                .map(|(i, _)| cohort.ids().text(*i as usize).into_owned())
                .collect(),
            propensity: b.overlap.as_ref().map(|o| turned(o.quantiles)),
            propensity_extreme_share: b.overlap.as_ref().map(|o| o.extreme_share),
            propensity_outside_share: b.overlap.as_ref().map(|o| turned(o.outside_share)),
        }
    }
}

/// Effects at another horizon: estimate, low, high.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HorizonRecord {
    /// H′.
    pub horizon: f64,
    /// Mean cure effect with its interval.
    pub cure_effect: Option<[f64; 3]>,
    /// Mean time effect with its interval.
    pub time_effect: Option<[f64; 3]>,
    /// Units that both rest on: all, or every m-th by id of a large cohort.
    #[serde(default)]
    pub n_units: usize,
    /// Units whose time effect is undefined at this horizon.
    pub n_undefined: usize,
}

/// A choice of the analyst and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChoiceRecord {
    /// K; `null` where the adjusted estimator chose one for each split.
    pub group_size: Option<usize>,
    /// Seed.
    pub seed: u64,
    /// Mean cure effect.
    pub cure_effect: Option<f64>,
    /// Mean time effect.
    pub time_effect: Option<f64>,
    /// Spread of the cure effects.
    pub cure_sd: Option<f64>,
    /// Spread of the time effects.
    pub time_sd: Option<f64>,
    /// Units that it rests on: all, or every m-th by id of a large cohort.
    #[serde(default)]
    pub n_units: usize,
    /// Units whose time effect is undefined.
    pub n_undefined: usize,
}

impl From<&Choice> for ChoiceRecord {
    fn from(c: &Choice) -> ChoiceRecord {
        ChoiceRecord {
            group_size: c.group_size,
            seed: c.seed,
            cure_effect: c.cure,
            time_effect: c.time,
            cure_sd: c.cure_sd,
            time_sd: c.time_sd,
            n_units: c.n_units,
            n_undefined: c.n_undefined,
        }
    }
}

/// Sensitivity to what was not seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SensitivityRecord {
    /// E-value of the average cure ratio.
    pub e_value: Option<f64>,
    /// E-value of the nearer end of its interval.
    pub e_value_interval: Option<f64>,
    /// (Γ, least, most) of the average cure effect under a confounder of strength Γ.
    pub confounding: Vec<[f64; 3]>,
    /// Average cure effect from the worst to the best case of the censored: least, all events, estimated, all cured,
    /// most.
    pub censoring: Option<[f64; 5]>,
    /// Mean share of a group censored before H: treated, control.
    pub censored_share: Option<[f64; 2]>,
    /// Bounds of the time effect among the always-uncured, under monotonicity.
    pub always_uncured: Option<[f64; 2]>,
    /// Their share.
    pub always_uncured_share: Option<f64>,
    /// The difference of mean event times of the averaged curves, not restricted to them.
    pub unrestricted: Option<f64>,
}

/// A number with its test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestedRecord {
    /// The estimate.
    pub estimate: f64,
    /// Its standard error.
    pub se: f64,
    /// Two-sided p of zero; `null` where it would not have its size.
    pub p: Option<f64>,
}

impl From<Tested> for TestedRecord {
    fn from(t: Tested) -> TestedRecord {
        TestedRecord { estimate: t.estimate, se: t.se, p: t.p }
    }
}

/// A fifth of the patients by predicted effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FifthRecord {
    /// Units.
    pub n_units: usize,
    /// Mean prediction of the models.
    pub predicted: f64,
    /// Mean of the matched estimates.
    pub estimate: f64,
    /// Its interval.
    pub low: f64,
    /// Its interval.
    pub high: f64,
}

/// Heterogeneity of one effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariesRecord {
    /// `cure_effect` or `time_effect`.
    pub estimand: String,
    /// Slope of the matched estimates on the models' predictions.
    pub slope: TestedRecord,
    /// The fifths.
    pub fifths: Vec<FifthRecord>,
    /// Area under the ranking curve.
    pub autoc: TestedRecord,
    /// The ranking curve: share, benefit above the mean.
    pub ranking: Vec<(f64, f64)>,
    /// Regression of the scores on the covariates; `null` under the paper's estimator.
    #[serde(default)]
    pub projection: Option<ProjectionRecord>,
    /// The line, bend or product of covariates along which the scores vary most; `null` under the paper's estimator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shapes: Option<ShapesRecord>,
    /// The p of the test of heterogeneity: that of `autoc`, or twice the smaller of those of `projection` and `shapes`.
    #[serde(default)]
    pub p: Option<f64>,
}

/// The shape along which effects vary most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShapesRecord {
    /// In words.
    pub largest: String,
    /// Its t statistic.
    pub statistic: f64,
    /// Shapes that were looked at.
    pub n_shapes: usize,
    /// The p of the largest of so many.
    pub p: f64,
}

/// A test of all coefficients of a regression together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProjectionRecord {
    /// The F statistic.
    pub statistic: f64,
    /// Its degrees of freedom.
    pub df: [usize; 2],
    /// Its p.
    pub p: f64,
}

impl VariesRecord {
    fn of(estimand: &str, v: &Varies) -> VariesRecord {
        VariesRecord {
            estimand: estimand.into(),
            slope: v.slope.into(),
            fifths: v
                .fifths
                .iter()
                .map(|f| FifthRecord {
                    n_units: f.n_units,
                    predicted: f.predicted,
                    estimate: f.estimate,
                    low: f.low,
                    high: f.high,
                })
                .collect(),
            autoc: v.autoc.into(),
            ranking: v.ranking.clone(),
            projection: v.projection.map(|t| ProjectionRecord {
                statistic: t.statistic,
                df: [t.covariates, t.free],
                p: t.p,
            }),
            shapes: v.shapes.as_ref().map(|s| ShapesRecord {
                largest: s.largest.clone(),
                statistic: s.statistic,
                n_shapes: s.n_shapes,
                p: s.p,
            }),
            p: v.p(),
        }
    }
}

/// A value over time with its limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BandRecord {
    /// The estimate at each time.
    pub estimate: Vec<f64>,
    /// Its standard error.
    pub se: Vec<f64>,
    /// Limits that hold each at its own time.
    pub low: Vec<f64>,
    /// Limits that hold each at its own time.
    pub high: Vec<f64>,
    /// Limits that hold the whole curve.
    pub band_low: Vec<f64>,
    /// Limits that hold the whole curve.
    pub band_high: Vec<f64>,
}

impl From<&Band> for BandRecord {
    fn from(b: &Band) -> BandRecord {
        let Band { estimate, se, low, high, band_low, band_high } = b.clone();
        BandRecord { estimate, se, low, high, band_low, band_high }
    }
}

/// The standardised survival curves of one population.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvesRecord {
    /// `all`, `treated`, `control` or a subgroup.
    pub population: String,
    /// Its patients.
    pub n_units: usize,
    /// The times, from 0 to H; curves are linear in between.
    pub times: Vec<f64>,
    /// Survival had all been treated.
    pub treated: BandRecord,
    /// Survival had all been controls.
    pub control: BandRecord,
    /// Their difference.
    pub difference: BandRecord,
}

impl From<&Standardised> for CurvesRecord {
    fn from(s: &Standardised) -> CurvesRecord {
        CurvesRecord {
            population: s.population.clone(),
            n_units: s.n_units,
            times: s.times.clone(),
            treated: (&s.arms.treated).into(),
            control: (&s.arms.control).into(),
            difference: (&s.difference).into(),
        }
    }
}

/// Runs from before there was a choice were audited.
fn asked() -> bool {
    true
}

/// The audit of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// [`AUDIT_SCHEMA`].
    pub schema: String,
    /// Whether it was asked for; if not (`fit --no-audit`), only averages and follow-up are there.
    #[serde(default = "asked")]
    pub asked: bool,
    /// Follow-up of all, the treated, the control.
    pub follow_up: Vec<FollowUpRecord>,
    /// Covariates that averages were asked for by.
    #[serde(default)]
    pub by: Vec<String>,
    /// What is not there, and why.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// Balance and overlap; `null` under case weights.
    pub balance: Option<BalanceRecord>,
    /// Standardised survival curves of the arms, for each population.
    #[serde(default)]
    pub curves: Vec<CurvesRecord>,
    /// Effects over the horizon.
    pub horizons: Vec<HorizonRecord>,
    /// Other group sizes, on the same patients.
    pub group_sizes: Vec<ChoiceRecord>,
    /// Other seeds; empty unless asked for.
    pub seeds: Vec<ChoiceRecord>,
    /// Sensitivity.
    pub sensitivity: SensitivityRecord,
    /// Heterogeneity.
    pub heterogeneity: Vec<VariesRecord>,
    /// Tests of whether average effects differ between subgroups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interactions: Vec<InteractionRecord>,
}

impl AuditRecord {
    /// The same with the arms by their names.
    pub fn named(mut self, names: &Names) -> AuditRecord {
        self.follow_up.iter_mut().for_each(|f| f.words = names.spoken(&f.words));
        self
    }
}

/// The test of whether an average effect differs between the subgroups of a covariate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InteractionRecord {
    /// The covariate, as it was asked for.
    pub by: String,
    /// `cure_effect` or `time_effect`.
    pub estimand: String,
    /// Cochran's Q.
    pub statistic: f64,
    /// Its degrees of freedom.
    pub df: usize,
    /// The chance of a Q this large where the effect is the same in all subgroups.
    pub p: f64,
}

impl From<&Interaction> for InteractionRecord {
    fn from(i: &Interaction) -> InteractionRecord {
        let Interaction { by, estimand, statistic, df, p } = i.clone();
        InteractionRecord { by, estimand: estimand.into(), statistic, df, p }
    }
}

/// Ids of lonely units that a record lists.
const MOST_NAMED: usize = 100;

impl AuditRecord {
    /// The record of an audit.
    pub fn of(cohort: &Cohort, audit: &Audit) -> AuditRecord {
        let h = &audit.heterogeneity;
        let varies = [("cure_effect", &h.cure), ("time_effect", &h.time)];
        AuditRecord {
            schema: AUDIT_SCHEMA.into(),
            asked: audit.asked,
            follow_up: audit.follow_up.iter().map(FollowUpRecord::from).collect(),
            by: audit.by.iter().map(By::to_string).collect(),
            left_out: audit.left_out.iter().map(|s| s.to_string()).collect(),
            balance: audit.balance.as_ref().map(|b| BalanceRecord::of(cohort, b)),
            curves: audit.curves.iter().map(CurvesRecord::from).collect(),
            horizons: audit
                .horizons
                .iter()
                .map(|h| HorizonRecord {
                    horizon: h.horizon,
                    cure_effect: h.cure,
                    time_effect: h.time,
                    n_units: h.n_units,
                    n_undefined: h.n_undefined,
                })
                .collect(),
            group_sizes: audit.group_sizes.iter().map(ChoiceRecord::from).collect(),
            seeds: audit.seeds.iter().map(ChoiceRecord::from).collect(),
            sensitivity: SensitivityRecord {
                e_value: audit.confounding.as_ref().map(|c| c.e_value),
                e_value_interval: audit.confounding.as_ref().map(|c| c.e_value_interval),
                confounding: audit
                    .confounding
                    .iter()
                    .flat_map(|c| c.bounds.iter().map(|&(g, low, high)| [g, low, high]))
                    .collect(),
                censoring: audit.censoring.map(|c| [c.least, c.all_events, c.estimated, c.all_cured, c.most]),
                censored_share: audit.censoring.map(|c| turned(c.censored_share)),
                always_uncured: audit.always_uncured.map(|a| [a.low, a.high]),
                always_uncured_share: audit.always_uncured.map(|a| a.share),
                unrestricted: audit.always_uncured.map(|a| a.unrestricted),
            },
            heterogeneity: varies
                .into_iter()
                .filter_map(|(name, v)| v.as_ref().map(|v| VariesRecord::of(name, v)))
                .collect(),
            interactions: audit.interactions.iter().map(InteractionRecord::from).collect(),
        }
    }
}

/// How often each unit of the pools is used: `id,treatment,cure_uses,time_uses`. The weights that balance rests on.
pub fn write_uses(out: &mut impl io::Write, cohort: &Cohort, balance: &Balance) -> io::Result<()> {
    header(&["id", "treatment", "cure_uses", "time_uses"]).write_to(out)?;
    let mut row = Row::default();
    for pair in balance.uses.chunks(2) {
        for (m, &i) in pair[0].units.iter().enumerate() {
            let i = i as usize;
            row.text(&cohort.ids().text(i)).text(cohort.label(cohort.arm(i)));
            row.number(pair[0].counts[m]).number(pair[1].counts[m]).end();
        }
        row.write_to(out)?;
    }
    Ok(())
}

/// How often a patient is used: a whole number, or about.
pub fn uses(value: f64) -> String {
    if value.fract() == 0.0 { grouped(value as usize) } else { short(value) }
}

/// An average with its interval: "+5.1 (2.0 to 8.1)".
pub fn with_interval(a: &AverageRecord, scale: f64) -> String {
    let is_difference = ["effect", "corrected", "from_cure", "from_time"].iter().any(|end| a.estimand.ends_with(end));
    let show = |v: f64, d: usize| if is_difference { signed_fixed(scale * v, d) } else { fixed(scale * v, d) };
    match (a.estimate, a.low, a.high) {
        (Some(v), Some(low), Some(high)) => {
            let d = decimals_between(scale * low, scale * high);
            format!("{} ({} to {})", show(v, d), show(low, d), show(high, d))
        }
        (Some(v), Some(low), None) if a.estimand.starts_with("median") => {
            let d = decimals_of(scale * (v - low).abs());
            format!("{} ({} to not reached)", show(v, d), show(low, d))
        }
        (None, ..) if a.estimand.starts_with("median") => "not reached".into(),
        (Some(v), ..) => format!("{} (no interval)", show(v, decimals_of(scale * v))),
        _ => "undefined".into(),
    }
}

/// Estimands in the order and words in which they are shown, with the factor that they are shown with.
pub(crate) const SHOWN: [(&str, &str, f64); 18] = [
    ("cure_effect", "whether: event-free at H, difference in points", 100.0),
    ("cure_effect_corrected", "  less expected matching bias", 100.0),
    ("cure_treated", "  event-free at H if treated, %", 100.0),
    ("cure_control", "  event-free at H if not, %", 100.0),
    ("cure_ratio", "  ratio of these shares", 1.0),
    ("number_needed_to_treat", "  number needed to treat", 1.0),
    ("time_effect", "when: time to event, difference", 1.0),
    ("time_effect_corrected", "  less expected matching bias", 1.0),
    ("mean_event_time_treated", "  mean time to event if treated", 1.0),
    ("mean_event_time_control", "  mean time to event if not", 1.0),
    ("marginal_time_effect", "  difference of the arms' own means", 1.0),
    ("rmst_effect", "event-free time gained up to H", 1.0),
    ("rmst_from_cure", "  because fewer have the event", 1.0),
    ("rmst_from_time", "  because it comes later", 1.0),
    ("rmst_treated", "event-free time up to H if treated", 1.0),
    ("rmst_control", "event-free time up to H if not", 1.0),
    ("median_treated", "median event-free time if treated", 1.0),
    ("median_control", "median event-free time if not", 1.0),
];

/// What `audit` prints for a person.
pub fn words(averages: &[AverageRecord], audit: &AuditRecord, flags: &[(String, usize)], n: usize) -> String {
    let mut out = String::from(if averages.iter().any(|a| a.se.is_some()) {
        "Average effects, with intervals by unit\n"
    } else {
        "Average effects\n"
    });
    let mut populations: Vec<&str> = Vec::new();
    averages.iter().for_each(|a| {
        if !populations.contains(&a.population.as_str()) {
            populations.push(&a.population);
        }
    });
    let cell = |estimand: &str, population: &str, scale: f64| {
        let found = averages.iter().find(|a| a.estimand == estimand && a.population == population);
        found.map_or(String::new(), |a| with_interval(a, scale))
    };
    let mut grid = Grid::new(1, &["", "all", "treated", "control"]);
    for (estimand, name, scale) in SHOWN.into_iter().filter(|s| averages.iter().any(|a| a.estimand == s.0)) {
        grid.row([name.to_string()].into_iter().chain(["all", "treated", "control"].map(|p| cell(estimand, p, scale))));
    }
    out.push_str(&grid.render());
    for why in &audit.left_out {
        let _ = writeln!(out, "  Left out: {why}.");
    }
    if averages.iter().any(|a| a.bias.is_some()) {
        out.push_str(
            "  The bias is what the cure models expect of members that differ from the unit they stand for.\n",
        );
    }
    if populations.len() > 3 {
        out.push_str("\nBy subgroup\n");
        let mut grid = Grid::new(1, &["", "patients", "whether, points", "when"]);
        for p in &populations[3..] {
            let n = averages.iter().find(|a| a.population == *p).map_or(0, |a| a.n_units);
            grid.row([clip(p, 40), grouped(n), cell("cure_effect", p, 100.0), cell("time_effect", p, 1.0)]);
        }
        out.push_str(&grid.render());
        for i in &audit.interactions {
            let which = if i.estimand == "cure_effect" { "whether" } else { "when" };
            let p = crate::figures::p_value(i.p);
            let _ = writeln!(out, "  interaction with {}, {which}: p {p}", i.by);
        }
    }

    out.push_str("\nFollow-up\n");
    for f in &audit.follow_up {
        let _ = writeln!(out, "  {}", f.words);
    }
    let mut grid = Grid::new(1, &["", "all", "treated", "control"]);
    let mut line = |name: &str, f: &dyn Fn(&FollowUpRecord) -> String| {
        grid.row([name.to_string()].into_iter().chain(audit.follow_up.iter().map(f)));
    };
    let maybe = |v: Option<f64>| v.map_or("undefined".to_string(), short);
    line("at risk at the horizon", &|f| grouped(f.n_at_risk));
    line("event-free at the horizon", &|f| percent(f.plateau_height));
    line("from the last event to the horizon", &|f| short(f.plateau_length));
    line("last event before the horizon", &|f| maybe(f.last_event));
    line("events recorded after it", &|f| grouped(f.n_events_after));
    line("practically sufficient? p (small: yes)", &|f| short(f.p_practical));
    line("Maller–Zhou alpha (small: yes; liberal)", &|f| maybe(f.maller_zhou_alpha));
    line("tail goes on? p (small: yes)", &|f| maybe(f.p_extrapolated));
    line("further events if it does, %", &|f| maybe(f.extrapolated_further.map(|v| 100.0 * v)));
    out.push_str(&grid.render());
    for (name, count) in flags.iter().filter(|(_, count)| *count > 0) {
        let _ = writeln!(out, "  {} of {} patients: {name}", grouped(*count), grouped(n));
    }

    if let Some(b) = &audit.balance {
        out.push_str(&balance_words(b));
    }
    if !audit.heterogeneity.is_empty() {
        out.push_str(&heterogeneity_words(&audit.heterogeneity));
    }
    out.push_str(&sensitivity_words(audit));
    out
}

fn balance_words(b: &BalanceRecord) -> String {
    let mut out = String::new();
    out.push_str("\nBalance: standardised differences between the arms, the largest before matching first\n");
    let mut order: Vec<&CovariateRecord> = b.covariates.iter().collect();
    order.sort_by(|x, y| y.before.difference.abs().total_cmp(&x.before.difference.abs()));
    let weighted = b.covariates.iter().any(|c| c.average.is_some());
    let heads: &[&str] = if weighted {
        &["", "before", "in the averages", "variance ratio", "KS before", "KS in the averages"]
    } else {
        &["", "before", "for whether", "for when", "variance ratio", "KS before", "KS for whether"]
    };
    let mut grid = Grid::new(1, heads);
    for c in order.iter().take(10) {
        let of = c.average.as_ref().unwrap_or(&c.cure);
        let mut row =
            vec![clip(&c.covariate, 24), format!("{:.3}", c.before.difference), format!("{:.3}", of.difference)];
        if !weighted {
            row.push(format!("{:.3}", c.time.difference));
        }
        row.push(of.variance_ratio.map_or(String::new(), |v| format!("{v:.2}")));
        row.extend([format!("{:.3}", c.before.ks), format!("{:.3}", of.ks)]);
        grid.row(row);
    }
    out.push_str(&grid.render());
    if order.len() > 10 {
        let _ = writeln!(out, "  … and {} more covariates (the record has all of them)", order.len() - 10);
    }
    let mut grid =
        Grid::new(2, &["pool", "metric", "patients", "effective", "never used", "most used", "median diameter"]);
    for u in &b.uses {
        grid.row([
            u.arm.clone(),
            u.metric.clone(),
            grouped(u.n_units),
            short(u.effective_size),
            grouped(u.n_unused),
            uses(u.most_uses),
            short(u.diameters[0]),
        ]);
    }
    out.push_str(&grid.render());
    if let (Some(extreme), Some(outside)) = (b.propensity_extreme_share, b.propensity_outside_share) {
        let _ = writeln!(
            out,
            "  propensity below 0.05 or above 0.95: {}; outside the other arm's range: {} of the treated, {} of the control",
            percent(extreme),
            percent(outside[0]),
            percent(outside[1])
        );
    }
    if b.n_without_comparable == 0 {
        out.push_str("  every patient has a comparable one in the other arm\n");
    } else {
        let some: Vec<&str> = b.without_comparable.iter().take(12).map(String::as_str).collect();
        let more = if b.n_without_comparable > some.len() { ", …" } else { "" };
        let _ = writeln!(
            out,
            "  {} without a comparable patient in the other arm: {}{more}",
            grouped(b.n_without_comparable),
            some.join(", ")
        );
    }

    out
}

fn heterogeneity_words(of: &[VariesRecord]) -> String {
    let mut out = String::new();
    out.push_str("\nDo effects differ between patients? (predicted by models that did not see their outcomes)\n");
    let mut grid = Grid::new(1, &["", "slope", "top fifth", "bottom fifth", "AUTOC", "p of none"]);
    for v in of {
        let scale = if v.estimand == "cure_effect" { 100.0 } else { 1.0 };
        let ends = [v.fifths.last(), v.fifths.first()].map(|f| f.map_or(String::new(), |f| signed(scale * f.estimate)));
        grid.row([
            if v.estimand == "cure_effect" { "whether, points".into() } else { "when".to_string() },
            format!("{:.2} ± {:.2}", v.slope.estimate, v.slope.se),
            ends[0].clone(),
            ends[1].clone(),
            format!("{} ± {}", signed(scale * v.autoc.estimate), short(scale * v.autoc.se)),
            v.p.map_or(String::new(), short),
        ]);
    }
    out.push_str(&grid.render());

    out
}

fn sensitivity_words(audit: &AuditRecord) -> String {
    let mut out = String::new();
    let rows: Vec<&ChoiceRecord> = audit.group_sizes.iter().chain(&audit.seeds).collect();
    if audit.horizons.is_empty() && rows.is_empty() {
        return out;
    }
    out.push_str("\nWhat it would take to overturn it\n");
    let s = &audit.sensitivity;
    if let (Some(e), Some(i)) = (s.e_value, s.e_value_interval) {
        let _ = writeln!(
            out,
            "  unmeasured confounding: risk ratios of {} with treatment and with being event-free would explain the estimate, {} its interval (E-values)",
            short(e),
            short(i)
        );
        for [gamma, low, high] in s.confounding.iter().skip(1) {
            let _ = writeln!(
                out,
                "    a confounder of strength {}: the difference lies between {} and {} points",
                short(*gamma),
                signed(100.0 * low),
                signed(100.0 * high)
            );
        }
    }
    if let Some([least, events, found, cured, most]) = s.censoring {
        let p = |v: f64| signed(100.0 * v);
        let _ = writeln!(
            out,
            "  loss to follow-up that is not by chance: {} if all who were lost had their event, {} if all stayed event-free (as estimated {}); from {} to {} if it differs by arm",
            p(events),
            p(cured),
            p(found),
            p(least),
            p(most)
        );
    }
    if let (Some([low, high]), Some(share), Some(all)) = (s.always_uncured, s.always_uncured_share, s.unrestricted) {
        let _ = writeln!(
            out,
            "  the difference in time compares different people in the two arms ({}); among those who would have the event with either treatment ({}, if treatment changes whether in one direction only) it lies between {} and {}",
            signed(all),
            percent(share),
            signed(low),
            signed(high)
        );
    }
    let mut grid = Grid::new(1, &["group size", "seed", "patients", "whether, points", "when"]);
    for c in &rows {
        let cell = |v: Option<f64>, scale: f64| v.map_or("undefined".into(), |v| signed(scale * v));
        grid.row([
            c.group_size.map_or("chosen".into(), grouped),
            c.seed.to_string(),
            grouped(c.n_units),
            cell(c.cure_effect, 100.0),
            cell(c.time_effect, 1.0),
        ]);
    }
    if !rows.is_empty() {
        out.push_str(&grid.render());
    }
    if audit.horizons.is_empty() {
        return out;
    }
    let n = audit.horizons.iter().map(|h| h.n_units).max().unwrap_or(0);
    let _ = writeln!(out, "\nThe effects had the horizon been another, from {} patients", grouped(n));
    let mut grid = Grid::new(1, &["horizon", "whether, points", "when", "undefined"]);
    for h in audit.horizons.iter().skip(3).step_by(4) {
        let cell = |v: Option<[f64; 3]>, scale: f64| {
            v.map_or("undefined".to_string(), |[v, l, u]| {
                format!("{} ({} to {})", signed(scale * v), signed(scale * l), signed(scale * u))
            })
        };
        grid.row([short(h.horizon), cell(h.cure_effect, 100.0), cell(h.time_effect, 1.0), grouped(h.n_undefined)]);
    }
    out.push_str(&grid.render());
    out
}
