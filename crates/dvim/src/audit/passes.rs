//! One walk through all match groups, in a fixed order, so that sums come out the same on any number of threads.

use super::known::Known;
use crate::analysis::Analysis;
use crate::arm::{Arm, ByArm};
use crate::cohort::Cohort;
use crate::cure::CureModel;
use crate::effect::Four;
use crate::estimand::{ByEstimand, Estimand};
use crate::ground::Ground;
use crate::group::{Pool, Room, are_equal, with_shares};
use crate::outcome::Outcome;
use crate::split::{Trained, hashed_sample};
use crate::survival::{Functional, Influence, Summary};
use std::borrow::Cow;

/// A group on the way past.
pub struct Group<'a> {
    /// Position of the unit in `analysis.units`.
    pub unit: usize,
    /// The members by their places in the order of time of the pool, ascending.
    pub ranks: &'a [u32],
    /// What each counts; empty where each counts once.
    pub shares: &'a [f64],
    /// Their outcomes.
    pub outcomes: &'a [(f64, bool)],
    /// The same with what they count, where they do not all count alike.
    pub weighted: &'a [Outcome],
    /// Their influences on the group's value at H, times [`unbiased`] and their case weights; empty where it is
    /// undefined.
    pub influence: &'a [f64],
    /// The distance to the nearest member that is not the unit itself; infinite where there is none.
    pub nearest: f64,
}

impl Group<'_> {
    /// The members with what each counts.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (u32, f64)> + '_ {
        with_shares(self.ranks, self.shares)
    }

    /// The places of the group: what its members count together.
    pub fn size(&self) -> f64 {
        if self.shares.is_empty() { self.ranks.len() as f64 } else { self.shares.iter().sum::<f64>().round() }
    }
}

/// Something that is summed over the groups of one arm and side.
pub trait Gather: Send {
    /// Takes one group; they come in the order of the units.
    fn add(&mut self, group: &Group<'_>);
}

/// The groups of all estimated units of a run, ready to be walked through.
pub struct Walk<'a> {
    /// The cohort.
    pub cohort: &'a Cohort,
    /// The run.
    pub analysis: &'a Analysis,
    /// What the groups are drawn from.
    pub(super) ground: Ground<'a>,
    /// The units whose groups are looked through, by their places in `analysis.units`; `None`: all.
    some: Option<Vec<usize>>,
}

