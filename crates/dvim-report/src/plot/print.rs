//! Figures for print: SVG to PDF and PNG, with a font of our own, so that they look alike on every machine.

use std::sync::Arc;
use svg2pdf::usvg::{self, fontdb};

/// DejaVu Sans, subset to Latin, Greek, Cyrillic, punctuation, arrows and the signs that figures use; see
/// `fonts/LICENSE`. It is the font whose widths the figures are laid out with.
const FONTS: [&[u8]; 2] =
    [include_bytes!("../../fonts/DejaVuSans.ttf"), include_bytes!("../../fonts/DejaVuSans-Bold.ttf")];

/// Pixels of a figure in an inch.
const DPI: f32 = 96.0;

fn tree(svg: &str) -> Result<usvg::Tree, String> {
    let mut fonts = fontdb::Database::new();
    FONTS.iter().for_each(|f| fonts.load_font_data(f.to_vec()));
    fonts.set_sans_serif_family("DejaVu Sans");
    let options =
        usvg::Options { font_family: "DejaVu Sans".into(), fontdb: Arc::new(fonts), ..usvg::Options::default() };
    usvg::Tree::from_str(svg, &options).map_err(|e| e.to_string())
}

/// A figure as PDF: vectors, its letters as text in an embedded font.
pub fn pdf(svg: &str) -> Result<Vec<u8>, String> {
    let page = svg2pdf::PageOptions { dpi: DPI };
    svg2pdf::to_pdf(&tree(svg)?, svg2pdf::ConversionOptions::default(), page).map_err(|e| e.to_string())
}

/// A figure as PNG with this many dots in an inch.
pub fn png(svg: &str, dpi: f64) -> Result<Vec<u8>, String> {
    let tree = tree(svg)?;
    let scale = dpi as f32 / DPI;
    let size = tree.size();
    let (width, height) = ((size.width() * scale).round() as u32, (size.height() * scale).round() as u32);
    let mut picture = resvg::tiny_skia::Pixmap::new(width, height).ok_or("the figure has no size")?;
    resvg::render(&tree, resvg::tiny_skia::Transform::from_scale(scale, scale), &mut picture.as_mut());
    picture.encode_png().map_err(|e| e.to_string())
}

/// Characters of a figure that the font has no sign for.
pub fn unknown_characters(svg: &str) -> String {
    const KNOWN: [(char, char); 13] = [
        ('\t', '~'),
        ('\u{a0}', 'ſ'),
        ('΄', 'ώ'),
        ('Ѐ', 'џ'),
        ('‐', '‧'),
        ('‰', '‰'),
        ('′', '″'),
        ('⁰', '₎'),
        ('€', '€'),
        ('←', '↓'),
        ('∀', '≥'),
        ('✓', '✓'),
        ('✗', '✗'),
    ];
    let known = |c: char| KNOWN.iter().any(|(a, b)| (*a..=*b).contains(&c));
    let mut out: Vec<char> = svg.chars().filter(|c| !known(*c)).collect();
    out.sort_unstable();
    out.dedup();
    out.into_iter().collect()
}
