//! Averages over patients of whom a sample alone is the cohort.
//!
//! Where patients are more than one machine holds, models, metrics and pools come from a sample. Each of the others is
//! estimated as a new patient is, and its outcome reached nothing that was learned: the one-step average over
//! everybody ([`super::one_step`]) is the mean of the terms of all patients, those of the sample by the folds that left
//! them out, the others by all folds together. What the sample said of treatment, of loss to follow-up and of what is
//! left in residuals is asked about the others too. So an average is as sure as its number of patients makes it. What
//! remains of the sample is the product of two errors, that of the curves and that of the propensities, which does not
//! shrink with the number of patients.
//!
//! [`Everybody`] is what has to be known of the sample, a [`Tally`] the sums over some patients. Sums are exact
//! (`exact.rs`): tallies of parts can be merged in any order and say the same to the last bit.

use super::average::{AverageEffect, By, Division, Populations, describe};
use super::bytes::{In, Out};
use super::calibrated::Moves;
use super::interaction::{Interaction, interactions};
use super::known::{Known, what_is_known};
use super::one_step::{Deals, Joint, Scores, Treatment, bounded_time, means_of};
use super::standardised::{OfCurves, Standardised, growth, marginal, rmst_quantities, standardised, with_area};
use crate::analysis::Analysis;
use crate::arm::{Arm, ByArm};
use crate::boost::{Node, Tree};
use crate::cohort::Cohort;
use crate::curve::{CELLS, Curve, Grid};
use crate::effect::Corrected;
use crate::error::{Error, Problem, ProblemKind};
use crate::estimand::{ByEstimand, Estimand};
use crate::exact::Exact;
use crate::interval::two_sided;
use crate::martingale::{Censoring, Residual};
use crate::metric::Scaling;
use crate::nuisance::{Baseline, Loss, LossOfUnit, Rows, Scored};
use crate::outcome::Outcome;
use crate::phrase;
use crate::phrase::Phrase;
use crate::setting::Setting;
use crate::survival::Watched;
use rayon::prelude::*;

/// Knots of a curve.
const KNOTS: usize = CELLS + 1;
/// Where the means of a patient begin: S₀ and S₁ at the knots, m₀ and m₁, R₀, R₁ and the two parts of their
/// difference.
const MEAN: usize = 2 * KNOTS;
const RMST: usize = MEAN + 2;
const K: usize = RMST + 4;
/// Pairs of them.
const PAIRS: usize = K * (K + 1) / 2;
/// Where S₀ and S₁ at the horizon stand.
const AT_HORIZON: [usize; 2] = [CELLS, KNOTS + CELLS];
/// Patients that one task sums.
const BLOCK: usize = 1_024;

/// Contrasts of R₀, R₁ and the parts, whose spread between patients is told.
const CONTRASTS: [[f64; 4]; 3] = [[-1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]];

/// What has to be known of a sample to average over everybody.
#[derive(Clone, Debug)]
pub struct Everybody {
    grid: Grid,
    confidence: f64,
    populations: Populations,
    treatment: Treatment,
    least_chance: f64,
    /// Who is lost to follow-up: the steps of each arm's curve, and by covariates where they matter.
    watched: ByArm<Vec<(f64, f64)>>,
    smallest_censoring: f64,
    censoring: ByArm<Censoring>,
    nobody_lost: Censoring,
    loss: ByArm<Vec<(Scored, Baseline)>>,
    /// Case weights are divided by this power of two, so that sums are of the order of one.
    weight_unit: f64,
    /// What sums are taken around, of each population: the sample's own means.
    centre: Vec<[f64; K]>,
    /// What deals make of each population.
    deals: Vec<OfDeals>,
}

/// What several deals make of the averages over a population.
#[derive(Clone, Debug, Default, PartialEq)]
struct OfDeals {
    survival: Option<ByArm<f64>>,
    means: ByEstimand<Option<Deals>>,
    rmst: Option<Deals>,
}

/// A patient whom the sample's models did not see.
#[derive(Clone, Copy, Debug)]
pub struct Outsider<'a> {
    /// Covariates as recorded, as numbers.
    pub covariates: &'a [f64],
    /// What is estimated of the patient.
    pub corrected: &'a Corrected,
    /// The outcome, at the horizon.
    pub outcome: &'a Outcome,
    /// The arm.
    pub arm: Arm,
}

