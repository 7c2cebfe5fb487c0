#![allow(clippy::print_stdout)]
//! What case weights, clusters, delayed entry and other causes are worth to the adjusted estimator: `features N COHORTS
//! FIRST_SEED`. Each world is analysed with its feature used and ignored; errors and coverage of the average over the
//! patients' distribution, and of the patients.

use dvim::internal::analysis;
use dvim::internal::audit::Audit;
use dvim::internal::cohort::{Arm, Cohort, Units};
use dvim::internal::estimand::{ByEstimand, Estimand};
use dvim::internal::options::{AdjustedOptions, Estimator, Options};
use dvim::internal::outcome::Extras;
use dvim::internal::table::Ids;
use dvim::internal::watch::Unwatched;

const HORIZON: f64 = 800.0;
const COVARIATES: usize = 6;
const SIGMA: f64 = 0.7;
/// Spread of what the patients of a cluster share, on the logit of cure.
const FRAILTY: f64 = 0.7;
const CLUSTERS: usize = 40;

#[derive(Clone, Copy, PartialEq)]
enum World {
    /// Patients with an event are all there, of the others a third; weights 1 and 3.
    Weights,
    /// 40 hospitals whose patients share a frailty; each treats all of its patients or none.
    Clusters,
    /// Seven of ten enter late, up to half of the horizon, and are not there if they had the event before.
    Entry,
    /// Half of those who never have the event have another one, and of the treated fewer.
    Causes,
}

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform().max(1e-300), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

