//! The study as one page, and its figures.

use crate::consistency::{self, FIXED, GROWING};
use crate::dataset::{Estimated, GROUP_SIZES};
use crate::decomposition::{self, Decomposition};
use crate::paper::Table;
use crate::record::{Cell, Experiment, Job, Settings};
use crate::table::{self, AGREEMENT, ESTIMANDS, Entry, Records, Spread, agreement_row, agreements, values, write_to};
use crate::weights::{self, BoundTrial, MOVED, POWERS};
use dvim::internal::compare::method::Method;
use dvim::internal::simulate::Scenario;
use dvim_report::plot::page::{Table as PageTable, figure, heading, page, paragraph};
use dvim_report::plot::{
    About, Axis, BoxGroup, BoxPlots, BoxSummary, CurveStep, Estimate, Format, LineChart, LinePoint, RatioChart,
    RatioRow, Series, SurvivalArm, SurvivalCurves,
};
use dvim_report::tables::header;
use dvim_report::text::Grid;

/// A figure: its file name, the drawing, its caption.
pub struct Figure {
    /// Name of the file, without ending.
    pub name: &'static str,
    /// The drawing.
    pub svg: String,
    /// What it shows.
    pub caption: String,
}

/// The paper's Figure 1: treatment raises the cure probability and shortens the mean event time. The curves are those
/// of two mixture cure models, `S(t) = p + (1 − p)·G(t)`, G a Weibull survival function truncated at H; nothing is
/// estimated.
pub fn concept() -> Figure {
    const H: f64 = 3_650.0;
    let arm = |label: &str, cured: f64, scale: f64| {
        let shape = 1.3;
        let tail = |t: f64| (-(t / scale).powf(shape)).exp();
        let uncured = |t: f64| (tail(t) - tail(H)) / (1.0 - tail(H));
        let n = 400;
        let at = |i: usize| H * i as f64 / n as f64;
        // ∫ G is the mean event time of the uncured; Simpson's rule.
        let weight = |i: usize| {
            if i == 0 || i == n {
                1.0
            } else if i % 2 == 1 {
                4.0
            } else {
                2.0
            }
        };
        let mean = (0..=n).map(|i| weight(i) * uncured(at(i))).sum::<f64>() * H / n as f64 / 3.0;
        let step = |i| CurveStep { time: at(i), survival: cured + (1.0 - cured) * uncured(at(i)), interval: None };
        SurvivalArm {
            label: label.into(),
            steps: (1..=n).map(step).collect(),
            mean_event_time: Some(Estimate::point(mean)),
            ..SurvivalArm::default()
        }
    };
    let curves = SurvivalCurves {
        about: About::new("Treatment cures more, and hastens the events that it does not prevent")
            .describe("Two hypothetical survival curves. The treated curve falls faster at first and ends on a higher plateau.")
            .note("Hypothetical curves: nothing here is estimated from data.")
            .height(230.0),
        arms: vec![arm("Treated", 0.62, 600.0), arm("Control", 0.42, 1_700.0)],
        horizon: Some(H),
        axis: Axis::new("Time (days)"),
        unit: "days".into(),
        ..SurvivalCurves::default()
    };
    Figure {
        name: "concept",
        svg: curves.svg(),
        caption: "Hypothetical curves in which treatment raises the cure probability and yet shortens the mean event time of those it does not cure (the paper's Figure 1).".into(),
    }
}

/// The job whose data set the paper's Figure 2 is drawn from: one data set, effects in both parts on disjoint
/// covariates.
pub fn box_job(settings: &Settings) -> Job {
    Job::new(Experiment::Base, Scenario::BothIndependent, settings.n_units, 0)
}

/// The paper's Figure 2: absolute error of the cure effect of each unit of one data set, by method.
pub fn boxes(found: &Estimated) -> Figure {
    let groups =
        found.effects.iter().filter(|(m, _)| !matches!(m, Method::UncensoredOracle | Method::FullMatchingSubclass));
    let groups = groups.map(|(method, effects)| BoxGroup {
        label: method.label().into(),
        summary: BoxSummary::Samples(found.cure_errors(&effects[0]).map(|e| 100.0 * e.abs()).collect()),
        emphasis: *method == Method::McmKnn,
    });
    let plot = BoxPlots {
        about: About::new("Absolute error of the cure effect by method").describe(
            "Box plots of the absolute error of the cure effect of each unit of one simulated data set, one row for each method.",
        ),
        groups: groups.collect(),
        axis: Axis { limits: Some((0.0, 60.0)), ..Axis::new("Absolute error of the cure effect (percentage points)") },
        reference: None,
    };
    Figure {
        name: "boxes",
        svg: plot.svg(),
        caption: format!(
            "Absolute error of each unit's cure effect in one data set of the scenario “both, independent”, K = {} (the paper's Figure 2).",
            GROUP_SIZES[0]
        ),
    }
}

