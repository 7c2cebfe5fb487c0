//! A rehearsal on the user's own cohort: how far off is this analysis in cohorts like this one?
//!
//! Covariates, treatment and follow-up stay as they are. Outcomes are drawn anew from curves that are known, the same
//! analysis is made again, and what it says is held against the truth. Half of the drawn cohorts have the curves that
//! the run *learned*. The other half is *rougher* around them: a step, a bend and a both-large of covariates are added
//! to the logit of being event-free and to the logarithm of the mean event time, some to both arms and some to the
//! treated alone, so that no model of the analysis is right.
//!
//! What stays: who is lost when. A patient who was lost before the horizon is lost at the same time again. One who had
//! the event was not lost until then; when the loss would have come is drawn from the arm's Kaplan–Meier curve of
//! losses beyond that time. What a rehearsal cannot show: a confounder that was not measured.

use crate::analysis::{self, Analysis};
use crate::arm::{Arm, ByArm};
use crate::audit::Audit;
use crate::cohort::Cohort;
use crate::curve::{CELLS, Grid, Shape, odds};
use crate::effect::Corrected;
use crate::error::{Error, Problem, ProblemKind};
use crate::estimand::{ByEstimand, Estimand};
use crate::metric::{Scale, Scaling};
use crate::numeric::expit;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::phrase;
use crate::setting::Setting;
use crate::simulate::Draws;
use crate::watch::{Unwatched, Watch};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Standard deviation of what a rougher world adds to the logit of being event-free, and to the logarithm of the mean
/// event time: to both arms, and to the treated alone.
const ROUGH: ByEstimand<f64> = ByEstimand { cure: 0.5, time: 0.15 };
/// Covariates count as at most so many standard deviations from their mean.
const FAR: f64 = 2.5;
/// Which curves outcomes were drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// Those that the run learned.
    Learned,
    /// Rougher ones around them.
    Rougher,
}

impl World {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            World::Learned => "learned",
            World::Rougher => "rougher",
        }
    }
}

/// One effect in one rehearsal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The true average of the drawn cohort's patients.
    pub truth: f64,
    /// Its estimate.
    pub estimate: f64,
    /// The interval of the average.
    pub low: f64,
    /// The interval of the average.
    pub high: f64,
    /// Mean absolute error of the patients' effects.
    pub error: f64,
    /// The same of one value for everybody, the true average: what a rehearsal must beat to know single patients.
    pub error_of_one: f64,
    /// Share of patients whose interval holds their effect.
    pub held: f64,
    /// Share of patients whose interval lies on the wrong side of zero.
    pub wrong_side: f64,
}

impl Scored {
    /// Whether the interval of the average holds it.
    pub fn average_held(&self) -> bool {
        (self.low..=self.high).contains(&self.truth)
    }
}

/// One rehearsal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rehearsed {
    /// Which curves outcomes were drawn from.
    pub world: World,
    /// The seed of its outcomes and of its analysis.
    pub seed: u64,
    /// Each effect; `None` where the analysis gave no average with an interval.
    pub effects: ByEstimand<Option<Scored>>,
}

/// Several effects over rehearsals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Over {
    /// Rehearsals.
    pub n: usize,
    /// Of which the interval of the average held the truth.
    pub held: usize,
    /// Mean of estimate less truth.
    pub bias: f64,
    /// Root mean square of estimate less truth.
    pub rmse: f64,
    /// Mean absolute error of patients' effects.
    pub error: f64,
    /// The same of one value for everybody.
    pub error_of_one: f64,
    /// Share of patients whose interval holds their effect.
    pub patients_held: f64,
    /// Share of patients whose interval lies on the wrong side of zero.
    pub wrong_side: f64,
}

/// The rehearsals of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Rehearsal {
    /// Each, in the order of seeds: learned and rougher by turns.
    pub each: Vec<Rehearsed>,
}

