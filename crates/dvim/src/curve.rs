//! A patient's survival curves on [0, H], and everything that is read off them.
//!
//! In each arm `S(t) = p + (1 − p)(1 − F(t))`: p is the probability of being event-free at H, which the cure side
//! decides, and F the distribution of the event time before H, which the time side decides. F is held at the knots of
//! a [`Grid`] and is linear in between, so that its mean is exactly the mean event time m. Survival, its difference,
//! the effects at an earlier horizon, RMST and quantiles are functions of that one curve.
//!
//! **RMST splits into the two questions.** With `R = p H + (1 − p) m` in each arm
//!
//! `R₁ − R₀ = π (H − (m₁ + m₀)/2) + (1 − (p₁ + p₀)/2) Δ`,
//!
//! exactly: the first part is time that is gained because fewer have the event, the second because it comes later.
//!
//! **Variances** are by the delta method from the covariance of `(p₀, p₁, m₀, m₁)`. A larger mean moves F as a longer
//! scale of time would. To this comes what the shape of F varies while its mean stays: the noise of an empirical
//! distribution, given its mean.

use crate::arm::{Arm, ByArm};
use crate::cohort::Cohort;
use crate::interval::{self, Interval};

/// Cells of a grid. The widest is a twelfth of the horizon, so that straight lines between the knots are close to a
/// smooth curve.
pub const CELLS: usize = 24;
/// Knots between 0 and H.
const INNER: usize = CELLS - 1;

/// Times at which curves are held, from 0 to H.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    times: [f64; CELLS + 1],
    log_times: [f64; CELLS],
}

impl Grid {
    /// The grid of a cohort. It depends on nothing but the horizon: no outcome may move a patient's estimate, not even
    /// by moving a knot.
    pub fn of(cohort: &Cohort) -> Grid {
        Grid::new(cohort.horizon())
    }

    /// Knots at `H (k/24)²`, dense where most events are.
    pub fn new(horizon: f64) -> Grid {
        let times = std::array::from_fn(|k| horizon * (k as f64 / CELLS as f64).powi(2));
        Grid { times, log_times: std::array::from_fn(|k| libm::log(times[k + 1])) }
    }

    /// The knots, from 0 to H.
    pub fn times(&self) -> &[f64; CELLS + 1] {
        &self.times
    }

    /// Logarithms of the knots after 0.
    pub(crate) fn log_times(&self) -> &[f64; CELLS] {
        &self.log_times
    }

    /// H.
    pub fn horizon(&self) -> f64 {
        self.times[CELLS]
    }

    /// The cell of a time in [0, H], and how far the time is into it, from 0 to 1.
    pub(crate) fn place(&self, t: f64) -> (usize, f64) {
        let cell = self.times.partition_point(|knot| *knot <= t).clamp(1, CELLS) - 1;
        (cell, ((t - self.times[cell]) / self.width(cell)).clamp(0.0, 1.0))
    }

    pub(crate) fn width(&self, cell: usize) -> f64 {
        self.times[cell + 1] - self.times[cell]
    }

    /// The value at a time of what is linear between the knots.
    pub(crate) fn interpolate(&self, values: &[f64; CELLS + 1], t: f64) -> f64 {
        let (cell, into) = self.place(t);
        values[cell] + into * (values[cell + 1] - values[cell])
    }

    /// The integral from 0 to a time of what is linear between the knots.
    pub(crate) fn integrate(&self, values: &[f64; CELLS + 1], t: f64) -> f64 {
        dot(&self.area(t), values)
    }

    /// Weights of the values at the knots in the value at a time.
    fn at(&self, t: f64) -> [f64; CELLS + 1] {
        let (cell, into) = self.place(t);
        let mut out = [0.0; CELLS + 1];
        out[cell] = 1.0 - into;
        out[cell + 1] = into;
        out
    }

    /// Weights of the values at the knots in the integral from 0 to a time.
    fn area(&self, t: f64) -> [f64; CELLS + 1] {
        let (cell, into) = self.place(t);
        let mut out = [0.0; CELLS + 1];
        for k in 0..cell {
            out[k] += 0.5 * self.width(k);
            out[k + 1] += 0.5 * self.width(k);
        }
        let width = into * self.width(cell);
        out[cell] += width * (1.0 - 0.5 * into);
        out[cell + 1] += width * 0.5 * into;
        out
    }
}

