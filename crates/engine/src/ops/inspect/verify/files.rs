//! Checks files against their records: accepted content, outputs and checkpoints.

use super::audit::Audit;
use super::findings::{Finding, Severity};
use crate::ops::project::error::OpsError;
use crate::run::record::protect;
use milepost_core::base::digest::Digest;
use milepost_core::model::state::{StageState, State};
use milepost_core::model::totals;
use milepost_core::plan::overrides;
use milepost_store::store::files::digest_of;
use milepost_store::store::self_checked::SelfCheck;
use milepost_store::store::{accepted, checkpoint, layout, manifest, progress, workspace};
use std::collections::BTreeMap;

/// Returns how a file differs from its record.
pub(super) fn differs(recorded: Digest, present: Digest) -> String {
    format!(
        "expected digest {}…, found {}…",
        recorded.short(),
        present.short()
    )
}

/// Returns why a file cannot be compared with its record.
fn unreadable(error: &std::io::Error) -> String {
    format!("it cannot be read: {error}")
}

impl Audit<'_> {
    /// Lists accepted modifications, and compares the stored copies with their digests.
    pub(super) fn accepted(&mut self, stage: &str, known: &StageState) {
        for one in overrides::of_stage(stage, known) {
            if let (Some(to), true) = (one.to, one.at.is_some()) {
                let copy = accepted::place(to);
                let place = self.opened.workspace.layout.at(&copy);
                let key = Some(one.batch.as_str());
                match digest_of(&place) {
                    Ok(Some((digest, _))) if digest == to => {}
                    Err(error) => {
                        let message = unreadable(&error);
                        self.add(Severity::Modified, Some(stage), key, Some(&copy), message);
                    }
                    Ok(Some(_)) => {
                        let message = "the copy of accepted content was modified".to_owned();
                        self.add(Severity::Modified, Some(stage), key, Some(&copy), message);
                    }
                    Ok(None) => {
                        let message = "the copy of accepted content is missing".to_owned();
                        self.add(Severity::Note, Some(stage), key, Some(&copy), message);
                    }
                }
            }
            self.overrides.push(one);
        }
    }

    /// Compares each recorded file with its digest, without the cache.
    pub(super) fn files(&mut self, stage: &str, known: &StageState) {
        for (key, made) in known.outputs() {
            let place = self.opened.workspace.layout.at(&made.path);
            let mut severity = Severity::Modified;
            let message = match digest_of(&place) {
                Err(error) => unreadable(&error),
                Ok(None) => {
                    severity = Severity::Missing;
                    "it does not exist".to_owned()
                }
                Ok(Some((digest, size))) => {
                    self.checked.files += 1;
                    self.checked.bytes += size;
                    if digest == made.digest {
                        continue;
                    }
                    differs(made.digest, digest)
                }
            };
            self.add(severity, Some(stage), Some(key), Some(&made.path), message);
        }
    }

    /// Compares a stage's checkpoint with the journal and the manifest.
    pub(super) fn checkpoint(
        &mut self,
        stage: &str,
        known: &StageState,
        state: &State,
        is_open: bool,
    ) -> Result<(), OpsError> {
        let Some(recorded) = state.checkpoints.get(stage) else {
            return Ok(());
        };
        let layout = &self.opened.workspace.layout;
        let path = layout::checkpoint(known.number);
        let found = match checkpoint::read(layout, known.number) {
            Ok(Some(found)) => found,
            Ok(None) => {
                // A run removes it before it changes the outputs.
                let severity = if is_open {
                    Severity::Note
                } else {
                    Severity::Missing
                };
                let message = "it does not exist: the next run writes it".to_owned();
                self.add(severity, Some(stage), None, Some(&path), message);
                return Ok(());
            }
            Err(error) => {
                let message = error.to_string();
                self.add(Severity::Modified, Some(stage), None, Some(&path), message);
                return Ok(());
            }
        };
        self.checked.checkpoints += 1;
        let mut wrong = Vec::new();
        if found.digest != *recorded {
            wrong.push(differs(*recorded, found.digest));
        }
        let said = &found.checkpoint;
        let folder = Some(layout::manifest(stage).to_string());
        let is_missing =
            |finding: &Finding| finding.severity == Severity::Missing && finding.path == folder;
        let has_manifest = !self.findings.iter().any(is_missing);
        let records: Vec<_> = known
            .batches
            .values()
            .filter_map(|batch| batch.record.as_ref())
            .collect();
        let files: Vec<_> = records.iter().flat_map(|record| &record.outputs).collect();
        // Earlier versions took the list of all inputs, and the bytes of all pages.
        let (input, digest) = if said.format < 2 {
            let inputs = totals::inputs(known.batches.values());
            let digest = manifest::joined_digest(layout, stage)?;
            (Some(totals::inputs_digest(&inputs)), digest)
        } else {
            let written = manifest::pages(layout, stage, known)?;
            let digest = (!written.pages.is_empty()).then_some(written.digest);
            (written.totals().inputs, digest)
        };
        let input = input.unwrap_or_else(|| Digest::of(""));
        let output = match files.as_slice() {
            [one] => Some(one.digest),
            _ => digest,
        };
        for (what, said, is) in [
            ("checksums.output", said.checksums.output, output),
            ("checksums.input", said.checksums.input, Some(input)),
        ] {
            if has_manifest && Some(said) != is {
                wrong.push(format!(
                    "its {what} is {}…, but the manifest has {}",
                    said.short(),
                    is.map_or("nothing".to_owned(), |is: Digest| format!(
                        "{}…",
                        is.short()
                    ))
                ));
            }
        }
        for message in wrong {
            self.add(Severity::Modified, Some(stage), None, Some(&path), message);
        }
        Ok(())
    }

    /// Compares the file of the workspace and the progress files of the stages with their own checksums.
    pub(super) fn self_checked(&mut self) {
        let layout = &self.opened.workspace.layout;
        let identity = (workspace::identity(), workspace::check_identity(layout));
        let stages = self.opened.pipeline.stages.iter();
        let progress = stages.filter_map(|stage| {
            let path = protect::progress_path(stage)?;
            Some((path.clone(), progress::check(&layout.at(path))))
        });
        let all: Vec<_> = std::iter::once(identity).chain(progress).collect();
        for (path, check) in all {
            let (severity, message) = match check {
                None | Some(SelfCheck::Whole) => continue,
                Some(SelfCheck::Changed) => {
                    (Severity::Modified, "it does not match its own checksum")
                }
                Some(SelfCheck::Unchecked) => (
                    Severity::Note,
                    "an earlier version wrote it without a checksum: changes are not found",
                ),
            };
            self.add(severity, None, None, Some(&path), message.to_owned());
        }
    }

    /// Finds checkpoints without a record.
    pub(super) fn unrecorded_checkpoints(
        &mut self,
        state: &State,
        is_open: bool,
    ) -> Result<(), OpsError> {
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
            let (severity, message) = if is_open {
                (
                    Severity::Note,
                    "the run that wrote it was killed before it recorded that: the next run writes it again",
                )
            } else {
                (Severity::Modified, "no record lists it")
            };
            self.add(severity, None, None, Some(&path), message.to_owned());
        }
        Ok(())
    }
}
