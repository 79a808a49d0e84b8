//! Publishing: flushes complete files in scratch, renames them into place, and recovers after a crash.

use super::disk::{Disk, DiskError, has_other_links, parent};
use super::layout::Layout;
use super::quarantine::move_aside;
use super::scan::files::digest_of;
use super::workspace::identity;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use milepost_core::model::event::Publish;
use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Files up to which each is flushed alone. More are flushed with their whole file system, which costs about as much as ten.
const FEW: usize = 4;

/// A file that cannot be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    /// A symbolic link in the path leads out of the workspace.
    #[error(
        "`{path}` leaves the workspace by a symbolic link, to {target}: replace it with a folder"
    )]
    Leaves {
        /// The output.
        path: RelPath,
        /// Where its folder lies.
        target: PathBuf,
    },
}

/// The state of a published file after recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveredFile {
    /// The file was in place.
    Done,
    /// The file was complete in scratch, and recovery renamed it into place.
    Renamed,
    /// The file is in neither place, so the batch runs again. An earlier file is still in place, if there was one.
    Lost {
        /// The digest of the earlier file; `None` if there is none.
        old: Option<Digest>,
    },
    /// The file in its place was modified. Recovery left it alone.
    Modified,
}

impl RecoveredFile {
    /// Returns true if the file is in neither place.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }
}

/// Returns why the folder of an output cannot have files of this workspace only, renamed from scratch; `None` if nothing is known.
pub fn refusal(layout: &Layout, path: &RelPath) -> Option<String> {
    let (root, own) = (layout.root(), layout.own());
    let device = |folder: &Path| folder.metadata().ok().map(|found| found.dev());
    let scratch = device(&own).or_else(|| device(root))?;
    for (end, _) in path.as_str().match_indices('/') {
        let folder = &path.as_str()[..end];
        let place = root.join(folder);
        if place.is_symlink() {
            let target = place.canonicalize().ok()?;
            if target.starts_with(root.canonicalize().ok()?) {
                return Some(format!(
                    "`{folder}` is a symbolic link, so another output may be the same file: replace it with a folder"
                ));
            }
            let path = RelPath::parse(folder).ok()?;
            return Some(PublishError::Leaves { path, target }.to_string());
        }
        if place.is_file() {
            return Some(format!(
                "`{folder}` is a file, and the output is in a folder of this name: remove it, or choose another path"
            ));
        }
        if place.join(identity().as_str()).exists() {
            return Some(format!(
                "`{folder}` is another workspace, whose outputs may be the same files: choose another path"
            ));
        }
    }
    let place = root.join(path.as_str());
    let folder = place.ancestors().skip(1).find(|folder| folder.exists())?;
    (device(folder)? != scratch).then(|| {
        "it is on another file system than `.milepost`, from where finished files are renamed: put the whole workspace on one file system".to_owned()
    })
}

/// Flushes complete files in scratch and their folders. The paths are relative to the workspace.
pub fn flush_group(disk: &Disk, layout: &Layout, files: &[RelPath]) -> Result<(), PublishError> {
    if files.is_empty() {
        return Ok(());
    }
    let paths: Vec<PathBuf> = files.iter().map(|file| layout.at(file)).collect();
    // An input with a hard link to an output would change it.
    for path in paths.iter().filter(|path| has_other_links(path)) {
        disk.separate(path)?;
    }
    let by_file = files.len() <= FEW;
    if by_file {
        for path in &paths {
            disk.sync_file(path)?;
        }
    } else {
        disk.sync_filesystem(parent(&paths[0]), &paths)?;
    }
    if by_file || !cfg!(target_os = "linux") {
        let own = layout.own();
        let mut folders = BTreeSet::new();
        for path in &paths {
            let above = path.ancestors().skip(1);
            folders.extend(above.take_while(|folder| folder.starts_with(&own)));
        }
        for folder in folders {
            disk.sync_dir(folder)?;
        }
    }
    Ok(())
}

/// Renames published files into place, one after another, and then flushes each folder once. Files that must be kept move from
/// their place to quarantine first. Markers are removed before, and written when everything else is durable. `placed` hears of each
/// file as soon as it is in place.
pub fn rename_into_place(
    disk: &Disk,
    layout: &Layout,
    files: &[Publish],
    placed: &mut dyn FnMut(&Publish),
) -> Result<(), PublishError> {
    let (markers, others): (Vec<&Publish>, Vec<&Publish>) =
        files.iter().partition(|file| file.marker);
    let mut folders = TouchedFolders::default();
    for marker in &markers {
        remove_marker(disk, layout, marker, &mut folders)?;
    }
    for files in [others, markers] {
        for file in files {
            put(disk, layout, file, &mut folders)?;
            placed(file);
        }
        std::mem::take(&mut folders).flush(disk)?;
    }
    Ok(())
}

/// Returns the state that recovery leaves each file of a published batch in. Nothing is written. If one is lost, no other is
/// renamed, and the marker is removed. A modified file is left alone even if the new one is in scratch, because modified outputs are
/// never overwritten; its record later shows that it was modified.
pub fn recovered(layout: &Layout, files: &[Publish]) -> Result<Vec<RecoveredFile>, PublishError> {
    let mut recovered = Vec::with_capacity(files.len());
    for file in files {
        recovered.push(look(layout, file)?);
    }
    if recovered.iter().any(RecoveredFile::is_lost) {
        for (file, became) in files.iter().zip(&mut recovered) {
            if file.marker && matches!(became, RecoveredFile::Done | RecoveredFile::Renamed) {
                *became = RecoveredFile::Lost { old: None };
            } else if *became == RecoveredFile::Renamed {
                let old = digest_at(&layout.root().join(file.path.as_str()))?;
                *became = RecoveredFile::Lost { old };
            }
        }
    }
    Ok(recovered)
}

