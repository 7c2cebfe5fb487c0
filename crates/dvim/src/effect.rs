//! The two effects of each unit, and whether each is defined.
//!
//! For a unit with match groups M₁ (treated) and M₀ (control) under each metric:
//! cure effect π = Ŝ₁(H) − Ŝ₀(H) from the cure groups, time effect Δ = CMET₁ − CMET₀ from the time
//! groups. π > 0: treatment cures more. Δ > 0: treatment delays events.

use crate::cohort::{Arm, Cohort};
use crate::interval::{self, Interval};
use crate::matching::{Hints, Index, Instructions, Points};
use crate::metric::Metric;
use crate::outcome::Outcome;
use crate::survival::{FEW_AT_RISK, Signed, Summary, Together};

/// What one match group gave: its curve at H, and how far its farthest member is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupEstimate {
    /// The group's curve at the horizon.
    pub curve: Summary,
    /// Distance from the unit to the farthest member of the group.
    pub diameter: f64,
}

impl GroupEstimate {
    /// Of nobody.
    pub(crate) const NOTHING: GroupEstimate = GroupEstimate { curve: Summary::nothing_seen(0), diameter: 0.0 };
}

/// One arm of one unit: its cure group and its time group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArmEstimate {
    /// From the group matched for cure.
    pub cure: GroupEstimate,
    /// From the group matched for time.
    pub time: GroupEstimate,
}

/// Values that were corrected for the covariate difference between a unit and its groups; control first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Corrected {
    /// P(T ≥ H) in each arm.
    pub cure_probability: [f64; 2],
    /// E[T | T < H] in each arm.
    pub mean_event_time: [f64; 2],
    /// How sure `logit P(T ≥ H)` is.
    pub cure_spread: Spread,
    /// How sure `ln E[T | T < H]` is.
    pub time_spread: Spread,
    /// Standard deviations of the cure effect and the time effect over the splits that left the unit out; `None` with one deal.
    pub split_sd: Option<[f64; 2]>,
}

/// Variances of the values of both arms on an unbounded scale, control first, and their covariance: one model serves both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Control, treated.
    pub variance: [f64; 2],
    /// Between them.
    pub covariance: f64,
}

impl Spread {
    /// The correlation of the arms, in [−1, 1].
    pub fn correlation(&self) -> f64 {
        let [control, treated] = self.variance;
        let rho = self.covariance / f64::sqrt(control * treated);
        if rho.is_finite() { rho.clamp(-1.0, 1.0) } else { 0.0 }
    }
}

impl Corrected {
    /// The interval of an arm's P(T ≥ H).
    pub fn cure_probability_interval(&self, arm: Arm, confidence: f64) -> Interval {
        self.cure_probability_at(arm, interval::two_sided(confidence))
    }

    fn cure_probability_at(&self, arm: Arm, z: f64) -> Interval {
        let s = self.cure_probability[arm.index()];
        interval::bounded_at(s, s * (1.0 - s) * self.cure_spread.variance[arm.index()].sqrt(), 1.0, z)
    }

    /// The interval of an arm's E[T | T < H].
    pub fn mean_event_time_interval(&self, arm: Arm, horizon: f64, confidence: f64) -> Interval {
        self.mean_event_time_at(arm, horizon, interval::two_sided(confidence))
    }

    fn mean_event_time_at(&self, arm: Arm, horizon: f64, z: f64) -> Interval {
        let m = self.mean_event_time[arm.index()];
        interval::bounded_at(m, m * self.time_spread.variance[arm.index()].sqrt(), horizon, z)
    }

    /// The interval of the cure effect.
    pub fn cure_interval(&self, confidence: f64) -> Interval {
        let [control, treated] = Arm::BOTH.map(|z| self.cure_probability_interval(z, confidence));
        let [s0, s1] = self.cure_probability;
        interval::difference(s1, &treated, s0, &control, self.cure_spread.correlation())
    }

