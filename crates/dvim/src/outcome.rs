//! What is known of the outcome of a unit: a time and an event, and what a unit may have beyond them.

use crate::setting::Setting;

/// The cluster of a unit that has none: it stands for itself.
pub const ALONE: u32 = u32::MAX;

/// What is known of one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Time of the event or of censoring.
    pub time: f64,
    /// Whether it is an event of the cause of interest.
    pub event: bool,
    /// Whether it is an event of another cause.
    pub competing: bool,
    /// Case weight, positive.
    pub weight: f64,
    /// The unit is watched only after this time; 0: from the start.
    pub entry: f64,
    /// Its cluster, or [`ALONE`].
    pub cluster: u32,
}

impl Outcome {
    /// A unit that counts once, from the start.
    pub fn plain(time: f64, event: bool) -> Outcome {
        Outcome { time, event, competing: false, weight: 1.0, entry: 0.0, cluster: ALONE }
    }

    /// Whether it is such a unit.
    pub fn is_plain(&self) -> bool {
        !self.competing && self.weight == 1.0 && self.entry <= 0.0 && self.cluster == ALONE
    }
}

/// What the units of a table have beyond a time and an event; `None` where it has no such column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extras {
    /// Case weights: how many of the population a unit stands for. Positive.
    pub weight: Option<Vec<f64>>,
    /// Delayed entry: a unit is watched only after this time.
    pub entry: Option<Vec<f64>>,
    /// Number of the cluster of each unit.
    pub cluster: Option<Vec<u32>>,
    /// Whether the time is that of an event of another cause.
    pub competing: Option<Vec<bool>>,
}

impl Extras {
    /// Whether there is nothing: every unit counts once, from the start, for itself, and there is one cause.
    pub fn is_empty(&self) -> bool {
        *self == Extras::default()
    }

    /// The same without what says nothing: weights that are all one, entries at the start, clusters of one unit each,
    /// and another cause that nobody had. A cohort with them is then the cohort without, to the last bit.
    pub fn telling(self) -> Extras {
        let several = |c: &Vec<u32>| c.iter().collect::<std::collections::HashSet<_>>().len() < c.len();
        Extras {
            weight: self.weight.filter(|w| w.iter().any(|x| *x != w[0])),
            entry: self.entry.filter(|e| e.iter().any(|x| *x > 0.0)),
            cluster: self.cluster.filter(several),
            competing: self.competing.filter(|c| c.contains(&true)),
        }
    }

    /// The same of these units, in this order.
    pub fn select(&self, units: &[u32]) -> Extras {
        fn pick<T: Copy>(of: &Option<Vec<T>>, units: &[u32]) -> Option<Vec<T>> {
            of.as_ref().map(|v| units.iter().map(|&i| v[i as usize]).collect())
        }
        Extras {
            weight: pick(&self.weight, units),
            entry: pick(&self.entry, units),
            cluster: pick(&self.cluster, units),
            competing: pick(&self.competing, units),
        }
    }

    /// The outcome of unit `i`, whose time and event are these.
    pub fn outcome(&self, i: usize, time: f64, event: bool) -> Outcome {
        Outcome {
            time,
            event,
            competing: self.competing.as_ref().is_some_and(|v| v[i]),
            weight: self.weight.as_ref().map_or(1.0, |v| v[i]),
            entry: self.entry.as_ref().map_or(0.0, |v| v[i]),
            cluster: self.cluster.as_ref().map_or(ALONE, |v| v[i]),
        }
    }

    /// The settings that name what it holds.
    pub fn names(&self) -> Vec<Setting> {
        let all = [
            (Setting::Weights, self.weight.is_some()),
            (Setting::Entry, self.entry.is_some()),
            (Setting::Cluster, self.cluster.is_some()),
            (Setting::Cause, self.competing.is_some()),
        ];
        all.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_nothing_is_left_out() {
        let idle = Extras {
            weight: Some(vec![3.0; 4]),
            entry: Some(vec![0.0; 4]),
            cluster: Some(vec![5, 1, 0, 2]),
            competing: Some(vec![false; 4]),
        };
        assert!(idle.telling().is_empty());
        let all = Extras {
            weight: Some(vec![3.0, 3.0, 1.0]),
            entry: Some(vec![0.0, 2.0, 0.0]),
            cluster: Some(vec![5, 1, 5]),
            competing: Some(vec![false, true, false]),
        };
        assert_eq!(all.clone().telling(), all);
    }
}
