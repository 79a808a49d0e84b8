//! What a watch heard of changes, so that an up-to-date check of a large workspace looks at nothing else.

use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::up_to_date::{Candidates, NotesId};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A check of everything that takes less than this is always made. Projects of tests are small.
const SHORT: Duration = if cfg!(debug_assertions) {
    Duration::ZERO
} else {
    Duration::from_millis(100)
};

/// So many paths are kept; beyond them, everything is checked.
const MOST: usize = 1_000;

/// The paths of files of a workspace of which a watch heard that they changed.
#[derive(Debug)]
pub struct Heard {
    workspace: PathBuf,
    state: Mutex<HeardState>,
}

#[derive(Debug, Default)]
struct HeardState {
    /// The paths since the last check; `None`: the watch may have missed some.
    paths: Option<HashSet<RelPath>>,
    /// The paths that were checked, and are otherwise than the notes say.
    checked: HashSet<RelPath>,
    /// The notes that held for all other files when everything was checked last; `None`: everything must be checked.
    notes: Option<NotesId>,
    /// Runs since that check.
    since: Option<Stopwatch>,
}

impl Heard {
    /// Starts with a watch of a workspace, of which nothing was checked yet.
    pub fn new(workspace: &Path) -> Self {
        Self {
            workspace: workspace.to_owned(),
            state: Mutex::default(),
        }
    }

    /// Notes changed paths. Those outside of the workspace are always checked.
    pub fn add(&self, paths: &[PathBuf]) {
        let inside = |path: &PathBuf| path.strip_prefix(&self.workspace).map(Path::to_owned);
        let inside = paths.iter().filter_map(|path| inside(path).ok());
        let inside: Option<Vec<RelPath>> = inside
            .map(|path| RelPath::parse(path.to_str()?).ok())
            .collect();
        let mut state = self.state();
        let (Some(known), Some(inside)) = (&mut state.paths, inside) else {
            state.paths = None;
            return;
        };
        known.extend(inside);
        if known.len() > MOST {
            state.paths = None;
        }
    }

    /// Notes that changes were missed.
    pub fn miss(&self) {
        self.state().paths = None;
    }

    /// Lets the next check look at everything if the last such check is older than this.
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
        let paths = paths.filter(|paths| is_same && paths.len() + state.checked.len() <= MOST);
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
        state.notes = notes.filter(|_| took.elapsed() >= SHORT);
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

    fn state(&self) -> MutexGuard<'_, HeardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
