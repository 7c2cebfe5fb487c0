//! Double variable importance matching: does treatment change *whether* the event
//! happens before a horizon (cure), and, for those it does not cure, *when*?
//!
//! Modules stand in flow order; each may use those above it and none below.

pub mod compare;
pub mod cure;
pub mod error;
pub mod matching;
mod numeric;
pub mod table;
