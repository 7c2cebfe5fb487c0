//! The best K so far, without a heap: candidates are appended while they are within a limit, and from
//! time to time the limit is lowered to about the K-th smallest by counting, which vectorises.

use super::coarse::{Coarse, Level};
use super::margin::Margin;
use super::scan::{is_same, squared_distance};
use super::simd::{Instructions, LANES, Lanes, Look, Words};

/// Most entries that one visit to a leaf can append, with the slack that the kernels write over.
const BURST: usize = LANES * (LANES + 1);

/// The reference points of a search: coordinates, and the position that each slot stands for.
pub(super) struct Rows<'a> {
    pub(super) dim: usize,
    pub(super) coords: &'a [f64],
    /// The row of each slot among them, where they do not stand in the order of slots.
    pub(super) row: Option<&'a [u32]>,
    pub(super) position: &'a [u32],
}

impl Rows<'_> {
    #[inline]
    pub(super) fn point(&self, slot: u32) -> &[f64] {
        let row = self.row.map_or(slot, |row| row[slot as usize]) as usize;
        &self.coords[row * self.dim..][..self.dim]
    }
}

/// The candidates of one query.
pub(super) struct Candidates {
    /// First-pass distances and slots; the first `len` count.
    near: Vec<f32>,
    slot: Vec<u32>,
    len: usize,
    k: usize,
    /// When this many have gathered, the limit is lowered.
    full: usize,
    /// No point with a larger first-pass distance is in the answer.
    pub(super) limit: f32,
    /// E of the margin, for this query.
    error: f64,
    /// The smallest squared distance of a point that was dropped though it was within the limit; no number where none
    /// was.
    dropped: f64,
    /// Slots that a look in bytes did not rule out; the first `waiting` are still to be measured.
    pending: Vec<u32>,
    waiting: usize,
    /// The query in bytes, and the least V that is not ruled out.
    level: Level,
    least: i32,
}

/// What a search by bytes works on.
pub(super) struct Looks<'a> {
    pub(super) with: Instructions,
    pub(super) margin: &'a Margin,
    pub(super) coarse: &'a Coarse,
    /// Images by slot.
    pub(super) images: &'a [f32],
    pub(super) rows: Rows<'a>,
}

/// Panels of one leaf, in bytes.
pub(super) struct Leaf<'a> {
    pub(super) panels: &'a [Words],
    pub(super) count: usize,
    pub(super) first_slot: u32,
}

/// What is known of a group whose members are not ranked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    /// The nearest two by (squared distance, position); the second is infinitely far where there is only one, both
    /// where nobody asked for them.
    pub nearest: [(f64, u32); 2],
    /// The largest squared distance.
    pub farthest: f64,
    /// Whether others are as near as the farthest.
    pub is_tied: bool,
}

impl Ends {
    const NONE: Ends = Ends { nearest: [(f64::INFINITY, u32::MAX); 2], farthest: f64::NEG_INFINITY, is_tied: false };

    /// Those of members that ascend by (squared distance, position).
    pub(super) fn of_ranked(positions: &[u32], distances: &[f64], is_tied: bool) -> Ends {
        let at = |i: usize| positions.get(i).map_or(Ends::NONE.nearest[0], |p| (distances[i], *p));
        Ends { nearest: [at(0), at(1)], farthest: distances.last().copied().unwrap_or(Ends::NONE.farthest), is_tied }
    }

    fn add(&mut self, squared: f64, position: u32) {
        self.farthest = self.farthest.max(squared);
        let [first, second] = self.nearest;
        if (squared, position) < first {
            self.nearest = [(squared, position), first];
        } else if (squared, position) < second {
            self.nearest[1] = (squared, position);
        }
    }
}

/// The answer to one query, and what the exact ranking works on.
#[derive(Default)]
pub(super) struct Ranking {
    /// The K nearest: positions in the reference set and squared distances, ascending.
    pub(super) positions: Vec<u32>,
    pub(super) distances: Vec<f64>,
    /// Whether others are as near as the last of them.
    pub(super) is_tied: bool,
    /// The ends of an answer that is not ranked, and the places of those that can be one.
    pub(super) ends: Option<Ends>,
    candidates: Vec<u32>,
    /// (bits of the squared distance, position, place in the list). Squared distances are not negative, so
    /// their bits order as they do.
    entries: Vec<(u64, u32, u32)>,
    /// Scratch of the two sorts.
    keys: Vec<i64>,
    ranks: Vec<i64>,
    starts: Vec<u32>,
    sorted: Vec<(u64, u32, u32)>,
}

