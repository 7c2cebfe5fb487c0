//! A look at points in integers of 8 bits, before that in `f32`: 64 products in one instruction, and no rounding.
//!
//! Notation as in `margin.rs`: x̂ is the image of a point in `f32`, D the `f32` distance of two images. With a centre c
//! for each axis and a step s, let B be the box of all z with |z − c| ≤ 127 s on every axis and π the projection on B:
//! coordinates beyond an end are moved to it. x̃ = c + s·q, with whole numbers |q| ≤ 127, is π(x̂) rounded, and e(x) ≥
//! ‖π(x̂) − x̃‖. With I = Σ (q(x) − q(y))², a whole number,
//!
//! ‖x̂ − ŷ‖ ≥ ‖π(x̂) − π(ŷ)‖ ≥ ‖x̃ − ỹ‖ − e(x) − e(y) = s√I − e(x) − e(y), (1)
//!
//! the first step because projections on convex sets bring no two points apart, the second by the triangle inequality.
//! A point with D ≤ `limit` has ‖x̂ − ŷ‖ ≤ ρ = √((limit + v)/(1 − g)) by (2) of `margin.rs`, and so by (1)
//!
//! I ≤ T = ((ρ + e(x) + e(y)) / s)². (2)
//!
//! Points with a larger I are passed over; all others are measured in `f32`. Nothing is ever concluded from an I that
//! is small, so that outliers may be moved to the ends of B: B holds nearly all points, not all.
//!
//! The kernels compute V = Σ q(x) (q(y) + 128) − ⌈N(y)/2⌉ with N(y) = Σ q(y)², because instructions multiply signed
//! with unsigned bytes. With C = Σ q(x)² + 256 Σ q(x) it is I = C + N(y) − 2 Σ q(x) (q(y) + 128), so C − 2V is I or I +
//! 1, and I ≤ T implies V ≥ ⌊(C − T − 1)/2⌋. All of it fits into 32 bits for up to [`MOST_AXES`] axes.

use super::margin::Margin;
use super::simd::{Instructions, LANES, Words};
use super::tree::ABSENT;

/// Σ q (q′ + 128) stays below 2²³ and C below 2²⁴ in size.
pub(super) const MOST_AXES: usize = 256;
/// What an absent point has in place of −⌈N/2⌉: V stays below what any threshold asks.
const NEVER: i32 = -(1 << 28);
/// Largest T; beyond it everything passes.
const MOST: f64 = (1 << 27) as f64;
/// Points that the box is fitted to.
const SAMPLED: usize = 256;

/// The map from images to whole numbers.
pub(super) struct Coarse {
    with: Instructions,
    centre: Vec<f64>,
    step: f64,
    /// The largest e of the reference points.
    residual: f64,
}

/// A query in whole numbers.
#[derive(Clone, Default)]
pub(super) struct Level {
    /// q, four axes to a word.
    pub(super) words: Vec<i32>,
    /// C.
    constant: i32,
    /// e.
    residual: f64,
}

impl Coarse {
    /// More than C − 2V of any point, less than that of an absent one.
    pub(super) const MOST_VALUE: f32 = (1 << 27) as f32;

    /// Fits the box to images of `dim` axes each and finds what rounding loses.
    pub(super) fn of(images: &[f32], dim: usize, with: Instructions) -> Coarse {
        let n = images.len() / dim;
        let step = n.div_ceil(SAMPLED).max(1);
        let mut centre = Vec::with_capacity(dim);
        let (mut reach, mut widest) = (0.0_f64, 0.0_f64);
        let mut values = Vec::with_capacity(SAMPLED);
        for axis in 0..dim {
            values.clear();
            values.extend(images.chunks_exact(dim).step_by(step).map(|image| image[axis]));
            values.sort_unstable_by(f32::total_cmp);
            // All but about a hundredth at each end.
            let end = values.len() / 100;
            let ends = [0, end, values.len() - 1 - end, values.len() - 1].map(|i| f64::from(values[i]));
            centre.push(0.5 * (ends[1] + ends[2]));
            reach = reach.max(0.5 * (ends[2] - ends[1]));
            widest = widest.max(ends[3] - ends[0]);
        }
        let reach = if reach > 0.0 { reach } else { widest };
        let step = if reach > 0.0 { reach / 127.0 } else { 1.0 };
        Coarse { with, centre, step, residual: 0.0 }
    }

