//! The kernels of the search, once per instruction set: AVX-512, with and without VNNI, AVX2 with FMA, and plain Rust
//! that any processor runs (ARM included; the compiler vectorises it). All unsafe code of the search is here and in
//! `simd/`. AVX-512 needs Rust 1.89, which `build.rs` looks for (`cfg(avx512)`); an older compiler builds the others.
//!
//! Data are laid out for 16 lanes: a *panel* is 16 points, axis-major (`panel[axis].0[lane]`).
//!
//! Invariant on which pruning rests: within one instruction set, [`Instructions::box_gaps`] and
//! [`Instructions::scan_panels`] run the same chain `sum ← round(sum + d·d)` over axes in the same
//! order. Rounding is monotone, so the computed gap of a box never exceeds the computed distance of a
//! point inside it, and a partial sum never exceeds the whole: comparisons need no tolerance.

#![cfg_attr(not(avx512), allow(unused_variables, dead_code, reason = "only kernels of AVX-512 look at bytes"))]

#[cfg(avx512)]
#[clippy::msrv = "1.89"]
mod vnni;

use super::axes::AxisOrder;
#[cfg(target_arch = "x86_64")]
use crate::processor::{InstructionSet, may_use};

/// Points in a panel, and children of a node.
pub(super) const LANES: usize = 16;

/// One axis of a panel: a cache line, and one load of the widest instructions.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Lanes(pub(super) [f32; LANES]);

/// A word for each point of a panel: four axes in bytes, or a number that goes with them.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Words(pub(super) [i32; LANES]);

/// A query that looks at panels in bytes.
pub(super) struct Look<'a> {
    /// Its q, four axes to a word.
    pub(super) words: &'a [i32],
    /// The least V that passes.
    pub(super) least: i32,
    /// Slots that passed; the first `len` count.
    pub(super) slots: &'a mut [u32],
    pub(super) len: &'a mut usize,
}

/// A group of panels is given up when, after `early` axes, and then after each `STAGE` more, no lane can
/// enter. Checks cost little beside this many axes.
const STAGE: usize = 16;

/// Where to check next.
#[inline(always)]
fn next_stage(stop: usize, dim: usize) -> usize {
    if stop + STAGE + STAGE / 2 >= dim { dim } else { stop + STAGE }
}

/// An instruction set of the processor at hand. All of them give the same neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instructions(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(avx512)]
    Avx512,
    /// With products of bytes, which look at points before [`Set::Avx512`] measures them.
    #[cfg(avx512)]
    Vnni,
}

