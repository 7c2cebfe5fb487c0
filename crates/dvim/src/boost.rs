//! Boosted regression trees, small and the same on any number of threads.
//!
//! A function of covariates is a sum of shallow trees. Each tree is grown on the gradients `g` and curvatures `h` of a
//! log-likelihood at the sum so far: a leaf adds `rate · Σg/(Σh + ridge)`, and a split is worth the gain
//! `{G_L²/(H_L + λ) + G_R²/(H_R + λ) − G²/(H + λ)}`, which is a χ² on one degree of freedom where there is nothing to
//! find. A subtree is kept only if its splits gain more than the largest of so many χ² would by chance, so that where
//! there is nothing to find there is no tree.
//!
//! Trees grow by histograms: covariates are cut into at most 32 bins at their quantiles. Sums go in the order of rows,
//! so that no thread and no order of work changes a bit. It is code of our own because no crate for boosting takes
//! gradients from outside, keeps the bits on any number of threads and compiles in seconds.

/// Most bins of a covariate.
const BINS: usize = 32;

/// Covariates in bins, column after column.
#[derive(Clone, Debug)]
pub(crate) struct Binned {
    n: usize,
    bins: Vec<u8>,
    /// Upper ends of all bins but the last, of each covariate, ascending.
    cuts: Vec<Vec<f64>>,
}

impl Binned {
    /// Bins the columns of row-major covariates at the quantiles of all rows.
    pub(crate) fn new(rows: &[f64], p: usize) -> Binned {
        let mut sorted = Vec::with_capacity(rows.len().checked_div(p).unwrap_or(0));
        let of_column = |j: usize| {
            sorted.clear();
            sorted.extend(rows.iter().skip(j).step_by(p).copied());
            sorted.sort_unstable_by(f64::total_cmp);
            cuts_of(&sorted)
        };
        let cuts = (0..p).map(of_column).collect();
        Binned::cut_at(rows, cuts)
    }

    /// Bins the columns of row-major covariates between these cuts, ascending.
    pub(crate) fn cut_at(rows: &[f64], cuts: Vec<Vec<f64>>) -> Binned {
        let p = cuts.len();
        let n = rows.len().checked_div(p).unwrap_or(0);
        let mut bins = Vec::with_capacity(n * p);
        for (j, of_column) in cuts.iter().enumerate() {
            let column = rows.iter().skip(j).step_by(p);
            bins.extend(column.map(|x| of_column.partition_point(|cut| cut < x) as u8));
        }
        Binned { n, bins, cuts }
    }

    /// Upper ends of all bins but the last, of each covariate, ascending.
    pub(crate) fn cuts(&self) -> &[Vec<f64>] {
        &self.cuts
    }

    fn column(&self, j: usize) -> &[u8] {
        &self.bins[j * self.n..(j + 1) * self.n]
    }

    /// Splits that a tree may begin with.
    fn n_splits(&self) -> usize {
        self.cuts.iter().map(Vec::len).sum()
    }
}

/// Between different values, at most 31 of them, as even as ties allow.
fn cuts_of(sorted: &[f64]) -> Vec<f64> {
    let mut distinct = sorted.to_vec();
    distinct.dedup();
    if distinct.len() <= BINS {
        return distinct.windows(2).map(|w| 0.5 * (w[0] + w[1])).collect();
    }
    let mut cuts: Vec<f64> = (1..BINS)
        .filter_map(|b| {
            let at = sorted[b * sorted.len() / BINS];
            let next = distinct.partition_point(|x| *x <= at);
            distinct.get(next).map(|above| 0.5 * (at + above))
        })
        .collect();
    cuts.dedup();
    cuts
}

/// A node: a question on a covariate, or a leaf.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// The covariate that is asked for; `None` in a leaf.
    pub covariate: Option<u32>,
    /// Rows at or below the cut go to `left`, others to the node after it.
    pub cut: f64,
    /// Place of the left child.
    pub left: u32,
    /// What a leaf adds.
    pub value: f64,
}

/// A tree, its root first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// The nodes.
    pub nodes: Vec<Node>,
}

impl Tree {
    /// What the tree says of a row of covariates.
    pub fn value(&self, x: &[f64]) -> f64 {
        let mut node = match self.nodes.first() {
            Some(root) => root,
            None => return 0.0,
        };
        while let Some(j) = node.covariate {
            let right = usize::from(x[j as usize] > node.cut);
            node = &self.nodes[node.left as usize + right];
        }
        node.value
    }

    /// Whether its places and columns exist and its numbers are numbers: one that was read from a file may not be.
    pub fn is_sound(&self, n_covariates: usize) -> bool {
        self.nodes.iter().enumerate().all(|(at, node)| match node.covariate {
            Some(j) => {
                // Children come after their parent, so that every walk ends.
                let left = node.left as usize;
                (j as usize) < n_covariates && !node.cut.is_nan() && left > at && left + 1 < self.nodes.len()
            }
            None => node.value.is_finite(),
        })
    }
}

