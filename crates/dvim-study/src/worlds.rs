//! Worlds in which verdicts are tested: what decides on treatment, on the outcome and on censoring, with the truth.
//!
//! Six covariates: x1 to x4 numbers, x5 and x6 yes or no. A patient's chance of the event, if there were no end, is
//! `u_z(x)`, its time then Weibull or log-normal, and the horizon is 100. Every world departs in one or two ways from a
//! randomised trial with a real effect. The averages that intervals should hold are those of a large draw of the world.

use dvim::Cohort;
use dvim::internal::cohort::{Arm, Units};
use dvim::internal::error::Error;
use dvim::internal::outcome::Extras;
use dvim::internal::table::Ids;

/// The horizon of every world.
pub const HORIZON: f64 = 100.0;
const P: usize = 6;
/// Patients of the draw that the truth is taken from.
const POPULATION: usize = 20_000;

/// What decides on treatment: the logit of its chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Assignment {
    /// A coin with this chance.
    Coin(f64),
    /// `strength (x1 + x2/2 + x5 − ½)`.
    Linear(f64),
    /// Rather inside a ring of x1 and x2.
    Ring(f64),
    /// Rather where x1 and x2 have the same sign.
    Checker(f64),
    /// Rather where x1 is large in either direction.
    Square(f64),
    /// Rather where x1 and x3 are both large.
    And(f64),
    /// `strength · sin(2 x1)`.
    Wave(f64),
    /// By x1 alone, so steeply that hardly anybody is in doubt.
    Cliff(f64),
    /// Nobody of x5 = 0 with x1 below the mean is treated.
    OneSided,
    /// By something that was not measured, and by x1.
    Hidden(f64),
}

/// What else makes an outcome likely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Prognosis {
    /// `strength (x1 + x2/2 − x3/2 + x5 − ½)`.
    Linear(f64),
    /// The same ring as [`Assignment::Ring`].
    Ring(f64),
    /// The same checkerboard.
    Checker(f64),
    /// The square of x1.
    Square(f64),
    /// Both x1 and x3 large.
    And(f64),
    /// The same wave.
    Wave(f64),
}

/// Who is censored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Censoring {
    /// The study ends at 1.5 H for everybody, and some are lost at random.
    Light,
    /// At random, at a rate of this many in the time to H.
    Random(f64),
    /// The same, more often where x1 is large: `rate · exp(strength x1)`.
    ByCovariate(f64, f64),
    /// The same with strength against x1 in the control arm.
    ByCovariateAndArm(f64, f64),
    /// More often where x1 is large in either direction.
    BySquare(f64, f64),
}

/// A column that does not belong there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Leak {
    /// The time with noise.
    Time,
    /// The event.
    Event,
    /// Another outcome that ends later.
    Survival,
    /// Whether the patient was still there at half of the horizon.
    Landmark,
}

/// A world.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// Its name.
    pub name: &'static str,
    /// What it is an example of.
    pub family: &'static str,
    /// Units where they are not those that were asked for.
    pub n_units: Option<usize>,
    assignment: Assignment,
    prognosis: Prognosis,
    censoring: Censoring,
    leak: Option<Leak>,
    /// Logit of the chance of the event at the mean, and how treatment changes it, also with x3.
    event: (f64, f64, f64),
    /// Log of the scale of event times, how treatment changes it, how x1 does.
    time: (f64, f64, f64),
    /// Whether times are log-normal, or Weibull.
    log_normal: bool,
    /// Whether x1 to x4 are skewed, or rounded to few values.
    covariates: Shape,
}

/// How numbers among the covariates are distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Normal.
    Normal,
    /// Log-normal, standardised.
    Skewed,
    /// Normal, rounded to halves.
    Coarse,
}

const BASE: World = World {
    name: "trial",
    family: "randomised",
    n_units: None,
    assignment: Assignment::Coin(0.5),
    prognosis: Prognosis::Linear(0.7),
    censoring: Censoring::Light,
    leak: None,
    event: (0.4, -0.8, 0.0),
    time: (3.4, 0.35, -0.25),
    log_normal: false,
    covariates: Shape::Normal,
};

