//! Mixture cure model of both arms at once, shrunk towards what the arms have in common.
//!
//! What is estimated, for a unit with covariates `x` under each arm `z` and a horizon `H`: `P(T ≥ H | x, z)` and
//! `E[T | T < H, x, z]`, by a mixture cure model whose slopes are `θ_z = common + own_z`. Slopes are shrunk by an
//! empirical-Bayes mixture prior with a point mass at zero, one for each of twelve blocks, so that without evidence for
//! a difference between the arms there is none in the model. Squares, steps, hinges and products of covariates enter
//! where a score test asks for them.
//!
//! [`fit`] takes a training set and nothing else, and what it gives is [`Trained`]. Derivations and the reason of every
//! constant: docs/methods-joint.md.
//!
//! Absent on purpose: folds, groups, effects, choice of the family. They belong to the caller.

mod certainty;
mod certificate;
mod climb;
mod family;
mod likelihood;
mod matrix;
mod options;
mod pieces;
mod predict;
mod prior;
mod screen;
mod shape;
mod terms;

use std::fmt;

use certainty::inverse_with_floor;
pub use certainty::{Certainty, Spread, Spreads};
use certificate::CONVERGED;
pub use certificate::{Certificate, Flag};
use climb::{Climb, Layout, Problem, Role, Sought};
pub use family::{Family, ShareTable};
use likelihood::{Outcomes, Widths};
use matrix::Cholesky;
pub use options::{JointOptions, Penalty};
pub use pieces::{Piece, Pieces};
use predict::see;
pub use predict::{Column, Prediction, Predictor};
use prior::{Slopes, block};
pub use shape::{GammaShape, gamma_shape};
pub use terms::{Shape, Term, Terms};

use crate::arm::{Arm, ByArm};
use crate::cohort::Cohort;
pub use crate::cure::FitError;
use crate::cure::Seen;
use crate::estimand::{ByEstimand, Estimand};
use crate::split::{Trained, TrainingSet};

/// Outcomes and covariates of units of both arms, of one length, finite.
#[derive(Clone, Copy, Debug)]
pub struct TwoArms<'a> {
    /// `Y = min(T, C, H)` of each unit. A time at or above the horizon means that it was reached without event.
    pub time: &'a [f64],
    /// Whether the event was seen, at a time before the horizon.
    pub event: &'a [bool],
    /// Whether the unit was treated.
    pub treated: &'a [bool],
    /// Covariates, row-major, standardised over the cohort.
    pub covariates: &'a [f64],
    /// Number of covariates; may be zero.
    pub n_covariates: usize,
    /// The horizon `H`; `f64::INFINITY` gives the usual mixture cure model, without truncation.
    pub horizon: f64,
}

impl TwoArms<'_> {
    fn arm(&self, unit: usize) -> Arm {
        if self.treated[unit] { Arm::Treated } else { Arm::Control }
    }
}

/// A non-linear term of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// The part of the model that it entered.
    pub part: Estimand,
    /// What it is.
    pub shape: Shape,
    /// The round in which it entered, from one.
    pub round: usize,
    /// Its score statistic then.
    pub statistic: f64,
    /// Its coefficient in each arm, for a column of unit standard deviation.
    pub coefficients: ByArm<f64>,
}

impl fmt::Display for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shape.label(&|j| format!("x{}", j + 1), &|_, x| x))
    }
}

/// How much of the slopes the prior keeps, for one part; linear blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shrinkage {
    /// Mean share that is kept of the slopes' deviations from the common ones, over both arms: near zero where
    /// the data show no heterogeneity of the effect.
    pub own_kept: f64,
    /// Mean share that is kept of the common slopes.
    pub common_kept: f64,
    /// Prior probability that a slope's deviation is zero, in each arm.
    pub own_zero: ByArm<f64>,
    /// Prior probability that a common slope is zero.
    pub common_zero: f64,
}

