//! Page one: the question, both answers, whether the data support them, the curves, the subgroups and what it means in
//! time and numbers of patients. No word that a clinician has to look up.

use super::{Builder, Source};
use crate::audit::with_interval;
use crate::figures;
use crate::names::Names;
use crate::plot::page::{Table, escaped, paragraph};
use crate::record::Summary;
use crate::spell::CommandLine;
use crate::text::{answer, fixed, followed, gained_time, grouped, needed_to_treat, short};
use dvim::internal::cohort::Arm;
use dvim::internal::estimand::Estimand;
use std::fmt::Write;

/// Rows of the forests that a page has room for.
const MOST_ROWS: usize = 12;
/// Reasons that page one lists; the others are in the appendix.
const MOST_REASONS: usize = 3;

pub(super) fn section(b: &mut Builder, source: &Source<'_>) {
    let s = source.summary;
    let names = b.look.names.clone();
    b.plain_section("answer", "The answer");
    the_answer(b, s, &names);
    both(b, s, &names);
    let adjusted = s.audit.as_ref().is_some_and(|a| !a.curves.is_empty());
    let caption = match adjusted {
        true => {
            "Had all patients had one treatment, and had all had the other: adjusted for the covariates. Below, how many patients were still followed."
        }
        false => {
            "Patients of each group as they were seen, not adjusted (Kaplan–Meier). Below, how many patients were still followed."
        }
    };
    b.figure(
        |look| {
            figures::arms(source.cohort, s, "all", look).map_or_else(
                |why| why,
                |mut f| {
                    f.about.height = Some(190.0);
                    f.about.notes.clear();
                    f.svg()
                },
            )
        },
        caption,
    );
    forest(b, s);
    facts(b, s, &names);
}

fn the_answer(b: &mut Builder, s: &Summary, names: &Names) {
    let [cure, time] = answer(s, names);
    b.body.push_str("<div class=\"answer\">\n");
    let verdict = s.verdict.as_ref().map(|v| (v, v.lines(&CommandLine)));
    for (k, (id, words)) in [("whether", cure), ("when", time)].into_iter().enumerate() {
        let _ = writeln!(b.body, "<p id=\"{id}\" class=\"lead\">{}</p>", escaped(&words));
        if let Some((v, _)) = &verdict {
            let support = [&v.cure_effect, &v.time_effect][k];
            let class = verdict_class(&support.support);
            let _ = writeln!(b.body, "<p class=\"verdict {class}\">{}</p>", escaped(&support.words));
        }
    }
    match &verdict {
        Some((v, _)) => {
            let heavy = v.reasons.iter().filter(|r| r.weight != "note").map(|r| r.spelled(&CommandLine));
            let heavy: Vec<String> = heavy.collect();
            let more = heavy.len().saturating_sub(MOST_REASONS);
            let mut list: Vec<String> = heavy.into_iter().take(MOST_REASONS).collect();
            if more > 0 {
                list.push(format!("And {more} more, in the appendix under Checks."));
            }
            b.list("reasons", list);
        }
        None => b.say("Whether the data support it was not judged: the run has no audit."),
    }
    b.body.push_str("</div>\n");
}

pub(super) fn verdict_class(support: &str) -> &'static str {
    match support {
        "supported" => "good",
        "not_reliable" => "bad",
        _ => "mixed",
    }
}

/// Both outcomes with each treatment, and their difference.
fn both(b: &mut Builder, s: &Summary, names: &Names) {
    let percent = |estimand: &str| {
        s.average(estimand, "all")
            .and_then(|a| a.estimate)
            .map_or("–".into(), |v| format!("{} %", fixed(100.0 * v, 1)))
    };
    let time = |estimand: &str| {
        s.average(estimand, "all").and_then(|a| a.estimate).map_or("–".into(), |v| names.time(&short(v)))
    };
    let difference =
        |estimand: &str, scale: f64| s.average(estimand, "all").map_or(String::new(), |a| with_interval(a, scale));
    let mut rows = Vec::new();
    if s.average("cure_treated", "all").is_some() {
        let points = format!("{} points", difference("cure_effect", 100.0));
        rows.push(vec![names.outcome(Estimand::Cure), percent("cure_treated"), percent("cure_control"), points]);
    }
    if s.average("mean_event_time_treated", "all").is_some() {
        let label = format!("{}, if within that time", names.outcome(Estimand::Time));
        let arms = ["mean_event_time_treated", "mean_event_time_control"].map(time);
        rows.push([label].into_iter().chain(arms).chain([difference("time_effect", 1.0)]).collect());
    }
    if rows.is_empty() {
        return;
    }
    let rows = rows.into_iter().map(|r: Vec<String>| r.into_iter().map(super::true_minus).collect()).collect();
    let head = format!("Difference ({} % CI)", short(100.0 * s.options.confidence));
    let columns = vec![String::new(), names.head(Arm::Treated), names.head(Arm::Control), head];
    let table = Table { columns, rows, caption: "Both outcomes with either treatment.".into(), ..Table::default() };
    b.body += &table.html();
}

fn forest(b: &mut Builder, s: &Summary) {
    if s.audit.as_ref().is_none_or(|a| a.by.is_empty()) {
        return;
    }
    let all = figures::averages(s, Estimand::Cure, &b.look).rows.len();
    let more = if all > MOST_ROWS { " The first subgroups; the others are in the appendix." } else { "" };
    b.figure(
        |look| {
            let mut forest = figures::averages(s, Estimand::Cure, look);
            forest.rows.truncate(MOST_ROWS);
            forest.svg()
        },
        &format!(
            "Subgroups, with the p value of a test that the difference is the same in all of them (interaction).{more} The same for when is in the appendix under Average effects."
        ),
    );
}

fn facts(b: &mut Builder, s: &Summary, names: &Names) {
    let (t, c) = (&s.counts.treated, &s.counts.control);
    let patients = format!(
        "{} patients: {} had {}, {} had {}. {} had {} {}.",
        grouped(t.n_units + c.n_units),
        grouped(t.n_units),
        names.arm(Arm::Treated),
        grouped(c.n_units),
        names.arm(Arm::Control),
        grouped(t.n_events + c.n_events),
        names.event(),
        names.within()
    );
    let words = [gained_time(s, names), needed_to_treat(s, names), followed(s, names), names.competing_note()];
    let caveat = "Patients were not assigned by this analysis: the answer holds if what decided on treatment and also matters for the outcome was measured, and if patients lost to follow-up are like those who stayed.";
    let items: Vec<String> = words.into_iter().flatten().chain([patients, caveat.into()]).collect();
    b.body.push_str("<div class=\"facts\">\n");
    items.iter().for_each(|words| b.body += &paragraph(words));
    b.body.push_str("</div>\n");
}
