//! Stable numerical kernels. Private; knows no statistics.
//!
//! Everything here is computed with `libm` and `puruspe`, or bit for bit as they do, never with the
//! system's mathematical library, so that the same input gives the same bits on every platform.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, LOG2_E};

/// `√(2/π)`.
const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;
/// `1/√(2π)`.
pub(crate) const FRAC_1_SQRT_2PI: f64 = 0.398_942_280_401_432_7;

/// `1 / (1 + exp(-x))`, without overflow for any `x`.
pub(crate) fn expit(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + exp(-x))
    } else {
        let e = exp(x);
        e / (1.0 + e)
    }
}

/// `log(1 + exp(x))`: for positive `x` as `x + log(1 + exp(-x))`, so that nothing overflows.
pub(crate) fn log1pexp(x: f64) -> f64 {
    if x > 0.0 { x + log1p(exp(-x)) } else { log1p(exp(x)) }
}

/// What a logistic likelihood needs at `x`, by one exponential: the same bits as [`expit`] and [`log1pexp`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logistic {
    /// `expit(x)`.
    pub(crate) up: f64,
    /// `expit(-x)`.
    pub(crate) down: f64,
    /// `log(1 + exp(-|x|))`.
    log1p: f64,
    pub(crate) x: f64,
}

impl Logistic {
    pub(crate) fn at(x: f64) -> Logistic {
        let e = exp(-x.abs());
        Logistic::of(x, e, log1p(e))
    }

    /// At each of many, the same bits: several at a time where the processor can.
    pub(crate) fn at_each(x: &[f64], out: &mut Vec<Logistic>) {
        out.clear();
        for x in x.chunks(LANES) {
            let mut size = [1.0; LANES];
            size.iter_mut().zip(x).for_each(|(size, x)| *size = x.abs().clamp(1e-8, 34.0));
            let (mut e, mut log1p) = ([0.0; LANES], [0.0; LANES]);
            logistics_at_once(&size, &mut e, &mut log1p);
            out.extend(x.iter().zip(size).zip(e).zip(log1p).map(|(((&x, size), e), log1p)| {
                if size == x.abs() { Logistic::of(x, e, log1p) } else { Logistic::at(x) }
            }));
        }
    }

    #[inline(always)]
    fn of(x: f64, e: f64, log1p: f64) -> Logistic {
        let (large, small) = (1.0 / (1.0 + e), e / (1.0 + e));
        let (up, down) = if x >= 0.0 { (large, small) } else { (small, large) };
        Logistic { up, down, log1p, x }
    }

    /// `log(1 + exp(x))`.
    pub(crate) fn log1pexp(&self) -> f64 {
        if self.x > 0.0 { self.x + self.log1p } else { self.log1p }
    }

    /// `log(1 + exp(-x))`.
    pub(crate) fn log1pexp_minus(&self) -> f64 {
        if self.x < 0.0 { -self.x + self.log1p } else { self.log1p }
    }
}

/// Numbers that are taken at once where there are many.
const LANES: usize = 64;

/// `fn wide = plain(…)` makes of a function that is always inlined another, compiled for registers of 256 bits where
/// the processor has them. Nothing is contracted: the bits are the same.
macro_rules! in_wide_registers {
    ($vis:vis fn $wide:ident = $plain:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?) => {
        $vis fn $wide($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wide($($argument: $type),*) $(-> $result)? {
                    $plain($($argument),*)
                }
                if $crate::processor::may_use($crate::processor::InstructionSet::Avx2) {
                    // SAFETY: the processor has AVX2.
                    return unsafe { wide($($argument),*) };
                }
            }
            $plain($($argument),*)
        }
    };
}
pub(crate) use in_wide_registers;

in_wide_registers!(fn logistics_at_once = logistics(x: &[f64; LANES], e: &mut [f64; LANES], log1p: &mut [f64; LANES]));
in_wide_registers!(fn tails_at_once = tails(
    x: &[f64; LANES],
    upper: &mut [f64; LANES],
    density: &mut [f64; LANES],
    log: &mut [f64; LANES],
));

