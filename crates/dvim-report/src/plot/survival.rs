//! Survival curves of the arms up to the horizon, with plateau, mean event times and numbers at risk.

use super::canvas::{BODY, Canvas, Label, Path, SMALL, Style};
use super::frame::{Frame, Mark, spread};
use super::palette::{Ink, SeriesStyle, series};
use super::scale::{Extent, Scale};
use super::{About, Axis, Estimate, Format, text};

/// From the horizon to the words beside it.
const SIDE: f64 = 16.0;

/// The curve's value from one time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveStep {
    /// When the step happens.
    pub time: f64,
    /// S(time), from this time until the next step.
    pub survival: f64,
    /// Pointwise interval of S(time).
    pub interval: Option<(f64, f64)>,
}

/// One arm's curve and what is shown of it.
#[derive(Clone, Debug, Default)]
pub struct SurvivalArm {
    /// Name of the arm.
    pub label: String,
    /// Steps in order of time. The curve is 1 before the first.
    pub steps: Vec<CurveStep>,
    /// Whether the curve runs straight from step to step, as an estimate that is held at knots does.
    pub linear: bool,
    /// Limits that hold the whole curve, at each step; empty where there are none. Pointwise limits are then lines.
    pub band: Vec<(f64, f64)>,
    /// Another curve of the arm, drawn thin beside it: times and shares from then on.
    pub beside: Vec<(f64, f64)>,
    /// Times of censoring, drawn as small ticks on the curve.
    pub censored: Vec<f64>,
    /// Units at risk just before each time (see [`at_risk`]); empty leaves the row out.
    pub at_risk: Vec<(f64, u64)>,
    /// Mean event time of those with an event before the horizon.
    pub mean_event_time: Option<Estimate>,
}

/// Curves of two arms (six at most differ in style), on the scale of shares still event-free.
///
/// With a horizon H the axis ends there: what happens later is no part of the estimand. S(H) is marked and written
/// beside the curve, and the arms' mean event times stand in a strip under the panel.
#[derive(Clone, Debug, Default)]
pub struct SurvivalCurves {
    /// Title, size, notes.
    pub about: About,
    /// The arms; the first is drawn as treated, the second as control.
    pub arms: Vec<SurvivalArm>,
    /// The horizon H, in the unit of time.
    pub horizon: Option<f64>,
    /// The time axis.
    pub axis: Axis,
    /// Unit of time in words ("days"), for the labels of horizon and means.
    pub unit: String,
    /// What S(H) is called, such as "event-free at 5 years". Where it is empty, "event-free at H", with H at the edge.
    pub state: String,
    /// The effect on S(H) in words, drawn between the plateaus: "π = +15 points".
    pub cure_effect: Option<String>,
    /// The effect on the mean event time in words, drawn between the means: "Δ = −180 days".
    pub time_effect: Option<String>,
}

/// Numbers at risk from the times at which units leave (by event, censoring or the horizon): units still there just
/// before each distinct time.
pub fn at_risk(times: &[f64]) -> Vec<(f64, u64)> {
    let mut sorted: Vec<f64> = times.iter().copied().filter(|t| t.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let mut table: Vec<(f64, u64)> = Vec::new();
    for (i, &t) in sorted.iter().enumerate() {
        if table.last().is_none_or(|last| last.0 < t) {
            table.push((t, (sorted.len() - i) as u64));
        }
    }
    table
}

/// Units at risk at `time`: those of the first entry at or after it.
fn at_risk_at(table: &[(f64, u64)], time: f64) -> u64 {
    let after = table.iter().filter(|e| e.0 >= time);
    after.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(0, |e| e.1)
}

/// An arm reduced to what can be drawn: steps in order, shares between 0 and 1.
struct Drawable<'a> {
    arm: &'a SurvivalArm,
    style: SeriesStyle,
    steps: Vec<CurveStep>,
}

impl Drawable<'_> {
    fn at(&self, time: f64) -> (f64, Option<(f64, f64)>) {
        let before = self.steps.partition_point(|s| s.time <= time);
        if self.arm.linear && before > 0 && before < self.steps.len() {
            let (a, b) = (self.steps[before - 1], self.steps[before]);
            let into = (time - a.time) / (b.time - a.time);
            return (a.survival + into * (b.survival - a.survival), None);
        }
        match before.checked_sub(1).map(|i| self.steps[i]) {
            Some(step) => (step.survival, step.interval),
            None => (1.0, None),
        }
    }

    /// Pixels of a step function, at most two corners in each half pixel, however many steps there are.
    fn corners(&self, x: &Scale, y: &Scale, of: impl Fn(&CurveStep) -> f64) -> Vec<(f64, f64)> {
        let mut corners = vec![(x.px(x.lo), y.px(1.0))];
        for step in self.steps.iter().filter(|s| s.time <= x.hi) {
            let corner = (x.px(step.time.max(x.lo)), y.px(of(step)));
            // The first corner is where the curve begins, and stays.
            let begun = corners.len() > 1;
            match corners.last_mut() {
                Some(last) if begun && corner.0 - last.0 < 0.5 => last.1 = corner.1,
                _ => corners.push(corner),
            }
        }
        corners
    }
}

