//! Every method of the study, by name, over one set of fitted models: the paper's, its comparators, and what estimates
//! without matching.
//!
//! Most methods differ only in the [`Space`] in which units are matched; the groups, the curves and the effects are
//! those of the rest of the crate. What is fitted is fitted on the training set alone.
//!
//! | Method | cure matched in | time matched in |
//! | --- | --- | --- |
//! | MCM KNN | (abs β₁ + abs β₀)/2 | (abs λ₁ + abs λ₀)/2 |
//! | MCM KNN combined | mean of the two | the same |
//! | Feature selection KNN | equal weights on the covariates with p < .05 in either arm's Cox model | the same |
//! | Euclidean KNN | equal weights | the same |
//! | Propensity score KNN | fitted P(treated) | the same |
//! | Prognostic score KNN | mean over the arms of the Cox Ŝ(H) | the same |
//! | Optimal full matching | full matching on the propensity score, one weighted curve for each arm | the same |
//! | Cox, cure model | no matching: the fitted models' own S(H) and mean event time before H | the same |

use super::cox::{self, CoxFit, Ties};
use super::full::full_match;
use super::logistic::{self, LogisticFit};
use super::score::{self, LinearScore};
use super::select::Selection;
use super::{FitOptions, InvalidInput, Units};
use crate::arm::{Arm, ByArm};
use crate::cohort::Cohort;
use crate::cure::CureModel;
use crate::error::Error;
use crate::estimand::ByEstimand;
use crate::fold::Fit;
use crate::group::Pool;
use crate::interval::two_sided;
use crate::matching::Points;
use crate::metric::{Metric, MetricChoice, Metrics};
use crate::options::{Options, not_supported};
use crate::outcome::Outcome;
use crate::phrase;
use crate::phrase::Action;
use crate::search::ArmSearch;
use crate::split::{Split, Trained};
use crate::survival::{Summary, SurvivalCurve};
use crate::watch::Watch;

/// A way to estimate both effects of each unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// Full oracle: true weights, both potential outcomes of every unit, no censoring, cure status known. Needs the
    /// truth.
    Oracle,
    /// The groups of [`Method::PartialOracle`] with their outcomes uncensored. Needs the truth.
    UncensoredOracle,
    /// True weights, observed outcomes. Needs the truth.
    PartialOracle,
    /// The paper's method: one learned metric for each effect.
    McmKnn,
    /// The mean of the two learned metrics for both effects.
    McmKnnCombined,
    /// Equal weights on the covariates that a pooled Cox model selects.
    FeatureSelectionKnn,
    /// Equal weights on all covariates.
    EuclideanKnn,
    /// Nearest propensity scores.
    PropensityScoreKnn,
    /// Nearest prognostic scores.
    PrognosticScoreKnn,
    /// Optimal full matching on the propensity score; weighted curves of all units, so one effect for everybody.
    OptimalFullMatching,
    /// The same full matching, each subclass with curves of its own.
    FullMatchingSubclass,
    /// One Cox model for each arm, no matching.
    Cox,
    /// The two mixture cure models alone, no matching.
    CureModel,
}

impl Method {
    /// All of them, in the order of tables.
    pub const ALL: [Method; 13] = [
        Method::Oracle,
        Method::UncensoredOracle,
        Method::PartialOracle,
        Method::McmKnn,
        Method::McmKnnCombined,
        Method::FeatureSelectionKnn,
        Method::EuclideanKnn,
        Method::PropensityScoreKnn,
        Method::PrognosticScoreKnn,
        Method::OptimalFullMatching,
        Method::FullMatchingSubclass,
        Method::Cox,
        Method::CureModel,
    ];

    /// Those that a real cohort can be given to. Subclasses of a full matching are left out: with one or two units a
    /// side their curves say nothing of a unit, as the study shows.
    pub const FOR_COHORTS: [Method; 9] = [
        Method::McmKnn,
        Method::McmKnnCombined,
        Method::FeatureSelectionKnn,
        Method::EuclideanKnn,
        Method::PropensityScoreKnn,
        Method::PrognosticScoreKnn,
        Method::OptimalFullMatching,
        Method::Cox,
        Method::CureModel,
    ];

