//! Checks the journal and its head, and the manifests against the journal.

use super::audit::Audit;
use super::calls::JournaledCall;
use super::findings::Severity;
use crate::ops::project::error::OpsError;
use crate::ops::project::half_published::half_published;
use crate::ops::project::lost_manifests::lost_manifests;
use crate::ops::project::snapshot::Snapshot;
use crate::run::error::RunError;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use milepost_core::base::words::count;
use milepost_core::model::approval::Approval;
use milepost_core::model::batched::CallId;
use milepost_core::model::event::Event;
use milepost_core::model::state::{StageState, State};
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::machine::apply;
use milepost_store::store::journal::{self, HeadFile, JournalHead, Tail};
use milepost_store::store::{layout, manifest};
use std::collections::{BTreeMap, BTreeSet};

/// The state and the problems found by reading the whole journal.
#[derive(Default)]
pub(super) struct Journaled {
    pub(super) state: State,
    pub(super) calls: Vec<JournaledCall>,
    /// The stages that a record mentions since the last seal, as they were there: as their manifests say.
    sealed: BTreeMap<String, StageState>,
    /// The stages that no record before the last seal mentions: no manifest of theirs is complete.
    unsealed: BTreeSet<String>,
    /// Approvals that do not match their own digests: the stage and the message.
    untrue: Vec<(String, String)>,
    /// True if the last record is the end of a run.
    is_ended: bool,
    /// True if a run began and did not record its end.
    pub(super) is_open: bool,
    /// True if it cannot be read to its end, or its records contradict each other.
    is_broken: bool,
}

