//! A kit estimates patients as the run does that it came from, and its sums say what the run's own audit says.

use dvim::internal::analysis::{Analysis, run};
use dvim::internal::audit::Audit;
use dvim::internal::audit::average::{AverageEffect, By};
use dvim::internal::audit::everybody::Tally;
use dvim::internal::cohort::{Cohort, Roles};
use dvim::internal::effect::Effect;
use dvim::internal::newcomers::Newcomers;
use dvim::internal::options::{AdjustedOptions, Estimator, Options};
use dvim::internal::outcome::Extras;
use dvim::internal::simulate::{Scenario, simulate};
use dvim::internal::table::{Column, Ids, Table, Values};
use dvim::internal::watch::Unwatched;
use dvim_io::kit::{Kit, write_kit};
use dvim_io::tasks::Predicted;
use dvim_report::tables::EffectTable;

fn options(splits: usize) -> Options {
    let adjusted = AdjustedOptions { splits: Some(splits), ..AdjustedOptions::default() };
    Options { estimator: Estimator::Adjusted(adjusted), ..Options::default() }
}

fn cohort(n: usize, seed: u64, extras: Extras) -> Cohort {
    let world = simulate(Scenario::BothOverlap, n, false, seed);
    let units = dvim::internal::cohort::Units { extras, ..world.cohort.to_units() };
    Cohort::from_parts(units, None, world.cohort.horizon()).expect("a simulated cohort is sound")
}

/// The rows of a cohort as a table, with ids after `from`.
fn table(cohort: &Cohort, from: i64, rows: &[usize]) -> Table {
    let numbers = |f: &dyn Fn(usize) -> f64| Values::Number(rows.iter().map(|&i| f(i)).collect::<Vec<f64>>().into());
    let id = |i: usize| from + cohort.ids().text(i).parse::<i64>().expect("a number");
    let mut columns = vec![
        Column { name: "id".into(), values: Values::Id(Ids::Integers(rows.iter().map(|&i| id(i)).collect())) },
        Column { name: "time".into(), values: numbers(&|i| cohort.recorded(i).0) },
        Column { name: "event".into(), values: numbers(&|i| f64::from(u8::from(cohort.recorded(i).1))) },
        Column { name: "arm".into(), values: numbers(&|i| cohort.arm(i).index() as f64) },
    ];
    let covariate =
        |(j, name): (usize, &String)| Column { name: name.clone(), values: numbers(&|i| cohort.covariates(i)[j]) };
    columns.extend(cohort.names().iter().enumerate().map(covariate));
    Table::new(columns).expect("columns of one length")
}

fn roles(horizon: f64) -> Roles {
    Roles { time: "time".into(), event: "event".into(), treatment: "arm".into(), horizon, ..Roles::default() }
}

fn cells<'a>(table: &EffectTable<'a, impl Fn(usize) -> dvim_report::tables::EffectRow<'a> + Sync>) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    table.write_csv(&mut out).expect("memory takes it");
    out.split(|b| *b == b'\n').skip(1).map(<[u8]>::to_vec).filter(|row| !row.is_empty()).collect()
}

/// The effects of rows, and the sums over those of them who are not of the sample.
fn estimated(kit: &Kit, part: &Table) -> (Vec<Vec<u8>>, Tally) {
    let newcomers = Newcomers::new(kit.fit(), kit.cohort()).expect("no constraints");
    let prepared = newcomers.prepared();
    let roles = roles(kit.cohort().horizon());
    let (found, tally) = Predicted::of_part(kit, (&newcomers, &prepared), part, Some("id"), Some(&roles), &Unwatched)
        .expect("sound rows");
    (cells(&found.table(kit.cohort(), kit.fit())), tally.expect("sums were asked for"))
}

fn close(a: &[AverageEffect], b: &[AverageEffect]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert_eq!((a.estimand, &a.population, a.n_units), (b.estimand, &b.population, b.n_units));
        let values = |a: &AverageEffect| [a.estimate, a.se, a.low, a.high, a.sd, a.split_sd];
        for (x, y) in values(a).into_iter().zip(values(b)) {
            assert_eq!(x.is_some(), y.is_some(), "{a:?} {b:?}");
            let (x, y) = (x.unwrap_or(0.0), y.unwrap_or(0.0));
            assert!((x - y).abs() <= 1e-9 * x.abs().max(1e-3), "{a:?}\n{b:?}");
        }
    }
}

fn analysed(cohort: &Cohort, splits: usize) -> Analysis {
    run(cohort, &options(splits), &Unwatched).expect("it fits")
}

