//! The patients that a design assumes: covariates, the laws of both arms for each, and who is treated.
//!
//! One covariate bears on whether, one on when, one on each effect that varies, and one on treatment alone; the rest
//! bear on nothing. All but the two that effects vary with are standard normal; those are even with mean 0 and standard
//! deviation 1. A patient's share event-free without treatment is `a + (b − a) expit(c + βx)`, where (a, b) leaves room
//! for the effect, so that π of a patient is `π + sd·x` exactly; c gives the average. Mean event times likewise.
//! Since different covariates bear on whether and when, the averages over patients are what randomised arms differ by.

use super::asked::Design;
use super::impossible::NEAR_THE_END;
use super::latency::{Family, Times};
use dvim::internal::arm::{Arm, ByArm};
use dvim::internal::interval::two_sided;
use dvim::internal::simulate::Draws;

/// √3: an even law of standard deviation 1 goes so far from its mean.
const REACH: f64 = 1.732_050_807_568_877_2;
/// Quantiles that averages over a normal covariate are taken at.
const NODES: usize = 801;

/// Where shares and mean times of patients may lie without treatment, so that effects leave them possible.
pub(super) struct Bounds {
    pub(super) whether: [f64; 2],
    pub(super) when: [f64; 2],
}

/// Room for the effects of a design.
pub(super) fn margins(d: &Design) -> Bounds {
    let room = |effect: f64, sd: f64, low: f64, high: f64| {
        let (least, most) = (effect - REACH * sd, effect + REACH * sd);
        [low - least.min(0.0), high - most.max(0.0)]
    };
    let h = d.horizon;
    Bounds {
        whether: room(d.cure_effect, d.cure_effect_sd, 0.0, 1.0),
        when: room(d.time_effect, d.time_effect_sd, NEAR_THE_END * h, (1.0 - NEAR_THE_END) * h),
    }
}

/// The normal quantile of u.
pub(super) fn normal(u: f64) -> f64 {
    let z = two_sided((2.0 * u - 1.0).abs());
    if u < 0.5 { -z } else { z }
}

/// Φ.
pub(super) fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

fn expit(x: f64) -> f64 {
    if x >= 0.0 { 1.0 / (1.0 + libm::exp(-x)) } else { libm::exp(x) / (1.0 + libm::exp(x)) }
}

/// A quantity without treatment: between two bounds, by the logit of its place there.
#[derive(Clone, Copy, Debug)]
struct Prognosis {
    bounds: [f64; 2],
    centre: f64,
    slope: f64,
}

impl Prognosis {
    fn new(bounds: [f64; 2], mean: f64, slope: f64) -> Prognosis {
        let wanted = (mean - bounds[0]) / (bounds[1] - bounds[0]);
        Prognosis { bounds, centre: centre(wanted, slope), slope }
    }

    fn at(&self, x: f64) -> f64 {
        self.bounds[0] + (self.bounds[1] - self.bounds[0]) * expit(self.centre + self.slope * x)
    }
}

