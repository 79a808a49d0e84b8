//! Asks the disk again what an earlier run asked, until one answer is another.

use super::asked::names_digest;
use super::form::{self, Block, Reader};
use crate::base::digest::Digest;
use crate::base::glob::Glob;
use crate::base::path::{FilePath, RelPath, Root};
use crate::store::files::Files;
use crate::store::stamp::Stamp;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};

/// Threads that ask at once, at most.
const THREADS: usize = 4;

/// Asks again what the notes in this file say was asked under this key. When every answer is the same, what was kept with the notes;
/// none when one is another, or there are no such notes. `now` is the time in nanoseconds since 1970: a clock that was set back comes
/// by the same times again, so notes of the future are none.
pub fn again(path: &Path, key: Digest, files: &Files, now: i64) -> Option<Vec<u8>> {
    let file = File::open(path).ok()?;
    if Stamp::of(&file.metadata().ok()?).mtime > now {
        return None;
    }
    let (mut reader, told) = Reader::begin(BufReader::with_capacity(1 << 16, file), key).ok()??;
    let differs = AtomicBool::new(false);
    let (sender, receiver) = sync_channel::<Block>(16);
    let receiver = Mutex::new(receiver);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let is_whole = std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, THREADS) {
            scope.spawn(|| {
                while let Some(block) = next(&receiver) {
                    if differs.load(Ordering::Relaxed) {
                        continue;
                    }
                    if !holds(&block, files) {
                        differs.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
        let is_whole = loop {
            match reader.block() {
                Ok(Block::End) => break true,
                Ok(block) if !differs.load(Ordering::Relaxed) => {
                    if sender.send(block).is_err() {
                        break false;
                    }
                }
                _ => break false,
            }
        };
        // The threads end when there is nobody left to hear from.
        drop(sender);
        is_whole
    });
    (is_whole && !differs.into_inner()).then_some(told)
}

fn next(receiver: &Mutex<Receiver<Block>>) -> Option<Block> {
    let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
    receiver.recv().ok()
}

/// Whether the disk still answers so.
fn holds(block: &Block, files: &Files) -> bool {
    match block {
        Block::Names { folder, digest } => RelPath::parse(folder)
            .ok()
            .and_then(|folder| files.names(&folder))
            .is_some_and(|names| names_digest(names.iter().map(String::as_str)) == *digest),
        Block::List {
            root,
            pattern,
            listed,
        } => {
            let Ok(glob) = Glob::parse(pattern) else {
                return false;
            };
            if listed.folder.is_some() && files.stamp_of_folder(&glob, *root) == listed.folder {
                return true;
            }
            files
                .list(&glob, *root)
                .is_ok_and(|found| names_digest(found.iter().map(RelPath::as_str)) == listed.digest)
        }
        Block::Folder {
            root,
            path,
            is_folder,
        } => RelPath::parse(path).is_ok_and(|path| {
            let file = FilePath { root: *root, path };
            files.resolve(&file).is_ok_and(|path| path.is_dir()) == *is_folder
        }),
        Block::Files {
            root,
            folder,
            device,
            entries,
        } => files_hold(*root, folder, *device, entries, files),
        Block::End => true,
    }
}

fn files_hold(root: Root, folder: &str, device: u64, mut entries: &[u8], files: &Files) -> bool {
    let Ok(open) = files.open_folder(root, folder) else {
        return false;
    };
    while !entries.is_empty() {
        let Some((name, known)) = form::next_entry(device, &mut entries) else {
            return false;
        };
        let there = match &open {
            Some(open) => open.stamp(name),
            None => Ok(None),
        };
        if !there.is_ok_and(|there| there == known) {
            return false;
        }
    }
    true
}
