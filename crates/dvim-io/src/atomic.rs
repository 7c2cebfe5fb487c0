//! Outputs appear whole or not at all, and replace nothing that dvim did not write.
//!
//! Everything is written under a hidden, random name beside its place, flushed to disk, and moved there in one step.
//! A file is replaced only where the user asked for it. A directory is replaced only where dvim wrote everything in it,
//! and the old one is removed file by file. Links, devices and pipes are never written to.

mod hidden;
mod inventory;
mod place;
mod refusal;
mod temporary;

pub use hidden::{Hidden, hidden_in, remove_hidden_file, remove_listed, restore};
pub use inventory::Listed;
pub(crate) use refusal::some_of;
pub use refusal::{Refusal, named, refuse, refuse_as, spelled};
pub use temporary::{folders_written, remove_all};

use dvim::internal::setting::Setting;
use dvim::phrase;
use inventory::{Inventory, identity};
use place::{Place, Stamp, exchange, exchange_back, mode_of, rename_new, set_mode, sync_folder};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use temporary::{Rest, Temporary};

/// Bytes that are gathered before they are written. A larger piece is written at once and not copied again.
const BUFFER: usize = 64 << 10;

/// A SHA-256 in lower-case hexadecimal.
pub type Digest256 = String;

/// Hashes what goes through it.
pub struct Hashing<W: Write> {
    inner: W,
    digest: Sha256,
}

impl<W: Write> Hashing<W> {
    /// Wraps a writer.
    pub fn new(inner: W) -> Hashing<W> {
        Hashing { inner, digest: Sha256::new() }
    }

    /// The SHA-256 of what was written so far.
    pub fn so_far(&self) -> [u8; 32] {
        self.digest.clone().finalize().into()
    }

    /// The writer, and the SHA-256 of what was written.
    pub fn finish(self) -> (W, [u8; 32]) {
        (self.inner, self.digest.finalize().into())
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.digest.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Its owner alone: it may hold patients' data.
    Owner,
    /// Whoever the user lets read new files: it holds nothing of patients.
    Usual,
}

impl Access {
    fn mode(self) -> u32 {
        match self {
            Access::Owner => 0o600,
            Access::Usual => 0o666,
        }
    }
}

/// A file that is to be written.
#[derive(Debug)]
pub struct NewFile {
    place: Place,
    /// The file that it replaces.
    old: Option<(Stamp, Option<u32>)>,
    access: Access,
}

impl NewFile {
    /// Says at once whether a file may be written. A file that exists is replaced only with `force`. A link, a device,
    /// a pipe and a file that is among the `inputs`, by whatever name, are never replaced.
    pub fn plan(path: &Path, force: bool, access: Access, inputs: &[&Path]) -> io::Result<NewFile> {
        let place = Place::of(path)?;
        let old = match place.look()? {
            None => None,
            Some(found) if !found.is_file() => return Err(not_writable(path, &found)),
            Some(found) => {
                let stamp = Stamp::of(&found);
                let same = |input: &&&Path| match stamp.id {
                    Some(id) => identity(input) == Some(id),
                    None => input.canonicalize().is_ok_and(|i| place.path().canonicalize().is_ok_and(|p| p == i)),
                };
                if inputs.iter().find(same).is_some() {
                    return Err(refuse(
                        format!("`{}` is an input of this command", path.display()),
                        "an input is never replaced",
                        "choose another name for the output",
                    ));
                }
                if !force {
                    return Err(exists(path));
                }
                Some((stamp, mode_of(&found)))
            }
        };
        Ok(NewFile { place, old, access })
    }

    /// Whether two files are to be written to one place.
    pub fn is_same_place(&self, other: &NewFile) -> bool {
        self.place.path() == other.place.path()
    }

    /// Writes it; it appears when the closure is done. What has changed in its place since it was planned is left
    /// alone.
    pub fn write(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let shown = &self.place.shown;
        let (temporary, file) = Temporary::file(&self.place, self.access.mode()).map_err(named(shown, "created"))?;
        let written = (|| {
            let mut out = BufWriter::with_capacity(BUFFER, file);
            write(&mut out)?;
            out.into_inner()?.sync_all()
        })();
        written.map_err(named(shown, "written"))?;
        let new = &temporary.path;
        set_mode(new, self.old.as_ref().and_then(|(_, mode)| *mode))?;
        temporary.publish(|| match &self.old {
            None => match rename_new(new, &self.place.path(), false) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(appeared(shown)),
                done => done.map(|()| None).map_err(named(shown, "put in its place")),
            },
            Some((stamp, _)) => self.replace(new, stamp),
        })?;
        sync_folder(&self.place.folder)
    }

