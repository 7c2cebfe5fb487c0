//! A hostile day in numbers, for docs/torture.md.
//!
//! ```text
//! cargo run -p dvim-fuzz --example campaign -- cohorts 10000 [first seed]
//! cargo run -p dvim-fuzz --example campaign -- tables 10000
//! cargo run -p dvim-fuzz --example campaign -- runs 1000
//! cargo run -p dvim-fuzz --example campaign -- requests 2000
//! ```
//!
//! Each prints one row of a table and ends with 1 where anything is wrong. `CAMPAIGN_THREADS` says how many go on at a
//! time.

use std::io::Write;
use std::process::ExitCode;

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| args.get(i).and_then(|a| a.parse::<u64>().ok());
    let (n, first) = (number(1).unwrap_or(100) as usize, number(2).unwrap_or(1));
    let Some(outcome) = args.first().and_then(|name| dvim_fuzz::campaign::run(name, n, first)) else {
        say("usage: campaign cohorts|tables|runs|requests N [first seed]");
        return ExitCode::from(2);
    };
    say(&outcome.row);
    outcome.wrong.iter().take(200).for_each(|w| say(&format!("WRONG: {w}")));
    if outcome.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
