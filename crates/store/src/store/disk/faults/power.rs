//! A simulated power failure for crash tests. A shadow of the disk records what was flushed; a seed selects one of the states that
//! the disk may have afterwards.
//!
//! POSIX guarantees only flushed bytes and flushed entries of folders. The seed decides everything else: unflushed bytes are
//! complete, missing, cut or zeros; unflushed entries exist or not. With an even seed, entries survive in the order in which they
//! were made, and flushing a folder includes everything before it, as the journals of ext4, XFS and APFS do. With an odd seed, each
//! entry survives or not by itself, so that a renamed file may be at both places or at neither.

#![allow(clippy::disallowed_methods, reason = "the one writer of the disk")]

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use super::after::{self, Survivor};

/// The shadow of all that lies below one folder.
pub(super) struct Power {
    root: PathBuf,
    random: u64,
    in_order: bool,
    /// The first is the root.
    nodes: Vec<ShadowNode>,
    /// Changes of entries that were not flushed, in the order in which they were made.
    pending: Vec<EntryChange>,
}

/// A file or a folder, under any number of names.
enum ShadowNode {
    File {
        /// The bytes at the last flush.
        flushed: Option<Vec<u8>>,
        /// How many of these were never cut off since.
        kept: usize,
        /// The bytes when its last name was removed.
        last: Vec<u8>,
    },
    Folder {
        flushed: FolderEntries,
        live: FolderEntries,
    },
}

type FolderEntries = BTreeMap<OsString, usize>;

/// Entries that change at once: one, or the two of a rename.
struct EntryChange(Vec<(usize, OsString, Option<usize>)>);

impl Power {
    /// Takes what lies below `root` for flushed.
    pub(super) fn new(root: &Path, seed: u64) -> Self {
        let mut power = Self {
            root: root.canonicalize().unwrap_or_else(|_| root.to_owned()),
            random: seed,
            in_order: seed.is_multiple_of(2),
            nodes: vec![ShadowNode::folder()],
            pending: Vec::new(),
        };
        power.take_in(0, &power.root.clone());
        power.flush_all();
        power
    }

    /// Returns the node at a path. Creates it if only the disk knows it, because a program of a step has written it.
    fn find(&mut self, path: &Path) -> Option<usize> {
        let inside = path.strip_prefix(&self.root).ok()?.to_owned();
        let (mut at, mut real) = (0, self.root.clone());
        for name in &inside {
            real.push(name);
            at = self.child(at, name).or_else(|| self.add(at, name, &real))?;
        }
        Some(at)
    }

    fn child(&self, folder: usize, name: &OsStr) -> Option<usize> {
        match &self.nodes[folder] {
            ShadowNode::Folder { live, .. } => live.get(name).copied(),
            ShadowNode::File { .. } => None,
        }
    }

    fn add(&mut self, folder: usize, name: &OsStr, real: &Path) -> Option<usize> {
        let found = real.symlink_metadata().ok()?;
        let node = if found.is_dir() {
            ShadowNode::folder()
        } else {
            ShadowNode::File {
                flushed: None,
                kept: 0,
                last: Vec::new(),
            }
        };
        self.nodes.push(node);
        let made = self.nodes.len() - 1;
        self.change(vec![(folder, name.to_owned(), Some(made))]);
        Some(made)
    }

    fn change(&mut self, entries: Vec<(usize, OsString, Option<usize>)>) {
        for (folder, name, node) in &entries {
            if let ShadowNode::Folder { live, .. } = &mut self.nodes[*folder] {
                match node {
                    Some(node) => live.insert(name.clone(), *node),
                    None => live.remove(name),
                };
            }
        }
        self.pending.push(EntryChange(entries));
    }

