//! Keeps state and journal consistent: an event is applied and appended, or neither.

use crate::run::check::by_page;
use crate::run::context::Context;
use crate::run::error::RunError;
use crate::run::notice::Notice;
use crate::run::record::quarantined::KeptFile;
use milepost_core::base::path::RelPath;
use milepost_core::model::call::Estimated;
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::record::BatchRecord;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::{StageState, State};
use milepost_core::plan::machine::apply;
use milepost_core::plan::recorded::MadeFiles;
use milepost_store::store::journal::Journal;
use milepost_store::store::manifest::{self, ManifestError, WrittenManifest};
use milepost_store::store::up_to_date::NotedManifest;
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The state of the workspace, and the writer of its journal.
pub struct Recorder<'a> {
    pub(crate) ctx: Context<'a>,
    /// The state of the workspace.
    pub state: State,
    pub(crate) made: MadeFiles,
    pub(crate) kept: Vec<KeptFile>,
    /// The agents and reasons of unexpected usage that were shown.
    pub(crate) warned: BTreeSet<(String, Option<Estimated>)>,
    /// How many files in quarantine were reported.
    reported: usize,
    journal: Journal,
    command: String,
    begun: bool,
    dirty: BTreeSet<String>,
    counted: u64,
}

impl<'a> Recorder<'a> {
    /// Creates a recorder. `command` is the command line of the run.
    pub fn new(ctx: Context<'a>, state: State, journal: Journal, command: &str) -> Self {
        // This run seals the records that an earlier run did not.
        let dirty = journal.unsealed().clone();
        Self {
            ctx,
            state,
            made: MadeFiles::default(),
            kept: Vec::new(),
            warned: BTreeSet::new(),
            reported: 0,
            journal,
            command: command.to_owned(),
            begun: false,
            dirty,
            counted: 0,
        }
    }

    /// Returns the id of the run.
    pub fn run_id(&self) -> &str {
        self.journal.run_id()
    }

    /// Returns true if anything was recorded.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Returns how many events were recorded.
    pub(crate) fn counted(&self) -> u64 {
        self.counted
    }

    /// Applies an event and appends it to the journal. `run_started` is recorded before the first event, so that a run in which
    /// nothing happens leaves no trace.
    ///
    /// # Errors
    /// When the state does not allow the event, or the journal cannot be written.
    pub fn record(
        &mut self,
        kind: EventType,
        agent: &str,
        event: Event,
        summary: impl Into<String>,
    ) -> Result<(), RunError> {
        self.record_with(kind, agent, event, summary, Vec::new())
    }

    /// Does the same with references to files.
    ///
    /// # Errors
    /// The errors of [`Recorder::record`].
    pub(crate) fn record_with(
        &mut self,
        kind: EventType,
        agent: &str,
        event: Event,
        summary: impl Into<String>,
        files: Vec<String>,
    ) -> Result<(), RunError> {
        if !self.begun {
            self.begun = true;
            let command = self.ctx.redactor.text(&self.command).into_owned();
            let summary = format!("run started: {command}");
            let started = Event::RunStarted {
                command,
                version: self.ctx.settings.version.clone(),
            };
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
        let renumbers = self.renumbers(&event);
        let renames = self.renames(&event);
        apply(&mut self.state, self.journal.run_id(), &event)?;
        if let Some(stage) = stage_of(&event) {
            self.dirty.insert(stage.to_owned());
        } else if let Some(stage) = event.stage().filter(|_| renumbers) {
            self.dirty.insert(stage.to_owned());
        }
        self.note_replaced(&event, renames);
        self.counted += 1;
        if tracing::enabled!(tracing::Level::DEBUG)
            && let Ok(mut record) = serde_json::to_value(&event)
        {
            record["event_type"] = json!(kind);
            record["agent_name"] = agent.into();
            record["summary"] = summary.as_str().into();
            tracing::debug!(%record);
        }
        self.journal.append(kind, agent, event, summary, files)?;
        Ok(())
    }

    /// Records the end of a run in which no stage ran.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub(crate) fn end_without_stages(
        &mut self,
        status: &str,
        summary: &str,
    ) -> Result<(), RunError> {
        let event = Event::RunFinished {
            status: status.to_owned(),
            ran: 0,
            reused: 0,
            failed: 0,
        };
        self.record(EventType::Complete, "milepost", event, summary)
    }

    /// Returns true if a checkpoint records another number for its stage than the manifest may have.
    fn renumbers(&self, event: &Event) -> bool {
        match event {
            Event::CheckpointWritten { stage, number, .. } => {
                let known = self.state.stages.get(stage);
                known.is_none_or(|known| known.number != *number)
            }
            _ => false,
        }
    }

    /// Returns true if a batch has other outputs than before, so that patterns match other files.
    fn renames(&self, event: &Event) -> bool {
        let Event::Published { stage, record, .. } = event else {
            return false;
        };
        let known = self.state.stages.get(stage);
        let before = known.and_then(|known| known.batches.get(&record.key)?.record.as_ref());
        let paths = |record: &BatchRecord| -> BTreeSet<RelPath> {
            record
                .outputs
                .iter()
                .map(|made| made.path.clone())
                .collect()
        };
        before.is_none_or(|before| paths(before) != paths(record))
    }

    /// Notes the files that an event changes: what was observed of them before is invalid. `renames`: patterns that name outputs may
    /// match other files now.
    fn note_replaced(&self, event: &Event, renames: bool) {
        let asked = self.ctx.asked;
        match event {
            Event::Published { files, retired, .. } => {
                for path in retired.keys() {
                    asked.replaced(path, None, true);
                }
                for file in files {
                    asked.replaced(&file.path, Some(file.new), renames);
                }
            }
            Event::Retired { files, .. } => {
                for path in files.keys() {
                    asked.replaced(path, None, true);
                }
            }
            _ => {}
        }
    }

