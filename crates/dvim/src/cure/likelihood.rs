//! The paper's density: its logarithm, gradient and Hessian. Nothing else.
//!
//! One unit contributes a function of three numbers: `a` (logit of the probability of cure), `m`
//! (location of the uncured log time) and `t = ln s` (log scale). [`unit_terms`] gives its value and
//! its derivatives in these; [`Likelihood`] sums them over units and applies the chain rule to
//! `a = z'b`, `m = z'l`, `z` being the row of the design. Derivation: docs/methods-cure.md.

use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;

use super::optimize::{Evaluation, Objective};
use crate::numeric::{
    FRAC_1_SQRT_2PI, Logistic, NormalTail, exp, exp_half_square, log_normal_cdf, log1mexp, scaled_upper_tail,
};
use crate::product::{Sign, View, add_product};

/// `ln √(2π)`.
const LN_SQRT_2PI: f64 = 0.918_938_533_204_672_7;

/// What was seen of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The event, before the horizon.
    Event,
    /// Nothing until it was lost, before the horizon.
    Censored,
    /// The horizon, without event: cured by definition.
    Horizon,
}

/// A function of `(m, t)`: value, first and second derivatives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LatencyTerms {
    pub(crate) value: f64,
    pub(crate) m: f64,
    pub(crate) t: f64,
    pub(crate) mm: f64,
    pub(crate) mt: f64,
    pub(crate) tt: f64,
}

/// A distribution of the log event time `u` of the uncured, truncated at `u_horizon` (`+∞`: not truncated),
/// with location `m` and log scale `t`. Another family is another implementation.
pub(crate) trait Latency: Sync {
    /// Log density of `u`.
    fn log_density(&self, u: f64, m: f64, scale: LogScale) -> LatencyTerms;
    /// Log probability of an event between `u` and the horizon.
    fn log_survival(&self, u: f64, m: f64, scale: LogScale) -> LatencyTerms;
    /// Log densities of many, the same bits as one by one.
    fn log_densities(&self, u: &[f64], m: &[f64], scale: LogScale, out: &mut Vec<LatencyTerms>) {
        out.clear();
        out.extend(u.iter().zip(m).map(|(&u, &m)| self.log_density(u, m, scale)));
    }
}

/// A log scale `t` with the scale `s = exp(t)`, which all units of a sum share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogScale {
    t: f64,
    s: f64,
}

impl From<f64> for LogScale {
    fn from(t: f64) -> LogScale {
        LogScale { t, s: exp(t) }
    }
}

impl LogScale {
    /// `t` and `s`.
    pub(crate) fn both(self) -> (f64, f64) {
        (self.t, self.s)
    }
}

/// `u ~ N(m, s²)` given `u < u_horizon`: the paper's truncated log-normal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogNormal {
    pub(crate) u_horizon: f64,
}

impl Latency for LogNormal {
    /// `ln φ(z) - t - ln Φ(h)`, `z = (u - m)/s`, `h = (u_H - m)/s`.
    ///
    /// With `r = φ(h)/Φ(h)`, `e = h + r`, `v = 1 - r e` (see [`NormalTail`]):
    /// `∂m = (z + r)/s`, `∂t = z² - 1 + h r`, `∂mm = -v/s²`, `∂mt = (-2z - r + h r e)/s`, `∂tt = -2z² - h r + h² r e`.
    /// For `h < 0` everything is written in `z - h` and `z + h`: `z²` and `h²` may both be huge.
    fn log_density(&self, u: f64, m: f64, scale: LogScale) -> LatencyTerms {
        let (t, s) = scale.both();
        let z = (u - m) / s;
        if self.u_horizon == f64::INFINITY {
            let value = -LN_SQRT_2PI - 0.5 * z * z - t;
            let (mm, mt, tt) = (-1.0 / (s * s), -2.0 * z / s, -2.0 * z * z);
            return LatencyTerms { value, m: z / s, t: z * z - 1.0, mm, mt, tt };
        }
        let h = (self.u_horizon - m) / s;
        if h < 0.0 {
            let NormalTail { ratio: _, excess: e, variance: v } = NormalTail::at(h);
            let difference = (u - self.u_horizon) / s;
            let squares = difference * (z + h);
            LatencyTerms {
                value: -LN_SQRT_2PI - 0.5 * squares - t - libm::log(scaled_upper_tail(-h)),
                m: (difference + e) / s,
                t: squares - 1.0 + h * e,
                mm: -v / (s * s),
                mt: (-2.0 * difference - e - h * v) / s,
                tt: -2.0 * squares - h * e - h * h * v,
            }
        } else {
            LogNormal::below_horizon(z, h, NormalTail::and_log_cdf(h), scale)
        }
    }

    fn log_densities(&self, u: &[f64], m: &[f64], scale: LogScale, out: &mut Vec<LatencyTerms>) {
        out.clear();
        let h: Vec<f64> = m.iter().map(|m| (self.u_horizon - m) / scale.s).collect();
        let mut tails = Vec::with_capacity(h.len());
        NormalTail::and_log_cdf_at_each(&h, &mut tails);
        out.extend(u.iter().zip(m).zip(h.iter().zip(tails)).map(|((&u, &m), (&h, tail))| {
            if (0.0..f64::INFINITY).contains(&h) {
                LogNormal::below_horizon((u - m) / scale.s, h, tail, scale)
            } else {
                self.log_density(u, m, scale)
            }
        }));
    }

    /// `ln K`, `K = 1 - Φ(q)/Φ(h) = (Φ(h) - Φ(q))/Φ(h)`, `q = (u - m)/s`.
    ///
    /// For `q ≤ 0` through `g = ln Φ(q) - ln Φ(h)` and `O = 1/(exp(-g) - 1)`:
    /// `∂ₓ ln K = -O gₓ`, `∂ₓᵧ ln K = -O gₓᵧ - O (1 + O) gₓ gᵧ`.
    /// For `q > 0` through `D = Φ(-q) - Φ(-h)`, `A = φ(q)/D`, `B = φ(h)/D`: both tails then lie on the side
    /// where they keep their digits.
    fn log_survival(&self, u: f64, m: f64, scale: LogScale) -> LatencyTerms {
        if u == f64::NEG_INFINITY {
            return LatencyTerms::default();
        }
        let (_, s) = scale.both();
        let q = (u - m) / s;
        if self.u_horizon == f64::INFINITY {
            untruncated_survival(q, s)
        } else {
            truncated_survival(q, self.u_horizon, u, m, s)
        }
    }
}

impl LogNormal {
    /// The log density where the median is below the horizon, `h ≥ 0`.
    #[inline(always)]
    fn below_horizon(z: f64, h: f64, (tail, log_cdf): (NormalTail, f64), scale: LogScale) -> LatencyTerms {
        let ((t, s), NormalTail { ratio: r, excess: e, variance: v }) = (scale.both(), tail);
        LatencyTerms {
            value: -LN_SQRT_2PI - 0.5 * z * z - t - log_cdf,
            m: (z + r) / s,
            t: z * z - 1.0 + h * r,
            mm: -v / (s * s),
            mt: (-2.0 * z - r + h * r * e) / s,
            tt: -2.0 * z * z - h * r + h * h * r * e,
        }
    }
}

