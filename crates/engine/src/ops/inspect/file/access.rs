//! Which files are shown: those that records or declarations of the workspace name, and logs and quarantine. Nothing else, and no link
//! to something else.

use crate::ops::inspect::graph::as_set;
use crate::ops::project::client_path::client_path;
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use crate::ops::why::FileState;
use milepost_core::base::digest::Digest;
use milepost_core::base::glob::Glob;
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::model::fingerprint::FactKind;
use milepost_core::model::record::{BatchRecord, Made};
use milepost_core::model::state::State;
use milepost_core::plan::lineage;
use milepost_store::store::layout::OWN;
use serde::Serialize;
use std::path::PathBuf;

/// The folders of Milepost's own files that are shown.
const SHOWN: [&str; 2] = ["logs", "quarantine"];

/// How a record lists a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordedOutput {
    /// The stage.
    pub stage: String,
    /// The batch; empty for the only one.
    pub batch: String,
    /// The output's name in the declaration.
    pub output: String,
    /// The recorded digest.
    pub digest: Digest,
    /// The state of the present file.
    pub state: FileState,
}

/// A file that may be shown.
pub(super) struct KnownFile {
    pub(super) file: FilePath,
    pub(super) made: Option<KnownOutput>,
}

/// The record of a file, before the present file is compared with it.
pub(super) struct KnownOutput {
    stage: String,
    made: Made,
    record: BatchRecord,
}

impl KnownOutput {
    /// Compares it with the present digest.
    pub(super) fn with(&self, present: Option<Digest>) -> RecordedOutput {
        RecordedOutput {
            state: FileState::of(present, &self.made, &self.record),
            stage: self.stage.clone(),
            batch: self.record.key.clone(),
            output: self.made.name.clone(),
            digest: self.made.digest,
        }
    }
}

/// Finds a file that may be shown by the path that a client names.
///
/// # Errors
/// When the path leaves workspace and project, or names a file that is private or not of the pipeline.
pub(super) fn access(
    opened: &OpenProject,
    state: &State,
    path: &str,
) -> Result<KnownFile, OpsError> {
    let file = client_path(opened, path)?;
    let made = check_access(opened, state, &file)?;
    Ok(KnownFile { file, made })
}

/// Returns the record of a file that may be shown.
///
/// # Errors
/// When it is private or not of the pipeline.
fn check_access(
    opened: &OpenProject,
    state: &State,
    file: &FilePath,
) -> Result<Option<KnownOutput>, OpsError> {
    let made = recorded(state, file);
    let is_shown = if is_own(file.path.as_str()) {
        file.root == Root::Workspace && is_log_or_quarantine(file.path.as_str())
    } else {
        made.is_some() || is_recorded(state, file) || is_declared(opened, file)
    };
    if is_shown {
        return Ok(made);
    }
    Err(OpsError::Outside(format!(
        "`{file}` is not shown: only inputs and outputs of stages, logs and quarantine are"
    )))
}

/// Checks that a file may be shown, by its path and by the links on the way.
///
/// # Errors
/// When it is private, not of the pipeline, or a link to such a file.
pub(crate) fn check_shown(
    opened: &OpenProject,
    state: &State,
    file: &FilePath,
) -> Result<(), OpsError> {
    check_access(opened, state, file)?;
    shown_place(opened, state, file).map(drop)
}

/// Returns the place of a file, if no link on the way leads to something that is not shown itself.
///
/// # Errors
/// When one does.
pub(crate) fn shown_place(
    opened: &OpenProject,
    state: &State,
    file: &FilePath,
) -> Result<PathBuf, OpsError> {
    let outside = |error: &dyn std::fmt::Display| OpsError::Outside(error.to_string());
    let place = opened
        .files
        .resolve(file)
        .map_err(|error| outside(&error))?;
    if opened.files.is_redirected(file) {
        return Ok(place);
    }
    let Ok(real) = place.canonicalize() else {
        // It does not exist.
        return Ok(place);
    };
    if real == place {
        return Ok(real);
    }
    let inside = real.strip_prefix(opened.files.folder(file.root)).ok();
    let target = inside.and_then(|inside| RelPath::parse(inside.to_str()?).ok());
    let target = target.map(|path| FilePath {
        root: file.root,
        path,
    });
    let is_shown =
        |target: &FilePath| target == file || check_access(opened, state, target).is_ok();
    if target.as_ref().is_some_and(is_shown) {
        return Ok(real);
    }
    let target = target.map_or_else(|| real.display().to_string(), |target| target.to_string());
    Err(OpsError::Outside(format!(
        "`{file}` is not shown: it is a link to `{target}`, which is neither an input nor an output of a stage"
    )))
}

/// Returns true for Milepost's own files, wherever they are, in upper or lower case.
fn is_own(path: &str) -> bool {
    path.split('/').any(|part| part.eq_ignore_ascii_case(OWN))
}

fn is_log_or_quarantine(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some(OWN)
        && parts.next().is_some_and(|folder| SHOWN.contains(&folder))
        && parts.all(|part| !part.eq_ignore_ascii_case(OWN))
}

/// Finds the record of an output.
fn recorded(state: &State, file: &FilePath) -> Option<KnownOutput> {
    if file.root != Root::Workspace {
        return None;
    }
    let mut stages = state.stages.iter();
    stages.find_map(|(stage, known)| {
        let (key, made) = known.outputs().find(|(_, made)| made.path == file.path)?;
        let record = known.batches.get(key)?.record.clone()?;
        Some(KnownOutput {
            stage: stage.clone(),
            made: made.clone(),
            record,
        })
    })
}

/// Returns true if a record lists a file as an input, or as a remainder of an output.
fn is_recorded(state: &State, file: &FilePath) -> bool {
    let shown = file.to_string();
    let batches = state
        .stages
        .values()
        .flat_map(|stage| stage.batches.values());
    let mut known = batches.map(|batch| {
        let mut facts = batch.record.iter().flat_map(|record| record.facts.iter());
        let is_input = facts.any(|(key, _)| key.kind == FactKind::Input && *key.name == *shown);
        is_input || file.root == Root::Workspace && batch.remains.contains_key(&file.path)
    });
    known.any(|is_known| is_known)
}

/// Returns true if a stage is declared to read or write such a file. Hidden files are never meant by a pattern.
fn is_declared(opened: &OpenProject, file: &FilePath) -> bool {
    if file
        .path
        .as_str()
        .split('/')
        .any(|part| part.starts_with('.'))
    {
        return false;
    }
    let stages = || opened.pipeline.stages.iter();
    let mut reads = stages().flat_map(lineage::reads).map(|path| {
        let shown = as_set(opened, path);
        let pattern = shown.strip_prefix("project:").unwrap_or(&shown).to_owned();
        (path.root, pattern)
    });
    let mut writes = stages().flat_map(|stage| &stage.outputs);
    reads.any(|(root, pattern)| root == file.root && matches(&pattern, &file.path))
        || file.root == Root::Workspace
            && writes.any(|output| matches(&output.path.pattern(), &file.path))
}

/// Returns true if a pattern matches a path.
pub(super) fn matches(pattern: &str, path: &RelPath) -> bool {
    Glob::parse(pattern).is_ok_and(|glob| glob.matches(path))
}
