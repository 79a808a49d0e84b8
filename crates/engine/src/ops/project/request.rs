//! What every operation is called with: the project, the workspace, the values, and the world around them.

use jiff::Timestamp;
use milepost_core::base::clock::Clock;
use milepost_core::plan::options::Values;
use milepost_store::store::clock::{Ahead, SystemClock};
use milepost_store::store::disk::Disk;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Which project and workspace, and what is set for them.
#[derive(Clone)]
pub struct Request {
    /// Where to look for the project: here, then in the folders above.
    pub folder: PathBuf,
    /// The workspace; by default `workspace` in the project.
    pub workspace: Option<PathBuf>,
    /// Values that replace declared ones.
    pub values: Values,
    /// What the user called, for the journal and the lock.
    pub command: String,
    /// The environment of this process.
    pub environment: BTreeMap<String, String>,
    /// The moment of `SOURCE_DATE_EPOCH`: files bear it in the place of the time of day.
    pub epoch: Option<Timestamp>,
    /// The one writer.
    pub disk: Disk,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// The time that the ages of files are told by.
    pub ahead: Ahead,
    /// The version of Milepost.
    pub version: String,
    /// Whether files that `set` names must lie in the project or the workspace: whoever asks is a program.
    pub confined: bool,
}

impl Request {
    /// The project at or above a folder, on this machine's disk and by its clock. In debug builds the variable
    /// `MILEPOST_STOP_AT` ends the process at that change of the disk, for crash tests, and `MILEPOST_AHEAD` makes files so many
    /// seconds older than they are, for tests of what is only done with files that were left alone.
    pub fn new(folder: PathBuf, environment: BTreeMap<String, String>) -> Self {
        let stop_at = environment.get("MILEPOST_STOP_AT").map(String::as_str);
        Self {
            folder,
            workspace: None,
            values: Values::default(),
            command: "milepost".to_owned(),
            epoch: None,
            disk: Disk::from_setting(stop_at),
            clock: Arc::new(SystemClock),
            ahead: Ahead::from_setting(environment.get("MILEPOST_AHEAD").map(String::as_str)),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            confined: false,
            environment,
        }
    }

    /// Returns the moment that files bear: that of `SOURCE_DATE_EPOCH`, else the time of day.
    pub(crate) fn now(&self) -> Timestamp {
        self.epoch.unwrap_or_else(|| self.clock.now())
    }
}
