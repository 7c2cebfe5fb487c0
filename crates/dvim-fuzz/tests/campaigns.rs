//! A few of each campaign; `make torture` runs all.

fn some(name: &str, n: usize) {
    let outcome = dvim_fuzz::campaign::run(name, n, 1).expect("a campaign of that name");
    assert!(outcome.wrong.is_empty(), "{}\n{}", outcome.row, outcome.wrong.join("\n"));
    assert!(outcome.row.contains(&format!("| {n} |")), "{}", outcome.row);
}

#[test]
fn random_cohorts() {
    some("cohorts", 60);
}

#[test]
fn malformed_tables() {
    some("tables", 400);
}

#[test]
fn damaged_runs() {
    some("runs", 120);
}

#[test]
fn hostile_requests() {
    some("requests", 200);
}