/// A fitted model of both arms. What it says of a unit is its [`Predictor`]'s business.
#[derive(Clone, Debug, PartialEq)]
pub struct JointModel {
    /// What it says of a unit.
    pub predictor: Predictor,
    /// For each part, arm and covariate: sum of the squared coefficients of all terms (columns of unit standard
    /// deviation) that involve the covariate.
    pub importance: ByEstimand<ByArm<Vec<f64>>>,
    /// Non-linear terms, in the order in which they entered.
    pub terms: Vec<Admitted>,
    /// Candidates among which they were found.
    pub n_candidates: usize,
    /// Shrinkage of the cure part and of the time part.
    pub shrinkage: ByEstimand<Shrinkage>,
    /// Log-likelihood of the training units, without penalty: the sum of [`Predictor::log_likelihood`].
    pub log_likelihood: f64,
    /// Whether to believe all this.
    pub certificate: Certificate,
    layout: Layout,
    information: Vec<f64>,
    prior: prior::Prior,
}

impl std::ops::Deref for JointModel {
    type Target = Predictor;

    fn deref(&self) -> &Predictor {
        &self.predictor
    }
}

impl JointModel {
    /// Covariance of the arms' parameters when no slope is held more certain than `kappa` allows: see [`Certainty`].
    /// One factorisation of the information matrix: make it once for many units.
    pub fn certainty(&self, kappa: Option<f64>) -> Certainty<'_> {
        let (n, size) = (self.layout.len(), self.layout.size());
        let mut a = self.information.clone();
        if !self.prior.effects.is_empty() {
            // Scores that vary more than the information says: each parameter is known so much less.
            let root: Vec<f64> = (0..n).map(|j| self.prior.effect(j).sqrt()).collect();
            a.iter_mut().enumerate().for_each(|(e, value)| *value /= root[e / n] * root[e % n]);
        }
        for j in 0..n {
            let of_mixture = self.prior.certainty[j];
            let added = match (kappa, self.layout.blocks[j]) {
                (Some(kappa), Some(_)) => of_mixture.min(kappa / self.prior.cavity[j]),
                _ => of_mixture,
            };
            a[j * n + j] += added;
        }
        let inverse = match Cholesky::new(a.clone(), n) {
            Some(cholesky) => cholesky.inverse(),
            None => inverse_with_floor(a, n),
        };
        // T A⁻¹ T'.
        let at = |z: usize, k: usize, y: usize, l: usize| {
            let mut sum = inverse[(z * size + k) * n + y * size + l];
            let (c, d) = (self.layout.common[k], self.layout.common[l]);
            if let Some(d) = d {
                sum += inverse[(z * size + k) * n + 2 * size + d];
            }
            if let Some(c) = c {
                sum += inverse[(2 * size + c) * n + y * size + l];
                if let Some(d) = d {
                    sum += inverse[(2 * size + c) * n + 2 * size + d];
                }
            }
            sum
        };
        let both = 2 * size;
        let covariance: Vec<f64> =
            (0..both * both).map(|e| at(e / both / size, e / both % size, e % both / size, e % both % size)).collect();
        Certainty { predictor: &self.predictor, covariance: covariance.into() }
    }

    /// [`Certainty::at`] for one unit.
    pub fn covariance(&self, x: &[f64], kappa: Option<f64>) -> [[f64; 6]; 6] {
        self.certainty(kappa).at(x)
    }
}

/// Fits the model to a training set. `standardised` are the covariates of the whole cohort, row-major; `pieces` its
/// outcomes, where they are more than a time and an event.
///
/// # Errors
/// Only where there is nothing to fit: see [`FitError`]. One arm without events is fitted and flagged.
pub fn fit(
    training: &TrainingSet<'_>,
    standardised: &[f64],
    pieces: Option<&Pieces>,
    terms: &Terms,
    options: &JointOptions,
) -> Result<Trained<JointModel>, FitError> {
    let units = Gathered::of(training.cohort(), training.units(), standardised);
    let known = pieces.map(|pieces| Known { pieces, units: training.units() });
    Ok(Trained::on(training, describe_known(&units.view(), known, terms, options)?))
}

/// What is known of some units of a cohort beyond times and events.
#[derive(Clone, Copy)]
struct Known<'a> {
    pieces: &'a Pieces,
    units: &'a [u32],
}

impl<'a> Known<'a> {
    /// The pieces of a unit, by its place among them.
    fn of(&self, i: usize) -> &'a [Piece] {
        self.pieces.of_unit(self.units[i] as usize)
    }

    /// What it is independent with.
    fn cluster(&self, i: usize) -> Option<u32> {
        self.pieces.cluster(self.units[i] as usize)
    }
}

