//! Every figure, with data that are empty, single, constant, not finite, huge, long-named or very many.

use dvim_report::plot::page::{Table, figure, page};
use dvim_report::plot::*;

/// Checks that text is well-formed XML of the kind the plots write: tags nest, attributes are quoted, entities are
/// known.
fn assert_well_formed(xml: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml;
    while let Some(start) = rest.find('<') {
        assert_text(&rest[..start]);
        let end = rest.find('>').unwrap_or_else(|| panic!("tag without end: {:.80}", &rest[start..]));
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "tags do not nest");
            continue;
        }
        let (tag, alone) = tag.strip_suffix('/').map_or((tag, false), |t| (t, true));
        let name = tag.split_whitespace().next().expect("a tag has a name");
        let mut seen = Vec::new();
        let mut attributes = tag[name.len()..].trim_start();
        while !attributes.is_empty() {
            let (key, after) = attributes.split_once("=\"").unwrap_or_else(|| panic!("bad attributes: {tag}"));
            let (value, after) = after.split_once('"').unwrap_or_else(|| panic!("open quote: {tag}"));
            assert!(key.chars().all(|c| c.is_ascii_alphanumeric() || "-:".contains(c)), "bad attribute name {key}");
            assert!(!seen.contains(&key), "attribute twice: {tag}");
            assert_text(value);
            seen.push(key);
            attributes = after.trim_start();
        }
        if !alone {
            open.push(name);
        }
        if name == "style" {
            rest = &rest[rest.find("</style").expect("style ends")..];
        }
    }
    assert!(rest.trim().is_empty() && open.is_empty(), "left open: {open:?}");
}

fn assert_text(text: &str) {
    for (i, _) in text.match_indices('&') {
        let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
        assert!(known.iter().any(|e| text[i..].starts_with(e)), "bare ampersand: {text}");
    }
    assert!(!text.contains('<'), "bare <: {text}");
}

/// What every figure must satisfy.
fn assert_sound(what: &str, draw: impl Fn() -> String) -> String {
    let svg = draw();
    assert_eq!(svg, draw(), "{what}: not deterministic");
    assert_well_formed(&svg);
    assert!(svg.starts_with("<svg ") && svg.contains("role=\"img\"") && svg.contains("<title>"), "{what}");
    assert!(svg.contains("<desc>"), "{what}");
    for word in ["NaN", "inf\"", "inf ", "-0\"", " id=", "<script", "http://www.w3.org/1999"] {
        assert!(!svg.contains(word), "{what}: contains {word:?}");
    }
    assert_coordinates_are_near(what, &svg);
    svg
}

/// No coordinate lies absurdly far from the canvas.
fn assert_coordinates_are_near(what: &str, svg: &str) {
    for key in [" x=\"", " y=\"", " cx=\"", " cy=\"", " x1=\"", " x2=\"", " y1=\"", " y2=\"", " width=\"", " height=\""]
    {
        for (i, _) in svg.match_indices(key) {
            let value = svg[i + key.len()..].split('"').next().unwrap_or("");
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{what}:{key}{value}"));
            assert!(value.abs() < 20_000.0, "{what}:{key}{value}");
        }
    }
}

