//! What it would take to overturn the conclusion: another horizon, an unmeasured confounder, informative censoring,
//! and the people whom Δ does not compare.

use super::average::AverageEffect;
use super::passes::{Gather, Group, Walk, part, unbiased};
use super::standardised::Standardised;
use crate::analysis::{self, Analysis, average};
use crate::cohort::{Arm, Cohort};
use crate::effect::{Effect, Four};
use crate::error::{Error, Problem, ProblemKind};
use crate::estimand::Estimand;
use crate::group::{GroupEstimate, Pool};
use crate::interval::two_sided;
use crate::options::Options;
use crate::phrase;
use crate::search::{Ask, Queries};
use crate::setting::Setting;
use crate::survival::{Influence, Influences};
use crate::watch::Watch;

/// Both average effects had the horizon been another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtHorizon {
    /// H′.
    pub horizon: f64,
    /// Mean of π(H′) with its interval.
    pub cure: Option<[f64; 3]>,
    /// Mean of Δ(H′) with its interval, over units whose groups both have an event before H′.
    pub time: Option<[f64; 3]>,
    /// Units that both rest on: all, or a sample.
    pub n_units: usize,
    /// Those whose Δ(H′) is undefined.
    pub n_undefined: usize,
}

/// Points of the horizon curve.
const GRID: usize = 20;
/// Units that the horizon curve is averaged over, at most: every m-th by id.
const MOST_UNITS: usize = 3_000;

/// What the horizon curve gathers of one arm and side.
pub(super) struct Horizons<'a> {
    grid: &'a [f64],
    side: Estimand,
    every: usize,
    influences: Influences,
    /// For each horizon and unit: value (NaN where undefined) and variance.
    values: Vec<Vec<(f64, f64)>>,
    /// By rank, the row of `used` of a unit that was met, counted from 1.
    row: Vec<u32>,
    /// For each horizon the sum of influences.
    used: Vec<[f64; GRID]>,
}

/// The horizons of the curve.
pub(super) fn horizon_grid(cohort: &Cohort) -> Vec<f64> {
    (1..=GRID).map(|g| cohort.horizon() * g as f64 / GRID as f64).collect()
}

/// Of the units in order, every so many-th is looked at, so that they are at most `most`.
fn step_for(n: usize, most: usize) -> usize {
    n.div_ceil(most).max(1)
}

impl<'a> Horizons<'a> {
    pub(super) fn new(walk: &Walk<'_>, grid: &'a [f64], arm: Arm, side: Estimand) -> Horizons<'a> {
        Horizons {
            grid,
            side,
            every: step_for(walk.analysis.units.len(), MOST_UNITS),
            influences: Influences::default(),
            values: vec![Vec::new(); GRID],
            row: vec![0; walk.pools()[arm].len()],
            used: Vec::new(),
        }
    }
}

impl Gather for Horizons<'_> {
    fn add(&mut self, group: &Group<'_>) {
        if !group.unit.is_multiple_of(self.every) {
            return;
        }
        if !group.weighted.is_empty() {
            self.add_weighted(group);
            return;
        }
        let influences = &mut self.influences;
        influences.fill(group.outcomes, self.grid);
        // The influence of a unit with the sums φ and ψ is aφ − bψ.
        let mut factors = [[0.0; 2]; GRID];
        for (g, s) in influences.summaries.iter().enumerate() {
            let scale = unbiased(s, self.side, group.ranks.len());
            let mean = s.mean_event_time();
            let (value, se) = match self.side {
                Estimand::Cure => (s.survival, s.survival_se()),
                Estimand::Time => (mean.unwrap_or(f64::NAN), s.mean_event_time_se()),
            };
            self.values[g].push((value, se.map_or(0.0, |s| s * s)));
            factors[g] = match (self.side, mean) {
                (Estimand::Cure, _) => [scale * s.survival, 0.0],
                (Estimand::Time, Some(m)) => [scale * m / (1.0 - s.survival), scale / (1.0 - s.survival)],
                (Estimand::Time, None) => [0.0; 2],
            };
        }
        // Those who are still there at a horizon have the same influence on it.
        let rest: [f64; GRID] = std::array::from_fn(|g| {
            let [phi, psi] = influences.left[g].1;
            factors[g][0] * phi - factors[g][1] * psi
        });
        let mut passed = 0;
        for (j, &r) in group.ranks.iter().enumerate() {
            let used = row_of(&mut self.row, &mut self.used, r);
            while influences.left.get(passed).is_some_and(|left| left.0 <= j) {
                passed += 1;
            }
            let (there, gone) = used.split_at_mut(passed);
            there.iter_mut().zip(&rest).for_each(|(u, v)| *u += v);
            if let Some(&[phi, psi]) = influences.own.get(j) {
                gone.iter_mut().zip(&factors[passed..]).for_each(|(u, [a, b])| *u += a * phi - b * psi);
            }
        }
    }
}

