//! The paper's simulation study: every table, the decomposition of its errors, and its theorems as experiments.
//!
//! 1. [`paper`]: the published figures.
//! 2. [`record`]: one [`record::Job`] is one data set of one experiment; its [`record::Record`] is what was measured on
//!    it.
//! 3. [`oracle`]: what only a simulation can estimate.
//! 4. [`dataset`]: every method on one data set.
//! 5. [`consistency`], [`weights`]: the theorems; [`accuracy`], [`coverage`], [`curves`]: the product's own estimators,
//!    beyond the paper; [`verdict`]: whether its verdicts are right, in [`worlds`] of their own.
//! 6. [`runner`]: runs jobs on all threads and hands over each record as it is made.
//! 7. [`design`]: the power of a study that is still planned.
//! 8. [`table`], [`decomposition`]: records to figures; [`page`]: figures to a page.
//!
//! No file is touched here but those that a design names ([`design::sources`]): the caller keeps the records and gives
//! back those that it has, so that an interrupted run goes on where it stopped. A data set depends on the seed, the
//! scenario and the repetition alone, and a table on the records alone, in their order: the same seed gives the same
//! table on any number of threads.

pub mod paper;
pub mod worlds;
pub mod record;
pub mod oracle;
pub mod dataset;
pub mod consistency;
pub mod weights;
pub mod accuracy;
pub mod coverage;
pub mod curves;
pub mod verdict;
pub mod design;
pub mod runner;
pub mod table;
pub mod decomposition;
pub mod page;
