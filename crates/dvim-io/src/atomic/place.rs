//! Places in a folder: temporary names beside them, and renames that never replace what was not looked at.

use super::refusal::{named, refuse, refuse_as};
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What a temporary name has after the name that it stands for.
pub(super) const PARTIAL: &str = ".dvim-partial-";
/// What an output that is being replaced is called where two names cannot be exchanged in one step.
pub(super) const OLD: &str = ".dvim-old-";

/// A name in a folder that exists.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The folder, without links.
    pub folder: PathBuf,
    name: OsString,
    /// The path as the user wrote it, for messages.
    pub shown: PathBuf,
}

impl Place {
    /// Finds the folder of a path, which must exist.
    pub fn of(path: &Path) -> io::Result<Place> {
        let (parent, name) = split(path)?;
        let no_folder = || {
            let found = format!("`{}` is not a folder that exists", parent.display());
            refuse_as(io::ErrorKind::Unsupported, found, "an output goes into a folder that exists", "make it first")
        };
        let folder = parent.canonicalize().map_err(|e| match e.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => no_folder(),
            _ => named(&parent, "opened")(e),
        })?;
        if !folder.is_dir() {
            return Err(no_folder());
        }
        Ok(Place { folder, name, shown: path.to_path_buf() })
    }

    /// The whole path, without links in its folder.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// What is there now; a link is not followed.
    pub fn look(&self) -> io::Result<Option<Metadata>> {
        match fs::symlink_metadata(self.path()) {
            Ok(found) => Ok(Some(found)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(named(&self.shown, "looked at")(e)),
        }
    }

    /// A hidden name beside it that nobody can foresee.
    pub fn beside(&self, kind: &str) -> io::Result<PathBuf> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|e| io::Error::other(format!("no random numbers: {e}")))?;
        let mut hidden = OsString::from(".");
        hidden.push(&self.name);
        hidden.push(format!("{kind}{}-{}", std::process::id(), super::hex(&bytes)));
        Ok(self.folder.join(hidden))
    }
}

/// The folder and the name of a path. A path such as `.` or `a/..` is first made one that ends in a name.
fn split(path: &Path) -> io::Result<(PathBuf, OsString)> {
    let whole = match path.components().next_back() {
        Some(std::path::Component::Normal(_)) => path.to_path_buf(),
        _ => path.canonicalize().map_err(named(path, "opened"))?,
    };
    let parent = match whole.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_path_buf(),
        None => PathBuf::from("/"),
    };
    let no_name = || {
        let found = format!("`{}` is no name for an output", path.display());
        refuse(found, "an output has a name in a folder", "choose a name in a folder of yours")
    };
    let name = whole.file_name().ok_or_else(no_name)?;
    Ok((parent, name.to_os_string()))
}

/// Attempts at a random name before giving up: one is enough unless something is badly wrong.
const ATTEMPTS: usize = 16;

/// Makes something under a name that does not exist; `make` must fail where the name is taken.
pub(super) fn exclusively<T>(
    mut name: impl FnMut() -> io::Result<PathBuf>,
    make: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    let mut attempt = 0;
    loop {
        let path = name()?;
        attempt += 1;
        match make(&path) {
            Ok(made) => return Ok((path, made)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => {}
            Err(e) => return Err(named(&path, "created")(e)),
        }
    }
}

/// Creates a file that did not exist, with this mode (less the umask) where there are modes.
pub(super) fn create_file(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}

/// Creates a directory that did not exist, for its owner alone where there are modes.
pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Gives something the mode of what it replaces.
pub(super) fn set_mode(path: &Path, mode: Option<u32>) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(mode) = mode {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        return fs::set_permissions(path, mode).map_err(named(path, "given its mode"));
    }
    #[cfg(not(unix))]
    let _ = (path, mode);
    Ok(())
}

/// The permission bits of something.
pub(super) fn mode_of(found: &Metadata) -> Option<u32> {
    #[cfg(unix)]
    return Some(std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o7777);
    #[cfg(not(unix))]
    {
        let _ = found;
        None
    }
}

/// Which file something is, and when it was last changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub id: Option<(u64, u64)>,
    n_bytes: u64,
    modified: Option<SystemTime>,
    /// Seconds and nanoseconds of the last change of the file or its mode.
    changed: Option<(i64, i64)>,
}

impl Stamp {
    pub fn of(found: &Metadata) -> Stamp {
        #[cfg(unix)]
        let (id, changed) = {
            use std::os::unix::fs::MetadataExt;
            (Some((found.dev(), found.ino())), Some((found.ctime(), found.ctime_nsec())))
        };
        #[cfg(not(unix))]
        let (id, changed) = (None, None);
        Stamp { id, n_bytes: found.len(), modified: found.modified().ok(), changed }
    }
}

/// Flushes the names in a folder to disk. A file system that cannot do it is left alone.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    match File::open(folder).and_then(|f| f.sync_all()) {
        Err(e) if !matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            return Err(named(folder, "flushed to disk")(e));
        }
        _ => {}
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// How a rename treats the new name.
#[derive(Clone, Copy)]
enum Flag {
    NoReplace,
    Exchange,
}

