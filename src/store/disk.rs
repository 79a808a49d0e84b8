//! The one module through which the disk is changed: every change is one counted operation, and a debug build can stop at any.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An operation that the disk refused.
#[derive(Debug)]
pub struct DiskError {
    operation: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl DiskError {
    /// An error of this operation, as in `cannot {operation} {path}`.
    pub fn new(operation: &'static str, path: &Path, source: io::Error) -> DiskError {
        DiskError {
            operation,
            path: path.to_owned(),
            source,
        }
    }

    /// The file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.source.kind()
    }

    /// Whether there is no room, so that nothing else can be written either.
    pub fn is_full(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded
        )
    }
}

impl std::fmt::Display for DiskError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        let folder = self.path.parent().unwrap_or(&self.path).display();
        write!(f, "cannot {} {path}: ", self.operation)?;
        match self.kind() {
            ErrorKind::StorageFull => f.write_str("the disk is full: make room and run again"),
            ErrorKind::QuotaExceeded => {
                f.write_str("your share of the disk is used up: make room and run again")
            }
            ErrorKind::PermissionDenied => {
                write!(
                    f,
                    "permission denied: let this user write there (`ls -ld {folder}` shows who may)"
                )
            }
            ErrorKind::ReadOnlyFilesystem => f.write_str(
                "the file system is read-only: mount it writable, or choose another workspace",
            ),
            _ => self.source.fmt(f),
        }
    }
}

impl std::error::Error for DiskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl From<DiskError> for io::Error {
    fn from(error: DiskError) -> io::Error {
        io::Error::new(error.kind(), error)
    }
}

/// Changes the disk. Clones count together.
#[derive(Clone, Default)]
pub struct Disk {
    counter: Arc<Counter>,
}

impl Disk {
    /// The disk as it is.
    pub fn real() -> Disk {
        Disk::default()
    }

    /// The disk by a setting: none is [`Disk::real`]; `57` is [`Disk::stopping_at`]; `57:half` is [`Disk::stopping_in`].
    ///
    /// # Errors
    /// The setting, if it is none of these.
    #[cfg(debug_assertions)]
    pub fn from_setting(setting: Option<&str>) -> Result<Disk, String> {
        let Some(setting) = setting else {
            return Ok(Disk::real());
        };
        let (number, half) = match setting.strip_suffix(":half") {
            Some(number) => (number, true),
            None => (setting, false),
        };
        let at = number
            .parse()
            .map_err(|_| format!("`{setting}` is neither a number nor a number and `:half`"))?;
        Ok(Disk {
            counter: Arc::new(Counter {
                at: Some(at),
                half,
                ..Counter::default()
            }),
        })
    }

    /// A disk at whose operation number `at`, counted from 1, the process aborts instead of doing it: to test what a crash leaves.
    #[cfg(debug_assertions)]
    pub fn stopping_at(at: u64) -> Disk {
        Disk {
            counter: Arc::new(Counter {
                at: Some(at),
                ..Counter::default()
            }),
        }
    }

    /// As [`Disk::stopping_at`], but if the operation writes bytes, half of them are written first.
    #[cfg(debug_assertions)]
    pub fn stopping_in(at: u64) -> Disk {
        Disk {
            counter: Arc::new(Counter {
                at: Some(at),
                half: true,
                ..Counter::default()
            }),
        }
    }

    /// Operations so far.
    #[cfg(debug_assertions)]
    pub fn count(&self) -> u64 {
        self.counter.count.load(std::sync::atomic::Ordering::SeqCst)
    }

    /// Creates a folder and those above it that are missing, each durable in the one above.
    pub fn create_dir_all(&self, path: &Path) -> Result<(), DiskError> {
        let mut missing = Vec::new();
        let mut folder = path;
        while !folder.as_os_str().is_empty() && !folder.is_dir() {
            missing.push(folder);
            let Some(above) = folder.parent() else { break };
            folder = above;
        }
        for folder in missing.into_iter().rev() {
            self.counter.step();
            match fs::create_dir(folder) {
                Ok(()) => self.sync_dir(parent(folder))?,
                Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => {}
                Err(error) => return Err(DiskError::new("create the folder", folder, error)),
            }
        }
        Ok(())
    }