/// One patient, as sums take it.
struct Patient<'a> {
    corrected: &'a Corrected,
    residual: &'a Residual,
    outcome: Outcome,
    arm: Arm,
    /// P(treated).
    treated: f64,
    /// The populations that the patient is in, beyond everybody and the arm.
    subgroups: &'a [usize],
}

/// A sum, and the sum of squares.
type WithSquare = [Exact; 2];

/// Weights of those of whom it is known whether they had the event, and of those who had it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Outcomes {
    known: WithSquare,
    events: WithSquare,
}

/// Sums over the patients of one population.
#[derive(Clone, Debug, PartialEq)]
struct Sums {
    n: u64,
    /// Weights, and their squares.
    total: WithSquare,
    /// Influences, and their products with the weight of a member.
    psi: [[Exact; 2]; K],
    /// Products of influences.
    pairs: Vec<Exact>,
    /// What is known in each arm.
    outcomes: ByArm<Outcomes>,
    /// Of the two effects, weighted: sums and squares.
    effects: ByEstimand<WithSquare>,
    /// Of the contrasts of RMST, by patient: sums and squares.
    contrasts: [WithSquare; 3],
    /// Of the values of the arms: S₀, S₁, m₀, m₁.
    plain: [Exact; 4],
}

/// Sums over some patients, population by population.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally(Vec<Sums>);

/// What is said of everybody.
#[derive(Clone, Debug, PartialEq)]
pub struct Over {
    /// Patients.
    pub n_units: usize,
    /// The averages.
    pub averages: Vec<AverageEffect>,
    /// The standardised curves of the arms.
    pub curves: Vec<Standardised>,
    /// Whether averages differ between subgroups.
    pub interactions: Vec<Interaction>,
}

fn refuse(found: Phrase, rule: &'static str, remedy: Phrase) -> Error {
    Error::Refused(vec![Problem::error(ProblemKind::BadOption, found, rule, remedy)])
}

impl Everybody {
    /// From a sample and what was found in it, with the sums over the sample's own patients.
    pub fn of(cohort: &Cohort, analysis: &Analysis, by: &[By]) -> Result<(Everybody, Tally), Error> {
        let extras = cohort.extras();
        for (setting, there) in [(Setting::Entry, extras.entry.is_some()), (Setting::Cluster, extras.cluster.is_some())]
        {
            if there {
                return Err(refuse(
                    phrase![setting, " with more patients than the sample"],
                    "averages over everybody are sums over independent patients who are watched from the start",
                    phrase!["leave ", setting, " out, or fit all patients on one machine"],
                ));
            }
        }
        let Some(scores) = Scores::of(cohort, analysis) else {
            return Err(refuse(
                phrase![Setting::Estimator.to("paper"), " with more patients than the sample"],
                "averages over everybody are one-step estimates, which the adjusted estimator gives",
                phrase!["use ", Setting::Estimator.to("adjusted")],
            ));
        };
        let populations = Populations::new(cohort, &analysis.units, by)?;
        let grid = Grid::of(cohort);
        let smallest = analysis.fit.options.smallest_censoring_survival();
        let watched =
            ByArm::of(|arm| Watched::of(&cohort.outcomes(&cohort.units_of(arm)), cohort.horizon()).into_steps());
        let x = scores.treatment.scaling.apply(cohort.all_covariates());
        let loss = match extras.competing {
            None => Loss::of(cohort, &Rows::new(&x, cohort.n_covariates()), &grid).learned,
            // Of patients who may have another event, the arm's own censoring is used.
            Some(_) => ByArm::default(),
        };
        let mean_weight = (0..cohort.n_units()).map(|i| cohort.weight(i)).sum::<f64>() / cohort.n_units() as f64;
        let names = populations.names.len();
        let mut everybody = Everybody {
            confidence: scores.confidence(),
            treatment: scores.treatment.clone(),
            least_chance: scores.least_chance,
            smallest_censoring: smallest,
            censoring: watched.each_ref().map(|steps| censoring(steps, &grid, smallest)),
            nobody_lost: censoring(&[], &grid, smallest),
            watched,
            loss,
            weight_unit: libm::exp2(libm::floor(libm::log2(mean_weight))),
            centre: vec![[0.0; K]; names],
            deals: (0..names).map(|p| OfDeals::of(&scores, &populations, p)).collect(),
            populations,
            grid,
        };
        // Sums around the means lose nothing.
        let around_zero = everybody.of_sample(&scores);
        for (centre, sums) in everybody.centre.iter_mut().zip(&around_zero.0) {
            if let Some(joint) = sums.joint(centre) {
                centre.copy_from_slice(&joint.mean);
            }
        }
        let tally = everybody.of_sample(&scores);
        Ok((everybody, tally))
    }

