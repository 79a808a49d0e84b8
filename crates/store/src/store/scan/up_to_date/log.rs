//! The log of what a run observes of files and writes to them.
//!
//! Events are gathered in memory. When they are many, they are sorted by the places of their files and written to a run (`runs.rs`).
//! At the end all runs are merged: then the events of a file follow each other in the order in which they happened.

use super::place::PathParts;
use super::runs::{RunReader, Runs};
use crate::store::disk::Disk;
use crate::store::scan::stamp::FileStamp;
use crate::store::scan::statcache::HashedFile;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::Root;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

/// Maximum bytes of events in memory, if there is a file for more. Small in debug builds, so that tests write runs.
const IN_MEMORY: usize = if cfg!(debug_assertions) {
    4 << 10
} else {
    4 << 20
};

#[derive(Debug, Clone, Copy)]
pub(super) enum FileEvent {
    /// The run checked it; `None`: it did not exist.
    Seen(Option<HashedFile>),
    /// The run wrote it with this digest, or removed it.
    Replaced(Option<Digest>),
    /// This stamp proves what was written.
    Proved(FileStamp),
}

/// A file that the run wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenFile {
    pub digest: Digest,
    /// The stamp that proves that it has this content; `None`: it must be read again.
    pub proof: Option<FileStamp>,
}

/// As a file was seen; `None`: it was not there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen(pub(super) Option<HashedFile>);

/// As a file was written; `None`: it was removed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replacement(pub(super) Option<WrittenFile>);

/// All events of a file.
#[derive(Debug)]
pub(super) struct FileState {
    key: String,
    /// As it was seen last, if it was.
    pub(crate) seen: Option<Seen>,
    /// True if it was seen with different contents.
    pub(crate) is_ambiguous: bool,
    /// As it was written or removed last, if it was.
    pub(crate) replaced: Option<Replacement>,
}

#[derive(Debug, Default)]
pub(super) struct FileLog {
    /// The file for events that are not in memory.
    spill: Option<(Disk, PathBuf)>,
    /// The keys and events in memory.
    bytes: Vec<u8>,
    entries: Vec<LogEntry>,
    runs: Option<Runs>,
}

/// Where a key and its event lie in memory.
#[derive(Debug, Clone, Copy)]
struct LogEntry {
    key: u32,
    event: u32,
    end: u32,
}

impl FileLog {
    /// Creates a log that keeps few events in memory. The others go to a temporary file at this path.
    pub(super) fn spilling(disk: &Disk, path: &Path) -> Self {
        Self {
            spill: Some((disk.clone(), path.to_owned())),
            ..Self::default()
        }
    }

    /// An empty log that has its events at the same place.
    pub(super) fn anew(&self) -> Self {
        Self {
            spill: self.spill.clone(),
            ..Self::default()
        }
    }

    /// Adds an event.
    ///
    /// # Errors
    /// When the disk fails, or the path is too long.
    pub(super) fn add(&mut self, file: PathParts<'_>, event: &FileEvent) -> io::Result<()> {
        let offset = |bytes: &Vec<u8>| u32::try_from(bytes.len()).map_err(io::Error::other);
        let key = offset(&self.bytes)?;
        let (root, folder, name) = file;
        self.bytes.push(root_byte(root));
        self.bytes.extend_from_slice(folder.as_bytes());
        // Paths have no control characters, so keys have the order of their parts.
        self.bytes.push(0);
        self.bytes.extend_from_slice(name.as_bytes());
        let at = offset(&self.bytes)?;
        event.write(&mut self.bytes);
        let end = offset(&self.bytes)?;
        self.entries.push(LogEntry {
            key,
            event: at,
            end,
        });
        if self.bytes.len() > IN_MEMORY {
            self.write_run()?;
        }
        Ok(())
    }

    fn write_run(&mut self) -> io::Result<()> {
        let Some((disk, path)) = &self.spill else {
            return Ok(());
        };
        let runs = match &mut self.runs {
            Some(runs) => runs,
            runs => runs.insert(Runs::create(disk, path)?),
        };
        sort(&self.bytes, &mut self.entries);
        runs.append(|out| {
            let mut before: &[u8] = &[];
            for entry in &self.entries {
                let (key, event) = entry.parts(&self.bytes);
                let same = key.iter().zip(before).take_while(|(a, b)| a == b).count();
                for length in [same, key.len() - same] {
                    let length = u16::try_from(length).map_err(io::Error::other)?;
                    out.write_all(&length.to_le_bytes())?;
                }
                out.write_all(&key[same..])?;
                out.write_all(event)?;
                before = key;
            }
            Ok(())
        })?;
        self.bytes.clear();
        self.entries.clear();
        Ok(())
    }

    /// Returns the files of the log by place, each with its events.
    ///
    /// # Errors
    /// When the disk fails; so do the items.
    pub(super) fn files(
        &mut self,
    ) -> io::Result<impl Iterator<Item = io::Result<FileState>> + use<'_>> {
        sort(&self.bytes, &mut self.entries);
        let in_file = self.runs.iter().flat_map(Runs::readers).map(Events::File);
        let in_memory = Events::Memory(&self.bytes, self.entries.iter());
        let mut heads = BinaryHeap::new();
        for (run, events) in in_file.chain([in_memory]).enumerate() {
            let mut head = Head {
                key: Vec::new(),
                event: FileEvent::Seen(None),
                run,
                events,
            };
            if head.advance()? {
                heads.push(head);
            }
        }
        Ok(std::iter::from_fn(move || {
            next_file(&mut heads).transpose()
        }))
    }
}

