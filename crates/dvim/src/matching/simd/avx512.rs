//! Kernels for AVX-512: sixteen single or eight double numbers at once.

use super::{AxisOrder, LANES, Lanes, next_stage};
use std::arch::x86_64::*;

/// The most values that [`sort_few`] takes.
pub(super) const FEW: usize = 192;

/// Sorts up to [`FEW`] values, no two of which are equal.
///
/// # Safety
/// The processor has AVX-512F.
#[target_feature(enable = "avx512f,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn sort_few(values: &mut [u32]) {
    let n = values.len();
    let mut keys = [u32::MAX; FEW];
    keys[..n].copy_from_slice(values);
    let keys = &keys[..n.next_multiple_of(LANES)];
    for (chunk, some) in keys.chunks_exact(LANES).enumerate() {
        let mut smaller = [0_u32; LANES];
        for &other in keys {
            for i in 0..LANES {
                smaller[i] += u32::from(other < some[i]);
            }
        }
        for i in 0..LANES.min(n - chunk * LANES) {
            values[smaller[i] as usize] = some[i];
        }
    }
}

/// # Safety
/// The processor has AVX-512F; `point`, `centre` and `image` have as many entries as `axes`.
#[target_feature(enable = "avx512f,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn image(
    point: &[f64],
    axes: &AxisOrder,
    centre: &[f64],
    scale: f64,
    image: &mut [f32],
) -> (f64, f64, f64) {
    let scale = _mm512_set1_pd(scale);
    let (mut lost, mut norm, mut most) = (_mm512_setzero_pd(), _mm512_setzero_pd(), _mm512_setzero_pd());
    let mut round = |x: __m512d, c: __m512d| {
        let z = _mm512_mul_pd(_mm512_sub_pd(x, c), scale);
        let rounded = _mm512_cvtpd_ps(z);
        let e = _mm512_sub_pd(z, _mm512_cvtps_pd(rounded));
        lost = _mm512_fmadd_pd(e, e, lost);
        norm = _mm512_fmadd_pd(z, z, norm);
        most = _mm512_max_pd(most, _mm512_abs_pd(z));
        rounded
    };
    let axes = axes.as_slice();
    let dim = axes.len();
    if dim <= 2 * LANES {
        // In the order of the point, then turned in registers.
        let mut eight = [_mm256_setzero_ps(); 4];
        #[allow(clippy::needless_range_loop)]
        for i in 0..4 {
            let start = 8 * i;
            if start < dim {
                let inside = ((1_u32 << (dim - start).min(8)) - 1) as __mmask8;
                // SAFETY: only lanes inside are read.
                let (x, c) = unsafe {
                    let x = _mm512_maskz_loadu_pd(inside, point.as_ptr().add(start));
                    (x, _mm512_maskz_loadu_pd(inside, centre.as_ptr().add(start)))
                };
                eight[i] = round(x, c);
            }
        }
        let join = |low: __m256, high: __m256| {
            let (low, high) = (_mm512_castps_pd(_mm512_castps256_ps512(low)), _mm256_castps_pd(high));
            _mm512_castpd_ps(_mm512_insertf64x4::<1>(low, high))
        };
        let (low, high) = (join(eight[0], eight[1]), join(eight[2], eight[3]));
        for start in [0, LANES] {
            if start < dim {
                let inside = ((1_u32 << (dim - start).min(LANES)) - 1) as __mmask16;
                // SAFETY: only lanes inside are read and written.
                unsafe {
                    let at = _mm512_maskz_loadu_epi32(inside, axes.as_ptr().add(start).cast());
                    let turned = _mm512_permutex2var_ps(low, at, high);
                    _mm512_mask_storeu_ps(image.as_mut_ptr().add(start), inside, turned);
                }
            }
        }
    } else {
        let mut start = 0;
        while start < dim {
            let inside = ((1_u32 << (dim - start).min(8)) - 1) as __mmask8;
            let zero = _mm512_setzero_pd();
            // SAFETY: only lanes inside are read and written; every axis of an order is below its length, which is that
            // of the point and of the centre.
            unsafe {
                let at = _mm512_maskz_loadu_epi32(inside.into(), axes.as_ptr().add(start).cast());
                let at = _mm512_castsi512_si256(at);
                let x = _mm512_mask_i32gather_pd::<8>(zero, inside, at, point.as_ptr());
                let c = _mm512_mask_i32gather_pd::<8>(zero, inside, at, centre.as_ptr());
                let rounded = _mm512_castps256_ps512(round(x, c));
                _mm512_mask_storeu_ps(image.as_mut_ptr().add(start), inside.into(), rounded);
            }
            start += 8;
        }
    }
    (_mm512_reduce_add_pd(lost), _mm512_reduce_add_pd(norm), _mm512_reduce_max_pd(most))
}

