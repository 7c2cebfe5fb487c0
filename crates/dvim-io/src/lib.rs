//! Tables in, runs out: the only crate that touches files.

pub mod agreement;
pub mod atomic;
pub mod clean;
pub mod design;
pub mod environment;
pub mod journal;
pub mod kit;
pub mod labels;
pub mod manifest;
pub mod memory;
pub mod office;
#[cfg(feature = "parquet")]
mod parquet;
pub mod read;
pub mod regular;
pub mod run;
pub mod tasks;
pub mod threads;
pub mod batch;
