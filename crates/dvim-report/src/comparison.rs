//! Every method on one cohort: tables and a page.

use crate::plot::page::{Table, figure, heading, page, paragraph};
use crate::plot::{About, Axis, CorrelationMatrix, Format, ViolinGroup, Violins};
use crate::tables::{Row, header, write_rows};
use crate::text::{Grid, grouped, short};
use dvim::internal::analysis::{Average, average};
use dvim::internal::cohort::{Arm, Cohort};
use dvim::internal::compare::method::{Averaged, Learned, Method, MethodEffects, correlation, quantile};
use dvim::internal::estimand::ByEstimand;
use dvim::internal::simulate::is_synthetic;
use std::io::{self, Write};

/// Name, label and average effects.
pub type NamedAverages = (&'static str, &'static str, ByEstimand<Averaged>);

/// What every method made of a cohort.
pub struct Comparison<'a> {
    /// The cohort.
    pub cohort: &'a Cohort,
    /// What the methods learned.
    pub learned: &'a Learned,
    /// Positions of the estimated units.
    pub units: &'a [u32],
    /// K.
    pub group_size: usize,
    /// The effects by each method.
    pub effects: &'a [(Method, MethodEffects)],
    /// Where the cohort comes from: a file name.
    pub source: &'a str,
    /// Averages over everybody, with intervals, of what is no method of matching: name, label, effects.
    pub averages: &'a [NamedAverages],
}

/// The effects of one method in a few numbers.
pub struct MethodSummary {
    /// The method.
    pub method: Method,
    /// Average cure effect.
    pub cure: Average,
    /// Quartiles of the cure effect.
    pub cure_quartiles: Option<[f64; 3]>,
    /// Average time effect.
    pub time: Average,
    /// Quartiles of the time effect.
    pub time_quartiles: Option<[f64; 3]>,
}

/// Said of every cohort whose patients are synthetic, on every page.
pub const SYNTHETIC_NOTE: &str = "These patients are synthetic. They were drawn by `dvim simulate --scenario transplant` to have the published margins of a transplant cohort that is not public; no patient exists, and nothing here is evidence about any treatment.";

