//! Simulates a run stage by stage: asks the schedule, reports the expected outcomes to it, and lists what a run would do.

use super::planned::{
    KnownFailure, ModifiedOutput, PlannedJobs, PossibleBatch, RefusedBatch, RetiredFile,
    RevalidatedBatch, RunningBatch, StagePlan,
};
use crate::ops::project::open_project::OpenProject;
use crate::run::agents::estimate::CostEstimator;
use crate::run::check::batch_scanner::Keep;
use crate::run::check::by_page::read_needed;
use crate::run::observe::Observations;
use crate::run::remote::pack::jobs;
use milepost_core::base::digest::Digest;
use milepost_core::model::reason::{Condition, Reason};
use milepost_core::model::stage::Stage;
use milepost_core::model::state::State;
use milepost_core::plan::decide::Decision;
use milepost_core::plan::scan::{BatchAhead, BatchScan, StageScan};
use milepost_core::plan::schedule::{
    Action, BatchFacts, BatchSchedule, PlannedState, Schedule, StageDecision,
};
use milepost_core::plan::selection::Selection;
use serde_json::json;
use std::collections::BTreeSet;

/// A simulated run: the state that is expected after the stages so far.
pub(crate) struct Simulation<'a> {
    opened: &'a OpenProject,
    selection: &'a Selection,
    schedule: Schedule<'a>,
    planned: PlannedState<'a>,
    /// Finds the batches that wait for external agents; `None`: no batch waits.
    estimator: Option<CostEstimator<'a>>,
    /// True if the plan estimates the requests to agents.
    estimates: bool,
    /// The details that the plan shows.
    details: PlanDetails,
}

/// The details of a plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanDetails {
    /// The most batches of a stage that show what they would start or ask first.
    pub first: usize,
    /// True if each stage has the digest of its facts.
    pub facts: bool,
    /// True if advice about the declarations is among the warnings.
    pub advice: bool,
}

impl PlanDetails {
    /// The facts: a run does only what was shown if no fact of its batches changed.
    pub const WITH_FACTS: Self = Self {
        first: 0,
        facts: true,
        advice: false,
    };
}

impl<'a> Simulation<'a> {
    /// Starts before the first stage.
    pub(crate) fn new(
        opened: &'a OpenProject,
        known: &'a State,
        selection: &'a Selection,
        estimator: Option<CostEstimator<'a>>,
    ) -> Self {
        opened.workspace.layout.redirects().forget_restored();
        Self {
            opened,
            selection,
            schedule: Schedule::new(&opened.pipeline, selection),
            planned: PlannedState::new(&opened.pipeline, selection, known),
            estimator,
            estimates: false,
            details: PlanDetails::default(),
        }
    }

    /// Plans all stages, without an estimate of requests to agents.
    pub(crate) fn plan(mut self) -> Vec<StagePlan> {
        let stages = self.opened.pipeline.stages.iter();
        stages.map(|stage| self.pass(stage)).collect()
    }

    /// Plans all stages, and estimates the requests to agents.
    pub(crate) fn plan_with_estimates(mut self, details: PlanDetails) -> Vec<StagePlan> {
        self.estimates = true;
        self.details = details;
        self.plan()
    }

    /// Plans the stages before this one, then checks which of its batches are up to date.
    ///
    /// # Errors
    /// When its batches cannot be listed.
    pub(crate) fn scan(&mut self, stage: &Stage, keep: Keep<'_>) -> Result<StageScan, String> {
        let stages = self.opened.pipeline.stages.iter();
        for earlier in stages.take_while(|earlier| earlier.number < stage.number) {
            self.pass(earlier);
        }
        self.read_needed(stage)?;
        let disk = Observations {
            keep,
            ..Observations::new(self.opened.context(), None)
        };
        let planned = &self.planned;
        let found = self
            .schedule
            .scan(stage, &planned.state, &planned.pending, &disk);
        found.map_err(|why| why.0)
    }

