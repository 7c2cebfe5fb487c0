//! Imputed data sets, analysed one by one and pooled by Rubin's rules.
//!
//! With m analyses that gave estimates Qₖ with variances Uₖ [Rubin 1987]: `Q̄ = ΣQₖ/m`, `Ū = ΣUₖ/m`, `B = Σ(Qₖ − Q̄)²/(m
//! − 1)` and `T = Ū + (1 + 1/m)B`. The interval is `Q̄ ± t_ν √T`; with `λ = (1 + 1/m)B/T`, `ν_old = (m − 1)/λ²` and
//! `ν_obs = (ν_com + 1)/(ν_com + 3) · ν_com (1 − λ)` it has `ν = 1/(1/ν_old + 1/ν_obs)` degrees of freedom [Barnard &
//! Rubin 1999]. The fraction of missing information is `(r + 2/(ν + 3))/(r + 1)`, `r = (1 + 1/m)B/Ū`.

use crate::analysis::Analysis;
use crate::audit::Audit;
use crate::cohort::{Arm, Cohort};
use crate::distribution::student_quantile;
use crate::effect::Effect;
use crate::error::{Error, Problem, ProblemKind};
use crate::interval::Interval;
use crate::phrase;
use crate::phrase::Phrase;
use crate::setting::Setting;
use std::collections::HashSet;

/// One number from several imputed data sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooled {
    /// Q̄.
    pub estimate: f64,
    /// √T.
    pub se: Option<f64>,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// ν.
    pub df: Option<f64>,
    /// Fraction of missing information.
    pub missing_information: Option<f64>,
}

/// Pools estimates with standard errors. `complete_df` is ν_com, the degrees of freedom had nothing been missing.
pub fn rubin(values: &[(f64, Option<f64>)], complete_df: f64, confidence: f64) -> Pooled {
    let m = values.len() as f64;
    let estimate = values.iter().map(|v| v.0).sum::<f64>() / m;
    let Some(within) = values.iter().map(|v| v.1.map(|s| s * s)).sum::<Option<f64>>().map(|sum| sum / m) else {
        return Pooled { estimate, se: None, low: None, high: None, df: None, missing_information: None };
    };
    let between = values.iter().map(|v| (v.0 - estimate) * (v.0 - estimate)).sum::<f64>() / (m - 1.0);
    let extra = (1.0 + 1.0 / m) * between;
    let total = within + extra;
    let share = if total > 0.0 { extra / total } else { 0.0 };
    let complete = complete_df.max(1.0);
    let observed = (complete + 1.0) / (complete + 3.0) * complete * (1.0 - share);
    let df =
        if share > 0.0 { 1.0 / (share * share / (m - 1.0) + 1.0 / observed.max(f64::MIN_POSITIVE)) } else { observed };
    // r/(r + 1) is λ, so that nothing is divided by a variance of zero.
    let missing_information = share + (1.0 - share) * 2.0 / (df + 3.0);
    let reach = student_quantile(0.5 + 0.5 * confidence, df) * total.sqrt();
    Pooled {
        estimate,
        se: Some(total.sqrt()),
        low: Some(estimate - reach),
        high: Some(estimate + reach),
        df: Some(df),
        missing_information: Some(if extra > 0.0 { missing_information } else { 0.0 }),
    }
}

impl Pooled {
    /// The same, its ends kept to bounds.
    fn within(mut self, low: f64, high: f64) -> Pooled {
        self.low = self.low.map(|v| v.max(low));
        self.high = self.high.map(|v| v.min(high));
        self
    }

    /// From the log scale.
    fn exp(self) -> Pooled {
        let estimate = libm::exp(self.estimate);
        let end = |v: Option<f64>| v.map(libm::exp);
        Pooled { estimate, se: self.se.map(|s| s * estimate), low: end(self.low), high: end(self.high), ..self }
    }
}

/// The values of a unit, in the order of [`PooledUnit::values`].
pub const VALUES: [&str; 6] = [
    "cure_effect",
    "time_effect",
    "cure_treated",
    "cure_control",
    "mean_event_time_treated",
    "mean_event_time_control",
];

/// One unit of several imputed data sets.
#[derive(Clone, Debug, PartialEq)]
pub struct PooledUnit {
    /// Its position in the cohort.
    pub unit: u32,
    /// [`VALUES`]; `None` where an imputed data set leaves it undefined.
    pub values: [Option<Pooled>; 6],
    /// Imputed data sets in which it has an estimate.
    pub n_served: usize,
    /// Names of the flags that it has in any of them, with the number of data sets.
    pub flags: Vec<(&'static str, usize)>,
}

/// An average over a population.
#[derive(Clone, Debug, PartialEq)]
pub struct PooledAverage {
    /// As in [`crate::audit::average::AverageEffect`].
    pub estimand: &'static str,
    /// The population.
    pub population: String,
    /// `None` where an imputed data set leaves it undefined.
    pub value: Option<Pooled>,
    /// Fewest units that it rests on in one data set.
    pub n_units: usize,
}

/// All of it.
#[derive(Clone, Debug, PartialEq)]
pub struct PooledRun {
    /// m.
    pub n_imputations: usize,
    /// Units that are estimated in some data set, ascending.
    pub units: Vec<PooledUnit>,
    /// Average effects.
    pub averages: Vec<PooledAverage>,
}

/// One analysed data set.
#[derive(Clone, Copy)]
pub struct Analysed<'a> {
    /// What it is called: a value of the imputation column, or a file.
    pub name: &'a str,
    /// Its cohort.
    pub cohort: &'a Cohort,
    /// Its analysis.
    pub analysis: &'a Analysis,
    /// Its audit, for the averages.
    pub audit: &'a Audit,
}

