//! The worlds beyond the paper, and the laws of event times that they need.
//!
//! All have the paper's twenty covariates, horizon and uniform censoring, and treatment that depends on `x20`, unless
//! said. Each takes one thing away that the cure model rests on.

use super::{ArmLaw, FollowUp, Predictor, Scenario};
use crate::cohort::Arm;
use crate::cure::truncated_mean;
use crate::numeric::{expit, normal_cdf, normal_quantile};
use std::f64::consts::PI;

/// How a unit comes to be cured.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Cure {
    /// A part of its own: P(uncured) is a logistic function of the predictor.
    Mixture,
    /// Promotion time, `S(t) = exp(−θ F(t)/F(H))`: P(uncured) is `1 − exp(−θ)`, and θ also decides how early events
    /// come.
    Promotion,
}

/// Laws of the log event time around its location, in units of its scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ErrorLaw {
    /// Standard normal: log-normal times.
    Normal,
    /// The logarithm of a standard exponential: Weibull times.
    ExtremeValue,
    /// Student's t on 3 degrees of freedom, scaled to variance 1.
    Student,
    /// Half normal around −1, half around 1, both with this standard deviation.
    TwoNormals(f64),
}

/// The standard deviation of each half of the bimodal times.
const MODE_SD: f64 = 0.4;

/// Below this many scales no time with Student's tails is drawn: at the paper's locations that is under 1e−25 days, and
/// further out it would round to 0. One draw in 600,000 is there.
const FARTHEST: f64 = -60.0;

/// Student's t on 3 degrees of freedom, scaled to variance 1: `F(z) = ½ + (atan z + z/(1 + z²))/π`. With `z =
/// ∓cot(δ/2)` the smaller tail is `(δ − sin δ)/(2π)`, which is convex on (0, π), so that Newton's method converges from
/// any point.
pub(super) fn student_quantile(p: f64) -> f64 {
    let tail = 2.0 * PI * p.min(1.0 - p);
    // δ − sin δ ≤ δ³/6: the start is below the root, the first step above it, all others fall.
    let mut delta = libm::cbrt(6.0 * tail);
    for _ in 0..100 {
        let step = (delta - libm::sin(delta) - tail) / (1.0 - libm::cos(delta));
        delta = (delta - step).clamp(f64::MIN_POSITIVE, PI);
        if step.abs() <= 1e-15 * delta {
            break;
        }
    }
    let z = 1.0 / libm::tan(0.5 * delta);
    if p < 0.5 { -z } else { z }
}

impl ErrorLaw {
    fn cdf(self, z: f64) -> f64 {
        match self {
            ErrorLaw::Normal => normal_cdf(z),
            ErrorLaw::ExtremeValue => -libm::expm1(-libm::exp(z)),
            ErrorLaw::Student => 0.5 + (libm::atan(z) + z / (1.0 + z * z)) / PI,
            ErrorLaw::TwoNormals(sd) => 0.5 * (normal_cdf((z + 1.0) / sd) + normal_cdf((z - 1.0) / sd)),
        }
    }

    fn quantile(self, p: f64) -> f64 {
        match self {
            ErrorLaw::Normal => normal_quantile(p),
            ErrorLaw::ExtremeValue => libm::log(-libm::log1p(-p)),
            ErrorLaw::Student => student_quantile(p).max(FARTHEST),
            ErrorLaw::TwoNormals(sd) => {
                // Each half alone bounds the quantile; a bisection ends at neighbouring numbers.
                let z = sd * normal_quantile(p);
                let (mut low, mut high) = (z - 1.0, z + 1.0);
                loop {
                    let middle = 0.5 * (low + high);
                    if middle <= low || middle >= high {
                        return low;
                    }
                    if self.cdf(middle) < p { low = middle } else { high = middle }
                }
            }
        }
    }
}

/// Points of the quantile function over which a mean without closed form is taken.
const MEAN_POINTS: u32 = 400;

/// One arm's law for one unit.
pub(super) struct Latency {
    /// P(event before H).
    pub uncured: f64,
    /// θ under promotion time.
    theta: Option<f64>,
    error: ErrorLaw,
    location: f64,
    sigma: f64,
    horizon: f64,
    /// F(H).
    below: f64,
}

