//! Mixture cure model of one arm: fit, coefficients, and whether to believe them.
//!
//! What is estimated, for a unit with covariates `x` and a horizon `H`:
//!
//! - the **cure** part, `P(T ≥ H | x) = expit(b₀ + x'b)`;
//! - the **latency** of the uncured, `ln T | T < H, x ~ N(l₀ + x'l, σ²)` truncated at `ln H`.
//!
//! The parameters maximise the likelihood of the paper's density (its supplement, "Mixture Cure Model").
//! Where that likelihood has no finite maximum, the fit says so in [`Certificate::flags`] and returns the
//! maximum of a slightly penalised one. Derivations and the meaning of each flag: docs/methods-cure.md.
//!
//! Case weights multiply log-likelihoods, and with them or with clusters the covariance is the sandwich. A unit that
//! enters late contributes given that it was event-free at entry: its log-likelihood less `ln P(T > entry | x)`. Where
//! there are other causes, cured means no event *of this cause* before H, and a unit with an event of another cause is
//! known to be cured. A censored unit was then event-free with probability `p G(y) + (1 − p) K(y)`, G being the share
//! of the cured without an event of another cause [Larson & Dinse 1985], here that of the arm by Aalen–Johansen.
//!
//! [`fit`] takes a training set and nothing else, and what it gives is [`Trained`]. [`describe`] takes any arrays of
//! one arm, and [`describe_arm`] a whole cohort; what they give cannot reach an estimate.
//!
//! Absent on purpose: matching, estimation sets.

mod categories;
mod gamma;
mod likelihood;
mod optimize;
mod prepare;
mod start;

use std::fmt;

use nalgebra::{DMatrix, SymmetricEigen};

use likelihood::{Likelihood, LogNormal};
use optimize::{Ascent, Evaluation, Limits, Objective, Stop, maximize};
use prepare::Prepared;
use start::Starts;

use crate::arm::{Arm, ByArm};
use crate::numeric::expit;
use crate::outcome::Extras;
use crate::split::Trained;
pub use categories::{describe_arm, fit};
pub(crate) use gamma::{GAUSS_8, GeneralisedGamma};
pub(crate) use likelihood::truncated_mean;
pub(crate) use likelihood::{
    Latency, LogLogistic, LogNormal as LogNormalLatency, LogScale, Seen, UnitTerms, Weibull, event_terms, unit_terms,
    unit_terms_of,
};

/// The units of one arm, as the model sees them.
#[derive(Clone, Copy, Debug)]
pub struct ArmData<'a> {
    /// `Y = min(T, C, H)` of each unit. A time at or above the horizon means that it was reached without event.
    pub time: &'a [f64],
    /// Whether the event was seen, at a time before the horizon.
    pub event: &'a [bool],
    /// Covariates, row-major: `n_covariates` numbers for each unit.
    pub covariates: &'a [f64],
    /// Number of covariates; may be zero.
    pub n_covariates: usize,
    /// The horizon `H`; `f64::INFINITY` gives the usual mixture cure model, without truncation.
    pub horizon: f64,
    /// Case weights, entries, clusters and events of other causes, where there are any.
    pub extras: Option<&'a Extras>,
}

/// Penalties and every tolerance of the fit, each with its reason.
///
/// "Internal scale" is the scale of the computation: covariates centred and divided by their standard deviation, log
/// times centred and divided by the standard deviation of the log event times. There a coefficient of one is a strong
/// effect and the same numbers suit every data set.
#[derive(Clone, Debug, PartialEq)]
pub struct FitOptions {
    /// Penalty `ridge/2 · Σ (b_j sd_j)²` on the cure coefficients, in units of log-likelihood; the intercept is free.
    /// Default 0.
    pub cure_ridge: f64,
    /// Penalty `ridge/2 · Σ (l_j sd_j)²` on the latency coefficients (natural log of time); intercept and σ are free.
    /// Default 0.
    pub latency_ridge: f64,
    /// Largest `√(g' I⁻¹ g)` of an optimum: the distance to it in standard errors. 1e-7: no printed digit of an
    /// estimate or its standard error can change, and Newton's last step usually ends near 1e-10.
    pub gradient_tolerance: f64,
    /// Smallest eigenvalue of the information matrix, in the internal scale, of an optimum. 1e-4: some combination of
    /// standardised coefficients has a standard error of 100, an odds ratio anywhere between e⁻²⁰⁰ and e²⁰⁰ for one
    /// standard deviation, which is to say that the data do not determine it.
    pub smallest_information: f64,
    /// Steps of one climb. 100: good data need 4 to 8, hard ones 30; more means that the climb follows a ridge to
    /// infinity.
    pub iteration_limit: usize,
    /// Longest change of one parameter in one step, internal scale. 3: far beyond any quadratic model's reach,
    /// so it only stops nonsense. It doubles along a slope that stays straight.
    pub longest_step: f64,
    /// Largest cure coefficient or intercept, internal scale, in which a maximum is believed.
    /// 50: beyond 40 a probability is 0 or 1 in double precision.
    pub largest_cure_coefficient: f64,
    /// Largest latency coefficient or intercept and largest σ, internal scale. 1e3: times e^1000 apart.
    pub largest_latency_coefficient: f64,
    /// Smallest σ relative to the standard deviation of the log event times. 1e-6: covariates that predict times to
    /// six digits; also the precision to which log times are known when times are single precision numbers.
    pub smallest_sigma: f64,
    /// A covariate is constant when its standard deviation is below this share of its largest absolute value. 1e-11:
    /// closer, its differences would have fewer than five correct digits.
    pub constant_tolerance: f64,
    /// Covariates are collinear when one has a smaller share of its variance unexplained by those before it. 1e-9:
    /// coefficients would lose more than half of their digits.
    pub collinear_tolerance: f64,
    /// Event times are predicted perfectly when least squares leaves a smaller share of the variance of their
    /// logarithms. 1e-12 is the square of `smallest_sigma`.
    pub residual_tolerance: f64,
    /// Up to this many units every start is tried, above it only the first unless it fails. 1,500: small samples
    /// have several maxima, and there starts are cheap.
    pub multistart_units: usize,
    /// Difference of log-likelihood that makes two maxima different. 1e-6: far above rounding, far below any meaning.
    pub value_tolerance: f64,
    /// First strength of the penalty that is used when the likelihood has no finite maximum: about a tenth of one
    /// unit's information.
    pub remedy_strength: f64,
    /// Factor by which that strength grows until the penalised maximum is certified. 4: half a standard deviation at a
    /// time.
    pub remedy_growth: f64,
    /// How often it may grow. 16: up to 4·10⁸ units' worth, where the penalty alone decides.
    pub remedy_limit: usize,
}

