//! The loop over stages: look, retire, judge, run, end; or stop and say why.

use super::attempt::Bench;
use super::context::Context;
use super::dispatch::{Order, at_once, dispatch};
use super::finish;
use super::keeper::Keeper;
use super::notice::{Notice, Observer};
use super::stop::StopFlag;
use super::survey::{Pending, Survey, survey};
use super::validate::Schemas;
use super::{recover, rejudge, retire};
use crate::agents::rules::Rules;
use crate::base::path::RelPath;
use crate::model::checkpoint::{ProgressStatus, Status};
use crate::model::event::{Event, EventType};
use crate::model::outcome::Outcome;
use crate::model::pipeline::Provider;
use crate::model::policy::OnAltered;
use crate::model::stage::Stage;
use crate::model::state::{Phase, State};
use crate::plan::decide::{Alteration, Decision, Wish};
use crate::plan::lineage;
use crate::plan::selection::Selection;
use crate::steps::command::Stop;
use crate::steps::work::Limits;
use crate::store::clock::Stopwatch;
use crate::store::journal::Journal;
use crate::store::progress::ProgressFile;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Our own inability to go on. A failed step is an outcome, not an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The disk.
    #[error(transparent)]
    Disk(#[from] crate::store::disk::DiskError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] crate::store::journal::JournalError),
    /// A manifest.
    #[error(transparent)]
    Manifest(#[from] crate::store::manifest::ManifestError),
    /// A checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] crate::store::checkpoint::CheckpointError),
    /// A scratch folder.
    #[error(transparent)]
    Scratch(#[from] crate::store::scratch::ScratchError),
    /// Files on their way into place.
    #[error(transparent)]
    Publish(#[from] crate::store::publish::PublishError),
    /// An event that cannot follow: a defect of Milepost.
    #[error(
        "the state machine refused an event ({0}): this is a defect of Milepost, please report it"
    )]
    Machine(#[from] crate::plan::machine::IllegalTransition),
    /// A file that could not be looked at.
    #[error("{0}")]
    World(String),
}

/// How a run is carried out.
#[derive(Debug, Clone)]
pub struct Options {
    /// Batches at once, for stages that declare nothing.
    pub jobs: Option<usize>,
    /// The usual environment of programs: `PATH`, `HOME`, `LANG`.
    pub environment: BTreeMap<String, String>,
    /// How long a program gets to end after SIGTERM.
    pub grace: Duration,
    /// The wait after a first failed try.
    pub backoff: Duration,
}

/// How a stage ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StageStatus {
    /// Everything is done.
    Complete,
    /// Something is named as failed.
    Partial,
    /// A batch failed, and the stage stopped.
    Failed,
    /// Only a part was asked for, or the run was stopped.
    Held,
    /// An earlier stage is not complete.
    Blocked,
    /// Somebody altered what was made.
    Altered,
}

/// What became of a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageReport {
    /// Its name.
    pub stage: String,
    /// Its number.
    pub number: u32,
    /// How it ended.
    pub status: StageStatus,
    /// Batches that there are.
    pub batches: u64,
    /// Batches that ran.
    pub ran: u64,
    /// Batches that were reused.
    pub reused: u64,
    /// Batches that were validated again without a run.
    pub judged: u64,
    /// Batches that failed, with how.
    pub failed: Vec<(String, Outcome)>,
    /// Batches that were not tried.
    pub left: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Why it could not begin.
    pub why: Option<String>,
    /// Files that somebody altered.
    #[serde(skip)]
    pub altered: Vec<(String, Alteration)>,
    /// What the stage's `verdict` says.
    pub verdict: Option<bool>,
    /// Elements that came out.
    pub elements: Option<u64>,
    /// Its declared outputs that lie under `outputs/`.
    pub outputs: Vec<String>,
}

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The run's id.
    pub run_id: String,
    /// Stage by stage.
    pub stages: Vec<StageReport>,
    /// Whether it was stopped by the user.
    pub interrupted: bool,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// Runs what is selected. `records` are those of the journal's last segment, which `state` already holds.
