//! Does follow-up reach the horizon, and does the curve look like a plateau there?
//!
//! Two different questions. *Can Ŝ(H) be read at all?* Only if patients are still at risk at H. *Does event-free at H
//! mean cured?* Here cured is defined as event-free at H, so the effects need only the first; but who says "cured"
//! means the second, and the second is where a curve misleads. Three views of it, which rest on different things:
//!
//! - **Maller & Zhou (1994, 1996)**, on the times as recorded. With t_max the last time, t* the last event and `N` the
//!   events in `(2t* − t_max, t*]`: `q = N/n`, `α = (1 − q)ⁿ`, and α < 0.05 is taken as sufficient follow-up. It is
//!   liberal: α ≈ e^(−N), so three events are enough, and one patient who is censored very late widens the interval and
//!   makes α small.
//! - **Yuen & Musta (2024, arXiv 2403.16832)**: H₀ that more than a share ε of the uncured have their event after H. If
//!   the density does not increase in the tail and nobody has an event after τ, then under H₀ it is at least `f₀ = ε
//!   F(H)/(τ − H)` in the window (H − w, H]. They compare f₀ with a (smoothed) Grenander estimate of the density at H;
//!   here the same inequality is tested by counting, without smoothing or bootstrap: a patient at risk at t then has at
//!   least the hazard f₀/S(t), so the window's events are at least Poisson with mean `e₀ = f₀ ∫ Y(t)/Ŝ(t) dt`, and `p =
//!   P(Poisson(e₀) ≤ events seen)`. Small p: practically sufficient. A window in which nobody is at risk has e₀ = 0 and
//!   p = 1: the absence of events proves nothing where nobody was watched.
//! - **Xie, Escobar-Bach & Van Keilegom (2024)**: H₀ that follow-up suffices, tested by the distance between F̂(H) and
//!   an extrapolation for tails in the Gumbel domain [Escobar-Bach, Maller, Van Keilegom & Zhao 2022], `p̂ = F(H−δ) +
//!   (F(H−δ/2) − F(H−δ))² / (2F(H−δ/2) − F(H−δ) − F(H))`. They bootstrap; here the standard error is by the delta
//!   method with Greenwood's covariance. Small p: *not* sufficient; p̂ − F̂(H) says how many more events to expect.

use crate::cohort::{Arm, Cohort};
use crate::numeric::normal_cdf;
use crate::outcome::{ALONE, Outcome};
use crate::survival::SurvivalCurve;

/// ε of the test after Yuen and Musta: the share of the uncured that may have their event after H.
pub const LATE_SHARE: f64 = 0.05;
/// τ, the time by which all events have happened, in units of H.
pub const LAST_POSSIBLE: f64 = 2.0;
/// The window w, as a share of H.
pub const WINDOW: f64 = 0.25;
/// δ of the extrapolation, as a share of H.
pub const EXTRAPOLATION: f64 = 0.5;
/// Fewer at risk at H than this and Ŝ(H) is not to be relied on.
pub const FEW: usize = 10;
/// Ŝ at or below which nearly everybody has had the event.
pub const NEARLY_NOBODY: f64 = 0.05;
/// Follow-up to so many times H, with ten still at risk, shows whether events come after H.
pub const LONG_AFTER: f64 = 1.25;

/// What can be said of the follow-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Patients are at risk at H, and few events come after it.
    Sufficient,
    /// Nearly everybody had the event while ten were still at risk: there is nobody left to follow.
    Over,
    /// Patients are at risk at H, but events still come close to H: event-free at H may not be cured.
    StillFalling,
    /// Fewer than ten are at risk at H: Ŝ(H) itself is uncertain.
    FewAtHorizon,
    /// Nobody is at risk at H: Ŝ(H) is carried forward from an earlier time.
    NotReached,
}

impl Verdict {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Sufficient => "sufficient",
            Verdict::Over => "over",
            Verdict::StillFalling => "still_falling",
            Verdict::FewAtHorizon => "few_at_horizon",
            Verdict::NotReached => "not_reached",
        }
    }
}

