//! Files of a batch that runs set aside in quarantine: partial outputs of a failure, and earlier versions of its outputs.

use crate::ops::inspect::elements::{FieldChange, differing};
use crate::ops::inspect::live::Live;
use crate::ops::project::error::OpsError;
use jiff::Timestamp;
use milepost_core::base::path::RelPath;
use milepost_store::store::id::made_at;
use milepost_store::store::layout::{Layout, OWN};
use milepost_store::store::quarantine::WHY;
use milepost_store::store::read;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::io::Read as _;
use std::path::Path;

/// The most folders of quarantine that are searched: the newest.
const FOLDERS: usize = 2_000;

/// The most files of a failure that are listed, and the most outputs whose earlier versions are searched.
const FILES: usize = 50;

/// The largest JSON documents that are compared, in bytes.
const COMPARED: u64 = 1 << 20;

/// The most differences that are listed of a file.
const CHANGES: usize = 50;

/// How much of a reason is read, in bytes.
const REASON: u64 = 4_096;

/// A file in quarantine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetAsideFile {
    /// The path in the workspace.
    pub path: String,
    /// The path that it had, if it is an output of the batch.
    pub output: Option<String>,
    /// The start of the run that set it aside, in UTC.
    pub when: Option<Timestamp>,
    /// The beginning of the reason.
    pub why: Option<String>,
    /// How the present output differs from it; `None` if they cannot be compared.
    pub changes: Option<Vec<FieldChange>>,
    /// The number of differences that `changes` leaves out.
    pub more: u64,
}

impl Live {
    /// Returns files in quarantine: those in `folder`, which a failure left, and the newest earlier version of each output.
    ///
    /// # Errors
    /// When the declarations are wrong, or the workspace cannot be read.
    pub fn set_aside(
        &self,
        outputs: &[&str],
        folder: Option<&str>,
    ) -> Result<Vec<SetAsideFile>, OpsError> {
        let layout = self.with_state(|opened, _, _| opened.workspace.layout.clone())?;
        let quarantine = RelPath::of_parts([OWN, "quarantine"]);
        let mut found = Vec::new();
        let of_failure = folder.and_then(|folder| RelPath::parse(folder).ok());
        if let Some(folder) =
            of_failure.filter(|folder| folder.as_str().starts_with(quarantine.as_str()))
        {
            let files = walkdir::WalkDir::new(layout.at(&folder)).sort_by_file_name();
            let files = files.into_iter().flatten();
            for entry in files
                .filter(|entry| entry.file_type().is_file())
                .take(FILES)
            {
                let inside = entry.path().strip_prefix(layout.at(&folder)).ok();
                let Some(inside) = inside.and_then(Path::to_str) else {
                    continue;
                };
                let output = outputs.iter().find(|output| **output == inside);
                found.extend(file(&layout, &folder, inside, output.copied()));
            }
        }
        let folders = newest_folders(&layout, &quarantine);
        let of_failure: HashSet<String> =
            found.iter().filter_map(|one| one.output.clone()).collect();
        let wanted = outputs.iter().copied();
        let wanted = wanted.filter(|output| !of_failure.contains(*output));
        for (folder, output) in newest_versions(&layout, &folders, wanted.take(FILES)) {
            found.extend(file(&layout, folder, output, Some(output)));
        }
        Ok(found)
    }
}

/// Returns the first folder that has a file at the path of each output. Folders without the folder of an output cost one look.
fn newest_versions<'a, 'b>(
    layout: &Layout,
    folders: &'a [RelPath],
    outputs: impl Iterator<Item = &'b str>,
) -> Vec<(&'a RelPath, &'b str)> {
    let mut wanted: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for output in outputs {
        let parent = output.rsplit_once('/').map_or("", |(parent, _)| parent);
        wanted.entry(parent).or_default().push(output);
    }
    let mut found = Vec::new();
    for folder in folders {
        let root = layout.at(folder);
        for (parent, outputs) in &mut wanted {
            if !std::fs::symlink_metadata(root.join(parent)).is_ok_and(|there| there.is_dir()) {
                continue;
            }
            outputs.retain(|output| {
                let there = std::fs::symlink_metadata(root.join(output));
                let is_file = there.is_ok_and(|there| there.is_file());
                if is_file {
                    found.push((folder, *output));
                }
                !is_file
            });
        }
        wanted.retain(|_, outputs| !outputs.is_empty());
        if wanted.is_empty() {
            break;
        }
    }
    found
}

/// Returns the folders of quarantine, the newest first.
fn newest_folders(layout: &Layout, quarantine: &RelPath) -> Vec<RelPath> {
    let root = layout.at(quarantine);
    let names = read::names(&root).unwrap_or_default();
    let is_folder = |name: &&String| {
        let found = root.join(name).symlink_metadata();
        found.is_ok_and(|found| found.is_dir())
    };
    let folders = names.iter().rev().filter(is_folder).take(FOLDERS);
    folders
        .map(|name| quarantine.with(&RelPath::of_parts([name.as_str()])))
        .collect()
}

/// Describes a file in a folder of quarantine.
fn file(
    layout: &Layout,
    folder: &RelPath,
    inside: &str,
    output: Option<&str>,
) -> Option<SetAsideFile> {
    let path = RelPath::parse(&format!("{folder}/{inside}")).ok()?;
    let name = folder.as_str().rsplit('/').next().unwrap_or_default();
    let run = name.split('-').next().unwrap_or_default();
    let present = output.and_then(|output| RelPath::parse(output).ok());
    let changes = present.and_then(|present| {
        let (old, new) = (small(&layout.at(&path))?, small(&layout.at(&present))?);
        let mut changes = Vec::new();
        differing("", Some(&old), Some(&new), &mut changes);
        Some(changes)
    });
    let more = changes
        .as_ref()
        .map_or(0, |changes| changes.len().saturating_sub(CHANGES));
    let changes = changes.map(|mut changes| {
        changes.truncate(CHANGES);
        changes
    });
    Some(SetAsideFile {
        path: path.to_string(),
        output: output.map(str::to_owned),
        when: made_at(run),
        why: reason(&layout.at(folder).join(WHY)),
        changes,
        more: more as u64,
    })
}

fn small(place: &Path) -> Option<Value> {
    let open = read::open(place).ok()?;
    let is_small = open.metadata().is_ok_and(|found| found.len() <= COMPARED);
    is_small.then(|| serde_json::from_reader(std::io::BufReader::new(open)).ok())?
}

fn reason(place: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let open = read::open(place).ok()?;
    open.take(REASON).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let first = text.lines().next().unwrap_or_default();
    (!first.is_empty()).then(|| first.to_owned())
}
