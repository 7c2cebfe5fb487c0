//! What is typed into the search box: part of an id, and conditions such as `age>60 sex=f cure_effect<0`.

use crate::explorer::{Column, Explorer, Place};

/// Whom to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    All,
    Estimated,
    Flagged,
    Trained,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    MoreOrEqual,
    More,
}

/// Longer signs first.
const SIGNS: [(&str, Is); 6] = [
    (">=", Is::MoreOrEqual),
    ("<=", Is::LessOrEqual),
    ("!=", Is::NotEqual),
    ("=", Is::Equal),
    (">", Is::More),
    ("<", Is::Less),
];

impl Is {
    fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Is::Less => a < b,
            Is::LessOrEqual => a <= b,
            Is::Equal => a == b,
            Is::NotEqual => a != b,
            Is::MoreOrEqual => a >= b,
            Is::More => a > b,
        }
    }
}

enum Condition {
    /// The id has this in it.
    Id(String),
    Number(Column, Is, f64),
    /// Whether the word is this one, or is not.
    Word(Column, bool, String),
}

/// Conditions that all must hold.
pub struct Filter {
    show: Show,
    conditions: Vec<Condition>,
}

impl Filter {
    /// Reads what was typed.
    pub fn read(explorer: &Explorer<'_>, show: &str, text: &str) -> Result<Filter, String> {
        let show = match show {
            "all" => Show::All,
            "estimated" => Show::Estimated,
            "flagged" => Show::Flagged,
            "trained" => Show::Trained,
            other => return Err(format!("`{other}` cannot be shown: use all, estimated, flagged or trained")),
        };
        let conditions = words(text)?.iter().map(|w| condition(explorer, w)).collect::<Result<_, _>>()?;
        Ok(Filter { show, conditions })
    }

    /// Whether a unit passes.
    pub fn passes(&self, explorer: &Explorer<'_>, unit: usize) -> bool {
        let place = explorer.place(unit);
        let shown = match self.show {
            Show::All => true,
            Show::Estimated => place != Place::Trained,
            Show::Flagged => !explorer.flags(unit).is_empty(),
            Show::Trained => place == Place::Trained,
        };
        shown
            && self.conditions.iter().all(|c| match c {
                Condition::Id(part) => explorer.cohort.ids().text(unit).to_lowercase().contains(part),
                Condition::Number(column, is, value) => {
                    explorer.key(*column, unit).is_some_and(|v| is.holds(v, *value))
                }
                Condition::Word(column, equal, word) => {
                    explorer.word(*column, unit).is_some_and(|w| (w.to_lowercase() == *word) == *equal)
                }
            })
    }

    /// The unit whose id is what was searched for.
    pub fn exact(&self, explorer: &Explorer<'_>) -> Option<usize> {
        match self.conditions.as_slice() {
            [Condition::Id(id)] => explorer.cohort.unit(id).ok(),
            _ => None,
        }
    }
}

/// Splits at spaces outside of quotes.
fn words(text: &str) -> Result<Vec<String>, String> {
    let (mut out, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => out.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    if quoted {
        return Err("a quotation mark is not closed".into());
    }
    out.push(word);
    Ok(out.into_iter().filter(|w| !w.is_empty()).collect())
}

fn condition(explorer: &Explorer<'_>, word: &str) -> Result<Condition, String> {
    let first = SIGNS.iter().filter_map(|(sign, is)| Some((word.find(sign)?, sign.len(), *is)));
    let Some((at, length, is)) = first.min_by_key(|(at, length, _)| (*at, std::cmp::Reverse(*length))) else {
        return Ok(Condition::Id(word.to_lowercase()));
    };
    let (name, value) = (word[..at].trim(), word[at + length..].trim());
    let Some(column) = explorer.column(name) else {
        let schema = explorer.cohort.schema().iter().map(|c| c.label());
        let known: Vec<String> = ["id", "treatment", "time", "event", "cure_effect", "time_effect"]
            .map(String::from)
            .into_iter()
            .chain(schema)
            .collect();
        let near = dvim::internal::error::nearest_names(name, known.iter().map(String::as_str));
        let hint = if near.is_empty() { String::new() } else { format!(" (did you mean `{}`?)", near.join("` or `")) };
        return Err(format!("there is no column `{name}`{hint}"));
    };
    let is_word = explorer.word(column, 0).is_some();
    match (is, is_word) {
        (Is::Equal | Is::NotEqual, true) => Ok(Condition::Word(column, is == Is::Equal, value.to_lowercase())),
        (_, true) => Err(format!("`{name}` is not a number: it can be asked for with = or !=")),
        (_, false) => match value.parse::<f64>() {
            Ok(v) if !v.is_nan() => Ok(Condition::Number(column, is, v)),
            _ => Err(format!("`{value}` is not a number, and `{name}` is")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together() {
        assert_eq!(words("a  b=\"c d\" e").unwrap(), ["a", "b=c d", "e"]);
        assert!(words("\"a").is_err());
    }
}
