//! A block kd-tree: nodes of 16 children, leaves of up to 16 panels of 16 points, tight boxes over the
//! leading axes. Queries that live near each other walk it together, so that a leaf is in the first-level
//! cache when the second of them needs it. Where boxes exclude nothing the walk *is* a blocked scan.

use super::coarse::{self, Coarse};
use super::margin::Margin;
use super::scan::{is_same, squared_distance};
use super::select::{Candidates, Ends, Leaf, Looks, Ranking, Rows};
use super::simd::{Instructions, LANES, Lanes, Words};
use super::{Points, Reference};
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Queries that walk together.
pub(super) const GROUP: usize = 16;
/// Points of a full leaf.
const LEAF: usize = LANES * LANES;
/// Most axes that boxes know of. Bounds over fewer axes are lower, never wrong.
const BOX_AXES: usize = 12;
/// Points that one task of the preparation takes.
pub(super) const CHUNK: usize = 4096;
/// A position that no point has: the filling of a panel's last lanes.
pub(super) const ABSENT: u32 = u32::MAX;
/// The home of a query that nobody has looked for.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// Children are nodes `first..first + count`, or, in a leaf, panels.
#[derive(Clone, Copy)]
struct Node {
    first: u32,
    count: u16,
    is_leaf: bool,
}

pub(super) struct Tree<'a> {
    margin: Margin,
    with: Instructions,
    dim: usize,
    box_axes: usize,
    early: usize,
    nodes: Vec<Node>,
    /// For each node, axis by axis: 16 lower ends and 16 upper ends of its children.
    boxes: Vec<Lanes>,
    images: Images,
    /// The points as given: by slot, or where they stand among others, with the row of each slot.
    coords: Cow<'a, [f64]>,
    row: Option<Vec<u32>>,
    /// The position of each slot in the reference set.
    position: Vec<u32>,
    /// Of the limits that hints give, and of those that the leaf of a query gives.
    hinted: Stretch,
    expected: Stretch,
}

/// By how much a limit is stretched before it is tried, as the bits of an `f32`. Learned on the way; nothing but time
/// depends on it.
struct Stretch(AtomicU32);

impl Stretch {
    /// Limits that must be stretched farther than this are no better than what the leaf of a query proves.
    const WORTH: f32 = 2.0;

    fn new() -> Stretch {
        Stretch(AtomicU32::new(f32::to_bits(1.15)))
    }

    fn get(&self) -> f32 {
        f32::from_bits(self.0.load(Relaxed))
    }

    /// One in forty too short: more second walks cost more than they save, fewer make all others walk farther.
    fn learn(&self, tried: u32, too_short: u32) {
        if tried != 0 {
            let change = ((tried & too_short).count_ones() * 39) as f32 - (tried & !too_short).count_ones() as f32;
            self.0.store((self.get() * (1.0 + 0.001 * change)).clamp(0.25, 8.0).to_bits(), Relaxed);
        }
    }
}

/// What is asked of a search.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// K members in order.
    Ranked,
    /// K members in any order with the largest of their distances, and with the nearest two.
    Set { nearest: bool },
}

/// Images of the points.
enum Images {
    /// Panel by panel, axis-major: for processors that measure every point.
    Panels(Vec<Lanes>),
    /// Row by row in the order of slots, and before them panels in bytes: for those that look first.
    Rows { coarse: Coarse, words: Vec<Words>, rows: Vec<f32> },
}

