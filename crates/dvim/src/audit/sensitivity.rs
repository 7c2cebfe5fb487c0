//! What it would take to overturn the conclusion: another horizon, an unmeasured confounder, informative censoring,
//! and the people whom Δ does not compare.

use super::average::AverageEffect;
use super::passes::{Side, Walk, unbiased};
use crate::analysis::{self, Analysis, Options, Watch, average};
use crate::cohort::{Arm, Cohort};
use crate::effect::{ArmEstimate, Effect, GroupEstimate, Matcher, Pool};
use crate::error::Error;
use crate::interval::two_sided;
use crate::survival::{Influence, Summary};

/// Both average effects had the horizon been another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtHorizon {
    /// H′.
    pub horizon: f64,
    /// Mean of π(H′) with its interval.
    pub cure: Option<[f64; 3]>,
    /// Mean of Δ(H′) with its interval, over units whose groups both have an event before H′.
    pub time: Option<[f64; 3]>,
    /// Units whose Δ(H′) is undefined.
    pub n_undefined: usize,
}

/// Points of the horizon curve.
const GRID: usize = 20;
/// Units that the horizon curve is averaged over, at most: every m-th by id.
const MOST_UNITS: usize = 3_000;

/// The effects as curves over the horizon, at twenty horizons up to H, from the same groups. Groups are matched by models
/// fitted with H; only what is read off their curves changes. Standard errors as in [`super::average`].
pub fn horizon_curve(walk: &Walk<'_>) -> Vec<AtHorizon> {
    let (cohort, analysis) = (walk.cohort, walk.analysis);
    let every = analysis.units.len().div_ceil(MOST_UNITS).max(1);
    let n = analysis.units.len().div_ceil(every);
    let grid: Vec<f64> = (1..=GRID).map(|g| cohort.horizon() * g as f64 / GRID as f64).collect();
    struct Found {
        /// For each horizon and unit: value (NaN where undefined) and variance.
        values: Vec<Vec<(f64, f64)>>,
        /// For each horizon and rank the sum of influences.
        used: Vec<Vec<f64>>,
    }
    let found = walk.each(|arm, side| {
        let pool = &walk.pools[arm.index()];
        let mut out = Found { values: vec![Vec::new(); GRID], used: vec![vec![0.0; pool.len()]; GRID] };
        let mut influence = Influence::default();
        let (mut ranks, mut outcomes) = (Vec::new(), Vec::new());
        walk.groups(arm, side, |q, members, _| {
            if q % every != 0 {
                return;
            }
            ranks.clear();
            ranks.extend(members.iter().map(|&m| pool.rank(m)));
            ranks.sort_unstable();
            outcomes.clear();
            outcomes.extend(ranks.iter().map(|&r| pool.by_time()[r as usize]));
            for (g, &h) in grid.iter().enumerate() {
                let s = influence.fill(&outcomes, h);
                let scale = unbiased(&s, side, members.len());
                let (value, se, of) = match side {
                    Side::Cure => (s.survival, s.survival_se(), &influence.survival),
                    Side::Time => {
                        (s.mean_event_time().unwrap_or(f64::NAN), s.mean_event_time_se(), &influence.mean_event_time)
                    }
                };
                out.values[g].push((value, se.map_or(0.0, |s| s * s)));
                for (&r, v) in ranks.iter().zip(of) {
                    out.used[g][r as usize] += scale * v;
                }
            }
        });
        out
    });
    let z = two_sided(analysis.fit.options.confidence);
    let at = |side: Side, g: usize| -> (Option<[f64; 3]>, usize) {
        let of = [0, 1].map(|arm: usize| &found[arm][side as usize]);
        let pairs = of[0].values[g].iter().zip(&of[1].values[g]);
        let there: Vec<(f64, f64)> =
            pairs.map(|(c, t)| (t.0 - c.0, t.1 + c.1)).filter(|(d, _)| d.is_finite()).collect();
        let m = there.len() as f64;
        if there.len() < 2 {
            return (None, n - there.len());
        }
        let mean = there.iter().map(|d| d.0).sum::<f64>() / m;
        let spread = there.iter().map(|d| (d.0 - mean) * (d.0 - mean)).sum::<f64>() / (m - 1.0);
        let noise = there.iter().map(|d| d.1).sum::<f64>() / m;
        let pool: f64 = of.iter().map(|f| f.used[g].iter().map(|u| u * u).sum::<f64>()).sum::<f64>() / (m * m);
        let se = (pool + (spread - noise).max(0.0) / m).sqrt();
        (Some([mean, mean - z * se, mean + z * se]), n - there.len())
    };
    grid.iter()
        .enumerate()
        .map(|(g, &horizon)| {
            let (time, n_undefined) = at(Side::Time, g);
            AtHorizon { horizon, cure: at(Side::Cure, g).0, time, n_undefined }
        })
        .collect()
}

