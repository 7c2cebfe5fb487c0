//! Dense symmetric matrices, row-major, in blocks of matrix products. Knows no statistics.
//!
//! One thread, fixed blocks: the bits depend on nothing but the numbers.

use crate::product::{Sign, View, add_product};

/// Rows of a block: its triangle stays in the first-level cache, and products do most of the work from 100 rows on.
const BLOCK: usize = 32;

/// `C += factor · A B` for views with row and column strides; the factor is 1 or -1.
#[allow(clippy::too_many_arguments, reason = "three views of a product")]
pub(super) fn product(
    (rows, inner, columns): (usize, usize, usize),
    factor: f64,
    a: &[f64],
    a_strides: (usize, usize),
    b: &[f64],
    b_strides: (usize, usize),
    c: &mut [f64],
    c_stride: usize,
) {
    debug_assert!(factor == 1.0 || factor == -1.0, "the sums of other factors would be rounded twice");
    let sign = if factor < 0.0 { Sign::Minus } else { Sign::Plus };
    let view = |data, (row, column)| View { data, row, column };
    add_product([rows, inner, columns], sign, view(a, a_strides), view(b, b_strides), c, c_stride);
}

/// Cholesky factor `L` of a symmetric matrix, `A = L L'`; row-major, zero above the diagonal.
#[derive(Clone, Debug)]
pub(super) struct Cholesky {
    n: usize,
    l: Vec<f64>,
}

impl Cholesky {
    /// Of a row-major `n × n` matrix, of which the lower triangle is read. `None` where it is not positive definite or
    /// not finite.
    pub(super) fn new(mut a: Vec<f64>, n: usize) -> Option<Cholesky> {
        let mut panel = Vec::new();
        for k in (0..n).step_by(BLOCK) {
            let end = (k + BLOCK).min(n);
            // The diagonal block and the panel below it, row by row.
            for i in k..n {
                for j in k..end.min(i + 1) {
                    let (head, tail) = a.split_at_mut(i * n);
                    let row = &mut tail[..n];
                    if i == j {
                        let square = row[i] - squares(&row[k..j]);
                        if !(square > 0.0 && square.is_finite()) {
                            return None;
                        }
                        row[i] = libm::sqrt(square);
                    } else {
                        let other = &head[j * n..(j + 1) * n];
                        row[j] = (row[j] - dot(&row[k..j], &other[k..j])) / other[j];
                    }
                }
            }
            // Trailing blocks on and below the diagonal: A₂₂ -= L₂₁ L₂₁'.
            let width = end - k;
            panel.clear();
            (end..n).for_each(|i| panel.extend_from_slice(&a[i * n + k..i * n + end]));
            for from in (end..n).step_by(BLOCK) {
                let to = (from + BLOCK).min(n);
                let left = &panel[(from - end) * width..];
                product(
                    (n - from, width, to - from),
                    -1.0,
                    left,
                    (width, 1),
                    left,
                    (1, width),
                    &mut a[from * n + from..],
                    n,
                );
            }
        }
        for i in 0..n {
            a[i * n + i + 1..(i + 1) * n].fill(0.0);
        }
        Some(Cholesky { n, l: a })
    }

    /// `A⁻¹ b`.
    pub(super) fn solve(&self, b: &[f64]) -> Vec<f64> {
        let n = self.n;
        let mut x = b.to_vec();
        for i in 0..n {
            x[i] = (x[i] - dot(&self.l[i * n..i * n + i], &x[..i])) / self.l[i * n + i];
        }
        for i in (0..n).rev() {
            x[i] /= self.l[i * n + i];
            let (head, tail) = x.split_at_mut(i);
            head.iter_mut().zip(&self.l[i * n..i * n + i]).for_each(|(x, l)| *x -= tail[0] * l);
        }
        x
    }

    /// `L⁻¹`, lower triangular.
    fn inverse_factor(&self) -> Vec<f64> {
        let n = self.n;
        let mut x = vec![0.0; n * n];
        for k in (0..n).step_by(BLOCK) {
            let end = (k + BLOCK).min(n);
            // Rows k..end of X: L_kk⁻¹ (I - L_k,<k X_<k), by one product and a small triangle.
            let (done, rest) = x.split_at_mut(k * n);
            product((end - k, k, k), -1.0, &self.l[k * n..], (n, 1), done, (n, 1), rest, n);
            for i in k..end {
                let (head, tail) = rest.split_at_mut((i - k) * n);
                let row = &mut tail[..=i];
                row[i] = 1.0;
                for j in k..i {
                    let w = self.l[i * n + j];
                    row.iter_mut().zip(&head[(j - k) * n..(j - k) * n + j + 1]).for_each(|(x, y)| *x -= w * y);
                }
                let inverse = 1.0 / self.l[i * n + i];
                row.iter_mut().for_each(|x| *x *= inverse);
            }
        }
        x
    }

    /// Diagonal of `A⁻¹`: sums of squares of the columns of `L⁻¹`.
    pub(super) fn inverse_diagonal(&self) -> Vec<f64> {
        let x = self.inverse_factor();
        let mut sums = vec![0.0; self.n];
        for (i, row) in x.chunks_exact(self.n.max(1)).enumerate() {
            sums.iter_mut().zip(&row[..=i]).for_each(|(sum, x)| *sum += x * x);
        }
        sums
    }

    /// `A⁻¹ = L⁻ᵀ L⁻¹`, row-major.
    pub(super) fn inverse(&self) -> Vec<f64> {
        let n = self.n;
        let x = self.inverse_factor();
        let mut out = vec![0.0; n * n];
        product((n, n, n), 1.0, &x, (1, n), &x, (n, 1), &mut out, n);
        out
    }
}

/// `x'y`, four partial sums in a fixed order, which vector registers can hold.
pub(super) fn dot(x: &[f64], y: &[f64]) -> f64 {
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

fn squares(x: &[f64]) -> f64 {
    dot(x, x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(n: usize) -> Vec<f64> {
        let x = |i: usize, j: usize| ((i * 31 + j * 17) % 23) as f64 / 11.0 - 1.0;
        (0..n * n)
            .map(|k| {
                let (i, j) = (k / n, k % n);
                (0..n).map(|l| x(i, l) * x(j, l)).sum::<f64>() + if i == j { 1.0 + i as f64 } else { 0.0 }
            })
            .collect()
    }

    #[test]
    fn factors_solve_and_invert() {
        for n in [1, 2, 5, 31, 32, 33, 70, 130] {
            let a = matrix(n);
            let cholesky = Cholesky::new(a.clone(), n).unwrap();
            let b: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
            let x = cholesky.solve(&b);
            let inverse = cholesky.inverse();
            let diagonal = cholesky.inverse_diagonal();
            for i in 0..n {
                let back = dot(&a[i * n..(i + 1) * n], &x);
                assert!((back - b[i]).abs() < 1e-9, "n = {n}: {back} {}", b[i]);
                assert!((inverse[i * n + i] - diagonal[i]).abs() < 1e-12);
                assert!((dot(&inverse[i * n..(i + 1) * n], &b) - x[i]).abs() < 1e-9);
            }
        }
        assert!(Cholesky::new(Vec::new(), 0).is_some());
    }

    #[test]
    fn says_when_a_matrix_is_not_positive_definite() {
        let mut a = matrix(40);
        a[35 * 40 + 35] = -1.0;
        assert!(Cholesky::new(a.clone(), 40).is_none());
        a[35 * 40 + 35] = f64::NAN;
        assert!(Cholesky::new(a, 40).is_none());
    }
}
