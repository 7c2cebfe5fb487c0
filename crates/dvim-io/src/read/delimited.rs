//! A delimited file to a table: threads take turns at reading a block, parse it side by side, and append in order.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use dvim::internal::table::{Column, Table, Values};

use super::blocks::{Blocks, Cut};
use super::columns::{Chunk, ColumnChunk, Growing, Numbers};
use super::header::{self, Header, Role};
use super::records::{self, BadRecord, Plan};
use super::source::{self, Content, Opened, Place};
use super::{Compression, Format, ReadError, ReadErrorKind, ReadOptions, ReadTable, RowLengthCause, Sizes};

/// Bytes in which the header is first looked for.
const HEADER_BYTES: usize = 64 << 10;

/// Reads an open file.
pub(super) fn read(
    place: &Place,
    opened: Opened,
    options: &ReadOptions,
    sizes: &Sizes,
) -> Result<ReadTable, ReadError> {
    let path = place.path();
    let refuse = |column, kind| ReadError { path: path.to_path_buf(), row: None, line: None, column, kind };
    let compression = match opened.content {
        Content::Gzip => Compression::Gzip,
        Content::Zstd => Compression::Zstd,
        _ => Compression::None,
    };
    let size = opened.size;
    let (header, blocks) = open_blocks(path, opened, sizes)?;
    let roles =
        header::roles(&header.names, header.unnamed_first, options).map_err(|(name, kind)| refuse(Some(name), kind))?;
    let expected_bytes = if compression == Compression::None { size } else { None };
    let task = Task { path, header: &header, options, sizes, expected_bytes };
    let pass = run(&task, &roles, blocks, BTreeMap::new())?;
    if pass.n_rows == 0 {
        return Err(refuse(None, ReadErrorKind::OnlyHeader { n_columns: header.names.len() }));
    }

    let mut turned = vec![Role::Skip; roles.len()];
    let mut first_texts = BTreeMap::new();
    let mut columns: Vec<(usize, Option<Values>)> = Vec::with_capacity(pass.columns.len());
    for (i, growing) in pass.columns {
        if let Growing::TurnedToText { row, found } = &growing {
            if size.is_none() {
                let kind = ReadErrorKind::TextInPipe { found: found.clone() };
                return Err(ReadError { row: Some(*row), ..refuse(Some(header.names[i].clone()), kind) });
            }
            turned[i] = Role::Text;
            first_texts.insert(i, (*row, found.clone()));
        }
        columns.push((i, growing.finish()));
    }
    if turned.contains(&Role::Text) {
        let (again, blocks) = open_blocks(path, source::open(place)?, sizes)?;
        if again.names != header.names || again.delimiter != header.delimiter {
            return Err(refuse(None, ReadErrorKind::Changed));
        }
        let second = run(&Task { header: &again, ..task }, &turned, blocks, first_texts)?;
        if second.sha256 != pass.sha256 {
            return Err(refuse(None, ReadErrorKind::Changed));
        }
        for (i, growing) in second.columns {
            let place = columns.iter_mut().find(|(j, _)| *j == i).expect("it was kept in the first pass");
            place.1 = growing.finish();
        }
    }

    let columns = columns
        .into_iter()
        .map(|(i, values)| Column {
            name: header.names[i].clone(),
            values: values.expect("text is read as text the second time"),
        })
        .collect();
    Ok(ReadTable {
        table: Table::new(columns).expect("names were found distinct and each row gave each column one value"),
        sha256: pass.sha256,
        n_bytes: pass.n_bytes,
        format: Format::Delimited { delimiter: header.delimiter, compression },
        names: header.names,
        unnamed_first: header.unnamed_first,
        without_line_end: pass.without_line_end,
    })
}

