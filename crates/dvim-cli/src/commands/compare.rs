//! `dvim compare`: every method on one cohort.

use super::{read_cohort_table, roles_of, use_threads};
use crate::args::{CompareArgs, NameArgs};
use crate::progress::Progress;
use crate::{Failure, print, say};
use dvim_io::tasks::{Compared, begin_comparison};
use dvim_report::spell::CommandLine;

pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let progress = Progress::new();
    // Said at once, not after the work.
    let directory = begin_comparison(&args.output, args.force, &[&args.table])?;
    let roles = roles_of(&args.roles, &NameArgs::default())?;
    let input = read_cohort_table(&args.table, &roles, args.threads.threads, &progress)?;
    let done = Compared::new(input, &roles, &args.method.paper_options()?, args.ties, &progress)?;
    done.write(directory)?;
    done.warnings.iter().for_each(|w| say(&w.spelled(&CommandLine)));
    print(&done.comparison().text())?;
    say(&format!("written to {} in {:.2} s", args.output.display(), progress.seconds()));
    Ok(())
}
