//! Audits a workspace: compares all files with their records.

use crate::ops::inspect::untracked::orphans;
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::open_project::{OpenProject, scan_stage};
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::Snapshot;
use crate::run::check::revalidate::holds;
use crate::run::check::scan::Keep;
use crate::run::record::finish;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use milepost_core::model::event::Event;
use milepost_core::model::record::Override;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::{StageState, State};
use milepost_core::plan::decide::{Decision, RebuildPolicy};
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::machine::apply;
use milepost_core::plan::overrides;
use milepost_store::check::schemas::Schemas;
use milepost_store::store::files::digest_of;
use milepost_store::store::{accepted, checkpoint, journal, layout, manifest};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The result of an audit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Verified {
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
    /// What was checked.
    pub checked: Checked,
    /// Outputs that were modified by hand and accepted: their digests match the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    /// True if schemas, checks and conservation were checked again.
    pub deep: bool,
}

/// Something that is wrong or worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Finding {
    /// How severe it is.
    pub severity: Severity,
    /// The stage concerned.
    pub stage: Option<String>,
    /// The batch concerned.
    pub batch: Option<String>,
    /// The file concerned, in the workspace.
    pub path: Option<String>,
    /// The finding in one line.
    pub message: String,
}

/// How severe a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A file does not match its record: exit code 5.
    Altered,
    /// An output violates a declared schema, check or conservation: exit code 1.
    Invalid,
    /// Nothing is wrong.
    Note,
}

/// Numbers of what was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Checked {
    /// Files compared with their digests.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Records of the journal.
    pub records: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Batches checked again.
    pub batches: u64,
}

impl Verified {
    /// Returns the exit code: 0 fine, 1 invalid, 5 modified.
    pub fn exit_code(&self) -> u8 {
        match self.findings.first().map(|finding| finding.severity) {
            Some(Severity::Altered) => 5,
            Some(Severity::Invalid) => 1,
            Some(Severity::Note) | None => 0,
        }
    }
}

/// Compares all files with their records; with `deep`, checks all outputs again. Nothing is written.
///
/// # Errors
/// When there is no project, its declarations are wrong, or a manifest cannot be read.
pub fn verify(request: &Request, deep: bool) -> Result<Verified, OpsError> {
    let opened = open(request)?;
    let mut audit = Audit {
        opened: &opened,
        findings: Vec::new(),
        checked: Checked::default(),
        overrides: Vec::new(),
    };
    let recorded = audit.journal()?;
    let present = match Snapshot::read(&opened.workspace.layout) {
        Ok(present) => present,
        // A break of the journal is a finding. Without the journal's end, the manifests are no state.
        Err(OpsError::Journal(_)) if !audit.findings.is_empty() => {
            return Ok(audit.finish(deep));
        }
        Err(error) => return Err(error),
    };
    if let Some(runner) = &present.runner {
        let message = format!(
            "`{}` is running (run {}): findings may concern files that it writes",
            runner.command, runner.run_id
        );
        audit.note(None, None, message);
    }
    audit.manifests(&recorded, &present.state);
    for (name, known) in &present.state.stages {
        audit.accepted(name, known)?;
        audit.files(name, known)?;
        audit.checkpoint(name, known, &present.state)?;
    }
    audit.strange_checkpoints(&present.state)?;
    audit.batches(&present.state, deep);
    if present.runner.is_none() {
        let found = orphans(&opened, &present.state)?;
        for path in found {
            let message = "not written by a stage".to_owned();
            audit.add(Severity::Note, None, None, Some(&path), message);
        }
    }
    Ok(audit.finish(deep))
}

struct Audit<'a> {
    opened: &'a OpenProject,
    findings: Vec<Finding>,
    checked: Checked,
    overrides: Vec<Override>,
}