impl Default for FitOptions {
    fn default() -> FitOptions {
        FitOptions {
            cure_ridge: 0.0,
            latency_ridge: 0.0,
            gradient_tolerance: 1e-7,
            smallest_information: 1e-4,
            iteration_limit: 100,
            longest_step: 3.0,
            largest_cure_coefficient: 50.0,
            largest_latency_coefficient: 1e3,
            smallest_sigma: 1e-6,
            constant_tolerance: 1e-11,
            collinear_tolerance: 1e-9,
            residual_tolerance: 1e-12,
            multistart_units: 1500,
            value_tolerance: 1e-6,
            remedy_strength: 0.1,
            remedy_growth: 4.0,
            remedy_limit: 16,
        }
    }
}

/// Why there is nothing to fit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FitError {
    /// The arm is empty.
    NoUnits,
    /// No unit had an event at a positive time before the horizon: there are no event times to model.
    NoEvent {
        /// Units in the arm.
        n_units: usize,
    },
    /// The slices do not describe the same units.
    Shape {
        /// Which slice.
        what: &'static str,
        /// Numbers it should hold.
        expected: usize,
        /// Numbers it holds.
        found: usize,
    },
    /// A number that is not finite (the horizon may be `+∞` but must be positive).
    NotFinite {
        /// `time`, `covariates` or `horizon`.
        what: &'static str,
        /// Position in its slice.
        position: usize,
    },
    /// The likelihood is not a finite number at any starting point, under any penalty. No such data are known.
    NoFiniteStart,
    /// An option that cannot be used: negative or not a number.
    Option {
        /// Its name.
        name: &'static str,
    },
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FitError::NoUnits => write!(f, "the arm has no units"),
            FitError::NoEvent { n_units } => {
                write!(f, "none of the {n_units} units of the arm had an event before the horizon")
            }
            FitError::Shape { what, expected, found } => {
                write!(f, "`{what}` should hold {expected} numbers and holds {found}")
            }
            FitError::NotFinite { what, position } => {
                write!(f, "`{what}` is not a finite number at position {position}")
            }
            FitError::NoFiniteStart => write!(f, "the likelihood is not a finite number at any starting point"),
            FitError::Option { name } => write!(f, "the option `{name}` is negative or not a number"),
        }
    }
}

impl std::error::Error for FitError {}

/// One linear part of the model, in the units of the caller's covariates.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Value of the linear predictor where every covariate is zero.
    pub intercept: f64,
    /// One coefficient for each covariate. Zero for a covariate that is constant in this arm.
    pub coefficients: Vec<f64>,
    /// Standard error of the intercept, where the fit is certified and has more units than covariates.
    pub intercept_se: Option<f64>,
    /// Standard errors of the coefficients, where the fit is certified. Zero for a covariate that is constant in
    /// this arm: it was held, not estimated.
    pub standard_errors: Option<Vec<f64>>,
}

/// The penalty that a fit maximised under.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalty {
    /// [`FitOptions::cure_ridge`].
    pub cure_ridge: f64,
    /// [`FitOptions::latency_ridge`].
    pub latency_ridge: f64,
    /// Strength of the remedy, where the likelihood (with these ridges) had no finite maximum: a ridge of this
    /// strength on every coefficient and intercept in the internal scale, and as many pseudo-events for σ.
    pub remedy: Option<f64>,
    /// Log-likelihood minus all penalties, the remedy's up to a constant: what was maximised.
    pub objective: f64,
}

