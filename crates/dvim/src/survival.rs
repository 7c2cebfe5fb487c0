//! Kaplan–Meier curves and what is read off them. Knows nothing of matching.
//!
//! With distinct event times t₁ < t₂ < …, dᵢ events and rᵢ at risk just before tᵢ (a unit censored
//! at tᵢ is still at risk there), Ŝ(t) = Π_{tᵢ ≤ t} (1 − dᵢ/rᵢ) [Kaplan & Meier 1958].
//! All functionals are exact sums over the steps:
//!
//! - restricted mean `RMST(H) = ∫₀ᴴ Ŝ = H·Ŝ(H) + Σ tᵢ ΔFᵢ`, with `ΔFᵢ = Ŝ(tᵢ₋₁) − Ŝ(tᵢ)`,
//! - conditional mean event time `CMET(H) = Σ tᵢ ΔFᵢ / (1 − Ŝ(H))` over tᵢ < H, which is the paper's `(RMST − H·Ŝ(H)) /
//!   (1 − Ŝ(H))` without its cancellation.

mod weighted;
mod together;
mod watched;

use crate::outcome::Outcome;
pub use together::{Signed, Together};
pub use watched::Watched;
pub use weighted::FEW_AT_RISK;

/// One distinct time of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The time.
    pub time: f64,
    /// Units at risk just before it.
    pub n_at_risk: usize,
    /// Events at it.
    pub n_events: usize,
    /// Events of other causes at it.
    pub n_competing: usize,
    /// Units censored at it, after the events.
    pub n_censored: usize,
    /// Ŝ at it.
    pub survival: f64,
}

/// Goes through a sample sorted by time, one distinct time after the other.
struct Steps<I: Iterator<Item = (f64, bool)>> {
    /// The first unit of the next step, then the rest.
    ahead: Option<(f64, bool)>,
    units: I,
    n_at_risk: usize,
    survival: f64,
}

impl<I: Iterator<Item = (f64, bool)>> Steps<I> {
    fn new(mut sorted: I, n: usize) -> Self {
        Steps { ahead: sorted.next(), units: sorted, n_at_risk: n, survival: 1.0 }
    }
}

impl<I: Iterator<Item = (f64, bool)>> Iterator for Steps<I> {
    type Item = Step;

    #[inline(always)]
    fn next(&mut self) -> Option<Step> {
        let (time, event) = self.ahead?;
        let (mut n_events, mut n_here) = (usize::from(event), 1);
        self.ahead = self.units.next();
        while let Some((_, e)) = self.ahead.filter(|(t, _)| *t == time) {
            n_events += usize::from(e);
            n_here += 1;
            self.ahead = self.units.next();
        }
        let n_at_risk = self.n_at_risk;
        if n_events > 0 {
            self.survival *= (n_at_risk - n_events) as f64 / n_at_risk as f64;
        }
        self.n_at_risk -= n_here;
        Some(Step { time, n_at_risk, n_events, n_competing: 0, n_censored: n_here - n_events, survival: self.survival })
    }
}

/// What the two estimands need from one match group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Ŝ(H).
    pub survival: f64,
    /// Σ tᵢ ΔFᵢ: the part of the restricted mean that belongs to events before H.
    pub event_area: f64,
    /// Units at risk at H.
    pub n_at_risk: usize,
    /// Events before H.
    pub n_events: usize,
    /// Greenwood's sum `G = Σ gᵢ`, gᵢ = dᵢ/(rᵢ(rᵢ−dᵢ)), over event times before H that leave somebody at risk.
    pub greenwood: f64,
    /// Mean of the areas `Bᵢ = ∫₀^{tᵢ} Ŝ` before the same event times, weighted by gᵢ.
    pub area_mean: f64,
    /// Their spread: `Σ gᵢ (Bᵢ − mean)²`.
    pub area_spread: f64,
    /// Probability of no event of any cause before H: Ŝ(H) where there is one cause.
    pub event_free: f64,
    /// Effective units in a unit, below 1 where weights differ or clusters are shared.
    pub worth: f64,
    /// Whether an event met few units at risk while others had yet to enter.
    pub thin: bool,
}

impl Summary {
    /// Of a sample of this size, before anything happens.
    pub(crate) const fn nothing_seen(n: usize) -> Summary {
        Summary {
            survival: 1.0,
            event_area: 0.0,
            n_at_risk: n,
            n_events: 0,
            greenwood: 0.0,
            area_mean: 0.0,
            area_spread: 0.0,
            event_free: 1.0,
            worth: 1.0,
            thin: false,
        }
    }