/// Every figure drawn from the same values under the same names.
fn all_figures(values: &[f64], name: &str, width: f64) -> Vec<(&'static str, String)> {
    let about = || About::new(format!("Figure {name}")).describe(name).note(name).width(width);
    let estimate = |v: f64| Estimate::new(v, v - 1.0, v * 2.0);
    let axis = || Axis::new(name);
    let arm = |shift: f64| SurvivalArm {
        label: name.into(),
        steps: values
            .iter()
            .enumerate()
            .map(|(i, &v)| CurveStep { time: v + shift, survival: 1.0 / (i + 1) as f64, interval: Some((v, 0.9)) })
            .collect(),
        censored: values.to_vec(),
        at_risk: at_risk(values),
        mean_event_time: values.first().map(|&v| estimate(v)),
        ..SurvivalArm::default()
    };
    let series = |label: &str, band| Series {
        label: label.into(),
        points: values.iter().map(|&v| LinePoint { x: v, y: estimate(v) }).collect(),
        band,
    };
    let lines = |x: Axis, y: Axis| LineChart {
        about: about(),
        series: vec![series(name, false), series("b", true)],
        x,
        y,
        levels: vec![Reference { value: 0.5, label: name.into() }],
        marks: vec![Reference { value: f64::NAN, label: name.into() }],
    };
    vec![
        ("survival", {
            let figure = SurvivalCurves {
                about: about(),
                arms: vec![arm(0.0), arm(1.0)],
                horizon: Some(10.0),
                axis: axis(),
                state: name.into(),
                unit: name.into(),
                cure_effect: Some(name.into()),
                time_effect: Some(name.into()),
            };
            let no_horizon = SurvivalCurves { horizon: None, ..figure.clone() };
            assert_sound("survival, no horizon", || no_horizon.svg());
            assert_sound("survival", || figure.svg())
        }),
        ("histogram", {
            let figure = EffectHistogram {
                about: about(),
                values: values.to_vec(),
                mean: values.first().map(|&v| estimate(v)),
                undefined: 3,
                axis: axis(),
                below: name.into(),
                above: name.into(),
            };
            assert_sound("histogram", || figure.svg())
        }),
        ("plane", {
            let figure = EffectPlane {
                about: about(),
                points: values.iter().map(|&v| (v, v * 0.3)).collect(),
                highlights: values
                    .iter()
                    .take(2)
                    .map(|&v| PlanePoint { label: name.into(), cure: estimate(v), time: estimate(v) })
                    .collect(),
                cure_axis: axis().format(Format::Points),
                time_axis: axis(),
            };
            assert_sound("plane", || figure.svg())
        }),
        ("weights", {
            let row = |&v: &f64| WeightRow { covariate: name.into(), cure: v, time: v * 2.0 };
            let figure = MetricWeights { about: about(), rows: values.iter().map(row).collect() };
            assert_sound("weights", || figure.svg())
        }),
        ("boxes", {
            let samples =
                BoxGroup { label: name.into(), summary: BoxSummary::Samples(values.to_vec()), emphasis: true };
            let v = values.first().copied().unwrap_or(f64::NAN);
            let five =
                BoxGroup { label: "b".into(), summary: BoxSummary::Five([v, 1.0, 2.0, 3.0, 4.0]), emphasis: false };
            let figure = BoxPlots { about: about(), groups: vec![samples, five], axis: axis(), reference: Some(0.0) };
            let log = BoxPlots { axis: axis().log(), ..figure.clone() };
            assert_sound("boxes, log", || log.svg());
            assert_sound("boxes", || figure.svg())
        }),
        ("violins", {
            let group = ViolinGroup { label: name.into(), values: values.to_vec(), emphasis: false };
            let groups = vec![group, ViolinGroup::default()];
            let figure = Violins { about: about(), groups, axis: axis(), reference: Some(0.0) };
            assert_sound("violins", || figure.svg())
        }),
        ("correlation", {
            let n = values.len().min(12);
            let figure = CorrelationMatrix {
                about: about(),
                labels: vec![name.into(); n],
                values: (0..n).map(|i| values[..n - i].to_vec()).collect(),
            };
            assert_sound("correlation", || figure.svg())
        }),
        ("lines", {
            assert_sound("lines, log", || lines(axis().log(), axis().log()).svg());
            assert_sound("lines, limits", || {
                lines(axis().limits(0.0, 3.0), axis().ticks(vec![0.0, 1.0, f64::NAN])).svg()
            });
            assert_sound("lines", || lines(axis(), axis()).svg())
        }),
        ("forest", {
            let row = |&v: &f64| ForestRow {
                label: name.into(),
                estimate: Some(estimate(v)),
                n: Some(10),
                ..ForestRow::default()
            };
            let mut rows: Vec<ForestRow> = values.iter().take(50).map(row).collect();
            rows.push(ForestRow { label: name.into(), ..ForestRow::default() });
            let figure =
                ForestPlot { about: about(), rows, axis: axis(), below: name.into(), above: name.into(), null: 0.0 };
            assert_sound("forest", || figure.svg())
        }),
        ("love", {
            let row =
                |&v: &f64| LoveRow { covariate: name.into(), before: v, cure: Some(-v), time: None, average: None };
            let figure = LovePlot { about: about(), rows: values.iter().map(row).collect(), threshold: Some(0.1) };
            assert_sound("love", || figure.svg())
        }),
        ("ratios", {
            let row =
                |&v: &f64| RatioRow { label: name.into(), ratio: estimate(v), remark: name.into(), emphasis: true };
            let figure =
                RatioChart { about: about(), rows: values.iter().take(50).map(row).collect(), axis: axis().log() };
            assert_sound("ratios", || figure.svg())
        }),
    ]
}

#[test]
fn without_data_every_figure_says_so() {
    for (what, svg) in all_figures(&[], "plain", 680.0) {
        assert!(svg.contains("No data to draw"), "{what}");
    }
}

#[test]
fn one_value_and_constant_values_are_drawn() {
    for values in [vec![0.4], vec![0.0], vec![0.4; 50], vec![-3.0; 2]] {
        for (what, svg) in all_figures(&values, "plain", 680.0) {
            let hidden = values[0] < 0.0 && ["weights", "ratios"].contains(&what);
            let flat = values[0] == 0.0 && what == "ratios";
            assert_eq!(svg.contains("No data to draw"), hidden || flat, "{what} {values:?}");
        }
    }
}

