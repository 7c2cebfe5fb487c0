//! What is known or assumed of a study: as given, by flags or a file, and with every default filled in.

use super::impossible::Impossible;
use super::latency::{STEPS, Shape};
use serde::{Deserialize, Serialize};

/// What a user gave of a design. What is missing gets its default in [`Asked::resolve`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields of Design say what they are")]
pub struct Asked {
    pub horizon: Option<f64>,
    pub event_free: Option<f64>,
    pub mean_time: Option<f64>,
    /// Points `[time, event-free share]` of a control arm's curve, read off a figure or estimated in a pilot.
    pub curve: Option<Vec<[f64; 2]>>,
    pub from_run: Option<String>,
    pub cure_effect: Option<f64>,
    pub time_effect: Option<f64>,
    pub cure_effect_sd: Option<f64>,
    pub time_effect_sd: Option<f64>,
    pub accrual: Option<f64>,
    pub study_end: Option<f64>,
    pub dropout: Option<f64>,
    pub treated_share: Option<f64>,
    pub n_covariates: Option<usize>,
    pub prognosis_whether: Option<f64>,
    pub prognosis_when: Option<f64>,
    pub confounding: Option<f64>,
    pub selection: Option<f64>,
    pub cluster_size: Option<usize>,
    pub cluster_correlation: Option<f64>,
    pub randomise: Option<String>,
    pub analysis: Option<String>,
    pub sizes: Option<Vec<usize>>,
    pub alpha: Option<f64>,
    pub multiplicity: Option<String>,
    pub power: Option<f64>,
    pub precision: Option<f64>,
    pub most_trials: Option<usize>,
    pub more_time: Option<f64>,
    pub more_patients: Option<usize>,
    pub seed: Option<u64>,
}

/// How trials are analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The difference of the arms' Kaplan–Meier curves.
    Crude,
    /// The paper's estimator.
    Paper,
    /// The adjusted estimator, with one deal of its folds.
    Adjusted,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 3] = [Method::Crude, Method::Paper, Method::Adjusted];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Method::Crude => "crude",
            Method::Paper => "paper",
            Method::Adjusted => "adjusted",
        }
    }
}

/// A design with every default filled in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Design {
    /// H.
    pub horizon: f64,
    /// Share of the control arm that is event-free at H.
    pub event_free: f64,
    /// Mean event time of the control arm's patients who have the event before H.
    pub mean_time: f64,
    /// Shares of the control arm's events in equal parts of the time to H, if the shape is known.
    pub shape: Option<Vec<f64>>,
    /// The finished run whose covariates and curves are reused.
    pub from_run: Option<String>,
    /// π, the average cure effect.
    pub cure_effect: f64,
    /// Δ, the average time effect.
    pub time_effect: f64,
    /// Standard deviation of patients' cure effects.
    pub cure_effect_sd: f64,
    /// Standard deviation of patients' time effects.
    pub time_effect_sd: f64,
    /// Time over which patients enter.
    pub accrual: f64,
    /// When the study ends, counted from its first patient.
    pub study_end: f64,
    /// Share of patients lost by H, if nothing else ended their follow-up.
    pub dropout: f64,
    /// Share of patients who are treated.
    pub treated_share: f64,
    /// Covariates that the analysis is given.
    pub n_covariates: usize,
    /// Log odds of being event-free for one standard deviation of the covariate that bears on whether.
    pub prognosis_whether: f64,
    /// Log odds of the mean event time, as a share of H, for one standard deviation of the covariate that bears on
    /// when.
    pub prognosis_when: f64,
    /// Log odds of treatment for one standard deviation of the prognostic covariates.
    pub confounding: f64,
    /// Log odds of treatment for one standard deviation of a covariate that bears on nothing else.
    pub selection: f64,
    /// Patients of a cluster; 1: no clusters.
    pub cluster_size: usize,
    /// Correlation within a cluster, on the normal scale that decides on the event.
    pub cluster_correlation: f64,
    /// Whether whole clusters are treated; if not, the patients of each.
    pub by_cluster: bool,
    /// How trials are analysed.
    pub analysis: Method,
    /// Numbers of patients, ascending.
    pub sizes: Vec<usize>,
    /// Two-sided level of each test.
    pub alpha: f64,
    /// How "either effect" is tested, and "both".
    pub multiplicity: Multiplicity,
    /// The power that is wanted.
    pub power: f64,
    /// Monte Carlo standard error of a power at which drawing stops.
    pub precision: f64,
    /// Trials of one size that the paper's or the adjusted estimator analyses, at most.
    pub most_trials: usize,
    /// Further follow-up whose gain is told.
    pub more_time: f64,
    /// Further patients whose gain is told.
    pub more_patients: usize,
    /// Decides every draw.
    pub seed: u64,
}