macro_rules! worlds {
    ($($family:literal: { $($name:literal { $($field:ident: $value:expr),* })* })*) => {
        vec![$($(World { name: $name, family: $family, $($field: $value,)* ..BASE },)*)*]
    };
}

/// Every world, family after family.
pub fn all() -> Vec<World> {
    use Assignment as A;
    use Censoring as C;
    use Prognosis as G;
    worlds! {
        "randomised": {
            "trial" {}
            "trial, strong effect" { event: (0.6, -1.5, 0.0), time: (3.4, 0.7, -0.25) }
            "trial, cure alone" { time: (3.4, 0.0, -0.25) }
            "trial, time alone" { event: (0.4, 0.0, 0.0), time: (3.4, 0.6, -0.25) }
            "trial, effects vary" { event: (0.4, -0.8, 0.8) }
            "trial, one in five treated" { assignment: A::Coin(0.2) }
            "trial, log-normal times" { log_normal: true }
            "trial, skewed covariates" { covariates: Shape::Skewed }
            "trial, coarse covariates" { covariates: Shape::Coarse }
            "trial, curved prognosis" { prognosis: G::Square(0.8) }
        }
        "confounded": {
            "mild" { assignment: A::Linear(0.4) }
            "moderate" { assignment: A::Linear(0.8) }
            "strong" { assignment: A::Linear(1.2) }
            "moderate, strong prognosis" { assignment: A::Linear(0.8), prognosis: G::Linear(1.3) }
            "moderate, effects vary" { assignment: A::Linear(0.8), event: (0.4, -0.8, 0.8) }
            "moderate, log-normal times" { assignment: A::Linear(0.8), log_normal: true }
            "moderate, skewed covariates" { assignment: A::Linear(0.8), covariates: Shape::Skewed }
            "moderate, curved prognosis" { assignment: A::Linear(0.8), prognosis: G::Square(0.8) }
        }
        "confounded, not linear": {
            "ring" { assignment: A::Ring(1.5), prognosis: G::Ring(1.5) }
            "ring, mild" { assignment: A::Ring(0.7), prognosis: G::Ring(0.7) }
            "checkerboard" { assignment: A::Checker(1.2), prognosis: G::Checker(1.2) }
            "square" { assignment: A::Square(0.9), prognosis: G::Square(0.9) }
            "square, mild" { assignment: A::Square(0.4), prognosis: G::Square(0.4) }
            "both large" { assignment: A::And(1.6), prognosis: G::And(1.6) }
            "wave" { assignment: A::Wave(1.0), prognosis: G::Wave(1.0) }
            "ring, other prognosis" { assignment: A::Ring(1.5) }
        }
        "leaked": {
            "time as a covariate" { leak: Some(Leak::Time) }
            "event as a covariate" { leak: Some(Leak::Event) }
            "survival as a covariate" { leak: Some(Leak::Survival), assignment: A::Linear(0.6) }
            "landmark as a covariate" { leak: Some(Leak::Landmark) }
        }
        "censored": {
            "many censored at random" { censoring: C::Random(0.8) }
            "censored by a covariate" { censoring: C::ByCovariate(0.5, 0.6) }
            "strongly censored by a covariate" { censoring: C::ByCovariate(0.7, 1.2) }
            "censored by a covariate and the arm" { censoring: C::ByCovariateAndArm(0.6, 0.9) }
            "censored by a square" { censoring: C::BySquare(0.5, 0.6), prognosis: G::Square(0.8) }
        }
        "rare": {
            "5 % have the event" { event: (-3.0, -0.8, 0.0) }
            "10 % have the event" { event: (-2.2, -0.8, 0.0), assignment: A::Linear(0.6) }
            "2 % have the event" { event: (-4.0, -0.5, 0.0) }
        }
        "tiny": {
            "trial of 150" { n_units: Some(150) }
            "trial of 80" { n_units: Some(80) }
            "confounded, 150" { n_units: Some(150), assignment: A::Linear(0.8) }
            "confounded, 300" { n_units: Some(300), assignment: A::Linear(0.8) }
        }
        "without overlap": {
            "steep" { assignment: A::Cliff(4.0) }
            "very steep" { assignment: A::Cliff(10.0) }
            "one side" { assignment: A::OneSided }
            "steep, strong prognosis" { assignment: A::Cliff(4.0), prognosis: G::Linear(1.3) }
        }
        "without effect": {
            "trial, no effect" { event: (0.4, 0.0, 0.0), time: (3.4, 0.0, -0.25) }
            "confounded, no effect" { assignment: A::Linear(0.8), event: (0.4, 0.0, 0.0), time: (3.4, 0.0, -0.25) }
            "ring, no effect" { assignment: A::Ring(1.5), prognosis: G::Ring(1.5), event: (0.4, 0.0, 0.0), time: (3.4, 0.0, -0.25) }
        }
        "all cured": {
            "97 % cured" { event: (-3.6, -0.4, 0.0), censoring: C::Random(0.2) }
            "95 % cured, confounded" { event: (-3.0, -0.4, 0.0), assignment: A::Linear(0.6) }
        }
        "nobody cured": {
            "everybody has the event" { event: (20.0, 0.0, 0.0), time: (2.6, 0.4, -0.2) }
            "everybody has it, confounded" { event: (20.0, 0.0, 0.0), time: (2.6, 0.4, -0.2), assignment: A::Linear(0.8) }
            "nearly everybody has it" { event: (3.5, -0.8, 0.0), time: (3.0, 0.4, -0.2) }
        }
        "unmeasured": {
            "hidden confounder" { assignment: A::Hidden(1.0) }
            "weak hidden confounder" { assignment: A::Hidden(0.3) }
        }
    }
}