///
/// # Errors
/// When Milepost itself cannot go on: the disk fails, the journal cannot be written.
pub fn run(
    ctx: Context<'_>,
    state: State,
    journal: Journal,
    selection: &Selection,
    options: &Options,
    command: &str,
    observer: &mut dyn Observer,
    stop: &StopFlag,
) -> Result<Report, RunError> {
    let watch = Stopwatch::start();
    let mut keeper = Keeper::new(ctx, state, journal, command);
    let what = recover::recover(&mut keeper, options.grace)?;
    if !what.is_empty() {
        observer.notice(Notice::Recovered { what });
    }
    retire::stages(&mut keeper, observer)?;
    let schemas = Schemas::default();
    let mut engine = Engine {
        keeper,
        selection,
        options,
        observer,
        stop,
        schemas: &schemas,
        budget: selection.limit,
        reports: Vec::new(),
    };
    let result = engine.stages();
    let interrupted = stop.stopping();
    let reports = std::mem::take(&mut engine.reports);
    let mut keeper = engine.keeper;
    result?;
    if keeper.has_begun() {
        let sum = |count: &dyn Fn(&StageReport) -> u64| reports.iter().map(count).sum::<u64>();
        let word = if interrupted {
            "interrupted"
        } else {
            worst(&reports).map_or("complete", word)
        };
        let event = Event::RunFinished {
            status: word.to_owned(),
            ran: sum(&|report| report.ran),
            reused: sum(&|report| report.reused),
            failed: sum(&|report| report.failed.len() as u64),
        };
        keeper.record(
            EventType::Complete,
            "milepost",
            event,
            format!("run ended: {word}"),
            Vec::new(),
        )?;
        keeper.flush()?;
    }
    let run_id = keeper.run_id().to_owned();
    Ok(Report {
        run_id,
        stages: reports,
        interrupted,
        seconds: watch.elapsed().as_secs_f64(),
    })
}

fn word(status: StageStatus) -> &'static str {
    match status {
        StageStatus::Complete => "complete",
        StageStatus::Partial => "partial",
        StageStatus::Failed => "failed",
        StageStatus::Held | StageStatus::Blocked => "held",
        StageStatus::Altered => "altered",
    }
}

fn worst(reports: &[StageReport]) -> Option<StageStatus> {
    let order = |status: StageStatus| match status {
        StageStatus::Complete => 0,
        StageStatus::Partial => 1,
        StageStatus::Held | StageStatus::Blocked => 2,
        StageStatus::Failed => 3,
        StageStatus::Altered => 4,
    };
    reports
        .iter()
        .map(|report| report.status)
        .max_by_key(|&status| order(status))
}

struct Engine<'a, 'k> {
    keeper: Keeper<'k>,
    selection: &'a Selection,
    options: &'a Options,
    observer: &'a mut dyn Observer,
    stop: &'a StopFlag,
    schemas: &'a Schemas,
    budget: Option<u64>,
    reports: Vec<StageReport>,
}

impl Engine<'_, '_> {
    fn stages(&mut self) -> Result<(), RunError> {
        let pipeline = self.keeper.ctx.pipeline;
        for stage in &pipeline.stages {
            if !self.selection.wants_stage(pipeline, stage) {
                continue;
            }
            if self.stop.stopping() {
                return Ok(());
            }
            let watch = Stopwatch::start();
            let mut report = self.stage(stage)?;
            report.seconds = watch.elapsed().as_secs_f64();
            let status = report.status;
            self.observer.notice(Notice::StageEnded(report.clone()));
            self.reports.push(report);
            if status == StageStatus::Altered {
                return Ok(());
            }
        }
        Ok(())
    }

