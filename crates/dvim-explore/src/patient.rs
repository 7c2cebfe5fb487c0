//! One patient: both effects, the groups behind them, and what they become at another group size or horizon.

use crate::explorer::{Explorer, Place};
use crate::figures::curves;
use dvim::internal::cohort::{Arm, Cohort};
use dvim::internal::constraint::Unserved;
use dvim::internal::effect::{Corrected, Effect, Flag};
use dvim::internal::estimand::Estimand;
use dvim::internal::inspect::{MatchGroup, UnitGroups};
use dvim::internal::outcome::Outcome;
use dvim::internal::schema::{Covariate, Kind};
use dvim::internal::support::{OFF_SUPPORT, Outside};
use dvim_report::figures::Look;
use dvim_report::record::ByArm;
use dvim_report::tables::{EffectRow, Layout};
use dvim_report::text::{group_patients, made_of, short, signed};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Who is asked about.
pub enum Who<'a> {
    /// A unit of the cohort.
    Unit(usize),
    /// Somebody else, with these numbers, and what of them the cohort has not seen.
    New(&'a [f64], &'a [Outside]),
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// K; `None` for the run's own.
    pub group_size: Option<usize>,
    /// H; `None` for the run's own.
    pub horizon: Option<f64>,
    /// Width of the figures; `None` for no figures.
    pub width: Option<f64>,
    /// Whose members are wanted.
    pub members: Option<(Estimand, Arm)>,
}

/// A flag with its meaning.
#[derive(Debug, Serialize)]
pub struct FlagAnswer {
    code: &'static str,
    meaning: String,
}

/// A covariate's value.
#[derive(Debug, Serialize)]
pub struct ValueAnswer {
    name: String,
    value: String,
    /// What to enter for it, to the last digit; `null` where it was missing.
    exact: Option<String>,
}

/// One group, in numbers.
#[derive(Debug, Serialize)]
pub struct GroupAnswer {
    n_members: usize,
    n_events: usize,
    n_at_risk: usize,
    cure_probability: f64,
    mean_event_time: Option<f64>,
    restricted_mean: f64,
    nearest: Option<f64>,
    diameter: Option<f64>,
}

/// A member of a group.
#[derive(Debug, Serialize)]
pub struct MemberAnswer {
    id: String,
    distance: f64,
    /// What the member counts: 1, or less where those at the last distance share the places that are left.
    counts: f64,
    time: f64,
    event: bool,
    outcome: &'static str,
    values: Vec<String>,
    /// Share of each covariate in the squared distance.
    shares: Vec<f64>,
}

/// The members of one group.
#[derive(Debug, Serialize)]
pub struct MembersAnswer {
    matched_for: &'static str,
    arm: &'static str,
    label: String,
    members: Vec<MemberAnswer>,
}

/// What the correction of the adjusted estimator moved.
#[derive(Debug, Serialize)]
pub struct CorrectionAnswer {
    /// What the model alone says, and where the groups moved it; `null` at an earlier horizon.
    cure_words: Option<String>,
    time_words: Option<String>,
    cure_matched: f64,
    cure_corrected: f64,
    time_matched: Option<f64>,
    time_corrected: Option<f64>,
}

/// All that the page shows of a patient.
#[derive(Debug, Serialize)]
pub struct PatientAnswer {
    /// `null` for a new patient.
    id: Option<String>,
    treatment: Option<String>,
    arm: Option<&'static str>,
    time: Option<f64>,
    event: Option<bool>,
    outcome: Option<&'static str>,
    trained: bool,
    covariates: Vec<ValueAnswer>,
    /// K for cure and for time.
    group_sizes: [usize; 2],
    own_group_sizes: [usize; 2],
    horizon: f64,
    own_horizon: f64,
    /// Whether group size and horizon are the run's own: then the numbers are those of `effects.csv`.
    as_run: bool,
    /// The row of `effects.csv`; values are `null` where they are undefined.
    effect: Map<String, Value>,
    flags: Vec<FlagAnswer>,
    /// Why there is no effect.
    unserved: Option<String>,
    /// What the reader should know of these numbers.
    notes: Vec<String>,
    /// Both effects in a sentence, to be read aloud.
    sentence: String,
    correction: Option<CorrectionAnswer>,
    cure: ByArm<GroupAnswer>,
    time_groups: ByArm<GroupAnswer>,
    figures: Option<[String; 2]>,
    members: Option<MembersAnswer>,
}

/// What was seen of a unit up to a horizon: the words, its time, and whether it had the event.
pub fn outcome(cohort: &Cohort, unit: usize, horizon: f64) -> (&'static str, f64, bool) {
    let Outcome { time, event, competing, .. } = cohort.outcome(unit);
    match () {
        () if time >= horizon => ("event-free", horizon, false),
        () if event => ("event", time, true),
        () if competing => ("other cause", time, false),
        () => ("censored", time, false),
    }
}

