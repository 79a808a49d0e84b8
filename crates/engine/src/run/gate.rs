//! Whether a stage may begin: what it reads from is complete, and nobody altered what it made.

use super::attempt::batch_name;
use super::context::Context;
use super::report::StageStatus;
use super::survey::{Keep, Survey, survey};
use milepost_core::base::path::FilePath;
use milepost_core::model::checkpoint::Status;
use milepost_core::model::pipeline::Pipeline;
use milepost_core::model::reason::Reason;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::{Phase, State};
use milepost_core::plan::decide::{Alteration, Decision, Wish};
use milepost_core::plan::lineage;
use milepost_core::plan::pending::Pending;
use milepost_core::plan::selection::Selection;
use milepost_core::plan::world::World;
use milepost_store::store::layout;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The earlier stage that is in a stage's way, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Obstacle {
    /// The stage.
    pub stage: String,
    /// Its number.
    pub number: u32,
    /// What is wrong with it.
    pub how: Hindrance,
    /// The first batch that failed, of it or of one before it: `STAGE/BATCH`.
    pub failed: Option<String>,
    /// Its files that somebody altered.
    pub altered: Vec<String>,
}

/// What is wrong with a stage that another reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Hindrance {
    /// It has no checkpoint.
    Incomplete,
    /// It is partial, and the other takes nothing from a partial one.
    Partial,
    /// It would have to run again.
    Outdated,
    /// Its outputs have to be validated again.
    Unjudged,
    /// Somebody altered what it made.
    Altered,
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = match self.how {
            Hindrance::Incomplete => "is not complete",
            Hindrance::Partial => {
                "is partial: `allow_partial = true` in this stage reads what is there"
            }
            Hindrance::Outdated => "is no longer up to date",
            Hindrance::Unjudged => "has to be validated again",
            Hindrance::Altered => "has files that somebody altered",
        };
        write!(f, "stage `{}` {how}", self.stage)
    }
}

/// Why a stage may not begin: an earlier one that it reads from, directly or through others, is not complete. None when it may.
/// `standing` says how the
/// stages ended, or are expected to, that this run looked at before.
///
/// # Errors
/// When the earlier stage cannot be looked at.
pub fn blocked_by(
    ctx: &Context<'_>,
    state: &State,
    standing: &BTreeMap<String, StageStatus>,
    stage: &Stage,
) -> Result<Option<Obstacle>, String> {
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
        let (how, altered) = match status {
            None => (Hindrance::Incomplete, Vec::new()),
            // Of a stage further up, those between took it over.
            Some(Status::Partial) if is_direct(up) && !stage.allow_partial => {
                (Hindrance::Partial, Vec::new())
            }
            Some(_) if standing.contains_key(&up.name) => continue,
            Some(_) => match outdated(ctx, state, up)? {
                Some(found) => found,
                None => continue,
            },
        };
        return Ok(Some(Obstacle {
            stage: up.name.clone(),
            number: up.number,
            how,
            failed: failed_before(ctx, state, up),
            altered,
        }));
    }
    Ok(None)
}

/// Returns true if a stage is blocked because a batch failed for which its stage declares no policy.
pub fn is_failure(pipeline: &Pipeline, obstacle: &Obstacle) -> bool {
    let failed = obstacle.failed.as_deref().unwrap_or_default();
    let stage = failed.split('/').next().unwrap_or_default();
    let declared = pipeline.stages.iter().find(|one| one.name == stage);
    declared.is_some_and(|declared| !declared.policy.tolerates_failures())
}

/// What is wrong with a stage that is not to be run and would have to, with its altered files.
fn outdated(
    ctx: &Context<'_>,
    state: &State,
    stage: &Stage,
) -> Result<Option<(Hindrance, Vec<String>)>, String> {
    let found = survey(
        ctx,
        stage,
        state,
        &Pending::default(),
        &|_| Wish::Needed,
        Keep::Undone,
    )?;
    let mut altered = Vec::new();
    let mut unjudged = false;
    let mut stale = !found.gone.is_empty();
    for batch in &found.batches {
        match &batch.decision {
            Ok(Decision::Reused) => {}
            Ok(Decision::Judge(_)) => unjudged = true,
            Ok(Decision::Altered(files)) => {
                altered.extend(files.iter().map(|file| file.path.to_string()));
            }
            // A stage that is partial was let through: what failed in it stays failed here.
            Ok(Decision::Will(reasons)) if only_failed(reasons) => {}
            _ => stale = true,
        }
    }
    Ok(if !altered.is_empty() {
        Some((Hindrance::Altered, altered))
    } else if stale {
        Some((Hindrance::Outdated, altered))
    } else if unjudged {
        Some((Hindrance::Unjudged, altered))
    } else {
        None
    })
}

/// Returns true if a batch runs for nothing but that it failed, forced or not.
pub fn only_failed(reasons: &[Reason]) -> bool {
    let is_failed = |reason: &Reason| matches!(reason, Reason::Failed { .. });
    let is_forced = |reason: &Reason| matches!(reason, Reason::ForcedBefore { .. });
    reasons.iter().any(is_failed)
        && reasons
            .iter()
            .all(|reason| is_failed(reason) || is_forced(reason))
}

/// Returns true if a batch runs for nothing but that an earlier run was to force it.
pub fn only_forced_before(reasons: &[Reason]) -> bool {
    let is_forced = |reason: &Reason| matches!(reason, Reason::ForcedBefore { .. });
    !reasons.is_empty() && reasons.iter().all(is_forced)
}

/// Files that a person pinned, of batches that do not hold any more: to make them again is that person's word.
pub fn pinned(
    state: &State,
    stage: &Stage,
    found: &Survey,
    invalid: &BTreeSet<usize>,
) -> Vec<(String, Alteration)> {
    let known = state.stages.get(&stage.name);
    let record = |key: &str| known?.batches.get(key)?.record.as_ref();
    let keys = invalid.iter().map(|&index| &found.batches[index].batch.key);
    let records = keys.filter_map(|key| record(key).filter(|record| record.pin.is_some()));
    records
        .flat_map(|record| {
            let outputs = record.outputs.iter();
            outputs
                .filter(|made| record.is_by_hand(&made.path))
                .map(|made| {
                    let file = Alteration {
                        path: made.path.clone(),
                        recorded: Some(made.digest),
                        found: made.digest,
                        pinned: true,
                    };
                    (record.key.clone(), file)
                })
        })
        .collect()
}

/// The first batch that failed, of this stage or of one that it depends on.
fn failed_before(ctx: &Context<'_>, state: &State, stage: &Stage) -> Option<String> {
    let leads_here = |other: &Stage| {
        other.name == stage.name
            || lineage::downstream(ctx.pipeline, &other.name)
                .iter()
                .any(|down| down.name == stage.name)
    };
    let stages = ctx.pipeline.stages.iter();
    stages.filter(|other| leads_here(other)).find_map(|other| {
        let known = state.stages.get(&other.name)?;
        let mut batches = known.batches.iter();
        let (key, _) = batches.find(|(_, batch)| matches!(batch.phase, Phase::Failed { .. }))?;
        Some(batch_name(&other.name, key))
    })
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
    if selection.options.force {
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
