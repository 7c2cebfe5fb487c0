//! Covariates made fit for Newton's method: centred, scaled, and without columns that repeat others.
//! Why those columns can be found before the first step: `docs/methods-compare.md`, cox-rank.

use nalgebra::DMatrix;

/// A column is constant when its standard deviation is below this share of its largest absolute value.
const CONSTANT: f64 = 1e-12;
/// A column is aliased when its squared multiple correlation with the columns before it exceeds 1 minus this.
const ALIASED: f64 = 1e-11;

/// Standardised covariates `(x − centre) / scale` of chosen rows, in the order of those rows.
pub(super) struct Design {
    /// Row by row, only the columns in `active`.
    pub rows: Vec<f64>,
    /// Columns of the input that are estimated, ascending.
    pub active: Vec<usize>,
    /// Columns of the input that are constant or repeat earlier ones, ascending.
    pub aliased: Vec<usize>,
    /// Mean of each input column over the chosen rows.
    pub centre: Vec<f64>,
    /// Standard deviation of each input column; 1 where the column is constant.
    pub scale: Vec<f64>,
}

impl Design {
    pub fn new(covariates: &[f64], n_covariates: usize, chosen: &[usize]) -> Self {
        let p = n_covariates;
        let n = chosen.len() as f64;
        let (mut centre, mut scale, mut varying) = (vec![0.0; p], vec![1.0; p], Vec::new());
        // Relative to the largest absolute value, so that no square overflows.
        let (mut size, mut mean, mut sd) = (vec![0.0_f64; p], vec![0.0; p], vec![1.0; p]);
        for j in 0..p {
            let column = || chosen.iter().map(|&i| covariates[i * p + j]);
            size[j] = column().fold(0.0, |a, x| a.max(x.abs()));
            // Beyond this a scaled coefficient could not be taken back to the column's own units.
            if size[j] < 1e-280 {
                continue;
            }
            mean[j] = column().map(|x| x / size[j]).sum::<f64>() / n;
            centre[j] = mean[j] * size[j];
            let spread = (column().map(|x| (x / size[j] - mean[j]).powi(2)).sum::<f64>() / n).sqrt();
            if spread > CONSTANT {
                sd[j] = spread;
                scale[j] = spread * size[j];
                varying.push(j);
            }
        }
        let standardised = |columns: &[usize]| -> Vec<f64> {
            let mut rows = Vec::with_capacity(chosen.len() * columns.len());
            for &i in chosen {
                rows.extend(columns.iter().map(|&j| (covariates[i * p + j] / size[j] - mean[j]) / sd[j]));
            }
            rows
        };
        let mut rows = standardised(&varying);
        let independent = independent_columns(&rows, varying.len());
        let active: Vec<usize> = independent.iter().map(|&j| varying[j]).collect();
        if active.len() < varying.len() {
            rows = standardised(&active);
        }
        let aliased = (0..p).filter(|j| active.binary_search(j).is_err()).collect();
        Self { rows, active, aliased, centre, scale }
    }
}

/// Columns whose pivot in the Cholesky factorisation of the correlation matrix, taken in order, is not nil.
fn independent_columns(rows: &[f64], width: usize) -> Vec<usize> {
    if width == 0 {
        return Vec::new();
    }
    let n = (rows.len() / width) as f64;
    let mut gram = Gram::new(width);
    let mut correlation = DMatrix::zeros(width, width);
    for row in rows.chunks_exact(width) {
        gram.push(1.0, row, 1.0, &mut correlation);
    }
    gram.flush(1.0, &mut correlation);
    correlation /= n;
    let mut kept: Vec<usize> = Vec::with_capacity(width);
    // factor[k] holds row k of L over the kept columns.
    let mut factor: Vec<Vec<f64>> = Vec::with_capacity(width);
    for j in 0..width {
        let mut row: Vec<f64> = Vec::with_capacity(kept.len() + 1);
        let mut pivot = correlation[(j, j)];
        for (k, &column) in kept.iter().enumerate() {
            let dot: f64 = row.iter().zip(&factor[k]).map(|(a, b)| a * b).sum();
            let entry = (correlation[(j, column)] - dot) / factor[k][k];
            pivot -= entry * entry;
            row.push(entry);
        }
        if pivot > ALIASED {
            row.push(pivot.sqrt());
            factor.push(row);
            kept.push(j);
        }
    }
    kept
}

/// Adds `Σ w x x'` to a matrix, in blocks, as a matrix product.
pub(super) struct Gram {
    block: DMatrix<f64>,
    transposed: DMatrix<f64>,
    filled: usize,
}

impl Gram {
    const BLOCK: usize = 64;

    pub fn new(width: usize) -> Self {
        Self { block: DMatrix::zeros(width, Self::BLOCK), transposed: DMatrix::zeros(Self::BLOCK, width), filled: 0 }
    }

    /// Adds `sign · weight · row row'` to `sum`, now or at the next flush. All rows between two flushes share a sign.
    pub fn push(&mut self, weight: f64, row: &[f64], sign: f64, sum: &mut DMatrix<f64>) {
        let root = weight.sqrt();
        let start = self.filled * row.len();
        for (entry, x) in self.block.as_mut_slice()[start..start + row.len()].iter_mut().zip(row) {
            *entry = root * x;
        }
        self.filled += 1;
        if self.filled == Self::BLOCK {
            self.flush(sign, sum);
        }
    }

    /// Forgets what is still waiting.
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// Adds what is still waiting.
    pub fn flush(&mut self, sign: f64, sum: &mut DMatrix<f64>) {
        if self.filled == 0 || self.block.nrows() == 0 {
            self.filled = 0;
            return;
        }
        self.block.columns_mut(self.filled, Self::BLOCK - self.filled).fill(0.0);
        self.block.transpose_to(&mut self.transposed);
        sum.gemm(sign, &self.block, &self.transposed, 1.0);
        self.filled = 0;
    }
}
