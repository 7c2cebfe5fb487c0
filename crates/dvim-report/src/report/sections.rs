//! The sections of the page, in the order in which a person reads them.

use super::{Builder, Source, methods, patients};
use crate::audit::{
    AuditRecord, BalanceRecord, ChoiceRecord, FollowUpRecord, SHOWN, VariesRecord, uses, with_interval,
};
use crate::figures;
use crate::learning;
use crate::plot::page::escaped;
use crate::record::{ModelRecord, PartRecord, Summary};
use crate::spell::CommandLine;
use crate::text::{
    about_averages, answer, clip, decimals_between, decimals_of, fixed, gained_time, grouped, named_flag, percent,
    short, signed, signed_fixed, split_spread_sentence, worries,
};
use dvim::internal::audit::individual::examples;
use dvim::internal::estimand::Estimand;
use std::fmt::Write;

/// Rows of a long table; the rest is in the files.
const MOST_ROWS: usize = 60;

pub(super) fn where_from(s: &Summary) -> String {
    format!(
        "{} patients from {}: {} ({}) against {} ({}). Times run to a horizon of {}.",
        grouped(s.flow.n_units.max(s.counts.treated.n_units + s.counts.control.n_units)),
        s.input.file,
        s.roles.labels.treated,
        "treated",
        s.roles.labels.control,
        "control",
        short(s.horizon)
    )
}

pub(super) fn all(b: &mut Builder, source: &Source<'_>) {
    let s = source.summary;
    the_answer(b, s);
    curves(b, source);
    who(b, s);
    averages(b, source);
    individual(b, source);
    metrics(b, source);
    match &s.audit {
        Some(audit) => {
            balance(b, s, audit);
            follow_up(b, source, audit);
            sensitivity(b, s, audit);
        }
        None => {
            b.section("audit", "Can it be relied on?");
            b.say("This run was made without the audit: balance, overlap, follow-up and sensitivity are not in its files. dvim audit RUN computes and prints them; dvim fit without --no-audit stores them.");
        }
    }
    models(b, source);
    patients::section(b, source);
    methods::section(b, s);
}

fn the_answer(b: &mut Builder, s: &Summary) {
    b.section("answer", "The answer");
    let [cure, time] = answer(s, &b.look.time_unit);
    let _ = write!(b.body, "<div class=\"answer\">\n<p class=\"lead\">{} {}</p>\n", escaped(&cure), escaped(&time));
    match &s.verdict {
        Some(v) => {
            let (said, reasons) = v.lines(&CommandLine);
            for (of, words) in [&v.cure_effect, &v.time_effect].into_iter().zip(said) {
                let class = verdict_class(&of.support);
                let _ = writeln!(b.body, "<p class=\"verdict {class}\">{}</p>", escaped(&words));
            }
            b.list("reasons", reasons);
        }
        None => b.say("Whether the data support it was not judged: the run has no audit."),
    }
    if let Some(words) = gained_time(s, &b.look.time_unit) {
        b.say(&words);
    }
    b.body.push_str("</div>\n");
    b.say("Both effects are causal only if nothing unmeasured decided on treatment and outcome, and if censoring does not depend on the event time given the covariates. No data can show this; the section on sensitivity says what it would take to overturn the answer.");
    for why in s.audit.iter().flat_map(|a| &a.left_out) {
        b.say(&format!("Left out: {why}."));
    }
}

fn verdict_class(support: &str) -> &'static str {
    match support {
        "supported" => "good",
        "not_reliable" => "bad",
        _ => "mixed",
    }
}

