//! Manifests: the records of each stage's batches, in pages that `sha256sum -c` can read in the folder of the workspace.
//!
//! A page has at most 1,000 outputs, in natural order of the keys of batches. Pages keep their bounds, so that one change rewrites
//! one page. The digest of a manifest is that of its only page; of several, that of their list:
//! `cd manifests/STAGE && sha256sum page_*.sha256 | sha256sum`.

mod by_page;
mod compare;
mod early;
mod keys;
mod page;
mod paging;
mod text;
mod write;

pub use by_page::{naming, read_pages, read_with};
pub use compare::{changed_pages, pages};
pub use early::{EarlyManifest, EarlyPage};
pub use keys::{keys, outputs};
pub use text::{ManifestError, PAGE_LINES};
pub use write::{WrittenManifest, write};

use super::disk::{Disk, DiskError};
use super::layout::{self, Layout};
use crate::store::read;
use milepost_core::base::digest::{Digest, Hasher};
use milepost_core::base::in_order::in_order;
use milepost_core::base::path::RelPath;
use milepost_core::model::state::StageState;
use page::ParsedPage;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Returns the part of a stage's state that its manifest stores: no running batches, no facts without a record, and nothing that the
/// checkpoint contains.
pub fn kept(state: &StageState) -> StageState {
    let mut batches = state.batches.clone();
    for batch in batches.values_mut() {
        batch.rest();
    }
    let records = || batches.values().filter_map(|batch| batch.record.as_ref());
    let used: std::collections::BTreeSet<&str> =
        records().map(|record| record.shared.as_str()).collect();
    let facts = state.facts.iter();
    let facts = facts
        .filter(|(id, _)| used.contains(id.as_str()))
        .map(|(id, facts)| (id.clone(), facts.clone()))
        .collect();
    StageState {
        number: state.number,
        facts,
        batches,
        ..StageState::default()
    }
}

/// Returns the number of pages of each manifest, by stage.
pub fn page_counts(layout: &Layout) -> Result<BTreeMap<String, u64>, DiskError> {
    let names = |folder: &Path| read::names(folder).map_err(DiskError::reading(folder));
    let root = layout.manifests();
    let mut counts = BTreeMap::new();
    for stage in names(&root)? {
        let folder = root.join(&stage);
        if folder.is_dir() {
            let names = names(&folder)?;
            let pages = names.iter().filter(|name| name.starts_with("page_"));
            counts.insert(stage, pages.count() as u64);
        }
    }
    Ok(counts)
}

/// Reads the manifest of a stage; the default state if it has none.
pub fn read(layout: &Layout, stage: &str) -> Result<StageState, ManifestError> {
    let folder = layout.at(&layout::manifest(stage));
    let read = read_folder(&folder, &|_| true)?;
    Ok(read.map_or_else(StageState::default, |(_, state)| state))
}

/// Reads the manifests of all stages, by name.
pub fn read_all(layout: &Layout) -> Result<BTreeMap<String, StageState>, ManifestError> {
    read_stages(layout, &|_| true)
}

fn read_stages(
    layout: &Layout,
    is_wanted: &(dyn Fn(&[u8]) -> bool + Sync),
) -> Result<BTreeMap<String, StageState>, ManifestError> {
    let root = layout.manifests();
    let mut stages = BTreeMap::new();
    for name in read::names(&root).map_err(DiskError::reading(&root))? {
        let folder = root.join(name);
        if folder.is_dir() && !folder.is_symlink() {
            stages.extend(read_folder(&folder, is_wanted)?);
        }
    }
    Ok(stages)
}

/// Returns the digest of a stage's manifest; `None` if it has none.
pub fn digest(layout: &Layout, stage: &str) -> Result<Option<Digest>, ManifestError> {
    let folder = layout.at(&layout::manifest(stage));
    steady(&folder, |pages| {
        let mut digests = Vec::with_capacity(pages.len());
        for page in pages {
            let bytes = bytes(&path(&folder, page.number))?;
            digests.push((page.number, Digest::of(bytes)));
        }
        Ok((!pages.is_empty()).then(|| digest_of(&digests)))
    })
}

/// Returns the digest that checkpoints of format 1 name: that of the pages, one after another.
pub fn joined_digest(layout: &Layout, stage: &str) -> Result<Option<Digest>, ManifestError> {
    let folder = layout.at(&layout::manifest(stage));
    steady(&folder, |pages| {
        let mut hasher = Hasher::new();
        for page in pages {
            hasher.update(bytes(&path(&folder, page.number))?);
        }
        Ok((!pages.is_empty()).then(|| hasher.finish()))
    })
}