fn dot(a: &[f64; CELLS + 1], b: &[f64; CELLS + 1]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The distribution F of the event time before H: its values at the inner knots of a grid.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shape(pub [f32; INNER]);

/// A curve that falls by more than this between two knots is not known in between.
pub(crate) const STEEP: f64 = 0.25;

/// Shares of events are kept so far from 0 and 1, so that they have odds.
const LEAST_SHARE: f64 = 1e-4;

/// The odds of a share.
pub(crate) fn odds(share: f64) -> f64 {
    let share = share.clamp(LEAST_SHARE, 1.0 - LEAST_SHARE);
    share / (1.0 - share)
}

impl Shape {
    /// Before anything was estimated.
    pub(crate) const NOTHING: Shape = Shape([0.0; INNER]);

    /// The distribution with this mean whose odds at every knot are the given ones times a common factor. The mean of
    /// such a distribution falls with the factor. One that no factor reaches is approached.
    pub(crate) fn with_mean(odds: &[f64; INNER], mean: f64, grid: &Grid) -> Shape {
        // Odds that fall from knot to knot are raised: a distribution does not.
        let mut odds = *odds;
        (1..INNER).for_each(|k| odds[k] = odds[k].max(odds[k - 1]));
        let half = |k: usize| 0.5 * (grid.times[k + 2] - grid.times[k]);
        let most = grid.horizon() - 0.5 * grid.width(CELLS - 1);
        // Newton on the logarithm of the factor, inside what is known to hold the answer.
        let (mut low, mut high, mut at): (f64, f64, f64) = (-60.0, 60.0, 0.0);
        for _ in 0..100 {
            let factor = libm::exp(at);
            let (mut found, mut slope) = (most, 0.0);
            for (k, o) in odds.iter().enumerate() {
                let share = factor * o / (1.0 + factor * o);
                found -= half(k) * share;
                slope -= half(k) * share * (1.0 - share);
            }
            let miss = found - mean;
            if miss.abs() <= 1e-12 * grid.horizon() {
                break;
            }
            if miss > 0.0 {
                low = at
            } else {
                high = at
            }
            let next = at - miss / slope;
            at = if next > low && next < high { next } else { 0.5 * (low + high) };
            if high - low < 1e-12 {
                break;
            }
        }
        let factor = libm::exp(at);
        Shape(std::array::from_fn(|k| (factor * odds[k] / (1.0 + factor * odds[k])) as f32))
    }

    /// F at every knot, from 0 to 1.
    pub fn shares(&self) -> [f64; CELLS + 1] {
        let mut out = [0.0; CELLS + 1];
        out[CELLS] = 1.0;
        out[1..CELLS].iter_mut().zip(&self.0).for_each(|(x, s)| *x = f64::from(*s));
        out
    }

    /// The mean of distributions, each with a weight.
    pub(crate) fn mean_odds<'a>(shapes: impl Iterator<Item = (&'a Shape, f64)> + Clone) -> [f64; INNER] {
        let total: f64 = shapes.clone().map(|(_, w)| w).sum();
        std::array::from_fn(|k| {
            odds(shapes.clone().map(|(s, w)| w * f64::from(s.0[k])).sum::<f64>() / total.max(f64::MIN_POSITIVE))
        })
    }
}

/// What curves come to at the horizon, in both arms: p and m, and how sure they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    /// H.
    pub horizon: f64,
    /// p in each arm.
    pub cured: ByArm<f64>,
    /// m in each arm.
    pub mean_event_time: ByArm<f64>,
    /// Covariance of `(p₀, p₁, m₀, m₁)`.
    pub covariance: [[f64; 4]; 4],
}

impl Ends {
    /// Σ a_i b_j C_ij.
    fn form(&self, a: &[f64; 4], b: &[f64; 4]) -> f64 {
        (0..4).map(|i| (0..4).map(|j| a[i] * b[j] * self.covariance[i][j]).sum::<f64>()).sum()
    }

