//! Explains a file, or a batch of a workspace in which nothing changed, from those pages of the manifests that name it.

use super::batch::explain;
use super::explanation::{Verdict, Why};
use super::file::{LISTED, candidates, file_why, inputs};
use super::makers::Makers;
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use milepost_core::base::path::{FilePath, Root};
use milepost_core::model::record::BatchRecord;
use milepost_core::model::state::State;
use milepost_core::plan::selection::Target;
use milepost_store::store::{journal, manifest};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Returns true if the manifests have all records: nothing happened to a stage since the last seal of the journal.
fn are_whole(opened: &OpenProject) -> Result<bool, OpsError> {
    let (records, _) = journal::read_since_seal(&opened.workspace.layout)?;
    Ok(!records.iter().any(|record| record.event.stage().is_some()))
}

/// Explains a batch. Every stage is complete, and nothing changed since. `None` if it takes more than some pages.
///
/// # Errors
/// When the manifests or the journal cannot be read, or when a batch is on several pages.
pub(super) fn batch(opened: &OpenProject, what: &str) -> Result<Option<Why>, OpsError> {
    if !are_whole(opened)? {
        return Ok(None);
    }
    batch_why(opened, what)
}

/// Returns the state by the pages that name one of these outputs or contain this text; `None` if the outputs of a batch are on
/// several pages, because its record is on the first one only.
fn pages(
    opened: &OpenProject,
    outputs: &BTreeSet<String>,
    text: &str,
) -> Result<Option<State>, OpsError> {
    let outputs = outputs.iter().map(|path| format!("  {path}\n"));
    let texts = outputs.chain([text.to_owned()]).collect();
    let stages = manifest::read_with(&opened.workspace.layout, &texts)?;
    Ok(stages.map(|stages| State {
        stages,
        ..State::default()
    }))
}

fn batch_why(opened: &OpenProject, what: &str) -> Result<Option<Why>, OpsError> {
    let Ok(target) = Target::parse(&opened.pipeline, what) else {
        return Ok(None);
    };
    let Some(stage) = opened.pipeline.stage(&target.stage) else {
        return Ok(None);
    };
    let key = target.batch.as_deref().unwrap_or_default();
    let text = format!("{{\"key\":{}", Value::from(key));
    let record = |state: &State| -> Option<BatchRecord> {
        let known = state.stages.get(&stage.name)?;
        known.batches.get(key)?.record.clone()
    };
    let found = pages(opened, &BTreeSet::new(), &text)?;
    let Some(found) = found.as_ref().and_then(record) else {
        return Ok(None);
    };
    let read: BTreeSet<String> = inputs(&found)
        .into_iter()
        .map(|(path, _)| path.to_owned())
        .collect();
    let Some(state) = pages(opened, &read, &text)? else {
        return Ok(None);
    };
    let shared = state.stages.get(&stage.name);
    let shared = shared.map(|known| known.shared(&found)).unwrap_or_default();
    let facts = (&*shared, &found.facts);
    explain(opened, &state, stage, key, Verdict::UpToDate, facts).map(Some)
}

/// Explains a file. `None` if it takes more than some pages.
///
/// # Errors
/// The errors of [`batch`].
pub(super) fn file(
    opened: &OpenProject,
    folder: &Path,
    what: &str,
) -> Result<Option<Why>, OpsError> {
    if Target::parse(&opened.pipeline, what).is_ok() || !are_whole(opened)? {
        return Ok(None);
    }
    let ctx = opened.context();
    let candidates = candidates(opened, folder, what);
    let is_file = |file: &&FilePath| ctx.files.resolve(file).is_ok_and(|path| path.is_file());
    let named = candidates.iter().find(is_file);
    let Some(named) = named.filter(|file| file.root == Root::Workspace) else {
        return Ok(None);
    };
    // A fact names its file at the end of its key.
    let quoted = Value::from(named.path.as_str()).to_string();
    let text = quoted.strip_prefix('"').unwrap_or(&quoted);
    // One that is likelier may be recorded and missing.
    let likelier = candidates.iter().take_while(|file| *file != named);
    let likelier = likelier.filter(|file| file.root == Root::Workspace);
    let likelier: BTreeSet<String> = likelier.map(|file| file.path.as_str().to_owned()).collect();
    let mut outputs = likelier.clone();
    outputs.insert(named.path.as_str().to_owned());
    loop {
        let Some(state) = pages(opened, &outputs, text)? else {
            return Ok(None);
        };
        let makers = Makers::of(&state);
        let mut found = BTreeSet::new();
        add_origins(&makers, named.path.as_str(), &mut found);
        if found.is_subset(&outputs) {
            let why = file_why(opened, folder, &state, what)?;
            return Ok(why.map(|why| Why::File(Box::new(why))));
        }
        outputs = found;
        outputs.extend(likelier.iter().cloned());
    }
}

/// Adds a file and the files that `file_why` shows it was built from.
fn add_origins(makers: &Makers<'_>, path: &str, all: &mut BTreeSet<String>) {
    if !all.insert(path.to_owned()) {
        return;
    }
    if let Some((_, record)) = makers.get(path) {
        for (input, _) in inputs(record).into_iter().take(LISTED) {
            add_origins(makers, input, all);
        }
    }
}
