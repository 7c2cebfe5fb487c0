//! Do the limits of curves hold? Survival at a quarter and half of the horizon, RMST and its two parts, medians and
//! simultaneous bands of the adjusted estimator, of patients and on average, on the data sets of [`crate::coverage`].
//!
//! The truth of a patient is the law that drew it; that of a population is the mean over a draw of 100,000.

use crate::coverage::{Coverage, coverage, jobs, titled_markdown, titled_text};
use crate::record::{BandHeld, Held, Intervals, Settings, UnitsHeld};
use crate::table::{Records, write_to};
use dvim::internal::analysis::Analysis;
use dvim::internal::arm::{Arm, ByArm};
use dvim::internal::audit::average::{AverageEffect, Populations};
use dvim::internal::audit::one_step::Scores;
use dvim::internal::curve::{Grid, split_rmst};
use dvim::internal::error::Error;
use dvim::internal::interval::two_sided;
use dvim::internal::simulate::{Laws, Scenario, Simulated, simulate};
use dvim_report::tables::header;
use dvim_report::text::grouped;
use rayon::prelude::*;

/// What is looked at, of patients and on average.
const QUANTITIES: [&str; 8] = [
    "survival difference at H/4",
    "survival difference at H/2",
    "treated survival at H/2",
    "rmst_effect",
    "rmst_from_cure",
    "rmst_from_time",
    "median_treated",
    "median_control",
];
/// The bands.
const BANDS: [&str; 3] = ["treated", "control", "difference"];
/// Times at which bands are looked at.
const TIMES: usize = 16;
const ESTIMATOR: &str = "adjusted";
/// Units and seed of the draw that the truth is taken from.
const POPULATION: (usize, u64) = (100_000, 123_456_789);
/// Points of its mean curves, and units of one task.
const FINE: usize = 160;
const BLOCK: usize = 2_000;

/// What is true of one patient.
struct Truth {
    survival: ByArm<Vec<f64>>,
    quarter: ByArm<f64>,
    rmst: [f64; 3],
    median: ByArm<Option<f64>>,
}

fn times(horizon: f64) -> Vec<f64> {
    (1..=TIMES).map(|k| horizon * k as f64 / TIMES as f64).collect()
}

fn truth(laws: &Laws, world: &Simulated, i: usize) -> Truth {
    let (x, horizon) = (world.cohort.covariates(i), world.cohort.horizon());
    let of = &world.truth[i].arms;
    let split = split_rmst(of.map(|a| a.cure_probability), of.map(|a| a.mean_event_time), horizon);
    let survival = |arm: Arm, t: f64| laws.survival(arm, x, t);
    let median = |arm: Arm| {
        if survival(arm, horizon) > 0.5 {
            return None;
        }
        let (mut low, mut high) = (0.0, horizon);
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            if survival(arm, middle) > 0.5 { low = middle } else { high = middle }
        }
        Some(0.5 * (low + high))
    };
    Truth {
        survival: ByArm::of(|arm| times(horizon).iter().map(|&t| survival(arm, t)).collect()),
        quarter: ByArm::of(|arm| survival(arm, 0.25 * horizon)),
        rmst: [split.effect.0, split.from_cure.0, split.from_time.0],
        median: ByArm::of(median),
    }
}

