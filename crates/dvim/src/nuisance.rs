//! What is estimated on the way to an average: who is treated, and who is lost, given covariates.
//!
//! Both are cross-fitted: a unit's value comes from models that did not see the unit. Each begins with a linear model
//! with a little ridge; boosted trees ([`crate::boost`]) are added beside it where they predict units that they did not
//! see better, and left out where they do not.
//!
//! *Treatment*: `logit P(treated | x)`. *Loss to follow-up*, in each arm: the hazard of being lost is
//! `λ(t) exp f(x)`, λ constant between the knots of the curve's grid. Where f predicts no better than a constant the
//! arm's Kaplan–Meier curve of censoring is used, as it would be if censoring were known to depend on the arm alone.

use crate::arm::{Arm, ByArm};
use crate::boost::{Binned, Growth, Tree, boost, sum_of};
use crate::cohort::Cohort;
use crate::curve::{CELLS, Grid};
use crate::distribution::chi_squared_upper_tail;
use crate::numeric::{expit, log1pexp};
use crate::split::deal_folds;
use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;

/// Folds of the nuisances.
const FOLDS: usize = 5;
/// Deals the folds of the nuisances, whatever the run's seed: what averages rest on should not move with it.
const KEY: u64 = 0x6e75_6973;
/// Ridge of linear models, on covariates of unit standard deviation: worth two units, so that nothing is separated.
const RIDGE: f64 = 2.0;
/// Trees are tried at these numbers.
const ROUNDS: [usize; 6] = [0, 10, 20, 40, 80, 120];
/// Any split may grow: how many trees are used is decided by units that they did not see.
const GROWTH: Growth = Growth { depth: 3, rate: 0.1, ridge: 5.0, fewest: 20, caution: 0.0 };
/// A richer model must predict better by this many standard errors.
const CAUTION: f64 = 2.0;
/// The same for what is only balanced, which costs little where it is noise.
const LITTLE_CAUTION: f64 = 1.0;
/// Standard deviations beyond which a residual counts as this far.
const FAR: f64 = 4.0;
/// Units that the models learn from, at most.
const MOST_UNITS: usize = 50_000;

/// Covariates of a cohort, standardised, row-major, as they are and in bins.
pub(crate) struct Rows<'a> {
    pub(crate) x: &'a [f64],
    pub(crate) p: usize,
    binned: Binned,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(x: &'a [f64], p: usize) -> Rows<'a> {
        Rows { x, p, binned: Binned::new(x, p) }
    }

    /// Where each covariate is cut into bins, by the covariates of the cohort alone.
    pub(crate) fn cuts(&self) -> &[Vec<f64>] {
        self.binned.cuts()
    }

    pub(crate) fn row(&self, i: usize) -> &'a [f64] {
        &self.x[i * self.p..(i + 1) * self.p]
    }
}

/// A linear function, its intercept first.
fn line(b: &[f64], x: &[f64]) -> f64 {
    b[0] + b[1..].iter().zip(x).map(|(b, x)| b * x).sum::<f64>()
}

/// Climbs a concave likelihood of a linear score with ridge: gradient and curvature of each row at its score come from
/// `slopes`. Also the information at the end.
fn climb(
    rows: &Rows<'_>,
    of: &[u32],
    slopes: impl Fn(usize, f64) -> (f64, f64) + Sync,
    start: f64,
) -> (Vec<f64>, DMatrix<f64>) {
    let width = rows.p + 1;
    let mut b = vec![0.0; width];
    b[0] = start;
    let mut information = DMatrix::identity(width, width);
    for _ in 0..30 {
        let mut gradient = vec![0.0; width];
        let mut curvature = vec![0.0; width * width];
        let mut full = vec![1.0; width];
        for &i in of {
            full[1..].copy_from_slice(rows.row(i as usize));
            let (g, h) = slopes(i as usize, line(&b, &full[1..]));
            for j in 0..width {
                gradient[j] += g * full[j];
                let hx = h * full[j];
                curvature[j * width..j * width + j + 1].iter_mut().zip(&full).for_each(|(c, x)| *c += hx * x);
            }
        }
        (1..width).for_each(|j| gradient[j] -= RIDGE * b[j]);
        information = DMatrix::from_fn(width, width, |i, j| {
            let ridge = if i != j {
                0.0
            } else if i == 0 {
                1e-9
            } else {
                RIDGE
            };
            curvature[i.max(j) * width + i.min(j)] + ridge
        });
        let Some(factor) = information.clone().cholesky() else { break };
        let step = factor.solve(&DVector::from_vec(gradient));
        // A step that moves scores far is shortened.
        let far = of.iter().map(|&i| line(step.as_slice(), rows.row(i as usize)).abs()).fold(0.0, f64::max);
        let shorter = f64::min(1.0, 3.0 / far.max(1e-300));
        b.iter_mut().zip(step.iter()).for_each(|(b, s)| *b += shorter * s);
        if far < 1e-8 {
            break;
        }
    }
    (b, information)
}

