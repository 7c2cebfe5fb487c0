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

const HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
<meta name=\"color-scheme\" content=\"light dark\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
<link rel=\"icon\" href=\"data:,\">\n";

/// What a report has beyond other pages: head, contents beside the text where there is room, the answer, the flow.
const DOCUMENT_CSS: &str = "\
html{scroll-behavior:smooth;scroll-padding-top:1rem}\
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}\
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;top:1rem;background:var(--dv-paper);padding:.5rem 1rem;z-index:1}\
.report header,.report nav,.report main,.report footer{max-width:49rem;margin:0 auto;padding:0 1.25rem}\
.report header{padding-top:2.5rem}.report header p{color:var(--dv-muted)}\
.report nav ol{columns:2;column-gap:2rem;padding:0;margin:1.25rem 0 0;list-style:none;font-size:.875rem;line-height:1.9;max-width:none}\
.report nav a{text-decoration:none}.report nav a:hover,.report nav a:focus{text-decoration:underline}\
.report main{padding-bottom:2rem}.report section>h2:first-child{margin-top:2.25rem}\
.report footer{color:var(--dv-muted);font-size:.8125rem;padding-bottom:3rem}\
.answer{background:var(--dv-wash);border-left:4px solid var(--dv-treated);border-radius:4px;padding:.5rem 1.25rem;margin:1rem 0}\
.answer .lead{font-size:1.25rem;line-height:1.4;margin:.6rem 0}\
.verdict{padding-left:1.4rem;position:relative}.verdict::before{position:absolute;left:0;font-weight:700}\
.good::before{content:'\\2713'}.mixed::before{content:'~'}.bad::before{content:'\\2717'}\
.reasons{font-size:.9375rem;padding-left:2.4rem}\
.flow{list-style:none;padding:0;margin:1.25rem 0;max-width:30rem}\
.flow li{display:flex;justify-content:space-between;gap:1.5rem;border:1px solid var(--dv-axis);border-radius:4px;padding:.35rem .75rem;margin-bottom:.9rem;position:relative}\
.flow li:not(:last-child)::after{content:'';position:absolute;left:1.5rem;top:100%;height:.95rem;border-left:1px solid var(--dv-axis)}\
.flow .out{border-style:dashed;margin-left:3rem;color:var(--dv-muted);font-size:.9375rem}\
.flow .out::after{left:-1.5rem!important;top:-.95rem!important;height:calc(100% + 1.95rem)!important}\
blockquote{margin:1rem 0;padding:.25rem 1.25rem;background:var(--dv-wash);border-radius:4px}\
pre{white-space:pre-wrap;overflow-wrap:anywhere}\
.report td,.report th{overflow-wrap:break-word}.report .scroll{margin:1.25rem 0}.report caption{min-width:18rem}.report figure svg{min-width:0}\
.narrow{display:none}\
.unseen{position:absolute;left:-99rem;top:auto}\
.page-one .scroll{margin:.75rem 0}.page-one table{width:100%}.page-one caption{padding:0 0 .25rem}\
.page-one figure{margin:1rem 0}.facts p{margin:.45rem 0}.answer .verdict{margin:0 0 .9rem}\
.report h1{margin-top:0}.appendix{font-size:1.5rem;border-top:2px solid var(--dv-axis)}\
.report .sections{columns:2;column-gap:2rem;font-size:.875rem;line-height:1.9;max-width:none}\
summary{cursor:pointer;border-top:1px solid var(--dv-grid);margin-top:2rem;padding-top:1rem}\
summary h2{display:inline;border:0;margin:0;padding:0}summary:focus-visible{outline:2px solid var(--dv-treated)}\
@media screen and (max-width:76rem){.report nav{display:none}}\
@media screen and (max-width:40rem){.wide{display:none}.narrow{display:block}.report .sections{columns:1}\
.report header{padding-top:1rem}h1{font-size:1.375rem;margin-bottom:.4rem}.answer{padding:.25rem .9rem;margin:.5rem 0}\
.answer .lead{font-size:1.0625rem;line-height:1.35;margin:.5rem 0 .2rem}.answer .verdict{font-size:.9375rem;margin:0 0 .5rem}\
.report section>h2:first-child{margin-top:0}.num{white-space:normal}\
table{font-size:.8125rem}th,td{padding-right:.4rem}.num{padding-left:.4rem}}\
@media screen and (min-width:76rem){.report{display:grid;grid-template-columns:1fr 15rem minmax(0,49rem) 1fr;column-gap:2rem}\
.report header,.report main,.report footer{grid-column:3;margin:0;width:100%}\
.report nav{grid-column:2;grid-row:1/span 3;margin:0;padding:2.75rem 0 0;position:sticky;top:0;align-self:start}\
.report nav ol{columns:1;margin:0}.report .sections{display:none}}\
@media print{.report nav,.skip{display:none}.report header,.report main,.report footer{max-width:none;padding:0}\
section{break-inside:auto}h2,h3{break-after:avoid}.answer,.flow li{break-inside:avoid}figure,blockquote,.short{break-inside:avoid}\
table{break-inside:auto}thead{display:table-header-group}caption{break-after:avoid}\
.page-one{break-after:page;font-size:8.5pt;line-height:1.35}.page-one .answer .lead{font-size:10.5pt;margin:2pt 0}\
.page-one .answer{margin:2pt 0;padding:2pt 8pt}.page-one .verdict,.page-one .reasons{margin:1pt 0;font-size:8.5pt}\
.page-one figure{margin:3pt 0}.page-one figcaption,.page-one caption,.page-one table{font-size:8pt}\
.page-one th,.page-one td{padding:1pt 4pt 1pt 0}.page-one .scroll{margin:3pt 0}.facts p{margin:2pt 0;max-width:none}\
.page-one .wide>svg{max-height:78mm}h1{font-size:15pt;margin:0 0 3pt}.report header{padding-top:0}.report header p{margin:0}\
.report .sections,summary::marker{display:none}summary{list-style:none;margin-top:12pt}.appendix{break-before:auto}\
figure svg{max-height:110mm}.answer{border-left-width:3pt}a{text-decoration:none}}\n";

