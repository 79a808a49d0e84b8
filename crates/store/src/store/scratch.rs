//! Scratch: a private folder for each attempt, where outputs are written and hashed before they are published.

mod pool;
mod sink;

pub use pool::ScratchPool;
pub(crate) use sink::FileContent;

use super::disk::{Disk, DiskError, open_up, parent};
use super::layout::{self, Layout, safe_name};
use super::quarantine::{self, keep, next_sequence, write_reason};
use super::read;
use super::scan::files::{Files, digest_from, digest_of};
use super::scan::folder::{OpenedEntry, Start};
use super::scan::stamp::FileStamp;
use milepost_core::base::digest::Hasher;
use milepost_core::base::path::RelPath;
use milepost_core::base::source::Sink;
use pool::Spare;
use sink::{FinishedFile, HashingSink, Sunk};
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The scratch of one attempt, `.milepost/scratch/RUN/STAGE/BATCH~ATTEMPT`.
///
/// It is a folder if programs write there. If only Milepost writes, it has no folder of its own: the files of all attempts are
/// side by side, as `BATCH~ATTEMPT.0`, `BATCH~ATTEMPT.1` and so on, which saves creating and removing folders.
#[derive(Clone)]
pub struct Scratch {
    disk: Disk,
    start: Start,
    /// The folder of all attempts, which is for its owner only: the files in it have the permissions of outputs.
    all: PathBuf,
    path: PathBuf,
    inside: RelPath,
    is_folder: bool,
    /// Folders that were made in it.
    folders: Arc<Mutex<BTreeSet<RelPath>>>,
    made: Arc<Mutex<Vec<Sunk>>>,
}

#[derive(Debug, Clone, Copy)]
pub struct AttemptName<'a> {
    pub run: &'a str,
    pub stage: &'a str,
    pub batch: &'a str,
    /// A number that is unique among the attempts at the batch.
    pub number: u64,
}

/// A file that cannot be taken from scratch.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// There is a link, a folder or a socket instead of an output.
    #[error("output `{path}` is {what}: a step writes regular files")]
    NotRegular {
        /// The output.
        path: RelPath,
        /// The kind of file: a link, a folder or a socket.
        what: &'static str,
    },
}

/// Scratch files that could not be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckScratch {
    /// The folder where they are now, in the workspace.
    pub folder: RelPath,
    /// Why they could not be removed.
    pub problem: String,
}

/// Removes the scratch of all runs. Files that cannot be removed move to quarantine. A link is left, because its target belongs to
/// others.
pub fn clear(disk: &Disk, layout: &Layout, run: &str) -> Option<StuckScratch> {
    let scratch = layout.scratch();
    if scratch
        .symlink_metadata()
        .map_or(true, |found| found.is_symlink())
    {
        return None;
    }
    let problem = disk.remove_dir_all(&scratch).err()?.to_string();
    let folder = quarantine::folder(run, next_sequence(layout, run), "scratch");
    let kept = keep(disk, layout, &layout::scratch(), &folder)
        .and_then(|_| write_reason(disk, layout, &folder, &format!("{problem}\n")));
    let folder = if kept.is_ok() {
        folder
    } else {
        layout::scratch()
    };
    Some(StuckScratch { folder, problem })
}

impl Scratch {
    /// Creates the empty scratch of an attempt. If programs write there, it reuses a folder of `pool` that was made for outputs
    /// in the same folders as `targets`.
    pub fn create(
        disk: &Disk,
        files: &Files,
        layout: &Layout,
        name: &AttemptName<'_>,
        pool: Option<&ScratchPool>,
        targets: &mut dyn Iterator<Item = &RelPath>,
    ) -> Result<Self, ScratchError> {
        let attempt = format!("{}~{}", safe_name(name.batch), name.number);
        let parts = [safe_name(name.run), safe_name(name.stage), attempt];
        let below = RelPath::of_parts(parts.iter().map(String::as_str));
        let inside = layout::scratch().with(&below);
        let (all, path) = (layout.scratch(), layout.at(&inside));
        let mut folders = BTreeSet::new();
        if let Some(pool) = pool {
            targets.for_each(|target| above(target, &mut folders));
            match pool.take(&folders) {
                Some(spare) => disk.rename(&spare, &path)?,
                None => {
                    folders.clear();
                    if path.symlink_metadata().is_ok() {
                        disk.remove_dir_all(&path)?;
                    }
                    disk.private().create_dirs(&all)?;
                    disk.create_dirs(&path)?;
                }
            }
        }
        Ok(Self {
            disk: disk.clone(),
            start: files.workspace().clone(),
            all,
            path,
            inside,
            is_folder: pool.is_some(),
            folders: Arc::new(Mutex::new(folders)),
            made: Arc::default(),
        })
    }

