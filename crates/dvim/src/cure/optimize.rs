//! The maximiser and why it stopped. Knows a smooth function of several numbers, and no survival words.
//!
//! Newton's method with Levenberg damping: the step solves `(-∇²f + μI) d = ∇f`. `μ` is zero while the function
//! looks like its quadratic model and has a maximum there, and grows when either fails (Nocedal and Wright 2006,
//! "Numerical Optimization", chapter 4; Moré 1978). A point where the gradient vanishes but the curvature does not
//! all point down is left along the direction of most positive curvature.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn, SymmetricEigen};

/// A twice differentiable function to be maximised.
pub(super) trait Objective {
    /// Number of arguments.
    fn len(&self) -> usize;
    /// Value, gradient and full Hessian at `theta`, into `out` (all entries are overwritten).
    fn evaluate(&self, theta: &[f64], out: &mut Evaluation);
}

/// Value, gradient and Hessian at one point.
#[derive(Clone, Debug)]
pub(super) struct Evaluation {
    pub(super) value: f64,
    pub(super) gradient: DVector<f64>,
    pub(super) hessian: DMatrix<f64>,
}

impl Evaluation {
    pub(super) fn new(n: usize) -> Evaluation {
        Evaluation { value: f64::NEG_INFINITY, gradient: DVector::zeros(n), hessian: DMatrix::zeros(n, n) }
    }

    fn is_finite(&self) -> bool {
        self.value.is_finite()
            && self.gradient.iter().all(|g| g.is_finite())
            && self.hessian.iter().all(|h| h.is_finite())
    }
}

/// When to stop. The reasons of the values are with the options that hold them.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// Largest accepted `√(g' (-∇²f)⁻¹ g)`.
    pub(super) decrement: f64,
    /// Most iterations.
    pub(super) iterations: usize,
    /// Longest change of one argument in a step, at first: it doubles after a step that was cut and kept its promise.
    pub(super) step: f64,
    /// Smallest curvature of a maximum, as an eigenvalue of `-∇²f`: a climb that has all but stopped where the
    /// function is flatter than this is on its way to infinity.
    pub(super) curvature: f64,
    /// The region in which a maximum is believed: lower and upper bound of each argument.
    pub(super) bounds: Vec<(f64, f64)>,
}

/// Why the maximiser stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stop {
    /// The gradient vanishes and the curvature points down in every direction.
    Maximum,
    /// An argument left the region in which a maximum is believed.
    LeftBounds(usize),
    /// Nearly level ground: the gradient nearly vanishes, but so does the curvature in some direction.
    Flat,
    /// No step increases the value although the gradient does not vanish: a limit of floating point arithmetic.
    Stalled,
    /// Out of iterations.
    IterationLimit,
    /// The function is not finite at the starting point.
    NotFinite,
}

/// Where the maximiser ended.
#[derive(Clone, Debug)]
pub(super) struct Ascent {
    pub(super) theta: Vec<f64>,
    pub(super) at: Evaluation,
    pub(super) stop: Stop,
    pub(super) iterations: usize,
    pub(super) evaluations: usize,
    /// `√(g' (-∇²f)⁻¹ g)`, infinite where the curvature does not point down.
    pub(super) decrement: f64,
}

/// Damping at the first failure, relative to the largest curvature.
const FIRST_DAMPING: f64 = 1e-3;
/// Factor by which damping grows and shrinks.
const DAMPING_FACTOR: f64 = 4.0;
/// Damping, relative to the largest curvature, beyond which a step is a rounding error.
const LARGEST_DAMPING: f64 = 1e12;
/// Relative rounding error of a value: a sum of thousands of terms.
const VALUE_ROUNDING: f64 = 1e-13;