/// `ln Φ(-q)` and its derivatives: with `A = φ(q)/Φ(-q)`, `∂m = A/s`, `∂t = q A`.
fn untruncated_survival(q: f64, s: f64) -> LatencyTerms {
    // NormalTail at x = -q: A = ratio, A - q = excess, so (ln Φ(x))'' = -A (A - q).
    let NormalTail { ratio, excess, .. } = NormalTail::at(-q);
    let curvature = -ratio * excess;
    LatencyTerms {
        value: log_normal_cdf(-q),
        m: ratio / s,
        t: q * ratio,
        mm: curvature / (s * s),
        mt: (q * curvature - ratio) / s,
        tt: q * (q * curvature - ratio),
    }
}

fn truncated_survival(q: f64, u_horizon: f64, u: f64, m: f64, s: f64) -> LatencyTerms {
    let h = (u_horizon - m) / s;
    let width = (u_horizon - u) / s;
    let at_h = NormalTail::at(h);
    if q <= 0.0 {
        let at_q = NormalTail::at(q);
        // g and its derivatives, from ln Φ(x): m: -r/s, t: -x r, mm: -(1-v)/s², mt: (e - 2x + x v)/s, tt: x e - 2x² +
        // x² v.
        let (g, g_m, g_t, g_mm, g_mt, g_tt);
        if h < 0.0 {
            let squares = -width * (q + h);
            g = -0.5 * squares + libm::log(scaled_upper_tail(-q) / scaled_upper_tail(-h));
            let excess = at_q.excess - at_h.excess;
            let q_e = q * at_q.excess - h * at_h.excess;
            g_m = -(excess + width) / s;
            g_t = -(q_e - squares);
            g_mm = (at_q.variance - at_h.variance) / (s * s);
            g_mt = (excess + 2.0 * width + q * at_q.variance - h * at_h.variance) / s;
            g_tt = q_e - 2.0 * squares + q * q * at_q.variance - h * h * at_h.variance;
        } else {
            g = log_normal_cdf(q) - log_normal_cdf(h);
            let (re_q, re_h) = (at_q.ratio * at_q.excess, at_h.ratio * at_h.excess);
            g_m = -(at_q.ratio - at_h.ratio) / s;
            g_t = -(q * at_q.ratio - h * at_h.ratio);
            g_mm = -(re_q - re_h) / (s * s);
            g_mt = ((at_q.ratio - q * re_q) - (at_h.ratio - h * re_h)) / s;
            g_tt = (q * at_q.ratio - q * q * re_q) - (h * at_h.ratio - h * h * re_h);
        }
        let odds = 1.0 / libm::expm1(-g);
        let c = odds * (1.0 + odds);
        LatencyTerms {
            value: log1mexp(-g),
            m: -odds * g_m,
            t: -odds * g_t,
            mm: -odds * g_mm - c * g_m * g_m,
            mt: -odds * g_mt - c * g_m * g_t,
            tt: -odds * g_tt - c * g_t * g_t,
        }
    } else {
        let upper_q = scaled_upper_tail(q);
        // D = Φ(-q) (1 - ratio), ratio = Φ(-h)/Φ(-q), in logarithms.
        let log_ratio = -0.5 * width * (h + q) + libm::log(scaled_upper_tail(h) / upper_q);
        let a = FRAC_1_SQRT_2PI / upper_q / -libm::expm1(log_ratio);
        let b = a * exp(-0.5 * width * (h + q));
        let (r, e) = (at_h.ratio, at_h.excess);
        let l_m = a - b;
        let l_t = q * a - h * b;
        LatencyTerms {
            value: -0.5 * q * q + libm::log(upper_q) + log1mexp(-log_ratio) - log_normal_cdf(h),
            m: (l_m + r) / s,
            t: l_t + h * r,
            mm: (q * a - h * b - l_m * l_m + r * e) / (s * s),
            mt: (q * q * a - h * h * b - l_m * l_t - l_m - (r - h * r * e)) / s,
            tt: -l_t + q * q * q * a - h * h * h * b - l_t * l_t - (h * r - h * h * r * e),
        }
    }
}

/// `g(x)`, `x = (u - m)/s`, as a function of `(m, t)`: with `x_m = -1/s`, `x_t = -x` the chain rule gives
/// `g_m = -g'/s`, `g_t = -x g'`, `g_mm = g''/s²`, `g_mt = (x g'' + g')/s`, `g_tt = x (x g'' + g')`.
pub(super) fn location_scale(value: f64, first: f64, second: f64, x: f64, s: f64) -> LatencyTerms {
    let mixed = x * second + first;
    LatencyTerms { value, m: -first / s, t: -x * first, mm: second / (s * s), mt: mixed / s, tt: x * mixed }
}

impl LatencyTerms {
    pub(super) fn minus(self, other: LatencyTerms) -> LatencyTerms {
        LatencyTerms {
            value: self.value - other.value,
            m: self.m - other.m,
            t: self.t - other.t,
            mm: self.mm - other.mm,
            mt: self.mt - other.mt,
            tt: self.tt - other.tt,
        }
    }
}

/// `T ~ Weibull` with scale `exp(m)` and shape `1/s`, given `ln T < u_horizon`: `ln T = m + s ε`, `P(ε ≤ z) = 1 -
/// exp(-exp(z))`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weibull {
    pub(crate) u_horizon: f64,
}

/// Largest argument of `exp` that leaves room for squares: beyond `exp(300)` a Weibull time is surely past.
const LARGEST_EXPONENT: f64 = 300.0;

impl Weibull {
    /// `ln F(h)`, `F(h) = 1 - exp(-e^h)`: with `r = f/F = e^h/(exp(e^h) - 1)` it is `(ln F)' = r`, `(ln F)'' = r (1 -
    /// e^h - r)`.
    fn log_cdf(h: f64, s: f64) -> LatencyTerms {
        let e = exp(h.min(LARGEST_EXPONENT));
        if e > 700.0 {
            return LatencyTerms::default();
        }
        let r = if e > 0.0 { e / libm::expm1(e) } else { 1.0 };
        // ln F(h) = h - e^h/2 + …, and e^-36 is below the rounding of one.
        let value = if h < -36.0 { h } else { log1mexp(e) };
        location_scale(value, r, r * (1.0 - e - r), h, s)
    }
}

impl Latency for Weibull {
    /// `z - e^z - t - ln F(h)`.
    fn log_density(&self, u: f64, m: f64, scale: LogScale) -> LatencyTerms {
        let (t, s) = scale.both();
        let z = (u - m) / s;
        let e = exp(z.min(LARGEST_EXPONENT));
        let mut density = location_scale(z - e - t, 1.0 - e, -e, z, s);
        density.t -= 1.0;
        if self.u_horizon == f64::INFINITY {
            return density;
        }
        density.minus(Weibull::log_cdf((self.u_horizon - m) / s, s))
    }

