//! The paper's scenarios, seeded, with the truth that they were drawn from.
//!
//! Every unit has a generator stream of its own (ChaCha8, seed × row), so that a unit's draws do
//! not depend on how many units there are or on the thread that draws them. Normals are drawn by
//! inversion: the same values for ever, on every platform.

use crate::cohort::{Arm, Cohort, Units};
use crate::cure::truncated_mean;
use crate::numeric::{expit, normal_cdf, normal_quantile};
use crate::table::Ids;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

/// A world to draw cohorts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Effect modifiers in the cure part only.
    CureOnly,
    /// Effect modifiers in the time part only; no cure effect at all.
    TimeOnly,
    /// Modifiers in both parts, on disjoint covariates.
    BothIndependent,
    /// Modifiers in both parts, on overlapping covariates.
    BothOverlap,
}

/// Terms of a linear predictor: an intercept, then (covariate number from 1, coefficient).
type Linear = (f64, &'static [(usize, f64)]);

fn predict((intercept, terms): Linear, x: &[f64]) -> f64 {
    terms.iter().fold(intercept, |sum, (j, b)| sum + b * x[j - 1])
}

/// One arm's law given covariates: who is uncured, and when.
struct ArmLaw {
    /// Logit of the probability of an event before H.
    uncured: Linear,
    /// Mean of the log event time of the uncured, before truncation at H. Its standard deviation is 1.
    location: Linear,
}

/// Number of covariates of the paper's scenarios: ten Bernoulli(½), then ten standard normal.
const N_COVARIATES: usize = 20;
const N_BINARY: usize = 10;
/// Standard deviation of the log event time.
const SIGMA: f64 = 1.0;
/// The paper's horizon.
pub const HORIZON: f64 = 800.0;

impl Scenario {
    /// All of them.
    pub const ALL: [Scenario; 4] =
        [Scenario::CureOnly, Scenario::TimeOnly, Scenario::BothIndependent, Scenario::BothOverlap];

    /// Its name in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::CureOnly => "cure-only",
            Scenario::TimeOnly => "time-only",
            Scenario::BothIndependent => "both-independent",
            Scenario::BothOverlap => "both-overlap",
        }
    }

    /// The horizon of its truth.
    pub fn horizon(self) -> f64 {
        HORIZON
    }

    /// Names of its covariates.
    pub fn covariate_names(self) -> Vec<String> {
        (1..=N_COVARIATES).map(|j| format!("x{j}")).collect()
    }

    /// The paper's supplement, "Parameter Settings for the Four Simulation Scenarios".
    fn law(self, arm: Arm) -> ArmLaw {
        use Arm::{Control, Treated};
        use Scenario::*;
        let (uncured, location): (Linear, Linear) = match (self, arm) {
            (CureOnly, Treated) => ((0.7, &[(17, 0.5), (18, 0.5), (19, 0.8)]), (4.5, &[(2, 0.3), (19, 0.5)])),
            (CureOnly, Control) => ((1.2, &[(1, 0.3), (2, 0.5), (10, 0.2)]), (3.5, &[(2, 0.3), (19, 0.5)])),
            (TimeOnly, Treated) => {
                (TIME_ONLY_UNCURED, (4.5, &[(1, 0.4), (2, -0.2), (3, 0.3), (15, 0.8), (16, -0.6), (17, -0.5)]))
            }
            (TimeOnly, Control) => {
                (TIME_ONLY_UNCURED, (3.5, &[(1, 0.2), (2, 0.2), (3, 0.5), (15, 0.2), (16, -0.1), (17, -0.1)]))
            }
            (BothIndependent, Treated) => {
                ((0.7, &[(17, 0.3), (18, 0.7), (19, 0.2), (20, -0.8)]), (4.5, &[(2, 1.2), (3, -0.1), (15, 0.3)]))
            }
            (BothIndependent, Control) => ((1.5, &[]), (3.5, &[(2, 0.3), (3, 0.2), (15, 0.3)])),
            (BothOverlap, Treated) => (
                (0.7, &[(3, 0.2), (17, 0.3), (18, 0.7), (19, 0.2), (20, -0.8)]),
                (4.5, &[(2, 1.2), (15, 0.3), (17, 0.5), (18, -0.6)]),
            ),
            (BothOverlap, Control) => {
                ((1.5, &[(3, -0.4)]), (3.5, &[(2, 0.3), (3, 0.4), (15, 0.3), (17, 0.1), (18, -0.2)]))
            }
        };
        ArmLaw { uncured, location }
    }

    /// Logit of the probability of treatment.
    fn assignment(self, confounded: bool) -> Linear {
        match (confounded, self) {
            (false, _) => (0.0, &[(20, 0.5)]),
            (true, Scenario::CureOnly) => (0.5, &[(2, 0.2), (3, 0.8), (19, 0.3), (20, -0.5)]),
            (true, Scenario::TimeOnly) => (0.5, &[(2, 0.3), (3, -0.2), (16, 0.4), (17, 0.5)]),
            (true, Scenario::BothIndependent) => (0.5, &[(3, 0.3), (4, -0.2), (16, 0.4), (17, 0.6)]),
            (true, Scenario::BothOverlap) => (0.5, &[(3, 0.4), (16, 0.3), (17, 0.6), (18, -0.5)]),
        }
    }

    /// The true coefficients of the cure and the time part of an arm, without intercepts: what the
    /// partial oracle matches on. The sign of the cure part is that of P(uncured).
    pub fn coefficients(self, arm: Arm) -> (Vec<f64>, Vec<f64>) {
        let law = self.law(arm);
        let dense = |(_, terms): Linear| {
            let mut b = vec![0.0; N_COVARIATES];
            terms.iter().for_each(|(j, v)| b[j - 1] = *v);
            b
        };
        (dense(law.uncured), dense(law.location))
    }
}

