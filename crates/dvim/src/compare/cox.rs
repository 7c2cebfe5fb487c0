//! Cox's proportional hazards model: `λ(t | x) = λ₀(t) exp(x'b)`.
//!
//! [`fit`] maximises the partial likelihood (Efron or Breslow ties), [`CoxFit`] carries coefficients, their
//! covariance and the baseline, and predicts S(H) and the mean event time before H. [`fit_arms`] and
//! [`effects`] make the paper's "Cox model (no match)".

use std::cmp::Ordering;

use nalgebra::DMatrix;

use super::design::{Design, Gram};
use super::hazard::CumulativeHazard;
use super::newton::{self, Objective};
use super::score::{LinearScore, Link};
use super::{Certificate, FitOptions, InvalidInput, StopReason, Units, check_length};
use crate::arm::ByArm;

/// How events at the same time share the partial likelihood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// Each tied event sees the risk set less the average share of those before it. R's default.
    #[default]
    Efron,
    /// Each tied event sees the whole risk set. The reading that reproduces the paper's Cox row.
    Breslow,
}

impl Ties {
    /// Every choice, that of the paper first.
    pub const ALL: [Ties; 2] = [Ties::Breslow, Ties::Efron];

    /// The word used in options.
    pub fn name(self) -> &'static str {
        match self {
            Ties::Breslow => "breslow",
            Ties::Efron => "efron",
        }
    }
}

/// A fitted Cox model.
#[derive(Clone, Debug, PartialEq)]
pub struct CoxFit {
    /// Log hazard ratio per unit of each covariate; 0 for aliased ones.
    pub coefficients: Vec<f64>,
    /// Standard errors from the inverse information; NaN for aliased covariates.
    pub standard_errors: Vec<f64>,
    /// Inverse information (penalised where [`Certificate::ridge`] is not 0), row by row, p × p; 0 for aliased
    /// covariates.
    pub covariance: Vec<f64>,
    /// Covariates that are constant among the units ever at risk or repeat earlier ones. Not estimated.
    pub aliased: Vec<usize>,
    /// Mean of each covariate among the units at risk at the first event; the baseline is that of this unit.
    pub centre: Vec<f64>,
    /// Cumulative hazard of the unit at `centre`, by the estimator that belongs to the ties.
    pub baseline: CumulativeHazard,
    /// Treatment of ties.
    pub ties: Ties,
    /// Units in the fit.
    pub n_units: usize,
    /// Events in the fit.
    pub n_events: usize,
    /// Last time, of event or censoring. Beyond it the curve is carried forward.
    pub last_time: f64,
    /// Log partial likelihood with all coefficients 0.
    pub null_log_likelihood: f64,
    /// How the fit ended.
    pub certificate: Certificate,
}

/// What a Cox model says about units before the horizon.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// S(H | x) per unit.
    pub cure_probability: Vec<f64>,
    /// E(T | T ≤ H, x) per unit; `None` where the arm has no event by H, so that it is not defined.
    pub mean_event_time: Option<Vec<f64>>,
}

/// Treated minus control, unit by unit.
#[derive(Clone, Debug, PartialEq)]
pub struct CoxEffects {
    /// Effect on S(H).
    pub cure: Vec<f64>,
    /// Effect on the mean event time; `None` where it is not defined in one of the arms.
    pub time: Option<Vec<f64>>,
}

