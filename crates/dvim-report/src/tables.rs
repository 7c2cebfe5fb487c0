//! Tables as CSV: one row for each unit, each covariate, each step of a curve.

use crate::audit::CurvesRecord;
use dvim::internal::analysis::Analysis;
use dvim::internal::arm::ByArm;
use dvim::internal::cohort::{Arm, Cohort, Recorded};
use dvim::internal::constraint::Unserved;
use dvim::internal::cure::Part;
use dvim::internal::curve::{Curves, Estimate, Grid};
use dvim::internal::effect::Effect;
use dvim::internal::estimand::Estimand;
use dvim::internal::fold::Fit;
use dvim::internal::inspect::UnitGroups;
use dvim::internal::interval::{Interval, two_sided};
use dvim::internal::schema::Kind;
use dvim::internal::simulate::Truth;
use dvim::internal::table::Ids;
use rayon::prelude::*;
use std::borrow::Cow;
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

/// The difference in restricted mean survival time up to H, its two parts, and the value of each arm.
pub const RMST_COLUMNS: [&str; 20] = [
    "rmst_effect",
    "rmst_effect_se",
    "rmst_effect_low",
    "rmst_effect_high",
    "rmst_from_cure",
    "rmst_from_cure_se",
    "rmst_from_cure_low",
    "rmst_from_cure_high",
    "rmst_from_time",
    "rmst_from_time_se",
    "rmst_from_time_low",
    "rmst_from_time_high",
    "rmst_treated",
    "rmst_treated_se",
    "rmst_treated_low",
    "rmst_treated_high",
    "rmst_control",
    "rmst_control_se",
    "rmst_control_low",
    "rmst_control_high",
];

/// Columns of corrected effects: the median of each arm, then what each effect is made of: the model's value, what the
/// groups alone gave, and the weight by which they moved it.
pub const CORRECTED_COLUMNS: [&str; 14] = [
    "median_treated",
    "median_treated_se",
    "median_treated_low",
    "median_treated_high",
    "median_control",
    "median_control_se",
    "median_control_low",
    "median_control_high",
    "cure_effect_model",
    "cure_effect_matched",
    "cure_weight",
    "time_effect_model",
    "time_effect_matched",
    "time_weight",
];

