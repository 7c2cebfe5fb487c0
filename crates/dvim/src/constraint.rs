//! Constraints on who may be in a group: exactly the same level, no farther than a caliper, not the
//! unit itself. A unit that has fewer than K candidates under them is not served: it gets no effect,
//! and how many candidates it had is said. A constraint is never relaxed.

use crate::cohort::{Arm, Cohort};
use crate::effect::{GroupEstimate, Groups, Matcher, Pool, Scratch};
use crate::error::{Problem, ProblemKind};
use crate::matching::{Index, Points, scan};
use crate::metric::Metric;
use crate::phrase;
use crate::schema::{Covariate, Kind};
use crate::setting::Setting;
use rayon::prelude::*;
use std::collections::HashMap;

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
    /// Candidates that satisfy the constraints: control, treated.
    pub candidates: [usize; 2],
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
        [Arm::Treated, Arm::Control].into_iter().filter(|z| self.candidates[z.index()] < self.group_size)
    }
}

/// Constraints in terms of a cohort's columns of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// Columns that must agree.
    exact: Vec<usize>,
    /// Columns with their largest difference, in recorded units.
    calipers: Vec<(usize, f64)>,
    exclude_self: bool,
}

impl Rules {
    /// The same, and a unit is kept out of its own group.
    pub fn without_self(mut self) -> Rules {
        self.exclude_self = true;
        self
    }

    /// What the constraints mean for a cohort, or what is wrong with them.
    pub fn new(constraints: &Constraints, cohort: &Cohort) -> Result<Rules, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut rules = Rules { exclude_self: constraints.exclude_self, ..Rules::default() };
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

    fn stratum(&self, x: &[f64]) -> Vec<u64> {
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

/// Units that ask for groups: covariates as recorded, row-major, and the position in the cohort of each that is in it.
pub struct Queries<'a> {
    /// Covariates.
    pub covariates: &'a [f64],
    /// Position in the cohort, for those that are in it.
    pub own: &'a [Option<u32>],
}

/// Members of a group as positions in the pool with their squared distances, nearest first; or the number of candidates
/// where they are fewer than K.
pub type Group = Result<(Vec<u32>, Vec<f64>), usize>;

/// One arm under one metric and constraints: a search for each stratum.
pub struct ConstrainedMatcher<'a> {
    rules: &'a Rules,
    pool: &'a Pool,
    width: usize,
    /// Covariates of the pool, as recorded.
    recorded: Vec<f64>,
    points: Points,
    strata: HashMap<Vec<u64>, Stratum>,
}

