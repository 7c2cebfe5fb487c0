//! Kernels for processors that add products of bytes (AVX-512 with VNNI): see `coarse.rs` for what they compute.

// Plain loops: iterator adapters are not inlined into code for other instructions.
#![allow(clippy::needless_range_loop)]

use super::avx512::FEW;
use super::{LANES, Look, Words};
use std::arch::x86_64::*;

/// A query whose words are in registers, where there are no more than `W`; `W` = 0 stands for any number.
#[derive(Clone, Copy)]
struct Query<'a, const W: usize> {
    words: &'a [i32],
    held: [__m512i; W],
}

impl<'a, const W: usize> Query<'a, W> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni,avx512bw,avx512vbmi2,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
    fn new(words: &'a [i32]) -> Query<'a, W> {
        let mut held = [_mm512_setzero_si512(); W];
        for i in 0..W {
            held[i] = _mm512_set1_epi32(words[i]);
        }
        Query { words, held }
    }
}

/// V of each query with `P` panels, from panel `first` on.
///
/// # Safety
/// The processor has AVX-512F and VNNI; `panels` holds `first + P` panels of `words.len() + 1` words, as many as every
/// query has.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni,avx512bw,avx512vbmi2,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
unsafe fn values<const W: usize, const N: usize, const P: usize>(
    queries: &[Query<'_, W>; N],
    panels: *const Words,
    first: usize,
) -> [[__m512i; P]; N] {
    let size = if W > 0 { W } else { queries[0].words.len() } + 1;
    // SAFETY: by the caller's promise, here and below.
    let panels = unsafe { panels.add(first * size) };
    let mut sum = [[_mm512_setzero_si512(); P]; N];
    for p in 0..P {
        let norm = unsafe { _mm512_load_si512(panels.add(p * size).cast()) };
        for i in 0..N {
            sum[i][p] = norm;
        }
    }
    let mut word = 0;
    while word < size - 1 {
        let mut q = [_mm512_setzero_si512(); N];
        for i in 0..N {
            // SAFETY: `word` < words.len().
            q[i] = match W {
                0 => _mm512_set1_epi32(unsafe { *queries[i].words.get_unchecked(word) }),
                _ => queries[i].held[word],
            };
        }
        for p in 0..P {
            let y = unsafe { _mm512_load_si512(panels.add(p * size + word + 1).cast()) };
            for i in 0..N {
                sum[i][p] = _mm512_dpbusd_epi32(sum[i][p], y, q[i]);
            }
        }
        word += 1;
    }
    sum
}

/// Queries that look at panels together: each panel is loaded once.
///
/// # Safety
/// As [`super::Instructions::coarse_slots`] checks; the processor has AVX-512F and VNNI.
#[target_feature(enable = "avx512f,avx512vnni,avx512bw,avx512vbmi2,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn coarse_slots<const N: usize>(
    looks: &mut [Look<'_>; N],
    panels: &[Words],
    count: usize,
    first_slot: u32,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        match looks[0].words.len() {
            1 => slots_of::<1, N>(looks, panels, count, first_slot),
            2 => slots_of::<2, N>(looks, panels, count, first_slot),
            3 => slots_of::<3, N>(looks, panels, count, first_slot),
            4 => slots_of::<4, N>(looks, panels, count, first_slot),
            5 => slots_of::<5, N>(looks, panels, count, first_slot),
            6 => slots_of::<6, N>(looks, panels, count, first_slot),
            7 => slots_of::<7, N>(looks, panels, count, first_slot),
            8 => slots_of::<8, N>(looks, panels, count, first_slot),
            _ => slots_of::<0, N>(looks, panels, count, first_slot),
        }
    }
}

