//! Before the study: how likely is a two-arm study to find the effects that it looks for?
//!
//! Trials are drawn from assumptions ([`Design`]) and analysed crudely, without covariates: the difference of the arms'
//! Kaplan–Meier curves at H (π), of their mean event times before H (Δ) and of their restricted means, each over its
//! standard error (Greenwood's, and the delta method's: [`dvim::internal::survival::Summary`]). Power is the share of
//! trials in which that quotient is beyond the normal quantile.
//!
//! Given an event before H, its time has the density `∝ exp(−λt)` on (0, H), with the λ that gives the assumed mean;
//! who has none before H has none. Patients enter evenly over the accrual, are lost at a constant hazard, and are
//! followed to the end of the study.
//!
//! The trials of one seed are the same for every size as far as they go (common random numbers), and the same on any
//! number of threads. Batches are drawn until every power is known to [`PRECISION`].

use dvim::internal::arm::{Arm, ByArm};
use dvim::internal::audit::follow_up::{FollowUp, Verdict};
use dvim::internal::error::Error;
use dvim::internal::interval::two_sided;
use dvim::internal::simulate::Draws;
use dvim::internal::survival::{Summary, SurvivalCurve};
use dvim::internal::watch::Watch;
use dvim_report::text::{Grid, grouped};
use rayon::prelude::*;
use serde::Serialize;

/// Standard error of a power at which drawing stops: ± 2 points are two of them.
pub const PRECISION: f64 = 0.01;
/// Trials of a batch.
const BATCH: usize = 250;
/// Trials of a size, at most: enough for [`PRECISION`] at any power.
const MOST: usize = 2_500;
/// A mean event time is at least this share of H, and at most one less it.
const NEAR_THE_END: f64 = 0.02;
/// Fewest patients of a trial.
pub const FEWEST: usize = 20;
/// Most patients of a trial.
pub const LARGEST: usize = 100_000;

/// What is assumed of a study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Design {
    /// H.
    pub horizon: f64,
    /// Share of the control arm that is event-free at H.
    pub event_free: f64,
    /// Mean event time of the control arm's patients who have the event before H.
    pub mean_time: f64,
    /// π.
    pub cure_effect: f64,
    /// Δ.
    pub time_effect: f64,
    /// Time over which patients enter.
    pub accrual: f64,
    /// When the study ends, counted from its first patient.
    pub study_end: f64,
    /// Share of patients lost by H, if nothing else ended their follow-up.
    pub dropout: f64,
    /// Share of patients who are treated.
    pub treated_share: f64,
    /// Numbers of patients.
    pub sizes: Vec<usize>,
    /// Two-sided level of each test.
    pub alpha: f64,
    /// Whether "either effect" is tested at half of the level each (Bonferroni).
    pub bonferroni: bool,
    /// The power that is wanted.
    pub power: f64,
    /// Decides every draw.
    pub seed: u64,
}

/// A sum of what was typed, without the digits that binary fractions add.
fn rounded(v: f64) -> f64 {
    (v * 1e9).round() / 1e9
}

/// Why a design cannot be: what was given, the rule, the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// The option, in small letters and hyphens.
    pub option: &'static str,
    /// What is wrong with it.
    pub found: String,
    /// The rule.
    pub rule: &'static str,
    /// The remedy.
    pub remedy: String,
}

impl Design {
    /// The law of an arm: the share event-free at H and the mean event time before H.
    fn law(&self, arm: Arm) -> (f64, f64) {
        match arm {
            Arm::Control => (self.event_free, self.mean_time),
            Arm::Treated => (self.event_free + self.cure_effect, self.mean_time + self.time_effect),
        }
    }

    /// Patients of an arm in a trial of this size: the allocation is fixed.
    pub fn of_arm(&self, arm: Arm, n: usize) -> usize {
        let treated = ((n as f64 * self.treated_share).round() as usize).clamp(1, n - 1);
        if arm == Arm::Treated { treated } else { n - treated }
    }