/// Up to so many are sorted by counting for each how many are smaller: n² comparisons, but without a branch
/// and eight at a time.
const COUNTED: usize = 160;

impl Ranking {
    /// The `k` first by (squared distance, position) of the points in `slots`.
    pub(super) fn sort(&mut self, with: Instructions, slots: &[u32], k: usize, query: &[f64], rows: &Rows<'_>) {
        let n = slots.len();
        exact(with, slots, query, rows, &mut self.distances);
        if n <= COUNTED {
            self.keys.clear();
            self.keys.extend(self.distances.iter().map(|d| d.to_bits() as i64));
            self.keys.resize(n.next_multiple_of(8), i64::MAX);
            self.ranks.resize(self.keys.len(), 0);
            with.ranks(&self.keys, &mut self.ranks[..self.keys.len()]);
            // Without ties the ranks are 0, 1, …, n − 1. With ties their sum is smaller.
            if self.ranks[..n].iter().sum::<i64>() as usize == n * n.saturating_sub(1) / 2 {
                self.positions.clear();
                self.positions.resize(n, 0);
                for ((&slot, &key), &rank) in slots.iter().zip(&self.keys).zip(&self.ranks) {
                    self.positions[rank as usize] = rows.position[slot as usize];
                    self.distances[rank as usize] = f64::from_bits(key as u64);
                }
                self.is_tied = n > k && is_same(self.distances[k - 1], self.distances[k]);
                self.positions.truncate(k);
                self.distances.truncate(k);
                return;
            }
        }
        self.enter(slots, rows);
        let mut next = f64::NAN;
        if self.sort_by_buckets() {
            next = self.entries.get(k).map_or(next, |e| f64::from_bits(e.0));
        } else {
            if n > k {
                self.entries.select_nth_unstable(k - 1);
                next = least(&self.entries[k..]);
                self.entries.truncate(k);
            }
            self.entries.sort_unstable();
        }
        self.entries.truncate(k);
        self.is_tied = self.entries.last().is_some_and(|last| is_same(f64::from_bits(last.0), next));
        self.positions.clear();
        self.positions.extend(self.entries.iter().map(|&(_, position, _)| position));
        self.distances.clear();
        self.distances.extend(self.entries.iter().map(|&(bits, _, _)| f64::from_bits(bits)));
    }

    /// Sorts the entries by as many buckets of equal width, then by insertion. False, and nothing done, where
    /// a bucket would hold many, as with ties.
    fn sort_by_buckets(&mut self) -> bool {
        const MANY: u32 = 24;
        let n = self.entries.len();
        let ends = self.distances.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), &d| (l.min(d), h.max(d)));
        let width = (n - 1) as f64 / (ends.1 - ends.0);
        if !width.is_finite() || width <= 0.0 {
            return false;
        }
        let bucket = |bits: u64| ((f64::from_bits(bits) - ends.0) * width) as usize;
        self.starts.clear();
        self.starts.resize(n + 1, 0);
        for &(bits, _, _) in &self.entries {
            self.starts[bucket(bits).min(n - 1) + 1] += 1;
        }
        if self.starts.iter().any(|&size| size > MANY) {
            return false;
        }
        for i in 1..=n {
            self.starts[i] += self.starts[i - 1];
        }
        self.sorted.resize(n, (0, 0, 0));
        for &entry in &self.entries {
            let start = &mut self.starts[bucket(entry.0).min(n - 1)];
            self.sorted[*start as usize] = entry;
            *start += 1;
        }
        for i in 1..n {
            let entry = self.sorted[i];
            let mut at = i;
            while at > 0 && self.sorted[at - 1] > entry {
                self.sorted[at] = self.sorted[at - 1];
                at -= 1;
            }
            self.sorted[at] = entry;
        }
        std::mem::swap(&mut self.entries, &mut self.sorted);
        true
    }

    fn enter(&mut self, slots: &[u32], rows: &Rows<'_>) {
        self.entries.clear();
        let pairs = slots.iter().zip(&self.distances).enumerate();
        self.entries.extend(pairs.map(|(i, (&slot, d))| (d.to_bits(), rows.position[slot as usize], i as u32)));
    }
}

