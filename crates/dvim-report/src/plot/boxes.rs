//! Box plots, one row per group.

use super::canvas::{Canvas, Path, Style};
use super::frame::{Frame, Rows};
use super::palette::{Ink, Marker};
use super::scale::Extent;
use super::summary::quantile;
use super::{About, Axis};

/// Outliers drawn at most on each side of a box, spread evenly from the nearest to the farthest.
const OUTLIERS: usize = 40;

/// What a box is drawn from.
#[derive(Clone, Debug)]
pub enum BoxSummary {
    /// Values; the figure takes quartiles (R's type 7), whiskers to the farthest value within 1.5 interquartile ranges
    /// of the box, and values beyond as dots.
    Samples(Vec<f64>),
    /// Lower whisker, first quartile, median, third quartile, upper whisker.
    Five([f64; 5]),
}

/// One row.
#[derive(Clone, Debug)]
pub struct BoxGroup {
    /// Its name.
    pub label: String,
    /// What its box is drawn from.
    pub summary: BoxSummary,
    /// Whether this is the group the reader should find first.
    pub emphasis: bool,
}

/// Box plots by method or group, level, so that long names can be read.
#[derive(Clone, Debug, Default)]
pub struct BoxPlots {
    /// Title, size, notes.
    pub about: About,
    /// The groups, top to bottom.
    pub groups: Vec<BoxGroup>,
    /// The axis of values.
    pub axis: Axis,
    /// A reference value drawn as a line (zero, say).
    pub reference: Option<f64>,
}

/// Five numbers in order, and the values beyond the whiskers.
pub(super) struct Drawn {
    pub five: [f64; 5],
    outliers: Vec<f64>,
}

impl Drawn {
    /// From sorted values, of which there must be one.
    pub(super) fn from_sorted(sorted: &[f64]) -> Self {
        let (q1, q2, q3) = (quantile(sorted, 0.25), quantile(sorted, 0.5), quantile(sorted, 0.75));
        let reach = 1.5 * (q3 - q1);
        let first = sorted.partition_point(|&v| v < q1 - reach);
        let last = sorted.partition_point(|&v| v <= q3 + reach);
        let mut outliers = thin(&sorted[..first]);
        outliers.extend(thin(&sorted[last..]));
        // With interpolated quartiles the last value inside can lie within the box.
        Drawn { five: [sorted[first].min(q1), q1, q2, q3, sorted[last - 1].max(q3)], outliers }
    }
}

/// At most [`OUTLIERS`] of sorted values, both ends among them.
fn thin(sorted: &[f64]) -> Vec<f64> {
    if sorted.len() <= OUTLIERS {
        return sorted.to_vec();
    }
    (0..OUTLIERS).map(|i| sorted[i * (sorted.len() - 1) / (OUTLIERS - 1)]).collect()
}

impl BoxPlots {
    /// The figure.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(&self.about);
        let mut extent = Extent::new(&self.axis);
        let mut thinned = false;
        let drawn: Vec<Option<Drawn>> = self
            .groups
            .iter()
            .map(|group| match &group.summary {
                BoxSummary::Samples(values) => {
                    let mut values: Vec<f64> = values.iter().copied().filter(|&v| extent.add(v)).collect();
                    values.sort_by(f64::total_cmp);
                    let drawn = (!values.is_empty()).then(|| Drawn::from_sorted(&values))?;
                    let beyond = values.iter().filter(|&&v| v < drawn.five[0] || v > drawn.five[4]).count();
                    thinned |= beyond > drawn.outliers.len();
                    Some(drawn)
                }
                BoxSummary::Five(five) => {
                    let mut five = *five;
                    let usable = five.iter().filter(|&&v| extent.add(v)).count() == 5;
                    five.sort_by(f64::total_cmp);
                    usable.then(|| Drawn { five, outliers: Vec::new() })
                }
            })
            .collect();
        if thinned {
            canvas.note("Not every value beyond the whiskers is drawn; the farthest are.");
        }
        canvas.note_dropped(extent.dropped, self.axis.spacing == super::Spacing::Log);
        if drawn.iter().all(Option::is_none) {
            return canvas.empty();
        }
        if let Some(reference) = self.reference {
            extent.hint(reference);
        }

        let layout =
            Rows::new(&canvas, self.groups.iter().map(|g| (g.label.as_str(), g.emphasis)), 0.36, canvas.top, 30.0);
        let panel = (layout.left(), canvas.width - 14.0);
        let frame = Frame::new(&self.axis, extent.limits(0.03), panel, (layout.top, layout.bottom() + 4.0));
        let below = frame.draw_x(&mut canvas, &self.axis.title);
        if let Some(reference) = self.reference {
            frame.reference_x(&mut canvas, reference, Style::stroke(Ink::Text, 1.0));
        }
        for (i, (group, drawn)) in self.groups.iter().zip(&drawn).enumerate() {
            layout.name(&mut canvas, i, &group.label, group.emphasis);
            if let Some(drawn) = drawn {
                draw_box(&mut canvas, &frame, drawn, layout.y(i), group.emphasis);
            }
        }
        canvas.finish(below)
    }
}

fn draw_box(canvas: &mut Canvas, frame: &Frame, drawn: &Drawn, y: f64, emphasis: bool) {
    let [low, q1, q2, q3, high] = drawn.five.map(|v| frame.x.px_inside(v));
    let line = Style::stroke(Ink::Treated, 1.2);
    let mut whiskers = Path::default();
    whiskers.move_to(low, y).across_to(q1).move_to(q3, y).across_to(high);
    whiskers.move_to(low, y - 4.0).up_to(y + 4.0).move_to(high, y - 4.0).up_to(y + 4.0);
    canvas.path(&whiskers, line);
    let opacity = if emphasis { 1.0 } else { 0.22 };
    canvas.rect(q1, y - 8.5, q3 - q1, 17.0, Style::fill(Ink::Treated).opacity(opacity).outline(Ink::Treated, 1.2));
    canvas.line(q2, y - 8.5, q2, y + 8.5, Style::stroke(if emphasis { Ink::Paper } else { Ink::Treated }, 2.4));
    for &v in drawn.outliers.iter().filter(|&&v| frame.x.contains(v)) {
        canvas.marker(Marker::Circle, frame.x.px(v), y, 1.7, Style::fill(Ink::Treated).opacity(0.55), "");
    }
}
