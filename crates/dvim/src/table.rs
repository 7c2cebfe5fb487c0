//! A table as it came: named columns of equal length, before anything is known about
//! what they mean. Every face (CSV, Parquet, data frames) makes one of these.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name in the header, trimmed of surrounding white space.
    pub name: String,
    /// Its values, one for each row.
    pub values: Values,
}

/// The values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers; a missing value is NaN. Infinite values are kept: refusing them is the cohort's business.
    Number(Numbers),
    /// Anything else.
    Text(TextValues),
    /// Identifiers, read without loss (`007` stays `007`). Only the column that was asked for as ids.
    Id(Ids),
}

/// Numbers that the table owns, or that stay where a caller keeps them: a data frame is read in place.
#[derive(Clone)]
pub struct Numbers(Store);

#[derive(Clone)]
enum Store {
    Owned(Vec<f64>),
    Shared(Arc<dyn AsRef<[f64]> + Send + Sync>),
}

impl Numbers {
    /// Numbers that are kept elsewhere.
    pub fn shared(values: Arc<dyn AsRef<[f64]> + Send + Sync>) -> Numbers {
        Numbers(Store::Shared(values))
    }
}

impl Deref for Numbers {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        match &self.0 {
            Store::Owned(values) => values,
            Store::Shared(values) => (**values).as_ref(),
        }
    }
}

impl From<Vec<f64>> for Numbers {
    fn from(values: Vec<f64>) -> Numbers {
        Numbers(Store::Owned(values))
    }
}

impl FromIterator<f64> for Numbers {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Numbers {
        Numbers::from(Vec::from_iter(values))
    }
}

impl PartialEq for Numbers {
    fn eq(&self, other: &Numbers) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Text in dictionary form: few levels, many rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextValues {
    /// For each row the position of its level, or [`TextValues::MISSING`].
    pub codes: Vec<u32>,
    /// The distinct texts, in order of first appearance.
    pub levels: Vec<String>,
}

impl TextValues {
    /// The code of a missing value.
    pub const MISSING: u32 = u32::MAX;

    /// The text of a row, or `None` where it is missing.
    pub fn get(&self, row: usize) -> Option<&str> {
        self.levels.get(self.codes[row] as usize).map(String::as_str)
    }
}

/// Identifiers of rows. Order among ids: integers by value, text by bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Ids {
    /// No id column: row 1, 2, 3, … of the table.
    Rows(usize),
    /// Every id is an integer in plain decimal form.
    Integers(Vec<i64>),
    /// Anything else; an empty text is a missing id. `ends[i]` is where text `i` ends in `bytes`.
    Texts {
        /// All texts, one after the other.
        bytes: String,
        /// The end of each text.
        ends: Vec<usize>,
    },
}

impl Values {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Values::Number(v) => v.len(),
            Values::Text(t) => t.codes.len(),
            Values::Id(ids) => ids.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a row has no value.
    pub fn is_missing(&self, row: usize) -> bool {
        match self {
            Values::Number(v) => v[row].is_nan(),
            Values::Text(t) => t.get(row).is_none(),
            Values::Id(ids) => ids.text(row).is_empty(),
        }
    }

    /// Whether the value of a row is the one that `text` writes. Numbers are compared as numbers: `1.0` is `1`.
    pub fn is(&self, row: usize, text: &str) -> bool {
        match self {
            Values::Number(v) => text.parse::<f64>().is_ok_and(|x| x == v[row]),
            Values::Text(t) => t.get(row) == Some(text),
            Values::Id(ids) => ids.text(row) == text && !text.is_empty(),
        }
    }