    /// Refuses what cannot be.
    pub fn check(&self) -> Result<(), Impossible> {
        let no = |option, found: String, rule, remedy: String| Err(Impossible { option, found, rule, remedy });
        let h = self.horizon;
        let (least, most) = (NEAR_THE_END * h, (1.0 - NEAR_THE_END) * h);
        let times = || format!("use a time from {least} to {most}");
        let is_share = |v: f64| v > 0.0 && v < 1.0;
        match self {
            _ if !(h > 0.0 && h.is_finite()) => {
                no("horizon", format!("it is {h}"), "the horizon is a positive time", "use a positive number".into())
            }
            d if !is_share(d.event_free) => no(
                "event-free",
                format!("it is {}", d.event_free),
                "a share lies between 0 and 1",
                "use 0.4 where 40 of 100 are event-free at the horizon".into(),
            ),
            d if !is_share(d.event_free + d.cure_effect) => no(
                "cure-effect",
                format!("{} of the treated would be event-free", rounded(d.event_free + d.cure_effect)),
                "the event-free share of the treated, that of the control arm plus the effect, lies between 0 and 1",
                format!("use an effect between {} and {}", rounded(-d.event_free), rounded(1.0 - d.event_free)),
            ),
            d if !(least..=most).contains(&d.mean_time) => no(
                "mean-time",
                format!("it is {}", d.mean_time),
                "the mean of event times before the horizon lies between 2 % and 98 % of the horizon",
                times(),
            ),
            d if !(least..=most).contains(&(d.mean_time + d.time_effect)) => no(
                "time-effect",
                format!("the mean event time of the treated would be {}", rounded(d.mean_time + d.time_effect)),
                "the mean event time of the treated, that of the control arm plus the effect, lies between 2 % and 98 % of the horizon",
                format!("use an effect from {} to {}", rounded(least - d.mean_time), rounded(most - d.mean_time)),
            ),
            d if !(d.accrual >= 0.0 && d.accrual.is_finite()) => no(
                "accrual",
                format!("it is {}", d.accrual),
                "patients enter over a time that is not negative",
                "use 0 where all enter at once".into(),
            ),
            d if !(d.study_end >= d.accrual && d.study_end.is_finite()) => no(
                "study-end",
                format!("the study ends at {}, and patients enter until {}", d.study_end, d.accrual),
                "follow-up ends after the last patient has entered",
                format!("use at least {}", d.accrual),
            ),
            d if d.study_end < h => no(
                "study-end",
                format!("the study ends at {}, before the horizon {h}", d.study_end),
                "somebody must be followed to the horizon: the first patient is followed to the end of the study",
                format!("use more than {h}, or an earlier horizon"),
            ),
            d if !(0.0..1.0).contains(&d.dropout) => no(
                "dropout",
                format!("it is {}", d.dropout),
                "the share lost by the horizon is at least 0 and below 1",
                "use 0.1 where 10 of 100 are lost".into(),
            ),
            d if !is_share(d.treated_share) => no(
                "treated-share",
                format!("it is {}", d.treated_share),
                "a share lies between 0 and 1",
                "use 0.5 for arms of one size".into(),
            ),
            d if d.sizes.is_empty() || d.sizes.iter().any(|n| !(FEWEST..=LARGEST).contains(n)) => no(
                "sizes",
                format!("they are {:?}", d.sizes),
                "a study has 20 to 100000 patients",
                "use 200,400,800".into(),
            ),
            d if !(d.alpha > 0.0 && d.alpha < 0.5) => no(
                "alpha",
                format!("it is {}", d.alpha),
                "the level of a test lies between 0 and 0.5",
                "use 0.05".into(),
            ),
            d if !(d.power > 0.5 && d.power < 1.0) => no(
                "power",
                format!("it is {}", d.power),
                "the power that is wanted lies between 0.5 and 1",
                "use 0.8 or 0.9".into(),
            ),
            _ => Ok(()),
        }
    }

    /// The same without effects.
    fn without_effect(&self) -> Design {
        Design { cure_effect: 0.0, time_effect: 0.0, ..self.clone() }
    }

    /// The event-free share of an arm at a time up to H.
    pub fn survival(&self, arm: Arm, t: f64) -> f64 {
        let (cured, mean) = self.law(arm);
        cured + (1.0 - cured) * (1.0 - Times::with_mean(mean, self.horizon).share(t))
    }
}

/// Event times on (0, H) with a density proportional to `exp(−λt)`.
#[derive(Clone, Copy)]
struct Times {
    rate: f64,
    horizon: f64,
}

impl Times {
    /// The λ of a mean, by bisection: the mean falls as λ grows, from H/2 at 0.
    fn with_mean(mean: f64, horizon: f64) -> Times {
        let (mut low, mut high) = (-100.0, 100.0);
        for _ in 0..80 {
            let middle = 0.5 * (low + high);
            if unit_mean(middle) > mean / horizon { low = middle } else { high = middle }
        }
        Times { rate: 0.5 * (low + high), horizon }
    }

