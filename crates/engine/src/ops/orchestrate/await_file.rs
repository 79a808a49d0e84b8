//! Waits for a file that another process writes: until it exists, is stable, matches its schema, and has its marker.

use crate::ops::orchestrate::content::{self, Summary};
use crate::ops::orchestrate::declared::{Declared, declared};
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
use serde::Serialize;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
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
    /// How often the file system is asked.
    pub(crate) look: Duration,
    /// How long the file must be unchanged.
    pub(crate) stable: Duration,
}

impl AwaitOptions {
    /// Starts with progress every 5 s, a look every 0.2 s, and a file that must be unchanged for 1 s.
    pub fn new(path: String, timeout: Duration) -> Self {
        Self {
            path,
            timeout,
            poll: Duration::from_secs(5),
            look: Duration::from_millis(200),
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Incomplete {
    /// The path in the workspace.
    pub output_file: String,
    /// The reason in one word.
    pub lack: WhyIncomplete,
    /// The reason in a sentence.
    pub why: String,
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

/// What changes when a process writes a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

/// The observations of the file so far.
#[derive(Default)]
struct FileWatch {
    /// The stamp, and since when it is unchanged.
    stamp: Option<(FileStamp, Duration)>,
    /// What was wrong with the file at this stamp.
    invalid: Option<(FileStamp, Incomplete)>,
}

/// Waits for a file. Calls `tell` now and then with the time waited and what is missing. Nothing is written.
///
/// # Errors
/// When there is no project, its declarations are wrong, or the path leaves it.
pub fn await_file(
    request: &Request,
    wanted: &AwaitOptions,
    tell: &mut dyn FnMut(Duration, &Incomplete),
    stop: &StopFlag,
) -> Result<WaitOutcome, OpsError> {
    let opened = open(request)?;
    let file = client_path(&opened, &wanted.path)?;
    let watch = Stopwatch::start();
    let mut told = None;
    let mut seen = FileWatch::default();
    loop {
        let now = watch.elapsed();
        let lacking = match look(&opened, &file, wanted, now, &mut seen)? {
            Ok(arrived) => return Ok(WaitOutcome::Complete(Box::new(arrived))),
            Err(lacking) => lacking,
        };
        if stop.is_set() {
            return Ok(WaitOutcome::Stopped);
        }
        if now >= wanted.timeout {
            return Ok(WaitOutcome::Timeout(lacking));
        }
        if told.is_none_or(|told| now >= told + wanted.poll) {
            told = Some(now);
            tell(now, &lacking);
        }
        // The last look is when the time is over.
        let left = wanted.timeout.saturating_sub(now);
        let pause = wanted.look.min(wanted.stable).min(left);
        stop.pause(pause.max(Duration::from_millis(1)));
    }
}

fn look(
    opened: &OpenProject,
    file: &FilePath,
    wanted: &AwaitOptions,
    now: Duration,
    seen: &mut FileWatch,
) -> Result<Result<CompleteFile, Incomplete>, OpsError> {
    let lacking = |lack: WhyIncomplete, why: String| Incomplete {
        output_file: file.to_string(),
        lack,
        why,
        violations: Vec::new(),
    };
    let absent = || lacking(WhyIncomplete::Absent, format!("`{file}` is not there"));
    let Some((source, stamp)) = find(opened, file)? else {
        *seen = FileWatch::default();
        return Ok(Err(absent()));
    };
    let since = match seen.stamp {
        Some((before, since)) if before == stamp => since,
        _ => now,
    };
    seen.stamp = Some((stamp, since));
    let changing = || {
        let why = format!("`{file}` is being written, or was a moment ago");
        lacking(WhyIncomplete::Changing, why)
    };
    if now < since + wanted.stable {
        return Ok(Err(changing()));
    }
    if let Some((_, known)) = seen.invalid.as_ref().filter(|(before, _)| *before == stamp) {
        return Ok(Err(known.clone()));
    }
    let found = match file.root {
        Root::Workspace => declared(opened, &file.path)?,
        Root::Project => None,
    };
    if let Some(violations) = invalid(&*source, found.as_ref()) {
        let why = violations
            .first()
            .map_or_else(String::new, |first| format!("`{file}` {first}"));
        let known = Incomplete {
            violations,
            ..lacking(WhyIncomplete::Invalid, why)
        };
        seen.invalid = Some((stamp, known.clone()));
        return Ok(Err(known));
    }
    if let Some(why) = found.as_ref().and_then(|found| unmarked(opened, found)) {
        return Ok(Err(lacking(
            WhyIncomplete::Marker,
            format!("`{file}` {why}"),
        )));
    }
    let digest = digest_of(source.path())
        .map_err(|error| OpsError::World(format!("cannot read `{file}`: {error}")))?;
    // The digest counts only if the stamp is still the one that was validated.
    let after = find(opened, file)?.map(|(_, stamp)| stamp);
    match digest.filter(|_| after == Some(stamp)) {
        Some((digest, bytes)) => arrived(opened, file, found, &*source, (digest, bytes)).map(Ok),
        None => {
            *seen = FileWatch::default();
            Ok(Err(changing()))
        }
    }
}

fn arrived(
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
    let elements = source.open().ok().and_then(content::elements);
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
        Ok(found) => Ok(Some((source, stamp(&found)))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(OpsError::World(format!("cannot read `{file}`: {error}"))),
    }
}

fn stamp(found: &Metadata) -> FileStamp {
    FileStamp {
        inode: found.ino(),
        size: found.size(),
        modified: (found.mtime(), found.mtime_nsec()),
    }
}

/// Returns what is wrong with the file by its schema, or as JSON if it has no schema and its name ends in `.json`.
fn invalid(source: &dyn Source, found: Option<&Declared<'_>>) -> Option<Vec<String>> {
    if let Some((found, schema)) = found.and_then(|found| Some((found, found.schema?))) {
        let judged = validate::file(&Schemas::default(), schema, source, found.stream);
        let outcome = judged.err()?;
        let all = std::iter::once(outcome.message).chain(outcome.details);
        return Some(all.collect());
    }
    let is_json = source
        .path()
        .extension()
        .is_some_and(|ending| ending == "json");
    let opened = source.open().ok().filter(|_| is_json)?;
    Some(vec![content::not_json(opened)?])
}

/// Returns why the file is not marked as complete; `None` if it is, or needs no marker.
fn unmarked(opened: &OpenProject, found: &Declared<'_>) -> Option<String> {
    if !found.marked {
        return None;
    }
    let stage = &found.stage.name;
    match &found.marker {
        None => Some(format!(
            "belongs to no present batch of stage `{stage}`: its marker is not known"
        )),
        Some(marker) if opened.workspace.layout.at(marker).is_file() => None,
        Some(marker) => Some(format!("exists, but its marker `{marker}` does not")),
    }
}
