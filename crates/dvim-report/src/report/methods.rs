//! A methods paragraph to paste, the citations, and how to reproduce a run.

use super::Builder;
use crate::plot::page::escaped;
use crate::record::Summary;
use crate::text::{grouped, short};
use std::fmt::Write;

const PAPER: &str = "Li Y, Lanners Q, Engelhard MM. Double Variable Importance Matching to Estimate Distinct Causal Effects on Event Probability and Timing. 2026. arXiv:2602.05022.";

pub(super) fn section(b: &mut Builder, s: &Summary) {
    b.section("methods", "Methods, ready to paste");
    let _ = writeln!(b.body, "<blockquote><p>{}</p></blockquote>", escaped(&methods_paragraph(s)));
    b.heading("To be cited");
    b.list(
        "",
        [
            PAPER.to_string(),
            format!("dvim: double variable importance matching. Version {}. Software, MIT or Apache-2.0.", s.version),
        ],
    );

    b.section("reproduce", "How to reproduce it");
    let _ = writeln!(b.body, "<pre tabindex=\"0\"><code>{}</code></pre>", escaped(&command(s)));
    b.say("Or dvim rerun RUN, which repeats it from summary.json and says whether the result is the same to the last bit. The same seed gives the same bytes on any number of threads and in any order of rows.");
    let row = |name: &str, value: String| vec![name.to_string(), value];
    let mut rows = vec![
        row("dvim", s.version.clone()),
        row("Seed", s.options.seed.to_string()),
        row(
            "Input",
            format!("{}, {} rows, {} bytes", s.input.file, grouped(s.input.n_rows), grouped(s.input.n_bytes as usize)),
        ),
        row("SHA-256 of the input", s.input.sha256.clone()),
    ];
    rows.extend(s.files.iter().map(|(name, hash)| row(&format!("SHA-256 of {name}"), hash.clone())));
    b.table("What the run was made with, and what it wrote.", &["", "Value"], rows, &[1]);
}

/// What was done, for the methods section of a paper.
pub fn methods_paragraph(s: &Summary) -> String {
    let (t, c) = (&s.counts.treated, &s.counts.control);
    let o = &s.options;
    let mut out = format!(
        "We compared {} patients with {} = {} (treated) with {} patients with {} = {} (control). Two effects were estimated up to a horizon of H = {}: the cure effect, the difference between the arms in the probability of being event-free at H, and the time effect, the difference in the mean event time of those with an event before H. ",
        grouped(t.n_units),
        s.roles.treatment,
        s.roles.labels.treated,
        grouped(c.n_units),
        s.roles.treatment,
        s.roles.labels.control,
        short(s.horizon)
    );
    let covariates = s.roles.covariates.len();
    let scaled = if o.scale == "standard" { "standardised" } else { "taken as recorded" };
    let metric = if o.metric == "combined" { "one metric, the mean of the two weight vectors," } else { "two metrics" };
    match (&s.adjusted, &o.adjusted) {
        (Some(found), Some(asked)) => {
            let _ = write!(
                out,
                "We used double variable importance matching [1] with groups corrected by cross-fitted models: in {} honest splits{}, mixture cure models with {} event times, whose {} covariates were {scaled}, were fitted to all patients but those whom the split left out and gave the weights of two metrics, one for each effect; each patient left out was compared with the nearest patients of each arm under each metric (group sizes and weights of the correction {}), and the Kaplan–Meier estimates of the groups were corrected for the remaining differences. ",
                found.n_folds().iter().sum::<usize>(),
                if found.further_deals.is_empty() {
                    String::new()
                } else {
                    format!(
                        " (each patient being left out by {}, over which estimates were averaged)",
                        1 + found.further_deals.len()
                    )
                },
                found.latency,
                covariates,
                if asked.group_size.is_some() { "given" } else { "chosen by out-of-fold loss" }
            );
        }
        _ => {
            let _ = write!(
                out,
                "We used double variable importance matching [1]: in a random {} % of each arm ({} patients) a mixture cure model (logistic for cure, log-normal event times truncated at H) was fitted by maximum likelihood to {} covariates, which were {scaled}; the mean absolute coefficients of the two arms gave the weights of {metric} for cure and for time. Each of the other {} patients was compared with the {} nearest patients of each arm, with replacement, under each metric; the Kaplan–Meier curves of these groups gave both effects. ",
                short(100.0 * o.train_fraction),
                grouped(t.n_training + c.n_training),
                covariates,
                grouped(t.n_estimation + c.n_estimation),
                grouped(o.group_size)
            );
        }
    }
    if !o.exact.is_empty() {
        let _ = write!(out, "Groups agreed exactly on {}. ", o.exact.join(", "));
    }
    for k in &o.calipers {
        let _ = write!(
            out,
            "Members differed from the patient by at most {}{} in {}. ",
            short(k.width),
            if k.in_sd { " standard deviations" } else { "" },
            k.covariate
        );
    }
    let asked = &s.roles.asked;
    for (column, words) in [
        (&asked.weights, "Patients counted with the weights in"),
        (&asked.cluster, "Standard errors allow for clusters by"),
        (&asked.entry, "Patients were at risk only from the time in"),
        (&asked.cause, "Events were told apart by cause; the event of interest was"),
    ] {
        column.iter().for_each(|c| {
            let _ = write!(out, "{words} {c}. ");
        });
    }
    match asked.missing.as_str() {
        "drop" => out.push_str("Patients with a missing value were left out. "),
        "indicator" => out.push_str("Missing values were filled in with the median or the most frequent level, with an indicator among the covariates. "),
        _ => {}
    }
    if s.average("cure_effect", "all").is_some_and(|a| a.se.is_some()) {
        let _ = write!(
            out,
            "Averages are given with {} % intervals from standard errors by patient, which allow for the reuse of patients in groups. ",
            short(100.0 * o.confidence)
        );
    }
    if s.audit.as_ref().is_some_and(|a| a.balance.is_some()) {
        out.push_str("Balance was judged by standardised differences, follow-up by the events before H, unmeasured confounding by E-values. ");
    }
    let _ = write!(out, "The analysis was done with dvim {} (seed {}).\n[1] {PAPER}", s.version, o.seed);
    out.replace('\n', " ")
}

