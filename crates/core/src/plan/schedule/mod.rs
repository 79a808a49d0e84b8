//! The schedule: decides which stages and batches run, and why. Runs, plans, leases and `watch` all go by it.
//!
//! A caller takes the stages in order. For each, [`Schedule::stage`] decides whether it can begin, [`Schedule::batches`] which of
//! its batches run, and the caller reports the outcome: a run with [`Schedule::ended`] as it happened, a plan with
//! [`Schedule::expect`] as it is expected.

mod approve;
mod batches;
mod blocker;
mod facts;
#[cfg(test)]
mod fixture;
mod lease;
mod observe;
mod outcome;
mod planned;
#[cfg(test)]
mod tests;

pub use approve::needs_approval;
pub use batches::{Action, BatchSchedule, Revalidated};
pub use blocker::{Blocker, Precondition, only_failed};
pub use facts::BatchFacts;
pub use lease::{Candidate, HeldLease, LeaseRequest, NotLeased, next_lease};
pub use observe::{Observe, ObserveError, PolicyOf, Waiting};
pub use outcome::{AwaitedApproval, AwaitedMoney, Awaits, StageStatus, StageTotals};
pub use planned::PlannedState;

use crate::model::outcome::Outcome;
use crate::model::pipeline::Pipeline;
use crate::model::policy::OnModified;
use crate::model::reason::Reason;
use crate::model::stage::Stage;
use crate::model::state::State;
use crate::model::step::{Step, StepKind};
use crate::plan::decide::{Decision, Modification, RebuildPolicy};
use crate::plan::options::selection::Selection;
use crate::plan::pending::Pending;
use crate::plan::scan::StageScan;
use std::collections::{BTreeMap, BTreeSet};

/// The decision on a stage when its turn comes.
#[derive(Debug)]
pub enum StageDecision {
    /// The selection leaves it out.
    Skipped,
    /// The run stops at this earlier stage, whose outputs were modified by hand.
    Stopped(String),
    /// An earlier stage blocks it.
    Blocked(Blocker),
    /// The batches cannot be decided, for this reason.
    Failed(String),
    /// The run stops here: outputs of these batches were modified by hand. The stage's checkpoint has no batch.
    Modified(StageScan, Vec<(String, Modification)>),
    /// It can begin.
    Ready(StageScan),
}

/// The schedule of a run: the outcomes so far, known or expected, and what follows from them for later stages.
#[derive(Debug)]
pub struct Schedule<'a> {
    pipeline: &'a Pipeline,
    selection: &'a Selection,
    ended: BTreeMap<String, StageStatus>,
    /// Stages whose outputs changed, or may change.
    changed: BTreeSet<String>,
    /// Stages with batches that may wait: whether they do is not known yet. Only in a plan.
    conditional: BTreeSet<String>,
    /// Batches that may still run under `--limit`.
    limit: Option<u64>,
    stopped_at: Option<String>,
}

impl<'a> Schedule<'a> {
    /// Starts before the first stage.
    pub fn new(pipeline: &'a Pipeline, selection: &'a Selection) -> Self {
        Self {
            pipeline,
            selection,
            ended: BTreeMap::new(),
            changed: BTreeSet::new(),
            conditional: BTreeSet::new(),
            limit: selection.options.limit,
            stopped_at: None,
        }
    }

    /// Decides whether a stage can begin. `pending` is empty in a run: everything before the stage has happened.
    ///
    /// # Errors
    /// If an earlier stage or the checkpoint cannot be read.
    pub fn stage(
        &self,
        stage: &Stage,
        state: &State,
        pending: &Pending,
        disk: &dyn Observe,
    ) -> Result<StageDecision, ObserveError> {
        let selection = self.selection;
        if !selection.wants_stage(self.pipeline, stage) {
            return Ok(StageDecision::Skipped);
        }
        if let Some(stop) = &self.stopped_at {
            return Ok(StageDecision::Stopped(stop.clone()));
        }
        if let Some(blocker) = blocker::of(self.pipeline, state, &self.ended, stage, disk)? {
            return Ok(StageDecision::Blocked(blocker));
        }
        let found = match self.scan(stage, state, pending, disk) {
            Ok(found) => found,
            Err(why) => return Ok(StageDecision::Failed(why.0)),
        };
        let keys = found.batches.iter().map(|batch| batch.batch.key.as_str());
        if found.certain
            && let Some(why) = selection.unknown_batch(&stage.name, keys)
        {
            return Ok(StageDecision::Failed(why));
        }
        let modified = self.modified(stage, state, &found, disk)?;
        Ok(if modified.is_empty() {
            StageDecision::Ready(found)
        } else {
            StageDecision::Modified(found, modified)
        })
    }

