//! Locks a workspace, and reads its state and journal for a change.

use crate::ops::project::error::OpsError;
use crate::ops::project::lost_manifests::lost_manifests;
use crate::ops::project::open_project::{OpenProject, replay_by_page};
use crate::run::notice::Repair;
use crate::run::record::recorder::Recorder;
use crate::run::record::recover::recover;
use jiff::Timestamp;
use milepost_core::model::state::State;
use milepost_core::plan::options::Timing;
use milepost_store::store::id::new_id;
use milepost_store::store::journal::{Journal, TornTail};
use milepost_store::store::lock::{Holder, Lock};
use milepost_store::store::manifest;
use std::path::PathBuf;
use std::sync::Arc;

/// A locked workspace. No other process changes it until this is dropped.
pub struct LockedWorkspace {
    pub(crate) lock: Lock,
    /// The journal, open for appending.
    pub journal: Journal,
    /// The recorded state.
    pub state: State,
    /// The torn record that was cut off the end of the journal.
    pub(crate) cut: Option<TornTail>,
    /// The stages whose manifests were gone.
    pub(crate) rebuilt: Vec<String>,
}

impl LockedWorkspace {
    /// Repairs what a killed run left. Returns the recorder of changes, and the repairs; dropping the lock frees the workspace.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn recover<'a>(
        self,
        opened: &'a OpenProject,
        command: &str,
    ) -> Result<(Lock, Recorder<'a>, Vec<Repair>), OpsError> {
        let mut recorder = Recorder::new(opened.context(), self.state, self.journal, command);
        let repairs = recover(&mut recorder, Timing::default().grace)?;
        Ok((self.lock, recorder, repairs))
    }
}

/// A locked workspace, before its state is read.
pub(crate) struct WorkspaceLock {
    lock: Lock,
    /// The id of the run that holds the lock.
    pub(crate) run_id: String,
    /// Private folders that other users may still read.
    pub(crate) open_folders: Vec<PathBuf>,
    /// The dead process that held the lock before.
    dead: Option<Holder>,
}

/// Creates the workspace if it does not exist, locks it, and reads its state. `command` is shown to other processes that find it
/// locked.
///
/// # Errors
/// When another process has locked it, or the disk fails.
pub fn lock_and_read(opened: &mut OpenProject, command: &str) -> Result<LockedWorkspace, OpsError> {
    lock(opened, command)?.read(opened)
}

/// Creates the workspace if it does not exist, and locks it.
///
/// # Errors
/// When another process has locked it, or the disk fails.
pub(crate) fn lock(opened: &mut OpenProject, command: &str) -> Result<WorkspaceLock, OpsError> {
    let command = &opened.redactor.text(command).into_owned();
    let now = opened.clock.now();
    opened.workspace.prepare(&opened.disk)?;
    let run_id = fresh_id(now)?;
    let holder = Holder::this(&run_id, now, command);
    let (lock, dead) = Lock::take(&opened.disk, &opened.workspace.layout.lock(), &holder)?;
    opened.workspace.make(&opened.disk, now)?;
    let open_folders = opened
        .workspace
        .close_folders(&opened.disk, &opened.project);
    let identity = &opened.workspace.identity;
    let shown = &mut opened.settings.workspace;
    shown.insert("session_id".into(), identity.session_id.clone().into());
    shown.insert("created".into(), identity.created_text().into());
    Ok(WorkspaceLock {
        lock,
        run_id,
        open_folders,
        dead,
    })
}

/// Returns a new id of a run or lease.
///
/// # Errors
/// When the system provides no random bytes.
pub(crate) fn fresh_id(now: Timestamp) -> Result<String, OpsError> {
    new_id(now).map_err(|error| OpsError::World(error.to_string()))
}

impl WorkspaceLock {
    /// Reads the recorded state, and opens the journal.
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
        // The caller recovers on the disk.
        layout.redirects().clear();
        let lost = lost_manifests(layout, &journal.records)?;
        for (stage, known) in &lost {
            // The pages that are left would change how the others are divided.
            manifest::remove(&opened.disk, layout, stage)?;
            manifest::write(&opened.disk, layout, stage, known)?;
        }
        let state = replay_by_page(opened, &journal.records)?;
        if self.dead.is_some() || state.open_run.is_some() || !state.unsettled.is_empty() {
            // The last changes of a killed run are visible, but perhaps not durable yet.
            let segment = layout.segment(journal.journal.segment());
            let files = [layout.root(), &segment];
            opened.disk.sync_filesystem(layout.root(), &files)?;
        }
        Ok(LockedWorkspace {
            lock: self.lock,
            journal: journal.journal,
            state,
            cut: journal.cut,
            rebuilt: lost.into_keys().collect(),
        })
    }
}
