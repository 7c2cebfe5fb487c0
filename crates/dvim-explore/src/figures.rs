//! The figures of a patient: those of the report, at the width of the page.

use dvim::analysis::MatchGroup;
use dvim::cohort::{Arm, Cohort};
use dvim::effect::Effect;
use dvim::interval;
use dvim_report::plot::{About, Axis, CurveStep, Estimate, SurvivalArm, SurvivalCurves, at_risk};
use dvim_report::text::{READING_ORDER, short, signed};

/// What is to be drawn of the two groups of a patient.
pub struct Curves<'a> {
    /// The cohort.
    pub cohort: &'a Cohort,
    /// Control, treated.
    pub pair: &'a [MatchGroup; 2],
    /// What the groups gave.
    pub effect: &'a Effect,
    /// Whether they were matched for time rather than for cure.
    pub is_time: bool,
    /// The horizon.
    pub horizon: f64,
    /// The confidence of the band.
    pub confidence: f64,
    /// The width of the figure.
    pub width: f64,
    /// The unit of time in words, or nothing.
    pub unit: &'a str,
}

impl Curves<'_> {
    /// The figure.
    pub fn svg(&self) -> String {
        let what = if self.is_time { "time" } else { "cure" };
        let describe = READING_ORDER.map(|z| {
            let s = self.pair[z.index()].curve.summary(self.horizon);
            let mean = s.mean_event_time().map_or("undefined".into(), short);
            format!(
                "{}: {:.1} % event-free at {}, mean event time {mean}.",
                arm_label(self.cohort, z),
                100.0 * s.survival,
                short(self.horizon)
            )
        });
        let time = self.effect.time_matched();
        let figure = SurvivalCurves {
            about: About::new(format!("Event-free survival of the groups matched for {what}"))
                .describe(describe.join(" "))
                .width(self.width)
                .height(if self.width < 420.0 { 190.0 } else { 230.0 }),
            arms: READING_ORDER.map(|z| self.arm(z)).to_vec(),
            horizon: Some(self.horizon),
            axis: Axis::new(if self.unit.is_empty() { "Time".into() } else { format!("Time ({})", self.unit) }),
            unit: self.unit.to_string(),
            cure_effect: (!self.is_time)
                .then(|| format!("{:+.1} points", 100.0 * self.effect.cure_matched()).replace('-', "−")),
            time_effect: time.filter(|_| self.is_time).map(signed),
        };
        without_style(&figure.svg())
    }

    fn arm(&self, arm: Arm) -> SurvivalArm {
        let group = &self.pair[arm.index()];
        let times: Vec<f64> = group.units.iter().map(|&i| self.cohort.time(i as usize).min(self.horizon)).collect();
        let band = interval::band(&group.curve, self.confidence);
        let before = band.into_iter().take_while(|(s, _)| s.time < self.horizon);
        let censored = group.curve.steps().iter().filter(|s| s.n_censored > 0 && s.time < self.horizon);
        let mean = interval::mean_event_time(&group.curve.summary(self.horizon), self.horizon, self.confidence);
        SurvivalArm {
            label: arm_label(self.cohort, arm),
            steps: before
                .map(|(s, [low, high])| CurveStep { time: s.time, survival: s.survival, interval: Some((low, high)) })
                .collect(),
            censored: censored.map(|s| s.time).collect(),
            at_risk: at_risk(&times),
            mean_event_time: group
                .curve
                .summary(self.horizon)
                .mean_event_time()
                .filter(|_| self.is_time)
                .map(|value| Estimate { value, interval: mean.map(|i| (i.low, i.high)) }),
        }
    }
}

/// What an arm is called on the page: its label in the table where that says something.
pub fn arm_label(cohort: &Cohort, arm: Arm) -> String {
    let (name, label) = (if arm == Arm::Treated { "Treated" } else { "Control" }, cohort.label(arm));
    if label == "0" || label == "1" { name.to_string() } else { label.to_string() }
}

/// The figure without its own style sheet, which the page's content policy forbids: the page serves the same rules as a
/// file.
fn without_style(svg: &str) -> String {
    match svg.split_once("<style>").and_then(|(a, rest)| Some((a, rest.split_once("</style>")?.1))) {
        Some((before, after)) => format!("{before}{after}"),
        None => svg.to_string(),
    }
}