impl SurvivalCurves {
    /// The figure.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(&self.about);
        let mut times = Extent::new(&self.axis);
        let arms = self.drawable(&mut times);
        canvas.note_dropped(times.dropped, false);
        if arms.iter().all(|a| a.steps.is_empty()) {
            return canvas.empty();
        }
        let horizon = self.horizon.filter(|h| self.axis.drawable(*h) && *h > 0.0);
        let last = horizon.or(times.range().map(|r| r.1)).unwrap_or(1.0);
        let axis =
            Axis { limits: self.axis.limits.or(Some((0.0, if last > 0.0 { last } else { 1.0 }))), ..self.axis.clone() };
        let limits = Extent::new(&axis).limits(0.0);

        let y_axis = Axis::new("").format(Format::Percent);
        let top = canvas.top + 28.0;
        let bottom = top + canvas.panel_height(270.0);
        let y = Scale::new(&y_axis, (0.0, 1.0), (bottom, top));
        let has_table = arms.iter().any(|a| !a.arm.at_risk.is_empty());
        let has_means = arms.iter().any(|a| a.arm.mean_event_time.is_some());
        let names = arms.iter().map(|a| text::width(&a.arm.label, BODY) * text::BOLD).fold(0.0, f64::max);
        // Counts are centred on the ticks, so the first reaches to the left of the axis.
        let counts = arms.iter().map(|a| text::width(&text::count(at_risk_at(&a.arm.at_risk, 0.0)), SMALL));
        let half = if has_table { counts.fold(0.0, f64::max) / 2.0 } else { 0.0 };
        let names = if has_table || has_means { names.min(canvas.width * 0.2) + 10.0 + half } else { 0.0 };
        let left = names.max(Frame::y_width(&y));
        let right = canvas.width - self.side_width(&arms, horizon).min(canvas.width * 0.32) - SIDE;

