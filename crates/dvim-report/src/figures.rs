//! The figures of a run as functions of its records, for the report, `dvim plot` and the explorer.
//!
//! Each function gives the data of a figure, whose `svg` draws it: nothing is read or written, and equal records give
//! equal figures. Words for those who cannot see a figure are made from the same records.

use crate::audit::{AuditRecord, BalanceRecord, CurvesRecord};
use crate::names::{Names, capital};
use crate::plot::stack;
use crate::plot::{
    About, Axis, CurveStep, EffectHistogram, EffectPlane, Estimate, ForestPlot, ForestRow, Format, LineChart,
    LinePoint, LovePlot, LoveRow, MetricWeights, PartRow, PartsChart, PlanePoint, Reference, Series, SurvivalArm,
    SurvivalCurves, WeightRow,
};
use crate::record::{AverageRecord, Summary};
use crate::text::{READING_ORDER, average_words, decimals_of, grouped, percent, short, signed_fixed};
use dvim::internal::analysis::Analysis;
use dvim::internal::arm::ByArm;
use dvim::internal::audit::average::By;
use dvim::internal::audit::follow_up;
use dvim::internal::audit::individual::examples;
use dvim::internal::cohort::{Arm, Cohort};
use dvim::internal::curve::{Curves, Grid};
use dvim::internal::effect::{Corrected, Effect};
use dvim::internal::estimand::Estimand;
use dvim::internal::fold::Fit;
use dvim::internal::inspect::MatchGroup;
use dvim::internal::interval;
use dvim::internal::survival::SurvivalCurve;

/// How figures are to look.
#[derive(Clone, Debug)]
pub struct Look {
    /// Width in pixels.
    pub width: f64,
    /// What the arms, the time and the covariates are called.
    pub names: Names,
}

impl Default for Look {
    fn default() -> Look {
        Look { width: 680.0, names: Names::default() }
    }
}

impl Look {
    /// The same at another width.
    pub fn wide(&self, width: f64) -> Look {
        Look { width, ..self.clone() }
    }

    fn about(&self, title: impl Into<String>, description: impl Into<String>) -> About {
        About::new(title).describe(description).width(self.width)
    }

    fn time(&self, what: &str) -> String {
        match self.names.unit.as_str() {
            "" => what.to_string(),
            unit => format!("{what} ({unit})"),
        }
    }

    /// The axis of an effect.
    pub fn axis(&self, side: Estimand) -> Axis {
        match side {
            Estimand::Cure => Axis::new(format!("{}, difference (percentage points)", self.names.outcome(side)))
                .format(Format::Points),
            Estimand::Time => {
                Axis::new(self.time(&format!("{}, difference", self.names.outcome(side)))).format(Format::Signed)
            }
        }
    }
}

/// An average as a point with an interval.
pub fn estimate_of(a: &AverageRecord) -> Option<Estimate> {
    Some(Estimate { value: a.estimate?, interval: a.low.zip(a.high) })
}

/// Curves longer than this are thinned for drawing: more steps than pixels cannot be seen.
const MOST_STEPS: usize = 400;

/// One arm as it is drawn: the curve with its band, those at risk, and the mean event time.
fn drawn_arm(label: String, curve: &SurvivalCurve, horizon: f64, confidence: f64) -> SurvivalArm {
    let events: Vec<CurveStep> = interval::band(curve, confidence)
        .into_iter()
        .filter(|(s, _)| s.time < horizon)
        .map(|(s, [low, high])| CurveStep { time: s.time, survival: s.survival, interval: Some((low, high)) })
        .collect();
    let every = events.len().div_ceil(MOST_STEPS).max(1);
    let last = events.len().saturating_sub(1);
    let steps = events.into_iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last).map(|(_, s)| s).collect();
    let summary = curve.summary(horizon);
    let mean = summary.mean_event_time().map(|value| Estimate {
        value,
        interval: interval::mean_event_time(&summary, horizon, confidence).map(|i| (i.low, i.high)),
    });
    let at_risk = curve.steps().iter().map(|s| (s.time, s.n_at_risk as u64));
    let at_risk = at_risk.collect();
    SurvivalArm { label, steps, at_risk, mean_event_time: mean, ..SurvivalArm::default() }
}

