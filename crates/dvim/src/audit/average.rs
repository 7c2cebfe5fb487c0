//! Average effects with standard errors by unit.
//!
//! Let `e_z(i)` be the value (Ŝ(H), or CMET) of unit i's group in arm z, and `θ_z = Σ_{i∈P} e_z(i)/n` its mean over a
//! population P of n estimated units. A unit j of the pool serves in many groups, so the terms of the sum are far from
//! independent. But each group's value is, to first order, a sum over its members ([`crate::survival::Influence`]),
//! hence so is θ_z:
//!
//! `θ̂_z − θ_z ≈ Σ_j U_zj`,  `U_zj = (1/n) Σ_{i∈P: j∈G_z(i)} IF_j(G_z(i))`,
//!
//! with the U of different units independent and of mean zero given covariates. The two pools share no unit. To this
//! comes that the units of P are a sample: the true values vary between units with a covariance Σ. So for any contrast
//! `a`
//!
//! `Var(a₀θ̂₀ + a₁θ̂₁) = Σ_z a_z² Σ_j U_zj² + a'Σa / n`,
//!
//! Σ being the covariance of the estimates over units less the mean variance of a unit's estimate. When groups are
//! small the formula is that of independent patients; when a group is the whole arm it is the arm's Greenwood variance
//! (but for the factor of [`super::passes::unbiased`]). A
//! bootstrap of units would not do: it is inconsistent for matching with replacement [Abadie & Imbens 2008].
//!
//! **What it leaves out** is bias: members of a group differ from the unit they stand for. Averaged over P the
//! differences mostly cancel, but not where treatment goes with covariates. `bias` says how much the fitted cure
//! models, which saw none of these outcomes, expect: the mean over P of (the model's value for the group − the model's
//! value for the unit). The `*_corrected` averages subtract it [Abadie & Imbens 2011] and add the variance that the
//! models' parameters bring: the training set is another sample, so the two variances add.

use super::known::Known;
use super::one_step::Scores;
use super::passes::{Gather, Group, Walk, part};
use super::weighted;
use crate::analysis::{Analysis, average, weighted_average};
use crate::arm::{Arm, ByArm};
use crate::cohort::Cohort;
use crate::cure::{CureModel, truncated_mean};
use crate::curve::Grid;
use crate::effect::{Effect, Four};
use crate::error::{Error, Problem, ProblemKind, nearest_names};
use crate::estimand::{ByEstimand, Estimand};
use crate::interval::{averaged_at, two_sided};
use crate::joint::Spread;
use crate::metric::Scaling;
use crate::phrase;
use crate::phrase::Phrase;
use crate::schema::{Covariate, Kind};
use crate::setting::Setting;
use rayon::prelude::*;
use std::fmt;

/// An average over a population, with its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct AverageEffect {
    /// `cure_effect`, `time_effect` (plain or `_corrected`), an arm's value, `cure_ratio` or `number_needed_to_treat`.
    pub estimand: &'static str,
    /// `all`, `treated`, `control` or a subgroup.
    pub population: String,
    /// The estimate; `None` where no unit is defined.
    pub estimate: Option<f64>,
    /// Its standard error.
    pub se: Option<f64>,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Standard deviation of the estimates between units: not a standard error.
    pub sd: Option<f64>,
    /// Matching bias that the cure models expect; included in the estimate, not in the interval.
    pub bias: Option<f64>,
    /// Units that it rests on.
    pub n_units: usize,
    /// Units left out because their effect is undefined.
    pub n_undefined: usize,
    /// Standard deviation of the average over deals; it is in the standard error, divided by the root of their number.
    /// `None` with one deal.
    pub split_sd: Option<f64>,
}

/// A covariate to look at by subgroup.
#[derive(Clone, Debug, PartialEq)]
pub struct By {
    /// Its name.
    pub covariate: String,
    /// Number of bins of equal size; `None`: one subgroup for each value.
    pub bins: Option<usize>,
}

/// Names of subgroups, for each unit the number of its own, and how others are divided.
type Subgroups = (Vec<String>, Vec<usize>, Division);

/// Which subgroup of a covariate a patient is in, from all its covariates as numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Division {
    /// The levels of a category: its column, how many columns it has, and which levels have a subgroup.
    Levels { first: u32, width: u32, there: Vec<u32> },
    /// Where in a column each subgroup begins; with `exact` it is one value.
    Starts { column: u32, starts: Vec<f64>, exact: bool },
}

