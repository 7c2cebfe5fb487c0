//! The units that groups are drawn from, and what a group of them gives.
//!
//! A group has K places. Units that are nearer than the last place have a place each. Where r units are equally near
//! and too many for the places that are left, they share them: each counts (K − nearer)/r. So nobody is in a group, or
//! out of it, because of an id.

use crate::cohort::Cohort;
use crate::constraint::Unserved;
use crate::curve::{CELLS, Grid};
use crate::matching::{Instructions, is_same};
use crate::outcome::Outcome;
use crate::survival::{Signed, Summary, SurvivalCurve, Together};
use std::sync::Arc;

/// What one match group gave: its curve at H, and how far its farthest member is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupEstimate {
    /// The group's curve at the horizon.
    pub curve: Summary,
    /// Distance from the unit to the farthest member of the group.
    pub diameter: f64,
}

impl GroupEstimate {
    /// The estimate of a group without members.
    pub(crate) const NOTHING: GroupEstimate = GroupEstimate { curve: Summary::nothing_seen(0), diameter: 0.0 };
}

/// The units of one arm that groups are drawn from, with their outcomes in order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Position in the cohort of each unit of the pool, ascending.
    pub units: Vec<u32>,
    /// For each unit its place in the order of time.
    rank: Vec<u32>,
    /// Times and events in order of time.
    by_time: Vec<(f64, bool)>,
    /// The same in half the room.
    signed: Signed,
    /// All of the outcomes in order of time, where units do not all count alike.
    outcomes: Option<Vec<Outcome>>,
    horizon: f64,
    with: Instructions,
}

impl Pool {
    /// The pool of these units of a cohort.
    pub fn new(cohort: &Cohort, units: Vec<u32>) -> Pool {
        let outcome = |&i: &u32| (cohort.time(i as usize), cohort.event(i as usize));
        let outcomes: Vec<(f64, bool)> = units.iter().map(outcome).collect();
        let mut pool = Pool::of_outcomes(units, &outcomes, cohort.horizon());
        if !cohort.extras().is_empty() {
            let mut sorted = vec![Outcome::plain(0.0, false); pool.len()];
            for (&i, &r) in pool.units.iter().zip(&pool.rank) {
                sorted[r as usize] = cohort.outcome(i as usize);
            }
            pool.outcomes = Some(sorted);
        }
        pool
    }

    /// The pool of units with these outcomes. A simulation's oracle brings outcomes of its own.
    pub fn of_outcomes(units: Vec<u32>, outcomes: &[(f64, bool)], horizon: f64) -> Pool {
        let mut order: Vec<(f64, u32)> = outcomes.iter().map(|u| u.0).zip(0..units.len() as u32).collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut rank = vec![0; units.len()];
        for (r, &(_, i)) in order.iter().enumerate() {
            rank[i as usize] = r as u32;
        }
        let by_time: Vec<(f64, bool)> = order.iter().map(|&(_, i)| outcomes[i as usize]).collect();
        Pool { units, rank, signed: Signed::of(&by_time), by_time, outcomes: None, horizon, with: Instructions::best() }
    }

    /// Number of units.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// The covariates of the pool's units, row-major.
    pub fn covariates(&self, cohort: &Cohort) -> Vec<f64> {
        let mut rows = Vec::with_capacity(self.len() * cohort.n_covariates());
        self.units.iter().for_each(|&i| rows.extend_from_slice(cohort.covariates(i as usize)));
        rows
    }

    /// All of the outcomes in order of time, where units do not all count alike.
    pub fn outcomes(&self) -> Option<&[Outcome]> {
        self.outcomes.as_deref()
    }

    /// Times and events in order of time.
    pub fn by_time(&self) -> &[(f64, bool)] {
        &self.by_time
    }

    /// The place in the order of time of a unit, by its position in the pool.
    pub fn rank(&self, position: u32) -> u32 {
        self.rank[position as usize]
    }