    /// The interval of the time effect.
    pub fn time_interval(&self, horizon: f64, confidence: f64) -> Interval {
        let [control, treated] = Arm::BOTH.map(|z| self.mean_event_time_interval(z, horizon, confidence));
        let [m0, m1] = self.mean_event_time;
        interval::difference(m1, &treated, m0, &control, self.time_spread.correlation())
    }
}

/// The intervals of one unit's values; of the arms, control first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Intervals {
    /// Of π̂.
    pub cure: Interval,
    /// Of Δ̂.
    pub time: Option<Interval>,
    /// Of P(T ≥ H) in each arm.
    pub cure_probability: [Interval; 2],
    /// Of E[T | T < H] in each arm.
    pub mean_event_time: [Option<Interval>; 2],
}

/// Both arms of one unit, control first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// What the groups gave: control, treated.
    pub arms: [ArmEstimate; 2],
    /// What the adjusted estimator made of it; `None` under the paper's estimator.
    pub corrected: Option<Corrected>,
}

impl Effect {
    /// Before anything was estimated.
    pub(crate) const NOTHING: Effect = {
        let arm = ArmEstimate { cure: GroupEstimate::NOTHING, time: GroupEstimate::NOTHING };
        Effect { arms: [arm; 2], corrected: None }
    };
}

/// Something a reader should know of a unit's estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// Nobody of the cure group is at risk at H: Ŝ(H) is the last value of its curve, carried forward.
    CureCarriedForward(Arm),
    /// The same of the time group: its CMET rests on a carried-forward Ŝ(H).
    TimeCarriedForward(Arm),
    /// The time group has no event before H: its CMET, and with it the time effect, is undefined.
    NoEvent(Arm),
    /// With delayed entry an event of a group met few at risk.
    FewAtRisk(Arm),
}

impl Flag {
    /// All flags, in the order in which they are written.
    pub const ALL: [Flag; 8] = [
        Flag::CureCarriedForward(Arm::Treated),
        Flag::CureCarriedForward(Arm::Control),
        Flag::TimeCarriedForward(Arm::Treated),
        Flag::TimeCarriedForward(Arm::Control),
        Flag::NoEvent(Arm::Treated),
        Flag::NoEvent(Arm::Control),
        Flag::FewAtRisk(Arm::Treated),
        Flag::FewAtRisk(Arm::Control),
    ];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Flag::CureCarriedForward(Arm::Treated) => "cure_carried_forward_treated",
            Flag::CureCarriedForward(Arm::Control) => "cure_carried_forward_control",
            Flag::TimeCarriedForward(Arm::Treated) => "time_carried_forward_treated",
            Flag::TimeCarriedForward(Arm::Control) => "time_carried_forward_control",
            Flag::NoEvent(Arm::Treated) => "no_event_treated",
            Flag::NoEvent(Arm::Control) => "no_event_control",
            Flag::FewAtRisk(Arm::Treated) => "few_at_risk_treated",
            Flag::FewAtRisk(Arm::Control) => "few_at_risk_control",
        }
    }

    /// What it means, for a person.
    pub fn meaning(self) -> String {
        match self {
            Flag::CureCarriedForward(z) => {
                format!(
                    "nobody in the {} cure group is at risk at the horizon: its last value is carried forward",
                    z.name()
                )
            }
            Flag::TimeCarriedForward(z) => {
                format!(
                    "nobody in the {} time group is at risk at the horizon: its mean event time rests on a value carried forward",
                    z.name()
                )
            }
            Flag::NoEvent(z) => {
                format!("the {} time group has no event before the horizon: the time effect is undefined", z.name())
            }
            Flag::FewAtRisk(z) => format!(
                "an event of a {} group met fewer than {FEW_AT_RISK} at risk while others had yet to enter: the curve rests on few",
                z.name()
            ),
        }
    }
}

impl Effect {
    /// One arm.
    pub fn arm(&self, arm: Arm) -> &ArmEstimate {
        &self.arms[arm.index()]
    }