/// The sums of a unit of the pool, which are made when it is first met.
fn row_of<'u>(rows: &mut [u32], used: &'u mut Vec<[f64; GRID]>, rank: u32) -> &'u mut [f64; GRID] {
    let row = &mut rows[rank as usize];
    if *row == 0 {
        used.push([0.0; GRID]);
        *row = used.len() as u32;
    }
    &mut used[*row as usize - 1]
}

impl Horizons<'_> {
    /// A group whose members do not all count alike: horizon by horizon.
    fn add_weighted(&mut self, group: &Group<'_>) {
        let mut whole = Influence::default();
        for (g, &horizon) in self.grid.iter().enumerate() {
            let s = whole.fill_outcomes(group.weighted, horizon);
            let scale = unbiased(&s, self.side, group.ranks.len());
            let (value, se, influence) = match self.side {
                Estimand::Cure => (s.survival, s.survival_se(), &whole.survival),
                Estimand::Time => {
                    (s.mean_event_time().unwrap_or(f64::NAN), s.mean_event_time_se(), &whole.mean_event_time)
                }
            };
            self.values[g].push((value, se.map_or(0.0, |s| s * s)));
            for (&r, v) in group.ranks.iter().zip(influence) {
                row_of(&mut self.row, &mut self.used, r)[g] += scale * v;
            }
        }
    }

    /// Σ_j U_j² at each horizon, in the order of time.
    fn squares(&self) -> [f64; GRID] {
        let mut out = [0.0; GRID];
        for &row in self.row.iter().filter(|r| **r > 0) {
            let used = &self.used[row as usize - 1];
            (0..GRID).for_each(|g| out[g] += used[g] * used[g]);
        }
        out
    }
}

/// The effects as curves over the horizon, at twenty horizons up to H, from the same groups. Groups are matched by
/// models fitted with H; only what is read off their curves changes. Standard errors as in [`super::average`].
pub fn horizon_curve(walk: &Walk<'_>) -> Vec<AtHorizon> {
    let grid = horizon_grid(walk.cohort);
    let seen = walk.gather(|arm, side| Horizons::new(walk, &grid, arm, side));
    from_horizons(walk, part(&seen, |s| s))
}

/// The same from what the walk gathered.
pub(super) fn from_horizons(walk: &Walk<'_>, found: Four<&Horizons<'_>>) -> Vec<AtHorizon> {
    let analysis = walk.analysis;
    let n = analysis.units.len().div_ceil(step_for(analysis.units.len(), MOST_UNITS));
    let squares = found.map(|of_arm| of_arm.map(Horizons::squares));
    let z = two_sided(analysis.fit.options.confidence);
    let (grid, known) = (horizon_grid(walk.cohort), walk.known());
    let at = |side: Estimand, g: usize| -> (Option<[f64; 3]>, usize) {
        let of = found[side].into_array();
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
        let pool: f64 = squares[side].iter().map(|of_arm| of_arm[g]).sum::<f64>() / (m * m);
        let mut se = (pool + (spread - noise).max(0.0) / m).sqrt();
        let top = match side {
            Estimand::Cure => 1.0,
            Estimand::Time => grid[g],
        };
        if se <= 1e-9 * top {
            // Nothing varies: of who has the event as much as so many units can know, of when nothing.
            match side {
                Estimand::Cure => se = libm::hypot(known.control.least_share(z), known.treated.least_share(z)),
                Estimand::Time => return (None, n - there.len()),
            }
        }
        let end = |by: f64| (mean + by * z * se).clamp(-top, top);
        (Some([mean, end(-1.0), end(1.0)]), n - there.len())
    };

    grid.iter()
        .enumerate()
        .map(|(g, &horizon)| {
            let (time, n_undefined) = at(Estimand::Time, g);
            AtHorizon { horizon, cure: at(Estimand::Cure, g).0, time, n_units: n, n_undefined }
        })
        .collect()
}

