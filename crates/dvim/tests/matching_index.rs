//! The index gives the neighbours of the plain scan, bit for bit, in every regime.

use dvim::internal::matching::{Ends, Hints, Index, Instructions, Neighbours, Points, is_same, scan};
use proptest::prelude::*;

/// Equal in every bit, on every instruction set that the processor has.
fn assert_exact(reference: &Points, queries: &Points, k: usize) {
    let expected = scan(reference, queries, k);
    for with in Instructions::available() {
        let index = Index::build_with(reference, with);
        let found = index.nearest(queries, k);
        assert_same(&found, &expected, &format!("{with:?}"));
        assert_sets(&index, queries, &expected);
        assert_ties(&index, reference, queries, k);
        // The streaming forms deliver the same, each to its query.
        let streamed = index.nearest_map(
            queries,
            k,
            || (),
            |(), query, positions, distances| (query, positions.to_vec(), distances.to_vec()),
        );
        assert_eq!(streamed.len(), queries.len());
        for (i, (query, positions, distances)) in streamed.into_iter().enumerate() {
            assert_eq!(query, i);
            assert_eq!((&positions[..], &distances[..]), expected.of(i, k));
        }
    }
}

/// A tie at the last place is told, ranked or as a set, and all that share it are found.
fn assert_ties(index: &Index, reference: &Points, queries: &Points, k: usize) {
    let all = scan(reference, queries, reference.len());
    let mut ranked = vec![false; queries.len()];
    let visit = |(): &mut (), place: &mut &mut bool, _: usize, found: &dvim::internal::matching::Ranked<'_>| {
        **place = found.is_tied;
    };
    index.nearest_or_tied(queries, k, ranked.iter_mut().collect(), || (), visit);
    let mut sets = vec![false; queries.len()];
    index.nearest_sets(
        queries,
        k,
        false,
        None,
        sets.iter_mut().collect(),
        || (),
        |(), places: &mut [&mut bool], found| {
            places.iter_mut().zip(found.iter()).for_each(|(place, (_, _, ends))| **place = ends.is_tied);
        },
    );
    for q in 0..queries.len() {
        let (positions, squared) = all.of(q, reference.len());
        let is_tied = k > 0 && squared.get(k).is_some_and(|next| is_same(squared[k - 1], *next));
        assert_eq!((ranked[q], sets[q]), (is_tied, is_tied), "query {q}");
        if k > 0 {
            let n = squared.iter().take_while(|d| is_same(squared[k - 1], **d)).count();
            let (found, distances) = index.within(queries.point(q), squared[k - 1]);
            assert_eq!((&found[..], &distances[..]), (&positions[..n], &squared[..n]), "query {q}");
        }
    }
}

