//! The nearest units of one arm under one metric: all of them, or those that constraints admit.
//!
//! Two questions are asked of an [`ArmSearch`]. [`ArmSearch::sets`] asks who is in each group and what its curve gives,
//! in whatever order is fastest. [`ArmSearch::ranked`] asks for the members in order of distance. Both find the same
//! members.
//!
//! Where more units are as near as the last place of a group than there are places left, they share these places (see
//! [`crate::group`]). A search for K units notices that without asking for more. Then, and only then, all who share are
//! looked for, once for all units that stand in the same place: patients with few patterns of covariates are many, and
//! their patterns are not.

use crate::cohort::Cohort;
use crate::constraint::Rules;
use crate::group::{Batch, Crowd, GroupEstimate, Near, Pool, Room, with_shares};
use crate::matching::{Ends, Hints, Index, Points, Ranked, is_same, scan};
use crate::metric::Metric;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

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
    /// What they count; empty where each counts once.
    pub shares: &'a [f64],
    /// The distance to the nearest member that is not the unit itself; infinite where there is none or nobody asked.
    pub nearest: f64,
    /// Who shares places with whom, where they do, and the unit that is left out, by its place in the order of time.
    pub crowd: Option<(&'a Arc<Crowd>, Option<u32>)>,
}

impl<'a> Found<'a> {
    /// A group in which each member counts once.
    fn plain(estimate: GroupEstimate, ranks: &'a [u32], nearest: f64) -> Found<'a> {
        Found { estimate, ranks, shares: &[], nearest, crowd: None }
    }

    /// Its members with what each counts.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (u32, f64)> + 'a {
        with_shares(self.ranks, self.shares)
    }
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
                let jobs = groups.into_par_iter().zip(places).zip(ask.queries.own).enumerate();
                let start = Room::default;
                let tied = jobs.map_init(start, |room, (query, ((group, place), own))| match group {
                    Group::Listed(members, squared) => {
                        let estimate =
                            self.pool.estimate(Near { members: &members, squared: &squared }, members.len(), room);
                        let nearest = self.pool.nearest_other(&members, &squared, *own);
                        visit(place, Ok(Found::plain(estimate, &room.ranks, nearest)));
                        None
                    }
                    Group::Few(candidates) => {
                        visit(place, Err(candidates));
                        None
                    }
                    Group::Tied { places, squared, without, cluster } => {
                        Some((Tied { query, squared, without, cluster, unit: *own, places }, place))
                    }
                });
                let tied: Vec<_> = tied.flatten().collect();
                let x = |q: usize| &ask.queries.covariates[q * strata.width..(q + 1) * strata.width];
                let find = |t: &Tied| strata.within(x(t.query), ask.placed.point(t.query), t.squared, t.cluster);
                self.visit_crowds(tied, x, find, visit);
                Vec::new()
            }
        }
    }

    /// Finds the groups of units whose last places are shared. Units with the same `key` have the same members, but for
    /// themselves; `find` gives those up to a squared distance, in order.
    fn visit_crowds<'k, P: Send>(
        &self,
        tied: Vec<(Tied, &mut P)>,
        key: impl Fn(usize) -> &'k [f64] + Sync,
        find: impl Fn(&Tied) -> (Vec<u32>, Vec<f64>) + Sync,
        visit: impl Fn(&mut P, Result<Found<'_>, usize>) + Sync + Send,
    ) {
        if tied.is_empty() {
            return;
        }
        let (firsts, of_each) = alike(tied.iter().map(|(t, _)| t), &key);
        let crowd = |t: &Tied| {
            let (members, squared) = find(t);
            let near = Near { members: &members, squared: &squared };
            (Arc::new(Crowd::new(self.pool, near, t.places + usize::from(t.without.is_some()))), OnceLock::new())
        };
        let crowds: Vec<(Arc<Crowd>, OnceLock<Whole>)> = firsts.par_iter().map(|t| crowd(t)).collect();
        tied.into_par_iter().zip(of_each).for_each_init(Room::default, |room, ((t, place), number)| {
            let (crowd, whole) = &crowds[number];
            let own = t.without.map(|m| self.pool.rank(m));
            let itself = t.unit.and_then(|i| self.pool.units.binary_search(&i).ok());
            let nearest = crowd.nearest_other(itself.map(|m| self.pool.rank(m as u32)));
            let mut give = |estimate: GroupEstimate, room: &Room| {
                let (ranks, shares, crowd) = (&room.ranks[..], &room.shares[..], Some((crowd, own)));
                visit(place, Ok(Found { estimate, ranks, shares, nearest, crowd }));
            };
            if own.is_some() {
                let estimate = crowd.estimate(self.pool, own, room);
                give(estimate, room);
            } else {
                // The same for all of them.
                let (estimate, room) = whole.get_or_init(|| {
                    let mut room = Room::default();
                    (crowd.estimate(self.pool, None, &mut room), room)
                });
                give(*estimate, room);
            }
        });
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
        let mut ties = vec![f64::NAN; places.len()];
        let order = index.nearest_sets(
            ask.placed,
            k,
            help.nearest,
            help.hints,
            places.iter_mut().zip(&mut ties).collect(),
            || Batch::new(self.pool, k),
            |batch, places: &mut [(&mut &mut P, &mut f64)], sets| {
                let tied = |ends: &Ends| ends.is_tied;
                for ((_, tie), (_, _, ends)) in places.iter_mut().zip(sets.iter()).filter(|(_, (_, _, e))| tied(e)) {
                    **tie = ends.farthest;
                }
                let mut found = places.iter_mut().zip(sets.iter()).filter(|(_, (_, _, ends))| !tied(ends));
                let members = sets.iter().filter(|(_, _, ends)| !tied(ends)).map(|(_, members, _)| members);
                self.pool.summaries(members, batch, |curve, ranks| {
                    let ((place, _), (query, _, ends)) = found.next().expect("a place for each group");
                    let nearest = if help.nearest {
                        let is_other = |m: u32| self.pool.units.get(m as usize).copied() != own[query];
                        let other = ends.nearest.iter().find(|(_, m)| is_other(*m));
                        other.map_or(f64::INFINITY, |(squared, _)| squared.sqrt())
                    } else {
                        f64::INFINITY
                    };
                    let estimate = GroupEstimate { curve, diameter: ends.farthest.sqrt() };
                    visit(place, Ok(Found::plain(estimate, ranks, nearest)));
                });
            },
        );
        let with_ties = places.into_iter().zip(ties).enumerate().filter(|(_, (_, squared))| !squared.is_nan());
        let tied = with_ties
            .map(|(query, (place, squared))| {
                (Tied { query, squared, without: None, cluster: None, unit: own[query], places: k }, place)
            })
            .collect();
        let find = |t: &Tied| index.within(ask.placed.point(t.query), t.squared);
        self.visit_crowds(tied, |q| ask.placed.point(q), find, visit);
        order
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
        let mut ties = vec![f64::NAN; inside.places.len()];
        let with_ties = inside.places.iter_mut().zip(&mut ties).collect();
        index.nearest_sets(
            &points,
            k + 1,
            help.nearest,
            inside.hints.as_deref().map(|squared| Hints { squared, order: None }),
            with_ties,
            || (Batch::new(pool, k), Vec::new(), Vec::<(usize, f64, f64)>::new()),
            |(batch, kept, there), places: &mut [(&mut &mut P, &mut f64)], sets| {
                kept.clear();
                there.clear();
                for (i, (query, members, ends)) in sets.iter().enumerate() {
                    if ends.is_tied {
                        *places[i].1 = ends.farthest;
                        continue;
                    }
                    // Without a tie it is among its own nearest, and K others are left.
                    let own = inside.positions[query];
                    kept.extend(members.iter().filter(|m| **m != own));
                    let other = ends.nearest.iter().filter(|_| help.nearest).find(|(_, m)| *m != own);
                    let nearest = other.map_or(f64::INFINITY, |(squared, _)| squared.sqrt());
                    there.push((i, ends.farthest.sqrt(), nearest));
                }
                let mut found = there.iter();
                pool.summaries(kept.chunks_exact(k.max(1)), batch, |curve, ranks| {
                    let &(i, diameter, nearest) = found.next().expect("a place for each group");
                    let (place, _) = &mut places[i];
                    visit(place, Ok(Found::plain(GroupEstimate { curve, diameter }, ranks, nearest)));
                });
            },
        );
        let with_ties = inside.places.into_iter().zip(ties).enumerate().filter(|(_, (_, squared))| !squared.is_nan());
        let tied = with_ties
            .map(|(query, (place, squared))| {
                let own = inside.positions[query];
                let unit = Some(pool.units[own as usize]);
                (Tied { query, squared, without: Some(own), cluster: None, unit, places: k }, place)
            })
            .collect();
        let find = |t: &Tied| index.within(points.point(t.query), t.squared);
        self.visit_crowds(tied, |q| points.point(q), find, visit);
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
        let found = self.ranked(&ask, |room, near| sizes.map(|k| self.pool.estimate(near, k, room)));
        found.into_iter().map(|sizes| sizes.expect("no group is too small")).collect()
    }

    /// Applies `f(room, nearest)` to the nearest units of each, nearest first: as many as its group has places, and all
    /// that share the last ones. Gives the number of candidates instead where they are too few.
    pub fn ranked<T: Send>(
        &self,
        ask: &Ask<'_>,
        f: impl Fn(&mut Room, Near<'_>) -> T + Sync + Send,
    ) -> Vec<Result<T, usize>> {
        match &self.way {
            Way::Free(index) => {
                let position = |query: usize| {
                    let own = ask.queries.own[query].filter(|_| self.without_self);
                    own.and_then(|i| self.pool.units.binary_search(&i).ok()).map(|m| m as u32)
                };
                let reach = (ask.group_size + usize::from(self.without_self)).min(self.pool.len());
                let mut out: Vec<Option<Result<T, usize>>> = (0..ask.placed.len()).map(|_| None).collect();
                let mut ties = vec![f64::NAN; out.len()];
                let start = || (Vec::new(), Vec::new(), Room::default());
                let places = out.iter_mut().zip(&mut ties).collect();
                index.nearest_or_tied(ask.placed, reach, places, start, |state, (place, tie), query, found| {
                    let (members, distances, room) = state;
                    let own = position(query);
                    let places = ask.group_size + usize::from(own.is_some());
                    // One more may have been asked for than this unit needs.
                    let last = places.min(found.distances.len()).checked_sub(1).map(|at| found.distances[at]);
                    let is_last = |d: f64| last.is_some_and(|last| is_same(last, d));
                    if let (true, Some(squared)) =
                        (found.is_tied && found.distances.last().is_some_and(|d| is_last(*d)), last)
                    {
                        **tie = squared;
                        return;
                    }
                    members.clear();
                    distances.clear();
                    let is_near = |at: usize, d: f64| at < places || is_last(d);
                    let all = found.positions.iter().zip(found.distances).enumerate();
                    for (_, (&m, &d)) in all.filter(|(at, (m, d))| Some(**m) != own && is_near(*at, **d)) {
                        members.push(m);
                        distances.push(d);
                    }
                    **place = Some(if members.len() < ask.fewest {
                        Err(members.len())
                    } else {
                        Ok(f(room, Near { members, squared: distances }))
                    });
                });
                let tied = out.iter_mut().zip(ties).enumerate().filter(|(_, (_, squared))| !squared.is_nan());
                let tied = tied
                    .map(|(query, (place, squared))| {
                        let (without, unit) = (position(query), ask.queries.own[query]);
                        (Tied { query, squared, without, cluster: None, unit, places: ask.group_size }, place)
                    })
                    .collect();
                let find = |t: &Tied| index.within(ask.placed.point(t.query), t.squared);
                list_crowds(tied, |q| ask.placed.point(q), find, &f);
                out.into_iter().map(|found| found.expect("each unit is answered")).collect()
            }
            Way::Ruled(strata) => {
                let groups = strata.groups(ask, self.without_self);
                let mut out: Vec<Option<Result<T, usize>>> = (0..groups.len()).map(|_| None).collect();
                let jobs = groups.into_par_iter().zip(&mut out).enumerate();
                let tied = jobs.map_init(Room::default, |room, (query, (group, place))| match group {
                    Group::Listed(members, squared) => {
                        *place = Some(Ok(f(room, Near { members: &members, squared: &squared })));
                        None
                    }
                    Group::Few(candidates) => {
                        *place = Some(Err(candidates));
                        None
                    }
                    Group::Tied { places, squared, without, cluster } => {
                        let unit = ask.queries.own[query];
                        Some((Tied { query, squared, without, cluster, unit, places }, place))
                    }
                });
                let tied = tied.flatten().collect();
                let x = |q: usize| &ask.queries.covariates[q * strata.width..(q + 1) * strata.width];
                let find = |t: &Tied| strata.within(x(t.query), ask.placed.point(t.query), t.squared, t.cluster);
                list_crowds(tied, x, find, &f);
                out.into_iter().map(|found| found.expect("each unit is answered")).collect()
            }
        }
    }
}

