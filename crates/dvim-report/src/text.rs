//! What a person reads in a terminal. Plain text, no colour needed to understand it.

use crate::audit::with_interval;
use crate::cross_fit::CrossFitRecord;
use crate::learning;
use crate::names::{Names, capital};
pub use crate::plot::fixed;
use crate::plot::weight_words;
use crate::record::{AverageRecord, ModelFlagRecord, ModelRecord, Summary};
use crate::terminal::Terminal;
use dvim::internal::analysis::Analysis;
use dvim::internal::cohort::{Arm, Cohort};
use dvim::internal::curve::Grid as Knots;
use dvim::internal::effect::{Corrected, Effect};
use dvim::internal::estimand::Estimand;
use dvim::internal::fold::Fit;
use dvim::internal::inspect::{MatchGroup, UnitGroups};
use dvim::internal::interval::{Interval, two_sided};
use dvim::internal::overview::{ArmOverview, ColumnOverview, Overview};
use dvim::internal::phrase::{Face, harmless};
use dvim::internal::schema::Covariate;
use dvim::internal::survival::Estimate;
use std::fmt::Write;

/// Columns of text, aligned: the first to the left, the others to the right.
pub struct Grid {
    rows: Vec<Vec<String>>,
    left: usize,
}

impl Grid {
    /// A grid whose first `left` columns are aligned to the left, under this header.
    pub fn new(left: usize, header: &[&str]) -> Grid {
        Grid { rows: vec![header.iter().map(|h| h.to_string()).collect()], left }
    }

    /// Adds a row. Cells hold names and ids from files, so nothing in them may command the terminal.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(|c| harmless(&c.into()).into_owned()).collect());
    }

    /// The grid as text, each line indented by two.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| self.rows.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::from(" ");
            for (c, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[c] - cell.chars().count());
                let _ = if c < self.left { write!(line, " {cell}{pad} ") } else { write!(line, " {pad}{cell} ") };
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// A number with about four significant digits, without an exponent where that is readable.
pub fn short(x: f64) -> String {
    let magnitude = x.abs();
    if magnitude == 0.0 {
        "0".into()
    } else if !(1e-4..1e7).contains(&magnitude) {
        format!("{x:.3e}")
    } else {
        let decimals = (3 - magnitude.log10().floor() as i32).clamp(0, 6) as usize;
        let text = format!("{x:.decimals$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
    }
}

/// A share as a percentage.
pub fn percent(x: f64) -> String {
    format!("{:.1} %", 100.0 * x)
}

fn with_se(e: Estimate, scale: f64, decimals: usize) -> String {
    match e.se {
        Some(se) => format!("{:.decimals$} ± {:.decimals$}", scale * e.value, scale * se),
        None => format!("{:.decimals$}", scale * e.value),
    }
}

/// A count with thousands separated.
pub fn grouped(n: usize) -> String {
    crate::plot::count(n as u64)
}

/// What `check` says.
pub fn overview(o: &Overview) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{} rows, {} columns, horizon {}\n", grouped(o.n_rows), o.columns.len(), short(o.horizon));
    if !o.flow.steps.is_empty() {
        out.push_str("From rows to units\n");
        let mut grid = Grid::new(1, &["rows of the table", &grouped(o.flow.n_rows)]);
        o.flow.steps.iter().for_each(|s| {
            grid.row([format!("left out: {}", clip(&s.reason, 60)), format!("−{}", grouped(s.n_dropped))])
        });
        grid.row(["units".to_string(), grouped(o.flow.n_kept())]);
        let _ = writeln!(out, "{}", grid.render());
    }
    out.push_str("How each column was read\n");
    let mut grid = Grid::new(3, &["column", "part", "kind", "missing", "what it holds"]);
    grid.left = 3;
    let shown = 60;
    for c in o.columns.iter().take(shown) {
        grid.row([clip(&c.name, 32), c.role.to_string(), c.kind.to_string(), c.n_missing.to_string(), holds(c)]);
    }
    out.push_str(&left_last(&grid));
    if o.columns.len() > shown {
        let _ = writeln!(out, "  … and {} more columns (the record has all of them)", o.columns.len() - shown);
    }
    if let Some([control, treated]) = &o.arms {
        out.push_str("\nThe two arms\n");
        let mut grid = Grid::new(1, &["", "treated", "control"]);
        let mut line =
            |name: &str, f: &dyn Fn(&ArmOverview) -> String| grid.row([name.to_string(), f(treated), f(control)]);
        line("label", &|a| clip(&a.label, 24));
        line("units", &|a| grouped(a.n_units));
        line("events before the horizon", &|a| {
            format!("{} ({})", grouped(a.n_events), percent(a.n_events as f64 / a.n_units as f64))
        });
        if control.n_competing + treated.n_competing > 0 {
            line("events of other causes", &|a| {
                format!("{} ({})", grouped(a.n_competing), percent(a.n_competing as f64 / a.n_units as f64))
            });
        }
        line("censored before the horizon", &|a| {
            format!("{} ({})", grouped(a.n_censored), percent(a.n_censored as f64 / a.n_units as f64))
        });
        line("at risk at the horizon", &|a| grouped(a.n_at_risk));
        line("median follow-up", &|a| a.median_follow_up.map_or("not reached".into(), short));
        line("last recorded time", &|a| short(a.last_time));
        out.push_str(&grid.render());
        let curve = if control.n_competing + treated.n_competing > 0 { "Aalen–Johansen" } else { "Kaplan–Meier" };
        let _ = writeln!(out, "\n{curve} of each arm as a whole, with standard errors (not adjusted for covariates)");
        let mut grid = Grid::new(1, &["", "treated", "control", "difference"]);
        let difference = |f: &dyn Fn(&ArmOverview) -> Option<Estimate>, scale: f64, decimals: usize| -> [String; 3] {
            let show = |e: Option<Estimate>| e.map_or("undefined: no event".into(), |e| with_se(e, scale, decimals));
            let (t, c) = (f(treated), f(control));
            let d = t
                .zip(c)
                .map(|(t, c)| Estimate { value: t.value - c.value, se: t.se.zip(c.se).map(|(a, b)| f64::hypot(a, b)) });
            [show(t), show(c), show(d)]
        };
        let mut line = |name: &str, cells: [String; 3]| grid.row([name.to_string()].into_iter().chain(cells));
        let decimals = decimals_for(o.horizon);
        line("cure probability S(H), %", difference(&|a| Some(a.survival), 100.0, 2));
        line("restricted mean time to H", difference(&|a| Some(a.restricted_mean), 1.0, decimals));
        line("mean event time (CMET)", difference(&|a| a.mean_event_time, 1.0, decimals));
        out.push_str(&grid.render());
        for a in [treated, control].into_iter().filter(|a| a.carried_forward) {
            let _ = writeln!(
                out,
                "  In the {} arm nobody is at risk at the horizon: its last value is carried forward.",
                a.arm.name()
            );
        }
    }
    out.push('\n');
    if o.problems.is_empty() {
        out.push_str("No problem found.\n");
    }
    out
}

