//! Patients who were not in the cohort, and patients of the cohort who are estimated again.
//!
//! *A new patient* is estimated by all folds together. Its groups are the K nearest under the mean of the folds'
//! metrics (of each estimand and arm), K the lower median of the folds'. Where folds have correctors, `logit S_model`
//! and `ln m_model` are means over all models and the weight is the mean of the folds' weights. What the model expects
//! of a member is what the model said that did not see the member's outcome, so that groups speak as honestly here as
//! in the cohort. Variances of the model are means over the models: they share most of their units, so that a mean of
//! them is hardly surer than one.
//!
//! *A patient of the cohort* is estimated as in the run: by the folds that left it out, without it in its groups.

use crate::arm::{Arm, ByArm};
use crate::cohort::Cohort;
use crate::constraint::Unserved;
use crate::correction::{Corrector, Expected, FoldModel, Offset, Opinion, Weighed, add_leftover, correct, pooled};
use crate::crossfit::Standardised;
use crate::effect::{Corrected, Effect, Four};
use crate::error::Error;
use crate::estimand::{ByEstimand, Estimand};
use crate::fold::{Deal, Fit, Fold, NO_FOLD};
use crate::ground::{Asked, Ground};
use crate::group::GroupEstimate;
use crate::joint::{Prediction, Predictor, ShareTable, Spread, Spreads};
use crate::metric::Scaling;
use crate::numeric::expit;
use crate::search::{ArmSearch, Found};
use crate::watch::Watch;
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

/// What a group gave, its members as positions in the cohort, and what they count.
pub type GivenGroup<'g> = (GroupEstimate, &'g [u32], &'g [f64]);

/// What is expected of each unit of a pool, in the pool's order of time, and the same for sums over groups.
struct Expectations {
    each: Vec<Expected>,
    weighed: Weighed,
}

/// Both arms under both metrics that new patients are matched by, ready to be searched.
pub struct Prepared<'n>(Four<ArmSearch<'n>>);

/// Patients who are to be estimated, some of whom the models may have learned from.
#[derive(Clone, Copy)]
pub struct Patients<'p> {
    /// Covariates as recorded, row-major.
    pub covariates: &'p [f64],
    /// The position in the cohort of each who is in it.
    pub own: &'p [Option<u32>],
    /// For each deal, the fold that left out each of those whom models learned from, and [`NO_FOLD`] for the others.
    pub left_out: &'p [Vec<u8>],
}

/// Estimates patients against a cohort that was analysed before.
pub struct Newcomers<'a> {
    ground: Ground<'a>,
    fit: &'a Fit,
    /// What new patients are matched by.
    shared: Cow<'a, Fold>,
    /// What corrects the groups; `None` where the folds have no corrector.
    correction: Option<Correction<'a>>,
}

/// The correctors of a fit, ready for patients of the cohort and for others.
struct Correction<'a> {
    fit: &'a Fit,
    scaling: &'a Scaling,
    x: Standardised,
    /// F of the family that all models have.
    shares: ShareTable,
    /// Mean weight over folds.
    weight: ByEstimand<f64>,
    /// Mean over deals of what the groups' offsets vary beyond their noise.
    leftover: Four<f64>,
    /// What is expected of each unit of both pools, in their order of time, by models that did not see it; made when
    /// first needed.
    expected: OnceLock<ByArm<Expectations>>,
}

