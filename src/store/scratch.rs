//! A private folder for each attempt, where outputs are written and hashed before they are published.

use super::disk::{Disk, DiskError, DiskFile, parent};
use super::files::{Files, digest_from, digest_of};
use super::folder::{Opened, Start};
use super::layout::{self, Layout};
use super::quarantine::keep;
use crate::base::digest::{Digest, Hasher};
use crate::base::path::{RelPath, component};
use crate::base::source::Sink;
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where one attempt writes: `.milepost/scratch/RUN/STAGE/BATCH~ATTEMPT`.
///
/// Programs get that as a folder. Where Milepost alone writes, there is no folder: the files of an attempt lie beside those of
/// the others, as `BATCH~ATTEMPT.0`, `BATCH~ATTEMPT.1` and so on, and making and removing folders is spared.
#[derive(Clone)]
pub struct Scratch {
    disk: Disk,
    start: Start,
    path: PathBuf,
    inside: RelPath,
    is_folder: bool,
    /// Folders that were made in it.
    folders: Arc<Mutex<BTreeSet<RelPath>>>,
    made: Arc<Mutex<Vec<Sunk>>>,
}

/// What an attempt is known by.
#[derive(Debug, Clone, Copy)]
pub struct Name<'a> {
    /// The run.
    pub run: &'a str,
    /// The stage.
    pub stage: &'a str,
    /// The batch.
    pub batch: &'a str,
    /// A number that no other attempt at the batch has.
    pub number: u64,
}

/// Folders of attempts that are over, empty but for the folders that their outputs lay in. The next attempt gets one under its
/// own name: making and removing folders costs about as much as starting a small program.
#[derive(Clone, Default)]
pub struct Spares(Arc<Mutex<Vec<Spare>>>);

struct Spare {
    path: PathBuf,
    folders: BTreeSet<RelPath>,
}

impl Spares {
    fn all(&self) -> MutexGuard<'_, Vec<Spare>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One with just these folders.
    fn take(&self, folders: &BTreeSet<RelPath>) -> Option<PathBuf> {
        let mut all = self.all();
        let at = all.iter().position(|spare| spare.folders == *folders)?;
        Some(all.swap_remove(at).path)
    }
}

/// A file that a sink was opened for.
struct Sunk {
    file: RelPath,
    /// What it holds, once the sink has finished.
    written: Option<Written>,
    /// Whether it has left for its place.
    published: bool,
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// A file that cannot be taken from scratch.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A link, a folder or a socket lies where an output is expected.
    #[error("output `{path}` is {what}: a step writes regular files")]
    NotRegular {
        /// The output.
        path: RelPath,
        /// What it is.
        what: &'static str,
    },
}

/// A file that a sink finished, and, where others may write over it, what the file system said of it then.
#[derive(Clone, Copy)]
struct Written {
    content: Content,
    stamp: Option<Stamp>,
}

type Stamp = (u64, u64, i64, i64);

impl Scratch {
    /// The place of an attempt, with nothing in it. Where programs write it is a folder: one of `spares`, if there is one that
    /// was made for outputs in the same folders as `targets`.
    pub fn create(
        disk: &Disk,
        files: &Files,
        layout: &Layout,
        name: &Name<'_>,
        spares: Option<&Spares>,
        targets: &mut dyn Iterator<Item = &RelPath>,
    ) -> Result<Self, ScratchError> {
        let attempt = format!("{}~{}", safe_name(name.batch), name.number);
        let parts = [safe_name(name.run), safe_name(name.stage), attempt];
        let below = RelPath::of_parts(parts.iter().map(String::as_str));
        let inside = layout::scratch().with(&below);
        let path = layout.at(&inside);
        let mut folders = BTreeSet::new();
        if let Some(spares) = spares {
            targets.for_each(|target| above(target, &mut folders));
            match spares.take(&folders) {
                Some(spare) => disk.rename(&spare, &path)?,
                None => {
                    folders.clear();
                    if path.symlink_metadata().is_ok() {
                        disk.remove_dir_all(&path)?;
                    }
                    disk.create_dirs(&path)?;
                }
            }
        }
        Ok(Self {
            disk: disk.clone(),
            start: files.workspace().clone(),
            path,
            inside,
            is_folder: spares.is_some(),
            folders: Arc::new(Mutex::new(folders)),
            made: Arc::default(),
        })
    }

