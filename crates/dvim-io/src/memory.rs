//! Will it fit? What a table will take is judged from its first bytes, before it is read.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The likely shape of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Rows.
    pub n_rows: usize,
    /// Columns.
    pub n_columns: usize,
}

/// Bytes of the file that the forecast looks at.
const SAMPLE: usize = 1 << 16;

/// The shape of a delimited text file, judged from its first lines; `None` where it cannot be
/// judged (compressed, binary, too short).
pub fn forecast_shape(path: &Path) -> Option<Shape> {
    // A pipe can be read only once.
    let n_bytes = fs::metadata(path).ok().filter(|m| m.is_file())?.len() as usize;
    let mut sample = Vec::with_capacity(SAMPLE);
    File::open(path).ok()?.take(SAMPLE as u64).read_to_end(&mut sample).ok()?;
    if sample.contains(&0) || sample.starts_with(&[0x1f, 0x8b]) || sample.starts_with(b"PAR1") {
        return None;
    }
    let header_end = sample.iter().position(|b| *b == b'\n')?;
    let header = &sample[..header_end];
    let delimiter = *b",\t;".iter().max_by_key(|d| header.iter().filter(|b| b == d).count())?;
    let n_columns = header.iter().filter(|b| **b == delimiter).count() + 1;
    let last_end = sample.iter().rposition(|b| *b == b'\n')?;
    let n_lines = sample[header_end..last_end].iter().filter(|b| **b == b'\n').count();
    let row_bytes = (last_end - header_end) as f64 / n_lines as f64;
    (n_lines > 0).then(|| Shape { n_rows: ((n_bytes - header_end) as f64 / row_bytes) as usize, n_columns })
}

/// Bytes of memory that this process may still take, where the system says so.
pub fn available() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find(|l| l.starts_with("MemAvailable:"))?;
    let free = line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024;
    let number = |file: &str| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let limit = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    Some(limit.map_or(free, |(most, now)| free.min(most.saturating_sub(now))))
}
