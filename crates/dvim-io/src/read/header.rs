//! The first record: which delimiter, which names, which columns are wanted.

use std::collections::HashMap;

use super::error::nearest;
use super::records::{self, is_blank, trim};
use super::{ROW_NAMES, ReadErrorKind, ReadOptions};

/// The header of a delimited file.
#[derive(Debug)]
pub(super) struct Header {
    /// What stands between two values.
    pub delimiter: u8,
    /// The names, all distinct and none empty.
    pub names: Vec<String>,
    /// Whether the first name was empty.
    pub unnamed_first: bool,
    /// Lines up to the first row.
    pub n_lines: u64,
    /// Bytes up to the first row.
    pub n_bytes: usize,
}

/// What is wrong with a header: the line, counted from 1, and the kind.
pub(super) type HeaderError = (Option<u64>, ReadErrorKind);

/// What a column is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Not at all.
    Skip,
    /// As numbers, as long as they are.
    Number,
    /// As text.
    Text,
    /// As identifiers.
    Id,
}

/// The end of the first record that is not blank, after its line end, with how often each delimiter stands in it.
struct FirstRecord {
    start: usize,
    end: usize,
    lines_before: u64,
    counts: [usize; 3],
}

const DELIMITERS: [u8; 3] = [b',', b'\t', b';'];

/// Finds the first record; `None` if `bytes` ends before it does. At the end of the file the end of `bytes` ends it.
fn first_record(bytes: &[u8], at_end: bool) -> Result<Option<FirstRecord>, HeaderError> {
    let mut start = 0;
    let mut lines_before = 0;
    let mut counts = [0; 3];
    let (mut quoted, mut field_start) = (false, true);
    let mut i = 0;
    while i < bytes.len() {
        let byte = bytes[i];
        if quoted {
            if byte == b'"' {
                match bytes.get(i + 1) {
                    Some(b'"') => i += 1,
                    None if !at_end => return Ok(None),
                    _ => quoted = false,
                }
            }
        } else {
            match byte {
                b'"' if field_start => (quoted, field_start) = (true, false),
                b'\n' if bytes[start..i].iter().all(|&b| is_blank(b) || b == b'\r') => {
                    (start, lines_before, field_start, counts) = (i + 1, lines_before + 1, true, [0; 3]);
                }
                b'\n' => return Ok(Some(FirstRecord { start, end: i + 1, lines_before, counts })),
                b'\r' if bytes.get(i + 1).is_some_and(|&b| b != b'\n') => {
                    return Err((Some(lines_before + 1), ReadErrorKind::LoneCarriageReturn));
                }
                _ => match DELIMITERS.iter().position(|&d| d == byte) {
                    Some(which) => {
                        counts[which] += 1;
                        field_start = true;
                    }
                    None => field_start &= is_blank(byte),
                },
            }
        }
        i += 1;
    }
    let rest_is_blank = bytes[start..].iter().all(|&b| is_blank(b) || b == b'\r');
    match at_end {
        true if rest_is_blank => Err((None, ReadErrorKind::Empty)),
        true => Ok(Some(FirstRecord { start, end: bytes.len(), lines_before, counts })),
        false => Ok(None),
    }
}

