//! Double variable importance matching: does treatment change *whether* the event happens before
//! a horizon H (cure), and, for those it does not cure, *when* (the mean event time)?
//!
//! # The method in ten lines
//!
//! 1. [`cohort::Cohort`]: units with a time, an event, a treatment and covariates; H is applied.
//! 2. [`split::Split`]: some units of each arm train, the others are estimated.
//! 3. [`cure::fit`]: a mixture cure model for each arm, on the training set.
//! 4. [`metric::Metrics`]: the models' coefficients become two metrics, one for each estimand.
//! 5. [`matching::Index`]: the K nearest units of each arm under each metric, exactly.
//! 6. [`survival`]: the Kaplan–Meier curve of each match group.
//! 7. [`effect::Effect`]: cure effect π = S₁(H) − S₀(H); time effect Δ = CMET₁ − CMET₀.
//! 8. [`analysis::run`] puts these together; [`overview`] looks at a table before anything is fitted.
//!
//! # The words
//!
//! *Cured* means event-free at H. *CMET* is the conditional mean event time E[T | T < H]. A
//! positive cure effect means that treatment cures more; a positive time effect means that it
//! delays events.
//!
//! # One program
//!
//! ```
//! use dvim::analysis::{self, Options, Unwatched};
//! use dvim::simulate::{Scenario, simulate};
//!
//! let world = simulate(Scenario::BothOverlap, 2_000, false, 1);
//! let found = analysis::run(&world.cohort, &Options::default(), &Unwatched)?;
//! let average = found.average_cure_effect(&world.cohort, None);
//! assert!(average.mean.is_some_and(|m| m > 0.0), "this treatment cures more");
//! # Ok::<(), dvim::error::Error>(())
//! ```
//!
//! The engine does no input or output and keeps no state. Modules stand in flow order: each may
//! use those above it, and none below.

pub mod setting;
pub mod phrase;
pub mod error;
pub mod estimand;
pub mod arm;
mod numeric;
pub mod outcome;
pub mod table;
pub mod schema;
pub mod cohort;
pub mod split;
pub mod survival;
pub mod cure;
pub mod joint;
pub mod matching;
pub mod metric;
pub mod design;
pub mod interval;
pub mod constraint;
pub mod group;
pub mod effect;
pub mod martingale;
pub mod options;
pub mod watch;
pub mod search;
pub mod correction;
pub mod fold;
pub mod ground;
pub mod crossfit;
pub mod newcomers;
pub mod inspect;
pub mod analysis;
pub mod memory;
pub mod overview;
pub mod compare;
pub mod audit;
pub mod several;
pub mod simulate;