impl Rehearsal {
    /// What one effect came to over the rehearsals, or over those of one kind.
    pub fn over(&self, side: Estimand, world: Option<World>) -> Option<Over> {
        let of = self.each.iter().filter(|r| world.is_none_or(|w| w == r.world));
        let all: Vec<Scored> = of.filter_map(|r| r.effects[side]).collect();
        let n = all.len();
        let mean = |value: &dyn Fn(&Scored) -> f64| all.iter().map(value).sum::<f64>() / n as f64;
        (n > 0).then(|| Over {
            n,
            held: all.iter().filter(|s| s.average_held()).count(),
            bias: mean(&|s| s.estimate - s.truth),
            rmse: mean(&|s| (s.estimate - s.truth) * (s.estimate - s.truth)).sqrt(),
            error: mean(&|s| s.error),
            error_of_one: mean(&|s| s.error_of_one),
            patients_held: mean(&|s| s.held),
            wrong_side: mean(&|s| s.wrong_side),
        })
    }

    /// Rehearses a run so many times. The same run and number give the same bits on any number of threads.
    pub fn of(cohort: &Cohort, analysis: &Analysis, repeats: usize, watch: &dyn Watch) -> Result<Rehearsal, Error> {
        refuse(cohort, analysis)?;
        let done = AtomicUsize::new(0);
        watch.step(STAGE, 0, repeats)?;
        let losses = Losses::of(cohort);
        let one = |r: usize| {
            if watch.cancelled() {
                return Err(Error::Cancelled);
            }
            let world = if r.is_multiple_of(2) { World::Learned } else { World::Rougher };
            // Pairs of a learned and a rougher world share their seed.
            let seed = analysis.fit.options.seed.wrapping_add(SEEDS + r as u64 / 2);
            let found = rehearse(cohort, analysis, &losses, world, seed);
            watch.step(STAGE, done.fetch_add(1, Ordering::Relaxed) + 1, repeats)?;
            found
        };
        let each: Result<Vec<Rehearsed>, Error> = (0..repeats).into_par_iter().map(one).collect();
        Ok(Rehearsal { each: each? })
    }
}

/// Draws of a seed: of a rougher world, and of outcomes.
const ROUGH_STREAM: u64 = 1;
const OUTCOME_STREAM: u64 = 2;
const STAGE: &str = "rehearse";
/// Seeds of rehearsals begin so far from the run's.
const SEEDS: u64 = 7_000_001;

fn refuse(cohort: &Cohort, analysis: &Analysis) -> Result<(), Error> {
    let problem = |found: &'static str, rule: &'static str, remedy| {
        Err(Error::Refused(vec![Problem::error(ProblemKind::NotSupported, found, rule, remedy)]))
    };
    if !analysis.fit.is_corrected() {
        return problem(
            "a rehearsal of a run by the paper's estimator was asked for",
            "outcomes are drawn from the curves of the adjusted estimator",
            phrase!["fit with ", Setting::Estimator.to("adjusted")],
        );
    }
    if cohort.extras().competing.is_some() {
        return problem(
            "a rehearsal of a run with events of other causes was asked for",
            "outcomes are drawn from one curve a patient, which says nothing of other causes, so far",
            phrase!["rehearse a run in which one event is looked at"],
        );
    }
    Ok(())
}

/// The times at which patients of an arm are lost, with the chance of each by Kaplan and Meier.
struct Losses {
    of_arm: ByArm<Vec<(f64, f64)>>,
}

impl Losses {
    fn of(cohort: &Cohort) -> Losses {
        let of_arm = ByArm::of(|arm| {
            let mut units: Vec<Outcome> = cohort.units_of(arm).iter().map(|&i| cohort.outcome(i as usize)).collect();
            units.sort_by(|a, b| a.time.total_cmp(&b.time));
            let (mut at_risk, mut left, mut out) = (units.len() as f64, 1.0, Vec::new());
            for same in units.chunk_by(|a, b| a.time == b.time) {
                let lost = same.iter().filter(|o| !o.event && o.time < cohort.horizon()).count() as f64;
                // Who has the event at a time is gone before anybody is lost then.
                at_risk -= same.iter().filter(|o| o.event).count() as f64;
                if lost > 0.0 {
                    let next = left * (1.0 - lost / at_risk);
                    out.push((same[0].time, left - next));
                    left = next;
                }
                at_risk -= same.iter().filter(|o| !o.event).count() as f64;
            }
            out
        });
        Losses { of_arm }
    }