    /// The sums of no patient.
    pub fn nobody(&self) -> Tally {
        Tally(vec![Sums::default(); self.centre.len()])
    }

    fn of_sample(&self, scores: &Scores<'_>) -> Tally {
        let units: Vec<usize> = (0..scores.n_units()).collect();
        let of_block = |units: &[usize]| {
            let mut tally = self.nobody();
            for &i in units {
                let of = self.populations.of(i);
                let subgroups: Vec<usize> = of.iter().map(|p| *p as usize).filter(|p| *p > 2).collect();
                let patient = Patient {
                    corrected: scores.corrected(i),
                    residual: scores.residual(i),
                    outcome: scores.outcome(i),
                    arm: scores.arm(i),
                    treated: scores.propensity_of(Arm::Treated, i),
                    subgroups: &subgroups,
                };
                self.take(&mut tally, &patient);
            }
            tally
        };
        let all: Vec<Tally> = units.par_chunks(BLOCK.max(units.len() / 64)).map(of_block).collect();
        let mut tally = self.nobody();
        all.iter().for_each(|some| tally.merge(some).expect("they are of one kind"));
        tally
    }

    /// Adds a patient whom the models did not see.
    pub fn add(&self, tally: &mut Tally, patient: &Outsider<'_>) {
        let Outsider { covariates, corrected, outcome, arm } = *patient;
        let scaled = self.treatment.scaling.apply(covariates);
        let (cured, shares) = (corrected.cure_probability[arm], corrected.shape[arm].shares());
        let loss = LossOfUnit::of_newcomer(&self.loss[arm], &self.grid, &scaled);
        let residual = self.censoring[arm].residual_of(&self.nobody_lost, loss, cured, &shares, outcome);
        let subgroup = |(division, first): (&Division, &usize)| Some(first + division.of(covariates)?);
        let subgroups: Vec<usize> =
            self.populations.divisions.iter().zip(self.populations.first()).filter_map(subgroup).collect();
        let treated = self.treatment.of_newcomer(covariates, &scaled, arm);
        let patient =
            Patient { corrected, residual: &residual, outcome: *outcome, arm, treated, subgroups: &subgroups };
        self.take(tally, &patient);
    }

    /// What is expected of a patient, and what its own outcome adds; times in horizons.
    fn quantities(&self, patient: &Patient<'_>) -> [[f64; K]; 2] {
        let (c, rho, own, horizon) = (patient.corrected, patient.residual, patient.arm, self.grid.horizon());
        let (mut value, mut residual) = ([0.0; K], [0.0; K]);
        for z in Arm::BOTH {
            let curve = Curve::new(&self.grid, c.cure_probability[z], c.mean_event_time[z], &c.shape[z]);
            let at = z.index() * KNOTS;
            self.grid.times().iter().enumerate().for_each(|(k, t)| value[at + k] = curve.survival(*t));
            value[MEAN + z.index()] = c.mean_event_time[z] / horizon;
        }
        let at = own.index() * KNOTS;
        residual[at + 1..at + CELLS].iter_mut().zip(&rho.survival).for_each(|(r, x)| *r = f64::from(*x));
        residual[at + CELLS] = rho.cure;
        residual[MEAN + own.index()] = bounded_time(rho.time, c.cure_probability[own], self.least_chance) / horizon;
        let (v, r) = rmst_quantities(c.cure_probability, c.mean_event_time, own, rho, horizon);
        for k in 0..4 {
            (value[RMST + k], residual[RMST + k]) = (v[k] / horizon, r[k] / horizon);
        }
        [value, residual]
    }

