//! Columns while they grow: what one block holds of a column, and what all blocks so far do.

use std::collections::HashMap;

use dvim::internal::table::{Ids, TextValues, Values};

use super::header::Role;
use super::records::{excerpt, is_missing, number};
use super::{ReadErrorKind, Sizes};

/// What a block holds.
#[derive(Default)]
pub(super) struct Chunk {
    pub columns: Vec<ColumnChunk>,
    pub n_rows: u32,
    pub n_lines: u32,
}

/// What a block holds of one column.
pub(super) enum ColumnChunk {
    Number(Numbers),
    Text(Texts),
    Id(IdChunk),
    /// A column of numbers that turned out to hold text in an earlier block: it will be read again.
    Ignored,
}

/// Numbers, until one is none.
#[derive(Default)]
pub(super) struct Numbers {
    pub values: Vec<f64>,
    /// The first value that is not a number, and its row in the block.
    pub text: Option<(u32, String)>,
}

/// Texts with the levels of the block.
#[derive(Default)]
pub(super) struct Texts {
    codes: Vec<u32>,
    levels: Vec<(Vec<u8>, u32)>,
    index: Index<Vec<u8>>,
}

/// Identifiers: integers until one is none.
pub(super) enum IdChunk {
    Integers(Vec<i64>),
    Texts { bytes: Vec<u8>, ends: Vec<usize> },
}

/// Levels come from files of strangers: the hash is SipHash under a key that is drawn anew for each process, so that
/// nobody can write a file whose levels all collide. Codes are given in the order of the rows, whatever the key.
type Index<K> = HashMap<K, u32>;

