//! What dvim wrote into a directory: only that is ever removed from it.

use super::place::{Stamp, mode_of};
use super::refusal::{named, refuse, some_of};
use super::{Digest256, Hashing, hex};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The files that dvim wrote into a directory, by their names in it (`folder/file` for those in a folder), with the
/// SHA-256 of each. The file that holds the list has no digest of its own.
pub type Listed = BTreeMap<String, Option<Digest256>>;

/// A directory that holds nothing but what dvim wrote, as it was when it was looked through.
#[derive(Debug)]
pub(super) struct Inventory {
    /// Files by their names in the directory.
    files: BTreeMap<String, (Stamp, Option<u32>)>,
    folders: BTreeSet<String>,
    /// The directory itself.
    id: Option<(u64, u64)>,
    pub mode: Option<u32>,
}

impl Inventory {
    /// Looks through a directory. Refuses, naming the files, where it holds anything that is not on the list, or a
    /// file that was changed since it was written.
    pub fn take(directory: &Path, shown: &Path, listed: &Listed) -> io::Result<Inventory> {
        let (inventory, foreign) = look_through(directory, listed)?;
        if !foreign.is_empty() {
            return Err(refuse(
                format!(
                    "`{}` holds what dvim's list of its files does not name: {}",
                    shown.display(),
                    some_of(&foreign)
                ),
                "a directory is replaced only where dvim wrote everything in it",
                "move those files elsewhere, or choose another name",
            ));
        }
        let mut edited = Vec::new();
        for name in inventory.files.keys() {
            let file = directory.join(name);
            if let Some(wanted) = listed.get(name).and_then(Option::as_ref) {
                if digest(&file)? != *wanted {
                    edited.push(name.clone());
                }
            }
        }
        if !edited.is_empty() {
            return Err(refuse(
                format!(
                    "`{}` holds files that were changed after dvim wrote them: {}",
                    shown.display(),
                    some_of(&edited)
                ),
                "a directory is replaced only where its files are as dvim wrote them",
                "move those files elsewhere, or choose another name",
            ));
        }
        Ok(inventory)
    }

    /// Whether a directory, which may have another name by now, is still as it was.
    pub fn still_holds(&self, directory: &Path) -> io::Result<bool> {
        let listed = self.files.keys().map(|name| (name.clone(), None)).collect();
        let (now, foreign) = look_through(directory, &listed)?;
        let stamps = |i: &Inventory| i.files.iter().map(|(n, (s, _))| (n.clone(), s.clone())).collect::<Vec<_>>();
        Ok(foreign.is_empty() && now.id == self.id && stamps(&now) == stamps(self) && now.folders == self.folders)
    }

    /// Which of these files, by any name, is one of the directory's.
    pub fn holds_any<'a>(&self, files: &[&'a Path]) -> Option<&'a Path> {
        let own: BTreeSet<(u64, u64)> = self.files.values().filter_map(|(stamp, _)| stamp.id).collect();
        files.iter().copied().find(|f| identity(f).is_some_and(|id| own.contains(&id)))
    }

    /// The mode of a file.
    pub fn mode_of(&self, name: &str) -> Option<u32> {
        self.files.get(name).and_then(|(_, mode)| *mode)
    }

    /// The files, and the folders that they are in.
    pub fn names(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        (self.files.keys().map(PathBuf::from).collect(), self.folders.iter().map(PathBuf::from).collect())
    }
}

/// Which file something is; a link is followed. `-` is standard input.
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    #[cfg(unix)]
    if path == Path::new("-") {
        use std::os::fd::AsFd;
        let input = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
        return Stamp::of(&input.metadata().ok().filter(|m| m.is_file())?).id;
    }
    Stamp::of(&fs::metadata(path).ok()?).id
}

/// What is in a directory, and what in it is not on the list: other names, and names of the list that are no regular
/// files.
fn look_through(directory: &Path, listed: &Listed) -> io::Result<(Inventory, Vec<String>)> {
    let folders: BTreeSet<&str> = listed.keys().filter_map(|n| n.split_once('/')).map(|(folder, _)| folder).collect();
    let itself = fs::symlink_metadata(directory).map_err(named(directory, "looked at"))?;
    let mut found = Inventory {
        files: BTreeMap::new(),
        folders: BTreeSet::new(),
        id: Stamp::of(&itself).id,
        mode: mode_of(&itself),
    };
    let mut foreign = Vec::new();
    let mut open = vec![String::new()];
    while let Some(prefix) = open.pop() {
        let folder = directory.join(&prefix);
        for entry in fs::read_dir(&folder).map_err(named(&folder, "listed"))? {
            let entry = entry.map_err(named(&folder, "listed"))?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let is_text = entry.file_name().to_str().is_some();
            let metadata = fs::symlink_metadata(entry.path()).map_err(named(&entry.path(), "looked at"))?;
            if is_text && metadata.is_file() && listed.contains_key(&name) {
                found.files.insert(name, (Stamp::of(&metadata), mode_of(&metadata)));
            } else if is_text && metadata.is_dir() && prefix.is_empty() && folders.contains(name.as_str()) {
                open.push(format!("{name}/"));
                found.folders.insert(name);
            } else {
                foreign.push(name);
            }
        }
    }
    foreign.sort();
    Ok((found, foreign))
}

/// SHA-256 of a regular file.
pub(super) fn digest(path: &Path) -> io::Result<Digest256> {
    let file = File::open(path).map_err(named(path, "opened"))?;
    let n_bytes = file.metadata().map_err(named(path, "looked at"))?.len();
    let mut out = Hashing::new(io::sink());
    io::copy(&mut file.take(n_bytes), &mut out).map_err(named(path, "read"))?;
    Ok(hex(&out.finish().1))
}
