//! Takes a workspace for writing: its lock, its journal, and what is known of it.

use super::open::{Opened, OpsError, replay};
use crate::model::state::State;
use crate::store::id::new_id;
use crate::store::journal::{Cut, Journal};
use crate::store::lock::{Holder, Lock};
use std::sync::Arc;

/// A workspace that nobody else writes while this is there.
pub struct Held {
    /// Held until this is dropped.
    pub lock: Lock,
    /// To append to.
    pub journal: Journal,
    /// What is known.
    pub state: State,
    /// What was cut off the journal's end.
    pub cut: Option<Cut>,
}

/// Takes the workspace, which is made if it was not. `command` is what was asked for, for whoever finds it locked.
///
/// # Errors
/// When another run has it, or the disk fails.
pub fn hold(opened: &mut Opened, command: &str) -> Result<Held, OpsError> {
    let now = opened.clock.now();
    opened.workspace.prepare(&opened.disk)?;
    let run_id =
        new_id(now).map_err(|error| OpsError::World(format!("no random numbers: {error}")))?;
    let holder = Holder::this(&run_id, now, command);
    let layout = opened.workspace.layout.clone();
    let (lock, dead) = Lock::take(&opened.disk, &layout.lock(), &holder)?;
    opened.workspace.make(&opened.disk, now)?;
    let session = opened.workspace.identity.session_id.clone();
    opened
        .settings
        .workspace
        .insert("session_id".into(), session.clone().into());
    let journal = Journal::open(
        &opened.disk,
        &layout,
        Arc::clone(&opened.clock),
        &session,
        &run_id,
    )?;
    let state = replay(&layout, &journal.records)?;
    if dead.is_some() || state.open_run.is_some() || !state.unsettled.is_empty() {
        // What the run that ended there left is seen, and perhaps not durable: its last records, a checkpoint removed. What
        // follows builds on it.
        let segment = layout.segment(journal.journal.segment());
        let files = [layout.root(), &segment];
        opened.disk.sync_filesystem(layout.root(), &files)?;
    }
    Ok(Held {
        lock,
        journal: journal.journal,
        state,
        cut: journal.cut,
    })
}
