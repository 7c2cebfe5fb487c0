//! Every way in which reading fails, as data. The words are in one function, and only there.

use dvim::internal::phrase::{Face, bounded, harmless, shown};
use dvim::internal::setting::Setting;
use dvim::phrase;
use dvim_report::spell::CommandLine;
use dvim_report::text::grouped;
use std::fmt;
use std::path::PathBuf;

/// Why a file is not a table.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// The row of the data, counted from 1 after the header.
    pub row: Option<u64>,
    /// The line of the file, counted from 1.
    pub line: Option<u64>,
    /// The column.
    pub column: Option<String>,
    /// What is wrong.
    pub kind: ReadErrorKind,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadErrorKind {
    /// There is no such file.
    NoFile,
    /// It is a directory.
    Directory,
    /// The system refused to open or read it.
    Io {
        /// What the system says.
        reason: String,
    },
    /// It has no byte, or nothing but blank lines.
    Empty,
    /// It has a header and no row.
    OnlyHeader {
        /// Number of names in the header.
        n_columns: usize,
    },
    /// It is not text.
    Binary {
        /// What it is.
        what: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// It is compressed with zstd and the compressed data is damaged or cut off.
    Zstd {
        /// What the decoder says.
        reason: String,
    },
    /// It is compressed with gzip and the compressed data is damaged or cut off.
    Gzip {
        /// What the decoder says.
        reason: String,
    },
    /// A byte that is not UTF-8.
    NotUtf8 {
        /// The byte.
        byte: u8,
    },
    /// A byte 0, which text does not hold.
    NulByte,
    /// A carriage return that no line feed follows.
    LoneCarriageReturn,
    /// Every name in the header is a number: it is a row of data.
    NoHeader {
        /// The first name.
        first: String,
    },
    /// Two columns have the same name.
    DuplicateColumn {
        /// The name.
        name: String,
        /// Position of the first, from 1.
        first: usize,
        /// Position of the second, from 1.
        second: usize,
    },
    /// A column other than the first has no name.
    UnnamedColumn {
        /// Its position, from 1.
        position: usize,
        /// Number of columns.
        n_columns: usize,
    },
    /// A row has another number of fields than the header.
    RowLength {
        /// Fields in the header.
        expected: usize,
        /// Fields in the row.
        found: usize,
        /// What stands between fields.
        delimiter: u8,
        /// Why that is likely.
        cause: RowLengthCause,
    },
    /// A quote opens a value and never closes it.
    UnclosedQuote,
    /// Something stands between a closing quote and the end of its field.
    AfterQuote {
        /// The line of the opening quote.
        opened: u64,
        /// What stands there, its beginning.
        found: String,
    },
    /// A row longer than any row may be.
    RecordTooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// A text column with more distinct values than a category has.
    TooManyLevels {
        /// The most distinct values, or bytes of them, that are allowed.
        limit: usize,
        /// Whether the limit is one of bytes.
        in_bytes: bool,
        /// The first value that is not a number, and its row; `None` if the column was asked for as text and holds
        /// numbers.
        first_text: Option<Box<(u64, String)>>,
    },
    /// A column of numbers turned out to hold text, and the source cannot be read again.
    TextInPipe {
        /// The first value that is not a number.
        found: String,
    },
    /// The file was written to while it was read.
    Changed,
    /// A column that was asked for is not there.
    NoColumn {
        /// Names that resemble it, nearest first.
        nearest: Box<[String]>,
        /// All names.
        names: Box<[String]>,
    },
    /// A column has a type that is neither number nor text.
    Unsupported {
        /// The type, as the format names it.
        found: String,
    },
}

/// Why a row may have another number of fields than the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowLengthCause {
    /// The first row has one field more than the header: R's `write.table` leaves out the name of the row names.
    HeaderWithoutRowNames,
    /// One field more, and it is empty.
    TrailingDelimiter,
    /// More fields: a value that holds the delimiter is not quoted.
    UnquotedDelimiter,
    /// Fewer fields, in the last line, which has no line end: the file is cut off.
    CutOff,
    /// Fewer fields.
    Fewer,
}

