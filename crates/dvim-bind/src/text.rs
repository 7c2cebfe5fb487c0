//! Columns of text on their way in.

use dvim::internal::table::{Ids, TextValues, Values};
use dvim_io::read::{ids_of_texts, text_value};
use std::collections::HashMap;

/// Text that is gathered row by row; levels in the order in which they appear.
#[derive(Default)]
pub struct TextBuilder {
    values: TextValues,
    index: HashMap<String, u32>,
    /// The code of each text that was given, which may be that of a trimmed one, or none where it means missing.
    seen: HashMap<String, Option<u32>>,
}

impl TextBuilder {
    /// Adds a row.
    pub fn push(&mut self, text: Option<&str>) {
        let code = self.code(text);
        self.push_code(code);
    }

    /// Adds a row by the code of its text.
    pub fn push_code(&mut self, code: Option<u32>) {
        self.values.codes.push(code.unwrap_or(TextValues::MISSING));
    }

    /// The code of a text, by the rules of files.
    pub fn code(&mut self, text: Option<&str>) -> Option<u32> {
        let text = text?;
        if let Some(code) = self.seen.get(text) {
            return *code;
        }
        let code = text_value(text).map(|value| {
            *self.index.entry(value.to_string()).or_insert_with(|| {
                self.values.levels.push(value.to_string());
                self.values.levels.len() as u32 - 1
            })
        });
        self.seen.insert(text.to_string(), code);
        code
    }

    /// A column of rows that name their levels by position; a position that names none is missing.
    pub fn of_levels<S: AsRef<str>>(levels: &[S], rows: impl Iterator<Item = Option<usize>>) -> TextBuilder {
        let mut builder = TextBuilder::default();
        let known: Vec<Option<u32>> = levels.iter().map(|l| builder.code(Some(l.as_ref()))).collect();
        rows.for_each(|r| builder.push_code(r.and_then(|r| known.get(r).copied().flatten())));
        builder
    }

    /// The column, without levels that no row has.
    pub fn finish(self) -> TextValues {
        let rows: Vec<usize> = (0..self.values.codes.len()).collect();
        match Values::Text(self.values).select(&rows) {
            Values::Text(text) => text,
            _ => unreachable!("text stays text"),
        }
    }

    /// The column as identifiers.
    pub fn ids(self) -> Ids {
        let rows = 0..self.values.codes.len();
        ids_of_texts(rows.map(|i| self.values.get(i).unwrap_or("")))
    }
}
