//! Which batches of a stage run, wait or are left out.

use super::Schedule;
use super::observe::{Observe, ObserveError, Waiting};
use super::outcome::{AwaitedApproval, AwaitedMoney, Awaits};
use crate::model::policy::OnModified;
use crate::model::reason::{Condition, Reason};
use crate::model::stage::Stage;
use crate::model::state::State;
use crate::plan::decide::{Decision, Modification};
use crate::plan::lineage;
use crate::plan::options::selection::is_failed;
use crate::plan::scan::{BatchScan, StageScan};
use std::collections::{BTreeMap, BTreeSet};

/// The action for a batch in a plan or a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing: it is up to date.
    UpToDate,
    /// Restores the outputs from quarantine. Only in a plan: a run has done so.
    Restore,
    /// Revalidates the outputs. Only in a plan: a run knows the result.
    Revalidate,
    /// It runs, for these reasons.
    Run,
    /// It fails before it begins: an input is missing, or a precondition does not hold.
    Fail,
    /// It runs if a condition holds that is not known yet. Only in a plan.
    May,
    /// It waits for approval, for money, or for an external agent.
    Wait,
    /// It is out of date and does not run: it is not selected, exceeds the limit, or was not reached.
    Left,
}

/// The results of validating the outputs of batches again, by the places of the batches.
#[derive(Debug, Clone, Copy)]
pub struct Revalidated<'a> {
    /// Their outputs are no longer valid.
    pub invalid: &'a BTreeSet<usize>,
    /// Not reached, because the run was interrupted.
    pub left: &'a BTreeSet<usize>,
}

/// The decisions on the batches of a stage.
#[derive(Debug, Default)]
pub struct BatchSchedule {
    /// One action for each batch of the scan, in its order.
    pub actions: Vec<Action>,
    /// The places of the batches that are out of date, selected or not.
    pub open: Vec<usize>,
    /// The batches and questions that wait for external agents.
    pub awaits: Option<Awaits>,
    /// The approval that the stage waits for.
    pub approval: Option<AwaitedApproval>,
    /// The places of the batches that wait for it.
    pub unapproved: BTreeSet<usize>,
    /// The money that the stage waits for.
    pub money: Option<AwaitedMoney>,
    /// The places of the batches that wait for it.
    pub unpaid: BTreeSet<usize>,
    /// The external agents that batches wait for, by the places of the batches.
    pub waiting: BTreeMap<usize, String>,
    /// The conditions under which batches do not wait, by the places of the batches. Only in a plan.
    pub conditions: BTreeMap<usize, Condition>,
    /// True if later stages begin only if such a condition holds. Only in a plan.
    pub is_conditional: bool,
    /// Outputs that were modified by hand and accepted, of batches that would have to run: the run stops here, and `actions` is
    /// empty.
    pub modified: Vec<(String, Modification)>,
}

impl BatchSchedule {
    /// Returns the places of the batches with one of these actions, in order.
    pub fn places(&self, wanted: &[Action]) -> Vec<usize> {
        let all = self.actions.iter().enumerate();
        let wanted = all.filter(|(_, action)| wanted.contains(action));
        wanted.map(|(index, _)| index).collect()
    }

    /// Returns the number of batches with one of these actions.
    pub fn count(&self, wanted: &[Action]) -> u64 {
        let all = self.actions.iter();
        all.filter(|action| wanted.contains(action)).count() as u64
    }
}