/// How a delimiter is called in a sentence.
fn delimiter_name(delimiter: u8) -> &'static str {
    match delimiter {
        b'\t' => "tab",
        b';' => "semicolon",
        b',' => "comma",
        _ => "delimiter",
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelled(&CommandLine))
    }
}

impl ReadError {
    /// The whole of it in the words of a face.
    pub fn spelled(&self, face: &dyn Face) -> String {
        let mut out = String::new();
        self.write(&mut out, face).expect("a text takes every word");
        bounded(harmless(&out)).into_owned()
    }

    fn write(&self, f: &mut dyn fmt::Write, face: &dyn Face) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match (self.row, self.line) {
            (Some(row), Some(line)) => write!(f, ", row {row} (line {line})")?,
            (Some(row), None) => write!(f, ", row {row}")?,
            (None, Some(line)) => write!(f, ", line {line}")?,
            (None, None) => {}
        }
        f.write_str(": ")?;
        let column = shown(self.column.as_deref().unwrap_or("?"));
        match &self.kind {
            ReadErrorKind::NoFile => f.write_str("there is no such file"),
            ReadErrorKind::Directory => f.write_str("this is a directory; name a file in it"),
            ReadErrorKind::Io { reason } => write!(f, "cannot be read: {reason}"),
            ReadErrorKind::Empty => f.write_str("the file is empty; a table needs a header and at least one row"),
            ReadErrorKind::OnlyHeader { n_columns } => {
                let s = if *n_columns == 1 { "" } else { "s" };
                write!(f, "there is a header with {} column{s} and no row below it", grouped(*n_columns))
            }
            ReadErrorKind::Binary { what, remedy } => write!(f, "this is {what}; {remedy}"),
            ReadErrorKind::Zstd { reason } => {
                write!(f, "the zstd data is damaged or cut off ({reason}); copy or compress the file again")
            }
            ReadErrorKind::Gzip { reason } => {
                write!(f, "the gzip data is damaged or cut off ({reason}); copy or compress the file again")
            }
            ReadErrorKind::NotUtf8 { byte } => write!(
                f,
                "byte 0x{byte:02X} is not UTF-8; save the file as UTF-8 (in Excel: `CSV UTF-8`; in R: `fileEncoding = \"UTF-8\"`; in a shell: `iconv -f latin1 -t utf-8`)"
            ),
            ReadErrorKind::NulByte => f.write_str(
                "a byte 0 stands here, which text does not hold; if this is UTF-16, save it as UTF-8, otherwise the file is damaged or not a table",
            ),
            ReadErrorKind::LoneCarriageReturn => f.write_str(
                "a carriage return without a line feed stands here; save the file with Unix (LF) or Windows (CRLF) line ends, and quote values that hold line ends",
            ),
            ReadErrorKind::NoHeader { first } => {
                let first = shown(first);
                write!(f, "the header holds only numbers (`{first}`, …); the first line must give each column its name")
            }
            ReadErrorKind::DuplicateColumn { name, first, second } => {
                write!(f, "columns {first} and {second} are both named `{}`; rename or remove one", shown(name))
            }
            ReadErrorKind::UnnamedColumn { position, n_columns } => {
                write!(f, "column {position} of {n_columns} has no name; name it in the header, or remove it")?;
                if position == n_columns && *position > 1 {
                    f.write_str(" (a delimiter at the end of the header makes an empty column)")?;
                }
                Ok(())
            }
            ReadErrorKind::RowLength { expected, found, delimiter, cause } => {
                let d = delimiter_name(*delimiter);
                write!(f, "expected {expected} fields, as in the header, found {found}; ")?;
                match cause {
                    RowLengthCause::HeaderWithoutRowNames => f.write_str(
                        "the header seems to lack a name for the first column: R's `write.table` does that, `write.csv` does not",
                    ),
                    RowLengthCause::TrailingDelimiter => write!(f, "remove the {d} at the end of the line"),
                    RowLengthCause::UnquotedDelimiter if *delimiter == b',' => {
                        f.write_str("a value that holds a comma must stand in quotes, and decimals take a point")
                    }
                    RowLengthCause::UnquotedDelimiter => write!(f, "a value that holds a {d} must stand in quotes"),
                    RowLengthCause::CutOff => {
                        f.write_str("it is the last line and has no line end: the file may be cut off")
                    }
                    RowLengthCause::Fewer => write!(
                        f,
                        "an empty value still needs its {d}, and a value that holds a line end must stand in quotes"
                    ),
                }
            }
            ReadErrorKind::UnclosedQuote => f.write_str(
                "a quote opens here and is never closed; close it, or write a quote that belongs to the value twice and the value in quotes",
            ),
            ReadErrorKind::AfterQuote { opened, found } => write!(
                f,
                "`{found}` follows the closing quote of a value that opened on line {opened}; write a quote that belongs to the value twice, or close the one that is open"
            ),
            ReadErrorKind::RecordTooLong { limit } => {
                write!(f, "the row is longer than {} bytes; is this a table with one row to a line?", grouped(*limit))
            }
            ReadErrorKind::TooManyLevels { limit, in_bytes, first_text } => {
                write!(f, "column `{column}` has more than {} ", grouped(*limit))?;
                f.write_str(if *in_bytes { "bytes of distinct texts" } else { "distinct values and is not of numbers" })?;
                match first_text {
                    Some(first) => write!(f, " (row {} holds `{}`)", first.0, first.1)?,
                    None => f.write_str(" (it was asked for as text)")?,
                }
                let remedy = phrase![
                    "; if it should be numbers, correct what is not; if it identifies the units, name it with ",
                    Setting::Id,
                    "; if it is not a covariate, leave it out with ",
                    Setting::Drop
                ];
                f.write_str(&remedy.spelled(face))
            }
            ReadErrorKind::TextInPipe { found } => write!(
                f,
                "column `{column}` held only numbers up to here and now `{found}`; a pipe cannot be read again: declare the column with {}, or read from a file",
                face.setting(Setting::Categorical, None)
            ),
            ReadErrorKind::Changed => f.write_str("the file changed while it was read; try again when it is complete"),
            ReadErrorKind::NoColumn { nearest, names } => {
                write!(f, "there is no column `{column}`")?;
                if !nearest.is_empty() {
                    let quoted: Vec<String> = nearest.iter().map(|n| format!("`{}`", shown(n))).collect();
                    write!(f, "; did you mean {}?", quoted.join(" or "))?;
                }
                const SHOWN: usize = 40;
                let first: Vec<_> = names.iter().take(SHOWN).map(|name| shown(name)).collect();
                write!(f, "{} The columns are: {}", if nearest.is_empty() { "." } else { "" }, first.join(", "))?;
                if names.len() > SHOWN {
                    write!(f, " and {} more", grouped(names.len() - SHOWN))?;
                }
                Ok(())
            }
            ReadErrorKind::Unsupported { found } => write!(
                f,
                "column `{column}` has type {found}, which is neither number nor text; convert it, or leave it out with {}",
                face.setting(Setting::Drop, None)
            ),
        }
    }
}