/// Looks at the curves of an adjusted analysis.
pub fn look(
    scenario: Scenario,
    world: &Simulated,
    found: &Analysis,
    averages: &[AverageEffect],
    out: &mut Intervals,
) -> Result<(), Error> {
    let Some(scores) = Scores::of(&world.cohort, found) else { return Ok(()) };
    let (grid, laws, horizon) = (Grid::of(&world.cohort), scenario.laws(false), world.cohort.horizon());
    let z = two_sided(found.fit.options.confidence);
    let mut held: [Vec<(bool, f64)>; QUANTITIES.len()] = Default::default();
    for (effect, &i) in found.effects.iter().zip(&found.units) {
        let Some(corrected) = &effect.corrected else { continue };
        let (curves, truth) = (corrected.curves(&grid), truth(&laws, world, i as usize));
        let half = |arm: Arm| truth.survival[arm][TIMES / 2 - 1];
        let split = curves.ends.rmst_split(z);
        let intervals = [
            (curves.survival_difference(0.25 * horizon, z).1, truth.quarter.treated - truth.quarter.control),
            (curves.survival_difference(0.5 * horizon, z).1, half(Arm::Treated) - half(Arm::Control)),
            (curves.survival(Arm::Treated, 0.5 * horizon, z).1, half(Arm::Treated)),
            (split.effect.1, truth.rmst[0]),
            (split.from_cure.1, truth.rmst[1]),
            (split.from_time.1, truth.rmst[2]),
        ];
        for (held, (interval, truth)) in held.iter_mut().zip(intervals) {
            held.push((interval.covers(truth), interval.width()));
        }
        for (k, arm) in [(6, Arm::Treated), (7, Arm::Control)] {
            // An end that is not reached lies beyond H.
            if let Some((_, _, [low, high])) = curves.median(arm, z) {
                let (low, high) = (low.unwrap_or(0.0), high.unwrap_or(f64::INFINITY));
                let holds = truth.median[arm].map_or(high.is_infinite(), |t| low <= t && t <= high);
                held[k].push((holds, high.min(horizon) - low));
            }
        }
    }
    for (estimand, held) in QUANTITIES.into_iter().zip(held) {
        let n = held.len().max(1) as f64;
        out.units.push(UnitsHeld {
            estimator: ESTIMATOR.into(),
            estimand: estimand.into(),
            share: held.iter().filter(|h| h.0).count() as f64 / n,
            width: held.iter().map(|h| h.1).sum::<f64>() / n,
        });
    }
    let populations = Populations::new(&world.cohort, &found.units, &[])?;
    let all = scores.curves(&populations, &grid, &times(horizon)).swap_remove(0);
    let quarter = scores.curves(&populations, &grid, &[0.25 * horizon]).swap_remove(0);
    let mut add = |estimand: &str, estimate: f64, se: f64, low: f64, high: f64| {
        let (estimator, population) = (ESTIMATOR.into(), "all".into());
        out.averages.push(Held { estimator, estimand: estimand.into(), population, estimate, se, low, high });
    };
    let d = &quarter.difference;
    add(QUANTITIES[0], d.estimate[0], d.se[0], d.low[0], d.high[0]);
    let (d, t, h) = (&all.difference, &all.arms.treated, TIMES / 2 - 1);
    add(QUANTITIES[1], d.estimate[h], d.se[h], d.low[h], d.high[h]);
    add(QUANTITIES[2], t.estimate[h], t.se[h], t.low[h], t.high[h]);
    for a in averages.iter().filter(|a| a.population == "all" && QUANTITIES[3..].contains(&a.estimand)) {
        if let Some(estimate) = a.estimate {
            let (low, high) = (a.low.unwrap_or(0.0), a.high.unwrap_or(1e9));
            add(a.estimand, estimate, a.se.unwrap_or(0.0), low, high);
        }
    }
    for (name, band) in BANDS.into_iter().zip([&all.arms.treated, &all.arms.control, &all.difference]) {
        out.bands.push(BandHeld { band: name.into(), low: band.band_low.clone(), high: band.band_high.clone() });
    }
    Ok(())
}

/// One scenario: coverage of patients and of averages for each quantity, then of the bands.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The scenario.
    pub scenario: Scenario,
    /// Data sets.
    pub reps: usize,
    /// Patients.
    pub units: Vec<Option<Coverage>>,
    /// Averages.
    pub averages: Vec<Option<Coverage>>,
    /// Bands.
    pub bands: Vec<Option<Coverage>>,
}

