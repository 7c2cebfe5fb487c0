//! What a design comes to, as one page that loads nothing.

use super::latency::STEPS;
use super::power::{Power, Row, Share};
use super::text::{conclusions, further_table, power_table};
use super::words::{assumptions, protocol};
use super::world::World;
use dvim::internal::arm::Arm;
use dvim_report::plot::page::{Table, escaped, figure, heading, page, paragraph};
use dvim_report::plot::{
    About, Axis, CurveStep, Estimate, Format, LineChart, LinePoint, Reference, Series, SurvivalArm, SurvivalCurves,
};

/// Powers that contours are drawn for, besides the one that is wanted.
const LEVELS: [f64; 3] = [0.5, 0.7, 0.9];

/// The curves that are assumed.
fn curves(found: &Power) -> String {
    let d = &found.design;
    let world = World::new(d, None, true);
    let arm = |arm: Arm, label: &str| {
        let (cured, mean) = world.average(arm);
        let times = world.family.with_mean(mean);
        let step = |k: usize| CurveStep {
            time: d.horizon * k as f64 / STEPS as f64,
            survival: 1.0 - (1.0 - cured) * times.before[k],
            interval: None,
        };
        SurvivalArm {
            label: label.into(),
            steps: (0..=STEPS).map(step).collect(),
            linear: true,
            mean_event_time: Some(Estimate::point(mean)),
            ..SurvivalArm::default()
        }
    };
    SurvivalCurves {
        about: About::new("The curves that are assumed")
            .describe("Share of patients without the event over time, in the treated and in the control arm.")
            .height(260.0),
        arms: vec![arm(Arm::Treated, "Treated"), arm(Arm::Control, "Control")],
        horizon: Some(d.horizon),
        axis: Axis::new("Time since entry"),
        ..SurvivalCurves::default()
    }
    .svg()
}

/// A power with twice its Monte Carlo standard error on either side.
fn estimate(share: Share) -> Estimate {
    let two = 2.0 * share.mc_se;
    Estimate::new(share.value, (share.value - two).max(0.0), (share.value + two).min(1.0))
}

/// Power over the number of patients.
fn over_sizes(found: &Power) -> String {
    let series = |label: &str, of: &dyn Fn(&Row) -> Option<Share>| Series {
        label: label.into(),
        points: found.rows.iter().filter_map(|r| Some(LinePoint { x: r.n as f64, y: estimate(of(r)?) })).collect(),
        band: false,
    };
    let mut all = vec![
        series("whether", &|r| r.power[0]),
        series("when", &|r| r.power[1]),
        series("either", &|r| Some(r.either)),
        series("both", &|r| Some(r.both)),
    ];
    if found.rows.iter().any(|r| r.power[2].is_some()) {
        all.push(series("RMST", &|r| r.power[2]));
    }
    LineChart {
        about: About::new("Power over the number of patients")
            .describe("One line each for whether, when, either, both and the difference in restricted mean time."),
        series: all,
        x: Axis::new("Patients"),
        y: Axis::new("Power").format(Format::Percent).limits(0.0, 1.0),
        levels: vec![Reference { value: found.design.power, label: "wanted".into() }],
        marks: Vec::new(),
    }
    .svg()
}

/// Contours of power over the end of the study and the number of patients.
fn contours(found: &Power, k: usize, name: &str) -> Option<String> {
    let surface = found.surface.as_ref()?;
    let mut levels: Vec<f64> = LEVELS.into_iter().chain([found.design.power]).collect();
    levels.sort_by(|a, b| b.total_cmp(a));
    levels.dedup_by(|a, b| (*a - *b).abs() < 1e-9);
    let line = |wanted: f64| Series {
        label: format!("{:.0} %", 100.0 * wanted),
        points: surface
            .contour(k, wanted)
            .into_iter()
            .map(|(end, n)| LinePoint { x: end, y: Estimate::point(n) })
            .collect(),
        band: false,
    };
    let series: Vec<Series> = levels.into_iter().map(line).filter(|s| s.points.len() > 1).collect();
    let ends = (surface.ends[0], surface.ends[surface.ends.len() - 1]);
    (!series.is_empty()).then(|| {
        LineChart {
            about: About::new(format!("Patients and follow-up that reach a power, for {name}")).describe(
                "Each line joins the designs of one power: the later the study ends, the fewer patients it needs.",
            ),
            series,
            x: Axis::new("End of the study, since the first patient entered").limits(ends.0, ends.1),
            y: Axis::new("Patients"),
            levels: Vec::new(),
            marks: match (ends.0..=ends.1).contains(&found.design.study_end) {
                true => vec![Reference { value: found.design.study_end, label: "planned".into() }],
                false => Vec::new(),
            },
        }
        .svg()
    })
}

