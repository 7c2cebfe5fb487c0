//! Candidate terms beyond straight lines: squares, steps, hinges, products. Sees covariates only, never an outcome.

use super::matrix::{Cholesky, product};

/// A covariate with more distinct values than this is numeric: it has curves. One with fewer has products only.
const FEW_VALUES: usize = 10;
/// Numeric covariates are clipped at these quantiles before squares, hinges and products: one far value must not carry
/// a term.
const CLIP: (f64, f64) = (0.01, 0.99);
/// Quantiles at which a step may stand.
const STEPS: [f64; 5] = [0.2, 0.35, 0.5, 0.65, 0.8];
/// Quantiles at which a line may bend.
const HINGES: [f64; 3] = [0.25, 0.5, 0.75];
/// Smallest divisor of a residual, as a share of the term's own standard deviation: a term that is almost linear is not
/// blown up.
const SMALLEST_RESIDUAL: f64 = 0.05;
/// A term whose residual is a smaller share than this is linear in the covariates (the product of two dummies of one
/// category) and dropped.
const LINEAR_RESIDUAL: f64 = 1e-3;
/// A covariate is a combination of those before it when a smaller share of its variance is left.
const COLLINEAR: f64 = 1e-9;
/// Rows of a block.
const CHUNK: usize = 256;
/// Up to this many covariates every pair has a product, and terms are residualised on all of them.
pub(super) const ALL_PAIRS: usize = 30;

/// What a term is made of. Covariates are columns of the caller's matrix, cuts are in its (standardised) units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// The square of a covariate.
    Square {
        /// Its column.
        covariate: usize,
    },
    /// One above the cut, zero elsewhere.
    Step {
        /// Its column.
        covariate: usize,
        /// The cut.
        cut: f64,
    },
    /// How far a covariate lies above the knot.
    Hinge {
        /// Its column.
        covariate: usize,
        /// The knot.
        knot: f64,
    },
    /// The product of two covariates.
    Product {
        /// The earlier column.
        first: usize,
        /// The later column.
        second: usize,
    },
}

impl Shape {
    /// The covariates it involves, in column order.
    pub fn covariates(&self) -> Vec<usize> {
        let (first, second) = self.members();
        if first == second { vec![first] } else { vec![first, second] }
    }

    /// The set of covariates as a pair; twice the same for terms of one covariate.
    pub(super) fn members(&self) -> (usize, usize) {
        match *self {
            Shape::Square { covariate } | Shape::Step { covariate, .. } | Shape::Hinge { covariate, .. } => {
                (covariate, covariate)
            }
            Shape::Product { first, second } => (first, second),
        }
    }

    /// Its name, given the names of the covariates and a map of cuts to the units of a reader: `age²`, `age > 50`,
    /// `(age - 50)₊`, `age × er`.
    pub fn label(&self, name: &dyn Fn(usize) -> String, units: &dyn Fn(usize, f64) -> f64) -> String {
        match *self {
            Shape::Square { covariate } => format!("{}²", name(covariate)),
            Shape::Step { covariate, cut } => format!("{} > {:.3}", name(covariate), units(covariate, cut)),
            Shape::Hinge { covariate, knot } => format!("({} - {:.3})₊", name(covariate), units(covariate, knot)),
            Shape::Product { first, second } => format!("{} × {}", name(first), name(second)),
        }
    }
}

/// One term as a function of a covariate row: `gain · raw(x) - base₀ - Σ base_j x_j`, uncorrelated with every covariate
/// in the cohort that made it and of standard deviation one there (less if the term is almost linear).
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// What it is made of.
    pub shape: Shape,
    /// Clips of the (one or two) covariates.
    pub clips: [(f64, f64); 2],
    /// What the raw term is multiplied by.
    pub gain: f64,
    /// What is then taken off.
    pub base: f64,
    /// Column and coefficient of the linear part that was taken out.
    pub line: Vec<(usize, f64)>,
}

impl Term {
    /// Whether its columns exist and its numbers are numbers.
    pub(super) fn is_sound(&self, n_covariates: usize) -> bool {
        let (first, second) = self.shape.members();
        first.max(second) < n_covariates
            && self.gain.is_finite()
            && self.base.is_finite()
            && self.line.iter().all(|&(j, b)| j < n_covariates && b.is_finite())
    }

    /// Its value for a covariate row.
    pub fn value(&self, x: &[f64]) -> f64 {
        let line: f64 = self.line.iter().map(|&(j, b)| b * x[j]).sum();
        self.gain * raw(&self.shape, self.clips, x) - self.base - line
    }
}

fn clip(x: f64, (low, high): (f64, f64)) -> f64 {
    x.max(low).min(high)
}