fn decimals_for(horizon: f64) -> usize {
    (3.0 - horizon.log10()).ceil().clamp(1.0, 6.0) as usize
}

/// Renders a grid whose last column is free text, aligned to the left.
fn left_last(grid: &Grid) -> String {
    let last = grid.rows.iter().map(Vec::len).max().unwrap_or(1) - 1;
    let width = grid.rows.iter().filter_map(|r| r.get(last)).map(|s| s.chars().count()).max().unwrap_or(0);
    let mut padded = Grid { rows: grid.rows.clone(), left: grid.left };
    for row in &mut padded.rows {
        if let Some(cell) = row.get_mut(last) {
            *cell = format!("{cell}{}", " ".repeat(width - cell.chars().count()));
        }
    }
    padded.render()
}

fn holds(c: &ColumnOverview) -> String {
    if let Some([low, mean, high]) = c.range {
        let distinct = if c.n_levels > 0 && c.role == "covariate" {
            format!(", {} distinct values", c.n_levels)
        } else {
            String::new()
        };
        format!("{} to {}, mean {}{distinct}", short(low), short(high), short(mean))
    } else if let Some(one) = &c.one {
        let shown: Vec<String> = c.levels.iter().map(|(l, n)| format!("{} ({n})", clip(l, 20))).collect();
        format!("{}; 1 = {}", shown.join(", "), clip(one, 20))
    } else if c.n_levels > 0 {
        let shown: Vec<String> = c.levels.iter().take(4).map(|(l, n)| format!("{} ({n})", clip(l, 20))).collect();
        let more = if c.n_levels > 4 { format!(", … {} levels", c.n_levels) } else { String::new() };
        format!("{}{more}", shown.join(", "))
    } else {
        String::new()
    }
}

/// A text of at most `most` characters.
pub fn clip(text: &str, most: usize) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.chars().count() <= most { clean } else { clean.chars().take(most - 1).chain(['…']).collect() }
}

/// "treated" first: the order in which a reader expects the arms.
pub const READING_ORDER: [Arm; 2] = [Arm::Treated, Arm::Control];