/// Events of one file keep their order.
fn sort(bytes: &[u8], entries: &mut [LogEntry]) {
    entries.sort_by(|a, b| a.parts(bytes).0.cmp(b.parts(bytes).0));
}

impl LogEntry {
    fn parts(self, bytes: &[u8]) -> (&[u8], &[u8]) {
        let [key, event, end] = [self.key, self.event, self.end].map(|at| at as usize);
        (&bytes[key..event], &bytes[event..end])
    }
}

/// The events of one run.
enum Events<'a> {
    File(BufReader<RunReader<'a>>),
    Memory(&'a [u8], std::slice::Iter<'a, LogEntry>),
}

/// The next event of a run.
struct Head<'a> {
    key: Vec<u8>,
    event: FileEvent,
    run: usize,
    events: Events<'a>,
}

impl Head<'_> {
    /// Goes to the next event. Returns false after the last one.
    fn advance(&mut self) -> io::Result<bool> {
        match &mut self.events {
            Events::File(file) => {
                if file.fill_buf()?.is_empty() {
                    return Ok(false);
                }
                let [same, more] = [bytes(file)?, bytes(file)?].map(u16::from_le_bytes);
                self.key.truncate(same.into());
                file.take(more.into()).read_to_end(&mut self.key)?;
                self.event = FileEvent::read(file)?;
            }
            Events::Memory(bytes, entries) => {
                let Some(entry) = entries.next() else {
                    return Ok(false);
                };
                let (key, mut event) = entry.parts(bytes);
                self.key.clear();
                self.key.extend_from_slice(key);
                self.event = FileEvent::read(&mut event)?;
            }
        }
        Ok(true)
    }
}

/// The heap's greatest is the event of the first file, and among its events the oldest.
impl Ord for Head<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        (&other.key, other.run).cmp(&(&self.key, self.run))
    }
}

impl PartialOrd for Head<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Head<'_> {}

impl PartialEq for Head<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

fn next_file(heads: &mut BinaryHeap<Head<'_>>) -> io::Result<Option<FileState>> {
    let Some(first) = heads.peek() else {
        return Ok(None);
    };
    let key = String::from_utf8(first.key.clone());
    let mut file = FileState {
        key: key.map_err(|_| io::ErrorKind::InvalidData)?,
        seen: None,
        is_ambiguous: false,
        replaced: None,
    };
    while let Some(mut head) = heads.peek_mut()
        && head.key == file.key.as_bytes()
    {
        file.add(head.event);
        if !head.advance()? {
            PeekMut::pop(head);
        }
    }
    Ok(Some(file))
}

impl FileState {
    pub(super) fn place(&self) -> PathParts<'_> {
        place_of(&self.key)
    }

    /// Returns the key, which [`place_of`] splits.
    pub(super) fn into_key(self) -> String {
        self.key
    }

    fn add(&mut self, event: FileEvent) {
        match event {
            FileEvent::Seen(now) => {
                let digest = |seen: Option<HashedFile>| seen.map(|seen| seen.digest);
                let is_same = self
                    .seen
                    .is_none_or(|Seen(before)| digest(before) == digest(now));
                self.is_ambiguous |= !is_same;
                self.seen = Some(Seen(now));
            }
            FileEvent::Replaced(digest) => {
                let written = |digest| WrittenFile {
                    digest,
                    proof: None,
                };
                self.replaced = Some(Replacement(digest.map(written)));
            }
            FileEvent::Proved(stamp) => {
                if let Some(Replacement(Some(written))) = &mut self.replaced {
                    written.proof = Some(stamp);
                }
            }
        }
    }
}

/// Returns the place of the file with this key.
pub(super) fn place_of(key: &str) -> PathParts<'_> {
    let root = if key.starts_with('0') {
        Root::Workspace
    } else {
        Root::Project
    };
    let (folder, name) = key[1..].split_once('\0').unwrap_or_default();
    (root, folder, name)
}

fn root_byte(root: Root) -> u8 {
    match root {
        Root::Workspace => b'0',
        Root::Project => b'1',
    }
}

impl FileEvent {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::Seen(None) => 0,
            Self::Seen(Some(HashedFile { settled, .. })) => 1 + u8::from(*settled),
            Self::Replaced(None) => 3,
            Self::Replaced(Some(_)) => 4,
            Self::Proved(_) => 5,
        });
        if let Self::Seen(Some(HashedFile { digest, .. })) | Self::Replaced(Some(digest)) = self {
            out.extend_from_slice(digest.bytes());
        }
        if let Self::Seen(Some(HashedFile { stamp, .. })) | Self::Proved(stamp) = self {
            out.extend_from_slice(&stamp.device.to_le_bytes());
            out.extend_from_slice(&stamp.bytes());
        }
    }

    fn read(from: &mut impl Read) -> io::Result<Self> {
        let [code] = bytes(from)?;
        Ok(match code {
            0 => Self::Seen(None),
            1 | 2 => Self::Seen(Some(HashedFile {
                digest: Digest::from_bytes(bytes(from)?),
                stamp: stamp(from)?,
                settled: code == 2,
            })),
            3 => Self::Replaced(None),
            4 => Self::Replaced(Some(Digest::from_bytes(bytes(from)?))),
            5 => Self::Proved(stamp(from)?),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        })
    }
}

fn stamp(from: &mut impl Read) -> io::Result<FileStamp> {
    let device = u64::from_le_bytes(bytes(from)?);
    Ok(FileStamp::of_bytes(device, &bytes(from)?))
}

fn bytes<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