/// How strong an unmeasured confounder must be.
#[derive(Clone, Debug, PartialEq)]
pub struct Confounding {
    /// The E-value of the estimate [VanderWeele & Ding 2017]: risk ratios of this size, of the confounder with treatment and
    /// with cure, could explain it away.
    pub e_value: f64,
    /// The E-value of the end of the interval that is nearer to no effect; 1 where the interval holds no effect.
    pub e_value_interval: f64,
    /// For confounders of growing strength Γ, the average cure effect that remains at least and at most.
    pub bounds: Vec<(f64, f64, f64)>,
}

/// `RR + √(RR (RR − 1))` for RR ≥ 1, of 1/RR below.
pub fn e_value(ratio: f64) -> f64 {
    let r = if ratio < 1.0 { 1.0 / ratio } else { ratio };
    r + (r * (r - 1.0)).sqrt()
}

/// Strengths for which bounds are given.
const STRENGTHS: [f64; 6] = [1.0, 1.25, 1.5, 2.0, 3.0, 5.0];

/// Sensitivity of the average cure effect to a confounder nobody measured.
///
/// With both its risk ratios Γ the bounding factor is `B = Γ²/(2Γ − 1)` [Ding & VanderWeele 2016], and with p₁, p₀ the cure
/// probabilities and f the share treated the true difference is at least `(p₁ − p₀B)(f + (1 − f)/B)`, by
/// the mirror image at most `(p₁B − p₀)((1 − f) + f/B)`. The first is 0 where B is the ratio p₁/p₀: Γ is then the E-value.
pub fn confounding(averages: &[AverageEffect], treated_share: f64) -> Option<Confounding> {
    let of = |estimand: &str| averages.iter().find(|a| a.estimand == estimand && a.population == "all");
    let ratio = of("cure_ratio")?;
    let (value, low, high) = (ratio.estimate?, ratio.low?, ratio.high?);
    let (p1, p0) = (of("cure_treated")?.estimate?, of("cure_control")?.estimate?);
    let nearer = if value >= 1.0 { low.max(1.0) } else { high.min(1.0) };
    let bounds = STRENGTHS.map(|gamma| {
        let b = gamma * gamma / (2.0 * gamma - 1.0);
        let f = treated_share;
        let low = (p1 - p0 * b) * (f + (1.0 - f) / b);
        let high = (p1 * b - p0) * ((1.0 - f) + f / b);
        (gamma, low.max(-1.0), high.min(1.0))
    });
    Some(Confounding { e_value: e_value(value), e_value_interval: e_value(nearer), bounds: bounds.to_vec() })
}

/// The average cure effect if the censored were not like those who stayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Censoring {
    /// Treated: all censored had their event; control: all were cured. The least it can be.
    pub least: f64,
    /// All censored of both arms had their event at once.
    pub all_events: f64,
    /// As estimated: the censored are like those who stayed.
    pub estimated: f64,
    /// All censored of both arms were cured.
    pub all_cured: f64,
    /// Treated cured, control events: the most it can be.
    pub most: f64,
    /// Mean share of a group that is censored before H, control first.
    pub censored_share: [f64; 2],
}

/// From worst case to best case, group by group: with K members, r at risk at H and d events, Ŝ(H) lies between r/K and 1 − d/K.
pub fn censoring(analysis: &Analysis) -> Option<Censoring> {
    let n = analysis.effects.len() as f64;
    let k = analysis.fit.options.group_size as f64;
    if analysis.effects.is_empty() {
        return None;
    }
    let mean =
        |z: Arm, f: &dyn Fn(&Summary) -> f64| analysis.effects.iter().map(|e| f(&e.arm(z).cure.curve)).sum::<f64>() / n;
    let worst = |z: Arm| mean(z, &|s| s.n_at_risk as f64 / k);
    let best = |z: Arm| mean(z, &|s| 1.0 - s.n_events as f64 / k);
    let found = |z: Arm| mean(z, &|s| s.survival);
    let (c, t) = (Arm::Control, Arm::Treated);
    Some(Censoring {
        least: worst(t) - best(c),
        all_events: worst(t) - worst(c),
        estimated: found(t) - found(c),
        all_cured: best(t) - best(c),
        most: best(t) - worst(c),
        censored_share: [c, t].map(|z| best(z) - worst(z)),
    })
}