/// Why the fit ended where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// At a maximum of the likelihood.
    Maximum,
    /// At a maximum of the penalised likelihood.
    PenalisedMaximum,
    /// The parameters ran away and no penalty held them.
    Diverged,
    /// No step increased the objective although its gradient is not zero.
    Stalled,
    /// Out of iterations.
    IterationLimit,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StopReason::Maximum => "a maximum of the likelihood",
            StopReason::PenalisedMaximum => "a maximum of the penalised likelihood",
            StopReason::Diverged => "the parameters ran away",
            StopReason::Stalled => "no step increased the likelihood, although it is not at a maximum",
            StopReason::IterationLimit => "out of iterations",
        })
    }
}

/// Something about the fit that its reader must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flag {
    /// Every unit had its event before the horizon.
    NoneCured,
    /// Nobody was seen event-free at a finite horizon: what is known of cure rests on the shape of the latency.
    NoneReachedHorizon,
    /// The probability of cure runs to zero or one for everyone.
    CureShareDiverges,
    /// Covariates separate the cured from the uncured: cure coefficients run to infinity.
    Separation,
    /// The latency's location or spread runs to infinity.
    LatencyDiverges,
    /// The covariates predict the event times perfectly: σ runs to zero.
    TimesPredicted,
    /// There are no more events than latency parameters.
    FewEvents {
        /// Events.
        n_events: usize,
        /// Parameters of the latency, σ among them.
        n_parameters: usize,
    },
    /// There are no fewer covariates that vary than units: the penalty decides all but what the units span, and there
    /// are no standard errors.
    MoreCovariatesThanUnits {
        /// Covariates.
        n_covariates: usize,
        /// Units.
        n_units: usize,
    },
    /// The model was fitted without these many covariates, whose coefficients are held at zero.
    CovariatesLeftOut {
        /// How many.
        n_covariates: usize,
    },
    /// This covariate does not vary in the arm; its coefficients are held at zero.
    ConstantCovariate {
        /// Its column.
        column: usize,
    },
    /// This covariate is a linear combination of those before it.
    CollinearCovariate {
        /// Its column.
        column: usize,
    },
    /// The likelihood is higher towards infinite parameters than at its best finite maximum.
    HigherAtInfinity,
    /// Different starts ended at different maxima; the best is reported.
    SeveralMaxima,
    /// Events at time zero or below, impossible for a log-normal time, were moved to half the smallest positive event
    /// time.
    EventAtZero {
        /// How many.
        n_units: usize,
    },
    /// No maximum of the likelihood could be certified, for a reason that was not recognised.
    NotCertified,
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flag::NoneCured => f.write_str(
                "every unit had the event before the horizon, so the data only say that the probability of cure is small",
            ),
            Flag::NoneReachedHorizon => f.write_str(
                "no unit was followed event-free to the horizon, so cure is told from late events by the shape of the latency alone",
            ),
            Flag::CureShareDiverges => f.write_str("the fitted probability of cure runs to zero or one for everyone"),
            Flag::Separation => f.write_str(
                "covariates separate cured from uncured units, so some cure coefficients have no finite estimate",
            ),
            Flag::LatencyDiverges => f.write_str(
                "the location or spread of the event times runs to infinity: events crowd towards the horizon, or a covariate has no events on one side",
            ),
            Flag::TimesPredicted => {
                f.write_str("the covariates predict the event times perfectly, so the spread σ runs to zero")
            }
            Flag::FewEvents { n_events, n_parameters } => {
                write!(f, "{n_events} events cannot determine the {n_parameters} parameters of the latency")
            }
            Flag::MoreCovariatesThanUnits { n_covariates, n_units } => write!(
                f,
                "{n_covariates} covariates and {n_units} units: coefficients are those of a penalty and have no standard errors",
            ),
            Flag::CovariatesLeftOut { n_covariates } => {
                write!(f, "{n_covariates} covariates of small weight were left out; their coefficients are held at zero")
            }
            Flag::ConstantCovariate { column } => {
                write!(f, "covariate {column} does not vary in this arm; its coefficients are held at zero")
            }
            Flag::CollinearCovariate { column } => {
                write!(f, "covariate {column} is a linear combination of earlier ones; they share their effect")
            }
            Flag::HigherAtInfinity => f.write_str(
                "the likelihood is higher towards infinite parameters than at its best finite maximum",
            ),
            Flag::SeveralMaxima => f.write_str("the likelihood has several maxima; the best one found is reported"),
            Flag::EventAtZero { n_units } => write!(
                f,
                "{n_units} events at time zero or below were moved to half the smallest positive event time"
            ),
            Flag::NotCertified => f.write_str("no maximum of the likelihood could be certified"),
        }
    }
}