/// Columns where there are several deals: standard deviations of a patient's effects over the splits that left
/// the patient out.
pub const SPLIT_COLUMNS: [&str; 2] = ["cure_effect_split_sd", "time_effect_split_sd"];

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

    /// Adds a text, quoted where it must be. A text that a spreadsheet would take for a formula gets an apostrophe
    /// before it: ids and levels come from files, and a formula can send the sheet away.
    pub fn text(&mut self, value: &str) -> &mut Row {
        self.next();
        if is_formula(value) {
            self.text.push(b'"');
            self.text.push(b'\'');
            self.text.extend_from_slice(value.replace('"', "\"\"").as_bytes());
            self.text.push(b'"');
        } else if value.contains([',', '"', '\n', '\r']) {
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
        let mut buffer = zmij::Buffer::new();
        let text = buffer.format(value);
        let exponent = if value.abs() >= 1e16 { text.split_once("e+") } else { None };
        match exponent {
            Some((digits, exponent)) => {
                self.text.extend_from_slice(digits.as_bytes());
                self.text.push(b'e');
                self.text.extend_from_slice(exponent.as_bytes());
            }
            None => self.short(text.strip_suffix(".0").unwrap_or(text).as_bytes()),
        }
        self
    }

    /// Adds the bytes of a number: mostly 16 to 24, which copies of fixed size do without a call.
    fn short(&mut self, bytes: &[u8]) {
        let (start, n) = (self.text.len(), bytes.len());
        if !(16..=24).contains(&n) {
            self.text.extend_from_slice(bytes);
            return;
        }
        self.text.extend_from_slice(&[0; 24]);
        let room = &mut self.text[start..start + 24];
        room[..16].copy_from_slice(&bytes[..16]);
        room[n - 8..n].copy_from_slice(&bytes[n - 8..]);
        self.text.truncate(start + n);
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
        self.next();
        let mut digits = [0_u8; 20];
        let (mut at, mut left) = (digits.len(), value);
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        self.text.extend_from_slice(&digits[at..]);
        self
    }

    /// A number as it is written.
    fn number_text(value: f64) -> String {
        let mut row = Row::default();
        row.number(value);
        String::from_utf8(row.text).expect("digits are ASCII")
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

/// Whether a spreadsheet would compute a cell with this text: it begins as a formula does, and is neither a number nor
/// a single sign, such as the level `+`.
fn is_formula(value: &str) -> bool {
    let begins = value.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
    begins && value.chars().nth(1).is_some() && value.parse::<f64>().is_err()
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

/// Rows that one task formats, and tasks at a time.
const PART: usize = 64;
const PARTS: usize = 16;

/// Formats rows on all threads and writes them in order; while some are written the next are formatted.
pub fn write_rows(out: &mut impl Write, n: usize, format: impl Fn(&mut Row, usize) + Sync) -> io::Result<()> {
    let fill = |parts: &mut [Row; PARTS], wave: usize| {
        parts.par_iter_mut().enumerate().for_each(|(i, row)| {
            let start = (wave * PARTS + i) * PART;
            for i in start..(start + PART).min(n) {
                format(row, i);
                row.end();
            }
        });
    };
    let (mut ready, mut next): ([Row; PARTS], [Row; PARTS]) = Default::default();
    fill(&mut ready, 0);
    let n_waves = n.div_ceil(PARTS * PART);
    for wave in 1..=n_waves {
        rayon::in_place_scope(|scope| {
            if wave < n_waves {
                scope.spawn(|_| fill(&mut next, wave));
            }
            ready.iter_mut().try_for_each(|part| part.write_to(out))
        })?;
        std::mem::swap(&mut ready, &mut next);
    }
    Ok(())
}

/// One value of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// A number.
    Number(f64),
    /// A whole number.
    Count(usize),
    /// Undefined.
    Nothing,
}

impl Cell<'_> {
    fn maybe(value: Option<f64>) -> Cell<'static> {
        value.map_or(Cell::Nothing, Cell::Number)
    }

    /// A text, undefined where it is empty.
    fn text_or_nothing(value: &str) -> Cell<'_> {
        if value.is_empty() { Cell::Nothing } else { Cell::Text(value.into()) }
    }

    fn write_csv(&self, row: &mut Row) {
        match self {
            Cell::Text(t) => row.text(t),
            Cell::Number(v) => row.number(*v),
            Cell::Count(n) => row.count(*n),
            Cell::Nothing => row.text(""),
        };
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Cell::Text(t) => t.as_ref().into(),
            Cell::Number(v) => (*v).into(),
            Cell::Count(n) => (*n).into(),
            Cell::Nothing => serde_json::Value::Null,
        }
    }
}

/// What the values of a column are, whether or not a row has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ColumnKind {
    /// Texts.
    Text,
    /// Numbers.
    Number,
    /// Whole numbers.
    Count,
}

/// A row of `effects.csv`.
pub struct EffectRow<'a> {
    /// Id of the unit.
    pub id: Cow<'a, str>,
    /// Its arm; empty for a unit that is in no cohort.
    pub treatment: &'a str,
    /// Its effect, where it has one.
    pub effect: Option<&'a Effect>,
    /// Flags beyond those of the effect.
    pub flags: Vec<Cow<'static, str>>,
}

impl<'a> EffectRow<'a> {
    /// The row as a JSON object; `null` where a value is undefined.
    pub fn json(self, layout: &Layout) -> serde_json::Map<String, serde_json::Value> {
        let cells = self.cells(layout);
        layout.columns().iter().zip(&cells).map(|(name, cell)| (name.to_string(), cell.json())).collect()
    }

