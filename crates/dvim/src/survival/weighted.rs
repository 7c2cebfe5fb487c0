//! Curves of samples in which not all units count alike: case weights, clusters, delayed entry and competing events.
//!
//! At a time t the units at risk are those with `entry < t ≤ time`. With r the weight at risk, d₁ the weight of the
//! events of the cause of interest and d that of all events, `λ₁ = d₁/r`, `λ = d/r`:
//!
//! - event-free survival of any cause `Ŝ(t) = Π (1 − λ)`,
//! - cumulative incidence of the cause `F̂₁(t) = Σ Ŝ(t−) λ₁` [Aalen & Johansen 1978], and what is read off is `Q̂ = 1 −
//!   F̂₁`.
//!
//! Without other causes Q̂ is Ŝ, the Kaplan–Meier curve, and is computed as such, to the last bit. Errors are those of
//! the infinitesimal jackknife: with λ_c the hazard of cause c at tₖ and Tₖ the rest of the functional after tₖ, unit j
//! has the influence
//!
//! `Σₖ [ c₁ₖ (dN₁ⱼₖ − Yⱼₖ λ₁ₖ) + c₂ₖ (dNⱼₖ − Yⱼₖ λₖ) ] / rₖ`, `c₁ = −Ŝ(tₖ−)`, `c₂ = (Q̂(tₖ) − Q̂(H))/(1 − λₖ)` on Q̂(H),
//!
//! and `c₁ = tₖ Ŝ(tₖ−)`, `c₂ = −(rest of Σ t ΔF₁)/(1 − λₖ)` on `Σ t ΔF₁`. The variance is `Σ (Σ_{j in cluster} wⱼ
//! IFⱼ)²`: what R's survfit gives with weights, `cluster` or `id` (vignette "methods" of survival). Weights are
//! therefore sampling weights; with all weights 1, one unit to a cluster and one cause it is Greenwood's formula.

use super::{Influence, Step, Summary};
use crate::outcome::{ALONE, Outcome};

/// Fewer at risk than this at an event, while others have yet to enter, is worth a flag.
pub const FEW_AT_RISK: usize = 5;

/// One distinct time of a sample.
#[derive(Clone, Copy)]
struct Tick {
    /// Units, and what they weigh.
    step: Step,
    at_risk: f64,
    deaths: f64,
    competing: f64,
    /// Ŝ of any cause, before and after.
    free: [f64; 2],
    /// Units that have yet to enter.
    n_to_come: usize,
}

/// All distinct times of a sample in order of time.
fn ticks(sorted: &[Outcome]) -> Vec<Tick> {
    let n = sorted.len();
    // Weights of those with a time, or an entry, of at least t: summed from the last on, so that they cannot drift
    // below zero.
    let mut with_time = vec![0.0; n + 1];
    for (i, u) in sorted.iter().enumerate().rev() {
        with_time[i] = with_time[i + 1] + u.weight;
    }
    let mut entries: Vec<(f64, f64)> = sorted.iter().filter(|u| u.entry > 0.0).map(|u| (u.entry, u.weight)).collect();
    entries.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut with_entry = vec![0.0; entries.len() + 1];
    for (i, e) in entries.iter().enumerate().rev() {
        with_entry[i] = with_entry[i + 1] + e.1;
    }
    let (mut out, mut start, mut entered) = (Vec::new(), 0, 0);
    let (mut free, mut value, mut others) = (1.0, 1.0, false);
    for tied in sorted.chunk_by(|a, b| a.time == b.time) {
        let time = tied[0].time;
        while entered < entries.len() && entries[entered].0 < time {
            entered += 1;
        }
        let n_to_come = entries.len() - entered;
        let n_at_risk = n - start - n_to_come;
        let at_risk = with_time[start] - with_entry[entered];
        let weigh = |f: &dyn Fn(&Outcome) -> bool| tied.iter().filter(|u| f(u)).map(|u| u.weight).sum::<f64>();
        let (deaths, competing) = (weigh(&|u| u.event), weigh(&|u| u.competing));
        let n_events = tied.iter().filter(|u| u.event).count();
        let n_competing = tied.iter().filter(|u| u.competing).count();
        others |= n_competing > 0;
        let before = free;
        if n_events + n_competing > 0 {
            let left =
                if n_events + n_competing == n_at_risk { 0.0 } else { (at_risk - (deaths + competing)).max(0.0) };
            free *= left / at_risk;
            value = if others { (value - before * (deaths / at_risk)).max(0.0) } else { free };
        }
        let n_censored = tied.len() - n_events - n_competing;
        let step = Step { time, n_at_risk, n_events, n_competing, n_censored, survival: value };
        out.push(Tick { step, at_risk, deaths, competing, free: [before, free], n_to_come });
        start += tied.len();
    }
    out
}

