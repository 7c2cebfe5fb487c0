//! The sections of the page, in the order in which a person reads them.

use super::{Builder, Source, estimand, front, methods, patients};
use crate::audit::{AuditRecord, BalanceRecord, ChoiceRecord, FollowUpRecord, VariesRecord, uses};
use crate::figures;
use crate::journal;
use crate::learning;
use crate::names::Names;
use crate::plot::page::escaped;
use crate::record::{ModelRecord, PartRecord, Summary};
use crate::spell::CommandLine;
use crate::text::{
    READING_ORDER, clip, decimals_between, fixed, grouped, named_flag, percent, short, signed, signed_fixed,
    split_spread_sentence, worries,
};
use dvim::internal::audit::individual::examples;
use dvim::internal::cohort::Arm;
use dvim::internal::estimand::Estimand;
use std::fmt::Write;

/// Rows of a long table; the rest is in the files.
const MOST_ROWS: usize = 60;
const MOST_TABLE_ROWS: usize = 80;

pub(super) fn all(b: &mut Builder, source: &Source<'_>) {
    let s = source.summary;
    front::section(b, source);
    b.close();
    b.body.push_str(super::APPENDIX);
    estimand::section(b, s);
    who(b, s);
    checks(b, s);
    match &s.audit {
        Some(audit) => {
            balance(b, s, audit);
            follow_up(b, source, audit);
        }
        None => {
            b.section("audit", "Balance, follow-up, sensitivity");
            b.say("This run was made without the audit: balance, overlap, follow-up and sensitivity are not in its files. dvim audit RUN computes and prints them; dvim fit without --no-audit stores them.");
        }
    }
    averages(b, source);
    individual(b, source);
    metrics(b, source);
    models(b, source);
    if let Some(audit) = &s.audit {
        sensitivity(b, s, audit);
    }
    patients::section(b, source);
    methods::section(b, s);
}

/// Every reason of the verdict, notes included, and how often such verdicts were wrong.
fn checks(b: &mut Builder, s: &Summary) {
    b.section("checks", "Checks");
    match &s.verdict {
        Some(v) => {
            let (said, reasons) = v.lines(&CommandLine);
            said.iter().for_each(|words| b.say(words));
            b.list("reasons", reasons);
        }
        None => b.say("Whether the data support the answer was not judged: the run has no audit."),
    }
    for why in s.audit.iter().flat_map(|a| &a.left_out) {
        b.say(&format!("Not in this report: {why}."));
    }
}

fn who(b: &mut Builder, s: &Summary) {
    b.section("who", "Patients");
    let names = b.look.names.clone();
    let heads = READING_ORDER.map(|z| names.head(z));
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
    // Averages may be over more patients than the run holds.
    let estimated = t.n_estimation + c.n_estimation;
    let averaged = s.average("cure_effect", "all").map_or(estimated, |a| a.n_units + a.n_undefined);
    let unserved = estimated.saturating_sub(averaged);
    if unserved > 0 {
        flow.push(("out", "have no group under the constraints".into(), format!("−{}", grouped(unserved))));
    }
    flow.push(("", "patients with estimated effects".into(), grouped(estimated - unserved)));
    if averaged > estimated {
        flow.push((
            "",
            "patients in the averages and curves, with those outside this sample".into(),
            grouped(averaged),
        ));
    }
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
    rows.push(row(&format!("Events {}", names.within()), t.n_events, c.n_events));
    if let Some((t, c)) = t.n_competing.zip(c.n_competing) {
        rows.push(row(&format!("Events of other causes {}", names.within()), t, c));
    }
    rows.extend([
        row(&format!("Lost to follow-up {}", names.within()), t.n_censored, c.n_censored),
        row("Event-free and followed to the horizon", t.n_at_risk, c.n_at_risk),
    ]);
    b.table("The two arms.", &["", &heads[0], &heads[1]], rows, &[]);

    if s.baseline.is_empty() {
        b.say("The baseline table is not in the files of this run: it was written by an older dvim.");
        return;
    }
    let mut table = journal::baseline(s, &names);
    let all = table.rows.len();
    table.rows.truncate(MOST_TABLE_ROWS);
    let more = match all > MOST_TABLE_ROWS {
        true => format!(" The first {MOST_TABLE_ROWS} rows of {all}; dvim table RUN baseline writes all of them."),
        false => String::new(),
    };
    b.tables += 1;
    let name = format!("Table {}.", b.tables);
    b.body += &table.html_table(&name, &format!("{}. {}{more}", table.title, table.notes.join(" ")));
}

