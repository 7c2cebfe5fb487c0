//! A file to a [`Table`]: what is read is what was written, or a refusal that says what, where and how to mend it.
//!
//! # What counts as what
//! - *Delimiter*: comma, tab or semicolon, whichever the header holds most of; tab for `.tsv` and `.tab`. Excel's first
//!   line `sep=;` is obeyed.
//! - *Quotes* are those of RFC 4180: a quote opens a field only at its start (blanks before it are allowed), a doubled
//!   quote inside is one quote, delimiters and line ends inside belong to the value. A quote in the middle of an
//!   unquoted value is an ordinary character. Anything but blanks after a closing quote is refused.
//! - *Lines* end with LF or CRLF. Blank lines are ignored wherever they are. A lone carriage return is refused.
//! - *Text* is UTF-8, with or without a byte order mark. Blanks and tabs around a value or a name do not count.
//! - *Missing*: an empty value, `NA`, `N/A`, `NaN`, `nan`, `null`, `NULL`, `None` and `.`, quoted or not, in every
//!   column.
//! - *Numbers*: decimal, with or without sign, point and exponent, rounded correctly to `f64`; `inf` and `Infinity` in
//!   any case are infinite. Nothing else: no thousands separators, no decimal comma, no hexadecimal, no underscores.
//! - *A column* is of numbers if every value that is not missing is one, and of text otherwise, in which case its
//!   levels are what was written (`01` stays `01`). The whole file decides, not its first rows.
//! - *An unnamed first column* is the row names that R and pandas write: it is left out, unless it is asked for as
//!   [`ROW_NAMES`]. Any other unnamed column is refused.
//! - *Compressed*: gzip and zstd are read as they are. The digest is of the bytes of the file.
//! - *Parquet* with the feature `parquet`, *Arrow* files (Feather) and streams with the feature `arrow`: see their
//!   modules for the types.
//!
//! Not here: what a column means. Whether a time may be infinite or an event may be `2` is the cohort's business.

#[cfg(feature = "arrow")]
mod arrow;
mod blocks;
mod columns;
mod delimited;
mod error;
mod header;
#[cfg(feature = "parquet")]
mod parquet;
mod records;
mod source;
#[cfg(any(feature = "parquet", feature = "arrow"))]
mod typed;

use std::path::Path;
use std::sync::Arc;

use dvim::internal::table::Table;

pub use error::{ReadError, ReadErrorKind, RowLengthCause};

/// The name under which an unnamed first column can be asked for.
pub const ROW_NAMES: &str = "row_names";

/// The most distinct values that a text column may have.
pub const MAX_LEVELS: usize = 100_000;

/// The most bytes that the distinct values of a text column may take together.
pub const MAX_LEVEL_BYTES: usize = 64 << 20;

/// The most bytes that one row may take; a longer one is a quote that was never closed.
pub const MAX_RECORD_BYTES: usize = 64 << 20;

/// The value that a text is, in every source: without blanks around it, and `None` where it stands for a missing value.
pub fn text_value(text: &str) -> Option<&str> {
    let text = text.trim_matches([' ', '\t']);
    (!records::is_missing(text.as_bytes())).then_some(text)
}

/// Identifiers that a program hands over, as those of a file: integers if all are, else text; empty where missing.
pub fn ids_of_texts<'a>(texts: impl Iterator<Item = &'a str>) -> dvim::internal::table::Ids {
    let mut chunk = columns::ColumnChunk::new(header::Role::Id, 0);
    texts.enumerate().for_each(|(i, text)| chunk.push(text_value(text).unwrap_or("").as_bytes(), i as u32));
    let mut growing = columns::Growing::new(header::Role::Id);
    match growing.append(&mut chunk, 0, &Sizes::default()).map(|()| growing.finish()) {
        Ok(Some(dvim::internal::table::Values::Id(ids))) => ids,
        _ => unreachable!("ids have no limit and stay ids"),
    }
}

