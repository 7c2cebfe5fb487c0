//! Three patients in full: both groups under each metric, their curves, the closest patients, and what each covariate
//! contributes.

use super::{Builder, Source};
use crate::figures;
use crate::names::Names;
use crate::text::{
    READING_ORDER, by_weight, clip, decimals_between, decimals_of, group_patients, grouped, made_of, outcome, percent,
    short, signed_fixed, value_of,
};
use dvim::internal::arm::ByArm;
use dvim::internal::audit::individual::examples;
use dvim::internal::cohort::{Arm, Cohort};
use dvim::internal::effect::Effect;
use dvim::internal::estimand::Estimand;
use dvim::internal::inspect::{MatchGroup, UnitGroups};
use dvim::internal::interval::Interval;

/// Closest patients that are listed, of each arm.
const LISTED: usize = 5;
/// Covariates that are listed.
const COVARIATES: usize = 8;

pub(super) fn section(b: &mut Builder, source: &Source<'_>) {
    let Source { cohort, analysis, summary: s } = *source;
    b.section("examples", "Three patients, and the patients most like them");
    let names = b.look.names.clone();
    b.say("The patients at the 10, 50 and 90 % quantiles of the effect on whether, among those without a flag: nobody chose them. dvim match RUN ID shows any other.");
    for q in examples(analysis) {
        let (unit, effect) = (analysis.units[q] as usize, &analysis.effects[q]);
        let groups = analysis.fit.match_groups(cohort, unit);
        let id = cohort.ids().text(unit).into_owned();
        b.heading(&format!("Patient {}", clip(&id, 40)));
        b.say(&format!(
            "{}, {}, {}. {}",
            b.look.names.head(cohort.arm(unit)),
            match b.look.names.unit.as_str() {
                "" => format!("time {}", short(cohort.time(unit))),
                _ => b.look.names.time(&short(cohort.time(unit))),
            },
            outcome(cohort, unit),
            effect_words(&b.look.names, effect, cohort.horizon(), s.options.confidence)
        ));
        if let Some(c) = &effect.corrected {
            b.say(&format!(
                "Whether. {} When. {} The groups alone give {} points and {}. Of such patients {} are {} with {}, {} with {}.",
                made_of(effect, Estimand::Cure, group_patients(&groups, Estimand::Cure)).unwrap_or_default(),
                made_of(effect, Estimand::Time, group_patients(&groups, Estimand::Time)).unwrap_or_default(),
                signed_fixed(100.0 * effect.cure_matched(), 1),
                effect.time_matched().map_or("no difference in time".into(), |t| names.time(&signed_fixed(t, decimals_of(t)))),
                percent(c.cure_probability.treated),
                names.state(),
                names.arm(Arm::Treated),
                percent(c.cure_probability.control),
                names.arm(Arm::Control)
            ));
        }
        for (pair, side) in [(&groups.cure, Estimand::Cure), (&groups.time, Estimand::Time)] {
            b.figure(
                |look| {
                    let own = effect.corrected.as_ref();
                    figures::patient(cohort, pair, side, Some(effect), own, s.horizon, s.options.confidence, look).svg()
                },
                &format!(
                    "Patient {}: the {} patients with {} and the {} with {} who are most alike for {}.",
                    clip(&id, 40),
                    grouped(pair.treated.size()),
                    names.arm(Arm::Treated),
                    grouped(pair.control.size()),
                    names.arm(Arm::Control),
                    side.question().to_lowercase()
                ),
            );
        }
        contributions(b, source, unit, &groups, &id);
        for (pair, side) in [(&groups.cure, Estimand::Cure), (&groups.time, Estimand::Time)] {
            closest(b, cohort, pair, side, unit, &id);
        }
    }
}

