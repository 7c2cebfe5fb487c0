//! The drawing surface: shapes and words in, SVG text out.
//!
//! Every shape carries its light colour as a plain attribute, which any renderer understands, and a class through which
//! a page recolours it (see [`super::palette`]). The rules stand inside `@supports`, which renderers without CSS
//! variables skip. No element has an id, so any number of figures can share a page; clipping uses nested `<svg>`.

use super::About;
use super::palette::{Ink, Marker, N_INKS};
use super::text::{self, coordinate, escape};
use std::fmt::Write;

/// Font sizes: words that name, words that explain.
pub(super) const BODY: f64 = 12.0;
pub(super) const SMALL: f64 = 11.0;

const FONT: &str = "system-ui,-apple-system,&quot;Segoe UI&quot;,Roboto,&quot;Helvetica Neue&quot;,Arial,&quot;Liberation Sans&quot;,sans-serif";

/// How a shape is painted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    fill: Option<Ink>,
    stroke: Option<(Ink, f64)>,
    opacity: f64,
    dash: &'static str,
}

impl Style {
    pub(super) fn fill(ink: Ink) -> Self {
        Style { fill: Some(ink), stroke: None, opacity: 1.0, dash: "" }
    }

    pub(super) fn stroke(ink: Ink, width: f64) -> Self {
        Style { fill: None, stroke: Some((ink, width)), opacity: 1.0, dash: "" }
    }

    pub(super) fn outline(mut self, ink: Ink, width: f64) -> Self {
        self.stroke = Some((ink, width));
        self
    }

    /// Opacity of the fill if there is one, else of the stroke.
    pub(super) fn opacity(mut self, opacity: f64) -> Self {
        self.opacity = opacity;
        self
    }

    pub(super) fn dash(mut self, dash: &'static str) -> Self {
        self.dash = dash;
        self
    }
}

/// How words are set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label {
    size: f64,
    ink: Ink,
    anchor: &'static str,
    bold: bool,
    halo: bool,
    rotate: f64,
    max_width: f64,
}

impl Label {
    pub(super) fn new(size: f64, ink: Ink) -> Self {
        Label { size, ink, anchor: "", bold: false, halo: false, rotate: 0.0, max_width: f64::INFINITY }
    }

    pub(super) fn middle(mut self) -> Self {
        self.anchor = "middle";
        self
    }

    pub(super) fn end(mut self) -> Self {
        self.anchor = "end";
        self
    }

    pub(super) fn bold(mut self, bold: bool) -> Self {
        self.bold = bold;
        self
    }

    /// A rim in the colour of the paper, for words that stand on data.
    pub(super) fn halo(mut self) -> Self {
        self.halo = true;
        self
    }

    pub(super) fn rotate(mut self, degrees: f64) -> Self {
        self.rotate = degrees;
        self
    }

    /// Shortens longer text; the whole of it becomes the tooltip.
    pub(super) fn at_most(mut self, max_width: f64) -> Self {
        self.max_width = max_width;
        self
    }

    pub(super) fn width(&self, text: &str) -> f64 {
        text::width(text, self.size) * if self.bold { text::BOLD } else { 1.0 }
    }
}

/// A figure in the making.
pub(super) struct Canvas<'a> {
    about: &'a About,
    pub width: f64,
    /// Where the next part may begin, below the heading.
    pub top: f64,
    body: String,
    used: [bool; N_INKS],
    notes: Vec<String>,
}

impl<'a> Canvas<'a> {
    pub(super) fn new(about: &'a About) -> Self {
        let width = if about.width.is_finite() { about.width.clamp(280.0, 2400.0) } else { About::WIDTH };
        let mut canvas =
            Canvas { about, width, top: 8.0, body: String::new(), used: [false; N_INKS], notes: about.notes.clone() };
        if about.heading {
            for line in text::wrap(&about.title, 15.0, width * 0.94) {
                canvas.top += 18.0;
                canvas.text(0.0, canvas.top - 6.0, &line, Label::new(15.0, Ink::Text).bold(true));
            }
            canvas.top += 8.0;
        }
        canvas
    }

