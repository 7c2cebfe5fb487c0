//! Patients who were not in the cohort, and patients of the cohort who are asked for again.
//!
//! *A new patient* is estimated by all models together: `logit S_model` and `ln m_model` are means over the models of all
//! splits. Its groups are the K nearest under the mean of the folds' metrics (of each estimand and arm), K the lower median and w the mean of what
//! the folds chose. What the model expects of a member is what the model said that did not see the member's outcome, so
//! that groups speak as honestly here as in the cohort. Variances of the model are means over the models: they share most of their
//! units, so that a mean of them is hardly surer than one.
//!
//! *A patient of the cohort* is estimated as in the run: by the models that left it out, without it in its groups.

use super::groups::{
    Expected, Four, GroupSearch, OfModel, Place, add_leftover, all_four, arms, correct, offset, pooled,
};
use super::{AdjustedOptions, CURE, Choice, CrossFit, Deal, Fold, FoldModel, TIME};
use crate::cohort::{Arm, Cohort};
use crate::constraint::{Queries, Rules, Unserved};
use crate::effect::{Corrected, Effect, GroupEstimate};
use crate::estimand::Estimand;
use crate::joint::{Prediction, Spread};
use crate::metric::{Metric, Scaling};
use crate::numeric::expit;
use rayon::prelude::*;
use std::sync::OnceLock;

impl CrossFit {
    /// What new patients are matched by: mean metrics over the folds of all deals, the lower median K and the mean weight.
    pub fn for_newcomers(&self) -> Fold {
        let all: Vec<&Fold> = self.folds().collect();
        let n = all.len() as f64;
        let metric = |part: usize, z: usize| {
            let first = &all[0].metrics[part][z];
            let mean = |j: usize| all.iter().map(|f| f.metrics[part][z].weights[j]).sum::<f64>() / n;
            Metric { weights: (0..first.weights.len()).map(mean).collect(), scaling: first.scaling.clone() }
        };
        let choice = |part: usize| {
            let mut sizes: Vec<usize> = all.iter().map(|f| f.choices[part].group_size).collect();
            sizes.sort_unstable();
            let weight = all.iter().map(|f| f.choices[part].weight).sum::<f64>() / n;
            Choice { group_size: sizes[(sizes.len() - 1) / 2], weight }
        };
        Fold {
            metrics: [CURE, TIME].map(|part| [0, 1].map(|z| metric(part, z))),
            choices: [CURE, TIME].map(choice),
            warnings: Vec::new(),
        }
    }

    /// Whether the run kept the models, without which nobody can be estimated anew.
    pub fn has_models(&self) -> bool {
        self.deals.iter().all(|r| r.models.len() == r.folds.len())
    }
}

/// Estimates patients against a cohort that was analysed before.
pub struct Newcomers<'a> {
    place: Place<'a>,
    cross_fit: &'a CrossFit,
    shared: Fold,
    /// Mean over deals of what the groups' offsets vary beyond their noise.
    leftover: [[f64; 2]; 2],
    /// What is expected of each unit of both pools by models that did not see it; made when first asked for.
    expected: OnceLock<[Vec<Expected>; 2]>,
}