    /// Its name in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Method::Oracle => "oracle",
            Method::UncensoredOracle => "uncensored-oracle",
            Method::PartialOracle => "partial-oracle",
            Method::McmKnn => "mcm-knn",
            Method::McmKnnCombined => "mcm-knn-combined",
            Method::FeatureSelectionKnn => "feature-selection-knn",
            Method::EuclideanKnn => "euclidean-knn",
            Method::PropensityScoreKnn => "propensity-score-knn",
            Method::PrognosticScoreKnn => "prognostic-score-knn",
            Method::OptimalFullMatching => "optimal-full-matching",
            Method::FullMatchingSubclass => "full-matching-subclass",
            Method::Cox => "cox",
            Method::CureModel => "cure-model",
        }
    }

    /// Its name for people: the paper's, where it has one.
    pub fn label(self) -> &'static str {
        match self {
            Method::Oracle => "Oracle",
            Method::UncensoredOracle => "Partial oracle, uncensored",
            Method::PartialOracle => "Partial oracle",
            Method::McmKnn => "MCM KNN",
            Method::McmKnnCombined => "MCM KNN combined",
            Method::FeatureSelectionKnn => "Feature selection KNN",
            Method::EuclideanKnn => "Euclidean KNN",
            Method::PropensityScoreKnn => "Propensity score KNN",
            Method::PrognosticScoreKnn => "Prognostic score KNN",
            Method::OptimalFullMatching => "Optimal full matching",
            Method::FullMatchingSubclass => "Full matching, subclasses",
            Method::Cox => "Cox per arm (no match)",
            Method::CureModel => "Cure model (no match)",
        }
    }

    /// The method of this name.
    pub fn of_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|m| m.name() == name)
    }

    /// Whether only a simulation can run it.
    pub fn needs_truth(self) -> bool {
        matches!(self, Method::Oracle | Method::UncensoredOracle | Method::PartialOracle)
    }

    /// Whether its estimates depend on K.
    pub fn has_groups(self) -> bool {
        !matches!(self, Method::OptimalFullMatching | Method::FullMatchingSubclass | Method::Cox | Method::CureModel)
    }
}

/// Where units are placed to be matched: distance there is plain Euclidean distance.
#[derive(Clone, Debug, PartialEq)]
pub enum Space {
    /// Weighted covariates.
    Metric(Metric),
    /// One number: the mean of these scores of the covariates as recorded.
    Score(Vec<LinearScore>),
}

impl Space {
    /// Places units; covariates row by row, as recorded.
    pub fn place(&self, covariates: &[f64]) -> Points {
        match self {
            Space::Metric(metric) => metric.place(covariates),
            Space::Score(scores) => Points { dim: 1, coords: score::mean(scores, covariates) },
        }
    }
}

/// The space of each estimand.
#[derive(Clone, Debug, PartialEq)]
pub enum Spaces {
    /// One for both: neighbours are searched once.
    Both(Space),
    /// One for each.
    Each {
        /// For the cure effect.
        cure: Space,
        /// For the time effect.
        time: Space,
    },
}

/// Everything that the methods learn from the training set.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// Split, cure models and the paper's metrics.
    pub fit: Fit,
    /// One Cox model for each arm.
    pub cox: ByArm<CoxFit>,
    /// The covariates that either arm's Cox model finds.
    pub selection: Selection,
    /// Logistic regression of treatment.
    pub propensity: LogisticFit,
}

/// The level of feature selection.
pub const SELECTION_LEVEL: f64 = 0.05;

impl Learned {
    /// Fits every model on the training set of the honest split. `options.metric` plays no part: both readings are
    /// methods.
    pub fn learn(cohort: &Cohort, options: &Options, ties: Ties, watch: &dyn Watch) -> Result<Learned, Error> {
        let options = Options { metric: MetricChoice::Separate, ..options.clone() };
        if let Some(problem) = not_supported(cohort.extras(), "the comparison of methods", phrase!["use ", Action::Fit])
        {
            return Err(Error::Refused(vec![problem]));
        }
        let fit = Fit::learn(cohort, &options, watch)?;
        let split = Split::restored(cohort, fit.is_training.clone());
        let mut pooled = split.training().arm(Arm::Control);
        let mut treated = vec![false; pooled.time.len()];
        let other = split.training().arm(Arm::Treated);
        treated.resize(treated.len() + other.time.len(), true);
        pooled.time.extend(other.time);
        pooled.event.extend(other.event);
        pooled.covariates.extend(other.covariates);
        let p = cohort.n_covariates();
        let units = Units { covariates: &pooled.covariates, n_covariates: p, time: &pooled.time, event: &pooled.event };
        let fits = FitOptions::default();
        // The cohort is finite and has both arms, and so has its training set: these fits cannot be refused.
        let model = |e: InvalidInput| Error::Model { arm: "pooled", reason: e.to_string() };
        watch.progress("fitting the comparators", 0, 1);
        let (cox, propensity) = rayon::join(
            || cox::fit_arms(&units, &treated, ties, &fits),
            || logistic::fit(&pooled.covariates, p, &treated, &fits),
        );
        watch.progress("fitting the comparators", 1, 1);
        let cox = cox.map_err(model)?;
        let selection = Selection::of(&cox, SELECTION_LEVEL);
        Ok(Learned { fit, cox, selection, propensity: propensity.map_err(model)? })
    }

