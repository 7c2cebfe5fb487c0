//! Do the data support the answer? One word for each effect, and what it rests on.
//!
//! The word follows from rules that anyone can check against the numbers of the audit. None of them looks at whether
//! the effect is large or welcome. What no data can show (that nothing unmeasured confounds, that censoring is
//! independent of the outcome given covariates) is no reason here; the sensitivity analyses say what it would take.

use super::Audit;
use super::balance::CovariateBalance;
use super::follow_up::Verdict as FollowUpVerdict;
use crate::analysis::Analysis;
use crate::cohort::Arm;
use crate::effect::Flag;
use crate::estimand::Estimand;

/// A standardised difference beyond this after matching is a reservation [Austin 2009].
pub const UNBALANCED: f64 = 0.1;
/// And beyond this a serious one [Rubin 2001], in a covariate that carries the metric.
pub const BADLY_UNBALANCED: f64 = 0.25;
/// A covariate of less than this share of the largest weight hardly matters for the outcome: its balance is no reason.
pub const COUNTS: f64 = 0.1;
/// A covariate of at least this share of the largest weight carries the metric.
pub const CARRIES: f64 = 0.5;
/// Share of patients beyond which a flaw of single patients is one of the whole.
pub const MANY: f64 = 0.1;
/// An E-value of the interval below this: a weak unmeasured confounder would do.
pub const WEAK_CONFOUNDER: f64 = 1.25;

/// Whether the data support an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// The interval excludes zero and no check stands against it.
    Supported,
    /// The interval excludes zero, with reservations.
    Reserved,
    /// The interval covers zero.
    NotSettled,
    /// A check says that the number should not be relied on.
    NotReliable,
    /// There is no interval to judge by.
    NoInterval,
    /// There is no estimate.
    Undefined,
}

impl Support {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Support::Supported => "supported",
            Support::Reserved => "reserved",
            Support::NotSettled => "not_settled",
            Support::NotReliable => "not_reliable",
            Support::NoInterval => "no_interval",
            Support::Undefined => "undefined",
        }
    }

    /// For a person.
    pub fn words(self, side: Estimand) -> String {
        let what = side.name();
        match self {
            Support::Supported => format!(
                "The data support this {what} effect: its interval excludes zero, and no check stands against it."
            ),
            Support::Reserved => format!(
                "The data point to this {what} effect, whose interval excludes zero, with the reservations listed."
            ),
            Support::NotSettled => {
                format!("The data do not settle the {what} effect: its interval covers zero, so it may go either way.")
            }
            Support::NotReliable => {
                format!("This {what} effect should not be relied on: a check that it rests on fails, as listed.")
            }
            Support::NoInterval => {
                format!("Whether the data support this {what} effect cannot be said: it has no interval.")
            }
            Support::Undefined => format!("There is no {what} effect to judge: it is undefined."),
        }
    }
}

/// Why a verdict is not better than it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// Stable name.
    pub code: &'static str,
    /// The effects that it concerns: cure, time.
    pub sides: [bool; 2],
    /// Whether it makes the number unreliable.
    pub serious: bool,
    /// For a person.
    pub words: String,
}

/// The verdict on both effects.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// On the average cure effect, then on the average time effect.
    pub support: [Support; 2],
    /// What stands against them.
    pub reasons: Vec<Reason>,
}

const BOTH: [bool; 2] = [true, true];
const CURE: [bool; 2] = [true, false];
const TIME: [bool; 2] = [false, true];

impl Verdict {
    /// The verdict on a run.
    pub fn of(analysis: &Analysis, audit: &Audit) -> Verdict {
        let mut reasons = Vec::new();
        follow_up(audit, &mut reasons);
        balance(analysis, audit, &mut reasons);
        matching_bias(audit, &mut reasons);
        flags(analysis, &mut reasons);
        models(analysis, &mut reasons);
        if audit
            .confounding
            .as_ref()
            .is_some_and(|c| (1.0..WEAK_CONFOUNDER).contains(&c.e_value_interval) && c.e_value_interval > 1.0)
        {
            let e = audit.confounding.as_ref().map_or(1.0, |c| c.e_value_interval);
            reasons.push(Reason {
                code: "weak_confounder",
                sides: CURE,
                serious: false,
                words: format!(
                    "an unmeasured confounder with risk ratios of only {e:.2} would move the interval to zero"
                ),
            });
        }
        let support = [("cure_effect", 0), ("time_effect", 1)].map(|(estimand, side)| {
            let found = audit.averages.iter().find(|a| a.estimand == estimand && a.population == "all");
            let serious = reasons.iter().any(|r| r.serious && r.sides[side]);
            let any = reasons.iter().any(|r| r.sides[side]);
            match found.map(|a| (a.estimate, a.low.zip(a.high))) {
                None | Some((None, _)) => Support::Undefined,
                Some(_) if serious => Support::NotReliable,
                Some((_, None)) => Support::NoInterval,
                Some((_, Some((low, high)))) if low <= 0.0 && high >= 0.0 => Support::NotSettled,
                Some(_) if any => Support::Reserved,
                Some(_) => Support::Supported,
            }
        });
        Verdict { support, reasons }
    }
}

fn follow_up(audit: &Audit, reasons: &mut Vec<Reason>) {
    for f in audit.follow_up.iter().filter(|f| f.arm.is_some()) {
        let arm = f.arm.map_or("", Arm::name);
        let (code, sides, serious, words) = match f.verdict {
            FollowUpVerdict::Sufficient => continue,
            FollowUpVerdict::StillFalling => (
                "still_falling",
                CURE,
                false,
                format!(
                    "in the {arm} arm events still come close to the horizon: read cured as event-free at the horizon"
                ),
            ),
            FollowUpVerdict::FewAtHorizon => (
                "few_at_horizon",
                BOTH,
                true,
                format!(
                    "only {} patients of the {arm} arm are followed to the horizon: choose an earlier one",
                    f.n_at_risk
                ),
            ),
            FollowUpVerdict::NotReached => (
                "horizon_not_reached",
                BOTH,
                true,
                format!("nobody of the {arm} arm is followed to the horizon: choose an earlier one"),
            ),
        };
        reasons.push(Reason { code, sides, serious, words });
    }
}