/// A score of covariates that one fold learned: a line, and trees beside it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scored {
    /// The intercept first; covariates beyond it have no slope.
    pub(crate) line: Vec<f64>,
    pub(crate) trees: Vec<Tree>,
}

impl Scored {
    /// With as many of the trees as were chosen.
    fn new(line: Vec<f64>, mut trees: Vec<Tree>, chosen: usize) -> Scored {
        trees.truncate(ROUNDS[chosen]);
        Scored { line, trees }
    }

    /// The score of a row that none of the folds saw.
    pub(crate) fn of(&self, x: &[f64]) -> f64 {
        line(&self.line, x) + sum_of(&self.trees, x)
    }

    /// The mean score over folds.
    pub(crate) fn mean(folds: &[Scored], x: &[f64]) -> f64 {
        folds.iter().map(|fold| fold.of(x)).sum::<f64>() / folds.len().max(1) as f64
    }
}

/// Who is treated, given covariates.
#[derive(Clone, Debug, PartialEq)]
pub struct Propensity {
    /// What each fold learned: `logit P(treated | covariates)`, for patients whom no fold saw.
    pub(crate) folds: Vec<Scored>,
    /// P(treated | covariates) of each unit, by models that did not see it.
    pub of_unit: Vec<f64>,
    /// Whether trees were needed beside the linear model.
    pub is_flexible: bool,
    /// Area under the receiver operating characteristic of units that the models did not see: of the linear model, and
    /// of the one with trees.
    pub auc: [f64; 2],
}

/// Scores of each unit at each number of trees that is tried, by models that did not see the unit.
struct OutOfFold {
    scores: Vec<[f64; ROUNDS.len()]>,
    /// The line and the trees of each fold.
    folds: Vec<(Vec<f64>, Vec<Tree>)>,
}

/// The number of trees whose loss is least, if by this many standard errors; 0 else. `difference` is a unit's loss at a
/// number of trees less that without.
fn chosen(units: &[u32], caution: f64, difference: impl Fn(usize, usize) -> f64) -> usize {
    let n = units.len() as f64;
    let score = |r: usize| {
        let all: Vec<f64> = units.iter().map(|&i| difference(i as usize, r)).collect();
        let mean = all.iter().sum::<f64>() / n;
        let square: f64 = all.iter().map(|d| (d - mean) * (d - mean)).sum();
        mean + caution * (square / (n - 1.0).max(1.0) / n).sqrt()
    };
    let mut best = (0, 0.0);
    for r in 1..ROUNDS.len() {
        let loss = score(r);
        if loss < best.1 {
            best = (r, loss);
        }
    }
    best.0
}

fn folds_of(cohort: &Cohort) -> Vec<u8> {
    let clusters = cohort.extras().cluster.as_ref().and_then(|c| c.iter().max()).map_or(FOLDS, |c| *c as usize + 1);
    deal_folds(cohort, FOLDS.min(clusters), KEY)
}

/// At most so many rows, as they come in the order of ids.
fn thinned(units: Vec<u32>) -> Vec<u32> {
    let by = units.len().div_ceil(MOST_UNITS).max(1);
    units.into_iter().step_by(by).collect()
}

