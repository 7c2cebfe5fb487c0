//! A table as it came: named columns of equal length, before anything is known about
//! what they mean. Every face (CSV, Parquet, data frames) makes one of these.

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
    Number(Vec<f64>),
    /// Anything else.
    Text(TextValues),
    /// Identifiers, read without loss (`007` stays `007`). Only the column that was asked for as ids.
    Id(Ids),
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
}
