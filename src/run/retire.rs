//! Takes away what no live batch makes any more.

use super::engine::RunError;
use super::keeper::Keeper;
use super::notice::{Notice, Observer};
use crate::base::path::{FilePath, RelPath};
use crate::model::event::{Event, EventType};
use crate::model::state::StageState;
use crate::plan::world::World;
use crate::store::{checkpoint, quarantine};
use std::collections::{BTreeMap, HashMap};

/// Moves the files of batches that there are no more to quarantine, and forgets the batches.
///
/// # Errors
/// When the disk fails.
pub fn batches(
    keeper: &mut Keeper<'_>,
    stage: &str,
    keys: &[String],
    observer: &mut dyn Observer,
) -> Result<(), RunError> {
    let mut makers = if keys.is_empty() {
        HashMap::new()
    } else {
        makers(keeper)
    };
    for key in keys {
        let files = files_of(keeper, stage, key, &mut makers)?;
        let count = files.len() as u64;
        let summary = format!(
            "{} is no longer made: {count} files to quarantine",
            super::attempt::batch_name(stage, key)
        );
        let refs = files.values().take(100).map(ToString::to_string).collect();
        let event = Event::Retired {
            stage: stage.to_owned(),
            batch: key.clone(),
            files: files.clone(),
        };
        keeper.record(EventType::Revision, "milepost", event, summary, refs)?;
        keeper.flush()?;
        for (from, to) in &files {
            quarantine::keep(keeper.ctx.disk, keeper.ctx.layout, from, to)?;
        }
        if count > 0 {
            observer.notice(Notice::Retired {
                stage: stage.to_owned(),
                batch: key.clone(),
                files: count,
            });
        }
    }
    Ok(())
}

/// How many batches of all stages made each file.
fn makers(keeper: &Keeper<'_>) -> HashMap<RelPath, usize> {
    let mut makers = HashMap::new();
    for (_, made) in keeper.state.stages.values().flat_map(StageState::outputs) {
        *makers.entry(made.path.clone()).or_default() += 1;
    }
    makers
}

/// What a batch made that is still there and that no other batch made since, with where it goes. The batch is no maker of
/// its files any more.
fn files_of(
    keeper: &Keeper<'_>,
    stage: &str,
    key: &str,
    makers: &mut HashMap<RelPath, usize>,
) -> Result<BTreeMap<RelPath, RelPath>, RunError> {
    let Some(batch) = keeper
        .state
        .stages
        .get(stage)
        .and_then(|known| known.batches.get(key))
    else {
        return Ok(BTreeMap::new());
    };
    let made = batch
        .record
        .iter()
        .flat_map(|record| record.outputs.iter().map(|made| &made.path));
    for path in made.clone() {
        if let Some(count) = makers.get_mut(path) {
            *count -= 1;
        }
    }
    let mut files = BTreeMap::new();
    for path in made.chain(batch.remains.keys()) {
        let made_by_another = makers.get(path).is_some_and(|&count| count > 0);
        let there = keeper
            .ctx
            .digest(&FilePath::workspace(path.clone()))
            .map_err(RunError::World)?;
        if !made_by_another && there.is_some() {
            files.insert(path.clone(), keeper.aside("retired", path));
        }
    }
    Ok(files)
}

/// Forgets stages that are no longer declared, and checkpoints that stand under another number.
///
/// # Errors
/// When the disk fails.
pub fn stages(
    keeper: &mut Keeper<'_>,
    observer: &mut dyn Observer,
) -> Result<Vec<String>, RunError> {
    let mut forgotten = Vec::new();
    let known: Vec<(String, u32, bool)> = keeper
        .state
        .stages
        .iter()
        .map(|(name, known)| (name.clone(), known.number, known.status.is_some()))
        .collect();
    for (name, number, has_checkpoint) in known {
        let declared = keeper
            .ctx
            .pipeline
            .stages
            .iter()
            .find(|stage| stage.name == name)
            .map(|stage| stage.number);
        if has_checkpoint && declared != Some(number) {
            remove_checkpoint(keeper, &name, number)?;
        }
        if declared.is_none() {
            let keys: Vec<String> = keeper
                .state
                .stages
                .get(&name)
                .map_or_else(Vec::new, |known| known.batches.keys().cloned().collect());
            batches(keeper, &name, &keys, observer)?;
            let summary = format!("stage {name} is no longer declared");
            keeper.record(
                EventType::Revision,
                "milepost",
                Event::StageForgotten {
                    stage: name.clone(),
                },
                summary,
                Vec::new(),
            )?;
            forgotten.push(name);
        }
    }
    Ok(forgotten)
}

/// Removes a checkpoint durably, before what it vouches for is replaced.
///
/// # Errors
/// When the disk fails.
pub fn remove_checkpoint(
    keeper: &mut Keeper<'_>,
    stage: &str,
    number: u32,
) -> Result<(), RunError> {
    let has_one = keeper
        .state
        .stages
        .get(stage)
        .is_some_and(|known| known.status.is_some());
    if !has_one {
        return Ok(());
    }
    checkpoint::remove(keeper.ctx.disk, keeper.ctx.layout, number)?;
    let event = Event::CheckpointRemoved {
        stage: stage.to_owned(),
        number,
    };
    let summary = format!("stage_{number}_complete.json is removed: {stage} is to be made again");
    keeper.record(EventType::Revision, "milepost", event, summary, Vec::new())
}
