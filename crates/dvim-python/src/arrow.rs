//! Columns out of Arrow's C interface, which polars, pyarrow, DuckDB and others share:
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>. A column of doubles that comes in one
//! piece and without gaps is read where it is; every other column is converted as a Parquet file would be.

use crate::table::Unreadable;
use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::temporal_conversions as temporal;
use arrow_array::types::*;
use arrow_array::{Array, RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, DataType, SchemaRef, TimeUnit};
use dvim::internal::table::{Ids, Numbers, Values};
use dvim_bind::text::TextBuilder;
use dvim_io::read::ids_of_texts;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Reads the columns of a stream, by name; `id` is read as identifiers.
///
/// # Safety
/// `stream` points to a valid stream that nobody else will read or release.
pub unsafe fn columns(
    stream: *mut FFI_ArrowArrayStream,
    id: Option<&str>,
) -> Result<Vec<(String, Values)>, Unreadable> {
    // SAFETY: promised by the caller; the source is marked as released.
    let mut reader = unsafe { ArrowArrayStreamReader::from_raw(stream) }.map_err(no_table)?;
    // The reader panics where a producer fails without saying why.
    let batches = catch_unwind(AssertUnwindSafe(|| reader.by_ref().collect::<Result<Vec<_>, _>>()));
    let silent = Err(ArrowError::CDataInterface("the stream failed and did not say why".to_string()));
    let batches = batches.unwrap_or(silent).map_err(|e| Unreadable::whole(said(&e)))?;
    columns_of(&reader.schema(), &batches, id)
}

/// Reads the columns of one batch, as `__arrow_c_array__` gives it.
///
/// # Safety
/// Both point to valid structures that nobody else will read or release.
pub unsafe fn batch(
    schema: *mut FFI_ArrowSchema,
    array: *mut FFI_ArrowArray,
    id: Option<&str>,
) -> Result<Vec<(String, Values)>, Unreadable> {
    // SAFETY: promised by the caller; the sources are marked as released.
    let (schema, array) = unsafe { (FFI_ArrowSchema::from_raw(schema), FFI_ArrowArray::from_raw(array)) };
    if array.is_released() {
        return Err(Unreadable::whole("the Arrow batch was already read"));
    }
    // SAFETY: the array is of this schema, as the interface says.
    let data = unsafe { from_ffi(array, &schema) }.map_err(no_table)?;
    if !matches!(data.data_type(), DataType::Struct(_)) {
        return Err(no_table(ArrowError::CDataInterface(format!("they are of {}", data.data_type()))));
    }
    let batch = RecordBatch::from(StructArray::from(data));
    columns_of(&batch.schema(), &[batch], id)
}

fn no_table(error: ArrowError) -> Unreadable {
    Unreadable::whole(format!("the Arrow data hold no table: {}", said(&error)))
}

/// What an error says, without the name of its kind.
fn said(error: &ArrowError) -> String {
    match error {
        ArrowError::CDataInterface(text) => text.clone(),
        other => other.to_string(),
    }
}

fn columns_of(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    id: Option<&str>,
) -> Result<Vec<(String, Values)>, Unreadable> {
    let of = |(j, field): (usize, &Arc<arrow_schema::Field>)| {
        let pieces: Vec<&dyn Array> = batches.iter().map(|b| b.column(j).as_ref()).collect();
        let values = column(field.data_type(), &pieces, id == Some(field.name().as_str()));
        Ok((field.name().clone(), values.map_err(|found| Unreadable::column(field.name(), &found))?))
    };
    schema.fields().iter().enumerate().map(of).collect()
}

/// The values of one column, which comes in pieces of one type. Fails with the type, where columns cannot have it.
fn column(kind: &DataType, pieces: &[&dyn Array], is_id: bool) -> Result<Values, String> {
    match (kind, pieces) {
        (DataType::Float64, [whole]) if !is_id && whole.null_count() == 0 => {
            let values = whole.as_primitive::<Float64Type>().values();
            return Ok(Values::Number(Numbers::shared(Arc::new(values.clone()))));
        }
        (kind, pieces) if is_id && kind.is_integer() => {
            if let Some(ids) = integer_ids(pieces) {
                return Ok(Values::Id(Ids::Integers(ids)));
            }
        }
        _ => {}
    }
    let (mut numbers, mut texts) = (Vec::new(), TextBuilder::default());
    for piece in pieces {
        if !take_numbers(*piece, |v| numbers.push(v.unwrap_or(f64::NAN))) {
            take_texts(*piece, &mut texts)?;
        }
    }
    let is_text = !is_number(kind);
    Ok(match (is_id, is_text) {
        (false, false) => Values::Number(numbers.into()),
        (false, true) => Values::Text(texts.finish()),
        (true, true) => Values::Id(texts.ids()),
        (true, false) => {
            let text = |v: &f64| if v.is_nan() { String::new() } else { v.to_string() };
            let all: Vec<String> = numbers.iter().map(text).collect();
            Values::Id(ids_of_texts(all.iter().map(String::as_str)))
        }
    })
}

/// Whether columns of this type are numbers. A column of nulls is one without any.
fn is_number(kind: &DataType) -> bool {
    kind.is_numeric() || *kind == DataType::Null
}

