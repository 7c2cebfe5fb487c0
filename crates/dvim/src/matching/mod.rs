//! The K nearest units, exactly. Sees points; never a time, an event or an arm.

mod scan;

pub use scan::scan;

/// Points of match space, row-major. All coordinates are finite.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// Number of axes.
    pub dim: usize,
    /// `n × dim` coordinates.
    pub coords: Vec<f64>,
}

impl Points {
    /// Number of points.
    pub fn len(&self) -> usize {
        self.coords.len().checked_div(self.dim).unwrap_or(0)
    }

    /// Whether there is no point.
    pub fn is_empty(&self) -> bool {
        self.coords.is_empty()
    }

    /// The coordinates of point `i`.
    pub fn point(&self, i: usize) -> &[f64] {
        &self.coords[i * self.dim..(i + 1) * self.dim]
    }
}

/// The `group_size` nearest reference points of each query, by (squared distance, index).
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    /// K.
    pub group_size: usize,
    /// `n_queries × K` positions in the reference set.
    pub index: Vec<u32>,
    /// `n_queries × K` squared distances, in the same order.
    pub squared_distance: Vec<f64>,
}

/// Reference points, packed for search.
pub struct Index(Points);

impl Index {
    /// Packs reference points.
    pub fn build(reference: &Points) -> Index {
        Index(reference.clone())
    }

    /// The `k` nearest of each query.
    pub fn nearest(&self, queries: &Points, k: usize) -> Neighbours {
        scan(&self.0, queries, k)
    }

    /// Applies `f` to the neighbours of each query.
    pub fn map<T: Send, S>(
        &self,
        queries: &Points,
        k: usize,
        init: impl Fn() -> S + Sync + Send,
        f: impl Fn(&mut S, &[u32], &[f64]) -> T + Sync + Send,
    ) -> Vec<T> {
        use rayon::prelude::*;
        (0..queries.len())
            .into_par_iter()
            .map_init(init, |s, q| {
                let one = Points { dim: queries.dim, coords: queries.point(q).to_vec() };
                let n = scan(&self.0, &one, k);
                f(s, &n.index, &n.squared_distance)
            })
            .collect()
    }
}