/// Fits the model.
///
/// With risk set R at an event time, its deaths D (d of them) and weights `w = exp(x'b)`, an event time adds
/// `Σ_D x'b − Σ_l log(Σ_R w − c_l Σ_D w)`, l = 0 … d − 1, to the log-likelihood; `c_l = l / d` (Efron 1977) or 0
/// (Breslow 1974). Derivatives: `docs/methods-compare.md`, cox-gradient. Newton's method starts from 0 on covariates
/// centred and scaled over the units at risk at the first event (the others never enter the likelihood).
pub fn fit(units: &Units, ties: Ties, options: &FitOptions) -> Result<CoxFit, InvalidInput> {
    units.check()?;
    let Units { covariates, n_covariates: p, time, event } = *units;
    let n_units = time.len();
    let n_events = event.iter().filter(|&&e| e).count();
    let last_time = time.iter().fold(f64::NEG_INFINITY, |a, &t| a.max(t));

    // By time, deaths before censorings at the same time; row only to make the sum order definite.
    let mut order: Vec<usize> = (0..n_units).collect();
    order.sort_unstable_by(|&a, &b| by_time(time, event, a, b));
    let first_event = order.iter().position(|&i| event[i]).unwrap_or(n_units);
    order.drain(..first_event);

    let design = Design::new(covariates, p, &order);
    let mut likelihood = PartialLikelihood::new(&design, &order, time, event, ties);
    let size = design.active.len();
    let null_log_likelihood =
        likelihood.evaluate(&vec![0.0; size], &mut vec![0.0; size], &mut DMatrix::zeros(size, size));

    let mut ridge = options.ridge;
    let mut optimum = newton::maximise(&mut likelihood, vec![0.0; size], &vec![ridge; size], options);
    let mut stop_reason = optimum.stop_reason;
    if stop_reason == StopReason::Separation {
        ridge = options.separation_ridge;
        let before = optimum.iterations;
        optimum = newton::maximise(&mut likelihood, vec![0.0; size], &vec![ridge; size], options);
        optimum.iterations += before;
        if optimum.stop_reason != StopReason::Converged {
            stop_reason = optimum.stop_reason;
        }
    }
    if n_events == 0 {
        stop_reason = StopReason::NoInformation;
    }

    let mut coefficients = vec![0.0; p];
    let mut standard_errors = vec![f64::NAN; p];
    let mut covariance = vec![0.0; p * p];
    for (a, &j) in design.active.iter().enumerate() {
        coefficients[j] = optimum.at[a] / design.scale[j];
        standard_errors[j] = optimum.covariance[(a, a)].sqrt() / design.scale[j];
        for (b, &k) in design.active.iter().enumerate() {
            covariance[j * p + k] = optimum.covariance[(a, b)] / design.scale[j] / design.scale[k];
        }
    }
    Ok(CoxFit {
        coefficients,
        standard_errors,
        covariance,
        baseline: likelihood.baseline(),
        aliased: design.aliased,
        centre: design.centre,
        ties,
        n_units,
        n_events,
        last_time,
        null_log_likelihood,
        certificate: Certificate {
            converged: stop_reason == StopReason::Converged,
            stop_reason,
            iterations: optimum.iterations,
            log_likelihood: optimum.value,
            decrement: optimum.decrement,
            ridge,
        },
    })
}

/// Fits one model per arm. Each arm needs a unit.
pub fn fit_arms(
    units: &Units,
    treated: &[bool],
    ties: Ties,
    options: &FitOptions,
) -> Result<ByArm<CoxFit>, InvalidInput> {
    units.check()?;
    check_length("treated", units.time.len(), treated.len())?;
    let p = units.n_covariates;
    let arm = |which: bool| {
        let rows: Vec<usize> = (0..treated.len()).filter(|&i| treated[i] == which).collect();
        if rows.is_empty() {
            return Err(InvalidInput::OneArm);
        }
        let mut covariates = Vec::with_capacity(rows.len() * p);
        for &i in &rows {
            covariates.extend_from_slice(&units.covariates[i * p..(i + 1) * p]);
        }
        let time: Vec<f64> = rows.iter().map(|&i| units.time[i]).collect();
        let event: Vec<bool> = rows.iter().map(|&i| units.event[i]).collect();
        fit(&Units { covariates: &covariates, n_covariates: p, time: &time, event: &event }, ties, options)
    };
    Ok(ByArm { control: arm(false)?, treated: arm(true)? })
}

