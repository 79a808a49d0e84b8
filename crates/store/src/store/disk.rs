//! The one writer: every change of the disk is a method of [`Disk`] or [`DiskFile`].

#![allow(clippy::disallowed_methods, reason = "the one writer of the disk")]

// Crash tests end the process at any operation (`faults`). The switch is here: no other file knows of the feature.
#[cfg(any(test, feature = "faults"))]
mod faults;
#[cfg(not(any(test, feature = "faults")))]
#[path = "disk/no_faults.rs"]
mod faults;
mod file;
pub mod read;
mod refusal;
pub(crate) mod search;
pub mod self_checked;

pub use file::DiskFile;
pub use refusal::{DiskError, parent};

use super::layout::OWN;
use faults::Faults;
use read::uninterrupted;
use refusal::error;
use rustix::fs::{Access, OFlags};
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The disk. Clones are cheap and share their count of operations.
#[derive(Clone, Default)]
pub struct Disk {
    faults: Arc<Faults>,
    /// True if new folders and files are for their owner only.
    is_private: bool,
    /// True if [`Disk::private`] leaves the permissions to the umask.
    is_open: bool,
}

/// Writes the content of a file, piece by piece.
pub(crate) trait Fill: FnOnce(&mut dyn Write) -> io::Result<()> {}

impl<F: FnOnce(&mut dyn Write) -> io::Result<()>> Fill for F {}

/// The bytes that a file system needs before it counts as full: smaller files fail too if it has less.
const ROOM: u64 = 8 << 10;

/// The permissions of private folders and files.
const PRIVATE_FOLDER: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;

/// The permissions of a new lock, before the umask and [`DiskFile::close_to_readers`].
const NEW_LOCK: u32 = 0o622;

impl Disk {
    /// Returns the disk without faults.
    pub fn real() -> Self {
        Self::default()
    }

    /// Returns the disk with the faults of a crash test's setting (see `faults`), such as `57`, which ends the process before the
    /// 57th operation. Builds without the feature `faults` ignore the setting.
    pub fn from_setting(setting: Option<&str>) -> Self {
        #[cfg(any(test, feature = "faults"))]
        if let Some(setting) = setting {
            return Self {
                faults: Arc::new(Faults::from_setting(setting)),
                ..Self::default()
            };
        }
        let _ = setting;
        Self::real()
    }

    /// Returns the number of operations so far.
    #[cfg(any(test, feature = "faults"))]
    pub fn count(&self) -> u64 {
        self.faults.count()
    }

    /// Returns the disk, whose new folders and files only their owner can read, from their creation on.
    #[must_use]
    pub fn private(&self) -> Self {
        Self {
            is_private: !self.is_open,
            ..self.clone()
        }
    }

    /// Returns the disk with the permissions of the umask for everything.
    #[must_use]
    pub fn open_to_umask(&self) -> Self {
        Self {
            is_open: true,
            ..self.clone()
        }
    }

    /// Restricts a private folder to its owner, if it exists. Returns false if others may still read it: another user owns it, or
    /// the file system keeps no permissions.
    pub(crate) fn close_folder(&self, folder: &Path) -> bool {
        let is_shared = || {
            let found = fs::symlink_metadata(folder);
            found.is_ok_and(|found| found.is_dir() && found.mode() & 0o077 != 0)
        };
        if !self.is_private || !is_shared() {
            return true;
        }
        self.set_mode(folder, PRIVATE_FOLDER).is_ok() && !is_shared()
    }

    /// Creates a folder and its parents, and flushes each new one in its parent, so that it survives a crash.
    pub fn create_dir_all(&self, folder: &Path) -> Result<(), DiskError> {
        for made in self.create_dirs(folder)? {
            self.sync_dir(parent(&made))?;
        }
        Ok(())
    }

    /// Creates a folder from which old files are removed. A symbolic link at its path is an error: it leads to files of others.
    pub(crate) fn create_own_dir(&self, folder: &Path) -> Result<(), DiskError> {
        self.create_dir_all(folder)?;
        if folder.is_symlink() {
            let cause = "expected a folder, found a symbolic link: remove it";
            return Err(error(folder, "use", io::Error::other(cause)));
        }
        Ok(())
    }

