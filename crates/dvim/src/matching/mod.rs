//! The K nearest units, exactly. Sees points; never a time, an event or an arm.
//!
//! [`scan`] defines the answer; [`Index`] gives the same answer, bit for bit, in a fraction of the time:
//!
//! - `sweep.rs`: one axis varies, as for a score. A sorted list and two pointers.
//! - `tree.rs`: everything else. A kd-tree of panels of points, walked by groups of queries.
//! - `margin.rs`: why its first pass may be in `f32`; `coarse.rs`: why a look in bytes may come before it.
//! - `select.rs`: the best K, and their exact ranking.
//! - `simd.rs`: the kernels, for each instruction set; `axes.rs`: in which order they read axes.

mod axes;
mod coarse;
mod margin;
mod scan;
mod select;
mod simd;
mod sweep;
mod tree;

use rayon::prelude::*;
use std::ops::Range;

pub use scan::{is_same, scan};
pub use select::Ends;
use select::Ranking;
pub use simd::Instructions;
use sweep::Scratch as Sweep;
use tree::Wanted;

/// Points of match space, row-major. All coordinates are finite.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// Number of axes.
    pub dim: usize,
    /// `n × dim` coordinates.
    pub coords: Vec<f64>,
}

impl Points {
    /// Number of points.
    pub fn len(&self) -> usize {
        self.coords.len().checked_div(self.dim).unwrap_or(0)
    }

    /// Whether there is no point.
    pub fn is_empty(&self) -> bool {
        self.coords.is_empty()
    }

    /// Some of the points, side by side.
    pub fn some(&self, which: Range<usize>) -> Points {
        Points { dim: self.dim, coords: self.coords[which.start * self.dim..which.end * self.dim].to_vec() }
    }

    /// The coordinates of point `i`.
    pub fn point(&self, i: usize) -> &[f64] {
        &self.coords[i * self.dim..(i + 1) * self.dim]
    }
}

/// Points that are a reference set: all, or those in some rows, in their order.
#[derive(Clone, Copy)]
struct Reference<'a> {
    points: &'a Points,
    rows: Option<&'a [u32]>,
}

impl<'a> Reference<'a> {
    fn dim(&self) -> usize {
        self.points.dim
    }

    fn len(&self) -> usize {
        self.rows.map_or(self.points.len(), <[u32]>::len)
    }

    fn point(&self, i: usize) -> &'a [f64] {
        self.points.point(self.rows.map_or(i, |rows| rows[i] as usize))
    }
}

/// The `group_size` nearest reference points of each query, by (squared distance, index).
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    /// K.
    pub group_size: usize,
    /// `n_queries × K` positions in the reference set.
    pub index: Vec<u32>,
    /// `n_queries × K` squared distances, in the same order.
    pub squared_distance: Vec<f64>,
}

impl Neighbours {
    /// Positions and squared distances of the `k` nearest of one query. Neighbours ascend, so a smaller
    /// group is the beginning of a larger one: one search serves every `k` up to `group_size`.
    pub fn of(&self, query: usize, k: usize) -> (&[u32], &[f64]) {
        assert!(k <= self.group_size, "{k} of {} neighbours", self.group_size);
        let start = query * self.group_size;
        (&self.index[start..start + k], &self.squared_distance[start..start + k])
    }
}

/// The nearest of one query.
#[derive(Clone, Copy, Debug)]
pub struct Ranked<'a> {
    /// Positions in the reference set, ascending by (squared distance, position).
    pub positions: &'a [u32],
    /// Their squared distances.
    pub distances: &'a [f64],
    /// Whether others are as near as the last of them.
    pub is_tied: bool,
}

/// The nearest of several queries, not ranked.
#[derive(Clone, Debug, Default)]
pub struct Sets {
    k: usize,
    queries: Vec<usize>,
    positions: Vec<u32>,
    ends: Vec<Ends>,
}

impl Sets {
    fn push(&mut self, query: usize, positions: &[u32], ends: Ends) {
        self.queries.push(query);
        self.positions.extend_from_slice(positions);
        self.ends.push(ends);
    }