/// Whether to believe the fit, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The gradient vanishes and the information matrix is positive definite, both by the tolerances of the
    /// options, for the objective that was maximised (see `penalty`).
    pub converged: bool,
    /// Why it ended here.
    pub stop_reason: StopReason,
    /// Steps of the climb that led here.
    pub iterations: usize,
    /// Evaluations of the likelihood with both derivatives, over all starts and penalties.
    pub evaluations: usize,
    /// `√(g' I⁻¹ g)` with gradient `g` and information matrix `I`: the distance to the optimum in standard errors,
    /// free of units. Infinite where `I` is not positive definite.
    pub gradient_norm: f64,
    /// Smallest eigenvalue of the information matrix (negative Hessian of the objective) in the internal scale.
    pub smallest_eigenvalue: f64,
    /// The penalty, where there was one. `None` means that this is a maximum likelihood estimate, if `converged`.
    pub penalty: Option<Penalty>,
    /// What the reader must know. Empty for an ordinary fit.
    pub flags: Vec<Flag>,
}

/// A fitted mixture cure model of one arm.
#[derive(Clone, Debug, PartialEq)]
pub struct CureModel {
    /// Logit of the probability of cure.
    pub cure: Part,
    /// Location of the log event time of the uncured.
    pub latency: Part,
    /// `ln σ`.
    pub log_sigma: f64,
    /// Standard error of `ln σ`, where the fit is certified.
    pub log_sigma_se: Option<f64>,
    /// Covariance of all parameters, row-major, in the order cure intercept, cure coefficients, latency intercept,
    /// latency coefficients, `ln σ`: the inverse of the information matrix of the objective, in the caller's units.
    /// Rows of covariates that are constant in this arm are zero. `None` where the fit is not certified, has no fewer
    /// covariates than units, or left covariates out.
    pub covariance: Option<Vec<f64>>,
    /// Log-likelihood at the estimate, without any penalty.
    pub log_likelihood: f64,
    /// Horizon of the model.
    pub horizon: f64,
    /// Units.
    pub n_units: usize,
    /// Units with the event before the horizon.
    pub n_events: usize,
    /// Units lost before the horizon.
    pub n_censored: usize,
    /// Units known not to have the event before the horizon: seen event-free there, or with an event of another cause.
    pub n_reached_horizon: usize,
    /// Whether to believe all this.
    pub certificate: Certificate,
    /// Means of the covariates and the two linear predictors there: predictions start from the centre of the data,
    /// because an intercept far from the data has lost its digits.
    pub center: Vec<f64>,
    /// The logit of cure at the centre.
    pub cure_at_center: f64,
    /// The latency's location at the centre.
    pub latency_at_center: f64,
}

impl CureModel {
    /// Logit of the probability of cure, `b₀ + x'b`.
    pub fn cure_logit(&self, x: &[f64]) -> f64 {
        self.predictor(self.cure_at_center, &self.cure.coefficients, x)
    }

    /// Location of the log event time of the uncured, `l₀ + x'l`.
    pub fn latency_location(&self, x: &[f64]) -> f64 {
        self.predictor(self.latency_at_center, &self.latency.coefficients, x)
    }

    /// `P(T ≥ H | x)`.
    pub fn cure_probability(&self, x: &[f64]) -> f64 {
        expit(self.cure_logit(x))
    }

    /// `E[T | T < H, x]`, the mean of the truncated log-normal. Infinite only where it is (horizon infinite, huge σ).
    pub fn mean_event_time(&self, x: &[f64]) -> f64 {
        likelihood::truncated_mean(libm::log(self.horizon), self.latency_location(x), self.log_sigma)
    }

    /// `P(T > t | x) = p + (1 - p) P(T > t | T < H, x)`; from the horizon on it is the probability of cure.
    pub fn survival(&self, x: &[f64], t: f64) -> f64 {
        let p = self.cure_probability(x);
        if t >= self.horizon {
            return p;
        }
        if t <= 0.0 {
            return 1.0;
        }
        let log_k =
            likelihood::log_survival(libm::log(self.horizon), libm::log(t), self.latency_location(x), self.log_sigma);
        p + expit(-self.cure_logit(x)) * libm::exp(log_k)
    }

    /// Number of covariates.
    pub fn n_covariates(&self) -> usize {
        self.center.len()
    }

    fn predictor(&self, at_center: f64, coefficients: &[f64], x: &[f64]) -> f64 {
        assert_eq!(x.len(), self.center.len(), "one number for each covariate");
        x.iter().zip(&self.center).zip(coefficients).fold(at_center, |sum, ((x, c), b)| sum + (x - c) * b)
    }
}

/// Fits the model to arrays of one arm, by maximum likelihood. Nobody vouches for where the arrays come from, so the
/// model describes them and is not [`Trained`].
///
/// Never panics on finite input and never returns a number without its reason: where the likelihood has no finite
/// maximum the answer is a flagged, penalised fit (see [`Certificate`]).
///
/// # Errors
/// Where the arrays are no data of one arm, or there is nothing to fit: see [`FitError`].
pub fn describe(data: &ArmData<'_>, options: &FitOptions) -> Result<CureModel, FitError> {
    prepare::check(data)?;
    fit_arm(data, options)
}