    fn sunk(&self) -> MutexGuard<'_, Vec<Sunk>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder, absolute: where programs work.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// The ending of a file's name where there is no folder; of one that nothing was written to, one that nothing has.
    fn ending(&self, file: &RelPath) -> String {
        let sunk = self.sunk();
        let at = sunk.iter().position(|sunk| sunk.file == *file);
        format!(".{}", at.unwrap_or(sunk.len()))
    }

    /// Where a file of the attempt lies, absolute.
    pub fn at(&self, file: &RelPath) -> PathBuf {
        if self.is_folder {
            return self.path.join(file.as_str());
        }
        let mut path = self.path.clone().into_os_string();
        path.push(self.ending(file));
        path.into()
    }

    /// The same in the workspace, as `publish` records it.
    pub fn inside(&self, file: &RelPath) -> RelPath {
        if self.is_folder {
            self.inside.with(file)
        } else {
            self.inside.ending_with(&self.ending(file))
        }
    }

    /// A file to write. It is hashed while it is written.
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
            is_stamped: self.is_folder,
            made: Arc::clone(&self.made),
        }))
    }

    /// Makes the folder that a file lies in, for a command that writes it.
    pub fn make_folder_of(&self, file: &RelPath) -> Result<(), DiskError> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let is_there = file.parent().is_none_or(|parent| folders.contains(&parent));
        if !is_there {
            self.disk.create_dirs(parent(&self.at(file)))?;
            above(file, &mut folders);
        }
        Ok(())
    }

    /// Files that sinks have finished, in the order in which they were opened.
    pub fn files(&self) -> Vec<RelPath> {
        let sunk = self.sunk();
        let finished = sunk.iter().filter(|sunk| sunk.written.is_some());
        finished.map(|sunk| sunk.file.clone()).collect()
    }

    /// What a finished sink wrote.
    pub fn made(&self, file: &RelPath) -> Option<Content> {
        self.written(file).map(|written| written.content)
    }

    fn written(&self, file: &RelPath) -> Option<Written> {
        let sunk = self.sunk();
        let found = sunk.iter().find(|sunk| sunk.file == *file);
        found.and_then(|sunk| sunk.written)
    }

    /// What one file holds, whoever wrote it; none when it is not there. A link or a special file is an error.
    pub fn content(&self, file: &RelPath) -> Result<Option<Content>, ScratchError> {
        if !self.is_folder {
            // Nobody else writes here.
            return Ok(self.made(file));
        }
        let path = self.at(file);
        let fail = |source| ScratchError::Read {
            path: path.clone(),
            source,
        };
        // A later step may have written over what a sink wrote: the change time would tell.
        let known = |found: &Metadata| {
            let written = self.written(file)?;
            (written.stamp == Some(stamp(found))).then_some(written.content)
        };
        match self.start.open_file(self.inside(file).as_str()) {
            Opened::Absent => return Ok(None),
            Opened::There(mut open) => {
                let found = open.metadata().map_err(fail)?;
                if found.is_file() {
                    if let Some(content) = known(&found) {
                        return Ok(Some(content));
                    }
                    let (digest, size) = digest_from(&mut open, found.len()).map_err(fail)?;
                    return Ok(Some(Content { digest, size }));
                }
            }
            Opened::Unclear => {}
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
            Err(cause) => return Err(fail(cause)),
        };
        if !found.is_file() {
            return Err(ScratchError::NotRegular {
                path: file.clone(),
                what: kind_of(&found),
            });
        }
        // A link on the way would have another's file taken for an output.
        let folder = parent(&path).canonicalize().map_err(fail)?;
        let own = self.path.canonicalize().map_err(fail)?;
        if !folder.starts_with(own) {
            return Err(ScratchError::NotRegular {
                path: file.clone(),
                what: "behind a symbolic link",
            });
        }
        if let Some(content) = known(&found) {
            return Ok(Some(content));
        }
        let content = digest_of(&path).map_err(fail)?;
        Ok(content.map(|(digest, size)| Content { digest, size }))
    }

    /// Removes a file of the attempt.
    pub fn forget(&self, file: &RelPath) -> Result<(), DiskError> {
        if let Some(sunk) = self.sunk().iter_mut().find(|sunk| sunk.file == *file) {
            sunk.written = None;
        }
        self.disk.remove_file(&self.at(file))
    }

    /// A file was renamed into its place: nothing of it is left to be removed.
    pub fn published(&self, file: &RelPath) {
        if let Some(sunk) = self.sunk().iter_mut().find(|sunk| sunk.file == *file) {
            sunk.published = true;
        }
    }

    /// Whether it holds nothing: no file, no link, nothing but folders.
    pub fn is_empty(&self) -> bool {
        if !self.is_folder {
            return self.sunk().is_empty();
        }
        let mut entries = walkdir::WalkDir::new(&self.path).min_depth(1).into_iter();
        entries.all(|entry| entry.is_ok_and(|entry| entry.file_type().is_dir()))
    }

    /// Moves all that is left to a folder of the workspace, durably.
    pub fn keep(self, layout: &Layout, folder: &RelPath) -> Result<(), DiskError> {
        if self.is_folder {
            return keep(&self.disk, layout, &self.inside, folder).map(|_| ());
        }
        let files: Vec<RelPath> = self.sunk().iter().map(|sunk| sunk.file.clone()).collect();
        for file in files {
            keep(&self.disk, layout, &self.inside(&file), &folder.with(&file))?;
        }
        Ok(())
    }

    /// Keeps the folder for an attempt that follows, if it is as it was before the programs wrote; else it is removed. For when
    /// every program that could write there has ended.
    pub fn spare(self, spares: &Spares) -> Result<(), DiskError> {
        if !self.is_folder || !self.is_as_made().unwrap_or(false) {
            return self.remove();
        }
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        spares.all().push(Spare {
            path: self.path.clone(),
            folders: std::mem::take(&mut folders),
        });
        Ok(())
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

    /// Removes all that is left.
    pub fn remove(self) -> Result<(), DiskError> {
        if self.is_folder {
            return self.disk.remove_dir_all(&self.path);
        }
        let sunk = self.sunk();
        let left = sunk.iter().filter(|sunk| !sunk.published);
        let left: Vec<RelPath> = left.map(|sunk| sunk.file.clone()).collect();
        drop(sunk);
        left.iter()
            .try_for_each(|file| self.disk.remove_file(&self.at(file)))
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

/// A name for a folder: the name itself where it is short and safe, else its beginning and a digest.
pub fn safe_name(name: &str) -> String {
    const LONG: usize = 80;
    if name.is_empty() {
        return "only".to_owned();
    }
    let part = component(name);
    if part == name && name.len() <= LONG {
        return part;
    }
    let mut end = part.len().min(LONG - 13);
    while !part.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{}", &part[..end], Digest::of(name).short())
}

fn stamp(found: &Metadata) -> Stamp {
    (found.ino(), found.len(), found.ctime(), found.ctime_nsec())
}

fn kind_of(found: &Metadata) -> &'static str {
    if found.is_symlink() {
        "a symbolic link"
    } else if found.is_dir() {
        "a folder"
    } else {
        "a special file"
    }
}

/// Bytes that are gathered before they are written. The memory for them grows as they come: most files are small.
const GATHERED: usize = 1 << 17;

/// Bytes that are worth gathering at the beginning of a file.
const SMALL: usize = 1 << 10;

/// A file of an attempt that is being written.
struct HashingSink {
    file: RelPath,
    path: PathBuf,
    open: DiskFile,
    buffer: Vec<u8>,
    hasher: Hasher,
    size: u64,
    is_stamped: bool,
    made: Arc<Mutex<Vec<Sunk>>>,
}

impl HashingSink {
    fn put(&mut self) -> io::Result<()> {
        self.open.write_all(&self.buffer)?;
        self.hasher.update(&self.buffer);
        self.buffer.clear();
        Ok(())
    }
}

impl Write for HashingSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > GATHERED {
            self.put()?;
        }
        // A file is often one piece, which needs no copy.
        let is_first = self.size == 0 && bytes.len() >= SMALL;
        let written = if is_first || bytes.len() >= GATHERED {
            let written = self.open.write(bytes)?;
            self.hasher.update(&bytes[..written]);
            written
        } else {
            self.buffer.extend_from_slice(bytes);
            bytes.len()
        };
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.put()
    }
}

