//! K and w of each fold, from units of the other folds.

use super::setting::Setting;
use super::{Learned, Predictions};
use crate::arm::{Arm, ByArm};
use crate::correction::{Offset, corrected_time};
use crate::effect::Four;
use crate::error::Error;
use crate::estimand::{ByEstimand, Estimand};
use crate::fold::{Choice, PathPoint};
use crate::group::{GroupEstimate, Pool};
use crate::joint::{Prediction, Predictor};
use crate::numeric::{expit, log1pexp};
use crate::search::{ArmSearch, Ask, Queries};
use crate::watch::Watch;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A group in the unit's own arm at one of the sizes that are tried.
pub(super) type Tried = (GroupEstimate, Offset);

/// K and w of each estimand in each fold, the path over all, and the groups that were found on the way.
pub(super) struct Tuned<'a> {
    pub(super) choices: Vec<ByEstimand<Choice>>,
    pub(super) path: Vec<PathPoint>,
    /// Of each unit the groups in its own arm at each of the sizes; none where they were not needed. Offsets of time
    /// have their shape at the first size alone.
    known: ByEstimand<Vec<Vec<Tried>>>,
    /// Of each fold, estimand and arm, where they are few enough to be kept.
    searches: Vec<Option<ArmSearch<'a>>>,
    /// What the offsets of the smallest groups vary beyond their noise, a mean over the units of each arm.
    pub(super) finest: Four<f64>,
}

impl<'a> Tuned<'a> {
    /// The group of a unit in its own arm at one of the sizes, where all is known of it.
    pub(super) fn known(&self, estimand: Estimand, unit: usize, size: usize) -> Option<Tried> {
        let is_whole = estimand == Estimand::Cure || size == 0;
        self.known[estimand][unit].get(size).filter(|_| is_whole).copied()
    }

    /// The search of a fold for one estimand in one arm, where it was kept.
    pub(super) fn search(&self, fold: usize, estimand: Estimand, arm: Arm) -> Option<&ArmSearch<'a>> {
        self.searches[4 * fold + 2 * estimand.index() + arm.index()].as_ref()
    }
}

/// Coordinates of all folds' indices up to which they are kept from the choice of K for the groups: some 100 MB.
pub(crate) const KEPT_COORDINATES: usize = 10_000_000;

/// Own-arm loss of a corrected value against what was seen of the unit.
///
/// Cure: minus the log-likelihood of the cure part, the latency being the model's:
/// `−ln(1 − S)` for an event, else `−ln(S + (1 − S)(1 − F(y)/F(H)))`, over all pieces of what is known of the unit.
/// Time: the gamma deviance `y/m − 1 − ln(y/m)` of an event, weighted by 1/G(y−); it is proper for the
/// mean. A unit without event says nothing.
fn loss(
    setting: &Setting<'_>,
    model: &Predictor,
    i: usize,
    p: &Prediction,
    estimand: Estimand,
    choice: (f64, f64),
) -> f64 {
    let (offset, weight) = choice;
    let (time, event) = (setting.cohort.time(i), setting.cohort.event(i));
    match estimand {
        Estimand::Cure => {
            let eta = p.cure_logit + weight * offset;
            let s = expit(eta);
            setting.known(i, |time, event| {
                if event {
                    return log1pexp(eta);
                }
                -libm::log((s + (1.0 - s) * (1.0 - model.event_share(p, time))).max(1e-300))
            })
        }
        Estimand::Time if event => {
            let ratio = time / corrected_time(p, offset, weight, setting.cohort.horizon());
            let loss = (ratio - 1.0 - libm::log(ratio)) * setting.censoring[setting.cohort.arm(i)].inverse_before(time);
            loss * setting.weight(i)
        }
        Estimand::Time => 0.0,
    }
}