/// Recovers the files of a batch that was published before a crash, and returns the state of each, as [`recovered`] does.
pub fn settle(
    disk: &Disk,
    layout: &Layout,
    files: &[Publish],
) -> Result<Vec<RecoveredFile>, PublishError> {
    let settled = recovered(layout, files)?;
    let mut folders = TouchedFolders::default();
    if settled.iter().any(RecoveredFile::is_lost) {
        for (file, became) in files.iter().zip(&settled) {
            if file.marker && *became == (RecoveredFile::Lost { old: None }) {
                remove_marker(disk, layout, file, &mut folders)?;
            }
        }
        folders.flush(disk)?;
        return Ok(settled);
    }
    let renames = settled.contains(&RecoveredFile::Renamed);
    let mut to_do = Vec::new();
    for (file, became) in files.iter().zip(&settled) {
        // A marker that is there may be the one from before: all of them are alike.
        let is_ours = *became != RecoveredFile::Modified;
        let again =
            renames && file.marker && is_ours && digest_at(&layout.at(&file.scratch))?.is_some();
        if *became == RecoveredFile::Renamed || again {
            to_do.push(file.clone());
        } else if *became == RecoveredFile::Done {
            // Renamed, but perhaps not flushed.
            folders.0.insert(parent(&layout.at(&file.path)).to_owned());
        }
    }
    folders.flush(disk)?;
    rename_into_place(disk, layout, &to_do, &mut |_| {})?;
    Ok(settled)
}

/// Returns the state that recovery leaves a file in; `Renamed` if the caller must rename it.
fn look(layout: &Layout, file: &Publish) -> Result<RecoveredFile, PublishError> {
    // Readers may have redirects from an earlier look.
    let at = |path: &RelPath| layout.root().join(path.as_str());
    // A folder or a special file there is not ours.
    let there = at(&file.path).metadata();
    if there.is_ok_and(|there| !there.is_file()) {
        return Ok(RecoveredFile::Modified);
    }
    // Scratch first: to a reader, the file is in one of both places while another process renames it.
    let is_in_scratch = digest_at(&at(&file.scratch))? == Some(file.new);
    let there = digest_at(&at(&file.path))?;
    if there == Some(file.new) {
        return Ok(RecoveredFile::Done);
    }
    let is_old = there.is_none() || there == file.old;
    if is_in_scratch {
        let kept = file.quarantine.as_ref();
        let can_keep = kept.is_some_and(|kept| at(kept).symlink_metadata().is_err());
        return Ok(if is_old || can_keep {
            RecoveredFile::Renamed
        } else {
            RecoveredFile::Modified
        });
    }
    Ok(if is_old {
        RecoveredFile::Lost { old: there }
    } else {
        RecoveredFile::Modified
    })
}

/// Removes a marker before the files that it vouches for are replaced. A marker that a person modified goes to quarantine.
fn remove_marker(
    disk: &Disk,
    layout: &Layout,
    file: &Publish,
    folders: &mut TouchedFolders,
) -> Result<(), PublishError> {
    let path = layout.at(&file.path);
    if let Some(kept) = &file.quarantine {
        let kept = layout.at(kept);
        if move_aside(disk, &path, &kept)? {
            folders.0.insert(parent(&kept).to_owned());
        }
    } else if path.symlink_metadata().is_ok() {
        disk.remove_file(&path)?;
    }
    Ok(())
}

/// Folders to flush; those of outputs are made and looked at once.
#[derive(Default)]
struct TouchedFolders(BTreeSet<PathBuf>);

impl TouchedFolders {
    fn flush(self, disk: &Disk) -> Result<(), PublishError> {
        for folder in self.0 {
            if folder.exists() {
                disk.sync_dir(&folder)?;
            }
        }
        Ok(())
    }
}

fn put(
    disk: &Disk,
    layout: &Layout,
    file: &Publish,
    folders: &mut TouchedFolders,
) -> Result<(), PublishError> {
    let (scratch, path) = (layout.at(&file.scratch), layout.at(&file.path));
    if let Some(kept) = &file.quarantine {
        let kept = layout.at(kept);
        if move_aside(disk, &path, &kept)? {
            folders.0.insert(parent(&kept).to_owned());
        }
    }
    let folder = parent(&path);
    if !folders.0.contains(folder) {
        disk.create_dir_all(folder)?;
        let real = |path: &Path| path.canonicalize().map_err(|source| read(path, source));
        let target = real(folder)?;
        if !target.starts_with(real(layout.root())?) {
            let path = file.path.clone();
            return Err(PublishError::Leaves { path, target });
        }
        folders.0.insert(folder.to_owned());
    }
    Ok(disk.rename_from_program(&scratch, &path)?)
}

/// Returns the digest of what lies at a path. A link there is nothing of ours: it is looked at as the file that it leads to.
fn digest_at(path: &Path) -> Result<Option<Digest>, PublishError> {
    let found = digest_of(path).map_err(|source| read(path, source))?;
    Ok(found.map(|(digest, _)| digest))
}

fn read(path: &Path, source: io::Error) -> PublishError {
    PublishError::Read {
        path: path.to_owned(),
        source,
    }
}