impl Instructions {
    /// Those that this processor has and that may be used, the plainest first.
    pub fn available() -> Vec<Instructions> {
        #[allow(unused_mut)]
        let mut sets = vec![Instructions(Set::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            if may_use(InstructionSet::Avx2) {
                sets.push(Instructions(Set::Avx2));
            }
            #[cfg(avx512)]
            if may_use(InstructionSet::Avx512) {
                sets.push(Instructions(Set::Avx512));
                if is_x86_feature_detected!("avx512vnni")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vbmi2")
                {
                    sets.push(Instructions(Set::Vnni));
                }
            }
        }
        sets
    }

    /// The widest that this processor has.
    pub fn best() -> Instructions {
        Instructions::available().pop().unwrap_or(Instructions(Set::Portable))
    }

    /// The widest without products of bytes.
    pub(super) fn without_bytes() -> Instructions {
        Instructions::available().into_iter().rfind(|with| !with.are_coarse()).unwrap_or(Instructions(Set::Portable))
    }

    /// Whether points are looked at in bytes first: `coarse_slots`, `coarse_values` and `fine` are for these only.
    pub(super) fn are_coarse(self) -> bool {
        #[cfg(avx512)]
        return self.0 == Set::Vnni;
        #[cfg(not(avx512))]
        return false;
    }

    /// Appends, for each query, the slots of all points of the first `count` panels whose V is at least what it asks.
    /// All have as many words.
    #[inline]
    pub(super) fn coarse_slots<const N: usize>(
        self,
        looks: &mut [Look<'_>; N],
        panels: &[Words],
        count: usize,
        first_slot: u32,
    ) {
        let size = looks[0].words.len() + 1;
        assert!(count * size <= panels.len());
        assert!(looks.iter().all(|l| l.words.len() + 1 == size && *l.len + LANES * (count + 1) <= l.slots.len()));
        match self.0 {
            // SAFETY: `available` found the instructions; the sizes were checked above.
            #[cfg(avx512)]
            Set::Vnni => unsafe { vnni::coarse_slots(looks, panels, count, first_slot) },
            _ => unreachable!("no products of bytes"),
        }
    }

    /// Writes `constant` − 2V of all points of the first `count` panels.
    #[inline]
    pub(super) fn coarse_values(self, query: &[i32], panels: &[Words], count: usize, constant: i32, out: &mut [f32]) {
        assert!(count * (query.len() + 1) <= panels.len() && LANES * count <= out.len());
        match self.0 {
            // SAFETY: `available` found the instructions; the sizes were checked above.
            #[cfg(avx512)]
            Set::Vnni => unsafe { vnni::coarse_values(query, panels, count, constant, out) },
            _ => unreachable!("no products of bytes"),
        }
    }

    /// Writes the slots of the values above `above` and at most `most`; the value at `i` is that of slot `first_slot` +
    /// `i`. Whole groups of 16 only.
    #[inline]
    pub(super) fn between(self, values: &[f32], above: f32, most: f32, first_slot: u32, slots: &mut [u32]) -> usize {
        assert!(values.len().is_multiple_of(LANES) && values.len() + LANES <= slots.len());
        match self.0 {
            // SAFETY: `available` found the instructions; the sizes were checked above.
            #[cfg(avx512)]
            Set::Vnni => unsafe { vnni::between(values, above, most, first_slot, slots) },
            _ => unreachable!("no products of bytes"),
        }
    }

    /// Computes the distances of `query` to up to 16 rows, by slot, and appends each that is at most `limit`, with its
    /// slot, to `near` and `slot` behind their first `len` entries. Returns the new length.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn fine(
        self,
        query: &[f32],
        rows: &[f32],
        slots: &[u32],
        limit: f32,
        near: &mut [f32],
        slot: &mut [u32],
        len: usize,
    ) -> usize {
        assert!(slots.len() <= LANES && !query.is_empty());
        assert!(len + LANES <= near.len() && len + LANES <= slot.len());
        match self.0 {
            // SAFETY: `available` found the instructions; the sizes were checked above, and the kernel checks the
            // slots.
            #[cfg(avx512)]
            Set::Vnni => unsafe { vnni::fine(query, rows, slots, limit, near, slot, len) },
            _ => unreachable!("no products of bytes"),
        }
    }

    /// Computes the distances of `query` to the panels named by the bits of `which` and appends each
    /// that is at most `limit`, with its slot, to `near` and `slot` behind their first `len` entries.
    /// Returns the new length. Panels are left after `early` axes when no lane of them can enter.
    #[allow(clippy::too_many_arguments)]
    #[inline]
    pub(super) fn scan_panels(
        self,
        query: &[f32],
        panels: &[Lanes],
        which: u16,
        limit: f32,
        early: usize,
        first_slot: u32,
        near: &mut [f32],
        slot: &mut [u32],
        len: usize,
    ) -> usize {
        // What the unsafe kernels rely on.
        let highest = 16 - which.leading_zeros() as usize;
        assert!(early <= query.len() && highest * query.len() <= panels.len());
        let room = len + LANES * (which.count_ones() as usize + 1);
        assert!(room <= near.len() && room <= slot.len());
        match self.0 {
            Set::Portable => portable::scan_panels(query, panels, which, limit, early, first_slot, near, slot, len),
            // SAFETY: `available` found the instructions; the sizes were checked above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::scan_panels(query, panels, which, limit, early, first_slot, near, slot, len) },
            // SAFETY: as above.
            #[cfg(avx512)]
            Set::Avx512 | Set::Vnni => unsafe {
                avx512::scan_panels(query, panels, which, limit, early, first_slot, near, slot, len)
            },
        }
    }

    /// Squared distances of `query` to 16 boxes over the first `boxes.len() / 2` axes; `boxes` holds
    /// for each axis the lower ends, then the upper ends.
    #[inline]
    pub(super) fn box_gaps(self, query: &[f32], boxes: &[Lanes]) -> [f32; LANES] {
        assert!(boxes.len() / 2 <= query.len());
        match self.0 {
            Set::Portable => portable::box_gaps(query, boxes),
            // SAFETY: `available` found the instructions; the sizes were checked above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::box_gaps(query, boxes) },
            // SAFETY: as above.
            #[cfg(avx512)]
            Set::Avx512 | Set::Vnni => unsafe { avx512::box_gaps(query, boxes) },
        }
    }

    /// Asks for memory that will be read soon.
    #[inline]
    pub(super) fn fetch<T>(self, row: &[T]) {
        #[cfg(target_arch = "x86_64")]
        for line in row.chunks(64 / size_of::<T>()) {
            // SAFETY: a hint; it reads nothing.
            unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.as_ptr().cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = row;
    }

    /// A value that at least `k` of `values` do not exceed, and at most `k + slack` where ties allow.
    /// Needs `1 ≤ k ≤ values.len()`; the values are not negative. Fastest where `guess` is near the answer.
    #[inline]
    pub(super) fn threshold(self, values: &[f32], k: usize, slack: usize, guess: f32) -> f32 {
        match self.0 {
            Set::Portable => portable::threshold(values, k, slack, guess),
            // SAFETY: `available` found the instructions.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::threshold(values, k, slack, guess) },
            // SAFETY: as above.
            #[cfg(avx512)]
            Set::Avx512 | Set::Vnni => unsafe { avx512::threshold(values, k, slack, guess) },
        }
    }

    /// Smallest and largest of some non-negative values (+∞ and 0 when there is none).
    #[inline]
    pub(super) fn range(self, values: &[f32]) -> (f32, f32) {
        match self.0 {
            Set::Portable => portable::range(values),
            // SAFETY: `available` found the instructions.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::range(values) },
            // SAFETY: as above.
            #[cfg(avx512)]
            Set::Avx512 | Set::Vnni => unsafe { avx512::range(values) },
        }
    }

    /// Writes (point − centre)·scale as `f32`, axes in the order of `axes`. Returns the sum of squares of
    /// what rounding lost, of what was rounded, and its largest size.
    #[inline]
    pub(super) fn image(
        self,
        point: &[f64],
        axes: &AxisOrder,
        centre: &[f64],
        scale: f64,
        image: &mut [f32],
    ) -> (f64, f64, f64) {
        assert!(axes.len() == centre.len() && axes.len() == image.len() && axes.len() == point.len());
        match self.0 {
            Set::Portable => portable::image(point, axes.as_slice(), centre, scale, image),
            // SAFETY: `available` found the instructions.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::image(point, axes.as_slice(), centre, scale, image) },
            // SAFETY: `available` found the instructions; the lengths were checked above.
            #[cfg(avx512)]
            Set::Avx512 | Set::Vnni => unsafe { avx512::image(point, axes, centre, scale, image) },
        }
    }

    /// Writes (image − centre) / step, no farther than ±127, as the nearest whole numbers. Returns the sum of squares
    /// of what rounding lost.
    #[inline]
    pub(super) fn bytes(self, image: &[f32], centre: &[f64], step: f64, out: &mut [i8]) -> f64 {
        assert!(centre.len() == image.len() && out.len() == image.len());
        match self.0 {
            // SAFETY: `available` found the instructions; the lengths are equal.
            #[cfg(avx512)]
            Set::Vnni => unsafe { vnni::bytes(image, centre, step, out) },
            _ => portable::bytes(image, centre, step, out),
        }
    }

    /// The squared distances of the package, [`super::scan::squared_distance`], of eight points.
    #[inline]
    pub(super) fn exact(self, query: &[f64], points: &[&[f64]; 8]) -> [f64; 8] {
        assert!(points.iter().all(|point| point.len() == query.len()));
        match self.0 {
            Set::Portable => portable::exact(query, points),
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => portable::exact(query, points),
            // SAFETY: `available` found the instructions; the lengths are equal.
            #[cfg(avx512)]
            Set::Avx512 | Set::Vnni => unsafe { avx512::exact(query, points) },
        }
    }

    /// For each key, how many keys are smaller. Whole groups of eight only: the caller pads.
    #[inline]
    pub(super) fn ranks(self, keys: &[i64], ranks: &mut [i64]) {
        match self.0 {
            Set::Portable => portable::ranks(keys, ranks),
            // SAFETY: `available` found the instructions.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::ranks(keys, ranks) },
            // SAFETY: as above.
            #[cfg(avx512)]
            Set::Avx512 | Set::Vnni => unsafe { avx512::ranks(keys, ranks) },
        }
    }

    /// Sorts values no two of which are equal, none of them `u32::MAX`: few of them, where 16 are compared at once, by
    /// counting for each how many are smaller, which takes n² comparisons but no branch.
    pub fn sort_distinct(self, values: &mut [u32]) {
        match self.0 {
            // SAFETY: `available` found the instructions, here and below.
            #[cfg(avx512)]
            Set::Vnni if values.len() <= avx512::FEW && unsafe { vnni::sort_few(values) } => {}
            #[cfg(avx512)]
            Set::Avx512 | Set::Vnni if values.len() <= avx512::FEW => unsafe { avx512::sort_few(values) },
            _ => values.sort_unstable(),
        }
    }

    /// Writes the places of the values that are at most `low` or at least `high`; returns how many. `out` has room for
    /// whole groups of 16.
    #[inline]
    pub(super) fn outside(self, values: &[f32], low: f32, high: f32, out: &mut [u32]) -> usize {
        assert!(values.len().next_multiple_of(LANES) <= out.len());
        match self.0 {
            // SAFETY: `available` found the instructions; there is room.
            #[cfg(avx512)]
            Set::Avx512 | Set::Vnni => unsafe { avx512::outside(values, low, high, out) },
            _ => portable::outside(values, low, high, out),
        }
    }

    /// Moves the pairs whose value is at most `limit` to the front, in their order; returns how many.
    #[inline]
    pub(super) fn compact(self, near: &mut [f32], slot: &mut [u32], limit: f32) -> usize {
        assert_eq!(near.len(), slot.len());
        match self.0 {
            Set::Portable => portable::compact(near, slot, limit),
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => portable::compact(near, slot, limit),
            // SAFETY: `available` found the instructions; the lengths are equal.
            #[cfg(avx512)]
            Set::Avx512 | Set::Vnni => unsafe { avx512::compact(near, slot, limit) },
        }
    }
}

/// The search of [`Instructions::threshold`]: `count` says how many values are at most a limit, `between` writes those
/// above one and at most another, no more than 16, and says how many.
#[inline(always)]
fn bisect(
    values: &[f32],
    k: usize,
    slack: usize,
    guess: f32,
    count: impl Fn(f32) -> usize,
    between: impl Fn(f32, f32, &mut [f32; 2 * LANES]) -> usize,
) -> f32 {
    // Invariant: `below` < k are ≤ low, `above` ≥ k are ≤ high.
    let (mut low, mut below, mut high, mut above) = (-1.0_f32, 0, f32::INFINITY, values.len());
    let mut middle = guess;
    let mut round = 0;
    while above > k + slack {
        if above - below <= LANES {
            // The answer is among a few: the one with as many before it as are missing.
            let mut room = [0.0; 2 * LANES];
            let n = between(low, high, &mut room);
            // Always sixteen, so that all are compared at once.
            let mut few = [f32::INFINITY; LANES];
            few[..n].copy_from_slice(&room[..n]);
            let mut upto = [0_u32; LANES];
            for y in few {
                for (count, x) in upto.iter_mut().zip(few) {
                    *count += u32::from(y <= x);
                }
            }
            // The smallest that, with it, as many do not exceed as are missing.
            let wanted = (k - below) as u32;
            return few.into_iter().zip(upto).fold(high, |h, (x, n)| if n >= wanted && x < h { x } else { h });
        }
        if !(middle > low && middle < high) {
            let from = if low < 0.0 { -1 } else { i64::from(low.to_bits()) };
            if i64::from(high.to_bits()) - from <= 1 {
                break;
            }
            middle = f32::from_bits(((from + i64::from(high.to_bits())) / 2) as u32);
        }
        let n = count(middle);
        if n >= k {
            (high, above) = (middle, n);
        } else {
            (low, below) = (middle, n);
        }
        round += 1;
        // Interpolate a few times: as if numbers grew with the cube of the value, then straight between the ends; then
        // halve the bits, which ends for any values.
        let aim = k as f32 + 0.5 * slack as f32;
        middle = if round == 1 {
            let n = n.max(1) as f32;
            middle * (1.0 + (aim - n) / (3.0 * n)).clamp(0.5, 2.0)
        } else if round < 8 && high < f32::INFINITY {
            low.max(0.0) + (high - low.max(0.0)) * ((aim - below as f32) / (above - below) as f32).clamp(0.02, 0.98)
        } else {
            f32::NAN
        };
    }
    // Nobody is beyond infinity, but the answer is a value.
    if high < f32::INFINITY { high } else { values.iter().copied().fold(0.0, f32::max) }
}

mod portable;

#[cfg(target_arch = "x86_64")]
mod avx2;

#[cfg(avx512)]
#[clippy::msrv = "1.89"]
mod avx512;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lanes(values: &[f32]) -> Vec<Lanes> {
        values.chunks_exact(LANES).map(|v| Lanes(std::array::from_fn(|i| v[i]))).collect()
    }

    fn coordinates(n: usize) -> impl Strategy<Value = Vec<f32>> {
        // Ties and zeros on purpose.
        proptest::collection::vec(prop_oneof![-4.0_f32..4.0, Just(0.0), Just(1.0)], n)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Distances differ between instruction sets by rounding only, and what is kept differs at the limit only.
        #[test]
        fn panels((dim, values, query) in (1_usize..40).prop_flat_map(|d| (Just(d), coordinates(16 * 16 * d), coordinates(d))),
                  which: u16, limit in 0.0_f32..60.0, early in 0.0_f64..1.0) {
            let panels = lanes(&values);
            let early = (early * dim as f64) as usize;
            let point = |slot: usize| (0..dim).map(move |a| (slot / LANES * dim + a, slot % LANES));
            let exact = |slot: usize| -> f64 {
                point(slot).zip(&query).map(|((row, lane), q)| f64::from(panels[row].0[lane] - q).powi(2)).sum()
            };
            let slack = 1e-5 * (1.0 + f64::from(limit)) * dim as f64;
            for with in Instructions::available() {
                let (mut near, mut slot) = (vec![0.0; 17 * LANES], vec![0; 17 * LANES]);
                let n = with.scan_panels(&query, &panels, which, limit, early, 0, &mut near, &mut slot, 0);
                prop_assert!(slot[..n].windows(2).all(|w| w[0] < w[1]), "{with:?}: each slot once, in order");
                for (d, &s) in near.iter().zip(&slot[..n]) {
                    prop_assert!((f64::from(*d) - exact(s as usize)).abs() < slack, "{with:?}");
                }
                for s in (0..16 * LANES).filter(|s| which & (1 << (s / LANES)) != 0) {
                    let kept = slot[..n].contains(&(s as u32));
                    let off = exact(s) - f64::from(limit);
                    prop_assert!(off.abs() < slack || kept == (off < 0.0), "{with:?}: slot {s}, {off} from the limit");
                }
                prop_assert!(slot[..n].iter().all(|s| which & (1 << (*s as usize / LANES)) != 0));
            }
        }

        /// No point of a box is nearer than its gap, in the arithmetic of the same instruction set: what pruning rests
        /// on.
        #[test]
        fn boxes((dim, values, query) in (1_usize..14).prop_flat_map(|d| (Just(d), coordinates(16 * d), coordinates(d)))) {
            let panels = lanes(&values);
            // Sixteen boxes that hold the whole panel, and so each of its points.
            let ends: Vec<Lanes> = panels.iter().flat_map(|axis| {
                let low = axis.0.iter().copied().fold(f32::INFINITY, f32::min);
                let high = axis.0.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                [Lanes([low; LANES]), Lanes([high; LANES])]
            }).collect();
            let mut plain: Option<[f32; LANES]> = None;
            for with in Instructions::available() {
                let gaps = with.box_gaps(&query, &ends);
                let (mut near, mut slot) = (vec![0.0; 2 * LANES], vec![0; 2 * LANES]);
                let n = with.scan_panels(&query, &panels, 1, f32::MAX, dim, 0, &mut near, &mut slot, 0);
                prop_assert_eq!(n, LANES);
                prop_assert!(near[..n].iter().all(|d| *d >= gaps[0]), "{:?}", with);
                let first = plain.get_or_insert(gaps);
                prop_assert!(gaps.iter().zip(first).all(|(a, b)| (a - *b).abs() <= 1e-5 * (1.0 + *b)));
            }
        }

        /// Everything that only compares or moves is the same in every bit.
        #[test]
        fn lists(values in proptest::collection::vec(prop_oneof![0.0_f32..9.0, Just(1.0), Just(0.0)], 0..200), limit in 0.0_f32..9.0) {
            let keys: Vec<i64> = values.iter().map(|v| i64::from(v.to_bits())).chain(std::iter::repeat_n(i64::MAX, 8))
                .take(values.len().next_multiple_of(8)).collect();
            let answers: Vec<_> = Instructions::available().into_iter().map(|with| {
                let (mut near, mut slot) = (values.clone(), (0..values.len() as u32).collect::<Vec<_>>());
                let kept = with.compact(&mut near, &mut slot, limit);
                let mut ranks = vec![0; keys.len()];
                with.ranks(&keys, &mut ranks);
                let mut outer = vec![0; values.len().next_multiple_of(LANES)];
                let n = with.outside(&values, 0.5 * limit, limit, &mut outer);
                outer.truncate(n);
                (with.range(&values), outer, near[..kept].to_vec(), slot[..kept].to_vec(), ranks)
            }).collect();
            prop_assert!(answers.iter().all(|a| a == &answers[0]), "{answers:?}");
            prop_assert_eq!(answers[0].2.len(), values.iter().filter(|v| **v <= limit).count());
            let outer: Vec<u32> = (0..values.len() as u32).filter(|&i| !(0.5 * limit < values[i as usize] && values[i as usize] < limit)).collect();
            prop_assert_eq!(&answers[0].1, &outer);
        }

        /// What a threshold promises, wherever the search for it begins.
        #[test]
        fn thresholds(values in proptest::collection::vec(prop_oneof![4 => 0.0_f32..9.0, 1 => Just(1.0), 1 => Just(0.0), 1 => 1e-40_f32..1e-38,
                      1 => Just(f32::MAX)], 1..300), at in 0.0_f64..1.0, slack in 0_usize..20,
                      guess in prop_oneof![0.0_f32..9.0, Just(f32::NAN), Just(0.0), Just(f32::INFINITY), Just(-3.0)]) {
            let k = 1 + (at * (values.len() - 1) as f64) as usize;
            let mut sorted = values.clone();
            sorted.sort_by(f32::total_cmp);
            for with in Instructions::available() {
                let t = with.threshold(&values, k, slack, guess);
                let n = values.iter().filter(|v| **v <= t).count();
                // No more than the slack beyond the k-th, unless they tie with it.
                prop_assert!(n >= k && (n <= k + slack || t == sorted[k - 1]), "{with:?}: {n} of {k} + {slack} at {t}");
            }
        }

        #[test]
        fn sorting(values in proptest::collection::hash_set(0_u32..5000, 0..250)) {
            let values: Vec<u32> = values.into_iter().collect();
            let mut expected = values.clone();
            expected.sort_unstable();
            for with in Instructions::available() {
                let mut sorted = values.clone();
                with.sort_distinct(&mut sorted);
                prop_assert_eq!(&sorted, &expected, "{:?}", with);
            }
        }

        /// An image is the same in every bit, few axes or many; its sums differ by rounding only.
        #[test]
        fn images((order, point, centre) in (1_usize..75).prop_flat_map(|d| {
                      let order = Just((0..d as u32).collect::<Vec<_>>()).prop_shuffle();
                      let point = proptest::collection::vec(-1e3_f64..1e3, d);
                      (order, point, proptest::collection::vec(-10.0_f64..10.0, d))
                  })) {
            let axes = AxisOrder::new(order.clone());
            let expected: Vec<f64> = order.iter().map(|&a| (point[a as usize] - centre[a as usize]) * 0.25).collect();
            let norm: f64 = expected.iter().map(|z| z * z).sum();
            let most = expected.iter().fold(0.0_f64, |m, z| m.max(z.abs()));
            for with in Instructions::available() {
                let mut image = vec![0.0; point.len()];
                let found = with.image(&point, &axes, &centre, 0.25, &mut image);
                prop_assert!(image.iter().zip(&expected).all(|(x, z)| *x == *z as f32), "{with:?}");
                let lost: f64 = image.iter().zip(&expected).map(|(x, z)| (z - f64::from(*x)).powi(2)).sum();
                let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b;
                prop_assert!(close(found.0, lost) && close(found.1, norm) && found.2 == most, "{with:?}: {found:?}");
            }
        }

        /// The distances of the answer are those of the plain sum, in every bit.
        #[test]
        fn exact_distances(points in proptest::collection::vec(proptest::collection::vec(-1e3_f64..1e3, 23), 9)) {
            let rows: [&[f64]; 8] = std::array::from_fn(|i| &points[i][..]);
            let expected: Vec<f64> = rows.iter().map(|r| super::super::scan::squared_distance(&points[8], r)).collect();
            for with in Instructions::available() {
                prop_assert_eq!(with.exact(&points[8], &rows).to_vec(), expected.clone(), "{:?}", with);
            }
        }
    }
}
