//! A project and a workspace, open for reading, and the recorded state of a workspace.

use super::error::OpsError;
use super::half_published::recover_for_reading;
use super::lost_manifests::lost_manifests;
use crate::ops::run::reported::ReportedChanges;
use crate::run::check::batch_scanner::Keep;
use crate::run::check::by_page;
use crate::run::check::scan::scan_batches;
use crate::run::context::{Context, Pace};
use jiff::Timestamp;
use milepost_core::base::clock::Clock;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use milepost_core::base::redact::Redactor;
use milepost_core::decl::Problems;
use milepost_core::model::event::Record;
use milepost_core::model::pipeline::Pipeline;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::{StageState, State};
use milepost_core::plan::decide::RebuildPolicy;
use milepost_core::plan::machine::apply;
use milepost_core::plan::options::invocation::Invocation;
use milepost_core::plan::pending::Pending;
use milepost_core::plan::scan::StageScan;
use milepost_core::plan::selection::Target;
use milepost_core::plan::settings::Settings;
use milepost_store::store::checkpoint;
use milepost_store::store::disk::Disk;
use milepost_store::store::files::Files;
use milepost_store::store::journal;
use milepost_store::store::layout::Layout;
use milepost_store::store::lock::{Holder, Lock};
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
    /// How the program was called, for suggested commands.
    pub(crate) invocation: Invocation,
    /// The folder that the request names.
    pub(crate) folder: PathBuf,
    /// The project's folder.
    pub(crate) project: PathBuf,
    /// The declarations.
    pub(crate) pipeline: Pipeline,
    /// Warnings about the declarations.
    pub(crate) warnings: Vec<String>,
    /// Mistakes in the declarations, if it was opened for what is recorded.
    pub(crate) problems: Option<Problems>,
    /// Advice about the declarations.
    pub(crate) advice: Vec<String>,
    /// The values of parameters, variables and agents.
    pub(crate) settings: Settings,
    /// Reads files of project and workspace, and nothing outside.
    pub(crate) files: Files,
    /// The workspace, which may not exist yet.
    pub(crate) workspace: Workspace,
    /// Digests of files by their stamps.
    pub(crate) cache: StatCache,
    /// Notes for the next up-to-date check.
    pub(crate) observations: Observations,
    /// True if this process holds the lock of the workspace, and no run is in progress beside it.
    pub(crate) is_locked: bool,
    /// The changes that the system reported to a watch.
    pub(crate) reported: Option<Arc<ReportedChanges>>,
    /// Removes keys from text that is shown or stored.
    pub(crate) redactor: Redactor,
    /// The digest of the declarations as they were read.
    pub(crate) declared: Digest,
    /// Files outside the workspace that `--set` names, by the path that they are copied to.
    pub(crate) imports: BTreeMap<RelPath, PathBuf>,
    /// The values of `--set`.
    pub(crate) set: BTreeMap<String, Value>,
    /// The parameters of `--unset`.
    pub(crate) unset: BTreeSet<String>,
    /// The agents of `--agent`, by the name they replace; `None` removes a replacement.
    pub(crate) agents: BTreeMap<String, Option<String>>,
    /// Writes to the disk.
    pub(crate) disk: Disk,
    pub(crate) clock: Arc<dyn Clock>,
    /// The time of `SOURCE_DATE_EPOCH`.
    pub(crate) epoch: Option<Timestamp>,
    /// The variables that every program of a step gets.
    pub(crate) environment: BTreeMap<String, String>,
    /// The environment of this process.
    pub(crate) own_environment: BTreeMap<String, String>,
    /// The path of this program.
    pub(crate) program: Option<String>,
    /// How often provider batches are submitted and polled.
    pub(crate) pace: Pace,
}

impl OpenProject {
    /// Returns the mistakes in the declarations, each in one line with its place.
    pub(crate) fn problem_lines(&self) -> Vec<String> {
        let problems = self.problems.iter().flat_map(|problems| &problems.0);
        problems.map(ToString::to_string).collect()
    }

    /// Returns why nothing says what a run would do; `None` if the declarations have no mistake.
    pub(crate) fn no_run(&self) -> Option<String> {
        let lines = self.problem_lines();
        let first = lines.first()?;
        Some(match lines.len() {
            1 => format!("the declarations are wrong: {first}"),
            many => format!("the declarations are wrong: {first}; and {} more", many - 1),
        })
    }

