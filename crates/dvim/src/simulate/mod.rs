//! Worlds to draw cohorts from, seeded, with the truth: the paper's four scenarios, a clinical example, and worlds in
//! which the cure model is wrong or in which effects do not vary.
//!
//! A world is data: laws of the covariates, who is treated, one law of cure and event time for each arm, and how long
//! units are followed. [`simulate`] draws from any of them.
//!
//! Every unit has a generator stream of its own (ChaCha8, seed × row), so that a unit's draws do
//! not depend on how many units there are or on the thread that draws them. Normals are drawn by
//! inversion: the same values for ever, on every platform.

mod worlds;

use crate::arm::{Arm, ByArm};
use crate::cohort::{Cohort, Units};
use crate::error::Error;
use crate::numeric::{normal_cdf, normal_quantile};
use crate::outcome::Extras;
use crate::table::Ids;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use worlds::{Cure, ErrorLaw, Latency, student_quantile};

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
    /// A synthetic cohort with the published margins of the paper's transplant cohort, which is not public: 1,157
    /// patients, 911 of them treated, followed for up to 4,193 days. No patient in it exists; only margins were
    /// taken from the paper.
    Transplant,
    /// Squares of covariates in both parts.
    Curvature,
    /// Products of covariates in both parts.
    Interactions,
    /// Steps, and products of steps, in both parts.
    Thresholds,
    /// Covariates with the tails of Student's t on 3 degrees of freedom, and effects that saturate in them.
    HeavyCovariates,
    /// Log event times with the tails of Student's t on 3 degrees of freedom.
    HeavyTimes,
    /// Weibull event times.
    WeibullTimes,
    /// Event times with two modes.
    BimodalTimes,
    /// A spread of the log event time that depends on covariates.
    Heteroscedastic,
    /// Squares of covariates, and censoring that depends on covariates and arm.
    DependentCensoring,
    /// Products of covariates, and treatment that depends strongly on those that matter.
    WeakOverlap,
    /// Correlated covariates, with squares and products of them.
    Correlated,
    /// Cure by the promotion-time model, in which cure and time are not two parts.
    PromotionTime,
    /// No effect on anybody, though outcomes depend on covariates.
    NoEffect,
    /// The same effect on everybody: 15 points of cure, and one shift of the times.
    ConstantEffect,
}