fn balance(analysis: &Analysis, audit: &Audit, reasons: &mut Vec<Reason>) {
    let Some(b) = &audit.balance else { return };
    for (side, sides) in [(Estimand::Cure, CURE), (Estimand::Time, TIME)] {
        let weights = &analysis.fit.description.metrics[side].weights;
        let largest = weights.iter().copied().fold(0.0, f64::max);
        let of = |c: &CovariateBalance| match (&c.average, side) {
            (Some(average), _) => average.difference.abs(),
            (None, Estimand::Cure) => c.cure.difference.abs(),
            (None, Estimand::Time) => c.time.difference.abs(),
        };
        let weighed = b.covariates.iter().zip(weights);
        let mut off: Vec<(&CovariateBalance, f64)> =
            weighed.filter(|(c, w)| of(c) > UNBALANCED && **w >= COUNTS * largest).map(|(c, w)| (c, *w)).collect();
        off.sort_by(|x, y| of(y.0).total_cmp(&of(x.0)));
        let Some((worst, _)) = off.first() else { continue };
        let (name, counted) = (side.name(), weights.iter().filter(|w| **w >= COUNTS * largest).count());
        let place = match worst.average {
            Some(_) => "weighted as the averages weigh patients,".to_string(),
            None => format!("in the groups matched for {name}"),
        };
        reasons.push(Reason {
            code: "unbalanced",
            sides,
            serious: off.iter().any(|(c, w)| of(c) > BADLY_UNBALANCED && *w >= CARRIES * largest),
            words: format!(
                "{place} the arms still differ by more than {UNBALANCED} standard deviations in {} of {counted} covariates that count for {name}, most in {} ({:.2})",
                off.len(),
                worst.covariate,
                of(worst)
            ),
        });
    }
    let n = b.n_units;
    if n > 0 && b.alone.len() as f64 > MANY * n as f64 {
        reasons.push(Reason {
            code: "no_comparable",
            sides: BOTH,
            serious: false,
            words: format!("{} of {n} patients have no comparable patient in the other arm", b.alone.len()),
        });
    }
    if let Some(o) = b.overlap.as_ref().filter(|o| o.extreme_share > MANY) {
        reasons.push(Reason {
            code: "extreme_propensity",
            sides: BOTH,
            serious: false,
            words: format!(
                "{:.0} % of patients had a chance of treatment below 5 % or above 95 %: the arms hardly overlap there",
                100.0 * o.extreme_share
            ),
        });
    }
}

/// Members of a group differ from the patient they stand for; the models say what this does to the average.
fn matching_bias(audit: &Audit, reasons: &mut Vec<Reason>) {
    for (estimand, sides, name) in [("cure_effect", CURE, "cure"), ("time_effect", TIME, "time")] {
        let of = |estimand: &str| audit.averages.iter().find(|a| a.estimand == estimand && a.population == "all");
        let (Some(plain), Some(corrected)) = (of(estimand), of(&format!("{estimand}_corrected"))) else { continue };
        let (Some(value), Some(bias), Some(se)) = (plain.estimate, corrected.bias.or(plain.bias), plain.se) else {
            continue;
        };
        let Some(after) = corrected.estimate else { continue };
        let excludes = |low: Option<f64>, high: Option<f64>| low.zip(high).is_some_and(|(l, h)| l > 0.0 || h < 0.0);
        let lost = excludes(plain.low, plain.high) && !excludes(corrected.low, corrected.high);
        if value * after < 0.0 || lost || bias.abs() > se {
            let tail = if value * after < 0.0 {
                "; less that, the effect would change its sign"
            } else if lost {
                "; less that, its interval would cover zero"
            } else {
                ""
            };
            reasons.push(Reason {
                code: "matching_bias",
                sides,
                serious: value * after < 0.0,
                words: format!(
                    "the models expect that imperfect matches shift the average {name} effect by {:.1} standard errors{tail}",
                    (bias / se).abs()
                ),
            });
        }
    }
}

fn flags(analysis: &Analysis, reasons: &mut Vec<Reason>) {
    let n = analysis.effects.len();
    for (flag, count) in analysis.flag_counts().into_iter().filter(|(_, c)| *c as f64 > MANY * n as f64) {
        let (code, sides) = match flag {
            Flag::CureCarriedForward(_) => ("many_carried_forward", CURE),
            Flag::TimeCarriedForward(_) => ("many_carried_forward", TIME),
            Flag::NoEvent(_) => ("many_undefined", TIME),
            Flag::FewAtRisk(_) => ("many_few_at_risk", BOTH),
            Flag::NoTimeInterval(_) => ("many_without_interval", TIME),
        };
        reasons.push(Reason {
            code,
            sides,
            serious: false,
            words: format!("{count} of {n} patients: {}", flag.meaning()),
        });
    }
}

fn models(analysis: &Analysis, reasons: &mut Vec<Reason>) {
    for arm in Arm::BOTH {
        if !analysis.fit.description.models[arm].certificate.converged {
            reasons.push(Reason {
                code: "model_not_certified",
                sides: BOTH,
                serious: false,
                words: format!("the cure model of the {} arm has no certified optimum: weights rest on it", arm.name()),
            });
        }
    }
}
