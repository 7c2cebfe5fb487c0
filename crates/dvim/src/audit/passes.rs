//! One walk through all match groups, in a fixed order, so that sums come out the same on any number of threads.

use crate::adjusted;
use crate::analysis::{Analysis, Fit, rows_of};
use crate::cohort::{Arm, Cohort};
use crate::constraint::{Rules, Searched};
use crate::effect::{Groups, Pool};
use crate::metric::Metric;
use crate::survival::{Functional, Influence, Summary};

/// The two estimands, each with a metric and groups of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Groups matched for cure; their value is Ŝ(H).
    Cure,
    /// Groups matched for time; their value is CMET(H).
    Time,
}

impl Side {
    /// Both.
    pub const BOTH: [Side; 2] = [Side::Cure, Side::Time];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Side::Cure => "cure",
            Side::Time => "time",
        }
    }

    /// The metric of a fit that it is matched under.
    pub fn metric(self, fit: &Fit) -> &Metric {
        match self {
            Side::Cure => &fit.metrics.cure,
            Side::Time => &fit.metrics.time,
        }
    }
}

/// Units searched at a time where the run kept no groups.
const BLOCK: usize = 16_384;

/// A group on the way past.
pub struct Group<'a> {
    /// Position of the unit in `analysis.units`.
    pub unit: usize,
    /// The members by their places in the order of time of the pool, ascending.
    pub ranks: &'a [u32],
    /// Their outcomes.
    pub outcomes: &'a [(f64, bool)],
    /// Their influences on the group's value at H, times [`unbiased`] and their case weights; empty where it is undefined.
    pub influence: &'a [f64],
    /// The distance to the nearest member that is not the unit itself; infinite where there is none.
    pub nearest: f64,
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
    /// The units that groups are drawn from: control, treated.
    pub pools: [Pool; 2],
    /// What the run asked of its groups.
    rules: Option<Rules>,
}

impl<'a> Walk<'a> {
    /// Prepares the pools of a run; `None` for the adjusted estimator, whose estimates are not those of its groups.
    pub fn new(cohort: &'a Cohort, analysis: &'a Analysis) -> Option<Walk<'a>> {
        let fit = &analysis.fit;
        fit.cross_fit.is_none().then(|| Walk {
            cohort,
            analysis,
            pools: fit.pools(cohort),
            rules: fit.rules(cohort).expect("the run was made under them"),
        })
    }

    /// Prepares the pools of a run of the adjusted estimator: what is gathered is of its groups alone, before the correction.
    pub fn of_groups_alone(cohort: &'a Cohort, analysis: &'a Analysis) -> Walk<'a> {
        let rules = analysis.fit.rules(cohort).expect("the run was made under them");
        Walk { cohort, analysis, pools: analysis.fit.pools(cohort), rules }
    }

    /// Whether the run constrained its groups.
    pub fn is_constrained(&self) -> bool {
        self.rules.is_some()
    }

    /// Walks once through the groups of each arm and side, the four at the same time, with what `start` makes for each.
    /// Answers stand as control cure, control time, treated cure, treated time.
    pub fn gather<G: Gather>(&self, start: impl Fn(Arm, Side) -> G + Sync) -> [[G; 2]; 2] {
        self.each(|arm, side| {
            let mut into = start(arm, side);
            self.pass(arm, side, &mut into);
            into
        })
    }

    /// Shows all groups of one arm and side to `into`: those that the run kept, else found again.
    fn pass(&self, arm: Arm, side: Side, into: &mut impl Gather) {
        let (fit, units) = (&self.analysis.fit, &self.analysis.units);
        let (k, pool) = (fit.options.group_size, &self.pools[arm.index()]);
        let horizon = self.cohort.horizon();
        let (mut outcomes, mut influence) = (Vec::with_capacity(k), Vec::with_capacity(k));
        let mut further = Influence::default();
        let mut show = |unit: usize, ranks: &[u32], nearest: f64| {
            outcomes.clear();
            outcomes.extend(ranks.iter().map(|&r| pool.by_time()[r as usize]));
            let estimate = self.analysis.effects[unit].arm(arm);
            let (curve, of) = match side {
                Side::Cure => (&estimate.cure.curve, Functional::Survival),
                Side::Time => (&estimate.time.curve, Functional::MeanEventTime),
            };
            let scale = unbiased(curve, side, ranks.len());
            match pool.outcomes() {
                None => Influence::fill_one(&mut influence, &outcomes, horizon, curve, of, scale),
                Some(all) => {
                    let group: Vec<_> = ranks.iter().map(|&r| all[r as usize]).collect();
                    further.fill_outcomes(&group, horizon);
                    let values = match side {
                        Side::Cure => &further.survival,
                        Side::Time => &further.mean_event_time,
                    };
                    influence.clear();
                    influence.extend(values.iter().map(|v| scale * v));
                }
            }
            into.add(&Group { unit, ranks, outcomes: &outcomes, influence: &influence, nearest });
        };
        if let Some(cross_fit) = &fit.cross_fit {
            let rules = self.rules.as_ref();
            adjusted::each_group(self.cohort, cross_fit, rules, pool, (side as usize, arm), units, show);
            return;
        }
        let mut show_all = |first: usize, groups: &Groups| {
            for (q, nearest) in groups.nearest.iter().enumerate() {
                show(first + q, &groups.ranks[q * k..(q + 1) * k], *nearest);
            }
        };
        if let Some(groups) = &self.analysis.groups {
            show_all(0, &groups[arm.index()][side as usize]);
            return;
        }
        let metric = side.metric(fit);
        let search = Searched::new(pool, self.cohort, metric, self.rules.as_ref());
        for (b, block) in units.chunks(BLOCK).enumerate() {
            let rows = rows_of(self.cohort, block);
            let own: Vec<Option<u32>> = block.iter().copied().map(Some).collect();
            show_all(b * BLOCK, &search.estimate(&rows, &own, &metric.place(&rows), k, true).1);
        }
    }

    /// Calls `f` for each arm and side, the four at the same time; in the order control cure, control time,
    /// treated cure, treated time.
    pub fn each<T: Send>(&self, f: impl Fn(Arm, Side) -> T + Sync) -> [[T; 2]; 2] {
        let of_arm = |z: Arm| {
            let (a, b) = rayon::join(|| f(z, Side::Cure), || f(z, Side::Time));
            [a, b]
        };
        let (control, treated) = rayon::join(|| of_arm(Arm::Control), || of_arm(Arm::Treated));
        [control, treated]
    }
}

/// Borrows one part of what was gathered for each arm and side.
pub fn part<G, T>(of: &[[G; 2]; 2], f: impl Fn(&G) -> &T) -> [[&T; 2]; 2] {
    of.each_ref().map(|of_arm| of_arm.each_ref().map(&f))
}

/// The square root of m/(m − 1), m being the units (cure) or events (time) that a group's value is a mean of, by what they are worth.
///
/// Influences are taken around the group's own estimate, which lies closer to its members than the truth does, so the sum of
/// their squares is too small by about that factor: for a share it is S(1 − S)/K where S(1 − S)/(K − 1) is unbiased. A single group
/// keeps Greenwood's form, which is what R prints; sums over many groups have the factor, because with K = 50 it is worth half a
/// point of coverage.
pub fn unbiased(summary: &Summary, side: Side, group_size: usize) -> f64 {
    let m = match side {
        Side::Cure => group_size as f64 * summary.worth,
        Side::Time => summary.n_events as f64 * summary.worth,
    };
    if m > 1.0 { (m / (m - 1.0)).sqrt() } else { 1.0 }
}
