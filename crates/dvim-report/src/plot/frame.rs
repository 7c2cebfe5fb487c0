//! What figures are built from: a panel with axes, rows with names, a legend, intervals, labels that keep apart.

use super::Estimate;
use super::canvas::{BODY, Canvas, Label, Path, SMALL, Style};
use super::palette::{Ink, Marker};
use super::scale::{Axis, Scale};
use super::text;

/// A panel with a value axis below it and, in most figures, one to its left.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    pub x: Scale,
}

impl Frame {
    pub(super) fn new(axis: &Axis, limits: (f64, f64), (left, right): (f64, f64), (top, bottom): (f64, f64)) -> Self {
        let right = right.max(left + 60.0);
        Frame { left, right, top, bottom, x: Scale::new(axis, limits, (left, right)) }
    }

    /// Draws the lower axis with its grid and title; returns where the next part may begin.
    pub(super) fn draw_x(&self, canvas: &mut Canvas, title: &str) -> f64 {
        for tick in self.x.ticks_across(SMALL) {
            let x = self.x.px(tick.value);
            canvas.line(x, self.top, x, self.bottom, Style::stroke(Ink::Grid, 1.0));
            canvas.line(x, self.bottom, x, self.bottom + 4.0, Style::stroke(Ink::Axis, 1.0));
            canvas.text(x, self.bottom + 17.0, &tick.label, Label::new(SMALL, Ink::Muted).middle());
        }
        canvas.line(self.left, self.bottom, self.right, self.bottom, Style::stroke(Ink::Axis, 1.0));
        let middle = (self.left + self.right) / 2.0;
        let room = 2.0 * (middle).min(canvas.width - middle);
        let mut y = self.bottom + 35.0;
        for line in text::wrap(title, BODY, room) {
            canvas.text(middle, y, &line, Label::new(BODY, Ink::Text).middle());
            y += BODY * 1.3;
        }
        y - 8.0
    }

    /// Draws the left axis: light grid, labels, and the title set level above the panel, where it can be read.
    pub(super) fn draw_y(&self, canvas: &mut Canvas, y: &Scale, title: &str) {
        for tick in y.ticks_up() {
            let py = y.px(tick.value);
            canvas.line(self.left, py, self.right, py, Style::stroke(Ink::Grid, 1.0));
            canvas.text_mid(self.left - 7.0, py, &tick.label, Label::new(SMALL, Ink::Muted).end());
        }
        let room = canvas.width;
        canvas.text(0.0, self.top - 10.0, title, Label::new(BODY, Ink::Text).at_most(room));
    }

    /// Width that the labels of a left axis need.
    pub(super) fn y_width(y: &Scale) -> f64 {
        y.ticks_up().iter().map(|t| text::width(&t.label, SMALL)).fold(10.0, f64::max) + 10.0
    }

    /// A vertical reference line over the panel, if its value is on the axis.
    pub(super) fn reference_x(&self, canvas: &mut Canvas, value: f64, style: Style) -> Option<f64> {
        let on_axis = value.is_finite() && self.x.contains(value);
        on_axis.then(|| {
            let x = self.x.px(value);
            canvas.line(x, self.top, x, self.bottom, style);
            x
        })
    }

    /// What lies on either side of `x`, with arrows: "← fewer cured | more cured →".
    pub(super) fn sides(&self, canvas: &mut Canvas, x: f64, y: f64, below: &str, above: &str) {
        let label = Label::new(SMALL, Ink::Muted);
        // Words that do not fit lose the first of them, which both sides share, and then give way.
        let fitting = |words: &str, room: f64| {
            let shorter = words.split_once(' ').map_or("", |(_, rest)| rest);
            let fits = |w: &&str| !w.is_empty() && text::width(&format!("← {w}"), SMALL) <= room;
            [words, shorter].into_iter().find(fits).map(str::to_string)
        };
        if let Some(below) = fitting(below, x - 6.0).filter(|_| x > self.left + 20.0) {
            canvas.text(x - 6.0, y, &format!("← {below}"), label.end());
        }
        if let Some(above) = fitting(above, canvas.width - x - 6.0).filter(|_| x < self.right - 20.0) {
            canvas.text(x + 6.0, y, &format!("{above} →"), label);
        }
    }

    /// An estimate with its interval, level at `y`; an interval that runs off the panel ends in an arrow.
    pub(super) fn estimate(&self, canvas: &mut Canvas, estimate: Estimate, y: f64, ink: Ink, mark: Mark) {
        if let Some((low, high)) = estimate.drawable_interval() {
            let (a, b) = (self.x.px_inside(low), self.x.px_inside(high));
            canvas.line(a, y, b, y, Style::stroke(ink, mark.line));
            for (end, value, way) in [(a, low, -1.0), (b, high, 1.0)] {
                if self.x.contains(value) {
                    canvas.line(end, y - mark.cap, end, y + mark.cap, Style::stroke(ink, mark.line));
                } else {
                    let mut arrow = Path::default();
                    arrow.polyline([(end - way * 5.0, y - 4.0), (end, y), (end - way * 5.0, y + 4.0)]);
                    canvas.path(&arrow, Style::stroke(ink, mark.line));
                }
            }
        }
        if self.x.contains(estimate.value) {
            let x = self.x.px(estimate.value);
            let style = if mark.hollow { Style::fill(Ink::Paper).outline(ink, 1.6) } else { Style::fill(ink) };
            canvas.marker(mark.marker, x, y, mark.radius, style, "");
        }
    }
}

