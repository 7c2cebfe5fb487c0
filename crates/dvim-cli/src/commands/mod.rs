//! One file for each command.

pub mod audit;
pub mod check;
pub mod clean;
pub mod compare;
pub mod curves;
pub mod demo;
pub mod design;
pub mod explore;
pub mod fit;
pub mod match_groups;
pub mod plot;
pub mod predict;
pub mod rehearse;
pub mod report;
pub mod rerun;
pub mod batch;
pub mod simulate;
pub mod study;
pub mod table;

use crate::args::{NameArgs, RoleArgs, ThreadArgs};
use crate::{Failure, IS_ALONE};
use dvim::internal::cohort::Roles;
use dvim::internal::watch::Watch;
use dvim_io::atomic::NewFile;
use dvim_io::labels::read_labels;
use dvim_io::read::{ReadOptions, read_table};
use dvim_io::run::Run;
use dvim_io::tasks::Input;
use dvim_report::terminal::Terminal;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

/// Sets the number of threads for the rest of the process. Where it is ours alone this thread is the first of them:
/// what it does between two parallel parts does not go from thread to thread.
fn use_threads(args: &ThreadArgs) -> Result<(), Failure> {
    start_threads(args, IS_ALONE.load(Relaxed))
}

/// The same where this thread is busy with something else.
fn use_other_threads(args: &ThreadArgs) -> Result<(), Failure> {
    start_threads(args, false)
}

fn start_threads(args: &ThreadArgs, with_this: bool) -> Result<(), Failure> {
    let mut threads = rayon::ThreadPoolBuilder::new().num_threads(dvim_io::threads::checked(args.threads)?);
    if with_this {
        threads = threads.use_current_thread();
    }
    match threads.build_global() {
        // In a process of others they may have been started before, which only matters to those who ask for a number.
        Err(e) if args.threads.is_some() => Err(Failure::Other(format!("error: {e}"))),
        _ => Ok(()),
    }
}

/// Paths by reference.
fn paths(paths: &[PathBuf]) -> Vec<&Path> {
    paths.iter().map(PathBuf::as_path).collect()
}

/// Refuses two outputs of one name.
fn refuse_same(files: [&Option<NewFile>; 2], flags: [&str; 2]) -> Result<(), Failure> {
    let [Some(a), Some(b)] = files else { return Ok(()) };
    if !a.is_same_place(b) {
        return Ok(());
    }
    let [one, other] = flags;
    Err(Failure::Input(format!(
        "error: {one} and {other} name the same file\n  rule:   each output has a file of its own\n  remedy: choose another name for one of them"
    )))
}

/// The roles that were typed, with the labels of a file and of flags; what a flag says counts more.
fn roles_of(args: &RoleArgs, names: &NameArgs) -> Result<Roles, Failure> {
    let file = args.labels.as_deref().map(read_labels).transpose().map_err(Failure::Input)?;
    Ok(Roles { labels: names.labels().or(file.unwrap_or_default()), ..args.roles() })
}

/// Reads a table; ids without loss.
fn read_cohort_table(path: &Path, roles: &Roles, threads: Option<usize>, watch: &dyn Watch) -> Result<Input, Failure> {
    let n_bytes = std::fs::metadata(path).map_or(0, |m| m.len()) as usize;
    let progress = |done: u64| watch.progress("reading", done as usize, n_bytes);
    let options =
        ReadOptions { progress: Some(&progress), threads: threads.unwrap_or(0), ..dvim_io::tasks::read_options(roles) };
    Ok(Input::of_file(path, read_table(path, &options)?))
}

/// Opens a run; says which of its files were changed since it was written.
fn open_run(path: &Path) -> Result<Run, Failure> {
    let run = dvim_io::run::open_run(path)?;
    if !run.changed.is_empty() {
        crate::say(&format!(
            "warning: in `{}` {}\n  rule:   the files of a run are written once, with their hashes in summary.json\n  remedy: what is shown here comes from run.dvim, which is intact; `dvim rerun` writes the files again",
            path.display(),
            run.changed.join(", ")
        ));
    }
    Ok(run)
}

/// What stdout can show: plots of letters on a terminal with UTF-8, colours unless NO_COLOR is set.
fn terminal() -> Terminal {
    let is_terminal = std::io::stdout().is_terminal();
    let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default().to_ascii_lowercase();
    let dumb = set("TERM").is_none_or(|t| t == "dumb");
    let utf8 = locale.contains("utf-8") || locale.contains("utf8");
    Terminal { plots: is_terminal && utf8 && !dumb, colour: is_terminal && !dumb && set("NO_COLOR").is_none() }
}
