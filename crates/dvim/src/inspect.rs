//! The patients behind one number: the members of the four groups of a unit, with their distances and curves.

use crate::arm::{Arm, ByArm};
use crate::cohort::Cohort;
use crate::constraint::Unserved;
use crate::curve::{Curves, Grid, Shape, odds};
use crate::effect::{Corrected, Effect, Four};
use crate::estimand::{ByEstimand, Estimand};
use crate::fold::{Fit, Fold};
use crate::ground::Ground;
use crate::group::{GroupEstimate, are_equal};
use crate::newcomers::Newcomers;
use crate::outcome::Outcome;
use crate::search::{ArmSearch, Ask, Queries};
use crate::survival::SurvivalCurve;
use std::borrow::Cow;
use std::sync::OnceLock;

/// One match group.
///
/// ```
/// use dvim::{Options, Scenario, Unwatched, run, simulate};
///
/// let world = simulate(Scenario::BothOverlap, 1_000, false, 1);
/// let found = run(&world.cohort, &Options::default(), &Unwatched)?;
/// let groups = found.fit.match_groups(&world.cohort, found.units[0] as usize);
/// let nearest = groups.cure.control.distance[0];
/// assert!(groups.cure.control.distance.iter().all(|d| *d >= nearest));
/// # Ok::<(), dvim::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MatchGroup {
    /// Positions of its members in the cohort, nearest first.
    pub units: Vec<u32>,
    /// Their distances.
    pub distance: Vec<f64>,
    /// What each counts: 1, or less where those at the last distance share the places that are left. The sum is K.
    pub counts: Vec<f64>,
    /// For each member, the share of each covariate in its squared distance.
    pub shares: Vec<Vec<f64>>,
    /// The weights of the metric that it was matched under.
    pub weights: Vec<f64>,
    /// The group's curve.
    pub curve: SurvivalCurve,
}

impl MatchGroup {
    /// Places of the group: K, or less where constraints leave fewer candidates.
    pub fn size(&self) -> usize {
        self.counts.iter().sum::<f64>().round() as usize
    }

    /// The distance of the last place; `None` where there is nobody.
    pub fn diameter(&self) -> Option<f64> {
        let last = self.size().checked_sub(1)?;
        self.distance.get(last).copied()
    }

    /// Whether members at the last distance share places.
    pub fn is_shared(&self) -> bool {
        self.counts.iter().any(|c| *c != 1.0)
    }

    /// The mean over members, by what they count, of the share that these columns have in the squared distance.
    pub fn mean_share(&self, columns: std::ops::Range<usize>) -> f64 {
        let n = self.size().max(1) as f64;
        let of = |(s, count): (&Vec<f64>, &f64)| s[columns.clone()].iter().map(|v| count * v).collect::<Vec<f64>>();
        self.shares.iter().zip(&self.counts).flat_map(of).sum::<f64>() / n
    }
}

/// The four match groups of one unit.
pub type UnitGroups = Four<MatchGroup>;

impl UnitGroups {
    /// Why a unit has no effect at group size `k`: constraints left fewer candidates in an arm.
    pub fn unserved(&self, k: usize) -> Option<Unserved> {
        let candidates = self.cure.each_ref().map(MatchGroup::size);
        candidates.iter().any(|&c| c < k).then_some(Unserved { candidates, group_size: k })
    }

    /// What a run's corrector makes of these groups at the cohort's own horizon: for a new patient, or for one of the
    /// cohort by the fold of the first deal that left it out. `None` where a group has fewer than `fewest`, or
    /// nothing is corrected.
    pub fn correct(
        &self,
        x: &[f64],
        own: Option<u32>,
        newcomers: &Newcomers<'_>,
        fewest: usize,
        horizon: f64,
    ) -> Option<Corrected> {
        let effect = self.effect(horizon, None).filter(|_| self.unserved(fewest).is_none())?;
        let groups = ByEstimand::of(|estimand| {
            ByArm::of(|arm| {
                let group = &self[estimand][arm];
                (effect.groups[estimand][arm], &group.units[..], &group.counts[..])
            })
        });
        newcomers.correct(x, own, &groups)
    }

    /// The curves of the groups alone, with their uncertainty: who is cured by those matched for cure, when events come
    /// by those matched for time. `None` where the time effect has no interval. `quantile` is the normal one of the
    /// intervals that will be asked for.
    pub fn curves<'g>(&self, grid: &'g Grid, quantile: f64) -> Option<Curves<'g>> {
        let horizon = grid.horizon();
        let effect = self.effect(horizon, None)?;
        let ends = effect.ends(horizon, quantile)?;
        let shape = |z: Arm| {
            let curve = &self.time[z].curve;
            let all = 1.0 - curve.before(horizon);
            let share = |k: usize| (1.0 - curve.before(grid.times()[k + 1])) / all;
            Shape::with_mean(&std::array::from_fn(|k| odds(share(k))), ends.mean_event_time[z], grid)
        };
        let variance = |z: Arm| {
            let curve = &effect.groups.time[z].curve;
            1.0 / (curve.effective_size() * (1.0 - curve.survival)).max(1.0)
        };
        Some(Curves::new(grid, ends, &ByArm::of(shape), ByArm::of(variance)))
    }

    /// What the groups give at a horizon, which is that of the cohort or an earlier one; `None` where a group is empty.
    /// `corrected` is what a corrector made of them at the cohort's own horizon.
    pub fn effect(&self, horizon: f64, corrected: Option<Corrected>) -> Option<Effect> {
        if self.iter().any(|of_arms| of_arms.iter().any(|g| g.units.is_empty())) {
            return None;
        }
        let estimate =
            |g: &MatchGroup| GroupEstimate { curve: g.curve.summary(horizon), diameter: g.diameter().unwrap_or(0.0) };
        Some(Effect { groups: self.each_ref().map(|of_arms| of_arms.each_ref().map(estimate)), corrected })
    }
}

