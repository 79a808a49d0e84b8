//! Removes what no run needs: old quarantine, scratch of ended runs, leftover files, and answers and calls that nothing uses. Joins small
//! files of the journal.

use crate::ops::change::calls_in_use::CallsInUse;
use crate::ops::project::error::OpsError;
use crate::ops::project::lock::lock_and_read;
use crate::ops::project::open::open_recorded;
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::Snapshot;
use crate::run::notice::Repair;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::{RelPath, Root};
use milepost_core::base::words::count;
use milepost_core::model::state::State;
use milepost_store::store::answers::compact::{RemovableAnswers, look};
use milepost_store::store::disk::{Disk, DiskError};
use milepost_store::store::gc::{Garbage, accepted, calls, find, logs, remove};
use milepost_store::store::journal::join_segments;
use milepost_store::store::layout::{self, Layout};
use milepost_store::store::lock::SharedLock;
use milepost_store::store::quarantine::weigh;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// The age of files to remove, and whether to simulate.
#[derive(Debug, Clone, Default)]
pub struct GcOptions {
    /// The age above which quarantine, and unused answers and calls, are removed; `None` keeps them.
    pub older_than: Option<Duration>,
    /// Return what would be removed, and remove nothing.
    pub dry_run: bool,
}

/// The removed files, or those that a dry run would remove.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Collected {
    /// The removed items.
    pub removed: Vec<Removed>,
    /// The size of all items, in bytes.
    pub bytes: u64,
    /// Why something was kept although parts of it could be removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// True if nothing was removed.
    pub dry_run: bool,
}

/// A removed item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Removed {
    /// `scratch`, `quarantine`, `calls`, `logs`, `accepted`, `leftover`, `answers`, or `journal`: files whose records another one has.
    pub kind: String,
    /// The path in the workspace; with the prefix `project:`, in the project.
    pub path: String,
    /// The number of files.
    pub files: u64,
    /// The size in bytes.
    pub bytes: u64,
}

impl Collected {
    /// Removes garbage, or only counts it without a disk. What cannot be removed is left.
    fn remove(&mut self, disk: Option<&Disk>, layout: &Layout, garbage: &[Garbage]) {
        for one in garbage {
            if let Some(Err(error)) = disk.map(|disk| remove(disk, layout, one)) {
                self.left.push(format!("{}: {error}", one.path));
                continue;
            }
            self.bytes += one.size;
            self.removed.push(Removed {
                kind: one.kind.word().to_owned(),
                path: one.path.to_string(),
                files: one.files,
                bytes: one.size,
            });
        }
    }

    /// Joins small files of the journal, or only counts them without a disk.
    fn join_journal(&mut self, disk: Option<&Disk>, layout: &Layout) {
        let path = layout::journal();
        if layout.at(&path).is_symlink() {
            return;
        }
        match join_segments(layout, disk) {
            Ok(Some(0)) => {}
            Ok(Some(files)) => self.removed.push(Removed {
                kind: "journal".to_owned(),
                path: path.to_string(),
                files,
                bytes: 0,
            }),
            Ok(None) => self.left.push(format!(
                "{path}: small files are not joined: another process reads them now"
            )),
            Err(error) => self.left.push(format!("{path}: {error}")),
        }
    }

    /// Counts the files that stay in each folder.
    fn count_rest(&mut self, layout: &Layout, options: &GcOptions) {
        for (name, why) in kept(options) {
            let path = RelPath::of_parts([layout::OWN, name]);
            let (mut files, mut bytes) = weigh(&layout.at(&path));
            let of_kind = self.removed.iter().filter(|one| one.kind == name);
            for one in of_kind.filter(|_| options.dry_run) {
                files -= one.files.min(files);
                bytes -= one.bytes.min(bytes);
            }
            if files > 0 {
                let (files, bytes) = (count(files, "file", "files"), count(bytes, "byte", "bytes"));
                self.left.push(format!("{path}: {files}, {bytes}: {why}"));
            }
        }
    }
}

/// Returns the digests of all recorded outputs: accepted content with such a digest is in use.
fn recorded(state: &State) -> BTreeSet<Digest> {
    let stages = state.stages.values();
    let records = stages
        .flat_map(|stage| stage.batches.values())
        .filter_map(|batch| batch.record.as_ref());
    let made = records.flat_map(|record| record.outputs.iter().map(|made| made.digest));
    let remains = state.stages.values().flat_map(|stage| {
        let batches = stage.batches.values();
        batches.flat_map(|batch| batch.remains.values().copied())
    });
    made.chain(remains).collect()
}

/// The folders of Milepost's own files of which `gc` removes some.
const FOLDERS: [&str; 7] = [
    "journal",
    "scratch",
    "quarantine",
    "calls",
    "logs",
    "accepted",
    "answers",
];

/// Returns the folders of which files stay, and why.
fn kept(options: &GcOptions) -> [(&'static str, &'static str); 5] {
    let or = |old, young| {
        if options.older_than.is_some() {
            old
        } else {
            young
        }
    };
    [
        ("journal", "records of runs are never removed"),
        (
            "quarantine",
            or(
                "younger, or the age is not known",
                "`--older-than` removes the old ones",
            ),
        ),
        (
            "calls",
            or(
                "records of calls, and the requests and answers of those in use or younger",
                "`--older-than` removes old requests and answers that nothing uses",
            ),
        ),
        (
            "logs",
            or(
                "of attempts that a record names, of failed batches, or younger",
                "`--older-than` removes old ones that no record names",
            ),
        ),
        (
            "accepted",
            or(
                "in use, or younger",
                "`--older-than` removes old ones that nothing uses",
            ),
        ),
    ]
}