/// Scores of some units by models of the others: linear, and with trees beside.
fn out_of_fold(
    rows: &Rows<'_>,
    folds: &[u8],
    units: &[u32],
    slopes: impl Fn(usize, f64) -> (f64, f64) + Sync,
    start: f64,
) -> OutOfFold {
    let n = rows.x.len() / rows.p.max(1);
    let n_folds = folds.iter().copied().max().map_or(1, |f| f as usize + 1);
    type OfFold = (Vec<(u32, [f64; ROUNDS.len()])>, (Vec<f64>, Vec<Tree>));
    let of_folds: Vec<OfFold> = (0..n_folds)
        .into_par_iter()
        .map(|fold| {
            let (out, training): (Vec<u32>, Vec<u32>) =
                units.iter().partition(|&&i| folds[i as usize] as usize == fold);
            let training = thinned(training);
            let (b, _) = climb(rows, &training, &slopes, start);
            let linear = |i: usize| line(&b, rows.row(i));
            let most = ROUNDS[ROUNDS.len() - 1];
            let trees = boost(&rows.binned, rows.x, &training, linear, &slopes, most, &GROWTH);
            let scores = out
                .par_iter()
                .with_min_len(256)
                .map(|&i| (i, at_rounds(linear(i as usize), &trees, rows.row(i as usize))))
                .collect();
            (scores, (b, trees))
        })
        .collect();
    let mut scores = vec![[start; ROUNDS.len()]; n];
    let (of_units, folds): (Vec<_>, Vec<_>) = of_folds.into_iter().unzip();
    of_units.into_iter().flatten().for_each(|(i, s)| scores[i as usize] = s);
    OutOfFold { scores, folds }
}

fn at_rounds(linear: f64, trees: &[Tree], x: &[f64]) -> [f64; ROUNDS.len()] {
    let (mut sum, mut done) = (linear, 0);
    ROUNDS.map(|r| {
        let until = r.min(trees.len());
        sum += sum_of(&trees[done..until], x);
        done = until;
        sum
    })
}

impl Propensity {
    /// Of a cohort with these standardised covariates.
    pub(crate) fn of(cohort: &Cohort, rows: &Rows<'_>) -> Propensity {
        let n = cohort.n_units();
        let treated = |i: usize| f64::from(u8::from(cohort.arm(i) == Arm::Treated));
        let slopes = |i: usize, score: f64| {
            let (e, w) = (expit(score), cohort.weight(i));
            (w * (treated(i) - e), w * (e * (1.0 - e)).max(1e-6))
        };
        let share = (0..n).map(treated).sum::<f64>() / n as f64;
        let all: Vec<u32> = (0..n as u32).collect();
        let start = libm::log(share / (1.0 - share));
        let found = out_of_fold(rows, &folds_of(cohort), &all, slopes, start);
        let loss = |i: usize, r: usize| {
            let score = found.scores[i][r];
            cohort.weight(i) * (log1pexp(score) - treated(i) * score)
        };
        let best = chosen(&all, CAUTION, |i, r| loss(i, r) - loss(i, 0));
        let auc = |r: usize| area(&found.scores, r, |i| cohort.arm(i) == Arm::Treated);
        Propensity {
            folds: found.folds.into_iter().map(|(line, trees)| Scored::new(line, trees, best)).collect(),
            of_unit: found.scores.iter().map(|s| expit(s[best])).collect(),
            is_flexible: best > 0,
            auc: [auc(0), auc(best)],
        }
    }
}

/// What covariates still explain of the residuals of an arm.
pub(crate) struct Left {
    /// Of every unit of the cohort, by trees that did not see the unit.
    pub(crate) of_unit: Vec<f64>,
    /// What each fold learned.
    pub(crate) folds: Vec<Scored>,
}

