//! Tables in, runs out: the only crate that touches files.

pub mod read;
