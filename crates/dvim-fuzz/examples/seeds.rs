//! Writes where the fuzzers of runs begin, a summary and the body of a store, into `fuzz/corpus`.

fn main() -> std::io::Result<()> {
    let (summary, store) = dvim_fuzz::seeds();
    std::fs::write("fuzz/corpus/summary/in-order", summary)?;
    std::fs::write("fuzz/corpus/store/in-order", store)
}
