//! The Python face: conversion, and nothing else. The engine (`dvim`), the records (`dvim-report`) and the tasks
//! (`dvim-io`) that the command line calls are called here. What users see is `python/dvim`; this module is private to
//! it.

mod arrow;
mod columns;
mod errors;
mod everybody;
mod run;
mod batch;
mod table;
mod watch;

use pyo3::prelude::*;

/// The binary part of `dvim`.
#[pymodule]
mod _dvim {
    #[pymodule_export]
    use crate::batch::{Several, asks_for_several, fit_several, open_all};
    #[pymodule_export]
    use crate::everybody::{Executor, kit, merged, over_everybody};
    #[pymodule_export]
    use crate::run::{
        Comparison, CureModel, Run, check, command, compare, default_options, fit, fit_cure, id_column, kaplan_meier,
        open_run, refuse_idle, scenarios, settings, simulate, style_sheet,
    };
    #[pymodule_export]
    use crate::table::PyTable;

    use super::*;

    #[pymodule_init]
    fn init(m: &Bound<'_, PyModule>) -> PyResult<()> {
        dvim_io::environment::use_instructions().map_err(|e| crate::errors::engine(m.py(), e))?;
        m.add("VERSION", dvim_report::record::VERSION)
    }
}