/// The effect on the event time of those who have the event under either treatment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AlwaysUncured {
    /// Share of patients who are uncured under both, under monotonicity.
    pub share: f64,
    /// The least that E[T(1) − T(0) | uncured under both] can be.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// The same difference without the restriction, of the averaged curves: what Δ compares.
    pub unrestricted: f64,
    /// Whether treatment is taken never to take a cure away (true), or never to bring one (false): the sign of the cure effect.
    pub treatment_cures: bool,
}

/// Bounds for the always-uncured [Zhang & Rubin 2003; Lee 2009], from the curves of both arms averaged over all units.
///
/// Under monotonicity — whoever is cured under control is cured under treatment, if treatment cures more — the uncured of
/// the treated arm *are* the always-uncured, a share u₁ = 1 − S₁(H). The uncured of the control arm, a share u₀ ≥ u₁, are those
/// and patients whom treatment would have cured, in unknown order of time. So E[T(0) | always uncured] lies between the means
/// of the earliest and of the latest share u₁/u₀ of the control arm's events. With fewer cures the arms change places.
pub fn always_uncured(walk: &Walk<'_>) -> Option<AlwaysUncured> {
    let n = walk.analysis.units.len();
    if n == 0 {
        return None;
    }
    // The averaged curve of each arm from its time groups, as masses at the times of the pool.
    let masses = |arm: Arm| -> Vec<(f64, f64)> {
        let pool = &walk.pools[arm.index()];
        let mut mass = vec![0.0; pool.len()];
        let mut ranks: Vec<u32> = Vec::new();
        walk.groups(arm, Side::Time, |_, members, _| {
            ranks.clear();
            ranks.extend(members.iter().map(|&m| pool.rank(m)));
            ranks.sort_unstable();
            let (mut level, mut at) = (1.0, 0);
            while at < ranks.len() {
                let time = pool.by_time()[ranks[at] as usize].0;
                let same = ranks[at..].iter().take_while(|&&r| pool.by_time()[r as usize].0 == time).count();
                let here = &ranks[at..at + same];
                let d = here.iter().filter(|&&r| pool.by_time()[r as usize].1).count();
                if d > 0 {
                    let jump = level * d as f64 / (ranks.len() - at) as f64;
                    mass[here[0] as usize] += jump / n as f64;
                    level -= jump;
                }
                at += same;
            }
        });
        pool.by_time().iter().zip(mass).filter(|(_, m)| *m > 0.0).map(|(u, m)| (u.0, m)).collect()
    };
    let (control, treated) = rayon::join(|| masses(Arm::Control), || masses(Arm::Treated));
    let total = |v: &[(f64, f64)]| v.iter().map(|(_, m)| m).sum::<f64>();
    let (u0, u1) = (total(&control), total(&treated));
    if u0 <= 0.0 || u1 <= 0.0 {
        return None;
    }
    // Mean of the first `share` of the mass in the order given.
    fn mean_of_first<'a>(masses: impl Iterator<Item = &'a (f64, f64)>, share: f64) -> f64 {
        let (mut sum, mut taken) = (0.0, 0.0);
        for &(t, m) in masses {
            let part = f64::min(m, share - taken);
            sum += t * part;
            taken += part;
            if taken >= share {
                break;
            }
        }
        sum / taken
    }
    let mean = |v: &[(f64, f64)]| mean_of_first(v.iter(), f64::INFINITY);
    let treatment_cures = u1 <= u0;
    let (low, high) = if treatment_cures {
        (mean(&treated) - mean_of_first(control.iter().rev(), u1), mean(&treated) - mean_of_first(control.iter(), u1))
    } else {
        (mean_of_first(treated.iter(), u0) - mean(&control), mean_of_first(treated.iter().rev(), u0) - mean(&control))
    };
    let unrestricted = mean(&treated) - mean(&control);
    Some(AlwaysUncured { share: u0.min(u1), low, high, unrestricted, treatment_cures })
}