/// Sets have the members and the ends of the ranked answer.
fn assert_sets(index: &Index, queries: &Points, expected: &Neighbours) {
    let k = expected.group_size;
    let mut found = vec![None; queries.len()];
    let places = found.iter_mut().collect();
    let order = index.nearest_sets(
        queries,
        k,
        true,
        None,
        places,
        || (),
        |(), places: &mut [&mut Option<(Vec<u32>, Ends)>], sets| {
            for (place, (_, members, ends)) in places.iter_mut().zip(sets.iter()) {
                **place = Some((members.to_vec(), *ends));
            }
        },
    );
    let mut farthest = vec![0.0; queries.len()];
    let places = farthest.iter_mut().collect();
    index.nearest_sets(
        queries,
        k,
        false,
        None,
        places,
        || (),
        |(), places: &mut [&mut f64], sets| {
            places.iter_mut().zip(sets.iter()).for_each(|(place, (_, _, ends))| **place = ends.farthest);
        },
    );
    // Hints that are right, too short, too long, or no number at all; those of neighbours differ, as they do in a walk.
    // And an order that is that of the search, another, or unknown.
    let backwards: Vec<u32> = (0..queries.len() as u32).rev().collect();
    for (stretch, order) in [(1.0, Some(&order)), (0.3, Some(&backwards)), (5.0, None)] {
        let of = |q: usize| match q % 7 {
            0 => 0.0,
            1 => f64::INFINITY,
            2 => f64::NAN,
            3 => 1e-300,
            _ => stretch * expected.of(q, k).1.last().copied().unwrap_or(0.0),
        };
        let hints: Vec<f64> = (0..queries.len()).map(of).collect();
        let mut hinted = vec![None; queries.len()];
        let places = hinted.iter_mut().collect();
        index.nearest_sets(
            queries,
            k,
            true,
            Some(Hints { squared: &hints, order: order.map(|o| &o[..]) }),
            places,
            || (),
            |(), places: &mut [&mut Option<(Vec<u32>, Ends)>], sets| {
                for (place, (_, members, ends)) in places.iter_mut().zip(sets.iter()) {
                    **place = Some((members.to_vec(), *ends));
                }
            },
        );
        for (plain, hinted) in found.iter().zip(hinted) {
            let sorted = |set: &Option<(Vec<u32>, Ends)>| {
                let (mut members, ends) = set.clone().expect("each query is answered");
                members.sort_unstable();
                (members, ends.farthest.to_bits(), ends.nearest)
            };
            assert_eq!(sorted(&hinted), sorted(plain), "hints stretched by {stretch}");
        }
    }
    for (query, set) in found.into_iter().enumerate() {
        let (mut members, ends) = set.expect("each query is answered");
        let (positions, squared) = expected.of(query, k);
        let mut sorted = positions.to_vec();
        sorted.sort_unstable();
        members.sort_unstable();
        assert_eq!(members, sorted);
        if k > 0 {
            assert_eq!(ends.farthest.to_bits(), squared[k - 1].to_bits());
            assert_eq!(farthest[query].to_bits(), squared[k - 1].to_bits());
            assert_eq!(ends.nearest[0], (squared[0], positions[0]));
        }
        if k > 1 {
            assert_eq!(ends.nearest[1], (squared[1], positions[1]));
        }
    }
}

fn assert_same(found: &Neighbours, expected: &Neighbours, what: &str) {
    assert_eq!(found.group_size, expected.group_size);
    assert_eq!(found.index, expected.index, "{what}");
    let bits = |n: &Neighbours| n.squared_distance.iter().map(|d| d.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(found), bits(expected), "{what}");
}

/// How the coordinates of one axis are drawn.
#[derive(Clone, Copy, Debug)]
enum Axis {
    Constant,
    Binary,
    Grid,
    Smooth,
    /// Powers of two over the whole range of exponents that squares survive, and beyond.
    Wild,
    Denormal,
}

fn axis() -> impl Strategy<Value = (Axis, f64)> {
    let kind = prop_oneof![
        1 => Just(Axis::Constant),
        3 => Just(Axis::Binary),
        2 => Just(Axis::Grid),
        4 => Just(Axis::Smooth),
        1 => Just(Axis::Wild),
        1 => Just(Axis::Denormal),
    ];
    (kind, prop_oneof![3 => Just(1.0), 2 => 0.01..1.0_f64, 1 => Just(1e-300), 1 => Just(1e100), 1 => Just(1e-3)])
}

/// Tame axes are by far the most common; wild ones must not hide what happens among them.
fn axes() -> impl Strategy<Value = Vec<(Axis, f64)>> {
    let tame = (prop_oneof![Just(Axis::Binary), Just(Axis::Grid), Just(Axis::Smooth)], 0.01..2.0_f64);
    prop_oneof![2 => prop::collection::vec(tame, 1..24), 1 => prop::collection::vec(axis(), 1..8)]
}

