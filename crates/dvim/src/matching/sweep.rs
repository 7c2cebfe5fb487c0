//! One axis that varies: a sorted list and two pointers.

use super::Reference;
use super::scan::{is_same, squared_distance};

/// Distinct values of the one axis, ascending, each with the positions that have it, ascending.
///
/// On one line the computed distance is monotone in |q − r|, because rounding is; axes that do not
/// vary add the same terms for every point, which keeps it monotone. So the K nearest are found going
/// outwards from the query, and only ties of the computed distance need care: a tie of two values may
/// come from both sides or from rounding, and is ordered by position.
pub(super) struct Sweep {
    axis: usize,
    values: Vec<f64>,
    /// `positions[starts[i]..starts[i + 1]]` have `values[i]`.
    starts: Vec<u32>,
    positions: Vec<u32>,
    /// Any reference point: the coordinates of the axes that do not vary.
    model: Vec<f64>,
}

impl Sweep {
    /// `None` when two axes vary.
    pub(super) fn build(reference: Reference<'_>) -> Option<Sweep> {
        let first = reference.point(0);
        let mut varies =
            (0..reference.dim()).filter(|&a| (1..reference.len()).any(|i| reference.point(i)[a] != first[a]));
        let axis = varies.next().unwrap_or(0);
        if varies.next().is_some() {
            return None;
        }
        let at = |i: u32| reference.point(i as usize)[axis];
        let mut positions: Vec<u32> = (0..reference.len() as u32).collect();
        // `partial_cmp`: −0 and 0 are the same value. Coordinates are finite.
        positions.sort_by(|&a, &b| at(a).partial_cmp(&at(b)).expect("finite"));
        let mut values: Vec<f64> = Vec::new();
        let mut starts = Vec::new();
        for (i, &position) in positions.iter().enumerate() {
            if values.last() != Some(&at(position)) {
                values.push(at(position));
                starts.push(i as u32);
            }
        }
        starts.push(positions.len() as u32);
        Some(Sweep { axis, values, starts, positions, model: first.to_vec() })
    }

    /// The `k` nearest of one query.
    pub(super) fn search(&self, query: &[f64], k: usize, scratch: &mut Scratch) {
        let Scratch { point, ties, positions, distances, is_tied } = scratch;
        *is_tied = false;
        positions.clear();
        distances.clear();
        point.clone_from(&self.model);
        let mut distance = |i: usize| {
            point[self.axis] = self.values[i];
            squared_distance(query, point)
        };
        // values[..left] and values[right..] are still to come.
        let mut right = self.values.partition_point(|&v| v < query[self.axis]);
        let mut left = right;
        let mut below = if left > 0 { Some(distance(left - 1)) } else { None };
        let mut above = if right < self.values.len() { Some(distance(right)) } else { None };
        while positions.len() < k {
            let next = match (below, above) {
                (Some(b), Some(a)) => b.min(a),
                (Some(d), None) | (None, Some(d)) => d,
                (None, None) => break,
            };
            let room = k - positions.len();
            // Positions ascend: of each value only the first `room` can be in the answer.
            let of_value = |i: usize| {
                let all = &self.positions[self.starts[i] as usize..self.starts[i + 1] as usize];
                &all[..all.len().min(room)]
            };
            ties.clear();
            let (mut values, mut all) = (0, 0);
            let n_of = |i: usize| (self.starts[i + 1] - self.starts[i]) as usize;
            while below == Some(next) {
                left -= 1;
                ties.extend_from_slice(of_value(left));
                (values, all) = (values + 1, all + n_of(left));
                below = if left > 0 { Some(distance(left - 1)) } else { None };
            }
            while above == Some(next) {
                ties.extend_from_slice(of_value(right));
                (values, all) = (values + 1, all + n_of(right));
                right += 1;
                above = if right < self.values.len() { Some(distance(right)) } else { None };
            }
            if values > 1 {
                ties.sort_unstable();
                ties.truncate(room);
            }
            positions.extend_from_slice(ties);
            distances.resize(positions.len(), next);
            *is_tied = all > room;
        }
        // The next value on either side may be the same distance but for rounding.
        if let Some(&last) = distances.last().filter(|_| positions.len() >= k) {
            *is_tied |= [below, above].into_iter().flatten().any(|next| is_same(last, next));
        }
    }

    /// All up to a squared distance, and those at the same: squared distances and positions.
    pub(super) fn within(&self, query: &[f64], squared: f64) -> Vec<(f64, u32)> {
        let mut point = self.model.clone();
        let mut out = Vec::new();
        for (i, &value) in self.values.iter().enumerate() {
            point[self.axis] = value;
            let distance = squared_distance(query, &point);
            if is_same(squared, distance) {
                let here = &self.positions[self.starts[i] as usize..self.starts[i + 1] as usize];
                out.extend(here.iter().map(|&position| (distance, position)));
            }
        }
        out
    }

    /// The place of a query on the line: neighbouring queries read neighbouring memory.
    pub(super) fn home(&self, point: &[f64]) -> u32 {
        self.values.partition_point(|&v| v < point[self.axis]) as u32
    }
}

/// The answer to one query, and what a thread needs to find it.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) positions: Vec<u32>,
    pub(super) distances: Vec<f64>,
    /// Whether others are as near as the last.
    pub(super) is_tied: bool,
    point: Vec<f64>,
    ties: Vec<u32>,
}
