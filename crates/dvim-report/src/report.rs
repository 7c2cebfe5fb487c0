//! One page for a run: what was found, from whom, and how it varies. Opens by double-click, loads
//! nothing, needs no script.

use crate::plot::page::{Table, figure, heading, page, paragraph};
use crate::plot::{
    About, Axis, CurveStep, EffectHistogram, EffectPlane, Estimate, Format, MetricWeights, PlanePoint, SurvivalArm,
    SurvivalCurves, WeightRow, at_risk,
};
use crate::record::Summary;
use crate::text::{READING_ORDER, average_sentence, by_weight, grouped, short, signed, value_of, worries};
use dvim::analysis::{Analysis, MatchGroup, UnitGroups};
use dvim::cohort::{Arm, Cohort};
use dvim::effect::Effect;
use dvim::survival::SurvivalCurve;

/// What a page says of itself.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Its title.
    pub title: Option<String>,
    /// Where the data come from; stands under the title.
    pub about: Option<String>,
    /// The unit of time in words.
    pub time_unit: Option<String>,
}

/// The page of a run.
pub fn run_page(words: &Page, cohort: &Cohort, analysis: &Analysis, summary: &Summary) -> String {
    let title = words.title.as_deref().unwrap_or("Does treatment change whether, and when?");
    let about = words.about.as_deref().unwrap_or("");
    let mut body = heading(1, title);
    if dvim::simulate::is_synthetic(cohort) {
        body += &paragraph(crate::comparison::SYNTHETIC_NOTE);
    }
    body += &paragraph(about);
    body += &paragraph(&average_sentence(summary));
    let mut n = 0;
    let mut add = |body: &mut String, svg: String, caption: &str| {
        n += 1;
        *body += &figure(&svg, &format!("Figure {n}."), caption);
    };
    body += &averages(summary).html();

    body += &heading(2, "The two arms as they were seen");
    add(
        &mut body,
        arm_curves(cohort).svg(),
        "Kaplan–Meier curve of each arm, not adjusted for covariates. The plateau at the horizon is the share of patients who are cured; the marks on the time axis are the mean event times of those who are not.",
    );

    body += &heading(2, "How the effects vary between patients");
    let cure: Vec<f64> = analysis.effects.iter().map(Effect::cure).collect();
    let time: Vec<f64> = analysis.effects.iter().filter_map(Effect::time).collect();
    let undefined = cure.len() - time.len();
    let mean = |estimand| {
        let a = summary.average(estimand, "all")?;
        Some(Estimate { value: a.estimate?, interval: a.low.zip(a.high) })
    };
    let histogram = EffectHistogram {
        about: About::new("Cure effect of each patient").height(170.0),
        values: cure,
        mean: mean("cure_effect"),
        undefined: 0,
        axis: cure_axis(),
        below: "treatment cures fewer".into(),
        above: "treatment cures more".into(),
    };
    add(&mut body, histogram.svg(), "Cure effect of each estimated patient; the line marks their mean.");
    let histogram = EffectHistogram {
        about: About::new("Time effect of each patient").height(170.0),
        values: time,
        mean: mean("time_effect"),
        undefined,
        axis: time_axis(),
        below: "events sooner".into(),
        above: "events later".into(),
    };
    add(&mut body, histogram.svg(), "Time effect of each estimated patient; the line marks their mean.");
    add(
        &mut body,
        plane(analysis, summary).svg(),
        "Each patient's cure effect against the same patient's time effect. A treatment can cure more and yet hasten the events of those it does not cure.",
    );

    body += &heading(2, "What decides who is compared with whom");
    let rows = cohort.schema().iter().map(|c| WeightRow {
        covariate: c.label(),
        cure: analysis.fit.metrics.cure.weights[c.first],
        time: analysis.fit.metrics.time.weights[c.first],
    });
    let weights = MetricWeights { about: About::new("Weights of the two metrics"), rows: rows.collect() };
    add(&mut body, weights.svg(), "Weight of each covariate in the metric for cure and in the metric for time.");

    body += &heading(2, "One patient, and the patients behind the numbers");
    if let Some(unit) = example_unit(analysis) {
        let groups = analysis.fit.match_groups(cohort, unit);
        body += &paragraph(&format!(
            "Patient {} was compared with the {} most similar patients of each arm, once under the metric for cure and once under the metric for time.",
            cohort.ids().text(unit),
            analysis.fit.options.group_size
        ));
        for (pair, what) in [(&groups.cure, "cure"), (&groups.time, "time")] {
            let caption = format!("Patient {}: the two groups matched for {what}.", cohort.ids().text(unit));
            add(&mut body, group_curves(cohort, pair, what).svg(), &caption);
        }
        body += &members(cohort, analysis, &groups).html();
    }

    if let Some(audit) = &summary.audit {
        body += &crate::audit::section(&summary.average_effects, audit, n + 1);
    }

    let worries = worries(summary, analysis, cohort);
    if !worries.is_empty() {
        body += &heading(2, "What to keep in mind");
        worries.iter().for_each(|w| body += &paragraph(w));
    }
    body += &heading(2, "How to reproduce");
    body += &paragraph(&format!(
        "dvim {}, seed {}, group size {}, train fraction {}, metric {}, scale {}, horizon {}. Input {} with SHA-256 {}.",
        summary.version,
        summary.options.seed,
        summary.options.group_size,
        summary.options.train_fraction,
        summary.options.metric,
        summary.options.scale,
        short(summary.horizon),
        summary.input.file,
        summary.input.sha256
    ));
    page(title, &body)
}

