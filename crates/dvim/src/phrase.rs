//! Text that names settings and actions as data, so that each face of dvim spells them in its own language.
//!
//! ```
//! use dvim::phrase;
//! use dvim::internal::phrase::Fields;
//! use dvim::internal::setting::Setting::{Drop, GroupSize};
//!
//! let remedy = phrase!["use ", GroupSize.to(50), ", or leave columns out with ", Drop];
//! assert_eq!(remedy.spelled(&Fields), "use `group_size: 50`, or leave columns out with `drop`");
//! ```

use crate::setting::Setting;
use std::borrow::Cow;
use std::fmt;

/// A piece of a [`Phrase`].
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Words that are the same in every face.
    Text(Cow<'static, str>),
    /// A setting, with a value where one is proposed.
    Setting(Setting, Option<Value>),
    /// Something to do.
    Action(Action),
}

/// The value that a phrase gives a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A word, a label, a column.
    Text(String),
    /// A column with a value or a width.
    Pair(String, Box<Value>),
}

/// Something that a user can do with dvim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Estimate both effects of a table.
    Fit,
    /// Repeat a run from its summary.
    Rerun,
}

/// How one face of dvim writes settings and actions.
pub trait Face {
    /// A setting, with a value where one is given.
    fn setting(&self, setting: Setting, value: Option<&Value>) -> String;
    /// An action.
    fn action(&self, action: Action) -> String;
}

/// Text in pieces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phrase(Vec<Piece>);

/// Makes a [`Phrase`] of its pieces: texts, settings, settings with values, actions.
#[doc(hidden)]
#[macro_export]
macro_rules! phrase {
    ($($piece:expr),+ $(,)?) => { $crate::internal::phrase::Phrase::default()$(.and($piece))+ };
}

impl Phrase {
    /// The phrase with one more piece.
    pub fn and(mut self, piece: impl Into<Piece>) -> Phrase {
        let piece = piece.into();
        if piece != Piece::Text("".into()) {
            self.0.push(piece);
        }
        self
    }

    /// The phrase followed by another.
    pub fn followed_by(mut self, other: impl Into<Phrase>) -> Phrase {
        self.0.extend(other.into().0);
        self
    }

    /// The settings, with commas between them.
    pub fn listed(settings: &[Setting]) -> Phrase {
        let comma = |i: usize| if i == 0 { "" } else { ", " };
        settings.iter().enumerate().fold(Phrase::default(), |out, (i, s)| out.and(comma(i)).and(*s))
    }

    /// The pieces in their order.
    pub fn pieces(&self) -> &[Piece] {
        &self.0
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it names this setting, with a value or without.
    pub fn names(&self, setting: Setting) -> bool {
        self.0.iter().any(|p| matches!(p, Piece::Setting(s, _) if *s == setting))
    }

    /// Whether it proposes this piece, such as `GroupSize.to(50)`.
    pub fn has(&self, piece: &Piece) -> bool {
        self.0.contains(piece)
    }

    /// Its words in a face.
    pub fn spelled(&self, face: &dyn Face) -> String {
        let spell = |piece: &Piece| match piece {
            Piece::Text(text) => text.to_string(),
            Piece::Setting(setting, value) => face.setting(*setting, value.as_ref()),
            Piece::Action(action) => face.action(*action),
        };
        bounded(harmless(&self.0.iter().map(spell).collect::<String>())).into_owned()
    }
}

/// Characters of a message, of which the middle is left out where there are more: names come from files, and may be
/// megabytes long.
const MOST_CHARS: usize = 2_000;

/// Characters of a name in a message.
const MOST_OF_NAME: usize = 80;

/// A text of bounded length.
pub fn bounded(text: Cow<'_, str>) -> Cow<'_, str> {
    shortened(text, MOST_CHARS)
}

/// A name as a message shows it: harmless, and of bounded length.
pub fn shown(name: &str) -> Cow<'_, str> {
    shortened(harmless(name), MOST_OF_NAME)
}

fn shortened(text: Cow<'_, str>, most: usize) -> Cow<'_, str> {
    let count = if text.len() <= most { 0 } else { text.chars().count() };
    if count <= most {
        return text;
    }
    let end = (most - 1) / 2;
    let head = text.chars().take(most - 1 - end);
    head.chain(['…']).chain(text.chars().skip(count - end)).collect()
}

/// A text with every character escaped that could command a terminal or turn the direction of a line. Names and ids
/// come from files, and a message shows them.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let is_bad = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(is_bad) {
        return text.into();
    }
    let escaped = |c: char| if is_bad(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}

impl Setting {
    /// The setting with a value: a piece of a phrase, such as "use `group_size: 50`".
    pub fn to(self, value: impl Into<Value>) -> Piece {
        Piece::Setting(self, Some(value.into()))
    }