/// The follow-up of an arm, or of both.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowUp {
    /// Which arm; `None` for both.
    pub arm: Option<Arm>,
    /// Units.
    pub n_units: usize,
    /// Events before H.
    pub n_events: usize,
    /// Units at risk at H.
    pub n_at_risk: usize,
    /// Ŝ(H): the height of the plateau.
    pub survival: f64,
    /// The last event before H.
    pub last_event: Option<f64>,
    /// From the last event before H to H, or to the last recorded time if that comes first: the length of the plateau.
    pub plateau: f64,
    /// The last recorded time.
    pub last_time: f64,
    /// Median follow-up by the reverse Kaplan–Meier curve of the recorded times; `None` where it is not reached.
    pub median: Option<f64>,
    /// Events recorded at H or later: they do not count here, and show what "cured" leaves out.
    pub n_events_after: usize,
    /// Events in the window before H.
    pub n_window_events: usize,
    /// Events that the window would have if more than [`LATE_SHARE`] of the uncured were still to come.
    pub n_window_expected: f64,
    /// p of the test after Yuen and Musta; small: practically sufficient.
    pub p_practical: f64,
    /// N, q and α of Maller and Zhou; small α: sufficient by their rule.
    pub maller_zhou: Option<MallerZhou>,
    /// The extrapolation of Escobar-Bach and others; `None` where it is undefined (no concave tail).
    pub extrapolation: Option<Extrapolation>,
    /// The last time, H at most, at which [`FEW`] were still at risk; 0 where there never were as many.
    pub last_ten: f64,
    /// The time before which a tenth of the units is censored; `None` where fewer are before H.
    pub first_tenth_lost: Option<f64>,
    /// Of the events seen while ten were at risk, the share that came at H or later; `None` where follow-up does not go
    /// to [`LONG_AFTER`] times H.
    pub late_share: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// Maller and Zhou's count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MallerZhou {
    /// N: events in (2t* − t_max, t*].
    pub n_events: usize,
    /// q = N/n.
    pub q: f64,
    /// α = (1 − q)ⁿ.
    pub alpha: f64,
}

/// The share uncured if the tail went on as it ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extrapolation {
    /// p̂ − F̂(H): events expected after H, as a share of all.
    pub further: f64,
    /// Its standard error.
    pub se: f64,
    /// One-sided p of H₀ "nothing further"; small: follow-up does not suffice.
    pub p: f64,
}

impl FollowUp {
    /// The follow-up of all, of the treated, of the control.
    pub fn of_all(cohort: &Cohort) -> [FollowUp; 3] {
        // Sorted once; curves of sorted times are quick.
        let mut order: Vec<(f64, u32)> = (0..cohort.n_units()).map(|i| (cohort.time(i), i as u32)).collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let of = |z: Option<Arm>| FollowUp::of(cohort, z, &order);
        let (all, (treated, control)) =
            rayon::join(|| of(None), || rayon::join(|| of(Some(Arm::Treated)), || of(Some(Arm::Control))));
        [all, treated, control]
    }

    /// Of the units of an arm, or of all, out of all by their times.
    fn of(cohort: &Cohort, arm: Option<Arm>, order: &[(f64, u32)]) -> FollowUp {
        let all = order.iter().map(|(_, i)| *i as usize);
        let units: Vec<usize> = all.filter(|&i| arm.is_none_or(|z| cohort.arm(i) == z)).collect();
        let recorded: Vec<(f64, bool)> = units.iter().map(|&i| cohort.recorded(i)).collect();
        // Follow-up is of patients, so weights and clusters play no part.
        let own = |i: &usize| Outcome { weight: 1.0, cluster: ALONE, ..cohort.outcome(*i) };
        FollowUp::of_units(arm, &recorded, units.iter().map(own).collect(), cohort.horizon())
    }

    /// The same from outcomes as recorded and as capped at H.
    pub fn of_outcomes(arm: Option<Arm>, recorded: &[(f64, bool)], capped: &[(f64, bool)], horizon: f64) -> FollowUp {
        FollowUp::of_units(arm, recorded, capped.iter().map(|u| Outcome::plain(u.0, u.1)).collect(), horizon)
    }

