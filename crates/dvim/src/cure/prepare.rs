//! From the caller's units to the scale of the computation, and what can be said before any computation.

use nalgebra::{Cholesky, DMatrix, DVector};

use super::likelihood::{Likelihood, LogNormal, Row, Seen, cross_product};
use super::{ArmData, FitError, FitOptions, Flag};
use crate::outcome::{ALONE, Extras, Outcome};
use crate::survival::SurvivalCurve;

/// An arm in the internal scale.
pub(super) struct Prepared {
    pub(super) seen: Vec<Seen>,
    /// Internal log times `(ln y - log_center)/log_scale`; `-∞` for a unit lost at time zero; zero at the horizon.
    pub(super) u: Vec<f64>,
    pub(super) u_horizon: f64,
    /// Row-major: a one, then the kept covariates, centred and scaled; where there is a rotation, in its axes.
    pub(super) design: Vec<f64>,
    /// Columns of the design.
    width: usize,
    /// Columns of the covariates that vary.
    pub(super) kept: Vec<usize>,
    /// From the axes of the design to the kept covariates, where these are more than the units.
    pub(super) rotation: Option<Rotation>,
    /// Of every covariate; scale one for those that do not vary.
    pub(super) center: Vec<f64>,
    pub(super) scale: Vec<f64>,
    /// Mean and standard deviation of the log event times.
    pub(super) log_center: f64,
    pub(super) log_scale: f64,
    /// `-Σ_events (ln y + ln log_scale)`: from a density of `u` to a density of `y`.
    pub(super) log_jacobian: f64,
    pub(super) horizon: f64,
    pub(super) n_events: usize,
    pub(super) n_censored: usize,
    pub(super) flags: Vec<Flag>,
    /// Case weights with mean one; empty where all are one.
    weights: Vec<f64>,
    /// `ln G` at the time of each unit; empty without other causes.
    offsets: Vec<f64>,
    /// Units that entered late: who, and internal log time and `ln G` of entry.
    entries: Vec<(usize, f64, f64)>,
    /// Whose scores go together in the sandwich; `None` where the information will do.
    pub(super) clusters: Option<Vec<u32>>,
}

impl Prepared {
    pub(super) fn n_units(&self) -> usize {
        self.u.len()
    }

    /// Columns of the design.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn new(data: &ArmData<'_>, options: &FitOptions) -> Result<Prepared, FitError> {
        let n = data.time.len();
        let p = data.n_covariates;
        let mut flags = Vec::new();
        let plain = Extras::default();
        let extras = data.extras.unwrap_or(&plain);
        let is_other = |i: usize| extras.competing.as_ref().is_some_and(|c| c[i]);
        let seen: Vec<Seen> = (0..n)
            .map(|i| match (data.time[i] >= data.horizon || is_other(i), data.event[i]) {
                (true, _) => Seen::Horizon,
                (false, true) => Seen::Event,
                (false, false) => Seen::Censored,
            })
            .collect();
        let events = || (0..n).filter(|&i| seen[i] == Seen::Event);
        let n_events = events().count();
        let n_censored = seen.iter().filter(|&&s| s == Seen::Censored).count();
        let smallest = events().map(|i| data.time[i]).filter(|&y| y > 0.0).fold(f64::INFINITY, f64::min);
        if smallest == f64::INFINITY {
            return Err(FitError::NoEvent { n_units: n });
        }
        let at_zero = events().filter(|&i| data.time[i] <= 0.0).count();
        if at_zero > 0 {
            flags.push(Flag::EventAtZero { n_units: at_zero });
        }
        let log_time = |i: usize| match data.time[i] {
            y if y > 0.0 => libm::log(y),
            _ if seen[i] == Seen::Event => libm::log(smallest) - std::f64::consts::LN_2,
            _ => f64::NEG_INFINITY,
        };
        let log_center = events().map(log_time).sum::<f64>() / n_events as f64;
        let variance = events().map(|i| (log_time(i) - log_center).powi(2)).sum::<f64>() / n_events as f64;
        // Times that agree to nine digits are one time, whose logarithm has no scale of its own.
        let tied = libm::sqrt(variance) <= 1e-9;
        let log_scale = if tied { 1.0 } else { libm::sqrt(variance) };
        let u: Vec<f64> = (0..n)
            .map(|i| if seen[i] == Seen::Horizon { 0.0 } else { (log_time(i) - log_center) / log_scale })
            .collect();
        let mean_weight = extras.weight.as_ref().map_or(1.0, |w| w.iter().sum::<f64>() / n as f64);
        let weights: Vec<f64> = extras.weight.iter().flatten().map(|w| w / mean_weight).collect();
        let weight = |i: usize| weights.get(i).copied().unwrap_or(1.0);
        let log_jacobian = -events().map(|i| weight(i) * (log_time(i) + libm::log(log_scale))).sum::<f64>();
        let (offsets, offset_at) = others(data, extras);
        let entries = extras.entry.iter().flatten().enumerate().filter(|(_, e)| **e > 0.0);
        let entries = entries.map(|(i, &e)| (i, (libm::log(e) - log_center) / log_scale, offset_at(e))).collect();
        let clusters = match (&extras.cluster, &extras.weight) {
            (Some(clusters), _) => Some(clusters.clone()),
            (None, Some(_)) => Some((0..n as u32).collect()),
            (None, None) => None,
        };

