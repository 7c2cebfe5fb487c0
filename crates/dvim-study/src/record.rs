//! What is measured, and on which data set.

use crate::worlds;
use dvim::internal::simulate::Scenario;
use serde::{Deserialize, Serialize};

/// What makes records comparable: those of other settings may not be mixed with these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The layout of the records.
    pub schema: String,
    /// The version of dvim.
    pub version: String,
    /// Decides every data set.
    pub seed: u64,
    /// Units of each data set of the tables.
    pub n_units: usize,
}

impl Settings {
    /// Of this version.
    pub fn new(seed: u64, n_units: usize) -> Settings {
        Settings { schema: "dvim-study-1".into(), version: env!("CARGO_PKG_VERSION").into(), seed, n_units }
    }
}

/// What is done with a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Experiment {
    /// Every method at K = 50 and K = 100: tables `main` and `k100`, and the decomposition.
    Base,
    /// Every method at K = 50 under mild confounding.
    Confounded,
    /// The paper's method at growing n and K.
    Consistency,
    /// Matching with weights that move away from the optimal ones.
    Weights,
    /// The paper's estimator, the cure model alone and the adjusted estimator, in all worlds.
    Accuracy,
    /// Whether intervals hold and tests have their size.
    Coverage,
    /// Whether verdicts are right, in worlds of their own.
    Verdict,
}

impl Experiment {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Experiment::Base => "base",
            Experiment::Confounded => "confounded",
            Experiment::Consistency => "consistency",
            Experiment::Weights => "weights",
            Experiment::Accuracy => "accuracy",
            Experiment::Coverage => "coverage",
            Experiment::Verdict => "verdict",
        }
    }
}

/// One data set of one experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    /// The repetition, from 0. First, so that jobs in order leave all scenarios equally far.
    pub rep: usize,
    /// What is done.
    pub experiment: Experiment,
    /// Units.
    pub n_units: usize,
    /// Position in [`Scenario::ALL`], of which the paper's are the first; of verdicts, in [`worlds::all`].
    scenario: usize,
}

impl Job {
    /// A job on a scenario; all experiments but [`Experiment::Accuracy`] and [`Experiment::Coverage`] are on the
    /// paper's.
    pub fn new(experiment: Experiment, scenario: Scenario, n_units: usize, rep: usize) -> Job {
        let scenario = Scenario::ALL.iter().position(|s| *s == scenario).expect("all scenarios are listed");
        Job { rep, experiment, n_units, scenario }
    }

    /// A job on a world of verdicts, by its position.
    pub fn of_world(world: usize, n_units: usize, rep: usize) -> Job {
        Job { rep, experiment: Experiment::Verdict, n_units, scenario: world }
    }

    /// The position of its scenario, or of its world.
    pub fn place(&self) -> usize {
        self.scenario
    }

    /// The scenario.
    pub fn scenario(&self) -> Scenario {
        Scenario::ALL[self.scenario]
    }

    /// Its name in records.
    pub fn key(&self) -> String {
        let name = match self.experiment {
            Experiment::Verdict => worlds::all()[self.scenario].name,
            _ => self.scenario().name(),
        };
        format!("{}/{name}/{}/{}", self.experiment.name(), self.n_units, self.rep)
    }

    /// The seed of its data set. It does not depend on the experiment: with and without confounding the same units
    /// are drawn, so that the tables differ by the assignment of treatment and not by luck.
    pub fn seed(&self, settings: &Settings) -> u64 {
        let mut state = settings.seed;
        for part in [self.scenario as u64 + 1, self.n_units as u64, self.rep as u64] {
            state = mix(state ^ mix(part.wrapping_add(0x9e37_79b9_7f4a_7c15)));
        }
        state
    }
}

/// The finaliser of SplitMix64: neighbouring numbers become unrelated ones.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Errors of one method (or one setting of an experiment) at one group size on one data set, over its estimated units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The method, or the setting.
    pub name: String,
    /// K.
    pub group_size: usize,
    /// Mean absolute error of the cure effect.
    pub cure_mae: f64,
    /// Mean squared error of the cure effect.
    pub cure_mse: f64,
    /// Mean error of the cure effect.
    pub cure_bias: f64,
    /// Mean absolute error of the time effect, over the units where it is defined; absent if it nowhere is.
    pub time_mae: Option<f64>,
    /// Mean squared error of the time effect.
    pub time_mse: Option<f64>,
    /// Mean error of the time effect.
    pub time_bias: Option<f64>,
    /// Share of units whose time effect is undefined.
    pub time_undefined: f64,
}

