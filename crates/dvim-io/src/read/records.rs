//! Records to values: where a field ends, what is missing, what is a number.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr3};

use super::blocks::Cut;
use super::columns::{Chunk, ColumnChunk};
use super::{ReadErrorKind, RowLengthCause};

/// What is wrong in a block. Rows and lines are counted from 0 at the start of the block.
#[derive(Debug)]
pub(super) struct BadRecord {
    /// The row, unless it is not in a row.
    pub row: Option<u32>,
    /// The line.
    pub line: u32,
    /// What is wrong.
    pub kind: ReadErrorKind,
}

/// What is done with each field of a record.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// What stands between two fields.
    pub delimiter: u8,
    /// For each field the column of the chunk that takes it.
    pub fields: Vec<Option<usize>>,
}

/// A blank around a value.
pub(super) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// A value without the blanks around it.
pub(super) fn trim(mut bytes: &[u8]) -> &[u8] {
    loop {
        bytes = match bytes {
            [first, rest @ ..] if is_blank(*first) => rest,
            [rest @ .., last] if is_blank(*last) => rest,
            _ => return bytes,
        };
    }
}

/// Whether a trimmed value stands for a missing one.
pub(super) fn is_missing(value: &[u8]) -> bool {
    matches!(value, b"" | b"NA" | b"NaN" | b"nan" | b"." | b"N/A" | b"null" | b"NULL" | b"None")
}

/// The number that a trimmed value is, rounded correctly; infinite if it says so or is too large.
pub(super) fn number(value: &[u8]) -> Option<f64> {
    if value.iter().all(|b| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) {
        return fast_float2::parse(value).ok();
    }
    let (sign, word) = match value {
        [b'-', word @ ..] => (-1.0, word),
        [b'+', word @ ..] => (1.0, word),
        word => (1.0, word),
    };
    let infinite = word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"infinity");
    infinite.then_some(sign * f64::INFINITY)
}

/// The first byte of a block that text cannot hold.
pub(super) fn not_text(bytes: &[u8]) -> Option<(usize, ReadErrorKind)> {
    let nul = memchr(0, bytes);
    let not_utf8 = std::str::from_utf8(bytes).err().map(|e| e.valid_up_to());
    match (nul, not_utf8) {
        (Some(n), u) if u.is_none_or(|u| n < u) => Some((n, ReadErrorKind::NulByte)),
        (_, Some(u)) => Some((u, ReadErrorKind::NotUtf8 { byte: bytes[u] })),
        _ => None,
    }
}

/// A field of a record: what it holds, and where the byte that ends it is.
struct Field<'a> {
    value: Cow<'a, [u8]>,
    quoted: bool,
    end: usize,
    /// Line ends inside the quotes.
    lines: u32,
}

/// What is wrong with a field: lines below its start, and the kind.
type BadField = (u32, ReadErrorKind);

/// The field that starts at `start`. `bytes` ends with a line feed, unless in a quote.
#[inline]
fn field(bytes: &[u8], start: usize, delimiter: u8) -> Result<Field<'_>, BadField> {
    let first = bytes[start];
    if first == b'"' || (is_blank(first) && first != delimiter) {
        let skipped = bytes[start..].iter().position(|&b| b == delimiter || !is_blank(b));
        if let Some(q) = skipped.map(|n| start + n).filter(|&q| bytes[q] == b'"') {
            return quoted_field(bytes, q, delimiter);
        }
    }
    let Some(end) = memchr3(delimiter, b'\n', b'\r', &bytes[start..]).map(|n| start + n) else {
        // Only the beginning of a record that is too long has no end.
        return Ok(Field { value: Cow::Borrowed(&bytes[start..]), quoted: false, end: bytes.len(), lines: 0 });
    };
    let value = Cow::Borrowed(trim(&bytes[start..end]));
    match bytes[end] {
        b'\r' if bytes.get(end + 1) == Some(&b'\n') => Ok(Field { value, quoted: false, end: end + 1, lines: 0 }),
        b'\r' => Err((0, ReadErrorKind::LoneCarriageReturn)),
        _ => Ok(Field { value, quoted: false, end, lines: 0 }),
    }
}

