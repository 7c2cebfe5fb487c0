//! Opening a file, knowing it by its first bytes, and taking its digest while it is read.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use sha2::{Digest, Sha256};

use super::{ReadError, ReadErrorKind};

/// What the first bytes say that a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing known: text.
    Text,
    /// Text under gzip.
    Gzip,
    /// Text under zstd.
    Zstd,
    /// Apache Parquet.
    #[cfg(feature = "parquet")]
    Parquet,
    /// Apache Arrow, as a file (Feather).
    #[cfg(feature = "arrow")]
    ArrowFile,
    /// Apache Arrow, as a stream.
    #[cfg(feature = "arrow")]
    ArrowStream,
}

/// Where the bytes of a table are.
pub(super) enum Place<'a> {
    /// In a file, or on standard input for `-`.
    File(&'a Path),
    /// In memory, under the name of the file that they came from.
    Memory(&'a Path, Arc<[u8]>),
}

impl Place<'_> {
    /// The path, or the name.
    pub fn path(&self) -> &Path {
        match self {
            Place::File(path) | Place::Memory(path, _) => path,
        }
    }
}

/// An open file.
pub(super) struct Opened {
    /// Its bytes, decompressed.
    pub source: Source,
    /// What it is.
    pub content: Content,
    /// Its size, if it is a regular file: only such a file can be read again.
    pub size: Option<u64>,
}

/// Bytes of a file with their digest.
struct Hashed {
    inner: io::Chain<io::Cursor<Vec<u8>>, Box<dyn Read + Send>>,
    hasher: Sha256,
    n_bytes: u64,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..n]);
        self.n_bytes += n as u64;
        Ok(n)
    }
}

/// The text of a file, whether it is compressed or not.
pub(super) struct Source(Stream);

enum Stream {
    Plain(Hashed),
    Gzip(Box<MultiGzDecoder<io::BufReader<Hashed>>>),
    Zstd(Box<Frames>),
}

/// The frames of a zstd file, one after the other. Skippable frames, which `pzstd` and seekable files have, hold no
/// data and are left out.
struct Frames {
    file: io::BufReader<Hashed>,
    /// The frame at hand; `None` after the last.
    frame: Option<FrameDecoder>,
}

impl Frames {
    fn new(hashed: Hashed) -> io::Result<Frames> {
        let mut file = io::BufReader::with_capacity(64 << 10, hashed);
        let frame = Frames::next(&mut file)?;
        Ok(Frames { file, frame })
    }

    /// Stands before the data of the next frame; `None` where the file ends.
    fn next(file: &mut io::BufReader<Hashed>) -> io::Result<Option<FrameDecoder>> {
        while !file.fill_buf()?.is_empty() {
            let mut frame = FrameDecoder::new();
            match frame.init(&mut *file) {
                Ok(()) => return Ok(Some(frame)),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let length = u64::from(length);
                    if io::copy(&mut file.by_ref().take(length), &mut io::sink())? < length {
                        return Err(damaged("a skippable frame is cut off"));
                    }
                }
                Err(error) => return Err(damaged(error)),
            }
        }
        Ok(None)
    }
}

fn damaged(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while let Some(frame) = &mut self.frame {
            while frame.can_collect() < buffer.len() && !frame.is_finished() {
                let missing = buffer.len() - frame.can_collect();
                frame
                    .decode_blocks(&mut self.file, BlockDecodingStrategy::UptoBytes(missing))
                    .map_err(io::Error::other)?;
            }
            let n = frame.read(buffer)?;
            if n > 0 {
                return Ok(n);
            }
            let sums = frame.get_checksum_from_data().zip(frame.get_calculated_checksum());
            if sums.is_some_and(|(said, found)| said != found) {
                return Err(damaged("the checksum does not fit"));
            }
            self.frame = Frames::next(&mut self.file)?;
        }
        Ok(0)
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Stream::Plain(hashed) => hashed.read(buffer),
            Stream::Gzip(decoder) => decoder.read(buffer),
            Stream::Zstd(frames) => frames.read(buffer),
        }
    }
}