/// # Safety
/// As [`coarse_slots`].
#[inline]
#[target_feature(enable = "avx512f,avx512vnni,avx512bw,avx512vbmi2,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
unsafe fn slots_of<const W: usize, const N: usize>(
    looks: &mut [Look<'_>; N],
    panels: &[Words],
    count: usize,
    first_slot: u32,
) {
    let mut queries = [Query::<W>::new(looks[0].words); N];
    let mut bound = [_mm512_setzero_si512(); N];
    for i in 0..N {
        queries[i] = Query::<W>::new(looks[i].words);
        bound[i] = _mm512_set1_epi32(looks[i].least);
    }
    let panels = panels.as_ptr();
    let mut numbers = [0_u8; 64];
    numbers.iter_mut().enumerate().for_each(|(i, number)| *number = i as u8);
    // SAFETY: 64 bytes.
    let numbers = unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) };
    // The points of four panels that passed: their numbers are pushed together as bytes, and made slots sixteen at a
    // time.
    let append = |look: &mut Look<'_>, panel: usize, passed: u64| {
        let base = _mm512_set1_epi32(first_slot as i32 + (panel * LANES) as i32);
        let mut numbers = _mm512_maskz_compress_epi8(passed, numbers);
        let n = passed.count_ones() as usize;
        let mut done = 0;
        // At least once: whether any passed is a coin that no branch can guess.
        while done == 0 || done < n {
            let slot = _mm512_add_epi32(base, _mm512_cvtepu8_epi32(_mm512_castsi512_si128(numbers)));
            // SAFETY: 16 entries behind `len + done` are inside, by the caller's promise.
            unsafe { _mm512_storeu_epi32(look.slots.as_mut_ptr().add(*look.len + done).cast(), slot) };
            numbers = _mm512_shuffle_i64x2::<0b11_11_10_01>(numbers, numbers);
            done += LANES;
        }
        *look.len += n;
    };
    let mut panel = 0;
    while panel + 4 <= count {
        // SAFETY: four panels from `panel` on are inside.
        let v = unsafe { values::<W, N, 4>(&queries, panels, panel) };
        for i in 0..N {
            let keep = v[i].map(|v| u64::from(_mm512_cmpge_epi32_mask(v, bound[i])));
            append(&mut looks[i], panel, (keep[0] | keep[1] << 16) | (keep[2] << 32 | keep[3] << 48));
        }
        panel += 4;
    }
    while panel < count {
        // SAFETY: the panel is inside.
        let v = unsafe { values::<W, N, 1>(&queries, panels, panel) };
        for i in 0..N {
            append(&mut looks[i], panel, u64::from(_mm512_cmpge_epi32_mask(v[i][0], bound[i])));
        }
        panel += 1;
    }
}

/// # Safety
/// As [`super::Instructions::coarse_values`] checks; the processor has AVX-512F and VNNI.
#[target_feature(enable = "avx512f,avx512vnni,avx512bw,avx512vbmi2,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn coarse_values(query: &[i32], panels: &[Words], count: usize, constant: i32, out: &mut [f32]) {
    let query = Query::<0>::new(query);
    let constant = _mm512_set1_epi32(constant);
    for panel in 0..count {
        // SAFETY: the panel is inside, and so are 16 places of `out` for each.
        unsafe {
            let [[v]] = values::<0, 1, 1>(&[query], panels.as_ptr(), panel);
            let value = _mm512_sub_epi32(constant, _mm512_add_epi32(v, v));
            _mm512_storeu_ps(out.as_mut_ptr().add(panel * LANES), _mm512_cvtepi32_ps(value));
        }
    }
}