/// The field whose opening quote is at `open`.
fn quoted_field(bytes: &[u8], open: usize, delimiter: u8) -> Result<Field<'_>, BadField> {
    let mut doubled = false;
    let mut at = open + 1;
    let close = loop {
        let Some(q) = memchr(b'"', &bytes[at..]).map(|n| at + n) else {
            return Err((0, ReadErrorKind::UnclosedQuote));
        };
        if bytes.get(q + 1) != Some(&b'"') {
            break q;
        }
        doubled = true;
        at = q + 2;
    };
    let inside = &bytes[open + 1..close];
    let lines = memchr_iter(b'\n', inside).count() as u32;
    let value = if doubled {
        let mut plain = Vec::with_capacity(inside.len());
        let mut rest = inside;
        while let Some(q) = memchr(b'"', rest) {
            plain.extend_from_slice(&rest[..=q]);
            rest = &rest[q + 2..];
        }
        plain.extend_from_slice(rest);
        Cow::Owned(trim(&plain).to_vec())
    } else {
        Cow::Borrowed(trim(inside))
    };
    let after = bytes[close + 1..].iter().position(|&b| b == delimiter || !is_blank(b));
    let mut end = after.map_or(bytes.len(), |n| close + 1 + n);
    if bytes.get(end) == Some(&b'\r') && bytes.get(end + 1) == Some(&b'\n') {
        end += 1;
    }
    match bytes.get(end) {
        Some(&b) if b != delimiter && b != b'\n' => {
            let rest = &bytes[end..];
            let stop = rest.iter().position(|&b| b == delimiter || b == b'\n' || b == b'\r').unwrap_or(rest.len());
            if stop == 0 {
                return Err((lines, ReadErrorKind::LoneCarriageReturn));
            }
            Err((lines, ReadErrorKind::AfterQuote { opened: 0, found: excerpt(&rest[..stop]) }))
        }
        _ => Ok(Field { value, quoted: true, end, lines }),
    }
}

