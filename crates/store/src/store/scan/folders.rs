//! Open folders for a scan of many files, each opened once.

use super::files::Files;
use super::folder::Folder;
use super::stamp::FileStamp;
use milepost_core::base::path::{FilePath, Root};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of open folders. Systems usually allow a process about a thousand open files.
const OPEN: usize = 64;

/// The open folders of one scan. It must not outlive the scan, because it does not notice when a folder is replaced.
pub struct Folders<'a> {
    files: &'a Files,
    workspace: Mutex<HashMap<String, Way>>,
    project: Mutex<HashMap<String, Way>>,
}

/// The file at a path without links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundFile {
    /// A regular file with this stamp.
    File(FileStamp),
    Nothing,
    /// A part of the path is a link, it is not a regular file, or the system cannot tell.
    Unclear,
}

#[derive(Clone)]
enum Way {
    Open(Arc<Folder>),
    Absent,
    Unclear,
}

impl<'a> Folders<'a> {
    /// Creates a scan with no folder open.
    pub fn new(files: &'a Files) -> Self {
        Self {
            files,
            workspace: Mutex::default(),
            project: Mutex::default(),
        }
    }

    /// Returns the file at this path.
    pub fn look(&self, file: &FilePath) -> FoundFile {
        if self.files.is_redirected(file) {
            return FoundFile::Unclear;
        }
        let path = file.path.as_str();
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        match self.way(file.root, folder) {
            Way::Open(open) => match open.stamp(name) {
                Ok(Some(stamp)) => FoundFile::File(stamp),
                Ok(None) => FoundFile::Nothing,
                Err(_) => FoundFile::Unclear,
            },
            Way::Absent => FoundFile::Nothing,
            Way::Unclear => FoundFile::Unclear,
        }
    }

    fn way(&self, root: Root, folder: &str) -> Way {
        let ways = match root {
            Root::Workspace => &self.workspace,
            Root::Project => &self.project,
        };
        let mut ways = ways.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(way) = ways.get(folder) {
            return way.clone();
        }
        let way = match self.files.open_folder(root, folder) {
            Ok(Some(open)) => Way::Open(Arc::new(open)),
            Ok(None) => Way::Absent,
            Err(_) => Way::Unclear,
        };
        if ways.len() >= OPEN {
            ways.clear();
        }
        ways.insert(folder.to_owned(), way.clone());
        way
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests prepare the disk by hand")]
mod tests {
    use super::*;

    #[test]
    fn tells_files_from_nothing_and_links_from_both() {
        let place = tempfile::tempdir().unwrap();
        let at = |path: &str| place.path().join(path);
        for folder in ["a/b", "out"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["top", "a/b/file", "out/file"] {
            std::fs::write(at(file), "text").unwrap();
        }
        std::os::unix::fs::symlink(at("out"), at("a/link")).unwrap();
        std::os::unix::fs::symlink(at("out/file"), at("a/b/link")).unwrap();
        let files = Files::new(place.path(), place.path());
        let folders = Folders::new(&files);
        let found = |path: &str| match folders.look(&path.parse().unwrap()) {
            FoundFile::File(stamp) => format!("{} bytes", stamp.size),
            FoundFile::Nothing => "nothing".to_owned(),
            FoundFile::Unclear => "unclear".to_owned(),
        };
        for (path, expected) in [
            ("top", "4 bytes"),
            ("none", "nothing"),
            ("a/b/file", "4 bytes"),
            ("project:a/b/file", "4 bytes"),
            ("a/b/none", "nothing"),
            ("a/none/file", "nothing"),
            ("a/b", "unclear"),
            ("a/b/link", "unclear"),
            ("a/link/file", "unclear"),
            ("a/link/none", "unclear"),
            ("top/file", "unclear"),
        ] {
            assert_eq!(found(path), expected, "{path}");
            assert_eq!(found(path), expected, "{path}, again");
        }
    }

    #[test]
    fn more_folders_than_may_be_open_are_told_all_the_same() {
        let place = tempfile::tempdir().unwrap();
        let files = Files::new(place.path(), place.path());
        let folders = Folders::new(&files);
        for round in 0..2 {
            for folder in 0..3 * OPEN {
                let path = format!("{folder}/file");
                if round == 0 {
                    std::fs::create_dir(place.path().join(folder.to_string())).unwrap();
                    std::fs::write(place.path().join(&path), "text").unwrap();
                }
                let found = folders.look(&path.parse().unwrap());
                assert!(matches!(found, FoundFile::File(_)), "{path}: {found:?}");
            }
        }
    }
}