/// The steps of the curve of such a sample.
pub(super) fn steps(sorted: &[Outcome]) -> Vec<Step> {
    ticks(sorted).into_iter().map(|t| t.step).collect()
}

/// Kish's effective size over the number of units: `(Σ W)²/Σ W² / n`, W being the weights of clusters.
fn worth(sorted: &[Outcome]) -> f64 {
    let sums = by_cluster(sorted, sorted.iter().map(|u| [u.weight, 0.0]));
    let (total, square) = sums.iter().fold((0.0, 0.0), |(t, s), v| (t + v[0], s + v[0] * v[0]));
    if square > 0.0 { total * total / square / sorted.len() as f64 } else { 1.0 }
}

/// Sums of pairs over the units of each cluster, in the order in which clusters appear by number.
fn by_cluster(sorted: &[Outcome], values: impl Iterator<Item = [f64; 2]>) -> Vec<[f64; 2]> {
    let mut out = Vec::with_capacity(sorted.len());
    let mut clustered: Vec<(u32, [f64; 2])> = Vec::new();
    for (u, v) in sorted.iter().zip(values) {
        if u.cluster == ALONE {
            out.push(v);
        } else {
            clustered.push((u.cluster, v));
        }
    }
    clustered.sort_by_key(|c| c.0);
    for same in clustered.chunk_by(|a, b| a.0 == b.0) {
        out.push(same.iter().fold([0.0; 2], |s, (_, v)| [s[0] + v[0], s[1] + v[1]]));
    }
    out
}

impl Summary {
    /// Summarises a sample given in order of time, at horizon H.
    pub fn of_outcomes(sorted: &[Outcome], horizon: f64) -> Summary {
        Influence::default().fill_outcomes(sorted, horizon)
    }
}