    /// P(T ≥ H) in an arm: corrected where it was, else Ŝ(H) of its cure group.
    pub fn cure_probability(&self, arm: Arm) -> f64 {
        match &self.corrected {
            Some(c) => c.cure_probability[arm.index()],
            None => self.arm(arm).cure.curve.survival,
        }
    }

    /// CMET of an arm: corrected where it was, else that of its time group.
    pub fn mean_event_time(&self, arm: Arm) -> Option<f64> {
        match &self.corrected {
            Some(c) => Some(c.mean_event_time[arm.index()]),
            None => self.arm(arm).time.curve.mean_event_time(),
        }
    }

    /// π̂.
    pub fn cure(&self) -> f64 {
        self.cure_probability(Arm::Treated) - self.cure_probability(Arm::Control)
    }

    /// What the cure groups alone give for π.
    pub fn cure_matched(&self) -> f64 {
        self.arm(Arm::Treated).cure.curve.survival - self.arm(Arm::Control).cure.curve.survival
    }

    /// What the time groups alone give for Δ.
    pub fn time_matched(&self) -> Option<f64> {
        let mean = |arm| self.arm(arm).time.curve.mean_event_time();
        Some(mean(Arm::Treated)? - mean(Arm::Control)?)
    }

    /// Δ̂, where both arms have an event.
    pub fn time(&self) -> Option<f64> {
        Some(self.mean_event_time(Arm::Treated)? - self.mean_event_time(Arm::Control)?)
    }

    /// The interval of an arm's P(T ≥ H): from the variance of its Kaplan–Meier curve alone, or, where it was corrected, of
    /// model and group together.
    pub fn cure_probability_interval(&self, arm: Arm, confidence: f64) -> Interval {
        match &self.corrected {
            Some(c) => c.cure_probability_interval(arm, confidence),
            None => interval::share(&self.arm(arm).cure.curve, confidence),
        }
    }

    /// The interval of an arm's CMET; `None` below two events, unless it was corrected.
    pub fn mean_event_time_interval(&self, arm: Arm, horizon: f64, confidence: f64) -> Option<Interval> {
        match &self.corrected {
            Some(c) => Some(c.mean_event_time_interval(arm, horizon, confidence)),
            None => interval::mean_event_time(&self.arm(arm).time.curve, horizon, confidence),
        }
    }

    /// The interval of π̂. Two groups share no unit, so their variances add.
    pub fn cure_interval(&self, confidence: f64) -> Interval {
        if let Some(c) = &self.corrected {
            return c.cure_interval(confidence);
        }
        let of = |z| (self.cure_probability(z), self.cure_probability_interval(z, confidence));
        let ((c, of_c), (t, of_t)) = (of(Arm::Control), of(Arm::Treated));
        interval::difference(t, &of_t, c, &of_c, 0.0)
    }

    /// The interval of Δ̂; `None` where an arm has fewer than two events, unless it was corrected.
    pub fn time_interval(&self, horizon: f64, confidence: f64) -> Option<Interval> {
        if let Some(c) = &self.corrected {
            return Some(c.time_interval(horizon, confidence));
        }
        let of = |z| Some((self.mean_event_time(z)?, self.mean_event_time_interval(z, horizon, confidence)?));
        let ((c, of_c), (t, of_t)) = (of(Arm::Control)?, of(Arm::Treated)?);
        Some(interval::difference(t, &of_t, c, &of_c, 0.0))
    }

    /// All of them at once: each group's interval is computed once.
    pub fn intervals(&self, horizon: f64, confidence: f64) -> Intervals {
        self.intervals_at(horizon, interval::two_sided(confidence))
    }