/// A sample of everybody says what the audit of the run says: with one deal and several, weights and other causes.
#[test]
fn a_sample_of_everybody_is_the_run() {
    let n = 700;
    let weights = (0..n).map(|i| 3.0 + (i % 5) as f64).collect();
    let kinds = [
        (10, Extras::default()),
        (20, Extras::default()),
        (10, Extras { weight: Some(weights), ..Extras::default() }),
        (10, Extras { competing: Some((0..n).map(|i| i % 9 == 0).collect()), ..Extras::default() }),
    ];
    for (splits, extras) in kinds {
        let competing = extras.competing.clone();
        let mut units = cohort(n, 4, Extras::default()).to_units();
        if let Some(competing) = competing {
            units.event.iter_mut().zip(&competing).for_each(|(event, other)| *event &= !other);
        }
        units.extras = extras;
        let cohort = Cohort::from_parts(units, None, 800.0).expect("sound parts");
        let found = analysed(&cohort, splits);
        let by = [By::parse(&cohort.names()[19])];
        let by = if cohort.covariates(0)[19].fract() == 0.0 { &by[..] } else { &[] };
        let audit = Audit::of(&cohort, &found, by).expect("an audit");
        let (kit, tally) = write_kit(&cohort, &found, by).expect("a kit");
        let over = Kit::open(&kit).expect("a whole kit").everybody().over(&tally);
        close(&audit.averages, &over.averages);
        assert_eq!(audit.curves.len(), over.curves.len());
        for (a, b) in audit.curves.iter().zip(&over.curves) {
            let off = a.difference.estimate.iter().zip(&b.difference.estimate).map(|(x, y)| (x - y).abs());
            assert!(off.fold(0.0, f64::max) < 1e-9);
        }
        assert_eq!(Tally::from_bytes(&tally.to_bytes()).expect("whole"), tally);
    }
}

/// Patients of the sample have their effects of the run; the others those that predict gives; in parts of any size and
/// order, with sums that are the same to the last bit.
#[test]
fn parts_of_any_size_say_the_same() {
    let sample = cohort(700, 4, Extras::default());
    let others = cohort(500, 5, Extras::default());
    // Two deals; and pools that are a small part of the sample.
    for (splits, pool) in [(20, 100_000), (10, 60)] {
        let mut options = options(splits);
        if let Estimator::Adjusted(adjusted) = &mut options.estimator {
            adjusted.pool_units = pool;
        }
        let found = run(&sample, &options, &Unwatched).expect("it fits");
        let (bytes, own) = write_kit(&sample, &found, &[]).expect("a kit");
        let kit = Kit::open(&bytes).expect("a whole kit");
        assert!(kit.cohort().n_units() <= 2 * pool);
        let everyone: Vec<usize> = (0..700).collect();
        let (rows, none) = estimated(&kit, &table(&sample, 0, &everyone));
        assert_eq!(none.n_units(), 0, "the sample's own sums are known");
        // Id and arm are other columns of a run.
        let values = |row: &[u8]| row.split(|b| *b == b',').skip(2).map(<[u8]>::to_vec).collect::<Vec<Vec<u8>>>();
        let own_rows = cells(&dvim_report::tables::effect_table(&sample, &found));
        for (a, b) in rows.iter().zip(&own_rows) {
            assert_eq!(values(a), values(b));
        }

        let everyone: Vec<usize> = (0..500).collect();
        let (whole, sums) = estimated(&kit, &table(&others, 10_000, &everyone));
        let plain = found.fit.estimate_under_constraints(&sample, others.all_covariates(), &[None; 500], &Unwatched);
        let plain: Vec<Effect> = plain.expect("no constraints").into_iter().map(|e| e.expect("served")).collect();
        let newcomers = Newcomers::new(kit.fit(), kit.cohort()).expect("no constraints");
        let again = newcomers.estimate(others.all_covariates(), &[None; 500], &Unwatched).expect("estimates");
        assert!(
            plain.iter().zip(&again).all(|(a, b)| Ok(a) == b.as_ref()),
            "a small cohort predicts as the whole does"
        );
        let mut merged = kit.everybody().nobody();
        for some in everyone.chunks(113).rev() {
            let (part, tally) = estimated(&kit, &table(&others, 10_000, some));
            assert_eq!(part, whole[some[0]..some[0] + some.len()]);
            merged.merge(&tally).expect("one kind");
        }
        assert_eq!(merged, sums);
        merged.merge(&own).expect("one kind");
        assert_eq!(merged.n_units(), 1_200);
        let over = kit.everybody().over(&merged);
        let alone = kit.everybody().over(&own);
        let se = |all: &[AverageEffect]| all.iter().find(|a| a.estimand == "cure_effect").and_then(|a| a.se);
        assert!(se(&over.averages) < se(&alone.averages), "more patients make an average surer");
    }
}

#[test]
fn a_kit_that_was_changed_is_refused() {
    let sample = cohort(400, 6, Extras::default());
    let (bytes, tally) = write_kit(&sample, &analysed(&sample, 10), &[]).expect("a kit");
    assert!(Kit::open(&bytes).is_ok());
    for at in [0, 7, 8, 40, bytes.len() / 2, bytes.len() - 1] {
        let mut other = bytes.clone();
        other[at] ^= 1;
        assert!(Kit::open(&other).is_err(), "byte {at}");
        assert!(Kit::open(&bytes[..at]).is_err(), "cut at {at}");
    }
    let tally = tally.to_bytes();
    assert!(Tally::from_bytes(&tally[1..]).is_err() && Tally::from_bytes(&[]).is_err());
}

#[test]
fn what_needs_all_patients_at_once_is_refused() {
    let paper = cohort(400, 6, Extras::default());
    let found = run(&paper, &Options::paper(), &Unwatched).expect("it fits");
    let refused = write_kit(&paper, &found, &[]).expect_err("no one-step averages").to_string();
    assert!(refused.contains("adjusted"), "{refused}");
    let clusters = Extras { cluster: Some((0..400).map(|i| i / 2).collect()), ..Extras::default() };
    let clustered = cohort(400, 6, clusters);
    let refused = write_kit(&clustered, &analysed(&clustered, 10), &[]).expect_err("clusters").to_string();
    assert!(refused.contains("cluster"), "{refused}");
}