        // The strip of mean event times lies between the curves and the axis, so that one axis serves both.
        let strip =
            if has_means { 22.0 + 20.0 * (arms.len() + usize::from(self.time_effect.is_some())) as f64 } else { 0.0 };
        let frame = Frame::new(&axis, limits, (left, right), (top, bottom + strip));
        if has_means {
            canvas.rect(left, bottom, right - left, strip, Style::fill(Ink::Wash));
        }
        let below = frame.draw_x(&mut canvas, &axis.title);
        frame.draw_y(&mut canvas, &y, "Event-free");
        for arm in &arms {
            self.draw_curve(&mut canvas, &frame.x, &y, arm);
        }
        if has_means {
            canvas.line(left, bottom, right, bottom, Style::stroke(Ink::Axis, 1.0));
            self.draw_means(&mut canvas, &frame, &y, &arms, bottom);
        }
        self.draw_plateaus(&mut canvas, &frame, &y, &arms, horizon);
        let end = if has_table { draw_table(&mut canvas, &frame, &arms, below) } else { below };
        canvas.finish(end)
    }

    fn drawable(&self, times: &mut Extent) -> Vec<Drawable<'_>> {
        let unit = |v: f64| v.clamp(0.0, 1.0);
        let draw = |(i, arm)| {
            let arm: &SurvivalArm = arm;
            let mut steps = Vec::with_capacity(arm.steps.len());
            for step in &arm.steps {
                if !step.survival.is_finite() {
                    times.dropped += 1;
                } else if times.add(step.time) {
                    let interval = step.interval.filter(|(l, h)| l.is_finite() && h.is_finite());
                    let interval = interval.map(|(l, h)| (unit(l), unit(h)));
                    steps.push(CurveStep { time: step.time, survival: unit(step.survival), interval });
                }
            }
            steps.sort_by(|a, b| a.time.total_cmp(&b.time));
            Drawable { arm, style: series(i), steps }
        };
        self.arms.iter().enumerate().map(draw).collect()
    }

    fn draw_curve(&self, canvas: &mut Canvas, x: &Scale, y: &Scale, arm: &Drawable) {
        if arm.steps.is_empty() {
            return;
        }
        self.draw_beside(canvas, x, y, arm);
        if arm.arm.linear {
            return draw_linear(canvas, x, y, arm);
        }
        if arm.steps.iter().any(|s| s.interval.is_some()) {
            let side = |upper: bool| {
                let of = move |s: &CurveStep| s.interval.map_or(s.survival, |(l, h)| if upper { h } else { l });
                let mut points = Vec::new();
                for (px, py) in arm.corners(x, y, of) {
                    if let Some(&(_, before)) = points.last() {
                        points.push((px, before));
                    }
                    points.push((px, py));
                }
                points.push((x.to, points.last().map_or(y.px(1.0), |p| p.1)));
                points
            };
            let mut band = Path::default();
            band.polygon(side(true).into_iter().chain(side(false).into_iter().rev()));
            canvas.path(&band, Style::fill(arm.style.ink).opacity(0.14));
        }
        let mut curve = Path::default();
        for (i, (px, py)) in arm.corners(x, y, |s| s.survival).into_iter().enumerate() {
            if i == 0 {
                curve.move_to(px, py)
            } else {
                curve.across_to(px).up_to(py)
            };
        }
        curve.across_to(x.to);
        canvas.path(&curve, Style::stroke(arm.style.ink, 2.0).dash(arm.style.dash));
        let mut ticks = Path::default();
        let mut censored: Vec<f64> =
            arm.arm.censored.iter().copied().filter(|t| t.is_finite() && x.contains(*t)).collect();
        censored.sort_by(f64::total_cmp);
        let mut last = f64::NEG_INFINITY;
        for t in censored {
            let px = x.px(t);
            if px - last >= 3.0 {
                let py = y.px(arm.at(t).0);
                ticks.move_to(px, py - 3.5).up_to(py + 3.5);
                last = px;
            }
        }
        canvas.path(&ticks, Style::stroke(arm.style.ink, 1.0));
    }

    /// The other curve of an arm: thin, in the arm's own dash.
    fn draw_beside(&self, canvas: &mut Canvas, x: &Scale, y: &Scale, arm: &Drawable) {
        let mut thin = Path::default();
        let mut last = x.px(x.lo);
        for &(time, share) in arm.arm.beside.iter().filter(|(t, s)| t.is_finite() && s.is_finite() && x.contains(*t)) {
            let px = x.px(time);
            if thin.is_empty() {
                thin.move_to(x.px(x.lo), y.px(1.0));
            }
            // At most one corner in half a pixel.
            if px - last >= 0.5 || time == x.lo {
                thin.across_to(px).up_to(y.px(share.clamp(0.0, 1.0)));
                last = px;
            }
        }
        if !thin.is_empty() {
            thin.across_to(x.to);
            let dash = if arm.style.dash.is_empty() { "" } else { "3 2" };
            canvas.path(&thin, Style::stroke(arm.style.ink, 0.8).dash(dash).opacity(0.75));
        }
    }

    fn draw_means(&self, canvas: &mut Canvas, frame: &Frame, y: &Scale, arms: &[Drawable], top: f64) {
        let before = if self.horizon.is_some() && frame.right - frame.left > 260.0 { " before H" } else { "" };
        let heading = &format!("Mean event time{before}");
        let label = Label::new(SMALL, Ink::Muted).at_most(frame.right - frame.left - 12.0);
        // The heading keeps to the side that the means leave free.
        let means = arms.iter().filter_map(|a| a.arm.mean_event_time).map(|m| frame.x.px_inside(m.value));
        let (near, far) = means.fold((frame.right, frame.left), |(l, r), x| (l.min(x), r.max(x)));
        if near - frame.left < frame.right - far {
            canvas.text(frame.right - 6.0, top + 15.0, heading, label.end());
        } else {
            canvas.text(frame.left + 6.0, top + 15.0, heading, label);
        }
        let mut marks = Vec::new();
        for (row, arm) in arms.iter().enumerate() {
            let py = top + 32.0 + 20.0 * row as f64;
            let name = Label::new(BODY, arm.style.text).at_most(frame.left - 10.0);
            canvas.text_mid(0.0, py, &arm.arm.label, name);
            let Some(mean) = arm.arm.mean_event_time.filter(|m| m.value.is_finite() && frame.x.contains(m.value))
            else {
                continue;
            };
            let px = frame.x.px(mean.value);
            let drop = Style::stroke(arm.style.ink, 1.0).dash("2 3");
            canvas.line(px, y.px(arm.at(mean.value).0), px, py, drop);
            frame.estimate(canvas, mean, py, arm.style.ink, Mark { cap: 3.0, ..Mark::new(arm.style.marker) });
            let words = format!("{} {}", mean.words(Format::Number), self.unit);
            let reach = mean.drawable_interval().map_or(px, |(_, high)| frame.x.px_inside(high));
            let label = Label::new(SMALL, arm.style.text);
            // To the right of the horizon the strip is free.
            if reach + 9.0 + text::width(&words, SMALL) <= canvas.width {
                canvas.text_mid(reach + 9.0, py, &words, label.halo());
            } else {
                let reach = mean.drawable_interval().map_or(px, |(low, _)| frame.x.px_inside(low));
                canvas.text_mid(reach - 9.0, py, &words, label.end());
            }
            marks.push(px);
        }
        if let (Some(words), &[to, from, ..]) = (&self.time_effect, &marks[..]) {
            let py = top + 32.0 + 20.0 * arms.len() as f64;
            canvas.line(from, py, to, py, Style::stroke(Ink::Text, 1.2));
            let way = if to < from { 4.5 } else { -4.5 };
            let mut head = Path::default();
            head.polyline([(to + way, py - 3.5), (to, py), (to + way, py + 3.5)]);
            canvas.path(&head, Style::stroke(Ink::Text, 1.2));
            let label = Label::new(BODY, Ink::Text).bold(true);
            let right = from.max(to) + 9.0;
            if right + text::width(words, BODY) * text::BOLD <= canvas.width {
                canvas.text_mid(right, py, words, label);
            } else {
                canvas.text_mid(from.min(to) - 9.0, py, words, label.end());
            }
        }
    }

    fn state(&self) -> &str {
        if self.state.is_empty() { "event-free at H" } else { &self.state }
    }

    /// Width of the words beside the plateaus.
    fn side_width(&self, arms: &[Drawable], horizon: Option<f64>) -> f64 {
        let at = horizon.unwrap_or(f64::MAX);
        let plateaus = arms.iter().flat_map(|a| [a.arm.label.clone(), plateau_words(a, at)]);
        let widest = |w: f64, s: String| w.max(text::width(&s, BODY) * text::BOLD);
        let header = horizon.map(|_| self.state().to_string());
        plateaus.chain(header).chain(self.cure_effect.clone()).fold(40.0, widest) + 14.0
    }

    fn draw_plateaus(&self, canvas: &mut Canvas, frame: &Frame, y: &Scale, arms: &[Drawable], horizon: Option<f64>) {
        let edge = frame.right;
        let room = canvas.width - edge - SIDE;
        if let Some(h) = horizon {
            canvas.line(edge, frame.top - 6.0, edge, y.from, Style::stroke(Ink::Text, 1.0));
            if self.state.is_empty() {
                let words = format!("H = {} {}", text::short(h), self.unit);
                canvas.text(edge, frame.top - 11.0, words.trim_end(), Label::new(SMALL, Ink::Text).end().halo());
            }
            // Long words begin left of the edge, where the curves leave the corner free.
            let width = text::width(self.state(), SMALL);
            let label = Label::new(SMALL, Ink::Muted);
            match width > room {
                true => canvas.text(canvas.width, frame.top - 11.0, self.state(), label.end().halo()),
                false => canvas.text(edge + SIDE, frame.top - 11.0, self.state(), label),
            }
        }
        let at = horizon.unwrap_or(f64::MAX);
        let drawn: Vec<&Drawable> = arms.iter().filter(|a| !a.steps.is_empty()).collect();
        let heights: Vec<f64> = drawn.iter().map(|a| y.px(a.at(at).0)).collect();
        let mut blocks: Vec<(f64, f64)> = heights.iter().map(|&h| (h, 34.0)).collect();
        if let (Some(_), &[a, b, ..]) = (&self.cure_effect, &heights[..]) {
            blocks.push(((a + b) / 2.0, 20.0));
        }
        let placed = spread(&blocks, frame.top - 4.0, y.from + 6.0);
        let mut offset = 0.0;
        for ((arm, &height), &place) in drawn.iter().zip(&heights).zip(&placed) {
            if horizon.is_some() {
                // Intervals stand side by side, since they often overlap.
                let interval = arm.at(at).1;
                let x = edge + if interval.is_some() { offset } else { 0.0 };
                offset += 6.0;
                if let Some((low, high)) = interval {
                    canvas.line(x, y.px(low), x, y.px(high), Style::stroke(arm.style.ink, 1.6));
                }
                let style = Style::fill(arm.style.ink).outline(Ink::Paper, 1.0);
                canvas.marker(arm.style.marker, x, height, 4.2, style, "");
            }
            let label = Label::new(BODY, arm.style.text).at_most(room);
            canvas.text(edge + SIDE, place - 3.0, &arm.arm.label, label.bold(true));
            canvas.text(edge + SIDE, place + 12.0, &plateau_words(arm, at), label);
        }
        if let (Some(words), [a, b, ..], Some(&place)) = (&self.cure_effect, &heights[..], placed.get(drawn.len())) {
            let mut bracket = Path::default();
            bracket.polyline([(edge + 5.0, *a), (edge + 9.0, *a), (edge + 9.0, *b), (edge + 5.0, *b)]);
            canvas.path(&bracket, Style::stroke(Ink::Text, 1.0));
            canvas.text_mid(edge + SIDE, place, words, Label::new(BODY, Ink::Text).bold(true).at_most(room));
        }
    }
}

