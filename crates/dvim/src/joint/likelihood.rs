//! The log-likelihood of both arms and its derivatives, for designs that share columns between the parts.
//!
//! Columns of a design stand as `[cure only | both | time only]`, so that the columns of either part are contiguous and
//! `X'WX` is one matrix product of two views. Single thread; chunks of fixed length, so that the bits depend on the
//! data only.

use super::family::Family;
use super::matrix::{dot, product};
use crate::cure::{
    GeneralisedGamma, Latency, LogLogistic, LogNormalLatency, LogScale, Seen, UnitTerms, Weibull, event_terms,
    unit_terms_of,
};
use crate::estimand::ByEstimand;
use crate::numeric::Logistic;

/// Units of a chunk: its design and weights stay in the second-level cache.
const CHUNK: usize = 256;

/// Which columns of a design belong to which part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Widths {
    /// Columns of the whole design.
    pub(super) all: usize,
    /// The first so many are the cure part's.
    pub(super) cure: usize,
    /// The last so many are the time part's.
    pub(super) time: usize,
}

impl Widths {
    /// Parameters of an arm: cure, time, `ln σ`.
    pub(super) fn parameters(self) -> usize {
        self.cure + self.time + 1
    }
}

/// The outcomes of one arm's units, in the order events, censored, horizon.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcomes {
    /// Rows of the caller's data.
    pub(super) rows: Vec<usize>,
    /// Log times.
    pub(super) u: Vec<f64>,
    pub(super) n_events: usize,
    pub(super) n_censored: usize,
    /// How much each counts; empty where each counts once.
    pub(super) weights: Vec<f64>,
    /// The cluster of each, where scores are summed by cluster.
    pub(super) clusters: Vec<u32>,
}

impl Outcomes {
    /// The terms of a row as it counts.
    #[inline(always)]
    fn weighed(&self, row: usize, terms: UnitTerms) -> UnitTerms {
        match self.weights.get(row) {
            Some(&w) => terms.times(w),
            None => terms,
        }
    }

    pub(super) fn seen(&self, i: usize) -> Seen {
        if i < self.n_events {
            Seen::Event
        } else if i < self.n_events + self.n_censored {
            Seen::Censored
        } else {
            Seen::Horizon
        }
    }

    /// Chunks of one kind each.
    pub(super) fn chunks(&self) -> Vec<(Seen, usize, usize)> {
        let mut chunks = Vec::new();
        let ends = [self.n_events, self.n_events + self.n_censored, self.u.len()];
        let mut start = 0;
        for (kind, end) in [Seen::Event, Seen::Censored, Seen::Horizon].into_iter().zip(ends) {
            while start < end {
                let stop = (start + CHUNK).min(end);
                chunks.push((kind, start, stop));
                start = stop;
            }
        }
        chunks
    }
}

/// Value, gradient and information (negative Hessian, row-major) of an arm's log-likelihood in `(cure, time, ln σ)`.
#[derive(Clone, Debug)]
pub(super) struct Evaluation {
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
    pub(super) information: Vec<f64>,
}

/// Log-likelihood of one arm at `theta`; `design` is row-major in the order of the outcomes.
pub(super) fn evaluate(
    family: Family,
    u_horizon: f64,
    outcomes: &Outcomes,
    design: &[f64],
    widths: Widths,
    theta: &[f64],
) -> Evaluation {
    match family {
        Family::LogNormal => sum(&LogNormalLatency { u_horizon }, outcomes, design, widths, theta),
        Family::Weibull => sum(&Weibull { u_horizon }, outcomes, design, widths, theta),
        Family::LogLogistic => sum(&LogLogistic { u_horizon }, outcomes, design, widths, theta),
        Family::GeneralisedGamma(0) => sum(&LogNormalLatency { u_horizon }, outcomes, design, widths, theta),
        Family::GeneralisedGamma(q) => {
            sum(&GeneralisedGamma::new(u_horizon, f64::from(q) / 100.0), outcomes, design, widths, theta)
        }
    }
}