impl Audit<'_> {
    /// Reads the whole journal: its chain, its head, and what follows from it.
    pub(super) fn journal(&mut self) -> Result<Journaled, OpsError> {
        let layout = &self.opened.workspace.layout;
        // Before the journal, which may grow meanwhile.
        let head = journal::read_head(layout);
        let seal = journal::sealed_at(layout).ok().flatten();
        let last_records =
            journal::read_since_seal(layout).map_or(Vec::new(), |(records, _)| records);
        let stages = last_records
            .iter()
            .filter_map(|record| record.event.stage());
        let mut read = Journaled {
            unsealed: stages.map(str::to_owned).collect(),
            ..Journaled::default()
        };
        let (mut refused, mut records) = (None, 0);
        let (mut before, mut found) = (None, None);
        let tail = journal::read_all(layout, &mut |place, record| {
            records += 1;
            if before.is_some_and(|before| is_at(&head, before)) {
                found = record.prev;
            }
            before = Some((place.segment, place.line));
            read.is_ended = matches!(record.event, Event::RunFinished { .. });
            match record.event {
                Event::RunStarted { .. } => read.is_open = true,
                Event::RunFinished { .. } => read.is_open = false,
                _ => {}
            }
            // Earlier records repeat what the manifests contain.
            if let Event::Sealed { .. } = record.event {
                if Some(place.position()) == seal {
                    let known = |stage: &String| {
                        Some((stage.clone(), read.state.stages.get(stage)?.clone()))
                    };
                    read.sealed = read.unsealed.iter().filter_map(known).collect();
                    let sealed = &read.sealed;
                    read.unsealed.retain(|stage| !sealed.contains_key(stage));
                }
                return;
            }
            if let Event::Approved {
                stage,
                facts,
                batches,
                ..
            } = &record.event
                && *facts != Approval::digest(batches)
            {
                let message = format!("{place}: the digest of the approved batches is wrong");
                read.untrue.push((stage.clone(), message));
            }
            if let Event::Called {
                number,
                request,
                answer,
                ..
            } = record.event
            {
                let run = record.run_id.clone();
                read.calls.push(JournaledCall {
                    call: CallId { run, number },
                    digests: (request, answer),
                });
            }
            if refused.is_none()
                && let Err(error) = apply(&mut read.state, &record.run_id, &record.event)
            {
                refused = Some(format!("{place}: {error}"));
            }
        });
        self.checked.records = records;
        match tail {
            Ok(tail) => {
                if before.is_some_and(|before| is_at(&head, before)) {
                    found = tail.last;
                }
                self.head(&head, &tail, found);
            }
            Err(error @ journal::JournalError::Disk(_)) => return Err(error.into()),
            Err(error) => {
                read.is_broken = true;
                self.add(Severity::Modified, None, None, None, error.to_string());
            }
        }
        if let Some(message) = refused {
            read.is_broken = true;
            self.add(Severity::Modified, None, None, None, message);
        }
        Ok(read)
    }

    /// Compares the end of the journal with its head. `found` is the digest of the record that the head names.
    fn head(&mut self, head: &HeadFile, tail: &Tail, found: Option<Digest>) {
        self.head = tail.last;
        let path = layout::journal_head();
        match head {
            HeadFile::Missing if tail.last.is_some() => {
                let message = "it does not exist: an earlier version wrote the journal, or no run has ended, so verify cannot tell whether records were cut off";
                self.add(Severity::Note, None, None, Some(&path), message.to_owned());
            }
            HeadFile::Damaged => {
                let message = format!(
                    "it does not match its own checksum. Restore it from a copy; if the journal is complete, remove {path}: the next run writes it again"
                );
                self.add(Severity::Modified, None, None, Some(&path), message);
            }
            HeadFile::Whole(head) if found != Some(head.digest) => {
                let path = layout::journal().with(&segment_name(head));
                let message = format!(
                    "record {} was changed or cut off: the head of the journal names it. Restore the journal from a copy; if it is complete, remove {}",
                    head.records,
                    layout::journal_head()
                );
                self.add(Severity::Modified, None, None, Some(&path), message);
                return;
            }
            HeadFile::Missing | HeadFile::Whole(_) => {}
        }
        if tail.torn > 0 {
            self.note(
                None,
                None,
                "the last record of the journal is incomplete, because the run was killed while writing it: the next run removes it".to_owned(),
            );
        }
    }

    /// Notes files that a killed run did not put in place, and applies to the journal's state what recovery records about them.
    pub(super) fn interrupted(
        &mut self,
        journaled: &mut Journaled,
        present: &Snapshot,
    ) -> Result<(), OpsError> {
        let files = self.opened.workspace.layout.redirects().half_published();
        if files > 0 {
            self.note(None, None, half_published(files));
        }
        for event in present.lost.iter().filter(|_| !journaled.is_broken) {
            apply(&mut journaled.state, "", event).map_err(RunError::from)?;
        }
        Ok(())
    }

    /// Lists the approvals, and compares those that a new segment of the journal begins with to the records of the segments before.
    pub(super) fn approvals(&mut self, recorded: &Journaled, present: &State) {
        for (stage, message) in &recorded.untrue {
            let message = message.clone();
            self.add(Severity::Modified, Some(stage), None, None, message);
        }
        for (stage, approved) in &present.approvals {
            let journaled = recorded.state.approvals.get(stage);
            let is_same = journaled.is_some_and(|one| one.approval == approved.approval);
            if !is_same && !recorded.is_broken {
                let message = "its approval is not the one that the journal records".to_owned();
                self.add(Severity::Modified, Some(stage), None, None, message);
            }
            let approval = approved.approval.clone();
            self.approvals.insert(stage.clone(), approval);
        }
    }

    /// Compares the manifests with the journal, and their bytes with what the journal says they are.
    pub(super) fn manifests(
        &mut self,
        journaled: &Journaled,
        present: &State,
    ) -> Result<(), OpsError> {
        let recorded = &journaled.state;
        if journaled.is_broken {
            return Ok(());
        }
        let workspace = &self.opened.workspace.layout;
        let (records, _) = journal::read_since_seal(workspace)?;
        let lost = lost_manifests(workspace, &records)?;
        for (name, known) in &present.stages {
            let folder = layout::manifest(name);
            if lost.contains_key(name) {
                let message = "it lacks pages: the next run rebuilds it from the journal";
                let message = message.to_owned();
                self.add(Severity::Missing, Some(name), None, Some(&folder), message);
                continue;
            }
            let expected = recorded.stages.get(name).map(manifest::kept);
            let expected = expected.unwrap_or_default();
            if expected.batches.is_empty() && known.count() > 0 {
                let message = "the journal does not record it: restore `.milepost` from a copy";
                let message = message.to_owned();
                self.add(Severity::Missing, Some(name), None, Some(&folder), message);
                continue;
            }
            for (key, batch) in &manifest::kept(known).batches {
                if expected.batches.get(key) != Some(batch) {
                    let message = format!(
                        "the manifest and the journal differ about {}",
                        batch_name(name, key)
                    );
                    self.add(
                        Severity::Modified,
                        Some(name),
                        Some(key),
                        Some(&folder),
                        message,
                    );
                }
            }
            let missing = expected
                .batches
                .iter()
                .filter(|(key, batch)| batch.record.is_some() && !known.batches.contains_key(*key))
                .count();
            if missing > 0 {
                let missing = count(missing as u64, "batch", "batches");
                let message = format!("the manifest lacks {missing} of the journal");
                self.add(Severity::Modified, Some(name), None, Some(&folder), message);
            }
            self.pages(name, journaled)?;
        }
        Ok(())
    }

    /// Compares each page of a manifest with what the journal says that it is. An interrupted run may have left the page of an
    /// earlier state, or of a later one.
    fn pages(&mut self, name: &str, journaled: &Journaled) -> Result<(), OpsError> {
        let layout = &self.opened.workspace.layout;
        let Some(last) = journaled.state.stages.get(name) else {
            return Ok(());
        };
        let written = journaled.sealed.get(name);
        let mut changed = manifest::changed_pages(layout, name, written.unwrap_or(last))?;
        if written.is_some() && !changed.is_empty() {
            let later = manifest::changed_pages(layout, name, last)?;
            changed.retain(|page| later.contains(page));
        }
        for page in changed {
            let inside = self.inside(&page);
            let is_whole = journaled.is_ended && !journaled.unsealed.contains(name);
            let (severity, message) = if is_whole {
                (
                    Severity::Modified,
                    "it differs from the content that the journal records",
                )
            } else {
                (
                    Severity::Note,
                    "an interrupted run left it: changes are not found before the next run",
                )
            };
            self.add(
                severity,
                Some(name),
                None,
                inside.as_ref(),
                message.to_owned(),
            );
        }
        Ok(())
    }
}

/// Returns true if a record is the one that the head names.
fn is_at(head: &HeadFile, (segment, line): (u64, u64)) -> bool {
    matches!(head, HeadFile::Whole(head) if (head.segment, head.records) == (segment, line))
}

fn segment_name(head: &JournalHead) -> RelPath {
    let name = format!("{:06}.jsonl", head.segment);
    RelPath::of_parts([name.as_str()])
}
