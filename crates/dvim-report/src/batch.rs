//! Several runs in one directory: imputed data sets that were pooled, or arms against one control.

use crate::record::VERSION;
use crate::tables::{Row, header, write_rows};
use crate::text::{Grid, grouped, signed};
use dvim::internal::cohort::Cohort;
use dvim::internal::contrasts::Contrast;
use dvim::internal::imputation::{Pooled, PooledRun, VALUES};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The schema of the `summary.json` of several runs.
pub const BATCH_SCHEMA: &str = "dvim.several/1";

/// The `summary.json` of several runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchRecord {
    /// [`BATCH_SCHEMA`].
    pub schema: String,
    /// The version of dvim that wrote it.
    pub version: String,
    /// `imputations` or `arms`.
    pub kind: String,
    /// The runs: what each is called, and its directory.
    pub runs: Vec<MemberRecord>,
    /// Confidence level of the intervals.
    pub confidence: f64,
    /// Pooled average effects; empty for arms.
    #[serde(default)]
    pub averages: Vec<PooledRecord>,
    /// Each arm against the control; empty for imputations.
    #[serde(default)]
    pub contrasts: Vec<ContrastRecord>,
    /// SHA-256 of the other files beside it.
    pub files: BTreeMap<String, String>,
}

/// One run of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberRecord {
    /// A value of the imputation column, a file, or an arm.
    pub name: String,
    /// Its directory.
    pub folder: String,
}

/// A pooled average effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PooledRecord {
    /// As in the summary of a run.
    pub estimand: String,
    /// As in the summary of a run.
    pub population: String,
    /// The mean over the imputed data sets.
    pub estimate: Option<f64>,
    /// Rubin's standard error.
    pub se: Option<f64>,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Degrees of freedom of Barnard and Rubin.
    pub df: Option<f64>,
    /// Fraction of missing information.
    pub missing_information: Option<f64>,
    /// Fewest units that it rests on in one data set.
    pub n_units: usize,
}

/// One arm against the control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContrastRecord {
    /// `cure_effect`, `time_effect`, or either `_corrected`.
    pub estimand: String,
    /// The arm.
    pub arm: String,
    /// The estimate.
    pub estimate: Option<f64>,
    /// Its standard error.
    pub se: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// Lower end of the interval that holds for all arms at once (Bonferroni).
    pub low_simultaneous: Option<f64>,
    /// Upper end of it.
    pub high_simultaneous: Option<f64>,
    /// Two-sided p of no effect.
    pub p: Option<f64>,
    /// The same after Holm.
    pub p_holm: Option<f64>,
    /// Units that it rests on.
    pub n_units: usize,
}

impl BatchRecord {
    /// Of imputed data sets.
    pub fn of_imputations(runs: Vec<MemberRecord>, pooled: &PooledRun, confidence: f64) -> BatchRecord {
        let averages = pooled.averages.iter().map(|a| PooledRecord {
            estimand: a.estimand.into(),
            population: a.population.clone(),
            estimate: a.value.map(|v| v.estimate),
            se: a.value.and_then(|v| v.se),
            low: a.value.and_then(|v| v.low),
            high: a.value.and_then(|v| v.high),
            df: a.value.and_then(|v| v.df),
            missing_information: a.value.and_then(|v| v.missing_information),
            n_units: a.n_units,
        });
        BatchRecord { averages: averages.collect(), ..BatchRecord::new("imputations", runs, confidence) }
    }

    /// Of arms against one control.
    pub fn of_arms(runs: Vec<MemberRecord>, contrasts: &[Contrast], confidence: f64) -> BatchRecord {
        let contrasts = contrasts.iter().map(|c| ContrastRecord {
            estimand: c.estimand.into(),
            arm: c.arm.clone(),
            estimate: c.estimate,
            se: c.se,
            low: c.interval.map(|i| i[0]),
            high: c.interval.map(|i| i[1]),
            low_simultaneous: c.simultaneous.map(|i| i[0]),
            high_simultaneous: c.simultaneous.map(|i| i[1]),
            p: c.p,
            p_holm: c.p_holm,
            n_units: c.n_units,
        });
        BatchRecord { contrasts: contrasts.collect(), ..BatchRecord::new("arms", runs, confidence) }
    }

    fn new(kind: &str, runs: Vec<MemberRecord>, confidence: f64) -> BatchRecord {
        BatchRecord {
            schema: BATCH_SCHEMA.into(),
            version: VERSION.into(),
            kind: kind.into(),
            runs,
            confidence,
            averages: Vec::new(),
            contrasts: Vec::new(),
            files: BTreeMap::new(),
        }
    }

    /// Whether it is of arms, not of imputed data sets.
    pub fn is_of_arms(&self) -> bool {
        self.kind == "arms"
    }

    /// `averages.csv`: the pooled average effects.
    pub fn write_averages(&self, out: &mut impl Write) -> io::Result<()> {
        let names = ["estimand", "population", "estimate", "se", "low", "high", "df", "missing_information", "n_units"];
        header(&names).write_to(out)?;
        let mut row = Row::default();
        for a in &self.averages {
            row.text(&a.estimand).text(&a.population).maybe(a.estimate).maybe(a.se).maybe(a.low).maybe(a.high);
            row.maybe(a.df).maybe(a.missing_information).count(a.n_units).end();
        }
        row.write_to(out)
    }