fn averages(b: &mut Builder, source: &Source<'_>) {
    let s = source.summary;
    b.section("averages", "Average effects");
    let names = b.look.names.clone();
    let tables = [Some(journal::averages(s, &names)), journal::subgroups(s, &names)];
    for table in tables.into_iter().flatten() {
        b.tables += 1;
        let name = format!("Table {}.", b.tables);
        b.body += &table.html_table(&name, &format!("{}. {}", table.title, table.notes.join(" ")));
    }
    if let Some(split) = figures::gained(s, &b.look) {
        b.figure(
            |look| figures::gained(s, look).as_ref().unwrap_or(&split).svg(),
            "Event-free time gained up to the horizon, and its two parts, which add up to it exactly: fewer have the event, and it comes later.",
        );
    }
    for side in Estimand::BOTH {
        let by = s.audit.as_ref().is_some_and(|a| !a.by.is_empty());
        let tail =
            if by { " and in the subgroups that were asked for" } else { "; dvim fit --by COVARIATE adds subgroups" };
        b.figure(
            |look| figures::averages(s, side, look).svg(),
            &format!(
                "{}, over all patients, over those of each arm{tail}. Squares grow with the number of patients.",
                names.effect(side)
            ),
        );
    }
}

fn individual(b: &mut Builder, source: &Source<'_>) {
    let Source { cohort, analysis, summary: s } = *source;
    b.section("patients", "Differences between patients");
    let names = b.look.names.clone();
    for side in Estimand::BOTH {
        b.figure(
            |look| figures::effects(analysis, s, side, look).svg(),
            &format!("{}, for each patient. The spread holds true differences and the error of each estimate; the line is the average with its interval.", names.effect(side)),
        );
    }
    if let Some(i) = &s.individual {
        let rows = [(Estimand::Cure, &i.cure_effect, 100.0), (Estimand::Time, &i.time_effect, 1.0)];
        let rows = rows.iter().filter_map(|(side, spread, scale)| {
            let x = spread.as_ref()?;
            let d = decimals_between(scale * x.quantiles[1], scale * x.quantiles[5]);
            let share = |n: usize, of: Option<f64>| {
                of.map_or("no intervals".into(), |v| format!("{} ({})", grouped(n), percent(v)))
            };
            let mut row = vec![names.effect(*side)];
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
        "Each patient's effect on whether against the same patient's effect on when; many patients are counted in cells, none is left out. The crosses are the intervals of the average and of the three patients shown below: they say how far single points may be off.",
    );
    if let Some(i) = &s.individual {
        let (q, c) = (&i.quadrants, &i.certain);
        let row = |name: &str, n: usize, sure: usize| vec![name.to_string(), grouped(n), grouped(sure)];
        let rows = vec![
            row("More event-free, later events", q.more_later, c.more_later),
            row("More event-free, earlier events", q.more_sooner, c.more_sooner),
            row("Fewer event-free, later events", q.fewer_later, c.fewer_later),
            row("Fewer event-free, earlier events", q.fewer_sooner, c.fewer_sooner),
        ];
        b.table(
            "Patients by the signs of their two estimates, and those of them both of whose intervals exclude zero.",
            &["", "Patients", "Both certain"],
            rows,
            &[],
        );
    }
    if let Some(of) = s.audit.as_ref().map(|a| &a.heterogeneity).filter(|h| !h.is_empty()) {
        heterogeneity(b, of, &names);
    }
}

fn heterogeneity(b: &mut Builder, of: &[VariesRecord], names: &Names) {
    let rows = of.iter().map(|v| {
        let (scale, side) = if v.estimand == "cure_effect" { (100.0, Estimand::Cure) } else { (1.0, Estimand::Time) };
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
            names.effect(side),
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

fn metrics(b: &mut Builder, source: &Source<'_>) {
    b.section("metrics", "Covariates that decide who is similar");
    b.figure(
        |look| figures::weights(source.cohort, &source.analysis.fit, look).svg(),
        "How much each covariate counts in finding similar patients: for whether the event happens, and for when. Patients are alike where the covariates with large weights agree.",
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
        "Standardised difference of each covariate between the arms, among the estimated patients: before matching, in the groups matched for whether, and in those matched for when. A covariate without weight in a metric need not be balanced under it."
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
    let heads = READING_ORDER.map(|z| b.look.names.head(z));
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
            vec![row(&heads[0], t, outside[0]), row(&heads[1], c, outside[1])],
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
    b.section("follow-up", "Follow-up");
    let heads = READING_ORDER.map(|z| b.look.names.head(z));
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
        row("Median follow-up (reverse Kaplan–Meier)", &|f| f.median_follow_up.map_or("not reached".into(), short)),
        row("At risk at the horizon", &|f| grouped(f.n_at_risk)),
        row("Event-free at the horizon, not adjusted", &|f| percent(f.plateau_height)),
        row("From the last event to the horizon", &|f| short(f.plateau_length)),
        row("Last event before the horizon", &|f| maybe(f.last_event)),
        row("Last recorded time", &|f| short(f.last_time)),
        row("Events recorded after the horizon", &|f| grouped(f.n_events_after)),
        row("Practically sufficient: p (small: yes)", &|f| p_value(f.p_practical)),
        row("Maller–Zhou α (small: yes; liberal)", &|f| f.maller_zhou_alpha.map_or("undefined".into(), p_value)),
        row("The tail goes on: p (small: yes)", &|f| f.p_extrapolated.map_or("undefined".into(), p_value)),
        row("Further events if it does, % of patients", &|f| maybe(f.extrapolated_further.map(|v| 100.0 * v))),
    ];
    b.table("Follow-up of all patients and of each arm.", &["", "All", &heads[0], &heads[1]], rows, &[]);
}

/// With a capital letter.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |c| c.to_uppercase().chain(letters).collect())
}

fn sensitivity(b: &mut Builder, s: &Summary, audit: &AuditRecord) {
    b.section("sensitivity", "Sensitivity: what it would take to overturn the answer");
    let names = b.look.names.clone();
    if !audit.horizons.is_empty() {
        b.heading("Another horizon");
        for side in Estimand::BOTH {
            b.figure(
                |look| figures::horizon(audit, s.horizon, side, look).svg(),
                &format!("{}, had the horizon been another, with pointwise intervals.", names.effect(side)),
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
            &["K", "Seed", "Whether, points", "sd", "When", "sd", "Undefined"],
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
            "What remains of the difference in the share that is event-free (points) under an unmeasured confounder whose risk ratios with treatment and with being event-free are both Γ. Risk ratios of {} (the E-value) would explain the estimate away, of {} its interval.",
            x.e_value.map_or(String::new(), short),
            x.e_value_interval.map_or(String::new(), short)
        );
        b.table(&caption, &["Γ", "At least", "At most"], rows.collect(), &[]);
    }
    if let Some([least, events, found, cured, most]) = x.censoring {
        b.heading("Patients lost to follow-up who are not like those who stayed");
        let (treated, control) = (names.arm(Arm::Treated), names.arm(Arm::Control));
        let p = |v: f64| signed_fixed(100.0 * v, 1);
        let row = |name: &str, v: f64| vec![name.to_string(), p(v)];
        let rows = vec![
            row(
                &format!("Those lost with {treated} had their event, those lost with {control} stayed event-free"),
                least,
            ),
            row("All who were lost had their event at once", events),
            row("Those who were lost are like those who stayed: as estimated", found),
            row("All who were lost stayed event-free", cured),
            row(
                &format!("Those lost with {treated} stayed event-free, those lost with {control} had their event"),
                most,
            ),
        ];
        b.table(
            "The difference in the share that is event-free (points), had those who were lost not been like those who stayed.",
            &["If", "Difference"],
            rows,
            &[],
        );
    }
    if let (Some([low, high]), Some(share), Some(all)) = (x.always_uncured, x.always_uncured_share, x.unrestricted) {
        b.heading("Different patients have the event in the two arms");
        let d = decimals_between(low, high);
        b.say(&format!(
            "The difference in time compares patients who have the event with one treatment with those who have it with the other: {} from the averaged curves. Some have it with one of them only. Among patients who would have the event with either treatment ({} of all, if treatment changes whether in one direction only) the difference lies between {} and {}.",
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
    b.section("models", "Models");
    let names = b.look.names.clone();
    let heads = READING_ORDER.map(|z| names.head(z));
    if let Some(words) = learning::models_describe(&analysis.fit) {
        b.say(&learning::sentence(analysis).replace('\n', " "));
        s.adjusted.iter().filter_map(|a| split_spread_sentence(a, &names)).for_each(|words| b.say(&words));
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
    b.table("The cure model of each arm, with the certificate of its fit.", &["", &heads[0], &heads[1]], rows, &[1, 2]);
    let mut notes: Vec<String> = Vec::new();
    for (arm, m) in [(Arm::Treated, &s.models.treated), (Arm::Control, &s.models.control)] {
        let of = names.arm(arm);
        notes.extend(m.certificate.flags.iter().map(|f| format!("{of}: {}", named_flag(f, cohort.names()))));
    }
    b.list("", notes);
    let columns = cohort.names();
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
    rows.extend(columns.iter().enumerate().take(MOST_ROWS).map(|(j, n)| row(clip(&names.column(n), 40), Some(j))));
    let more = if columns.len() > MOST_ROWS {
        format!(" The first {MOST_ROWS} of {} covariates; all are in weights.csv.", columns.len())
    } else {
        String::new()
    };
    b.table(
        &format!("Coefficients (standard errors) on scaled covariates: of the logit of cure, and of the log event time of the uncured.{more}"),
        &[
            "",
            &format!("Cure, {}", heads[0]),
            &format!("Cure, {}", heads[1]),
            &format!("Time, {}", heads[0]),
            &format!("Time, {}", heads[1]),
        ],
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