    /// Replaces the file that was planned to be replaced, and no other.
    fn replace(&self, new: &Path, stamp: &Stamp) -> io::Result<Option<Rest>> {
        let shown = &self.place.shown;
        let is_it = |path: &Path| fs::symlink_metadata(path).is_ok_and(|m| m.is_file() && Stamp::of(&m).id == stamp.id);
        if !is_it(&self.place.path()) {
            return Err(changed(shown));
        }
        match place::exchange_files(new, &self.place) {
            // In one step, so that what is taken away can be looked at once more.
            Some(done) => {
                done.map_err(named(shown, "put in its place"))?;
                if !is_it(new) {
                    exchange_back(new, new, &self.place).map_err(named(shown, "put back"))?;
                    return Err(changed(shown));
                }
                Ok(Some(Rest { place: new.to_path_buf(), files: Vec::new(), folders: Vec::new() }))
            }
            None => fs::rename(new, self.place.path()).map(|()| None).map_err(named(shown, "put in its place")),
        }
    }
}

/// Plans and writes a file.
pub fn write_file(
    path: &Path,
    force: bool,
    access: Access,
    inputs: &[&Path],
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    NewFile::plan(path, force, access, inputs)?.write(write)
}

fn exists(path: &Path) -> io::Error {
    refuse(
        format!("`{}` exists already", path.display()),
        "nothing is replaced unasked",
        phrase!["choose another name or add ", Setting::Force],
    )
}

fn appeared(path: &Path) -> io::Error {
    refuse(
        format!("`{}` appeared while dvim was at work", path.display()),
        "only what was there at the start, and could be replaced, is replaced",
        "choose another name",
    )
}

fn changed(path: &Path) -> io::Error {
    refuse(
        format!("`{}` was changed while dvim was at work", path.display()),
        "only what was there at the start, and could be replaced, is replaced",
        "look at it, then run the command again, or choose another name",
    )
}

/// The refusal of something that is neither a regular file nor a directory, or is one where the other is needed.
fn not_writable(path: &Path, found: &Metadata) -> io::Error {
    let kind = kind_of(found);
    let (rule, remedy) = match kind {
        "a directory" => ("a file does not replace a directory", "name a file in it"),
        "a symbolic link" => ("dvim does not write through links", "name the place that it points to"),
        "a file" => ("a directory does not replace a file", "choose another name"),
        _ => ("dvim writes regular files and directories only", "choose another name"),
    };
    refuse(format!("`{}` is {kind}", path.display()), rule, remedy)
}

fn kind_of(found: &Metadata) -> &'static str {
    let kind = found.file_type();
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a pipe";
        } else if kind.is_socket() {
            return "a socket";
        } else if kind.is_block_device() || kind.is_char_device() {
            return "a device";
        }
    }
    match () {
        () if kind.is_symlink() => "a symbolic link",
        () if kind.is_dir() => "a directory",
        () if kind.is_file() => "a file",
        () => "no regular file",
    }
}

/// A folder of a [`Directory`] that is being written, or all of it.
pub struct Folder {
    shared: Arc<Shared>,
    /// Its name with a slash; empty for the directory itself.
    prefix: String,
}

/// What the folders of a directory have in common.
struct Shared {
    temporary: Arc<Temporary>,
    place: Place,
    /// The directory that will be replaced.
    old: Option<Inventory>,
    /// SHA-256 of the files that were written.
    digests: Mutex<BTreeMap<String, Digest256>>,
    /// Files on their way to the disk: their writer goes on meanwhile.
    syncing: Mutex<Vec<JoinHandle<io::Result<()>>>>,
}

/// A directory that appears when it is complete. Dropped before [`Directory::publish`], it leaves nothing.
pub struct Directory(Folder);

impl std::ops::Deref for Directory {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.0
    }
}

impl Folder {
    /// Writes one file of it; gives the SHA-256 of its bytes.
    pub fn write(
        &self,
        name: &str,
        write: impl FnOnce(&mut Hashing<BufWriter<File>>) -> io::Result<()>,
    ) -> io::Result<Digest256> {
        let shared = &self.shared;
        let name = format!("{}{name}", self.prefix);
        let shown = shared.place.shown.join(&name);
        let file = shared.temporary.add_file(Path::new(&name), Access::Owner.mode());
        let file = file.map_err(named(&shown, "created"))?;
        let old_mode = shared.old.as_ref().and_then(|old| old.mode_of(&name));
        set_mode(&shared.temporary.path.join(&name), old_mode)?;
        let written = (|| {
            let mut out = Hashing::new(BufWriter::with_capacity(BUFFER, file));
            write(&mut out)?;
            let (file, digest) = out.finish();
            self.sync(file.into_inner()?, shown.clone())?;
            Ok(hex(&digest))
        })();
        let digest = written.map_err(named(&shown, "written"))?;
        locked(&shared.digests).insert(name, digest.clone());
        Ok(digest)
    }