/// Draws from a seed (SplitMix64).
struct Draw(u64);

impl Draw {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

fn expit(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Inside a ring between the 30 and the 70 % point of the radius of two normal covariates: 1, else −1.
fn ring(x: &[f64; P]) -> f64 {
    let square = x[0] * x[0] + x[1] * x[1];
    if (0.713..2.408).contains(&square) { 1.0 } else { -0.67 }
}

fn checker(x: &[f64; P]) -> f64 {
    if x[0] * x[1] > 0.0 { 1.0 } else { -1.0 }
}

fn and(x: &[f64; P]) -> f64 {
    if x[0] > 0.0 && x[2] > 0.0 { 1.5 } else { -0.5 }
}

fn square(x: &[f64; P]) -> f64 {
    x[0].clamp(-4.0, 4.0).powi(2) - 1.0
}

/// One patient as the world made it.
struct Patient {
    x: [f64; P],
    /// What was not measured.
    hidden: f64,
}

/// The law of one arm for one patient.
struct Law {
    event: f64,
    log_scale: f64,
    shape: f64,
    log_normal: bool,
}

impl Law {
    /// P(time ≤ t | there is an event at all).
    fn cdf(&self, t: f64) -> f64 {
        let z = (t.ln() - self.log_scale) * self.shape;
        if self.log_normal { 0.5 * erfc(-z / std::f64::consts::SQRT_2) } else { -(-z.exp()).exp_m1() }
    }

    fn draw(&self, d: &mut Draw) -> f64 {
        let z = if self.log_normal { d.normal() } else { (-d.uniform().ln()).ln() };
        (self.log_scale + z / self.shape).exp()
    }

    /// P(no event before H), and the mean time of events before it.
    fn truth(&self) -> (f64, f64) {
        let below = self.cdf(HORIZON);
        // ∫ (F(H) − F(t)) dt / F(H) by Simpson's rule, denser at the start.
        const CELLS: usize = 64;
        let at = |k: usize| HORIZON * (k as f64 / CELLS as f64).powi(2);
        let rest = |t: f64| if t <= 0.0 { below } else { below - self.cdf(t) };
        let area: f64 = (0..CELLS)
            .map(|k| {
                let (a, b) = (at(k), at(k + 1));
                (b - a) / 6.0 * (rest(a) + 4.0 * rest(0.5 * (a + b)) + rest(b))
            })
            .sum();
        (1.0 - self.event * below, area / below.max(1e-12))
    }
}

/// The complementary error function, to 1.2e-7 [Press et al. 1992].
fn erfc(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    let poly = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let sum = poly.iter().rev().fold(0.0, |sum, c| sum * t + c);
    let y = t * (-x * x + sum).exp();
    if x >= 0.0 { y } else { 2.0 - y }
}

impl World {
    fn patient(&self, d: &mut Draw) -> Patient {
        let mut x = [0.0; P];
        for v in &mut x[..4] {
            let z = d.normal();
            *v = match self.covariates {
                Shape::Normal => z,
                Shape::Skewed => ((0.7 * z).exp() - 1.277_6) / 1.017,
                Shape::Coarse => (2.0 * z).round() / 2.0,
            };
        }
        (4..P).for_each(|j| x[j] = f64::from(u8::from(d.uniform() < 0.5)));
        Patient { x, hidden: d.normal() }
    }

    fn chance(&self, p: &Patient) -> f64 {
        let x = &p.x;
        match self.assignment {
            Assignment::Coin(p) => p,
            Assignment::Linear(s) => expit(s * (x[0] + 0.5 * x[1] + x[4] - 0.5)),
            Assignment::Ring(s) => expit(s * ring(x)),
            Assignment::Checker(s) => expit(s * checker(x)),
            Assignment::Square(s) => expit(s * square(x)),
            Assignment::And(s) => expit(s * and(x)),
            Assignment::Wave(s) => expit(s * (2.0 * x[0]).sin()),
            Assignment::Cliff(s) => expit(s * x[0]),
            Assignment::OneSided => {
                if x[4] == 0.0 && x[0] < 0.0 {
                    0.0
                } else {
                    expit(0.5 * x[1] + 0.5)
                }
            }
            Assignment::Hidden(s) => expit(0.5 * x[0] + s * p.hidden),
        }
    }

    fn risk(&self, p: &Patient) -> f64 {
        let x = &p.x;
        let hidden = if let Assignment::Hidden(s) = self.assignment { s * p.hidden } else { 0.0 };
        hidden
            + match self.prognosis {
                Prognosis::Linear(s) => s * (x[0] + 0.5 * x[1] - 0.5 * x[2] + x[4] - 0.5),
                Prognosis::Ring(s) => s * ring(x) + 0.3 * x[2],
                Prognosis::Checker(s) => s * checker(x) + 0.3 * x[2],
                Prognosis::Square(s) => s * square(x) + 0.3 * x[2],
                Prognosis::And(s) => s * and(x) + 0.3 * x[3],
                Prognosis::Wave(s) => s * (2.0 * x[0]).sin() + 0.3 * x[2],
            }
    }

    fn law(&self, p: &Patient, arm: Arm) -> Law {
        let z = f64::from(u8::from(arm == Arm::Treated));
        let (base, effect, varies) = self.event;
        let (scale, delay, slope) = self.time;
        Law {
            event: expit(base + z * (effect + varies * p.x[2]) + self.risk(p)),
            log_scale: scale + z * delay + slope * self.risk(p).clamp(-2.0, 2.0) + 0.1 * p.x[5],
            shape: 1.4,
            log_normal: self.log_normal,
        }
    }

    fn censored(&self, p: &Patient, arm: Arm, d: &mut Draw) -> f64 {
        let exponential = |rate: f64, d: &mut Draw| -d.uniform().ln() * HORIZON / rate.max(1e-9);
        let end = 1.5 * HORIZON;
        let x1 = p.x[0];
        match self.censoring {
            Censoring::Light => exponential(0.15, d).min(end),
            Censoring::Random(rate) => exponential(rate, d).min(end),
            Censoring::ByCovariate(rate, s) => exponential(rate * (s * x1).exp(), d).min(end),
            Censoring::ByCovariateAndArm(rate, s) => {
                let s = if arm == Arm::Treated { s } else { -s };
                exponential(rate * (s * x1).exp(), d).min(end)
            }
            Censoring::BySquare(rate, s) => exponential(rate * (s * square(&p.x)).exp(), d).min(end),
        }
    }

    /// The averages over everybody: effect on being event-free, effect on the mean event time.
    pub fn truth(&self) -> [f64; 2] {
        let mut d = Draw(0x7472_7574_6800);
        let (mut cure, mut time) = (0.0, 0.0);
        for _ in 0..POPULATION {
            let p = self.patient(&mut d);
            let [(s0, m0), (s1, m1)] = Arm::BOTH.map(|z| self.law(&p, z).truth());
            cure += s1 - s0;
            time += m1 - m0;
        }
        [cure / POPULATION as f64, time / POPULATION as f64]
    }

    /// A cohort of the world, or why the door refuses it.
    pub fn draw(&self, n: usize, seed: u64) -> Result<Cohort, Error> {
        let mut d = Draw(seed ^ 0x776f_726c_6400);
        let mut names: Vec<String> = (1..=P).map(|j| format!("x{j}")).collect();
        if self.leak.is_some() {
            names.push("x7".into());
        }
        let (mut time, mut event, mut arms, mut covariates) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..n {
            let p = self.patient(&mut d);
            let arm = if d.uniform() < self.chance(&p) { Arm::Treated } else { Arm::Control };
            let law = self.law(&p, arm);
            let t = if d.uniform() < law.event { law.draw(&mut d) } else { f64::INFINITY };
            let c = self.censored(&p, arm, &mut d);
            let (observed, is_event) = (t.min(c).max(1e-6), t <= c);
            covariates.extend_from_slice(&p.x);
            let noise = d.normal();
            covariates.extend(self.leak.map(|leak| match leak {
                Leak::Time => observed * (0.1 * noise).exp(),
                Leak::Event => f64::from(u8::from(is_event)),
                Leak::Survival if is_event => (observed + 20.0 * -d.uniform().ln()).min(c.max(observed)),
                Leak::Survival => observed,
                Leak::Landmark => f64::from(u8::from(observed > 0.5 * HORIZON)),
            }));
            time.push(observed);
            event.push(is_event);
            arms.push(arm);
        }
        let labels = ["control", "treated"].map(String::from);
        let units =
            Units { ids: Ids::Rows(n), time, event, arm: arms, covariates, names, labels, extras: Extras::default() };
        Cohort::from_parts(units, None, HORIZON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_enough_worlds_of_every_family() {
        let worlds = all();
        assert!(worlds.len() >= 40, "{}", worlds.len());
        let names: std::collections::HashSet<&str> = worlds.iter().map(|w| w.name).collect();
        assert_eq!(names.len(), worlds.len(), "names are distinct");
    }

    /// The truth is that of large cohorts without censoring: shares and means of potential outcomes.
    #[test]
    fn the_truth_is_what_happens() {
        for world in all().into_iter().filter(|w| ["trial", "trial, log-normal times"].contains(&w.name)) {
            let [cure, time] = world.truth();
            let mut d = Draw(99);
            let (n, mut free, mut sums) = (200_000, [0.0; 2], 0.0);
            for _ in 0..n {
                let p = world.patient(&mut d);
                let mut means = [0.0; 2];
                for z in Arm::BOTH {
                    let law = world.law(&p, z);
                    let t = if d.uniform() < law.event { law.draw(&mut d) } else { f64::INFINITY };
                    free[z.index()] += f64::from(u8::from(t >= HORIZON)) / f64::from(n);
                    // A draw of the time of this patient's event, given that it comes before the horizon.
                    means[z.index()] = loop {
                        let t = law.draw(&mut d);
                        if t < HORIZON {
                            break t;
                        }
                    };
                }
                sums += (means[1] - means[0]) / f64::from(n);
            }
            assert!((free[1] - free[0] - cure).abs() < 0.005, "{}: {cure} {free:?}", world.name);
            assert!((sums - time).abs() < 0.3, "{}: {time} {sums}", world.name);
        }
    }

    #[test]
    fn cohorts_are_drawn_from_a_seed() {
        for world in all() {
            let n = world.n_units.unwrap_or(400);
            let (a, b) = (world.draw(n, 5), world.draw(n, 5));
            match (a, b) {
                (Ok(a), Ok(b)) => assert!(a == b, "{}", world.name),
                (Err(a), Err(b)) => assert_eq!(a, b),
                _ => panic!("{}: once refused, once not", world.name),
            }
        }
    }
}
