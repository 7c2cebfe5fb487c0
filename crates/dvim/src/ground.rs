//! Groups of units under a fold: the one place that finds them.
//!
//! A [`Ground`] holds what groups are drawn from: the units of each arm, and who may be in whose group. Every part of
//! dvim that needs groups asks it: fitting, reopening a run, predicting, auditing, looking at one patient.

use crate::arm::{Arm, ByArm};
use crate::cohort::Cohort;
use crate::constraint::{Rules, Unserved};
use crate::curve::Grid;
use crate::effect::{Effect, Four, all_four};
use crate::error::Error;
use crate::estimand::{ByEstimand, Estimand};
use crate::fold::{Fit, Fold};
use crate::group::{GroupEstimate, GroupRoom, Groups, Pool, Room, Shared};
use crate::matching::{Hints, Points};
use crate::metric::Metric;
use crate::options::Options;
use crate::search::{ArmSearch, Ask, Found, Help, Queries};
use crate::split::hashed_sample;
use crate::watch::Watch;
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Units estimated between two looks at the watch: large enough that the search can order them
/// well, small enough that memory stays bounded and a cancelled run stops within a second.
const BLOCK: usize = 65_536;

/// The size of a block under constraints, which are slower.
const CONSTRAINED_BLOCK: usize = 2_048;

/// What groups are drawn from, and by which rules.
pub struct Ground<'a> {
    pub(crate) cohort: &'a Cohort,
    /// The units of each arm that may be in a group.
    pub pools: ByArm<Pool>,
    rules: Option<Rules>,
    /// Whether a unit is kept out of its own group.
    without_self: bool,
    /// A unit with fewer candidates in an arm has no effect.
    pub(crate) fewest: usize,
    /// The times at which curves are held.
    pub(crate) grid: Grid,
}

/// Where what a group gives is put, and what is noted of the group.
struct Slot<'s, M> {
    estimate: &'s mut GroupEstimate,
    noted: M,
    /// The number of candidates, where they are too few.
    few: Option<u32>,
}

/// Units in the match spaces of one estimand.
pub(crate) enum Placed<'p> {
    /// The arms have one metric.
    Shared(Cow<'p, Points>),
    /// Each arm has its own.
    Each(ByArm<Points>),
}

impl<'p> Placed<'p> {
    /// Places rows of covariates, as recorded, under the metrics of both arms.
    pub(crate) fn new(metrics: &ByArm<Metric>, rows: &[f64]) -> Placed<'p> {
        if metrics.control == metrics.treated {
            return Placed::Shared(Cow::Owned(metrics.control.place(rows)));
        }
        Placed::Each(metrics.each_ref().map(|metric| metric.place(rows)))
    }

    fn of(&self, arm: Arm) -> &Points {
        match self {
            Placed::Shared(points) => points,
            Placed::Each(points) => &points[arm],
        }
    }
}

/// Units that are to be matched under one fold.
pub(crate) struct Block<'b> {
    pub(crate) queries: Queries<'b>,
    pub(crate) placed: ByEstimand<Placed<'b>>,
    /// Whether [`Found::nearest`] is needed.
    pub(crate) nearest: bool,
}

/// A search that is at hand, or was made for one use.
pub(crate) enum Ready<'r, 's> {
    AtHand(&'r ArmSearch<'s>),
    Made(ArmSearch<'s>),
}

impl<'s> std::ops::Deref for Ready<'_, 's> {
    type Target = ArmSearch<'s>;

    fn deref(&self) -> &ArmSearch<'s> {
        match self {
            Ready::AtHand(search) => search,
            Ready::Made(search) => search,
        }
    }
}

/// What was found of the units of a block.
pub(crate) struct Filled<M> {
    /// Units without enough candidates, ascending, by their position in the block.
    pub(crate) unserved: Vec<(usize, Unserved)>,
    /// What was noted of the groups of each unit.
    pub(crate) noted: Four<Vec<M>>,
}

/// Says what is known of a unit's group before it is searched for: what it gave, and what was noted of it.
pub(crate) type Known<'k, M> = &'k (dyn Fn(Estimand, Arm, usize) -> Option<(GroupEstimate, M)> + Sync);

