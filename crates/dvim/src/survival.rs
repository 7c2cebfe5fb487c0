//! Kaplan–Meier curves and what is read off them. Knows nothing of matching.
//!
//! With distinct event times t₁ < t₂ < …, dᵢ events and rᵢ at risk just before tᵢ (a unit censored
//! at tᵢ is still at risk there), Ŝ(t) = Π_{tᵢ ≤ t} (1 − dᵢ/rᵢ) [Kaplan & Meier 1958].
//! All functionals are exact sums over the steps:
//!
//! - restricted mean `RMST(H) = ∫₀ᴴ Ŝ = H·Ŝ(H) + Σ tᵢ ΔFᵢ`, with `ΔFᵢ = Ŝ(tᵢ₋₁) − Ŝ(tᵢ)`,
//! - conditional mean event time `CMET(H) = Σ tᵢ ΔFᵢ / (1 − Ŝ(H))` over tᵢ < H,
//!   which is the paper's `(RMST − H·Ŝ(H)) / (1 − Ŝ(H))` without its cancellation.

/// One distinct time of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The time.
    pub time: f64,
    /// Units at risk just before it.
    pub n_at_risk: usize,
    /// Events at it.
    pub n_events: usize,
    /// Units censored at it, after the events.
    pub n_censored: usize,
    /// Ŝ at it.
    pub survival: f64,
}

/// Goes through a sample sorted by time, one distinct time after the other.
struct Steps<I: Iterator<Item = (f64, bool)>> {
    units: std::iter::Peekable<I>,
    n_at_risk: usize,
    survival: f64,
}

impl<I: Iterator<Item = (f64, bool)>> Steps<I> {
    fn new(sorted: I, n: usize) -> Self {
        Steps { units: sorted.peekable(), n_at_risk: n, survival: 1.0 }
    }
}

impl<I: Iterator<Item = (f64, bool)>> Iterator for Steps<I> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let (time, event) = self.units.next()?;
        let (mut n_events, mut n_here) = (usize::from(event), 1);
        while let Some((_, e)) = self.units.next_if(|(t, _)| *t == time) {
            n_events += usize::from(e);
            n_here += 1;
        }
        let n_at_risk = self.n_at_risk;
        if n_events > 0 {
            self.survival *= (n_at_risk - n_events) as f64 / n_at_risk as f64;
        }
        self.n_at_risk -= n_here;
        Some(Step { time, n_at_risk, n_events, n_censored: n_here - n_events, survival: self.survival })
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
}

impl Summary {
    /// Summarises a group, given in order of time, at horizon H. Allocates nothing.
    pub fn of_sorted(sorted: impl Iterator<Item = (f64, bool)>, n: usize, horizon: f64) -> Summary {
        Summary::of_steps(Steps::new(sorted, n), n, horizon)
    }

    fn of_steps(steps: impl Iterator<Item = Step>, n: usize, horizon: f64) -> Summary {
        let mut out = Summary { survival: 1.0, event_area: 0.0, n_at_risk: n, n_events: 0 };
        for step in steps.take_while(|s| s.time < horizon) {
            out.event_area += step.time * (out.survival - step.survival);
            out.survival = step.survival;
            out.n_at_risk = step.n_at_risk - step.n_events - step.n_censored;
            out.n_events += step.n_events;
        }
        out
    }

    /// Summarises a weighted sample, in any order, at horizon H: Ŝ = Π (1 − d/r) with d and r sums of weights. Counts are of
    /// units. Weights are positive.
    pub fn of_weighted(units: &[(f64, bool, f64)], horizon: f64) -> Summary {
        let mut sorted = units.to_vec();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Weight at risk, summed from the last unit on, so that it cannot drift below zero.
        let mut at_risk = vec![0.0; sorted.len() + 1];
        for (i, unit) in sorted.iter().enumerate().rev() {
            at_risk[i] = at_risk[i + 1] + unit.2;
        }
        let mut out = Summary { survival: 1.0, event_area: 0.0, n_at_risk: sorted.len(), n_events: 0 };
        let mut start = 0;
        for tied in sorted.chunk_by(|a, b| a.0 == b.0).take_while(|tied| tied[0].0 < horizon) {
            let deaths: f64 = tied.iter().filter(|u| u.1).map(|u| u.2).sum();
            let survival = out.survival * ((at_risk[start] - deaths) / at_risk[start]).max(0.0);
            out.event_area += tied[0].0 * (out.survival - survival);
            out.survival = survival;
            out.n_events += tied.iter().filter(|u| u.1).count();
            start += tied.len();
            out.n_at_risk = sorted.len() - start;
        }
        out
    }

    /// E[T | T < H], or `None` where there is no event before H.
    pub fn mean_event_time(&self) -> Option<f64> {
        (self.n_events > 0).then(|| self.event_area / (1.0 - self.survival))
    }

    /// ∫₀ᴴ Ŝ.
    pub fn restricted_mean(&self, horizon: f64) -> f64 {
        horizon * self.survival + self.event_area
    }

    /// Whether Ŝ(H) is the last value of a curve that ended before H with units still event-free:
    /// nobody is at risk at H, yet the curve has not reached zero.
    pub fn carried_forward(&self) -> bool {
        self.n_at_risk == 0 && self.survival > 0.0
    }
}

/// A Kaplan–Meier curve as a value.
#[derive(Clone, Debug, PartialEq)]
pub struct SurvivalCurve {
    n_units: usize,
    steps: Vec<Step>,
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
        SurvivalCurve { n_units: time.len(), steps }
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
        Summary::of_steps(self.steps.iter().copied(), self.n_units, horizon)
    }

    /// Ŝ(t) with Greenwood's standard error, `Ŝ √Σ dᵢ/(rᵢ(rᵢ−dᵢ))`. Undefined where Ŝ(t) = 0.
    pub fn survival_with_se(&self, t: f64) -> Estimate {
        let (mut sum, mut value) = (0.0, 1.0);
        for s in self.steps.iter().take_while(|s| s.time <= t) {
            value = s.survival;
            if s.n_events > 0 {
                sum += greenwood_term(s);
            }
        }
        Estimate { value, se: (value > 0.0).then(|| value * f64::sqrt(sum)) }
    }

    /// RMST(H) and CMET(H) with their standard errors.
    ///
    /// With `Aᵢ = ∫_{tᵢ}ᴴ Ŝ`, gᵢ = dᵢ/(rᵢ(rᵢ−dᵢ)) over tᵢ < H (0 where rᵢ = dᵢ, as in survRM2):
    /// Var RMST = Σ Aᵢ² gᵢ, Var Ŝ = Ŝ² Σ gᵢ, Cov = Ŝ Σ Aᵢ gᵢ; and CMET = (R − HS)/(1 − S) has
    /// ∂/∂R = 1/(1−S), ∂/∂S = (CMET − H)/(1−S), so that by the delta method
    /// Var CMET = Σ gᵢ (Aᵢ + (CMET − H) Ŝ)² / (1 − Ŝ)².
    pub fn means_with_se(&self, horizon: f64) -> (Estimate, Option<Estimate>) {
        let summary = self.summary(horizon);
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
        let weighted = Summary::of_weighted(&units, 8.0);
        assert!((plain.survival - weighted.survival).abs() < 1e-14);
        assert!((plain.event_area - weighted.event_area).abs() < 1e-13);
        assert_eq!((weighted.n_at_risk, weighted.n_events), (1, 3));
    }
}
