//! `dvim explore`: a run in the browser.

use super::{open_run, use_other_threads};
use crate::args::ExploreArgs;
use crate::progress::Progress;
use crate::{Failure, print, say, signals};
use dvim::internal::analysis::Analysis;
use dvim::internal::ground::Ground;
use dvim_explore::{Explorer, Server, greeting};
use std::io;
use std::process::{Command, Stdio};

pub fn run(args: &ExploreArgs) -> Result<(), Failure> {
    use_other_threads(&args.threads)?;
    let progress = Progress::new();
    let run = open_run(&args.run)?;
    let server = Server::bind(args.port).map_err(|e| no_port(args.port, &e))?;
    let analysis = Analysis::reopened(run.fit, &run.corrected, run.stored, &run.cohort, &progress)?;
    let ground = Ground::of_fit(&analysis.fit, &run.cohort)?;
    let mut explorer = Explorer::new(&run.cohort, &analysis, &run.summary, &ground);
    if args.time_unit.is_some() {
        explorer.time_unit = args.time_unit.clone();
    }
    let stop = server.stop();
    signals::instead(move || stop.stop());
    say(&greeting(&explorer));
    print(&format!("{}\n", server.address()))?;
    say("Open this address in a browser on this machine; Ctrl-C ends it.");
    if !args.no_open && !open_browser(&server.address_for_once()?) {
        say("No browser could be opened from here.");
    }
    server.serve(&explorer)?;
    say("\nEnded.");
    Ok(())
}

fn no_port(port: Option<u16>, e: &io::Error) -> Failure {
    match (port, e.kind()) {
        (Some(port), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied) => Failure::Input(format!(
            "error: port {port} cannot be used: {e}\n  rule:   one program listens on a port, and those below 1024 are the system's\n  remedy: leave --port out to use one that is free"
        )),
        _ => Failure::Other(format!("error: no port of this machine can be used: {e}")),
    }
}

/// Hands an address to the desktop; says whether there was one to take it.
fn open_browser(address: &str) -> bool {
    let (program, before): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(target_os = "windows") {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(before).arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
