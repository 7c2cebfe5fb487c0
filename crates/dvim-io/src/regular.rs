//! Files of a directory that may come from a stranger: regular files of bounded size, by plain names.

use crate::atomic::{Hashing, hex, named};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Component, Path};

/// Whether a name is that of a file directly in a directory: no folder, no `..`, nothing absolute, not hidden.
pub fn is_plain_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let only = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    only && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

/// Opens a regular file of at most `most` bytes and gives its size. A link is not followed; a pipe or a device is not
/// waited for.
pub fn open_regular(path: &Path, most: u64) -> io::Result<(File, u64)> {
    let no_file = |what: &str| {
        let words = format!("`{}` is {what}", path.display());
        io::Error::new(io::ErrorKind::InvalidData, words)
    };
    if !fs::symlink_metadata(path).map_err(named(path, "opened"))?.is_file() {
        return Err(no_file("not a regular file"));
    }
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    }
    let file = options.open(path).map_err(named(path, "opened"))?;
    let found = file.metadata().map_err(named(path, "looked at"))?;
    if !found.is_file() {
        return Err(no_file("not a regular file"));
    }
    if found.len() > most {
        return Err(no_file(&format!("{} bytes long; at most {most} are read", found.len())));
    }
    Ok((file, found.len()))
}

/// Reads a regular file of at most `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, n_bytes) = open_regular(path, most)?;
    let mut bytes = Vec::new();
    let room = usize::try_from(n_bytes).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(room).map_err(|e| named(path, "read")(io::Error::other(e)))?;
    file.take(n_bytes).read_to_end(&mut bytes).map_err(named(path, "read"))?;
    Ok(bytes)
}

/// Reads a regular file of at most `most` bytes as UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|_| named(path, "read")(io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8")))
}

/// SHA-256 of a regular file of at most `most` bytes.
pub fn hash(path: &Path, most: u64) -> io::Result<String> {
    let (file, n_bytes) = open_regular(path, most)?;
    let mut out = Hashing::new(io::sink());
    io::copy(&mut file.take(n_bytes), &mut out).map_err(named(path, "read"))?;
    Ok(hex(&out.finish().1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_names_of_files_in_a_directory() {
        for name in ["effects.csv", "a b", "ß.json"] {
            assert!(is_plain_name(name), "{name}");
        }
        for name in ["", ".", "..", "/dev/zero", "../effects.csv", "a/b", "a/", "./a", "a\\b", "a\0b", ".hidden"] {
            assert!(!is_plain_name(name), "{name}");
        }
    }
}
