//! The loop over stages: look, retire, judge, run, end; or stop and say why.

use super::agents::of_stage;
use super::attempt::{Bench, batch_name};
use super::calls::{Purse, RunCalls};
use super::context::Context;
use super::dispatch::{Order, dispatch};
use super::ending::Ending;
use super::foresee::Foresight;
use super::keeper::Keeper;
use super::notice::{Notice, Observer};
use super::progress::ProgressWriter;
use super::report::{Awaits, Report, StageReport, StageStatus, worst};
use super::services::Services;
use super::stop::StopFlag;
use super::survey::{Keep, Survey, survey};
use super::workers::at_once;
use super::{begin, forced, gate, kept, recover, rejudge, require, retire, rounds};
use crate::steps::agent::Agents;
use crate::steps::agent::Answerers;
use crate::steps::alarm::Alarm;
use crate::steps::command::Stop;
use crate::steps::work::Limits;
use milepost_core::base::path::{RelPath, Root};
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::policy::OnAltered;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::State;
use milepost_core::plan::decide::{Decision, Wish};
use milepost_core::plan::options::RunOptions;
use milepost_core::plan::pending::Pending;
use milepost_core::plan::selection::Selection;
use milepost_store::check::schemas::Schemas;
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::journal::Journal;
use milepost_store::store::scratch::Spares;
use std::collections::{BTreeMap, BTreeSet};