/// Effects by plugging each unit into both arms' models: the paper's "Cox model (no match)".
pub fn effects(arms: &ByArm<CoxFit>, covariates: &[f64], horizon: f64) -> CoxEffects {
    let ByArm { control, treated } = arms.each_ref().map(|arm| arm.predict(covariates, horizon));
    let minus = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
    CoxEffects {
        cure: minus(&treated.cure_probability, &control.cure_probability),
        time: match (&treated.mean_event_time, &control.mean_event_time) {
            (Some(a), Some(b)) => Some(minus(a, b)),
            _ => None,
        },
    }
}

impl CoxFit {
    /// Two-sided Wald p-values, `erfc(|b / se| / √2)`; NaN for aliased covariates.
    pub fn p_values(&self) -> Vec<f64> {
        let wald = |(b, se): (&f64, &f64)| libm::erfc((b / se).abs() / std::f64::consts::SQRT_2);
        self.coefficients.iter().zip(&self.standard_errors).map(wald).collect()
    }

    /// `(x − centre)'b` of each unit; covariates row by row.
    pub fn log_risks(&self, covariates: &[f64]) -> Vec<f64> {
        let terms = |unit: &[f64]| -> f64 {
            let centred = unit.iter().zip(&self.centre).map(|(x, c)| x - c);
            centred.zip(&self.coefficients).map(|(x, b)| x * b).sum()
        };
        covariates.chunks_exact(self.coefficients.len().max(1)).map(terms).collect()
    }

    /// S(t | x) of one unit, jumps at `t` included.
    pub fn survival(&self, unit: &[f64], t: f64) -> f64 {
        let log_risk = self.log_risks(unit).first().copied().unwrap_or(0.0);
        self.baseline.survival(t, log_risk)
    }

    /// S(H) and the mean event time before H of each unit; covariates row by row.
    pub fn predict(&self, covariates: &[f64], horizon: f64) -> Prediction {
        let log_risks = self.log_risks(covariates);
        let hazard = self.baseline.at(horizon);
        let cure_probability = log_risks.iter().map(|&u| super::score::survival(hazard, u)).collect();
        Prediction { cure_probability, mean_event_time: self.baseline.mean_event_times(horizon, &log_risks) }
    }

    /// S(t | x) as a score: with `t` = H and both arms, the parts of the prognostic score.
    pub fn survival_score(&self, t: f64) -> LinearScore {
        let shift: f64 = self.centre.iter().zip(&self.coefficients).map(|(c, b)| c * b).sum();
        LinearScore {
            intercept: -shift,
            coefficients: self.coefficients.clone(),
            link: Link::CoxSurvival { cumulative_hazard: self.baseline.at(t) },
        }
    }
}

fn by_time(time: &[f64], event: &[bool], a: usize, b: usize) -> Ordering {
    // −0 and 0 are the same time.
    let times = time[a].partial_cmp(&time[b]).unwrap_or(Ordering::Equal);
    times.then_with(|| event[b].cmp(&event[a])).then_with(|| a.cmp(&b))
}

/// The log partial likelihood over sorted units.
///
/// Let `h_k` be the baseline hazard that the ties imply at event time k: `Σ_l 1 / (Σ_R w − c_l Σ_D w)`, and for
/// the deaths themselves `h°_k = Σ_l (1 − c_l) / (…)`. A unit's expected number of events is
/// `A_i = w_i · (Σ h_k over event times before its own end, its own by h or h°)`. Then
///
/// * gradient: `Σ_i (event_i − A_i) x_i`, martingale residuals times covariates;
/// * information: `Σ_i A_i x_i x_i' − Σ_k Σ_l x̄_kl x̄_kl'`, x̄ the weighted means of the risk sets;
///
/// which takes one pass back in time for sums over risk sets, one forward for the hazards, and two matrix
/// products: O(n p²) (`docs/methods-compare.md`, cox-gradient), where keeping `Σ w x x'` for every risk set would cost
/// twice that.
struct PartialLikelihood<'a> {
    /// Standardised covariates in order of time.
    rows: &'a [f64],
    width: usize,
    n_units: usize,
    groups: Vec<Group>,
    ties: Ties,
    weights: Vec<f64>,
    /// `h_k` and `h°_k` at the last evaluation, both times `exp(shift)`.
    hazards: Vec<(f64, f64)>,
    shift: f64,
    means: Gram,
    squares: Gram,
}