/// Rows of a cohort, gathered for a model.
struct Gathered {
    time: Vec<f64>,
    event: Vec<bool>,
    treated: Vec<bool>,
    covariates: Vec<f64>,
    n_covariates: usize,
    horizon: f64,
}

impl Gathered {
    fn of(cohort: &Cohort, units: &[u32], standardised: &[f64]) -> Gathered {
        let p = cohort.n_covariates();
        let units = || units.iter().map(|&i| i as usize);
        Gathered {
            time: units().map(|i| cohort.time(i)).collect(),
            event: units().map(|i| cohort.event(i)).collect(),
            treated: units().map(|i| cohort.arm(i) == Arm::Treated).collect(),
            covariates: units().flat_map(|i| &standardised[i * p..(i + 1) * p]).copied().collect(),
            n_covariates: p,
            horizon: cohort.horizon(),
        }
    }

    fn view(&self) -> TwoArms<'_> {
        TwoArms {
            time: &self.time,
            event: &self.event,
            treated: &self.treated,
            covariates: &self.covariates,
            n_covariates: self.n_covariates,
            horizon: self.horizon,
        }
    }
}

/// Fits the model to arrays. Nobody vouches for where they come from, so the model describes them and is not
/// [`Trained`].
///
/// Never returns a number that is not finite: where the data say nothing the answer is a flagged fit that its penalties
/// decide.
///
/// # Errors
/// Only where there is nothing to fit: see [`FitError`]. One arm without events is fitted and flagged.
///
/// # Panics
/// If the arrays are not of one length.
pub fn describe(data: &TwoArms<'_>, terms: &Terms, options: &JointOptions) -> Result<JointModel, FitError> {
    describe_known(data, None, terms, options)
}

fn describe_known(
    data: &TwoArms<'_>,
    known: Option<Known<'_>>,
    terms: &Terms,
    options: &JointOptions,
) -> Result<JointModel, FitError> {
    let Training { outcomes, start, u_zero, mut flags } = Training::of(data, known)?;
    let search = Search { data, outcomes: &outcomes, start, options, u_horizon: libm::log(data.horizon) };
    let p = data.n_covariates;

    // The columns of straight lines, and where there are many covariates, which of them.
    let varying: Vec<usize> = (0..p).filter(|&j| varies(data.covariates, p, j)).collect();
    // A part has as many covariates as its units can speak of: all tell of cure, those with an event of time.
    let most = ByEstimand::of(|part| {
        let speak: usize = match part {
            Estimand::Cure if known.is_some() => data.time.len(),
            Estimand::Cure => outcomes.iter().map(|o| o.u.len()).sum(),
            Estimand::Time => outcomes.iter().map(|o| o.n_events).sum(),
        };
        let fewest = options.fewest_covariates.min(options.most_covariates);
        (speak / options.units_for_covariate.max(1)).clamp(fewest, options.most_covariates)
    });
    let many = varying.len() > most.cure.min(most.time) || p > terms::ALL_PAIRS;
    let scores = if many { search.scores_without_covariates(&varying) } else { Vec::new() };
    let best = |part: Option<Estimand>, n: usize| -> Vec<usize> {
        let of = |k: usize| part.map_or(scores[k].cure.max(scores[k].time), |part| scores[k][part]);
        let mut order: Vec<usize> = (0..varying.len()).collect();
        order.sort_by(|&i, &j| of(j).total_cmp(&of(i)).then(i.cmp(&j)));
        order.truncate(n);
        order.sort_unstable();
        order.into_iter().map(|k| varying[k]).collect()
    };
    let linear = ByEstimand::of(|part| match most[part] {
        most if varying.len() > most => best(Some(part), most),
        _ => varying.clone(),
    });
    let left_out = linear.each_ref().map(|kept| varying.len() - kept.len());
    let n_covariates = left_out.cure.max(left_out.time);
    if n_covariates > 0 {
        flags.push(Flag::CovariatesLeftOut { n_covariates });
    }
    let own;
    let terms = if p > terms::ALL_PAIRS && options.rounds > 0 {
        own = Terms::of(data.covariates, p, best(None, options.most_curved));
        &own
    } else {
        terms
    };

    let sought = Sought { covariates: left_out, terms: terms.len() };
    let mut chosen: Vec<Chosen> = Vec::new();
    let mut round = 0;
    let (columns, problem, climb) = loop {
        let (columns, widths) = arrange(&linear, &chosen, terms);
        let problem = search.problem(&columns, widths);
        let mut ascent = problem.begin(search.phi(&problem.layout, &columns), &sought, options);
        if !ascent.is_rough {
            ascent.finish(&problem, options);
        }
        let mut entering = Vec::new();
        if round < options.rounds && !terms.is_empty() {
            round += 1;
            entering = search.screen(&problem, ascent.phi(), terms, &chosen, round);
        }
        if entering.is_empty() {
            if ascent.is_rough {
                ascent.finish(&problem, options);
            }
            let climb = ascent.end(&problem);
            break (columns, problem, climb);
        }
        chosen.extend(entering);
    };
    Ok(report(data, columns, problem, climb, chosen, terms, u_zero, flags))
}