const TIME_ONLY_UNCURED: Linear = (1.0, &[(1, 0.2), (2, -0.1), (17, -0.8), (18, 0.5), (19, 0.4), (20, -0.8)]);

/// The truth of one unit in one arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArmTruth {
    /// P(no event before H).
    pub cure_probability: f64,
    /// E[T | T < H].
    pub mean_event_time: f64,
    /// The event time that was drawn under this arm; infinite if cured.
    pub event_time: f64,
}

/// The truth of one unit, control first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    /// Control, treated.
    pub arms: [ArmTruth; 2],
}

impl Truth {
    /// π.
    pub fn cure_effect(&self) -> f64 {
        self.arms[1].cure_probability - self.arms[0].cure_probability
    }

    /// Δ.
    pub fn time_effect(&self) -> f64 {
        self.arms[1].mean_event_time - self.arms[0].mean_event_time
    }
}

/// A simulated cohort and its truth, unit by unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// What an analyst sees.
    pub cohort: Cohort,
    /// What only the simulation knows.
    pub truth: Vec<Truth>,
}

/// Draws `n` units.
pub fn simulate(scenario: Scenario, n: usize, confounded: bool, seed: u64) -> Simulated {
    let horizon = scenario.horizon();
    let laws = Arm::BOTH.map(|z| scenario.law(z));
    let drawn: Vec<(Vec<f64>, f64, bool, Arm, Truth)> = (0..n)
        .into_par_iter()
        .map(|row| {
            let mut draws = Draws::new(seed, row as u64);
            let x: Vec<f64> = (0..N_COVARIATES)
                .map(|j| if j < N_BINARY { f64::from(u8::from(draws.uniform() < 0.5)) } else { draws.normal() })
                .collect();
            let treated = draws.uniform() < expit(predict(scenario.assignment(confounded), &x));
            let arms = [0, 1].map(|z| {
                let uncured = expit(predict(laws[z].uncured, &x));
                let location = predict(laws[z].location, &x);
                // Both draws are always made, so that the streams of the two arms stay in step.
                let (event, place) = (draws.uniform() < uncured, draws.uniform());
                let below = normal_cdf((horizon.ln() - location) / SIGMA);
                let event_time = (location + SIGMA * normal_quantile(place * below)).exp().min(horizon.next_down());
                ArmTruth {
                    cure_probability: 1.0 - uncured,
                    mean_event_time: truncated_mean(horizon.ln(), location, SIGMA.ln()),
                    event_time: if event { event_time } else { f64::INFINITY },
                }
            });
            let censoring = draws.uniform() * 1.5 * horizon;
            let arm = if treated { Arm::Treated } else { Arm::Control };
            let event_time = arms[arm.index()].event_time;
            let time = event_time.min(censoring).min(horizon);
            (x, time, event_time < censoring.min(horizon), arm, Truth { arms })
        })
        .collect();
    let mut units = Units {
        ids: Ids::Rows(n),
        time: Vec::with_capacity(n),
        event: Vec::with_capacity(n),
        arm: Vec::with_capacity(n),
        covariates: Vec::with_capacity(n * N_COVARIATES),
        names: scenario.covariate_names(),
        labels: ["0".to_string(), "1".to_string()],
    };
    let mut truth = Vec::with_capacity(n);
    for (x, time, event, arm, t) in drawn {
        units.covariates.extend_from_slice(&x);
        units.time.push(time);
        units.event.push(event);
        units.arm.push(arm);
        truth.push(t);
    }
    Simulated { cohort: Cohort::from_units(units, horizon), truth }
}

/// The draws of one unit.
struct Draws(ChaCha8Rng);

impl Draws {
    fn new(seed: u64, row: u64) -> Draws {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(row);
        Draws(rng)
    }

    /// Uniform on the open interval (0, 1): the midpoints of 2⁵³ equal cells.
    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) * 2f64.powi(-53)
    }

    fn normal(&mut self) -> f64 {
        normal_quantile(self.uniform())
    }
}