    /// `ln K`, `K = D/F(h)`, `D = F(h) - F(q) = S(q) (1 - exp(-(e^h - e^q)))`, `S(q) = exp(-e^q)`; see [`gap`], `ρ(x) =
    /// 1 - e^x`.
    fn log_survival(&self, u: f64, m: f64, scale: LogScale) -> LatencyTerms {
        if u == f64::NEG_INFINITY {
            return LatencyTerms::default();
        }
        let (_, s) = scale.both();
        let q = (u - m) / s;
        let e = exp(q.min(LARGEST_EXPONENT));
        if self.u_horizon == f64::INFINITY {
            return location_scale(-e, -e, -e, q, s);
        }
        let h = (self.u_horizon - m) / s;
        let ratio = libm::expm1(((self.u_horizon - u) / s).min(LARGEST_EXPONENT));
        let width = e * ratio;
        // Both tails vanish together far on the left: there A = 1/(exp(h - q) - 1).
        let (a, log_gap) =
            if width > 0.0 { (e / -libm::expm1(-width), log1mexp(width)) } else { (1.0 / ratio, q + libm::log(ratio)) };
        let b = a * (1.0 + ratio) * exp(-width);
        let b = if b.is_finite() { b } else { 0.0 };
        let rho = [a * (1.0 - e), b * (1.0 - e * (1.0 + ratio))];
        gap(-e + log_gap, [a, b], rho, [q, h], s).minus(Weibull::log_cdf(h, s))
    }
}

/// `ln D`, `D = F(h) - F(q)`, whose value is given, with its derivatives.
///
/// With `A = f(q)/D`, `B = f(h)/D`, `ρ = (ln f)'`, `l_m = A - B`, `l_t = qA - hB`:
/// `∂m ln D = l_m/s`, `∂t = l_t`, `∂mm = (Bρ(h) - Aρ(q) - l_m²)/s²`, `∂mt = (hBρ(h) - qAρ(q) - l_m - l_m l_t)/s`,
/// `∂tt = h²Bρ(h) - q²Aρ(q) - l_t - l_t²`. Given are A and B, Aρ(q) and Bρ(h).
pub(super) fn gap(value: f64, [a, b]: [f64; 2], [a_rho, b_rho]: [f64; 2], [q, h]: [f64; 2], s: f64) -> LatencyTerms {
    let (b_rho, h) = if b == 0.0 { (0.0, 0.0) } else { (b_rho, h) };
    let l_m = a - b;
    let l_t = q * a - h * b;
    LatencyTerms {
        value,
        m: l_m / s,
        t: l_t,
        mm: (b_rho - a_rho - l_m * l_m) / (s * s),
        mt: (h * b_rho - q * a_rho - l_m - l_m * l_t) / s,
        tt: h * h * b_rho - q * q * a_rho - l_t - l_t * l_t,
    }
}

/// `T` log-logistic with median `exp(m)` and shape `1/s`, given `ln T < u_horizon`: `ln T = m + s ε`, `P(ε ≤ z) =
/// expit(z)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogLogistic {
    pub(crate) u_horizon: f64,
}

impl Latency for LogLogistic {
    /// `ln expit(z) + ln expit(-z) - t - ln expit(h)`.
    fn log_density(&self, u: f64, m: f64, scale: LogScale) -> LatencyTerms {
        let (t, s) = scale.both();
        let z = (u - m) / s;
        let at = Logistic::at(z);
        let value = -at.log1pexp() - at.log1pexp_minus() - t;
        let mut density = location_scale(value, at.down - at.up, -2.0 * at.up * at.down, z, s);
        density.t -= 1.0;
        if self.u_horizon == f64::INFINITY {
            return density;
        }
        let h = (self.u_horizon - m) / s;
        let at = Logistic::at(h);
        density.minus(location_scale(-at.log1pexp_minus(), at.down, -at.up * at.down, h, s))
    }

    /// `K = 1 - expit(q)/expit(h) = expit(-q) (1 - exp(-w))`, `w = h - q = (u_H - u)/s`, which does not depend on `m`:
    /// `∂t ln(1 - e^-w) = -c`, `∂tt = c - c² e^w`, `c = w/(e^w - 1)`.
    fn log_survival(&self, u: f64, m: f64, scale: LogScale) -> LatencyTerms {
        if u == f64::NEG_INFINITY {
            return LatencyTerms::default();
        }
        let (_, s) = scale.both();
        let q = (u - m) / s;
        let at = Logistic::at(q);
        let mut terms = location_scale(-at.log1pexp(), -at.up, -at.up * at.down, q, s);
        let w = (self.u_horizon - u) / s;
        if w < 700.0 {
            let c = w / libm::expm1(w);
            terms.value += log1mexp(w);
            terms.t -= c;
            terms.tt += c - c * (c + w);
        }
        terms
    }
}

/// One unit's log-likelihood and its derivatives in `(a, m, t)`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnitTerms {
    pub(crate) value: f64,
    pub(crate) a: f64,
    pub(crate) m: f64,
    pub(crate) t: f64,
    pub(crate) aa: f64,
    pub(crate) am: f64,
    pub(crate) at: f64,
    pub(crate) mm: f64,
    pub(crate) mt: f64,
    pub(crate) tt: f64,
}

/// With `p = expit(a)`: an event gives `ln(1-p) + ln f(u)`, a unit at the horizon `ln p`, a censored one
/// `ln(p + (1-p) K(u)) = ln(exp(a) + K) - ln(1 + exp(a))`, whose derivatives are those of `ln K` weighted by
/// `w = p/(p + (1-p) K) = expit(a - ln K)`, the probability of cure given that no event was seen.
pub(crate) fn unit_terms<L: Latency>(
    latency: &L,
    seen: Seen,
    u: f64,
    a: f64,
    m: f64,
    scale: impl Into<LogScale>,
) -> UnitTerms {
    unit_terms_of(latency, seen, u, Logistic::at(a), m, scale, 0.0)
}

/// The same where the logistic function at `a` is known, and a cured unit may leave for another cause: `ln(p G + (1-p)
/// K(u))` for a censored one, with `offset = ln G`.
pub(crate) fn unit_terms_of<L: Latency>(
    latency: &L,
    seen: Seen,
    u: f64,
    cure: Logistic,
    m: f64,
    scale: impl Into<LogScale>,
    offset: f64,
) -> UnitTerms {
    let a = cure.x;
    let (p, spread) = (cure.up, cure.up * cure.down);
    match seen {
        Seen::Horizon => UnitTerms { value: -cure.log1pexp_minus(), a: cure.down, aa: -spread, ..UnitTerms::default() },
        Seen::Event => event_terms(&cure, latency.log_density(u, m, scale.into())),
        Seen::Censored => {
            let k = latency.log_survival(u, m, scale.into());
            let here = a + offset;
            let d = here - k.value;
            let lost = Logistic::at(d);
            let (w, v) = (lost.up, lost.down);
            let c = w * v;
            // ln(exp(a) + K), by the larger of the two.
            let sum = if d > 0.0 { here + lost.log1pexp_minus() } else { k.value + lost.log1pexp() };
            // With K = 0 in double precision the unit is surely cured and tells nothing of (m, t).
            let k = if v == 0.0 { LatencyTerms::default() } else { k };
            UnitTerms {
                value: sum - cure.log1pexp(),
                // w - p, without cancellation where both are close to one.
                a: if a > 0.0 { cure.down - v } else { w - p },
                m: v * k.m,
                t: v * k.t,
                aa: c - spread,
                am: -c * k.m,
                at: -c * k.t,
                mm: v * k.mm + c * k.m * k.m,
                mt: v * k.mt + c * k.m * k.t,
                tt: v * k.tt + c * k.t * k.t,
            }
        }
    }
}