/// Ours over the paper's by method, mean over all cells of all tables shown, with the range over cells.
pub fn ratio_figure(tables: &[(Table, Vec<Entry>)]) -> Option<Figure> {
    let mut rows = Vec::new();
    for method in Method::ALL {
        let entries = tables.iter().flat_map(|(_, e)| e).filter(|e| e.method == method);
        let ratios: Vec<f64> = entries.flat_map(Entry::ratios).flatten().collect();
        if let Some(s) = Spread::of(&ratios) {
            let (low, high) = ratios.iter().fold((f64::MAX, f64::MIN), |(l, h), r| (l.min(*r), h.max(*r)));
            rows.push(RatioRow {
                label: method.label().into(),
                ratio: Estimate::new(s.mean, low, high),
                remark: String::new(),
                emphasis: method == Method::McmKnn,
            });
        }
    }
    let chart = RatioChart {
        about: About::new("Our error over the paper's, by method")
            .describe("For each method the mean ratio of our mean absolute error to the paper's, with the range over scenarios, effects and tables."),
        rows,
        axis: Axis::new("Our mean absolute error over the paper's").format(Format::Times),
    };
    (!chart.rows.is_empty()).then(|| Figure {
        name: "ratios",
        svg: chart.svg(),
        caption: "Our error over the paper's: mean over scenarios, effects and tables, and the range of cells.".into(),
    })
}

type Read = fn(&Cell) -> Option<f64>;
const READ: [(&str, Read); 2] = [("cure", |c| Some(100.0 * c.cure_mae)), ("time", |c| c.time_mae)];

/// One line of the consistency figure.
pub struct ConsistencyLine {
    /// The scenario.
    pub scenario: Scenario,
    /// Whether K grows with n, or stays at 50.
    pub grows: bool,
    /// "cure" or "time".
    pub estimand: &'static str,
    /// n, K, error.
    pub points: Vec<(usize, usize, Spread)>,
}

impl ConsistencyLine {
    /// Slope of log error on log n by least squares; `None` with fewer than two points.
    pub fn slope(&self) -> Option<f64> {
        let points: Vec<(f64, f64)> = self.points.iter().map(|(n, _, s)| ((*n as f64).ln(), s.mean.ln())).collect();
        let n = points.len() as f64;
        let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
        let sxx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
        let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
        (sxx > 0.0).then(|| sxy / sxx)
    }
}

/// The lines of the consistency experiment that there are records for.
pub fn consistency_lines(records: &Records, reps: usize) -> Vec<ConsistencyLine> {
    let all = consistency::jobs(reps);
    let mut out = Vec::new();
    for (estimand, read) in READ {
        for grows in [true, false] {
            for scenario in Scenario::PAPER {
                let mut points = Vec::new();
                for n in consistency::SIZES {
                    let jobs: Vec<Job> =
                        all.iter().filter(|j| j.scenario() == scenario && j.n_units == n).copied().collect();
                    let k = if grows { consistency::group_size(n) } else { GROUP_SIZES[0] };
                    let name = if grows { GROWING } else { FIXED };
                    points.extend(Spread::of(&values(records, &jobs, name, k, read)).map(|s| (n, k, s)));
                }
                if !points.is_empty() {
                    out.push(ConsistencyLine { scenario, grows, estimand, points });
                }
            }
        }
    }
    out
}

/// `consistency.csv`.
pub fn consistency_csv(lines: &[ConsistencyLine]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut row = header(&["estimand", "scenario", "group_size_grows", "n", "group_size", "reps", "mae", "sd"]);
    for line in lines {
        for (n, k, s) in &line.points {
            row.text(line.estimand).text(line.scenario.name()).text(if line.grows { "yes" } else { "no" });
            row.count(*n).count(*k).count(s.n).number(s.mean).maybe(s.sd).end();
        }
    }
    write_to(&mut row, &mut out);
    out
}

