//! Tells by a glance at the disk that a run has nothing to do.

use super::open::{Opened, OpsError};
use super::run::Wanted;
use crate::base::digest::Digest;
use crate::base::path::{FilePath, RelPath};
use crate::plan::world::World;
use crate::run::report::{Report, StageReport, StageStatus};
use crate::store::files::Files;
use crate::store::{glance, layout};
use serde_json::json;

/// Whether a glance can tell: everything is wanted that there is, and nothing in particular.
pub fn can_tell(wanted: &Wanted) -> bool {
    let particular = !wanted.targets.is_empty()
        || wanted.until.is_some()
        || wanted.limit.is_some()
        || wanted.failed
        || wanted.force;
    !particular
}

/// How the stages stand, when nothing is otherwise than when a run had nothing to do.
pub fn again(opened: &Opened) -> Option<Vec<StageReport>> {
    if !opened.imports.is_empty() {
        return None;
    }
    let path = opened.workspace.layout.glance();
    let told = glance::again(&path, key(opened), &opened.files, opened.cache.now())?;
    serde_json::from_slice(&told).ok()
}

/// Notes what is known of the workspace, before it is read.
pub fn note_state(opened: &Opened) {
    // What cannot be noted ends the notes, and only costs the next glance.
    if note(opened).is_none() {
        opened.asked.spoil();
    }
}

fn note(opened: &Opened) -> Option<()> {
    let (asked, files, ctx) = (&opened.asked, &opened.files, opened.context());
    let file = |path: RelPath| ctx.digest(&FilePath::workspace(path)).ok();
    let journal = layout::journal();
    let segments = names(opened, files, &journal)?;
    if let Some(last) = segments.iter().rfind(|name| !name.starts_with('.')) {
        file(journal.join(last).ok()?)?;
    }
    let manifests = RelPath::of_parts([layout::MANIFESTS]);
    for stage in names(opened, files, &manifests)? {
        let folder = manifests.join(&stage).ok()?;
        for page in names(opened, files, &folder)? {
            file(folder.join(&page).ok()?)?;
        }
    }
    for stage in &opened.pipeline.stages {
        file(layout::checkpoint(stage.number))?;
    }
    asked.file(&FilePath::workspace(layout::scratch()), None);
    Some(())
}

/// The names in a folder, noted.
fn names(opened: &Opened, files: &Files, folder: &RelPath) -> Option<Vec<String>> {
    let names = files.names(folder)?;
    opened.asked.names(folder, &names);
    Some(names)
}

/// Keeps the notes of a run that had nothing to do.
///
/// # Errors
/// When the disk fails.
pub fn keep(opened: &Opened, report: &Report) -> Result<(), OpsError> {
    let is_idle = |stage: &StageReport| {
        stage.status == StageStatus::Complete && stage.reused == stage.batches && stage.judged == 0
    };
    let idle = report.stages.len() == opened.pipeline.stages.len()
        && report.stages.iter().all(is_idle)
        && report.forgotten.is_empty()
        && !report.interrupted;
    if !idle {
        return Ok(());
    }
    let stages: Vec<StageReport> = report
        .stages
        .iter()
        .map(|stage| StageReport {
            seconds: 0.0,
            ..stage.clone()
        })
        .collect();
    let told = serde_json::to_vec(&stages).map_err(|error| OpsError::World(error.to_string()))?;
    let path = opened.workspace.layout.glance();
    Ok(opened.asked.keep(&opened.disk, &path, key(opened), &told)?)
}

/// The digest of everything that a run goes by beside the files that it asks for.
fn key(opened: &Opened) -> Digest {
    let settings = &opened.settings;
    let all = json!([
        settings.version,
        opened.declared.to_string(),
        settings.params,
        settings.env,
        settings.workspace,
        settings.agents,
    ]);
    Digest::of(all.to_string())
}
