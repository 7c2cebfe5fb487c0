//! Covariates on a common scale. Knows no outcome and no metric.

use crate::cohort::Cohort;

/// How covariates are put on a common scale before anything is learned from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Subtract the mean and divide by the standard deviation over the cohort, so that nothing
    /// depends on a covariate's unit of measurement.
    #[default]
    Standard,
    /// Leave covariates as recorded: the paper's own study.
    None,
}

impl Scale {
    /// Every choice, the usual one first.
    pub const ALL: [Scale; 2] = [Scale::Standard, Scale::None];

    /// The word used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Standard => "standard",
            Scale::None => "none",
        }
    }
}

/// Centre and scale of each covariate: `z = (x − center) / scale`.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// What is subtracted.
    pub center: Vec<f64>,
    /// What is divided by; never zero.
    pub scale: Vec<f64>,
}

impl Scaling {
    /// The scaling of a cohort. Covariates are not outcomes, so all units take part.
    ///
    /// The columns of a category share one scale, √2·s with s² = ½ (1 − Σ p²) n/(n − 1) from the shares p of its
    /// levels: two units of different levels then differ by 1/s² in squared distance, the mean of which over pairs of
    /// units is 2, as it is for a standardised number. Unscaled, two different levels differ by 1, as 0 and 1 do.
    pub fn of(cohort: &Cohort, scale: Scale) -> Scaling {
        let p = cohort.n_covariates();
        let categories = || cohort.schema().iter().filter(|c| c.is_category());
        if scale == Scale::None {
            let mut scale = vec![1.0; p];
            categories().for_each(|c| scale[c.columns()].fill(std::f64::consts::SQRT_2));
            return Scaling { center: vec![0.0; p], scale };
        }
        let n = cohort.n_units() as f64;
        let rows = || (0..cohort.n_units()).map(|i| cohort.covariates(i));
        let mut center = vec![0.0; p];
        rows().for_each(|x| center.iter_mut().zip(x).for_each(|(c, v)| *c += v));
        center.iter_mut().for_each(|c| *c /= n);
        let mut sum = vec![0.0; p];
        rows().for_each(|x| sum.iter_mut().zip(x.iter().zip(&center)).for_each(|(s, (v, c))| *s += (v - c) * (v - c)));
        // The mean of a covariate may round to one of its values at a spread of one part in 1e16:
        // such a covariate is constant for every purpose, and is left on its own scale.
        let mut scale: Vec<f64> =
            sum.iter().map(|s| (s / (n - 1.0)).sqrt()).map(|s| if s > 0.0 { s } else { 1.0 }).collect();
        for c in categories() {
            // Σ p (1 − p) n/(n − 1) over the levels is the sum of the variances of their indicators.
            let total: f64 = scale[c.columns()].iter().map(|s| s * s).sum();
            scale[c.columns()].fill(total.sqrt());
        }
        Scaling { center, scale }
    }

    /// Scales rows of covariates.
    pub fn apply(&self, covariates: &[f64]) -> Vec<f64> {
        let mut out = Vec::with_capacity(covariates.len());
        self.apply_into(covariates, &mut out);
        out
    }

    /// Scales rows of covariates into `out`, in place of what is there.
    pub fn apply_into(&self, covariates: &[f64], out: &mut Vec<f64>) {
        out.clear();
        for row in covariates.chunks_exact(self.center.len().max(1)) {
            let scales = self.center.iter().zip(&self.scale);
            out.extend(row.iter().zip(scales).map(|(v, (center, scale))| (v - center) / scale));
        }
    }
}
