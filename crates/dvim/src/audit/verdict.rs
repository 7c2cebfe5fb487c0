//! Do the data support the answer? One word for each effect, and what it rests on.
//!
//! The word follows from a rule over named checks, each of which judges the average that is reported. None of them
//! looks at whether the effect is large or welcome:
//!
//! - a check that fails badly: **not reliable**;
//! - else an interval that covers zero: **not settled**;
//! - else a check that fails: **with reservations**;
//! - else: **supported**.
//!
//! | check | what it looks at | reservation | serious |
//! | --- | --- | --- | --- |
//! | `leak` | a covariate that is the outcome in other words | | always |
//! | `few_at_horizon` | patients at risk at H, unless nearly everybody has had the event | fewer than ten | nobody |
//! | `few_events` | events before H in the smaller arm | fewer than 20 | fewer than 5 |
//! | `unbalanced` | what the difference that weights leave in a covariate can do to the average | 1 standard error | 3, where nothing else corrects it |
//! | `no_overlap` | patients whose chance of treatment is below 5 or above 95 % | a tenth | a third |
//! | `form` | how far flexible models of treatment and residuals moved the average | 1 standard error | 2 |
//! | `censoring` | how censoring depends on covariates, times the share censored | 0.1 | 0.3 |
//! | `matching_bias` | what imperfect matches do to the average of match groups | 1 standard error | the sign |
//! | `splits` | the average over repeated cross-fits | moves by its standard error | |
//!
//! Notes change how a number is read, not whether it can be relied on: events that still come at the horizon, patients
//! far from the other arm, flags of single patients, how strong an unmeasured confounder would have to be. What no data
//! can show is no check. How often each word is wrong is measured ([`rates`]; `dvim study verdict`).

pub mod rates;

use super::Audit;
use super::average::AverageEffect;
use super::balance::CovariateBalance;
use super::follow_up::{FEW, Verdict as FollowUpVerdict};
use crate::analysis::Analysis;
use crate::cohort::{Arm, Cohort, leaks};
use crate::effect::Flag;
use crate::estimand::{ByEstimand, Estimand};
use crate::phrase::{Fields, Value};
use crate::setting::Setting;

/// Standard errors by which imbalance can move an average: a reservation, and serious where no model corrects it.
const IMBALANCE: [f64; 2] = [1.0, 3.0];
/// Share of patients with a chance of treatment below 5 or above 95 %: a reservation, serious.
const EXTREME: [f64; 2] = [0.1, 1.0 / 3.0];
/// Standard errors by which flexible models moved an average: a reservation, serious.
const FORM: [f64; 2] = [1.0, 2.0];
/// Standard deviation of the log hazard of censoring, times the share censored: a reservation, serious.
const CENSORING: [f64; 2] = [0.1, 0.3];
/// Chance below which censoring is taken to depend on covariates.
const CENSORING_P: f64 = 1e-3;
/// Events before H in the smaller arm: a reservation, serious.
const EVENTS: [usize; 2] = [20, 5];
/// Share of patients beyond which a flaw of single patients is worth a note.
const MANY: f64 = 0.1;
/// An E-value of the interval below this: a weak unmeasured confounder would do.
const WEAK_CONFOUNDER: f64 = 1.25;

/// Whether the data support an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
        let about = side.question();
        match self {
            Support::Supported => {
                format!("{about}: the data support this answer. Its interval excludes zero, and every check passed.")
            }
            Support::Reserved => {
                format!(
                    "{about}: the data point to this answer, with the reservations listed. Its interval excludes zero."
                )
            }
            Support::NotSettled => {
                format!("{about}: no clear difference. The interval includes zero, so the effect may go either way.")
            }
            Support::NotReliable => format!("{about}: do not rely on this answer yet. A check fails, as listed."),
            Support::NoInterval => {
                format!("{about}: it cannot be said whether the data support this answer, because it has no interval.")
            }
            Support::Undefined => format!("{about}: there is no answer to judge."),
        }
    }
}

/// How much a reason weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// It changes how the number is read, not the word.
    Note,
    /// The word is at best "with reservations".
    Reservation,
    /// The word is "not reliable".
    Serious,
}

impl Weight {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Weight::Note => "note",
            Weight::Reservation => "reservation",
            Weight::Serious => "serious",
        }
    }

    /// The weight of a value that has two limits; `None` below the first.
    fn of(value: f64, [reservation, serious]: [f64; 2]) -> Option<Weight> {
        match () {
            () if value >= serious => Some(Weight::Serious),
            () if value >= reservation => Some(Weight::Reservation),
            () => None,
        }
    }
}

