//! Standardised survival curves of the arms, and the averages that are read off patients' curves.
//!
//! The curve of an arm over a population is the mean of the patients' own corrected curves, to which each patient's
//! outcome adds what it says beyond the curve: at every time the one-step estimate of [`super::one_step`], with
//! `ρ_S(t)` in the place of `ρ_S(H)`. At H it is the average that stands in the tables. A noisy curve may rise a
//! little; it is drawn as the smallest that does not fall below it later. That, and the straight lines between knots,
//! would leave the area under it a little off the average RMST. So what is missing is laid between the ends, where the
//! curve is neither at its first nor at its last value: the area *is* the average RMST, and the ends stay.
//!
//! *Pointwise* limits hold each at its own time. A *simultaneous* band holds the whole curve: its quantile is that of
//! the largest of the standardised deviations over the times, which are normal with the correlation of the influence
//! functions (drawn 4,000 times, always with the same draws).
//!
//! RMST and its two parts are functions of p and m of a patient, so their influence is, by the chain rule, that of p
//! and of m times the slopes (`curve.rs`). Nothing is divided by the chance of an event: these averages cannot
//! explode.

use super::average::{AverageEffect, Populations};
use super::known::{Known, least_of_rmst};
use super::one_step::{Deals, Joint, Scores};
use super::sensitivity::AtHorizon;
use crate::arm::{Arm, ByArm};
use crate::curve::{CELLS, Curve, Grid, STEEP, split_rmst};
use crate::interval::{Interval, averaged_at, two_sided};
use crate::martingale::Residual;
use crate::numeric::normal_quantile;
use nalgebra::{DMatrix, SymmetricEigen};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

/// A value over time with its limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Band {
    /// The estimate at each time.
    pub estimate: Vec<f64>,
    /// Its standard error.
    pub se: Vec<f64>,
    /// Pointwise limits.
    pub low: Vec<f64>,
    /// Pointwise limits.
    pub high: Vec<f64>,
    /// Limits that hold the whole curve.
    pub band_low: Vec<f64>,
    /// Limits that hold the whole curve.
    pub band_high: Vec<f64>,
}

/// The curves of both arms over one population.
#[derive(Clone, Debug, PartialEq)]
pub struct Standardised {
    /// `all`, `treated`, `control` or a subgroup.
    pub population: String,
    /// Its patients.
    pub n_units: usize,
    /// The times, from 0 to H.
    pub times: Vec<f64>,
    /// Survival in each arm.
    pub arms: ByArm<Band>,
    /// Treated minus control.
    pub difference: Band,
}

/// Averages of event times need this share of events.
const LEAST_EVENTS: f64 = 1e-3;

