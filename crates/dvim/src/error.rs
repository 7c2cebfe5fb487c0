//! Every way to fail, as data: which column, how many units, which rows, the rule, the remedy.

use crate::phrase::{Face, Fields, Phrase};
use std::fmt;

/// How much a problem matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; the analysis goes on.
    Warning,
    /// The analysis is refused.
    Error,
}

/// What kind of problem it is. The code of each is stable and used in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ProblemKind {
    /// A named column is not in the table.
    NoSuchColumn,
    /// One column was given two roles.
    ColumnUsedTwice,
    /// The table has no rows.
    NoRows,
    /// No covariate is left.
    NoCovariates,
    /// Values are missing.
    MissingValues,
    /// A column that must be numeric holds text.
    NotNumeric,
    /// A number is infinite or so large that its square overflows.
    NotFinite,
    /// An event is neither 0/1 nor true/false.
    EventCoding,
    /// A time is zero or negative.
    TimeNotPositive,
    /// The treatment does not have exactly two values.
    TreatmentValues,
    /// Which of two treatment values is "treated" is not evident.
    TreatedUnclear,
    /// The treated label does not occur.
    TreatedUnknown,
    /// An id occurs twice.
    DuplicateIds,
    /// A covariate has the same value in every unit.
    ConstantCovariate,
    /// A covariate looks like an identifier.
    LooksLikeId,
    /// The horizon is not a positive number.
    BadHorizon,
    /// An arm has no event before the horizon.
    NoEvent,
    /// In an arm nobody is followed to the horizon.
    NobodyAtHorizon,
    /// In an arm hardly anybody is followed to the horizon.
    FewAtHorizon,
    /// An arm is too small for the group size.
    ArmTooSmall,
    /// Fewer events than parameters in an arm's training set.
    FewEvents,
    /// An option is out of its range.
    BadOption,
    /// No row is left after a filter or a rule.
    NothingKept,
    /// Rows were left out on request.
    RowsDropped,
    /// Missing values were filled in on request.
    FilledValues,
    /// A covariate holds dates.
    DateCovariate,
    /// A date whose day and month cannot be told apart.
    AmbiguousDate,
    /// A value that should be a date and is none.
    NotADate,
    /// A category has too many levels.
    TooManyLevels,
    /// Two levels differ only in case or spaces.
    SimilarLevels,
    /// A level occurs in one arm, or in one set, only.
    LevelInOneArm,
    /// A column is declared numeric or categorical and is no covariate.
    NotACovariate,
    /// Many events share few times.
    HeavyTies,
    /// A new unit has a level that the cohort does not have.
    UnknownLevel,
    /// A constraint on matching cannot be used.
    BadConstraint,
    /// A case weight is not positive.
    BadWeight,
    /// Clusters cannot be used.
    BadCluster,
    /// A time of entry is before the origin or not before the time.
    BadEntry,
    /// Weights differ much, or look like counts.
    UnequalWeights,
    /// With delayed entry an event meets few at risk.
    FewAtRisk,
    /// Imputed data sets cannot be pooled.
    BadImputation,
    /// A stage cannot take weights, clusters, delayed entry or causes.
    NotSupported,
}

impl ProblemKind {
    /// A stable name for programs.
    pub fn code(self) -> &'static str {
        use ProblemKind::*;
        match self {
            NoSuchColumn => "no_such_column",
            ColumnUsedTwice => "column_used_twice",
            NoRows => "no_rows",
            NoCovariates => "no_covariates",
            MissingValues => "missing_values",
            NotNumeric => "not_numeric",
            NotFinite => "not_finite",
            EventCoding => "event_coding",
            TimeNotPositive => "time_not_positive",
            TreatmentValues => "treatment_values",
            TreatedUnclear => "treated_unclear",
            TreatedUnknown => "treated_unknown",
            DuplicateIds => "duplicate_ids",
            ConstantCovariate => "constant_covariate",
            LooksLikeId => "looks_like_id",
            BadHorizon => "bad_horizon",
            NoEvent => "no_event",
            NobodyAtHorizon => "nobody_at_horizon",
            FewAtHorizon => "few_at_horizon",
            ArmTooSmall => "arm_too_small",
            FewEvents => "few_events",
            BadOption => "bad_option",
            NothingKept => "nothing_kept",
            RowsDropped => "rows_dropped",
            FilledValues => "filled_values",
            DateCovariate => "date_covariate",
            AmbiguousDate => "ambiguous_date",
            NotADate => "not_a_date",
            TooManyLevels => "too_many_levels",
            SimilarLevels => "similar_levels",
            LevelInOneArm => "level_in_one_arm",
            NotACovariate => "not_a_covariate",
            HeavyTies => "heavy_ties",
            UnknownLevel => "unknown_level",
            BadConstraint => "bad_constraint",
            BadWeight => "bad_weight",
            BadCluster => "bad_cluster",
            BadEntry => "bad_entry",
            UnequalWeights => "unequal_weights",
            FewAtRisk => "few_at_risk",
            BadImputation => "bad_imputation",
            NotSupported => "not_supported",
        }
    }
}

/// One thing that is wrong with the input, and what to do about it.
///
/// ```
/// use dvim::Options;
///
/// let problems = Options { confidence: 2.0, ..Options::default() }.problems([500, 500]);
/// assert_eq!(problems[0].kind.code(), "bad_option");
/// assert_eq!(problems[0].column, None);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// What kind.
    pub kind: ProblemKind,
    /// Refused, or only worth knowing.
    pub severity: Severity,
    /// The column, where there is one.
    pub column: Option<String>,
    /// How many units are concerned.
    pub count: usize,
    /// The first rows concerned, counted from 1 below the header.
    pub rows: Vec<usize>,
    /// What was found.
    pub found: Phrase,
    /// The rule that it breaks.
    pub rule: Phrase,
    /// What the user can do.
    pub remedy: Phrase,
}

