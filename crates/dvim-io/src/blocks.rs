//! A file of blocks, each with its SHA-256, so that a part of it can be read and trusted without the rest.
//!
//! ```text
//! body      the bytes that were written
//! digests   32 bytes for each block of a mebibyte of the body, the last may be shorter
//! root      32 bytes: SHA-256 of the length of the body and of the digests
//! ```
//!
//! Who knows the root knows every byte: a block that was read is compared with its digest, and the digests with the
//! root.

use crate::regular::open_regular;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Write};
use std::ops::{Deref, Range};
use std::path::Path;

/// Bytes of a block.
const BLOCK: usize = 1 << 20;
/// Bytes of a digest.
const DIGEST: usize = 32;

const DAMAGED: &str = "its checksum does not fit: it was cut short or changed after it was written";

fn root(n_bytes: u64, digests: &[u8]) -> [u8; DIGEST] {
    Sha256::new().chain_update(n_bytes.to_le_bytes()).chain_update(digests).finalize().into()
}

/// Writes a body, then its digests.
pub struct BlockWriter<W: Write> {
    out: W,
    block: Sha256,
    /// Bytes of the block that is not full.
    filled: usize,
    n_bytes: u64,
    digests: Vec<u8>,
}

impl<W: Write> BlockWriter<W> {
    /// Nothing is written yet.
    pub fn new(out: W) -> BlockWriter<W> {
        BlockWriter { out, block: Sha256::new(), filled: 0, n_bytes: 0, digests: Vec::new() }
    }

    /// Writes the digests and gives the root.
    pub fn finish(mut self) -> io::Result<[u8; DIGEST]> {
        if self.filled > 0 {
            self.digests.extend_from_slice(&self.block.finalize_reset());
        }
        let root = root(self.n_bytes, &self.digests);
        self.out.write_all(&self.digests)?;
        self.out.write_all(&root)?;
        Ok(root)
    }
}

impl<W: Write> Write for BlockWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(&bytes[..bytes.len().min(BLOCK - self.filled)])?;
        self.block.update(&bytes[..n]);
        self.n_bytes += n as u64;
        self.filled += n;
        if self.filled == BLOCK {
            self.digests.extend_from_slice(&self.block.finalize_reset());
            self.filled = 0;
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Bytes that were read, behind some of their first block.
#[derive(Debug, Default)]
pub struct Bytes {
    bytes: Vec<u8>,
    from: usize,
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.from..]
    }
}

/// A file of blocks that is open.
pub struct BlockFile {
    file: File,
    n_bytes: u64,
    digests: Vec<u8>,
    root: [u8; DIGEST],
}

impl BlockFile {
    /// Opens a regular file of at most `most` bytes, and looks at its digests.
    pub fn open(path: &Path, most: u64) -> io::Result<Result<BlockFile, String>> {
        let (file, all) = open_regular(path, most)?;
        let damaged = || DAMAGED.to_string();
        let Some(rest) = all.checked_sub(DIGEST as u64) else { return Ok(Err(damaged())) };
        let n_blocks = rest.div_ceil((BLOCK + DIGEST) as u64);
        let n_bytes = match rest.checked_sub(n_blocks * DIGEST as u64) {
            Some(n) if n.div_ceil(BLOCK as u64) == n_blocks => n,
            _ => return Ok(Err(damaged())),
        };
        let mut digests = vec![0; n_blocks as usize * DIGEST];
        let mut found = [0; DIGEST];
        read_at(&file, &mut digests, n_bytes)?;
        read_at(&file, &mut found, all - DIGEST as u64)?;
        if root(n_bytes, &digests) != found {
            return Ok(Err(damaged()));
        }
        Ok(Ok(BlockFile { file, n_bytes, digests, root: found }))
    }

    /// The root.
    pub fn root(&self) -> [u8; DIGEST] {
        self.root
    }

    /// Bytes of the body.
    pub fn len(&self) -> u64 {
        self.n_bytes
    }

    /// Whether the body is empty.
    pub fn is_empty(&self) -> bool {
        self.n_bytes == 0
    }

    /// Bytes of the body, each of whose blocks is as it was written.
    pub fn read(&self, range: Range<u64>) -> Result<Bytes, String> {
        if range.start > range.end || range.end > self.n_bytes {
            return Err("it ends too early".into());
        }
        if range.is_empty() {
            return Ok(Bytes::default());
        }
        let block = BLOCK as u64;
        let from = range.start / block * block;
        let to = range.end.next_multiple_of(block).min(self.n_bytes);
        let room = usize::try_from(to - from).map_err(|e| e.to_string())?;
        let mut bytes = vec![0; room];
        bytes.par_chunks_mut(BLOCK).enumerate().try_for_each(|(k, bytes)| {
            let at = from + (k * BLOCK) as u64;
            read_at(&self.file, bytes, at).map_err(|e| e.to_string())?;
            let digest = &self.digests[(at / block) as usize * DIGEST..][..DIGEST];
            if Sha256::digest(&*bytes)[..] != *digest {
                return Err(DAMAGED.to_string());
            }
            Ok(())
        })?;
        bytes.truncate((range.end - from) as usize);
        Ok(Bytes { bytes, from: (range.start - from) as usize })
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => {
                bytes = std::mem::take(&mut bytes).split_at_mut(n).1;
                at += n as u64;
            }
        }
    }
    Ok(())
}

/// A body as a file of blocks holds it, and its root in hexadecimal.
pub fn sealed(body: &[u8]) -> (Vec<u8>, String) {
    let mut out = Vec::new();
    let mut writer = BlockWriter::new(&mut out);
    let root = writer.write_all(body).and_then(|()| writer.finish()).expect("memory can be written to");
    (out, crate::atomic::hex(&root))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("blocks");
        std::fs::write(&path, sealed(body).0).expect("written");
        (folder, path)
    }

    #[test]
    fn any_part_of_a_body_comes_back() {
        for n in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 17] {
            let body: Vec<u8> = (0..n).map(|i| (i * 7 + i / 251) as u8).collect();
            let (_folder, path) = of(&body);
            let file = BlockFile::open(&path, u64::MAX).expect("opened").expect("in order");
            assert_eq!((file.len(), crate::atomic::hex(&file.root())), (n as u64, sealed(&body).1));
            for range in [0..n, 0..n.min(3), n / 2..n, n / 3..n / 2, n..n] {
                let found = file.read(range.start as u64..range.end as u64).expect("read");
                assert_eq!(*found, body[range]);
            }
            assert!(file.read(0..n as u64 + 1).is_err());
        }
    }

    #[test]
    fn damage_is_found_where_it_is() {
        let body: Vec<u8> = (0..2 * BLOCK + 5).map(|i| i as u8).collect();
        let (whole, _) = sealed(&body);
        let (_folder, path) = of(&body);
        let with = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("written");
            BlockFile::open(&path, u64::MAX).expect("opened")
        };
        let mut bad = whole.clone();
        bad[BLOCK + 3] ^= 1;
        let file = with(&bad).expect("its digests are in order");
        assert_eq!(file.read(0..BLOCK as u64).expect("the first block is whole").len(), BLOCK);
        assert!(file.read(0..BLOCK as u64 + 1).is_err());
        for at in [body.len(), whole.len() - 1] {
            let mut bad = whole.clone();
            bad[at] ^= 1;
            assert!(with(&bad).is_err());
        }
        for n in [0, 5, 31, 32, whole.len() - 1] {
            assert!(with(&whole[..n]).is_err());
        }
    }
}
