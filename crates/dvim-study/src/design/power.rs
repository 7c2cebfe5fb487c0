//! Power, widths and the rest, size by size: draws trials until each power is known to the precision that is wanted.

use super::analysis::{Found, by_estimator, by_truth, crude, followed};
use super::asked::{Design, Method, Multiplicity};
use super::controlled::{self, Cheap, Controlled};
use super::latency::STEPS;
use super::surface::{Gains, Surface};
use super::trial::Trial;
use super::world::{OfPatient, World};
use dvim::internal::error::Error;
use dvim::internal::interval::two_sided;
use dvim::internal::watch::Watch;
use rayon::prelude::*;
use serde::Serialize;

/// Trials of a batch of cheap analyses.
const BATCH: usize = 250;
/// Cheap trials of a size, at most: enough for one point (standard error) at any power.
const MOST: usize = 2_500;
/// Trials of a size beside which an estimator's fits are set: 0.8 points at most are due to them.
const BESIDE_FITS: usize = 4_000;
/// Trials of a batch of fits.
const FITS: usize = 20;

/// A number found by drawing, with its Monte Carlo standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The number.
    pub value: f64,
    /// Its Monte Carlo standard error.
    pub mc_se: f64,
}

impl Share {
    /// The share of `count` in `of` trials.
    pub fn of(count: usize, of: usize) -> Share {
        let value = count as f64 / of as f64;
        // Agresti and Coull's: a share of 0 or 1 is not known for sure either.
        let p = (count as f64 + 2.0) / (of as f64 + 4.0);
        Share { value, mc_se: (p * (1.0 - p) / of as f64).sqrt() }
    }

    /// The mean of several values.
    pub fn mean(values: &[f64]) -> Option<Share> {
        let n = values.len() as f64;
        let value = values.iter().sum::<f64>() / n;
        let spread = values.iter().map(|v| (v - value) * (v - value)).sum::<f64>() / (n - 1.0);
        (values.len() > 1).then(|| Share { value, mc_se: (spread / n).sqrt() })
    }

    fn times(self, by: f64) -> Share {
        Share { value: by * self.value, mc_se: by * self.mc_se }
    }
}

/// What one number of patients comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Patients.
    pub n: usize,
    /// Trials drawn.
    pub trials: usize,
    /// Of which the estimator analysed so many.
    pub fits: usize,
    /// Power for π, Δ and the difference in RMST, each at the level alpha; `None` where the analysis has none.
    pub power: [Option<Share>; 3],
    /// Power to find π or Δ, by the rule for several tests.
    pub either: Share,
    /// Power to find both π and Δ, by the same rule, but for Bonferroni: each at the level alpha.
    pub both: Share,
    /// Power of the test that effects vary, of whether and of when; `None` where the analysis has no such test.
    pub varies: [Option<Share>; 2],
    /// Mean width of the intervals; `None` where hardly any trial has one.
    pub width: [Option<Share>; 3],
    /// Smallest effect found with the wanted power, `(z_{1−α/2} + z_power)` mean standard errors.
    pub detectable: [Option<Share>; 3],
    /// Chance of a rejection of each where there is no effect; `None` where it was not drawn.
    pub type_one: [Option<Share>; 3],
    /// Chance that π or Δ is rejected where there is no effect, by the rule for several tests.
    pub type_one_either: Option<Share>,
    /// Mean of estimate less truth, for π and Δ.
    pub bias: [Option<Share>; 2],
    /// Chance that follow-up suffices, by the verdict of an audit.
    pub sufficient: Share,
    /// Mean of the last time, H at most, at which ten patients are at risk.
    pub bears: Option<Share>,
}

/// What a design comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Power {
    /// What was assumed.
    pub design: Design,
    /// Each size, ascending.
    pub rows: Vec<Row>,
    /// Patients that reach the wanted power for π, Δ and RMST; `None` where the sizes do not reach it.
    pub needed: [Option<Share>; 3],
    /// Power over patients and the end of the study; `None` where a later end follows nobody longer.
    pub surface: Option<Surface>,
    /// What more follow-up and more patients buy.
    pub gains: Gains,
}

