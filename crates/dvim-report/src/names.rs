//! What things are called in everything that a person reads: the arms, the time, the horizon, the event, the covariates
//! and their levels. Made from the labels of a run; where it has none, from its table.

use crate::record::Summary;
use crate::text::short;
use dvim::internal::cohort::{Arm, Cohort, Labels};
use dvim::internal::estimand::Estimand;
use dvim::internal::phrase::harmless;
use dvim::internal::schema::Covariate;

/// Values of a treatment column that say no more than which arm it is.
const CODES: [&str; 10] = ["0", "1", "2", "true", "false", "yes", "no", "treated", "treatment", "control"];

/// Days from which on a horizon in days is said in years.
const YEAR: f64 = 365.0;

/// The names of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Names {
    treated: String,
    control: String,
    /// The unit of time in words; empty where it is not known.
    pub unit: String,
    /// The horizon with its unit, such as `5 years`; empty where there is none.
    horizon: String,
    is_competing: bool,
    labels: Labels,
}

impl Default for Names {
    fn default() -> Names {
        Names {
            treated: "treatment".into(),
            control: "control".into(),
            unit: String::new(),
            horizon: String::new(),
            is_competing: false,
            labels: Labels::default(),
        }
    }
}

impl Names {
    /// The names of a run. A unit of time that is given counts more than that of the run.
    pub fn of(summary: &Summary, time_unit: Option<&str>) -> Names {
        let labels = &summary.roles.asked.labels;
        let days = summary.roles.asked.dates.as_ref().map(|_| "days");
        let unit = time_unit.or(labels.time_unit.as_deref()).or(days).unwrap_or_default().trim().to_string();
        let arm = |given: &Option<String>, label: &str, usual: &str| {
            let label = if CODES.contains(&label.to_ascii_lowercase().as_str()) { usual } else { label };
            harmless(given.as_deref().unwrap_or(label)).into_owned()
        };
        // A horizon in words was written for the unit of the run.
        let words = labels.horizon.clone().filter(|_| time_unit.is_none());
        Names {
            treated: arm(&labels.treated, &summary.roles.labels.treated, "treatment"),
            control: arm(&labels.control, &summary.roles.labels.control, "control"),
            horizon: words.unwrap_or_else(|| horizon_words(summary.horizon, &unit)),
            unit,
            is_competing: summary.roles.asked.cause.is_some(),
            labels: labels.clone(),
        }
    }

    /// An arm inside a sentence.
    pub fn arm(&self, arm: Arm) -> &str {
        match arm {
            Arm::Treated => &self.treated,
            Arm::Control => &self.control,
        }
    }

    /// An arm at the head of a column or beside a curve.
    pub fn head(&self, arm: Arm) -> String {
        capital(self.arm(arm))
    }

    /// A number of the time, with its unit: `18 days`. Without a unit, the number alone.
    pub fn time(&self, number: &str) -> String {
        match (self.unit.as_str(), number) {
            ("", _) => number.to_string(),
            (unit, "1") => format!("1 {}", unit.strip_suffix('s').unwrap_or(unit)),
            (unit, _) => format!("{number} {unit}"),
        }
    }

    /// The unit of time after a comma, or nothing.
    pub fn in_unit(&self) -> String {
        if self.unit.is_empty() { String::new() } else { format!(", {}", self.unit) }
    }

    /// `at 5 years`.
    pub fn at(&self) -> String {
        if self.horizon.is_empty() { "at the horizon".into() } else { format!("at {}", self.horizon) }
    }

    /// `within 5 years`.
    pub fn within(&self) -> String {
        match self.horizon.as_str() {
            "" => "before the horizon".into(),
            words if words.starts_with("time ") => format!("before {words}"),
            words => format!("within {words}"),
        }
    }

    /// `up to 5 years`.
    pub fn up_to(&self) -> String {
        if self.horizon.is_empty() { "up to the horizon".into() } else { format!("up to {}", self.horizon) }
    }