/// The consistency figures: one for each effect.
pub fn consistency_figures(lines: &[ConsistencyLine]) -> Vec<Figure> {
    let mut out = Vec::new();
    for (estimand, name, title) in [
        ("cure", "consistency-cure", "Mean absolute error of the cure effect (points, log scale)"),
        ("time", "consistency-time", "Mean absolute error of the time effect (log scale)"),
    ] {
        let shown = lines.iter().filter(|l| l.estimand == estimand && (l.grows || l.scenario == Scenario::BothOverlap));
        let series = shown.map(|l| Series {
            label: if l.grows { l.scenario.label().to_string() } else { format!("{}, K = 50", l.scenario.label()) },
            points: l.points.iter().map(|(n, _, s)| LinePoint { x: *n as f64, y: Estimate::point(s.mean) }).collect(),
            band: false,
        });
        let series: Vec<Series> = series.collect();
        if series.is_empty() {
            continue;
        }
        let ticks = consistency::SIZES.map(|n| n as f64).to_vec();
        let chart = LineChart {
            about: About::new(format!("Error of the {estimand} effect as the cohort grows"))
                .describe("On log axes the errors of all scenarios fall as n and K grow; with K fixed the fall stops."),
            series,
            x: Axis { ticks: Some(ticks), ..Axis::new("Units in the cohort, n (log scale)").log() },
            y: Axis::new(title).log(),
            ..LineChart::default()
        };
        out.push(Figure {
            name,
            svg: chart.svg(),
            caption: format!(
                "Theorem 1: mean absolute error of the {estimand} effect, K = 50 at n = 20,000 and growing as n to the power 2/3. For contrast one scenario with K = 50 throughout, whose noise cannot fall."
            ),
        });
    }
    out
}

/// What the consistency experiment found, for a terminal.
pub fn consistency_text(lines: &[ConsistencyLine]) -> String {
    let mut grid = Grid::new(2, &["effect", "scenario", "K", "smallest n", "largest n", "slope of log error on log n"]);
    for l in lines {
        let end = |p: Option<&(usize, usize, Spread)>| {
            p.map_or("–".into(), |(n, k, s)| format!("{:.2} (n {n}, K {k})", s.mean))
        };
        let slope = l.slope().map_or("–".into(), |v| format!("{v:.3}"));
        let k = if l.grows { "grows" } else { "50" };
        grid.row([
            l.estimand.to_string(),
            l.scenario.label().into(),
            k.into(),
            end(l.points.first()),
            end(l.points.last()),
            slope,
        ]);
    }
    format!("Theorem 1: mean absolute error as n and K grow (cure × 100)\n{}\n", grid.render())
}

/// What the weights experiment found, for a terminal.
pub fn weights_text(bounds: &[BoundTrial], rows: &[WeightsRow]) -> String {
    let (tried, smaller) = bounds.iter().fold((0, 0), |(a, b), t| (a + t.n_tried, b + t.n_smaller));
    let mut out = format!(
        "Theorem 2: of {tried} random weights of equal sum, {smaller} gave a smaller Lipschitz bound than |b|\n"
    );
    let mut grid = Grid::new(4, &["effect", "scenario", "family", "at", "error", "discrepancy"]);
    for r in rows {
        let error = format!("{:.2}", r.error.mean);
        grid.row([
            r.estimand.to_string(),
            r.scenario.label().into(),
            r.family.into(),
            r.at.to_string(),
            error,
            format!("{:.2}", r.discrepancy.mean),
        ]);
    }
    out += &grid.render();
    out
}

/// One row of the weights experiment: error and discrepancy relative to those at the theorem's weights.
pub struct WeightsRow {
    /// The scenario.
    pub scenario: Scenario,
    /// "moved" or "power".
    pub family: &'static str,
    /// The share, or the power.
    pub at: f64,
    /// "cure" or "time".
    pub estimand: &'static str,
    /// The error of the arm's estimate.
    pub error: Spread,
    /// Its noise-free part: the group's mean of the truth less the truth of the unit.
    pub discrepancy: Spread,
}

/// The rows of the weights experiment that there are records for.
pub fn weights_rows(settings: &Settings, records: &Records, reps: usize) -> Vec<WeightsRow> {
    let all = weights::jobs(settings, reps);
    let mut powers: Vec<f64> = POWERS.into_iter().chain([1.0]).collect();
    powers.sort_by(f64::total_cmp);
    let moved = MOVED.map(|t| ("moved", t, weights::moved_name(t)));
    let powers = powers.into_iter().map(|q| ("power", q, weights::power_name(q)));
    let mut out = Vec::new();
    for (family, at, name) in moved.into_iter().chain(powers) {
        for scenario in Scenario::PAPER {
            let jobs: Vec<Job> = all.iter().filter(|j| j.scenario() == scenario).copied().collect();
            for (estimand, read) in READ {
                let spread = |name: &str| Spread::of(&values(records, &jobs, name, GROUP_SIZES[0], read));
                if let (Some(error), Some(discrepancy)) = (spread(&name), spread(&weights::discrepancy_name(&name))) {
                    out.push(WeightsRow { scenario, family, at, estimand, error, discrepancy });
                }
            }
        }
    }
    out
}

