//! Tells by a glance at the disk that a run has nothing to do.

use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use crate::run::report::{Report, StageReport, StageStatus};
use milepost_core::base::digest::Digest;
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::plan::world::World;
use milepost_store::store::files::Files;
use milepost_store::store::folders::{Folders, There};
use milepost_store::store::statcache::HashedFile;
use milepost_store::store::up_to_date::{Observations, Recheck};
use milepost_store::store::{layout, up_to_date};
use serde_json::json;

/// How the stages stand, when nothing is otherwise than when a run had nothing to do. Whoever looks on looks at what is otherwise,
/// where that is known.
pub(crate) fn again(opened: &mut OpenProject) -> Option<Vec<StageReport>> {
    let glanced = ask(opened)?;
    let is_same = glanced.differing.is_empty();
    let told = is_same.then(|| serde_json::from_slice(&glanced.told).ok());
    opened.asked = since(glanced);
    told.flatten()
}

/// Notes that go on from a glance: what was only touched is looked at, too.
fn since(glanced: Recheck) -> Observations {
    let differing = glanced.differing.into_iter().chain(glanced.touched);
    Observations::since(differing.collect())
}

/// The same for a run, which notes what it asks and keeps what it learnt of files that were only touched.
pub(crate) fn before_a_run(opened: &mut OpenProject) -> Option<Vec<StageReport>> {
    opened.asked = Observations::noting();
    let glanced = ask(opened)?;
    if !glanced.differing.is_empty() {
        opened.asked = since(glanced);
        return None;
    }
    let stages = serde_json::from_slice(&glanced.told).ok()?;
    if glanced.can_renew() {
        // Only caches: what cannot be kept costs the next glance time.
        let _ = glanced.renew(&opened.disk, &opened.workspace.layout.glance());
        let _ = opened.cache.save(&opened.disk);
    }
    Some(stages)
}

fn ask(opened: &OpenProject) -> Option<Recheck> {
    if !opened.imports.is_empty() {
        return None;
    }
    let path = opened.workspace.layout.glance();
    up_to_date::again(&path, key(opened), &opened.files, &opened.cache)
}

/// Notes what is known of the workspace, before it is read.
pub(crate) fn note_state(opened: &OpenProject) {
    // What cannot be noted ends the notes, and only costs the next glance.
    if note(opened).is_none() {
        opened.asked.spoil();
    }
}

fn note(opened: &OpenProject) -> Option<()> {
    let (asked, files, ctx) = (&opened.asked, &opened.files, opened.context());
    let file = |path: RelPath| ctx.digest(&FilePath::workspace(path)).ok();
    let journal = layout::journal();
    let segments = names(opened, files, &journal);
    if let Some(last) = segments.iter().rfind(|name| !name.starts_with('.')) {
        file(journal.join(last).ok()?)?;
    }
    let manifests = RelPath::of_parts([layout::MANIFESTS]);
    for stage in names(opened, files, &manifests) {
        let folder = manifests.join(&stage).ok()?;
        for page in names(opened, files, &folder) {
            file(folder.join(&page).ok()?)?;
        }
    }
    for stage in &opened.pipeline.stages {
        file(layout::checkpoint(stage.number))?;
    }
    asked.file(&FilePath::workspace(layout::scratch()), None);
    Some(())
}

/// The names in a folder, noted. Of one that is not there yet, no glance will say that it has no names.
fn names(opened: &OpenProject, files: &Files, folder: &RelPath) -> Vec<String> {
    let names = files.names(folder).unwrap_or_default();
    opened.asked.names(folder, &names);
    names
}

/// Keeps the notes of a run after which there is nothing to do.
///
/// # Errors
/// When the disk fails.
pub(crate) fn keep(opened: &OpenProject, report: &Report) -> Result<(), OpsError> {
    let is_done = |stage: &StageReport| {
        stage.status == StageStatus::Complete && stage.failed.is_empty() && stage.left == 0
    };
    let done = report.stages.len() == opened.pipeline.stages.len()
        && report.stages.iter().all(is_done)
        && report.under_way == 0
        && !report.interrupted;
    if !done {
        return Ok(());
    }
    let is_idle = |stage: &StageReport| stage.reused == stage.batches && stage.judged == 0;
    if !(report.stages.iter().all(is_idle) && report.forgotten.is_empty()) {
        note_end(opened);
    }
    let stages: Vec<StageReport> = report.stages.iter().map(StageReport::again).collect();
    let told = serde_json::to_vec(&stages).map_err(|error| OpsError::World(error.to_string()))?;
    let path = opened.workspace.layout.glance();
    Ok(opened.asked.keep(&opened.disk, &path, key(opened), &told)?)
}

/// Notes how a run leaves what it wrote, and what is known of the workspace after it.
fn note_end(opened: &OpenProject) {
    let folders = Folders::new(&opened.files);
    for (file, digest) in opened.asked.forget_replaced() {
        // Where the file is no more what was written, the next glance will see so.
        if let (There::File(stamp), Some(digest)) = (folders.look(&file), digest) {
            let unread = HashedFile {
                digest,
                stamp,
                settled: false,
            };
            let seen = opened.cache.known(stamp).unwrap_or(unread);
            opened.asked.file(&file, Some(seen));
        }
    }
    note_state(opened);
}

/// The digest of everything that a run goes by beside the files that it asks for.
fn key(opened: &OpenProject) -> Digest {
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