/// Mean and standard error of a loss difference, whose values are summed by cluster where units have one.
fn mean_and_se_by_cluster(mut values: Vec<(u32, f64)>) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().map(|v| v.1).sum::<f64>() / f64::max(n, 1.0);
    values.sort_by_key(|v| v.0);
    let sums = values.chunk_by(|a, b| a.0 == b.0).map(|of| of.iter().map(|v| v.1 - mean).sum::<f64>());
    let (clusters, square) = sums.fold((0.0, 0.0), |(c, q), s| (c + 1.0, q + s * s));
    (mean, (square * clusters / f64::max(clusters - 1.0, 1.0)).sqrt() / f64::max(n, 1.0))
}

/// Mean and standard error of a loss difference.
fn mean_and_se(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let (n, sum) = values.clone().fold((0.0, 0.0), |(n, s), v| (n + 1.0, s + v));
    let mean = sum / f64::max(n, 1.0);
    let ss: f64 = values.map(|v| (v - mean) * (v - mean)).sum();
    (mean, (ss / f64::max(n - 1.0, 1.0) / f64::max(n, 1.0)).sqrt())
}

/// A search, and of each unit of the sample that it served: the groups at each size, and the losses of the candidates
/// against that of the first.
type Scored<'a> = (Option<ArmSearch<'a>>, Vec<(usize, Vec<Tried>, Vec<f64>)>);

