//! Hidden files that a process left when it was killed: how they are found, and how `dvim clean` removes them.

use crate::atomic::{Hidden, Listed, hidden_in, remove_hidden_file, remove_listed, restore};
use crate::batch::listed_batch;
use crate::manifest::Manifest;
use crate::run::listed_run;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What `dvim clean` did with a hidden file or directory.
#[derive(Debug, PartialEq)]
pub enum Cleaned {
    /// It was removed.
    Removed(PathBuf),
    /// It was an output that was being replaced, and is back under its name.
    Restored(PathBuf, PathBuf),
    /// It was left alone, for a reason.
    Kept(PathBuf, String),
}

/// Hidden files and directories in a folder that dvim made for this user in a process that is gone.
pub fn leftovers(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let all = hidden_in(folder)?;
    Ok(all.into_iter().filter(|h| h.is_own && !h.is_in_use()).map(|h| h.path).collect())
}

/// Removes what processes that are gone left in a folder: hidden files of dvim's names, made by this user. From a
/// directory only files that dvim wrote are removed.
pub fn clean(folder: &Path) -> io::Result<Vec<Cleaned>> {
    Ok(hidden_in(folder)?.into_iter().map(clean_one).collect())
}

fn clean_one(hidden: Hidden) -> Cleaned {
    let path = hidden.path.clone();
    if !hidden.is_own {
        return Cleaned::Kept(path, "another user made it".into());
    }
    if hidden.is_in_use() {
        return Cleaned::Kept(path, "a running dvim uses it".into());
    }
    // An output that was moved away and not yet replaced when the process ended.
    if hidden.is_old && fs::symlink_metadata(&hidden.target).is_err() {
        return match restore(&hidden) {
            Ok(()) => Cleaned::Restored(path, hidden.target),
            Err(e) => Cleaned::Kept(path, e.to_string()),
        };
    }
    let removed = match list_of(&path) {
        _ if !hidden.is_directory => remove_hidden_file(&hidden),
        Some(listed) => remove_listed(&path, &listed),
        None => remove_listed(&path, &usual_names(&path)),
    };
    match removed {
        Ok(()) => Cleaned::Removed(path),
        Err(e) => Cleaned::Kept(path, e.to_string().lines().next().unwrap_or_default().to_string()),
    }
}

/// The list of a directory that was written to its end.
fn list_of(directory: &Path) -> Option<Listed> {
    let manifest = || ["demo", "compare"].iter().find_map(|c| Manifest::read(directory, c)).map(Manifest::listed);
    manifest().or_else(|| listed_batch(directory)).or_else(|| listed_run(directory))
}

/// Files that dvim writes into directories.
const USUAL: [&str; 18] = [
    "arms.csv",
    "averages.csv",
    "cohort.csv",
    "correlations.csv",
    "cure-correlations.svg",
    "cure-violins.svg",
    "effects.csv",
    "effects.json",
    "effects.parquet",
    // Cut off, it lists nothing.
    "manifest.json",
    "report.html",
    "run.dvim",
    "summary.csv",
    "summary.json",
    "time-correlations.svg",
    "time-violins.svg",
    "truth.csv",
    "weights.csv",
];

/// The names that a directory which was not written to its end may hold: those that dvim writes, in it and in its
/// folders.
fn usual_names(directory: &Path) -> Listed {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let folders = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
    let prefixes = folders.filter_map(|e| e.file_name().into_string().ok()).map(|name| format!("{name}/"));
    let prefixes: Vec<String> = prefixes.chain([String::new()]).collect();
    prefixes.iter().flat_map(|p| USUAL.iter().map(move |name| (format!("{p}{name}"), None))).collect()
}
