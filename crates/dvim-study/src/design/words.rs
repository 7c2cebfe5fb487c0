//! A design in words: what is assumed, sentence by sentence, and a paragraph for a protocol.

use super::asked::{Design, Method, Multiplicity};
use super::power::{Power, Row};
use dvim_report::text::grouped;

fn points(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// A time as it was typed, or nearly so.
fn time(t: f64) -> String {
    let rounded = (t * 1e4).round() / 1e4;
    format!("{rounded}").replace('-', "−")
}

fn change(v: f64, words: &str) -> String {
    let sign = if v < 0.0 { "−" } else { "+" };
    format!("{sign}{words}")
}

impl Multiplicity {
    /// The rule, in words.
    pub fn words(self, alpha: f64) -> String {
        match self {
            Multiplicity::Bonferroni => format!("either of the two is tested at {} each (Bonferroni)", alpha / 2.0),
            Multiplicity::Holm => format!("the two are tested by Holm's rule at {alpha}"),
            Multiplicity::Fixed => format!("when is tested only where whether was found, each at {alpha}"),
            Multiplicity::None => format!("each is tested at {alpha}, without a correction for two tests"),
        }
    }
}

impl Method {
    /// The analysis, in words.
    pub fn words(self) -> &'static str {
        match self {
            Method::Crude => "the difference of the arms' Kaplan–Meier curves, without covariates",
            Method::Paper => "the published matching estimator",
            Method::Adjusted => "the adjusted estimator (doubly robust, ten folds)",
        }
    }
}

/// What is assumed, a sentence each.
pub fn assumptions(d: &Design) -> Vec<String> {
    let h = time(d.horizon);
    let mut out = Vec::new();
    let source = match (&d.from_run, &d.shape) {
        (Some(run), _) => format!("Patients are resampled from the run {run}, with the curves that it learned. "),
        (None, Some(_)) => "The shape of the control arm's curve is the one that was given. ".into(),
        (None, None) => String::new(),
    };
    out.push(format!(
        "{source}Of 100 patients in the control arm {} are event-free at {h}. The others have the event at {} on average.",
        points(d.event_free),
        time(d.mean_time)
    ));
    out.push(format!(
        "Treatment changes the share by {} points and the mean event time by {}.",
        change(d.cure_effect, &points(d.cure_effect.abs())),
        change(d.time_effect, &time(d.time_effect.abs()))
    ));
    for (sd, what, of) in [
        (d.cure_effect_sd, points(d.cure_effect_sd), "points of the share"),
        (d.time_effect_sd, time(d.time_effect_sd), "of the mean event time"),
    ] {
        if sd > 0.0 {
            out.push(format!("The effect varies between patients with a standard deviation of {what} {of}."));
        }
    }
    if d.shape.is_none() && d.from_run.is_none() {
        out.push("Event times before the horizon have a density that falls or rises exponentially.".into());
    }
    out.push("Nobody has the event after the horizon.".into());
    let entry = if d.accrual > 0.0 {
        format!("Patients enter evenly over {}", time(d.accrual))
    } else {
        "All patients enter at once".into()
    };
    let lost =
        if d.dropout > 0.0 { format!("{} of 100 are lost by {h}", points(d.dropout)) } else { "nobody is lost".into() };
    out.push(format!("{entry}; the study ends at {}; {lost}.", time(d.study_end)));
    out.push(format!("{} of 100 patients are treated.", points(d.treated_share)));
    let strengths = [
        (d.prognosis_whether, "One covariate bears on whether: its odds ratio for one standard deviation is"),
        (
            d.prognosis_when,
            "One covariate bears on when: its odds ratio for the mean event time as a share of the horizon is",
        ),
        (d.confounding, "Treatment depends on the prognostic covariates: the odds ratio for one standard deviation is"),
        (d.selection, "Treatment depends on a covariate that bears on nothing else: its odds ratio is"),
    ];
    for (strength, words) in strengths.into_iter().filter(|(s, _)| *s > 0.0) {
        out.push(format!("{words} {:.2}.", libm::exp(strength)));
    }
    if d.n_covariates > 0 {
        out.push(format!("The analysis is given {} covariates.", d.n_covariates));
    }
    if d.cluster_size > 1 {
        let how = if d.by_cluster && !d.is_observational() {
            "Whole clusters are treated"
        } else {
            "Each cluster has patients of both arms"
        };
        out.push(format!(
            "Patients come in clusters of {}, with a correlation of {} within them. {how}.",
            d.cluster_size, d.cluster_correlation
        ));
    }
    out.push(format!(
        "Analysis: {}. Tests are two-sided at {}; {}.",
        d.analysis.words(),
        d.alpha,
        d.multiplicity.words(d.alpha)
    ));
    if d.analysis == Method::Crude && d.confounding > 0.0 {
        out.push("The crude analysis does not adjust for the confounding: its estimates are biased, and power includes the bias.".into());
    }
    out
}

/// The row that a protocol would name: the smallest that reaches the power wanted for whether, else the largest.
fn chosen(found: &Power) -> &Row {
    let reaches = |r: &&Row| r.power[0].is_some_and(|p| p.value >= found.design.power);
    found.rows.iter().find(reaches).unwrap_or_else(|| found.rows.last().expect("a size"))
}

/// A paragraph ready for a protocol.
pub fn protocol(found: &Power) -> String {
    let d = &found.design;
    let row = chosen(found);
    let per_cent = |share: f64| format!("{:.0} %", 100.0 * share);
    let of = |k: usize| row.power[k].map_or("no".into(), |p| per_cent(p.value));
    let detail = match d.analysis {
        Method::Crude => format!("{} simulated trials", grouped(row.trials)),
        _ => format!(
            "{} simulated trials, of which the estimator analysed {}, with control variates",
            grouped(row.trials),
            grouped(row.fits)
        ),
    };
    let width = match row.width[0] {
        Some(w) => format!(
            " The 95 % interval of the difference in the event-free share would be {:.1} points wide on average.",
            100.0 * w.value
        )
        .replace("95 %", &format!("{:.0} %", 100.0 * (1.0 - d.alpha))),
        None => String::new(),
    };
    format!(
        "With {} patients ({} of them treated), a two-sided level of {} and {}, the study has {} power to find a \
         difference of {} percentage points in the share event-free at {} (from {} to {} %) and {} power to find a difference of {} in the mean time of \
         events before it. We assume accrual over {}, the end of the study at {} and {} % lost by {}. {}. \
         Power was found with dvim {} from {detail} (Monte Carlo standard error {:.1} points; seed {}).{width}",
        grouped(row.n),
        per_cent(d.treated_share),
        d.alpha,
        d.analysis.words(),
        of(0),
        change(d.cure_effect, &points(d.cure_effect.abs())),
        time(d.horizon),
        points(d.event_free),
        points(d.event_free + d.cure_effect),
        of(1),
        change(d.time_effect, &time(d.time_effect.abs())),
        time(d.accrual),
        time(d.study_end),
        points(d.dropout),
        time(d.horizon),
        {
            let rule = d.multiplicity.words(d.alpha);
            let mut letters = rule.chars();
            letters.next().map_or(String::new(), |c| c.to_uppercase().collect::<String>() + letters.as_str())
        },
        env!("CARGO_PKG_VERSION"),
        100.0 * row.power[0].map_or(0.0, |p| p.mc_se),
        d.seed,
    )
}