/// The beginning of a value, for a message.
pub(super) fn excerpt(value: &[u8]) -> String {
    const SHOWN: usize = 40;
    let text = String::from_utf8_lossy(value);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// The fields of one record, which is all of `bytes` and ends with a line feed.
pub(super) fn split(bytes: &[u8], delimiter: u8) -> Result<Vec<String>, BadRecord> {
    let mut fields = Vec::new();
    let (mut at, mut line) = (0, 0);
    loop {
        let found = field(bytes, at, delimiter).map_err(|(lines, kind)| BadRecord {
            row: None,
            line: line + lines,
            kind: kind.on_lines_after(u64::from(line) + 1),
        })?;
        fields.push(String::from_utf8_lossy(&found.value).into_owned());
        line += found.lines;
        at = found.end + 1;
        if bytes.get(found.end) != Some(&delimiter) {
            return Ok(fields);
        }
    }
}

/// Parses a block of whole records into `chunk`, which is empty.
pub(super) fn parse(bytes: &[u8], cut: Cut, limit: usize, plan: &Plan, chunk: &mut Chunk) -> Result<(), BadRecord> {
    let (delimiter, n_fields) = (plan.delimiter, plan.fields.len());
    let refused = not_text(bytes);
    let refused_at = refused.as_ref().map_or(usize::MAX, |(at, _)| *at);
    let (mut at, mut row, mut line) = (0, 0u32, 0u32);
    while at < bytes.len() {
        let start = at;
        let first_line = line;
        let bad = |(lines, kind): BadField, line: u32| BadRecord {
            row: Some(row),
            line: line + lines,
            kind: kind.on_lines_after(u64::from(line) + 1),
        };
        let mut skip = false;
        let mut i = 0;
        let failure = 'record: loop {
            let keeper = plan.fields[i];
            let end = 'field: {
                let column = keeper.map(|k| &mut chunk.columns[k]);
                // The common case in one pass: a number that ends where its digits end.
                let numbers = match column {
                    Some(ColumnChunk::Number(numbers)) if numbers.text.is_none() => Some(numbers),
                    _ => None,
                };
                if let Some(numbers) = numbers {
                    let number = match bytes[at..] {
                        // Many are a single digit.
                        [digit @ b'0'..=b'9', after, ..] if after == delimiter || after == b'\n' => {
                            numbers.values.push(f64::from(digit - b'0'));
                            break 'field at + 1;
                        }
                        [b'0'..=b'9' | b'-' | b'.', ..] => fast_float2::parse_partial::<f64, _>(&bytes[at..]).ok(),
                        _ => None,
                    };
                    if let Some((value, n)) = number.filter(|(value, _)| value.is_finite()) {
                        let end = at + n;
                        let terminator = bytes.get(end).copied();
                        if terminator == Some(delimiter) || terminator == Some(b'\n') {
                            numbers.values.push(value);
                            break 'field end;
                        }
                        if terminator == Some(b'\r') && bytes.get(end + 1) == Some(&b'\n') {
                            numbers.values.push(value);
                            break 'field end + 1;
                        }
                    }
                }
                let found = match field(bytes, at, delimiter) {
                    Ok(found) => found,
                    Err(error) => break 'record Some(bad(error, line)),
                };
                if i == 0 && found.value.is_empty() && !found.quoted && bytes.get(found.end) != Some(&delimiter) {
                    skip = true;
                    at = found.end + 1;
                    break 'record None;
                }
                line += found.lines;
                if let Some(k) = keeper {
                    chunk.columns[k].push(&found.value, row);
                }
                found.end
            };
            at = end + 1;
            i += 1;
            let more = bytes.get(end) == Some(&delimiter);
            if more != (i < n_fields) {
                let here = if more { at } else { end };
                break Some(row_length(bytes, here, i, more, cut, plan, (row, line)));
            }
            if !more {
                break None;
            }
        };
        // A byte that is no text comes before what it may have made of the row.
        if at > refused_at {
            let (refused_at, kind) = refused.expect("its place is known");
            let lines = memchr_iter(b'\n', &bytes[start..refused_at]).count() as u32;
            return Err(BadRecord { row: Some(row), line: first_line + lines, kind });
        }
        if cut.too_long {
            let kind = match failure {
                Some(BadRecord { kind: ReadErrorKind::UnclosedQuote, line, .. }) => {
                    return Err(BadRecord { row: Some(row), line, kind: ReadErrorKind::UnclosedQuote });
                }
                _ => ReadErrorKind::RecordTooLong { limit },
            };
            return Err(BadRecord { row: Some(row), line: first_line, kind });
        }
        if let Some(error) = failure {
            return Err(error);
        }
        line += 1;
        row += u32::from(!skip);
    }
    chunk.n_rows = row;
    chunk.n_lines = line;
    Ok(())
}

/// A row of the wrong length: counts its fields and says why that may be.
/// `found` fields end at `at`; if there are `more`, the next begins there.
#[cold]
fn row_length(
    bytes: &[u8],
    mut at: usize,
    mut found: usize,
    more: bool,
    cut: Cut,
    plan: &Plan,
    (row, mut line): (u32, u32),
) -> BadRecord {
    let (expected, delimiter) = (plan.fields.len(), plan.delimiter);
    let first_line = line;
    let mut last_is_empty = false;
    let mut more = more;
    let mut last = false;
    while more {
        match field(bytes, at, delimiter) {
            Ok(next) => {
                found += 1;
                line += next.lines;
                last_is_empty = next.value.is_empty();
                more = bytes.get(next.end) == Some(&delimiter);
                at = if more { next.end + 1 } else { next.end };
            }
            Err((lines, kind)) => {
                let kind = kind.on_lines_after(u64::from(line) + 1);
                return BadRecord { row: Some(row), line: line + lines, kind };
            }
        }
    }
    if found < expected {
        last = cut.without_line_end && at + 1 >= bytes.len();
    }
    let cause = match () {
        () if found < expected && last => RowLengthCause::CutOff,
        () if found < expected => RowLengthCause::Fewer,
        () if found == expected + 1 && last_is_empty => RowLengthCause::TrailingDelimiter,
        () => RowLengthCause::UnquotedDelimiter,
    };
    BadRecord { row: Some(row), line: first_line, kind: ReadErrorKind::RowLength { expected, found, delimiter, cause } }
}
