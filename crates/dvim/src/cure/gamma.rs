//! The generalised gamma distribution of the uncured's event time, truncated at the horizon.
//!
//! `ln T = m + s ε` with `ε = ln(G/a)/Q`, `G` a gamma variable of shape `a = 1/Q²` (Prentice 1974; the parameters are
//! those of R's flexsurv and Python's lifelines). `Q = 1` is the Weibull, `Q = s` the gamma distribution, `Q → 0` the
//! log-normal, `Q = −1` the inverse Weibull. With `x = a e^{Qz}`, P and its complement the regularised incomplete gamma
//! functions:
//!
//! - `ln f(z) = ln|Q| + a ln a − ln Γ(a) + a (Qz − e^{Qz})`, `ρ = (ln f)' = (1 − e^{Qz})/Q`, `ρ' = −e^{Qz}`;
//! - `F(z) = P(a, x)` for Q > 0, `1 − P(a, x)` for Q < 0.

use super::likelihood::{Latency, LatencyTerms, LogScale, gap, location_scale};
use crate::numeric::log1mexp;

/// Positive nodes and weights of the eight-point Gauss–Legendre rule on [-1, 1] (Abramowitz and Stegun, table 25.4).
#[rustfmt::skip]
pub(crate) const GAUSS_8: [(f64, f64); 4] = [
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
    (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
];

/// Largest argument of `exp` that leaves room for squares.
const LARGEST_EXPONENT: f64 = 300.0;

/// Logarithms beyond this have lost the digits that a ratio needs.
const LARGEST_LOGARITHM: f64 = 1e8;

/// Logarithm of a ratio that is nothing beside one, nor are its derivatives.
const NOTHING: f64 = 60.0;
/// The smallest `a + s/Q` of which the closed form of a mean is taken: near zero its parts grow beyond each other.
const SMALLEST_MOMENT: f64 = 0.05;
/// Logarithm of a tail so far out that the closed form loses digits.
const FARTHEST_TAIL: f64 = 1e3;
/// Panels of the quadrature of a mean, at most: a few hundred do, unless all events are at the horizon to the last
/// digit.
const MOST_PANELS: usize = 2_000;

/// A generalised gamma time with shape Q, which is neither zero nor so near to it that a log-normal would do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GeneralisedGamma {
    u_horizon: f64,
    q: f64,
    a: f64,
    log_a: f64,
    /// `ln Γ(a)`.
    log_gamma: f64,
}

impl GeneralisedGamma {
    pub(crate) fn new(u_horizon: f64, q: f64) -> GeneralisedGamma {
        let a = 1.0 / (q * q);
        GeneralisedGamma { u_horizon, q, a, log_a: libm::log(a), log_gamma: libm::lgamma(a) }
    }

    /// `ln f(z)`, `ρ(z)` and `ρ'(z)`.
    fn density(&self, z: f64) -> [f64; 3] {
        let x = (self.q * z).min(LARGEST_EXPONENT);
        let e = libm::exp(x);
        let constant = libm::log(self.q.abs()) + self.a * self.log_a - self.log_gamma;
        [constant + self.a * (self.q * z - e), -libm::expm1(x) / self.q, -e]
    }

    /// `ln F(z)` and `ln {1 − F(z)}`.
    pub(crate) fn log_tails(&self, z: f64) -> [f64; 2] {
        let [lower, upper] = log_incomplete_gamma(self.a, self.log_a + self.q * z, self.log_gamma);
        if self.q > 0.0 { [lower, upper] } else { [upper, lower] }
    }