impl Scores<'_> {
    /// The standardised curves of every population at these times.
    pub fn curves(&self, populations: &Populations, grid: &Grid, times: &[f64]) -> Vec<Standardised> {
        self.curves_of_first(populations.names.len(), populations, grid, times)
    }

    /// The curves of a patient, without how sure they are.
    fn curves_of<'g>(&self, i: usize, grid: &'g Grid) -> ByArm<Curve<'g>> {
        let c = self.corrected(i);
        ByArm::of(|z| Curve::new(grid, c.cure_probability[z], c.mean_event_time[z], &c.shape[z]))
    }

    /// The same of the first populations alone.
    fn curves_of_first(&self, most: usize, populations: &Populations, grid: &Grid, times: &[f64]) -> Vec<Standardised> {
        let k = times.len();
        let horizon = grid.horizon();
        let fill = |i: usize, value: &mut [f64], residual: &mut [f64]| {
            let curves = self.curves_of(i, grid);
            for z in Arm::BOTH {
                let own = self.arm(i) == z;
                for (j, &t) in times.iter().enumerate() {
                    let at = z.index() * k + j;
                    value[at] = curves[z].survival(t);
                    residual[at] = if own { residual_at(self.residual(i), grid, t) } else { 0.0 };
                }
            }
        };
        let of = |(p, name): (usize, &String)| {
            let joint = self.joint(populations, p, 2 * k, fill)?;
            let last = times.iter().rposition(|t| *t >= horizon);
            let between = self.survival_between_deals(populations, p);
            let growth = match last {
                Some(last) => growth(&joint, ByArm { control: last, treated: k + last }, between),
                None => ByArm::of(|_| 1.0),
            };
            let at_knots = self.curves_at_knots(populations, p, grid);
            let known = self.known(populations, p);
            Some(standardised(name, &joint, times, &growth, &at_knots, &known, grid, self.confidence()))
        };
        populations.names.iter().enumerate().take(most).filter_map(of).collect()
    }

    /// The curves of the arms over a population at the knots of the grid. The area under each is the average RMST.
    fn curves_at_knots(&self, populations: &Populations, p: usize, grid: &Grid) -> ByArm<[f64; CELLS + 1]> {
        // Survival at the knots and RMST, of both arms, and the weight.
        const ARM: usize = CELLS + 2;
        type Sums = [f64; 2 * ARM + 1];
        let horizon = grid.horizon();
        let of_block = |units: &[usize]| {
            let mut sums: Sums = [0.0; 2 * ARM + 1];
            for &i in units {
                let (member, given) = self.membership(populations, p, i);
                if given <= 0.0 {
                    continue;
                }
                let (own, weight, c) = (self.arm(i), self.case_weight(i), self.corrected(i));
                if member {
                    sums[2 * ARM] += weight;
                    for z in Arm::BOTH {
                        let (cured, mean, shares) = (c.cure_probability[z], c.mean_event_time[z], c.shape[z].shares());
                        let of_arm = &mut sums[z.index() * ARM..(z.index() + 1) * ARM];
                        let at_knots = shares.iter().map(|share| cured + (1.0 - cured) * (1.0 - share));
                        of_arm.iter_mut().zip(at_knots).for_each(|(sum, s)| *sum += weight * s);
                        of_arm[CELLS + 1] += weight * (cured * horizon + (1.0 - cured) * mean);
                    }
                }
                let by = weight * given / self.propensity_of(own, i);
                let (rho, (cured, mean)) = (self.residual(i), (c.cure_probability[own], c.mean_event_time[own]));
                let of_arm = &mut sums[own.index() * ARM..(own.index() + 1) * ARM];
                let inner = of_arm[1..CELLS].iter_mut().zip(&rho.survival);
                inner.for_each(|(sum, r)| *sum += by * f64::from(*r));
                of_arm[CELLS] += by * rho.cure;
                of_arm[CELLS + 1] += by * ((horizon - mean) * rho.cure + (1.0 - cured) * rho.time);
            }
            sums
        };
        let units: Vec<usize> = (0..self.n_units()).collect();
        let blocks: Vec<Sums> = units.par_chunks(BLOCK).map(of_block).collect();
        let mut sums: Sums = [0.0; 2 * ARM + 1];
        blocks.iter().for_each(|block| sums.iter_mut().zip(block).for_each(|(sum, x)| *sum += x));
        ByArm::of(|z| {
            let of_arm = &sums[z.index() * ARM..(z.index() + 1) * ARM];
            let seen = std::array::from_fn(|k| of_arm[k] / sums[2 * ARM]);
            with_area(&seen, (of_arm[CELLS + 1] / sums[2 * ARM]).clamp(0.0, horizon), grid)
        })
    }

    /// The means of patients' own values over a population.
    fn plain_means(&self, populations: &Populations, p: usize) -> (ByArm<f64>, ByArm<f64>) {
        let (mut total, mut cured, mut mean) = (0.0, ByArm::<f64>::default(), ByArm::<f64>::default());
        for i in (0..self.n_units()).filter(|&i| self.membership(populations, p, i).0) {
            let (weight, c) = (self.case_weight(i), self.corrected(i));
            total += weight;
            for z in Arm::BOTH {
                cured[z] += weight * c.cure_probability[z];
                mean[z] += weight * c.mean_event_time[z];
            }
        }
        (cured.map(|v| v / total), mean.map(|v| v / total))
    }

    /// The difference of the mean event times of all who would have the event under each arm,
    /// `E[T₁ | T₁ < H] − E[T₀ | T₀ < H]`, from the averages of S(H) and RMST: `m = (R − H S)/(1 − S)`. Other patients
    /// have the event under one arm than under the other, so it is not the mean of the patients' own time effects.
    fn marginal(
        &self,
        populations: &Populations,
        p: usize,
        name: &str,
        horizon: f64,
        quantile: f64,
    ) -> Option<AverageEffect> {
        // S₀, S₁, R₀, R₁.
        let fill = |i: usize, value: &mut [f64], residual: &mut [f64]| {
            let (c, own, rho) = (self.corrected(i), self.arm(i), self.residual(i));
            residual.fill(0.0);
            for z in Arm::BOTH {
                let (s, m) = (c.cure_probability[z], c.mean_event_time[z]);
                (value[z.index()], value[2 + z.index()]) = (s, s * horizon + (1.0 - s) * m);
            }
            let (s, m) = (c.cure_probability[own], c.mean_event_time[own]);
            residual[own.index()] = rho.cure;
            residual[2 + own.index()] = (horizon - m) * rho.cure + (1.0 - s) * rho.time;
        };
        Some(marginal(&self.joint(populations, p, 4, fill)?, name, horizon, quantile))
    }

    /// RMST of the arms, its difference and the two parts of that, and the medians of the arms.
    pub fn averages_of_curves(
        &self,
        populations: &Populations,
        curves: &[Standardised],
        grid: &Grid,
    ) -> Vec<AverageEffect> {
        let horizon = grid.horizon();
        let quantile = two_sided(self.confidence());
        let fill = |i: usize, value: &mut [f64], residual: &mut [f64]| {
            let c = self.corrected(i);
            let (v, r) = rmst_quantities(c.cure_probability, c.mean_event_time, self.arm(i), self.residual(i), horizon);
            value.copy_from_slice(&v);
            residual.copy_from_slice(&r);
        };
        let mut out = Vec::new();
        for (p, name) in populations.names.iter().enumerate() {
            let Some(joint) = self.joint(populations, p, 4, fill) else { continue };
            let between = self.deals_of_rmst(populations, p);
            let spread = |weights: &[f64]| -> f64 {
                let all = (0..self.n_units()).filter(|&i| self.membership(populations, p, i).0);
                let mut values = [0.0; 4];
                let mut unused = [0.0; 4];
                let (mut n, mut sum, mut square) = (0.0, 0.0, 0.0);
                for i in all {
                    fill(i, &mut values, &mut unused);
                    let v: f64 = weights.iter().zip(&values).map(|(w, v)| w * v).sum();
                    (n, sum, square) = (n + 1.0, sum + v, square + v * v);
                }
                ((square - sum * sum / f64::max(n, 1.0)) / f64::max(n - 1.0, 1.0)).max(0.0).sqrt()
            };
            let of = OfCurves {
                joint,
                between,
                spread: &spread,
                known: self.known(populations, p),
                plain: self.plain_means(populations, p),
                marginal: self.marginal(populations, p, name, horizon, quantile),
                curve: curves.iter().find(|c| c.population == *name),
            };
            of.tell(&mut out, name, horizon, quantile);
        }
        out
    }

    /// What deals make of RMST and its parts: see [`Scores::between_deals`].
    pub(super) fn deals_of_rmst(&self, populations: &Populations, p: usize) -> Option<Deals> {
        let horizon = self.horizon();
        self.between_deals(populations, p, |values, own| {
            rmst_quantities(values.cure_probability, values.mean_event_time, own, &values.residual, horizon)
        })
    }

    /// Both average effects had the horizon been an earlier one, read off the same curves.
    pub fn horizons(&self, populations: &Populations, grid: &Grid, horizons: &[f64]) -> Vec<AtHorizon> {
        let quantile = two_sided(self.confidence());
        let k = horizons.len();
        // Where hardly anybody has had the event, nothing is said of when.
        let mut enough = vec![true; k];
        let curves = self.curves_of_first(1, populations, grid, horizons);
        let Some(all) = curves.first() else { return Vec::new() };
        for (j, enough) in enough.iter_mut().enumerate() {
            *enough = Arm::BOTH.iter().all(|&z| 1.0 - all.arms[z].estimate[j] >= FEWEST_EVENTS);
        }
        let fill = |i: usize, value: &mut [f64], residual: &mut [f64]| {
            let (curves, rho, own) = (self.curves_of(i, grid), self.residual(i), self.arm(i));
            for (j, &h) in horizons.iter().enumerate() {
                let mean = ByArm::of(|z| curves[z].mean_before(h).unwrap_or(0.5 * h));
                value[j] = mean.treated - mean.control;
                let sign = if own == Arm::Treated { 1.0 } else { -1.0 };
                residual[j] = sign
                    * if h >= grid.horizon() {
                        rho.time
                    } else {
                        // m(h) = (∫₀ʰ S − h S(h))/(1 − S(h)).
                        let events = (1.0 - curves[own].survival(h)).max(FEWEST_EVENTS);
                        let at = residual_at(rho, grid, h);
                        (residual_area(rho, grid, h) + (mean[own] - h) * at) / events
                    };
            }
        };
        let time = self.joint(populations, 0, k, fill);
        let at = |(j, &horizon): (usize, &f64)| {
            let d = &all.difference;
            let time = time.as_ref().filter(|_| enough[j]).map(|t| {
                let (value, se) = (t.mean[j], t.covariance[j * k + j].max(0.0).sqrt());
                [value, value - quantile * se, value + quantile * se].map(|v| v.clamp(-horizon, horizon))
            });
            AtHorizon {
                horizon,
                cure: Some([d.estimate[j], d.low[j], d.high[j]]),
                time,
                n_units: all.n_units,
                n_undefined: 0,
            }
        };
        horizons.iter().enumerate().map(at).collect()
    }
}