    /// Summarises a group, given in order of time, at horizon H. Allocates nothing.
    pub fn of_sorted(sorted: impl Iterator<Item = (f64, bool)>, n: usize, horizon: f64) -> Summary {
        Summary::of_steps(Steps::new(sorted, n), n, horizon)
    }

    fn of_steps(steps: impl Iterator<Item = Step>, n: usize, horizon: f64) -> Summary {
        let mut running = Running::new(n);
        for step in steps.take_while(|s| s.time < horizon) {
            running.pass(&step);
        }
        running.summary
    }

    /// E[T | T < H], or `None` where there is no event before H.
    pub fn mean_event_time(&self) -> Option<f64> {
        (self.n_events > 0).then(|| self.event_area / (1.0 - self.survival))
    }

    /// ∫₀ᴴ Ŝ.
    pub fn restricted_mean(&self, horizon: f64) -> f64 {
        horizon * self.survival + self.event_area
    }

    /// Greenwood's standard error of Ŝ(H), `Ŝ √G`; 0 without an event, `None` where Ŝ(H) = 0, as in R's survfit, or
    /// where all units are of one cluster.
    pub fn survival_se(&self) -> Option<f64> {
        (self.survival > 0.0 && !self.greenwood.is_nan()).then(|| self.survival * self.greenwood.sqrt())
    }

    /// Standard error of the restricted mean: `Var = Σ gᵢ Aᵢ²`, with `Aᵢ = RMST − Bᵢ` the area beyond tᵢ.
    pub fn restricted_mean_se(&self, horizon: f64) -> f64 {
        let off = self.restricted_mean(horizon) - self.area_mean;
        f64::sqrt(self.area_spread + self.greenwood * off * off)
    }

    /// Standard error of the mean event time m by the delta method:
    /// `Var = Σ gᵢ (Aᵢ + (m − H) Ŝ)² / (1 − Ŝ)²`, and since `RMST = H·Ŝ + m (1 − Ŝ)` the term is `m − Bᵢ`:
    /// `Var = (Σ gᵢ (Bᵢ − B̄)² + G (m − B̄)²) / (1 − Ŝ)²`. `None` below two events, where nothing shows the spread.
    pub fn mean_event_time_se(&self) -> Option<f64> {
        let m = self.mean_event_time().filter(|_| self.n_events > 1 && !self.greenwood.is_nan())?;
        let off = m - self.area_mean;
        Some(f64::sqrt(self.area_spread + self.greenwood * off * off) / (1.0 - self.survival))
    }

    /// What the logit of `m/H`, and so the logarithm of m, varies at least: the standard deviation on that scale of
    /// event times that are even on (0, H), over √(d (d − 1)) for d events. Events that are few or tied say no more.
    /// `None` below two events, or where all units are of one cluster.
    pub fn least_spread(&self) -> Option<f64> {
        least_spread(self.n_events as f64 * self.worth).filter(|_| !self.greenwood.is_nan())
    }

    /// The size n′ of an uncensored sample that would know Ŝ(H) as well: `Ŝ (1 − Ŝ) / Var Ŝ`
    /// [Rothman 1978]. Where the variance is 0 or undefined: the units at risk at H without any event (at
    /// least 1), the events where the curve is at 0. One cluster is worth one unit.
    pub fn effective_size(&self) -> f64 {
        if self.greenwood.is_nan() {
            1.0
        } else if self.n_events == 0 {
            (self.n_at_risk as f64 * self.worth).max(1.0)
        } else if self.survival <= 0.0 {
            self.n_events as f64 * self.worth
        } else {
            (1.0 - self.survival) / (self.survival * self.greenwood)
        }
    }

    /// Whether Ŝ(H) is the last value of a curve that ended before H with units still event-free:
    /// nobody is at risk at H, yet not everybody has had an event.
    pub fn carried_forward(&self) -> bool {
        self.n_at_risk == 0 && self.event_free > 0.0
    }
}

/// A summary on the way through the steps of a curve.
struct Running {
    summary: Summary,
    /// `∫₀ᵗ Ŝ` to the last step.
    area: f64,
    from: f64,
}

