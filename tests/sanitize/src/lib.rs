//! The modules of the engine that hold unsafe code, by path, with what they rest on. The whole engine takes minutes to
//! build under a sanitizer; these take seconds.
#![allow(dead_code, unused_imports, reason = "the rest of the engine uses it")]

#[path = "../../../crates/dvim/src/matching/mod.rs"]
pub mod matching;
#[path = "../../../crates/dvim/src/numeric.rs"]
mod numeric;
#[path = "../../../crates/dvim/src/processor.rs"]
pub mod processor;
#[path = "../../../crates/dvim/src/product.rs"]
mod product;

/// The names under which the engine's tests find them.
pub mod internal {
    pub use crate::{matching, processor};
}
