//! The node's side: one process of a job, which runs batches in folders of its own and logs the record of each.

use crate::run::batch::attempt::{self, NO_SPACE};
use crate::run::batch::live::WaitingOutput;
use crate::run::batch::stage_context::{Produced, StageContext, stale};
use crate::run::context::Context;
use crate::run::error::RunError;
use crate::run::remote::handover::{HandedBatch, SubmissionRecord};
use crate::run::remote::worker_log::{BatchResult, ScarceResource, StepNote, WorkerEvent};
use crate::steps::agent::StageAgents;
use crate::steps::batch_context::{AttemptLimits, AttemptObserver, StepEvent};
use crate::steps::calls::Calls;
use crate::steps::command::{StartedProcess, StopSignal, StopTime};
use crate::steps::http::connection::Client;
use milepost_core::base::path::RelPath;
use milepost_core::model::call::{CallResponse, SentCall};
use milepost_core::model::fingerprint::FactKind;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::stage::Stage;
use milepost_core::model::step::Step;
use milepost_core::plan::options::Timing;
use milepost_core::plan::{facts, scan::BatchScan};
use milepost_store::check::schemas::Schemas;
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::id::random_bytes;
use milepost_store::store::jobs::{ProcessLog, Submission, flush};
use milepost_store::store::lock::Holder;
use milepost_store::store::scratch::{Scratch, ScratchPool};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often a file that is not visible yet is looked for.
const LOOK: Duration = Duration::from_secs(1);

/// How long a process waits for a signal to itself after a program failed.
const SIGNAL: Duration = Duration::from_millis(200);

/// How often a process looks whether its submission is still needed.
const NEEDED: Duration = Duration::from_secs(5);

/// The signal that stops a process of a job: also if the description of its submission is gone.
struct JobStop<'a> {
    stop: &'a dyn StopSignal,
    submission: &'a Submission,
    looked: Mutex<(Stopwatch, bool)>,
}

impl<'a> JobStop<'a> {
    fn new(stop: &'a dyn StopSignal, submission: &'a Submission) -> Self {
        Self {
            stop,
            submission,
            looked: Mutex::new((Stopwatch::start(), false)),
        }
    }

    /// Looks whether the submission is gone.
    fn is_gone(&self) -> bool {
        // Another error than its absence says nothing.
        let is_gone = matches!(self.submission.at(&["job.json"]).try_exists(), Ok(false));
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        *looked = (Stopwatch::start(), is_gone);
        is_gone
    }
}

impl StopSignal for JobStop<'_> {
    fn stopping(&self) -> bool {
        let looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let (is_due, is_gone) = (looked.0.elapsed() >= NEEDED, looked.1);
        drop(looked);
        self.stop.stopping() || is_gone || is_due && self.is_gone()
    }

    fn wait(&self, time: Duration) {
        self.stop.wait(time);
    }
}

/// The context of a process of a job, besides that of the run.
pub(crate) struct JobContext<'a> {
    pub(crate) ctx: Context<'a>,
    pub(crate) submission: &'a Submission,
    pub(crate) record: &'a SubmissionRecord,
    /// The index of the job.
    pub(crate) job: u64,
    pub(crate) batches: &'a [HandedBatch],
    /// How long a file of another machine may stay invisible.
    pub(crate) visible: Duration,
    pub(crate) calls: &'a dyn Calls,
    pub(crate) timing: Timing,
    pub(crate) stop: &'a dyn StopSignal,
    pub(crate) stopped: Arc<StopTime>,
}

