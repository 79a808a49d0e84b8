//! Manifests: the records of each stage's batches, in pages that `sha256sum -c` can read in the folder of the workspace.
//!
//! A page has at most 1,000 outputs, in natural order of the keys of batches. Pages keep their bounds, so that one change rewrites
//! one page. The digest of a manifest is that of its pages together: `cat manifests/STAGE/page_*.sha256 | sha256sum`.

mod keys;
mod page;
mod paging;
mod text;

pub use keys::{keys, outputs};
pub use text::{ManifestError, PAGE_LINES};

use super::disk::Disk;
use super::layout::{self, Layout};
use crate::store::read;
use milepost_core::base::digest::{Digest, Hasher};
use milepost_core::base::in_order::in_order;
use milepost_core::model::state::{BatchState, Phase, StageState};
use page::{ParsedPage, PieceId, Pieces};
use paging::PlannedPage;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Returns the part of a stage's state that its manifest stores: no running batches, no facts without a record, and nothing that the
/// checkpoint contains.
pub fn kept(state: &StageState) -> StageState {
    let mut batches = state.batches.clone();
    for batch in batches.values_mut() {
        batch.phase = rest(batch);
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
        status: None,
    }
}

/// Where a batch is when nothing runs.
fn rest(batch: &BatchState) -> Phase {
    match &batch.phase {
        failed @ Phase::Failed { .. } => failed.clone(),
        _ if batch.record.is_some() => Phase::Complete,
        _ => Phase::Waiting,
    }
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

/// Reads those pages of all stages that have a line for which `is_wanted` returns true. It is asked of every line.
///
/// # Errors
/// As [`read_all`], and if the outputs of a batch are also on pages that have no such line.
pub fn read_with(
    layout: &Layout,
    is_wanted: &(dyn Fn(&str) -> bool + Sync),
) -> Result<BTreeMap<String, StageState>, ManifestError> {
    read_stages(layout, &|page| {
        // A page that is not UTF-8 is read, so that it is reported.
        std::str::from_utf8(page).map_or(true, |page| {
            page.lines().filter(|line| is_wanted(line)).count() > 0
        })
    })
}

fn read_stages(
    layout: &Layout,
    is_wanted: &(dyn Fn(&[u8]) -> bool + Sync),
) -> Result<BTreeMap<String, StageState>, ManifestError> {
    let root = layout.manifests();
    let fail = |source| ManifestError::Read {
        path: root.clone(),
        source,
    };
    let mut stages = BTreeMap::new();
    let entries = match std::fs::read_dir(&root) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(stages),
        Err(cause) => return Err(fail(cause)),
    };
    for entry in entries {
        let entry = entry.map_err(fail)?;
        if entry.file_type().map_err(fail)?.is_dir() {
            stages.extend(read_folder(&entry.path(), is_wanted)?);
        }
    }
    Ok(stages)
}

/// Returns the digest of a stage's manifest; `None` if it has none.
pub fn digest(layout: &Layout, stage: &str) -> Result<Option<Digest>, ManifestError> {
    let folder = layout.at(&layout::manifest(stage));
    steady(&folder, |pages| {
        let mut hasher = Hasher::new();
        for page in pages {
            hasher.update(bytes(&path(&folder, page.number))?);
        }
        Ok((!pages.is_empty()).then(|| hasher.finish()))
    })
}

/// Returns the pages of a stage that differ from what this state is written as, in any byte.
///
/// # Errors
/// Fails if a page cannot be read.
pub fn changed_pages(
    layout: &Layout,
    stage: &str,
    state: &StageState,
) -> Result<Vec<PathBuf>, ManifestError> {
    let folder = layout.at(&layout::manifest(stage));
    steady(&folder, |pages| {
        let mut found = Vec::with_capacity(pages.len());
        for page in pages {
            let path = path(&folder, page.number);
            let bytes = bytes(&path)?;
            let first = page::first_piece(&path, &bytes).ok().flatten();
            found.push((path, Digest::of(bytes), first));
        }
        let pieces = Pieces::of(state);
        let all = pieces.sizes().len();
        let (mut changed, mut from) = (Vec::new(), 0);
        for (at, (path, digest, _)) in found.iter().enumerate() {
            let next = found[at + 1..].iter().find_map(|page| page.2.as_ref());
            let is_here = |piece: &usize| next.is_none_or(|first| pieces.is_before(*piece, first));
            let upto = from + (from..all).take_while(is_here).count();
            if Digest::of(pieces.text(stage, state, from..upto)?) != *digest {
                changed.push(path.clone());
            }
            from = upto;
        }
        Ok(changed)
    })
}