    fn of_units(arm: Option<Arm>, recorded: &[(f64, bool)], capped: Vec<Outcome>, horizon: f64) -> FollowUp {
        let is_plain = capped.iter().all(Outcome::is_plain);
        // Whoever is at risk of this cause is free of every other: its hazard is a density over the survival of any
        // event.
        let of_any = |u: &Outcome| Outcome { event: u.event || u.competing, competing: false, ..*u };
        let any =
            capped.iter().any(|u| u.competing).then(|| SurvivalCurve::of_outcomes(capped.iter().map(of_any).collect()));
        let n_units = capped.len();
        let last_event = capped.iter().filter(|u| u.event).map(|u| u.time).reduce(f64::max);
        let last_time = recorded.iter().map(|u| u.0).fold(0.0, f64::max);
        let start = horizon * (1.0 - WINDOW);
        let n_window_events = capped.iter().filter(|u| u.event && u.time > start).count();
        let mut lost: Vec<f64> =
            capped.iter().filter(|u| !u.event && !u.competing && u.time < horizon).map(|u| u.time).collect();
        lost.sort_unstable_by(f64::total_cmp);
        let tenth = (0.1 * n_units as f64).ceil() as usize;
        let first_tenth_lost = lost.get(tenth).copied();
        // Follow-up ends at censoring; an event, of any cause, hides how much longer it would have gone on.
        let lost = |(&(time, event), u): (&(f64, bool), &Outcome)| Outcome {
            entry: u.entry,
            ..Outcome::plain(time, !event && !u.competing)
        };
        let reverse = SurvivalCurve::of_outcomes(recorded.iter().zip(&capped).map(lost).collect());
        let median = reverse.steps().iter().find(|s| s.survival <= 0.5).map(|s| s.time);
        let curve = SurvivalCurve::of_outcomes(capped);
        let summary = curve.summary(horizon);
        let floor = LATE_SHARE * (1.0 - summary.survival) / (LAST_POSSIBLE * horizon - horizon);
        let n_window_expected = floor * exposure(any.as_ref().unwrap_or(&curve), start, horizon);
        let p_practical = if summary.n_events == 0 { 1.0 } else { poisson_at_most(n_window_events, n_window_expected) };
        // A step says how many were at risk just before it.
        let last_ten = match summary.n_at_risk >= FEW {
            true => horizon,
            false => curve.steps().iter().filter(|s| s.n_at_risk >= FEW).map(|s| s.time).fold(0.0, f64::max),
        };
        let late_share = late_share(recorded, horizon).filter(|_| is_plain);
        let is_over = curve.at(last_ten) <= NEARLY_NOBODY;
        let verdict = match () {
            () if summary.n_at_risk < FEW && is_over => Verdict::Over,
            () if summary.carried_forward() => Verdict::NotReached,
            () if summary.n_at_risk < FEW => Verdict::FewAtHorizon,
            // What was seen after H says more than what its last quarter lets expect.
            () if late_share.map_or(p_practical < 0.05, |share| share <= LATE_SHARE) => Verdict::Sufficient,
            () => Verdict::StillFalling,
        };
        FollowUp {
            arm,
            n_units,
            n_events: summary.n_events,
            n_at_risk: summary.n_at_risk,
            survival: summary.survival,
            last_event,
            plateau: (last_time.min(horizon) - last_event.unwrap_or(0.0)).max(0.0),
            last_time,
            median,
            n_events_after: recorded.iter().filter(|u| u.1).count() - summary.n_events,
            n_window_events,
            n_window_expected,
            p_practical,
            // Their theory is for one cause and for patients who are watched from the start.
            maller_zhou: maller_zhou(recorded).filter(|_| is_plain),
            extrapolation: extrapolate(&curve, horizon).filter(|_| is_plain),
            last_ten,
            first_tenth_lost,
            late_share,
            verdict,
        }
    }

    /// The verdict in words, with what it rests on.
    pub fn words(&self) -> String {
        let who = self.arm.map_or("all patients".to_string(), |z| format!("the {} arm", z.name()));
        let basis = match self.late_share {
            Some(share) => format!(
                "{} at risk at the horizon; {:.1} % of the events that were seen came after it",
                self.n_at_risk,
                100.0 * share
            ),
            None => format!(
                "{} at risk at the horizon; in the last quarter before it {} events, where {:.1} would be expected if 5 % of events were still to come, p = {:.3}",
                self.n_at_risk, self.n_window_events, self.n_window_expected, self.p_practical
            ),
        };
        match self.verdict {
            Verdict::Sufficient => format!("{who}: follow-up is long enough ({basis})"),
            Verdict::Over => format!(
                "{who}: nearly everybody had the event while ten were still at risk, so nobody is left to follow ({basis})"
            ),
            Verdict::StillFalling => format!(
                "{who}: patients are followed to the horizon, but events may still come after it, so say event-free at the horizon and not cured ({basis})"
            ),
            Verdict::FewAtHorizon => {
                format!(
                    "{who}: too few patients are followed to the horizon to rely on the share that is event-free there ({basis})"
                )
            }
            Verdict::NotReached => {
                format!("{who}: nobody is followed to the horizon; the last value of the curve is used ({basis})")
            }
        }
    }
}

