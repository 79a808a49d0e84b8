//! Finds and removes what no run needs. Records of the journal and the manifests are never removed.

use super::accepted;
use super::disk::{Disk, DiskError};
use super::id::made_at;
use super::layout::{self, Layout, safe_name};
use super::quarantine::{self, weigh};
use super::read;
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use milepost_core::base::reserved::checkpoint_number;
use std::collections::BTreeSet;
use std::path::Path;

/// A file or folder that can be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Garbage {
    /// The path in the workspace.
    pub path: RelPath,
    pub kind: GarbageKind,
    /// The number of files in it.
    pub files: u64,
    /// Their size in bytes.
    pub size: u64,
    /// The files in it that can be; none: all of it.
    pub(crate) parts: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GarbageKind {
    /// The scratch folder of a run that has ended.
    Scratch,
    /// A folder of quarantine.
    Quarantine,
    /// The bytes of calls that no recorded output was made from.
    Calls,
    /// Logs of programs in runs that no record names.
    Logs,
    /// A copy of accepted content that no record mentions any more.
    Accepted,
    /// A file of Milepost's own that was incomplete when the process crashed.
    Leftover,
}

impl GarbageKind {
    /// Returns the word for messages and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Scratch => "scratch",
            Self::Quarantine => "quarantine",
            Self::Calls => "calls",
            Self::Logs => "logs",
            Self::Accepted => "accepted",
            Self::Leftover => "leftover",
        }
    }
}