/// Writes the part of the state that [`kept`] returns, and returns the digest of the manifest. Only pages whose bytes differ are
/// written, each atomically and durably. If the process is killed in between, each batch of both the old and the new state is in
/// some page, in its old or new form; the last segment of the journal, applied to either form, gives the new state.
pub fn write(
    disk: &Disk,
    layout: &Layout,
    stage: &str,
    state: &StageState,
) -> Result<Digest, ManifestError> {
    let folder = layout.at(&layout::manifest(stage));
    disk.create_dir_all(&folder)?;
    let pieces = Pieces::of(state);
    let mut existing = Vec::new();
    for found in list(&folder)? {
        let path = path(&folder, found.number);
        let bytes = bytes(&path)?;
        existing.push(Existing {
            number: found.number,
            digest: Digest::of(&bytes),
            first: page::first_piece(&path, &bytes)?,
        });
    }
    let bounds: Vec<(u64, Option<&PieceId>)> = existing
        .iter()
        .map(|page| (page.number, page.first.as_ref()))
        .collect();
    let plan = paging::plan(&pieces.sizes(), &bounds, |piece, first| {
        pieces.is_before(piece, first)
    });

    let mut hasher = Hasher::new();
    let mut changed = Vec::new();
    let make = |page| -> Result<_, ManifestError> {
        let page: &PlannedPage = page;
        let text = pieces.text(stage, state, page.pieces.clone())?;
        let before = page
            .was
            .and_then(|was| existing.iter().find(|old| old.number == was));
        let is_changed = before.is_none_or(|old| old.digest != Digest::of(&text));
        Ok((page, text, is_changed))
    };
    in_order(
        threads(plan.len()),
        &|| Box::new(make),
        |give| plan.iter().try_for_each(give),
        &mut |made: Result<(&PlannedPage, String, bool), ManifestError>| -> Result<(), ManifestError> {
            let (page, text, is_changed) = made?;
            hasher.update(&text);
            changed.extend(is_changed.then_some(page));
            Ok(())
        },
    )?;
    // From the last to the first: what moves to a later page is there before it leaves the earlier one.
    for page in plan.iter().rev() {
        if let Some(was) = page.was.filter(|was| *was != page.number) {
            disk.rename(&path(&folder, was), &path(&folder, page.number))?;
        }
    }
    for page in changed.iter().rev() {
        let text = pieces.text(stage, state, page.pieces.clone())?;
        disk.write_atomic(&path(&folder, page.number), text.as_bytes())?;
    }
    let mut removed = false;
    for old in &existing {
        let moved = plan
            .iter()
            .any(|page| page.was == Some(old.number) || page.number == old.number);
        if !moved {
            disk.remove_file(&path(&folder, old.number))?;
            removed = true;
        }
    }
    if removed {
        disk.sync_dir(&folder)?;
    }
    Ok(hasher.finish())
}

/// Removes a stage's manifest durably. Other files in its folder stay.
pub fn remove(disk: &Disk, layout: &Layout, stage: &str) -> Result<(), ManifestError> {
    let folder = layout.at(&layout::manifest(stage));
    if !folder.exists() {
        return Ok(());
    }
    let pages = list(&folder)?;
    let read = |source| ManifestError::Read {
        path: folder.clone(),
        source,
    };
    let entries = std::fs::read_dir(&folder).map_err(read)?;
    let others = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_page = pages.iter().any(|page| *page_name(page.number) == *name);
        let is_unfinished = name.starts_with(".page_") && name.ends_with(".tmp");
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

struct Existing {
    number: u64,
    digest: Digest,
    first: Option<PieceId>,
}

/// A page as the folder lists it; two equal listings with nothing written in between hold equal pages.
#[derive(PartialEq, Eq)]
struct Listed {
    number: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

fn path(folder: &Path, page: u64) -> PathBuf {
    folder.join(page_name(page))
}

fn page_name(page: u64) -> String {
    format!("page_{page:04}.sha256")
}

fn bytes(path: &Path) -> Result<Vec<u8>, ManifestError> {
    read::bytes(path).map_err(|source| ManifestError::Read {
        path: path.to_owned(),
        source,
    })
}

/// The pages in a folder, in order.
fn list(folder: &Path) -> Result<Vec<Listed>, ManifestError> {
    let fail = |source| ManifestError::Read {
        path: folder.to_owned(),
        source,
    };
    let mut pages = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(pages),
        Err(cause) => return Err(fail(cause)),
    };
    for entry in entries {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| {
            let digits = name.strip_prefix("page_")?.strip_suffix(".sha256")?;
            let plain = digits.len() >= 4 && digits.bytes().all(|b| b.is_ascii_digit());
            digits.parse::<u64>().ok().filter(|_| plain)
        });
        let Some(number) = number else { continue };
        match entry.metadata() {
            Ok(found) => pages.push(Listed {
                number,
                inode: found.ino(),
                size: found.len(),
                changed: (found.ctime(), found.ctime_nsec()),
            }),
            // Removed or renamed by a run in this moment: the listing after will differ.
            Err(cause) if cause.kind() == ErrorKind::NotFound => {}
            Err(cause) => return Err(fail(cause)),
        }
    }
    pages.sort_by_key(|page| page.number);
    Ok(pages)
}

/// Returns on how many threads so many pages are read or written.
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