    /// `ln F(h)` with its derivatives: `r = f/F`, `(ln F)' = r`, `(ln F)'' = r (ρ − r)`. In the lower tail of a
    /// negative shape r and ρ are nearly the same: there `r = |Q| (x + 1 − a + k)` and `r − ρ = |Q| (1 + k)`, k the
    /// tail of the continued fraction.
    fn log_cdf(&self, h: f64, s: f64) -> LatencyTerms {
        let [value, _] = self.log_tails(h);
        let x = libm::exp((self.log_a + self.q * h).min(LARGEST_EXPONENT));
        if self.q < 0.0 && x >= self.a + 1.0 && x < LARGEST_LOGARITHM {
            let k = fraction_tail(self.a, x);
            let r = -self.q * (x + 1.0 - self.a + k);
            return location_scale(value, r, r * self.q * (1.0 + k), h, s);
        }
        let [log_f, rho, _] = self.density(h);
        let r = libm::exp(log_f - value);
        if r == 0.0 || !r.is_finite() || value.abs() > LARGEST_LOGARITHM {
            return LatencyTerms { value, ..LatencyTerms::default() };
        }
        location_scale(value, r, r * (rho - r), h, s)
    }

    /// `ln {F(h) − F(q)}`, `None` where F(q) is nothing beside F(h). A narrow gap is integrated, a wide one is the
    /// difference of the smaller tails: neither cancels.
    fn log_gap(&self, q: f64, h: f64) -> Option<f64> {
        let [_, at_q, _] = self.density(q);
        let [_, at_h, _] = self.density(h);
        let width = h - q;
        if width * at_q.abs().max(at_h.abs()).max(1.0) < 1.0 {
            let middle = 0.5 * (q + h);
            let [center, ..] = self.density(middle);
            let at = |z: f64| libm::exp(self.density(z)[0] - center);
            let pair = |&(node, weight): &(f64, f64)| {
                let shift = 0.5 * width * node;
                weight * (at(middle - shift) + at(middle + shift))
            };
            return Some(center + libm::log(0.5 * width * GAUSS_8.iter().map(pair).sum::<f64>()));
        }
        let ([lower_q, upper_q], [lower_h, upper_h]) = (self.log_tails(q), self.log_tails(h));
        if lower_h - lower_q > NOTHING {
            None
        } else if lower_q < -std::f64::consts::LN_2 {
            Some(lower_h + log1mexp((lower_h - lower_q).max(f64::MIN_POSITIVE)))
        } else {
            Some(upper_q + log1mexp((upper_q - upper_h).max(f64::MIN_POSITIVE)))
        }
    }

    /// `E[T | T < H] = e^m a^{−s/Q} Γ(b) P(b, x)/(Γ(a) F(h))` with `b = a + s/Q`, for Q < 0 with the complement of P.
    /// Where b is not positive, and the moment without horizon does not exist, or where the logarithms have lost
    /// digits, by panels.
    pub(crate) fn mean(&self, m: f64, s: f64) -> f64 {
        let h = (self.u_horizon - m) / s;
        let b = self.a + s / self.q;
        let of_tails = |inside: f64, log_cdf: f64, log_gamma: f64| {
            libm::exp(m - s / self.q * self.log_a + log_gamma - self.log_gamma + inside - log_cdf)
        };
        if h == f64::INFINITY {
            return if b <= 0.0 { f64::INFINITY } else { of_tails(0.0, 0.0, libm::lgamma(b)) };
        }
        if b < SMALLEST_MOMENT {
            return self.mean_by_panels(h, s);
        }
        let [log_cdf, _] = self.log_tails(h);
        if self.q < 0.0 && log_cdf < -FARTHEST_TAIL {
            return self.mean_by_panels(h, s);
        }
        let log_gamma = libm::lgamma(b);
        let [lower, upper] = log_incomplete_gamma(b, self.log_a + self.q * h, log_gamma);
        of_tails(if self.q > 0.0 { lower } else { upper }, log_cdf, log_gamma)
    }

    /// The same as `H ∫₀^∞ e^{−sw} f(h − w) dw / ∫₀^∞ f(h − w) dw` by Gauss–Legendre panels.
    fn mean_by_panels(&self, h: f64, s: f64) -> f64 {
        // From the horizon down: panels until what is left is below rounding, relative to the largest density there is.
        let [largest, ..] = self.density(h.min(0.0));
        let (mut inside, mut weighted, mut from) = (0.0, 0.0, 0.0);
        for _ in 0..MOST_PANELS {
            let [_, rho, curve] = self.density(h - from);
            let width = (0.5 / (rho.abs() + s).max(curve.abs().sqrt()).max(0.25)).min(2.0);
            let mut panel = 0.0;
            for (node, weight) in GAUSS_8.into_iter().flat_map(|(node, weight)| [(node, weight), (-node, weight)]) {
                let w = from + 0.5 * width * (1.0 + node);
                let mass = width * weight * libm::exp(self.density(h - w)[0] - largest);
                panel += mass;
                weighted += mass * libm::exp(-s * w);
            }
            inside += panel;
            from += width;
            // The density rises to its mode, at zero, before it falls.
            if panel <= 1e-17 * inside && h - from < 0.0 {
                break;
            }
        }
        libm::exp(self.u_horizon) * weighted / inside
    }
}