    /// The places in the order of time of these members, ascending. Members are different units.
    pub fn order(&self, members: &[u32], ranks: &mut Vec<u32>) {
        ranks.clear();
        let words = self.len() / 32 + 1;
        if words > 4 * members.len() {
            ranks.extend(members.iter().map(|&m| self.rank[m as usize]));
            self.with.sort_distinct(ranks);
            return;
        }
        // A large share of the pool: a bit for each of its units, read from the left, is cheaper than sorting.
        ranks.resize(members.len() + 1 + words.next_multiple_of(2), 0);
        let (ordered, marks) = ranks.split_at_mut(members.len() + 1);
        for &m in members {
            let r = self.rank[m as usize];
            marks[(r / 32) as usize] |= 1 << (r % 32);
        }
        let mut n = 0;
        for (w, pair) in marks.chunks_exact(2).enumerate() {
            let mut left = u64::from(pair[0]) | u64::from(pair[1]) << 32;
            // Guessing whether there is another bit would cost more than to write down, and forget, a few that are not
            // there.
            for _ in 0..FEW_BITS {
                ordered[n] = 64 * w as u32 + (left | 1 << 63).trailing_zeros();
                n += usize::from(left != 0);
                left &= left.wrapping_sub(1);
            }
            while left != 0 {
                ordered[n] = 64 * w as u32 + left.trailing_zeros();
                n += 1;
                left &= left - 1;
            }
        }
        ranks.truncate(members.len());
    }

    /// The curve at H of the group with these members (positions in the pool). `scratch` is
    /// reused from group to group.
    pub fn summary(&self, members: &[u32], scratch: &mut Vec<u32>) -> Summary {
        self.order(members, scratch);
        if let Some(outcomes) = &self.outcomes {
            let group: Vec<Outcome> = scratch.iter().map(|&r| outcomes[r as usize]).collect();
            return Summary::of_outcomes(&group, self.horizon);
        }
        Summary::of_sorted(scratch.iter().map(|&r| self.by_time[r as usize]), members.len(), self.horizon)
    }

    /// The share of a group's events before H that come by each knot after 0, by its Kaplan–Meier curve; `None` without
    /// an event. Members are given by their places in the order of time, ascending, with what they count where not each
    /// counts once.
    pub(crate) fn event_shares(&self, ranks: &[u32], shares: &[f64], grid: &Grid) -> Option<[f64; CELLS]> {
        let knots = &grid.times()[1..];
        let mut out = [0.0; CELLS];
        if self.outcomes.is_some() || !are_equal(shares) {
            let curve = SurvivalCurve::of_outcomes(self.shared_outcomes(ranks, shares));
            out.iter_mut().zip(knots).for_each(|(x, t)| *x = 1.0 - curve.before(*t));
        } else {
            let (mut survival, mut at_risk, mut cell, mut i) = (1.0, ranks.len(), 0, 0);
            while i < ranks.len() && cell < CELLS {
                let (time, mut n_events, from) = (self.by_time[ranks[i] as usize].0, 0, i);
                while cell < CELLS && knots[cell] <= time {
                    out[cell] = 1.0 - survival;
                    cell += 1;
                }
                while i < ranks.len() && self.by_time[ranks[i] as usize].0 == time {
                    n_events += usize::from(self.by_time[ranks[i] as usize].1);
                    i += 1;
                }
                survival *= 1.0 - n_events as f64 / at_risk as f64;
                at_risk -= i - from;
            }
            out[cell..].fill(1.0 - survival);
        }
        let all = out[CELLS - 1];
        (all > 0.0).then(|| out.map(|x| x / all))
    }

