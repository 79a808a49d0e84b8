//! Writes the pages of a manifest while its stage still runs, so that records do not stay in memory until its end.

use super::page::Pieces;
use super::paging::cut;
use super::text::PAGE_LINES;
use super::write::described;
use super::{ManifestError, list, path};
use crate::store::disk::Disk;
use crate::store::layout::{self, Layout};
use milepost_core::base::digest::Digest;
use milepost_core::model::state::{ManifestPage, StageState};
use std::ops::Range;
use std::path::PathBuf;

/// A manifest that is written from its first page on, in natural order of the keys.
pub struct EarlyManifest {
    folder: PathBuf,
    stage: String,
    /// The number of the last page.
    number: u64,
    /// The last key on it.
    last: Option<String>,
}

/// A page that was written.
pub struct EarlyPage {
    pub page: ManifestPage,
    /// The keys of its batches.
    pub keys: Vec<String>,
}

impl EarlyManifest {
    /// Begins the manifest of a stage; `None` if it has pages.
    ///
    /// # Errors
    /// If its folder cannot be read.
    pub fn begin(layout: &Layout, stage: &str) -> Result<Option<Self>, ManifestError> {
        let folder = layout.at(&layout::manifest(stage));
        let is_new = list(&folder)?.is_empty();
        Ok(is_new.then(|| Self {
            folder,
            stage: stage.to_owned(),
            number: 0,
            last: None,
        }))
    }

    /// Writes the batches of a state whose keys come after those on the last page: full pages, and with `is_last` the rest too. The
    /// journal must have them. `None` if the outputs of a batch need more than a page: the manifest is written at the end then.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn write(
        &mut self,
        disk: &Disk,
        state: &StageState,
        is_last: bool,
    ) -> Result<Option<Vec<EarlyPage>>, ManifestError> {
        let pieces = Pieces::of(state);
        let rest = pieces.after(self.last.as_deref());
        if pieces.are_split(rest.clone()) {
            return Ok(None);
        }
        let mut cut = cut(&pieces.sizes(), rest, PAGE_LINES);
        if !is_last || cut.last().is_some_and(Range::is_empty) {
            cut.pop();
        }
        let mut written = Vec::with_capacity(cut.len());
        disk.create_dir_all(&self.folder)?;
        for range in cut {
            let text = pieces.text(&self.stage, state, range.clone())?;
            let number = self.number + 1;
            disk.write_atomic(&path(&self.folder, number), text.as_bytes())?;
            let keys = range.clone().map(|piece| pieces.key(piece).to_owned());
            let keys: Vec<String> = keys.collect();
            (self.number, self.last) = (number, keys.last().cloned());
            let page = described(&pieces, number, Digest::of(&text), range);
            written.push(EarlyPage { page, keys });
        }
        Ok(Some(written))
    }
}