    /// A time of loss beyond t; the horizon where nobody would be lost before it.
    fn beyond(&self, arm: Arm, t: f64, horizon: f64, u: f64) -> f64 {
        let times = &self.of_arm[arm];
        let first = times.partition_point(|(time, _)| *time < t);
        let before: f64 = times[..first].iter().map(|(_, chance)| chance).sum();
        // The chance of being lost later, if at all, given not yet at t.
        let mut at = u * (1.0 - before);
        for (time, chance) in &times[first..] {
            at -= chance;
            if at < 0.0 {
                return *time;
            }
        }
        horizon
    }
}

/// What a rougher world adds: of each patient and arm, on the scale of the logit of being event-free and on that of the
/// logarithm of the mean event time.
fn roughness(cohort: &Cohort, seed: u64) -> Vec<ByEstimand<ByArm<f64>>> {
    let (n, p) = (cohort.n_units(), cohort.n_covariates());
    let zero = ByEstimand::of(|_| ByArm::of(|_| 0.0));
    let mut out = vec![zero; n];
    if p == 0 {
        return out;
    }
    let x = Scaling::of(cohort, Scale::Standard).apply(cohort.all_covariates());
    let mut draws = Draws::new(seed, ROUGH_STREAM);
    for side in Estimand::BOTH {
        for both_arms in [true, false] {
            let mut column = || ((draws.uniform() * p as f64) as usize).min(p - 1);
            let (step, bend, both) = (column(), column(), [column(), column()]);
            let (cut, signs) = (2.0 * draws.uniform() - 1.0, [0; 3].map(|_| (draws.uniform() - 0.5).signum()));
            let at = |i: usize, j: usize| x[i * p + j].clamp(-FAR, FAR);
            let shape = |i: usize| {
                let step = f64::from(u8::from(at(i, step) > cut));
                let both = f64::from(u8::from(at(i, both[0]) > 0.0 && at(i, both[1]) > 0.0));
                signs[0] * step + 0.5 * signs[1] * at(i, bend).abs() + signs[2] * both
            };
            let values: Vec<f64> = (0..n).map(shape).collect();
            let mean = values.iter().sum::<f64>() / n as f64;
            let sd = (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n as f64).sqrt();
            if sd > 1e-9 {
                for (out, v) in out.iter_mut().zip(&values) {
                    let added = ROUGH[side] * (v - mean) / sd;
                    out[side].treated += added;
                    out[side].control += if both_arms { added } else { 0.0 };
                }
            }
        }
    }
    out
}

/// The law of one patient in one arm.
#[derive(Clone, Copy)]
struct Law {
    cured: f64,
    mean: f64,
    shares: [f64; CELLS + 1],
}

impl Law {
    fn of(c: &Corrected, arm: Arm, added: Option<&ByEstimand<ByArm<f64>>>, grid: &Grid) -> Law {
        let (cured, mean, shape) = (c.cure_probability[arm], c.mean_event_time[arm], c.shape[arm]);
        match added {
            None => Law { cured, mean, shares: shape.shares() },
            Some(added) => {
                let horizon = grid.horizon();
                let cured = expit(libm::log(odds(cured)) + added.cure[arm]);
                let mean = (mean * libm::exp(added.time[arm])).clamp(0.02 * horizon, 0.98 * horizon);
                let odds = shape.0.map(|s| odds(f64::from(s)));
                Law { cured, mean, shares: Shape::with_mean(&odds, mean, grid).shares() }
            }
        }
    }