    /// Hands on the curve at H of each group, in their order, with the places of its members in the order of time,
    /// ascending.
    pub(crate) fn summaries<'m>(
        &self,
        groups: impl Iterator<Item = &'m [u32]>,
        batch: &mut Batch,
        mut each: impl FnMut(Summary, &[u32]),
    ) {
        let Batch { curves, ranks } = batch;
        if self.outcomes.is_some() {
            groups.for_each(|members| each(self.summary(members, &mut ranks[0]), &ranks[0]));
            return;
        }
        let mut groups = groups.peekable();
        while groups.peek().is_some() {
            let mut taken = 0;
            for (ranks, members) in ranks.iter_mut().zip(groups.by_ref()) {
                self.order(members, ranks);
                taken += 1;
            }
            // Places that are left over repeat the last.
            let some = std::array::from_fn(|lane| &ranks[lane.min(taken - 1)][..]);
            let found = curves.summaries(&self.signed, some);
            found.into_iter().zip(&*ranks).take(taken).for_each(|(curve, ranks)| each(curve, ranks));
        }
    }

    /// What the group of the nearest `k` gives. `room` is left with the members and their shares.
    pub fn estimate(&self, near: Near<'_>, k: usize, room: &mut Room) -> GroupEstimate {
        let k = k.min(near.members.len());
        let places = near.places(k);
        let diameter = near.squared[..k].last().copied().unwrap_or(0.0).sqrt();
        room.shares.clear();
        if places.end == k {
            return GroupEstimate { curve: self.summary(&near.members[..k], &mut room.ranks), diameter };
        }
        let mut ranked: Vec<(u32, f64)> =
            (near.members[..places.end].iter().zip(0..)).map(|(&m, at)| (self.rank(m), places.share_of(at))).collect();
        ranked.sort_unstable_by_key(|(rank, _)| *rank);
        room.ranks.clear();
        room.ranks.extend(ranked.iter().map(|(rank, _)| *rank));
        room.shares.extend(ranked.iter().map(|(_, share)| *share));
        GroupEstimate { curve: self.shared_summary(&room.ranks, &room.shares), diameter }
    }

    /// The curve at H of members, by their places in the order of time, ascending, that count by these shares.
    fn shared_summary(&self, ranks: &[u32], shares: &[f64]) -> Summary {
        if self.outcomes.is_none() && are_equal(shares) {
            // A curve is the same whatever all of its units count.
            return Summary::of_sorted(ranks.iter().map(|&r| self.by_time[r as usize]), ranks.len(), self.horizon);
        }
        Summary::of_outcomes(&self.shared_outcomes(ranks, shares), self.horizon)
    }

    /// The outcomes of members that count by these shares.
    pub(crate) fn shared_outcomes(&self, ranks: &[u32], shares: &[f64]) -> Vec<Outcome> {
        let of = |(rank, share): (u32, f64)| {
            let plain = || Outcome::plain(self.by_time[rank as usize].0, self.by_time[rank as usize].1);
            let outcome = self.outcomes.as_ref().map_or_else(plain, |all| all[rank as usize]);
            Outcome { weight: outcome.weight * share, ..outcome }
        };
        with_shares(ranks, shares).map(of).collect()
    }

    /// The distance to the nearest of these members that is not the unit at position `own` of the cohort.
    pub fn nearest_other(&self, members: &[u32], squared: &[f64], own: Option<u32>) -> f64 {
        let other = members.iter().position(|&m| Some(self.units[m as usize]) != own);
        other.map_or(f64::INFINITY, |m| squared[m].sqrt())
    }
}

/// Whether all members of a group count alike.
pub(crate) fn are_equal(shares: &[f64]) -> bool {
    shares.iter().all(|s| *s == shares[0])
}

/// Members with what they count; without shares each counts once.
pub(crate) fn with_shares<'a>(ranks: &'a [u32], shares: &'a [f64]) -> impl ExactSizeIterator<Item = (u32, f64)> + 'a {
    ranks.iter().enumerate().map(|(i, &rank)| (rank, shares.get(i).copied().unwrap_or(1.0)))
}

/// The nearest units of one, in order of distance, with all that are as near as the last of them.
#[derive(Clone, Copy, Debug)]
pub struct Near<'a> {
    /// Positions in the pool.
    pub members: &'a [u32],
    /// Squared distances.
    pub squared: &'a [f64],
}

/// Who has a place in a group, and who shares one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Places {
    /// Members with a place of their own, from the first on.
    pub whole: usize,
    /// Members in all.
    pub end: usize,
    /// What each of the others counts.
    pub share: f64,
}

