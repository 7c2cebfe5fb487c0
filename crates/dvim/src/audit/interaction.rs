//! Does an average effect differ between the subgroups of a covariate?
//!
//! Subgroups share no patient, so their averages are independent but for what models share. With estimates e_g and
//! standard errors s_g, `Q = Σ (e_g − ē)²/s_g²`, ē being the mean weighted by `1/s_g²`, is χ² where the effect is the
//! same in all subgroups, with one degree of freedom less than there are subgroups [Cochran 1954].

use super::average::{AverageEffect, Populations};
use crate::distribution::chi_squared_upper_tail;
use crate::estimand::Estimand;

/// The test of one covariate.
#[derive(Clone, Debug, PartialEq)]
pub struct Interaction {
    /// The covariate, as it was asked for.
    pub by: String,
    /// The effect.
    pub estimand: &'static str,
    /// Q.
    pub statistic: f64,
    /// Degrees of freedom.
    pub df: usize,
    /// P(χ² > Q).
    pub p: f64,
}

/// The tests of every covariate that subgroups were asked for by, as far as two subgroups have standard errors.
pub fn interactions(populations: &Populations, averages: &[AverageEffect]) -> Vec<Interaction> {
    let mut out = Vec::new();
    for (by, names) in populations.subgroups() {
        for side in Estimand::BOTH {
            let found: Vec<(f64, f64)> = averages
                .iter()
                .filter(|a| a.estimand == side.effect() && names.contains(&a.population))
                .filter_map(|a| Some((a.estimate?, a.se.filter(|se| *se > 0.0)?)))
                .collect();
            if let Some((statistic, df)) = cochran(&found) {
                let p = chi_squared_upper_tail(statistic, df);
                out.push(Interaction { by: by.to_string(), estimand: side.effect(), statistic, df, p });
            }
        }
    }
    out
}

/// Q and its degrees of freedom.
fn cochran(found: &[(f64, f64)]) -> Option<(f64, usize)> {
    if found.len() < 2 {
        return None;
    }
    let weights = || found.iter().map(|(_, se)| 1.0 / (se * se));
    let mean = found.iter().zip(weights()).map(|((e, _), w)| w * e).sum::<f64>() / weights().sum::<f64>();
    let q = found.iter().zip(weights()).map(|((e, _), w)| w * (e - mean) * (e - mean)).sum();
    Some((q, found.len() - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // Weights 1, 1/4: mean (1 + 3/4)/(5/4) = 1.4; Q = 0.16 + 2.56/4 = 0.8 with 1 degree of freedom.
        let (q, df) = cochran(&[(1.0, 1.0), (3.0, 2.0)]).expect("two subgroups");
        assert!((q - 0.8).abs() < 1e-14 && df == 1);
        // Two subgroups: Q is the square of the difference over its standard error.
        assert!((q - (2.0f64 * 2.0) / 5.0).abs() < 1e-14);
        assert!((chi_squared_upper_tail(3.841_458_820_694_124, 1) - 0.05).abs() < 1e-6);
        assert_eq!(cochran(&[(1.0, 1.0)]), None);
    }
}
