//! Repeats the observations of an earlier run.

use super::candidates::{Candidates, FoundCandidates};
use super::changes::{self, NotesChanges};
use super::form::{self, BY_STAMP, FileEntries, KnownFile, NotesBlock, NotesReader};
use super::observations::names_digest;
use super::place::{file_at, is_own};
use crate::store::disk::{Disk, DiskError};
use crate::store::read;
use crate::store::scan::files::Files;
use crate::store::scan::folder::Folder;
use crate::store::scan::stamp::FileStamp;
use crate::store::scan::statcache::StatCache;
use milepost_core::base::digest::Digest;
use milepost_core::base::glob::Glob;
use milepost_core::base::path::{FilePath, RelPath, Root};
use std::collections::HashSet;
use std::io::BufReader;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};

/// Threads that ask at once, at most.
const THREADS: usize = 4;

/// Above this number of changed files, checks everything.
const DIFFERING: usize = 10_000;

/// Below this number of touched files, each is read without asking the cache.
const FEW: usize = 64;

/// The result of an up-to-date check.
#[derive(Debug, Default)]
pub struct Recheck {
    /// The data that the run stored with its observations.
    pub payload: Vec<u8>,
    /// The files whose content changed, or that appeared or disappeared.
    pub differing: Vec<FilePath>,
    /// The files whose stamp changed and whose content did not.
    pub touched: Vec<FilePath>,
    /// The stamps that tell their content, where they do.
    stamps: Vec<Patch>,
    found: FoundCandidates,
}

/// A stamp to write into the notes, at these places in their file: the byte that says that it is one, and itself.
#[derive(Debug)]
struct Patch {
    /// Whether it goes into the changes of the notes.
    is_newer: bool,
    known: u64,
    stamp: u64,
    bytes: [u8; 32],
}

impl Recheck {
    /// Returns true if [`Recheck::renew`] would make the next check faster.
    pub fn can_renew(&self) -> bool {
        !self.stamps.is_empty()
    }

    /// Stores the current stamps, so that the next check need not read the files.
    ///
    /// # Errors
    /// Fails if the disk fails. A run can ignore that, because the file is a cache.
    pub fn renew(&self, disk: &Disk, path: &Path) -> Result<(), DiskError> {
        let (newer, notes): (Vec<&Patch>, Vec<&Patch>) =
            self.stamps.iter().partition(|patch| patch.is_newer);
        let changes = changes::path(path);
        if notes.is_empty() {
            return patch(disk, &changes, &newer, None);
        }
        let before = form::seal(path);
        patch(disk, path, &notes, None)?;
        // The changes name the notes by their checksum. Others may be there, which a killed run left.
        match (before, form::seal(path)) {
            (Some((before, _)), Some((base, _))) if form::base(&changes) == Some(before) => {
                patch(disk, &changes, &newer, Some(base))
            }
            _ => Ok(()),
        }
    }
}

/// Patches stamps into a file of notes, and the checksum of the notes that it changes. A file that cannot be read stays as it is.
fn patch(
    disk: &Disk,
    path: &Path,
    patches: &[&Patch],
    base: Option<Digest>,
) -> Result<(), DiskError> {
    let Ok(mut bytes) = read::bytes(path) else {
        return Ok(());
    };
    for patch in patches {
        let (known, stamp) = (patch.known as usize, patch.stamp as usize);
        let Some(place) = bytes.get_mut(stamp..stamp + 32) else {
            return Ok(());
        };
        place.copy_from_slice(&patch.bytes);
        if let Some(place) = bytes.get_mut(known) {
            *place = BY_STAMP;
        }
    }
    if let Some(base) = base
        && let Some(place) = bytes.get_mut(form::BASE)
    {
        place.copy_from_slice(base.bytes());
    }
    let Some(content) = bytes.len().checked_sub(32) else {
        return Ok(());
    };
    let seal = Digest::of(&bytes[..content]);
    bytes[content..].copy_from_slice(seal.bytes());
    disk.write_swap(path, &bytes)
}

