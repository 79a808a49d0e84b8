//! The status of a workspace, by stage. Nothing is written, and a run in progress is not disturbed.

use crate::ops::change::params::{AgentLine, agents};
use crate::ops::inspect::calls::{self, Spending, SpentByStage};
use crate::ops::plan::planned::is_zero;
use crate::ops::plan::simulation::Simulation;
use crate::ops::plan::{AwaitedApproval, AwaitedMoney, Awaits, StagePlan};
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open_recorded;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::{BROKEN_OFF, LastRun, Runner, Snapshot, last_run, runner};
use crate::ops::project::stored_values::notes;
use crate::ops::run::up_to_date;
use crate::run::agents::estimate::CostEstimator;
pub use crate::run::remote::overview::SubmittedJobs;
use crate::run::remote::overview::submitted;
use crate::run::report::StageReport;
use jiff::Timestamp;
use milepost_core::model::call::Spent;
use milepost_core::model::checkpoint::{self, Checkpoint};
use milepost_core::model::choice::StoredNote;
use milepost_core::model::event::{Event, Record};
use milepost_core::model::reason::Reason;
use milepost_core::model::record::Override;
use milepost_core::model::stage::Stage;
use milepost_core::model::stage_word::StageWord;
use milepost_core::model::state::{Phase, StageState, State};
use milepost_core::plan::options::RunOptions;
use milepost_core::plan::overrides;
use milepost_core::plan::scan::Collisions;
use milepost_core::plan::selection::Selection;
use milepost_store::store::checkpoint as stored;
use milepost_store::store::journal;
use milepost_store::store::layout::{self, Layout};
use serde::Serialize;
use std::collections::BTreeMap;

/// The most reasons why batches fail before they begin that are listed for a stage.
const REASONS: usize = 20;

/// The status of a workspace.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Status {
    /// The project's name.
    pub project: String,
    /// The path of the workspace.
    pub workspace: String,
    /// The workspace's id; `None` before the first run.
    pub(crate) session_id: Option<String>,
    /// The run in progress.
    pub runner: Option<Runner>,
    /// The last run.
    pub last_run: Option<LastRun>,
    /// Mistakes in the declarations, each with its place: no run can begin, and `due` of the stages is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The stages, in the order of their numbers.
    pub stages: Vec<StageOverview>,
    /// The cost of agents in all runs, and the rest of the limits; `None` if no agent was called and no limit is declared.
    pub money: Option<Spending>,
    /// Agents that are replaced by another one.
    pub agents: Vec<AgentLine>,
    /// Warnings and notes about values and agents stored in the workspace.
    pub stored: Vec<StoredNote>,
    /// Files that a killed run published and did not put in place. The stages count them as in place; the next run continues.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub half_published: u64,
    /// Jobs of schedulers that may wait or run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<SubmittedJobs>,
}

/// The status of a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct StageOverview {
    /// The stage's number.
    pub number: u32,
    /// The stage's name.
    pub stage: String,
    /// The stage's description.
    pub description: Option<String>,
    /// The state as screens show it.
    pub state: StageWord,
    /// The status in the words of earlier versions.
    pub status: StageProgress,
    /// The plan of a run; `None` if it would do nothing, or a run is in progress.
    pub due: Option<PendingWork>,
    /// The number of batches, as far as it is known.
    pub batches: Option<u64>,
    /// Batches that are up to date: those that were, and those that a run has built since. If that is unknown, recorded batches
    /// without a failure.
    pub done: u64,
    /// The failed batches.
    pub failed: Vec<FailedBatch>,
    /// The batches that a run builds now.
    pub running: Vec<String>,
    /// The number of elements in the outputs.
    pub elements: Option<u64>,
    /// The cost of its calls in all runs; `None` if there were none.
    pub spent: Option<Spent>,
    /// The result of the stage's `verdict`.
    pub verdict: Option<bool>,
    /// Outputs that were modified by hand and accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    /// Names of its files that some file systems take for one.
    #[serde(skip_serializing_if = "Collisions::is_empty")]
    pub collisions: Collisions,
    /// When the checkpoint was written, or the last event of the stage, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub when: Option<Timestamp>,
    /// The path of its checkpoint, if there is one.
    pub checkpoint: Option<String>,
    /// The sum of the durations of its batches in seconds; `None` without a checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// The status of a stage by its records, in the words of earlier versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StageProgress {
    /// Every batch is built. Screens show `up to date`, or `out of date` if a run would do something.
    Complete,
    /// Every batch is built or listed as failed.
    Partial,
    /// A batch failed, and the stage stopped.
    Failed,
    /// Some batches are built, and no run builds the others now. Screens show `out of date` or `waiting`.
    Held,
    /// A run builds batches now.
    Running,
    /// Nothing is built yet. Screens show `out of date` or `waiting`.
    Waiting,
    /// Outputs were modified by hand. Screens show `modified`.
    #[serde(rename = "altered")]
    Modified,
}

