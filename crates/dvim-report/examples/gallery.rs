//! Every figure with made-up data on one page: `cargo run -p dvim-report --example gallery -- gallery.html [width]`.

use dvim_report::plot::page::{Table, figure, heading, page, paragraph};
use dvim_report::plot::*;

/// A small deterministic generator: the gallery needs noise, not quality.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

const HORIZON: f64 = 3650.0;

/// An arm with a cured share and log-normal times, its curve by Kaplan and Meier.
fn arm(noise: &mut Noise, label: &str, n: usize, cured: f64, log_mean: f64) -> SurvivalArm {
    let mut units: Vec<(f64, bool)> = (0..n)
        .map(|_| {
            let event = if noise.uniform() < cured { f64::MAX } else { (log_mean + 0.7 * noise.normal()).exp() };
            let censored = 900.0 + 4500.0 * noise.uniform();
            (event.min(censored).min(HORIZON), event < censored.min(HORIZON))
        })
        .collect();
    units.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut survival, mut green, mut steps) = (1.0, 0.0, Vec::new());
    let (mut sum, mut events) = (0.0, 0.0);
    for (i, &(time, event)) in units.iter().enumerate() {
        if event {
            let at_risk = (n - i) as f64;
            survival *= 1.0 - 1.0 / at_risk;
            green += 1.0 / (at_risk * (at_risk - 1.0).max(1.0));
            let half = 1.96 * survival * f64::sqrt(green);
            steps.push(CurveStep { time, survival, interval: Some((survival - half, survival + half)) });
            sum += time;
            events += 1.0;
        }
    }
    let (mean, half) = (sum / events, 800.0 / f64::sqrt(events));
    SurvivalArm {
        label: label.into(),
        steps,
        linear: false,
        band: Vec::new(),
        beside: Vec::new(),
        censored: units.iter().filter(|u| !u.1 && u.0 < HORIZON).map(|u| u.0).collect(),
        at_risk: at_risk(&units.iter().map(|u| u.0).collect::<Vec<_>>()),
        mean_event_time: Some(Estimate::new(mean, mean - half, mean + half)),
    }
}

/// Smooth curves for the paper's first figure.
fn smooth(label: &str, cured: f64, rate: f64, mean: f64) -> SurvivalArm {
    let steps = (1..=400).map(|i| f64::from(i) * HORIZON / 400.0);
    let steps = steps.map(|t| {
        let survival = cured + (1.0 - cured) * (-(t / rate).powi(2)).exp();
        CurveStep { time: t, survival, interval: None }
    });
    let mean_event_time = Some(Estimate::point(mean));
    SurvivalArm { label: label.into(), steps: steps.collect(), mean_event_time, ..SurvivalArm::default() }
}

const METHODS: [&str; 9] = [
    "Oracle",
    "Partial oracle",
    "MCM KNN",
    "MCM KNN combined",
    "Feature selection KNN",
    "Euclidean KNN",
    "Propensity score KNN",
    "Prognostic score KNN",
    "Cox per arm, no matching",
];

