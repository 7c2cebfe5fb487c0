//! The cure model of an arm whose covariates may be categories.
//!
//! A category of k levels is k indicators, which are collinear with the intercept. The model is
//! therefore fitted on k − 1 contrasts that are orthonormal under the shares of the levels in the
//! training set, and written back as one coefficient for each level, relative to their mean. There is
//! no reference level. The contrasts have mean 0 and variance 1, so that a ridge penalty Σ (b_j sd_j)²
//! on them is the variance of the category's part of the linear predictor, which is free of the choice
//! of contrasts and of the order of levels (docs/methods/table.md, "Categories"). A level that the training
//! set does not have gets the mean, a coefficient of zero.

use super::{ArmData, CureModel, FitOptions, Flag, Part, fit_arm};
use crate::arm::Arm;
use crate::cohort::Cohort;
use crate::error::Error;
use crate::scaling::Scaling;
use crate::split::{ArmOutcomes, Trained, TrainingSet};
use nalgebra::DMatrix;

/// A linear map from the columns of the model to the columns of the cohort.
struct Contrasts {
    /// Number of columns of the cohort, scaled.
    wide: usize,
    /// For each column of the model, the columns of the cohort that it is made of.
    parts: Vec<Axis>,
}

/// One column of the model.
enum Axis {
    /// A column of the cohort as it is.
    Same(usize),
    /// A contrast: its value in each level, for the columns of a category that start at `first`.
    Contrast { first: usize, value: Vec<f64> },
}

impl Contrasts {
    fn new(cohort: &Cohort, training: &ArmOutcomes, kept: Option<&[bool]>) -> Contrasts {
        let wide = cohort.n_covariates();
        let mut parts = Vec::new();
        for c in cohort.schema().iter().filter(|c| kept.is_none_or(|kept| kept[c.first])) {
            if !c.is_category() {
                parts.push(Axis::Same(c.first));
                continue;
            }
            let levels = c.columns().len();
            let mut counts = vec![0.0; levels];
            for row in training.covariates.chunks_exact(wide) {
                counts.iter_mut().zip(&row[c.columns()]).for_each(|(n, x)| *n += x);
            }
            let total: f64 = counts.iter().sum();
            // Helmert contrasts under shares p: level l against all levels before it.
            let mut before = 0.0;
            for l in 0..levels {
                let p = counts[l] / total;
                if p > 0.0 && before > 0.0 {
                    let c0 = 1.0 / (before * p * (before + p)).sqrt();
                    let mut value = vec![0.0; levels];
                    (0..l).filter(|&m| counts[m] > 0.0).for_each(|m| value[m] = -p * c0);
                    value[l] = before * c0;
                    parts.push(Axis::Contrast { first: c.first, value });
                }
                before += p;
            }
        }
        Contrasts { wide, parts }
    }

    /// The model's columns of units whose covariates are scaled by `scaling`.
    fn narrow(&self, scaled: &[f64], recorded: &[f64]) -> Vec<f64> {
        let mut out = Vec::with_capacity(scaled.len() / self.wide.max(1) * self.parts.len());
        for (z, x) in scaled.chunks_exact(self.wide).zip(recorded.chunks_exact(self.wide)) {
            out.extend(self.parts.iter().map(|p| match p {
                Axis::Same(j) => z[*j],
                Axis::Contrast { first, value } => value.iter().zip(&x[*first..]).map(|(v, x)| v * x).sum(),
            }));
        }
        out
    }

    /// The matrix that takes the model's parameters (intercept, then coefficients) to those of the scaled columns
    /// of the cohort: with z = (x − c)/s, a level's coefficient b in x is s·b in z, and b·c goes to the intercept.
    fn widen(&self, scaling: &Scaling) -> DMatrix<f64> {
        let mut map = DMatrix::zeros(self.wide + 1, self.parts.len() + 1);
        map[(0, 0)] = 1.0;
        for (m, part) in self.parts.iter().enumerate() {
            match part {
                Axis::Same(j) => map[(j + 1, m + 1)] = 1.0,
                Axis::Contrast { first, value } => {
                    for (l, v) in value.iter().enumerate() {
                        let j = first + l;
                        map[(j + 1, m + 1)] = v * scaling.scale[j];
                        map[(0, m + 1)] += v * scaling.center[j];
                    }
                }
            }
        }
        map
    }

    /// The first column of the cohort that a column of the model stands for.
    fn first_column(&self, column: usize) -> usize {
        match &self.parts[column] {
            Axis::Same(j) => *j,
            Axis::Contrast { first, .. } => *first,
        }
    }
}

/// Fits the cure model of an arm to a training set, on scaled covariates. The model takes all scaled columns of the
/// cohort.
pub fn fit(
    training: &TrainingSet<'_>,
    arm: Arm,
    scaling: &Scaling,
    options: &FitOptions,
) -> Result<Trained<CureModel>, Error> {
    let model = fit_among(training.cohort(), arm, &training.arm(arm), scaling, options, None)?;
    Ok(Trained::on(training, model))
}

