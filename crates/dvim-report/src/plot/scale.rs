//! From data to pixels: linear and log scales with ticks at round numbers.

use super::text;
use crate::text::decimals_between;

/// The largest size a value may have to be drawn; beyond it differences overflow.
const LARGEST: f64 = 1e300;

/// How distances along an axis relate to values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// Equal differences, equal distances.
    #[default]
    Linear,
    /// Equal ratios, equal distances. Values that are not positive cannot be drawn, and are counted.
    Log,
}

/// How values are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// 1,000 or 0.25.
    #[default]
    Number,
    /// +1,000 or −0.25: for differences.
    Signed,
    /// A share between 0 and 1, written 25%.
    Percent,
    /// A difference of shares, written in percentage points: +5 for 0.05. The axis title names the unit.
    Points,
    /// A ratio, written 2×.
    Times,
}

impl Format {
    fn factor(self) -> f64 {
        if matches!(self, Format::Percent | Format::Points) { 100.0 } else { 1.0 }
    }

    fn dress(self, value: f64, digits: String) -> String {
        let nonzero = digits.contains(|c: char| c.is_ascii_digit() && c != '0');
        match self {
            Format::Number => digits,
            Format::Signed | Format::Points if value > 0.0 && nonzero => format!("+{digits}"),
            Format::Signed | Format::Points => digits,
            Format::Percent => format!("{digits}%"),
            Format::Times => format!("{digits}×"),
        }
    }

    /// A single value, to about three significant digits (shares: one decimal of a percent).
    pub fn value(self, value: f64) -> String {
        let scaled = value * self.factor();
        let digits = match self {
            Format::Percent | Format::Points => text::fixed(scaled, 1),
            _ => text::number(scaled),
        };
        self.dress(value, digits)
    }

    /// A value with the decimals that its interval allows, as in the text around the figure (shares: one decimal of a
    /// percent).
    pub fn value_between(self, value: f64, low: f64, high: f64) -> String {
        match self {
            Format::Number | Format::Signed => self.dress(value, text::fixed(value, decimals_between(low, high))),
            _ => self.value(value),
        }
    }

    /// An interval: "57.1 to 66.8". The sign of percent is written once, at the end.
    pub fn interval(self, low: f64, high: f64) -> String {
        let low = self.value(low);
        format!("{} to {}", low.trim_end_matches(['%', '×']), self.value(high))
    }

    fn tick(self, value: f64, step: f64) -> String {
        let (value, step) = (value * self.factor(), step * self.factor());
        let decimals = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
        let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
        let digits = if value.abs() >= 1e7 || decimals > 5 {
            let mantissa = (value.abs().log10().floor() - step.log10().floor()).clamp(0.0, 3.0);
            text::scientific(value, mantissa as usize)
        } else {
            text::fixed(value, decimals)
        };
        self.dress(value, digits)
    }
}

/// What an axis says and how it is spaced.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// Quantity and unit: "Time since transplant (days)".
    pub title: String,
    /// Linear or log.
    pub spacing: Spacing,
    /// How values are written.
    pub format: Format,
    /// First and last value shown; the data decide when this is `None`.
    pub limits: Option<(f64, f64)>,
    /// Where ticks stand; round numbers when this is `None`.
    pub ticks: Option<Vec<f64>>,
}

impl Axis {
    /// A linear axis of plain numbers.
    pub fn new(title: impl Into<String>) -> Self {
        Axis { title: title.into(), ..Axis::default() }
    }

    /// The same axis with logarithmic spacing.
    pub fn log(mut self) -> Self {
        self.spacing = Spacing::Log;
        self
    }

    /// The same axis with its values written in another way.
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// The same axis from `low` to `high`.
    pub fn limits(mut self, low: f64, high: f64) -> Self {
        self.limits = Some((low, high));
        self
    }

    /// The same axis with ticks at these values.
    pub fn ticks(mut self, ticks: Vec<f64>) -> Self {
        self.ticks = Some(ticks);
        self
    }

    /// Whether a value has a place on this axis.
    pub(super) fn drawable(&self, value: f64) -> bool {
        value.is_finite() && value.abs() <= LARGEST && (self.spacing == Spacing::Linear || value > 1e-300)
    }
}

/// The smallest and largest drawable value seen, and how many values could not be drawn.
#[derive(Clone, Debug)]
pub(super) struct Extent<'a> {
    axis: &'a Axis,
    range: Option<(f64, f64)>,
    pub dropped: usize,
}

impl<'a> Extent<'a> {
    pub(super) fn new(axis: &'a Axis) -> Self {
        Extent { axis, range: None, dropped: 0 }
    }

    /// Takes a value in; false, and counted, when it cannot be drawn.
    pub(super) fn add(&mut self, value: f64) -> bool {
        let ok = self.hint(value);
        self.dropped += usize::from(!ok);
        ok
    }

