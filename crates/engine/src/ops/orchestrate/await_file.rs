//! Waits for a file that another process writes: until it exists, is stable, matches its schema, and has its marker.

use crate::ops::orchestrate::declared_file::{Declared, declared};
use crate::ops::orchestrate::elements::{self, Summary};
use crate::ops::project::client_path::client_path;
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::Snapshot;
use crate::ops::run::{StopFlag, Stopwatch};
use crate::run::check::validate;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::{FilePath, Root};
use milepost_core::base::source::Source;
use milepost_core::model::state::StageState;
use milepost_store::check::schemas::Schemas;
use milepost_store::store::files::{FileError, digest_of};
use milepost_store::store::stamp::FileStamp;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// Which file to wait for, and how long.
#[derive(Debug, Clone)]
pub struct AwaitOptions {
    /// The file, by the client's path.
    pub(crate) path: String,
    /// The longest wait.
    pub(crate) timeout: Duration,
    /// How often progress is reported.
    pub(crate) poll: Duration,
    /// The time between two checks of the file.
    pub(crate) interval: Duration,
    /// How long the file must be unchanged.
    pub(crate) stable: Duration,
}

impl AwaitOptions {
    /// Starts with progress every 5 s, a check every 0.2 s, and a file that must be unchanged for 1 s.
    pub fn new(path: String, timeout: Duration) -> Self {
        Self {
            path,
            timeout,
            poll: Duration::from_secs(5),
            interval: Duration::from_millis(200),
            stable: Duration::from_secs(1),
        }
    }
}

/// The outcome of a wait.
#[derive(Debug, Clone, PartialEq)]
pub enum WaitOutcome {
    /// The file is complete.
    Complete(Box<CompleteFile>),
    /// The time is over.
    Timeout(Incomplete),
    /// The wait was cancelled.
    Stopped,
}

/// A complete file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct CompleteFile {
    /// The path in the workspace.
    pub(crate) output_file: String,
    /// The absolute path.
    pub path: String,
    /// The size in bytes.
    pub(crate) bytes: u64,
    /// The SHA-256 digest.
    pub(crate) digest: Digest,
    /// The stage that builds the file or waits for it; `None` if none is declared.
    pub(crate) stage: Option<String>,
    /// The batch; empty for the only one.
    pub(crate) batch: Option<String>,
    /// The schema that it matches; `None` if none is declared, and the file is only checked to be JSON if its name ends so.
    pub(crate) schema: Option<String>,
    /// The marker; `None` if none is declared.
    pub(crate) marker: Option<String>,
    /// True if a run recorded this content.
    pub(crate) recorded: bool,
    /// The number of elements; `None` if it is not a list of elements.
    pub(crate) element_count: Option<u64>,
    /// The elements by type.
    pub(crate) summary: Option<Summary>,
}

/// Why a file is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incomplete {
    /// The path in the workspace.
    pub output_file: String,
    /// The reason in one word.
    pub lack: WhyIncomplete,
    /// The stage that declares a marker for the file, if the marker is missing.
    pub stage: Option<String>,
    /// The missing marker; `None` if the batch of the file is not known.
    pub marker: Option<String>,
    /// The violations in the file, with JSON pointers.
    pub violations: Vec<String>,
}

/// Why a file is not complete, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WhyIncomplete {
    /// It does not exist.
    Absent,
    /// It changed within the last second.
    Changing,
    /// It does not match its schema, or is not JSON.
    Invalid,
    /// Its marker does not exist.
    Marker,
}

/// The observations of the file so far.
#[derive(Default)]
struct FileWatch {
    /// The stamp, and since when it is unchanged.
    stamp: Option<(FileStamp, Duration)>,
    /// The problem with the file at this stamp.
    invalid: Option<(FileStamp, Incomplete)>,
}

/// A wait for a file. It holds no thread: the caller asks it again after each pause. Nothing is written.
pub struct FileWait {
    opened: OpenProject,
    file: FilePath,
    options: AwaitOptions,
    watch: Stopwatch,
    reported: Option<Duration>,
    seen: FileWatch,
}

/// The result of checking the file once.
#[derive(Debug)]
pub enum WaitStep {
    /// The wait is over.
    Over(WaitOutcome),
    /// The file is not complete. The next check is due after this pause.
    Pause(Duration),
}

impl FileWait {
    /// Begins to wait for a file.
    ///
    /// # Errors
    /// When there is no project, its declarations are wrong, or the path leaves it.
    pub fn begin(request: &Request, options: AwaitOptions) -> Result<Self, OpsError> {
        let opened = open(request)?;
        let file = client_path(&opened, &options.path)?;
        Ok(Self {
            opened,
            file,
            options,
            watch: Stopwatch::start(),
            reported: None,
            seen: FileWatch::default(),
        })
    }

    /// Looks at the file once. Calls `report` now and then with the time waited and what is missing.
    ///
    /// # Errors
    /// When the file or the state of the workspace cannot be read.
    pub fn check(
        &mut self,
        report: &mut dyn FnMut(Duration, &Incomplete),
        stop: &StopFlag,
    ) -> Result<WaitStep, OpsError> {
        let Self {
            opened,
            file,
            options,
            watch,
            reported,
            seen,
        } = self;
        let now = watch.elapsed();
        let incomplete = match check(opened, file, options, now, seen)? {
            Ok(complete) => return Ok(WaitStep::Over(WaitOutcome::Complete(Box::new(complete)))),
            Err(incomplete) => incomplete,
        };
        if stop.is_set() {
            return Ok(WaitStep::Over(WaitOutcome::Stopped));
        }
        if now >= options.timeout {
            return Ok(WaitStep::Over(WaitOutcome::Timeout(incomplete)));
        }
        if reported.is_none_or(|before| now >= before + options.poll) {
            *reported = Some(now);
            report(now, &incomplete);
        }
        // The last check is when the time is over.
        let left = options.timeout.saturating_sub(now);
        let pause = options.interval.min(options.stable).min(left);
        Ok(WaitStep::Pause(pause.max(Duration::from_millis(1))))
    }
}

