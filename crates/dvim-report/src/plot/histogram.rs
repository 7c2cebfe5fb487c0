//! The distribution of individual effects.

use super::canvas::{BODY, Canvas, Label, Path, Style};
use super::frame::Frame;
use super::palette::Ink;
use super::scale::{Extent, Scale};
use super::summary::{Bins, sane_limits};
use super::{About, Axis, Estimate, text};

/// At most this many values are also drawn one by one, as a rug.
const RUG: usize = 400;

/// How effects are spread over units: bars, the line of no effect, and the mean with its interval.
#[derive(Clone, Debug, Default)]
pub struct EffectHistogram {
    /// Title, size, notes.
    pub about: About,
    /// One effect per unit, in any order.
    pub values: Vec<f64>,
    /// The average effect.
    pub mean: Option<Estimate>,
    /// Units whose effect is undefined; said under the figure.
    pub undefined: usize,
    /// The axis of effects.
    pub axis: Axis,
    /// What an effect below zero means: "fewer cured". Written over that side.
    pub below: String,
    /// What an effect above zero means.
    pub above: String,
}

/// Baseline of a row of words above the panel, counted from the panel up.
fn canvas_row(top: f64, row: usize) -> f64 {
    top - 12.0 - 16.0 * row as f64
}

impl EffectHistogram {
    /// The figure.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(&self.about);
        let mut extent = Extent::new(&self.axis);
        let mut values: Vec<f64> = self.values.iter().copied().filter(|&v| extent.add(v)).collect();
        values.sort_by(f64::total_cmp);
        if self.undefined > 0 {
            let units = if self.undefined == 1 { "unit has" } else { "units have" };
            canvas.note(format!("{} {units} no defined effect and no place here.", text::count(self.undefined as u64)));
        }
        canvas.note_dropped(extent.dropped, false);
        if values.is_empty() {
            return canvas.empty();
        }

        let ((lo, hi), outside) = sane_limits(&values);
        if outside > 0 {
            let lie = if outside == 1 { "value lies" } else { "values lie" };
            canvas.note(format!("{} {lie} beyond the axis.", text::count(outside as u64)));
        }
        let mut shown = Extent::new(&self.axis);
        for v in [lo, hi] {
            shown.hint(v);
        }
        let data = shown.limits(0.0);
        let bins = Bins::new(&values, data);
        let mean = self.mean.filter(|m| self.axis.drawable(m.value));
        let edges = (bins.edges(0).0, bins.edges(bins.counts.len() - 1).1);
        let reach = hi - lo;
        shown.hint(edges.0);
        shown.hint(edges.1);
        // Zero and the mean belong to the picture unless they are far away from it.
        for v in [0.0].into_iter().chain(mean.map(|m| m.value)) {
            if v > edges.0 - 2.0 * reach && v < edges.1 + 2.0 * reach {
                shown.hint(v);
            }
        }

        let tallest = bins.counts.iter().copied().max().unwrap_or(1) as f64;
        let y_axis = Axis::new("");
        let top = canvas.top + 58.0;
        let bottom = top + canvas.panel_height(230.0);
        let y = Scale::new(&y_axis, (0.0, tallest * 1.06), (bottom, top));
        let left = Frame::y_width(&y);
        let rug = values.len() <= RUG;
        let frame = Frame::new(&self.axis, shown.limits(0.02), (left, canvas.width - 14.0), (top, bottom));
        let below = frame.draw_x(&mut canvas, &self.axis.title);
        frame.draw_y(&mut canvas, &y, "");
        canvas.text(0.0, canvas.top + 12.0, "Patients", Label::new(BODY, Ink::Text));

        if let Some((low, high)) = mean.and_then(|m| m.drawable_interval()) {
            let (a, b) = (frame.x.px_inside(low), frame.x.px_inside(high));
            canvas.rect(a, top - 8.0, b - a, bottom - top + 8.0, Style::fill(Ink::Text).opacity(0.1));
        }
        for (i, &n) in bins.counts.iter().enumerate().filter(|c| *c.1 > 0) {
            let (from, to) = bins.edges(i);
            let (a, b) = (frame.x.px_inside(from), frame.x.px_inside(to));
            let words = format!("{}: {}", self.axis.format.interval(from, to), text::count(n));
            let ink = if to <= bins.width * 1e-6 { Ink::Control } else { Ink::Treated };
            let height = y.px(0.0) - y.px(n as f64);
            let style = Style::fill(ink).opacity(0.82);
            canvas.rect_with_title(a + 0.5, bottom - height, b - a - 1.0, height, style, &words);
        }
        if rug {
            let mut ticks = Path::default();
            for &v in values.iter().filter(|&&v| frame.x.contains(v)) {
                ticks.move_to(frame.x.px(v), bottom).up_to(bottom - 6.0);
            }
            canvas.path(&ticks, Style::stroke(Ink::Text, 0.8).opacity(0.55));
        }
        canvas.line(left, bottom, frame.right, bottom, Style::stroke(Ink::Axis, 1.0));
        if let Some(zero) = frame.reference_x(&mut canvas, 0.0, Style::stroke(Ink::Text, 1.0)) {
            frame.sides(&mut canvas, zero, canvas_row(top, 1), &self.below, &self.above);
        }
        if let Some(mean) = mean.filter(|m| frame.x.contains(m.value)) {
            let x = frame.x.px(mean.value);
            canvas.line(x, top - 8.0, x, bottom, Style::stroke(Ink::Text, 1.6).dash("5 3"));
            let words = format!("average {}", mean.words(self.axis.format));
            let label = Label::new(BODY, Ink::Text).bold(true);
            let edge = canvas.width;
            canvas.text_beside(x - 4.0, canvas_row(top, 0) - 4.0, 4.0, edge, &words, label);
        }
        canvas.finish(below)
    }
}