impl Latency {
    pub(super) fn of(law: &ArmLaw, x: &[f64], horizon: f64) -> Latency {
        let (uncured, location, sigma) = (law.uncured.at(x), law.location.at(x), law.sigma.at(x));
        let theta = (law.cure == Cure::Promotion).then(|| libm::exp(uncured));
        Latency {
            uncured: theta.map_or_else(|| expit(uncured), |theta| -libm::expm1(-theta)),
            theta,
            error: law.error,
            location,
            sigma,
            horizon,
            below: law.error.cdf((libm::log(horizon) - location) / sigma),
        }
    }

    /// The quantile function of the event time, given that it is before H.
    pub(super) fn quantile(&self, p: f64) -> f64 {
        // 1 − exp(−θ F(t)/F(H)) = p (1 − exp(−θ)).
        let p = self.theta.map_or(p, |theta| -libm::log1p(-p * self.uncured) / theta);
        libm::exp(self.location + self.sigma * self.error.quantile(p * self.below)).min(self.horizon.next_down())
    }

    /// P(T < t | T < H).
    pub(super) fn share(&self, t: f64) -> f64 {
        if t <= 0.0 {
            return 0.0;
        }
        let below =
            (self.error.cdf((libm::log(t.min(self.horizon)) - self.location) / self.sigma) / self.below).min(1.0);
        self.theta.map_or(below, |theta| -libm::expm1(-theta * below) / self.uncured)
    }

    /// E[T | T < H]: in closed form for mixture cure with log-normal, Weibull and two-mode times; else the mean of
    /// [`Latency::quantile`] over 400 midpoints, which is within a thousandth of it.
    pub(super) fn mean(&self) -> f64 {
        let log_horizon = libm::log(self.horizon);
        match (self.theta, self.error) {
            (None, ErrorLaw::Normal) => truncated_mean(log_horizon, self.location, libm::log(self.sigma)),
            (None, ErrorLaw::ExtremeValue) => {
                // T = e^μ E^σ with E exponential: E[T; T < H] = e^μ γ(1 + σ, c), c = (H e^−μ)^(1/σ).
                let c = libm::exp((log_horizon - self.location) / self.sigma);
                let a = 1.0 + self.sigma;
                libm::exp(self.location) * libm::tgamma(a) * puruspe::gammp(a, c) / self.below
            }
            (None, ErrorLaw::TwoNormals(sd)) => {
                let part = |side: f64| {
                    let (location, sd) = (self.location + side * self.sigma, self.sigma * sd);
                    0.5 * normal_cdf((log_horizon - location) / sd)
                        * truncated_mean(log_horizon, location, libm::log(sd))
                };
                (part(-1.0) + part(1.0)) / self.below
            }
            _ => self.midpoint_mean(),
        }
    }

    fn midpoint_mean(&self) -> f64 {
        let n = f64::from(MEAN_POINTS);
        (0..MEAN_POINTS).map(|q| self.quantile((f64::from(q) + 0.5) / n)).sum::<f64>() / n
    }
}

/// 1 above the threshold, else 0.
fn above(value: f64, threshold: f64) -> f64 {
    f64::from(u8::from(value > threshold))
}

/// A bend: 2 tanh.
fn bend(value: f64) -> f64 {
    2.0 * libm::tanh(value)
}

/// A square less its mean under the standard normal law.
fn square(value: f64) -> f64 {
    value * value - 1.0
}

/// −1 where a flag is 0, 1 where it is 1.
fn sign(flag: f64) -> f64 {
    2.0 * flag - 1.0
}

/// The cure probability of the control arm in the world with a constant effect.
fn constant_effect_cure(x: &dyn Fn(usize) -> f64) -> f64 {
    0.15 + 0.35 * expit(0.8 * x(17) + 0.6 * x(18) - 0.5 * x(2))
}

/// Its effect.
const CONSTANT_EFFECT: f64 = 0.15;

fn logit_of_rest(cured: f64) -> f64 {
    libm::log1p(-cured) - libm::log(cured)
}

