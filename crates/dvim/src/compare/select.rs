//! Feature selection for matching: the covariates that a pooled Cox model finds.

use super::cox::{self, CoxFit, Ties};
use super::{FitOptions, InvalidInput, Units, check_length};

/// Covariates kept for matching, and the fit that chose them.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// Covariates with a p-value below the level, ascending. May be empty: the caller decides what then.
    pub selected: Vec<usize>,
    /// Two-sided Wald p-value of each covariate; NaN for an aliased one, which is never selected.
    pub p_values: Vec<f64>,
    /// The pooled fit; its last coefficient is that of treatment.
    pub fit: CoxFit,
}

/// Keeps the covariates whose Wald p-value in a Cox model of both arms together, with treatment (0/1) as
/// one more covariate, is below `level`. The paper's reading: `level = 0.05`, then equal weights.
pub fn select_covariates(
    units: &Units,
    treated: &[bool],
    level: f64,
    ties: Ties,
    options: &FitOptions,
) -> Result<Selection, InvalidInput> {
    units.check()?;
    let Units { covariates, n_covariates, time, .. } = *units;
    let n = time.len();
    check_length("treated", n, treated.len())?;
    let width = n_covariates + 1;
    let mut pooled = Vec::with_capacity(n * width);
    for (i, &z) in treated.iter().enumerate() {
        pooled.extend_from_slice(&covariates[i * n_covariates..(i + 1) * n_covariates]);
        pooled.push(f64::from(u8::from(z)));
    }
    let fit = cox::fit(&Units { covariates: &pooled, n_covariates: width, ..*units }, ties, options)?;
    let mut p_values = fit.p_values();
    p_values.truncate(n_covariates);
    let selected = (0..n_covariates).filter(|&j| p_values[j] < level).collect();
    Ok(Selection { selected, p_values, fit })
}