impl Sink for HashingSink {
    fn path(&self) -> &Path {
        &self.path
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.put()?;
        let stamp = if self.is_stamped {
            Some(stamp(&self.open.file().metadata()?))
        } else {
            None
        };
        let content = Content {
            digest: self.hasher.clone().finish(),
            size: self.size,
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sunk) = made.iter_mut().find(|sunk| sunk.file == self.file) {
            sunk.written = Some(Written { content, stamp });
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests prepare the disk by hand")]
mod tests {
    use super::*;

    const NAME: Name<'_> = Name {
        run: "RUN",
        stage: "classify",
        batch: "batch_1",
        number: 2,
    };

    fn made(folder: &tempfile::TempDir, name: &Name<'_>, spares: Option<&Spares>) -> Scratch {
        let (layout, disk) = (Layout::new(folder.path()), Disk::real());
        let files = Files::new(folder.path(), folder.path());
        let targets = [path("x/y/a.json"), path("x/b.json")];
        Scratch::create(&disk, &files, &layout, name, spares, &mut targets.iter()).unwrap()
    }

    fn scratch(folder: &tempfile::TempDir, is_folder: bool) -> Scratch {
        made(folder, &NAME, is_folder.then(Spares::default).as_ref())
    }

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    fn content(text: &str) -> Content {
        Content {
            digest: Digest::of(text),
            size: text.len() as u64,
        }
    }

    fn put(scratch: &Scratch, file: &RelPath, parts: &[&str]) {
        let mut sink = scratch.sink(file).unwrap();
        for part in parts {
            sink.write_all(part.as_bytes()).unwrap();
        }
        assert_eq!(scratch.made(file), None);
        sink.finish().unwrap();
        assert_eq!(scratch.made(file), Some(content(&parts.concat())));
    }

    #[test]
    fn hashes_what_is_written_and_what_a_command_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = scratch(&folder, true);
        let mine = path("intermediate/a.json");
        put(&scratch, &mine, &["he", "llo"]);
        let theirs = path("intermediate/b.json");
        std::fs::write(scratch.at(&theirs), "theirs").unwrap();
        assert_eq!(scratch.content(&mine).unwrap(), Some(content("hello")));
        assert_eq!(scratch.content(&theirs).unwrap(), Some(content("theirs")));
        std::fs::write(scratch.at(&mine), "HELLO").unwrap();
        assert_eq!(scratch.content(&mine).unwrap(), Some(content("HELLO")));
        assert_eq!(
            scratch.inside(&mine).as_str(),
            ".milepost/scratch/RUN/classify/batch_1~2/intermediate/a.json"
        );
        assert_eq!(scratch.content(&path("x/y")).unwrap(), None);
        let at = scratch.path().to_owned();
        scratch.remove().unwrap();
        assert!(!at.exists());
    }

    #[test]
    fn files_of_ours_lie_beside_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = scratch(&folder, false);
        let (a, b, c) = (path("x/a.json"), path(".steps/b"), path("x/c"));
        put(&scratch, &a, &["one"]);
        put(
            &scratch,
            &b,
            &[
                &"long".repeat(GATHERED / 4),
                "er",
                &"x".repeat(GATHERED - 1),
            ],
        );
        put(&scratch, &a, &["t", "wo"]);
        drop(scratch.sink(&c).unwrap());
        assert_eq!(scratch.files(), [a.clone(), b.clone()]);
        let inside = ".milepost/scratch/RUN/classify/batch_1~2";
        assert_eq!(scratch.inside(&b).as_str(), format!("{inside}.1"));
        assert_eq!(scratch.at(&c), folder.path().join(format!("{inside}.2")));
        assert_eq!(std::fs::read(scratch.at(&a)).unwrap(), b"two");
        assert_eq!(scratch.content(&a).unwrap(), Some(content("two")));
        assert_eq!(scratch.content(&c).unwrap(), None);
        scratch.forget(&b).unwrap();
        assert_eq!(scratch.files(), std::slice::from_ref(&a));
        std::fs::rename(scratch.at(&a), folder.path().join("a.json")).unwrap();
        scratch.published(&a);
        let parent = scratch.path().parent().unwrap().to_owned();
        scratch.remove().unwrap();
        assert_eq!(std::fs::read_dir(parent).unwrap().count(), 0);
    }