fn who(b: &mut Builder, s: &Summary) {
    b.section("who", "Who was compared");
    let (t, c) = (&s.counts.treated, &s.counts.control);
    let mut flow = vec![("", format!("rows of {}", s.input.file), grouped(s.flow.n_rows))];
    flow.extend(
        s.flow
            .steps
            .iter()
            .filter(|x| x.n_dropped > 0)
            .map(|x| ("out", format!("left out: {}", x.reason), format!("−{}", grouped(x.n_dropped)))),
    );
    flow.push(("", "patients analysed".into(), grouped(t.n_units + c.n_units)));
    if t.n_training + c.n_training > 0 {
        flow.push(("out", "trained the cure models".into(), format!("−{}", grouped(t.n_training + c.n_training))));
    }
    let unserved: usize =
        s.average("cure_effect", "all").map_or(0, |a| t.n_estimation + c.n_estimation - a.n_units - a.n_undefined);
    if unserved > 0 {
        flow.push(("out", "have no group under the constraints".into(), format!("−{}", grouped(unserved))));
    }
    flow.push(("", "patients with estimated effects".into(), grouped(t.n_estimation + c.n_estimation - unserved)));
    b.body.push_str("<ol class=\"flow\" aria-label=\"From rows of the table to patients with estimates\">\n");
    for (class, words, number) in flow {
        let _ = writeln!(b.body, "<li class=\"{class}\"><span>{}</span> <b>{number}</b></li>", escaped(&words));
    }
    b.body.push_str("</ol>\n");
    let row = |name: &str, t: usize, c: usize| vec![name.to_string(), grouped(t), grouped(c)];
    let mut rows = vec![row("Patients", t.n_units, c.n_units)];
    // Under the adjusted estimator every patient is both, by turns.
    if t.n_training + c.n_training > 0 {
        rows.push(row("of whom trained the cure models", t.n_training, c.n_training));
        rows.push(row("of whom are estimated and matched with", t.n_estimation, c.n_estimation));
    }
    rows.push(row("Events before the horizon", t.n_events, c.n_events));
    if let Some((t, c)) = t.n_competing.zip(c.n_competing) {
        rows.push(row("Events of other causes before the horizon", t, c));
    }
    rows.extend([
        row("Censored before the horizon", t.n_censored, c.n_censored),
        row("Event-free and followed to the horizon", t.n_at_risk, c.n_at_risk),
    ]);
    b.table("The two arms.", &["", "Treated", "Control"], rows, &[]);

    if s.baseline.is_empty() {
        b.say("The baseline table is not in the files of this run: it was written by an older dvim.");
        return;
    }
    let mut shown: Vec<_> = s.baseline.iter().collect();
    let all = shown.len();
    if all > MOST_ROWS {
        let size = |r: &crate::findings::BaselineRecord| r.difference.map_or(0.0, f64::abs);
        shown.sort_by(|x, y| size(y).total_cmp(&size(x)));
        shown.truncate(MOST_ROWS);
    }
    let rows = shown.iter().map(|r| {
        let cell = |a: &crate::findings::ArmBaselineRecord| match r.level {
            Some(_) => format!("{} ({})", grouped(a.n_units), percent(a.mean)),
            None => {
                let d = decimals_of(2.5 * r.arms.treated.sd.max(r.arms.control.sd)) + 1;
                format!("{} ({})", fixed(a.mean, d), fixed(a.sd, d))
            }
        };
        let name = match &r.level {
            Some(level) => format!("{} = {}", clip(&r.covariate, 40), clip(level, 30)),
            None => clip(&r.covariate, 60),
        };
        vec![
            name,
            cell(&r.arms.treated),
            cell(&r.arms.control),
            r.difference.map_or("constant".into(), |d| signed_fixed(d, 2)),
        ]
    });
    let more = if all > MOST_ROWS {
        format!(" The {MOST_ROWS} rows with the largest differences, of {all}; all are in summary.json.")
    } else {
        String::new()
    };
    let caption = format!(
        "Covariates by arm, all {} patients, before matching: mean (standard deviation) of a number, patients (share) of a level. The last column is the standardised difference, treated less control; beyond 0.1 the arms are commonly called different.{more}",
        grouped(t.n_units + c.n_units)
    );
    b.table(&caption, &["", "Treated", "Control", "Difference"], rows.collect(), &[]);
}

