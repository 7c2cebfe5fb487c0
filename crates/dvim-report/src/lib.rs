//! What was found, as text, tables and plots. No statistic is computed here and no file is touched.

pub mod plot;
