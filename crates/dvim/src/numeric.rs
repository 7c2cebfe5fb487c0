//! Stable numerical kernels. Private; knows no statistics.

/// `1 / (1 + exp(-x))`, without overflow for any finite `x`.
pub(crate) fn expit(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + libm::exp(-x))
    } else {
        let e = libm::exp(x);
        e / (1.0 + e)
    }
}