/// Repeats the observations stored in this file under this key. Returns `None` if there are none, or if anything but the noted
/// files changed, such as a list of names, or a file of Milepost's own. Observations from the future are ignored, because a clock
/// that was set back repeats its times. `candidates`: the only files of the workspace that may have changed since the notes were
/// written; also returns `None` if they show that others may have changed.
pub fn again(
    path: &Path,
    key: Digest,
    files: &Files,
    cache: &StatCache,
    candidates: Option<&Candidates>,
) -> Option<Recheck> {
    let file = read::open(path).ok()?;
    let is_later = |path: &Path| {
        let data = path.symlink_metadata();
        data.is_ok_and(|data| FileStamp::of(&data).mtime > cache.now())
    };
    if is_later(path) || is_later(&changes::path(path)) {
        return None;
    }
    let capacity = if candidates.is_some() {
        form::SKIP_BUFFER
    } else {
        1 << 16
    };
    let file = BufReader::with_capacity(capacity, file);
    let (mut reader, payload) = NotesReader::begin(file, key, None).ok()??;
    if let Some(candidates) = candidates {
        reader.skip(|root, folder, names| {
            let may_be_own = folder.is_empty() || is_own(folder, "");
            root == Root::Workspace && !may_be_own && !candidates.concern(folder, names)
        });
    }
    let (base, _) = form::seal(path)?;
    let mut changes = NotesChanges::read(path, key, base);
    let payload = changes.payload.take().unwrap_or(payload);
    let newer = std::mem::take(&mut changes.blocks);
    let changes = &changes;
    let differs = AtomicBool::new(false);
    let all = Mutex::new(Recheck {
        payload,
        ..Recheck::default()
    });
    let (sender, receiver) = sync_channel::<NotesBlock>(16);
    let receiver = Mutex::new(receiver);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let is_whole = std::thread::scope(|scope| {
        let mut started = 0;
        for _ in 0..threads.clamp(1, THREADS) {
            let spawned = std::thread::Builder::new().spawn_scoped(scope, || {
                while let Some(block) = next(&receiver) {
                    if differs.load(Ordering::Relaxed) {
                        continue;
                    }
                    if holds(&block, changes, files, cache, candidates, &all).is_none() {
                        differs.store(true, Ordering::Relaxed);
                    }
                }
            });
            started += usize::from(spawned.is_ok());
        }
        if started == 0 {
            // The run checks everything.
            return false;
        }
        let mut newer = newer.into_iter();
        let is_whole = loop {
            let (block, is_newer) = match newer.next() {
                Some(block) => (Ok(block), true),
                None => (reader.block(), false),
            };
            match block {
                Ok(NotesBlock::End) => break true,
                Ok(block) if !is_newer && changes.replace(&block) => {}
                Ok(block) if !differs.load(Ordering::Relaxed) => {
                    if sender.send(block).is_err() {
                        break false;
                    }
                }
                _ => break false,
            }
        };
        // The threads end once the channel is closed.
        drop(sender);
        is_whole
    });
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    // The threads name files in any order.
    all.touched.sort_unstable();
    all.differing.sort_unstable();
    if candidates.is_some() {
        // The seal of the notes was not checked, so they are not sealed anew.
        all.stamps.clear();
    }
    let is_known = candidates.is_none_or(|candidates| candidates.are_known(&all.found, files));
    (is_whole && !differs.into_inner() && is_known).then_some(all)
}

/// Identifies notes with their changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotesId(Digest, Option<Digest>);

/// Returns the id of the notes in a file; `None` if there are none.
pub fn notes_id(path: &Path) -> Option<NotesId> {
    let (notes, _) = form::seal(path)?;
    let changes = form::seal(&changes::path(path)).map(|(seal, _)| seal);
    Some(NotesId(notes, changes))
}

/// Returns what the run stored with its observations, without repeating them; `None` if there are none under this key.
pub fn payload(path: &Path, key: Digest) -> Option<Vec<u8>> {
    let file = BufReader::with_capacity(1 << 16, read::open(path).ok()?);
    let (_, payload) = NotesReader::begin(file, key, None).ok()??;
    let (base, _) = form::seal(path)?;
    Some(
        NotesChanges::read(path, key, base)
            .payload
            .unwrap_or(payload),
    )
}

fn next(receiver: &Mutex<Receiver<NotesBlock>>) -> Option<NotesBlock> {
    let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
    receiver.recv().ok()
}