/// A curve as it is drawn thin beside another.
fn beside(curve: &SurvivalCurve, horizon: f64) -> Vec<(f64, f64)> {
    curve.steps().iter().filter(|s| s.n_events > 0 && s.time < horizon).map(|s| (s.time, s.survival)).collect()
}

/// The first figure of a run: the standardised curves of both arms over a population, or, where the run has none, the
/// curves of the arms as they were seen. `Err` names the populations where this one is not among them.
pub fn arms(cohort: &Cohort, summary: &Summary, population: &str, look: &Look) -> Result<SurvivalCurves, String> {
    let found = summary.audit.as_ref().map_or(&[][..], |a| &a.curves[..]);
    if found.is_empty() && population == "all" {
        return Ok(curves(cohort, summary.options.confidence, look));
    }
    let Some(of) = found.iter().find(|c| c.population == population) else {
        let names: Vec<&str> = found.iter().map(|c| c.population.as_str()).collect();
        let names = if names.is_empty() { "all".to_string() } else { names.join(", ") };
        return Err(format!("the run has no curves of `{population}`; its populations are {names}"));
    };
    Ok(standardised(cohort, of, summary.options.confidence, look))
}

/// The standardised curves of both arms, with the crude ones thin beside them.
fn standardised(cohort: &Cohort, of: &CurvesRecord, confidence: f64, look: &Look) -> SurvivalCurves {
    let horizon = cohort.horizon();
    let everybody = of.population == "all";
    let arms = READING_ORDER.map(|arm| {
        let band = if arm == Arm::Treated { &of.treated } else { &of.control };
        let step = |k: usize| CurveStep {
            time: of.times[k],
            survival: band.estimate[k],
            interval: Some((band.low[k], band.high[k])),
        };
        let crude = SurvivalCurve::of_outcomes(cohort.outcomes(&cohort.units_of(arm)));
        SurvivalArm {
            label: look.names.head(arm),
            steps: (0..of.times.len()).map(step).collect(),
            linear: true,
            band: band.band_low.iter().copied().zip(band.band_high.iter().copied()).collect(),
            beside: if everybody { beside(&crude, horizon) } else { Vec::new() },
            at_risk: if everybody {
                crude.steps().iter().map(|s| (s.time, s.n_at_risk as u64)).collect()
            } else {
                vec![]
            },
            ..SurvivalArm::default()
        }
    });
    let last = of.times.len().saturating_sub(1);
    let d = &of.difference;
    let points = |v: &[f64]| signed_fixed(100.0 * v[last], 1);
    let words = (!d.estimate.is_empty())
        .then(|| format!("{} ({} to {})", points(&d.estimate), points(&d.low), points(&d.high)));
    let who = match of.population.as_str() {
        "all" => "all patients".to_string(),
        "treated" | "control" => look.names.population(&of.population).replacen("Patients", "the patients", 1),
        other => other.to_string(),
    };
    let level = short(100.0 * confidence);
    let crude = if everybody { " Thin steps: Kaplan–Meier curves as seen, not adjusted." } else { "" };
    SurvivalCurves {
        about: look
            .about(
                format!("{} over time, adjusted", capital(&look.names.free())),
                format!(
                    "Two falling curves, each as if {who} ({}) had been treated in that way. Difference {} in points: {}.",
                    grouped(of.n_units),
                    look.names.at(),
                    words.clone().unwrap_or_default()
                ),
            )
            .note(format!(
                "Adjusted for the covariates, as if {who} ({}) had had either treatment. Dark: {level} % interval at each time. Light: {level} % band of the whole curve.{crude}",
                grouped(of.n_units)
            )),
        arms: arms.to_vec(),
        horizon: Some(horizon),
        axis: Axis::new(look.time("Time")),
        unit: look.names.unit.clone(),
        state: look.names.state(),
        cure_effect: words,
        ..SurvivalCurves::default()
    }
}

/// A patient's own corrected curves up to a horizon, at the knots and there.
fn own_steps(curves: &Curves<'_>, grid: &Grid, arm: Arm, horizon: f64, confidence: f64) -> Vec<CurveStep> {
    let quantile = interval::two_sided(confidence);
    let times = grid.times().iter().copied().filter(|t| *t < horizon).chain([horizon]);
    times
        .map(|time| {
            let (survival, i) = curves.survival(arm, time, quantile);
            CurveStep { time, survival, interval: Some((i.low, i.high)) }
        })
        .collect()
}

