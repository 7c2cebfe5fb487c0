//! From `f64` to `f32` and back: how far a distance computed in `f32` can lie from the distance of the
//! package, so that a first pass in `f32` loses no neighbour.
//!
//! Notation. x is a point as given; x′ = (x − c)·s in real numbers, with a centre c per axis and one
//! power of two s, so that ‖x′ − y′‖ = s‖x − y‖; x̂ is x′ rounded to `f32`. With
//! E ≥ ‖x̂ − x′‖ + ‖ŷ − y′‖ the triangle inequality gives | ‖x̂ − ŷ‖ − ‖x′ − y′‖ | ≤ E. (1)
//!
//! The `f32` kernel computes D from x̂ and ŷ: one rounding for each difference, at most one for each
//! square and one for each sum, each a factor within 1 ± 2⁻²⁴, and squares that underflow lose at most
//! 2⁻¹⁴⁹ each. Over p axes: |D − ‖x̂ − ŷ‖²| ≤ g‖x̂ − ŷ‖² + v with g = (p + 4)·2⁻²³, v = p·2⁻¹⁴⁸. (2)
//!
//! The `f64` distance T of the package has the same form: |s²T − ‖x′ − y′‖²| ≤ h‖x′ − y′‖² + u with
//! h = (p + 4)·2⁻⁵², u = p·s²·2⁻¹⁰⁷⁴ (differences of `f64` do not underflow, squares do). (3)
//! h has [`SAME`] on top, so that points at the same distance as the K-th are within the bound too.
//!
//! Let at least K points have D ≤ t. By (2) and (1) each of them has ‖x′ − y′‖ ≤ √((t + v)/(1 − g)) + E,
//! by (3) the K-th smallest T satisfies s²T ≤ (that)²(1 + h) + u. A point of the answer has a T not
//! larger, so by (3) ‖x′ − y′‖² ≤ (s²T + u)/(1 − h), and by (1), (2) D ≤ (‖x′ − y′‖ + E)²(1 + g) + v.
//! [`Margin::limit`] is this bound; [`Margin::limit_of_exact`] starts in the middle, from T itself.
//! Points beyond the bound are not in the answer, however ties fall.

use super::Reference;
use super::axes::AxisOrder;
use super::scan::SAME;
use super::simd::Instructions;
use super::tree::CHUNK;
use rayon::prelude::*;

/// The map from match space to the `f32` space of the first pass, and the error that it makes.
pub(super) struct Margin {
    /// Axes in the order of the first pass: largest variance first.
    axes: AxisOrder,
    /// Of the axes as they are given.
    centre: Vec<f64>,
    scale: f64,
    with: Instructions,
    /// The largest ‖x̂ − x′‖ of the reference points.
    residual: f64,
    /// g, h, v, u of the text above.
    g: f64,
    h: f64,
    v: f64,
    u: f64,
    /// 1/(1 − g) and 1/(1 − h).
    by_g: f64,
    by_h: f64,
}

/// Points that say in which order the axes come.
const SAMPLED: usize = 1024;

/// Coordinates of the first pass stay below this, so that no sum of squares overflows `f32`.
const LARGEST: f64 = (1_u64 << 50) as f64;

