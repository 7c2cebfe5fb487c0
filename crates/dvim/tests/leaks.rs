#![allow(clippy::print_stdout)]
//! What the door stops and what it lets pass, over a corpus of tables (`corpus/mod.rs`).
//!
//!     cargo test -p dvim --test leaks -- --nocapture
//!
//! prints the error rates that docs/questions/columns.md quotes.

mod corpus;

use corpus::{LEAKS, clean_case, spoilt_case};
use dvim::Cohort;
use dvim::internal::error::{Error, Problem, Severity};
use dvim::internal::phrase::Fields;

/// Kinds by which a column or rows are stopped as not belonging there.
const KINDS: [&str; 6] =
    ["leaked_outcome", "after_treatment", "looks_like_id", "sentinel", "far_value", "duplicate_rows"];

fn problems(case: &corpus::Case) -> Vec<Problem> {
    match Cohort::admit(&case.table, &case.roles) {
        Ok(admitted) => admitted.warnings,
        Err(Error::Refused(problems)) => problems,
        Err(other) => panic!("{other}"),
    }
}

fn suspects(case: &corpus::Case) -> Vec<Problem> {
    problems(case).into_iter().filter(|p| KINDS.contains(&p.kind.code())).collect()
}

fn told(p: &Problem) -> String {
    format!("    {:?} {}", p.column, p.found.spelled(&Fields))
}

#[test]
fn no_leak_passes_and_few_clean_columns_are_stopped() {
    // Thresholds were chosen with seeds from 5,000.
    let (first, of_each) = (20_000, 3);
    let (mut columns, mut stopped, mut warned) = (0, 0, 0);
    let n_clean = LEAKS.len() as u64 * of_each;
    for seed in first..first + n_clean {
        let case = clean_case(seed);
        columns += case.table.columns().len() - 3;
        for p in suspects(&case) {
            println!("{}: {:?}\n{}", case.name, p.severity, told(&p));
            if p.severity == Severity::Error { stopped += 1 } else { warned += 1 }
        }
    }
    let (mut passed, mut n_bad, mut bystanders, mut others) = (Vec::new(), 0, 0, 0);
    for leak in LEAKS {
        for seed in first..first + of_each {
            let case = spoilt_case(leak, seed);
            let found = suspects(&case);
            let enough = |p: &Problem| p.severity == Severity::Error || case.look;
            if case.repeated {
                n_bad += 1;
                if !found.iter().any(|p| p.kind.code() == "duplicate_rows" && enough(p)) {
                    passed.push(format!("{}: rows", case.name));
                }
            }
            for bad in &case.bad {
                n_bad += 1;
                if !found.iter().any(|p| p.column.as_ref() == Some(bad) && enough(p)) {
                    passed.push(format!("{}: {bad} ({} rows)", case.name, case.table.n_rows()));
                }
            }
            others += case.table.columns().len() - 3 - case.bad.len();
            let wrong = found.iter().filter(|p| p.severity == Severity::Error && !case.repeated);
            for p in wrong.filter(|p| p.column.as_ref().is_none_or(|c| !case.bad.contains(c))) {
                println!("{}: a bystander\n{}", case.name, told(p));
                bystanders += 1;
            }
        }
    }
    println!(
        "{} spoilt tables, {n_bad} leaks, {} passed\n{n_clean} clean tables, {columns} columns, {stopped} stopped ({:.2} %), \
         {warned} with a warning ({:.2} %)\n{bystanders} of {others} other columns of spoilt tables stopped",
        LEAKS.len() as u64 * of_each,
        passed.len(),
        100.0 * stopped as f64 / columns as f64,
        100.0 * warned as f64 / columns as f64,
    );
    assert!(passed.is_empty(), "passed:\n{}", passed.join("\n"));
    assert!(50 * stopped <= columns, "{stopped} of {columns} clean columns were stopped");
    assert!(50 * bystanders <= others, "{bystanders} of {others} other columns were stopped");
}

#[test]
fn what_is_allowed_passes_with_a_word() {
    for leak in ["copy of the time", "event", "row number", "999 for unknown", "one value of 1e23", "every row twice"] {
        let mut case = spoilt_case(leak, 7);
        case.roles.allow =
            if case.repeated { vec![dvim::internal::cohort::DUPLICATES.into()] } else { case.bad.clone() };
        let found = suspects(&case);
        assert!(found.iter().all(|p| p.severity == Severity::Warning), "{leak}: {found:?}");
        assert!(!found.is_empty(), "{leak}: what was allowed is told");
    }
}