impl Running {
    fn new(n: usize) -> Running {
        Running { summary: Summary::nothing_seen(n), area: 0.0, from: 0.0 }
    }

    #[inline(always)]
    fn pass(&mut self, step: &Step) {
        let out = &mut self.summary;
        self.area += out.survival * (step.time - self.from);
        self.from = step.time;
        if step.n_events > 0 && step.n_at_risk > step.n_events {
            // West's (1979) update of a weighted mean and spread: no difference of large sums.
            let g = greenwood_term(step);
            let (sum, off) = (out.greenwood + g, self.area - out.area_mean);
            out.area_mean += off * g / sum;
            out.area_spread += out.greenwood * g / sum * off * off;
            out.greenwood = sum;
        }
        if step.n_events > 0 {
            out.event_area += step.time * (out.survival - step.survival);
            out.survival = step.survival;
            out.event_free = step.survival;
            out.n_events += step.n_events;
        }
        out.n_at_risk = step.n_at_risk - step.n_events - step.n_censored;
    }
}

/// A Kaplan–Meier curve as a value.
#[derive(Clone, Debug, PartialEq)]
pub struct SurvivalCurve {
    n_units: usize,
    steps: Vec<Step>,
    /// The sample in order of time, where not all units count alike.
    outcomes: Option<Vec<Outcome>>,
}

/// An estimate with its standard error, where that is defined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its standard error; `None` where it is undefined.
    pub se: Option<f64>,
}

impl SurvivalCurve {
    /// The curve of a sample in any order.
    pub fn new(time: &[f64], event: &[bool]) -> SurvivalCurve {
        assert_eq!(time.len(), event.len(), "one event indicator for each time");
        let mut order: Vec<usize> = (0..time.len()).collect();
        order.sort_by(|&a, &b| time[a].total_cmp(&time[b]));
        let steps = Steps::new(order.iter().map(|&i| (time[i], event[i])), time.len()).collect();
        SurvivalCurve { n_units: time.len(), steps, outcomes: None }
    }

    /// The curve of a sample in any order, in which units may differ in weight, entry, cluster and cause. `Ŝ` is then
    /// one less the cumulative incidence of the cause of interest.
    pub fn of_outcomes(mut outcomes: Vec<Outcome>) -> SurvivalCurve {
        outcomes.sort_by(|a, b| a.time.total_cmp(&b.time));
        if outcomes.iter().all(Outcome::is_plain) {
            let steps = Steps::new(outcomes.iter().map(|u| (u.time, u.event)), outcomes.len()).collect();
            return SurvivalCurve { n_units: outcomes.len(), steps, outcomes: None };
        }
        SurvivalCurve { n_units: outcomes.len(), steps: weighted::steps(&outcomes), outcomes: Some(outcomes) }
    }

    /// Whether every unit behind it counts once, from the start, for itself, with one cause.
    pub fn is_plain(&self) -> bool {
        self.outcomes.is_none()
    }

    /// Its steps, one for each distinct time.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Number of units behind it.
    pub fn n_units(&self) -> usize {
        self.n_units
    }

    /// Ŝ(t): the value after all events up to and including t; carried forward after the last time.
    pub fn at(&self, t: f64) -> f64 {
        let passed = self.steps.partition_point(|s| s.time <= t);
        if passed == 0 { 1.0 } else { self.steps[passed - 1].survival }
    }

    /// Ŝ(t−): the value just before t.
    pub fn before(&self, t: f64) -> f64 {
        let passed = self.steps.partition_point(|s| s.time < t);
        if passed == 0 { 1.0 } else { self.steps[passed - 1].survival }
    }

    /// Units at risk just before t: those with a time of at least t.
    pub fn n_at_risk(&self, t: f64) -> usize {
        let passed = self.steps.partition_point(|s| s.time < t);
        self.steps.get(passed).map_or(0, |s| s.n_at_risk)
    }

    /// The last time of the sample; `None` where it is empty.
    pub fn last_time(&self) -> Option<f64> {
        self.steps.last().map(|s| s.time)
    }

    /// ∫₀ᵗ Ŝ, the exact area under the steps.
    pub fn integral_to(&self, t: f64) -> f64 {
        let (mut area, mut from, mut level) = (0.0, 0.0, 1.0);
        for s in self.steps.iter().take_while(|s| s.time < t) {
            area += level * (s.time - from);
            (from, level) = (s.time, s.survival);
        }
        area + level * (t - from)
    }