    fn rmst_slopes(&self, arm: Arm) -> [f64; 4] {
        let mut out = [0.0; 4];
        out[arm.index()] = self.horizon - self.mean_event_time[arm];
        out[2 + arm.index()] = 1.0 - self.cured[arm];
        out
    }

    /// RMST in an arm.
    pub fn rmst(&self, arm: Arm, quantile: f64) -> Estimate {
        let value = self.cured[arm] * self.horizon + (1.0 - self.cured[arm]) * self.mean_event_time[arm];
        let slopes = self.rmst_slopes(arm);
        let se = self.form(&slopes, &slopes).max(0.0).sqrt();
        (value, interval::bounded_at(value, se, self.horizon, quantile))
    }

    /// The difference in RMST and its two parts.
    pub fn rmst_split(&self, quantile: f64) -> RmstSplit<Estimate> {
        let of = ByArm::of(|arm| self.rmst(arm, quantile));
        let between = self.form(&self.rmst_slopes(Arm::Control), &self.rmst_slopes(Arm::Treated));
        let parts = split_rmst(self.cured, self.mean_event_time, self.horizon);
        // Δ(1 − p̄) where both factors are near 0: its slopes vanish, the product of the two variances does not.
        let (delta, cured) = ([0.0, 0.0, -1.0, 1.0], [0.5, 0.5, 0.0, 0.0]);
        let of_product = self.form(&delta, &delta) * self.form(&cured, &cured);
        let wald = |(value, slopes): (f64, [f64; 4]), least: f64| {
            let se = self.form(&slopes, &slopes).max(least).sqrt();
            let end = |by: f64| (value + by * quantile * se).clamp(-self.horizon, self.horizon);
            (value, Interval { se: Some(se), low: end(-1.0), high: end(1.0) })
        };
        RmstSplit {
            effect: difference(&of, between),
            from_cure: wald(parts.from_cure, 0.0),
            from_time: wald(parts.from_time, of_product.max(0.0)),
        }
    }
}

/// The difference of two arms with this covariance.
fn difference(of: &ByArm<Estimate>, covariance: f64) -> Estimate {
    let ((c, of_c), (t, of_t)) = (&of.control, &of.treated);
    let rho = covariance / (of_c.se.unwrap_or(0.0) * of_t.se.unwrap_or(0.0));
    let rho = if rho.is_finite() { rho.clamp(-1.0, 1.0) } else { 0.0 };
    (t - c, interval::difference(*t, of_t, *c, of_c, rho))
}

/// A patient's curve in one arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve<'g> {
    grid: &'g Grid,
    /// p.
    pub cured: f64,
    /// m.
    pub mean_event_time: f64,
    /// F at the knots.
    shares: [f64; CELLS + 1],
}

impl<'g> Curve<'g> {
    /// The curve of these values.
    pub fn new(grid: &'g Grid, cured: f64, mean_event_time: f64, shape: &Shape) -> Curve<'g> {
        Curve { grid, cured, mean_event_time, shares: shape.shares() }
    }

    /// F(t).
    pub fn event_share(&self, t: f64) -> f64 {
        self.grid.interpolate(&self.shares, t)
    }

    /// S(t), for t up to H; at H the probability of being event-free there.
    pub fn survival(&self, t: f64) -> f64 {
        self.cured + (1.0 - self.cured) * (1.0 - self.event_share(t))
    }

    /// E[T | T < h]; `None` where no event comes before h.
    pub fn mean_before(&self, h: f64) -> Option<f64> {
        if h >= self.grid.horizon() {
            return Some(self.mean_event_time);
        }
        let share = self.event_share(h);
        (share > 1e-9).then(|| h - dot(&self.grid.area(h), &self.shares) / share)
    }

    /// The first time at which S is at most `1 − p`; `None` where it stays above.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        self.falls_to(1.0 - p)
    }

    fn falls_to(&self, level: f64) -> Option<f64> {
        let share = (1.0 - level) / (1.0 - self.cured);
        first_reach(self.grid, &self.shares, share)
    }

