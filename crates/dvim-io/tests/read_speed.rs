//! Time to read a table, printed:
//! `DVIM_FILE=cohort.csv cargo test --release -p dvim-io --test read_speed -- --ignored --nocapture`.

use std::path::PathBuf;
use std::time::Instant;

use dvim_io::read::{ReadOptions, read_table};

#[test]
#[ignore = "a measurement; needs a large file"]
fn megabytes_per_second() {
    let path = PathBuf::from(std::env::var("DVIM_FILE").unwrap());
    for threads in [1, 2] {
        let options = ReadOptions { threads, ..Default::default() };
        let start = Instant::now();
        let read = read_table(&path, &options).unwrap();
        let seconds = start.elapsed().as_secs_f64();
        let megabytes = read.n_bytes as f64 / 1e6;
        let (rows, columns) = (read.table.n_rows(), read.table.columns().len());
        let rate = megabytes / seconds;
        eprintln!("{threads} threads: {rows} × {columns}, {megabytes:.0} MB in {seconds:.2} s, {rate:.0} MB/s");
    }
}