/// Terms of a linear predictor: an intercept, then (covariate number from 1, coefficient).
type Linear = (f64, &'static [(usize, f64)]);

fn predict((intercept, terms): Linear, x: &[f64]) -> f64 {
    terms.iter().fold(intercept, |sum, (j, b)| sum + b * x[j - 1])
}

/// A number that depends on covariates.
#[derive(Clone, Copy)]
enum Predictor {
    /// A linear predictor.
    Linear(Linear),
    /// A function of the covariates, which it asks for by number from 1.
    Function(fn(&dyn Fn(usize) -> f64) -> f64),
}

impl Predictor {
    fn at(self, x: &[f64]) -> f64 {
        match self {
            Predictor::Linear(linear) => predict(linear, x),
            Predictor::Function(f) => f(&|j| x[j - 1]),
        }
    }
}

/// One arm's law given covariates: who is uncured, and when.
#[derive(Clone, Copy)]
struct ArmLaw {
    /// What [`ArmLaw::uncured`] means.
    cure: Cure,
    /// Logit of the probability of an event before H; under promotion time the logarithm of θ.
    uncured: Predictor,
    /// Location of the log event time of the uncured, before truncation at H.
    location: Predictor,
    /// Scale of the log event time.
    sigma: Predictor,
    /// The law of the log event time around its location, in units of its scale.
    error: ErrorLaw,
}

impl ArmLaw {
    /// A mixture cure model with log-normal times of constant spread: the paper's.
    fn log_normal(uncured: Predictor, location: Predictor) -> ArmLaw {
        let sigma = Predictor::Linear((SIGMA, &[]));
        ArmLaw { cure: Cure::Mixture, uncured, location, sigma, error: ErrorLaw::Normal }
    }
}

/// How one covariate is drawn.
#[derive(Clone, Copy)]
enum Covariate {
    /// 1 with this probability, else 0.
    Bernoulli(f64),
    /// As [`Covariate::Bernoulli`] where covariate `given` (from 1) is 1; 0 elsewhere.
    BernoulliIf { given: usize, share: f64 },
    /// Mean and standard deviation.
    Normal(f64, f64),
    /// Student's t on 3 degrees of freedom, scaled to variance 1.
    Student,
    /// Normal with variance 1, correlated by this much with the covariate before it.
    Following(f64),
    /// Normal between two bounds, to whole numbers.
    Whole { mean: f64, sd: f64, from: f64, to: f64 },
}

impl Covariate {
    /// One draw is made whatever the law, so that streams stay in step.
    fn draw(self, draws: &mut Draws, before: &[f64]) -> f64 {
        let u = draws.uniform();
        let flag = |p: f64| f64::from(u8::from(u < p));
        match self {
            Covariate::Bernoulli(p) => flag(p),
            Covariate::BernoulliIf { given, share } => flag(share) * before[given - 1],
            Covariate::Normal(mean, sd) => mean + sd * normal_quantile(u),
            Covariate::Student => student_quantile(u),
            Covariate::Following(rho) => {
                rho * before.last().copied().unwrap_or(0.0) + (1.0 - rho * rho).sqrt() * normal_quantile(u)
            }
            Covariate::Whole { mean, sd, from, to } => {
                let [low, high] = [from, to].map(|v| normal_cdf((v - mean) / sd));
                (mean + sd * normal_quantile(low + u * (high - low))).round()
            }
        }
    }
}

/// Who is treated.
#[derive(Clone, Copy)]
enum Assignment {
    /// Each unit by itself, with this logit.
    Each(Linear),
    /// A fixed share of the units: those with the largest logit plus logistic noise.
    Share {
        /// Treated units among `of`.
        treated: usize,
        /// See `treated`.
        of: usize,
        /// The logit.
        by: Linear,
    },
}

/// How long a unit is followed.
#[derive(Clone, Copy)]
enum FollowUp {
    /// Uniform from 0 to this many times H.
    Uniform(f64),
    /// Lost with this probability, at a time uniform between 0 and H; else followed to H and then up to `until`.
    Loss { lost: f64, until: f64 },
    /// Exponential, with this mean.
    Exponential(Predictor),
}

/// Everything that a cohort is drawn from.
struct World {
    horizon: f64,
    covariates: Vec<(String, Covariate)>,
    assignment: Assignment,
    laws: ByArm<ArmLaw>,
    follow_up: ByArm<FollowUp>,
    /// Whether times are recorded in whole days, of which the first is 1.
    whole_days: bool,
    /// What ids begin with; without it units are numbered.
    id_prefix: Option<&'static str>,
}

/// Number of covariates of the paper's scenarios: ten Bernoulli(½), then ten standard normal.
const N_COVARIATES: usize = 20;
const N_BINARY: usize = 10;
/// Standard deviation of the log event time.
const SIGMA: f64 = 1.0;
/// The paper's horizon.
pub const HORIZON: f64 = 800.0;
/// Ids of synthetic patients begin with this, so that no table of them can be taken for real.
const SYNTHETIC: &str = "synthetic-";

/// Whether every patient of a cohort is a synthetic one, by the ids.
pub fn is_synthetic(cohort: &Cohort) -> bool {
    cohort.n_units() > 0 && (0..cohort.n_units()).all(|i| cohort.ids().text(i).starts_with(SYNTHETIC))
}

impl Scenario {
    /// The four scenarios of the paper's simulation study.
    pub const PAPER: [Scenario; 4] =
        [Scenario::CureOnly, Scenario::TimeOnly, Scenario::BothIndependent, Scenario::BothOverlap];

    /// The worlds beyond the paper: twelve in which a linear log-normal cure model is wrong
    /// ([`Scenario::MISSPECIFIED`]), then one without effects and one with the same effect on everybody.
    pub const WORLDS: [Scenario; 14] = [
        Scenario::Curvature,
        Scenario::Interactions,
        Scenario::Thresholds,
        Scenario::HeavyCovariates,
        Scenario::HeavyTimes,
        Scenario::WeibullTimes,
        Scenario::BimodalTimes,
        Scenario::Heteroscedastic,
        Scenario::DependentCensoring,
        Scenario::WeakOverlap,
        Scenario::Correlated,
        Scenario::PromotionTime,
        Scenario::NoEffect,
        Scenario::ConstantEffect,
    ];

    /// How many of [`Scenario::WORLDS`], from the first, are such that a linear log-normal cure model is wrong.
    pub const MISSPECIFIED: usize = 12;

    /// All of them. A position in this list is part of the seeds of `dvim study`: new ones go to the end.
    pub const ALL: [Scenario; 19] = {
        let mut all = [Scenario::Transplant; 19];
        let mut i = 0;
        while i < 19 {
            if i < 4 {
                all[i] = Scenario::PAPER[i];
            } else if i > 4 {
                all[i] = Scenario::WORLDS[i - 5];
            }
            i += 1;
        }
        all
    };

    /// Its name in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::CureOnly => "cure-only",
            Scenario::TimeOnly => "time-only",
            Scenario::BothIndependent => "both-independent",
            Scenario::BothOverlap => "both-overlap",
            Scenario::Transplant => "transplant",
            Scenario::Curvature => "curvature",
            Scenario::Interactions => "interactions",
            Scenario::Thresholds => "thresholds",
            Scenario::HeavyCovariates => "heavy-covariates",
            Scenario::HeavyTimes => "heavy-times",
            Scenario::WeibullTimes => "weibull-times",
            Scenario::BimodalTimes => "bimodal-times",
            Scenario::Heteroscedastic => "heteroscedastic",
            Scenario::DependentCensoring => "dependent-censoring",
            Scenario::WeakOverlap => "weak-overlap",
            Scenario::Correlated => "correlated",
            Scenario::PromotionTime => "promotion-time",
            Scenario::NoEffect => "no-effect",
            Scenario::ConstantEffect => "constant-effect",
        }
    }

    /// Its name for people.
    pub fn label(self) -> &'static str {
        match self {
            Scenario::CureOnly => "Cure only",
            Scenario::TimeOnly => "Time only",
            Scenario::BothIndependent => "Both, independent",
            Scenario::BothOverlap => "Both, overlap",
            Scenario::Transplant => "Transplant (synthetic)",
            Scenario::Curvature => "Curvature",
            Scenario::Interactions => "Interactions",
            Scenario::Thresholds => "Thresholds",
            Scenario::HeavyCovariates => "Heavy-tailed covariates",
            Scenario::HeavyTimes => "Heavy-tailed times",
            Scenario::WeibullTimes => "Weibull times",
            Scenario::BimodalTimes => "Bimodal times",
            Scenario::Heteroscedastic => "Heteroscedastic times",
            Scenario::DependentCensoring => "Dependent censoring",
            Scenario::WeakOverlap => "Weak overlap",
            Scenario::Correlated => "Correlated covariates",
            Scenario::PromotionTime => "Promotion time",
            Scenario::NoEffect => "No effect",
            Scenario::ConstantEffect => "Constant effect",
        }
    }

    /// The horizon of its truth.
    pub fn horizon(self) -> f64 {
        self.world(false).horizon
    }

    /// Units of the cohort that it stands for: the paper's own numbers.
    pub fn usual_size(self) -> usize {
        if self == Scenario::Transplant { 1_157 } else { 20_000 }
    }

    /// Whether covariates that matter for the outcome can be made to decide on treatment too.
    pub fn can_be_confounded(self) -> bool {
        Scenario::PAPER.contains(&self)
    }

    /// Names of its covariates.
    pub fn covariate_names(self) -> Vec<String> {
        self.world(false).covariates.into_iter().map(|(name, _)| name).collect()
    }

    fn world(self, confounded: bool) -> World {
        if self == Scenario::Transplant {
            return transplant();
        }
        let numeric = |j: usize| match self {
            Scenario::HeavyCovariates => Covariate::Student,
            Scenario::Correlated if j > N_BINARY + 1 => Covariate::Following(0.7),
            _ => Covariate::Normal(0.0, 1.0),
        };
        let covariate = |j: usize| {
            let law = if j <= N_BINARY { Covariate::Bernoulli(0.5) } else { numeric(j) };
            (format!("x{j}"), law)
        };
        World {
            horizon: HORIZON,
            covariates: (1..=N_COVARIATES).map(covariate).collect(),
            assignment: Assignment::Each(self.assignment(confounded)),
            laws: ByArm::of(|arm| self.law(arm)),
            follow_up: ByArm::of(|arm| self.follow_up(arm)),
            whole_days: false,
            id_prefix: None,
        }
    }

    fn law(self, arm: Arm) -> ArmLaw {
        if Scenario::PAPER.contains(&self) { self.paper_law(arm) } else { self.world_law(arm) }
    }

    /// The paper's supplement, "Parameter Settings for the Four Simulation Scenarios".
    fn paper_law(self, arm: Arm) -> ArmLaw {
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
            _ => unreachable!("not one of the paper's scenarios"),
        };
        ArmLaw::log_normal(Predictor::Linear(uncured), Predictor::Linear(location))
    }

    /// Logit of the probability of treatment.
    fn assignment(self, confounded: bool) -> Linear {
        match (confounded, self) {
            (_, Scenario::WeakOverlap) => (0.0, &[(17, 1.2), (18, 1.0), (15, -0.8)]),
            (true, Scenario::CureOnly) => (0.5, &[(2, 0.2), (3, 0.8), (19, 0.3), (20, -0.5)]),
            (true, Scenario::TimeOnly) => (0.5, &[(2, 0.3), (3, -0.2), (16, 0.4), (17, 0.5)]),
            (true, Scenario::BothIndependent) => (0.5, &[(3, 0.3), (4, -0.2), (16, 0.4), (17, 0.6)]),
            (true, Scenario::BothOverlap) => (0.5, &[(3, 0.4), (16, 0.3), (17, 0.6), (18, -0.5)]),
            _ => (0.0, &[(20, 0.5)]),
        }
    }

    /// The true coefficients of the cure and the time part of an arm, without intercepts: what the
    /// partial oracle matches on. The sign of the cure part is that of P(uncured). `None` where a part is not linear.
    pub fn coefficients(self, arm: Arm) -> Option<(Vec<f64>, Vec<f64>)> {
        let world = self.world(false);
        let law = world.laws[arm];
        let dense = |predictor: Predictor| match predictor {
            Predictor::Linear((_, terms)) => {
                let mut b = vec![0.0; world.covariates.len()];
                terms.iter().for_each(|(j, v)| b[j - 1] = *v);
                Some(b)
            }
            Predictor::Function(_) => None,
        };
        dense(law.uncured).zip(dense(law.location))
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

/// The truth of one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    /// Under each arm.
    pub arms: ByArm<ArmTruth>,
}

