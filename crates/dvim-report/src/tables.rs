//! Tables as CSV: one row for each unit, each covariate, each step of a curve.

use dvim::analysis::Analysis;
use dvim::cohort::{Arm, Cohort};
use dvim::effect::Effect;
use dvim::interval::Interval;
use rayon::prelude::*;
use std::io::{self, Write};

/// The columns of `effects.csv`.
pub const EFFECT_COLUMNS: [&str; 33] = [
    "id",
    "treatment",
    "cure_effect",
    "time_effect",
    "cure_treated",
    "cure_control",
    "mean_event_time_treated",
    "mean_event_time_control",
    "cure_at_risk_treated",
    "cure_at_risk_control",
    "cure_diameter_treated",
    "cure_diameter_control",
    "time_diameter_treated",
    "time_diameter_control",
    "flags",
    "cure_effect_se",
    "cure_effect_low",
    "cure_effect_high",
    "time_effect_se",
    "time_effect_low",
    "time_effect_high",
    "cure_treated_se",
    "cure_treated_low",
    "cure_treated_high",
    "cure_control_se",
    "cure_control_low",
    "cure_control_high",
    "mean_event_time_treated_se",
    "mean_event_time_treated_low",
    "mean_event_time_treated_high",
    "mean_event_time_control_se",
    "mean_event_time_control_low",
    "mean_event_time_control_high",
];

/// A row under construction. Numbers are written with the fewest digits that read back as the same
/// number; an undefined value is an empty cell.
#[derive(Default)]
pub struct Row {
    text: Vec<u8>,
    started: bool,
}

impl Row {
    fn next(&mut self) {
        if self.started {
            self.text.push(b',');
        }
        self.started = true;
    }

    /// Adds a text, quoted where it must be.
    pub fn text(&mut self, value: &str) -> &mut Row {
        self.next();
        if value.contains([',', '"', '\n', '\r']) {
            self.text.push(b'"');
            self.text.extend_from_slice(value.replace('"', "\"\"").as_bytes());
            self.text.push(b'"');
        } else {
            self.text.extend_from_slice(value.as_bytes());
        }
        self
    }

    /// Adds a number.
    pub fn number(&mut self, value: f64) -> &mut Row {
        self.next();
        let mut buffer = ryu::Buffer::new();
        let text = buffer.format(value);
        self.text.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
        self
    }

    /// Adds a number, or an empty cell where there is none.
    pub fn maybe(&mut self, value: Option<f64>) -> &mut Row {
        match value {
            Some(v) => self.number(v),
            None => self.text(""),
        }
    }

    /// Adds a whole number.
    pub fn count(&mut self, value: usize) -> &mut Row {
        self.text(&value.to_string())
    }

    /// Ends the row.
    pub fn end(&mut self) -> &mut Row {
        self.text.push(b'\n');
        self.started = false;
        self
    }

