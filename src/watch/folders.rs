//! The folders that are listened to: all of the project's and the workspace's but those that nobody edits.

use super::bell::{Bell, Moved};
use milepost_engine::ops::run::look::{Grounds, MANIFESTS, OWN};
use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{
    ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _, WatcherKind,
};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use walkdir::{DirEntry, WalkDir};

/// Folders of a project that tools fill, and nobody edits.
const OF_TOOLS: [&str; 4] = ["target", "node_modules", "__pycache__", "venv"];

/// Listens to folders.
pub(crate) struct Folders {
    grounds: Grounds,
    listener: RecommendedWatcher,
    /// Each with its device and number, which a folder that is made anew at its place has not.
    heard: HashMap<PathBuf, (u64, u64)>,
}

impl Folders {
    /// Listens to none yet; rings the bell when something changes in one.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn new(grounds: &Grounds, bell: Arc<Bell>) -> notify::Result<Self> {
        let rooms = grounds.clone();
        let listener = notify::recommended_watcher(move |event| hear(&bell, &rooms, event))?;
        Ok(Self {
            grounds: grounds.clone(),
            listener,
            heard: HashMap::new(),
        })
    }

    /// Listens to the folders that there are at present. Those that were moved are listened to anew.
    ///
    /// # Errors
    /// When the system does not let so many be listened to.
    pub(crate) fn follow(&mut self, moved: &Moved) -> notify::Result<()> {
        self.heard.retain(|folder, _| folder.is_dir());
        let Grounds { project, workspace } = &self.grounds.clone();
        if RecommendedWatcher::kind() == WatcherKind::Fsevent {
            // It hears of everything below a folder at no cost.
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
        // A folder is listened to before its entries are read: what is made in it meanwhile is heard of, or found.
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
            // It went away meanwhile, or nobody may read it.
            Err(_) => Ok(()),
        }
    }
}

/// Whether a folder is another workspace: what is in it is nobody's business here.
fn is_workspace(folder: &Path) -> bool {
    folder.join(OWN).join("workspace.json").is_file()
}

fn is_of_tools(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_str();
    name.is_some_and(|name| name.starts_with('.') || OF_TOOLS.contains(&name))
}

/// Rings the bell for what may matter: not for what is only read, nor for Milepost's own.
fn hear(bell: &Bell, grounds: &Grounds, event: notify::Result<Event>) {
    let Ok(event) = event else {
        return bell.overflow();
    };
    if event.need_rescan() {
        return bell.overflow();
    }
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
    match event.kind {
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => bell.moved(event.paths),
        _ => bell.change(),
    }
}