    /// Returns the state that is expected after the stages so far.
    pub(crate) fn state(&self) -> &State {
        &self.planned.state
    }

    /// Decides on the batches of a scanned stage, whether it can begin or not.
    ///
    /// # Errors
    /// When an agent cannot be made ready.
    pub(crate) fn batches(
        &mut self,
        stage: &Stage,
        found: &StageScan,
        estimator: &CostEstimator<'_>,
    ) -> Result<BatchSchedule, String> {
        let disk = Observations::new(self.opened.context(), Some(estimator));
        let state = &self.planned.state;
        let batches = self.schedule.batches(stage, state, found, None, &disk);
        batches.map_err(|why| why.0)
    }

    /// Plans a stage.
    fn pass(&mut self, stage: &Stage) -> StagePlan {
        let mut line = StagePlan {
            stage: stage.name.clone(),
            number: stage.number,
            description: stage.description.clone(),
            certain: true,
            ..StagePlan::default()
        };
        let disk = Observations::new(self.opened.context(), None);
        let decision = match self.read_needed(stage) {
            Ok(()) => {
                let planned = &self.planned;
                self.schedule
                    .stage(stage, &planned.state, &planned.pending, &disk)
                    .map_err(|why| why.0)
            }
            Err(why) => Err(why),
        };
        let decision = decision.unwrap_or_else(StageDecision::Failed);
        let mut batches = None;
        match &decision {
            StageDecision::Skipped => line.skipped = true,
            StageDecision::Stopped(stop) => {
                line.blocked = Some(format!("the run stops at stage `{stop}`"));
            }
            StageDecision::Blocked(blocker) => {
                line.blocked = Some(blocker.to_string());
                line.blocked_by = Some(blocker.clone());
            }
            StageDecision::Failed(why) => line.problem = Some(why.clone()),
            StageDecision::Modified(found, files) => {
                line.altered = files.iter().cloned().map(ModifiedOutput::of).collect();
                count_rest(found, &mut line);
            }
            StageDecision::Ready(found) => batches = self.ready(stage, found, &mut line),
        }
        let problem = line.problem.is_some();
        self.schedule
            .expect(stage, &decision, batches.as_ref(), problem);
        line
    }

    /// Reads the records that the scan of a stage needs, if not all were read.
    fn read_needed(&mut self, stage: &Stage) -> Result<(), String> {
        let mut stages = self.planned.state.stages.values();
        if stages.all(|known| known.pages.is_empty()) {
            return Ok(());
        }
        let is_settled = self.planned.pending.is_empty();
        let state = self.planned.state.to_mut();
        read_needed(&self.opened.context(), stage, state, is_settled)
            .map_err(|error| error.to_string())
    }