impl Division {
    /// The number of the subgroup; `None` for a value that has none.
    pub(super) fn of(&self, x: &[f64]) -> Option<usize> {
        match self {
            Division::Levels { first, width, there } => {
                let columns = &x[*first as usize..(first + width) as usize];
                let level = match columns {
                    [indicator] => usize::from(*indicator == 1.0),
                    columns => columns.iter().position(|v| *v == 1.0)?,
                };
                there.iter().position(|l| *l as usize == level)
            }
            Division::Starts { column, starts, exact } => {
                let value = x[*column as usize];
                let after = starts.partition_point(|s| *s <= value);
                let is_there = !exact || after > 0 && starts[after - 1] == value;
                is_there.then(|| after.saturating_sub(1))
            }
        }
    }
}

/// Most subgroups of a covariate.
const MOST_LEVELS: usize = 20;

impl By {
    /// Reads `sex` or `age:4`.
    pub fn parse(text: &str) -> By {
        match text.rsplit_once(':').and_then(|(name, bins)| Some((name, bins.parse().ok()?))) {
            Some((name, bins)) => By { covariate: name.into(), bins: Some(bins) },
            None => By { covariate: text.into(), bins: None },
        }
    }

    /// The subgroups of a category: its levels, in their order, as far as a unit has them.
    fn levels(
        &self,
        c: &Covariate,
        cohort: &Cohort,
        units: &[u32],
    ) -> Result<Subgroups, (Phrase, &'static str, Phrase)> {
        if self.bins.is_some() {
            return Err((
                "bins were asked for, and it is a category".into(),
                "a category has a subgroup for each level",
                phrase!["use ", Setting::By.to(self.covariate.as_str())],
            ));
        }
        let all: Vec<&str> = match &c.kind {
            Kind::Indicator { zero, one } => vec![zero, one],
            Kind::Category { levels } => levels.iter().map(String::as_str).collect(),
            Kind::Number | Kind::Missing => vec![],
        };
        let of = |i: &u32| {
            let level = c.level_of(cohort.covariates(*i as usize));
            all.iter().position(|l| Some(*l) == level).unwrap_or(0)
        };
        let place: Vec<usize> = units.iter().map(of).collect();
        let there: Vec<usize> = (0..all.len()).filter(|l| place.contains(l)).collect();
        if there.len() > MOST_LEVELS {
            return Err((
                format!("it has {} levels", there.len()).into(),
                "a subgroup for each level needs at most 20 levels",
                "merge rare levels".into(),
            ));
        }
        let names = there.iter().map(|&l| format!("{} = {}", self.covariate, all[l])).collect();
        let (first, width) = (c.first as u32, c.columns().len() as u32);
        let division = Division::Levels { first, width, there: there.iter().map(|&l| l as u32).collect() };
        Ok((names, place.iter().map(|p| there.partition_point(|l| l < p)).collect(), division))
    }

