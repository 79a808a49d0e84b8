//! Reads from the manifests what the scan of a stage needs: the pages that name changed files, or all.
//!
//! If only files changed, a run and a plan begin without records, and read of each stage the pages that name a changed file. The
//! batches of other pages are up to date; their totals are enough for checkpoint, progress file and reports. That is possible if
//! the changed files decide which batches they concern: each batch is for one file of a pattern, its paths are not patterns over
//! files that stages write, and its outputs are not patterns. A stage that reads all outputs of another needs all records.

use crate::run::check::batch_scanner::base_scope;
use crate::run::context::Context;
use milepost_core::base::glob::Glob;
use milepost_core::base::path::{FilePath, Root};
use milepost_core::model::event::Record;
use milepost_core::model::stage::{EachSource, Stage};
use milepost_core::model::state::{StageState, State};
use milepost_core::plan::changed::{NamedBy, batch_of, named_by, names, needs_few};
use milepost_core::plan::expand::Batch;
use milepost_core::plan::paths;
use milepost_store::store::layout::Layout;
use milepost_store::store::manifest::{self, ManifestError};
use milepost_store::store::up_to_date::{ChangedFiles, NotedPages};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the stages as the notes of an earlier run know them, with no page read; `None` if something happened since, or a page of
/// a stage is unknown.
pub(crate) fn noted(
    stages: &[Stage],
    noted: NotedPages,
    records: &[Record],
) -> Option<BTreeMap<String, StageState>> {
    let is_new = records.iter().any(|record| record.event.stage().is_some());
    let is_known = |stage: &Stage| {
        let pages = noted.get(&stage.name);
        pages.is_some_and(|noted| noted.number == stage.number && !noted.pages.is_empty())
    };
    if is_new || noted.len() != stages.len() || !stages.iter().all(is_known) {
        return None;
    }
    let stages = noted.into_iter().map(|(name, noted)| {
        let state = StageState {
            number: noted.number,
            pages: noted.pages,
            ..StageState::default()
        };
        (name, state)
    });
    Some(stages.collect())
}

/// Reads what the scan of a stage needs. `is_settled`: no earlier stage is still to run.
///
/// # Errors
/// When a page cannot be read, or is another one than the notes say.
pub(crate) fn read_needed(
    ctx: &Context<'_>,
    stage: &Stage,
    state: &mut State,
    is_settled: bool,
) -> Result<(), ManifestError> {
    if state.stages.values().all(|known| known.pages.is_empty()) {
        return Ok(());
    }
    let differing = ctx.asked.differing().filter(|_| is_settled);
    if let Some(differing) =
        differing.filter(|found| needs_few(ctx.pipeline, stage, found.renamed()))
        && read_changed(ctx, stage, state, &differing)?
    {
        return Ok(());
    }
    read_rest(ctx.layout, state)
}

/// Reads the pages of a stage that name changed files. Returns false if that is not enough.
fn read_changed(
    ctx: &Context<'_>,
    stage: &Stage,
    state: &mut State,
    differing: &ChangedFiles,
) -> Result<bool, ManifestError> {
    let Some(known) = state.stages.get_mut(&stage.name) else {
        return Ok(false);
    };
    let pattern = pattern(ctx, stage);
    let (mut places, mut sought) = (Vec::new(), BTreeSet::new());
    for name in differing.names() {
        let file = name.parse::<FilePath>();
        let by = file.map(|file| named_by(stage, pattern.as_ref(), &file));
        match by {
            Ok(NamedBy::Nothing) => {}
            Ok(NamedBy::Batch(key)) => places.extend(known.page_of(&key)),
            Ok(NamedBy::Unclear) | Err(_) => _ = sought.insert(name),
        }
    }
    if !sought.is_empty() {
        let found = manifest::naming(ctx.layout, &stage.name, &known.pages, &sought)?;
        places.extend(found);
    }
    // A batch that is not settled concerns the whole stage, so read its page.
    let pages = known.pages.iter().enumerate();
    let special = pages.filter(|(_, page)| !page.is_read && !page.totals.settled);
    places.extend(special.map(|(place, _)| place));
    places.extend(first_pages(known));
    read(ctx.layout, &stage.name, known, &places)?;
    let pages = known.pages.iter();
    let read = pages.filter(|page| page.is_read).count();
    let (name, all) = (&stage.name, known.pages.len());
    tracing::debug!(record = %json!({ "stage": name, "pages": all, "pages_read": read }));
    Ok(changed_batches(ctx, stage, known, differing).is_some())
}