/// A curve that runs straight from step to step: the band of the whole curve light, pointwise limits as hairlines.
fn draw_linear(canvas: &mut Canvas, x: &Scale, y: &Scale, arm: &Drawable) {
    let there: Vec<&CurveStep> = arm.steps.iter().filter(|s| x.contains(s.time)).collect();
    let at = |of: &dyn Fn(&CurveStep) -> f64| -> Vec<(f64, f64)> {
        there.iter().map(|s| (x.px(s.time), y.px(of(s)))).collect()
    };
    if arm.arm.band.len() == arm.steps.len() {
        let limit = |high: bool| -> Vec<(f64, f64)> {
            let each = arm.steps.iter().zip(&arm.arm.band).filter(|(s, _)| x.contains(s.time));
            each.map(|(s, b)| (x.px(s.time), y.px(if high { b.1 } else { b.0 }.clamp(0.0, 1.0)))).collect()
        };
        let mut band = Path::default();
        band.polygon(limit(true).into_iter().chain(limit(false).into_iter().rev()));
        canvas.path(&band, Style::fill(arm.style.ink).opacity(0.13));
    }
    let low = at(&|s| s.interval.map_or(s.survival, |i| i.0));
    let high = at(&|s| s.interval.map_or(s.survival, |i| i.1));
    let mut limits = Path::default();
    limits.polygon(high.into_iter().chain(low.into_iter().rev()));
    canvas.path(&limits, Style::fill(arm.style.ink).opacity(0.2));
    let mut curve = Path::default();
    curve.polyline(at(&|s| s.survival));
    canvas.path(&curve, Style::stroke(arm.style.ink, 2.2).dash(arm.style.dash));
}