impl Influence {
    /// As [`Influence::fill`], for a sample given in order of time. Each influence is times the weight of its unit.
    pub fn fill_outcomes(&mut self, sorted: &[Outcome], horizon: f64) -> Summary {
        let all = ticks(sorted);
        let ticks: Vec<&Tick> = all.iter().take_while(|t| t.step.time < horizon).collect();
        let mut out = Summary::nothing_seen(sorted.len());
        out.worth = worth(sorted);
        for t in &ticks {
            out.event_area += t.step.time * (out.survival - t.step.survival);
            out.survival = t.step.survival;
            out.event_free = t.free[1];
            // Where the curve of all causes is at 0, whoever enters later tells it nothing more.
            out.n_events += if t.free[0] > 0.0 { t.step.n_events } else { 0 };
            let few = t.step.n_at_risk < FEW_AT_RISK || t.free[1] == 0.0;
            out.thin |= t.step.n_events > 0 && t.n_to_come > 0 && few;
        }
        out.n_at_risk = sorted.len() - sorted.partition_point(|u| u.time < horizon);
        let (value, area) = (out.survival, out.event_area);
        // For each time: what being at risk there has cost so far, and what an event there, of the cause or of another,
        // adds.
        let mut past = Vec::with_capacity(ticks.len() + 1);
        past.push([0.0; 2]);
        let (mut cost, mut seen_area, mut level) = ([0.0; 2], 0.0, 1.0);
        let mut jumps = Vec::with_capacity(ticks.len());
        for t in &ticks {
            seen_area += t.step.time * (level - t.step.survival);
            level = t.step.survival;
            let mut jump = [[0.0; 2], [0.0; 2]];
            let all_gone = t.step.n_events == t.step.n_at_risk;
            if t.step.n_events + t.step.n_competing > 0 && !all_gone {
                let (r, hazard, any) = (t.at_risk, t.deaths / t.at_risk, (t.deaths + t.competing) / t.at_risk);
                let left = if t.free[1] > 0.0 { t.free[0] / t.free[1] } else { 0.0 };
                let own = [-t.free[0], t.step.time * t.free[0]];
                let rest = [(level - value) * left, (seen_area - area) * left];
                for f in 0..2 {
                    cost[f] += (own[f] * hazard + rest[f] * any) / r;
                    jump[0][f] = (own[f] + rest[f]) / r;
                    jump[1][f] = rest[f] / r;
                }
            }
            past.push(cost);
            jumps.push(jump);
        }
        let time_of = |k: usize| ticks[k].step.time;
        let mean = out.mean_event_time();
        self.survival.clear();
        self.restricted_mean.clear();
        self.mean_event_time.clear();
        let mut passed = 0;
        for u in sorted {
            while passed < ticks.len() && time_of(passed) <= u.time {
                passed += 1;
            }
            let before = if u.entry > 0.0 { ticks.partition_point(|t| t.step.time <= u.entry) } else { 0 };
            let jump = match passed.checked_sub(1) {
                Some(k) if u.event && u.time < horizon => jumps[k][0],
                Some(k) if u.competing && u.time < horizon => jumps[k][1],
                _ => [0.0; 2],
            };
            let [q, a] = [0, 1].map(|f| u.weight * (jump[f] - (past[passed][f] - past[before][f])));
            self.survival.push(q);
            self.restricted_mean.push(horizon * q + a);
            if let Some(m) = mean {
                self.mean_event_time.push((a + m * q) / (1.0 - value));
            }
        }
        let pairs = by_cluster(sorted, self.survival.iter().zip(&self.restricted_mean).map(|(&q, &r)| [q, r]));
        let apart = self.survival.iter().map(|q| q * q).sum();
        out.set_errors(&pairs, apart, horizon);
        out
    }
}

impl Summary {
    /// Stores the variances and the covariance of Q̂ and RMST, given their influences by cluster, as Greenwood's sum and
    /// the areas would: what the errors of a plain curve rest on is the same Gram matrix, taken apart in the same way.
    /// `apart` is the variance of Q̂ were there no clusters.
    fn set_errors(&mut self, pairs: &[[f64; 2]], apart: f64, horizon: f64) {
        let product = |a: usize, b: usize| pairs.iter().map(|v| v[a] * v[b]).sum::<f64>();
        let (qq, qr, rr) = (product(0, 0), product(0, 1), product(1, 1));
        if pairs.len() < 2 || (apart > 0.0 && qq <= 1e-9 * apart) {
            // One cluster shows nothing of how clusters vary, nor do clusters that are alike to the last digit.
            (self.greenwood, self.area_mean, self.area_spread) = (f64::NAN, f64::NAN, f64::NAN);
        } else if self.survival > 0.0 && qq > 0.0 {
            self.greenwood = qq / (self.survival * self.survival);
            self.area_mean = self.restricted_mean(horizon) - self.survival * qr / qq;
            self.area_spread = (rr - qr * qr / qq).max(0.0);
        } else {
            self.area_mean = self.restricted_mean(horizon);
            self.area_spread = rr;
        }
    }
}
