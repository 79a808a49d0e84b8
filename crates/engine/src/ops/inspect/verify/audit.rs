//! An audit in progress, to which each check adds its findings.

use super::findings::{Checked, Finding, Severity, Verified};
use crate::ops::project::open_project::OpenProject;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use milepost_core::model::approval::Approval;
use milepost_core::model::record::Override;
use milepost_core::model::state::State;
use milepost_store::store::layout;
use std::collections::BTreeMap;
use std::path::Path;

/// An audit in progress.
pub(super) struct Audit<'a> {
    pub(super) opened: &'a OpenProject,
    pub(super) findings: Vec<Finding>,
    pub(super) checked: Checked,
    pub(super) overrides: Vec<Override>,
    pub(super) approvals: BTreeMap<String, Approval>,
    pub(super) head: Option<Digest>,
}

impl Audit<'_> {
    pub(super) fn add(
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

    pub(super) fn note(&mut self, stage: Option<&str>, batch: Option<&str>, message: String) {
        self.add(Severity::Note, stage, batch, None, message);
    }

    /// Returns the path of a file relative to the workspace; `None` if it is outside.
    pub(super) fn inside(&self, path: &Path) -> Option<RelPath> {
        let inside = path
            .strip_prefix(self.opened.workspace.layout.root())
            .ok()?;
        RelPath::parse(inside.to_str()?).ok()
    }

    /// Drops the findings about batches that a run changed between two states.
    pub(super) fn leave_out_changed(&mut self, before: &State, after: &State) {
        let of = |state: &State, stage: &str, batch: &str| {
            let known = state.stages.get(stage)?.batches.get(batch)?;
            Some((known.record.clone(), known.remains.clone()))
        };
        self.findings.retain(|finding| {
            let (Some(stage), Some(batch)) = (&finding.stage, &finding.batch) else {
                return true;
            };
            of(before, stage, batch) == of(after, stage, batch)
        });
    }

    pub(super) fn finish(mut self, deep: bool) -> Verified {
        let is_own = |path: &String| path.starts_with(&format!("{}/", layout::OWN));
        self.findings.sort_by_key(|finding| {
            let is_output = finding.path.as_ref().is_some_and(|path| !is_own(path));
            let rank = match finding.severity {
                Severity::Modified | Severity::Missing => 0,
                Severity::Invalid => 1,
                Severity::Note => 2,
            };
            (rank, rank == 0 && !is_output, finding.severity)
        });
        Verified {
            findings: self.findings,
            checked: self.checked,
            overrides: self.overrides,
            approvals: self.approvals,
            head: self.head,
            deep,
        }
    }
}
