//! Forest plots: effects by subgroup.

use super::canvas::{BODY, Canvas, Label, SMALL, Style};
use super::frame::{Frame, Mark, Rows};
use super::palette::{Ink, Marker};
use super::scale::Extent;
use super::{About, Axis, Estimate, text};

/// How far subgroups stand in from their heading.
const INDENT: f64 = 10.0;

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
    /// Words instead of the estimate, for a heading: the test of an interaction.
    pub note: String,
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

/// Headings and the whole sample stand out; the other rows are indented.
fn is_bold(row: &ForestRow) -> bool {
    row.estimate.is_none() || row.overall
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
                (None, None) => r.note.clone(),
            })
            .collect();
        let numbers: Vec<String> = self.rows.iter().map(|r| r.n.map_or(String::new(), text::count)).collect();
        let widest = |all: &[String]| all.iter().map(|w| text::width(w, SMALL)).fold(0.0, f64::max);
        let (words_width, n_width) = (widest(&words) * text::BOLD + 2.0, widest(&numbers).max(14.0));
        let has_n = self.rows.iter().any(|r| r.n.is_some());
        let sides = !self.below.is_empty() || !self.above.is_empty();

        let top = canvas.top + if sides { 40.0 } else { 24.0 };
        let names = self.rows.iter().map(|r| (r.label.as_str(), is_bold(r)));
        let mut layout = Rows::new(&canvas, names, 0.3, top, 24.0);
        let n_end = layout.names + INDENT + if has_n { n_width + 14.0 } else { 0.0 };
        let mut panel = (n_end + 16.0, canvas.width - words_width - 14.0);
        // On a narrow figure the numbers stand under the marks instead of beside them.
        let narrow = panel.1 - panel.0 < 130.0;
        if narrow {
            layout.height = 36.0;
            panel = (layout.left() + INDENT, canvas.width - 14.0);
        }
        let frame = Frame::new(&self.axis, extent.limits(0.05), panel, (top - 2.0, layout.bottom() + 2.0));
        let below = frame.draw_x(&mut canvas, &self.axis.title);
        let null = frame.reference_x(&mut canvas, self.null, Style::stroke(Ink::Text, 1.0));
        let null = null.unwrap_or(frame.left);
        frame.sides(&mut canvas, null, top - 30.0, &self.below, &self.above);
        let head = Label::new(SMALL, Ink::Muted).end();
        if !narrow {
            canvas.text(n_end, top - 8.0, if has_n { "n" } else { "" }, head);
            canvas.text(canvas.width - 2.0, top - 8.0, "estimate (interval)", head);
        }

        let largest = self.rows.iter().filter(|r| !r.overall).filter_map(|r| r.n).max().unwrap_or(1).max(1) as f64;
        for (i, row) in self.rows.iter().enumerate() {
            let y = layout.y(i);
            let bold = is_bold(row);
            let indent = if bold { 0.0 } else { INDENT };
            let name = Label::new(BODY, Ink::Text).bold(bold).at_most(layout.names + INDENT - indent);
            canvas.text_mid(indent, y, &row.label, name);
            let value = Label::new(SMALL, Ink::Text).end().bold(row.overall);
            if narrow {
                let n = row.n.map_or(String::new(), |n| format!(", n {}", text::count(n)));
                canvas.text(frame.right, y + 13.0, &format!("{}{n}", words[i]), value.halo());
            } else {
                canvas.text_mid(n_end, y, &numbers[i], head);
                canvas.text_mid(canvas.width - 2.0, y, &words[i], value);
            }
            if let Some(estimate) = drawable(row) {
                let share = row.n.map_or(0.3, |n| (n as f64 / largest).min(1.0));
                let mark = if row.overall {
                    Mark { radius: 5.5, line: 2.0, ..Mark::new(Marker::Diamond) }
                } else {
                    Mark { radius: 3.0 + 3.0 * share.sqrt(), ..Mark::new(Marker::Square) }
                };
                frame.estimate(&mut canvas, estimate, if narrow { y - 6.0 } else { y }, Ink::Treated, mark);
            }
        }
        canvas.finish(below)
    }
}
