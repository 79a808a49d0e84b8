//! What every part of a run needs: the declarations, the settings, the disk, the clock.

pub(crate) use crate::steps::calls::Pace;
use jiff::Timestamp;
use milepost_core::base::clock::Clock;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::base::redact::Redactor;
use milepost_core::model::pipeline::Pipeline;
use milepost_core::plan::settings::Settings;
use milepost_store::store::disk::Disk;
use milepost_store::store::files::Files;
use milepost_store::store::layout::Layout;
use milepost_store::store::statcache::StatCache;
use milepost_store::store::up_to_date::Observations;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What every part of a run needs.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The declarations.
    pub(crate) pipeline: &'a Pipeline,
    /// The values that the run goes by.
    pub(crate) settings: &'a Settings,
    /// Reading, confined to the project and the workspace.
    pub(crate) files: &'a Files,
    /// Where things lie in the workspace.
    pub(crate) layout: &'a Layout,
    /// The one writer.
    pub(crate) disk: &'a Disk,
    /// The time of day.
    pub(crate) clock: &'a dyn Clock,
    /// The moment of `SOURCE_DATE_EPOCH`.
    pub(crate) epoch: Option<Timestamp>,
    /// Digests of files that have not changed since they were last read.
    pub(crate) cache: &'a StatCache,
    /// Notes of what is asked of the disk.
    pub(crate) asked: &'a Observations,
    /// Takes keys out of what is shown and kept.
    pub(crate) redactor: &'a Redactor,
    /// The variables that every program gets: `PATH`, `HOME`, `LANG`.
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// When provider batches are submitted and polled.
    pub(crate) pace: Pace,
    /// Files from outside that are to be copied into the workspace, by where they go: a plan takes them as if they were there.
    pub(crate) imports: &'a BTreeMap<RelPath, PathBuf>,
}

impl Context<'_> {
    /// Returns the moment that files bear: that of `SOURCE_DATE_EPOCH`, else the time of day.
    pub(crate) fn moment(&self) -> Timestamp {
        self.epoch.unwrap_or_else(|| self.clock.now())
    }

    /// The digest of a file where its stamp alone tells it: nothing is read, and no link is looked for.
    pub(crate) fn cached(&self, file: &FilePath) -> Option<Digest> {
        if file.root == Root::Workspace && self.imports.contains_key(&file.path) {
            return None;
        }
        let path = self.files.folder(file.root).join(file.path.as_str());
        self.cache.cached(&path).map(|seen| seen.digest)
    }
}
