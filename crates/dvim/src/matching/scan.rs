//! The plain scan: the definition of the answer, that every faster way must equal.

use super::{Neighbours, Points};

/// Squared Euclidean distance: the terms are added one by one in axis order, without fused
/// multiply-add. This is *the* distance of the package; ties are ties of this number.
pub fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (x, y) in a.iter().zip(b) {
        let d = x - y;
        sum += d * d;
    }
    sum
}

/// Squared distances that differ by less than this share are the same distance. Patients who are equally far but in
/// other covariates have sums of other terms, whose last digits are chance: whoever shares a place must not depend on
/// them. Rounding is below it by two orders, and the distances of patients with continuous covariates differ by more.
pub const SAME: f64 = 1e-12;

/// Whether two squared distances, the first not larger, are the same.
pub fn is_same(nearer: f64, farther: f64) -> bool {
    farther <= nearer * (1.0 + SAME)
}

/// The `k` nearest reference points of each query, ascending by (squared distance, index).
/// `k` is at most the number of reference points.
pub fn scan(reference: &Points, queries: &Points, k: usize) -> Neighbours {
    assert!(k <= reference.len(), "a group of {k} from {} units", reference.len());
    let mut out = Neighbours { group_size: k, index: Vec::new(), squared_distance: Vec::new() };
    for q in 0..queries.len() {
        let mut all: Vec<(f64, u32)> =
            (0..reference.len()).map(|r| (squared_distance(queries.point(q), reference.point(r)), r as u32)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for &(d, r) in &all[..k] {
            out.index.push(r);
            out.squared_distance.push(d);
        }
    }
    out
}