/// What `fit` says at its end: something a person can read aloud, then the numbers.
/// Remedies are in the words of `face`.
pub fn summary(s: &Summary, analysis: &Analysis, cohort: &Cohort, terminal: Terminal, face: &dyn Face) -> String {
    let names = Names::of(s, None);
    let mut out = format!("{}\n{}\n", names.question(), answer(s, &names).join("\n"));
    for words in [gained_time(s, &names), needed_to_treat(s, &names), names.competing_note()].into_iter().flatten() {
        let _ = writeln!(out, "{words}");
    }
    if let Some(v) = &s.verdict {
        let ([cure, time], reasons) = v.lines(face);
        let _ = writeln!(out, "{cure}\n{time}");
        reasons.iter().for_each(|r| {
            let _ = writeln!(out, "  - {r}");
        });
    }
    let (t, c) = (&s.counts.treated, &s.counts.control);
    let _ = writeln!(
        out,
        "\n{} patients ({} {}, {} {}), {} events {}.",
        grouped(t.n_units + c.n_units),
        grouped(t.n_units),
        names.arm(Arm::Treated),
        grouped(c.n_units),
        names.arm(Arm::Control),
        grouped(t.n_events + c.n_events),
        names.within()
    );
    if let Some(words) = followed(s, &names) {
        let _ = writeln!(out, "{words}");
    }
    let _ = writeln!(out, "{}", learning::sentence(analysis));
    if terminal.plots {
        let _ = write!(
            out,
            "\n{}, by arm (Kaplan–Meier, not adjusted)\n{}",
            capital(&names.free()),
            crate::terminal::curves(cohort, &names, terminal)
        );
    }
    let heads = ["all", "treated", "control"].map(|p| names.population(p));
    let mut grid = Grid::new(1, &["", &heads[0], &heads[1], &heads[2]]);
    for (side, scale) in [(Estimand::Cure, 100.0), (Estimand::Time, 1.0)] {
        let cell = |population: &str| {
            s.average(side.effect(), population).map_or("undefined".into(), |a| with_interval(a, scale))
        };
        grid.row([names.effect(side), cell("all"), cell("treated"), cell("control")]);
    }
    let has_intervals = s.average("cure_effect", "all").is_some_and(|a| a.se.is_some());
    let with = if has_intervals {
        format!(", with {} % intervals", short(100.0 * s.options.confidence))
    } else {
        String::new()
    };
    let over = match s.average("cure_effect", "all") {
        Some(a) if a.n_units > analysis.units.len() => format!("all {} patients", grouped(a.n_units)),
        _ => "the estimated patients".into(),
    };
    let _ = write!(out, "\nAverage effects over {over}{with}\n{}", grid.render());
    if let Some(words) = about_averages(s) {
        let _ = writeln!(out, "  {words}");
    }
    for why in s.audit.iter().flat_map(|a| &a.left_out) {
        let _ = writeln!(out, "  Left out: {why}.");
    }

    if let Some(i) = &s.individual {
        out.push_str("\nHow the effects vary between patients\n");
        let mut header = vec!["", "5 %", "median", "95 %", "interval below 0", "interval above 0"];
        header.extend(terminal.plots.then_some("from 1 % to 99 %"));
        let mut grid = Grid::new(1, &header);
        let sides = [(Estimand::Cure, &i.cure_effect, 100.0), (Estimand::Time, &i.time_effect, 1.0)];
        for (side, spread, scale) in sides {
            let Some(x) = spread else { continue };
            let d = decimals_between(scale * x.quantiles[1], scale * x.quantiles[5]);
            let at = |q: usize| signed_fixed(scale * x.quantiles[q], d);
            let share = |v: Option<f64>| v.map_or("no interval".into(), percent);
            let mut row = vec![names.effect(side), at(1), at(3), at(5), share(x.share_below), share(x.share_above)];
            if terminal.plots {
                let value = |e: &Effect| if scale == 1.0 { e.time() } else { Some(e.cure()) };
                let values: Vec<f64> = analysis.effects.iter().filter_map(value).collect();
                row.push(crate::terminal::sparkline(&values, x.quantiles[0], x.quantiles[6]));
            }
            grid.row(row);
        }
        out.push_str(&grid.render());
    }

    out.push_str("\nCovariates that count most in finding similar patients\n");
    for (name, weights) in [
        ("whether", &analysis.fit.description.metrics.cure.weights),
        ("when", &analysis.fit.description.metrics.time.weights),
    ] {
        let _ = writeln!(out, "  {name}: {}", top_weights(cohort, &names, weights, 6));
    }

    let worries = worries(s, analysis, cohort);
    if !worries.is_empty() {
        out.push_str("\nWhat to keep in mind\n");
        worries.iter().for_each(|w| {
            let _ = writeln!(out, "  - {w}");
        });
    }
    out
}

/// How averages are more than means of single effects, where they are.
pub fn about_averages(s: &Summary) -> Option<&'static str> {
    let is_one_step = s.adjusted.is_some() && s.average("cure_effect", "all").is_some_and(|a| a.se.is_some());
    is_one_step.then_some(
        "Averages are doubly robust estimates, so they can differ from the mean of the patients' own estimates.",
    )
}

