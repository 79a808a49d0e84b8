//! The beginning of a stage: checkpoints removed, facts recorded, what it takes over from others.

use super::engine::RunError;
use super::keeper::Keeper;
use super::survey::Survey;
use super::{finish, retire};
use crate::model::event::{Event, EventType};
use crate::model::stage::Stage;
use crate::plan::lineage;
use std::collections::BTreeMap;

/// Records that a stage begins, after its checkpoint is gone. Those of stages that read from it go when what it makes differs.
///
/// # Errors
/// When the disk fails.
pub fn begin(
    keeper: &mut Keeper<'_>,
    stage: &Stage,
    found: &Survey,
    will: u64,
) -> Result<(), RunError> {
    retire::remove_checkpoint(keeper, &stage.name, stage.number)?;
    keeper.flush()?;
    let batches = found.batches.len() as u64;
    let event = Event::StageStarted {
        stage: stage.name.clone(),
        number: stage.number,
        shared: found.shared_id.clone(),
        facts: (*found.shared).clone(),
        batches,
        will,
    };
    let summary = format!("{} begins: {will} of {batches} batches", stage.name);
    keeper.record(EventType::Invoke, &stage.name, event, summary, Vec::new())
}

/// Records that a stage takes over what others made.
///
/// # Errors
/// When the journal cannot be written.
pub fn handoff(keeper: &mut Keeper<'_>, stage: &Stage) -> Result<(), RunError> {
    let from: Vec<String> = lineage::upstream(keeper.ctx.pipeline, stage)
        .iter()
        .map(|up| up.name.clone())
        .collect();
    if from.is_empty() {
        return Ok(());
    }
    let mut files = 0;
    let mut summaries = BTreeMap::new();
    for up in &from {
        let Some(known) = keeper.state.stages.get(up) else {
            continue;
        };
        files += known.outputs().count() as u64;
        let summary = known
            .batches
            .values()
            .filter_map(|batch| batch.record.as_ref()?.summary.as_deref().cloned())
            .reduce(finish::merged);
        if let Some(summary) = summary {
            summaries.insert(up.clone(), summary);
        }
    }
    let text = format!(
        "{} takes over {files} files from {}",
        stage.name,
        from.join(", ")
    );
    let event = Event::Handoff {
        stage: stage.name.clone(),
        from,
        files,
        summaries,
    };
    keeper.record(EventType::Handoff, &stage.name, event, text, Vec::new())
}