/// Whether the disk still answers so, but for files that are noted; none when not.
fn holds(
    block: &NotesBlock,
    changes: &NotesChanges,
    files: &Files,
    cache: &StatCache,
    candidates: Option<&Candidates>,
    all: &Mutex<Recheck>,
) -> Option<()> {
    let is_so = match block {
        NotesBlock::Names { folder, digest } => RelPath::parse(folder)
            .ok()
            .and_then(|folder| files.names(&folder))
            .is_some_and(|names| names_digest(names.iter().map(String::as_str)) == *digest),
        NotesBlock::List {
            root: Root::Workspace,
            pattern,
            ..
        } if candidates.is_some() => {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.found.patterns.push(pattern.clone());
            true
        }
        NotesBlock::List {
            root,
            pattern,
            listed,
        } => {
            let glob = Glob::parse(pattern).ok()?;
            let is_same =
                listed.folder.is_some() && files.stamp_of_folder(&glob, *root) == listed.folder;
            is_same
                || files.list(&glob, *root).is_ok_and(|found| {
                    let names = found.files.iter().map(RelPath::as_str);
                    found.refused.is_empty() && names_digest(names) == listed.digest
                })
        }
        NotesBlock::Folder {
            root,
            path,
            is_folder,
        } => RelPath::parse(path).is_ok_and(|path| {
            let file = FilePath { root: *root, path };
            files.resolve(&file).is_ok_and(|path| path.is_dir()) == *is_folder
        }),
        NotesBlock::Files {
            root,
            folder,
            device,
            at,
            is_newer,
            entries,
        } => {
            let candidates = candidates.filter(|_| *root == Root::Workspace && !is_own(folder, ""));
            if candidates.is_some_and(|candidates| candidates.has_folder(folder)) {
                return None;
            }
            let open = files.open_folder(*root, folder).ok()?;
            let newer = changes.names(*root, folder).filter(|_| !is_newer);
            let look = FolderCheck {
                candidates,
                newer,
                is_newer: *is_newer,
                root: *root,
                folder,
                open: open.as_ref(),
                device: *device,
                at: *at,
            };
            return look.at_all(entries, cache, all);
        }
        NotesBlock::End => true,
    };
    is_so.then_some(())
}

/// Returns true if few files were read, so that reading the cache would take longer.
fn were_few(all: &Mutex<Recheck>) -> bool {
    let all = all.lock().unwrap_or_else(PoisonError::into_inner);
    all.touched.len() < FEW
}

/// A check of the files of one folder.
struct FolderCheck<'a> {
    /// The only files to check, besides Milepost's own.
    candidates: Option<&'a Candidates>,
    /// The names that the changes of the notes replace.
    newer: Option<&'a HashSet<String>>,
    /// Whether it is one of the changes.
    is_newer: bool,
    root: Root,
    folder: &'a str,
    /// `None` if the folder does not exist.
    open: Option<&'a Folder>,
    device: u64,
    /// The offset of the entries in the file of the notes.
    at: u64,
}

impl FolderCheck<'_> {
    fn at_all(&self, entries: &[u8], cache: &StatCache, all: &Mutex<Recheck>) -> Option<()> {
        let names = self
            .candidates
            .map(|candidates| candidates.names(self.folder));
        for (entry, _) in FileEntries::of(self.device, entries) {
            let entry = entry?;
            let is_replaced = self.newer.is_some_and(|newer| newer.contains(entry.name));
            if is_replaced || entry.known == KnownFile::Forgotten {
                continue;
            }
            if let Some(names) = names
                && !is_own(self.folder, entry.name)
            {
                if !names.is_some_and(|names| names.contains(entry.name)) {
                    continue;
                }
                let file = file_at((self.root, self.folder, entry.name))?;
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                all.found.add(&file, entry.known);
            }
            let there = match self.open {
                Some(open) => open.stamp(entry.name).ok()?,
                None => None,
            };
            let (digest, now) = match (entry.known, there) {
                (KnownFile::Absent, None) => continue,
                (KnownFile::Stamp(known), Some(now)) if known == now => continue,
                (KnownFile::Stamp(known), Some(now)) if known.size == now.size => {
                    (cache.known(known).map(|seen| seen.digest), now)
                }
                (KnownFile::Content(digest), Some(now)) => (Some(digest), now),
                _ => {
                    self.differs(entry.name, all)?;
                    continue;
                }
            };
            let seen = match (digest, self.open) {
                (Some(_), Some(open)) => {
                    let file = open.file(entry.name).ok()?;
                    let is_young = matches!(entry.known, KnownFile::Content(_));
                    if is_young && were_few(all) {
                        cache.read(file).ok()?
                    } else {
                        match cache.known(now) {
                            Some(seen) => Some(seen),
                            None => cache.look_at(file).ok()?,
                        }
                    }
                }
                _ => None,
            };
            let Some(seen) = seen.filter(|seen| Some(seen.digest) == digest) else {
                self.differs(entry.name, all)?;
                continue;
            };
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.touched
                .push(file_at((self.root, self.folder, entry.name))?);
            if seen.settled && seen.stamp.device == self.device {
                let (known, stamp) = entry.spots;
                all.stamps.push(Patch {
                    is_newer: self.is_newer,
                    known: self.at + known as u64,
                    stamp: self.at + stamp as u64,
                    bytes: seen.stamp.bytes(),
                });
            }
        }
        Some(())
    }

    /// Records a changed file; `None` for Milepost's own files, and for more than [`DIFFERING`].
    fn differs(&self, name: &str, all: &Mutex<Recheck>) -> Option<()> {
        if self.root == Root::Workspace && is_own(self.folder, name) {
            return None;
        }
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.differing.push(file_at((self.root, self.folder, name))?);
        (all.differing.len() <= DIFFERING).then_some(())
    }
}