/// Runs the batches of a job.
///
/// # Errors
/// When the job cannot begin: another version, other declarations; or when its log cannot be written.
pub(crate) fn work(job_ctx: &JobContext<'_>) -> Result<(), RunError> {
    let (ctx, record) = (job_ctx.ctx, job_ctx.record);
    let stage = checked_stage(&ctx, record)?;
    let submission = job_ctx.submission;
    let job = job_ctx.job;
    let finished = finished_elsewhere(submission, job)?;
    // Several nodes of a test cluster have one host.
    let named = ctx.own_environment.get("SLURMD_NODENAME").cloned();
    let node = named.unwrap_or_else(|| Holder::this("", ctx.clock.now(), "").host);
    let bytes: [u8; 4] = random_bytes().map_err(|error| RunError::World(error.to_string()))?;
    let random = u32::from_le_bytes(bytes);
    let name = format!("{job}.{}-{random:08x}", RelPath::of_parts([node.as_str()]));
    let mut log = submission.log(&name);
    note(
        &mut log,
        &WorkerEvent::Started {
            node: node.clone(),
            at: ctx.clock.now(),
        },
    )?;
    let schemas = Schemas::default();
    let agents = StageAgents::default();
    let timing = job_ctx.timing;
    let token = format!("job {}", submission.name());
    let stop = JobStop::new(job_ctx.stop, submission);
    let stage_ctx = StageContext {
        ctx,
        stage,
        shared: &record.shared,
        schemas: &schemas,
        agents: &agents,
        calls: job_ctx.calls,
        fresh: false,
        client: &Client::default(),
        environment: ctx.environment,
        stop: &stop,
        stopped: Arc::clone(&job_ctx.stopped),
        limits: AttemptLimits {
            grace: timing.grace,
            calls: timing.calls,
            backoff: timing.backoff,
            log_cap: 1 << 20,
            poll: timing.poll,
            stable: timing.stable,
            pace: ctx.pace,
        },
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        begun: Stopwatch::start(),
        time: None,
        run_id: &record.run,
        token: &token,
        this_run: [record.run.clone()],
        scratch_pool: ScratchPool::default(),
        live: false,
        waiting_output: WaitingOutput::default(),
        lacks: None,
    };
    for (number, batch) in job_ctx.batches.iter().enumerate() {
        if finished.contains(&batch.key) {
            continue;
        }
        if stop.is_gone() {
            return Err(not_needed(submission));
        }
        if submission.at(&["stop"]).exists() || stop.stopping() {
            break;
        }
        let begun = WorkerEvent::Begun {
            batch: batch.key.clone(),
        };
        note(&mut log, &begun)?;
        // A number that no other attempt has names the log of its programs.
        let serial = (u64::from(random) << 20) | (number as u64 + 1);
        let folder = submission.inside(&["work", &name, &number.to_string()]);
        let result = run(&stage_ctx, batch, serial, folder, (&node, job_ctx.visible));
        if stop.is_gone() {
            return Err(not_needed(submission));
        }
        let result = result?;
        if matches!(&result.result, Err(outcome) if outcome.kind == OutcomeKind::Exit) {
            // A scheduler that ends a job ends its programs at the same time; the batch did not fail by itself.
            stop.wait(SIGNAL);
            if stop.stopping() {
                break;
            }
        }
        if matches!(&result.result, Err(outcome) if outcome.kind == OutcomeKind::Cancelled) {
            break;
        }
        let is_full = result.lacked == Some(ScarceResource::Space);
        note(&mut log, &WorkerEvent::Done(Box::new(result)))?;
        if is_full {
            // The batches behind it get other jobs.
            break;
        }
    }
    note(&mut log, &WorkerEvent::Ended)
}

/// Returns the reason why a process ends before its batches.
fn not_needed(submission: &Submission) -> RunError {
    RunError::World(format!(
        "{} is gone: no run needs this job",
        submission.at(&["job.json"]).display()
    ))
}

/// Returns the stage, if this process reads the declarations as the runner did.
///
/// # Errors
/// When the version, the declarations or the environment differ.
pub(crate) fn checked_stage<'a>(
    ctx: &Context<'a>,
    record: &SubmissionRecord,
) -> Result<&'a Stage, RunError> {
    let (here, there) = (&ctx.settings.version, &record.version);
    if here != there {
        return Err(RunError::World(format!(
            "this node has milepost {here}, and the run has {there}: install the same version, or name it by `program` under [executor.{}]",
            record.executor
        )));
    }
    let differs = |what: &str| {
        RunError::World(format!(
            "{what} on this node from what the run submitted: run again after the last change of a declaration, and check that declared environment variables are the same here"
        ))
    };
    let stage = ctx.pipeline.stage(&record.stage);
    let stage = stage.ok_or_else(|| differs("the declarations differ"))?;
    let mut shared = facts::shared(stage, ctx.pipeline, ctx.settings);
    shared.hide_keys(&|text| matches!(ctx.redactor.text(text), Cow::Owned(_)));
    // The programs of the run's machine count.
    if shared.id_without(FactKind::Program) != record.declared {
        return Err(differs("the declarations or the environment differ"));
    }
    Ok(stage)
}

