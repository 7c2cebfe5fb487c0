//! What a design comes to, for a terminal.

use super::power::{Power, Share};
use super::words::assumptions;
use dvim_report::text::{Grid, grouped};

/// A share in per cent with its Monte Carlo standard error in points.
pub(super) fn per_cent(found: Share) -> String {
    format!("{:.1} ({:.1})", 100.0 * found.value, 100.0 * found.mc_se)
}

/// A number that may not be there.
pub(super) fn or_dash(found: Option<Share>, words: impl Fn(Share) -> String) -> String {
    found.map_or("–".into(), words)
}

/// Points of a share with their Monte Carlo standard error.
pub(super) fn points(found: Share) -> String {
    format!("{:.1} ({:.2})", 100.0 * found.value, 100.0 * found.mc_se)
}

/// A time with its Monte Carlo standard error.
pub(super) fn time(found: Share) -> String {
    format!("{:.3} ({:.3})", found.value, found.mc_se)
}

/// What is known of power, by columns: their names, and the cells of each row.
pub(super) fn power_table(found: &Power) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let has_varies = found.rows.iter().any(|r| r.varies.iter().any(Option::is_some));
    let mut names = vec!["patients", "trials", "whether", "when", "either", "both", "RMST"];
    if has_varies {
        names.extend(["whether varies", "when varies"]);
    }
    names.push("follow-up suffices");
    let row = |r: &super::power::Row| {
        let trials = if r.fits > 0 { format!("{}, {} fits", grouped(r.trials), r.fits) } else { grouped(r.trials) };
        let mut cells = vec![grouped(r.n), trials];
        cells.extend([r.power[0], r.power[1], Some(r.either), Some(r.both), r.power[2]].map(|p| or_dash(p, per_cent)));
        if has_varies {
            cells.extend(r.varies.map(|p| or_dash(p, per_cent)));
        }
        cells.push(per_cent(r.sufficient));
        cells
    };
    (names, found.rows.iter().map(row).collect())
}

/// Widths, smallest effects and type I error, by columns.
pub(super) fn further_table(found: &Power) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let names = vec![
        "patients",
        "width, whether",
        "width, when",
        "found, whether",
        "found, when",
        "type I: whether",
        "when",
        "either",
        "bias, whether",
        "bias, when",
        "ten at risk until",
    ];
    let row = |r: &super::power::Row| {
        let sizes = [
            or_dash(r.width[0], points),
            or_dash(r.width[1], time),
            or_dash(r.detectable[0], points),
            or_dash(r.detectable[1], time),
        ];
        let type_one = [r.type_one[0], r.type_one[1], r.type_one_either].map(|t| or_dash(t, per_cent));
        let bias = [or_dash(r.bias[0], points), or_dash(r.bias[1], time), or_dash(r.bears, time)];
        [grouped(r.n)].into_iter().chain(sizes).chain(type_one).chain(bias).collect()
    };
    (names, found.rows.iter().map(row).collect())
}

/// Sentences on the patients needed and on what more of either buys.
pub(super) fn conclusions(found: &Power) -> Vec<String> {
    let d = &found.design;
    let names = ["whether", "when", "the difference in RMST"];
    let mut out = Vec::new();
    for (k, (name, needed)) in names.into_iter().zip(found.needed).enumerate() {
        if found.rows[0].power[k].is_none() {
            continue;
        }
        out.push(match needed {
            Some(f) => format!(
                "Power {} for {name}: about {:.0} patients (Monte Carlo standard error {:.0}).",
                d.power, f.value, f.mc_se
            ),
            None => format!("Power {} for {name}: not crossed between the sizes asked for.", d.power),
        });
    }
    let gain = |s: Share| format!("{:+.1} ({:.1})", 100.0 * s.value, 100.0 * s.mc_se);
    let g = &found.gains;
    out.push(format!(
        "With {} patients, {} more of follow-up brings {} points of power for whether and {} for when.",
        grouped(g.n),
        d.more_time,
        gain(g.time[0]),
        gain(g.time[1])
    ));
    out.push(format!(
        "With {} patients, {} more bring {} points of power for whether and {} for when.",
        grouped(g.n),
        grouped(d.more_patients),
        gain(g.patients[0]),
        gain(g.patients[1])
    ));
    out
}

/// What a design comes to, in words and two tables.
pub fn text(found: &Power) -> String {
    let d = &found.design;
    let mut out = format!("Assumed:\n  {}\n  Seed {}.\n\n", assumptions(d).join("\n  "), d.seed);
    let grid = |(names, rows): (Vec<&'static str>, Vec<Vec<String>>)| {
        let mut grid = Grid::new(0, &names);
        rows.into_iter().for_each(|r| {
            grid.row(r);
        });
        grid.render()
    };
    out += "Power in per cent (Monte Carlo standard error in points):\n";
    out += &grid(power_table(found));
    out += &format!(
        "\nWidth of {:.0} % intervals (points, time), smallest effect found with power {}, chance of a finding without an effect:\n",
        100.0 * (1.0 - d.alpha),
        d.power
    );
    out += &grid(further_table(found));
    out += "\n";
    conclusions(found).iter().for_each(|c| out += &format!("{c}\n"));
    out
}