impl Cell {
    /// From the errors of each unit.
    pub fn of(
        name: &str,
        group_size: usize,
        cure: impl Iterator<Item = f64>,
        time: impl Iterator<Item = Option<f64>>,
    ) -> Cell {
        let moments = |errors: &[f64]| {
            let n = errors.len() as f64;
            let mean = |f: fn(f64) -> f64| errors.iter().copied().map(f).sum::<f64>() / n;
            (!errors.is_empty()).then(|| [mean(f64::abs), mean(|e| e * e), mean(|e| e)])
        };
        let cure = moments(&cure.collect::<Vec<_>>()).unwrap_or([0.0; 3]);
        let time: Vec<Option<f64>> = time.collect();
        let defined: Vec<f64> = time.iter().copied().flatten().collect();
        let undefined = 1.0 - defined.len() as f64 / time.len().max(1) as f64;
        let time = moments(&defined);
        Cell {
            name: name.to_string(),
            group_size,
            cure_mae: cure[0],
            cure_mse: cure[1],
            cure_bias: cure[2],
            time_mae: time.map(|m| m[0]),
            time_mse: time.map(|m| m[1]),
            time_bias: time.map(|m| m[2]),
            time_undefined: undefined,
        }
    }
}

/// What was measured on one data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`Job::key`].
    pub key: String,
    /// One cell for each method (or setting) and group size.
    pub cells: Vec<Cell>,
    /// What the intervals held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Intervals>,
    /// What the verdict said of each effect; empty where the cohort was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdicts: Option<Vec<Said>>,
}

/// The verdict on an average, with its interval; what it should hold is known to the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// `cure_effect` or `time_effect`.
    pub effect: String,
    /// The word.
    pub support: String,
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The checks that failed, each with its weight.
    pub reasons: Vec<String>,
}

/// The intervals and tests of one data set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Intervals {
    /// Averages.
    pub averages: Vec<Held>,
    /// Units' own intervals.
    pub units: Vec<UnitsHeld>,
    /// Tests.
    pub tests: Vec<Tested>,
    /// Simultaneous bands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bands: Vec<BandHeld>,
}

/// A simultaneous band at fixed times; what it should hold is known to the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BandHeld {
    /// Of which curve.
    pub band: String,
    /// Lower limits.
    pub low: Vec<f64>,
    /// Upper limits.
    pub high: Vec<f64>,
}

/// An average with its interval; what it should hold is known to the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The estimator.
    pub estimator: String,
    /// The estimand.
    pub estimand: String,
    /// The population.
    pub population: String,
    /// The estimate.
    pub estimate: f64,
    /// Its standard error.
    pub se: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How many units' intervals hold their own effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnitsHeld {
    /// The estimator.
    pub estimator: String,
    /// The estimand.
    pub estimand: String,
    /// Share of the units.
    pub share: f64,
    /// Mean width.
    pub width: f64,
}

/// A test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tested {
    /// The estimator.
    pub estimator: String,
    /// What is tested.
    pub test: String,
    /// Two-sided p; 1 where nothing can be said.
    pub p: f64,
}

impl Record {
    /// The cell of a name and a group size.
    pub fn cell(&self, name: &str, group_size: usize) -> Option<&Cell> {
        self.cells.iter().find(|c| c.name == name && c.group_size == group_size)
    }

    /// The record as one line of text, without its end.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("a record is plain data")
    }

    /// The record of a line; `None` where the line is not one.
    pub fn from_line(line: &str) -> Option<Record> {
        serde_json::from_str(line).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_sets_differ_in_scenario_size_and_repetition_but_not_in_experiment() {
        let settings = Settings::new(1, 20_000);
        let seed = |e, s, n, r| Job::new(e, s, n, r).seed(&settings);
        let first = seed(Experiment::Base, Scenario::CureOnly, 20_000, 0);
        assert_eq!(first, seed(Experiment::Confounded, Scenario::CureOnly, 20_000, 0));
        assert_ne!(first, seed(Experiment::Base, Scenario::TimeOnly, 20_000, 0));
        assert_ne!(first, seed(Experiment::Base, Scenario::CureOnly, 20_000, 1));
        assert_ne!(first, seed(Experiment::Base, Scenario::CureOnly, 10_000, 0));
    }

    #[test]
    fn a_record_reads_back() {
        let cell = Cell::of("mcm-knn", 50, [0.1, -0.3].into_iter(), [Some(2.0), None].into_iter());
        assert_eq!((cell.cure_mae, cell.time_undefined), (0.2, 0.5));
        let record =
            Record { key: "base/cure-only/20000/0".into(), cells: vec![cell], intervals: None, verdicts: None };
        assert_eq!(Record::from_line(&record.to_line()), Some(record.clone()));
        let line = record.to_line();
        assert_eq!(Record::from_line(&line[..line.len() - 3]), None);
    }
}
