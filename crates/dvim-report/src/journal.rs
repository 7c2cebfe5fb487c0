//! Tables in the form that journals print: the averages, the baseline table, subgroups and balance. Each is data first;
//! `dvim table` and the report write the same rows in several formats.

use crate::audit::{BalanceRecord, with_interval};
use crate::figures::interaction;
use crate::findings::{ArmBaselineRecord, BaselineRecord};
use crate::names::{Names, capital};
use crate::record::{AverageRecord, Summary};
use crate::text::{decimals_of, fixed, grouped, percent, short, signed_fixed};
use dvim::internal::audit::average::By;
use dvim::internal::cohort::Arm;
use dvim::internal::estimand::Estimand;
use std::fmt::Write;

/// The tables that can be asked for, and what they hold.
pub const KINDS: [(&str, &str); 4] = [
    ("averages", "both average effects, what each arm would give, and the number needed to treat"),
    ("baseline", "the patients of each arm before matching (Table 1)"),
    ("subgroups", "both average effects by subgroup, with tests of interaction; needs a run with --by"),
    ("balance", "standardised differences between the arms, before and after"),
];

/// A row: a label, its depth under a heading, and cells. A heading has no cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What the row is about.
    pub label: String,
    /// 1 for a row under a heading.
    pub depth: usize,
    /// Its cells.
    pub cells: Vec<String>,
}

/// A table as data.
#[derive(Clone, Debug, PartialEq)]
pub struct Journal {
    /// What it shows, in one line.
    pub title: String,
    /// Heads of the columns; the first is that of the labels.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
    /// What must be known to read it.
    pub notes: Vec<String>,
}

impl Row {
    fn new(label: impl Into<String>, cells: Vec<String>) -> Row {
        Row { label: label.into(), depth: 0, cells }
    }

    fn under(self) -> Row {
        Row { depth: 1, ..self }
    }

    fn heading(label: impl Into<String>) -> Row {
        Row::new(label, Vec::new())
    }
}

/// The table of this name; `Err` says what the run lacks or which names there are.
pub fn table(kind: &str, s: &Summary, names: &Names) -> Result<Journal, String> {
    match kind {
        "averages" => Ok(averages(s, names)),
        "baseline" if s.baseline.is_empty() => {
            Err("the run has no baseline table: it was written by an older dvim".into())
        }
        "baseline" => Ok(baseline(s, names)),
        "subgroups" => subgroups(s, names).ok_or_else(|| "the run has no subgroups; fit with --by COVARIATE".into()),
        "balance" => {
            let found = s.audit.as_ref().and_then(|a| a.balance.as_ref());
            found.map(|b| balance(b, names)).ok_or_else(|| "balance is not in the files of this run".into())
        }
        _ => Err(format!("the tables are {}", KINDS.map(|k| k.0).join(", "))),
    }
}

/// A percentage with its interval.
fn share(a: &AverageRecord) -> String {
    let show = |v: f64| fixed(100.0 * v, 1);
    match (a.estimate, a.low.zip(a.high)) {
        (Some(v), Some((low, high))) => format!("{} % ({} to {})", show(v), show(low), show(high)),
        (Some(v), None) => format!("{} %", show(v)),
        _ => "undefined".into(),
    }
}