/// Identifiers that are whole numbers; `None` where one is missing or too large.
fn integer_ids(pieces: &[&dyn Array]) -> Option<Vec<i64>> {
    let mut ids = Some(Vec::with_capacity(pieces.iter().map(|p| p.len()).sum()));
    for piece in pieces {
        take_integers(*piece, |v| match (&mut ids, v.map(i64::try_from)) {
            (Some(list), Some(Ok(v))) => list.push(v),
            (ids, _) => *ids = None,
        });
    }
    ids
}

/// Gives each value of a column of whole numbers, `None` where it is missing. Returns whether the column is one.
fn take_integers(column: &dyn Array, mut take: impl FnMut(Option<i128>)) -> bool {
    macro_rules! each {
        ($kind:ty) => {
            column.as_primitive::<$kind>().iter().for_each(|v| take(v.map(i128::from)))
        };
    }
    match column.data_type() {
        DataType::Int8 => each!(Int8Type),
        DataType::Int16 => each!(Int16Type),
        DataType::Int32 => each!(Int32Type),
        DataType::Int64 => each!(Int64Type),
        DataType::UInt8 => each!(UInt8Type),
        DataType::UInt16 => each!(UInt16Type),
        DataType::UInt32 => each!(UInt32Type),
        DataType::UInt64 => each!(UInt64Type),
        _ => return false,
    }
    true
}

/// Gives each value of a column of numbers, `None` where it is missing. Returns whether the column is one.
fn take_numbers(column: &dyn Array, mut take: impl FnMut(Option<f64>)) -> bool {
    macro_rules! decimals {
        ($kind:ty) => {{
            // By way of text, so that the number is rounded once.
            let values = column.as_primitive::<$kind>();
            let number = |i: usize| values.is_valid(i).then(|| values.value_as_string(i).parse().ok()).flatten();
            (0..values.len()).for_each(|i| take(number(i)));
        }};
    }
    match column.data_type() {
        DataType::Null => (0..column.len()).for_each(|_| take(None)),
        DataType::Float64 => column.as_primitive::<Float64Type>().iter().for_each(take),
        DataType::Float32 => column.as_primitive::<Float32Type>().iter().for_each(|v| take(v.map(f64::from))),
        DataType::Float16 => column.as_primitive::<Float16Type>().iter().for_each(|v| take(v.map(f64::from))),
        DataType::Decimal32(..) => decimals!(Decimal32Type),
        DataType::Decimal64(..) => decimals!(Decimal64Type),
        DataType::Decimal128(..) => decimals!(Decimal128Type),
        DataType::Decimal256(..) => decimals!(Decimal256Type),
        _ => return take_integers(column, |v| take(v.map(|v| v as f64))),
    }
    true
}

/// Adds the values of a column that is text, or is written as text. Fails with its type where it is neither.
fn take_texts(column: &dyn Array, texts: &mut TextBuilder) -> Result<(), String> {
    macro_rules! dates {
        ($kind:ty, $of:expr) => {
            column.as_primitive::<$kind>().iter().for_each(|v| texts.push(v.and_then($of).map(written).as_deref()))
        };
    }
    match column.data_type() {
        DataType::Boolean => {
            column.as_boolean().iter().for_each(|v| texts.push(v.map(|v| if v { "true" } else { "false" })));
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => each_text(column, |t| texts.push(t))?,
        DataType::Dictionary(_, of) if of.is_string() => {
            let dictionary = column.as_any_dictionary();
            let mut codes = Vec::new();
            each_text(dictionary.values().as_ref(), |t| codes.push(texts.code(t)))?;
            let code = |v: i128| codes.get(usize::try_from(v).ok()?).copied().flatten();
            take_integers(dictionary.keys(), |v| texts.push_code(v.and_then(code)));
        }
        DataType::Date32 => dates!(Date32Type, temporal::date32_to_datetime),
        DataType::Date64 => dates!(Date64Type, temporal::date64_to_datetime),
        DataType::Timestamp(TimeUnit::Second, _) => dates!(TimestampSecondType, temporal::timestamp_s_to_datetime),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            dates!(TimestampMillisecondType, temporal::timestamp_ms_to_datetime);
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            dates!(TimestampMicrosecondType, temporal::timestamp_us_to_datetime);
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            dates!(TimestampNanosecondType, temporal::timestamp_ns_to_datetime);
        }
        other => return Err(other.to_string()),
    }
    Ok(())
}

/// Gives each text of a column of strings, `None` where it is missing. Fails where one is not UTF-8.
fn each_text(column: &dyn Array, take: impl FnMut(Option<&str>)) -> Result<(), String> {
    // What comes through the interface was not looked at yet: offsets and bytes may be anything.
    column.to_data().validate_full().map_err(|e| format!("{}: {e}", column.data_type()))?;
    match column.data_type() {
        DataType::LargeUtf8 => column.as_string::<i64>().iter().for_each(take),
        DataType::Utf8View => column.as_string_view().iter().for_each(take),
        _ => column.as_string::<i32>().iter().for_each(take),
    }
    Ok(())
}

/// `2019-07-31 00:00:00` as `2019-07-31`; a time of day is kept to the second, after a `T`.
fn written(moment: impl ToString) -> String {
    let text = moment.to_string();
    match text.split_once(' ') {
        Some((date, "00:00:00")) => date.to_string(),
        Some((date, time)) => format!("{date}T{}", time.get(..8).unwrap_or(time)),
        None => text,
    }
}