/// How much the averages depend on which patients trained the models. Nothing in a run of an earlier version.
pub fn split_spread_sentence(found: &CrossFitRecord, names: &Names) -> Option<String> {
    let x = found.split_averages_sd.as_ref()?;
    let points = |v: f64| fixed(100.0 * v, decimals_of(100.0 * v).min(2));
    let time = |v: f64| names.time(&fixed(v, decimals_of(v).min(2)));
    Some(format!(
        "The averages of the {} groups of patients that the splits left out differ by {} points and {} (standard deviations). Chance alone makes them differ by {} points and {}, because each group holds other patients. Far larger differences would mean that the answer depends on which patients trained the models.",
        found.split_averages.len(),
        points(x.cure_effect),
        time(x.time_effect),
        points(x.cure_effect_by_chance),
        time(x.time_effect_by_chance),
    ))
}

/// What a reader of the results should keep in mind.
pub fn worries(s: &Summary, analysis: &Analysis, cohort: &Cohort) -> Vec<String> {
    let names = Names::of(s, None);
    let mut worries = Vec::new();
    worries.extend(learning::worries(&analysis.fit));
    // Models that only describe the cohort worry nobody.
    let models = analysis.fit.trained_models();
    for arm in READING_ORDER.into_iter().filter(|_| models.is_some()) {
        let certificate = &analysis.fit.description.models[arm].certificate;
        if !certificate.converged || certificate.penalty.is_some() || !certificate.flags.is_empty() {
            let mut text = format!("the cure model of {} ended at {}", names.arm(arm), certificate.stop_reason);
            for flag in &s_model(s, arm).certificate.flags {
                let _ = write!(text, "; {}", named_flag(flag, cohort.names()));
            }
            worries.push(text);
        }
    }
    for (flag, n) in analysis.flag_counts().into_iter().filter(|(_, n)| *n > 0) {
        let meaning = names.spoken(&flag.meaning());
        worries.push(format!("{} of {} patients: {meaning}", grouped(n), grouped(analysis.units.len())));
    }
    if !analysis.unserved.is_empty() {
        worries.push(format!(
            "{} of {} patients have fewer than {} candidates in an arm under the constraints: they have no estimate and are in no average",
            grouped(analysis.unserved.len()),
            grouped(analysis.unserved.len() + analysis.units.len()),
            analysis.fit.options.fewest()
        ));
    }
    worries
}

fn s_model(s: &Summary, arm: Arm) -> &ModelRecord {
    match arm {
        Arm::Treated => &s.models.treated,
        Arm::Control => &s.models.control,
    }
}

/// A model's flag with the covariate's name instead of its number.
pub fn named_flag(flag: &ModelFlagRecord, names: &[String]) -> String {
    match (flag.code.as_str(), flag.numbers.as_slice()) {
        ("constant_covariate" | "collinear_covariate", &[j]) if j < names.len() => {
            flag.meaning.replacen(&format!("covariate {j} "), &format!("covariate `{}` ", names[j]), 1)
        }
        _ => flag.meaning.clone(),
    }
}

/// Decimals with which a number of this size is written: two significant digits of it.
pub fn decimals_of(size: f64) -> usize {
    let size = size.abs();
    if size > 0.0 && size.is_finite() { (1.0 - size.log10().floor()).clamp(0.0, 6.0) as usize } else { 2 }
}

/// Decimals with which an interval's ends are written: two significant digits of a quarter of it, which is the standard
/// error at 95 %.
///
/// ```
/// use dvim_report::text::decimals_between;
/// assert_eq!(decimals_between(-0.3, 10.1), 1); // not "0 to 10": the interval holds zero
/// assert_eq!(decimals_between(-120.0, 310.0), 0);
/// ```
pub fn decimals_between(low: f64, high: f64) -> usize {
    decimals_of((high - low) / 4.0)
}

/// A number with its sign and a fixed count of decimals.
pub fn signed_fixed(x: f64, decimals: usize) -> String {
    let digits = fixed(x, decimals);
    let is_zero = !digits.contains(|c: char| c.is_ascii_digit() && c != '0');
    if x > 0.0 && !is_zero {
        format!("+{digits}")
    } else if is_zero {
        digits.replace('−', "")
    } else {
        digits
    }
}

/// An average effect as words, in points for cure: "+10.4 (+6.5 to +14.3)".
pub fn average_words(a: &AverageRecord) -> String {
    with_interval(a, if a.estimand.starts_with("cure_effect") { 100.0 } else { 1.0 })
}