fn averages(b: &mut Builder, source: &Source<'_>) {
    let s = source.summary;
    b.section("averages", "The two average effects");
    let cell = |estimand: &str, population: &str, scale: f64| {
        s.average(estimand, population).map_or(String::new(), |a| with_interval(a, scale))
    };
    let rows = SHOWN.into_iter().filter(|x| s.average(x.0, "all").is_some()).map(|(estimand, name, scale)| {
        [name.trim().to_string()]
            .into_iter()
            .chain(["all", "treated", "control"].map(|p| cell(estimand, p, scale)))
            .collect()
    });
    let with = if s.average("cure_effect", "all").is_some_and(|a| a.low.is_some()) {
        format!("with {} % intervals by unit", short(100.0 * s.options.confidence))
    } else {
        "without intervals: this run has none".into()
    };
    let caption = format!(
        "Averages over the estimated patients, {with}. Cure in percentage points, or percent of patients; time in {}.",
        unit_words(&b.look.time_unit)
    );
    let caption = [Some(caption.as_str()), about_averages(s)].into_iter().flatten().collect::<Vec<_>>().join(" ");
    b.table(&caption, &["", "All", "Treated", "Control"], rows.collect(), &[]);
    for side in Estimand::BOTH {
        let by = s.audit.as_ref().is_some_and(|a| !a.by.is_empty());
        let tail =
            if by { " and in the subgroups that were asked for" } else { "; dvim fit --by COVARIATE adds subgroups" };
        b.figure(
            |look| figures::averages(s, side, look).svg(),
            &format!(
                "The average {} effect of all patients, of each arm{tail}. Squares grow with the number of patients.",
                side.name()
            ),
        );
    }
}

fn unit_words(unit: &str) -> String {
    if unit.is_empty() { "the unit of the time column".into() } else { unit.to_string() }
}

fn individual(b: &mut Builder, source: &Source<'_>) {
    let Source { cohort, analysis, summary: s } = *source;
    b.section("patients", "How effects differ between patients");
    for side in Estimand::BOTH {
        b.figure(
            |look| figures::effects(analysis, s, side, look).svg(),
            &format!("The {} effect of each estimated patient. The spread holds true differences and the error of each estimate; the line is the average with its interval.", side.name()),
        );
    }
    if let Some(i) = &s.individual {
        let rows = [("Cure effect, points", &i.cure_effect, 100.0), ("Time effect", &i.time_effect, 1.0)];
        let rows = rows.iter().filter_map(|(name, spread, scale)| {
            let x = spread.as_ref()?;
            let d = decimals_between(scale * x.quantiles[1], scale * x.quantiles[5]);
            let share = |n: usize, of: Option<f64>| {
                of.map_or("no intervals".into(), |v| format!("{} ({})", grouped(n), percent(v)))
            };
            let mut row = vec![name.to_string()];
            row.extend([1, 2, 3, 4, 5].map(|q| signed_fixed(scale * x.quantiles[q], d)));
            row.extend([share(x.n_below, x.share_below), share(x.n_above, x.share_above)]);
            Some(row)
        });
        let caption = format!(
            "Quantiles of the estimates over patients, and patients whose own {} % interval lies wholly below or above zero. Without any effect about {} % would, half on either side.",
            short(100.0 * s.options.confidence),
            short(100.0 * (1.0 - s.options.confidence))
        );
        b.table(
            &caption,
            &["", "5 %", "25 %", "Median", "75 %", "95 %", "Below zero", "Above zero"],
            rows.collect(),
            &[],
        );
    }
    let picked = examples(analysis);
    b.figure(
        |look| figures::plane(cohort, analysis, s, &picked, look).svg(),
        "Each patient's cure effect against the same patient's time effect; many patients are counted in cells, none is left out. The crosses are the intervals of the average and of the three patients shown below: they say how far single points may be off.",
    );
    if let Some(i) = &s.individual {
        let (q, c) = (&i.quadrants, &i.certain);
        let row = |name: &str, n: usize, sure: usize| vec![name.to_string(), grouped(n), grouped(sure)];
        let rows = vec![
            row("Cures more, delays events", q.more_later, c.more_later),
            row("Cures more, hastens events", q.more_sooner, c.more_sooner),
            row("Cures fewer, delays events", q.fewer_later, c.fewer_later),
            row("Cures fewer, hastens events", q.fewer_sooner, c.fewer_sooner),
        ];
        b.table(
            "Patients by the signs of their two estimates, and those of them both of whose intervals exclude zero.",
            &["", "Patients", "Both certain"],
            rows,
            &[],
        );
    }
    if let Some(of) = s.audit.as_ref().map(|a| &a.heterogeneity).filter(|h| !h.is_empty()) {
        heterogeneity(b, of);
    }
}

