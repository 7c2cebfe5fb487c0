//! What the parts of a cohort are called. Labels change words on pages, in messages and in tables, and no number.

/// What a user calls the arms, the time, the event and the covariates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Labels {
    /// The unit of time in words, such as `days`.
    pub time_unit: Option<String>,
    /// The horizon in words, such as `5 years`. Without it, the horizon in the unit of time.
    pub horizon: Option<String>,
    /// The treated arm.
    pub treated: Option<String>,
    /// The control arm.
    pub control: Option<String>,
    /// The event, such as `relapse`.
    pub event: Option<String>,
    /// A word for patients without the event at the horizon, such as `cured`. Without it, `event-free`.
    pub cure_word: Option<String>,
    /// Who the patients are.
    pub population: Option<String>,
    /// The covariates that have a name, a unit or an order of levels.
    pub covariates: Vec<CovariateLabel>,
}

impl Labels {
    /// Whether nothing is called anything.
    pub fn is_empty(&self) -> bool {
        *self == Labels::default()
    }

    /// What is said of a column.
    pub fn of(&self, column: &str) -> Option<&CovariateLabel> {
        self.covariates.iter().find(|c| c.column == column)
    }

    /// These labels, and where they say nothing, those of `other`.
    pub fn or(self, other: Labels) -> Labels {
        let mut covariates = self.covariates;
        for theirs in other.covariates {
            match covariates.iter_mut().find(|c| c.column == theirs.column) {
                Some(ours) => {
                    ours.label = ours.label.take().or(theirs.label);
                    ours.unit = ours.unit.take().or(theirs.unit);
                    if ours.levels.is_empty() {
                        ours.levels = theirs.levels;
                    }
                }
                None => covariates.push(theirs),
            }
        }
        Labels {
            time_unit: self.time_unit.or(other.time_unit),
            horizon: self.horizon.or(other.horizon),
            treated: self.treated.or(other.treated),
            control: self.control.or(other.control),
            event: self.event.or(other.event),
            cure_word: self.cure_word.or(other.cure_word),
            population: self.population.or(other.population),
            covariates,
        }
    }
}

/// What one covariate is called.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CovariateLabel {
    /// The column of the table.
    pub column: String,
    /// Its name for readers.
    pub label: Option<String>,
    /// Its unit.
    pub unit: Option<String>,
    /// Its levels in the order in which they are shown, each with its name for readers.
    pub levels: Vec<(String, String)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_first_counts() {
        let age = |label: Option<&str>, unit: Option<&str>| CovariateLabel {
            column: "age".into(),
            label: label.map(str::to_string),
            unit: unit.map(str::to_string),
            levels: vec![],
        };
        let flags =
            Labels { time_unit: Some("months".into()), covariates: vec![age(Some("Age"), None)], ..Labels::default() };
        let file = Labels {
            time_unit: Some("days".into()),
            event: Some("relapse".into()),
            covariates: vec![age(Some("years of age"), Some("years"))],
            ..Labels::default()
        };
        let both = flags.or(file);
        assert_eq!((both.time_unit.as_deref(), both.event.as_deref()), (Some("months"), Some("relapse")));
        assert_eq!(both.covariates, [age(Some("Age"), Some("years"))]);
        assert!(Labels::default().is_empty() && !both.is_empty());
    }
}
