//! A block kd-tree: nodes of 16 children, leaves of up to 16 panels of 16 points, tight boxes over the
//! leading axes. Queries that live near each other walk it together, so that a leaf is in the first-level
//! cache when the second of them needs it. Where boxes exclude nothing the walk *is* a blocked scan.

use super::Points;
use super::margin::Margin;
use super::select::{Candidates, Ranked, Rows};
use super::simd::{Instructions, LANES};

/// Queries that walk together.
pub(super) const GROUP: usize = 16;
/// Points of a full leaf.
const LEAF: usize = LANES * LANES;
/// Most axes that boxes know of. Bounds over fewer axes are lower, never wrong.
const BOX_AXES: usize = 12;
/// A position that no point has: the filling of a panel's last lanes.
const ABSENT: u32 = u32::MAX;

/// Children are nodes `first..first + count`, or, in a leaf, panels.
#[derive(Clone, Copy)]
struct Node {
    first: u32,
    count: u16,
    is_leaf: bool,
}

pub(super) struct Tree {
    margin: Margin,
    with: Instructions,
    dim: usize,
    box_axes: usize,
    early: usize,
    nodes: Vec<Node>,
    /// For each node, axis by axis: 16 lower ends and 16 upper ends of its children.
    boxes: Vec<f32>,
    /// Images of the points, panel by panel, axis-major.
    panels: Vec<f32>,
    /// The points as given, by slot, and the position of each slot in the reference set.
    coords: Vec<f64>,
    position: Vec<u32>,
}

impl Tree {
    pub(super) fn build(reference: &Points, with: Instructions) -> Tree {
        let p = reference.dim;
        let n = reference.len();
        let margin = Margin::of(reference);
        let mut images = vec![0.0_f32; n * p];
        for (row, image) in reference.coords.chunks_exact(p).zip(images.chunks_exact_mut(p)) {
            margin.image(row, image);
        }
        let box_axes = p.min(BOX_AXES);
        let mut builder = Builder {
            images: &images,
            dim: p,
            axes: box_axes,
            nodes: Vec::new(),
            boxes: Vec::new(),
            panels: Vec::new(),
            position: Vec::new(),
            pairs: Vec::new(),
        };
        let mut ids: Vec<u32> = (0..n as u32).collect();
        builder.reserve_node();
        builder.node(0, &mut ids);
        let Builder { nodes, boxes, panels, position, .. } = builder;
        let mut coords = vec![0.0; position.len() * p];
        for (out, &at) in coords.chunks_exact_mut(p).zip(&position) {
            if at != ABSENT {
                out.copy_from_slice(reference.point(at as usize));
            }
        }
        Tree {
            margin,
            with,
            dim: p,
            box_axes,
            early: if p > 12 { 8 } else { p },
            nodes,
            boxes,
            panels,
            coords,
            position,
        }
    }

    fn gaps(&self, node: usize, image: &[f32]) -> [f32; LANES] {
        let size = self.box_axes * 2 * LANES;
        self.with.box_gaps(image, &self.boxes[node * size..(node + 1) * size])
    }

