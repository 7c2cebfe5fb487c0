//! Small plots of letters, for terminals that can show them.

use crate::names::Names;
use crate::text::{READING_ORDER, percent, short};
use dvim::internal::cohort::{Arm, Cohort};
use dvim::internal::phrase::harmless;
use dvim::internal::survival::SurvivalCurve;
use std::borrow::Cow;
use std::fmt::Write;

/// What a terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Braille and block letters: a terminal with UTF-8.
    pub plots: bool,
    /// Colours: a terminal, and NO_COLOR is not set.
    pub colour: bool,
}

/// A text in which nothing but our own colours commands the terminal: names and ids come from files.
pub fn words(text: &str) -> Cow<'_, str> {
    if harmless_lines(text).is_none() {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let colour = COLOURS.iter().find(|c| rest.starts_with(**c));
        let end = match colour {
            Some(colour) => colour.len(),
            // Up to the next colour; an escape that begins none is taken alone.
            None => rest.char_indices().skip(1).find(|(_, c)| *c == '\x1b').map_or(rest.len(), |(i, _)| i),
        };
        let (piece, after) = rest.split_at(end);
        match colour {
            Some(colour) => out.push_str(colour),
            None => out.push_str(&harmless_lines(piece).unwrap_or_else(|| piece.to_string())),
        }
        rest = after;
    }
    out.into()
}

/// Every line of a text without characters that command a terminal; `None` where there are none.
fn harmless_lines(text: &str) -> Option<String> {
    let lines: Vec<Cow<'_, str>> = text.split('\n').map(harmless).collect();
    lines.iter().any(|l| matches!(l, Cow::Owned(_))).then(|| lines.join("\n"))
}

/// The escapes that we write ourselves: blue, yellow, and the end of either.
const COLOURS: [&str; 3] = ["\x1b[34m", "\x1b[33m", "\x1b[0m"];

/// Letters across and up; each holds 2 × 4 dots.
const WIDTH: usize = 56;
const HEIGHT: usize = 8;

/// Bits of a braille letter, by column and row of the dot.
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// The Kaplan–Meier curves of both arms: treated solid, control dotted.
pub fn curves(cohort: &Cohort, names: &Names, terminal: Terminal) -> String {
    let horizon = cohort.horizon();
    let mut cells = [[(0u32, None); WIDTH]; HEIGHT];
    let mut plateaus = Vec::new();
    let (across, up) = (2 * WIDTH, 4 * HEIGHT);
    for arm in READING_ORDER {
        let units = cohort.units_of(arm);
        let curve = SurvivalCurve::of_outcomes(cohort.outcomes(&units));
        let row = |survival: f64| (((1.0 - survival) * up as f64) as usize).min(up - 1);
        let mut before = 0;
        for x in 0..across {
            let y = row(curve.before(horizon * (x + 1) as f64 / across as f64));
            for y in before.min(y)..=y {
                // The control is drawn in every other column, so that no colour is needed.
                if arm == Arm::Treated || x % 4 < 2 {
                    let cell = &mut cells[y / 4][x / 2];
                    cell.0 |= DOTS[x % 2][y % 4];
                    cell.1.get_or_insert(arm);
                }
            }
            before = y;
        }
        let survival = curve.summary(horizon).survival;
        plateaus.push((row(survival) / 4, arm, format!("{} {}", names.arm(arm), percent(survival))));
    }
    // Plateaus that share a line keep apart.
    plateaus.sort_by_key(|p| p.0);
    match &mut plateaus[..] {
        [a, b] if a.0 == b.0 && b.0 + 1 < HEIGHT => b.0 += 1,
        [a, b] if a.0 == b.0 => a.0 -= 1,
        _ => {}
    }
    let paint = |text: &str, arm: Arm| match (terminal.colour, arm) {
        (false, _) => text.to_string(),
        (true, Arm::Treated) => format!("\x1b[34m{text}\x1b[0m"),
        (true, Arm::Control) => format!("\x1b[33m{text}\x1b[0m"),
    };
    let mut out = String::new();
    for (y, line) in cells.iter().enumerate() {
        let label = if y == 0 {
            "100 %"
        } else if y == HEIGHT - 1 {
            "  0 %"
        } else {
            ""
        };
        let _ = write!(out, "  {label:>5} │");
        for run in line.chunk_by(|a, b| a.1 == b.1) {
            let letters: String = run.iter().map(|c| char::from_u32(0x2800 + c.0).unwrap_or(' ')).collect();
            let letters = letters.replace('\u{2800}', " ");
            out += &run[0].1.map_or(letters.clone(), |arm| paint(&letters, arm));
        }
        out.push('│');
        for (_, arm, words) in plateaus.iter().filter(|p| p.0 == y) {
            let _ = write!(out, " {}", paint(words, *arm));
        }
        out.push('\n');
    }
    let end = short(horizon);
    let _ = writeln!(out, "        0{end:>width$}", width = WIDTH + 1);
    out
}

/// A histogram of one line.
pub fn sparkline(values: &[f64], low: f64, high: f64) -> String {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const BINS: usize = 24;
    if high <= low {
        return "all alike".into();
    }
    let mut bins = [0usize; BINS];
    for &v in values.iter().filter(|v| (low..=high).contains(*v)) {
        bins[(((v - low) / (high - low) * BINS as f64) as usize).min(BINS - 1)] += 1;
    }
    let most = bins.iter().copied().max().unwrap_or(1).max(1);
    bins.iter().map(|&b| LEVELS[(b * 8).div_ceil(most)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_colours_command_the_terminal() {
        assert!(matches!(words("plain\nwords"), Cow::Borrowed(_)));
        assert_eq!(words("\x1b[34mblue\x1b[0m\nid"), "\x1b[34mblue\x1b[0m\nid");
        let hostile = "\x1b[2J\x1b]0;title\x07 \x1b[34mx\x1b[0m \u{9b}31m \u{202e}";
        assert_eq!(words(hostile), "\\u{1b}[2J\\u{1b}]0;title\\u{7} \x1b[34mx\x1b[0m \\u{9b}31m \\u{202e}");
    }
}