    /// The subgroups of these units: names, and for each unit the number of its subgroup.
    fn subgroups(&self, cohort: &Cohort, units: &[u32]) -> Result<Subgroups, Error> {
        let names: Vec<String> =
            cohort.schema().iter().filter(|c| c.kind != Kind::Missing).map(|c| c.name.clone()).collect();
        let refuse = |found: Phrase, rule: &'static str, remedy: Phrase| {
            let problem = Problem::error(ProblemKind::BadOption, found, rule, remedy).column(&self.covariate);
            Error::Refused(vec![problem])
        };
        let covariate = cohort.schema().iter().find(|c| c.name == self.covariate && c.kind != Kind::Missing);
        if let Some(c) = covariate.filter(|c| c.kind != Kind::Number) {
            return self.levels(c, cohort, units).map_err(|(found, rule, remedy)| refuse(found, rule, remedy));
        }
        let Some(column) = covariate.map(|c| c.first) else {
            let near = nearest_names(&self.covariate, names.iter().map(String::as_str));
            let some = if near.is_empty() { names.iter().take(8).cloned().collect() } else { near };
            return Err(refuse(
                phrase!["there is no such covariate (asked for by ", Setting::By, ")"],
                "subgroups are made by covariates of the cohort",
                format!("choose one of {}", some.join(", ")).into(),
            ));
        };
        let values: Vec<f64> = units.iter().map(|&i| cohort.covariates(i as usize)[column]).collect();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let mut levels = sorted.clone();
        levels.dedup();
        let (starts, names): (Vec<f64>, Vec<String>) = match self.bins {
            None if levels.len() > MOST_LEVELS => {
                return Err(refuse(
                    format!("it has {} different values", levels.len()).into(),
                    "a subgroup for each value needs at most 20 values",
                    phrase![
                        "use bins of equal size, such as ",
                        Setting::By.to(format!("{}:4", self.covariate).as_str())
                    ],
                ));
            }
            Some(0) => {
                return Err(refuse("0 bins were asked for".into(), "there is at least one bin", "use 2 to 10".into()));
            }
            None => levels.iter().map(|v| (*v, format!("{} = {v}", self.covariate))).unzip(),
            Some(bins) => {
                // A bin begins at a quantile. Values that are tied stay together: where they fill more than a bin, the
                // next bin begins at the next value.
                let mut starts = vec![sorted[0]];
                for b in 1..bins {
                    let (quantile, last) = (sorted[b * sorted.len() / bins], starts[starts.len() - 1]);
                    let next =
                        if quantile > last { Some(quantile) } else { levels.iter().copied().find(|v| *v > last) };
                    starts.extend(next);
                }
                if starts.len() < bins {
                    return Err(refuse(
                        format!("{bins} bins were asked for, and {} can be made", starts.len()).into(),
                        "patients with the same value are in the same bin",
                        phrase!["use ", Setting::By.to(format!("{}:{}", self.covariate, starts.len()).as_str())],
                    ));
                }
                let name = |b: usize| {
                    let last = sorted.partition_point(|v| starts.get(b + 1).is_none_or(|s| v < s)) - 1;
                    format!("{} {} to {}", self.covariate, round(starts[b]), round(sorted[last]))
                };
                let names = (0..starts.len()).map(name).collect();
                (starts, names)
            }
        };
        let places = values.iter().map(|v| starts.partition_point(|s| s <= v) - 1).collect();
        Ok((names, places, Division::Starts { column: column as u32, starts, exact: self.bins.is_none() }))
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bins {
            Some(bins) => write!(f, "{}:{bins}", self.covariate),
            None => f.write_str(&self.covariate),
        }
    }
}

/// A value with at most four significant digits, for the name of a bin.
fn round(x: f64) -> f64 {
    format!("{x:.3e}").parse().unwrap_or(x)
}

/// The populations that averages are taken over.
#[derive(Clone, Debug, PartialEq)]
pub struct Populations {
    /// The covariates that subgroups were asked for by.
    pub by: Vec<By>,
    /// Their names.
    pub names: Vec<String>,
    /// For each covariate, where the names of its subgroups begin.
    first: Vec<usize>,
    /// How each covariate divides patients.
    pub(super) divisions: Vec<Division>,
    /// For each estimated unit the populations that it belongs to, equally many for each.
    of: Vec<u16>,
}

impl Populations {
    /// All, the treated, the control, and the subgroups asked for.
    pub fn new(cohort: &Cohort, units: &[u32], by: &[By]) -> Result<Populations, Error> {
        let mut names: Vec<String> = ["all", "treated", "control"].map(String::from).to_vec();
        let width = 2 + by.len();
        let (mut starts, mut divisions) = (Vec::with_capacity(by.len()), Vec::with_capacity(by.len()));
        let mut of = vec![0; units.len() * width];
        for (of, &i) in of.chunks_exact_mut(width).zip(units) {
            of[1] = if cohort.arm(i as usize) == Arm::Treated { 1 } else { 2 };
        }
        for (b, place_of_by) in by.iter().zip(2..) {
            let (found, place, division) = b.subgroups(cohort, units)?;
            divisions.push(division);
            let first = names.len();
            starts.push(first);
            names.extend(found);
            of.chunks_exact_mut(width).zip(place).for_each(|(o, p)| o[place_of_by] = (first + p) as u16);
        }
        Ok(Populations { by: by.to_vec(), names, first: starts, divisions, of })
    }

    /// Populations without patients: their names, and how a covariate that they were asked for by divides patients.
    pub(super) fn divided(by: Vec<By>, names: Vec<String>, first: Vec<usize>, divisions: Vec<Division>) -> Populations {
        Populations { by, names, first, divisions, of: Vec::new() }
    }

    /// Where the names of each covariate's subgroups begin.
    pub(super) fn first(&self) -> &[usize] {
        &self.first
    }

    /// Each covariate that subgroups were asked for by, with the names of its subgroups.
    pub fn subgroups(&self) -> impl Iterator<Item = (&By, &[String])> {
        let end = |k: usize| self.first.get(k + 1).copied().unwrap_or(self.names.len());
        self.by.iter().enumerate().map(move |(k, by)| (by, &self.names[self.first[k]..end(k)]))
    }