/// A batch that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct FailedBatch {
    /// The batch; empty for the only one.
    pub batch: String,
    /// The error code and message.
    pub outcome: String,
}

/// What a run would do about a stage.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct PendingWork {
    /// Batches that run.
    pub will: u64,
    /// Batches of `will` that an earlier run with `--force` selected and did not rebuild.
    pub forced: u64,
    /// True if that run was interrupted.
    pub forced_interrupted: bool,
    /// Batches that run if the outputs of earlier stages change.
    pub may: u64,
    /// Batches whose outputs are restored from quarantine.
    pub restore: u64,
    /// Batches whose outputs are revalidated.
    pub judge: u64,
    /// Batches that no longer exist.
    pub retire: u64,
    /// Outputs that were modified by hand.
    pub altered: Vec<String>,
    /// True if a run only writes the missing checkpoint.
    pub checkpoint: bool,
    /// The approval that the stage waits for.
    pub approval: Option<AwaitedApproval>,
    /// The external agents that the stage waits for.
    pub awaits: Option<Awaits>,
    /// The money that the stage waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<AwaitedMoney>,
    /// Why the stage or a batch cannot run.
    pub problem: Option<String>,
}

/// Returns the status of each stage.
///
/// # Errors
/// When there is no project, or the workspace cannot be read.
pub fn status(request: &Request) -> Result<Status, OpsError> {
    let mut opened = open_recorded(request)?;
    let is_planned = opened.problems.is_none();
    if is_planned
        && runner(&opened.workspace.layout).is_none()
        && let Some(stages) = up_to_date::again(&mut opened)
        && let Some(stages) = untouched(&opened, &stages)
    {
        let (records, _) = journal::read_since_seal(&opened.workspace.layout)?;
        let spent = calls::spending(&opened)?;
        let last_run = last_run(&records, None);
        return Ok(of_workspace(&opened, last_run, None, stages, spent));
    }
    let layout = &opened.workspace.layout;
    let present = Snapshot::read(layout)?;
    let all = Selection::default();
    let plans = if is_planned && present.runner.is_none() {
        let agents = opened.planned_agents(request)?;
        let estimator = CostEstimator::new(opened.context(), &agents, &RunOptions::default());
        Simulation::new(&opened, &present.state, &all, Some(estimator)).plan()
    } else {
        Vec::new()
    };
    let mut seen = SeenRecords::default();
    present.records.iter().for_each(|record| seen.add(record));
    let stages = opened.pipeline.stages.iter().map(|stage| {
        let plan = plans.iter().find(|plan| plan.stage == stage.name);
        let is_running = present.runner.is_some();
        line(
            stage,
            &present.state,
            &seen,
            is_running,
            plan,
            checkpoint_of(layout, stage),
        )
    });
    let stages = stages.collect();
    let last_run = last_run(&present.records, present.runner.as_ref());
    let spent = calls::spending(&opened)?;
    let runner = present.runner;
    Ok(of_workspace(&opened, last_run, runner, stages, spent))
}

/// The last run and the times of stages, by the records of a segment of the journal.
#[derive(Debug, Default)]
pub(crate) struct SeenRecords {
    last_run: Option<LastRun>,
    /// The last start of each stage.
    begun: BTreeMap<String, StageStart>,
    /// The time of the last record of each stage.
    last: BTreeMap<String, Timestamp>,
}