impl<'a> Newcomers<'a> {
    /// Prepares a run. Refuses constraints that do not fit the cohort.
    pub fn new(fit: &'a Fit, cohort: &'a Cohort) -> Result<Newcomers<'a>, Error> {
        Ok(Newcomers::on(Ground::of_fit(fit, cohort)?, fit))
    }

    /// Prepares a run without its constraints: everybody is served.
    pub(crate) fn unconstrained(fit: &'a Fit, cohort: &'a Cohort) -> Result<Newcomers<'a>, Error> {
        Ok(Newcomers::on(Ground::of_fit(fit, cohort)?.without_rules(), fit))
    }

    fn on(ground: Ground<'a>, fit: &'a Fit) -> Newcomers<'a> {
        let correction = Correction::new(ground.cohort, fit);
        Newcomers { ground, fit, shared: fit.fold_for_newcomers(), correction }
    }

    /// Estimates rows of covariates as recorded. `own` is the position of each that is in the cohort, and is estimated
    /// as the run did.
    pub fn estimate(
        &self,
        covariates: &[f64],
        own: &[Option<u32>],
        watch: &dyn Watch,
    ) -> Result<Vec<Result<Effect, Unserved>>, Error> {
        let p = self.ground.cohort.n_covariates();
        let row = |q: usize| &covariates[q * p..(q + 1) * p];
        let is_left_out = |i: u32| self.fit.first().fold_of[i as usize] != NO_FOLD;
        let (known, new): (Vec<usize>, Vec<usize>) =
            (0..own.len()).partition(|&q| self.correction.is_some() && own[q].is_some_and(is_left_out));
        let mut out: Vec<Option<Result<Effect, Unserved>>> = vec![None; own.len()];
        if !new.is_empty() {
            let own: Vec<Option<u32>> = new.iter().map(|&q| own[q]).collect();
            let rows = |of: Range<usize>| new[of].iter().flat_map(|&q| row(q)).copied().collect();
            let found = self.of_newcomers(&Asked { own: &own, rows: &rows, placed: None, keep: false }, watch)?;
            new.iter().zip(found).for_each(|(&q, e)| out[q] = Some(e));
        }
        let units: Vec<u32> = known.iter().filter_map(|&q| own[q]).collect();
        known.iter().zip(self.of_cohort(&units, watch)?).for_each(|(&q, e)| out[q] = Some(e));
        Ok(out.into_iter().map(|e| e.expect("each is new or of the cohort")).collect())
    }

    /// Searches that many calls of [`Newcomers::estimate_each`] share.
    pub fn prepared(&self) -> Prepared<'_> {
        Prepared(self.ground.searches(&self.shared))
    }

    /// Estimates patients: those whom models learned from by the folds that left them out, whether or not the cohort
    /// holds them, the others by all folds.
    pub fn estimate_each(
        &self,
        prepared: &Prepared<'_>,
        patients: &Patients<'_>,
        watch: &dyn Watch,
    ) -> Result<Vec<Result<Effect, Unserved>>, Error> {
        let p = self.ground.cohort.n_covariates();
        let Patients { covariates, own, left_out } = *patients;
        let row = |q: usize| &covariates[q * p..(q + 1) * p];
        let is_known = |q: &usize| self.correction.is_some() && left_out.iter().any(|of| of[*q] != NO_FOLD);
        let (known, new): (Vec<usize>, Vec<usize>) = (0..own.len()).partition(is_known);
        let rows_of = |some: &[usize]| some.iter().flat_map(|&q| row(q)).copied().collect::<Vec<f64>>();
        let own_of = |some: &[usize]| some.iter().map(|&q| own[q]).collect::<Vec<Option<u32>>>();
        let mut out: Vec<Option<Result<Effect, Unserved>>> = vec![None; own.len()];
        if !new.is_empty() {
            let rows = |of: Range<usize>| rows_of(&new[of]);
            let asked = Asked { own: &own_of(&new), rows: &rows, placed: None, keep: false };
            let found = self.of_newcomers_by(&prepared.0, &asked, watch)?;
            new.iter().zip(found).for_each(|(&q, e)| out[q] = Some(e));
        }
        let rows = |some: &[usize]| some.iter().flat_map(|&q| row(known[q])).copied().collect();
        let fold = |deal: usize, q: usize| left_out[deal][known[q]];
        let found = self.of_left_out(&LeftOut { own: &own_of(&known), rows: &rows, fold: &fold }, watch)?;
        known.iter().zip(found).for_each(|(&q, e)| out[q] = Some(e));
        Ok(out.into_iter().map(|e| e.expect("each is known or new")).collect())
    }

    fn of_newcomers(&self, asked: &Asked<'_>, watch: &dyn Watch) -> Result<Vec<Result<Effect, Unserved>>, Error> {
        self.of_newcomers_by(&self.ground.searches(&self.shared), asked, watch)
    }

    fn of_newcomers_by(
        &self,
        searches: &Four<ArmSearch<'_>>,
        asked: &Asked<'_>,
        watch: &dyn Watch,
    ) -> Result<Vec<Result<Effect, Unserved>>, Error> {
        let found = match &self.correction {
            None => self.ground.estimate_by(searches, &self.shared, asked, watch, |_, _, _| (), |_, _, _, _| ()),
            Some(correction) => {
                let expected = correction.expected(&self.ground);
                let finish = |_: Range<usize>, rows: &[f64], effects: &mut [Effect], offsets: &Four<Vec<Offset>>| {
                    let opinions = correction.of_all_models(&correction.scaling.apply(rows));
                    let (weight, leftover) = (&correction.weight, &correction.leftover);
                    self.finish(correction.any_model(), &opinions, weight, leftover, effects, offsets);
                };
                self.ground.estimate_by(
                    searches,
                    &self.shared,
                    asked,
                    watch,
                    measure(&self.ground, expected.each_ref().map(|e| &e.weighed)),
                    finish,
                )
            }
        };
        Ok(found?.into_each())
    }

    fn finish(
        &self,
        predictor: &Predictor,
        opinions: &[Opinion],
        weight: &ByEstimand<f64>,
        leftover: &Four<f64>,
        effects: &mut [Effect],
        offsets: &Four<Vec<Offset>>,
    ) {
        for (q, (effect, opinion)) in effects.iter_mut().zip(opinions).enumerate() {
            let offsets = offsets.each_ref().map(|of_arms| of_arms.each_ref().map(|all| all[q]));
            let mut corrected = correct(predictor, opinion, &offsets, weight, &self.ground.grid);
            add_leftover(&mut corrected, leftover);
            effect.corrected = Some(corrected);
        }
    }

    /// Estimates units of the cohort as the run did: a mean over its deals.
    fn of_cohort(&self, units: &[u32], watch: &dyn Watch) -> Result<Vec<Result<Effect, Unserved>>, Error> {
        let own: Vec<Option<u32>> = units.iter().copied().map(Some).collect();
        let rows = |some: &[usize]| self.ground.cohort.rows_of(&some.iter().map(|&q| units[q]).collect::<Vec<u32>>());
        let fold = |deal: usize, q: usize| self.fit.deals[deal].fold_of[units[q] as usize];
        self.of_left_out(&LeftOut { own: &own, rows: &rows, fold: &fold }, watch)
    }

    fn of_left_out(&self, whom: &LeftOut<'_>, watch: &dyn Watch) -> Result<Vec<Result<Effect, Unserved>>, Error> {
        let of_deals: Vec<_> =
            (0..self.fit.deals.len()).map(|d| self.of_deal(d, whom, watch)).collect::<Result<_, Error>>()?;
        let mut of_deals = of_deals.into_iter();
        let Some(mut first) = of_deals.next() else { return Ok(Vec::new()) };
        let others: Vec<Vec<Result<Effect, Unserved>>> = of_deals.collect();
        for (q, effect) in first.iter_mut().enumerate() {
            if let Ok(e) = effect {
                let rest = others.iter().filter_map(|o| o[q].ok()?.corrected);
                let all: Vec<Corrected> = e.corrected.into_iter().chain(rest).collect();
                e.corrected = Some(pooled(&all, &self.ground.grid));
            }
        }
        Ok(first)
    }

    fn of_deal(
        &self,
        deal: usize,
        whom: &LeftOut<'_>,
        watch: &dyn Watch,
    ) -> Result<Vec<Result<Effect, Unserved>>, Error> {
        let n = whom.own.len();
        let mut out: Vec<Option<Result<Effect, Unserved>>> = vec![None; n];
        for (number, fold) in self.fit.deals[deal].folds.iter().enumerate() {
            let of_fold: Vec<usize> = (0..n).filter(|&q| (whom.fold)(deal, q) as usize == number).collect();
            let (Some(corrector), Some(correction), false) = (&fold.corrector, &self.correction, of_fold.is_empty())
            else {
                continue;
            };
            let own: Vec<Option<u32>> = of_fold.iter().map(|&q| whom.own[q]).collect();
            let rows = |of: Range<usize>| (whom.rows)(&of_fold[of]);
            let expected = correction.x.expected(&self.ground, &corrector.model);
            let expected = ByArm::of(|arm| Weighed::by_time(&self.ground.pools[arm], &expected[arm]));
            let finish = |_: Range<usize>, rows: &[f64], effects: &mut [Effect], offsets: &Four<Vec<Offset>>| {
                let opinions = corrector.model.opinions(&correction.scaling.apply(rows));
                let (predictor, Corrector { weight, leftover, .. }) = (&corrector.model.predictor, corrector);
                self.finish(predictor, &opinions, weight, leftover, effects, offsets);
            };
            let asked = Asked { own: &own, rows: &rows, placed: None, keep: false };
            let found =
                self.ground.estimate(fold, &asked, watch, measure(&self.ground, expected.each_ref()), finish)?;
            of_fold.iter().zip(found.into_each()).for_each(|(&q, effect)| out[q] = Some(effect));
        }
        Ok(out.into_iter().map(|e| e.expect("every unit is in a fold")).collect())
    }

    /// Corrects groups of any size of a patient with these covariates as recorded: what each group gave, and its
    /// members as positions in the cohort with what they count. A patient of the cohort, `own`, is corrected by the
    /// fold of the first deal that left it out, whose groups they must be. `None` where the run corrects nothing.
    pub fn correct(&self, x: &[f64], own: Option<u32>, groups: &Four<GivenGroup<'_>>) -> Option<Corrected> {
        let correction = self.correction.as_ref()?;
        let standardised = correction.scaling.apply(x);
        let number = self.fit.fold_number(own);
        let corrector: Option<&Corrector> = number.and_then(|f| self.fit.first().folds[f].corrector.as_ref());
        let opinion = match corrector {
            Some(corrector) => corrector.model.opinions(&standardised).swap_remove(0),
            None => correction.of_all_models(&standardised).swap_remove(0),
        };
        let expected = |arm: Arm, rank: u32, unit: u32| match corrector {
            Some(c) => {
                let p = c.model.predictor.expect(arm, correction.x.row(unit as usize));
                c.model.expected(&correction.shares, &p, self.ground.cohort.weight(unit as usize), &self.ground.grid)
            }
            None => correction.expected(&self.ground)[arm].each[rank as usize],
        };
        let offsets = ByEstimand::of(|estimand| {
            ByArm::of(|arm| {
                let (group, members, shares) = &groups[estimand][arm];
                let pool = &self.ground.pools[arm];
                let rank = |(&i, &share): (&u32, &f64)| {
                    let m = pool.units.binary_search(&i).expect("members are of the pool");
                    (pool.rank(m as u32), i, share)
                };
                let mut ranked: Vec<(u32, u32, f64)> = members.iter().zip(*shares).map(rank).collect();
                ranked.sort_unstable_by_key(|member| member.0);
                let ranks: Vec<u32> = ranked.iter().map(|member| member.0).collect();
                let counts: Vec<f64> = ranked.iter().map(|member| member.2).collect();
                let members: Vec<Expected> = ranked.iter().map(|m| expected(arm, m.0, m.1)).collect();
                let seen = || pool.event_shares(&ranks, &counts, &self.ground.grid);
                let places: Vec<u32> = (0..members.len() as u32).collect();
                Offset::of(estimand, group, &Weighed::new(&members), (&places, &counts), seen)
            })
        });
        let (weight, leftover) = match corrector {
            Some(c) => (&c.weight, &c.leftover),
            None => (&correction.weight, &correction.leftover),
        };
        let predictor = corrector.map_or(correction.any_model(), |c| &c.model.predictor);
        let mut corrected = correct(predictor, &opinion, &offsets, weight, &self.ground.grid);
        add_leftover(&mut corrected, leftover);
        Some(corrected)
    }
}