/// The curves of both arms over a population, from the one-step means of both at these times and at the knots.
#[allow(clippy::too_many_arguments, reason = "what is known of the curves, and how it is told")]
pub(super) fn standardised(
    name: &str,
    joint: &Joint,
    times: &[f64],
    growth: &ByArm<f64>,
    at_knots: &ByArm<[f64; CELLS + 1]>,
    known: &ByArm<Known>,
    grid: &Grid,
    confidence: f64,
) -> Standardised {
    let (k, quantile) = (times.len(), two_sided(confidence));
    let estimates = ByArm::of(|z| times.iter().map(|&t| grid.interpolate(&at_knots[z], t)).collect::<Vec<f64>>());
    // Where nothing varies, what so many patients can know; but everybody is there at 0.
    let least = |z: Arm, j: usize, se: f64| {
        if se > 1e-9 || times[j] <= 0.0 { se } else { known[z].least_share(quantile) }
    };
    let picks = |of: &dyn Fn(usize) -> Vec<f64>| -> Vec<Vec<f64>> { (0..k).map(of).collect() };
    let pick = |z: Arm, j: usize, to: f64| {
        let mut w = vec![0.0; 2 * k];
        w[z.index() * k + j] = to * growth[z].sqrt();
        w
    };
    let arm = |z: Arm| {
        let rows = picks(&|j| pick(z, j, 1.0));
        let (mut se, critical) = joint.simultaneous(&rows, confidence);
        se.iter_mut().enumerate().for_each(|(j, se)| *se = least(z, j, *se));
        let ends = |q: f64| -> (Vec<f64>, Vec<f64>) {
            let at = |j: usize| {
                let i = averaged_at(estimates[z][j], se[j], 1.0, q);
                (i.low, i.high)
            };
            (0..k).map(at).unzip()
        };
        let ((low, high), (band_low, band_high)) = (ends(quantile), ends(critical));
        Band { estimate: estimates[z].clone(), se, low, high, band_low, band_high }
    };
    let rows = picks(&|j| {
        let (a, b) = (pick(Arm::Treated, j, 1.0), pick(Arm::Control, j, -1.0));
        a.iter().zip(&b).map(|(x, y)| x + y).collect()
    });
    let (mut se, critical) = joint.simultaneous(&rows, confidence);
    for (j, se) in se.iter_mut().enumerate().filter(|(_, se)| **se <= 1e-9) {
        *se = libm::hypot(least(Arm::Control, j, *se), least(Arm::Treated, j, *se));
    }
    let estimate: Vec<f64> = estimates.treated.iter().zip(&estimates.control).map(|(t, c)| t - c).collect();
    let end = |q: f64| estimate.iter().zip(&se).map(|(e, s)| (e + q * s).clamp(-1.0, 1.0)).collect();
    let difference = Band {
        low: end(-quantile),
        high: end(quantile),
        band_low: end(-critical),
        band_high: end(critical),
        estimate: estimate.clone(),
        se: se.clone(),
    };
    Standardised { population: name.into(), n_units: joint.n, times: times.to_vec(), arms: ByArm::of(arm), difference }
}