impl SeenRecords {
    /// Adds the next record.
    pub(crate) fn add(&mut self, record: &Record) {
        self.last_run = last_run(std::slice::from_ref(record), None);
        if matches!(record.event, Event::RunStarted { .. }) {
            self.begun
                .values_mut()
                .for_each(|start| start.is_of_run = false);
        }
        let Some(stage) = record.event.stage() else {
            return;
        };
        match self.last.get_mut(stage) {
            Some(last) => *last = record.timestamp,
            None => drop(self.last.insert(stage.to_owned(), record.timestamp)),
        }
        match &record.event {
            Event::StageStarted { batches, will, .. } => {
                let start = StageStart {
                    batches: *batches,
                    up_to_date: batches.saturating_sub(*will),
                    built: 0,
                    is_of_run: true,
                };
                self.begun.insert(stage.to_owned(), start);
            }
            Event::Published { record, .. } if record.failure().is_none() => {
                if let Some(start) = self.begun.get_mut(stage) {
                    start.built += 1;
                }
            }
            _ => {}
        }
    }
}

/// The start of a stage in a run, and what the run has built since.
#[derive(Debug)]
struct StageStart {
    batches: u64,
    /// Batches that were up to date.
    up_to_date: u64,
    /// Batches that were built since without a failure.
    built: u64,
    /// False if another run has started since.
    is_of_run: bool,
}

impl StageStart {
    /// Returns the number of batches that are up to date now.
    fn done(&self) -> u64 {
        self.up_to_date + self.built
    }
}

/// Returns the status by a state and spending that are known, without planning what a run would do.
pub(crate) fn of_state(
    opened: &OpenProject,
    state: &State,
    seen: &SeenRecords,
    runner: Option<Runner>,
    spent: Option<SpentByStage>,
) -> Status {
    let layout = &opened.workspace.layout;
    let stages = opened.pipeline.stages.iter().map(|stage| {
        line(
            stage,
            state,
            seen,
            runner.is_some(),
            None,
            checkpoint_of(layout, stage),
        )
    });
    let stages = stages.collect();
    let is_of = |run: &LastRun, runner: &Runner| run.run_id == runner.run_id;
    let last_run = seen.last_run.clone().map(|run| match &runner {
        Some(runner) if is_of(&run, runner) && run.status == BROKEN_OFF => LastRun {
            status: "running".to_owned(),
            ..run
        },
        _ => run,
    });
    of_workspace(opened, last_run, runner, stages, spent)
}

fn of_workspace(
    opened: &OpenProject,
    last_run: Option<LastRun>,
    runner: Option<Runner>,
    mut stages: Vec<StageOverview>,
    spent: Option<SpentByStage>,
) -> Status {
    // Without the declarations, nothing shows that a stage is up to date.
    let is_known = opened.problems.is_none();
    for line in stages.iter_mut().filter(|_| !is_known) {
        if line.state == StageWord::UpToDate {
            line.state = StageWord::OutOfDate;
        }
    }
    let money = spent.map(|(money, spent)| {
        for line in &mut stages {
            line.spent = spent.get(&line.stage).copied();
        }
        money
    });
    let identity = &opened.workspace.identity;
    let replaced = agents(opened).into_iter();
    let replaced = replaced.filter(|line| line.agent != line.name);
    Status {
        project: opened.pipeline.name.clone(),
        workspace: opened.workspace.layout.root().display().to_string(),
        session_id: (!identity.session_id.is_empty()).then(|| identity.session_id.clone()),
        last_run,
        runner,
        problems: opened.problem_lines(),
        stages,
        money,
        agents: replaced.collect(),
        stored: notes(opened),
        half_published: opened.workspace.layout.redirects().half_published(),
        jobs: submitted(&opened.disk, &opened.workspace.layout),
    }
}

fn checkpoint_of(layout: &Layout, stage: &Stage) -> Option<Checkpoint> {
    let found = stored::read(layout, stage.number).ok().flatten()?;
    (found.checkpoint.stage == stage.name).then_some(found.checkpoint)
}

