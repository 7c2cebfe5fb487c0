//! The plane of cure effect against time effect.

use super::canvas::{BODY, Canvas, Label, Path, SMALL, Style};
use super::frame::{Frame, Mark};
use super::palette::{Ink, Marker};
use super::scale::{Extent, Scale};
use super::summary::{hexagons, sane_limits};
use super::{About, Axis, Estimate, text};

/// Up to this many units are drawn as dots; more are counted in hexagons.
const DOTS: usize = 600;
/// Shades of the hexagons.
const SHADES: usize = 6;
/// Radius of a hexagon in pixels.
const RADIUS: f64 = 6.0;

/// A point to be picked out: the average, or a patient.
#[derive(Clone, Debug, Default)]
pub struct PlanePoint {
    /// Its name, written beside it.
    pub label: String,
    /// Its cure effect.
    pub cure: Estimate,
    /// Its time effect.
    pub time: Estimate,
}

/// Each unit by its two effects, with the four ways to gain or lose said in words.
///
/// Many units are counted in hexagons; shades go with the logarithm of the count, and a key says what they mean.
#[derive(Clone, Debug, Default)]
pub struct EffectPlane {
    /// Title, size, notes.
    pub about: About,
    /// Cure effect and time effect of each unit; NaN where undefined.
    pub points: Vec<(f64, f64)>,
    /// Points picked out, with error bars.
    pub highlights: Vec<PlanePoint>,
    /// Axis of the cure effect (across).
    pub cure_axis: Axis,
    /// Axis of the time effect (up).
    pub time_axis: Axis,
}

impl EffectPlane {
    /// The figure.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(&self.about);
        let usable = |p: &&(f64, f64)| self.cure_axis.drawable(p.0) && self.time_axis.drawable(p.1);
        let points: Vec<(f64, f64)> = self.points.iter().filter(usable).copied().collect();
        let dropped = self.points.len() - points.len();
        if dropped > 0 {
            let units = if dropped == 1 { "unit has" } else { "units have" };
            canvas.note(format!(
                "{} {units} an effect that is undefined and no place here.",
                text::count(dropped as u64)
            ));
        }
        let highlights: Vec<&PlanePoint> = self
            .highlights
            .iter()
            .filter(|h| self.cure_axis.drawable(h.cure.value) && self.time_axis.drawable(h.time.value))
            .collect();
        if points.is_empty() && highlights.is_empty() {
            return canvas.empty();
        }

        let limits = |axis: &Axis, of: fn(&(f64, f64)) -> f64, marked: fn(&PlanePoint) -> Estimate| {
            let mut extent = Extent::new(axis);
            let mut values: Vec<f64> = points.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            if !values.is_empty() {
                let ((lo, hi), _) = sane_limits(&values);
                extent.hint(lo);
                extent.hint(hi);
            }
            extent.hint(0.0);
            for h in &highlights {
                marked(h).extend(&mut extent);
            }
            extent.limits(0.06)
        };
        let x_limits = limits(&self.cure_axis, |p| p.0, |h| h.cure);
        let y_limits = limits(&self.time_axis, |p| p.1, |h| h.time);

        let many = points.len() > DOTS;
        let top = canvas.top + if many { 46.0 } else { 26.0 };
        let bottom = top + canvas.panel_height((canvas.width * 0.58).min(420.0));
        let y = Scale::new(&self.time_axis, y_limits, (bottom, top));
        let left = Frame::y_width(&y);
        let frame = Frame::new(&self.cure_axis, x_limits, (left, canvas.width - 14.0), (top, bottom));
        let below = frame.draw_x(&mut canvas, &self.cure_axis.title);
        frame.draw_y(&mut canvas, &y, "");
        let room = canvas.width;
        canvas.text(0.0, canvas.top + 12.0, &self.time_axis.title, Label::new(BODY, Ink::Text).at_most(room));

        let inside = |p: &&(f64, f64)| frame.x.contains(p.0) && y.contains(p.1);
        let pixels: Vec<(f64, f64)> = points.iter().filter(inside).map(|p| (frame.x.px(p.0), y.px(p.1))).collect();
        if pixels.len() < points.len() {
            let n = text::count((points.len() - pixels.len()) as u64);
            canvas.note(format!("Patients beyond the axes: {n}."));
        }
        let mut key = None;
        if many {
            canvas.begin_clip(left, top, frame.right - left, bottom - top);
            key = Some(draw_hexagons(&mut canvas, &pixels));
            canvas.end_clip();
        } else {
            for (px, py) in &pixels {
                canvas.marker(Marker::Circle, *px, *py, 2.6, Style::fill(Ink::Treated).opacity(0.55), "");
            }
        }
        let zero = Style::stroke(Ink::Text, 1.0);
        let x0 = frame.reference_x(&mut canvas, 0.0, zero);
        if y.contains(0.0) {
            canvas.line(left, y.px(0.0), frame.right, y.px(0.0), zero);
        }
        self.draw_quadrants(&mut canvas, &frame, x0.unwrap_or(left), y.px_inside(0.0));
        draw_highlights(&mut canvas, &frame, &y, highlights);
        if let Some(counts) = key {
            draw_key(&mut canvas, &frame, &counts);
        }
        canvas.finish(below)
    }

    /// The four quadrants in words, in the corners; a quadrant too narrow for its words stays silent.
    fn draw_quadrants(&self, canvas: &mut Canvas, frame: &Frame, x0: f64, y0: f64) {
        let label = Label::new(SMALL, Ink::Text).halo();
        for (cure, x, room, label) in [
            ("fewer event-free", frame.left + 7.0, x0 - frame.left - 10.0, label),
            ("more event-free", frame.right - 7.0, frame.right - x0 - 10.0, label.end()),
        ] {
            for (time, y, tall) in [
                ("later events", frame.top + 16.0, y0 - frame.top),
                ("earlier events", frame.bottom - 8.0, frame.bottom - y0),
            ] {
                let words = format!("{cure}, {time}");
                let lines = text::wrap(&words, SMALL, room);
                let needed = lines.len() as f64 * 14.0 + 6.0;
                let fits = lines.iter().all(|l| !l.contains('…') && text::width(l, SMALL) <= room);
                if lines.len() <= 2 && fits && tall >= needed {
                    let first = if y < y0 { y } else { y - (lines.len() - 1) as f64 * 14.0 };
                    for (i, line) in lines.iter().enumerate() {
                        canvas.text(x, first + i as f64 * 14.0, line, label);
                    }
                }
            }
        }
    }
}

