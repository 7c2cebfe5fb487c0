//! What a reviewer asks of a run: average effects with intervals that hold, whether follow-up reaches the horizon,
//! whether the groups are comparable, and what it would take to overturn the conclusion.
//!
//! Every number rests on the groups that the estimates came from: one pass finds them again ([`passes`]), and what
//! is averaged, weighed or bounded is read off that pass. Nothing here changes an estimate.

pub mod average;
pub mod balance;
pub mod follow_up;
pub mod passes;