/// Reads the header and stands before the first row.
fn open_blocks(path: &Path, opened: Opened, sizes: &Sizes) -> Result<(Header, Blocks), ReadError> {
    use std::io::Read;
    let refuse = |line, kind| ReadError { path: path.to_path_buf(), row: None, line, column: None, kind };
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    let stem = Path::new(path.file_stem().unwrap_or_default()).extension().and_then(|e| e.to_str()).unwrap_or("");
    let is_tab = |e: &str| e.eq_ignore_ascii_case("tsv") || e.eq_ignore_ascii_case("tab");
    let prefers_tab = is_tab(extension) || (opened.content == Content::Gzip && is_tab(stem));
    let mut source = opened.source;
    let mut first = Vec::new();
    let mut wanted = HEADER_BYTES.min(sizes.record);
    loop {
        let missing = wanted - first.len();
        let n = match source.by_ref().take(missing as u64).read_to_end(&mut first) {
            Ok(n) => n,
            Err(error) => return Err(refuse(None, source.failure(&error))),
        };
        let at_end = n < missing;
        if opened.content == Content::Gzip && wanted <= HEADER_BYTES {
            source::recognise(&first).map_err(|kind| refuse(None, kind)).and_then(|inside| match inside {
                Content::Text => Ok(()),
                _ => Err(refuse(
                    None,
                    ReadErrorKind::Binary { what: "compressed twice", remedy: "unpack it once: `gunzip`" },
                )),
            })?;
        }
        match header::read(&first, at_end, prefers_tab) {
            Err((line, kind)) => return Err(refuse(line, kind)),
            Ok(Some(header)) => {
                first.drain(..header.n_bytes);
                let blocks = Blocks::new(source, first, header.delimiter, sizes.block, sizes.record);
                return Ok((header, blocks));
            }
            Ok(None) if wanted >= sizes.record => {
                return Err(refuse(Some(1), ReadErrorKind::RecordTooLong { limit: sizes.record }));
            }
            Ok(None) => wanted = wanted.saturating_mul(4).min(sizes.record),
        }
    }
}

/// What one way through the file gave.
struct Pass {
    /// Columns that were not skipped, by their position in the header.
    columns: Vec<(usize, Growing)>,
    n_rows: u64,
    sha256: String,
    n_bytes: u64,
    without_line_end: bool,
}

/// What the threads share.
struct Shared<'a> {
    plan: Plan,
    roles: Vec<Role>,
    /// The most rows that a block had so far: the next will have about as many.
    rows: AtomicUsize,
    limit: usize,
    window: u64,
    progress: Option<&'a (dyn Fn(u64) + Sync)>,
    /// Columns that turned to text in a block that was appended: later blocks need not parse them.
    turned: Vec<AtomicBool>,
    reader: Mutex<Reader>,
    sink: Mutex<Sink<'a>>,
    moved: Condvar,
}

/// The file, and the number of the block that comes next.
struct Reader {
    blocks: Blocks,
    next: u64,
    stopped: bool,
}

/// What was appended, and what waits for an earlier block.
struct Sink<'a> {
    next: u64,
    waiting: BTreeMap<u64, Result<Chunk, Failure>>,
    columns: Vec<Growing>,
    n_rows: u64,
    n_lines: u64,
    refused: Option<Refused>,
    stopped: bool,
    sizes: &'a Sizes,
}

/// Why the file is refused, and where: row and line counted from 1, the column among those kept.
struct Refused {
    row: Option<u64>,
    line: Option<u64>,
    column: Option<usize>,
    kind: ReadErrorKind,
}

/// Why a block could not be read or parsed.
enum Failure {
    Read(ReadErrorKind),
    Record(BadRecord),
}

/// Data behind a lock; a thread that panicked has already stopped the others.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one way through a file needs to know.
struct Task<'a> {
    path: &'a Path,
    header: &'a Header,
    options: &'a ReadOptions<'a>,
    sizes: &'a Sizes,
    expected_bytes: Option<u64>,
}