impl Problem {
    /// A refusal.
    pub fn error(
        kind: ProblemKind,
        found: impl Into<Phrase>,
        rule: impl Into<Phrase>,
        remedy: impl Into<Phrase>,
    ) -> Problem {
        Problem {
            kind,
            severity: Severity::Error,
            column: None,
            count: 0,
            rows: Vec::new(),
            found: found.into(),
            rule: rule.into(),
            remedy: remedy.into(),
        }
    }

    pub(crate) fn warning(
        kind: ProblemKind,
        found: impl Into<Phrase>,
        rule: impl Into<Phrase>,
        remedy: impl Into<Phrase>,
    ) -> Problem {
        Problem { severity: Severity::Warning, ..Problem::error(kind, found, rule, remedy) }
    }

    pub(crate) fn column(mut self, name: &str) -> Problem {
        self.column = Some(name.to_string());
        self
    }

    /// Sets the rows concerned; only the first few are kept, all are counted.
    pub(crate) fn rows(mut self, rows: &RowList) -> Problem {
        self.count = rows.count;
        self.rows = rows.first.clone();
        self
    }
}

/// How many rows a [`Problem`] names.
const ROWS_SHOWN: usize = 5;

/// Counts rows and remembers the first few.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowList {
    pub(crate) count: usize,
    pub(crate) first: Vec<usize>,
}

impl RowList {
    /// Adds a row, counted from 0.
    pub(crate) fn push(&mut self, row: usize) {
        self.count += 1;
        if self.first.len() < ROWS_SHOWN {
            self.first.push(row + 1);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Problem {
    /// The whole of it in the words of a face: what was found and where, the rule, the remedy.
    pub fn spelled(&self, face: &dyn Face) -> String {
        let label = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let column = self.column.as_ref().map_or(String::new(), |c| format!("column `{c}`: "));
        let mut rows = String::new();
        if !self.rows.is_empty() {
            let shown: Vec<String> = self.rows.iter().map(usize::to_string).collect();
            let more = if self.count > self.rows.len() { ", …" } else { "" };
            rows = format!(" (row{} {}{more})", if self.count == 1 { "" } else { "s" }, shown.join(", "));
        }
        let [found, rule, remedy] = [&self.found, &self.rule, &self.remedy].map(|p| p.spelled(face));
        format!("{label}: {column}{found}{rows}\n  rule:   {rule}\n  remedy: {remedy}")
    }
}

/// Why there is no result.
///
/// ```
/// use dvim::{Error, Options, Scenario, Unwatched, run, simulate};
///
/// let world = simulate(Scenario::CureOnly, 200, false, 1);
/// let options = Options { group_size: 0, ..Options::default() };
/// let Err(Error::Refused(problems)) = run(&world.cohort, &options, &Unwatched) else { unreachable!() };
/// assert_eq!(problems[0].kind.code(), "bad_option");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The input breaks these rules.
    Refused(Vec<Problem>),
    /// The cure model of an arm could not be fitted at all.
    Model {
        /// "treated" or "control".
        arm: &'static str,
        /// Why.
        reason: String,
    },
    /// No unit of that id.
    NoSuchUnit {
        /// The id asked for.
        id: String,
        /// Why it is not there, where that is known.
        reason: String,
    },
    /// One of several data sets failed.
    InSet {
        /// What it is called.
        set: String,
        /// Why.
        error: Box<Error>,
    },
    /// The caller asked to stop.
    Cancelled,
}

impl Error {
    /// The same, of one of several data sets.
    pub fn in_set(self, set: &str) -> Error {
        match self {
            Error::Cancelled => Error::Cancelled,
            error => Error::InSet { set: set.into(), error: Box::new(error) },
        }
    }

    /// What went wrong, in whichever data set.
    pub fn cause(&self) -> &Error {
        match self {
            Error::InSet { error, .. } => error.cause(),
            other => other,
        }
    }
}

impl Error {
    /// The whole of it in the words of a face.
    pub fn spelled(&self, face: &dyn Face) -> String {
        match self {
            Error::Refused(problems) => problems.iter().map(|p| p.spelled(face)).collect::<Vec<_>>().join("\n"),
            Error::Model { arm, reason } => {
                format!("error: the cure model of the {arm} arm cannot be fitted: {reason}")
            }
            Error::NoSuchUnit { id, reason } => format!("error: no unit `{id}`: {reason}"),
            Error::InSet { set, error } => format!("in `{set}`:\n{}", error.spelled(face)),
            Error::Cancelled => "stopped on request; nothing was written".into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelled(&Fields))
    }
}

impl std::error::Error for Error {}

/// Names like the one that was asked for, nearest first, by edit distance.
pub fn nearest_names<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let lower = wanted.to_lowercase();
    let mut scored: Vec<(usize, &str)> = names
        .map(|n| (edit_distance(&lower, &n.to_lowercase()), n))
        .filter(|(d, _)| *d <= 1.max(lower.chars().count() / 3))
        .collect();
    scored.sort();
    scored.into_iter().take(3).map(|(_, n)| n.to_string()).collect()
}

/// Levenshtein distance, by rows.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
