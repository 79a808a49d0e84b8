//! The state of a workspace as readers see it when a run ended, or is, between the records of batches and the moves of their files.

use crate::ops::project::error::OpsError;
use crate::run::error::RunError;
use crate::run::record::recover::lost;
use milepost_core::base::path::RelPath;
use milepost_core::base::words;
use milepost_core::model::event::Event;
use milepost_core::model::state::{StageState, State, Unsettled};
use milepost_core::plan::machine::apply;
use milepost_store::store::layout::Layout;
use milepost_store::store::publish::{RecoveredFile, recovered};
use milepost_store::store::redirects::Redirect;
use std::collections::{BTreeMap, BTreeSet};

/// Recovers in memory: redirects reads of the files that the next run moves in its recovery, or that the run in progress moves, and
/// applies to the state what the next run records. Returns these events. Nothing is written.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn recover_for_reading(
    layout: &Layout,
    state: &mut State,
    is_running: bool,
) -> Result<Vec<Event>, OpsError> {
    let events = redirect(layout, state, is_running)?;
    for event in &events {
        apply(state, "", event).map_err(RunError::from)?;
    }
    Ok(events)
}

/// Redirects reads as [`recover_for_reading`] does, and returns the events without applying them.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn redirect(
    layout: &Layout,
    state: &State,
    is_running: bool,
) -> Result<Vec<Event>, OpsError> {
    let mut redirects = BTreeMap::new();
    let mut events = Vec::new();
    if state.unsettled.is_empty() && state.retiring.is_empty() {
        layout.redirects().clear();
        return Ok(events);
    }
    for batch in &state.unsettled {
        if is_running {
            redirects.extend(batch.files.iter().map(|file| {
                let scratch = file.scratch.clone();
                (file.path.clone(), Redirect::Published(scratch))
            }));
        } else {
            let found = recovered(layout, &batch.files).map_err(RunError::from)?;
            redirects.extend(redirects_of(batch, &found));
            events.extend(lost(batch, &found));
        }
    }
    let outputs = state.stages.values().flat_map(StageState::outputs);
    let live: BTreeSet<&RelPath> = outputs.map(|(_, made)| &made.path).collect();
    let retiring = state.retiring.iter();
    let retiring = retiring.filter(|(path, _)| !live.contains(path));
    redirects.extend(retiring.map(|(path, aside)| {
        let redirect = Redirect::Retired(aside.clone());
        (path.clone(), redirect)
    }));
    layout.redirects().set(redirects, is_running);
    Ok(events)
}

/// Returns what is shown of files that a killed run published and did not put in place.
pub fn half_published(files: u64) -> String {
    let files = words::count(files, "file", "files");
    format!("a killed run left {files} half published: the next run continues")
}

/// Returns the files of a batch that recovery moves.
fn redirects_of<'a>(
    batch: &'a Unsettled,
    recovered: &'a [RecoveredFile],
) -> impl Iterator<Item = (RelPath, Redirect)> + 'a {
    let files = batch.files.iter().zip(recovered);
    files.filter_map(|(file, recovered)| {
        let redirect = match (recovered, &file.quarantine) {
            (RecoveredFile::Renamed, _) => Redirect::Published(file.scratch.clone()),
            (RecoveredFile::Lost { old: Some(_) }, Some(aside)) => Redirect::Retired(aside.clone()),
            _ => return None,
        };
        Some((file.path.clone(), redirect))
    })
}