    fn share(&self, t: f64) -> f64 {
        let at = (t / self.horizon).clamp(0.0, 1.0);
        if self.rate.abs() < 1e-9 { at } else { libm::expm1(-self.rate * at) / libm::expm1(-self.rate) }
    }

    fn quantile(&self, u: f64) -> f64 {
        let at = if self.rate.abs() < 1e-9 { u } else { -libm::log1p(u * libm::expm1(-self.rate)) / self.rate };
        (at * self.horizon).clamp(1e-9 * self.horizon, self.horizon.next_down())
    }
}

/// The mean of the density `∝ exp(−λt)` on (0, 1): `1/λ − 1/(e^λ − 1)`.
fn unit_mean(rate: f64) -> f64 {
    if rate.abs() < 1e-5 { 0.5 - rate / 12.0 } else { 1.0 / rate - 1.0 / libm::expm1(rate) }
}

/// What is looked at in a trial: π, Δ, the difference in RMST.
pub const EFFECTS: [&str; 3] = ["cure_effect", "time_effect", "rmst_effect"];

/// One trial: each estimate with its standard error, where there is one, and what its follow-up bears.
struct Trial {
    found: [Option<(f64, f64)>; 3],
    is_sufficient: bool,
    bears: f64,
}

fn trial(design: &Design, times: &ByArm<Times>, n: usize, number: usize) -> Trial {
    let h = design.horizon;
    let hazard = -libm::log1p(-design.dropout) / h;
    let (mut recorded, mut capped) = (Vec::with_capacity(n), Vec::with_capacity(n));
    let summaries = ByArm::of(|arm| {
        // Each arm has a stream of its own, so that a larger trial begins with the patients of a smaller one.
        let mut draws = Draws::new(design.seed, 2 * number as u64 + u64::from(arm == Arm::Treated));
        let (cured, first) = (design.law(arm).0, capped.len());
        for _ in 0..design.of_arm(arm, n) {
            let [who, when, entry, loss] = [0; 4].map(|_| draws.uniform());
            let event = if who < cured { f64::INFINITY } else { times[arm].quantile(when) };
            let lost = if hazard > 0.0 { -libm::log(loss) / hazard } else { f64::INFINITY };
            let end = lost.min(design.study_end - entry * design.accrual).max(1e-9 * h);
            recorded.push((event.min(end), event <= end));
            capped.push((event.min(end).min(h), event <= end && event < h));
        }
        let (time, event): (Vec<f64>, Vec<bool>) = capped[first..].iter().copied().unzip();
        SurvivalCurve::new(&time, &event).summary(h)
    });
    let difference = |value: &dyn Fn(&Summary) -> Option<(f64, f64)>| {
        let [(a, of_a), (b, of_b)] = [value(&summaries.treated)?, value(&summaries.control)?];
        let se = (of_a * of_a + of_b * of_b).sqrt();
        (se > 0.0).then_some((a - b, se))
    };
    let follow_up = FollowUp::of_outcomes(None, &recorded, &capped, h);
    Trial {
        found: [
            difference(&|s| Some((s.survival, s.survival_se()?))),
            difference(&|s| Some((s.mean_event_time()?, s.mean_event_time_se()?))),
            difference(&|s| Some((s.restricted_mean(h), s.restricted_mean_se(h)))),
        ],
        is_sufficient: matches!(follow_up.verdict, Verdict::Sufficient | Verdict::Over),
        bears: follow_up.last_ten,
    }
}

/// A number found by drawing, with its Monte Carlo standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Found {
    /// The number.
    pub value: f64,
    /// Its Monte Carlo standard error.
    pub mc_se: f64,
}

impl Found {
    fn share(count: usize, of: usize) -> Found {
        let value = count as f64 / of as f64;
        // Agresti and Coull's: a share of 0 or 1 is not known for sure either.
        let p = (count as f64 + 2.0) / (of as f64 + 4.0);
        Found { value, mc_se: (p * (1.0 - p) / of as f64).sqrt() }
    }

    fn mean(values: &[f64]) -> Option<Found> {
        let n = values.len() as f64;
        let value = values.iter().sum::<f64>() / n;
        let spread = values.iter().map(|v| (v - value) * (v - value)).sum::<f64>() / (n - 1.0);
        (values.len() > 1).then(|| Found { value, mc_se: (spread / n).sqrt() })
    }
}