/// Both average effects.
pub fn averages(s: &Summary, names: &Names) -> Journal {
    let cell = |estimand: &str, population: &str, scale: f64| {
        s.average(estimand, population).map_or(String::new(), |a| match estimand {
            "cure_treated" | "cure_control" => share(a),
            _ => with_interval(a, scale),
        })
    };
    let (treated, control) = (names.arm(Arm::Treated), names.arm(Arm::Control));
    let (state, unit) = (names.state(), names.in_unit());
    let rows: [(String, &str, f64, usize); 14] = [
        (names.effect(Estimand::Cure), "cure_effect", 100.0, 0),
        (format!("{} with {treated}", capital(&state)), "cure_treated", 100.0, 1),
        (format!("{} with {control}", capital(&state)), "cure_control", 100.0, 1),
        ("Ratio of these shares".into(), "cure_ratio", 1.0, 1),
        ("Number needed to treat".into(), "number_needed_to_treat", 1.0, 1),
        (names.effect(Estimand::Time), "time_effect", 1.0, 0),
        (format!("Mean time to event with {treated}{unit}"), "mean_event_time_treated", 1.0, 1),
        (format!("Mean time to event with {control}{unit}"), "mean_event_time_control", 1.0, 1),
        (format!("Event-free time gained {}{unit}", names.up_to()), "rmst_effect", 1.0, 0),
        (format!("Because fewer have {}", names.event()), "rmst_from_cure", 1.0, 1),
        ("Because it comes later".into(), "rmst_from_time", 1.0, 1),
        (format!("Event-free time {} with {treated}{unit}", names.up_to()), "rmst_treated", 1.0, 1),
        (format!("Event-free time {} with {control}{unit}", names.up_to()), "rmst_control", 1.0, 1),
        (format!("Median event-free time with {treated}{unit}"), "median_treated", 1.0, 1),
    ];
    let last = (format!("Median event-free time with {control}{unit}"), "median_control", 1.0, 1);
    let populations = ["all", "treated", "control"];
    let rows = rows.into_iter().chain([last]).filter(|r| s.average(r.1, "all").is_some());
    let rows = rows.map(|(label, estimand, scale, depth)| {
        let cells = populations.map(|p| cell(estimand, p, scale)).to_vec();
        Row { label, depth, cells }
    });
    let level = short(100.0 * s.options.confidence);
    let mut notes = vec![format!("Estimates with {level} % confidence intervals, adjusted for the covariates.")];
    notes.push(format!(
        "Time to event is compared among patients who have {} {}, with either treatment.",
        names.event(),
        names.within()
    ));
    notes.extend(names.competing_note());
    notes.extend(crate::text::about_averages(s).map(str::to_string));
    let heads = populations.map(|p| names.population(p));
    Journal {
        title: format!("Average effects of {treated} against {control}"),
        columns: [String::new()].into_iter().chain(heads).collect(),
        rows: rows.collect(),
        notes,
    }
}

/// Whether quartiles look like calendar years, which have no thousands.
fn are_years(name: &str, of: &[f64; 3]) -> bool {
    name.to_ascii_lowercase().contains("year") && of.iter().all(|v| (1800.0..2200.0).contains(v))
}

/// The arms before matching, as a journal's Table 1.
pub fn baseline(s: &Summary, names: &Names) -> Journal {
    let arms = [&s.counts.treated, &s.counts.control];
    let mut rows = Vec::new();
    let mut notes = vec![
        "Values are n (%) or median [25 % to 75 % quantile]. All patients, before any adjustment.".to_string(),
        format!(
            "Standardised difference: {} less {}, in standard deviations; beyond 0.1 groups are commonly called different.",
            names.arm(Arm::Treated),
            names.arm(Arm::Control)
        ),
    ];
    let difference = |r: &BaselineRecord| r.difference.map_or("constant".into(), |d| signed_fixed(d, 2));
    let counted = |r: &BaselineRecord| {
        let cell = |a: &ArmBaselineRecord| format!("{} ({})", grouped(a.n_units), percent(a.mean));
        vec![cell(&r.arms.treated), cell(&r.arms.control), difference(r)]
    };
    let mut k = 0;
    while k < s.baseline.len() {
        let column = &s.baseline[k].covariate;
        let mut of: Vec<&BaselineRecord> = s.baseline[k..].iter().take_while(|r| r.covariate == *column).collect();
        k += of.len();
        // What is missing of a column stands under it, and is no level.
        let missing: Vec<&BaselineRecord> =
            of.iter().copied().filter(|r| r.level.as_deref() == Some("missing") && of.len() > 1).collect();
        of.retain(|r| !missing.iter().any(|m| std::ptr::eq(*m, *r)));
        match of.as_slice() {
            [r] if r.level.is_none() && r.is_binary => rows.push(Row::new(names.covariate(column), counted(r))),
            [r] if r.level.is_none() => {
                let cell = |a: &ArmBaselineRecord| match &a.quartiles {
                    Some(q) if are_years(column, q) => {
                        let [low, mid, high] = q.map(|v| format!("{v:.0}"));
                        format!("{mid} [{low} to {high}]")
                    }
                    Some(q) => {
                        let d = decimals_of(q[2] - q[0]).min(2);
                        let d = if q.iter().all(|v| v.fract() == 0.0) { 0 } else { d };
                        let [low, mid, high] = q.map(|v| fixed(v, d));
                        format!("{mid} [{low} to {high}]")
                    }
                    None => format!("{} (sd {})", short(a.mean), short(a.sd)),
                };
                let cells = vec![cell(&r.arms.treated), cell(&r.arms.control), difference(r)];
                rows.push(Row::new(names.covariate_with_unit(column), cells));
            }
            [r] => {
                let level = r.level.as_deref().unwrap_or_default();
                let name = names.covariate(column);
                let label = match (names.level(column, level).as_str(), level) {
                    (_, "1" | "true" | "yes" | "TRUE" | "Yes") => name,
                    (words, _) => format!("{name}: {words}"),
                };
                rows.push(Row::new(label, counted(r)));
            }
            _ => {
                rows.push(Row::heading(names.covariate(column)));
                let levels: Vec<&str> = of.iter().filter_map(|r| r.level.as_deref()).collect();
                of.sort_by_key(|r| names.place_of_level(column, &levels, r.level.as_deref().unwrap_or_default()));
                rows.extend(of.iter().map(|r| {
                    Row::new(names.level(column, r.level.as_deref().unwrap_or_default()), counted(r)).under()
                }));
            }
        }
        rows.extend(missing.iter().map(|r| Row::new("Missing", counted(r)).under()));
    }
    let heads = [Arm::Treated, Arm::Control];
    let heads = heads.iter().zip(arms).map(|(z, c)| format!("{} (n = {})", names.head(*z), grouped(c.n_units)));
    let mut columns = vec![String::new()];
    columns.extend(heads);
    columns.push("Standardised difference".into());
    notes.extend(names.patients().map(|p| format!("Population: {p}.")));
    Journal { title: "Patients of each arm before matching".into(), columns, rows, notes }
}

