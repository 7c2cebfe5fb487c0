//! Temporary files and directories: what was made under a hidden name, and how it is removed again.

use super::hidden::lock as lock_file;
use super::place::{PARTIAL, Place, create_directory, create_file, exclusively};
use super::refusal::named;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A hidden file or directory. What is still there when it is dropped is removed, name by name.
pub(super) struct Temporary {
    pub path: PathBuf,
    state: Mutex<State>,
    /// Tells other processes, by its lock, that this one is at work.
    _in_use: Option<File>,
}

/// What there is to remove.
#[derive(Default)]
pub(super) struct State {
    /// Where the names below are; `None` when there is nothing to remove any more.
    place: Option<PathBuf>,
    is_directory: bool,
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    /// Folders that had to be made for it, outermost first.
    parents: Vec<PathBuf>,
}

/// Everything that is hidden at the moment, for [`remove_all`].
static HIDDEN: Mutex<Vec<Weak<Temporary>>> = Mutex::new(Vec::new());

/// The folders in which something was hidden.
static FOLDERS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// The folders in which this process wrote something, or tried to.
pub fn folders_written() -> Vec<PathBuf> {
    lock(&FOLDERS).iter().cloned().collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Temporary {
    fn new(hidden: &mut Vec<Weak<Temporary>>, path: PathBuf, in_use: Option<File>, state: State) -> Arc<Temporary> {
        in_use.iter().for_each(lock_file);
        lock(&FOLDERS).extend(path.parent().map(Path::to_path_buf));
        let state = Mutex::new(State { place: Some(path.clone()), ..state });
        let made = Arc::new(Temporary { path, state, _in_use: in_use });
        hidden.retain(|t| t.strong_count() > 0);
        hidden.push(Arc::downgrade(&made));
        made
    }

    /// Makes a hidden file beside a place.
    pub fn file(place: &Place, mode: u32) -> io::Result<(Arc<Temporary>, File)> {
        // From its making to its end a signal knows of it.
        let mut hidden = lock(&HIDDEN);
        let (path, file) = exclusively(|| place.beside(PARTIAL), |path| create_file(path, mode))?;
        Ok((Temporary::new(&mut hidden, path, file.try_clone().ok(), State::default()), file))
    }

    /// Makes a hidden directory beside a place; `parents` are folders that were made for it.
    pub fn directory(place: &Place, parents: Vec<PathBuf>) -> io::Result<Arc<Temporary>> {
        let mut hidden = lock(&HIDDEN);
        let (path, ()) = exclusively(|| place.beside(PARTIAL), create_directory)?;
        let in_use = File::open(&path).ok();
        Ok(Temporary::new(&mut hidden, path, in_use, State { is_directory: true, parents, ..State::default() }))
    }

    /// Makes a file in a directory.
    pub fn add_file(&self, name: &Path, mode: u32) -> io::Result<File> {
        let mut state = lock(&self.state);
        let path = self.path.join(name);
        let file = create_file(&path, mode).map_err(named(&path, "created"))?;
        state.files.push(name.to_path_buf());
        Ok(file)
    }

    /// Makes a folder in a directory.
    pub fn add_folder(&self, name: &Path) -> io::Result<()> {
        let mut state = lock(&self.state);
        let path = self.path.join(name);
        create_directory(&path).map_err(named(&path, "created"))?;
        state.folders.push(name.to_path_buf());
        Ok(())
    }

    /// The folders in it.
    pub fn folders(&self) -> Vec<PathBuf> {
        lock(&self.state).folders.clone()
    }

    /// Lets `publish` move it away. From then on there is to be removed what it returns: a place with files and
    /// folders, or nothing. A signal waits meanwhile.
    pub fn publish(&self, publish: impl FnOnce() -> io::Result<Option<Rest>>) -> io::Result<()> {
        let mut state = lock(&self.state);
        let rest = publish()?;
        let is_directory = state.is_directory;
        *state = match rest {
            Some(Rest { place, files, folders }) => {
                State { place: Some(place), is_directory, files, folders, parents: Vec::new() }
            }
            None => State::default(),
        };
        state.remove()
    }
}

/// What is left to remove after publishing: the old output, under a hidden name.
pub(super) struct Rest {
    pub place: PathBuf,
    pub files: Vec<PathBuf>,
    pub folders: Vec<PathBuf>,
}

impl State {
    /// Removes what was listed, and nothing else.
    fn remove(&mut self) -> io::Result<()> {
        let Some(place) = self.place.take() else { return Ok(()) };
        let gone = |path: &Path, done: io::Result<()>| match done {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done.map_err(named(path, "removed")),
        };
        if !self.is_directory {
            return gone(&place, fs::remove_file(&place));
        }
        let inside = |name: &PathBuf| place.join(name);
        let files = self.files.drain(..).map(|n| inside(&n)).map(|p| gone(&p, fs::remove_file(&p)));
        let mut done: io::Result<()> = files.fold(Ok(()), Result::and);
        let folders = self.folders.drain(..).rev().map(|n| inside(&n)).map(|p| gone(&p, fs::remove_dir(&p)));
        done = folders.fold(done, Result::and);
        done = done.and(gone(&place, fs::remove_dir(&place)));
        for parent in self.parents.drain(..).rev() {
            let _ = fs::remove_dir(parent);
        }
        done
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = self.state.get_mut().unwrap_or_else(PoisonError::into_inner).remove();
    }
}

/// Removes every temporary file and directory of this process. For a process that is about to end: what is being
/// written cannot go on, and nothing more can be begun.
pub fn remove_all() {
    let hidden = lock(&HIDDEN);
    for temporary in hidden.iter().filter_map(Weak::upgrade) {
        let _ = lock(&temporary.state).remove();
    }
    // Never released.
    std::mem::forget(hidden);
}