impl Scenario {
    /// The law of an arm in one of [`Scenario::WORLDS`].
    pub(super) fn world_law(self, arm: Arm) -> ArmLaw {
        use Arm::{Control, Treated};
        use Predictor::{Function, Linear};
        use Scenario::*;
        let log_normal = ArmLaw::log_normal;
        match (self, arm) {
            (Curvature, Treated) => log_normal(
                Function(|x| 0.7 + 0.5 * x(17) + 0.6 * square(x(18)) + 0.5 * x(19)),
                Function(|x| 4.5 + 0.5 * x(2) + 0.4 * square(x(15)) + 0.3 * x(16)),
            ),
            (Curvature, Control) => log_normal(
                Function(|x| 1.2 + 0.3 * x(1) + 0.5 * x(2) + 0.5 * square(x(19))),
                Function(|x| 3.5 + 0.3 * x(2) + 0.3 * x(15) - 0.3 * square(x(16))),
            ),
            (Interactions, Treated) => log_normal(
                Function(|x| 0.7 + 0.5 * x(17) + 0.8 * x(17) * x(18) + 0.8 * sign(x(1)) * x(19)),
                Function(|x| 4.5 + 0.4 * x(15) + 0.6 * x(15) * x(16) + 0.5 * sign(x(2)) * x(17)),
            ),
            (Interactions, Control) => log_normal(
                Function(|x| 1.2 + 0.4 * x(18) + 0.6 * x(18) * x(19)),
                Function(|x| 3.5 + 0.3 * x(2) + 0.3 * x(15) + 0.4 * x(16) * x(17)),
            ),
            (Thresholds, Treated) => log_normal(
                Function(|x| {
                    0.2 + 1.4 * above(x(18), 0.0) - 1.2 * above(x(20), 0.5)
                        + 0.8 * above(x(17), -0.5) * above(x(19), 0.0)
                }),
                Function(|x| 4.2 + above(x(15), 0.0) * above(x(2), 0.5) + 0.6 * above(x(16), 0.5)),
            ),
            (Thresholds, Control) => log_normal(
                Function(|x| 0.8 + above(x(19), 0.0) * above(x(1), 0.5) + 0.5 * above(x(17), 0.7)),
                Function(|x| 3.4 + 0.6 * above(x(15), 0.0) + 0.4 * x(2)),
            ),
            (HeavyCovariates, Treated) => log_normal(
                Function(|x| 0.7 + 0.4 * bend(x(17)) + 0.5 * bend(x(18)) - 0.5 * bend(x(20))),
                Function(|x| 4.4 + 0.4 * bend(x(15)) + 0.8 * x(2)),
            ),
            (HeavyCovariates, Control) => log_normal(
                Function(|x| 1.2 + 0.4 * bend(x(19)) + 0.4 * x(2)),
                Function(|x| 3.5 + 0.2 * bend(x(15)) + 0.3 * bend(x(16))),
            ),
            (HeavyTimes, _) => ArmLaw { error: ErrorLaw::Student, sigma: Linear((1.2, &[])), ..BothOverlap.law(arm) },
            (WeibullTimes, _) => {
                let law = BothOverlap.law(arm);
                let Linear((intercept, terms)) = law.location else { unreachable!("the paper's scenarios are linear") };
                let (location, sigma) = (Linear((intercept + 0.5, terms)), Linear((1.0 / 1.5, &[])));
                ArmLaw { error: ErrorLaw::ExtremeValue, location, sigma, ..law }
            }
            (BimodalTimes, _) => ArmLaw { error: ErrorLaw::TwoNormals(MODE_SD), ..BothIndependent.law(arm) },
            (Heteroscedastic, Treated) => {
                ArmLaw { sigma: Function(|x| libm::exp(-0.1 + 0.45 * x(15))), ..BothOverlap.law(arm) }
            }
            (Heteroscedastic, Control) => {
                ArmLaw { sigma: Function(|x| libm::exp(-0.1 - 0.35 * x(17))), ..BothOverlap.law(arm) }
            }
            (DependentCensoring, _) => Curvature.law(arm),
            (WeakOverlap, _) => Interactions.law(arm),
            (Correlated, Treated) => log_normal(
                Function(|x| 0.7 + 0.5 * x(17) - 0.6 * x(18) * x(19) + 0.4 * x(20)),
                Function(|x| 4.5 + 0.5 * x(2) + 0.4 * x(15) * x(16) + 0.3 * x(17)),
            ),
            (Correlated, Control) => {
                log_normal(Function(|x| 1.2 + 0.4 * x(18) - 0.4 * square(x(17))), Linear((3.5, &[(2, 0.3), (15, 0.3)])))
            }
            (PromotionTime, _) => {
                let (log_theta, location) = match arm {
                    Treated => ((0.1, &[(17, 0.4), (18, 0.4), (20, -0.4)][..]), (4.6, &[(15, 0.3)][..])),
                    Control => ((0.5, &[(1, 0.3), (19, 0.3)][..]), (4.0, &[(2, 0.2)][..])),
                };
                let law = log_normal(Linear(log_theta), Linear(location));
                ArmLaw { cure: Cure::Promotion, sigma: Linear((0.9, &[])), ..law }
            }
            (NoEffect, _) => log_normal(
                Linear((1.0, &[(1, 0.2), (17, -0.8), (18, 0.5), (19, 0.4), (20, -0.8)])),
                Linear((4.0, &[(1, 0.4), (3, 0.3), (15, 0.5), (16, -0.4), (17, -0.3)])),
            ),
            (ConstantEffect, Treated) => {
                log_normal(Function(|x| logit_of_rest(constant_effect_cure(x) + CONSTANT_EFFECT)), Linear((4.7, &[])))
            }
            (ConstantEffect, Control) => {
                log_normal(Function(|x| logit_of_rest(constant_effect_cure(x))), Linear((4.0, &[])))
            }
            (CureOnly | TimeOnly | BothIndependent | BothOverlap | Transplant, _) => {
                unreachable!("not one of the worlds beyond the paper")
            }
        }
    }