/// `e = exp(-x)` and `log(1 + e)` for 1e-8 ≤ x ≤ 34: nothing but arithmetic, for vector registers.
#[inline(always)]
fn logistics(x: &[f64; LANES], e: &mut [f64; LANES], log1p: &mut [f64; LANES]) {
    e.iter_mut().zip(x).for_each(|(e, x)| *e = ordinary_exp(-x));
    log1p.iter_mut().zip(e).for_each(|(log1p, e)| *log1p = ordinary_log1p(*e));
}

/// `exp(-x²/2)`, `Φ(-x)` and `log Φ(x)` for 0.001 ≤ x ≤ 7.5, in the same manner; `upper` comes with `exp(x²/2) Φ(-x)`.
#[inline(always)]
fn tails(x: &[f64; LANES], upper: &mut [f64; LANES], density: &mut [f64; LANES], log_cdf: &mut [f64; LANES]) {
    for k in 0..LANES {
        let (square, rest) = half_square(x[k]);
        density[k] = ordinary_exp(square) * rest;
        upper[k] *= density[k];
    }
    log_cdf.iter_mut().zip(upper).for_each(|(log, upper)| *log = ordinary_log1p(-*upper));
}

/// `log(1 - exp(-x))` for `x ≥ 0`: Mächler (2012), "Accurately computing log(1 − exp(−|a|))",
/// changes formula at `ln 2`.
pub(crate) fn log1mexp(x: f64) -> f64 {
    if x <= LN_2 { libm::log(-libm::expm1(-x)) } else { log1p(-exp(-x)) }
}

/// `ln 2`, in a part whose product with a small whole number is exact, and the rest.
const LN_2_PARTS: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];

/// `exp(x)`, the bits of [`libm::exp`], without a branch that depends on `x` in an ordinary way: a likelihood has no
/// order in which a processor could guess it. The algorithm and its constants are those of fdlibm's `e_exp.c` (K. C.
/// Ng; © 1993, 2004 Sun Microsystems, "permission to use, copy, modify, and distribute this software is freely granted,
/// provided that this notice is preserved").
#[inline]
pub(crate) fn exp(x: f64) -> f64 {
    let high = (x.to_bits() >> 32) as u32 & 0x7fff_ffff;
    // Not a number, results that are no normal numbers, and 1 + x.
    if !(0x3e30_0001..0x4086_2000).contains(&high) {
        return libm::exp(x);
    }
    ordinary_exp(x)
}

/// `exp(x)` for 2⁻²⁸ < |x| < 708.
#[inline(always)]
fn ordinary_exp(x: f64) -> f64 {
    let high = (x.to_bits() >> 32) as u32 & 0x7fff_ffff;
    // x = k ln 2 + r, |r| ≤ ln(2)/2.
    let whole = (x * LOG2_E + 0.5_f64.copysign(x)) as i32;
    let k = if high > 0x3fd6_2e42 { whole } else { 0 };
    let (upper, lower) = (x - f64::from(k) * LN_2_PARTS[0], f64::from(k) * LN_2_PARTS[1]);
    reduced_exp(upper, lower) * f64::from_bits(((1023 + k) as u64) << 52)
}

/// `exp(upper - lower)`, |upper - lower| ≤ ln(2)/2.
#[inline(always)]
#[allow(clippy::excessive_precision, reason = "the digits are those of fdlibm")]
fn reduced_exp(upper: f64, lower: f64) -> f64 {
    let r = upper - lower;
    let rr = r * r;
    let series = 6.613_756_321_437_934_361_17e-5
        + rr * (-1.653_390_220_546_525_153_90e-6 + rr * 4.138_136_797_057_238_460_39e-8);
    let c = r - rr * (1.666_666_666_666_660_190_37e-1 + rr * (-2.777_777_777_701_559_338_42e-3 + rr * series));
    1.0 + (r * c / (2.0 - c) - lower + upper)
}

/// `log(1 + x)`, the bits of [`libm::log1p`], in the same manner: fdlibm's `s_log1p.c` (as above).
#[inline]
pub(crate) fn log1p(x: f64) -> f64 {
    if !(x > -0.99 && x < 1e15 && x.abs() > 1e-15) {
        return libm::log1p(x);
    }
    ordinary_log1p(x)
}