fn cure_axis() -> Axis {
    Axis::new("Cure effect (percentage points)").format(Format::Points)
}

fn time_axis() -> Axis {
    Axis::new("Time effect (in the unit of time)")
}

fn averages(summary: &Summary) -> Table {
    let cell = |estimand: &str, population: &str, scale: f64| {
        summary.average(estimand, population).map_or("undefined".to_string(), |a| crate::audit::with_interval(a, scale))
    };
    let row = |name: &str, estimand: &str, scale: f64| {
        [name.to_string()].into_iter().chain(["all", "treated", "control"].map(|p| cell(estimand, p, scale))).collect()
    };
    let (t, c) = (&summary.counts.treated, &summary.counts.control);
    Table {
        name: "Table 1.".into(),
        caption: format!(
            "Average effects over {} estimated patients ({} treated, {} control). {} others trained the cure models.",
            grouped(t.n_estimation + c.n_estimation),
            grouped(t.n_estimation),
            grouped(c.n_estimation),
            grouped(t.n_training + c.n_training)
        ),
        columns: ["", "All", "Treated", "Control"].map(String::from).to_vec(),
        rows: vec![row("Cure effect, percentage points", "cure_effect", 100.0), row("Time effect", "time_effect", 1.0)],
        words: vec![0],
    }
}

/// Curves longer than this are thinned for drawing: more steps than pixels cannot be seen.
const MOST_STEPS: usize = 600;

fn drawn_arm(label: String, curve: &SurvivalCurve, times: &[f64], horizon: f64) -> SurvivalArm {
    let events: Vec<CurveStep> = curve
        .steps()
        .iter()
        .filter(|s| s.n_events > 0)
        .map(|s| CurveStep { time: s.time, survival: s.survival, interval: None })
        .collect();
    let every = events.len().div_ceil(MOST_STEPS).max(1);
    let last = events.len().saturating_sub(1);
    let steps = events.into_iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last).map(|(_, s)| s).collect();
    SurvivalArm {
        label,
        steps,
        censored: Vec::new(),
        at_risk: at_risk(times),
        mean_event_time: curve.summary(horizon).mean_event_time().map(Estimate::point),
    }
}

fn arm_curves(cohort: &Cohort) -> SurvivalCurves {
    let arms = READING_ORDER.map(|arm| {
        let units = cohort.units_of(arm);
        let time: Vec<f64> = units.iter().map(|&i| cohort.time(i as usize)).collect();
        let event: Vec<bool> = units.iter().map(|&i| cohort.event(i as usize)).collect();
        drawn_arm(arm_label(cohort, arm), &SurvivalCurve::new(&time, &event), &time, cohort.horizon())
    });
    SurvivalCurves {
        about: About::new("Event-free survival by arm"),
        arms: arms.to_vec(),
        horizon: Some(cohort.horizon()),
        axis: Axis::new("Time"),
        ..SurvivalCurves::default()
    }
}

