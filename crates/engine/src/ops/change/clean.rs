//! Removes the outputs, checkpoints and progress files of stages. Inputs and untracked files stay.

use crate::ops::project::error::OpsError;
use crate::ops::project::lock::lock_and_read;
use crate::ops::project::open::open;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::Snapshot;
use crate::run::notice::Repair;
use crate::run::record::protect;
use crate::run::record::quarantined::{Content, KeptFile, Removal};
use crate::run::record::recorder::Recorder;
use crate::run::record::retire;
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::base::words::count;
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::state::{StageState, State};
use milepost_core::plan::recorded::MadeFiles;
use milepost_core::plan::world::World;
use milepost_store::store::files::digest_of;
use milepost_store::store::{iterations, layout, progress};
use serde::Serialize;
use std::collections::BTreeMap;

/// The selection of stages to clean.
#[derive(Debug, Clone, Default)]
pub struct CleanOptions {
    /// The stages; empty for all, including those no longer declared.
    pub stages: Vec<String>,
    /// Return what would be removed, and remove nothing.
    pub dry_run: bool,
}

/// The removed files, or those that a dry run would remove.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Cleaned {
    /// The removed files, in the workspace.
    pub removed: Vec<String>,
    /// The size of the removed files, in bytes.
    pub bytes: u64,
    /// Files that were modified by hand: they go to quarantine instead.
    pub altered: Vec<String>,
    /// Where these went; empty in a dry run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<KeptFile>,
    /// Files that could not be removed, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// True if nothing was removed.
    pub dry_run: bool,
}

/// The files to remove for one stage.
struct Todo {
    stage: String,
    number: u32,
    removed: Vec<RelPath>,
    /// Files that were modified by hand, with their batches.
    altered: Vec<(String, RelPath)>,
    bytes: u64,
}

/// Removes the outputs of stages and their records, so that the next run rebuilds them. Files modified by hand go to quarantine;
/// untracked files stay.
///
/// # Errors
/// When another process has locked the workspace, a stage is not known, or the disk fails.
pub fn clean(request: &Request, options: &CleanOptions) -> Result<Cleaned, OpsError> {
    let mut opened = open(request)?;
    let mut done = Cleaned {
        dry_run: options.dry_run,
        ..Cleaned::default()
    };
    if !opened.workspace.is_made {
        return Ok(done);
    }
    if options.dry_run {
        let present = Snapshot::read(&opened.workspace.layout)?;
        for todo in todo(&opened, &present.state, options)? {
            todo.tell(&mut done);
        }
        return Ok(done);
    }
    let locked = lock_and_read(&mut opened, &request.command)?;
    let (lock, mut recorder, repairs) = locked.recover(&opened, &request.command)?;
    done.left = repairs.iter().filter_map(Repair::left).collect();
    for todo in todo(&opened, &recorder.state, options)? {
        todo.carry_out(&mut recorder)?;
        todo.tell(&mut done);
    }
    done.quarantined = std::mem::take(&mut recorder.kept);
    if recorder.has_begun() {
        let summary = format!(
            "cleaned: {} removed",
            count(done.removed.len() as u64, "file", "files")
        );
        recorder.end_without_stages("cleaned", &summary)?;
        recorder.seal()?;
    }
    drop(lock);
    Ok(done)
}

fn todo(
    opened: &OpenProject,
    state: &State,
    options: &CleanOptions,
) -> Result<Vec<Todo>, OpsError> {
    let names: Vec<String> = if options.stages.is_empty() {
        state.stages.keys().cloned().collect()
    } else {
        let mut names = Vec::new();
        for text in &options.stages {
            let declared = opened.pipeline.stage(text).map(|stage| stage.name.as_str());
            let name = declared.unwrap_or(text);
            if declared.is_none() && !state.stages.contains_key(name) {
                return Err(OpsError::Usage(format!(
                    "there is no stage `{text}`, neither declared nor in the workspace"
                )));
            }
            names.push(name.to_owned());
        }
        names
    };
    let mut all = Vec::new();
    let made = MadeFiles::default();
    for name in names {
        if let Some(known) = state.stages.get(&name) {
            all.push(of_stage(opened, (state, &made), &name, known)?);
        }
    }
    all.sort_by_key(|todo: &Todo| std::cmp::Reverse(todo.number));
    Ok(all)
}

