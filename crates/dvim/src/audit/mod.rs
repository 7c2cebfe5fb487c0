//! What a reviewer asks of a run: average effects with intervals that hold, whether follow-up reaches the horizon,
//! whether the groups are comparable, and what it would take to overturn the conclusion.
//!
//! Every number rests on the groups that the estimates came from: one walk goes through them ([`passes`]), and what
//! is averaged, weighed or bounded is gathered on the way. Nothing here changes an estimate.

pub mod average;
pub mod balance;
pub mod baseline;
mod bytes;
mod calibrated;
pub mod everybody;
pub mod censored;
pub mod follow_up;
pub mod form;
mod weighted;
pub mod heterogeneity;
pub mod individual;
pub mod interaction;
mod known;
pub mod one_step;
pub mod passes;
pub mod sensitivity;
pub mod standardised;
pub mod verdict;

use crate::analysis::Analysis;
use crate::cohort::{Arm, Cohort};
use crate::curve::Grid;
use crate::error::Error;
use average::{AverageEffect, By, Populations};
use balance::Balance;
use censored::Dependence;
use follow_up::FollowUp;
use form::Form;
use heterogeneity::{Heterogeneity, Weighted};
use interaction::{Interaction, interactions};
use one_step::Scores;
use passes::{Gather, Group, Walk, part};
use sensitivity::{AlwaysUncured, AtHorizon, Censoring, Choice, Confounding};
use standardised::Standardised;

/// Everything.
///
/// ```
/// use dvim::{Audit, Options, Scenario, Unwatched, run, simulate};
///
/// let world = simulate(Scenario::BothOverlap, 1_000, false, 1);
/// let found = run(&world.cohort, &Options::default(), &Unwatched)?;
/// let audit = Audit::of(&world.cohort, &found, &[])?;
/// let average = audit.averages.iter().find(|a| a.estimand == "cure_effect" && a.population == "all");
/// assert!(average.is_some_and(|a| a.se.is_some()));
/// # Ok::<(), dvim::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// Whether it was asked for; if not, only what needs no group is there.
    pub asked: bool,
    /// The covariates that averages were asked for by.
    pub by: Vec<By>,
    /// What is not there, and why: a sentence for each.
    pub left_out: Vec<&'static str>,
    /// Average effects with intervals.
    pub averages: Vec<AverageEffect>,
    /// Follow-up of all, the treated, the control.
    pub follow_up: [FollowUp; 3],
    /// Balance and overlap; `None` under case weights.
    pub balance: Option<Balance>,
    /// Standardised survival curves of the arms; empty where the estimator gives none.
    pub curves: Vec<Standardised>,
    /// Effects over the horizon.
    pub horizons: Vec<AtHorizon>,
    /// Unmeasured confounding.
    pub confounding: Option<Confounding>,
    /// Informative censoring.
    pub censoring: Option<Censoring>,
    /// How censoring depends on covariates; `None` where that cannot be said.
    pub dependence: Option<Dependence>,
    /// What flexible models of treatment and residuals moved; `None` where the estimator has no residuals.
    pub form: Option<Form>,
    /// The always-uncured.
    pub always_uncured: Option<AlwaysUncured>,
    /// Other group sizes.
    pub group_sizes: Vec<Choice>,
    /// Other seeds: empty unless asked for ([`sensitivity::seeds`]).
    pub seeds: Vec<Choice>,
    /// Whether effects differ between patients.
    pub heterogeneity: Heterogeneity,
    /// Whether average effects differ between the subgroups that were asked for.
    pub interactions: Vec<Interaction>,
}

/// Why an audit of the adjusted estimator compares no group sizes.
pub const NO_SIZES_CHOSEN: &str =
    "group sizes are not compared, since each split chose its own (their losses are in summary.json)";
/// Why a run that did not ask for an audit has averages without standard errors.
pub const NOT_ASKED: &str = "the audit was not asked for, so there are no standard errors and intervals of averages, nor balance, heterogeneity and sensitivity";
/// Why an audit of a constrained run compares no group sizes.
pub const NO_SIZES: &str =
    "group sizes are not compared under constraints: another size would leave other patients without a group";

/// Why an audit of a cohort with weights, clusters, delayed entry or causes is short.
pub const NOT_YET_FURTHER: &str = "with case weights, clusters, delayed entry or other causes effects over the horizon, other group sizes, informative censoring and the always-uncured are left out, because their formulas do not take them yet";
/// Why an audit of such a cohort by the adjusted estimator has no bounds for informative censoring.
pub const NO_BOUNDS: &str = "with case weights, clusters, delayed entry or other causes bounds for informative censoring are left out, because their formula does not take them yet";
/// Why nothing is said of heterogeneity.
pub const NO_HETEROGENEITY: &str =
    "heterogeneity is left out under case weights and clusters, because its sums are by patient";