/// K and w of each estimand in each fold, from units of the other folds.
pub(super) fn choose<'a>(
    setting: &'a Setting<'_>,
    learned: &[Learned],
    predictions: &Predictions,
    sizes: &[usize],
    watch: &dyn Watch,
) -> Result<Tuned<'a>, Error> {
    let options = setting.options;
    let weights = options.weights_for(setting.learned_from.len());
    let pooled: usize = setting.ground.pools.iter().map(Pool::len).sum();
    let kept = 2 * learned.len() * pooled * setting.cohort.n_covariates() <= KEPT_COORDINATES;
    let candidates: Vec<Choice> =
        sizes.iter().flat_map(|&k| weights.iter().map(move |&weight| Choice { group_size: k, weight })).collect();
    let sample = setting.sample(setting.seed ^ 0x7475_6e65, options.tuning_units);
    let of_fold = |fold: usize| Estimand::BOTH.into_iter().flat_map(move |e| Arm::BOTH.map(|z| (fold, e, z)));
    let jobs: Vec<(usize, Estimand, Arm)> = (0..learned.len()).flat_map(of_fold).collect();
    let done = AtomicUsize::new(0);
    let scored: Vec<Scored<'a>> = jobs
        .par_iter()
        .map(|&(fold, estimand, arm)| {
            watch.step("choosing the group size", done.load(Relaxed) / 4, learned.len())?;
            let is_here = |i: usize| setting.fold_of[i] as usize == fold && setting.cohort.arm(i) == arm;
            let of_fold: Vec<usize> = (0..sample.len()).filter(|&s| is_here(sample[s] as usize)).collect();
            if of_fold.is_empty() {
                return Ok((None, Vec::new()));
            }
            let units: Vec<u32> = of_fold.iter().map(|&s| sample[s]).collect();
            let Learned { model, metrics, .. } = &learned[fold];
            let metric = &metrics[estimand][arm];
            let search = setting.ground.search(metric, arm);
            let rows = setting.cohort.rows_of(&units);
            let own: Vec<Option<u32>> = units.iter().copied().map(Some).collect();
            let ask = Ask {
                queries: Queries { covariates: &rows, own: &own },
                placed: &metric.place(&rows),
                group_size: sizes.iter().copied().max().expect("at least one group size"),
                fewest: setting.ground.fewest,
            };
            let (pool, expected) = (&setting.ground.pools[arm], &predictions.of_pool[fold][arm]);
            let tried = search.ranked(&ask, |room, near| -> Vec<Tried> {
                let of_size = |&k: &usize| {
                    let group = pool.estimate(near, k, room);
                    // A loss needs no shape; the largest size has one because it is chosen most often.
                    let seen = || match k == sizes[0] {
                        true => pool.event_shares(&room.ranks, &room.shares, &setting.ground.grid),
                        false => None,
                    };
                    let offset = Offset::of(estimand, &group, expected, (&room.ranks, &room.shares), seen);
                    (group, offset)
                };
                sizes.iter().map(of_size).collect()
            });
            done.fetch_add(1, Relaxed);
            // Nothing is learned from a unit that constraints leave without a group.
            let there = of_fold.iter().zip(tried).filter_map(|(&s, tried)| Some((s, tried.ok()?)));
            let scored = there.map(|(s, tried)| {
                let i = sample[s] as usize;
                let p = &predictions.of_unit[i][arm];
                let all = tried.iter().flat_map(|(_, o)| weights.iter().map(|&w| (o.value, w)));
                let losses: Vec<f64> =
                    all.map(|choice| loss(setting, &model.predictor, i, p, estimand, choice)).collect();
                let differences = losses.iter().map(|l| l - losses[0]).collect();
                (s, tried, differences)
            });
            let scored = scored.collect();
            Ok((kept.then_some(search), scored))
        })
        .collect::<Result<_, Error>>()?;
    // By estimand, unit of the sample and candidate.
    let mut differences: ByEstimand<Vec<Vec<f64>>> = ByEstimand::of(|_| vec![Vec::new(); sample.len()]);
    let mut known = ByEstimand::of(|_| vec![Vec::new(); setting.cohort.n_units()]);
    let mut searches = Vec::with_capacity(jobs.len());
    let (mut finest, mut counted): (Four<f64>, Four<f64>) = Default::default();
    for (&(_, estimand, arm), (search, scored)) in jobs.iter().zip(scored) {
        searches.push(search);
        for (s, tried, of_candidates) in scored {
            // Of one size there is nothing finer to be seen.
            if let [_, .., (_, offset)] = tried.as_slice() {
                finest[estimand][arm] += offset.value * offset.value - offset.variance;
                counted[estimand][arm] += 1.0;
            }
            known[estimand][sample[s] as usize] = tried;
            differences[estimand][s] = of_candidates;
        }
    }
    let fold_of_sample: Vec<usize> = sample.iter().map(|&i| setting.fold_of[i as usize] as usize).collect();
    let scored = |estimand: Estimand, c: usize, leave: Option<usize>| {
        let kept = (0..sample.len()).filter(|&s| leave != Some(fold_of_sample[s]));
        if let Some(clusters) = &setting.cohort.extras().cluster {
            let of = |s: usize| Some((clusters[sample[s] as usize], *differences[estimand][s].get(c)?));
            return mean_and_se_by_cluster(kept.filter_map(of).collect());
        }
        let values: Vec<f64> = kept.filter_map(|s| differences[estimand][s].get(c).copied()).collect();
        mean_and_se(values.iter().copied())
    };
    let choice = |fold: usize, estimand: Estimand| {
        let score = |c: usize| {
            let (mean, se) = scored(estimand, c, Some(fold));
            mean + options.caution * se
        };
        let scores: Vec<f64> = (0..candidates.len()).map(score).collect();
        // The first of equals: the largest group and the smallest weight.
        let best = (0..scores.len()).min_by(|&a, &b| scores[a].total_cmp(&scores[b]).then(a.cmp(&b)));
        candidates[best.unwrap_or(0)]
    };
    let choices = (0..learned.len()).map(|fold| ByEstimand::of(|estimand| choice(fold, estimand))).collect();
    let path = Estimand::BOTH
        .into_iter()
        .flat_map(|estimand| (0..candidates.len()).map(move |c| (estimand, c)))
        .map(|(estimand, c)| {
            let (loss, se) = scored(estimand, c, None);
            PathPoint { estimand, choice: candidates[c], loss, se }
        })
        .collect();
    let finest = ByEstimand::of(|e| ByArm::of(|z| (finest[e][z] / f64::max(counted[e][z], 1.0)).max(0.0)));
    Ok(Tuned { choices, path, known, searches, finest })
}
