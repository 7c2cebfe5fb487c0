//! The nearest units of one arm under one metric: all of them, or those that constraints admit.
//!
//! Two questions are asked of an [`ArmSearch`]. [`ArmSearch::sets`] asks who is in each group and what its curve gives,
//! in whatever order is fastest. [`ArmSearch::ranked`] asks for the members in order of distance. Both find the same
//! members, ties included.

use crate::cohort::Cohort;
use crate::constraint::Rules;
use crate::group::{Batch, GroupEstimate, Pool};
use crate::matching::{Hints, Index, Points, scan};
use crate::metric::Metric;
use rayon::prelude::*;
use std::collections::HashMap;

/// Units that need groups.
#[derive(Clone, Copy)]
pub struct Queries<'a> {
    /// Covariates as recorded, row-major.
    pub covariates: &'a [f64],
    /// The position in the cohort of each unit that is in it.
    pub own: &'a [Option<u32>],
}

/// What a search is asked for.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// The units.
    pub queries: Queries<'a>,
    /// Their places in the match space of the metric.
    pub placed: &'a Points,
    /// K: the size of a group.
    pub group_size: usize,
    /// With fewer candidates than K a group may be smaller, down to this size.
    pub fewest: usize,
}

/// A group that was found.
pub struct Found<'a> {
    /// What its curve gives.
    pub estimate: GroupEstimate,
    /// Its members by their places in the pool's order of time, ascending.
    pub ranks: &'a [u32],
    /// The distance to the nearest member that is not the unit itself; infinite where there is none or nobody asked.
    pub nearest: f64,
}

/// How a search for sets may save work; neither changes an answer.
#[derive(Clone, Copy, Default)]
pub struct Help<'a> {
    /// Where the farthest member may be, and the order to go through the units.
    pub hints: Option<Hints<'a>>,
    /// Whether [`Found::nearest`] is needed.
    pub nearest: bool,
}

/// One arm under one metric, ready to be searched.
pub struct ArmSearch<'a> {
    pool: &'a Pool,
    /// Whether a unit is kept out of its own group.
    without_self: bool,
    way: Way<'a>,
}