/// What was made of many units.
pub(crate) struct Estimated {
    /// The effects of those that have their groups, in the order of the units.
    pub(crate) effects: Vec<Effect>,
    /// The positions of the others, ascending, and why.
    pub(crate) unserved: Vec<(usize, Unserved)>,
    /// The groups of those that have them, where they were kept.
    pub(crate) groups: Option<Four<Groups>>,
}

impl Estimated {
    /// One answer for each unit.
    pub(crate) fn into_each(self) -> Vec<Result<Effect, Unserved>> {
        let n = self.effects.len() + self.unserved.len();
        let (mut effects, mut unserved) = (self.effects.into_iter(), self.unserved.into_iter().peekable());
        let of = |q: usize| match unserved.next_if(|(at, _)| *at == q) {
            Some((_, why)) => Err(why),
            None => Ok(effects.next().expect("a unit that is served has an effect")),
        };
        (0..n).map(of).collect()
    }
}

/// Units that are to be estimated.
pub(crate) struct Asked<'q> {
    /// The position in the cohort of each unit that is in it.
    pub(crate) own: &'q [Option<u32>],
    /// Gives the covariates, as recorded, of some of the units.
    pub(crate) rows: &'q (dyn Fn(Range<usize>) -> Vec<f64> + Sync),
    /// All of them in match space, where they were placed with the pools.
    pub(crate) placed: Option<&'q Everyone<'q>>,
    /// Whether their groups are kept.
    pub(crate) keep: bool,
}