/// What covariates still explain of the residuals of an arm, by boosted trees; `None` where they explain nothing in
/// units that they did not see.
pub(crate) fn left_in(
    cohort: &Cohort,
    rows: &Rows<'_>,
    arm: Arm,
    residual: impl Fn(usize) -> f64 + Sync,
) -> Option<Left> {
    let (folds, units) = (folds_of(cohort), cohort.units_of(arm));
    let n_folds = folds.iter().copied().max().map_or(1, |f| f as usize + 1);
    if rows.p == 0 || units.len() < 4 * GROWTH.fewest {
        return None;
    }
    let seen = spread_of(&units, &residual);
    // One far residual must not carry a tree.
    let near = |i: usize| residual(i).clamp(seen.0 - FAR * seen.1, seen.0 + FAR * seen.1);
    type OfFold = (Vec<(u32, [f64; ROUNDS.len()])>, (f64, Vec<Tree>));
    let of_folds: Vec<OfFold> = (0..n_folds)
        .into_par_iter()
        .map(|fold| {
            let training = units.iter().copied().filter(|&i| folds[i as usize] as usize != fold);
            let training = thinned(training.collect());
            let start = spread_of(&training, near).0;
            let slopes = |i: usize, score: f64| (cohort.weight(i) * (near(i) - score), cohort.weight(i));
            let most = ROUNDS[ROUNDS.len() - 1];
            let trees = boost(&rows.binned, rows.x, &training, |_| start, slopes, most, &GROWTH);
            let out = (0..cohort.n_units() as u32).into_par_iter().with_min_len(256);
            let out = out.filter(|&i| folds[i as usize] as usize == fold);
            let scores = out.map(|i| (i, at_rounds(start, &trees, rows.row(i as usize)))).collect();
            (scores, (start, trees))
        })
        .collect();
    let mut scores = vec![[0.0; ROUNDS.len()]; cohort.n_units()];
    let (of_units, learned): (Vec<_>, Vec<_>) = of_folds.into_iter().unzip();
    of_units.into_iter().flatten().for_each(|(i, s)| scores[i as usize] = s);
    let loss = |i: usize, r: usize| cohort.weight(i) * (near(i) - scores[i][r]) * (near(i) - scores[i][r]);
    let best = chosen(&units, LITTLE_CAUTION, |i, r| loss(i, r) - loss(i, 0));
    (best > 0).then(|| Left {
        of_unit: scores.iter().map(|s| s[best]).collect(),
        folds: learned.into_iter().map(|(start, trees)| Scored::new(vec![start], trees, best)).collect(),
    })
}

/// Mean and standard deviation over some units.
fn spread_of(units: &[u32], value: impl Fn(usize) -> f64) -> (f64, f64) {
    let n = units.len().max(1) as f64;
    let mean = units.iter().map(|&i| value(i as usize)).sum::<f64>() / n;
    let square: f64 = units.iter().map(|&i| (value(i as usize) - mean).powi(2)).sum();
    (mean, (square / n).sqrt())
}

/// Area under the receiver operating characteristic; ties count half.
fn area(scores: &[[f64; ROUNDS.len()]], r: usize, positive: impl Fn(usize) -> bool) -> f64 {
    let mut order: Vec<(f64, bool)> = scores.iter().enumerate().map(|(i, s)| (s[r], positive(i))).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut sum) = (0.0, 0.0);
    let mut positives = 0.0;
    for tied in order.chunk_by(|a, b| a.0 == b.0) {
        let yes = tied.iter().filter(|t| t.1).count() as f64;
        let no = tied.len() as f64 - yes;
        sum += yes * (below + 0.5 * no);
        (below, positives) = (below + no, positives + yes);
    }
    if below > 0.0 && positives > 0.0 { sum / (below * positives) } else { 0.5 }
}

/// A hazard that is constant between the knots of a grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Baseline {
    pub(crate) rates: [f64; CELLS],
}