    /// The values of these rows. Levels of text that none of them has are left out.
    pub fn select(&self, rows: &[usize]) -> Values {
        match self {
            Values::Number(v) => Values::Number(rows.iter().map(|&i| v[i]).collect()),
            Values::Text(t) => {
                let mut new_code = vec![TextValues::MISSING; t.levels.len()];
                for &i in rows {
                    if let Some(code) = new_code.get_mut(t.codes[i] as usize) {
                        *code = 0;
                    }
                }
                let mut levels = Vec::new();
                for (old, code) in new_code.iter_mut().enumerate().filter(|(_, c)| **c == 0) {
                    *code = levels.len() as u32;
                    levels.push(t.levels[old].clone());
                }
                let code = |&i: &usize| new_code.get(t.codes[i] as usize).copied().unwrap_or(TextValues::MISSING);
                Values::Text(TextValues { codes: rows.iter().map(code).collect(), levels })
            }
            Values::Id(Ids::Rows(_)) => Values::Id(Ids::Integers(rows.iter().map(|&i| i as i64 + 1).collect())),
            Values::Id(Ids::Integers(v)) => Values::Id(Ids::Integers(rows.iter().map(|&i| v[i]).collect())),
            Values::Id(ids) => Values::Id(Ids::from_texts(rows.iter().map(|&i| ids.text(i)))),
        }
    }
}

impl Ids {
    /// Number of ids.
    pub fn len(&self) -> usize {
        match self {
            Ids::Rows(n) => *n,
            Ids::Integers(v) => v.len(),
            Ids::Texts { ends, .. } => ends.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ids of these texts.
    pub fn from_texts<T: AsRef<str>>(texts: impl Iterator<Item = T>) -> Ids {
        let (mut bytes, mut ends) = (String::new(), Vec::new());
        for t in texts {
            bytes.push_str(t.as_ref());
            ends.push(bytes.len());
        }
        Ids::Texts { bytes, ends }
    }

    /// The position of an id among ids that ascend.
    pub fn position(&self, id: &str) -> Option<usize> {
        let n = self.len();
        match self {
            Ids::Rows(_) => {
                id.parse::<usize>().ok().filter(|i| (1..=n).contains(i) && i.to_string() == id).map(|i| i - 1)
            }
            Ids::Integers(v) => id.parse::<i64>().ok().and_then(|x| v.binary_search(&x).ok()),
            Ids::Texts { .. } => {
                let (mut low, mut high) = (0, n);
                while low < high {
                    let middle = (low + high) / 2;
                    if self.text(middle).as_ref() < id { low = middle + 1 } else { high = middle }
                }
                (low < n && self.text(low) == id).then_some(low)
            }
        }
    }

    /// Whether two ids are the same text.
    pub fn are_equal(&self, i: usize, j: usize) -> bool {
        match self {
            Ids::Rows(_) => i == j,
            Ids::Integers(v) => v[i] == v[j],
            Ids::Texts { .. } => self.text(i) == self.text(j),
        }
    }

    /// Id `i`, as text.
    pub fn text(&self, i: usize) -> std::borrow::Cow<'_, str> {
        match self {
            Ids::Rows(_) => (i + 1).to_string().into(),
            Ids::Integers(v) => v[i].to_string().into(),
            Ids::Texts { bytes, ends } => {
                let start = if i == 0 { 0 } else { ends[i - 1] };
                bytes[start..ends[i]].into()
            }
        }
    }
}

/// Columns of equal length with distinct names.
///
/// ```
/// use dvim::{Column, Table, Values};
///
/// let days = Column { name: "days".into(), values: Values::Number(vec![120.0, 365.0].into()) };
/// let table = Table::new(vec![days]).expect("columns of one length");
/// assert_eq!((table.n_rows(), table.columns().len()), (2, 1));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    columns: Vec<Column>,
    n_rows: usize,
}

impl Table {
    /// A table of these columns. Lengths must agree and names differ: the reader has seen to that.
    pub fn new(columns: Vec<Column>) -> Result<Table, String> {
        let n_rows = columns.first().map_or(0, |c| c.values.len());
        let mut seen = std::collections::HashSet::new();
        for c in &columns {
            if c.values.len() != n_rows {
                return Err(format!("column `{}` has {} rows, the first column has {n_rows}", c.name, c.values.len()));
            }
            if !seen.insert(c.name.as_str()) {
                return Err(format!("two columns are named `{}`", c.name));
            }
        }
        Ok(Table { columns, n_rows })
    }