/// Finds the groups of one unit after the other, at any group size. For many units, create it once and reuse it: an arm
/// is packed under a metric when a unit first needs it, and kept.
pub struct Search<'a> {
    fit: &'a Fit,
    ground: &'a Ground<'a>,
    /// What new patients are matched by.
    shared: Cow<'a, Fold>,
    /// By fold; the last place is that of new patients.
    searches: Vec<Four<OnceLock<ArmSearch<'a>>>>,
}

impl<'a> Search<'a> {
    /// A search over the ground of a fit, in which nothing is built yet.
    pub fn new(fit: &'a Fit, ground: &'a Ground<'a>) -> Search<'a> {
        let n_folds = fit.first().folds.len();
        // One fold serves everybody.
        let places = if n_folds == 1 { 1 } else { n_folds + 1 };
        let searches = (0..places).map(|_| Four::default()).collect();
        Search { fit, ground, shared: fit.fold_for_newcomers(), searches }
    }

    /// The largest group that every unit can be given, where constraints do not forbid it.
    pub fn largest_group(&self) -> usize {
        self.ground.largest_group()
    }

    /// The match groups of a unit with these covariates, of the fit's own size or of another; `own` is its position
    /// where it is in the cohort. Under constraints a group may be smaller, down to empty: see
    /// [`UnitGroups::unserved`].
    pub fn groups(&self, x: &[f64], own: Option<u32>, size: Option<usize>) -> UnitGroups {
        ByEstimand::of(|estimand| ByArm::of(|arm| self.group(x, own, size, estimand, arm)))
    }

    fn group(&self, x: &[f64], own: Option<u32>, size: Option<usize>, estimand: Estimand, arm: Arm) -> MatchGroup {
        let (cohort, pool) = (self.ground.cohort, &self.ground.pools[arm]);
        let number = self.fit.fold_number(own);
        let fold = number.map_or(self.shared.as_ref(), |f| &self.fit.first().folds[f]);
        let metric = &fold.metrics[estimand][arm];
        let place = &self.searches[number.unwrap_or(self.searches.len() - 1)][estimand][arm];
        let search = place.get_or_init(|| self.ground.search(metric, arm));
        let ask = Ask {
            queries: Queries { covariates: x, own: &[own] },
            placed: &metric.place(x),
            group_size: size.unwrap_or(fold.group_size[estimand]),
            fewest: 0,
        };
        let found = search.ranked(&ask, |_, near| {
            let places = near.places(ask.group_size);
            let counts: Vec<f64> = (0..places.end).map(|at| places.share_of(at)).collect();
            (near.members[..places.end].to_vec(), near.squared[..places.end].to_vec(), counts)
        });
        let (members, squared, counts) = found.into_iter().next().and_then(Result::ok).unwrap_or_default();
        let units: Vec<u32> = members.iter().map(|&m| pool.units[m as usize]).collect();
        let mut outcomes = cohort.outcomes(&units);
        if !are_equal(&counts) {
            outcomes.iter_mut().zip(&counts).for_each(|(outcome, count)| outcome.weight *= count);
        }
        // In the pool's order of time, in which estimates are summed.
        let mut ranked: Vec<(u32, Outcome)> = members.iter().map(|&m| pool.rank(m)).zip(outcomes).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        let outcomes = ranked.into_iter().map(|(_, outcome)| outcome).collect();
        MatchGroup {
            shares: units.iter().map(|&i| metric.shares(x, cohort.covariates(i as usize))).collect(),
            weights: metric.weights.clone(),
            distance: squared.iter().map(|d| d.sqrt()).collect(),
            curve: SurvivalCurve::of_outcomes(outcomes),
            units,
            counts,
        }
    }
}

impl Fit {
    /// The match groups of one unit of the cohort, patient by patient. Under constraints a group may be smaller than K,
    /// down to empty: then the unit has no effect.
    pub fn match_groups(&self, cohort: &Cohort, unit: usize) -> UnitGroups {
        self.match_groups_of(cohort, cohort.covariates(unit), Some(unit as u32))
    }

    /// The match groups of a unit with these covariates; `own` is its position where it is in the cohort. For many
    /// units, create a [`Search`] once and reuse it.
    pub fn match_groups_of(&self, cohort: &Cohort, x: &[f64], own: Option<u32>) -> UnitGroups {
        let ground = Ground::of_fit(self, cohort).expect("the constraints of a finished fit were accepted");
        Search::new(self, &ground).groups(x, own, None)
    }
}