    /// What F(t_k) changes with m: as if time had another scale, with what then lies beyond H left out. Where the mean
    /// hardly moves with the scale, because events crowd towards H, odds are multiplied instead.
    fn drift(&self) -> [f64; CELLS + 1] {
        let (grid, f) = (self.grid, &self.shares);
        let slope = |cell: usize| (f[cell + 1] - f[cell]) / grid.width(cell);
        let last = grid.horizon() * slope(CELLS - 1);
        let area = grid.area(grid.horizon());
        let mut out = [0.0; CELLS + 1];
        for k in 1..CELLS {
            out[k] = f[k] * last - grid.times[k] * 0.5 * (slope(k - 1) + slope(k));
        }
        let mut moved = -dot(&area, &out);
        if moved < 0.1 * self.mean_event_time {
            (1..CELLS).for_each(|k| out[k] = -f[k] * (1.0 - f[k]));
            moved = -dot(&area, &out);
        }
        out.map(|x| x / moved.max(1e-12 * grid.horizon()))
    }

    /// Variance of `Σ c_k F(t_k)` for an empirical distribution of one event, given its mean.
    fn shape_variance(&self, c: &[f64; CELLS + 1]) -> f64 {
        let (grid, f) = (self.grid, &self.shares);
        // Moments of T under F, which is uniform in each cell.
        let mut square = 0.0;
        for k in 0..CELLS {
            let (a, b) = (grid.times[k], grid.times[k + 1]);
            square += (f[k + 1] - f[k]) * (a * a + a * b + b * b) / 3.0;
        }
        let mean = grid.horizon() - dot(&grid.area(grid.horizon()), f);
        let variance = (square - mean * mean).max(1e-12 * grid.horizon() * grid.horizon());
        let (mut plain, mut with_mean, mut below) = (0.0, 0.0, 0.0);
        let mut sum = 0.0;
        for k in 1..CELLS {
            below += (f[k] - f[k - 1]) * 0.5 * (grid.times[k - 1] + grid.times[k]);
            with_mean += c[k] * (below - f[k] * mean);
            // F_min(j,k) − F_j F_k.
            plain += c[k] * (c[k] * f[k] * (1.0 - f[k]) + 2.0 * sum * (1.0 - f[k]));
            sum += c[k] * f[k];
        }
        (plain - with_mean * with_mean / variance).max(0.0)
    }
}

/// The first time at which values that rise between the knots reach a level.
fn first_reach(grid: &Grid, values: &[f64; CELLS + 1], level: f64) -> Option<f64> {
    if !level.is_finite() || level > values[CELLS] {
        return None;
    }
    let cell = (0..CELLS).find(|&k| values[k + 1] >= level)?;
    let (from, to) = (values[cell], values[cell + 1]);
    let into = if to > from { ((level - from) / (to - from)).clamp(0.0, 1.0) } else { 0.0 };
    Some(grid.times[cell] + into * grid.width(cell))
}

/// A functional of one arm's curve: its value, and how it changes with p, with m and with F at the knots.
struct Reading {
    value: f64,
    by_cure: f64,
    by_mean: f64,
    by_share: [f64; CELLS + 1],
}

/// The difference in RMST, and the two parts that it is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmstSplit<T> {
    /// R₁ − R₀.
    pub effect: T,
    /// What comes from *whether*: π (H − (m₁ + m₀)/2).
    pub from_cure: T,
    /// What comes from *when*: (1 − (p₁ + p₀)/2) Δ.
    pub from_time: T,
}

/// A value with its interval.
pub type Estimate = (f64, Interval);

/// A patient's curves in both arms, with their uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curves<'g> {
    /// The curves.
    pub of: ByArm<Curve<'g>>,
    /// What they come to at H.
    pub ends: Ends,
    /// What F changes with m in each arm.
    drift: ByArm<[f64; CELLS + 1]>,
    /// In each arm, the variance of the shape of F in terms of one event.
    shape_variance: ByArm<f64>,
}