impl<'a> Tree<'a> {
    /// With `shared` points, of which the reference are some rows, none is copied.
    pub(super) fn build(reference: Reference<'_>, shared: Option<&'a Points>, with: Instructions) -> Tree<'a> {
        let p = reference.dim();
        let n = reference.len();
        let (margin, images) = Margin::of(reference, with);
        let box_axes = p.min(BOX_AXES);
        let mut ids: Vec<u32> = (0..n as u32).collect();
        let builder = Builder { images: &images, dim: p, axes: box_axes };
        let Part { nodes, boxes, position, .. } = builder.subtree(&mut ids);
        let with = if with.are_coarse() && p > coarse::MOST_AXES { Instructions::without_bytes() } else { with };
        let images = if with.are_coarse() {
            Images::in_rows(&images, p, &position, with)
        } else {
            Images::in_panels(&images, p, &position)
        };
        let (coords, row) = match (shared, reference.rows) {
            (Some(points), Some(rows)) => {
                // Of absent slots any row will do.
                let row = position.iter().map(|&at| if at == ABSENT { 0 } else { rows[at as usize] }).collect();
                (Cow::Borrowed(&points.coords[..]), Some(row))
            }
            _ => {
                let mut coords = vec![0.0; position.len() * p];
                coords.par_chunks_exact_mut(p).zip(&position).with_min_len(CHUNK).for_each(|(out, &at)| {
                    if at != ABSENT {
                        out.copy_from_slice(reference.point(at as usize));
                    }
                });
                (Cow::Owned(coords), None)
            }
        };
        Tree {
            margin,
            with,
            dim: p,
            box_axes,
            early: if p > 12 { 8 } else { p },
            nodes,
            boxes,
            images,
            coords,
            row,
            position,
            hinted: Stretch::new(),
            expected: Stretch::new(),
        }
    }

    /// What a search by bytes works on; `None` where every point is measured.
    fn looks(&self) -> Option<Looks<'_>> {
        let Images::Rows { coarse, rows, .. } = &self.images else { return None };
        Some(Looks { with: self.with, margin: &self.margin, coarse, images: rows, rows: self.rows() })
    }

    fn rows(&self) -> Rows<'_> {
        Rows { dim: self.dim, coords: &self.coords, row: self.row.as_deref(), position: &self.position }
    }

    fn gaps(&self, node: usize, image: &[f32]) -> [f32; LANES] {
        let size = 2 * self.box_axes;
        self.with.box_gaps(image, &self.boxes[node * size..(node + 1) * size])
    }

    /// Where a query lives.
    pub(super) fn home(&self, point: &[f64], image: &mut [f32]) -> u32 {
        if self.margin.image(point, image).is_none() { 0 } else { self.home_of(image) }
    }

    /// The leaf whose box is nearest, going down greedily.
    fn home_of(&self, image: &[f32]) -> u32 {
        let mut at = 0;
        while !self.nodes[at].is_leaf {
            let gaps = self.gaps(at, image);
            let mut best = 0;
            for c in 1..self.nodes[at].count as usize {
                if gaps[c] < gaps[best] {
                    best = c;
                }
            }
            at = self.nodes[at].first as usize + best;
        }
        at as u32
    }

    /// Finds the `k` nearest of up to [`GROUP`] queries, given with their homes, and hands each answer on: ranked, or
    /// as a set with its ends. A hint is a squared distance near which the `k`-th of a query may lie: the walk
    /// begins with it as its limit, or with one that the leaf of the query gives, and is made again without where
    /// that was too short.
    pub(super) fn search(
        &self,
        queries: &Points,
        members: &[(u32, u32)],
        walk: &mut Walk,
        wanted: Wanted,
        hints: Option<&[f64]>,
        mut answer: impl FnMut(usize, &Ranking),
    ) {
        let rows = self.rows();
        let looks = self.looks();
        let stretch = self.hinted.get();
        let expected = Some(self.expected.get()).filter(|s| *s < Stretch::WORTH);
        let (mut active, mut hinted, mut tried) = (0_u32, 0_u32, 0_u32);
        for (i, &(home, query)) in members.iter().enumerate() {
            if let Some(&(_, next)) = members.get(i + 1) {
                self.with.fetch(queries.point(next as usize));
            }
            let image = &mut walk.images[i * self.dim..(i + 1) * self.dim];
            let Some(residual) = self.margin.image(queries.point(query as usize), image) else {
                continue;
            };
            active |= 1 << i;
            walk.found[i].reset(self.margin.error(residual));
            if let Some(hint) = hints.map(|h| h[query as usize] * f64::from(stretch)).filter(|h| *h > 0.0) {
                hinted |= 1 << i;
                walk.found[i].trust(&self.margin, hint);
                if let Some(on) = &looks {
                    walk.found[i].level(on, &walk.images[i * self.dim..(i + 1) * self.dim]);
                }
            } else if self.begin(i, home, queries.point(query as usize), expected, &looks, walk) {
                tried |= 1 << i;
            }
        }
        walk.begun = active & !hinted;
        self.descend(0, active, 0, &looks, queries, members, walk);
        let again = self.close(active, hinted | tried, &looks, &rows, queries, members, walk);
        self.hinted.learn(hinted, again);
        self.expected.learn(tried, again);
        if again != 0 {
            for i in bits(again) {
                walk.found[i].again();
                let (home, query) = members[i];
                self.begin(i, home, queries.point(query as usize), None, &looks, walk);
            }
            walk.begun = again;
            self.descend(0, again, 0, &looks, queries, members, walk);
            self.close(again, 0, &looks, &rows, queries, members, walk);
        }
        for (i, &(_, query)) in members.iter().enumerate() {
            let point = queries.point(query as usize);
            let ranking = &mut walk.ranking;
            match active & (1 << i) != 0 {
                true if wanted == Wanted::Ranked => walk.found[i].finish(self.with, point, &rows, ranking),
                true => {
                    let nearest = wanted == Wanted::Set { nearest: true };
                    walk.found[i].finish_set(self.with, &self.margin, point, &rows, nearest, ranking);
                }
                false => {
                    self.everything(point, &rows, walk.k, ranking);
                    ranking.ends = Some(Ends::of_ranked(&ranking.positions, &ranking.distances, ranking.is_tied));
                }
            }
            answer(query as usize, ranking);
        }
    }

    /// The first limit of a query: from the leaf where it lives. True where it is one to be tried.
    fn begin(
        &self,
        i: usize,
        home: u32,
        point: &[f64],
        stretch: Option<f32>,
        looks: &Option<Looks<'_>>,
        walk: &mut Walk,
    ) -> bool {
        let home = match home {
            UNKNOWN => self.home_of(&walk.images[i * self.dim..(i + 1) * self.dim]),
            known => known,
        };
        walk.homes[i] = home;
        let Some(on) = looks else {
            self.leaf(home as usize, i, !0, point, walk);
            if stretch.is_some_and(|stretch| walk.found[i].expect(self.with, &self.margin, stretch)) {
                return true;
            }
            walk.found[i].tighten(self.with, &self.margin);
            return false;
        };
        let Walk { images, found, values, guess, ranking, .. } = walk;
        let image = &images[i * self.dim..(i + 1) * self.dim];
        found[i].level(on, image);
        found[i].begin(on, &self.leaf_in_bytes(home as usize), image, point, stretch, (values, guess), ranking)
    }

    /// Ends the walks of these queries. Gives those of `tried` whose limit was too short.
    #[allow(clippy::too_many_arguments)]
    fn close(
        &self,
        which: u32,
        tried: u32,
        looks: &Option<Looks<'_>>,
        rows: &Rows<'_>,
        queries: &Points,
        members: &[(u32, u32)],
        walk: &mut Walk,
    ) -> u32 {
        let mut again = 0;
        for i in bits(which) {
            if let Some(on) = looks {
                let point = queries.point(members[i].1 as usize);
                let image = &walk.images[i * self.dim..(i + 1) * self.dim];
                walk.found[i].measure(on, image, point, 0, &mut walk.ranking);
            }
            let is_tried = tried & (1 << i) != 0;
            if !walk.found[i].close(self.with, &self.margin, rows, is_tried) {
                again |= 1 << i;
            }
        }
        again
    }

    /// All points up to a squared distance, and those at the same: squared distances and positions.
    pub(super) fn within(&self, query: &[f64], squared: f64) -> Vec<(f64, u32)> {
        let mut image = vec![0.0; self.dim];
        let limit = match self.margin.image(query, &mut image) {
            Some(residual) => self.margin.limit_of_exact(squared, self.margin.error(residual)),
            None => f32::INFINITY,
        };
        let (rows, mut out, mut open) = (self.rows(), Vec::new(), vec![0_usize]);
        while let Some(at) = open.pop() {
            let node = self.nodes[at];
            let gaps = self.gaps(at, &image);
            for c in (0..node.count as usize).filter(|&c| gaps[c] <= limit || limit == f32::INFINITY) {
                let child = node.first as usize + c;
                if !node.is_leaf {
                    open.push(child);
                    continue;
                }
                for slot in child * LANES..(child + 1) * LANES {
                    let position = self.position[slot];
                    if position != ABSENT {
                        let distance = squared_distance(query, rows.point(slot as u32));
                        if is_same(squared, distance) {
                            out.push((distance, position));
                        }
                    }
                }
            }
        }
        out
    }

    /// A query out of the range of `f32`: all points, exactly.
    #[cold]
    fn everything(&self, query: &[f64], rows: &Rows<'_>, k: usize, ranking: &mut Ranking) {
        let slots: Vec<u32> =
            (0..self.position.len() as u32).filter(|&s| self.position[s as usize] != ABSENT).collect();
        ranking.sort(self.with, &slots, k, query, rows);
    }

    #[allow(clippy::too_many_arguments)]
    fn descend(
        &self,
        at: usize,
        active: u32,
        depth: usize,
        looks: &Option<Looks<'_>>,
        queries: &Points,
        members: &[(u32, u32)],
        walk: &mut Walk,
    ) {
        let node = self.nodes[at];
        if node.is_leaf {
            // Those who live here have visited it first.
            let here =
                bits(active & walk.begun).filter(|&i| walk.homes[i] as usize == at).fold(0, |set, i| set | 1 << i);
            let active = active & !here;
            if let Some(on) = looks {
                self.look(at, active, on, queries, members, walk);
                return;
            }
            for i in bits(active) {
                let gaps = self.gaps(at, &walk.images[i * self.dim..(i + 1) * self.dim]);
                let which = within(&gaps, walk.found[i].limit);
                if which != 0 {
                    self.leaf(at, i, which, queries.point(members[i].1 as usize), walk);
                }
            }
            return;
        }
        if walk.gaps.len() < (depth + 1) * GROUP {
            walk.gaps.resize((depth + 1) * GROUP, [0.0; LANES]);
        }
        let mut nearest = [f32::INFINITY; LANES];
        for i in bits(active) {
            let gaps = self.gaps(at, &walk.images[i * self.dim..(i + 1) * self.dim]);
            for c in 0..LANES {
                nearest[c] = nearest[c].min(gaps[c]);
            }
            walk.gaps[depth * GROUP + i] = gaps;
        }
        // Nearest first, so that limits fall early.
        let mut order: [u8; LANES] = std::array::from_fn(|c| c as u8);
        order[..node.count as usize].sort_unstable_by(|&a, &b| nearest[a as usize].total_cmp(&nearest[b as usize]));
        for &c in &order[..node.count as usize] {
            let mut some = 0;
            for i in bits(active) {
                if walk.gaps[depth * GROUP + i][c as usize] <= walk.found[i].limit {
                    some |= 1 << i;
                }
            }
            if some != 0 {
                self.descend(node.first as usize + c as usize, some, depth + 1, looks, queries, members, walk);
            }
        }
    }

    /// These queries look at a leaf in bytes, two at a time.
    fn look(&self, at: usize, active: u32, on: &Looks<'_>, queries: &Points, members: &[(u32, u32)], walk: &mut Walk) {
        let leaf = self.leaf_in_bytes(at);
        let Walk { images, found, ranking, .. } = walk;
        let mut which = bits(active);
        while let Some(i) = which.next() {
            let last = which.next();
            match last {
                Some(j) => {
                    let (left, right) = found.split_at_mut(j);
                    Candidates::find([&mut left[i], &mut right[0]], on, &leaf);
                }
                None => Candidates::find([&mut found[i]], on, &leaf),
            }
            for i in [Some(i), last].into_iter().flatten() {
                if found[i].many_wait() {
                    let image = &images[i * self.dim..(i + 1) * self.dim];
                    let point = queries.point(members[i].1 as usize);
                    found[i].measure(on, image, point, LANES - 1, ranking);
                }
            }
        }
    }

    #[inline]
    fn leaf_in_bytes(&self, at: usize) -> Leaf<'_> {
        let Images::Rows { words, .. } = &self.images else {
            unreachable!("there are bytes where points are looked at")
        };
        let (node, size) = (self.nodes[at], self.dim.div_ceil(4) + 1);
        let (first, count) = (node.first as usize, node.count as usize);
        Leaf { panels: &words[first * size..(first + count) * size], count, first_slot: node.first * LANES as u32 }
    }

    #[inline]
    fn leaf(&self, at: usize, member: usize, which: u16, point: &[f64], walk: &mut Walk) {
        let node = self.nodes[at];
        let which = which & (((1_u32 << node.count) - 1) as u16);
        let size = self.dim;
        let Images::Panels(panels) = &self.images else {
            unreachable!("there are panels where every point is measured")
        };
        let panels = &panels[node.first as usize * size..(node.first as usize + node.count as usize) * size];
        let found = &mut walk.found[member];
        let image = &walk.images[member * self.dim..(member + 1) * self.dim];
        found.visit(self.with, image, panels, which, self.early, node.first * LANES as u32);
        if found.is_full() {
            found.tighten(self.with, &self.margin);
            if found.is_full() {
                found.settle(self.with, &self.margin, point, &self.rows(), &mut walk.ranking);
            }
        }
    }
}

