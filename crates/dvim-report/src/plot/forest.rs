//! Forest plots: effects by subgroup.

use super::canvas::{BODY, Canvas, Label, SMALL, Style};
use super::frame::{Frame, Mark, Rows};
use super::palette::{Ink, Marker};
use super::scale::Extent;
use super::{About, Axis, Estimate, text};

/// A row: a heading when it has no estimate.
#[derive(Clone, Debug, Default)]
pub struct ForestRow {
    /// Name of the subgroup.
    pub label: String,
    /// Its effect.
    pub estimate: Option<Estimate>,
    /// Units in it; the marker grows with their square root.
    pub n: Option<u64>,
    /// Whether this is the whole sample, drawn as a diamond.
    pub overall: bool,
}

/// Effects with intervals against the value of no effect, and the numbers beside them.
#[derive(Clone, Debug, Default)]
pub struct ForestPlot {
    /// Title, size, notes.
    pub about: About,
    /// Rows, top to bottom.
    pub rows: Vec<ForestRow>,
    /// The axis of effects.
    pub axis: Axis,
    /// The value of no effect: 0 for differences, 1 for ratios.
    pub null: f64,
    /// What lies below the null: "fewer cured".
    pub below: String,
    /// What lies above it.
    pub above: String,
}

impl ForestPlot {
    /// The figure.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(&self.about);
        let mut extent = Extent::new(&self.axis);
        for estimate in self.rows.iter().filter_map(|r| r.estimate) {
            estimate.extend(&mut extent);
        }
        canvas.note_dropped(extent.dropped, self.axis.spacing == super::Spacing::Log);
        if extent.range().is_none() {
            return canvas.empty();
        }
        extent.hint(self.null);

        let drawable = |r: &ForestRow| r.estimate.filter(|e| self.axis.drawable(e.value));
        let words: Vec<String> = self
            .rows
            .iter()
            .map(|r| match (drawable(r), r.estimate) {
                (Some(e), _) => e.words(self.axis.format),
                (None, Some(_)) => "undefined".into(),
                (None, None) => String::new(),
            })
            .collect();
        let numbers: Vec<String> = self.rows.iter().map(|r| r.n.map_or(String::new(), text::count)).collect();
        let widest = |all: &[String]| all.iter().map(|w| text::width(w, SMALL)).fold(0.0, f64::max);
        let (words_width, n_width) = (widest(&words) * 1.06 + 2.0, widest(&numbers).max(14.0));
        let has_n = self.rows.iter().any(|r| r.n.is_some());
        let sides = !self.below.is_empty() || !self.above.is_empty();

        let top = canvas.top + if sides { 40.0 } else { 24.0 };
        let names = self.rows.iter().map(|r| r.label.as_str());
        let layout = Rows::new(&canvas, names, 0.3, top, 24.0);
        let n_end = layout.names + if has_n { n_width + 14.0 } else { 0.0 };
        let panel = (n_end + 16.0, canvas.width - words_width - 14.0);
        let frame = Frame::new(&self.axis, extent.limits(0.05), panel, (top - 2.0, layout.bottom() + 2.0));
        let below = frame.draw_x(&mut canvas, &self.axis.title);
        let null = frame.reference_x(&mut canvas, self.null, Style::stroke(Ink::Text, 1.0));
        self.draw_heads(&mut canvas, &frame, n_end, has_n, null);

        let largest = self.rows.iter().filter(|r| !r.overall).filter_map(|r| r.n).max().unwrap_or(1).max(1) as f64;
        for (i, row) in self.rows.iter().enumerate() {
            let y = layout.y(i);
            let heading = row.estimate.is_none();
            let bold = heading || row.overall;
            let indent = if bold { 0.0 } else { 10.0 };
            let name = Label::new(BODY, Ink::Text).bold(bold).at_most(layout.names - indent);
            canvas.text_mid(indent, y, &row.label, name);
            canvas.text_mid(n_end, y, &numbers[i], Label::new(SMALL, Ink::Muted).end());
            let value = Label::new(SMALL, Ink::Text).end().bold(row.overall);
            canvas.text_mid(canvas.width - 2.0, y, &words[i], value);
            if let Some(estimate) = drawable(row) {
                let share = row.n.map_or(0.3, |n| (n as f64 / largest).min(1.0));
                let mark = if row.overall {
                    Mark { radius: 5.5, line: 2.0, ..Mark::new(Marker::Diamond) }
                } else {
                    Mark { radius: 3.0 + 3.0 * share.sqrt(), ..Mark::new(Marker::Square) }
                };
                frame.estimate(&mut canvas, estimate, y, Ink::Treated, mark);
            }
        }
        canvas.finish(below)
    }

    fn draw_heads(&self, canvas: &mut Canvas, frame: &Frame, n_end: f64, has_n: bool, null: Option<f64>) {
        let label = Label::new(SMALL, Ink::Muted);
        let y = canvas.top + 10.0;
        if has_n {
            canvas.text(n_end, y, "n", label.end());
        }
        let has_intervals = self.rows.iter().any(|r| r.estimate.is_some_and(|e| e.interval.is_some()));
        let head = if has_intervals { "estimate (interval)" } else { "estimate" };
        canvas.text(canvas.width - 2.0, y, head, label.end());
        let x = null.unwrap_or(frame.left);
        let y = frame.top - 8.0;
        if !self.below.is_empty() && x > frame.left + 20.0 {
            let words = format!("← {}", self.below);
            canvas.text(x - 6.0, y, &words, label.end().at_most(x - 6.0));
        }
        if !self.above.is_empty() {
            let words = format!("{} →", self.above);
            canvas.text(x + 6.0, y, &words, label.at_most(canvas.width - x - 6.0));
        }
    }
}