/// `weights.csv`.
pub fn weights_csv(rows: &[WeightsRow]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut row =
        header(&["estimand", "scenario", "family", "at", "reps", "error", "error_sd", "discrepancy", "discrepancy_sd"]);
    for r in rows {
        row.text(r.estimand).text(r.scenario.name()).text(r.family).number(r.at).count(r.error.n);
        row.number(r.error.mean).maybe(r.error.sd).number(r.discrepancy.mean).maybe(r.discrepancy.sd).end();
    }
    write_to(&mut row, &mut out);
    out
}

/// `weights-bound.csv`.
pub fn bounds_csv(trials: &[BoundTrial]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut row =
        header(&["scenario", "arm", "part", "tried", "smaller", "smallest_ratio_anywhere", "smallest_ratio_nearby"]);
    for t in trials {
        row.text(t.scenario.name()).text(t.arm.name()).text(t.part).count(t.n_tried).count(t.n_smaller);
        row.number(t.smallest_anywhere).number(t.smallest_nearby).end();
    }
    write_to(&mut row, &mut out);
    out
}

/// The weights figures: for each effect, error by share moved; and by power.
pub fn weights_figures(rows: &[WeightsRow]) -> Vec<Figure> {
    let mut out = Vec::new();
    let kinds = [
        ("cure", "moved", "weights-moved-cure"),
        ("time", "moved", "weights-moved-time"),
        ("cure", "power", "weights-power-cure"),
        ("time", "power", "weights-power-time"),
    ];
    for (estimand, family, name) in kinds {
        let of =
            |s: Scenario| rows.iter().filter(move |r| r.scenario == s && r.family == family && r.estimand == estimand);
        let optimum = if family == "moved" { 0.0 } else { 1.0 };
        let series = Scenario::PAPER.iter().filter_map(|s| {
            let least = of(*s).find(|r| r.at == optimum)?.error.mean;
            let points = of(*s).map(|r| LinePoint { x: r.at, y: Estimate::point(r.error.mean / least) }).collect();
            Some(Series { label: s.label().into(), points, band: false })
        });
        let series: Vec<Series> = series.collect();
        if series.is_empty() {
            continue;
        }
        let (x, caption) = match family {
            "moved" => (
                "Share of the weight that is moved to random covariates",
                format!(
                    "Theorem 2: error of the treated arm's {estimand} estimate as its weights move away from |b| (1× at the left), where the bound is smallest. Near |b| the error is flat, the noise of K outcomes being most of it; farther away it rises."
                ),
            ),
            _ => (
                "Power q of the weights |b|^q (q = 1: the theorem's; q = 0: equal weights on what matters)",
                format!(
                    "What the theorem does not say: it minimises a bound, not the error. Error of the treated arm's {estimand} estimate for other powers of the coefficients, over that at q = 1."
                ),
            ),
        };
        let chart = LineChart {
            about: About::new(format!("Error of the {estimand} estimate by weights, relative to |b|"))
                .describe(caption.clone()),
            series,
            x: Axis::new(x),
            y: Axis::new("Mean absolute error over that with the theorem's weights").format(Format::Times),
            ..LineChart::default()
        };
        out.push(Figure { name, svg: chart.svg(), caption });
    }
    out
}

/// Everything that a study directory shows.
#[derive(Default)]
pub struct Contents {
    /// Tables with their entries.
    pub tables: Vec<(Table, Vec<Entry>)>,
    /// Where the error comes from.
    pub decomposition: Vec<Decomposition>,
    /// Figures of the tables.
    pub table_figures: Vec<Figure>,
    /// Lines of the consistency experiment.
    pub consistency: Vec<ConsistencyLine>,
    /// Its figures.
    pub consistency_figures: Vec<Figure>,
    /// Trials of the bound.
    pub bounds: Vec<BoundTrial>,
    /// Figures of the weights experiment.
    pub weights_figures: Vec<Figure>,
    /// What the weights experiment measured.
    pub weights: Vec<WeightsRow>,
}

impl Contents {
    /// All figures.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.table_figures.iter().chain(&self.consistency_figures).chain(&self.weights_figures)
    }
}