    /// The summary at H of the same sample.
    pub fn summary(&self, horizon: f64) -> Summary {
        match &self.outcomes {
            None => Summary::of_steps(self.steps.iter().copied(), self.n_units, horizon),
            Some(outcomes) => Summary::of_outcomes(outcomes, horizon),
        }
    }

    /// Ŝ(t) with Greenwood's standard error, `Ŝ √Σ dᵢ/(rᵢ(rᵢ−dᵢ))`. Undefined where Ŝ(t) = 0.
    pub fn survival_with_se(&self, t: f64) -> Estimate {
        if self.outcomes.is_some() {
            let summary = self.summary(t.next_up());
            return Estimate { value: summary.survival, se: summary.survival_se() };
        }
        let (mut sum, mut value) = (0.0, 1.0);
        for s in self.steps.iter().take_while(|s| s.time <= t) {
            value = s.survival;
            if s.n_events > 0 {
                sum += greenwood_term(s);
            }
        }
        Estimate { value, se: (value > 0.0).then(|| value * f64::sqrt(sum)) }
    }

    /// The time by which a share `p` has had its event: the first t with `Ŝ(t) ≤ 1 − p`; `None` where the curve stays
    /// above.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        let most = (1.0 - p) * (1.0 + 1e-12);
        self.steps.iter().find(|s| s.n_events > 0 && s.survival <= most).map(|s| s.time)
    }

    /// RMST(H) and CMET(H) with their standard errors.
    ///
    /// With `Aᵢ = ∫_{tᵢ}ᴴ Ŝ`, gᵢ = dᵢ/(rᵢ(rᵢ−dᵢ)) over tᵢ < H (0 where rᵢ = dᵢ, as in survRM2):
    /// Var RMST = Σ Aᵢ² gᵢ, Var Ŝ = Ŝ² Σ gᵢ, Cov = Ŝ Σ Aᵢ gᵢ; and CMET = (R − HS)/(1 − S) has
    /// ∂/∂R = 1/(1−S), ∂/∂S = (CMET − H)/(1−S), so that by the delta method
    /// Var CMET = Σ gᵢ (Aᵢ + (CMET − H) Ŝ)² / (1 − Ŝ)².
    pub fn means_with_se(&self, horizon: f64) -> (Estimate, Option<Estimate>) {
        let summary = self.summary(horizon);
        if self.outcomes.is_some() {
            let known = !summary.greenwood.is_nan();
            let rmst = Estimate {
                value: summary.restricted_mean(horizon),
                se: known.then(|| summary.restricted_mean_se(horizon)),
            };
            let mean = |value| Estimate { value, se: summary.mean_event_time_se() };
            return (rmst, summary.mean_event_time().map(mean));
        }
        let cmet = summary.mean_event_time();
        let (mut var_rmst, mut var_cmet) = (0.0, 0.0);
        let (mut area, mut to) = (0.0, horizon);
        // From the right: the area beyond each event time grows step by step.
        for s in self.steps.iter().rev().skip_while(|s| s.time >= horizon) {
            area += s.survival * (to - s.time);
            to = s.time;
            if s.n_events > 0 && s.n_at_risk > s.n_events {
                let g = greenwood_term(s);
                var_rmst += area * area * g;
                if let Some(m) = cmet {
                    let influence = area + (m - horizon) * summary.survival;
                    var_cmet += influence * influence * g;
                }
            }
        }
        let rmst = Estimate { value: summary.restricted_mean(horizon), se: Some(f64::sqrt(var_rmst)) };
        let cmet = cmet.map(|value| Estimate { value, se: Some(f64::sqrt(var_cmet) / (1.0 - summary.survival)) });
        (rmst, cmet)
    }
}

/// What one unit more of a kind would change: for each unit of a sample the derivative of Ŝ(H), RMST(H) and
/// CMET(H) with respect to the weight of the unit.
///
/// With rᵢ, dᵢ as above, `mᵢⱼ = (1{Yⱼ ≥ tᵢ} dᵢ/rᵢ − 1{j has its event at tᵢ}) / (rᵢ − dᵢ)` and the coefficients
/// `cᵢ = Ŝ`, `Aᵢ`, `(CMET − Bᵢ)/(1 − Ŝ)` of the three functionals, unit j has the influence `Σ_{tᵢ<H} cᵢ mᵢⱼ`.
/// The terms of different times are orthogonal, and `Σⱼ mᵢⱼ² = gᵢ`: the sum of squares over the units *is*
/// Greenwood's variance (survRM2's, the delta method's), ties included. The infinitesimal jackknife of
/// [Efron 1982], which R's survfit gives as `influence`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Influence {
    /// On Ŝ(H).
    pub survival: Vec<f64>,
    /// On RMST(H).
    pub restricted_mean: Vec<f64>,
    /// On CMET(H); empty where it is undefined.
    pub mean_event_time: Vec<f64>,
}

