//! Whether a stage may begin: what it reads from is complete, and nobody altered what it made.

use super::context::Context;
use super::report::StageStatus;
use super::survey::{Survey, Surveyed, survey};
use crate::base::path::FilePath;
use crate::model::checkpoint::Status;
use crate::model::reason::Reason;
use crate::model::stage::Stage;
use crate::model::state::State;
use crate::plan::decide::{Alteration, Decision, Wish};
use crate::plan::lineage;
use crate::plan::pending::Pending;
use crate::plan::selection::Selection;
use crate::plan::world::World;
use crate::store::layout;
use std::collections::BTreeMap;

/// Why a stage may not begin: an earlier one that it reads from, directly or through others, is not
/// complete. None when it may. `standing` says how the
/// stages ended, or are expected to, that this run looked at before.
///
/// # Errors
/// When the earlier stage cannot be looked at.
pub fn blocked_by(
    ctx: &Context<'_>,
    state: &State,
    standing: &BTreeMap<String, StageStatus>,
    stage: &Stage,
) -> Result<Option<String>, String> {
    let direct = lineage::upstream(ctx.pipeline, stage);
    let is_direct = |up: &Stage| direct.iter().any(|other| other.name == up.name);
    for up in lineage::ancestors(ctx.pipeline, stage) {
        let recorded = state.stages.get(&up.name).and_then(|known| known.status);
        let status = match standing.get(&up.name) {
            Some(StageStatus::Complete) => Some(Status::Complete),
            Some(StageStatus::Partial) => Some(Status::Partial),
            Some(_) => None,
            None => recorded,
        };
        let why = match status {
            None => "is not complete",
            // Of a stage further up, those between took it over.
            Some(Status::Partial) if is_direct(up) && !stage.allow_partial => "is partial",
            Some(_) if standing.contains_key(&up.name) || !outdated(ctx, state, up)? => continue,
            Some(_) => "is no longer up to date",
        };
        return Ok(Some(format!("stage `{}` {why}", up.name)));
    }
    Ok(None)
}

/// Whether a stage that is not to be run would have to.
fn outdated(ctx: &Context<'_>, state: &State, stage: &Stage) -> Result<bool, String> {
    let found = survey(ctx, stage, state, &Pending::default(), &|_| Wish::Needed)?;
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
    ctx: &Context<'_>,
    state: &State,
    selection: &Selection,
    stage: &Stage,
    found: &Survey,
) -> Result<Vec<(String, Alteration)>, String> {
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
    if let Some(recorded) = state.checkpoints.get(&stage.name) {
        let path = layout::checkpoint(stage.number);
        let file = FilePath::workspace(path.clone());
        let there = ctx.digest(&file)?;
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
