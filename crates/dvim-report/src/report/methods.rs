//! A methods paragraph to paste, the citations, and how to reproduce a run.

use super::Builder;
use crate::names::Names;
use crate::plot::page::escaped;
use crate::record::Summary;
use crate::spell::{flag, shell_word};
use crate::text::{grouped, short};
use dvim::internal::cohort::Arm;
use dvim::internal::schema::Missing;
use dvim::internal::setting::Setting;
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
    let names = Names::of(s, None);
    let (t, c) = (&s.counts.treated, &s.counts.control);
    let o = &s.options;
    let mut out = format!(
        "We compared {} patients who had {} with {} patients who had {}. Two effects were estimated up to {}: the difference in the probability of being {}, and the difference in the mean time to {} among those who have it {}. ",
        grouped(t.n_units),
        names.arm(Arm::Treated),
        grouped(c.n_units),
        names.arm(Arm::Control),
        names.up_to().trim_start_matches("up to "),
        names.state(),
        names.event(),
        names.within()
    );
    let covariates = s.roles.covariates.len();
    let scaled = if o.scale == "standard" { "standardised" } else { "taken as recorded" };
    let metric = if o.metric == "combined" { "one metric, the mean of the two weight vectors," } else { "two metrics" };
    match (&s.adjusted, &o.adjusted) {
        (Some(found), Some(asked)) => {
            let _ = write!(
                out,
                "We used double variable importance matching [1] with cross-fitted models that match groups correct: in {} honest splits{}, mixture cure models with {} event times, whose {} covariates were {scaled}, were fitted to all patients but those whom the split left out and gave the weights of two metrics, one for each effect; each patient left out was compared with the nearest patients of each arm under each metric (group sizes and weights of the correction {}), and what the Kaplan–Meier estimates of the groups showed beyond the models corrected the models' predictions. ",
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
    match asked.missing {
        Missing::Drop => out.push_str("Patients with a missing value were left out. "),
        Missing::Indicator => out.push_str("Missing values were filled in with the median or the most frequent level, with an indicator among the covariates. "),
        Missing::Refuse => {}
    }
    if s.average("cure_effect", "all").is_some_and(|a| a.se.is_some()) {
        let level = short(100.0 * o.confidence);
        let _ = match &s.adjusted {
            Some(_) => write!(
                out,
                "Averages are cross-fitted doubly robust estimates (augmented inverse probability weighting), with {level} % intervals. "
            ),
            None => write!(
                out,
                "Averages are given with {level} % intervals from standard errors by patient, which allow for the reuse of patients in groups. "
            ),
        };
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
    let mut set = |setting: Setting, value: String| words.extend([flag(setting), value]);
    match &a.dates {
        Some([start, end]) => {
            set(Setting::Start, start.clone());
            set(Setting::End, end.clone());
        }
        None => set(Setting::Time, r.time.clone()),
    }
    set(if a.censor { Setting::Censor } else { Setting::Event }, r.event.clone());
    set(Setting::Treatment, r.treatment.clone());
    set(Setting::Horizon, s.horizon.to_string());
    let given = [
        (Setting::Id, &a.id),
        (Setting::Treated, &a.treated),
        (Setting::Control, &a.control),
        (Setting::Weights, &a.weights),
        (Setting::Cluster, &a.cluster),
        (Setting::Entry, &a.entry),
        (Setting::Cause, &a.cause),
    ];
    given.into_iter().for_each(|(name, v)| v.iter().for_each(|v| set(name, v.clone())));
    a.covariates.iter().for_each(|c| set(Setting::Covariates, c.join(",")));
    for (name, list) in [
        (Setting::Numeric, &a.numeric),
        (Setting::Categorical, &a.categorical),
        (Setting::Allow, &a.allow),
        (Setting::Drop, &a.drop),
        (Setting::Exact, &o.exact),
    ] {
        if !list.is_empty() {
            set(name, list.join(","));
        }
    }
    let l = &a.labels;
    for (name, words) in [
        (Setting::TimeUnit, &l.time_unit),
        (Setting::TreatedName, &l.treated),
        (Setting::ControlName, &l.control),
        (Setting::EventName, &l.event),
        (Setting::CureWord, &l.cure_word),
    ] {
        words.iter().for_each(|w| set(name, w.clone()));
    }
    // The order of levels and their names need a file; a label and a unit do not.
    for c in &l.covariates {
        let unit = c.unit.as_ref().map_or(String::new(), |u| format!(" [{u}]"));
        c.label.iter().for_each(|label| set(Setting::Label, format!("{}={label}{unit}", c.column)));
    }
    a.filters.iter().for_each(|(c, v)| set(Setting::Where, format!("{c}={v}")));
    for (name, value) in [
        (Setting::Missing, a.missing.name()),
        (Setting::ZeroTime, a.zero_time.name()),
        (Setting::Metric, o.metric.as_str()),
        (Setting::Scale, o.scale.as_str()),
    ] {
        if Some(value) != name.default() {
            set(name, value.into());
        }
    }
    match &o.adjusted {
        Some(adjusted) => {
            set(Setting::Estimator, "adjusted".into());
            if let Ok(asked) = adjusted.options() {
                set(Setting::Splits, asked.n_splits().to_string());
                set(Setting::Folds, asked.folds.to_string());
            }
            adjusted.latency.iter().for_each(|l| set(Setting::Latency, l.clone()));
            if Some(adjusted.learners.as_str()) != Setting::Learners.default() {
                set(Setting::Learners, adjusted.learners.clone());
            }
            adjusted.elastic_net.iter().for_each(|mixing| set(Setting::Penalty, format!("elastic-net:{mixing}")));
            set(Setting::GroupSize, adjusted.group_size.map_or("auto".into(), |k| k.to_string()));
        }
        None => {
            set(Setting::Estimator, "paper".into());
            set(Setting::GroupSize, o.group_size.to_string());
            set(Setting::TrainFraction, o.train_fraction.to_string());
        }
    }
    for k in &o.calipers {
        set(Setting::Caliper, format!("{}={}{}", k.covariate, k.width, if k.in_sd { "sd" } else { "" }));
    }
    set(Setting::Confidence, o.confidence.to_string());
    set(Setting::Seed, o.seed.to_string());
    s.audit.iter().flat_map(|x| &x.by).for_each(|by| set(Setting::By, by.clone()));
    words.extend(["-o".into(), "run".into()]);
    if o.exclude_self {
        words.push(flag(Setting::ExcludeSelf));
    }
    if s.audit.as_ref().is_some_and(|x| !x.asked) {
        words.push(flag(Setting::NoAudit));
    }
    words.iter().map(|w| shell_word(w)).collect::<Vec<_>>().join(" ")
}
