//! What a table holds, before anything is fitted: how each column was read, what each arm looks
//! like, the marginal curves, and every problem. For a person who wants to know whether the tool
//! understood the data.

use crate::cohort::{Arm, Cohort, Flow, Roles, at_horizon, examine};
use crate::constraint::Rules;
use crate::error::Problem;
use crate::options::Options;
use crate::outcome::{ALONE, Outcome};
use crate::schema::{Covariate, Kind};
use crate::survival::{Estimate, SurvivalCurve};
use crate::table::{Column, Table, Values, date};

/// How one column was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnOverview {
    /// Its name.
    pub name: String,
    /// time, start, end, event, treatment, id, filter, dropped, covariate or unused.
    pub role: &'static str,
    /// number, two levels, category, date, text or id: how a covariate entered, how another column reads.
    pub kind: &'static str,
    /// Rows without a value.
    pub n_missing: usize,
    /// Smallest, mean and largest number, where it is numeric and has a finite value.
    pub range: Option<[f64; 3]>,
    /// The levels of a text with the rows of each, most frequent first; at most ten.
    pub levels: Vec<(String, usize)>,
    /// Number of levels of a text; of a number, its distinct values if they are at most ten.
    pub n_levels: usize,
    /// The level that is coded 1, where there are two.
    pub one: Option<String>,
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
    /// Events of other causes before the horizon.
    pub n_competing: usize,
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
    /// Rows that were left out, and why.
    pub flow: Flow,
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
        let few = found.outcomes.as_ref();
        let few = few.and_then(|o| options.too_few_clusters(&o.extras.clone().telling(), |i| o.arm[i]));
        let arms = found.outcomes.map(|o| {
            let (capped, before, extras) = at_horizon(&o.time, &o.event, &o.extras, roles.horizon);
            Arm::BOTH.map(|arm| {
                let members: Vec<usize> = (0..o.arm.len()).filter(|&i| o.arm[i] == arm).collect();
                let curve = members.iter().map(|&i| extras.outcome(i, capped[i], before[i])).collect();
                let curve = SurvivalCurve::of_outcomes(curve);
                // Follow-up ends at censoring; an event, of any cause, hides how much longer it would have gone on.
                let lost = |i: usize| !o.event[i] && o.extras.competing.as_ref().is_none_or(|c| !c[i]);
                let reverse =
                    members.iter().map(|&i| Outcome { weight: 1.0, ..o.extras.outcome(i, o.time[i], lost(i)) });
                let reverse = reverse.map(|u| Outcome { competing: false, cluster: ALONE, ..u }).collect();
                let reverse = SurvivalCurve::of_outcomes(reverse);
                let n_competing = members.iter().filter(|&&i| extras.competing.as_ref().is_some_and(|c| c[i])).count();
                let summary = curve.summary(roles.horizon);
                let (restricted_mean, mean_event_time) = curve.means_with_se(roles.horizon);
                ArmOverview {
                    arm,
                    label: o.labels[arm.index()].clone(),
                    n_units: members.len(),
                    n_events: summary.n_events,
                    n_competing,
                    n_censored: members.len() - summary.n_events - n_competing - summary.n_at_risk,
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
            problems.extend(few);
        }
        if let Some((units, schema)) = found.units.as_ref().filter(|_| !options.constraints.is_empty()) {
            let cohort = Cohort::of_units(units.clone(), None, roles.horizon).with_schema(schema.clone());
            problems.extend(Rules::new(&options.constraints, &cohort).err().unwrap_or_default());
        }
        let id = roles.id_column(table.columns().iter().map(|c| c.name.as_str()));
        let schema = found.units.map(|(_, schema)| schema).unwrap_or_default();
        let columns = table.columns().iter().map(|c| {
            let role = roles.role_of(&c.name, id);
            let read_as = schema.iter().find(|v| role == "covariate" && v.name == c.name);
            column_overview(c, role, read_as, roles.categorical.contains(&c.name))
        });
        Overview {
            n_rows: table.n_rows(),
            flow: found.flow,
            columns: columns.collect(),
            horizon: roles.horizon,
            arms,
            problems,
        }
    }
}

fn column_overview(
    column: &Column,
    role: &'static str,
    read_as: Option<&Covariate>,
    categorical: bool,
) -> ColumnOverview {
    let mut out = ColumnOverview {
        name: column.name.clone(),
        role,
        kind: "id",
        n_missing: 0,
        range: None,
        levels: Vec::new(),
        n_levels: 0,
        one: None,
    };
    match &column.values {
        Values::Number(v) => {
            out.kind = "number";
            out.n_missing = v.iter().filter(|x| x.is_nan()).count();
            let finite: Vec<f64> = v.iter().copied().filter(|x| x.is_finite()).collect();
            let mut counted: Vec<(f64, usize)> = Vec::new();
            for &x in &finite {
                if let Some((_, n)) = counted.iter_mut().find(|(y, _)| *y == x) {
                    *n += 1;
                } else if counted.len() > 10 {
                    break;
                } else {
                    counted.push((x, 1));
                }
            }
            if counted.len() <= 10 {
                counted.sort_by(|a, b| a.0.total_cmp(&b.0));
                out.n_levels = counted.len();
                out.levels = counted.iter().map(|(x, n)| (x.to_string(), *n)).collect();
            }
            if !finite.is_empty() && !categorical {
                let low = finite.iter().copied().fold(f64::INFINITY, f64::min);
                let high = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                out.range = Some([low, finite.iter().sum::<f64>() / finite.len() as f64, high]);
            }
        }
        Values::Text(t) => {
            out.kind = if t.levels.iter().any(|l| date(l).is_some()) { "date" } else { "text" };
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
    match read_as.map(|c| &c.kind) {
        Some(Kind::Indicator { one, .. }) => {
            out.kind = "two levels";
            out.one = Some(one.clone());
        }
        Some(Kind::Category { .. }) => out.kind = "category",
        Some(Kind::Number) => out.kind = "number",
        _ => {}
    }
    out
}
