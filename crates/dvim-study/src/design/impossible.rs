//! Designs that cannot be: what was given, the rule, the remedy.

use super::asked::Design;
use super::world::{Bounds, margins};

/// Fewest patients of a trial.
pub const FEWEST: usize = 20;
/// Most patients of a trial.
pub const LARGEST: usize = 100_000;
/// A mean event time is at least this share of H, and at most one less it.
pub const NEAR_THE_END: f64 = 0.02;
/// Strengths are log odds ratios of one standard deviation: beyond 4 a covariate all but decides.
const STRONGEST: f64 = 4.0;

/// Why a design cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// The option, in small letters and hyphens.
    pub option: &'static str,
    /// What is wrong with it.
    pub found: String,
    /// The rule.
    pub rule: &'static str,
    /// The remedy.
    pub remedy: String,
}

/// A sum of what was typed, without the digits that binary fractions add.
fn rounded(v: f64) -> f64 {
    (v * 1e9).round() / 1e9
}

fn no(option: &'static str, found: String, rule: &'static str, remedy: String) -> Result<(), Impossible> {
    Err(Impossible { option, found, rule, remedy })
}

fn is_share(v: f64) -> bool {
    v > 0.0 && v < 1.0
}

impl Design {
    /// Refuses what cannot be. `fewest` covariates are needed by the strengths that were given.
    pub(super) fn check(&self, fewest: usize, has_run: bool) -> Result<(), Impossible> {
        self.check_effects()?;
        self.check_follow_up()?;
        self.check_analysis()?;
        self.check_patients(fewest, has_run)?;
        if has_run { Ok(()) } else { self.check_spread() }
    }

    fn check_effects(&self) -> Result<(), Impossible> {
        let h = self.horizon;
        let (least, most) = (NEAR_THE_END * h, (1.0 - NEAR_THE_END) * h);
        match self {
            _ if !(h > 0.0 && h.is_finite()) => {
                no("horizon", format!("it is {h}"), "the horizon is a positive time", "use a positive number".into())
            }
            d if !is_share(d.event_free) => no(
                "event-free",
                format!("it is {}", d.event_free),
                "a share lies between 0 and 1",
                "use 0.4 where 40 of 100 are event-free at the horizon".into(),
            ),
            d if !is_share(d.event_free + d.cure_effect) => no(
                "cure-effect",
                format!("{} of the treated would be event-free", rounded(d.event_free + d.cure_effect)),
                "the event-free share of the treated, that of the control arm plus the effect, lies between 0 and 1",
                format!("use an effect between {} and {}", rounded(-d.event_free), rounded(1.0 - d.event_free)),
            ),
            d if !(least..=most).contains(&d.mean_time) => no(
                "mean-time",
                format!("it is {}", d.mean_time),
                "the mean of event times before the horizon lies between 2 % and 98 % of the horizon",
                format!("use a time from {least} to {most}"),
            ),
            d if !(least..=most).contains(&(d.mean_time + d.time_effect)) => no(
                "time-effect",
                format!("the mean event time of the treated would be {}", rounded(d.mean_time + d.time_effect)),
                "the mean event time of the treated, that of the control arm plus the effect, lies between 2 % and 98 % of the horizon",
                format!("use an effect from {} to {}", rounded(least - d.mean_time), rounded(most - d.mean_time)),
            ),
            _ => Ok(()),
        }
    }

    fn check_follow_up(&self) -> Result<(), Impossible> {
        let h = self.horizon;
        match self {
            d if !(d.accrual >= 0.0 && d.accrual.is_finite()) => no(
                "accrual",
                format!("it is {}", d.accrual),
                "patients enter over a time that is not negative",
                "use 0 where all enter at once".into(),
            ),
            d if !(d.study_end >= d.accrual && d.study_end.is_finite()) => no(
                "study-end",
                format!("the study ends at {}, and patients enter until {}", d.study_end, d.accrual),
                "follow-up ends after the last patient has entered",
                format!("use at least {}", d.accrual),
            ),
            d if d.study_end < h => no(
                "study-end",
                format!("the study ends at {}, before the horizon {h}", d.study_end),
                "somebody must be followed to the horizon: the first patient is followed to the end of the study",
                format!("use more than {h}, or an earlier horizon"),
            ),
            d if !(0.0..1.0).contains(&d.dropout) => no(
                "dropout",
                format!("it is {}", d.dropout),
                "the share lost by the horizon is at least 0 and below 1",
                "use 0.1 where 10 of 100 are lost".into(),
            ),
            d if !(d.more_time >= 0.0 && d.more_time.is_finite()) => no(
                "more-time",
                format!("it is {}", d.more_time),
                "further follow-up is a time that is not negative",
                "use 1 for one more year where times are years".into(),
            ),
            _ => Ok(()),
        }
    }

    fn check_analysis(&self) -> Result<(), Impossible> {
        match self {
            d if d.sizes.is_empty() || d.sizes.iter().any(|n| !(FEWEST..=LARGEST).contains(n)) => no(
                "sizes",
                format!("they are {:?}", d.sizes),
                "a study has 20 to 100000 patients",
                "use 200,400,800".into(),
            ),
            d if !(d.alpha > 0.0 && d.alpha < 0.5) => no(
                "alpha",
                format!("it is {}", d.alpha),
                "the level of a test lies between 0 and 0.5",
                "use 0.05".into(),
            ),
            d if !(d.power > 0.5 && d.power < 1.0) => no(
                "power",
                format!("it is {}", d.power),
                "the power that is wanted lies between 0.5 and 1",
                "use 0.8 or 0.9".into(),
            ),
            d if !(d.precision >= 0.001 && d.precision <= 0.1) => no(
                "precision",
                format!("it is {}", d.precision),
                "the Monte Carlo standard error of a power lies between 0.001 and 0.1",
                "use 0.01 for ± 2 points".into(),
            ),
            d if d.most_trials < 20 => no(
                "most-trials",
                format!("it is {}", d.most_trials),
                "a power rests on 20 trials of each size or more",
                "use 100".into(),
            ),
            d if d.analysis != super::asked::Method::Crude && d.sizes[0] < 100 => no(
                "sizes",
                format!("the smallest is {}", d.sizes[0]),
                "the paper's and the adjusted estimator need 100 patients or more",
                "leave out smaller sizes, or use the crude analysis".into(),
            ),
            _ => Ok(()),
        }
    }