fn of_stage(
    opened: &OpenProject,
    (state, made): (&State, &MadeFiles),
    name: &str,
    known: &StageState,
) -> Result<Todo, OpsError> {
    let mut todo = Todo {
        stage: name.to_owned(),
        number: known.number,
        removed: Vec::new(),
        altered: Vec::new(),
        bytes: 0,
    };
    let mut batches: BTreeMap<&RelPath, &str> = BTreeMap::new();
    for (key, batch) in &known.batches {
        batches.extend(batch.files().map(|path| (path, key.as_str())));
    }
    let ctx = opened.context();
    for (path, key) in batches {
        let file = FilePath::workspace(path.clone());
        let Some(there) = ctx.digest(&file).map_err(OpsError::World)? else {
            continue;
        };
        if Content::of(ctx.layout, (state, made), (name, key), path, there).is_by_hand() {
            todo.altered.push((key.to_owned(), path.clone()));
        } else {
            todo.bytes += size(opened, path);
            todo.removed.push(path.clone());
        }
    }
    let declared = opened
        .pipeline
        .stage(name)
        .filter(|stage| stage.name == name);
    let progress = declared.map(|stage| stage.progress.clone());
    let checkpoint = layout::checkpoint(known.number);
    let is_by_hand = |path: &RelPath| {
        let place = ctx.layout.at(path);
        if *path == checkpoint {
            let there = digest_of(&place).ok().flatten().map(|(digest, _)| digest);
            there.is_some() && there != state.checkpoints.get(name).copied()
        } else {
            progress::is_by_hand(&place)
        }
    };
    for path in progress.iter().chain([&checkpoint]) {
        if !ctx.layout.at(path).is_file() {
            continue;
        }
        if is_by_hand(path) {
            todo.altered.push((String::new(), path.clone()));
        } else {
            todo.bytes += size(opened, path);
            todo.removed.push(path.clone());
        }
    }
    Ok(todo)
}

fn size(opened: &OpenProject, path: &RelPath) -> u64 {
    let found = opened.workspace.layout.at(path).metadata();
    found.map_or(0, |found| found.len())
}

impl Todo {
    fn carry_out(&self, recorder: &mut Recorder<'_>) -> Result<(), OpsError> {
        // Stages that read from it notice that their inputs are gone.
        retire::remove_checkpoint(recorder, &self.stage, self.number)?;
        recorder.flush()?;
        let ctx = recorder.ctx;
        let mut by_hand = Vec::new();
        for (key, path) in &self.altered {
            if ctx.layout.at(path).symlink_metadata().is_err() {
                continue;
            }
            let was = match protect::content_at(recorder, &self.stage, key, path)? {
                // A progress file is not an output.
                Content::Untracked => Content::Modified,
                other => other,
            };
            by_hand.push((key.clone(), path.clone(), was));
        }
        protect::put_away(recorder, &self.stage, &by_hand, Removal::Cleaned)?;
        for path in &self.removed {
            let place = ctx.layout.at(path);
            if place.symlink_metadata().is_ok() {
                ctx.disk.remove_file(&place)?;
            }
        }
        iterations::remove_except(ctx.disk, ctx.layout, &self.stage, std::iter::empty())?;
        let event = Event::StageForgotten {
            stage: self.stage.clone(),
        };
        let summary = format!(
            "{} is cleaned: {} removed",
            self.stage,
            count(self.removed.len() as u64, "file", "files")
        );
        recorder.record(EventType::Revision, "milepost", event, summary)?;
        Ok(())
    }

    fn tell(&self, done: &mut Cleaned) {
        done.removed
            .extend(self.removed.iter().map(ToString::to_string));
        let altered = self.altered.iter();
        done.altered
            .extend(altered.map(|(_, path)| path.to_string()));
        done.bytes += self.bytes;
    }
}
