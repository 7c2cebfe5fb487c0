//! The command `dvim`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(dvim_cli::run(std::env::args_os()))
}
