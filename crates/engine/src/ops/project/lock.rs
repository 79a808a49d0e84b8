//! Takes a workspace for writing: its lock, its journal, and what is known of it.

use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::{OpenProject, replay};
use milepost_core::model::state::State;
use milepost_store::store::id::new_id;
use milepost_store::store::journal::{Cut, Journal};
use milepost_store::store::lock::{Holder, Lock};
use std::sync::Arc;

/// A workspace that nobody else writes while this is there.
pub struct LockedWorkspace {
    /// LockedWorkspace until this is dropped.
    pub(crate) lock: Lock,
    /// To append to.
    pub journal: Journal,
    /// What is known.
    pub state: State,
    /// What was cut off the journal's end.
    pub(crate) cut: Option<Cut>,
}

/// A workspace that is locked, and not read yet.
pub(crate) struct WorkspaceLock {
    lock: Lock,
    /// The run that has it.
    pub(crate) run_id: String,
    /// Who had it last, if that run died with it.
    dead: Option<Holder>,
}

/// Takes the workspace, which is made if it was not, and reads what is known of it. `command` is what was asked for, for whoever
/// finds it locked.
///
/// # Errors
/// When another run has it, or the disk fails.
pub fn lock_and_read(opened: &mut OpenProject, command: &str) -> Result<LockedWorkspace, OpsError> {
    lock(opened, command)?.read(opened)
}

/// Takes the workspace, which is made if it was not.
///
/// # Errors
/// When another run has it, or the disk fails.
pub(crate) fn lock(opened: &mut OpenProject, command: &str) -> Result<WorkspaceLock, OpsError> {
    let command = &opened.redactor.text(command).into_owned();
    let now = opened.clock.now();
    opened.workspace.prepare(&opened.disk)?;
    let run_id =
        new_id(now).map_err(|error| OpsError::World(format!("no random numbers: {error}")))?;
    let holder = Holder::this(&run_id, now, command);
    let (lock, dead) = Lock::take(&opened.disk, &opened.workspace.layout.lock(), &holder)?;
    opened.workspace.make(&opened.disk, now)?;
    let identity = &opened.workspace.identity;
    let shown = &mut opened.settings.workspace;
    shown.insert("session_id".into(), identity.session_id.clone().into());
    shown.insert("created".into(), identity.created_text().into());
    Ok(WorkspaceLock { lock, run_id, dead })
}

impl WorkspaceLock {
    /// Reads what is known of the workspace.
    ///
    /// # Errors
    /// When a manifest or the journal is damaged.
    pub(crate) fn read(self, opened: &OpenProject) -> Result<LockedWorkspace, OpsError> {
        let layout = &opened.workspace.layout;
        let journal = Journal::open(
            &opened.disk,
            layout,
            Arc::clone(&opened.clock),
            &opened.workspace.identity.session_id,
            &self.run_id,
        )?;
        let state = replay(layout, &journal.records)?;
        if self.dead.is_some() || state.open_run.is_some() || !state.unsettled.is_empty() {
            // What the run that ended there left is seen, and perhaps not durable: its last records, a checkpoint removed. What
            // follows builds on it.
            let segment = layout.segment(journal.journal.segment());
            let files = [layout.root(), &segment];
            opened.disk.sync_filesystem(layout.root(), &files)?;
        }
        Ok(LockedWorkspace {
            lock: self.lock,
            journal: journal.journal,
            state,
            cut: journal.cut,
        })
    }
}
