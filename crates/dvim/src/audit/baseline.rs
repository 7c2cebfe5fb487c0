//! Who was compared: each covariate by arm, over all units of the cohort, before anything is matched.
//!
//! The standardised difference is `(x̄₁ − x̄₀)/√((s₁² + s₀²)/2)` [Austin 2009], with sample variances, for numbers and
//! for the indicator of a level alike.

use super::balance::{moments, quantiles};
use crate::cohort::{Arm, Cohort};
use crate::schema::Kind;
use rayon::prelude::*;

/// A number, or one level of a category.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineRow {
    /// The covariate.
    pub covariate: String,
    /// The level; `None` for a number.
    pub level: Option<String>,
    /// Whether it is a number that is 0 or 1 throughout.
    pub is_binary: bool,
    /// Units that have the level, the number, or a 1 where it is 0 or 1: control, treated.
    pub n_units: [usize; 2],
    /// Mean of the number, or share of the level: control, treated.
    pub mean: [f64; 2],
    /// Standard deviation of the number; of a level that of its indicator.
    pub sd: [f64; 2],
    /// 25, 50 and 75 % quantiles of a number: control, treated.
    pub quartiles: Option<[[f64; 3]; 2]>,
    /// Standardised difference, treated less control; `None` where the covariate is constant.
    pub difference: Option<f64>,
}

/// The covariates of a cohort, in the order of its columns.
pub fn baseline(cohort: &Cohort) -> Vec<BaselineRow> {
    let units = Arm::BOTH.map(|z| cohort.units_of(z));
    let row = |covariate: &str, level: Option<String>, values: [Vec<f64>; 2]| {
        let [(c, vc), (t, vt)] = values.each_ref().map(|v| moments(v, None));
        let spread = (0.5 * (vc + vt)).sqrt();
        let is_binary = level.is_none() && values.iter().flatten().all(|x| *x == 0.0 || *x == 1.0);
        let there = |v: &Vec<f64>| {
            if level.is_some() || is_binary { v.iter().filter(|x| **x == 1.0).count() } else { v.len() }
        };
        let quartile = |v: &Vec<f64>| quantiles(v, [0.25, 0.5, 0.75]);
        BaselineRow {
            covariate: covariate.into(),
            is_binary,
            n_units: values.each_ref().map(there),
            mean: [c, t],
            sd: [vc.sqrt(), vt.sqrt()],
            quartiles: level.is_none().then(|| values.each_ref().map(quartile)),
            difference: (spread > 0.0).then(|| (t - c) / spread),
            level,
        }
    };
    let mut rows = Vec::new();
    for c in cohort.schema() {
        match &c.kind {
            Kind::Number => rows.push((&c.name, None, c.first)),
            Kind::Indicator { one, .. } => rows.push((&c.name, Some(one.clone()), c.first)),
            Kind::Missing => rows.push((&c.name, Some("missing".into()), c.first)),
            Kind::Category { levels } => {
                rows.extend(c.columns().zip(levels).map(|(j, level)| (&c.name, Some(level.clone()), j)));
            }
        }
    }
    // A line of memory holds eight numbers of a unit: as many columns are taken out at a time.
    let some = |rows: &[(&String, Option<String>, usize)]| -> Vec<BaselineRow> {
        let mut values = vec![units.each_ref().map(|of| Vec::with_capacity(of.len())); rows.len()];
        for (z, of) in units.iter().enumerate() {
            for &i in of {
                let x = cohort.covariates(i as usize);
                values.iter_mut().zip(rows).for_each(|(v, (_, _, column))| v[z].push(x[*column]));
            }
        }
        rows.iter().zip(values).map(|((name, level, _), v)| row(name, level.clone(), v)).collect()
    };
    rows.par_chunks(8).flat_map_iter(some).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cohort::Units;
    use crate::table::Ids;

    #[test]
    fn by_hand() {
        // Control 1, 2, 3: mean 2, variance 1. Treated 2, 4, 6, 8: mean 5, variance 20/3. d = 3/√((1 + 20/3)/2).
        let x = [1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 8.0];
        let arm = [Arm::Control, Arm::Control, Arm::Control, Arm::Treated, Arm::Treated, Arm::Treated, Arm::Treated];
        let units = Units {
            ids: Ids::Rows(7),
            time: vec![1.0; 7],
            event: vec![true; 7],
            arm: arm.to_vec(),
            covariates: x.to_vec(),
            names: vec!["x".into()],
            labels: ["0".into(), "1".into()],
            extras: Default::default(),
        };
        let rows = baseline(&Cohort::from_parts(units, None, 5.0).expect("sound parts"));
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].n_units, rows[0].is_binary), ([3, 4], false));
        assert_eq!(rows[0].mean, [2.0, 5.0]);
        let expected = 3.0 / ((1.0f64 + 20.0 / 3.0) / 2.0).sqrt();
        assert!((rows[0].difference.unwrap() - expected).abs() < 1e-14);
        assert_eq!(rows[0].quartiles.unwrap()[0][1], 2.0);
    }
}