    /// The same with the normal quantile of the intervals, for those who go through many units.
    pub fn intervals_at(&self, horizon: f64, quantile: f64) -> Intervals {
        let (shares, means, correlations) = match &self.corrected {
            Some(c) => (
                Arm::BOTH.map(|z| c.cure_probability_at(z, quantile)),
                Arm::BOTH.map(|z| Some(c.mean_event_time_at(z, horizon, quantile))),
                [c.cure_spread.correlation(), c.time_spread.correlation()],
            ),
            None => (
                self.arms.each_ref().map(|a| interval::share_at(&a.cure.curve, quantile)),
                self.arms.each_ref().map(|a| interval::mean_event_time_at(&a.time.curve, horizon, quantile)),
                [0.0; 2],
            ),
        };
        let [s0, s1] = Arm::BOTH.map(|z| self.cure_probability(z));
        let [m0, m1] = Arm::BOTH.map(|z| self.mean_event_time(z));
        let time = match (m0, &means[0], m1, &means[1]) {
            (Some(c), Some(of_c), Some(t), Some(of_t)) => Some(interval::difference(t, of_t, c, of_c, correlations[1])),
            _ => None,
        };
        Intervals {
            cure: interval::difference(s1, &shares[1], s0, &shares[0], correlations[0]),
            time,
            cure_probability: shares,
            mean_event_time: means,
        }
    }

    /// Whether a flag applies.
    pub fn has(&self, flag: Flag) -> bool {
        match flag {
            Flag::CureCarriedForward(z) => self.arm(z).cure.curve.carried_forward(),
            Flag::TimeCarriedForward(z) => self.arm(z).time.curve.carried_forward(),
            Flag::NoEvent(z) => self.arm(z).time.curve.n_events == 0,
            Flag::FewAtRisk(z) => self.arm(z).cure.curve.thin || self.arm(z).time.curve.thin,
        }
    }

    /// The flags that apply.
    pub fn flags(&self) -> impl Iterator<Item = Flag> + '_ {
        Flag::ALL.into_iter().filter(|f| self.has(*f))
    }
}

/// The units of one arm that groups are drawn from, with their outcomes in order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Position in the cohort of each unit of the pool, ascending: ties in distance go by id.
    pub units: Vec<u32>,
    /// For each unit its place in the order of time.
    rank: Vec<u32>,
    /// Times and events in order of time.
    by_time: Vec<(f64, bool)>,
    /// The same in half the room.
    signed: Signed,
    /// All of the outcomes in order of time, where units do not all count alike.
    outcomes: Option<Vec<Outcome>>,
    horizon: f64,
    with: Instructions,
}

impl Pool {
    /// The pool of these units of a cohort.
    pub fn new(cohort: &Cohort, units: Vec<u32>) -> Pool {
        let outcome = |&i: &u32| (cohort.time(i as usize), cohort.event(i as usize));
        let outcomes: Vec<(f64, bool)> = units.iter().map(outcome).collect();
        let mut pool = Pool::of_outcomes(units, &outcomes, cohort.horizon());
        if !cohort.further().is_empty() {
            let mut sorted = vec![Outcome::plain(0.0, false); pool.len()];
            for (&i, &r) in pool.units.iter().zip(&pool.rank) {
                sorted[r as usize] = cohort.outcome(i as usize);
            }
            pool.outcomes = Some(sorted);
        }
        pool
    }

    /// The pool of units with these outcomes. A simulation's oracle brings outcomes of its own.
    pub fn of_outcomes(units: Vec<u32>, outcomes: &[(f64, bool)], horizon: f64) -> Pool {
        let mut order: Vec<(f64, u32)> = outcomes.iter().map(|u| u.0).zip(0..units.len() as u32).collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut rank = vec![0; units.len()];
        for (r, &(_, i)) in order.iter().enumerate() {
            rank[i as usize] = r as u32;
        }
        let by_time: Vec<(f64, bool)> = order.iter().map(|&(_, i)| outcomes[i as usize]).collect();
        Pool { units, rank, signed: Signed::of(&by_time), by_time, outcomes: None, horizon, with: Instructions::best() }
    }