/// The two ends of an interval as words: "5.5 to 20.1" where both lie on the side that the sentence names, else
/// "14.4 fewer to 9.0 more". `sign` is the side of the estimate.
fn ends(a: &AverageRecord, scale: f64, decimals: usize, sign: f64, [less, more]: [&str; 2]) -> Option<String> {
    let show = |v: f64| fixed((scale * v).abs(), decimals);
    let word = |v: f64| if v < 0.0 { less } else { more };
    let (l, h) = a.low.zip(a.high)?;
    let (near, far) = if l.abs() < h.abs() { (l, h) } else { (h, l) };
    Some(match (l < 0.0) == (h < 0.0) && l * sign > 0.0 {
        true => format!("{} to {}", show(near), show(far)),
        false if (l < 0.0) == (h < 0.0) => format!("{} to {} {}", show(near), show(far), word(near)),
        false => format!("{} {} to {} {}", show(l), word(l), show(h), word(h)),
    })
}

/// An interval in brackets, as papers write it.
fn ci(s: &Summary, words: Option<String>) -> String {
    let level = short(100.0 * s.options.confidence);
    words.map_or(" (no interval)".into(), |words| format!(" ({level} % CI {words})"))
}

fn found<'s>(s: &'s Summary, estimand: &str) -> Option<(&'s AverageRecord, f64)> {
    s.average(estimand, "all").and_then(|a| Some((a, a.estimate?)))
}

/// The answer in two sentences, with intervals.
pub fn answer(s: &Summary, names: &Names) -> [String; 2] {
    let (treated, control) = (names.arm(Arm::Treated), names.arm(Arm::Control));
    let cure =
        found(s, "cure_effect").map_or("Whether treatment changes the outcome is undefined.".into(), |(a, v)| {
            let way = if v < 0.0 { "fewer" } else { "more" };
            let interval = ci(s, ends(a, 100.0, 1, v, ["fewer", "more"]));
            let points = fixed((100.0 * v).abs(), 1);
            format!(
                "With {treated}, {points} {way} of 100 patients are {} than with {control}{interval}.",
                names.state()
            )
        });
    let time = found(s, "time_effect").map_or("When the event comes cannot be compared.".into(), |(a, v)| {
        let decimals = a.low.zip(a.high).map_or(decimals_of(v), |(l, h)| decimals_between(l, h));
        let way = if v < 0.0 { "earlier" } else { "later" };
        let interval = ci(s, ends(a, 1.0, decimals, v, ["earlier", "later"]));
        let of = if names.unit.is_empty() { " in the unit of the time column" } else { "" };
        format!(
            "Among patients who have {} {}, it comes {} {way} with {treated}{of}{interval}.",
            names.event(),
            names.within(),
            names.time(&fixed(v.abs(), decimals))
        )
    });
    [cure, time]
}

/// The event-free time that treatment gives up to the horizon, and how it splits into *whether* and *when*. `None`
/// where a run has no such average.
pub fn gained_time(s: &Summary, names: &Names) -> Option<String> {
    let ((all, gain), (cure, by_cure), (time, by_time)) =
        (found(s, "rmst_effect")?, found(s, "rmst_from_cure")?, found(s, "rmst_from_time")?);
    let decimals = all.low.zip(all.high).map_or(decimals_of(gain), |(l, h)| decimals_between(l, h));
    let with_sign = |v: f64| signed_fixed(v, decimals);
    let part = |a: &AverageRecord, v: f64| match a.low.zip(a.high) {
        Some((low, high)) => format!("{} ({} to {})", with_sign(v), with_sign(low), with_sign(high)),
        None => with_sign(v),
    };
    Some(format!(
        "Patients {} {} {} {} with {}{}: {} because {} have {}, {} because it comes {}.",
        if gain < 0.0 { "lose" } else { "gain" },
        names.time(&fixed(gain.abs(), decimals)),
        names.free_time(),
        names.up_to(),
        names.arm(Arm::Treated),
        ci(s, ends(all, 1.0, decimals, gain, ["lost", "gained"])),
        part(cure, by_cure),
        if by_cure < 0.0 { "more" } else { "fewer" },
        names.event(),
        part(time, by_time),
        if by_time < 0.0 { "earlier" } else { "later" },
    ))
}

/// How many patients have to be treated for one more without the event. `None` where the run does not say.
pub fn needed_to_treat(s: &Summary, names: &Names) -> Option<String> {
    let (a, v) = found(s, "number_needed_to_treat")?;
    let n = |v: f64| fixed(v.abs().ceil(), 0);
    let (treated, control, state) = (names.arm(Arm::Treated), names.arm(Arm::Control), names.state());
    let (way, name) = if v < 0.0 { ("fewer", "harm") } else { ("more", "treat") };
    let Some((low, high)) = a.low.zip(a.high) else {
        return Some(format!(
            "Number needed to {name}: {} for one {way} patient who is {state}. Its interval has no end, because there may be no difference.",
            n(v)
        ));
    };
    let (near, far) = if low.abs() < high.abs() { (low, high) } else { (high, low) };
    Some(format!(
        "Number needed to {name}: {}{}. Of so many patients with {treated} instead of {control}, one {way} is {state}.",
        n(v),
        ci(s, Some(format!("{} to {}", n(near), n(far))))
    ))
}