        let (mut center, mut scale, mut kept) = (vec![0.0; p], vec![1.0; p], Vec::new());
        for j in 0..p {
            let (mean, sd, largest) = moments(data.covariates, n, p, j);
            center[j] = mean;
            if sd <= options.constant_tolerance * largest {
                flags.push(Flag::ConstantCovariate { column: j });
            } else {
                scale[j] = sd;
                kept.push(j);
            }
        }
        let mut d = kept.len() + 1;
        let n_parameters = d + 1;
        let mut design = Vec::with_capacity(n * d);
        for i in 0..n {
            design.push(1.0);
            design.extend(kept.iter().map(|&j| (data.covariates[i * p + j] - center[j]) / scale[j]));
        }
        let rotation = (d > n).then(|| Rotation::new(&design, n, d, options.collinear_tolerance));
        if let Some((rotated, rotation)) = &rotation {
            flags.push(Flag::MoreCovariatesThanUnits { n_covariates: kept.len(), n_units: n });
            (design, d) = (rotated.clone(), rotation.rank() + 1);
        } else {
            for column in collinear(&design, n, d, options.collinear_tolerance) {
                flags.push(Flag::CollinearCovariate { column: kept[column - 1] });
            }
        }
        let rotation = rotation.map(|(_, rotation)| rotation);
        if n_events == n {
            flags.push(Flag::NoneCured);
        } else if data.horizon.is_finite() && n_events + n_censored == n {
            flags.push(Flag::NoneReachedHorizon);
        }
        if n_events < n_parameters {
            flags.push(Flag::FewEvents { n_events, n_parameters });
        } else if tied || predicted(&design, &u, &seen, d, options.residual_tolerance) {
            flags.push(Flag::TimesPredicted);
        }
        let u_horizon = (libm::log(data.horizon) - log_center) / log_scale;
        let horizon = data.horizon;
        Ok(Prepared {
            seen,
            u,
            u_horizon,
            design,
            width: d,
            kept,
            rotation,
            center,
            scale,
            log_center,
            log_scale,
            log_jacobian,
            horizon,
            n_events,
            n_censored,
            flags,
            weights,
            offsets,
            entries,
            clusters,
        })
    }

    /// The likelihood of these units with this design, which may be another than their own. Who entered late is in it
    /// twice: as seen, and with a minus as censored at entry.
    pub(super) fn likelihood(&self, design: &[f64], width: usize) -> Likelihood<LogNormal> {
        let latency = LogNormal { u_horizon: self.u_horizon };
        let mut rows: Vec<Row> = (0..self.n_units())
            .map(|i| Row {
                unit: i as u32,
                seen: self.seen[i],
                u: self.u[i],
                weight: self.weights.get(i).copied().unwrap_or(1.0),
                offset: self.offsets.get(i).copied().unwrap_or(0.0),
            })
            .collect();
        rows.extend(self.entries.iter().map(|&(i, u, offset)| {
            let weight = -self.weights.get(i).copied().unwrap_or(1.0);
            Row { unit: i as u32, seen: Seen::Censored, u, weight, offset }
        }));
        Likelihood::of_rows(latency, &rows, design, width)
    }
}