impl Places {
    /// What the member at this place in the order of distance counts.
    pub fn share_of(&self, at: usize) -> f64 {
        if at < self.whole { 1.0 } else { self.share }
    }
}

impl Near<'_> {
    /// Who is in the group of the nearest `k`.
    pub fn places(&self, k: usize) -> Places {
        let k = k.min(self.squared.len());
        let (nearer, rest) = self.squared.split_at(k);
        match (nearer.last(), rest.first()) {
            (Some(&last), Some(&next)) if is_same(last, next) => {
                let whole = nearer.partition_point(|d| !is_same(*d, last));
                let end = k + rest.partition_point(|d| is_same(last, *d));
                Places { whole, end, share: (k - whole) as f64 / (end - whole) as f64 }
            }
            _ => Places { whole: k, end: k, share: 1.0 },
        }
    }
}

/// Room for the members of a group: their places in the pool's order of time, ascending, and what they count; no
/// shares where each counts once.
#[derive(Clone, Debug, Default)]
pub struct Room {
    /// The members.
    pub ranks: Vec<u32>,
    /// What they count.
    pub shares: Vec<f64>,
}

/// A group in which places are shared. Units with the same covariates have the same one, each without itself where it
/// is left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Crowd {
    /// The members by their places in the order of time, ascending.
    ranks: Vec<u32>,
    /// Whether each is at the distance of the last place.
    is_last: Vec<bool>,
    n_last: usize,
    /// Places: K, and one more where units that are among the members are left out.
    places: usize,
    /// The nearest two: squared distance, and place in the order of time.
    nearest: [(f64, u32); 2],
    diameter: f64,
}

impl Crowd {
    /// The group of so many places of the nearest units, who are given with all that are as near as the last.
    pub(crate) fn new(pool: &Pool, near: Near<'_>, places: usize) -> Crowd {
        let found = near.places(places);
        let mut ranked: Vec<(u32, bool)> =
            near.members[..found.end].iter().zip(0..).map(|(&m, at)| (pool.rank(m), at >= found.whole)).collect();
        ranked.sort_unstable();
        let nearest =
            |at: usize| near.members.get(at).map_or((f64::INFINITY, u32::MAX), |&m| (near.squared[at], pool.rank(m)));
        Crowd {
            ranks: ranked.iter().map(|r| r.0).collect(),
            is_last: ranked.iter().map(|r| r.1).collect(),
            n_last: found.end - found.whole,
            places,
            nearest: [nearest(0), nearest(1)],
            diameter: near.squared[places - 1].sqrt(),
        }
    }

    /// The members and what they count, but for one who is left out.
    pub(crate) fn fill(&self, without: Option<u32>, room: &mut Room) {
        let left_out = without.map(|own| self.ranks.binary_search(&own).expect("the nearest of all is itself"));
        let n_last = self.n_last - left_out.map_or(0, |at| usize::from(self.is_last[at]));
        let n_others = self.ranks.len() - usize::from(left_out.is_some());
        let places = self.places - usize::from(left_out.is_some());
        let share = (places - (n_others - n_last)) as f64 / n_last as f64;
        room.ranks.clear();
        room.shares.clear();
        for at in (0..self.ranks.len()).filter(|at| Some(*at) != left_out) {
            room.ranks.push(self.ranks[at]);
            room.shares.push(if self.is_last[at] { share } else { 1.0 });
        }
    }

    /// What the group gives. `room` is left with the members and their shares.
    pub(crate) fn estimate(&self, pool: &Pool, without: Option<u32>, room: &mut Room) -> GroupEstimate {
        self.fill(without, room);
        GroupEstimate { curve: pool.shared_summary(&room.ranks, &room.shares), diameter: self.diameter }
    }

    /// The distance to the nearest member other than this one.
    pub(crate) fn nearest_other(&self, own: Option<u32>) -> f64 {
        let other = self.nearest.iter().find(|(_, rank)| Some(*rank) != own);
        other.map_or(f64::INFINITY, |(squared, _)| squared.sqrt())
    }
}

/// A crowd that is a unit's group, and the unit itself where it is left out, by its place in the order of time.
pub(crate) type Shared = (Arc<Crowd>, Option<u32>);