    /// The cells, in the order of [`Layout::columns`].
    pub fn cells(self, layout: &Layout) -> Vec<Cell<'a>> {
        const ARMS: [Arm; 2] = [Arm::Treated, Arm::Control];
        let mut out = Vec::with_capacity(layout.width());
        out.resize_with(EFFECT_COLUMNS.len(), || Cell::Nothing);
        (out[0], out[1]) = (Cell::Text(self.id), Cell::Text(self.treatment.into()));
        if let Some(e) = self.effect {
            (out[2], out[3]) = (Cell::Number(e.cure()), Cell::maybe(e.time()));
            for (i, z) in ARMS.into_iter().enumerate() {
                out[4 + i] = Cell::Number(e.cure_probability(z));
                out[6 + i] = Cell::maybe(e.mean_event_time(z));
                out[8 + i] = Cell::Count(e.groups.cure[z].curve.n_at_risk);
                out[10 + i] = Cell::Number(e.groups.cure[z].diameter);
                out[12 + i] = Cell::Number(e.groups.time[z].diameter);
            }
            let of = e.intervals_at(layout.horizon, layout.quantile);
            let (s, m) = (of.cure_probability, of.mean_event_time);
            let intervals: [Option<Interval>; 6] =
                [Some(of.cure), of.time, Some(s.treated), Some(s.control), m.treated, m.control];
            for (i, interval) in intervals.into_iter().enumerate() {
                out[15 + 3 * i] = Cell::maybe(interval.and_then(|i| i.se));
                out[16 + 3 * i] = Cell::maybe(interval.map(|i| i.low));
                out[17 + 3 * i] = Cell::maybe(interval.map(|i| i.high));
            }
        }
        // Most patients have none.
        let mut flags = String::new();
        for flag in self.effect.into_iter().flat_map(Effect::flags).map(|f| f.name().into()).chain(self.flags) {
            if !flags.is_empty() {
                flags.push(';');
            }
            flags.push_str(&flag);
        }
        out[14] = Cell::Text(flags.into());
        let put = |out: &mut Vec<Cell<'a>>, estimate: Option<Estimate>| {
            out.push(Cell::maybe(estimate.map(|e| e.0)));
            out.push(Cell::maybe(estimate.and_then(|e| e.1.se)));
            out.push(Cell::maybe(estimate.map(|e| e.1.low)));
            out.push(Cell::maybe(estimate.map(|e| e.1.high)));
        };
        let ends = self.effect.and_then(|e| e.ends(layout.horizon, layout.quantile));
        let split = ends.map(|e| e.rmst_split(layout.quantile));
        put(&mut out, split.map(|s| s.effect));
        put(&mut out, split.map(|s| s.from_cure));
        put(&mut out, split.map(|s| s.from_time));
        ARMS.into_iter().for_each(|z| put(&mut out, ends.map(|e| e.rmst(z, layout.quantile))));
        if layout.corrected {
            let corrected = self.effect.and_then(|e| e.corrected.as_ref());
            let curves = corrected.filter(|_| layout.horizon == layout.grid.horizon()).map(|c| c.curves(&layout.grid));
            for z in ARMS {
                let median = curves.as_ref().and_then(|c| c.median(z, layout.quantile));
                out.push(Cell::maybe(median.map(|m| m.0)));
                out.push(Cell::maybe(median.and_then(|m| m.1)));
                out.push(Cell::maybe(median.and_then(|m| m.2[0])));
                out.push(Cell::maybe(median.and_then(|m| m.2[1])));
            }
            for estimand in Estimand::BOTH {
                let model = corrected.map(|c| c.model[estimand].treated - c.model[estimand].control);
                out.push(Cell::maybe(model));
                out.push(Cell::maybe(self.effect.and_then(|e| e.matched(estimand))));
                out.push(Cell::maybe(corrected.map(|c| c.weight[estimand])));
            }
        }
        if layout.splits {
            let spread = self.effect.and_then(|e| e.corrected).and_then(|c| c.split_sd);
            out.extend(Estimand::BOTH.map(|e| Cell::maybe(spread.map(|s| s[e]))));
        }
        out
    }
}

/// What the columns of effects rest on beyond each effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// H: intervals of mean event times lie below it.
    pub horizon: f64,
    /// Normal quantile of the intervals.
    pub quantile: f64,
    /// Whether effects were corrected: what they are made of stands beside them.
    pub corrected: bool,
    /// The times at which curves are held.
    pub grid: Grid,
    /// Whether the spread over the splits that left a patient out stands there too.
    pub splits: bool,
}