    /// All columns, in the order of the header.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The same columns with these rows only.
    pub fn select(&self, rows: &[usize]) -> Table {
        let columns = self.columns.iter().map(|c| Column { name: c.name.clone(), values: c.values.select(rows) });
        Table { columns: columns.collect(), n_rows: rows.len() }
    }

    /// The same rows with one column more.
    pub(crate) fn with(mut self, column: Column) -> Table {
        self.columns.push(column);
        self
    }
}

/// A text that looks like a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateText {
    /// `2019-07-31`, as days since 1970-01-01.
    Days(i64),
    /// Day, month and year in an order that cannot be told, such as `03/04/2019`.
    Ambiguous,
    /// `2019-02-30`: written like a date, and no day of the calendar.
    Impossible,
}

/// Reads a text as a date; `None` if it does not look like one.
pub fn date(text: &str) -> Option<DateText> {
    let separator = text.chars().find(|c| !c.is_ascii_digit())?;
    if !['-', '/', '.'].contains(&separator) {
        return None;
    }
    let parts: Vec<&str> = text.split(separator).collect();
    let [a, b, c] = parts.as_slice() else { return None };
    if parts.iter().any(|p| p.is_empty() || p.len() > 4 || !p.bytes().all(|d| d.is_ascii_digit())) {
        return None;
    }
    if separator == '-' && (a.len(), b.len(), c.len()) == (4, 2, 2) {
        let number = |p: &str| p.parse::<i64>().ok();
        let (year, month, day) = (number(a)?, number(b)?, number(c)?);
        return Some(days_since_1970(year, month, day).map_or(DateText::Impossible, DateText::Days));
    }
    let is_short = |p: &str| p.len() <= 2;
    let year_last = is_short(a) && is_short(b) && (c.len() == 4 || c.len() == 2);
    let year_first = a.len() == 4 && is_short(b) && is_short(c);
    // `1.2.3` is as likely a version as a date.
    (year_first || (year_last && (c.len() == 4 || separator == '/'))).then_some(DateText::Ambiguous)
}

/// Days from 1970-01-01 in the Gregorian calendar, by eras of 400 years that begin in March.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y - 400 * era;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let days = |t| date(t);
        assert_eq!(days("1970-01-01"), Some(DateText::Days(0)));
        assert_eq!(days("2000-03-01"), Some(DateText::Days(11_017)));
        assert_eq!(days("1969-12-31"), Some(DateText::Days(-1)));
        assert_eq!(days("2024-02-29"), Some(DateText::Days(19_782)));
        for t in ["2023-02-29", "2020-13-01", "2020-00-10", "2020-01-32", "1900-02-29"] {
            assert_eq!(days(t), Some(DateText::Impossible), "{t}");
        }
        for t in ["03/04/2019", "3.4.2019", "31/12/19", "2019/3/4", "4-3-2019"] {
            assert_eq!(days(t), Some(DateText::Ambiguous), "{t}");
        }
        for t in ["", "12", "1.5", "1.2.3", "grade 2", "2019-07", "a-b-c", "2019-07-31T10:00", "12-34"] {
            assert_eq!(days(t), None, "{t}");
        }
    }

    #[test]
    fn selected_rows_keep_their_values_and_lose_unused_levels() {
        let text = TextValues {
            codes: vec![0, 1, 2, TextValues::MISSING, 1],
            levels: vec!["a".into(), "b".into(), "c".into()],
        };
        let Values::Text(found) = Values::Text(text).select(&[4, 3, 2]) else { panic!("text stays text") };
        assert_eq!(found.levels, ["b", "c"]);
        assert_eq!([0, 1, 2].map(|i| found.get(i)), [Some("b"), None, Some("c")]);
    }
}