/// RMST of each arm and the two parts of its difference, R₀, R₁, from cure, from time: what is expected of a patient,
/// and what the patient's own outcome adds.
pub(super) fn rmst_quantities(
    cured: ByArm<f64>,
    mean: ByArm<f64>,
    own: Arm,
    rho: &Residual,
    horizon: f64,
) -> ([f64; 4], [f64; 4]) {
    let split = split_rmst(cured, mean, horizon);
    let mut value = [0.0; 4];
    let mut residual = [0.0; 4];
    for z in Arm::BOTH {
        value[z.index()] = cured[z] * horizon + (1.0 - cured[z]) * mean[z];
    }
    (value[2], value[3]) = (split.from_cure.0, split.from_time.0);
    let (p, m) = (own.index(), 2 + own.index());
    residual[own.index()] = (horizon - mean[own]) * rho.cure + (1.0 - cured[own]) * rho.time;
    residual[2] = split.from_cure.1[p] * rho.cure + split.from_cure.1[m] * rho.time;
    residual[3] = split.from_time.1[p] * rho.cure + split.from_time.1[m] * rho.time;
    (value, residual)
}

/// What averages that are read off curves are made of, over one population.
pub(super) struct OfCurves<'a> {
    /// The one-step means of R₀, R₁, and of what comes from cure and from time.
    pub(super) joint: Joint,
    pub(super) between: Option<Deals>,
    /// The standard deviation between patients of a contrast of the four.
    pub(super) spread: &'a dyn Fn(&[f64]) -> f64,
    pub(super) known: ByArm<Known>,
    /// Means of P(T ≥ H) and of E[T | T < H] of the patients' own values.
    pub(super) plain: (ByArm<f64>, ByArm<f64>),
    pub(super) marginal: Option<AverageEffect>,
    pub(super) curve: Option<&'a Standardised>,
}