/// What can be done about a reason: words, and settings of another analysis.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// For a person, without the names of settings.
    pub words: String,
    /// Settings with which a fit would do it. Each face spells them.
    pub settings: Vec<(Setting, Value)>,
}

impl Remedy {
    fn action(words: impl Into<String>) -> Remedy {
        Remedy { words: words.into(), settings: Vec::new() }
    }

    fn set(words: impl Into<String>, setting: Setting, value: impl Into<Value>) -> Remedy {
        Remedy { words: words.into(), settings: vec![(setting, value.into())] }
    }
}

/// Why a verdict is not better than it is, or what to know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// Stable name of the check.
    pub code: &'static str,
    /// The effects that it concerns.
    pub sides: ByEstimand<bool>,
    /// How much it weighs.
    pub weight: Weight,
    /// For a person.
    pub words: String,
    /// What can be done.
    pub remedy: Remedy,
}

/// The verdict on both effects.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// On each average effect.
    pub support: ByEstimand<Support>,
    /// What stands against them, the heaviest first.
    pub reasons: Vec<Reason>,
    /// How often each word was wrong in the study of verdicts. `None` where the study says nothing of such a run: it
    /// judged 95 % intervals of the adjusted estimator.
    pub worth: ByEstimand<Option<String>>,
}

const BOTH: ByEstimand<bool> = ByEstimand { cure: true, time: true };

/// One effect alone.
fn only(side: Estimand) -> ByEstimand<bool> {
    ByEstimand::of(|s| s == side)
}

fn average<'a>(audit: &'a Audit, estimand: &str) -> Option<&'a AverageEffect> {
    audit.averages.iter().find(|a| a.estimand == estimand && a.population == "all")
}

fn effect_of(audit: &Audit, side: Estimand) -> Option<&AverageEffect> {
    average(audit, side.effect())
}

impl Verdict {
    /// The verdict on a run.
    pub fn of(cohort: &Cohort, analysis: &Analysis, audit: &Audit) -> Verdict {
        let mut reasons = Vec::new();
        leaked(cohort, &mut reasons);
        follow_up(audit, &mut reasons);
        events(audit, &mut reasons);
        balance(analysis, audit, &mut reasons);
        overlap(audit, &mut reasons);
        form(audit, &mut reasons);
        censoring(audit, &mut reasons);
        matching_bias(audit, &mut reasons);
        splits(analysis, audit, &mut reasons);
        flags(analysis, &mut reasons);
        models(analysis, &mut reasons);
        confounder(audit, &mut reasons);
        // The heaviest first, otherwise in the order of the checks.
        reasons.sort_by_key(|r| std::cmp::Reverse(r.weight));
        let support = ByEstimand::of(|side| {
            let heaviest = reasons.iter().filter(|r| r.sides[side]).map(|r| r.weight).max();
            match effect_of(audit, side).map(|a| (a.estimate, a.low.zip(a.high))) {
                None | Some((None, _)) => Support::Undefined,
                Some(_) if heaviest == Some(Weight::Serious) => Support::NotReliable,
                Some((_, None)) => Support::NoInterval,
                Some((_, Some((low, high)))) if low <= 0.0 && high >= 0.0 => Support::NotSettled,
                Some(_) if heaviest == Some(Weight::Reservation) => Support::Reserved,
                Some(_) => Support::Supported,
            }
        });
        let is_studied = analysis.fit.is_corrected() && analysis.fit.options.confidence == rates::CONFIDENCE;
        let worth = ByEstimand::of(|side| rates::line(support[side], side).filter(|_| is_studied));
        Verdict { support, reasons, worth }
    }
}

fn leaked(cohort: &Cohort, reasons: &mut Vec<Reason>) {
    for leak in leaks(cohort) {
        reasons.push(Reason {
            code: "leak",
            sides: BOTH,
            weight: Weight::Serious,
            words: format!(
                "the covariate `{}` looks like the outcome itself: {}",
                leak.covariate,
                leak.evidence.spelled(&Fields)
            ),
            remedy: Remedy::set("leave it out", Setting::Drop, leak.covariate.as_str()),
        });
    }
}