fn sum<L: Latency>(latency: &L, outcomes: &Outcomes, design: &[f64], widths: Widths, theta: &[f64]) -> Evaluation {
    let Widths { all, cure, time } = widths;
    let shift = all - time;
    let (b, l, scale) = (&theta[..cure], &theta[cure..cure + time], LogScale::from(theta[cure + time]));
    // X_c' [g_a, w_aa X_c, w_at, w_am X_t] and X_t' [g_m, w_mt, w_mm X_t]: every sum over units is in these two
    // products.
    let (wide, narrow) = (cure + time + 2, time + 2);
    let mut cure_sums = vec![0.0; cure * wide];
    let mut time_sums = vec![0.0; time * narrow];
    let mut cure_rows = vec![0.0; CHUNK * wide];
    let mut time_rows = vec![0.0; CHUNK * narrow];
    let (mut value, mut g_t, mut h_tt) = (0.0, 0.0, 0.0);
    let (mut logits, mut cured) = (Vec::with_capacity(CHUNK), Vec::with_capacity(CHUNK));
    let (mut locations, mut densities) = (Vec::with_capacity(CHUNK), Vec::with_capacity(CHUNK));
    for (seen, start, end) in outcomes.chunks() {
        let rows = &design[start * all..end * all];
        logits.clear();
        logits.extend(rows.chunks_exact(all).map(|z| dot(&z[..cure], b)));
        Logistic::at_each(&logits, &mut cured);
        let u = &outcomes.u[start..end];
        locations.clear();
        if seen != Seen::Horizon {
            locations.extend(rows.chunks_exact(all).map(|z| dot(&z[shift..], l)));
        }
        if seen == Seen::Event {
            latency.log_densities(u, &locations, scale, &mut densities);
        }
        for (i, (z, &cured)) in rows.chunks_exact(all).zip(&cured).enumerate() {
            let (x_c, x_t) = (&z[..cure], &z[shift..]);
            let unit = match seen {
                Seen::Event => event_terms(&cured, densities[i]),
                Seen::Censored => unit_terms_of(latency, seen, u[i], cured, locations[i], scale, 0.0),
                Seen::Horizon => unit_terms_of(latency, seen, u[i], cured, 0.0, scale, 0.0),
            };
            let unit = outcomes.weighed(start + i, unit);
            value += unit.value;
            let row = &mut cure_rows[i * wide..(i + 1) * wide];
            row[0] = unit.a;
            times(&mut row[1..1 + cure], unit.aa, x_c);
            if seen == Seen::Horizon {
                continue;
            }
            g_t += unit.t;
            h_tt += unit.tt;
            if seen == Seen::Censored {
                row[1 + cure] = unit.at;
                times(&mut row[2 + cure..], unit.am, x_t);
            }
            let row = &mut time_rows[i * narrow..(i + 1) * narrow];
            row[0] = unit.m;
            row[1] = unit.mt;
            times(&mut row[2..], unit.mm, x_t);
        }
        let n = end - start;
        let used = if seen == Seen::Censored { wide } else { 1 + cure };
        product((cure, n, used), 1.0, rows, (1, all), &cure_rows, (wide, 1), &mut cure_sums, wide);
        if seen != Seen::Horizon {
            product((time, n, narrow), 1.0, &rows[shift..], (1, all), &time_rows, (narrow, 1), &mut time_sums, narrow);
        }
    }
    let size = widths.parameters();
    let mut gradient = vec![0.0; size];
    let mut information = vec![0.0; size * size];
    for i in 0..cure {
        let row = &cure_sums[i * wide..(i + 1) * wide];
        gradient[i] = row[0];
        for j in 0..cure {
            information[i * size + j] = -row[1 + j];
        }
        for j in 0..time {
            information[i * size + cure + j] = -row[2 + cure + j];
            information[(cure + j) * size + i] = -row[2 + cure + j];
        }
        information[i * size + size - 1] = -row[1 + cure];
        information[(size - 1) * size + i] = -row[1 + cure];
    }
    for i in 0..time {
        let row = &time_sums[i * narrow..(i + 1) * narrow];
        gradient[cure + i] = row[0];
        for j in 0..time {
            information[(cure + i) * size + cure + j] = -row[2 + j];
        }
        information[(cure + i) * size + size - 1] = -row[1];
        information[(size - 1) * size + cure + i] = -row[1];
    }
    gradient[size - 1] = g_t;
    information[size * size - 1] = -h_tt;
    Evaluation { value, gradient, information }
}

/// Derivatives of the log-likelihood of each row in its cure logit and its location.
pub(super) fn unit_gradients(
    family: Family,
    u_horizon: f64,
    outcomes: &Outcomes,
    design: &[f64],
    widths: Widths,
    theta: &[f64],
) -> Vec<ByEstimand<f64>> {
    let terms = row_terms(family, u_horizon, outcomes, design, widths, theta);
    terms.map(|unit| ByEstimand { cure: unit.a, time: unit.m }).collect()
}

/// The log-likelihood of each row, and its derivatives.
pub(super) fn row_terms<'a>(
    family: Family,
    u_horizon: f64,
    outcomes: &'a Outcomes,
    design: &'a [f64],
    widths: Widths,
    theta: &'a [f64],
) -> impl Iterator<Item = UnitTerms> + 'a {
    let Widths { all, cure, time } = widths;
    let (b, l, scale) = (&theta[..cure], &theta[cure..cure + time], LogScale::from(theta[cure + time]));
    (0..outcomes.u.len()).map(move |i| {
        let z = &design[i * all..(i + 1) * all];
        let (a, m) = (dot(&z[..cure], b), dot(&z[all - time..], l));
        outcomes.weighed(i, family.unit(u_horizon, outcomes.seen(i), outcomes.u[i], a, m, scale))
    })
}

