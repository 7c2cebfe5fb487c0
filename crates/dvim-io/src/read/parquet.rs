//! A Parquet file to a table: each column by itself, a row group at a time, columns side by side on the threads.
//!
//! Integers and floats are numbers, booleans the texts `true` and `false`, strings (and dictionaries of them) text with
//! the missing values of delimited files, nulls missing. A column of strings stays text even if it holds only numbers:
//! its type was chosen. Dates, times, decimals and nested columns are refused if they are kept. The index that pandas
//! stores as `__index_level_0__` is left out unless it is asked for.

use std::fs::File;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use dvim::internal::table::{Column, Table, Values};
use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::header::{self, PANDAS_INDEX, Role};
use super::typed::{BATCH, Failure, Taking};
use super::{Format, ReadError, ReadErrorKind, ReadOptions, ReadTable, Sizes, source};

fn damaged(error: ParquetError) -> Failure {
    (None, ReadErrorKind::Io { reason: error.to_string() })
}

/// The parquet crate asserts, here and there, what a damaged file does not keep: that too is a refusal.
fn guarded<T>(read: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // What a panic may leave half done is dropped with the error, or is a file handle without a position of its own.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err((None, ReadErrorKind::Io { reason: "the Parquet data is damaged".to_string() })))
}

/// Reads a Parquet file.
pub(super) fn read(path: &Path, options: &ReadOptions, sizes: &Sizes) -> Result<ReadTable, ReadError> {
    let refuse = |column, (row, kind): Failure| ReadError { path: path.to_path_buf(), row, line: None, column, kind };
    let open = || -> Result<SerializedFileReader<File>, Failure> {
        let file = File::open(path).map_err(|e| (None, ReadErrorKind::Io { reason: e.to_string() }))?;
        guarded(|| SerializedFileReader::new(file).map_err(damaged))
    };
    let reader = open().map_err(|failure| refuse(None, failure))?;
    let metadata = reader.metadata().file_metadata();
    let schema = metadata.schema_descr();
    let names = schema.root_schema().get_fields().iter().map(|field| field.name().trim().to_string()).collect();
    let (names, unnamed_first) = header::check_names(names).map_err(|kind| refuse(None, (None, kind)))?;
    let mut roles =
        header::roles(&names, unnamed_first, options).map_err(|(name, kind)| refuse(Some(name), (None, kind)))?;
    if metadata.num_rows() == 0 {
        return Err(refuse(None, (None, ReadErrorKind::OnlyHeader { n_columns: names.len() })));
    }
    let index = names.iter().position(|name| name == PANDAS_INDEX).filter(|&i| roles[i] == Role::Number);
    if let Some(i) = index.filter(|_| options.columns.is_none()) {
        roles[i] = Role::Skip;
    }
    let mut kept = Vec::new();
    for i in (0..roles.len()).filter(|&i| roles[i] != Role::Skip) {
        let leaf = (0..schema.num_columns()).find(|&leaf| schema.get_column_root_idx(leaf) == i);
        let flat = leaf.filter(|&leaf| {
            let column = schema.column(leaf);
            column.path().parts().len() == 1 && column.max_rep_level() == 0
        });
        let Some(leaf) = flat else {
            let kind = ReadErrorKind::Unsupported { found: "list, map or struct".to_string() };
            return Err(refuse(Some(names[i].clone()), (None, kind)));
        };
        if let Some(found) = unsupported(&schema.column(leaf)) {
            return Err(refuse(Some(names[i].clone()), (None, ReadErrorKind::Unsupported { found })));
        }
        kept.push((i, leaf));
    }

    let threads = match options.threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Result<Values, Failure>>>> = Mutex::new(kept.iter().map(|_| None).collect());
    let work = || {
        let reader = open();
        loop {
            let k = next.fetch_add(1, Relaxed);
            let Some(&(i, leaf)) = kept.get(k) else { return };
            let values = match &reader {
                Ok(reader) => guarded(|| read_column(reader, leaf, roles[i], sizes)),
                Err(failure) => Err(failure.clone()),
            };
            done.lock().expect("no thread panics with it")[k] = Some(values);
        }
    };
    let digest = thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        let digest = source::digest(path, options.progress);
        work();
        digest
    });
    let (sha256, n_bytes) = digest.map_err(|kind| refuse(None, (None, kind)))?;

    let done = done.into_inner().expect("no thread panics with it");
    let mut columns = Vec::with_capacity(kept.len());
    for (&(i, _), values) in kept.iter().zip(done) {
        let values = values.expect("every column was taken by a thread");
        let values = values.map_err(|failure| refuse(Some(names[i].clone()), failure))?;
        columns.push(Column { name: names[i].clone(), values });
    }
    let table = Table::new(columns).map_err(|reason| refuse(None, (None, ReadErrorKind::Io { reason })))?;
    if !kept.is_empty() && table.n_rows() as i64 != metadata.num_rows() {
        let reason = format!("{} rows where the footer says {}", table.n_rows(), metadata.num_rows());
        return Err(refuse(None, (None, ReadErrorKind::Io { reason })));
    }
    Ok(ReadTable { table, sha256, n_bytes, format: Format::Parquet, names, unnamed_first, without_line_end: false })
}