/// Why a large cohort's groups are not all looked through.
pub const A_SAMPLE: &str = "the cohort is large: the balance of groups, who has no comparable patient and the bounds for informative censoring are those of a sample of patients (averages and their intervals rest on everybody)";
/// What a run says whose cohort is a sample of the patients that its averages are over.
pub const A_SAMPLE_OF_ALL: &str = "patients outside the sample that was fitted are in the averages and the standardised curves, and in nothing else here";
/// Why balance is not said under case weights.
pub const NO_BALANCE: &str = "balance is left out under case weights, because its sums do not take them yet";

/// Share of the estimated units that were treated, by weight.
fn treated_share(cohort: &Cohort, analysis: &Analysis) -> f64 {
    let weigh = |i: &u32| cohort.weight(*i as usize);
    let treated = analysis.units.iter().filter(|i| cohort.arm(**i as usize) == Arm::Treated);
    treated.map(weigh).sum::<f64>() / analysis.units.iter().map(weigh).sum::<f64>().max(1.0)
}

impl Audit {
    /// Audits a run, with averages by these covariates too.
    pub fn of(cohort: &Cohort, analysis: &Analysis, by: &[By]) -> Result<Audit, Error> {
        let populations = Populations::new(cohort, &analysis.units, by)?;
        let walk = Walk::new(cohort, analysis);
        let audit = match Scores::of(cohort, analysis) {
            Some(scores) => Audit::of_corrected(&walk, &scores, &populations),
            None => Audit::of_walk(&walk, &populations),
        };
        Ok(Audit { interactions: interactions(&populations, &audit.averages), ..audit })
    }

    /// Averages without intervals and the follow-up of the cohort, for those who want effects alone.
    pub fn not_asked(cohort: &Cohort, analysis: &Analysis, by: &[By]) -> Result<Audit, Error> {
        let populations = Populations::new(cohort, &analysis.units, by)?;
        let (averages, rest) = rayon::join(
            || average::plain_averages(cohort, analysis, &populations),
            || Audit::without_groups(cohort, &populations, NOT_ASKED),
        );
        Ok(Audit { asked: false, averages, ..rest })
    }

    /// Audits corrected estimates: averages and heterogeneity by influence functions ([`one_step`]), the rest from the
    /// corrected curves; groups give their own balance and what is known of the censored.
    fn of_corrected(walk: &Walk<'_>, scores: &Scores<'_>, populations: &Populations) -> Audit {
        let (cohort, analysis) = (walk.cohort, walk.analysis);
        let mut averages = scores.averages(populations);
        let grid = Grid::of(cohort);
        let curves = scores.curves(populations, &grid, grid.times());
        averages.extend(scores.averages_of_curves(populations, &curves, &grid));
        let seen = walk.gather(|arm, side| OfGroups {
            counts: balance::Counts::new(walk, arm, side),
            known: sensitivity::Known::new(walk, side),
        });
        let effect = averages.iter().find(|a| a.estimand == "cure_effect").and_then(|a| a.estimate);
        let (plain, weighted) = (cohort.extras().is_empty(), cohort.extras().weight.is_some());
        let left_out =
            [(true, NO_SIZES_CHOSEN), (!plain, NO_BOUNDS), (weighted, NO_BALANCE), (walk.is_sample(), A_SAMPLE)];
        Audit {
            balance: (!weighted).then(|| {
                Balance::from_counts(walk, part(&seen, |s| &s.counts), Some(&|unit| scores.average_weight(unit)))
            }),
            horizons: scores.horizons(populations, &grid, &sensitivity::horizon_grid(cohort)),
            confounding: sensitivity::confounding(&averages, treated_share(cohort, analysis)),
            censoring: sensitivity::from_known(walk, part(&seen, |s| &s.known))
                .filter(|_| plain)
                .zip(effect)
                .map(|(c, effect)| c.around(effect)),
            always_uncured: curves.first().and_then(sensitivity::always_uncured_of_curves),
            heterogeneity: scores.heterogeneity(),
            dependence: Dependence::of(cohort),
            form: Some(Form::of(scores)),
            averages,
            curves,
            left_out: left_out.into_iter().filter(|(is, _)| *is).map(|(_, why)| why).collect(),
            ..Audit::without_groups(cohort, populations, NO_SIZES_CHOSEN)
        }
    }