    /// Takes in a value that is not data (a reference line, say): never counted.
    pub(super) fn hint(&mut self, value: f64) -> bool {
        if !self.axis.drawable(value) {
            return false;
        }
        let (lo, hi) = self.range.unwrap_or((value, value));
        self.range = Some((lo.min(value), hi.max(value)));
        true
    }

    /// Smallest and largest; `None` when nothing was drawable.
    pub(super) fn range(&self) -> Option<(f64, f64)> {
        self.range
    }

    /// Limits for the axis: its own if it has usable ones, else the data's with `pad` (a share of the range) on both
    /// sides.
    pub(super) fn limits(&self, pad: f64) -> (f64, f64) {
        let usable = |&(lo, hi): &(f64, f64)| self.axis.drawable(lo) && self.axis.drawable(hi) && separate(lo, hi);
        if let Some(limits) = self.axis.limits.filter(usable) {
            return limits;
        }
        let (lo, hi) = self.range.unwrap_or(if self.axis.spacing == Spacing::Log { (1.0, 10.0) } else { (0.0, 1.0) });
        if self.axis.spacing == Spacing::Log {
            let (lo, hi) = if separate(lo.ln(), hi.ln()) { (lo, hi) } else { (lo / 2.0, hi * 2.0) };
            let margin = (hi.ln() - lo.ln()) * pad;
            return ((lo.ln() - margin).exp().max(1e-305), (hi.ln() + margin).exp().min(1e305));
        }
        if separate(lo, hi) {
            let margin = (hi - lo) * pad;
            return (lo - margin, hi + margin);
        }
        let margin = if lo.abs() > 1e-9 { lo.abs() * 0.1 } else { 1.0 };
        (lo - margin, hi + margin)
    }
}

/// Whether two limits are far enough apart for ticks between them to be told apart.
fn separate(lo: f64, hi: f64) -> bool {
    hi - lo > 1e-280 && hi - lo > 1e-10 * lo.abs().max(hi.abs())
}

/// A labelled place on an axis.
#[derive(Clone, Debug)]
pub(super) struct Tick {
    pub value: f64,
    pub label: String,
}

/// An axis laid onto pixels.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    spacing: Spacing,
    format: Format,
    own_ticks: Option<Vec<f64>>,
    pub lo: f64,
    pub hi: f64,
    pub from: f64,
    pub to: f64,
}

impl Scale {
    pub(super) fn new(axis: &Axis, (lo, hi): (f64, f64), (from, to): (f64, f64)) -> Self {
        Scale { spacing: axis.spacing, format: axis.format, own_ticks: axis.ticks.clone(), lo, hi, from, to }
    }

    /// The pixel of a value. Far outside the axis it stops, so that no coordinate is ever huge.
    pub(super) fn px(&self, value: f64) -> f64 {
        let share = match self.spacing {
            Spacing::Linear => (value - self.lo) / (self.hi - self.lo),
            Spacing::Log => (value.ln() - self.lo.ln()) / (self.hi.ln() - self.lo.ln()),
        };
        let share = if share.is_nan() { 0.0 } else { share.clamp(-3.0, 4.0) };
        self.from + share * (self.to - self.from)
    }

    /// The pixel of a value, kept inside the axis.
    pub(super) fn px_inside(&self, value: f64) -> f64 {
        self.px(value.clamp(self.lo, self.hi))
    }

    pub(super) fn contains(&self, value: f64) -> bool {
        let slack = match self.spacing {
            Spacing::Linear => (self.hi - self.lo) * 1e-9,
            Spacing::Log => self.lo * 1e-9,
        };
        value >= self.lo - slack && value <= self.hi + slack
    }

    /// Ticks for a horizontal axis: as many round numbers as their labels leave room for.
    pub(super) fn ticks_across(&self, size: f64) -> Vec<Tick> {
        let gap = size * 1.6;
        self.ticks(|ticks, spacing| {
            let widest = ticks.iter().map(|t| text::width(&t.label, size)).fold(0.0, f64::max);
            spacing >= (widest + gap).max(46.0)
        })
    }

    /// Ticks for a vertical axis.
    pub(super) fn ticks_up(&self) -> Vec<Tick> {
        self.ticks(|_, spacing| spacing >= 28.0)
    }

    /// The densest set of round ticks that `fits`, which sees the ticks and the smallest distance between two in
    /// pixels.
    fn ticks(&self, fits: impl Fn(&[Tick], f64) -> bool) -> Vec<Tick> {
        if let Some(own) = &self.own_ticks {
            return self.given_ticks(own, fits);
        }
        let mut last = Vec::new();
        for candidate in 0..60 {
            let ticks = match self.spacing {
                Spacing::Linear => self.linear_ticks(candidate),
                Spacing::Log => self.log_ticks(candidate),
            };
            if ticks.len() < 2 && !last.is_empty() {
                break;
            }
            let done = fits(&ticks, self.smallest_distance(&ticks));
            last = ticks;
            if done {
                break;
            }
        }
        last
    }