impl OfCurves<'_> {
    /// Adds them.
    pub(super) fn tell(self, out: &mut Vec<AverageEffect>, name: &str, horizon: f64, quantile: f64) {
        let OfCurves { mut joint, between, spread, known, plain, marginal, curve } = self;
        // What is left of the variance between deals in a mean of so many.
        if let Some((between, n)) = &between {
            joint.covariance.iter_mut().zip(between).for_each(|(c, b)| *c += b / *n as f64);
        }
        let (arms, [from_cure, from_time]) = least_of_rmst(&known, plain.0, plain.1, horizon, quantile);
        let (r, least_effect) =
            (ByArm::of(|z| joint.mean[z.index()].clamp(0.0, horizon)), libm::hypot(arms.control, arms.treated));
        // Residuals of those who are nearly sure to be cured are large: they must not carry a part over its bounds.
        let effect = r.treated - r.control;
        let by_time = joint.mean[3].clamp((effect - horizon).max(-horizon), (effect + horizon).min(horizon));
        let mut add = |estimand: &'static str, weights: [f64; 4], value: f64, least: Option<f64>, top: Option<f64>| {
            let seen = joint.variance(&weights).sqrt();
            let se = least.filter(|_| seen.is_finite()).map(|least| seen.max(least));
            let interval = se.map(|se| match top {
                Some(top) => averaged_at(value, se, top, quantile),
                None => {
                    let end = |by: f64| (value + by * quantile * se).clamp(-horizon, horizon);
                    Interval { se: Some(se), low: end(-1.0), high: end(1.0) }
                }
            });
            let split_sd = between.as_ref().map(|(b, _)| {
                let all = (0..4).flat_map(|i| (0..4).map(move |j| (i, j)));
                all.map(|(i, j)| weights[i] * weights[j] * b[4 * i + j]).sum::<f64>().max(0.0).sqrt()
            });
            out.push(AverageEffect {
                estimand,
                population: name.into(),
                estimate: Some(value).filter(|v| v.is_finite()),
                se,
                low: interval.map(|i| i.low),
                high: interval.map(|i| i.high),
                sd: top.is_none().then(|| spread(&weights)),
                bias: None,
                n_units: joint.n,
                n_undefined: 0,
                split_sd: split_sd.filter(|_| top.is_none() && between.is_some()),
            });
        };
        add("rmst_effect", [-1.0, 1.0, 0.0, 0.0], effect, Some(least_effect), None);
        add("rmst_from_cure", [0.0, 0.0, 1.0, 0.0], effect - by_time, from_cure, None);
        add("rmst_from_time", [0.0, 0.0, 0.0, 1.0], by_time, from_time, None);
        add("rmst_treated", [0.0, 1.0, 0.0, 0.0], r.treated, Some(arms.treated), Some(horizon));
        add("rmst_control", [1.0, 0.0, 0.0, 0.0], r.control, Some(arms.control), Some(horizon));
        out.extend(marginal);
        if let Some(curve) = curve {
            for (estimand, arm) in [("median_treated", Arm::Treated), ("median_control", Arm::Control)] {
                let band = &curve.arms[arm];
                let crossing = |values: &[f64]| falls_to_half(&curve.times, values);
                let estimate = crossing(&band.estimate);
                let (low, high) = (estimate.and(crossing(&band.low)), estimate.and(crossing(&band.high)));
                let steep = steep_at_half(&curve.times, &band.estimate);
                out.push(AverageEffect {
                    estimand,
                    population: name.into(),
                    estimate,
                    se: None,
                    low: low.map(|t| steep.map_or(t, |(from, _)| t.min(from))),
                    high: high.map(|t| steep.map_or(t, |(_, to)| t.max(to))),
                    sd: None,
                    bias: None,
                    n_units: joint.n,
                    n_undefined: 0,
                    split_sd: None,
                });
            }
        }
    }
}