/// How long patients were followed. `None` in runs of earlier versions.
pub fn followed(s: &Summary, names: &Names) -> Option<String> {
    let all = s.audit.as_ref()?.follow_up.first()?;
    let at_risk = format!("{} patients were followed {} without the event", grouped(all.n_at_risk), to_horizon(names));
    let median = all.median_follow_up.map(|m| format!("Median follow-up is {}; ", names.time(&short(m))));
    Some(match median {
        Some(median) => format!("{median}{at_risk}."),
        None => format!("{at_risk}; median follow-up is not reached."),
    })
}

fn to_horizon(names: &Names) -> String {
    names.up_to().replacen("up to", "to", 1)
}

/// What a patient's effect is made of: the model's own value, and where the `n` patients of the groups moved it. `None`
/// where nothing was corrected.
pub fn made_of(effect: &Effect, side: Estimand, n: usize) -> Option<String> {
    let (corrected, found) = (effect.corrected.as_ref()?, effect.of(side)?);
    let model = &corrected.model[side];
    let scale = if side == Estimand::Cure { 100.0 } else { 1.0 };
    let (model, found) = (scale * (model.treated - model.control), scale * found);
    let usual = if side == Estimand::Cure { 1 } else { decimals_of(found).min(1) };
    Some(moved(model, found, n, usual))
}

/// Digits after which a move is none.
const MOST_DECIMALS: usize = 6;

/// Where patients moved a value, with so many decimals that the move can be seen.
fn moved(from: f64, to: f64, n: usize, usual: usize) -> String {
    let show = |decimals: usize| (signed_fixed(from, decimals), signed_fixed(to, decimals));
    let seen = (usual..=MOST_DECIMALS).map(show).find(|(from, to)| from != to);
    match seen {
        Some((from, to)) => format!("The model alone: {from}; these {} patients move it to {to}.", grouped(n)),
        None => format!("The model alone: {}; these {} patients leave it there.", show(usual).0, grouped(n)),
    }
}

/// The patients in both groups of an estimand.
pub fn group_patients(groups: &UnitGroups, side: Estimand) -> usize {
    groups[side].iter().map(|g| g.size()).sum()
}

/// Positions of the covariates, largest weight first.
pub fn by_weight(cohort: &Cohort, weights: &[f64]) -> Vec<usize> {
    let schema = cohort.schema();
    let mut order: Vec<usize> = (0..schema.len()).collect();
    order.sort_by(|&a, &b| weights[schema[b].first].total_cmp(&weights[schema[a].first]).then(a.cmp(&b)));
    order
}

/// The largest weights, as `name weight`.
fn top_weights(cohort: &Cohort, names: &Names, weights: &[f64], most: usize) -> String {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        return "no covariate counts".into();
    }
    let shown: Vec<String> = by_weight(cohort, weights)
        .into_iter()
        .take(most)
        .map(|c| &cohort.schema()[c])
        .map(|c| format!("{} {}", clip(&names.listed(c), 24), weight_words(weights[c.first], largest)))
        .collect();
    shown.join(", ")
}

/// A number with its sign and about four significant digits.
pub fn signed(x: f64) -> String {
    if x < 0.0 { format!("−{}", short(-x)) } else { format!("+{}", short(x)) }
}

/// Members of each group, covariates and times that fit on a screen.
const FEW_MEMBERS: usize = 3;
const FEW_COVARIATES: usize = 4;
const FEW_TIMES: usize = 4;