    /// Creates a file, or empties the one that is there.
    pub fn create(&self, path: &Path) -> Result<DiskFile, DiskError> {
        self.open(
            "create",
            path,
            OpenOptions::new().write(true).create(true).truncate(true),
        )
    }

    /// Opens a file to add to its end, and creates it if it is not there (its folder is then to be flushed by the caller).
    pub fn open_append(&self, path: &Path) -> Result<DiskFile, DiskError> {
        self.open("open", path, OpenOptions::new().append(true).create(true))
    }

    /// Opens a file to be read and changed as it is, and creates it if it is not there.
    pub fn open_existing_or_new(&self, path: &Path) -> Result<DiskFile, DiskError> {
        self.open(
            "open",
            path,
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false),
        )
    }

    fn open(
        &self,
        operation: &'static str,
        path: &Path,
        how: &OpenOptions,
    ) -> Result<DiskFile, DiskError> {
        self.counter.step();
        let file = how
            .open(path)
            .map_err(|error| DiskError::new(operation, path, error))?;
        Ok(DiskFile {
            file,
            path: path.to_owned(),
            counter: Arc::clone(&self.counter),
        })
    }

    /// Gives a file or folder another name on the same file system; a file that has the name is replaced.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.counter.step();
        fs::rename(from, to).map_err(|error| {
            // The kernel does not say which of the two it means.
            let (operation, path) =
                if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(from).is_err() {
                    ("move", from)
                } else {
                    ("put a file at", to)
                };
            DiskError::new(operation, path, error)
        })
    }

    /// Makes the names in a folder durable.
    pub fn sync_dir(&self, path: &Path) -> Result<(), DiskError> {
        self.counter.step();
        let synced = File::open(path).and_then(|folder| folder.sync_all());
        synced.map_err(|error| DiskError::new("flush the folder", path, error))
    }

    /// Makes everything durable that was written on the file system of this folder: cheaper than file by file when there are many.
    /// Where the system cannot (not Linux), every file and folder below it.
    pub fn sync_filesystem(&self, path: &Path) -> Result<(), DiskError> {
        self.counter.step();
        let refused = |error| DiskError::new("flush the file system of", path, error);
        let folder = File::open(path).map_err(refused)?;
        match sync_all_of(&folder) {
            Some(result) => result.map_err(refused),
            None => sync_below(path),
        }
    }

    /// Removes a file or symbolic link; whether it was there.
    pub fn remove_file(&self, path: &Path) -> Result<bool, DiskError> {
        self.counter.step();
        was_there("remove", path, fs::remove_file(path))
    }

    /// Removes a folder and everything in it, without following symbolic links; whether it was there.
    pub fn remove_dir_all(&self, path: &Path) -> Result<bool, DiskError> {
        self.counter.step();
        was_there("remove the folder", path, fs::remove_dir_all(path))
    }

    /// Copies what is in a file, not its permissions, to a new file or over the one that is there; its size in bytes.
    pub fn copy_file(&self, from: &Path, to: &Path) -> Result<u64, DiskError> {
        let mut source = File::open(from).map_err(|error| DiskError::new("read", from, error))?;
        let mut target = self.create(to)?;
        let failed = |error| DiskError::new("copy a file to", to, error);
        if self.counter.step_of_write() {
            let half = source.metadata().map_or(0, |data| data.len() / 2);
            io::copy(&mut (&mut source).take(half), &mut target.file).map_err(failed)?;
            stop();
        }
        io::copy(&mut source, &mut target.file).map_err(failed)
    }

    /// Puts a file in its place as a whole: whoever reads sees what was there or these bytes, and after a crash too. It is written
    /// beside its place under the name [`temporary_name`], which a crash may leave behind and the next write takes over.
    pub fn write_atomic(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        let temporary = temporary_name(path);
        let written = self
            .write_new(&temporary, bytes)
            .and_then(|()| self.rename(&temporary, path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written?;
        self.sync_dir(parent(path))
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        let mut how = OpenOptions::new();
        // Never through a symbolic link that somebody laid there.
        how.write(true).create_new(true);
        let mut file = match self.open("create", path, &how) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.remove_file(path)?;
                self.open("create", path, &how)
            }
            opened => opened,
        }?;
        file.write_bytes(bytes)?;
        file.sync()
    }
}