/// Both average effects under another choice of the analyst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// K; `None` where the adjusted estimator chose one for each split.
    pub group_size: Option<usize>,
    /// The seed of the split.
    pub seed: u64,
    /// Mean cure effect.
    pub cure: Option<f64>,
    /// Mean time effect.
    pub time: Option<f64>,
    /// Standard deviation of the cure effects between units.
    pub cure_sd: Option<f64>,
    /// Standard deviation of the time effects between units.
    pub time_sd: Option<f64>,
    /// Units whose time effect is undefined.
    pub n_undefined: usize,
}

impl Choice {
    fn of(group_size: Option<usize>, seed: u64, effects: &[Effect]) -> Choice {
        let (cure, time) = (average(effects.iter().map(|e| Some(e.cure()))), average(effects.iter().map(Effect::time)));
        Choice {
            group_size,
            seed,
            cure: cure.mean,
            time: time.mean,
            cure_sd: cure.sd,
            time_sd: time.sd,
            n_undefined: time.n_undefined,
        }
    }
}

/// Units on which group sizes are compared, at most.
const MOST_COMPARED: usize = 1000;

/// The effects with half, once, twice and four times the group size, all on the same units (at most 1,000, every m-th by id).
/// Empty under constraints: larger groups would serve other units, so that it is not K alone that changes.
pub fn group_sizes(walk: &Walk<'_>) -> Vec<Choice> {
    if walk.is_constrained() {
        return Vec::new();
    }
    let (cohort, fit) = (walk.cohort, &walk.analysis.fit);
    let units = &walk.analysis.units;
    let every = units.len().div_ceil(MOST_COMPARED).max(1);
    let rows: Vec<f64> = units.iter().step_by(every).flat_map(|&i| cohort.covariates(i as usize)).copied().collect();
    let largest = walk.pools.iter().map(Pool::len).min().unwrap_or(0);
    let k = fit.options.group_size;
    let mut sizes = vec![(k / 2).max(1), k, 2 * k, 4 * k];
    sizes.retain(|&s| s <= largest);
    sizes.dedup();
    let largest = sizes.last().copied().unwrap_or(k);
    // Neighbours ascend, so one search for the largest size serves all.
    let found = walk.each(|arm, side| {
        let metric = side.metric(fit);
        let matcher = Matcher::new(&walk.pools[arm.index()], cohort, metric);
        let (members, squared) = matcher.group(&metric.place(&rows), largest);
        let n = members.len() / largest.max(1);
        let mut scratch = Vec::new();
        let pool = &walk.pools[arm.index()];
        let of_size = |scratch: &mut Vec<u32>, q: usize, size: usize| GroupEstimate {
            curve: pool.summary(&members[q * largest..q * largest + size], scratch),
            diameter: squared[q * largest + size - 1].sqrt(),
        };
        sizes.iter().map(|&s| (0..n).map(|q| of_size(&mut scratch, q, s)).collect::<Vec<_>>()).collect::<Vec<_>>()
    });
    sizes
        .iter()
        .enumerate()
        .map(|(s, &size)| {
            let effects: Vec<Effect> = (0..found[0][0][s].len())
                .map(|q| Effect {
                    arms: [0, 1].map(|z| ArmEstimate { cure: found[z][0][s][q], time: found[z][1][s][q] }),
                    corrected: None,
                })
                .collect();
            Choice::of(Some(size), fit.options.seed, &effects)
        })
        .collect()
}

/// The whole analysis again with the next seeds: other units train, other units are estimated.
pub fn seeds(cohort: &Cohort, analysis: &Analysis, n_seeds: usize, watch: &dyn Watch) -> Result<Vec<Choice>, Error> {
    let options = &analysis.fit.options;
    let size = |a: &Analysis| a.fit.cross_fit.is_none().then_some(a.fit.options.group_size);
    let mut out = vec![Choice::of(size(analysis), options.seed, &analysis.effects)];
    for s in 1..=n_seeds as u64 {
        let options = Options { seed: options.seed.wrapping_add(s), ..options.clone() };
        let found = analysis::run(cohort, &options, watch)?;
        out.push(Choice::of(size(&found), options.seed, &found.effects));
    }
    Ok(out)
}