/// Fits the model to one arm of sound data, by maximum likelihood.
fn fit_arm(data: &ArmData<'_>, options: &FitOptions) -> Result<CureModel, FitError> {
    for (name, value) in [("cure_ridge", options.cure_ridge), ("latency_ridge", options.latency_ridge)] {
        if !(value >= 0.0 && value.is_finite()) {
            return Err(FitError::Option { name });
        }
    }
    let arm = Prepared::new(data, options)?;
    let likelihood = arm.likelihood(&arm.design, arm.width());
    let starts = Starts::new(&arm);
    let mut flags = arm.flags.clone();
    // Where the penalty decides most, other starts are not worth their time.
    let every_start = arm.n_units() <= options.multistart_units && arm.rotation.is_none();
    let mut search = Search { arm: &arm, likelihood: &likelihood, starts: &starts, options, evaluations: 0 };

    // The likelihood itself, with the caller's ridges, unless it is known to have no maximum.
    let ridges = Ridges::of(options, &arm, None, 0.0);
    let mut best = None;
    if arm.may_have_a_maximum(options) {
        let found = search.run(&ridges, every_start);
        match found.best {
            Some(climb) if !found.higher_at_infinity => {
                if found.several {
                    flags.push(Flag::SeveralMaxima);
                }
                best = Some((climb, ridges));
            }
            Some(_) => {
                flags.push(Flag::HigherAtInfinity);
                flags.extend(found.last.iter().flat_map(|climb| arm.diagnose(climb, options)));
            }
            None => flags.extend(found.last.iter().flat_map(|climb| arm.diagnose(climb, options))),
        }
    }
    // The remedy: a penalty that grows until there is a maximum that can be certified.
    let mut strength = options.remedy_strength;
    let mut last = None;
    for _ in 0..=options.remedy_limit {
        if best.is_some() {
            break;
        }
        let ridges = Ridges::of(options, &arm, Some(strength), starts.cure_logit);
        let found = search.run(&ridges, every_start);
        match found.best {
            Some(climb) => best = Some((climb, ridges)),
            None => last = found.last.map(|climb| (climb, ridges)),
        }
        strength *= options.remedy_growth;
    }
    let evaluations = search.evaluations;
    let converged = best.is_some();
    let Some((climb, ridges)) = best.or(last) else {
        return Err(FitError::NoFiniteStart);
    };
    Ok(report(&arm, &likelihood, climb, &ridges, converged, evaluations, flags))
}

/// The cure models of both arms that a run is reported with.
#[derive(Clone, Debug, PartialEq)]
pub enum ArmModels {
    /// They trained on some units, and may be asked about the others.
    Trained(ByArm<Trained<CureModel>>),
    /// They were fitted to everybody. They describe the cohort, and no estimate uses them.
    Described(ByArm<CureModel>),
}

impl ArmModels {
    /// The models that may be asked about units to be estimated; `None` where they only describe the cohort.
    pub fn trained(&self) -> Option<&ByArm<Trained<CureModel>>> {
        match self {
            ArmModels::Trained(models) => Some(models),
            ArmModels::Described(_) => None,
        }
    }

    /// The models of both arms, to be shown.
    pub fn each_ref(&self) -> ByArm<&CureModel> {
        ByArm::of(|arm| &self[arm])
    }
}

impl std::ops::Index<Arm> for ArmModels {
    type Output = CureModel;

    fn index(&self, arm: Arm) -> &CureModel {
        match self {
            ArmModels::Trained(models) => &models[arm],
            ArmModels::Described(models) => &models[arm],
        }
    }
}

/// Quadratic penalties in the internal scale, and the remedy.
#[derive(Clone, Copy, Debug)]
struct Ridges {
    /// As the caller gave them.
    cure_ridge: f64,
    latency_ridge: f64,
    /// On internal latency coefficients.
    latency_internal: f64,
    remedy: Option<f64>,
    /// Where the remedy pulls the cure intercept.
    cure_logit: f64,
}

impl Ridges {
    fn of(options: &FitOptions, arm: &Prepared, remedy: Option<f64>, cure_logit: f64) -> Ridges {
        Ridges {
            cure_ridge: options.cure_ridge,
            latency_ridge: options.latency_ridge,
            latency_internal: options.latency_ridge * arm.log_scale * arm.log_scale,
            remedy,
            cure_logit,
        }
    }
}

/// Log-likelihood minus penalties: ridges on the coefficients and, for a remedy of strength `λ`,
/// `λ/2 (|b|² + |l|² + (b₀ - logit)² + l₀²) + λ (t + exp(-2t)/2)`: the last is minus the log-likelihood of `λ`
/// events whose residuals have the variance of the log event times.
struct Penalised<'a> {
    likelihood: &'a Likelihood<LogNormal>,
    ridges: &'a Ridges,
}