impl<'a> Ground<'a> {
    /// Prepares a cohort in which some units only train. Refuses constraints that do not fit the cohort.
    pub fn new(cohort: &'a Cohort, options: &Options, is_training: &[bool]) -> Result<Ground<'a>, Error> {
        let rules = options.rules(cohort)?;
        let most = options.pool_units();
        let units = |arm: Arm| -> Vec<u32> {
            let all = cohort.units_of(arm).into_iter().filter(|&i| !is_training[i as usize]).collect();
            hashed_sample(cohort, all, options.seed ^ 0x706f_6f6c, most)
        };
        let pools = ByArm::join(|arm| Pool::new(cohort, units(arm)));
        let (without_self, fewest) = (options.leaves_out_self(), options.fewest());
        Ok(Ground { cohort, pools, rules, without_self, fewest, grid: Grid::of(cohort) })
    }

    /// Prepares the cohort of a finished fit.
    pub fn of_fit(fit: &Fit, cohort: &'a Cohort) -> Result<Ground<'a>, Error> {
        Ground::new(cohort, &fit.options, &fit.is_training)
    }

    /// Drops the constraints: every unit may be in every group, but for the unit itself, and its cluster, where they
    /// are kept out.
    pub(crate) fn without_rules(self) -> Ground<'a> {
        let clusters = self.rules.as_ref().and_then(Rules::clusters).map(<[u32]>::to_vec);
        let rules = Rules::default().without_own_cluster(clusters.as_ref());
        Ground { rules: Some(rules).filter(|r| !r.is_empty()), ..self }
    }

    /// Whether exact covariates or calipers decide who may be in a group.
    pub fn has_rules(&self) -> bool {
        self.rules.as_ref().is_some_and(Rules::has_covariates)
    }

    /// The largest group that every unit can be given, where constraints do not forbid it.
    pub fn largest_group(&self) -> usize {
        let smaller = self.pools.iter().map(Pool::len).min().unwrap_or(0);
        smaller.saturating_sub(usize::from(self.without_self))
    }

    /// One arm under a metric, ready to be searched.
    pub(crate) fn search<'s>(&'s self, metric: &Metric, arm: Arm) -> ArmSearch<'s> {
        ArmSearch::new(&self.pools[arm], self.cohort, metric, self.rules.as_ref(), self.without_self)
    }

    /// Both arms under both metrics of a fold, ready to be searched.
    pub(crate) fn searches<'s>(&'s self, fold: &Fold) -> Four<ArmSearch<'s>> {
        ByEstimand::join(|estimand| ByArm::join(|arm| self.search(&fold.metrics[estimand][arm], arm)))
    }

    /// Both arms under both metrics of a fold, where all units of the pools are placed already.
    fn searches_of<'s>(&'s self, fold: &Fold, placed: Option<&'s Everyone<'_>>) -> Four<ArmSearch<'s>> {
        let Some(placed) = placed else { return self.searches(fold) };
        let rows = self.pools.each_ref().map(|pool| placed.rows(&pool.units));
        let of = |estimand: Estimand, arm: Arm| {
            ArmSearch::of_rows(&self.pools[arm], &placed.points[estimand], &rows[arm], self.without_self)
        };
        ByEstimand::join(|estimand| ByArm::join(|arm| of(estimand, arm)))
    }

    /// Finds the four groups of each unit of a block and writes what they give into `effects`. `start` makes room for
    /// what `note` says of each group. Groups that are `known` are not searched for. `search` gives one arm under
    /// one metric of the fold.
    #[allow(clippy::too_many_arguments, reason = "what is asked, where the answers go, and how they are found")]
    pub(crate) fn fill<'s, 'r, M: Send + Sync>(
        &self,
        fold: &Fold,
        block: &Block<'_>,
        effects: &mut [Effect],
        search: impl Fn(Estimand, Arm) -> Ready<'r, 's> + Sync,
        mut start: impl FnMut(Estimand, Arm) -> M,
        note: impl Fn(Estimand, Arm, &mut M, &Found<'_>) + Sync,
        known: Option<Known<'_, M>>,
    ) -> Filled<M>
    where
        's: 'r,
    {
        let n = effects.len();
        let mut slots: Four<Vec<Slot<'_, M>>> = ByEstimand::of(|_| ByArm::of(|_| Vec::with_capacity(n)));
        // Of groups that are known: the unit, how far the group reaches, and what was noted.
        let mut given: Four<Vec<(usize, f64, M)>> = ByEstimand::of(|_| ByArm::of(|_| Vec::new()));
        for (unit, effect) in effects.iter_mut().enumerate() {
            let estimates = effect.groups.each_mut().into_iter().flat_map(ByArm::each_mut);
            for ((estimand, arm), estimate) in all_four().zip(estimates) {
                match known.and_then(|known| known(estimand, arm, unit)) {
                    Some((group, noted)) => {
                        given[estimand][arm].push((unit, group.diameter * group.diameter, noted));
                        *estimate = group;
                    }
                    None => slots[estimand][arm].push(Slot { estimate, noted: start(estimand, arm), few: None }),
                }
            }
        }
        // One arm after the other: how far the group of a unit reaches in one is a good guess for the other.
        let under = |estimand: Estimand, slots: &mut ByArm<Vec<Slot<'_, M>>>, given: &ByArm<Vec<(usize, f64, M)>>| {
            let total = |arm: Arm| fold.metrics[estimand][arm].weights.iter().sum::<f64>();
            let (mut reach, mut order, mut few) = (Vec::new(), Vec::new(), Vec::new());
            for arm in Arm::BOTH {
                let slots = &mut slots[arm];
                let sought = Sought::new(&given[arm], block, block.placed[estimand].of(arm));
                let unit = |q: usize| sought.some.as_ref().map_or(q, |some| some.units[q]);
                let scale = total(Arm::Treated) / total(Arm::Control);
                let hints: Option<Vec<f64>> =
                    (arm == Arm::Treated).then(|| (0..slots.len()).map(|q| reach[unit(q)] * scale).collect());
                let hints = hints.as_deref().map(|squared| Hints {
                    squared,
                    order: Some(order.as_slice()).filter(|o: &&[u32]| o.len() == slots.len()),
                });
                let ask = Ask {
                    queries: sought.queries(block),
                    placed: &sought.placed,
                    group_size: fold.group_size[estimand],
                    fewest: self.fewest,
                };
                let help = Help { hints, nearest: block.nearest };
                order = search(estimand, arm).sets(&ask, help, slots, |slot, found| match found {
                    Ok(found) => {
                        note(estimand, arm, &mut slot.noted, &found);
                        *slot.estimate = found.estimate;
                    }
                    Err(candidates) => slot.few = Some(candidates as u32),
                });
                few.extend(slots.iter().enumerate().filter_map(|(q, slot)| Some((unit(q), arm, slot.few?))));
                if arm == Arm::Control {
                    reach.resize(n, 0.0);
                    let found = slots.iter().map(|slot| slot.estimate.diameter * slot.estimate.diameter);
                    found.enumerate().for_each(|(q, squared)| reach[unit(q)] = squared);
                    given[arm].iter().for_each(|(unit, squared, _)| reach[*unit] = *squared);
                }
            }
            few
        };
        // Both metrics at once: where one of them waits for its last unit the other goes on.
        let (of_cure, of_time) = (&mut slots.cure, &mut slots.time);
        let (mut few, of_time) =
            rayon::join(|| under(Estimand::Cure, of_cure, &given.cure), || under(Estimand::Time, of_time, &given.time));
        few.extend(of_time);
        let in_order = |(slots, given)| in_order(slots, given);
        let noted = slots.zip(given).map(|(slots, given)| slots.zip(given).map(in_order));
        Filled { unserved: self.unserved(few), noted }
    }

    /// Why units have no effect, from the arms in which they have too few candidates.
    fn unserved(&self, few: Vec<(usize, Arm, u32)>) -> Vec<(usize, Unserved)> {
        let mut out: BTreeMap<usize, Unserved> = BTreeMap::new();
        for (unit, arm, candidates) in few {
            // What an arm has beyond the fewest is of no interest.
            let nothing = Unserved { candidates: ByArm::of(|_| self.fewest), group_size: self.fewest };
            out.entry(unit).or_insert(nothing).candidates[arm] = candidates as usize;
        }
        out.into_iter().collect()
    }

    /// Estimates units under one fold, block by block. `measure` sees each group; `finish` sees the units of a block
    /// with what was measured, and may correct their effects. Groups that are kept are measured by nobody: no
    /// corrector needs them.
    pub(crate) fn estimate<M: Send + Sync + Default>(
        &self,
        fold: &Fold,
        asked: &Asked<'_>,
        watch: &dyn Watch,
        measure: impl Fn(Estimand, Arm, &Found<'_>) -> M + Sync,
        finish: impl Fn(Range<usize>, &[f64], &mut [Effect], &Four<Vec<M>>),
    ) -> Result<Estimated, Error> {
        self.estimate_by(&self.searches_of(fold, asked.placed), fold, asked, watch, measure, finish)
    }

    /// Does what [`Ground::estimate`] does, by searches of that fold that are at hand.
    pub(crate) fn estimate_by<M: Send + Sync + Default>(
        &self,
        searches: &Four<ArmSearch<'_>>,
        fold: &Fold,
        asked: &Asked<'_>,
        watch: &dyn Watch,
        measure: impl Fn(Estimand, Arm, &Found<'_>) -> M + Sync,
        finish: impl Fn(Range<usize>, &[f64], &mut [Effect], &Four<Vec<M>>),
    ) -> Result<Estimated, Error> {
        let n = asked.own.len();
        let size = if self.rules.is_some() { CONSTRAINED_BLOCK } else { BLOCK };
        let (mut effects, mut unserved) = (Vec::with_capacity(n), Vec::new());
        let mut groups: Option<Four<Groups>> =
            asked.keep.then(|| fold.group_size.map(|k| ByArm::of(|_| Groups::new(k))));
        for start in (0..n).step_by(size) {
            watch.step("matching", start, n)?;
            let of = start..n.min(start + size);
            let rows = if asked.placed.is_some() { Vec::new() } else { (asked.rows)(of.clone()) };
            let block = Block {
                queries: Queries { covariates: &rows, own: &asked.own[of.clone()] },
                placed: ByEstimand::join(|estimand| match asked.placed {
                    Some(all) if of.len() == n => Placed::Shared(Cow::Borrowed(&all.points[estimand])),
                    Some(all) => Placed::Shared(Cow::Owned(all.points[estimand].some(of.clone()))),
                    None => Placed::new(&fold.metrics[estimand], &rows),
                }),
                nearest: asked.keep,
            };
            let from = effects.len();
            effects.par_extend(of.clone().into_par_iter().with_min_len(512).map(|_| Effect::NOTHING));
            let at_hand = |estimand: Estimand, arm: Arm| Ready::AtHand(&searches[estimand][arm]);
            let (here, all) = (&mut effects[from..], &mut groups);
            let without = match all {
                Some(all) => {
                    let mut some = fold.group_size.map(|k| ByArm::of(|_| Groups::blank(of.len(), k)));
                    let mut rooms = some.each_mut().map(|of_arms| of_arms.each_mut().map(Groups::rooms));
                    let start = |e: Estimand, z: Arm| rooms[e][z].next().expect("room for each group");
                    let keep = |_: Estimand, _: Arm, room: &mut GroupRoom<'_>, found: &Found<'_>| {
                        match found.crowd {
                            None => room.0.copy_from_slice(found.ranks),
                            Some((crowd, own)) => *room.2 = Some((Arc::clone(crowd), own)),
                        }
                        *room.1 = found.nearest;
                    };
                    let unserved = self.fill(fold, &block, here, at_hand, start, keep, None).unserved;
                    drop(rooms);
                    let some = some.into_iter().flatten();
                    let all = all.each_mut().into_iter().flat_map(ByArm::each_mut);
                    all.zip(some).for_each(|(all, some)| all.append(some, &unserved));
                    unserved
                }
                None => {
                    let start = |_: Estimand, _: Arm| M::default();
                    let note = |e: Estimand, z: Arm, m: &mut M, found: &Found<'_>| *m = measure(e, z, found);
                    let filled = self.fill(fold, &block, here, at_hand, start, note, None);
                    finish(of.clone(), &rows, &mut effects[from..], &filled.noted);
                    filled.unserved
                }
            };
            if !without.is_empty() {
                let mut places = without.iter().map(|(q, _)| from + q).peekable();
                let mut at = 0..;
                effects.retain(|_| {
                    let q = at.next().expect("counted up");
                    places.next_if_eq(&q).is_none()
                });
                unserved.extend(without.into_iter().map(|(q, why)| (start + q, why)));
            }
        }
        watch.progress("matching", n, n);
        Ok(Estimated { effects, unserved, groups })
    }

    /// Visits the groups of estimated units in one arm for one estimand, in the order of the units: the position of the
    /// unit among them, the places of its members in the pool's order of time, ascending, what they count where not
    /// each counts once, and the distance to the nearest member that is not the unit itself.
    pub(crate) fn each_group(
        &self,
        fit: &Fit,
        units: &[u32],
        (estimand, arm): (Estimand, Arm),
        mut visit: impl FnMut(usize, &[u32], &[f64], f64),
    ) {
        let deal = fit.first();
        let made = |fold: &Fold| self.search(&fold.metrics[estimand][arm], arm);
        let at_hand = (deal.folds.len() == 1).then(|| made(&deal.folds[0]));
        let mut room = Room::default();
        for (b, block) in units.chunks(BLOCK).enumerate() {
            let mut groups: Vec<Option<Seen>> = vec![None; block.len()];
            for (number, fold) in deal.folds.iter().enumerate() {
                let of_fold: Vec<u32> =
                    block.iter().copied().filter(|&i| deal.fold_of[i as usize] as usize == number).collect();
                let mut places: Vec<&mut Option<_>> = (groups.iter_mut().zip(block))
                    .filter(|(_, i)| deal.fold_of[**i as usize] as usize == number)
                    .map(|(place, _)| place)
                    .collect();
                let rows = self.cohort.rows_of(&of_fold);
                let own: Vec<Option<u32>> = of_fold.iter().copied().map(Some).collect();
                let ask = Ask {
                    queries: Queries { covariates: &rows, own: &own },
                    placed: &fold.metrics[estimand][arm].place(&rows),
                    group_size: fold.group_size[estimand],
                    fewest: 1,
                };
                let search = at_hand.as_ref().map_or_else(|| Ready::Made(made(fold)), Ready::AtHand);
                search.sets(&ask, Help { hints: None, nearest: true }, &mut places, |place, found| {
                    **place = found.ok().map(|f| match f.crowd {
                        None => (f.ranks.to_vec(), None, f.nearest),
                        Some((crowd, own)) => (Vec::new(), Some((Arc::clone(crowd), own)), f.nearest),
                    });
                });
            }
            for (q, group) in groups.iter().enumerate() {
                let (ranks, shared, nearest) = group.as_ref().expect("an estimated unit has its groups");
                match shared {
                    None => visit(b * BLOCK + q, ranks, &[], *nearest),
                    Some((crowd, own)) => {
                        crowd.fill(*own, &mut room);
                        visit(b * BLOCK + q, &room.ranks, &room.shares, *nearest);
                    }
                }
            }
        }
    }
}

/// A group that a walk is to be shown: its members or who shares its places, and the distance of the nearest.
type Seen = (Vec<u32>, Option<Shared>, f64);

/// What was noted of the groups of all units, from those that were searched for and those that were known.
fn in_order<M>(slots: Vec<Slot<'_, M>>, given: Vec<(usize, f64, M)>) -> Vec<M> {
    let (mut slots, mut given) = (slots.into_iter(), given.into_iter().peekable());
    let n = slots.len() + given.len();
    let of = |unit: usize| match given.next_if(|(known, _, _)| *known == unit) {
        Some((_, _, noted)) => noted,
        None => slots.next().expect("each unit has a slot or was known").noted,
    };
    (0..n).map(of).collect()
}

/// The units of a block whose groups in one arm are not known yet.
struct Sought<'b> {
    placed: Cow<'b, Points>,
    /// These units; `None` where they are all units of the block.
    some: Option<Subset>,
}