/// Our own inability to go on. A failed step is an outcome, not an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The disk.
    #[error(transparent)]
    Disk(#[from] milepost_store::store::disk::DiskError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] milepost_store::store::journal::JournalError),
    /// A manifest.
    #[error(transparent)]
    Manifest(#[from] milepost_store::store::manifest::ManifestError),
    /// A checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] milepost_store::store::checkpoint::CheckpointError),
    /// A scratch folder.
    #[error(transparent)]
    Scratch(#[from] milepost_store::store::scratch::ScratchError),
    /// Files on their way into place.
    #[error(transparent)]
    Publish(#[from] milepost_store::store::publish::PublishError),
    /// An event that cannot follow: a defect of Milepost.
    #[error(
        "the state machine refused an event ({0}): this is a defect of Milepost, please report it"
    )]
    Machine(#[from] milepost_core::plan::machine::IllegalTransition),
    /// A file that could not be looked at.
    #[error("{0}")]
    World(String),
}

/// Runs what is selected. `records` are those of the journal's last segment, which `state` already holds.
///
/// # Errors
/// When Milepost itself cannot go on: the disk fails, the journal cannot be written.
#[expect(
    clippy::too_many_arguments,
    reason = "what a run needs from its one caller"
)]
pub fn run(
    ctx: Context<'_>,
    state: State,
    journal: Journal,
    selection: &Selection,
    command: &str,
    agents: &Agents,
    observer: &mut dyn Observer,
    stop: &StopFlag,
) -> Result<Report, RunError> {
    let watch = Stopwatch::start();
    let mut keeper = Keeper::new(ctx, state, journal, command);
    let what = recover::recover(&mut keeper, selection.options.timing.grace)?;
    if !what.is_empty() {
        observer.notice(Notice::Recovered { what });
    }
    let forgotten = retire::stages(&mut keeper)?;
    if let Some(notice) = keeper.newly_kept() {
        observer.notice(notice);
    }
    rounds::tidy_stages(&ctx)?;
    let schemas = Schemas::default();
    let project = ctx.files.folder(Root::Project);
    let options = &selection.options;
    let purse = Purse::new(options, &ctx.pipeline.limits);
    let calls = RunCalls::new(ctx, project, keeper.run_id(), purse);
    let mut engine = Engine {
        keeper,
        selection,
        options,
        observer,
        stop,
        schemas: &schemas,
        agents,
        calls: &calls,
        budget: options.limit,
        services: Services::new(options.timing, stop),
        reports: Vec::new(),
    };
    let result = engine.stages();
    let ended = engine.services.end(&mut engine.keeper);
    let interrupted = stop.stopping();
    let reports = std::mem::take(&mut engine.reports);
    let under_way = engine.under_way()?;
    let mut keeper = engine.keeper;
    result?;
    ended?;
    if keeper.has_begun() {
        let sum = |count: &dyn Fn(&StageReport) -> u64| reports.iter().map(count).sum::<u64>();
        let word = if interrupted {
            "interrupted"
        } else {
            worst(&reports).map_or("complete", StageStatus::word)
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
    // What attempts left is of no use to anybody: what failed is in quarantine.
    let scratch = ctx.layout.scratch();
    if scratch.exists() {
        ctx.disk.remove_dir_all(&scratch)?;
    }
    let run_id = keeper.run_id().to_owned();
    Ok(Report {
        run_id,
        workspace: keeper.ctx.layout.root().display().to_string(),
        forgotten,
        quarantined: keeper.kept,
        stages: reports,
        stored: Vec::new(),
        interrupted,
        under_way,
        seconds: watch.elapsed().as_secs_f64(),
    })
}

struct Engine<'a, 'k> {
    keeper: Keeper<'k>,
    selection: &'a Selection,
    options: &'a RunOptions,
    observer: &'a mut dyn Observer,
    stop: &'a StopFlag,
    schemas: &'a Schemas,
    agents: &'a Agents,
    calls: &'a RunCalls<'k>,
    budget: Option<u64>,
    services: Services<'a>,
    reports: Vec<StageReport>,
}

impl Engine<'_, '_> {
    /// Looks after the batches that are under way at providers, also of agents that nobody asked; how many are still.
    fn under_way(&self) -> Result<u64, RunError> {
        let ctx = &self.keeper.ctx;
        let under_way = || self.calls.under_way().map_err(RunError::World);
        if under_way()? == 0 || self.stop.stopping() {
            return under_way();
        }
        let agents = ctx.pipeline.agents.values();
        let stopped = || self.stop.stopping();
        let pace = self.keeper.ctx.pace;
        self.agents.sweep(agents, self.calls, &stopped, pace);
        under_way()
    }

    fn stages(&mut self) -> Result<(), RunError> {
        let pipeline = self.keeper.ctx.pipeline;
        forced::note(&mut self.keeper, self.selection, self.options.fresh)?;
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
            self.services.note(&mut self.keeper)?;
            let status = report.status;
            if let Some(notice) = self.keeper.newly_kept() {
                self.observer.notice(notice);
            }
            self.observer
                .notice(Notice::StageEnded(Box::new(report.clone())));
            self.reports.push(report);
            if status == StageStatus::Altered {
                return Ok(());
            }
        }
        Ok(())
    }

    fn stage(&mut self, stage: &Stage) -> Result<StageReport, RunError> {
        if let Some(obstacle) = self.blocked_by(stage)? {
            return Ok(StageReport {
                why: Some(obstacle.to_string()),
                failure: gate::is_failure(self.keeper.ctx.pipeline, &obstacle),
                blocked_by: Some(obstacle),
                ..StageReport::of(stage, StageStatus::Blocked)
            });
        }
        let selection = self.selection;
        let wish = |batch: &str| wish(selection, stage, batch);
        let mut found = match survey(
            &self.keeper.ctx,
            stage,
            &self.keeper.state,
            &Pending::default(),
            &wish,
            Keep::Undone,
        ) {
            Ok(found) => found,
            Err(why) => {
                return Ok(StageReport {
                    why: Some(why),
                    ..StageReport::of(stage, StageStatus::Failed)
                });
            }
        };
        for batch in &found.batches {
            let key = &batch.batch.key;
            tracing::debug!(decision = ?batch.decision, "{}", batch_name(&stage.name, key));
        }
        let keys = found.batches.iter().map(|batch| batch.batch.key.as_str());
        if let Some(why) = selection.unknown_batch(&stage.name, keys) {
            return Ok(StageReport {
                why: Some(why),
                ..StageReport::of(stage, StageStatus::Failed)
            });
        }
        let altered = gate::altered(
            &self.keeper.ctx,
            &self.keeper.state,
            self.selection,
            stage,
            &found,
        )
        .map_err(RunError::World)?;
        if !altered.is_empty() {
            return Ok(StageReport {
                altered,
                ..StageReport::of(stage, StageStatus::Altered)
            });
        }
        let mut report = StageReport {
            batches: found.batches.len() as u64,
            retired: found.gone.len() as u64,
            ..StageReport::of(stage, StageStatus::Complete)
        };
        let before = self.keeper.counted();
        retire::batches(
            &mut self.keeper,
            &stage.name,
            &found.gone,
            retire::Cause::Gone,
        )?;
        if let Some(notice) = self.keeper.newly_kept() {
            self.observer.notice(notice);
        }
        let alarm = Alarm::new(self.stop.seen());
        let rejudged = rejudge::rejudge(&mut self.keeper, stage, &found, self.schemas, &alarm)?;
        report.judged = rejudged.valid;
        for &index in &rejudged.invalid {
            let batch = &mut found.batches[index];
            if let Some(refused) = require::refused(&self.keeper.ctx, stage, batch, true) {
                batch.decision = Err(refused);
            }
        }
        let pinned = gate::pinned(&self.keeper.state, stage, &found, &rejudged.invalid);
        if !pinned.is_empty() && stage.policy.altered != OnAltered::Redo {
            return Ok(StageReport {
                altered: pinned,
                ..StageReport::of(stage, StageStatus::Altered)
            });
        }
        let mut will = Vec::new();
        for (index, batch) in found.batches.iter().enumerate() {
            match &batch.decision {
                Ok(Decision::Reused) => report.reused += 1,
                Ok(Decision::Judge(_)) if rejudged.left.contains(&index) => {}
                Ok(Decision::Judge(_)) if !rejudged.invalid.contains(&index) => report.reused += 1,
                // What lacks an input fails in its turn, so that what follows a failure is the same for all.
                Ok(Decision::Judge(_) | Decision::Will(_)) | Err(_) => will.push(index),
                Ok(Decision::May(_) | Decision::Altered(_)) => report.left += 1,
            }
        }
        report.left += rejudged.left.len() as u64;
        rounds::tidy(&self.keeper.ctx, stage, &found, &will)?;
        if let Err(why) = self.set_apart(stage, &found, &mut will, &mut report) {
            return Ok(StageReport {
                why: Some(why),
                ..StageReport::of(stage, StageStatus::Failed)
            });
        }
        self.choose(stage, &found, &mut will, &mut report);
        let mut lacks = None;
        if !will.is_empty() {
            lacks = self.work(stage, &found, &will, &mut report)?;
        }
        let ending = Ending {
            selection: self.selection,
            stage,
            found: &found,
            invalid: &rejudged.invalid,
            before,
            unavailable: lacks,
        };
        ending.end(&mut self.keeper, &mut report)?;
        Ok(report)
    }

    /// Why a stage may not begin.
    fn blocked_by(&self, stage: &Stage) -> Result<Option<gate::Obstacle>, RunError> {
        let standing = self.reports.iter();
        let standing = standing.map(|report| (report.stage.clone(), report.status));
        let (ctx, state) = (&self.keeper.ctx, &self.keeper.state);
        gate::blocked_by(ctx, state, &standing.collect(), stage).map_err(RunError::World)
    }

    /// Leaves those batches that someone outside has to answer for first.
    fn set_apart(
        &self,
        stage: &Stage,
        found: &Survey,
        will: &mut Vec<usize>,
        report: &mut StageReport,
    ) -> Result<(), String> {
        let ctx = self.keeper.ctx;
        let project = ctx.files.folder(Root::Project);
        let wanted = |index: &usize| {
            let batch = &found.batches[*index];
            let is_wanted = self.selection.wants_batch(&stage.name, &batch.batch.key);
            is_wanted && batch.decision.is_ok()
        };
        let those: Vec<usize> = will.iter().copied().filter(wanted).collect();
        let batches: Vec<_> = those.iter().map(|&index| &found.batches[index]).collect();
        let foresight = Foresight::new(ctx, project, self.agents, self.options.fresh);
        let awaited = foresight.awaited(stage, &batches)?;
        let waits: BTreeSet<usize> = those
            .iter()
            .zip(&awaited)
            .filter_map(|(&index, sent)| sent.as_ref().map(|_| index))
            .collect();
        will.retain(|index| !waits.contains(index));
        report.left += waits.len() as u64;
        report.awaits = Awaits::of(awaited.iter().flatten());
        Ok(())
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
        let changed = |earlier: &str| {
            let mut reports = self.reports.iter();
            reports.any(|report| report.stage == earlier && report.ran + report.retired > 0)
        };
        let pipeline = self.keeper.ctx.pipeline;
        if self.selection.skips_over(pipeline, stage, &changed) {
            // The plan could not know whether the stage would begin: the batches stay forced.
            will.retain(|&index| match &found.batches[index].decision {
                Ok(Decision::Will(reasons)) => !gate::only_forced_before(reasons),
                _ => true,
            });
        }
        if self.options.failed {
            let known = self.keeper.state.stages.get(&stage.name);
            will.retain(|&index| {
                let batch =
                    known.and_then(|known| known.batches.get(&found.batches[index].batch.key));
                batch.is_some_and(forced::is_failed)
            });
        }
        if self.options.known_failures.is_some() {
            will.retain(|&index| {
                let batch = &found.batches[index];
                let facts = found.facts(batch);
                batch.decision.is_err()
                    || !self
                        .selection
                        .was_tried(&stage.name, &batch.batch.key, &facts)
            });
        }
        if let Some(budget) = &mut self.budget {
            // A batch that cannot be tried for want of an input costs nothing.
            will.retain(|&index| {
                let costs = u64::from(found.batches[index].decision.is_ok());
                let fits = costs <= *budget;
                *budget -= if fits { costs } else { 0 };
                fits
            });
        }
        report.left += (all - will.len()) as u64;
    }

    /// Runs batches. Gives why the agents that they need cannot be asked: none of them was tried then. Where a service does not
    /// come, each fails in its turn.
    fn work(
        &mut self,
        stage: &Stage,
        found: &Survey,
        will: &[usize],
        report: &mut StageReport,
    ) -> Result<Option<String>, RunError> {
        begin::begin(&mut self.keeper, stage, found, will.len() as u64)?;
        begin::handoff(&mut self.keeper, stage)?;
        self.observer.notice(Notice::StageStarted {
            stage: stage.name.clone(),
            description: stage.description.clone(),
            batches: found.batches.len() as u64,
            will: will.len() as u64,
        });
        // For batches that fail before they begin, no service is started.
        let begins = will.iter().any(|&at| found.batches[at].decision.is_ok());
        let lacks = if begins {
            let services = &mut self.services;
            services.need(&mut self.keeper, stage, self.agents.http(), self.observer)?
        } else {
            None
        };
        let lacks = lacks.map(|why| Outcome::new(OutcomeKind::Connect, why));
        let ctx = self.keeper.ctx;
        let base = ctx.settings.scope(ctx.pipeline);
        let time = match &stage.policy.timeout {
            Some(timeout) => Some(timeout.duration(&base).map_err(RunError::World)?),
            None => None,
        };
        let agents = if begins {
            of_stage(&ctx, stage, self.agents)
        } else {
            Ok(Answerers::default())
        };
        let agents = match agents {
            Ok(agents) => agents,
            Err(why) => return Ok(Some(why)),
        };
        let run_id = self.keeper.run_id().to_owned();
        let bench = Bench {
            ctx,
            stage,
            shared: &found.shared.coarse_id(),
            schemas: self.schemas,
            agents: &agents,
            calls: self.calls,
            fresh: self.options.fresh,
            http: self.agents.http(),
            environment: ctx.environment,
            stop: self.stop,
            wished: self.stop.seen(),
            begun: Stopwatch::start(),
            time,
            limits: Limits {
                grace: self.options.timing.grace,
                backoff: self.options.timing.backoff,
                log_cap: 1 << 20,
                poll: self.options.timing.poll,
                stable: self.options.timing.stable,
                pace: self.keeper.ctx.pace,
            },
            run_id: &run_id,
            this_run: [run_id.clone()],
            spares: Spares::default(),
            lacks,
        };
        let previous = previous_files(&self.keeper.state, &stage.name);
        let jobs = self.options.jobs.map(|jobs| usize::from(jobs.get()));
        let order = Order {
            indices: will.to_vec(),
            at_once: at_once(stage, &base, jobs, agents.are_batched()).map_err(RunError::World)?,
            keep_going: self.options.keep_going,
            previous: &|key: &str| previous.get(key).cloned().unwrap_or_default(),
        };
        kept::put_progress_away(&mut self.keeper, stage)?;
        let mut progress = ProgressWriter::new(ctx, stage, found);
        progress.write_if_due(&self.keeper, &BTreeSet::new())?;
        let done = dispatch(
            &mut self.keeper,
            &bench,
            found,
            &order,
            self.observer,
            &mut progress,
        )?;
        report.ran = done.ran;
        report.failed.extend(done.failed);
        if self.options.known_failures.is_some() {
            let failed: BTreeSet<&str> = report.failed.iter().map(|(key, _)| &**key).collect();
            let batches = found.batches.iter();
            let tried = batches.filter(|batch| failed.contains(batch.batch.key.as_str()));
            report.tried = tried
                .map(|batch| (batch.batch.key.clone(), found.facts(batch)))
                .collect();
        }
        report.left += done.left;
        report.held = done.held;
        if done.awaits > 0 {
            let who = agents.external();
            report.awaits.get_or_insert_with(|| Awaits::by(who)).batches += done.awaits;
        }
        report.spent = done.spent;
        Ok(None)
    }
}

/// What the user and the declaration want of a batch beside what is needed.
pub fn wish(selection: &Selection, stage: &Stage, batch: &str) -> Wish {
    if selection.options.force && selection.wants_batch(&stage.name, batch) {
        Wish::Forced
    } else if stage.policy.altered == OnAltered::Redo {
        Wish::NeededAndAltered
    } else {
        Wish::Needed
    }
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