fn plateau_words(arm: &Drawable, at: f64) -> String {
    let (value, interval) = arm.at(at);
    let whole = |v: f64| text::fixed(v * 100.0, 0);
    match interval {
        Some((low, high)) => format!("{}% ({} to {})", whole(value), whole(low), whole(high)),
        None => format!("{}%", whole(value)),
    }
}

fn draw_table(canvas: &mut Canvas, frame: &Frame, arms: &[Drawable], top: f64) -> f64 {
    let mut y = top + 16.0;
    canvas.text(0.0, y, "Number at risk", Label::new(SMALL, Ink::Muted));
    for arm in arms.iter().filter(|a| !a.arm.at_risk.is_empty()) {
        y += 17.0;
        let first = text::width(&text::count(at_risk_at(&arm.arm.at_risk, frame.x.lo)), SMALL) / 2.0;
        let room = frame.left - 6.0 - first;
        let name = Label::new(BODY, arm.style.text);
        // A long name has a line of its own.
        if text::width(&arm.arm.label, BODY) > room {
            canvas.text(0.0, y, &arm.arm.label, name.at_most(canvas.width));
            y += 15.0;
        } else {
            canvas.text(0.0, y, &arm.arm.label, name);
        }
        let number = |canvas: &mut Canvas, time: f64| {
            let n = text::count(at_risk_at(&arm.arm.at_risk, time));
            canvas.text(frame.x.px(time), y, &n, Label::new(SMALL, Ink::Text).middle());
        };
        let mut last = f64::NEG_INFINITY;
        for tick in frame.x.ticks_across(SMALL) {
            number(canvas, tick.value);
            last = frame.x.px(tick.value);
        }
        // Those at risk at the end of the axis, which is the horizon where there is one.
        if frame.x.to - last > 34.0 {
            number(canvas, frame.x.hi);
        }
    }
    y + 6.0
}