/// A whole page: the title is escaped, the body is HTML as it stands (see [`paragraph`], [`figure`], [`Table`]).
pub fn page(title: &str, body: &str) -> String {
    let (title, style) = (escape(title), style_sheet());
    format!(
        "{HEAD}<title>{title}</title>\n<style>\n{style}{CSS}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// Sections of a page: anchor and title.
pub type Contents = Vec<(&'static str, String)>;

/// A whole report: a head with a title and what it is about, a table of contents, the sections, a foot.
pub fn document(title: &str, lead: &[String], contents: &Contents, body: &str, foot: &str) -> String {
    let links: String =
        contents.iter().map(|(id, words)| format!("<li><a href=\"#{id}\">{}</a></li>\n", escape(words))).collect();
    let lead: String = lead.iter().map(|l| paragraph(l)).collect();
    let (title, foot, style) = (escape(title), escape(foot), style_sheet());
    format!(
        "{HEAD}<title>{title}</title>\n<style>\n{style}{CSS}{DOCUMENT_CSS}</style>\n</head>\n<body class=\"report\">\n\
         <a class=\"skip\" href=\"#main\">Skip to the answer</a>\n<header>\n<h1>{title}</h1>\n{lead}</header>\n\
         <nav aria-label=\"Contents\">\n<ol>\n{links}</ol>\n</nav>\n<main id=\"main\">\n{body}</main>\n\
         <footer><p>{foot}</p></footer>\n</body>\n</html>\n"
    )
}

/// The contents of an appendix as a list of links, for screens that have no room beside the text.
pub fn contents_list(contents: &[(&'static str, String)]) -> String {
    let links: String =
        contents.iter().map(|(id, words)| format!("<li><a href=\"#{id}\">{}</a></li>\n", escape(words))).collect();
    format!("<ol class=\"sections\">\n{links}</ol>\n")
}

/// Widths at which a figure is drawn for wide and for narrow screens.
const WIDE: f64 = 720.0;
const NARROW: f64 = 340.0;

/// A figure that is drawn twice, for wide screens and print and for narrow screens; one of the two is shown.
pub fn responsive(draw: impl Fn(f64) -> String, name: &str, caption: &str) -> String {
    format!(
        "<figure>\n<div class=\"wide\">\n{}</div>\n<div class=\"narrow\">\n{}</div>\n<figcaption>{}</figcaption>\n</figure>\n",
        draw(WIDE),
        draw(NARROW),
        titled(name, caption)
    )
}

/// Text made safe for HTML.
pub fn escaped(words: &str) -> String {
    escape(words).into_owned()
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

/// A figure with its caption: `name` in bold ("Figure 1."), then the words. On a narrow screen it scrolls sideways
/// rather than shrink its letters.
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

/// Rows of a table that fits on a page.
const SHORT: usize = 15;

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
        // A table that fits on a page is not broken in print.
        let short = if self.rows.len() <= SHORT { " short" } else { "" };
        let mut out =
            format!("<div class=\"scroll{short}\" tabindex=\"0\" role=\"group\" aria-label=\"{label}\">\n<table>\n");
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
