//! The command `dvim`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(dvim_cli::run_alone(std::env::args_os()))
}