/// Draws the hexagons shade by shade and returns the smallest count of each shade, and the largest count of all.
fn draw_hexagons(canvas: &mut Canvas, pixels: &[(f64, f64)]) -> Vec<u64> {
    let cells = hexagons(pixels, RADIUS);
    let most = cells.iter().map(|c| c.2).max().unwrap_or(1);
    let shade = |n: u64| {
        let share = if most > 1 { (n as f64).ln() / (most as f64).ln() } else { 1.0 };
        ((share * SHADES as f64) as usize).min(SHADES - 1)
    };
    let mut starts = Vec::new();
    for s in 0..SHADES {
        let mut path = Path::default();
        for &(x, y, _) in cells.iter().filter(|c| shade(c.2) == s) {
            path.hexagon(x, y, RADIUS - 0.3);
        }
        canvas.path(&path, Style::fill(Ink::Treated).opacity(shade_opacity(s)));
        starts.extend((1..=most).find(|&n| shade(n) == s));
    }
    starts.push(most);
    starts
}

fn shade_opacity(shade: usize) -> f64 {
    0.14 + 0.78 * shade as f64 / (SHADES - 1) as f64
}

fn draw_key(canvas: &mut Canvas, frame: &Frame, counts: &[u64]) {
    let (y, step) = (canvas.top + 26.0, 22.0);
    let (first, most) = (counts[0], counts[counts.len() - 1]);
    let right = frame.right;
    let most = text::count(most);
    let start = right - text::width(&most, SMALL) - 6.0 - step * SHADES as f64;
    for s in 0..SHADES {
        canvas.rect(start + step * s as f64, y, step, 9.0, Style::fill(Ink::Treated).opacity(shade_opacity(s)));
    }
    let label = Label::new(SMALL, Ink::Muted);
    canvas.text(right, y + 8.5, &most, label.end());
    canvas.text(start - 6.0, y + 8.5, &format!("patients per cell  {first}"), label.end());
}

/// A box on the page: left, top, right, bottom.
type Area = [f64; 4];

/// How much of the page two boxes share.
fn shared(a: &Area, b: &Area) -> f64 {
    let along = |i: usize| (a[i + 2].min(b[i + 2]) - a[i].max(b[i])).max(0.0);
    along(0) * along(1)
}

/// The points with both intervals; names last, each where it hides least of the others.
fn draw_highlights<'a>(
    canvas: &mut Canvas,
    frame: &Frame,
    y: &Scale,
    points: impl IntoIterator<Item = &'a PlanePoint> + Clone,
) {
    let ink = Ink::Control;
    let at = |p: &PlanePoint| (frame.x.px_inside(p.cure.value), y.px_inside(p.time.value));
    let mut taken: Vec<Area> = Vec::new();
    for point in points.clone() {
        let (px, py) = at(point);
        for (wide, ink) in [(4.2, Ink::Paper), (1.8, ink)] {
            if let Some((low, high)) = point.time.drawable_interval() {
                let (low, high) = (y.px_inside(low), y.px_inside(high));
                canvas.line(px, low, px, high, Style::stroke(ink, wide));
                taken.push([px - 2.0, high, px + 2.0, low]);
            }
            frame.estimate(canvas, point.cure, py, ink, Mark { line: wide, ..Mark::new(Marker::Circle) });
        }
        if let Some((low, high)) = point.cure.drawable_interval() {
            taken.push([frame.x.px_inside(low), py - 2.0, frame.x.px_inside(high), py + 2.0]);
        }
    }
    for point in points.clone() {
        let (px, py) = at(point);
        canvas.marker(Marker::Circle, px, py, 5.0, Style::fill(ink).outline(Ink::Paper, 1.5), "");
        taken.push([px - 7.0, py - 7.0, px + 7.0, py + 7.0]);
    }
    let label = Label::new(BODY, Ink::Text).bold(true).halo();
    for point in points {
        let (px, py) = at(point);
        let (width, high) = (label.width(&point.label), 0.5 * BODY + 1.0);
        let mut best: Option<(f64, Area)> = None;
        for (far, up, right) in (1..=3).flat_map(|far| {
            [(true, true), (true, false), (false, true), (false, false)].map(|(up, right)| (f64::from(far), up, right))
        }) {
            let middle = if up { py - 12.0 * far } else { py + 12.0 * far };
            let left = if right { px + 8.0 } else { px - 8.0 - width };
            let area = [left, middle - high, left + width, middle + high];
            let outside = left < frame.left || area[2] > frame.right || area[1] < frame.top || area[3] > frame.bottom;
            let hidden = taken.iter().map(|t| shared(t, &area)).sum::<f64>() + if outside { 1e6 } else { 0.0 };
            if best.is_none_or(|(least, _)| hidden < least) {
                best = Some((hidden, area));
            }
        }
        let Some((_, area)) = best else { continue };
        canvas.text_mid(area[0], 0.5 * (area[1] + area[3]), &point.label, label);
        taken.push(area);
    }
}
