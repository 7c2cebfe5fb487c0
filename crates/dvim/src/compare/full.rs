//! Optimal full matching on a score of one dimension.
//!
//! Every unit is put into a subclass with at least one treated and one control unit, one of the two arms being
//! a single unit there, such that the sum over subclasses of the distances between that unit and the others is the
//! smallest possible (Rosenbaum 1991; Hansen 2004), without bounds on the size of subclasses.
//!
//! # How: a convex path
//! Subclasses are the stars of a cheapest edge cover between the arms. Sort units by score; let `f_i` be the edges
//! across the gap after unit i that start left at a treated unit, minus those that start left at a control unit.
//! The degree of a treated unit is `f_i − f_{i−1}`, that of a control unit `f_{i−1} − f_i`; each is at least 1, and the
//! cover costs at least `Σ |f_i| gap_i`. Conversely any integer path with `f_0 = f_n = 0` whose steps are at least 1 up
//! at treated and at least 1 down at control units is a cover of exactly that cost: go from left to right, let each
//! unit close as many open edges of the other arm as its degree allows and open the rest. So the optimum
//! is the cheapest such path, and its dynamic programme
//!
//! `F_i(f) = |f| gap_i + min F_{i−1}(g)` over `g ≤ f − 1` (treated) or `g ≥ f + 1` (control)
//!
//! is convex: the minimum drops one slope and shifts by one, the cost adds a kink at 0. Kinks are kept in
//! two ordered maps (left and right of the minimum), of each `F_i` only a minimiser `m_i` is remembered, and going back
//! `f_{i−1} = min(m_{i−1}, f_i − 1)` or `max(m_{i−1}, f_i + 1)`. O(n log n). Derivation: `docs/methods-compare.md`,
//! full-path and full-programme.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use super::{InvalidInput, check_finite, check_length};

/// An optimal full matching.
#[derive(Clone, Debug, PartialEq)]
pub struct FullMatching {
    /// The subclass of each unit, 0, 1, …, numbered from the lowest score to the highest.
    pub subclass: Vec<usize>,
    /// Number of subclasses.
    pub n_subclasses: usize,
    /// Sum over subclasses of the distances between the single unit and the others.
    pub total_distance: f64,
    /// Weight of each unit for an average over everybody: size of its subclass over the units of its arm there.
    /// In each arm the weights sum to n, so a weighted Kaplan–Meier curve of an arm estimates the survival of all
    /// units under that arm. (The weights of MatchIt for the ATE, before scaling to mean 1; scaling leaves the curve.)
    pub weights: Vec<f64>,
}