    fn stage(&mut self, stage: &Stage) -> Result<StageReport, RunError> {
        if let Some(why) = self.blocked_by(stage)? {
            return Ok(StageReport {
                why: Some(why),
                ..empty(stage, StageStatus::Blocked)
            });
        }
        let selection = self.selection;
        let wish = |batch: &str| wish(selection, stage, batch);
        let found = match survey(
            &self.keeper.ctx,
            stage,
            &self.keeper.state,
            &Pending::default(),
            &wish,
        ) {
            Ok(found) => found,
            Err(why) => {
                return Ok(StageReport {
                    why: Some(why),
                    ..empty(stage, StageStatus::Failed)
                });
            }
        };
        let altered = self.altered(stage, &found)?;
        if !altered.is_empty() {
            return Ok(StageReport {
                altered,
                ..empty(stage, StageStatus::Altered)
            });
        }
        let mut report = StageReport {
            batches: found.batches.len() as u64,
            ..empty(stage, StageStatus::Complete)
        };
        let before = self.keeper.counted();
        retire::batches(&mut self.keeper, &stage.name, &found.gone, self.observer)?;
        let (invalid, judged) = rejudge::rejudge(&mut self.keeper, stage, &found, self.schemas)?;
        report.judged = judged;
        let mut will = Vec::new();
        for (index, batch) in found.batches.iter().enumerate() {
            match &batch.decision {
                Ok(Decision::Reused) => report.reused += 1,
                Ok(Decision::Judge(_)) if !invalid.contains(&index) => report.reused += 1,
                Ok(Decision::Judge(_) | Decision::Will(_)) => will.push(index),
                Ok(Decision::May(_) | Decision::Altered(_)) => report.left += 1,
                Err(why) => self.input_failed(stage, &batch.batch.key, why, &mut report)?,
            }
        }
        self.choose(stage, &found, &mut will, &mut report);
        if !will.is_empty() {
            self.work(stage, &found, &will, &mut report)?;
        }
        self.end(stage, &found, &mut report, before)?;
        Ok(report)
    }

    /// The earlier stage that is not complete, if there is one.
    fn blocked_by(&mut self, stage: &Stage) -> Result<Option<String>, RunError> {
        let pipeline = self.keeper.ctx.pipeline;
        for up in lineage::upstream(pipeline, stage) {
            let status = self
                .keeper
                .state
                .stages
                .get(&up.name)
                .and_then(|known| known.status);
            let why = match status {
                None => Some("is not complete".to_owned()),
                Some(Status::Partial) if !stage.allow_partial => Some("is partial".to_owned()),
                Some(_) if self.selection.wants_stage(pipeline, up) => None,
                Some(_) => self
                    .outdated(up)?
                    .then(|| "is no longer up to date".to_owned()),
            };
            if let Some(why) = why {
                return Ok(Some(format!("stage `{}` {why}", up.name)));
            }
        }
        Ok(None)
    }

    /// Whether a stage that is not to be run would have to.
    fn outdated(&self, stage: &Stage) -> Result<bool, RunError> {
        let needed = |_: &str| Wish::Needed;
        let found = survey(
            &self.keeper.ctx,
            stage,
            &self.keeper.state,
            &Pending::default(),
            &needed,
        )
        .map_err(RunError::World)?;
        let fresh = |batch: &super::survey::Surveyed| match &batch.decision {
            Ok(Decision::Reused | Decision::Judge(_)) => true,
            // A stage that is partial was let through: what failed in it stays failed here.
            Ok(Decision::Will(reasons)) => reasons
                .iter()
                .all(|reason| matches!(reason, crate::model::reason::Reason::Failed { .. })),
            _ => false,
        };
        Ok(!found.gone.is_empty() || !found.batches.iter().all(fresh))
    }