/// How to read a table.
#[derive(Clone, Default)]
pub struct ReadOptions<'a> {
    /// The column to read as identifiers, without loss. It is kept whether or not `columns` names it.
    pub id: Option<String>,
    /// Without `id`: the column to read as identifiers if there is one of that name, in any case of letters.
    pub default_id: Option<String>,
    /// Columns to read as text whatever they look like. Names that the table does not have are ignored.
    pub text: Vec<String>,
    /// The only columns to keep; `None` keeps all. The others are skipped without being parsed or stored.
    pub columns: Option<Vec<String>>,
    /// Called now and then with the number of bytes of the file that have been read, from any thread.
    /// When the file must be read twice it starts again from zero.
    pub progress: Option<&'a (dyn Fn(u64) + Sync)>,
    /// Number of threads; 0 takes as many as there are cores. The result does not depend on it.
    pub threads: usize,
}

/// What a file was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text with one row to a line.
    Delimited {
        /// What stands between two values.
        delimiter: u8,
        /// How the file is compressed.
        compression: Compression,
    },
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow, a file or a stream.
    Arrow,
}

/// How a file of text is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// By gzip.
    Gzip,
    /// By zstd.
    Zstd,
}

/// A table, and the file it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadTable {
    /// The columns that were kept, in the order of the file.
    pub table: Table,
    /// SHA-256 of the bytes of the file, in lower-case hexadecimal.
    pub sha256: String,
    /// Size of the file.
    pub n_bytes: u64,
    /// What the file was.
    pub format: Format,
    /// All names in the file, kept or not, in its order; an unnamed first column is [`ROW_NAMES`].
    pub names: Vec<String>,
    /// Whether the file has an unnamed first column, which was left out unless it was asked for.
    pub unnamed_first: bool,
    /// Whether the last line of a delimited file has no line end, as in a file that was cut off inside its last value.
    pub without_line_end: bool,
}

/// Reads a table from a file, or from standard input if the path is `-`.
pub fn read_table(source: &Path, options: &ReadOptions) -> Result<ReadTable, ReadError> {
    read_in_blocks(source, options, &Sizes::default())
}

/// Sizes that change no result. Tests make them tiny so that a block ends at every possible place.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Sizes {
    /// Bytes in a block that is parsed at once.
    pub block: usize,
    /// [`MAX_RECORD_BYTES`].
    pub record: usize,
    /// [`MAX_LEVELS`].
    pub levels: usize,
    /// [`MAX_LEVEL_BYTES`].
    pub level_bytes: usize,
}

impl Default for Sizes {
    /// A block of 512 KiB and what is parsed from it stay in the second-level cache.
    fn default() -> Sizes {
        Sizes { block: 512 << 10, record: MAX_RECORD_BYTES, levels: MAX_LEVELS, level_bytes: MAX_LEVEL_BYTES }
    }
}

/// [`read_table`], with the sizes of its blocks and its limits.
#[doc(hidden)]
pub fn read_in_blocks(path: &Path, options: &ReadOptions, sizes: &Sizes) -> Result<ReadTable, ReadError> {
    read_from(&source::Place::File(path), options, sizes)
}

/// Reads a table whose bytes are in memory; `name` is that of the file that they came from.
pub fn read_bytes(name: &str, bytes: Arc<[u8]>, options: &ReadOptions) -> Result<ReadTable, ReadError> {
    read_from(&source::Place::Memory(Path::new(name), bytes), options, &Sizes::default())
}

fn read_from(place: &source::Place, options: &ReadOptions, sizes: &Sizes) -> Result<ReadTable, ReadError> {
    let opened = source::open(place)?;
    match opened.content {
        #[cfg(feature = "parquet")]
        source::Content::Parquet => parquet::read(place.path(), options, sizes),
        #[cfg(feature = "arrow")]
        source::Content::ArrowFile | source::Content::ArrowStream => arrow::read(place.path(), opened, options, sizes),
        _ => delimited::read(place, opened, options, sizes),
    }
}
