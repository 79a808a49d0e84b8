//! The loop over stages: look, retire, judge, run, end; or stop and say why.

use super::agents::of_stage;
use super::attempt::Bench;
use super::calls::{Purse, RunCalls};
use super::context::Context;
use super::dispatch::{Order, dispatch};
use super::ending::Ending;
use super::foresee::Foresight;
use super::keeper::Keeper;
use super::notice::{Notice, Observer};
use super::observe::Observations;
use super::progress::ProgressWriter;
use super::report::{Awaits, Report, StageReport, StageStatus, worst};
use super::services::Services;
use super::stop::StopFlag;
use super::workers::at_once;
use super::{begin, forced, kept, recover, rejudge, require, retire, rounds};
use crate::steps::agent::Agents;
use crate::steps::agent::Answerers;
use crate::steps::alarm::Alarm;
use crate::steps::command::Stop;
use crate::steps::work::Limits;
use milepost_core::base::path::{RelPath, Root};
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::stage::Stage;
use milepost_core::model::state::State;
use milepost_core::plan::decide::Alteration;
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::options::RunOptions;
use milepost_core::plan::pending::Pending;
use milepost_core::plan::scan::StageScan;
use milepost_core::plan::schedule::{Action, ObserveError, Revalidated, Schedule, StageDecision};
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
        schedule: Schedule::new(ctx.pipeline, selection),
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
    schedule: Schedule<'a>,
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
            if self.stop.stopping() {
                return Ok(());
            }
            let watch = Stopwatch::start();
            let Some(mut report) = self.stage(stage)? else {
                continue;
            };
            report.seconds = watch.elapsed().as_secs_f64();
            self.services.note(&mut self.keeper)?;
            let changed = report.ran + report.retired > 0;
            self.schedule.ended(stage, report.status, changed);
            if let Some(notice) = self.keeper.newly_kept() {
                self.observer.notice(notice);
            }
            self.observer
                .notice(Notice::StageEnded(Box::new(report.clone())));
            self.reports.push(report);
        }
        Ok(())
    }

    /// Takes a stage's turn. `None`: the schedule leaves it out, or the run stops before it.
    fn stage(&mut self, stage: &Stage) -> Result<Option<StageReport>, RunError> {
        let disk = Observations::new(self.keeper.ctx, None);
        let state = &self.keeper.state;
        let decision = self
            .schedule
            .stage(stage, state, &Pending::default(), &disk);
        let failed = |why| StageReport {
            why: Some(why),
            ..StageReport::of(stage, StageStatus::Failed)
        };
        let modified = |altered| StageReport {
            altered,
            ..StageReport::of(stage, StageStatus::Altered)
        };
        Ok(Some(match decision.map_err(observed)? {
            StageDecision::Skipped | StageDecision::Stopped(_) => return Ok(None),
            StageDecision::Blocked(blocker) => StageReport {
                why: Some(blocker.to_string()),
                failure: blocker.is_failure(self.keeper.ctx.pipeline),
                blocked_by: Some(blocker),
                ..StageReport::of(stage, StageStatus::Blocked)
            },
            StageDecision::Failed(why) => failed(why),
            StageDecision::Modified(_, files) => modified(files),
            StageDecision::Ready(found) => match self.begin(stage, found)? {
                Turn::Ended(report) => *report,
                Turn::Failed(why) => failed(why),
                Turn::Modified(files) => modified(files),
            },
        }))
    }

    /// Takes the turn of a stage that can begin.
    fn begin(&mut self, stage: &Stage, mut found: StageScan) -> Result<Turn, RunError> {
        for batch in &found.batches {
            let key = &batch.batch.key;
            tracing::debug!(decision = ?batch.decision, "{}", batch_name(&stage.name, key));
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
        let revalidated = Revalidated {
            invalid: &rejudged.invalid,
            left: &rejudged.left,
        };
        let ctx = self.keeper.ctx;
        let project = ctx.files.folder(Root::Project);
        let foresight = Foresight::new(ctx, project, self.agents, self.options.fresh);
        let disk = Observations::new(ctx, Some(&foresight));
        let state = &self.keeper.state;
        let batches = self
            .schedule
            .batches(stage, state, &found, Some(revalidated), &disk);
        let batches = match batches {
            Ok(batches) => batches,
            Err(why) => return Ok(Turn::Failed(why.to_string())),
        };
        if !batches.modified.is_empty() {
            return Ok(Turn::Modified(batches.modified));
        }
        rounds::tidy(&ctx, stage, &found, &batches.open)?;
        report.reused = batches.count(&[Action::UpToDate]);
        report.left = batches.count(&[Action::Left, Action::Wait, Action::May]);
        report.awaits = batches.awaits.clone();
        let will = batches.places(&[Action::Run, Action::Fail]);
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
        Ok(Turn::Ended(Box::new(report)))
    }

    /// Runs batches. Gives why the agents that they need cannot be asked: none of them was tried then. Where a service does not
    /// come, each fails in its turn.
    fn work(
        &mut self,
        stage: &Stage,
        found: &StageScan,
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

/// How the turn of a stage that can begin ended.
enum Turn {
    /// With this report.
    Ended(Box<StageReport>),
    /// Before any batch, for this reason.
    Failed(String),
    /// Before any batch: these outputs were modified by hand.
    Modified(Vec<(String, Alteration)>),
}

fn observed(error: ObserveError) -> RunError {
    RunError::World(error.0)
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