/// Returns the batches of which an earlier process of the job left a record.
fn finished_elsewhere(submission: &Submission, job: u64) -> Result<BTreeSet<String>, RunError> {
    let unreadable = |error: std::io::Error| RunError::World(error.to_string());
    let mut finished = BTreeSet::new();
    for process in submission.processes().map_err(unreadable)? {
        if process.split('.').next() != Some(&job.to_string()) {
            continue;
        }
        let (lines, _) = submission.lines(&process, 0).map_err(unreadable)?;
        for line in lines {
            if let Ok(WorkerEvent::Done(result)) = serde_json::from_str(&line) {
                finished.insert(result.batch);
            }
        }
    }
    Ok(finished)
}

/// Runs a batch in its folder, and flushes what it made.
fn run(
    stage_ctx: &StageContext<'_>,
    batch: &HandedBatch,
    serial: u64,
    folder: RelPath,
    (node, visible): (&str, Duration),
) -> Result<BatchResult, RunError> {
    let ctx = &stage_ctx.ctx;
    let found = batch
        .scan()
        .map_err(|error| RunError::World(error.to_string()))?;
    let begun = Stopwatch::start();
    let kills = memory_kills();
    let scratch = Scratch::create_in_job(ctx.disk, ctx.files, ctx.layout, &folder)?;
    let inputs = await_visible(visible, stage_ctx.stop, || check_inputs(stage_ctx, &found));
    let observer = StepRecorder {
        stage: stage_ctx.stage,
        steps: Mutex::default(),
    };
    let mut result = match inputs {
        Ok(()) => attempt::run_in(
            stage_ctx,
            &found,
            serial,
            &observer,
            &batch.previous,
            scratch,
        ),
        Err(outcome) => attempt::fail_in(stage_ctx, &found, scratch, outcome),
    };
    let mut lacked = None;
    if memory_kills() > kills
        && let Err(outcome) = &mut result.result
    {
        lacked = Some(ScarceResource::Memory);
        outcome.kind = OutcomeKind::Memory;
        outcome.code = stage_ctx
            .stage
            .named(Outcome::new(OutcomeKind::Memory, ""))
            .code;
        let before = std::mem::take(&mut outcome.message);
        outcome.message = format!(
            "the job ran out of memory ({before}): raise `memory` under [resources], or let it grow by `retry`"
        );
    } else if lacks_space(stage_ctx, node, &mut result.result) {
        lacked = Some(ScarceResource::Space);
    }
    if let Ok(made) = &result.result {
        let files: Vec<RelPath> = made.files.iter().map(|(_, at)| at.clone()).collect();
        flush(ctx.disk, ctx.layout, &files)?;
    }
    Ok(BatchResult {
        batch: batch.key.clone(),
        took_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        folder,
        steps: (observer.steps.into_inner()).unwrap_or_else(PoisonError::into_inner),
        log: result.log,
        lacked,
        result: result.result,
    })
}

