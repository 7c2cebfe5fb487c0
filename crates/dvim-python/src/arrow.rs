//! Columns out of an Arrow C stream, the interface that polars, pyarrow, DuckDB and others share:
//! <https://arrow.apache.org/docs/format/CStreamInterface.html>. A column of doubles that comes in one piece and without
//! gaps is read where it is; everything else is converted as a Parquet file would be.

use crate::table::{TextBuilder, Unreadable, days_to_date};
use dvim::internal::table::{Ids, Numbers, Values};
use dvim_io::read::ids_of_texts;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream`.
#[repr(C)]
pub struct Stream {
    get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private_data: *mut c_void,
}

macro_rules! released {
    ($($kind:ty),*) => {$(
        impl Drop for $kind {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: the producer's own function, once: it clears `release`.
                    unsafe { release(self) };
                }
            }
        }
    )*};
}
released!(Schema, Array, Stream);

/// A chunk of the stream. SAFETY of both: the interface lets a structure be used and released on any thread.
struct Chunk(Array);
unsafe impl Send for Chunk {}
unsafe impl Sync for Chunk {}

/// Doubles inside a chunk, which they keep alive.
struct InPlace {
    _chunk: Arc<Chunk>,
    start: *const f64,
    len: usize,
}
// SAFETY: memory of a chunk, which is shared and never written to.
unsafe impl Send for InPlace {}
unsafe impl Sync for InPlace {}

impl AsRef<[f64]> for InPlace {
    fn as_ref(&self) -> &[f64] {
        // SAFETY: `len` doubles from `start` on belong to the chunk, by the layout of the format.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

/// The columns of a stream, by name; `id` is read as identifiers.
///
/// # Safety
/// `stream` points to a valid stream that nobody else will read or release.
pub unsafe fn columns(stream: *mut Stream, id: Option<&str>) -> Result<Vec<(String, Values)>, Unreadable> {
    // SAFETY: moved out as the interface allows: the source is marked as released.
    let mut stream = unsafe {
        let moved = std::ptr::read(stream);
        (*stream).release = None;
        moved
    };
    let (Some(get_schema), Some(get_next)) = (stream.get_schema, stream.get_next) else {
        return Err(Unreadable::whole("the Arrow stream was already read"));
    };
    // SAFETY: zeroed structures are what the interface asks for as places to write to.
    let mut schema: Schema = unsafe { std::mem::zeroed() };
    if unsafe { get_schema(&mut stream, &mut schema) } != 0 {
        return Err(Unreadable::whole(last_error(&mut stream)));
    }
    let mut chunks = Vec::new();
    loop {
        let mut array: Array = unsafe { std::mem::zeroed() };
        if unsafe { get_next(&mut stream, &mut array) } != 0 {
            return Err(Unreadable::whole(last_error(&mut stream)));
        }
        if array.release.is_none() {
            break;
        }
        chunks.push(Arc::new(Chunk(array)));
    }
    columns_of(&schema, &chunks, id)
}

/// The columns of one batch, as `__arrow_c_array__` gives it.
///
/// # Safety
/// Both point to valid structures that nobody else will read or release.
pub unsafe fn batch(
    schema: *mut c_void,
    array: *mut c_void,
    id: Option<&str>,
) -> Result<Vec<(String, Values)>, Unreadable> {
    let (schema, array) = (schema.cast::<Schema>(), array.cast::<Array>());
    // SAFETY: moved out as the interface allows: the sources are marked as released.
    let (schema, array) = unsafe {
        let moved = (std::ptr::read(schema), std::ptr::read(array));
        (*schema).release = None;
        (*array).release = None;
        moved
    };
    if schema.release.is_none() || array.release.is_none() {
        return Err(Unreadable::whole("the Arrow batch was already read"));
    }
    columns_of(&schema, &[Arc::new(Chunk(array))], id)
}

fn columns_of(schema: &Schema, chunks: &[Arc<Chunk>], id: Option<&str>) -> Result<Vec<(String, Values)>, Unreadable> {
    if format_of(schema) != "+s" {
        return Err(Unreadable::whole("the Arrow data hold no table: they are not of columns"));
    }
    (0..schema.n_children as usize)
        .map(|j| {
            // SAFETY: `n_children` pointers to schemas, by the interface.
            let field = unsafe { &**schema.children.add(j) };
            let name = text_of(field.name);
            let values = column(field, chunks, j, id == Some(name.as_str()));
            Ok((name.clone(), values.map_err(|found| Unreadable::column(&name, &found))?))
        })
        .collect()
}

fn last_error(stream: &mut Stream) -> String {
    // SAFETY: the text lives until the next call on the stream.
    let text = stream.get_last_error.map(|f| unsafe { f(stream) }).map(text_of);
    text.filter(|t| !t.is_empty()).unwrap_or_else(|| "the Arrow stream failed without a word".into())
}

fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: a text that ends in zero, by the interface.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn format_of(schema: &Schema) -> String {
    text_of(schema.format)
}

/// One column of one chunk, from the row where it starts.
struct Piece<'a> {
    array: &'a Array,
    offset: usize,
    len: usize,
}

impl<'a> Piece<'a> {
    fn of(chunk: &'a Chunk, j: usize) -> Piece<'a> {
        let whole = &chunk.0;
        // SAFETY: `n_children` pointers to arrays, one for each field of the schema.
        let array = unsafe { &**whole.children.add(j) };
        Piece { array, offset: (array.offset + whole.offset) as usize, len: whole.length as usize }
    }

    fn dictionary(&self) -> Option<Piece<'a>> {
        // SAFETY: null, or a valid array.
        let array = unsafe { self.array.dictionary.as_ref() }?;
        Some(Piece { array, offset: array.offset as usize, len: array.length as usize })
    }

    /// A buffer as values of `T`; empty where there is none.
    fn buffer<T: Copy>(&self, i: usize) -> *const T {
        if i as i64 >= self.array.n_buffers {
            return std::ptr::null();
        }
        // SAFETY: `n_buffers` pointers, by the interface.
        unsafe { (*self.array.buffers.add(i)).cast() }
    }

    fn slice<T: Copy>(&self, i: usize, more: usize) -> &'a [T] {
        let start = self.buffer::<T>(i);
        if start.is_null() || self.len == 0 {
            return &[];
        }
        // SAFETY: a buffer of a fixed width holds at least `offset + len` values (and one more offset, for texts).
        unsafe { std::slice::from_raw_parts(start.add(self.offset), self.len + more) }
    }

    fn bit(&self, i: usize, row: usize) -> bool {
        let at = self.offset + row;
        // SAFETY: bit buffers hold `offset + len` bits.
        unsafe { *self.buffer::<u8>(i).add(at / 8) >> (at % 8) & 1 == 1 }
    }

    fn has_gaps(&self) -> bool {
        self.array.null_count != 0 && !self.buffer::<u8>(0).is_null()
    }

    fn is_missing(&self, row: usize) -> bool {
        self.has_gaps() && !self.bit(0, row)
    }

    /// Numbers of one width, `None` where missing.
    fn each<T: Copy>(&self, mut take: impl FnMut(Option<T>)) {
        let values = self.slice::<T>(1, 0);
        (0..self.len).for_each(|i| take((!self.is_missing(i)).then(|| values[i])));
    }

    /// Texts, `None` where missing.
    fn texts(&self, format: &str, mut take: impl FnMut(Option<&str>)) -> Result<(), String> {
        for i in 0..self.len {
            if self.is_missing(i) {
                take(None);
                continue;
            }
            let bytes: &[u8] = match format {
                "u" => {
                    let ends = self.slice::<i32>(1, 1);
                    self.bytes(2, ends[i] as usize, (ends[i + 1] - ends[i]) as usize)
                }
                "U" => {
                    let ends = self.slice::<i64>(1, 1);
                    self.bytes(2, ends[i] as usize, (ends[i + 1] - ends[i]) as usize)
                }
                _ => {
                    // A view: length, then up to 12 bytes in place, or a prefix, a buffer and where in it.
                    let views = self.slice::<[u8; 16]>(1, 0);
                    let word = |k: usize| u32::from_le_bytes([0, 1, 2, 3].map(|b| views[i][4 * k + b]));
                    let len = word(0) as usize;
                    if len <= 12 {
                        &views[i][4..4 + len]
                    } else {
                        self.bytes(2 + word(2) as usize, word(3) as usize, len)
                    }
                }
            };
            take(Some(std::str::from_utf8(bytes).map_err(|_| format!("row {} is not UTF-8", i + 1))?));
        }
        Ok(())
    }

    fn bytes(&self, buffer: usize, start: usize, len: usize) -> &'a [u8] {
        if len == 0 {
            return &[];
        }
        // SAFETY: offsets of a valid array lie inside its buffer.
        unsafe { std::slice::from_raw_parts(self.buffer::<u8>(buffer).add(start), len) }
    }
}

fn column(field: &Schema, chunks: &[Arc<Chunk>], j: usize, is_id: bool) -> Result<Values, String> {
    let format = format_of(field);
    let pieces = || chunks.iter().map(|c| Piece::of(c, j));
    let n: usize = pieces().map(|p| p.len).sum();
    let whole = match chunks {
        [chunk] if format == "g" && !is_id && n > 0 => Some((chunk, Piece::of(chunk, j))),
        _ => None,
    };
    if let Some((chunk, piece)) = whole.filter(|(_, piece)| !piece.has_gaps()) {
        let values = piece.slice::<f64>(1, 0);
        let shared = InPlace { _chunk: Arc::clone(chunk), start: values.as_ptr(), len: values.len() };
        return Ok(Values::Number(Numbers::shared(Arc::new(shared))));
    }
    // SAFETY: null, or a valid schema.
    if let Some(of) = unsafe { field.dictionary.as_ref() } {
        return dictionary(&format, &format_of(of), pieces(), is_id);
    }
    let is_integer = matches!(format.as_str(), "c" | "C" | "s" | "S" | "i" | "I" | "l" | "L");
    if is_id && is_integer {
        let (mut ids, mut gaps) = (Vec::with_capacity(n), false);
        pieces().try_for_each(|p| {
            integers(&p, &format, |v| {
                gaps |= v.is_none();
                ids.push(v.unwrap_or(0));
            })
        })?;
        let fits = ids.iter().all(|v| i64::try_from(*v).is_ok());
        if !gaps && fits {
            return Ok(Values::Id(Ids::Integers(ids.into_iter().map(|v| v as i64).collect())));
        }
    }
    let mut numbers = Vec::new();
    let mut texts = TextBuilder::default();
    let mut is_text = false;
    for p in pieces() {
        let mut number = |v: Option<f64>| numbers.push(v.unwrap_or(f64::NAN));
        match format.as_str() {
            _ if is_integer => integers(&p, &format, |v| number(v.map(|v| v as f64)))?,
            "g" => p.each::<f64>(number),
            "f" => p.each::<f32>(|v| number(v.map(f64::from))),
            "e" => p.each::<u16>(|v| number(v.map(half))),
            "n" => (0..p.len).for_each(|_| number(None)),
            f if f.starts_with("d:") => decimals(&p, f, number)?,
            _ => {
                is_text = true;
                match format.as_str() {
                    "b" => (0..p.len).for_each(|i| {
                        let value = if p.bit(1, i) { "true" } else { "false" };
                        texts.push((!p.is_missing(i)).then_some(value));
                    }),
                    "u" | "U" | "vu" => p.texts(&format, |t| texts.push(t))?,
                    "tdD" => p.each::<i32>(|d| texts.push(d.map(|d| days_to_date(i64::from(d), 0)).as_deref())),
                    f => {
                        let per_day = ticks_per_day(f).ok_or_else(|| f.to_string())?;
                        p.each::<i64>(|t| {
                            let text = t.map(|t| {
                                let nanos =
                                    (t.rem_euclid(per_day) as i128 * 86_400_000_000_000 / per_day as i128) as i64;
                                days_to_date(t.div_euclid(per_day), nanos)
                            });
                            texts.push(text.as_deref());
                        });
                    }
                }
            }
        }
    }
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

fn ticks_per_day(format: &str) -> Option<i64> {
    let seconds = 86_400i64;
    match format.get(..3)? {
        "tdm" => Some(seconds * 1_000),
        "tss" => Some(seconds),
        "tsm" => Some(seconds * 1_000),
        "tsu" => Some(seconds * 1_000_000),
        "tsn" => Some(seconds * 1_000_000_000),
        _ => None,
    }
}

fn integers(p: &Piece<'_>, format: &str, mut take: impl FnMut(Option<i128>)) -> Result<(), String> {
    match format {
        "c" => p.each::<i8>(|v| take(v.map(i128::from))),
        "C" => p.each::<u8>(|v| take(v.map(i128::from))),
        "s" => p.each::<i16>(|v| take(v.map(i128::from))),
        "S" => p.each::<u16>(|v| take(v.map(i128::from))),
        "i" => p.each::<i32>(|v| take(v.map(i128::from))),
        "I" => p.each::<u32>(|v| take(v.map(i128::from))),
        "l" => p.each::<i64>(|v| take(v.map(i128::from))),
        "L" => p.each::<u64>(|v| take(v.map(i128::from))),
        other => return Err(other.to_string()),
    }
    Ok(())
}

/// `d:precision,scale[,bits]`.
fn decimals(p: &Piece<'_>, format: &str, mut take: impl FnMut(Option<f64>)) -> Result<(), String> {
    let parts: Vec<&str> = format[2..].split(',').collect();
    let (Some(Ok(scale)), 2) = (parts.get(1).map(|s| s.parse::<i32>()), parts.len()) else {
        return Err(format.to_string());
    };
    // By way of text, so that the number is rounded once.
    p.each::<[u8; 16]>(|v| {
        take(v.and_then(|v| format!("{}e{}", i128::from_le_bytes(v), -scale).parse().ok()));
    });
    Ok(())
}

/// IEEE half precision.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * f64::powi(2.0, -24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        e => (1.0 + fraction / 1024.0) * f64::powi(2.0, e - 15),
    };
    if bits >> 15 == 1 { -size } else { size }
}

fn dictionary<'a>(
    index: &str,
    format: &str,
    pieces: impl Iterator<Item = Piece<'a>>,
    is_id: bool,
) -> Result<Values, String> {
    if !matches!(format, "u" | "U" | "vu") {
        return Err(format!("dictionary of {format}"));
    }
    let mut texts = TextBuilder::default();
    for p in pieces {
        let mut levels = Vec::new();
        let Some(of) = p.dictionary() else { return Err("dictionary without values".into()) };
        of.texts(format, |t| levels.push(t.map(str::to_string)))?;
        let codes: Vec<Option<u32>> = levels.iter().map(|l| texts.code(l.as_deref())).collect();
        integers(&p, index, |v| {
            texts.push_code(v.and_then(|v| codes.get(usize::try_from(v).ok()?).copied().flatten()));
        })?;
    }
    Ok(if is_id { Values::Id(texts.ids()) } else { Values::Text(texts.finish()) })
}