    /// Creates a folder and its parents without flushing. Returns those that are new.
    pub(crate) fn create_dirs(&self, folder: &Path) -> Result<Vec<PathBuf>, DiskError> {
        use std::os::unix::fs::DirBuilderExt as _;
        let mut missing = Vec::new();
        let mut at = Some(folder);
        while let Some(folder) = at.filter(|folder| !folder.as_os_str().is_empty()) {
            match fs::metadata(folder) {
                Ok(found) if found.is_dir() => break,
                Ok(_) => {
                    let source = io::ErrorKind::NotADirectory.into();
                    return Err(error(folder, "make the folder", source));
                }
                Err(cause)
                    if matches!(
                        cause.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                    ) =>
                {
                    missing.push(folder);
                }
                Err(cause) => return Err(error(folder, "make the folder", cause)),
            }
            at = folder.parent();
        }
        missing.reverse();
        for folder in &missing {
            let step = self.faults.step("make", folder);
            let mut builder = fs::DirBuilder::new();
            if self.is_private {
                builder.mode(PRIVATE_FOLDER);
            }
            match uninterrupted(|| builder.create(folder)) {
                Ok(()) => step.made(folder),
                // Another thread made it first.
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(error(folder, "make the folder", cause)),
            }
        }
        Ok(missing.into_iter().map(Path::to_owned).collect())
    }

    /// Creates or truncates a file. Its other hard links keep their content. A symbolic link or special file at its path is an error.
    pub fn create(&self, path: &Path) -> Result<DiskFile, DiskError> {
        if has_other_links(path) {
            self.remove_file(path)?;
        }
        self.open(
            path,
            "create",
            OpenOptions::new().write(true).create(true).truncate(true),
        )
    }

    /// Opens or creates a file to append to. Its other hard links keep their content. A symbolic link or special file at its path is
    /// an error.
    pub(crate) fn open_append(&self, path: &Path) -> Result<DiskFile, DiskError> {
        if has_other_links(path) {
            self.separate(path)?;
        }
        self.open(path, "open", OpenOptions::new().append(true).create(true))
    }

