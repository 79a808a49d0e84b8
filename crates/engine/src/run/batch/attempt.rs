//! One attempt of one batch: builds its scope, runs its steps, and validates and hashes its outputs in scratch.

use crate::run::batch::attempt_log::AttemptLog;
use crate::run::batch::iterations::AttemptIterations;
use crate::run::batch::output_dir::{ScratchFile, ScratchOutputDir};
use crate::run::batch::placeholder::placeholder;
use crate::run::batch::stage_context::{
    AttemptResult, Produced, StageContext, add_marker, content, stale,
};
use crate::run::check::dependencies;
use crate::run::check::scopes;
use crate::run::check::validate;
use crate::steps::attempt::{attempt, stage_is_over};
use crate::steps::batch_context::{AttemptObserver, BatchContext, cancelled};
use crate::steps::cancel::{CancelReason, CancelToken};
use crate::steps::worker::JqWorkers;
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::base::source::Source;
use milepost_core::base::words;
use milepost_core::expr::scope::Scope;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::reason::Reason;
use milepost_core::model::record::{FailedKeys, Made};
use milepost_core::model::stage::{Output, Stage};
use milepost_core::model::step::Outputs;
use milepost_core::plan::decide::Decision;
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::scan::BatchScan;
use milepost_store::store::scratch::{self, Scratch};
use std::cell::{Cell, LazyCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Runs a batch. `previous` contains the files that it made last time, by output.
pub(crate) fn run(
    stage_ctx: &StageContext<'_>,
    found: &BatchScan,
    serial: u64,
    observer: &dyn AttemptObserver,
    previous: &BTreeMap<String, RelPath>,
) -> AttemptResult {
    match create_scratch(stage_ctx, found, serial) {
        Ok(scratch) => run_in(stage_ctx, found, serial, observer, previous, scratch),
        Err(outcome) => without_scratch(outcome),
    }
}

/// Returns the result of a batch that failed before it could run: its placeholder, if the stage declares one.
pub(crate) fn fail(
    stage_ctx: &StageContext<'_>,
    found: &BatchScan,
    serial: u64,
    outcome: Outcome,
) -> AttemptResult {
    if stage_ctx.stage.policy.placeholder.is_none() {
        return without_scratch(outcome.for_record(stage_ctx.ctx.redactor));
    }
    match create_scratch(stage_ctx, found, serial) {
        Ok(scratch) => fail_in(stage_ctx, found, scratch, outcome),
        Err(outcome) => without_scratch(outcome),
    }
}

/// As `fail`, in a scratch.
pub(crate) fn fail_in(
    stage_ctx: &StageContext<'_>,
    found: &BatchScan,
    scratch: Scratch,
    outcome: Outcome,
) -> AttemptResult {
    let outcome = stage_ctx
        .stage
        .named(outcome.for_record(stage_ctx.ctx.redactor));
    AttemptResult {
        result: placeholder(
            stage_ctx,
            found,
            &scratch,
            outcome,
            milepost_core::model::call::Spent::default(),
        ),
        log: None,
        scratch: Some(scratch),
    }
}

/// Returns the result of an attempt that failed and left nothing.
pub(crate) fn without_scratch(outcome: Outcome) -> AttemptResult {
    AttemptResult {
        result: Err(outcome),
        scratch: None,
        log: None,
    }
}

fn create_scratch(
    stage_ctx: &StageContext<'_>,
    found: &BatchScan,
    serial: u64,
) -> Result<Scratch, Outcome> {
    let scratch = Scratch::create(
        stage_ctx.ctx.disk,
        stage_ctx.ctx.files,
        stage_ctx.ctx.layout,
        &scratch::AttemptName {
            run: stage_ctx.run_id,
            stage: &stage_ctx.stage.name,
            batch: &found.batch.key,
            number: serial,
        },
        (wants_folder(stage_ctx.stage) || stage_ctx.agents.start_programs())
            .then_some(&stage_ctx.scratch_pool),
        &mut found.targets.values(),
    );
    scratch.map_err(|error| Outcome::new(OutcomeKind::Output, error.to_string()))
}

/// Runs a batch in its scratch.
pub(crate) fn run_in(
    stage_ctx: &StageContext<'_>,
    found: &BatchScan,
    serial: u64,
    observer: &dyn AttemptObserver,
    previous: &BTreeMap<String, RelPath>,
    scratch: Scratch,
) -> AttemptResult {
    let name = batch_name(&stage_ctx.stage.name, &found.batch.key);
    let cancel = CancelToken::new(Arc::clone(&stage_ctx.stopped));
    cancel.set_time(stage_ctx.left());
    let mut log = AttemptLog::new(stage_ctx, &found.batch.key, serial);
    let outputs = ScratchOutputDir::new(&scratch, stage_ctx.stage, &found.targets, &cancel);
    let iterations = AttemptIterations::new(stage_ctx, found, &scratch);
    let sent = Cell::default();
    let result = within(
        stage_ctx,
        found,
        &name,
        &scratch,
        &outputs,
        &iterations,
        &mut log,
        observer,
        previous,
        &cancel,
        &sent,
    );
    let result = result.or_else(|outcome| iterations.failed().and(Err(outcome)));
    let result = result.map_err(|outcome| match cancel.reason() {
        Some(CancelReason::Stopped) => cancelled(),
        // Reading and writing were cancelled and failed with other messages.
        Some(CancelReason::TimedOut) if outcome.kind != OutcomeKind::Timeout => {
            stage_is_over(stage_ctx.stage, sent.get().is_some())
                .with_details(vec![outcome.to_string()])
        }
        _ => full_disk(stage_ctx, outcome),
    });
    let result = result.map_err(|outcome| match sent.get() {
        Some(done) => once(outcome, done),
        None => outcome,
    });
    let result = result.map_err(|outcome| outcome.for_record(stage_ctx.ctx.redactor));
    let result = match result {
        // A batch that waits has not failed.
        Err(outcome) if !outcome.kind.waits() => {
            let outcome = stage_ctx.stage.named(outcome);
            placeholder(stage_ctx, found, &scratch, outcome, observer.spent())
        }
        result => result,
    };
    AttemptResult {
        result,
        log: log.kept(),
        scratch: Some(scratch),
    }
}

/// Returns the final failure of an attempt with a request that must not be sent twice. One that was to wait would send it again.
pub(crate) fn once(outcome: Outcome, done: &str) -> Outcome {
    let message = format!("{}; {done}", outcome.message);
    let mut outcome = if outcome.kind.waits() {
        Outcome::new(OutcomeKind::Cut, message)
    } else {
        Outcome { message, ..outcome }
    };
    // The run adds the facts.
    outcome.accepted = Some(String::new());
    outcome.for_good()
}

/// Reports a full disk as the cause: a program or library that ignores write errors leaves an incomplete, and so invalid, file.
fn full_disk(stage_ctx: &StageContext<'_>, mut outcome: Outcome) -> Outcome {
    let folder = stage_ctx.ctx.layout.root();
    let is_named = outcome.message.contains(NO_SPACE);
    if !is_named && stage_ctx.ctx.disk.is_full(folder) {
        let why = format!(
            "{NO_SPACE} {}: free space, then run again to continue",
            folder.display()
        );
        outcome.message = format!("{why} ({})", outcome.message);
    }
    outcome
}

/// How the message of a full disk begins.
pub(crate) const NO_SPACE: &str = "no space left on";

/// Returns true if a step writes files by path, as programs and workbooks do.
fn wants_folder(stage: &Stage) -> bool {
    let mut steps = stage.steps.iter();
    steps.any(|step| step.kind.info().writes_by_path)
}

/// Returns the id of an attempt in the environment of its programs, by which a later run finds survivors.
pub(crate) fn token(run: &str, stage: &str, batch: &str) -> String {
    format!("{run}/{stage}/{batch}")
}

/// Checks that the batch can be built and that its inputs are valid.
fn may_begin(
    stage_ctx: &StageContext<'_>,
    found: &BatchScan,
    cancel: &Arc<CancelToken>,
) -> Result<(), Outcome> {
    if let Err(why) = &found.decision {
        return Err(why.outcome());
    }
    if let Some(lacks) = &stage_ctx.lacks {
        return Err(lacks.clone());
    }
    let (ctx, schemas) = (&stage_ctx.ctx, stage_ctx.schemas);
    validate::inputs(ctx, stage_ctx.stage, found, schemas, cancel)
}

#[expect(
    clippy::too_many_arguments,
    reason = "the parts of one attempt, used once"
)]
fn within(
    stage_ctx: &StageContext<'_>,
    found: &BatchScan,
    name: &str,
    scratch: &Scratch,
    outputs: &ScratchOutputDir<'_>,
    iterations: &AttemptIterations<'_>,
    log: &mut AttemptLog<'_>,
    observer: &dyn AttemptObserver,
    previous: &BTreeMap<String, RelPath>,
    cancel: &Arc<CancelToken>,
    sent: &Cell<Option<&'static str>>,
) -> Result<Produced, Outcome> {
    may_begin(stage_ctx, found, cancel)?;
    let begun = stage_ctx.ctx.clock.now();
    let moment = stage_ctx.ctx.moment();
    let scope = scopes::of_inputs(&stage_ctx.ctx, stage_ctx.stage, found, moment, cancel)?;
    let workers = Rc::new(JqWorkers::new(stage_ctx.stage, cancel));
    validate::checks(&stage_ctx.stage.requires, &scope, &workers).map_err(Outcome::for_good)?;
    let token = token(stage_ctx.token, &stage_ctx.stage.name, &found.batch.key);
    let threads = (stage_ctx.threads / observer.running()).max(1);
    let files = stage_ctx.ctx.files;
    let earlier = |output: &str| -> Option<Arc<dyn Source>> {
        let path = FilePath::workspace(previous.get(output)?.clone());
        Some(cancel.source(files.source(&path).ok()?))
    };
    let mut batch_ctx = BatchContext {
        stage: stage_ctx.stage,
        name,
        scope,
        base: LazyCell::new(Box::new(move || {
            found.base(stage_ctx.ctx.pipeline, stage_ctx.ctx.settings, moment)
        })),
        moment,
        outputs,
        iterations,
        log,
        stop: stage_ctx.stop,
        cancel,
        jq: Rc::clone(&workers),
        left: &|| stage_ctx.left(),
        observer,
        schemas: stage_ctx.schemas,
        agents: stage_ctx.agents,
        calls: stage_ctx.calls,
        asked_since: if stage_ctx.fresh {
            Some(&stage_ctx.this_run)
        } else {
            found.asked_since.as_deref()
        },
        client: stage_ctx.client,
        probe: None,
        facts: &|| format!("{}{}", stage_ctx.shared, found.own.id()),
        sent,
        environment: stage_ctx.environment,
        declared_env: &stage_ctx.ctx.settings.env,
        folder: scratch.path(),
        project: files.folder(Root::Project),
        token: &token,
        previous: &earlier,
        find: &|file: &FilePath| scopes::awaited(&stage_ctx.ctx, file, cancel),
        limits: stage_ctx.limits,
        threads,
        is_dry_run: false,
    };
    let report = attempt(&mut batch_ctx)?;
    let mut scope = batch_ctx.scope;
    let (mut made, items, unmatched) =
        collect(stage_ctx, outputs, scratch, &mut scope, cancel, threads)?;
    let failed = report.failed.iter().flat_map(|failed| failed.keys.clone());
    let counted = validate::conservation(stage_ctx.stage, &scope, &failed.collect(), threads)?;
    validate::checks(&stage_ctx.stage.checks, &scope, &workers)?;
    let elements = counted.or(items);
    let redactor = stage_ctx.ctx.redactor;
    let opinion = validate::opinion(stage_ctx.stage, &scope, report.summary, &workers, redactor)?;
    add_marker(stage_ctx, found, scratch, &mut made)?;
    let stale = stale(stage_ctx, found)?;
    check_still(found, stale.as_deref())?;
    let read = dependencies::named(stage_ctx.ctx.files, &report.read)?;
    let stale = stale.or_else(|| dependencies::changed_since(stage_ctx.ctx.files, &read, begun));
    let failed = report.failed.into_iter().map(|failed| FailedKeys {
        outcome: failed.outcome.for_record(redactor),
        ..failed
    });
    let mut warnings = report.warnings;
    warnings.extend(unmatched);
    for warning in opinion.warnings() {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    Ok(Produced {
        files: made,
        elements,
        opinion,
        warnings,
        placeholder: None,
        failed: failed.collect(),
        answers: report.answers,
        stale,
        read,
        job: None,
        sent: sent.get().map(str::to_owned),
    })
}

/// Checks that an input that changed during the attempt did not change during the last one too.
///
/// # Errors
/// If it did: another attempt would end like this one.
fn check_still(found: &BatchScan, stale: Option<&str>) -> Result<(), Outcome> {
    let (Some(now), Ok(Decision::Will(reasons))) = (stale, &found.decision) else {
        return Ok(());
    };
    let is_before = |reason: &Reason| matches!(reason, Reason::Stale { input } if input == now);
    if reasons.iter().any(is_before) {
        let why = format!(
            "its input {now} changes each time it runs: if a step writes to it, let it write a copy"
        );
        return Err(Outcome::new(OutcomeKind::Input, why).for_good());
    }
    Ok(())
}

/// Validates and hashes the outputs, and adds them to the scope. Returns their files, the number of items and warnings.
#[expect(clippy::type_complexity)]
fn collect(
    stage_ctx: &StageContext<'_>,
    outputs: &ScratchOutputDir<'_>,
    scratch: &Scratch,
    scope: &mut Scope,
    cancel: &Arc<CancelToken>,
    threads: usize,
) -> Result<(Vec<(Made, RelPath)>, Option<u64>, Vec<String>), Outcome> {
    let failed = |name: &str, error: &dyn std::fmt::Display| {
        Outcome::new(OutcomeKind::Output, format!("output `{name}`: {error}"))
    };
    let (mut made, mut warnings) = (Vec::new(), Vec::new());
    let mut items = None;
    for output in &stage_ctx.stage.outputs {
        let files = outputs
            .files(&output.name)
            .map_err(|error| failed(&output.name, &error))?;
        let skipped = may_be_skipped(stage_ctx.stage, &output.name);
        if files.is_empty() && !output.is_many() && !skipped {
            let place = outputs
                .pattern(&output.name)
                .map_or_else(|_| output.path.shown(), |path| path.to_string());
            return Err(failed(&output.name, &format!("no step wrote `{place}`")));
        }
        if output.is_many() && !skipped {
            let (count, place) = (files.len() as u64, output.path.shown());
            match output.min {
                Some(min) if count < min => {
                    let files = words::count(count, "file matches", "files match");
                    let message = format!("{files} `{place}`, expected at least {min}");
                    return Err(failed(&output.name, &message));
                }
                None if count == 0 => warnings.push(format!(
                    "output `{}`: no file matches `{place}`; write `min = 0` if that is meant, or `min = 1` to fail",
                    output.name
                )),
                _ => {}
            }
        }
        if is_validated(stage_ctx.stage, output) {
            let source = |file| cancel.source(Arc::new(ScratchFile::new(scratch, file)));
            let sources: Vec<Arc<dyn Source>> = files.iter().map(source).collect();
            let counted = validate::outputs(stage_ctx.schemas, output, &sources, threads)?;
            if output.stream.is_some() && !files.is_empty() {
                items = Some(items.unwrap_or(0) + counted);
            }
        }
        for file in files {
            let (digest, size) = content(scratch, &file)?;
            let from = scratch.inside(&file);
            made.push((
                Made {
                    name: output.name.clone(),
                    path: file,
                    digest,
                    size,
                },
                from,
            ));
        }
        if scope.source(&output.name).is_none() && !scope.is_list(&output.name) {
            scope.absent(&output.name);
        }
    }
    Ok((made, items, warnings))
}

/// Returns true if the files of an output must be read before they are published. Without a schema, that is if a program writes them:
/// Milepost's own steps write their format.
fn is_validated(stage: &Stage, output: &Output) -> bool {
    let mut steps = stage.steps.iter();
    output.schema.is_some()
        || output.columns.is_some()
        || steps.any(|step| step.kind.info().outputs == Outputs::Any)
}

/// Returns true if a step with `when` makes an output. A program also makes outputs that no step names.
fn may_be_skipped(stage: &Stage, output: &str) -> bool {
    let is_named = stage.steps.iter().any(|step| step.out == output);
    stage.steps.iter().any(|step| {
        let is_program = step.kind.info().outputs == Outputs::Any;
        step.when.is_some() && (step.out == output || is_program && !is_named)
    })
}
