//! `dvim fit`: both effects of each patient.

use super::{batch, read_cohort_table, report, roles_of, use_threads};
use crate::args::FitArgs;
use crate::progress::Progress;
use crate::{Failure, print, say};
use dvim::internal::options::Options;
use dvim_io::atomic::{Access, NewFile};
use dvim_io::memory::{self, forecast_shape};
use dvim_io::run::{EffectsFormat, begin_run, write_files};
use dvim_io::tasks::{Analysed, Asked};
use dvim_report::spell::CommandLine;
use dvim_report::text;
use std::io::Write;
use std::path::{Path, absolute};

pub fn run(args: &FitArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let progress = Progress::new();
    let options = args.method.options()?;
    for table in &args.tables {
        refuse_too_large(args, &options, table)?;
    }
    if batch::is_asked(args) {
        return batch::run(args, &options, &progress);
    }
    let table = &args.tables[0];
    let inputs = [table.as_path()];
    // A report may go into the run itself, and appears with it.
    let inside = report_inside(args)?;
    // A directory that may not be written is said at once, not after the work.
    drop(begin_run(&args.output, args.force, &inputs, inside.as_deref())?);
    let outside = match &args.report {
        Some(file) if inside.is_none() => Some(NewFile::plan(file, args.force, Access::Owner, &inputs)?),
        _ => None,
    };
    let roles = roles_of(&args.roles, &args.names)?;
    let input = read_cohort_table(table, &roles, args.threads.threads, &progress)?;
    let asked = Asked { by: args.by.by(), audit: !args.no_audit };
    let done = Analysed::new(input, &roles, &options, &asked, &progress)?;
    let origin = done.origin(args.format);
    let directory = begin_run(&args.output, args.force, &inputs, inside.as_deref())?;
    let summary = write_files(&directory, &done.cohort, &done.found, &done.audit, origin)?;
    // While the files go to the disk.
    let said = text::summary(&summary, &done.found, &done.cohort, super::terminal(), &CommandLine);
    let page = || report::page(args.title.as_deref(), None, &done.cohort, &done.found, &summary);
    if let Some(name) = &inside {
        directory.write(name, |out| out.write_all(page().as_bytes()))?;
    }
    directory.publish()?;
    if let Some(file) = outside {
        file.write(|out| out.write_all(page().as_bytes()))?;
    }
    for w in &done.warnings {
        say(&w.spelled(&CommandLine));
    }
    print(&said)?;
    say(&format!("written to {} in {:.2} s", args.output.display(), progress.seconds()));
    // The process ends here: to hand its memory back piece by piece would only take time.
    std::mem::forget(done);
    Ok(())
}

/// The name of a report that goes into the directory of the run.
fn report_inside(args: &FitArgs) -> Result<Option<String>, Failure> {
    let Some(report) = &args.report else { return Ok(None) };
    let folder = report.parent().map(absolute).and_then(Result::ok);
    if folder.is_none() || folder != absolute(&args.output).ok() {
        return Ok(None);
    }
    let name = report.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
    if EffectsFormat::ALL.map(EffectsFormat::file).contains(&name.as_str())
        || ["weights.csv", "summary.json", "run.dvim"].contains(&name.as_str())
    {
        return Err(Failure::Input(format!(
            "error: --report names `{}`, a file of the run itself\n  rule:   each output has a file of its own\n  remedy: use --report {}",
            report.display(),
            args.output.join("report.html").display()
        )));
    }
    Ok(Some(name))
}

/// Says at once that a run cannot fit into memory, and what would.
fn refuse_too_large(args: &FitArgs, options: &Options, table: &Path) -> Result<(), Failure> {
    let Some(shape) = forecast_shape(table) else { return Ok(()) };
    let p = args.roles.covariates.as_ref().map_or(shape.n_columns, Vec::len);
    let refused = memory::refuse(shape.n_rows, p, options, !args.no_audit, 0);
    Ok(refused.map_err(|e| e.in_set(&table.display().to_string()))?)
}