impl Objective for Penalised<'_> {
    fn len(&self) -> usize {
        self.likelihood.n_parameters()
    }

    fn evaluate(&self, theta: &[f64], out: &mut Evaluation) {
        self.likelihood.evaluate(theta, out);
        let d = (theta.len() - 1) / 2;
        let remedy = self.ridges.remedy.unwrap_or(0.0);
        let mut pull = |j: usize, center: f64, strength: f64| {
            let x = theta[j] - center;
            out.value -= 0.5 * strength * x * x;
            out.gradient[j] -= strength * x;
            out.hessian[(j, j)] -= strength;
        };
        for j in 1..d {
            pull(j, 0.0, self.ridges.cure_ridge + remedy);
            pull(d + j, 0.0, self.ridges.latency_internal + remedy);
        }
        if remedy > 0.0 {
            pull(0, self.ridges.cure_logit, remedy);
            pull(d, 0.0, remedy);
            let t = theta[2 * d];
            let inverse = libm::exp(-2.0 * t);
            out.value -= remedy * (t + 0.5 * inverse);
            out.gradient[2 * d] -= remedy * (1.0 - inverse);
            out.hessian[(2 * d, 2 * d)] -= 2.0 * remedy * inverse;
        }
    }
}

/// A climb and the smallest eigenvalue of minus its Hessian.
struct Climb {
    ascent: Ascent,
    smallest_eigenvalue: f64,
}

/// What a search over starts found.
struct Found {
    /// The best certified maximum.
    best: Option<Climb>,
    /// Whether a climb that is not certified went higher.
    higher_at_infinity: bool,
    /// Whether there were several certified maxima.
    several: bool,
    /// The highest climb that is not certified.
    last: Option<Climb>,
}

struct Search<'a> {
    arm: &'a Prepared,
    likelihood: &'a Likelihood<LogNormal>,
    starts: &'a Starts,
    options: &'a FitOptions,
    evaluations: usize,
}

impl Search<'_> {
    /// Climbs from the first start; from the others too with `all`, or while nothing is certified.
    fn run(&mut self, ridges: &Ridges, all: bool) -> Found {
        let objective = Penalised { likelihood: self.likelihood, ridges };
        let limits = self.limits();
        let tolerance = |value: f64| self.options.value_tolerance * (1.0 + 1e-3 * value.abs());
        let mut found = Found { best: None, higher_at_infinity: false, several: false, last: None };
        for i in 0..Starts::COUNT {
            // In large samples a second start is a second chance, not a search.
            if !all && (found.best.is_some() || i == 2) {
                break;
            }
            let start = self.starts.point(i, self.arm, self.options);
            let ascent = maximize(&objective, start, &limits);
            self.evaluations += ascent.evaluations;
            if ascent.stop == Stop::NotFinite {
                continue;
            }
            let smallest_eigenvalue =
                if ascent.stop == Stop::Maximum { smallest_eigenvalue(&ascent.at.hessian) } else { f64::NAN };
            let certified = ascent.stop == Stop::Maximum && smallest_eigenvalue > self.options.smallest_information;
            let climb = Climb { ascent, smallest_eigenvalue };
            let place = if certified { &mut found.best } else { &mut found.last };
            match place {
                None => *place = Some(climb),
                Some(old) => {
                    let (old_value, value) = (old.ascent.at.value, climb.ascent.at.value);
                    found.several |= certified && (old_value - value).abs() > tolerance(value);
                    if value > old_value {
                        *place = Some(climb);
                    }
                }
            }
        }
        if let (Some(best), Some(last)) = (&found.best, &found.last) {
            let value = best.ascent.at.value;
            found.higher_at_infinity = last.ascent.at.value > value + tolerance(value);
        }
        if let Some(last) = &mut found.last {
            last.smallest_eigenvalue = smallest_eigenvalue(&last.ascent.at.hessian);
        }
        found
    }

    fn limits(&self) -> Limits {
        let (options, d) = (self.options, self.arm.width());
        let mut bounds = vec![(-options.largest_cure_coefficient, options.largest_cure_coefficient); d];
        bounds.resize(2 * d, (-options.largest_latency_coefficient, options.largest_latency_coefficient));
        bounds.push((libm::log(options.smallest_sigma), libm::log(options.largest_latency_coefficient)));
        Limits {
            decrement: options.gradient_tolerance,
            iterations: options.iteration_limit,
            step: options.longest_step,
            curvature: options.smallest_information,
            bounds,
        }
    }
}

fn smallest_eigenvalue(hessian: &DMatrix<f64>) -> f64 {
    (-hessian).symmetric_eigenvalues().min()
}

impl Prepared {
    /// Whether the likelihood can have a finite maximum, by what is known before any climb.
    fn may_have_a_maximum(&self, options: &FitOptions) -> bool {
        let ridged = options.cure_ridge > 0.0 && options.latency_ridge > 0.0;
        !self.flags.iter().any(|flag| match flag {
            Flag::NoneCured | Flag::FewEvents { .. } | Flag::TimesPredicted => true,
            Flag::CollinearCovariate { .. } => !ridged,
            _ => false,
        })
    }