/// Returns the digest of the only page; of several, that of their list as `sha256sum` writes it in their folder.
fn digest_of(pages: &[(u64, Digest)]) -> Digest {
    if let [(_, digest)] = pages {
        return *digest;
    }
    let mut hasher = Hasher::new();
    for (number, digest) in pages {
        hasher.update(format!("{}  {}\n", digest.hex(), page_name(*number)));
    }
    hasher.finish()
}

/// Removes a stage's manifest durably. Other files in its folder stay.
pub fn remove(disk: &Disk, layout: &Layout, stage: &str) -> Result<(), ManifestError> {
    let folder = layout.at(&layout::manifest(stage));
    if !folder.exists() {
        return Ok(());
    }
    let pages = list(&folder)?;
    let names = read::names(&folder).map_err(DiskError::reading(&folder))?;
    let others = names.iter().filter(|name| {
        let is_page = pages.iter().any(|page| page_name(page.number) == **name);
        let is_unfinished = name.starts_with(".page_") && name.strip_suffix(".tmp").is_some();
        !is_page && !is_unfinished
    });
    if others.count() == 0 {
        disk.remove_dir_all(&folder)?;
        disk.sync_dir(&layout.manifests())?;
        return Ok(());
    }
    for page in pages {
        disk.remove_file(&path(&folder, page.number))?;
    }
    Ok(disk.sync_dir(&folder)?)
}

/// A page as the folder lists it; two equal listings with nothing written in between hold equal pages.
#[derive(PartialEq, Eq)]
struct Listed {
    number: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

/// Returns the path of a page of a stage's manifest, relative to the workspace.
pub fn page(stage: &str, number: u64) -> RelPath {
    layout::manifest(stage).with(&RelPath::of_parts([page_name(number).as_str()]))
}

fn path(folder: &Path, page: u64) -> PathBuf {
    folder.join(page_name(page))
}

fn page_name(page: u64) -> String {
    format!("page_{page:04}.sha256")
}

fn bytes(path: &Path) -> Result<Vec<u8>, ManifestError> {
    Ok(read::bytes(path).map_err(DiskError::reading(path))?)
}

/// Returns the pages in a folder, in order.
fn list(folder: &Path) -> Result<Vec<Listed>, ManifestError> {
    let fail = DiskError::reading(folder);
    let mut pages = Vec::new();
    for name in read::names(folder).map_err(&fail)? {
        let digits = name.strip_prefix("page_");
        let digits = digits.and_then(|rest| rest.strip_suffix(".sha256"));
        let number = digits.and_then(|digits| {
            let plain = digits.len() >= 4 && digits.bytes().all(|b| b.is_ascii_digit());
            digits.parse::<u64>().ok().filter(|_| plain)
        });
        let Some(number) = number else { continue };
        match folder.join(&name).symlink_metadata() {
            Ok(found) => pages.push(Listed {
                number,
                inode: found.ino(),
                size: found.len(),
                changed: (found.ctime(), found.ctime_nsec()),
            }),
            // Removed or renamed by a run in this moment: the listing after will differ.
            Err(cause) if cause.kind() == ErrorKind::NotFound => {}
            Err(cause) => return Err(fail(cause).into()),
        }
    }
    pages.sort_by_key(|page| page.number);
    Ok(pages)
}

/// Returns the number of threads that read or write this many pages.
fn threads(pages: usize) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    processors.min(pages)
}

/// Reads pages until a run did not rewrite them meanwhile.
fn steady<T>(
    folder: &Path,
    read: impl Fn(&[Listed]) -> Result<T, ManifestError>,
) -> Result<T, ManifestError> {
    for _ in 0..64 {
        let before = list(folder)?;
        let result = read(&before);
        if list(folder)? == before {
            return result;
        }
    }
    Err(ManifestError::Moving {
        path: folder.to_owned(),
    })
}

fn read_folder(
    folder: &Path,
    is_wanted: &(dyn Fn(&[u8]) -> bool + Sync),
) -> Result<Option<(String, StageState)>, ManifestError> {
    let parse = |page: &Listed| {
        let path = path(folder, page.number);
        let bytes = bytes(&path)?;
        is_wanted(&bytes)
            .then(|| ParsedPage::parse(path, &bytes))
            .transpose()
    };
    steady(folder, |pages| {
        let mut reading = page::ManifestReader::default();
        in_order(
            threads(pages.len()),
            &|| Box::new(parse),
            |give| pages.iter().try_for_each(give),
            &mut |parsed: Result<Option<ParsedPage>, ManifestError>| match parsed? {
                Some(page) => reading.take(page),
                None => Ok(()),
            },
        )?;
        reading.finish()
    })
}