/// Both average effects by subgroup, with tests of interaction.
pub fn subgroups(s: &Summary, names: &Names) -> Option<Journal> {
    let by: Vec<String> = s.audit.as_ref()?.by.iter().map(|b| By::parse(b).covariate).collect();
    let cell = |estimand: &str, population: &str, scale: f64| {
        s.average(estimand, population).map_or(String::new(), |a| with_interval(a, scale))
    };
    let row = |label: String, population: &str| {
        let n = s.average("cure_effect", population).map_or(0, |a| a.n_units);
        let effects = [cell("cure_effect", population, 100.0), cell("time_effect", population, 1.0)];
        Row::new(label, [grouped(n)].into_iter().chain(effects).collect())
    };
    let mut rows = vec![row(names.population("all"), "all")];
    for column in by {
        let is_of_it = |a: &&AverageRecord| {
            a.estimand == "cure_effect" && a.population.strip_prefix(&column).is_some_and(|r| r.starts_with(' '))
        };
        let mut of: Vec<&AverageRecord> = s.average_effects.iter().filter(is_of_it).collect();
        let levels: Vec<&str> = of.iter().filter_map(|a| Some(a.population.split_once(" = ")?.1)).collect();
        of.sort_by_key(|a| {
            let level = a.population.split_once(" = ").map(|(_, level)| level);
            level.map_or(0, |level| names.place_of_level(&column, &levels, level))
        });
        let p = ["cure_effect", "time_effect"]
            .map(|e| interaction(s, &column, e).map_or(String::new(), |p| format!("interaction: p {p}")));
        let [cure, time] = p;
        rows.push(Row::new(names.covariate_with_unit(&column), vec![String::new(), cure, time]));
        rows.extend(of.iter().map(|a| row(names.subgroup(&column, &a.population), &a.population).under()));
    }
    if rows.len() == 1 {
        return None;
    }
    Some(Journal {
        title: format!(
            "Average effects of {} against {} by subgroup",
            names.arm(Arm::Treated),
            names.arm(Arm::Control)
        ),
        columns: vec!["Subgroup".into(), "Patients".into(), names.effect(Estimand::Cure), names.effect(Estimand::Time)],
        rows,
        notes: vec![
            format!("Estimates with {} % confidence intervals.", short(100.0 * s.options.confidence)),
            "Interaction: Cochran's test of the same effect in all subgroups of the covariate.".into(),
        ],
    })
}