fn follow_up(audit: &Audit, reasons: &mut Vec<Reason>) {
    let arms: Vec<_> = audit.follow_up.iter().filter(|f| f.arm.is_some()).collect();
    // A horizon serves both arms.
    let until = arms.iter().map(|f| f.last_ten).fold(f64::INFINITY, f64::min);
    for f in arms {
        let arm = f.arm.map_or("", Arm::name);
        let earlier = || match until > 0.0 {
            true => Remedy::set(
                format!("choose a horizon of at most {until}, where {FEW} of each arm are still at risk"),
                Setting::Horizon,
                until,
            ),
            false => Remedy::action("collect longer follow-up"),
        };
        let (code, weight, words, remedy) = match f.verdict {
            FollowUpVerdict::Sufficient | FollowUpVerdict::Over => continue,
            FollowUpVerdict::StillFalling => (
                "still_falling",
                Weight::Note,
                format!("events still come close to the horizon in the {arm} arm"),
                Remedy::action("say event-free at the horizon, not cured"),
            ),
            FollowUpVerdict::FewAtHorizon => (
                "few_at_horizon",
                Weight::Reservation,
                format!("only {} patients of the {arm} arm are followed to the horizon", f.n_at_risk),
                earlier(),
            ),
            FollowUpVerdict::NotReached => (
                "few_at_horizon",
                Weight::Serious,
                format!("nobody of the {arm} arm is followed to the horizon"),
                earlier(),
            ),
        };
        let sides = if weight == Weight::Note { only(Estimand::Cure) } else { BOTH };
        reasons.push(Reason { code, sides, weight, words, remedy });
    }
}

fn events(audit: &Audit, reasons: &mut Vec<Reason>) {
    for f in audit.follow_up.iter().filter(|f| f.arm.is_some() && f.n_events < EVENTS[0]) {
        reasons.push(Reason {
            code: "few_events",
            sides: BOTH,
            weight: if f.n_events < EVENTS[1] { Weight::Serious } else { Weight::Reservation },
            words: format!("the {} arm has only {} events before the horizon", f.arm.map_or("", Arm::name), f.n_events),
            remedy: Remedy::action("choose a later horizon if follow-up reaches it, or collect more patients"),
        });
    }
}

/// What the imbalance that is left can do: with b_j the weight of covariate j in the metric (the size of its
/// coefficient on the standardised scale) and d_j the standardised difference, the linear predictor is off by at most
/// √Σ(b_j d_j)² where differences have no common direction; p(1 − p), or the mean event time, turns it into an effect.
fn balance(analysis: &Analysis, audit: &Audit, reasons: &mut Vec<Reason>) {
    let Some(b) = &audit.balance else { return };
    for side in Estimand::BOTH {
        let Some(se) = effect_of(audit, side).and_then(|a| a.se).filter(|se| *se > 0.0) else { continue };
        let weights = &analysis.fit.description.metrics[side].weights;
        let of = |c: &CovariateBalance| match (&c.average, side) {
            (Some(average), _) => average.difference,
            (None, Estimand::Cure) => c.cure.difference,
            (None, Estimand::Time) => c.time.difference,
        };
        let value = |estimand: &str| average(audit, estimand).and_then(|a| a.estimate);
        let scale = match side {
            Estimand::Cure => {
                let each = ["cure_treated", "cure_control"].map(|e| value(e).map_or(0.25, |p| p * (1.0 - p)));
                0.5 * (each[0] + each[1])
            }
            Estimand::Time => {
                let each = ["mean_event_time_treated", "mean_event_time_control"].map(|e| value(e).unwrap_or(0.0));
                0.5 * (each[0] + each[1])
            }
        };
        let moves: Vec<(f64, &CovariateBalance)> =
            b.covariates.iter().zip(weights).map(|(c, w)| (w * of(c) * scale / se, c)).collect();
        let all = moves.iter().map(|m| m.0 * m.0).sum::<f64>().sqrt();
        let Some(weight) = Weight::of(all, IMBALANCE) else { continue };
        let corrected = b.covariates.iter().any(|c| c.average.is_some());
        let weight = if corrected { Weight::Reservation } else { weight };
        let Some((_, worst)) = moves.iter().max_by(|x, y| x.0.abs().total_cmp(&y.0.abs())) else { continue };
        let place = match worst.average {
            Some(_) => "weighted as the averages weigh patients".to_string(),
            None => format!("in the groups matched for {}", side.name()),
        };
        let covariate = worst.covariate.split('=').next().unwrap_or(&worst.covariate);
        reasons.push(Reason {
            code: "unbalanced",
            sides: only(side),
            weight,
            words: format!(
                "the arms still differ, {place}, most in {} ({:.2} standard deviations): enough to move the average by {all:.1} standard errors",
                worst.covariate,
                of(worst).abs()
            ),
            remedy: Remedy::set(format!("match exactly on {covariate}"), Setting::Exact, covariate),
        });
    }
    let n = b.n_units;
    if n > 0 && b.alone.len() as f64 > MANY * n as f64 {
        reasons.push(Reason {
            code: "no_comparable",
            sides: BOTH,
            weight: Weight::Note,
            words: format!("{} of {n} patients have no comparable patient in the other arm", b.alone.len()),
            remedy: Remedy::action("read the effects of single patients with their distances"),
        });
    }
}

