//! A file that grows by whole lines, for work that may be interrupted and taken up again.
//!
//! The first line says under which settings the others were made. A line counts when its end is there: what a crash
//! left of a last line is cut off when the file is opened again, and its work is done anew. While a journal is open no
//! other process can open it.

use crate::atomic::named;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// An open journal, ready for further lines.
pub struct Journal {
    file: File,
    path: PathBuf,
}

/// Why a journal cannot be opened.
#[derive(Debug)]
pub enum JournalError {
    /// It was begun with other settings.
    OtherSettings {
        /// The file.
        path: PathBuf,
        /// Its first line.
        found: String,
    },
    /// Another process has it open.
    InUse(PathBuf),
    /// The file is not text, or the system refused.
    Io(PathBuf, io::Error),
}

/// Locks a file for this process; `false` where another one has it.
#[cfg(not(target_family = "wasm"))]
fn lock(file: &File) -> io::Result<bool> {
    match fs4::FileExt::try_lock(file) {
        Ok(()) => Ok(true),
        Err(fs4::TryLockError::WouldBlock) => Ok(false),
        Err(fs4::TryLockError::Error(e)) => Err(e),
    }
}

/// There are no files in a browser.
#[cfg(target_family = "wasm")]
fn lock(_: &File) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

impl Journal {
    /// Opens the journal at `path`, or begins it, in a folder that is made where there is none, with `settings` (one
    /// line). Gives the lines that are there, without the first.
    pub fn open(path: &Path, settings: &str) -> Result<(Journal, Vec<String>), JournalError> {
        let failed = |e: io::Error| JournalError::Io(path.to_path_buf(), e);
        let folder = path.parent().filter(|f| !f.as_os_str().is_empty());
        folder.map_or(Ok(()), |f| std::fs::create_dir_all(f).map_err(named(f, "created"))).map_err(failed)?;
        let mut file = open_own(path).map_err(failed)?;
        if !lock(&file).map_err(failed)? {
            return Err(JournalError::InUse(path.to_path_buf()));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let text =
            std::str::from_utf8(&bytes[..whole]).map_err(|e| failed(io::Error::new(io::ErrorKind::InvalidData, e)))?;
        let mut lines = text.lines().map(String::from);
        let found = lines.next();
        if let Some(found) = found.as_ref().filter(|f| *f != settings) {
            return Err(JournalError::OtherSettings { path: path.to_path_buf(), found: found.clone() });
        }
        let lines: Vec<String> = lines.collect();
        // Before the end of the first line only a piece of our own settings can be there.
        let piece = &bytes[whole..];
        if found.is_none() && !settings.as_bytes().starts_with(piece) {
            let found = String::from_utf8_lossy(&piece[..piece.len().min(80)]).into_owned();
            return Err(JournalError::OtherSettings { path: path.to_path_buf(), found });
        }
        file.set_len(whole as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut journal = Journal { file, path: path.to_path_buf() };
        if found.is_none() {
            journal.append(settings).map_err(failed)?;
        }
        Ok((journal, lines))
    }

    /// Adds a line, to the disk.
    pub fn append(&mut self, line: &str) -> io::Result<()> {
        debug_assert!(!line.contains('\n'), "one line");
        let written = self.file.write_all(format!("{line}\n").as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(named(&self.path, "written"))
    }
}

/// Opens or creates a regular file; a link, a pipe or a device is refused.
fn open_own(path: &Path) -> io::Result<File> {
    match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            OpenOptions::new().read(true).write(true).create_new(true).open(path)
        }
        Err(e) => Err(e),
        Ok(found) if !found.is_file() => Err(io::Error::new(io::ErrorKind::Unsupported, "it is not a regular file")),
        Ok(_) => OpenOptions::new().read(true).write(true).open(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_line_is_forgotten_and_other_settings_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl");
        let (mut journal, lines) = Journal::open(&path, "settings 1").unwrap();
        assert!(lines.is_empty());
        journal.append("a").unwrap();
        journal.append("b").unwrap();
        assert!(matches!(Journal::open(&path, "settings 1"), Err(JournalError::InUse(_))));
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], b"half of a li"].concat()).unwrap();
        let (mut journal, lines) = Journal::open(&path, "settings 1").unwrap();
        assert_eq!(lines, ["a", "b"]);
        journal.append("c").unwrap();
        drop(journal);
        let (_, lines) = Journal::open(&path, "settings 1").unwrap();
        assert_eq!(lines, ["a", "b", "c"]);
        assert!(matches!(Journal::open(&path, "settings 2"), Err(JournalError::OtherSettings { .. })));
        // Cut within the first line: nothing is known, so it begins anew.
        std::fs::write(&path, b"setting").unwrap();
        let (_, lines) = Journal::open(&path, "settings 2").unwrap();
        assert!(lines.is_empty());
        // A single line of something else is not ours to cut off.
        std::fs::write(&path, b"{\"my\": \"results\"}").unwrap();
        assert!(matches!(Journal::open(&path, "settings 2"), Err(JournalError::OtherSettings { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"my\": \"results\"}");
    }
}
