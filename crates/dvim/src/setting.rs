//! Everything that a user can set: the one list of roles and options.
//!
//! Each face of dvim (the command line, Python, R) is made from this list or checked against it by a test:
//! its names, the kinds of its values, the words that a value can be, and its defaults. A [`Setting`] has one name.
//! A face only spells it, with hyphens in a shell and with underscores in Python and R.

/// What the value of a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A column of the table.
    Column,
    /// Columns of the table.
    Columns,
    /// A value of a column.
    Label,
    /// Columns, each with a value or a width.
    Pairs,
    /// A number.
    Number,
    /// A whole number, zero or more.
    Count,
    /// One of these words.
    Word(&'static [Word]),
    /// A number, or one of these words.
    NumberOr(&'static [Word]),
    /// Free text, such as a title.
    Text,
    /// A file or a directory.
    Path,
    /// On or off.
    Switch,
}

/// A word that the value of a setting can be, and what it means.
pub type Word = (&'static str, &'static str);

/// What a setting is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Which column plays which part, and which rows are kept.
    Columns,
    /// How to analyse.
    Method,
    /// What else a command is told: where to write, what to draw.
    Command,
}

macro_rules! settings {
    ($($(#[doc = $help:literal])+ $name:ident = $topic:ident $text:literal: $kind:expr $(, $default:literal)?;)+) => {
        /// One thing that a user can set.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Setting {
            $($(#[doc = $help])+ $name,)+
        }

        impl Setting {
            /// Every setting, in the order in which they are explained.
            pub const ALL: &'static [Setting] = &[$(Setting::$name),+];

            /// Its name, in small letters and hyphens.
            pub fn name(self) -> &'static str {
                match self { $(Setting::$name => $text,)+ }
            }

            /// What its value is.
            pub fn kind(self) -> Kind {
                match self { $(Setting::$name => $kind,)+ }
            }

            /// What it is about.
            pub fn topic(self) -> Topic {
                match self { $(Setting::$name => Topic::$topic,)+ }
            }

            /// Its value where none is given, if that is one value.
            pub fn default(self) -> Option<&'static str> {
                match self { $(Setting::$name => [$($default,)? ""].first().copied().filter(|d| !d.is_empty()),)+ }
            }

            /// What it does, with the names of other settings in braces.
            pub(crate) fn help_text(self) -> &'static str {
                match self { $(Setting::$name => concat!($($help),+),)+ }
            }
        }
    };
}