    /// `arms.csv`: each arm against the control.
    pub fn write_contrasts(&self, out: &mut impl Write) -> io::Result<()> {
        let names = [
            "estimand",
            "arm",
            "estimate",
            "se",
            "low",
            "high",
            "low_simultaneous",
            "high_simultaneous",
            "p",
            "p_holm",
            "n_units",
        ];
        header(&names).write_to(out)?;
        let mut row = Row::default();
        for c in &self.contrasts {
            row.text(&c.estimand).text(&c.arm).maybe(c.estimate).maybe(c.se).maybe(c.low).maybe(c.high);
            row.maybe(c.low_simultaneous).maybe(c.high_simultaneous).maybe(c.p).maybe(c.p_holm).count(c.n_units).end();
        }
        row.write_to(out)
    }

    /// What `fit` says at its end.
    pub fn text(&self) -> String {
        let Shown { heading, header, rows } = self.shown();
        let mut grid = Grid::new(2, &header.iter().map(String::as_str).collect::<Vec<_>>());
        rows.into_iter().for_each(|row| grid.row(row));
        format!("{heading}\n\n{}", grid.render())
    }

    /// What is shown of it, in a terminal and in a notebook.
    pub(crate) fn shown(&self) -> Shown {
        let level = 100.0 * self.confidence;
        let points = |estimand: &str| if estimand.starts_with("cure") { 100.0 } else { 1.0 };
        let name = |estimand: &str| match estimand {
            "cure_effect" => "cure effect, points".to_string(),
            other => other.replace('_', " ").replace("cure effect", "cure effect, points,"),
        };
        let range = |low: Option<f64>, high: Option<f64>, by: f64| {
            low.zip(high).map_or("undefined".into(), |(l, h)| format!("{} to {}", signed(by * l), signed(by * h)))
        };
        let value = |v: Option<f64>, by: f64| v.map_or("undefined".into(), |v| signed(by * v));
        let words = |list: &[&str]| list.iter().map(|w| w.to_string()).collect::<Vec<_>>();
        let interval = format!("{level} % interval");
        if self.is_of_arms() {
            let row = |c: &ContrastRecord| {
                let by = points(&c.estimand);
                let p = |p: Option<f64>| p.map_or(String::new(), |p| format!("{p:.4}"));
                vec![
                    crate::text::clip(&c.arm, 24),
                    name(&c.estimand),
                    value(c.estimate, by),
                    range(c.low, c.high, by),
                    range(c.low_simultaneous, c.high_simultaneous, by),
                    p(c.p),
                    p(c.p_holm),
                ]
            };
            let at_once = format!("{level} % for all at once");
            return Shown {
                heading: format!(
                    "{} arms against one control. Each is compared among the patients of its own arm and of the control, so the arms' averages are over different patients.",
                    grouped(self.runs.len())
                ),
                header: words(&["arm", "", "estimate", &interval, &at_once, "p", "p, Holm"]),
                rows: self.contrasts.iter().map(row).collect(),
            };
        }
        let row = |a: &PooledRecord| {
            let by = points(&a.estimand);
            vec![
                a.population.clone(),
                name(&a.estimand),
                value(a.estimate, by),
                range(a.low, a.high, by),
                a.se.map_or("undefined".into(), |s| crate::text::short(by * s)),
                a.missing_information.map_or(String::new(), |f| format!("{:.0} %", 100.0 * f)),
            ]
        };
        let is_shown = |a: &&PooledRecord| a.estimand.ends_with("_effect") || a.estimand.ends_with("_corrected");
        Shown {
            heading: format!("{} imputed data sets, pooled by Rubin's rules.", self.runs.len()),
            header: words(&["mean over", "", "estimate", &interval, "standard error", "missing information"]),
            rows: self.averages.iter().filter(is_shown).map(row).collect(),
        }
    }
}

/// A sentence and a table.
pub(crate) struct Shown {
    pub(crate) heading: String,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// `effects.csv` of imputed data sets: one row for each patient who is estimated in some of them. A value is there
/// where every data set defines it; flags are those of any data set, with the number of data sets.
pub fn write_pooled_effects(out: &mut impl Write, cohort: &Cohort, pooled: &PooledRun) -> io::Result<()> {
    let mut names: Vec<String> = vec!["id".into(), "treatment".into()];
    names.extend(VALUES.map(String::from));
    names.push("flags".into());
    names.extend(VALUES.iter().flat_map(|v| ["se", "low", "high"].map(|part| format!("{v}_{part}"))));
    names.extend(VALUES[..2].iter().flat_map(|v| ["df", "missing_information"].map(|part| format!("{v}_{part}"))));
    names.push("n_imputations".into());
    header(&names.iter().map(String::as_str).collect::<Vec<_>>()).write_to(out)?;
    write_rows(out, pooled.units.len(), |row, i| {
        let u = &pooled.units[i];
        let unit = u.unit as usize;
        row.text(&cohort.ids().text(unit)).text(cohort.label(cohort.arm(unit)));
        u.values.iter().for_each(|v| {
            row.maybe(v.map(|v| v.estimate));
        });
        let mut flags: Vec<String> = u.flags.iter().map(|(f, n)| format!("{f}:{n}")).collect();
        if u.n_served < pooled.n_imputations {
            flags.push(format!("not_served:{}", pooled.n_imputations - u.n_served));
        }
        row.text(&flags.join(";"));
        let of = |v: &Option<Pooled>, f: fn(&Pooled) -> Option<f64>| v.as_ref().and_then(f);
        for v in &u.values {
            row.maybe(of(v, |v| v.se)).maybe(of(v, |v| v.low)).maybe(of(v, |v| v.high));
        }
        for v in &u.values[..2] {
            row.maybe(of(v, |v| v.df)).maybe(of(v, |v| v.missing_information));
        }
        row.count(u.n_served);
    })
}
