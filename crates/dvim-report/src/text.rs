//! What a person reads in a terminal. Plain text, no colour needed to understand it.

use dvim::cohort::Arm;
use dvim::overview::{ArmOverview, ColumnOverview, Overview};
use dvim::survival::Estimate;
use std::fmt::Write;

/// Columns of text, aligned: the first to the left, the others to the right.
pub struct Grid {
    rows: Vec<Vec<String>>,
    left: usize,
}

impl Grid {
    /// A grid whose first `left` columns are aligned to the left, under this header.
    pub fn new(left: usize, header: &[&str]) -> Grid {
        Grid { rows: vec![header.iter().map(|h| h.to_string()).collect()], left }
    }

    /// Adds a row.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The grid as text, each line indented by two.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| self.rows.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::from(" ");
            for (c, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[c] - cell.chars().count());
                let _ = if c < self.left { write!(line, " {cell}{pad} ") } else { write!(line, " {pad}{cell} ") };
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// A number with about four significant digits, without an exponent where that is readable.
pub fn short(x: f64) -> String {
    let magnitude = x.abs();
    if magnitude == 0.0 {
        "0".into()
    } else if !(1e-4..1e7).contains(&magnitude) {
        format!("{x:.3e}")
    } else {
        let decimals = (3 - magnitude.log10().floor() as i32).clamp(0, 6) as usize;
        let text = format!("{x:.decimals$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
    }
}

/// A share as a percentage.
pub fn percent(x: f64) -> String {
    format!("{:.1} %", 100.0 * x)
}

fn with_se(e: Estimate, scale: f64, decimals: usize) -> String {
    match e.se {
        Some(se) => format!("{:.decimals$} ± {:.decimals$}", scale * e.value, scale * se),
        None => format!("{:.decimals$}", scale * e.value),
    }
}

/// A count with thin groups of three digits.
pub fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(d);
    }
    out
}

/// What `check` says.
pub fn overview(o: &Overview) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{} rows, {} columns, horizon {}\n", grouped(o.n_rows), o.columns.len(), short(o.horizon));
    out.push_str("How each column was read\n");
    let mut grid = Grid::new(3, &["column", "part", "kind", "missing", "what it holds"]);
    grid.left = 3;
    let shown = 60;
    for c in o.columns.iter().take(shown) {
        grid.row([clip(&c.name, 32), c.role.to_string(), c.kind.to_string(), c.n_missing.to_string(), holds(c)]);
    }
    out.push_str(&left_last(&grid));
    if o.columns.len() > shown {
        let _ = writeln!(out, "  … and {} more columns (all of them with --json)", o.columns.len() - shown);
    }
    if let Some([control, treated]) = &o.arms {
        out.push_str("\nThe two arms\n");
        let mut grid = Grid::new(1, &["", "treated", "control"]);
        let mut line = |name: &str, f: &dyn Fn(&ArmOverview) -> String| grid.row([name.to_string(), f(treated), f(control)]);
        line("label", &|a| clip(&a.label, 24));
        line("units", &|a| grouped(a.n_units));
        line("events before the horizon", &|a| format!("{} ({})", grouped(a.n_events), percent(a.n_events as f64 / a.n_units as f64)));
        line("censored before the horizon", &|a| format!("{} ({})", grouped(a.n_censored), percent(a.n_censored as f64 / a.n_units as f64)));
        line("at risk at the horizon", &|a| grouped(a.n_at_risk));
        line("median follow-up", &|a| a.median_follow_up.map_or("not reached".into(), short));
        line("last recorded time", &|a| short(a.last_time));
        out.push_str(&grid.render());
        out.push_str("\nKaplan–Meier of each arm as a whole, with standard errors (not adjusted for covariates)\n");
        let mut grid = Grid::new(1, &["", "treated", "control", "difference"]);
        let difference = |f: &dyn Fn(&ArmOverview) -> Option<Estimate>, scale: f64, decimals: usize| -> [String; 3] {
            let show = |e: Option<Estimate>| e.map_or("undefined: no event".into(), |e| with_se(e, scale, decimals));
            let (t, c) = (f(treated), f(control));
            let d = t.zip(c).map(|(t, c)| Estimate {
                value: t.value - c.value,
                se: t.se.zip(c.se).map(|(a, b)| f64::hypot(a, b)),
            });
            [show(t), show(c), show(d)]
        };
        let mut line = |name: &str, cells: [String; 3]| grid.row([name.to_string()].into_iter().chain(cells));
        let decimals = decimals_for(o.horizon);
        line("cure probability S(H), %", difference(&|a| Some(a.survival), 100.0, 2));
        line("restricted mean time to H", difference(&|a| Some(a.restricted_mean), 1.0, decimals));
        line("mean event time (CMET)", difference(&|a| a.mean_event_time, 1.0, decimals));
        out.push_str(&grid.render());
        for a in [treated, control].into_iter().filter(|a| a.carried_forward) {
            let _ = writeln!(out, "  In the {} arm nobody is at risk at the horizon: its last value is carried forward.", a.arm.name());
        }
    }
    out.push('\n');
    if o.problems.is_empty() {
        out.push_str("No problem found.\n");
    }
    out
}

fn decimals_for(horizon: f64) -> usize {
    (3.0 - horizon.log10()).ceil().clamp(1.0, 6.0) as usize
}

/// Renders a grid whose last column is free text, aligned to the left.
fn left_last(grid: &Grid) -> String {
    let last = grid.rows.iter().map(Vec::len).max().unwrap_or(1) - 1;
    let width = grid.rows.iter().filter_map(|r| r.get(last)).map(|s| s.chars().count()).max().unwrap_or(0);
    let mut padded = Grid { rows: grid.rows.clone(), left: grid.left };
    for row in &mut padded.rows {
        if let Some(cell) = row.get_mut(last) {
            *cell = format!("{cell}{}", " ".repeat(width - cell.chars().count()));
        }
    }
    padded.render()
}

fn holds(c: &ColumnOverview) -> String {
    if let Some([low, mean, high]) = c.range {
        format!("{} to {}, mean {}", short(low), short(high), short(mean))
    } else if c.n_levels > 0 {
        let shown: Vec<String> = c.levels.iter().take(4).map(|(l, n)| format!("{} ({n})", clip(l, 20))).collect();
        let more = if c.n_levels > 4 { format!(", … {} levels", c.n_levels) } else { String::new() };
        format!("{}{more}", shown.join(", "))
    } else {
        String::new()
    }
}

/// A text of at most `most` characters.
pub fn clip(text: &str, most: usize) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.chars().count() <= most { clean } else { clean.chars().take(most - 1).chain(['…']).collect() }
}

/// "treated" first: the order in which a reader expects the arms.
pub const READING_ORDER: [Arm; 2] = [Arm::Treated, Arm::Control];