impl Layout {
    /// The names of the columns.
    pub fn columns(&self) -> Vec<&'static str> {
        let corrected: &[&str] = if self.corrected { &CORRECTED_COLUMNS } else { &[] };
        let splits: &[&str] = if self.splits { &SPLIT_COLUMNS } else { &[] };
        [&EFFECT_COLUMNS[..], &RMST_COLUMNS, corrected, splits].concat()
    }

    /// Their number.
    fn width(&self) -> usize {
        let corrected = if self.corrected { CORRECTED_COLUMNS.len() } else { 0 };
        EFFECT_COLUMNS.len() + RMST_COLUMNS.len() + corrected + if self.splits { SPLIT_COLUMNS.len() } else { 0 }
    }

    /// That of a run.
    pub fn of(cohort: &Cohort, fit: &Fit) -> Layout {
        Layout {
            horizon: cohort.horizon(),
            quantile: two_sided(fit.options.confidence),
            corrected: fit.is_corrected(),
            grid: Grid::of(cohort),
            splits: fit.deals.len() > 1,
        }
    }
}

/// Rows of effects in one of the formats that effects can be written in.
pub struct EffectTable<'a, F: Fn(usize) -> EffectRow<'a> + Sync> {
    /// Number of rows.
    pub n: usize,
    /// What its columns are.
    pub layout: Layout,
    /// Each row.
    pub row: F,
}

impl<'a, F: Fn(usize) -> EffectRow<'a> + Sync> EffectTable<'a, F> {
    /// The names of its columns.
    pub fn columns(&self) -> Vec<&'static str> {
        self.layout.columns()
    }

    /// As CSV.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        header(&self.columns()).write_to(out)?;
        write_rows(out, self.n, |row, i| (self.row)(i).cells(&self.layout).iter().for_each(|c| c.write_csv(row)))
    }

    /// As a JSON array of objects, one to a line; `null` where a value is undefined.
    pub fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"[")?;
        for i in 0..self.n {
            out.write_all(if i == 0 { b"\n" } else { b",\n" })?;
            let cells = (self.row)(i).cells(&self.layout);
            out.write_all(b"{")?;
            for (j, (name, cell)) in self.columns().iter().zip(&cells).enumerate() {
                if j > 0 {
                    out.write_all(b",")?;
                }
                write!(out, "\"{name}\":")?;
                serde_json::to_writer(&mut *out, &cell.json())?;
            }
            out.write_all(b"}")?;
        }
        out.write_all(b"\n]\n")
    }
}

/// `effects.csv`: one row for each estimated unit, in the order of ids. A unit that no group could be found for under
/// the constraints has a row with empty cells and a flag.
pub fn effect_table<'a>(
    cohort: &'a Cohort,
    analysis: &'a Analysis,
) -> EffectTable<'a, impl Fn(usize) -> EffectRow<'a> + Sync> {
    let mut order: Vec<(u32, Result<usize, usize>)> =
        analysis.units.iter().enumerate().map(|(i, &u)| (u, Ok(i))).collect();
    order.extend(analysis.unserved.iter().enumerate().map(|(i, (u, _))| (*u, Err(i))));
    order.sort_unstable_by_key(|(u, _)| *u);
    let row = move |i: usize| {
        let (unit, found) = order[i];
        let unit = unit as usize;
        EffectRow {
            id: cohort.ids().text(unit),
            treatment: cohort.label(cohort.arm(unit)),
            effect: found.ok().map(|i| &analysis.effects[i]),
            flags: found
                .err()
                .into_iter()
                .flat_map(|i| analysis.unserved[i].1.arms().map(|z| Unserved::flag(z).into()))
                .collect(),
        }
    };
    EffectTable { n: analysis.units.len() + analysis.unserved.len(), layout: Layout::of(cohort, &analysis.fit), row }
}

/// Writes [`effect_table`] as CSV.
pub fn write_effects(out: &mut impl Write, cohort: &Cohort, analysis: &Analysis) -> io::Result<()> {
    effect_table(cohort, analysis).write_csv(out)
}

