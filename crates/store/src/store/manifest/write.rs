//! Writes the manifest of a stage.

use super::page::{self, PieceId, Pieces};
use super::paging::{self, PlannedPage};
use super::text::PAGE_LINES;
use super::{ManifestError, bytes, digest_of, list, path, threads};
use crate::store::disk::Disk;
use crate::store::layout::{self, Layout};
use milepost_core::base::digest::Digest;
use milepost_core::base::in_order::in_order;
use milepost_core::model::state::{ManifestPage, StageState};
use milepost_core::model::totals::BatchTotals;
use std::ops::Range;
use std::path::Path;

/// A manifest as it was written.
pub struct WrittenManifest {
    pub digest: Digest,
    /// The pages with the totals of their batches; an empty manifest has one.
    pub pages: Vec<ManifestPage>,
    /// True if no page can be read alone: the outputs of a batch are on several, or a batch is on another page than its place.
    pub is_split: bool,
}

impl WrittenManifest {
    pub(super) fn of(pages: Vec<ManifestPage>, pieces: &Pieces<'_>) -> Self {
        let digests = pages.iter().map(|page| (page.number, page.digest));
        let digests: Vec<_> = digests.collect();
        Self {
            digest: digest_of(&digests),
            pages,
            is_split: pieces.are_split(0..pieces.len()),
        }
    }

    /// Returns the totals of all batches.
    pub fn totals(&self) -> BatchTotals {
        BatchTotals::of_pages(self.pages.iter().map(|page| &page.totals))
    }
}

pub(super) fn described(
    pieces: &Pieces<'_>,
    number: u64,
    digest: Digest,
    range: Range<usize>,
) -> ManifestPage {
    let first = range.clone().next().map(|piece| pieces.key(piece));
    ManifestPage {
        number,
        first: first.unwrap_or_default().to_owned(),
        digest,
        totals: pieces.totals(range),
        is_read: false,
    }
}

/// Writes the part of the state that [`kept`] returns, and returns its pages. Only pages whose bytes differ are
/// written, each atomically and durably. If the process is killed in between, each batch of both the old and the new state is in
/// some page, in its old or new form; the journal's records since its last seal, applied to either form, gives the new state.
///
/// # Errors
/// Fails if the disk fails, and with [`ManifestError::Moving`] if the state lacks pages and its batches do not fit the others.
pub fn write(
    disk: &Disk,
    layout: &Layout,
    stage: &str,
    state: &StageState,
) -> Result<WrittenManifest, ManifestError> {
    let folder = layout.at(&layout::manifest(stage));
    if !state.pages.is_empty() {
        return write_read(disk, &folder, stage, state);
    }
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
    let bounds = existing.iter();
    let bounds = bounds.map(|page| (page.number, page.first.as_ref()));
    let bounds: Vec<(u64, Option<&PieceId>)> = bounds.collect();
    let plan = paging::plan(&pieces.sizes(), &bounds, |piece, first| {
        pieces.is_before(piece, first)
    });

    let mut written = Vec::with_capacity(plan.len());
    let mut changed = Vec::new();
    let make = |page| -> Result<_, ManifestError> {
        let page: &PlannedPage = page;
        let digest = Digest::of(pieces.text(stage, state, page.pieces.clone())?);
        let before = page
            .was
            .and_then(|was| existing.iter().find(|old| old.number == was));
        let is_changed = before.is_none_or(|old| old.digest != digest);
        let described = described(&pieces, page.number, digest, page.pieces.clone());
        Ok((page, described, is_changed))
    };
    in_order(
        threads(plan.len()),
        &|| Box::new(make),
        |give| plan.iter().try_for_each(give),
        &mut |made: Result<(&PlannedPage, ManifestPage, bool), ManifestError>| -> Result<(), ManifestError> {
            let (page, described, is_changed) = made?;
            written.push(described);
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
        let is_old = |page: &PlannedPage| page.was == Some(old.number) || page.number == old.number;
        if !plan.iter().any(is_old) {
            disk.remove_file(&path(&folder, old.number))?;
            removed = true;
        }
    }
    if removed {
        disk.sync_dir(&folder)?;
    }
    Ok(WrittenManifest::of(written, &pieces))
}

struct Existing {
    number: u64,
    digest: Digest,
    first: Option<PieceId>,
}

/// Writes the pages of a state that were read. The others stay as they are.
fn write_read(
    disk: &Disk,
    folder: &Path,
    stage: &str,
    state: &StageState,
) -> Result<WrittenManifest, ManifestError> {
    let pieces = Pieces::of(state);
    let moving = || ManifestError::Moving {
        path: folder.to_owned(),
    };
    let (mut written, mut from) = (Vec::with_capacity(state.pages.len()), 0);
    for (place, page) in state.pages.iter().enumerate() {
        let is_here = |piece: &usize| state.page_of(pieces.key(*piece)) == Some(place);
        let upto = from + (from..pieces.len()).take_while(is_here).count();
        let range = from..upto;
        from = upto;
        if !page.is_read {
            if !range.is_empty() {
                return Err(moving());
            }
            written.push(page.clone());
            continue;
        }
        if range.is_empty() || pieces.lines(range.clone()) > PAGE_LINES {
            return Err(moving());
        }
        let text = pieces.text(stage, state, range.clone())?;
        let digest = Digest::of(&text);
        if digest != page.digest {
            disk.write_atomic(&path(folder, page.number), text.as_bytes())?;
        }
        written.push(ManifestPage {
            is_read: true,
            ..described(&pieces, page.number, digest, range)
        });
    }
    if from < pieces.len() {
        return Err(moving());
    }
    Ok(WrittenManifest::of(written, &pieces))
}