/// Some units of a block.
struct Subset {
    units: Vec<usize>,
    covariates: Vec<f64>,
    own: Vec<Option<u32>>,
}

impl<'b> Sought<'b> {
    fn new<M>(given: &[(usize, f64, M)], block: &'b Block<'_>, placed: &'b Points) -> Sought<'b> {
        if given.is_empty() {
            return Sought { placed: Cow::Borrowed(placed), some: None };
        }
        let Queries { covariates, own } = block.queries;
        let mut known = given.iter().map(|(unit, _, _)| *unit).peekable();
        let units: Vec<usize> = (0..own.len()).filter(|unit| known.next_if_eq(unit).is_none()).collect();
        let p = covariates.len() / own.len().max(1);
        let rows = units.iter().flat_map(|&unit| &covariates[unit * p..(unit + 1) * p]);
        let coords = units.iter().flat_map(|&unit| placed.point(unit)).copied().collect();
        Sought {
            placed: Cow::Owned(Points { dim: placed.dim, coords }),
            some: Some(Subset {
                covariates: rows.copied().collect(),
                own: units.iter().map(|&unit| own[unit]).collect(),
                units,
            }),
        }
    }

    fn queries<'q>(&'q self, block: &Block<'q>) -> Queries<'q> {
        match &self.some {
            Some(some) => Queries { covariates: &some.covariates, own: &some.own },
            None => block.queries,
        }
    }
}

/// Estimated units, all units of the pools among them, in the match spaces of a fold whose arms have one metric.
pub(crate) struct Everyone<'a> {
    units: &'a [u32],
    points: ByEstimand<Points>,
}

impl<'a> Everyone<'a> {
    /// Places the units of a fold together with the pools, where that serves both arms and nothing else is needed of
    /// them.
    pub(crate) fn new(ground: &Ground<'_>, fold: &Fold, units: &'a [u32]) -> Option<Everyone<'a>> {
        let one_metric = fold.metrics.iter().all(|of_arms| of_arms.control == of_arms.treated);
        let pooled: usize = ground.pools.iter().map(Pool::len).sum();
        (one_metric && ground.rules.is_none() && pooled == units.len()).then(|| {
            let rows = || units.iter().map(|&i| ground.cohort.covariates(i as usize));
            let points = ByEstimand::join(|estimand| fold.metrics[estimand].control.place_rows(rows()));
            Everyone { units, points }
        })
    }

    /// The rows of some of the units; both ascend.
    fn rows(&self, some: &[u32]) -> Vec<u32> {
        let mut row = 0;
        let of = |unit: &u32| {
            row += self.units[row..].iter().position(|u| u == unit).expect("a unit that is placed");
            row as u32
        };
        some.iter().map(of).collect()
    }
}