enum Way<'a> {
    /// Every unit of the pool is a candidate.
    Free(Index<'a>),
    /// Rules say who is a candidate.
    Ruled(Box<Strata<'a>>),
}

impl<'a> ArmSearch<'a> {
    /// Packs the units of a pool in the match space of a metric.
    pub fn new(
        pool: &'a Pool,
        cohort: &Cohort,
        metric: &Metric,
        rules: Option<&'a Rules>,
        without_self: bool,
    ) -> ArmSearch<'a> {
        match rules {
            None => {
                let rows = pool.units.iter().map(|&i| cohort.covariates(i as usize));
                ArmSearch { without_self, ..ArmSearch::of_points(pool, &metric.place_rows(rows)) }
            }
            Some(rules) => {
                let way = Way::Ruled(Box::new(Strata::new(pool, cohort, metric, rules)));
                ArmSearch { pool, without_self, way }
            }
        }
    }

    /// Packs units that are already placed; a unit may be in its own group.
    pub fn of_points(pool: &'a Pool, points: &Points) -> ArmSearch<'a> {
        ArmSearch { pool, without_self: false, way: Way::Free(Index::build(points)) }
    }

    /// Packs units that stand in these rows of all the points that are placed.
    pub fn of_rows(pool: &'a Pool, points: &'a Points, rows: &[u32], without_self: bool) -> ArmSearch<'a> {
        ArmSearch { pool, without_self, way: Way::Free(Index::build_of_rows(points, rows)) }
    }

    /// Finds the group of each unit and hands it to `visit` with the unit's place: the group, or the number of
    /// candidates where they are too few. Gives the order in which the units were answered, as a hint for another
    /// search.
    pub fn sets<P: Send>(
        &self,
        ask: &Ask<'_>,
        help: Help<'_>,
        places: &mut [P],
        visit: impl Fn(&mut P, Result<Found<'_>, usize>) + Sync + Send,
    ) -> Vec<u32> {
        match &self.way {
            Way::Free(index) if self.without_self => {
                self.sets_of_others(index, ask, help, places, visit);
                Vec::new()
            }
            Way::Free(index) => self.sets_of_all(index, ask, help, places.iter_mut().collect(), visit),
            Way::Ruled(strata) => {
                let groups = strata.groups(ask, self.without_self);
                let jobs = groups.into_par_iter().zip(places).zip(ask.queries.own);
                jobs.for_each_init(Vec::new, |ranks, ((group, place), own)| match group {
                    Ok((members, squared)) => {
                        let estimate = self.pool.estimate(&members, &squared, ranks);
                        let nearest = self.pool.nearest_other(&members, &squared, *own);
                        visit(place, Ok(Found { estimate, ranks, nearest }));
                    }
                    Err(candidates) => visit(place, Err(candidates)),
                });
                Vec::new()
            }
        }
    }

    /// Finds sets among all units of the pool: a unit of the pool is in its own group.
    fn sets_of_all<P: Send>(
        &self,
        index: &Index<'_>,
        ask: &Ask<'_>,
        help: Help<'_>,
        mut places: Vec<&mut P>,
        visit: impl Fn(&mut P, Result<Found<'_>, usize>) + Sync + Send,
    ) -> Vec<u32> {
        let (available, own) = (self.pool.len(), ask.queries.own);
        if available < ask.fewest {
            places.iter_mut().for_each(|place| visit(place, Err(available)));
            return Vec::new();
        }
        let k = ask.group_size.min(available);
        index.nearest_sets(
            ask.placed,
            k,
            help.nearest,
            help.hints,
            places,
            || Batch::new(self.pool, k),
            |batch, places: &mut [&mut P], sets| {
                let mut found = places.iter_mut().zip(sets.iter());
                self.pool.summaries(sets.iter().map(|(_, members, _)| members), batch, |curve, ranks| {
                    let (place, (query, _, ends)) = found.next().expect("a place for each group");
                    let nearest = if help.nearest {
                        let is_other = |m: u32| self.pool.units.get(m as usize).copied() != own[query];
                        let other = ends.nearest.iter().find(|(_, m)| is_other(*m));
                        other.map_or(f64::INFINITY, |(squared, _)| squared.sqrt())
                    } else {
                        f64::INFINITY
                    };
                    let estimate = GroupEstimate { curve, diameter: ends.farthest.sqrt() };
                    visit(place, Ok(Found { estimate, ranks, nearest }));
                });
            },
        )
    }

    /// Finds sets of units other than the unit itself.
    fn sets_of_others<P: Send>(
        &self,
        index: &Index<'_>,
        ask: &Ask<'_>,
        help: Help<'_>,
        places: &mut [P],
        visit: impl Fn(&mut P, Result<Found<'_>, usize>) + Sync + Send,
    ) {
        let (pool, own) = (self.pool, ask.queries.own);
        let (mut inside, mut outside) = (Selected::default(), Selected::default());
        for (q, place) in places.iter_mut().enumerate() {
            let position = own[q].and_then(|i| pool.units.binary_search(&i).ok());
            let of = if position.is_some() { &mut inside } else { &mut outside };
            of.take(q, place, position, ask.placed, help.hints);
        }
        // The others of a unit outside the pool are all of its units.
        let of_outside = Ask {
            queries: Queries { covariates: &[], own: &vec![None; outside.places.len()] },
            placed: &outside.points(ask.placed.dim),
            ..*ask
        };
        let hints = outside.hints.as_deref().map(|squared| Hints { squared, order: None });
        self.sets_of_all(index, &of_outside, Help { hints, ..help }, outside.places, &visit);

        let available = pool.len().saturating_sub(1);
        if available < ask.fewest {
            inside.places.iter_mut().for_each(|place| visit(place, Err(available)));
            return;
        }
        // A unit of the pool is its own nearest: it is found with K others, and left out.
        let (k, points) = (ask.group_size.min(available), inside.points(ask.placed.dim));
        let mut answered = vec![false; inside.places.len()];
        let with_marks = inside.places.iter_mut().zip(&mut answered).collect();
        index.nearest_sets(
            &points,
            k + 1,
            help.nearest,
            inside.hints.as_deref().map(|squared| Hints { squared, order: None }),
            with_marks,
            || (Batch::new(pool, k), Vec::new(), Vec::<(usize, f64, f64)>::new()),
            |(batch, kept, there), places: &mut [(&mut &mut P, &mut bool)], sets| {
                kept.clear();
                there.clear();
                for (i, (query, members, ends)) in sets.iter().enumerate() {
                    let from = kept.len();
                    let own = inside.positions[query];
                    kept.extend(members.iter().filter(|m| **m != own));
                    if kept.len() - from == k {
                        let other = ends.nearest.iter().filter(|_| help.nearest).find(|(_, m)| *m != own);
                        let nearest = other.map_or(f64::INFINITY, |(squared, _)| squared.sqrt());
                        there.push((i, ends.farthest.sqrt(), nearest));
                    } else {
                        kept.truncate(from);
                    }
                }
                let mut found = there.iter();
                pool.summaries(kept.chunks_exact(k.max(1)), batch, |curve, ranks| {
                    let &(i, diameter, nearest) = found.next().expect("a place for each group");
                    let (place, answered) = &mut places[i];
                    visit(place, Ok(Found { estimate: GroupEstimate { curve, diameter }, ranks, nearest }));
                    **answered = true;
                });
            },
        );
        // Where K others stand in the same place before it, a unit is not among its own K + 1 nearest: one of them is
        // too many.
        let crowded: Vec<usize> = (0..answered.len()).filter(|&q| !answered[q]).collect();
        if crowded.is_empty() {
            return;
        }
        let some = Points { dim: points.dim, coords: crowded.iter().flat_map(|&q| points.point(q)).copied().collect() };
        let places =
            inside.places.into_iter().zip(answered).filter(|(_, done)| !done).map(|(place, _)| place).collect();
        index.nearest_into(&some, k + 1, places, Vec::new, |ranks, place: &mut &mut P, _, members, squared| {
            let estimate = pool.estimate(&members[..k], &squared[..k], ranks);
            let nearest = squared.first().map_or(f64::INFINITY, |d| d.sqrt());
            visit(place, Ok(Found { estimate, ranks, nearest }));
        });
    }

    /// What the group of each query at each size (ascending) gives. Neighbours are found once, for the largest size; a
    /// smaller group is a prefix of a larger one.
    pub fn estimate<const N: usize>(&self, queries: &Points, sizes: [usize; N]) -> Vec<[GroupEstimate; N]> {
        let own = vec![None; queries.len()];
        let ask = Ask {
            queries: Queries { covariates: &[], own: &own },
            placed: queries,
            group_size: sizes[N - 1],
            fewest: 0,
        };
        let found = self.ranked(&ask, |scratch, members, squared| {
            sizes.map(|k| self.pool.estimate(&members[..k], &squared[..k], scratch))
        });
        found.into_iter().map(|sizes| sizes.expect("no group is too small")).collect()
    }

    /// Applies `f(scratch, members, squared distances)` to the group of each unit, nearest member first. Gives the
    /// number of candidates instead where they are too few.
    pub fn ranked<T: Send>(
        &self,
        ask: &Ask<'_>,
        f: impl Fn(&mut Vec<u32>, &[u32], &[f64]) -> T + Sync + Send,
    ) -> Vec<Result<T, usize>> {
        match &self.way {
            Way::Free(index) => {
                let reach = (ask.group_size + usize::from(self.without_self)).min(self.pool.len());
                let start = || (Vec::new(), Vec::new(), Vec::new());
                index.nearest_map(ask.placed, reach, start, |(members, distances, ranks), query, found, squared| {
                    members.clear();
                    distances.clear();
                    let own = ask.queries.own[query].filter(|_| self.without_self);
                    let others = |m: &u32| own.is_none() || Some(self.pool.units[*m as usize]) != own;
                    let kept = found.iter().zip(squared).filter(|(m, _)| others(m)).take(ask.group_size);
                    for (&m, &d) in kept {
                        members.push(m);
                        distances.push(d);
                    }
                    if members.len() < ask.fewest { Err(members.len()) } else { Ok(f(ranks, members, distances)) }
                })
            }
            Way::Ruled(strata) => {
                let groups = strata.groups(ask, self.without_self);
                let answer = |ranks: &mut Vec<u32>, group: Group| group.map(|(members, d)| f(ranks, &members, &d));
                groups.into_par_iter().map_init(Vec::new, answer).collect()
            }
        }
    }
}

/// Some of the units that were asked for.
struct Selected<'p, P> {
    places: Vec<&'p mut P>,
    /// Their own positions in the pool, where they are in it.
    positions: Vec<u32>,
    coords: Vec<f64>,
    hints: Option<Vec<f64>>,
}

impl<P> Default for Selected<'_, P> {
    fn default() -> Self {
        Selected { places: Vec::new(), positions: Vec::new(), coords: Vec::new(), hints: None }
    }
}

impl<'p, P> Selected<'p, P> {
    fn take(&mut self, q: usize, place: &'p mut P, own: Option<usize>, placed: &Points, hints: Option<Hints<'_>>) {
        self.places.push(place);
        self.positions.extend(own.map(|m| m as u32));
        self.coords.extend_from_slice(placed.point(q));
        if let Some(hints) = hints {
            self.hints.get_or_insert_default().push(hints.squared[q]);
        }
    }

    fn points(&mut self, dim: usize) -> Points {
        Points { dim, coords: std::mem::take(&mut self.coords) }
    }
}

/// Members of a group as positions in the pool with their squared distances, nearest first; or the number of candidates
/// where they are too few.
type Group = Result<(Vec<u32>, Vec<f64>), usize>;

/// One arm under one metric and rules: a search for each stratum of the exact covariates.
struct Strata<'a> {
    rules: &'a Rules,
    pool: &'a Pool,
    width: usize,
    /// Covariates of the pool, as recorded.
    recorded: Vec<f64>,
    points: Points,
    strata: HashMap<Vec<u64>, Stratum>,
}

