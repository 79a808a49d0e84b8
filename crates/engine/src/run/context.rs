//! The context of a run: declarations, settings, disk, clock.

pub(crate) use crate::steps::calls::Pace;
pub(crate) use crate::steps::command::{ATTEMPT_VARIABLE, find_program};
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

/// The context of a run.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub(crate) pipeline: &'a Pipeline,
    /// The values of parameters and the environment.
    pub(crate) settings: &'a Settings,
    /// Reads files of the project and the workspace only.
    pub(crate) files: &'a Files,
    /// The paths in the workspace.
    pub(crate) layout: &'a Layout,
    /// The only writer of the disk.
    pub(crate) disk: &'a Disk,
    pub(crate) clock: &'a dyn Clock,
    /// The time of `SOURCE_DATE_EPOCH`, if set.
    pub(crate) epoch: Option<Timestamp>,
    /// Cached digests of unchanged files.
    pub(crate) cache: &'a StatCache,
    /// Records what a run observes of the disk, for the next up-to-date check.
    pub(crate) asked: &'a Observations,
    /// Removes API keys from what is shown and kept.
    pub(crate) redactor: &'a Redactor,
    /// The environment of every program: `PATH`, `HOME`, `LANG`.
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// The environment of this process, for the commands of schedulers.
    pub(crate) own_environment: &'a BTreeMap<String, String>,
    /// The path of this program; `None` if it is unknown.
    pub(crate) program: Option<&'a str>,
    /// When provider batches are submitted and polled.
    pub(crate) pace: Pace,
    /// Files that a run copies into the workspace, by their target: a plan uses them as if they were there.
    pub(crate) imports: &'a BTreeMap<RelPath, PathBuf>,
}

impl Context<'_> {
    /// Returns the time of the run: `SOURCE_DATE_EPOCH` if set, otherwise the time of day.
    pub(crate) fn moment(&self) -> Timestamp {
        self.epoch.unwrap_or_else(|| self.clock.now())
    }

    /// Returns the digest of a file if its stamp proves it, without reading the file or checking for links.
    pub(crate) fn cached(&self, file: &FilePath) -> Option<Digest> {
        let is_import = file.root == Root::Workspace && self.imports.contains_key(&file.path);
        if is_import || self.files.is_redirected(file) {
            return None;
        }
        let path = self.files.folder(file.root).join(file.path.as_str());
        self.cache.cached(&path).map(|seen| seen.digest)
    }
}
