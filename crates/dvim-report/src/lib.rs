//! What was found, as records, text, tables and plots. No statistic is computed here and no file is touched.

pub mod card;
pub mod comparison;
pub mod plot;
pub mod audit;
pub mod cross_fit;
pub mod journal;
pub mod labels;
pub mod learning;
pub mod names;
pub mod figures;
pub mod findings;
pub mod record;
pub mod rehearsal;
pub mod report;
pub mod batch;
pub mod spell;
pub mod tables;
pub mod terminal;
pub mod text;
mod trees;
