//! Times the search on points read from files; called by bench/search.py and bench/callgrind.sh.
//!
//! `bench_search REFERENCE QUERIES DIM K REPEATS [OUT]`: raw little-endian f64 files, row-major. Prints the
//! seconds of each build and each search; writes OUT.index (u32) and OUT.distance (f64) when asked to.
//! With `stream` for OUT the neighbours are visited, not kept.

use std::io::Write as _;
use std::time::Instant;

use dvim::matching::{Index, Neighbours, Points};

fn read(path: &str, dim: usize) -> Points {
    let bytes = std::fs::read(path).expect("a readable file");
    let coords = bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("8 bytes"))).collect();
    Points { dim, coords }
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
        let start = Instant::now();
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
        writeln!(out, "{built:.6} {:.6}", start.elapsed().as_secs_f64()).expect("stdout is open");
    }
    if let (Some(path), Some(last)) = (args.get(5), last) {
        let bytes: Vec<u8> = last.index.iter().flat_map(|x| x.to_le_bytes()).collect();
        std::fs::write(format!("{path}.index"), bytes).expect("a writable file");
        let bytes: Vec<u8> = last.squared_distance.iter().flat_map(|x| x.to_le_bytes()).collect();
        std::fs::write(format!("{path}.distance"), bytes).expect("a writable file");
    }
}