/// Patients whom models learned from.
struct LeftOut<'w> {
    own: &'w [Option<u32>],
    /// Gives the covariates, as recorded, of some of them.
    rows: &'w (dyn Fn(&[usize]) -> Vec<f64> + Sync),
    /// The fold of a deal that left a patient out.
    fold: &'w dyn Fn(usize, usize) -> u8,
}

/// The offset of a group from what is expected of its members.
fn measure<'a>(
    ground: &'a Ground<'_>,
    expected: ByArm<&'a Weighed>,
) -> impl Fn(Estimand, Arm, &Found<'_>) -> Offset + Sync + 'a {
    move |estimand, arm, found| {
        let seen = || ground.pools[arm].event_shares(found.ranks, found.shares, &ground.grid);
        Offset::of(estimand, &found.estimate, expected[arm], (found.ranks, found.shares), seen)
    }
}

impl<'a> Correction<'a> {
    fn new(cohort: &Cohort, fit: &'a Fit) -> Option<Correction<'a>> {
        if !fit.is_corrected() {
            return None;
        }
        let all: Vec<&Corrector> = fit.folds().filter_map(|f| f.corrector.as_ref()).collect();
        let of_deals: Vec<&Corrector> = fit.deals.iter().filter_map(|d| d.folds.first()?.corrector.as_ref()).collect();
        let mean =
            |of: &[&Corrector], f: &dyn Fn(&Corrector) -> f64| of.iter().map(|c| f(c)).sum::<f64>() / of.len() as f64;
        let scaling = &fit.description.metrics.cure.scaling;
        Some(Correction {
            fit,
            scaling,
            shares: all.first()?.model.shares(),
            x: Standardised::new(cohort, scaling),
            weight: ByEstimand::of(|estimand| mean(&all, &|c| c.weight[estimand])),
            // All folds of a deal have one leftover variance.
            leftover: ByEstimand::of(|estimand| ByArm::of(|z| mean(&of_deals, &|c| c.leftover[estimand][z]))),
            expected: OnceLock::new(),
        })
    }

    fn models(&self) -> impl Iterator<Item = &FoldModel> {
        self.fit.folds().filter_map(|f| Some(&f.corrector.as_ref()?.model))
    }

    /// What the models that left out each unit of the pools expect of it in its own arm: the mean over deals.
    fn expected(&self, ground: &Ground<'_>) -> &ByArm<Expectations> {
        let model_of = |deal: &'a Deal, i: usize| -> &'a FoldModel {
            let corrector = deal.folds[deal.fold_of[i] as usize].corrector.as_ref();
            &corrector.expect("each fold has a corrector, or none has").model
        };
        self.expected.get_or_init(|| {
            ByArm::of(|arm| {
                let of = |&i: &u32| {
                    let i = i as usize;
                    Expected::mean(self.fit.deals.iter().map(|deal| {
                        let model = model_of(deal, i);
                        let p = &model.predictor.expect(arm, self.x.row(i));
                        model.expected(&self.shares, p, ground.cohort.weight(i), &ground.grid)
                    }))
                };
                let pool = &ground.pools[arm];
                let expected: Vec<Expected> = pool.units.par_iter().with_min_len(256).map(of).collect();
                let mut each = expected.clone();
                expected.iter().zip(0..).for_each(|(e, m)| each[pool.rank(m) as usize] = *e);
                Expectations { weighed: Weighed::new(&each), each }
            })
        })
    }

    /// One of the models: all have one family and one horizon.
    fn any_model(&self) -> &Predictor {
        &self.models().next().expect("a corrected fit has a model").predictor
    }

    /// What all models together say of each row of standardised covariates.
    fn of_all_models(&self, standardised: &[f64]) -> Vec<Opinion> {
        let nothing =
            Prediction { cure_logit: 0.0, cure_probability: 0.0, mean_event_time: 0.0, location: 0.0, log_sigma: 0.0 };
        let blank = Opinion { predicted: ByArm::of(|_| nothing), spreads: Spreads::default() };
        let mut sums = vec![blank; standardised.len() / self.scaling.center.len()];
        let mut n = 0.0;
        for model in self.models() {
            n += 1.0;
            for (sum, opinion) in sums.iter_mut().zip(model.opinions(standardised)) {
                for arm in Arm::BOTH {
                    let (sum, p) = (&mut sum.predicted[arm], &opinion.predicted[arm]);
                    sum.cure_logit += p.cure_logit;
                    sum.mean_event_time += libm::log(p.mean_event_time);
                    sum.location += p.location;
                    sum.log_sigma += p.log_sigma;
                }
                for estimand in Estimand::BOTH {
                    let (sum, spread) = (&mut sum.spreads.of[estimand], &opinion.spreads.of[estimand]);
                    Arm::BOTH.into_iter().for_each(|arm| sum.variance[arm] += spread.variance[arm]);
                    sum.covariance += spread.covariance;
                }
                for a in Arm::BOTH {
                    for b in Arm::BOTH {
                        sum.spreads.cross[a][b] += opinion.spreads.cross[a][b];
                    }
                }
            }
        }
        let mean = |sum: Opinion| Opinion {
            predicted: sum.predicted.map(|p| {
                let cure_logit = p.cure_logit / n;
                Prediction {
                    cure_logit,
                    cure_probability: expit(cure_logit),
                    mean_event_time: libm::exp(p.mean_event_time / n),
                    location: p.location / n,
                    log_sigma: p.log_sigma / n,
                }
            }),
            spreads: Spreads {
                of: (sum.spreads.of)
                    .map(|s| Spread { variance: s.variance.map(|v| v / n), covariance: s.covariance / n }),
                cross: sum.spreads.cross.map(|of| of.map(|v| v / n)),
            },
        };
        sums.into_iter().map(mean).collect()
    }
}
