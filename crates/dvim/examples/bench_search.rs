//! Times the search on points read from files; called by bench/search.py and bench/callgrind.sh.
//!
//! `bench_search REFERENCE QUERIES DIM K REPEATS [OUT]`: raw little-endian f64 files, row-major. Prints the
//! seconds of each build, of each search, and of processor time in the search; writes OUT.index (u32) and OUT.distance
//! (f64) when asked to. With `stream` for OUT the neighbours are visited, not kept.

use std::io::Write as _;
use std::time::Instant;

use dvim::internal::matching::{Index, Neighbours, Points};

fn read(path: &str, dim: usize) -> Points {
    let bytes = std::fs::read(path).expect("a readable file");
    let coords = bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("8 bytes"))).collect();
    Points { dim, coords }
}

/// Processor time of all threads so far, which other work on the machine disturbs less than the clock.
fn cpu_seconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = |task: std::fs::DirEntry| -> Option<f64> {
        std::fs::read_to_string(task.path().join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    tasks.filter_map(nanoseconds).sum::<f64>() / 1e9
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| args[i].parse::<usize>().expect("a number");
    let (dim, k, repeats) = (number(2), number(3), number(4));
    let reference = read(&args[0], dim);
    let queries = read(&args[1], dim);
    let mut out = std::io::stdout().lock();
    let mut last: Option<Neighbours> = None;
    for _ in 0..repeats {
        let start = Instant::now();
        let index = Index::build(&reference);
        let built = start.elapsed().as_secs_f64();
        last = None;
        let (start, cpu) = (Instant::now(), cpu_seconds());
        if args.get(5).is_some_and(|x| x == "stream") {
            index.nearest_each(
                &queries,
                k,
                || (),
                |(), _, positions, _| {
                    std::hint::black_box(positions);
                },
            );
        } else {
            last = Some(index.nearest(&queries, k));
        }
        let searched = start.elapsed().as_secs_f64();
        writeln!(out, "{built:.6} {searched:.6} {:.6}", cpu_seconds() - cpu).expect("stdout is open");
    }
    if let (Some(path), Some(last)) = (args.get(5), last) {
        let bytes: Vec<u8> = last.index.iter().flat_map(|x| x.to_le_bytes()).collect();
        std::fs::write(format!("{path}.index"), bytes).expect("a writable file");
        let bytes: Vec<u8> = last.squared_distance.iter().flat_map(|x| x.to_le_bytes()).collect();
        std::fs::write(format!("{path}.distance"), bytes).expect("a writable file");
    }
}
