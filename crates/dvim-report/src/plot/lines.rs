//! Line charts with points and intervals: horizon curves, paths of K, consistency, benchmarks.

use super::canvas::{BODY, Canvas, Label, Path, SMALL, Style};
use super::frame::{Frame, Key, legend, spread};
use super::palette::{Ink, SeriesStyle, series};
use super::scale::{Extent, Scale};
use super::{About, Axis, Estimate, Spacing, text};

/// Points of a series drawn at most with markers and whiskers; longer series are a line and a band.
const MARKED: usize = 40;

/// Lines of more points are drawn as the envelope of their columns.
const MANY: usize = 2000;

/// A point of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinePoint {
    /// Where it stands.
    pub x: f64,
    /// Its value, with an interval if there is one.
    pub y: Estimate,
}

/// A named line.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Its name, written at its end, or in a legend where there is no room.
    pub label: String,
    /// Its points; the line takes them in order of x.
    pub points: Vec<LinePoint>,
    /// Whether intervals are a shaded band; whiskers otherwise. More than 40 points always have a band.
    pub band: bool,
}

/// A reference line across the panel.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    /// Where it stands.
    pub value: f64,
    /// What it is: "chosen K".
    pub label: String,
}

/// Lines over a linear or log axis.
#[derive(Clone, Debug, Default)]
pub struct LineChart {
    /// Title, size, notes.
    pub about: About,
    /// The series; six at most differ in style.
    pub series: Vec<Series>,
    /// Axis across.
    pub x: Axis,
    /// Axis up.
    pub y: Axis,
    /// Level reference lines (values of y).
    pub levels: Vec<Reference>,
    /// Upright reference lines (values of x).
    pub marks: Vec<Reference>,
}

struct Drawable<'a> {
    label: &'a str,
    style: SeriesStyle,
    band: bool,
    points: Vec<LinePoint>,
}

impl LineChart {
    /// The figure.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(&self.about);
        let (mut xs, mut ys) = (Extent::new(&self.x), Extent::new(&self.y));
        let drawn: Vec<Drawable> = self
            .series
            .iter()
            .enumerate()
            .map(|(i, s)| {
                let mut points: Vec<LinePoint> = s.points.clone();
                points.retain(|p| {
                    // Only points that can be drawn may stretch the other axis.
                    let ok = self.x.drawable(p.x) && self.y.drawable(p.y.value);
                    xs.dropped += usize::from(!ok);
                    ok && xs.add(p.x) && p.y.extend(&mut ys)
                });
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
                Drawable { label: &s.label, style: series(i), band: s.band || points.len() > MARKED, points }
            })
            .collect();
        let log = self.x.spacing == Spacing::Log || self.y.spacing == Spacing::Log;
        canvas.note_dropped(xs.dropped + ys.dropped, log);
        if drawn.iter().all(|d| d.points.is_empty()) {
            return canvas.empty();
        }
        for level in &self.levels {
            ys.hint(level.value);
        }
        for mark in &self.marks {
            xs.hint(mark.value);
        }

        // Names stand at the ends of the lines if they leave the panel most of the width; else in a legend.
        let named: Vec<&Drawable> = drawn.iter().filter(|d| !d.label.is_empty() && !d.points.is_empty()).collect();
        let widest = named.iter().map(|d| text::width(d.label, BODY) * text::BOLD).fold(0.0, f64::max);
        let direct = !named.is_empty() && widest <= canvas.width * 0.26 && named.len() <= 8;
        let mut top = canvas.top + 4.0;
        if !direct {
            let items: Vec<(Key, &str)> =
                named.iter().map(|d| (Key::LinePoint(d.style.ink, d.style.dash, d.style.marker), d.label)).collect();
            top = legend(&mut canvas, 0.0, top, &items);
        }
        top += 24.0 + if self.marks.is_empty() { 0.0 } else { 14.0 };
        let title_y = top - 10.0 - if self.marks.is_empty() { 0.0 } else { 14.0 };
        let bottom = top + canvas.panel_height(270.0);
        let y = Scale::new(&self.y, ys.limits(0.06), (bottom, top));
        let right = canvas.width - if direct { widest + 14.0 } else { 14.0 };
        let frame = Frame::new(&self.x, xs.limits(0.03), (Frame::y_width(&y), right), (top, bottom));
        let below = frame.draw_x(&mut canvas, &self.x.title);
        frame.draw_y(&mut canvas, &y, "");
        let room = canvas.width;
        canvas.text(0.0, title_y, &self.y.title, Label::new(BODY, Ink::Text).at_most(room));

