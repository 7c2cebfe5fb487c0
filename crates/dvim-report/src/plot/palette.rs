//! The colours: one table for figures and pages, light and dark.
//!
//! Treated and control differ in lightness by more than 25 L* units in both themes, so they survive
//! greyscale print; every series also has its own dash and marker.

/// A role that a colour plays. Figures name roles, never colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Text,
    Muted,
    Axis,
    Grid,
    Wash,
    Paper,
    Treated,
    Control,
    ControlText,
    OnControl,
    Cure,
    Time,
    TimeText,
    Green,
    Purple,
    Sky,
    Grey,
}

/// Role, name of its CSS variable, colour on light paper, colour on dark paper.
const TABLE: [(Ink, &str, &str, &str); 17] = [
    (Ink::Text, "ink", "#1b2230", "#e6e9ef"),
    (Ink::Muted, "muted", "#56606e", "#a9b3c1"),
    (Ink::Axis, "axis", "#8a93a0", "#76818f"),
    (Ink::Grid, "grid", "#e5e8ed", "#2a313c"),
    (Ink::Wash, "wash", "#f5f6f8", "#1c222b"),
    (Ink::Paper, "paper", "#ffffff", "#14181f"),
    (Ink::Treated, "treated", "#174a84", "#93c5ff"),
    (Ink::Control, "control", "#de7a14", "#d27a28"),
    (Ink::ControlText, "control-text", "#9c4a00", "#eda05a"),
    (Ink::OnControl, "on-control", "#14181f", "#14181f"),
    (Ink::Cure, "cure", "#0d6657", "#6ad0bb"),
    (Ink::Time, "time", "#bb7cc0", "#a971cc"),
    (Ink::TimeText, "time-text", "#833f88", "#cda6e6"),
    (Ink::Green, "green", "#3f9b6e", "#58b889"),
    (Ink::Purple, "purple", "#6d2a7d", "#d0a0dd"),
    (Ink::Sky, "sky", "#63acdf", "#4f93c4"),
    (Ink::Grey, "grey", "#6b6f76", "#9ba1a9"),
];

pub(super) const N_INKS: usize = TABLE.len();

/// How series are told apart: ink, ink for its words, dash pattern (empty = solid), marker.
const SERIES: [(Ink, Ink, &str, Marker); 6] = [
    (Ink::Treated, Ink::Treated, "", Marker::Circle),
    (Ink::Control, Ink::ControlText, "7 3", Marker::Square),
    (Ink::Green, Ink::Text, "2 3", Marker::Triangle),
    (Ink::Purple, Ink::Purple, "9 3 2 3", Marker::Diamond),
    (Ink::Sky, Ink::Text, "4 2", Marker::Circle),
    (Ink::Grey, Ink::Muted, "1 2", Marker::Square),
];

/// The shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    Circle,
    Square,
    Diamond,
    Triangle,
}

/// Everything that tells one series from another.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeriesStyle {
    pub ink: Ink,
    pub text: Ink,
    pub dash: &'static str,
    pub marker: Marker,
}

/// The style of the `i`-th series; styles come round again after six.
pub(super) fn series(i: usize) -> SeriesStyle {
    let (ink, text, dash, marker) = SERIES[i % SERIES.len()];
    SeriesStyle { ink, text, dash, marker }
}

impl Ink {
    pub(super) fn index(self) -> usize {
        self as usize
    }

    pub(super) fn at(i: usize) -> Ink {
        TABLE[i].0
    }

    pub(super) fn name(self) -> &'static str {
        TABLE[self.index()].1
    }

    /// The colour on light paper: what every renderer shows that knows no CSS variables.
    pub(super) fn light(self) -> &'static str {
        TABLE[self.index()].2
    }

    /// The rule that lets a page recolour this ink, for a fill and for a stroke.
    pub(super) fn rules(self) -> String {
        let (name, light) = (self.name(), self.light());
        format!(".dvf-{name}{{fill:var(--dv-{name},{light})}}.dvs-{name}{{stroke:var(--dv-{name},{light})}}")
    }
}

/// Definitions of the CSS variables, `--dv-…: colour;`, for light or dark paper.
pub(super) fn variables(dark: bool) -> String {
    TABLE.iter().map(|&(_, name, light, night)| format!("--dv-{name}:{};", if dark { night } else { light })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CIE lightness of `#rrggbb`.
    fn lightness(hex: &str) -> f64 {
        let channel = |k: usize| {
            let c = f64::from(u8::from_str_radix(&hex[k..k + 2], 16).unwrap()) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        let y = 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
        if y > 0.008856 { 116.0 * y.cbrt() - 16.0 } else { 903.3 * y }
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let y = |l: f64| ((l + 16.0) / 116.0).powi(3);
        let (a, b) = (y(lightness(a)), y(lightness(b)));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn table_is_in_the_order_of_the_enum() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.0.index(), i);
        }
    }

    #[test]
    fn pairs_survive_greyscale() {
        for (a, b) in [(Ink::Treated, Ink::Control), (Ink::Cure, Ink::Time)] {
            let (a, b) = (TABLE[a.index()], TABLE[b.index()]);
            assert!((lightness(a.2) - lightness(b.2)).abs() > 20.0, "light {a:?} {b:?}");
            assert!((lightness(a.3) - lightness(b.3)).abs() > 15.0, "dark {a:?} {b:?}");
        }
    }

    #[test]
    fn words_are_readable_and_marks_visible_on_both_papers() {
        let paper = TABLE[Ink::Paper.index()];
        for ink in [Ink::Text, Ink::Muted, Ink::Treated, Ink::ControlText, Ink::Cure, Ink::TimeText, Ink::Purple] {
            let row = TABLE[ink.index()];
            assert!(contrast(row.2, paper.2) > 4.5 && contrast(row.3, paper.3) > 4.5, "{row:?}");
        }
        for ink in [Ink::Control, Ink::Time, Ink::Green, Ink::Grey] {
            let row = TABLE[ink.index()];
            assert!(contrast(row.2, paper.2) > 2.9 && contrast(row.3, paper.3) > 3.0, "{row:?}");
        }
    }
}