    /// Checks which batches of a stage are up to date, whether it can begin or not.
    ///
    /// # Errors
    /// If its batches cannot be listed.
    pub fn scan(
        &self,
        stage: &Stage,
        state: &State,
        pending: &Pending,
        disk: &dyn Observe,
    ) -> Result<StageScan, ObserveError> {
        let policy = |batch: &str| rebuild_policy(self.selection, stage, batch);
        let mut found = disk.scan(stage, state, pending, &policy)?;
        let once = |step: &Step| matches!(&step.kind, StepKind::Http(call) if !call.idempotent);
        if self.selection.options.failed || !stage.steps.iter().any(once) {
            return Ok(found);
        }
        for batch in &mut found.batches {
            let facts = format!("{}{}", found.shared_id, batch.own.id());
            if let Ok(Decision::Will(reasons)) = &batch.decision
                && let Some(outcome) = sent_before(reasons, &facts)
            {
                batch.decision = Err(outcome.clone().into());
            }
        }
        Ok(found)
    }

    /// Returns the files that were modified by hand, with their batches, and the modified checkpoint under no batch.
    fn modified(
        &self,
        stage: &Stage,
        state: &State,
        found: &StageScan,
        disk: &dyn Observe,
    ) -> Result<Vec<(String, Modification)>, ObserveError> {
        let mut modified = Vec::new();
        for batch in &found.batches {
            if let Ok(Decision::Modified(files)) = &batch.decision {
                let files = files.iter().cloned();
                modified.extend(files.map(|file| (batch.batch.key.clone(), file)));
            }
        }
        if self.selection.options.force {
            return Ok(modified);
        }
        if let Some(recorded) = state.checkpoints.get(&stage.name)
            && let Some((path, there)) = disk.checkpoint(stage)?
            && there != *recorded
        {
            let file = Modification {
                path,
                recorded: Some(*recorded),
                found: there,
                pinned: false,
            };
            modified.push((String::new(), file));
        }
        Ok(modified)
    }

    /// Records how a stage ended, and whether its outputs changed.
    pub fn ended(&mut self, stage: &Stage, status: StageStatus, changed: bool) {
        self.ended.insert(stage.name.clone(), status);
        if changed {
            self.changed.insert(stage.name.clone());
        }
        if status == StageStatus::Modified {
            self.stopped_at = Some(stage.name.clone());
        }
    }

    /// Returns true if the outputs of a stage changed, or may change.
    pub fn has_changed(&self, stage: &str) -> bool {
        self.changed.contains(stage)
    }
}

/// Returns the failure of a batch with these facts whose request is not sent again; `None` if there is none, or a person forced it.
fn sent_before<'a>(reasons: &'a [Reason], facts: &str) -> Option<&'a Outcome> {
    let is_forced =
        |reason: &Reason| matches!(reason, Reason::Forced | Reason::ForcedBefore { .. });
    let failed = reasons.iter().find_map(|reason| match reason {
        Reason::Failed { outcome } => Some(outcome),
        _ => None,
    });
    failed.filter(|outcome| {
        outcome.accepted.as_deref() == Some(facts) && !reasons.iter().any(is_forced)
    })
}

/// Returns what to rebuild of a batch, by the selection and the stage's declaration.
fn rebuild_policy(selection: &Selection, stage: &Stage, batch: &str) -> RebuildPolicy {
    if selection.options.force && selection.wants_batch(&stage.name, batch) {
        RebuildPolicy::Forced
    } else if stage.policy.altered == OnModified::Redo {
        RebuildPolicy::NeededAndModified
    } else {
        RebuildPolicy::Needed
    }
}
