//! Finds quickly that a run has nothing to do, from the notes of an earlier run.

use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use crate::run::record::protect;
use crate::run::report::{Report, StageReport, StageStatus};
use milepost_core::base::digest::Digest;
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::model::state::ManifestPage;
use milepost_core::plan::world::World;
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::files::Files;
use milepost_store::store::folders::{Folders, FoundFile};
use milepost_store::store::layout::Layout;
use milepost_store::store::statcache::HashedFile;
use milepost_store::store::up_to_date::{Candidates, NotedPages, Observations, Recheck};
use milepost_store::store::{journal, layout, manifest, up_to_date};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::HashSet;

/// Returns the reports of the stages if nothing changed since the notes were written. Otherwise, later scans look only at changed
/// files, if those are known.
pub(crate) fn again(opened: &mut OpenProject) -> Option<Vec<StageReport>> {
    let recheck = ask(opened)?;
    let is_same = recheck.differing.is_empty();
    let stages = if is_same { stages(&recheck) } else { None };
    opened.observations = since(recheck);
    stages
}

/// Returns the pages of the manifests by the notes, without an up-to-date check; `None` if something was recorded since.
pub(crate) fn noted(opened: &OpenProject) -> Option<NotedPages> {
    if !opened.imports.is_empty() {
        return None;
    }
    let layout = &opened.workspace.layout;
    let payload = up_to_date::payload(&layout.up_to_date_notes(), key(opened))?;
    let end = payload.iter().position(|byte| *byte == b'\n')?;
    let notes: RunNotes = serde_json::from_slice(&payload[end + 1..]).ok()?;
    (journal_end(layout)? == notes.journal).then_some(notes.pages)
}

/// Continues as after an up-to-date check that found only these changed files.
pub(crate) fn assume(opened: &mut OpenProject, changed: HashSet<FilePath>, noted: NotedPages) {
    opened.observations = Observations::since(changed, noted);
}

/// The data that a run stores for the next one, besides its reports.
#[derive(Default, Serialize, Deserialize)]
struct RunNotes {
    /// The last segment of the journal and its size in bytes.
    journal: (u64, u64),
    pages: NotedPages,
}

fn journal_end(layout: &Layout) -> Option<(u64, u64)> {
    let end = journal::written(layout).ok()??;
    Some((end.segment, end.offset))
}

/// Continues from a check. Files that were only touched have the content that the notes say.
fn since(recheck: Recheck) -> Observations {
    let notes: RunNotes = lines(&recheck)
        .and_then(|(_, notes)| serde_json::from_slice(notes).ok())
        .unwrap_or_default();
    Observations::since(recheck.differing.into_iter().collect(), notes.pages)
}

/// Returns the reports of the stages and the other data of the run, each a line of JSON.
fn lines(recheck: &Recheck) -> Option<(&[u8], &[u8])> {
    let end = recheck.payload.iter().position(|byte| *byte == b'\n')?;
    Some((&recheck.payload[..end], &recheck.payload[end + 1..]))
}

fn stages(recheck: &Recheck) -> Option<Vec<StageReport>> {
    lines(recheck).and_then(|(stages, _)| serde_json::from_slice(stages).ok())
}

/// Does the same for a run, which writes new notes and renews the stamps of touched files.
pub(crate) fn before_a_run(opened: &mut OpenProject) -> Option<Vec<StageReport>> {
    let spilling = |observations: Observations, opened: &OpenProject| {
        observations.spilling(&opened.disk, &opened.workspace.layout.up_to_date_events())
    };
    opened.observations = spilling(Observations::noting(), opened);
    let recheck = ask(opened)?;
    if recheck.can_renew() {
        let notes = opened.workspace.layout.up_to_date_notes();
        // Only caches: without them the next check takes longer.
        let _ = recheck.renew(&opened.disk, &notes);
        let _ = opened.cache.save(&opened.disk);
        if let Some(reported) = &opened.reported {
            reported.renewed(up_to_date::notes_id(&notes));
        }
    }
    if !recheck.differing.is_empty() {
        opened.observations = spilling(since(recheck), opened);
        return None;
    }
    stages(&recheck)
}

fn ask(opened: &OpenProject) -> Option<Recheck> {
    if !opened.imports.is_empty() {
        return None;
    }
    let (path, key) = (opened.workspace.layout.up_to_date_notes(), key(opened));
    let check = |candidates: Option<&Candidates>| {
        up_to_date::again(&path, key, &opened.files, &opened.cache, candidates)
    };
    let Some(reported) = &opened.reported else {
        return check(None);
    };
    let notes = up_to_date::notes_id(&path);
    if let Some(candidates) = reported.begin(notes.as_ref())
        && let Some(recheck) = check(Some(&candidates))
    {
        return Some(recheck);
    }
    let watch = Stopwatch::start();
    let recheck = check(None);
    let differing = recheck.as_ref().map(|recheck| &*recheck.differing);
    let notes = notes.filter(|_| differing.is_some());
    reported.checked(notes, differing.unwrap_or_default(), &watch);
    recheck
}

/// Notes the recorded state before it is read. If the notes of an earlier run hold but for some files, it is as they say.
pub(crate) fn note_state(opened: &OpenProject) {
    if !opened.observations.is_continued() {
        note_again(opened, &HashSet::new());
    }
}

