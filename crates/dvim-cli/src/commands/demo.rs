//! `dvim demo`: a cohort with known effects, analysed, with something to look at.

use crate::Failure;
use crate::args::DemoArgs;

pub fn run(_args: &DemoArgs) -> Result<(), Failure> {
    Ok(())
}