    /// The event inside a sentence.
    pub fn event(&self) -> String {
        match (&self.labels.event, self.is_competing) {
            (Some(event), _) => event.clone(),
            (None, false) => "the event".into(),
            (None, true) => "the event of interest".into(),
        }
    }

    /// What patients without the event are: `event-free`, `free of relapse`, `without relapse`, `cured`.
    pub fn free(&self) -> String {
        match (&self.labels.cure_word, &self.labels.event, self.is_competing) {
            (Some(word), ..) => word.clone(),
            (None, Some(event), false) => format!("free of {event}"),
            (None, None, false) => "event-free".into(),
            (None, _, true) => format!("without {}", self.event()),
        }
    }

    /// `of event-free time`, `of relapse-free time`, `without relapse`.
    pub fn free_time(&self) -> String {
        match (&self.labels.event, self.is_competing) {
            (None, false) => "of event-free time".into(),
            (Some(event), false) if !event.contains(' ') => format!("of {event}-free time"),
            _ => format!("without {}", self.event()),
        }
    }

    /// `event-free at 5 years`.
    pub fn state(&self) -> String {
        format!("{} {}", self.free(), self.at())
    }

    /// The question of the run: `Event-free at 5 years: chemotherapy against radiation`.
    pub fn question(&self) -> String {
        format!("{}: {} against {}", capital(&self.state()), self.treated, self.control)
    }

    /// What an effect is a difference in, for axes and rows: `Event-free at 5 years`, `Time to event`.
    pub fn outcome(&self, side: Estimand) -> String {
        match side {
            Estimand::Cure => capital(&self.state()),
            Estimand::Time => match &self.labels.event {
                Some(event) => format!("Time to {event}"),
                None => "Time to event".into(),
            },
        }
    }

    /// An effect with its unit, for rows and heads: `Event-free at 5 years, difference in points`.
    pub fn effect(&self, side: Estimand) -> String {
        match (side, self.unit.as_str()) {
            (Estimand::Cure, _) => format!("{}, difference in points", self.outcome(side)),
            (Estimand::Time, "") => format!("{}, difference", self.outcome(side)),
            (Estimand::Time, unit) => format!("{}, difference in {unit}", self.outcome(side)),
        }
    }

    /// What lies below and above zero of an effect.
    pub fn sides(&self, side: Estimand) -> [String; 2] {
        match side {
            Estimand::Cure => ["fewer", "more"].map(|way| format!("{way} {} with {}", self.free(), self.treated)),
            Estimand::Time => ["earlier", "later"].map(|way| format!("{way} with {}", self.treated)),
        }
    }

    /// What must be known where events of other causes compete with the event.
    pub fn competing_note(&self) -> Option<String> {
        let words = || {
            format!(
                "Events of other causes compete with {}. A patient who has one of them first counts as {}.",
                self.event(),
                self.free()
            )
        };
        self.is_competing.then(words)
    }

    /// Who the patients are, in the user's words.
    pub fn patients(&self) -> Option<&str> {
        self.labels.population.as_deref()
    }

    /// A population of averages in words: `All patients`, `Patients who had chemotherapy`, a subgroup.
    pub fn population(&self, name: &str) -> String {
        match name {
            "all" => "All patients".into(),
            "treated" => format!("Patients who had {}", self.treated),
            "control" => format!("Patients who had {}", self.control),
            subgroup => subgroup.to_string(),
        }
    }

    /// A subgroup of a covariate without the covariate's name: a level, or a range with its unit.
    pub fn subgroup(&self, column: &str, name: &str) -> String {
        let rest = name.strip_prefix(column).unwrap_or(name);
        match rest.trim_start().strip_prefix('=') {
            Some(level) => self.level(column, level.trim()),
            None => rest.trim().to_string(),
        }
    }