/// Notes the recorded state, but for these files.
fn note_again(opened: &OpenProject, kept: &HashSet<String>) {
    // An incomplete note is not kept.
    if note(opened, kept).is_none() {
        opened.observations.discard();
    }
}

fn note(opened: &OpenProject, kept: &HashSet<String>) -> Option<()> {
    let (asked, files, ctx) = (&opened.observations, &opened.files, opened.context());
    let file = |path: RelPath| ctx.digest(&FilePath::workspace(path)).ok();
    let journal = layout::journal();
    let segments = names(opened, files, &journal);
    if let Some(last) = segments.iter().rfind(|name| !name.starts_with('.')) {
        file(journal.join(last).ok()?)?;
    }
    let manifests = RelPath::of_parts([layout::MANIFESTS]);
    let noted = asked.pages();
    for stage in names(opened, files, &manifests) {
        let folder = manifests.join(&stage).ok()?;
        for page in names(opened, files, &folder) {
            let page = folder.join(&page).ok()?;
            if kept.contains(page.as_str()) {
                continue;
            }
            let there = ctx.digest(&FilePath::workspace(page.clone())).ok()?;
            let noted = noted.get(&stage).into_iter().flat_map(|noted| &noted.pages);
            let mut noted = noted.filter(|noted| manifest::page(&stage, noted.number) == page);
            // Somebody edited it meanwhile.
            if noted.any(|noted| Some(noted.digest) != there) {
                return None;
            }
        }
    }
    for stage in &opened.pipeline.stages {
        file(layout::checkpoint(stage.number))?;
        if let Some(path) = protect::progress_path(stage) {
            file(path.clone())?;
        }
    }
    asked.file(&FilePath::workspace(layout::scratch()), None);
    asked.file(&FilePath::workspace(layout::jobs()), None);
    Some(())
}

/// Returns and notes the names in a folder. The next check does not trust the note if the folder was missing.
fn names(opened: &OpenProject, files: &Files, folder: &RelPath) -> Vec<String> {
    let names = files.names(folder).unwrap_or_default();
    opened.observations.names(folder, &names);
    names
}

/// Writes the notes of a run after which nothing is to do.
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
    let (path, key) = (opened.workspace.layout.up_to_date_notes(), key(opened));
    if !done || !opened.observations.agree_with(&path, key) {
        return Ok(());
    }
    let is_idle =
        |stage: &StageReport| stage.reused == stage.batches && stage.judged + stage.restored == 0;
    let is_idle = report.stages.iter().all(is_idle) && report.forgotten.is_empty();
    // A run that continues from earlier notes did not note the state at its begin.
    if !is_idle || opened.observations.is_continued() {
        note_end(opened);
    }
    let stages: Vec<StageReport> = report.stages.iter().map(StageReport::again).collect();
    let failed = |error: serde_json::Error| OpsError::World(error.to_string());
    let mut bytes = serde_json::to_vec(&stages).map_err(failed)?;
    bytes.push(b'\n');
    let notes = RunNotes {
        journal: journal_end(&opened.workspace.layout).unwrap_or_default(),
        pages: opened.observations.pages(),
    };
    serde_json::to_writer(&mut bytes, &notes).map_err(failed)?;
    let is_kept = opened.observations.keep(&opened.disk, &path, key, &bytes)?;
    if let Some(reported) = opened.reported.as_ref().filter(|_| is_kept) {
        reported.kept(up_to_date::notes_id(&path));
    }
    Ok(())
}

/// Notes the files that the run wrote, and the recorded state.
fn note_end(opened: &OpenProject) {
    let folders = Folders::new(&opened.files);
    // If a file changed since it was written, the next check notices. If a later stage read the changed file, the cache knows its
    // content, and the next run must not take it for what was written.
    opened.observations.look_again(|file, written| {
        let FoundFile::File(stamp) = folders.look(file) else {
            return None;
        };
        let unread = HashedFile {
            digest: written.digest,
            stamp,
            settled: written.proof == Some(stamp),
        };
        Some(opened.cache.known(stamp).unwrap_or(unread))
    });
    let kept = unchanged_pages(opened);
    note_again(opened, &kept);
    opened.observations.keep_own(kept);
}

/// Returns the pages of manifests that are as the notes of an earlier run say.
fn unchanged_pages(opened: &OpenProject) -> HashSet<String> {
    let (before, now) = opened.observations.pages_before_and_now();
    let mut unchanged = HashSet::new();
    for (stage, noted) in &now {
        let Some(before) = before.get(stage) else {
            continue;
        };
        let is_same = |page: &&ManifestPage| {
            let mut before = before.pages.iter();
            before.any(|one| (one.number, one.digest) == (page.number, page.digest))
        };
        let same = noted.pages.iter().filter(is_same);
        unchanged.extend(same.map(|page| manifest::page(stage, page.number).as_str().to_owned()));
    }
    unchanged
}

/// Returns the digest of everything that a run depends on besides the files it reads.
fn key(opened: &OpenProject) -> Digest {
    let settings = &opened.settings;
    let all = json!([
        settings.version,
        opened.declared.to_string(),
        settings.params,
        settings.env,
        settings.workspace,
        settings.agents,
        settings.programs,
    ]);
    Digest::of(all.to_string())
}