/// How strong an unmeasured confounder must be.
#[derive(Clone, Debug, PartialEq)]
pub struct Confounding {
    /// The E-value of the estimate [VanderWeele & Ding 2017]: risk ratios of this size, of the confounder with
    /// treatment and with cure, could explain it away.
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
/// With both its risk ratios Γ the bounding factor is `B = Γ²/(2Γ − 1)` [Ding & VanderWeele 2016], and with p₁, p₀ the
/// cure probabilities and f the share treated the true difference is at least `(p₁ − p₀B)(f + (1 − f)/B)`, by
/// the mirror image at most `(p₁B − p₀)((1 − f) + f/B)`. The first is 0 where B is the ratio p₁/p₀: Γ is then the
/// E-value.
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

impl Censoring {
    /// The same range around another estimate: what the groups say of the censored, of corrected effects.
    pub(super) fn around(self, estimated: f64) -> Censoring {
        let moved = |bound: f64| (bound + estimated - self.estimated).clamp(-1.0, 1.0);
        Censoring {
            least: moved(self.least),
            all_events: moved(self.all_events),
            estimated,
            all_cured: moved(self.all_cured),
            most: moved(self.most),
            censored_share: self.censored_share,
        }
    }
}

/// What is known of the members of cure groups without asking what became of the censored: sums over groups.
pub(super) struct Known {
    side: Estimand,
    horizon: f64,
    /// Of the share that is at risk at H, and of the share without an event before it.
    at_risk: f64,
    without_event: f64,
}

impl Known {
    pub(super) fn new(walk: &Walk<'_>, side: Estimand) -> Known {
        Known { side, horizon: walk.cohort.horizon(), at_risk: 0.0, without_event: 0.0 }
    }
}

impl Gather for Known {
    fn add(&mut self, group: &Group<'_>) {
        if self.side != Estimand::Cure {
            return;
        }
        let (mut at_risk, mut events) = (0.0, 0.0);
        for ((_, count), &(time, event)) in group.members().zip(group.outcomes) {
            let is_before = time < self.horizon;
            at_risk += if is_before { 0.0 } else { count };
            events += if is_before && event { count } else { 0.0 };
        }
        self.at_risk += at_risk / group.size();
        self.without_event += 1.0 - events / group.size();
    }
}

/// From worst case to best case, group by group: with K members, r at risk at H and d events, Ŝ(H) lies between r/K and
/// 1 − d/K.
pub fn censoring(walk: &Walk<'_>) -> Option<Censoring> {
    let seen = walk.gather(|_, side| Known::new(walk, side));
    from_known(walk, part(&seen, |s| s))
}

/// The same from what the walk gathered.
pub(super) fn from_known(walk: &Walk<'_>, seen: Four<&Known>) -> Option<Censoring> {
    let (analysis, looked_at) = (walk.analysis, walk.looked_at());
    let n = looked_at.len() as f64;
    let fit = &analysis.fit;
    // Under constraints a corrected group may be smaller than K.
    if analysis.effects.is_empty() || fit.is_corrected() && !fit.options.constraints.is_empty() {
        return None;
    }
    let worst = |z: Arm| seen.cure[z].at_risk / n;
    let best = |z: Arm| seen.cure[z].without_event / n;
    let found = |z: Arm| looked_at.iter().map(|&q| analysis.effects[q].groups.cure[z].curve.survival).sum::<f64>() / n;
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
    /// Whether treatment is taken never to take a cure away (true), or never to bring one (false): the sign of the
    /// cure effect.
    pub treatment_cures: bool,
}

/// The averaged curve of one arm from its time groups, as jumps at the times of the pool, by rank.
pub(super) struct Jumps {
    side: Estimand,
    by_rank: Vec<f64>,
}

impl Jumps {
    pub(super) fn new(walk: &Walk<'_>, arm: Arm, side: Estimand) -> Jumps {
        Jumps { side, by_rank: if side == Estimand::Time { vec![0.0; walk.pools()[arm].len()] } else { Vec::new() } }
    }
}

impl Gather for Jumps {
    fn add(&mut self, group: &Group<'_>) {
        if self.side != Estimand::Time {
            return;
        }
        let (mut level, mut at, mut left) = (1.0, 0, group.size());
        for same in group.outcomes.chunk_by(|a, b| a.0 == b.0) {
            let count = |i: usize| group.shares.get(at + i).copied().unwrap_or(1.0);
            let d: f64 = (0..same.len()).filter(|&i| same[i].1).map(count).sum();
            let here: f64 = (0..same.len()).map(count).sum();
            if d > 0.0 {
                let jump = level * d / left;
                let jump = if group.shares.is_empty() { jump } else { jump.min(level) };
                self.by_rank[group.ranks[at] as usize] += jump;
                level -= jump;
            }
            (at, left) = (at + same.len(), left - here);
        }
    }
}

/// Bounds for the always-uncured [Zhang & Rubin 2003; Lee 2009], from the curves of both arms averaged over all units.
///
/// Under monotonicity — whoever is cured under control is cured under treatment, if treatment cures more — the uncured
/// of the treated arm *are* the always-uncured, a share u₁ = 1 − S₁(H). The uncured of the control arm, a share u₀ ≥
/// u₁, are those and patients whom treatment would have cured, in unknown order of time. So E[T(0) | always uncured]
/// lies between the means of the earliest and of the latest share u₁/u₀ of the control arm's events. With fewer cures
/// the arms change places.
pub fn always_uncured(walk: &Walk<'_>) -> Option<AlwaysUncured> {
    let seen = walk.gather(|arm, side| Jumps::new(walk, arm, side));
    from_jumps(walk, part(&seen, |s| s))
}

/// The same from what the walk gathered.
pub(super) fn from_jumps(walk: &Walk<'_>, seen: Four<&Jumps>) -> Option<AlwaysUncured> {
    let n = walk.analysis.units.len();
    if n == 0 {
        return None;
    }
    let [control, treated] = Arm::BOTH.map(|z| -> Vec<(f64, f64)> {
        let jumps = walk.pools()[z].by_time().iter().zip(&seen.time[z].by_rank);
        jumps.filter(|(_, m)| **m > 0.0).map(|(u, m)| (u.0, m / n as f64)).collect()
    });
    bounds_of_always_uncured(&control, &treated)
}

/// The same from standardised curves: the events of a cell stand at its middle.
pub(super) fn always_uncured_of_curves(curves: &Standardised) -> Option<AlwaysUncured> {
    let [control, treated] = Arm::BOTH.map(|z| -> Vec<(f64, f64)> {
        let cells = curves.times.windows(2).zip(curves.arms[z].estimate.windows(2));
        cells.map(|(t, s)| (0.5 * (t[0] + t[1]), s[0] - s[1])).filter(|(_, mass)| *mass > 0.0).collect()
    });
    bounds_of_always_uncured(&control, &treated)
}

/// From the events of both arms, as times with masses, in order of time.
fn bounds_of_always_uncured(control: &[(f64, f64)], treated: &[(f64, f64)]) -> Option<AlwaysUncured> {
    let total = |v: &[(f64, f64)]| v.iter().map(|(_, m)| m).sum::<f64>();
    let (u0, u1) = (total(control), total(treated));
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
        (mean(treated) - mean_of_first(control.iter().rev(), u1), mean(treated) - mean_of_first(control.iter(), u1))
    } else {
        (mean_of_first(treated.iter(), u0) - mean(control), mean_of_first(treated.iter().rev(), u0) - mean(control))
    };
    let unrestricted = mean(treated) - mean(control);
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
    /// Units that it rests on: all, or a sample.
    pub n_units: usize,
    /// Those whose time effect is undefined.
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
            n_units: effects.len(),
            n_undefined: time.n_undefined,
        }
    }
}