/// One arm under one metric, ready to be searched: all units of the pool, or those that constraints admit.
pub(crate) enum Searched<'a> {
    Freely(Matcher<'a>),
    UnderRules(Box<ConstrainedMatcher<'a>>),
}

impl<'a> Searched<'a> {
    pub(crate) fn new(pool: &'a Pool, cohort: &Cohort, metric: &Metric, rules: Option<&'a Rules>) -> Searched<'a> {
        match rules {
            None => Searched::Freely(Matcher::new(pool, cohort, metric)),
            Some(rules) => Searched::UnderRules(Box::new(ConstrainedMatcher::new(pool, cohort, metric, rules))),
        }
    }

    /// What the group of each unit gives, or the number of candidates where they are fewer than K; and, where `keep` asks
    /// for them, the groups.
    pub(crate) fn estimate(
        &self,
        rows: &[f64],
        own: &[Option<u32>],
        placed: &Points,
        k: usize,
        keep: bool,
    ) -> (Vec<Result<GroupEstimate, usize>>, Groups) {
        match self {
            Searched::Freely(matcher) => {
                let mut estimates = vec![GroupEstimate::NOTHING; placed.len()];
                let mut places: Vec<&mut GroupEstimate> = estimates.iter_mut().collect();
                let (groups, _) = matcher.estimate_into(placed, own, k, keep, None, &mut places);
                (estimates.into_iter().map(Ok).collect(), groups)
            }
            Searched::UnderRules(matcher) => matcher.estimate_keeping(&Queries { covariates: rows, own }, placed, k),
        }
    }

    /// Applies `f(scratch, members, squared distances)` to the `k` nearest of each unit, the unit itself left out; under constraints to as
    /// many as there are, down to `fewest`. The number of candidates where they are fewer.
    pub(crate) fn map_others<T: Send>(
        &self,
        queries: &Queries<'_>,
        placed: &Points,
        k: usize,
        fewest: usize,
        f: impl Fn(&mut Vec<u32>, &[u32], &[f64]) -> T + Sync + Send,
    ) -> Vec<Result<T, usize>> {
        match self {
            Searched::Freely(matcher) => {
                let pool = matcher.pool();
                matcher.map(placed, (k + 1).min(pool.len()), |scratch, query, members, squared| {
                    let Scratch { members: kept, distances, ranks } = scratch;
                    kept.clear();
                    distances.clear();
                    let own = queries.own[query];
                    let others = members.iter().zip(squared).filter(|(m, _)| Some(pool.units[**m as usize]) != own);
                    for (&m, &d) in others.take(k) {
                        kept.push(m);
                        distances.push(d);
                    }
                    Ok(f(ranks, kept, distances))
                })
            }
            Searched::UnderRules(matcher) => {
                let groups = matcher.groups_up_to(queries, placed, k);
                let answer = |ranks: &mut Vec<u32>, (members, squared): (Vec<u32>, Vec<f64>)| {
                    if members.len() < fewest { Err(members.len()) } else { Ok(f(ranks, &members, &squared)) }
                };
                groups.into_par_iter().map_init(Vec::new, answer).collect()
            }
        }
    }

    /// The groups of [`Searched::map_others`] for those who do not ask in which order the members are: `f(what the group gives, places of
    /// its members in the order of time, ascending)`. `hints` as in [`crate::matching::Hints::squared`].
    pub(crate) fn map_other_groups<T: Send>(
        &self,
        queries: &Queries<'_>,
        placed: &Points,
        k: usize,
        fewest: usize,
        hints: Option<&[f64]>,
        f: impl Fn(GroupEstimate, &[u32]) -> T + Sync + Send,
    ) -> Vec<Result<T, usize>> {
        let pool = match self {
            Searched::Freely(matcher) => matcher.pool(),
            Searched::UnderRules(matcher) => matcher.pool,
        };
        let ranked = |ranks: &mut Vec<u32>, members: &[u32], squared: &[f64]| {
            let group = pool.estimate(members, squared, ranks);
            f(group, ranks)
        };
        let Searched::Freely(matcher) = self else { return self.map_others(queries, placed, k, fewest, ranked) };
        // A unit of the pool is its own nearest: it is found with K others, and left out.
        let position = |q: usize| queries.own[q].and_then(|i| pool.units.binary_search(&i).ok());
        let (mut inside, mut outside, mut own) = (Vec::new(), Vec::new(), Vec::new());
        for q in 0..placed.len() {
            match position(q) {
                Some(m) => {
                    inside.push(q);
                    own.push(m as u32);
                }
                None => outside.push(q),
            }
        }
        let some = |which: &[usize]| Points {
            dim: placed.dim,
            coords: which.iter().flat_map(|&q| placed.point(q)).copied().collect(),
        };
        let mut out: Vec<Option<T>> = (0..placed.len()).map(|_| None).collect();
        let of = |which: &[usize]| hints.map(|hints| which.iter().map(|&q| hints[q]).collect::<Vec<f64>>());
        let others = matcher.map_groups(&some(&outside), k.min(pool.len()), None, of(&outside).as_deref(), &f);
        outside.iter().zip(others).for_each(|(&q, found)| out[q] = found);
        let with_own = (k + 1).min(pool.len());
        let found = matcher.map_groups(&some(&inside), with_own, Some(&own), of(&inside).as_deref(), &f);
        inside.iter().zip(found).for_each(|(&q, found)| out[q] = found);
        // K others in the same place, and earlier, may have crowded a unit out: then one of them is too many.
        let left: Vec<usize> = (0..out.len()).filter(|&q| out[q].is_none()).collect();
        let crowded = matcher.map(&some(&left), with_own, |scratch, _, members, squared| {
            let n = members.len().min(k);
            ranked(&mut scratch.ranks, &members[..n], &squared[..n])
        });
        left.iter().zip(crowded).for_each(|(&q, found)| out[q] = Some(found));
        out.into_iter().map(|found| Ok(found.expect("each unit has been answered"))).collect()
    }
}