settings! {
    /// Time to event or censoring
    Time = Columns "time": Kind::Column;
    /// Date on which follow-up starts, as 2019-07-31; with {end}, instead of {time}. Times are then in days
    Start = Columns "start": Kind::Column;
    /// Date of the event or of censoring
    End = Columns "end": Kind::Column;
    /// Whether the event was seen: 1 or true; 0 or false if censored. Causes with {cause}
    Event = Columns "event": Kind::Column;
    /// Whether the time is censored: 1 or more; 0 if the event was seen, as `CNSR` in CDISC ADTTE. Instead of {event}
    Censor = Columns "censor": Kind::Column;
    /// The arm: two values, or more with {treated} and {control}
    Treatment = Columns "treatment": Kind::Column;
    /// The horizon H, in the unit of the time column: being event-free at H is what is compared. There is no default
    /// because H defines what is estimated
    Horizon = Columns "horizon": Kind::Number;
    /// Patient ids [default: the column `id` if there is one, else row numbers]
    Id = Columns "id": Kind::Column;
    /// Covariates, separated by commas [default: all other columns]
    Covariates = Columns "covariates": Kind::Columns;
    /// Which value of the treatment column means treated [default: 1, true, yes or treated]. In `fit`, `all` compares
    /// every arm with {control}
    Treated = Columns "treated": Kind::Label;
    /// Which value means control; with {treated}, rows of any other arm are left out and counted
    Control = Columns "control": Kind::Label;
    /// Covariates that are numbers whatever they look like
    Numeric = Columns "numeric": Kind::Columns;
    /// Covariates that are categories whatever they look like, such as codes
    Categorical = Columns "categorical": Kind::Columns;
    /// Columns to ignore
    Drop = Columns "drop": Kind::Columns;
    /// Columns to take as covariates although they look like an outcome, an identifier, a code for unknown values or a
    /// mistake; `duplicates` where rows may repeat each other
    Allow = Columns "allow": Kind::Columns;
    /// Keep only rows in which the column has this value; may be given several times
    Where = Columns "where": Kind::Pairs;
    /// Rows with missing values: refuse the table, drop the rows, or fill in the median or most
    /// frequent level and match on having done so
    Missing = Columns "missing": Kind::Word(&[
        ("refuse", "Refuse the table, naming columns and rows"),
        ("drop", "Leave out rows with a missing value in a column that is used"),
        ("indicator", "Fill in, and add an indicator that takes part in the metrics"),
    ]), "refuse";
    /// Times of zero: refuse the table, drop the rows, or take half of the smallest positive time
    ZeroTime = Columns "zero-time": Kind::Word(&[
        ("refuse", "Refuse the table"),
        ("drop", "Leave out the rows"),
        ("shift", "Half of the smallest positive time"),
    ]), "refuse";
    /// Case weights: how many of the population a patient stands for. Standard errors are then by patient
    Weights = Columns "weights": Kind::Column;
    /// Clusters, such as hospitals or families: standard errors are then by cluster
    Cluster = Columns "cluster": Kind::Column;
    /// Time from which a patient is watched (delayed entry); a date with {start} and {end}
    Entry = Columns "entry": Kind::Column;
    /// The event column holds causes (0 = censored): which one is of interest. What is compared is then having no event
    /// of this cause before H; events of other causes compete with it
    Cause = Columns "cause": Kind::Label;
    /// Imputed data sets in one table: the column that numbers them (0 is the table before imputation). Effects are
    /// pooled by Rubin's rules
    Imputation = Columns "imputation": Kind::Column;
    /// What arms, times, the event and covariates are called, for every page, table and message: a file in TOML. It is
    /// kept in the run and changes no number
    Labels = Columns "labels": Kind::Path;

    /// A model learned from other patients, corrected by the most similar ones; or the paper's Algorithm 1, in which
    /// the K most similar patients of each arm give the effects alone
    Estimator = Method "estimator": Kind::Word(&[
        ("adjusted", "A cross-fitted model, corrected by the most similar patients; estimates every patient"),
        ("paper", "The paper's Algorithm 1: trains on some patients, estimates the others"),
    ]), "adjusted";
    /// K: patients of each arm in each match group; `auto` chooses it from the data (adjusted estimator only)
    /// [default: auto; 50 with the paper's estimator]
    GroupSize = Method "group-size": Kind::NumberOr(&[("auto", "Chosen from the data")]);
    /// Adjusted estimator: honest splits in all. Each split trains on some patients and estimates the others.
    /// With more splits than {folds}, the whole cross-fit is repeated and the estimates are averaged
    /// [default: ten times up to 2,000 patients, less often for more, once from 15,000]
    Splits = Method "splits": Kind::Count;
    /// Adjusted estimator: folds; each patient is left out by one split of the cross-fit
    Folds = Method "folds": Kind::Count, "10";
    /// Adjusted estimator: distribution of the event times in its models
    Latency = Method "latency": Kind::Word(&[
        ("auto", "By out-of-fold likelihood"),
        ("log-normal", "Log-normal"),
        ("weibull", "Weibull"),
        ("log-logistic", "Log-logistic"),
        ("generalised-gamma", "Generalised gamma, its shape learned from the data"),
    ]), "auto";
    /// Adjusted estimator: what its curves are learned by
    Learners = Method "learners": Kind::Word(&[
        ("all", "A cure model, and beside it proportional and boosted hazards as far as they predict better"),
        ("cure", "The cure model alone"),
        ("hazards", "Proportional hazards alone"),
        ("boosted", "Boosted hazards alone"),
    ]), "all";
    /// Adjusted estimator: what holds the slopes of its models; a prior that is learned with them, ridge, or an
    /// elastic net with this share of the norm, as in elastic-net:0.5
    Penalty = Method "penalty": Kind::NumberOr(&[
        ("prior", "A prior that is learned with the slopes"),
        ("ridge", "Squares alone"),
        ("elastic-net", "Half of the norm, half of the squares"),
    ]), "prior";
    /// Paper's estimator: share of each arm that trains its cure models; the others are estimated
    TrainFraction = Method "train-fraction": Kind::Number, "0.35";
    /// Paper's estimator: one metric for each effect, or their average for both
    Metric = Method "metric": Kind::Word(&[
        ("separate", "Cure weights for the cure effect, time weights for the time effect"),
        ("combined", "The mean of the two weight vectors for both"),
    ]), "separate";
    /// Paper's estimator: standardise covariates, or take them as recorded (the paper's own study)
    Scale = Method "scale": Kind::Word(&[
        ("standard", "Mean 0, standard deviation 1"),
        ("none", "As recorded"),
    ]), "standard";
    /// Decides, with the ids, who trains and who is estimated
    Seed = Method "seed": Kind::Count, "1";
    /// Covariates on which every member of a group must agree with the patient
    Exact = Method "exact": Kind::Columns;
    /// Largest difference allowed in a covariate: age=5 in its own unit, age=0.2sd in standard
    /// deviations; may be given several times
    Caliper = Method "caliper": Kind::Pairs;
    /// Keep a patient out of the patient's own group; the adjusted estimator always does
    ExcludeSelf = Method "exclude-self": Kind::Switch;
    /// Confidence level of every interval
    Confidence = Method "confidence": Kind::Number, "0.95";
    /// How Cox models share tied event times
    Ties = Method "ties": Kind::Word(&[
        ("breslow", "Each tied event sees the whole risk set: the reading that reproduces the paper"),
        ("efron", "Each tied event sees the risk set less the average share of those before it: R's default"),
    ]), "breslow";

    /// Average effects by subgroup too: a covariate, or a covariate and a number of bins of equal size, such as age:4
    By = Command "by": Kind::Text;
    /// Effects alone: no standard errors of averages, balance, heterogeneity or sensitivity. An audit makes them later
    NoAudit = Command "no-audit": Kind::Switch;
    /// Times at which curves are given, from 0 to the horizon, separated by commas [default: the knots of the curves]
    At = Command "at": Kind::Text;
    /// Curves of these patients, by id and separated by commas, or of all
    Patients = Command "patients": Kind::Text;
    /// Repeat the whole analysis with this many other seeds
    Seeds = Command "seeds": Kind::Count, "0";
    /// Cohorts that a rehearsal draws and analyses
    Repeats = Command "repeats": Kind::Count, "50";
    /// Where a picture goes
    Figure = Command "figure": Kind::Path;
    /// No estimate for a patient one of whose groups reaches farther than this. Distances are those
    /// of the diameters in effects.csv
    MaxDistance = Command "max-distance": Kind::Number;
    /// Format of the effects
    Format = Command "format": Kind::Word(&[
        ("csv", "Comma-separated values"),
        ("json", "An array of objects, one to a line"),
        ("parquet", "Apache Parquet, where dvim was built with it"),
    ]), "csv";
    /// Replace what exists
    Force = Command "force": Kind::Switch;
    /// Where to write
    Output = Command "output": Kind::Path;
    /// Also write the report of the run: one page for a browser or a printer
    Report = Command "report": Kind::Path;
    /// Title of the report
    Title = Command "title": Kind::Text;
    /// The unit of time in words, such as days; `fit` keeps it in the run [default: days where times come from dates,
    /// else not named]
    TimeUnit = Command "time-unit": Kind::Text;
    /// What the treated arm is called [default: its value in the treatment column]
    TreatedName = Command "treated-name": Kind::Text;
    /// What the control arm is called [default: its value in the treatment column]
    ControlName = Command "control-name": Kind::Text;
    /// What the event is called, such as relapse
    EventName = Command "event-name": Kind::Text;
    /// A word for patients without the event at the horizon, such as cured, where that is meant [default: event-free]
    CureWord = Command "cure-word": Kind::Text;
    /// What a column is called, with its unit in brackets, as in `age=Age [years]`; may be given several times
    Label = Command "label": Kind::Text;
    /// Write how often each patient is used, the weights that balance rests on
    Uses = Command "uses": Kind::Path;
    /// Also write who is in each group: one row for each member
    Groups = Command "groups": Kind::Path;
    /// Where to write the true effects of each patient
    Truth = Command "truth": Kind::Path;
    /// What to draw
    Scenario = Command "scenario": Kind::Text;
    /// Let covariates that matter for the outcome decide on treatment too (mild confounding)
    Confounded = Command "confounded": Kind::Switch;
    /// How many patients to draw
    N = Command "n": Kind::Count;
    /// How many data sets of each scenario
    Reps = Command "reps": Kind::Count, "20";
    /// Width in millimetres; letters keep their size. 85 is one column of a journal, 180 two
    Width = Command "width": Kind::Number, "180";
    /// Dots in an inch, for .png
    Dpi = Command "dpi": Kind::Number, "300";
    /// Show every covariate, not only those that weigh most
    All = Command "all": Kind::Switch;
    /// Print JSON for programs
    Json = Command "json": Kind::Switch;
    /// The port [default: any that is free]
    Port = Command "port": Kind::Count;
    /// Print the address and open no browser
    NoOpen = Command "no-open": Kind::Switch;
    /// Design: a file of settings in TOML, with the names of these flags; a flag goes over the file
    Settings = Command "settings": Kind::Path;
    /// Design: write the design here, every default filled in, as a file for {settings}
    SaveSettings = Command "save-settings": Kind::Path;
    /// Design: share of the control arm that is event-free at the horizon, as 0.4
    EventFree = Command "event-free": Kind::Number;
    /// Design: mean event time of the control arm's patients who have the event before the horizon
    MeanTime = Command "mean-time": Kind::Number;
    /// Design: a table with columns `time` and `survival`, read off a published curve of the control arm; instead of
    /// {event-free} and {mean-time}
    Curve = Command "curve": Kind::Path;
    /// Design: a table of patients with columns `time` and `event`, and `treatment` (0 and 1) if some were treated: the
    /// control arm's curve and the dropout are estimated from it
    Pilot = Command "pilot": Kind::Path;
    /// Design: a finished run, fitted with the adjusted estimator: its patients are drawn again and again, with their
    /// covariates and the curves that it learned
    FromRun = Command "from-run": Kind::Path;
    /// Design: difference in the event-free share at the horizon, treated less control
    CureEffect = Command "cure-effect": Kind::Number, "0";
    /// Design: difference in the mean event time before the horizon, treated less control
    TimeEffect = Command "time-effect": Kind::Number, "0";
    /// Design: standard deviation of {cure-effect} between patients
    CureEffectSd = Command "cure-effect-sd": Kind::Number, "0";
    /// Design: standard deviation of {time-effect} between patients
    TimeEffectSd = Command "time-effect-sd": Kind::Number, "0";
    /// Design: time over which patients enter, evenly
    Accrual = Command "accrual": Kind::Number, "0";
    /// Design: when the study ends, counted from its first patient [default: {accrual} plus {horizon}]
    StudyEnd = Command "study-end": Kind::Number;
    /// Design: share of patients lost by the horizon, at a constant hazard
    Dropout = Command "dropout": Kind::Number, "0";
    /// Design: share of patients who are treated
    TreatedShare = Command "treated-share": Kind::Number, "0.5";
    /// Design: covariates that the analysis is given [default: those that the strengths below need]
    NCovariates = Command "n-covariates": Kind::Count;
    /// Design: log odds of being event-free for one standard deviation of the covariate that bears on whether
    PrognosisWhether = Command "prognosis-whether": Kind::Number, "0";
    /// Design: log odds of the mean event time, as a share of the horizon, for one standard deviation of the covariate
    /// that bears on when
    PrognosisWhen = Command "prognosis-when": Kind::Number, "0";
    /// Design: log odds of treatment for one standard deviation of the prognostic covariates, in an observational study
    Confounding = Command "confounding": Kind::Number, "0";
    /// Design: log odds of treatment for one standard deviation of a covariate that bears on nothing else; the larger,
    /// the less the arms overlap
    Selection = Command "selection": Kind::Number, "0";
    /// Design: patients of a cluster
    ClusterSize = Command "cluster-size": Kind::Count, "1";
    /// Design: correlation within a cluster, on the normal scale that decides on the event
    ClusterCorrelation = Command "cluster-correlation": Kind::Number, "0";
    /// Design: who is treated together
    Randomise = Command "randomise": Kind::Word(&[
        ("clusters", "All patients of a cluster are treated, or none"),
        ("patients", "Patients of a cluster are treated one by one"),
    ]), "clusters";
    /// Design: how the study will be analysed
    Analysis = Command "analysis": Kind::Word(&[
        ("crude", "By the difference of the arms' Kaplan–Meier curves"),
        ("paper", "By the published estimator"),
        ("adjusted", "By the adjusted estimator"),
    ]), "crude";
    /// Design: numbers of patients, separated by commas
    Sizes = Command "sizes": Kind::Text, "200,300,400,600,800,1200,1600,2000";
    /// Design: two-sided level of each test
    Alpha = Command "alpha": Kind::Number, "0.05";
    /// Design: how the tests of whether and of when are taken together
    Multiplicity = Command "multiplicity": Kind::Word(&[
        ("bonferroni", "Each of the two at half of the level"),
        ("holm", "The smaller P value at half of the level; where it passes, the other at the full level"),
        ("fixed", "When is tested only where whether was found, each at the full level"),
        ("none", "Each of the two at the full level"),
    ]), "bonferroni";
    /// Design: the power that is wanted, for the number of patients needed and the smallest effect found
    Power = Command "power": Kind::Number, "0.8";
    /// Design: Monte Carlo standard error of a power at which drawing stops
    Precision = Command "precision": Kind::Number, "0.01";
    /// Design: trials of a size that the paper's or the adjusted estimator analyses, at most
    MostTrials = Command "most-trials": Kind::Count, "100";
    /// Design: further follow-up whose gain in power is told [default: a fifth of the horizon]
    MoreTime = Command "more-time": Kind::Number;
    /// Design: further patients whose gain in power is told
    MorePatients = Command "more-patients": Kind::Count, "100";
    /// Design: a file that keeps what the estimator found, trial by trial; with it an interrupted command goes on
    Journal = Command "journal": Kind::Path;
    /// Threads to use; the result is the same with any number [default: all cores]
    Threads = Command "threads": Kind::Count;
}