    /// Plans the batches of a stage that can begin.
    fn ready(
        &mut self,
        stage: &Stage,
        found: &StageScan,
        line: &mut StagePlan,
    ) -> Option<BatchSchedule> {
        line.certain = found.certain;
        line.collisions.clone_from(&found.collisions);
        let context = self.opened.context();
        // The checkpoint counts as it is before the plan expects changes of the stage.
        let recorded = self.planned.state.stages.get(&stage.name);
        let has_checkpoint = recorded.is_some_and(|known| known.status.is_some())
            && context.layout.checkpoint(stage.number).exists();
        let disk = Observations::new(context, self.estimator.as_ref());
        let state = &self.planned.state;
        let batches = self.schedule.batches(stage, state, found, None, &disk);
        let batches = match batches {
            Ok(batches) => batches,
            Err(why) => {
                line.problem = Some(why.0);
                return None;
            }
        };
        line.approval.clone_from(&batches.approval);
        line.awaits.clone_from(&batches.awaits);
        line.money.clone_from(&batches.money);
        let scope_of = |index: usize| {
            let batch: &BatchScan = &found.batches[index];
            batch.base(context.pipeline, context.settings, context.moment())
        };
        let restored = found
            .batches
            .iter()
            .filter_map(|batch| match &batch.decision {
                Ok(Decision::Restore(event)) => Some(event.published()),
                _ => None,
            });
        let moves = restored.flatten().map(|file| (&file.path, &file.scratch));
        context.layout.redirects().restore(moves);
        let leaving = self.planned.expect(stage, found, &batches, &scope_of);
        line.retires = leaving
            .into_iter()
            .map(|(batch, path)| RetiredFile {
                stage: stage.name.clone(),
                batch,
                path: path.to_string(),
            })
            .collect();
        line.reused += found.others;
        self.estimate(stage, found, &batches, line);
        line.retire.clone_from(&found.gone);
        let all = found.batches.iter().zip(&batches.actions).enumerate();
        for (batch_place, (batch, action)) in all {
            let condition = batches.conditions.get(&batch_place);
            self.list(stage, found, batch, (*action, condition), line);
        }
        if self.details.facts {
            line.facts = Some(facts(found, &batches));
        }
        line.jobs = self.jobs(stage, line.will.len() as u64);
        line.unapproved = self.set_apart(stage, found, &batches.unapproved);
        line.unpaid = self.set_apart(stage, found, &batches.unpaid);
        line.checkpoint = !has_checkpoint && line.is_idle() && line.left == 0;
        Some(batches)
    }

    /// Returns the jobs for this many batches of a stage.
    fn jobs(&self, stage: &Stage, batches: u64) -> Option<PlannedJobs> {
        let executor = self.selection.options.executor_of(stage);
        let settings = self.opened.pipeline.executors.settings(executor)?;
        let batches_per_job = settings.batches_per_job;
        (batches > 0).then(|| PlannedJobs {
            executor,
            jobs: jobs(batches, batches_per_job),
            batches_per_job,
        })
    }

    /// Returns the facts of a batch, if `watch` compares them.
    fn facts_for_watch(
        &self,
        stage: &Stage,
        found: &StageScan,
        batch: &BatchScan,
        reasons: &[Reason],
    ) -> BatchFacts {
        match self.selection.options.known_failures {
            Some(_) => BatchFacts::of(
                &self.opened.pipeline,
                stage,
                &found.shared_id,
                &batch.own,
                reasons,
            ),
            None => BatchFacts::default(),
        }
    }

    /// Returns the batches at these places, with the reasons why they would run.
    fn set_apart(
        &self,
        stage: &Stage,
        found: &StageScan,
        places: &BTreeSet<usize>,
    ) -> Vec<RunningBatch> {
        let batches = places.iter().map(|&index| &found.batches[index]);
        let running = batches.filter_map(|batch| match &batch.decision {
            Ok(Decision::Will(reasons)) => Some(RunningBatch {
                batch: batch.batch.key.clone(),
                reasons: reasons.clone(),
                facts: self.facts_for_watch(stage, found, batch, reasons),
            }),
            _ => None,
        });
        running.collect()
    }

    /// Adds a batch to the stage's plan.
    fn list(
        &self,
        stage: &Stage,
        found: &StageScan,
        batch: &BatchScan,
        (action, condition): (Action, Option<&Condition>),
        line: &mut StagePlan,
    ) {
        let key = batch.batch.key.clone();
        let facts = |reasons: &[Reason]| self.facts_for_watch(stage, found, batch, reasons);
        match (action, &batch.decision) {
            (Action::Run, Ok(Decision::Will(reasons))) => line.will.push(RunningBatch {
                facts: facts(reasons),
                batch: key,
                reasons: reasons.clone(),
            }),
            (Action::Fail, Err(missed)) => line.missing.push(RefusedBatch {
                batch: key,
                code: missed.code.clone(),
                why: missed.why.clone(),
                sent: missed.accepted.is_some(),
            }),
            (Action::May, Ok(decision)) => line.may.push(PossibleBatch {
                batch: key,
                conditions: match (condition, decision) {
                    (Some(condition), _) => vec![condition.clone()],
                    (None, Decision::May(conditions)) => conditions.clone(),
                    (None, _) => Vec::new(),
                },
                reasons: match decision {
                    Decision::Will(reasons) => reasons.clone(),
                    _ => Vec::new(),
                },
            }),
            (Action::Revalidate, Ok(Decision::Revalidate(changes))) => {
                line.judge.push(RevalidatedBatch {
                    facts: BatchFacts {
                        by_people: true,
                        ..facts(&[])
                    },
                    batch: key,
                    changes: changes.clone(),
                });
            }
            (Action::Restore, _) => line.restore.push(key),
            (Action::UpToDate, _) => line.reused += 1,
            (_, decision) => {
                line.left += 1;
                if let Ok(Decision::Will(reasons)) = decision {
                    let facts = facts(reasons);
                    if self.selection.was_tried(&stage.name, &key, &facts.all) {
                        line.tried.push(KnownFailure { batch: key, facts });
                    }
                }
            }
        }
    }