impl Truth {
    /// π.
    pub fn cure_effect(&self) -> f64 {
        self.arms.treated.cure_probability - self.arms.control.cure_probability
    }

    /// Δ.
    pub fn time_effect(&self) -> f64 {
        self.arms.treated.mean_event_time - self.arms.control.mean_event_time
    }
}

/// The laws of a scenario's event times.
pub struct Laws {
    laws: ByArm<ArmLaw>,
    horizon: f64,
}

impl Laws {
    /// P(T ≥ t) of a unit with covariates `x` in an arm, for t up to the horizon.
    pub fn survival(&self, arm: Arm, x: &[f64], t: f64) -> f64 {
        let latency = Latency::of(&self.laws[arm], x, self.horizon);
        1.0 - latency.uncured * latency.share(t)
    }
}

impl Scenario {
    /// The laws of its event times.
    pub fn laws(self, confounded: bool) -> Laws {
        let world = self.world(confounded);
        Laws { laws: world.laws, horizon: world.horizon }
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

impl Simulated {
    /// The same with standard normal covariates that say nothing after its own, `n_covariates` in all.
    pub fn widened(&self, n_covariates: usize, seed: u64) -> Simulated {
        let own = self.cohort.n_covariates();
        let mut units = self.cohort.to_units();
        let mut draws = Draws::new(seed, NOISE_STREAM);
        let rows = self.cohort.all_covariates().chunks_exact(own);
        units.covariates = Vec::with_capacity(units.time.len() * n_covariates);
        for x in rows {
            units.covariates.extend(x);
            units.covariates.extend((own..n_covariates).map(|_| normal_quantile(draws.uniform())));
        }
        units.names.extend((own..n_covariates).map(|j| format!("x{}", j + 1)));
        let cohort = Cohort::from_parts(units, None, self.cohort.horizon()).expect("noise is finite and varies");
        Simulated { cohort, truth: self.truth.clone() }
    }
}

/// The stream of [`Simulated::widened`], beyond those of rows.
const NOISE_STREAM: u64 = u64::MAX;

/// What is drawn for a unit before it is known who is treated.
struct Drawn {
    x: Vec<f64>,
    /// Logit of treatment less logistic noise: positive with the probability of treatment.
    leaning: f64,
    truth: Truth,
    /// Censoring time under each arm.
    censoring: ByArm<f64>,
}

/// What was drawn, before anybody asked whether it makes a cohort.
#[derive(Clone, Debug)]
pub struct Draw {
    /// The units.
    pub units: Units,
    /// The horizon of the scenario.
    pub horizon: f64,
    /// The truth of each unit.
    pub truth: Vec<Truth>,
}

/// Draws `n` units and admits them as a cohort. `confounded` matters where [`Scenario::can_be_confounded`].
///
/// # Panics
/// If `n` is so small that what was drawn is no cohort: an arm without events, or a covariate that does not vary.
/// [`draw`] takes any number.
pub fn simulate(scenario: Scenario, n: usize, confounded: bool, seed: u64) -> Simulated {
    match try_simulate(scenario, n, confounded, seed) {
        Ok(world) => world,
        Err(refused) => panic!("{n} units of scenario {} are no cohort: {refused:?}", scenario.name()),
    }
}

/// Draws `n` units and admits them as a cohort, or says why they are none.
pub fn try_simulate(scenario: Scenario, n: usize, confounded: bool, seed: u64) -> Result<Simulated, Error> {
    let Draw { units, horizon, truth } = draw(scenario, n, confounded, seed);
    Ok(Simulated { cohort: Cohort::from_parts(units, None, horizon)?, truth })
}

/// Draws `n` units. `confounded` matters where [`Scenario::can_be_confounded`].
pub fn draw(scenario: Scenario, n: usize, confounded: bool, seed: u64) -> Draw {
    let world = scenario.world(confounded);
    let drawn: Vec<Drawn> = (0..n).into_par_iter().map(|row| world.draw(&mut Draws::new(seed, row as u64))).collect();
    let arm = world.arms(&drawn);
    let ids = match world.id_prefix {
        None => Ids::Rows(n),
        Some(prefix) => {
            let width = n.to_string().len().max(4);
            let texts: Vec<String> = (1..=n).map(|i| format!("{prefix}{i:0width$}")).collect();
            Ids::from_texts(texts.iter().map(String::as_str))
        }
    };
    let mut units = Units {
        ids,
        time: Vec::with_capacity(n),
        event: Vec::with_capacity(n),
        arm,
        covariates: Vec::with_capacity(n * world.covariates.len()),
        names: world.covariates.iter().map(|(name, _)| name.clone()).collect(),
        labels: ["0".to_string(), "1".to_string()],
        extras: Extras::default(),
    };
    let mut truth = Vec::with_capacity(n);
    for (i, unit) in drawn.into_iter().enumerate() {
        let z = units.arm[i];
        let (event_time, censoring) = (unit.truth.arms[z].event_time, unit.censoring[z]);
        // The paper's scenarios are recorded up to H, where its own observation ends.
        let end = if world.whole_days { censoring } else { censoring.min(world.horizon) };
        units.time.push(event_time.min(end));
        units.event.push(event_time < end);
        units.covariates.extend_from_slice(&unit.x);
        truth.push(unit.truth);
    }
    Draw { units, horizon: world.horizon, truth }
}

impl World {
    fn draw(&self, draws: &mut Draws) -> Drawn {
        let mut x = Vec::with_capacity(self.covariates.len());
        for (_, law) in &self.covariates {
            let value = law.draw(draws, &x);
            x.push(value);
        }
        let (Assignment::Each(by) | Assignment::Share { by, .. }) = self.assignment;
        let u = draws.uniform();
        let leaning = predict(by, &x) - libm::log(u / (1.0 - u));
        let arms = self.laws.map(|law| {
            let latency = Latency::of(&law, &x, self.horizon);
            let uncured = latency.uncured;
            // Both draws are always made, so that the streams of the two arms stay in step.
            let (event, place) = (draws.uniform() < uncured, draws.uniform());
            let time = latency.quantile(place);
            let time = if self.whole_days { time.round().clamp(1.0, self.horizon - 1.0) } else { time };
            ArmTruth {
                cure_probability: 1.0 - uncured,
                mean_event_time: latency.mean(),
                event_time: if event { time } else { f64::INFINITY },
            }
        });
        let (u, v) = (draws.uniform(), draws.uniform());
        let censoring = self.follow_up.map(|law| {
            let time = match law {
                FollowUp::Uniform(times) => u * times * self.horizon,
                FollowUp::Loss { lost, .. } if u < lost => v * self.horizon,
                FollowUp::Loss { until, .. } => self.horizon + v * (until - self.horizon),
                FollowUp::Exponential(mean) => -libm::log(u) * mean.at(&x),
            };
            if self.whole_days { time.ceil() } else { time }
        });
        Drawn { x, leaning, truth: Truth { arms }, censoring }
    }

    fn arms(&self, drawn: &[Drawn]) -> Vec<Arm> {
        let arm = |treated: bool| if treated { Arm::Treated } else { Arm::Control };
        match self.assignment {
            Assignment::Each(_) => drawn.iter().map(|unit| arm(unit.leaning > 0.0)).collect(),
            Assignment::Share { treated, of, .. } => {
                let n_treated = (drawn.len() * treated + of / 2) / of;
                let mut order: Vec<usize> = (0..drawn.len()).collect();
                order.sort_by(|&a, &b| drawn[b].leaning.total_cmp(&drawn[a].leaning).then(a.cmp(&b)));
                let mut out = vec![Arm::Control; drawn.len()];
                order[..n_treated].iter().for_each(|&i| out[i] = Arm::Treated);
                out
            }
        }
    }
}

/// The clinical example. Margins from the paper: 1,157 patients, 911 treated (haploidentical donor) and 246 controls
/// (sibling donor), horizon 3,650 days, follow-up to 4,193 days, 18.1 % and 25.2 % censored before the horizon, about 5
/// points more cure on treatment. Everything else is invented: prevalences are plausible, coefficients are of the sizes
/// that transplant studies report, and none was estimated from patients. HLA mismatch is left out: it all but decides
/// the arm, so that no patient could have been in the other.
fn transplant() -> World {
    let whole = |mean, sd, from, to| Covariate::Whole { mean, sd, from, to };
    let covariates = [
        ("age", whole(27.0, 13.0, 2.0, 65.0)),
        ("male", Covariate::Bernoulli(0.61)),
        ("donor_age", whole(38.0, 12.0, 10.0, 70.0)),
        ("female_to_male", Covariate::BernoulliIf { given: 2, share: 0.42 }),
        ("t_cell", Covariate::Bernoulli(0.17)),
        ("mrd_positive", Covariate::Bernoulli(0.29)),
        ("second_remission", Covariate::Bernoulli(0.21)),
        ("log10_white_cells", Covariate::Normal(1.2, 0.55)),
    ];
    World {
        horizon: 3_650.0,
        covariates: covariates.map(|(name, law)| (name.to_string(), law)).to_vec(),
        assignment: Assignment::Share { treated: 911, of: 1_157, by: (0.0, &[(1, -0.02), (6, 0.35), (7, 0.25)]) },
        laws: ByArm {
            control: ArmLaw::log_normal(
                Predictor::Linear((
                    -1.62,
                    &[(1, 0.022), (3, 0.006), (4, 0.2), (5, 0.25), (6, 1.0), (7, 0.75), (8, 0.35)],
                )),
                Predictor::Linear((6.3, &[(1, -0.006), (5, -0.2), (6, -0.5), (7, -0.35), (8, -0.15)])),
            ),
            treated: ArmLaw::log_normal(
                Predictor::Linear((
                    -1.905,
                    &[(1, 0.028), (3, 0.012), (4, 0.2), (5, 0.25), (6, 0.35), (7, 0.55), (8, 0.25)],
                )),
                Predictor::Linear((6.1, &[(1, -0.006), (3, -0.004), (5, -0.2), (6, -0.25), (7, -0.3), (8, -0.15)])),
            ),
        },
        follow_up: ByArm {
            control: FollowUp::Loss { lost: 0.467, until: 4_193.0 },
            treated: FollowUp::Loss { lost: 0.325, until: 4_193.0 },
        },
        whole_days: true,
        id_prefix: Some(SYNTHETIC),
    }
}

/// The draws of one unit, or of anything else that a seed and a number name.
pub struct Draws(ChaCha8Rng);

impl Draws {
    /// The stream of this number.
    pub fn new(seed: u64, row: u64) -> Draws {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(row);
        Draws(rng)
    }

    /// Uniform on the open interval (0, 1): the midpoints of 2⁵³ equal cells.
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) * 2f64.powi(-53)
    }
}