/// The units of a pool that agree on the exact covariates.
struct Stratum {
    /// Positions in the pool, ascending: ties in distance go by id.
    members: Vec<u32>,
    index: Option<Index<'static>>,
}

impl<'a> ConstrainedMatcher<'a> {
    /// Sorts a pool into strata.
    pub fn new(pool: &'a Pool, cohort: &Cohort, metric: &Metric, rules: &'a Rules) -> ConstrainedMatcher<'a> {
        let recorded = pool.covariates(cohort);
        let width = cohort.n_covariates();
        let points = metric.place(&recorded);
        let mut strata: HashMap<Vec<u64>, Stratum> = HashMap::new();
        for (m, x) in recorded.chunks_exact(width).enumerate() {
            let stratum =
                strata.entry(rules.stratum(x)).or_insert_with(|| Stratum { members: Vec::new(), index: None });
            stratum.members.push(m as u32);
        }
        if rules.calipers.is_empty() {
            strata.values_mut().for_each(|s| s.index = Some(Index::build(&subset(&points, &s.members))));
        }
        ConstrainedMatcher { rules, pool, width, recorded, points, strata }
    }

    /// The group of each query, whose places under the metric are `placed`.
    pub fn groups(&self, queries: &Queries<'_>, placed: &Points, k: usize) -> Vec<Group> {
        let one = |q: usize| {
            let x = &queries.covariates[q * self.width..(q + 1) * self.width];
            let own =
                queries.own[q].filter(|_| self.rules.exclude_self).and_then(|u| self.pool.units.binary_search(&u).ok());
            let Some(stratum) = self.strata.get(&self.rules.stratum(x)) else { return Err(0) };
            let query = Points { dim: placed.dim, coords: placed.point(q).to_vec() };
            match &stratum.index {
                Some(index) => {
                    // The unit itself is among the K + 1 nearest, or K others are nearer by (distance, id).
                    let own = own.map(|m| m as u32).filter(|m| stratum.members.binary_search(m).is_ok());
                    let available = stratum.members.len() - usize::from(own.is_some());
                    if available < k {
                        return Err(available);
                    }
                    let found = index.nearest(&query, k + usize::from(own.is_some()));
                    let pairs = found.index.iter().map(|&i| stratum.members[i as usize]).zip(found.squared_distance);
                    Ok(pairs.filter(|(m, _)| Some(*m) != own).take(k).unzip())
                }
                None => {
                    let admitted = |m: &u32| {
                        let m = *m as usize;
                        Some(m) != own && self.rules.admit(x, &self.recorded[m * self.width..(m + 1) * self.width])
                    };
                    let members: Vec<u32> = stratum.members.iter().copied().filter(admitted).collect();
                    if members.len() < k {
                        return Err(members.len());
                    }
                    let found = scan(&subset(&self.points, &members), &query, k);
                    Ok((found.index.iter().map(|&i| members[i as usize]).collect(), found.squared_distance))
                }
            }
        };
        (0..queries.own.len()).into_par_iter().map(one).collect()
    }

    /// The same, of as many as there are where they are fewer than K.
    pub fn groups_up_to(&self, queries: &Queries<'_>, placed: &Points, k: usize) -> Vec<(Vec<u32>, Vec<f64>)> {
        let one = |(q, group): (usize, Group)| {
            group.unwrap_or_else(|available| {
                let (x, own) = (&queries.covariates[q * self.width..(q + 1) * self.width], &queries.own[q..q + 1]);
                let placed = Points { dim: placed.dim, coords: placed.point(q).to_vec() };
                let again = self.groups(&Queries { covariates: x, own }, &placed, available).swap_remove(0);
                again.unwrap_or_default()
            })
        };
        self.groups(queries, placed, k).into_iter().enumerate().map(one).collect()
    }

    /// What each group gives, or the number of candidates where they are fewer than K; and the groups, of which those of
    /// such units mean nothing.
    pub fn estimate_keeping(
        &self,
        queries: &Queries<'_>,
        placed: &Points,
        k: usize,
    ) -> (Vec<Result<GroupEstimate, usize>>, Groups) {
        let n = queries.own.len();
        let mut kept = Groups { ranks: vec![0; n * k], nearest: vec![f64::INFINITY; n] };
        let rows = kept.ranks.par_chunks_mut(k.max(1)).zip(&mut kept.nearest).zip(queries.own);
        let estimates = self.groups(queries, placed, k).into_par_iter().zip(rows).map_init(
            Vec::new,
            |scratch, (group, ((ranks, nearest), own))| {
                group.map(|(members, squared)| {
                    let estimate = self.pool.estimate(&members, &squared, scratch);
                    ranks.copy_from_slice(scratch);
                    *nearest = self.pool.nearest_other(&members, &squared, *own);
                    estimate
                })
            },
        );
        (estimates.collect(), kept)
    }
}

