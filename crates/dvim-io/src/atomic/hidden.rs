//! Hidden names of this and other processes: how they are recognised, and whether somebody still uses them.
//!
//! A process holds a lock on each of its hidden files and directories. The system takes the lock back when the process
//! ends, however it ends, so that a free lock means that nobody will finish the work.

use super::inventory::{Inventory, Listed};
use super::place::{OLD, PARTIAL, rename_new};
use super::refusal::named;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// A file or directory under one of dvim's hidden names.
#[derive(Debug)]
pub struct Hidden {
    /// Its path.
    pub path: PathBuf,
    /// The path that it was to have.
    pub target: PathBuf,
    /// Whether it is an old output that was moved away to be replaced.
    pub is_old: bool,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Whether this user made it.
    pub is_own: bool,
    process: u32,
}

/// The hidden files and directories of dvim in a folder, by name.
pub fn hidden_in(folder: &Path) -> io::Result<Vec<Hidden>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).map_err(named(folder, "listed"))? {
        let entry = entry.map_err(named(folder, "listed"))?;
        let name = entry.file_name();
        let Some((target, is_old, process)) = name.to_str().and_then(parts) else { continue };
        // What has gone meanwhile, a link and a pipe are none of ours.
        let Ok(found) = fs::symlink_metadata(entry.path()) else { continue };
        if found.is_file() || found.is_dir() {
            out.push(Hidden {
                path: entry.path(),
                target: folder.join(target),
                is_old,
                is_directory: found.is_dir(),
                is_own: is_own(&found),
                process,
            });
        }
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(out)
}

/// The name that a hidden name stands for, whether it is that of an old output, and the process that made it.
fn parts(name: &str) -> Option<(&str, bool, u32)> {
    let (front, is_old) = [(PARTIAL, false), (OLD, true)].into_iter().find_map(|(kind, is_old)| {
        let (target, rest) = name.strip_prefix('.')?.rsplit_once(kind)?;
        Some(((target, rest), is_old))
    })?;
    let (target, rest) = front;
    let (process, random) = rest.split_once('-')?;
    let is_hex = random.len() == 16 && random.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    (is_hex && !target.is_empty()).then_some(())?;
    Some((target, is_old, process.parse().ok()?))
}

fn is_own(found: &Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::uid(found) == rustix::process::geteuid().as_raw();
    #[cfg(not(unix))]
    {
        let _ = found;
        true
    }
}

/// Locks a hidden file or directory for as long as it is open. A file system without locks is left alone.
pub(super) fn lock(file: &File) {
    #[cfg(unix)]
    let _ = rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    #[cfg(not(unix))]
    let _ = file;
}

impl Hidden {
    /// Whether the process that made it still runs.
    #[cfg(unix)]
    pub fn is_in_use(&self) -> bool {
        use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
        use rustix::io::Errno;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = open(&self.path, flags, Mode::empty()) else { return !self.has_ended() };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => false,
            Err(Errno::WOULDBLOCK) => true,
            Err(_) => !self.has_ended(),
        }
    }

    /// Whether the process that made it still runs. Without locks of directories it cannot be known.
    #[cfg(not(unix))]
    pub fn is_in_use(&self) -> bool {
        self.process == std::process::id()
    }

    /// Whether there is no process of that number.
    #[cfg(unix)]
    fn has_ended(&self) -> bool {
        use rustix::process::{Pid, test_kill_process};
        let pid = i32::try_from(self.process).ok().and_then(Pid::from_raw);
        pid.is_none_or(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
    }
}

/// Puts an old output back under its name, which must be free.
pub fn restore(hidden: &Hidden) -> io::Result<()> {
    rename_new(&hidden.path, &hidden.target, hidden.is_directory).map_err(named(&hidden.target, "put back"))
}

/// Removes a hidden file.
pub fn remove_hidden_file(hidden: &Hidden) -> io::Result<()> {
    fs::remove_file(&hidden.path).map_err(named(&hidden.path, "removed"))
}

/// Removes a directory that holds nothing but files of the list, unchanged.
pub fn remove_listed(directory: &Path, listed: &Listed) -> io::Result<()> {
    let (files, folders) = Inventory::take(directory, directory, listed)?.names();
    let file = |name: &PathBuf| directory.join(name);
    files.iter().map(file).try_for_each(|p| fs::remove_file(&p).map_err(named(&p, "removed")))?;
    folders.iter().map(file).try_for_each(|p| fs::remove_dir(&p).map_err(named(&p, "removed")))?;
    fs::remove_dir(directory).map_err(named(directory, "removed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_are_recognised_and_no_others() {
        let random = "0123456789abcdef";
        assert_eq!(parts(&format!(".run.dvim-partial-17-{random}")), Some(("run", false, 17)));
        assert_eq!(parts(&format!(".a.b.dvim-old-4-{random}")), Some(("a.b", true, 4)));
        let others = [
            format!("run.dvim-partial-17-{random}"),
            format!("..dvim-partial-17-{random}x"),
            format!(".run.dvim-partial--{random}"),
            format!(".run.dvim-partial-17-{}", random.to_uppercase()),
            ".run.dvim-partial-17".into(),
            ".run.dvim-partial-notes".into(),
        ];
        for name in &others {
            assert_eq!(parts(name), None, "{name}");
        }
    }
}