impl Source {
    fn hashed(&self) -> &Hashed {
        match &self.0 {
            Stream::Plain(hashed) => hashed,
            Stream::Gzip(decoder) => decoder.get_ref().get_ref(),
            Stream::Zstd(frames) => frames.file.get_ref(),
        }
    }

    /// Bytes of the file that were read so far.
    pub fn n_bytes(&self) -> u64 {
        self.hashed().n_bytes
    }

    /// SHA-256 of the bytes of the file that were read so far.
    pub fn sha256(&self) -> String {
        let digest = self.hashed().hasher.clone().finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// How a failure to read is told: of the file, or of the compressed data.
    pub fn failure(&self, error: &io::Error) -> ReadErrorKind {
        let of_decoder = matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
        );
        match &self.0 {
            Stream::Gzip(_) if of_decoder => ReadErrorKind::Gzip { reason: error.to_string() },
            Stream::Zstd(_) if of_decoder || error.kind() == io::ErrorKind::Other => {
                ReadErrorKind::Zstd { reason: error.to_string() }
            }
            _ => ReadErrorKind::Io { reason: error.to_string() },
        }
    }
}

/// Opens a file, or standard input for `-`, and refuses what is known not to be a table.
pub(super) fn open(place: &Place) -> Result<Opened, ReadError> {
    let path = place.path();
    let refuse = |kind| ReadError { path: path.to_path_buf(), row: None, line: None, column: None, kind };
    let failed = |error: io::Error| {
        refuse(match error.kind() {
            io::ErrorKind::NotFound => ReadErrorKind::NoFile,
            io::ErrorKind::IsADirectory => ReadErrorKind::Directory,
            _ => ReadErrorKind::Io { reason: error.to_string() },
        })
    };
    let (mut file, size): (Box<dyn Read + Send>, Option<u64>) = match place {
        Place::Memory(_, bytes) => (Box::new(io::Cursor::new(Arc::clone(bytes))), Some(bytes.len() as u64)),
        Place::File(_) if path == Path::new("-") => (Box::new(io::stdin()), None),
        Place::File(_) => {
            let file = File::open(path).map_err(failed)?;
            let metadata = file.metadata().map_err(failed)?;
            if metadata.is_dir() {
                return Err(refuse(ReadErrorKind::Directory));
            }
            (Box::new(file), metadata.is_file().then_some(metadata.len()))
        }
    };
    let mut first = Vec::new();
    file.by_ref().take(64).read_to_end(&mut first).map_err(failed)?;
    let content = recognise(&first).map_err(refuse)?;
    let hashed = Hashed { inner: io::Cursor::new(first).chain(file), hasher: Sha256::new(), n_bytes: 0 };
    let stream = match content {
        Content::Gzip => Stream::Gzip(Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(64 << 10, hashed)))),
        Content::Zstd => {
            let frames = Frames::new(hashed).map_err(|e| refuse(ReadErrorKind::Zstd { reason: e.to_string() }))?;
            Stream::Zstd(Box::new(frames))
        }
        _ => Stream::Plain(hashed),
    };
    Ok(Opened { source: Source(stream), content, size })
}