/// What was found in trials before, and where new ones go: `(with effect, patients, trial number)`.
pub trait Memory {
    /// What the estimator found in a trial, if it is known.
    fn known(&self, key: (bool, usize, usize)) -> Option<Found>;
    /// Keeps what was found.
    fn keep(&mut self, key: (bool, usize, usize), found: &Found);
}

/// Keeps nothing.
pub struct Forgetful;

impl Memory for Forgetful {
    fn known(&self, _: (bool, usize, usize)) -> Option<Found> {
        None
    }
    fn keep(&mut self, _: (bool, usize, usize), _: &Found) {}
}

const STAGE: &str = "sizes";
const FITTING: &str = "sizes, fits of their trials";
const DRAWING: &str = "trials";

impl Power {
    /// Draws trials of a checked design. `run` holds the patients of a finished run, where the design reuses one.
    pub fn of(
        design: &Design,
        run: Option<&[OfPatient]>,
        memory: &mut dyn Memory,
        watch: &dyn Watch,
    ) -> Result<Power, Error> {
        let worlds = [true, false].map(|has_effect| World::new(design, run, has_effect));
        let rules = Rules::of(design);
        let mut memory = Passing { own: Default::default(), outer: memory };
        let of = |has_effect: bool| {
            let world = &worlds[usize::from(!has_effect)];
            design.sizes.iter().map(move |&n| Drawn::new(world, n, has_effect)).collect::<Vec<_>>()
        };
        let (mut sizes, mut nulls) = (of(true), of(false));
        for (i, (drawn, null)) in sizes.iter_mut().zip(&mut nulls).enumerate() {
            watch.step(STAGE, i, design.sizes.len())?;
            let ends = i == 0 || i + 1 == design.sizes.len();
            draw_cheaply(design, &rules, drawn, null, ends, watch)?;
        }
        if design.analysis != Method::Crude {
            fit_until_precise(design, &rules, &mut sizes, &mut memory, watch)?;
            let last = nulls.len() - 1;
            for i in [0, last] {
                if nulls[i].fits.is_empty() {
                    nulls[i].fit(2 * FITS.min(design.most_trials), &mut memory, watch)?;
                }
            }
        }
        let rows: Vec<Row> =
            (0..sizes.len()).map(|i| row(design, &rules, &sizes[i], &nulls[i], &pooled(&sizes, i))).collect();
        let controls: Vec<Option<Controlled>> = (0..sizes.len())
            .map(|i| (design.analysis != Method::Crude).then(|| Controlled::of(&pooled(&sizes, i))))
            .collect();
        watch.step(STAGE, design.sizes.len(), design.sizes.len())?;
        let needed = std::array::from_fn(|k| needed(&rows, k, design.power));
        let control = |n: usize| {
            let nearest = (0..rows.len()).min_by_key(|&i| rows[i].n.abs_diff(n)).expect("a size");
            controls[nearest].as_ref()
        };
        let surface = Surface::of(design, run, &control, watch)?;
        let at = needed[0].map_or(f64::INFINITY, |f| f.value);
        let about = rows.iter().map(|r| r.n).min_by_key(|n| (*n as f64 - at).abs() as usize).expect("a size");
        let gains = Gains::of(design, run, about, &control, watch)?;
        Ok(Power { design: design.clone(), rows, needed, surface, gains })
    }
}

/// What is known of every trial without a fit.
struct Cheaply {
    crude: Found,
    truth: Found,
    is_sufficient: bool,
    bears: f64,
}

impl Cheaply {
    fn statistics(&self) -> Cheap {
        [self.truth.statistics(), self.crude.statistics()]
    }
}