    /// Where a method matches; `None` for one that does not match in groups, or needs the truth.
    pub fn spaces(&self, method: Method, horizon: f64) -> Option<Spaces> {
        let scaling = &self.fit.description.metrics.cure.scaling;
        let p = scaling.center.len();
        let metric = |weights: Vec<f64>| Space::Metric(Metric { weights, scaling: scaling.clone() });
        Some(match method {
            Method::McmKnn => Spaces::Each {
                cure: Space::Metric(self.fit.description.metrics.cure.clone()),
                time: Space::Metric(self.fit.description.metrics.time.clone()),
            },
            Method::McmKnnCombined => {
                Spaces::Both(Space::Metric(Metrics::learn(self.models(), scaling, MetricChoice::Combined).cure))
            }
            Method::EuclideanKnn => Spaces::Both(metric(vec![1.0; p])),
            Method::FeatureSelectionKnn => {
                // Nothing selected is no reason to match on nothing: all covariates are kept.
                let mut weights = vec![if self.selection.selected.is_empty() { 1.0 } else { 0.0 }; p];
                self.selection.selected.iter().for_each(|&j| weights[j] = 1.0);
                Spaces::Both(metric(weights))
            }
            Method::PropensityScoreKnn => Spaces::Both(Space::Score(vec![self.propensity.score()])),
            Method::PrognosticScoreKnn => {
                Spaces::Both(Space::Score(self.cox.iter().map(|c| c.survival_score(horizon)).collect()))
            }
            _ => return None,
        })
    }

    /// Both effects of each estimated unit at each group size (ascending); `None` for a method that needs the truth.
    pub fn estimate<const N: usize>(
        &self,
        field: &Field<'_>,
        method: Method,
        sizes: [usize; N],
    ) -> Option<[MethodEffects; N]> {
        if method.needs_truth() {
            return None;
        }
        if let Some(spaces) = self.spaces(method, field.cohort.horizon()) {
            return Some(field.match_in(&spaces, sizes));
        }
        let found = match method {
            Method::Cox => {
                let effects = cox::effects(&self.cox, &field.covariates, field.cohort.horizon());
                let time = effects.time.map_or(vec![None; effects.cure.len()], |t| t.into_iter().map(Some).collect());
                MethodEffects { cure: effects.cure, time }
            }
            Method::CureModel => self.model_alone(field),
            Method::OptimalFullMatching => self.full_matching(field, false),
            _ => self.full_matching(field, true),
        };
        Some([(); N].map(|()| found.clone()))
    }

    /// The cure models, which trained: an honest split was made for them.
    fn models(&self) -> &ByArm<Trained<CureModel>> {
        self.fit.trained_models().expect("one honest split trains its models")
    }

    fn model_alone(&self, field: &Field<'_>) -> MethodEffects {
        let scaled = self.fit.description.metrics.cure.scaling.apply(&field.covariates);
        let ByArm { control, treated } = self.models();
        let rows = || scaled.chunks_exact(field.cohort.n_covariates());
        MethodEffects {
            cure: rows().map(|x| treated.cure_probability(x) - control.cure_probability(x)).collect(),
            time: rows().map(|x| Some(treated.mean_event_time(x) - control.mean_event_time(x))).collect(),
        }
    }