/// The columns of `weights.csv`, and what they hold.
pub const WEIGHT_COLUMNS: [(&str, ColumnKind); 15] = [
    ("covariate", ColumnKind::Text),
    ("level", ColumnKind::Text),
    ("fill", ColumnKind::Text),
    ("cure_weight", ColumnKind::Number),
    ("time_weight", ColumnKind::Number),
    ("center", ColumnKind::Number),
    ("scale", ColumnKind::Number),
    ("cure_coefficient_treated", ColumnKind::Number),
    ("cure_se_treated", ColumnKind::Number),
    ("cure_coefficient_control", ColumnKind::Number),
    ("cure_se_control", ColumnKind::Number),
    ("time_coefficient_treated", ColumnKind::Number),
    ("time_se_treated", ColumnKind::Number),
    ("time_coefficient_control", ColumnKind::Number),
    ("time_se_control", ColumnKind::Number),
];

/// The rows of `weights.csv`: for each column of numbers (a numeric covariate, or a level of a category) its two
/// weights, the scaling under which the distance is taken, and the coefficients of both arms with their standard
/// errors. A row with a level stands for `value == level`, as 0 or 1, the level `(missing)` for a value that was
/// filled in with `fill`. All levels of a category carry the weight of the category.
pub fn weight_rows<'a>(
    cohort: &'a Cohort,
    analysis: &'a Analysis,
) -> impl Iterator<Item = [Cell<'a>; WEIGHT_COLUMNS.len()]> {
    let fit = &analysis.fit;
    let scaling = &fit.description.metrics.cure.scaling;
    let ByArm { control, treated } = fit.description.models.each_ref();
    let columns = cohort.schema().iter().flat_map(|c| c.columns().map(move |j| (c, j)));
    columns.map(move |(c, j)| {
        let fill = match (c.fill, &c.kind) {
            (None, _) => Cell::Nothing,
            (Some(v), Kind::Number | Kind::Missing) => Cell::Text(Row::number_text(v).into()),
            (Some(v), Kind::Indicator { zero, one }) => Cell::text_or_nothing(if v == 1.0 { one } else { zero }),
            (Some(v), Kind::Category { levels }) => Cell::text_or_nothing(&levels[v as usize]),
        };
        let coefficient = |of: &Part| Cell::Number(of.coefficients[j]);
        let se = |of: &Part| Cell::maybe(of.standard_errors.as_ref().map(|s| s[j]));
        [
            Cell::Text(c.name.as_str().into()),
            Cell::text_or_nothing(c.level(j - c.first)),
            fill,
            Cell::Number(fit.description.metrics.cure.weights[j]),
            Cell::Number(fit.description.metrics.time.weights[j]),
            Cell::Number(scaling.center[j]),
            Cell::Number(scaling.scale[j]),
            coefficient(&treated.cure),
            se(&treated.cure),
            coefficient(&control.cure),
            se(&control.cure),
            coefficient(&treated.latency),
            se(&treated.latency),
            coefficient(&control.latency),
            se(&control.latency),
        ]
    })
}

/// Writes `weights.csv`: see [`weight_rows`].
pub fn write_weights(out: &mut impl Write, cohort: &Cohort, analysis: &Analysis) -> io::Result<()> {
    header(&WEIGHT_COLUMNS.map(|(name, _)| name)).write_to(out)?;
    let mut row = Row::default();
    for cells in weight_rows(cohort, analysis) {
        cells.iter().for_each(|cell| cell.write_csv(&mut row));
        row.end();
    }
    row.write_to(out)
}

/// A simulated cohort: `id,time,event,treatment,x1,…`.
pub fn write_cohort(out: &mut impl Write, units: &Recorded<'_>) -> io::Result<()> {
    let mut names = vec!["id", "time", "event", "treatment"];
    names.extend(units.names.iter().map(String::as_str));
    header(&names).write_to(out)?;
    let p = units.names.len();
    write_rows(out, units.time.len(), |row, i| {
        let label = &units.labels[units.arm[i].index()];
        row.text(&units.ids.text(i)).number(units.time[i]).count(usize::from(units.event[i])).text(label);
        units.covariates[i * p..(i + 1) * p].iter().for_each(|v| {
            row.number(*v);
        });
    })
}