    /// Writes what was gathered and starts anew.
    pub fn write_to(&mut self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

/// A header row.
pub fn header(names: &[&str]) -> Row {
    let mut row = Row::default();
    names.iter().for_each(|n| {
        row.text(n);
    });
    row.end();
    row
}

/// Rows formatted at a time, on all threads, before they are written in order.
const BLOCK: usize = 16_384;

/// Formats rows on all threads and writes them in order.
pub fn write_rows(out: &mut impl Write, n: usize, format: impl Fn(&mut Row, usize) + Sync) -> io::Result<()> {
    let per_thread = BLOCK / 8;
    for start in (0..n).step_by(BLOCK) {
        let end = (start + BLOCK).min(n);
        let parts: Vec<Row> = (start..end)
            .into_par_iter()
            .step_by(per_thread)
            .map(|from| {
                let mut row = Row::default();
                for i in from..(from + per_thread).min(end) {
                    format(&mut row, i);
                    row.end();
                }
                row
            })
            .collect();
        for mut part in parts {
            part.write_to(out)?;
        }
    }
    Ok(())
}

/// `effects.csv`: one row for each estimated unit, in the order of ids.
pub fn write_effects(out: &mut impl Write, cohort: &Cohort, analysis: &Analysis) -> io::Result<()> {
    header(&EFFECT_COLUMNS).write_to(out)?;
    write_rows(out, analysis.units.len(), |row, i| {
        effect_row(row, cohort, analysis.units[i] as usize, &analysis.effects[i], analysis.fit.options.confidence)
    })
}

fn effect_row(row: &mut Row, cohort: &Cohort, unit: usize, e: &Effect, confidence: f64) {
    const ARMS: [Arm; 2] = [Arm::Treated, Arm::Control];
    row.text(&cohort.ids().text(unit)).text(cohort.label(cohort.arm(unit)));
    row.number(e.cure()).maybe(e.time());
    for z in ARMS {
        row.number(e.cure_probability(z));
    }
    for z in ARMS {
        row.maybe(e.mean_event_time(z));
    }
    for z in ARMS {
        row.count(e.arm(z).cure.curve.n_at_risk);
    }
    for z in ARMS {
        row.number(e.arm(z).cure.diameter);
    }
    for z in ARMS {
        row.number(e.arm(z).time.diameter);
    }
    let flags: Vec<&str> = e.flags().map(|f| f.name()).collect();
    row.text(&flags.join(";"));
    let horizon = cohort.horizon();
    let mut interval = |i: Option<Interval>| {
        row.maybe(i.and_then(|i| i.se)).maybe(i.map(|i| i.low)).maybe(i.map(|i| i.high));
    };
    interval(Some(e.cure_interval(confidence)));
    interval(e.time_interval(horizon, confidence));
    for z in ARMS {
        interval(Some(e.cure_probability_interval(z, confidence)));
    }
    for z in ARMS {
        interval(e.mean_event_time_interval(z, horizon, confidence));
    }
}

/// `weights.csv`: for each covariate its two weights, the scaling under which the distance is
/// taken, and the coefficients of both arms with their standard errors.
pub fn write_weights(out: &mut impl Write, cohort: &Cohort, analysis: &Analysis) -> io::Result<()> {
    header(&[
        "covariate",
        "cure_weight",
        "time_weight",
        "center",
        "scale",
        "cure_coefficient_treated",
        "cure_se_treated",
        "cure_coefficient_control",
        "cure_se_control",
        "time_coefficient_treated",
        "time_se_treated",
        "time_coefficient_control",
        "time_se_control",
    ])
    .write_to(out)?;
    let fit = &analysis.fit;
    let scaling = &fit.metrics.cure.scaling;
    let mut row = Row::default();
    for (j, name) in cohort.names().iter().enumerate() {
        row.text(name).number(fit.metrics.cure.weights[j]).number(fit.metrics.time.weights[j]);
        row.number(scaling.center[j]).number(scaling.scale[j]);
        let [control, treated] = &fit.models;
        for part in [&treated.cure, &control.cure, &treated.latency, &control.latency] {
            row.number(part.coefficients[j]).maybe(part.standard_errors.as_ref().map(|s| s[j]));
        }
        row.end();
    }
    row.write_to(out)
}

/// A simulated cohort: `id,time,event,treatment,x1,…`.
pub fn write_cohort(out: &mut impl Write, cohort: &Cohort) -> io::Result<()> {
    let mut names = vec!["id", "time", "event", "treatment"];
    names.extend(cohort.names().iter().map(String::as_str));
    header(&names).write_to(out)?;
    write_rows(out, cohort.n_units(), |row, i| {
        let (time, event) = cohort.recorded(i);
        row.text(&cohort.ids().text(i)).number(time).count(usize::from(event)).text(cohort.label(cohort.arm(i)));
        cohort.covariates(i).iter().for_each(|v| {
            row.number(*v);
        });
    })
}

/// The truth of a simulated cohort.
pub fn write_truth(out: &mut impl Write, world: &dvim::simulate::Simulated) -> io::Result<()> {
    header(&[
        "id",
        "cure_effect",
        "time_effect",
        "cure_treated",
        "cure_control",
        "mean_event_time_treated",
        "mean_event_time_control",
    ])
    .write_to(out)?;
    write_rows(out, world.truth.len(), |row, i| {
        let t = &world.truth[i];
        let [control, treated] = t.arms;
        row.text(&world.cohort.ids().text(i)).number(t.cure_effect()).number(t.time_effect());
        row.number(treated.cure_probability).number(control.cure_probability);
        row.number(treated.mean_event_time).number(control.mean_event_time);
    })
}