    /// Number of units.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// The covariates of the pool's units, row-major.
    pub fn covariates(&self, cohort: &Cohort) -> Vec<f64> {
        let mut rows = Vec::with_capacity(self.len() * cohort.n_covariates());
        self.units.iter().for_each(|&i| rows.extend_from_slice(cohort.covariates(i as usize)));
        rows
    }

    /// All of the outcomes in order of time, where units do not all count alike.
    pub fn outcomes(&self) -> Option<&[Outcome]> {
        self.outcomes.as_deref()
    }

    /// Times and events in order of time.
    pub fn by_time(&self) -> &[(f64, bool)] {
        &self.by_time
    }

    /// The place in the order of time of a unit, by its position in the pool.
    pub fn rank(&self, position: u32) -> u32 {
        self.rank[position as usize]
    }

    /// The places in the order of time of these members, ascending. Members are different units.
    pub fn order(&self, members: &[u32], ranks: &mut Vec<u32>) {
        ranks.clear();
        let words = self.len() / 32 + 1;
        if words > 4 * members.len() {
            ranks.extend(members.iter().map(|&m| self.rank[m as usize]));
            self.with.sort_distinct(ranks);
            return;
        }
        // A large share of the pool: a bit for each of its units, read from the left, is cheaper than sorting.
        ranks.resize(members.len() + 1 + words.next_multiple_of(2), 0);
        let (ordered, marks) = ranks.split_at_mut(members.len() + 1);
        for &m in members {
            let r = self.rank[m as usize];
            marks[(r / 32) as usize] |= 1 << (r % 32);
        }
        let mut n = 0;
        for (w, pair) in marks.chunks_exact(2).enumerate() {
            let mut left = u64::from(pair[0]) | u64::from(pair[1]) << 32;
            // Guessing whether there is another bit would cost more than to write down, and forget, a few that are not there.
            for _ in 0..FEW_BITS {
                ordered[n] = 64 * w as u32 + (left | 1 << 63).trailing_zeros();
                n += usize::from(left != 0);
                left &= left.wrapping_sub(1);
            }
            while left != 0 {
                ordered[n] = 64 * w as u32 + left.trailing_zeros();
                n += 1;
                left &= left - 1;
            }
        }
        ranks.truncate(members.len());
    }

    /// The curve at H of the group with these members (positions in the pool). `scratch` is
    /// reused from group to group.
    pub fn summary(&self, members: &[u32], scratch: &mut Vec<u32>) -> Summary {
        self.order(members, scratch);
        if let Some(outcomes) = &self.outcomes {
            let group: Vec<Outcome> = scratch.iter().map(|&r| outcomes[r as usize]).collect();
            return Summary::of_outcomes(&group, self.horizon);
        }
        Summary::of_sorted(scratch.iter().map(|&r| self.by_time[r as usize]), members.len(), self.horizon)
    }

    /// Hands on the curve at H of each group, in their order, with the places of its members in the order of time, ascending.
    fn summaries<'m>(
        &self,
        groups: impl Iterator<Item = &'m [u32]>,
        batch: &mut Batch,
        mut each: impl FnMut(Summary, &[u32]),
    ) {
        let Batch { curves, ranks } = batch;
        if self.outcomes.is_some() {
            groups.for_each(|members| each(self.summary(members, &mut ranks[0]), &ranks[0]));
            return;
        }
        let mut groups = groups.peekable();
        while groups.peek().is_some() {
            let mut taken = 0;
            for (ranks, members) in ranks.iter_mut().zip(groups.by_ref()) {
                self.order(members, ranks);
                taken += 1;
            }
            // Places that are left over repeat the last.
            let some = std::array::from_fn(|lane| &ranks[lane.min(taken - 1)][..]);
            let found = curves.summaries(&self.signed, some);
            found.into_iter().zip(&*ranks).take(taken).for_each(|(curve, ranks)| each(curve, ranks));
        }
    }

    /// What the group with these members gives; `scratch` is left with their places in the order of time, ascending.
    pub fn estimate(&self, members: &[u32], squared: &[f64], scratch: &mut Vec<u32>) -> GroupEstimate {
        let curve = self.summary(members, scratch);
        GroupEstimate { curve, diameter: squared.last().copied().unwrap_or(0.0).sqrt() }
    }

    /// The distance to the nearest of these members that is not the unit at position `own` of the cohort.
    pub fn nearest_other(&self, members: &[u32], squared: &[f64], own: Option<u32>) -> f64 {
        let other = members.iter().position(|&m| Some(self.units[m as usize]) != own);
        other.map_or(f64::INFINITY, |m| squared[m].sqrt())
    }
}