/// # Safety
/// The slices have the same length; the processor has AVX-512F.
#[target_feature(enable = "avx512f,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn bytes(image: &[f32], centre: &[f64], step: f64, out: &mut [i8]) -> f64 {
    let (end, inverse) = (_mm512_set1_pd(127.0 * step), _mm512_set1_pd(1.0 / step));
    let start_of_range = _mm512_sub_pd(_mm512_setzero_pd(), end);
    let step = _mm512_set1_pd(step);
    let mut lost = _mm512_setzero_pd();
    let mut start = 0;
    while start < image.len() {
        let inside = ((1_u32 << (image.len() - start).min(8)) - 1) as __mmask8;
        // SAFETY: only lanes inside are read and written.
        unsafe {
            let x = _mm512_castps512_ps256(_mm512_maskz_loadu_ps(inside.into(), image.as_ptr().add(start)));
            let z = _mm512_sub_pd(_mm512_cvtps_pd(x), _mm512_maskz_loadu_pd(inside, centre.as_ptr().add(start)));
            let z = _mm512_min_pd(_mm512_max_pd(z, start_of_range), end);
            let q = _mm512_roundscale_pd::<0>(_mm512_mul_pd(z, inverse));
            let e = _mm512_fnmadd_pd(q, step, z);
            lost = _mm512_fmadd_pd(e, e, lost);
            let words = _mm512_castsi256_si512(_mm512_cvtpd_epi32(q));
            _mm512_mask_cvtepi32_storeu_epi8(out.as_mut_ptr().add(start), inside.into(), words);
        }
        start += 8;
    }
    _mm512_reduce_add_pd(lost)
}

/// # Safety
/// As [`super::Instructions::between`] checks; the processor has AVX-512F.
#[target_feature(enable = "avx512f,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn between(values: &[f32], above: f32, most: f32, first_slot: u32, slots: &mut [u32]) -> usize {
    let (above, most) = (_mm512_set1_ps(above), _mm512_set1_ps(most));
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let mut len = 0;
    for (i, v) in values.chunks_exact(LANES).enumerate() {
        // SAFETY: `v` holds 16 values, and 16 entries behind `len` are inside.
        unsafe {
            let v = _mm512_loadu_ps(v.as_ptr());
            let keep = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(v, above);
            let keep = _mm512_mask_cmp_ps_mask::<_CMP_LE_OQ>(keep, v, most);
            let base = _mm512_add_epi32(lanes, _mm512_set1_epi32(first_slot as i32 + (i * LANES) as i32));
            _mm512_storeu_epi32(slots.as_mut_ptr().add(len).cast(), _mm512_maskz_compress_epi32(keep, base));
            len += keep.count_ones() as usize;
        }
    }
    len
}

/// # Safety
/// As [`super::Instructions::fine`] checks; the processor has AVX-512F.
#[allow(clippy::too_many_arguments)]
#[target_feature(enable = "avx512f,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn fine(
    query: &[f32],
    rows: &[f32],
    slots: &[u32],
    limit: f32,
    near: &mut [f32],
    slot: &mut [u32],
    len: usize,
) -> usize {
    let dim = query.len();
    let n_rows = rows.len() / dim;
    let rows = rows.as_ptr();
    let n = slots.len().min(LANES);
    if n == 0 {
        return len;
    }
    // Places beyond the last are filled with the first, and masked out.
    let inside = ((1_u32 << n) - 1) as __mmask16;
    // SAFETY: only the lanes of `inside` are read.
    let slots = unsafe { _mm512_maskz_loadu_epi32(inside, slots.as_ptr().cast()) };
    let last = _mm512_set1_epi32(n_rows.min(u32::MAX as usize) as u32 as i32);
    assert!(_mm512_cmpge_epu32_mask(slots, last) == 0, "a slot without a row");
    let first = _mm512_permutexvar_epi32(_mm512_setzero_si512(), slots);
    let filled = _mm512_mask_mov_epi32(first, inside, slots);
    let mut places = [0_u32; LANES];
    // SAFETY: `places` holds 16 values.
    unsafe { _mm512_storeu_epi32(places.as_mut_ptr().cast(), filled) };
    let mut sum = [_mm512_setzero_ps(); LANES];
    let mut start = 0;
    while start < dim {
        let count = (dim - start).min(LANES);
        let axes = ((1_u32 << count) - 1) as __mmask16;
        // SAFETY: lanes beyond the last axis are masked out, here and below; every slot has a row.
        let q = unsafe { _mm512_maskz_loadu_ps(axes, query.as_ptr().add(start)) };
        for i in 0..LANES {
            let y = unsafe { _mm512_maskz_loadu_ps(axes, rows.add(places[i] as usize * dim + start)) };
            let d = _mm512_sub_ps(y, q);
            sum[i] = _mm512_fmadd_ps(d, d, sum[i]);
        }
        start += LANES;
    }
    let d = across(sum);
    let keep = _mm512_mask_cmp_ps_mask::<_CMP_LE_OQ>(inside, d, _mm512_set1_ps(limit));
    // SAFETY: 16 entries behind `len` are inside both slices, by the caller's promise.
    unsafe {
        _mm512_storeu_ps(near.as_mut_ptr().add(len), _mm512_maskz_compress_ps(keep, d));
        _mm512_storeu_epi32(slot.as_mut_ptr().add(len).cast(), _mm512_maskz_compress_epi32(keep, slots));
    }
    len + keep.count_ones() as usize
}

