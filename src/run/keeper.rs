//! Keeps what is known and the journal in step: an event is applied and appended, or neither.

use super::context::Context;
use super::engine::RunError;
use crate::base::path::RelPath;
use crate::model::event::{Event, EventType};
use crate::model::state::State;
use crate::plan::machine::apply;
use crate::store::journal::Journal;
use std::collections::BTreeSet;

/// Keeps what is known of the workspace, and writes the journal.
pub struct Keeper<'a> {
    /// What the run needs.
    pub ctx: Context<'a>,
    /// What is known.
    pub state: State,
    journal: Journal,
    command: String,
    begun: bool,
    dirty: BTreeSet<String>,
    counted: u64,
}

impl<'a> Keeper<'a> {
    /// A keeper of this state. `command` is what was asked for.
    pub fn new(ctx: Context<'a>, state: State, journal: Journal, command: &str) -> Self {
        // What an earlier run recorded and did not seal leaves the last segment when this run seals.
        let dirty = journal.unsealed().clone();
        Self {
            ctx,
            state,
            journal,
            command: command.to_owned(),
            begun: false,
            dirty,
            counted: 0,
        }
    }

    /// The id of the run.
    pub fn run_id(&self) -> &str {
        self.journal.run_id()
    }

    /// Whether anything was recorded.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// How many events were recorded.
    pub fn counted(&self) -> u64 {
        self.counted
    }

    /// Applies an event and appends it. The first of a run is preceded by `run_started`, so that a run in which nothing
    /// happens leaves no trace.
    ///
    /// # Errors
    /// When the event cannot follow, or the journal cannot be written.
    pub fn record(
        &mut self,
        kind: EventType,
        agent: &str,
        event: Event,
        summary: impl Into<String>,
        files: Vec<String>,
    ) -> Result<(), RunError> {
        if !self.begun {
            self.begun = true;
            let started = Event::RunStarted {
                command: self.command.clone(),
                version: self.ctx.settings.version.clone(),
            };
            let summary = format!("run started: {}", self.command);
            self.put(EventType::Invoke, "milepost", started, summary, Vec::new())?;
        }
        self.put(kind, agent, event, summary.into(), files)
    }

    fn put(
        &mut self,
        kind: EventType,
        agent: &str,
        event: Event,
        summary: String,
        files: Vec<String>,
    ) -> Result<(), RunError> {
        apply(&mut self.state, self.journal.run_id(), &event)?;
        if let Some(stage) = stage_of(&event) {
            self.dirty.insert(stage.to_owned());
        }
        self.counted += 1;
        tracing::debug!(agent, "{summary}");
        self.journal.append(kind, agent, event, summary, files)?;
        Ok(())
    }

    /// Where a file goes that is set aside.
    pub fn aside(&self, reason: &str, path: &RelPath) -> RelPath {
        crate::store::quarantine::folder(self.run_id(), self.counted, reason).with(path)
    }

    /// From here on records are gathered, up to the next flush: none of them counts before all are durable.
    pub fn gather(&mut self) {
        self.journal.gather();
    }

    /// Makes durable what was recorded.
    ///
    /// # Errors
    /// What the disk says.
    pub fn flush(&mut self) -> Result<(), RunError> {
        Ok(self.journal.flush()?)
    }

    /// Writes the manifests of all stages that changed, and begins a new segment of the journal.
    ///
    /// # Errors
    /// What the disk says.
    pub fn seal(&mut self) -> Result<(), RunError> {
        self.flush()?;
        for stage in std::mem::take(&mut self.dirty) {
            match self.state.stages.get(&stage) {
                Some(known) => {
                    crate::store::manifest::write(self.ctx.disk, self.ctx.layout, &stage, known)?;
                }
                None => crate::store::manifest::remove(self.ctx.disk, self.ctx.layout, &stage)?,
            }
        }
        self.journal.seal(self.state.checkpoints.clone())?;
        Ok(())
    }
}

/// The stage whose manifest an event changes.
fn stage_of(event: &Event) -> Option<&str> {
    match event {
        Event::StageStarted { stage, .. }
        | Event::BatchFailed { stage, .. }
        | Event::Published { stage, .. }
        | Event::Lost { stage, .. }
        | Event::Retired { stage, .. }
        | Event::Judged { stage, .. }
        | Event::Accepted { stage, .. }
        | Event::ChangeAccepted { stage, .. }
        | Event::CheckpointWritten { stage, .. }
        | Event::CheckpointRemoved { stage, .. }
        | Event::StageForgotten { stage } => Some(stage),
        _ => None,
    }
}