fn raw(shape: &Shape, clips: [(f64, f64); 2], x: &[f64]) -> f64 {
    match *shape {
        Shape::Square { covariate } => {
            let x = clip(x[covariate], clips[0]);
            x * x
        }
        Shape::Step { covariate, cut } => f64::from(x[covariate] > cut),
        Shape::Hinge { covariate, knot } => (clip(x[covariate], clips[0]) - knot).max(0.0),
        Shape::Product { first, second } => clip(x[first], clips[0]) * clip(x[second], clips[1]),
    }
}

/// The candidate terms of a cohort, made once from its covariates.
///
/// With at most 30 covariates: for each numeric one (more than ten distinct values) its square, five steps and three
/// hinges; for each pair, numeric or not, the product; all of them residualised on every covariate. With more there
/// would be too many to pay for: [`super::fit`] then makes them for the 20 covariates of largest score in its own
/// training units, residualised on these.
#[derive(Clone, Debug)]
pub struct Terms {
    n_covariates: usize,
    terms: Vec<Term>,
    /// Columns that the terms were residualised on.
    active: Vec<usize>,
    /// Linear parts as a matrix, `(1 + active) × terms`, for evaluation in blocks.
    lines: Vec<f64>,
    /// Clips of all covariates.
    clips: Vec<(f64, f64)>,
    /// Each term as its gain and two factors: covariates, clipped, then a one, then the steps and hinges of `single`.
    factors: Vec<(f64, [u32; 2])>,
    single: Vec<Shape>,
}

impl Terms {
    /// From row-major covariates. Rows may be all units of the cohort: no outcome enters.
    pub fn new(covariates: &[f64], n_covariates: usize) -> Terms {
        if n_covariates > ALL_PAIRS {
            return Terms::none(n_covariates);
        }
        Terms::of(covariates, n_covariates, (0..n_covariates).collect())
    }

    fn none(n_covariates: usize) -> Terms {
        Terms {
            n_covariates,
            terms: Vec::new(),
            active: Vec::new(),
            lines: Vec::new(),
            clips: Vec::new(),
            factors: Vec::new(),
            single: Vec::new(),
        }
    }

    /// Candidates of the covariates `active` only.
    pub(super) fn of(covariates: &[f64], p: usize, active: Vec<usize>) -> Terms {
        let n = covariates.len().checked_div(p).unwrap_or(0);
        if n < 3 {
            return Terms::none(p);
        }
        let mut clips = vec![(f64::NEG_INFINITY, f64::INFINITY); p];
        let mut shapes = Vec::new();
        for &j in &active {
            let mut column: Vec<f64> = (0..n).map(|i| covariates[i * p + j]).collect();
            column.sort_by(f64::total_cmp);
            let distinct = 1 + column.windows(2).filter(|w| w[0] < w[1]).count();
            if distinct <= FEW_VALUES {
                continue;
            }
            clips[j] = (quantile(&column, CLIP.0), quantile(&column, CLIP.1));
            shapes.push(Shape::Square { covariate: j });
            shapes.extend(STEPS.map(|q| Shape::Step { covariate: j, cut: quantile(&column, q) }));
            shapes.extend(HINGES.map(|q| Shape::Hinge { covariate: j, knot: quantile(&column, q) }));
        }
        for (k, &second) in active.iter().enumerate() {
            shapes.extend(active[..k].iter().map(|&first| Shape::Product { first, second }));
        }
        let bare = |shape: Shape| {
            let (first, second) = shape.members();
            Term { shape, clips: [clips[first], clips[second]], gain: 1.0, base: 0.0, line: Vec::new() }
        };
        let mut terms: Vec<Term> = shapes.into_iter().map(bare).collect();
        let moments = Moments::of(covariates, p, &active, &terms);
        let solve = moments.least_squares();
        let k = terms.len();
        let mut keep = vec![false; k];
        for (c, term) in terms.iter_mut().enumerate() {
            let right: Vec<f64> = (0..=active.len()).map(|r| moments.cross[r * k + c]).collect();
            let line = solve.solve(&right);
            let degrees = n as f64 - 1.0;
            let mean = right[0] / n as f64;
            let variance = (moments.squares[c] - n as f64 * mean * mean) / degrees;
            let explained: f64 = line.iter().zip(&right).map(|(b, m)| b * m).sum();
            let residual = (moments.squares[c] - explained).max(0.0) / degrees;
            // Relative to the square mean: a step that is never taken has no variance but rounding.
            if variance.is_nan() || variance <= 1e-12 * moments.squares[c].max(f64::MIN_POSITIVE) / n as f64 {
                continue;
            }
            let sd = libm::sqrt(variance);
            let share = libm::sqrt(residual) / sd;
            if share.is_nan() || share <= LINEAR_RESIDUAL {
                continue;
            }
            let scale = 1.0 / (sd * share.max(SMALLEST_RESIDUAL));
            keep[c] = scale.is_finite();
            term.gain = scale;
            term.base = scale * line[0];
            term.line = active.iter().zip(&line[1..]).map(|(&j, b)| (j, scale * b)).collect();
        }
        let mut kept = keep.iter();
        terms.retain(|_| *kept.next().unwrap_or(&false));
        Terms::ready(p, terms, active, clips)
    }

