//! Intervals on scales that respect the bounds, and their differences.
//!
//! | value | bounds | interval |
//! | --- | --- | --- |
//! | Ŝ(H) | 0, 1 | Wilson (1927), with the effective size of the group [Rothman 1978] |
//! | CMET | 0, H | Wald for `logit(m/H)`, taken back |
//! | either, corrected by a model | the same | Wald for `logit S` and for `logit(m/H)`, taken back |
//! | a difference of two arms | those of the arms | MOVER [Newcombe 1998; Zou & Donner 2008] |
//!
//! Events that are few, or tied, show too little of how event times vary: a standard error of CMET is never below
//! [`Summary::least_spread`].
//! Wilson's interval agrees with the logit one to second order, and unlike it is defined for a group without any
//! event, where Greenwood's variance is 0 and a Wald interval would be a point.
//! What no such interval holds: that the members of a group differ from the unit it stands for (bias).

use crate::numeric::normal_quantile;
use crate::survival::{Step, Summary, SurvivalCurve};

/// A standard error and an interval.
///
/// ```
/// use dvim::Interval;
///
/// let interval = Interval { se: Some(1.0), low: -0.5, high: 3.4 };
/// assert!(interval.covers(0.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The standard error; `None` where it is undefined.
    pub se: Option<f64>,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies inside.
    pub fn covers(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Its width.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }
}

/// The normal quantile z of a two-sided interval: 1.96 for 0.95.
pub fn two_sided(confidence: f64) -> f64 {
    normal_quantile(0.5 + 0.5 * confidence)
}

/// The interval of Ŝ(H): Wilson's, `(p + z²/2n′ ± z √(p(1−p)/n′ + z²/4n′²)) / (1 + z²/n′)`, with n′ the effective size.
pub fn share(curve: &Summary, confidence: f64) -> Interval {
    share_at(curve, two_sided(confidence))
}

/// The same at a normal quantile.
pub(crate) fn share_at(curve: &Summary, z: f64) -> Interval {
    if curve.greenwood.is_nan() {
        // One cluster says nothing of how clusters vary.
        return Interval { se: None, low: 0.0, high: 1.0 };
    }
    let (low, high) = wilson(curve.survival, curve.effective_size(), z);
    // Greenwood's 0 of a group without an event is no standard error.
    Interval { se: curve.survival_se().filter(|se| *se > 0.0), low, high }
}

fn wilson(p: f64, n: f64, z: f64) -> (f64, f64) {
    let (centre, shrink) = (p + z * z / (2.0 * n), 1.0 + z * z / n);
    let half = z * f64::sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n));
    // Where p is 0 or 1 the near end is p itself; round-off must not move it.
    let low = if p <= 0.0 { 0.0 } else { ((centre - half) / shrink).clamp(0.0, p) };
    let high = if p >= 1.0 { 1.0 } else { ((centre + half) / shrink).clamp(p, 1.0) };
    (low, high)
}

/// Wilson's interval of Ŝ at each event time of a curve: what [`share`] gives at a horizon just after it.
pub fn band(curve: &SurvivalCurve, confidence: f64) -> Vec<(Step, [f64; 2])> {
    let z = two_sided(confidence);
    if !curve.is_plain() {
        let limits = |s: &Step| {
            let (low, high) = wilson(s.survival, curve.summary(s.time.next_up()).effective_size(), z);
            (*s, [low, high])
        };
        return curve.steps().iter().filter(|s| s.n_events > 0).map(limits).collect();
    }
    let (mut greenwood, mut n_events) = (0.0, 0);
    let limits = |s: &Step| {
        n_events += s.n_events;
        let left = (s.n_at_risk - s.n_events) as f64;
        let size = if left > 0.0 {
            greenwood += s.n_events as f64 / (s.n_at_risk as f64 * left);
            (1.0 - s.survival) / (s.survival * greenwood)
        } else {
            n_events as f64
        };
        let (low, high) = wilson(s.survival, size, z);
        (*s, [low, high])
    };
    curve.steps().iter().filter(|s| s.n_events > 0).map(limits).collect()
}

