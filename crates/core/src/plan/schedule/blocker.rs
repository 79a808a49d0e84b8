//! The preconditions of a stage: the stages that it reads from are complete and up to date.

use super::observe::{Observe, ObserveError};
use super::outcome::StageStatus;
use crate::model::checkpoint::Status;
use crate::model::pipeline::Pipeline;
use crate::model::reason::Reason;
use crate::model::stage::Stage;
use crate::model::state::{BatchState, State};
use crate::plan::batches::expand::batch_name;
use crate::plan::decide::Decision;
use crate::plan::lineage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The earlier stage that blocks a stage, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Blocker {
    /// The stage.
    pub stage: String,
    /// Its number.
    pub number: u32,
    /// Why it blocks.
    pub how: Precondition,
    /// The first batch that failed, of it or of a stage before it: `STAGE/BATCH`.
    pub failed: Option<String>,
    /// True if a service may have carried out the request of one of its failed batches.
    #[serde(skip)]
    pub sent: bool,
    /// Its files that were modified by hand.
    pub altered: Vec<String>,
}

/// The precondition that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Precondition {
    /// The stage has no checkpoint.
    Incomplete,
    /// The stage is partial, and the blocked one does not declare `allow_partial`.
    Partial,
    /// The stage is out of date.
    Outdated,
    /// The outputs of the stage must be revalidated.
    #[serde(rename = "unjudged")]
    Unvalidated,
    /// The outputs of the stage were modified by hand.
    #[serde(rename = "altered")]
    Modified,
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.how {
            Precondition::Incomplete => "is not complete",
            Precondition::Partial => {
                "is partial: `allow_partial = true` in this stage reads what is there"
            }
            Precondition::Outdated => "is out of date",
            Precondition::Unvalidated => "must be revalidated",
            Precondition::Modified => "has files that were modified by hand",
        };
        write!(f, "stage `{}` {how}", self.stage)
    }
}

impl Blocker {
    /// Returns true if it goes back to a failed batch whose stage declares no policy for failures.
    pub fn is_failure(&self, pipeline: &Pipeline) -> bool {
        let failed = self.failed.as_deref().unwrap_or_default();
        let stage = failed.split('/').next().unwrap_or_default();
        let declared = pipeline.stages.iter().find(|one| one.name == stage);
        declared.is_some_and(|declared| !declared.policy.tolerates_failures())
    }
}

/// Returns the stage that blocks this one, directly or through others. `ended` has the known or expected outcomes of the stages
/// that this run has passed; for all other stages, the records and the disk decide.
pub(super) fn of(
    pipeline: &Pipeline,
    state: &State,
    ended: &BTreeMap<String, StageStatus>,
    stage: &Stage,
    disk: &dyn Observe,
) -> Result<Option<Blocker>, ObserveError> {
    let direct = lineage::upstream(pipeline, stage);
    let is_direct = |up: &Stage| direct.iter().any(|other| other.name == up.name);
    for up in lineage::ancestors(pipeline, stage) {
        let recorded = state.stages.get(&up.name).and_then(|known| known.status);
        let status = match ended.get(&up.name) {
            Some(StageStatus::Complete) => Some(Status::Complete),
            Some(StageStatus::Partial) => Some(Status::Partial),
            Some(_) => None,
            None => recorded,
        };
        let (how, altered) = match status {
            None => (Precondition::Incomplete, Vec::new()),
            // A stage between the two has accepted what is missing further up.
            Some(Status::Partial) if is_direct(up) && !stage.allow_partial => {
                (Precondition::Partial, Vec::new())
            }
            Some(_) if ended.contains_key(&up.name) => continue,
            Some(_) => match outdated(state, up, disk)? {
                Some(found) => found,
                None => continue,
            },
        };
        let known = state.stages.get(&up.name);
        let batches = known.into_iter().flat_map(|known| known.batches.values());
        let mut failures = batches.filter_map(BatchState::last_failure);
        return Ok(Some(Blocker {
            sent: failures.any(|outcome| outcome.accepted.is_some()),
            stage: up.name.clone(),
            number: up.number,
            how,
            failed: failed_before(pipeline, state, up),
            altered,
        }));
    }
    Ok(None)
}

/// Returns what is wrong with a stage that is not selected, with its modified files.
fn outdated(
    state: &State,
    stage: &Stage,
    disk: &dyn Observe,
) -> Result<Option<(Precondition, Vec<String>)>, ObserveError> {
    let found = disk.scan_outdated(stage, state)?;
    let mut altered = Vec::new();
    let mut unvalidated = false;
    let mut stale = !found.gone.is_empty() || !found.ahead.is_empty();
    for batch in &found.batches {
        match &batch.decision {
            Ok(Decision::UpToDate) => {}
            Ok(Decision::Revalidate(_)) => unvalidated = true,
            Ok(Decision::Modified(files)) => {
                altered.extend(files.iter().map(|file| file.path.to_string()));
            }
            // The stage counts as partial for its failed batches already.
            Ok(Decision::Will(reasons)) if only_failed(reasons) => {}
            _ => stale = true,
        }
    }
    let how = match (stale, unvalidated) {
        _ if !altered.is_empty() => Some(Precondition::Modified),
        (true, _) => Some(Precondition::Outdated),
        (false, true) => Some(Precondition::Unvalidated),
        (false, false) => None,
    };
    Ok(how.map(|how| (how, altered)))
}

/// Returns true if a batch runs only because it failed, forced or not.
pub fn only_failed(reasons: &[Reason]) -> bool {
    let is_failed = |reason: &Reason| matches!(reason, Reason::Failed { .. });
    let is_forced = |reason: &Reason| matches!(reason, Reason::ForcedBefore { .. });
    reasons.iter().any(is_failed)
        && reasons
            .iter()
            .all(|reason| is_failed(reason) || is_forced(reason))
}

/// Returns the first failed batch, of this stage or of one that it depends on: `STAGE/BATCH`.
fn failed_before(pipeline: &Pipeline, state: &State, stage: &Stage) -> Option<String> {
    let before = lineage::ancestors(pipeline, stage);
    before.into_iter().chain([stage]).find_map(|other| {
        let known = state.stages.get(&other.name)?;
        let mut batches = known.batches.iter();
        let (key, _) = batches.find(|(_, batch)| batch.last_failure().is_some())?;
        Some(batch_name(&other.name, key))
    })
}
