//! Where a noted file lies.

use crate::store::layout;
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::base::reserved::checkpoint_number;

/// Where a file lies: root, folder (empty: the root) and name.
pub(super) type PathParts<'a> = (Root, &'a str, &'a str);

pub(super) fn place(file: &FilePath) -> PathParts<'_> {
    let (folder, name) = parts(file.path.as_str());
    (file.root, folder, name)
}

/// The folder (empty: the root) and the name of a path.
pub(super) fn parts(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Returns the file of this name in a folder (empty: the root).
pub(super) fn file_at((root, folder, name): PathParts<'_>) -> Option<FilePath> {
    let path = match folder {
        "" => RelPath::parse(name),
        _ => RelPath::parse(&format!("{folder}/{name}")),
    };
    path.ok().map(|path| FilePath { root, path })
}

/// Returns true if a file of the workspace is Milepost's own.
pub(super) fn is_own(folder: &str, name: &str) -> bool {
    let first = folder.split('/').next().unwrap_or_default();
    let first = if first.is_empty() { name } else { first };
    first == layout::OWN || first == layout::MANIFESTS || checkpoint_number(first).is_some()
}