    fn take(&self, tally: &mut Tally, patient: &Patient<'_>) {
        let [value, residual] = self.quantities(patient);
        let weight = patient.outcome.weight / self.weight_unit;
        let own = if patient.arm == Arm::Treated { patient.treated } else { 1.0 - patient.treated };
        let known = what_is_known(&patient.outcome, self.grid.horizon());
        let arms = [(Arm::Treated, patient.treated), (Arm::Control, 1.0 - patient.treated)];
        self.count(tally, 0, patient, (true, 1.0 / own), (&value, &residual), weight, known);
        for (p, (arm, chance)) in (1..).zip(arms) {
            self.count(tally, p, patient, (patient.arm == arm, chance / own), (&value, &residual), weight, known);
        }
        for &p in patient.subgroups {
            self.count(tally, p, patient, (true, 1.0 / own), (&value, &residual), weight, known);
        }
    }

    /// Adds a patient to the sums of a population: whether it is a member, and what its outcome counts.
    #[allow(
        clippy::too_many_arguments,
        reason = "a patient and a population, and what was made of the patient already"
    )]
    fn count(
        &self,
        tally: &mut Tally,
        p: usize,
        patient: &Patient<'_>,
        (member, by): (bool, f64),
        (value, residual): (&[f64; K], &[f64; K]),
        weight: f64,
        (is_known, had_event): (bool, bool),
    ) {
        let (sums, centre) = (&mut tally.0[p], &self.centre[p]);
        let total = if member { weight } else { 0.0 };
        let mut psi = [0.0; K];
        for k in 0..K {
            let expected = if member { value[k] - centre[k] } else { 0.0 };
            psi[k] = weight * (expected + by * residual[k]);
        }
        let mut pairs = sums.pairs.iter_mut();
        for i in 0..K {
            sums.psi[i][0].add(psi[i]);
            sums.psi[i][1].add(total * psi[i]);
            let a = psi[i];
            psi[i..].iter().zip(&mut pairs).for_each(|(b, pair)| pair.add(a * b));
        }
        let with_square = |sums: &mut WithSquare, weight: f64, v: f64| {
            sums[0].add(weight * v);
            sums[1].add(weight * v * v);
        };
        let Outcomes { known, events } = &mut sums.outcomes[patient.arm];
        for (of, _) in [(known, is_known), (events, had_event)].into_iter().filter(|(_, is)| *is) {
            of[0].add(weight);
            of[1].add(weight * weight);
        }
        if !member {
            return;
        }
        sums.n += 1;
        sums.total[0].add(weight);
        sums.total[1].add(weight * weight);
        let difference = |of: [usize; 2]| (value[of[1]] - value[of[0]]) - (centre[of[1]] - centre[of[0]]);
        with_square(&mut sums.effects.cure, weight, difference(AT_HORIZON));
        with_square(&mut sums.effects.time, weight, difference([MEAN, MEAN + 1]));
        for (of, contrast) in sums.contrasts.iter_mut().zip(&CONTRASTS) {
            let terms = contrast.iter().enumerate().map(|(k, w)| w * (value[RMST + k] - centre[RMST + k]));
            with_square(of, 1.0, terms.sum());
        }
        let plain = [AT_HORIZON[0], AT_HORIZON[1], MEAN, MEAN + 1];
        sums.plain.iter_mut().zip(plain).for_each(|(sum, k)| sum.add(weight * value[k]));
    }

    /// What the sums say.
    pub fn over(&self, tally: &Tally) -> Over {
        let (horizon, quantile) = (self.grid.horizon(), two_sided(self.confidence));
        let names = &self.populations.names;
        let joints: Vec<Option<Joint>> = tally.0.iter().zip(&self.centre).map(|(s, c)| s.joint(c)).collect();
        let joints: Vec<Option<Joint>> = joints.into_iter().map(|j| j.map(|j| in_time(j, horizon))).collect();
        let known = |p: usize| ByArm::of(|z: Arm| tally.0[p].known(z));
        let mut averages = Vec::new();
        for side in Estimand::BOTH {
            for (p, name) in names.iter().enumerate() {
                let sums = &tally.0[p];
                let (places, unit) = match side {
                    Estimand::Cure => (AT_HORIZON, 1.0),
                    Estimand::Time => ([MEAN, MEAN + 1], horizon),
                };
                let mut means = joints[p].as_ref().map(|joint| {
                    let variance = sums.effect_variance(side) * unit * unit;
                    means_of(side, &pick(joint, &places), self.deals[p].means[side].as_ref(), variance, horizon)
                });
                if let Some(means) = &mut means {
                    means.know(&known(p), side, horizon, self.confidence);
                }
                let n = sums.n as usize;
                describe(&mut averages, side, name, n, means.as_ref(), horizon, self.confidence);
            }
        }
        let mut curves = Vec::new();
        for (p, name) in names.iter().enumerate() {
            let Some(joint) = &joints[p] else { continue };
            let of_curves = pick(joint, &(0..MEAN).collect::<Vec<usize>>());
            let at_horizon = ByArm { control: AT_HORIZON[0], treated: AT_HORIZON[1] };
            let growth = growth(&of_curves, at_horizon, self.deals[p].survival);
            let at_knots = ByArm::of(|z: Arm| {
                let seen = std::array::from_fn(|k| joint.mean[z.index() * KNOTS + k]);
                with_area(&seen, joint.mean[RMST + z.index()].clamp(0.0, horizon), &self.grid)
            });
            let (times, confidence) = (self.grid.times(), self.confidence);
            curves.push(standardised(name, &of_curves, times, &growth, &at_knots, &known(p), &self.grid, confidence));
        }
        for (p, name) in names.iter().enumerate() {
            let (Some(joint), sums) = (&joints[p], &tally.0[p]) else { continue };
            let spread = |weights: &[f64]| {
                let at = CONTRASTS.iter().position(|c| c == weights);
                at.map_or(f64::NAN, |at| sums.contrast_variance(at).sqrt() * horizon)
            };
            let total = sums.total[0].value();
            let plain = |k: usize| sums.plain[k].value() / total;
            let of = OfCurves {
                joint: pick(joint, &[RMST, RMST + 1, RMST + 2, RMST + 3]),
                between: self.deals[p].rmst.clone(),
                spread: &spread,
                known: known(p),
                plain: ([plain(0), plain(1)].into(), [horizon * plain(2), horizon * plain(3)].into()),
                marginal: Some(marginal(
                    &pick(joint, &[AT_HORIZON[0], AT_HORIZON[1], RMST, RMST + 1]),
                    name,
                    horizon,
                    quantile,
                )),
                curve: curves.iter().find(|c| c.population == *name),
            };
            of.tell(&mut averages, name, horizon, quantile);
        }
        let interactions = interactions(&self.populations, &averages);
        Over { n_units: tally.n_units() as usize, averages, curves, interactions }
    }
}