    fn altered(
        &self,
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
        if self.selection.force {
            return Ok(altered);
        }
        if let Some(recorded) = self.keeper.state.checkpoints.get(&stage.name) {
            let path = crate::store::layout::checkpoint(stage.number);
            let file = crate::base::path::FilePath::workspace(path.clone());
            let there = crate::plan::world::World::digest(&self.keeper.ctx, &file)
                .map_err(RunError::World)?;
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

    /// Keeps of what would run what is selected.
    fn choose(
        &mut self,
        stage: &Stage,
        found: &Survey,
        will: &mut Vec<usize>,
        report: &mut StageReport,
    ) {
        let all = will.len();
        will.retain(|&index| {
            self.selection
                .wants_batch(&stage.name, &found.batches[index].batch.key)
        });
        if self.selection.failed {
            let known = self.keeper.state.stages.get(&stage.name);
            will.retain(|&index| {
                let batch =
                    known.and_then(|known| known.batches.get(&found.batches[index].batch.key));
                batch.is_some_and(|batch| {
                    matches!(batch.phase, Phase::Failed { .. })
                        || batch
                            .record
                            .as_ref()
                            .is_some_and(|record| record.placeholder.is_some())
                })
            });
        }
        if let Some(budget) = &mut self.budget {
            will.truncate(usize::try_from(*budget).unwrap_or(usize::MAX));
            *budget -= will.len() as u64;
        }
        report.left += (all - will.len()) as u64;
    }

    fn input_failed(
        &mut self,
        stage: &Stage,
        batch: &str,
        why: &str,
        report: &mut StageReport,
    ) -> Result<(), RunError> {
        let outcome = Outcome::new(crate::model::outcome::OutcomeKind::Input, why);
        self.begin(stage, None, 0, 0)?;
        let event = Event::BatchFailed {
            stage: stage.name.clone(),
            batch: batch.to_owned(),
            outcome: outcome.clone(),
            quarantine: None,
        };
        let name = super::attempt::batch_name(&stage.name, batch);
        self.keeper.record(
            EventType::Error,
            &stage.name,
            event,
            format!("{name} failed: {outcome}"),
            Vec::new(),
        )?;
        self.observer.notice(Notice::BatchFailed {
            stage: stage.name.clone(),
            batch: batch.to_owned(),
            outcome: outcome.clone(),
            quarantine: None,
        });
        report.failed.push((batch.to_owned(), outcome));
        Ok(())
    }

    /// Records that a stage begins, after the checkpoints are gone that vouch for what will be replaced.
    fn begin(
        &mut self,
        stage: &Stage,
        found: Option<&Survey>,
        batches: u64,
        will: u64,
    ) -> Result<(), RunError> {
        let pipeline = self.keeper.ctx.pipeline;
        for down in lineage::downstream(pipeline, &stage.name) {
            retire::remove_checkpoint(&mut self.keeper, &down.name, down.number)?;
        }
        retire::remove_checkpoint(&mut self.keeper, &stage.name, stage.number)?;
        self.keeper.flush()?;
        let (shared, facts) = found
            .map(|found| (found.shared_id.clone(), (*found.shared).clone()))
            .unwrap_or_default();
        let event = Event::StageStarted {
            stage: stage.name.clone(),
            number: stage.number,
            shared,
            facts,
            batches,
            will,
        };
        let summary = format!("{} begins: {will} of {batches} batches", stage.name);
        self.keeper
            .record(EventType::Invoke, &stage.name, event, summary, Vec::new())
    }

    fn work(
        &mut self,
        stage: &Stage,
        found: &Survey,
        will: &[usize],
        report: &mut StageReport,
    ) -> Result<(), RunError> {
        self.begin(
            stage,
            Some(found),
            found.batches.len() as u64,
            will.len() as u64,
        )?;
        self.handoff(stage)?;
        self.observer.notice(Notice::StageStarted {
            stage: stage.name.clone(),
            description: stage.description.clone(),
            batches: found.batches.len() as u64,
            will: will.len() as u64,
        });
        let ctx = self.keeper.ctx;
        let base = ctx.settings.scope(ctx.pipeline);
        let left = match &stage.policy.timeout {
            Some(timeout) => Some(timeout.duration(&base).map_err(RunError::World)?),
            None => None,
        };
        let rules = rules(&ctx, stage).map_err(RunError::World)?;
        let run_id = self.keeper.run_id().to_owned();
        let bench = Bench {
            ctx,
            stage,
            schemas: self.schemas,
            rules: &rules,
            environment: &self.options.environment,
            stop: self.stop,
            limits: Limits {
                grace: self.options.grace,
                backoff: self.options.backoff,
                left,
                log_cap: 1 << 20,
            },
            run_id: &run_id,
        };
        let previous = previous_files(&self.keeper.state, &stage.name);
        let order = Order {
            indices: will.to_vec(),
            at_once: at_once(stage, &base, self.options.jobs).map_err(RunError::World)?,
            keep_going: self.selection.keep_going,
            left,
            previous: &|key: &str| previous.get(key).cloned().unwrap_or_default(),
        };
        let mut file =
            finish::progress_path(stage).map(|path| ProgressFile::new(ctx.layout.at(path)));
        let watch = Stopwatch::start();
        let mut write = |keeper: &Keeper<'_>, running: &BTreeSet<u64>| -> Result<(), RunError> {
            if let Some(file) = &mut file {
                let now =
                    finish::progress_of(keeper, stage, found, running, ProgressStatus::InProgress);
                file.write(ctx.disk, &now, watch.elapsed(), false)?;
            }
            Ok(())
        };
        write(&self.keeper, &BTreeSet::new())?;
        let done = dispatch(
            &mut self.keeper,
            &bench,
            found,
            &order,
            self.observer,
            &mut write,
        )?;
        report.ran = done.ran;
        report.failed.extend(done.failed);
        report.left += done.left;
        Ok(())
    }

    /// A stage first reads what others made.
    fn handoff(&mut self, stage: &Stage) -> Result<(), RunError> {
        let from: Vec<String> = lineage::upstream(self.keeper.ctx.pipeline, stage)
            .iter()
            .map(|up| up.name.clone())
            .collect();
        if from.is_empty() {
            return Ok(());
        }
        let mut files = 0;
        let mut summaries = BTreeMap::new();
        for up in &from {
            let Some(known) = self.keeper.state.stages.get(up) else {
                continue;
            };
            files += known.outputs().count() as u64;
            let summary = known
                .batches
                .values()
                .filter_map(|batch| batch.record.as_ref()?.summary.clone())
                .reduce(finish::merged);
            if let Some(summary) = summary {
                summaries.insert(up.clone(), summary);
            }
        }
        let text = format!(
            "{} takes over {files} files from {}",
            stage.name,
            from.join(", ")
        );
        let event = Event::Handoff {
            stage: stage.name.clone(),
            from,
            files,
            summaries,
        };
        self.keeper
            .record(EventType::Handoff, &stage.name, event, text, Vec::new())
    }

    /// Ends the stage: its status, its progress file, its checkpoint.
    fn end(
        &mut self,
        stage: &Stage,
        found: &Survey,
        report: &mut StageReport,
        before: u64,
    ) -> Result<(), RunError> {
        let status = finish::status(&self.keeper, stage, found);
        let goes_on = self.selection.keep_going
            || stage.policy.on_failure == crate::model::policy::OnFailure::Continue
            || stage.policy.placeholder.is_some();
        report.status = match status {
            Some(Status::Complete) => StageStatus::Complete,
            Some(Status::Partial) if goes_on => StageStatus::Partial,
            _ if !report.failed.is_empty() => StageStatus::Failed,
            Some(Status::Partial) => StageStatus::Failed,
            None => StageStatus::Held,
        };
        let known = self.keeper.state.stages.get(&stage.name);
        let records = || {
            known
                .into_iter()
                .flat_map(|known| known.batches.values())
                .filter_map(|batch| batch.record.as_ref())
        };
        report.verdict = records()
            .filter_map(|record| record.verdict)
            .reduce(|a, b| a && b);
        report.elements = records()
            .filter_map(|record| record.elements)
            .reduce(|a, b| a + b);
        report.outputs = records()
            .flat_map(|record| &record.outputs)
            .map(|made| made.path.to_string())
            .filter(|path| path.starts_with("outputs/"))
            .take(20)
            .collect();
        let ctx = self.keeper.ctx;
        let changed = self.keeper.counted() != before;
        let path = ctx.layout.checkpoint(stage.number);
        let write_checkpoint = match report.status {
            StageStatus::Complete | StageStatus::Partial => {
                changed
                    || known.is_none_or(|known| known.status.is_none())
                    || !path.exists()
                    || self.checkpoint_differs(stage)?
            }
            _ => false,
        };
        if report.status == StageStatus::Partial && changed {
            self.retire_failed(stage, found)?;
        }
        if changed || write_checkpoint {
            self.progress(stage, found, report.status)?;
        }
        if write_checkpoint {
            let status = if report.status == StageStatus::Complete {
                Status::Complete
            } else {
                Status::Partial
            };
            finish::checkpoint(&mut self.keeper, stage, found, status)?;
        }
        Ok(())
    }

    fn checkpoint_differs(&self, stage: &Stage) -> Result<bool, RunError> {
        let path =
            crate::base::path::FilePath::workspace(crate::store::layout::checkpoint(stage.number));
        let there =
            crate::plan::world::World::digest(&self.keeper.ctx, &path).map_err(RunError::World)?;
        Ok(self.keeper.state.checkpoints.get(&stage.name).copied() != there)
    }

    /// What a failed batch made in an earlier run is not what it would make: later stages must not read it.
    fn retire_failed(&mut self, stage: &Stage, found: &Survey) -> Result<(), RunError> {
        let known = self.keeper.state.stages.get(&stage.name);
        let keys: Vec<String> = found
            .batches
            .iter()
            .filter(|found| {
                known
                    .and_then(|known| known.batches.get(&found.batch.key))
                    .is_some_and(|batch| {
                        matches!(batch.phase, Phase::Failed { .. }) && batch.record.is_some()
                    })
            })
            .map(|found| found.batch.key.clone())
            .collect();
        retire::batches(&mut self.keeper, &stage.name, &keys, self.observer)
    }

    fn progress(
        &mut self,
        stage: &Stage,
        found: &Survey,
        status: StageStatus,
    ) -> Result<(), RunError> {
        let Some(path) = finish::progress_path(stage) else {
            return Ok(());
        };
        let status = match status {
            StageStatus::Complete => ProgressStatus::Complete,
            StageStatus::Partial => ProgressStatus::Partial,
            StageStatus::Failed => ProgressStatus::Failed,
            StageStatus::Held | StageStatus::Blocked | StageStatus::Altered => ProgressStatus::Held,
        };
        let now = finish::progress_of(&self.keeper, stage, found, &BTreeSet::new(), status);
        let ctx = self.keeper.ctx;
        ProgressFile::new(ctx.layout.at(path)).write(ctx.disk, &now, Duration::ZERO, true)?;
        Ok(())
    }
}

fn empty(stage: &Stage, status: StageStatus) -> StageReport {
    StageReport {
        stage: stage.name.clone(),
        number: stage.number,
        status,
        batches: 0,
        ran: 0,
        reused: 0,
        judged: 0,
        failed: Vec::new(),
        left: 0,
        seconds: 0.0,
        why: None,
        altered: Vec::new(),
        verdict: None,
        elements: None,
        outputs: Vec::new(),
    }
}

/// What the user and the declaration want of a batch beside what is needed.
pub fn wish(selection: &Selection, stage: &Stage, batch: &str) -> Wish {
    if selection.force && selection.wants_batch(&stage.name, batch) {
        Wish::Forced
    } else if stage.policy.altered == OnAltered::Redo {
        Wish::NeededAndAltered
    } else {
        Wish::Needed
    }
}

/// Tables of rules of the agents that a stage asks, compiled once.
///
/// # Errors
/// When a table is wrong.
fn rules(ctx: &Context<'_>, stage: &Stage) -> Result<BTreeMap<String, Arc<Rules>>, String> {
    let mut tables = BTreeMap::new();
    for step in &stage.steps {
        if let crate::model::step::StepKind::Agent { agent, .. } = &step.kind {
            let found = ctx.settings.agent(ctx.pipeline, agent);
            let found = found.ok_or_else(|| {
                format!(
                    "stage `{}` asks the agent `{agent}`, which is not declared",
                    stage.name
                )
            })?;
            let Provider::Rules(asset) = &found.provider;
            let rules = Rules::parse(asset.path.as_str(), &asset.text)
                .map_err(|error| error.to_string())?;
            tables.insert(agent.clone(), Arc::new(rules));
        }
    }
    Ok(tables)
}

/// The files of each made batch of a stage, by output; of several files of one output the first.
fn previous_files(state: &State, stage: &str) -> BTreeMap<String, BTreeMap<String, RelPath>> {
    let Some(known) = state.stages.get(stage) else {
        return BTreeMap::new();
    };
    let mut all = BTreeMap::new();
    for (key, batch) in &known.batches {
        let mut files = BTreeMap::new();
        for made in batch.record.iter().flat_map(|record| &record.outputs) {
            files
                .entry(made.name.clone())
                .or_insert_with(|| made.path.clone());
        }
        all.insert(key.clone(), files);
    }
    all
}