impl Baseline {
    /// From times, whether each ends with the event that is counted, and each one's weight and relative hazard.
    pub(crate) fn of(grid: &Grid, units: impl Iterator<Item = (f64, bool, f64, f64)>) -> Baseline {
        let (mut events, mut exposed) = ([0.0; CELLS], [0.0; CELLS]);
        for (time, event, weight, ratio) in units {
            let (cell, into) = grid.place(time);
            (0..cell).for_each(|k| exposed[k] += weight * ratio * grid.width(k));
            exposed[cell] += weight * ratio * into * grid.width(cell);
            events[cell] += if event { weight } else { 0.0 };
        }
        // Cells that nobody reaches have the hazard of the one before.
        let mut last = 0.0;
        let rates = std::array::from_fn(|k| {
            if exposed[k] > 0.0 {
                last = events[k] / exposed[k];
            }
            last
        });
        Baseline { rates }
    }

    /// The hazard summed up to a time.
    pub(crate) fn until(&self, grid: &Grid, t: f64) -> f64 {
        let (cell, into) = grid.place(t);
        let whole: f64 = (0..cell).map(|k| self.rates[k] * grid.width(k)).sum();
        whole + self.rates[cell] * into * grid.width(cell)
    }

    fn rate(&self, grid: &Grid, t: f64) -> f64 {
        self.rates[grid.place(t).0]
    }
}

/// Who is lost to follow-up, given covariates, in each arm.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    /// Of each unit: its hazard of being lost relative to the baseline of its arm and fold; empty in arms where
    /// covariates do not matter.
    ratio: Vec<f64>,
    /// The baselines, by fold and arm; `None` in arms where covariates do not matter.
    baselines: Vec<ByArm<Option<Baseline>>>,
    folds: Vec<u8>,
    grid: Grid,
    /// What each fold learned of an arm in which covariates matter: how likely a patient is to be lost.
    pub(crate) learned: ByArm<Vec<(Scored, Baseline)>>,
    /// P values of the test that covariates do not matter.
    pub(crate) p: ByArm<Option<f64>>,
    /// Whether covariates are used.
    pub(crate) is_used: ByArm<bool>,
}

impl Loss {
    /// Of a cohort of which everybody is watched from the start, with one kind of event.
    pub(crate) fn of(cohort: &Cohort, rows: &Rows<'_>, grid: &Grid) -> Loss {
        let n = cohort.n_units();
        let folds = folds_of(cohort);
        let n_folds = folds.iter().copied().max().map_or(1, |f| f as usize + 1);
        let mut out = Loss {
            ratio: vec![1.0; n],
            baselines: vec![ByArm::of(|_| None); n_folds],
            folds,
            grid: *grid,
            learned: ByArm::of(|_| Vec::new()),
            p: ByArm::of(|_| None),
            is_used: ByArm::of(|_| false),
        };
        for arm in Arm::BOTH {
            out.learn(cohort, rows, arm);
        }
        out
    }