/// The patients most like one patient: a screenful, or with `all` every member, covariate and step of the curves.
pub fn match_groups(
    cohort: &Cohort,
    fit: &Fit,
    names: &Names,
    unit: usize,
    groups: &UnitGroups,
    corrected: Option<&Corrected>,
    all: bool,
) -> String {
    let mut out = String::new();
    if fit.is_training[unit] {
        out.push_str(
            "This patient trained the cure models and is not in effects.csv. The groups below are those that any\n",
        );
        out.push_str("patient with the same covariates would get; the patient's own outcome is in none of them.\n\n");
    }
    let _ = writeln!(
        out,
        "Patient {} ({}): {}, {}",
        cohort.ids().text(unit),
        names.arm(cohort.arm(unit)),
        match names.unit.as_str() {
            "" => format!("time {}", short(cohort.time(unit))),
            _ => names.time(&short(cohort.time(unit))),
        },
        outcome(cohort, unit)
    );
    let (horizon, confidence) = (cohort.horizon(), fit.options.confidence);
    let (Some(effect), Some(of_groups)) = (groups.effect(horizon, corrected.copied()), groups.effect(horizon, None))
    else {
        out.push_str("A group is empty: nobody of an arm satisfies the constraints\n");
        return out;
    };
    for side in Estimand::BOTH {
        let _ = writeln!(out, "{}", patient_sentence(&effect, names, side, horizon, confidence));
    }
    if let Some(c) = corrected {
        for side in Estimand::BOTH {
            if let Some(words) = made_of(&effect, side, group_patients(groups, side)) {
                let _ = writeln!(out, "{}. {words} Their weight is {}.", side.question(), short(c.weight[side]));
            }
        }
        out.push_str(&corrected_curves(cohort, names, c, confidence, all));
        let [c, t] = Arm::BOTH.map(|z| percent(of_groups.cure_probability(z)));
        let time = of_groups.time().map_or(String::new(), |t| {
            let way = if t < 0.0 { "earlier" } else { "later" };
            format!("; the event comes {} {way}", names.time(&short(t.abs())))
        });
        let _ = writeln!(
            out,
            "The matched patients alone, before the correction: {t} {} with {}, {c} with {}{time}.",
            names.state(),
            names.arm(Arm::Treated),
            names.arm(Arm::Control)
        );
    }
    let schema = cohort.schema();
    for (side, pair) in [(Estimand::Cure, &groups.cure), (Estimand::Time, &groups.time)] {
        let mut order = by_weight(cohort, &pair.treated.weights);
        order.truncate(if all { usize::MAX } else { FEW_COVARIATES });
        let values = |i: usize| {
            order.iter().map(move |&c| named_value(&schema[c], names, cohort.covariates(i))).collect::<Vec<_>>()
        };
        let _ = writeln!(out, "\nMost similar for {}", side.question().to_lowercase());
        let is_shared = READING_ORDER.iter().any(|z| pair[*z].is_shared());
        let mut header = ["arm", "id", "distance", "time", "outcome"].map(String::from).to_vec();
        header.extend(is_shared.then(|| "counts".to_string()));
        header.extend(order.iter().map(|&c| clip(&names.listed(&schema[c]), 18)));
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let mut grid = Grid::new(2, &header);
        let mut own = vec![clip(names.arm(cohort.arm(unit)), 20), format!("→ {}", cohort.ids().text(unit))];
        own.extend([String::new(), short(cohort.time(unit)), "this patient".into()]);
        own.extend(is_shared.then(String::new));
        own.extend(values(unit));
        grid.row(own);
        for arm in READING_ORDER {
            let group = &pair[arm];
            for (m, &i) in group.units.iter().enumerate().take(if all { usize::MAX } else { FEW_MEMBERS }) {
                let i = i as usize;
                let mut row = vec![clip(names.arm(arm), 20), cohort.ids().text(i).into_owned()];
                row.extend([short(group.distance[m]), short(cohort.time(i)), outcome(cohort, i).into()]);
                row.extend(is_shared.then(|| short(group.counts[m])));
                row.extend(values(i));
                grid.row(row);
            }
            let more = group.units.len().saturating_sub(FEW_MEMBERS);
            if more > 0 && !all {
                grid.row([String::new(), format!("… {} more", grouped(more))]);
            }
            if all {
                let mut share = vec![String::new(), "share of distance".into(), String::new(), String::new()];
                share.push(String::new());
                share.extend(is_shared.then(String::new));
                share.extend(order.iter().map(|&c| percent(group.mean_share(schema[c].columns()))));
                grid.row(share);
            }
        }
        out.push_str(&grid.render());
        for arm in READING_ORDER.into_iter().filter(|z| pair[*z].is_shared()) {
            let group = &pair[arm];
            let sharing = group.counts.iter().filter(|c| **c != 1.0).count();
            let left = group.size() - (group.units.len() - sharing);
            let places = if left == 1 { "place".to_string() } else { format!("{left} places") };
            let name = names.arm(arm);
            let _ = writeln!(out, "  ({name}: {sharing} patients are equally far and share the last {places})");
        }
        if all {
            READING_ORDER.iter().for_each(|z| out.push_str(&group_curve(cohort, names, &pair[*z], *z, corrected)));
        }
    }
    if !all {
        let size = |side: Estimand| grouped(groups[side].treated.size());
        let _ = writeln!(
            out,
            "\nGroups of {} (whether) and {} (when) patients of each arm. --all shows every one of them, every covariate and the curves.",
            size(Estimand::Cure),
            size(Estimand::Time)
        );
    }
    out
}