/// The sum of trees for a row.
pub(crate) fn sum_of(trees: &[Tree], x: &[f64]) -> f64 {
    trees.iter().map(|tree| tree.value(x)).sum()
}

/// How trees grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    /// Questions from the root to a leaf, at most.
    pub(crate) depth: usize,
    /// What a leaf adds is this share of what its rows ask for.
    pub(crate) rate: f64,
    /// Curvature that is added to that of a leaf.
    pub(crate) ridge: f64,
    /// Rows of a leaf, at least.
    pub(crate) fewest: usize,
    /// A split must gain this many times `2 ln(number of splits)`, the largest χ² that chance would make of them.
    pub(crate) caution: f64,
}

struct Best {
    gain: f64,
    covariate: usize,
    bin: usize,
}

/// A node while the tree grows.
enum Grown {
    Leaf(f64),
    Split { covariate: usize, bin: usize, gain: f64, splits: usize, sides: Box<[Grown; 2]>, value: f64 },
}

impl Grown {
    /// What the splits of the subtree gain, and how many they are.
    fn worth(&self) -> (f64, usize) {
        match self {
            Grown::Leaf(_) => (0.0, 0),
            Grown::Split { gain, splits, .. } => (*gain, *splits),
        }
    }
}

struct Grower<'a> {
    data: &'a Binned,
    growth: &'a Growth,
    /// What a split must gain.
    needed: f64,
    /// Of each row of the data.
    g: &'a [f64],
    h: &'a [f64],
}

impl Grower<'_> {
    fn best(&self, rows: &[u32], g: f64, h: f64) -> Option<Best> {
        let ridge = self.growth.ridge;
        let mut best: Option<Best> = None;
        let whole = g * g / (h + ridge);
        for (j, cuts) in self.data.cuts.iter().enumerate() {
            if cuts.is_empty() {
                continue;
            }
            let column = self.data.column(j);
            let mut sums = [(0.0, 0.0, 0u32); BINS];
            for &i in rows {
                let s = &mut sums[column[i as usize] as usize];
                s.0 += self.g[i as usize];
                s.1 += self.h[i as usize];
                s.2 += 1;
            }
            let (mut left_g, mut left_h, mut left_n) = (0.0, 0.0, 0);
            for (bin, s) in sums.iter().enumerate().take(cuts.len()) {
                (left_g, left_h, left_n) = (left_g + s.0, left_h + s.1, left_n + s.2 as usize);
                if left_n < self.growth.fewest || rows.len() - left_n < self.growth.fewest {
                    continue;
                }
                let (right_g, right_h) = (g - left_g, h - left_h);
                let gain = left_g * left_g / (left_h + ridge) + right_g * right_g / (right_h + ridge) - whole;
                if gain > best.as_ref().map_or(1e-9, |b| b.gain) {
                    best = Some(Best { gain, covariate: j, bin });
                }
            }
        }
        best
    }

    fn grow(&self, rows: &mut [u32], depth: usize) -> Grown {
        let (g, h) = rows.iter().fold((0.0, 0.0), |(g, h), &i| (g + self.g[i as usize], h + self.h[i as usize]));
        let value = self.growth.rate * g / (h + self.growth.ridge);
        if depth == 0 || rows.len() < 2 * self.growth.fewest {
            return Grown::Leaf(value);
        }
        let Some(best) = self.best(rows, g, h) else { return Grown::Leaf(value) };
        let column = self.data.column(best.covariate);
        // Stable, so that sums keep the order of rows.
        let (left, right): (Vec<u32>, Vec<u32>) = rows.iter().partition(|i| column[**i as usize] as usize <= best.bin);
        rows[..left.len()].copy_from_slice(&left);
        rows[left.len()..].copy_from_slice(&right);
        let (left, right) = rows.split_at_mut(left.len());
        let sides = [self.grow(left, depth - 1), self.grow(right, depth - 1)];
        let (below, n) = sides.iter().map(Grown::worth).fold((0.0, 0), |(a, b), (c, d)| (a + c, b + d));
        let (gain, splits) = (best.gain + below, n + 1);
        if gain < self.needed * splits as f64 {
            return Grown::Leaf(value);
        }
        Grown::Split { covariate: best.covariate, bin: best.bin, gain, splits, sides: Box::new(sides), value }
    }

    fn flatten(&self, grown: &Grown, at: usize, out: &mut Vec<Node>) {
        match grown {
            Grown::Leaf(value) => out[at] = Node { covariate: None, cut: 0.0, left: 0, value: *value },
            Grown::Split { covariate, bin, sides, value, .. } => {
                let left = out.len();
                let empty = Node { covariate: None, cut: 0.0, left: 0, value: 0.0 };
                out.extend([empty; 2]);
                let cut = self.data.cuts[*covariate][*bin];
                out[at] = Node { covariate: Some(*covariate as u32), cut, left: left as u32, value: *value };
                self.flatten(&sides[0], left, out);
                self.flatten(&sides[1], left + 1, out);
            }
        }
    }
}

