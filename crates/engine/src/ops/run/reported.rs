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
    /// The notes that were valid for all other files at the last full check; `None`: everything must be checked.
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

    /// Begins a check. Returns the only files to check, if they are known and the notes are still those that were checked.
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

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests prepare the disk by hand")]
mod tests {
    use super::*;
    use milepost_store::store::up_to_date::notes_id;

    type Cause = fn(&ReportedChanges);

    fn path(text: &str) -> RelPath {
        text.parse().unwrap()
    }

    #[test]
    fn only_reported_files_are_checked_as_long_as_all_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let id = |content: &str| {
            let notes = folder.path().join("notes");
            std::fs::write(&notes, content.repeat(32)).unwrap();
            notes_id(&notes)
        };
        let (first, second) = (id("a"), id("b"));
        let (took, root) = (Stopwatch::start(), Path::new("/project/workspace"));
        let reported = ReportedChanges::new(root);
        let add = |name: &str| reported.add(&[root.join(name)]);
        let differs = FilePath::workspace(path("differs"));
        let begin = |notes: &Option<NotesId>| reported.begin(notes.as_ref());
        let only = |names: &[&str]| {
            let paths: Vec<RelPath> = names.iter().map(|name| path(name)).collect();
            Some(Candidates::new(&paths))
        };
        let check_all = || reported.checked(first.clone(), std::slice::from_ref(&differs), &took);

        add("before");
        assert_eq!(begin(&first), None);
        check_all();
        assert_eq!(begin(&first), only(&["differs"]));
        add("a/b");
        reported.add(&[PathBuf::from("/project/stages/1_a.toml")]);
        assert_eq!(begin(&first), only(&["a/b", "differs"]));
        // Nothing was kept: what a plan checked is checked again by the run.
        assert_eq!(begin(&first), only(&["a/b", "differs"]));
        reported.kept(second.clone());
        add("c");
        assert_eq!(begin(&second), only(&["c"]));

        // Another process wrote notes.
        assert_eq!(begin(&first), None);
        let causes: [(&str, Cause); 4] = [
            ("missed", ReportedChanges::miss),
            ("old", |reported| reported.expire(Duration::ZERO)),
            ("too many", |reported| {
                for number in 0..=MAX_PATHS {
                    reported.add(&[PathBuf::from(format!("/project/workspace/{number}"))]);
                }
            }),
            ("no path", |reported| {
                reported.add(&[PathBuf::from("/project/workspace/a\nb")]);
            }),
        ];
        for (name, cause) in causes {
            check_all();
            assert_eq!(begin(&first), only(&["differs"]), "{name}");
            cause(&reported);
            assert_eq!(begin(&first), None, "{name}");
            // Until everything was checked.
            assert_eq!(begin(&first), None, "{name}");
        }
    }
}