impl Margin {
    /// The map that suits these points, and their images, row by row.
    pub(super) fn of(reference: Reference<'_>, with: Instructions) -> (Margin, Vec<f32>) {
        let p = reference.dim();
        let n = reference.len();
        let of_chunk = |chunk: usize| (chunk * CHUNK..n.min((chunk + 1) * CHUNK)).map(|i| reference.point(i));
        let rows = || (0..n.div_ceil(CHUNK)).into_par_iter().map(of_chunk);
        let (low, high) = rows()
            .map(|rows| {
                let mut ends = (vec![f64::INFINITY; p], vec![f64::NEG_INFINITY; p]);
                for row in rows {
                    for ((low, high), &x) in ends.0.iter_mut().zip(&mut ends.1).zip(row) {
                        *low = low.min(x);
                        *high = high.max(x);
                    }
                }
                ends
            })
            .reduce(
                || (vec![f64::INFINITY; p], vec![f64::NEG_INFINITY; p]),
                |x, y| (each(&x.0, &y.0, f64::min), each(&x.1, &y.1, f64::max)),
            );
        let centre: Vec<f64> = low.iter().zip(&high).map(|(l, h)| 0.5 * l + 0.5 * h).collect();
        let reach = low.iter().zip(&high).map(|(l, h)| 0.5 * h - 0.5 * l).fold(0.0, f64::max);
        // A power of two, exactly: the exponent bits of 1/reach, kept away from both ends.
        let exponent = if reach > 0.0 { -libm::log2(reach).floor() } else { 0.0 };
        let scale = 2.0_f64.powi(exponent.clamp(-1000.0, 1000.0) as i32);
        // Some points tell well enough which axes vary most.
        let (mut sum, mut square) = (vec![0.0; p], vec![0.0; p]);
        let step = n.div_ceil(SAMPLED).max(1);
        for row in (0..n).step_by(step).map(|i| reference.point(i)) {
            for a in 0..p {
                let x = (row[a] - centre[a]) * scale;
                sum[a] += x;
                square[a] += x * x;
            }
        }
        let sampled = n.div_ceil(step) as f64;
        let mut variance: Vec<(f64, u32)> =
            (0..p).map(|a| ((square[a] - sum[a] * sum[a] / sampled).max(0.0), a as u32)).collect();
        variance.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
        let axes = AxisOrder::new(variance.into_iter().map(|(_, a)| a).collect());
        let dim = p as f64;
        let tiny = 2.0_f64.powi(-1074);
        let (g, h) = ((dim + 4.0) * 2.0_f64.powi(-23), (dim + 4.0) * 2.0_f64.powi(-52) + 2.0 * SAME);
        let mut margin = Margin {
            axes,
            centre,
            scale,
            with,
            residual: 0.0,
            g,
            h,
            by_g: 1.0 / (1.0 - g),
            by_h: 1.0 / (1.0 - h),
            v: dim * 2.0_f64.powi(-148),
            u: (dim * tiny * scale) * scale,
        };
        let mut images = vec![0.0_f32; n * p];
        margin.residual = rows()
            .zip(images.par_chunks_mut(p * CHUNK))
            .map(|(rows, images)| {
                let pairs = rows.zip(images.chunks_exact_mut(p));
                pairs.map(|(row, image)| margin.image(row, image).unwrap_or(f64::INFINITY)).fold(0.0, f64::max)
            })
            .reduce(|| 0.0, f64::max);
        (margin, images)
    }

    /// Writes x̂, axes in the order of the first pass, and returns a bound of ‖x̂ − x′‖; `None` when the
    /// point is so far out that `f32` could overflow.
    pub(super) fn image(&self, point: &[f64], image: &mut [f32]) -> Option<f64> {
        // One relative rounding for each axis, of the difference: accounted for below by 2⁻⁵²·‖x′‖. What rounding to
        // `f32` loses is known exactly: both ends share their leading digits.
        let (lost, norm, most) = self.with.image(point, &self.axes, &self.centre, self.scale, image);
        if norm.is_nan() || most >= LARGEST {
            return None;
        }
        let tiny = 2.0_f64.powi(-500); // what underflow can hide in the squares above
        Some((lost.sqrt() + f64::EPSILON * norm.sqrt()) * (1.0 + 1e-9) + tiny)
    }

    /// E for a query whose own part is `residual`.
    pub(super) fn error(&self, residual: f64) -> f64 {
        residual + self.residual
    }

    /// At least K points have a first-pass distance of at most `t`: a limit that no point of the answer
    /// exceeds.
    pub(super) fn limit(&self, t: f32, error: f64) -> f32 {
        let near = self.reach(t) + error;
        self.limit_of_scaled(near * near * (1.0 + self.h) + self.u, error)
    }

    /// The most that ‖x̂ − ŷ‖ can be where the first-pass distance is at most `limit`.
    pub(super) fn reach(&self, limit: f32) -> f64 {
        ((f64::from(limit) + self.v) * self.by_g).sqrt()
    }

    /// The K-th smallest distance of the package is at most `squared`: a limit as above.
    pub(super) fn limit_of_exact(&self, squared: f64, error: f64) -> f32 {
        self.limit_of_scaled((squared * self.scale) * self.scale, error)
    }

    fn limit_of_scaled(&self, kth: f64, error: f64) -> f32 {
        let far = ((kth + self.u) * self.by_h).sqrt() + error;
        // The factor covers the few roundings of this very computation.
        let limit = (far * far * (1.0 + self.g) + self.v) * (1.0 + 1e-12);
        // Also for NaN (0·∞ or ∞·0): no limit. Absent points are at +∞, beyond f32::MAX.
        if limit < f64::from(f32::MAX) { (limit as f32).next_up() } else { f32::MAX }
    }
}

fn each(x: &[f64], y: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    x.iter().zip(y).map(|(&x, &y)| f(x, y)).collect()
}