/// Refuses imputed data sets that are not of the same patients in the same arms, before anything is computed from them.
pub fn same_patients(sets: &[(&str, &Cohort)]) -> Result<(), Error> {
    let Some((&(first, cohort), others)) = sets.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Err(refuse(
            format!("there is {} imputed data set", sets.len()),
            "the spread between imputed data sets shows what the gaps cost, so there are at least two",
            "impute the table five times or more",
        ));
    };
    for &(name, other) in others {
        if cohort.ids() != other.ids() {
            let ids = |c: &Cohort| (0..c.n_units()).map(|i| c.ids().text(i).into_owned()).collect::<Vec<_>>();
            same_ids((first, &ids(cohort)), (name, &ids(other)))?;
        }
        if let Some(i) = (0..cohort.n_units()).find(|&i| other.arm(i) != cohort.arm(i)) {
            let id = cohort.ids().text(i);
            return Err(refuse(
                format!("patient `{id}` is in one arm in `{first}` and in the other in `{name}`"),
                "imputed data sets differ in covariates; the split goes by id and arm",
                "leave out patients whose arm is not known",
            ));
        }
    }
    Ok(())
}

/// Refuses two imputed data sets that do not hold the same ids; says which are in one alone.
pub fn same_ids(first: (&str, &[String]), second: (&str, &[String])) -> Result<(), Error> {
    let only = |a: &[String], b: &[String]| {
        let there: HashSet<&String> = b.iter().collect();
        a.iter().filter(|id| !there.contains(id)).cloned().collect::<Vec<_>>()
    };
    let alone = [(first.0, only(first.1, second.1)), (second.0, only(second.1, first.1))];
    let words: Vec<String> = alone
        .iter()
        .filter(|(_, ids)| !ids.is_empty())
        .map(|(name, ids)| {
            let shown: Vec<String> = ids.iter().take(IDS_SHOWN).map(|id| format!("`{id}`")).collect();
            let more = if ids.len() > IDS_SHOWN { ", …" } else { "" };
            let are = if ids.len() == 1 { "is" } else { "are" };
            format!("{} {are} in `{name}` alone ({}{more})", ids.len(), shown.join(", "))
        })
        .collect();
    if words.is_empty() {
        return Ok(());
    }
    Err(refuse(
        format!(
            "imputed data sets `{}` and `{}` do not have the same patients: {}",
            first.0,
            second.0,
            words.join(", ")
        ),
        "each imputed data set holds every patient once, under one id",
        phrase![
            "name the column that numbers the imputed data sets with ",
            Setting::Imputation,
            " and the ids with ",
            Setting::Id,
            "; a rule that leaves out rows must not depend on imputed values"
        ],
    ))
}

/// How many ids a refusal names.
const IDS_SHOWN: usize = 5;