/// The truth of a simulated cohort.
pub fn write_truth(out: &mut impl Write, ids: &Ids, truth: &[Truth]) -> io::Result<()> {
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
    write_rows(out, truth.len(), |row, i| {
        let t = &truth[i];
        let ByArm { control, treated } = t.arms;
        row.text(&ids.text(i)).number(t.cure_effect()).number(t.time_effect());
        row.number(treated.cure_probability).number(control.cure_probability);
        row.number(treated.mean_event_time).number(control.mean_event_time);
    })
}

/// The values at a time of columns that are linear between the knots.
fn between<const N: usize>(times: &[f64], columns: [&[f64]; N], t: f64) -> [f64; N] {
    let cell = times.partition_point(|knot| *knot <= t).clamp(1, times.len() - 1) - 1;
    let into = ((t - times[cell]) / (times[cell + 1] - times[cell])).clamp(0.0, 1.0);
    columns.map(|c| c[cell] + into * (c[cell + 1] - c[cell]))
}

/// Standardised curves as CSV: a row for each population, arm (and the difference of the arms) and time. `at` gives the
/// times; else they are the knots.
pub fn write_curves(out: &mut impl Write, curves: &[CurvesRecord], at: Option<&[f64]>) -> io::Result<()> {
    header(&["population", "arm", "time", "survival", "se", "low", "high", "band_low", "band_high"]).write_to(out)?;
    let mut row = Row::default();
    for of in curves.iter().filter(|c| c.times.len() > 1) {
        for (arm, b) in [("treated", &of.treated), ("control", &of.control), ("difference", &of.difference)] {
            for &t in at.unwrap_or(&of.times) {
                let columns = [&b.estimate[..], &b.se, &b.low, &b.high, &b.band_low, &b.band_high];
                row.text(&of.population).text(arm).number(t);
                between(&of.times, columns, t).into_iter().for_each(|v| {
                    row.number(v);
                });
                row.end();
            }
        }
        row.write_to(out)?;
    }
    Ok(())
}

/// Curves of patients as CSV: a row for each patient, arm (and the difference of the arms) and time.
pub fn write_patient_curves<'a>(
    out: &mut impl Write,
    cohort: &Cohort,
    fit: &Fit,
    patients: impl Iterator<Item = (usize, Curves<'a>)>,
    at: Option<&[f64]>,
) -> io::Result<()> {
    header(&["id", "arm", "time", "survival", "se", "low", "high"]).write_to(out)?;
    let (grid, quantile) = (Grid::of(cohort), two_sided(fit.options.confidence));
    let mut row = Row::default();
    for (unit, curves) in patients {
        let id = cohort.ids().text(unit);
        for arm in [Some(Arm::Treated), Some(Arm::Control), None] {
            for &t in at.unwrap_or(grid.times()) {
                let (value, interval) = match arm {
                    Some(arm) => curves.survival(arm, t, quantile),
                    None => curves.survival_difference(t, quantile),
                };
                row.text(&id).text(arm.map_or("difference", Arm::name)).number(t).number(value);
                // Everybody is event-free at 0.
                let se = if t == 0.0 { Some(0.0) } else { interval.se };
                row.number(se.unwrap_or(f64::NAN)).number(interval.low).number(interval.high).end();
            }
        }
        row.write_to(out)?;
    }
    Ok(())
}

/// Who is in the groups of these units: one row for each member, with what it counts.
pub fn write_members<'a>(
    out: &mut impl Write,
    cohort: &Cohort,
    units: impl Iterator<Item = (Cow<'a, str>, UnitGroups)>,
) -> io::Result<()> {
    header(&["id", "matched_for", "arm", "rank", "member", "distance", "time", "event", "counts"]).write_to(out)?;
    let mut row = Row::default();
    for (id, groups) in units {
        for (estimand, pair) in [("cure", &groups.cure), ("time", &groups.time)] {
            for z in [Arm::Treated, Arm::Control] {
                let group = &pair[z];
                for (m, &i) in group.units.iter().enumerate() {
                    let i = i as usize;
                    row.text(&id)
                        .text(estimand)
                        .text(z.name())
                        .count(m + 1)
                        .text(&cohort.ids().text(i))
                        .number(group.distance[m]);
                    row.number(cohort.time(i)).count(usize::from(cohort.event(i))).number(group.counts[m]).end();
                }
            }
        }
        row.write_to(out)?;
    }
    Ok(())
}
