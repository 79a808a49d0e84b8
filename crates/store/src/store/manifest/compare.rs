//! Compares the pages of a manifest with a state.

use super::keys::key;
use super::page::{self, Pieces};
use super::text;
use super::write::{WrittenManifest, described};
use super::{Listed, ManifestError, bytes, path, steady};
use crate::store::layout::{self, Layout};
use milepost_core::base::digest::Digest;
use milepost_core::model::state::StageState;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

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
        let pieces = Pieces::of(state);
        let mut changed = Vec::new();
        for page in existing(&folder, pages, &pieces)? {
            let written = pieces.text(stage, state, page.pieces)?;
            let earlier = || text::without_digest(&written);
            if Digest::of(&written) != page.digest && Digest::of(earlier()) != page.digest {
                changed.push(path(&folder, page.number));
            }
        }
        Ok(changed)
    })
}

/// Returns the pages of a stage's manifest, with the totals of the batches in this state.
///
/// # Errors
/// Fails if a page cannot be read.
pub fn pages(
    layout: &Layout,
    stage: &str,
    state: &StageState,
) -> Result<WrittenManifest, ManifestError> {
    let folder = layout.at(&layout::manifest(stage));
    steady(&folder, |pages| {
        let pieces = Pieces::of(state);
        let mut written = Vec::with_capacity(pages.len());
        let mut is_split = false;
        for page in existing(&folder, pages, &pieces)? {
            let path = path(&folder, page.number);
            let bytes = bytes(&path)?;
            let lines = text::lines(&path, &bytes)?;
            let there: BTreeSet<String> = lines.filter_map(|(_, line)| key(line)).collect();
            let here = page.pieces.clone().map(|piece| pieces.key(piece));
            is_split |= !there
                .iter()
                .map(String::as_str)
                .eq(here.collect::<BTreeSet<_>>());
            written.push(described(&pieces, page.number, page.digest, page.pieces));
        }
        let mut written = WrittenManifest::of(written, &pieces);
        written.is_split |= is_split;
        Ok(written)
    })
}

/// A page on the disk, and the pieces of a state that belong on it.
struct ExistingPage {
    number: u64,
    digest: Digest,
    pieces: Range<usize>,
}

fn existing(
    folder: &Path,
    pages: &[Listed],
    pieces: &Pieces<'_>,
) -> Result<Vec<ExistingPage>, ManifestError> {
    let mut found = Vec::with_capacity(pages.len());
    for page in pages {
        let path = path(folder, page.number);
        let bytes = bytes(&path)?;
        let first = page::first_piece(&path, &bytes).ok().flatten();
        found.push((page.number, Digest::of(bytes), first));
    }
    let all = pieces.len();
    let (mut existing, mut from) = (Vec::with_capacity(found.len()), 0);
    for (at, (number, digest, _)) in found.iter().enumerate() {
        let next = found[at + 1..].iter().find_map(|page| page.2.as_ref());
        let is_here = |piece: &usize| next.is_none_or(|first| pieces.is_before(*piece, first));
        let upto = from + (from..all).take_while(is_here).count();
        existing.push(ExistingPage {
            number: *number,
            digest: *digest,
            pieces: from..upto,
        });
        from = upto;
    }
    Ok(existing)
}
