//! The two metrics side by side: how much each covariate counts for cure and for time.

use super::About;
use super::canvas::{BODY, Canvas, Label, SMALL, Style};
use super::frame::Rows;
use super::palette::Ink;
use super::text;

/// Rows shown at most.
const MOST: usize = 30;

/// A covariate's weight in each metric.
#[derive(Clone, Debug, Default)]
pub struct WeightRow {
    /// Name of the covariate.
    pub covariate: String,
    /// Its weight in the metric for the cure effect.
    pub cure: f64,
    /// Its weight in the metric for the time effect.
    pub time: f64,
}

/// Bars of both metrics per covariate, the heaviest first (by the sum of its shares in both). With more than 30
/// covariates the first 30 are shown, and the figure says so.
#[derive(Clone, Debug, Default)]
pub struct MetricWeights {
    /// Title, size, notes.
    pub about: About,
    /// The covariates, in any order.
    pub rows: Vec<WeightRow>,
}

impl MetricWeights {
    /// The figure.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(&self.about);
        let usable = |w: f64| w.is_finite() && (0.0..=1e300).contains(&w);
        let mut rows: Vec<&WeightRow> = self.rows.iter().filter(|r| usable(r.cure) || usable(r.time)).collect();
        let bad = self.rows.iter().map(|r| usize::from(!usable(r.cure)) + usize::from(!usable(r.time))).sum();
        let keep = |w: f64| if usable(w) { w } else { 0.0 };
        let largest = |of: fn(&WeightRow) -> f64| self.rows.iter().map(|r| keep(of(r))).fold(0.0, f64::max);
        let (cure_most, time_most) = (largest(|r| r.cure), largest(|r| r.time));
        let share = |w: f64, most: f64| if most > 0.0 { keep(w) / most } else { 0.0 };
        let rank = |r: &WeightRow| share(r.cure, cure_most) + share(r.time, time_most);
        rows.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
        if rows.len() > MOST {
            canvas.note(format!(
                "The {MOST} covariates with the largest weights, of {}.",
                text::count(rows.len() as u64)
            ));
            rows.truncate(MOST);
        }
        canvas.note_dropped(bad, false);
        if rows.is_empty() {
            return canvas.empty();
        }

        let top = canvas.top + 24.0;
        let layout = Rows::new(&canvas, rows.iter().map(|r| (r.covariate.as_str(), false)), 0.34, top, 21.0);
        let panel = (canvas.width - layout.left() - 20.0) / 2.0;
        // Numbers of one metric have the same decimals; the longest bar leaves room for them.
        let width = |w: f64, most: f64| text::width(&text::weight(w, most), SMALL);
        let number = rows.iter().map(|r| width(r.cure, cure_most).max(width(r.time, time_most))).fold(0.0, f64::max);
        let longest = panel - number - 8.0;
        for (side, (heading, ink, ink_text)) in
            [("Cure metric", Ink::Cure, Ink::Cure), ("Time metric", Ink::Time, Ink::TimeText)].into_iter().enumerate()
        {
            let x = layout.left() + side as f64 * (panel + 20.0);
            canvas.text(x, top - 10.0, heading, Label::new(BODY, ink_text).bold(true).at_most(panel));
            canvas.line(x, top, x, layout.bottom(), Style::stroke(Ink::Axis, 1.0));
            for (i, row) in rows.iter().enumerate() {
                let (weight, most) = if side == 0 { (row.cure, cure_most) } else { (row.time, time_most) };
                let (y, length) = (layout.y(i), longest * share(weight, most));
                canvas.rect(x, y - 6.5, length, 13.0, Style::fill(ink));
                canvas.text_mid(x + length + 5.0, y, &text::weight(weight, most), Label::new(SMALL, Ink::Muted));
            }
        }
        for (i, row) in rows.iter().enumerate() {
            layout.name(&mut canvas, i, &row.covariate, false);
        }
        canvas.finish(layout.bottom())
    }
}
