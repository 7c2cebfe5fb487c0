//! The analyses of a trial: crude, by the estimators, and by the truth.
//!
//! The analysis by the truth adds to each patient's true effect the residual of the outcome, as the adjusted estimator
//! does with learned curves: its influence function. It is no analysis that anybody can do. It costs no fit, and what a
//! fit finds in a trial hardly differs from it, so it is the control variate of both estimators
//! (`controlled.rs`).

use super::asked::Method;
use super::latency::STEPS;
use super::trial::Trial;
use super::world::World;
use dvim::internal::analysis;
use dvim::internal::arm::Arm;
use dvim::internal::audit::average::average_effects;
use dvim::internal::audit::heterogeneity::Heterogeneity;
use dvim::internal::error::Error;
use dvim::internal::estimand::{ByEstimand, Estimand};
use dvim::internal::options::{Estimator, Options};
use dvim::internal::survival::{Influence, Summary, SurvivalCurve};
use dvim::internal::watch::Unwatched;
use serde::{Deserialize, Serialize};

/// What is looked at in a trial: π, Δ, the difference in RMST.
pub const EFFECTS: [&str; 3] = ["cure_effect", "time_effect", "rmst_effect"];

/// An estimate and its standard error.
pub type WithError = (f64, f64);

/// What an analysis found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// π, Δ and the difference in RMST, each with its standard error, where there is one.
    pub effects: [Option<WithError>; 3],
    /// P of the test that effects vary, of whether and of when.
    pub varies: [Option<f64>; 2],
}

impl Found {
    /// Estimates over their standard errors; zero where there is none: nothing is found.
    pub fn statistics(&self) -> [f64; 3] {
        self.effects.map(|e| e.map_or(0.0, |(estimate, se)| estimate / se))
    }
}

/// The difference of the arms' Kaplan–Meier curves.
pub fn crude(trial: &Trial) -> Found {
    if !trial.cluster.is_empty() {
        return crude_of_clusters(trial);
    }
    let h = trial.horizon;
    let summary = |arm: Arm| {
        let of_arm = trial.capped.iter().zip(&trial.arm).filter(|(_, z)| **z == arm);
        let (time, event): (Vec<f64>, Vec<bool>) = of_arm.map(|(u, _)| *u).unzip();
        SurvivalCurve::new(&time, &event).summary(h)
    };
    let [control, treated] = Arm::BOTH.map(summary);
    let difference = |value: &dyn Fn(&Summary) -> Option<WithError>| {
        let [(a, of_a), (b, of_b)] = [value(&treated)?, value(&control)?];
        let se = (of_a * of_a + of_b * of_b).sqrt();
        (se > 0.0).then_some((a - b, se))
    };
    Found {
        effects: [
            difference(&|s| Some((s.survival, s.survival_se()?))),
            difference(&|s| Some((s.mean_event_time()?, s.mean_event_time_se()?))),
            difference(&|s| Some((s.restricted_mean(h), s.restricted_mean_se(h)))),
        ],
        varies: [None; 2],
    }
}

/// The same with influences summed over clusters before they are squared, times G/(G − 1).
fn crude_of_clusters(trial: &Trial) -> Found {
    let h = trial.horizon;
    let clusters = trial.cluster.iter().max().map_or(0, |c| *c as usize + 1);
    let mut sums = vec![[0.0; 3]; clusters];
    let mut value = [Some(0.0); 3];
    for (arm, sign) in [(Arm::Control, -1.0), (Arm::Treated, 1.0)] {
        let mut order: Vec<usize> = (0..trial.arm.len()).filter(|&i| trial.arm[i] == arm).collect();
        order.sort_by(|&a, &b| trial.capped[a].0.total_cmp(&trial.capped[b].0));
        let sorted: Vec<(f64, bool)> = order.iter().map(|&i| trial.capped[i]).collect();
        let mut influence = Influence::default();
        let summary = influence.fill(&sorted, h);
        let of_arm = [Some(summary.survival), summary.mean_event_time(), Some(summary.restricted_mean(h))];
        value.iter_mut().zip(of_arm).for_each(|(v, a)| *v = v.zip(a).map(|(v, a)| v + sign * a));
        let all = [&influence.survival, &influence.mean_event_time, &influence.restricted_mean];
        for (k, &i) in order.iter().enumerate() {
            let sum = &mut sums[trial.cluster[i] as usize];
            sum.iter_mut().zip(all).for_each(|(s, of)| *s += sign * of.get(k).copied().unwrap_or(0.0));
        }
    }
    let there = clusters_there(trial);
    let free = there / (there - 1.0).max(1.0);
    let effects = std::array::from_fn(|k| {
        let se = (free * sums.iter().map(|s| s[k] * s[k]).sum::<f64>()).sqrt();
        value[k].filter(|_| se > 0.0).map(|v| (v, se))
    });
    Found { effects, varies: [None; 2] }
}

fn clusters_there(trial: &Trial) -> f64 {
    let mut there = trial.cluster.clone();
    there.sort_unstable();
    there.dedup();
    there.len() as f64
}

/// Chance of being followed beyond the edges of the steps, under entry over the accrual and loss at a constant hazard.
pub(super) fn followed(world: &World<'_>) -> [f64; STEPS + 1] {
    let d = world.design;
    let hazard = -libm::log1p(-d.dropout) / d.horizon;
    std::array::from_fn(|k| {
        let t = d.horizon * k as f64 / STEPS as f64;
        let entered = if d.accrual > 0.0 { ((d.study_end - t) / d.accrual).clamp(0.0, 1.0) } else { 1.0 };
        (libm::exp(-hazard * t) * entered).max(0.02)
    })
}

