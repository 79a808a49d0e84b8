//! A project and a workspace, open for reading, and what is known of the workspace.

use super::error::OpsError;
use crate::run::context::{Context, Pace};
use jiff::Timestamp;
use milepost_core::base::clock::Clock;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use milepost_core::base::redact::Redactor;
use milepost_core::model::pipeline::Pipeline;
use milepost_core::model::state::State;
use milepost_core::plan::machine::apply;
use milepost_core::plan::settings::Settings;
use milepost_store::store::checkpoint;
use milepost_store::store::disk::Disk;
use milepost_store::store::files::Files;
use milepost_store::store::journal;
use milepost_store::store::layout::Layout;
use milepost_store::store::manifest;
use milepost_store::store::statcache::StatCache;
use milepost_store::store::up_to_date::Observations;
use milepost_store::store::workspace::Workspace;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// A project and a workspace, open for reading.
pub struct OpenProject {
    /// The folder in which the program was called.
    pub(crate) folder: PathBuf,
    /// The project's folder.
    pub(crate) project: PathBuf,
    /// The declarations.
    pub(crate) pipeline: Pipeline,
    /// What is allowed and perhaps not meant.
    pub(crate) warnings: Vec<String>,
    /// The values that a run would go by.
    pub(crate) settings: Settings,
    /// Reading, confined.
    pub(crate) files: Files,
    /// The workspace.
    pub(crate) workspace: Workspace,
    /// Digests of files that have not changed.
    pub(crate) cache: StatCache,
    /// Notes of what is asked of the disk.
    pub(crate) asked: Observations,
    /// Takes keys out of what is shown and kept.
    pub(crate) redactor: Redactor,
    /// The digest of the declarations as they were read.
    pub(crate) declared: Digest,
    /// Files from outside that `--set` names, by where they go.
    pub(crate) imports: BTreeMap<RelPath, PathBuf>,
    /// Parameters that `--set` gives.
    pub(crate) set: BTreeMap<String, Value>,
    /// Parameters that `--unset` names.
    pub(crate) unset: BTreeSet<String>,
    /// Agents that `--agent` names: who answers in their place, or `None` for they themselves.
    pub(crate) agents: BTreeMap<String, Option<String>>,
    /// The one writer.
    pub(crate) disk: Disk,
    /// The time of day.
    pub(crate) clock: Arc<dyn Clock>,
    /// The moment of `SOURCE_DATE_EPOCH`.
    pub(crate) epoch: Option<Timestamp>,
    /// The variables that every program gets.
    pub(crate) environment: BTreeMap<String, String>,
    /// When provider batches are submitted and polled.
    pub(crate) pace: Pace,
}

impl OpenProject {
    /// What a run and a plan work with.
    pub fn context(&self) -> Context<'_> {
        Context {
            pipeline: &self.pipeline,
            settings: &self.settings,
            files: &self.files,
            layout: &self.workspace.layout,
            disk: &self.disk,
            clock: &*self.clock,
            epoch: self.epoch,
            cache: &self.cache,
            asked: &self.asked,
            redactor: &self.redactor,
            environment: &self.environment,
            pace: self.pace,
            imports: &self.imports,
        }
    }
}

/// What is known of a workspace: its manifests, and the journal after them. Nothing is written.
///
/// # Errors
/// When a manifest or the journal is damaged.
pub fn state(layout: &Layout) -> Result<State, OpsError> {
    let (records, _) = journal::read_last_segment(layout)?;
    replay(layout, &records)
}

/// The manifests with these records of the journal's last segment after them.
///
/// # Errors
/// When a manifest is damaged, or the records cannot follow.
pub(crate) fn replay(
    layout: &Layout,
    records: &[milepost_core::model::event::Record],
) -> Result<State, OpsError> {
    let mut state = State {
        stages: manifest::read_all(layout)?,
        ..State::default()
    };
    // Whether a stage is complete is kept in its checkpoint only. One that cannot be read vouches for nothing.
    for (name, stage) in &mut state.stages {
        let found = checkpoint::read(layout, stage.number).ok().flatten();
        stage.status = found
            .filter(|found| found.checkpoint.stage == *name)
            .map(|found| found.checkpoint.status);
    }
    for record in records {
        apply(&mut state, &record.run_id, &record.event)
            .map_err(crate::run::error::RunError::from)?;
    }
    Ok(state)
}