/// The groups of many units in one arm under one metric, unit after unit: what sums over groups need of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Groups {
    /// The members of each group by their places in the order of time ([`Pool::rank`]), ascending; K after K.
    pub ranks: Vec<u32>,
    /// For each unit the distance to the nearest member that is not the unit itself; infinite where there is none.
    pub nearest: Vec<f64>,
}

impl Groups {
    /// Room for `n` groups of `k`.
    pub fn with_capacity(n: usize, k: usize) -> Groups {
        Groups { ranks: Vec::with_capacity(n * k), nearest: Vec::with_capacity(n) }
    }

    /// Appends all groups of `other`.
    pub fn append(&mut self, other: Groups) {
        if self.nearest.is_empty() {
            *self = other;
        } else {
            self.ranks.extend(other.ranks);
            self.nearest.extend(other.nearest);
        }
    }

    /// Appends group `q` of `other`, which has groups of `k`.
    pub fn push(&mut self, other: &Groups, q: usize, k: usize) {
        self.ranks.extend_from_slice(&other.ranks[q * k..(q + 1) * k]);
        self.nearest.push(other.nearest[q]);
    }
}

/// Bits of a word of 64 that [`Pool::order`] takes to be there: one or two are typical.
const FEW_BITS: usize = 4;

/// Room for groups whose curves go side by side.
struct Batch {
    curves: Together,
    /// The places of their members in the order of time.
    ranks: [Vec<u32>; Together::LANES],
}

impl Batch {
    fn new(pool: &Pool, k: usize) -> Batch {
        Batch { curves: Together::new(k, pool.horizon), ranks: Default::default() }
    }
}

/// Room that is reused from group to group.
#[derive(Default)]
pub struct Scratch {
    /// Members that were kept.
    pub members: Vec<u32>,
    /// Their squared distances.
    pub distances: Vec<f64>,
    /// Their places in the order of time.
    pub ranks: Vec<u32>,
}

/// One arm under one metric, ready to be searched.
pub struct Matcher<'a> {
    pool: &'a Pool,
    index: Index<'a>,
}

impl<'a> Matcher<'a> {
    /// Packs the units of a pool in the match space of a metric.
    pub fn new(pool: &'a Pool, cohort: &Cohort, metric: &Metric) -> Matcher<'a> {
        Matcher::of_points(pool, &metric.place_rows(pool.units.iter().map(|&i| cohort.covariates(i as usize))))
    }

    /// Packs units that are already placed.
    pub fn of_points(pool: &'a Pool, points: &Points) -> Matcher<'a> {
        Matcher { pool, index: Index::build(points) }
    }

    /// Packs units that are already placed with others: those of the pool stand in these rows.
    pub fn of_rows(pool: &'a Pool, points: &'a Points, rows: &[u32]) -> Matcher<'a> {
        Matcher { pool, index: Index::build_of_rows(points, rows) }
    }

    /// The pool that it searches.
    pub fn pool(&self) -> &'a Pool {
        self.pool
    }