/// `log(1 + x)` for -0.99 < x < 1e15, |x| > 1e-15.
#[inline(always)]
#[allow(clippy::excessive_precision, reason = "the digits are those of fdlibm")]
fn ordinary_log1p(x: f64) -> f64 {
    let high = (x.to_bits() >> 32) as u32;
    // 1 + x = 2^k (1 + f) with √½ ≤ 1 + f < √2, and c what is lost of 1 + x; as it is where 1 + x is there already.
    let u = 1.0 + x;
    let shifted = (u.to_bits() >> 32) as u32 + (0x3ff0_0000 - 0x3fe6_a09e);
    let k = (shifted >> 20) as i32 - 0x3ff;
    let c = if k >= 2 { 1.0 - (u - x) } else { x - (u - 1.0) } / u;
    let reduced = u64::from((shifted & 0x000f_ffff) + 0x3fe6_a09e) << 32 | u.to_bits() & 0xffff_ffff;
    let is_there = high < 0x3fda_827a || (high >> 31 != 0 && high <= 0xbfd2_bec4);
    let mask = u64::from(is_there).wrapping_neg();
    let f = f64::from_bits(mask & x.to_bits() | !mask & (f64::from_bits(reduced) - 1.0).to_bits());
    let c = f64::from_bits(!mask & c.to_bits());
    let k = f64::from(k & !(mask as i32));
    let half_square = 0.5 * f * f;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even =
        w * (3.999_999_999_940_941_908e-1 + w * (2.222_219_843_214_978_396e-1 + w * 1.531_383_769_920_937_332e-1));
    let odd = z
        * (6.666_666_666_666_735_130e-1
            + w * (2.857_142_874_366_239_149e-1
                + w * (1.818_357_216_161_805_012e-1 + w * 1.479_819_860_511_658_591e-1)));
    s * (half_square + (odd + even)) + (k * LN_2_PARTS[1] + c) - half_square + f + k * LN_2_PARTS[0]
}

/// `exp(-x²/2)`. The square is split in an exact and a small part (as in fdlibm's `erfc`), because
/// an error of one unit in the last place of `x²/2 = 700` would cost two digits of the result.
pub(crate) fn exp_half_square(x: f64) -> f64 {
    let x = x.abs();
    if x > 40.0 {
        return 0.0;
    }
    let (square, rest) = half_square(x);
    exp(square) * rest
}

/// Of `exp(-x²/2)`, 0 ≤ x ≤ 40: the exact part of the exponent, and the exponential of what is left of it.
#[inline(always)]
fn half_square(x: f64) -> (f64, f64) {
    let high = f64::from_bits(x.to_bits() & 0xffff_ffff_f800_0000);
    // Below 2.4e-5, and below 2⁻²⁸ libm has 1 + small.
    let small = -0.5 * (x - high) * (x + high);
    let is_tiny = (small.to_bits() >> 32) as u32 & 0x7fff_ffff <= 0x3e30_0000;
    let mask = u64::from(is_tiny).wrapping_neg();
    let rest = mask & (1.0 + small).to_bits() | !mask & reduced_exp(small, 0.0).to_bits();
    (-0.5 * high * high, f64::from_bits(rest))
}

/// `exp(x²/2) Φ(-x)` for `x ≥ 0`, which neither over- nor underflows: `erfcx(x/√2)/2`.
pub(crate) fn scaled_upper_tail(x: f64) -> f64 {
    debug_assert!(x >= 0.0 || x.is_nan());
    if x.is_infinite() { 0.0 } else { 0.5 * puruspe::erfcx(x * FRAC_1_SQRT_2) }
}

/// `Φ(x)`, the standard normal distribution function, with full relative accuracy in the lower tail.
#[allow(dead_code, reason = "simulate.rs draws truncated times by inversion")]
pub(crate) fn normal_cdf(x: f64) -> f64 {
    if x < 0.0 { exp_half_square(x) * scaled_upper_tail(-x) } else { 1.0 - exp_half_square(x) * scaled_upper_tail(x) }
}