/// The units of a pool that agree on the exact covariates.
struct Stratum {
    /// Positions in the pool, ascending: ties in distance go by id.
    members: Vec<u32>,
    index: Option<Index<'static>>,
    /// Members of each cluster, where a unit's own is kept out.
    of_cluster: HashMap<u32, usize>,
}

impl<'a> Strata<'a> {
    /// Sorts a pool into strata.
    fn new(pool: &'a Pool, cohort: &Cohort, metric: &Metric, rules: &'a Rules) -> Strata<'a> {
        let recorded = pool.covariates(cohort);
        let width = cohort.n_covariates();
        let points = metric.place(&recorded);
        let mut strata: HashMap<Vec<u64>, Stratum> = HashMap::new();
        for (m, x) in recorded.chunks_exact(width).enumerate() {
            let stratum = strata.entry(rules.stratum(x)).or_insert_with(|| Stratum {
                members: Vec::new(),
                index: None,
                of_cluster: HashMap::new(),
            });
            stratum.members.push(m as u32);
            if let Some(clusters) = rules.clusters() {
                *stratum.of_cluster.entry(clusters[pool.units[m] as usize]).or_default() += 1;
            }
        }
        if !rules.has_calipers() {
            strata.values_mut().for_each(|s| s.index = Some(Index::build(&subset(&points, &s.members))));
        }
        Strata { rules, pool, width, recorded, points, strata }
    }

    /// The group of each unit: K candidates, or as many as there are where they are at least `ask.fewest`.
    fn groups(&self, ask: &Ask<'_>, without_self: bool) -> Vec<Group> {
        let of = |q: usize| {
            let x = &ask.queries.covariates[q * self.width..(q + 1) * self.width];
            let own = ask.queries.own[q].filter(|_| without_self);
            let cluster = own.and_then(|u| Some(self.rules.clusters()?[u as usize]));
            let own = own.and_then(|u| self.pool.units.binary_search(&u).ok()).map(|m| m as u32);
            let query = Points { dim: ask.placed.dim, coords: ask.placed.point(q).to_vec() };
            self.group(x, (own, cluster), &query, ask.group_size, ask.fewest)
        };
        (0..ask.queries.own.len()).into_par_iter().map(of).collect()
    }

    /// The group of a unit without its own place in the pool and without its cluster, where these are given.
    fn group(
        &self,
        x: &[f64],
        (own, cluster): (Option<u32>, Option<u32>),
        query: &Points,
        k: usize,
        fewest: usize,
    ) -> Group {
        let is_other = |m: u32| match (cluster, self.rules.clusters()) {
            (Some(cluster), Some(clusters)) => clusters[self.pool.units[m as usize] as usize] != cluster,
            _ => Some(m) != own,
        };
        let Some(stratum) = self.strata.get(&self.rules.stratum(x)) else {
            return if fewest == 0 { Ok(Default::default()) } else { Err(0) };
        };
        if let Some(index) = &stratum.index {
            // The unit itself is among the K + 1 nearest, or K others are nearer by (distance, id). So with its
            // cluster.
            let apart = match cluster {
                Some(cluster) => stratum.of_cluster.get(&cluster).copied().unwrap_or(0),
                None => usize::from(own.is_some_and(|m| stratum.members.binary_search(&m).is_ok())),
            };
            let available = stratum.members.len() - apart;
            if available < fewest {
                return Err(available);
            }
            let k = k.min(available);
            let found = index.nearest(query, k + apart);
            let pairs = found.index.iter().map(|&i| stratum.members[i as usize]).zip(found.squared_distance);
            return Ok(pairs.filter(|(m, _)| is_other(*m)).take(k).unzip());
        }
        let admitted = |m: &u32| {
            let y = &self.recorded[*m as usize * self.width..(*m as usize + 1) * self.width];
            is_other(*m) && self.rules.admit(x, y)
        };
        let members: Vec<u32> = stratum.members.iter().copied().filter(admitted).collect();
        if members.len() < fewest {
            return Err(members.len());
        }
        let found = scan(&subset(&self.points, &members), query, k.min(members.len()));
        Ok((found.index.iter().map(|&i| members[i as usize]).collect(), found.squared_distance))
    }
}