/// Renames in one step of the system; `None` where the system or the file system has no such step.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_with(from: &Path, to: &Path, flag: Flag) -> Option<io::Result<()>> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    let flag = match flag {
        Flag::NoReplace => RenameFlags::NOREPLACE,
        Flag::Exchange => RenameFlags::EXCHANGE,
    };
    match renameat_with(CWD, from, CWD, to, flag) {
        Ok(()) => Some(Ok(())),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::XDEV) => None,
        Err(e) => Some(Err(e.into())),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_with(_: &Path, _: &Path, _: Flag) -> Option<io::Result<()>> {
    None
}

/// Moves to a name that must be free. `AlreadyExists` where it is not.
pub(super) fn rename_new(from: &Path, to: &Path, is_directory: bool) -> io::Result<()> {
    match rename_with(from, to, Flag::NoReplace) {
        Some(done) => done,
        None => rename_new_carefully(from, to, is_directory),
    }
}

/// As [`rename_new`], where the system has no such step.
fn rename_new_carefully(from: &Path, to: &Path, is_directory: bool) -> io::Result<()> {
    if !is_directory {
        // A hard link fails where the name is taken; not every file system has them.
        match fs::hard_link(from, to) {
            Ok(()) => return fs::remove_file(from),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(e),
            Err(_) => {}
        }
    }
    if fs::symlink_metadata(to).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    // A directory never replaces a file or a directory with something in it.
    fs::rename(from, to)
}

/// Exchanges two files in one step; `None` where there is no such step.
pub(super) fn exchange_files(new: &Path, target: &Place) -> Option<io::Result<()>> {
    rename_with(new, &target.path(), Flag::Exchange)
}

/// Puts the directory `new` in the place of `target` in one step. Gives the name under which the old one is now.
pub(super) fn exchange(new: &Path, target: &Place) -> io::Result<PathBuf> {
    match rename_with(new, &target.path(), Flag::Exchange) {
        Some(done) => done.map(|()| new.to_path_buf()),
        None => exchange_in_two_steps(new, target),
    }
}

/// As [`exchange`], where the system has no such step. A crash between the two steps leaves the old directory under a
/// name that `dvim clean` puts back.
fn exchange_in_two_steps(new: &Path, target: &Place) -> io::Result<PathBuf> {
    let to = target.path();
    let old = target.beside(OLD)?;
    rename_new(&to, &old, true)?;
    match rename_new(new, &to, true) {
        Ok(()) => Ok(old),
        Err(e) => {
            let _ = rename_new(&old, &to, true);
            Err(e)
        }
    }
}

/// Takes back an [`exchange`].
pub(super) fn exchange_back(old: &Path, new: &Path, target: &Place) -> io::Result<()> {
    let to = target.path();
    if old == new {
        return rename_with(old, &to, Flag::Exchange).unwrap_or_else(|| Err(io::ErrorKind::Unsupported.into()));
    }
    rename_new(&to, new, true)?;
    rename_new(old, &to, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    #[cfg(unix)]
    fn a_planted_name_is_neither_followed_nor_replaced() {
        let folder = folder_with(&[("victim", "mine")]);
        let path = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("victim", path("planted")).unwrap();
        std::os::unix::fs::symlink("nowhere", path("dangling")).unwrap();
        for make_directory in [false, true] {
            let mut names = ["free", "dangling", "planted"].map(path).to_vec();
            let make = |p: &Path| if make_directory { create_directory(p) } else { create_file(p, 0o600).map(drop) };
            let (made, ()) = exclusively(|| Ok(names.pop().unwrap()), make).unwrap();
            assert_eq!(made, path("free"));
            assert_eq!(fs::read_to_string(path("victim")).unwrap(), "mine");
            assert!(!path("nowhere").exists());
            let _ = fs::remove_file(&made).or_else(|_| fs::remove_dir(&made));
        }
    }

    #[test]
    fn a_rename_to_a_new_name_replaces_nothing() {
        for careful in [false, true] {
            let rename = if careful { rename_new_carefully } else { rename_new };
            let folder = folder_with(&[("new", "new"), ("old", "old"), ("full/thesis", "mine"), ("made/file", "new")]);
            let path = |name: &str| folder.path().join(name);
            let taken = |done: io::Result<()>| assert_eq!(done.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            taken(rename(&path("new"), &path("old"), false));
            taken(rename(&path("made"), &path("full"), true));
            taken(rename(&path("made"), &path("old"), true));
            assert_eq!(fs::read_to_string(path("old")).unwrap(), "old");
            assert_eq!(fs::read_to_string(path("full/thesis")).unwrap(), "mine");
            rename(&path("new"), &path("here"), false).unwrap();
            rename(&path("made"), &path("there"), true).unwrap();
            assert!(path("here").is_file() && path("there/file").is_file());
            assert!(!path("new").exists() && !path("made").exists());
        }
    }

    #[test]
    fn directories_change_places_and_back() {
        for in_two_steps in [false, true] {
            let exchange = if in_two_steps { exchange_in_two_steps } else { exchange };
            let folder = folder_with(&[("run/old", "old"), (".hidden/new", "new")]);
            let (target, new) = (Place::of(&folder.path().join("run")).unwrap(), folder.path().join(".hidden"));
            let away = exchange(&new, &target).unwrap();
            assert!(target.path().join("new").is_file() && away.join("old").is_file());
            exchange_back(&away, &new, &target).unwrap();
            assert!(target.path().join("old").is_file() && new.join("new").is_file());
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        }
    }
}