#[test]
fn what_is_not_finite_is_left_out_and_counted() {
    let values = [0.1, f64::NAN, 0.7, f64::INFINITY, f64::NEG_INFINITY, 1.3];
    for (what, svg) in all_figures(&values, "plain", 680.0) {
        let said = ["not finite", "undefined", "is an undefined"].iter().any(|w| svg.contains(w));
        assert!(said, "{what} does not say what it left out");
    }
    for (what, svg) in all_figures(&[f64::NAN, f64::INFINITY], "plain", 680.0) {
        assert!(what == "correlation" || svg.contains("No data to draw"), "{what}");
    }
}

#[test]
fn huge_and_tiny_values_keep_to_the_canvas() {
    let huge = [1e308, -1e308, 1e300, -1e299, 1e15, 1e15 + 1.0, 3.0, 0.0];
    let tiny = [1e-308, 5e-324, 1e-200, 2e-200, 1e-12, 1.0 + 1e-15, 1.0];
    for values in [&huge[..], &huge[4..6], &tiny[..], &tiny[..2], &tiny[5..]] {
        all_figures(values, "plain", 680.0);
    }
}

#[test]
fn long_and_hostile_names_are_shortened_and_escaped() {
    let long = "a covariate with a very long name & <b>markup</b> \"quotes\" 'single' \u{1} ]]> 中文 🙂 ".repeat(5);
    for width in [f64::NAN, 0.0, 280.0, 680.0, 1e9] {
        for (what, svg) in all_figures(&[0.3, 1.0, 2.0, 7.5], &long, width) {
            assert!(!svg.contains("<b>"), "{what}");
        }
    }
}

#[test]
fn many_values_stay_small() {
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let values: Vec<f64> = (0..20_000).map(|_| 10.0 * (noise() + noise() + noise())).collect();
    for (what, svg) in all_figures(&values, "plain", 680.0) {
        assert!(svg.len() < 200_000, "{what}: {} bytes", svg.len());
    }
    let plane = EffectPlane { points: (0..20_000).map(|_| (noise(), noise())).collect(), ..EffectPlane::default() };
    let size = plane.svg().len();
    assert!(size < 200_000, "plane full of points: {size} bytes");
}

#[test]
fn more_covariates_than_fit_are_cut_and_the_figure_says_so() {
    let values: Vec<f64> = (1..=90).map(f64::from).collect();
    let figures = all_figures(&values, "plain", 680.0);
    let svg = |name: &str| &figures.iter().find(|f| f.0 == name).unwrap().1;
    assert!(svg("weights").contains("The 30 covariates with the largest weights, of 90."));
    assert!(svg("love").contains("of 90."));
}

#[test]
fn numbers_at_risk_count_units_still_there() {
    assert_eq!(at_risk(&[3.0, 1.0, 3.0, f64::NAN, 5.0]), [(1.0, 4), (3.0, 3), (5.0, 1)]);
}

#[test]
fn the_plateau_is_read_at_the_horizon() {
    let step = |time, survival| CurveStep { time, survival, interval: None };
    let steps = vec![step(1.0, 0.8), step(4.0, 0.62), step(9.0, 0.1)];
    let arm = SurvivalArm { label: "Treated".into(), steps, ..SurvivalArm::default() };
    let svg = SurvivalCurves { arms: vec![arm], horizon: Some(5.0), ..SurvivalCurves::default() }.svg();
    assert!(svg.contains(">62%<") && !svg.contains(">10%<"));
}

#[test]
fn a_page_is_self_contained() {
    let svg = EffectHistogram { values: vec![1.0, 2.0, 2.5], ..EffectHistogram::default() }.svg();
    let table = Table {
        name: "Table <1>".into(),
        columns: vec!["a".into(), "b & c".into()],
        rows: vec![vec!["<script>".into()], vec!["x".into(), "1".into(), "2".into()]],
        ..Table::default()
    };
    let html = page("A & B", &format!("{}{}", figure(&svg, "Figure 1.", "a < b"), table.html()));
    assert!(html.contains("<title>A &amp; B</title>") && html.contains("a &lt; b"));
    assert!(html.contains("&lt;script&gt;") && !html.contains("<script"));
    assert!(html.contains("prefers-color-scheme:dark") && html.contains("@media print"));
    for outside in ["src=", "url(", "@import", "https:"] {
        assert!(!html.contains(outside), "{outside}");
    }
    let inside = html.split_once("<main>").unwrap().1.split_once("</main>").unwrap().0;
    assert_well_formed(inside);
}

#[test]
fn the_style_sheet_names_every_class_that_figures_use() {
    let sheet = style_sheet();
    for (what, svg) in all_figures(&[0.2, 0.5, 3.0], "plain", 680.0) {
        for (i, _) in svg.match_indices("class=\"dv") {
            let classes = svg[i + 7..].split('"').next().unwrap();
            for class in classes.split(' ').filter(|c| *c != "dv-figure") {
                assert!(sheet.contains(&format!(".{class}{{")), "{what}: {class}");
            }
        }
    }
}