impl<'g> Curves<'g> {
    /// From what they come to at H and the distribution of the event times before it. `shape_variance` is what that
    /// varies beyond its mean in each arm, in terms of one event: w²/events of the group.
    pub fn new(grid: &'g Grid, ends: Ends, shape: &ByArm<Shape>, shape_variance: ByArm<f64>) -> Curves<'g> {
        let of = |z: Arm| Curve::new(grid, ends.cured[z], ends.mean_event_time[z], &shape[z]);
        let of = ByArm::of(of);
        Curves { of, ends, drift: of.each_ref().map(Curve::drift), shape_variance }
    }

    fn grid(&self) -> &'g Grid {
        self.of.control.grid
    }

    /// Covariance of two functionals, each of one arm.
    fn covariance(&self, (a, of_a): (Arm, &Reading), (b, of_b): (Arm, &Reading)) -> f64 {
        let slopes = |arm: Arm, of: &Reading| {
            let mut out = [0.0; 4];
            (out[arm.index()], out[2 + arm.index()]) = (of.by_cure, of.by_mean);
            out
        };
        let ends = self.ends.form(&slopes(a, of_a), &slopes(b, of_b));
        if a != b {
            return ends;
        }
        ends + self.shape_variance[a] * self.of[a].shape_variance(&of_a.by_share)
    }

    fn interval(&self, arm: Arm, reading: &Reading, top: f64, quantile: f64) -> Interval {
        let se = self.covariance((arm, reading), (arm, reading)).max(0.0).sqrt();
        interval::bounded_at(reading.value, se, top, quantile)
    }

    /// The difference of a functional between the arms.
    fn difference(&self, of: &ByArm<Reading>, top: f64, quantile: f64) -> Estimate {
        let each = ByArm::of(|arm| (of[arm].value, self.interval(arm, &of[arm], top, quantile)));
        difference(&each, self.covariance((Arm::Control, &of.control), (Arm::Treated, &of.treated)))
    }

    fn read_survival(&self, arm: Arm, t: f64) -> Reading {
        let curve = &self.of[arm];
        let at = self.grid().at(t);
        let left = 1.0 - curve.cured;
        Reading {
            value: curve.survival(t),
            by_cure: curve.event_share(t),
            by_mean: -left * dot(&at, &self.drift[arm]),
            by_share: at.map(|x| -left * x),
        }
    }

    fn read_mean_before(&self, arm: Arm, h: f64) -> Option<Reading> {
        let curve = &self.of[arm];
        let value = curve.mean_before(h)?;
        if h >= self.grid().horizon() {
            return Some(Reading { value, by_cure: 0.0, by_mean: 1.0, by_share: [0.0; CELLS + 1] });
        }
        // m(h) = h − A/F with A the area under F up to h.
        let (area, at, share) = (self.grid().area(h), self.grid().at(h), curve.event_share(h));
        let under = dot(&area, &curve.shares) / (share * share);
        let by_share: [f64; CELLS + 1] = std::array::from_fn(|k| under * at[k] - area[k] / share);
        Some(Reading { value, by_cure: 0.0, by_mean: dot(&by_share, &self.drift[arm]), by_share })
    }

    /// S(t) in an arm.
    pub fn survival(&self, arm: Arm, t: f64, quantile: f64) -> Estimate {
        let reading = self.read_survival(arm, t);
        (reading.value, self.interval(arm, &reading, 1.0, quantile))
    }

    /// S₁(t) − S₀(t): the cure effect, had t been the horizon.
    pub fn survival_difference(&self, t: f64, quantile: f64) -> Estimate {
        self.difference(&ByArm::of(|arm| self.read_survival(arm, t)), 1.0, quantile)
    }

    /// E[T | T < h] in an arm; `None` where no event comes before h.
    pub fn mean_before(&self, arm: Arm, h: f64, quantile: f64) -> Option<Estimate> {
        let reading = self.read_mean_before(arm, h)?;
        Some((reading.value, self.interval(arm, &reading, h, quantile)))
    }

    /// The time effect, had h been the horizon.
    pub fn mean_difference(&self, h: f64, quantile: f64) -> Option<Estimate> {
        let of = ByArm {
            control: self.read_mean_before(Arm::Control, h)?,
            treated: self.read_mean_before(Arm::Treated, h)?,
        };
        Some(self.difference(&of, h, quantile))
    }