fn expit(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

fn logit_of_cure(x: &[f64], treated: f64) -> f64 {
    -0.4 + 0.5 * x[0] + 0.4 * x[1] + treated * (0.5 + 0.4 * x[1])
}

fn location(x: &[f64], treated: f64) -> f64 {
    5.2 + 0.3 * x[0] - 0.3 * x[2] + treated * 0.4
}

/// P(cure) and E[T | T < H].
fn truth(world: World, x: &[f64], treated: f64) -> ByEstimand<f64> {
    let a = logit_of_cure(x, treated);
    let cure = if world == World::Clusters {
        let at = |k: i32| 0.1 * f64::from(k);
        let density = |z: f64| (-0.5 * z * z).exp();
        let all: f64 = (-50..=50).map(|k| density(at(k))).sum();
        (-50..=50).map(|k| density(at(k)) * expit(a + FRAILTY * at(k))).sum::<f64>() / all
    } else {
        expit(a)
    };
    let (m, h) = (location(x, treated), HORIZON.ln());
    let share = normal_cdf((h - m) / SIGMA);
    let time = (m + 0.5 * SIGMA * SIGMA).exp() * normal_cdf((h - m - SIGMA * SIGMA) / SIGMA) / share;
    ByEstimand { cure, time }
}

struct Patient {
    x: Vec<f64>,
    treated: bool,
    time: f64,
    event: bool,
    competing: bool,
    weight: f64,
    entry: f64,
    cluster: u32,
}

/// One patient, or nobody where the world does not show him.
fn patient(world: World, draws: &mut Draws, frailty: &[f64]) -> Option<Patient> {
    let x: Vec<f64> = (0..COVARIATES).map(|_| draws.normal()).collect();
    let cluster = (draws.uniform() * CLUSTERS as f64) as u32;
    let by_choice = draws.uniform() < expit(0.4 * x[0]);
    let treated = if world == World::Clusters { cluster.is_multiple_of(2) } else { by_choice };
    let z = f64::from(u8::from(treated));
    let shared = if world == World::Clusters { frailty[cluster as usize] } else { 0.0 };
    let cured = draws.uniform() < expit(logit_of_cure(&x, z) + shared);
    let mut time = f64::INFINITY;
    while !cured && time >= HORIZON {
        time = (location(&x, z) + SIGMA * draws.normal()).exp();
    }
    let entry = match world {
        World::Entry if draws.uniform() < 0.7 => 400.0 * draws.uniform(),
        _ => 0.0,
    };
    if time <= entry {
        return None;
    }
    let other = match world {
        World::Causes if cured && draws.uniform() < 0.6 - 0.3 * z => HORIZON * draws.uniform(),
        _ => f64::INFINITY,
    };
    let lost = entry - 1500.0 * draws.uniform().max(1e-300).ln();
    let seen = time.min(other).min(lost);
    let event = time < lost && time < other;
    let keep = world != World::Weights || event || draws.uniform() < 1.0 / 3.0;
    keep.then_some(Patient {
        weight: if world == World::Weights && !event { 3.0 } else { 1.0 },
        competing: other < lost && other < time,
        time: seen.min(HORIZON),
        event,
        x,
        treated,
        entry,
        cluster,
    })
}

fn patients(world: World, n: usize, seed: u64) -> Vec<Patient> {
    let mut draws = Draws(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ (world as u64 + 1));
    let frailty: Vec<f64> = (0..CLUSTERS).map(|_| FRAILTY * draws.normal()).collect();
    let mut out = Vec::with_capacity(n);
    while out.len() < n {
        out.extend(patient(world, &mut draws, &frailty));
    }
    out
}

fn cohort(world: World, patients: &[Patient], used: bool) -> Cohort {
    let mut extras = Extras::default();
    let of = |is: World| used && world == is;
    if of(World::Weights) {
        extras.weight = Some(patients.iter().map(|p| p.weight).collect());
    }
    if of(World::Clusters) {
        extras.cluster = Some(patients.iter().map(|p| p.cluster).collect());
    }
    if of(World::Entry) {
        extras.entry = Some(patients.iter().map(|p| p.entry).collect());
    }
    if of(World::Causes) {
        extras.competing = Some(patients.iter().map(|p| p.competing).collect());
    }
    let units = Units {
        ids: Ids::Rows(patients.len()),
        time: patients.iter().map(|p| p.time).collect(),
        event: patients.iter().map(|p| p.event).collect(),
        arm: patients.iter().map(|p| if p.treated { Arm::Treated } else { Arm::Control }).collect(),
        covariates: patients.iter().flat_map(|p| p.x.clone()).collect(),
        names: (1..=COVARIATES).map(|j| format!("x{j}")).collect(),
        labels: ["0".into(), "1".into()],
        extras,
    };
    Cohort::from_parts(units, None, HORIZON).expect("a cohort")
}

fn effect(world: World, x: &[f64]) -> ByEstimand<f64> {
    let (t, c) = (truth(world, x, 1.0), truth(world, x, 0.0));
    ByEstimand { cure: t.cure - c.cure, time: t.time - c.time }
}

/// The average effect over those whom the world shows, by their weights.
fn population(world: World) -> ByEstimand<f64> {
    let all = patients(world, 100_000, 99);
    let total: f64 = all.iter().map(|p| p.weight).sum();
    let effects: Vec<ByEstimand<f64>> = all.iter().map(|p| effect(world, &p.x)).collect();
    ByEstimand::of(|e| all.iter().zip(&effects).map(|(p, of)| p.weight * of[e]).sum::<f64>() / total)
}

#[derive(Default)]
struct Sums {
    n: f64,
    error: f64,
    square: f64,
    covered: f64,
    width: f64,
}

impl Sums {
    fn add(&mut self, estimate: f64, truth: f64, low: f64, high: f64) {
        self.n += 1.0;
        self.error += estimate - truth;
        self.square += (estimate - truth) * (estimate - truth);
        self.covered += f64::from(u8::from((low..=high).contains(&truth)));
        self.width += high - low;
    }

    fn told(&self, scale: f64) -> String {
        let of = |x: f64| scale * x / self.n;
        let root = scale * (self.square / self.n).sqrt();
        format!(
            "{:+7.2} | {root:7.2} | {:5.1} % | {:6.1}",
            of(self.error),
            100.0 * self.covered / self.n,
            of(self.width)
        )
    }
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let number = |k: usize, usual: u64| numbers.get(k).copied().unwrap_or(usual);
    let (n, cohorts, first) = (number(0, 1_500) as usize, number(1, 40), number(2, 1));
    let options = Options { estimator: Estimator::Adjusted(AdjustedOptions::default()), ..Options::default() };
    println!("| world | | effect | of | mean error | root mean square | covered | width |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let worlds = [
        (World::Weights, "weights"),
        (World::Clusters, "clusters"),
        (World::Entry, "entry"),
        (World::Causes, "causes"),
    ];
    for (world, name) in worlds {
        let average = population(world);
        for used in [true, false] {
            let mut sums: [ByEstimand<Sums>; 2] = Default::default();
            for seed in first..first + cohorts {
                let patients = patients(world, n, seed);
                let cohort = cohort(world, &patients, used);
                let found = analysis::run(&cohort, &options, &Unwatched).expect("an analysis");
                let audit = Audit::of(&cohort, &found, &[]).expect("an audit");
                for (estimand, label) in [(Estimand::Cure, "cure_effect"), (Estimand::Time, "time_effect")] {
                    let a = audit.averages.iter().find(|a| a.estimand == label && a.population == "all");
                    let a = a.expect("an average");
                    let ends = (a.low.unwrap_or(f64::NAN), a.high.unwrap_or(f64::NAN));
                    sums[0][estimand].add(a.estimate.unwrap_or(f64::NAN), average[estimand], ends.0, ends.1);
                    for (&i, e) in found.units.iter().zip(&found.effects) {
                        let truth = effect(world, &patients[i as usize].x)[estimand];
                        let interval = match estimand {
                            Estimand::Cure => Some(e.cure_interval(0.95)),
                            Estimand::Time => e.time_interval(HORIZON, 0.95),
                        };
                        if let (Some(value), Some(ends)) = (e.of(estimand), interval) {
                            sums[1][estimand].add(value, truth, ends.low, ends.high);
                        }
                    }
                }
            }
            let use_of = if used { "used" } else { "ignored" };
            for (of, whose) in sums.iter().zip(["average", "patient"]) {
                println!("| {name} | {use_of} | cure, points | {whose} | {} |", of.cure.told(100.0));
                println!("| {name} | {use_of} | time | {whose} | {} |", of.time.told(1.0));
            }
        }
    }
}