/// Reads the header from the first bytes of a file; `None` if it is not complete in them.
pub(super) fn read(bytes: &[u8], at_end: bool, prefers_tab: bool) -> Result<Option<Header>, HeaderError> {
    let mut offset = if bytes.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    let mut lines = 0;
    let mut declared = None;
    if let Some(line_end) = memchr::memchr(b'\n', bytes) {
        let line = trim(bytes[offset..line_end].strip_suffix(b"\r").unwrap_or(&bytes[offset..line_end]));
        if let [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', delimiter] = line {
            declared = DELIMITERS.contains(delimiter).then_some(*delimiter);
        } else if line.eq_ignore_ascii_case(b"sep=") && bytes[offset..line_end].contains(&b'\t') {
            declared = Some(b'\t');
        }
        if declared.is_some() {
            (offset, lines) = (line_end + 1, 1);
        }
    }
    let Some(found) = first_record(&bytes[offset..], at_end).map_err(|(line, kind)| (line.map(|l| l + lines), kind))?
    else {
        return Ok(None);
    };
    let delimiter = declared.unwrap_or_else(|| {
        let [comma, tab, semicolon] = found.counts;
        match () {
            () if prefers_tab && tab > 0 => b'\t',
            () if comma >= tab && comma >= semicolon => b',',
            () if tab >= semicolon => b'\t',
            () => b';',
        }
    });
    let mut record = bytes[offset + found.start..offset + found.end].to_vec();
    if record.last() != Some(&b'\n') {
        record.push(b'\n');
    }
    let line = lines + found.lines_before + 1;
    if let Some(kind) = records::not_text(&record).map(|(_, kind)| kind) {
        return Err((Some(line), kind));
    }
    let fields = records::split(&record, delimiter)
        .map_err(|bad| (Some(line + u64::from(bad.line)), bad.kind.on_lines_after(line - 1)))?;
    let n_lines = line - 1 + memchr::memchr_iter(b'\n', &record).count() as u64;
    let (names, unnamed_first) = check_names(fields).map_err(|kind| (Some(line), kind))?;
    Ok(Some(Header { delimiter, names, unnamed_first, n_lines, n_bytes: offset + found.end }))
}

/// The index of a pandas data frame, in the formats that store it.
#[cfg(any(feature = "parquet", feature = "arrow"))]
pub(super) const PANDAS_INDEX: &str = "__index_level_0__";

/// Names as they may be: distinct, none empty but the first.
pub(super) fn check_names(mut names: Vec<String>) -> Result<(Vec<String>, bool), ReadErrorKind> {
    let n_columns = names.len();
    let unnamed_first = n_columns > 1 && names[0].is_empty();
    if let Some(i) = (usize::from(unnamed_first)..n_columns).find(|&i| names[i].is_empty()) {
        return Err(ReadErrorKind::UnnamedColumn { position: i + 1, n_columns });
    }
    if names.iter().all(|name| records::number(name.as_bytes()).is_some()) {
        return Err(ReadErrorKind::NoHeader { first: names.swap_remove(0) });
    }
    let mut seen = HashMap::with_capacity(n_columns);
    for (i, name) in names.iter().enumerate() {
        if let Some(first) = seen.insert(name.as_str(), i) {
            return Err(ReadErrorKind::DuplicateColumn { name: name.clone(), first: first + 1, second: i + 1 });
        }
    }
    if unnamed_first && !names.iter().any(|name| name == ROW_NAMES) {
        names[0] = ROW_NAMES.to_string();
    }
    Ok((names, unnamed_first))
}

/// What each column is to be read as; the name of the first that is asked for and absent otherwise.
pub(super) fn roles(
    names: &[String],
    unnamed_first: bool,
    options: &ReadOptions,
) -> Result<Vec<Role>, (String, ReadErrorKind)> {
    let positions: HashMap<&str, usize> = names.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
    let find = |name: &String| {
        positions.get(trim_text(name)).copied().ok_or_else(|| {
            (name.clone(), ReadErrorKind::NoColumn { nearest: nearest(name, names), names: names.into() })
        })
    };
    let mut roles = match &options.columns {
        None => {
            let mut roles = vec![Role::Number; names.len()];
            if unnamed_first {
                roles[0] = Role::Skip;
            }
            roles
        }
        Some(wanted) => {
            let mut roles = vec![Role::Skip; names.len()];
            for name in wanted {
                roles[find(name)?] = Role::Number;
            }
            roles
        }
    };
    for i in options.text.iter().filter_map(|name| positions.get(trim_text(name)).copied()) {
        // Row names that are declared as text are asked for; a column that `columns` leaves out is not.
        if roles[i] == Role::Number || (i == 0 && unnamed_first && options.columns.is_none()) {
            roles[i] = Role::Text;
        }
    }
    match (&options.id, &options.default_id) {
        (Some(id), _) => roles[find(id)?] = Role::Id,
        (None, Some(id)) => {
            if let Some(i) = names.iter().position(|n| n.eq_ignore_ascii_case(id)).filter(|&i| roles[i] != Role::Skip) {
                roles[i] = Role::Id;
            }
        }
        (None, None) => {}
    }
    Ok(roles)
}

fn trim_text(name: &str) -> &str {
    name.trim_matches([' ', '\t'])
}