/// One distinct event time: its deaths stand first, then those censored up to the next event time.
struct Group {
    time: f64,
    start: usize,
    deaths: usize,
    end: usize,
}

impl<'a> PartialLikelihood<'a> {
    fn new(design: &'a Design, order: &[usize], time: &[f64], event: &[bool], ties: Ties) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for (at, &i) in order.iter().enumerate() {
            if event[i] {
                match groups.last_mut() {
                    Some(group) if group.time == time[i] => group.deaths += 1,
                    _ => groups.push(Group { time: time[i], start: at, deaths: 1, end: order.len() }),
                }
            }
        }
        for k in 1..groups.len() {
            groups[k - 1].end = groups[k].start;
        }
        let width = design.active.len();
        Self {
            rows: &design.rows,
            width,
            n_units: order.len(),
            hazards: vec![(0.0, 0.0); groups.len()],
            groups,
            ties,
            weights: vec![0.0; order.len()],
            shift: 0.0,
            means: Gram::new(width),
            squares: Gram::new(width),
        }
    }

    fn row(&self, i: usize) -> &'a [f64] {
        &self.rows[i * self.width..(i + 1) * self.width]
    }

    /// Baseline at the last evaluated coefficients, for the unit whose standardised covariates are 0.
    fn baseline(&self) -> CumulativeHazard {
        let scale = libm::exp(-self.shift);
        let mut level = 0.0;
        let cumulative = self.hazards.iter().map(|(h, _)| {
            level += h * scale;
            level
        });
        CumulativeHazard { cumulative: cumulative.collect(), times: self.groups.iter().map(|g| g.time).collect() }
    }
}