/// A patient's effect in a sentence.
fn patient_sentence(effect: &Effect, names: &Names, side: Estimand, horizon: f64, confidence: f64) -> String {
    let level = short(100.0 * confidence);
    let (treated, control) = (names.arm(Arm::Treated), names.arm(Arm::Control));
    let interval = |i: Option<Interval>, scale: f64, d: usize| match i {
        Some(i) => {
            let [low, high] = [i.low, i.high].map(|v| signed_fixed(scale * v, d));
            format!(" ({level} % CI {low} to {high})")
        }
        None => " (no interval)".into(),
    };
    match side {
        Estimand::Cure => {
            let [c, t] = Arm::BOTH.map(|z| percent(effect.cure_probability(z)));
            format!(
                "Whether: of such patients {t} are {} with {treated}, {c} with {control}: {} points{}",
                names.state(),
                signed_fixed(100.0 * effect.cure(), 1),
                interval(Some(effect.cure_interval(confidence)), 100.0, 1)
            )
        }
        Estimand::Time => match Arm::BOTH.map(|z| effect.mean_event_time(z)) {
            [Some(c), Some(t)] => {
                let found = effect.time_interval(horizon, confidence);
                let d = found.map_or(decimals_of(t - c), |i| decimals_between(i.low, i.high));
                format!(
                    "When: if they have {} {}, it comes after {} with {treated}, {} with {control}: {}{}",
                    names.event(),
                    names.within(),
                    names.time(&fixed(t, d)),
                    fixed(c, d),
                    signed_fixed(t - c, d),
                    interval(found, 1.0, d)
                )
            }
            _ => format!("When: undefined, because a group has no event {}", names.within()),
        },
    }
}

/// The Kaplan–Meier curve of a group.
fn group_curve(cohort: &Cohort, names: &Names, group: &MatchGroup, arm: Arm, corrected: Option<&Corrected>) -> String {
    let name = match group.curve.is_plain() {
        true => "Kaplan–Meier",
        false if cohort.extras().is_empty() => "Kaplan–Meier by what each counts",
        false => "Curve (weights, entries and causes included)",
    };
    let alone = if corrected.is_some() { ", before the correction" } else { "" };
    let mut grid = Grid::new(0, &["time", "at risk", "events", "censored", "survival"]);
    for s in group.curve.steps().iter().filter(|s| s.n_events > 0 || s.time >= cohort.horizon()) {
        grid.row([
            short(s.time),
            s.n_at_risk.to_string(),
            s.n_events.to_string(),
            s.n_censored.to_string(),
            format!("{:.4}", s.survival),
        ]);
    }
    format!("\n  {name} of the matched patients with {}{alone}\n{}", names.arm(arm), grid.render())
}

/// A patient's corrected curves at some of their times.
fn corrected_curves(cohort: &Cohort, names: &Names, corrected: &Corrected, confidence: f64, all: bool) -> String {
    let (grid, quantile) = (Knots::of(cohort), two_sided(confidence));
    let curves = corrected.curves(&grid);
    let heads = READING_ORDER.map(|z| names.head(z));
    let mut table = Grid::new(0, &["time", &heads[0], &heads[1], "difference, points"]);
    let knots = grid.times().len() - 1;
    let every = if all { 3 } else { knots.div_ceil(FEW_TIMES) };
    for &t in grid.times().iter().skip(1).rev().step_by(every).collect::<Vec<_>>().into_iter().rev() {
        let arm = |z: Arm| {
            let (value, i) = curves.survival(z, t, quantile);
            format!("{} ({} to {})", percent(value), percent(i.low), percent(i.high))
        };
        let (value, i) = curves.survival_difference(t, quantile);
        let [value, low, high] = [value, i.low, i.high].map(|v| signed_fixed(100.0 * v, 1));
        table.row([short(t), arm(Arm::Treated), arm(Arm::Control), format!("{value} ({low} to {high})")]);
    }
    format!("{} over time, for this patient:\n{}", capital(&names.free()), table.render())
}

/// A covariate of a unit with these numbers, as a person would write it.
pub fn value_of(c: &Covariate, x: &[f64]) -> String {
    c.level_of(x).map_or_else(|| short(x[c.first]), |level| clip(level, 14))
}

/// A covariate of a unit with its level by its name.
fn named_value(c: &Covariate, names: &Names, x: &[f64]) -> String {
    c.level_of(x).map_or_else(|| short(x[c.first]), |level| clip(&names.level(&c.name, level), 14))
}

/// What became of a unit by the horizon.
pub fn outcome(cohort: &Cohort, unit: usize) -> &'static str {
    if cohort.event(unit) {
        "event"
    } else if cohort.outcome(unit).competing {
        "other cause"
    } else if cohort.time(unit) >= cohort.horizon() {
        "at horizon"
    } else {
        "censored"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_can_be_seen() {
        assert_eq!(moved(11.94, 12.81, 250, 1), "The model alone: +11.9; these 250 patients move it to +12.8.");
        assert_eq!(moved(0.1104, 0.1131, 500, 1), "The model alone: +0.110; these 500 patients move it to +0.113.");
        assert_eq!(moved(-0.04, 0.04, 500, 1), "The model alone: −0.04; these 500 patients move it to +0.04.");
        assert_eq!(moved(5.0, 5.0, 500, 1), "The model alone: +5.0; these 500 patients leave it there.");
    }
}