    /// Height of a panel that the data do not decide.
    pub(super) fn panel_height(&self, usual: f64) -> f64 {
        self.about.height.filter(|h| h.is_finite()).map_or(usual, |h| h.clamp(80.0, 2400.0))
    }

    /// A line of small print under the figure.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Says how many values could not be drawn, if any.
    pub(super) fn note_dropped(&mut self, dropped: usize, log: bool) {
        if dropped > 0 {
            let what = if log { "not finite or not positive" } else { "not finite" };
            let values = if dropped == 1 { "value is" } else { "values are" };
            let n = text::count(dropped as u64);
            self.note(format!("{n} {values} {what} and not drawn."));
        }
    }

    fn class(&mut self, fill: Option<Ink>, stroke: Option<Ink>) {
        if fill.is_none() && stroke.is_none() {
            return;
        }
        self.body.push_str(" class=\"");
        for (i, (kind, ink)) in [("f", fill), ("s", stroke)].into_iter().filter_map(|(k, i)| Some((k, i?))).enumerate()
        {
            self.used[ink.index()] = true;
            let _ = write!(self.body, "{}dv{kind}-{}", if i > 0 { " " } else { "" }, ink.name());
        }
        self.body.push('"');
    }

    fn attr(&mut self, name: &str, value: f64) {
        let _ = write!(self.body, " {name}=\"");
        coordinate(&mut self.body, value);
        self.body.push('"');
    }

    fn paint(&mut self, style: Style) {
        self.class(style.fill, style.stroke.map(|s| s.0));
        match style.fill {
            Some(ink) => {
                let _ = write!(self.body, " fill=\"{}\"", ink.light());
            }
            None => self.body.push_str(" fill=\"none\""),
        }
        if let Some((ink, width)) = style.stroke {
            let _ = write!(self.body, " stroke=\"{}\"", ink.light());
            self.attr("stroke-width", width);
        }
        if style.opacity < 1.0 {
            self.attr(if style.fill.is_some() { "fill-opacity" } else { "stroke-opacity" }, style.opacity);
        }
        if !style.dash.is_empty() {
            let _ = write!(self.body, " stroke-dasharray=\"{}\"", style.dash);
        }
    }

    pub(super) fn line(&mut self, x1: f64, y1: f64, x2: f64, y2: f64, style: Style) {
        self.body.push_str("<line");
        for (name, value) in [("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2)] {
            self.attr(name, value);
        }
        self.paint(style);
        self.body.push_str("/>\n");
    }

    pub(super) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, style: Style) {
        self.rect_with_title(x, y, width, height, style, "");
    }

    /// A rectangle with a tooltip.
    pub(super) fn rect_with_title(&mut self, x: f64, y: f64, width: f64, height: f64, style: Style, title: &str) {
        self.body.push_str("<rect");
        for (name, value) in [("x", x), ("y", y), ("width", width.max(0.0)), ("height", height.max(0.0))] {
            self.attr(name, value);
        }
        self.paint(style);
        self.close_with_title("rect", title);
    }

    fn close_with_title(&mut self, element: &str, title: &str) {
        if title.is_empty() {
            self.body.push_str("/>\n");
        } else {
            let _ = writeln!(self.body, "><title>{}</title></{element}>", escape(title));
        }
    }

    pub(super) fn path(&mut self, path: &Path, style: Style) {
        if path.0.is_empty() {
            return;
        }
        let _ = write!(self.body, "<path d=\"{}\"", path.0);
        self.paint(style);
        self.body.push_str(" stroke-linejoin=\"round\"/>\n");
    }