/// The integer that a text is, if writing the integer gives the text.
fn canonical_integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = !digits.is_empty() && digits.len() <= 19 && digits.iter().all(u8::is_ascii_digit);
    if !plain || (digits[0] == b'0' && text != b"0") {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

impl Chunk {
    /// An empty chunk for columns of these roles, none of which is to be skipped, with room for about so many rows.
    pub fn new(roles: &[Role], rows: usize) -> Chunk {
        let columns = roles.iter().map(|role| ColumnChunk::new(*role, rows)).collect();
        Chunk { columns, n_rows: 0, n_lines: 0 }
    }
}

impl ColumnChunk {
    /// An empty one with room for about so many rows.
    pub fn new(role: Role, rows: usize) -> ColumnChunk {
        match role {
            Role::Number => ColumnChunk::Number(Numbers { values: Vec::with_capacity(rows), text: None }),
            Role::Text => ColumnChunk::Text(Texts::default()),
            Role::Id => ColumnChunk::Id(IdChunk::Integers(Vec::new())),
            Role::Skip => ColumnChunk::Ignored,
        }
    }

    /// Takes the trimmed value of a row of the block.
    pub fn push(&mut self, value: &[u8], row: u32) {
        match self {
            ColumnChunk::Number(numbers) => numbers.push(value, row),
            ColumnChunk::Text(texts) => texts.push(value, row),
            ColumnChunk::Id(ids) => ids.push(value),
            ColumnChunk::Ignored => {}
        }
    }
}

impl Numbers {
    fn push(&mut self, value: &[u8], row: u32) {
        if self.text.is_some() {
            return;
        }
        if is_missing(value) {
            self.values.push(f64::NAN);
        } else if let Some(value) = number(value) {
            self.values.push(value);
        } else {
            self.text = Some((row, excerpt(value)));
            self.values = Vec::new();
        }
    }
}

impl Texts {
    fn push(&mut self, value: &[u8], row: u32) {
        if is_missing(value) {
            self.codes.push(TextValues::MISSING);
            return;
        }
        // Neighbouring rows often agree.
        let is_value = |code: u32| self.levels.get(code as usize).is_some_and(|(level, _)| level == value);
        if let Some(last) = self.codes.last().copied().filter(|&last| is_value(last)) {
            self.codes.push(last);
            return;
        }
        let code = match self.index.get(value) {
            Some(&code) => code,
            None => {
                let code = self.levels.len() as u32;
                self.levels.push((value.to_vec(), row));
                self.index.insert(value.to_vec(), code);
                code
            }
        };
        self.codes.push(code);
    }
}

impl IdChunk {
    fn push(&mut self, value: &[u8]) {
        if let IdChunk::Integers(integers) = self {
            if let Some(integer) = canonical_integer(value) {
                integers.push(integer);
                return;
            }
            *self = IdChunk::Texts { bytes: Vec::new(), ends: Vec::new() }.after(integers);
        }
        if let IdChunk::Texts { bytes, ends } = self {
            if !is_missing(value) {
                bytes.extend_from_slice(value);
            }
            ends.push(bytes.len());
        }
    }

    /// These texts after those of the integers.
    fn after(self, integers: &[i64]) -> IdChunk {
        let (mut all, mut all_ends) = (Vec::new(), Vec::with_capacity(integers.len()));
        for integer in integers {
            all.extend_from_slice(integer.to_string().as_bytes());
            all_ends.push(all.len());
        }
        if let IdChunk::Texts { bytes, ends } = self {
            all_ends.extend(ends.iter().map(|end| end + all.len()));
            all.extend_from_slice(&bytes);
        }
        IdChunk::Texts { bytes: all, ends: all_ends }
    }
}

/// A column as far as it was read.
pub(super) enum Growing {
    Number(Vec<f64>),
    Text(GrowingText),
    Integers(Vec<i64>),
    Texts {
        bytes: String,
        ends: Vec<usize>,
    },
    /// A column of numbers that turned out to hold text: where, and what.
    TurnedToText {
        row: u64,
        found: String,
    },
}

/// Text with the levels of the file so far.
#[derive(Default)]
pub(super) struct GrowingText {
    values: TextValues,
    index: Index<String>,
    level_bytes: usize,
    first_text: Option<Box<(u64, String)>>,
}

impl Growing {
    /// A column of that role with no row.
    pub fn new(role: Role) -> Growing {
        match role {
            Role::Number | Role::Skip => Growing::Number(Vec::new()),
            Role::Text => Growing::Text(GrowingText::default()),
            Role::Id => Growing::Integers(Vec::new()),
        }
    }

    /// Makes room for that many more rows. Memory that is never written to costs nothing, so a guess will do.
    pub fn reserve(&mut self, n_rows: usize) {
        // Where there is no room the rows themselves will tell.
        let _ = match self {
            Growing::Number(values) => values.try_reserve_exact(n_rows),
            Growing::Text(text) => text.values.codes.try_reserve_exact(n_rows),
            Growing::Integers(integers) => integers.try_reserve_exact(n_rows),
            Growing::Texts { ends, .. } => ends.try_reserve_exact(n_rows),
            Growing::TurnedToText { .. } => Ok(()),
        };
    }

    /// Appends what the next block holds. `row` is the number of rows before it.
    pub fn append(&mut self, chunk: &mut ColumnChunk, row: u64, sizes: &Sizes) -> Result<(), ReadErrorKind> {
        match (&mut *self, chunk) {
            (Growing::Number(values), ColumnChunk::Number(numbers)) => match numbers.text.take() {
                Some((i, found)) => *self = Growing::TurnedToText { row: row + u64::from(i) + 1, found },
                None => values.extend_from_slice(&numbers.values),
            },
            (Growing::Text(text), ColumnChunk::Text(texts)) => text.append(texts, row, sizes)?,
            (Growing::Integers(all), ColumnChunk::Id(IdChunk::Integers(integers))) => all.extend_from_slice(integers),
            (Growing::Integers(all), ColumnChunk::Id(texts)) => {
                let texts = std::mem::replace(texts, IdChunk::Integers(Vec::new()));
                if let IdChunk::Texts { bytes, ends } = texts.after(all) {
                    let bytes = String::from_utf8(bytes).expect("the block was found to be UTF-8");
                    *self = Growing::Texts { bytes, ends };
                }
            }
            (Growing::Texts { bytes, ends }, ColumnChunk::Id(ids)) => match ids {
                IdChunk::Integers(integers) => {
                    for integer in integers {
                        bytes.push_str(&integer.to_string());
                        ends.push(bytes.len());
                    }
                }
                IdChunk::Texts { bytes: more, ends: more_ends } => {
                    ends.extend(more_ends.iter().map(|end| end + bytes.len()));
                    bytes.push_str(std::str::from_utf8(more).expect("the block was found to be UTF-8"));
                }
            },
            (Growing::TurnedToText { .. }, _) => {}
            (_, ColumnChunk::Ignored) => {}
            _ => unreachable!("a chunk has the roles of the columns"),
        }
        Ok(())
    }

    /// The values, now that the file has ended; `None` if they must be read again.
    pub fn finish(self) -> Option<Values> {
        Some(match self {
            Growing::Number(mut values) => {
                values.shrink_to_fit();
                Values::Number(values.into())
            }
            Growing::Text(mut text) => {
                text.values.codes.shrink_to_fit();
                Values::Text(text.values)
            }
            Growing::Integers(mut integers) => {
                integers.shrink_to_fit();
                Values::Id(Ids::Integers(integers))
            }
            Growing::Texts { mut bytes, mut ends } => {
                bytes.shrink_to_fit();
                ends.shrink_to_fit();
                Values::Id(Ids::Texts { bytes, ends })
            }
            Growing::TurnedToText { .. } => return None,
        })
    }
}

impl GrowingText {
    fn append(&mut self, chunk: &Texts, row: u64, sizes: &Sizes) -> Result<(), ReadErrorKind> {
        let mut codes = Vec::with_capacity(chunk.levels.len());
        for (level, first_row) in &chunk.levels {
            let level = std::str::from_utf8(level).expect("the block was found to be UTF-8");
            codes.push(self.code(level, row + u64::from(*first_row) + 1, sizes)?);
        }
        self.values.codes.extend(chunk.codes.iter().map(|&code| match code {
            TextValues::MISSING => code,
            _ => codes[code as usize],
        }));
        Ok(())
    }

    /// The code of a level, which is seen in this row, counted from 1.
    pub fn code(&mut self, level: &str, row: u64, sizes: &Sizes) -> Result<u32, ReadErrorKind> {
        if let Some(&code) = self.index.get(level) {
            return Ok(code);
        }
        let code = self.values.levels.len() as u32;
        self.values.levels.push(level.to_string());
        self.index.insert(level.to_string(), code);
        self.level_bytes += level.len();
        if self.first_text.is_none() && number(level.as_bytes()).is_none() {
            self.first_text = Some(Box::new((row, excerpt(level.as_bytes()))));
        }
        let in_bytes = self.level_bytes > sizes.level_bytes;
        if in_bytes || self.values.levels.len() > sizes.levels {
            let limit = if in_bytes { sizes.level_bytes } else { sizes.levels };
            return Err(ReadErrorKind::TooManyLevels { limit, in_bytes, first_text: self.first_text.take() });
        }
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    /// Whoever writes a file cannot know which of its levels collide.
    #[test]
    fn levels_are_hashed_under_a_key_of_the_process() {
        let [one, other] = [Index::<String>::default(), Index::default()];
        assert_ne!(one.hasher().hash_one("level"), other.hasher().hash_one("level"));
    }
}
