//! Will it fit? What a table will take is judged from its first bytes, before it is read.

use dvim::internal::cohort::Cohort;
use dvim::internal::error::{Error, Problem, ProblemKind};
use dvim::internal::memory::memory_needed;
use dvim::internal::options::Options;
use dvim::internal::setting::Setting;
use dvim::phrase;
use dvim_report::text::grouped;
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

/// Bytes of memory that this process may still take, where the system says so: what is free, what its group may take,
/// and what its own limits (`ulimit -v`, `ulimit -d`) leave.
#[cfg(not(target_family = "wasm"))]
pub fn available() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find(|l| l.starts_with("MemAvailable:"))?;
    let free = line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024;
    let number = |file: &str| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let group = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    let group = group.map(|(most, now)| most.saturating_sub(now));
    Some([group, own_limit()].into_iter().flatten().fold(free, u64::min))
}

/// Bytes of memory that may still be taken in a browser: WebAssembly has addresses for 4 GB.
#[cfg(target_family = "wasm")]
pub fn available() -> Option<u64> {
    const PAGE: u64 = 1 << 16;
    Some((1 << 32) - PAGE * core::arch::wasm32::memory_size(0) as u64)
}

/// What the limits of the process itself leave of its address space and of its data.
#[cfg(target_os = "linux")]
fn own_limit() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let taken = |name: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(name))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    };
    let left = |limit: Resource, name: &str| Some(getrlimit(limit).current?.saturating_sub(taken(name)?));
    [left(Resource::As, "VmSize:"), left(Resource::Data, "VmData:")].into_iter().flatten().min()
}

#[cfg(not(any(target_os = "linux", target_family = "wasm")))]
fn own_limit() -> Option<u64> {
    None
}

/// Refuses work that would need more memory than there is, and says what would fit. `held` are bytes of it that are
/// taken already.
pub fn refuse(n_rows: usize, p: usize, options: &Options, audit: bool, held: u64) -> Result<(), Error> {
    let Some(available) = available() else { return Ok(()) };
    let threads = rayon::current_num_threads();
    let needed = |n: usize| memory_needed(n, p.max(1), options, audit, threads);
    if needed(n_rows).saturating_sub(held) <= available {
        return Ok(());
    }
    let most = available.saturating_add(held);
    // The most rows that would fit, by halving.
    let (mut fits, mut too_many) = (0, n_rows);
    while too_many - fits > 1 {
        let n = fits + (too_many - fits) / 2;
        *(if needed(n) <= most { &mut fits } else { &mut too_many }) = n;
    }
    let mega = |bytes: u64| grouped(bytes.div_ceil(1_000_000) as usize);
    let remedy = match fits {
        0..100 => phrase!["free some memory, raise its limit, or use a larger machine"],
        _ => phrase![
            format!("about {} rows would fit; take fewer covariates with ", grouped(fits)),
            Setting::Covariates,
            ", a random part of the rows, or a larger machine"
        ],
    };
    Err(Error::Refused(vec![Problem::error(
        ProblemKind::TooLarge,
        format!(
            "about {} rows and {} columns would need {} MB of memory, and {} MB are free",
            grouped(n_rows),
            grouped(p),
            mega(needed(n_rows)),
            mega(most)
        ),
        "the cohort and what is learned from it are held in memory",
        remedy,
    )]))
}

/// The same of a cohort that was read.
pub fn refuse_cohort(cohort: &Cohort, options: &Options, audit: bool) -> Result<(), Error> {
    let (n, p) = (cohort.n_units(), cohort.n_covariates());
    refuse(n, p, options, audit, 8 * (n * (p + 5)) as u64)
}
