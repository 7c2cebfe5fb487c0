//! The study in small: resumable, the same on any number of threads, and within its bands.

use dvim::internal::compare::method::Method;
use dvim::internal::simulate::Scenario;
use dvim::internal::watch::Unwatched;
use dvim_study::paper::Table;
use dvim_study::record::{Experiment, Job, Record, Settings};
use dvim_study::table::{Records, entries};
use dvim_study::{consistency, decomposition, page, runner, weights};
use std::convert::Infallible;

fn run(settings: &Settings, jobs: Vec<Job>, done: Records, threads: usize) -> (Records, Vec<String>) {
    let mut made = Vec::new();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let keep = |record: &Record| -> Result<(), Infallible> {
        made.push(record.key.clone());
        Ok(())
    };
    let records = pool.install(|| runner::run(settings, jobs, done, keep, &Unwatched)).expect("the study runs");
    (records, made)
}

#[test]
fn an_interrupted_run_goes_on_and_threads_do_not_matter() {
    let settings = Settings::new(3, 1_000);
    let jobs: Vec<Job> = Table::ALL.iter().flat_map(|t| runner::table_jobs(&settings, *t, 2)).collect();
    let (whole, made) = run(&settings, jobs.clone(), Records::new(), 3);
    // main and k100 share their data sets.
    assert_eq!((whole.len(), made.len()), (16, 16));
    let half: Records = whole.iter().step_by(2).map(|(k, r)| (k.clone(), r.clone())).collect();
    let (resumed, made) = run(&settings, jobs, half.clone(), 1);
    assert_eq!(made.len(), whole.len() - half.len());
    assert!(made.iter().all(|key| !half.contains_key(key)));
    assert_eq!(resumed, whole, "the same bits, whoever computed them");
    for table in Table::ALL {
        let found = entries(&settings, &whole, table, 2);
        assert_eq!(found.len(), Method::ALL.len() * 4, "{}", table.name());
        assert!(found.iter().all(|e| e.reps == 2 && e.cure.mean > 0.0));
        // Fewer repetitions asked for: fewer are used, though more are there.
        assert!(entries(&settings, &whole, table, 1).iter().all(|e| e.reps == 1));
    }
}

/// A row of a committed table: method, scenario, data sets, mean errors and their standard deviations (cure, time).
type Cell = (Method, Scenario, f64, [f64; 2], [f64; 2]);

fn committed(text: &str) -> Vec<Cell> {
    text.lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let number = |i: usize| cells[i].parse::<f64>().expect("a number");
            let scenario = Scenario::PAPER.into_iter().find(|s| s.name() == cells[1]).expect("a scenario");
            let method = Method::of_name(cells[0]).expect("a method");
            (method, scenario, number(2), [number(3), number(4)], [number(5), number(6)])
        })
        .collect()
}

const COMMITTED: [(Table, &str); 3] = [
    (Table::Main, include_str!("../../../docs/study/main.csv")),
    (Table::K100, include_str!("../../../docs/study/k100.csv")),
    (Table::Confounded, include_str!("../../../docs/study/confounded.csv")),
];

/// One data set of every scenario and table, of a seed that the committed run did not use. Each cell must lie within
/// five standard deviations of a single data set about the committed mean: SD·√(1 + 1/reps). An SD over few data sets
/// may be too small by luck, so it is taken as at least 1.5 % of the mean.
#[test]
fn every_cell_of_every_table_is_in_its_band() {
    let settings = Settings::new(2, 20_000);
    let jobs = Table::ALL.iter().flat_map(|t| runner::table_jobs(&settings, *t, 1)).collect();
    let (records, _) =
        run(&settings, jobs, Records::new(), std::thread::available_parallelism().map_or(2, |n| n.get()));
    let mut outside = Vec::new();
    for (table, text) in COMMITTED {
        let found = entries(&settings, &records, table, 1);
        let expected = committed(text);
        assert_eq!(found.len(), expected.len(), "{}: the committed table has the same rows", table.name());
        for (e, (method, scenario, reps, cure, time)) in found.iter().zip(expected) {
            assert_eq!((e.method, e.scenario), (method, scenario));
            let time_found = e.time.expect("defined somewhere").mean;
            for (what, value, [mean, sd]) in [("cure", e.cure.mean, cure), ("time", time_found, time)] {
                let band = 5.0 * sd.max(0.015 * mean) * (1.0 + 1.0 / reps).sqrt();
                if (value - mean).abs() > band {
                    outside.push(format!(
                        "{} {} {} {what}: {value:.2}, not {mean:.2} ± {band:.2}",
                        table.name(),
                        method.name(),
                        scenario.name()
                    ));
                }
            }
        }
    }
    assert!(outside.is_empty(), "{}", outside.join("\n"));

    // The identity of the decomposition holds on every data set.
    let parts = decomposition::decompose(&settings, &records, 1);
    assert_eq!(parts.len(), 16);
    for d in parts {
        let sum: f64 = d.parts.iter().map(|p| p.mean).sum();
        assert!((sum - d.total.mean).abs() < 1e-9 * d.total.mean, "{d:?}");
    }
}