fn censoring(steps: &[(f64, f64)], grid: &Grid, smallest: f64) -> Censoring {
    let watched = if steps.is_empty() { Watched::of_steps(Vec::new()) } else { Watched::of_lost(steps.to_vec()) };
    Censoring::of(watched, *grid, smallest)
}

impl OfDeals {
    fn of(scores: &Scores<'_>, populations: &Populations, p: usize) -> OfDeals {
        OfDeals {
            survival: scores.survival_between_deals(populations, p),
            means: ByEstimand::of(|side| scores.deals_of_means(side, populations, p)),
            rmst: scores.deals_of_rmst(populations, p),
        }
    }
}

/// Some of the means, in this order.
fn pick(joint: &Joint, places: &[usize]) -> Joint {
    let k = joint.mean.len();
    Joint {
        n: joint.n,
        mean: places.iter().map(|&i| joint.mean[i]).collect(),
        covariance: places.iter().flat_map(|&i| places.iter().map(move |&j| joint.covariance[i * k + j])).collect(),
    }
}

/// Means whose times are in horizons, in the unit of time.
fn in_time(mut joint: Joint, horizon: f64) -> Joint {
    let unit = |k: usize| if k < MEAN { 1.0 } else { horizon };
    let k = joint.mean.len();
    joint.mean.iter_mut().enumerate().for_each(|(i, m)| *m *= unit(i));
    joint.covariance.iter_mut().enumerate().for_each(|(at, c)| *c *= unit(at / k) * unit(at % k));
    joint
}

impl Default for Sums {
    fn default() -> Sums {
        Sums {
            n: 0,
            total: Default::default(),
            psi: [[Exact::default(); 2]; K],
            pairs: vec![Exact::default(); PAIRS],
            outcomes: ByArm::default(),
            effects: ByEstimand::of(|_| Default::default()),
            contrasts: Default::default(),
            plain: Default::default(),
        }
    }
}

