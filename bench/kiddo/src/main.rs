//! `bench-kiddo REFERENCE QUERIES K REPEATS OUT`: exact K nearest with kiddo's immutable tree, 20 axes, f64,
//! over all rayon threads. Prints seconds of build, search, and processor time in the search for each repeat; writes squared distances.

use std::num::NonZero;
use std::time::Instant;

use kiddo::{ImmutableKdTree, SquaredEuclidean};
use rayon::prelude::*;

const DIM: usize = 20; // kiddo fixes the dimension at compile time

fn read(path: &str) -> Vec<[f64; DIM]> {
    let bytes = std::fs::read(path).expect("a readable file");
    let value = |b: &[u8]| f64::from_le_bytes(b.try_into().expect("8 bytes"));
    bytes.chunks_exact(8 * DIM).map(|row| std::array::from_fn(|a| value(&row[8 * a..8 * a + 8]))).collect()
}

/// Processor time of all threads so far.
fn cpu_seconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = |task: std::fs::DirEntry| -> Option<f64> {
        std::fs::read_to_string(task.path().join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    tasks.filter_map(nanoseconds).sum::<f64>() / 1e9
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (reference, queries) = (read(&args[0]), read(&args[1]));
    let k = NonZero::new(args[2].parse::<usize>().expect("K")).expect("K > 0");
    let mut last = Vec::new();
    for _ in 0..args[3].parse().expect("repeats") {
        let start = Instant::now();
        let tree = ImmutableKdTree::new_from_slice(&reference).expect("a tree");
        let built = start.elapsed().as_secs_f64();
        let (start, cpu) = (Instant::now(), cpu_seconds());
        last = queries
            .par_iter()
            .map(|q| tree.query(q).nearest_n::<SquaredEuclidean<f64>>(k).execute())
            .collect::<Vec<_>>();
        let searched = start.elapsed().as_secs_f64();
        println!("{built:.6} {searched:.6} {:.6}", cpu_seconds() - cpu);
    }
    let bytes: Vec<u8> = last.iter().flatten().flat_map(|x| x.distance.to_le_bytes()).collect();
    std::fs::write(&args[4], bytes).expect("a writable file");
}