/// Standardised differences between the arms.
fn balance(b: &BalanceRecord, names: &Names) -> Journal {
    let weighted = b.covariates.iter().any(|c| c.average.is_some());
    let d = |v: f64| signed_fixed(v, 3);
    let ratio = |v: Option<f64>| v.map_or("not defined".into(), |v| fixed(v, 2));
    let rows = b.covariates.iter().map(|c| {
        let of = c.average.as_ref().unwrap_or(&c.cure);
        let mut cells = vec![d(c.before.difference), d(of.difference)];
        if !weighted {
            cells.push(d(c.time.difference));
        }
        cells.extend([ratio(c.before.variance_ratio), ratio(of.variance_ratio)]);
        Row::new(names.column(&c.covariate), cells)
    });
    let heads: &[&str] = match weighted {
        true => &["Before", "Weighted", "Variance ratio before", "Weighted"],
        false => &["Before", "Matched for whether", "Matched for when", "Variance ratio before", "Matched for whether"],
    };
    Journal {
        title: "Balance of the covariates between the arms".into(),
        columns: [""].iter().chain(heads).map(|h| h.to_string()).collect(),
        rows: rows.collect(),
        notes: vec![
            "Differences are standardised: in standard deviations. Beyond 0.1 groups are commonly called different."
                .into(),
            match weighted {
                true => "Weighted: as the averages weigh patients, by the inverse chance of their treatment.".into(),
                false => "Matched: in the groups of similar patients.".into(),
            },
        ],
    }
}

impl Journal {
    /// Rows with all their cells, for formats that have no headings.
    fn filled(&self) -> impl Iterator<Item = (usize, Vec<&str>)> {
        self.rows.iter().map(|r| {
            let mut cells = vec![r.label.as_str()];
            cells.extend(r.cells.iter().map(String::as_str));
            cells.resize(self.columns.len().max(cells.len()), "");
            (r.depth, cells)
        })
    }

    /// Comma-separated values, headings in a column of their own.
    pub fn csv(&self) -> String {
        let cell = |text: &str| match text.contains(['"', ',', '\n']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.to_string(),
        };
        let line = |cells: &[&str]| cells.iter().map(|c| cell(c)).collect::<Vec<_>>().join(",") + "\n";
        let first = if self.columns[0].is_empty() { "row" } else { &self.columns[0] };
        let mut heads = vec!["group", first];
        heads.extend(self.columns[1..].iter().map(String::as_str));
        let mut out = line(&heads);
        let mut group = "";
        for (depth, cells) in self.filled() {
            if depth == 0 {
                group = "";
            }
            let mut row = vec![group];
            row.extend(&cells);
            out += &line(&row);
            if depth == 0 {
                group = cells[0];
            }
        }
        out
    }

    /// A LaTeX table for `booktabs`.
    pub fn tex(&self) -> String {
        let n = self.columns.len();
        let line = |cells: &[String]| format!("{} \\\\\n", cells.join(" & "));
        let mut out = format!(
            "% Needs \\usepackage{{booktabs}}\n\\begin{{table}}\n\\caption{{{}}}\n\\begin{{tabular}}{{l{}}}\n\\toprule\n",
            tex_text(&self.title),
            "r".repeat(n - 1)
        );
        out += &line(&self.columns.iter().map(|c| tex_text(c)).collect::<Vec<_>>());
        out += "\\midrule\n";
        for (depth, cells) in self.filled() {
            let mut cells: Vec<String> = cells.into_iter().map(tex_text).collect();
            if depth > 0 {
                cells[0] = format!("\\quad {}", cells[0]);
            }
            out += &line(&cells);
        }
        out += "\\bottomrule\n\\end{tabular}\n";
        for note in &self.notes {
            let _ = writeln!(out, "\n\\smallskip\\footnotesize {}", tex_text(note));
        }
        out + "\\end{table}\n"
    }

    /// A page of HTML that holds the table alone.
    pub fn html(&self) -> String {
        use crate::plot::page::{heading, page, paragraph};
        let notes: String = self.notes.iter().map(|n| paragraph(n)).collect();
        page(&self.title, &format!("{}{}{notes}", heading(1, &self.title), self.html_table("", "")))
    }

    /// The table as HTML, with a name such as `Table 1.` and a caption.
    pub fn html_table(&self, name: &str, caption: &str) -> String {
        let rows = self.filled().map(|(depth, cells)| {
            let mut cells: Vec<String> = cells.into_iter().map(super::report::true_minus_text).collect();
            if depth > 0 {
                // Spaces that HTML keeps.
                cells[0] = format!("\u{2003}{}", cells[0]);
            }
            cells
        });
        let table = crate::plot::page::Table {
            name: name.into(),
            caption: caption.into(),
            columns: self.columns.clone(),
            rows: rows.collect(),
            words: vec![],
        };
        table.html()
    }