/// `ln G` at the time of each unit (empty without other causes), and at any time: `G(t) = 1 − F₂(t)/(1 − F₁(H))` is the
/// share of those without an event of this cause before H who have no event of another by t, both F by Aalen–Johansen.
fn others(data: &ArmData<'_>, extras: &Extras) -> (Vec<f64>, impl Fn(f64) -> f64) {
    let n = data.time.len();
    let curves = extras.competing.as_ref().filter(|c| c.iter().any(|c| *c)).map(|_| {
        let outcome = |i: usize| Outcome { cluster: ALONE, ..extras.outcome(i, data.time[i], data.event[i]) };
        let own: Vec<Outcome> = (0..n).map(outcome).collect();
        let other = own.iter().map(|u| Outcome { event: u.competing, competing: u.event, ..*u }).collect();
        (SurvivalCurve::of_outcomes(own).summary(data.horizon).survival, SurvivalCurve::of_outcomes(other))
    });
    // Where everybody has an event the share may come out as zero: half a unit is kept.
    let least = 0.5 / (n as f64 + 1.0);
    let at = move |t: f64| match &curves {
        Some((cured, other)) => libm::log((1.0 - (1.0 - other.at(t)) / cured.max(least)).clamp(least, 1.0)),
        None => 0.0,
    };
    let has = extras.competing.as_ref().is_some_and(|c| c.iter().any(|c| *c));
    (if has { data.time.iter().map(|&t| at(t)).collect() } else { Vec::new() }, at)
}

/// Whether arrays that anybody may have made are data of one arm. A cohort has passed its own door.
pub(super) fn check(data: &ArmData<'_>) -> Result<(), FitError> {
    let n = data.time.len();
    if n == 0 {
        return Err(FitError::NoUnits);
    }
    for (what, expected, found) in
        [("event", n, data.event.len()), ("covariates", n.saturating_mul(data.n_covariates), data.covariates.len())]
    {
        if expected != found {
            return Err(FitError::Shape { what, expected, found });
        }
    }
    if data.horizon.is_nan() || data.horizon <= 0.0 {
        return Err(FitError::NotFinite { what: "horizon", position: 0 });
    }
    for (what, values) in [("time", data.time), ("covariates", data.covariates)] {
        if let Some(position) = values.iter().position(|v| !v.is_finite()) {
            return Err(FitError::NotFinite { what, position });
        }
    }
    Ok(())
}

/// Mean, standard deviation (divisor `n`) and largest absolute value of column `j`, without overflow.
fn moments(x: &[f64], n: usize, p: usize, j: usize) -> (f64, f64, f64) {
    let column = || (0..n).map(|i| x[i * p + j]);
    let largest = column().fold(0.0, |m: f64, v| m.max(v.abs()));
    if largest == 0.0 {
        return (0.0, 0.0, 0.0);
    }
    let first = column().map(|v| v / largest).sum::<f64>() / n as f64;
    // A second pass removes the rounding error of the first.
    let mean = first + column().map(|v| v / largest - first).sum::<f64>() / n as f64;
    let variance = column().map(|v| (v / largest - mean).powi(2)).sum::<f64>() / n as f64;
    (mean * largest, libm::sqrt(variance) * largest, largest)
}

/// An orthonormal basis of the space that the rows of a design span: `Z = L Q`, `Q` with orthonormal rows.
///
/// A ridge that is the same in all directions holds the maximum in that space (its gradient `λb` is there `Z'g`), so
/// that a fit in the few axes of `Q` is the fit in all covariates: `b = Q'β`, exactly.
pub(super) struct Rotation {
    /// Rows of `Z` that the others are combinations of, one for each axis, without the intercept.
    rows: Vec<Vec<f64>>,
    /// Their rows of `L`, lower triangular.
    triangle: DMatrix<f64>,
}