impl Sums {
    /// All sums but the number of patients.
    fn all(&self) -> impl Iterator<Item = &Exact> {
        let known = self.outcomes.iter().flat_map(|of| of.known.iter().chain(&of.events));
        let further = self.effects.iter().flatten().chain(self.contrasts.iter().flatten()).chain(&self.plain);
        self.total.iter().chain(self.psi.iter().flatten()).chain(&self.pairs).chain(known).chain(further)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Exact> {
        let ByArm { control, treated } = &mut self.outcomes;
        let known = [control, treated].into_iter().flat_map(|of| of.known.iter_mut().chain(&mut of.events));
        let ByEstimand { cure, time } = &mut self.effects;
        let effects = cure.iter_mut().chain(time);
        let further = effects.chain(self.contrasts.iter_mut().flatten()).chain(&mut self.plain);
        self.total.iter_mut().chain(self.psi.iter_mut().flatten()).chain(&mut self.pairs).chain(known).chain(further)
    }

    /// One-step means and their covariance, times in horizons; `None` of nobody.
    fn joint(&self, centre: &[f64; K]) -> Option<Joint> {
        let [total, square] = self.total.map(|s| s.value());
        if self.n == 0 {
            return None;
        }
        let off: Vec<f64> = self.psi.iter().map(|s| s[0].value() / total).collect();
        let n = self.n as f64;
        let free = n / (n - 1.0).max(1.0) / (total * total);
        let mut covariance = vec![0.0; K * K];
        let mut pairs = self.pairs.iter();
        for i in 0..K {
            for j in i..K {
                let pair = pairs.next().expect("one for each pair").value();
                let (of_i, of_j) = (self.psi[i][1].value(), self.psi[j][1].value());
                let c = free * (pair - off[j] * of_i - off[i] * of_j + off[i] * off[j] * square);
                (covariance[i * K + j], covariance[j * K + i]) = (c, c);
            }
        }
        let mean = off.iter().zip(centre).map(|(d, c)| c + d).collect();
        Some(Joint { n: self.n as usize, mean, covariance })
    }

    fn known(&self, arm: Arm) -> Known {
        let worth = |of: &WithSquare| {
            let [sum, square] = of.map(|s| s.value());
            if square > 0.0 { sum * sum / square } else { 0.0 }
        };
        let Outcomes { known, events } = &self.outcomes[arm];
        Known::of_worth(worth(known), worth(events))
    }

    /// Variance of an effect between patients.
    fn effect_variance(&self, side: Estimand) -> f64 {
        let [sum, square] = self.effects[side].map(|s| s.value());
        let (n, total) = (self.n as f64, self.total[0].value());
        if self.n < 2 {
            return 0.0;
        }
        ((square / total - (sum / total) * (sum / total)) * n / (n - 1.0)).max(0.0)
    }

    fn contrast_variance(&self, at: usize) -> f64 {
        let [sum, square] = self.contrasts[at].map(|s| s.value());
        let n = self.n as f64;
        ((square - sum * sum / n.max(1.0)) / (n - 1.0).max(1.0)).max(0.0)
    }
}

impl Tally {
    /// Adds the sums over other patients; fails where they are of other populations.
    pub fn merge(&mut self, other: &Tally) -> Result<(), String> {
        if self.0.len() != other.0.len() {
            return Err("these sums are of other populations".into());
        }
        for (sums, others) in self.0.iter_mut().zip(&other.0) {
            sums.n += others.n;
            sums.all_mut().zip(others.all()).for_each(|(sum, other)| sum.merge(other));
        }
        Ok(())
    }

    /// Patients in the sums.
    pub fn n_units(&self) -> u64 {
        self.0.first().map_or(0, |sums| sums.n)
    }

    /// For another machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Out::default();
        out.each(&self.0, |out, sums| {
            out.count(sums.n as usize);
            sums.all().for_each(|sum| out.0.extend_from_slice(&sum.to_bytes()));
        });
        out.0
    }

