//! Tables in, runs out: the only crate that touches files.

pub mod atomic;
pub mod memory;
pub mod read;
pub mod run;