fn arm_label(cohort: &Cohort, arm: Arm) -> String {
    let (name, label) = (if arm == Arm::Treated { "Treated" } else { "Control" }, cohort.label(arm));
    if label == "0" || label == "1" { name.to_string() } else { label.to_string() }
}

fn group_curves(cohort: &Cohort, pair: &[MatchGroup; 2], what: &str) -> SurvivalCurves {
    let arms = READING_ORDER.map(|arm| {
        let group = &pair[arm.index()];
        let times: Vec<f64> = group.units.iter().map(|&i| cohort.time(i as usize)).collect();
        drawn_arm(arm_label(cohort, arm), &group.curve, &times, cohort.horizon())
    });
    let summaries = pair.each_ref().map(|g| g.curve.summary(cohort.horizon()));
    let [control, treated] = summaries;
    let time = treated.mean_event_time().zip(control.mean_event_time());
    SurvivalCurves {
        about: About::new(format!("Event-free survival of the groups matched for {what}")).height(200.0),
        arms: arms.to_vec(),
        horizon: Some(cohort.horizon()),
        axis: Axis::new("Time"),
        unit: String::new(),
        cure_effect: (what == "cure")
            .then(|| format!("cure effect {} points", signed(100.0 * (treated.survival - control.survival)))),
        time_effect: time.filter(|_| what == "time").map(|(t, c)| format!("time effect {}", signed(t - c))),
    }
}

fn plane(analysis: &Analysis, summary: &Summary) -> EffectPlane {
    let mean = |estimand| summary.average(estimand, "all").and_then(|a| a.estimate);
    let average = mean("cure_effect").zip(mean("time_effect")).map(|(cure, time)| PlanePoint {
        label: "average".into(),
        cure: Estimate::point(cure),
        time: Estimate::point(time),
    });
    EffectPlane {
        about: About::new("Cure effect against time effect"),
        points: analysis.effects.iter().map(|e| (e.cure(), e.time().unwrap_or(f64::NAN))).collect(),
        highlights: average.into_iter().collect(),
        cure_axis: cure_axis(),
        time_axis: time_axis(),
    }
}

/// The patient whose cure effect is the median: an ordinary one, the same every time.
fn example_unit(analysis: &Analysis) -> Option<usize> {
    let mut order: Vec<usize> =
        (0..analysis.effects.len()).filter(|&i| analysis.effects[i].flags().next().is_none()).collect();
    order.sort_by(|&a, &b| analysis.effects[a].cure().total_cmp(&analysis.effects[b].cure()).then(a.cmp(&b)));
    order.get(order.len() / 2).map(|&i| analysis.units[i] as usize)
}

/// The nearest members of the cure groups.
fn members(cohort: &Cohort, analysis: &Analysis, groups: &UnitGroups) -> Table {
    const SHOWN: usize = 5;
    let mut top = by_weight(cohort, &analysis.fit.metrics.cure.weights);
    top.truncate(5);
    let schema = cohort.schema();
    let mut rows = Vec::new();
    for arm in READING_ORDER {
        let group = &groups.cure[arm.index()];
        for (m, &i) in group.units.iter().enumerate().take(SHOWN) {
            let i = i as usize;
            let mut row = vec![
                cohort.ids().text(i).into_owned(),
                arm.name().to_string(),
                short(group.distance[m]),
                short(cohort.time(i)),
            ];
            row.push(if cohort.event(i) { "event" } else { "no event" }.into());
            row.extend(top.iter().map(|&c| value_of(&schema[c], cohort.covariates(i))));
            rows.push(row);
        }
    }
    let mut columns = ["Patient", "Arm", "Distance", "Time", "Outcome"].map(String::from).to_vec();
    columns.extend(top.iter().map(|&c| schema[c].label()));
    Table {
        name: "Table 2.".into(),
        caption: format!(
            "The {SHOWN} nearest of each arm under the metric for cure, with the covariates that weigh most."
        ),
        columns,
        rows,
        words: vec![0, 1, 4],
    }
}