    /// What the setting does, in a line or two.
    pub fn help(self) -> Phrase {
        let mut out = Phrase::default();
        let mut rest = self.help_text().trim_start();
        while let Some((before, (name, after))) = rest.split_once('{').and_then(|(b, r)| Some((b, r.split_once('}')?)))
        {
            out = out.and(before);
            out = match Setting::named(name) {
                Some(other) => out.and(other),
                None => out.and(name),
            };
            rest = after;
        }
        out.and(rest)
    }
}

/// The face for a reader of Rust: settings by the names of their fields.
///
/// A phrase has no `Display`, so that no other face can print these words by mistake.
pub struct Fields;

impl Face for Fields {
    fn setting(&self, setting: Setting, value: Option<&Value>) -> String {
        let name = setting.name().replace('-', "_");
        match value {
            Some(value) => format!("`{name}: {value}`"),
            None => format!("`{name}`"),
        }
    }

    fn action(&self, action: Action) -> String {
        match action {
            Action::Fit => "`analysis::run`".into(),
            Action::Rerun => "the same options".into(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(x) => write!(f, "{x}"),
            Value::Text(text) => f.write_str(text),
            Value::Pair(key, value) => write!(f, "{key}={value}"),
        }
    }
}

impl From<&'static str> for Piece {
    fn from(text: &'static str) -> Piece {
        Piece::Text(text.into())
    }
}

impl From<String> for Piece {
    fn from(text: String) -> Piece {
        Piece::Text(text.into())
    }
}

impl From<Setting> for Piece {
    fn from(setting: Setting) -> Piece {
        Piece::Setting(setting, None)
    }
}

impl From<Action> for Piece {
    fn from(action: Action) -> Piece {
        Piece::Action(action)
    }
}

impl<P: Into<Piece>> From<P> for Phrase {
    fn from(piece: P) -> Phrase {
        Phrase::default().and(piece)
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Value {
        Value::Number(x)
    }
}

impl From<usize> for Value {
    fn from(n: usize) -> Value {
        Value::Number(n as f64)
    }
}

impl From<i32> for Value {
    fn from(n: i32) -> Value {
        Value::Number(n.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_string())
    }
}

impl<V: Into<Value>> From<(&str, V)> for Value {
    fn from((key, value): (&str, V)) -> Value {
        Value::Pair(key.to_string(), Box::new(value.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_other_settings() {
        let help = Setting::Treatment.help();
        assert_eq!(help.spelled(&Fields), "The arm: two values, or more with `treated` and `control`");
        assert!(help.names(Setting::Control) && !help.names(Setting::Drop));
    }

    #[test]
    fn nothing_commands_a_terminal() {
        let said = phrase!["the label `\u{1b}[2Jno\u{202e}` of ", Setting::Treated.to("a\nb")].spelled(&Fields);
        assert_eq!(said, "the label `\\u{1b}[2Jno\\u{202e}` of `treated: a\\nb`");
        assert_eq!(harmless("größe µ — …"), "größe µ — …");
    }

    #[test]
    fn empty_pieces_are_left_out() {
        assert!(Phrase::from("").is_empty());
        assert_eq!(phrase!["", Setting::Drop, ""].pieces(), [Setting::Drop.into()]);
        assert_eq!(Phrase::listed(&[Setting::Start, Setting::End]).spelled(&Fields), "`start`, `end`");
    }
}