    /// Records that all files that were published or retired are where they belong.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub(crate) fn barrier(&mut self, summary: &str) -> Result<(), RunError> {
        self.record(EventType::Complete, "milepost", Event::Barrier, summary)
    }

    /// Returns the path in quarantine of a file that is moved there.
    pub(crate) fn aside(&self, reason: &str, path: &RelPath) -> RelPath {
        milepost_store::store::quarantine::folder(self.run_id(), self.counted, reason).with(path)
    }

    /// Returns the files that were moved to quarantine since the last call.
    pub(crate) fn newly_kept(&mut self) -> Option<Notice> {
        let files = self.kept[self.reported..].to_vec();
        self.reported = self.kept.len();
        (!files.is_empty()).then_some(Notice::Kept { files })
    }

    /// Buffers records until the next flush, so that all become durable together.
    pub(crate) fn gather(&mut self) {
        self.journal.gather();
    }

    /// Makes all records durable.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn flush(&mut self) -> Result<(), RunError> {
        Ok(self.journal.flush()?)
    }

    /// Writes a stage's manifest under the stage's present number, after flushing the journal, and returns it.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn write_manifest(&mut self, stage: &Stage) -> Result<WrittenManifest, RunError> {
        self.flush()?;
        let known = match self.state.stages.get(&stage.name) {
            Some(known) if known.number == stage.number => Cow::Borrowed(known),
            other => Cow::Owned(StageState {
                number: stage.number,
                ..other.cloned().unwrap_or_default()
            }),
        };
        let (disk, layout) = (self.ctx.disk, self.ctx.layout);
        let written = match manifest::write(disk, layout, &stage.name, &known) {
            // The batches of the pages that were read do not fit them any more.
            Err(ManifestError::Moving { .. }) if !known.pages.is_empty() => {
                self.read_rest()?;
                return self.write_manifest(stage);
            }
            written => written?,
        };
        self.wrote(&stage.name, stage.number, &written);
        Ok(written)
    }

    /// Notes that a manifest was written.
    fn wrote(&mut self, stage: &str, number: u32, written: &WrittenManifest) {
        self.dirty.remove(stage);
        let noted = NotedManifest {
            number,
            pages: written.pages.clone(),
        };
        self.ctx
            .asked
            .note_pages(stage, (!written.is_split).then_some(noted));
        if let Some(known) = self.state.stages.get_mut(stage)
            && !known.pages.is_empty()
        {
            known.pages.clone_from(&written.pages);
        }
    }

    /// Reads the pages of manifests that were not read.
    ///
    /// # Errors
    /// When a page cannot be read.
    pub(crate) fn read_rest(&mut self) -> Result<(), RunError> {
        let mut stages = self.state.stages.values();
        if stages.any(|stage| !stage.pages.is_empty()) {
            self.made = MadeFiles::default();
        }
        Ok(by_page::read_rest(self.ctx.layout, &mut self.state)?)
    }

    /// Notes the pages of the manifests that this run did not write, where they are unknown. What cannot be read is not noted.
    pub(crate) fn note_pages(&self) {
        let asked = self.ctx.asked;
        if !asked.is_on() {
            return;
        }
        let known = asked.pages();
        for (name, stage) in &self.state.stages {
            if known.contains_key(name) || self.dirty.contains(name) {
                continue;
            }
            let Ok(found) = manifest::pages(self.ctx.layout, name, stage) else {
                continue;
            };
            let noted = NotedManifest {
                number: stage.number,
                pages: found.pages,
            };
            asked.note_pages(name, (!found.is_split).then_some(noted));
        }
    }

    /// Writes the manifests of all changed stages, and starts a new segment of the journal.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn seal(&mut self) -> Result<(), RunError> {
        self.flush()?;
        while let Some(stage) = self.dirty.first().cloned() {
            let (disk, layout) = (self.ctx.disk, self.ctx.layout);
            let Some(known) = self.state.stages.get(&stage) else {
                manifest::remove(disk, layout, &stage)?;
                self.ctx.asked.note_pages(&stage, None);
                self.dirty.remove(&stage);
                continue;
            };
            let number = known.number;
            match manifest::write(disk, layout, &stage, known) {
                // As in `write_manifest`.
                Err(ManifestError::Moving { .. }) if !known.pages.is_empty() => self.read_rest()?,
                written => self.wrote(&stage, number, &written?),
            }
        }
        let (state, journal) = (&self.state, &mut self.journal);
        journal.seal(
            state.checkpoints.clone(),
            state.forced.clone(),
            state.approvals.clone(),
        )?;
        Ok(())
    }
}

/// Returns the stage whose manifest an event changes. Checkpoints are not part of a manifest.
fn stage_of(event: &Event) -> Option<&str> {
    match event {
        Event::StageStarted { stage, .. }
        | Event::AttemptStarted { stage, .. }
        | Event::AttemptFailed { stage, .. }
        | Event::BatchCancelled { stage, .. }
        | Event::BatchFailed { stage, .. }
        | Event::Published { stage, .. }
        | Event::Lost { stage, .. }
        | Event::Retired { stage, .. }
        | Event::Judged { stage, .. }
        | Event::Accepted { stage, .. }
        | Event::ChangeAccepted { stage, .. }
        | Event::StageForgotten { stage } => Some(stage),
        _ => None,
    }
}