/// Fits the cure model of an arm to everybody, on scaled covariates, to describe a cohort. It is not [`Trained`], so no
/// estimate can take it. With `kept` the model has only the covariates whose first column is kept. The others have
/// coefficients of zero, and there is no covariance of all parameters.
pub fn describe_arm(
    cohort: &Cohort,
    arm: Arm,
    scaling: &Scaling,
    options: &FitOptions,
    kept: Option<&[bool]>,
) -> Result<CureModel, Error> {
    let everybody = ArmOutcomes::of(cohort, cohort.units_of(arm));
    fit_among(cohort, arm, &everybody, scaling, options, kept)
}

fn fit_among(
    cohort: &Cohort,
    arm: Arm,
    training: &ArmOutcomes,
    scaling: &Scaling,
    options: &FitOptions,
    kept: Option<&[bool]>,
) -> Result<CureModel, Error> {
    let scaled = scaling.apply(&training.covariates);
    let fit = |covariates: &[f64], n_covariates: usize| {
        let data = ArmData {
            time: &training.time,
            event: &training.event,
            covariates,
            n_covariates,
            horizon: cohort.horizon(),
            extras: (!training.extras.is_empty()).then_some(&training.extras),
        };
        fit_arm(&data, options).map_err(|e| Error::Model { arm: arm.name(), reason: e.to_string() })
    };
    if kept.is_none() && !cohort.schema().iter().any(|c| c.is_category()) {
        return fit(&scaled, cohort.n_covariates());
    }
    let contrasts = Contrasts::new(cohort, training, kept);
    let narrow = fit(&contrasts.narrow(&scaled, &training.covariates), contrasts.parts.len())?;
    let mut model = widen(narrow, &contrasts, &scaled, scaling, kept.is_none());
    let left_out = cohort.schema().iter().filter(|c| kept.is_some_and(|kept| !kept[c.first])).count();
    if left_out > 0 {
        model.certificate.flags.push(Flag::CovariatesLeftOut { n_covariates: left_out });
    }
    Ok(model)
}

/// The same model in the columns of the cohort, with the covariance of all parameters or only their standard errors.
fn widen(narrow: CureModel, contrasts: &Contrasts, scaled: &[f64], scaling: &Scaling, in_full: bool) -> CureModel {
    let (wide, few) = (contrasts.wide, contrasts.parts.len());
    let map = contrasts.widen(scaling);
    let of_narrow = narrow.covariance.as_ref().map(|c| DMatrix::from_row_slice(2 * few + 3, 2 * few + 3, c));
    let covariance = of_narrow.as_ref().filter(|_| in_full).map(|c| {
        // Both parts and ln σ: one block for each part, a one for ln σ.
        let mut whole = DMatrix::zeros(2 * wide + 3, 2 * few + 3);
        whole.view_mut((0, 0), (wide + 1, few + 1)).copy_from(&map);
        whole.view_mut((wide + 1, few + 1), (wide + 1, few + 1)).copy_from(&map);
        whole[(2 * wide + 2, 2 * few + 2)] = 1.0;
        &whole * c * whole.transpose()
    });
    // Row, row of the part: the variance of a parameter of the part that starts there in the narrow model.
    let variance = |i: usize, part: usize| {
        of_narrow.as_ref().map(|c| {
            let (row, at) = (map.row(i), part * (few + 1));
            (row * c.view((at, at), (few + 1, few + 1)) * row.transpose())[0].max(0.0)
        })
    };
    let part = |p: &Part, part: usize| {
        let mut found = vec![0.0; wide + 1];
        for (i, value) in found.iter_mut().enumerate() {
            *value = map[(i, 0)] * p.intercept
                + p.coefficients.iter().enumerate().map(|(m, b)| map[(i, m + 1)] * b).sum::<f64>();
        }
        let se = |i: usize| variance(i, part).map(f64::sqrt);
        Part {
            intercept: found[0],
            coefficients: found[1..].to_vec(),
            intercept_se: se(0),
            standard_errors: (1..=wide).map(se).collect(),
        }
    };
    let n = (scaled.len() / wide) as f64;
    let mut center = vec![0.0; wide];
    scaled.chunks_exact(wide).for_each(|z| center.iter_mut().zip(z).for_each(|(c, v)| *c += v / n));
    let (cure, latency) = (part(&narrow.cure, 0), part(&narrow.latency, 1));
    // The mean of a contrast is its value at the mean of the indicators, so the centres are one place.
    let at = |at_center: f64, coefficients: &[f64]| {
        let shift = |m: usize| match &contrasts.parts[m] {
            Axis::Same(j) => center[*j],
            Axis::Contrast { first, value } => value
                .iter()
                .enumerate()
                .map(|(l, v)| v * (center[first + l] * scaling.scale[first + l] + scaling.center[first + l]))
                .sum(),
        };
        at_center + (0..few).map(|m| coefficients[m] * (shift(m) - narrow.center[m])).sum::<f64>()
    };
    let mut certificate = narrow.certificate.clone();
    for flag in &mut certificate.flags {
        match flag {
            Flag::ConstantCovariate { column } | Flag::CollinearCovariate { column } => {
                *column = contrasts.first_column(*column)
            }
            _ => {}
        }
    }
    CureModel {
        cure_at_center: at(narrow.cure_at_center, &narrow.cure.coefficients),
        latency_at_center: at(narrow.latency_at_center, &narrow.latency.coefficients),
        cure,
        latency,
        center,
        covariance: covariance.map(|c| c.as_slice().to_vec()),
        certificate,
        ..narrow
    }
}
