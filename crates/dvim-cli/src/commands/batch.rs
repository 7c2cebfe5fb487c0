//! `dvim fit` of several data sets at once: imputed data sets that are pooled, or every arm against one control.

use super::{read_cohort_table, roles_of};
use crate::args::FitArgs;
use crate::progress::Progress;
use crate::{Failure, print, say};
use dvim::internal::options::Options;
use dvim_io::batch::{Several, begin_batch, is_batch};
use dvim_io::tasks::{Asked, file_name};
use dvim_report::spell::CommandLine;
use std::path::{Path, PathBuf};

/// Whether several data sets are asked for.
pub fn is_asked(args: &FitArgs) -> bool {
    is_batch(args.tables.len(), args.imputation.as_deref(), &args.roles.roles())
}

pub fn run(args: &FitArgs, options: &Options, progress: &Progress) -> Result<(), Failure> {
    // A directory that may not be written is said at once, not after the work.
    let inputs: Vec<&Path> = args.tables.iter().map(PathBuf::as_path).collect();
    drop(begin_batch(&args.output, args.force, &inputs)?);
    if args.report.is_some() {
        return Err(Failure::Input(
            "error: --report with several data sets\n  rule:   a page is of one run\n  remedy: write it from one of the runs, with `dvim report`".into(),
        ));
    }
    let asked = Asked { by: args.by.by(), audit: !args.no_audit };
    let roles = roles_of(&args.roles, &args.names)?;
    let read = |file| read_cohort_table(file, &roles, args.threads.threads, progress);
    let tables = args.tables.iter().map(|file| read(file.as_path())).collect::<Result<_, _>>()?;
    let names: Vec<String> = args.tables.iter().map(|file| file_name(file)).collect();
    let done = Several::new(tables, &names, args.imputation.as_deref(), &roles, options, &asked, progress)?;
    done.write(&args.output, args.force, args.format, &inputs)?;
    done.notes.iter().for_each(|note| say(note));
    for (set, problem) in done.warnings() {
        say(&format!("in `{set}`: {}", problem.spelled(&CommandLine)));
    }
    print(&done.record.text())?;
    let folders: Vec<&str> = done.record.runs.iter().map(|m| m.folder.as_str()).collect();
    say(&format!(
        "written to {} in {:.2} s; each run is in a directory of its own: {}",
        args.output.display(),
        progress.seconds(),
        folders.join(", ")
    ));
    Ok(())
}