    /// Each query with the positions of its nearest and the ends of their distances.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &[u32], &Ends)> {
        let of = |i: usize| (self.queries[i], &self.positions[i * self.k..(i + 1) * self.k], &self.ends[i]);
        (0..self.queries.len()).map(of)
    }
}

/// What another search of the same queries, such as that in another arm, tells of this one. Good hints save time, and
/// none changes an answer.
#[derive(Clone, Copy, Debug)]
pub struct Hints<'a> {
    /// For each query a squared distance near which its `k`-th may lie.
    pub squared: &'a [f64],
    /// The queries in an order in which neighbours stand next to each other: what [`Index::nearest_sets`] gave.
    pub order: Option<&'a [u32]>,
}

/// A reference set, prepared for searching.
pub struct Index<'a> {
    n: usize,
    dim: usize,
    way: Way<'a>,
}

enum Way<'a> {
    /// No reference point.
    Nothing,
    Sweep(sweep::Sweep),
    Tree(Box<tree::Tree<'a>>),
}

/// What a thread needs besides the index.
enum Scratch {
    Sweep(sweep::Scratch),
    Tree(Box<tree::Walk>),
}

impl<'a> Index<'a> {
    /// Prepares `reference` with the widest instructions that the processor has.
    pub fn build(reference: &Points) -> Index<'static> {
        Index::build_with(reference, Instructions::best())
    }

    /// As [`Index::build`], with given instructions: for tests and measurements.
    pub fn build_with(reference: &Points, with: Instructions) -> Index<'static> {
        Index::of(Reference { points: reference, rows: None }, None, with)
    }

    /// As [`Index::build`] of the points in these rows: position i of the reference set is row `rows[i]`. They stay
    /// where they are, which suits searches that measure few of them exactly.
    pub fn build_of_rows(points: &'a Points, rows: &[u32]) -> Index<'a> {
        Index::of(Reference { points, rows: Some(rows) }, Some(points), Instructions::best())
    }

    fn of(reference: Reference<'_>, shared: Option<&'a Points>, with: Instructions) -> Index<'a> {
        assert!(reference.len() < u32::MAX as usize / 2, "more than two billion reference points");
        let way = if reference.len() == 0 {
            Way::Nothing
        } else if let Some(sweep) = sweep::Sweep::build(reference) {
            Way::Sweep(sweep)
        } else {
            Way::Tree(Box::new(tree::Tree::build(reference, shared, with)))
        };
        Index { n: reference.len(), dim: reference.dim(), way }
    }

    /// Number of reference points.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there is no reference point.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The `k` nearest reference points of each query: what [`scan`] returns. `k` is at most
    /// [`Index::len`]. Holds all `n_queries × k` neighbours; [`Index::nearest_each`] does not.
    pub fn nearest(&self, queries: &Points, k: usize) -> Neighbours {
        let n = queries.len();
        let mut out = Neighbours { group_size: k, index: vec![0; n * k], squared_distance: vec![0.0; n * k] };
        if k == 0 {
            return out;
        }
        let rows = out.index.chunks_mut(k).zip(out.squared_distance.chunks_mut(k)).collect();
        self.nearest_into(
            queries,
            k,
            rows,
            || (),
            |(), (index, squared_distance), _, positions, distances| {
                index.copy_from_slice(positions);
                squared_distance.copy_from_slice(distances);
            },
        );
        out
    }

    /// Calls `visit(state, query, positions, squared_distances)` once for each query, in any order and from
    /// several threads, each with a state of its own made by `start`. Nothing is kept: memory is
    /// O(`k`) a thread, and 8 bytes a query for the order in which they are answered.
    pub fn nearest_each<S>(
        &self,
        queries: &Points,
        k: usize,
        start: impl Fn() -> S + Sync + Send,
        visit: impl Fn(&mut S, usize, &[u32], &[f64]) + Sync + Send,
    ) {
        self.order(queries, k).par_chunks(tree::GROUP).for_each_init(
            || (self.scratch(k), start()),
            |(scratch, state), members| {
                self.search(queries, k, members, scratch, |query, found| {
                    visit(state, query, found.positions, found.distances);
                });
            },
        );
    }

    /// As [`Index::nearest_each`], collecting what `visit` returns in the order of the queries.
    pub fn nearest_map<S, T: Send>(
        &self,
        queries: &Points,
        k: usize,
        start: impl Fn() -> S + Sync + Send,
        visit: impl Fn(&mut S, usize, &[u32], &[f64]) -> T + Sync + Send,
    ) -> Vec<T> {
        let mut out: Vec<Option<T>> = (0..queries.len()).map(|_| None).collect();
        let places = out.iter_mut().collect();
        self.nearest_into(
            queries,
            k,
            places,
            start,
            |state, place: &mut &mut Option<T>, query, positions, distances| {
                **place = Some(visit(state, query, positions, distances));
            },
        );
        out.into_iter().map(|value| value.expect("each query is answered")).collect()
    }

    /// As [`Index::nearest_each`], with a place of its own for each query, which goes with it to the thread that
    /// answers it.
    pub fn nearest_into<S, P: Send>(
        &self,
        queries: &Points,
        k: usize,
        places: Vec<P>,
        start: impl Fn() -> S + Sync + Send,
        visit: impl Fn(&mut S, &mut P, usize, &[u32], &[f64]) + Sync + Send,
    ) {
        self.nearest_or_tied(queries, k, places, start, |state, place, query, found| {
            visit(state, place, query, found.positions, found.distances);
        });
    }

    /// As [`Index::nearest_into`], saying of each answer whether more points than `k` are as near as its last.
    pub fn nearest_or_tied<S, P: Send>(
        &self,
        queries: &Points,
        k: usize,
        places: Vec<P>,
        start: impl Fn() -> S + Sync + Send,
        visit: impl Fn(&mut S, &mut P, usize, &Ranked<'_>) + Sync + Send,
    ) {
        let order = self.order(queries, k);
        self.answer_all(&order, k, places, start, |scratch, state, members, places| {
            let mut places = places.iter_mut();
            self.search(queries, k, members, scratch, |query, found| {
                visit(state, places.next().expect("a place for each query"), query, found);
            });
        });
    }

    /// All reference points up to a squared distance, and those at the same distance, ascending by (squared distance,
    /// position): positions and squared distances.
    pub fn within(&self, query: &[f64], squared: f64) -> (Vec<u32>, Vec<f64>) {
        let mut found = match &self.way {
            Way::Nothing => Vec::new(),
            Way::Sweep(sweep) => sweep.within(query, squared),
            Way::Tree(tree) => tree.within(query, squared),
        };
        found.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        found.into_iter().map(|(d, position)| (position, d)).unzip()
    }

    /// Hands queries that live near each other, with their places, to `answer`, on all threads.
    fn answer_all<S, P: Send>(
        &self,
        order: &[(u32, u32)],
        k: usize,
        places: Vec<P>,
        start: impl Fn() -> S + Sync + Send,
        answer: impl Fn(&mut Scratch, &mut S, &[(u32, u32)], &mut [P]) + Sync + Send,
    ) {
        let mut places: Vec<Option<P>> = places.into_iter().map(Some).collect();
        let mut jobs: Vec<P> =
            order.iter().map(|&(_, query)| places[query as usize].take().expect("each query once")).collect();
        drop(places);
        order.par_chunks(tree::GROUP).zip(jobs.par_chunks_mut(tree::GROUP)).for_each_init(
            || (self.scratch(k), start()),
            |(scratch, state), (members, places)| answer(scratch, state, members, places),
        );
    }

    /// As [`Index::nearest_into`], for those who need to know who the `k` nearest are, but not in which order:
    /// positions come in any order, with the ends of their distances. The members and the ends are those of the
    /// ranked answer, bit for bit. The nearest two are found only where `nearest` asks for them. Several queries
    /// are answered at once, each with its place: `visit(state, places, sets)`. Gives the order in which they were
    /// answered.
    #[allow(clippy::too_many_arguments)]
    pub fn nearest_sets<S, P: Send>(
        &self,
        queries: &Points,
        k: usize,
        nearest: bool,
        hints: Option<Hints<'_>>,
        places: Vec<P>,
        start: impl Fn() -> S + Sync + Send,
        visit: impl Fn(&mut S, &mut [P], &Sets) + Sync + Send,
    ) -> Vec<u32> {
        let start = || (Sets { k, ..Sets::default() }, start());
        let order = match (hints.and_then(|hints| hints.order), &self.way) {
            (Some(given), Way::Tree(_)) => {
                self.check(queries, k);
                given.iter().map(|&query| (tree::UNKNOWN, query)).collect()
            }
            _ => self.order(queries, k),
        };
        let hints = hints.map(|hints| hints.squared);
        self.answer_all(&order, k, places, start, |scratch, (sets, state), members, places| {
            sets.queries.clear();
            sets.positions.clear();
            sets.ends.clear();
            match (&self.way, scratch) {
                (Way::Tree(tree), Scratch::Tree(walk)) if k > 0 => {
                    tree.search(queries, members, walk, Wanted::Set { nearest }, hints, |query, found| {
                        sets.push(query, &found.positions, *found.ends.as_ref().expect("a set has ends"));
                    });
                }
                (_, scratch) => self.search(queries, k, members, scratch, |query, found| {
                    sets.push(query, found.positions, Ends::of_ranked(found.positions, found.distances, found.is_tied));
                }),
            }
            visit(state, places, sets);
        });
        order.into_iter().map(|(_, query)| query).collect()
    }

    /// What every search asks of its queries.
    fn check(&self, queries: &Points, k: usize) {
        assert!(k <= self.n, "a group of {k} from {} units", self.n);
        assert!(queries.is_empty() || self.n == 0 || queries.dim == self.dim, "{} axes, not {}", queries.dim, self.dim);
    }

    /// The queries with their homes, neighbours next to each other.
    fn order(&self, queries: &Points, k: usize) -> Vec<(u32, u32)> {
        self.check(queries, k);
        let homes: Vec<u32> = (0..queries.len())
            .into_par_iter()
            .with_min_len(256)
            .map_init(
                || vec![0.0; queries.dim],
                |image, query| match &self.way {
                    Way::Nothing => 0,
                    Way::Sweep(sweep) => sweep.home(queries.point(query)),
                    Way::Tree(tree) => tree.home(queries.point(query), image),
                },
            )
            .collect();
        // By counting: the queries of each home go where those of the homes before it end.
        let mut next = vec![0_u32; homes.iter().max().map_or(0, |&h| h as usize + 2)];
        homes.iter().for_each(|&h| next[h as usize + 1] += 1);
        for h in 1..next.len() {
            next[h] += next[h - 1];
        }
        let mut order = vec![(0, 0); homes.len()];
        for (query, &home) in homes.iter().enumerate() {
            let at = &mut next[home as usize];
            order[*at as usize] = (home, query as u32);
            *at += 1;
        }
        order
    }

    fn scratch(&self, k: usize) -> Scratch {
        match &self.way {
            Way::Nothing | Way::Sweep(_) => Scratch::Sweep(sweep::Scratch::default()),
            Way::Tree(tree) => Scratch::Tree(Box::new(tree::Walk::new(tree, k))),
        }
    }

    /// Answers `members` in their order.
    fn search(
        &self,
        queries: &Points,
        k: usize,
        members: &[(u32, u32)],
        scratch: &mut Scratch,
        mut answer: impl FnMut(usize, &Ranked<'_>),
    ) {
        match (&self.way, scratch) {
            _ if k == 0 => {
                for &(_, query) in members {
                    answer(query as usize, &Ranked { positions: &[], distances: &[], is_tied: false });
                }
            }
            (Way::Sweep(sweep), Scratch::Sweep(scratch)) => {
                for &(_, query) in members {
                    sweep.search(queries.point(query as usize), k, scratch);
                    let Sweep { positions, distances, is_tied, .. } = scratch;
                    answer(query as usize, &Ranked { positions, distances, is_tied: *is_tied });
                }
            }
            (Way::Tree(tree), Scratch::Tree(walk)) => {
                tree.search(queries, members, walk, Wanted::Ranked, None, |query, found| {
                    let Ranking { positions, distances, is_tied, .. } = found;
                    answer(query, &Ranked { positions, distances, is_tied: *is_tied });
                });
            }
            _ => unreachable!("scratch is made by the index"),
        }
    }
}
