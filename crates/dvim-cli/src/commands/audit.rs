//! `dvim audit`: whether a run can be relied on.

use super::{open_run, use_threads};
use crate::args::AuditArgs;
use crate::progress::Progress;
use crate::{Failure, print};
use dvim::internal::analysis::Analysis;
use dvim::internal::audit::Audit;
use dvim::internal::audit::sensitivity;
use dvim_io::atomic::{Access, write_file};
use dvim_report::audit::{AuditRecord, words, write_uses};
use dvim_report::record::{AverageRecord, VERSION};

pub fn run(args: &AuditArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let progress = Progress::new();
    let run = open_run(&args.run)?;
    let cohort = &run.cohort;
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
    let record = AuditRecord::of(cohort, &audit);
    let averages: Vec<AverageRecord> = audit.averages.iter().map(AverageRecord::from).collect();
    if args.json {
        let json = serde_json::json!({
            "schema": record.schema,
            "version": VERSION,
            "horizon": cohort.horizon(),
            "confidence": analysis.fit.options.confidence,
            "average_effects": averages,
            "audit": record,
        });
        let text = serde_json::to_string_pretty(&json).map_err(|e| Failure::Other(format!("error: {e}")))?;
        return print(&(text + "\n"));
    }
    let flags: Vec<(String, usize)> = analysis.flag_counts().into_iter().map(|(f, n)| (f.meaning(), n)).collect();
    print(&words(&averages, &record, &flags, analysis.units.len()))
}