impl Influence {
    /// The influences of a sample given in order of time, in that order.
    pub fn of_sorted(sorted: &[(f64, bool)], horizon: f64) -> Influence {
        let mut out = Influence::default();
        out.fill(sorted, horizon);
        out
    }

    /// The same, into vectors that are reused from group to group.
    pub fn fill(&mut self, sorted: &[(f64, bool)], horizon: f64) -> Summary {
        let summary = Summary::of_sorted(sorted.iter().copied(), sorted.len(), horizon);
        let (s, mean) = (summary.survival, summary.mean_event_time());
        let rmst = summary.restricted_mean(horizon);
        self.survival.clear();
        self.restricted_mean.clear();
        self.mean_event_time.clear();
        // Running sums over the event times passed: G, Σ gᵢ Aᵢ, Σ gᵢ (m − Bᵢ)/(1 − S).
        let (mut past, mut area, mut from, mut level) = ([0.0; 3], 0.0, 0.0, 1.0);
        for step in Steps::new(sorted.iter().copied(), sorted.len()) {
            let mut jump = [0.0; 3];
            if step.time < horizon {
                area += level * (step.time - from);
                (from, level) = (step.time, step.survival);
                if step.n_events > 0 && step.n_at_risk > step.n_events {
                    let c = [s, rmst - area, mean.map_or(0.0, |m| (m - area) / (1.0 - s))];
                    let g = greenwood_term(&step);
                    let left = (step.n_at_risk - step.n_events) as f64;
                    for f in 0..3 {
                        past[f] += c[f] * g;
                        jump[f] = c[f] / left;
                    }
                }
            }
            let at = self.survival.len();
            for &(_, event) in &sorted[at..at + step.n_events + step.n_censored] {
                let lost = if event { jump } else { [0.0; 3] };
                self.survival.push(past[0] - lost[0]);
                self.restricted_mean.push(past[1] - lost[1]);
                if mean.is_some() {
                    self.mean_event_time.push(past[2] - lost[2]);
                }
            }
        }
        summary
    }
}

/// What a group is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Functional {
    /// Ŝ(H).
    Survival,
    /// CMET(H).
    MeanEventTime,
}

impl Influence {
    /// The influences on one functional alone, times `scale`, of a sample in order of time whose summary at H is known;
    /// nothing where the functional is undefined. The arithmetic is that of [`Influence::fill`].
    pub fn fill_one(
        out: &mut Vec<f64>,
        sorted: &[(f64, bool)],
        horizon: f64,
        summary: &Summary,
        of: Functional,
        scale: f64,
    ) {
        out.clear();
        let s = summary.survival;
        let mean = match (of, summary.mean_event_time()) {
            (Functional::Survival, _) => 0.0,
            (Functional::MeanEventTime, Some(mean)) => mean,
            (Functional::MeanEventTime, None) => return,
        };
        let (mut past, mut area, mut from, mut level) = (0.0, 0.0, 0.0, 1.0);
        let mut n_at_risk = sorted.len();
        for tied in sorted.chunk_by(|a, b| a.0 == b.0).take_while(|tied| tied[0].0 < horizon) {
            let (time, n_events) = (tied[0].0, tied.iter().filter(|u| u.1).count());
            area += level * (time - from);
            from = time;
            let mut jump = 0.0;
            if n_events > 0 {
                let left = (n_at_risk - n_events) as f64;
                level *= left / n_at_risk as f64;
                if n_at_risk > n_events {
                    let c = match of {
                        Functional::Survival => s,
                        Functional::MeanEventTime => (mean - area) / (1.0 - s),
                    };
                    past += c * (n_events as f64 / (n_at_risk as f64 * left));
                    jump = c / left;
                }
            }
            out.extend(tied.iter().map(|u| scale * if u.1 { past - jump } else { past }));
            n_at_risk -= tied.len();
        }
        out.resize(sorted.len(), scale * past);
    }
}