/// Returns why the folders that are links are left out: what they lead to may belong to another workspace.
fn links(layout: &Layout) -> impl Iterator<Item = String> {
    let folders = FOLDERS.map(|name| RelPath::of_parts([layout::OWN, name]));
    let links = folders
        .into_iter()
        .filter(|path| layout.at(path).is_symlink());
    links.map(|path| followed(path.as_str()))
}

fn followed(path: &str) -> String {
    format!("{path}: it is a symbolic link, and its target is not removed")
}

/// Returns the attempts whose logs records name: by run, the names of batches in the names of logs. Of a failed batch those of all runs
/// count, without a run.
fn logged(state: &State) -> BTreeSet<(Option<&str>, String)> {
    let stages = state.stages.iter();
    let batches = stages.flat_map(|(stage, known)| {
        let batches = known.batches.iter();
        batches.flat_map(move |(key, batch)| {
            let stems = [
                layout::log_stem(stage, key),
                layout::earlier_log_stem(stage, key),
            ];
            stems.map(|stem| (stem, batch))
        })
    });
    let named = batches.flat_map(|(stem, batch)| {
        let is_failed = batch.last_failure().is_some();
        let built = batch
            .record
            .as_ref()
            .map(|record| Some(record.run.as_str()));
        let runs = built.into_iter().chain(is_failed.then_some(None));
        runs.map(|run| (run, stem.clone())).collect::<Vec<_>>()
    });
    named.collect()
}

/// Removes what no run needs. Records of the journal, manifests, outputs, and answers that outputs were built from always stay. Answers that the
/// workspaces of a project share are removed only if no run uses them; each workspace keeps a copy of the answers it uses.
///
/// # Errors
/// When another process has locked the workspace, or the disk fails.
pub fn gc(request: &Request, options: &GcOptions) -> Result<Collected, OpsError> {
    let mut opened = open_recorded(request)?;
    let mut done = Collected {
        dry_run: options.dry_run,
        ..Collected::default()
    };
    if !opened.workspace.is_made {
        return Ok(done);
    }
    let before = options.older_than.map(|age| opened.clock.now() - age);
    let (locked, state) = if options.dry_run {
        (None, Snapshot::read(&opened.workspace.layout)?.state)
    } else {
        let locked = lock_and_read(&mut opened, &request.command)?;
        // The scratch of a killed run may contain published files that are not in place yet.
        let (lock, mut recorder, repairs) = locked.recover(&opened, &request.command)?;
        done.left = repairs.iter().filter_map(Repair::left).collect();
        recorder.flush()?;
        (Some(lock), recorder.state)
    };
    let layout = &opened.workspace.layout;
    done.left.extend(links(layout));
    let reading = |folder: &Path, error| OpsError::Disk(DiskError::new("read", folder, error));
    let used = CallsInUse::of(layout, &state).map_err(|error| reading(&layout.calls(), error))?;
    let in_use = |run: &str, number| used.has(run, number);
    let mut garbage = find(layout, &layout.redirects().scratch(), before)?;
    if let Some(before) = before {
        garbage.extend(calls(layout, before, &in_use)?);
        garbage.extend(accepted(layout, before, &recorded(&state))?);
        let named = logged(&state);
        let is_named = |run: &str, stem: &str| {
            let names = |run| named.contains(&(run, stem.to_owned()));
            names(Some(run)) || names(None)
        };
        garbage.extend(logs(layout, before, &is_named)?);
    }
    let disk = locked.is_some().then_some(&opened.disk);
    done.remove(disk, layout, &garbage);
    done.join_journal(disk, layout);
    let project = opened.files.folder(Root::Project);
    let shared = layout::answers(project);
    let places = [(layout.answers(), false), (shared, true)];
    for (folder, is_shared) in places {
        if folder.is_symlink() {
            if is_shared {
                done.left.push(followed(&folder.display().to_string()));
            }
            continue;
        }
        // The answers of the workspace are locked with it.
        let lock = match &locked {
            Some(_) if is_shared && folder.is_dir() => {
                let path = layout::answers_lock(&folder);
                let alone = SharedLock::take_alone(&opened.disk, &path).map_err(OpsError::Disk)?;
                if alone.is_none() {
                    done.left.push(format!(
                        "shared answers of the project ({}): runs use them now",
                        folder.display()
                    ));
                    continue;
                }
                alone
            }
            _ => None,
        };
        let unneeded = RemovableAnswers {
            in_use: &in_use,
            before,
        };
        let found = look(&folder, &unneeded).map_err(|error| reading(&folder, error))?;
        if let Some(found) = found {
            if locked.is_some() {
                found.carry_out(&opened.disk).map_err(OpsError::Disk)?;
            }
            done.bytes += found.freed;
            done.removed.push(Removed {
                kind: "answers".to_owned(),
                path: format!(
                    "{}.milepost/answers",
                    if is_shared { "project:" } else { "" }
                ),
                files: found.files(),
                bytes: found.freed,
            });
        }
        drop(lock);
    }
    drop(locked);
    done.count_rest(layout, options);
    Ok(done)
}