/// The c for which `expit(c + slope·x)` has this mean over a standard normal x.
fn centre(mean: f64, slope: f64) -> f64 {
    let x: Vec<f64> = (0..NODES).map(|k| normal((k as f64 + 0.5) / NODES as f64)).collect();
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        let found = x.iter().map(|x| expit(middle + slope * x)).sum::<f64>() / NODES as f64;
        if found < mean { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// A patient of a finished run: covariates, and share and mean time of each arm.
#[derive(Clone, Debug)]
pub struct OfPatient {
    /// Covariates.
    pub x: Vec<f64>,
    /// Share event-free at H.
    pub cured: ByArm<f64>,
    /// Mean event time before H.
    pub mean: ByArm<f64>,
}

/// The patients that trials draw from.
pub struct World<'a> {
    pub(super) design: &'a Design,
    pub(super) family: Family,
    whether: Prognosis,
    when: Prognosis,
    /// Centre of the logit of treatment.
    leaning: f64,
    run: Option<&'a [OfPatient]>,
    /// What is added to the patients of a run, so that averages are those of the design.
    shift: [ByArm<f64>; 2],
    has_effect: bool,
    /// The times of both arms where all patients share them.
    same: Option<ByArm<Times>>,
}

/// One patient.
pub struct Patient {
    /// Share event-free at H under each arm.
    pub cured: ByArm<f64>,
    /// Mean event time before H under each arm.
    pub mean: ByArm<f64>,
    /// Chance of treatment.
    pub propensity: f64,
}

impl<'a> World<'a> {
    /// The patients of a checked design, with effects or without; resampled from a finished run where there is one.
    pub fn new(design: &'a Design, run: Option<&'a [OfPatient]>, has_effect: bool) -> World<'a> {
        let Bounds { whether, when } = margins(design);
        let leaning_sd = libm::hypot(design.confounding, design.selection);
        let mut world = World {
            design,
            family: Family::new(design.shape.as_deref(), design.horizon),
            whether: Prognosis::new(whether, design.event_free, design.prognosis_whether),
            when: Prognosis::new(when, design.mean_time, design.prognosis_when),
            leaning: centre(design.treated_share, leaning_sd),
            run,
            shift: [ByArm::of(|_| 0.0), ByArm::of(|_| 0.0)],
            has_effect,
            same: None,
        };
        if let Some(run) = run {
            world.shift = world.shifts(run);
        } else if design.prognosis_when == 0.0 && (design.time_effect_sd == 0.0 || !has_effect) {
            world.same = Some(ByArm::of(|z| world.family.with_mean(world.average(z).1)));
        }
        world
    }

    /// The average share and mean time of an arm.
    pub fn average(&self, arm: Arm) -> (f64, f64) {
        let d = self.design;
        let effects = arm == Arm::Treated && self.has_effect;
        let add = |effect: f64| if effects { effect } else { 0.0 };
        (d.event_free + add(d.cure_effect), d.mean_time + add(d.time_effect))
    }

    /// Shifts on the logit scale that give the patients of a run the averages of the design, within bounds.
    fn shifts(&self, run: &[OfPatient]) -> [ByArm<f64>; 2] {
        let h = self.design.horizon;
        let solve = |value: &dyn Fn(&OfPatient) -> f64, wanted: f64| {
            let (mut low, mut high) = (-20.0, 20.0);
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                let mean = run.iter().map(|p| moved(value(p), middle)).sum::<f64>() / run.len() as f64;
                if mean < wanted { low = middle } else { high = middle }
            }
            0.5 * (low + high)
        };
        // Without effects both arms have the control arm's patients.
        let from = |z: Arm| if self.has_effect { z } else { Arm::Control };
        [
            ByArm::of(|z| solve(&|p| p.cured[from(z)], self.average(z).0)),
            ByArm::of(|z| solve(&|p| p.mean[from(z)] / h, self.average(z).1 / h)),
        ]
    }

    /// Event times of a patient under an arm.
    pub fn times(&self, patient: &Patient, arm: Arm) -> Times {
        match &self.same {
            Some(times) => times[arm].clone(),
            None => self.family.with_mean(patient.mean[arm]),
        }
    }

    /// Event times with a mean.
    pub fn with_mean(&self, mean: f64) -> Times {
        self.family.with_mean(mean)
    }

    /// The times that all patients share, if they do.
    pub fn shared_times(&self) -> Option<&ByArm<Times>> {
        self.same.as_ref()
    }

    /// Draws a patient; puts the covariates at the end of `x`.
    pub fn draw(&self, draws: &mut Draws, x: &mut Vec<f64>) -> Patient {
        let d = self.design;
        let h = d.horizon;
        if let Some(run) = self.run {
            let p = &run[((draws.uniform() * run.len() as f64) as usize).min(run.len() - 1)];
            x.extend(&p.x);
            let from = |z: Arm| if self.has_effect { z } else { Arm::Control };
            return Patient {
                cured: ByArm::of(|z| moved(p.cured[from(z)], self.shift[0][z])),
                mean: ByArm::of(|z| h * moved(p.mean[from(z)] / h, self.shift[1][z])),
                propensity: d.treated_share,
            };
        }
        let first = x.len();
        let mut covariate = |is_used: bool, is_even: bool| {
            if !is_used {
                return 0.0;
            }
            let u = draws.uniform();
            let v = if is_even { REACH * (2.0 * u - 1.0) } else { normal(u) };
            x.push(v);
            v
        };
        let whether = covariate(d.prognosis_whether != 0.0, false);
        let when = covariate(d.prognosis_when != 0.0, false);
        // The covariates are those of the design with its effects, so that trials without effect have the same.
        let [by_whether, by_when] = [d.cure_effect_sd, d.time_effect_sd].map(|sd| covariate(sd > 0.0, true));
        let selection = covariate(d.selection != 0.0, false);
        while x.len() < first + d.n_covariates {
            x.push(normal(draws.uniform()));
        }
        let confounder = match (d.prognosis_whether != 0.0, d.prognosis_when != 0.0) {
            (true, true) => (whether + when) * std::f64::consts::FRAC_1_SQRT_2,
            _ => whether + when,
        };
        let propensity = match d.is_observational() {
            true => expit(self.leaning + d.confounding * confounder + d.selection * selection),
            false => d.treated_share,
        };
        let (cured, mean) = (self.whether.at(whether), self.when.at(when));
        let effect = |z: Arm, average: f64, sd: f64, by: f64| match z {
            Arm::Treated if self.has_effect => average + sd * by,
            _ => 0.0,
        };
        Patient {
            cured: ByArm::of(|z| cured + effect(z, d.cure_effect, d.cure_effect_sd, by_whether)),
            mean: ByArm::of(|z| mean + effect(z, d.time_effect, d.time_effect_sd, by_when)),
            propensity,
        }
    }

    /// Names of the covariates.
    pub fn names(&self) -> Vec<String> {
        let d = self.design;
        if self.run.is_some() {
            return (1..=d.n_covariates).map(|j| format!("x{j}")).collect();
        }
        let used = [
            (d.prognosis_whether != 0.0, "bears_on_whether"),
            (d.prognosis_when != 0.0, "bears_on_when"),
            (d.cure_effect_sd > 0.0, "moves_whether"),
            (d.time_effect_sd > 0.0, "moves_when"),
            (d.selection != 0.0, "bears_on_treatment"),
        ];
        let mut names: Vec<String> = used.into_iter().filter(|(is, _)| *is).map(|(_, name)| name.into()).collect();
        let more = d.n_covariates - names.len();
        names.extend((1..=more).map(|j| format!("noise_{j}")));
        names
    }
}

/// A share moved on the logit scale.
fn moved(share: f64, by: f64) -> f64 {
    let share = share.clamp(1e-4, 1.0 - 1e-4);
    expit(libm::log(share / (1.0 - share)) + by)
}
