//! Time to read a table: `cargo run --release -p dvim-io --example read_speed -- FILE [THREADS [TEXT_COLUMN]]`.

use std::path::Path;
use std::time::Instant;

use dvim_io::read::{ReadOptions, read_table};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let threads = arguments.get(1).and_then(|t| t.parse().ok()).unwrap_or(0);
    let options = ReadOptions {
        id: Some("id".into()),
        text: arguments[2.min(arguments.len())..].to_vec(),
        threads,
        ..Default::default()
    };
    let start = Instant::now();
    match read_table(Path::new(&arguments[0]), &options) {
        Ok(read) => {
            let seconds = start.elapsed().as_secs_f64();
            let megabytes = read.n_bytes as f64 / 1e6;
            let (rows, columns) = (read.table.n_rows(), read.table.columns().len());
            eprintln!(
                "{rows} rows × {columns} columns, {megabytes:.0} MB in {seconds:.2} s: {:.0} MB/s, sha256 {}",
                megabytes / seconds,
                read.sha256
            );
        }
        Err(error) => eprintln!("{error}"),
    }
}
