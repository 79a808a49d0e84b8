//! Reads and lists files, confined to the project and the workspace.

use super::folder::{Folder, OpenedEntry, Start};
use super::stamp::FileStamp;
use crate::store::redirects::Redirects;
use crate::store::self_checked::SelfCheck;
use crate::store::{progress, read};
use milepost_core::base::digest::{Digest, Hasher};
use milepost_core::base::glob::Glob;
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::base::reserved::reserved;
use milepost_core::base::source::Source;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Maximum number of files that are open at once.
const HELD: usize = 64;

/// The two folders that stages read from.
#[derive(Debug, Clone)]
pub struct Files {
    project: Start,
    workspace: Start,
    redirects: Redirects,
    progress: Arc<[RelPath]>,
    held: Holding,
}

/// A file that cannot or must not be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A symbolic link on the way leads out.
    #[error(
        "`{file}` leaves the {} by a symbolic link, to {target}: put the file itself there",
        root_word(.file)
    )]
    Leaves {
        file: FilePath,
        /// Where it leads.
        target: PathBuf,
    },
    /// A symbolic link on the way leads to Milepost's own files.
    #[error(
        "`{file}` leads by a symbolic link to {target}, which is Milepost's own: remove the link"
    )]
    Own {
        file: FilePath,
        /// Where it leads.
        target: PathBuf,
    },
    /// The file does not exist.
    #[error("`{file}` does not exist")]
    Missing { file: FilePath },
    /// It is a symbolic link to nothing.
    #[error(
        "`{file}` is a symbolic link to `{}`, where nothing is: remove the link, or put the file there",
        .target.display()
    )]
    Dead {
        file: String,
        /// Where it leads.
        target: PathBuf,
    },
    /// The path is a folder, a named pipe, a socket or a device.
    #[error(
        "`{file}`: expected a regular file, found {found}: remove it, or put the file itself there"
    )]
    NoFile {
        file: FilePath,
        /// The kind of file that was found: a folder, a named pipe, and so on.
        found: &'static str,
    },
    /// A name is not UTF-8, or contains control characters or backslashes.
    #[error(
        "the name of `{file}` cannot be written in a record: rename the file to UTF-8 without control characters and backslashes"
    )]
    Name {
        /// The path of the file, escaped.
        file: String,
    },
    /// The system refused to read it.
    #[error("cannot read `{file}`: {source}")]
    Read { file: String, source: io::Error },
}

impl Files {
    /// Creates access to the files of a project and a workspace. Links in the two paths are followed.
    pub fn new(project: &Path, workspace: &Path) -> Self {
        Self {
            project: Start::new(real_path(project)),
            workspace: Start::new(real_path(workspace)),
            redirects: Redirects::default(),
            progress: Arc::default(),
            held: Holding::default(),
        }
    }

    /// Returns the same access, which follows redirects of the workspace.
    #[must_use]
    pub fn with_redirects(self, redirects: &Redirects) -> Self {
        let redirects = redirects.clone();
        Self { redirects, ..self }
    }

    /// Returns the same access, whose lists leave out these progress files.
    #[must_use]
    pub fn without_progress(self, progress: impl Iterator<Item = RelPath>) -> Self {
        let progress = progress.collect();
        Self { progress, ..self }
    }

    /// Returns true if it is a progress file of a stage, or one that a former stage left in the workspace.
    pub(super) fn is_progress(&self, path: &RelPath) -> bool {
        let place = || self.workspace.path().join(path.as_str());
        let is_named = !path.as_str().contains('/') && path.as_str().ends_with("_progress.json");
        self.progress.contains(path)
            || is_named && progress::check(&place()) == Some(SelfCheck::Whole)
    }

    /// Returns the path at which a file is read; `None` if that is its own path.
    fn redirect(&self, file: &FilePath) -> Option<FilePath> {
        let is_inside = file.root == Root::Workspace;
        let target = || self.redirects.target(self.workspace.path(), &file.path);
        is_inside.then(target).flatten().map(FilePath::workspace)
    }

    /// Returns true if a file is read at another path than its own.
    pub fn is_redirected(&self, file: &FilePath) -> bool {
        self.redirect(file).is_some()
    }

    pub(super) fn redirects(&self) -> Vec<(RelPath, bool)> {
        self.redirects.list(self.workspace.path())
    }

    pub(in crate::store) fn workspace(&self) -> &Start {
        &self.workspace
    }

    fn start(&self, root: Root) -> &Start {
        match root {
            Root::Workspace => &self.workspace,
            Root::Project => &self.project,
        }
    }