/// Climbs from `start`. Takes at most `limits.iterations` steps of at most about 50 evaluations each.
pub(super) fn maximize<F: Objective>(f: &F, start: &[f64], limits: &Limits) -> Ascent {
    let n = f.len();
    let mut theta = start.to_vec();
    let mut at = Evaluation::new(n);
    f.evaluate(&theta, &mut at);
    let mut evaluations = 1;
    let mut iterations = 0;
    let mut decrement = f64::INFINITY;
    if !at.is_finite() {
        return Ascent { theta, at, stop: Stop::NotFinite, iterations, evaluations, decrement };
    }
    let mut trial = Evaluation::new(n);
    let mut trial_theta = theta.clone();
    let mut damping = 0.0;
    let mut longest_step = limits.step;
    let stop = loop {
        if let Some(j) = (0..n).find(|&j| !(limits.bounds[j].0..=limits.bounds[j].1).contains(&theta[j])) {
            break Stop::LeftBounds(j);
        }
        let undamped = factor(&at.hessian, 0.0);
        decrement = undamped.as_ref().map_or(f64::INFINITY, |c| newton_decrement(c, &at.gradient));
        if decrement <= limits.decrement {
            break Stop::Maximum;
        }
        // Where the end runs away exponentially, decrement² and curvature fall together: half the digits show it.
        if decrement <= libm::sqrt(limits.curvature)
            && undamped.as_ref().is_some_and(|c| curvature_below(c, limits.curvature))
        {
            break Stop::Flat;
        }
        if iterations == limits.iterations {
            break Stop::IterationLimit;
        }
        iterations += 1;
        let curvature = at.hessian.diagonal().amax().max(1.0);
        if undamped.is_none() && at.gradient.amax() <= limits.decrement * curvature.sqrt() {
            match leave_saddle(f, &theta, &at, limits.step, &mut trial, &mut trial_theta, &mut evaluations) {
                true => {
                    std::mem::swap(&mut theta, &mut trial_theta);
                    std::mem::swap(&mut at, &mut trial);
                    damping = 0.0;
                    continue;
                }
                false => break Stop::Stalled,
            }
        }
        let mut accepted = false;
        while damping <= LARGEST_DAMPING * curvature {
            let cholesky = if damping == 0.0 { undamped.clone() } else { factor(&at.hessian, damping) };
            let Some(cholesky) = cholesky else {
                damping = (damping * DAMPING_FACTOR).max(FIRST_DAMPING * curvature);
                continue;
            };
            let mut step = cholesky.solve(&at.gradient);
            let longest = step.amax();
            if !longest.is_finite() {
                damping = (damping * DAMPING_FACTOR).max(FIRST_DAMPING * curvature);
                continue;
            }
            let cut = longest > longest_step;
            if cut {
                step *= longest_step / longest;
            }
            let promised = at.gradient.dot(&step) + 0.5 * step.dot(&(&at.hessian * &step));
            (0..n).for_each(|j| trial_theta[j] = theta[j] + step[j]);
            f.evaluate(&trial_theta, &mut trial);
            evaluations += 1;
            let gained = trial.value - at.value;
            // Below the rounding error of the value the comparison is noise; there the gradient must shrink instead.
            let rounding = VALUE_ROUNDING * (1.0 + at.value.abs());
            let good = if promised.abs() > rounding {
                gained > 1e-4 * promised.abs()
            } else {
                gained >= -rounding && trial.gradient.norm() < at.gradient.norm()
            };
            if trial.is_finite() && good {
                damping = match gained / promised {
                    ratio if ratio > 0.75 && damping > FIRST_DAMPING * FIRST_DAMPING * curvature => {
                        damping / (DAMPING_FACTOR * DAMPING_FACTOR)
                    }
                    ratio if ratio > 0.75 => 0.0,
                    ratio if ratio < 0.25 => (damping * DAMPING_FACTOR).max(FIRST_DAMPING * curvature),
                    _ => damping,
                };
                if cut && gained > 0.75 * promised {
                    longest_step *= 2.0;
                }
                accepted = true;
                break;
            }
            longest_step = limits.step;
            damping = (damping * DAMPING_FACTOR).max(FIRST_DAMPING * curvature);
        }
        if !accepted {
            break Stop::Stalled;
        }
        std::mem::swap(&mut theta, &mut trial_theta);
        std::mem::swap(&mut at, &mut trial);
    };
    Ascent { theta, at, stop, iterations, evaluations, decrement }
}

/// Cholesky factor of `-hessian + damping I`, if that is positive definite.
pub(super) fn factor(hessian: &DMatrix<f64>, damping: f64) -> Option<Cholesky<f64, Dyn>> {
    let mut negative = -hessian;
    for j in 0..negative.nrows() {
        negative[(j, j)] += damping;
    }
    Cholesky::new(negative)
}

/// `√(g' (-∇²f)⁻¹ g)`: the distance to the maximum of the quadratic model in the metric of the curvature.
pub(super) fn newton_decrement(cholesky: &Cholesky<f64, Dyn>, gradient: &DVector<f64>) -> f64 {
    let square = gradient.dot(&cholesky.solve(gradient));
    if square >= 0.0 { libm::sqrt(square) } else { f64::INFINITY }
}

