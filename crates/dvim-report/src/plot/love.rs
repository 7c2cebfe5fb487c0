//! Love plots: balance of each covariate before and after matching under both metrics, or as the averages weigh.

use super::canvas::{Canvas, Label, SMALL, Style};
use super::frame::{Frame, Key, Rows, legend};
use super::palette::{Ink, Marker};
use super::scale::Extent;
use super::{About, Axis, text};

/// Rows shown at most.
const MOST: usize = 40;

/// A covariate's standardised differences between arms.
#[derive(Clone, Debug, Default)]
pub struct LoveRow {
    /// Name of the covariate.
    pub covariate: String,
    /// Before matching.
    pub before: f64,
    /// Within groups matched for the cure effect.
    pub cure: Option<f64>,
    /// Within groups matched for the time effect.
    pub time: Option<f64>,
    /// Weighted as the averages weigh patients.
    pub average: Option<f64>,
}

impl LoveRow {
    /// What there is, in the order of the legend.
    fn values(&self) -> [Option<f64>; 4] {
        [Some(self.before), self.cure, self.time, self.average]
    }
}

/// Absolute standardised mean differences, the worst before matching first. With more than 40 covariates the first 40
/// are shown, and the figure says so.
#[derive(Clone, Debug, Default)]
pub struct LovePlot {
    /// Title, size, notes.
    pub about: About,
    /// The covariates, in any order. Signs are ignored.
    pub rows: Vec<LoveRow>,
    /// The difference up to which balance is called good (0.1 by custom).
    pub threshold: Option<f64>,
}

impl LovePlot {
    /// The figure.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(&self.about);
        let axis = Axis::new("Absolute standardised mean difference");
        let mut extent = Extent::new(&axis);
        let mut rows: Vec<&LoveRow> = self.rows.iter().collect();
        let size = |r: &LoveRow| if axis.drawable(r.before) { r.before.abs() } else { -1.0 };
        rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
        if rows.len() > MOST {
            let all = text::count(rows.len() as u64);
            canvas.note(format!("The {MOST} covariates with the largest differences before matching, of {all}."));
            rows.truncate(MOST);
        }
        for row in &rows {
            for value in row.values().into_iter().flatten() {
                extent.add(value.abs());
            }
        }
        canvas.note_dropped(extent.dropped, false);
        if extent.range().is_none() {
            return canvas.empty();
        }
        extent.hint(0.0);
        let threshold = self.threshold.filter(|t| axis.drawable(*t) && *t > 0.0);
        if let Some(threshold) = threshold {
            extent.hint(threshold * 1.2);
        }

        let states = [
            (
                if rows.iter().any(|r| r.average.is_some()) { "as they are" } else { "before matching" },
                Ink::Muted,
                Marker::Circle,
                true,
            ),
            ("matched for whether", Ink::Cure, Marker::Diamond, false),
            ("matched for when", Ink::Time, Marker::Square, false),
            ("weighted as in the averages", Ink::Text, Marker::Diamond, false),
        ];
        let used = |s: usize| rows.iter().any(|r| r.values()[s].is_some());
        let items: Vec<(Key, &str)> = (0..4)
            .filter(|&s| used(s))
            .map(|s| (Key::Point(states[s].1, states[s].2, states[s].3), states[s].0))
            .collect();
        let top = canvas.top;
        let top = legend(&mut canvas, 0.0, top, &items) + if threshold.is_some() { 16.0 } else { 2.0 };
        let layout = Rows::new(&canvas, rows.iter().map(|r| (r.covariate.as_str(), false)), 0.36, top, 22.0);
        let limits = (0.0, extent.limits(0.04).1);
        let frame = Frame::new(&axis, limits, (layout.left(), canvas.width - 14.0), (top, layout.bottom() + 2.0));
        let below = frame.draw_x(&mut canvas, &axis.title);
        if let Some(threshold) = threshold {
            let style = Style::stroke(Ink::Text, 1.0).dash("4 3");
            if let Some(x) = frame.reference_x(&mut canvas, threshold, style) {
                canvas.text(x, top - 5.0, &text::short(threshold), Label::new(SMALL, Ink::Muted).middle());
            }
        }
        for (i, row) in rows.iter().enumerate() {
            let y = layout.y(i);
            layout.name(&mut canvas, i, &row.covariate, false);
            let marks: Vec<(f64, usize)> = row
                .values()
                .into_iter()
                .enumerate()
                .filter_map(|(s, v)| Some((v?.abs(), s)))
                .filter(|(v, _)| axis.drawable(*v))
                .map(|(v, s)| (frame.x.px(v), s))
                .collect();
            let (lo, hi) = marks.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), m| (l.min(m.0), h.max(m.0)));
            if marks.len() > 1 {
                canvas.line(lo, y, hi, y, Style::stroke(Ink::Axis, 1.0));
            }
            for (x, s) in marks {
                let (_, ink, marker, hollow) = states[s];
                let style = if hollow {
                    Style::fill(Ink::Paper).outline(ink, 1.6)
                } else {
                    Style::fill(ink).outline(Ink::Paper, 0.8)
                };
                canvas.marker(marker, x, y, 4.2, style, "");
            }
        }
        canvas.finish(below)
    }
}