/// Pools imputed data sets of the same patients.
pub fn pool_imputations(sets: &[Analysed<'_>]) -> Result<PooledRun, Error> {
    same_patients(&sets.iter().map(|s| (s.name, s.cohort)).collect::<Vec<_>>())?;
    let first = &sets[0];
    let n = first.cohort.n_units();
    let options = &first.analysis.fit.options;
    let (horizon, confidence) = (first.cohort.horizon(), options.confidence);
    let m = sets.len();
    let place: Vec<Vec<Option<usize>>> = sets
        .iter()
        .map(|s| {
            let mut at = vec![None; n];
            s.analysis.units.iter().enumerate().for_each(|(q, &u)| at[u as usize] = Some(q));
            at
        })
        .collect();
    let group_df = (2 * options.group_size) as f64 - 2.0;
    let mut units = Vec::new();
    for unit in 0..n {
        let there: Vec<&Effect> =
            sets.iter().zip(&place).filter_map(|(s, at)| Some(&s.analysis.effects[at[unit]?])).collect();
        let unserved = sets.iter().any(|s| s.analysis.unserved.iter().any(|(u, _)| *u as usize == unit));
        if there.is_empty() && !unserved {
            continue;
        }
        let values = std::array::from_fn(|v| {
            let each: Option<Vec<(f64, Interval)>> = there.iter().map(|e| value(e, v, horizon, confidence)).collect();
            let each = each.filter(|each| each.len() == m)?;
            let (low, high) = if v == 0 || v == 2 || v == 3 { (-1.0, 1.0) } else { (-horizon, horizon) };
            let estimates: Vec<(f64, Option<f64>)> = each.iter().map(|(q, i)| (*q, i.se)).collect();
            let mut pooled = rubin(&estimates, group_df, confidence).within(if v < 2 { low } else { 0.0 }, high);
            if pooled.se.is_none() {
                // A standard error that is undefined somewhere: the widest interval of all.
                pooled.low = each.iter().map(|(_, i)| i.low).reduce(f64::min);
                pooled.high = each.iter().map(|(_, i)| i.high).reduce(f64::max);
            }
            Some(pooled)
        });
        let mut flags: Vec<(&'static str, usize)> = Vec::new();
        for f in crate::effect::Flag::ALL {
            let count = there.iter().filter(|e| e.has(f)).count();
            if count > 0 {
                flags.push((f.name(), count));
            }
        }
        units.push(PooledUnit { unit: unit as u32, values, n_served: there.len(), flags });
    }
    let averages = (0..first.audit.averages.len()).map(|k| pool_average(sets, k, confidence)).collect();
    Ok(PooledRun { n_imputations: m, units, averages: with_needed(averages) })
}

fn refuse(found: String, rule: &'static str, remedy: impl Into<Phrase>) -> Error {
    Error::Refused(vec![Problem::error(ProblemKind::BadImputation, found, rule, remedy)])
}

/// A value of a unit with its interval, in the order of [`VALUES`].
fn value(e: &Effect, v: usize, horizon: f64, confidence: f64) -> Option<(f64, Interval)> {
    let arm = if v.is_multiple_of(2) { Arm::Treated } else { Arm::Control };
    Some(match v {
        0 => (e.cure(), e.cure_interval(confidence)),
        1 => {
            let interval = e.time_interval(horizon, confidence);
            (e.time()?, interval.unwrap_or(Interval { se: None, low: -horizon, high: horizon }))
        }
        2 | 3 => (e.cure_probability(arm), e.cure_probability_interval(arm, confidence)),
        _ => {
            let interval = e.mean_event_time_interval(arm, horizon, confidence);
            (e.mean_event_time(arm)?, interval.unwrap_or(Interval { se: None, low: 0.0, high: horizon }))
        }
    })
}

/// The k-th average of each data set, pooled: a ratio on the log scale.
fn pool_average(sets: &[Analysed<'_>], k: usize, confidence: f64) -> PooledAverage {
    let first = &sets[0].audit.averages[k];
    let find = |s: &Analysed<'_>| {
        let all = &s.audit.averages;
        let same = |a: &&crate::audit::average::AverageEffect| {
            a.estimand == first.estimand && a.population == first.population
        };
        all.iter().find(same).cloned()
    };
    let each: Option<Vec<_>> = sets.iter().map(find).collect();
    let n_units = each.iter().flatten().map(|a| a.n_units).min().unwrap_or(0);
    let horizon = sets[0].cohort.horizon();
    let value = each.and_then(|each| {
        let of: Option<Vec<(f64, Option<f64>)>> = each.iter().map(|a| Some((a.estimate?, a.se))).collect();
        let (of, df) = (of?, n_units as f64 - 2.0);
        Some(match first.estimand {
            "cure_ratio" => {
                let logs: Vec<_> = of.iter().map(|(v, s)| (libm::log(*v), s.map(|s| s / v))).collect();
                rubin(&logs, df, confidence).exp()
            }
            "cure_treated" | "cure_control" => rubin(&of, df, confidence).within(0.0, 1.0),
            "mean_event_time_treated" | "mean_event_time_control" => rubin(&of, df, confidence).within(0.0, horizon),
            _ => rubin(&of, df, confidence),
        })
    });
    PooledAverage { estimand: first.estimand, population: first.population.clone(), value, n_units }
}

/// Numbers needed to treat follow from the pooled effects: their own mean has no meaning.
fn with_needed(mut averages: Vec<PooledAverage>) -> Vec<PooledAverage> {
    let effects: Vec<(String, Option<Pooled>)> =
        averages.iter().filter(|a| a.estimand == "cure_effect").map(|a| (a.population.clone(), a.value)).collect();
    for a in averages.iter_mut().filter(|a| a.estimand == "number_needed_to_treat") {
        let effect = effects.iter().find(|(p, _)| *p == a.population).and_then(|(_, v)| *v);
        a.value = effect.filter(|e| e.estimate != 0.0).map(|e| {
            let ends = e.low.zip(e.high).filter(|(l, h)| l * h > 0.0);
            Pooled {
                estimate: 1.0 / e.estimate,
                se: e.se.map(|s| s / (e.estimate * e.estimate)),
                low: ends.map(|(_, h)| 1.0 / h),
                high: ends.map(|(l, _)| 1.0 / l),
                ..e
            }
        });
    }
    averages
}
