//! Violins: the shape of a distribution, one row per group.

use super::boxes::Drawn;
use super::canvas::{Canvas, Path, Style};
use super::frame::{Frame, Rows};
use super::palette::{Ink, Marker};
use super::scale::Extent;
use super::summary::density;
use super::{About, Axis};

/// Points along a violin.
const GRID: usize = 90;

/// One row.
#[derive(Clone, Debug, Default)]
pub struct ViolinGroup {
    /// Its name.
    pub label: String,
    /// Its values, in any order.
    pub values: Vec<f64>,
    /// Whether this is the group the reader should find first.
    pub emphasis: bool,
}

/// Kernel densities by group, from the smallest to the largest value and all of one height, with the median (dot) and
/// the quartiles (bar).
#[derive(Clone, Debug, Default)]
pub struct Violins {
    /// Title, size, notes.
    pub about: About,
    /// The groups, top to bottom.
    pub groups: Vec<ViolinGroup>,
    /// The axis of values.
    pub axis: Axis,
    /// A reference value drawn as a line (zero, say).
    pub reference: Option<f64>,
}

impl Violins {
    /// The figure.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(&self.about);
        // A density on a log axis would be another density: violins are linear.
        let axis = Axis { spacing: super::Spacing::Linear, ..self.axis.clone() };
        let mut extent = Extent::new(&axis);
        let sorted: Vec<Vec<f64>> = self
            .groups
            .iter()
            .map(|g| {
                let mut values: Vec<f64> = g.values.iter().copied().filter(|&v| extent.add(v)).collect();
                values.sort_by(f64::total_cmp);
                values
            })
            .collect();
        canvas.note_dropped(extent.dropped, false);
        if extent.range().is_none() {
            return canvas.empty();
        }
        if let Some(reference) = self.reference {
            extent.hint(reference);
        }

        let layout =
            Rows::new(&canvas, self.groups.iter().map(|g| (g.label.as_str(), g.emphasis)), 0.36, canvas.top, 44.0);
        let panel = (layout.left(), canvas.width - 14.0);
        let frame = Frame::new(&axis, extent.limits(0.03), panel, (layout.top, layout.bottom() + 2.0));
        let below = frame.draw_x(&mut canvas, &axis.title);
        if let Some(reference) = self.reference {
            frame.reference_x(&mut canvas, reference, Style::stroke(Ink::Text, 1.0));
        }
        for (i, (group, values)) in self.groups.iter().zip(&sorted).enumerate() {
            layout.name(&mut canvas, i, &group.label, group.emphasis);
            if !values.is_empty() {
                draw_violin(&mut canvas, &frame, values, layout.y(i), group.emphasis);
            }
        }
        canvas.finish(below)
    }
}

fn draw_violin(canvas: &mut Canvas, frame: &Frame, values: &[f64], y: f64, emphasis: bool) {
    let (lo, hi) = (values[0], values[values.len() - 1]);
    if frame.x.px(hi) - frame.x.px(lo) > 1.0 {
        let half = 18.0;
        let curve: Vec<(f64, f64)> =
            density(values, GRID).into_iter().map(|(v, d)| (frame.x.px(v), d * half)).collect();
        let mut shape = Path::default();
        let upper = curve.iter().map(|&(x, d)| (x, y - d));
        shape.polygon(upper.chain(curve.iter().rev().map(|&(x, d)| (x, y + d))));
        let opacity = if emphasis { 0.6 } else { 0.22 };
        canvas.path(&shape, Style::fill(Ink::Treated).opacity(opacity).outline(Ink::Treated, 1.2));
    }
    let [_, q1, q2, q3, _] = Drawn::from_sorted(values).five.map(|v| frame.x.px(v));
    canvas.line(q1, y, q3, y, Style::stroke(Ink::Text, 3.0));
    canvas.marker(Marker::Circle, q2, y, 3.6, Style::fill(Ink::Paper).outline(Ink::Text, 1.6), "");
}
