//! Sums that do not depend on the order of their terms.
//!
//! Floating-point sums change their last bits with the order of their terms. Where terms come from machines that
//! nobody keeps in order, each term is rounded to a whole number of [`QUANTUM`]s, and whole numbers are added: any
//! order, and any division into parts, gives the same sum. What is summed here is of the order of one, so that a term
//! is off by half of 2⁻⁴⁰ at most, and a mean by far less than that.

/// What terms are rounded to: 2⁻⁴⁰.
const QUANTUM: f64 = 1.0 / (1u64 << 40) as f64;

/// A sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exact(i128);

impl Exact {
    /// Adds a term, which is finite and below 2⁸⁰.
    #[inline(always)]
    pub(crate) fn add(&mut self, term: f64) {
        let scaled = term * (1.0 / QUANTUM);
        // Most terms fit 64 bits, to which a processor converts in one step.
        self.0 += if scaled.abs() < 9e18 { i128::from(whole(scaled)) } else { scaled as i128 };
    }

    /// Adds another sum.
    pub(crate) fn merge(&mut self, other: &Exact) {
        self.0 += other.0;
    }

    /// The sum, rounded once.
    pub(crate) fn value(&self) -> f64 {
        self.0 as f64 * QUANTUM
    }

    /// For a file.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// From a file.
    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Exact {
        Exact(i128::from_le_bytes(bytes))
    }
}

/// The nearest whole number; of two that are as near, the one farther from zero.
#[inline(always)]
fn whole(x: f64) -> i64 {
    (x + f64::copysign(0.5, x)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_order_changes_a_bit() {
        let terms: Vec<f64> =
            (0..4_000).map(|i| libm::sin(f64::from(i) * 1.7) * libm::exp(f64::from(i % 37))).collect();
        let sum = |order: &dyn Fn(usize) -> usize| {
            let mut sum = Exact::default();
            (0..terms.len()).for_each(|i| sum.add(terms[order(i)]));
            sum
        };
        let forward = sum(&|i| i);
        assert_eq!(forward, sum(&|i| terms.len() - 1 - i));
        let (mut parts, mut odd) = (Exact::default(), Exact::default());
        terms.iter().enumerate().for_each(|(i, t)| if i % 3 == 1 { odd.add(*t) } else { parts.add(*t) });
        parts.merge(&odd);
        assert_eq!(parts, forward);
        let plain: f64 = terms.iter().sum();
        assert!((forward.value() - plain).abs() < 1e-9 * terms.iter().map(|t| t.abs()).sum::<f64>());
        assert_eq!(Exact::from_bytes(forward.to_bytes()), forward);
    }

    #[test]
    fn halves_and_large_terms_by_hand() {
        let mut sum = Exact::default();
        [0.5, -0.25, 3e9, -3e9, 1e12, 2f64.powi(-41)].iter().for_each(|t| sum.add(*t));
        assert_eq!(sum.value(), 1e12 + 0.25);
        let mut small = Exact::default();
        [0.75, 2f64.powi(-41), -2f64.powi(-42)].iter().for_each(|t| small.add(*t));
        assert_eq!(small.value(), 0.75 + QUANTUM);
    }
}
