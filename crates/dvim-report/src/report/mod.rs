//! One page for a run: the answer, from whom, how it varies, and whether it can be relied on. Opens by double-click,
//! loads nothing, needs no script.

mod methods;
mod patients;
mod sections;

use crate::figures::Look;
use crate::plot::page::{Contents, Table, document, escaped, responsive};
use crate::record::Summary;
use dvim::internal::analysis::Analysis;
use dvim::internal::cohort::Cohort;
use std::fmt::Write;

pub use methods::{command, methods_paragraph};

/// What a page says of itself.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Its title.
    pub title: Option<String>,
    /// Where the data come from; stands under the title.
    pub about: Option<String>,
    /// The unit of time in words; where it is `None` and times come from dates, days.
    pub time_unit: Option<String>,
}

impl Page {
    /// The unit of time in words; empty where it is not known.
    pub fn unit(&self, summary: &Summary) -> String {
        let days = summary.roles.asked.dates.as_ref().map(|_| "days".to_string());
        self.time_unit.clone().or(days).unwrap_or_default()
    }
}

/// The parts that a page is made from.
struct Source<'a> {
    cohort: &'a Cohort,
    analysis: &'a Analysis,
    summary: &'a Summary,
}

/// A page in the making: sections, figures and tables number themselves.
struct Builder {
    body: String,
    contents: Contents,
    open: bool,
    figures: usize,
    tables: usize,
    look: Look,
}

impl Builder {
    fn section(&mut self, id: &'static str, title: &str) {
        self.close();
        let title_html = escaped(title);
        let _ = write!(
            self.body,
            "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{title_html}</h2>\n"
        );
        self.contents.push((id, title.to_string()));
        self.open = true;
    }

    fn close(&mut self) {
        if self.open {
            self.body.push_str("</section>\n");
        }
        self.open = false;
    }

    fn heading(&mut self, words: &str) {
        self.body += &crate::plot::page::heading(3, words);
    }

    fn say(&mut self, words: &str) {
        self.body += &crate::plot::page::paragraph(words);
    }

    fn list(&mut self, class: &str, items: impl IntoIterator<Item = String>) {
        let items: String = items.into_iter().map(|i| format!("<li>{}</li>\n", escaped(&i))).collect();
        if !items.is_empty() {
            let _ = write!(self.body, "<ul class=\"{class}\">\n{items}</ul>\n");
        }
    }

    /// A figure, drawn for wide and for narrow screens.
    fn figure(&mut self, draw: impl Fn(&Look) -> String, caption: &str) {
        self.figures += 1;
        let name = format!("Figure {}.", self.figures);
        let look = self.look.clone();
        self.body += &responsive(|width| draw(&look.wide(width)), &name, caption);
    }

    fn table(&mut self, caption: &str, columns: &[&str], rows: Vec<Vec<String>>, words: &[usize]) {
        self.tables += 1;
        let table = Table {
            name: format!("Table {}.", self.tables),
            caption: caption.into(),
            columns: columns.iter().map(|c| c.to_string()).collect(),
            rows: rows.into_iter().map(|r| r.into_iter().map(true_minus).collect()).collect(),
            words: words.to_vec(),
        };
        self.body += &table.html();
    }
}

/// A number with a true minus sign.
fn true_minus(cell: String) -> String {
    match cell.strip_prefix('-') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => format!("−{rest}"),
        _ => cell,
    }
}

/// The page of a run.
pub fn run_page(words: &Page, cohort: &Cohort, analysis: &Analysis, summary: &Summary) -> String {
    let title = words.title.as_deref().unwrap_or("Does treatment change whether, and when?");
    let mut b = Builder {
        body: String::new(),
        contents: Vec::new(),
        open: false,
        figures: 0,
        tables: 0,
        look: Look { time_unit: words.unit(summary), ..Look::default() },
    };
    let source = Source { cohort, analysis, summary };
    sections::all(&mut b, &source);
    b.close();
    let mut lead: Vec<String> = words.about.clone().into_iter().collect();
    if dvim::internal::simulate::is_synthetic(cohort) {
        lead.push(crate::comparison::SYNTHETIC_NOTE.into());
    }
    if lead.is_empty() {
        lead.push(sections::where_from(summary));
    }
    let foot = format!(
        "dvim {}, seed {}. Every number in the tables is in summary.json, effects.csv or weights.csv of the run, or is printed by dvim match.",
        summary.version, summary.options.seed
    );
    // A number and its sign of percent stay on one line.
    document(title, &lead, &b.contents, &b.body.replace(" %", "\u{a0}%"), &foot)
}