    /// The group of each query at each group size (ascending). Neighbours are found once, for the
    /// largest size; a smaller group is a prefix of a larger one.
    pub fn estimate<const N: usize>(&self, queries: &Points, sizes: [usize; N]) -> Vec<[GroupEstimate; N]> {
        self.index.nearest_map(queries, sizes[N - 1], Vec::new, |scratch, _, members, squared_distances| {
            sizes.map(|k| self.pool.estimate(&members[..k], &squared_distances[..k], scratch))
        })
    }

    /// Writes what the group of each query with `k` members gives to its place; gives the groups themselves where `keep` asks for
    /// them, and the order of the search. `own` is the position of each query that is in the cohort; see [`Index::nearest_sets`] for the hints.
    pub fn estimate_into(
        &self,
        queries: &Points,
        own: &[Option<u32>],
        k: usize,
        keep: bool,
        hints: Option<Hints<'_>>,
        estimates: &mut [&mut GroupEstimate],
    ) -> (Groups, Vec<u32>) {
        let n = queries.len();
        if !keep {
            let places = estimates.iter_mut().map(|place| &mut **place).collect();
            let order = self.index.nearest_sets(
                queries,
                k,
                false,
                hints,
                places,
                || Batch::new(self.pool, k),
                |batch, places: &mut [&mut GroupEstimate], sets| {
                    let members = sets.iter().map(|(_, members, _)| members);
                    let mut found = places.iter_mut().zip(sets.iter());
                    self.pool.summaries(members, batch, |curve, _| {
                        let (place, (_, _, ends)) = found.next().expect("a place for each group");
                        **place = GroupEstimate { curve, diameter: ends.farthest.sqrt() };
                    });
                },
            );
            return (Groups::default(), order);
        }
        let mut groups = Groups { ranks: vec![0; n * k], nearest: vec![0.0; n] };
        let places = estimates.iter_mut().map(|place| &mut **place);
        let rows = groups.ranks.chunks_mut(k.max(1)).zip(&mut groups.nearest).zip(places).collect();
        let order = self.index.nearest_sets(
            queries,
            k,
            true,
            hints,
            rows,
            || Batch::new(self.pool, k),
            |batch, places: &mut [((&mut [u32], &mut f64), &mut GroupEstimate)], sets| {
                let members = sets.iter().map(|(_, members, _)| members);
                let mut found = places.iter_mut().zip(sets.iter());
                self.pool.summaries(members, batch, |curve, ordered| {
                    let (((ranks, nearest), place), (query, _, ends)) = found.next().expect("a place for each group");
                    **place = GroupEstimate { curve, diameter: ends.farthest.sqrt() };
                    ranks.copy_from_slice(ordered);
                    let is_other = |m: u32| self.pool.units.get(m as usize).copied() != own[query];
                    let other = ends.nearest.iter().find(|(_, m)| is_other(*m));
                    **nearest = other.map_or(f64::INFINITY, |(squared, _)| squared.sqrt());
                });
            },
        );
        (groups, order)
    }

    /// Applies `f(scratch, query, members, squared distances)` to the `k` nearest of each query, on all threads;
    /// answers stand in the order of the queries.
    pub fn map<T: Send>(
        &self,
        queries: &Points,
        k: usize,
        f: impl Fn(&mut Scratch, usize, &[u32], &[f64]) -> T + Sync + Send,
    ) -> Vec<T> {
        self.index.nearest_map(queries, k, Scratch::default, f)
    }

