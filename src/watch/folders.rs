//! The watched folders: those of project and workspace, except those that only tools write.

use super::notify::{Moved, Notify};
use milepost_engine::ops::run::heard::Heard;
use milepost_engine::ops::run::look::{Grounds, MANIFESTS, OWN};
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
    grounds: Grounds,
    listener: RecommendedWatcher,
    /// Each with its device and inode: a recreated folder has others.
    heard: HashMap<PathBuf, (u64, u64)>,
}

impl Folders {
    /// Creates a listener without folders; changes go to `notify` and `heard`.
    ///
    /// # Errors
    /// If the system cannot report changes.
    pub(crate) fn new(
        grounds: &Grounds,
        notify: Arc<Notify>,
        heard: Arc<Heard>,
    ) -> notify::Result<Self> {
        let rooms = grounds.clone();
        let hear = move |event| hear(&notify, &heard, &rooms, event);
        let listener = notify::recommended_watcher(hear)?;
        Ok(Self {
            grounds: grounds.clone(),
            listener,
            heard: HashMap::new(),
        })
    }

    /// Watches all present folders, and those that were moved again. Walks through them only if folders are among what was moved.
    ///
    /// # Errors
    /// If there are more folders than the system can watch.
    pub(crate) fn follow(&mut self, moved: &Moved) -> notify::Result<()> {
        let has_folder = moved
            .any(|path| path.is_dir() || self.heard.keys().any(|folder| folder.starts_with(path)));
        if !self.heard.is_empty() && !has_folder {
            return Ok(());
        }
        self.heard.retain(|folder, _| folder.is_dir());
        let Grounds { project, workspace } = &self.grounds.clone();
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
        for folder in folders.flatten() {
            self.listen(folder.path(), moved, RecursiveMode::NonRecursive)?;
        }
        Ok(())
    }

    fn listen(&mut self, folder: &Path, moved: &Moved, mode: RecursiveMode) -> notify::Result<()> {
        let Ok(found) = folder.metadata() else {
            return Ok(());
        };
        let id = (found.dev(), found.ino());
        if self.heard.get(folder) == Some(&id) && !moved.has(folder) {
            return Ok(());
        }
        match self.listener.watch(folder, mode) {
            Ok(()) => {
                self.heard.insert(folder.to_owned(), id);
                Ok(())
            }
            Err(error) if matches!(error.kind, ErrorKind::MaxFilesWatch) => Err(error),
            // The folder has been removed, or cannot be read.
            Err(_) => Ok(()),
        }
    }
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
fn hear(notify: &Notify, heard: &Heard, grounds: &Grounds, event: notify::Result<Event>) {
    let event = match event {
        Ok(event) if !event.need_rescan() => event,
        _ => {
            heard.miss();
            return notify.overflow();
        }
    };
    if matches!(event.kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write))
    {
        return;
    }
    let is_own = |path: &PathBuf| {
        let inside = path.strip_prefix(&grounds.workspace);
        let inside = inside.or_else(|_| path.strip_prefix(&grounds.project));
        let first = inside.ok().and_then(|path| path.iter().next());
        first.is_some_and(|name| name == OWN || name == MANIFESTS)
    };
    if !event.paths.is_empty() && event.paths.iter().all(is_own) {
        return;
    }
    heard.add(&event.paths);
    match event.kind {
        EventKind::Create(CreateKind::Folder)
        | EventKind::Remove(_)
        | EventKind::Modify(ModifyKind::Name(_)) => notify.moved(event.paths),
        _ => notify.change(),
    }
}