/// Those of an event, from its log density.
#[inline(always)]
pub(crate) fn event_terms(cure: &Logistic, f: LatencyTerms) -> UnitTerms {
    let value = f.value - cure.log1pexp();
    let aa = -(cure.up * cure.down);
    UnitTerms { value, a: -cure.up, m: f.m, t: f.t, aa, am: 0.0, at: 0.0, mm: f.mm, mt: f.mt, tt: f.tt }
}

/// Log survival ratio `ln K` and nothing else, for predictions.
pub(super) fn log_survival(u_horizon: f64, u: f64, m: f64, t: f64) -> f64 {
    LogNormal { u_horizon }.log_survival(u, m, t.into()).value
}

/// Mean of `exp(U)`, `U ~ N(m, s²)` given `U < u_H`: `exp(m + s²/2) Φ(h - s)/Φ(h)`, the paper's truncated mean.
///
/// Since `m + s²/2 - (h - s)²/2 = u_H - h²/2`, with `Q(x) = exp(x²/2) Φ(-x)` it is `exp(u_H) Q(s - h)/Q(-h)`
/// for `h < 0`, and `exp(u_H - h²/2) Q(s - h)/Φ(h)` for `0 ≤ h < s`: no overflow where the mean is below the horizon.
pub(crate) fn truncated_mean(u_horizon: f64, m: f64, t: f64) -> f64 {
    let s = exp(t);
    if u_horizon == f64::INFINITY {
        return exp(m + 0.5 * s * s);
    }
    let h = (u_horizon - m) / s;
    if h < 0.0 {
        exp(u_horizon) * (scaled_upper_tail(s - h) / scaled_upper_tail(-h))
    } else if h < s {
        exp(u_horizon) * exp_half_square(h) * scaled_upper_tail(s - h) / exp(log_normal_cdf(h))
    } else {
        exp(m + 0.5 * s * s + log_normal_cdf(h - s) - log_normal_cdf(h))
    }
}

/// Units of a chunk. Sums are over chunks in their order, whoever computed them, so that the bits do not depend
/// on the number of threads.
const CHUNK: usize = 256;
/// Chunks that are computed before their sums are added up: bounds the memory.
const WAVE: usize = 16;
/// Columns of a block of `Z'WZ`; only blocks on and above the diagonal are computed where `W` is the same on both
/// sides.
const BLOCK: usize = 64;
/// Multiplications in one evaluation from which threads pay for their start.
const PARALLEL_WORK: usize = 4_000_000;

/// The log-likelihood of a sample as a function of `(b, l, t)`: `b` and `l` have `width` numbers each.
pub(super) struct Likelihood<L> {
    latency: L,
    /// Units in the order events, censored, horizon: each chunk holds one kind and computes only what that kind has.
    chunks: Vec<(Seen, usize, usize)>,
    u: Vec<f64>,
    design: Vec<f64>,
    width: usize,
    /// Of each row: its unit, and weight and offset where not all are one and zero.
    units: Vec<u32>,
    weights: Vec<f64>,
    offsets: Vec<f64>,
}

/// One term of the sum.
pub(super) struct Row {
    /// The unit, a row of the design.
    pub(super) unit: u32,
    pub(super) seen: Seen,
    pub(super) u: f64,
    pub(super) weight: f64,
    /// `ln G` of other causes.
    pub(super) offset: f64,
}

impl UnitTerms {
    /// So many times as much.
    pub(crate) fn times(self, w: f64) -> UnitTerms {
        let UnitTerms { value, a, m, t, aa, am, at, mm, mt, tt } = self;
        UnitTerms {
            value: w * value,
            a: w * a,
            m: w * m,
            t: w * t,
            aa: w * aa,
            am: w * am,
            at: w * at,
            mm: w * mm,
            mt: w * mt,
            tt: w * tt,
        }
    }
}

impl<L: Latency> Likelihood<L> {
    /// `design` is row-major with `width` columns, the first of them ones.
    #[cfg(test)]
    pub(super) fn new(latency: L, seen: &[Seen], u: &[f64], design: &[f64], width: usize) -> Likelihood<L> {
        let row = |i: usize| Row { unit: i as u32, seen: seen[i], u: u[i], weight: 1.0, offset: 0.0 };
        Likelihood::of_rows(latency, &(0..u.len()).map(row).collect::<Vec<_>>(), design, width)
    }

    /// The likelihood of these rows, whose covariates stand in the design at the place of their unit.
    pub(super) fn of_rows(latency: L, rows: &[Row], design: &[f64], width: usize) -> Likelihood<L> {
        let mut chunks = Vec::new();
        let (mut sorted_u, mut sorted) = (Vec::with_capacity(rows.len()), Vec::with_capacity(design.len()));
        let (mut units, mut weights, mut offsets) = (Vec::with_capacity(rows.len()), Vec::new(), Vec::new());
        let weighted = rows.iter().any(|r| r.weight != 1.0);
        let shifted = rows.iter().any(|r| r.offset != 0.0);
        for kind in [Seen::Event, Seen::Censored, Seen::Horizon] {
            let first = sorted_u.len();
            for row in rows.iter().filter(|r| r.seen == kind) {
                let i = row.unit as usize;
                sorted_u.push(row.u);
                sorted.extend_from_slice(&design[i * width..(i + 1) * width]);
                units.push(row.unit);
                weights.extend(weighted.then_some(row.weight));
                offsets.extend(shifted.then_some(row.offset));
            }
            let mut start = first;
            while start < sorted_u.len() {
                let end = (start + CHUNK).min(sorted_u.len());
                chunks.push((kind, start, end));
                start = end;
            }
        }
        Likelihood { latency, chunks, u: sorted_u, design: sorted, width, units, weights, offsets }
    }

    /// The terms of a row.
    fn terms(&self, row: usize, seen: Seen, a: Logistic, m: f64, scale: LogScale) -> UnitTerms {
        let offset = self.offsets.get(row).copied().unwrap_or(0.0);
        let terms = unit_terms_of(&self.latency, seen, self.u[row], a, m, scale, offset);
        match self.weights.get(row) {
            Some(&w) => terms.times(w),
            None => terms,
        }
    }

    /// `Σ s s'` over clusters, s being the sum of the scores of a cluster's rows; clusters are given by unit.
    pub(super) fn score_products(&self, theta: &[f64], clusters: &[u32]) -> DMatrix<f64> {
        let d = self.width;
        let (b, l, scale) = (&theta[..d], &theta[d..2 * d], LogScale::from(theta[2 * d]));
        let mut seen = vec![Seen::Event; self.u.len()];
        for &(kind, start, end) in &self.chunks {
            seen[start..end].fill(kind);
        }
        let mut order: Vec<usize> = (0..self.u.len()).collect();
        let cluster = |row: usize| clusters[self.units[row] as usize];
        order.sort_by_key(|&row| (cluster(row), row));
        let mut out = DMatrix::zeros(2 * d + 1, 2 * d + 1);
        for rows in order.chunk_by(|&x, &y| cluster(x) == cluster(y)) {
            let mut score = DVector::<f64>::zeros(2 * d + 1);
            for &row in rows {
                let z = &self.design[row * d..(row + 1) * d];
                let terms = self.terms(row, seen[row], Logistic::at(dot(z, b)), dot(z, l), scale);
                for j in 0..d {
                    score[j] += terms.a * z[j];
                    score[d + j] += terms.m * z[j];
                }
                score[2 * d] += terms.t;
            }
            out.ger(1.0, &score, &score, 1.0);
        }
        out
    }