/// Events over a part of the time to H.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Where the part begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Events in it.
    pub n_events: usize,
    /// Time that units were at risk in it, summed.
    pub exposure: f64,
    /// Events over exposure; 0 where there is no exposure.
    pub rate: f64,
    /// Lower end of the exact Poisson interval [Garwood 1936]: the mean under which d events or more have probability
    /// α/2.
    pub low: f64,
    /// Upper end: the mean under which d events or fewer have probability α/2.
    pub high: f64,
}

/// The event rates of an arm in equal parts of the time to H.
pub fn rates(cohort: &Cohort, arm: Arm, parts: usize, confidence: f64) -> Vec<Rate> {
    let units = cohort.units_of(arm);
    let watched: Vec<(f64, f64, bool)> = cohort.outcomes(&units).iter().map(|o| (o.entry, o.time, o.event)).collect();
    rates_of(&watched, cohort.horizon(), parts, confidence)
}

/// The same of units with these times of entry, of their end, and events.
fn rates_of(watched: &[(f64, f64, bool)], horizon: f64, parts: usize, confidence: f64) -> Vec<Rate> {
    let width = horizon / parts as f64;
    let (mut events, mut exposure) = (vec![0usize; parts], vec![0.0; parts]);
    for &(entry, time, event) in watched {
        // The part that holds the end of this unit's time; an event on a border belongs to the part before it.
        let last = ((time / width).ceil() as usize).clamp(1, parts) - 1;
        for (k, e) in exposure[..=last].iter_mut().enumerate() {
            let (from, to) = (k as f64 * width, (k + 1) as f64 * width);
            *e += (time.min(to) - entry.max(from)).max(0.0);
        }
        events[last] += usize::from(event);
    }
    let tail = 0.5 * (1.0 - confidence);
    let part = |k: usize| {
        let (d, e) = (events[k], exposure[k]);
        let over = |v: f64| if e > 0.0 { v / e } else { 0.0 };
        Rate {
            from: k as f64 * width,
            to: (k + 1) as f64 * width,
            n_events: d,
            exposure: e,
            rate: over(d as f64),
            low: if d == 0 { 0.0 } else { over(poisson_mean(d - 1, 1.0 - tail)) },
            high: over(poisson_mean(d, tail)),
        }
    };
    (0..parts).map(part).collect()
}

/// `∫ Y(t)/Ŝ(t) dt` from `start` to `horizon`, Y being the number at risk; 0 from where Ŝ is 0.
fn exposure(curve: &SurvivalCurve, start: f64, horizon: f64) -> f64 {
    let (mut sum, mut from, mut level) = (0.0, 0.0, 1.0);
    for s in curve.steps() {
        let (a, b) = (f64::max(from, start), f64::min(s.time, horizon));
        if b > a && level > 0.0 {
            sum += s.n_at_risk as f64 / level * (b - a);
        }
        (from, level) = (s.time, s.survival);
    }
    sum
}

/// P(N ≤ k) for N Poisson with this mean.
fn poisson_at_most(k: usize, mean: f64) -> f64 {
    if mean > 700.0 {
        // e^(−mean) underflows; the normal approximation with continuity correction is exact enough there.
        return normal_cdf((k as f64 + 0.5 - mean) / mean.sqrt());
    }
    let mut term = libm::exp(-mean);
    let mut sum = term;
    for j in 1..=k {
        term *= mean / j as f64;
        sum += term;
    }
    sum.min(1.0)
}

