//! Kernels for AVX2: eight single or four double numbers at once.

use super::{LANES, Lanes, next_stage};
use std::arch::x86_64::*;

/// # Safety
/// The processor has the instructions.
#[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn threshold(values: &[f32], k: usize, slack: usize, guess: f32) -> f32 {
    super::portable::threshold(values, k, slack, guess)
}

/// # Safety
/// The processor has the instructions.
#[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn image(
    point: &[f64],
    axes: &[u32],
    centre: &[f64],
    scale: f64,
    image: &mut [f32],
) -> (f64, f64, f64) {
    super::portable::image(point, axes, centre, scale, image)
}

/// # Safety
/// The processor has the instructions.
#[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn ranks(keys: &[i64], ranks: &mut [i64]) {
    super::portable::ranks(keys, ranks);
}

/// # Safety
/// The processor has AVX2 and FMA; `panels` holds every panel of `which`; `early ≤ query.len()`.
#[allow(clippy::too_many_arguments)]
#[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn scan_panels(
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
    let bound = _mm256_set1_ps(limit);
    let mut left = which;
    while left != 0 {
        // Two panels at a time: four chains of additions hide the latency of each.
        let first = left.trailing_zeros() as usize;
        left &= left - 1;
        let alone = left == 0;
        let second = if alone { first } else { left.trailing_zeros() as usize };
        left &= left.wrapping_sub(1);
        let x = panels[first * dim..(first + 1) * dim].as_ptr().cast::<f32>();
        let y = panels[second * dim..(second + 1) * dim].as_ptr().cast::<f32>();
        let mut sum = [_mm256_setzero_ps(); 4];
        let (mut start, mut stop) = (0, early);
        loop {
            // Plain loops: iterator adapters are not inlined into code for other instructions.
            #[allow(clippy::needless_range_loop)]
            for axis in start..stop {
                let q = _mm256_set1_ps(query[axis]);
                let at = axis * LANES;
                // SAFETY: `axis` < dim, so 16 lanes from `axis × 16` lie inside each panel.
                let at = unsafe {
                    [
                        _mm256_loadu_ps(x.add(at)),
                        _mm256_loadu_ps(x.add(at + 8)),
                        _mm256_loadu_ps(y.add(at)),
                        _mm256_loadu_ps(y.add(at + 8)),
                    ]
                };
                for i in 0..4 {
                    let d = _mm256_sub_ps(at[i], q);
                    sum[i] = _mm256_fmadd_ps(d, d, sum[i]);
                }
            }
            if stop == dim {
                break;
            }
            let least = _mm256_min_ps(_mm256_min_ps(sum[0], sum[1]), _mm256_min_ps(sum[2], sum[3]));
            if _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(least, bound)) == 0 {
                break;
            }
            (start, stop) = (stop, next_stage(stop, dim));
        }
        if stop < dim {
            continue;
        }
        for (half, &s) in sum.iter().enumerate().take(if alone { 2 } else { 4 }) {
            let mut mask = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(s, bound)) as u32;
            if mask == 0 {
                continue;
            }
            let mut lanes = [0.0_f32; 8];
            // SAFETY: `lanes` holds eight values.
            unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), s) };
            let panel = if half < 2 { first } else { second };
            let base = first_slot + (panel * LANES + (half % 2) * 8) as u32;
            while mask != 0 {
                let lane = mask.trailing_zeros();
                mask &= mask - 1;
                near[len] = lanes[lane as usize];
                slot[len] = base + lane;
                len += 1;
            }
        }
    }
    len
}

/// # Safety
/// The processor has AVX2 and FMA; `query` has at least `boxes.len() / 2` axes.
#[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn box_gaps(query: &[f32], boxes: &[Lanes]) -> [f32; LANES] {
    let zero = _mm256_setzero_ps();
    let mut sum = [zero; 2];
    for (ends, &q) in boxes.chunks_exact(2).zip(query) {
        let q = _mm256_set1_ps(q);
        let ends = ends.as_ptr().cast::<f32>();
        for (half, sum) in sum.iter_mut().enumerate() {
            // SAFETY: `ends` holds 32 values.
            let (low, high) =
                unsafe { (_mm256_loadu_ps(ends.add(8 * half)), _mm256_loadu_ps(ends.add(LANES + 8 * half))) };
            let d = _mm256_max_ps(_mm256_max_ps(_mm256_sub_ps(low, q), _mm256_sub_ps(q, high)), zero);
            *sum = _mm256_fmadd_ps(d, d, *sum);
        }
    }
    let mut out = [0.0; LANES];
    // SAFETY: `out` holds 16 values.
    unsafe {
        _mm256_storeu_ps(out.as_mut_ptr(), sum[0]);
        _mm256_storeu_ps(out.as_mut_ptr().add(8), sum[1]);
    }
    out
}

/// # Safety
/// The processor has AVX2.
#[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn range(values: &[f32]) -> (f32, f32) {
    super::portable::range(values)
}