/// The command that makes the run again.
pub fn command(s: &Summary) -> String {
    let (r, a, o) = (&s.roles, &s.roles.asked, &s.options);
    let mut words: Vec<String> = vec!["dvim".into(), "fit".into(), s.input.file.clone()];
    let mut flag = |name: &str, value: String| words.extend([name.to_string(), value]);
    match &a.dates {
        Some([start, end]) => {
            flag("--start", start.clone());
            flag("--end", end.clone());
        }
        None => flag("--time", r.time.clone()),
    }
    flag("--event", r.event.clone());
    flag("--treatment", r.treatment.clone());
    flag("--horizon", s.horizon.to_string());
    let given = [
        ("--id", &a.id),
        ("--treated", &a.treated),
        ("--control", &a.control),
        ("--weights", &a.weights),
        ("--cluster", &a.cluster),
        ("--entry", &a.entry),
        ("--cause", &a.cause),
    ];
    given.into_iter().for_each(|(name, v)| v.iter().for_each(|v| flag(name, v.clone())));
    a.covariates.iter().for_each(|c| flag("--covariates", c.join(",")));
    for (name, list) in
        [("--numeric", &a.numeric), ("--categorical", &a.categorical), ("--drop", &a.drop), ("--exact", &o.exact)]
    {
        if !list.is_empty() {
            flag(name, list.join(","));
        }
    }
    a.filters.iter().for_each(|(c, v)| flag("--where", format!("{c}={v}")));
    for (name, value, usual) in [
        ("--missing", &a.missing, "refuse"),
        ("--zero-time", &a.zero_time, "refuse"),
        ("--metric", &o.metric, "separate"),
        ("--scale", &o.scale, "standard"),
    ] {
        if value != usual && !value.is_empty() {
            flag(name, value.clone());
        }
    }
    match &o.adjusted {
        Some(adjusted) => {
            flag("--estimator", "adjusted".into());
            if let Ok(asked) = adjusted.options() {
                flag("--splits", asked.splits.to_string());
                flag("--folds", asked.folds.to_string());
            }
            adjusted.latency.iter().for_each(|l| flag("--latency", l.clone()));
            adjusted.elastic_net.iter().for_each(|mixing| flag("--penalty", format!("elastic-net:{mixing}")));
            flag("--group-size", adjusted.group_size.map_or("auto".into(), |k| k.to_string()));
        }
        None => {
            flag("--group-size", o.group_size.to_string());
            flag("--train-fraction", o.train_fraction.to_string());
        }
    }
    for k in &o.calipers {
        flag("--caliper", format!("{}={}{}", k.covariate, k.width, if k.in_sd { "sd" } else { "" }));
    }
    flag("--confidence", o.confidence.to_string());
    flag("--seed", o.seed.to_string());
    s.audit.iter().flat_map(|x| &x.by).for_each(|by| flag("--by", by.clone()));
    flag("-o", "run".into());
    if o.exclude_self {
        words.push("--exclude-self".into());
    }
    if s.audit.as_ref().is_some_and(|x| !x.asked) {
        words.push("--no-audit".into());
    }
    words.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ")
}

/// A word as a POSIX shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,+-@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
