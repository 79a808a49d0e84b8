//! The arguments that all operations share: project, workspace, values and environment.

use crate::ops::run::reported::ReportedChanges;
use jiff::Timestamp;
use milepost_core::base::clock::Clock;
use milepost_core::base::digest::Digest;
use milepost_core::decl::Problems;
use milepost_core::plan::options::Values;
use milepost_core::plan::options::invocation::Invocation;
use milepost_store::store::clock::{ShiftedClock, SystemClock};
use milepost_store::store::disk::Disk;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// Receives the mistakes in the declarations.
pub(crate) type WarnOfProblems = Arc<dyn Fn(&Problems) + Send + Sync>;

/// A project, a workspace, and the values and environment to use.
#[derive(Clone)]
pub struct Request {
    /// The folder of the project, or one below it.
    pub folder: PathBuf,
    /// The workspace; `None` for `workspace` in the project.
    pub workspace: Option<PathBuf>,
    /// The values of `--set`, `--unset` and `--agent`.
    pub values: Values,
    /// The command as the user typed it, for the journal and the lock.
    pub command: String,
    /// How the program was called, for suggested commands.
    pub invocation: Invocation,
    /// The environment of this process.
    pub environment: BTreeMap<String, String>,
    /// The variables of this process whose values are not UTF-8; a project that uses one of them does not open.
    pub not_utf8: BTreeSet<String>,
    /// The time of `SOURCE_DATE_EPOCH`, written to files instead of the present time.
    pub epoch: Option<Timestamp>,
    /// Writes to the disk.
    pub disk: Disk,
    /// Tells the present time.
    pub clock: Arc<dyn Clock>,
    /// Tells how old files are.
    pub ahead: ShiftedClock,
    /// The version of Milepost, part of fingerprints.
    pub version: String,
    /// The path of this program, which jobs on other machines start; `None` if it is unknown.
    pub program: Option<String>,
    /// True if files that `--set` names must be inside project or workspace, because a program asks.
    pub confined: bool,
    /// The changes that the system reported to a watch of the workspace; `None` if no watch is running.
    pub reported: Option<Arc<ReportedChanges>>,
    /// The digest of the plan that a person was shown: a run begins only if it does exactly that.
    pub shown: Option<Digest>,
    /// Called with the mistakes in the declarations by operations that show what is recorded all the same.
    pub warn: Option<WarnOfProblems>,
}

impl Request {
    /// Creates a request with the real disk and clock. In debug builds, for crash tests, the variable `MILEPOST_STOP_AT` ends the process
    /// at this change of the disk, and `MILEPOST_AHEAD` makes files older by this number of seconds.
    pub fn new(folder: PathBuf, environment: BTreeMap<String, String>) -> Self {
        let stop_at = environment.get("MILEPOST_STOP_AT").map(String::as_str);
        Self {
            folder,
            workspace: None,
            values: Values::default(),
            command: "milepost".to_owned(),
            invocation: Invocation::default(),
            epoch: None,
            disk: Disk::from_setting(stop_at),
            clock: Arc::new(SystemClock),
            ahead: ShiftedClock::from_setting(
                environment.get("MILEPOST_AHEAD").map(String::as_str),
            ),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            program: None,
            confined: false,
            reported: None,
            shown: None,
            warn: None,
            not_utf8: BTreeSet::new(),
            environment,
        }
    }

    /// Returns the name of the person that a change is recorded under: as given, or the user of this process.
    pub(crate) fn person(&self, given: Option<&str>) -> String {
        let user = self.environment.get("USER").map(String::as_str);
        given.or(user).unwrap_or("unknown").to_owned()
    }

    /// Returns the time to write to files: that of `SOURCE_DATE_EPOCH`, or the present time.
    pub(crate) fn now(&self) -> Timestamp {
        self.epoch.unwrap_or_else(|| self.clock.now())
    }
}
