//! Constraints on who may be in a group: exactly the same level, no farther than a caliper, not the
//! unit itself. A unit that has fewer than K candidates under them is not served: it gets no effect,
//! and how many candidates it had is said. A constraint is never relaxed.

use crate::arm::{Arm, ByArm};
use crate::cohort::Cohort;
use crate::error::{Problem, ProblemKind};
use crate::phrase;
use crate::schema::{Covariate, Kind};
use crate::setting::Setting;

/// What is asked of every group. The default asks nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constraints {
    /// Covariates on which every member of a group must agree with the unit.
    pub exact: Vec<String>,
    /// How far a member may be from the unit in one covariate.
    pub calipers: Vec<Caliper>,
    /// Whether a unit is kept out of its own group.
    pub exclude_self: bool,
}

/// The largest difference allowed in one numeric covariate.
#[derive(Clone, Debug, PartialEq)]
pub struct Caliper {
    /// The covariate.
    pub covariate: String,
    /// The largest difference, included.
    pub width: f64,
    /// Whether `width` is in standard deviations over the cohort rather than in the covariate's own unit.
    pub in_sd: bool,
}

impl Constraints {
    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        *self == Constraints::default()
    }
}

/// A unit that cannot be served: fewer candidates than K in an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unserved {
    /// Candidates of each arm that satisfy the constraints.
    pub candidates: ByArm<usize>,
    /// K.
    pub group_size: usize,
}

impl Unserved {
    /// The flag of an arm that has too few candidates.
    pub fn flag(arm: Arm) -> &'static str {
        match arm {
            Arm::Treated => "too_few_candidates_treated",
            Arm::Control => "too_few_candidates_control",
        }
    }

    /// Arms that have too few.
    pub fn arms(&self) -> impl Iterator<Item = Arm> + '_ {
        [Arm::Treated, Arm::Control].into_iter().filter(|z| self.candidates[*z] < self.group_size)
    }
}

/// Constraints in terms of a cohort's columns of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// Columns that must agree.
    exact: Vec<usize>,
    /// Columns with their largest difference, in recorded units.
    calipers: Vec<(usize, f64)>,
    /// The cluster of each unit, where nobody of the unit's own cluster may be in its group.
    clusters: Option<Vec<u32>>,
}

impl Rules {
    /// What the constraints mean for a cohort, or what is wrong with them.
    pub fn new(constraints: &Constraints, cohort: &Cohort) -> Result<Rules, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut rules = Rules::default();
        let mut find = |name: &str, setting: Setting| -> Option<&Covariate> {
            let found = cohort.schema().iter().find(|c| c.name == name && c.kind != Kind::Missing);
            if found.is_none() {
                let near = crate::error::nearest_names(name, cohort.schema().iter().map(|c| c.name.as_str()));
                let remedy = if near.is_empty() {
                    "name a covariate".to_string()
                } else {
                    format!("did you mean `{}`?", near.join("` or `"))
                };
                problems.push(
                    Problem::error(
                        ProblemKind::BadConstraint,
                        phrase![setting, " names it, and it is no covariate"],
                        "constraints are on covariates",
                        remedy,
                    )
                    .column(name),
                );
            }
            found
        };
        for name in &constraints.exact {
            if let Some(c) = find(name, Setting::Exact) {
                rules.exact.extend(c.columns());
            }
        }
        let mut bad = Vec::new();
        for caliper in &constraints.calipers {
            let Some(c) = find(&caliper.covariate, Setting::Caliper) else { continue };
            if c.kind != Kind::Number {
                bad.push(
                    Problem::error(
                        ProblemKind::BadConstraint,
                        "a caliper is asked for, and it is a category",
                        "a caliper is the largest difference of a number",
                        phrase!["use ", Setting::Exact.to(c.name.as_str())],
                    )
                    .column(&c.name),
                );
                continue;
            }
            if !(caliper.width >= 0.0 && caliper.width.is_finite()) {
                bad.push(
                    Problem::error(
                        ProblemKind::BadConstraint,
                        format!("its caliper is {}", caliper.width),
                        "a caliper is a finite difference, zero or more",
                        phrase![
                            "write ",
                            Setting::Caliper.to((c.name.as_str(), 5)),
                            " or ",
                            Setting::Caliper.to((c.name.as_str(), "0.2sd"))
                        ],
                    )
                    .column(&c.name),
                );
                continue;
            }
            let unit = if caliper.in_sd { standard_deviation(cohort, c.first) } else { 1.0 };
            rules.calipers.push((c.first, caliper.width * unit));
        }
        // A value that was filled in is not known to be near: only other gaps are like it.
        let named = |c: &&Covariate| {
            c.kind == Kind::Missing
                && (constraints.exact.contains(&c.name) || constraints.calipers.iter().any(|k| k.covariate == c.name))
        };
        rules.exact.extend(cohort.schema().iter().filter(named).map(|c| c.first));
        problems.extend(bad);
        if problems.is_empty() { Ok(rules) } else { Err(problems) }
    }

    /// Whether a unit with covariates `y` may be in the group of one with `x`.
    pub fn admit(&self, x: &[f64], y: &[f64]) -> bool {
        self.exact.iter().all(|&j| x[j] == y[j]) && self.calipers.iter().all(|&(j, width)| (x[j] - y[j]).abs() <= width)
    }

    /// Keeps out of each group the cluster of its unit; `clusters` has that of every unit of the cohort.
    pub(crate) fn without_own_cluster(self, clusters: Option<&Vec<u32>>) -> Rules {
        Rules { clusters: clusters.cloned(), ..self }
    }

    /// The clusters of all units, where the unit's own is kept out of its group.
    pub(crate) fn clusters(&self) -> Option<&[u32]> {
        self.clusters.as_deref()
    }

    /// Whether there is a largest difference in some covariate.
    pub(crate) fn has_calipers(&self) -> bool {
        !self.calipers.is_empty()
    }

    /// Whether covariates decide who may be in a group.
    pub(crate) fn has_covariates(&self) -> bool {
        !self.exact.is_empty() || !self.calipers.is_empty()
    }

    /// Whether every unit may be in every group.
    pub fn is_empty(&self) -> bool {
        *self == Rules::default()
    }

    /// The values of a unit that every member of its group must share.
    pub(crate) fn stratum(&self, x: &[f64]) -> Vec<u64> {
        // Zero and minus zero are one value.
        self.exact.iter().map(|&j| (x[j] + 0.0).to_bits()).collect()
    }
}

fn standard_deviation(cohort: &Cohort, column: usize) -> f64 {
    let n = cohort.n_units() as f64;
    let values = || (0..cohort.n_units()).map(|i| cohort.covariates(i)[column]);
    let mean = values().sum::<f64>() / n;
    (values().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0)).sqrt()
}
