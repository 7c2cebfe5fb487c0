//! How a joint model is fitted, and every constant with its reason.

use super::Family;
use crate::estimand::ByEstimand;

/// What holds the slopes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Penalty {
    /// The empirical-Bayes mixture prior, learned with them.
    #[default]
    Learned,
    /// `Σ_g λ {mixing √|g| ‖φ_g‖ + (1 − mixing)/2 ‖φ_g‖²}`, in units of log-likelihood, on slopes of columns of unit
    /// standard deviation: ridge where `mixing` is 0, the (group) lasso where it is 1.
    ElasticNet {
        /// Share of the norm in the penalty.
        mixing: f64,
        /// λ of the cure and of the time part.
        strengths: ByEstimand<f64>,
    },
}

/// Family, search and every constant of the fit, each with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct JointOptions {
    /// Family of the event times.
    pub family: Family,
    /// What holds the slopes.
    pub penalty: Penalty,
    /// A number for each covariate; those of one number (the dummies of a category) are penalised together by an
    /// elastic net. Empty: each by itself.
    pub groups: Vec<usize>,
    /// Newton steps, each followed by an update of the prior. 9: 14 and 30 give the same accuracy in simulation, 7
    /// less (docs/accuracy.md).
    pub iterations: usize,
    /// Of at least twice so many units the first steps, which only leave zero, see so many of them, and after those the
    /// prior settles under a parabola that touches the likelihood of all units. 2,000: smaller fits are
    /// fast as they are.
    pub thinned_units: usize,
    /// How often that parabola is renewed. 2: at the second the first step after the updates is below a thousandth.
    pub renewals: usize,
    /// Newton steps after the last update, under its penalties: the model is then at the optimum that its certificate
    /// speaks of.
    pub final_steps: usize,
    /// Most rounds of the search for non-linear terms; zero for straight lines only.
    pub rounds: usize,
    /// Score statistic from which a term enters. 4.0: about Bonferroni's 5 % for three tests of each of 280
    /// candidates.
    pub entry: f64,
    /// Most terms that enter a part in one round. 6: strong terms change the scores of the others.
    pub most_terms: usize,
    /// Pseudo-count of the prior's point mass at zero in linear blocks. 3; one and ten give nearly the same.
    /// Non-linear blocks have one for each candidate, and linear ones one more for each covariate that was left out:
    /// they pay for the search.
    pub zero_count: f64,
    /// Penalty of every slope until the prior is first updated. 20: about what twenty units know of a slope.
    pub first_penalty: f64,
    /// Precision of intercepts and `ln σ` around their starts. 1e-4: nothing, except where the data say nothing.
    pub free_precision: f64,
    /// Steps before the first update of the prior. 3: slopes must have left zero.
    pub first_update: usize,
    /// After this step (counted from zero) a short step ends the climb.
    pub first_stop: usize,
    /// What a short step is, in the largest parameter.
    pub step_tolerance: f64,
    /// First damping, relative to the diagonal of the information; a tenth of it after a step that succeeds, ten times
    /// after one that fails.
    pub first_damping: f64,
    /// Most tries of a step.
    pub tries: usize,
    /// Longest change of one parameter in one step. 3: far beyond any quadratic model's reach, so it only stops
    /// nonsense.
    pub longest_step: f64,
    /// With more covariates than this each part keeps so many, by score in the model without covariates. 60: dense
    /// Newton steps on six parameters a covariate stay fast. Not studied.
    pub most_covariates: usize,
    /// Nor has a part more than one covariate for so many units (cure) or events (time), by the same score. 10: with
    /// 60 covariates of 300 units the error of time is half of that without (docs/accuracy.md); 5 to 20 give
    /// nearly the same.
    pub units_for_covariate: usize,
    /// But it may always have so many.
    pub fewest_covariates: usize,
    /// With more than 30 covariates candidate terms are made of so many, by the same score. 20 give at most 370.
    pub most_curved: usize,
}

impl Default for JointOptions {
    fn default() -> JointOptions {
        JointOptions {
            family: Family::LogNormal,
            penalty: Penalty::Learned,
            groups: Vec::new(),
            iterations: 9,
            thinned_units: 2000,
            renewals: 2,
            final_steps: 2,
            rounds: 3,
            entry: 4.0,
            most_terms: 6,
            zero_count: 3.0,
            first_penalty: 20.0,
            free_precision: 1e-4,
            first_update: 3,
            first_stop: 10,
            step_tolerance: 1e-5,
            first_damping: 1e-3,
            tries: 8,
            longest_step: 3.0,
            most_covariates: 60,
            units_for_covariate: 10,
            fewest_covariates: 10,
            most_curved: 20,
        }
    }
}