    fn smallest_distance(&self, ticks: &[Tick]) -> f64 {
        ticks.windows(2).map(|w| (self.px(w[1].value) - self.px(w[0].value)).abs()).fold(f64::INFINITY, f64::min)
    }

    fn given_ticks(&self, own: &[f64], fits: impl Fn(&[Tick], f64) -> bool) -> Vec<Tick> {
        let mut own: Vec<f64> = own.iter().copied().filter(|&v| v.is_finite() && self.contains(v)).collect();
        own.sort_by(f64::total_cmp);
        own.dedup();
        for stride in 1..=own.len().max(1) {
            let ticks: Vec<Tick> = own
                .iter()
                .step_by(stride)
                .map(|&value| Tick {
                    value,
                    label: self.format.dress(value, text::number(value * self.format.factor())),
                })
                .collect();
            if fits(&ticks, self.smallest_distance(&ticks)) {
                return ticks;
            }
        }
        Vec::new()
    }

    /// Multiples of 1, 2 or 5 times a power of ten; a higher candidate is sparser.
    fn linear_ticks(&self, candidate: usize) -> Vec<Tick> {
        let range = self.hi - self.lo;
        let start = (range / 40.0).log10().floor() as i32;
        let step = [1.0, 2.0, 5.0][candidate % 3] * 10f64.powi(start + (candidate / 3) as i32);
        let (first, last) = ((self.lo / step - 1e-6).ceil() as i64, (self.hi / step + 1e-6).floor() as i64);
        (first..=last.min(first.saturating_add(400)))
            .map(|i| {
                let value = i as f64 * step;
                Tick { value, label: self.format.tick(value, step) }
            })
            .collect()
    }

    /// 1, 2, 5 in every decade; then powers of ten; then every second, third … power.
    fn log_ticks(&self, candidate: usize) -> Vec<Tick> {
        let decades = self.hi.log10() - self.lo.log10();
        if decades < 0.7 {
            let linear = Scale { spacing: Spacing::Linear, ..self.clone() };
            return linear.linear_ticks(candidate).into_iter().filter(|t| t.value > 0.0).collect();
        }
        let (multiples, stride): (&[f64], i32) = match candidate {
            0 => (&[1.0, 2.0, 5.0], 1),
            1 if decades < 2.0 => (&[1.0, 3.0], 1),
            n => (&[1.0], n.max(1) as i32),
        };
        let (first, last) = (self.lo.log10().floor() as i32, self.hi.log10().ceil() as i32);
        (first..=last)
            .filter(|p| p.rem_euclid(stride) == 0)
            .flat_map(|p| multiples.iter().map(move |m| (m, p)))
            .map(|(m, p)| (m * 10f64.powi(p), p))
            .filter(|&(v, _)| self.contains(v))
            .map(|(value, p)| {
                let shown = value * self.format.factor();
                let digits = if (-4..6).contains(&p) { text::short(shown) } else { text::scientific(shown, 0) };
                Tick { value, label: self.format.dress(value, digits) }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, range: (f64, f64), px: f64) -> Vec<String> {
        Scale::new(axis, range, (0.0, px)).ticks_across(12.0).into_iter().map(|t| t.label).collect()
    }

    #[test]
    fn ticks_are_round_and_not_crowded() {
        assert_eq!(labels(&Axis::new(""), (0.0, 3650.0), 300.0), ["0", "1,000", "2,000", "3,000"]);
        let points = Axis::new("").format(Format::Points);
        assert_eq!(labels(&points, (-0.12, 0.21), 300.0), ["−10", "0", "+10", "+20"]);
        assert_eq!(labels(&Axis::new("").log(), (900.0, 150_000.0), 200.0), ["1,000", "10,000", "100,000"]);
    }

    #[test]
    fn any_range_gives_few_ticks() {
        let axis = Axis::new("");
        for (lo, hi) in [(-1e300, 1e300), (0.0, 1e-200), (1e15, 1e15 + 1e6), (-5.0, 1e12)] {
            let n = Scale::new(&axis, (lo, hi), (0.0, 300.0)).ticks_across(12.0).len();
            assert!((1..=12).contains(&n), "{lo} {hi}: {n}");
        }
        let n = Scale::new(&axis.log(), (1e-290, 1e290), (0.0, 300.0)).ticks_across(12.0).len();
        assert!((2..=12).contains(&n), "{n}");
    }

    #[test]
    fn constant_data_still_have_limits() {
        let axis = Axis::new("");
        for v in [0.0, 5.0, -1e200, 1e-12] {
            let mut extent = Extent::new(&axis);
            extent.add(v);
            extent.add(f64::NAN);
            let (lo, hi) = extent.limits(0.05);
            assert!(lo < v && v < hi && extent.dropped == 1, "{v}: {lo} {hi}");
        }
    }
}
