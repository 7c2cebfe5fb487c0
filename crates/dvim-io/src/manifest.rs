//! `manifest.json`: the files that dvim wrote into a directory that has no `summary.json` with a list of them all.
//!
//! A demonstration, a comparison and a study have one. A directory is replaced, and a file in it is written again, only
//! where the manifest lists it and its SHA-256 is still the same.

use crate::atomic::{Directory, Listed, refuse};
use dvim_report::record::VERSION;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// The name of the file.
pub const MANIFEST: &str = "manifest.json";
/// Its schema.
const SCHEMA: &str = "dvim.manifest/1";

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
}

impl Manifest {
    /// A manifest of files with their SHA-256.
    pub fn new(command: &str, files: BTreeMap<String, String>) -> Manifest {
        Manifest { schema: SCHEMA.into(), version: VERSION.into(), command: command.into(), files }
    }

    /// The manifest of a directory that this command wrote, if there is one.
    pub fn read(directory: &Path, command: &str) -> Option<Manifest> {
        let text = fs::read_to_string(directory.join(MANIFEST)).ok()?;
        let found: Manifest = serde_json::from_str(&text).ok()?;
        (found.schema == SCHEMA && found.command == command).then_some(found)
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
        Some(manifest) => {
            let mut listed: Listed = manifest.files.into_iter().map(|(name, digest)| (name, Some(digest))).collect();
            listed.insert(MANIFEST.into(), None);
            Ok(Some(listed))
        }
        None => Err(not_ours(target, &format!("a directory that `dvim {command}` wrote"))),
    })
}

/// Writes the manifest of everything that was written so far, and makes the directory appear.
pub fn publish(directory: Directory, command: &str) -> io::Result<()> {
    let manifest = Manifest::new(command, directory.digests());
    directory.write(MANIFEST, |out| out.write_all(manifest.text().as_bytes()))?;
    directory.publish()
}

/// The refusal of a directory that is not of the kind that would be replaced.
pub(crate) fn not_ours(target: &Path, kind: &str) -> io::Error {
    let (found, rule) = (format!("`{}` is not {kind}", target.display()), format!("only {kind} is replaced"));
    refuse(found, rule, "choose another name")
}
