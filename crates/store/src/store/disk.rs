//! The seam through which every change of the disk goes: it can be counted, and stopped at the Nth.

#![allow(clippy::disallowed_methods, reason = "the one writer of the disk")]

#[cfg(any(test, debug_assertions))]
mod power;
mod seam;

pub use seam::Stop;

use seam::Seam;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The disk. Cheap to clone; every clone counts together.
#[derive(Clone, Default)]
pub struct Disk(Arc<Seam>);

/// A change of the disk that did not succeed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}: {}", explain(.path, .action, .source))]
pub struct DiskError {
    /// What was to be changed.
    pub path: PathBuf,
    /// What was to be done: `write`, `rename`, `flush`.
    pub action: &'static str,
    /// What the system said.
    pub source: io::Error,
}

impl DiskError {
    /// An operation that was refused, as in `cannot {action} {path}`.
    pub fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self {
            path: path.to_owned(),
            action,
            source,
        }
    }
}

impl From<DiskError> for io::Error {
    fn from(error: DiskError) -> io::Error {
        io::Error::new(error.source.kind(), error)
    }
}

impl Disk {
    /// The disk as it is.
    pub fn real() -> Self {
        Self::default()
    }

    /// A disk that ends the process at the `n`th operation (from 1 on), as if the machine had killed it.
    #[cfg(any(test, debug_assertions))]
    pub fn stopping_at(n: u64, stop: Stop) -> Self {
        Self(Arc::new(Seam::stopping_at(n, stop)))
    }

    /// The disk that a test asks for: `57` stops before the 57th operation, `57:half` in the middle of its write; see
    /// `seam.rs` for more. Every release build gives the disk as it is.
    pub fn from_setting(setting: Option<&str>) -> Self {
        #[cfg(any(test, debug_assertions))]
        if let Some(setting) = setting {
            return Self(Arc::new(Seam::from_setting(setting)));
        }
        let _ = setting;
        Self::real()
    }

    /// Operations so far.
    #[cfg(any(test, debug_assertions))]
    pub fn count(&self) -> u64 {
        self.0.count()
    }

    /// Makes a folder and those above it; each one made is flushed in its parent, so that it survives a crash.
    pub fn create_dir_all(&self, folder: &Path) -> Result<(), DiskError> {
        for made in self.create_dirs(folder)? {
            self.sync_dir(parent(&made))?;
        }
        Ok(())
    }

