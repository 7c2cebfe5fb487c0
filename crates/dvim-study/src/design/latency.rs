//! Event times on (0, H): a shape in equal steps, tilted until it has the mean that is wanted.
//!
//! The density is even within each of [`STEPS`] equal steps. A shape with shares wⱼ is tilted to `wⱼ rʲ / Σ wₖ rᵏ`, the
//! exponential family through it, and the r of a mean is unique. From the even shape this is, in steps, the density
//! `∝ exp(−λt)`.

/// Equal steps from 0 to H.
pub const STEPS: usize = 48;
/// Most that one step counts beside the next.
const STEEPEST: f64 = 3.0;
/// Means that are tabulated.
const TABLE: usize = 4_096;

/// Shares of the events in the steps; they sum to one.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape(pub Vec<f64>);

/// All tilts of one shape.
#[derive(Clone, Debug)]
pub struct Family {
    shape: [f64; STEPS],
    horizon: f64,
    /// log r at equally spaced means from `least` to `most`, shares of H.
    log_r: Vec<f64>,
    least: f64,
    most: f64,
}

/// Event times with one mean: the share of events before the end of each step.
#[derive(Clone, Debug)]
pub struct Times {
    /// 0, then the share before the end of each step.
    pub before: [f64; STEPS + 1],
    horizon: f64,
}

impl Family {
    /// The tilts of a shape; of the even one where there is none.
    pub fn new(shape: Option<&[f64]>, horizon: f64) -> Family {
        let mut own = [1.0 / STEPS as f64; STEPS];
        if let Some(shape) = shape {
            own.iter_mut().zip(shape).for_each(|(o, s)| *o = *s);
        }
        let mean = |log_r: f64| {
            let parts = tilted(&own, log_r);
            parts.iter().enumerate().map(|(k, p)| p * (k as f64 + 0.5)).sum::<f64>() / STEPS as f64
        };
        let (least, most) = (mean(-STEEPEST), mean(STEEPEST));
        let of = |i: usize| {
            let wanted = least + (most - least) * i as f64 / (TABLE - 1) as f64;
            let (mut low, mut high) = (-STEEPEST, STEEPEST);
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                if mean(middle) < wanted { low = middle } else { high = middle }
            }
            0.5 * (low + high)
        };
        Family { shape: own, horizon, log_r: (0..TABLE).map(of).collect(), least, most }
    }

    /// The smallest and the largest mean that a tilt has.
    pub fn range(&self) -> [f64; 2] {
        [self.least * self.horizon, self.most * self.horizon]
    }

    /// The event times with a mean; the nearest that there is.
    pub fn with_mean(&self, mean: f64) -> Times {
        let at = ((mean / self.horizon - self.least) / (self.most - self.least)).clamp(0.0, 1.0) * (TABLE - 1) as f64;
        let k = (at as usize).min(TABLE - 2);
        let log_r = self.log_r[k] + (at - k as f64) * (self.log_r[k + 1] - self.log_r[k]);
        let mut before = [0.0; STEPS + 1];
        for (k, part) in tilted(&self.shape, log_r).into_iter().enumerate() {
            before[k + 1] = before[k] + part;
        }
        before[STEPS] = 1.0;
        Times { before, horizon: self.horizon }
    }
}

fn tilted(shape: &[f64; STEPS], log_r: f64) -> [f64; STEPS] {
    // From the heavy end down, so that no power overflows.
    let r = libm::exp(-log_r.abs());
    let (mut out, mut power, mut sum) = ([0.0; STEPS], 1.0, 0.0);
    for i in 0..STEPS {
        let k = if log_r > 0.0 { STEPS - 1 - i } else { i };
        out[k] = shape[k] * power;
        sum += out[k];
        power *= r;
    }
    out.map(|v| v / sum)
}

impl Times {
    /// The share of events before a time.
    pub fn share(&self, t: f64) -> f64 {
        let at = (t / self.horizon).clamp(0.0, 1.0) * STEPS as f64;
        let k = (at as usize).min(STEPS - 1);
        self.before[k] + (at - k as f64) * (self.before[k + 1] - self.before[k])
    }

    /// The time before which a share of the events comes.
    pub fn quantile(&self, u: f64) -> f64 {
        let k = self.before.partition_point(|b| *b <= u).clamp(1, STEPS);
        let (a, b) = (self.before[k - 1], self.before[k]);
        let within = if b > a { (u - a) / (b - a) } else { 0.5 };
        let t = (k as f64 - 1.0 + within) / STEPS as f64 * self.horizon;
        t.clamp(1e-9 * self.horizon, self.horizon.next_down())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilt_has_its_mean_and_its_quantiles_undo_its_shares() {
        let falling: Vec<f64> = (0..STEPS).map(|k| (STEPS - k) as f64 / (STEPS * (STEPS + 1) / 2) as f64).collect();
        for family in [Family::new(None, 5.0), Family::new(Some(&falling), 5.0)] {
            for mean in [0.2, 1.0, 2.5, 4.0] {
                let times = family.with_mean(mean);
                let found: f64 =
                    times.before.windows(2).enumerate().map(|(k, w)| (w[1] - w[0]) * (k as f64 + 0.5)).sum();
                assert!((found * 5.0 / STEPS as f64 - mean).abs() < 1e-5, "{mean}");
                for u in [0.1, 0.5, 0.99] {
                    assert!((times.share(times.quantile(u)) - u).abs() < 1e-9);
                }
            }
        }
    }
}