/// Returns the stages if nothing changed since the last up-to-date check: their checkpoints have all details.
fn untouched(opened: &OpenProject, reports: &[StageReport]) -> Option<Vec<StageOverview>> {
    let line = |stage: &Stage| {
        let report = reports.iter().find(|report| report.stage == stage.name)?;
        let checkpoint = checkpoint_of(&opened.workspace.layout, stage)?;
        Some(StageOverview {
            number: stage.number,
            stage: stage.name.clone(),
            description: stage.description.clone(),
            state: StageWord::UpToDate,
            status: StageProgress::Complete,
            due: None,
            batches: Some(report.batches),
            done: report.batches,
            failed: Vec::new(),
            running: Vec::new(),
            elements: checkpoint.element_count,
            spent: None,
            verdict: checkpoint.verdict,
            overrides: checkpoint.overrides,
            collisions: Collisions::default(),
            when: Some(checkpoint.timestamp),
            checkpoint: Some(layout::checkpoint(stage.number).to_string()),
            seconds: Some(checkpoint.duration_s),
        })
    };
    opened.pipeline.stages.iter().map(line).collect()
}

fn line(
    stage: &Stage,
    state: &State,
    seen: &SeenRecords,
    is_running: bool,
    plan: Option<&StagePlan>,
    checkpoint: Option<Checkpoint>,
) -> StageOverview {
    let nothing = StageState::default();
    let known = state.stages.get(&stage.name).unwrap_or(&nothing);
    let mut recorded = 0;
    let mut failed = Vec::new();
    let mut running = Vec::new();
    for (key, batch) in &known.batches {
        let of_record = || match (&batch.phase, &batch.record) {
            (Phase::Complete, Some(record)) => record.failure().map(|outcome| outcome.to_string()),
            _ => None,
        };
        let failure = || {
            batch
                .last_failure()
                .map(ToString::to_string)
                .or_else(of_record)
        };
        if is_running && batch.is_tried() {
            running.push(key.clone());
        } else if let Some(outcome) = failure() {
            failed.push(FailedBatch {
                batch: key.clone(),
                outcome,
            });
        } else if batch.record.is_some() {
            recorded += 1;
        }
    }
    let records = || {
        known
            .batches
            .values()
            .filter_map(|batch| batch.record.as_ref())
    };
    let of_plan = plan.filter(|plan| is_known(plan)).map(|plan| {
        let may = plan.may.iter().filter(|may| may.reasons.is_empty());
        plan.reused + may.count() as u64
    });
    let of_run = || {
        seen.begun
            .get(&stage.name)
            .filter(|begun| is_running && begun.is_of_run)
            .map(StageStart::done)
    };
    let done = of_plan.or_else(of_run).unwrap_or(recorded);
    let due = plan.and_then(due);
    let status = match checkpoint.as_ref().map(|checkpoint| checkpoint.status) {
        _ if due.as_ref().is_some_and(|due| !due.altered.is_empty()) => StageProgress::Modified,
        _ if !running.is_empty() => StageProgress::Running,
        Some(checkpoint::Status::Complete) => StageProgress::Complete,
        Some(checkpoint::Status::Partial) => StageProgress::Partial,
        None if !failed.is_empty() => StageProgress::Failed,
        None if done > 0 => StageProgress::Held,
        None => StageProgress::Waiting,
    };
    // Earlier outputs of a failed batch do not count.
    let standing = known.batches.values();
    let sum = || {
        standing
            .filter(|batch| !matches!(batch.phase, Phase::Failed { .. }))
            .filter_map(|batch| batch.record.as_ref()?.elements)
            .reduce(|a, b| a + b)
    };
    let when = checkpoint.as_ref().map(|checkpoint| checkpoint.timestamp);
    StageOverview {
        number: stage.number,
        stage: stage.name.clone(),
        description: stage.description.clone(),
        state: state_of(status, due.as_ref(), plan),
        status,
        due,
        batches: batches(stage, seen, plan, checkpoint.as_ref()),
        done,
        failed,
        running,
        elements: checkpoint
            .as_ref()
            .map_or_else(sum, |found| found.element_count),
        spent: None,
        verdict: records()
            .filter_map(|record| record.verdict)
            .reduce(|a, b| a && b),
        overrides: overrides::of_stage(&stage.name, known),
        collisions: plan.map(|plan| plan.collisions.clone()).unwrap_or_default(),
        when: when.or_else(|| seen.last.get(&stage.name).copied()),
        seconds: checkpoint.as_ref().map(|found| found.duration_s),
        checkpoint: checkpoint.map(|_| layout::checkpoint(stage.number).to_string()),
    }
}

