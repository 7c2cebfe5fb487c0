//! A run as a fragment of HTML for a notebook: what was estimated, from how many, both average effects with their
//! intervals, what to worry about, and how the effects vary. Loads nothing and brings its own colours.

use crate::audit::with_interval;
use crate::batch::{BatchRecord, Shown};
use crate::figures::{self, Look};
use crate::learning;
use crate::names::Names;
use crate::plot::escape;
use crate::record::Summary;
use crate::text::{answer, grouped, short, worries};
use dvim::internal::analysis::Analysis;
use dvim::internal::arm::Arm;
use dvim::internal::cohort::Cohort;
use dvim::internal::estimand::Estimand;
use dvim::internal::phrase::Face;

/// Worries that a card lists; the rest is counted.
const MOST_WORRIES: usize = 5;

/// Where a card begins.
const OPENING: &str = "<div style=\"background:#fff;color:#1b2230;padding:.8em 1em;border:1px solid #e5e8ed;max-width:46em;line-height:1.4;font-family:system-ui,sans-serif\">";

/// How a cell of the table looks.
const CELL: &str = "padding:.1em .8em;text-align:right;font-variant-numeric:tabular-nums";

/// The card of a run, with remedies in the words of `face`.
pub fn card(cohort: &Cohort, analysis: &Analysis, summary: &Summary, face: &dyn Face) -> String {
    let names = Names::of(summary, None);
    let (t, c) = (&summary.counts.treated, &summary.counts.control);
    let cell = |estimand: &str, population: &str, scale: f64| {
        summary.average(estimand, population).map_or("undefined".to_string(), |a| with_interval(a, scale))
    };
    let row = |name: &str, estimand: &str, scale: f64| {
        let cells = ["all", "treated", "control"]
            .map(|p| format!("<td style=\"{CELL}\">{}</td>", escape(&cell(estimand, p, scale))));
        format!("<tr><th scope=\"row\" style=\"{CELL};text-align:left\">{name}</th>{}</tr>", cells.concat())
    };
    let level = short(100.0 * summary.options.confidence);
    let mut out = format!(
        "{OPENING}<p style=\"margin:0 0 .6em\"><b>{}</b></p>\
         <p style=\"margin:0 0 .6em\">{} patients ({} {}, {} {}), {} events {}; {} were estimated ({}).</p>\
         <table style=\"border-collapse:collapse;margin:0 0 .6em\"><thead><tr><th></th>{}</tr></thead>\
         <tbody>{}{}</tbody></table>\
         <p style=\"margin:0 0 .6em;color:#56606e\">Means over {}, with {level} % intervals where there are any. \
         The first row is the effect on whether the event happens, the second the effect on when, among those who have it.</p>",
        escape(&answer(summary, &names).join(" ")),
        grouped(t.n_units + c.n_units),
        grouped(t.n_units),
        escape(names.arm(Arm::Treated)),
        grouped(c.n_units),
        escape(names.arm(Arm::Control)),
        grouped(t.n_events + c.n_events),
        escape(&names.within()),
        grouped(analysis.units.len()),
        learning::name(&analysis.fit),
        ["all", "treated", "control"]
            .map(|p| format!("<th style=\"{CELL}\">{}</th>", escape(&names.population(p))))
            .concat(),
        row(&escape(&names.effect(Estimand::Cure)), "cure_effect", 100.0),
        row(&escape(&names.effect(Estimand::Time)), "time_effect", 1.0),
        match summary.average("cure_effect", "all") {
            Some(a) if a.n_units > analysis.units.len() => format!("all {} patients", grouped(a.n_units)),
            _ => "the estimated patients".into(),
        },
    );
    out += &verdict(summary, face);
    out += &curves(cohort, summary, &names);
    out += &histograms(analysis, summary, &names);
    let mut list = worries(summary, analysis, cohort);
    list.extend(summary.warnings.iter().map(|w| {
        let column = w.column.as_ref().map_or(String::new(), |c| format!("column `{c}`: "));
        format!("{column}{}", w.found)
    }));
    if !list.is_empty() {
        let items: String = list.iter().take(MOST_WORRIES).map(|w| format!("<li>{}</li>", escape(w))).collect();
        let more = list.len().saturating_sub(MOST_WORRIES);
        let more = if more > 0 { format!("<li>and {more} more</li>") } else { String::new() };
        out += &format!(
            "<p style=\"margin:.6em 0 .2em\"><b>What to keep in mind</b></p><ul style=\"margin:0;padding-left:1.2em\">{items}{more}</ul>"
        );
    }
    out + "</div>"
}

/// Whether the data support the answer, with every reason and remedy.
fn verdict(summary: &Summary, face: &dyn Face) -> String {
    let Some(v) = &summary.verdict else {
        return "<p style=\"margin:0 0 .6em\">Whether the data support it was not judged: the run has no audit.</p>"
            .into();
    };
    let ([cure, time], reasons) = v.lines(face);
    let colour = |s: &str| match s {
        "supported" => "#1a6b3c",
        "not_reliable" => "#a3261c",
        _ => "#7a5200",
    };
    let said = [(&v.cure_effect, cure), (&v.time_effect, time)].map(|(of, words)| {
        let style = format!("margin:0 0 .3em;color:{}", colour(&of.support));
        format!("<p style=\"{style}\"><b>{}</b></p>", escape(&words))
    });
    let items: String = reasons.iter().map(|r| format!("<li>{}</li>", escape(r))).collect();
    let list = match items.is_empty() {
        true => String::new(),
        false => format!("<ul style=\"margin:0 0 .6em;padding-left:1.2em\">{items}</ul>"),
    };
    said.concat() + &list
}

/// The curves of both arms, adjusted where the run has them so.
fn curves(cohort: &Cohort, summary: &Summary, names: &Names) -> String {
    let look = Look { width: 600.0, names: names.clone() };
    figures::arms(cohort, summary, "all", &look).map_or_else(
        |_| String::new(),
        |mut figure| {
            figure.about.height = Some(170.0);
            figure.svg()
        },
    )
}

fn histograms(analysis: &Analysis, summary: &Summary, names: &Names) -> String {
    let look = Look { width: 600.0, names: names.clone() };
    let figure = |side| {
        let mut figure = figures::effects(analysis, summary, side, &look);
        figure.about.height = Some(90.0);
        figure.svg()
    };
    Estimand::BOTH.map(figure).concat()
}

/// The card of several runs.
pub fn batch_card(record: &BatchRecord) -> String {
    let Shown { heading, header, rows } = record.shown();
    let cells = |tag: &str, row: &[String]| {
        let cell = |(j, text): (usize, &String)| {
            let left = if j < 2 { ";text-align:left" } else { "" };
            format!("<{tag} style=\"{CELL}{left}\">{}</{tag}>", escape(text))
        };
        format!("<tr>{}</tr>", row.iter().enumerate().map(cell).collect::<String>())
    };
    format!(
        "{OPENING}<p style=\"margin:0 0 .6em\"><b>{}</b></p>\
         <table style=\"border-collapse:collapse;margin:0 0 .6em\"><thead>{}</thead><tbody>{}</tbody></table>\
         <p style=\"margin:0;color:#56606e\">The runs: {}.</p></div>",
        escape(&heading),
        cells("th", &header),
        rows.iter().map(|row| cells("td", row)).collect::<String>(),
        escape(&record.runs.iter().map(|m| m.name.as_str()).collect::<Vec<_>>().join(", "))
    )
}