/// Returns true if a batch failed while a disk that only this node has was full: the outcome names it. A full disk of the workspace is
/// named already, and is the same for all nodes.
fn lacks_space(
    stage_ctx: &StageContext<'_>,
    node: &str,
    result: &mut Result<Produced, Outcome>,
) -> bool {
    let outcome = match result {
        Ok(produced) => produced.placeholder.as_mut(),
        Err(outcome) => Some(outcome),
    };
    let is_own = |outcome: &&mut Outcome| {
        outcome.kind != OutcomeKind::Cancelled && !outcome.message.contains(NO_SPACE)
    };
    let Some(outcome) = outcome.filter(is_own) else {
        return false;
    };
    let declared = stage_ctx.ctx.settings.env.get("TMPDIR");
    let mut temporary = declared.map(String::as_str).into_iter().chain(["/tmp"]);
    let full = temporary.find(|folder| stage_ctx.ctx.disk.is_full(Path::new(folder)));
    if let Some(folder) = full {
        let named = Outcome::new(
            OutcomeKind::Node,
            format!(
                "{NO_SPACE} {folder} of node {node}: free space there, or declare another TMPDIR under [env] ({})",
                outcome.message
            ),
        );
        let details = std::mem::take(&mut outcome.details);
        *outcome = stage_ctx.stage.named(named.with_details(details));
    }
    full.is_some()
}

/// Tries something again while files of another machine may not be visible yet, and returns its last result.
pub(crate) fn await_visible<T, E>(
    visible: Duration,
    stop: &dyn StopSignal,
    mut attempt: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let since = Stopwatch::start();
    loop {
        let result = attempt();
        if result.is_ok() || since.elapsed() >= visible || stop.stopping() {
            return result;
        }
        stop.wait(LOOK.min(visible));
    }
}

/// Checks that all inputs have the content that the runner saw.
fn check_inputs(stage_ctx: &StageContext<'_>, found: &BatchScan) -> Result<(), Outcome> {
    let differs = |file: String| {
        let why = format!("`{file}` on this node differs from the file of the run");
        Outcome::new(OutcomeKind::Input, why)
    };
    let differing = stale(stage_ctx, found)?;
    differing.map_or(Ok(()), |file| Err(differs(file)))
}

fn note(log: &mut ProcessLog, event: &WorkerEvent) -> Result<(), RunError> {
    let line = serde_json::to_string(event).map_err(|error| RunError::World(error.to_string()))?;
    Ok(log.append(&line)?)
}

/// Returns how many processes of this job the kernel ended for lack of memory; 0 where it does not say.
fn memory_kills() -> u64 {
    let read = |path: &str| milepost_store::store::read::text(path).unwrap_or_default();
    let groups = read("/proc/self/cgroup");
    let mut lines = groups.lines();
    let Some(group) = lines.find_map(|line| line.strip_prefix("0::")) else {
        return 0;
    };
    let events = read(&format!("/sys/fs/cgroup{group}/memory.events"));
    kills_in(&events)
}

/// Returns the number of kills in a file `memory.events` (Linux, cgroup-v2).
fn kills_in(events: &str) -> u64 {
    let mut lines = events.lines();
    let number = lines.find_map(|line| line.strip_prefix("oom_kill "));
    number
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or(0)
}

/// Notes the steps of a batch: the runner adds them to the journal with the record.
struct StepRecorder<'a> {
    stage: &'a Stage,
    steps: Mutex<Vec<StepNote>>,
}

impl AttemptObserver for StepRecorder<'_> {
    fn event(&self, event: StepEvent<'_>) {
        let position = |step: &Step| {
            self.stage
                .steps
                .iter()
                .position(|one| std::ptr::eq(one, step))
        };
        let noted = match event {
            StepEvent::Step(step, _) => position(step).map(StepNote::Began),
            StepEvent::Finished(step, _, summary) => {
                position(step).map(|step| StepNote::Ended(step, summary))
            }
            // Agents and iterations stay on the machine of the runner.
            _ => None,
        };
        if self.stage.tells_steps() {
            let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
            steps.extend(noted);
        }
    }

    fn started(&self, _: &StartedProcess, _: &[String]) {}

    fn called(&self, _: u64, _: &SentCall, _: &CallResponse) {}

    fn trying_again(&self, _: u32, _: &Outcome, _: Duration) {}

    fn running(&self) -> usize {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_counted_by_the_kernel() {
        let events = "low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 0\n";
        assert_eq!(kills_in(events), 3);
        assert_eq!(kills_in(""), 0);
    }
}