/// What one number of patients comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Patients.
    pub n: usize,
    /// Trials drawn.
    pub trials: usize,
    /// Power for π, Δ and the difference in RMST, each at the level alpha.
    pub power: [Found; 3],
    /// Power to find π or Δ, by the rule for several tests.
    pub either: Found,
    /// Power to find both π and Δ, each at the level alpha.
    pub both: Found,
    /// Mean width of the intervals; `None` where hardly any trial has one.
    pub width: [Option<Found>; 3],
    /// Smallest effect found with the wanted power, `(z_{1−α/2} + z_power)` mean standard errors.
    pub detectable: [Option<Found>; 3],
    /// Chance of a rejection of each where there is no effect.
    pub type_one: [Found; 3],
    /// Chance that π or Δ is rejected where there is no effect, by the rule for several tests.
    pub type_one_either: Found,
    /// Chance that follow-up suffices, by the verdict of an audit.
    pub sufficient: Found,
    /// Mean of the last time, H at most, at which ten patients are at risk.
    pub bears: Option<Found>,
}

/// What a design comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Power {
    /// What was assumed.
    pub design: Design,
    /// Each size, ascending.
    pub rows: Vec<Row>,
    /// Patients that reach the wanted power for π, Δ and RMST; `None` where the sizes do not reach it.
    pub needed: [Option<Found>; 3],
}

const STAGE: &str = "trials";

impl Power {
    /// Draws trials until each power is known to [`PRECISION`]. The design was checked.
    pub fn of(design: &Design, watch: &dyn Watch) -> Result<Power, Error> {
        let mut sizes = design.sizes.clone();
        sizes.sort_unstable();
        sizes.dedup();
        let rows: Result<Vec<Row>, Error> = sizes
            .iter()
            .enumerate()
            .map(|(i, &n)| {
                watch.step(STAGE, i, sizes.len())?;
                row(design, n, watch)
            })
            .collect();
        let rows = rows?;
        watch.step(STAGE, sizes.len(), sizes.len())?;
        let needed = std::array::from_fn(|k| needed(&rows, k, design.power));
        Ok(Power { design: design.clone(), rows, needed })
    }
}

fn rejected(found: Option<(f64, f64)>, z: f64) -> bool {
    found.is_some_and(|(estimate, se)| estimate.abs() > z * se)
}

fn row(design: &Design, n: usize, watch: &dyn Watch) -> Result<Row, Error> {
    let z = two_sided(1.0 - design.alpha);
    let z_either = if design.bonferroni { two_sided(1.0 - 0.5 * design.alpha) } else { z };
    let either = |t: &Trial| t.found[..2].iter().any(|f| rejected(*f, z_either));
    let null = design.without_effect();
    let times = |d: &Design| ByArm::of(|arm| Times::with_mean(d.law(arm).1, d.horizon));
    let (of_design, of_null) = (times(design), times(&null));
    let (mut trials, mut nulls): (Vec<Trial>, Vec<Trial>) = (Vec::new(), Vec::new());
    while trials.len() < MOST {
        let from = trials.len();
        let drawn: Vec<(Trial, Trial)> = (from..from + BATCH)
            .into_par_iter()
            .map(|r| (trial(design, &of_design, n, r), trial(&null, &of_null, n, r)))
            .collect();
        drawn.into_iter().for_each(|(t, of_null)| {
            trials.push(t);
            nulls.push(of_null);
        });
        if watch.cancelled() {
            return Err(Error::Cancelled);
        }
        let worst = (0..3).map(|k| share(&trials, &|t| rejected(t.found[k], z)).mc_se).fold(0.0, f64::max);
        if worst.max(share(&trials, &either).mc_se) <= PRECISION {
            break;
        }
    }
    let se = |k: usize| -> Option<Found> {
        Found::mean(&trials.iter().filter_map(|t| t.found[k].map(|f| f.1)).collect::<Vec<f64>>())
    };
    let times_se = |k: usize, by: f64| se(k).map(|s| Found { value: by * s.value, mc_se: by * s.mc_se });
    // z_power: the quantile of a two-sided interval of confidence 2 power − 1.
    let z_power = two_sided(2.0 * design.power - 1.0);
    Ok(Row {
        n,
        trials: trials.len(),
        power: std::array::from_fn(|k| share(&trials, &|t| rejected(t.found[k], z))),
        either: share(&trials, &either),
        both: share(&trials, &|t| t.found[..2].iter().all(|f| rejected(*f, z))),
        width: std::array::from_fn(|k| times_se(k, 2.0 * z)),
        detectable: std::array::from_fn(|k| times_se(k, z + z_power)),
        type_one: std::array::from_fn(|k| share(&nulls, &|t| rejected(t.found[k], z))),
        type_one_either: share(&nulls, &either),
        sufficient: share(&trials, &|t| t.is_sufficient),
        bears: Found::mean(&trials.iter().map(|t| t.bears).collect::<Vec<f64>>()),
    })
}