    /// Full matching of the estimation set on the propensity score.
    fn full_matching(&self, field: &Field<'_>, by_subclass: bool) -> MethodEffects {
        let cohort = field.cohort;
        let score = self.propensity.score().evaluate_all(&field.covariates);
        let treated: Vec<bool> = field.units.iter().map(|&i| cohort.arm(i as usize) == Arm::Treated).collect();
        let n = field.units.len();
        let Ok(matching) = full_match(&score, &treated) else {
            return MethodEffects { cure: vec![0.0; n], time: vec![None; n] };
        };
        let n_groups = if by_subclass { matching.n_subclasses } else { 1 };
        let group = |q: usize| if by_subclass { matching.subclass[q] } else { 0 };
        let mut members = vec![ByArm::<Vec<Outcome>>::default(); n_groups];
        for (q, &i) in field.units.iter().enumerate() {
            let plain = Outcome::plain(cohort.time(i as usize), cohort.event(i as usize));
            let unit = Outcome { weight: matching.weights[q], ..plain };
            members[group(q)][cohort.arm(i as usize)].push(unit);
        }
        let effects: Vec<(f64, Option<f64>)> = members
            .iter()
            .map(|arms| {
                let ByArm { control, treated } =
                    arms.each_ref().map(|units| SurvivalCurve::of_outcomes(units.clone()).summary(cohort.horizon()));
                let time = treated.mean_event_time().zip(control.mean_event_time()).map(|(t, c)| t - c);
                (treated.survival - control.survival, time)
            })
            .collect();
        MethodEffects {
            cure: (0..n).map(|q| effects[group(q)].0).collect(),
            time: (0..n).map(|q| effects[group(q)].1).collect(),
        }
    }
}

/// The estimated units of a cohort and the pools of both arms, gathered once for all methods.
pub struct Field<'a> {
    /// The cohort.
    pub cohort: &'a Cohort,
    /// Positions of the estimated units, ascending.
    pub units: Vec<u32>,
    /// Their covariates, row by row, as recorded.
    pub covariates: Vec<f64>,
    /// The units of each arm that groups are drawn from.
    pub pools: ByArm<Pool>,
    pool_covariates: ByArm<Vec<f64>>,
}

impl<'a> Field<'a> {
    /// Of the estimation set of a fit.
    pub fn new(cohort: &'a Cohort, fit: &Fit) -> Field<'a> {
        let units = fit.estimation_units();
        let covariates = units.iter().flat_map(|&i| cohort.covariates(i as usize)).copied().collect();
        let pools = ByArm::of(|arm| Pool::new(cohort, fit.units_in_pool(cohort, arm)));
        let pool_covariates = pools.each_ref().map(|pool| pool.covariates(cohort));
        Field { cohort, units, covariates, pools, pool_covariates }
    }

    /// Matches every unit in the given spaces and reads both effects off the groups' curves.
    pub fn match_in<const N: usize>(&self, spaces: &Spaces, sizes: [usize; N]) -> [MethodEffects; N] {
        match spaces {
            Spaces::Both(space) => self.match_by(|x| space.place(x), sizes),
            Spaces::Each { cure, time } => {
                let for_cure = self.match_by(|x| cure.place(x), sizes);
                let mut for_time = self.match_by(|x| time.place(x), sizes).map(|e| e.time);
                let mut k = 0;
                for_cure.map(|e| {
                    k += 1;
                    MethodEffects { cure: e.cure, time: std::mem::take(&mut for_time[k - 1]) }
                })
            }
        }
    }

    /// The same in any space of points: `place` puts rows of covariates, as recorded, where they are matched.
    pub fn match_by<const N: usize>(&self, place: impl Fn(&[f64]) -> Points, sizes: [usize; N]) -> [MethodEffects; N] {
        let queries = place(&self.covariates);
        let ByArm { control, treated } = ByArm::of(|arm| {
            let points = place(&self.pool_covariates[arm]);
            ArmSearch::of_points(&self.pools[arm], &points).estimate(&queries, sizes)
        });
        let minus = |c: &Summary, t: &Summary| Some(t.mean_event_time()? - c.mean_event_time()?);
        std::array::from_fn(|k| {
            let groups = || control.iter().zip(&treated).map(|(c, t)| (&c[k].curve, &t[k].curve));
            MethodEffects {
                cure: groups().map(|(c, t)| t.survival - c.survival).collect(),
                time: groups().map(|(c, t)| minus(c, t)).collect(),
            }
        })
    }
}

/// Both effects of each unit by one method.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodEffects {
    /// π̂ of each unit.
    pub cure: Vec<f64>,
    /// Δ̂ of each unit, where it is defined.
    pub time: Vec<Option<f64>>,
}