/// The trials of one size, with effects or without.
struct Drawn<'a> {
    world: &'a World<'a>,
    n: usize,
    method: Method,
    followed: [f64; STEPS + 1],
    names: Vec<String>,
    has_effect: bool,
    cheap: Vec<Cheaply>,
    fits: Vec<Found>,
}

impl<'a> Drawn<'a> {
    fn new(world: &'a World<'a>, n: usize, has_effect: bool) -> Drawn<'a> {
        let method = world.design.analysis;
        let (cheap, fits) = (Vec::new(), Vec::new());
        Drawn { world, n, method, followed: followed(world), names: world.names(), has_effect, cheap, fits }
    }

    fn draw(&mut self, more: usize) {
        let from = self.cheap.len();
        let one = |number: usize| {
            let trial = Trial::draw(self.world, self.n, number);
            let (is_sufficient, bears) = trial.follow_up();
            let truth = match self.method {
                Method::Crude => Found::default(),
                _ => by_truth(&trial, self.world, &self.followed),
            };
            Cheaply { crude: crude(&trial), truth, is_sufficient, bears }
        };
        let new: Vec<Cheaply> = (from..from + more).into_par_iter().map(one).collect();
        self.cheap.extend(new);
    }

    fn fit(&mut self, more: usize, memory: &mut dyn Memory, watch: &dyn Watch) -> Result<(), Error> {
        let from = self.fits.len();
        let key = |number: usize| (self.has_effect, self.n, number);
        let numbers: Vec<usize> = (from..from + more).filter(|&r| memory.known(key(r)).is_none()).collect();
        // A batch of as many as there are threads at a time, so that what is done is kept.
        for some in numbers.chunks(2 * rayon::current_num_threads()) {
            let one = |&number: &usize| {
                let trial = Trial::draw(self.world, self.n, number);
                by_estimator(&trial, &self.names, self.method, number as u64 + 1)
            };
            let new: Result<Vec<Found>, Error> = some.par_iter().map(one).collect();
            some.iter().zip(&new?).for_each(|(r, found)| memory.keep(key(*r), found));
            if watch.cancelled() {
                return Err(Error::Cancelled);
            }
        }
        let mut known = Vec::with_capacity(more);
        for r in from..from + more {
            match memory.known(key(r)) {
                Some(found) => known.push(found),
                None => unreachable!("kept for the time of the run"),
            }
        }
        self.fits.extend(known);
        Ok(())
    }

    /// Statistics of fitted trials beside the cheap ones.
    fn fitted(&self) -> Vec<Fitted> {
        self.cheap.iter().zip(&self.fits).map(|(c, f)| (c.statistics(), f.statistics())).collect()
    }

    fn all_cheap(&self) -> Vec<Cheap> {
        self.cheap.iter().map(Cheaply::statistics).collect()
    }

    /// The share of trials in which a rule of the statistics is passed; `fits` are those of this and of near sizes.
    fn power(&self, fits: &[Fitted], rule: &dyn Fn([f64; 3]) -> bool) -> Share {
        match self.method {
            Method::Crude => {
                Share::of(self.cheap.iter().filter(|c| rule(c.crude.statistics())).count(), self.cheap.len())
            }
            _ => controlled::power(&self.all_cheap(), fits, rule),
        }
    }

    /// Mean standard error of an effect.
    fn error(&self, k: usize) -> Option<Share> {
        let of =
            |all: &mut dyn Iterator<Item = Option<(f64, f64)>>| all.filter_map(|e| e.map(|e| e.1)).collect::<Vec<_>>();
        match self.method {
            Method::Crude => Share::mean(&of(&mut self.cheap.iter().map(|c| c.crude.effects[k]))),
            _ => Share::mean(&of(&mut self.fits.iter().map(|f| f.effects[k]))),
        }
    }

    fn estimates(&self, k: usize) -> Vec<f64> {
        match self.method {
            Method::Crude => self.cheap.iter().filter_map(|c| c.crude.effects[k].map(|e| e.0)).collect(),
            _ => self.fits.iter().filter_map(|f| f.effects[k].map(|e| e.0)).collect(),
        }
    }
}