    /// Returns the folder that paths of a root are relative to.
    pub fn folder(&self, root: Root) -> &Path {
        self.start(root).path()
    }

    /// Returns the absolute path of a file, whether it exists or not. Links are followed inside the root and refused if they leave it.
    pub fn resolve(&self, file: &FilePath) -> Result<PathBuf, FileError> {
        if let Some(target) = self.redirect(file) {
            return Ok(self.workspace.path().join(target.path.as_str()));
        }
        let root = self.folder(file.root);
        let path = root.join(file.path.as_str());
        if self.start(file.root).is_plain(file.path.as_str()) {
            return Ok(path);
        }
        let mut at = Some(path.as_path());
        // A missing file has no link to follow, but the folders above it may.
        while let Some(above) = at.filter(|above| *above != root) {
            match above.canonicalize() {
                Ok(real) if real.starts_with(root) => {
                    let inside = real.strip_prefix(root).unwrap_or(&real);
                    let inside = RelPath::parse(&inside.to_string_lossy());
                    let is_reserved = |path: &RelPath| reserved(file.root, path).is_some();
                    if inside.is_ok_and(|inside| is_reserved(&inside)) && !is_reserved(&file.path) {
                        let (file, target) = (file.clone(), real);
                        return Err(FileError::Own { file, target });
                    }
                    break;
                }
                Ok(target) => {
                    let file = file.clone();
                    return Err(FileError::Leaves { file, target });
                }
                Err(cause) if is_absent(&cause) => {
                    // A link that leads nowhere would lead somewhere once a file is written there.
                    if let Ok(target) = std::fs::read_link(above) {
                        let file = file.clone();
                        return Err(FileError::Leaves { file, target });
                    }
                }
                Err(source) => return Err(read_error(file, source)),
            }
            at = above.parent();
        }
        Ok(path)
    }

    /// Returns a regular file for reading. Fails if it does not exist.
    pub fn source(&self, file: &FilePath) -> Result<Arc<dyn Source>, FileError> {
        let start = self.start(file.root);
        let mut held = None;
        let target = self.redirect(file);
        match self.open_plain(file) {
            OpenedEntry::Absent => return Err(FileError::Missing { file: file.clone() }),
            OpenedEntry::There(open) if open.metadata().is_ok_and(|found| found.is_file()) => {
                held = self.held.hold(open);
            }
            OpenedEntry::There(_) | OpenedEntry::Unclear => self.look_for(file)?,
        }
        Ok(Arc::new(FileSource {
            folder: Arc::clone(start.path()),
            file: file.clone(),
            target: target.map(|target| Box::new(target.path)),
            path: OnceLock::new(),
            held: Mutex::new(held),
        }))
    }

    /// Checks that a regular file lies there, over links inside the root.
    fn look_for(&self, file: &FilePath) -> Result<(), FileError> {
        let path = self.resolve(file)?;
        match std::fs::metadata(&path) {
            Ok(found) if found.is_file() => Ok(()),
            Ok(found) => Err(FileError::NoFile {
                file: file.clone(),
                found: read::kind_of(found.file_type()),
            }),
            Err(cause) if is_absent(&cause) => Err(FileError::Missing { file: file.clone() }),
            Err(source) => Err(read_error(file, source)),
        }
    }

    /// Opens a file for reading if no part of its path is a link.
    pub fn open_plain(&self, file: &FilePath) -> OpenedEntry {
        let target = self.redirect(file);
        let moving = target.map(|target| self.workspace.open_file(target.path.as_str()));
        // The run that published it may have moved it meanwhile.
        let moving = moving.filter(|found| !matches!(found, OpenedEntry::Absent));
        moving.unwrap_or_else(|| self.start(file.root).open_file(file.path.as_str()))
    }

    /// Returns true if the path exists.
    pub fn exists(&self, file: &FilePath) -> Result<bool, FileError> {
        let path = self.resolve(file)?;
        match std::fs::metadata(path) {
            Ok(_) => Ok(true),
            Err(cause) if is_absent(&cause) => Ok(false),
            Err(source) => Err(read_error(file, source)),
        }
    }

    /// Returns true if no part of the path is a link. A missing part is not a link.
    pub fn is_plain(&self, file: &FilePath) -> bool {
        self.start(file.root).is_plain(file.path.as_str())
    }

    /// Opens a folder for lookups of names in it; `None` if it does not exist. An empty path is the root.
    ///
    /// # Errors
    /// If a link is on the way, or it is not a folder.
    pub(crate) fn open_folder(&self, root: Root, folder: &str) -> io::Result<Option<Folder>> {
        self.start(root).open(folder)
    }