    /// The populations that an estimated unit belongs to, by its position among them.
    pub fn of(&self, unit: usize) -> &[u16] {
        let width = 2 + self.by.len();
        &self.of[unit * width..(unit + 1) * width]
    }

    /// The same, unit after unit.
    pub fn each(&self) -> impl Iterator<Item = &[u16]> {
        self.of.chunks_exact(2 + self.by.len())
    }
}

/// What the walk through the groups of one arm and side gathers, for each population.
pub(super) struct Sums<'a> {
    analysis: &'a Analysis,
    populations: &'a Populations,
    scaling: &'a Scaling,
    cohort: &'a Cohort,
    model: &'a CureModel,
    side: Estimand,
    /// Of each unit of the pool, by rank: its weight in the model's value of a group.
    weights: Vec<f64>,
    /// By rank, the sums of influences and the shares in the groups' model values: two for each population.
    sums: Vec<f64>,
    /// Less what the model expects of the units themselves.
    own: Vec<Expected>,
    /// What the model expects of the units of the pool, by rank, and their positions in the cohort.
    of_pool: Vec<(Predicted, u32)>,
    /// Room for the scaled covariates of one unit.
    scaled: Vec<f64>,
}

impl<'a> Sums<'a> {
    pub(super) fn new(walk: &Walk<'a>, populations: &'a Populations, arm: Arm, side: Estimand) -> Sums<'a> {
        let (cohort, fit) = (walk.cohort, &walk.analysis.fit);
        let pool = &walk.pools()[arm];
        let (scaling, model) = (&fit.description.metrics.cure.scaling, &walk.models()[arm]);
        let mut by_rank = vec![0; pool.len()];
        for (m, &i) in pool.units.iter().enumerate() {
            by_rank[pool.rank(m as u32) as usize] = i;
        }
        let of_pool: Vec<(Predicted, u32)> = by_rank
            .into_par_iter()
            .with_min_len(1024)
            .map(|i| (Predicted::of(model, &scaling.apply(cohort.covariates(i as usize)), side), i))
            .collect();
        Sums {
            analysis: walk.analysis,
            populations,
            scaling,
            cohort,
            model,
            side,
            weights: of_pool.iter().map(|(p, _)| p.weight).collect(),
            sums: vec![0.0; 2 * populations.names.len() * pool.len()],
            own: vec![Expected::new(cohort.n_covariates()); populations.names.len()],
            of_pool,
            scaled: Vec::new(),
        }
    }

    /// Over populations with these numbers of units.
    fn finish(&self, n: &[usize]) -> Gathered {
        let width = 2 * n.len();
        let mut of_populations: Vec<(f64, Expected)> = self.own.iter().map(|own| (0.0, own.clone())).collect();
        let mut scaled = Vec::new();
        for (sums, (of, i)) in self.sums.chunks_exact(width).zip(&self.of_pool) {
            self.scaling.apply_into(self.cohort.covariates(*i as usize), &mut scaled);
            for ((square, all), sums) in of_populations.iter_mut().zip(sums.chunks_exact(2)) {
                *square += sums[0] * sums[0];
                if sums[1] > 0.0 {
                    all.add(sums[1], of, &scaled);
                }
            }
        }
        let mut out = Gathered { pool_variance: vec![], bias: vec![], bias_variance: vec![] };
        for ((square, all), &n) in of_populations.iter().zip(n) {
            let size = n.max(1) as f64;
            out.pool_variance.push(square / (size * size));
            out.bias.push(all.value / size);
            out.bias_variance.push(all.variance(self.model, self.side).map(|v| v / (size * size)));
        }
        out
    }
}

impl Gather for Sums<'_> {
    fn add(&mut self, group: &Group<'_>) {
        if self.side == Estimand::Time && self.analysis.effects[group.unit].time().is_none() {
            return;
        }
        let total: f64 = group.members().map(|(r, count)| count * self.weights[r as usize]).sum();
        let share = if total > 0.0 { 1.0 / total } else { 0.0 };
        let i = self.analysis.units[group.unit] as usize;
        self.scaling.apply_into(self.cohort.covariates(i), &mut self.scaled);
        let unit = Predicted::of(self.model, &self.scaled, self.side);
        let width = 2 * self.populations.names.len();
        let of = self.populations.of(group.unit);
        for ((r, count), v) in group.members().zip(group.influence) {
            let weight = share * (count * self.weights[r as usize]);
            let sums = &mut self.sums[r as usize * width..(r as usize + 1) * width];
            for &p in of {
                sums[2 * p as usize] += v;
                sums[2 * p as usize + 1] += weight;
            }
        }
        for &p in of {
            self.own[p as usize].add(-1.0, &unit, &self.scaled);
        }
    }
}

