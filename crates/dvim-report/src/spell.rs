//! The faces of dvim: how the command line, Python and R write settings and actions.

use dvim::internal::phrase::{Action, Face, Value};
use dvim::internal::setting::{Kind, Setting, Topic};
use serde::Serialize;

/// The command line: `--group-size 50`.
pub struct CommandLine;

/// Python: `group_size=50`.
pub struct Python;

/// R: `group_size = 50`.
pub struct R;

/// The flag of a setting.
pub fn flag(setting: Setting) -> String {
    format!("--{}", setting.name())
}

/// The argument of a setting in Python and R. A switch that leaves something out turns it off there.
pub fn argument(setting: Setting) -> String {
    let name = setting.name().replace('-', "_");
    match name.strip_prefix("no_") {
        Some(rest) => rest.to_string(),
        None => name,
    }
}

impl Face for CommandLine {
    fn setting(&self, setting: Setting, value: Option<&Value>) -> String {
        match value {
            Some(value) => format!("{} {}", flag(setting), shell_word(&value.to_string())),
            None => flag(setting),
        }
    }

    fn action(&self, action: Action) -> String {
        match action {
            Action::Fit => "`dvim fit`".into(),
            Action::Rerun => "`dvim rerun`".into(),
        }
    }
}

impl Face for Python {
    fn setting(&self, setting: Setting, value: Option<&Value>) -> String {
        let name = argument(setting);
        match (value, setting.kind()) {
            (None, Kind::Switch) if setting.name().starts_with("no-") => format!("{name}=False"),
            (None, Kind::Switch) => format!("{name}=True"),
            (None, _) => format!("{name}="),
            (Some(value), kind) => format!("{name}={}", python_value(value, kind)),
        }
    }

    fn action(&self, action: Action) -> String {
        match action {
            Action::Fit => "`dvim.fit`".into(),
            Action::Rerun => "`python -m dvim rerun`".into(),
        }
    }
}

fn python_value(value: &Value, kind: Kind) -> String {
    match value {
        Value::Number(x) => x.to_string(),
        Value::Pair(key, value) => format!("{{{}: {}}}", quoted(key), python_value(value, Kind::Label)),
        // A label is compared as files write it, so a number needs no quotes.
        Value::Text(text) if kind == Kind::Label && is_number(text) => text.clone(),
        Value::Text(text) => quoted(text),
    }
}

/// Whether a text is written as a plain number, which Python and R would write back in the same way.
fn is_number(text: &str) -> bool {
    text.parse::<i64>().is_ok_and(|n| n.to_string() == text)
}

/// A text in double quotes, as JSON, Python and R write it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl Face for R {
    fn setting(&self, setting: Setting, value: Option<&Value>) -> String {
        if let Some(place) = in_formula(setting) {
            return match value {
                Some(value) if setting == Setting::Drop => format!("`- {}` in the formula", r_name(&value.to_string())),
                Some(value) => format!("{} in {place}", r_name(&value.to_string())),
                None => place.into(),
            };
        }
        let name = argument(setting);
        match (value, setting.kind()) {
            (None, Kind::Switch) if setting.name().starts_with("no-") => format!("{name} = FALSE"),
            (None, Kind::Switch) => format!("{name} = TRUE"),
            (None, _) => format!("`{name}`"),
            (Some(value), kind) => format!("{name} = {}", r_value(value, kind)),
        }
    }

    fn action(&self, action: Action) -> String {
        match action {
            Action::Fit => "`dvim()`".into(),
            Action::Rerun => "`update()`".into(),
        }
    }
}

/// Where the formula of `dvim()` says what other faces have an argument for.
fn in_formula(setting: Setting) -> Option<&'static str> {
    match setting {
        Setting::Time | Setting::Start | Setting::End | Setting::Event | Setting::Entry => Some("`Surv()`"),
        Setting::Covariates => Some("the formula"),
        Setting::Drop => Some("a minus in the formula"),
        _ => None,
    }
}

fn r_value(value: &Value, kind: Kind) -> String {
    match value {
        Value::Number(x) => x.to_string(),
        Value::Pair(key, value) => format!("list({} = {})", r_name(key), r_value(value, Kind::Label)),
        Value::Text(text) if kind == Kind::Label && is_number(text) => text.clone(),
        Value::Text(text) => quoted(text),
    }
}

/// A name as R takes it: in backticks where it is none by R's rules.
fn r_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    match name.chars().next() {
        Some(first) if (first.is_ascii_alphabetic() || first == '.') && name.chars().all(plain) => name.into(),
        _ => format!("`{name}`"),
    }
}

