//! Many intervals around a value that they should hold, one under the other.

use super::canvas::{Canvas, Style};
use super::frame::{Frame, Mark};
use super::palette::{Ink, Marker};
use super::scale::Extent;
use super::{About, Axis, Estimate};

/// Height of one interval.
const ROW: f64 = 5.0;

/// Intervals in the order of their estimates; those that miss are marked by colour and by a hollow marker.
#[derive(Clone, Debug, Default)]
pub struct IntervalStack {
    /// Title, size, notes.
    pub about: About,
    /// The estimates with their intervals, less the truth.
    pub intervals: Vec<Estimate>,
    /// The axis of differences from the truth.
    pub axis: Axis,
    /// What lies below the truth, and above it.
    pub sides: [String; 2],
}

impl IntervalStack {
    /// The figure.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(&self.about);
        let mut extent = Extent::new(&self.axis);
        self.intervals.iter().for_each(|e| {
            e.extend(&mut extent);
        });
        if extent.range().is_none() {
            return canvas.empty();
        }
        extent.hint(0.0);
        let mut order: Vec<Estimate> = self.intervals.iter().copied().filter(|e| e.value.is_finite()).collect();
        order.sort_by(|a, b| a.value.total_cmp(&b.value));
        let top = canvas.top + 24.0;
        let bottom = top + ROW * order.len() as f64 + 8.0;
        let frame = Frame::new(&self.axis, extent.limits(0.05), (14.0, canvas.width - 14.0), (top, bottom));
        let below = frame.draw_x(&mut canvas, &self.axis.title);
        let zero = frame.reference_x(&mut canvas, 0.0, Style::stroke(Ink::Text, 1.0)).unwrap_or(frame.left);
        frame.sides(&mut canvas, zero, top - 10.0, &self.sides[0], &self.sides[1]);
        for (i, estimate) in order.into_iter().enumerate() {
            let missed = estimate.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0);
            let ink = if missed { Ink::Treated } else { Ink::Muted };
            let mark =
                Mark { radius: 1.9, hollow: missed, line: if missed { 2.2 } else { 1.0 }, ..Mark::new(Marker::Circle) };
            frame.estimate(&mut canvas, estimate, top + 6.0 + ROW * i as f64, ink, mark);
        }
        canvas.finish(below)
    }
}