    /// Returns the stamp of the folder that contains all matches of a pattern; `None` if matches may lie in several folders, or the
    /// folder does not exist.
    pub fn stamp_of_folder(&self, glob: &Glob, root: Root) -> Option<FileStamp> {
        let folder = glob.folder().filter(|_| !glob.is_deep());
        let folder = folder.as_ref().map_or("", RelPath::as_str);
        if glob.is_deep() {
            return None;
        }
        self.open_folder(root, folder).ok()??.own_stamp().ok()
    }

    /// Returns all names in a folder of the workspace in order; `None` if it cannot be read.
    pub fn names(&self, folder: &RelPath) -> Option<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.folder(Root::Workspace).join(folder.as_str())).ok()? {
            names.push(entry.ok()?.file_name().into_string().ok()?);
        }
        names.sort_unstable();
        Some(names)
    }
}

/// Returns a path with all links resolved. Parts that do not exist stay as they are.
pub fn real_path(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut at = path.as_path();
    loop {
        if let Ok(real) = at.canonicalize() {
            return path.strip_prefix(at).map_or(real.clone(), |rest| {
                if rest.as_os_str().is_empty() {
                    real
                } else {
                    real.join(rest)
                }
            });
        }
        match at.parent() {
            Some(above) => at = above,
            None => return path,
        }
    }
}

/// Returns the digest and the size in bytes of a file; `None` if it does not exist.
pub fn digest_of(path: &Path) -> io::Result<Option<(Digest, u64)>> {
    let mut file = match read::open(path) {
        Ok(file) => file,
        Err(cause) if is_absent(&cause) => return Ok(None),
        Err(cause) => return Err(cause),
    };
    let size = file.metadata()?.len();
    digest_from(&mut file, size).map(Some)
}

/// Returns the digest and size of the bytes read from a file; `size` bytes are expected.
pub(crate) fn digest_from(file: &mut File, size: u64) -> io::Result<(Digest, u64)> {
    let mut hasher = Hasher::new();
    // One byte more than there should be: then the end is seen by the second read.
    let mut buffer = vec![0; size.saturating_add(1).min(1 << 17) as usize];
    let mut size = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((hasher.finish(), size)),
            Ok(read) => {
                hasher.update(&buffer[..read]);
                size += read as u64;
            }
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
}

fn is_absent(cause: &io::Error) -> bool {
    matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn read_error(file: &FilePath, source: io::Error) -> FileError {
    let file = file.to_string();
    FileError::Read { file, source }
}

fn root_word(file: &FilePath) -> &'static str {
    match file.root {
        Root::Workspace => "workspace",
        Root::Project => "project",
    }
}

/// The number of files that are open between their lookup and their reading.
#[derive(Debug, Clone, Default)]
struct Holding(Arc<AtomicUsize>);

/// An open file that counts towards [`HELD`].
struct Held {
    open: Option<File>,
    count: Arc<AtomicUsize>,
}

impl Holding {
    /// Keeps a file open if few are open: a list of inputs may exceed the system's limit of open files.
    fn hold(&self, open: File) -> Option<Held> {
        let count = Arc::clone(&self.0);
        let before = count.fetch_add(1, Ordering::Relaxed);
        let held = Held {
            open: Some(open),
            count,
        };
        (before < HELD).then_some(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A file on the disk. A batch may have many, so a name and a path are made for those who ask.
struct FileSource {
    folder: Arc<Path>,
    file: FilePath,
    /// Where it is read, if that is not its own path.
    target: Option<Box<RelPath>>,
    path: OnceLock<Box<Path>>,
    /// For the first reader.
    held: Mutex<Option<Held>>,
}

impl FileSource {
    fn place(&self) -> PathBuf {
        let at = |path: &RelPath| self.folder.join(path.as_str());
        let target = self.target.as_deref().map(at);
        let target = target.filter(|target| target.symlink_metadata().is_ok());
        target.unwrap_or_else(|| at(&self.file.path))
    }
}

impl Source for FileSource {
    fn name(&self) -> String {
        self.file.to_string()
    }

    fn path(&self) -> &Path {
        self.path.get_or_init(|| self.place().into())
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        let held = self
            .held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match held.and_then(|mut held| held.open.take()) {
            Some(open) => Ok(Box::new(open)),
            // The run that published it may move it meanwhile.
            None => Ok(Box::new(
                read::open(self.place()).or_else(|_| read::open(self.place()))?,
            )),
        }
    }
}