fn check(
    opened: &OpenProject,
    file: &FilePath,
    options: &AwaitOptions,
    now: Duration,
    seen: &mut FileWatch,
) -> Result<Result<CompleteFile, Incomplete>, OpsError> {
    let incomplete = |lack: WhyIncomplete| Incomplete {
        output_file: file.to_string(),
        lack,
        stage: None,
        marker: None,
        violations: Vec::new(),
    };
    let Some((source, stamp)) = find(opened, file)? else {
        *seen = FileWatch::default();
        return Ok(Err(incomplete(WhyIncomplete::Absent)));
    };
    let since = match seen.stamp {
        Some((before, since)) if before == stamp => since,
        _ => now,
    };
    seen.stamp = Some((stamp, since));
    if now < since + options.stable {
        return Ok(Err(incomplete(WhyIncomplete::Changing)));
    }
    if let Some((_, known)) = seen.invalid.as_ref().filter(|(before, _)| *before == stamp) {
        return Ok(Err(known.clone()));
    }
    let found = match file.root {
        Root::Workspace => declared(opened, &file.path)?,
        Root::Project => None,
    };
    if let Some(violations) = invalid(&*source, found.as_ref()) {
        let known = Incomplete {
            violations,
            ..incomplete(WhyIncomplete::Invalid)
        };
        seen.invalid = Some((stamp, known.clone()));
        return Ok(Err(known));
    }
    if let Some(found) = found.as_ref().filter(|found| is_unmarked(opened, found)) {
        return Ok(Err(Incomplete {
            stage: Some(found.stage.name.clone()),
            marker: found.marker.as_ref().map(ToString::to_string),
            ..incomplete(WhyIncomplete::Marker)
        }));
    }
    let digest = digest_of(source.path()).map_err(OpsError::unreadable(&file))?;
    // The digest counts only if the stamp is still the one that was validated.
    let after = find(opened, file)?.map(|(_, stamp)| stamp);
    match digest.filter(|_| after == Some(stamp)) {
        Some((digest, bytes)) => complete(opened, file, found, &*source, (digest, bytes)).map(Ok),
        None => {
            *seen = FileWatch::default();
            Ok(Err(incomplete(WhyIncomplete::Changing)))
        }
    }
}

fn complete(
    opened: &OpenProject,
    file: &FilePath,
    found: Option<Declared<'_>>,
    source: &dyn Source,
    (digest, bytes): (Digest, u64),
) -> Result<CompleteFile, OpsError> {
    let present = Snapshot::read(&opened.workspace.layout)?;
    let mut recorded = present.state.stages.values().flat_map(StageState::outputs);
    let recorded = file.root == Root::Workspace
        && recorded.any(|(_, made)| made.path == file.path && made.digest == digest);
    let elements = source.open().ok().and_then(elements::elements);
    let (element_count, summary) = elements.unzip();
    let found = found.as_ref();
    Ok(CompleteFile {
        output_file: file.to_string(),
        path: source.path().display().to_string(),
        bytes,
        digest,
        stage: found.map(|found| found.stage.name.clone()),
        batch: found.and_then(|found| found.batch.clone()),
        schema: found
            .and_then(|found| found.schema)
            .map(|schema| schema.path.to_string()),
        marker: found
            .and_then(|found| found.marker.as_ref())
            .map(ToString::to_string),
        recorded,
        element_count,
        summary,
    })
}

/// Returns the file and its stamp; `None` if it does not exist.
#[expect(clippy::type_complexity)]
fn find(
    opened: &OpenProject,
    file: &FilePath,
) -> Result<Option<(Arc<dyn Source>, FileStamp)>, OpsError> {
    let source = match opened.files.source(file) {
        Ok(source) => source,
        Err(FileError::Missing { .. }) => return Ok(None),
        Err(error @ FileError::Leaves { .. }) => {
            return Err(OpsError::Outside(error.to_string()));
        }
        Err(error) => return Err(OpsError::World(error.to_string())),
    };
    match std::fs::metadata(source.path()) {
        Ok(found) => Ok(Some((source, FileStamp::of(&found)))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(OpsError::unreadable(&file)(error)),
    }
}

/// Returns what is wrong with the file by its schema, or as JSON if it has no schema and its name ends in `.json`.
fn invalid(source: &dyn Source, found: Option<&Declared<'_>>) -> Option<Vec<String>> {
    if let Some((found, schema)) = found.and_then(|found| Some((found, found.schema?))) {
        let judged = validate::file(&Schemas::default(), schema, source, found.stream, 1);
        let outcome = judged.err()?;
        let all = std::iter::once(outcome.message).chain(outcome.details);
        return Some(all.collect());
    }
    let is_json = source
        .path()
        .extension()
        .is_some_and(|ending| ending == "json");
    let opened = source.open().ok().filter(|_| is_json)?;
    Some(vec![elements::not_json(opened)?])
}

/// Returns true if the file has a declared marker that does not exist.
fn is_unmarked(opened: &OpenProject, found: &Declared<'_>) -> bool {
    let layout = &opened.workspace.layout;
    let marker = found.marker.as_ref();
    found.marked && !marker.is_some_and(|marker| layout.at(marker).is_file())
}