/// The mean m with P(N ≤ k) = p for N Poisson with mean m. By bisection: it cannot leave its bracket.
fn poisson_mean(k: usize, p: f64) -> f64 {
    let (mut low, mut high) = (0.0, k as f64 + 10.0 * (k as f64).sqrt() + 40.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if poisson_at_most(k, middle) > p { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Of the events seen while ten were at risk, by Kaplan and Meier, the share that came at H or later; `None` where
/// follow-up does not go far enough beyond H.
fn late_share(recorded: &[(f64, bool)], horizon: f64) -> Option<f64> {
    let mut times: Vec<f64> = recorded.iter().map(|u| u.0).collect();
    times.sort_unstable_by(|a, b| b.total_cmp(a));
    let until = *times.get(FEW - 1)?;
    if until < LONG_AFTER * horizon {
        return None;
    }
    let curve = SurvivalCurve::of_outcomes(recorded.iter().map(|u| Outcome::plain(u.0, u.1)).collect());
    // Just before H: an event at H is one after it.
    let (at_horizon, at_end) = (curve.at(horizon.next_down()), curve.at(until));
    (at_end < 1.0).then(|| (at_horizon - at_end) / (1.0 - at_end))
}

fn maller_zhou(recorded: &[(f64, bool)]) -> Option<MallerZhou> {
    let last = recorded.iter().map(|u| u.0).reduce(f64::max)?;
    let event = recorded.iter().filter(|u| u.1).map(|u| u.0).reduce(f64::max)?;
    let start = 2.0 * event - last;
    let n_events = recorded.iter().filter(|u| u.1 && u.0 > start && u.0 <= event).count();
    let n = recorded.len() as f64;
    // An event at the very end leaves an empty interval: no plateau at all.
    let n_events = if event < last { n_events } else { 0 };
    let q = n_events as f64 / n;
    Some(MallerZhou { n_events, q, alpha: libm::pow(1.0 - q, n) })
}

fn extrapolate(curve: &SurvivalCurve, horizon: f64) -> Option<Extrapolation> {
    // Values just before H: an event at H is none. Greenwood's sum to each of the three times.
    let times = [1.0 - EXTRAPOLATION, 1.0 - 0.5 * EXTRAPOLATION, 1.0].map(|share| (share * horizon).next_down());
    let s = times.map(|t| curve.at(t));
    let g = times.map(|t| {
        let steps = curve.steps().iter().take_while(|s| s.time <= t).filter(|s| s.n_events > 0);
        steps.map(|s| s.n_events as f64 / (s.n_at_risk as f64 * (s.n_at_risk - s.n_events).max(1) as f64)).sum::<f64>()
    });
    let [a, b, c] = s.map(|s| 1.0 - s);
    let (first, second) = (b - a, c - b);
    // The tail must flatten (second < first) for the limit to exist.
    if first <= 0.0 || second >= first {
        return None;
    }
    // p̂ = a + first²/(first − second), with first = b − a and second = c − b.
    let d = first - second;
    let value = a + first * first / d;
    let (by_first, by_second) = (2.0 * first / d - first * first / (d * d), first * first / (d * d));
    // Gradient of p̂ − c in (a, b, c).
    let slope = [1.0 - by_first, by_first - by_second, by_second - 1.0];
    let mut variance = 0.0;
    for j in 0..3 {
        for k in 0..3 {
            variance += slope[j] * slope[k] * s[j] * s[k] * g[j.min(k)];
        }
    }
    let (further, se) = (value - c, variance.max(0.0).sqrt());
    let p = if se > 0.0 { normal_cdf(-further / se) } else { 1.0 };
    Some(Extrapolation { further, se, p })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_by_hand_and_intervals_as_poisson_test() {
        // Two parts of 5. At risk in the first: 3 + 5 + 5 + 5, in the second: 2 + 5 + 5.
        let watched = [(0.0, 3.0, true), (0.0, 7.0, false), (0.0, 10.0, false), (0.0, 10.0, true)];
        let found = rates_of(&watched, 10.0, 2, 0.95);
        assert_eq!([found[0].exposure, found[1].exposure], [18.0, 12.0]);
        assert_eq!([found[0].n_events, found[1].n_events], [1, 1]);
        // R: poisson.test(1)$conf.int is 0.02531781 5.57164339; poisson.test(0) ends at 3.688879.
        assert!((found[0].low * 18.0 - 0.02531781).abs() < 1e-7);
        assert!((found[0].high * 18.0 - 5.57164339).abs() < 1e-7);
        let none = rates_of(&[(0.0, 10.0, false)], 10.0, 1, 0.95)[0];
        // Who enters at 6 is at risk for 1 of the first part, if it ends at 7 and parts are 7 long, and not before.
        assert_eq!(rates_of(&[(6.0, 7.0, true)], 14.0, 2, 0.95)[0].exposure, 1.0);
        assert_eq!((none.low, none.rate), (0.0, 0.0));
        assert!((none.high * 10.0 - 3.688879).abs() < 1e-5);
        // scipy: chi2.ppf(0.025, 300)/2 and chi2.ppf(0.975, 302)/2.
        assert!((poisson_mean(149, 0.975) - 126.95616130124488).abs() < 1e-8);
        assert!((poisson_mean(150, 0.025) - 176.0171660970745).abs() < 1e-8);
    }
}