fn overlap(audit: &Audit, reasons: &mut Vec<Reason>) {
    let Some(o) = audit.balance.as_ref().and_then(|b| b.overlap.as_ref()) else { return };
    let Some(weight) = Weight::of(o.extreme_share, EXTREME) else { return };
    // Who is rarely like anybody of the other arm decides for whom an answer is possible.
    let [control, treated] = o.outside_share;
    let (who, label) = if treated <= control { ("treated", "treated") } else { ("control", "controls") };
    reasons.push(Reason {
        code: "no_overlap",
        sides: BOTH,
        weight,
        words: format!(
            "{:.0} % of patients had a chance of treatment below 5 % or above 95 %: the arms hardly overlap there",
            100.0 * o.extreme_share
        ),
        remedy: Remedy::action(format!(
            "report the average of the {label} (population `{who}`), or leave out patients whom only one arm has"
        )),
    });
}

fn form(audit: &Audit, reasons: &mut Vec<Reason>) {
    let Some(form) = &audit.form else { return };
    let found = form.found;
    for side in Estimand::BOTH {
        let (m, Some(se)) = (&form.moved[side], effect_of(audit, side).and_then(|a| a.se).filter(|se| *se > 0.0))
        else {
            continue;
        };
        let shift = m.by().abs() / se;
        let Some(weight) = Weight::of(shift, FORM) else { continue };
        let (scale, unit) = if side == Estimand::Cure { (100.0, " points") } else { (1.0, "") };
        let treatment = match found.is_flexible {
            true => format!(
                "who is treated follows covariates in a way that no straight line shows (pairs of patients told apart: {:.0} % by a line, {:.0} % by trees)",
                100.0 * found.auc[0],
                100.0 * found.auc[1]
            ),
            false => "outcomes depend on covariates in a way that the models had missed".to_string(),
        };
        reasons.push(Reason {
            code: "form",
            sides: only(side),
            weight,
            words: format!(
                "{treatment}: allowing for it moved the average from {:+.1}{unit} to {:+.1}{unit}, {shift:.1} standard errors, and some of it may be missed still",
                scale * m.plain,
                scale * m.estimate,
            ),
            remedy: Remedy::action(
                "find out how treatment was decided, and add what decided it to the table (a score, a threshold, a product)",
            ),
        });
    }
}

fn censoring(audit: &Audit, reasons: &mut Vec<Reason>) {
    let Some(d) = audit.dependence.as_ref().filter(|d| d.p < CENSORING_P) else { return };
    let Some(weight) = Weight::of(d.strength * d.share, CENSORING) else { return };
    let until = audit.follow_up.iter().filter_map(|f| f.first_tenth_lost).fold(f64::INFINITY, f64::min);
    reasons.push(Reason {
        code: "censoring",
        sides: BOTH,
        weight,
        words: format!(
            "who is censored before the horizon depends on covariates, most on {} (p = {:.0e}), and {:.0} % are: what covariates do not predict of it can bias averages",
            d.most,
            d.p.max(1e-300),
            100.0 * d.share
        ),
        remedy: match until.is_finite() {
            true => Remedy::set(
                format!("compare with a horizon of {until}, before which a tenth is censored"),
                Setting::Horizon,
                until,
            ),
            false => Remedy::action("compare with an earlier horizon"),
        },
    });
}