/// A candidate that entered.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    part: Estimand,
    candidate: usize,
    round: usize,
    statistic: f64,
}

/// Outcomes of the arms, where to start, and what can be said before any computation.
struct Training {
    outcomes: ByArm<Outcomes>,
    /// Cure logit, location, `ln σ` of each arm.
    start: ByArm<[f64; 3]>,
    u_zero: f64,
    flags: Vec<Flag>,
}

impl Training {
    fn of(data: &TwoArms<'_>, known: Option<Known<'_>>) -> Result<Training, FitError> {
        let n = data.time.len();
        let mut flags = Vec::new();
        // Unit, time, what was seen then, and how much it counts.
        let rows: Vec<(usize, f64, Seen, f64)> = match known {
            None => (0..n).map(|i| (i, data.time[i], see(data.time[i], data.event[i], data.horizon), 1.0)).collect(),
            Some(known) => (0..n)
                .flat_map(|i| known.of(i).iter().map(move |p| (i, p)))
                .map(|(i, p)| (i, p.time, see(p.time, p.event, data.horizon), p.weight))
                .collect(),
        };
        let events = || rows.iter().filter(|r| r.2 == Seen::Event);
        let smallest = events().map(|r| r.1).filter(|&y| y > 0.0).fold(f64::INFINITY, f64::min);
        if smallest == f64::INFINITY {
            return Err(FitError::NoEvent { n_units: n });
        }
        let u_zero = libm::log(smallest) - std::f64::consts::LN_2;
        let at_zero = events().filter(|r| r.1 <= 0.0).count();
        let log_time = |time: f64| if time > 0.0 { libm::log(time) } else { u_zero };
        let mut outcomes = ByArm::<Outcomes>::default();
        for z in Arm::BOTH {
            let arm = &mut outcomes[z];
            // Rows of each kind that count for something: not those of entry.
            let mut counted = [0; 3];
            let mut units = 0;
            for (kind, counted) in [Seen::Event, Seen::Censored, Seen::Horizon].into_iter().zip(&mut counted) {
                for &(i, time, _, weight) in rows.iter().filter(|r| data.arm(r.0) == z && r.2 == kind) {
                    units += 1;
                    // A unit lost at time zero says nothing.
                    if kind == Seen::Censored && time <= 0.0 {
                        continue;
                    }
                    *counted += usize::from(weight > 0.0);
                    arm.rows.push(i);
                    arm.u.push(if kind == Seen::Horizon { 0.0 } else { log_time(time) });
                    if let Some(known) = known {
                        arm.weights.push(weight);
                        arm.clusters.extend(known.cluster(i));
                    }
                    match kind {
                        Seen::Event => arm.n_events += 1,
                        Seen::Censored => arm.n_censored += 1,
                        Seen::Horizon => {}
                    }
                }
            }
            if units == 0 {
                return Err(FitError::NoUnits);
            }
            let [with_event, lost, at_horizon] = counted;
            if with_event == 0 {
                flags.push(Flag::NoEvent { arm: z });
            } else if lost + at_horizon == 0 {
                flags.push(Flag::NoneCured { arm: z });
            } else if data.horizon.is_finite() && at_horizon == 0 {
                flags.push(Flag::NoneReachedHorizon { arm: z });
            }
        }
        if at_zero > 0 {
            flags.push(Flag::EventAtZero { n_units: at_zero });
        }
        let moments = |u: &mut dyn Iterator<Item = f64>| {
            let u: Vec<f64> = u.collect();
            let mean = u.iter().sum::<f64>() / u.len() as f64;
            (mean, u.iter().map(|u| (u - mean) * (u - mean)).sum::<f64>() / u.len() as f64)
        };
        let pooled = moments(&mut events().map(|r| log_time(r.1)));
        let start = outcomes.each_ref().map(|arm| {
            let all: f64 = arm.weights.iter().filter(|w| **w > 0.0).sum();
            let share = if arm.u.is_empty() {
                0.5
            } else if all > 0.0 {
                arm.weights[..arm.n_events].iter().sum::<f64>() / all
            } else {
                arm.n_events as f64 / arm.u.len() as f64
            };
            let (mean, variance) =
                if arm.n_events == 0 { pooled } else { moments(&mut arm.u[..arm.n_events].iter().copied()) };
            let logit = libm::log((1.0 - share).clamp(0.02, 0.98) / share.clamp(0.02, 0.98));
            [logit - 0.3, mean + 0.1, 0.5 * libm::log(variance.max(0.05))]
        });
        Ok(Training { outcomes, start, u_zero, flags })
    }
}