    /// Opens or creates a file that a person named to append to, which may be a pipe. A symbolic link at its path is an error.
    pub fn open_stream(&self, path: &Path) -> Result<DiskFile, DiskError> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let opened = options.custom_flags(flags).open(path);
        let file = opened.map_err(|cause| error(path, "open", cause))?;
        Ok(DiskFile::new(
            Arc::clone(&self.faults),
            file,
            path.to_owned(),
        ))
    }

    /// Replaces a file with several hard links, as `cp -al` makes them, by a copy of its own.
    pub(crate) fn separate(&self, path: &Path) -> Result<(), DiskError> {
        let mode = fs::metadata(path).map_err(|cause| error(path, "look at", cause))?;
        let copy = temporary(path);
        self.copy_file(path, &copy)?;
        self.set_mode(&copy, mode.permissions().mode())?;
        self.sync_file(&copy)?;
        self.rename(&copy, path)?;
        self.sync_dir(parent(path))
    }

    /// Opens or creates the file of a lock, which only those who may write can read. A symbolic link or special file at its path is
    /// an error.
    pub(crate) fn open_lock(&self, path: &Path) -> Result<DiskFile, DiskError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        options.mode(NEW_LOCK);
        let file = self.open(path, "open", &mut options)?;
        file.close_to_readers();
        Ok(file)
    }

    /// Returns true if the file system of a folder has no space left. Its error may have met a program that did not report it.
    pub fn is_full(&self, folder: &Path) -> bool {
        let found = rustix::fs::statvfs(folder);
        // A network file system may count no blocks at all.
        found.is_ok_and(|found| found.f_blocks > 0 && found.f_bavail * found.f_frsize < ROOM)
    }

    /// Renames `from` to `to` atomically, replacing `to`.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        let step = self.faults.step_away("rename", to, false);
        let renamed = uninterrupted(|| fs::rename(from, to)).map(|()| step.renamed(from, to));
        renamed.map_err(|cause| {
            // Report a missing source about the source, and anything else about the target.
            let about = match fs::symlink_metadata(from) {
                Err(_) => from,
                Ok(_) => to,
            };
            error(about, "move a file to", cause)
        })
    }

    /// Renames a file that a program wrote, also out of a folder that it made read-only.
    pub(crate) fn rename_from_program(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.rename(from, to).or_else(|error| {
            if error.source.kind() != io::ErrorKind::PermissionDenied {
                return Err(error);
            }
            open_up(parent(from));
            self.rename(from, to)
        })
    }

    /// Flushes the entries of a folder, so that what was created, renamed or removed in it survives a crash.
    pub fn sync_dir(&self, folder: &Path) -> Result<(), DiskError> {
        let step = self.faults.step_flush(folder);
        let flushed = if step.is_wanted() {
            File::open(folder).and_then(|folder| folder.sync_all())
        } else {
            Ok(())
        };
        match flushed.map(|()| step.flushed(folder)) {
            // Some network file systems refuse to flush a folder, and need none.
            Err(cause) if cause.kind() == io::ErrorKind::InvalidInput => Ok(()),
            other => other.map_err(|cause| error(folder, "flush the folder", cause)),
        }
    }

    /// Flushes a file that another program wrote.
    pub fn sync_file(&self, path: &Path) -> Result<(), DiskError> {
        let step = self.faults.step_flush(path);
        if step.is_wanted() {
            let flushed = read::open(path).and_then(|file| file.sync_all());
            flushed.map_err(|cause| error(path, "flush", cause))?;
        }
        step.flushed(path);
        Ok(())
    }

    /// Flushes files on the file system of `folder`, all at once where the system can.
    pub fn sync_filesystem(
        &self,
        folder: &Path,
        files: &[impl AsRef<Path>],
    ) -> Result<(), DiskError> {
        #[cfg(target_os = "linux")]
        {
            let _ = files;
            let step = self.faults.step_flush(folder);
            if step.is_wanted() {
                let flushed = File::open(folder)
                    .and_then(|folder| uninterrupted(|| Ok(rustix::fs::syncfs(&folder)?)));
                flushed.map_err(|cause| error(folder, "flush the file system of", cause))?;
            }
            step.flushed_all();
            Ok(())
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = folder;
            files
                .iter()
                .try_for_each(|file| self.sync_file(file.as_ref()))
        }
    }

    /// Removes a file if it exists.
    pub fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        let step = self.faults.step_away("remove", path, false);
        let removed = gone(uninterrupted(|| fs::remove_file(path))).map(|()| step.removed(path));
        removed.map_err(|cause| error(path, "remove", cause))
    }

    /// Removes a folder with its content if it exists, without following symbolic links.
    pub fn remove_dir_all(&self, folder: &Path) -> Result<(), DiskError> {
        if let Some(link) = link_above(folder) {
            let cause = io::Error::other("it is a symbolic link: replace it with a folder");
            return Err(error(&link, "remove anything in", cause));
        }
        let step = self.faults.step_away("remove", folder, true);
        if step.is_half() {
            // A kill in the middle: a part of what is in the folder is gone.
            let first = fs::read_dir(folder).ok().and_then(|mut all| all.next());
            if let Some(Ok(first)) = first {
                let _ = fs::remove_dir_all(first.path());
                let _ = fs::remove_file(first.path());
            }
            step.end();
        }
        let remove = || gone(uninterrupted(|| fs::remove_dir_all(folder)));
        let (mut removed, mut foreign) = (remove(), None);
        if matches!(&removed, Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied) {
            foreign = open_up(folder);
            removed = remove();
        }
        let removed = removed.map(|()| step.removed(folder));
        removed.map_err(|cause| match foreign {
            Some(foreign) => error(&foreign, "empty", cause),
            None => error(folder, "remove the folder", cause),
        })
    }

    /// Sets the permissions of a file (`chmod`).
    pub(crate) fn set_mode(&self, path: &Path, mode: u32) -> Result<(), DiskError> {
        let _step = self.faults.step("set permissions of", path);
        let set = fs::set_permissions(path, fs::Permissions::from_mode(mode));
        set.map_err(|cause| error(path, "set the permissions of", cause))
    }

    /// Copies the bytes of a file without its permissions, and does not flush them. Returns the size in bytes.
    pub fn copy_file(&self, from: &Path, to: &Path) -> Result<u64, DiskError> {
        let mut source = read::open(from).map_err(|cause| error(from, "read", cause))?;
        let mut target = self.create(to)?;
        let mut buffer = vec![0; 1 << 18];
        let mut size = 0;
        loop {
            let read = uninterrupted(|| io::Read::read(&mut source, &mut buffer))
                .map_err(|cause| error(from, "read", cause))?;
            if read == 0 {
                return Ok(size);
            }
            target.write_bytes(&buffer[..read])?;
            size += read as u64;
        }
    }

    /// Replaces a file atomically and durably: a reader sees the old bytes or the new ones, also after a crash.
    pub fn write_atomic(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.write_atomic_by(path, |out| out.write_all(bytes))
    }

    /// Does the same with what `fill` writes.
    pub(crate) fn write_atomic_by(&self, path: &Path, fill: impl Fill) -> Result<(), DiskError> {
        self.replace(path, fill, true)?;
        self.sync_dir(parent(path))
    }

    /// Replaces a file atomically but not durably.
    pub fn write_swap(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.write_swap_by(path, |out| out.write_all(bytes))
    }

    /// Does the same with what `fill` writes. If `fill` fails, the file stays as it is.
    pub(crate) fn write_swap_by(&self, path: &Path, fill: impl Fill) -> Result<(), DiskError> {
        self.replace(path, fill, false)
    }

    /// Writes a hidden file beside the target and renames it. The next write reuses one that a crash left.
    fn replace(&self, path: &Path, fill: impl Fill, sync: bool) -> Result<(), DiskError> {
        let temporary = temporary(path);
        let written = self.create(&temporary).and_then(|mut file| {
            file.fill(fill)?;
            if sync { file.sync() } else { Ok(()) }
        });
        let replaced = written.and_then(|()| self.rename(&temporary, path));
        if replaced.is_err() {
            // The disk may be full: half a file would stay for nothing.
            let _ = fs::remove_file(&temporary);
        }
        replaced
    }

    fn open(
        &self,
        path: &Path,
        action: &'static str,
        options: &mut OpenOptions,
    ) -> Result<DiskFile, DiskError> {
        let step = self.faults.step(action, path);
        let flags = OFlags::NOFOLLOW.union(read::AT_ONCE).bits();
        if self.is_private {
            options.mode(PRIVATE_FILE);
        }
        let opened = options.custom_flags(flags.cast_signed()).open(path);
        let opened = read::checked(path, opened);
        let file = opened.map_err(|cause| error(path, action, cause))?;
        if action == "create" {
            step.cut(path, 0);
        } else {
            step.made(path);
        }
        Ok(DiskFile::new(
            Arc::clone(&self.faults),
            file,
            path.to_owned(),
        ))
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

/// Returns the hidden file beside a file that replaces it.
fn temporary(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".tmp");
    path.with_file_name(name)
}