fn subset(points: &Points, members: &[u32]) -> Points {
    Points { dim: points.dim, coords: members.iter().flat_map(|&m| points.point(m as usize)).copied().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets have the members, the diameter and the nearest of the ranked groups: for units in the pool and for others,
    /// also where more than K units are in one place and a unit is not among its own nearest.
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
        let own: Vec<Option<u32>> =
            (0..n as u32).map(|i| (i % 5 != 0).then_some(if i % 4 == 0 { 2 * i + 1 } else { 2 * i })).collect();
        let queries = Queries { covariates: &[], own: &own };
        let ask = Ask { queries, placed: &points, group_size: k, fewest: 1 };
        for without_self in [false, true] {
            let search = ArmSearch { without_self, ..ArmSearch::of_points(&pool, &points) };
            let ranked = search.ranked(&ask, |ranks, m, d| {
                let estimate = pool.estimate(m, d, ranks);
                (estimate, ranks.clone(), m.to_vec(), d.to_vec())
            });
            let mut sets = vec![None; n];
            let help = Help { nearest: true, hints: None };
            search.sets(&ask, help, &mut sets, |place, found| {
                *place = found.ok().map(|f| (f.estimate, f.ranks.to_vec(), f.nearest));
            });
            for (q, (ranked, set)) in ranked.iter().zip(&sets).enumerate() {
                let (estimate, ranks, members, squared) = ranked.as_ref().expect("a group");
                let nearest = pool.nearest_other(members, squared, own[q]);
                assert_eq!(set.as_ref(), Some(&(*estimate, ranks.clone(), nearest)), "unit {q}");
                assert_eq!(members.len(), k);
                assert!(!without_self || members.iter().all(|&m| Some(pool.units[m as usize]) != own[q]));
            }
        }
    }

    /// With fewer candidates than are needed there is no group, and their number is told.
    #[test]
    fn too_few_candidates_are_counted() {
        let points = Points { dim: 1, coords: vec![0.0, 1.0, 2.0] };
        let pool = Pool::of_outcomes(vec![0, 1, 2], &[(1.0, true), (2.0, false), (3.0, true)], 10.0);
        let search = ArmSearch { without_self: true, ..ArmSearch::of_points(&pool, &points) };
        let own = [Some(0), None, None];
        let ask = Ask { queries: Queries { covariates: &[], own: &own }, placed: &points, group_size: 5, fewest: 3 };
        let mut found = vec![Err(0); 3];
        search.sets(&ask, Help::default(), &mut found, |place, f| *place = f.map(|f| f.ranks.len()));
        assert_eq!(found, [Err(2), Ok(3), Ok(3)]);
        assert_eq!(search.ranked(&ask, |_, m, _| m.len()), [Err(2), Ok(3), Ok(3)]);
    }
}