impl Objective for PartialLikelihood<'_> {
    fn evaluate(&mut self, at: &[f64], gradient: &mut [f64], information: &mut DMatrix<f64>) -> f64 {
        let width = self.width;
        for i in 0..self.n_units {
            self.weights[i] = dot(at, self.row(i));
        }
        // Only ratios of weights matter: the largest is made 1, so that none overflows.
        let shift = self.weights.iter().fold(f64::NEG_INFINITY, |a, &eta| a.max(eta));
        self.shift = if self.n_units == 0 { 0.0 } else { shift };
        let mut value = 0.0;
        for group in &self.groups {
            value += self.weights[group.start..group.start + group.deaths].iter().map(|eta| eta - shift).sum::<f64>();
        }
        for w in &mut self.weights {
            *w = libm::exp(*w - shift);
        }

        let (mut at_risk, mut at_risk_x) = (0.0, vec![0.0; width]);
        let mut dying_x = vec![0.0; width];
        let mut mean = vec![0.0; width];
        for k in (0..self.groups.len()).rev() {
            let Group { start, deaths, end, .. } = self.groups[k];
            let mut dying = 0.0;
            dying_x.fill(0.0);
            for i in (start..end).rev() {
                let (w, row) = (self.weights[i], self.row(i));
                at_risk += w;
                add(&mut at_risk_x, w, row);
                if i < start + deaths && deaths > 1 && self.ties == Ties::Efron {
                    dying += w;
                    add(&mut dying_x, w, row);
                }
            }
            if at_risk < 1e-290 {
                // All weights of this risk set have vanished beside an earlier one: too far out to be a maximum.
                self.means.clear();
                return f64::NEG_INFINITY;
            }
            let (mut hazard, mut own_hazard) = (0.0, 0.0);
            let (terms, repeat) = match self.ties {
                Ties::Efron => (deaths, 1.0),
                Ties::Breslow => (1, deaths as f64),
            };
            for l in 0..terms {
                let share = l as f64 / deaths as f64;
                let total = at_risk - share * dying;
                value -= repeat * libm::log(total);
                hazard += repeat / total;
                own_hazard += repeat * (1.0 - share) / total;
                for (m, (r, d)) in mean.iter_mut().zip(at_risk_x.iter().zip(&dying_x)) {
                    *m = (r - share * d) / total;
                }
                self.means.push(repeat, &mean, -1.0, information);
            }
            self.hazards[k] = (hazard, own_hazard);
        }
        self.means.flush(-1.0, information);

        let mut passed = 0.0;
        for k in 0..self.groups.len() {
            let Group { start, deaths, end, .. } = self.groups[k];
            let (hazard, own_hazard) = self.hazards[k];
            for i in start..end {
                let died = i < start + deaths;
                let expected = self.weights[i] * (passed + if died { own_hazard } else { hazard });
                let row = self.row(i);
                add(gradient, f64::from(u8::from(died)) - expected, row);
                self.squares.push(expected, row, 1.0, information);
            }
            passed += hazard;
        }
        self.squares.flush(1.0, information);
        value
    }

    /// The likelihood is monotone along d exactly when at every event time each death has the largest `d'x` of its
    /// risk set, and some risk set is not constant (Bryson and Johnson 1981; Heinze and Schemper 2001;
    /// `docs/methods-compare.md`, separation).
    fn recedes(&self, direction: &[f64]) -> bool {
        let slopes: Vec<f64> = (0..self.n_units).map(|i| dot(direction, self.row(i))).collect();
        let slack = 1e-9 * slopes.iter().fold(0.0_f64, |a, s| a.max(s.abs()));
        let (mut largest, mut smallest) = (f64::NEG_INFINITY, f64::INFINITY);
        for group in self.groups.iter().rev() {
            for &s in &slopes[group.start..group.end] {
                largest = largest.max(s);
                smallest = smallest.min(s);
            }
            if slopes[group.start..group.start + group.deaths].iter().any(|&s| s < largest - slack) {
                return false;
            }
        }
        largest - smallest > 1e3 * slack && slack > 0.0
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(sum: &mut [f64], weight: f64, row: &[f64]) {
    for (s, x) in sum.iter_mut().zip(row) {
        *s += weight * x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gradient and information against central differences of the value and of the gradient.
    #[test]
    fn derivatives_match_finite_differences() {
        let n = 40;
        let covariates: Vec<f64> =
            (0..n * 3).map(|k| ((k * 7919 + 13) % 101) as f64 / 50.0 - 1.0 + 0.1 * (k % 3) as f64).collect();
        let time: Vec<f64> = (0..n).map(|i| ((i * 37) % 11) as f64).collect();
        let event: Vec<bool> = (0..n).map(|i| i % 3 != 0).collect();
        for ties in [Ties::Efron, Ties::Breslow] {
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_unstable_by(|&a, &b| by_time(&time, &event, a, b));
            let design = Design::new(&covariates, 3, &order);
            let mut likelihood = PartialLikelihood::new(&design, &order, &time, &event, ties);
            let at = [0.3, -0.7, 0.2];
            let mut evaluate = |at: &[f64]| {
                let (mut g, mut info) = (vec![0.0; 3], DMatrix::zeros(3, 3));
                let value = likelihood.evaluate(at, &mut g, &mut info);
                (value, g, info)
            };
            let (_, gradient, information) = evaluate(&at);
            let h = 1e-5;
            for j in 0..3 {
                let (mut up, mut down) = (at, at);
                up[j] += h;
                down[j] -= h;
                let (above, below) = (evaluate(&up), evaluate(&down));
                let slope = (above.0 - below.0) / (2.0 * h);
                assert!((slope - gradient[j]).abs() < 1e-7 * (1.0 + slope.abs()), "{ties:?} {j}");
                for k in 0..3 {
                    let curve = -(above.1[k] - below.1[k]) / (2.0 * h);
                    assert!((curve - information[(j, k)]).abs() < 1e-7 * (1.0 + curve.abs()), "{ties:?} {j} {k}");
                }
            }
        }
    }
}
