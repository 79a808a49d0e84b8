//! A private folder for each attempt, where outputs are written and hashed before they are published.

use super::disk::{Disk, DiskError, DiskFile, parent};
use super::files::digest_of;
use super::layout::{self, Layout};
use crate::base::digest::{Digest, Hasher};
use crate::base::path::{RelPath, component};
use crate::base::source::Sink;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The folder of one attempt: `.milepost/scratch/RUN/STAGE/BATCH~ATTEMPT`.
#[derive(Clone)]
pub struct Scratch {
    disk: Disk,
    path: PathBuf,
    inside: RelPath,
    made: Arc<Mutex<BTreeMap<RelPath, Written>>>,
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
    /// A name that cannot be recorded.
    #[error("the name of {path:?} is no UTF-8, or holds control characters or backslashes")]
    Name {
        /// The file.
        path: PathBuf,
    },
}

/// A file that a sink finished, and what the file system said of it then.
struct Written {
    content: Content,
    stamp: Stamp,
}

type Stamp = (u64, u64, i64, i64);

impl Scratch {
    /// Makes the folder of an attempt, empty.
    pub fn create(
        disk: &Disk,
        layout: &Layout,
        run: &str,
        stage: &str,
        batch: &str,
        attempt: u32,
    ) -> Result<Self, ScratchError> {
        let attempt = format!("{}~{attempt}", safe_name(batch));
        let parts = [safe_name(run), safe_name(stage), attempt];
        let below = RelPath::of_parts(parts.iter().map(String::as_str));
        let inside = layout::scratch().with(&below);
        let path = layout.at(&inside);
        if path.symlink_metadata().is_ok() {
            disk.remove_dir_all(&path)?;
        }
        disk.create_dirs(&path)?;
        Ok(Self {
            disk: disk.clone(),
            path,
            inside,
            made: Arc::default(),
        })
    }

    /// The folder, absolute: where commands work.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder, in the workspace.
    pub fn folder(&self) -> &RelPath {
        &self.inside
    }

    /// Where a file of the attempt lies, absolute.
    pub fn at(&self, file: &RelPath) -> PathBuf {
        self.path.join(file.as_str())
    }

    /// The same in the workspace, as `publish` records it.
    pub fn inside(&self, file: &RelPath) -> RelPath {
        self.inside.with(file)
    }

    /// A file to write. It is hashed while it is written.
    pub fn sink(&self, file: &RelPath) -> Result<Box<dyn Sink>, DiskError> {
        let path = self.at(file);
        self.disk.create_dirs(parent(&path))?;
        let open = self.disk.create(&path)?;
        Ok(Box::new(HashingSink {
            file: file.clone(),
            path,
            open: BufWriter::with_capacity(1 << 17, open),
            hasher: Hasher::new(),
            size: 0,
            made: Arc::clone(&self.made),
        }))
    }

    /// Makes the folder that a file lies in, for a command that writes it.
    pub fn make_folder_of(&self, file: &RelPath) -> Result<(), DiskError> {
        self.disk.create_dirs(parent(&self.at(file))).map(|_| ())
    }