/// The difference of the mean event times of all who would have the event, from the one-step means of S₀, S₁, R₀, R₁.
pub(super) fn marginal(joint: &Joint, name: &str, horizon: f64, quantile: f64) -> AverageEffect {
    let mean = |z: Arm| {
        let (s, r) = (joint.mean[z.index()], joint.mean[2 + z.index()]);
        ((r - horizon * s) / (1.0 - s), s)
    };
    let (control, treated) = (mean(Arm::Control), mean(Arm::Treated));
    let estimate = treated.0 - control.0;
    let is_there = [control, treated].iter().all(|(m, s)| *s < 1.0 - LEAST_EVENTS && (0.0..=horizon).contains(m));
    // dm/dS = (m − H)/(1 − S), dm/dR = 1/(1 − S).
    let slopes = |(m, s): (f64, f64)| ((m - horizon) / (1.0 - s), 1.0 / (1.0 - s));
    let (c, t) = (slopes(control), slopes(treated));
    let se = joint.variance(&[-c.0, t.0, -c.1, t.1]).sqrt();
    let end = |by: f64| (estimate + by * quantile * se).clamp(-horizon, horizon);
    let known = is_there && se.is_finite() && se > 0.0;
    AverageEffect {
        estimand: "marginal_time_effect",
        population: name.into(),
        estimate: is_there.then_some(estimate),
        se: known.then_some(se),
        low: known.then(|| end(-1.0)),
        high: known.then(|| end(1.0)),
        sd: None,
        bias: None,
        n_units: joint.n,
        n_undefined: 0,
        split_sd: None,
    }
}