    /// Applies `f(what the group gives, places of its members in the order of time, ascending)` to the `k` nearest of each query, less
    /// its own position in the pool where `own` has it. `None` where that is not among them. `hints` as in
    /// [`Hints::squared`].
    pub fn map_groups<T: Send>(
        &self,
        queries: &Points,
        k: usize,
        own: Option<&[u32]>,
        hints: Option<&[f64]>,
        f: impl Fn(GroupEstimate, &[u32]) -> T + Sync + Send,
    ) -> Vec<Option<T>> {
        let mut out: Vec<Option<T>> = (0..queries.len()).map(|_| None).collect();
        let places = out.iter_mut().collect();
        let size = k - usize::from(own.is_some() && k > 0);
        let start = || (Batch::new(self.pool, size), Vec::new(), Vec::new());
        let hints = hints.map(|squared| Hints { squared, order: None });
        self.index.nearest_sets(
            queries,
            k,
            false,
            hints,
            places,
            start,
            |state, places: &mut [&mut Option<T>], sets| {
                let (batch, kept, there): &mut (Batch, Vec<u32>, Vec<usize>) = state;
                kept.clear();
                there.clear();
                for (i, (query, members, _)) in sets.iter().enumerate() {
                    let from = kept.len();
                    kept.extend(members.iter().filter(|m| own.is_none_or(|own| own[query] != **m)));
                    if kept.len() - from == size {
                        there.push(i);
                    } else {
                        kept.truncate(from);
                    }
                }
                let ends: Vec<f64> = sets.iter().map(|(_, _, ends)| ends.farthest).collect();
                let mut found = there.iter();
                self.pool.summaries(kept.chunks_exact(size.max(1)), batch, |curve, ranks| {
                    let &i = found.next().expect("a place for each group");
                    *places[i] = Some(f(GroupEstimate { curve, diameter: ends[i].sqrt() }, ranks));
                });
            },
        );
        out
    }

    /// The `k` nearest units of one query: positions in the pool, and squared distances.
    pub fn group(&self, query: &Points, k: usize) -> (Vec<u32>, Vec<f64>) {
        let found = self.index.nearest(query, k);
        (found.index, found.squared_distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Together they are what each is alone, bit for bit: with and without events, and corrected.
    #[test]
    fn intervals_at_once_are_those_one_by_one() {
        let curve =
            |events: usize| Summary::of_sorted((0..20).map(|i| (10.0 + f64::from(i), (i as usize) < events)), 20, 25.0);
        let arm = |cure: usize, time: usize| ArmEstimate {
            cure: GroupEstimate { curve: curve(cure), diameter: 1.0 },
            time: GroupEstimate { curve: curve(time), diameter: 1.0 },
        };
        let spread = Spread { variance: [0.2, 0.1], covariance: 0.03 };
        let corrected = Corrected {
            cure_probability: [0.4, 0.6],
            mean_event_time: [11.0, 12.5],
            cure_spread: spread,
            time_spread: spread,
            split_sd: None,
        };
        for arms in [[arm(7, 5), arm(4, 9)], [arm(0, 0), arm(3, 2)], [arm(2, 1), arm(20, 20)]] {
            for corrected in [None, Some(corrected)] {
                let e = Effect { arms, corrected };
                let all = e.intervals(25.0, 0.9);
                assert_eq!(all.cure, e.cure_interval(0.9));
                assert_eq!(all.time, e.time_interval(25.0, 0.9));
                for z in Arm::BOTH {
                    assert_eq!(all.cure_probability[z.index()], e.cure_probability_interval(z, 0.9));
                    assert_eq!(all.mean_event_time[z.index()], e.mean_event_time_interval(z, 25.0, 0.9));
                }
            }
        }
    }

    #[test]
    fn members_come_in_order_of_time() {
        let n = 1_000;
        let outcomes: Vec<(f64, bool)> = (0..n).map(|i| (1.0 + ((i * 7_919) % 1_009) as f64, i % 3 == 0)).collect();
        let pool = Pool::of_outcomes((0..n as u32).collect(), &outcomes, 900.0);
        let mut ranks = vec![7; 3];
        // By sorting, by marks, and everybody.
        for k in [1, 5, 7, 8, 9, 64, 500, 1_000] {
            let members: Vec<u32> = (0..k).map(|i| (i * 619 % n) as u32).collect();
            let mut expected: Vec<u32> = members.iter().map(|&m| pool.rank(m)).collect();
            expected.sort_unstable();
            pool.order(&members, &mut ranks);
            assert_eq!(ranks, expected, "{k} members");
        }
    }
}