/// The type of a column, if it is neither number, boolean nor text.
fn unsupported(column: &ColumnDescriptor) -> Option<String> {
    use ConvertedType as C;
    let logical = column.logical_type_ref();
    let plain_number = matches!(logical, None | Some(LogicalType::Integer(_) | LogicalType::Unknown))
        && matches!(
            column.converted_type(),
            C::NONE | C::INT_8 | C::INT_16 | C::INT_32 | C::INT_64 | C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64
        );
    let plain_text = matches!(
        logical,
        None | Some(LogicalType::String | LogicalType::Enum | LogicalType::Json | LogicalType::Unknown)
    ) && matches!(column.converted_type(), C::NONE | C::UTF8 | C::ENUM | C::JSON);
    let supported = match column.physical_type() {
        Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE => true,
        Physical::INT32 | Physical::INT64 => plain_number,
        Physical::BYTE_ARRAY => plain_text,
        Physical::INT96 | Physical::FIXED_LEN_BYTE_ARRAY => false,
    };
    (!supported).then(|| match logical {
        Some(logical) => format!("{logical:?}"),
        None if column.converted_type() != C::NONE => column.converted_type().to_string(),
        None => column.physical_type().to_string(),
    })
}

/// Whether an integer column is of unsigned integers.
fn is_unsigned(column: &ColumnDescriptor) -> bool {
    use ConvertedType as C;
    matches!(column.logical_type_ref(), Some(LogicalType::Integer(integer)) if !integer.is_signed)
        || matches!(column.converted_type(), C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64)
}

/// Reads one column through all row groups.
fn read_column(reader: &SerializedFileReader<File>, leaf: usize, role: Role, sizes: &Sizes) -> Result<Values, Failure> {
    let metadata = reader.metadata().file_metadata();
    let column = metadata.schema_descr().column(leaf);
    let levels = column.max_def_level();
    let unsigned = is_unsigned(&column);
    let is_number = !matches!(column.physical_type(), Physical::BOOLEAN | Physical::BYTE_ARRAY);
    let role = if role == Role::Number && !is_number { Role::Text } else { role };
    let mut taking = Taking::new(role, sizes);
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(damaged)?;
        match group.get_column_reader(leaf).map_err(damaged)? {
            ColumnReader::BoolColumnReader(values) => drain(values, levels, |value| {
                taking.text(value.map_or(&b""[..], |&value| if value { b"true" } else { b"false" }))
            }),
            ColumnReader::Int32ColumnReader(values) => drain(values, levels, |value| {
                taking.integer(value.map(|&v| if unsigned { i128::from(v as u32) } else { i128::from(v) }))
            }),
            ColumnReader::Int64ColumnReader(values) => drain(values, levels, |value| {
                taking.integer(value.map(|&v| if unsigned { i128::from(v as u64) } else { i128::from(v) }))
            }),
            ColumnReader::FloatColumnReader(values) => {
                drain(values, levels, |value| taking.float(value.map(|&v| f64::from(v)), |v| (v as f32).to_string()))
            }
            ColumnReader::DoubleColumnReader(values) => {
                drain(values, levels, |value| taking.float(value.copied(), |v| v.to_string()))
            }
            ColumnReader::ByteArrayColumnReader(values) => {
                drain(values, levels, |value| taking.text(value.map_or(&b""[..], |value| value.data())))
            }
            _ => Err((None, ReadErrorKind::Unsupported { found: column.physical_type().to_string() })),
        }?;
    }
    taking.finish()
}

/// Gives every value of a column of one row group, `None` for a null, to `take`.
fn drain<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    max_level: i16,
    mut take: impl FnMut(Option<&T::T>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    loop {
        levels.clear();
        values.clear();
        let (n, _, _) = reader.read_records(BATCH, Some(&mut levels), None, &mut values).map_err(damaged)?;
        if n == 0 {
            return Ok(());
        }
        if max_level == 0 {
            values.iter().try_for_each(|value| take(Some(value)))?;
        } else {
            let mut values = values.iter();
            for &level in &levels {
                take(if level == max_level { values.next() } else { None })?;
            }
        }
    }
}