/// What a thread needs to answer groups of queries.
pub(super) struct Walk {
    k: usize,
    images: Vec<f32>,
    found: Vec<Candidates>,
    /// Where each of those below lives.
    homes: [u32; GROUP],
    /// The queries that have visited the leaf where they live.
    begun: u32,
    gaps: Vec<[f32; LANES]>,
    /// Distances in bytes of the points of a leaf.
    values: Vec<f32>,
    /// Where the nearest K of a leaf ended for the last query.
    guess: f32,
    ranking: Ranking,
}

impl Walk {
    pub(super) fn new(tree: &Tree<'_>, k: usize) -> Walk {
        Walk {
            k,
            images: vec![0.0; GROUP * tree.dim],
            found: (0..GROUP).map(|_| Candidates::new(tree.with, k)).collect(),
            homes: [UNKNOWN; GROUP],
            begun: 0,
            gaps: Vec::new(),
            values: vec![0.0; LEAF],
            guess: 0.0,
            ranking: Ranking::default(),
        }
    }
}

fn bits(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if set == 0 {
            return None;
        }
        let i = set.trailing_zeros() as usize;
        set &= set - 1;
        Some(i)
    })
}

fn within(gaps: &[f32; LANES], limit: f32) -> u16 {
    let mut set = 0;
    for (c, &gap) in gaps.iter().enumerate() {
        set |= u16::from(gap <= limit) << c;
    }
    set
}