fn times(to: &mut [f64], w: f64, x: &[f64]) {
    to.iter_mut().zip(x).for_each(|(to, x)| *to = w * x);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A weight of two is a row twice, and a row with its negative is nothing.
    #[test]
    fn weights_are_rows() {
        let widths = Widths { all: 3, cure: 2, time: 2 };
        let x = |i: usize| [((i * 31) % 17) as f64 / 8.0 - 1.0, 1.0, ((i * 13) % 19) as f64 / 9.0 - 1.0];
        let theta = [0.3, -0.4, 0.1, 0.25, -0.2];
        let of = |rows: &[(usize, f64)], n_events: usize, n_censored: usize| {
            let design: Vec<f64> = rows.iter().flat_map(|r| x(r.0)).collect();
            let u = rows.iter().map(|r| 1.0 - 0.1 * r.0 as f64).collect();
            let weights = rows.iter().map(|r| r.1).collect();
            let outcomes = Outcomes { u, n_events, n_censored, weights, ..Outcomes::default() };
            evaluate(Family::Weibull, 1.2, &outcomes, &design, widths, &theta)
        };
        // Events 0 and 1, lost 2 and 3, at the horizon 4.
        let weighted = of(&[(0, 2.0), (1, 1.0), (2, 2.0), (3, 1.0), (4, 2.0)], 2, 2);
        let twice = of(&[(0, 1.0), (0, 1.0), (1, 1.0), (2, 1.0), (2, 1.0), (3, 1.0), (4, 1.0), (4, 1.0)], 3, 3);
        let with_nothing = of(&[(0, 2.0), (1, 1.0), (2, 2.0), (3, 1.0), (5, 1.0), (5, -1.0), (4, 2.0)], 2, 4);
        for other in [twice, with_nothing] {
            assert!((weighted.value - other.value).abs() < 1e-12);
            let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
            assert!(weighted.gradient.iter().zip(&other.gradient).all(close));
            assert!(weighted.information.iter().zip(&other.information).all(close));
        }
    }

    #[test]
    fn gradient_and_information_agree_with_finite_differences() {
        // Five columns: one of the cure part only, three of both, one of the time part only.
        let widths = Widths { all: 5, cure: 4, time: 4 };
        let n = 700;
        let x = |i: usize, j: usize| ((i * 7_919 + j * 104_729 + i * i * j) % 1_009) as f64 / 504.0 - 1.0;
        let design: Vec<f64> = (0..n * 5).map(|k| if k % 5 == 1 { 1.0 } else { x(k / 5, k % 5) }).collect();
        let u: Vec<f64> = (0..n).map(|i| 1.1 - 3.0 * ((i * 31) % 101) as f64 / 101.0).collect();
        let outcomes = Outcomes { rows: (0..n).collect(), u, n_events: 290, n_censored: 270, ..Outcomes::default() };
        let theta = [0.3, -0.4, 0.2, -0.1, 0.1, 0.25, -0.3, 0.15, -0.2];
        for family in Family::ALL.into_iter().chain([-60, 40, 150].map(Family::GeneralisedGamma)) {
            let at = |theta: &[f64]| evaluate(family, 1.2, &outcomes, &design, widths, theta);
            let here = at(&theta);
            let h = 1e-5;
            for j in 0..9 {
                let (mut up, mut down) = (theta, theta);
                up[j] += h;
                down[j] -= h;
                let (up, down) = (at(&up), at(&down));
                let slope = (up.value - down.value) / (2.0 * h);
                assert!((slope - here.gradient[j]).abs() < 1e-5, "{family} {j}: {slope} {}", here.gradient[j]);
                for k in 0..9 {
                    let curvature = -(up.gradient[k] - down.gradient[k]) / (2.0 * h);
                    let found = here.information[j * 9 + k];
                    assert!((curvature - found).abs() < 1e-5, "{family} {j} {k}: {curvature} {found}");
                    assert!((found - here.information[k * 9 + j]).abs() < 1e-10, "{family}: symmetric");
                }
            }
            let gradients = unit_gradients(family, 1.2, &outcomes, &design, widths, &theta);
            let sum: f64 = gradients.iter().zip(design.chunks_exact(5)).map(|(g, z)| g.cure * z[0]).sum();
            assert!((sum - here.gradient[0]).abs() < 1e-9);
            let sum: f64 = gradients.iter().zip(design.chunks_exact(5)).map(|(g, z)| g.time * z[4]).sum();
            assert!((sum - here.gradient[7]).abs() < 1e-9);
        }
    }
}