/// How an estimate is marked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub marker: Marker,
    pub radius: f64,
    pub hollow: bool,
    pub line: f64,
    pub cap: f64,
}

impl Mark {
    pub(super) fn new(marker: Marker) -> Self {
        Mark { marker, radius: 4.0, hollow: false, line: 1.4, cap: 0.0 }
    }
}

/// Named rows, top to bottom: names to the left of a panel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    /// Room for the names.
    pub names: f64,
    pub top: f64,
    pub height: f64,
    pub count: usize,
}

impl Rows {
    /// Rows under `top` with names (and whether they are bold) as wide as they are, up to a share of the canvas.
    pub(super) fn new<'s>(
        canvas: &Canvas,
        names: impl Iterator<Item = (&'s str, bool)>,
        share: f64,
        top: f64,
        height: f64,
    ) -> Self {
        let (mut widest, mut count) = (0.0f64, 0);
        for (name, bold) in names {
            widest = widest.max(text::width(name, BODY) * if bold { text::BOLD } else { 1.0 });
            count += 1;
        }
        Rows { names: (widest + 2.0).min(canvas.width * share), top, height, count }
    }

    /// Where the panel begins.
    pub(super) fn left(&self) -> f64 {
        self.names + 12.0
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height * self.count as f64
    }

    /// Height of the middle of a row.
    pub(super) fn y(&self, row: usize) -> f64 {
        self.top + self.height * (row as f64 + 0.5)
    }

    /// A row's name, flush with the panel, shortened if need be.
    pub(super) fn name(&self, canvas: &mut Canvas, row: usize, name: &str, bold: bool) {
        let label = Label::new(BODY, Ink::Text).end().bold(bold).at_most(self.names);
        canvas.text_mid(self.names, self.y(row), name, label);
    }
}

/// The sign beside a word in a legend.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key {
    Point(Ink, Marker, bool),
    LinePoint(Ink, &'static str, Marker),
}

/// Draws a legend in as many lines as it needs; returns where the next part may begin.
pub(super) fn legend(canvas: &mut Canvas, x: f64, y: f64, items: &[(Key, &str)]) -> f64 {
    if items.is_empty() {
        return y;
    }
    let (mut px, mut py) = (x, y + 8.0);
    for &(key, words) in items {
        let sign = if matches!(key, Key::Point(..)) { 12.0 } else { 26.0 };
        let room = canvas.width - x - sign - 6.0;
        let width = sign + 6.0 + text::width(words, BODY).min(room) + 18.0;
        if px > x && px + width - 18.0 > canvas.width {
            px = x;
            py += 18.0;
        }
        if let Key::LinePoint(ink, dash, _) = key {
            canvas.line(px, py, px + sign, py, Style::stroke(ink, 2.0).dash(dash));
        }
        let (Key::Point(ink, marker, _) | Key::LinePoint(ink, _, marker)) = key;
        let hollow = matches!(key, Key::Point(_, _, true));
        let style = if hollow { Style::fill(Ink::Paper).outline(ink, 1.6) } else { Style::fill(ink) };
        canvas.marker(marker, px + sign / 2.0, py, 4.0, style, "");
        canvas.text_mid(px + sign + 6.0, py, words, Label::new(BODY, Ink::Text).at_most(room));
        px += width;
    }
    py + 14.0
}

/// Moves wanted heights as little as their order allows until each block has its room, inside `lo..hi` if that can be.
///
/// `wanted` holds (middle, height) of each block; the result is the middles in the same order.
pub(super) fn spread(wanted: &[(f64, f64)], lo: f64, hi: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].0.total_cmp(&wanted[b].0).then(a.cmp(&b)));
    let mut placed: Vec<f64> = wanted.iter().map(|w| w.0).collect();
    let gap = |a: usize, b: usize| (wanted[a].1 + wanted[b].1) / 2.0;
    for _ in 0..60 {
        let mut moved = false;
        for pair in order.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let overlap = gap(a, b) - (placed[b] - placed[a]);
            if overlap > 0.01 {
                placed[a] -= overlap / 2.0;
                placed[b] += overlap / 2.0;
                moved = true;
            }
        }
        for (at, w) in placed.iter_mut().zip(wanted) {
            let (low, high) = (lo + w.1 / 2.0, hi - w.1 / 2.0);
            let kept = if low <= high { at.clamp(low, high) } else { *at };
            moved |= (kept - *at).abs() > 0.01;
            *at = kept;
        }
        if !moved {
            break;
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn labels_keep_apart_and_inside() {
        let placed = spread(&[(50.0, 14.0), (52.0, 14.0), (51.0, 14.0)], 0.0, 200.0);
        assert!(placed[2] - placed[0] > 13.9 && placed[1] - placed[2] > 13.9, "{placed:?}");
        let placed = spread(&[(2.0, 14.0), (3.0, 14.0)], 0.0, 200.0);
        assert!(placed[0] >= 6.9 && placed[1] - placed[0] > 13.0, "{placed:?}");
    }
}