/// Finds what can be removed: scratch folders of runs other than `live`, quarantine of runs that started before
/// `quarantine_before` (`None`: no quarantine), and leftover files. The caller holds the lock and has recovered published files.
pub fn find(
    layout: &Layout,
    live: &BTreeSet<String>,
    quarantine_before: Option<Timestamp>,
) -> Result<Vec<Garbage>, DiskError> {
    let mut found = Vec::new();
    let live: BTreeSet<String> = live.iter().map(|run| safe_name(run)).collect();
    for name in names(&layout.scratch())? {
        if !live.contains(&name) {
            let path = layout::scratch().with(&RelPath::of_parts([name.as_str()]));
            found.push(weighed(layout, path, GarbageKind::Scratch));
        }
    }
    if let Some(before) = quarantine_before {
        let is_link = layout.quarantine().is_symlink();
        let entries = if is_link {
            Vec::new()
        } else {
            quarantine::list(layout)?
        };
        for entry in entries {
            if entry.since.is_some_and(|at| at < before) {
                found.push(Garbage {
                    path: entry.folder,
                    kind: GarbageKind::Quarantine,
                    files: entry.files,
                    size: entry.size,
                    parts: Vec::new(),
                });
            }
        }
    }
    leftovers(layout, &mut found)?;
    found.sort_by(|a, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
    Ok(found)
}

/// Removes a file or folder.
pub fn remove(disk: &Disk, layout: &Layout, garbage: &Garbage) -> Result<(), DiskError> {
    let path = layout.at(&garbage.path);
    let mut parts = garbage.parts.iter().map(|name| path.join(name));
    match garbage.kind {
        GarbageKind::Leftover | GarbageKind::Accepted => disk.remove_file(&path),
        _ if garbage.parts.is_empty() => disk.remove_dir_all(&path),
        _ => parts.try_for_each(|part| disk.remove_file(&part)),
    }
}

/// Files that are written beside their place, where Milepost's own files lie.
fn leftovers(layout: &Layout, found: &mut Vec<Garbage>) -> Result<(), DiskError> {
    let own = RelPath::of_parts([layout::OWN]);
    let journal = RelPath::of_parts([layout::OWN, "journal"]);
    let mut folders = vec![None, Some(own), Some(journal)];
    for two in names(&layout.at(&layout::accepted()))? {
        folders.push(Some(
            layout::accepted().with(&RelPath::of_parts([two.as_str()])),
        ));
    }
    for stage in names(&layout.manifests())? {
        folders.push(Some(layout::manifest(&stage)));
    }
    for folder in folders {
        let path = folder
            .as_ref()
            .map_or_else(|| layout.root().to_owned(), |folder| layout.at(folder));
        for name in names(&path)? {
            let place = name
                .strip_prefix('.')
                .and_then(|name| name.strip_suffix(".tmp"));
            let Some(place) = place.filter(|_| path.join(&name).is_file()) else {
                continue;
            };
            // In the workspace's own folder, only what a checkpoint's name says is ours.
            if folder.is_none() && checkpoint_number(place).is_none() {
                continue;
            }
            let name = RelPath::of_parts([name.as_str()]);
            let path = folder.as_ref().map_or(name.clone(), |f| f.with(&name));
            found.push(weighed(layout, path, GarbageKind::Leftover));
        }
    }
    Ok(())
}

fn weighed(layout: &Layout, path: RelPath, kind: GarbageKind) -> Garbage {
    let (files, size) = weigh(&layout.at(&path));
    Garbage {
        path,
        kind,
        files,
        size,
        parts: Vec::new(),
    }
}

/// Returns the requests and answers of runs that started before a time, except those of calls in use. The records of the calls,
/// with cost and text, stay.
pub fn calls(
    layout: &Layout,
    before: Timestamp,
    in_use: &dyn Fn(&str, u64) -> bool,
) -> Result<Vec<Garbage>, DiskError> {
    let number = |name: &str| name.split('.').next()?.parse::<u64>().ok();
    let goes = |run: &str, name: &str| number(name).is_some_and(|number| !in_use(run, number));
    of_runs(layout, GarbageKind::Calls, before, &goes)
}

/// Returns what programs printed in runs that started before a time, except in attempts that records name. `is_named` gets a run and
/// the name of a batch in the names of its logs.
pub fn logs(
    layout: &Layout,
    before: Timestamp,
    is_named: &dyn Fn(&str, &str) -> bool,
) -> Result<Vec<Garbage>, DiskError> {
    let stem = |name: &str| Some(name.strip_suffix(".log")?.rsplit_once('-')?.0.to_owned());
    let goes = |run: &str, name: &str| stem(name).is_none_or(|stem| !is_named(run, &stem));
    of_runs(layout, GarbageKind::Logs, before, &goes)
}

/// Returns the files that go, in the folders of runs that started before a time.
fn of_runs(
    layout: &Layout,
    kind: GarbageKind,
    before: Timestamp,
    goes: &dyn Fn(&str, &str) -> bool,
) -> Result<Vec<Garbage>, DiskError> {
    let mut found = Vec::new();
    let all = layout.at(&RelPath::of_parts([layout::OWN, kind.word()]));
    for run in names(&all)? {
        let folder = all.join(&run);
        let is_folder = folder.symlink_metadata().is_ok_and(|there| there.is_dir());
        if !is_folder || made_at(&run).is_none_or(|at| at >= before) {
            continue;
        }
        let all = names(&folder)?;
        let parts: Vec<String> = all
            .iter()
            .filter(|name| goes(&run, name))
            .cloned()
            .collect();
        if parts.is_empty() {
            continue;
        }
        let path = RelPath::of_parts([layout::OWN, kind.word(), run.as_str()]);
        let mut garbage = weighed(layout, path, kind);
        if parts.len() < all.len() {
            garbage.files = parts.len() as u64;
            garbage.size = parts.iter().map(|name| weigh(&folder.join(name)).1).sum();
            garbage.parts = parts;
        }
        found.push(garbage);
    }
    Ok(found)
}

/// Returns the copies of accepted content that are older than `before` and whose digest is not among `in_use`.
///
/// # Errors
/// Fails if the folder cannot be read.
pub fn accepted(
    layout: &Layout,
    before: Timestamp,
    in_use: &BTreeSet<Digest>,
) -> Result<Vec<Garbage>, DiskError> {
    if layout.at(&layout::accepted()).is_symlink() {
        return Ok(Vec::new());
    }
    let unused = accepted::unused(layout, before, in_use)?.into_iter();
    let garbage = unused.map(|copy| Garbage {
        path: copy.path,
        kind: GarbageKind::Accepted,
        files: 1,
        size: copy.size,
        parts: Vec::new(),
    });
    Ok(garbage.collect())
}

/// Returns the names in a folder that can be recorded; none if there is no folder, or a link, whose target belongs to others.
fn names(folder: &Path) -> Result<Vec<String>, DiskError> {
    if folder.is_symlink() || !folder.is_dir() {
        return Ok(Vec::new());
    }
    read::names(folder).map_err(|cause| DiskError::new("read", folder, cause))
}