/// The analysis by the truth.
pub(super) fn by_truth(trial: &Trial, world: &World<'_>, followed: &[f64; STEPS + 1]) -> Found {
    let h = trial.horizon;
    let n = trial.arm.len() as f64;
    let width = h / STEPS as f64;
    let mut terms: Vec<[f64; 3]> = Vec::with_capacity(trial.arm.len());
    for (i, p) in trial.patients.iter().enumerate() {
        let arm = trial.arm[i];
        let (time, event) = trial.capped[i];
        let times;
        let before = match world.shared_times() {
            Some(shared) => &shared[arm].before,
            None => {
                times = world.times(p, arm);
                &times.before
            }
        };
        let (cured, mean) = (p.cured[arm], p.mean[arm]);
        let uncured = 1.0 - cured;
        let rmst = cured * h + uncured * mean;
        let survival = |k: usize| 1.0 - uncured * before[k];
        // The sums of dF/(S² G), alone and with the area beyond, up to the end of follow-up.
        let (mut sum, mut with_area, mut area) = (0.0, 0.0, rmst);
        let last = (time / width) as usize;
        let (mut s_end, mut g_end, mut area_end) = (1.0, 1.0, rmst);
        for k in 0..STEPS {
            if k > last {
                break;
            }
            let part = if k == last { ((time - k as f64 * width) / width).clamp(0.0, 1.0) } else { 1.0 };
            let (from, to) = (survival(k), survival(k) + part * (survival(k + 1) - survival(k)));
            let (s, g) = (0.5 * (from + to), followed[k] + 0.5 * part * (followed[k + 1] - followed[k]));
            let step = s * width * part;
            let beyond = area - 0.5 * step;
            let d_f = (from - to) / (s * s * g);
            sum += d_f;
            with_area += beyond * d_f;
            area -= step;
            (s_end, g_end, area_end) = (to, followed[k] + part * (followed[k + 1] - followed[k]), area);
        }
        let jump = if event { 1.0 / (s_end.max(1e-9) * g_end) } else { 0.0 };
        let of_share = -cured * (jump - sum);
        let of_rmst = -(area_end * jump - with_area);
        let of_mean = (of_rmst - (h - mean) * of_share) / uncured.max(1e-9);
        let weight = match arm {
            Arm::Treated => 1.0 / p.propensity,
            Arm::Control => -1.0 / (1.0 - p.propensity),
        };
        let effect = |v: &dyn Fn(Arm) -> f64| v(Arm::Treated) - v(Arm::Control);
        terms.push([
            effect(&|z| p.cured[z]) + weight * of_share,
            effect(&|z| p.mean[z]) + weight * of_mean,
            effect(&|z| p.cured[z] * h + (1.0 - p.cured[z]) * p.mean[z]) + weight * of_rmst,
        ]);
    }
    let mean: [f64; 3] = std::array::from_fn(|k| terms.iter().map(|t| t[k]).sum::<f64>() / n);
    let (sums, free) = match trial.cluster.is_empty() {
        true => (terms.iter().map(|t| std::array::from_fn(|k| t[k] - mean[k])).collect(), 1.0),
        false => {
            let mut sums = vec![[0.0; 3]; trial.cluster.iter().max().map_or(0, |c| *c as usize + 1)];
            for (t, c) in terms.iter().zip(&trial.cluster) {
                (0..3).for_each(|k| sums[*c as usize][k] += t[k] - mean[k]);
            }
            let there = clusters_there(trial);
            (sums, there / (there - 1.0).max(1.0))
        }
    };
    let effects = std::array::from_fn(|k| {
        let square: f64 = sums.iter().map(|s: &[f64; 3]| s[k] * s[k]).sum();
        let se = (free * square).sqrt() / n;
        (se > 0.0).then_some((mean[k], se))
    });
    Found { effects, varies: [None; 2] }
}

/// The analysis by an estimator. What cannot be estimated, because an arm has too few events or patients, is not found.
pub fn by_estimator(trial: &Trial, names: &[String], method: Method, seed: u64) -> Result<Found, Error> {
    let estimator = match method {
        Method::Crude => return Ok(crude(trial)),
        Method::Paper => Estimator::Paper,
        Method::Adjusted => Estimator::Adjusted(Default::default()).with_one_deal(),
    };
    let smaller = Arm::BOTH.map(|z| trial.arm.iter().filter(|a| **a == z).count()).into_iter().min().unwrap_or(0);
    let usual = Options::default();
    // Half of the patients of an arm that are left for matching, as `dvim check` advises.
    let group_size = match method {
        Method::Paper => usual.group_size.min(((1.0 - usual.train_fraction) * smaller as f64 / 2.0) as usize).max(2),
        _ => usual.group_size,
    };
    let options = Options { estimator, seed, group_size, ..usual };
    let found = match trial.cohort(names.to_vec()).and_then(|cohort| {
        let found = analysis::run(&cohort, &options, &Unwatched)?;
        let averages = average_effects(&cohort, &found, &[])?;
        let varies = (trial.cluster.is_empty() && !names.is_empty()).then(|| Heterogeneity::of_run(&cohort, &found));
        Ok((averages, varies))
    }) {
        Ok(found) => found,
        Err(Error::Refused(_)) => return Ok(Found::default()),
        Err(e) => return Err(e),
    };
    let (averages, varies) = found;
    let effects = EFFECTS.map(|name| {
        let a = averages.iter().find(|a| a.estimand == name && a.population == "all")?;
        a.estimate.zip(a.se).filter(|(_, se)| *se > 0.0)
    });
    let none = || ByEstimand::of(|_| None);
    let varies = varies.unwrap_or_else(none);
    Ok(Found { effects, varies: Estimand::BOTH.map(|side| varies[side].as_ref().and_then(|v| v.p())) })
}