    fn check_patients(&self, fewest: usize, has_run: bool) -> Result<(), Impossible> {
        let strengths = [
            ("prognosis-whether", self.prognosis_whether),
            ("prognosis-when", self.prognosis_when),
            ("confounding", self.confounding),
            ("selection", self.selection),
        ];
        if let Some((option, v)) = strengths.into_iter().find(|(_, v)| !(0.0..=STRONGEST).contains(v)) {
            let rule = "a strength is a log odds ratio for one standard deviation, from 0 to 4";
            return no(option, format!("it is {v}"), rule, "use 0.5 for moderate, 1 for strong".into());
        }
        let prognostic = self.prognosis_whether > 0.0 || self.prognosis_when > 0.0;
        match self {
            d if !is_share(d.treated_share) => no(
                "treated-share",
                format!("it is {}", d.treated_share),
                "a share lies between 0 and 1",
                "use 0.5 for arms of one size".into(),
            ),
            d if has_run
                && (prognostic || d.is_observational() || d.cure_effect_sd > 0.0 || d.time_effect_sd > 0.0) =>
            {
                no(
                    "from-run",
                    "strengths of covariates are given too".into(),
                    "the covariates of a finished run bring their own strengths, and trials of them are randomised",
                    "leave out prognosis, confounding, selection and the standard deviations of effects".into(),
                )
            }
            d if d.confounding > 0.0 && !prognostic => no(
                "confounding",
                format!("it is {}, and no covariate bears on the outcome", d.confounding),
                "only a covariate that bears on the outcome confounds",
                "give a prognosis too, or use a selection".into(),
            ),
            d if d.n_covariates < fewest => no(
                "n-covariates",
                format!("there are {}", d.n_covariates),
                "each strength has a covariate of its own, and the paper's and the adjusted estimator need one",
                format!("use {fewest} or more"),
            ),
            d if d.n_covariates > 100 => no(
                "n-covariates",
                format!("there are {}", d.n_covariates),
                "a design has at most 100 covariates",
                "use those that matter, and a few more".into(),
            ),
            d if d.cluster_size == 0 || 4 * d.cluster_size > d.sizes[0] => no(
                "cluster-size",
                format!("it is {}, and the smallest study has {} patients", d.cluster_size, d.sizes[0]),
                "a study has at least four clusters",
                format!("use at most {}", d.sizes[0] / 4),
            ),
            d if !(0.0..1.0).contains(&d.cluster_correlation) => no(
                "cluster-correlation",
                format!("it is {}", d.cluster_correlation),
                "the correlation within a cluster is at least 0 and below 1",
                "use 0.05".into(),
            ),
            d if d.cluster_correlation > 0.0 && d.cluster_size == 1 => no(
                "cluster-correlation",
                format!("it is {}, and each patient is a cluster", d.cluster_correlation),
                "patients correlate within clusters of two or more",
                "give the size of a cluster too".into(),
            ),
            d if d.is_observational() && d.cluster_size > 1 && d.by_cluster => no(
                "randomise",
                "whole clusters are treated, and treatment depends on patients' covariates".into(),
                "treatment is decided for clusters or by patients' covariates",
                "use patients, or leave out confounding and selection".into(),
            ),
            _ => Ok(()),
        }
    }

    /// Effects that vary, and the strengths of covariates, must leave every patient a share and a time.
    fn check_spread(&self) -> Result<(), Impossible> {
        let h = self.horizon;
        if self.cure_effect_sd.is_nan() || self.cure_effect_sd < 0.0 {
            let rule = "a standard deviation is not negative";
            return no(
                "cure-effect-sd",
                format!("it is {}", self.cure_effect_sd),
                rule,
                "use 0.1 for 10 points".into(),
            );
        }
        if self.time_effect_sd.is_nan() || self.time_effect_sd < 0.0 {
            let rule = "a standard deviation is not negative";
            return no("time-effect-sd", format!("it is {}", self.time_effect_sd), rule, "use a time".into());
        }
        let Bounds { whether, when } = margins(self);
        let inside = |b: [f64; 2], v: f64| b[0] < v && v < b[1];
        if !inside(whether, self.event_free) {
            return no(
                "cure-effect-sd",
                format!("with {} some patients' share would leave 0 to 1", self.cure_effect_sd),
                "effects vary evenly within √3 standard deviations of their average, and every patient's share lies between 0 and 1",
                "use a smaller standard deviation".into(),
            );
        }
        if !inside(when, self.mean_time) {
            return no(
                "time-effect-sd",
                format!("with {} some patients' mean event time would leave the time to {h}", self.time_effect_sd),
                "effects vary evenly within √3 standard deviations of their average, and every mean lies between 2 % and 98 % of the horizon",
                "use a smaller standard deviation".into(),
            );
        }
        Ok(())
    }
}
