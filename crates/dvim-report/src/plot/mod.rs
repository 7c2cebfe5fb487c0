//! Figures as SVG and pages as HTML, in one visual language.
//!
//! Each figure is a struct of plain data with a method `svg`; nothing is read, written, drawn at random or asked of the
//! clock, so equal data give equal bytes. A figure stands alone, or inside a page from [`page`], whose colours it takes
//! on (light, dark, print). What cannot be drawn (NaN, infinity, zero on a log axis) is left out and counted under the
//! figure.
//!
//! No statistic is computed here. Three summaries exist for the eye only and are documented where they are made: bins
//! (histogram, hexagons), Gaussian kernel densities (violins), and quartiles (boxes, when samples are given).
//!
//! ```
//! use dvim_report::plot::{About, Axis, EffectHistogram, Estimate, Format};
//!
//! let figure = EffectHistogram {
//!     about: About::new("Individual cure effects"),
//!     values: vec![0.02, 0.05, 0.11, -0.01],
//!     mean: Some(Estimate::new(0.0425, 0.01, 0.08)),
//!     axis: Axis::new("Cure effect (percentage points)").format(Format::Points),
//!     ..EffectHistogram::default()
//! };
//! assert!(figure.svg().starts_with("<svg"));
//! ```

mod boxes;
mod canvas;
mod correlation;
mod forest;
mod frame;
mod histogram;
mod intervals;
mod lines;
mod love;
pub mod page;
mod palette;
mod parts;
mod plane;
#[cfg(feature = "print")]
pub mod print;
mod ratios;
mod scale;
mod summary;
mod survival;
mod text;
mod violins;
mod weights;

pub use boxes::{BoxGroup, BoxPlots, BoxSummary};
pub use correlation::CorrelationMatrix;
pub use forest::{ForestPlot, ForestRow};
pub use histogram::EffectHistogram;
pub use intervals::IntervalStack;
pub use lines::{LineChart, LinePoint, Reference, Series};
pub use love::{LovePlot, LoveRow};
pub use parts::{PartRow, PartsChart};
pub use plane::{EffectPlane, PlanePoint};
pub use ratios::{RatioChart, RatioRow};
pub use scale::{Axis, Format, Spacing};
pub use survival::{CurveStep, SurvivalArm, SurvivalCurves, at_risk};
pub(crate) use text::weight as weight_words;
pub use text::{count, escape, fixed, number};
pub use violins::{ViolinGroup, Violins};
pub use weights::{MetricWeights, WeightRow};

/// What every figure has: words for those who see it and those who do not, and its size.
#[derive(Clone, Debug)]
pub struct About {
    /// What the figure shows; its accessible name.
    pub title: String,
    /// What a reader should see in it, in a sentence or two, for those who cannot.
    pub description: String,
    /// Small print under the figure.
    pub notes: Vec<String>,
    /// Width in pixels, 280 to 2,400. The layout follows it; font sizes do not.
    pub width: f64,
    /// Height of the panel, where the number of rows does not decide it.
    pub height: Option<f64>,
    /// Whether the title is also drawn above the figure. Pages and papers have captions instead.
    pub heading: bool,
}

impl About {
    const WIDTH: f64 = 680.0;

    /// A title, and the usual size.
    pub fn new(title: impl Into<String>) -> Self {
        About { title: title.into(), ..About::default() }
    }

    /// The same with a description.
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// The same with a further note.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The same at another width.
    pub fn width(mut self, width: f64) -> Self {
        self.width = width;
        self
    }

    /// The same with another panel height.
    pub fn height(mut self, height: f64) -> Self {
        self.height = Some(height);
        self
    }
}

impl Default for About {
    fn default() -> Self {
        About {
            title: String::new(),
            description: String::new(),
            notes: Vec::new(),
            width: About::WIDTH,
            height: None,
            heading: false,
        }
    }
}

/// A value with, in most cases, an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The estimate itself.
    pub value: f64,
    /// Lower and upper end of its interval.
    pub interval: Option<(f64, f64)>,
}

impl Estimate {
    /// An estimate with an interval.
    pub fn new(value: f64, low: f64, high: f64) -> Self {
        Estimate { value, interval: Some((low, high)) }
    }

    /// An estimate without an interval.
    pub fn point(value: f64) -> Self {
        Estimate { value, interval: None }
    }

    /// The interval, in order, if both ends are finite.
    fn drawable_interval(&self) -> Option<(f64, f64)> {
        self.interval.filter(|(a, b)| a.is_finite() && b.is_finite()).map(|(a, b)| (a.min(b), a.max(b)))
    }

    /// Takes value and interval into an extent; false when the value cannot be drawn. An undrawable interval counts as
    /// one.
    fn extend(&self, extent: &mut scale::Extent) -> bool {
        if !extent.add(self.value) {
            return false;
        }
        match self.drawable_interval() {
            Some((low, high)) => {
                extent.hint(low);
                extent.hint(high);
            }
            None => extent.dropped += usize::from(self.interval.is_some()),
        }
        true
    }

    /// The estimate in words: "5.0 (2.0 to 8.1)".
    fn words(&self, format: Format) -> String {
        match self.drawable_interval() {
            Some((low, high)) => {
                let [value, low, high] = [self.value, low, high].map(|v| format.value_between(v, low, high));
                format!("{value} ({} to {high})", low.trim_end_matches(['%', '×']))
            }
            None => format.value(self.value),
        }
    }
}

/// Figures one under the other, as one. They are as wide as each other.
pub fn stack(title: &str, description: &str, figures: &[String]) -> String {
    let number = |figure: &str, name: &str| -> f64 {
        let value = figure.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split_once('"'));
        value.and_then(|(v, _)| v.parse().ok()).unwrap_or(0.0)
    };
    let width = figures.iter().map(|f| number(f, "width")).fold(0.0, f64::max);
    let (mut body, mut top) = (String::new(), 0.0);
    for figure in figures {
        body += &figure.replacen("<svg ", &format!("<svg y=\"{top}\" "), 1);
        top += number(figure, "height") + 12.0;
    }
    let height = (top - 12.0).max(0.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <title>{}</title>\n<desc>{}</desc>\n<rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n{body}</svg>\n",
        escape(title),
        escape(description),
        palette::Ink::Paper.light()
    )
}

/// The style sheet that lets a page recolour figures: rules for every class they use, and the colours for light pages,
/// dark pages and print. Pages from [`page`] have it; a page with a strict content policy can serve it as a file.
pub fn style_sheet() -> String {
    let rules: String = (0..palette::N_INKS).map(|i| palette::Ink::at(i).rules()).collect();
    format!(
        ":root{{color-scheme:light dark;{light}}}\
         @media (prefers-color-scheme:dark){{:root{{{dark}}}}}\
         @media print{{:root{{color-scheme:light;{light}}}}}\
         .dv-figure{{font-variant-numeric:tabular-nums}}{rules}\n",
        light = palette::variables(false),
        dark = palette::variables(true),
    )
}

/// Rules that let a page choose light or dark colours against the system's choice, with `data-theme` on its root.
pub fn theme_rules() -> String {
    let of = |name: &str, dark: bool| {
        format!(":root[data-theme={name}]{{color-scheme:{name};{}}}", palette::variables(dark))
    };
    format!("@media not print{{{}{}}}\n", of("light", false), of("dark", true))
}