impl Images {
    fn in_panels(images: &[f32], p: usize, position: &[u32]) -> Images {
        let mut panels = vec![Lanes([f32::INFINITY; LANES]); position.len() / LANES * p];
        panels.par_chunks_exact_mut(p).zip(position.par_chunks_exact(LANES)).with_min_len(CHUNK / LANES).for_each(
            |(panel, position)| {
                for (lane, &at) in position.iter().enumerate().filter(|&(_, &at)| at != ABSENT) {
                    for (axis, &x) in panel.iter_mut().zip(&images[at as usize * p..]) {
                        axis.0[lane] = x;
                    }
                }
            },
        );
        Images::Panels(panels)
    }

    fn in_rows(images: &[f32], p: usize, position: &[u32], with: Instructions) -> Images {
        let mut coarse = Coarse::of(images, p, with);
        let size = p.div_ceil(4) + 1;
        let mut words = vec![Words([0; LANES]); position.len() / LANES * size];
        let mut rows = vec![0.0_f32; position.len() * p];
        let worst = words
            .par_chunks_exact_mut(size)
            .zip(rows.par_chunks_exact_mut(LANES * p))
            .zip(position.par_chunks_exact(LANES))
            .with_min_len(CHUNK / LANES)
            .map(|((panel, rows), position)| {
                for (row, &at) in rows.chunks_exact_mut(p).zip(position).filter(|&(_, &at)| at != ABSENT) {
                    row.copy_from_slice(&images[at as usize * p..][..p]);
                }
                coarse.pack(images, p, position, panel)
            })
            .reduce(|| 0.0, f64::max);
        coarse.loses(worst);
        Images::Rows { coarse, words, rows }
    }
}