/// The Kaplan–Meier curves of both arms as a whole, with bands.
pub fn curves(cohort: &Cohort, confidence: f64, look: &Look) -> SurvivalCurves {
    let horizon = cohort.horizon();
    let mut said = Vec::new();
    let arms = READING_ORDER.map(|arm| {
        let units = cohort.units_of(arm);
        let curve = SurvivalCurve::of_outcomes(cohort.outcomes(&units));
        said.push(format!("{} {}", percent(curve.summary(horizon).survival), look.names.head(arm)));
        drawn_arm(look.names.head(arm), &curve, horizon, confidence)
    });
    SurvivalCurves {
        about: look.about(
            format!("{} over time", capital(&look.names.free())),
            format!("Two falling curves with bands. {}: {}.", capital(&look.names.state()), said.join(", ")),
        ),
        arms: arms.to_vec(),
        horizon: Some(horizon),
        axis: Axis::new(look.time("Time")),
        unit: look.names.unit.clone(),
        state: look.names.state(),
        ..SurvivalCurves::default()
    }
}

/// The curves of one patient under one metric, up to the horizon of the cohort or an earlier one: the patient's `own`
/// with the groups' thin beside them, where a run corrects, else those of the groups. `effect` is what is said of the
/// patient at that horizon.
#[allow(clippy::too_many_arguments, reason = "a figure of one patient needs who, what and how")]
pub fn patient(
    cohort: &Cohort,
    pair: &ByArm<MatchGroup>,
    side: Estimand,
    effect: Option<&Effect>,
    own: Option<&Corrected>,
    horizon: f64,
    confidence: f64,
    look: &Look,
) -> SurvivalCurves {
    let grid = own.map(|_| Grid::of(cohort));
    let curves = own.zip(grid.as_ref()).map(|(own, grid)| (own.curves(grid), grid));
    let quantile = interval::two_sided(confidence);
    let arms = READING_ORDER.map(|arm| {
        let group = &pair[arm];
        let drawn = drawn_arm(look.names.head(arm), &group.curve, horizon, confidence);
        let Some((curves, grid)) = &curves else { return drawn };
        let mean = curves.mean_before(arm, horizon, quantile);
        SurvivalArm {
            steps: own_steps(curves, grid, arm, horizon, confidence),
            linear: true,
            beside: beside(&group.curve, horizon),
            at_risk: Vec::new(),
            mean_event_time: mean.map(|(value, i)| Estimate::new(value, i.low, i.high)),
            ..drawn
        }
    });
    let words = effect.and_then(|e| match side {
        Estimand::Cure => Some(format!("{} points", signed_fixed(100.0 * e.cure(), 1))),
        Estimand::Time => e.time().map(|t| look.names.time(&signed_fixed(t, decimals_of(t)))),
    });
    let corrected = curves.is_some();
    let (cure_effect, time_effect) = match side {
        Estimand::Cure => (words.clone(), None),
        Estimand::Time => (None, words.clone()),
    };
    let said = words.map_or(String::new(), |w| format!("{w}."));
    let (title, what) = if corrected {
        (
            format!("{} over time: this patient with either treatment", capital(&look.names.free())),
            "Two curves of the patient, and thin beside them those",
        )
    } else {
        (format!("{} over time in the groups matched for {}", capital(&look.names.free()), side.name()), "Two curves")
    };
    let (t, c) = (pair.treated.size(), pair.control.size());
    let about =
        look.about(title, format!("{what}, of the {t} and {c} patients of the two arms who are most alike. {said}"));
    let note = format!(
        "Thick: this patient's own curves, corrected for what differs in the groups. Thin: Kaplan–Meier curves of the {t} and {c} patients matched for {}.",
        side.name()
    );
    SurvivalCurves {
        about: if corrected { about.note(note) } else { about }.height(180.0),
        arms: arms.to_vec(),
        horizon: Some(horizon),
        axis: Axis::new(look.time("Time")),
        unit: look.names.unit.clone(),
        state: look.names.state(),
        cure_effect,
        time_effect,
    }
}

