//! The loop over stages: scan, retire, validate, run, end.

use crate::run::agents::budget::{Budget, RunCalls};
use crate::run::agents::estimate::CostEstimator;
use crate::run::agents::project_agents::of_stage;
use crate::run::batch::events::{AtOnce, Order};
use crate::run::batch::iterations;
use crate::run::batch::live::WaitingOutput;
use crate::run::batch::stage_context::StageContext;
use crate::run::batch::workers::{at_once, threads};
use crate::run::check::batch_scanner::Keep;
use crate::run::check::by_page;
use crate::run::check::preconditions;
use crate::run::check::revalidate;
use crate::run::context::Context;
use crate::run::error::RunError;
use crate::run::expected;
use crate::run::notice::{Notice, Observer};
use crate::run::observe::Observations;
use crate::run::record::begin;
use crate::run::record::commit::restore;
use crate::run::record::ending::Ending;
use crate::run::record::forced;
use crate::run::record::protect;
use crate::run::record::recorder::Recorder;
use crate::run::record::recover;
use crate::run::record::retire;
use crate::run::remote::schedulers::Scheduler;
use crate::run::remote::sweep::sweep;
use crate::run::report::{Awaits, Report, StageReport, StageStatus, unfinished, worst};
use crate::run::services::Services;
use crate::run::slices::run_slices;
use crate::run::stop::StopFlag;
use crate::steps::agent::Agents;
use crate::steps::agent::StageAgents;
use crate::steps::batch_context::AttemptLimits;
use crate::steps::cancel::CancelToken;
use crate::steps::command::StopSignal;
use milepost_core::base::path::RelPath;
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::stage::Stage;
use milepost_core::model::stage_word::StageWord;
use milepost_core::model::state::State;
use milepost_core::model::step::{Step, StepKind};
use milepost_core::plan::changed::needs_few;
use milepost_core::plan::decide::Modification;
use milepost_core::plan::options::RunOptions;
use milepost_core::plan::pending::Pending;
use milepost_core::plan::scan::StageScan;
use milepost_core::plan::schedule::{Action, ObserveError, Revalidated, Schedule, StageDecision};
use milepost_core::plan::selection::Selection;
use milepost_store::check::schemas::Schemas;
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::journal::Journal;
use milepost_store::store::scratch::ScratchPool;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Runs the selected stages. `state` contains the records of the journal.
///
/// # Errors
/// When Milepost itself cannot continue: the disk fails or the journal cannot be written.
#[expect(
    clippy::too_many_arguments,
    reason = "what a run needs from its one caller"
)]
pub(crate) fn run(
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
    let mut recorder = Recorder::new(ctx, state, journal, command);
    let repairs = recover::recover(&mut recorder, selection.options.timing.grace)?;
    if !repairs.is_empty() {
        observer.notice(Notice::Recovered { repairs });
    }
    let forgotten = retire::stages(&mut recorder)?;
    if let Some(notice) = recorder.newly_kept() {
        observer.notice(notice);
    }
    iterations::tidy_stages(&ctx)?;
    let schemas = Schemas::default();
    let options = &selection.options;
    let budget = Budget::new(options, &ctx.pipeline.limits);
    let calls = RunCalls::new(ctx, recorder.run_id(), budget);
    let mut engine = Engine {
        recorder,
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
    engine.observer.notice(Notice::RunStarted {
        stages: expected::stages(&ctx, &engine.recorder.state, selection, options),
    });
    let result = engine.stages();
    let ended = engine.services.end(&mut engine.recorder);
    let interrupted = stop.stopping();
    let reports = std::mem::take(&mut engine.reports);
    let under_way = engine.under_way()?;
    let mut recorder = engine.recorder;
    result?;
    ended?;
    recorder.note_pages();
    if !interrupted {
        sweep(&recorder.ctx, &reports)?;
    }
    if recorder.has_begun() {
        let sum = |count: &dyn Fn(&StageReport) -> u64| reports.iter().map(count).sum::<u64>();
        let word = if interrupted {
            "interrupted"
        } else {
            worst(&reports).map_or("complete", StageStatus::word)
        };
        let shown = match word {
            "held" => unfinished(&reports).text(),
            "altered" => StageWord::Modified.text(),
            word => word,
        };
        let event = Event::RunFinished {
            status: word.to_owned(),
            ran: sum(&|report| report.ran),
            reused: sum(&|report| report.reused),
            failed: sum(&|report| report.failed.len() as u64),
        };
        recorder.record(
            EventType::Complete,
            "milepost",
            event,
            format!("run ended: {shown}"),
        )?;
        recorder.flush()?;
    }
    // Scratch files are not needed any more: files of failed batches are in quarantine.
    if let Some(stuck) = recover::clear_scratch(&recorder) {
        let repairs = vec![stuck];
        observer.notice(Notice::Recovered { repairs });
    }
    let run_id = recorder.run_id().to_owned();
    Ok(Report {
        run_id,
        workspace: recorder.ctx.layout.root().display().to_string(),
        forgotten,
        quarantined: recorder.kept,
        stages: reports,
        stored: Vec::new(),
        interrupted,
        under_way,
        seconds: watch.elapsed().as_secs_f64(),
    })
}

struct Engine<'a, 'k> {
    recorder: Recorder<'k>,
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
    /// Polls the provider batches of earlier runs, also of agents that this run did not ask, and returns how many are in
    /// flight.
    fn under_way(&self) -> Result<u64, RunError> {
        let ctx = &self.recorder.ctx;
        let under_way = || self.calls.under_way().map_err(RunError::World);
        if under_way()? == 0 || self.stop.stopping() {
            return under_way();
        }
        let agents = ctx.pipeline.agents.values();
        let stopped = || self.stop.stopping();
        let pace = self.recorder.ctx.pace;
        self.agents.sweep(agents, self.calls, &stopped, pace);
        under_way()
    }

    fn stages(&mut self) -> Result<(), RunError> {
        let pipeline = self.recorder.ctx.pipeline;
        forced::note(&mut self.recorder, self.selection, self.options.fresh)?;
        for stage in &pipeline.stages {
            if self.stop.stopping() {
                return Ok(());
            }
            let watch = Stopwatch::start();
            let Some(mut report) = self.stage(stage)? else {
                continue;
            };
            report.seconds = watch.elapsed().as_secs_f64();
            self.services.note(&mut self.recorder)?;
            let changed = report.ran + report.restored + report.retired > 0;
            self.schedule.ended(stage, report.status, changed);
            if let Some(notice) = self.recorder.newly_kept() {
                self.observer.notice(notice);
            }
            self.observer
                .notice(Notice::StageEnded(Box::new(report.clone())));
            self.reports.push(report);
        }
        Ok(())
    }

    /// Processes a stage; `None` if the schedule leaves it out or the run stops before it.
    fn stage(&mut self, stage: &Stage) -> Result<Option<StageReport>, RunError> {
        let ctx = self.recorder.ctx;
        by_page::read_needed(&ctx, stage, &mut self.recorder.state, true)?;
        let disk = Observations {
            keep: self.keep(stage),
            ..Observations::new(ctx, None)
        };
        let state = &self.recorder.state;
        let decision = self
            .schedule
            .stage(stage, state, &Pending::default(), &disk);
        let failed = |why| StageReport {
            why: Some(why),
            ..StageReport::of(stage, StageStatus::Failed)
        };
        let modified = |altered| StageReport {
            altered,
            ..StageReport::of(stage, StageStatus::Modified)
        };
        Ok(Some(match decision.map_err(observed)? {
            StageDecision::Skipped | StageDecision::Stopped(_) => return Ok(None),
            StageDecision::Blocked(blocker) => StageReport {
                why: Some(blocker.to_string()),
                failure: blocker.is_failure(self.recorder.ctx.pipeline),
                blocked_by: Some(blocker),
                ..StageReport::of(stage, StageStatus::Blocked)
            },
            StageDecision::Failed(why) => failed(why),
            StageDecision::Modified(_, files) => modified(files),
            StageDecision::Ready(found) => match self.begin(stage, found)? {
                StageTurn::Ended(report) => *report,
                StageTurn::Failed(why) => failed(why),
                StageTurn::Modified(files) => modified(files),
            },
        }))
    }

    /// Returns for which batches of a stage the details are kept from the scan on. Schedulers, agents, the record of known failures
    /// and a selection of batches need all.
    fn keep(&self, stage: &Stage) -> Keep<'static> {
        let ctx = &self.recorder.ctx;
        let is_agent = |step: &Step| matches!(step.kind, StepKind::Agent(_));
        let options = self.options;
        let needs_all = options.known_failures.is_some()
            || options.limit.is_some()
            || options.failed
            || options.force
            || !self.selection.wants_whole(&stage.name)
            || stage.steps.iter().any(is_agent)
            || Scheduler::of_stage(ctx, stage, options).is_some();
        if !needs_all && needs_few(ctx.pipeline, stage, false) {
            Keep::Slices
        } else {
            Keep::Undone
        }
    }

    /// Processes a stage that can start.
    fn begin(&mut self, stage: &Stage, mut found: StageScan) -> Result<StageTurn, RunError> {
        if !found.collisions.is_empty() {
            self.observer.notice(Notice::Collisions {
                stage: stage.name.clone(),
                collisions: found.collisions.clone(),
            });
        }
        if tracing::enabled!(tracing::Level::DEBUG) {
            for batch in &found.batches {
                let mut record = match &batch.decision {
                    Ok(decision) => json!(decision),
                    Err(missed) => json!({ "decision": "impossible", "why": missed.to_string() }),
                };
                record["stage"] = stage.name.as_str().into();
                record["batch"] = batch.batch.key.as_str().into();
                tracing::debug!(%record);
            }
        }
        let mut report = StageReport {
            batches: found.count(),
            retired: found.gone.len() as u64,
            ..StageReport::of(stage, StageStatus::Complete)
        };
        let before = self.recorder.counted();
        retire::batches(
            &mut self.recorder,
            &stage.name,
            &found.gone,
            retire::Cause::Gone,
        )?;
        if let Some(notice) = self.recorder.newly_kept() {
            self.observer.notice(notice);
        }
        report.restored = restore(&mut self.recorder, stage, &mut found)?;
        let cancel = CancelToken::new(self.stop.stopped());
        let revalidation =
            revalidate::revalidate(&mut self.recorder, stage, &found, self.schemas, &cancel)?;
        report.judged = revalidation.valid;
        for &index in &revalidation.invalid {
            let batch = &mut found.batches[index];
            if let Some(refused) = preconditions::refused(&self.recorder.ctx, stage, batch, true) {
                batch.decision = Err(refused);
            }
        }
        let revalidated = Revalidated {
            invalid: &revalidation.invalid,
            left: &revalidation.left,
        };
        let ctx = self.recorder.ctx;
        let estimator = CostEstimator::new(ctx, self.agents, self.options);
        let disk = Observations::new(ctx, Some(&estimator));
        let state = &self.recorder.state;
        let batches = self
            .schedule
            .batches(stage, state, &found, Some(revalidated), &disk);
        let batches = match batches {
            Ok(batches) => batches,
            Err(why) => return Ok(StageTurn::Failed(why.to_string())),
        };
        if !batches.modified.is_empty() {
            return Ok(StageTurn::Modified(batches.modified));
        }
        iterations::tidy(&ctx, stage, &found, &batches.open)?;
        report.reused = batches.count(&[Action::UpToDate]) + found.others;
        report.left = batches.count(&[Action::Left, Action::Wait, Action::May]);
        report.held = batches.money.as_ref().map(|money| money.why.clone());
        report.approval.clone_from(&batches.approval);
        report.awaits.clone_from(&batches.awaits);
        let will = batches.places(&[Action::Run, Action::Fail]);
        let mut unavailable = None;
        let is_ahead = !found.ahead.is_empty();
        if is_ahead || !will.is_empty() {
            unavailable = self.run_batches(stage, &mut found, &will, &mut report)?;
        }
        if !is_ahead && (!report.failed.is_empty() || report.left > 0 || unavailable.is_some()) {
            self.recorder.read_rest()?;
        }
        let ending = Ending {
            selection: self.selection,
            stage,
            found: &found,
            invalid: &revalidation.invalid,
            before,
            unavailable,
        };
        ending.end(&mut self.recorder, &mut report)?;
        Ok(StageTurn::Ended(Box::new(report)))
    }

    /// Runs batches. Returns the reason why a required agent is unavailable; nothing has run in that case. If a service is
    /// unavailable, every batch fails.
    #[expect(clippy::too_many_lines)]
    fn run_batches(
        &mut self,
        stage: &Stage,
        found: &mut StageScan,
        will: &[usize],
        report: &mut StageReport,
    ) -> Result<Option<String>, RunError> {
        let ahead = found.ahead.len();
        let count = (will.len() + ahead) as u64;
        begin::begin(&mut self.recorder, stage, found, count)?;
        begin::handoff(&mut self.recorder, stage)?;
        self.observer.notice(Notice::StageStarted {
            stage: stage.name.clone(),
            description: stage.description.clone(),
            batches: found.count(),
            will: count,
            up_to_date: report.reused,
        });
        // No service is started for batches that fail before they start.
        let begins = ahead > 0 || will.iter().any(|&at| found.batches[at].decision.is_ok());
        let unavailable = if begins {
            let services = &mut self.services;
            let client = self.agents.client();
            services.need(&mut self.recorder, stage, client, self.observer)?
        } else {
            None
        };
        let unavailable = unavailable.map(|why| Outcome::new(OutcomeKind::Connect, why));
        let ctx = self.recorder.ctx;
        let base = ctx.settings.scope(ctx.pipeline);
        let time = match &stage.policy.timeout {
            Some(timeout) => Some(
                timeout
                    .duration(&base)
                    .map_err(|error| RunError::World(error.to_string()))?,
            ),
            None => None,
        };
        let agents = if begins {
            of_stage(&ctx, stage, self.agents)
        } else {
            Ok(StageAgents::default())
        };
        let agents = match agents {
            Ok(agents) => agents,
            Err(why) => return Ok(Some(why)),
        };
        let run_id = self.recorder.run_id().to_owned();
        let jobs = self.options.jobs.map(|jobs| usize::from(jobs.get()));
        let stage_ctx = StageContext {
            ctx,
            stage,
            shared: &found.shared.coarse_id(),
            schemas: self.schemas,
            agents: &agents,
            calls: self.calls,
            fresh: self.options.fresh,
            client: self.agents.client(),
            environment: ctx.environment,
            stop: self.stop,
            stopped: self.stop.stopped(),
            begun: Stopwatch::start(),
            time,
            limits: AttemptLimits {
                grace: self.options.timing.grace,
                calls: self.options.timing.calls,
                backoff: self.options.timing.backoff,
                log_cap: 1 << 20,
                poll: self.options.timing.poll,
                stable: self.options.timing.stable,
                pace: self.recorder.ctx.pace,
            },
            threads: threads(jobs),
            run_id: &run_id,
            token: &run_id,
            this_run: [run_id.clone()],
            scratch_pool: ScratchPool::default(),
            live: self.observer.wants_output(),
            waiting_output: WaitingOutput::default(),
            lacks: unavailable,
        };
        let previous = previous_files(&self.recorder.state, &stage.name);
        let is_limited = stage.policy.concurrency.is_some() || jobs.is_some();
        let at_once = at_once(stage, &base, jobs, agents.are_batched()).map_err(RunError::World)?;
        let order = Order {
            indices: will.to_vec(),
            may_run_more: !is_limited
                && matches!(at_once, AtOnce::Batches(1))
                && !agents.limit_concurrency(),
            at_once,
            failed_before: 0,
            keep_going: self.options.keep_going,
            is_forced: self.options.force,
            previous: &|key: &str| previous.get(key).cloned().unwrap_or_default(),
        };
        let scheduler = Scheduler::of_stage(&ctx, stage, self.options);
        let remote = scheduler.as_ref();
        let remote = remote.map(|scheduler| scheduler.remote(&order, is_limited));
        protect::put_progress_away(&mut self.recorder, stage)?;
        let done = run_slices(
            &mut self.recorder,
            &stage_ctx,
            found,
            &order,
            self.observer,
            remote.as_ref(),
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
        report.held = report.held.take().or(done.held);
        report.unreachable = done.unreachable;
        if done.awaits > 0 {
            let who = agents.external();
            report.awaits.get_or_insert_with(|| Awaits::by(who)).batches += done.awaits;
        }
        report.spent = done.spent;
        Ok(done.unavailable)
    }
}

/// The result of a stage that could start.
enum StageTurn {
    Ended(Box<StageReport>),
    /// No batch ran, for this reason.
    Failed(String),
    /// No batch ran, because these outputs were modified by hand.
    Modified(Vec<(String, Modification)>),
}

fn observed(error: ObserveError) -> RunError {
    RunError::World(error.0)
}

/// Returns the files of each batch of a stage by output; the first if an output has several.
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
