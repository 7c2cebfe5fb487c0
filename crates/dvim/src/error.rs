//! Every way to fail, as data: which column, how many units, which rows, the rule, the remedy.

use crate::phrase::{Face, Fields, Phrase, bounded as short, harmless, shown};
use std::fmt;

/// How much a problem matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; the analysis goes on.
    Warning,
    /// The analysis is refused.
    Error,
}

macro_rules! problem_kinds {
    ($(#[doc = $what:literal] $name:ident = $code:literal;)+) => {
        /// What kind of problem it is. The code of each is stable and used in JSON.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum ProblemKind {
            $(#[doc = $what] $name,)+
        }

        impl ProblemKind {
            /// Every kind.
            pub const ALL: &'static [ProblemKind] = &[$(ProblemKind::$name),+];

            /// A stable name for programs.
            pub fn code(self) -> &'static str {
                match self { $(ProblemKind::$name => $code,)+ }
            }
        }
    };
}

problem_kinds! {
    /// A named column is not in the table.
    NoSuchColumn = "no_such_column";
    /// One column was given two roles.
    ColumnUsedTwice = "column_used_twice";
    /// The table has no rows.
    NoRows = "no_rows";
    /// No covariate is left.
    NoCovariates = "no_covariates";
    /// Values are missing.
    MissingValues = "missing_values";
    /// A column that must be numeric holds text.
    NotNumeric = "not_numeric";
    /// A number is infinite or so large that its square overflows.
    NotFinite = "not_finite";
    /// An event is neither 0/1 nor true/false.
    EventCoding = "event_coding";
    /// A time is zero or negative.
    TimeNotPositive = "time_not_positive";
    /// The treatment does not have exactly two values.
    TreatmentValues = "treatment_values";
    /// Which of two treatment values is "treated" is not evident.
    TreatedUnclear = "treated_unclear";
    /// The treated label does not occur.
    TreatedUnknown = "treated_unknown";
    /// An id occurs twice.
    DuplicateIds = "duplicate_ids";
    /// A covariate has the same value in every unit.
    ConstantCovariate = "constant_covariate";
    /// A covariate looks like an identifier.
    LooksLikeId = "looks_like_id";
    /// A covariate is the outcome in other words, or looks like it.
    LeakedOutcome = "leaked_outcome";
    /// A covariate has a name of something that is measured after treatment began.
    AfterTreatment = "after_treatment";
    /// A value is a usual code for an unknown one.
    Sentinel = "sentinel";
    /// A value is absurdly far from all others.
    FarValue = "far_value";
    /// Rows repeat each other.
    DuplicateRows = "duplicate_rows";
    /// The horizon is not a positive number.
    BadHorizon = "bad_horizon";
    /// An arm has no event before the horizon.
    NoEvent = "no_event";
    /// In an arm nobody is followed to the horizon.
    NobodyAtHorizon = "nobody_at_horizon";
    /// In an arm hardly anybody is followed to the horizon.
    FewAtHorizon = "few_at_horizon";
    /// An arm is too small for the group size.
    ArmTooSmall = "arm_too_small";
    /// An option is out of its range.
    BadOption = "bad_option";
    /// No row is left after a filter or a rule.
    NothingKept = "nothing_kept";
    /// Rows were left out on request.
    RowsDropped = "rows_dropped";
    /// Missing values were filled in on request.
    FilledValues = "filled_values";
    /// A covariate holds dates.
    DateCovariate = "date_covariate";
    /// A date whose day and month cannot be told apart.
    AmbiguousDate = "ambiguous_date";
    /// A value that should be a date and is none.
    NotADate = "not_a_date";
    /// A category has too many levels.
    TooManyLevels = "too_many_levels";
    /// Two levels differ only in case or spaces.
    SimilarLevels = "similar_levels";
    /// A level occurs in one arm, or in one set, only.
    LevelInOneArm = "level_in_one_arm";
    /// A column is declared numeric or categorical and is no covariate.
    NotACovariate = "not_a_covariate";
    /// Many events share few times.
    HeavyTies = "heavy_ties";
    /// A new unit has a level that the cohort does not have.
    UnknownLevel = "unknown_level";
    /// A constraint on matching cannot be used.
    BadConstraint = "bad_constraint";
    /// A case weight is not positive.
    BadWeight = "bad_weight";
    /// Clusters cannot be used.
    BadCluster = "bad_cluster";
    /// A time of entry is before the origin or not before the time.
    BadEntry = "bad_entry";
    /// Weights differ much, or look like counts.
    UnequalWeights = "unequal_weights";
    /// With delayed entry an event meets few at risk.
    FewAtRisk = "few_at_risk";
    /// Imputed data sets cannot be pooled.
    BadImputation = "bad_imputation";
    /// The last line of a file has no line end.
    NoLineEnd = "no_line_end";
    /// The machine cannot bear what was asked of it.
    TooLarge = "too_large";
    /// A stage cannot take weights, clusters, delayed entry or causes.
    NotSupported = "not_supported";
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

/// How many problems of one kind are told one by one.
const PROBLEMS_SHOWN: usize = 10;

/// The problems, of which each kind is told a few times and then counted: a table can have a hundred thousand columns.
pub(crate) fn bounded(problems: Vec<Problem>) -> Vec<Problem> {
    let kind = |p: &Problem| (p.kind, p.severity);
    let mut told: Vec<((ProblemKind, Severity), usize)> = Vec::new();
    let mut out: Vec<Problem> = Vec::new();
    for problem in problems {
        let place = told.iter().position(|(k, _)| *k == kind(&problem)).unwrap_or_else(|| {
            told.push((kind(&problem), 0));
            told.len() - 1
        });
        told[place].1 += 1;
        match told[place].1.checked_sub(PROBLEMS_SHOWN) {
            None | Some(0) => out.push(problem),
            Some(1) => out.push(Problem { column: None, count: 0, rows: Vec::new(), ..problem }),
            Some(_) => {}
        }
    }
    for (k, n) in told.into_iter().filter(|(_, n)| *n > PROBLEMS_SHOWN) {
        let last = out.iter_mut().rfind(|p| kind(p) == k).expect("it was pushed");
        last.found = match n - PROBLEMS_SHOWN {
            1 => "one more column has this problem".into(),
            more => format!("{more} more columns have this problem").into(),
        };
    }
    out
}

/// How many names a message lists.
pub(crate) const NAMES_SHOWN: usize = 10;

/// The first names in quotes, and the number of the others.
pub(crate) fn some_of<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(NAMES_SHOWN);
    let shown: Vec<String> = names.take(NAMES_SHOWN).map(|n| format!("`{}`", shown(n))).collect();
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
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
        let column = self.column.as_ref().map_or(String::new(), |c| format!("column `{}`: ", shown(c)));
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
/// let options = Options { group_size: 0, ..Options::paper() };
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
            Error::NoSuchUnit { id, reason } => {
                short(harmless(&format!("error: no unit `{id}`: {reason}"))).into_owned()
            }
            Error::InSet { set, error } => format!("in `{}`:\n{}", shown(set), error.spelled(face)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_problems_of_a_kind_are_counted() {
        let constant = |i: usize| {
            Problem::error(ProblemKind::ConstantCovariate, "every value is 1", "it must vary", "leave it out")
                .column(&format!("c{i}"))
        };
        let other = Problem::error(ProblemKind::NoRows, "no rows", "there are rows", "add some");
        let ten: Vec<Problem> = (0..10).map(constant).collect();
        assert_eq!(bounded(ten.clone()), ten);
        let many: Vec<Problem> = (0..1000).map(constant).chain([other.clone()]).collect();
        let told = bounded(many);
        assert_eq!((told.len(), &told[..10], &told[11]), (12, &ten[..], &other));
        assert_eq!((told[10].found.clone(), &told[10].column), ("990 more columns have this problem".into(), &None));
    }
}