    /// Estimates what the batches that run, and those that may run, ask of agents.
    fn estimate(
        &mut self,
        stage: &Stage,
        found: &StageScan,
        batches: &BatchSchedule,
        line: &mut StagePlan,
    ) {
        let Some(estimator) = self.estimator.as_mut().filter(|_| self.estimates) else {
            return;
        };
        line.asks_more = !found.certain && estimator.is_paid(stage);
        let those = |wanted: &[Action]| -> Vec<&BatchScan> {
            let places = batches.places(wanted).into_iter();
            places.map(|index| &found.batches[index]).collect()
        };
        let will = those(&[Action::Run]);
        let at = |places: &BTreeSet<usize>| -> Vec<&BatchScan> {
            places.iter().map(|&index| &found.batches[index]).collect()
        };
        let (unapproved, unpaid) = (at(&batches.unapproved), at(&batches.unpaid));
        let may = those(&[Action::May, Action::Revalidate]);
        let settled = found.certain && self.schedule.is_settled(stage);
        let mut asks = |batches: &[&BatchScan]| estimator.asks(stage, batches, settled);
        let fields = [
            (&will, &mut line.asks),
            (&unapproved, &mut line.unapproved_ask),
            (&unpaid, &mut line.unpaid_ask),
            (&may, &mut line.may_ask),
        ];
        for (batches, field) in fields {
            match asks(batches) {
                Ok(asks) => *field = asks,
                Err(why) => {
                    line.problem = Some(why);
                    break;
                }
            }
        }
        let first = self.details.first;
        if first > 0 {
            line.looked_at = will.len().min(first);
            let first = will.iter().take(first);
            // An agent that is unavailable is the problem above.
            let first = first.filter_map(|batch| estimator.first(stage, batch).ok().flatten());
            line.first = first.collect();
        }
    }
}

/// Returns the digest of the facts of all batches that are not up to date, and of what happens to them.
fn facts(found: &StageScan, batches: &BatchSchedule) -> Digest {
    let all = found.batches.iter().zip(&batches.actions);
    let open = all.filter(|(_, action)| **action != Action::UpToDate);
    let open = open.map(|(batch, action)| {
        let key = batch.batch.key.as_str();
        (key, format!("{action:?}"), found.facts(batch))
    });
    let ahead = found.ahead.iter().map(BatchAhead::key);
    let facts = json!([
        found.shared_id,
        open.collect::<Vec<_>>(),
        ahead.collect::<Vec<_>>()
    ]);
    Digest::of(facts.to_string())
}

/// Counts the batches of a stage with modified outputs: none of them runs.
fn count_rest(found: &StageScan, line: &mut StagePlan) {
    line.certain = found.certain;
    line.reused += found.others;
    for batch in &found.batches {
        match &batch.decision {
            Ok(Decision::UpToDate) => line.reused += 1,
            Ok(Decision::Modified(_)) => {}
            _ => line.left += 1,
        }
    }
}
