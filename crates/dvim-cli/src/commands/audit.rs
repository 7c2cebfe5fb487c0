//! `dvim audit`: whether a run can be relied on.

use super::use_threads;
use crate::args::AuditArgs;
use crate::progress::Progress;
use crate::{Failure, print};
use dvim::analysis::Analysis;
use dvim::audit::Audit;
use dvim::audit::average::Populations;
use dvim::audit::passes::Walk;
use dvim::audit::sensitivity;
use dvim_io::atomic::write_file;
use dvim_io::run::open_run;
use dvim_report::audit::{AuditRecord, words, write_uses};
use dvim_report::record::{AverageRecord, VERSION};

pub fn run(args: &AuditArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let progress = Progress::new();
    let run = open_run(&args.run)?;
    let cohort = &run.cohort;
    let analysis = Analysis::from_fit(run.fit, cohort, &progress)?;
    let populations = Populations::new(cohort, &analysis.units, &args.by.by())?;
    let walk = Walk::new(cohort, &analysis);
    let mut audit = Audit::of_walk(&walk, &populations);
    if args.seeds > 0 {
        audit.seeds = sensitivity::seeds(&walk, args.seeds, &progress)?;
    }
    if let Some(file) = &args.uses {
        write_file(file, false, |mut out| write_uses(&mut out, cohort, &audit))?;
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