/// Makes the nodes; runs on several threads, each on points of its own.
struct Builder<'a> {
    images: &'a [f32],
    dim: usize,
    /// Axes of the boxes, also those on which is split.
    axes: usize,
}

/// A subtree whose numbering of nodes and panels starts at 0.
#[derive(Default)]
struct Part {
    nodes: Vec<Node>,
    boxes: Vec<Lanes>,
    /// Positions by slot.
    position: Vec<u32>,
    /// Lower and upper ends of the whole, by axis.
    bounds: Vec<(f32, f32)>,
}

impl Builder<'_> {
    fn subtree(&self, ids: &mut [u32]) -> Part {
        let is_leaf = ids.len() <= LEAF;
        // Size that every child should have: a panel, a leaf, 16 leaves, ...
        let mut unit = LANES;
        while unit * LANES < ids.len() {
            unit *= LANES;
        }
        let mut pieces = vec![ids];
        while pieces.len() < LANES {
            let Some(widest) = (0..pieces.len()).rev().max_by_key(|&i| pieces[i].len()) else { break };
            if pieces[widest].len() <= unit {
                break;
            }
            let piece = std::mem::take(&mut pieces[widest]);
            let (left, right) = self.split(piece, unit);
            pieces[widest] = left;
            pieces.insert(widest + 1, right);
        }
        let children: Vec<Part> = if is_leaf {
            pieces.into_iter().map(|piece| self.panel(piece)).collect()
        } else {
            // Large children are worth a task; order, and so the result, does not depend on threads.
            pieces.into_par_iter().with_min_len(CHUNK.div_ceil(unit)).map(|piece| self.subtree(piece)).collect()
        };
        self.join(&children, is_leaf)
    }

    /// The node above `children`, first, then theirs: children of a node stand side by side.
    fn join(&self, children: &[Part], is_leaf: bool) -> Part {
        let absent = [Lanes([f32::INFINITY; LANES]), Lanes([f32::NEG_INFINITY; LANES])];
        let count = children.len() as u16;
        let mut whole = Part {
            nodes: vec![Node { first: if is_leaf { 0 } else { 1 }, count, is_leaf }],
            boxes: absent.into_iter().cycle().take(2 * self.axes).collect(),
            position: Vec::with_capacity(children.iter().map(|c| c.position.len()).sum()),
            bounds: vec![(f32::INFINITY, f32::NEG_INFINITY); self.axes],
        };
        for (c, child) in children.iter().enumerate() {
            for (a, &(low, high)) in child.bounds.iter().enumerate() {
                whole.boxes[2 * a].0[c] = low;
                whole.boxes[2 * a + 1].0[c] = high;
                whole.bounds[a] = (whole.bounds[a].0.min(low), whole.bounds[a].1.max(high));
            }
        }
        if !is_leaf {
            // Roots of the children in a row, then the rest of each.
            let mut panels = 0;
            let mut later = 1 + children.len() as u32;
            let mut moved = Vec::with_capacity(children.len());
            for child in children {
                // Node 1 of the child goes to `later`.
                moved.push((later, panels));
                later += child.nodes.len() as u32 - 1;
                panels += (child.position.len() / LANES) as u32;
            }
            let shifted = |node: &Node, (later, panels): (u32, u32)| Node {
                first: if node.is_leaf { node.first + panels } else { node.first - 1 + later },
                ..*node
            };
            for (child, &by) in children.iter().zip(&moved) {
                whole.nodes.push(shifted(&child.nodes[0], by));
                whole.boxes.extend_from_slice(&child.boxes[..2 * self.axes]);
            }
            for (child, &by) in children.iter().zip(&moved) {
                whole.nodes.extend(child.nodes[1..].iter().map(|node| shifted(node, by)));
                whole.boxes.extend_from_slice(&child.boxes[2 * self.axes..]);
            }
        }
        for child in children {
            whole.position.extend_from_slice(&child.position);
        }
        whole
    }

    fn panel(&self, ids: &[u32]) -> Part {
        let mut bounds = vec![(f32::INFINITY, f32::NEG_INFINITY); self.axes];
        for &id in ids {
            for (b, &x) in bounds.iter_mut().zip(&self.images[id as usize * self.dim..]) {
                *b = (b.0.min(x), b.1.max(x));
            }
        }
        let position = ids.iter().copied().chain(std::iter::repeat(ABSENT)).take(LANES).collect();
        Part { position, bounds, ..Part::default() }
    }

    /// Parts `ids` in two on the axis of largest variance, near the middle: after a multiple of `unit`, unless
    /// at the edge between two much repeated values.
    fn split<'i>(&self, ids: &'i mut [u32], unit: usize) -> (&'i mut [u32], &'i mut [u32]) {
        let n = ids.len();
        let p = self.dim;
        let (mut sum, mut square) = (vec![0.0_f64; self.axes], vec![0.0_f64; self.axes]);
        let step = n.div_ceil(256);
        let mut sampled = 0.0;
        for &id in ids.iter().step_by(step) {
            for (a, &x) in self.images[id as usize * p..][..self.axes].iter().enumerate() {
                sum[a] += f64::from(x);
                square[a] += f64::from(x) * f64::from(x);
            }
            sampled += 1.0;
        }
        let spread = |a: usize| square[a] - sum[a] * sum[a] / sampled;
        let axis = (1..self.axes).fold(0, |best, a| if spread(a) > spread(best) { a } else { best });
        // By value, then by number, as whole numbers: those of negative values are turned, so that they come first and
        // in order.
        let key = |&id: &u32| {
            let bits = self.images[id as usize * p + axis].to_bits();
            let turned = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
            u64::from(turned) << 32 | u64::from(id)
        };
        let mut keys: Vec<u64> = ids.iter().map(key).collect();
        let mut middle = ((n / 2 + unit / 2) / unit * unit).clamp(unit, n - 1);
        let (_, &mut found, _) = keys.select_nth_unstable(middle);
        if n > LEAF {
            let value = found >> 32;
            let less = keys.iter().filter(|key| **key >> 32 < value).count();
            let up_to = keys.iter().filter(|key| **key >> 32 <= value).count();
            let edge = if middle - less <= up_to - middle { less } else { up_to };
            if up_to - less > n / 16 && edge >= n / 8 && edge <= n - n / 8 {
                keys.select_nth_unstable(edge);
                middle = edge;
            }
        }
        for (id, key) in ids.iter_mut().zip(&keys) {
            *id = *key as u32;
        }
        ids.split_at_mut(middle)
    }
}
