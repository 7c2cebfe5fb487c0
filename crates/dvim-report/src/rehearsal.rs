//! What a rehearsal came to: its record, its table, its words and its picture.

use crate::plot::{About, Axis, Estimate, Format, IntervalStack, stack};
use crate::tables::header;
use crate::text::{Grid, percent, short, signed};
use dvim::internal::estimand::Estimand;
use dvim::internal::rehearsal::{Over, Rehearsal, Scored, World};
use serde::{Deserialize, Serialize};

/// One effect over rehearsals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverRecord {
    /// `cure_effect` or `time_effect`.
    pub effect: String,
    /// `learned`, `rougher`, or `all`.
    pub world: String,
    /// Rehearsals with an average and its interval.
    pub rehearsals: usize,
    /// Of which the interval of the average held the truth.
    pub average_held: usize,
    /// Mean of the average's estimate less the truth.
    pub average_bias: f64,
    /// Root mean square of that.
    pub average_rmse: f64,
    /// Mean absolute error of patients' effects.
    pub patient_error: f64,
    /// The same of the true average given to everybody.
    pub error_of_one_value: f64,
    /// Share of patients whose interval held their effect.
    pub patients_held: f64,
    /// Share of patients whose interval lay on the wrong side of zero.
    pub wrong_side: f64,
}

/// The record of a rehearsal: each effect over all worlds, and over each kind.
pub fn records(found: &Rehearsal) -> Vec<OverRecord> {
    let kinds = [None, Some(World::Learned), Some(World::Rougher)];
    let all = Estimand::BOTH.into_iter().flat_map(|side| kinds.map(|world| (side, world)));
    all.filter_map(|(side, world)| Some(record(side, world, &found.over(side, world)?))).collect()
}

fn record(side: Estimand, world: Option<World>, o: &Over) -> OverRecord {
    OverRecord {
        effect: side.effect().into(),
        world: world.map_or("all", World::name).into(),
        rehearsals: o.n,
        average_held: o.held,
        average_bias: o.bias,
        average_rmse: o.rmse,
        patient_error: o.error,
        error_of_one_value: o.error_of_one,
        patients_held: o.patients_held,
        wrong_side: o.wrong_side,
    }
}

/// The columns of a table of rehearsals.
pub const COLUMNS: [&str; 11] = [
    "world",
    "seed",
    "effect",
    "truth",
    "estimate",
    "low",
    "high",
    "patient_error",
    "error_of_one_value",
    "patients_held",
    "wrong_side",
];

/// Every rehearsal, as CSV.
pub fn csv(found: &Rehearsal) -> Vec<u8> {
    let mut out = Vec::new();
    let mut row = header(&COLUMNS);
    for r in &found.each {
        for side in Estimand::BOTH {
            let Some(s) = r.effects[side] else { continue };
            row.text(r.world.name()).text(&r.seed.to_string()).text(side.effect());
            for value in [s.truth, s.estimate, s.low, s.high, s.error, s.error_of_one, s.held, s.wrong_side] {
                row.number(value);
            }
            row.end();
        }
    }
    row.write_to(&mut out).expect("memory takes what is written");
    out
}

fn scale(side: Estimand) -> (f64, &'static str) {
    match side {
        Estimand::Cure => (100.0, " points"),
        Estimand::Time => (1.0, ""),
    }
}

/// One sentence for each effect.
pub fn sentences(found: &Rehearsal) -> Vec<String> {
    Estimand::BOTH.into_iter().filter_map(|side| Some(sentence(side, &found.over(side, None)?))).collect()
}

fn sentence(side: Estimand, o: &Over) -> String {
    let (by, unit) = scale(side);
    format!(
        "In {} cohorts like this one the average {} effect was off by {}{unit} (root mean square), and its interval held the truth in {} of them. Patients\' effects were off by {}{unit} on average, and their intervals held {} of them.",
        o.n,
        side.name(),
        short(by * o.rmse),
        o.held,
        short(by * o.error),
        percent(o.patients_held)
    )
}

/// For a terminal.
pub fn words(found: &Rehearsal) -> String {
    let mut out = String::from(
        "A rehearsal: the same patients, treatment and follow-up, outcomes drawn from known curves, the same analysis again\n",
    );
    let mut grid = Grid::new(
        2,
        &[
            "",
            "curves",
            "cohorts",
            "average held",
            "average off by",
            "its bias",
            "patients held",
            "patients off by",
            "one value for all",
            "wrong side",
        ],
    );
    for side in Estimand::BOTH {
        for world in [World::Learned, World::Rougher] {
            let Some(o) = found.over(side, Some(world)) else { continue };
            let by = scale(side).0;
            grid.row([
                format!("{} effect", side.name()),
                world.name().into(),
                o.n.to_string(),
                o.held.to_string(),
                short(by * o.rmse),
                signed(by * o.bias),
                percent(o.patients_held),
                short(by * o.error),
                short(by * o.error_of_one),
                percent(o.wrong_side),
            ]);
        }
    }
    out.push_str(&grid.render());
    sentences(found).iter().for_each(|s| {
        out.push_str(s);
        out.push('\n');
    });
    out.push_str("Rougher curves have steps and bends that no model of the analysis has. Cure effects are in points. A rehearsal cannot show a confounder that was not measured.\n");
    out
}

/// The intervals of the averages around the truth, one panel for each effect.
pub fn figure(found: &Rehearsal, width: f64, time_unit: &str) -> String {
    let panel = |side: Estimand| {
        let (what, unit, format) = match side {
            Estimand::Cure => ("cure", "percentage points".to_string(), Format::Points),
            Estimand::Time => ("time", time_unit.to_string(), Format::Number),
        };
        let of = |s: Scored| Estimate::new(s.estimate - s.truth, s.low - s.truth, s.high - s.truth);
        let title = match unit.is_empty() {
            true => format!("Average {what} effect less the truth"),
            false => format!("Average {what} effect less the truth ({unit})"),
        };
        let o = found.over(side, None);
        let held = o.map_or(String::new(), |o| format!("{} of {} intervals hold the truth.", o.held, o.n));
        IntervalStack {
            about: About::new(format!("Rehearsals of the average {what} effect")).describe(held).width(width),
            intervals: found.each.iter().filter_map(|r| r.effects[side]).map(of).collect(),
            axis: Axis::new(title).format(format),
            sides: ["too low".into(), "too high".into()],
        }
        .svg()
    };
    let figures: Vec<String> = Estimand::BOTH.into_iter().map(panel).collect();
    stack("A rehearsal of this analysis", &sentences(found).join(" "), &figures)
}
