//! dvim in a web page. A worker of the page holds one [`Session`]: a table, and what was found in it. The page asks it
//! through the few functions of `exports.rs`. Nothing here touches a file or a network.
//!
//! `make web` compiles it for `wasm32-unknown-unknown` and puts it into one page.

#[cfg(target_family = "wasm")]
mod exports;
mod guess;
mod session;

pub use session::{Refusal, Session};
