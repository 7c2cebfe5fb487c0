//! How the estimates were learned, in words: the one place that tells one honest split from cross-fitting.

use crate::text::grouped;
use dvim::internal::analysis::Analysis;
use dvim::internal::beside::Shares;
use dvim::internal::estimand::Estimand;
use dvim::internal::fold::{CrossFit, Fit};

/// How the run came to its numbers.
pub fn sentence(analysis: &Analysis) -> String {
    let fit = &analysis.fit;
    match &fit.description.cross_fit {
        None => format!(
            "{} trained the two cure models; {} were estimated from groups of {} in each arm.",
            grouped(fit.is_training.iter().filter(|trains| **trains).count()),
            grouped(analysis.units.len()),
            fit.options.group_size
        ),
        Some(told) => cross_fit_sentence(fit, told),
    }
}

/// What the estimates are called, in a few words.
pub fn name(fit: &Fit) -> String {
    match &fit.description.cross_fit {
        None => format!("groups of {} in each arm, the paper's estimator", fit.options.group_size),
        Some(_) => "the adjusted estimator".into(),
    }
}

/// What the models of the arms are for, where no estimate uses them.
pub fn models_describe(fit: &Fit) -> Option<&'static str> {
    let words = "The two cure models below are fitted on all patients for description; no estimate uses them.";
    fit.trained_models().is_none().then_some(words)
}

/// How the adjusted estimator came to its numbers.
fn cross_fit_sentence(fit: &Fit, told: &CrossFit) -> String {
    let range = |estimand: Estimand| {
        let sizes = || fit.folds().map(|f| f.group_size[estimand]);
        let (low, high) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
        let weights = fit.folds().filter_map(|f| Some(f.corrector.as_ref()?.weight[estimand]));
        let weight = weights.sum::<f64>() / fit.folds().count().max(1) as f64;
        let k = if low == high { grouped(low) } else { format!("{} to {}", grouped(low), grouped(high)) };
        format!("{k} in each arm with weight {weight:.2}")
    };
    format!(
        "Each was estimated by the {} of {} splits that left it out ({} event times),\nlearned {},\ncorrected by match groups: for whether {}, for when {}.",
        if fit.deals.len() == 1 { "one".to_string() } else { fit.deals.len().to_string() },
        fit.folds().count(),
        told.family.name(),
        learners(fit),
        range(Estimand::Cure),
        range(Estimand::Time)
    )
}

/// What the curves were learned by, with the mean shares over all splits.
fn learners(fit: &Fit) -> String {
    let of = |estimand: Estimand| {
        let shares: Vec<Shares> = (fit.folds().filter_map(|f| f.corrector.as_ref()))
            .map(|c| c.model.predictor.beside.share[estimand])
            .collect();
        let mean = |of: fn(&Shares) -> f64| shares.iter().map(of).sum::<f64>() / shares.len().max(1) as f64;
        let all = [
            ("cure model", mean(Shares::cure_model)),
            ("proportional hazards", mean(|s| s.hazards)),
            ("boosted hazards", mean(|s| s.boosted)),
        ];
        let said = all.iter().filter(|(_, share)| (100.0 * share).round() > 0.0);
        let said: Vec<String> = said.map(|(name, share)| format!("{:.0} % {name}", 100.0 * share)).collect();
        match said.as_slice() {
            [only] => format!("the {} alone", only.trim_start_matches("100 % ")),
            _ => said.join(" and "),
        }
    };
    let (whether, when) = (of(Estimand::Cure), of(Estimand::Time));
    if whether == when { format!("by {whether}") } else { format!("for whether by {whether}, for when by {when}") }
}

/// What the models of the splits have to say, and in how many of them.
pub fn worries(fit: &Fit) -> Vec<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for warning in fit.folds().flat_map(|f| &f.warnings) {
        match counts.iter_mut().find(|(text, _)| text == warning) {
            Some((_, n)) => *n += 1,
            None => counts.push((warning, 1)),
        }
    }
    let n = fit.folds().count();
    let sentence = |(text, k): (&str, usize)| match k {
        k if k == n => format!("the models of all {n} splits: {text}"),
        1 => format!("the model of one of {n} splits: {text}"),
        k => format!("the models of {k} of {n} splits: {text}"),
    };
    counts.into_iter().map(sentence).collect()
}