    /// What can be said without going through the groups.
    fn without_groups(cohort: &Cohort, populations: &Populations, why: &'static str) -> Audit {
        Audit {
            asked: true,
            by: populations.by.clone(),
            left_out: vec![why],
            averages: Vec::new(),
            follow_up: FollowUp::of_all(cohort),
            balance: None,
            curves: Vec::new(),
            horizons: Vec::new(),
            confounding: None,
            censoring: None,
            dependence: None,
            form: None,
            always_uncured: None,
            group_sizes: Vec::new(),
            seeds: Vec::new(),
            interactions: Vec::new(),
            heterogeneity: Heterogeneity::default(),
        }
    }

    /// What is said where units differ in weight, are clustered, enter late or can have other events.
    fn of_further(walk: &Walk<'_>, populations: &Populations) -> Audit {
        let averages = weighted::averages(walk, populations);
        let weighted = walk.cohort.extras().weight.is_some();
        // By unit and not by weight: what heterogeneity sums up.
        let by_unit = !weighted && walk.cohort.extras().cluster.is_none();
        let left_out = [(true, NOT_YET_FURTHER), (!by_unit, NO_HETEROGENEITY), (weighted, NO_BALANCE)];
        let left_out = left_out.into_iter().filter(|(is, _)| *is).map(|(_, why)| why).collect();
        Audit {
            asked: true,
            by: populations.by.clone(),
            left_out,
            follow_up: FollowUp::of_all(walk.cohort),
            balance: (!weighted).then(|| Balance::of(walk)),
            curves: Vec::new(),
            horizons: Vec::new(),
            confounding: sensitivity::confounding(&averages, treated_share(walk.cohort, walk.analysis)),
            censoring: None,
            dependence: Dependence::of(walk.cohort),
            form: None,
            always_uncured: None,
            group_sizes: Vec::new(),
            seeds: Vec::new(),
            interactions: Vec::new(),
            heterogeneity: if by_unit { Heterogeneity::of_walk(walk) } else { Heterogeneity::default() },
            averages,
        }
    }

    /// The same from a walk that is already prepared.
    fn of_walk(walk: &Walk<'_>, populations: &Populations) -> Audit {
        if !walk.cohort.extras().is_empty() {
            return Audit::of_further(walk, populations);
        }
        let (cohort, analysis) = (walk.cohort, walk.analysis);
        let (asked, grid) = (Weighted::of(walk), sensitivity::horizon_grid(cohort));
        let seen = walk.gather(|arm, side| Everything {
            averages: average::Sums::new(walk, populations, arm, side),
            counts: balance::Counts::new(walk, arm, side),
            horizons: sensitivity::Horizons::new(walk, &grid, arm, side),
            jumps: sensitivity::Jumps::new(walk, arm, side),
            known: sensitivity::Known::new(walk, side),
            varies: heterogeneity::Sums::new(walk, &asked, arm, side),
        });
        let averages = average::from_sums(walk, populations, part(&seen, |s| &s.averages));
        Audit {
            asked: true,
            by: populations.by.clone(),
            left_out: if walk.is_constrained() { vec![NO_SIZES] } else { Vec::new() },
            follow_up: FollowUp::of_all(cohort),
            balance: Some(Balance::from_counts(walk, part(&seen, |s| &s.counts), None)),
            curves: Vec::new(),
            horizons: sensitivity::from_horizons(walk, part(&seen, |s| &s.horizons)),
            confounding: sensitivity::confounding(&averages, treated_share(cohort, analysis)),
            censoring: sensitivity::from_known(walk, part(&seen, |s| &s.known)),
            dependence: Dependence::of(cohort),
            form: None,
            always_uncured: sensitivity::from_jumps(walk, part(&seen, |s| &s.jumps)),
            group_sizes: sensitivity::group_sizes(walk),
            seeds: Vec::new(),
            interactions: Vec::new(),
            heterogeneity: Heterogeneity::from_sums(walk, &asked, part(&seen, |s| &s.varies)),
            averages,
        }
    }
}

/// What is summed over the groups of an adjusted run.
struct OfGroups {
    counts: balance::Counts,
    known: sensitivity::Known,
}

impl Gather for OfGroups {
    fn add(&mut self, group: &Group<'_>) {
        self.counts.add(group);
        self.known.add(group);
    }
}

/// All that is summed over groups, in one walk.
struct Everything<'a> {
    averages: average::Sums<'a>,
    counts: balance::Counts,
    horizons: sensitivity::Horizons<'a>,
    jumps: sensitivity::Jumps,
    known: sensitivity::Known,
    varies: heterogeneity::Sums<'a>,
}

impl Gather for Everything<'_> {
    fn add(&mut self, group: &Group<'_>) {
        self.averages.add(group);
        self.counts.add(group);
        self.horizons.add(group);
        self.jumps.add(group);
        self.known.add(group);
        self.varies.add(group);
    }
}