/// Matches all units in full, at the smallest total distance `Σ |score − score|`.
///
/// Among matchings of equal distance (ties in the score) the answer is definite: units are taken by score, then control
/// before treated, then by row, and the path nearest to 0 is chosen.
pub fn full_match(score: &[f64], treated: &[bool]) -> Result<FullMatching, InvalidInput> {
    let n = score.len();
    check_length("treated", n, treated.len())?;
    check_finite("score", score, 1)?;
    if n == 0 {
        return Err(InvalidInput::Empty);
    }
    if treated.iter().all(|&z| z == treated[0]) {
        return Err(InvalidInput::OneArm);
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_unstable_by(|&a, &b| {
        let scores = score[a].partial_cmp(&score[b]).unwrap_or(Ordering::Equal);
        scores.then_with(|| treated[a].cmp(&treated[b])).then_with(|| a.cmp(&b))
    });
    let arm: Vec<bool> = order.iter().map(|&i| treated[i]).collect();
    // Halved, so that a gap between two finite numbers is finite.
    let half: Vec<f64> = order.iter().map(|&i| 0.5 * score[i]).collect();
    let path = cheapest_path(&half, &arm);
    let edges = star_edges(&path, &arm);
    Ok(subclasses(&order, &arm, &half, &edges))
}

/// A convex function of an integer by its kinks: `left` holds where its slope changes below the minimum,
/// `right` above. Keys are positions less `offset`.
struct Convex {
    left: BTreeMap<i64, f64>,
    right: BTreeMap<i64, f64>,
    offset: i64,
}

impl Convex {
    /// 0 at 0, infinite elsewhere.
    fn at_zero() -> Self {
        Self { left: BTreeMap::from([(0, f64::INFINITY)]), right: BTreeMap::from([(0, f64::INFINITY)]), offset: 0 }
    }

    /// `F(f) ← min F(g)` over `g ≤ f − 1` (treated) or `g ≥ f + 1` (control).
    fn pass(&mut self, treated: bool) {
        if treated {
            self.right.clear();
            self.offset += 1;
        } else {
            self.left.clear();
            self.offset -= 1;
        }
    }

    /// `F(f) ← F(f) + gap · |f|`: two kinks of one gap each at 0, one of which belongs on either side of the new
    /// minimum.
    fn add_absolute(&mut self, gap: f64) {
        if gap <= 0.0 {
            return;
        }
        let zero = -self.offset;
        let (lower, upper) = self.minimisers();
        if lower <= 0 && 0 <= upper {
            *self.left.entry(zero).or_insert(0.0) += gap;
            *self.right.entry(zero).or_insert(0.0) += gap;
            return;
        }
        let down = lower > 0;
        let (from, to) = if down { (&mut self.left, &mut self.right) } else { (&mut self.right, &mut self.left) };
        *from.entry(zero).or_insert(0.0) += 2.0 * gap;
        // The minimum moves towards 0 past kinks of one gap in total.
        let mut remaining = gap;
        while remaining > 0.0 {
            let nearest = if down { from.pop_last() } else { from.pop_first() };
            let Some((key, weight)) = nearest else { break };
            let moved = weight.min(remaining);
            if weight > moved {
                from.insert(key, weight - moved);
            }
            *to.entry(key).or_insert(0.0) += moved;
            remaining -= moved;
        }
    }

    /// The first and last minimiser. Every kink on the left is at or below every kink on the right.
    fn minimisers(&self) -> (i64, i64) {
        let lower = self.left.last_key_value().map_or(i64::MIN, |(key, _)| key + self.offset);
        let upper = self.right.first_key_value().map_or(i64::MAX, |(key, _)| key + self.offset);
        (lower, upper)
    }

    /// The minimiser nearest to 0.
    fn minimiser(&self) -> i64 {
        let (lower, upper) = self.minimisers();
        0.max(lower).min(upper)
    }
}

/// The cheapest path `f_0 … f_n`; units in order of score.
fn cheapest_path(score: &[f64], arm: &[bool]) -> Vec<i64> {
    let n = arm.len();
    let mut function = Convex::at_zero();
    let mut minimisers = vec![0; n + 1];
    for i in 0..n {
        function.pass(arm[i]);
        if i + 1 < n {
            function.add_absolute(score[i + 1] - score[i]);
        }
        minimisers[i + 1] = function.minimiser();
    }
    let mut path = vec![0; n + 1];
    for i in (0..n).rev() {
        path[i] = if arm[i] { minimisers[i].min(path[i + 1] - 1) } else { minimisers[i].max(path[i + 1] + 1) };
    }
    path
}

/// The path as edges between positions, without those that no unit needs: what is left is stars.
fn star_edges(path: &[i64], arm: &[bool]) -> Vec<(usize, usize)> {
    let n = arm.len();
    let mut edges: Vec<(usize, usize)> = Vec::with_capacity(n);
    let mut degree = vec![0_u32; n];
    // Open edges, all of one arm, oldest first.
    let mut open: VecDeque<usize> = VecDeque::new();
    for i in 0..n {
        let wanted = (path[i + 1] - path[i]).unsigned_abs() as usize;
        for _ in 0..wanted {
            match open.front() {
                Some(&j) if arm[j] != arm[i] => {
                    open.pop_front();
                    edges.push((j, i));
                    degree[j] += 1;
                    degree[i] += 1;
                }
                _ => open.push_back(i),
            }
        }
    }
    edges.retain(|&(a, b)| {
        let spare = degree[a] > 1 && degree[b] > 1;
        if spare {
            degree[a] -= 1;
            degree[b] -= 1;
        }
        !spare
    });
    edges
}

fn subclasses(order: &[usize], arm: &[bool], half: &[f64], edges: &[(usize, usize)]) -> FullMatching {
    let n = order.len();
    // A star has one unit to which all its edges go: label it by its first position.
    let mut label: Vec<usize> = (0..n).collect();
    let mut degree = vec![0_u32; n];
    for &(a, b) in edges {
        degree[a] += 1;
        degree[b] += 1;
    }
    let mut total_distance = 0.0;
    for &(a, b) in edges {
        total_distance += 2.0 * (half[b] - half[a]);
        let (single, other) = if degree[a] > 1 { (a, b) } else { (b, a) };
        label[other] = single;
    }
    let mut number = vec![usize::MAX; n];
    let mut subclass = vec![0; n];
    let mut counts: Vec<[f64; 2]> = Vec::new();
    for i in 0..n {
        let star = &mut number[label[i]];
        if *star == usize::MAX {
            *star = counts.len();
            counts.push([0.0; 2]);
        }
        subclass[order[i]] = *star;
        counts[*star][usize::from(arm[i])] += 1.0;
    }
    let mut weights = vec![0.0; n];
    for i in 0..n {
        let [control, treated] = counts[subclass[order[i]]];
        weights[order[i]] = (control + treated) / if arm[i] { treated } else { control };
    }
    FullMatching { subclass, n_subclasses: counts.len(), total_distance, weights }
}