/// `log Φ(x)`: `log1p(-Φ(-x))` above zero; below it `-x²/2 + log(exp(x²/2) Φ(x))`.
pub(crate) fn log_normal_cdf(x: f64) -> f64 {
    if x > 0.0 {
        log1p(-exp_half_square(x) * scaled_upper_tail(x))
    } else if x > -1.0 {
        libm::log(0.5 * libm::erfc(-x * FRAC_1_SQRT_2))
    } else {
        -0.5 * x * x + libm::log(scaled_upper_tail(-x))
    }
}

/// What a likelihood with `log Φ(x)` in it needs, none of it by a difference of large numbers.
///
/// With `φ` and `Φ` the standard normal density and distribution function,
/// `(log Φ)' = ratio` and `(log Φ)'' = -ratio · excess = variance - 1`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NormalTail {
    /// Inverse Mills ratio `r = φ(x)/Φ(x)`.
    pub(crate) ratio: f64,
    /// `x + r > 0`; about `1/|x|` in the lower tail, where `x + r` would cancel.
    pub(crate) excess: f64,
    /// `1 - r (x + r)`, the variance of a standard normal given that it is below `x`; about `1/x²` in the lower tail.
    pub(crate) variance: f64,
}

impl NormalTail {
    /// At `x`; `+∞` is allowed. Below -4 by Laplace's continued fraction
    /// `r = t + 1/(t + 2/(t + 3/(t + …)))`, `t = -x` (Abramowitz and Stegun 26.2.14): with `K₁ = 1/(t + K₂)`,
    /// `K₂ = 2/(t + 3/(t + …))` it is `excess = K₁` and `variance = (K₂ - K₁)/(t + K₂)`.
    pub(crate) fn at(x: f64) -> NormalTail {
        NormalTail::with_log_cdf(x, false).0
    }

    /// The same, and `log Φ(x)` (the bits of [`log_normal_cdf`]), which above zero is made of the same parts.
    pub(crate) fn and_log_cdf(x: f64) -> (NormalTail, f64) {
        NormalTail::with_log_cdf(x, true)
    }

    #[inline(always)]
    fn with_log_cdf(x: f64, wanted: bool) -> (NormalTail, f64) {
        let below = || if wanted { log_normal_cdf(x) } else { 0.0 };
        if x < -4.0 {
            let t = -x;
            let mut k = 0.0;
            for j in (2..=CONTINUED_FRACTION_TERMS).rev() {
                k = f64::from(j) / (t + k);
            }
            let (k2, k1) = (k, 1.0 / (t + k));
            (NormalTail { ratio: t + k1, excess: k1, variance: (k2 - k1) / (t + k2) }, below())
        } else if x < 0.0 {
            let ratio = 0.5 * SQRT_2_OVER_PI / scaled_upper_tail(-x);
            let excess = x + ratio;
            (NormalTail { ratio, excess, variance: 1.0 - ratio * excess }, below())
        } else {
            let density = exp_half_square(x);
            if density == 0.0 {
                return (NormalTail { ratio: 0.0, excess: x, variance: 1.0 }, below());
            }
            let upper = density * scaled_upper_tail(x);
            let log_cdf = if !wanted || x == 0.0 { below() } else { log1p(-upper) };
            (NormalTail::above(x, density, upper), log_cdf)
        }
    }

    /// For `x ≥ 0`, from `exp(-x²/2)` and `Φ(-x)`.
    #[inline(always)]
    fn above(x: f64, density: f64, upper: f64) -> NormalTail {
        let ratio = FRAC_1_SQRT_2PI * density / (1.0 - upper);
        let excess = x + ratio;
        NormalTail { ratio, excess, variance: 1.0 - ratio * excess }
    }

    /// [`NormalTail::and_log_cdf`] at each of many, the same bits: several at a time where the processor can.
    pub(crate) fn and_log_cdf_at_each(x: &[f64], out: &mut Vec<(NormalTail, f64)>) {
        out.clear();
        for x in x.chunks(LANES) {
            let (mut inside, mut upper) = ([1.0; LANES], [0.5; LANES]);
            for (k, x) in x.iter().enumerate() {
                inside[k] = x.clamp(1e-3, 7.5);
                upper[k] = scaled_upper_tail(inside[k]);
            }
            let (mut density, mut log_cdf) = ([0.0; LANES], [0.0; LANES]);
            tails_at_once(&inside, &mut upper, &mut density, &mut log_cdf);
            out.extend(x.iter().enumerate().map(|(k, &x)| {
                if x == inside[k] {
                    (NormalTail::above(x, density[k], upper[k]), log_cdf[k])
                } else {
                    NormalTail::and_log_cdf(x)
                }
            }));
        }
    }
}