/// The same when all groups were seen.
struct Gathered {
    /// Σ_j U_j².
    pool_variance: Vec<f64>,
    /// Mean of (the model's value for the group − the model's value for the unit).
    bias: Vec<f64>,
    /// Its variance, from the covariance of the model's parameters; `None` where the fit is not certified.
    bias_variance: Vec<Option<f64>>,
}

/// Means of both arms over one population.
pub(super) struct Means {
    pub(super) n: usize,
    pub(super) mean: [f64; 2],
    pub(super) pool_variance: [f64; 2],
    /// Of the two means, where clusters have units in both arms.
    pub(super) pool_covariance: f64,
    /// Covariance of the true values between units: spread of the estimates less their own variance.
    pub(super) spread: Spread,
    /// Plain variance of the difference between units.
    pub(super) difference_variance: f64,
    /// Expected matching bias of each arm with its variance; `None` where nothing is matched alone.
    pub(super) bias: Option<[(f64, Option<f64>); 2]>,
    /// Covariance of the two means over deals; `None` with one deal.
    pub(super) deals: Option<Spread>,
    /// The least standard error of each; `None` where nothing shows how it varies.
    pub(super) least: [Option<f64>; 2],
}

impl Means {
    /// The standard error of a₀θ̂₀ + a₁θ̂₁; `None` where nothing shows how it varies.
    fn se(&self, a: [f64; 2]) -> Option<f64> {
        let mut least = 0.0;
        for (a, of_arm) in a.iter().zip(self.least).filter(|(a, _)| **a != 0.0) {
            least += (a * of_arm?).powi(2);
        }
        let seen = self.variance(a);
        seen.is_finite().then(|| seen.max(least).sqrt())
    }

    /// Var(a₀θ̂₀ + a₁θ̂₁) as it is seen.
    fn variance(&self, a: [f64; 2]) -> f64 {
        let pool = a[0] * a[0] * self.pool_variance[0] + a[1] * a[1] * self.pool_variance[1];
        let s = &self.spread;
        let between =
            a[0] * a[0] * s.variance.control + 2.0 * a[0] * a[1] * s.covariance + a[1] * a[1] * s.variance.treated;
        // What is unknown stays so.
        let positive = |v: f64| if v < 0.0 { 0.0 } else { v };
        positive(pool + 2.0 * a[0] * a[1] * self.pool_covariance) + positive(between) / self.n as f64
    }
}

impl Means {
    /// Takes down what the units whose outcomes they rest on can know at most.
    pub(super) fn know(&mut self, known: &ByArm<Known>, side: Estimand, horizon: f64, confidence: f64) {
        let z = two_sided(confidence);
        self.least = Arm::BOTH.map(|arm| known[arm].least(side, self.mean[arm.index()], horizon, z));
    }
}

/// The average effects of a run over all estimated units, the treated, the control, and the subgroups asked for.
pub fn average_effects(cohort: &Cohort, analysis: &Analysis, by: &[By]) -> Result<Vec<AverageEffect>, Error> {
    let populations = Populations::new(cohort, &analysis.units, by)?;
    Ok(match Scores::of(cohort, analysis) {
        Some(scores) => {
            let grid = Grid::of(cohort);
            let curves = scores.curves(&populations, &grid, grid.times());
            let mut averages = scores.averages(&populations);
            averages.extend(scores.averages_of_curves(&populations, &curves, &grid));
            averages
        }
        None => average_over(&Walk::new(cohort, analysis), &populations),
    })
}

