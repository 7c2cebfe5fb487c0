//! An Arrow IPC file (Feather version 2) or stream to a table.
//!
//! Types are read as in Parquet: integers and floats are numbers, booleans the texts `true` and `false`, strings and
//! dictionaries of them text, nulls missing; dates, times, decimals and nested columns are refused if they are kept.

use std::io::{Cursor, Read};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use dvim::internal::table::{Column, Table};

use super::header::{self, PANDAS_INDEX, Role};
use super::source::{Content, Opened};
use super::typed::{Failure, Taking};
use super::{Format, ReadError, ReadErrorKind, ReadOptions, ReadTable, Sizes};

fn damaged(error: ArrowError) -> Failure {
    (None, ReadErrorKind::Io { reason: error.to_string() })
}

/// The arrow crates assert, here and there, what a damaged file does not keep: that too is a refusal.
fn guarded<T>(read: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err((None, ReadErrorKind::Io { reason: "the Arrow data is damaged".to_string() })))
}

/// Reads an Arrow file or stream, from a file or a pipe: all of it is in memory at once.
pub(super) fn read(path: &Path, opened: Opened, options: &ReadOptions, sizes: &Sizes) -> Result<ReadTable, ReadError> {
    let refuse = |column, (row, kind): Failure| ReadError { path: path.to_path_buf(), row, line: None, column, kind };
    let Opened { mut source, content, .. } = opened;
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes).map_err(|e| refuse(None, (None, ReadErrorKind::Io { reason: e.to_string() })))?;
    if let Some(progress) = options.progress {
        progress(source.n_bytes());
    }
    let (sha256, n_bytes) = (source.sha256(), source.n_bytes());
    let (schema, batches) = guarded(|| batches(bytes, content)).map_err(|failure| refuse(None, failure))?;
    let names = schema.fields().iter().map(|f| f.name().trim().to_string()).collect();
    let (names, unnamed_first) = header::check_names(names).map_err(|kind| refuse(None, (None, kind)))?;
    let mut roles =
        header::roles(&names, unnamed_first, options).map_err(|(name, kind)| refuse(Some(name), (None, kind)))?;
    if batches.iter().all(|b| b.num_rows() == 0) {
        return Err(refuse(None, (None, ReadErrorKind::OnlyHeader { n_columns: names.len() })));
    }
    let index = names.iter().position(|name| name == PANDAS_INDEX).filter(|&i| roles[i] == Role::Number);
    if let Some(i) = index.filter(|_| options.columns.is_none()) {
        roles[i] = Role::Skip;
    }
    let mut columns = Vec::new();
    for i in (0..roles.len()).filter(|&i| roles[i] != Role::Skip) {
        let kind = schema.field(i).data_type();
        if !is_supported(kind) {
            let kind = ReadErrorKind::Unsupported { found: kind.to_string() };
            return Err(refuse(Some(names[i].clone()), (None, kind)));
        }
        let role = if roles[i] == Role::Number && !kind.is_numeric() { Role::Text } else { roles[i] };
        let mut taking = Taking::new(role, sizes);
        let take = || -> Result<_, Failure> {
            batches.iter().try_for_each(|b| take_column(b.column(i), &mut taking))?;
            taking.finish()
        };
        let values = guarded(take).map_err(|failure| refuse(Some(names[i].clone()), failure))?;
        columns.push(Column { name: names[i].clone(), values });
    }
    let table = Table::new(columns).map_err(|reason| refuse(None, (None, ReadErrorKind::Io { reason })))?;
    Ok(ReadTable { table, sha256, n_bytes, format: Format::Arrow, names, unnamed_first, without_line_end: false })
}

fn batches(bytes: Vec<u8>, content: Content) -> Result<(SchemaRef, Vec<RecordBatch>), Failure> {
    if content == Content::ArrowStream {
        let reader = StreamReader::try_new(Cursor::new(bytes), None).map_err(damaged)?;
        let schema = reader.schema();
        return Ok((schema, reader.collect::<Result<_, _>>().map_err(damaged)?));
    }
    let reader = FileReader::try_new(Cursor::new(bytes), None).map_err(damaged)?;
    let schema = reader.schema();
    Ok((schema, reader.collect::<Result<_, _>>().map_err(damaged)?))
}

fn is_supported(kind: &DataType) -> bool {
    match kind {
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            false
        }
        DataType::Boolean | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
        DataType::Dictionary(_, values) => {
            matches!(**values, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        }
        kind => kind.is_numeric(),
    }
}

fn take_column(column: &dyn Array, taking: &mut Taking<'_>) -> Result<(), Failure> {
    macro_rules! integers {
        ($kind:ty) => {
            column.as_primitive::<$kind>().iter().try_for_each(|v| taking.integer(v.map(i128::from)))
        };
    }
    match column.data_type() {
        DataType::Null => (0..column.len()).try_for_each(|_| taking.text(b"")),
        DataType::Boolean => column
            .as_boolean()
            .iter()
            .try_for_each(|v| taking.text(v.map_or(&b""[..], |v| if v { b"true" } else { b"false" }))),
        DataType::Int8 => integers!(Int8Type),
        DataType::Int16 => integers!(Int16Type),
        DataType::Int32 => integers!(Int32Type),
        DataType::Int64 => integers!(Int64Type),
        DataType::UInt8 => integers!(UInt8Type),
        DataType::UInt16 => integers!(UInt16Type),
        DataType::UInt32 => integers!(UInt32Type),
        DataType::UInt64 => integers!(UInt64Type),
        DataType::Float16 => column
            .as_primitive::<Float16Type>()
            .iter()
            .try_for_each(|v| taking.float(v.map(|v| v.to_f64()), |v| (v as f32).to_string())),
        DataType::Float32 => column
            .as_primitive::<Float32Type>()
            .iter()
            .try_for_each(|v| taking.float(v.map(f64::from), |v| (v as f32).to_string())),
        DataType::Float64 => {
            column.as_primitive::<Float64Type>().iter().try_for_each(|v| taking.float(v, |v| v.to_string()))
        }
        DataType::Dictionary(..) => {
            let dictionary = column.as_any_dictionary();
            let keys = dictionary.normalized_keys();
            let words = texts(dictionary.values().as_ref());
            (0..column.len()).try_for_each(|row| match column.is_null(row) {
                true => taking.text(b""),
                false => taking.text(words.get(keys[row]).and_then(Option::as_deref).unwrap_or("").as_bytes()),
            })
        }
        _ => texts(column).iter().try_for_each(|v| taking.text(v.as_deref().unwrap_or("").as_bytes())),
    }
}

/// The values of a column of strings.
fn texts(column: &dyn Array) -> Vec<Option<String>> {
    match column.data_type() {
        DataType::LargeUtf8 => column.as_string::<i64>().iter().map(|v| v.map(String::from)).collect(),
        DataType::Utf8View => column.as_string_view().iter().map(|v| v.map(String::from)).collect(),
        _ => column.as_string::<i32>().iter().map(|v| v.map(String::from)).collect(),
    }
}