/// How one effect is spread over patients.
pub fn effects(analysis: &Analysis, summary: &Summary, side: Estimand, look: &Look) -> EffectHistogram {
    let (estimand, name) = (side.effect(), look.names.outcome(side));
    let [below, above] = look.names.sides(side);
    let all = analysis.effects.len();
    let values: Vec<f64> = match side {
        Estimand::Cure => analysis.effects.iter().map(Effect::cure).collect(),
        Estimand::Time => analysis.effects.iter().filter_map(Effect::time).collect(),
    };
    let mean = summary.average(estimand, "all");
    EffectHistogram {
        about: look
            .about(
                format!("{name}: difference for each patient"),
                format!(
                    "Histogram of {} estimates; average {}.",
                    grouped(values.len()),
                    mean.map_or("undefined".into(), average_words)
                ),
            )
            .height(170.0),
        undefined: all - values.len(),
        values,
        mean: mean.and_then(estimate_of),
        axis: look.axis(side),
        below,
        above,
    }
}

/// Each patient's two effects, with the average and some patients (positions in [`Analysis::units`]) picked out, each
/// with the cross of its two intervals.
pub fn plane(cohort: &Cohort, analysis: &Analysis, summary: &Summary, picked: &[usize], look: &Look) -> EffectPlane {
    let of = |estimand| summary.average(estimand, "all").and_then(estimate_of);
    let average = of("cure_effect").zip(of("time_effect"));
    let average = average.map(|(cure, time)| PlanePoint { label: "average".into(), cure, time });
    let confidence = analysis.fit.options.confidence;
    let patients = picked.iter().filter_map(|&q| {
        let e = &analysis.effects[q];
        let ends = |i: Option<interval::Interval>| i.map(|i| (i.low, i.high));
        Some(PlanePoint {
            label: format!("patient {}", cohort.ids().text(analysis.units[q] as usize)),
            cure: Estimate { value: e.cure(), interval: ends(Some(e.cure_interval(confidence))) },
            time: Estimate { value: e.time()?, interval: ends(e.time_interval(cohort.horizon(), confidence)) },
        })
    });
    let quadrants = summary.individual.as_ref().map_or(String::new(), |i| {
        let q = &i.quadrants;
        format!(
            "More event-free and later events: {} patients; more and earlier: {}; fewer and later: {}; fewer and earlier: {}.",
            grouped(q.more_later),
            grouped(q.more_sooner),
            grouped(q.fewer_later),
            grouped(q.fewer_sooner)
        )
    });
    EffectPlane {
        about: look.about("Both effects of each patient", format!("One point for each patient. {quadrants}")),
        points: analysis.effects.iter().map(|e| (e.cure(), e.time().unwrap_or(f64::NAN))).collect(),
        highlights: patients.chain(average).collect(),
        cure_axis: look.axis(Estimand::Cure),
        time_axis: look.axis(Estimand::Time),
    }
}

/// An average effect over all, over each arm and by subgroup.
pub fn averages(summary: &Summary, side: Estimand, look: &Look) -> ForestPlot {
    let (estimand, name) = (side.effect(), look.names.outcome(side));
    let [below, above] = look.names.sides(side);
    let row = |a: &AverageRecord, label: String| ForestRow {
        label,
        estimate: estimate_of(a),
        n: Some(a.n_units as u64),
        overall: a.population == "all",
        ..ForestRow::default()
    };
    let found: Vec<&AverageRecord> = summary.average_effects.iter().filter(|a| a.estimand == estimand).collect();
    let mut rows = Vec::new();
    for population in ["all", "treated", "control"] {
        let label = look.names.population(population);
        rows.extend(found.iter().filter(|a| a.population == population).map(|a| row(a, label.clone())));
    }
    let asked = summary.audit.iter().flat_map(|a| &a.by).map(|b| By::parse(b).covariate);
    let mut rest: Vec<&&AverageRecord> =
        found.iter().filter(|a| !["all", "treated", "control"].contains(&a.population.as_str())).collect();
    for covariate in asked {
        let is_of_it = |a: &AverageRecord| a.population.strip_prefix(&covariate).is_some_and(|r| r.starts_with(' '));
        let mut of_it: Vec<&AverageRecord> = rest.iter().copied().copied().filter(|a| is_of_it(a)).collect();
        rest.retain(|a| !is_of_it(a));
        let levels: Vec<&str> = of_it.iter().filter_map(|a| Some(a.population.split_once(" = ")?.1)).collect();
        of_it.sort_by_key(|a| {
            let level = a.population.split_once(" = ").map(|(_, level)| level);
            level.map_or(0, |level| look.names.place_of_level(&covariate, &levels, level))
        });
        if !of_it.is_empty() {
            let p = interaction(summary, &covariate, estimand);
            let note = p.map_or(String::new(), |p| format!("interaction: p {p}"));
            rows.push(ForestRow { label: look.names.covariate_with_unit(&covariate), note, ..ForestRow::default() });
        }
        rows.extend(of_it.into_iter().map(|a| row(a, look.names.subgroup(&covariate, &a.population))));
    }
    let all = found.iter().find(|a| a.population == "all").map_or("undefined".into(), |a| average_words(a));
    ForestPlot {
        about: look.about(
            format!("{name}: average differences with intervals"),
            format!(
                "Forest plot of {} averages. Over all patients: {all}.",
                rows.iter().filter(|r| r.estimate.is_some()).count()
            ),
        ),
        rows,
        axis: look.axis(side),
        null: 0.0,
        below,
        above,
    }
}