    /// A covariate: its label, or its column.
    pub fn covariate(&self, column: &str) -> String {
        let label = self.labels.of(column).and_then(|c| c.label.as_deref());
        harmless(label.unwrap_or(column)).into_owned()
    }

    /// A covariate with its unit: `Age, years`.
    pub fn covariate_with_unit(&self, column: &str) -> String {
        match self.labels.of(column).and_then(|c| c.unit.as_deref()) {
            Some(unit) => format!("{}, {}", self.covariate(column), harmless(unit)),
            None => self.covariate(column),
        }
    }

    /// A covariate of a cohort where covariates are listed.
    pub fn listed(&self, c: &Covariate) -> String {
        match c.label() {
            label if label == c.name => self.covariate_with_unit(&c.name),
            label => label.replacen(&c.name, &self.covariate(&c.name), 1),
        }
    }

    /// A column of numbers: a covariate, or `covariate=level`.
    pub fn column(&self, name: &str) -> String {
        match name.split_once('=') {
            Some((column, level)) if self.labels.of(column).is_some() => {
                format!("{}: {}", self.covariate(column), self.level(column, level))
            }
            _ => self.covariate_with_unit(name),
        }
    }

    /// A level of a covariate.
    pub fn level(&self, column: &str, level: &str) -> String {
        let given = self.labels.of(column).and_then(|c| c.levels.iter().find(|(raw, _)| raw == level));
        harmless(given.map_or(level, |(_, words)| words)).into_owned()
    }

    /// The place of a level among those of its covariate: by the labels, then by what levels usually mean, then as the
    /// table orders them.
    pub fn place_of_level(&self, column: &str, levels: &[&str], level: &str) -> usize {
        let given = self.labels.of(column).map_or(&[][..], |c| &c.levels);
        let mut order: Vec<&str> = levels.to_vec();
        if given.is_empty() {
            if let Some(ranks) = levels.iter().map(|l| rank(l)).collect::<Option<Vec<f64>>>() {
                let mut by_rank: Vec<(f64, &str)> = ranks.into_iter().zip(order).collect();
                by_rank.sort_by(|a, b| a.0.total_cmp(&b.0));
                order = by_rank.into_iter().map(|(_, level)| level).collect();
            }
        } else {
            let place = |l: &&str| given.iter().position(|(raw, _)| raw == l).unwrap_or(given.len());
            order.sort_by_key(place);
        }
        order.iter().position(|l| *l == level).unwrap_or(order.len())
    }

    /// A sentence of the engine with the arms by their names: the engine says `the treated arm` and `the control arm`.
    pub fn spoken(&self, words: &str) -> String {
        let mut out = words.to_string();
        for (plain, name, usual) in [("treated", &self.treated, "treatment"), ("control", &self.control, "control")] {
            if name != usual {
                out = out.replace(&format!("the {plain} arm"), &format!("the {name} arm"));
            }
        }
        out
    }
}

/// The name of an arm by its label in the table alone, for those who have no summary.
pub fn arm_name(cohort: &Cohort, arm: Arm) -> String {
    let label = cohort.label(arm);
    let usual = if arm == Arm::Treated { "Treatment" } else { "Control" };
    if CODES.contains(&label.to_ascii_lowercase().as_str()) { usual.into() } else { label.to_string() }
}

/// With a capital letter.
pub fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |c| c.to_uppercase().chain(letters).collect())
}

/// A horizon in words: in years where days or months make whole years, else in its own unit.
fn horizon_words(horizon: f64, unit: &str) -> String {
    let years = match unit.to_ascii_lowercase().as_str() {
        "days" | "day" | "d" => (horizon / YEAR).round(),
        "months" | "month" => (horizon / 12.0).round(),
        _ => 0.0,
    };
    let is_whole = match unit.to_ascii_lowercase().as_str() {
        // 365 or 365.25 days to the year.
        "days" | "day" | "d" => (YEAR * years..=366.0 * years).contains(&horizon),
        _ => horizon == 12.0 * years,
    };
    match () {
        () if years >= 1.0 && is_whole => {
            if years == 1.0 {
                "1 year".into()
            } else {
                format!("{years} years")
            }
        }
        () if unit.is_empty() => format!("time {}", short(horizon)),
        () if horizon == 1.0 => format!("1 {}", unit.strip_suffix('s').unwrap_or(unit)),
        () => format!("{} {unit}", short(horizon)),
    }
}

