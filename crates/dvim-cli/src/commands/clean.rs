//! `dvim clean`: hidden files that a killed dvim left.

use crate::args::CleanArgs;
use crate::{Failure, print};
use dvim_io::clean::{Cleaned, clean};

pub fn run(args: &CleanArgs) -> Result<(), Failure> {
    if !args.directory.is_dir() {
        return Err(Failure::Input(format!(
            "error: `{}` is not a directory\n  rule:   unfinished files are looked for in the directory in which dvim was to write\n  remedy: name that directory, as in dvim clean .",
            args.directory.display()
        )));
    }
    let done = clean(&args.directory)?;
    if done.is_empty() {
        return print(&format!("nothing to remove in {}\n", args.directory.display()));
    }
    let line = |c: &Cleaned| match c {
        Cleaned::Removed(path) => format!("removed {}\n", path.display()),
        Cleaned::Restored(path, target) => format!("put back {} as {}\n", path.display(), target.display()),
        Cleaned::Kept(path, why) => format!("kept {}: {why}\n", path.display()),
    };
    print(&done.iter().map(line).collect::<String>())
}
