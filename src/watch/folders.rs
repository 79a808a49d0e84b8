//! The watched folders: those of project and workspace, except those that only tools write.

use super::notify::{Moved, Notify};
use milepost_engine::ops::run::reported::ReportedChanges;
use milepost_engine::ops::run::watch_plan::{MANIFESTS, OWN, RunFolders};
use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind};
use notify::{
    ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _, WatcherKind,
};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use walkdir::{DirEntry, WalkDir};

/// Folders of a project that only tools write.
const OF_TOOLS: [&str; 4] = ["target", "node_modules", "__pycache__", "venv"];

/// The folders for which the system reports changes.
pub(crate) struct Folders {
    roots: RunFolders,
    listener: RecommendedWatcher,
    /// Each with its device and inode: a recreated folder has others.
    watched: HashMap<PathBuf, (u64, u64)>,
    reported: Arc<ReportedChanges>,
    /// True if a folder could not be watched.
    is_incomplete: bool,
}

impl Folders {
    /// Creates a listener without folders, for paths without links; changes go to `notify` and `reported`.
    ///
    /// # Errors
    /// If the system cannot report changes.
    pub(crate) fn new(
        roots: &RunFolders,
        notify: Arc<Notify>,
        reported: Arc<ReportedChanges>,
    ) -> notify::Result<Self> {
        let (rooms, to) = (roots.clone(), Arc::clone(&reported));
        let on_event = move |event| on_event(&notify, &to, &rooms, event);
        let listener = notify::recommended_watcher(on_event)?;
        Ok(Self {
            roots: roots.clone(),
            listener,
            watched: HashMap::new(),
            reported,
            is_incomplete: false,
        })
    }

    /// Watches all present folders, and those that were moved again. Walks through them only if folders are among what was moved.
    ///
    /// # Errors
    /// If there are more folders than the system can watch.
    pub(crate) fn follow(&mut self, moved: &Moved) -> notify::Result<()> {
        let RunFolders { project, workspace } = &self.roots.clone();
        let is_known = |root: &PathBuf| id(root).as_ref() == self.watched.get(root);
        let is_folder = |path: &PathBuf| {
            path.is_dir() || self.watched.keys().any(|folder| folder.starts_with(path))
        };
        let are_known = is_known(project) && is_known(workspace);
        if are_known && !self.is_incomplete && !moved.any(is_folder) {
            return Ok(());
        }
        self.is_incomplete = false;
        self.watched.retain(|folder, _| folder.is_dir());
        let result = self.walk_all(project, workspace, moved);
        if self.is_incomplete {
            self.reported.miss();
        }
        result
    }

    fn walk_all(&mut self, project: &Path, workspace: &Path, moved: &Moved) -> notify::Result<()> {
        if RecommendedWatcher::kind() == WatcherKind::Fsevent {
            // Here, watching a tree costs no more than watching a folder.
            self.listen(project, moved, RecursiveMode::Recursive)?;
            return self.listen(workspace, moved, RecursiveMode::Recursive);
        }
        let edited = |entry: &DirEntry| {
            let is_workspace = entry.path() == workspace || is_workspace(entry.path());
            entry.depth() == 0 || !(is_workspace || is_of_tools(entry))
        };
        let own = |entry: &DirEntry| {
            let name = entry.file_name();
            entry.depth() != 1 || (name != OWN && name != MANIFESTS)
        };
        self.walk(project, moved, &edited)?;
        self.walk(workspace, moved, &own)
    }

    fn walk(
        &mut self,
        root: &Path,
        moved: &Moved,
        wanted: &dyn Fn(&DirEntry) -> bool,
    ) -> notify::Result<()> {
        let entries = WalkDir::new(root).into_iter();
        let folders = entries.filter_entry(|entry| entry.file_type().is_dir() && wanted(entry));
        // A folder is watched before its entries are read, so that no new entry is missed.
        for folder in folders {
            match folder {
                Ok(folder) => self.listen(folder.path(), moved, RecursiveMode::NonRecursive)?,
                Err(error) => self.is_incomplete |= error.path().is_some_and(Path::exists),
            }
        }
        Ok(())
    }

    fn listen(&mut self, folder: &Path, moved: &Moved, mode: RecursiveMode) -> notify::Result<()> {
        let Some(id) = id(folder) else {
            return Ok(());
        };
        if self.watched.get(folder) == Some(&id) && !moved.has(folder) {
            return Ok(());
        }
        match self.listener.watch(folder, mode) {
            Ok(()) => {
                self.watched.insert(folder.to_owned(), id);
                // Changes before the watch began were not reported.
                self.reported.add(&[folder.to_owned()]);
                Ok(())
            }
            Err(error) if matches!(error.kind, ErrorKind::MaxFilesWatch) => Err(error),
            // The folder has been removed, or cannot be read.
            Err(_) => {
                self.is_incomplete = true;
                Ok(())
            }
        }
    }
}

/// Returns the device and inode of a file or folder, if it exists.
fn id(path: &Path) -> Option<(u64, u64)> {
    let found = path.metadata().ok()?;
    Some((found.dev(), found.ino()))
}

/// Returns true if a folder is another workspace.
fn is_workspace(folder: &Path) -> bool {
    folder.join(OWN).join("workspace.json").is_file()
}

fn is_of_tools(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_str();
    name.is_some_and(|name| name.starts_with('.') || OF_TOOLS.contains(&name))
}

/// Passes on a notification, except for reads and for Milepost's own files.
fn on_event(
    notify: &Notify,
    reported: &ReportedChanges,
    roots: &RunFolders,
    event: notify::Result<Event>,
) {
    let event = match event {
        Ok(event) if !event.need_rescan() => event,
        _ => {
            reported.miss();
            return notify.overflow();
        }
    };
    if matches!(event.kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write))
    {
        return;
    }
    let is_own = |path: &PathBuf| {
        let inside = path.strip_prefix(&roots.workspace);
        let inside = inside.or_else(|_| path.strip_prefix(&roots.project));
        let first = inside.ok().and_then(|path| path.iter().next());
        first.is_some_and(|name| name == OWN || name == MANIFESTS)
    };
    if !event.paths.is_empty() && event.paths.iter().all(is_own) {
        return;
    }
    reported.add(&event.paths);
    match event.kind {
        EventKind::Create(CreateKind::Folder)
        | EventKind::Remove(_)
        | EventKind::Modify(ModifyKind::Name(_)) => notify.moved(event.paths),
        _ => notify.change(),
    }
}