/// The rows that there are records for.
pub fn rows(settings: &Settings, records: &Records, reps: usize) -> Vec<Row> {
    let all = jobs(settings, reps);
    let mut scenarios: Vec<Scenario> = Vec::new();
    all.iter().for_each(|j| {
        if !scenarios.contains(&j.scenario()) {
            scenarios.push(j.scenario());
        }
    });
    let mut out = Vec::new();
    for scenario in scenarios {
        let of_scenario = all.iter().filter(|j| j.scenario() == scenario);
        let found: Vec<&Intervals> =
            of_scenario.filter_map(|j| records.get(&j.key())).filter_map(|r| r.intervals.as_ref()).collect();
        if found.iter().all(|i| i.bands.is_empty()) {
            continue;
        }
        let goals = Goals::of(scenario);
        let units = |name: &str| {
            let of = |u: &&UnitsHeld| u.estimator == ESTIMATOR && u.estimand == name;
            coverage(found.iter().filter_map(|i| i.units.iter().find(of)).map(|u| (u.share, u.width)))
        };
        let averages = |(k, name): (usize, &&str)| {
            let of = |h: &&Held| h.estimator == ESTIMATOR && h.estimand == *name;
            let held = found.iter().filter_map(|i| i.averages.iter().find(of));
            let goal = goals.values[k];
            coverage(held.map(|h| (f64::from(u8::from(h.low <= goal && goal <= h.high)), h.high - h.low)))
        };
        let bands = |(k, name): (usize, &&str)| {
            let held = found.iter().filter_map(|i| i.bands.iter().find(|b| b.band == *name));
            coverage(held.map(|b| {
                let inside = (b.low.iter().zip(&b.high).zip(&goals.bands[k])).all(|((l, h), t)| l <= t && t <= h);
                let width = b.low.iter().zip(&b.high).map(|(l, h)| h - l).sum::<f64>() / TIMES as f64;
                (f64::from(u8::from(inside)), width)
            }))
        };
        out.push(Row {
            scenario,
            reps: found.len(),
            units: QUANTITIES.iter().map(|name| units(name)).collect(),
            averages: QUANTITIES.iter().enumerate().map(averages).collect(),
            bands: BANDS.iter().enumerate().map(bands).collect(),
        });
    }
    out
}

/// What is true of a population.
struct Goals {
    values: Vec<f64>,
    bands: [Vec<f64>; 3],
}

impl Goals {
    fn of(scenario: Scenario) -> Goals {
        let world = simulate(scenario, POPULATION.0, false, POPULATION.1);
        let (laws, n, horizon) = (scenario.laws(false), POPULATION.0 as f64, world.cohort.horizon());
        // Mean curves on a fine grid, which holds every time that is asked for.
        let fine = FINE;
        let of_block = |block: usize| {
            let mut sums = (ByArm::of(|_| vec![0.0; fine + 1]), [0.0; 3]);
            for i in block * BLOCK..((block + 1) * BLOCK).min(POPULATION.0) {
                let (x, of) = (world.cohort.covariates(i), &world.truth[i].arms);
                for arm in Arm::BOTH {
                    let at = |k: usize| laws.survival(arm, x, horizon * k as f64 / fine as f64);
                    sums.0[arm].iter_mut().enumerate().for_each(|(k, s)| *s += at(k));
                }
                let split = split_rmst(of.map(|a| a.cure_probability), of.map(|a| a.mean_event_time), horizon);
                let parts = [split.effect.0, split.from_cure.0, split.from_time.0];
                sums.1.iter_mut().zip(parts).for_each(|(s, v)| *s += v);
            }
            sums
        };
        let blocks: Vec<_> = (0..POPULATION.0.div_ceil(BLOCK)).into_par_iter().map(of_block).collect();
        let mut curves = ByArm::of(|_| vec![0.0; fine + 1]);
        let mut rmst = [0.0; 3];
        for (of_arms, parts) in &blocks {
            for arm in Arm::BOTH {
                curves[arm].iter_mut().zip(&of_arms[arm]).for_each(|(s, v)| *s += v / n);
            }
            rmst.iter_mut().zip(parts).for_each(|(s, v)| *s += v / n);
        }
        let at = |arm: Arm, k: usize| curves[arm][k * fine / TIMES];
        let survival = ByArm::of(|arm| (1..=TIMES).map(|k| at(arm, k)).collect::<Vec<f64>>());
        let quarter = ByArm::of(|arm| at(arm, TIMES / 4));
        let median = |arm: Arm| {
            let after = curves[arm].iter().position(|s| *s <= 0.5);
            after.map_or(f64::INFINITY, |k| {
                let (a, b) = (curves[arm][k - 1], curves[arm][k]);
                horizon * (k as f64 - 1.0 + (a - 0.5) / (a - b)) / fine as f64
            })
        };
        let half = ByArm::of(|arm| survival[arm][TIMES / 2 - 1]);
        let difference = survival.treated.iter().zip(&survival.control).map(|(t, c)| t - c).collect();
        let values = vec![
            quarter.treated - quarter.control,
            half.treated - half.control,
            half.treated,
            rmst[0],
            rmst[1],
            rmst[2],
            median(Arm::Treated),
            median(Arm::Control),
        ];
        Goals { values, bands: [survival.treated, survival.control, difference] }
    }
}

