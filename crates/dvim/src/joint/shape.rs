//! The shape Q of the generalised gamma family, by profile likelihood.
//!
//! Straight lines are fitted with log-normal times; then, for each Q, what the lines say is shifted in each arm (cure
//! logit, location, `ln σ`) to the largest likelihood. The lines stay: a shape shows in the spread of the times about
//! them, and a fit for every Q would cost a hundred times as much.

use super::family::Family;
use super::predict::see;
use super::{FitError, Gathered, JointOptions, Known, Piece, Pieces, Terms, describe_known};
use crate::arm::ByArm;
use crate::cohort::Cohort;
use crate::cure::Seen;

/// Hundredths of Q between which it is sought; outside, a distribution is hardly told from that at the end.
const RANGE: (i16, i16) = (-150, 250);
/// First step, in hundredths; it is halved down to [`LAST_STEP`].
const FIRST_STEP: i16 = 50;
const LAST_STEP: i16 = 6;
/// So near to zero it is a log-normal, and so near to one a Weibull distribution.
const SMALLEST: i16 = 10;
/// Newton steps for one Q.
const STEPS: usize = 12;

/// The shape that fits best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GammaShape {
    /// Hundredths of Q; 0 where it is a log-normal.
    pub hundredths: i16,
    /// Log-likelihood above the better of log-normal and Weibull.
    pub gain: f64,
}

/// A unit as the lines see it.
struct Placed {
    seen: Seen,
    u: f64,
    weight: f64,
    cure_logit: f64,
    location: f64,
    log_sigma: f64,
}

/// The shape of the event times of a sample of a cohort, whose covariates are `standardised` (all of them, row-major).
/// A shape is a setting that all folds share. It may be learned from everybody, and the model behind it is not kept.
///
/// # Errors
/// Where there is nothing to fit: see [`FitError`].
pub fn gamma_shape(
    cohort: &Cohort,
    sample: &[u32],
    standardised: &[f64],
    pieces: Option<&Pieces>,
    options: &JointOptions,
) -> Result<GammaShape, FitError> {
    let units = Gathered::of(cohort, sample, standardised);
    let data = &units.view();
    let known = pieces.map(|pieces| Known { pieces, units: sample });
    let lines = JointOptions { family: Family::LogNormal, rounds: 0, ..options.clone() };
    let model = describe_known(data, known, &Terms::new(&[], data.n_covariates), &lines)?;
    let mut arms = ByArm::<Vec<Placed>>::default();
    for (i, &time) in data.time.iter().enumerate() {
        let arm = data.arm(i);
        let p = model.predict(&data.covariates[i * data.n_covariates..(i + 1) * data.n_covariates])[arm];
        let (cure_logit, location, log_sigma) = (p.cure_logit, p.location, p.log_sigma);
        let only = [Piece { time, event: data.event[i], weight: 1.0 }];
        for piece in known.map_or(&only[..], |known| known.of(i)) {
            let seen = see(piece.time, piece.event, data.horizon);
            if seen == Seen::Censored && piece.time <= 0.0 {
                continue;
            }
            let u = model.log_time(piece.time);
            arms[arm].push(Placed { seen, u, weight: piece.weight, cure_logit, location, log_sigma });
        }
    }
    let u_horizon = libm::log(data.horizon);
    // Shifts that were found for a shape are the start of the next.
    let mut known: Vec<(i16, f64, ByArm<[f64; 3]>)> = Vec::new();
    let mut profile = |q: i16| -> f64 {
        if let Some((_, value, _)) = known.iter().find(|(known, ..)| *known == q) {
            return *value;
        }
        let nearest = known.iter().min_by_key(|(known, ..)| (known - q).abs()).map_or(ByArm::default(), |k| k.2);
        let family = Family::GeneralisedGamma(q);
        let found = ByArm::of(|arm| climb(family, u_horizon, &arms[arm], nearest[arm]));
        let value = found.control.0 + found.treated.0;
        known.push((q, value, found.map(|(_, shift)| shift)));
        value
    };
    let (mut best, mut step) = (0, FIRST_STEP);
    let special = profile(0).max(f64::NEG_INFINITY);
    loop {
        let sides = [best - step, best + step];
        let better = sides.into_iter().filter(|q| (RANGE.0..=RANGE.1).contains(q));
        let next = better.fold(best, |best, q| if profile(q) > profile(best) { q } else { best });
        if next != best {
            best = next;
        } else if step / 2 >= LAST_STEP {
            step /= 2;
        } else {
            break;
        }
    }
    let weibull = profile(100);
    let gain = profile(best) - special.max(weibull);
    let hundredths = if best.abs() < SMALLEST { 0 } else { best };
    Ok(GammaShape { hundredths, gain })
}

/// The largest log-likelihood of an arm over shifts of cure logit, location and `ln σ`, and those shifts.
fn climb(family: Family, u_horizon: f64, units: &[Placed], start: [f64; 3]) -> (f64, [f64; 3]) {
    let at = |shift: [f64; 3]| {
        let (mut value, mut g, mut h) = (0.0, [0.0; 3], [[0.0; 3]; 3]);
        for p in units {
            let (a, m, t) = (p.cure_logit + shift[0], p.location + shift[1], p.log_sigma + shift[2]);
            let unit = family.unit(u_horizon, p.seen, p.u, a, m, t).times(p.weight);
            value += unit.value;
            let gradient = [unit.a, unit.m, unit.t];
            let hessian = [[unit.aa, unit.am, unit.at], [unit.am, unit.mm, unit.mt], [unit.at, unit.mt, unit.tt]];
            for i in 0..3 {
                g[i] += gradient[i];
                (0..3).for_each(|j| h[i][j] += hessian[i][j]);
            }
        }
        (value, g, h)
    };
    let (mut here, mut found) = (start, at(start));
    let mut damping = 1e-3;
    for _ in 0..STEPS {
        let (value, g, h) = found;
        // −H with a damped diagonal, which a held-up step raises.
        let a = nalgebra::Matrix3::from_fn(
            |i, j| if i == j { (-h[i][i]).abs() * (1.0 + damping) + 1e-9 } else { -h[i][j] },
        );
        let Some(step) = a.cholesky().map(|c| c.solve(&nalgebra::Vector3::from(g))) else {
            damping = (damping * 10.0_f64).min(1e6);
            continue;
        };
        let next = [0, 1, 2].map(|i| here[i] + step[i].clamp(-1.0, 1.0));
        let there = at(next);
        if there.0.is_finite() && there.0 >= value {
            let gained = there.0 - value;
            (here, found, damping) = (next, there, damping * 0.1);
            if gained < 1e-4 {
                break;
            }
        } else {
            damping = (damping * 10.0).min(1e6);
        }
    }
    (found.0, here)
}