fn heterogeneity(b: &mut Builder, of: &[VariesRecord]) {
    let rows = of.iter().map(|v| {
        let (scale, name) =
            if v.estimand == "cure_effect" { (100.0, "Cure effect, points") } else { (1.0, "Time effect") };
        let fifth = |f: Option<&crate::audit::FifthRecord>| {
            f.map_or(String::new(), |f| {
                let d = decimals_between(scale * f.low, scale * f.high);
                format!(
                    "{} ({} to {})",
                    signed_fixed(scale * f.estimate, d),
                    signed_fixed(scale * f.low, d),
                    signed_fixed(scale * f.high, d)
                )
            })
        };
        vec![
            name.to_string(),
            format!("{:.2} (se {:.2})", v.slope.estimate, v.slope.se),
            fifth(v.fifths.first()),
            fifth(v.fifths.last()),
            v.p.map_or("no test".into(), p_value),
        ]
    });
    b.table(
        "Do effects differ? Patients are ranked by the models' predictions, which did not see their outcomes. A slope of 1 says that estimates follow the predictions, 0 that they do not; then the average estimate in the fifth with the lowest and in that with the highest prediction, and p of no difference between patients.",
        &["", "Slope", "Lowest fifth", "Highest fifth", "p"],
        rows.collect(),
        &[],
    );
}

fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".into() } else { format!("{p:.3}") }
}

fn curves(b: &mut Builder, source: &Source<'_>) {
    let s = source.summary;
    let adjusted = s.audit.as_ref().is_some_and(|a| !a.curves.is_empty());
    b.section("curves", if adjusted { "Event-free over time" } else { "The two arms as they were seen" });
    if adjusted {
        b.figure(
            |look| figures::arms(source.cohort, s, "all", look).map_or_else(|why| why, |f| f.svg()),
            "Event-free survival had all patients been in one arm, and had all been in the other, adjusted for the covariates, with numbers at risk as seen. The difference in points stands at the horizon H.",
        );
        if let Some(split) = figures::gained(s, &b.look) {
            b.figure(
                |look| figures::gained(s, look).as_ref().unwrap_or(&split).svg(),
                "Event-free time that treatment gives up to the horizon (RMST), and its two parts, which add up to it exactly: fewer have the event, and it comes later.",
            );
        }
        return;
    }
    b.figure(
        |look| figures::curves(source.cohort, s.options.confidence, look).svg(),
        "Kaplan–Meier curve of each arm with pointwise bands, not adjusted for covariates, and the numbers at risk. The level at the horizon H is the plateau: the share of patients who are event-free there. The marks under the curves are the mean event times of those who are not.",
    );
}

fn metrics(b: &mut Builder, source: &Source<'_>) {
    b.section("metrics", "Which covariates matter for cure, and which for time");
    b.figure(
        |look| figures::weights(source.cohort, &source.analysis.fit, look).svg(),
        "Weight of each covariate in the metric under which patients are matched for the cure effect, and in that for the time effect. Patients are alike where the covariates with large weights agree.",
    );
}

fn balance(b: &mut Builder, s: &Summary, audit: &AuditRecord) {
    b.section("balance", "Balance and overlap");
    let Some(of) = &audit.balance else {
        b.say("Balance and overlap are not in the files of this run.");
        return;
    };
    let caption = if of.covariates.iter().any(|c| c.average.is_some()) {
        "Standardised difference of each covariate between the arms: as they are, and weighted as the averages weigh patients (by the inverse chance of their treatment)."
    } else {
        "Standardised difference of each covariate between the arms, among the estimated patients: before matching, in the groups matched for cure, and in those matched for time. A covariate without weight in a metric need not be balanced under it."
    };
    b.figure(|look| figures::balance(of, look).svg(), caption);
    let rows = of.uses.iter().map(|u| {
        vec![
            format!("{}, for {}", u.arm, u.metric),
            grouped(u.n_units),
            short(u.effective_size),
            grouped(u.n_unused),
            uses(u.most_uses),
            short(u.diameters[0]),
            short(u.diameters[1]),
        ]
    });
    b.table(
        "How the patients of each arm serve in groups: effective number after reuse, patients in no group, most groups that one patient is in, and the distance to the farthest member (median and 90 % of groups).",
        &["", "Patients", "Effective", "Never used", "Most used", "Distance, median", "90 %"],
        rows.collect(),
        &[],
    );
    overlap(b, s, of);
}

