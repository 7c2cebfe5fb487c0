//! Products of matrices, with the same bits on every processor.
//!
//! `matrixmultiply` sums 256 products at a time, in their order and each fused (one rounding for `x y + sum`), with the
//! instructions of AVX2, AVX-512 and NEON alike; what it adds to the result is then a sum of two numbers. Where fused
//! multiplication is missing, or is not to be used, the same sums are taken one by one.

use crate::processor::{InstructionSet, may_use};
use matrixmultiply::dgemm;

/// Products that `matrixmultiply` sums before it adds them to the result.
const AT_ONCE: usize = 256;

/// A matrix in a slice: its first element, and the steps from one row and one column to the next.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) data: &'a [f64],
    pub(crate) row: usize,
    pub(crate) column: usize,
}

impl View<'_> {
    fn holds(&self, rows: usize, columns: usize) -> bool {
        (rows - 1) * self.row + (columns - 1) * self.column < self.data.len()
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.data[i * self.row + j * self.column]
    }
}

/// Whether a product is added to the result or taken from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Plus,
    Minus,
}

/// `C += A B`, or `C -= A B`; `c` is row-major with rows `step` apart, `sizes` are the rows of A, its columns, and the
/// columns of B.
pub(crate) fn add_product(sizes: [usize; 3], sign: Sign, a: View<'_>, b: View<'_>, c: &mut [f64], step: usize) {
    let [rows, inner, columns] = sizes;
    if rows == 0 || inner == 0 || columns == 0 {
        return;
    }
    assert!(a.holds(rows, inner) && b.holds(inner, columns));
    assert!((rows - 1) * step + columns <= c.len() && step >= columns);
    if !is_fused() {
        return one_by_one(sizes, sign, a, b, c, step);
    }
    let factor = if sign == Sign::Plus { 1.0 } else { -1.0 };
    // SAFETY: the largest offset of each view lies within its slice, asserted above; C's rows do not overlap.
    unsafe {
        dgemm(
            rows,
            inner,
            columns,
            factor,
            a.data.as_ptr(),
            a.row as isize,
            a.column as isize,
            b.data.as_ptr(),
            b.row as isize,
            b.column as isize,
            1.0,
            c.as_mut_ptr(),
            step as isize,
            1,
        );
    }
}

/// Whether the kernels of `matrixmultiply` fuse on this processor, and may be used.
fn is_fused() -> bool {
    cfg!(target_arch = "aarch64") || may_use(InstructionSet::Avx2)
}

fn one_by_one([rows, inner, columns]: [usize; 3], sign: Sign, a: View<'_>, b: View<'_>, c: &mut [f64], step: usize) {
    let mut sums = vec![0.0; columns];
    for from in (0..inner).step_by(AT_ONCE) {
        for i in 0..rows {
            sums.fill(0.0);
            for k in from..(from + AT_ONCE).min(inner) {
                let x = a.at(i, k);
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum = x.mul_add(b.at(k, j), *sum);
                }
            }
            for (c, sum) in c[i * step..].iter_mut().zip(&sums) {
                *c += if sign == Sign::Plus { *sum } else { -sum };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernels of `matrixmultiply` and the sums one by one, over sizes that leave rests of every kind.
    #[test]
    fn both_ways_give_the_same_bits() {
        if !is_fused() {
            return;
        }
        let number = |i: usize| ((i * 7919 + 13) % 10_007) as f64 / 97.0 - 51.3;
        for (rows, inner, columns) in
            [(1, 1, 1), (3, 5, 2), (8, 256, 4), (9, 257, 5), (32, 600, 33), (17, 1_000, 40), (100, 32, 32)]
        {
            let data: Vec<f64> = (0..rows.max(columns) * inner).map(number).collect();
            for (row, column) in [(inner, 1), (1, rows)] {
                for sign in [Sign::Plus, Sign::Minus] {
                    let a = View { data: &data[..rows * inner], row, column };
                    let b = View { data: &data[..inner * columns], row: columns, column: 1 };
                    let step = columns + 3;
                    let mut one: Vec<f64> = (0..rows * step).map(|i| number(i + 5)).collect();
                    let mut other = one.clone();
                    add_product([rows, inner, columns], sign, a, b, &mut one, step);
                    one_by_one([rows, inner, columns], sign, a, b, &mut other, step);
                    let bits = |c: &[f64]| c.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(&one), bits(&other), "{rows} × {inner} × {columns}, {sign:?}");
                }
            }
        }
    }
}