/// The p value of the test that an effect differs between the subgroups of a covariate, as papers write it.
pub fn interaction(summary: &Summary, covariate: &str, estimand: &str) -> Option<String> {
    let tests = &summary.audit.as_ref()?.interactions;
    let of = |i: &&crate::audit::InteractionRecord| i.estimand == estimand && By::parse(&i.by).covariate == covariate;
    Some(p_value(tests.iter().find(of)?.p))
}

/// A p value with its sign: `= 0.042`, `< 0.001`.
pub fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".into() } else { format!("= {p:.3}") }
}

/// The event-free time that treatment gives up to the horizon, and its two parts; `None` where the run has none.
pub fn gained(summary: &Summary, look: &Look) -> Option<PartsChart> {
    let of = |estimand: &str| summary.average(estimand, "all").and_then(estimate_of);
    let row =
        |label: &str, estimand: &str, total: bool| Some(PartRow { label: label.into(), value: of(estimand)?, total });
    let rows = vec![
        row(&format!("Fewer have {}", look.names.event()), "rmst_from_cure", false)?,
        row("It comes later", "rmst_from_time", false)?,
        row("Time gained", "rmst_effect", true)?,
    ];
    let words = crate::text::gained_time(summary, &look.names).unwrap_or_default();
    Some(PartsChart {
        about: look.about("Event-free time gained, and why", words),
        rows,
        axis: Axis::new(look.time(&format!("Event-free time gained {}", look.names.up_to()))).format(Format::Signed),
    })
}

/// The weight of each covariate in the two metrics.
pub fn weights(cohort: &Cohort, fit: &Fit, look: &Look) -> MetricWeights {
    let rows: Vec<WeightRow> = cohort
        .schema()
        .iter()
        .map(|c| WeightRow {
            covariate: look.names.listed(c),
            cure: fit.description.metrics.cure.weights[c.first],
            time: fit.description.metrics.time.weights[c.first],
        })
        .collect();
    let top = |of: fn(&WeightRow) -> f64| {
        let most = rows.iter().max_by(|a, b| of(a).total_cmp(&of(b)));
        most.map_or(String::new(), |r| format!("{} ({})", r.covariate, short(of(r))))
    };
    let description = format!(
        "Two bars for each covariate. Heaviest for whether: {}; for when: {}.",
        top(|r| r.cure),
        top(|r| r.time)
    );
    MetricWeights { about: look.about("Weights of the two metrics", description), rows }
}

