//! The state that a plan expects when a stage's turn comes: what is recorded, with the expected outcomes of the stages before.

use super::batches::{Action, BatchSchedule};
use super::outcome::StageStatus;
use super::{Schedule, StageDecision};
use crate::base::path::RelPath;
use crate::model::pipeline::Pipeline;
use crate::model::stage::Stage;
use crate::model::state::State;
use crate::plan::decide::Decision;
use crate::plan::machine::apply;
use crate::plan::options::selection::Selection;
use crate::plan::pending::{Expected, Pending};
use crate::plan::retired;
use crate::plan::scan::StageScan;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The state that a plan expects.
#[derive(Debug)]
pub struct PlannedState<'a> {
    /// The expected records.
    pub state: Cow<'a, State>,
    /// The changes that earlier stages may still make.
    pub pending: Pending,
}

impl<'a> PlannedState<'a> {
    /// Starts with what is recorded, and with what a run does before its first stage.
    pub fn new(pipeline: &Pipeline, selection: &Selection, known: &'a State) -> Self {
        let mut state = Cow::Borrowed(known);
        let mut pending = Pending::default();
        for (name, stage) in &known.stages {
            match pipeline
                .stages
                .iter()
                .find(|declared| declared.name == *name)
            {
                // A run first retires stages that are no longer declared,
                None => pending.forget(&mut state, name),
                // and removes a checkpoint that has another number.
                Some(declared) if declared.number != stage.number => {
                    state.to_mut().checkpoints.remove(name);
                    if let Some(stage) = state.to_mut().stages.get_mut(name) {
                        stage.status = None;
                    }
                }
                Some(_) => {}
            }
        }
        if selection.options.no_force {
            for stage in &pipeline.stages {
                let wanted = selection.wants_stage(pipeline, stage);
                let dropped = selection.drop_force(&state, &stage.name);
                if let Some(event) = dropped.filter(|_| wanted) {
                    // It can follow any event.
                    let _ = apply(state.to_mut(), "", &event);
                }
            }
        }
        Self { state, pending }
    }

    /// Takes in what the batches of a stage are expected to do. Returns the files that go to quarantine because nothing makes them
    /// any more, each with its batch. `scope_of` returns the values that are known before the batch at this place runs.
    pub fn expect(
        &mut self,
        stage: &Stage,
        found: &StageScan,
        batches: &BatchSchedule,
        scope_of: &dyn Fn(usize) -> Map<String, Value>,
    ) -> Vec<(String, RelPath)> {
        for batch in &found.batches {
            if let Ok(Decision::Restore(event)) = &batch.decision {
                let state = self.state.to_mut();
                state.stages.entry(stage.name.clone()).or_default();
                // It can follow any event.
                let _ = apply(state, "", event);
            }
        }
        let all = found.batches.iter().zip(&batches.actions).enumerate();
        let expected: Vec<_> = all
            .map(|(index, (batch, action))| {
                let expected = match action {
                    Action::Run => Expected::Runs,
                    // Later stages begin only if it runs.
                    Action::May if batches.conditions.contains_key(&index) => Expected::Runs,
                    Action::May | Action::Revalidate => Expected::Perhaps,
                    _ => Expected::Same,
                };
                (batch.batch.key.as_str(), expected, &batch.targets)
            })
            .collect();
        let leaving = self.leaving(stage, found, &expected, scope_of);
        self.pending.expect(
            &mut self.state,
            stage,
            found.certain,
            &found.gone,
            expected.into_iter(),
        );
        leaving
    }

    fn leaving(
        &self,
        stage: &Stage,
        found: &StageScan,
        expected: &[(&str, Expected, &BTreeMap<String, RelPath>)],
        scope_of: &dyn Fn(usize) -> Map<String, Value>,
    ) -> Vec<(String, RelPath)> {
        let Some(known) = self.state.stages.get(&stage.name) else {
            return Vec::new();
        };
        let mut files = retired::of_gone(known, &found.gone);
        for (index, (key, expects, targets)) in expected.iter().enumerate() {
            if *expects == Expected::Runs
                && let Some((key, known)) = known.batches.get_key_value(*key)
            {
                let leaving = retired::of_batch(stage, known, targets, &scope_of(index));
                files.extend(leaving.into_iter().map(|path| (key.as_str(), path)));
            }
        }
        // A file that another batch makes at the same path stays.
        let made = expected.iter().flat_map(|(_, _, targets)| targets.values());
        let made: BTreeSet<&RelPath> = made.collect();
        let is_own = |(key, path): &(&str, &RelPath)| {
            let is_gone = found.gone.iter().any(|gone| gone == key);
            !is_gone || !made.contains(path)
        };
        files
            .into_iter()
            .filter(is_own)
            .map(|(key, path)| (key.to_owned(), path.clone()))
            .collect()
    }
}

impl Schedule<'_> {
    /// Records how a stage is expected to end if no further batch fails. `problem` is true if nothing can be decided about the
    /// stage.
    pub fn expect(
        &mut self,
        stage: &Stage,
        decision: &StageDecision,
        batches: Option<&BatchSchedule>,
        problem: bool,
    ) {
        let problem = problem || matches!(decision, StageDecision::Failed(_));
        let tolerates = self.selection.options.keep_going || stage.policy.tolerates_failures();
        let count = |actions: &[Action]| batches.map_or(0, |batches| batches.count(actions));
        let fails = count(&[Action::Fail]) > 0;
        let waits = batches.is_some_and(|batches| batches.awaits.is_some());
        let unsure = waits_for_unknown(decision, batches);
        let status = match decision {
            StageDecision::Skipped => return,
            StageDecision::Modified(..) => StageStatus::Modified,
            StageDecision::Stopped(_) | StageDecision::Blocked(_) => StageStatus::Blocked,
            _ if problem || fails && !tolerates => StageStatus::Failed,
            _ if waits || unsure || count(&[Action::Left, Action::Wait]) > 0 => StageStatus::Held,
            _ if fails => StageStatus::Partial,
            _ => StageStatus::Complete,
        };
        let rest = [Action::UpToDate, Action::Wait, Action::Left];
        let acts = count(&rest) < batches.map_or(0, |batches| batches.actions.len() as u64);
        let changes = match decision {
            StageDecision::Ready(found) => {
                !found.certain || batches.is_some() && !found.gone.is_empty() || acts
            }
            StageDecision::Modified(found, _) => !found.certain,
            _ => false,
        };
        if batches.is_some_and(|batches| batches.is_conditional) {
            self.conditional.insert(stage.name.clone());
        }
        self.ended(stage, status, problem || changes);
    }
}

/// Returns true if a stage waits for approval of, or money for, batches that are not known yet. One that has batches may turn out to
/// be unchanged.
fn waits_for_unknown(decision: &StageDecision, batches: Option<&BatchSchedule>) -> bool {
    batches.is_some_and(|batches| batches.approval.is_some() || batches.money.is_some())
        && matches!(decision, StageDecision::Ready(found) if found.batches.is_empty())
}
