//! A stream of bytes, cut into blocks of whole records.

use std::io::{self, Read};

use memchr::{memchr, memrchr};

use super::records::is_blank;
use super::source::Source;

/// Hands out blocks in order.
pub(super) struct Blocks {
    source: Source,
    delimiter: u8,
    block: usize,
    record: usize,
    /// Bytes that were read and not handed out are `ahead[taken..]`.
    ahead: Vec<u8>,
    taken: usize,
    started: bool,
    at_end: bool,
    finished: bool,
    without_line_end: bool,
}

/// What a block is besides its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cut {
    /// The last line had no line end; one was added.
    pub without_line_end: bool,
    /// The block is the beginning of one record that is longer than a record may be.
    pub too_long: bool,
}

impl Blocks {
    /// Blocks of about `block` bytes of what follows `ahead` in `source`, which begins with it.
    pub fn new(source: Source, ahead: Vec<u8>, delimiter: u8, block: usize, record: usize) -> Blocks {
        let block = block.max(1);
        Blocks {
            source,
            delimiter,
            block,
            record,
            ahead,
            taken: 0,
            started: false,
            at_end: false,
            finished: false,
            without_line_end: false,
        }
    }

    /// Where the bytes come from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Whether the last line had no line end, once all blocks were handed out.
    pub fn is_without_line_end(&self) -> bool {
        self.without_line_end
    }

    /// Puts the next block into `buffer`: whole records, the last of which ends with a line feed.
    pub fn next(&mut self, buffer: &mut Vec<u8>) -> io::Result<Option<Cut>> {
        buffer.clear();
        if self.finished {
            return Ok(None);
        }
        let mut scan = Scan::default();
        // The first is short: while it settles what the columns are, nobody else has anything to do.
        let mut wanted = if self.started { self.block } else { self.block.div_ceil(4) };
        self.started = true;
        loop {
            self.fill(buffer, wanted)?;
            let at_end = self.at_end && self.taken == self.ahead.len();
            scan.advance(buffer, self.delimiter);
            if at_end {
                self.finished = true;
                if buffer.is_empty() {
                    return Ok(None);
                }
                let without_line_end = buffer.last() != Some(&b'\n');
                if without_line_end {
                    buffer.push(b'\n');
                    self.without_line_end = true;
                }
                return Ok(Some(Cut { without_line_end, too_long: false }));
            }
            if scan.boundary > 0 {
                let tail = buffer.len() - scan.boundary;
                if self.taken >= tail {
                    self.taken -= tail;
                } else {
                    self.ahead.clear();
                    self.ahead.extend_from_slice(&buffer[scan.boundary..]);
                    self.taken = 0;
                }
                buffer.truncate(scan.boundary);
                return Ok(Some(Cut::default()));
            }
            if buffer.len() >= self.record {
                self.finished = true;
                return Ok(Some(Cut { without_line_end: true, too_long: true }));
            }
            wanted = wanted.saturating_mul(2).min(self.record);
        }
    }

    /// Extends `buffer` to `wanted` bytes, from what lies ahead and then from the source.
    fn fill(&mut self, buffer: &mut Vec<u8>, wanted: usize) -> io::Result<()> {
        let from_ahead = wanted.saturating_sub(buffer.len()).min(self.ahead.len() - self.taken);
        buffer.extend_from_slice(&self.ahead[self.taken..self.taken + from_ahead]);
        self.taken += from_ahead;
        if buffer.len() < wanted && !self.at_end {
            // What was ahead is used up, and what will be put back no longer lies in it.
            self.ahead.clear();
            self.taken = 0;
            let mut at = buffer.len();
            buffer.resize(wanted, 0);
            while at < wanted {
                match self.source.read(&mut buffer[at..]) {
                    Ok(0) => break,
                    Ok(n) => at += n,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            }
            buffer.truncate(at);
            self.at_end = at < wanted;
        }
        Ok(())
    }
}

/// Where the last whole record ends, found by jumping from quote to quote.
#[derive(Default)]
struct Scan {
    at: usize,
    quoted: bool,
    boundary: usize,
}

impl Scan {
    /// Goes on to the end of `bytes`, which begins at the start of a record.
    fn advance(&mut self, bytes: &[u8], delimiter: u8) {
        while self.at < bytes.len() {
            let next_quote = memchr(b'"', &bytes[self.at..]).map(|i| self.at + i);
            if self.quoted {
                match next_quote {
                    None => self.at = bytes.len(),
                    // Whether this quote closes or is the first of two is for the next byte to say.
                    Some(q) if q + 1 == bytes.len() => {
                        self.at = q;
                        return;
                    }
                    Some(q) if bytes[q + 1] == b'"' => self.at = q + 2,
                    Some(q) => (self.quoted, self.at) = (false, q + 1),
                }
            } else {
                let plain_end = next_quote.unwrap_or(bytes.len());
                if let Some(i) = memrchr(b'\n', &bytes[self.at..plain_end]) {
                    self.boundary = self.at + i + 1;
                }
                self.quoted = next_quote.is_some() && opens(bytes, plain_end, delimiter);
                self.at = plain_end + usize::from(next_quote.is_some());
            }
        }
    }
}

/// Whether the quote at `q` stands at the start of a field, blanks aside.
fn opens(bytes: &[u8], q: usize, delimiter: u8) -> bool {
    let before = bytes[..q].iter().rev().find(|&&b| b == delimiter || !is_blank(b));
    before.is_none_or(|&b| b == delimiter || b == b'\n')
}