/// How several tests are taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Multiplicity {
    /// Half of the level for each of the two.
    Bonferroni,
    /// The smaller P value at half of the level; where it passes, the other at the full level [Holm 1979].
    Holm,
    /// Whether first; when only where whether was found. Each at the full level.
    Fixed,
    /// The full level for each.
    None,
}

impl Multiplicity {
    /// All of them.
    pub const ALL: [Multiplicity; 4] =
        [Multiplicity::Bonferroni, Multiplicity::Holm, Multiplicity::Fixed, Multiplicity::None];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Multiplicity::Bonferroni => "bonferroni",
            Multiplicity::Holm => "holm",
            Multiplicity::Fixed => "fixed",
            Multiplicity::None => "none",
        }
    }

    /// Which of the two tests are passed, by the absolute statistics and the quantiles at the level and at half of it.
    pub fn passed(self, t: [f64; 2], z: f64, z_half: f64) -> [bool; 2] {
        let over = |v: f64| t.map(|t| t > v);
        match self {
            Multiplicity::None => over(z),
            Multiplicity::Bonferroni => over(z_half),
            Multiplicity::Holm if over(z_half) == [false; 2] => [false; 2],
            Multiplicity::Holm => over(z),
            Multiplicity::Fixed => [t[0] > z, t[0] > z && t[1] > z],
        }
    }
}

/// The sizes where none are given.
pub const SIZES: [usize; 8] = [200, 300, 400, 600, 800, 1_200, 1_600, 2_000];

/// A control arm as a curve tells it: the share event-free at H, the mean event time before it, and the shape.
fn of_curve(points: &[[f64; 2]], horizon: f64) -> Result<(f64, f64, Shape), Impossible> {
    let refuse =
        |found: String, rule, remedy: &str| Err(Impossible { option: "curve", found, rule, remedy: remedy.into() });
    let rule = "the points of a curve go from time 0 up to the horizon, and the share falls or stays";
    if points.iter().any(|p| !(p[0] >= 0.0 && (0.0..=1.0).contains(&p[1]))) {
        return refuse("a time is negative or a share is not between 0 and 1".into(), rule, "use shares such as 0.75");
    }
    let mut points = points.to_vec();
    points.sort_by(|a, b| a[0].total_cmp(&b[0]).then(b[1].total_cmp(&a[1])));
    if let Some(w) = points.windows(2).find(|w| w[1][1] > w[0][1] + 1e-9) {
        return refuse(format!("the share rises from {} to {} at {}", w[0][1], w[1][1], w[1][0]), rule, "correct it");
    }
    match points.last() {
        Some(last) if last[0] >= horizon => {}
        last => {
            let end = last.map_or(0.0, |p| p[0]);
            return refuse(format!("it ends at {end}, before the horizon {horizon}"), rule, "use an earlier horizon");
        }
    }
    let at = |t: f64| {
        let next = points.partition_point(|p| p[0] < t);
        let (b, a) = (points[next.min(points.len() - 1)], if next == 0 { [0.0, 1.0] } else { points[next - 1] });
        if b[0] > a[0] { a[1] + (b[1] - a[1]) * ((t - a[0]) / (b[0] - a[0])).clamp(0.0, 1.0) } else { b[1] }
    };
    let curve: Vec<f64> = (0..=STEPS).map(|k| at(horizon * k as f64 / STEPS as f64)).collect();
    let end = curve[STEPS];
    if !(end < 1.0 && end > 0.0) {
        let found = format!("{end} of the patients are event-free at the horizon");
        return refuse(
            found,
            "a share lies between 0 and 1",
            "choose a horizon with events before it and patients after it",
        );
    }
    let shares: Vec<f64> = curve.windows(2).map(|w| (w[0] - w[1]) / (1.0 - end)).collect();
    let mean = shares.iter().enumerate().map(|(k, s)| s * (k as f64 + 0.5) / STEPS as f64).sum::<f64>() * horizon;
    Ok((end, mean, Shape(shares)))
}

/// What a finished run says of its own patients: averages that stand in where they are not given.
#[derive(Clone, Copy, Debug)]
pub struct OfRun {
    /// H of the run.
    pub horizon: f64,
    /// Mean share of the control arm that is event-free at H.
    pub event_free: f64,
    /// Mean event time before H in the control arm.
    pub mean_time: f64,
    /// Mean cure effect.
    pub cure_effect: f64,
    /// Mean time effect.
    pub time_effect: f64,
    /// Covariates.
    pub n_covariates: usize,
}

impl Asked {
    /// What a file says, and over it what flags say.
    pub fn or(self, file: Asked) -> Asked {
        let [mut out, over] = [file, self].map(|a| serde_json::to_value(a).expect("numbers and words"));
        if let (Some(out), serde_json::Value::Object(over)) = (out.as_object_mut(), over) {
            out.extend(over.into_iter().filter(|(_, v)| !v.is_null()));
        }
        serde_json::from_value(out).expect("the same fields")
    }