    /// Creates the empty scratch of an attempt in a job: the folder `inside` of the workspace, which belongs to one process.
    pub fn create_in_job(
        disk: &Disk,
        files: &Files,
        layout: &Layout,
        inside: &RelPath,
    ) -> Result<Self, ScratchError> {
        let scratch = Self::of_job(disk, files, layout, inside);
        disk.private().create_dirs(&scratch.all)?;
        disk.create_dirs(&scratch.path)?;
        Ok(scratch)
    }

    /// Returns the scratch that a process of a job filled.
    pub fn of_job(disk: &Disk, files: &Files, layout: &Layout, inside: &RelPath) -> Self {
        let path = layout.at(inside);
        Self {
            disk: disk.clone(),
            start: files.workspace().clone(),
            all: parent(&path).to_owned(),
            path,
            inside: inside.clone(),
            is_folder: true,
            folders: Arc::default(),
            made: Arc::default(),
        }
    }

    fn sunk(&self) -> MutexGuard<'_, Vec<Sunk>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the absolute path of the folder in which programs work.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if it is a folder.
    pub fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// Returns the ending of a file's name in an attempt without a folder: its number among the written files. A file that was
    /// never written gets an unused number.
    fn ending(&self, file: &RelPath) -> String {
        let sunk = self.sunk();
        let at = sunk.iter().position(|sunk| sunk.file == *file);
        format!(".{}", at.unwrap_or(sunk.len()))
    }

    /// Returns the absolute path of a file of the attempt.
    pub fn at(&self, file: &RelPath) -> PathBuf {
        if self.is_folder {
            return self.path.join(file.as_str());
        }
        let mut path = self.path.clone().into_os_string();
        path.push(self.ending(file));
        path.into()
    }

    /// Returns the path of a file of the attempt relative to the workspace, as `publish` records it.
    pub fn inside(&self, file: &RelPath) -> RelPath {
        if self.is_folder {
            self.inside.with(file)
        } else {
            self.inside.ending_with(&self.ending(file))
        }
    }

    /// Opens a file for writing. It is hashed while it is written.
    pub fn sink(&self, file: &RelPath) -> Result<Box<dyn Sink>, DiskError> {
        {
            let mut sunk = self.sunk();
            match sunk.iter_mut().find(|sunk| sunk.file == *file) {
                Some(sunk) => sunk.written = None,
                None => sunk.push(Sunk {
                    file: file.clone(),
                    written: None,
                    published: false,
                }),
            }
        }
        if self.is_folder {
            self.make_folder_of(file)?;
        }
        let path = self.at(file);
        let open = match self.disk.create(&path) {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => {
                self.disk.private().create_dirs(&self.all)?;
                self.disk.create_dirs(parent(&path))?;
                self.disk.create(&path)?
            }
            opened => opened?,
        };
        Ok(Box::new(HashingSink {
            file: file.clone(),
            path,
            open,
            buffer: Vec::new(),
            hasher: Hasher::new(),
            size: 0,
            made: Arc::clone(&self.made),
        }))
    }