fn subset(points: &Points, members: &[u32]) -> Points {
    Points { dim: points.dim, coords: members.iter().flat_map(|&m| points.point(m as usize)).copied().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As sets, groups have the members and the diameter that they have ranked: of units in the pool and of others, also where more
    /// than K units are in one place and a unit is not among its own nearest.
    #[test]
    fn sets_are_the_ranked_groups() {
        let (n, k) = (600, 7);
        let coordinate = |i: usize, j: usize| {
            if i.is_multiple_of(3) {
                0.25
            } else {
                ((i * 7_919 + j * 104_729 + i * i * (j + 1)) % 1_009) as f64 / 504.0
            }
        };
        let place = |i: usize| [coordinate(i, 0), coordinate(i, 1), coordinate(i, 2)];
        let points = Points { dim: 3, coords: (0..n).flat_map(place).collect() };
        let outcomes: Vec<(f64, bool)> = (0..n).map(|i| (1.0 + ((i * 31) % n) as f64, i % 2 == 0)).collect();
        // The units of the pool are the even ones of the cohort.
        let pool = Pool::of_outcomes((0..n as u32).map(|i| 2 * i).collect(), &outcomes, 1e4);
        let searched = Searched::Freely(Matcher::of_points(&pool, &points));
        let own: Vec<Option<u32>> =
            (0..n as u32).map(|i| (i % 5 != 0).then_some(if i % 4 == 0 { 2 * i + 1 } else { 2 * i })).collect();
        let queries = Queries { covariates: &[], own: &own };
        let sorted = |members: &[u32]| {
            let mut members = members.to_vec();
            members.sort_unstable();
            members
        };
        let ranked = searched.map_others(&queries, &points, k, 1, |ranks, m, d| {
            let group = pool.estimate(m, d, ranks);
            (group, sorted(&m.iter().map(|&m| pool.rank(m)).collect::<Vec<_>>()))
        });
        let sets = searched.map_other_groups(&queries, &points, k, 1, None, |group, ranks| (group, ranks.to_vec()));
        assert_eq!(ranked, sets);
        assert!(sets.iter().all(|s| s.as_ref().unwrap().1.len() == k));
    }
}
