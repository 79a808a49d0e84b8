//! Whether a stage may begin: what it reads from is complete, and nobody altered what it made.

use super::engine::RunError;
use super::keeper::Keeper;
use super::survey::{Pending, Survey, Surveyed, survey};
use crate::base::path::FilePath;
use crate::model::checkpoint::Status;
use crate::model::reason::Reason;
use crate::model::stage::Stage;
use crate::plan::decide::{Alteration, Decision, Wish};
use crate::plan::lineage;
use crate::plan::selection::Selection;
use crate::plan::world::World;
use crate::store::layout;

/// Why a stage may not begin: an earlier one that it reads from is not complete. None when it may.
///
/// # Errors
/// When the earlier stage cannot be looked at.
pub fn blocked_by(
    keeper: &Keeper<'_>,
    selection: &Selection,
    stage: &Stage,
) -> Result<Option<String>, RunError> {
    let pipeline = keeper.ctx.pipeline;
    for up in lineage::upstream(pipeline, stage) {
        let status = keeper
            .state
            .stages
            .get(&up.name)
            .and_then(|known| known.status);
        let why = match status {
            None => Some("is not complete".to_owned()),
            Some(Status::Partial) if !stage.allow_partial => Some("is partial".to_owned()),
            Some(_) if selection.wants_stage(pipeline, up) => None,
            Some(_) => outdated(keeper, up)?.then(|| "is no longer up to date".to_owned()),
        };
        if let Some(why) = why {
            return Ok(Some(format!("stage `{}` {why}", up.name)));
        }
    }
    Ok(None)
}

/// Whether a stage that is not to be run would have to.
fn outdated(keeper: &Keeper<'_>, stage: &Stage) -> Result<bool, RunError> {
    let needed = |_: &str| Wish::Needed;
    let found = survey(
        &keeper.ctx,
        stage,
        &keeper.state,
        &Pending::default(),
        &needed,
    )
    .map_err(RunError::World)?;
    let fresh = |batch: &Surveyed| match &batch.decision {
        Ok(Decision::Reused | Decision::Judge(_)) => true,
        // A stage that is partial was let through: what failed in it stays failed here.
        Ok(Decision::Will(reasons)) => reasons
            .iter()
            .all(|reason| matches!(reason, Reason::Failed { .. })),
        _ => false,
    };
    Ok(!found.gone.is_empty() || !found.batches.iter().all(fresh))
}

/// The files of a stage that somebody altered, with the batches that made them; and its checkpoint, under no batch.
///
/// # Errors
/// When a file cannot be looked at.
pub fn altered(
    keeper: &Keeper<'_>,
    selection: &Selection,
    stage: &Stage,
    found: &Survey,
) -> Result<Vec<(String, Alteration)>, RunError> {
    let mut altered = Vec::new();
    for batch in &found.batches {
        if let Ok(Decision::Altered(files)) = &batch.decision {
            altered.extend(
                files
                    .iter()
                    .map(|file| (batch.batch.key.clone(), file.clone())),
            );
        }
    }
    if selection.force {
        return Ok(altered);
    }
    if let Some(recorded) = keeper.state.checkpoints.get(&stage.name) {
        let path = layout::checkpoint(stage.number);
        let file = FilePath::workspace(path.clone());
        let there = keeper.ctx.digest(&file).map_err(RunError::World)?;
        if let Some(there) = there.filter(|there| there != recorded) {
            altered.push((
                String::new(),
                Alteration {
                    path,
                    recorded: Some(*recorded),
                    found: there,
                    pinned: false,
                },
            ));
        }
    }
    Ok(altered)
}