    /// The parts of a Word document (Office Open XML): path and text of each.
    pub fn docx(&self) -> Vec<(&'static str, String)> {
        let run = |text: &str, bold: bool| {
            let bold = if bold { "<w:rPr><w:b/></w:rPr>" } else { "" };
            format!("<w:r>{bold}<w:t xml:space=\"preserve\">{}</w:t></w:r>", xml(text))
        };
        let paragraph = |text: &str, bold: bool, right: bool, indent: usize| {
            let align = if right { "<w:jc w:val=\"right\"/>" } else { "" };
            let indent = if indent > 0 { format!("<w:ind w:left=\"{}\"/>", 240 * indent) } else { String::new() };
            format!(
                "<w:p><w:pPr><w:spacing w:before=\"20\" w:after=\"20\"/>{indent}{align}</w:pPr>{}</w:p>",
                run(text, bold)
            )
        };
        // Lines above and below the heads and below the table, as journals have them.
        let line = |above: bool, below: bool| {
            let rule = |side: &str| format!("<w:{side} w:val=\"single\" w:sz=\"6\" w:space=\"0\" w:color=\"auto\"/>");
            let top = if above { rule("top") } else { String::new() };
            let bottom = if below { rule("bottom") } else { String::new() };
            format!("<w:tcPr><w:tcBorders>{top}{bottom}</w:tcBorders></w:tcPr>")
        };
        let mut rows = String::new();
        let heads: String = (0..self.columns.len())
            .map(|j| format!("<w:tc>{}{}</w:tc>", line(true, true), paragraph(&self.columns[j], true, j > 0, 0)))
            .collect();
        let _ = write!(rows, "<w:tr><w:trPr><w:tblHeader/></w:trPr>{heads}</w:tr>");
        let last = self.rows.len().saturating_sub(1);
        for (i, (depth, cells)) in self.filled().enumerate() {
            let heading = self.rows[i].cells.is_empty();
            let cell = |(j, text): (usize, &&str)| {
                let indent = if j == 0 { depth } else { 0 };
                format!("<w:tc>{}{}</w:tc>", line(false, i == last), paragraph(text, heading, j > 0, indent))
            };
            let _ = write!(rows, "<w:tr>{}</w:tr>", cells.iter().enumerate().map(cell).collect::<String>());
        }
        let notes: String = self.notes.iter().map(|n| paragraph(n, false, false, 0)).collect();
        let grid = "<w:gridCol/>".repeat(self.columns.len());
        let body = format!(
            "{}<w:tbl><w:tblPr><w:tblW w:w=\"0\" w:type=\"auto\"/></w:tblPr><w:tblGrid>{grid}</w:tblGrid>{rows}</w:tbl>{notes}",
            paragraph(&self.title, true, false, 0)
        );
        let main = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
        let page = "<w:sectPr><w:pgSz w:w=\"11906\" w:h=\"16838\"/><w:pgMar w:top=\"1134\" w:right=\"1134\" w:bottom=\"1134\" w:left=\"1134\" w:header=\"0\" w:footer=\"0\" w:gutter=\"0\"/></w:sectPr>";
        let document = format!("{XML}<w:document xmlns:w=\"{main}\"><w:body>{body}{page}</w:body></w:document>");
        let kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml";
        vec![
            ("[Content_Types].xml", content_types(&[("/word/document.xml", kind)])),
            ("_rels/.rels", relations("officeDocument", "word/document.xml")),
            ("word/document.xml", document),
        ]
    }