fn overlap(b: &mut Builder, s: &Summary, of: &BalanceRecord) {
    if let (Some([t, c]), Some(extreme), Some(outside)) =
        (of.propensity, of.propensity_extreme_share, of.propensity_outside_share)
    {
        let row = |name: &str, q: [f64; 5], out: f64| {
            let mut row = vec![name.to_string()];
            row.extend(q.map(|v| format!("{v:.3}")));
            row.push(percent(out));
            row
        };
        let caption = format!(
            "Chance of treatment given the covariates (logistic model): quantiles in each arm, and the share outside the range of the other arm. {} of all patients have a chance below 5 % or above 95 %.",
            percent(extreme)
        );
        b.table(
            &caption,
            &["", "1 %", "25 %", "Median", "75 %", "99 %", "Outside"],
            vec![row("Treated", t, outside[0]), row("Control", c, outside[1])],
            &[],
        );
    }
    if of.n_without_comparable == 0 {
        b.say("Every estimated patient has a comparable patient in the other arm.");
    } else {
        let some: Vec<&str> = of.without_comparable.iter().take(12).map(String::as_str).collect();
        let more = if of.n_without_comparable > some.len() { ", … (more in summary.json)" } else { "" };
        let all = s.average("cure_effect", "all").map_or(0, |a| a.n_units);
        b.say(&format!(
            "{} of {} estimated patients have no comparable patient in the other arm: {}{more}.",
            grouped(of.n_without_comparable),
            grouped(all),
            some.join(", ")
        ));
    }
}

fn follow_up(b: &mut Builder, source: &Source<'_>, audit: &AuditRecord) {
    b.section("follow-up", "Does follow-up reach the horizon?");
    b.list("", audit.follow_up.iter().map(|f| format!("{}.", sentence(&f.words))));
    let confidence = source.summary.options.confidence;
    b.figure(
        |look| figures::follow_up(source.cohort, confidence, look).svg(),
        "Events for each patient and unit of time at risk, with exact Poisson intervals. Where follow-up suffices, the rate has come down to about zero at the horizon.",
    );
    let maybe = |v: Option<f64>| v.map_or("undefined".to_string(), short);
    let row = |name: &str, f: &dyn Fn(&FollowUpRecord) -> String| -> Vec<String> {
        [name.to_string()].into_iter().chain(audit.follow_up.iter().map(f)).collect()
    };
    let rows = vec![
        row("At risk at the horizon", &|f| grouped(f.n_at_risk)),
        row("Height of the plateau", &|f| percent(f.plateau_height)),
        row("Length of the plateau", &|f| short(f.plateau_length)),
        row("Last event before the horizon", &|f| maybe(f.last_event)),
        row("Last recorded time", &|f| short(f.last_time)),
        row("Events recorded after the horizon", &|f| grouped(f.n_events_after)),
        row("Practically sufficient: p (small: yes)", &|f| p_value(f.p_practical)),
        row("Maller–Zhou α (small: yes; liberal)", &|f| f.maller_zhou_alpha.map_or("undefined".into(), p_value)),
        row("The tail goes on: p (small: yes)", &|f| f.p_extrapolated.map_or("undefined".into(), p_value)),
        row("Further events if it does, % of patients", &|f| maybe(f.extrapolated_further.map(|v| 100.0 * v))),
    ];
    b.table("Follow-up of all patients and of each arm.", &["", "All", "Treated", "Control"], rows, &[]);
}

