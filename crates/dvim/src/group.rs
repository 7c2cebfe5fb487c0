//! The units that groups are drawn from, and what a group of them gives.

use crate::cohort::Cohort;
use crate::constraint::Unserved;
use crate::curve::{CELLS, Grid};
use crate::matching::Instructions;
use crate::outcome::Outcome;
use crate::survival::{Signed, Summary, SurvivalCurve, Together};

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
    /// Position in the cohort of each unit of the pool, ascending: ties in distance go by id.
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
    /// an event. Members are given by their places in the order of time, ascending.
    pub(crate) fn event_shares(&self, ranks: &[u32], grid: &Grid) -> Option<[f64; CELLS]> {
        let knots = &grid.times()[1..];
        let mut out = [0.0; CELLS];
        if let Some(outcomes) = &self.outcomes {
            let curve = SurvivalCurve::of_outcomes(ranks.iter().map(|&r| outcomes[r as usize]).collect());
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

    /// What the group with these members gives; `scratch` is left with their places in the order of time, ascending.
    pub fn estimate(&self, members: &[u32], squared: &[f64], scratch: &mut Vec<u32>) -> GroupEstimate {
        let curve = self.summary(members, scratch);
        GroupEstimate { curve, diameter: squared.last().copied().unwrap_or(0.0).sqrt() }
    }

    /// The distance to the nearest of these members that is not the unit at position `own` of the cohort.
    pub fn nearest_other(&self, members: &[u32], squared: &[f64], own: Option<u32>) -> f64 {
        let other = members.iter().position(|&m| Some(self.units[m as usize]) != own);
        other.map_or(f64::INFINITY, |m| squared[m].sqrt())
    }
}

/// The groups of many units in one arm under one metric, unit after unit: what sums over groups need of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Groups {
    /// K.
    pub group_size: usize,
    /// The members of each group by their places in the order of time ([`Pool::rank`]), ascending; K after K.
    pub ranks: Vec<u32>,
    /// For each unit the distance to the nearest member that is not the unit itself; infinite where there is none.
    pub nearest: Vec<f64>,
}

impl Groups {
    /// No groups yet; each will have `k` members.
    pub(crate) fn new(k: usize) -> Groups {
        Groups { group_size: k, ranks: Vec::new(), nearest: Vec::new() }
    }

    /// Room for the groups of `n` units.
    pub(crate) fn blank(n: usize, k: usize) -> Groups {
        Groups { group_size: k, ranks: vec![0; n * k], nearest: vec![f64::INFINITY; n] }
    }

    /// The room of each unit: its members, and the distance of the nearest.
    pub(crate) fn rooms(&mut self) -> impl Iterator<Item = (&mut [u32], &mut f64)> {
        self.ranks.chunks_mut(self.group_size.max(1)).zip(&mut self.nearest)
    }

    /// The members of the group of one unit.
    pub fn members(&self, unit: usize) -> &[u32] {
        &self.ranks[unit * self.group_size..(unit + 1) * self.group_size]
    }

    /// Appends the groups of more units, but for those that have none.
    pub(crate) fn append(&mut self, more: Groups, unserved: &[(usize, Unserved)]) {
        if unserved.is_empty() && self.nearest.is_empty() {
            *self = more;
            return;
        }
        let mut without = unserved.iter().map(|(q, _)| *q).peekable();
        for q in (0..more.nearest.len()).filter(|q| without.next_if_eq(q).is_none()) {
            self.ranks.extend_from_slice(more.members(q));
            self.nearest.push(more.nearest[q]);
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
