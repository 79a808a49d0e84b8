//! Changes of large notes: a run that changed a few files writes what it noted to a file beside the notes.

use super::form::{self, FileEntries, NotesBlock};
use crate::store::layout::{MANIFESTS, OWN};
use milepost_core::base::digest::Digest;
use milepost_core::base::path::Root;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Smaller notes are written anew.
pub(super) const LARGE: u64 = 64 << 10;

/// Changes that exceed one part in this many of the notes are merged into them.
pub(super) const SHARE: u64 = 8;

/// Returns the file of the changes of these notes.
pub(super) fn path(notes: &Path) -> PathBuf {
    let mut name = notes.as_os_str().to_owned();
    name.push("-changes");
    PathBuf::from(name)
}

/// The changes to notes, with indexes of the files, lists, folders and names that they replace.
#[derive(Default)]
pub(super) struct NotesChanges {
    pub(crate) blocks: Vec<NotesBlock>,
    /// The data that the last run stored.
    pub(crate) payload: Option<Vec<u8>>,
    files: HashMap<(Root, String), HashSet<String>>,
    lists: HashSet<(Root, String)>,
    folders: HashSet<(Root, String)>,
    names: HashSet<String>,
}

impl NotesChanges {
    /// Reads the changes to the notes with this checksum; empty if there are none, or if they belong to other notes.
    pub(super) fn read(notes: &Path, key: Digest, base: Digest) -> Self {
        let Some((blocks, payload)) = form::read(&path(notes), key, Some(base)) else {
            return Self::default();
        };
        let mut changes = Self {
            payload: Some(payload),
            ..Self::default()
        };
        for block in &blocks {
            match block {
                NotesBlock::Names { folder, .. } => {
                    changes.names.insert(folder.clone());
                }
                NotesBlock::List { root, pattern, .. } => {
                    changes.lists.insert((*root, pattern.clone()));
                }
                NotesBlock::Folder { root, path, .. } => {
                    changes.folders.insert((*root, path.clone()));
                }
                NotesBlock::Files {
                    root,
                    folder,
                    device,
                    entries,
                    ..
                } => {
                    let names = changes.files.entry((*root, folder.clone())).or_default();
                    let entries = FileEntries::of(*device, entries);
                    let entries = entries.filter_map(|(entry, _)| entry);
                    names.extend(entries.map(|entry| entry.name.to_owned()));
                }
                NotesBlock::End => {}
            }
        }
        changes.blocks = blocks;
        changes
    }

    /// Returns true if the changes say something else than this block of the notes; of a block of files: than the whole of it.
    pub(super) fn replace(&self, block: &NotesBlock) -> bool {
        match block {
            NotesBlock::Names { folder, .. } => self.names.contains(folder),
            NotesBlock::List { root, pattern, .. } => {
                self.lists.contains(&(*root, pattern.clone()))
            }
            NotesBlock::Folder { root, path, .. } => self.folders.contains(&(*root, path.clone())),
            // Files of Milepost's own are noted together, but for the pages of manifests.
            NotesBlock::Files { root, folder, .. } => {
                let first = folder.split('/').next().unwrap_or_default();
                *root == Root::Workspace
                    && first == OWN
                    && first != MANIFESTS
                    && self.files.contains_key(&(*root, folder.clone()))
            }
            NotesBlock::End => false,
        }
    }

    /// Returns the names of the files of a folder that the changes say something of.
    pub(super) fn names(&self, root: Root, folder: &str) -> Option<&HashSet<String>> {
        self.files.get(&(root, folder.to_owned()))
    }

    /// A block of the notes as it is with the changes, but for what is new; none when they replace it.
    pub(super) fn applied_to(&self, mut block: NotesBlock) -> Option<NotesBlock> {
        if self.replace(&block) {
            return None;
        }
        if let NotesBlock::Files {
            root,
            folder,
            device,
            entries,
            ..
        } = &mut block
            && let Some(names) = self.names(*root, folder)
        {
            let kept: Vec<u8> = FileEntries::of(*device, entries)
                .filter(|(entry, _)| {
                    entry
                        .as_ref()
                        .is_some_and(|entry| !names.contains(entry.name))
                })
                .flat_map(|(_, bytes)| bytes.iter().copied())
                .collect();
            *entries = kept;
        }
        Some(block)
    }
}