/// An average effect with its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Averaged {
    /// The estimate, where there is one.
    pub estimate: Option<f64>,
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// The difference of the arms' own curves, with no regard to who is in them: what a randomised trial would report.
/// Cure from Kaplan–Meier or Aalen–Johansen at the horizon, time from the mean before it; standard errors as those of
/// two independent samples.
pub fn crude(cohort: &Cohort, confidence: f64) -> ByEstimand<Averaged> {
    let z = two_sided(confidence);
    let of =
        ByArm::of(|arm| SurvivalCurve::of_outcomes(cohort.outcomes(&cohort.units_of(arm))).summary(cohort.horizon()));
    let difference = |value: fn(&Summary) -> Option<f64>, se: fn(&Summary) -> Option<f64>| {
        let each = of.each_ref();
        let estimate = value(each.treated).zip(value(each.control)).map(|(t, c)| t - c);
        let error = se(each.treated).zip(se(each.control)).map(|(t, c)| (t * t + c * c).sqrt());
        let end = |sign: f64| estimate.zip(error).map(|(v, se)| v + sign * z * se);
        Averaged { estimate, low: end(-1.0), high: end(1.0) }
    };
    ByEstimand {
        cure: difference(|s| Some(s.survival), Summary::survival_se),
        time: difference(Summary::mean_event_time, Summary::mean_event_time_se),
    }
}

/// Pearson's correlation over the units where both values are there; `None` where fewer than two are, or one of them
/// does not vary.
pub fn correlation(a: &[Option<f64>], b: &[Option<f64>]) -> Option<f64> {
    let pairs: Vec<(f64, f64)> = a.iter().zip(b).filter_map(|(a, b)| (*a).zip(*b)).collect();
    let n = pairs.len() as f64;
    let (mean_a, mean_b) = (pairs.iter().map(|p| p.0).sum::<f64>() / n, pairs.iter().map(|p| p.1).sum::<f64>() / n);
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (a, b) in &pairs {
        let (da, db) = (a - mean_a, b - mean_b);
        ab += da * db;
        aa += da * da;
        bb += db * db;
    }
    // A constant leaves only the rounding of its mean, which grows with the number of units.
    let varies = |s: f64, m: f64| s > n * (1e-11 * m) * (1e-11 * m) && s > 0.0;
    (pairs.len() > 1 && varies(aa, mean_a) && varies(bb, mean_b)).then(|| (ab / (aa * bb).sqrt()).clamp(-1.0, 1.0))
}

/// The quantile at `p` of values, with linear interpolation between order statistics (R's type 7); `None` of nothing.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = p * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    Some(low + (high - low) * (at - at.floor()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_lead_back() {
        for m in Method::ALL {
            assert_eq!(Method::of_name(m.name()), Some(m));
        }
        assert_eq!(Method::of_name("lasso"), None);
        assert!(Method::FOR_COHORTS.iter().all(|m| !m.needs_truth()));
    }

    #[test]
    fn crude_is_the_difference_of_the_arms() {
        let world = crate::simulate::simulate(crate::simulate::Scenario::BothOverlap, 400, false, 2);
        let found = crude(&world.cohort, 0.95);
        let of = |arm: Arm| {
            let units = world.cohort.units_of(arm);
            let curve = SurvivalCurve::of_outcomes(world.cohort.outcomes(&units)).survival_with_se(799.0);
            (curve.value, curve.se.expect("a standard error"))
        };
        let ((t, a), (c, b)) = (of(Arm::Treated), of(Arm::Control));
        let (estimate, low) = (found.cure.estimate.expect("an effect"), found.cure.low.expect("an end"));
        assert!((estimate - (t - c)).abs() < 1e-12);
        assert!((estimate - low - 1.959_964 * (a * a + b * b).sqrt()).abs() < 1e-6);
        assert!(found.time.estimate.is_some() && found.time.high.is_some());
    }

    #[test]
    fn correlation_of_what_is_there() {
        let some = |v: &[f64]| v.iter().copied().map(Some).collect::<Vec<_>>();
        let a = some(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(correlation(&a, &some(&[2.0, 4.0, 6.0, 8.0])), Some(1.0));
        assert_eq!(correlation(&a, &some(&[0.1, 0.1, 0.1, 0.1])), None);
        assert_eq!(correlation(&a, &[Some(3.0), None, Some(1.0), None]), Some(-1.0));
        assert_eq!(correlation(&a, &[Some(3.0), None, None, None]), None);
        let rising: Vec<Option<f64>> = (0..752).map(|i| Some(f64::from(i))).collect();
        assert_eq!(correlation(&rising, &vec![Some(0.006_123_4); 752]), None);
        assert_eq!(quantile(&[4.0, 1.0, 2.0, 3.0], 0.25), Some(1.75));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
