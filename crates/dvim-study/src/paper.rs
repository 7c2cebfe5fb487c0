//! The paper's published figures, as data. Every figure of the paper that the study compares with stands here and
//! nowhere else.

use dvim::internal::compare::method::Method;
use dvim::internal::simulate::Scenario;

/// One cell: the mean over data sets of the mean absolute error, and its standard deviation over data sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// Mean absolute error of the cure effect, times 100.
    pub cure_mae: f64,
    /// Its standard deviation.
    pub cure_sd: f64,
    /// Mean absolute error of the time effect.
    pub time_mae: f64,
    /// Its standard deviation.
    pub time_sd: f64,
}

/// The cells of one row, in the order of [`Scenario::PAPER`]: cure, its SD, time, its SD.
type Row = (Method, [[f64; 4]; 4]);

/// One of the paper's three tables of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Table 1: four scenarios, K = 50.
    Main,
    /// Supplement: the same at K = 100.
    K100,
    /// Supplement: mild confounding, K = 50.
    Confounded,
}

impl Table {
    /// All three.
    pub const ALL: [Table; 3] = [Table::Main, Table::K100, Table::Confounded];

    /// Its name in commands and files.
    pub fn name(self) -> &'static str {
        match self {
            Table::Main => "main",
            Table::K100 => "k100",
            Table::Confounded => "confounded",
        }
    }

    /// What it shows.
    pub fn title(self) -> &'static str {
        match self {
            Table::Main => "Error of both effects, K = 50",
            Table::K100 => "Error of both effects, K = 100",
            Table::Confounded => "Error of both effects under mild confounding, K = 50",
        }
    }

    /// K.
    pub fn group_size(self) -> usize {
        if self == Table::K100 { 100 } else { 50 }
    }

    /// Whether treatment depends on covariates that matter for the outcome.
    pub fn confounded(self) -> bool {
        self == Table::Confounded
    }

    /// What the paper printed; `None` for a method that its tables do not have.
    pub fn published(self, method: Method, scenario: Scenario) -> Option<Published> {
        let rows = match self {
            Table::Main => &MAIN,
            Table::K100 => &K100,
            Table::Confounded => &CONFOUNDED,
        };
        let column = Scenario::PAPER.iter().position(|s| *s == scenario)?;
        let (_, cells) = rows.iter().find(|(m, _)| *m == method)?;
        let [cure_mae, cure_sd, time_mae, time_sd] = cells[column];
        Some(Published { cure_mae, cure_sd, time_mae, time_sd })
    }
}

/// Its Table 1: K = 50.
#[rustfmt::skip]
const MAIN: [Row; 9] = [
    (Method::Oracle, [[6.6, 0.2, 12.3, 1.3], [6.3, 0.3, 22.0, 1.8], [6.7, 0.4, 16.0, 1.9], [6.8, 0.3, 18.2, 1.5]]),
    (Method::PartialOracle, [[7.7, 0.3, 26.8, 1.5], [7.6, 0.2, 32.6, 1.5], [8.0, 0.3, 31.3, 1.8], [8.3, 0.3, 33.4, 1.5]]),
    (Method::McmKnn, [[7.9, 0.3, 26.8, 1.0], [7.6, 0.2, 33.3, 1.5], [8.3, 0.3, 31.4, 1.3], [8.7, 0.3, 38.5, 1.3]]),
    (Method::McmKnnCombined, [[8.0, 0.3, 27.6, 1.1], [7.8, 0.2, 39.4, 1.6], [8.7, 0.3, 33.4, 1.2], [8.9, 0.3, 45.9, 1.5]]),
    (Method::FeatureSelectionKnn, [[8.2, 0.3, 28.0, 1.1], [8.0, 0.2, 43.2, 1.8], [9.4, 0.5, 38.1, 2.5], [9.4, 0.4, 41.5, 2.6]]),
    (Method::EuclideanKnn, [[9.9, 0.3, 29.8, 1.1], [8.3, 0.2, 48.7, 1.6], [10.5, 0.4, 52.1, 1.1], [10.8, 0.4, 55.6, 1.3]]),
    (Method::PropensityScoreKnn, [[17.2, 0.2, 37.1, 1.3], [9.6, 0.4, 91.9, 1.2], [19.2, 0.2, 70.3, 0.9], [19.2, 0.2, 88.7, 0.9]]),
    (Method::PrognosticScoreKnn, [[13.6, 0.5, 38.3, 1.8], [8.4, 0.4, 92.9, 1.6], [14.5, 0.5, 60.4, 2.1], [15.4, 0.4, 68.9, 2.4]]),
    (Method::Cox, [[5.2, 0.6, 36.2, 2.2], [8.2, 0.7, 78.7, 3.1], [7.7, 0.7, 58.0, 1.3], [8.6, 0.7, 67.5, 1.5]]),
];