    /// Which parameters ran away: those that left their bounds, and those in whose direction the objective is flat.
    fn diagnose(&self, climb: &Climb, options: &FitOptions) -> Vec<Flag> {
        let d = self.width();
        let ascent = &climb.ascent;
        let collapsed = ascent.theta[2 * d] < libm::log(COLLAPSED_SIGMA);
        let last = if collapsed { Flag::TimesPredicted } else { Flag::LatencyDiverges };
        let parts = [
            (0, 1, Flag::CureShareDiverges),
            (1, d, Flag::Separation),
            (d, 2 * d, Flag::LatencyDiverges),
            (2 * d, 2 * d + 1, last),
        ];
        let eigen = SymmetricEigen::new(-&ascent.at.hessian);
        // A climb ends where the first direction is flat; others that run away are then still on their way.
        let flattening = libm::sqrt(options.smallest_information);
        let is_flat = |&k: &usize| eigen.eigenvalues[k] <= flattening;
        let mut flat: Vec<usize> = (0..=2 * d).filter(is_flat).collect();
        if flat.is_empty() && !matches!(ascent.stop, Stop::LeftBounds(_)) {
            // Out of iterations on the way: the flattest direction is the one it was following.
            flat.push(eigen.eigenvalues.imin());
        }
        let mut flags = Vec::new();
        for (from, to, flag) in parts {
            let left = matches!(ascent.stop, Stop::LeftBounds(j) if (from..to).contains(&j));
            let share = |&k: &usize| eigen.eigenvectors.column(k).rows(from, to - from).norm_squared();
            if (left || flat.iter().any(|k| share(k) > FLAT_SHARE)) && !flags.contains(&flag) {
                flags.push(flag);
            }
        }
        if flags.is_empty() {
            flags.push(Flag::NotCertified);
        }
        flags
    }
}

/// σ below this share of the standard deviation of the log event times is on its way to zero.
const COLLAPSED_SIGMA: f64 = 1e-3;
/// A part of the model takes part in a flat direction when it holds this share of its squared length.
const FLAT_SHARE: f64 = 0.2;