    /// The leaf whose box is nearest, going down greedily: where a query lives.
    pub(super) fn home(&self, point: &[f64], image: &mut [f32]) -> u32 {
        if self.margin.image(point, image).is_none() {
            return 0;
        }
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

    /// Finds the `k` nearest of up to [`GROUP`] queries, given with their homes, and hands each answer on.
    pub(super) fn search(
        &self,
        queries: &Points,
        members: &[(u32, u32)],
        walk: &mut Walk,
        mut answer: impl FnMut(usize, &Ranked),
    ) {
        let rows = Rows { dim: self.dim, coords: &self.coords, position: &self.position };
        let mut active = 0_u32;
        for (i, &(home, query)) in members.iter().enumerate() {
            let image = &mut walk.images[i * self.dim..(i + 1) * self.dim];
            let Some(residual) = self.margin.image(queries.point(query as usize), image) else {
                continue;
            };
            active |= 1 << i;
            walk.found[i].reset(self.margin.error(residual));
            self.leaf(home as usize, i, !0, queries.point(query as usize), walk);
            walk.found[i].tighten(self.with, &self.margin);
        }
        self.descend(0, active, 0, queries, members, walk);
        for (i, &(_, query)) in members.iter().enumerate() {
            let point = queries.point(query as usize);
            if active & (1 << i) != 0 {
                walk.found[i].finish(self.with, &self.margin, point, &rows, &mut walk.ranked);
            } else {
                self.everything(point, &rows, walk);
            }
            answer(query as usize, &walk.ranked);
        }
    }

    /// A query out of the range of `f32`: all points, exactly.
    #[cold]
    fn everything(&self, query: &[f64], rows: &Rows<'_>, walk: &mut Walk) {
        let slots: Vec<u32> =
            (0..self.position.len() as u32).filter(|&s| self.position[s as usize] != ABSENT).collect();
        super::select::rank(&slots, query, rows, &mut walk.ranked);
        walk.ranked.sort_unstable();
        walk.ranked.truncate(walk.k);
    }

    fn descend(&self, at: usize, active: u32, depth: usize, queries: &Points, members: &[(u32, u32)], walk: &mut Walk) {
        let node = self.nodes[at];
        if node.is_leaf {
            for i in bits(active) {
                if members[i].0 as usize == at {
                    continue; // was visited first
                }
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
                self.descend(node.first as usize + c as usize, some, depth + 1, queries, members, walk);
            }
        }
    }

    #[inline]
    fn leaf(&self, at: usize, member: usize, which: u16, point: &[f64], walk: &mut Walk) {
        let node = self.nodes[at];
        let which = which & (((1_u32 << node.count) - 1) as u16);
        let size = self.dim * LANES;
        let panels = &self.panels[node.first as usize * size..(node.first as usize + node.count as usize) * size];
        let found = &mut walk.found[member];
        let image = &walk.images[member * self.dim..(member + 1) * self.dim];
        found.visit(self.with, image, panels, which, self.early, node.first * LANES as u32);
        if found.is_full() {
            found.tighten(self.with, &self.margin);
            if found.is_full() {
                let rows = Rows { dim: self.dim, coords: &self.coords, position: &self.position };
                found.settle(&self.margin, point, &rows, &mut walk.ranked);
            }
        }
    }
}

/// What a thread needs to answer groups of queries.
pub(super) struct Walk {
    k: usize,
    images: Vec<f32>,
    found: Vec<Candidates>,
    gaps: Vec<[f32; LANES]>,
    ranked: Ranked,
}

impl Walk {
    pub(super) fn new(tree: &Tree, k: usize) -> Walk {
        Walk {
            k,
            images: vec![0.0; GROUP * tree.dim],
            found: (0..GROUP).map(|_| Candidates::new(k)).collect(),
            gaps: Vec::new(),
            ranked: Ranked::new(),
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

struct Builder<'a> {
    images: &'a [f32],
    dim: usize,
    /// Axes of the boxes, also those on which is split.
    axes: usize,
    nodes: Vec<Node>,
    boxes: Vec<f32>,
    panels: Vec<f32>,
    position: Vec<u32>,
    pairs: Vec<(f32, u32)>,
}

/// Lower and upper ends by axis.
type Bounds = Vec<(f32, f32)>;

impl Builder<'_> {
    fn reserve_node(&mut self) {
        self.nodes.push(Node { first: 0, count: 0, is_leaf: true });
        // An absent child is infinitely far.
        let ends = [f32::INFINITY; LANES].into_iter().chain([f32::NEG_INFINITY; LANES]);
        self.boxes.extend(ends.cycle().take(self.axes * 2 * LANES));
    }

    /// Makes node `at` of the points `ids`; returns its bounds.
    fn node(&mut self, at: usize, ids: &mut [u32]) -> Bounds {
        let is_leaf = ids.len() <= LEAF;
        // Size that every child should have: a panel, a leaf, 16 leaves, ...
        let mut unit = LANES;
        while unit * LANES < ids.len() {
            unit *= LANES;
        }
        let mut pieces = vec![ids.len()];
        while pieces.len() < LANES {
            let widest = (0..pieces.len()).max_by_key(|&i| (pieces[i], usize::MAX - i)).expect("not empty");
            let size = pieces[widest];
            if size <= unit {
                break;
            }
            let start: usize = pieces[..widest].iter().sum();
            let left = self.split(&mut ids[start..start + size], unit);
            pieces[widest] = left;
            pieces.insert(widest + 1, size - left);
        }
        let first = if is_leaf { self.position.len() / LANES } else { self.nodes.len() };
        self.nodes[at] = Node { first: first as u32, count: pieces.len() as u16, is_leaf };
        if !is_leaf {
            for _ in 0..pieces.len() {
                self.reserve_node();
            }
        }
        let mut whole: Bounds = vec![(f32::INFINITY, f32::NEG_INFINITY); self.axes];
        let mut rest = ids;
        for (c, &size) in pieces.iter().enumerate() {
            let (piece, later) = rest.split_at_mut(size);
            rest = later;
            let bounds = if is_leaf { self.panel(piece) } else { self.node(first + c, piece) };
            for (a, (low, high)) in bounds.into_iter().enumerate() {
                let ends = &mut self.boxes[(at * self.axes + a) * 2 * LANES..][..2 * LANES];
                ends[c] = low;
                ends[LANES + c] = high;
                whole[a] = (whole[a].0.min(low), whole[a].1.max(high));
            }
        }
        whole
    }

    fn panel(&mut self, ids: &[u32]) -> Bounds {
        let p = self.dim;
        let start = self.panels.len();
        self.panels.resize(start + p * LANES, f32::INFINITY);
        let mut bounds = vec![(f32::INFINITY, f32::NEG_INFINITY); self.axes];
        for (lane, &id) in ids.iter().enumerate() {
            let image = &self.images[id as usize * p..][..p];
            for (a, &x) in image.iter().enumerate() {
                self.panels[start + a * LANES + lane] = x;
            }
            for (b, &x) in bounds.iter_mut().zip(image) {
                *b = (b.0.min(x), b.1.max(x));
            }
        }
        self.position.extend(ids.iter().copied().chain(std::iter::repeat(ABSENT)).take(LANES));
        bounds
    }

    /// Orders `ids` so that the first `m` lie below the others on the axis of largest variance, m near the
    /// middle; returns m, a multiple of `unit` unless it is the edge between two much repeated values.
    fn split(&mut self, ids: &mut [u32], unit: usize) -> usize {
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
        let mut axis = 0;
        let spread = |a: usize| square[a] - sum[a] * sum[a] / sampled;
        for a in 1..self.axes {
            if spread(a) > spread(axis) {
                axis = a;
            }
        }
        self.pairs.clear();
        self.pairs.extend(ids.iter().map(|&id| (self.images[id as usize * p + axis], id)));
        let order = |a: &(f32, u32), b: &(f32, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        let mut middle = ((n / 2 + unit / 2) / unit * unit).clamp(unit, n - 1);
        let (_, &mut (value, _), _) = self.pairs.select_nth_unstable_by(middle, order);
        if n > LEAF {
            let less = self.pairs.iter().filter(|x| x.0 < value).count();
            let up_to = self.pairs.iter().filter(|x| x.0 <= value).count();
            if up_to - less > n / 16 {
                let edge = if middle - less <= up_to - middle { less } else { up_to };
                if edge >= n / 8 && edge <= n - n / 8 {
                    self.pairs.select_nth_unstable_by(edge, order);
                    middle = edge;
                }
            }
        }
        for (id, pair) in ids.iter_mut().zip(&self.pairs) {
            *id = pair.1;
        }
        middle
    }
}