    #[test]
    fn what_is_left_is_kept() {
        for is_folder in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let scratch = scratch(&folder, is_folder);
            assert!(scratch.is_empty());
            put(&scratch, &path("x/a.json"), &["one"]);
            assert!(!scratch.is_empty());
            let layout = Layout::new(folder.path());
            scratch.keep(&layout, &path("kept")).unwrap();
            let kept = std::fs::read(folder.path().join("kept/x/a.json")).unwrap();
            assert_eq!(kept, b"one");
        }
    }

    #[test]
    fn only_a_folder_that_is_as_it_was_made_is_used_again() {
        use std::os::unix::fs::PermissionsExt as _;
        type Change = fn(&Path);
        let changes: [(Change, bool); 6] = [
            (|_| {}, true),
            (|at| std::fs::write(at.join("x/left"), "").unwrap(), false),
            (|at| std::fs::create_dir(at.join("more")).unwrap(), false),
            (|at| std::fs::remove_dir(at.join("x/y")).unwrap(), false),
            (
                |at| std::os::unix::fs::symlink("/", at.join("x/link")).unwrap(),
                false,
            ),
            (
                |at| {
                    let rights = std::fs::Permissions::from_mode(0o700);
                    std::fs::set_permissions(at.join("x"), rights).unwrap();
                },
                false,
            ),
        ];
        for (number, (change, is_used)) in changes.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let spares = Spares::default();
            let first = made(&folder, &NAME, Some(&spares));
            first.make_folder_of(&path("x/y/a.json")).unwrap();
            let before = first.path().symlink_metadata().unwrap().ino();
            let was_at = first.path().to_owned();
            change(first.path());
            first.spare(&spares).unwrap();
            assert_eq!(was_at.exists(), is_used, "{number}");
            let second = made(&folder, &Name { number: 3, ..NAME }, Some(&spares));
            assert!(!was_at.exists());
            let after = second.path().symlink_metadata().unwrap().ino();
            let has_folders = second.at(&path("x/y")).is_dir();
            assert_eq!(has_folders, is_used, "{number}");
            assert!(!is_used || before == after);
            let third = made(&folder, &Name { number: 4, ..NAME }, Some(&spares));
            assert!(third.is_empty() && !third.at(&path("x")).exists());
        }
    }

    #[test]
    fn takes_no_link_for_an_output() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = scratch(&folder, true);
        std::os::unix::fs::symlink("/etc/passwd", scratch.path().join("a.json")).unwrap();
        std::os::unix::fs::symlink("/etc", scratch.path().join("b")).unwrap();
        std::fs::create_dir(scratch.path().join("c.json")).unwrap();
        for (file, what) in [
            ("a.json", "output `a.json` is a symbolic link"),
            ("b/passwd", "output `b/passwd` is behind a symbolic link"),
            ("c.json", "output `c.json` is a folder"),
        ] {
            let error = scratch.content(&path(file)).unwrap_err().to_string();
            assert!(error.starts_with(what), "{error}");
        }
    }

    #[test]
    fn names_folders_safely() {
        assert_eq!(safe_name("batch_1"), "batch_1");
        assert_eq!(safe_name(""), "only");
        assert_ne!(safe_name("a/b"), safe_name("a_b"));
        assert!(safe_name(&"é".repeat(200)).len() <= 80);
    }
}
