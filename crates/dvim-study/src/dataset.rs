//! Every method on one data set.

use crate::oracle;
use crate::record::{Cell, Experiment, Job, Record, Settings};
use dvim::internal::compare::cox::Ties;
use dvim::internal::compare::method::{Field, Learned, Method, MethodEffects};
use dvim::internal::error::Error;
use dvim::internal::metric::Scale;
use dvim::internal::options::Options;
use dvim::internal::simulate::{Simulated, try_simulate};
use dvim::internal::watch::Unwatched;

/// The group sizes of the paper.
pub const GROUP_SIZES: [usize; 2] = [50, 100];

/// The options of the study: the paper's, on covariates as recorded.
pub fn options(seed: u64) -> Options {
    Options { group_size: GROUP_SIZES[0], scale: Scale::None, seed, ..Options::paper() }
}

/// One data set, and what every method makes of it.
pub struct Estimated {
    /// The data set and its truth.
    pub world: Simulated,
    /// The estimated units.
    pub units: Vec<u32>,
    /// The effects by each method, at each group size.
    pub effects: Vec<(Method, Vec<MethodEffects>)>,
}

/// Draws the data set of a job and estimates it by every method.
pub fn estimate<const N: usize>(settings: &Settings, job: &Job, sizes: [usize; N]) -> Result<Estimated, Error> {
    let seed = job.seed(settings);
    let world = try_simulate(job.scenario(), job.n_units, job.experiment == Experiment::Confounded, seed)?;
    let learned = Learned::learn(&world.cohort, &options(seed), Ties::Breslow, &Unwatched)?;
    let field = Field::new(&world.cohort, &learned.fit);
    let mut effects = oracle::estimate(job.scenario(), &world, &field, sizes);
    for method in Method::ALL {
        effects.extend(learned.estimate(&field, method, sizes).map(|found| (method, found.to_vec())));
    }
    let units = field.units;
    Ok(Estimated { world, units, effects })
}

impl Estimated {
    /// Errors of the cure effect of each unit.
    pub fn cure_errors<'a>(&'a self, effects: &'a MethodEffects) -> impl Iterator<Item = f64> + 'a {
        self.units.iter().zip(&effects.cure).map(|(&i, c)| c - self.world.truth[i as usize].cure_effect())
    }

    /// Errors of the time effect of each unit, where it is defined.
    pub fn time_errors<'a>(&'a self, effects: &'a MethodEffects) -> impl Iterator<Item = Option<f64>> + 'a {
        self.units.iter().zip(&effects.time).map(|(&i, t)| Some((*t)? - self.world.truth[i as usize].time_effect()))
    }
}

/// The record of a job of the tables.
pub fn record(settings: &Settings, job: &Job) -> Result<Record, Error> {
    // Under confounding the paper has K = 50 alone.
    let (sizes, found) = match job.experiment {
        Experiment::Confounded => (&GROUP_SIZES[..1], estimate(settings, job, [GROUP_SIZES[0]])?),
        _ => (&GROUP_SIZES[..], estimate(settings, job, GROUP_SIZES)?),
    };
    let mut cells = Vec::new();
    for (method, effects) in &found.effects {
        for (k, effects) in sizes.iter().zip(effects) {
            cells.push(Cell::of(method.name(), *k, found.cure_errors(effects), found.time_errors(effects)));
        }
    }
    Ok(Record { key: job.key(), cells, intervals: None, verdicts: None })
}