        let quiet = Style::stroke(Ink::Muted, 1.0).dash("4 3");
        for mark in &self.marks {
            if let Some(x) = frame.reference_x(&mut canvas, mark.value, quiet) {
                canvas.text_beside(x - 4.0, top - 8.0, 4.0, frame.right, &mark.label, Label::new(SMALL, Ink::Muted));
            }
        }
        canvas.begin_clip(frame.left - 6.0, top - 6.0, frame.right - frame.left + 12.0, bottom - top + 12.0);
        for level in self.levels.iter().filter(|l| l.value.is_finite() && y.contains(l.value)) {
            let py = y.px(level.value);
            canvas.line(frame.left, py, frame.right, py, quiet);
            // At the end where the lines are farther away.
            let away = |end: fn(&[LinePoint]) -> Option<&LinePoint>| {
                let each = drawn.iter().filter_map(|d| end(&d.points)).map(|p| (y.px_inside(p.y.value) - py).abs());
                each.fold(f64::INFINITY, f64::min)
            };
            let label = Label::new(SMALL, Ink::Muted).halo();
            if away(<[LinePoint]>::first) >= away(<[LinePoint]>::last) {
                canvas.text(frame.left + 4.0, py - 4.0, &level.label, label);
            } else {
                canvas.text(frame.right - 4.0, py - 4.0, &level.label, label.end());
            }
        }
        // All intervals lie under all lines.
        for d in &drawn {
            draw_intervals(&mut canvas, &frame, &y, d);
        }
        for d in &drawn {
            draw_line(&mut canvas, &frame, &y, d);
        }
        canvas.end_clip();
        if direct {
            let ends: Vec<(f64, f64)> =
                named.iter().filter_map(|d| d.points.last()).map(|p| (y.px_inside(p.y.value), 15.0)).collect();
            for (d, at) in named.iter().zip(spread(&ends, top - 6.0, bottom + 6.0)) {
                let label = Label::new(BODY, d.style.text).bold(true);
                canvas.text_mid(frame.right + 10.0, at, d.label, label);
            }
        }
        canvas.finish(below)
    }
}

fn draw_intervals(canvas: &mut Canvas, frame: &Frame, y: &Scale, d: &Drawable) {
    let intervals: Vec<(f64, f64, f64)> = d
        .points
        .iter()
        .filter_map(|p| p.y.drawable_interval().map(|(low, high)| (frame.x.px(p.x), y.px(low), y.px(high))))
        .collect();
    if d.band && intervals.len() > 1 {
        // Of intervals in the same half pixel the band shows the union.
        let union = |column: &[(f64, f64, f64)]| {
            let first = column[0];
            column.iter().fold(first, |(x, low, high), i| (x, low.max(i.1), high.min(i.2)))
        };
        let intervals: Vec<_> = intervals.chunk_by(|a, b| same_column(a.0, b.0)).map(union).collect();
        let mut band = Path::default();
        let lower = intervals.iter().rev().map(|&(x, low, _)| (x, low));
        band.polygon(intervals.iter().map(|&(x, _, high)| (x, high)).chain(lower));
        canvas.path(&band, Style::fill(d.style.ink).opacity(0.14));
    } else {
        let mut whiskers = Path::default();
        for (x, low, high) in intervals {
            whiskers.move_to(x, low).up_to(high);
        }
        canvas.path(&whiskers, Style::stroke(d.style.ink, 1.3));
    }
}

fn draw_line(canvas: &mut Canvas, frame: &Frame, y: &Scale, d: &Drawable) {
    let mut pixels: Vec<(f64, f64)> = d.points.iter().map(|p| (frame.x.px(p.x), y.px(p.y.value))).collect();
    if pixels.len() > MANY {
        pixels = envelope(&pixels);
    }
    let mut line = Path::default();
    line.polyline(pixels.iter().copied());
    canvas.path(&line, Style::stroke(d.style.ink, 1.9).dash(d.style.dash));
    if d.points.len() <= MARKED {
        for &(px, py) in &pixels {
            canvas.marker(d.style.marker, px, py, 3.6, Style::fill(d.style.ink).outline(Ink::Paper, 1.0), "");
        }
    }
}

fn same_column(a: f64, b: f64) -> bool {
    (a * 2.0).floor() == (b * 2.0).floor()
}

/// The lowest and highest pixel of each half-pixel column: what a line through very many points looks like.
fn envelope(pixels: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out: Vec<(f64, f64)> = Vec::new();
    for column in pixels.chunk_by(|a, b| same_column(a.0, b.0)) {
        let x = column[0].0;
        let (lo, hi) = column.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), p| (l.min(p.1), h.max(p.1)));
        out.push((x, lo));
        if hi > lo {
            out.push((x, hi));
        }
    }
    out
}