    /// Makes what evaluation in blocks needs.
    fn ready(p: usize, terms: Vec<Term>, active: Vec<usize>, clips: Vec<(f64, f64)>) -> Terms {
        let k = terms.len();
        let mut lines = vec![0.0; (1 + active.len()) * k];
        for (c, term) in terms.iter().enumerate() {
            lines[c] = term.base;
            term.line.iter().enumerate().for_each(|(r, &(_, b))| lines[(1 + r) * k + c] = b);
        }
        let mut single = Vec::new();
        let factors = terms.iter().map(|term| {
            let factors = match term.shape {
                Shape::Square { covariate } => [covariate, covariate],
                Shape::Product { first, second } => [first, second],
                Shape::Step { .. } | Shape::Hinge { .. } => {
                    single.push(term.shape);
                    [p + single.len(), p]
                }
            };
            (term.gain, factors.map(|f| f as u32))
        });
        let factors = factors.collect();
        Terms { n_covariates: p, terms, active, lines, clips, factors, single }
    }

    /// Some of the candidates.
    pub(super) fn some(&self, which: &[usize]) -> Terms {
        let terms = which.iter().map(|&k| self.terms[k].clone()).collect();
        Terms::ready(self.n_covariates, terms, self.active.clone(), self.clips.clone())
    }

    /// The columns that they were made of.
    pub(super) fn active(&self) -> &[usize] {
        &self.active
    }

    /// A covariate as squares, hinges and products see it.
    pub(super) fn clipped(&self, covariate: usize, x: f64) -> f64 {
        clip(x, self.clips[covariate])
    }

    /// Number of candidates; zero with more than 30 covariates, where each fit makes its own.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Number of covariates they were made for.
    pub fn n_covariates(&self) -> usize {
        self.n_covariates
    }

    /// Candidate `k`.
    pub fn get(&self, k: usize) -> &Term {
        &self.terms[k]
    }

    /// Values of every candidate for some rows, row-major, into `out`; `line` is scratch.
    pub(super) fn evaluate<'x>(&self, rows: impl Iterator<Item = &'x [f64]>, line: &mut Vec<f64>, out: &mut Vec<f64>) {
        let (k, a) = (self.terms.len(), self.active.len() + 1);
        line.clear();
        out.clear();
        let p = self.n_covariates;
        let mut values = vec![0.0; p + 1 + self.single.len()];
        values[p] = 1.0;
        for x in rows {
            line.push(1.0);
            line.extend(self.active.iter().map(|&j| x[j]));
            let (clipped, single) = values.split_at_mut(p + 1);
            self.active.iter().for_each(|&j| clipped[j] = clip(x[j], self.clips[j]));
            single
                .iter_mut()
                .zip(&self.single)
                .for_each(|(value, shape)| *value = raw(shape, [self.clips[shape.members().0]; 2], x));
            out.extend(self.factors.iter().map(|&(gain, [a, b])| gain * (values[a as usize] * values[b as usize])));
        }
        product((line.len() / a, a, k), -1.0, line, (a, 1), &self.lines, (k, 1), out, k);
    }
}

/// Sums over rows: `L'L`, `L'C` and the squares of `C`, `L` the active covariates with a one, `C` the raw terms.
struct Moments {
    a: usize,
    gram: Vec<f64>,
    cross: Vec<f64>,
    squares: Vec<f64>,
}

impl Moments {
    fn of(covariates: &[f64], p: usize, active: &[usize], terms: &[Term]) -> Moments {
        let (a, k) = (active.len() + 1, terms.len());
        let (mut gram, mut cross, mut squares) = (vec![0.0; a * a], vec![0.0; a * k], vec![0.0; k]);
        let (mut line, mut values) = (Vec::new(), Vec::new());
        for rows in covariates.chunks(CHUNK * p) {
            line.clear();
            values.clear();
            for x in rows.chunks_exact(p) {
                line.push(1.0);
                line.extend(active.iter().map(|&j| x[j]));
                let from = values.len();
                values.extend(terms.iter().map(|term| raw(&term.shape, term.clips, x)));
                squares.iter_mut().zip(&values[from..]).for_each(|(s, v)| *s += v * v);
            }
            let n = line.len() / a;
            product((a, n, a), 1.0, &line, (1, a), &line, (a, 1), &mut gram, a);
            product((a, n, k), 1.0, &line, (1, a), &values, (k, 1), &mut cross, k);
        }
        Moments { a, gram, cross, squares }
    }