const COVARIATES: [&str; 8] = [
    "Age at transplant",
    "Minimal residual disease before transplant",
    "Donor–recipient sex mismatch",
    "First complete remission",
    "White cell count at diagnosis",
    "T-cell phenotype",
    "BCR::ABL1 <positive>",
    "Conditioning",
];

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "gallery.html".into());
    let width: f64 = std::env::args().nth(2).and_then(|w| w.parse().ok()).unwrap_or(680.0);
    let about = |title: &str| About::new(title).describe("Made-up data that show the figure.").width(width);
    let mut noise = Noise(7);
    let cure_axis = || Axis::new("Effect on cure probability (percentage points)").format(Format::Points);
    let time_axis = || Axis::new("Effect on mean event time (days)").format(Format::Signed);
    let mut body = heading(1, "Gallery of figures");
    body.push_str(&paragraph(
        "Every figure of the report crate, with data that were made up. Nothing here is a result.",
    ));
    let mut n = 0;
    let mut add = |svg: String, caption: &str| {
        n += 1;
        body.push_str(&figure(&svg, &format!("Figure {n}."), caption));
    };

    let curves = SurvivalCurves {
        about: about("Survival of both arms").note("Synthetic data. Bands are pointwise 95% intervals."),
        arms: vec![arm(&mut noise, "Haplo-SCT", 911, 0.58, 6.1), arm(&mut noise, "Sibling donor", 246, 0.5, 6.5)],
        horizon: Some(HORIZON),
        axis: Axis::new("Time since transplant (days)"),
        unit: "days".into(),
        ..SurvivalCurves::default()
    };
    add(curves.svg(), "Event-free survival by arm up to the horizon, mean event times, and numbers at risk.");

    let figure_one = SurvivalCurves {
        about: about("Treatment raises the cure probability and shortens the mean event time").height(230.0),
        arms: vec![smooth("Treated", 0.62, 700.0, 620.0), smooth("Control", 0.44, 1900.0, 1684.0)],
        horizon: Some(HORIZON),
        axis: Axis::new("Time (days)"),
        unit: "days".into(),
        cure_effect: Some("π = +18 points".into()),
        time_effect: Some("Δ = −1,064 days".into()),
        ..SurvivalCurves::default()
    };
    add(
        figure_one.svg(),
        "Hypothetical curves: more are event-free with treatment and, among those who have the event, it comes earlier.",
    );

    let points: Vec<(f64, f64)> = (0..20_000)
        .map(|i| {
            let shared = noise.normal();
            let cure = 0.05 + 0.06 * shared + 0.04 * noise.normal();
            let time = if i % 997 == 0 { f64::NAN } else { -40.0 + 70.0 * shared + 90.0 * noise.normal() };
            (cure, time)
        })
        .collect();
    let cure_effects: Vec<f64> = points.iter().map(|p| p.0).collect();
    let histogram = EffectHistogram {
        about: about("Individual cure effects"),
        values: cure_effects.clone(),
        mean: Some(Estimate::new(0.051, 0.032, 0.07)),
        undefined: 0,
        axis: cure_axis(),
        below: "fewer event-free with treatment".into(),
        above: "more event-free with treatment".into(),
    };
    add(histogram.svg(), "Individual effects on cure for 20,000 units; the band is the interval of the mean.");
    let histogram = EffectHistogram {
        about: about("Individual time effects").height(150.0),
        values: points.iter().take(300).map(|p| p.1).collect(),
        mean: Some(Estimate::new(-38.0, -61.0, -15.0)),
        undefined: 12,
        axis: time_axis(),
        below: "events earlier".into(),
        above: "events later".into(),
    };
    add(histogram.svg(), "Individual effects on time for 300 units, with a rug.");

    let plane = EffectPlane {
        about: about("Cure effect against time effect"),
        points: points.clone(),
        highlights: vec![
            PlanePoint {
                label: "average".into(),
                cure: Estimate::new(0.051, 0.032, 0.07),
                time: Estimate::new(-38.0, -61.0, -15.0),
            },
            PlanePoint {
                label: "patient 1043".into(),
                cure: Estimate::new(0.19, 0.07, 0.31),
                time: Estimate::new(210.0, 60.0, 360.0),
            },
        ],
        cure_axis: cure_axis(),
        time_axis: time_axis(),
    };
    add(plane.svg(), "Both effects of 20,000 units. Few lose on both counts.");
    let plane = EffectPlane {
        about: about("Cure effect against time effect, few units").height(260.0),
        points: points[..250].to_vec(),
        highlights: Vec::new(),
        ..plane
    };
    add(plane.svg(), "The same with 250 units.");

    let rows = COVARIATES.iter().enumerate().map(|(i, name)| WeightRow {
        covariate: (*name).into(),
        cure: [0.31, 1.42, 0.02, 0.88, 0.0, 0.12, 0.47, 0.05][i],
        time: [12.4, 3.0, 0.4, 0.9, 21.0, 0.0, 6.6, 1.8][i],
    });
    let weights = MetricWeights { about: about("Weights of the two metrics"), rows: rows.collect() };
    add(weights.svg(), "Which covariates decide who is compared with whom, for cure and for time.");

    let scale = [1.0, 1.2, 1.25, 1.3, 1.42, 1.6, 2.6, 1.9, 1.4];
    let errors = |noise: &mut Noise, s: f64| (0..2000).map(|_| (0.06 * s * noise.normal()).abs()).collect::<Vec<_>>();
    let groups = METHODS.iter().zip(scale).map(|(m, s)| BoxGroup {
        label: (*m).into(),
        summary: BoxSummary::Samples(errors(&mut noise, s)),
        emphasis: *m == "MCM KNN",
    });
    let boxes = BoxPlots {
        about: about("Absolute error of the cure effect by method"),
        groups: groups.collect(),
        axis: Axis::new("Absolute error of the cure effect").format(Format::Percent),
        reference: None,
    };
    add(boxes.svg(), "Absolute error by method; the method of the paper is filled.");

    let groups = METHODS[2..].iter().zip(scale).map(|(m, s)| ViolinGroup {
        label: (*m).into(),
        values: (0..1157).map(|i| 0.05 + 0.05 * s * noise.normal() + if i % 3 == 0 { 0.1 } else { 0.0 }).collect(),
        emphasis: *m == "MCM KNN",
    });
    let violins = Violins {
        about: about("Cure effects by method"),
        groups: groups.collect(),
        axis: cure_axis(),
        reference: Some(0.0),
    };
    add(violins.svg(), "Distribution of estimated cure effects on a cohort; dot and bar are median and quartiles.");

    let k = METHODS.len() - 2;
    let cell = |i: usize, j: usize| match (i, j) {
        (i, j) if i == j => 1.0,
        (2, 5) | (5, 2) => f64::NAN,
        _ => 0.95 - 0.16 * i.abs_diff(j) as f64 - if i.max(j) == 6 { 0.45 } else { 0.0 },
    };
    let correlation = CorrelationMatrix {
        about: about("Correlation of cure effects between methods"),
        labels: METHODS[2..].iter().map(|m| (*m).into()).collect(),
        values: (0..k).map(|i| (0..k).map(|j| cell(i, j)).collect()).collect(),
    };
    add(correlation.svg(), "Correlation of individual effects between methods.");

    let line = |label: &str, start: f64, slope: f64, wide: f64, band: bool, xs: &[f64]| Series {
        label: label.into(),
        points: xs
            .iter()
            .map(|&x| {
                let y = start * (x / xs[0]).powf(slope);
                LinePoint { x, y: Estimate::new(y, y / wide, y * wide) }
            })
            .collect(),
        band,
    };
    let sizes = [500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0, 50_000.0, 100_000.0];
    let consistency = LineChart {
        about: about("Both errors fall as the sample grows"),
        series: vec![
            line("MCM KNN", 0.16, -0.3, 1.12, false, &sizes),
            line("Euclidean", 0.19, -0.14, 1.08, false, &sizes),
            line("oracle", 0.11, -0.33, 1.1, false, &sizes),
        ],
        x: Axis::new("Units (n), log scale").log(),
        y: Axis::new("Mean absolute error of the cure effect (log scale)").log(),
        levels: Vec::new(),
        marks: Vec::new(),
    };
    add(consistency.svg(), "Error against sample size on log axes, with intervals over repetitions.");

    let horizons: Vec<f64> = (1..=60).map(|i| f64::from(i) * 61.0).collect();
    let horizon = LineChart {
        about: about("Cure effect by horizon").height(200.0),
        series: vec![
            Series {
                label: "matched for cure, estimated by Kaplan–Meier".into(),
                points: horizons
                    .iter()
                    .map(|&x| {
                        let y = 0.055 * (1.0 - (-x / 600.0).exp()) - 0.03 * (-x / 250.0).exp();
                        LinePoint { x, y: Estimate::new(y, y - 0.025, y + 0.025) }
                    })
                    .collect(),
                band: true,
            },
            Series {
                label: "mixture cure model alone".into(),
                points: horizons
                    .iter()
                    .map(|&x| LinePoint { x, y: Estimate::point(0.04 * (1.0 - (-x / 900.0).exp())) })
                    .collect(),
                band: true,
            },
        ],
        x: Axis::new("Horizon (days)"),
        y: cure_axis(),
        levels: vec![Reference { value: 0.0, label: String::new() }],
        marks: vec![Reference { value: 2555.0, label: "chosen horizon".into() }],
    };
    add(horizon.svg(), "The same effect had another horizon been chosen.");

    let row = |label: &str, value: f64, half: f64, n: u64| ForestRow {
        label: label.into(),
        estimate: Some(Estimate::new(value, value - half, value + half)),
        n: Some(n),
        ..ForestRow::default()
    };
    let head = |label: &str| ForestRow { label: label.into(), ..ForestRow::default() };
    let forest = ForestPlot {
        about: about("Cure effect by subgroup"),
        rows: vec![
            head("Age"),
            row("under 18", 0.082, 0.06, 301),
            row("18 to 40", 0.045, 0.035, 611),
            row("over 40", 0.01, 0.09, 245),
            head("Residual disease"),
            row("negative", 0.021, 0.03, 804),
            row("positive", 0.121, 0.07, 353),
            head("Remission"),
            row("first", 0.041, 0.03, 930),
            row("second or later", 0.09, 0.11, 227),
            ForestRow { overall: true, ..row("All units", 0.051, 0.019, 1157) },
        ],
        axis: cure_axis(),
        null: 0.0,
        below: "fewer event-free with treatment".into(),
        above: "more event-free with treatment".into(),
    };
    add(forest.svg(), "Average cure effect by subgroup with 95% intervals; squares grow with the number of units.");

    let rows = COVARIATES.iter().enumerate().map(|(i, name)| LoveRow {
        covariate: (*name).into(),
        before: [0.42, -0.31, 0.05, 0.22, 0.18, -0.09, 0.27, 0.01][i],
        cure: Some([0.08, 0.02, 0.04, 0.05, 0.15, 0.08, 0.03, 0.02][i]),
        time: Some([0.03, 0.11, 0.06, 0.17, 0.02, 0.07, 0.05, 0.03][i]),
        average: None,
    });
    let love =
        LovePlot { about: about("Balance before and after matching"), rows: rows.collect(), threshold: Some(0.1) };
    add(love.svg(), "Balance of the covariates under both metrics.");

    let rows = [
        ("dvim, whole analysis", 1.0, "0.41 s"),
        ("plain scan", 6.2, "2.5 s"),
        ("VIM (Python)", 148.0, "61 s"),
        ("grf", 3.1, "1.3 s"),
        ("dvim, 2 threads", 0.55, "0.23 s"),
    ];
    let rows = rows.map(|(label, ratio, remark)| RatioRow {
        label: label.into(),
        ratio: Estimate::new(ratio, ratio * 0.9, ratio * 1.12),
        remark: remark.into(),
        emphasis: label.starts_with("dvim"),
    });
    let ratios = RatioChart {
        about: about("Time relative to dvim"),
        rows: rows.into(),
        axis: Axis::new("Time relative to dvim on one thread (log scale)").log().format(Format::Times),
    };
    add(ratios.svg(), "Benchmarks as ratios; left of the line is faster.");

    body.push_str(&heading(2, "A table"));
    let table = Table {
        name: "Table 1.".into(),
        caption: "Mean absolute error by method.".into(),
        columns: ["Method", "Cure (points)", "Time (days)", "Remark"].map(String::from).into(),
        rows: METHODS
            .iter()
            .enumerate()
            .map(|(i, m)| vec![(*m).into(), fixed(6.6 * scale[i], 1), fixed(1230.5 * scale[i], 1), "made up".into()])
            .collect(),
        words: vec![3],
    };
    body.push_str(&table.html());
    std::fs::write(path, page("Gallery of figures", &body))
}
