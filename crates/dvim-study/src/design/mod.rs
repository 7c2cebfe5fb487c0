//! Before the study: how likely is a study to find the effects that it looks for?
//!
//! Trials are drawn from assumptions ([`Design`]: patients, both arms, follow-up) and analysed as the study will be: by
//! the difference of the arms' Kaplan–Meier curves, by the paper's estimator or by the adjusted one. Power is the share
//! of trials in which an estimate over its standard error is beyond the normal quantile.
//!
//! 1. [`asked`]: what a user gave, and every default; [`impossible`]: what is refused.
//! 2. [`latency`], [`world`], [`trial`]: the law of event times, the patients, one trial.
//! 3. [`analysis`]: the analyses of a trial; `controlled.rs`: the power of an estimator from few fits.
//! 4. [`power`]: size by size, until every power is known well enough; [`surface`]: over sizes and follow-up.
//! 5. [`sources`]: files that a design names, read. [`settings_file`], [`words`], [`text`], [`page`]: a design
//!    written back, in words, in tables, as a page.
//!
//! The trials of one seed are the same for every size as far as they go (common random numbers), and the same on any
//! number of threads.

pub mod asked;
pub mod impossible;
pub mod latency;
pub mod world;
pub mod trial;
pub mod analysis;
mod controlled;
pub mod surface;
pub mod power;
pub mod settings_file;
pub mod sources;
pub mod words;
pub mod text;
pub mod page;

pub use asked::{Asked, Design, Method, Multiplicity, OfRun};
pub use impossible::Impossible;
pub use power::{Forgetful, Memory, Power, Row, Share};
pub use world::OfPatient;
