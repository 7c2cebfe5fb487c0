//! Several arms against one control: each contrast with an interval and a P value that allow for the others.

use crate::audit::Audit;
use crate::interval::two_sided;
use crate::numeric::normal_cdf;

/// One arm against the control.
#[derive(Clone, Debug, PartialEq)]
pub struct Contrast {
    /// `cure_effect`, `time_effect`, or either `_corrected`.
    pub estimand: &'static str,
    /// The arm.
    pub arm: String,
    /// The estimate; `None` where it is undefined.
    pub estimate: Option<f64>,
    /// Its standard error.
    pub se: Option<f64>,
    /// Its interval, at the confidence level.
    pub interval: Option<[f64; 2]>,
    /// Its interval such that all arms' hold at once with that confidence (Bonferroni).
    pub simultaneous: Option<[f64; 2]>,
    /// Two-sided p of no effect.
    pub p: Option<f64>,
    /// The same, adjusted for the number of arms [Holm 1979].
    pub p_holm: Option<f64>,
    /// Units that it rests on.
    pub n_units: usize,
}

/// Effects of several arms against one control, for each estimand over all estimated patients of the two arms. The
/// comparisons share the control arm; neither Bonferroni nor Holm asks that they be independent.
pub fn compare_arms(arms: &[(String, &Audit)], confidence: f64) -> Vec<Contrast> {
    let mut out = Vec::new();
    for estimand in ["cure_effect", "cure_effect_corrected", "time_effect", "time_effect_corrected"] {
        let first = out.len();
        let alpha = (1.0 - confidence) / arms.len().max(1) as f64;
        let (z, wide) = (two_sided(confidence), two_sided(1.0 - alpha));
        for (arm, audit) in arms {
            let found = audit.averages.iter().find(|a| a.estimand == estimand && a.population == "all");
            let Some(found) = found else { continue };
            let ends = |z: f64| found.estimate.zip(found.se).map(|(v, s)| [v - z * s, v + z * s]);
            let ratio = found.estimate.zip(found.se).filter(|(_, s)| *s > 0.0).map(|(v, s)| v / s);
            out.push(Contrast {
                estimand,
                arm: arm.clone(),
                estimate: found.estimate,
                se: found.se,
                interval: ends(z),
                simultaneous: ends(wide),
                p: ratio.map(|r| 2.0 * normal_cdf(-r.abs())),
                p_holm: None,
                n_units: found.n_units,
            });
        }
        let ps: Vec<Option<f64>> = out[first..].iter().map(|c| c.p).collect();
        out[first..].iter_mut().zip(holm(&ps)).for_each(|(c, p)| c.p_holm = p);
    }
    out
}

/// Holm's adjusted p: the k-th smallest of m times (m − k + 1), not smaller than those before it, at most 1.
pub fn holm(ps: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<usize> = (0..ps.len()).filter(|&i| ps[i].is_some()).collect();
    order.sort_by(|&a, &b| ps[a].unwrap_or(1.0).total_cmp(&ps[b].unwrap_or(1.0)));
    let (m, mut last) = (order.len(), 0.0);
    let mut out = vec![None; ps.len()];
    for (k, &i) in order.iter().enumerate() {
        last = f64::max(last, ps[i].unwrap_or(1.0) * (m - k) as f64).min(1.0);
        out[i] = Some(last);
    }
    out
}
