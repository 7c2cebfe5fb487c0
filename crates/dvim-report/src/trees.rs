//! Boosted hazards in a file: thousands of small trees, in few bytes.

use dvim::internal::boost::{Node, Tree};
use dvim::internal::boosted::{Boosted, PIECES};
use dvim::internal::curve::Grid;
use serde::{Deserialize, Serialize};

/// Questions from the root to a leaf, at most: a file may ask for more, and is refused.
const DEEPEST: usize = 16;

/// Boosted hazards of a fold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BoostedRecord {
    /// Logarithms of the baseline hazards of the arms.
    log_rates: [Vec<f64>; 2],
    /// Where trees cut each of their columns, ascending.
    cuts: Vec<Vec<f64>>,
    /// Tree after tree, each node before its children, the left one first: 0 for a leaf, else one more than the place
    /// of the question in the list of all cuts.
    nodes: Vec<u32>,
    /// What the leaves add, in that order.
    leaves: Vec<f32>,
}

impl BoostedRecord {
    pub(crate) fn of(boosted: &Boosted) -> BoostedRecord {
        let splits =
            || boosted.trees.iter().flat_map(|t| &t.nodes).filter_map(|n| Some((n.covariate? as usize, n.cut)));
        let n_columns = splits().map(|(j, _)| j + 1).max().unwrap_or(0);
        let mut cuts: Vec<Vec<f64>> = vec![Vec::new(); n_columns];
        splits().for_each(|(j, cut)| cuts[j].push(cut));
        for of_column in &mut cuts {
            of_column.sort_unstable_by(f64::total_cmp);
            of_column.dedup();
        }
        let before: Vec<usize> = cuts
            .iter()
            .scan(0, |sum, c| {
                *sum += c.len();
                Some(*sum - c.len())
            })
            .collect();
        let (mut nodes, mut leaves) = (Vec::new(), Vec::new());
        for tree in &boosted.trees {
            let mut next = vec![0];
            while let Some(at) = next.pop() {
                let node = &tree.nodes[at];
                match node.covariate.map(|j| j as usize) {
                    None => {
                        nodes.push(0);
                        leaves.push(node.value as f32);
                    }
                    Some(j) => {
                        nodes.push((1 + before[j] + cuts[j].partition_point(|c| *c < node.cut)) as u32);
                        next.extend([node.left as usize + 1, node.left as usize]);
                    }
                }
            }
        }
        let log_rates = boosted.log_rates.map(|r| r.to_vec()).into_array();
        BoostedRecord { log_rates, cuts, nodes, leaves }
    }

    pub(crate) fn boosted(&self, horizon: f64) -> Result<Boosted, String> {
        let rates = |r: &Vec<f64>| <[f64; PIECES]>::try_from(r.as_slice()).map_err(|_| "hazards have other pieces");
        let [control, treated] = &self.log_rates;
        let log_rates = dvim::internal::arm::ByArm { control: rates(control)?, treated: rates(treated)? };
        let questions: Vec<(u32, f64)> =
            self.cuts.iter().zip(0..).flat_map(|(c, j)| c.iter().map(move |cut| (j, *cut))).collect();
        let mut reader = Reader { questions: &questions, nodes: self.nodes.iter(), leaves: self.leaves.iter() };
        let mut trees = Vec::new();
        while !reader.nodes.as_slice().is_empty() {
            let mut nodes = vec![LEAF];
            reader.node(&mut nodes, 0, DEEPEST)?;
            trees.push(Tree { nodes });
        }
        Ok(Boosted { log_rates, trees, grid: Grid::new(horizon) })
    }
}

const LEAF: Node = Node { covariate: None, cut: 0.0, left: 0, value: 0.0 };

/// What of a record is still to be read.
struct Reader<'a> {
    questions: &'a [(u32, f64)],
    nodes: std::slice::Iter<'a, u32>,
    leaves: std::slice::Iter<'a, f32>,
}

impl Reader<'_> {
    /// Reads a node into its place, and all below it behind what is there.
    fn node(&mut self, out: &mut Vec<Node>, at: usize, deeper: usize) -> Result<(), String> {
        let bad = || "a tree does not hold together".to_string();
        let Some(question) = self.nodes.next().ok_or_else(bad)?.checked_sub(1) else {
            let value = f64::from(*self.leaves.next().ok_or_else(bad)?);
            out[at] = Node { value, ..LEAF };
            return Ok(());
        };
        let (covariate, cut) = *self.questions.get(question as usize).ok_or_else(bad)?;
        let (left, deeper) = (out.len(), deeper.checked_sub(1).ok_or_else(bad)?);
        out.extend([LEAF; 2]);
        out[at] = Node { covariate: Some(covariate), cut, left: left as u32, ..LEAF };
        self.node(out, left, deeper)?;
        self.node(out, left + 1, deeper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dvim::internal::arm::ByArm;

    #[test]
    fn trees_come_back_as_they_were() {
        let split = |covariate, cut, left| Node { covariate: Some(covariate), cut, left, value: 0.0 };
        let leaf = |value| Node { value, ..LEAF };
        let deep = vec![split(3, 0.25, 1), leaf(0.5), split(0, -1.5, 3), leaf(-0.125), leaf(1.0)];
        let trees = vec![Tree { nodes: deep }, Tree { nodes: vec![leaf(2.0)] }];
        let boosted = Boosted { log_rates: ByArm::of(|_| [0.1; PIECES]), trees, grid: Grid::new(7.0) };
        let record = BoostedRecord::of(&boosted);
        assert_eq!(record.boosted(7.0), Ok(boosted));
        let text = serde_json::to_string(&record).expect("a record");
        assert_eq!(serde_json::from_str::<BoostedRecord>(&text).expect("the record"), record);
        for damaged in [
            BoostedRecord { leaves: Vec::new(), ..record.clone() },
            BoostedRecord { nodes: vec![1, 0], ..record.clone() },
            BoostedRecord { nodes: vec![9, 0, 0], ..record.clone() },
            BoostedRecord { nodes: vec![1; 100], ..record.clone() },
            BoostedRecord { log_rates: [vec![0.0], vec![0.0]], ..record.clone() },
        ] {
            assert!(damaged.boosted(7.0).is_err(), "{damaged:?}");
        }
    }
}