/// With a capital letter.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |c| c.to_uppercase().chain(letters).collect())
}

fn sensitivity(b: &mut Builder, s: &Summary, audit: &AuditRecord) {
    b.section("sensitivity", "What it would take to overturn it");
    if !audit.horizons.is_empty() {
        b.heading("Another horizon");
        for side in Estimand::BOTH {
            b.figure(
                |look| figures::horizon(audit, s.horizon, side, look).svg(),
                &format!("The average {} effect had the horizon been another, with pointwise intervals.", side.name()),
            );
        }
    }
    if !audit.group_sizes.is_empty() || !audit.seeds.is_empty() {
        b.heading("Another group size, another seed");
        let row = |c: &ChoiceRecord| {
            let cell = |v: Option<f64>, scale: f64| v.map_or("undefined".into(), |v| signed(scale * v));
            vec![
                c.group_size.map_or("chosen".into(), grouped),
                c.seed.to_string(),
                cell(c.cure_effect, 100.0),
                cell(c.cure_sd, 100.0).trim_start_matches('+').into(),
                cell(c.time_effect, 1.0),
                cell(c.time_sd, 1.0).trim_start_matches('+').into(),
                grouped(c.n_undefined),
            ]
        };
        let rows = audit.group_sizes.iter().chain(&audit.seeds).map(row).collect();
        b.table(
            "The averages, and the spread between patients (sd), at other group sizes K, on the same patients (at most 1,000 of them, taken evenly by id), and at other seeds.",
            &["K", "Seed", "Cure effect, points", "sd", "Time effect", "sd", "Undefined"],
            rows,
            &[],
        );
    }
    if audit.seeds.is_empty() {
        b.say("Other seeds were not tried: each is a whole analysis. dvim audit RUN --seeds 10 does so.");
    }
    let x = &audit.sensitivity;
    if !x.confounding.is_empty() {
        b.heading("An unmeasured confounder");
        let rows = x
            .confounding
            .iter()
            .map(|[g, low, high]| vec![short(*g), signed_fixed(100.0 * low, 1), signed_fixed(100.0 * high, 1)]);
        let caption = format!(
            "What remains of the average cure effect (points) under an unmeasured confounder whose risk ratios with treatment and with cure are both Γ. Risk ratios of {} (the E-value) would explain the estimate away, of {} its interval.",
            x.e_value.map_or(String::new(), short),
            x.e_value_interval.map_or(String::new(), short)
        );
        b.table(&caption, &["Γ", "At least", "At most"], rows.collect(), &[]);
    }
    if let Some([least, events, found, cured, most]) = x.censoring {
        b.heading("Censoring that is not by chance");
        let p = |v: f64| signed_fixed(100.0 * v, 1);
        let row = |name: &str, v: f64| vec![name.to_string(), p(v)];
        let rows = vec![
            row("Censored treated had their event, censored controls were cured", least),
            row("All censored had their event at once", events),
            row("The censored are like those who stayed: as estimated", found),
            row("All censored were cured", cured),
            row("Censored treated were cured, censored controls had their event", most),
        ];
        b.table(
            "The average cure effect (points) had the censored not been like those who stayed.",
            &["If", "Cure effect"],
            rows,
            &[],
        );
    }
    if let (Some([low, high]), Some(share), Some(all)) = (x.always_uncured, x.always_uncured_share, x.unrestricted) {
        b.heading("Different patients have the event in the two arms");
        let d = decimals_between(low, high);
        b.say(&format!(
            "The time effect compares those who have the event under treatment with those who have it under control: {} from the averaged curves. Among patients uncured under both ({} of all, if treatment moves cures in one direction only) it lies between {} and {}.",
            signed_fixed(all, d),
            percent(share),
            signed_fixed(low, d),
            signed_fixed(high, d)
        ));
    }
    if audit.horizons.is_empty() && x.confounding.is_empty() {
        b.say("Sensitivity analyses are not in the files of this run.");
    }
}