    fn learn(&mut self, cohort: &Cohort, rows: &Rows<'_>, arm: Arm) {
        let (units, grid) = (cohort.units_of(arm), self.grid);
        let lost = |i: usize| !cohort.event(i) && cohort.time(i) < cohort.horizon();
        let n_lost = units.iter().filter(|&&i| lost(i as usize)).count();
        if n_lost < FEWEST_LOST || rows.p == 0 {
            return;
        }
        let outcome = |i: usize| (cohort.time(i), lost(i), cohort.weight(i));
        let baseline = |of: &mut dyn Iterator<Item = u32>, ratio: &dyn Fn(usize) -> f64| {
            let units = of.map(|i| {
                let (time, lost, weight) = outcome(i as usize);
                (time, lost, weight, ratio(i as usize))
            });
            Baseline::of(&grid, units)
        };
        // The test: the score of a linear f, by the information at its maximum.
        let crude = baseline(&mut units.iter().copied(), &|_| 1.0);
        let exposed = |base: &Baseline, i: usize| cohort.weight(i) * base.until(&grid, cohort.time(i));
        let slopes = |base: &Baseline, i: usize, score: f64| {
            let expected = exposed(base, i) * libm::exp(score.clamp(-8.0, 8.0));
            let seen = if lost(i) { cohort.weight(i) } else { 0.0 };
            (seen - expected, expected.max(1e-9))
        };
        let some = thinned(units.clone());
        let (b, information) = climb(rows, &some, |i, s| slopes(&crude, i, s), 0.0);
        self.p[arm] = wald(&b, information, some.len() as f64 / units.len() as f64);
        // Out of fold: nothing, a line, and trees beside it. The baseline is that of the others, once more after the
        // line.
        let n_folds = self.baselines.len();
        type OutOfFold = Vec<(u32, f64, [f64; ROUNDS.len()])>;
        type Found = (Baseline, OutOfFold, [Baseline; ROUNDS.len()], (Vec<f64>, Vec<Tree>));
        let of_folds: Vec<Found> = (0..n_folds)
            .into_par_iter()
            .map(|fold| {
                let (out, training): (Vec<u32>, Vec<u32>) =
                    units.iter().partition(|&&i| self.folds[i as usize] as usize == fold);
                let training = thinned(training);
                let crude = baseline(&mut training.iter().copied(), &|_| 1.0);
                let (mut b, mut base) = (vec![0.0; rows.p + 1], crude);
                for _ in 0..3 {
                    b = climb(rows, &training, |i, s| slopes(&base, i, s), 0.0).0;
                    base =
                        baseline(&mut training.iter().copied(), &|i| libm::exp(line(&b, rows.row(i)).clamp(-8.0, 8.0)));
                    b[0] = 0.0;
                }
                let linear = |i: usize| line(&b, rows.row(i));
                let most = ROUNDS[ROUNDS.len() - 1];
                let trees = boost(&rows.binned, rows.x, &training, linear, |i, s| slopes(&base, i, s), most, &GROWTH);
                let of_training: Vec<[f64; ROUNDS.len()]> =
                    training.iter().map(|&i| at_rounds(linear(i as usize), &trees, rows.row(i as usize))).collect();
                let baselines = std::array::from_fn(|r| {
                    let units = training.iter().zip(&of_training).map(|(&i, s)| {
                        let (time, lost, weight) = outcome(i as usize);
                        (time, lost, weight, libm::exp(s[r].clamp(-8.0, 8.0)))
                    });
                    Baseline::of(&grid, units)
                });
                let scores = out.iter().map(|&i| (i, 0.0, at_rounds(linear(i as usize), &trees, rows.row(i as usize))));
                let scores = scores.collect();
                (crude, scores, baselines, (b, trees))
            })
            .collect();
        // Losses of each unit: with nothing, and at each number of trees.
        let mut losses: Vec<(f64, [f64; ROUNDS.len()])> = vec![(0.0, [0.0; ROUNDS.len()]); cohort.n_units()];
        for (crude, scores, baselines, _) in &of_folds {
            for (i, _, s) in scores {
                let (time, lost, weight) = outcome(*i as usize);
                let of = |base: &Baseline, score: f64| {
                    let rate = base.rate(&grid, time).max(1e-300);
                    let seen = if lost { libm::log(rate) + score } else { 0.0 };
                    weight * (base.until(&grid, time) * libm::exp(score.clamp(-8.0, 8.0)) - seen)
                };
                losses[*i as usize] = (of(crude, 0.0), std::array::from_fn(|r| of(&baselines[r], s[r])));
            }
        }
        let best = chosen(&units, CAUTION, |i, r| losses[i].1[r] - losses[i].1[0]);
        let n = units.len() as f64;
        let gains: Vec<f64> = units.iter().map(|&i| losses[i as usize].1[best] - losses[i as usize].0).collect();
        let mean = gains.iter().sum::<f64>() / n;
        let square: f64 = gains.iter().map(|g| (g - mean) * (g - mean)).sum();
        if mean + CAUTION * (square / (n - 1.0).max(1.0) / n).sqrt() >= 0.0 {
            return;
        }
        self.is_used[arm] = true;
        for (fold, (_, scores, baselines, (line, trees))) in of_folds.into_iter().enumerate() {
            self.baselines[fold][arm] = Some(baselines[best]);
            for (i, _, s) in &scores {
                self.ratio[*i as usize] = libm::exp(s[best].clamp(-8.0, 8.0));
            }
            self.learned[arm].push((Scored::new(line, trees, best), baselines[best]));
        }
    }