impl Rotation {
    /// The design in the axes of `Q`, a column of ones first, and the rotation. `L` is the Cholesky factor of `ZZ'`; a
    /// row of which the rows before it leave a smaller share than `tolerance` adds no axis.
    fn new(design: &[f64], n: usize, d: usize, tolerance: f64) -> (Vec<f64>, Rotation) {
        let rows: Vec<&[f64]> = design.chunks_exact(d).map(|z| &z[1..]).collect();
        let z = DMatrix::from_row_iterator(n, d - 1, rows.iter().flat_map(|r| r.iter().copied()));
        let gram = &z * z.transpose();
        let mut axes: Vec<usize> = Vec::new();
        let mut l = vec![Vec::with_capacity(n); n];
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        for i in 0..n {
            let pivot = gram[(i, i)] - dot(&l[i], &l[i]);
            if pivot <= tolerance * gram[(i, i)] {
                continue;
            }
            let root = libm::sqrt(pivot);
            let (done, rest) = l.split_at_mut(i + 1);
            let own = &mut done[i];
            rest.iter_mut().zip(i + 1..).for_each(|(row, k)| {
                let value = (gram[(k, i)] - dot(row, own)) / root;
                row.push(value);
            });
            own.push(root);
            axes.push(i);
        }
        let r = axes.len();
        let mut rotated = Vec::with_capacity(n * (r + 1));
        for row in &l {
            rotated.push(1.0);
            rotated.extend(row);
            rotated.resize(rotated.len() + r - row.len(), 0.0);
        }
        let triangle = DMatrix::from_fn(r, r, |i, j| if j <= i { l[axes[i]][j] } else { 0.0 });
        (rotated, Rotation { rows: axes.iter().map(|&i| rows[i].to_vec()).collect(), triangle })
    }

    /// Number of axes.
    fn rank(&self) -> usize {
        self.rows.len()
    }

    /// `Q'β`, by `Q = L_R⁻¹ Z_R` of the rows with an axis.
    pub(super) fn back(&self, beta: &[f64]) -> Vec<f64> {
        let shares = self.triangle.tr_solve_lower_triangular(&DVector::from_column_slice(beta));
        let shares = shares.unwrap_or_else(|| DVector::zeros(beta.len()));
        let mut out = vec![0.0; self.rows.first().map_or(0, Vec::len)];
        for (row, w) in self.rows.iter().zip(&shares) {
            out.iter_mut().zip(row).for_each(|(b, z)| *b += w * z);
        }
        out
    }
}

/// Columns of the design that those before them explain but for a share `tolerance` of their variance:
/// pivots of the Cholesky factor of `Z'Z/n`, whose diagonal is one.
fn collinear(design: &[f64], n: usize, d: usize, tolerance: f64) -> Vec<usize> {
    let mut gram = vec![0.0; d * d];
    cross_product(design, design, n, d, &mut gram, false);
    gram.iter_mut().for_each(|g| *g /= n as f64);
    let mut found = Vec::new();
    let mut factor = vec![0.0; d * d];
    for j in 0..d {
        for i in j..d {
            let sum: f64 = (0..j).map(|k| factor[i * d + k] * factor[j * d + k]).sum();
            factor[i * d + j] = gram[i * d + j] - sum;
        }
        let pivot = factor[j * d + j];
        if pivot <= tolerance {
            found.push(j);
            (j..d).for_each(|i| factor[i * d + j] = 0.0);
        } else {
            let root = libm::sqrt(pivot);
            (j..d).for_each(|i| factor[i * d + j] /= root);
        }
    }
    found
}

/// Whether least squares on the events leaves less than a share `tolerance` of the variance of their log times.
/// Internal log event times have mean zero and variance one.
fn predicted(design: &[f64], u: &[f64], seen: &[Seen], d: usize, tolerance: f64) -> bool {
    let (rows, target) = events_only(design, u, seen, d);
    let n = target.len();
    let mut gram = vec![0.0; d * d];
    cross_product(&rows, &rows, n, d, &mut gram, false);
    let right = DVector::from_fn(d, |j, _| (0..n).map(|i| rows[i * d + j] * target[i]).sum());
    // Events whose covariates are collinear among themselves are left to the climb.
    let Some(cholesky) = Cholesky::new(DMatrix::from_row_slice(d, d, &gram)) else { return false };
    let solution: DVector<f64> = cholesky.solve(&right);
    let residual = |i: usize| target[i] - (0..d).map(|j| rows[i * d + j] * solution[j]).sum::<f64>();
    (0..n).map(|i| residual(i).powi(2)).sum::<f64>() <= tolerance * n as f64
}

/// Design and log times of the events.
pub(super) fn events_only(design: &[f64], u: &[f64], seen: &[Seen], d: usize) -> (Vec<f64>, Vec<f64>) {
    let mut rows = Vec::new();
    let mut target = Vec::new();
    for (i, _) in seen.iter().enumerate().filter(|(_, s)| **s == Seen::Event) {
        rows.extend_from_slice(&design[i * d..(i + 1) * d]);
        target.push(u[i]);
    }
    (rows, target)
}