/// Terms of the continued fraction; at `x = -4` 40 give full double precision, and fewer are needed below.
const CONTINUED_FRACTION_TERMS: u32 = 40;

/// `Φ⁻¹(p)` for `0 < p < 1` (`∓∞` at 0 and 1): Wichura (1988), algorithm AS 241 (PPND16),
/// Applied Statistics 37, 477–484. Relative error about 1e-16.
#[allow(dead_code, reason = "simulate.rs draws its normals by inversion")]
#[allow(clippy::excessive_precision, reason = "the digits are those printed by Wichura")]
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let polynomial = |r: f64, c: &[f64; 8]| c.iter().rev().fold(0.0, |sum, &c| sum * r + c);
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        return q * polynomial(
            r,
            &[
                3.387_132_872_796_366_608_0,
                1.331_416_678_917_843_774_5e2,
                1.971_590_950_306_551_442_7e3,
                1.373_169_376_550_946_112_5e4,
                4.592_195_393_154_987_145_7e4,
                6.726_577_092_700_870_085_3e4,
                3.343_057_558_358_812_810_5e4,
                2.509_080_928_730_122_672_7e3,
            ],
        ) / polynomial(
            r,
            &[
                1.0,
                4.231_333_070_160_091_125_2e1,
                6.871_870_074_920_579_083_0e2,
                5.394_196_021_424_751_107_7e3,
                2.121_379_430_158_659_586_7e4,
                3.930_789_580_009_271_061_0e4,
                2.872_908_573_572_194_267_4e4,
                5.226_495_278_852_854_561_0e3,
            ],
        );
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail <= 0.0 {
        return if q < 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    let r = libm::sqrt(-libm::log(tail));
    let x = if r <= 5.0 {
        let r = r - 1.6;
        polynomial(
            r,
            &[
                1.423_437_110_749_683_577_34,
                4.630_337_846_156_545_295_90,
                5.769_497_221_460_691_405_50,
                3.647_848_324_763_204_605_04,
                1.270_458_252_452_368_382_58,
                2.417_807_251_774_506_117_70e-1,
                2.272_384_498_926_918_458_33e-2,
                7.745_450_142_783_414_076_40e-4,
            ],
        ) / polynomial(
            r,
            &[
                1.0,
                2.053_191_626_637_758_821_87,
                1.676_384_830_183_803_849_40,
                6.897_673_349_851_000_045_50e-1,
                1.481_039_764_274_800_745_90e-1,
                1.519_866_656_361_645_719_66e-2,
                5.475_938_084_995_344_946_00e-4,
                1.050_750_071_644_416_843_24e-9,
            ],
        )
    } else {
        let r = r - 5.0;
        polynomial(
            r,
            &[
                6.657_904_643_501_103_777_20,
                5.463_784_911_164_114_369_90,
                1.784_826_539_917_291_335_80,
                2.965_605_718_285_048_912_30e-1,
                2.653_218_952_657_612_309_30e-2,
                1.242_660_947_388_078_438_60e-3,
                2.711_555_568_743_487_578_15e-5,
                2.010_334_399_292_288_132_65e-7,
            ],
        ) / polynomial(
            r,
            &[
                1.0,
                5.998_322_065_558_879_376_90e-1,
                1.369_298_809_227_358_053_10e-1,
                1.487_536_129_085_061_485_25e-2,
                7.868_691_311_456_132_591_00e-4,
                1.846_318_317_510_054_681_80e-5,
                1.421_511_758_316_445_888_70e-7,
                2.044_263_103_389_939_785_64e-15,
            ],
        )
    };
    if q < 0.0 { -x } else { x }
}