/// The squared distances of eight points. Each point has a lane: the rows are turned, eight axes at a time, into a
/// vector for each axis, so that every lane adds its terms one by one in axis order, as the definition does. Axes
/// beyond the last are not added.
///
/// # Safety
/// The processor has AVX-512F; all points are as long as `query`.
#[target_feature(enable = "avx512f,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn exact(query: &[f64], points: &[&[f64]; 8]) -> [f64; 8] {
    let mut sum = _mm512_setzero_pd();
    let mut start = 0;
    while start < query.len() {
        let count = (query.len() - start).min(8);
        let inside = ((1_u32 << count) - 1) as __mmask8;
        let mut row = [_mm512_setzero_pd(); 8];
        for i in 0..8 {
            // SAFETY: only the lanes below `count` are read, which lie inside the point.
            row[i] = unsafe { _mm512_maskz_loadu_pd(inside, points[i].as_ptr().add(start)) };
        }
        // Pairs of rows: axes 0, 2, 4, 6 and 1, 3, 5, 7 of two rows side by side.
        let mut pair = row;
        for i in 0..4 {
            pair[2 * i] = _mm512_unpacklo_pd(row[2 * i], row[2 * i + 1]);
            pair[2 * i + 1] = _mm512_unpackhi_pd(row[2 * i], row[2 * i + 1]);
        }
        // Quarters of 128 bits hold axes 0, 2, 4, 6 (or 1, 3, 5, 7) of rows 01, 23, 45, 67: turn 4 × 4.
        let mut axis = row;
        for odd in 0..2 {
            let [a, b, c, d] = [pair[odd], pair[2 + odd], pair[4 + odd], pair[6 + odd]];
            let (ab_low, ab_high) = (_mm512_shuffle_f64x2::<0x44>(a, b), _mm512_shuffle_f64x2::<0xee>(a, b));
            let (cd_low, cd_high) = (_mm512_shuffle_f64x2::<0x44>(c, d), _mm512_shuffle_f64x2::<0xee>(c, d));
            axis[odd] = _mm512_shuffle_f64x2::<0x88>(ab_low, cd_low);
            axis[2 + odd] = _mm512_shuffle_f64x2::<0xdd>(ab_low, cd_low);
            axis[4 + odd] = _mm512_shuffle_f64x2::<0x88>(ab_high, cd_high);
            axis[6 + odd] = _mm512_shuffle_f64x2::<0xdd>(ab_high, cd_high);
        }
        for i in 0..count {
            let d = _mm512_sub_pd(_mm512_set1_pd(query[start + i]), axis[i]);
            sum = _mm512_add_pd(sum, _mm512_mul_pd(d, d));
        }
        start += 8;
    }
    let mut out = [0.0; 8];
    // SAFETY: `out` holds eight values.
    unsafe { _mm512_storeu_pd(out.as_mut_ptr(), sum) };
    out
}

/// # Safety
/// The processor has the instructions.
#[target_feature(enable = "avx512f,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn ranks(keys: &[i64], ranks: &mut [i64]) {
    super::portable::ranks(keys, ranks);
}

/// The distances of `query` to `N` panels at once, so that their chains of additions hide each other's latency;
/// `None` when no lane can be within `bound`.
///
/// # Safety
/// The processor has AVX-512F; every panel in `list` lies inside `panels`; `early ≤ query.len()`.
#[inline]
#[target_feature(enable = "avx512f,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
unsafe fn distances<const N: usize>(
    query: &[f32],
    panels: *const Lanes,
    list: [u8; N],
    bound: __m512,
    early: usize,
) -> Option<[__m512; N]> {
    let dim = query.len();
    // SAFETY: by the caller's promise.
    let at: [*const f32; N] = list.map(|panel| unsafe { panels.add(panel as usize * dim).cast() });
    let mut sum = [_mm512_setzero_ps(); N];
    let (mut start, mut stop) = (0, early);
    loop {
        // A plain loop: iterator adapters are not inlined into code for other instructions.
        let mut axis = start;
        while axis < stop {
            // SAFETY: `axis` < `stop` ≤ query.len().
            let q = _mm512_set1_ps(unsafe { *query.get_unchecked(axis) });
            for i in 0..N {
                // SAFETY: `axis` < dim, so 16 lanes from `axis × 16` lie inside the panel.
                let d = _mm512_sub_ps(unsafe { _mm512_loadu_ps(at[i].add(axis * LANES)) }, q);
                sum[i] = _mm512_fmadd_ps(d, d, sum[i]);
            }
            axis += 1;
        }
        let least = sum[1..].iter().fold(sum[0], |m, &s| _mm512_min_ps(m, s));
        if _mm512_cmp_ps_mask::<_CMP_LE_OQ>(least, bound) == 0 {
            return None;
        }
        if stop == dim {
            return Some(sum);
        }
        (start, stop) = (stop, next_stage(stop, dim));
    }
}