    /// Writes q, four axes to a word, and returns N and e.
    fn round(&self, image: &[f32], words: &mut [i32; MOST_AXES / 4]) -> (i32, f64) {
        let mut q = [0_i8; MOST_AXES];
        let lost = self.with.bytes(image, &self.centre, self.step, &mut q[..image.len()]);
        let used = image.len().div_ceil(4);
        for (word, q) in words[..used].iter_mut().zip(q.chunks_exact(4)) {
            *word = i32::from_le_bytes([q[0] as u8, q[1] as u8, q[2] as u8, q[3] as u8]);
        }
        let squares = q[..4 * used].iter().map(|&q| i32::from(q) * i32::from(q)).sum();
        // The roundings of it are a few times 2⁻⁵³ of 127 s on each axis, and of the sum; 2⁻⁴⁰ covers them by far.
        (squares, f64::sqrt(lost) + 127.0 * self.step * image.len() as f64 * 2.0_f64.powi(-40))
    }

    /// A query.
    pub(super) fn level(&self, image: &[f32], level: &mut Level) {
        let mut words = [0; MOST_AXES / 4];
        let (squares, residual) = self.round(image, &mut words);
        level.words.clear();
        level.words.extend_from_slice(&words[..image.len().div_ceil(4)]);
        let sum: i32 = level.words.iter().flat_map(|w| w.to_le_bytes()).map(|q| i32::from(q as i8)).sum();
        level.constant = squares + 256 * sum;
        level.residual = residual;
    }

    /// Packs sixteen reference points: −⌈N/2⌉ of each, then q + 128, four axes to a word.
    pub(super) fn pack(&self, images: &[f32], dim: usize, position: &[u32], panel: &mut [Words]) -> f64 {
        let mut worst = 0.0_f64;
        let mut words = [0; MOST_AXES / 4];
        panel.fill(Words([0; LANES]));
        for (lane, &at) in position.iter().enumerate() {
            if at == ABSENT {
                panel[0].0[lane] = NEVER;
                continue;
            }
            let (squares, residual) = self.round(&images[at as usize * dim..][..dim], &mut words);
            for (axes, word) in panel[1..].iter_mut().zip(&words) {
                // Adds 128 to each byte, which turns its first bit.
                axes.0[lane] = word ^ 0x8080_8080_u32 as i32;
            }
            panel[0].0[lane] = -((squares + 1) / 2);
            worst = worst.max(residual);
        }
        worst
    }

    /// Takes note of what rounding loses at most.
    pub(super) fn loses(&mut self, residual: f64) {
        self.residual = residual;
    }

    /// The squared distance of images for which a `C − 2V` stands.
    pub(super) fn squared(&self, value: f32) -> f32 {
        value * (self.step * self.step) as f32
    }

    /// The least V of a point whose `f32` distance may be at most `limit`.
    pub(super) fn least(&self, level: &Level, limit: f32, margin: &Margin) -> i32 {
        let far = (margin.reach(limit) + level.residual + self.residual) / self.step;
        // The factor covers the few roundings of this very computation.
        let most = far * far * (1.0 + 1e-9);
        // Also for NaN and ∞: everything passes.
        let most = if most < MOST { most as i32 } else { MOST as i32 };
        (level.constant - most - 1).div_euclid(2)
    }
}

impl Level {
    /// C − 2V: of a present point its I, or one more.
    pub(super) fn value(&self, v: i32) -> f32 {
        (i64::from(self.constant) - 2 * i64::from(v)) as f32
    }

    /// C.
    pub(super) fn constant(&self) -> i32 {
        self.constant
    }
}

#[cfg(test)]
mod tests {
    use super::super::simd::{Instructions, Look};
    use super::super::{Points, Reference};
    use super::*;
    use proptest::prelude::*;

    /// Coordinates with ties, zeros, outliers, and scales that share no digits.
    fn points(n: usize, dim: usize) -> impl Strategy<Value = Points> {
        let value = prop_oneof![
            6 => -2.0_f64..2.0,
            3 => Just(0.0),
            2 => Just(1.0),
            1 => Just(0.1),
            1 => -1e-9_f64..1e-9,
            1 => Just(1e6),
        ];
        prop::collection::vec(value, n * dim).prop_map(move |coords| Points { dim, coords })
    }

