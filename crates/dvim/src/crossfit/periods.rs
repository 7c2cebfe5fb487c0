//! How boosted hazards are learned: see [`crate::boosted`].

use crate::arm::{Arm, ByArm};
use crate::boost::{Binned, Growth, boost};
use crate::boosted::{Boosted, CELLS_OF_PIECE, PIECES, ends};
use crate::cohort::Cohort;
use crate::curve::Grid;
use crate::nuisance::Rows;

/// Trees of a model.
const TREES: usize = 100;
/// Deep enough for what three covariates, the arm and the time do together (at depth 3 a ring of two covariates is half
/// lost); a ridge of twenty events in each leaf holds what such leaves would make of chance.
const GROWTH: Growth = Growth { depth: 5, rate: 0.1, ridge: 20.0, fewest: 30, caution: 0.0 };
/// Events by which the baseline of an arm in a piece is drawn towards hazards that are proportional.
const DRAWN: f64 = 5.0;

/// What was seen of some units in each piece that they entered, ready to learn from: a row for each.
pub(crate) struct Periods {
    /// Row-major: covariates, arm, piece.
    rows: Vec<f64>,
    binned: Binned,
    /// Of each row, in units of the horizon.
    exposed: Vec<f64>,
    event: Vec<bool>,
    /// The rows of a unit of the cohort: from here to that of the next.
    first: Vec<u32>,
    arms: Vec<(Arm, u8)>,
    grid: Grid,
}

impl Periods {
    /// Of some units, ascending.
    pub(crate) fn of(cohort: &Cohort, of_cohort: &Rows<'_>, units: &[u32], grid: &Grid) -> Periods {
        let (mut rows, mut exposed, mut event, mut arms) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut first = Vec::with_capacity(cohort.n_units() + 1);
        let mut units = units.iter().copied().peekable();
        for i in 0..cohort.n_units() {
            first.push(exposed.len() as u32);
            if units.next_if_eq(&(i as u32)).is_none() {
                continue;
            }
            let (time, arm) = (cohort.time(i), cohort.arm(i));
            let last = grid.place(time).0 / CELLS_OF_PIECE;
            for k in 0..=last {
                let (from, to) = ends(grid, k);
                rows.extend_from_slice(of_cohort.row(i));
                rows.extend([arm.index() as f64, k as f64]);
                exposed.push((time.min(to) - from).max(0.0) / grid.horizon());
                event.push(k == last && cohort.event(i));
                arms.push((arm, k as u8));
            }
        }
        first.push(exposed.len() as u32);
        // Not at quantiles of these rows: how many a unit has is its outcome, which must not move a cut.
        let mut cuts = of_cohort.cuts().to_vec();
        cuts.extend([vec![0.5], (1..PIECES).map(|k| k as f64 - 0.5).collect()]);
        let binned = Binned::cut_at(&rows, cuts);
        Periods { rows, binned, exposed, event, first, arms, grid: *grid }
    }

    /// Learns from some of the units.
    pub(crate) fn learn(&self, training: &[u32]) -> Boosted {
        let rows: Vec<u32> =
            training.iter().flat_map(|&i| self.first[i as usize]..self.first[i as usize + 1]).collect();
        let log_rates = self.baselines(&rows);
        let offset = |r: usize| log_rates[self.arms[r].0][self.arms[r].1 as usize];
        let slopes = |r: usize, score: f64| {
            let expected = self.exposed[r] * libm::exp(score.clamp(-30.0, 30.0));
            (f64::from(u8::from(self.event[r])) - expected, expected)
        };
        let mut trees = boost(&self.binned, &self.rows, &rows, offset, slopes, TREES, &GROWTH);
        // As many digits as a file keeps, and nothing that is not used.
        for node in trees.iter_mut().flat_map(|t| &mut t.nodes) {
            node.value = if node.covariate.is_none() { f64::from(node.value as f32) } else { 0.0 };
        }
        Boosted { log_rates, trees, grid: self.grid }
    }

    /// Of each arm: proportional to each other, and from there towards what is seen in each piece.
    fn baselines(&self, rows: &[u32]) -> ByArm<[f64; PIECES]> {
        let mut events = ByArm::of(|_| [0.0; PIECES]);
        let mut exposed = ByArm::of(|_| [0.0; PIECES]);
        for &r in rows {
            let (r, (arm, k)) = (r as usize, self.arms[r as usize]);
            events[arm][k as usize] += f64::from(u8::from(self.event[r]));
            exposed[arm][k as usize] += self.exposed[r];
        }
        let both = |of: &ByArm<[f64; PIECES]>, k: usize| of.control[k] + of.treated[k];
        let mut last = 1e-3;
        let pooled: [f64; PIECES] = std::array::from_fn(|k| {
            // A piece without events has few, and one that nobody reaches is like the one before.
            let (d, e) = (both(&events, k), both(&exposed, k));
            last = if e > 0.0 { (d + 0.5) / (e + 0.5 / last) } else { last };
            last
        });
        ByArm::of(|arm| {
            let expected: [f64; PIECES] = std::array::from_fn(|k| pooled[k] * exposed[arm][k]);
            let ratio = (events[arm].iter().sum::<f64>() + 0.5) / (expected.iter().sum::<f64>() + 0.5);
            std::array::from_fn(|k| {
                let drawn = (events[arm][k] + DRAWN) / (ratio * expected[k] + DRAWN);
                libm::log(pooled[k] * ratio * drawn)
            })
        })
    }
}