/// Whether `-∇²f` surely has an eigenvalue below `bound`: a few steps of inverse iteration end in a Rayleigh quotient,
/// which is never below the smallest eigenvalue.
fn curvature_below(cholesky: &Cholesky<f64, Dyn>, bound: f64) -> bool {
    let n = cholesky.l_dirty().nrows();
    let mut x = DVector::from_fn(n, |j, _| if j % 2 == 0 { 1.0 } else { -0.7 });
    for _ in 0..4 {
        let norm = x.norm();
        x /= norm;
        let y = cholesky.solve(&x);
        // y'(-∇²f)y / y'y with (-∇²f) y = x.
        if y.dot(&x) < bound * y.norm_squared() {
            return true;
        }
        x = y;
    }
    false
}

/// A step up from a saddle, along the direction of most positive curvature, either way; false where none was found.
fn leave_saddle<F: Objective>(
    f: &F,
    theta: &[f64],
    at: &Evaluation,
    longest: f64,
    trial: &mut Evaluation,
    trial_theta: &mut [f64],
    evaluations: &mut usize,
) -> bool {
    let eigen = SymmetricEigen::new(at.hessian.clone());
    let best = eigen.eigenvalues.imax();
    let direction = eigen.eigenvectors.column(best);
    let mut length = longest.min(1.0);
    for _ in 0..12 {
        for sign in [1.0, -1.0] {
            for j in 0..theta.len() {
                trial_theta[j] = theta[j] + sign * length * direction[j];
            }
            f.evaluate(trial_theta, trial);
            *evaluations += 1;
            if trial.is_finite() && trial.value > at.value + VALUE_ROUNDING * (1.0 + at.value.abs()) {
                return true;
            }
        }
        length /= 4.0;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Function(fn(&[f64], &mut Evaluation));
    impl Objective for Function {
        fn len(&self) -> usize {
            2
        }
        fn evaluate(&self, theta: &[f64], out: &mut Evaluation) {
            self.0(theta, out);
        }
    }

    fn limits() -> Limits {
        Limits { decrement: 1e-9, iterations: 200, step: 3.0, curvature: 1e-8, bounds: vec![(-1e3, 1e3); 2] }
    }

    fn set(out: &mut Evaluation, value: f64, gradient: [f64; 2], hessian: [f64; 4]) {
        out.value = value;
        out.gradient.copy_from_slice(&gradient);
        out.hessian.copy_from_slice(&hessian);
    }

    #[test]
    fn climbs_rosenbrock() {
        let f = Function(|x, out| {
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            let off = 400.0 * x[0];
            let h11 = -2.0 - 1200.0 * x[0] * x[0] + 400.0 * x[1];
            set(out, -a * a - 100.0 * b * b, [2.0 * a + 400.0 * b * x[0], -200.0 * b], [h11, off, off, -200.0]);
        });
        let end = maximize(&f, &[-1.2, 1.0], &limits());
        assert_eq!(end.stop, Stop::Maximum);
        assert!((end.theta[0] - 1.0).abs() < 1e-8 && (end.theta[1] - 1.0).abs() < 1e-8, "{:?}", end.theta);
    }

    #[test]
    fn leaves_a_saddle() {
        // x²/2 - x⁴/4 - y²/2: a saddle at the origin, maxima at x = ±1.
        let f = Function(|x, out| {
            let (s, y) = (x[0] * x[0], x[1]);
            set(out, 0.5 * s - 0.25 * s * s - 0.5 * y * y, [x[0] - s * x[0], -y], [1.0 - 3.0 * s, 0.0, 0.0, -1.0]);
        });
        let end = maximize(&f, &[0.0, 0.0], &limits());
        assert_eq!(end.stop, Stop::Maximum);
        assert!((end.theta[0].abs() - 1.0).abs() < 1e-8);
    }

    #[test]
    fn says_when_there_is_no_maximum() {
        let rising = Function(|x, out| set(out, x[0] - 0.5 * x[1] * x[1], [1.0, -x[1]], [0.0, 0.0, 0.0, -1.0]));
        let end = maximize(&rising, &[0.0, 1.0], &Limits { iterations: 2000, ..limits() });
        assert_eq!(end.stop, Stop::LeftBounds(0));
        let end = maximize(&rising, &[0.0, 1.0], &Limits { iterations: 5, ..limits() });
        assert_eq!(end.stop, Stop::IterationLimit);
        let nan = Function(|_, out| set(out, f64::NAN, [0.0; 2], [0.0; 4]));
        assert_eq!(maximize(&nan, &[0.0, 0.0], &limits()).stop, Stop::NotFinite);
    }
}