/// A file that is open to be changed. It does not buffer: every write is an operation.
pub struct DiskFile {
    file: File,
    path: PathBuf,
    counter: Arc<Counter>,
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

    /// Writes all of it. An empty write is no operation.
    pub fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.write_all(bytes)
            .map_err(|error| match error.downcast::<DiskError>() {
                Ok(error) => error,
                Err(error) => DiskError::new("write", &self.path, error),
            })
    }

    /// Makes its bytes and its length durable (`fdatasync`).
    pub fn flush_data(&self) -> Result<(), DiskError> {
        self.counter.step();
        self.file
            .sync_data()
            .map_err(|error| DiskError::new("flush", &self.path, error))
    }

    /// Makes all of it durable (`fsync`).
    pub fn sync(&self) -> Result<(), DiskError> {
        self.counter.step();
        self.file
            .sync_all()
            .map_err(|error| DiskError::new("flush", &self.path, error))
    }

    /// Makes it this long, in bytes.
    pub fn truncate(&self, length: u64) -> Result<(), DiskError> {
        self.counter.step();
        self.file
            .set_len(length)
            .map_err(|error| DiskError::new("cut", &self.path, error))
    }
}

impl Write for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.counter.step_of_write() {
            let _ = self.file.write_all(&bytes[..bytes.len() / 2]);
            stop();
        }
        self.file.write(bytes).map_err(|error| match error.kind() {
            ErrorKind::Interrupted => error,
            _ => DiskError::new("write", &self.path, error).into(),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The name under which [`Disk::write_atomic`] writes a file before it takes its place: hidden, so that no pattern matches it.
pub fn temporary_name(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    path.with_file_name(name)
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) => Path::new("."),
        None => path,
    }
}

fn was_there(
    operation: &'static str,
    path: &Path,
    result: io::Result<()>,
) -> Result<bool, DiskError> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(DiskError::new(operation, path, error)),
    }
}

/// `syncfs`, where there is one.
#[cfg(target_os = "linux")]
fn sync_all_of(folder: &File) -> Option<io::Result<()>> {
    match rustix::fs::syncfs(folder) {
        Err(rustix::io::Errno::NOSYS) => None,
        result => Some(result.map_err(io::Error::from)),
    }
}

#[cfg(not(target_os = "linux"))]
fn sync_all_of(_folder: &File) -> Option<io::Result<()>> {
    None
}

fn sync_below(path: &Path) -> Result<(), DiskError> {
    for entry in walkdir::WalkDir::new(path).contents_first(true) {
        let entry =
            entry.map_err(|error| DiskError::new("flush what is below", path, error.into()))?;
        if entry.file_type().is_file() || entry.file_type().is_dir() {
            let synced = File::open(entry.path()).and_then(|file| file.sync_all());
            synced.map_err(|error| DiskError::new("flush", entry.path(), error))?;
        }
    }
    Ok(())
}

/// Counts operations in debug builds; in release builds there is nothing that could stop a run.
#[derive(Default)]
struct Counter {
    #[cfg(debug_assertions)]
    count: std::sync::atomic::AtomicU64,
    #[cfg(debug_assertions)]
    at: Option<u64>,
    #[cfg(debug_assertions)]
    half: bool,
}

#[cfg(debug_assertions)]
impl Counter {
    /// One operation that is done or not.
    fn step(&self) {
        if self.is_the_one() {
            stop();
        }
    }

    /// One operation that can be done by half; whether that is to happen, and then the end.
    fn step_of_write(&self) -> bool {
        let now = self.is_the_one();
        if now && !self.half {
            stop();
        }
        now
    }

    fn is_the_one(&self) -> bool {
        Some(self.count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1) == self.at
    }
}

#[cfg(not(debug_assertions))]
#[allow(clippy::unused_self, clippy::inline_always)]
impl Counter {
    #[inline(always)]
    fn step(&self) {}

    #[inline(always)]
    fn step_of_write(&self) -> bool {
        false
    }
}

/// Ends the process as a crash would: no destructor, no buffer, no goodbye.
fn stop() -> ! {
    std::process::abort()
}
