//! Double variable importance matching: does treatment change *whether* the event happens before a horizon H,
//! and, for those who have it, *when*?
//!
//! # One program
//!
//! ```
//! use dvim::{Audit, Options, Scenario, Unwatched, run, simulate};
//!
//! let world = simulate(Scenario::BothOverlap, 2_000, false, 1);
//! let found = run(&world.cohort, &Options::default(), &Unwatched)?;
//! let audit = Audit::of(&world.cohort, &found, &[])?;
//! let average = &audit.averages[0];
//! assert_eq!((average.estimand, average.population.as_str()), ("cure_effect", "all"));
//! assert!(average.estimate.is_some_and(|m| m > 0.0), "this treatment cures more");
//! # Ok::<(), dvim::Error>(())
//! ```
//!
//! Real data begin as a [`Table`] of named columns. [`Roles`] say which column is the time, the event and the
//! treatment. [`Cohort::from_table`] accepts the table or refuses it with every [`Problem`] at once. [`run`] gives an
//! [`Analysis`]: what
//! was learned ([`Fit`]) and the two effects of each unit ([`Effect`]). [`Fit::match_groups`] shows the patients behind
//! one number, and [`Audit`] says whether the run can be relied on.
//!
//! # The method in ten lines
//!
//! 1. A *cohort* holds units with a time, an event, a treatment and covariates; H is applied.
//! 2. Some units *train* a cure model of each arm: who is cured, and when the others have the event.
//! 3. The coefficients become two *metrics*: which covariates matter for cure, and which for time.
//! 4. What was learned is a list of *folds*: who is estimated, under which metrics, in groups of which size.
//! 5. Under each metric the K nearest units of each arm are a unit's *match group*.
//! 6. A Kaplan–Meier curve of each group gives S(H) and the mean event time before H.
//! 7. Where a fold has a *corrector*, a model corrects the groups for the difference that remains inside them.
//! 8. The *cure effect* is π = S₁(H) − S₀(H), the *time effect* Δ = E[T₁ | T₁ < H] − E[T₀ | T₀ < H].
//! 9. The paper's Algorithm 1 is one fold without a corrector.
//! 10. The adjusted estimator is several folds with correctors, each learned from the units outside the fold.
//!
//! # The words
//!
//! *Cured* means event-free at H. A positive cure effect means that treatment cures more. A positive time effect means
//! that it delays events.
//!
//! The engine does no input or output and keeps no state that a result depends on. Its modules stand in the order of
//! the flow: each may use those above it, and none below. `ARCHITECTURE.md` has the picture.

mod setting;
mod phrase;
mod error;
mod estimand;
mod arm;
mod processor;
mod numeric;
mod exact;
mod product;
mod distribution;
mod outcome;
mod table;
mod schema;
mod cohort;
mod support;
mod scaling;
mod split;
mod survival;
mod interval;
mod curve;
mod boost;
mod boosted;
mod beside;
mod cure;
mod joint;
mod nuisance;
mod matching;
mod metric;
mod constraint;
mod group;
mod effect;
mod martingale;
mod options;
mod watch;
mod search;
mod correction;
mod fold;
mod ground;
mod crossfit;
mod newcomers;
mod inspect;
mod analysis;
mod memory;
mod overview;
mod compare;
mod audit;
mod imputation;
mod contrasts;
mod simulate;
mod rehearsal;

pub use analysis::{Analysis, run};
pub use arm::{Arm, ByArm};
pub use audit::Audit;
pub use cohort::{Cohort, Roles};
pub use effect::Effect;
pub use error::{Error, Problem};
pub use estimand::{ByEstimand, Estimand};
pub use fold::Fit;
pub use inspect::MatchGroup;
pub use interval::Interval;
pub use options::{Estimator, Options};
pub use simulate::{Scenario, simulate};
pub use table::{Column, Table, Values};
pub use watch::{Unwatched, Watch};

/// What the other crates of this workspace use beyond the public types. It may change with every version.
#[doc(hidden)]
#[allow(missing_docs)]
pub mod internal {
    /// Shows modules under their own names.
    macro_rules! show {
        ($($module:ident),* $(,)?) => {
            $(pub mod $module {
                pub use crate::$module::*;
            })*
        };
    }

    show!(
        setting, phrase, error, estimand, arm, processor, outcome, table, schema, cohort, support, scaling, split,
        survival, interval, curve, boost, boosted, beside, cure, joint, nuisance, matching, metric, constraint, group,
        effect, martingale, options, watch, search, correction, fold, ground, crossfit, newcomers, inspect, analysis,
        memory, overview, compare, audit, imputation, contrasts, simulate, rehearsal,
    );
}
