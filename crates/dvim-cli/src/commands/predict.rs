//! `dvim predict`: both effects of patients who were not in the cohort.

use super::{open_run, use_threads};
use crate::args::PredictArgs;
use crate::progress::Progress;
use crate::{Failure, say};
use dvim::analysis::Ground;
use dvim::cohort::Arm;
use dvim::constraint::Unserved;
use dvim::error::Error;
use dvim::schema::encode_new;
use dvim::table::{Ids, Table, Values};
use dvim_io::atomic::write_file;
use dvim_io::read::{ReadOptions, read_table};
use dvim_io::run::write_effect_table;
use dvim_report::tables::{EffectRow, EffectTable, Layout, write_members};
use std::io::Write;

/// The flag of a patient who is farther from the cohort than was asked for.
const TOO_FAR: &str = "beyond_max_distance";

pub fn run(args: &PredictArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    if let Some(d) = args.max_distance.filter(|d| d.is_nan() || *d < 0.0) {
        return Err(Failure::Input(format!(
            "error: --max-distance is {d}\n  rule:   a distance is zero or more\n  remedy: see the diameters in effects.csv for distances that are usual here"
        )));
    }
    let progress = Progress::new();
    let run = open_run(&args.run)?;
    if run.fit.cross_fit.is_some() {
        return Err(Failure::Input(
            "error: the run was made with --estimator adjusted\n  rule:   new patients are matched by the paper's estimator, so far\n  remedy: fit the cohort with --estimator paper and predict from that run".into(),
        ));
    }
    let (cohort, fit) = (&run.cohort, &run.fit);
    let text = run.summary.roles.asked.categorical.clone();
    let covariates: Vec<&str> = cohort.schema().iter().map(|c| c.name.as_str()).collect();
    let usual = run.summary.roles.id.clone().unwrap_or_else(|| "id".into());
    let default_id = (!covariates.iter().any(|c| c.eq_ignore_ascii_case(&usual))).then_some(usual);
    let options = ReadOptions {
        id: args.id.clone(),
        default_id,
        text,
        threads: args.threads.threads.unwrap_or(0),
        ..ReadOptions::default()
    };
    let table = read_table(&args.table, &options)?.table;
    let ids = ids_of(&table, args.id.as_deref());
    let x = encode_new(cohort.schema(), &table).map_err(Error::Refused)?;
    let n = table.n_rows();
    let found = fit.estimate_under_constraints(cohort, &x, &vec![None; n], &progress)?;
    let is_far = |e: &dvim::effect::Effect| {
        let farthest =
            Arm::BOTH.iter().map(|&z| e.arm(z)).fold(0.0, |d: f64, a| d.max(a.cure.diameter).max(a.time.diameter));
        args.max_distance.is_some_and(|most| farthest > most)
    };
    let rows = EffectTable {
        n,
        layout: Layout::of(cohort, fit),
        row: |i: usize| EffectRow {
            id: ids.text(i),
            treatment: "",
            effect: found[i].as_ref().ok().filter(|e| !is_far(e)),
            flags: match &found[i] {
                Ok(e) if is_far(e) => vec![TOO_FAR],
                Ok(_) => vec![],
                Err(why) => why.arms().map(Unserved::flag).collect(),
            },
        },
    };
    let mut bytes = Vec::new();
    write_effect_table(&mut bytes, &rows, args.format.format())?;
    if let Some(file) = &args.groups {
        let p = cohort.n_covariates();
        let ground = Ground::new(fit, cohort);
        let search = ground.search();
        let groups = |i: usize| (ids.text(i), search.groups(&x[i * p..(i + 1) * p], None, None));
        write_file(file, args.force, |mut out| write_members(&mut out, cohort, (0..n).map(groups)))?;
    }
    match &args.output {
        Some(file) => write_file(file, args.force, |out| out.write_all(&bytes))?,
        None => {
            let mut out = std::io::stdout().lock();
            out.write_all(&bytes)?;
            out.flush()?;
        }
    }
    let far = found.iter().flatten().filter(|e| is_far(e)).count();
    let unserved = found.iter().filter(|e| e.is_err()).count();
    if let (Some(d), true) = (args.max_distance, far > 0) {
        say(&format!("{far} of {n} patients have no estimate: a group reaches beyond --max-distance {d}"));
    }
    if unserved > 0 {
        say(&format!(
            "{unserved} of {n} patients have no estimate: too few candidates satisfy the constraints of the run"
        ));
    }
    say(&format!("{n} patients in {:.3} s", progress.seconds()));
    Ok(())
}

/// Ids of the rows of a table: a column, or row numbers.
fn ids_of(table: &Table, id: Option<&str>) -> Ids {
    let column = match id {
        Some(name) => table.column(name),
        None => table.columns().iter().find(|c| matches!(c.values, Values::Id(_))),
    };
    match column.map(|c| &c.values) {
        Some(Values::Id(ids)) => ids.clone(),
        _ => Ids::Rows(table.n_rows()),
    }
}