/// Averages with their spread and without standard errors: for those who asked for no audit.
pub fn plain_averages(cohort: &Cohort, analysis: &Analysis, populations: &Populations) -> Vec<AverageEffect> {
    type Value = fn(&Effect) -> Option<f64>;
    let estimands: [(&'static str, Value); 6] = [
        ("cure_effect", |e| Some(e.cure())),
        ("cure_treated", |e| Some(e.cure_probability(Arm::Treated))),
        ("cure_control", |e| Some(e.cure_probability(Arm::Control))),
        ("time_effect", Effect::time),
        ("mean_event_time_treated", |e| e.time().and(e.mean_event_time(Arm::Treated))),
        ("mean_event_time_control", |e| e.time().and(e.mean_event_time(Arm::Control))),
    ];
    // Effects are large: they are gone through once.
    let values: Vec<[Option<f64>; 6]> =
        analysis.effects.par_iter().with_min_len(1024).map(|e| estimands.map(|(_, value)| value(e))).collect();
    let mut out = Vec::new();
    for side in 0..2 {
        for (p, name) in populations.names.iter().enumerate() {
            let members = || {
                let all = values.iter().zip(&analysis.units).zip(populations.each());
                all.filter(|(_, of)| of.contains(&(p as u16))).map(|(v, _)| v)
            };
            for e in 3 * side..3 * side + 3 {
                let estimand = estimands[e].0;
                let found = match cohort.extras().weight {
                    None => average(members().map(|(v, _)| v[e])),
                    Some(_) => weighted_average(members().map(|(v, &i)| (v[e], cohort.weight(i as usize)))),
                };
                out.push(AverageEffect {
                    estimand,
                    population: name.clone(),
                    estimate: found.mean,
                    se: None,
                    low: None,
                    high: None,
                    sd: found.sd.filter(|_| estimand.ends_with("_effect")),
                    bias: None,
                    n_units: found.n_units,
                    n_undefined: found.n_undefined,
                    split_sd: None,
                });
            }
        }
    }
    out
}

/// The same over populations that are already made.
fn average_over(walk: &Walk<'_>, populations: &Populations) -> Vec<AverageEffect> {
    if !walk.cohort.extras().is_empty() {
        return weighted::averages(walk, populations);
    }
    let sums = walk.gather(|arm, side| Sums::new(walk, populations, arm, side));
    from_sums(walk, populations, part(&sums, |s| s))
}

/// The averages from what the walk gathered.
pub(super) fn from_sums(walk: &Walk<'_>, populations: &Populations, sums: Four<&Sums<'_>>) -> Vec<AverageEffect> {
    let (cohort, analysis) = (walk.cohort, walk.analysis);
    let fit = &analysis.fit;
    let horizon = cohort.horizon();
    // A time effect exists where both arms have an event; its averages, of either arm, are over those units.
    let counts = |side: Estimand| {
        let mut n = vec![0usize; populations.names.len()];
        for (e, of) in analysis.effects.iter().zip(populations.each()) {
            if side == Estimand::Cure || e.time().is_some() {
                of.iter().for_each(|&p| n[p as usize] += 1);
            }
        }
        n
    };
    let n_in = ByEstimand::of(counts);
    let known = walk.known();
    let gathered = walk.each(|arm, side| sums[side][arm].finish(&n_in[side]));

    let mut out = Vec::new();
    for side in Estimand::BOTH {
        for (p, name) in populations.names.iter().enumerate() {
            let members: Vec<usize> =
                (0..analysis.units.len()).filter(|&q| populations.of(q).contains(&(p as u16))).collect();
            let mut means = means_of(analysis, side, &members, gathered[side].each_ref(), p);
            if let Some(means) = &mut means {
                means.know(&known, side, horizon, fit.options.confidence);
            }
            describe(&mut out, side, name, members.len(), means.as_ref(), horizon, fit.options.confidence);
        }
    }
    out
}

/// What a cure model expects of one unit.
pub(super) struct Predicted {
    /// P(cure), or the mean event time.
    value: f64,
    /// Weight in its group: the Kaplan–Meier curve of a mixed group is the mean curve, whose mean event time weighs
    /// each member by its probability of an event.
    pub(super) weight: f64,
    /// Derivative of the value in the linear predictor, and in ln σ.
    slope: [f64; 2],
}

impl Predicted {
    pub(super) fn of(model: &CureModel, x: &[f64], side: Estimand) -> Predicted {
        let cured = model.cure_probability(x);
        match side {
            Estimand::Cure => Predicted { value: cured, weight: 1.0, slope: [cured * (1.0 - cured), 0.0] },
            Estimand::Time => {
                let (log_horizon, location) = (libm::log(model.horizon), model.latency_location(x));
                let mean = |by: f64, sigma: f64| truncated_mean(log_horizon, location + by, model.log_sigma + sigma);
                let h = 1e-4;
                Predicted {
                    value: mean(0.0, 0.0),
                    weight: 1.0 - cured,
                    slope: [(mean(h, 0.0) - mean(-h, 0.0)) / (2.0 * h), (mean(0.0, h) - mean(0.0, -h)) / (2.0 * h)],
                }
            }
        }
    }
}

/// A sum of expectations with its gradient in the parameters of one part of the model: intercept, coefficients, ln σ.
#[derive(Clone)]
pub(super) struct Expected {
    pub(super) value: f64,
    gradient: Vec<f64>,
}

impl Expected {
    pub(super) fn new(n_covariates: usize) -> Expected {
        Expected { value: 0.0, gradient: vec![0.0; n_covariates + 2] }
    }

    pub(super) fn add(&mut self, share: f64, of: &Predicted, x: &[f64]) {
        self.value += share * of.value;
        self.gradient[0] += share * of.slope[0];
        for (g, v) in self.gradient[1..].iter_mut().zip(x) {
            *g += share * of.slope[0] * v;
        }
        self.gradient[x.len() + 1] += share * of.slope[1];
    }

    /// g'Vg, V being the covariance of that part.
    pub(super) fn variance(&self, model: &CureModel, side: Estimand) -> Option<f64> {
        let covariance = model.covariance.as_ref()?;
        let p = model.n_covariates();
        let all = 2 * p + 3;
        let place = |a: usize| match side {
            Estimand::Cure => (a <= p).then_some(a),
            Estimand::Time => Some(p + 1 + a),
        };
        let mut sum = 0.0;
        for (a, ga) in self.gradient.iter().enumerate() {
            for (b, gb) in self.gradient.iter().enumerate() {
                if let (Some(a), Some(b)) = (place(a), place(b)) {
                    sum += ga * gb * covariance[a * all + b];
                }
            }
        }
        Some(sum.max(0.0))
    }
}

/// The means of one population; `None` where nobody is defined.
fn means_of(analysis: &Analysis, side: Estimand, members: &[usize], of: ByArm<&Gathered>, p: usize) -> Option<Means> {
    // Value and variance in each arm.
    let values = |q: usize| -> Option<Pair> {
        let e = &analysis.effects[q];
        match side {
            Estimand::Cure => Some(Arm::BOTH.map(|z| {
                let c = &e.groups.cure[z].curve;
                (c.survival, c.survival_se().map_or(0.0, |s| s * s))
            })),
            Estimand::Time => {
                e.time()?;
                Some(Arm::BOTH.map(|z| {
                    let c = &e.groups.time[z].curve;
                    (c.mean_event_time().unwrap_or(0.0), c.mean_event_time_se().map_or(0.0, |s| s * s))
                }))
            }
        }
    };
    let there: Vec<(usize, Pair)> = members.iter().filter_map(|&q| Some((q, values(q)?))).collect();
    let n = there.len();
    if n == 0 {
        return None;
    }
    let over = |f: &dyn Fn(usize, &Pair) -> f64| there.iter().map(|(q, v)| f(*q, v)).sum::<f64>() / n as f64;
    let mean = [0, 1].map(|z| over(&|_, v| v[z].0));
    let free = n as f64 / (n as f64 - 1.0).max(1.0);
    let moment = |a: usize, b: usize| free * over(&|_, v| (v[a].0 - mean[a]) * (v[b].0 - mean[b]));
    let noise = [0, 1].map(|z| over(&|_, v| v[z].1));
    let cross = moment(0, 1);
    let (v0, v1) = (moment(0, 0), moment(1, 1));
    Some(Means {
        n,
        mean,
        pool_variance: of.map(|of| of.pool_variance[p]).into_array(),
        pool_covariance: 0.0,
        spread: Spread { variance: [v0 - noise[0], v1 - noise[1]].into(), covariance: cross },
        difference_variance: v0 + v1 - 2.0 * cross,
        bias: Some(of.map(|of| (of.bias[p], of.bias_variance[p])).into_array()),
        deals: None,
        least: [None; 2],
    })
}

/// An estimate with its standard error, the ends of its interval and the bias in it.
type Found = (f64, Option<f64>, Option<f64>, Option<f64>, Option<f64>);
/// A value and its variance in each arm.
type Pair = [(f64, f64); 2];

pub(super) fn describe(
    out: &mut Vec<AverageEffect>,
    side: Estimand,
    population: &str,
    n_members: usize,
    means: Option<&Means>,
    horizon: f64,
    confidence: f64,
) {
    let z = two_sided(confidence);
    let mut add = |estimand: &'static str, found: Option<Found>| {
        let n = means.map_or(0, |m| m.n);
        let sd =
            means.filter(|m| m.n > 1 && estimand.ends_with("_effect")).map(|m| m.difference_variance.max(0.0).sqrt());
        let (estimate, se, low, high, bias) = match found.filter(|found| found.0.is_finite()) {
            Some((v, se, low, high, bias)) => (Some(v), se, low, high, bias),
            None => (None, None, None, None, None),
        };
        out.push(AverageEffect {
            estimand,
            population: population.into(),
            estimate,
            se,
            low,
            high,
            sd,
            bias,
            n_units: n,
            n_undefined: n_members - n,
            split_sd: means
                .filter(|_| estimand.ends_with("_effect"))
                .and_then(|m| m.deals)
                .map(|b| (b.variance.control - 2.0 * b.covariance + b.variance.treated).max(0.0).sqrt()),
        });
    };
    let contrast = |a: [f64; 2]| {
        means.map(|m| {
            let value = a[0] * m.mean[0] + a[1] * m.mean[1];
            (value, m.se(a), m.bias.map(|[c, t]| a[0] * c.0 + a[1] * t.0))
        })
    };
    // A difference lies as far from 0 as the bound of its arms.
    let top = match side {
        Estimand::Cure => 1.0,
        Estimand::Time => horizon,
    };
    let wald = |v: f64, se: Option<f64>, bias: Option<f64>| -> Found {
        let end = |by: f64| se.map(|se| (v + by * z * se).clamp(-top, top));
        (v, se, end(-1.0), end(1.0), bias)
    };
    let plain = |a: [f64; 2]| contrast(a).map(|(v, se, bias)| wald(v, se, bias));
    // On the logit scale between 0 and `top`.
    let bounded = |a: [f64; 2]| {
        contrast(a).map(|(v, se, bias)| {
            let interval = se.map(|se| averaged_at(v, se, top, z));
            (v, se, interval.map(|i| i.low), interval.map(|i| i.high), bias)
        })
    };
    const DIFFERENCE: [f64; 2] = [-1.0, 1.0];
    let is_matched = means.is_none_or(|m| m.bias.is_some());
    // Less the bias that the models expect, at the price of the models' own variance.
    let corrected = |a: [f64; 2]| {
        let [(_, c), (_, t)] = means?.bias?;
        let (v, se, bias) = contrast(a)?;
        let models = c? * a[0] * a[0] + t? * a[1] * a[1];
        let v = (v - bias?).clamp(-top, top);
        Some(wald(v, se.map(|se| f64::sqrt(se * se + models)), None))
    };
    let [control, treated] = [[1.0, 0.0], [0.0, 1.0]];
    match side {
        Estimand::Cure => {
            let difference = plain(DIFFERENCE);
            add("cure_effect", difference);
            if is_matched {
                add("cure_effect_corrected", corrected(DIFFERENCE));
            }
            add("cure_treated", bounded(treated));
            add("cure_control", bounded(control));
            // log(θ₁/θ₀) has the gradient (−1/θ₀, 1/θ₁).
            let ratio = means.filter(|m| m.mean[0] > 0.0 && m.mean[1] > 0.0).map(|m| {
                let (value, gradient) = (m.mean[1] / m.mean[0], [-1.0 / m.mean[0], 1.0 / m.mean[1]]);
                let se = m.se(gradient);
                let bias = m.bias.map(|[c, t]| value - (m.mean[1] - t.0) / (m.mean[0] - c.0));
                let end = |s: f64| se.map(|se| value * libm::exp(s * z * se)).filter(|end| end.is_finite());
                (value, se.map(|se| value * se), end(-1.0).filter(|_| end(1.0).is_some()), end(1.0), bias)
            });
            add("cure_ratio", ratio);
            // Altman (1998): where the effect may be zero the number has no interval in one piece.
            let needed = difference.filter(|d| d.0 != 0.0).map(|(v, se, low, high, _)| {
                let one_sign = low.zip(high).filter(|(l, h)| l * h > 0.0);
                let ends = one_sign.map(|(l, h)| (1.0 / h, 1.0 / l));
                (1.0 / v, se.map(|s| s / (v * v)), ends.map(|e| e.0), ends.map(|e| e.1), None)
            });
            add("number_needed_to_treat", needed);
        }
        Estimand::Time => {
            add("time_effect", plain(DIFFERENCE));
            if is_matched {
                add("time_effect_corrected", corrected(DIFFERENCE));
            }
            add("mean_event_time_treated", bounded(treated));
            add("mean_event_time_control", bounded(control));
        }
    }
}
