//! `dvim audit`: whether a run can be relied on.

use super::{open_run, use_threads};
use crate::args::AuditArgs;
use crate::progress::Progress;
use crate::{Failure, print, print_data};
use dvim::internal::analysis::Analysis;
use dvim::internal::audit::Audit;
use dvim::internal::audit::sensitivity;
use dvim::internal::effect::Flag;
use dvim_io::atomic::{Access, write_file};
use dvim_report::audit::{AuditRecord, words, write_uses};
use dvim_report::names::Names;
use dvim_report::record::{AverageRecord, Summary, VERSION};

pub fn run(args: &AuditArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let progress = Progress::new();
    let run = open_run(&args.run)?;
    let cohort = &run.cohort;
    if let (Some(stored), Some(record)) = (&run.stored, as_stored(args, &run.summary)) {
        let names = Names::of(&run.summary, None);
        let flags =
            Flag::ALL.map(|f| (names.spoken(&f.meaning()), run.summary.flags.get(f.name()).map_or(0, |r| r.n_units)));
        let confidence = run.fit.options.confidence;
        let averages = &run.summary.average_effects;
        return show(args, cohort.horizon(), confidence, averages, record, &flags, stored.groups.len());
    }
    let analysis = Analysis::reopened(run.fit, &run.corrected, run.stored, cohort, &progress)?;
    let mut audit = Audit::of(cohort, &analysis, &args.by.by())?;
    if args.seeds > 0 {
        audit.seeds = sensitivity::seeds(cohort, &analysis, args.seeds, &progress)?;
    }
    if let Some(file) = &args.uses {
        let Some(balance) = &audit.balance else {
            return Err(Failure::Input(
                "error: --uses with a run of the adjusted estimator or with case weights\n  rule:   uses are counted for the paper's estimator without case weights, so far\n  remedy: drop --uses, or fit with --estimator paper and without --weights".into(),
            ));
        };
        write_file(file, false, Access::Owner, &[], |mut out| write_uses(&mut out, cohort, balance))?;
    }
    let names = Names::of(&run.summary, None);
    let record = AuditRecord::of(cohort, &audit).named(&names);
    let averages: Vec<AverageRecord> = audit.averages.iter().map(AverageRecord::from).collect();
    let flags: Vec<(String, usize)> =
        analysis.flag_counts().into_iter().map(|(f, n)| (names.spoken(&f.meaning()), n)).collect();
    let confidence = analysis.fit.options.confidence;
    show(args, cohort.horizon(), confidence, &averages, &record, &flags, analysis.units.len())
}

/// The audit that the run was written with, where nothing else is asked for.
fn as_stored<'s>(args: &AuditArgs, summary: &'s Summary) -> Option<&'s AuditRecord> {
    let by: Vec<String> = args.by.by().iter().map(ToString::to_string).collect();
    let asked_for_more = args.seeds > 0 || args.uses.is_some();
    let is_this = |record: &&AuditRecord| record.asked && record.by == by && record.seeds.is_empty();
    summary.audit.as_ref().filter(is_this).filter(|_| !asked_for_more)
}

fn show(
    args: &AuditArgs,
    horizon: f64,
    confidence: f64,
    averages: &[AverageRecord],
    record: &AuditRecord,
    flags: &[(String, usize)],
    n_units: usize,
) -> Result<(), Failure> {
    if args.json {
        let json = serde_json::json!({
            "schema": record.schema,
            "version": VERSION,
            "horizon": horizon,
            "confidence": confidence,
            "average_effects": averages,
            "audit": record,
        });
        let text = serde_json::to_string_pretty(&json).map_err(|e| Failure::Other(format!("error: {e}")))?;
        return print_data((text + "\n").as_bytes());
    }
    print(&words(averages, record, flags, n_units))
}