impl Schedule<'_> {
    /// Decides on the batches of a stage that can begin, and counts those that run towards `--limit`. `revalidated` is `None` in a
    /// plan, where the results are not known yet.
    ///
    /// # Errors
    /// If an agent cannot be made ready.
    pub fn batches(
        &mut self,
        stage: &Stage,
        state: &State,
        found: &StageScan,
        revalidated: Option<Revalidated<'_>>,
        disk: &dyn Observe,
    ) -> Result<BatchSchedule, ObserveError> {
        if let Some(revalidated) = revalidated
            && stage.policy.altered != OnModified::Redo
        {
            let modified = pinned(state, stage, found, revalidated.invalid);
            if !modified.is_empty() {
                return Ok(BatchSchedule {
                    modified,
                    ..BatchSchedule::default()
                });
            }
        }
        let all = found.batches.iter().enumerate();
        let mut actions: Vec<Action> = all
            .map(|(index, batch)| initial(index, batch, revalidated))
            .collect();
        let is_open = |action: &Action| matches!(action, Action::Run | Action::Fail);
        let places = actions.iter().enumerate();
        let open: Vec<usize> = places
            .filter(|(_, action)| is_open(action))
            .map(|(index, _)| index)
            .collect();
        let unapproved = self.set_unapproved(stage, state, found, &mut actions);
        let mut batches = BatchSchedule {
            open,
            approval: Self::awaited_approval(stage, found, &unapproved),
            unapproved,
            ..BatchSchedule::default()
        };
        self.set_waiting(stage, found, &mut actions, &mut batches, disk)?;
        let is_plan = revalidated.is_none();
        if is_plan && let Some(condition) = self.depends_on(stage) {
            let places = 0..actions.len();
            batches.conditions = places.map(|index| (index, condition.clone())).collect();
        }
        for (action, batch) in actions.iter_mut().zip(&found.batches) {
            if is_open(action) && !self.selects(stage, state, found, batch) {
                *action = Action::Left;
            }
        }
        let settled = self.is_settled(stage);
        batches.conditions.retain(|&index, condition| {
            let runs = matches!(actions[index], Action::Run | Action::Revalidate);
            batches.is_conditional |= is_plan && runs;
            // A batch whose program decides the questions to an external agent runs, and may wait then.
            let is_open = !settled || !matches!(condition, Condition::Answered { .. });
            if is_plan && runs && is_open {
                actions[index] = Action::May;
            }
            actions[index] == Action::May
        });
        Ok(BatchSchedule { actions, ..batches })
    }

    /// Returns true if no earlier stage changes what a stage reads.
    pub fn is_settled(&self, stage: &Stage) -> bool {
        let upstream = lineage::upstream(self.pipeline, stage);
        upstream
            .iter()
            .all(|earlier| !self.has_changed(&earlier.name))
    }

    /// Returns the condition under which a stage begins that reads from one whose batches may wait.
    fn depends_on(&self, stage: &Stage) -> Option<Condition> {
        let upstream = lineage::ancestors(self.pipeline, stage).into_iter();
        let mut names = upstream.map(|earlier| &earlier.name);
        let stage = names.find(|name| self.conditional.contains(*name))?.clone();
        Some(Condition::StageCompletes { stage })
    }

    /// Sets the selected batches apart that wait for an external agent or for money.
    fn set_waiting(
        &self,
        stage: &Stage,
        found: &StageScan,
        actions: &mut [Action],
        batches: &mut BatchSchedule,
        disk: &dyn Observe,
    ) -> Result<(), ObserveError> {
        let all = actions.iter().zip(&found.batches).enumerate();
        let (places, scans): (Vec<usize>, Vec<&BatchScan>) = all
            .filter(|(_, (action, batch))| {
                **action == Action::Run && self.selection.wants_batch(&stage.name, &batch.batch.key)
            })
            .map(|(index, (_, batch))| (index, batch))
            .unzip();
        let waiting = disk.waiting(stage, &scans, self.is_settled(stage))?;
        let mut requests = Vec::new();
        for (index, waiting) in places.into_iter().zip(waiting) {
            match waiting {
                None => continue,
                Some(Waiting::Unknown(condition)) => {
                    batches.conditions.insert(index, condition);
                    continue;
                }
                Some(Waiting::Agent(sent)) => {
                    batches.waiting.insert(index, sent.agent.clone());
                    requests.push(*sent);
                }
                Some(Waiting::Money(why)) => {
                    batches.unpaid.insert(index);
                    let money = AwaitedMoney { why, batches: 0 };
                    batches.money.get_or_insert(money).batches += 1;
                }
            }
            actions[index] = Action::Wait;
        }
        batches.awaits = Awaits::of(requests.iter());
        if !found.certain {
            // Nobody has answered or paid for batches that are not known yet, as a rule.
            if batches.awaits.is_none() {
                let external = disk.external(stage);
                batches.awaits = (!external.is_empty()).then(|| Awaits::by(external));
            }
            if batches.money.is_none() {
                let why = disk.unpaid(stage)?;
                batches.money = why.map(|why| AwaitedMoney { why, batches: 0 });
            }
        }
        Ok(())
    }

    /// Returns true if the selection includes a batch that is out of date, and the limit has room for it.
    fn selects(
        &mut self,
        stage: &Stage,
        state: &State,
        found: &StageScan,
        batch: &BatchScan,
    ) -> bool {
        let selection = self.selection;
        let key = &batch.batch.key;
        if !selection.wants_batch(&stage.name, key) {
            return false;
        }
        let known = state.stages.get(&stage.name);
        let known = known.and_then(|known| known.batches.get(key));
        if selection.options.failed && !known.is_some_and(is_failed) {
            return false;
        }
        // A batch that fails before it begins costs nothing.
        let Ok(decision) = &batch.decision else {
            return true;
        };
        if matches!(decision, Decision::Will(reasons) if only_forced_before(reasons))
            && selection.skips_over(self.pipeline, stage, &|earlier| self.has_changed(earlier))
        {
            // A plan cannot know whether the stage can begin: the batches stay forced.
            return false;
        }
        if selection.options.known_failures.is_some()
            && selection.was_tried(&stage.name, key, &found.facts(batch))
        {
            return false;
        }
        if self.limit == Some(0) {
            return false;
        }
        self.limit = self.limit.map(|left| left - 1);
        true
    }
}

/// Returns the action on a batch before the selection is applied.
fn initial(index: usize, batch: &BatchScan, revalidated: Option<Revalidated<'_>>) -> Action {
    match &batch.decision {
        // A batch that lacks an input fails in its turn, so that every failure has the same consequences.
        Err(_) => Action::Fail,
        Ok(Decision::UpToDate) => Action::UpToDate,
        Ok(Decision::Restore(_)) => Action::Restore,
        Ok(Decision::Will(_)) => Action::Run,
        Ok(Decision::May(_)) => Action::May,
        Ok(Decision::Modified(_)) => Action::Left,
        Ok(Decision::Revalidate(_)) => match revalidated {
            None => Action::Revalidate,
            Some(found) if found.left.contains(&index) => Action::Left,
            Some(found) if found.invalid.contains(&index) => Action::Run,
            Some(_) => Action::UpToDate,
        },
    }
}

/// Returns true if a batch runs only because an earlier run was to force it.
fn only_forced_before(reasons: &[Reason]) -> bool {
    let is_forced = |reason: &Reason| matches!(reason, Reason::ForcedBefore { .. });
    !reasons.is_empty() && reasons.iter().all(is_forced)
}

/// Returns the outputs that a person accepted, of batches whose outputs are no longer valid: rebuilding them is that person's
/// decision.
fn pinned(
    state: &State,
    stage: &Stage,
    found: &StageScan,
    invalid: &BTreeSet<usize>,
) -> Vec<(String, Modification)> {
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
                    let file = Modification {
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