/// Returns the symbolic link on the way to a path in `.milepost`. Milepost removes nothing behind it.
fn link_above(path: &Path) -> Option<PathBuf> {
    let mut above = path.ancestors().skip(1);
    let inside = above.clone().position(|folder| folder.ends_with(OWN))?;
    let mut inside = above.by_ref().take(inside);
    inside
        .find(|folder| folder.is_symlink())
        .map(Path::to_owned)
}

/// Returns true if a regular file has hard links elsewhere, such as in a copy of the workspace.
pub(crate) fn has_other_links(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.nlink() > 1)
}

/// Gives the owner all permissions of a folder and of those in it, which programs may have made read-only. Returns the first one
/// that another user owns.
pub(crate) fn open_up(folder: &Path) -> Option<PathBuf> {
    let mut foreign = None;
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        let Ok(found) = fs::symlink_metadata(&folder) else {
            continue;
        };
        let mode = found.mode() | PRIVATE_FOLDER;
        if mode != found.mode()
            && fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).is_err()
            || rustix::fs::access(&folder, Access::WRITE_OK).is_err()
        {
            foreign = foreign.or_else(|| Some(folder.clone()));
        }
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        left.extend(folders.map(|entry| entry.path()));
    }
    foreign
}

fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_a_file_in_five_operations() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::real();
        let path = folder.path().join("x.json");
        disk.write_atomic(&path, b"one").unwrap();
        disk.write_atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(disk.count(), 10);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn makes_folders_once() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::real();
        disk.create_dir_all(&folder.path().join("a/b/c")).unwrap();
        assert_eq!(disk.count(), 6);
        disk.create_dir_all(&folder.path().join("a/b/c")).unwrap();
        assert_eq!(disk.count(), 6);
        disk.write_atomic(&folder.path().join("a/x"), b"").unwrap();
        let refused = disk.create_dir_all(&folder.path().join("a/x/y"));
        let message = refused.unwrap_err().to_string();
        assert!(
            message.ends_with("a/x: expected a folder, found a file"),
            "{message}"
        );
    }

    #[test]
    fn writes_through_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other");
        fs::write(&other, "mine").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let message = Disk::real().create(&link).unwrap_err().to_string();
        assert!(
            message.contains("does not write through links"),
            "{message}"
        );
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
    }
}