#[cfg(test)]
#[allow(clippy::approx_constant, reason = "reference values are written as mpmath printed them")]
mod tests {
    // The values below come from mpmath 1.3 with 60 digits (400 for log1mexp of 1e-300):
    //
    //   from mpmath import mp, mpf, erfc, log, log1p, exp, expm1, sqrt, pi, findroot
    //   Phi = lambda x: erfc(-x/sqrt(2))/2;  phi = lambda x: exp(-x*x/2)/sqrt(2*pi)
    //   r = phi(x)/Phi(x)            # x is the double itself, mpf(float)
    //   log Phi(x) (log1p(-Phi(-x)) for x >= 5), r, x + r, 1 - r*(x + r)
    //   quantile: findroot(log Phi(x) - log p)
    //   log(-expm1(-x)), log1p(exp(-x)), x + log1p(exp(-x))
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        /// Bit for bit those of libm: ordinary numbers, all bit patterns, and the edges of the reductions.
        #[test]
        fn exp_and_log1p_are_those_of_libm(
            x in prop_oneof![
                -5.0..5.0_f64,
                -800.0..800.0_f64,
                any::<f64>(),
                any::<u64>().prop_map(f64::from_bits),
                (0.2..2.0_f64).prop_map(|x| -x),
                (0x3fd6_2e41_u64..0x3fd6_2e45, any::<u32>(), any::<bool>()).prop_map(edge),
                (0x3ff0_a2b0_u64..0x3ff0_a2b5, any::<u32>(), any::<bool>()).prop_map(edge),
                (0x3fda_8278_u64..0x3fda_827c, any::<u32>(), any::<bool>()).prop_map(edge),
                (0x3fd2_bec2_u64..0x3fd2_bec6, any::<u32>(), any::<bool>()).prop_map(edge),
                (0x3e2f_fffe_u64..0x3e30_0002, any::<u32>(), any::<bool>()).prop_map(edge),
                (0x4086_1ffe_u64..0x4086_2330, any::<u32>(), any::<bool>()).prop_map(edge),
            ],
        ) {
            let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            prop_assert!(same(exp(x), libm::exp(x)), "exp({x:e}): {:e} {:e}", exp(x), libm::exp(x));
            let y = x.abs().min(40.0);
            let high = f64::from_bits(y.to_bits() & 0xffff_ffff_f800_0000);
            let square = libm::exp(-0.5 * high * high) * libm::exp(-0.5 * (y - high) * (y + high));
            prop_assert!(same(exp_half_square(y), square), "exp(-{y:e}²/2): {:e} {square:e}", exp_half_square(y));
            prop_assert!(same(log1p(x), libm::log1p(x)), "log1p({x:e}): {:e} {:e}", log1p(x), libm::log1p(x));
        }
    }

    proptest! {
        /// At many they are those at each, bit for bit, also beyond what goes several at a time.
        #[test]
        fn many_at_once_are_each(
            x in prop::collection::vec(prop_oneof![-8.0..8.0_f64, -50.0..50.0_f64, -1e-7..1e-7_f64, Just(0.0), any::<f64>()], 0..150),
        ) {
            let bits = |l: &Logistic| [l.up, l.down, l.log1p, l.x].map(f64::to_bits);
            let mut many = Vec::new();
            Logistic::at_each(&x, &mut many);
            prop_assert_eq!(many.len(), x.len());
            for (found, &x) in many.iter().zip(&x) {
                prop_assert_eq!(bits(found), bits(&Logistic::at(x)), "{}", x);
            }
            let bits = |(t, log): &(NormalTail, f64)| [t.ratio, t.excess, t.variance, *log].map(f64::to_bits);
            let mut many = Vec::new();
            NormalTail::and_log_cdf_at_each(&x, &mut many);
            prop_assert_eq!(many.len(), x.len());
            for (found, &x) in many.iter().zip(&x) {
                prop_assert_eq!(bits(found), bits(&NormalTail::and_log_cdf(x)), "{}", x);
            }
        }
    }

    fn edge((high, low, negative): (u64, u32, bool)) -> f64 {
        f64::from_bits(u64::from(negative) << 63 | high << 32 | u64::from(low))
    }

    #[rustfmt::skip]
    const TAIL: [(f64, f64, f64, f64, f64); 25] = [
        (-1000.0, -500007.82669481216, 1000.000999998, 0.00099999800001, 9.999940000499995e-07),
        (-100.0, -5005.524208694205, 100.00999800099926, 0.009998000999260705, 9.994004994826346e-05),
        (-40.0, -804.6084420137538, 40.02496884720726, 0.024968847207263722, 0.0006226683785913888),
        (-37.5, -707.6689893175072, 37.526628874883656, 0.0266288748836536, 0.0007080948854207459),
        (-20.0, -203.91715537109727, 20.04975306852785, 0.049753068527850546, 0.0024632616150521637),
        (-10.0, -53.23128515051247, 10.098093233962512, 0.09809323396251196, 0.009445377825656262),
        (-5.0, -15.064998393988725, 5.186503967125842, 0.1865039671258421, 0.032696434617112226),
        (-4.000001, -10.360105712134912, 4.225608097816642, 0.2256070978166416, 0.046672820541088074),
        (-3.999999, -10.360097260920622, 4.225606191162318, 0.2256071911623184, 0.046672856253766694),
        (-2.5, -5.08164827727869, 2.822744797663907, 0.32274479766390723, 0.08897380142111544),
        (-1.0, -1.8410216450092636, 1.525135276160981, 0.5251352761609812, 0.1990976655703488),
        (-0.5, -1.1759117615936185, 1.1410777703680646, 0.6410777703680645, 0.26848040715587895),
        (-1e-08, -0.693147188538791, 0.7978845671690631, 0.797884557169063, 0.36338022545228255),
        (0.0, -0.6931471805599453, 0.7978845608028654, 0.7978845608028654, 0.3633802276324187),
        (1e-08, -0.6931471725810997, 0.7978845544366676, 0.7978845644366677, 0.3633802298125548),
        (0.5, -0.3689464152886564, 0.5091604338370335, 1.0091604338370335, 0.4861754356963671),
        (1.0, -0.17275377902344988, 0.2875999709391784, 1.2875999709391783, 0.6296862857766053),
        (2.5, -0.006229025485860002, 0.017637825486916735, 2.5176378254869167, 0.9555943433948012),
        (5.0, -2.866516129637636e-07, 1.4867199409049056e-06, 5.000001486719941, 0.9999925663980851),
        (8.5, -9.479534822203318e-18, 8.16623563166955e-17, 8.5, 0.9999999999999993),
        (10.0, -7.619853024160525e-24, 7.694598626706419e-23, 10.0, 1.0),
        (20.0, -2.7536241186062337e-89, 5.520948362159764e-88, 20.0, 1.0),
        (30.0, -4.906713927148187e-198, 1.4736461348785476e-196, 30.0, 1.0),
        (37.5, -4.605353009581955e-308, 1.7282337322841054e-306, 37.5, 1.0),
        (38.0, -2.88542835e-316, 1.097221052e-314, 38.0, 1.0),
    ];

    #[rustfmt::skip]
    const QUANTILE: [(f64, f64); 17] = [
        (1e-300, -37.0470962993612),
        (1e-100, -21.273453560965326),
        (1e-20, -9.262340089798407),
        (1e-10, -6.361340902404057),
        (1e-05, -4.264890793922825),
        (0.001, -3.0902323061678136),
        (0.02425, -1.972961051311885),
        (0.075, -1.439531470938456),
        (0.1, -1.2815515655446004),
        (0.3, -0.5244005127080408),
        (0.5, 0.0),
        (0.6, 0.2533471031357997),
        (0.9, 1.2815515655446006),
        (0.95, 1.6448536269514722),
        (0.999, 3.090232306167813),
        (0.9999999999, 6.361340889697422),
        (0.9999999999999999, 8.209536151601387),
    ];

    #[rustfmt::skip]
    const LOG1: [(f64, f64, f64, f64); 13] = [
        (1e-300, -690.7755278982137, 0.6931471805599453, 0.6931471805599453),
        (1e-20, -46.051701859880914, 0.6931471805599453, 0.6931471805599453),
        (1e-08, -18.420680748952364, 0.6931471755599453, 0.6931471855599454),
        (0.1, -2.3521684610440907, 0.6443966600735709, 0.7443966600735709),
        (0.5, -0.9327521295671886, 0.4740769841801067, 0.9740769841801067),
        (0.6931471805599453, -0.6931471805599453, 0.4054651081081644, 1.0986122886681098),
        (0.7, -0.6863410028083852, 0.4031860488854579, 1.103186048885458),
        (1.0, -0.4586751453870819, 0.3132616875182228, 1.3132616875182228),
        (5.0, -0.006760749449488557, 0.006715348489118068, 5.006715348489118),
        (20.0, -2.061153624562735e-09, 2.061153620314381e-09, 20.000000002061153),
        (37.0, -8.533047625744066e-17, 8.533047625744066e-17, 37.0),
        (100.0, -3.720075976020836e-44, 3.720075976020836e-44, 100.0),
        (745.0, -5e-324, 5e-324, 745.0),
    ];

    fn close(found: f64, expected: f64, tolerance: f64, what: &str) {
        // Subnormal numbers have fewer digits to agree in.
        let slack = tolerance * expected.abs() + 4.0 * f64::from_bits(1);
        assert!((found - expected).abs() <= slack, "{what}: found {found:e}, expected {expected:e}");
    }

    #[test]
    fn normal_kernels_agree_with_high_precision() {
        for (x, log_cdf, ratio, excess, variance) in TAIL {
            close(log_normal_cdf(x), log_cdf, 1e-13, &format!("log Φ({x})"));
            let tail = NormalTail::at(x);
            close(tail.ratio, ratio, 1e-13, &format!("ratio({x})"));
            close(tail.excess, excess, 1e-13, &format!("excess({x})"));
            // The variance is only used in sums with terms of order one above -4.
            close(tail.variance, variance, if x < -4.0 { 1e-13 } else { 2e-13 }, &format!("variance({x})"));
            if log_cdf > -700.0 {
                close(normal_cdf(x), log_cdf.exp(), 2e-13, &format!("Φ({x})"));
            }
        }
    }

    #[test]
    fn normal_quantile_agrees_with_high_precision() {
        for (p, x) in QUANTILE {
            close(normal_quantile(p), x, 1e-15 * 4.0, &format!("quantile({p})"));
        }
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
    }

    #[test]
    fn logarithms_agree_with_high_precision() {
        for (x, minus, plus, plus_positive) in LOG1 {
            close(log1mexp(x), minus, 1e-14, &format!("log1mexp({x})"));
            close(log1pexp(-x), plus, 1e-14, &format!("log1pexp(-{x})"));
            close(log1pexp(x), plus_positive, 1e-14, &format!("log1pexp({x})"));
        }
        assert_eq!(log1pexp(1e308), 1e308);
        assert_eq!(expit(-1e308), 0.0);
        assert_eq!(expit(1e308), 1.0);
    }

    #[test]
    fn shared_parts_give_the_same_bits() {
        let mut x = -60.0;
        while x < 60.0 {
            let at = Logistic::at(x);
            let found = [at.up, at.down, at.log1pexp(), at.log1pexp_minus()];
            assert_eq!(found, [expit(x), expit(-x), log1pexp(x), log1pexp(-x)], "at {x}");
            assert_eq!(NormalTail::and_log_cdf(x).1.to_bits(), log_normal_cdf(x).to_bits(), "at {x}");
            x += 0.0137;
        }
        for x in [0.0, -0.0, 800.0, -800.0] {
            let at = Logistic::at(x);
            assert_eq!([at.up, at.down, at.log1pexp()], [expit(x), expit(-x), log1pexp(x)], "at {x}");
            assert_eq!(NormalTail::and_log_cdf(x).1, log_normal_cdf(x), "at {x}");
        }
    }

    #[test]
    fn limits_are_exact() {
        let tail = NormalTail::at(f64::INFINITY);
        assert_eq!((tail.ratio, tail.variance), (0.0, 1.0));
        assert_eq!(log_normal_cdf(f64::INFINITY), 0.0);
        assert_eq!(normal_cdf(f64::INFINITY), 1.0);
        assert_eq!(normal_cdf(f64::NEG_INFINITY), 0.0);
        assert!(log_normal_cdf(-1e10) < -4.9e19);
        assert!(NormalTail::at(-1e150).excess > 0.0);
    }
}