impl Comparison<'_> {
    /// The columns of `effects.csv`: one row for each unit and method.
    pub const EFFECT_COLUMNS: [&'static str; 5] = ["id", "treatment", "method", "cure_effect", "time_effect"];

    /// `effects.csv`.
    pub fn write_effects(&self, out: &mut impl Write) -> io::Result<()> {
        header(&Self::EFFECT_COLUMNS).write_to(out)?;
        for (method, effects) in self.effects {
            write_rows(out, self.units.len(), |row, q| {
                let i = self.units[q] as usize;
                row.text(&self.cohort.ids().text(i)).text(self.cohort.label(self.cohort.arm(i))).text(method.name());
                row.number(effects.cure[q]).maybe(effects.time[q]);
            })?;
        }
        Ok(())
    }

    /// The summary of each method.
    pub fn summaries(&self) -> Vec<MethodSummary> {
        let quartiles = |values: Vec<f64>| {
            let at = |p| quantile(&values, p);
            Some([at(0.25)?, at(0.5)?, at(0.75)?])
        };
        let of = |(method, effects): &(Method, MethodEffects)| MethodSummary {
            method: *method,
            cure: average(effects.cure.iter().map(|c| Some(*c))),
            cure_quartiles: quartiles(effects.cure.clone()),
            time: average(effects.time.iter().copied()),
            time_quartiles: quartiles(effects.time.iter().copied().flatten().collect()),
        };
        self.effects.iter().map(of).collect()
    }

    /// `summary.csv`.
    pub fn write_summary(&self, out: &mut impl Write) -> io::Result<()> {
        header(&[
            "method",
            "n_units",
            "cure_mean",
            "cure_sd",
            "cure_q1",
            "cure_median",
            "cure_q3",
            "time_mean",
            "time_sd",
            "time_q1",
            "time_median",
            "time_q3",
            "time_undefined",
        ])
        .write_to(out)?;
        let mut row = Row::default();
        for s in self.summaries() {
            row.text(s.method.name()).count(self.units.len());
            for (average, quartiles) in [(s.cure, s.cure_quartiles), (s.time, s.time_quartiles)] {
                row.maybe(average.mean).maybe(average.sd);
                (0..3).for_each(|i| {
                    row.maybe(quartiles.map(|q| q[i]));
                });
            }
            row.count(s.time.n_undefined).end();
        }
        row.write_to(out)
    }

    /// `averages.csv`: average effects with intervals, of the arms as they are and of the adjusted estimator.
    pub fn write_averages(&self, out: &mut impl Write) -> io::Result<()> {
        header(&["method", "cure_effect", "cure_low", "cure_high", "time_effect", "time_low", "time_high"])
            .write_to(out)?;
        let mut row = Row::default();
        for (name, _, of) in self.averages {
            row.text(name);
            for a in [of.cure, of.time] {
                row.maybe(a.estimate).maybe(a.low).maybe(a.high);
            }
            row.end();
        }
        row.write_to(out)
    }

    fn average_rows(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let columns = ["Average over everybody", "cure", "interval", "time", "interval"].map(String::from).to_vec();
        let cells = |a: &Averaged, format: Format| {
            let value = a.estimate.map_or("–".to_string(), |v| format.value(v));
            [value, a.low.zip(a.high).map_or("–".to_string(), |(l, h)| format.interval(l, h))]
        };
        let row = |(_, label, of): &NamedAverages| {
            let cure = cells(&of.cure, Format::Points);
            let time = cells(&of.time, Format::Signed);
            [label.to_string()].into_iter().chain(cure).chain(time).collect()
        };
        (columns, self.averages.iter().map(row).collect())
    }

    /// Correlations between methods over units: of the cure effects, or of the time effects.
    pub fn correlations(&self, of_time: bool) -> Vec<Vec<Option<f64>>> {
        let values: Vec<Vec<Option<f64>>> = self
            .effects
            .iter()
            .map(|(_, e)| if of_time { e.time.clone() } else { e.cure.iter().copied().map(Some).collect() })
            .collect();
        values.iter().map(|a| values.iter().map(|b| correlation(a, b)).collect()).collect()
    }

    /// `correlations.csv`: one row for each pair of methods and effect; empty where undefined.
    pub fn write_correlations(&self, out: &mut impl Write) -> io::Result<()> {
        header(&["effect", "method", "other", "correlation"]).write_to(out)?;
        let mut row = Row::default();
        for (effect, of_time) in [("cure", false), ("time", true)] {
            let matrix = self.correlations(of_time);
            for (i, (a, _)) in self.effects.iter().enumerate() {
                for (j, (b, _)) in self.effects.iter().enumerate() {
                    row.text(effect).text(a.name()).text(b.name()).maybe(matrix[i][j]).end();
                }
            }
        }
        row.write_to(out)
    }

    /// Violins of one effect by method.
    pub fn violins(&self, of_time: bool) -> String {
        let groups = self.effects.iter().map(|(method, e)| ViolinGroup {
            label: method.label().into(),
            values: if of_time { e.time.iter().copied().flatten().collect() } else { e.cure.clone() },
            emphasis: *method == Method::McmKnn,
        });
        let (what, axis) = match of_time {
            false => ("cure", Axis::new("Cure effect (percentage points)").format(Format::Points)),
            true => ("time", Axis::new("Time effect (in the unit of time)").format(Format::Signed)),
        };
        let mut about = About::new(format!("Estimated {what} effects by method")).describe(format!(
            "For each method the distribution over patients of the estimated {what} effect, with median and quartiles."
        ));
        if is_synthetic(self.cohort) {
            about = about.note("Synthetic patients.");
        }
        Violins { about, groups: groups.collect(), axis, reference: Some(0.0) }.svg()
    }

    /// The matrix of correlations of one effect.
    pub fn correlation_figure(&self, of_time: bool) -> String {
        let what = if of_time { "time" } else { "cure" };
        let mut about = About::new(format!("Correlation of the estimated {what} effects between methods"));
        if is_synthetic(self.cohort) {
            about = about.note("Synthetic patients.");
        }
        let values = self.correlations(of_time);
        CorrelationMatrix {
            about,
            labels: self.effects.iter().map(|(m, _)| m.label().into()).collect(),
            values: values.iter().map(|r| r.iter().map(|v| v.unwrap_or(f64::NAN)).collect()).collect(),
        }
        .svg()
    }

    fn summary_rows(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let columns =
            ["Method", "cure", "middle half", "time", "middle half", "no time effect"].map(String::from).to_vec();
        let value = |v: Option<f64>, format: Format| v.map_or("–".to_string(), |v| format.value(v));
        let range = |q: Option<[f64; 3]>, format: Format| q.map_or("–".to_string(), |q| format.interval(q[0], q[2]));
        let rows = self.summaries().into_iter().map(|s| {
            vec![
                s.method.label().into(),
                value(s.cure.mean, Format::Points),
                range(s.cure_quartiles, Format::Points),
                value(s.time.mean, Format::Signed),
                range(s.time_quartiles, Format::Signed),
                s.time.n_undefined.to_string(),
            ]
        });
        (columns, rows.collect())
    }

    /// What a reader should know of the fits behind the numbers.
    pub fn remarks(&self) -> Vec<String> {
        let mut out = Vec::new();
        let learned = self.learned;
        for arm in Arm::BOTH {
            let certificate = &learned.fit.description.models[arm].certificate;
            if !certificate.converged || certificate.penalty.is_some() {
                out.push(format!("The cure model of the {} arm is not a plain maximum of its likelihood: MCM KNN and the cure model alone rest on a penalised or unfinished fit.", arm.name()));
            }
            if !learned.cox[arm].certificate.converged {
                out.push(format!(
                    "The Cox model of the {} arm did not converge: Cox and prognostic score rest on a penalised fit.",
                    arm.name()
                ));
            }
        }
        if !learned.propensity.certificate.converged {
            out.push("The propensity model did not converge: the arms can be told apart by covariates, so that some patients have nobody to be compared with.".into());
        }
        let names: Vec<&str> = learned.selection.selected.iter().map(|&j| self.cohort.names()[j].as_str()).collect();
        out.push(if names.is_empty() {
            "Feature selection found no covariate (p < .05 in either arm's Cox model) and matches on all of them, like Euclidean KNN.".into()
        } else {
            format!("Feature selection matches on {} (p < .05 in either arm's Cox model).", names.join(", "))
        });
        out.push("Optimal full matching gives one effect to everybody: the difference of two weighted curves. Its violin is a dot, and its correlation with other methods is undefined.".into());
        out.push("The cure model alone and Cox have no group behind an estimate: nobody can be shown who was compared with whom.".into());
        out
    }

    fn confidence(&self) -> f64 {
        (1e6 * self.learned.fit.options.confidence).round() / 1e4
    }

    fn about(&self) -> String {
        let options = &self.learned.fit.options;
        format!(
            "{}: {} patients, of whom {} were estimated; horizon {}, K = {}, train fraction {}, covariates scaled: {}, seed {}.",
            self.source,
            grouped(self.cohort.n_units()),
            grouped(self.units.len()),
            short(self.cohort.horizon()),
            self.group_size,
            options.train_fraction,
            options.scale.name(),
            options.seed
        )
    }

    /// What the command prints.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n", self.about());
        if is_synthetic(self.cohort) {
            out += &format!("\n{SYNTHETIC_NOTE}\n");
        }
        let (columns, rows) = self.summary_rows();
        let heads: Vec<&str> = columns.iter().map(String::as_str).collect();
        let mut grid = Grid::new(1, &heads);
        rows.into_iter().for_each(|r| grid.row(r));
        out += &format!("\nEstimated effects (cure in percentage points; time in the unit of time)\n{}", grid.render());
        let (columns, rows) = self.average_rows();
        let heads: Vec<&str> = columns.iter().map(String::as_str).collect();
        let mut grid = Grid::new(1, &heads);
        rows.into_iter().for_each(|r| grid.row(r));
        out += &format!("\nAverages with {} % intervals\n{}", self.confidence(), grid.render());
        for remark in self.remarks() {
            out += &format!("\n{remark}\n");
        }
        out
    }

    /// The page.
    pub fn page(&self) -> String {
        let title = if is_synthetic(self.cohort) {
            "Every method on one synthetic cohort"
        } else {
            "Every method on one cohort"
        };
        let mut body = String::from("<style>tbody th{white-space:nowrap}</style>\n");
        body += &heading(1, title);
        if is_synthetic(self.cohort) {
            body += &paragraph(SYNTHETIC_NOTE);
        }
        body += &paragraph(&self.about());
        body += &paragraph(
            "All methods see the same split: what is fitted is fitted on the training patients, and every estimate is for a patient whose outcome trained nothing. A positive cure effect means that treatment cures more; a positive time effect that it delays events. Without known truth no method can be called right here: agreement is not accuracy.",
        );
        let (columns, rows) = self.summary_rows();
        body += &Table {
            name: "Table 1.".into(),
            caption: "Estimated effects by method: mean over patients, and from which to which quartile the middle half of them lies. Cure in percentage points, time in the unit of time.".into(),
            columns,
            rows,
            words: Vec::new(),
        }
        .html();
        let (columns, rows) = self.average_rows();
        body += &Table {
            name: "Table 2.".into(),
            caption: format!("Average effects over all patients with {} % intervals. Crude: the difference of the two arms' own curves, whoever is in them. Adjusted: the adjusted estimator, which trains and estimates everybody.", self.confidence()),
            columns,
            rows,
            words: Vec::new(),
        }
        .html();
        let mut n = 0;
        for (of_time, what) in [(false, "cure"), (true, "time")] {
            body += &heading(2, if of_time { "Effects on event time" } else { "Effects on cure" });
            n += 1;
            let caption = format!(
                "Distribution over patients of the estimated {what} effect by method; dot and bar mark the median and the quartiles. Heights are not comparable between rows."
            );
            body += &figure(&self.violins(of_time), &format!("Figure {n}."), &caption);
            n += 1;
            let caption = format!("Pearson correlation over patients of the estimated {what} effects.");
            body += &figure(&self.correlation_figure(of_time), &format!("Figure {n}."), &caption);
        }
        body += &heading(2, "What to keep in mind");
        self.remarks().iter().for_each(|r| body += &paragraph(r));
        page(title, &body)
    }
}
