//! The report of a run: page one for a clinician, then an appendix for a reviewer. Opens by double-click, loads
//! nothing, needs no script.

mod estimand;
mod front;
mod methods;
mod patients;
mod sections;

use crate::figures::Look;
use crate::names::Names;
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
    /// The unit of time in words; where it is `None`, that of the run.
    pub time_unit: Option<String>,
}

impl Page {
    /// What the arms, the time and the covariates of a run are called.
    pub fn names(&self, summary: &Summary) -> Names {
        Names::of(summary, self.time_unit.as_deref())
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
    end: &'static str,
    figures: usize,
    tables: usize,
    look: Look,
}

impl Builder {
    /// A section of page one, whose heading is for those who cannot see the page.
    fn plain_section(&mut self, id: &'static str, title: &str) {
        self.close();
        let title_html = escaped(title);
        let _ = write!(
            self.body,
            "<section id=\"{id}\" class=\"page-one\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\" class=\"unseen\">{title_html}</h2>\n"
        );
        self.contents.push((id, title.to_string()));
        self.end = "</section>\n";
    }

    /// A section of the appendix, which can be folded.
    fn section(&mut self, id: &'static str, title: &str) {
        self.close();
        let title_html = escaped(title);
        let _ = write!(
            self.body,
            "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<details open>\n<summary><h2 id=\"{id}-title\">{title_html}</h2></summary>\n"
        );
        self.contents.push((id, title.to_string()));
        self.end = "</details>\n</section>\n";
    }

    fn close(&mut self) {
        self.body.push_str(self.end);
        self.end = "";
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

/// Text with a true minus sign.
pub(crate) fn true_minus_text(cell: &str) -> String {
    true_minus(cell.to_string())
}

/// A number with a true minus sign.
fn true_minus(cell: String) -> String {
    match cell.strip_prefix('-') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => format!("−{rest}"),
        _ => cell,
    }
}

/// Where the appendix begins.
const APPENDIX: &str = "<h2 id=\"appendix\" class=\"appendix\">Appendix</h2>\n";

/// The page of a run.
pub fn run_page(words: &Page, cohort: &Cohort, analysis: &Analysis, summary: &Summary) -> String {
    let question = words.names(summary).question();
    let title = words.title.as_deref().unwrap_or(&question);
    let mut b = Builder {
        body: String::new(),
        contents: Vec::new(),
        end: "",
        figures: 0,
        tables: 0,
        look: Look { names: words.names(summary), ..Look::default() },
    };
    let source = Source { cohort, analysis, summary };
    sections::all(&mut b, &source);
    b.close();
    let appendix = b.body.find(APPENDIX).unwrap_or(b.body.len());
    let list = crate::plot::page::contents_list(&b.contents[1..]);
    b.body.insert_str((appendix + APPENDIX.len()).min(b.body.len()), &list);
    let mut lead: Vec<String> = words.about.clone().into_iter().collect();
    if dvim::internal::simulate::is_synthetic(cohort) {
        lead.push(crate::comparison::SYNTHETIC_NOTE.into());
    }
    if words.title.is_some() {
        lead.push(question.clone());
    }
    lead.extend(words.names(summary).patients().map(str::to_string));
    let foot = format!(
        "dvim {}, seed {}. Every number in the tables is in summary.json, effects.csv or weights.csv of the run, or is printed by dvim match.",
        summary.version, summary.options.seed
    );
    // A number and its sign of percent stay on one line.
    document(title, &lead, &b.contents, &b.body.replace(" %", "\u{a0}%"), &foot)
}