    pub(super) fn marker(&mut self, marker: Marker, x: f64, y: f64, r: f64, style: Style, title: &str) {
        if marker == Marker::Circle {
            self.body.push_str("<circle");
            for (name, value) in [("cx", x), ("cy", y), ("r", r)] {
                self.attr(name, value);
            }
            self.paint(style);
            return self.close_with_title("circle", title);
        }
        let corners: &[(f64, f64)] = match marker {
            Marker::Square => &[(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)],
            Marker::Diamond => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
            Marker::Triangle | Marker::Circle => &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
        };
        let mut path = Path::default();
        path.polygon(corners.iter().map(|&(dx, dy)| (x + dx * r, y + dy * r)));
        let _ = write!(self.body, "<path d=\"{}\"", path.0);
        self.paint(style);
        self.close_with_title("path", title);
    }

    /// Words with their baseline at `y`.
    pub(super) fn text(&mut self, x: f64, y: f64, words: &str, label: Label) {
        if words.is_empty() {
            return;
        }
        let (shown, cut) =
            text::truncate(words, label.size * if label.bold { text::BOLD } else { 1.0 }, label.max_width);
        self.body.push_str("<text");
        self.attr("x", x);
        self.attr("y", y);
        self.attr("font-size", label.size);
        if !label.anchor.is_empty() {
            let _ = write!(self.body, " text-anchor=\"{}\"", label.anchor);
        }
        if label.bold {
            self.body.push_str(" font-weight=\"600\"");
        }
        if label.rotate != 0.0 {
            self.body.push_str(" transform=\"rotate(");
            for (i, v) in [label.rotate, x, y].into_iter().enumerate() {
                if i > 0 {
                    self.body.push(' ');
                }
                coordinate(&mut self.body, v);
            }
            self.body.push_str(")\"");
        }
        let mut style = Style::fill(label.ink);
        if label.halo {
            style = style.outline(Ink::Paper, 3.0);
            self.body.push_str(" paint-order=\"stroke\" stroke-linejoin=\"round\"");
        }
        self.paint(style);
        self.body.push('>');
        self.body.push_str(&escape(&shown));
        if cut {
            let _ = write!(self.body, "<title>{}</title>", escape(words));
        }
        self.body.push_str("</text>\n");
    }

    /// Words centred on `y`.
    pub(super) fn text_mid(&mut self, x: f64, y: f64, words: &str, label: Label) {
        self.text(x, y + label.size * 0.35, words, label);
    }

    /// Words on one or more lines, the first baseline at `y`; returns the baseline after the last.
    pub(super) fn paragraph(&mut self, x: f64, y: f64, words: &str, max: f64, label: Label) -> f64 {
        let mut y = y;
        for line in text::wrap(words, label.size, max) {
            self.text(x, y, &line, label);
            y += label.size * 1.35;
        }
        y
    }

    /// Words set beside a point at `x`: to its right if they end before `edge`, else to its left if there is room, else
    /// up to `edge`.
    pub(super) fn text_beside(&mut self, x: f64, y: f64, gap: f64, edge: f64, words: &str, label: Label) {
        let width = label.width(words);
        if x + gap + width <= edge {
            self.text_mid(x + gap, y, words, label);
        } else if x - gap - width >= 0.0 {
            self.text_mid(x - gap, y, words, label.end());
        } else {
            self.text_mid(edge, y, words, label.end());
        }
    }

    /// Everything drawn until [`Canvas::end_clip`] is cut off at this rectangle.
    pub(super) fn begin_clip(&mut self, x: f64, y: f64, width: f64, height: f64) {
        self.body.push_str("<svg");
        for (name, value) in [("x", x), ("y", y), ("width", width), ("height", height)] {
            self.attr(name, value);
        }
        self.body.push_str(" viewBox=\"");
        for (i, value) in [x, y, width, height].into_iter().enumerate() {
            if i > 0 {
                self.body.push(' ');
            }
            coordinate(&mut self.body, value);
        }
        self.body.push_str("\" overflow=\"hidden\">\n");
    }