    /// Fills in every default, and refuses what cannot be.
    pub fn resolve(&self, run: Option<&OfRun>) -> Result<Design, Impossible> {
        let needed = |option: &'static str, remedy: &str| Impossible {
            option,
            found: "it is missing".into(),
            rule: "a design needs a horizon, and what is known of the control arm",
            remedy: remedy.into(),
        };
        let horizon =
            self.horizon.or(run.map(|r| r.horizon)).ok_or_else(|| needed("horizon", "use 5 for five years"))?;
        let is_time = |h: f64| h > 0.0 && h.is_finite();
        let curve = match &self.curve {
            Some(points) if is_time(horizon) => Some(of_curve(points, horizon)?),
            _ => None,
        };
        let known = curve.as_ref().map(|c| (c.0, c.1)).or(run.map(|r| (r.event_free, r.mean_time)));
        let event_free = self.event_free.or(known.map(|k| k.0));
        let mean_time = self.mean_time.or(known.map(|k| k.1));
        let accrual = self.accrual.unwrap_or(0.0);
        let mut sizes = self.sizes.clone().unwrap_or_else(|| SIZES.to_vec());
        sizes.sort_unstable();
        sizes.dedup();
        let word = |given: &Option<String>, option: &'static str, usual: &str, words: &[&'static str]| {
            let given = given.as_deref().unwrap_or(usual);
            words.iter().position(|w| *w == given).ok_or_else(|| Impossible {
                option,
                found: format!("it is {given}"),
                rule: "it is one of a few words",
                remedy: format!("use {}", words.join(", ")),
            })
        };
        let used = |strength: Option<f64>| strength.is_some_and(|s| s != 0.0);
        let analysis = Method::ALL[word(&self.analysis, "analysis", "crude", &Method::ALL.map(Method::name))?];
        let multiplicity =
            word(&self.multiplicity, "multiplicity", "bonferroni", &Multiplicity::ALL.map(Multiplicity::name))?;
        let own =
            [self.prognosis_whether, self.prognosis_when, self.cure_effect_sd, self.time_effect_sd, self.selection];
        let fewest = own.into_iter().filter(|s| used(*s)).count().max(usize::from(analysis != Method::Crude));
        let design = Design {
            horizon,
            event_free: event_free.ok_or_else(|| needed("event-free", "use 0.4 where 40 of 100 are event-free"))?,
            mean_time: mean_time
                .ok_or_else(|| needed("mean-time", "use the mean time of the events before the horizon"))?,
            shape: curve.map(|c| c.2.0),
            from_run: self.from_run.clone(),
            cure_effect: self.cure_effect.or(run.map(|r| r.cure_effect)).unwrap_or(0.0),
            time_effect: self.time_effect.or(run.map(|r| r.time_effect)).unwrap_or(0.0),
            cure_effect_sd: self.cure_effect_sd.unwrap_or(0.0),
            time_effect_sd: self.time_effect_sd.unwrap_or(0.0),
            accrual,
            study_end: self.study_end.unwrap_or(accrual + horizon),
            dropout: self.dropout.unwrap_or(0.0),
            treated_share: self.treated_share.unwrap_or(0.5),
            n_covariates: run.map(|r| r.n_covariates).or(self.n_covariates).unwrap_or(fewest),
            prognosis_whether: self.prognosis_whether.unwrap_or(0.0),
            prognosis_when: self.prognosis_when.unwrap_or(0.0),
            confounding: self.confounding.unwrap_or(0.0),
            selection: self.selection.unwrap_or(0.0),
            cluster_size: self.cluster_size.unwrap_or(1),
            cluster_correlation: self.cluster_correlation.unwrap_or(0.0),
            by_cluster: word(&self.randomise, "randomise", "clusters", &["clusters", "patients"])? == 0,
            analysis,
            sizes,
            alpha: self.alpha.unwrap_or(0.05),
            multiplicity: Multiplicity::ALL[multiplicity],
            power: self.power.unwrap_or(0.8),
            precision: self.precision.unwrap_or(0.01),
            most_trials: self.most_trials.unwrap_or(100),
            more_time: self.more_time.unwrap_or(0.2 * horizon),
            more_patients: self.more_patients.unwrap_or(100),
            seed: self.seed.unwrap_or(1),
        };
        design.check(fewest, run.is_some())?;
        Ok(design)
    }
}

impl Design {
    /// Whether treatment depends on covariates: then patients are assigned one by one.
    pub fn is_observational(&self) -> bool {
        self.confounding != 0.0 || self.selection != 0.0
    }

    /// The design without effects, its control arm the same.
    pub fn without_effect(&self) -> Design {
        Design { cure_effect: 0.0, time_effect: 0.0, cure_effect_sd: 0.0, time_effect_sd: 0.0, ..self.clone() }
    }
}