/// A small deterministic generator (SplitMix64): proptest shrinks the seed and the sizes, not the values.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn points(&mut self, n: usize, axes: &[(Axis, f64)]) -> Points {
        let mut coords = Vec::with_capacity(n * axes.len());
        for _ in 0..n {
            for &(kind, scale) in axes {
                coords.push(match kind {
                    Axis::Constant => scale,
                    Axis::Binary => scale * (self.next() % 2) as f64,
                    Axis::Grid => scale * (self.next() % 7) as f64,
                    Axis::Smooth => scale * ((0..4).map(|_| self.uniform()).sum::<f64>() - 2.0),
                    Axis::Wild => 2.0_f64.powi((self.next() % 1300) as i32 - 1000) * (self.uniform() - 0.5),
                    Axis::Denormal => f64::from_bits(self.next() % 1000),
                });
            }
        }
        Points { dim: axes.len(), coords }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn index_equals_scan(axes in axes(), seed: u64, n in 1..700_usize, share in 0.0..1.0_f64, small in any::<bool>()) {
        let mut draw = Draw(seed);
        let reference = draw.points(n, &axes);
        let queries = draw.points(21, &axes);
        let k = if small { (1 + (share * 20.0) as usize).min(n) } else { 1 + (share * (n - 1) as f64) as usize };
        assert_exact(&reference, &queries, k);
    }

    #[test]
    fn repeated_points_come_in_row_order(axes in axes(), seed: u64, distinct in 1..6_usize, n in 1..900_usize) {
        let mut draw = Draw(seed);
        let few = draw.points(distinct, &axes);
        let coords = (0..n).flat_map(|_| few.point((draw.next() % distinct as u64) as usize).to_vec()).collect();
        let reference = Points { dim: axes.len(), coords };
        assert_exact(&reference, &few, n.min(40));
    }

    #[test]
    fn queries_far_from_every_unit(seed: u64, n in 1..400_usize, far in prop_oneof![Just(1e20), Just(1e160), Just(-1.7e308)]) {
        let mut draw = Draw(seed);
        let axes = [(Axis::Smooth, 1.0), (Axis::Binary, 1.0), (Axis::Smooth, 0.1)];
        let reference = draw.points(n, &axes);
        let mut queries = draw.points(5, &axes);
        queries.coords[4] = far;
        queries.coords[6] = far;
        assert_exact(&reference, &queries, n.min(17));
    }

    #[test]
    fn an_outlier_hides_nothing(seed: u64, n in 30..400_usize, out in prop_oneof![Just(1e9), Just(1e100), Just(1e308)]) {
        let mut draw = Draw(seed);
        let axes = [(Axis::Smooth, 1.0), (Axis::Grid, 1.0), (Axis::Smooth, 0.1)];
        let mut reference = draw.points(n, &axes);
        reference.coords[7] = out;
        assert_exact(&reference, &draw.points(5, &axes), 20);
    }
}

#[test]
fn thousands_of_ties() {
    let mut draw = Draw(7);
    for axes in [vec![(Axis::Binary, 1.0); 10], vec![(Axis::Binary, 0.3); 3], vec![(Axis::Grid, 1.0); 2]] {
        let reference = draw.points(6000, &axes);
        let queries = draw.points(40, &axes);
        for k in [1, 50, 1000] {
            assert_exact(&reference, &queries, k);
        }
    }
}

#[test]
fn larger_sets_with_learned_and_equal_weights() {
    let mut draw = Draw(11);
    let mut learned: Vec<(Axis, f64)> = Vec::new();
    for j in 0..20 {
        let weight: f64 = if j % 5 == 0 { 0.5 } else { 0.03 };
        learned.push((if j < 10 { Axis::Binary } else { Axis::Smooth }, weight.sqrt()));
    }
    for axes in [learned, vec![(Axis::Smooth, 1.0); 20], vec![(Axis::Smooth, 1.0); 2]] {
        let reference = draw.points(20_000, &axes);
        let queries = draw.points(60, &axes);
        for k in [10, 50, 1000] {
            assert_exact(&reference, &queries, k);
        }
    }
    // Up to and beyond the axes that a look in bytes takes.
    for dim in [200, 256, 257] {
        let wide = vec![(Axis::Smooth, 1.0); dim];
        assert_exact(&draw.points(1000, &wide), &draw.points(40, &wide), 100);
    }
}