impl<'a> Newcomers<'a> {
    /// Prepares a run; `None` where it did not keep its models.
    pub fn new(
        cohort: &'a Cohort,
        cross_fit: &'a CrossFit,
        scaling: &Scaling,
        rules: Option<Rules>,
        options: &AdjustedOptions,
    ) -> Option<Newcomers<'a>> {
        let n = cross_fit.deals.len() as f64;
        let mean = |part: usize, z: usize| cross_fit.deals.iter().map(|r| r.leftover[part][z]).sum::<f64>() / n;
        cross_fit.has_models().then(|| Newcomers {
            place: Place::new(cohort, scaling, rules, options.fewest()),
            cross_fit,
            shared: cross_fit.for_newcomers(),
            leftover: [CURE, TIME].map(|part| [0, 1].map(|z| mean(part, z))),
            expected: OnceLock::new(),
        })
    }

    fn models(&self) -> impl Iterator<Item = &FoldModel> {
        self.cross_fit.deals.iter().flat_map(|r| &r.models)
    }

    /// Of each unit of the pools, what the models that left it out expect in its own arm: the mean over deals.
    fn expected(&self) -> &[Vec<Expected>; 2] {
        self.expected.get_or_init(|| {
            let deals = &self.cross_fit.deals;
            [0, 1].map(|z| {
                let of = |&i: &u32| {
                    let i = i as usize;
                    let (mut cured, mut time) = (0.0, 0.0);
                    for r in deals {
                        let p = r.models[r.fold_of[i] as usize].predictor.predict(self.place.row(i))[Arm::BOTH[z]];
                        cured += p.cure_probability;
                        time += p.mean_event_time;
                    }
                    let n = deals.len() as f64;
                    Expected { cured: cured / n, mean_event_time: time / n }
                };
                self.place.pools[z].units.par_iter().with_min_len(256).map(of).collect()
            })
        })
    }

    /// What all models together say of each row of standardised covariates, with their variances and covariance for cure and time.
    fn of_models(&self, scaled: &[f64]) -> Vec<([Prediction; 2], OfModel)> {
        let nothing =
            Prediction { cure_logit: 0.0, cure_probability: 0.0, mean_event_time: 0.0, location: 0.0, log_sigma: 0.0 };
        let rows = scaled.len() / self.place.p();
        let mut sums = vec![([nothing; 2], [([0.0; 2], 0.0); 2]); rows];
        let mut n = 0.0;
        for model in self.models() {
            n += 1.0;
            let certainty = model.certainty();
            let spreads = Estimand::BOTH.map(|part| certainty.spreads(part, scaled));
            for (q, (sum, p)) in sums.iter_mut().zip(model.predictor.predict_all(scaled)).enumerate() {
                for (sum, p) in sum.0.iter_mut().zip(p) {
                    sum.cure_logit += p.cure_logit;
                    sum.mean_event_time += p.mean_event_time.ln();
                    sum.location += p.location;
                    sum.log_sigma += p.log_sigma;
                }
                for (sum, of_part) in sum.1.iter_mut().zip(&spreads) {
                    let Spread { variance, covariance } = of_part[q];
                    Arm::BOTH.into_iter().for_each(|z| sum.0[z.index()] += variance[z]);
                    sum.1 += covariance;
                }
            }
        }
        for (predicted, spreads) in &mut sums {
            for p in predicted {
                let cure_logit = p.cure_logit / n;
                *p = Prediction {
                    cure_logit,
                    cure_probability: expit(cure_logit),
                    mean_event_time: (p.mean_event_time / n).exp(),
                    location: p.location / n,
                    log_sigma: p.log_sigma / n,
                };
            }
            for (variance, covariance) in spreads {
                variance.iter_mut().for_each(|v| *v /= n);
                *covariance /= n;
            }
        }
        sums
    }

    /// Estimates rows of covariates as recorded. `own` is the position of each that is in the cohort, and is estimated as the run did.
    pub fn estimate(&self, covariates: &[f64], own: &[Option<u32>]) -> Vec<Result<Effect, Unserved>> {
        let p = self.place.p();
        let mut out: Vec<Option<Result<Effect, Unserved>>> = vec![None; own.len()];
        let new: Vec<usize> = (0..own.len()).filter(|&q| own[q].is_none()).collect();
        let rows: Vec<f64> = new.iter().flat_map(|&q| &covariates[q * p..(q + 1) * p]).copied().collect();
        new.iter().zip(self.of_newcomers(&rows)).for_each(|(&q, e)| out[q] = Some(e));
        let known: Vec<(usize, u32)> = own.iter().enumerate().filter_map(|(q, i)| Some((q, (*i)?))).collect();
        let units: Vec<u32> = known.iter().map(|(_, i)| *i).collect();
        known.iter().zip(self.of_cohort(&units)).for_each(|(&(q, _), e)| out[q] = Some(e));
        out.into_iter().map(|e| e.expect("each is new or of the cohort")).collect()
    }

    fn of_newcomers(&self, rows: &[f64]) -> Vec<Result<Effect, Unserved>> {
        if rows.is_empty() {
            return Vec::new();
        }
        let own = vec![None; rows.len() / self.place.p()];
        let found = self.groups(&self.shared, self.expected(), &Queries { covariates: rows, own: &own });
        let of_models = self.of_models(&self.place.scaling.apply(rows));
        let effect = |(four, (p, spreads)): (Result<Four, Unserved>, _)| {
            four.map(|four| self.effect(&self.shared, &self.leftover, &four, &p, spreads))
        };
        found.into_iter().zip(of_models).map(effect).collect()
    }

    /// The four groups of each unit under the metrics of a fold.
    fn groups(&self, fold: &Fold, expected: &[Vec<Expected>; 2], queries: &Queries<'_>) -> Vec<Result<Four, Unserved>> {
        let found = [CURE, TIME].map(|part| {
            [0, 1].map(|z| {
                let search = GroupSearch::new(&self.place, &fold.metrics[part][z], part, z, expected);
                search.offsets(queries, fold.choices[part].group_size, None)
            })
        });
        all_four(found, self.place.fewest)
    }

    fn effect(
        &self,
        fold: &Fold,
        leftover: &[[f64; 2]; 2],
        four: &Four,
        p: &[Prediction; 2],
        of_model: OfModel,
    ) -> Effect {
        let mut corrected = correct(p, four, &fold.choices, of_model, self.place.cohort.horizon());
        add_leftover(&mut corrected, &fold.choices, leftover);
        Effect { arms: arms(four), corrected: Some(corrected) }
    }

    /// What is made of groups of any size of somebody with these covariates as recorded: for cure and time, each in control and treated, what the
    /// group gave and its members as positions in the cohort. For those who have the groups already. A patient of the cohort, `own`, is
    /// corrected by the model of the first deal that left it out, whose groups they must be.
    pub fn correct(&self, x: &[f64], own: Option<usize>, groups: [[(GroupEstimate, &[u32]); 2]; 2]) -> Corrected {
        let scaled = self.place.scaling.apply(x);
        let first = &self.cross_fit.deals[0];
        let fold = own.map(|i| first.fold_of[i] as usize);
        let of = |z: usize, m: usize| match fold {
            Some(f) => {
                let row = self.place.row(self.place.pools[z].units[m] as usize);
                Expected::of(first.models[f].predictor.predict(row)[Arm::BOTH[z]])
            }
            None => self.expected()[z][m],
        };
        let four = [CURE, TIME].map(|part| {
            [0, 1].map(|z| {
                let (group, members) = groups[part][z];
                let pool = &self.place.pools[z];
                let of_pool = |i: &u32| pool.units.binary_search(i).expect("members are of the pool");
                let mut places: Vec<usize> = members.iter().map(of_pool).collect();
                places.sort_by_key(|&m| pool.rank(m as u32));
                offset(part, group, places.into_iter().map(|m| of(z, m)))
            })
        });
        let (choices, leftover, p, spreads) = match fold {
            Some(f) => {
                let (model, certainty) = (&first.models[f], first.models[f].certainty());
                let spreads = Estimand::BOTH
                    .map(|part| certainty.spreads(part, &scaled)[0])
                    .map(|s| (s.variance.into_array(), s.covariance));
                (&first.folds[f].choices, &first.leftover, model.predictor.predict(&scaled).into_array(), spreads)
            }
            None => {
                let (p, spreads) = self.of_models(&scaled).swap_remove(0);
                (&self.shared.choices, &self.leftover, p, spreads)
            }
        };
        let mut corrected = correct(&p, &four, choices, spreads, self.place.cohort.horizon());
        add_leftover(&mut corrected, choices, leftover);
        corrected
    }

    /// Units of the cohort, as the run estimated them.
    fn of_cohort(&self, units: &[u32]) -> Vec<Result<Effect, Unserved>> {
        let mut of_deals = self.cross_fit.deals.iter().map(|r| self.of_deal(r, units));
        let Some(mut first) = of_deals.next() else { return Vec::new() };
        let others: Vec<Vec<Result<Effect, Unserved>>> = of_deals.collect();
        for (q, effect) in first.iter_mut().enumerate() {
            if let Ok(e) = effect {
                let rest = others.iter().filter_map(|o| o[q].ok()?.corrected);
                let all: Vec<Corrected> = e.corrected.into_iter().chain(rest).collect();
                e.corrected = Some(pooled(&all));
            }
        }
        first
    }

    fn of_deal(&self, deal: &Deal, units: &[u32]) -> Vec<Result<Effect, Unserved>> {
        let cohort = self.place.cohort;
        let mut out: Vec<Option<Result<Effect, Unserved>>> = vec![None; units.len()];
        for (number, (fold, model)) in deal.folds.iter().zip(&deal.models).enumerate() {
            let of_fold: Vec<usize> =
                (0..units.len()).filter(|&q| deal.fold_of[units[q] as usize] as usize == number).collect();
            if of_fold.is_empty() {
                continue;
            }
            let here: Vec<u32> = of_fold.iter().map(|&q| units[q]).collect();
            let (rows, own) = super::queries_of(cohort, &here);
            let expected = self.place.expected_by(model);
            let found = self.groups(fold, &expected, &Queries { covariates: &rows, own: &own });
            let scaled: Vec<f64> = here.iter().flat_map(|&i| self.place.row(i as usize)).copied().collect();
            let certainty = model.certainty();
            let spreads = Estimand::BOTH.map(|part| certainty.spreads(part, &scaled));
            let predicted = model.predictor.predict_all(&scaled);
            for (q, four) in found.into_iter().enumerate() {
                let of_model =
                    [CURE, TIME].map(|part| spreads[part][q]).map(|s| (s.variance.into_array(), s.covariance));
                let effect =
                    four.map(|four| self.effect(fold, &deal.leftover, &four, &predicted[q].into_array(), of_model));
                out[of_fold[q]] = Some(effect);
            }
        }
        out.into_iter().map(|e| e.expect("every unit is in a fold")).collect()
    }
}
