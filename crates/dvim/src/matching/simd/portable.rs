//! Kernels in plain code: the oracle of the others, and what runs where the processor has no wide registers.

use super::{LANES, Lanes, next_stage};

#[inline(always)]
pub(super) fn threshold(values: &[f32], k: usize, slack: usize, guess: f32) -> f32 {
    super::bisect(
        values,
        k,
        slack,
        guess,
        |limit| count(values, limit),
        |low, high, out| {
            let mut n = 0;
            for &v in values {
                out[n] = v;
                n = (n + usize::from(v > low && v <= high)).min(LANES);
            }
            n
        },
    )
}

#[allow(clippy::too_many_arguments)]
pub(super) fn scan_panels(
    query: &[f32],
    panels: &[Lanes],
    which: u16,
    limit: f32,
    early: usize,
    first_slot: u32,
    near: &mut [f32],
    slot: &mut [u32],
    mut len: usize,
) -> usize {
    let dim = query.len();
    let mut left = which;
    while left != 0 {
        let panel = left.trailing_zeros() as usize;
        left &= left - 1;
        let data = &panels[panel * dim..(panel + 1) * dim];
        let mut sum = [0.0_f32; LANES];
        let (mut start, mut stop) = (0, early);
        loop {
            for (x, &q) in data[start..stop].iter().zip(&query[start..stop]) {
                for (s, &x) in sum.iter_mut().zip(&x.0) {
                    let d = x - q;
                    *s += d * d;
                }
            }
            if stop == dim || !sum.iter().any(|&s| s <= limit) {
                break;
            }
            (start, stop) = (stop, next_stage(stop, dim));
        }
        if stop < dim {
            continue;
        }
        for (lane, &s) in sum.iter().enumerate() {
            // Written always, kept only when near enough: no branch to mispredict.
            near[len] = s;
            slot[len] = first_slot + (panel * LANES + lane) as u32;
            len += usize::from(s <= limit);
        }
    }
    len
}

pub(super) fn box_gaps(query: &[f32], boxes: &[Lanes]) -> [f32; LANES] {
    let mut sum = [0.0_f32; LANES];
    for (ends, &q) in boxes.chunks_exact(2).zip(query) {
        for ((sum, low), high) in sum.iter_mut().zip(ends[0].0).zip(ends[1].0) {
            let d = (low - q).max(q - high).max(0.0);
            *sum += d * d;
        }
    }
    sum
}

pub(super) fn exact(query: &[f64], points: &[&[f64]; 8]) -> [f64; 8] {
    let mut sum = [0.0; 8];
    for (a, &q) in query.iter().enumerate() {
        for (sum, point) in sum.iter_mut().zip(points) {
            let d = q - point[a];
            *sum += d * d;
        }
    }
    sum
}

/// For each key, how many are smaller.
#[inline(always)]
pub(super) fn ranks(keys: &[i64], ranks: &mut [i64]) {
    for (keys8, ranks8) in keys.chunks_exact(8).zip(ranks.chunks_exact_mut(8)) {
        let mut sum = [0_i64; 8];
        for &other in keys {
            for i in 0..8 {
                sum[i] += i64::from(other < keys8[i]);
            }
        }
        ranks8.copy_from_slice(&sum);
    }
}

#[inline(always)]
pub(super) fn image(point: &[f64], axes: &[u32], centre: &[f64], scale: f64, image: &mut [f32]) -> (f64, f64, f64) {
    let (mut lost, mut norm, mut most) = (0.0_f64, 0.0_f64, 0.0_f64);
    for (&axis, out) in axes.iter().zip(image) {
        let z = (point[axis as usize] - centre[axis as usize]) * scale;
        *out = z as f32;
        let e = z - f64::from(*out);
        lost += e * e;
        norm += z * z;
        most = if z.abs() > most { z.abs() } else { most };
    }
    (lost, norm, most)
}

pub(super) fn bytes(image: &[f32], centre: &[f64], step: f64, out: &mut [i8]) -> f64 {
    let (end, inverse) = (127.0 * step, 1.0 / step);
    let mut lost = 0.0;
    for ((&x, &c), out) in image.iter().zip(centre).zip(out) {
        let z = (f64::from(x) - c).clamp(-end, end);
        let q = (z * inverse).round_ties_even();
        let e = z - q * step;
        lost += e * e;
        *out = q as i8;
    }
    lost
}

#[inline(always)]
pub(super) fn count(values: &[f32], limit: f32) -> usize {
    values.iter().map(|&v| u32::from(v <= limit)).sum::<u32>() as usize
}

#[inline(always)]
pub(super) fn range(values: &[f32]) -> (f32, f32) {
    let mut low = f32::INFINITY;
    let mut high = 0.0_f32;
    for &v in values {
        low = if v < low { v } else { low };
        high = if v > high { v } else { high };
    }
    (low, high)
}

pub(super) fn outside(values: &[f32], low: f32, high: f32, out: &mut [u32]) -> usize {
    let mut n = 0;
    for (i, &v) in values.iter().enumerate() {
        out[n] = i as u32;
        n += usize::from(v <= low || v >= high);
    }
    n
}

pub(super) fn compact(near: &mut [f32], slot: &mut [u32], limit: f32) -> usize {
    let mut kept = 0;
    for i in 0..near.len() {
        let v = near[i];
        near[kept] = v;
        slot[kept] = slot[i];
        kept += usize::from(v <= limit);
    }
    kept
}