    /// From another machine.
    pub fn from_bytes(bytes: &[u8]) -> Result<Tally, String> {
        let mut rest = In(bytes);
        let sums = |rest: &mut In<'_>| {
            let mut sums = Sums { n: rest.count()? as u64, ..Sums::default() };
            for sum in sums.all_mut() {
                *sum = Exact::from_bytes(rest.take(16)?.try_into().ok()?);
            }
            Some(sums)
        };
        let all = rest.each(16 * PAIRS, sums).filter(|_| rest.0.is_empty());
        all.map(Tally).ok_or_else(|| "these are not the sums of a part of the patients".into())
    }
}

/// What [`Everybody`] looks like in bytes.
mod stored {
    use super::*;

    fn scored(out: &mut Out, of: &Scored) {
        out.numbers(&of.line);
        out.each(&of.trees, |out, tree| {
            out.each(&tree.nodes, |out, node| {
                out.maybe(node.covariate.as_ref(), |out, j| out.count(*j as usize));
                out.number(node.cut);
                out.count(node.left as usize);
                out.number(node.value);
            });
        });
    }

    fn read_scored(rest: &mut In<'_>, width: usize) -> Option<Scored> {
        let line = rest.numbers().filter(|line| (1..=width + 1).contains(&line.len()))?;
        let node = |rest: &mut In<'_>| {
            Some(Node {
                covariate: rest.maybe(|rest| u32::try_from(rest.count()?).ok())?,
                cut: rest.number()?,
                left: u32::try_from(rest.count()?).ok()?,
                value: rest.number()?,
            })
        };
        let tree = |rest: &mut In<'_>| Some(Tree { nodes: rest.each(32, node)? });
        let trees = rest.each(8, tree)?;
        trees.iter().all(|t| t.is_sound(width)).then_some(Scored { line, trees })
    }

    fn deals(out: &mut Out, of: &Option<Deals>) {
        out.maybe(of.as_ref(), |out, (covariance, n)| {
            out.numbers(covariance);
            out.count(*n);
        });
    }

    fn read_deals(rest: &mut In<'_>, size: usize) -> Option<Option<Deals>> {
        rest.maybe(|rest| Some((rest.numbers().filter(|c| c.len() == size)?, rest.count()?)))
    }

    impl Everybody {
        /// For another machine.
        pub fn to_bytes(&self) -> Vec<u8> {
            let mut out = Out::default();
            [self.grid.horizon(), self.confidence, self.least_chance, self.smallest_censoring, self.weight_unit]
                .iter()
                .for_each(|x| out.number(*x));
            out.each(&self.populations.by, |out, by| {
                out.text(&by.covariate);
                out.maybe(by.bins.as_ref(), |out, bins| out.count(*bins));
            });
            out.each(&self.populations.names, |out, name| out.text(name));
            out.each(self.populations.first(), |out, first| out.count(*first));
            out.each(&self.populations.divisions, |out, division| match division {
                Division::Levels { first, width, there } => {
                    out.count(0);
                    [first, width].iter().for_each(|n| out.count(**n as usize));
                    out.each(there, |out, level| out.count(*level as usize));
                }
                Division::Starts { column, starts, exact } => {
                    out.count(1 + usize::from(*exact));
                    out.count(*column as usize);
                    out.numbers(starts);
                }
            });
            let Treatment { scaling, chosen, line, folds, moves } = &self.treatment;
            out.numbers(&scaling.center);
            out.numbers(&scaling.scale);
            out.each(chosen, |out, j| out.count(*j as usize));
            out.numbers(line);
            out.each(folds, scored);
            for arm in Arm::BOTH {
                out.each(&moves[arm].left, |out, folds| out.each(folds, scored));
                out.numbers(&moves[arm].slopes);
                out.each(&self.watched[arm], |out, (time, share)| {
                    out.number(*time);
                    out.number(*share);
                });
                out.each(&self.loss[arm], |out, (of, baseline)| {
                    scored(out, of);
                    baseline.rates.iter().for_each(|rate| out.number(*rate));
                });
            }
            out.each(&self.centre, |out, centre| centre.iter().for_each(|x| out.number(*x)));
            out.each(&self.deals, |out, of| {
                out.maybe(of.survival.as_ref(), |out, by_arm| by_arm.iter().for_each(|x| out.number(*x)));
                of.means.iter().for_each(|means| deals(out, means));
                deals(out, &of.rmst);
            });
            out.0
        }

        /// From another machine. Fails where the bytes are not what [`Everybody::to_bytes`] wrote for a cohort with so
        /// many columns of covariates.
        pub fn from_bytes(bytes: &[u8], n_covariates: usize) -> Result<Everybody, String> {
            let mut rest = In(bytes);
            let found = read(&mut rest, n_covariates).filter(|_| rest.0.is_empty());
            found.ok_or_else(|| "what is known of the sample was cut short or changed".into())
        }
    }

    fn read(rest: &mut In<'_>, p: usize) -> Option<Everybody> {
        let mut number = || rest.number();
        let (horizon, confidence, least_chance, smallest, weight_unit) =
            (number()?, number()?, number()?, number()?, number()?);
        let by = rest.each(16, |rest| Some(By { covariate: rest.text()?, bins: rest.maybe(In::count)? }))?;
        let names = rest.each(8, In::text)?;
        let first = rest.each(8, In::count)?;
        let small = |rest: &mut In<'_>| u32::try_from(rest.count()?).ok();
        let division = |rest: &mut In<'_>| match rest.count()? {
            0 => {
                let (first, width) = (small(rest)?, small(rest)?);
                let fits = (first as usize).checked_add(width as usize).is_some_and(|end| end <= p);
                Some(Division::Levels { first, width, there: rest.each(8, small)? }).filter(|_| fits)
            }
            kind @ (1 | 2) => {
                let column = small(rest)?;
                let starts = rest.numbers()?;
                Some(Division::Starts { column, starts, exact: kind == 2 }).filter(|_| (column as usize) < p)
            }
            _ => None,
        };
        let divisions = rest.each(8, division)?;
        let scaling = Scaling { center: rest.numbers()?, scale: rest.numbers()? };
        let chosen = rest.each(8, small)?;
        let line = rest.numbers()?;
        let sized = scaling.center.len() == p && scaling.scale.len() == p && line.len() == chosen.len() + 1;
        let folds = rest.each(8, |rest| read_scored(rest, p))?;
        if !sized || chosen.iter().any(|j| *j as usize >= p) || by.len() != divisions.len() || by.len() != first.len() {
            return None;
        }
        let (mut moves, mut watched, mut loss) = <(ByArm<Moves>, ByArm<Vec<(f64, f64)>>, ByArm<Vec<_>>)>::default();
        for arm in Arm::BOTH {
            let left = rest.each(8, |rest| rest.each(8, |rest| read_scored(rest, p + 1)))?;
            moves[arm] = Moves { left, slopes: rest.numbers()? };
            watched[arm] = rest.each(16, |rest| Some((rest.number()?, rest.number()?)))?;
            loss[arm] = rest.each(8, |rest| {
                let scored = read_scored(rest, p)?;
                let mut rates = [0.0; CELLS];
                for rate in &mut rates {
                    *rate = rest.number()?;
                }
                Some((scored, Baseline { rates }))
            })?;
        }
        let numbers = |rest: &mut In<'_>| {
            let mut out = [0.0; K];
            for x in &mut out {
                *x = rest.number()?;
            }
            Some(out)
        };
        let centre = rest.each(8 * K, numbers)?;
        let deals = rest.each(8, |rest| {
            let survival = rest.maybe(|rest| Some(ByArm { control: rest.number()?, treated: rest.number()? }))?;
            let means = ByEstimand { cure: read_deals(rest, 4)?, time: read_deals(rest, 4)? };
            Some(OfDeals { survival, means, rmst: read_deals(rest, 16)? })
        })?;
        let names_fit = centre.len() == names.len() && deals.len() == names.len() && names.len() >= 3;
        if !names_fit || first.iter().any(|f| *f > names.len()) || !(horizon > 0.0 && horizon.is_finite()) {
            return None;
        }
        let grid = Grid::new(horizon);
        Some(Everybody {
            confidence,
            populations: Populations::divided(by, names, first, divisions),
            treatment: Treatment { scaling, chosen, line, folds, moves },
            least_chance,
            censoring: watched.each_ref().map(|steps| censoring(steps, &grid, smallest)),
            nobody_lost: censoring(&[], &grid, smallest),
            watched,
            smallest_censoring: smallest,
            loss,
            weight_unit,
            centre,
            deals,
            grid,
        })
    }
}