    /// A time of the event after an entry; infinite where there is none before the horizon.
    fn draw(&self, entry: f64, grid: &Grid, u: f64) -> f64 {
        let at_entry = self.cured + (1.0 - self.cured) * (1.0 - grid.interpolate(&self.shares, entry));
        let survives = u * at_entry;
        if survives < self.cured {
            return f64::INFINITY;
        }
        let share = (1.0 - survives) / (1.0 - self.cured);
        let cell = self.shares.partition_point(|s| *s <= share).clamp(1, CELLS);
        let (before, after) = (self.shares[cell - 1], self.shares[cell]);
        let into = if after > before { (share - before) / (after - before) } else { 0.5 };
        grid.times()[cell - 1] + into.clamp(0.0, 1.0) * grid.width(cell - 1)
    }
}

fn rehearse(
    cohort: &Cohort,
    analysis: &Analysis,
    losses: &Losses,
    world: World,
    seed: u64,
) -> Result<Rehearsed, Error> {
    let (grid, horizon) = (Grid::of(cohort), cohort.horizon());
    let rough = (world == World::Rougher).then(|| roughness(cohort, seed));
    let mut draws = Draws::new(seed, OUTCOME_STREAM);
    let mut units = cohort.to_units();
    // Patients without an estimate keep the outcome that they have.
    let mut truth: Vec<ByArm<Law>> = Vec::with_capacity(analysis.units.len());
    for (effect, &i) in analysis.effects.iter().zip(&analysis.units) {
        let i = i as usize;
        let Some(corrected) = &effect.corrected else { continue };
        let laws = ByArm::of(|z| Law::of(corrected, z, rough.as_ref().map(|r| &r[i]), &grid));
        truth.push(laws);
        let (arm, o) = (cohort.arm(i), cohort.outcome(i));
        let (for_event, for_loss) = (draws.uniform(), draws.uniform());
        let time = laws[arm].draw(o.entry, &grid, for_event).max(o.entry + 1e-9 * horizon);
        let (recorded, had_event) = cohort.recorded(i);
        let lost = match had_event {
            false => recorded,
            true => losses.beyond(arm, recorded, horizon, for_loss),
        };
        units.event[i] = time <= lost;
        units.time[i] = time.min(lost).max(1e-9 * horizon);
    }
    let drawn = Cohort::from_parts(units, Some(cohort.schema().to_vec()), horizon)?;
    let options = &analysis.fit.options;
    let found = analysis::run(
        &drawn,
        &Options { seed, estimator: options.estimator.with_one_deal(), ..options.clone() },
        &Unwatched,
    )?;
    let audit = Audit::of(&drawn, &found, &[])?;
    let effects = ByEstimand::of(|side| scored(&audit, &found, &truth, side, horizon, options.confidence));
    Ok(Rehearsed { world, seed, effects })
}

fn scored(
    audit: &Audit,
    found: &Analysis,
    truth: &[ByArm<Law>],
    side: Estimand,
    horizon: f64,
    confidence: f64,
) -> Option<Scored> {
    if truth.len() != found.effects.len() {
        return None;
    }
    let average = audit.averages.iter().find(|a| a.population == "all" && a.estimand == side.effect())?;
    let of = |laws: &ByArm<Law>| match side {
        Estimand::Cure => laws.treated.cured - laws.control.cured,
        Estimand::Time => laws.treated.mean - laws.control.mean,
    };
    let n = truth.len() as f64;
    let mean = truth.iter().map(of).sum::<f64>() / n;
    let (mut error, mut one, mut held, mut wrong) = (0.0, 0.0, 0.0, 0.0);
    for (effect, laws) in found.effects.iter().zip(truth) {
        let (is, said) = (of(laws), effect.of(side)?);
        let interval = match side {
            Estimand::Cure => effect.cure_interval(confidence),
            Estimand::Time => effect.time_interval(horizon, confidence)?,
        };
        error += (said - is).abs();
        one += (mean - is).abs();
        held += f64::from(u8::from((interval.low..=interval.high).contains(&is)));
        wrong += f64::from(u8::from(interval.low > 0.0 && is < 0.0 || interval.high < 0.0 && is > 0.0));
    }
    Some(Scored {
        truth: mean,
        estimate: average.estimate?,
        low: average.low?,
        high: average.high?,
        error: error / n,
        error_of_one: one / n,
        held: held / n,
        wrong_side: wrong / n,
    })
}