    /// Brings the shadow of a folder up to what the disk has, all the way down.
    fn take_in(&mut self, folder: usize, real: &Path) {
        let known = match &self.nodes[folder] {
            ShadowNode::Folder { live, .. } => live.clone(),
            ShadowNode::File { .. } => return,
        };
        for name in known.keys() {
            if real.join(name).symlink_metadata().is_err() {
                self.change(vec![(folder, name.clone(), None)]);
            }
        }
        for entry in fs::read_dir(real).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let node = self
                .child(folder, &name)
                .or_else(|| self.add(folder, &name, &path));
            if let Some(node) = node {
                self.take_in(node, &path);
            }
        }
    }

    /// Something was made at a path, or opened.
    pub(super) fn made(&mut self, path: &Path) {
        self.find(path);
    }

    /// A file was cut to its first `size` bytes.
    pub(super) fn cut(&mut self, path: &Path, size: usize) {
        if let Some(node) = self.find(path)
            && let ShadowNode::File { kept, .. } = &mut self.nodes[node]
        {
            *kept = size.min(*kept);
        }
    }

    /// Saves the bytes at and below a path that is about to be removed or replaced: unflushed, the removal may not survive.
    pub(super) fn going(&mut self, path: &Path) {
        let Some(node) = self.find(path) else { return };
        match &mut self.nodes[node] {
            ShadowNode::File { last, .. } => *last = fs::read(path).unwrap_or_default(),
            ShadowNode::Folder { .. } => {
                self.take_in(node, path);
                for name in self.names(node) {
                    self.going(&path.join(name));
                }
            }
        }
    }

    fn names(&self, folder: usize) -> Vec<OsString> {
        match &self.nodes[folder] {
            ShadowNode::Folder { live, .. } => live.keys().cloned().collect(),
            ShadowNode::File { .. } => Vec::new(),
        }
    }

    pub(super) fn renamed(&mut self, from: &Path, to: &Path) {
        let (Some(old), Some(new)) = (self.entry(from), self.entry(to)) else {
            return;
        };
        if let Some(node) = self.child(old.0, &old.1) {
            self.change(vec![(old.0, old.1, None), (new.0, new.1, Some(node))]);
        } else if let Some(node) = self.add(new.0, &new.1, to) {
            self.take_in(node, to);
        }
    }

    pub(super) fn removed(&mut self, path: &Path) {
        if let Some((folder, name)) = self.entry(path)
            && let Some(node) = self.child(folder, &name)
        {
            for name in self.names(node) {
                self.removed(&path.join(name));
            }
            self.change(vec![(folder, name, None)]);
        }
    }

    /// Returns the folder and the name that a path is an entry of.
    fn entry(&mut self, path: &Path) -> Option<(usize, OsString)> {
        Some((self.find(path.parent()?)?, path.file_name()?.to_owned()))
    }

    pub(super) fn flushed(&mut self, path: &Path) {
        let Some(node) = self.find(path) else { return };
        if self.flush_file(node, path) {
            return;
        }
        self.take_in(node, path);
        let touches = |change: &EntryChange| change.0.iter().any(|(folder, ..)| *folder == node);
        if self.in_order {
            let count = self
                .pending
                .iter()
                .rposition(touches)
                .map_or(0, |at| at + 1);
            for change in self.pending.drain(..count).collect::<Vec<_>>() {
                self.settle(change.0);
            }
        } else {
            for mut change in std::mem::take(&mut self.pending) {
                let (here, there) = change
                    .0
                    .into_iter()
                    .partition(|(folder, ..)| *folder == node);
                self.settle(here);
                change.0 = there;
                if !change.0.is_empty() {
                    self.pending.push(change);
                }
            }
        }
    }

    /// Everything is flushed.
    pub(super) fn flush_all(&mut self) {
        self.take_in(0, &self.root.clone());
        for change in std::mem::take(&mut self.pending) {
            self.settle(change.0);
        }
        for (node, path) in self.places() {
            self.flush_file(node, &path);
        }
    }

    /// The bytes of a file are flushed; whether it is one.
    fn flush_file(&mut self, node: usize, path: &Path) -> bool {
        let ShadowNode::File { flushed, kept, .. } = &mut self.nodes[node] else {
            return false;
        };
        *flushed = fs::read(path).ok();
        *kept = flushed.as_ref().map_or(0, Vec::len);
        true
    }

    fn settle(&mut self, entries: Vec<(usize, OsString, Option<usize>)>) {
        for (folder, name, node) in entries {
            if let ShadowNode::Folder { flushed, .. } = &mut self.nodes[folder] {
                match node {
                    Some(node) => flushed.insert(name, node),
                    None => flushed.remove(&name),
                };
            }
        }
    }

    /// Where each node lies that has a name at this moment.
    fn places(&self) -> BTreeMap<usize, PathBuf> {
        let mut places = BTreeMap::from([(0, self.root.clone())]);
        let mut open = vec![0];
        while let Some(folder) = open.pop() {
            if let ShadowNode::Folder { live, .. } = &self.nodes[folder] {
                let path = places[&folder].clone();
                for (name, node) in live {
                    places.insert(*node, path.join(name));
                    open.push(*node);
                }
            }
        }
        places
    }

    /// Leaves the disk as it might be found when the power is back.
    pub(super) fn off(&mut self) {
        self.take_in(0, &self.root.clone());
        let pending = std::mem::take(&mut self.pending);
        if self.in_order {
            let count = self.below(pending.len() + 1);
            for change in pending.into_iter().take(count) {
                self.settle(change.0);
            }
        } else {
            let mut histories: BTreeMap<(usize, OsString), Vec<Option<usize>>> = BTreeMap::new();
            for (folder, name, node) in pending.into_iter().flat_map(|change| change.0) {
                histories.entry((folder, name)).or_default().push(node);
            }
            for ((folder, name), history) in histories {
                let count = self.below(history.len() + 1);
                if let Some(node) = history.into_iter().take(count).next_back() {
                    self.settle(vec![(folder, name, node)]);
                }
            }
        }
        let places = self.places();
        let mut kept = BTreeMap::new();
        self.keep(0, &self.root.clone(), &places, &mut kept);
        after::put(&self.root, &kept);
    }

    /// Adds the surviving entries of a folder to `kept`.
    fn keep(
        &mut self,
        folder: usize,
        path: &Path,
        places: &BTreeMap<usize, PathBuf>,
        kept: &mut BTreeMap<PathBuf, Survivor>,
    ) {
        let ShadowNode::Folder { flushed, .. } = &self.nodes[folder] else {
            return;
        };
        for (name, node) in flushed.clone() {
            let path = path.join(name);
            if let ShadowNode::File {
                flushed,
                kept: whole,
                last,
            } = &self.nodes[node]
            {
                let live = match places.get(&node) {
                    Some(place) => fs::read(place).unwrap_or_default(),
                    None => last.clone(),
                };
                let (flushed, whole) = (flushed.clone(), *whole);
                let bytes = self.torn(flushed, whole, live);
                kept.insert(path, Survivor::File(bytes));
            } else {
                kept.insert(path.clone(), Survivor::Folder);
                self.keep(node, &path, places, kept);
            }
        }
    }

    /// Returns the surviving bytes of a file.
    fn torn(&mut self, flushed: Option<Vec<u8>>, kept: usize, live: Vec<u8>) -> Vec<u8> {
        if flushed.as_ref() == Some(&live) {
            return live;
        }
        let base = flushed.unwrap_or_default();
        let first = kept.min(live.len());
        let from = first + self.below(live.len() - first + 1);
        let to = from + self.below(live.len() - from + 1);
        match self.below(5) {
            0 => base,
            1 => live,
            2 => live[..from].to_vec(),
            3 => [&live[..from], &vec![0; to - from]].concat(),
            _ => [&live[..from], &vec![0; to - from], &live[to..]].concat(),
        }
    }

    /// A number below `below` (Steele, Lea and Flood: Fast splittable pseudorandom number generators, 2014: SplitMix64).
    fn below(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % below as u64) as usize
    }
}

impl ShadowNode {
    fn folder() -> Self {
        Self::Folder {
            flushed: FolderEntries::new(),
            live: FolderEntries::new(),
        }
    }
}

#[cfg(test)]
mod tests;
