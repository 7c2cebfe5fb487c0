//! Distributions of test statistics: Fisher's F, χ² and Student's t. Private.

use crate::numeric::{exp, log1p, normal_quantile};

/// P(F > x) for Fisher's F with a and b degrees of freedom, to 1e-7: the regularised incomplete beta function of `b/(b
/// + a x)` at (b/2, a/2).
pub(crate) fn f_upper_tail(x: f64, a: usize, b: usize) -> f64 {
    let (a, b) = (a as f64, b as f64);
    if x.is_nan() {
        return 1.0;
    }
    puruspe::betai(0.5 * b, 0.5 * a, b / (b + a * x.max(0.0))).clamp(0.0, 1.0)
}

/// P(χ² > x) with so many degrees of freedom.
pub(crate) fn chi_squared_upper_tail(x: f64, df: usize) -> f64 {
    if x.is_nan() {
        return 1.0;
    }
    puruspe::gammq(0.5 * df as f64, 0.5 * x.max(0.0)).clamp(0.0, 1.0)
}

/// Degrees of freedom from which Student's quantile is taken from the normal one by its expansion, whose next term is
/// of the order of `df⁻³`. Below, the incomplete beta function keeps its digits.
const MANY_DEGREES: f64 = 1e4;

/// The p-quantile of Student's distribution with `df` degrees of freedom, `p ≥ 1/2`: `P(|t| < x) = I_v(1/2, df/2)`,
/// `v = x²/(df + x²)`, I being the regularised incomplete beta function; solved by bisection in v.
pub(crate) fn student_quantile(p: f64, df: f64) -> f64 {
    if df > MANY_DEGREES {
        let z = normal_quantile(p);
        let (z3, z5) = (z * z * z, z * z * z * z * z);
        return z + (z3 + z) / (4.0 * df) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * df * df);
    }
    let inside = 2.0 * p - 1.0;
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..90 {
        let v = 0.5 * (low + high);
        if incomplete_beta(0.5, 0.5 * df, v) < inside { low = v } else { high = v }
    }
    let v = 0.5 * (low + high);
    (df * v / (1.0 - v)).sqrt()
}

/// `I_x(a, b)` by its continued fraction (modified Lentz), on the side where it converges fast.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let log_front = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * log1p(-x);
    let tiny = 1e-300;
    let guard = |v: f64| if v.abs() < tiny { tiny } else { v };
    let (mut c, mut d) = (1.0, 1.0 / guard(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for k in 1..500 {
        let m = f64::from(k);
        for term in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / guard(1.0 + term * d);
            c = guard(1.0 + term / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-16 {
            break;
        }
    }
    exp(log_front) * fraction / a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_quantiles_are_those_of_scipy() {
        // scipy 1.17: scipy.stats.t.ppf(p, df)
        for (p, df, expected) in [
            (0.9, 1.0, 3.0776835371752544),
            (0.9, 3.4, 1.587087905345012),
            (0.95, 1.7, 3.3036151432379284),
            (0.975, 1.0, 12.706204736174694),
            (0.975, 1.7, 5.1188389882530565),
            (0.975, 3.4, 2.9807735025586206),
            (0.975, 10.0, 2.228138851986274),
            (0.975, 98.0, 1.9844674545084815),
            (0.975, 4321.5, 1.960513081959134),
            (0.995, 1.7, 13.453612659922465),
            (0.995, 98.0, 2.6269310957563734),
            (0.975, 2e4, 1.9600826051581348),
            (0.995, 3e6, 2.5758309423990817),
        ] {
            let found = student_quantile(p, df);
            assert!((found / expected - 1.0).abs() < 1e-9, "{p} {df}: {found} {expected}");
        }
        assert!((student_quantile(0.975, 1e15) / 1.959963984540054 - 1.0).abs() < 1e-13);
    }

    /// Tables: the 95 % point of F(3, 10) is 3.7083; F(1, 1) is a squared Cauchy; F(2, b) has a closed form.
    #[test]
    fn tail_of_f() {
        assert!((f_upper_tail(3.708_264_8, 3, 10) - 0.05).abs() < 1e-7);
        // P(|t₁| > 1) = ½.
        assert!((f_upper_tail(1.0, 1, 1) - 0.5).abs() < 1e-7);
        // F(2, b): (1 + 2x/b)^(−b/2).
        assert!((f_upper_tail(2.5, 2, 40) - (1.0 + 5.0 / 40.0_f64).powi(-20)).abs() < 1e-7);
        assert_eq!((f_upper_tail(0.0, 4, 9), f_upper_tail(f64::NAN, 4, 9)), (1.0, 1.0));
    }
}
