//! Parts that add up to a whole, as bars that begin where the last one ended.

use super::canvas::{Canvas, Label, SMALL, Style};
use super::frame::{Frame, Mark, Rows};
use super::palette::{Ink, Marker};
use super::scale::Extent;
use super::{About, Axis, Estimate, text};

/// A part, or the whole.
#[derive(Clone, Debug, Default)]
pub struct PartRow {
    /// What it is.
    pub label: String,
    /// How much, with its interval.
    pub value: Estimate,
    /// Whether it is the sum of the rows above.
    pub total: bool,
}

/// Bars of the parts, each from where the last one ended, and of their sum, from zero, with its interval. The intervals
/// of the parts are written beside them.
#[derive(Clone, Debug, Default)]
pub struct PartsChart {
    /// Title, size, notes.
    pub about: About,
    /// Rows, top to bottom.
    pub rows: Vec<PartRow>,
    /// The axis of values.
    pub axis: Axis,
}

impl PartsChart {
    /// The figure.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(&self.about);
        let mut extent = Extent::new(&self.axis);
        let mut bars = Vec::new();
        let mut end = 0.0;
        for row in &self.rows {
            let from = if row.total { 0.0 } else { end };
            end = from + row.value.value;
            bars.push((from, end));
            extent.add(end);
            if row.total {
                row.value.extend(&mut extent);
            }
        }
        if extent.range().is_none() {
            return canvas.empty();
        }
        extent.hint(0.0);
        let words: Vec<String> = self.rows.iter().map(|r| r.value.words(self.axis.format)).collect();
        let widest = words.iter().map(|w| text::width(w, SMALL) * text::BOLD).fold(0.0, f64::max);
        let widest = widest.min(canvas.width * 0.36);
        let names = self.rows.iter().map(|r| (r.label.as_str(), r.total));
        let layout = Rows::new(&canvas, names, 0.34, canvas.top, 30.0);
        let panel = (layout.left(), canvas.width - widest - 16.0);
        let frame = Frame::new(&self.axis, extent.limits(0.06), panel, (layout.top, layout.bottom() + 2.0));
        let below = frame.draw_x(&mut canvas, &self.axis.title);
        frame.reference_x(&mut canvas, 0.0, Style::stroke(Ink::Text, 1.0));
        for (i, (row, (from, to))) in self.rows.iter().zip(&bars).enumerate() {
            let y = layout.y(i);
            layout.name(&mut canvas, i, &row.label, row.total);
            let (a, b) = (frame.x.px_inside(*from), frame.x.px_inside(*to));
            let ink = if row.total {
                Ink::Text
            } else if i == 0 {
                Ink::Cure
            } else {
                Ink::Time
            };
            let style = Style::fill(ink).opacity(if row.total { 0.3 } else { 0.85 });
            canvas.rect(a.min(b), y - 8.0, (b - a).abs().max(1.0), 16.0, style);
            if row.total {
                let mark = Mark { radius: 4.2, cap: 4.0, ..Mark::new(Marker::Circle) };
                frame.estimate(&mut canvas, row.value, y, Ink::Text, mark);
            } else {
                // The next part begins here.
                canvas.line(b, y + 8.0, b, y + 22.0, Style::stroke(Ink::Axis, 1.0).dash("2 2"));
            }
            let value = Label::new(SMALL, Ink::Text).end().bold(row.total).at_most(widest + 4.0);
            canvas.text_mid(canvas.width - 2.0, y, &words[i], value);
        }
        canvas.finish(below)
    }
}