    /// Parameters: `width` for the cure part, `width` for the latency, one log scale.
    pub(super) fn n_parameters(&self) -> usize {
        2 * self.width + 1
    }

    fn chunk(&self, (seen, start, end): (Seen, usize, usize), theta: &[f64]) -> Sums {
        let d = self.width;
        let (b, l, scale) = (&theta[..d], &theta[d..2 * d], LogScale::from(theta[2 * d]));
        let n = end - start;
        let design = &self.design[start * d..end * d];
        let mut sums = Sums::new(d);
        let mut terms = Vec::with_capacity(n);
        let linear: Vec<f64> = design.chunks_exact(d).map(|z| dot(z, b)).collect();
        let mut cured = Vec::with_capacity(n);
        Logistic::at_each(&linear, &mut cured);
        for (i, (z, a)) in design.chunks_exact(d).zip(cured).enumerate() {
            let m = if seen == Seen::Horizon { 0.0 } else { dot(z, l) };
            let unit = self.terms(start + i, seen, a, m, scale);
            sums.value += unit.value;
            sums.t += unit.t;
            sums.tt += unit.tt;
            add(&mut sums.a, unit.a, z);
            if seen != Seen::Horizon {
                add(&mut sums.m, unit.m, z);
                add(&mut sums.mt, unit.mt, z);
            }
            if seen == Seen::Censored {
                add(&mut sums.at, unit.at, z);
            }
            terms.push(unit);
        }
        let mut scaled = vec![0.0; n * d];
        let mut product = |weight: fn(&UnitTerms) -> f64, out: &mut [f64], symmetric: bool| {
            for ((row, z), unit) in scaled.chunks_exact_mut(d).zip(design.chunks_exact(d)).zip(&terms) {
                let w = weight(unit);
                row.iter_mut().zip(z).for_each(|(row, z)| *row = w * z);
            }
            cross_product(design, &scaled, n, d, out, symmetric);
        };
        product(|u| u.aa, &mut sums.aa, true);
        if seen != Seen::Horizon {
            product(|u| u.mm, &mut sums.mm, true);
        }
        if seen == Seen::Censored {
            // Weighted by one number per unit, so this block is symmetric too.
            product(|u| u.am, &mut sums.am, true);
        }
        sums
    }
}

impl<L: Latency> Objective for Likelihood<L> {
    fn len(&self) -> usize {
        self.n_parameters()
    }

    fn evaluate(&self, theta: &[f64], out: &mut Evaluation) {
        let d = self.width;
        let mut total = Sums::new(d);
        let parallel = self.u.len() * d * (d + 40) > PARALLEL_WORK;
        for wave in self.chunks.chunks(WAVE) {
            let sums: Vec<Sums> = if parallel {
                wave.par_iter().map(|&chunk| self.chunk(chunk, theta)).collect()
            } else {
                wave.iter().map(|&chunk| self.chunk(chunk, theta)).collect()
            };
            sums.iter().for_each(|s| total.add(s));
        }
        total.write(out);
    }
}

/// Sums over units; matrices are `d × d`, upper triangle by blocks.
struct Sums {
    d: usize,
    value: f64,
    t: f64,
    tt: f64,
    a: Vec<f64>,
    m: Vec<f64>,
    at: Vec<f64>,
    mt: Vec<f64>,
    aa: Vec<f64>,
    am: Vec<f64>,
    mm: Vec<f64>,
}

impl Sums {
    fn new(d: usize) -> Sums {
        let (v, w) = (vec![0.0; d], vec![0.0; d * d]);
        Sums {
            d,
            value: 0.0,
            t: 0.0,
            tt: 0.0,
            a: v.clone(),
            m: v.clone(),
            at: v.clone(),
            mt: v,
            aa: w.clone(),
            am: w.clone(),
            mm: w,
        }
    }