/// How many batches a checkpoint and a report name files of, at most.
pub(crate) const SHOWN: usize = 100;

/// Returns the places of the first pages, which have the batches whose files a checkpoint and a report name. A checkpoint may be written
/// although no batch of the stage changed. Of an only file it has the digest.
fn first_pages(known: &StageState) -> Vec<usize> {
    let files: u64 = known.pages.iter().map(|page| page.totals.files).sum();
    if files == 1 {
        return (0..known.pages.len()).collect();
    }
    let mut batches = 0;
    let first = known.pages.iter().take_while(|page| {
        let is_needed = batches < SHOWN as u64;
        batches += page.totals.batches;
        is_needed
    });
    (0..first.count()).collect()
}

/// Reads all pages that were not read.
///
/// # Errors
/// When a page cannot be read, or is another one than the notes say.
pub(crate) fn read_rest(layout: &Layout, state: &mut State) -> Result<(), ManifestError> {
    for (name, known) in &mut state.stages {
        let all: Vec<usize> = (0..known.pages.len()).collect();
        read(layout, name, known, &all)?;
        known.pages.clear();
    }
    Ok(())
}

fn read(
    layout: &Layout,
    stage: &str,
    known: &mut StageState,
    places: &[usize],
) -> Result<(), ManifestError> {
    let unread = |place: &&usize| !known.pages[**place].is_read;
    let unread: BTreeSet<usize> = places.iter().filter(unread).copied().collect();
    if unread.is_empty() {
        return Ok(());
    }
    let pages = unread.iter().map(|place| &known.pages[*place]);
    let read = manifest::read_pages(layout, stage, pages)?;
    for place in unread {
        known.pages[place].is_read = true;
    }
    known.batches.extend(read.batches);
    known.facts.extend(read.facts);
    Ok(())
}

/// Returns the pattern of a stage's `each`.
fn pattern(ctx: &Context<'_>, stage: &Stage) -> Option<(Root, Glob)> {
    let EachSource::Path(path) = &stage.each.first()?.source else {
        return None;
    };
    let place = paths::read(path, &Value::Object(base_scope(ctx))).ok()?;
    let place = place.into_pattern();
    Some((place.root, Glob::parse(place.path.as_str()).ok()?))
}

/// Returns those batches of the pages that were read that name a changed file, in order; `None` if the item of one is unclear.
pub(crate) fn changed_batches(
    ctx: &Context<'_>,
    stage: &Stage,
    known: &StageState,
    differing: &ChangedFiles,
) -> Option<Vec<Batch>> {
    let pattern = pattern(ctx, stage);
    let mut starts = Vec::with_capacity(known.pages.len());
    let mut before = 0;
    for page in &known.pages {
        starts.push(before);
        before += page.totals.batches;
    }
    let mut changed = Vec::new();
    let (mut page, mut position) = (None, 0);
    for (key, batch) in known.in_order() {
        let place = known.page_of(key)?;
        if page != Some(place) {
            (page, position) = (Some(place), starts[place]);
        }
        position += 1;
        let record = batch.record.as_ref()?;
        if names(record, &|name| differing.has(name)) {
            changed.push(batch_of(stage, pattern.as_ref(), record, position)?);
        }
    }
    Some(changed)
}