    /// What the curves come to at an earlier horizon: the same effects, had h been chosen. `None` where an arm has no
    /// event before h.
    pub fn until(&self, h: f64) -> Option<Ends> {
        if h >= self.grid().horizon() {
            return Some(self.ends);
        }
        let share = ByArm::of(|z| self.read_survival(z, h));
        let mean = ByArm {
            control: self.read_mean_before(Arm::Control, h)?,
            treated: self.read_mean_before(Arm::Treated, h)?,
        };
        let all = [
            (Arm::Control, &share.control),
            (Arm::Treated, &share.treated),
            (Arm::Control, &mean.control),
            (Arm::Treated, &mean.treated),
        ];
        // Two functionals of one arm share its shape: Cov(a, b) = {Var(a + b) − Var(a) − Var(b)}/2.
        let between = |(a, of_a): (Arm, &Reading), (b, of_b): (Arm, &Reading)| {
            let sum = Reading {
                value: 0.0,
                by_cure: of_a.by_cure + of_b.by_cure,
                by_mean: of_a.by_mean + of_b.by_mean,
                by_share: std::array::from_fn(|k| of_a.by_share[k] + of_b.by_share[k]),
            };
            if a != b {
                return self.covariance((a, of_a), (b, of_b));
            }
            let variance = |of: &Reading| self.covariance((a, of), (a, of));
            0.5 * (variance(&sum) - variance(of_a) - variance(of_b))
        };
        Some(Ends {
            horizon: h,
            cured: share.each_ref().map(|r| r.value),
            mean_event_time: mean.each_ref().map(|r| r.value),
            covariance: std::array::from_fn(|i| std::array::from_fn(|j| between(all[i], all[j]))),
        })
    }

    /// The median in an arm, its standard error, and the times at which the limits of S reach a half
    /// [Brookmeyer & Crowley 1982]; an end that is not reached by H is `None`.
    /// Its standard error is `None` where the curve is so flat that it would be beyond H.
    pub fn median(&self, arm: Arm, quantile: f64) -> Option<(f64, Option<f64>, [Option<f64>; 2])> {
        let (curve, grid) = (&self.of[arm], self.grid());
        let value = curve.quantile(0.5)?;
        let at = self.survival(arm, value, quantile).1;
        let (cell, _) = grid.place(value);
        let density = (1.0 - curve.cured) * (curve.shares[cell + 1] - curve.shares[cell]) / grid.width(cell);
        // From the median outwards: limits are linear between the knots.
        let limit = |k: usize, low: bool| {
            let i = self.survival(arm, grid.times[k], quantile).1;
            if low { i.low } else { i.high }
        };
        let crossing = |k: usize, before: f64, after: f64| {
            let into = if before > after { ((before - 0.5) / (before - after)).clamp(0.0, 1.0) } else { 0.0 };
            grid.times[k] + into * grid.width(k)
        };
        let (mut k, mut after) = (cell + 1, limit(cell + 1, true));
        let low = loop {
            let before = if k == 1 { 1.0 } else { limit(k - 1, true) };
            if before > 0.5 || k == 1 {
                break crossing(k - 1, before, after);
            }
            (k, after) = (k - 1, before);
        };
        let (mut k, mut before) = (cell, if cell == 0 { 1.0 } else { limit(cell, false) });
        let high = loop {
            if k == CELLS {
                break None;
            }
            let after = limit(k + 1, false);
            if after <= 0.5 {
                break Some(crossing(k, before, after));
            }
            (k, before) = (k + 1, after);
        };
        // Where the curve falls steeply between two knots, its course there is not known.
        let steep = (1.0 - curve.cured) * (curve.shares[cell + 1] - curve.shares[cell]) > STEEP;
        let (from, to) = if steep { (grid.times[cell], grid.times[cell + 1]) } else { (value, value) };
        let ends = [Some(low.min(value).min(from)), high.map(|t| t.max(value).max(to))];
        let se = at.se.map(|se| se / density.max(1e-12 / grid.horizon())).filter(|se| *se <= grid.horizon());
        Some((value, se, ends))
    }
}