    pub(super) fn end_clip(&mut self) {
        self.body.push_str("</svg>\n");
    }

    /// What is shown in place of a panel without data.
    pub(super) fn empty(mut self) -> String {
        let (top, height) = (self.top, 90.0);
        self.rect(0.5, top, self.width - 1.0, height, Style::fill(Ink::Wash).outline(Ink::Grid, 1.0));
        let label = Label::new(BODY, Ink::Muted).middle();
        self.text_mid(self.width / 2.0, top + height / 2.0, "No data to draw", label);
        self.finish(top + height)
    }

    /// The whole SVG; `bottom` is where the drawing ends and the notes begin.
    pub(super) fn finish(mut self, bottom: f64) -> String {
        let mut y = bottom + 18.0;
        for note in std::mem::take(&mut self.notes) {
            let width = self.width;
            y = self.paragraph(0.0, y, &note, width, Label::new(SMALL, Ink::Muted));
        }
        let height = (y - 8.0).ceil();
        self.used[Ink::Paper.index()] = true;
        let rules: String = (0..N_INKS).filter(|&i| self.used[i]).map(|i| Ink::at(i).rules()).collect();
        let mut size = String::new();
        coordinate(&mut size, self.width);
        let width = &size;
        let (title, description) = (escape(&self.about.title), escape(&self.about.description));
        let mut out = String::with_capacity(self.body.len() + 2048);
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"dv-figure\" role=\"img\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"{FONT}\">\n<title>{title}</title>\n<desc>{description}</desc>\n\
             <style>@supports (color:var(--dv-ink)){{.dv-figure{{font-variant-numeric:tabular-nums}}{rules}}}</style>\n\
             <rect class=\"dvf-paper\" width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n",
            Ink::Paper.light()
        );
        out.push_str(&self.body);
        out.push_str("</svg>\n");
        out
    }
}

/// The outline of a shape, in the short form of SVG path data.
#[derive(Clone, Debug, Default)]
pub(super) struct Path(String);

impl Path {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn command(&mut self, letter: char, values: &[f64]) -> &mut Self {
        self.0.push(letter);
        for (i, &v) in values.iter().enumerate() {
            let before = self.0.len();
            coordinate(&mut self.0, v);
            if i > 0 && !self.0[before..].starts_with('-') {
                self.0.insert(before, ' ');
            }
        }
        self
    }

    pub(super) fn move_to(&mut self, x: f64, y: f64) -> &mut Self {
        self.command('M', &[x, y])
    }

    pub(super) fn line_to(&mut self, x: f64, y: f64) -> &mut Self {
        self.command('L', &[x, y])
    }

    pub(super) fn across_to(&mut self, x: f64) -> &mut Self {
        self.command('H', &[x])
    }

    pub(super) fn up_to(&mut self, y: f64) -> &mut Self {
        self.command('V', &[y])
    }

    pub(super) fn close(&mut self) -> &mut Self {
        self.0.push('z');
        self
    }

    pub(super) fn polyline(&mut self, points: impl IntoIterator<Item = (f64, f64)>) -> &mut Self {
        for (i, (x, y)) in points.into_iter().enumerate() {
            if i == 0 {
                self.move_to(x, y)
            } else {
                self.line_to(x, y)
            };
        }
        self
    }

    pub(super) fn polygon(&mut self, points: impl IntoIterator<Item = (f64, f64)>) -> &mut Self {
        self.polyline(points).close()
    }

    /// A hexagon with a corner on top, its height twice `r`.
    pub(super) fn hexagon(&mut self, x: f64, y: f64, r: f64) -> &mut Self {
        let (w, h) = (r * 3f64.sqrt() / 2.0, r / 2.0);
        self.move_to(x, y - r).command('l', &[w, h]).command('v', &[r]).command('l', &[-w, h]);
        self.command('l', &[-w, -h]).command('v', &[-r]).close()
    }
}