fn varies(covariates: &[f64], p: usize, j: usize) -> bool {
    let first = covariates[j];
    covariates.iter().skip(j).step_by(p).any(|&x| x != first)
}

/// Columns in the order `[cure only | both | time only]`.
fn arrange(linear: &ByEstimand<Vec<usize>>, chosen: &[Chosen], terms: &Terms) -> (Vec<Column>, Widths) {
    let of = |part: Estimand| -> Vec<(bool, usize)> {
        let mut candidates: Vec<usize> =
            chosen.iter().filter(|chosen| chosen.part == part).map(|chosen| chosen.candidate).collect();
        candidates.sort_unstable();
        let lines = linear[part].iter().map(|&j| (false, j));
        lines.chain(candidates.into_iter().map(|c| (true, c))).collect()
    };
    let (cure, time) = (of(Estimand::Cure), of(Estimand::Time));
    let column = |&(term, k): &(bool, usize)| {
        if term { Column::Term(terms.get(k).clone()) } else { Column::Linear(k) }
    };
    let mut columns: Vec<Column> = cure.iter().filter(|c| !time.contains(c)).map(column).collect();
    columns.push(Column::Intercept);
    columns.extend(cure.iter().filter(|c| time.contains(c)).map(column));
    columns.extend(time.iter().filter(|c| !cure.contains(c)).map(column));
    let widths = Widths { all: columns.len(), cure: cure.len() + 1, time: time.len() + 1 };
    (columns, widths)
}

/// What every climb and every screening of one fit needs.
struct Search<'a> {
    data: &'a TwoArms<'a>,
    outcomes: &'a ByArm<Outcomes>,
    start: ByArm<[f64; 3]>,
    options: &'a JointOptions,
    u_horizon: f64,
}

impl<'a> Search<'a> {
    fn row(&self, i: usize) -> &'a [f64] {
        let p = self.data.n_covariates;
        &self.data.covariates[i * p..(i + 1) * p]
    }

    fn problem(&self, columns: &[Column], widths: Widths) -> Problem<'a> {
        let designs = self.outcomes.each_ref().map(|arm| {
            let rows = &arm.rows;
            let mut design = Vec::with_capacity(rows.len() * columns.len());
            for &i in rows {
                let x = self.row(i);
                design.extend(columns.iter().map(|column| column.value(x)));
            }
            design
        });
        let roles: Vec<Role> = columns.iter().map(Column::role).collect();
        let layout = Layout::new(widths, &roles);
        let (family, u_horizon, outcomes) = (self.options.family, self.u_horizon, self.outcomes);
        // Curves and products have a group each.
        let p = self.data.n_covariates;
        let group = |(k, column): (usize, &Column)| match column {
            Column::Linear(j) => self.options.groups.get(*j).copied().unwrap_or(*j),
            _ => p + self.options.groups.len() + k,
        };
        let groups = layout.groups(&columns.iter().enumerate().map(group).collect::<Vec<_>>());
        Problem { family, u_horizon, outcomes, designs, layout, groups }
    }

    /// The start as a point: intercepts and `ln σ` by arm, no slopes.
    fn phi(&self, layout: &Layout, columns: &[Column]) -> Vec<f64> {
        let mut phi = vec![0.0; layout.len()];
        let Widths { all, cure, time } = layout.widths;
        let size = layout.size();
        let intercept = columns.iter().position(|column| matches!(column, Column::Intercept)).unwrap_or(0);
        for (z, [logit, location, log_sigma]) in self.start.into_iter().enumerate() {
            phi[z * size + intercept] = logit;
            phi[z * size + cure + intercept - (all - time)] = location;
            phi[z * size + size - 1] = log_sigma;
        }
        phi
    }
}

