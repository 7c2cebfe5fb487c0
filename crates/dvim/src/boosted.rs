//! Boosted hazards: what a sum of small trees says of a patient's curve.
//!
//! The horizon is cut into [`PIECES`]. Within a piece the hazard of a patient of an arm is constant:
//! `ln λ = ln λ₀(arm, piece) + Σ trees(covariates, arm, piece)`. Trees may ask for the arm and for the piece as for any
//! covariate, so effects may depend on covariates, and hazards may cross. Nothing is a straight line, and nobody need
//! be cured: this is what the cure model is not, and so it is worth having beside it.

use crate::arm::{Arm, ByArm};
use crate::boost::{Node, Tree};
use crate::curve::{CELLS, Grid};
use crate::estimand::ByEstimand;

/// Pieces of the horizon with a hazard of their own: each holds three cells of the curve's grid.
pub const PIECES: usize = 8;
pub(crate) const CELLS_OF_PIECE: usize = CELLS / PIECES;

/// Boosted hazards of both arms.
#[derive(Clone, Debug, PartialEq)]
pub struct Boosted {
    /// Logarithms of the baseline hazards.
    pub log_rates: ByArm<[f64; PIECES]>,
    /// The trees. Their columns are the standardised covariates, then the arm (0 or 1), then the piece.
    pub trees: Vec<Tree>,
    /// The grid whose cells the pieces hold.
    pub grid: Grid,
}

/// Where a piece begins and ends.
pub(crate) fn ends(grid: &Grid, piece: usize) -> (f64, f64) {
    (grid.times()[piece * CELLS_OF_PIECE], grid.times()[(piece + 1) * CELLS_OF_PIECE])
}

impl Boosted {
    /// The logit of S(H) and the log of E[T | T < H] in an arm, for a row of standardised covariates.
    pub(crate) fn values(&self, x: &[f64], arm: Arm) -> ByEstimand<f64> {
        let mut score = self.log_rates[arm];
        for tree in &self.trees {
            add(&tree.nodes, 0, u8::MAX, x, arm, &mut score);
        }
        // The area under S, and the hazard summed up.
        let (mut area, mut summed, mut survival) = (0.0, 0.0, 1.0);
        for (k, score) in score.iter().enumerate() {
            let (from, to) = ends(&self.grid, k);
            let rate = libm::exp(score.clamp(-30.0, 30.0) - libm::log(self.grid.horizon()));
            summed += rate * (to - from);
            let next = libm::exp(-summed);
            let lost = survival - next;
            area += if lost > 1e-12 { lost / rate } else { survival * (to - from) };
            survival = next;
        }
        let (horizon, summed) = (self.grid.horizon(), summed.clamp(1e-9, 30.0));
        let end = libm::exp(-summed);
        let mean = (area - horizon * end) / (1.0 - end);
        // logit e^−Λ = −ln(e^Λ − 1).
        ByEstimand {
            cure: -libm::log(libm::expm1(summed)),
            time: libm::log(mean.clamp(1e-6 * horizon, horizon.next_down())),
        }
    }

    /// Whether its parts fit a cohort with so many covariates: one that was read from a file may not be.
    pub fn is_sound(&self, n_covariates: usize) -> bool {
        self.log_rates.iter().all(|r| r.iter().all(|x| x.is_finite()))
            && self.trees.iter().all(|tree| tree.is_sound(n_covariates + 2))
    }
}

/// Adds what a tree says of a patient in the pieces of a set.
fn add(nodes: &[Node], at: usize, pieces: u8, x: &[f64], arm: Arm, score: &mut [f64; PIECES]) {
    let Some(node) = nodes.get(at).filter(|_| pieces != 0) else { return };
    let Some(j) = node.covariate.map(|j| j as usize) else {
        (0..PIECES).filter(|k| pieces >> k & 1 == 1).for_each(|k| score[k] += node.value);
        return;
    };
    let left = node.left as usize;
    if j == x.len() + 1 {
        let low = (0..PIECES).filter(|&k| k as f64 <= node.cut).fold(0, |set, k| set | 1 << k);
        add(nodes, left, pieces & low, x, arm, score);
        add(nodes, left + 1, pieces & !low, x, arm, score);
        return;
    }
    let value = if j == x.len() { arm.index() as f64 } else { x[j] };
    add(nodes, left + usize::from(value > node.cut), pieces, x, arm, score);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(rate: f64) -> Boosted {
        let log_rates = ByArm::of(|_| [libm::log(rate); PIECES]);
        Boosted { log_rates, trees: Vec::new(), grid: Grid::new(10.0) }
    }

    /// A hazard of 0.1 over 10, which is 1 in units of the horizon: S(H) = e⁻¹, and the mean of an exponential time
    /// truncated there.
    #[test]
    fn a_constant_hazard_by_hand() {
        let found = constant(1.0).values(&[], Arm::Control);
        let s = libm::exp(-1.0);
        assert!((found.cure - libm::log(s / (1.0 - s))).abs() < 1e-12);
        assert!((libm::exp(found.time) - (10.0 - 10.0 * s / (1.0 - s))).abs() < 1e-12);
        let none = constant(1e-13).values(&[], Arm::Control);
        assert!(none.cure > 20.0 && none.time.is_finite());
    }

    /// Twice the hazard for treated patients above a half, from the fourth piece on.
    #[test]
    fn trees_ask_for_covariates_arms_and_pieces() {
        let split = |j, cut, left| Node { covariate: Some(j), cut, left, value: 0.0 };
        let leaf = |value| Node { covariate: None, cut: 0.0, left: 0, value };
        let two = libm::log(2.0);
        let nodes =
            vec![split(0, 0.5, 1), leaf(0.0), split(1, 0.5, 3), leaf(0.0), split(2, 2.5, 5), leaf(0.0), leaf(two)];
        let model = Boosted { trees: vec![Tree { nodes }], ..constant(1.0) };
        assert!(model.is_sound(1) && !model.is_sound(0));
        let plain = constant(1.0).values(&[0.0], Arm::Treated);
        for (x, arm) in [(0.4, Arm::Treated), (0.6, Arm::Control)] {
            assert_eq!(model.values(&[x], arm), plain);
        }
        let found = model.values(&[0.6], Arm::Treated);
        // Pieces end at 10 (k/8)²: the first three at 90/64.
        let summed = 9.0 / 64.0 + 2.0 * 55.0 / 64.0;
        assert!((found.cure + libm::log(libm::expm1(summed))).abs() < 1e-12);
    }
}
