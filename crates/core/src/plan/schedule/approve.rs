//! Which batches of a stage with `[approve]` a person must approve before they run.

use super::Schedule;
use super::batches::Action;
use super::outcome::AwaitedApproval;
use crate::model::reason::Reason;
use crate::model::stage::Stage;
use crate::model::state::State;
use crate::plan::decide::Decision;
use crate::plan::scan::{BatchScan, StageScan};
use std::collections::BTreeSet;

impl Schedule<'_> {
    /// Sets the selected batches apart that would run without a person's approval, and returns their places.
    pub(super) fn set_unapproved(
        &self,
        stage: &Stage,
        state: &State,
        found: &StageScan,
        actions: &mut [Action],
    ) -> BTreeSet<usize> {
        if stage.approve.is_none() {
            return BTreeSet::new();
        }
        let mut unapproved = BTreeSet::new();
        let all = actions.iter_mut().zip(&found.batches).enumerate();
        for (index, (action, batch)) in all {
            if *action == Action::Run
                && self.selection.wants_batch(&stage.name, &batch.batch.key)
                && needs_approval(stage, state, found, batch)
            {
                *action = Action::Wait;
                unapproved.insert(index);
            }
        }
        unapproved
    }

    /// Returns the approval that a stage waits for. Nobody has approved batches that are not known yet.
    pub(super) fn awaited_approval(
        stage: &Stage,
        found: &StageScan,
        unapproved: &BTreeSet<usize>,
    ) -> Option<AwaitedApproval> {
        let by = stage.approve.as_ref()?;
        (!found.certain || !unapproved.is_empty()).then(|| AwaitedApproval {
            by: by.clone(),
            batches: unapproved.len() as u64,
        })
    }
}

/// Returns true if a batch of a stage with `[approve]` must be approved before it runs: it has no approval with its present facts,
/// and was not built with them either.
pub fn needs_approval(stage: &Stage, state: &State, found: &StageScan, batch: &BatchScan) -> bool {
    let key = &batch.batch.key;
    let known = state.stages.get(&stage.name);
    let known = known.and_then(|known| known.batches.get(key));
    let has_record = known.is_some_and(|known| known.record.is_some());
    // A batch that is rebuilt unchanged: a person would see no difference.
    let is_same = |reason: &Reason| match reason {
        Reason::Deleted { .. }
        | Reason::Renamed { .. }
        | Reason::Modified { .. }
        | Reason::Failed { .. }
        | Reason::Forced
        | Reason::ForcedBefore { .. } => has_record,
        Reason::NeverMade | Reason::Changed(_) | Reason::Stale { .. } => false,
    };
    let is_rebuilt =
        matches!(&batch.decision, Ok(Decision::Will(reasons)) if reasons.iter().all(is_same));
    !is_rebuilt && !state.is_approved(&stage.name, key, &found.facts(batch))
}