/// What the variance of an average over a population grows by, because patients were dealt to folds by chance: the
/// factor of each arm's survival at H, which is at these places of the means.
pub(super) fn growth(joint: &Joint, at: ByArm<usize>, between: Option<ByArm<f64>>) -> ByArm<f64> {
    let k = joint.mean.len();
    ByArm::of(|z| match &between {
        Some(between) => 1.0 + between[z] / joint.covariance[at[z] * k + at[z]].max(f64::MIN_POSITIVE),
        None => 1.0,
    })
}

/// Share of events below which nothing is said of when they come.
const FEWEST_EVENTS: f64 = 0.05;

/// Units whose terms one task sums.
const BLOCK: usize = 2_048;

/// The smallest curve that is nowhere below these values later, between 0 and 1.
fn falling(values: &[f64; CELLS + 1]) -> [f64; CELLS + 1] {
    let mut out = values.map(|v| v.clamp(0.0, 1.0));
    (0..CELLS).rev().for_each(|k| out[k] = out[k].max(out[k + 1]));
    out
}

/// The falling curve near these values whose area is the given one. What is missing is added where the curve is between
/// its ends, in proportion to the product of its distances from both. An area that cannot be had is approached.
pub(super) fn with_area(values: &[f64; CELLS + 1], area: f64, grid: &Grid) -> [f64; CELLS + 1] {
    let plain = falling(values);
    let between: [f64; CELLS + 1] = std::array::from_fn(|k| (plain[0] - plain[k]) * (plain[k] - plain[CELLS]));
    let largest = between.iter().copied().fold(0.0, f64::max);
    if largest <= 1e-12 {
        return plain;
    }
    let at = |c: f64| falling(&std::array::from_fn(|k| values[k] + c * between[k] / largest));
    // The area rises with what is added.
    let (mut low, mut high) = (-1.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if grid.integrate(&at(middle), grid.horizon()) < area {
            low = middle;
        } else {
            high = middle;
        }
    }
    at(0.5 * (low + high))
}

/// ρ_S(t), linear between the knots.
fn residual_at(residual: &Residual, grid: &Grid, t: f64) -> f64 {
    if t >= grid.horizon() {
        return residual.cure;
    }
    let mut all = [0.0; CELLS + 1];
    all[1..].iter_mut().zip(&residual.survival).for_each(|(x, r)| *x = f64::from(*r));
    grid.interpolate(&all, t)
}

/// ∫₀ʰ ρ_S.
fn residual_area(residual: &Residual, grid: &Grid, h: f64) -> f64 {
    let mut all = [0.0; CELLS + 1];
    all[1..].iter_mut().zip(&residual.survival).for_each(|(x, r)| *x = f64::from(*r));
    grid.integrate(&all, h)
}

/// The first time at which a curve that is linear between its times is at a half; `None` where it stays above.
fn falls_to_half(times: &[f64], values: &[f64]) -> Option<f64> {
    let after = values.iter().position(|v| *v <= 0.5)?;
    if after == 0 {
        return Some(times[0]);
    }
    let (a, b) = (values[after - 1], values[after]);
    let into = if a > b { (a - 0.5) / (a - b) } else { 0.0 };
    Some(times[after - 1] + into * (times[after] - times[after - 1]))
}

/// The times between which a curve passes a half, where it falls so much in between that its course there is not known.
fn steep_at_half(times: &[f64], values: &[f64]) -> Option<(f64, f64)> {
    let after = values.iter().position(|v| *v <= 0.5).filter(|after| *after > 0)?;
    (values[after - 1] - values[after] > STEEP).then(|| (times[after - 1], times[after]))
}

/// Draws of the largest deviation.
const DRAWS: usize = 4_000;

