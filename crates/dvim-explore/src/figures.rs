//! The figures of a patient: those of the report, at the width of the page.

use dvim::internal::arm::ByArm;
use dvim::internal::cohort::Cohort;
use dvim::internal::effect::{Corrected, Effect};
use dvim::internal::estimand::Estimand;
use dvim::internal::inspect::MatchGroup;
use dvim_report::figures::{self, Look};

/// The curves of two groups, without the figure's own style sheet: the page's content policy forbids it, and the page
/// serves the same rules as a file.
#[allow(clippy::too_many_arguments, reason = "a figure of one patient needs who, what and how")]
pub fn curves(
    cohort: &Cohort,
    pair: &ByArm<MatchGroup>,
    side: Estimand,
    effect: &Effect,
    own: Option<&Corrected>,
    horizon: f64,
    confidence: f64,
    look: &Look,
) -> String {
    let mut figure = figures::patient(cohort, pair, side, Some(effect), own, horizon, confidence, look);
    for (arm, group) in figure.arms.iter_mut().zip([&pair.treated, &pair.control]) {
        let censored = group.curve.steps().iter().filter(|s| s.n_censored > 0 && s.time < horizon);
        arm.censored = censored.map(|s| s.time).collect();
        if side == Estimand::Cure {
            arm.mean_event_time = None;
        }
    }
    figure.about.height = Some(if look.width < 420.0 { 190.0 } else { 230.0 });
    let svg = figure.svg();
    match svg.split_once("<style>").and_then(|(a, rest)| Some((a, rest.split_once("</style>")?.1))) {
        Some((before, after)) => format!("{before}{after}"),
        None => svg,
    }
}