/// Cells of the paper that contradict other cells of the paper, or the data that it describes; see docs/study.md.
fn inconsistent(table: Table, method: Method, scenario: Scenario, what: &str) -> bool {
    use Method::*;
    match (table, method, what) {
        // 38.5 and 45.9 at K = 50 against 24.8 and 27.5 at K = 100, where the other scenarios fall by a third, not by
        // two.
        (Table::Main, McmKnn | McmKnnCombined, "time") => scenario == Scenario::BothOverlap,
        // The two rows look exchanged: the combined metric cannot beat the one that is made for time.
        (Table::Confounded, McmKnn | McmKnnCombined, "time") => scenario != Scenario::CureOnly,
        _ => false,
    }
}

/// A cell that we do not reproduce: under confounding the pooled Cox model that selects features misses x19 in many
/// data sets of *cure only*: it makes events more likely on treatment and delays them, which cancels on average. Said
/// in docs/study.md.
fn not_reproduced(table: Table, method: Method, scenario: Scenario) -> bool {
    (table, method, scenario) == (Table::Confounded, Method::FeatureSelectionKnn, Scenario::CureOnly)
}

#[test]
fn the_committed_tables_reproduce_the_paper() {
    use Method::*;
    for (table, text) in COMMITTED {
        for wanted in [McmKnn, McmKnnCombined, PartialOracle, EuclideanKnn, FeatureSelectionKnn, Cox] {
            let mut ratios = Vec::new();
            for (method, scenario, _, cure, time) in committed(text).into_iter().filter(|row| row.0 == wanted) {
                let paper = table.published(method, scenario).expect("the paper has this row");
                for (what, ours, theirs) in [("cure", cure[0], paper.cure_mae), ("time", time[0], paper.time_mae)] {
                    if !inconsistent(table, method, scenario, what) && !not_reproduced(table, method, scenario) {
                        ratios.push(ours / theirs);
                    }
                }
            }
            let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
            assert!((mean - 1.0).abs() < 0.10, "{} {}: mean ratio {mean:.3}", table.name(), wanted.name());
        }
    }
}

#[test]
fn errors_fall_as_the_cohort_grows() {
    let settings = Settings::new(4, 20_000);
    let jobs = [2_000, 32_000].map(|n| Job::new(Experiment::Consistency, Scenario::BothOverlap, n, 0));
    assert!(jobs.iter().all(|j| consistency::jobs(1).contains(j)));
    let (records, _) = run(&settings, jobs.to_vec(), Records::new(), 2);
    let lines = page::consistency_lines(&records, 1);
    for line in lines.iter().filter(|l| l.grows) {
        let [small, large] = [0, 1].map(|i| line.points[i].2.mean);
        assert!(large < 0.7 * small, "{}: {small} to {large}", line.estimand);
        assert!(line.slope().expect("two points") < -0.1);
    }
}

#[test]
fn errors_rise_as_weights_move_away() {
    let settings = Settings::new(5, 10_000);
    let jobs = vec![Job::new(Experiment::Weights, Scenario::BothIndependent, 10_000, 0)];
    let (records, _) = run(&settings, jobs, Records::new(), 2);
    let record = records.values().next().expect("one record");
    let cell = |name: &str| record.cell(name, 50).expect("measured");
    let (near, half, far) =
        (cell(&weights::moved_name(0.0)), cell(&weights::moved_name(0.4)), cell(&weights::moved_name(1.0)));
    assert!(near.cure_mae < half.cure_mae && half.cure_mae < far.cure_mae);
    assert!(near.time_mae < half.time_mae && half.time_mae < far.time_mae);
    let discrepancy = |share: f64| cell(&weights::discrepancy_name(&weights::moved_name(share))).cure_mae;
    assert!(discrepancy(0.0) < discrepancy(0.4) && discrepancy(0.4) < discrepancy(1.0));
}