/// The groups of many units in one arm under one metric, unit after unit: what sums over groups need of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Groups {
    /// K.
    pub group_size: usize,
    /// The members of each group by their places in the order of time ([`Pool::rank`]), ascending; K after K.
    pub ranks: Vec<u32>,
    /// For each unit the distance to the nearest member that is not the unit itself; infinite where there is none.
    pub nearest: Vec<f64>,
    /// For each unit the group in which places are shared; its places in `ranks` mean nothing then.
    shared: Vec<Option<Shared>>,
}

/// The room of one unit's group: its members, the distance of the nearest, and who shares places.
pub(crate) type GroupRoom<'a> = (&'a mut [u32], &'a mut f64, &'a mut Option<Shared>);

impl Groups {
    /// No groups yet; each will have `k` members.
    pub(crate) fn new(k: usize) -> Groups {
        Groups { group_size: k, ranks: Vec::new(), nearest: Vec::new(), shared: Vec::new() }
    }

    /// Room for the groups of `n` units.
    pub(crate) fn blank(n: usize, k: usize) -> Groups {
        Groups { group_size: k, ranks: vec![0; n * k], nearest: vec![f64::INFINITY; n], shared: vec![None; n] }
    }

    /// The room of each unit.
    pub(crate) fn rooms(&mut self) -> impl Iterator<Item = GroupRoom<'_>> {
        let members = self.ranks.chunks_mut(self.group_size.max(1)).zip(&mut self.nearest);
        members.zip(&mut self.shared).map(|((ranks, nearest), shared)| (ranks, nearest, shared))
    }

    /// The members of the group of one unit, and what they count where not each counts once.
    pub(crate) fn members<'g>(&'g self, unit: usize, room: &'g mut Room) -> (&'g [u32], &'g [f64]) {
        match &self.shared[unit] {
            None => (&self.ranks[unit * self.group_size..(unit + 1) * self.group_size], &[]),
            Some((crowd, own)) => {
                crowd.fill(*own, room);
                (&room.ranks, &room.shares)
            }
        }
    }

    /// Appends the groups of more units, but for those that have none.
    pub(crate) fn append(&mut self, more: Groups, unserved: &[(usize, Unserved)]) {
        if unserved.is_empty() && self.nearest.is_empty() {
            *self = more;
            return;
        }
        let mut without = unserved.iter().map(|(q, _)| *q).peekable();
        for q in (0..more.nearest.len()).filter(|q| without.next_if_eq(q).is_none()) {
            self.ranks.extend_from_slice(&more.ranks[q * more.group_size..(q + 1) * more.group_size]);
            self.nearest.push(more.nearest[q]);
            self.shared.push(more.shared[q].clone());
        }
    }
}

/// Bits of a word of 64 that [`Pool::order`] takes to be there: one or two are typical.
const FEW_BITS: usize = 4;

/// Room for groups whose curves go side by side.
pub(crate) struct Batch {
    curves: Together,
    /// The places of their members in the order of time.
    ranks: [Vec<u32>; Together::LANES],
}

impl Batch {
    pub(crate) fn new(pool: &Pool, k: usize) -> Batch {
        Batch { curves: Together::new(k, pool.horizon), ranks: Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_in_order_of_time() {
        let n = 1_000;
        let outcomes: Vec<(f64, bool)> = (0..n).map(|i| (1.0 + ((i * 7_919) % 1_009) as f64, i % 3 == 0)).collect();
        let pool = Pool::of_outcomes((0..n as u32).collect(), &outcomes, 900.0);
        let mut ranks = vec![7; 3];
        // By sorting, by marks, and everybody.
        for k in [1, 5, 7, 8, 9, 64, 500, 1_000] {
            let members: Vec<u32> = (0..k).map(|i| (i * 619 % n) as u32).collect();
            let mut expected: Vec<u32> = members.iter().map(|&m| pool.rank(m)).collect();
            expected.sort_unstable();
            pool.order(&members, &mut ranks);
            assert_eq!(ranks, expected, "{k} members");
        }
    }
}
