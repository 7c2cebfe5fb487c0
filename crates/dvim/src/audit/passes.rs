//! One more walk through all match groups, in a fixed order, so that sums come out the same on any number of threads.

use crate::analysis::Fit;
use crate::cohort::{Arm, Cohort};
use crate::effect::{Matcher, Pool};
use crate::metric::Metric;

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

/// Queries searched at a time: their groups are kept until they have been visited.
const BLOCK: usize = 4096;

/// The pools of both arms, ready to be walked.
pub struct Walk<'a> {
    cohort: &'a Cohort,
    fit: &'a Fit,
    /// Control, treated.
    pub pools: [Pool; 2],
}

impl<'a> Walk<'a> {
    /// Prepares the pools of a fit.
    pub fn new(cohort: &'a Cohort, fit: &'a Fit) -> Walk<'a> {
        Walk { cohort, fit, pools: Arm::BOTH.map(|z| fit.pool(cohort, z)) }
    }

    /// Visits the group of each unit in one arm under one metric, in the order of the units: the position of the
    /// unit in `units`, the members (positions in the pool, nearest first) and their squared distances.
    pub fn groups(&self, units: &[u32], arm: Arm, side: Side, k: usize, mut visit: impl FnMut(usize, &[u32], &[f64])) {
        let metric = side.metric(self.fit);
        let matcher = Matcher::new(&self.pools[arm.index()], self.cohort, metric);
        for (b, block) in units.chunks(BLOCK).enumerate() {
            let rows: Vec<f64> =
                block.iter().flat_map(|&i| self.cohort.covariates(i as usize)).copied().collect();
            let (members, squared) = matcher.group(&metric.place(&rows), k);
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
