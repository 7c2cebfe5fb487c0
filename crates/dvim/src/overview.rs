//! What a table holds, before anything is fitted: how each column was read, what each arm looks
//! like, the marginal curves, and every problem. For a person who wants to know whether the tool
//! understood the data.

use crate::analysis::Options;
use crate::cohort::{Arm, Roles, apply_horizon, examine};
use crate::error::Problem;
use crate::survival::{Estimate, SurvivalCurve};
use crate::table::{Column, Table, Values};

/// How one column was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnOverview {
    /// Its name.
    pub name: String,
    /// time, event, treatment, id, covariate or unused.
    pub role: &'static str,
    /// number, text or id.
    pub kind: &'static str,
    /// Rows without a value.
    pub n_missing: usize,
    /// Smallest, mean and largest number, where it is numeric and has a finite value.
    pub range: Option<[f64; 3]>,
    /// The levels of a text with the rows of each, most frequent first; at most ten.
    pub levels: Vec<(String, usize)>,
    /// Number of levels of a text.
    pub n_levels: usize,
}

/// One arm as it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmOverview {
    /// Which.
    pub arm: Arm,
    /// How the table calls it.
    pub label: String,
    /// Its units.
    pub n_units: usize,
    /// Events before the horizon.
    pub n_events: usize,
    /// Censored before the horizon.
    pub n_censored: usize,
    /// Still at risk at the horizon.
    pub n_at_risk: usize,
    /// Median follow-up by the reverse Kaplan–Meier curve of the recorded times; `None` if it is not reached.
    pub median_follow_up: Option<f64>,
    /// Last recorded time.
    pub last_time: f64,
    /// Ŝ(H) with Greenwood's standard error.
    pub survival: Estimate,
    /// Whether nobody is at risk at H, so that Ŝ(H) is carried forward.
    pub carried_forward: bool,
    /// RMST(H).
    pub restricted_mean: Estimate,
    /// CMET(H), where there is an event.
    pub mean_event_time: Option<Estimate>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// Rows of the table.
    pub n_rows: usize,
    /// Its columns.
    pub columns: Vec<ColumnOverview>,
    /// H.
    pub horizon: f64,
    /// Control and treated, where time, event and treatment could be read.
    pub arms: Option<[ArmOverview; 2]>,
    /// Everything found.
    pub problems: Vec<Problem>,
}

impl Overview {
    /// Looks at a table under these roles and options. Fits nothing.
    pub fn of(table: &Table, roles: &Roles, options: &Options) -> Overview {
        let found = examine(table, roles);
        let mut problems = found.problems;
        let arms = found.outcomes.map(|o| {
            let (capped, before) = apply_horizon(&o.time, &o.event, roles.horizon);
            Arm::BOTH.map(|arm| {
                let members: Vec<usize> = (0..o.arm.len()).filter(|&i| o.arm[i] == arm).collect();
                let pick = |v: &[f64]| -> Vec<f64> { members.iter().map(|&i| v[i]).collect() };
                let curve = SurvivalCurve::new(&pick(&capped), &members.iter().map(|&i| before[i]).collect::<Vec<_>>());
                let recorded = pick(&o.time);
                // Follow-up ends at censoring; an event hides how much longer it would have gone on.
                let reverse = SurvivalCurve::new(&recorded, &members.iter().map(|&i| !o.event[i]).collect::<Vec<_>>());
                let summary = curve.summary(roles.horizon);
                let (restricted_mean, mean_event_time) = curve.means_with_se(roles.horizon);
                ArmOverview {
                    arm,
                    label: o.labels[arm.index()].clone(),
                    n_units: members.len(),
                    n_events: summary.n_events,
                    n_censored: members.len() - summary.n_events - summary.n_at_risk,
                    n_at_risk: summary.n_at_risk,
                    median_follow_up: reverse.steps().iter().find(|s| s.survival <= 0.5).map(|s| s.time),
                    last_time: reverse.last_time().unwrap_or(0.0),
                    survival: curve.survival_with_se(roles.horizon),
                    carried_forward: summary.carried_forward(),
                    restricted_mean,
                    mean_event_time,
                }
            })
        });
        if let Some(arms) = &arms {
            problems.extend(options.problems([arms[0].n_units, arms[1].n_units]));
        }
        let id = roles.id_column(table.columns().iter().map(|c| c.name.as_str()));
        let columns = table.columns().iter().map(|c| column_overview(c, role_of(&c.name, roles, id))).collect();
        Overview { n_rows: table.n_rows(), columns, horizon: roles.horizon, arms, problems }
    }
}

fn role_of(name: &str, roles: &Roles, id: Option<&str>) -> &'static str {
    match &roles.covariates {
        _ if name == roles.time => "time",
        _ if name == roles.event => "event",
        _ if name == roles.treatment => "treatment",
        _ if Some(name) == id => "id",
        Some(list) if !list.iter().any(|c| c == name) => "unused",
        _ => "covariate",
    }
}

fn column_overview(column: &Column, role: &'static str) -> ColumnOverview {
    let mut out = ColumnOverview {
        name: column.name.clone(),
        role,
        kind: "id",
        n_missing: 0,
        range: None,
        levels: Vec::new(),
        n_levels: 0,
    };
    match &column.values {
        Values::Number(v) => {
            out.kind = "number";
            out.n_missing = v.iter().filter(|x| x.is_nan()).count();
            let finite: Vec<f64> = v.iter().copied().filter(|x| x.is_finite()).collect();
            if !finite.is_empty() {
                let low = finite.iter().copied().fold(f64::INFINITY, f64::min);
                let high = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                out.range = Some([low, finite.iter().sum::<f64>() / finite.len() as f64, high]);
            }
        }
        Values::Text(t) => {
            out.kind = "text";
            let mut counts = vec![0; t.levels.len()];
            for &c in &t.codes {
                match counts.get_mut(c as usize) {
                    Some(n) => *n += 1,
                    None => out.n_missing += 1,
                }
            }
            let mut levels: Vec<(String, usize)> = t.levels.iter().cloned().zip(counts).collect();
            levels.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            out.n_levels = levels.len();
            levels.truncate(10);
            out.levels = levels;
        }
        Values::Id(ids) => out.n_missing = (0..ids.len()).filter(|&i| ids.text(i).is_empty()).count(),
    }
    out
}