    /// The summed hazard of a unit's being lost, as a function of time; `None` where covariates do not matter in its
    /// arm.
    pub(crate) fn of_unit(&self, i: usize, arm: Arm) -> Option<LossOfUnit<'_>> {
        let baseline = self.baselines[self.folds[i] as usize][arm].as_ref()?;
        Some(LossOfUnit { grid: &self.grid, hazard: Hazard::Own { baseline, ratio: self.ratio[i] } })
    }
}

/// How a unit of these covariates is lost.
#[derive(Clone, Copy)]
pub(crate) struct LossOfUnit<'a> {
    grid: &'a Grid,
    hazard: Hazard<'a>,
}

#[derive(Clone, Copy)]
enum Hazard<'a> {
    /// By the fold that left the unit out.
    Own { baseline: &'a Baseline, ratio: f64 },
    /// By all folds, none of which saw the unit: each has its own hazard relative to its baseline.
    All { folds: &'a [(Scored, Baseline)], ratios: [f64; FOLDS] },
}

impl<'a> LossOfUnit<'a> {
    /// A patient whom no fold saw; `None` where covariates do not matter.
    pub(crate) fn of_newcomer(folds: &'a [(Scored, Baseline)], grid: &'a Grid, x: &[f64]) -> Option<LossOfUnit<'a>> {
        if folds.is_empty() {
            return None;
        }
        let mut ratios = [0.0; FOLDS];
        ratios.iter_mut().zip(folds).for_each(|(r, (f, _))| *r = libm::exp(f.of(x).clamp(-8.0, 8.0)));
        Some(LossOfUnit { grid, hazard: Hazard::All { folds, ratios } })
    }

    /// 1/G(t).
    pub(crate) fn inverse(&self, t: f64) -> f64 {
        let summed = match &self.hazard {
            Hazard::Own { baseline, ratio } => ratio * baseline.until(self.grid, t),
            Hazard::All { folds, ratios } => {
                let each = folds.iter().zip(ratios).map(|((_, baseline), ratio)| ratio * baseline.until(self.grid, t));
                each.sum::<f64>() / folds.len() as f64
            }
        };
        libm::exp(summed.min(50.0))
    }
}

/// Fewest who are lost in an arm for a model of who is lost.
const FEWEST_LOST: usize = 20;