    /// What a finished sink wrote.
    pub fn made(&self, file: &RelPath) -> Option<Content> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.get(file).map(|written| written.content)
    }

    /// What one file holds, whoever wrote it; none when it is not there. A link or a special file is an error.
    pub fn content(&self, file: &RelPath) -> Result<Option<Content>, ScratchError> {
        let path = self.at(file);
        let fail = |source| ScratchError::Read {
            path: path.clone(),
            source,
        };
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
        {
            let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            // A later step may have written over what a sink wrote: the change time would tell.
            if let Some(written) = made.get(file).filter(|made| made.stamp == stamp(&found)) {
                return Ok(Some(written.content));
            }
        }
        let content = digest_of(&path).map_err(fail)?;
        Ok(content.map(|(digest, size)| Content { digest, size }))
    }

    /// Removes a file of the attempt.
    pub fn forget(&self, file: &RelPath) -> Result<(), DiskError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.remove(file);
        self.disk.remove_file(&self.at(file))
    }

    /// Whether it holds nothing: no file, no link, nothing but folders.
    pub fn is_empty(&self) -> bool {
        let mut entries = walkdir::WalkDir::new(&self.path).min_depth(1).into_iter();
        entries.all(|entry| entry.is_ok_and(|entry| entry.file_type().is_dir()))
    }

    /// All files that are wanted, whoever wrote them, with what they hold. What is not wanted is not looked at.
    pub fn collect(
        &self,
        wanted: &dyn Fn(&RelPath) -> bool,
    ) -> Result<BTreeMap<RelPath, Content>, ScratchError> {
        let mut found = BTreeMap::new();
        for entry in walkdir::WalkDir::new(&self.path).min_depth(1) {
            let entry = entry.map_err(|error| ScratchError::Read {
                path: self.path.clone(),
                source: error.into(),
            })?;
            if entry.file_type().is_dir() {
                continue;
            }
            let inside = entry
                .path()
                .strip_prefix(&self.path)
                .unwrap_or(entry.path());
            let Some(file) = inside.to_str().and_then(|text| RelPath::parse(text).ok()) else {
                // An output's name is declared, or is to match a pattern: this one may be wanted by one.
                let path = entry.path().to_owned();
                let seen = RelPath::parse(&inside.to_string_lossy());
                if seen.is_ok_and(|seen| wanted(&seen)) {
                    return Err(ScratchError::Name { path });
                }
                continue;
            };
            if wanted(&file)
                && let Some(content) = self.content(&file)?
            {
                found.insert(file, content);
            }
        }
        Ok(found)
    }

    /// Removes the folder and all that is left in it.
    pub fn remove(self) -> Result<(), DiskError> {
        self.disk.remove_dir_all(&self.path)
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

/// A file of an attempt that is being written.
struct HashingSink {
    file: RelPath,
    path: PathBuf,
    open: BufWriter<DiskFile>,
    hasher: Hasher,
    size: u64,
    made: Arc<Mutex<BTreeMap<RelPath, Written>>>,
}

impl Write for HashingSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.open.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.open.flush()
    }
}

impl Sink for HashingSink {
    fn path(&self) -> &Path {
        &self.path
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.open.flush()?;
        let found = self.open.get_ref().file().metadata()?;
        let content = Content {
            digest: self.hasher.clone().finish(),
            size: self.size,
        };
        let stamp = stamp(&found);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.insert(self.file.clone(), Written { content, stamp });
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests prepare the disk by hand")]
mod tests {
    use super::*;

    fn scratch(folder: &tempfile::TempDir) -> Scratch {
        let layout = Layout::new(folder.path());
        Scratch::create(&Disk::real(), &layout, "RUN", "classify", "batch_1", 2).unwrap()
    }

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    #[test]
    fn hashes_what_is_written_and_what_a_command_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = scratch(&folder);
        let mine = path("intermediate/a.json");
        let mut sink = scratch.sink(&mine).unwrap();
        sink.write_all(b"he").unwrap();
        sink.write_all(b"llo").unwrap();
        assert_eq!(scratch.made(&mine), None);
        sink.finish().unwrap();
        let content = |text: &str| Content {
            digest: Digest::of(text),
            size: text.len() as u64,
        };
        assert_eq!(scratch.made(&mine), Some(content("hello")));
        std::fs::write(scratch.at(&path("intermediate/b.json")), "theirs").unwrap();
        std::os::unix::fs::symlink("/etc", scratch.path().join("junk")).unwrap();
        let found = scratch
            .collect(&|file| file.as_str().starts_with("intermediate/"))
            .unwrap();
        let expected = [
            (mine.clone(), content("hello")),
            (path("intermediate/b.json"), content("theirs")),
        ];
        assert_eq!(found, BTreeMap::from(expected));
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
    fn takes_no_link_for_an_output() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = scratch(&folder);
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
        assert!(scratch.collect(&|_| true).is_err());
    }

    #[test]
    fn names_folders_safely() {
        assert_eq!(safe_name("batch_1"), "batch_1");
        assert_eq!(safe_name(""), "only");
        assert_ne!(safe_name("a/b"), safe_name("a_b"));
        assert!(safe_name(&"é".repeat(200)).len() <= 80);
    }
}