    /// Creates the folder of a file, for a command that writes the file.
    pub fn make_folder_of(&self, file: &RelPath) -> Result<(), DiskError> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let is_there = file.parent().is_none_or(|parent| folders.contains(&parent));
        if !is_there {
            self.disk.create_dirs(parent(&self.at(file)))?;
            above(file, &mut folders);
        }
        Ok(())
    }

    /// Returns the files that sinks have finished, in the order in which they were opened.
    pub fn files(&self) -> Vec<RelPath> {
        let sunk = self.sunk();
        let finished = sunk.iter().filter(|sunk| sunk.written.is_some());
        finished.map(|sunk| sunk.file.clone()).collect()
    }

    /// Returns the content that a finished sink wrote.
    pub fn made(&self, file: &RelPath) -> Option<FileContent> {
        self.written(file).map(|written| written.content)
    }

    /// Returns the stamp that a file had when its sink finished; `None` if no sink wrote it.
    pub fn stamp(&self, file: &RelPath) -> Option<FileStamp> {
        self.written(file).map(|written| written.stamp)
    }

    fn written(&self, file: &RelPath) -> Option<FinishedFile> {
        let sunk = self.sunk();
        let found = sunk.iter().find(|sunk| sunk.file == *file);
        found.and_then(|sunk| sunk.written)
    }

    /// Returns the content of a file, written by Milepost or by a program; `None` if it does not exist. A link or a special file is
    /// an error.
    pub fn content(&self, file: &RelPath) -> Result<Option<FileContent>, ScratchError> {
        if !self.is_folder {
            // Nobody else writes here.
            return Ok(self.made(file));
        }
        let path = self.at(file);
        let fail = DiskError::reading(&path);
        // A later step may have written over what a sink wrote: the change time would tell.
        let known = |found: &Metadata| {
            let written = self.written(file)?;
            (written.stamp == FileStamp::of(found)).then_some(written.content)
        };
        match self.start.open_file(self.inside(file).as_str()) {
            OpenedEntry::Absent => return Ok(None),
            OpenedEntry::There(mut open) => {
                let found = open.metadata().map_err(&fail)?;
                if found.is_file() {
                    if let Some(content) = known(&found) {
                        return Ok(Some(content));
                    }
                    let (digest, size) = digest_from(&mut open, found.len()).map_err(&fail)?;
                    return Ok(Some(FileContent { digest, size }));
                }
            }
            OpenedEntry::Unclear => {}
        }
        let found = match std::fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(cause)
                if matches!(
                    cause.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            Err(cause) => return Err(fail(cause).into()),
        };
        if !found.is_file() {
            return Err(ScratchError::NotRegular {
                path: file.clone(),
                what: read::kind_of(found.file_type()),
            });
        }
        // A link on the way would have another's file taken for an output.
        let folder = parent(&path).canonicalize().map_err(&fail)?;
        let own = self.path.canonicalize().map_err(&fail)?;
        if !folder.starts_with(own) {
            return Err(ScratchError::NotRegular {
                path: file.clone(),
                what: "behind a symbolic link",
            });
        }
        if let Some(content) = known(&found) {
            return Ok(Some(content));
        }
        let content = digest_of(&path).map_err(&fail)?;
        Ok(content.map(|(digest, size)| FileContent { digest, size }))
    }

    /// Removes a file of the attempt.
    pub fn forget(&self, file: &RelPath) -> Result<(), DiskError> {
        if let Some(sunk) = self.sunk().iter_mut().find(|sunk| sunk.file == *file) {
            sunk.written = None;
        }
        self.disk.remove_file(&self.at(file))
    }

    /// Notes that a file was renamed into its place, so that it need not be removed.
    pub fn published(&self, file: &RelPath) {
        if let Some(sunk) = self.sunk().iter_mut().find(|sunk| sunk.file == *file) {
            sunk.published = true;
        }
    }

    /// Returns true if it contains nothing but folders.
    pub fn is_empty(&self) -> bool {
        if !self.is_folder {
            return self.sunk().is_empty();
        }
        let mut entries = walkdir::WalkDir::new(&self.path).min_depth(1).into_iter();
        entries.all(|entry| entry.is_ok_and(|entry| entry.file_type().is_dir()))
    }

    /// Moves all remaining files to a folder of the workspace durably.
    pub fn keep(self, layout: &Layout, folder: &RelPath) -> Result<(), DiskError> {
        if self.is_folder {
            open_up(&self.path);
            return keep(&self.disk, layout, &self.inside, folder).map(|_| ());
        }
        let files: Vec<RelPath> = self.sunk().iter().map(|sunk| sunk.file.clone()).collect();
        for file in files {
            keep(&self.disk, layout, &self.inside(&file), &folder.with(&file))?;
        }
        Ok(())
    }

    /// Returns the folder to the pool for a later attempt if it contains only the folders of its outputs; otherwise removes it. Every
    /// program that could write there must have ended.
    pub fn return_to(self, pool: &ScratchPool) {
        if !self.is_folder || !self.is_as_made().unwrap_or(false) {
            return self.remove();
        }
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        pool.all().push(Spare {
            path: self.path.clone(),
            folders: std::mem::take(&mut folders),
        });
    }

    /// Whether nothing is in it but the folders that were made, and they are open to the same people as the one that they lie in.
    fn is_as_made(&self) -> io::Result<bool> {
        let rights = |found: &Metadata| (found.mode(), found.uid(), found.gid());
        let expected = rights(&parent(&self.path).symlink_metadata()?);
        let mut left = {
            let folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
            folders.clone()
        };
        for entry in walkdir::WalkDir::new(&self.path) {
            let entry = entry?;
            let found = entry.metadata()?;
            if !found.is_dir() || rights(&found) != expected {
                return Ok(false);
            }
            let inside = entry
                .path()
                .strip_prefix(&self.path)
                .unwrap_or(entry.path());
            let Some(inside) = inside.to_str() else {
                return Ok(false);
            };
            let is_known = RelPath::parse(inside).is_ok_and(|inside| left.remove(&inside));
            if !is_known && entry.depth() > 0 {
                return Ok(false);
            }
        }
        Ok(left.is_empty())
    }

    /// Removes all remaining files. [`clear`] reports those that cannot be removed.
    pub fn remove(self) {
        if self.is_folder {
            let _ = self.disk.remove_dir_all(&self.path);
            return;
        }
        let sunk = self.sunk();
        let left = sunk.iter().filter(|sunk| !sunk.published);
        let left: Vec<RelPath> = left.map(|sunk| sunk.file.clone()).collect();
        drop(sunk);
        for file in left {
            let _ = self.disk.remove_file(&self.at(&file));
        }
    }
}

/// The folders above a file, up to the attempt's.
fn above(file: &RelPath, folders: &mut BTreeSet<RelPath>) {
    let mut at = file.parent();
    while let Some(folder) = at {
        at = folder.parent();
        folders.insert(folder);
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests prepare the disk by hand")]
mod tests;