impl Audit<'_> {
    fn add(
        &mut self,
        severity: Severity,
        stage: Option<&str>,
        batch: Option<&str>,
        path: Option<&RelPath>,
        message: String,
    ) {
        self.findings.push(Finding {
            severity,
            stage: stage.map(str::to_owned),
            batch: batch.map(str::to_owned),
            path: path.map(ToString::to_string),
            message,
        });
    }

    fn note(&mut self, stage: Option<&str>, batch: Option<&str>, message: String) {
        self.add(Severity::Note, stage, batch, None, message);
    }

    fn finish(mut self, deep: bool) -> Verified {
        self.findings.sort_by_key(|finding| finding.severity);
        Verified {
            findings: self.findings,
            checked: self.checked,
            overrides: self.overrides,
            deep,
        }
    }

    /// Reads the whole journal: its chain, and the state that follows from it.
    fn journal(&mut self) -> Result<State, OpsError> {
        let mut state = State::default();
        let mut refused = None;
        let mut records = 0;
        let read = journal::read_all(&self.opened.workspace.layout, &mut |place, record| {
            records += 1;
            // Earlier records repeat what the manifests contain.
            if matches!(record.event, Event::Sealed { .. }) || refused.is_some() {
                return;
            }
            if let Err(error) = apply(&mut state, &record.run_id, &record.event) {
                refused = Some(format!("{place}: {error}"));
            }
        });
        self.checked.records = records;
        match read {
            Ok(tail) if tail.torn > 0 => self.note(
                None,
                None,
                "the last record of the journal is incomplete, because the run was killed while writing it: the next run removes it".to_owned(),
            ),
            Ok(_) => {}
            Err(error @ journal::JournalError::Read { .. }) => return Err(error.into()),
            Err(error) => self.add(Severity::Altered, None, None, None, error.to_string()),
        }
        if let Some(message) = refused {
            self.add(Severity::Altered, None, None, None, message);
        }
        Ok(state)
    }

    /// Compares the manifests with the journal.
    fn manifests(&mut self, recorded: &State, present: &State) {
        if self
            .findings
            .iter()
            .any(|finding| finding.severity == Severity::Altered)
        {
            return;
        }
        for (name, known) in &present.stages {
            let folder = layout::manifest(name);
            let expected = recorded.stages.get(name).map(manifest::kept);
            let expected = expected.unwrap_or_default();
            for (key, batch) in &manifest::kept(known).batches {
                if expected.batches.get(key) != Some(batch) {
                    let message = format!(
                        "the manifest and the journal differ about {}",
                        batch_name(name, key)
                    );
                    self.add(
                        Severity::Altered,
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
                let message = format!("{missing} batches of the journal are not in the manifest");
                self.add(Severity::Altered, Some(name), None, Some(&folder), message);
            }
        }
    }

    /// Lists accepted modifications, and compares the stored copies with their digests.
    fn accepted(&mut self, stage: &str, known: &StageState) -> Result<(), OpsError> {
        for one in overrides::of_stage(stage, known) {
            if let (Some(to), true) = (one.to, one.at.is_some()) {
                let copy = accepted::place(to);
                let place = self.opened.workspace.layout.at(&copy);
                let found = digest_of(&place).map_err(OpsError::unreadable(&copy))?;
                let key = Some(one.batch.as_str());
                match found {
                    Some((digest, _)) if digest == to => {}
                    Some(_) => {
                        let message = "the copy of accepted content was modified".to_owned();
                        self.add(Severity::Altered, Some(stage), key, Some(&copy), message);
                    }
                    None => {
                        let message = "the copy of accepted content is missing".to_owned();
                        self.add(Severity::Note, Some(stage), key, Some(&copy), message);
                    }
                }
            }
            self.overrides.push(one);
        }
        Ok(())
    }

    /// Compares each recorded file with its digest, without the cache.
    fn files(&mut self, stage: &str, known: &StageState) -> Result<(), OpsError> {
        for (key, made) in known.outputs() {
            let place = self.opened.workspace.layout.at(&made.path);
            let found = digest_of(&place).map_err(OpsError::unreadable(&made.path))?;
            let message = match found {
                None => "it is not there".to_owned(),
                Some((digest, size)) => {
                    self.checked.files += 1;
                    self.checked.bytes += size;
                    if digest == made.digest {
                        continue;
                    }
                    format!(
                        "its recorded digest is {}…, and its present one {}…",
                        made.digest.short(),
                        digest.short()
                    )
                }
            };
            self.add(
                Severity::Altered,
                Some(stage),
                Some(key),
                Some(&made.path),
                message,
            );
        }
        Ok(())
    }

    /// Compares a stage's checkpoint with the journal and the manifest.
    fn checkpoint(
        &mut self,
        stage: &str,
        known: &StageState,
        state: &State,
    ) -> Result<(), OpsError> {
        let Some(recorded) = state.checkpoints.get(stage) else {
            return Ok(());
        };
        let layout = &self.opened.workspace.layout;
        let path = layout::checkpoint(known.number);
        let found = match checkpoint::read(layout, known.number) {
            Ok(Some(found)) => found,
            Ok(None) => {
                let message = "it is not there: the next run writes it".to_owned();
                self.add(Severity::Altered, Some(stage), None, Some(&path), message);
                return Ok(());
            }
            Err(error) => {
                let message = error.to_string();
                self.add(Severity::Altered, Some(stage), None, Some(&path), message);
                return Ok(());
            }
        };
        self.checked.checkpoints += 1;
        let mut wrong = Vec::new();
        if found.digest != *recorded {
            wrong.push(format!(
                "its recorded digest is {}…, and its present one {}…",
                recorded.short(),
                found.digest.short()
            ));
        }
        let said = &found.checkpoint;
        let records: Vec<_> = known
            .batches
            .values()
            .filter_map(|batch| batch.record.as_ref())
            .collect();
        let files: Vec<_> = records.iter().flat_map(|record| &record.outputs).collect();
        let output = match files.as_slice() {
            [one] => Some(one.digest),
            _ => manifest::digest(layout, stage)?,
        };
        let input = finish::inputs_digest(&finish::inputs(&records));
        for (what, said, is) in [
            ("checksums.output", said.checksums.output, output),
            ("checksums.input", said.checksums.input, Some(input)),
        ] {
            if Some(said) != is {
                wrong.push(format!(
                    "its {what} is {}…, and by the manifest {}",
                    said.short(),
                    is.map_or("nothing".to_owned(), |is: Digest| format!(
                        "{}…",
                        is.short()
                    ))
                ));
            }
        }
        for message in wrong {
            self.add(Severity::Altered, Some(stage), None, Some(&path), message);
        }
        Ok(())
    }

    /// Finds checkpoints without a record.
    fn strange_checkpoints(&mut self, state: &State) -> Result<(), OpsError> {
        let known: BTreeMap<u32, &String> = state
            .stages
            .iter()
            .filter(|(name, _)| state.checkpoints.contains_key(*name))
            .map(|(name, stage)| (stage.number, name))
            .collect();
        let found = checkpoint::list(&self.opened.workspace.layout)
            .map_err(crate::run::error::RunError::from)?;
        for number in found.keys().filter(|number| !known.contains_key(number)) {
            let path = layout::checkpoint(*number);
            let message = "no record lists it".to_owned();
            self.add(Severity::Altered, None, None, Some(&path), message);
        }
        Ok(())
    }

    /// Finds batches that are out of date; with `deep`, checks the others again.
    fn batches(&mut self, state: &State, deep: bool) {
        let opened = self.opened;
        let ctx = opened.context();
        let (schemas, never) = (Schemas::default(), Arc::default());
        for stage in &opened.pipeline.stages {
            let Some(known) = state.stages.get(&stage.name) else {
                continue;
            };
            let needed = RebuildPolicy::Needed;
            let found = match scan_stage(&ctx, stage, state, needed, Keep::All) {
                Ok(found) => found,
                Err(why) => {
                    self.note(Some(&stage.name), None, why);
                    continue;
                }
            };
            let mut outdated = 0;
            let mut unjudged = 0;
            for batch in &found.batches {
                let key = &batch.batch.key;
                let Some(record) = known
                    .batches
                    .get(key)
                    .and_then(|batch| batch.record.as_ref())
                else {
                    continue;
                };
                match &batch.decision {
                    Ok(Decision::Reused) if record.failure().is_none() => {}
                    Ok(Decision::Judge(_)) if record.failure().is_none() => unjudged += 1,
                    Ok(Decision::Altered(_)) => continue,
                    _ => {
                        outdated += 1;
                        continue;
                    }
                }
                if deep {
                    self.checked.batches += 1;
                    let held = holds(
                        &ctx,
                        stage,
                        batch,
                        (&record.outputs, &record.failed_keys()),
                        &schemas,
                        &never,
                    );
                    if let Err(outcome) = held {
                        self.invalid(stage, key, &outcome);
                    }
                }
            }
            if unjudged > 0 && !deep {
                let message = format!(
                    "{unjudged} of its batches must be validated again: `milepost verify --deep` does so without writing"
                );
                self.note(Some(&stage.name), None, message);
            }
            if outdated > 0 {
                let message = format!(
                    "{outdated} of its batches are out of date: `milepost why {}` shows why",
                    stage.name
                );
                self.note(Some(&stage.name), None, message);
            }
        }
    }

    fn invalid(
        &mut self,
        stage: &Stage,
        key: &str,
        outcome: &milepost_core::model::outcome::Outcome,
    ) {
        self.add(
            Severity::Invalid,
            Some(&stage.name),
            Some(key),
            None,
            outcome.to_string(),
        );
    }
}