/// Units on which group sizes are compared, at most.
const MOST_COMPARED: usize = 1000;

/// The effects with half, once, twice and four times the group size, all on the same units (at most 1,000, every m-th
/// by id). Empty under constraints: larger groups would serve other units, so that it is not K alone that changes.
pub fn group_sizes(walk: &Walk<'_>) -> Vec<Choice> {
    if walk.is_constrained() {
        return Vec::new();
    }
    let (cohort, fit) = (walk.cohort, &walk.analysis.fit);
    let units = &walk.analysis.units;
    let every = step_for(units.len(), MOST_COMPARED);
    let rows: Vec<f64> = units.iter().step_by(every).flat_map(|&i| cohort.covariates(i as usize)).copied().collect();
    let largest = walk.pools().iter().map(Pool::len).min().unwrap_or(0);
    let k = fit.options.group_size;
    let mut sizes = vec![(k / 2).max(1), k, 2 * k, 4 * k];
    sizes.retain(|&s| s <= largest);
    sizes.dedup();
    let largest = sizes.last().copied().unwrap_or(k);
    // Neighbours ascend, so one search for the largest size serves all.
    let own = vec![None; rows.len() / cohort.n_covariates()];
    let found: Four<Vec<Vec<GroupEstimate>>> = walk.each(|arm, estimand| {
        let metric = &fit.description.metrics[estimand];
        let ask = Ask {
            queries: Queries { covariates: &rows, own: &own },
            placed: &metric.place(&rows),
            group_size: largest,
            fewest: 0,
        };
        let of_sizes = walk.ground.search(metric, arm).ranked(&ask, |room, near| {
            let of_size = |&k: &usize| walk.pools()[arm].estimate(near, k, room);
            sizes.iter().map(of_size).collect::<Vec<GroupEstimate>>()
        });
        of_sizes.into_iter().map(|found| found.expect("everybody is a candidate")).collect()
    });
    let effect = |q: usize, s: usize| Effect {
        groups: found.each_ref().map(|of_arms| of_arms.each_ref().map(|of_units| of_units[q][s])),
        corrected: None,
    };
    let choice = |(s, &size): (usize, &usize)| {
        let effects: Vec<Effect> = (0..own.len()).map(|q| effect(q, s)).collect();
        Choice::of(Some(size), fit.options.seed, &effects)
    };
    sizes.iter().enumerate().map(choice).collect()
}

/// The whole analysis again with the next seeds: other units train, other units are estimated.
pub fn seeds(cohort: &Cohort, analysis: &Analysis, n_seeds: usize, watch: &dyn Watch) -> Result<Vec<Choice>, Error> {
    if cohort.extras().weight.is_some() {
        let problem = Problem::error(
            ProblemKind::NotSupported,
            "other seeds were asked for in a run with case weights",
            "averages over seeds do not take case weights, so far",
            phrase!["leave out ", Setting::Seeds, ", or fit with another ", Setting::Seed],
        );
        return Err(Error::Refused(vec![problem]));
    }
    let options = &analysis.fit.options;
    let size = |a: &Analysis| (!a.fit.is_corrected()).then_some(a.fit.options.group_size);
    let mut out = vec![Choice::of(size(analysis), options.seed, &analysis.effects)];
    for s in 1..=n_seeds as u64 {
        let options = Options { seed: options.seed.wrapping_add(s), ..options.clone() };
        let found = analysis::run(cohort, &options, watch)?;
        out.push(Choice::of(size(&found), options.seed, &found.effects));
    }
    Ok(out)
}