/// Skewed axes with long tails: a look in bytes moves many points to the end of its box, and queries with them.
#[test]
fn long_tails() {
    let mut draw = Draw(17);
    let axes = vec![(Axis::Smooth, 1.0); 9];
    let skewed = |mut points: Points| {
        points.coords.iter_mut().for_each(|x| *x = (4.0 * *x).exp());
        points
    };
    let reference = skewed(draw.points(4000, &axes));
    let queries = skewed(draw.points(60, &axes));
    for k in [1, 50, 700] {
        assert_exact(&reference, &queries, k);
    }
}

/// The same neighbours on any number of threads.
#[test]
fn threads_change_nothing() {
    let mut draw = Draw(23);
    for axes in [vec![(Axis::Smooth, 1.0); 6], vec![(Axis::Binary, 1.0); 8], vec![(Axis::Smooth, 1.0)]] {
        let reference = draw.points(5000, &axes);
        let queries = draw.points(700, &axes);
        let search = || Index::build(&reference).nearest(&queries, 50);
        let expected = search();
        for threads in [1, 2, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            assert_same(&pool.install(search), &expected, &format!("{threads} threads"));
        }
    }
}

/// Points that stand among others are found as if they stood alone.
#[test]
fn rows_among_others() {
    let mut draw = Draw(29);
    for axes in [vec![(Axis::Smooth, 1.0); 6], vec![(Axis::Binary, 1.0); 8], vec![(Axis::Smooth, 1.0)]] {
        let all = draw.points(6000, &axes);
        let queries = draw.points(300, &axes);
        let rows: Vec<u32> = (0..6000).filter(|i| i % 3 != 1).collect();
        let coords = rows.iter().flat_map(|&i| all.point(i as usize)).copied().collect();
        let alone = Points { dim: all.dim, coords };
        let found = Index::build_of_rows(&all, &rows).nearest(&queries, 40);
        assert_same(&found, &scan(&alone, &queries, 40), "rows among others");
    }
    assert!(Index::build_of_rows(&Points { dim: 2, coords: vec![1.0, 2.0] }, &[]).is_empty());
}

#[test]
fn scores_on_one_axis() {
    let mut draw = Draw(13);
    for axes in [vec![(Axis::Smooth, 1.0)], vec![(Axis::Constant, 3.0), (Axis::Grid, 1.0)], vec![(Axis::Denormal, 1.0)]]
    {
        let reference = draw.points(3000, &axes);
        let mut queries = draw.points(60, &axes);
        queries.coords[0] = 10.0;
        for k in [1, 50, 3000] {
            assert_exact(&reference, &queries, k);
        }
    }
}

#[test]
fn edges() {
    let none = Points { dim: 3, coords: vec![] };
    let one = Points { dim: 3, coords: vec![1.0, 2.0, 3.0] };
    assert_exact(&one, &one, 1);
    assert_exact(&one, &one, 0);
    assert_exact(&one, &none, 1);
    assert_exact(&none, &one, 0);
    // No axis: no point either, by the definition of `Points`.
    assert_exact(&Points { dim: 0, coords: vec![] }, &Points { dim: 0, coords: vec![] }, 0);
    let signed = Points { dim: 1, coords: vec![0.0, -0.0, 0.0, -0.0] };
    assert_exact(&signed, &signed, 4);
}

#[test]
#[should_panic(expected = "a group of 5 from 4 units")]
fn more_neighbours_than_units() {
    let four = Points { dim: 1, coords: vec![0.0, 1.0, 2.0, 3.0] };
    Index::build(&four).nearest(&four, 5);
}

/// Small enough for Miri and valgrind: every kernel, full and partial panels, ties, both ways.
#[test]
fn small_for_memory_checkers() {
    let mut draw = Draw(5);
    let axes = [(Axis::Binary, 1.0), (Axis::Smooth, 1.0), (Axis::Smooth, 0.2)];
    assert_exact(&draw.points(70, &axes), &draw.points(18, &axes), 9);
    let wide = vec![(Axis::Smooth, 1.0); 14];
    assert_exact(&draw.points(40, &wide), &draw.points(3, &wide), 40);
    assert_exact(&draw.points(20, &axes[1..2]), &draw.points(3, &axes[1..2]), 5);
}
