//! Open folders, below which the kernel confines every path.

use super::stamp::{FileStamp, nanoseconds};
use crate::store::read::AT_ONCE;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A folder that paths start from, opened at first use.
#[derive(Debug, Clone)]
pub(in crate::store) struct Start {
    path: Arc<Path>,
    open: Arc<OnceLock<OwnedFd>>,
}

#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

/// The entry at a path, found without following links.
#[derive(Debug)]
pub enum OpenedEntry {
    /// The entry exists and is open for reading.
    There(File),
    /// Nothing is there, and no part of the path is a link.
    Absent,
    /// A part of the path is a link, the entry may not be read, or the system cannot tell.
    Unclear,
}

impl Start {
    pub(in crate::store) fn new(path: PathBuf) -> Self {
        Self {
            path: path.into(),
            open: Arc::default(),
        }
    }

    pub(in crate::store) fn path(&self) -> &Arc<Path> {
        &self.path
    }

    /// Returns true if the existing part of a path contains no link. Without links, only `..` leads out, which no path contains.
    pub(in crate::store) fn is_plain(&self, path: &str) -> bool {
        // The kernel goes from part to part: what is missing was reached over no link.
        matches!(
            self.open_plain(path, OFlags::PATH),
            Ok(_) | Err(Errno::NOENT)
        )
    }

    /// Opens the entry at a path for reading, in one step with the check that no link is on the way.
    pub(in crate::store) fn open_file(&self, path: &str) -> OpenedEntry {
        match self.open_plain(path, OFlags::RDONLY | AT_ONCE) {
            Ok(open) => OpenedEntry::There(open.into()),
            Err(Errno::NOENT) => OpenedEntry::Absent,
            Err(_) => OpenedEntry::Unclear,
        }
    }

    pub(in crate::store) fn open(&self, folder: &str) -> io::Result<Option<Folder>> {
        let folder = if folder.is_empty() { "." } else { folder };
        match self.open_plain(folder, OFlags::PATH | OFlags::DIRECTORY) {
            Ok(open) => Ok(Some(Folder(open))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn open_plain(&self, _: &str, _: OFlags) -> Result<OwnedFd, Errno> {
        Err(Errno::NOSYS)
    }

    #[cfg(target_os = "linux")]
    fn open_plain(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        use rustix::fs::{ResolveFlags, openat2};
        let start = match self.open.get() {
            Some(start) => start,
            None => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let start = retry_on_intr(|| rustix::fs::open(&*self.path, flags, Mode::empty()))?;
                self.open.get_or_init(|| start)
            }
        };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = flags | OFlags::CLOEXEC;
        retry_on_intr(|| openat2(start, path, flags, Mode::empty(), resolve))
    }
}

impl Folder {
    /// Returns the stamp of a file in the folder; `None` if the name does not exist.
    ///
    /// # Errors
    /// If it is not a regular file, or the system refuses.
    pub(crate) fn stamp(&self, name: &str) -> io::Result<Option<FileStamp>> {
        match retry_on_intr(|| statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)) {
            Ok(found) if FileType::from_raw_mode(found.st_mode).is_file() => {
                Ok(Some(stamp(&found)))
            }
            Ok(_) => Err(io::ErrorKind::InvalidInput.into()),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file in it to be read; a link is not followed.
    ///
    /// # Errors
    /// As opening a file.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | AT_ONCE | OFlags::CLOEXEC;
        Ok(retry_on_intr(|| openat(&self.0, name, flags, Mode::empty()))?.into())
    }

    /// Returns the stamp of the folder itself, which changes when a name is added, removed or replaced.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn own_stamp(&self) -> io::Result<FileStamp> {
        Ok(stamp(&statat(&self.0, "", AtFlags::EMPTY_PATH)?))
    }
}

#[allow(
    clippy::unnecessary_cast,
    clippy::useless_conversion,
    reason = "the types differ by system"
)]
fn stamp(found: &rustix::fs::Stat) -> FileStamp {
    FileStamp {
        device: found.st_dev as u64,
        inode: found.st_ino as u64,
        size: found.st_size as u64,
        mtime: nanoseconds(found.st_mtime as i64, found.st_mtime_nsec as i64),
        ctime: nanoseconds(found.st_ctime as i64, found.st_ctime_nsec as i64),
    }
}