    /// Flushes a file to disk beside other work; [`Directory::publish`] waits for it.
    fn sync(&self, file: File, shown: PathBuf) -> io::Result<()> {
        let file = Arc::new(file);
        let same = Arc::clone(&file);
        let flush = move || same.sync_all().map_err(named(&shown, "flushed to disk"));
        match thread::Builder::new().name("sync".into()).spawn(flush) {
            Ok(thread) => locked(&self.shared.syncing).push(thread),
            Err(_) => file.sync_all()?,
        }
        Ok(())
    }

    /// The size of one of its files.
    pub fn size(&self, name: &str) -> io::Result<u64> {
        let path = self.shared.temporary.path.join(format!("{}{name}", self.prefix));
        Ok(fs::metadata(&path).map_err(named(&path, "looked at"))?.len())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Directory {
    /// Begins a directory that will appear at `target`. Where `target` exists it must be an empty directory, or
    /// `listed` must give the files that dvim wrote into it; nothing else may be in it, nor any of the `inputs`.
    /// `listed` gives `None` where the user has not asked for a replacement.
    pub fn begin(
        target: &Path,
        inputs: &[&Path],
        listed: impl FnOnce(&Path) -> io::Result<Option<Listed>>,
    ) -> io::Result<Directory> {
        let mut parents = Vec::new();
        let made = make_parents(target, &mut parents);
        let begun = made.and_then(|()| Directory::begin_in(target, inputs, listed, parents.clone()));
        if begun.is_err() {
            parents.iter().rev().for_each(|p| drop(fs::remove_dir(p)));
        }
        begun
    }

    fn begin_in(
        target: &Path,
        inputs: &[&Path],
        listed: impl FnOnce(&Path) -> io::Result<Option<Listed>>,
        parents: Vec<PathBuf>,
    ) -> io::Result<Directory> {
        let place = Place::of(target)?;
        let old = match place.look()? {
            None => None,
            Some(found) if !found.is_dir() => return Err(not_writable(target, &found)),
            Some(_) => Some(may_replace(&place, inputs, listed)?),
        };
        let temporary = Temporary::directory(&place, parents).map_err(named(target, "created"))?;
        let shared = Shared { temporary, place, old, digests: Mutex::default(), syncing: Mutex::default() };
        Ok(Directory(Folder { shared: Arc::new(shared), prefix: String::new() }))
    }

    /// A folder in it, which appears with it.
    pub fn folder(&self, name: &str) -> io::Result<Folder> {
        let shown = self.shared.place.shown.join(name);
        self.shared.temporary.add_folder(Path::new(name)).map_err(named(&shown, "created"))?;
        Ok(Folder { shared: Arc::clone(&self.shared), prefix: format!("{name}/") })
    }

    /// The files that were written so far, with the SHA-256 of each.
    pub fn digests(&self) -> BTreeMap<String, Digest256> {
        locked(&self.shared.digests).clone()
    }

    /// Makes it appear, in one step. What it replaces is looked at once more, and removed file by file.
    pub fn publish(self) -> io::Result<()> {
        let Shared { temporary, place, old, syncing, .. } = &*self.shared;
        let shown = &place.shown;
        for thread in std::mem::take(&mut *locked(syncing)) {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a file could not be flushed to disk")))?;
        }
        let new = &temporary.path;
        for folder in temporary.folders() {
            sync_folder(&new.join(folder))?;
        }
        sync_folder(new)?;
        temporary.publish(|| match old {
            None => match rename_new(new, &place.path(), true) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(appeared(shown)),
                done => done.map(|()| None).map_err(named(shown, "put in its place")),
            },
            Some(old) => replace_directory(new, place, old).map(Some),
        })?;
        sync_folder(&place.folder)
    }
}

/// Puts a new directory in the place of an old one. Gives what is left to remove.
fn replace_directory(new: &Path, place: &Place, old: &Inventory) -> io::Result<Rest> {
    let shown = &place.shown;
    if !old.still_holds(&place.path()).unwrap_or(false) {
        return Err(changed(shown));
    }
    set_mode(new, old.mode)?;
    let away = exchange(new, place).map_err(named(shown, "replaced"))?;
    // What was taken away is what was looked at, or it goes back.
    if !old.still_holds(&away).unwrap_or(false) {
        exchange_back(&away, new, place).map_err(named(shown, "put back"))?;
        return Err(changed(shown));
    }
    let (files, folders) = old.names();
    Ok(Rest { place: away, files, folders })
}

/// Looks through the directory that is to be replaced.
fn may_replace(
    place: &Place,
    inputs: &[&Path],
    listed: impl FnOnce(&Path) -> io::Result<Option<Listed>>,
) -> io::Result<Inventory> {
    let (path, shown) = (place.path(), &place.shown);
    if std::env::current_dir().and_then(|d| d.canonicalize()).is_ok_and(|d| d.starts_with(&path)) {
        return Err(refuse(
            format!("`{}` is the working directory, or holds it", shown.display()),
            "a directory appears whole, in place of the old one, so it cannot be the one you are in",
            "choose another name, such as `result`",
        ));
    }
    if fs::read_dir(&path).map_err(named(shown, "listed"))?.next().is_none() {
        return Inventory::take(&path, shown, &Listed::new());
    }
    let Some(listed) = listed(&path)? else { return Err(exists(shown)) };
    let old = Inventory::take(&path, shown, &listed)?;
    match old.holds_any(inputs) {
        Some(input) => Err(refuse(
            format!("`{}` holds `{}`, an input of this command", shown.display(), input.display()),
            "an input is never replaced",
            "choose another name for the output",
        )),
        None => Ok(old),
    }
}

/// Makes the folders that a path needs and that are not there; adds those that were made to `made`.
fn make_parents(target: &Path, made: &mut Vec<PathBuf>) -> io::Result<()> {
    let missing: Vec<&Path> =
        target.ancestors().skip(1).take_while(|p| !p.as_os_str().is_empty() && !p.exists()).collect();
    for folder in missing.into_iter().rev() {
        match fs::create_dir(folder) {
            Ok(()) => made.push(folder.to_path_buf()),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(named(folder, "created")(e)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(names: &[&str]) -> Listed {
        names.iter().map(|name| (name.to_string(), None)).collect()
    }

    /// The names in a folder, hidden ones too.
    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.collect();
        names.sort();
        names
    }

    #[test]
    fn what_appears_or_changes_meanwhile_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("run");
        let begin = || {
            let directory = Directory::begin(&target, &[], |_| Ok(Some(listed(&["a"])))).unwrap();
            directory.write("a", |out| out.write_all(b"new")).unwrap();
            directory
        };
        // A directory, an empty one too, and a file.
        for make in [
            (|p: &Path| fs::create_dir(p).unwrap()) as fn(&Path),
            |p| fs::create_dir(p).and_then(|()| fs::write(p.join("thesis"), "mine")).unwrap(),
            |p| fs::write(p, "mine").unwrap(),
        ] {
            let directory = begin();
            make(&target);
            let refused = directory.publish().unwrap_err();
            assert!(refused.to_string().contains("appeared while dvim was at work"), "{refused}");
            assert_eq!(names(folder.path()), ["run"]);
            let _ = fs::remove_dir_all(&target).or_else(|_| fs::remove_file(&target));
        }
        begin().publish().unwrap();
        // A file that is added, and one that is edited.
        for (name, text) in [("thesis", "mine"), ("a", "edited")] {
            let directory = begin();
            fs::write(target.join(name), text).unwrap();
            let refused = directory.publish().unwrap_err();
            assert!(refused.to_string().contains("was changed while dvim was at work"), "{refused}");
            assert_eq!(fs::read_to_string(target.join(name)).unwrap(), text);
            assert_eq!(names(folder.path()), ["run"]);
            let _ = fs::remove_file(target.join("thesis"));
        }
        begin().publish().unwrap();
        assert_eq!(fs::read_to_string(target.join("a")).unwrap(), "new");
        // A file that another program puts in the place of the one that was to be replaced.
        let file = folder.path().join("page.html");
        fs::write(&file, "old").unwrap();
        let planned = NewFile::plan(&file, true, Access::Usual, &[]).unwrap();
        fs::write(folder.path().join("other"), "mine").unwrap();
        fs::rename(folder.path().join("other"), &file).unwrap();
        assert!(planned.write(|out| out.write_all(b"new")).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        assert_eq!(names(folder.path()), ["page.html", "run"]);
    }

    #[test]
    fn what_is_not_published_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::begin(&folder.path().join("a/b/run"), &[], |_| Ok(None)).unwrap();
        let inner = directory.folder("inner").unwrap();
        inner.write("file", |out| out.write_all(b"text")).unwrap();
        let failed = directory.write("other", |_| Err(io::Error::from(io::ErrorKind::StorageFull))).unwrap_err();
        let words = failed.to_string();
        assert!(words.contains("a/b/run/other` could not be written: "), "{words}");
        drop((inner, directory));
        assert!(names(folder.path()).is_empty());
    }
}