    /// The parts of an Excel workbook (Office Open XML): path and text of each. Cells are texts, as they are printed.
    pub fn xlsx(&self) -> Vec<(&'static str, String)> {
        let cell = |text: &str, style: usize| {
            format!("<c t=\"inlineStr\" s=\"{style}\"><is><t xml:space=\"preserve\">{}</t></is></c>", xml(text))
        };
        let mut rows = String::new();
        let mut row = |cells: String| {
            let _ = write!(rows, "<row>{cells}</row>");
        };
        row(cell(&self.title, 1));
        row(self.columns.iter().map(|c| cell(c, 1)).collect());
        for (depth, cells) in self.filled() {
            row(cells.iter().enumerate().map(|(j, c)| cell(c, if j == 0 && depth > 0 { 2 } else { 0 })).collect());
        }
        self.notes.iter().for_each(|n| row(cell(n, 0)));
        let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
        let sheet = format!(
            "{XML}<worksheet xmlns=\"{main}\"><cols><col min=\"1\" max=\"1\" width=\"44\" customWidth=\"1\"/><col min=\"2\" max=\"{}\" width=\"26\" customWidth=\"1\"/></cols><sheetData>{rows}</sheetData></worksheet>",
            self.columns.len().max(2)
        );
        let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
        let workbook = format!(
            "{XML}<workbook xmlns=\"{main}\" xmlns:r=\"{office}\"><sheets><sheet name=\"Table\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
        );
        let styles = format!(
            "{XML}<styleSheet xmlns=\"{main}\"><fonts count=\"2\"><font><sz val=\"11\"/><name val=\"Calibri\"/></font><font><b/><sz val=\"11\"/><name val=\"Calibri\"/></font></fonts><fills count=\"1\"><fill><patternFill patternType=\"none\"/></fill></fills><borders count=\"1\"><border/></borders><cellStyleXfs count=\"1\"><xf/></cellStyleXfs><cellXfs count=\"3\"><xf/><xf fontId=\"1\" applyFont=\"1\"/><xf applyAlignment=\"1\"><alignment indent=\"1\"/></xf></cellXfs></styleSheet>"
        );
        let kind = |part: &str| format!("application/vnd.openxmlformats-officedocument.spreadsheetml.{part}+xml");
        let (book, page, style) = (kind("sheet.main"), kind("worksheet"), kind("styles"));
        let parts = format!(
            "{XML}<Relationships xmlns=\"{PACKAGE}\"><Relationship Id=\"rId1\" Type=\"{office}/worksheet\" Target=\"worksheets/sheet1.xml\"/><Relationship Id=\"rId2\" Type=\"{office}/styles\" Target=\"styles.xml\"/></Relationships>"
        );
        let types = [("/xl/workbook.xml", &book[..]), ("/xl/worksheets/sheet1.xml", &page), ("/xl/styles.xml", &style)];
        vec![
            ("[Content_Types].xml", content_types(&types)),
            ("_rels/.rels", relations("officeDocument", "xl/workbook.xml")),
            ("xl/workbook.xml", workbook),
            ("xl/_rels/workbook.xml.rels", parts),
            ("xl/styles.xml", styles),
            ("xl/worksheets/sheet1.xml", sheet),
        ]
    }
}

const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";
const PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006/relationships";

fn content_types(parts: &[(&str, &str)]) -> String {
    let each: String =
        parts.iter().map(|(name, kind)| format!("<Override PartName=\"{name}\" ContentType=\"{kind}\"/>")).collect();
    format!(
        "{XML}<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\"><Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/><Default Extension=\"xml\" ContentType=\"application/xml\"/>{each}</Types>"
    )
}

fn relations(kind: &str, target: &str) -> String {
    let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    format!(
        "{XML}<Relationships xmlns=\"{PACKAGE}\"><Relationship Id=\"rId1\" Type=\"{office}/{kind}\" Target=\"{target}\"/></Relationships>"
    )
}

/// Text made safe for XML; signs that XML forbids become spaces.
fn xml(text: &str) -> String {
    let allowed = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(allowed).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Text made safe for LaTeX.
fn tex_text(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' | '>' | '=' => {
                let _ = write!(out, "${c}$");
            }
            '−' => out.push_str("$-$"),
            '≥' => out.push_str("$\\geq$"),
            '≤' => out.push_str("$\\leq$"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Journal {
        Journal {
            title: "A & B".into(),
            columns: vec![String::new(), "x, y".into()],
            rows: vec![
                Row::heading("Sex"),
                Row::new("male", vec!["3 (50.0 %)".into()]).under(),
                Row::new("<b>", vec!["\"1\"".into()]),
            ],
            notes: vec!["100 %".into()],
        }
    }

    #[test]
    fn each_format_escapes_its_own_signs() {
        let t = sample();
        assert_eq!(t.csv(), "group,row,\"x, y\"\n,Sex,\nSex,male,3 (50.0 %)\n,<b>,\"\"\"1\"\"\"\n");
        assert!(t.tex().contains("A \\& B") && t.tex().contains("3 (50.0 \\%)") && t.tex().contains("$<$b$>$"));
        let word = &t.docx()[2].1;
        assert!(word.contains("A &amp; B") && word.contains("&lt;b&gt;") && !word.contains("<b>"));
        assert!(t.xlsx()[5].1.contains("&lt;b&gt;"));
        assert!(t.html().contains("&lt;b&gt;"));
    }
}