/// # Safety
/// The processor has AVX-512F; `panels` holds every panel of `which`; `early ≤ query.len()`; `near` and
/// `slot` have room for 16 entries behind the last that can be appended.
#[allow(clippy::too_many_arguments)]
#[target_feature(enable = "avx512f,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
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
    let mut list = [0_u8; LANES];
    let mut n = 0;
    let mut left = which;
    while left != 0 {
        list[n] = left.trailing_zeros() as u8;
        left &= left - 1;
        n += 1;
    }
    let bound = _mm512_set1_ps(limit);
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let (near, slot) = (near.as_mut_ptr(), slot.as_mut_ptr());
    let mut append = |panel: u8, sum: __m512| {
        let keep = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(sum, bound);
        let base = first_slot + u32::from(panel) * LANES as u32;
        let slots = _mm512_add_epi32(lanes, _mm512_set1_epi32(base as i32));
        // Compressed in registers and stored whole: compressing stores are slow on Zen 4.
        // SAFETY: 16 entries behind `len` are inside both slices, by the caller's promise.
        unsafe {
            _mm512_storeu_ps(near.add(len), _mm512_maskz_compress_ps(keep, sum));
            _mm512_storeu_epi32(slot.add(len).cast(), _mm512_maskz_compress_epi32(keep, slots));
        }
        len += keep.count_ones() as usize;
    };
    let panels = panels.as_ptr();
    let mut at = 0;
    while at + 4 <= n {
        let group = [list[at], list[at + 1], list[at + 2], list[at + 3]];
        at += 4;
        // SAFETY: by the caller's promise.
        if let Some(sums) = unsafe { distances(query, panels, group, bound, early) } {
            for (panel, sum) in group.into_iter().zip(sums) {
                append(panel, sum);
            }
        }
    }
    while at < n {
        // SAFETY: by the caller's promise.
        if let Some([sum]) = unsafe { distances(query, panels, [list[at]], bound, early) } {
            append(list[at], sum);
        }
        at += 1;
    }
    len
}

/// # Safety
/// The processor has AVX-512F; `query` has at least `boxes.len() / 2` axes.
#[target_feature(enable = "avx512f,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn box_gaps(query: &[f32], boxes: &[Lanes]) -> [f32; LANES] {
    let zero = _mm512_setzero_ps();
    let mut sum = zero;
    for (ends, &q) in boxes.chunks_exact(2).zip(query) {
        let q = _mm512_set1_ps(q);
        // SAFETY: each end holds 16 values.
        let (low, high) = unsafe { (_mm512_loadu_ps(ends[0].0.as_ptr()), _mm512_loadu_ps(ends[1].0.as_ptr())) };
        let d = _mm512_max_ps(_mm512_max_ps(_mm512_sub_ps(low, q), _mm512_sub_ps(q, high)), zero);
        sum = _mm512_fmadd_ps(d, d, sum);
    }
    let mut out = [0.0; LANES];
    // SAFETY: `out` holds 16 values.
    unsafe { _mm512_storeu_ps(out.as_mut_ptr(), sum) };
    out
}

/// The lanes of the last, partial vector of `n` values.
fn tail(n: usize) -> __mmask16 {
    (1_u16 << (n % LANES)) - 1
}

/// # Safety
/// The processor has AVX-512F.
#[target_feature(enable = "avx512f,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn count(values: &[f32], limit: f32) -> usize {
    let bound = _mm512_set1_ps(limit);
    let mut n = 0;
    let whole = values.chunks_exact(LANES);
    let rest = whole.remainder();
    for v in whole {
        // SAFETY: `v` holds 16 values.
        let v = unsafe { _mm512_loadu_ps(v.as_ptr()) };
        n += _mm512_cmp_ps_mask::<_CMP_LE_OQ>(v, bound).count_ones();
    }
    // SAFETY: only the lanes inside `rest` are read.
    let v = unsafe { _mm512_maskz_loadu_ps(tail(rest.len()), rest.as_ptr()) };
    n += _mm512_mask_cmp_ps_mask::<_CMP_LE_OQ>(tail(rest.len()), v, bound).count_ones();
    n as usize
}