impl Candidates {
    pub(super) fn new(with: Instructions, k: usize) -> Candidates {
        let full = k + k.max(2 * LANES);
        let room = full + if with.are_coarse() { LANES } else { BURST };
        Candidates {
            near: vec![0.0; room],
            slot: vec![0; room],
            len: 0,
            k,
            full,
            limit: f32::MAX,
            error: 0.0,
            dropped: f64::NAN,
            pending: vec![0; if with.are_coarse() { LANES + BURST } else { 0 }],
            waiting: 0,
            level: Level::default(),
            least: i32::MIN,
        }
    }

    /// Forgets the last query.
    pub(super) fn reset(&mut self, error: f64) {
        self.len = 0;
        self.limit = f32::MAX;
        self.error = error;
        self.dropped = f64::NAN;
    }

    /// Visits panels of one leaf; see [`Instructions::scan_panels`].
    #[inline]
    pub(super) fn visit(
        &mut self,
        with: Instructions,
        query: &[f32],
        panels: &[Lanes],
        which: u16,
        early: usize,
        first_slot: u32,
    ) {
        self.len = with.scan_panels(
            query,
            panels,
            which,
            self.limit,
            early,
            first_slot,
            &mut self.near,
            &mut self.slot,
            self.len,
        );
    }

    /// Takes the K-th to be no farther than this squared distance, for the time being.
    pub(super) fn trust(&mut self, margin: &Margin, squared: f64) {
        self.limit = margin.limit_of_exact(squared, self.error);
    }

    /// Forgets what was found within a limit that was too short.
    pub(super) fn again(&mut self) {
        self.reset(self.error);
    }

    /// Puts the query into bytes.
    pub(super) fn level(&mut self, on: &Looks<'_>, image: &[f32]) {
        on.coarse.level(image, &mut self.level);
        self.waiting = 0;
        self.least = on.coarse.least(&self.level, self.limit, on.margin);
    }

