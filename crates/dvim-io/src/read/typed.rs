//! A column whose type the file knows, value by value: what Parquet and Arrow share.

use dvim::internal::table::Values;

use super::columns::{ColumnChunk, Growing};
use super::header::Role;
use super::records::trim;
use super::{ReadErrorKind, Sizes};

/// Rows that are decoded at once, and that a chunk of text or ids holds.
pub(super) const BATCH: usize = 1 << 14;

/// Where in a column something is wrong, and what: the row counts from 1.
pub(super) type Failure = (Option<u64>, ReadErrorKind);

/// A column that takes its values one by one.
pub(super) struct Taking<'a> {
    numbers: Option<Vec<f64>>,
    chunk: ColumnChunk,
    in_chunk: u32,
    growing: Growing,
    row: u64,
    role: Role,
    sizes: &'a Sizes,
}

impl<'a> Taking<'a> {
    pub(super) fn new(role: Role, sizes: &'a Sizes) -> Taking<'a> {
        let numbers = (role == Role::Number).then(Vec::new);
        let (chunk, growing) = (ColumnChunk::new(role, 0), Growing::new(role));
        Taking { numbers, chunk, in_chunk: 0, growing, row: 0, role, sizes }
    }

    pub(super) fn integer(&mut self, value: Option<i128>) -> Result<(), Failure> {
        match (&mut self.numbers, value) {
            // To `f64` from at most 64 bits: one correct rounding.
            (Some(numbers), value) => numbers.push(value.map_or(f64::NAN, |v| v as f64)),
            (None, Some(value)) => return self.text(value.to_string().as_bytes()),
            (None, None) => return self.text(b""),
        }
        Ok(())
    }

    pub(super) fn float(&mut self, value: Option<f64>, written: impl Fn(f64) -> String) -> Result<(), Failure> {
        match (&mut self.numbers, value) {
            (Some(numbers), value) => numbers.push(value.unwrap_or(f64::NAN)),
            (None, Some(value)) => return self.text(written(value).as_bytes()),
            (None, None) => return self.text(b""),
        }
        Ok(())
    }

    pub(super) fn text(&mut self, value: &[u8]) -> Result<(), Failure> {
        if let Err(error) = std::str::from_utf8(value) {
            let row = self.row + u64::from(self.in_chunk) + 1;
            return Err((Some(row), ReadErrorKind::NotUtf8 { byte: value[error.valid_up_to()] }));
        }
        self.chunk.push(trim(value), self.in_chunk);
        self.in_chunk += 1;
        if self.in_chunk as usize == BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let mut chunk = std::mem::replace(&mut self.chunk, ColumnChunk::new(self.role, 0));
        self.growing.append(&mut chunk, self.row, self.sizes).map_err(|kind| (None, kind))?;
        self.row += u64::from(self.in_chunk);
        self.in_chunk = 0;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Values, Failure> {
        if let Some(mut numbers) = self.numbers {
            numbers.shrink_to_fit();
            return Ok(Values::Number(numbers.into()));
        }
        self.flush()?;
        Ok(self.growing.finish().expect("text and ids never turn to text"))
    }
}