/// What a file is by its first bytes; an error if it cannot be a table that we read.
pub(super) fn recognise(first: &[u8]) -> Result<Content, ReadErrorKind> {
    const EXPORT: &str = "export it as CSV from the program that wrote it";
    let known: &[(&[u8], &'static str, &'static str)] = &[
        (
            b"PK\x03\x04",
            "an Excel workbook or another zip archive",
            "save the sheet as CSV UTF-8, or unpack the archive",
        ),
        (b"\xD0\xCF\x11\xE0", "an Excel workbook of the old kind (.xls)", "save the sheet as CSV UTF-8"),
        (b"BZh", "compressed with bzip2", "unpack it first: `bunzip2`"),
        (
            b"\xFD7zXZ\0",
            "compressed with xz, as are some R data files",
            "unpack it first, or write the table with `write.csv`",
        ),
        (b"RDX", "an R data file", "write the table with `write.csv(x, file, row.names = FALSE)`"),
        (b"RDA", "an R data file", "write the table with `write.csv(x, file, row.names = FALSE)`"),
        (b"X\n\0\0", "an R data file", "write the table with `write.csv(x, file, row.names = FALSE)`"),
        (b"<stata_dta>", "a Stata data file", "export it with `export delimited`"),
        (b"$FL2", "an SPSS data file", EXPORT),
        (b"$FL3", "an SPSS data file", EXPORT),
        (b"\0\0\0\0\0\0\0\0\0\0\0\0\xC2\xEA\x81\x60", "a SAS data file", "export it with `proc export dbms=csv`"),
        (b"HEADER RECORD*******", "a SAS transport file", "export it with `proc export dbms=csv`"),
        (b"SQLite format 3\0", "an SQLite database", "export the table as CSV"),
        (b"\x89HDF", "an HDF5 file", EXPORT),
        (b"%PDF", "a PDF document", "a table is needed as CSV"),
        (b"<!DOCTYPE", "a web page", "download the table itself, not the page that shows it"),
        (b"<html", "a web page", "download the table itself, not the page that shows it"),
        (b"\xFF\xFE", "text in UTF-16", "save it as UTF-8 (in Excel: `CSV UTF-8`)"),
        (b"\xFE\xFF", "text in UTF-16", "save it as UTF-8 (in Excel: `CSV UTF-8`)"),
    ];
    if first.starts_with(b"PAR1") {
        #[cfg(feature = "parquet")]
        return Ok(Content::Parquet);
        #[cfg(not(feature = "parquet"))]
        return Err(ReadErrorKind::Binary {
            what: "a Parquet file, which this build does not read",
            remedy: "build with the feature `parquet`, or write it as CSV",
        });
    }
    let is_stream = first.starts_with(b"\xFF\xFF\xFF\xFF") && first.len() >= 8;
    if first.starts_with(b"ARROW1") || is_stream {
        #[cfg(feature = "arrow")]
        return Ok(if is_stream { Content::ArrowStream } else { Content::ArrowFile });
        #[cfg(not(feature = "arrow"))]
        return Err(ReadErrorKind::Binary {
            what: "an Arrow or Feather file, which this build does not read",
            remedy: "build with the feature `arrow`, or write it as CSV",
        });
    }
    if first.starts_with(b"\x1F\x8B") {
        return Ok(Content::Gzip);
    }
    // A file may begin with a skippable frame.
    let is_skippable = matches!(first, [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..]);
    if first.starts_with(b"\x28\xB5\x2F\xFD") || is_skippable {
        return Ok(Content::Zstd);
    }
    match known.iter().find(|(magic, ..)| first.starts_with(magic)) {
        Some(&(_, what, remedy)) => Err(ReadErrorKind::Binary { what, remedy }),
        None => Ok(Content::Text),
    }
}

/// SHA-256 and size of a file that is read by other means.
#[cfg(feature = "parquet")]
pub(super) fn digest(path: &Path, progress: Option<&(dyn Fn(u64) + Sync)>) -> Result<(String, u64), ReadErrorKind> {
    let failed = |error: io::Error| ReadErrorKind::Io { reason: error.to_string() };
    let file: Box<dyn Read + Send> = Box::new(File::open(path).map_err(failed)?);
    let hashed = Hashed { inner: io::Cursor::new(Vec::new()).chain(file), hasher: Sha256::new(), n_bytes: 0 };
    let mut source = Source(Stream::Plain(hashed));
    let mut buffer = vec![0; 256 << 10];
    while source.read(&mut buffer).map_err(failed)? > 0 {
        if let Some(progress) = progress {
            progress(source.n_bytes());
        }
    }
    Ok((source.sha256(), source.n_bytes()))
}