/// From the internal scale to the caller's.
fn report(
    arm: &Prepared,
    likelihood: &Likelihood<LogNormal>,
    climb: Climb,
    ridges: &Ridges,
    converged: bool,
    evaluations: usize,
    flags: Vec<Flag>,
) -> CureModel {
    let Climb { ascent, smallest_eigenvalue } = climb;
    let p = arm.center.len();
    let theta = &match &arm.rotation {
        None => ascent.theta.clone(),
        Some(rotation) => {
            let (cure, rest) = ascent.theta.split_at(arm.width());
            let (latency, log_sigma) = rest.split_at(arm.width());
            let part = |of: &[f64]| [vec![of[0]], rotation.back(&of[1..])].concat();
            [part(cure), part(latency), log_sigma.to_vec()].concat()
        }
    };
    let d = arm.kept.len() + 1;
    // One sparse linear map takes the internal parameters, and their covariance, to the caller's: for each parameter
    // the internal ones it is made of, with their weights. A held coefficient is made of none.
    let n_out = 2 * p + 3;
    let mut map: Vec<Vec<(usize, f64)>> = vec![Vec::new(); n_out];
    for (part, scale) in [(0, 1.0), (1, arm.log_scale)] {
        let (row, column) = (part * (p + 1), part * d);
        map[row].push((column, scale));
        for (k, &j) in arm.kept.iter().enumerate() {
            map[row + 1 + j].push((column + 1 + k, scale / arm.scale[j]));
            map[row].push((column + 1 + k, -scale * (arm.center[j] / arm.scale[j])));
        }
    }
    map[n_out - 1].push((2 * d, 1.0));
    let combine =
        |terms: &[(usize, f64)], of: &dyn Fn(usize) -> f64| terms.iter().map(|&(k, w)| w * of(k)).sum::<f64>();
    let mut parameters: Vec<f64> = map.iter().map(|terms| combine(terms, &|k| theta[k])).collect();
    parameters[p + 1] += arm.log_center;
    parameters[n_out - 1] += libm::log(arm.log_scale);
    let has_errors = converged && arm.rotation.is_none();
    let covariance = if has_errors { optimize::factor(&ascent.at.hessian, 0.0) } else { None }.map(|cholesky| {
        let mut inverse = cholesky.inverse();
        if let Some(clusters) = &arm.clusters {
            // The sandwich of [Huber 1967]: with weights or clusters the information is not the variance of the score.
            inverse = &inverse * likelihood.score_products(theta, clusters) * &inverse;
        }
        let half = DMatrix::from_fn(2 * d + 1, n_out, |k, j| combine(&map[j], &|l| inverse[(k, l)]));
        DMatrix::from_fn(n_out, n_out, |i, j| combine(&map[i], &|k| half[(k, j)]))
    });
    let se = |j: usize| covariance.as_ref().map(|c| libm::sqrt(c[(j, j)].max(0.0)));
    let part = |row: usize| Part {
        intercept: parameters[row],
        coefficients: parameters[row + 1..row + 1 + p].to_vec(),
        intercept_se: se(row),
        standard_errors: covariance.as_ref().and_then(|_| (row + 1..row + 1 + p).map(se).collect()),
    };
    let (cure, latency) = (part(0), part(p + 1));
    let penalised = ridges.cure_ridge > 0.0 || ridges.latency_ridge > 0.0 || ridges.remedy.is_some();
    let mut plain = Evaluation::new(ascent.theta.len());
    let internal = if penalised {
        likelihood.evaluate(&ascent.theta, &mut plain);
        plain.value
    } else {
        ascent.at.value
    };
    let stop_reason = match ascent.stop {
        _ if converged && penalised => StopReason::PenalisedMaximum,
        _ if converged => StopReason::Maximum,
        Stop::LeftBounds(_) | Stop::Flat | Stop::Maximum => StopReason::Diverged,
        Stop::Stalled | Stop::NotFinite => StopReason::Stalled,
        Stop::IterationLimit => StopReason::IterationLimit,
    };
    CureModel {
        log_sigma: parameters[n_out - 1],
        log_sigma_se: se(n_out - 1),
        // nalgebra is column-major; a covariance is symmetric but for rounding.
        covariance: covariance.map(|c| c.transpose().as_slice().to_vec()),
        log_likelihood: internal + arm.log_jacobian,
        horizon: arm.horizon,
        n_units: arm.n_units(),
        n_events: arm.n_events,
        n_censored: arm.n_censored,
        n_reached_horizon: arm.n_units() - arm.n_events - arm.n_censored,
        certificate: Certificate {
            converged,
            stop_reason,
            iterations: ascent.iterations,
            evaluations,
            gradient_norm: ascent.decrement,
            smallest_eigenvalue,
            penalty: penalised.then_some(Penalty {
                cure_ridge: ridges.cure_ridge,
                latency_ridge: ridges.latency_ridge,
                remedy: ridges.remedy,
                objective: ascent.at.value + arm.log_jacobian,
            }),
            flags,
        },
        center: arm.center.clone(),
        cure_at_center: theta[0],
        latency_at_center: arm.log_center + arm.log_scale * theta[d],
        cure,
        latency,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fewer units than covariates, two of which are the same: what was found in the space of the rows is a maximum in
    /// all directions.
    #[test]
    fn a_fit_in_the_space_of_the_rows_is_the_fit_in_all_covariates() {
        let (n, p) = (24, 40);
        let x = |i: usize, j: usize| ((i * 7_919 + j * 104_729 + i * i * (j + 1)) % 1_009) as f64 / 504.0 - 1.0;
        let covariates: Vec<f64> =
            (0..n * p).map(|k| if k % p == 39 { x(k / p, 0) } else { x(k / p, k % p) }).collect();
        let time: Vec<f64> = (0..n).map(|i| (3.0 + x(i, 3) + 0.5 * x(i, 50)).exp()).collect();
        let event: Vec<bool> = (0..n).map(|i| i % 3 != 0).collect();
        let data = ArmData {
            time: &time,
            event: &event,
            covariates: &covariates,
            n_covariates: p,
            horizon: 40.0,
            extras: None,
        };
        for options in
            [FitOptions::default(), FitOptions { cure_ridge: 2.0, latency_ridge: 0.5, ..FitOptions::default() }]
        {
            let model = describe(&data, &options).unwrap();
            let certificate = &model.certificate;
            assert!(certificate.converged && model.covariance.is_none());
            assert!(certificate.flags.contains(&Flag::MoreCovariatesThanUnits { n_covariates: p, n_units: n }));
            let arm = Prepared::new(&data, &options).unwrap();
            assert_eq!(arm.width(), n, "an intercept and the n - 1 directions of centred rows");
            let of_unit = |i: usize| (0..p).map(move |j| (i, j));
            let scaled = |(i, j): (usize, usize)| (covariates[i * p + j] - arm.center[j]) / arm.scale[j];
            let design: Vec<f64> = (0..n).flat_map(|i| [1.0].into_iter().chain(of_unit(i).map(scaled))).collect();
            let likelihood = arm.likelihood(&design, p + 1);
            let remedy = certificate.penalty.unwrap().remedy;
            let ridges = Ridges::of(&options, &arm, remedy, Starts::new(&arm).cure_logit);
            let slopes = |part: &Part, unit: f64| -> Vec<f64> {
                (0..p).map(|j| part.coefficients[j] * arm.scale[j] / unit).collect()
            };
            let theta = [
                vec![model.cure_at_center],
                slopes(&model.cure, 1.0),
                vec![(model.latency_at_center - arm.log_center) / arm.log_scale],
                slopes(&model.latency, arm.log_scale),
                vec![model.log_sigma - arm.log_scale.ln()],
            ]
            .concat();
            let mut at = Evaluation::new(theta.len());
            Penalised { likelihood: &likelihood, ridges: &ridges }.evaluate(&theta, &mut at);
            assert!(at.gradient.amax() < 1e-5, "{}", at.gradient.amax());
            let objective = certificate.penalty.unwrap().objective;
            assert!((at.value + arm.log_jacobian - objective).abs() < 1e-8, "{} {objective}", at.value);
            assert!((model.cure.coefficients[0] - model.cure.coefficients[39]).abs() < 1e-9, "twins share");
        }
    }
}