/// Reads all rows into columns of these roles. `first_texts` has, for columns that are known not to be of numbers, the
/// row and the value that say so.
fn run(
    task: &Task,
    roles: &[Role],
    blocks: Blocks,
    mut first_texts: BTreeMap<usize, (u64, String)>,
) -> Result<Pass, ReadError> {
    let &Task { path, header, options, sizes, expected_bytes } = task;
    let kept: Vec<usize> = (0..roles.len()).filter(|&i| roles[i] != Role::Skip).collect();
    let mut fields = vec![None; roles.len()];
    for (k, &i) in kept.iter().enumerate() {
        fields[i] = Some(k);
    }
    let threads = match options.threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        n => n.min(rayon::current_num_threads()),
    };
    let roles: Vec<Role> = kept.iter().map(|&i| roles[i]).collect();
    let sink = Sink {
        next: 0,
        waiting: BTreeMap::new(),
        columns: Vec::new(),
        n_rows: 0,
        n_lines: header.n_lines,
        refused: None,
        stopped: false,
        sizes,
    };
    let mut shared = Shared {
        plan: Plan { delimiter: header.delimiter, fields },
        turned: roles.iter().map(|_| AtomicBool::new(false)).collect(),
        roles,
        rows: AtomicUsize::new(0),
        limit: sizes.record,
        window: 2 * threads as u64 + 2,
        progress: options.progress,
        reader: Mutex::new(Reader { blocks, next: 0, stopped: false }),
        sink: Mutex::new(sink),
        moved: Condvar::new(),
    };

    // The first block settles what most columns are, so that few files are read twice.
    let mut buffer = Vec::new();
    let first = shared.take(&mut buffer);
    if let Some((number, result)) = first {
        let mut parsed = result.and_then(|cut| shared.parse(&buffer, cut));
        if let Ok(chunk) = &parsed {
            let mut found = false;
            for (k, column) in chunk.columns.iter().enumerate() {
                if let ColumnChunk::Number(Numbers { text: Some((row, text)), .. }) = column {
                    shared.roles[k] = Role::Text;
                    first_texts.insert(kept[k], (u64::from(*row) + 1, text.clone()));
                    found = true;
                }
            }
            if found {
                parsed = shared.parse(&buffer, Cut::default());
            }
        }
        let columns: Vec<Growing> = shared.roles.iter().map(|role| Growing::new(*role)).collect();
        let sink = shared.sink.get_mut().unwrap_or_else(PoisonError::into_inner);
        sink.columns = columns;
        if let (Ok(chunk), Some(expected)) = (&parsed, expected_bytes) {
            let rows = expected as f64 / buffer.len().max(1) as f64 * f64::from(chunk.n_rows);
            let with_margin = (rows * 1.02) as usize + 16;
            // Not for a file of one block, nor for more than the file can hold.
            if expected > 2 * buffer.len() as u64 {
                sink.columns.iter_mut().for_each(|column| column.reserve(with_margin.min(expected as usize)));
            }
        }
        shared.deliver(number, parsed);
        // Whoever waits in it waits for a block that another thread has in hand, so that fewer threads than asked for
        // do no harm.
        let shared = &shared;
        rayon::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|_| shared.work(Vec::new()));
            }
            shared.work(buffer);
        });
    } else {
        let columns = shared.roles.iter().map(|role| Growing::new(*role)).collect();
        shared.sink.get_mut().unwrap_or_else(PoisonError::into_inner).columns = columns;
    }

    let sink = shared.sink.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(Refused { row, line, column, mut kind }) = sink.refused {
        // The levels may have become too many before the value that is not a number.
        if let ReadErrorKind::TooManyLevels { first_text, .. } = &mut kind {
            if let Some(first) = column.and_then(|k| first_texts.remove(&kept[k])) {
                *first_text = Some(Box::new(first));
            }
        }
        let column = column.map(|k| header.names[kept[k]].clone());
        return Err(ReadError { path: path.to_path_buf(), row, line, column, kind });
    }
    let blocks = shared.reader.into_inner().unwrap_or_else(PoisonError::into_inner).blocks;
    let source = blocks.source();
    Ok(Pass {
        columns: kept.into_iter().zip(sink.columns).collect(),
        n_rows: sink.n_rows,
        sha256: source.sha256(),
        n_bytes: source.n_bytes(),
        without_line_end: blocks.is_without_line_end(),
    })
}