/// The page of a study.
pub fn study_page(settings: &Settings, contents: &Contents) -> String {
    let title = "The paper's simulation study, reproduced";
    // Nine columns need a wider page than words do.
    let mut body = String::from(
        "<style>main{max-width:74rem}figure{max-width:44rem}tbody th{white-space:nowrap}table{margin:1rem 0}th,td{padding-right:.35rem}.num{padding-left:.35rem}</style>\n",
    );
    body += &heading(1, title);
    body += &paragraph(
        "Every number of Li, Lanners and Engelhard, “Double Variable Importance Matching to Estimate Distinct Causal Effects on Event Probability and Timing”, estimated again on simulated data whose true effects are known. Smaller errors are better; a ratio of 1 means that we find what the paper printed.",
    );
    let mut n = 0;
    let mut draw = |body: &mut String, f: &Figure| {
        n += 1;
        *body += &figure(&f.svg, &format!("Figure {n}."), &f.caption);
    };
    let mut t = 0;
    let mut tabulate = |body: &mut String, caption: &str, columns: Vec<String>, rows: Vec<Vec<String>>| {
        t += 1;
        let table =
            PageTable { name: format!("Table {t}."), caption: caption.into(), columns, rows, words: Vec::new() };
        *body += &table.html();
    };
    for (table, entries) in &contents.tables {
        body += &heading(2, table.title());
        for remark in table::remarks(settings, entries) {
            body += &paragraph(&remark);
        }
        for (i, (name, _)) in ESTIMANDS.iter().enumerate() {
            let (columns, rows) = table::grid(entries, i);
            tabulate(&mut body, name, columns, rows);
        }
        let rows = agreements(entries).iter().map(agreement_row).collect();
        tabulate(
            &mut body,
            "Ours over the paper's, mean over the scenarios.",
            AGREEMENT.map(String::from).to_vec(),
            rows,
        );
    }
    if !contents.table_figures.is_empty() {
        body += &heading(2, "In pictures");
        contents.table_figures.iter().for_each(|f| draw(&mut body, f));
    }
    if !contents.decomposition.is_empty() {
        body += &heading(2, "Where the error comes from");
        body += &paragraph(
            "The error of MCM KNN at K = 50 is, on every data set, the sum of four parts: what a full oracle leaves (irreducible: the randomness of outcomes in groups of K), what is added by seeing each unit in one arm only, by censoring, and by having to learn the weights. The paper joins the second and the third.",
        );
        for (estimand, measure, caption) in decomposition::BLOCKS {
            let (columns, rows) = decomposition::grid(&contents.decomposition, estimand, measure);
            tabulate(&mut body, caption, columns, rows);
        }
    }
    if !contents.consistency.is_empty() {
        body += &heading(2, "Theorem 1: consistency");
        contents.consistency_figures.iter().for_each(|f| draw(&mut body, f));
        let rows = Scenario::PAPER.iter().map(|s| {
            let slope = |estimand: &str, grows: bool| {
                let line = contents
                    .consistency
                    .iter()
                    .find(|l| l.scenario == *s && l.estimand == estimand && l.grows == grows);
                line.and_then(ConsistencyLine::slope).map_or("–".into(), |v| format!("{v:.2}").replace('-', "−"))
            };
            vec![s.label().into(), slope("cure", true), slope("cure", false), slope("time", true), slope("time", false)]
        });
        let columns =
            ["Scenario", "cure, K grows", "cure, K = 50", "time, K grows", "time, K = 50"].map(String::from).to_vec();
        tabulate(&mut body, "Slope of log error on log n, by least squares over all sizes.", columns, rows.collect());
    }
    if !contents.weights.is_empty() {
        body += &heading(2, "Theorem 2: optimal weights");
        let (tried, smaller) =
            contents.bounds.iter().fold((0, 0), |(a, b), trial| (a + trial.n_tried, b + trial.n_smaller));
        body += &paragraph(&format!(
            "The bound itself: of {} random weight vectors of equal sum (half of them anywhere, half within 5 % of |b|; every arm, part and scenario), {} gave a smaller Lipschitz bound than |b|. The nearest of them came within a factor of 1 + {:.0e}.",
            dvim_report::text::grouped(tried),
            smaller,
            contents.bounds.iter().map(|b| b.smallest_nearby).fold(f64::INFINITY, f64::min) - 1.0
        ));
        contents.weights_figures.iter().for_each(|f| draw(&mut body, f));
    }
    body += &heading(2, "How to reproduce");
    body += &paragraph(&format!(
        "dvim {}: dvim study all --seed {} --n {} -o DIR. Methods, readings and what could not be reproduced: docs/study.md.",
        settings.version, settings.seed, settings.n_units
    ));
    page(title, &body)
}