    /// Makes a folder and those above it, and gives those that were made. Whoever needs them after a crash flushes them.
    pub fn create_dirs(&self, folder: &Path) -> Result<Vec<PathBuf>, DiskError> {
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
            let step = self.0.step("make", folder);
            match fs::create_dir(folder) {
                Ok(()) => step.made(folder),
                // Another thread made it first.
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(error(folder, "make the folder", cause)),
            }
        }
        Ok(missing.into_iter().map(Path::to_owned).collect())
    }

    /// Opens a file for writing and empties it. A symbolic link at its path is refused.
    pub fn create(&self, path: &Path) -> Result<DiskFile, DiskError> {
        self.open(
            path,
            "create",
            OpenOptions::new().write(true).create(true).truncate(true),
        )
    }

    /// Opens a file, made when it is not there, whose writes go to its end. A symbolic link at its path is refused.
    pub fn open_append(&self, path: &Path) -> Result<DiskFile, DiskError> {
        self.open(path, "open", OpenOptions::new().append(true).create(true))
    }

    /// Opens a file to be read and changed as it is, made when it is not there. A symbolic link at its path is refused.
    pub fn open_existing_or_new(&self, path: &Path) -> Result<DiskFile, DiskError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        self.open(path, "open", &mut options)
    }

    /// Puts what is at `from` at `to`, in one step for whoever looks. What lay at `to` is gone.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        let step = self.0.step_away("rename", to, false);
        let renamed = fs::rename(from, to).map(|()| step.renamed(from, to));
        renamed.map_err(|cause| {
            // The source being gone is said of the source, everything else of the target.
            let about = match fs::symlink_metadata(from) {
                Err(_) => from,
                Ok(_) => to,
            };
            error(about, "move a file to", cause)
        })
    }

    /// Flushes the entries of a folder: what was made, renamed or removed in it survives a crash.
    pub fn sync_dir(&self, folder: &Path) -> Result<(), DiskError> {
        let step = self.0.step_flush(folder);
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

    /// Flushes a file that somebody else wrote.
    pub fn sync_file(&self, path: &Path) -> Result<(), DiskError> {
        let step = self.0.step_flush(path);
        if step.is_wanted() {
            let flushed = File::open(path).and_then(|file| file.sync_all());
            flushed.map_err(|cause| error(path, "flush", cause))?;
        }
        step.flushed(path);
        Ok(())
    }

    /// Flushes these files, which lie on the file system of `folder`: all at once where the system can.
    pub fn sync_filesystem(
        &self,
        folder: &Path,
        files: &[impl AsRef<Path>],
    ) -> Result<(), DiskError> {
        #[cfg(target_os = "linux")]
        {
            let _ = files;
            let step = self.0.step_flush(folder);
            if step.is_wanted() {
                let flushed = File::open(folder)
                    .and_then(|folder| rustix::fs::syncfs(folder).map_err(io::Error::from));
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

    /// Removes a file; one that is not there is removed already.
    pub fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        let step = self.0.step_away("remove", path, false);
        let removed = gone(fs::remove_file(path)).map(|()| step.removed(path));
        removed.map_err(|cause| error(path, "remove", cause))
    }

    /// Removes a folder and all that is in it, following no symbolic link; one that is not there is removed already.
    pub fn remove_dir_all(&self, folder: &Path) -> Result<(), DiskError> {
        let step = self.0.step_away("remove", folder, true);
        if step.is_half() {
            // A kill in the middle: a part of what is in the folder is gone.
            let first = fs::read_dir(folder).ok().and_then(|mut all| all.next());
            if let Some(Ok(first)) = first {
                let _ = fs::remove_dir_all(first.path());
                let _ = fs::remove_file(first.path());
            }
            step.end();
        }
        let removed = gone(fs::remove_dir_all(folder)).map(|()| step.removed(folder));
        removed.map_err(|cause| error(folder, "remove the folder", cause))
    }

    /// Gives a file these permissions (`chmod`).
    pub fn set_mode(&self, path: &Path, mode: u32) -> Result<(), DiskError> {
        use std::os::unix::fs::PermissionsExt as _;
        let _step = self.0.step("set permissions of", path);
        let set = fs::set_permissions(path, fs::Permissions::from_mode(mode));
        set.map_err(|cause| error(path, "set the permissions of", cause))
    }

    /// Copies the bytes of a file, not its permissions. Nothing is flushed.
    pub fn copy_file(&self, from: &Path, to: &Path) -> Result<u64, DiskError> {
        let mut source = File::open(from).map_err(|cause| error(from, "read", cause))?;
        let mut target = self.create(to)?;
        let mut buffer = vec![0; 1 << 18];
        let mut size = 0;
        loop {
            let read = io::Read::read(&mut source, &mut buffer)
                .map_err(|cause| error(from, "read", cause))?;
            if read == 0 {
                return Ok(size);
            }
            target.write_bytes(&buffer[..read])?;
            size += read as u64;
        }
    }

    /// Replaces a file whole and durably: whoever reads sees the old bytes or the new ones, also after a crash.
    pub fn write_atomic(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.replace(path, bytes, true)?;
        self.sync_dir(parent(path))
    }

    /// Replaces a file whole, but not durably: for what is only information, and written often.
    pub fn write_swap(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.replace(path, bytes, false)
    }

    /// A file written beside its place, hidden, and renamed. What a crash leaves there, the next write takes over.
    fn replace(&self, path: &Path, bytes: &[u8], sync: bool) -> Result<(), DiskError> {
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(".tmp");
        let temporary = path.with_file_name(name);
        let written = self.create(&temporary).and_then(|mut file| {
            file.write_bytes(bytes)?;
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
        use std::os::unix::fs::OpenOptionsExt as _;
        let step = self.0.step(action, path);
        let flags = rustix::fs::OFlags::NOFOLLOW.bits();
        let opened = options.custom_flags(flags.cast_signed()).open(path);
        let file = opened.map_err(|cause| error(path, action, cause))?;
        if action == "create" {
            step.cut(path, 0);
        } else {
            step.made(path);
        }
        Ok(DiskFile {
            disk: self.clone(),
            file,
            path: path.to_owned(),
        })
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

/// A file being written.
#[derive(Debug)]
pub struct DiskFile {
    disk: Disk,
    file: File,
    path: PathBuf,
}

impl DiskFile {
    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file, to be read or locked.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its size in bytes.
    pub fn size(&self) -> Result<u64, DiskError> {
        let found = self.file.metadata();
        found
            .map(|found| found.len())
            .map_err(|cause| error(&self.path, "look at", cause))
    }

    /// Writes all these bytes.
    pub fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.write_all(bytes)
            .map_err(|cause| error(&self.path, "write", cause))
    }

    /// Flushes the bytes, and of what is known about the file only what is needed to read them (`fdatasync`).
    pub fn flush_data(&self) -> Result<(), DiskError> {
        let step = self.disk.0.step_flush(&self.path);
        if step.is_wanted() {
            let flushed = self.file.sync_data();
            flushed.map_err(|cause| error(&self.path, "flush", cause))?;
        }
        step.flushed(&self.path);
        Ok(())
    }

    /// Flushes the file (`fsync`).
    pub fn sync(&self) -> Result<(), DiskError> {
        let step = self.disk.0.step_flush(&self.path);
        if step.is_wanted() {
            let flushed = self.file.sync_all();
            flushed.map_err(|cause| error(&self.path, "flush", cause))?;
        }
        step.flushed(&self.path);
        Ok(())
    }

    /// Cuts the file to its first `size` bytes.
    pub fn truncate(&self, size: u64) -> Result<(), DiskError> {
        let step = self.disk.0.step("cut", &self.path);
        let cut = self.file.set_len(size);
        cut.map(|()| step.cut(&self.path, size))
            .map_err(|cause| error(&self.path, "cut", cause))
    }
}

impl Write for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let step = self.disk.0.step_write(&self.path);
        if step.is_half() {
            // The process ends whatever becomes of this write.
            let _ = self.file.write_all(&bytes[..bytes.len() / 2]);
            step.end();
        }
        let written = self.file.write(bytes);
        drop(step);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The folder that an entry lies in.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn error(path: &Path, action: &'static str, source: io::Error) -> DiskError {
    DiskError::new(action, path, source)
}

/// What a refusal of the system means, and what to do.
fn explain(path: &Path, action: &str, cause: &io::Error) -> String {
    let folder = parent(path).display();
    match cause.kind() {
        io::ErrorKind::StorageFull => {
            "the disk is full: make room, then run again to go on".to_owned()
        }
        io::ErrorKind::QuotaExceeded => {
            "the quota is used up: make room, then run again to go on".to_owned()
        }
        io::ErrorKind::PermissionDenied if action == "read" => "no permission to read it".to_owned(),
        io::ErrorKind::PermissionDenied => {
            format!("no permission to write in {folder}: check the folder's owner")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            format!("the file system of {folder} is read-only")
        }
        io::ErrorKind::NotFound => "it is not there".to_owned(),
        io::ErrorKind::NotADirectory => "a file lies where a folder is needed".to_owned(),
        io::ErrorKind::IsADirectory => "a folder lies where a file is needed".to_owned(),
        io::ErrorKind::CrossesDevices => {
            "both places must lie on one file system: `.milepost` and the outputs cannot be mounted apart"
                .to_owned()
        }
        _ if cause.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            "a symbolic link lies there, and Milepost does not write through links: remove it".to_owned()
        }
        _ => cause.to_string(),
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
            message.ends_with("a/x: a file lies where a folder is needed"),
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

    #[test]
    fn says_what_a_refusal_means() {
        let full = DiskError {
            path: "w/x".into(),
            action: "write",
            source: io::ErrorKind::StorageFull.into(),
        };
        assert_eq!(
            full.to_string(),
            "cannot write w/x: the disk is full: make room, then run again to go on"
        );
        let denied = explain(
            Path::new("w/x"),
            "write",
            &io::ErrorKind::PermissionDenied.into(),
        );
        assert_eq!(
            denied,
            "no permission to write in w: check the folder's owner"
        );
    }
}