impl Latency for GeneralisedGamma {
    fn log_density(&self, u: f64, m: f64, scale: LogScale) -> LatencyTerms {
        let (t, s) = scale.both();
        let z = (u - m) / s;
        let [value, rho, curve] = self.density(z);
        let mut density = location_scale(value - t, rho, curve, z, s);
        density.t -= 1.0;
        if self.u_horizon == f64::INFINITY {
            return density;
        }
        density.minus(self.log_cdf((self.u_horizon - m) / s, s))
    }

    /// `ln K`, `K = {F(h) − F(q)}/F(h)`; without horizon `ln S`, with `λ = f/S`: `(ln S)' = −λ`, `(ln S)'' = −λ (ρ +
    /// λ)`.
    fn log_survival(&self, u: f64, m: f64, scale: LogScale) -> LatencyTerms {
        if u == f64::NEG_INFINITY {
            return LatencyTerms::default();
        }
        let (_, s) = scale.both();
        let q = (u - m) / s;
        let [log_f, rho, _] = self.density(q);
        if self.u_horizon == f64::INFINITY {
            let [_, value] = self.log_tails(q);
            let hazard = libm::exp(log_f - value);
            return location_scale(value, -hazard, -hazard * (rho + hazard), q, s);
        }
        let h = (self.u_horizon - m) / s;
        // Nothing below q: the share is one, and stays so.
        let Some(value) = self.log_gap(q, h) else { return LatencyTerms::default() };
        let [log_f_h, rho_h, _] = self.density(h);
        let (a, b) = (libm::exp(log_f - value), libm::exp(log_f_h - value));
        let terms = gap(value, [a, b], [a * rho, b * rho_h], [q, h], s).minus(self.log_cdf(h, s));
        let LatencyTerms { m, t, mm, mt, tt, .. } = terms;
        let in_range = value.abs() < LARGEST_LOGARITHM && log_f.abs() < LARGEST_LOGARITHM;
        if in_range && [terms.value, m, t, mm, mt, tt].iter().all(|x| x.is_finite()) {
            return terms;
        }
        // A tail of a double exponential: there the share is one (far below) or nothing (far above), and flat.
        let value = if q < 0.0 { 0.0 } else { -LARGEST_LOGARITHM };
        LatencyTerms { value, ..LatencyTerms::default() }
    }
}

/// `ln P(a, x)` and `ln {1 − P(a, x)}`, given `ln x` and `ln Γ(a)`: the series `x^a e^{−x}/Γ(a+1) Σ x^k/((a+1)…(a+k))`
/// below `a + 1`, Lentz's continued fraction of the complement above.
fn log_incomplete_gamma(a: f64, log_x: f64, log_gamma: f64) -> [f64; 2] {
    let x = libm::exp(log_x.min(LARGEST_EXPONENT));
    let front = a * log_x - x - log_gamma;
    if x < a + 1.0 {
        let (mut term, mut sum, mut k) = (1.0 / a, 1.0 / a, a);
        while term > 1e-17 * sum {
            k += 1.0;
            term *= x / k;
            sum += term;
        }
        let lower = (front + libm::log(sum)).min(-f64::MIN_POSITIVE);
        return [lower, log1mexp(-lower)];
    }
    let fraction = 1.0 / (x + 1.0 - a + fraction_tail(a, x));
    let upper = (front + libm::log(fraction)).min(-f64::MIN_POSITIVE);
    [log1mexp(-upper), upper]
}