/// What a crowd gives of which nobody is left out, and its members.
type Whole = (GroupEstimate, Room);

/// A unit whose group shares its last places.
struct Tied {
    query: usize,
    /// The squared distance of the last place.
    squared: f64,
    /// Its own position in the pool, where it is left out.
    without: Option<u32>,
    /// Its cluster, where that is left out.
    cluster: Option<u32>,
    /// Its position in the cohort, where it is in it.
    unit: Option<u32>,
    /// Places of its group.
    places: usize,
}

/// Of units that share places: those with different groups, and for each unit the number of its own.
fn alike<'t, 'k>(
    tied: impl Iterator<Item = &'t Tied>,
    key: impl Fn(usize) -> &'k [f64],
) -> (Vec<&'t Tied>, Vec<usize>) {
    let (mut firsts, mut number_of) = (Vec::new(), HashMap::new());
    let of_each = tied.map(|t| {
        let bits: Vec<u64> = key(t.query).iter().map(|x| x.to_bits()).collect();
        *number_of.entry((bits, t.places, t.without.is_some(), t.cluster)).or_insert_with(|| {
            firsts.push(t);
            firsts.len() - 1
        })
    });
    let of_each = of_each.collect();
    (firsts, of_each)
}

/// Applies `f` to the nearest units of those that share places: see [`ArmSearch::ranked`].
fn list_crowds<'k, T: Send>(
    tied: Vec<(Tied, &mut Option<Result<T, usize>>)>,
    key: impl Fn(usize) -> &'k [f64],
    find: impl Fn(&Tied) -> (Vec<u32>, Vec<f64>) + Sync,
    f: impl Fn(&mut Room, Near<'_>) -> T + Sync,
) {
    if tied.is_empty() {
        return;
    }
    let (firsts, of_each) = alike(tied.iter().map(|(t, _)| t), key);
    let lists: Vec<(Vec<u32>, Vec<f64>)> = firsts.par_iter().map(|t| find(t)).collect();
    tied.into_par_iter().zip(of_each).for_each_init(Room::default, |room, ((t, place), number)| {
        let (members, squared) = &lists[number];
        *place = Some(Ok(match t.without {
            None => f(room, Near { members, squared }),
            Some(own) => {
                let others = members.iter().copied().zip(squared.iter().copied()).filter(|(m, _)| *m != own);
                let (members, squared): (Vec<u32>, Vec<f64>) = others.unzip();
                f(room, Near { members: &members, squared: &squared })
            }
        }));
    });
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

/// What rules leave of a group.
enum Group {
    /// Its members as positions in the pool with their squared distances, nearest first.
    Listed(Vec<u32>, Vec<f64>),
    /// The last of so many places are shared: by those at this squared distance, without one unit or one cluster.
    Tied { places: usize, squared: f64, without: Option<u32>, cluster: Option<u32> },
    /// The number of candidates, where they are too few.
    Few(usize),
}

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
    /// Positions in the pool, ascending.
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
        // Without its cluster a unit has candidates of its own; without itself it shares them with others like it.
        let tied = |places: usize, squared: f64, own: Option<u32>| {
            let without = own.filter(|_| cluster.is_none());
            Group::Tied { places, squared, without, cluster }
        };
        let Some(stratum) = self.strata.get(&self.rules.stratum(x)) else {
            return if fewest == 0 { Group::Listed(Vec::new(), Vec::new()) } else { Group::Few(0) };
        };
        if let Some(index) = &stratum.index {
            // A unit of the stratum is its own nearest: it is found with K others, and left out. So with its cluster.
            let apart = match cluster {
                Some(cluster) => stratum.of_cluster.get(&cluster).copied().unwrap_or(0),
                None => usize::from(own.is_some_and(|m| stratum.members.binary_search(&m).is_ok())),
            };
            let own = own.filter(|_| apart > 0);
            let available = stratum.members.len() - apart;
            if available < fewest {
                return Group::Few(available);
            }
            let (k, mut out) = (k.min(available), Group::Few(0));
            let visit = |(): &mut (), out: &mut &mut Group, _: usize, found: &Ranked<'_>| {
                let all =
                    found.positions.iter().map(|&i| stratum.members[i as usize]).zip(found.distances.iter().copied());
                let (mut members, mut squared): (Vec<u32>, Vec<f64>) = all.filter(|(m, _)| is_other(*m)).unzip();
                // More of the cluster may have been asked for than are near, and then there are more others.
                let next = squared.get(k).or(found.distances.last().filter(|_| found.is_tied)).copied();
                let last = k.checked_sub(1).map(|at| squared[at]);
                **out = match (last, next) {
                    (Some(last), Some(next)) if is_same(last, next) => tied(k, last, own),
                    _ => {
                        members.truncate(k);
                        squared.truncate(k);
                        Group::Listed(members, squared)
                    }
                };
            };
            index.nearest_or_tied(query, k + apart, vec![&mut out], || (), visit);
            return out;
        }
        let members: Vec<u32> = self.admitted(stratum, x).filter(|m| is_other(*m)).collect();
        if members.len() < fewest {
            return Group::Few(members.len());
        }
        // One more than there are places shows whether the last is shared.
        let found = scan(&subset(&self.points, &members), query, (k + 1).min(members.len()));
        let (mut index, mut squared) = (found.index, found.squared_distance);
        if k > 0 && squared.len() > k && is_same(squared[k - 1], squared[k]) {
            return tied(k, squared[k - 1], own);
        }
        index.truncate(k);
        squared.truncate(k);
        Group::Listed(index.iter().map(|&i| members[i as usize]).collect(), squared)
    }

    /// The units of a stratum that may be in the group of one with these covariates, itself included.
    fn admitted<'s>(&'s self, stratum: &'s Stratum, x: &'s [f64]) -> impl Iterator<Item = u32> + 's {
        let row = |m: u32| &self.recorded[m as usize * self.width..(m as usize + 1) * self.width];
        stratum.members.iter().copied().filter(move |&m| self.rules.admit(x, row(m)))
    }

    /// The candidates of a unit with these covariates up to a squared distance, and those at the same, nearest first,
    /// but for those of a cluster.
    fn within(&self, x: &[f64], point: &[f64], squared: f64, cluster: Option<u32>) -> (Vec<u32>, Vec<f64>) {
        let Some(stratum) = self.strata.get(&self.rules.stratum(x)) else { return Default::default() };
        let is_other = |m: u32| match (cluster, self.rules.clusters()) {
            (Some(cluster), Some(clusters)) => clusters[self.pool.units[m as usize] as usize] != cluster,
            _ => true,
        };
        if let Some(index) = &stratum.index {
            let (found, squared) = index.within(point, squared);
            let all = found.iter().map(|&i| stratum.members[i as usize]).zip(squared);
            return all.filter(|(m, _)| is_other(*m)).unzip();
        }
        let members: Vec<u32> = self.admitted(stratum, x).filter(|m| is_other(*m)).collect();
        let query = Points { dim: self.points.dim, coords: point.to_vec() };
        let found = scan(&subset(&self.points, &members), &query, members.len());
        let n = found.squared_distance.partition_point(|d| is_same(squared, *d));
        (found.index[..n].iter().map(|&i| members[i as usize]).collect(), found.squared_distance[..n].to_vec())
    }
}