/// Returns the state by the records and by what a run would do.
fn state_of(
    status: StageProgress,
    due: Option<&PendingWork>,
    plan: Option<&StagePlan>,
) -> StageWord {
    let waits = due
        .is_some_and(|due| due.approval.is_some() || due.awaits.is_some() || due.money.is_some());
    match status {
        StageProgress::Modified => StageWord::Modified,
        StageProgress::Running => StageWord::Running,
        StageProgress::Failed => StageWord::Failed,
        _ if waits => StageWord::Waiting,
        StageProgress::Partial => StageWord::Partial,
        StageProgress::Complete
            if due.is_none() && plan.is_none_or(|plan| plan.blocked.is_none()) =>
        {
            StageWord::UpToDate
        }
        StageProgress::Complete | StageProgress::Held | StageProgress::Waiting => {
            StageWord::OutOfDate
        }
    }
}

/// Returns true if a plan knows the batches of its stage, and which of them are up to date.
fn is_known(plan: &StagePlan) -> bool {
    plan.certain && plan.problem.is_none() && plan.blocked.is_none() && plan.altered.is_empty()
}

/// Returns the number of batches by the plan, otherwise by the journal or the checkpoint.
fn batches(
    stage: &Stage,
    seen: &SeenRecords,
    plan: Option<&StagePlan>,
    checkpoint: Option<&Checkpoint>,
) -> Option<u64> {
    if let Some(plan) = plan.filter(|plan| is_known(plan)) {
        return Some(plan.batches());
    }
    let begun = seen.begun.get(&stage.name).map(|begun| begun.batches);
    begun.or(checkpoint.map(|checkpoint| checkpoint.batches))
}

/// Returns why batches fail before they begin, each reason once; `None` if none does.
fn refusals(plan: &StagePlan) -> Option<String> {
    let mut reasons: Vec<&str> = Vec::new();
    let mut more = 0;
    for refused in &plan.missing {
        // The failure itself is shown too.
        let why = if refused.sent {
            "a request is not sent again"
        } else {
            &refused.why
        };
        match reasons.len() {
            _ if reasons.contains(&why) => {}
            REASONS => more += 1,
            _ => reasons.push(why),
        }
    }
    let more = (more > 0).then(|| format!("{more} more"));
    let reasons = reasons.into_iter().chain(more.as_deref());
    let reasons: Vec<&str> = reasons.collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

fn due(plan: &StagePlan) -> Option<PendingWork> {
    let forced = plan.will.iter().filter_map(|will| {
        let mut reasons = will.reasons.iter();
        reasons.find_map(|reason| match reason {
            Reason::ForcedBefore { interrupted, .. } => Some(*interrupted),
            _ => None,
        })
    });
    let forced: Vec<bool> = forced.collect();
    let due = PendingWork {
        will: plan.will.len() as u64,
        forced: forced.len() as u64,
        forced_interrupted: forced.contains(&true),
        may: plan.may.len() as u64,
        restore: plan.restore.len() as u64,
        judge: plan.judge.len() as u64,
        retire: plan.retire.len() as u64,
        altered: plan.altered.iter().map(|file| file.path.clone()).collect(),
        checkpoint: plan.checkpoint,
        approval: plan.approval.clone(),
        awaits: plan.awaits.clone(),
        money: plan.money.clone(),
        problem: plan.problem.clone().or_else(|| refusals(plan)),
    };
    (due != PendingWork::default()).then_some(due)
}
