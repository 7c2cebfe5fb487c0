//! Outputs appear whole or not at all: everything is written under a temporary name beside its
//! place, flushed to disk, and renamed.

use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Bytes that are gathered before they are written. Writers of much hand over more at once, which is not copied again.
const BUFFER: usize = 64 << 10;

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

/// A name beside `path` that no other process uses.
fn temporary(path: &Path) -> io::Result<PathBuf> {
    let name =
        path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name"))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".dvim-partial-{}", std::process::id()));
    Ok(path.with_file_name(hidden))
}

/// Says at once that a file may not be written: it exists, or its folder does not.
pub fn may_write(path: &Path, force: bool) -> io::Result<()> {
    if !force && path.exists() {
        return Err(exists(path));
    }
    match path.parent().filter(|p| !p.as_os_str().is_empty() && !p.is_dir()) {
        Some(folder) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("`{}` is not a folder that exists; make it first", folder.display()),
        )),
        None => Ok(()),
    }
}

/// Writes a file whole: the closure writes under a temporary name, which is renamed at the end.
/// An existing file is replaced only with `force`.
pub fn write_file(path: &Path, force: bool, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    may_write(path, force)?;
    let partial = temporary(path)?;
    let result = (|| {
        let mut out = BufWriter::with_capacity(BUFFER, File::create(&partial)?);
        write(&mut out)?;
        out.into_inner()?.sync_all()?;
        fs::rename(&partial, path)
    })();
    if result.is_err() {
        let _ = fs::remove_file(&partial);
    }
    result
}

fn exists(path: &Path) -> io::Error {
    io::Error::new(
        io::ErrorKind::AlreadyExists,
        format!("`{}` exists already; choose another name or add --force", path.display()),
    )
}

/// A directory that appears when it is complete. Dropped before [`Directory::publish`], it leaves nothing.
pub struct Directory {
    partial: PathBuf,
    target: PathBuf,
    published: bool,
    /// Files on their way to the disk: who writes goes on meanwhile.
    syncing: Syncing,
}

type Syncing = Arc<Mutex<Vec<JoinHandle<io::Result<()>>>>>;

impl Directory {
    /// Begins a directory that will appear at `target`. If `target` exists it must be an empty
    /// directory, or `may_replace` must say that it may be replaced.
    pub fn begin(target: &Path, may_replace: impl Fn(&Path) -> io::Result<bool>) -> io::Result<Directory> {
        let target = std::path::absolute(target)?;
        let is_empty = |p: &Path| fs::read_dir(p).map(|mut d| d.next().is_none());
        if target.symlink_metadata().is_ok() && !(target.is_dir() && is_empty(&target)?) && !may_replace(&target)? {
            return Err(exists(&target));
        }
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        let partial = temporary(&target)?;
        let _ = fs::remove_dir_all(&partial);
        fs::create_dir(&partial)?;
        Ok(Directory { partial, target, published: false, syncing: Syncing::default() })
    }

    /// Writes one file of it; gives the SHA-256 of its bytes.
    pub fn write(
        &self,
        name: &str,
        write: impl FnOnce(&mut Hashing<BufWriter<File>>) -> io::Result<()>,
    ) -> io::Result<String> {
        let mut out = Hashing::new(BufWriter::with_capacity(BUFFER, File::create(self.partial.join(name))?));
        write(&mut out)?;
        let (file, digest) = out.finish();
        self.sync(file.into_inner()?)?;
        Ok(hex(&digest))
    }

    /// Flushes a file to disk beside other work; [`Directory::publish`] waits for it.
    fn sync(&self, file: File) -> io::Result<()> {
        let file = Arc::new(file);
        let same = Arc::clone(&file);
        match thread::Builder::new().name("sync".into()).spawn(move || same.sync_all()) {
            Ok(thread) => self.syncing.lock().unwrap_or_else(PoisonError::into_inner).push(thread),
            Err(_) => file.sync_all()?,
        }
        Ok(())
    }

    /// A folder in it, which appears with it.
    pub fn folder(&self, name: &str) -> io::Result<Directory> {
        let partial = self.partial.join(name);
        fs::create_dir(&partial)?;
        // What is inside is published, or removed, with what it is in.
        let syncing = Arc::clone(&self.syncing);
        Ok(Directory { partial, target: self.target.join(name), published: true, syncing })
    }

    /// The size of one of its files.
    pub fn size(&self, name: &str) -> io::Result<u64> {
        Ok(fs::metadata(self.partial.join(name))?.len())
    }

    /// Makes it appear. A directory that it replaces is moved away first and removed last.
    pub fn publish(mut self) -> io::Result<()> {
        let syncing = std::mem::take(&mut *self.syncing.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in syncing {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a file could not be flushed")))?;
        }
        let old = self.target.symlink_metadata().is_ok().then(|| {
            let mut name = self.partial.clone().into_os_string();
            name.push("-old");
            PathBuf::from(name)
        });
        if let Some(old) = &old {
            fs::rename(&self.target, old)?;
        }
        if let Err(e) = fs::rename(&self.partial, &self.target) {
            if let Some(old) = &old {
                let _ = fs::rename(old, &self.target);
            }
            return Err(e);
        }
        self.published = true;
        if let Some(old) = &old {
            let _ = fs::remove_dir_all(old);
        }
        Ok(())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !self.published {
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}