/// Grows one tree on the rows of the data that are listed (ascending), from the gradient and curvature of each row.
/// `None` where no split gains more than chance would.
pub(crate) fn grow(data: &Binned, rows: &[u32], g: &[f64], h: &[f64], growth: &Growth) -> Option<Tree> {
    let needed = growth.caution * 2.0 * libm::log(data.n_splits().max(2) as f64);
    let grower = Grower { data, growth, needed, g, h };
    let grown = grower.grow(&mut rows.to_vec(), growth.depth);
    matches!(grown, Grown::Split { .. }).then(|| {
        let mut nodes = vec![Node { covariate: None, cut: 0.0, left: 0, value: 0.0 }];
        grower.flatten(&grown, 0, &mut nodes);
        Tree { nodes }
    })
}

/// Boosts a sum of trees of row-major covariates beside an offset that is already known: `slopes` gives gradient and
/// curvature of a row's log-likelihood at a score. Stops when no tree gains more than chance.
pub(crate) fn boost(
    data: &Binned,
    covariates: &[f64],
    rows: &[u32],
    offset: impl Fn(usize) -> f64,
    slopes: impl Fn(usize, f64) -> (f64, f64),
    rounds: usize,
    growth: &Growth,
) -> Vec<Tree> {
    let p = data.cuts.len();
    let mut score: Vec<f64> = vec![0.0; data.n];
    rows.iter().for_each(|&i| score[i as usize] = offset(i as usize));
    let (mut g, mut h) = (vec![0.0; data.n], vec![0.0; data.n]);
    let mut trees = Vec::new();
    for _ in 0..rounds {
        for &i in rows {
            (g[i as usize], h[i as usize]) = slopes(i as usize, score[i as usize]);
        }
        let Some(tree) = grow(data, rows, &g, &h, growth) else { break };
        for &i in rows {
            let i = i as usize;
            score[i] += tree.value(&covariates[i * p..(i + 1) * p]);
        }
        trees.push(tree);
    }
    trees
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of a covariate is found where it is, and noise has no tree.
    #[test]
    fn a_step_is_found_and_noise_is_not() {
        let n = 1000;
        let part = |i: usize, by: usize| ((i * by) % 997) as f64 / 997.0;
        let rows: Vec<f64> = (0..n).flat_map(|i| [part(i, 331), part(i, 127)]).collect();
        let data = Binned::new(&rows, 2);
        let all: Vec<u32> = (0..n as u32).collect();
        let noise = |i: usize| if part(i, 613) > 0.5 { 0.3 } else { -0.3 };
        let h = vec![1.0; n];
        let growth = Growth { depth: 3, rate: 1.0, ridge: 0.0, fewest: 20, caution: 1.0 };
        let step: Vec<f64> = (0..n).map(|i| noise(i) + if rows[2 * i] > 0.5 { 1.0 } else { -1.0 }).collect();
        let tree = grow(&data, &all, &step, &h, &growth).expect("a step");
        assert_eq!(tree.nodes[0].covariate, Some(0));
        assert!((tree.nodes[0].cut - 0.5).abs() < 0.04);
        assert!((tree.value(&[0.9, 0.3]) - 1.0).abs() < 0.1 && (tree.value(&[0.1, 0.3]) + 1.0).abs() < 0.1);
        assert!(tree.is_sound(2) && !tree.is_sound(0));
        let only: Vec<f64> = (0..n).map(noise).collect();
        assert_eq!(grow(&data, &all, &only, &h, &growth), None);
    }

    #[test]
    fn bins_keep_ties_together() {
        let rows: Vec<f64> = (0..500).map(|i| f64::from(i % 3)).collect();
        let data = Binned::new(&rows, 1);
        assert_eq!(data.cuts, [vec![0.5, 1.5]]);
        assert!(rows.iter().zip(data.column(0)).all(|(x, b)| *x == f64::from(*b)));
        let many: Vec<f64> = (0..500).map(|i| if i < 400 { 7.0 } else { f64::from(i) }).collect();
        let cuts = &Binned::new(&many, 1).cuts[0];
        assert!(cuts.len() < BINS && cuts.windows(2).all(|w| w[0] < w[1]) && cuts[0] > 7.0);
    }
}