/// The p-quantile of a curve (`None` where the curve stays above 1 − p) with an interval: the times at which the
/// lower and the upper limit of Ŝ first reach 1 − p [Brookmeyer & Crowley 1982]; an end that is not reached is `None`.
pub fn quantile(curve: &SurvivalCurve, p: f64, confidence: f64) -> (Option<f64>, [Option<f64>; 2]) {
    let most = (1.0 - p) * (1.0 + 1e-12);
    let band = band(curve, confidence);
    let reached = |end: usize| band.iter().find(|(_, limits)| limits[end] <= most).map(|(s, _)| s.time);
    (curve.quantile(p), [reached(0), reached(1)])
}

/// The interval of CMET(H), between 0 and H: `m/H` on the logit scale, where its standard error is `se · H/(m (H −
/// m))`. `None` below two events.
pub fn mean_event_time(curve: &Summary, horizon: f64, confidence: f64) -> Option<Interval> {
    mean_event_time_at(curve, horizon, two_sided(confidence))
}

/// The same at a normal quantile.
pub(crate) fn mean_event_time_at(curve: &Summary, horizon: f64, z: f64) -> Option<Interval> {
    Some(bounded_at(curve.mean_event_time()?, mean_event_time_se(curve, horizon)?, horizon, z))
}

/// The standard error of CMET(H), never below what so few or so tied events can know; `None` below two events.
pub fn mean_event_time_se(curve: &Summary, horizon: f64) -> Option<f64> {
    let (m, se) = (curve.mean_event_time()?, curve.mean_event_time_se()?);
    Some(se.max(m * (horizon - m) / horizon * curve.least_spread()?))
}

/// The least standard error of an average of shares that `n` units are known of: where nothing varies, z times it
/// reaches as far as Wilson's interval.
pub(crate) fn least_share_se(n: f64, z: f64) -> f64 {
    z / (n + z * z)
}

/// The interval of an average between 0 and `top`: [`bounded_at`], and Wald, cut at the bounds, so near to one that the
/// logit scale would reach everywhere.
pub(crate) fn averaged_at(value: f64, se: f64, top: f64, z: f64) -> Interval {
    let near = value * (top - value) / top;
    if z * se <= FARTHEST * near {
        return bounded_at(value, se, top, z);
    }
    Interval { se: Some(se), low: (value - z * se).max(0.0), high: (value + z * se).min(top) }
}

/// How far an interval of an average may reach on the logit scale.
const FARTHEST: f64 = 3.0;

/// The interval of a value between 0 and `top` with this standard error: Wald for `logit(value/top)`, taken back. Where
/// the value is a bound itself: Wald, cut at the bounds.
/// A value on a bound stays there.
pub fn bounded(value: f64, se: f64, top: f64, confidence: f64) -> Interval {
    bounded_at(value, se, top, two_sided(confidence))
}

pub(crate) fn bounded_at(value: f64, se: f64, top: f64, z: f64) -> Interval {
    if value <= 0.0 || value >= top {
        // A bound has no logit: Wald, cut at the bounds.
        return Interval { se: Some(se), low: (value - z * se).max(0.0), high: (value + z * se).min(top) };
    }
    let reach = z * se * top / (value * (top - value));
    let at = |shift: f64| {
        // top · expit(logit(value/top) + shift), without forming the logit.
        let odds = value / (top - value) * libm::exp(shift);
        match odds {
            odds if odds.is_nan() => value,
            odds if odds.is_finite() => (top * odds / (1.0 + odds)).min(top),
            _ => top,
        }
    };
    Interval { se: Some(se), low: at(-reach).min(value), high: at(reach).max(value) }
}

/// The interval of a − b for a and b with intervals of their own and this correlation: MOVER, with x = a − a_low and
/// y = b_high − b the lower end is `a − b − √(x² + y² − 2ρxy)`, the upper its mirror image.
pub fn difference(a: f64, of_a: &Interval, b: f64, of_b: &Interval, correlation: f64) -> Interval {
    let d = a - b;
    // x² + y² − 2ρxy as two squares, so that round-off cannot make it negative.
    let apart = |x: f64, y: f64| libm::hypot(x - correlation * y, y * f64::sqrt(1.0 - correlation * correlation));
    // Arms that move against each other may reach as far as both ends together, not farther.
    Interval {
        se: of_a.se.zip(of_b.se).map(|(x, y)| apart(x, y)),
        low: (d - apart(a - of_a.low, of_b.high - b)).max(of_a.low - of_b.high).min(d),
        high: (d + apart(of_a.high - a, b - of_b.low)).min(of_a.high - of_b.low).max(d),
    }
}