/// The two parts of the difference in RMST, each with its slopes in `(p₀, p₁, m₀, m₁)`.
pub fn split_rmst(cured: ByArm<f64>, mean: ByArm<f64>, horizon: f64) -> RmstSplit<(f64, [f64; 4])> {
    let (pi, delta) = (cured.treated - cured.control, mean.treated - mean.control);
    let left = horizon - 0.5 * (mean.treated + mean.control);
    let uncured = 1.0 - 0.5 * (cured.treated + cured.control);
    let from_cure = (pi * left, [-left, left, -0.5 * pi, -0.5 * pi]);
    let from_time = (uncured * delta, [-0.5 * delta, -0.5 * delta, -uncured, uncured]);
    let sum = std::array::from_fn(|k| from_cure.1[k] + from_time.1[k]);
    RmstSplit { effect: (from_cure.0 + from_time.0, sum), from_cure, from_time }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, by: f64) {
        assert!((a - b).abs() <= by, "{a} {b}");
    }

    fn even() -> Grid {
        Grid::new(800.0)
    }

    /// Events spread evenly over [0, 800]: F(t) = t/800, m = 400.
    #[test]
    fn a_curve_by_hand() {
        let grid = even();
        let odds = std::array::from_fn(|k| odds(grid.times[k + 1] / 800.0));
        let shape = Shape::with_mean(&odds, 400.0, &grid);
        let curve = Curve::new(&grid, 0.2, 400.0, &shape);
        close(curve.survival(0.0), 1.0, 1e-6);
        close(curve.survival(400.0), 0.2 + 0.8 * 0.5, 1e-3);
        close(curve.survival(800.0), 0.2, 1e-12);
        close(dot(&grid.area(800.0), &std::array::from_fn(|k| curve.survival(grid.times[k]))), 480.0, 1e-3);
        let same = ByArm { control: 0.2, treated: 0.2 };
        let ends =
            Ends { horizon: 800.0, cured: same, mean_event_time: same.map(|_| 400.0), covariance: [[0.0; 4]; 4] };
        close(ends.rmst(Arm::Control, 2.0).0, 480.0, 1e-9);
        // Events before 400 come at 200 on average; half are left at S = 0.5: F = 0.625.
        close(curve.mean_before(400.0).expect("events"), 200.0, 0.5);
        close(curve.quantile(0.5).expect("a median"), 500.0, 0.5);
        assert_eq!(Curve::new(&grid, 0.51, 400.0, &shape).quantile(0.5), None);
    }

    #[test]
    fn a_shape_has_the_mean_that_was_asked_for() {
        let grid = Grid::new(800.0);
        for mean in [40.0, 120.0, 300.0, 500.0, 650.0] {
            for start in [0.01, 1.0, 30.0] {
                let odds = std::array::from_fn(|k| start * (k as f64 + 1.0));
                let shares = Shape::with_mean(&odds, mean, &grid).shares();
                close(800.0 - dot(&grid.area(800.0), &shares), mean, 1e-3);
                assert!(shares.windows(2).all(|w| w[0] <= w[1]));
            }
        }
    }

    /// p = (.3, .5), m = (200, 300), H = 800: R = 380 and 550; π (H − 250) = 110, (1 − .4) Δ = 60.
    #[test]
    fn rmst_splits_exactly() {
        let split = split_rmst(ByArm { control: 0.3, treated: 0.5 }, ByArm { control: 200.0, treated: 300.0 }, 800.0);
        close(split.effect.0, 170.0, 1e-9);
        close(split.from_cure.0, 110.0, 1e-9);
        close(split.from_time.0, 60.0, 1e-9);
    }

    /// Slopes of every functional against finite differences of the curve itself.
    #[test]
    fn slopes_are_those_of_the_curve() {
        let grid = even();
        let odds: [f64; INNER] = std::array::from_fn(|k| odds((grid.times[k + 1] / 800.0).sqrt()));
        let of = |cured: f64, mean: f64| Curve::new(&grid, cured, mean, &Shape::with_mean(&odds, mean, &grid));
        let ends = Ends {
            horizon: 800.0,
            cured: ByArm::of(|_| 0.3),
            mean_event_time: ByArm::of(|_| 260.0),
            covariance: [[0.0; 4]; 4],
        };
        let shape = Shape::with_mean(&odds, 260.0, &grid);
        let curves = Curves::new(&grid, ends, &ByArm::of(|_| shape), ByArm::default());
        assert_eq!(ends.rmst_slopes(Arm::Treated), [0.0, 540.0, 0.0, 0.7]);
        let at = |c: Curve<'_>| c.survival(300.0);
        let reading = curves.read_survival(Arm::Control, 300.0);
        close(reading.by_cure, (at(of(0.301, 260.0)) - at(of(0.299, 260.0))) / 0.002, 1e-5);
        // A longer scale and a common factor of the odds are two ways to a larger mean: of one size, not equal.
        let tilted = (at(of(0.3, 262.0)) - at(of(0.3, 258.0))) / 4.0;
        assert!(reading.by_mean > 0.5 * tilted && reading.by_mean < 2.0 * tilted, "{} {tilted}", reading.by_mean);
        // The mean of the events before 400 moves with F as its definition says.
        let reading = curves.read_mean_before(Arm::Control, 400.0).expect("events");
        let mut moved = curves;
        moved.of.control.shares[5] += 1e-5;
        let after = moved.of.control.mean_before(400.0).expect("events");
        close(reading.by_share[5], (after - reading.value) / 1e-5, 1e-2);
    }

    /// At an earlier horizon the ends are the survival and the mean before it, with their own variances.
    #[test]
    fn ends_at_an_earlier_horizon() {
        let grid = even();
        let odds: [f64; INNER] = std::array::from_fn(|k| odds((grid.times[k + 1] / 800.0).sqrt()));
        let mut covariance = [[0.0; 4]; 4];
        [4e-4, 5e-4, 90.0, 120.0].into_iter().enumerate().for_each(|(i, v)| covariance[i][i] = v);
        (covariance[0][1], covariance[1][0]) = (1e-4, 1e-4);
        let mean_event_time = ByArm { control: 260.0, treated: 300.0 };
        let ends = Ends { horizon: 800.0, cured: ByArm { control: 0.3, treated: 0.4 }, mean_event_time, covariance };
        let shape = mean_event_time.map(|m| Shape::with_mean(&odds, m, &grid));
        let curves = Curves::new(&grid, ends, &shape, ByArm { control: 0.01, treated: 0.02 });
        assert_eq!(curves.until(800.0), Some(ends));
        let at = curves.until(300.0).expect("events");
        for z in Arm::BOTH {
            let (s, i) = curves.survival(z, 300.0, 2.0);
            close(at.cured[z], s, 1e-12);
            close(at.covariance[z.index()][z.index()].sqrt(), i.se.expect("a standard error"), 1e-12);
            let (m, i) = curves.mean_before(z, 300.0, 2.0).expect("events");
            close(at.mean_event_time[z], m, 1e-12);
            close(at.covariance[2 + z.index()][2 + z.index()].sqrt(), i.se.expect("a standard error"), 1e-9);
        }
        // RMST to h is the area under the curve.
        let area = dot(&grid.area(300.0), &std::array::from_fn(|k| curves.of.treated.survival(grid.times[k])));
        close(at.rmst(Arm::Treated, 2.0).0, area, 1e-9);
        let symmetric = (0..4).all(|i| (0..4).all(|j| (at.covariance[i][j] - at.covariance[j][i]).abs() < 1e-9));
        assert!(symmetric);
    }

    /// One of ten events before t given the mean: an even distribution has Var F = ¼ and Cov² / Var T = ¾ of it at its
    /// middle.
    #[test]
    fn noise_of_the_shape_given_the_mean() {
        let grid = even();
        let odds = std::array::from_fn(|k| odds(grid.times[k + 1] / 800.0));
        let curve = Curve::new(&grid, 0.0, 400.0, &Shape::with_mean(&odds, 400.0, &grid));
        close(curve.shape_variance(&grid.at(400.0)), 0.25 * 0.25, 2e-3);
        // All but what lies inside a cell.
        close(curve.shape_variance(&grid.area(800.0)), 0.0, 0.01 * 800.0 * 800.0 / 12.0);
    }
}
