//! Accepts outputs that were modified by hand, or a change of the declarations that needs no rerun.

mod choose;
mod data;
mod kinds;
mod record;

pub use data::{AcceptOptions, Accepted, Adopted, Pinned};

use crate::ops::project::error::OpsError;
use crate::ops::project::lock::lock_and_read;
use crate::ops::project::open::{open, open_recorded};
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::Snapshot;
use choose::{at_present, choose, scan};
use kinds::kinds;
use milepost_core::base::digest::Digest;
use milepost_core::model::record::Made;
use milepost_core::plan::decide::RebuildPolicy;
use milepost_core::plan::selection::Target;
use record::{keep_content, record, rewrite_checkpoint};

/// Accepts modified outputs, or adopts changes of the declarations. Everything is validated first; if one batch is refused, nothing is
/// accepted. Modified checkpoints of the selected stages are rewritten from the records.
///
/// # Errors
/// When something cannot be accepted, another process has locked the workspace, or the disk fails.
pub fn accept(request: &Request, options: &AcceptOptions) -> Result<Accepted, OpsError> {
    let mut opened = open(request)?;
    let targets = targets(&opened, options)?;
    let kinds = kinds(&options.changes)?;
    if !opened.workspace.is_made {
        let message = "this workspace has no run: there is nothing to accept".to_owned();
        return Err(OpsError::Usage(message));
    }
    let who = request.person(options.who.as_deref());
    let by = (who.as_str(), options.why.as_str(), opened.clock.now());
    let locked = lock_and_read(&mut opened, &request.command)?;
    let (lock, mut recorder, _) = locked.recover(&opened, &request.command)?;
    let mut done = Accepted::default();
    let mut work = Vec::new();
    let mut refused = Vec::new();
    for stage in &opened.pipeline.stages {
        let batches: Vec<&Target> = targets
            .iter()
            .filter(|target| target.stage == stage.name)
            .collect();
        if batches.is_empty() {
            continue;
        }
        let wants = |key: &str| {
            batches
                .iter()
                .any(|target| target.batch.as_deref().is_none_or(|batch| batch == key))
        };
        let found = scan(&recorder, stage, RebuildPolicy::NeededAndModified)?;
        for target in &batches {
            let known = |key: &String| found.batches.iter().any(|batch| batch.batch.key == *key);
            if let Some(key) = target.batch.as_ref().filter(|key| !known(key)) {
                refused.push(format!("stage `{}` has no batch `{key}`", stage.name));
            }
        }
        let mut chosen = Vec::new();
        for batch in found.batches.iter().filter(|batch| wants(&batch.batch.key)) {
            match choose(&recorder, stage, batch, &kinds, &request.invocation) {
                Ok(Some(outputs)) => chosen.push((batch.batch.key.clone(), outputs)),
                Ok(None) => {}
                Err(why) => refused.extend(why),
            }
        }
        work.push((stage, found, chosen));
    }
    if !refused.is_empty() {
        return Err(OpsError::NotAccepted(refused));
    }
    let outputs = work.iter().flat_map(|(_, _, chosen)| chosen);
    if let Some(expected) = options.expected
        && digest(outputs.flat_map(|(_, outputs)| outputs)) != expected
    {
        return Err(OpsError::NotAsShown("accepted"));
    }
    // The content is copied before the journal says that it is accepted.
    for (stage, _, chosen) in &work {
        for (key, outputs) in chosen.iter().filter(|_| options.changes.is_empty()) {
            keep_content(&recorder, stage, key, outputs, by)?;
        }
    }
    for (stage, found, chosen) in work {
        record(&mut recorder, stage, &found, chosen, by, options, &mut done)?;
        rewrite_checkpoint(&mut recorder, stage, &mut done)?;
    }
    if recorder.has_begun() {
        recorder.end_without_stages("accepted", "accepted")?;
        recorder.flush()?;
    }
    done.quarantined = std::mem::take(&mut recorder.kept);
    // Only a cache.
    let _ = opened.cache.save(&opened.disk);
    drop(lock);
    Ok(done)
}

/// Returns the digest of the present outputs of a batch; `None` if it has no record, or an output cannot be read. Nothing is written.
///
/// # Errors
/// When there is no project, or the workspace cannot be read.
pub fn shown(request: &Request, stage: &str, batch: &str) -> Result<Option<Digest>, OpsError> {
    let opened = open_recorded(request)?;
    let layout = &opened.workspace.layout;
    let present = Snapshot::read(layout)?;
    let known = present.state.stages.get(stage);
    let record = known.and_then(|known| known.batches.get(batch)?.record.as_ref());
    let Some(record) = record else {
        return Ok(None);
    };
    let outputs = record.outputs.iter().map(|made| at_present(layout, made));
    let outputs: Result<Vec<Made>, String> = outputs.collect();
    Ok(outputs.ok().map(|outputs| digest(&outputs)))
}

/// Returns the digest of the paths and contents of outputs.
fn digest<'a>(outputs: impl IntoIterator<Item = &'a Made>) -> Digest {
    let outputs = outputs.into_iter();
    let lines = outputs.map(|made| format!("{} {:?}\n", made.digest, made.path.as_str()));
    Digest::of(lines.collect::<String>())
}

fn targets(opened: &OpenProject, options: &AcceptOptions) -> Result<Vec<Target>, OpsError> {
    if options.targets.is_empty() {
        let accept = opened.invocation.line(&["accept"]);
        return Err(OpsError::Usage(format!(
            "name what to accept: `{accept} STAGE[/BATCH] --why TEXT`"
        )));
    }
    if options.why.trim().is_empty() {
        return Err(OpsError::Usage(
            "give a reason with `--why TEXT`: the journal records it".to_owned(),
        ));
    }
    let targets = options.targets.iter();
    targets
        .map(|text| Target::parse(&opened.pipeline, text))
        .map(|target| target.map_err(OpsError::from))
        .collect()
}