/// The influences of a sample on Ŝ(H′) and CMET(H′) at many horizons, from one pass.
///
/// With the sums of [`Influence`] written out, unit j has the influence `Ŝ(H′) φⱼ` on Ŝ(H′) and `(m φⱼ − ψⱼ)/(1 −
/// Ŝ(H′))` on `m = CMET(H′)`, with `φⱼ = Σᵢ mᵢⱼ` and `ψⱼ = Σᵢ Bᵢ mᵢⱼ` over event times before H′. Those of a unit whose
/// own time is before H′ do not depend on H′, and all units that are still there at H′ have the same.
#[derive(Clone, Debug, Default)]
pub struct Influences {
    /// `[φⱼ, ψⱼ]` of each unit, in order of time, at horizons beyond it.
    pub own: Vec<[f64; 2]>,
    /// For each horizon the number of units whose time is before it, and `[φ, ψ]` of the others.
    pub left: Vec<(usize, [f64; 2])>,
    /// The summary at each horizon.
    pub summaries: Vec<Summary>,
}

impl Influences {
    /// Goes through a sample in order of time; the horizons ascend.
    pub fn fill(&mut self, sorted: &[(f64, bool)], horizons: &[f64]) {
        self.own.clear();
        self.left.clear();
        self.summaries.clear();
        let (mut past, mut running) = ([0.0; 2], Running::new(sorted.len()));
        for step in Steps::new(sorted.iter().copied(), sorted.len()) {
            let at = self.own.len();
            while horizons.get(self.left.len()).is_some_and(|h| *h <= step.time) {
                self.left.push((at, past));
                self.summaries.push(running.summary);
            }
            if self.left.len() == horizons.len() {
                return;
            }
            running.pass(&step);
            let mut jump = [0.0; 2];
            if step.n_events > 0 && step.n_at_risk > step.n_events {
                let g = greenwood_term(&step);
                past = [past[0] + g, past[1] + running.area * g];
                let left = (step.n_at_risk - step.n_events) as f64;
                jump = [1.0 / left, running.area / left];
            }
            for &(_, event) in &sorted[at..at + step.n_events + step.n_censored] {
                self.own.push(if event { [past[0] - jump[0], past[1] - jump[1]] } else { past });
            }
        }
        self.left.resize(horizons.len(), (sorted.len(), past));
        self.summaries.resize(horizons.len(), running.summary);
    }
}

/// Standard deviation of event times that are even on (0, H), on the logit scale at their mean: H/√12 over H/4.
const EVEN: f64 = 1.154_700_538_379_251_7;

/// The least standard error of `logit(m/H)` that so many events can give; `None` below two.
pub(crate) fn least_spread(n_events: f64) -> Option<f64> {
    (n_events > 1.0).then(|| EVEN / f64::sqrt(n_events * (n_events - 1.0)))
}

/// dᵢ / (rᵢ (rᵢ − dᵢ)) [Greenwood 1926].
fn greenwood_term(s: &Step) -> f64 {
    s.n_events as f64 / (s.n_at_risk as f64 * (s.n_at_risk - s.n_events) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_weights_are_copies() {
        let units = [
            (3.0, true, 2.0),
            (1.0, true, 1.0),
            (2.0, false, 3.0),
            (3.0, false, 1.0),
            (9.0, false, 2.0),
            (4.0, true, 3.0),
        ];
        let copies: Vec<(f64, bool)> =
            units.iter().flat_map(|u| std::iter::repeat_n((u.0, u.1), u.2 as usize)).collect();
        let (time, event): (Vec<f64>, Vec<bool>) = copies.into_iter().unzip();
        let plain = SurvivalCurve::new(&time, &event).summary(8.0);
        let weighted = {
            let mut sorted = units.map(|(time, event, weight)| Outcome { weight, ..Outcome::plain(time, event) });
            sorted.sort_by(|a, b| a.time.total_cmp(&b.time));
            Summary::of_outcomes(&sorted, 8.0)
        };
        assert!((plain.survival - weighted.survival).abs() < 1e-14);
        assert!((plain.event_area - weighted.event_area).abs() < 1e-13);
        assert_eq!((weighted.n_at_risk, weighted.n_events), (1, 3));
    }
}