impl Setting {
    /// The setting of this name.
    pub fn named(name: &str) -> Option<Setting> {
        Setting::ALL.iter().copied().find(|s| s.name() == name)
    }

    /// The words that its value can be; none where it is no word.
    pub fn words(self) -> &'static [Word] {
        match self.kind() {
            Kind::Word(words) | Kind::NumberOr(words) => words,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_plain() {
        let names: HashSet<&str> = Setting::ALL.iter().map(|s| s.name()).collect();
        assert_eq!(names.len(), Setting::ALL.len());
        for name in names {
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}");
            assert_eq!(Setting::named(name).map(Setting::name), Some(name));
        }
    }

    #[test]
    fn a_default_is_one_of_the_words() {
        for s in Setting::ALL.iter().filter(|s| matches!(s.kind(), Kind::Word(_))) {
            let default = s.default().expect("a word is always chosen");
            assert!(s.words().iter().any(|(w, _)| *w == default), "{}: {default}", s.name());
        }
    }

    #[test]
    fn help_names_settings_that_exist() {
        for s in Setting::ALL {
            let mut rest = s.help_text();
            while let Some((_, after)) = rest.split_once('{') {
                let (name, after) = after.split_once('}').expect("a brace is closed");
                assert!(Setting::named(name).is_some(), "the help of {} names {name}", s.name());
                rest = after;
            }
        }
    }
}