/// Words that have an order among themselves, in that order.
const SCALES: [&[&str]; 6] = [
    &["no", "yes"],
    &["none", "minimal", "mild", "slight", "moderate", "severe", "very severe"],
    &["very low", "low", "medium", "middle", "moderate", "intermediate", "high", "very high"],
    &["tiny", "small", "medium", "large", "huge"],
    &["never", "former", "ex", "past", "current"],
    &["early", "intermediate", "late", "advanced"],
];

const ROMAN: [&str; 8] = ["i", "ii", "iii", "iv", "v", "vi", "vii", "viii"];

/// Where a level stands, by a number that it begins with, a Roman numeral or a word of a scale.
fn rank(level: &str) -> Option<f64> {
    let word = level.trim().to_ascii_lowercase();
    let last = word.rsplit([' ', '_', '-']).next().unwrap_or(&word);
    if let Some(at) = ROMAN.iter().position(|r| *r == last) {
        return Some(at as f64);
    }
    for (k, scale) in SCALES.iter().enumerate() {
        if let Some(at) = scale.iter().position(|w| *w == word) {
            return Some((100 * k + at) as f64);
        }
    }
    let digits = word.trim_start_matches(['<', '>', '=', '≤', '≥', ' ']);
    let end = digits.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(digits.len());
    let number: f64 = digits[..end].parse().ok()?;
    Some(if word.starts_with('<') { number - 0.5 } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dvim::internal::cohort::CovariateLabel;

    #[test]
    fn a_horizon_is_said_in_years_where_it_is_years() {
        for (horizon, unit, words) in [
            (3650.0, "days", "10 years"),
            (1826.25, "days", "5 years"),
            (365.0, "days", "1 year"),
            (800.0, "days", "800 days"),
            (60.0, "months", "5 years"),
            (30.0, "months", "30 months"),
            (5.0, "years", "5 years"),
            (1.0, "years", "1 year"),
            (800.0, "", "time 800"),
        ] {
            assert_eq!(horizon_words(horizon, unit), words);
        }
    }

    #[test]
    fn levels_have_an_order() {
        let names = Names::default();
        let ordered = |levels: &[&str]| {
            let mut out = levels.to_vec();
            out.sort_by_key(|l| names.place_of_level("x", levels, l));
            out.join(" ")
        };
        assert_eq!(ordered(&["high", "low", "medium"]), "low medium high");
        assert_eq!(ordered(&["II", "III", "I"]), "I II III");
        assert_eq!(ordered(&["10-19", "<10", "20+"]), "<10 10-19 20+");
        assert_eq!(ordered(&["b", "a"]), "b a", "the table's own order, where nothing is known");
        let labels = Labels {
            covariates: vec![CovariateLabel {
                column: "x".into(),
                label: Some("Donor".into()),
                unit: None,
                levels: vec![("s".into(), "sibling".into()), ("h".into(), "haploidentical".into())],
            }],
            ..Labels::default()
        };
        let names = Names { labels, ..Names::default() };
        assert_eq!(names.place_of_level("x", &["h", "s"], "s"), 0);
        assert_eq!(names.column("x=h"), "Donor: haploidentical");
        assert_eq!(names.subgroup("x", "x = s"), "sibling");
    }

    #[test]
    fn events_of_other_causes_are_no_cure() {
        let names = Names { is_competing: true, horizon: "5 years".into(), ..Names::default() };
        assert_eq!(names.state(), "without the event of interest at 5 years");
        assert!(names.competing_note().is_some() && Names::default().competing_note().is_none());
    }
}
