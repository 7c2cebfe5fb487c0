//! `manifest.json`: the files that dvim wrote into a directory that has no `summary.json` with a list of them all.
//!
//! A demonstration, a comparison and a study have one. A directory is replaced, and a file in it is written again, only
//! where the manifest lists it and its SHA-256 is still the same.

use crate::atomic::{Access, Directory, Listed, hex, refuse, some_of, write_file};
use crate::regular::{self, is_plain_name};
use dvim_report::record::VERSION;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The name of the file.
pub const MANIFEST: &str = "manifest.json";
/// Its schema.
const SCHEMA: &str = "dvim.manifest/1";
/// The largest manifest that is read.
const MOST_BYTES: u64 = 64 << 20;

/// The contents of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// `dvim.manifest/1`.
    pub schema: String,
    /// The version of dvim that wrote it.
    pub version: String,
    /// The command that wrote the directory: `demo`, `compare` or `study`.
    pub command: String,
    /// SHA-256 of the other files.
    pub files: BTreeMap<String, String>,
    /// SHA-256 of files that are about to be written again: after a crash either digest may be the right one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pending: BTreeMap<String, String>,
}

impl Manifest {
    /// A manifest of files with their SHA-256.
    pub fn new(command: &str, files: BTreeMap<String, String>) -> Manifest {
        Manifest {
            schema: SCHEMA.into(),
            version: VERSION.into(),
            command: command.into(),
            files,
            pending: BTreeMap::new(),
        }
    }

    /// The manifest of a directory that this command wrote, if there is one.
    pub fn read(directory: &Path, command: &str) -> Option<Manifest> {
        let text = regular::read_text(&directory.join(MANIFEST), MOST_BYTES).ok()?;
        let found: Manifest = serde_json::from_str(&text).ok()?;
        (found.schema == SCHEMA && found.command == command).then_some(found)
    }

    /// The files that it lists, and itself.
    pub(crate) fn listed(self) -> Listed {
        let files = self.files.into_iter().map(|(name, digest)| (name, Some(digest)));
        files.chain([(MANIFEST.to_string(), None)]).collect()
    }

    /// As text.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("a record of texts") + "\n"
    }
}

/// Begins a directory with a manifest. One that the same command wrote is replaced where `force` says so.
pub fn begin(target: &Path, force: bool, command: &str, inputs: &[&Path]) -> io::Result<Directory> {
    Directory::begin(target, inputs, |existing| match Manifest::read(existing, command) {
        _ if !force => Ok(None),
        Some(manifest) => Ok(Some(manifest.listed())),
        None => Err(not_ours(target, &format!("a directory that `dvim {command}` wrote"))),
    })
}

/// Writes the manifest of everything that was written so far, and makes the directory appear.
pub fn publish(directory: Directory, command: &str) -> io::Result<()> {
    let manifest = Manifest::new(command, directory.digests());
    directory.write(MANIFEST, |out| out.write_all(manifest.text().as_bytes()))?;
    directory.publish()
}

/// A directory to which a command adds files from time to time.
pub struct Growing {
    directory: PathBuf,
    manifest: Manifest,
}

impl Growing {
    /// Opens such a directory. Refuses, naming them, files that were changed after dvim wrote them, and files of these
    /// `names` that it did not write.
    pub fn open(directory: &Path, command: &str, names: &[&str]) -> io::Result<Growing> {
        let manifest = Manifest::read(directory, command);
        if manifest.is_none() && directory.join(MANIFEST).symlink_metadata().is_ok() {
            return Err(not_ours(&directory.join(MANIFEST), &format!("a manifest that `dvim {command}` wrote")));
        }
        let manifest = manifest.unwrap_or_else(|| Manifest::new(command, BTreeMap::new()));
        let growing = Growing { directory: directory.to_path_buf(), manifest };
        let listed = growing.manifest.files.keys().map(String::as_str);
        growing.refuse_others(listed.chain(names.iter().copied()))?;
        Ok(growing)
    }

    /// Refuses files that are there and are not as this command wrote them.
    fn refuse_others<'a>(&self, names: impl Iterator<Item = &'a str>) -> io::Result<()> {
        let is_other = |name: &&str| {
            let path = self.directory.join(name);
            let known = [&self.manifest.files, &self.manifest.pending];
            let is_known = |digest: &String| known.iter().any(|list| list.get(*name) == Some(digest));
            is_plain_name(name)
                && path.symlink_metadata().is_ok()
                && !regular::hash(&path, MOST_BYTES).is_ok_and(|digest| is_known(&digest))
        };
        let others: BTreeSet<&str> = names.filter(is_other).collect();
        if others.is_empty() {
            return Ok(());
        }
        let others: Vec<String> = others.into_iter().map(String::from).collect();
        Err(refuse(
            format!(
                "`{}` holds files that dvim did not write, or that were changed: {}",
                self.directory.display(),
                some_of(&others)
            ),
            "only files that dvim wrote, unchanged, are written again",
            "move those files elsewhere, or choose another directory",
        ))
    }

    /// Writes files, new or again; each appears whole.
    pub fn write(mut self, files: &[(String, Vec<u8>)]) -> io::Result<()> {
        self.refuse_others(files.iter().map(|(name, _)| name.as_str()))?;
        let digest = |bytes: &[u8]| hex(&Sha256::digest(bytes));
        let new: BTreeMap<String, String> = files.iter().map(|(name, bytes)| (name.clone(), digest(bytes))).collect();
        self.manifest.pending = new.clone();
        self.write_one(MANIFEST, self.manifest.text().as_bytes())?;
        for (name, bytes) in files {
            self.write_one(name, bytes)?;
        }
        self.manifest.pending.clear();
        self.manifest.version = VERSION.into();
        self.manifest.files.extend(new);
        self.write_one(MANIFEST, self.manifest.text().as_bytes())
    }

    fn write_one(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        write_file(&self.directory.join(name), true, Access::Usual, &[], |out| out.write_all(bytes))
    }
}

/// The refusal of a directory that is not of the kind that would be replaced.
pub(crate) fn not_ours(target: &Path, kind: &str) -> io::Error {
    let (found, rule) = (format!("`{}` is not {kind}", target.display()), format!("only {kind} is replaced"));
    refuse(found, rule, "choose another name")
}