    fn add(&mut self, other: &Sums) {
        self.value += other.value;
        self.t += other.t;
        self.tt += other.tt;
        for (to, from) in [
            (&mut self.a, &other.a),
            (&mut self.m, &other.m),
            (&mut self.at, &other.at),
            (&mut self.mt, &other.mt),
            (&mut self.aa, &other.aa),
            (&mut self.am, &other.am),
            (&mut self.mm, &other.mm),
        ] {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
    }

    /// To gradient and full Hessian.
    fn write(&self, out: &mut Evaluation) {
        let d = self.d;
        out.value = self.value;
        let gradient = out.gradient.as_mut_slice();
        gradient[..d].copy_from_slice(&self.a);
        gradient[d..2 * d].copy_from_slice(&self.m);
        gradient[2 * d] = self.t;
        let h = &mut out.hessian;
        for i in 0..d {
            for j in 0..d {
                let at = if i <= j { i * d + j } else { j * d + i };
                h[(i, j)] = self.aa[at];
                h[(d + i, d + j)] = self.mm[at];
                h[(i, d + j)] = self.am[at];
                h[(d + i, j)] = self.am[at];
            }
            for (row, v) in [(i, self.at[i]), (d + i, self.mt[i])] {
                h[(row, 2 * d)] = v;
                h[(2 * d, row)] = v;
            }
        }
        h[(2 * d, 2 * d)] = self.tt;
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    // Four partial sums let the compiler use vector registers; the order is fixed.
    let mut sums = [0.0; 4];
    let (xs, ys) = (x.chunks_exact(4), y.chunks_exact(4));
    let rest: f64 = xs.remainder().iter().zip(ys.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in xs.zip(ys) {
        for k in 0..4 {
            sums[k] += x[k] * y[k];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

fn add(to: &mut [f64], w: f64, x: &[f64]) {
    to.iter_mut().zip(x).for_each(|(to, x)| *to += w * x);
}

/// `out += X'Y` for row-major `n × d` matrices; with `upper`, only blocks on and above the diagonal.
pub(super) fn cross_product(x: &[f64], y: &[f64], n: usize, d: usize, out: &mut [f64], upper: bool) {
    assert!(x.len() >= n * d && y.len() >= n * d && out.len() >= d * d);
    for i in (0..d).step_by(BLOCK) {
        let rows = BLOCK.min(d - i);
        let first = if upper { i } else { 0 };
        if n > 0 {
            let transposed = View { data: &x[i..], row: 1, column: d };
            let y = View { data: &y[first..], row: d, column: 1 };
            add_product([rows, n, d - first], Sign::Plus, transposed, y, &mut out[i * d + first..], d);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cure::GeneralisedGamma;

    fn numbers(x: UnitTerms) -> [f64; 10] {
        [x.value, x.a, x.m, x.t, x.aa, x.am, x.at, x.mm, x.mt, x.tt]
    }

    #[test]
    fn unit_terms_agree_with_high_precision() {
        for &(seen, u, u_horizon, a, m, t, expected) in UNIT_TERMS {
            let found = numbers(unit_terms(&LogNormal { u_horizon }, seen, u, a, m, t));
            for (k, (found, expected)) in found.into_iter().zip(expected).enumerate() {
                // Relative to the term, or to what it is summed with: a unit's information is of order 1 to 1/s².
                let slack = 1e-9 * expected.abs() + 1e-12;
                assert!(
                    (found - expected).abs() <= slack,
                    "{seen:?} u={u} H={u_horizon} a={a} m={m} t={t}: term {k} found {found:e}, expected {expected:e}"
                );
            }
        }
    }

    #[test]
    fn unit_terms_of_other_families_agree_with_high_precision() {
        let lines = include_str!("../../tests/data/unit_terms_families.txt");
        for line in lines.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let seen = if words[1] == "Event" { Seen::Event } else { Seen::Censored };
            let numbers_: Vec<f64> = words[2..].iter().map(|x| x.parse().unwrap()).collect();
            let [u, u_horizon, a, m, t] = numbers_[..5] else { panic!("{line}") };
            let found = numbers(match words[0] {
                "Weibull" => unit_terms(&Weibull { u_horizon }, seen, u, a, m, t),
                gamma if gamma.starts_with("Gen") => {
                    let q: f64 = gamma.split(':').nth(1).expect("a shape").parse().expect("a number");
                    unit_terms(&GeneralisedGamma::new(u_horizon, q), seen, u, a, m, t)
                }
                _ => unit_terms(&LogLogistic { u_horizon }, seen, u, a, m, t),
            });
            for (k, (found, expected)) in found.into_iter().zip(&numbers_[5..]).enumerate() {
                // Far in the lower tail the terms of a generalised gamma are differences of numbers 1e5 times as large.
                let (digits, zero) = if words[0].starts_with("Gen") { (1e-8, 1e-10) } else { (1e-9, 1e-11) };
                let slack = digits * expected.abs() + zero;
                assert!((found - expected).abs() <= slack, "{line}: term {k} found {found:e}, expected {expected:e}");
            }
        }
    }

    /// Shape 1 is the Weibull distribution; shapes near zero are the log-normal one, with errors that are odd in the
    /// shape.
    #[test]
    fn special_cases_of_the_generalised_gamma() {
        for u_horizon in [1.2, f64::INFINITY] {
            for (u, a, m, t) in
                [(0.3, 0.4, 0.1, -0.2), (-2.0, -3.0, 0.5, 0.1), (1.1, 2.0, 0.3, -1.0), (1.19, -1.0, 0.4, 0.0)]
            {
                for seen in [Seen::Event, Seen::Censored] {
                    let of = |q: f64| numbers(unit_terms(&GeneralisedGamma::new(u_horizon, q), seen, u, a, m, t));
                    let weibull = numbers(unit_terms(&Weibull { u_horizon }, seen, u, a, m, t));
                    let normal = numbers(unit_terms(&LogNormal { u_horizon }, seen, u, a, m, t));
                    let (up, down) = (of(2e-3), of(-2e-3));
                    for (k, found) in of(1.0).into_iter().enumerate() {
                        assert!(
                            (found - weibull[k]).abs() <= 1e-10 * (1.0 + weibull[k].abs()),
                            "{k}: {found} {}",
                            weibull[k]
                        );
                        let between = 0.5 * (up[k] + down[k]);
                        let size = normal.iter().fold(1.0, |s: f64, x| s.max(x.abs()));
                        assert!((between - normal[k]).abs() < 2e-4 * size * size, "{k}: {between} {}", normal[k]);
                    }
                }
            }
        }
    }

    #[test]
    fn other_families_stay_finite_at_the_ends() {
        for (u_horizon, u) in [(1.2, 0.3), (1.2, -700.0), (1.2, 1.2 - 1e-12), (f64::INFINITY, 0.3)] {
            for m in [-1e4, -300.0, -20.0, 0.0, 20.0, 300.0, 1e4] {
                for t in [-6.0, -2.0, 0.0, 2.0, 6.0] {
                    let check = |what: &str, terms: UnitTerms| {
                        let found = numbers(terms);
                        let finite = found.iter().all(|x| x.is_finite());
                        assert!(finite, "{what} u={u} H={u_horizon} m={m} t={t}: {found:?}");
                    };
                    check("Weibull", unit_terms(&Weibull { u_horizon }, Seen::Censored, u, 0.5, m, t));
                    check("log-logistic", unit_terms(&LogLogistic { u_horizon }, Seen::Censored, u, 0.5, m, t));
                    check("log-logistic", unit_terms(&LogLogistic { u_horizon }, Seen::Event, u, 0.5, m, t));
                    for q in [-1.5, -0.3, 0.3, 0.8, 2.0] {
                        let latency = GeneralisedGamma::new(u_horizon, q);
                        check("generalised gamma", unit_terms(&latency, Seen::Censored, u, 0.5, m, t));
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn derivatives_of_other_families_agree_with_finite_differences(
            family in 0..3usize, q in prop_oneof![-1.5..-0.2f64, 0.2..2.0f64], event in any::<bool>(), a in -6.0..6.0f64, m in -1.0..5.0f64, t in -1.0..1.5f64,
            u_horizon in prop_oneof![Just(f64::INFINITY), 0.5..3.0f64], below in 0.05..4.0f64,
        ) {
            let seen = if event { Seen::Event } else { Seen::Censored };
            let u = if u_horizon.is_finite() { u_horizon } else { 2.0 } - below;
            let at = |x: [f64; 3]| numbers(match family {
                0 => unit_terms(&Weibull { u_horizon }, seen, u, x[0], x[1], x[2]),
                1 => unit_terms(&LogLogistic { u_horizon }, seen, u, x[0], x[1], x[2]),
                _ => unit_terms(&GeneralisedGamma::new(u_horizon, q), seen, u, x[0], x[1], x[2]),
            });
            // Where nearly no event comes before the horizon the terms of the generalised gamma cancel to eight digits,
            // too few for a difference quotient.
            prop_assume!(family < 2 || u_horizon.is_infinite() || (u_horizon - m) * (-t).exp() > -3.0);
            let here = [a, m, t];
            let terms = at(here);
            let h = 1e-5;
            // For each argument: (of which term, is which term).
            let pairs = [[(0, 1), (1, 4), (2, 5), (3, 6)], [(0, 2), (1, 5), (2, 7), (3, 8)], [(0, 3), (1, 6), (2, 8), (3, 9)]];
            for (argument, pairs) in pairs.into_iter().enumerate() {
                let (mut up, mut down) = (here, here);
                up[argument] += h;
                down[argument] -= h;
                let (up, down) = (at(up), at(down));
                for (of, is) in pairs {
                    let found = (up[of] - down[of]) / (2.0 * h);
                    // Fourth derivatives of a Weibull density grow with e^z, as the terms do.
                    let size = terms.iter().fold(1.0, |s: f64, x| s.max(x.abs()));
                    let slack = h * h * 1e3 * size * size + 1e-9 * size;
                    prop_assert!((found - terms[is]).abs() <= slack, "term {is} of {terms:?}: slope {found:e}");
                }
            }
        }

        #[test]
        fn derivatives_agree_with_finite_differences(
            kind in 0..3usize, a in -8.0..8.0f64, m in -6.0..6.0f64, t in -1.5..2.0f64,
            offset in prop_oneof![Just(0.0), -4.0..0.0f64], u_horizon in prop_oneof![Just(f64::INFINITY), 0.5..3.0f64], below in 0.01..4.0f64,
        ) {
            let seen = [Seen::Event, Seen::Censored, Seen::Horizon][kind];
            let u = if u_horizon.is_finite() { u_horizon } else { 2.0 } - below;
            let at = |a, m, t| numbers(unit_terms_of(&LogNormal { u_horizon }, seen, u, Logistic::at(a), m, t, offset));
            let terms = at(a, m, t);
            let h = 1e-5;
            let slope = |up: [f64; 10], down: [f64; 10], k: usize| (up[k] - down[k]) / (2.0 * h);
            let (da, dm, dt) = (
                (at(a + h, m, t), at(a - h, m, t)),
                (at(a, m + h, t), at(a, m - h, t)),
                (at(a, m, t + h), at(a, m, t - h)),
            );
            // (by which argument, of which term, is which term)
            for (pair, of, is) in [
                (da, 0, 1), (dm, 0, 2), (dt, 0, 3),
                (da, 1, 4), (dm, 1, 5), (dt, 1, 6), (da, 2, 5), (dm, 2, 7), (dt, 2, 8), (da, 3, 6), (dm, 3, 8), (dt, 3, 9),
            ] {
                let found = slope(pair.0, pair.1, of);
                // Truncation error h² times a third derivative, and rounding: the differenced term is good to 1e-13 of
                // itself.
                let third = terms[7].abs().max(terms[9].abs()).max(1.0) * 100.0 * (1.0 + terms[9].abs().sqrt());
                let slack = h * h * third + 1e-9 + 1e-13 * terms[of].abs() / h;
                prop_assert!((found - terms[is]).abs() <= slack, "term {is} of {terms:?}: slope {found:e}");
            }
        }

        #[test]
        fn gradient_and_hessian_of_the_sum_agree_with_finite_differences(
            n in 1..600usize, d in 1..6usize, seed in any::<u64>(), truncated in any::<bool>(),
        ) {
            // A cheap generator is enough to fill a design.
            let mut state = seed | 1;
            let mut uniform = move || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 11) as f64 / (1u64 << 53) as f64
            };
            let design: Vec<f64> = (0..n * d).map(|k| if k % d == 0 { 1.0 } else { 4.0 * uniform() - 2.0 }).collect();
            let u: Vec<f64> = (0..n).map(|_| 3.0 * uniform() - 1.5).collect();
            let seen: Vec<Seen> = (0..n)
                .map(|_| [Seen::Event, Seen::Censored, Seen::Horizon][(uniform() * if truncated { 3.0 } else { 2.0 }) as usize])
                .collect();
            let u_horizon = if truncated { 1.6 } else { f64::INFINITY };
            let likelihood = Likelihood::new(LogNormal { u_horizon }, &seen, &u, &design, d);
            let theta: Vec<f64> = (0..2 * d + 1).map(|_| uniform() - 0.5).collect();
            let at = |theta: &[f64]| {
                let mut out = Evaluation::new(2 * d + 1);
                likelihood.evaluate(theta, &mut out);
                out
            };
            let here = at(&theta);
            let h = 1e-5;
            for j in 0..=2 * d {
                let (mut up, mut down) = (theta.clone(), theta.clone());
                up[j] += h;
                down[j] -= h;
                let (up, down) = (at(&up), at(&down));
                let slack = 1e-7 * (1.0 + n as f64);
                prop_assert!(((up.value - down.value) / (2.0 * h) - here.gradient[j]).abs() < slack);
                for k in 0..=2 * d {
                    let found = (up.gradient[k] - down.gradient[k]) / (2.0 * h);
                    prop_assert!((found - here.hessian[(k, j)]).abs() < slack, "({k}, {j}) of {d}: {found} {}", here.hessian[(k, j)]);
                }
            }
        }
    }

    #[test]
    fn bits_do_not_depend_on_threads() {
        let (n, d) = (5000, 40);
        let design: Vec<f64> =
            (0..n * d).map(|k| if k % d == 0 { 1.0 } else { ((k * 7919) % 1013) as f64 / 506.0 - 1.0 }).collect();
        let u: Vec<f64> = (0..n).map(|i| ((i * 104_729) % 997) as f64 / 400.0 - 1.5).collect();
        let seen: Vec<Seen> = (0..n).map(|i| [Seen::Event, Seen::Censored, Seen::Horizon][i % 3]).collect();
        let likelihood = Likelihood::new(LogNormal { u_horizon: 1.2 }, &seen, &u, &design, d);
        let theta: Vec<f64> = (0..2 * d + 1).map(|j| (j as f64 * 0.7).sin() * 0.1).collect();
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut out = Evaluation::new(2 * d + 1);
            pool.install(|| likelihood.evaluate(&theta, &mut out));
            out
        };
        let (one, four) = (with(1), with(4));
        assert_eq!(one.value.to_bits(), four.value.to_bits());
        assert_eq!(one.gradient, four.gradient);
        assert_eq!(one.hessian, four.hessian);
    }

    // mpmath 1.3, 80 digits; the script is crates/dvim/tests/data/unit_terms.py.
    #[rustfmt::skip]
    #[allow(clippy::type_complexity)]
    const UNIT_TERMS: &[(Seen, f64, f64, f64, f64, f64, [f64; 10])] = &[
        (Seen::Event, 0.3, 1.2, 0.4, 0.1, -0.2, [-1.5679760695708924, -0.598687660112452, 0.5154039292832808, -0.7015841233638197, -0.24026074574152914, 0.0, 0.0, -1.0885562367729622, -0.37017356185639594, 0.12986597310882178]),
        (Seen::Event, -2.0, 1.2, -3.0, 0.5, 0.1, [-3.3205653998496016, -0.04742587317756678, -1.6459229619048903, 4.397699951290432, -0.04517665973091213, 0.0, 0.0, -0.42824414108688036, 3.966090472993616, -10.323428718152178]),
        (Seen::Event, 1.1, 1.2, 2.0, -2.0, -1.0, [-37.55028109960942, -0.8807970779778824, 22.906073906685016, 70.00882911072355, -0.10499358540350652, 0.0, 0.0, -7.3890560989306495, -45.81214781337003, -142.0176582214471]),
        (Seen::Event, 0.9, 1.2, -5.0, -8.0, 0.0, [-40.530653881693794, -0.0066928509242848554, 8.9, 78.21, -0.006648056670790155, 0.0, 0.0, -1.0, -17.8, -158.42]),
        (Seen::Event, 1.0, 1.2, -30.0, -8.0, -1.0, [-299.1757105398961, -9.357622968839299e-14, 66.50150489037586, 597.5135440133827, -9.357622968838423e-14, 0.0, 0.0, -7.38905609893065, -133.0030097807517, -1197.0270880267653]),
        (Seen::Event, 0.5, 1.2, 0.3, 30.0, 1.0, [-2.246778021505305, -0.574442516811659, -0.060605241458054834, 3.5401045528280313, -0.24445831169074586, 0.0, 0.0, -0.001145575946207175, 0.18833252697445035, -11.013323974536274]),
        (Seen::Event, 0.5, 1.2, -2.0, 400.0, 3.0, [-0.828522986443102, -0.11920292202211756, 0.0007598331342097884, -0.6098384077181165, -0.10499358540350652, 0.0, 0.0, -6.19394392892283e-06, 0.003445438228311087, -2.7604068578599557]),
        (Seen::Event, 1.1999, 1.2, -1.0, 0.5, 0.0, [-1.2001062834457643, -0.2689414213699951, 1.1118247504192906, -0.22179266470649658, -0.19661193324148185, 0.0, 0.0, -0.5419706746985017, -1.4911042227082418, -1.0436329758957692]),
        (Seen::Event, 0.2, 1.2, 1.0, 0.20001, -4.0, [1.7677996302292052, -0.7310585786300049, -0.029809579870364356, -0.9999997019042013, -0.19661193324148185, 0.0, 0.0, -2980.9579870417283, 0.05961915974072871, -5.961915974062287e-07]),
        (Seen::Event, 0.2, f64::INFINITY, 0.5, 0.0, 0.3, [-2.20399175010666, -0.6224593312018546, 0.1097623272188053, -0.9780475345562389, -0.2350037122015945, 0.0, 0.0, -0.5488116360940264, -0.2195246544376106, -0.04390493088752212]),
        (Seen::Event, 6.0, f64::INFINITY, -1.0, 0.0, -1.0, [-133.2352100014746, -0.2689414213699951, 44.3343365935839, 265.0060195615034, -0.19661193324148185, 0.0, 0.0, -7.38905609893065, -88.6686731871678, -532.0120391230068]),
        (Seen::Event, -9.0, f64::INFINITY, -1.0, 1.0, 0.0, [-51.232200220722895, -0.2689414213699951, -10.0, 99.0, -0.19661193324148185, 0.0, 0.0, -1.0, 20.0, -200.0]),
        (Seen::Event, 0.2, 45.0, 0.5, 0.0, 0.0, [-1.9130155173847794, -0.6224593312018546, 0.2, -0.96, -0.2350037122015945, 0.0, 0.0, -1.0, -0.4, -0.08000000000000002]),
        (Seen::Censored, 0.3, 1.2, 0.4, 0.1, -0.2, [-0.3050649235737195, 0.21355972087830774, 0.2054088218766751, -0.028596818037368417, -0.08775917267711783, -0.16684277760172683, 0.023227690555521815, 0.004309222846904412, -0.2795768532039781, -0.13622796053492542]),
        (Seen::Censored, -2.0, 1.2, -3.0, 0.5, 0.1, [-0.015434238670879787, 0.0007376602142360523, 0.030458754417212672, -0.09610094755647293, 0.0006671477121073941, -0.0014670012354461447, 0.004628561196620077, -0.055186468748582296, 0.12775493816855252, -0.4382429723758097]),
        (Seen::Censored, 1.1, 1.2, 2.0, -2.0, -1.0, [-0.1269280110429725, 0.11920292202211756, 5.0428382063019514e-17, 1.5578297877884058e-16, -0.10499358540350652, -5.0428382063019514e-17, -1.5578297877884058e-16, 1.151089169455376e-15, 3.5050613966096123e-15, 1.082499806586141e-14]),
        (Seen::Censored, 0.9, 1.2, -5.0, -8.0, 0.0, [-5.006715348489118, 0.9933071490757152, 3.486591648809767e-16, 3.095650711991224e-15, -0.0066480566707901164, -3.486591648809767e-16, -3.095650711991224e-15, 3.095650711991224e-15, 2.713440630170581e-14, 2.4087595393538817e-13]),
        (Seen::Censored, 1.0, 1.2, -30.0, -8.0, -1.0, [-30.000000000000092, 0.9999999999999064, 0.0, 0.0, -9.357622968838423e-14, 0.0, 0.0, 0.0, 0.0, 0.0]),
        (Seen::Censored, 0.5, 1.2, 0.3, 30.0, 1.0, [-0.026616952658336142, 0.015495212135331927, 0.0025342647756824883, -0.14900095722250592, -0.0025471067788882763, -0.0014950584063164825, 0.08790128631477288, -0.00024313767188521905, 0.009267594915853274, -0.5473308856094843]),
        (Seen::Censored, 0.5, 1.2, -2.0, 400.0, 3.0, [-0.5796078431375341, 0.09361460354755925, 0.001359261912594355, -1.0878259408824067, 0.06253264097657026, -0.00028927475683943694, 0.23150842498909932, -4.1834210870625335e-06, 0.0006362260455052501, -0.5145897378301681]),
        (Seen::Censored, 1.1999, 1.2, -1.0, 0.5, 0.0, [-1.3131497171118158, 0.7309466144920498, 0.00012449009787940813, -2.482498785681809e-05, -0.19649998163949495, -0.0001244761594529151, 2.4822208348452955e-05, 7.77206193560084e-05, -0.00019456058174708598, -0.0001113614932437573]),
        (Seen::Censored, 0.2, 1.2, 1.0, 0.20001, -4.0, [-0.14434638575710593, 0.11352185620211833, 6.767596596465227, -6.767596596453211e-05, -0.06534760931057695, -5.715779676210998, 5.71577967620085e-05, -46.00210290376046, -6.76713657543619, 6.767136575424175e-05]),
        (Seen::Censored, 0.2, f64::INFINITY, 0.5, 0.0, 0.3, [-0.23699517893883695, 0.16646741583301047, 0.1398763345792304, 0.02797526691584608, -0.06848237735374338, -0.11035218162675266, -0.02207043632535053, -0.0042122369690682305, -0.14071878197304405, -0.028143756394608813]),
        (Seen::Censored, 6.0, f64::INFINITY, -1.0, 0.0, -1.0, [-1.3132616875182228, 0.7310585786300049, 0.0, 0.0, -0.19661193324148185, 0.0, 0.0, 0.0, 0.0, 0.0]),
        (Seen::Censored, -9.0, f64::INFINITY, -1.0, 1.0, 0.0, [-5.570558921212338e-24, 1.4981540340961529e-24, 5.625202335168382e-23, -5.625202335168382e-22, 6.923226833741299e-25, -1.5128499115140005e-23, 1.5128499115140005e-22, -5.625202335168382e-22, 5.568950311816699e-21, -5.568950311816699e-20]),
        (Seen::Censored, 0.2, 45.0, 0.5, 0.0, 0.0, [-0.24678852607152788, 0.17423160597867507, 0.1889586650438553, 0.03779173300877106, -0.07302922440665548, -0.15054165594217087, -0.030108331188434173, 0.0020863559136151595, -0.18854139386113228, -0.037708278772226454]),
        (Seen::Horizon, 0.0, 1.2, -40.0, 0.0, 0.0, [-40.0, 1.0, 0.0, 0.0, -4.248354255291589e-18, 0.0, 0.0, 0.0, 0.0, 0.0]),
        (Seen::Horizon, 0.0, 1.2, 0.7, 0.0, 0.0, [-0.4031860488854579, 0.3318122278318339, 0.0, 0.0, -0.22171287329310904, 0.0, 0.0, 0.0, 0.0, 0.0]),
        (Seen::Horizon, 0.0, 1.2, 40.0, 0.0, 0.0, [-4.248354255291589e-18, 4.248354255291589e-18, 0.0, 0.0, -4.248354255291589e-18, 0.0, 0.0, 0.0, 0.0, 0.0]),
    ];
}