#[allow(clippy::too_many_arguments, reason = "everything that a fit ends with")]
fn report(
    data: &TwoArms<'_>,
    columns: Vec<Column>,
    problem: Problem<'_>,
    climb: Climb,
    chosen: Vec<Chosen>,
    terms: &Terms,
    u_zero: f64,
    mut flags: Vec<Flag>,
) -> JointModel {
    let layout = problem.layout;
    let theta = ByArm::of(|arm| layout.arm(&climb.phi, arm));
    let Widths { all, cure, time } = layout.widths;
    let p = data.n_covariates;
    // Coefficients of the columns of a part, in one arm.
    let slopes = |part: Estimand, arm: Arm| -> (&[Column], &[f64]) {
        match part {
            Estimand::Cure => (&columns[..cure], &theta[arm][..cure]),
            Estimand::Time => (&columns[all - time..], &theta[arm][cure..cure + time]),
        }
    };
    let importance = ByEstimand::of(|part| {
        ByArm::of(|arm| {
            let mut sums = vec![0.0; p];
            let (columns, coefficients) = slopes(part, arm);
            for (column, b) in columns.iter().zip(coefficients) {
                match column {
                    Column::Intercept => {}
                    Column::Linear(j) => sums[*j] += b * b,
                    Column::Term(term) => term.shape.covariates().into_iter().for_each(|j| sums[j] += b * b),
                }
            }
            sums
        })
    });
    let admitted = chosen
        .iter()
        .map(|&Chosen { part, candidate, round, statistic }| {
            let shape = terms.get(candidate).shape;
            let coefficients = ByArm::of(|arm| {
                let (columns, coefficients) = slopes(part, arm);
                let at = columns.iter().position(|column| matches!(column, Column::Term(term) if term.shape == shape));
                at.map_or(0.0, |k| coefficients[k])
            });
            Admitted { part, shape, round, statistic, coefficients }
        })
        .collect();
    let shrinkage = ByEstimand::of(|part| {
        let kept = |of: &[Slopes]| {
            let of = |j: &usize| of.iter().any(|&s| layout.blocks[*j] == Some(block(part, s, true)));
            let members: Vec<usize> = (0..layout.len()).filter(of).collect();
            members.iter().map(|&j| climb.prior.kept[j]).sum::<f64>() / members.len().max(1) as f64
        };
        let zero = |of: Slopes| climb.prior.weights[block(part, of, true)][0];
        Shrinkage {
            own_kept: kept(&Arm::BOTH.map(Slopes::Own)),
            common_kept: kept(&[Slopes::Common]),
            own_zero: ByArm::of(|arm| zero(Slopes::Own(arm))),
            common_zero: zero(Slopes::Common),
        }
    });
    // From a density of log times to one of times.
    let weight = |arm: &Outcomes, row: usize| arm.weights.get(row).copied().unwrap_or(1.0);
    let of_events =
        |arm: &Outcomes| -> Vec<f64> { (0..arm.n_events).map(|row| weight(arm, row) * arm.u[row]).collect() };
    let jacobian: f64 = problem.outcomes.iter().flat_map(of_events).sum();
    let positive_definite = climb.gradient_norm.is_finite();
    if !positive_definite {
        flags.push(Flag::NotPositiveDefinite);
    } else if climb.gradient_norm > CONVERGED {
        flags.push(Flag::NotConverged);
    }
    JointModel {
        importance,
        terms: admitted,
        n_candidates: terms.len(),
        shrinkage,
        log_likelihood: climb.log_likelihood - jacobian,
        certificate: Certificate {
            iterations: climb.iterations,
            gradient_norm: climb.gradient_norm,
            positive_definite,
            path: climb.path,
            flags,
        },
        predictor: Predictor {
            family: problem.family,
            n_covariates: p,
            horizon: data.horizon,
            columns,
            n_columns: ByEstimand { cure, time },
            theta,
            u_zero,
        },
        layout,
        information: climb.information,
        prior: climb.prior,
    }
}
