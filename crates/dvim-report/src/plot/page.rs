//! A page around figures: one HTML file, no script, nothing loaded from anywhere.

use super::style_sheet;
use super::text::escape;
use std::fmt::Write;

const CSS: &str = "\
*{box-sizing:border-box}\
html{-webkit-text-size-adjust:100%}\
body{margin:0;background:var(--dv-paper);color:var(--dv-ink);\
font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,'Liberation Sans',sans-serif;\
font-variant-numeric:tabular-nums}\
main{max-width:47rem;margin:0 auto;padding:2rem 1.25rem 4rem}\
h1{font-size:1.75rem;line-height:1.2;margin:0 0 .75rem;letter-spacing:-.01em}\
h2{font-size:1.25rem;line-height:1.3;margin:2.75rem 0 .5rem;padding-top:1rem;border-top:1px solid var(--dv-grid)}\
h3{font-size:1rem;margin:1.75rem 0 .35rem}\
p,ul,ol{margin:.6rem 0;max-width:42rem}\
a{color:var(--dv-treated)}\
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace;font-size:.875em}\
pre{background:var(--dv-wash);padding:.75rem 1rem;overflow-x:auto;border-radius:4px}\
.lead{font-size:1.125rem}\
.muted{color:var(--dv-muted)}\
figure{margin:1.5rem 0}\
.scroll{overflow-x:auto}\
.scroll:focus-visible{outline:2px solid var(--dv-treated);outline-offset:2px}\
figure svg{display:block;width:100%;height:auto;min-width:34rem}\
figcaption,caption{color:var(--dv-muted);font-size:.875rem;line-height:1.45;text-align:left}\
figcaption{margin-top:.5rem}\
figcaption strong,caption strong{color:var(--dv-ink)}\
table{border-collapse:collapse;font-size:.875rem;line-height:1.35;min-width:50%}\
caption{padding:0 0 .5rem}\
th,td{padding:.3rem .75rem .3rem 0;text-align:left;vertical-align:baseline;border-bottom:1px solid var(--dv-grid)}\
thead th{color:var(--dv-muted);font-weight:600;border-bottom:1px solid var(--dv-axis)}\
tbody th{font-weight:400}\
.num{text-align:right;white-space:nowrap;padding-left:.75rem}\
@media print{@page{margin:18mm}body{font-size:10pt}main{max-width:none;padding:0}\
h2{break-after:avoid}figure,tr{break-inside:avoid}figure svg{min-width:0}.scroll{overflow:visible}a{color:inherit}}\n";

/// A whole page: the title is escaped, the body is HTML as it stands (see [`paragraph`], [`figure`], [`Table`]).
pub fn page(title: &str, body: &str) -> String {
    let (title, style) = (escape(title), style_sheet());
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{style}{CSS}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// A heading of level 1 to 6.
pub fn heading(level: u8, words: &str) -> String {
    let level = level.clamp(1, 6);
    format!("<h{level}>{}</h{level}>\n", escape(words))
}

/// A paragraph of plain words.
pub fn paragraph(words: &str) -> String {
    format!("<p>{}</p>\n", escape(words))
}

/// A figure with its caption: `name` in bold ("Figure 1."), then the words. On a narrow screen it scrolls sideways rather
/// than shrink its letters.
pub fn figure(svg: &str, name: &str, caption: &str) -> String {
    let label = escape(if name.is_empty() { "Figure" } else { name });
    format!(
        "<figure>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{label}\">\n{svg}</div>\n\
         <figcaption>{}</figcaption>\n</figure>\n",
        titled(name, caption)
    )
}

fn titled(name: &str, words: &str) -> String {
    let words = escape(words);
    if name.is_empty() { words.into_owned() } else { format!("<strong>{}</strong> {words}", escape(name)) }
}

/// A table of words and numbers. All cells are escaped.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// "Table 1.", in bold before the caption.
    pub name: String,
    /// What the table shows.
    pub caption: String,
    /// Heads of the columns. The first column names the rows.
    pub columns: Vec<String>,
    /// The rows. Short ones are filled up with empty cells.
    pub rows: Vec<Vec<String>>,
    /// Columns set to the left; the others, but for the first, are numbers and set to the right.
    pub words: Vec<usize>,
}

impl Table {
    /// The table as HTML.
    pub fn html(&self) -> String {
        let class = |column: usize| if column == 0 || self.words.contains(&column) { "" } else { " class=\"num\"" };
        let label = escape(if self.name.is_empty() { "Table" } else { &self.name });
        let mut out = format!("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{label}\">\n<table>\n");
        if !self.name.is_empty() || !self.caption.is_empty() {
            let _ = writeln!(out, "<caption>{}</caption>", titled(&self.name, &self.caption));
        }
        out.push_str("<thead><tr>");
        for (i, head) in self.columns.iter().enumerate() {
            let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(i), escape(head));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for i in 0..self.columns.len().max(row.len()) {
                let cell = escape(row.get(i).map_or("", String::as_str));
                let _ = match i {
                    0 => write!(out, "<th scope=\"row\">{cell}</th>"),
                    _ => write!(out, "<td{}>{cell}</td>", class(i)),
                };
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n</table>\n</div>\n");
        out
    }
}