/// Balance of each covariate before and after matching.
pub fn balance(of: &BalanceRecord, look: &Look) -> LovePlot {
    let rows: Vec<LoveRow> = of
        .covariates
        .iter()
        .map(|c| LoveRow {
            covariate: look.names.column(&c.covariate),
            before: c.before.difference,
            cure: c.average.is_none().then_some(c.cure.difference),
            time: c.average.is_none().then_some(c.time.difference),
            average: c.average.as_ref().map(|a| a.difference),
        })
        .collect();
    let over = |value: fn(&LoveRow) -> f64| rows.iter().filter(|r| value(r).abs() > 0.1).count();
    let before = format!("Standardised differences of {} covariates. Beyond 0.1: {}", rows.len(), over(|r| r.before));
    let description = if rows.iter().any(|r| r.average.is_some()) {
        format!("{before} as they are, {} weighted as in the averages.", over(|r| r.average.unwrap_or(0.0)))
    } else {
        let (cure, time) = (over(|r| r.cure.unwrap_or(0.0)), over(|r| r.time.unwrap_or(0.0)));
        format!("{before} before matching, {cure} in the groups for whether, {time} in those for when.")
    };
    LovePlot { about: look.about("Balance of the covariates", description), rows, threshold: Some(0.1) }
}

/// An average effect had the horizon been another.
pub fn horizon(audit: &AuditRecord, chosen: f64, side: Estimand, look: &Look) -> LineChart {
    let name = look.names.outcome(side);
    let points: Vec<LinePoint> = audit
        .horizons
        .iter()
        .filter_map(|h| {
            let [v, low, high] = if side == Estimand::Cure { h.cure_effect } else { h.time_effect }?;
            Some(LinePoint { x: h.horizon, y: Estimate::new(v, low, high) })
        })
        .collect();
    let ends = points.first().zip(points.last()).map_or(String::new(), |(a, b)| {
        let show = |p: &LinePoint| look.axis(side).format.value(p.y.value);
        format!("From {} at {} to {} at {}.", show(a), short(a.x), show(b), short(b.x))
    });
    LineChart {
        about: look
            .about(format!("{name}: difference, had the horizon been another"), format!("A line with a band. {ends}"))
            .height(170.0),
        series: vec![Series { label: String::new(), points, band: true }],
        x: Axis::new(look.time("Horizon")),
        y: look.axis(side),
        levels: vec![Reference { value: 0.0, label: "no effect".into() }],
        marks: vec![Reference { value: chosen, label: "H".into() }],
    }
}

/// Parts of the time to H for which event rates are shown.
const PARTS: usize = 12;

/// Events for each unit of time at risk, over the time to H: where follow-up suffices they die out before H.
pub fn follow_up(cohort: &Cohort, confidence: f64, look: &Look) -> LineChart {
    let mut said = Vec::new();
    let series = READING_ORDER.map(|arm| {
        let rates = follow_up::rates(cohort, arm, PARTS, confidence);
        if let Some(last) = rates.last() {
            said.push(format!("{} {}", grouped(last.n_events), look.names.head(arm)));
        }
        let points = rates.iter().filter(|r| r.exposure > 0.0).map(|r| LinePoint {
            x: 0.5 * (r.from + r.to),
            y: Estimate::new(1000.0 * r.rate, 1000.0 * r.low, 1000.0 * r.high),
        });
        Series { label: look.names.head(arm), points: points.collect(), band: false }
    });
    let unit = if look.names.unit.is_empty() { "units of time".to_string() } else { look.names.unit.clone() };
    LineChart {
        about: look
            .about(
                "Event rate over the time to the horizon",
                format!(
                    "Event rates in {PARTS} equal parts of the time. Events in the last part: {}.",
                    said.join(", ")
                ),
            )
            .height(190.0),
        series: series.to_vec(),
        x: Axis::new(look.time("Time")),
        y: Axis::new(format!("Events per 1,000 patient-{unit}")),
        levels: vec![],
        marks: vec![],
    }
}

/// A figure that can be asked for by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Both histograms of single effects.
    Effects,
    /// The curves of both arms over a population.
    Curves(String),
    /// Both effects of each patient, one against the other.
    Plane,
    /// Balance before and after matching.
    Balance,
    /// The two metrics.
    Weights,
    /// Average effects, by subgroup where asked for.
    Averages,
    /// Average effects over the horizon.
    Horizon,
    /// Event rates over time.
    FollowUp,
    /// The groups of one patient.
    Patient(String),
}