    /// V as `coarse.rs` writes it.
    fn value(level: &Level, panel: &[Words], lane: usize) -> i32 {
        let dot = |word: usize| -> i32 {
            let (q, y) = (level.words[word].to_le_bytes(), panel[1 + word].0[lane].to_le_bytes());
            (0..4).map(|i| i32::from(q[i] as i8) * i32::from(y[i])).sum()
        };
        panel[0].0[lane] + (0..level.words.len()).map(dot).sum::<i32>()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// What the text above proves: no point within a limit has a V below the least; and the kernels compute V, and
        /// distances within the margin's bound.
        #[test]
        fn no_point_within_the_limit_is_passed_over(
            (reference, query) in (1_usize..40).prop_flat_map(|dim| (points(45, dim), points(1, dim))),
            shrink in prop_oneof![Just(1.0), Just(1e-200), Just(1e150)],
        ) {
            let shrunk = |p: &Points| Points { dim: p.dim, coords: p.coords.iter().map(|x| x * shrink).collect() };
            let (reference, query) = (shrunk(&reference), shrunk(&query));
            let dim = reference.dim;
            let with = Instructions::best();
            let (margin, images) = Margin::of(Reference { points: &reference, rows: None }, with);
            let mut image = vec![0.0_f32; dim];
            prop_assert!(margin.image(query.point(0), &mut image).is_some());
            let mut coarse = Coarse::of(&images, dim, with);
            let position: Vec<u32> = (0..48).map(|i| if i < 45 { i } else { ABSENT }).collect();
            let size = dim.div_ceil(4) + 1;
            let mut words = vec![Words([0; LANES]); 3 * size];
            let worst = words.chunks_exact_mut(size).zip(position.chunks_exact(LANES))
                .map(|(panel, position)| coarse.pack(&images, dim, position, panel)).fold(0.0, f64::max);
            coarse.loses(worst);
            let mut level = Level::default();
            coarse.level(&image, &mut level);
            let v: Vec<i32> = (0..48).map(|i| value(&level, &words[i / LANES * size..][..size], i % LANES)).collect();
            let near: Vec<f32> = images.chunks_exact(dim)
                .map(|y| y.iter().zip(&image).map(|(y, x)| (y - x) * (y - x)).sum()).collect();
            for i in 0..45 {
                prop_assert!(v[i] >= coarse.least(&level, near[i], &margin), "point {i}");
            }
            let all = coarse.least(&level, f32::MAX, &margin);
            prop_assert!(v[..45].iter().all(|v| *v >= all) && v[45..].iter().all(|v| *v < all), "absent points never pass");
            if !with.are_coarse() {
                return Ok(());
            }
            let mut values = vec![0.0; 48];
            with.coarse_values(&level.words, &words, 3, level.constant(), &mut values);
            for i in 0..45 {
                prop_assert_eq!(values[i], level.value(v[i]));
            }
            let least = v[7];
            let expected: Vec<u32> = (0..48).filter(|&i| v[i as usize] >= least).map(|i| 100 + i).collect();
            let mut slots = vec![0; 80];
            // Alone, and two queries side by side.
            let other = Level { words: level.words.iter().rev().copied().collect(), ..level.clone() };
            let look = |level: &Level, slots: &mut [u32]| {
                let mut len = 0;
                with.coarse_slots(&mut [Look { words: &level.words, least, slots, len: &mut len }], &words, 3, 100);
                len
            };
            let n = look(&level, &mut slots);
            prop_assert_eq!(&slots[..n], &expected[..]);
            let mut alone = vec![0; 80];
            let n_alone = look(&other, &mut alone);
            let (mut first, mut second, mut lens) = (vec![0; 80], vec![0; 80], [0, 0]);
            let [a, b] = &mut lens;
            let mut two = [
                Look { words: &level.words, least, slots: &mut first, len: a },
                Look { words: &other.words, least, slots: &mut second, len: b },
            ];
            with.coarse_slots(&mut two, &words, 3, 100);
            prop_assert_eq!(&first[..lens[0]], &expected[..]);
            prop_assert_eq!(&second[..lens[1]], &alone[..n_alone]);
            let cut = level.value(least).min(Coarse::MOST_VALUE);
            let n = with.between(&values, f32::NEG_INFINITY, cut, 100, &mut slots);
            prop_assert_eq!(&slots[..n], &expected[..]);
            let (mut found, mut slot) = (vec![0.0; 32], vec![0; 32]);
            let some: Vec<u32> = (3..3 + 1 + (dim as u32 % 16)).collect();
            let n = with.fine(&image, &images, &some, f32::MAX, &mut found, &mut slot, 0);
            prop_assert_eq!(&slot[..n], &some[..]);
            for (d, &s) in found[..n].iter().zip(&some) {
                let plain = f64::from(near[s as usize]);
                prop_assert!((f64::from(*d) - plain).abs() <= 1e-5 * plain + 1e-37, "{d} {plain}");
            }
        }
    }
}