impl<'a> Walk<'a> {
    /// Prepares the pools of a run.
    pub fn new(cohort: &'a Cohort, analysis: &'a Analysis) -> Walk<'a> {
        let ground = Ground::of_fit(&analysis.fit, cohort).expect("the run was made under its constraints");
        let options = &analysis.fit.options;
        let most = options.audited_units();
        let some = (analysis.units.len() > most).then(|| {
            let sample = hashed_sample(cohort, analysis.units.clone(), options.seed ^ 0x6175_6469, most);
            let mut sample = sample.into_iter().peekable();
            let is_there = |q: &usize| sample.next_if_eq(&analysis.units[*q]).is_some();
            (0..analysis.units.len()).filter(is_there).collect()
        });
        Walk { cohort, analysis, ground, some }
    }

    /// Whether the groups of a sample are looked through, and not those of all estimated units.
    pub(super) fn is_sample(&self) -> bool {
        self.some.is_some()
    }

    /// The units whose groups are looked through, by their places in `analysis.units`, ascending.
    pub(super) fn looked_at(&self) -> Vec<usize> {
        self.some.clone().unwrap_or_else(|| (0..self.analysis.units.len()).collect())
    }

    /// The units of each arm that groups are drawn from.
    pub fn pools(&self) -> &ByArm<Pool> {
        &self.ground.pools
    }

    /// What the units that groups are drawn from can know at most.
    pub(super) fn known(&self) -> ByArm<Known> {
        ByArm::of(|z| Known::of(self.cohort, self.pools()[z].units.iter().map(|&i| i as usize)))
    }

    /// The cure models, which trained on none of the estimated units.
    pub(super) fn models(&self) -> &'a ByArm<Trained<CureModel>> {
        self.analysis.fit.trained_models().expect("only groups that are not corrected are compared with the models")
    }

    /// Whether the run constrained its groups.
    pub fn is_constrained(&self) -> bool {
        !self.analysis.fit.options.constraints.is_empty()
    }

    /// Walks once through the groups of each estimand and arm, the four at the same time, with what `start` makes for
    /// each.
    pub fn gather<G: Gather>(&self, start: impl Fn(Arm, Estimand) -> G + Sync) -> Four<G> {
        self.each(|arm, side| {
            let mut into = start(arm, side);
            self.pass(arm, side, &mut into);
            into
        })
    }

    /// Shows all groups of one arm and side to `into`: those that the run kept, else found again.
    fn pass(&self, arm: Arm, side: Estimand, into: &mut impl Gather) {
        let (fit, units) = (&self.analysis.fit, &self.analysis.units);
        let (k, pool) = (fit.options.group_size, &self.pools()[arm]);
        let horizon = self.cohort.horizon();
        let (mut outcomes, mut influence) = (Vec::with_capacity(k), Vec::with_capacity(k));
        let mut whole = Influence::default();
        let mut show = |unit: usize, ranks: &[u32], shares: &[f64], nearest: f64| {
            outcomes.clear();
            outcomes.extend(ranks.iter().map(|&r| pool.by_time()[r as usize]));
            let curve = &self.analysis.effects[unit].groups[side][arm].curve;
            let of = match side {
                Estimand::Cure => Functional::Survival,
                Estimand::Time => Functional::MeanEventTime,
            };
            let scale = unbiased(curve, side, ranks.len());
            let mut weighted = Vec::new();
            match pool.outcomes() {
                // Where all of them count alike, what they count is of no importance.
                None if are_equal(shares) => {
                    Influence::fill_one(&mut influence, &outcomes, horizon, curve, of, scale);
                }
                _ => {
                    weighted = pool.shared_outcomes(ranks, shares);
                    whole.fill_outcomes(&weighted, horizon);
                    let values = match side {
                        Estimand::Cure => &whole.survival,
                        Estimand::Time => &whole.mean_event_time,
                    };
                    influence.clear();
                    influence.extend(values.iter().map(|v| scale * v));
                }
            }
            let (outcomes, weighted, influence) = (&outcomes, &weighted, &influence);
            into.add(&Group { unit, ranks, shares, outcomes, weighted, influence, nearest });
        };
        match &self.analysis.groups {
            Some(groups) => {
                let groups = &groups[side][arm];
                let mut room = Room::default();
                for (q, nearest) in groups.nearest.iter().enumerate() {
                    let (ranks, shares) = groups.members(q, &mut room);
                    show(q, ranks, shares, *nearest);
                }
            }
            None => {
                let units: Cow<'_, [u32]> = match &self.some {
                    None => units.into(),
                    Some(some) => some.iter().map(|&q| units[q]).collect(),
                };
                let show = |q: usize, ranks: &[u32], shares: &[f64], nearest: f64| {
                    show(self.some.as_ref().map_or(q, |some| some[q]), ranks, shares, nearest);
                };
                self.ground.each_group(fit, &units, (side, arm), show);
            }
        }
    }

    /// Calls `f` for each estimand and arm, the four at the same time.
    pub fn each<T: Send>(&self, f: impl Fn(Arm, Estimand) -> T + Sync) -> Four<T> {
        // The arms first: they take about the same time, the estimands do not.
        let ByArm { control, treated } = ByArm::join(|arm| ByEstimand::join(|estimand| f(arm, estimand)));
        control.zip(treated).map(|(control, treated)| ByArm { control, treated })
    }
}

/// Borrows one part of what was gathered for each estimand and arm.
pub fn part<G, T>(of: &Four<G>, f: impl Fn(&G) -> &T) -> Four<&T> {
    of.each_ref().map(|of_arms| of_arms.each_ref().map(&f))
}

/// The square root of m/(m − 1), m being the units (cure) or events (time) that a group's value is a mean of, by what
/// they are worth.
///
/// Influences are taken around the group's own estimate, which lies closer to its members than the truth does, so the
/// sum of their squares is too small by about that factor: for a share it is S(1 − S)/K where S(1 − S)/(K − 1) is
/// unbiased. A single group keeps Greenwood's form, which is what R prints; sums over many groups have the factor,
/// because with K = 50 it is worth half a point of coverage.
pub fn unbiased(summary: &Summary, side: Estimand, group_size: usize) -> f64 {
    let m = match side {
        Estimand::Cure => group_size as f64 * summary.worth,
        Estimand::Time => summary.n_events as f64 * summary.worth,
    };
    if m > 1.0 { (m / (m - 1.0)).sqrt() } else { 1.0 }
}