    /// Finds a stage by its name, number or file.
    ///
    /// # Errors
    /// When the project has no such stage.
    pub(crate) fn stage(&self, text: &str) -> Result<&Stage, OpsError> {
        let target = Target::parse(&self.pipeline, text)?;
        let stage = self.pipeline.stage(&target.stage);
        stage.ok_or_else(|| OpsError::Usage(format!("there is no stage `{text}`")))
    }

    /// Returns what runs and plans need of it.
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
            asked: &self.observations,
            redactor: &self.redactor,
            environment: &self.environment,
            own_environment: &self.own_environment,
            program: self.program.as_deref(),
            pace: self.pace,
            imports: &self.imports,
        }
    }
}

/// Checks which batches of a stage are up to date in the present state of the workspace.
///
/// # Errors
/// When its batches cannot be listed.
pub(crate) fn scan_stage(
    ctx: &Context<'_>,
    stage: &Stage,
    state: &State,
    policy: RebuildPolicy,
    keep: Keep<'_>,
) -> Result<StageScan, String> {
    scan_batches(ctx, stage, state, &Pending::default(), &|_| policy, keep)
}

/// Reads the recorded state of a workspace: its manifests, then the journal's records since its last seal. Nothing is written.
///
/// # Errors
/// When a manifest or the journal is damaged.
pub fn state(layout: &Layout) -> Result<State, OpsError> {
    let (records, _) = journal::read_since_seal(layout)?;
    replay(layout, &records)
}

/// Reads the state of a workspace as the next run recovers it, if a run did not put published files in place. Nothing is written.
///
/// # Errors
/// The errors of [`state`], and when a published file cannot be read.
pub(crate) fn state_for_reading(opened: &OpenProject) -> Result<State, OpsError> {
    for_reading(opened, state(&opened.workspace.layout)?)
}

fn for_reading(opened: &OpenProject, mut state: State) -> Result<State, OpsError> {
    let layout = &opened.workspace.layout;
    // The lock may be this process's own.
    let holder = Lock::peek(&layout.lock()).filter(|_| !opened.is_locked);
    let is_running = holder.as_ref().is_some_and(Holder::is_alive);
    recover_for_reading(layout, &mut state, is_running)?;
    Ok(state)
}

/// Reads the state of a workspace as [`state_for_reading`] does. If only files changed since the last up-to-date check, no page of a
/// manifest is read: [`by_page::read_needed`] and [`by_page::read_rest`] read what is missing.
///
/// # Errors
/// The errors of [`state_for_reading`].
pub(crate) fn state_by_page(opened: &OpenProject) -> Result<State, OpsError> {
    let layout = &opened.workspace.layout;
    let (records, _) = journal::read_since_seal(layout)?;
    let state = replay_by_page(opened, &records)?;
    for_reading(opened, state)
}

/// Takes the manifests as the notes know them, or reads them, then applies the journal's records since its last seal.
///
/// # Errors
/// The errors of [`replay`].
pub(crate) fn replay_by_page(opened: &OpenProject, records: &[Record]) -> Result<State, OpsError> {
    let layout = &opened.workspace.layout;
    let pages = opened.observations.pages();
    let Some(stages) = by_page::noted(&opened.pipeline.stages, pages, records) else {
        return replay(layout, records);
    };
    let state = apply_records(layout, stages, records)?;
    let is_idle = state.unsettled.is_empty()
        && state.retiring.is_empty()
        && state.children.is_empty()
        && state.open_run.is_none()
        && state.forced.is_empty();
    if is_idle {
        Ok(state)
    } else {
        replay(layout, records)
    }
}

/// Reads the manifests, then applies the journal's records since its last seal.
///
/// # Errors
/// When a manifest is damaged, or a record does not fit the state.
pub(crate) fn replay(layout: &Layout, records: &[Record]) -> Result<State, OpsError> {
    let mut stages = manifest::read_all(layout)?;
    stages.extend(lost_manifests(layout, records)?);
    apply_records(layout, stages, records)
}

fn apply_records(
    layout: &Layout,
    stages: BTreeMap<String, StageState>,
    records: &[Record],
) -> Result<State, OpsError> {
    let mut state = State {
        stages,
        ..State::default()
    };
    // Only the checkpoint says whether a stage is complete. One that cannot be read counts as missing.
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