    /// How long the units of an arm are followed.
    pub(super) fn follow_up(self, arm: Arm) -> FollowUp {
        match (self, arm) {
            (Scenario::DependentCensoring, Arm::Control) => {
                FollowUp::Exponential(Predictor::Function(|x| 900.0 * libm::exp(-0.5 * x(18) + 0.4 * x(19))))
            }
            (Scenario::DependentCensoring, Arm::Treated) => {
                FollowUp::Exponential(Predictor::Function(|x| 900.0 * libm::exp(-0.5 * x(18) + 0.4 * x(19) - 0.3)))
            }
            _ => FollowUp::Uniform(1.5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAWS: [ErrorLaw; 4] =
        [ErrorLaw::Normal, ErrorLaw::ExtremeValue, ErrorLaw::Student, ErrorLaw::TwoNormals(MODE_SD)];

    #[test]
    fn quantiles_invert_distribution_functions() {
        for law in LAWS {
            for p in [1e-5, 0.003, 0.2, 0.5, 0.7, 0.95, 0.9999] {
                let found = law.cdf(law.quantile(p));
                assert!((found / p - 1.0).abs() < 1e-9, "{law:?} at {p}: {found}");
            }
        }
        // R: qt(0.9, 3) / sqrt(3).
        assert!((student_quantile(0.9) - 1.637_744_353_696_21 / 3f64.sqrt()).abs() < 1e-12);
        assert!((student_quantile(0.1) + student_quantile(0.9)).abs() < 1e-14);
    }

    #[test]
    fn closed_means_agree_with_midpoints() {
        for error in LAWS {
            for (location, sigma) in [(3.5, 1.0), (4.5, 0.7), (6.5, 1.0), (7.5, 0.6)] {
                let horizon: f64 = 800.0;
                let below = error.cdf((libm::log(horizon) - location) / sigma);
                let latency = Latency { uncured: 0.5, theta: None, error, location, sigma, horizon, below };
                let (found, midpoints) = (latency.mean(), latency.midpoint_mean());
                assert!((found / midpoints - 1.0).abs() < 2e-3, "{error:?} {location} {sigma}: {found} {midpoints}");
            }
        }
    }
}
