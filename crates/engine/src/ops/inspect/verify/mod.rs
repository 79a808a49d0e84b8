//! Audits a workspace: compares all files with their records.

mod audit;
mod batches;
mod calls;
mod files;
mod findings;
mod journal;

pub use findings::{Checked, Finding, Severity, Verified};

use crate::ops::inspect::untracked::untracked;
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open_recorded;
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::Snapshot;
use audit::Audit;
use milepost_store::store::lock::Lock;
use std::collections::BTreeMap;

/// Compares all files with their records; with `deep`, checks all outputs again. Nothing is written.
///
/// # Errors
/// When there is no project, or a manifest cannot be read.
pub fn verify(request: &Request, deep: bool) -> Result<Verified, OpsError> {
    let opened = open_recorded(request)?;
    let mut audit = Audit {
        opened: &opened,
        findings: Vec::new(),
        checked: Checked::default(),
        overrides: Vec::new(),
        approvals: BTreeMap::new(),
        head: None,
    };
    let mut recorded = audit.journal()?;
    audit.self_checked();
    let present = Snapshot::read(&opened.workspace.layout);
    audit.calls(
        &recorded.calls,
        present.as_ref().ok().map(|present| &present.state),
    )?;
    let present = match present {
        Ok(present) => present,
        // A broken journal is a finding. Without the end of the journal, the manifests alone are not the state.
        Err(OpsError::Journal(_)) if !audit.findings.is_empty() => {
            return Ok(audit.finish(deep));
        }
        Err(OpsError::Manifest(error)) => {
            audit.add(Severity::Modified, None, None, None, error.to_string());
            return Ok(audit.finish(deep));
        }
        Err(error) => return Err(error),
    };
    if let Some(runner) = &present.runner {
        let message = format!(
            "`{}` is running (run {}): manifests, checkpoints and the batches that it finished meanwhile are not compared",
            runner.command, runner.run_id
        );
        audit.note(None, None, message);
    }
    // A run that ends in order leaves no name in its lock.
    let is_open = recorded.is_open || Lock::peek(&opened.workspace.layout.lock()).is_some();
    audit.interrupted(&mut recorded, &present)?;
    if present.runner.is_none() {
        audit.manifests(&recorded, &present.state)?;
    }
    audit.approvals(&recorded, &present.state);
    for (name, known) in &present.state.stages {
        audit.accepted(name, known);
        audit.files(name, known);
        if present.runner.is_none() {
            audit.checkpoint(name, known, &present.state, is_open)?;
        }
    }
    if present.runner.is_none() {
        audit.unrecorded_checkpoints(&present.state, is_open)?;
    }
    audit.batches(&present.state, deep);
    if present.runner.is_some() {
        let now = Snapshot::read(&opened.workspace.layout)?.state;
        audit.leave_out_changed(&present.state, &now);
    }
    if present.runner.is_none() && opened.problems.is_none() {
        let found = untracked(&opened, &present.state)?;
        for path in found {
            let message = "not written by a stage".to_owned();
            audit.add(Severity::Note, None, None, Some(&path), message);
        }
    }
    Ok(audit.finish(deep))
}