/// Sorts up to [`FEW`] values, no two of which are equal, as [`super::avx512::sort_few`] does, in 16 bits: half the
/// comparisons. False, and nothing done, where a value does not fit.
///
/// # Safety
/// The processor has AVX-512F and AVX-512BW.
#[target_feature(enable = "avx512f,avx512bw,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn sort_few(values: &mut [u32]) -> bool {
    const WIDTH: usize = 32;
    let n = values.len();
    if n > FEW || values.iter().any(|v| *v >= u32::from(u16::MAX)) {
        return false;
    }
    let mut keys = [u16::MAX; FEW];
    for i in 0..n {
        keys[i] = values[i] as u16;
    }
    let less = _mm512_set1_epi16(-1);
    let mut start = 0;
    while start < n {
        // SAFETY: FEW is a multiple of 64, so 64 keys from `start` on are inside.
        let some = unsafe {
            [
                _mm512_loadu_si512(keys.as_ptr().add(start).cast()),
                _mm512_loadu_si512(keys.as_ptr().add(start + WIDTH).cast()),
            ]
        };
        let mut smaller = [_mm512_setzero_si512(); 2];
        for j in 0..n {
            let other = _mm512_set1_epi16(keys[j] as i16);
            for i in 0..2 {
                let is_smaller = _mm512_cmplt_epu16_mask(other, some[i]);
                smaller[i] = _mm512_mask_sub_epi16(smaller[i], is_smaller, smaller[i], less);
            }
        }
        let mut places = [0_u16; 2 * WIDTH];
        // SAFETY: `places` holds 64 values.
        unsafe {
            _mm512_storeu_si512(places.as_mut_ptr().cast(), smaller[0]);
            _mm512_storeu_si512(places.as_mut_ptr().add(WIDTH).cast(), smaller[1]);
        }
        for i in 0..(2 * WIDTH).min(n - start) {
            values[places[i] as usize] = u32::from(keys[start + i]);
        }
        start += 2 * WIDTH;
    }
    true
}

/// The sum of the lanes of each of 16 vectors: halves are added pair by pair, so that each round leaves half as many
/// vectors.
#[inline]
#[target_feature(enable = "avx512f,avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
fn across(v: [__m512; LANES]) -> __m512 {
    let mut two = [_mm512_setzero_ps(); 8];
    for i in 0..8 {
        let (a, b) = (v[2 * i], v[2 * i + 1]);
        two[i] = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    }
    // Each quarter of 128 bits now holds a, b, a, b; then a, b, c, d.
    let mut four = [_mm512_setzero_ps(); 4];
    for i in 0..4 {
        let (a, b) = (_mm512_castps_pd(two[2 * i]), _mm512_castps_pd(two[2 * i + 1]));
        four[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    }
    // Quarters 0, 2 and 1, 3 of two vectors: the first half of the sum belongs to the first.
    let pair =
        |a: __m512, b: __m512| _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
    pair(pair(four[0], four[1]), pair(four[2], four[3]))
}