/// As CSV: a row for each scenario and quantity.
pub fn csv(settings: &Settings, found: &[Row]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut row = header(&["scenario", "n", "reps", "quantity", "of", "coverage", "width"]);
    for r in found {
        let mut add = |quantity: &str, of: &str, c: &Option<Coverage>| {
            row.text(r.scenario.name()).count(settings.n_units).count(r.reps).text(quantity).text(of);
            row.maybe(c.map(|c| c.held)).maybe(c.map(|c| c.width));
            row.end();
        };
        for (k, name) in QUANTITIES.iter().enumerate() {
            add(name, "patients", &r.units[k]);
            add(name, "average", &r.averages[k]);
        }
        BANDS.iter().zip(&r.bands).for_each(|(name, c)| add(name, "band", c));
    }
    write_to(&mut row, &mut out);
    out
}

fn grid(found: &[Row]) -> (Vec<String>, Vec<Vec<String>>) {
    let mut columns = vec!["Scenario".to_string(), "data sets".into(), "of".into()];
    columns.extend(QUANTITIES.iter().map(|q| q.replace('_', " ")));
    columns.extend(BANDS.iter().map(|b| format!("band, {b}")));
    let words = |c: &Option<Coverage>| c.map_or(String::new(), |c| format!("{:.1}", c.held));
    let mut rows = Vec::new();
    for r in found {
        for (of, all, bands) in [("patients", &r.units, None), ("averages", &r.averages, Some(&r.bands))] {
            let mut row = vec![r.scenario.label().to_string(), r.reps.to_string(), of.to_string()];
            row.extend(all.iter().map(words));
            row.extend(BANDS.iter().enumerate().map(|(k, _)| bands.map_or(String::new(), |b| words(&b[k]))));
            rows.push(row);
        }
    }
    (columns, rows)
}

const TITLE: &str = "Coverage of what is read off the curves";

fn remark(settings: &Settings) -> String {
    format!(
        "Per cent of 95 % intervals of the adjusted estimator that hold the truth, data sets of {} units, seed {}. Medians: of the patients who have one.",
        grouped(settings.n_units),
        settings.seed
    )
}

/// As Markdown.
pub fn markdown(settings: &Settings, found: &[Row]) -> String {
    titled_markdown(TITLE, &grid(found), &remark(settings))
}

/// As text for a terminal.
pub fn text(settings: &Settings, found: &[Row]) -> String {
    titled_text(TITLE, 3, grid(found), &remark(settings))
}