/// Its supplement, K = 100.
#[rustfmt::skip]
const K100: [Row; 9] = [
    (Method::Oracle, [[5.3, 0.4, 12.3, 0.5], [4.6, 0.2, 22.0, 0.8], [5.2, 0.2, 16.0, 0.6], [5.3, 0.2, 18.2, 0.7]]),
    (Method::PartialOracle, [[5.9, 0.2, 19.0, 0.7], [5.1, 0.3, 27.7, 1.0], [5.8, 0.3, 20.8, 0.8], [6.0, 0.3, 24.4, 0.9]]),
    (Method::McmKnn, [[6.6, 0.3, 18.1, 0.6], [5.4, 0.3, 27.5, 1.0], [6.6, 0.3, 21.2, 0.8], [6.9, 0.3, 24.8, 1.0]]),
    (Method::McmKnnCombined, [[6.6, 0.3, 18.3, 0.6], [5.6, 0.3, 34.8, 1.2], [7.0, 0.3, 24.4, 1.0], [7.1, 0.4, 27.5, 1.2]]),
    (Method::FeatureSelectionKnn, [[7.0, 0.3, 19.5, 0.7], [5.7, 0.3, 38.9, 1.5], [8.2, 0.4, 36.3, 1.3], [8.4, 0.4, 36.0, 1.4]]),
    (Method::EuclideanKnn, [[8.6, 0.3, 22.5, 0.8], [6.0, 0.3, 44.9, 1.8], [9.7, 0.5, 50.1, 1.7], [10.1, 0.5, 51.7, 1.9]]),
    (Method::PropensityScoreKnn, [[16.3, 0.5, 30.7, 1.0], [7.6, 0.4, 90.7, 2.5], [18.5, 0.6, 67.2, 2.0], [18.5, 0.7, 85.6, 2.8]]),
    (Method::PrognosticScoreKnn, [[14.3, 0.4, 29.9, 1.0], [6.1, 0.3, 88.0, 2.2], [12.7, 0.4, 56.5, 1.8], [13.6, 0.5, 67.1, 2.4]]),
    (Method::Cox, [[5.2, 0.6, 36.2, 2.2], [8.2, 0.7, 78.7, 3.1], [7.7, 0.7, 58.0, 1.3], [8.6, 0.7, 67.5, 1.5]]),
];

/// Its supplement, mild confounding, K = 50.
#[rustfmt::skip]
const CONFOUNDED: [Row; 9] = [
    (Method::Oracle, [[6.6, 0.2, 17.4, 1.3], [6.3, 0.2, 25.6, 1.6], [6.6, 0.3, 20.2, 1.2], [6.7, 0.3, 22.5, 1.4]]),
    (Method::PartialOracle, [[7.4, 0.4, 28.3, 1.5], [7.4, 0.3, 35.0, 1.9], [7.7, 0.4, 29.7, 1.6], [7.8, 0.4, 32.5, 1.7]]),
    (Method::McmKnn, [[8.0, 0.4, 26.8, 1.2], [7.8, 0.4, 40.6, 2.3], [8.2, 0.5, 33.4, 1.9], [8.1, 0.5, 35.5, 1.9]]),
    (Method::McmKnnCombined, [[8.2, 0.5, 27.2, 1.3], [7.7, 0.4, 34.7, 2.0], [8.2, 0.5, 30.5, 1.7], [8.6, 0.4, 33.4, 1.8]]),
    (Method::FeatureSelectionKnn, [[8.3, 0.3, 27.6, 1.4], [7.8, 0.5, 40.9, 2.2], [8.5, 0.5, 33.3, 1.8], [8.6, 0.5, 36.1, 1.9]]),
    (Method::EuclideanKnn, [[9.6, 0.6, 30.6, 1.7], [8.4, 0.6, 48.9, 2.5], [10.5, 0.7, 53.1, 2.4], [11.0, 0.8, 57.2, 2.5]]),
    (Method::PropensityScoreKnn, [[16.5, 0.8, 34.4, 1.6], [9.6, 0.5, 81.1, 2.7], [19.1, 0.8, 70.4, 2.6], [18.8, 0.8, 66.8, 2.3]]),
    (Method::PrognosticScoreKnn, [[14.0, 0.7, 36.2, 1.8], [7.7, 0.5, 91.1, 4.1], [15.7, 0.7, 54.9, 2.3], [16.2, 0.8, 63.2, 2.4]]),
    (Method::Cox, [[4.0, 0.4, 39.4, 2.3], [9.7, 0.6, 74.4, 3.5], [7.4, 0.5, 57.7, 2.6], [8.4, 0.5, 69.1, 1.7]]),
];
