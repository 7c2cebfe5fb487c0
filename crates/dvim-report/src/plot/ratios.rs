//! Ratios against one: speed-ups, errors relative to the paper's.

use super::canvas::{Canvas, Label, SMALL, Style};
use super::frame::{Frame, Mark, Rows};
use super::palette::{Ink, Marker};
use super::scale::Extent;
use super::{About, Axis, Estimate, text};

/// A row.
#[derive(Clone, Debug, Default)]
pub struct RatioRow {
    /// What was compared.
    pub label: String,
    /// The ratio, with an interval if there is one.
    pub ratio: Estimate,
    /// A remark written after the ratio: "12 ms".
    pub remark: String,
    /// Whether this is the row the reader should find first.
    pub emphasis: bool,
}

/// Ratios as dots on a stem from one, usually on a log axis, so that twice and half are equally far.
#[derive(Clone, Debug, Default)]
pub struct RatioChart {
    /// Title, size, notes.
    pub about: About,
    /// Rows, top to bottom.
    pub rows: Vec<RatioRow>,
    /// The axis of ratios; its format applies to the axis, the rows are written with ×.
    pub axis: Axis,
}

impl RatioChart {
    /// The figure.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(&self.about);
        let mut extent = Extent::new(&self.axis);
        for row in &self.rows {
            row.ratio.extend(&mut extent);
        }
        canvas.note_dropped(extent.dropped, self.axis.spacing == super::Spacing::Log);
        if extent.range().is_none() {
            return canvas.empty();
        }
        extent.hint(1.0);

        let words: Vec<String> = self
            .rows
            .iter()
            .map(|r| {
                let ratio = if self.axis.drawable(r.ratio.value) {
                    format!("{}×", text::short(r.ratio.value))
                } else {
                    "–".into()
                };
                if r.remark.is_empty() { ratio } else { format!("{ratio}, {}", r.remark) }
            })
            .collect();
        let widest =
            words.iter().map(|w| text::width(w, SMALL) * text::BOLD).fold(0.0, f64::max).min(canvas.width * 0.3);
        let layout =
            Rows::new(&canvas, self.rows.iter().map(|r| (r.label.as_str(), r.emphasis)), 0.36, canvas.top, 24.0);
        let panel = (layout.left(), canvas.width - widest - 14.0);
        let frame = Frame::new(&self.axis, extent.limits(0.05), panel, (layout.top, layout.bottom() + 2.0));
        let below = frame.draw_x(&mut canvas, &self.axis.title);
        let one = frame.reference_x(&mut canvas, 1.0, Style::stroke(Ink::Text, 1.0)).unwrap_or(frame.left);
        for (i, row) in self.rows.iter().enumerate() {
            let y = layout.y(i);
            layout.name(&mut canvas, i, &row.label, row.emphasis);
            let value = Label::new(SMALL, Ink::Text).end().bold(row.emphasis).at_most(widest + 2.0);
            canvas.text_mid(canvas.width - 2.0, y, &words[i], value);
            if self.axis.drawable(row.ratio.value) {
                let ink = if row.emphasis { Ink::Treated } else { Ink::Grey };
                canvas.line(one, y, frame.x.px_inside(row.ratio.value), y, Style::stroke(ink, 1.6).opacity(0.45));
                frame.estimate(
                    &mut canvas,
                    row.ratio,
                    y,
                    ink,
                    Mark { radius: 4.6, cap: 3.5, ..Mark::new(Marker::Circle) },
                );
            }
        }
        canvas.finish(below)
    }
}