fn subset(points: &Points, members: &[u32]) -> Points {
    Points { dim: points.dim, coords: members.iter().flat_map(|&m| points.point(m as usize)).copied().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets have the members, the shares, the diameter and the nearest of the ranked groups, which are those of the
    /// plain scan: for units in the pool and for others, also where more than K units are in one place and share
    /// the places.
    #[test]
    fn sets_are_the_ranked_groups() {
        let (n, k) = (600, 7);
        let coordinate = |i: usize, j: usize| match i % 3 {
            0 => 0.25,
            1 => ((i / 5 + j) % 4) as f64,
            _ => ((i * 7_919 + j * 104_729 + i * i * (j + 1)) % 1_009) as f64 / 504.0,
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
        let all = scan(&points, &points, n);
        for without_self in [false, true] {
            let search = ArmSearch { without_self, ..ArmSearch::of_points(&pool, &points) };
            let ranked = search.ranked(&ask, |room, near| {
                let estimate = pool.estimate(near, k, room);
                let places = near.places(k);
                let shares: Vec<f64> = (0..places.end).map(|at| places.share_of(at)).collect();
                (
                    estimate,
                    room.clone(),
                    near.members[..places.end].to_vec(),
                    near.squared[..places.end].to_vec(),
                    shares,
                )
            });
            let mut sets = vec![None; n];
            let help = Help { nearest: true, hints: None };
            search.sets(&ask, help, &mut sets, |place, found| {
                *place = found.ok().map(|f| (f.estimate, f.ranks.to_vec(), f.shares.to_vec(), f.nearest));
            });
            let mut n_shared = 0;
            for (q, (ranked, set)) in ranked.iter().zip(&sets).enumerate() {
                let (estimate, room, members, squared, shares) = ranked.as_ref().expect("a group");
                let nearest = pool.nearest_other(members, squared, own[q]);
                let expected = (*estimate, room.ranks.clone(), room.shares.clone(), nearest);
                assert_eq!(set.as_ref(), Some(&expected), "unit {q}");
                let left_out = |m: u32| without_self && Some(pool.units[m as usize]) == own[q];
                // Of the scan: those strictly nearer than the last place count once, those at it share what is left.
                let (order, distances) = all.of(q, n);
                let others: Vec<(u32, f64)> =
                    order.iter().copied().zip(distances.iter().copied()).filter(|(m, _)| !left_out(*m)).collect();
                let last = others[k - 1].1;
                let nearer = others.iter().filter(|o| !is_same(o.1, last)).take_while(|o| o.1 < last).count();
                let end = others.iter().take_while(|o| is_same(last, o.1)).count();
                assert_eq!(*members, others[..end].iter().map(|o| o.0).collect::<Vec<_>>(), "unit {q}");
                let share = |at: usize| {
                    if end == k || at < nearer { 1.0 } else { (k - nearer) as f64 / (end - nearer) as f64 }
                };
                assert_eq!(*shares, (0..end).map(share).collect::<Vec<_>>(), "unit {q}");
                assert!((shares.iter().sum::<f64>() - k as f64).abs() < 1e-12);
                n_shared += usize::from(end > k);
            }
            assert!(n_shared > 200, "{n_shared} of {n} share places");
        }
    }

    /// Three places for five units: one is nearer, four are equally far. The nearer one counts 1, each of the others
    /// one half. Of the nearer one, and of two of the others, the event is at 1; weights at risk there are 3, of events
    /// 2: a third is left. The event at 2 of another leaves half of that. The last is censored at 3.
    #[test]
    fn a_tie_by_hand() {
        let points = Points { dim: 2, coords: vec![0.0, 1.0, 2.0, 0.0, 0.0, -2.0, -2.0, 0.0, 0.0, 2.0, 9.0, 9.0] };
        let outcomes = [(1.0, true), (1.0, true), (1.0, true), (2.0, true), (3.0, false), (1.0, true)];
        let pool = Pool::of_outcomes((0..6).collect(), &outcomes, 10.0);
        let search = ArmSearch::of_points(&pool, &points);
        let query = Points { dim: 2, coords: vec![0.0, 0.0] };
        let ask = Ask { queries: Queries { covariates: &[], own: &[None] }, placed: &query, group_size: 3, fewest: 3 };
        let mut found = vec![None];
        search.sets(&ask, Help { nearest: true, hints: None }, &mut found, |place, f| {
            let f = f.unwrap_or_else(|n| panic!("{n} candidates"));
            *place = Some((f.estimate, f.ranks.len(), f.shares.iter().sum::<f64>(), f.nearest));
        });
        let (estimate, n, places, nearest) = found[0].expect("a group");
        assert_eq!((n, places, nearest, estimate.diameter), (5, 3.0, 1.0, 2.0));
        let close = |x: f64, y: f64| assert!((x - y).abs() < 1e-14, "{x} {y}");
        close(estimate.curve.survival, 1.0 / 6.0);
        close(estimate.curve.event_area, 2.0 / 3.0 + 2.0 / 6.0);
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
        assert_eq!(search.ranked(&ask, |_, near| near.members.len()), [Err(2), Ok(3), Ok(3)]);
    }
}