/// P of the test that all slopes are zero.
fn wald(b: &[f64], information: DMatrix<f64>, share: f64) -> Option<f64> {
    let p = b.len() - 1;
    let covariance = information.cholesky()?.inverse();
    let block = covariance.view((1, 1), (p, p)).into_owned();
    let slopes = DVector::from_column_slice(&b[1..]);
    let statistic = slopes.dot(&block.cholesky()?.solve(&slopes)) / share.max(1e-300);
    Some(chi_squared_upper_tail(statistic, p))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cohort::Units;
    use crate::outcome::Extras;
    use crate::table::Ids;

    /// Numbers in (0, 1) that look random.
    fn part(i: usize, k: usize) -> f64 {
        let mut z = (i as u64 * 31 + k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    const N: usize = 2_000;

    /// Four covariates that are even on (−1, 1); treatment and loss as they are said to depend on them.
    fn cohort(treated: impl Fn(&[f64]) -> f64, lost: impl Fn(&[f64]) -> f64) -> (Cohort, Vec<f64>) {
        let x: Vec<f64> = (0..4 * N).map(|k| 2.0 * part(k / 4, k % 4) - 1.0).collect();
        let row = |i: usize| &x[4 * i..4 * i + 4];
        let outcome = |i: usize| {
            let (event, loss) = (-10.0 * part(i, 5).ln(), -part(i, 6).ln() / lost(row(i)));
            (event.min(loss).min(10.0), event < loss && event < 10.0)
        };
        let units = Units {
            ids: Ids::Integers((1..=N as i64).collect()),
            time: (0..N).map(|i| outcome(i).0).collect(),
            event: (0..N).map(|i| outcome(i).1).collect(),
            arm: (0..N).map(|i| if part(i, 7) < treated(row(i)) { Arm::Treated } else { Arm::Control }).collect(),
            covariates: x.clone(),
            names: (0..4).map(|j| format!("x{j}")).collect(),
            labels: ["0".into(), "1".into()],
            extras: Extras::default(),
        };
        (Cohort::from_parts(units, None, 10.0).expect("sound parts"), x)
    }

    #[test]
    fn trees_are_added_where_a_line_does_not_see_who_is_treated() {
        let (lines, x) = cohort(|x| expit(1.5 * x[0]), |_| 0.05);
        let of_lines = Propensity::of(&lines, &Rows::new(&x, 4));
        assert!(!of_lines.is_flexible && of_lines.auc[0] > 0.65, "{:?}", of_lines.auc);
        let (squares, x) = cohort(|x| if x[0] * x[1] > 0.0 { 0.8 } else { 0.2 }, |_| 0.05);
        let of_squares = Propensity::of(&squares, &Rows::new(&x, 4));
        assert!(of_squares.is_flexible && of_squares.auc[0] < 0.56 && of_squares.auc[1] > 0.7, "{:?}", of_squares.auc);
    }

    #[test]
    fn what_is_left_in_residuals_is_found_where_it_is_there() {
        let (halves, x) = cohort(|_| 0.5, |_| 0.05);
        let rows = Rows::new(&x, 4);
        let noise = |i: usize| part(i, 8) - 0.5;
        let squares = |i: usize| if x[4 * i] * x[4 * i + 1] > 0.0 { 0.4 } else { -0.4 };
        let left = left_in(&halves, &rows, Arm::Treated, |i| squares(i) + noise(i)).expect("there is something");
        let found = left.of_unit;
        // Of patients of either arm, near what was put in.
        let error = (0..N).map(|i| (found[i] - squares(i)).abs()).sum::<f64>() / N as f64;
        assert!(error < 0.15, "{error}");
        let by_chance = Arm::BOTH.map(|z| left_in(&halves, &rows, z, noise).is_some());
        assert_eq!(by_chance, [false, false]);
    }

    #[test]
    fn covariates_are_used_where_they_say_who_is_lost() {
        let (by_chance, x) = cohort(|_| 0.5, |_| 0.1);
        let grid = Grid::of(&by_chance);
        let loss = Loss::of(&by_chance, &Rows::new(&x, 4), &grid);
        assert!(Arm::BOTH.iter().all(|&z| !loss.is_used[z] && loss.of_unit(3, z).is_none()));
        assert!(loss.p.iter().all(|p| p.is_some_and(|p| p > 1e-3)), "{:?}", loss.p);
        let rate = |x: &[f64]| 0.1 * libm::exp(1.2 * x[1]);
        let (by_covariate, x) = cohort(|_| 0.5, rate);
        let loss = Loss::of(&by_covariate, &Rows::new(&x, 4), &grid);
        assert!(loss.p.iter().all(|p| p.is_some_and(|p| p < 1e-6)), "{:?}", loss.p);
        // The model of the others is near the truth.
        let error = |i: usize| {
            let found = loss.of_unit(i, by_covariate.arm(i)).expect("covariates matter").inverse(5.0);
            (libm::log(found) - 5.0 * rate(&x[4 * i..4 * i + 4])).abs()
        };
        let mean = (0..N).map(error).sum::<f64>() / N as f64;
        assert!(mean < 0.12, "{mean}");
    }

    #[test]
    fn areas_by_hand() {
        // Of six pairs, four in order and one tied.
        let scores = [0.1, 0.2, 0.2, 0.4, 0.3].map(|s| [s; ROUNDS.len()]);
        let treated = [false, true, false, true, false];
        assert!((area(&scores, 0, |i| treated[i]) - 4.5 / 6.0).abs() < 1e-12);
    }
}