fn table((names, rows): (Vec<&'static str>, Vec<Vec<String>>), name: &str, caption: &str) -> String {
    let columns = names.into_iter().map(String::from).collect();
    Table { name: name.into(), caption: caption.into(), columns, rows, words: Vec::new() }.html()
}

/// The answer, in a sentence.
fn answer(found: &Power) -> String {
    let d = &found.design;
    let of = |k: usize, what: &str| match found.needed[k] {
        Some(n) => format!(
            "About {:.0} patients give {:.0} % power to find the difference in {what}.",
            n.value,
            100.0 * d.power
        ),
        None => {
            let last = found.rows.last().expect("a size");
            let power = last.power[k].map_or("no".into(), |p| format!("{:.0} %", 100.0 * p.value));
            match found.rows[0].power[k] {
                Some(first) if first.value >= d.power => {
                    format!("{} patients already have {:.0} % power for {what}.", found.rows[0].n, 100.0 * first.value)
                }
                _ => format!("{} patients have {power} power for {what}.", last.n),
            }
        }
    };
    format!("{} {}", of(0, "the share event-free"), of(1, "the mean event time"))
}

/// The page.
pub fn html(found: &Power) -> String {
    let d = &found.design;
    let mut body = heading(1, "How likely is the study to find its effects?");
    body += &format!("<p class=\"lead\">{}</p>\n", escaped(&answer(found)));
    body += &figure(
        &over_sizes(found),
        "Figure 1.",
        "Power over the number of patients. Bars are two Monte Carlo standard errors; the level line is the power that is wanted.",
    );
    body += &heading(2, "What is assumed");
    body += &figure(
        &curves(found),
        "Figure 2.",
        "Event-free share over time, as assumed for an average patient of each arm, with the mean time of the events before the horizon.",
    );
    body += "<ul>\n";
    assumptions(d).iter().for_each(|a| body += &format!("<li>{}</li>\n", escaped(a)));
    body += "</ul>\n";
    body += &heading(2, "Patients and follow-up");
    let drawn: Vec<(&str, String)> = [(0, "whether"), (1, "when")]
        .into_iter()
        .filter_map(|(k, name)| Some((name, contours(found, k, name)?)))
        .collect();
    for (i, (name, svg)) in drawn.iter().enumerate() {
        body += &figure(
            svg,
            &format!("Figure {}.", i + 3),
            &format!(
                "Power for {name}: each line joins the designs of one power. A study that ends later needs fewer patients, until everybody is followed to the horizon."
            ),
        );
    }
    if drawn.is_empty() {
        body += &paragraph(
            "No contour is drawn: everybody is followed to the horizon, or the sizes do not cross the powers.",
        );
    }
    conclusions(found).iter().for_each(|c| body += &paragraph(c));
    body += &heading(2, "Scenarios");
    body += &table(
        power_table(found),
        "Table 1.",
        "Power in per cent by the number of patients, with Monte Carlo standard errors in points.",
    );
    body += &table(
        further_table(found),
        "Table 2.",
        "Mean width of intervals, smallest effect found with the power wanted, chance of a finding without an effect, bias, and the last time with ten patients at risk. Shares in points.",
    );
    body += &heading(2, "For a protocol");
    body += &format!("<blockquote><p>{}</p></blockquote>\n", escaped(&protocol(found)));
    body += &heading(2, "To repeat it");
    body += &paragraph("Save these lines as design.toml and run dvim design --settings design.toml.");
    body += &format!("<pre>{}</pre>\n", escaped(&d.to_toml()));
    page("Power of a planned study", &body)
}
