//! The command line: flags in, files and words out, exit codes that mean something.
//! No formula and no markup lives here. A library, so that the Python package installs the same command.

mod args;
mod commands;
mod progress;
mod signals;

use args::{Cli, Command};
use clap::FromArgMatches;
use dvim_io::atomic::named;
use dvim_report::spell::CommandLine;
use dvim_report::terminal::words;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Why a command ended without its result.
pub(crate) enum Failure {
    /// The input or the flags are wrong: exit code 2.
    Input(String),
    /// Something else went wrong: exit code 1.
    Other(String),
    /// Nobody reads our output any more: not worth a word.
    PipeClosed,
}

impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Failure {
        match e.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::PipeClosed,
            std::io::ErrorKind::AlreadyExists | std::io::ErrorKind::Unsupported => {
                Failure::Input(format!("error: {e}"))
            }
            _ => Failure::Other(format!("error: {e}")),
        }
    }
}

impl From<dvim::internal::error::Error> for Failure {
    fn from(e: dvim::internal::error::Error) -> Failure {
        use dvim::internal::error::Error;
        match e.cause() {
            Error::Refused(_) | Error::NoSuchUnit { .. } => Failure::Input(e.spelled(&CommandLine)),
            _ => Failure::Other(e.spelled(&CommandLine)),
        }
    }
}

impl From<dvim_io::read::ReadError> for Failure {
    fn from(e: dvim_io::read::ReadError) -> Failure {
        Failure::Input(e.to_string())
    }
}

impl From<dvim_io::run::OpenError> for Failure {
    fn from(e: dvim_io::run::OpenError) -> Failure {
        Failure::Input(e.to_string())
    }
}

/// Words for the user, to stdout. Names and ids in them cannot command a terminal.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    to_stdout(words(text).as_bytes())
}

/// Data for a program, to stdout: the bytes as they are, unless they are shown on a terminal.
pub(crate) fn print_data(bytes: &[u8]) -> Result<(), Failure> {
    if std::io::stdout().is_terminal() {
        return print(&String::from_utf8_lossy(bytes));
    }
    to_stdout(bytes)
}

fn to_stdout(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    Ok(written.map_err(named(Path::new("standard output"), "written"))?)
}

/// Names hidden files that earlier commands left where this one wrote.
fn name_leftovers() {
    for folder in dvim_io::atomic::folders_written() {
        let found = dvim_io::clean::leftovers(&folder).unwrap_or_default();
        let names: Vec<String> = found.iter().take(3).map(|p| format!("`{}`", p.display())).collect();
        if !names.is_empty() {
            let more = if found.len() > 3 { format!(" and {} more", found.len() - 3) } else { String::new() };
            say(&format!(
                "warning: a dvim that was killed left {}{more}\n  rule:   hidden files of this kind may hold patients' data\n  remedy: dvim clean {}",
                names.join(", "),
                folder.display()
            ));
        }
    }
}

/// Words for the user, to stderr. Names and ids in them cannot command a terminal.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", words(text));
}

/// Whether the process is the command and nothing else.
static IS_ALONE: AtomicBool = AtomicBool::new(false);

/// As [`run`], where the process is the command and nothing else: its thread computes too.
pub fn run_alone(args: impl IntoIterator<Item = OsString>) -> u8 {
    IS_ALONE.store(true, Relaxed);
    signals::explain_abort();
    keep_freed_memory();
    run(args)
}

/// The allocator of glibc takes pieces as large as the largest that was ever freed, up to 32 MB, from memory that the
/// process has already; without this, larger pieces than 128 kB would come fresh from the system each time, page by
/// page. Nothing is touched here, and elsewhere it does nothing.
fn keep_freed_memory() {
    let mut piece = Vec::<u8>::new();
    // Where there is no room the work itself will tell.
    let _ = piece.try_reserve_exact((32 << 20) - (64 << 10));
    drop(std::hint::black_box(piece));
}

/// Runs the command line, whose first argument is the name of the program. Gives the exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let parsed = Cli::complete().try_get_matches_from(args).and_then(|found| Cli::from_arg_matches(&found));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(e) => {
            let _ = e.print();
            return e.exit_code() as u8;
        }
    };
    if let Err(e) = dvim_io::environment::use_instructions() {
        say(&e.spelled(&CommandLine));
        return 2;
    }
    signals::watch();
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map_or(String::new(), |l| format!(" at {}:{}", l.file(), l.line()));
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("unknown");
        // The standard library gives up like this where a thread finds no memory for its stack.
        if text.contains("(os error 12)") {
            return say(&format!("error: memory ran out: {text}"));
        }
        say(&format!(
            "error: dvim met a case that it should have caught{place}: {text}\n  remedy: nothing was written; please report this line, with the command"
        ));
    }));
    let outcome = std::panic::catch_unwind(|| match cli.command {
        Command::Demo(args) => commands::demo::run(&args),
        Command::Simulate(args) => commands::simulate::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Fit(args) => commands::fit::run(&args),
        Command::Match(args) => commands::match_groups::run(&args),
        Command::Audit(args) => commands::audit::run(&args),
        Command::Rehearse(args) => commands::rehearse::run(&args),
        Command::Curves(args) => commands::curves::run(&args),
        Command::Plot(args) => commands::plot::run(&args),
        Command::Table(args) => commands::table::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Explore(args) => commands::explore::run(&args),
        Command::Predict(args) => commands::predict::run(&args),
        Command::Rerun(args) => commands::rerun::run(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Design(args) => commands::design::run(&args),
        Command::Study(args) => commands::study::run(&args),
        Command::Clean(args) => commands::clean::run(&args),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::complete(), "dvim", &mut text);
            print_data(&text)
        }
    });
    name_leftovers();
    match outcome {
        Ok(Ok(())) | Ok(Err(Failure::PipeClosed)) => 0,
        Ok(Err(Failure::Input(text))) => {
            say(&text);
            2
        }
        Ok(Err(Failure::Other(text))) => {
            say(&text);
            1
        }
        Err(_) => 1,
    }
}