/// Keeps what is found for the time of one run, and hands it on.
struct Passing<'a> {
    own: std::collections::BTreeMap<(bool, usize, usize), Found>,
    outer: &'a mut dyn Memory,
}

impl Memory for Passing<'_> {
    fn known(&self, key: (bool, usize, usize)) -> Option<Found> {
        self.own.get(&key).copied().or_else(|| self.outer.known(key))
    }
    fn keep(&mut self, key: (bool, usize, usize), found: &Found) {
        self.own.insert(key, *found);
        self.outer.keep(key, found);
    }
}

/// Statistics of a trial that was fitted: cheap ones, and the estimator's.
type Fitted = (Cheap, [f64; 3]);

/// The fits of a size and of its neighbours: on the scale of statistics what a fit adds hardly depends on the size.
fn pooled(sizes: &[Drawn<'_>], i: usize) -> Vec<Fitted> {
    let near = i.saturating_sub(1)..(i + 2).min(sizes.len());
    sizes[near].iter().flat_map(Drawn::fitted).collect()
}

/// When a trial counts as a finding.
struct Rules {
    z: f64,
    z_half: f64,
    multiplicity: Multiplicity,
}

impl Rules {
    fn of(d: &Design) -> Rules {
        Rules { z: two_sided(1.0 - d.alpha), z_half: two_sided(1.0 - 0.5 * d.alpha), multiplicity: d.multiplicity }
    }

    fn single(&self, k: usize) -> impl Fn([f64; 3]) -> bool {
        let z = self.z;
        move |t| t[k].abs() > z
    }

    fn passed(&self, t: [f64; 3]) -> [bool; 2] {
        self.multiplicity.passed([t[0].abs(), t[1].abs()], self.z, self.z_half)
    }

    fn either(&self, t: [f64; 3]) -> bool {
        self.passed(t).contains(&true)
    }

    fn both(&self, t: [f64; 3]) -> bool {
        match self.multiplicity {
            Multiplicity::Bonferroni => t[0].abs() > self.z && t[1].abs() > self.z,
            _ => self.passed(t) == [true; 2],
        }
    }
}

/// Effects that an analysis has: the paper's estimator has no RMST.
fn has_effect(method: Method, k: usize) -> bool {
    k < 2 || method != Method::Paper
}

/// The largest Monte Carlo standard error of the powers of a size.
fn worst(drawn: &Drawn<'_>, fits: &[Fitted], rules: &Rules) -> f64 {
    let singles = (0..3).filter(|&k| has_effect(drawn.method, k)).map(|k| drawn.power(fits, &rules.single(k)).mc_se);
    singles.fold(drawn.power(fits, &|t| rules.either(t)).mc_se, f64::max)
}

/// Draws the trials of a size: until powers are precise where the analysis is crude.
fn draw_cheaply(
    design: &Design,
    rules: &Rules,
    drawn: &mut Drawn<'_>,
    null: &mut Drawn<'_>,
    is_at_an_end: bool,
    watch: &dyn Watch,
) -> Result<(), Error> {
    let finer = (0.01 / design.precision).max(1.0).powi(2);
    if design.analysis != Method::Crude {
        let all = (BESIDE_FITS as f64 * finer) as usize;
        drawn.draw(all);
        if is_at_an_end {
            null.draw(all);
        }
        return watch.step(DRAWING, 1, 1);
    }
    let most = (MOST as f64 * finer) as usize;
    while drawn.cheap.len() < most {
        drawn.draw(BATCH);
        null.draw(BATCH);
        if watch.cancelled() {
            return Err(Error::Cancelled);
        }
        if worst(drawn, &[], rules) <= design.precision {
            break;
        }
    }
    Ok(())
}

/// Fits trials of all sizes, then of those whose powers are not precise enough.
fn fit_until_precise(
    design: &Design,
    rules: &Rules,
    sizes: &mut [Drawn<'_>],
    memory: &mut dyn Memory,
    watch: &dyn Watch,
) -> Result<(), Error> {
    let mut wanting: Vec<usize> = (0..sizes.len()).collect();
    while !wanting.is_empty() {
        for (done, &i) in wanting.iter().enumerate() {
            watch.step(FITTING, done, wanting.len())?;
            let more = FITS.min(design.most_trials - sizes[i].fits.len());
            sizes[i].fit(more, memory, watch)?;
        }
        let is_wanting = |i: &usize| {
            sizes[*i].fits.len() < design.most_trials && worst(&sizes[*i], &pooled(sizes, *i), rules) > design.precision
        };
        wanting = (0..sizes.len()).into_par_iter().filter(is_wanting).collect();
    }
    Ok(())
}

fn row(design: &Design, rules: &Rules, drawn: &Drawn<'_>, null: &Drawn<'_>, fits: &[Fitted]) -> Row {
    let of_null = null.fitted();
    let is_null_known = match design.analysis {
        Method::Crude => !null.cheap.is_empty(),
        _ => !of_null.is_empty(),
    };
    let there = |k: usize, share: &dyn Fn(usize) -> Share| has_effect(design.analysis, k).then(|| share(k));
    // z_power: the quantile of a two-sided interval of confidence 2 power − 1.
    let z_power = two_sided(2.0 * design.power - 1.0);
    let varies = |side: usize| {
        let known: Vec<f64> = drawn.fits.iter().filter_map(|f| f.varies[side]).collect();
        (!known.is_empty()).then(|| Share::of(known.iter().filter(|p| **p < design.alpha).count(), known.len()))
    };
    // Where patients are independent of everything but their covariates the averages are those of the design.
    let truth = [design.cure_effect, design.time_effect];
    let bias = |k: usize| Share::mean(&drawn.estimates(k).iter().map(|e| e - truth[k]).collect::<Vec<f64>>());
    Row {
        n: drawn.n,
        trials: drawn.cheap.len(),
        fits: drawn.fits.len(),
        power: std::array::from_fn(|k| there(k, &|k| drawn.power(fits, &rules.single(k)))),
        either: drawn.power(fits, &|t| rules.either(t)),
        both: drawn.power(fits, &|t| rules.both(t)),
        varies: [varies(0), varies(1)],
        width: std::array::from_fn(|k| drawn.error(k).map(|s| s.times(2.0 * rules.z))),
        detectable: std::array::from_fn(|k| drawn.error(k).map(|s| s.times(rules.z + z_power))),
        type_one: std::array::from_fn(|k| {
            is_null_known.then(|| there(k, &|k| null.power(&of_null, &rules.single(k)))).flatten()
        }),
        type_one_either: is_null_known.then(|| null.power(&of_null, &|t| rules.either(t))),
        bias: [bias(0), bias(1)],
        sufficient: Share::of(drawn.cheap.iter().filter(|t| t.is_sufficient).count(), drawn.cheap.len()),
        bears: Share::mean(&drawn.cheap.iter().map(|t| t.bears).collect::<Vec<f64>>()),
    }
}

/// Where a power is crossed between two sizes, in a straight line over √n.
fn needed(rows: &[Row], k: usize, wanted: f64) -> Option<Share> {
    let known: Vec<(f64, Share)> = rows.iter().filter_map(|r| Some(((r.n as f64).sqrt(), r.power[k]?))).collect();
    let pair = known.windows(2).find(|w| w[0].1.value < wanted && w[1].1.value >= wanted)?;
    let [a, b] = [pair[0], pair[1]];
    let slope = (b.1.value - a.1.value) / (b.0 - a.0);
    let root = a.0 + (wanted - a.1.value) / slope;
    // An error of the power at the crossing, between those of the two ends, moves √n by itself over the slope.
    let error = a.1.mc_se.max(b.1.mc_se) / slope;
    Some(Share { value: root * root, mc_se: 2.0 * root * error })
}