/// Names and meanings of the figures, in the order in which they are listed.
pub const KINDS: [(&str, &str); 9] = [
    (
        "curves",
        "adjusted survival curves of both arms, with bands; curves:POPULATION for treated, control or a subgroup",
    ),
    ("effects", "how both effects are spread over patients"),
    ("plane", "each patient's effect on whether against the effect on when"),
    ("balance", "covariates before and after matching (love plot)"),
    ("weights", "what each covariate counts in the two metrics"),
    ("averages", "average effects with intervals, by subgroup (forest plot)"),
    ("horizon", "average effects had the horizon been another"),
    ("follow-up", "event rates over the time to the horizon"),
    ("patient:ID", "the curves of one patient, and of the match groups"),
];

impl Kind {
    /// Reads a name.
    pub fn parse(name: &str) -> Result<Kind, String> {
        Ok(match name {
            "effects" => Kind::Effects,
            "curves" => Kind::Curves("all".into()),
            "plane" => Kind::Plane,
            "balance" => Kind::Balance,
            "weights" => Kind::Weights,
            "averages" => Kind::Averages,
            "horizon" => Kind::Horizon,
            "follow-up" => Kind::FollowUp,
            _ if name.strip_prefix("curves:").is_some_and(|of| !of.is_empty()) => Kind::Curves(name[7..].to_string()),
            _ => match name.strip_prefix("patient:").filter(|id| !id.is_empty()) {
                Some(id) => Kind::Patient(id.to_string()),
                None => return Err(format!("the figures are {}", KINDS.map(|k| k.0).join(", "))),
            },
        })
    }

    /// Whether it needs the effects of every patient; otherwise the records and the cohort are enough.
    pub fn needs_effects(&self) -> bool {
        matches!(self, Kind::Effects | Kind::Plane)
    }
}

/// A figure of a run as SVG; `Err` says what the run lacks. `analysis` may be absent where the kind does not need it.
pub fn draw(
    kind: &Kind,
    cohort: &Cohort,
    fit: &Fit,
    corrected: &[Corrected],
    analysis: Option<&Analysis>,
    summary: &Summary,
    look: &Look,
) -> Result<String, String> {
    let confidence = summary.options.confidence;
    let audit = || summary.audit.as_ref().ok_or("the run was made without the audit".to_string());
    let effects_of = || analysis.ok_or("the effects of the run were not estimated".to_string());
    Ok(match kind {
        Kind::Effects => {
            let analysis = effects_of()?;
            let both = Estimand::BOTH.map(|side| effects(analysis, summary, side, look).svg());
            stack("Effects of each patient", "Histograms of both effects.", &both)
        }
        Kind::Curves(population) => arms(cohort, summary, population, look)?.svg(),
        Kind::Plane => {
            let analysis = effects_of()?;
            plane(cohort, analysis, summary, &examples(analysis), look).svg()
        }
        Kind::Balance => {
            let of = audit()?.balance.as_ref().ok_or("balance is not in the files of this run")?;
            balance(of, look).svg()
        }
        Kind::Weights => weights(cohort, fit, look).svg(),
        Kind::Averages => {
            let both = Estimand::BOTH.map(|side| averages(summary, side, look).svg());
            stack("Average effects", "Forest plots of both effects.", &both)
        }
        Kind::Horizon => {
            let audit = audit()?;
            if audit.horizons.is_empty() {
                return Err("effects at other horizons are not in the files of this run".into());
            }
            let both = Estimand::BOTH.map(|side| horizon(audit, summary.horizon, side, look).svg());
            stack("Average effects over the horizon", "Lines with bands, one for each effect.", &both)
        }
        Kind::FollowUp => follow_up(cohort, confidence, look).svg(),
        Kind::Patient(id) => {
            let unit = cohort.unit(id).map_err(|e| e.to_string())?;
            let groups = fit.match_groups(cohort, unit);
            let effect = groups
                .effect(cohort.horizon(), corrected.get(unit).copied())
                .ok_or_else(|| format!("patient `{id}` has no match group under the constraints"))?;
            let pairs = [(&groups.cure, Estimand::Cure), (&groups.time, Estimand::Time)];
            let both = pairs.map(|(pair, side)| {
                let own = effect.corrected.as_ref();
                patient(cohort, pair, side, Some(&effect), own, summary.horizon, confidence, look).svg()
            });
            stack(
                &format!("Match groups of patient {id}"),
                "Curves of the groups matched for cure, then for time.",
                &both,
            )
        }
    })
}
