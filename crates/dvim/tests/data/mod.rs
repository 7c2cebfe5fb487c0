//! Reference data that belong to others and are not in the repository: `fetch.py` beside this file writes them.
//!
//! A test that reads them has a name that begins with `needs_data` and is ignored, so that every test run says that
//! it was left out. `cargo test -p dvim --tests -- --ignored needs_data` runs these tests; `tests/run` does so once it
//! has fetched the data. Then a file that is missing is a failure.

use std::path::Path;

/// The text of one of the files in the directory that `DVIM_DATA` names.
pub fn read(file: &str) -> String {
    let directory = std::env::var_os("DVIM_DATA")
        .expect("this test needs data: write them with crates/dvim/tests/data/fetch.py DIR, then set DVIM_DATA=DIR");
    let path = Path::new(&directory).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}, which fetch.py writes: {e}", path.display()))
}