/// A word as a POSIX shell takes it.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,+-@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A setting of the list, for faces that are not written in Rust.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingRecord {
    /// Its name, with hyphens.
    pub name: &'static str,
    /// Its argument in Python and R.
    pub argument: String,
    /// What it is about: `columns`, `method` or `command`.
    pub topic: &'static str,
    /// What its value is.
    pub kind: &'static str,
    /// The words that its value can be.
    pub words: Vec<&'static str>,
    /// Its value where none is given, if that is one value.
    pub default: Option<&'static str>,
}

impl SettingRecord {
    /// Every setting.
    pub fn all() -> Vec<SettingRecord> {
        Setting::ALL.iter().map(|s| SettingRecord::of(*s)).collect()
    }

    fn of(setting: Setting) -> SettingRecord {
        SettingRecord {
            name: setting.name(),
            argument: argument(setting),
            topic: match setting.topic() {
                Topic::Columns => "columns",
                Topic::Method => "method",
                Topic::Command => "command",
            },
            kind: match setting.kind() {
                Kind::Column => "column",
                Kind::Columns => "columns",
                Kind::Label => "label",
                Kind::Pairs => "pairs",
                Kind::Number => "number",
                Kind::Count => "count",
                Kind::Word(_) => "word",
                Kind::NumberOr(_) => "number or word",
                Kind::Text => "text",
                Kind::Path => "path",
                Kind::Switch => "switch",
            },
            words: setting.words().iter().map(|(word, _)| *word).collect(),
            default: setting.default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dvim::internal::phrase::Phrase;
    use dvim::internal::setting::Setting::{
        By, Caliper, Control, Drop, Exact, ExcludeSelf, GroupSize, Missing, NoAudit, TrainFraction, Treated, Where,
    };
    use dvim::phrase;

    #[test]
    fn each_face_has_its_own_words() {
        let cases: Vec<(Phrase, &str, &str, &str)> = vec![
            (phrase!["use ", GroupSize.to(50)], "use --group-size 50", "use group_size=50", "use group_size = 50"),
            (phrase![GroupSize.to("auto")], "--group-size auto", "group_size=\"auto\"", "group_size = \"auto\""),
            (
                phrase![TrainFraction.to(0.35), "."],
                "--train-fraction 0.35.",
                "train_fraction=0.35.",
                "train_fraction = 0.35.",
            ),
            (
                phrase![Missing.to("indicator")],
                "--missing indicator",
                "missing=\"indicator\"",
                "missing = \"indicator\"",
            ),
            (phrase![Treated.to("new drug")], "--treated 'new drug'", "treated=\"new drug\"", "treated = \"new drug\""),
            (
                phrase![Treated.to("it's \"B\"")],
                "--treated 'it'\\''s \"B\"'",
                "treated=\"it's \\\"B\\\"\"",
                "treated = \"it's \\\"B\\\"\"",
            ),
            (phrase![Control.to("0")], "--control 0", "control=0", "control = 0"),
            (phrase![Control.to("007")], "--control 007", "control=\"007\"", "control = \"007\""),
            (phrase![ExcludeSelf], "--exclude-self", "exclude_self=True", "exclude_self = TRUE"),
            (
                phrase!["leave out ", NoAudit],
                "leave out --no-audit",
                "leave out audit=False",
                "leave out audit = FALSE",
            ),
            (
                phrase![Caliper.to(("age", 0.2))],
                "--caliper age=0.2",
                "caliper={\"age\": 0.2}",
                "caliper = list(age = 0.2)",
            ),
            (
                phrase![Caliper.to(("age", "0.2sd"))],
                "--caliper age=0.2sd",
                "caliper={\"age\": \"0.2sd\"}",
                "caliper = list(age = \"0.2sd\")",
            ),
            (
                phrase![Where.to(("arm", "B c"))],
                "--where 'arm=B c'",
                "where={\"arm\": \"B c\"}",
                "where = list(arm = \"B c\")",
            ),
            (phrase![By.to("age:4")], "--by age:4", "by=\"age:4\"", "by = \"age:4\""),
            (phrase![Exact.to("grade")], "--exact grade", "exact=\"grade\"", "exact = \"grade\""),
            (phrase!["with ", Drop], "with --drop", "with drop=", "with a minus in the formula"),
            (phrase!["with ", Drop.to("id")], "with --drop id", "with drop=\"id\"", "with `- id` in the formula"),
            (phrase!["use ", Action::Fit], "use `dvim fit`", "use `dvim.fit`", "use `dvim()`"),
        ];
        for (phrase, shell, python, r) in cases {
            assert_eq!(phrase.spelled(&CommandLine), shell);
            assert_eq!(phrase.spelled(&Python), python);
            assert_eq!(phrase.spelled(&R), r);
        }
    }
}