fn models(b: &mut Builder, source: &Source<'_>) {
    let Source { cohort, analysis, summary: s } = *source;
    b.section("models", "The models, and whether to believe their fit");
    if let Some(words) = learning::models_describe(&analysis.fit) {
        b.say(&learning::sentence(analysis).replace('\n', " "));
        s.adjusted.iter().filter_map(split_spread_sentence).for_each(|words: String| b.say(&words));
        b.say(words);
    }
    let row = |name: &str, f: &dyn Fn(&ModelRecord) -> String| {
        vec![name.to_string(), f(&s.models.treated), f(&s.models.control)]
    };
    let maybe = |v: Option<f64>| v.map_or("not finite".to_string(), short);
    let rows = vec![
        row("Patients", &|m| grouped(m.n_units)),
        row("Events, censored, followed to the horizon", &|m| {
            format!("{}, {}, {}", grouped(m.n_events), grouped(m.n_censored), grouped(m.n_reached_horizon))
        }),
        row("Certified optimum", &|m| if m.certificate.converged { "yes" } else { "no" }.into()),
        row("Why the climb ended", &|m| m.certificate.stop_reason.clone()),
        row("Steps", &|m| grouped(m.certificate.iterations)),
        row("Distance to the optimum, standard errors", &|m| {
            m.certificate.gradient_norm.map_or("infinite".into(), |v| format!("{v:.1e}"))
        }),
        row("Smallest eigenvalue of the information", &|m| maybe(m.certificate.smallest_eigenvalue)),
        row("Log-likelihood", &|m| fixed(m.log_likelihood, 2)),
        row("ln σ of the event times (se)", &|m| {
            format!("{:.3}{}", m.log_sigma, m.log_sigma_se.map_or(String::new(), |e| format!(" ({e:.3})")))
        }),
        row("Penalty", &|m| if m.certificate.penalty.is_some() { "yes" } else { "none" }.into()),
    ];
    b.table("The cure model of each arm, with the certificate of its fit.", &["", "Treated", "Control"], rows, &[1, 2]);
    let mut notes: Vec<String> = Vec::new();
    for (arm, m) in [("treated", &s.models.treated), ("control", &s.models.control)] {
        notes.extend(m.certificate.flags.iter().map(|f| format!("{arm} arm: {}", named_flag(f, cohort.names()))));
    }
    b.list("", notes);
    let names = cohort.names();
    let cell = |p: &PartRecord, j: Option<usize>| {
        let (value, se) = match j {
            None => (p.intercept, p.intercept_se),
            Some(j) => (
                p.coefficients.get(j).copied().unwrap_or(f64::NAN),
                p.standard_errors.as_ref().and_then(|e| e.get(j).copied()),
            ),
        };
        format!("{}{}", fixed(value, 3), se.map_or(String::new(), |e| format!(" ({})", fixed(e, 3))))
    };
    let (t, c) = (&s.models.treated, &s.models.control);
    let row = |name: String, j: Option<usize>| {
        vec![name, cell(&t.cure, j), cell(&c.cure, j), cell(&t.latency, j), cell(&c.latency, j)]
    };
    let mut rows = vec![row("intercept".into(), None)];
    rows.extend(names.iter().enumerate().take(MOST_ROWS).map(|(j, n)| row(clip(n, 40), Some(j))));
    let more = if names.len() > MOST_ROWS {
        format!(" The first {MOST_ROWS} of {} covariates; all are in weights.csv.", names.len())
    } else {
        String::new()
    };
    b.table(
        &format!("Coefficients (standard errors) on scaled covariates: of the logit of cure, and of the log event time of the uncured.{more}"),
        &["", "Cure, treated", "Cure, control", "Time, treated", "Time, control"],
        rows,
        &[],
    );
    let worries = worries(s, analysis, cohort);
    if !worries.is_empty() {
        b.heading("What else to keep in mind");
        b.list("", worries.into_iter().map(|w| format!("{}.", sentence(&w))));
    }
    if !s.warnings.is_empty() {
        b.heading("Warnings about the table");
        b.list(
            "",
            s.warnings
                .iter()
                .map(|w| format!("{}: {} ({})", w.column.clone().unwrap_or_else(|| "table".into()), w.found, w.rule)),
        );
    }
}