/// # Safety
/// The processor has AVX-512F.
#[target_feature(enable = "avx512f,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn threshold(values: &[f32], k: usize, slack: usize, guess: f32) -> f32 {
    // SAFETY: the caller has the instructions.
    super::bisect(
        values,
        k,
        slack,
        guess,
        |limit| unsafe { count(values, limit) },
        |low, high, out| {
            let mut n = 0;
            let (low, high) = (_mm512_set1_ps(low), _mm512_set1_ps(high));
            for at in (0..values.len()).step_by(LANES) {
                let inside = if values.len() - at >= LANES { !0 } else { tail(values.len()) };
                // SAFETY: lanes beyond the end are masked out; at most 16 values are between, and 16 places follow
                // each.
                unsafe {
                    let v = _mm512_maskz_loadu_ps(inside, values.as_ptr().add(at));
                    let keep = _mm512_mask_cmp_ps_mask::<_CMP_GT_OQ>(inside, v, low);
                    let keep = _mm512_mask_cmp_ps_mask::<_CMP_LE_OQ>(keep, v, high);
                    _mm512_storeu_ps(out.as_mut_ptr().add(n), _mm512_maskz_compress_ps(keep, v));
                    n = (n + keep.count_ones() as usize).min(LANES);
                }
            }
            n
        },
    )
}

/// # Safety
/// The processor has AVX-512F.
#[target_feature(enable = "avx512f,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn range(values: &[f32]) -> (f32, f32) {
    let mut low = _mm512_set1_ps(f32::INFINITY);
    let mut high = _mm512_setzero_ps();
    let whole = values.chunks_exact(LANES);
    let rest = whole.remainder();
    for v in whole {
        // SAFETY: `v` holds 16 values.
        let v = unsafe { _mm512_loadu_ps(v.as_ptr()) };
        low = _mm512_min_ps(low, v);
        high = _mm512_max_ps(high, v);
    }
    let inside = tail(rest.len());
    // SAFETY: only the lanes inside `rest` are read.
    let v = unsafe { _mm512_maskz_loadu_ps(inside, rest.as_ptr()) };
    low = _mm512_mask_min_ps(low, inside, low, v);
    high = _mm512_mask_max_ps(high, inside, high, v);
    (_mm512_reduce_min_ps(low), _mm512_reduce_max_ps(high))
}

/// # Safety
/// The processor has AVX-512F; `out` has room for as many groups of 16 as there are values.
#[target_feature(enable = "avx512f,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn outside(values: &[f32], low: f32, high: f32, out: &mut [u32]) -> usize {
    let (low, high) = (_mm512_set1_ps(low), _mm512_set1_ps(high));
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let mut n = 0;
    for at in (0..values.len()).step_by(LANES) {
        let inside = if values.len() - at >= LANES { !0 } else { tail(values.len()) };
        // SAFETY: lanes beyond the end are masked out; `n ≤ at`, so 16 places behind it are inside `out`.
        unsafe {
            let v = _mm512_maskz_loadu_ps(inside, values.as_ptr().add(at));
            let below = _mm512_mask_cmp_ps_mask::<_CMP_LE_OQ>(inside, v, low);
            let keep = below | _mm512_mask_cmp_ps_mask::<_CMP_GE_OQ>(inside, v, high);
            let places = _mm512_add_epi32(lanes, _mm512_set1_epi32(at as i32));
            _mm512_storeu_epi32(out.as_mut_ptr().add(n).cast(), _mm512_maskz_compress_epi32(keep, places));
            n += keep.count_ones() as usize;
        }
    }
    n
}

/// # Safety
/// The processor has AVX-512F; the slices have the same length.
#[target_feature(enable = "avx512f,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn compact(near: &mut [f32], slot: &mut [u32], limit: f32) -> usize {
    let bound = _mm512_set1_ps(limit);
    let mut kept = 0;
    let mut at = 0;
    while at < near.len() {
        let inside = if near.len() - at >= LANES { !0 } else { tail(near.len()) };
        // SAFETY: lanes beyond the end are masked out; `kept ≤ at`, so what is stored lies inside
        // the slices and behind nothing that is still to be read (both are read before the stores).
        unsafe {
            let v = _mm512_maskz_loadu_ps(inside, near.as_ptr().add(at));
            let s = _mm512_maskz_loadu_epi32(inside, slot.as_ptr().add(at).cast());
            let keep = _mm512_mask_cmp_ps_mask::<_CMP_LE_OQ>(inside, v, bound);
            let n = keep.count_ones() as usize;
            let dense = ((1_u32 << n) - 1) as __mmask16;
            _mm512_mask_storeu_ps(near.as_mut_ptr().add(kept), dense, _mm512_maskz_compress_ps(keep, v));
            _mm512_mask_storeu_epi32(slot.as_mut_ptr().add(kept).cast(), dense, _mm512_maskz_compress_epi32(keep, s));
            kept += n;
        }
        at += LANES;
    }
    kept
}