    /// Begins with the leaf where the query lives. With a `stretch` the K-th of all is taken to lie where half as many
    /// of the leaf end in bytes, times this: true, and the limit must be proven at the end. Else about K of the
    /// leaf, those that are nearest in bytes, are measured.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn begin(
        &mut self,
        on: &Looks<'_>,
        leaf: &Leaf<'_>,
        image: &[f32],
        query: &[f64],
        stretch: Option<f32>,
        (values, guess): (&mut [f32], &mut f32),
        ranking: &mut Ranking,
    ) -> bool {
        let n = leaf.count * LANES;
        if self.k >= n {
            self.look(on, leaf, image, query, ranking);
            return false;
        }
        let values = &mut values[..n];
        on.with.coarse_values(&self.level.words, leaf.panels, leaf.count, self.level.constant(), values);
        // Queries of a group live near each other: the cut of the last is a good guess.
        let k = if stretch.is_some() { self.k.div_ceil(2) } else { self.k };
        let mut cut = on.with.threshold(values, k, k / 8, *guess).min(Coarse::MOST_VALUE);
        *guess = cut;
        if let Some(stretch) = stretch {
            self.lower(on, on.coarse.squared(cut) * stretch);
            cut = f32::NEG_INFINITY;
        } else {
            self.waiting = on.with.between(values, f32::NEG_INFINITY, cut, leaf.first_slot, &mut self.pending);
            self.measure(on, image, query, 0, ranking);
            if self.len >= self.k {
                let (_, most) = on.with.range(&self.near[..self.len]);
                self.lower(on, on.margin.limit(most, self.error));
            }
        }
        // Of the others, those that the limit does not rule out.
        let most = self.level.value(self.least).min(Coarse::MOST_VALUE);
        self.waiting = on.with.between(values, cut, most, leaf.first_slot, &mut self.pending);
        self.measure(on, image, query, LANES - 1, ranking);
        stretch.is_some()
    }

    /// Looks at a leaf, and measures what was not ruled out as soon as there are enough to fill the registers.
    #[inline]
    pub(super) fn look(
        &mut self,
        on: &Looks<'_>,
        leaf: &Leaf<'_>,
        image: &[f32],
        query: &[f64],
        ranking: &mut Ranking,
    ) {
        Candidates::find([self], on, leaf);
        if self.waiting >= LANES {
            self.measure(on, image, query, LANES - 1, ranking);
        }
    }

    /// Looks at a leaf with several queries at once, and leaves what was not ruled out waiting.
    #[inline]
    pub(super) fn find<const N: usize>(queries: [&mut Candidates; N], on: &Looks<'_>, leaf: &Leaf<'_>) {
        let mut looks =
            queries.map(|c| Look { words: &c.level.words, least: c.least, slots: &mut c.pending, len: &mut c.waiting });
        on.with.coarse_slots(&mut looks, leaf.panels, leaf.count, leaf.first_slot);
    }

    /// Whether enough wait to fill the registers.
    #[inline]
    pub(super) fn many_wait(&self) -> bool {
        self.waiting >= LANES
    }

    /// Measures pending points until at most `left` wait.
    pub(super) fn measure(&mut self, on: &Looks<'_>, image: &[f32], query: &[f64], left: usize, ranking: &mut Ranking) {
        while self.waiting > left {
            let from = self.waiting.saturating_sub(LANES);
            let slots = &self.pending[from..self.waiting];
            self.len = on.with.fine(image, on.images, slots, self.limit, &mut self.near, &mut self.slot, self.len);
            self.waiting = from;
            if self.is_full() {
                self.tighten(on.with, on.margin);
                if self.is_full() {
                    self.settle(on.with, on.margin, query, &on.rows, ranking);
                }
                self.lower(on, self.limit);
            }
        }
    }

    fn lower(&mut self, on: &Looks<'_>, limit: f32) {
        self.limit = self.limit.min(limit);
        self.least = on.coarse.least(&self.level, self.limit, on.margin);
    }

    /// Whether it is time to lower the limit.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.len >= self.full
    }

    /// About the K-th smallest: those that are gathered were all within the limit, and most are near it.
    fn guess(&self) -> f32 {
        if self.limit < f32::MAX { self.limit * (1.0 + self.k as f32 / self.len as f32) * 0.5 } else { self.near[0] }
    }

    /// Lowers the limit to just above the K-th smallest so far and drops what is beyond it.
    pub(super) fn tighten(&mut self, with: Instructions, margin: &Margin) {
        if self.len <= self.k {
            return;
        }
        let kth = with.threshold(&self.near[..self.len], self.k, self.k / 8, self.guess());
        self.limit = self.limit.min(margin.limit(kth, self.error));
        self.len = with.compact(&mut self.near[..self.len], &mut self.slot[..self.len], self.limit);
    }

    /// After a visit to the leaf where the query lives: takes the K-th of all to lie where some of the leaf end, times
    /// `stretch`. False, and nothing done, where the leaf says too little. Else the limit must be proven at the end.
    pub(super) fn expect(&mut self, with: Instructions, margin: &Margin, stretch: f32) -> bool {
        let some = (self.k / 2).min(self.len / 3);
        if some < LANES || self.limit < f32::MAX {
            return false;
        }
        let end = with.threshold(&self.near[..self.len], some, some / 8, self.near[0]);
        self.limit = margin.limit(end * stretch, self.error);
        self.len = with.compact(&mut self.near[..self.len], &mut self.slot[..self.len], self.limit);
        true
    }

    /// Makes room for another visit even when ties keep [`Candidates::tighten`] from dropping any:
    /// ranks exactly and keeps K.
    #[cold]
    pub(super) fn settle(
        &mut self,
        with: Instructions,
        margin: &Margin,
        query: &[f64],
        rows: &Rows<'_>,
        ranking: &mut Ranking,
    ) {
        if self.len <= self.k {
            return;
        }
        exact(with, &self.slot[..self.len], query, rows, &mut ranking.distances);
        ranking.enter(&self.slot[..self.len], rows);
        let best = &mut ranking.entries;
        best.select_nth_unstable(self.k - 1);
        self.dropped = self.dropped.min(least(&best[self.k..]));
        best.truncate(self.k);
        let kth = f64::from_bits(best[self.k - 1].0);
        self.limit = self.limit.min(margin.limit_of_exact(kth, self.error));
        // Back in the order of the list: each moves to the front, over entries that were read before.
        best.sort_unstable_by_key(|&(_, _, place)| place);
        for (to, &(_, _, place)) in best.iter().enumerate() {
            self.near[to] = self.near[place as usize];
            self.slot[to] = self.slot[place as usize];
        }
        self.len = self.k;
    }

    /// Lowers the limit for the last time, and asks for what an answer will read first. Of a limit that was tried:
    /// whether it held all that can be in the answer, which are those within `limit(t)`, t being the K-th smallest.
    pub(super) fn close(&mut self, with: Instructions, margin: &Margin, rows: &Rows<'_>, is_tried: bool) -> bool {
        let mut most = f32::NAN;
        if self.len > self.k {
            most = with.threshold(&self.near[..self.len], self.k, 0, self.guess());
            let limit = margin.limit(most, self.error);
            if is_tried && limit > self.limit {
                return false;
            }
            self.len = with.compact(&mut self.near[..self.len], &mut self.slot[..self.len], limit);
        } else if is_tried {
            let (_, farthest) = with.range(&self.near[..self.len]);
            if self.len < self.k || margin.limit(farthest, self.error) > self.limit {
                return false;
            }
        }
        if let Some(at) = self.near[..self.len].iter().position(|d| *d == most) {
            with.fetch(rows.point(self.slot[at]));
        }
        true
    }

    /// The answer after [`Candidates::close`]: K ranked exactly.
    pub(super) fn finish(&mut self, with: Instructions, query: &[f64], rows: &Rows<'_>, ranking: &mut Ranking) {
        ranking.sort(with, &self.slot[..self.len], self.k, query, rows);
        self.mark_tie(ranking);
    }

    /// Points that were dropped may be as near as the last.
    fn mark_tie(&self, ranking: &mut Ranking) {
        ranking.is_tied |= ranking.distances.last().is_some_and(|last| is_same(*last, self.dropped));
    }

    /// The answer after [`Candidates::close`] as a set: who the K are, in any order, and the ends of their distances;
    /// the near end only where `nearest`.
    ///
    /// Where the limit leaves exactly K they are the answer, and only those are measured exactly that can be an end.
    /// For any t, points with a first-pass distance above `limit(t)` are truly farther than those of at most t (the
    /// margin's statement for K = 1). So, with t the second smallest, none above `limit(t)` is among the nearest
    /// two. And `limit(t) − t` grows with t, so that those more than `limit(m) − m` below the largest, m, are truly
    /// nearer than its point; twice that covers the rounding of the subtraction, which is smaller by orders.
    pub(super) fn finish_set(
        &mut self,
        with: Instructions,
        margin: &Margin,
        query: &[f64],
        rows: &Rows<'_>,
        nearest: bool,
        ranking: &mut Ranking,
    ) {
        if self.len > self.k {
            ranking.sort(with, &self.slot[..self.len], self.k, query, rows);
            self.mark_tie(ranking);
            ranking.ends = Some(Ends::of_ranked(&ranking.positions, &ranking.distances, ranking.is_tied));
            return;
        }
        let (near, slots) = (&self.near[..self.len], &self.slot[..self.len]);
        let (_, most) = with.range(near);
        let mut low = f32::NEG_INFINITY;
        if nearest {
            let (mut least, mut second) = (f32::INFINITY, f32::INFINITY);
            for &d in near {
                second = second.min(d.max(least));
                least = least.min(d);
            }
            low = margin.limit(if second.is_finite() { second } else { most }, self.error);
        }
        let high = most - 2.0 * (margin.limit(most, self.error) - most);
        let mut ends = Ends::NONE;
        ranking.positions.clear();
        ranking.positions.extend(slots.iter().map(|&slot| rows.position[slot as usize]));
        ranking.candidates.resize(self.len.next_multiple_of(LANES), 0);
        let n = with.outside(near, low, high, &mut ranking.candidates);
        for &i in &ranking.candidates[..n] {
            ends.add(squared_distance(query, rows.point(slots[i as usize])), ranking.positions[i as usize]);
        }
        // All others are beyond the limit, but for those that were dropped within it.
        ends.is_tied = is_same(ends.farthest, self.dropped);
        ranking.ends = Some(ends);
    }
}

/// The smallest squared distance of some entries; no number where there is none.
fn least(entries: &[(u64, u32, u32)]) -> f64 {
    entries.iter().map(|e| e.0).min().map_or(f64::NAN, f64::from_bits)
}

/// Exact distances of the points in `slots`: the sum of [`squared_distance`], eight points at a time.
fn exact(with: Instructions, slots: &[u32], query: &[f64], rows: &Rows<'_>, distances: &mut Vec<f64>) {
    let p = rows.dim;
    let query = &query[..p];
    distances.clear();
    let row = |slot: u32| rows.point(slot);
    let mut groups = slots.chunks_exact(8);
    for group in &mut groups {
        distances.extend_from_slice(&with.exact(query, &std::array::from_fn(|i| row(group[i]))));
    }
    distances.extend(groups.remainder().iter().map(|&slot| squared_distance(query, row(slot))));
}