/// Answers a question about a patient.
pub fn answer(explorer: &Explorer<'_>, who: &Who<'_>, question: &Question) -> PatientAnswer {
    let (cohort, fit) = (explorer.cohort, &explorer.analysis.fit);
    let (unit, x) = match *who {
        Who::Unit(i) => (Some(i), cohort.covariates(i)),
        Who::New(x, _) => (None, x),
    };
    let outside: &[Outside] = if let Who::New(_, outside) = *who { outside } else { &[] };
    let own_sizes = explorer.own_group_sizes(unit);
    // Under the adjusted estimator the two sizes may differ: only the run's own question keeps them apart.
    let size = question.group_size.filter(|&k| own_sizes != [k, k]);
    let horizon = question.horizon.unwrap_or(cohort.horizon());
    let as_run = size.is_none() && horizon == cohort.horizon();
    let groups = explorer.with_search(|s| s.groups(x, unit.map(|i| i as u32), size));
    let sizes = size.map_or(own_sizes, |k| [k, k]);
    // Under constraints a group of the run's own size may be smaller than K, where the run allows it.
    let needed = if size.is_none() { fit.options.fewest() } else { sizes[0] };
    let at_horizon = horizon == cohort.horizon();
    // Groups are corrected at the run's own horizon; an earlier one is read off the corrected curve.
    let own = match unit {
        Some(i) if size.is_none() => explorer.effect(i).and_then(|e| e.corrected),
        _ => None,
    };
    let again = |n| groups.correct(x, unit.map(|i| i as u32), n, needed, cohort.horizon());
    let own = own.or_else(|| explorer.newcomers().and_then(again));
    let corrected = own.and_then(|c| c.until(&explorer.grid, horizon));
    let unserved = groups.unserved(needed);
    let effect = groups.effect(horizon, corrected).filter(|_| unserved.is_none());
    // What the models alone say is of the run's own horizon.
    let of_model = corrected.is_some() && at_horizon;
    let layout = Layout { corrected: of_model, horizon, splits: false, ..Layout::of(cohort, fit) };
    let id = unit.map(|i| cohort.ids().text(i));
    let row = EffectRow {
        id: id.clone().unwrap_or(Cow::Borrowed("")),
        treatment: unit.map_or("", |i| cohort.label(cohort.arm(i))),
        effect: effect.as_ref(),
        flags: (unserved.iter().flat_map(|u| u.arms().map(|z| Unserved::flag(z).into()).collect::<Vec<_>>()))
            .chain(outside.iter().map(|o| o.flag().into()))
            .collect(),
    };
    let row = row.json(&layout);
    let group = |g: &MatchGroup| {
        let s = g.curve.summary(horizon);
        GroupAnswer {
            n_members: g.size(),
            n_events: s.n_events,
            n_at_risk: s.n_at_risk,
            cure_probability: s.survival,
            mean_event_time: s.mean_event_time(),
            restricted_mean: s.restricted_mean(horizon),
            nearest: g.distance.first().copied(),
            diameter: g.diameter(),
        }
    };
    PatientAnswer {
        treatment: unit.map(|i| cohort.label(cohort.arm(i)).to_string()),
        arm: unit.map(|i| cohort.arm(i).name()),
        time: unit.map(|i| cohort.time(i)),
        event: unit.map(|i| cohort.event(i)),
        outcome: unit.map(|i| outcome(cohort, i, cohort.horizon()).0),
        trained: unit.is_some_and(|i| explorer.place(i) == Place::Trained),
        covariates: (cohort.schema().iter().zip(explorer.values(x)))
            .map(|(c, value)| ValueAnswer { name: c.label(), value, exact: exact(cohort, c, x) })
            .collect(),
        group_sizes: sizes,
        own_group_sizes: own_sizes,
        horizon,
        own_horizon: cohort.horizon(),
        as_run,
        flags: (effect.iter().flat_map(Effect::flags).map(flag))
            .chain(outside.iter().map(|o| FlagAnswer { code: OFF_SUPPORT, meaning: o.words.clone() }))
            .collect(),
        unserved: unserved.as_ref().map(why_unserved),
        notes: notes(explorer, unit, as_run, at_horizon),
        sentence: sentence(&row, horizon, unserved.as_ref()),
        correction: corrected.and_then(|c| correction(&groups, horizon, c, at_horizon)),
        cure: ByArm::map(|z| group(&groups.cure[z])),
        time_groups: ByArm::map(|z| group(&groups.time[z])),
        figures: question.width.zip(effect.as_ref()).map(|(width, effect)| {
            let look = Look { width, names: explorer.names() };
            let draw =
                |pair, side| curves(cohort, pair, side, effect, own.as_ref(), horizon, fit.options.confidence, &look);
            [draw(&groups.cure, Estimand::Cure), draw(&groups.time, Estimand::Time)]
        }),
        members: question.members.map(|(estimand, arm)| members(explorer, &groups, estimand, arm, horizon)),
        effect: row,
        id: id.map(Cow::into_owned),
    }
}