impl Joint {
    /// Standard errors of contrasts (each a row of weights), and the quantile of the largest of their absolute
    /// standardised deviations.
    fn simultaneous(&self, rows: &[Vec<f64>], confidence: f64) -> (Vec<f64>, f64) {
        let (k, all) = (self.mean.len(), rows.len());
        let c = DMatrix::from_row_slice(k, k, &self.covariance);
        let w = DMatrix::from_fn(all, k, |i, j| rows[i][j]);
        let covariance = &w * c * w.transpose();
        let se: Vec<f64> = (0..all).map(|j| covariance[(j, j)].max(0.0).sqrt()).collect();
        let largest = se.iter().copied().fold(0.0, f64::max);
        let there: Vec<usize> = (0..all).filter(|&j| se[j] > 1e-6 * largest).collect();
        if there.is_empty() {
            return (se, two_sided(confidence));
        }
        let m = there.len();
        let correlation =
            DMatrix::from_fn(m, m, |a, b| covariance[(there[a], there[b])] / (se[there[a]] * se[there[b]]));
        let eigen = SymmetricEigen::new(correlation);
        let root = DMatrix::from_fn(m, m, |a, b| eigen.eigenvectors[(a, b)] * eigen.eigenvalues[b].max(0.0).sqrt());
        let mut rng = ChaCha8Rng::seed_from_u64(0x0062_616e_6473);
        let mut draws: Vec<f64> = (0..DRAWS)
            .map(|_| {
                let normal: Vec<f64> =
                    (0..m).map(|_| normal_quantile(((rng.next_u64() >> 11) as f64 + 0.5) * 2f64.powi(-53))).collect();
                let at = |a: usize| (0..m).map(|b| root[(a, b)] * normal[b]).sum::<f64>().abs();
                (0..m).map(at).fold(0.0, f64::max)
            })
            .collect();
        draws.sort_unstable_by(f64::total_cmp);
        let place = (confidence * DRAWS as f64).ceil() as usize;
        (se, draws[place.clamp(1, DRAWS) - 1].max(two_sided(confidence)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deviations that are all the same need no wider band; independent ones that of their number.
    #[test]
    fn bands_know_correlation() {
        let rows = |k: usize| (0..k).map(|j| (0..k).map(|i| f64::from(u8::from(i == j))).collect()).collect::<Vec<_>>();
        let same = Joint { n: 10, mean: vec![0.0; 3], covariance: vec![1.0; 9] };
        let (se, critical) = same.simultaneous(&rows(3), 0.95);
        assert_eq!(se, [1.0; 3]);
        assert!((critical - 1.96).abs() < 0.06, "{critical}");
        let k = 8;
        let apart: Vec<f64> = (0..k * k).map(|i| f64::from(u8::from(i % (k + 1) == 0))).collect();
        let (_, critical) = Joint { n: 10, mean: vec![0.0; k], covariance: apart }.simultaneous(&rows(k), 0.95);
        // Šidák: the quantile of (1 + 0.95^{1/8})/2.
        let expected = normal_quantile(0.5 + 0.5 * 0.95f64.powf(1.0 / k as f64));
        assert!((critical - expected).abs() < 0.08, "{critical} {expected}");
    }

    /// Whatever the values, the curve falls, keeps its last value and has the area that is asked for, where that is
    /// near.
    #[test]
    fn a_curve_has_the_area_of_its_average() {
        let grid = Grid::new(100.0);
        let rough: [f64; CELLS + 1] = std::array::from_fn(|k| {
            let noise = ((k * 7919) % 13) as f64 / 13.0 - 0.5;
            if k == 0 { 1.0 } else { (1.0 - 0.025 * k as f64 + 0.03 * noise).min(1.0) }
        });
        let plain = grid.integrate(&falling(&rough), 100.0);
        for area in [plain - 2.0, plain - 0.01, plain, plain + 0.3] {
            let curve = with_area(&rough, area, &grid);
            assert!((grid.integrate(&curve, 100.0) - area).abs() < 1e-9);
            assert!(curve.windows(2).all(|w| w[0] >= w[1]));
            assert_eq!((curve[0], curve[CELLS]), (falling(&rough)[0], rough[CELLS]));
        }
        assert_eq!(with_area(&[1.0; CELLS + 1], 90.0, &grid), [1.0; CELLS + 1], "nothing falls");
    }

    #[test]
    fn a_median_is_where_the_curve_crosses() {
        assert_eq!(falls_to_half(&[0.0, 10.0, 20.0], &[1.0, 0.6, 0.4]), Some(15.0));
        assert_eq!(falls_to_half(&[0.0, 10.0, 20.0], &[1.0, 0.6, 0.55]), None);
    }
}