impl Shared<'_> {
    /// One thread: read a block, parse it, hand it over, until there is none.
    fn work(&self, mut buffer: Vec<u8>) {
        let _guard = StopOnPanic(self);
        while let Some((number, result)) = self.take(&mut buffer) {
            let parsed = result.and_then(|cut| self.parse(&buffer, cut));
            self.deliver(number, parsed);
        }
    }

    /// The next block and its number.
    fn take(&self, buffer: &mut Vec<u8>) -> Option<(u64, Result<Cut, Failure>)> {
        let mut reader = lock(&self.reader);
        if reader.stopped {
            return None;
        }
        let result = match reader.blocks.next(buffer) {
            Ok(None) => {
                reader.stopped = true;
                return None;
            }
            Ok(Some(cut)) => Ok(cut),
            Err(error) => {
                reader.stopped = true;
                Err(Failure::Read(reader.blocks.source().failure(&error)))
            }
        };
        let number = reader.next;
        reader.next += 1;
        if let Some(progress) = self.progress {
            progress(reader.blocks.source().n_bytes());
        }
        Some((number, result))
    }

    fn parse(&self, buffer: &[u8], cut: Cut) -> Result<Chunk, Failure> {
        let mut chunk = Chunk::new(&self.roles, self.rows.load(Relaxed));
        for (column, turned) in chunk.columns.iter_mut().zip(&self.turned) {
            if turned.load(Relaxed) {
                *column = ColumnChunk::Ignored;
            }
        }
        records::parse(buffer, cut, self.limit, &self.plan, &mut chunk).map_err(Failure::Record)?;
        self.rows.fetch_max(chunk.n_rows as usize, Relaxed);
        Ok(chunk)
    }

    /// Hands over a block, appends all whose turn it is, and waits if too many are ahead of the one that is missing.
    fn deliver(&self, number: u64, parsed: Result<Chunk, Failure>) {
        let mut sink = lock(&self.sink);
        sink.waiting.insert(number, parsed);
        while !sink.stopped {
            let next = sink.next;
            let Some(parsed) = sink.waiting.remove(&next) else { break };
            sink.append(parsed, &self.turned);
            sink.next += 1;
            self.moved.notify_all();
        }
        while !sink.stopped && number > sink.next + self.window {
            sink = self.moved.wait(sink).unwrap_or_else(PoisonError::into_inner);
        }
        if sink.stopped {
            drop(sink);
            lock(&self.reader).stopped = true;
            self.moved.notify_all();
        }
    }
}

impl Sink<'_> {
    fn append(&mut self, parsed: Result<Chunk, Failure>, turned: &[AtomicBool]) {
        match parsed {
            Ok(mut chunk) => {
                for (k, (column, chunk)) in self.columns.iter_mut().zip(&mut chunk.columns).enumerate() {
                    if let Err(kind) = column.append(chunk, self.n_rows, self.sizes) {
                        self.refuse(None, None, Some(k), kind);
                        return;
                    }
                    if matches!(column, Growing::TurnedToText { .. }) {
                        turned[k].store(true, Relaxed);
                    }
                }
                self.n_rows += u64::from(chunk.n_rows);
                self.n_lines += u64::from(chunk.n_lines);
            }
            Err(Failure::Read(kind)) => self.refuse(None, None, None, kind),
            Err(Failure::Record(bad)) => {
                let row = bad.row.map(|row| self.n_rows + u64::from(row) + 1);
                let line = self.n_lines + u64::from(bad.line) + 1;
                let mut kind = bad.kind.on_lines_after(self.n_lines);
                if let ReadErrorKind::RowLength { expected, found, cause, .. } = &mut kind {
                    let is_one_more = *found == *expected + 1 && row == Some(1);
                    if is_one_more && *cause != RowLengthCause::TrailingDelimiter {
                        *cause = RowLengthCause::HeaderWithoutRowNames;
                    }
                }
                self.refuse(row, Some(line), None, kind);
            }
        }
    }

    fn refuse(&mut self, row: Option<u64>, line: Option<u64>, column: Option<usize>, kind: ReadErrorKind) {
        self.refused = Some(Refused { row, line, column, kind });
        self.stopped = true;
    }
}

/// Lets the other threads end when one panics, so that the panic is seen and not a hang.
struct StopOnPanic<'a, 'b>(&'a Shared<'b>);

impl Drop for StopOnPanic<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            lock(&self.0.sink).stopped = true;
            lock(&self.0.reader).stopped = true;
            self.0.moved.notify_all();
        }
    }
}