fn share(trials: &[Trial], of: &dyn Fn(&Trial) -> bool) -> Found {
    Found::share(trials.iter().filter(|t| of(t)).count(), trials.len())
}

/// Where a power is crossed between two sizes, in a straight line over √n.
fn needed(rows: &[Row], k: usize, wanted: f64) -> Option<Found> {
    let pair = rows.windows(2).find(|w| w[0].power[k].value < wanted && w[1].power[k].value >= wanted)?;
    let [a, b] = [&pair[0], &pair[1]].map(|r| ((r.n as f64).sqrt(), r.power[k]));
    let slope = (b.1.value - a.1.value) / (b.0 - a.0);
    let root = a.0 + (wanted - a.1.value) / slope;
    // An error of the power at the crossing, between those of the two ends, moves √n by itself over the slope.
    let error = a.1.mc_se.max(b.1.mc_se) / slope;
    Some(Found { value: root * root, mc_se: 2.0 * root * error })
}

/// A share in per cent with its Monte Carlo standard error in points.
fn per_cent(found: Found) -> String {
    format!("{:.1} ({:.1})", 100.0 * found.value, 100.0 * found.mc_se)
}

/// What a design comes to, in words and two tables.
pub fn text(found: &Power) -> String {
    let d = &found.design;
    let rule = if d.bonferroni { format!("{} each, Bonferroni", 0.5 * d.alpha) } else { format!("{} each", d.alpha) };
    let lost = if d.dropout > 0.0 {
        format!("{} of 100 are lost by {}", 100.0 * d.dropout, d.horizon)
    } else {
        "nobody is lost".into()
    };
    let mut out = format!(
        "Assumed: {:.1} of 100 controls are event-free at {h}; the others have the event at {} on average (density ∝ exp(−λt)).\n\
         Treatment changes the share by {:+.1} points and the mean event time by {:+}. {:.0} of 100 patients are treated.\n\
         Patients enter evenly over {}; the study ends at {}; {lost}.\n\
         Analysis: crude, by Kaplan–Meier curves of the arms; two-sided tests at {}; either: {rule}. Seed {}.\n\n\
         Power in per cent (Monte Carlo standard error in points):\n",
        100.0 * d.event_free,
        d.mean_time,
        100.0 * d.cure_effect,
        d.time_effect,
        100.0 * d.treated_share,
        d.accrual,
        d.study_end,
        d.alpha,
        d.seed,
        h = d.horizon,
    );
    let mut power =
        Grid::new(0, &["patients", "trials", "whether", "when", "either", "both", "RMST", "follow-up suffices"]);
    let mut further = Grid::new(
        0,
        &[
            "patients",
            "width, whether",
            "width, when",
            "found, whether",
            "found, when",
            "type I: whether",
            "when",
            "either",
            "ten at risk until",
        ],
    );
    for r in &found.rows {
        let n = grouped(r.n);
        let shares = [r.power[0], r.power[1], r.either, r.both, r.power[2], r.sufficient].map(per_cent);
        power.row([n.clone(), grouped(r.trials)].into_iter().chain(shares));
        let points =
            |f: Option<Found>| f.map_or("–".into(), |f| format!("{:.1} ({:.2})", 100.0 * f.value, 100.0 * f.mc_se));
        let time = |f: Option<Found>| f.map_or("–".into(), |f| format!("{:.3} ({:.3})", f.value, f.mc_se));
        let type_one = [r.type_one[0], r.type_one[1], r.type_one_either].map(per_cent);
        let sizes = [points(r.width[0]), time(r.width[1]), points(r.detectable[0]), time(r.detectable[1])];
        further.row([n].into_iter().chain(sizes).chain(type_one).chain([time(r.bears)]));
    }
    out += &power.render();
    out += &format!(
        "\nWidth of {:.0} % intervals (points, time), smallest effect found with power {}, chance of a finding without an effect:\n",
        100.0 * (1.0 - d.alpha),
        d.power
    );
    out += &further.render();
    out += "\n";
    let names = ["whether", "when", "the difference in RMST"];
    for (name, needed) in names.into_iter().zip(found.needed) {
        out += &match needed {
            Some(f) => format!(
                "Power {} for {name}: about {:.0} patients (Monte Carlo standard error {:.0}).\n",
                d.power, f.value, f.mc_se
            ),
            None => format!("Power {} for {name}: not crossed between the sizes asked for.\n", d.power),
        };
    }
    out
}
