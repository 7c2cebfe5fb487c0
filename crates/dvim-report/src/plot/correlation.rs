//! A correlation matrix with its numbers.

use super::About;
use super::canvas::{BODY, Canvas, Label, Style};
use super::palette::Ink;
use super::text;

/// Correlations between methods or covariates: blue for positive, orange for negative, stronger for larger, and the
/// number in every cell.
#[derive(Clone, Debug, Default)]
pub struct CorrelationMatrix {
    /// Title, size, notes.
    pub about: About,
    /// Names of rows and columns.
    pub labels: Vec<String>,
    /// The matrix by rows, as long and wide as `labels`; NaN where undefined, shown as a dash.
    pub values: Vec<Vec<f64>>,
}

impl CorrelationMatrix {
    /// The figure.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(&self.about);
        let n = self.labels.len();
        if n == 0 {
            return canvas.empty();
        }
        let widest = self.labels.iter().map(|l| text::width(l, BODY)).fold(0.0, f64::max);
        let names = widest.min(canvas.width * 0.32) + 2.0;
        let left = names + 10.0;
        // The angled heads of the last columns reach beyond the matrix.
        let head = widest.min(175.0);
        let slant = 50f64.to_radians();
        let cell = ((canvas.width - left - head * slant.cos() - 4.0) / n as f64).clamp(8.0, 62.0);
        let height = cell.min(36.0);
        let top = canvas.top + head * slant.sin() + 16.0;
        // The widest number is "−0.00".
        let size = ((cell - 4.0) / text::width("−0.00", 1.0)).min(11.5);
        let mut undefined = 0;
        for (i, row) in self.labels.iter().enumerate() {
            let y = top + height * (i as f64 + 0.5);
            canvas.text_mid(names, y, row, Label::new(BODY.min(height), Ink::Text).end().at_most(names));
            let x = left + cell * (i as f64 + 0.5);
            canvas.text(x, top - 8.0, row, Label::new(BODY.min(cell), Ink::Text).rotate(-50.0).at_most(head));
            for (j, column) in self.labels.iter().enumerate() {
                let value = self.values.get(i).and_then(|r| r.get(j)).copied().filter(|v| v.is_finite());
                undefined += usize::from(value.is_none());
                let x = left + cell * j as f64;
                let strength = value.map_or(0.0, |v| v.abs().min(1.0));
                let (ink, on) = if value.unwrap_or(0.0) < 0.0 {
                    (Ink::Control, Ink::OnControl)
                } else {
                    (Ink::Treated, Ink::Paper)
                };
                let opacity = 0.04 + 0.88 * strength;
                let words = value.map_or("–".into(), |v| text::fixed(v, 2));
                let title = format!("{row}, {column}: {words}");
                let gap = if cell > 16.0 { 1.5 } else { 0.4 };
                let (y0, style) = (y - height / 2.0, Style::fill(ink).opacity(opacity));
                canvas.rect_with_title(x, y0, cell - gap, height - gap, style, &title);
                if size >= 6.0 {
                    let ink = if strength > 0.68 { on } else { Ink::Text };
                    canvas.text_mid(x + cell / 2.0, y, &words, Label::new(size, ink).middle());
                }
            }
        }
        if undefined > 0 {
            canvas.note(format!("A dash marks an undefined correlation ({}).", text::count(undefined as u64)));
        }
        canvas.finish(top + height * n as f64)
    }
}