/// Members of a group differ from the patient they stand for; the models say what this does to the average.
fn matching_bias(audit: &Audit, reasons: &mut Vec<Reason>) {
    for side in Estimand::BOTH {
        let name = side.name();
        let (Some(plain), Some(corrected)) =
            (effect_of(audit, side), average(audit, &format!("{name}_effect_corrected")))
        else {
            continue;
        };
        let (Some(value), Some(bias), Some(se)) = (plain.estimate, corrected.bias.or(plain.bias), plain.se) else {
            continue;
        };
        let Some(after) = corrected.estimate else { continue };
        let excludes = |low: Option<f64>, high: Option<f64>| low.zip(high).is_some_and(|(l, h)| l > 0.0 || h < 0.0);
        let lost = excludes(plain.low, plain.high) && !excludes(corrected.low, corrected.high);
        let turns = value * after < 0.0;
        if turns || lost || bias.abs() > se {
            let tail = match () {
                () if turns => "; less that, the effect would change its sign",
                () if lost => "; less that, its interval would cover zero",
                () => "",
            };
            reasons.push(Reason {
                code: "matching_bias",
                sides: only(side),
                weight: if turns { Weight::Serious } else { Weight::Reservation },
                words: format!(
                    "the models expect that imperfect matches shift the average by {:.1} standard errors{tail}",
                    (bias / se).abs()
                ),
                remedy: Remedy::set("let a model correct the groups", Setting::Estimator, "adjusted"),
            });
        }
    }
}

fn splits(analysis: &Analysis, audit: &Audit, reasons: &mut Vec<Reason>) {
    for side in Estimand::BOTH {
        let Some(a) = effect_of(audit, side) else { continue };
        let (Some(sd), Some(se)) = (a.split_sd, a.se) else { continue };
        if sd > se {
            let splits = analysis.fit.folds().count();
            reasons.push(Reason {
                code: "splits",
                sides: only(side),
                weight: Weight::Reservation,
                words: "the average moves by more than its standard error with who trains the models".into(),
                remedy: Remedy::set("average over more splits", Setting::Splits, 4 * splits),
            });
        }
    }
}

fn flags(analysis: &Analysis, reasons: &mut Vec<Reason>) {
    let n = analysis.effects.len();
    let corrected = analysis.fit.is_corrected();
    for (flag, count) in analysis.flag_counts().into_iter().filter(|(_, c)| *c as f64 > MANY * n as f64) {
        let [cure, time] = Estimand::BOTH.map(only);
        let (code, sides) = match flag {
            Flag::CureCarriedForward(_) => ("many_carried_forward", cure),
            Flag::TimeCarriedForward(_) => ("many_carried_forward", time),
            Flag::NoEvent(_) => ("many_undefined", time),
            Flag::FewAtRisk(_) => ("many_few_at_risk", BOTH),
            Flag::NoTimeInterval(_) => ("many_without_interval", time),
        };
        // An average of groups alone leaves undefined patients out.
        let weight = if code == "many_undefined" && !corrected { Weight::Reservation } else { Weight::Note };
        reasons.push(Reason {
            code,
            sides,
            weight,
            words: format!("{count} of {n} patients: {}", flag.meaning()),
            remedy: match corrected {
                true => Remedy::action("read the effects of these patients with their flags"),
                false => Remedy::set("use larger groups", Setting::GroupSize, 2 * analysis.fit.options.group_size),
            },
        });
    }
}

fn models(analysis: &Analysis, reasons: &mut Vec<Reason>) {
    let corrected = analysis.fit.is_corrected();
    for arm in Arm::BOTH {
        if !analysis.fit.description.models[arm].certificate.converged {
            reasons.push(Reason {
                code: "model_not_certified",
                sides: BOTH,
                // The averages of a corrected run do not rest on the models that describe its arms.
                weight: if corrected { Weight::Note } else { Weight::Reservation },
                words: format!("the cure model of the {} arm has no certified optimum: weights rest on it", arm.name()),
                remedy: Remedy::action("merge rare levels of categories, and leave out columns that repeat each other"),
            });
        }
    }
}

fn confounder(audit: &Audit, reasons: &mut Vec<Reason>) {
    let Some(e) = audit.confounding.as_ref().map(|c| c.e_value_interval) else { return };
    if e > 1.0 && e < WEAK_CONFOUNDER {
        reasons.push(Reason {
            code: "weak_confounder",
            sides: only(Estimand::Cure),
            weight: Weight::Note,
            words: format!("an unmeasured confounder with risk ratios of only {e:.2} would move the interval to zero"),
            remedy: Remedy::action("name what was not measured, and say why it is weaker than that"),
        });
    }
}

/// The words of each effect.
pub fn words(verdict: &Verdict) -> ByEstimand<String> {
    ByEstimand::of(|side| verdict.support[side].words(side))
}