fn effect_words(names: &Names, e: &Effect, horizon: f64, confidence: f64) -> String {
    let level = short(100.0 * confidence);
    let with = |value: f64, scale: f64, i: Option<Interval>| match i {
        Some(i) => {
            let d = decimals_between(scale * i.low, scale * i.high);
            let show = |v: f64| signed_fixed(scale * v, d);
            format!("{} ({level} % interval {} to {})", show(value), show(i.low), show(i.high))
        }
        None => format!("{} (no interval)", signed_fixed(scale * value, decimals_of(scale * value))),
    };
    let cure = with(e.cure(), 100.0, Some(e.cure_interval(confidence)));
    let time = e.time().map_or("undefined".into(), |t| with(t, 1.0, e.time_interval(horizon, confidence)));
    format!("{}: {cure}. {}: {time}.", names.effect(Estimand::Cure), names.effect(Estimand::Time))
}

/// What each covariate contributes to the distances in the four groups.
fn contributions(b: &mut Builder, source: &Source<'_>, unit: usize, groups: &UnitGroups, id: &str) {
    let Source { cohort, analysis, .. } = *source;
    let names = b.look.names.clone();
    let heads = READING_ORDER.map(|z| names.head(z));
    let schema = cohort.schema();
    let metrics = &analysis.fit.description.metrics;
    // The heaviest of either metric, in turn.
    let orders = [&metrics.cure.weights, &metrics.time.weights].map(|w| by_weight(cohort, w));
    let mut shown: Vec<usize> = Vec::new();
    for c in orders[0].iter().zip(&orders[1]).flat_map(|(a, b)| [*a, *b]) {
        if shown.len() < COVARIATES && !shown.contains(&c) {
            shown.push(c);
        }
    }
    let rows = shown.iter().map(|&c| {
        let share = |g: &MatchGroup| percent(g.mean_share(schema[c].columns()));
        vec![
            clip(&names.listed(&schema[c]), 40),
            value_of(&schema[c], cohort.covariates(unit)),
            short(groups.cure.treated.weights[schema[c].first]),
            share(&groups.cure.treated),
            share(&groups.cure.control),
            short(groups.time.treated.weights[schema[c].first]),
            share(&groups.time.treated),
            share(&groups.time.control),
        ]
    });
    let rest = if schema.len() > shown.len() {
        format!(" {} covariates of smaller weight are left out.", schema.len() - shown.len())
    } else {
        String::new()
    };
    b.table(
        &format!("Patient {}: the covariates that weigh most, their weights, and the mean share of each in the squared distance to the members of either group.{rest}", clip(id, 40)),
        &["", "This patient", "Weight, whether", &heads[0], &heads[1], "Weight, when", &heads[0], &heads[1]],
        rows.collect(),
        &[],
    );
}

/// The closest patients of each arm under one metric.
fn closest(b: &mut Builder, cohort: &Cohort, pair: &ByArm<MatchGroup>, side: Estimand, unit: usize, id: &str) {
    let names = b.look.names.clone();
    let schema = cohort.schema();
    let mut top = by_weight(cohort, &pair.treated.weights);
    top.truncate(4);
    let values = |i: usize| top.iter().map(|&c| value_of(&schema[c], cohort.covariates(i))).collect::<Vec<_>>();
    let mut own = vec![format!("{} (this patient)", clip(id, 24)), names.arm(cohort.arm(unit)).into(), String::new()];
    own.extend([short(cohort.time(unit)), outcome(cohort, unit).into()]);
    own.extend(values(unit));
    let mut rows = vec![own];
    for arm in READING_ORDER {
        let group = &pair[arm];
        let others = group.units.iter().zip(&group.distance).filter(|(i, _)| **i as usize != unit);
        for (&i, &distance) in others.take(LISTED) {
            let i = i as usize;
            let mut row = vec![
                clip(&cohort.ids().text(i), 24),
                names.arm(arm).to_string(),
                short(distance),
                short(cohort.time(i)),
                outcome(cohort, i).into(),
            ];
            row.extend(values(i));
            rows.push(row);
        }
    }
    let heads: Vec<String> = top.iter().map(|&c| clip(&names.listed(&schema[c]), 24)).collect();
    let mut columns = vec!["Patient", "Arm", "Distance", "Time", "Outcome"];
    columns.extend(heads.iter().map(String::as_str));
    let caption = format!(
        "Patient {}: the {LISTED} closest others of each arm for {}, with the covariates that weigh most in it.",
        clip(id, 40),
        side.question().to_lowercase()
    );
    b.table(&caption, &columns, rows, &[1, 4]);
}
