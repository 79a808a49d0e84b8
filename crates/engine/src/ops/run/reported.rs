//! The changes that the system reported to a watch, so that an up-to-date check of a large workspace covers nothing else.

use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::up_to_date::{Candidates, NotesId};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A full check that takes less than this is always made. Projects of tests are small.
const CHEAP_CHECK: Duration = if cfg!(debug_assertions) {
    Duration::ZERO
} else {
    Duration::from_millis(100)
};

/// The most paths that are kept; beyond them, everything is checked.
const MAX_PATHS: usize = 1_000;

/// Paths of a workspace that the system reported as changed.
#[derive(Debug)]
pub struct ReportedChanges {
    workspace: PathBuf,
    state: Mutex<ReportedState>,
}

#[derive(Debug, Default)]
struct ReportedState {
    /// The paths since the last check; `None`: the watch may have missed some.
    paths: Option<HashSet<RelPath>>,
    /// The paths that were checked since the notes were written, and may differ from them.
    checked: HashSet<RelPath>,
    /// The notes that held for all other files when everything was checked last; `None`: everything must be checked.
    notes: Option<NotesId>,
    /// Runs since that check.
    since: Option<Stopwatch>,
}

impl ReportedChanges {
    /// Starts without a check: the first one covers everything. `workspace` is its path without links.
    pub fn new(workspace: &Path) -> Self {
        Self {
            workspace: workspace.to_owned(),
            state: Mutex::default(),
        }
    }

    /// Adds changed paths. Those outside of the workspace are checked in any case.
    pub fn add(&self, paths: &[PathBuf]) {
        let inside = paths
            .iter()
            .filter_map(|path| path.strip_prefix(&self.workspace).ok());
        let inside: Option<Vec<RelPath>> = inside
            .map(|path| RelPath::parse(path.to_str()?).ok())
            .collect();
        let mut state = self.state();
        let (Some(known), Some(inside)) = (&mut state.paths, inside) else {
            state.paths = None;
            return;
        };
        known.extend(inside);
        if known.len() > MAX_PATHS {
            state.paths = None;
        }
    }

    /// Notes that changes were missed.
    pub fn miss(&self) {
        self.state().paths = None;
    }

    /// Makes the next check cover everything if the last such check is older than this.
    pub fn expire(&self, age: Duration) {
        let mut state = self.state();
        if state
            .since
            .as_ref()
            .is_none_or(|since| since.elapsed() > age)
        {
            state.notes = None;
        }
    }

    /// Begins a check. Returns the only files that it must look at, if they are known and the notes are still those that were checked.
    pub(crate) fn begin(&self, notes: Option<&NotesId>) -> Option<Candidates> {
        let mut state = self.state();
        let paths = state.paths.replace(HashSet::new());
        let is_same = notes.is_some() && state.notes.as_ref() == notes;
        let paths = paths.filter(|paths| is_same && paths.len() + state.checked.len() <= MAX_PATHS);
        let Some(paths) = paths else {
            state.notes = None;
            state.checked.clear();
            return None;
        };
        state.checked.extend(paths);
        Some(Candidates::new(&state.checked))
    }

    /// Notes a check of everything, and the files that differ from these notes.
    pub(crate) fn checked(&self, notes: Option<NotesId>, differing: &[FilePath], took: &Stopwatch) {
        let mut state = self.state();
        state.notes = notes.filter(|_| took.elapsed() >= CHEAP_CHECK);
        let differing = differing.iter().filter(|file| file.root == Root::Workspace);
        state.checked = differing.map(|file| file.path.clone()).collect();
        state.since = Some(Stopwatch::start());
    }

    /// Notes that the notes were renewed for the same content.
    pub(crate) fn renewed(&self, notes: Option<NotesId>) {
        let mut state = self.state();
        if state.notes.is_some() {
            state.notes = notes;
        }
    }

    /// Notes that a run kept new notes, which hold for the files that were checked too.
    pub(crate) fn kept(&self, notes: Option<NotesId>) {
        self.renewed(notes);
        self.state().checked.clear();
    }

    fn state(&self) -> MutexGuard<'_, ReportedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
