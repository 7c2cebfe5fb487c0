//! One trial: its patients, drawn.

use super::world::{Patient, World, normal, normal_cdf};
use dvim::internal::arm::Arm;
use dvim::internal::audit::follow_up::{FollowUp, Verdict};
use dvim::internal::cohort::{Cohort, Units};
use dvim::internal::error::Error;
use dvim::internal::outcome::Extras;
use dvim::internal::simulate::Draws;
use dvim::internal::table::Ids;

/// The stream of clusters begins so far from the seed.
const CLUSTERS: u64 = 9_000_011;

/// What is recorded of the patients of a trial, and what only the drawing knows.
pub struct Trial {
    pub(super) arm: Vec<Arm>,
    /// Recorded time and event.
    pub(super) recorded: Vec<(f64, bool)>,
    /// The same at the horizon.
    pub(super) capped: Vec<(f64, bool)>,
    /// Covariates, row-major.
    pub(super) x: Vec<f64>,
    /// The cluster of each patient; empty without clusters.
    pub(super) cluster: Vec<u32>,
    pub(super) patients: Vec<Patient>,
    pub(super) horizon: f64,
}

impl Trial {
    /// Draws trial `number` of `n` patients. A larger trial begins with the patients of a smaller one, and a trial
    /// without effects has the patients of that with effects.
    pub fn draw(world: &World<'_>, n: usize, number: usize) -> Trial {
        let d = world.design;
        let mut trial = Trial {
            arm: Vec::with_capacity(n),
            recorded: Vec::with_capacity(n),
            capped: Vec::with_capacity(n),
            x: Vec::with_capacity(n * d.n_covariates),
            cluster: Vec::new(),
            patients: Vec::with_capacity(n),
            horizon: d.horizon,
        };
        if d.is_observational() {
            let mut draws = Draws::new(d.seed, 2 * number as u64);
            let mut clusters = Clusters::new(world, number, None);
            for i in 0..n {
                let chance = draws.uniform();
                trial.add(world, &mut draws, &mut clusters, None, i, chance);
            }
        } else {
            let treated = ((n as f64 * d.treated_share).round() as usize).clamp(1, n - 1);
            // Each arm has a stream of its own.
            for (arm, of_arm) in [(Arm::Control, n - treated), (Arm::Treated, treated)] {
                let mut draws = Draws::new(d.seed, 2 * number as u64 + u64::from(arm == Arm::Treated));
                let mut clusters = Clusters::new(world, number, Some(arm));
                for i in 0..of_arm {
                    trial.add(world, &mut draws, &mut clusters, Some(arm), i, 0.0);
                }
            }
        }
        trial
    }

    fn add(
        &mut self,
        world: &World<'_>,
        draws: &mut Draws,
        clusters: &mut Clusters,
        arm: Option<Arm>,
        i: usize,
        chance: f64,
    ) {
        let d = world.design;
        let h = d.horizon;
        let [who, when, entry, loss] = [0; 4].map(|_| draws.uniform());
        let patient = world.draw(draws, &mut self.x);
        let arm = arm.unwrap_or(if chance < patient.propensity { Arm::Treated } else { Arm::Control });
        let who = match clusters.of(i) {
            None => who,
            Some((number, shared)) => {
                self.cluster.push(number);
                let r = d.cluster_correlation;
                normal_cdf(r.sqrt() * shared + (1.0 - r).sqrt() * normal(who))
            }
        };
        let event = match () {
            () if who < patient.cured[arm] => f64::INFINITY,
            () => match world.shared_times() {
                Some(times) => times[arm].quantile(when),
                None => world.times(&patient, arm).quantile(when),
            },
        };
        let hazard = -libm::log1p(-d.dropout) / h;
        let lost = if hazard > 0.0 { -libm::log(loss) / hazard } else { f64::INFINITY };
        let end = lost.min(d.study_end - entry * d.accrual).max(1e-9 * h);
        self.recorded.push((event.min(end), event <= end));
        self.capped.push((event.min(end).min(h), event <= end && event < h));
        self.arm.push(arm);
        self.patients.push(patient);
    }

    /// The patients as an analysis sees them.
    pub fn cohort(&self, names: Vec<String>) -> Result<Cohort, Error> {
        let (time, event): (Vec<f64>, Vec<bool>) = self.recorded.iter().copied().unzip();
        // In the order in which they were drawn the arms would be apart.
        let ids = Ids::Rows(self.arm.len());
        let extras = Extras { cluster: (!self.cluster.is_empty()).then(|| self.cluster.clone()), ..Extras::default() };
        let units = Units {
            ids,
            time,
            event,
            arm: self.arm.clone(),
            covariates: self.x.clone(),
            names,
            labels: ["control".into(), "treated".into()],
            extras,
        };
        Cohort::from_parts(units, None, self.horizon)
    }

    /// Whether follow-up suffices, by the verdict of an audit, and the last time, H at most, with ten at risk.
    pub(super) fn follow_up(&self) -> (bool, f64) {
        let found = FollowUp::of_outcomes(None, &self.recorded, &self.capped, self.horizon);
        (matches!(found.verdict, Verdict::Sufficient | Verdict::Over), found.last_ten)
    }
}

/// The clusters of a trial, or of an arm of it, and what their patients share.
struct Clusters {
    draws: Option<Draws>,
    shared: Vec<f64>,
    /// Patients of a cluster here: those of one arm, where both are in a cluster.
    size: f64,
    /// Whole clusters have numbers of their own in each arm.
    first: u32,
    step: u32,
}

impl Clusters {
    fn new(world: &World<'_>, number: usize, arm: Option<Arm>) -> Clusters {
        let d = world.design;
        let whole = d.by_cluster && arm.is_some();
        let (treated, share) = match arm {
            Some(Arm::Treated) => (1, d.treated_share),
            Some(Arm::Control) => (0, 1.0 - d.treated_share),
            None => (0, 1.0),
        };
        let size = if whole { d.cluster_size as f64 } else { d.cluster_size as f64 * share };
        let stream = 2 * number as u64 + u64::from(whole && treated == 1);
        let draws = (d.cluster_size > 1).then(|| Draws::new(d.seed.wrapping_add(CLUSTERS), stream));
        let (first, step) = if whole { (treated, 2) } else { (0, 1) };
        Clusters { draws, shared: Vec::new(), size, first, step }
    }

    /// The cluster of the patient at this place, and what it shares.
    fn of(&mut self, i: usize) -> Option<(u32, f64)> {
        let draws = self.draws.as_mut()?;
        let c = (i as f64 / self.size) as usize;
        while self.shared.len() <= c {
            self.shared.push(normal(draws.uniform()));
        }
        Some((self.first + self.step * c as u32, self.shared[c]))
    }
}