    /// Least squares on the columns that are no combination of earlier ones.
    fn least_squares(&self) -> LeastSquares {
        let a = self.a;
        let sub = |kept: &[usize]| -> Vec<f64> {
            kept.iter().flat_map(|&i| kept.iter().map(move |&j| (i, j))).map(|(i, j)| self.gram[i * a + j]).collect()
        };
        let mut kept: Vec<usize> = Vec::new();
        let mut cholesky = Cholesky::new(Vec::new(), 0);
        for j in 0..a {
            // What is left of column j after those kept.
            let right: Vec<f64> = kept.iter().map(|&i| self.gram[i * a + j]).collect();
            let explained: f64 = match &cholesky {
                Some(c) => c.solve(&right).iter().zip(&right).map(|(x, y)| x * y).sum(),
                None => break,
            };
            let square = self.gram[j * a + j];
            if square - explained > COLLINEAR * square && square > 0.0 {
                kept.push(j);
                match Cholesky::new(sub(&kept), kept.len()) {
                    Some(c) => cholesky = Some(c),
                    None => {
                        kept.pop();
                    }
                }
            }
        }
        LeastSquares { a, kept, cholesky }
    }
}

struct LeastSquares {
    a: usize,
    kept: Vec<usize>,
    cholesky: Option<Cholesky>,
}

impl LeastSquares {
    /// Coefficients for the cross products `right`; zero for dropped columns.
    fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.a];
        if let Some(cholesky) = &self.cholesky {
            let right: Vec<f64> = self.kept.iter().map(|&i| right[i]).collect();
            self.kept.iter().zip(cholesky.solve(&right)).for_each(|(&i, x)| out[i] = x);
        }
        out
    }
}

/// Quantile of sorted numbers by linear interpolation (type 7 of Hyndman and Fan 1996).
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let low = at as usize;
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (at - low as f64) * (sorted[high] - sorted[low])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covariates(n: usize) -> Vec<f64> {
        // Three numeric columns, one of them far from normal, a dummy, its complement and a constant.
        (0..n)
            .flat_map(|i| {
                let a = ((i * 7_919) % n) as f64 / n as f64 * 3.4 - 1.7;
                let b = (((i * 104_729) % n) as f64 / n as f64 * 3.4 - 1.7).powi(3);
                let d = f64::from(u8::from(i % 3 == 0));
                [a, b, 0.3 * a + ((i * 31) % 17) as f64 / 8.0 - 1.0, d, 1.0 - d, 0.0]
            })
            .collect()
    }

    #[test]
    fn terms_are_uncorrelated_with_the_covariates_and_of_unit_spread() {
        let n = 1_000;
        let x = covariates(n);
        let terms = Terms::new(&x, 6);
        assert!(!terms.is_empty());
        let shapes: Vec<Shape> = (0..terms.len()).map(|k| terms.get(k).shape).collect();
        // The product of a dummy and its complement is nothing; with a constant of zero likewise.
        assert!(!shapes.contains(&Shape::Product { first: 3, second: 4 }), "{shapes:?}");
        assert!(shapes.iter().all(|shape| !shape.covariates().contains(&5)), "{shapes:?}");
        for (k, shape) in shapes.iter().enumerate() {
            let values: Vec<f64> = x.chunks_exact(6).map(|row| terms.get(k).value(row)).collect();
            let spread = (values.iter().map(|v| v * v).sum::<f64>() / (n as f64 - 1.0)).sqrt();
            assert!(spread < 1.0 + 1e-9, "{shape:?}: {spread}");
            for j in 0..6 {
                let product: f64 = values.iter().enumerate().map(|(i, v)| v * x[i * 6 + j]).sum::<f64>() / n as f64;
                assert!(product.abs() < 1e-8, "{shape:?} with {j}: {product}");
            }
        }
    }

    #[test]
    fn blocks_give_what_single_rows_give() {
        let x = covariates(300);
        let terms = Terms::new(&x, 6);
        let (mut line, mut out) = (Vec::new(), Vec::new());
        terms.evaluate(x.chunks_exact(6), &mut line, &mut out);
        for (row, values) in x.chunks_exact(6).zip(out.chunks_exact(terms.len())) {
            for (k, value) in values.iter().enumerate() {
                assert!((value - terms.get(k).value(row)).abs() < 1e-11);
            }
        }
    }

    #[test]
    fn few_rows_and_many_columns_have_no_candidates() {
        assert!(Terms::new(&[], 0).is_empty());
        assert!(Terms::new(&[1.0, 2.0], 1).is_empty());
        assert!(Terms::new(&vec![0.5; 31 * 50], 31).is_empty());
    }
}