/// k of `Γ(a, x) = x^a e^{−x}/(x + 1 − a + k)`, the continued fraction `k = −1(1−a)/(x + 3 − a −) 2(2−a)/(x + 5 − a −)
/// …` by Lentz's method.
fn fraction_tail(a: f64, x: f64) -> f64 {
    let tiny = 1e-300;
    let guard = |v: f64| if v.abs() < tiny { tiny } else { v };
    let mut b = x + 3.0 - a;
    let mut d = 1.0 / guard(b);
    let mut c = 1.0 / tiny;
    let mut k = -(1.0 - a) * d;
    for n in 2..1000 {
        let n = f64::from(n);
        let an = -n * (n - a);
        b += 2.0;
        d = 1.0 / guard(an * d + b);
        c = guard(b + an / c);
        k *= d * c;
        if (d * c - 1.0).abs() < 1e-16 {
            break;
        }
    }
    k
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERENCE: &str = include_str!("../../tests/data/generalised_gamma.txt");

    fn numbers(line: &str) -> Vec<f64> {
        line.split(' ').map(|x| x.parse().expect("a number")).collect()
    }

    /// Densities and tails are SciPy's.
    #[test]
    fn densities_and_tails_are_those_of_scipy() {
        for line in REFERENCE.lines().skip_while(|l| !l.is_empty()).skip(1) {
            let [mu, sigma, q, time, log_density, cdf, sf] = numbers(line)[..] else { panic!("{line}") };
            let gamma = GeneralisedGamma::new(f64::INFINITY, q);
            let u = time.ln();
            // The density of the time, not of its logarithm.
            let found = gamma.log_density(u, mu, sigma.ln().into()).value - u;
            assert!((found - log_density).abs() < 1e-10 * log_density.abs().max(1.0), "{line}: {found}");
            let [lower, upper] = gamma.log_tails((u - mu) / sigma).map(f64::exp);
            assert!((lower - cdf).abs() <= 1e-10 * cdf && (upper - sf).abs() <= 1e-9 * sf, "{line}: {lower} {upper}");
        }
    }

    /// For negative shapes the mean is a quadrature where the moment does not exist without horizon; elsewhere that is
    /// the closed form too.
    #[test]
    fn means_of_negative_shapes_are_those_of_the_closed_form() {
        let u_horizon = 800f64.ln();
        for q in [-1.5, -0.7, -0.25] {
            for s in [0.1, 0.3, 0.58] {
                for m in [2.0, 4.5, 6.0, 6.7, 7.5] {
                    let gamma = GeneralisedGamma::new(u_horizon, q);
                    let (found, expected) = (gamma.mean(m, s), gamma.mean_by_panels((u_horizon - m) / s, s));
                    assert!((found - expected).abs() < 1e-9 * expected, "{q} {s} {m}: {found} {expected}");
                }
            }
        }
    }

    /// At lifelines' optimum the log-likelihood is lifelines', and it is an optimum: nothing is gained by moving any
    /// parameter.
    #[test]
    fn the_optimum_of_lifelines_is_one_here() {
        let mut lines = REFERENCE.lines().take_while(|l| !l.is_empty());
        let mut samples = 0;
        while let (Some(fit), Some(times)) = (lines.next(), lines.next()) {
            let [_, mu, log_sigma, q, expected] = numbers(fit)[..] else { panic!("{fit}") };
            let times = numbers(times);
            let at = |m: f64, t: f64, q: f64| {
                let gamma = GeneralisedGamma::new(f64::INFINITY, q);
                times.iter().map(|y| gamma.log_density(y.ln(), m, t.into()).value - y.ln()).sum::<f64>()
            };
            let best = at(mu, log_sigma, q);
            assert!((best - expected).abs() < 1e-6, "{best} {expected}");
            for (m, t, s) in [(1e-2, 0.0, 0.0), (0.0, 1e-2, 0.0), (0.0, 0.0, 2e-2)] {
                for sign in [-1.0, 1.0] {
                    assert!(at(mu + sign * m, log_sigma + sign * t, q + sign * s) < best);
                }
            }
            samples += 1;
        }
        assert_eq!(samples, 3);
    }
}
