//! One more walk through all match groups, in a fixed order, so that sums come out the same on any number of threads.

use crate::analysis::{Analysis, Fit};
use crate::cohort::{Arm, Cohort};
use crate::constraint::{ConstrainedMatcher, Queries, Rules};
use crate::effect::{Matcher, Pool};
use crate::matching::Points;
use crate::metric::Metric;
use crate::survival::Summary;
use std::sync::OnceLock;

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

/// Queries searched at a time where groups are too many to be kept.
const BLOCK: usize = 4096;
/// Members of groups kept from one walk to the next, at most: 12 bytes each.
const KEPT: usize = 16_000_000;

/// Finds groups as the run did: all units of a pool, or those that its constraints admit.
enum Search<'a> {
    Plain(Matcher<'a>),
    Constrained(Box<ConstrainedMatcher<'a>>),
}

impl Search<'_> {
    /// Members and squared distances of the `k` of each unit, one unit after the other.
    fn groups(&self, rows: &[f64], units: &[u32], placed: &Points, k: usize) -> (Vec<u32>, Vec<f64>) {
        match self {
            Search::Plain(matcher) => matcher.group(placed, k),
            Search::Constrained(matcher) => {
                let own: Vec<Option<u32>> = units.iter().copied().map(Some).collect();
                let (mut members, mut squared) = (Vec::new(), Vec::new());
                for group in matcher.groups(&Queries { covariates: rows, own: &own }, placed, k) {
                    let (m, d) = group.expect("a unit with an effect has its groups");
                    members.extend(m);
                    squared.extend(d);
                }
                (members, squared)
            }
        }
    }
}

/// Members of all groups, K after K, and their squared distances.
type Groups = (Vec<u32>, Vec<f64>);

/// The groups of all estimated units of a run of the paper's estimator, ready to be walked through again and again.
pub struct Walk<'a> {
    /// The cohort.
    pub cohort: &'a Cohort,
    /// The run.
    pub analysis: &'a Analysis,
    /// The units that groups are drawn from: control, treated.
    pub pools: [Pool; 2],
    /// What the run asked of its groups.
    rules: Option<Rules>,
    /// Groups found by an earlier walk, by arm and side.
    kept: [[OnceLock<Groups>; 2]; 2],
}

impl<'a> Walk<'a> {
    /// Prepares the pools of a run; `None` for the adjusted estimator, whose groups differ from fold to fold and whose
    /// estimates are not those of its groups.
    pub fn new(cohort: &'a Cohort, analysis: &'a Analysis) -> Option<Walk<'a>> {
        let constraints = &analysis.fit.options.constraints;
        let rules = || Rules::new(constraints, cohort).expect("the run was made under them");
        analysis.fit.cross_fit.is_none().then(|| Walk {
            cohort,
            analysis,
            pools: Arm::BOTH.map(|z| analysis.fit.pool(cohort, z)),
            rules: (!constraints.is_empty()).then(rules),
            kept: Default::default(),
        })
    }

    /// Whether the run constrained its groups.
    pub fn is_constrained(&self) -> bool {
        self.rules.is_some()
    }

    /// Visits the group of each estimated unit in one arm under one metric, in the order of the units: the position of
    /// the unit in `analysis.units`, the members (positions in the pool, nearest first) and their squared distances.
    pub fn groups(&self, arm: Arm, side: Side, mut visit: impl FnMut(usize, &[u32], &[f64])) {
        let (fit, units) = (&self.analysis.fit, &self.analysis.units);
        let k = fit.options.group_size;
        let (pool, metric) = (&self.pools[arm.index()], side.metric(fit));
        let matcher = || match &self.rules {
            None => Search::Plain(Matcher::new(pool, self.cohort, metric)),
            Some(rules) => Search::Constrained(Box::new(ConstrainedMatcher::new(pool, self.cohort, metric, rules))),
        };
        let find = |search: &Search<'_>, block: &[u32]| {
            let rows: Vec<f64> = block.iter().flat_map(|&i| self.cohort.covariates(i as usize)).copied().collect();
            search.groups(&rows, block, &metric.place(&rows), k)
        };
        if units.len() * k <= KEPT {
            let (members, squared) = self.kept[arm.index()][side as usize].get_or_init(|| find(&matcher(), units));
            for q in 0..units.len() {
                visit(q, &members[q * k..(q + 1) * k], &squared[q * k..(q + 1) * k]);
            }
            return;
        }
        let matcher = matcher();
        for (b, block) in units.chunks(BLOCK).enumerate() {
            let (members, squared) = find(&matcher, block);
            for q in 0..block.len() {
                visit(b * BLOCK + q, &members[q * k..(q + 1) * k], &squared[q * k..(q + 1) * k]);
            }
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

/// The square root of m/(m − 1), m being the units (cure) or events (time) that a group's value is a mean of.
///
/// Influences are taken around the group's own estimate, which lies closer to its members than the truth does, so the sum of
/// their squares is too small by about that factor: for a share it is S(1 − S)/K where S(1 − S)/(K − 1) is unbiased. A single group
/// keeps Greenwood's form, which is what R prints; sums over many groups have the factor, because with K = 50 it is worth half a
/// point of coverage.
pub fn unbiased(summary: &Summary, side: Side, group_size: usize) -> f64 {
    let m = match side {
        Side::Cure => group_size,
        Side::Time => summary.n_events,
    };
    if m > 1 { (m as f64 / (m as f64 - 1.0)).sqrt() } else { 1.0 }
}