impl std::error::Error for ReadError {}

/// The names nearest to `wanted`, nearest first, at most three, none that is far.
pub(super) fn nearest(wanted: &str, names: &[String]) -> Box<[String]> {
    let fold = |s: &str| -> Vec<char> {
        s.chars().flat_map(char::to_lowercase).filter(|c| !matches!(c, '_' | '-' | '.' | ' ')).collect()
    };
    let target = fold(wanted);
    let allowed = (target.len() / 3).max(1);
    let mut found: Vec<(usize, &String)> = names
        .iter()
        .map(|name| (edit_distance(&target, &fold(name)), name))
        .filter(|(distance, _)| *distance <= allowed)
        .collect();
    found.sort_by_key(|(distance, _)| *distance);
    found.into_iter().take(3).map(|(_, name)| name.clone()).collect()
}

/// Insertions, deletions, substitutions and swaps of neighbours that take `a` to `b`.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let differs = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (above[j] + 1).min(row[j - 1] + 1).min(above[j - 1] + differs);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

impl ReadErrorKind {
    /// The same, seen from a place `lines` lines further up.
    pub(super) fn on_lines_after(mut self, lines: u64) -> ReadErrorKind {
        if let ReadErrorKind::AfterQuote { opened, .. } = &mut self {
            *opened += lines;
        }
        self
    }
}