fn exact(cohort: &Cohort, c: &Covariate, x: &[f64]) -> Option<String> {
    let was_missing = |m: &Covariate| m.kind == Kind::Missing && m.name == c.name && x[m.first] == 1.0;
    let known = c.kind != Kind::Missing && !cohort.schema().iter().any(was_missing);
    known.then(|| c.level_of(x).map_or_else(|| x[c.first].to_string(), str::to_string))
}

fn flag(f: Flag) -> FlagAnswer {
    FlagAnswer { code: f.name(), meaning: f.meaning() }
}

fn why_unserved(u: &Unserved) -> String {
    let arms: Vec<String> = u.arms().map(|z| format!("{} patients of the {} arm", u.candidates[z], z.name())).collect();
    format!(
        "Only {} satisfy the constraints of the run, fewer than the group size {}: there is no estimate. A constraint is never relaxed; a smaller group may be possible.",
        arms.join(" and "),
        u.group_size
    )
}

fn notes(explorer: &Explorer<'_>, unit: Option<usize>, as_run: bool, at_horizon: bool) -> Vec<String> {
    let mut out = Vec::new();
    if unit.is_some_and(|i| explorer.place(i) == Place::Trained) {
        out.push(
            "This patient trained the models: there is no row in effects.csv, and no average holds these numbers."
                .into(),
        );
    }
    if !as_run {
        out.push(
            "The metrics are those that the run learned at its own horizon; groups and curves are computed anew."
                .into(),
        );
    }
    let fit = &explorer.analysis.fit;
    if !fit.is_corrected() {
        return out;
    }
    if !at_horizon {
        out.push(
            "Both effects at this horizon are read off the patient's own curves, which are corrected at the run's horizon."
                .into(),
        );
    } else if unit.is_none() {
        out.push(
            "A new patient is estimated by all models of the run together, and corrected as dvim predict does.".into(),
        );
    } else if !as_run && fit.deals.len() > 1 {
        out.push(
            "These are the groups and the models of the first deal; the run's own numbers are means over all.".into(),
        );
    }
    out
}

/// Both effects in a sentence.
fn sentence(row: &Map<String, Value>, horizon: f64, unserved: Option<&Unserved>) -> String {
    if let Some(u) = unserved {
        return why_unserved(u);
    }
    let value = |name: &str| row.get(name).and_then(Value::as_f64);
    let with = |name: &str, scale: f64| -> Option<String> {
        let v = signed(scale * value(name)?);
        let ends = value(&format!("{name}_low")).zip(value(&format!("{name}_high")));
        Some(match ends {
            Some((low, high)) => format!("{v} ({} to {})", signed(scale * low), signed(scale * high)),
            None => format!("{v} (no interval)"),
        })
    };
    format!(
        "At horizon {}: effect on whether {} percentage points; effect on when {}.",
        short(horizon),
        with("cure_effect", 100.0).unwrap_or("undefined".into()),
        with("time_effect", 1.0).unwrap_or("undefined".into())
    )
}

fn correction(groups: &UnitGroups, horizon: f64, corrected: Corrected, at_horizon: bool) -> Option<CorrectionAnswer> {
    let effect = groups.effect(horizon, Some(corrected))?;
    let words = |side| made_of(&effect, side, group_patients(groups, side)).filter(|_| at_horizon);
    Some(CorrectionAnswer {
        cure_words: words(Estimand::Cure),
        time_words: words(Estimand::Time),
        cure_matched: effect.cure_matched(),
        cure_corrected: effect.cure(),
        time_matched: effect.time_matched(),
        time_corrected: effect.time(),
    })
}

fn members(explorer: &Explorer<'_>, groups: &UnitGroups, estimand: Estimand, arm: Arm, horizon: f64) -> MembersAnswer {
    let cohort = explorer.cohort;
    let group = &groups[estimand][arm];
    let member = |(m, &i): (usize, &u32)| {
        let i = i as usize;
        let (outcome, time, event) = outcome(cohort, i, horizon);
        MemberAnswer {
            id: cohort.ids().text(i).into_owned(),
            distance: group.distance[m],
            counts: group.counts[m],
            time,
            event,
            outcome,
            values: explorer.values(cohort.covariates(i)),
            shares: cohort.schema().iter().map(|c| group.shares[m][c.columns()].iter().sum()).collect(),
        }
    };
    MembersAnswer {
        matched_for: estimand.name(),
        arm: arm.name(),
        label: explorer.names().head(arm),
        members: group.units.iter().enumerate().map(member).collect(),
    }
}
